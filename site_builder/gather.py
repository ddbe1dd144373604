"""From the store to views: what the pages of a publication are made from, read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import msgspec

from shared.ledger import calendar
from shared.ledger.explain import changes_of, rated_game, translate_players
from shared.ledger.fold import Rated
from shared.ledger.order import instant_of
from shared.ledger.rules import in_force
from shared.ratings.base import FINISH, PlayerState, Rating, Settings
from shared.store import clubs as club_store
from shared.store import keys, people
from shared.store import notes as note_store
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.store.rated import Cursor
from shared.store.table import Key
from shared.usecases import compact, reading
from shared.usecases import games as game_cases
from shared.usecases.context import Context
from shared.usecases.published import MAIN, ListRow
from site_builder import views

HISTORY_SHOWN = 100
"""Lines of history on a player's page; his JSON page links the API for more."""
SERIES = 400
"""Points of a chart: thinner than a pixel beyond."""
PAIRINGS = 30
CHUNK = 60
"""Rows read at once where only the newest of a tournament or group are wanted."""
NEWEST_CHUNK = 5
"""The same for the newest of a month, from each of its shards: some 4 KB, a read unit."""
MONTHS_AHEAD = 6
AHEAD = 64
"""Players read at once for their pages."""
MOST_CHANGES = 50_000
"""Explanations remembered: each is shown on the pages of everybody in the game."""
JOURNAL_KINDS = {
    "finished": "late",
    "started": "late",
    "quit": "late",
    "merge": "merged",
    "unmerge": "unmerged",
}
"""What a journal's cause is called on a page, where that is not the event's own name."""
GameRef = tuple[str, str]


def player_page_id(sid: str) -> str:
    """A player's page in ``PublishedList.loose``."""
    return f"p#{sid}"


def game_page_id(ref: GameRef) -> str:
    """A game's page there."""
    return f"g#{ref[0]}#{ref[1]}"


def sides(content: Mapping[str, Any]) -> list[list[str]]:
    """Who plays with whom: the teams, or each player for himself."""
    if "teams" in content:
        return [list(team) for team in content["teams"]]
    return [[player] for player in content.get("players", [])]


class Gatherer:
    """Reads what a publication of one pool needs, each thing once."""

    def __init__(self, ctx: Context, pool: Pool, cursor: Cursor) -> None:
        self.ctx = ctx
        self.pool = pool
        self.cursor = cursor
        self.view = cursor.view
        self.persons: dict[str, people.Person] = {}
        """Read in this run."""
        self.remembered: Mapping[str, ListRow] = {}
        """By id, the rows of the last list: whoever has not changed since is known from there."""
        self.listed: Set[str] = frozenset()
        """Players who have a page."""
        self.labels: set[str] = set()
        """Clubs, groups, tournaments and years that have one."""
        self.loose: dict[str, list[str]] = {}
        """As ``PublishedList.loose``, of the pages made so far."""
        self.played_in: set[str] = set()
        """Groups and tournaments of the games whose pages were made."""
        self._changes: dict[str, list[dict[str, Any]]] = {}
        self._rows_by_player: dict[str, list[Rated]] | None = None
        self._rows_by_game: dict[GameRef, list[Rated]] | None = None
        self._standings: dict[int, tuple[ListRow, views.Standing]] = {}
        """By the identity of a row, which is held here too, so that no other can come to have it: it stands in several
        lists."""

    @cached_property
    def club_names(self) -> dict[str, str]:
        """Club id → name."""
        return club_store.names(self.ctx.table)

    def know(self, sids: Iterable[str]) -> None:
        """Look up the persons of these ids that are not known yet."""
        missing = sorted({sid for sid in sids if sid not in self.persons and sid not in self.remembered})
        if missing:
            self.read_anew(missing)

    def read_anew(self, sids: Iterable[str]) -> None:
        """Look up persons that may have changed since the last list."""
        self.persons.update(people.persons(self.ctx.table, sorted(set(sids))))

    def named(self, sid: str) -> tuple[str, str] | None:
        """Name and handle; None of one who is not known."""
        found = self.persons.get(sid) or self.remembered.get(sid)
        return (found.name, found.handle) if found is not None else None

    def person(self, sid: str) -> views.Person:
        """Whom an id means, without a handle when he has no page; one nobody stands behind is a former player."""
        found = self.named(sid)
        if found is None:
            return views.Person(None, "")
        return views.Person(found[1] if sid in self.listed else None, found[0])

    def handle(self, sid: str) -> str:
        """A player's handle for data, with or without a page; the id of one who is not known any more."""
        found = self.named(sid)
        return found[1] if found is not None else sid

    def _mentions(self, page: str, names: Iterable[str]) -> None:
        """Remember what a page names that may get a page or lose it without the page's own ratings changing."""
        found = sorted(set(names))
        if found:
            self.loose[page] = found
        else:
            self.loose.pop(page, None)

    # -- rows ----------------------------------------------------------------------------------------------------
    def read_everything(self) -> None:
        """Read all rated rows at once: cheaper than player by player when the whole pool is published."""
        index = rated_store.read_index(self.ctx.table, self.pool.id)
        by_player: dict[str, list[Rated]] = {}
        by_game: dict[GameRef, list[Rated]] = {}
        for row in rated_store.read_rated(self.ctx.table, self.pool.id, index.months, self.view):
            for sid, *_ in row.after:
                by_player.setdefault(sid, []).append(row)
            if row.game is not None:
                by_game.setdefault((row.game.club, row.game.game_id), []).append(row)
        self._rows_by_player, self._rows_by_game = by_player, by_game

    @property
    def all_rows(self) -> list[Rated]:
        """Every game's rows in played order, after ``read_everything``."""
        rows = [row for found in (self._rows_by_game or {}).values() for row in found]
        return sorted(rows, key=lambda row: row.order)

    def every_row(self) -> Iterator[Rated]:
        """The same, read month by month where not everything has been read: a million rows are never held at once."""
        if self._rows_by_game is not None:
            yield from self.all_rows
            return
        months = rated_store.read_index(self.ctx.table, self.pool.id).months
        for row in rated_store.read_rated(self.ctx.table, self.pool.id, months, self.view):
            if row.game is not None:
                yield row

    def every_game(self) -> set[GameRef]:
        """Every game that was ever sent, rated or not. Reads the ledger."""
        return set(compact.read(self.ctx, self.pool).games())

    def newest_games(self, count: int) -> list[Rated]:
        """Rows of the games finished last, newest first."""
        if self._rows_by_game is not None:
            return [row for row in self.all_rows if row.kind == FINISH][: -count - 1 : -1]
        found: list[Rated] = []
        for month in reversed(rated_store.read_index(self.ctx.table, self.pool.id).months):
            rows = rated_store.newest_of_month(self.ctx.table, self.pool.id, month, self.view, NEWEST_CHUNK)
            for _, text in rows:
                row = rated_store.load_rated(text)
                if row.kind == FINISH:
                    found.append(row)
                if len(found) == count:
                    return found
        return found

    def player_rows(self, sid: str) -> list[Rated]:
        """A player's rows, oldest first."""
        if self._rows_by_player is not None:
            return self._rows_by_player.get(sid, [])
        rows, _ = reading.history_rows(self.ctx.table, self.pool.id, sid, self.view, limit=None)
        return rows[::-1]

    def changes(self, row: Rated) -> list[dict[str, Any]]:
        """What a row changed, with explanations; worked out once."""
        if row.order not in self._changes:
            if len(self._changes) >= MOST_CHANGES:
                self._changes.clear()
            self._changes[row.order] = changes_of(self.pool.system, self.pool.rules, row)
        return self._changes[row.order]

    def _before(self, row: Rated, sid: str) -> Rating:
        game = rated_game(self.pool.system, row)
        players = self.pool.system.players(game.content) if game is not None else [p for p, *_ in row.after]
        before = row.before[list(players).index(sid)]
        return (before[0], before[1])

    # -- players -------------------------------------------------------------------------------------------------
    def player_pages(self, players: Sequence[ListRow], month: str | None) -> Iterator[views.PlayerPage]:
        """The pages of players. What they need is read ahead, several players at a time.

        Args:
            month: the last closed month.
        """
        for row, (rows, journal) in zip(players, self._ahead([row.sid for row in players]), strict=True):
            yield self._player_page(row, month, rows, journal)

    def _ahead(self, sids: Sequence[str]) -> Iterator[tuple[list[Rated], list[note_store.Entry]]]:
        """Rows and journal of each player."""

        def read(sid: str) -> tuple[list[Rated], list[note_store.Entry]]:
            return self.player_rows(sid), note_store.read_journal(self.ctx.table, self.pool.id, sid, self.view)

        if self.ctx.uploads_at_once == 1 or len(sids) == 1:
            yield from map(read, sids)
            return
        with ThreadPoolExecutor(self.ctx.uploads_at_once) as threads:
            for start in range(0, len(sids), AHEAD):
                yield from threads.map(read, sids[start : start + AHEAD])

    def _player_page(
        self, row: ListRow, month: str | None, rows: list[Rated], journal: Sequence[note_store.Entry]
    ) -> views.PlayerPage:
        mentioned = reading.people_in(rows, self.pool.system)
        self.know(mentioned | {row.sid})
        own_labels = {f"club:{club}" for club in row.clubs} - row.state.labels.keys()
        merged = {away for r in rows for away in r.alias}
        # Whoever shares a change with him has a page as long as that stands, and when it falls his own is written too.
        sharing = {sid for r in rows for sid, *_ in r.after}
        self._mentions(player_page_id(row.sid), (mentioned - merged - sharing - {row.sid}) | own_labels)
        series = [(r.at, a[1], a[2]) for r in rows for a in r.after if a[0] == row.sid]
        if len(series) > 1:
            # A start comes before everything, also when it was accepted after the games that followed it.
            series[0] = (min(series[0][0], series[1][0]), *series[0][1:])
        return views.PlayerPage(
            standing=self.standing(row),
            clubs=tuple((c, self.club_names.get(c, c)) for c in row.clubs),
            pageless=frozenset(c for c in row.clubs if f"club:{c}" not in self.labels),
            month=month if row.month_place is not None else None,
            month_place=row.month_place or None,
            best=row.state.best,
            streaks=_streaks(rows, row.sid),
            series=_thinned(series),
            closings=self._closings(series),
            history=tuple(self._line(r, row.sid) for r in reversed(rows[-HISTORY_SHOWN:])),
            history_total=len(rows),
            partners=self._pairings(rows, row.sid, same_side=True),
            opponents=self._pairings(rows, row.sid, same_side=False),
            decay=self._decay(row.state),
            journal=tuple(self._journal(entry, rows) for entry in journal if entry.before != entry.after),
            labels=self._labels(row.state),
        )

    def _line(self, row: Rated, sid: str) -> views.HistoryLine:
        after = next(a for a in row.after if a[0] == sid)
        change = next(c for c in self.changes(row) if c["player"] == sid)
        game = rated_game(self.pool.system, row)
        own, others = _around(game.content, sid) if game is not None else ([], [])
        return views.HistoryLine(
            at=row.at,
            kind=change["kind"],
            before=self._before(row, sid),
            after=(after[1], after[2]),
            club=game.club if game is not None else None,
            game_id=game.game_id if game is not None else None,
            score=after[3],
            explanation=translate_players(change["explanation"], self._text),
            content=game.content if game is not None else None,
            partners=tuple(self.person(p) for p in own),
            opponents=tuple(self.person(p) for p in others),
        )

    def _text(self, text: str) -> str:
        """A server-made id as the handle that readers know; any other text as it is."""
        return self.handle(text)

    def _pairings(self, rows: Sequence[Rated], sid: str, *, same_side: bool) -> tuple[views.Pairing, ...]:
        sums: dict[str, list[float]] = {}
        for row in rows:
            game = rated_game(self.pool.system, row)
            after = next(a for a in row.after if a[0] == sid)
            if game is None or after[3] is None:
                continue
            before = self._before(row, sid)
            explanation = next(c for c in self.changes(row) if c["player"] == sid)["explanation"]
            forecast = forecast_of(explanation)
            own, others = _around(game.content, sid)
            whole = (after[3], after[1] - before[0], after[2] - before[1])
            met = _met({}, own, whole) if same_side else _met(explanation, others, whole)
            for other, score, gained, settled in met:
                entry = sums.setdefault(other, [0, 0, 0, 0, 0, 0, 0.0, 0.0, 0])
                entry[0] += score is not None
                entry[1] += score is not None and score > 0
                entry[2] += score == 0
                entry[3] += score is not None and score < 0
                entry[4] += gained
                entry[5] += settled
                if forecast is not None:
                    entry[6] += forecast[0]
                    entry[7] += forecast[1]
                    entry[8] += 1
        most = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:PAIRINGS]
        return tuple(
            views.Pairing(
                self.person(other),
                int(n),
                int(won),
                int(drawn),
                int(lost),
                (int(rating), int(index)),
                expected if counted else None,
                actual if counted else None,
            )
            for other, (n, won, drawn, lost, rating, index, expected, actual, counted) in most
        )

    def _closings(self, series: Sequence[tuple[int, int, int]]) -> tuple[tuple[str, int, int], ...]:
        """Rating at each closing from the first change on."""
        if not series or self.cursor.closed_until is None:
            return ()
        found = []
        number = 0
        zone = self.pool.time_zone
        for at, day in calendar.closings(series[0][0], self.cursor.closed_until, zone):
            while number + 1 < len(series) and series[number + 1][0] <= at:
                number += 1
            if series[number][0] <= at:
                found.append((calendar.closed_month(day), series[number][1], series[number][2]))
        return tuple(found)

    def _decay(self, state: PlayerState) -> tuple[views.Decay, ...]:
        """What the coming closings do if nothing is played."""
        if not self.pool.system.has_closings:
            return ()
        ahead = msgspec.structs.replace(state)
        # From closing to closing and not from today on: the page must not depend on the day on which it was made.
        last = self.cursor.closed_until
        start = calendar.last_closing(self.ctx.clock(), self.pool.time_zone) if last is None else last
        found: list[views.Decay] = []
        horizon = start + MONTHS_AHEAD * 31 * 86_400_000_000
        for at, day in calendar.closings(start, horizon, self.pool.time_zone):
            rating = self.pool.system.close(ahead, day.toordinal())
            if rating is not None and rating != (ahead.rating, ahead.index):
                found.append(views.Decay(at, (ahead.rating, ahead.index), rating))
                ahead.rating, ahead.index = rating
        return tuple(found)

    def _journal(self, entry: note_store.Entry, rows: Sequence[Rated]) -> views.ChangeNote:
        what, club, game_id = entry.causes[0] if entry.causes else ("late", "", "")
        played = next(
            (r.at for r in rows if r.game is not None and (r.game.club, r.game.game_id) == (club, game_id)), None
        )
        return views.ChangeNote(
            at=entry.at,
            kind=JOURNAL_KINDS.get(what, what),
            club=club or None,
            game_id=game_id or None,
            games_rerated=entry.games,
            before=entry.before,
            after=entry.after,
            played_at=played,
        )

    def _labels(self, state: PlayerState) -> tuple[tuple[str, str, str, views.Record], ...]:
        found = []
        for label, record in sorted(state.labels.items()):
            kind, _, rest = label.partition(":")
            if ":" in rest or kind == "year":
                continue
            name = self.club_names.get(rest, rest) if kind == "club" else rest
            found.append((kind, rest, name, record))
        return tuple(found)

    def figures(self, state: PlayerState) -> Mapping[str, Any]:
        """A player's further figures by the newest rules."""
        return self.pool.system.figures(state, self.pool.settings)

    def standing(self, row: ListRow, settings: Settings | None = None) -> views.Standing:
        """A line of the list. ``settings``: those it stands by; the newest when left out."""
        if settings is None:
            known = self._standings.get(id(row))
            if known is None:
                known = self._standings[id(row)] = (row, self._standing(row, None))
            return known[1]
        return self._standing(row, settings)

    def _standing(self, row: ListRow, settings: Settings | None) -> views.Standing:
        state = row.state
        return views.Standing(  # by position, as there are thousands: named, they take three times as long
            row.place,
            row.handle,
            row.name,
            state.rating,
            state.index,
            state.games,
            state.won,
            state.drawn,
            state.lost,
            state.last_played,
            self.pool.system.figures(state, settings or self.pool.settings),
            row.previous_place,
            row.previous,
            False,  # provisional
            row.variant == "inactive",
            "" if row.variant == MAIN else row.variant,
            state.labels,
            (*row.spark, state.rating) if row.spark else (),
            row.sid in self.listed,
        )

    # -- games ---------------------------------------------------------------------------------------------------
    def game_pages(self, refs: Sequence[GameRef]) -> Iterable[tuple[GameRef, views.GamePage | None]]:
        """The pages of these games; None for one that does not exist."""
        for start in range(0, len(refs), 50):
            part = refs[start : start + 50]
            items = self.ctx.table.batch_get([keys.game(self.pool.id, *ref) for ref in part])
            found = {ref: items.get(keys.game(self.pool.id, *ref)) for ref in part}
            stored = {ref: game_cases.from_item(item) for ref, item in found.items() if item is not None}
            rows = self._rows_of(stored.values())
            for ref in part:
                yield ref, self._game_page(stored[ref], rows[ref]) if ref in stored else None

    def _rows_of(self, games: Iterable[game_cases.Stored]) -> Mapping[GameRef, list[Rated]]:
        """The rated rows of games, read together."""
        if self._rows_by_game is not None:
            known = self._rows_by_game
            return {game.ref: known.get(game.ref, []) for game in games}
        wanted: dict[GameRef, dict[Key, None]] = {}
        for game in games:
            told = [game.game] + ([game.was] if game.was is not None else [])
            orders = [order for one in told for order in game_cases.moment_orders(self.pool, one)]
            wanted[game.ref] = {rated_store.rated_key(self.pool.id, o, instant_of(o)): None for o in orders}
        items = self.ctx.table.batch_get({key: None for keys_ in wanted.values() for key in keys_})
        found: dict[GameRef, list[Rated]] = {}
        for ref, keys_ in wanted.items():
            texts = [self.view.pick(items.get(key)) for key in keys_]
            rows = [rated_store.load_rated(text) for text in texts if text is not None]
            found[ref] = [r for r in rows if r.game is not None and (r.game.club, r.game.game_id) == ref]
        return found

    def _game_page(self, stored: game_cases.Stored, rows: list[Rated]) -> views.GamePage:
        held = self.view.pick(self.ctx.table.get(keys.held(self.pool.id), "#".join(stored.ref))) if not rows else None
        # The page shows what is rated: while a newer revision waits, the one whose changes stand.
        newest = max((r.game.revision for r in rows if r.game is not None), default=None)
        game = stored.game
        if newest is not None and newest != game.revision and not game.void:
            game = next(r.game for r in rows if r.game is not None and r.game.revision == newest)
        shown = [] if game.void else [r for r in rows if r.game is not None and r.game.revision == game.revision]
        finished = any(r.kind == FINISH for r in shown)
        sids = set(self.pool.system.mentioned(game.content)) | reading.people_in(shown, self.pool.system)
        self.know(sids)
        alias = {away: into for row in shown for away, into in row.alias.items()}
        labels = {"club": game.club, "group": game.group, "tournament": game.tournament}
        named = {f"{kind}:{label}" for kind, label in labels.items() if label}
        self.played_in |= {name for name in named if not name.startswith("club:")}
        if game.tournament and game.finished_at is not None:
            year = calendar.day_of(game.finished_at, self.pool.time_zone).year
            self.played_in.add(f"tournament:{game.tournament}:{year}")
        status = game_cases._status(game, finished, held is not None)
        reason = msgspec.json.decode(held, type=rated_store.HeldRow).reason if held is not None else ""
        # A game that is not rated and will not be (there may be many) links nobody, so that it never has to change.
        plain = status in ("void", "unrated")
        held_here = {sid for row in shown for sid, *_ in row.after} | alias.keys() | (named if finished else set())
        self._mentions(game_page_id(stored.ref), () if plain else (sids | named) - held_here)
        shown_as = {sid: self.person(alias.get(sid, sid)) for sid in sids}
        if plain:
            shown_as = {sid: views.Person(None, one.name) for sid, one in shown_as.items()}
        return views.GamePage(
            club=game.club,
            game_id=game.game_id,
            status=status,  # type: ignore[arg-type]
            started_at=game.started_at,
            content=game.content,
            people=shown_as,
            pageless=frozenset(named if plain else named - self.labels),
            club_name=self.club_names.get(game.club, game.club),
            finished_at=game.finished_at,
            group=(game.group, game.group) if game.group else None,
            tournament=(game.tournament, game.tournament) if game.tournament else None,
            round=game.round,
            note=stored.note,
            changes=tuple(c for row in shown for c in self._game_changes(row)),
            revisions=tuple(
                views.Revision(r.revision, r.at, r.what, r.reason)
                for r in stored.revisions
                if r.revision <= game.revision
            ),
            warnings=tuple(w["message"] for w in stored.warnings),
            held_because=reason,
            rules=in_force(self.pool.rules, game.started_at) or 0,
        )

    def _game_changes(self, row: Rated) -> list[views.GameChange]:
        by_player = {c["player"]: c for c in self.changes(row)}
        return [
            views.GameChange(
                player=sid,
                kind=by_player[sid]["kind"],
                before=self._before(row, sid),
                after=(rating, index),
                score=score,
                explanation=by_player[sid]["explanation"],
            )
            for sid, rating, index, score, _ in row.after
        ]

    def open_games(self, most: int) -> tuple[views.GameLine, ...]:
        """Games that are being played, the one started last first."""
        found = [row.game for row in rated_store.read_open(self.ctx.table, self.pool.id, self.view).values()]
        found.sort(key=lambda game: (-game.started_at, game.club, game.game_id))
        lines = []
        for game in found[:most]:
            sids = self.pool.system.mentioned(game.content)
            self.know(sids)
            people = {sid: self.person(sid) for sid in sids}
            lines.append(views.GameLine(game.started_at, game.club, game.game_id, game.content, people, "open"))
        return tuple(lines)

    def label_games(self, label: str, most: int) -> tuple[views.GameLine, ...]:
        """The rated games of a group (newest first) or tournament (in their order), at most so many; of a year too."""
        if not most:
            return ()
        kind, name, year = f"{label}:".split(":")[:3]
        label, forward = f"{kind}:{name}", kind == "tournament"

        def belongs(row: Rated) -> bool:
            if row.game is None or name != (row.game.tournament if forward else row.game.group):
                return False
            return not year or calendar.day_of(row.at, self.pool.time_zone).year == int(year)

        if self._rows_by_game is not None:
            rows = [r for r in self.all_rows if r.kind == FINISH and belongs(r)]
            return tuple(self.game_line(row) for row in (rows[:most] if forward else rows[: -most - 1 : -1]))
        found: list[views.GameLine] = []
        pointers = [item["sk"] for item in self.ctx.table.query(keys.label(self.pool.id, label), forward=forward)]
        for start in range(0, len(pointers), CHUNK):
            if len(found) >= most:
                break
            wanted = [rated_store.rated_key(self.pool.id, o, instant_of(o)) for o in pointers[start : start + CHUNK]]
            items = self.ctx.table.batch_get(wanted)
            # A pointer may outlive its row, or the row belong elsewhere by now.
            texts = [self.view.pick(items.get(key)) for key in wanted]
            for row in [rated_store.load_rated(text) for text in texts if text is not None]:
                if belongs(row):
                    found.append(self.game_line(row))
        return tuple(found[:most])

    def game_line(self, row: Rated) -> views.GameLine:
        """A game in a list of games."""
        game = rated_game(self.pool.system, row)
        assert game is not None  # noqa: S101 - only rows of games come here
        sids = self.pool.system.mentioned(game.content)
        self.know(sids)
        shown_as = {s: self.person(s) for s in sids}
        return views.GameLine(row.at, game.club, game.game_id, game.content, shown_as, round=game.round)

    # -- the pool ------------------------------------------------------------------------------------------------
    def notes(self, limit: int = 500) -> list[views.ChangeNote]:
        """Corrections and voids, newest first."""
        found = list(note_store.read_notes(self.ctx.table, self.pool.id, limit))
        self.know({p for note in found for p in note.players})
        return [
            views.ChangeNote(
                at=n.at,
                kind=n.what,
                reason=n.reason,
                club=n.club or None,
                game_id=n.game_id or None,
                revision=n.revision or None,
                people=tuple(self.person(p) for p in n.players),
            )
            for n in found
        ]

    def statistics(self, rows: Iterable[Rated], ratings: Sequence[int]) -> views.StatisticsPage:
        """The pool in numbers, from all its rows."""
        months: dict[str, tuple[int, set[str]]] = {}
        scores: list[tuple[float, float]] = []
        favourites = {1: 0, 0: 0, -1: 0}
        for row in rows:
            if row.kind != FINISH:
                continue
            month = calendar.month_of(row.at, self.pool.time_zone)
            games, players = months.setdefault(month, (0, set()))
            players.update(sid for sid, *_ in row.after)
            months[month] = (games + 1, players)
            for change in self.changes(row)[:1]:
                forecast = forecast_of(change["explanation"])
                if forecast is not None:
                    scores.append(forecast)
                elif (favourite := self._favourite(row)) is not None:
                    favourites[favourite] += 1
        activity = tuple(
            (m, months[m][0], len(months[m][1])) if m in months else (m, 0, 0) for m in _every_month(months)
        )
        return views.StatisticsPage(tuple(ratings), activity, scores, (favourites[1], favourites[0], favourites[-1]))

    def _favourite(self, row: Rated) -> int | None:
        """How a game of two ended for the one rated higher at its start; None without such a one."""
        game = rated_game(self.pool.system, row)
        players = self.pool.system.players(game.content) if game is not None else []
        if len(players) != 2 or row.start[0][0] == row.start[1][0]:
            return None
        higher = players[0] if row.start[0][0] > row.start[1][0] else players[1]
        score = next((score for sid, _, _, score, _ in row.after if sid == higher), None)
        return None if score is None else (score > 0) - (score < 0)


def forecast_of(explanation: Mapping[str, Any]) -> tuple[float, float] | None:
    """Expected and actual score of one player in one game, both 0 to 1, where the rule system foretells one."""
    if "e" in explanation and "s" in explanation:
        return (float(explanation["e"]), float(explanation["s"]))
    if "expected" in explanation and "score" in explanation and explanation.get("opponents"):
        against = len(explanation["opponents"])
        return (float(explanation["expected"]) / against, float(explanation["score"]) / against)
    return None


_SCORES = {"win": 1, "draw": 0, "loss": -1}


def _met(
    explanation: Mapping[str, Any], others: Sequence[str], whole: tuple[int, int, int]
) -> list[tuple[str, int | None, int, int]]:
    """(opponent, score, change of rating, of index) of a game; a score of None is no meeting of its own (a ruin).

    Where a game is told opponent by opponent, each has his own; else all have the whole.
    """
    if "lines" not in explanation:
        return [(other, *whole) for other in others]
    return [
        (line["opponent"], _SCORES.get(line["result"]), line["applied_rank"], line["applied_index"])
        for line in explanation["lines"]
        if line["opponent"] is not None
    ]


def _around(content: Mapping[str, Any], sid: str) -> tuple[list[str], list[str]]:
    """A player's partners and opponents in a game."""
    own: list[str] = []
    others: list[str] = []
    for side in sides(content):
        if sid in side:
            own += [p for p in side if p != sid]
        else:
            others += side
    return own, others


def _every_month(months: Iterable[str]) -> Iterator[str]:
    """From the first to the last of these months, those between included."""
    if found := sorted(months):
        month = found[0]
        while month <= found[-1]:
            yield month
            month = "{:04d}-{:02d}".format(*calendar.next_month(int(month[:4]), int(month[5:])))


def _streaks(rows: Sequence[Rated], sid: str) -> views.Streaks:
    current = won = lost = unbeaten = run_won = run_lost = run_unbeaten = 0
    for row in rows:
        score = next(a[3] for a in row.after if a[0] == sid)
        if score is None:
            continue
        run_won = run_won + 1 if score > 0 else 0
        run_lost = run_lost + 1 if score < 0 else 0
        run_unbeaten = run_unbeaten + 1 if score >= 0 else 0
        won, lost, unbeaten = max(won, run_won), max(lost, run_lost), max(unbeaten, run_unbeaten)
        current = run_won if score > 0 else -run_lost
    return views.Streaks(current, won, lost, unbeaten)


def _thinned(series: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    if len(series) <= SERIES:
        return tuple(series)
    step = len(series) / SERIES
    picked = [series[int(i * step)] for i in range(SERIES)]
    return (*picked, series[-1])
