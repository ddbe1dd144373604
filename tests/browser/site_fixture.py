"""A whole invented site, rated by the real rule systems, rendered into a folder.

    python -m tests.browser.site_fixture FOLDER [players]

Names are invented. The same call gives the same bytes.
"""

# ruff: noqa: E501, SIM905, A001, A002 - wide tables of invented things

from __future__ import annotations

import datetime as dt
import itertools
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_struct

from shared.ledger.calendar import closings, day_of, month_of
from shared.ledger.order import to_instant
from shared.ratings import rule_system
from shared.ratings.base import MILLION, QUIT, Game, Moment, PlayerState
from shared.ratings.jass import DEFAULT_TIERS, tier_bounds
from site_builder import data, site
from site_builder.assets import asset_pages
from site_builder.views import (
    Band,
    BestEver,
    ChangeNote,
    Decay,
    GameChange,
    GameLine,
    GamePage,
    HistoryLine,
    IndexPage,
    LabelEntry,
    LabelPage,
    LedgerPage,
    LedgerSegment,
    MonthEntry,
    MonthPage,
    Mover,
    Page,
    Pairing,
    Person,
    PlayerPage,
    PoolSummary,
    PoolView,
    Revision,
    SiteView,
    Standing,
    StatisticsPage,
    Streaks,
)

FIRST = (
    "Anna Beat Carla Dario Élodie Fritz Gianna Hans Irène Jürg Klara Luca Maja Nino Ösgür Petra Quirin Rosa Stefan "
    "Tamara Ueli Vreni Walter Xenia Yann Zoé Änni Bruno Chiara Denis"
).split()
LAST = (
    "Aebi Bianchi Camenzind Dubois Egli Favre Gerber Huber Imhof Jenny Keller Lüthi Moretti Nägeli Odermatt Perren "
    "Quadri Rochat Schär Tanner Urech Vögeli Wüthrich Zürcher Ammann Berset"
).split()
AWKWARD = (
    "<img src=x onerror=1>",
    '"><script>alert(1)</script>',
    "Maximiliane-Leopoldine von Hohenstein-Untertürkheim zu Zimmern",
    "محمد الفاتح",
    "🂡 Ace of Spades 🃏",
    "=HYPERLINK(1)",
)
ZONE = "Europe/Zurich"
START = dt.datetime(2025, 9, 2, 17, 30, tzinfo=dt.UTC)
NOW = to_instant(dt.datetime(2026, 11, 3, 19, 40, tzinfo=dt.UTC))
SITE = SiteView("https://ratings.example", "https://api.ratings.example")


def bands() -> tuple[Band, ...]:
    """The neutral tiers that a Jass pool has by default."""
    made = []
    for number, tier in enumerate(DEFAULT_TIERS):
        low, high = (None if bound is None else bound * MILLION for bound in tier_bounds(number))
        made.append(Band(tier.names, low, high))
    return tuple(made)


LONG = "DonaudampfschifffahrtsgesellschaftskapitaenswitwenrentenauszahlungsstelleWWWWWW"
"""Eighty letters without a space, as long as a name may be."""


def names(count: int, awkward: bool = True, long: bool = False) -> list[Person]:
    """Invented people; ``long``: with names that no line holds."""
    if long:
        return [Person(f"p{number + 1:03d}", f"{LONG[:-2]}{number + 1:02d}") for number in range(count)]
    rng = random.Random(7)
    pairs = list(itertools.product(FIRST, LAST))
    rng.shuffle(pairs)
    people = []
    for number in range(count):
        first, last = pairs[number % len(pairs)]
        extra = f" {number // len(pairs) + 1}" if number >= len(pairs) else ""
        name = (
            AWKWARD[number // 3]
            if awkward and number % 3 == 2 and number // 3 < len(AWKWARD)
            else f"{first} {last}{extra}"
        )
        people.append(Person(f"p{number + 1:03d}", name))
    return people


class World:
    """One pool, played through."""

    def __init__(
        self,
        id: str,
        name: str,
        system: str,
        settings: dict[str, Any],
        players: int,
        games: int,
        awkward: bool,
        long: bool = False,
    ) -> None:
        self.long = long
        self.system = rule_system(system)
        self.settings = self.system.settings_model.model_validate(settings)
        self.people = names(players, awkward, long)
        self.by = {p.handle or "": p for p in self.people}
        last = max(at for at, _ in closings(to_instant(START), NOW, ZONE))
        self.pool = PoolView(
            id,
            self.text(name),
            system,
            ZONE,
            ("en", "de", "fr", "it"),
            ({"from": "2025-09-01", **settings},),
            to_instant(START) + 90 * 86_400_000_000,
            publication="00001f3a",
            published_at=NOW + 12_000_000,
            results_up_to=NOW,
            position="00064a",
            state_hash="9f" * 32,
            last_closing=last,
            bands=bands() if system == "jass" else (),
            players=players,
            games=games,
            pictures=True,
        )
        self.states: dict[str, PlayerState] = {}
        self.series: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self.history: dict[str, list[HistoryLine]] = defaultdict(list)
        self.games: list[GamePage] = []
        self.snapshots: list[tuple[int, dict[str, PlayerState]]] = []
        self.scores: list[tuple[float, float]] = []
        self.pairs: dict[tuple[str, str, str], list[Any]] = {}
        self._play(random.Random(id), games)

    def text(self, text: str) -> str:
        """A name or a text somebody wrote: as it is, or so long that no line holds it."""
        return (text.partition(" ")[0] + LONG)[:80] if self.long else text

    def label(self, id: str) -> str:
        """The id of a group or tournament, which is its name too."""
        return (id + LONG.lower())[:64] if self.long else id

    def _content(self, rng: random.Random, at: int, end: int) -> dict[str, Any]:
        handles = [p.handle or "" for p in self.people]
        strength = {h: (len(handles) / 2 - n) / len(handles) / 3 for n, h in enumerate(handles)}
        weights = [3 if n % 4 else 1 for n in range(len(handles))]
        if self.system.name == "bridier":
            a, b = _pick(rng, handles, weights, 2)
            if rng.random() < 0.06:
                return {"players": sorted((a, b)), "draw": True}
            return {"players": sorted((a, b)), "winner": a if rng.random() < 0.5 + strength[a] - strength[b] else b}
        a, b, c, d = _pick(rng, handles, weights, 4)
        teams = [sorted((a, b)), sorted((c, d))]
        edge = strength[a] + strength[b] - strength[c] - strength[d]
        first = rng.random() < 0.5 + edge / 2
        if self.system.name == "jass":
            high, low = rng.choice([(3, 0), (3, 1), (2, 1), (4, 1), (5, 0), (3, 2), (7, 0), (4, 3)])
            ahead, behind = _striche(high), _striche(low)
            return {
                "teams": teams,
                "striche": [high, low] if first else [low, high],
                "categories": [ahead, behind] if first else [behind, ahead],
                "winner": "team1" if first else "team2",
            }
        content: dict[str, Any] = {"teams": teams, "outcome": "team1" if first else "team2"}
        if rng.random() < 0.04:
            content["outcome"] = "draw"
        if rng.random() < 0.08:
            content["quits"] = [{"player": d, "at": at + (end - at) // 2, "back_at": None}]
            content["substitutes"] = [{"for": d, "player": None, "robot": True}]
        if rng.random() < 0.5:
            content["nils"] = [{"bidder": rng.choice((a, b, c, d)), "set": rng.random() < 0.4, "set_by": None}]
        return content

    def _play(self, rng: random.Random, games: int) -> None:
        begin = to_instant(START)
        step = (NOW - begin) // games
        due = list(closings(begin, NOW, ZONE))
        for number in range(games):
            end = begin + (number + 1) * step
            at = end - 40 * 60_000_000
            while due and due[0][0] <= at:
                self._close(*due.pop(0))
            content = self._content(rng, at, end)
            club = "bern" if number % 3 else "thun"
            game = Game(club, f"g{number + 1:04d}", 1, at, end, content=content)
            self._rate(game, club, number)
        while due:
            self._close(*due.pop(0))

    def _close(self, at: int, day: dt.date) -> None:
        for handle, state in list(self.states.items()):
            after = self.system.close(state, day.toordinal())
            if after is not None:
                before = (state.rating, state.index)
                state.rating, state.index = after
                self.series[handle].append((at, *after))
                self.history[handle].append(
                    HistoryLine(
                        at,
                        "closing",
                        before,
                        after,
                        explanation=self.system.explain_closing(before, after, state.last_result, day.toordinal()),
                    )
                )
        self.snapshots.append((at, {h: _copy(s) for h, s in self.states.items()}))

    def _rate(self, game: Game, club: str, number: int) -> None:
        assert game.finished_at is not None
        players = self.system.players(game.content)
        for handle in players:
            if handle not in self.states:
                self.states[handle] = self.system.start(None, self.settings)
        start = {h: (self.states[h].rating, self.states[h].index) for h in players}
        changes: list[GameChange] = []
        for moment in self.system.moments(game, self.settings):
            now = {h: self.states[h] for h in players}
            explained = self.system.explain(game, moment, start, now, self.settings)
            outcomes = self.system.rate(game, moment, start, now, self.settings)
            for outcome in outcomes:
                state = self.states[outcome.player]
                before, after = (state.rating, state.index), (outcome.rating, outcome.index)
                explanation = explained.get(outcome.player, {})
                if outcome.score is None and before == after:
                    continue
                state.rating, state.index = after
                if outcome.score is not None:
                    state.games += 1
                    state.won += outcome.score > 0
                    state.drawn += outcome.score == 0
                    state.lost += outcome.score < 0
                state.last_played = moment.at
                if outcome.is_result:
                    state.last_result = day_of(moment.at, ZONE).toordinal()
                for key, more in (outcome.counters or {}).items():
                    state.counters = {**state.counters, key: state.counters.get(key, 0) + more}
                if state.best is None or outcome.rating > state.best[0]:
                    state.best = (*after, moment.at)
                self.series[outcome.player].append((moment.at, *after))
                kind = "quit" if moment.kind == QUIT else "game"
                changes.append(GameChange(outcome.player, kind, before, after, outcome.score, explanation))
                self._note(game, moment, outcome.player, kind, before, after, outcome.score, explanation, players)
        self.games.append(
            GamePage(
                club,
                game.game_id,
                "rated",
                game.started_at,
                game.content,
                self.by,
                club_name=self.text(club.capitalize()),
                finished_at=game.finished_at,
                group=(self.label("dienstag"), self.text("Dienstag")) if number % 2 else None,
                tournament=(self.label("herbst"), self.text("Herbstturnier")) if number % 7 == 0 else None,
                round=number % 3 + 1 if number % 7 == 0 else None,
                note=self.text("Played at the Bären") if number % 11 == 0 else "",
                changes=tuple(changes),
                revisions=(
                    Revision(1, game.finished_at + 60_000_000, "finished"),
                    *(
                        (Revision(2, game.finished_at + 9_000_000_000, "corrected", self.text("Seats were swapped")),)
                        if number % 9 == 0
                        else ()
                    ),
                ),
            )
        )

    def _note(
        self,
        game: Game,
        moment: Moment,
        player: str,
        kind: Any,
        before: Any,
        after: Any,
        score: Any,
        explanation: Any,
        players: Any,
    ) -> None:
        teams = game.content.get("teams")
        own = next((t for t in teams if player in t), [player]) if teams else [player]
        partners = tuple(self.by[h] for h in own if h != player)
        opponents = tuple(self.by[h] for h in players if h not in own)
        self.history[player].append(
            HistoryLine(
                moment.at,
                kind,
                before,
                after,
                game.club,
                game.game_id,
                score,
                explanation,
                game.content,
                partners,
                opponents,
            )
        )
        expected = explanation.get("e")
        if expected is None and "expected" in explanation:
            expected = explanation["expected"] / 2
        actual = None if score is None else (score + 1) / 2
        if expected is not None and actual is not None:
            self.scores.append((expected, actual))
        for role, others in (("partners", partners), ("opponents", opponents)):
            for other in others:
                entry = self.pairs.setdefault((player, role, other.handle or ""), [0, 0, 0, 0, 0, 0, 0.0, 0.0])
                entry[0] += 1
                entry[1] += score == 1
                entry[2] += score == 0
                entry[3] += score == -1
                entry[4] += after[0] - before[0]
                entry[5] += after[1] - before[1]
                entry[6] += expected or 0
                entry[7] += actual or 0

    # -- views ---------------------------------------------------------------------------------------------------
    def standings(
        self, states: dict[str, PlayerState], previous: dict[str, PlayerState] | None, sparks: bool = True
    ) -> list[Standing]:
        order = sorted(states, key=lambda h: (self.system.order_key(states[h]), h))
        before = self._places(previous or {})
        places = self._places(states)
        lines = []
        for h in order:
            s = states[h]
            spark = [*[snap[h].rating for _, snap in self.snapshots if h in snap][-12:], s.rating]
            old = (previous or {}).get(h)
            lines.append(
                Standing(
                    places[h], h, self.by[h].name, s.rating, s.index, s.games, s.won, s.drawn, s.lost, s.last_played,
                    self.system.figures(s, self.settings), before.get(h), (old.rating, old.index) if old else None,
                    provisional=s.games < 12, inactive=s.last_played is not None and NOW - s.last_played > 60 * 86_400_000_000,
                    labels=dict.fromkeys(("club:bern", f"tournament:{self.label('herbst')}"), (s.games // 2, s.won // 2, s.drawn // 2, s.games // 2 - s.won // 2 - s.drawn // 2, 55, 48, 7_250_000 if self.pool.system != "bridier" else 7)),
                    spark=tuple(spark) if sparks else (),
                )
            )  # fmt: skip
        return lines

    def _places(self, states: dict[str, PlayerState]) -> dict[str, int]:
        order = sorted(states, key=lambda h: (self.system.order_key(states[h]), h))
        places: dict[str, int] = {}
        for number, h in enumerate(order, 1):
            same = number > 1 and self.system.place_key(states[order[number - 2]]) == self.system.place_key(states[h])
            places[h] = places[order[number - 2]] if same else number
        return places

    def game_line(self, game: GamePage) -> GameLine:
        return GameLine(game.finished_at or 0, game.club, game.game_id, game.content, self.by)

    def player_page(self, line: Standing) -> PlayerPage:
        h = line.player
        state = self.states[h]
        both = []
        for role in ("partners", "opponents"):
            pairs = [
                Pairing(
                    self.by[other],
                    e[0],
                    e[1],
                    e[2],
                    e[3],
                    (e[4], e[5]),
                    e[6] if self.scores else None,
                    e[7] if self.scores else None,
                )
                for (who, kind, other), e in self.pairs.items()
                if who == h and kind == role
            ]
            both.append(tuple(sorted(pairs, key=lambda p: (-p.games, p.person.handle or ""))[:12]))
        snaps = [(month_of(at - 1, ZONE), snap[h].rating, snap[h].index) for at, snap in self.snapshots if h in snap]
        last_month, last_snap = month_of(self.snapshots[-1][0] - 1, ZONE), self.snapshots[-1][1]
        return PlayerPage(
            line,
            clubs=(("bern", self.text("Jassclub Bern")),),
            month=last_month if h in last_snap else None,
            month_place=self._places(last_snap).get(h),
            best=state.best,
            streaks=Streaks(2, 5, 3),
            series=tuple(self.series[h]),
            closings=tuple(snaps),
            history=tuple(reversed(self.history[h]))[:100],
            history_total=len(self.history[h]),
            partners=both[0],
            opponents=both[1],
            decay=(Decay(NOW + 27 * 86_400_000_000, (state.rating, state.index), (state.rating, 200)),) if self.pool.system == "bridier" and state.index < 200 else (),
            journal=(
                ChangeNote(NOW - 86_400_000_000, "corrected", "Seats were swapped", "bern", "g0010", 2, (), 12, (state.rating - 3_100_000, 0), (state.rating, 0), NOW - 9 * 86_400_000_000),
            ) if h == "p001" else (),
            labels=(("club", "bern", self.text("Jassclub Bern"), (20, 11, 1, 8, 55, 48, 7)),),
        )  # fmt: skip

    def pages(self, few: bool = False) -> Iterator[Page]:
        """Everything of the pool. ``few``: one page of each kind."""
        pool = self.pool
        standings = self.standings(self.states, self.snapshots[-1][1])
        recent = [self.game_line(game) for game in reversed(self.games[-6:])]
        yield from site.list_pages(
            SITE, pool, standings, recent=recent, variants=("new",) if pool.system == "bridier" else ()
        )
        if pool.system == "bridier":
            yield from site.list_pages(SITE, pool, standings[-3:], variant="new", variants=("new",))
        for line in standings[:1] if few else standings:
            yield from site.player_pages(SITE, pool, self.player_page(line))
        chosen = self.games[-6:] if few else self.games
        for game in chosen:
            yield from site.game_pages(SITE, pool, game)
        yield data.standings_csv(pool, standings)
        yield from data.search_pages(pool, self.people)
        months = []
        previous: dict[str, PlayerState] = {}
        for number, (at, snap) in enumerate(self.snapshots):
            month = month_of(at - 1, ZONE)
            lines = self.standings(snap, previous, sparks=False)
            if pool.system == "bridier":
                lines[-3:] = [replace_struct(line, place=None, apart="new") for line in lines[-3:]]
            moved = sorted(
                (Mover(x.player, x.name, x.previous, (x.rating, x.index)) for x in lines if x.previous),
                key=lambda m: -abs(m.after[0] - m.before[0]),
            )[:8]
            page = MonthPage(
                month, "frozen" if at > pool.created_at else "reconstructed", tuple(lines), tuple(moved), 2 if number == 5 else None,
                earlier=months[-1].month if months else None,
                later=month_of(self.snapshots[number + 1][0] - 1, ZONE) if number + 1 < len(self.snapshots) else None,
            )  # fmt: skip
            months.append(MonthEntry(month, page.kind, len(lines), self.by[lines[0].player] if lines else None))
            previous = snap
            if not few or number == len(self.snapshots) - 1:
                yield from site.month_pages(SITE, pool, page)
                yield data.month_json(pool, page)
                if page.revised_since:
                    yield Page(f"{pool.id}/lists/{month}/changes.json", data.JSON, b"{}\n")
                yield data.month_csv(pool, page)
        labels = tuple(
            LabelEntry(kind, id, self.text(name), len(standings), len(self.games) // 2)  # type: ignore[arg-type]
            for kind, id, name in (("club", "bern", "Jassclub Bern"), ("club", "thun", "Kartenfreunde Thun"), ("group", self.label("dienstag"), "Dienstag"), ("tournament", self.label("herbst"), "Herbstturnier"), ("year", "2026", "2026"))
        )  # fmt: skip
        yield from site.index_pages(SITE, pool, IndexPage(tuple(reversed(months)), labels))
        for year in ("2025", "2026"):
            lines = tuple(standings[:9])
            page_of_year = LabelPage(
                "group", f"{self.label('dienstag')}:{year}", self.text("Dienstag"), lines, year=year
            )
            yield from site.label_pages(SITE, pool, page_of_year)
        for entry in labels:
            yield from site.label_pages(
                SITE,
                pool,
                LabelPage(
                    entry.kind,
                    entry.id,
                    entry.name,
                    tuple(standings[:15]),
                    tuple(recent),
                    entry.games,
                    years=("2025", "2026") if entry.kind == "group" else (),
                    gainers=tuple(standings[:15]) if entry.kind == "tournament" else (),
                ),
            )
        notes = (
            ChangeNote(
                NOW - 86_400_000_000,
                "corrected",
                self.text("Seats were swapped"),
                "bern",
                self.games[-1].game_id,
                2,
                (),
                12,
            ),
            ChangeNote(
                NOW - 2 * 86_400_000_000, "voided", "Entered twice <b>", "bern", self.games[-2].game_id, 3, (), 40
            ),
            ChangeNote(
                NOW - 3 * 86_400_000_000, "merged", "One person, two cards", people=(self.people[0], self.people[1])
            ),
        )
        yield from site.changes_pages(SITE, pool, notes)
        yield from site.rules_pages(SITE, pool)
        segments = [LedgerSegment(f"2026-{month:02d}", 40 * month, "3f" * 32, month < 11) for month in range(1, 12)]
        yield from site.ledger_pages(SITE, pool, LedgerPage(tuple(segments), 2640, pool.state_hash))
        for name in ("index.json", "players.json", *(f"{segment.month}.jsonl" for segment in segments)):
            yield Page(f"{pool.id}/ledger/{name}", data.JSON, b"{}\n")
        ever = sorted((h, s.best) for h, s in self.states.items() if s.best is not None)
        ever.sort(key=lambda entry: -entry[1][0])
        yield from site.best_pages(
            SITE, pool, [BestEver(h, self.by[h].name, (best[0], best[1]), best[2]) for h, best in ever]
        )
        yield from site.calculator_pages(SITE, pool)
        activity: dict[str, int] = defaultdict(int)
        for game in self.games:
            activity[month_of(game.started_at, ZONE)] += 1
        yield from site.statistics_pages(
            SITE,
            pool,
            StatisticsPage(
                tuple(s.rating for s in self.states.values()),
                tuple((month, count, min(count * 2, len(self.people))) for month, count in sorted(activity.items())),
                self.scores,
            ),
        )
        yield from site.embed_pages(SITE, pool, standings[:10])
        yield from site.feed_pages(SITE, pool, recent, [(m.month, self.snapshots[n][0]) for n, m in enumerate(months)])
        yield site.picture_page(pool, [s.rating for s in self.states.values()])
        yield data.publication_json(pool, 100)

    def summary(self) -> PoolSummary:
        lines = self.standings(self.states, None, sparks=False)
        return PoolSummary(
            self.pool.id, self.pool.name, self.pool.system, self.pool.languages, len(self.people), len(self.games),
            self.games[-1].finished_at, ZONE, tuple(lines[:3]),
        )  # fmt: skip


def _pick(rng: random.Random, handles: list[str], weights: list[int], count: int) -> list[str]:
    chosen: list[str] = []
    while len(chosen) < count:
        (handle,) = rng.choices(handles, weights)
        if handle not in chosen:
            chosen.append(handle)
    return chosen


def _striche(count: int) -> dict[str, int]:
    """So many striche as what they may have been for."""
    berg, sieg = count % 2, 2 if count > 1 else 0
    return {"berg": berg, "sieg": sieg, "matsch": count - berg - sieg, "schneider": 0, "kontermatsch": 0}


def _copy(state: PlayerState) -> PlayerState:
    return PlayerState(
        state.rating,
        state.index,
        state.games,
        state.won,
        state.drawn,
        state.lost,
        state.last_result,
        state.last_played,
        state.counters,
        state.best,
        state.labels,
    )


def worlds(players: int = 20, awkward: bool = True, long: bool = False) -> list[World]:
    """Three pools, one per rule system."""
    return [
        World("schieber", "Schieber am Dienstag", "jass", {}, players, players * 14, awkward, long),
        World("spades", "Spades Open", "spades", {}, players, players * 10, awkward, long),
        World("duels", "Forum duels", "bridier", {}, players, players * 9, awkward, long),
    ]


def crowd(count: int = 20_000) -> Iterator[Page]:
    """The list pages of a pool of so many players."""
    rng = random.Random(3)
    people = names(count, awkward=False)
    pool = worlds(6, False)[0].pool
    pool = PoolView(
        **{
            **{f: getattr(pool, f) for f in pool.__dataclass_fields__},
            "id": "crowd",
            "name": "Schweizer Rangliste",
            "players": count,
            "games": count * 9,
        }
    )
    ratings = sorted((rng.gauss(100_000_000, 12_000_000) for _ in people), reverse=True)
    lines = [
        Standing(n + 1, p.handle or "", p.name, int(r), 0, 41 + n % 300, 20 + n % 150, n % 5, 21 + n % 140, NOW - n * 10_000_000,
                 {"tier": 11}, n + 1 + rng.randrange(-9, 9), (int(r) + rng.randrange(-3_000_000, 3_000_000), 0),
                 spark=tuple(int(r) + rng.randrange(-5_000_000, 5_000_000) for _ in range(13)))
        for n, (p, r) in enumerate(zip(people, ratings, strict=True))
    ]  # fmt: skip
    pages = site.pages_needed(count)
    for number in range(1, pages + 1):
        yield from site.list_pages(SITE, pool, lines[(number - 1) * 100 : number * 100], number, pages)
    yield data.standings_csv(pool, lines)
    yield from data.search_pages(pool, people)


def whole_site(players: int = 20, awkward: bool = True, few: bool = False, long: bool = False) -> Iterator[Page]:
    """Every page there is."""
    yield from asset_pages()
    made = worlds(players, awkward, long)
    for world in made:
        yield from world.pages(few)
    view = SiteView(SITE.origin, SITE.api_origin, pools=tuple(world.summary() for world in made))
    yield from site.home_pages(view)
    for world in made:
        yield from data.pool_sitemaps(view, world.pool.id, [f"/{world.pool.id}/"])
    yield data.sitemap_index(view, {world.pool.id: 1 for world in made})


def write(folder: Path, pages: Iterator[Page]) -> int:
    """Into files, refusing to write one twice."""
    count = 0
    for page in pages:
        file = folder / page.path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as out:
            out.write(page.body)
        count += 1
    return count


if __name__ == "__main__":
    target = Path(sys.argv[1])
    total = write(target, whole_site())
    if len(sys.argv) > 2:
        total += write(target, crowd(int(sys.argv[2])))
    sys.stdout.write(f"{total} objects\n")
