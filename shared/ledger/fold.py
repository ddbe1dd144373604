"""The fold: the ledger in played order, turned into ratings. The same ledger gives the same ratings, to the bit.

A fold owns the states of the players it is given and walks through *ticks* in played order: the start of a game (its
ratings are taken down), its quits, its finish, the closings of the calendar, resets and carried-over starts. What
happened at each tick is yielded as a ``Rated`` record: small, complete enough to explain every change, and the only
thing that is stored.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from shared.ledger import calendar
from shared.ledger.order import BEGINNING, CLOSING, RESET, SNAPSHOT, START, after_closing, order, tick_of, to_datetime
from shared.ledger.rules import DatedRules, in_force
from shared.ratings.base import FINISH, CannotRate, Game, Moment, PlayerState, Rating, RuleSystem, Settings

GameRef = tuple[str, str]
"""(club, game id)."""
Tick = tuple[Any, ...]
"""(instant, kind, round, sequence, club, game id, number, what, subject): compares in played order."""

Before = tuple[int, int, int, dict[str, int]]
"""Rating, index, rated games and counters of a player just before a moment."""
After = tuple[str, int, int, int | None, bool]
"""Player, rating, index, score (None: record unchanged), counts as a result."""


class Rated(msgspec.Struct, array_like=True, gc=False):
    """What one moment changed: the stored row."""

    order: str
    kind: int
    at: int
    after: list[After]
    game: Game | None = None
    number: int = 0
    rules: int = 0
    """Since when the rules that rated it are in force (instant)."""
    start: list[Rating] = []
    """Ratings at the start of the game, in seat order."""
    before: list[Before] = []
    """State just before, in seat order (of ``after`` where there is no game)."""
    last_result: int = 0
    """A closing: the day (ordinal) of the player's last result."""
    closing: int = 0
    """A closing: its day (ordinal)."""
    alias: dict[str, str] = {}
    """Merged players of this game: id in ``game`` → the survivor who was rated."""
    carried: PlayerState | None = None
    """A start: the carried-over state, kept also while its player is merged into another (then nothing changes)."""


@dataclass(frozen=True)
class Closed:
    """A closing has been applied; ``states`` are the fold's own, to be read before the next step and not kept."""

    at: int
    day: dt.date
    states: Mapping[str, PlayerState]
    moments: int
    """How many moments the fold has applied so far."""


@dataclass(frozen=True)
class Held:
    """A game that cannot be rated, and why."""

    game: Game
    reason: str


@dataclass(frozen=True)
class Opened:
    """An open game: its start ratings are taken down."""

    game: Game
    start: list[Rating]
    order: str


class Reset(NamedTuple):
    """``rank_me`` switched off: back to the start rating."""

    at: int
    player: str


@dataclass(frozen=True)
class Start:
    """A carried-over rating: before everything else of that player."""

    player: str
    state: PlayerState
    accepted_at: int


@dataclass
class Story:
    """All that a fold tells: the newest revision of every game, and what else happened."""

    games: Iterable[Game] = ()
    starts: Sequence[Start] = ()
    resets: Sequence[Reset] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Merged players: id merged away → survivor, followed through."""
    known_starts: Mapping[GameRef, Sequence[Rating]] = field(default_factory=dict)
    """Start ratings of games that began before the fold does."""


def closing_boundary(at: int) -> Tick:
    """Sorts behind the closing of that instant and before everything else at it."""
    return tick_of(after_closing(at))


class Fold:
    """One run over a pool's events.

    Args:
        system: the pool's rule system.
        rules: ascending by date.
        time_zone: IANA name; months, days and years are its.
        states: the players' states to begin with (of a checkpoint, or of the players concerned); changed in place.
        labels: keep the records per club, group, tournament and year.
    """

    def __init__(
        self,
        system: RuleSystem,
        rules: Sequence[DatedRules],
        time_zone: str,
        states: dict[str, PlayerState] | None = None,
        *,
        labels: bool = True,
    ) -> None:
        self.system = system
        self.rules = rules
        self.time_zone = time_zone
        self.states: dict[str, PlayerState] = {} if states is None else states
        self.with_labels = labels
        self.moments = 0
        self._starts: dict[GameRef, dict[str, Rating]] = {}
        self._fresh = system.start(None, rules[0].settings)
        self._years: dict[int, int] = {}

    # -- ticks ---------------------------------------------------------------------------------------------------
    def _game_ticks(self, told: Game, since: Tick | None, story: Story) -> Iterator[Tick]:
        game, alias = told, {}
        if story.aliases:
            mentioned = self.system.mentioned(told.content)
            alias = {p: story.aliases[p] for p in mentioned if p in story.aliases}
        if alias:
            content = self.system.translate(told.content, lambda p: alias.get(p, p))
            game = msgspec.structs.replace(told, content=content)
        number = in_force(self.rules, game.started_at)
        if number is None:
            raise CannotRate("before the pool's first rules")
        settings = self.rules[number].settings
        players = self.system.players(game.content)
        if len(set(players)) != len(players):
            raise CannotRate("the same person sits twice at the table")
        subject = (game, number, players, told, alias)
        head = (game.round or 0, game.sequence, game.club, game.game_id)
        moments = self.system.moments(game, settings)
        if game.finished_at == game.started_at:
            # Without a duration everything happens at the game's own place in the order, its quits just before it.
            ticks = [(m.at, FINISH, *head, i, m, subject) for i, m in enumerate(moments)]
            if since is None or ticks[-1][:7] > since:
                yield from ticks
            return
        snapshot = (game.started_at, SNAPSHOT, 0, 0, game.club, game.game_id, 0, None, subject)
        later = [(m.at, m.kind, *head, m.number, m, subject) for m in moments]
        if since is not None and snapshot[:7] <= since:
            later = [t for t in later if t[:7] > since]
            if not later and game.finished_at is not None:
                return
            ref = (game.club, game.game_id)
            self._starts[ref] = {p: (r[0], r[1]) for p, r in zip(players, story.known_starts[ref], strict=True)}
        else:
            yield snapshot
        yield from later

    def ticks(self, story: Story, since: Tick | None) -> tuple[list[Tick], list[Held]]:
        """All ticks behind ``since`` in played order, and the games that cannot be rated."""
        found: list[Tick] = []
        held: list[Held] = []
        for game in story.games:
            if game.void or not game.rated:
                continue
            try:
                found.extend(self._game_ticks(game, since, story))
            except CannotRate as error:
                held.append(Held(game, error.reason))
        for start in story.starts:
            found.append((BEGINNING, START, 0, 0, "", start.player, 0, start.player in story.aliases, start))
        for reset in story.resets:
            person = story.aliases.get(reset.player, reset.player)
            tick = (reset.at, RESET, 0, 0, "", reset.player, 0, person, reset)
            if since is None or tick[:7] > since:
                found.append(tick)
        found.sort(key=lambda t: t[:7])
        return found, held

    # -- the run -------------------------------------------------------------------------------------------------
    def run(
        self, story: Story, *, since: Tick | None = None, closings_after: int | None, closed_until: int | None
    ) -> Iterator[Rated | Closed | Held | Opened]:
        """Tell the story from ``since`` on.

        Args:
            since: only what lies behind this tick (``closing_boundary`` of a checkpoint); None: everything.
            closings_after: insert the closings later than this instant; None: from the first thing that happened on.
            closed_until: ... and not later than this one; None: no closings.
        """
        ticks, held = self.ticks(story, since)
        yield from held
        closings = self._closings(ticks, story.starts, closings_after, closed_until)
        due = next(closings, None)
        for tick in ticks:
            while due is not None and (due[0], CLOSING) <= tick[:2]:
                yield from self._close(*due)
                due = next(closings, None)
            subject = tick[8]
            if isinstance(subject, tuple) and not isinstance(subject, Reset):
                game, _, players, told, _ = subject
                if tick[1] == SNAPSHOT:
                    self._take_down(game, players)
                    if game.finished_at is None:
                        start = self._starts[(game.club, game.game_id)]
                        yield Opened(told, [start[p] for p in players], order(*tick[:7]))
                    continue
                try:
                    yield self._moment(tick)
                except CannotRate as error:
                    yield Held(told, error.reason)
            elif isinstance(subject, Start):
                yield self._start(subject, dormant=tick[7])
            else:
                yield self._reset(subject, tick[7])
        while due is not None:
            yield from self._close(*due)
            due = next(closings, None)

    def _closings(
        self, ticks: Sequence[Tick], starts: Sequence[Start], after: int | None, until: int | None
    ) -> Iterator[tuple[int, dt.date]]:
        if until is None:
            return iter(())
        if after is None:
            times = [tick[0] for tick in ticks if tick[0] > BEGINNING][:1]
            times += [
                calendar.first_instant(dt.date.fromordinal(s.state.last_result), self.time_zone)
                for s in starts
                if s.state.last_result
            ]
            if not times:
                return iter(())
            after = min(times) - 1
        return calendar.closings(after, until, self.time_zone)

    def _take_down(self, game: Game, players: Sequence[str]) -> None:
        fresh, states = self._fresh, self.states
        taken: dict[str, Rating] = {}
        for player in players:
            state = states.get(player, fresh)
            taken[player] = (state.rating, state.index)
        self._starts[(game.club, game.game_id)] = taken

    def _new_state(self) -> PlayerState:
        return PlayerState(self._fresh.rating, self._fresh.index)

    def _moment(self, tick: Tick) -> Rated:
        moment: Moment = tick[7]
        game: Game = tick[8][0]
        number, players, told, alias = tick[8][1:]
        rules = self.rules[number]
        states = self.states
        ref = (game.club, game.game_id)
        start = self._starts.get(ref)
        if start is None:
            self._take_down(game, players)
            start = self._starts[ref]
        now = {p: states.get(p) or self._new_state() for p in players}
        before: list[Before] = [(s.rating, s.index, s.games, s.counters) for s in now.values()]
        outcomes = self.system.rate(game, moment, start, now, rules.settings)
        finish = moment.kind == FINISH
        if finish:
            self._starts.pop(ref, None)
        states.update((o.player, now[o.player]) for o in outcomes)
        tally = self.system.tally(game) if finish and self.with_labels else {}
        day = calendar.day_of(moment.at, self.time_zone) if outcomes else None
        after: list[After] = []
        for o in outcomes:
            state = now[o.player]
            gained = o.rating - state.rating
            state.rating, state.index = o.rating, o.index
            if o.score is not None:
                state.games += 1
                if o.score > 0:
                    state.won += 1
                elif o.score < 0:
                    state.lost += 1
                else:
                    state.drawn += 1
                state.last_played = moment.at
            if o.is_result and day is not None:
                state.last_result = max(state.last_result, day.toordinal())
            if o.counters:
                merged = dict(state.counters)
                for name, by in o.counters.items():
                    merged[name] = merged.get(name, 0) + by
                state.counters = merged
            self._note_best(state, moment.at)
            if self.with_labels and day is not None:
                self._note_labels(state, game, day.year, o.score, tally.get(o.player, (0, 0)), gained)
            after.append((o.player, o.rating, o.index, o.score, o.is_result))
        self.moments += 1
        return Rated(
            order(*tick[:7]),
            moment.kind,
            moment.at,
            after,
            told,
            moment.number,
            rules.since,
            [start[p] for p in players],
            before,
            alias=alias,
        )

    def _note_best(self, state: PlayerState, at: int) -> None:
        best = state.best
        if best is None or state.rating > best[0] or (state.rating == best[0] and state.index < best[1]):
            state.best = (state.rating, state.index, at)

    def _note_labels(
        self, state: PlayerState, game: Game, year: int, score: int | None, tally: tuple[int, int], gained: int
    ) -> None:
        names = [f"year:{year}", f"club:{game.club}", f"club:{game.club}:{year}"]
        if game.group:
            names += [f"group:{game.group}", f"group:{game.group}:{year}"]
        if game.tournament:
            names.append(f"tournament:{game.tournament}")
        played = 0 if score is None else 1
        won = 1 if score is not None and score > 0 else 0
        lost = 1 if score is not None and score < 0 else 0
        labels = dict(state.labels)
        for name in names:
            g, w, d, lo, f, a, ga = labels.get(name, (0, 0, 0, 0, 0, 0, 0))
            labels[name] = (
                g + played,
                w + won,
                d + played - won - lost,
                lo + lost,
                f + tally[0],
                a + tally[1],
                ga + gained,
            )
        state.labels = labels

    def _start(self, start: Start, *, dormant: bool) -> Rated:
        fresh = self._fresh
        state = msgspec.structs.replace(start.state)
        self.moments += 1
        key = order(BEGINNING, START, game_id=start.player)
        if dormant:
            return Rated(key, START, start.accepted_at, [], carried=state)
        self.states[start.player] = state
        return Rated(
            key,
            START,
            start.accepted_at,
            [(start.player, state.rating, state.index, None, False)],
            before=[(fresh.rating, fresh.index, state.games, {})],
            carried=msgspec.structs.replace(state),
        )

    def _reset(self, reset: Reset, person: str) -> Rated:
        key = order(reset.at, RESET, game_id=reset.player)
        state = self.states.get(person)
        self.moments += 1
        if state is None:
            return Rated(key, RESET, reset.at, [])
        before: Before = (state.rating, state.index, state.games, state.counters)
        state.rating, state.index = self._fresh.rating, self._fresh.index
        return Rated(key, RESET, reset.at, [(person, state.rating, state.index, None, False)], before=[before])

    def _close(self, at: int, day: dt.date) -> Iterator[Rated | Closed]:
        if self.system.has_closings:
            closing = day.toordinal()
            for player in sorted(self.states):
                if (row := self.close_one(player, at, closing)) is not None:
                    yield row
        yield Closed(at, day, self.states, self.moments)

    def close_one(self, player: str, at: int, closing: int) -> Rated | None:
        """Apply a closing to one player; the row of it when it changed his rating."""
        state = self.states[player]
        rating = self.system.close(state, closing)
        if rating is None or rating == (state.rating, state.index):
            return None
        before: Before = (state.rating, state.index, state.games, {})
        state.rating, state.index = rating
        self.moments += 1
        return Rated(
            order(at, CLOSING, game_id=player),
            CLOSING,
            at,
            [(player, *rating, None, False)],
            before=[before],
            last_result=state.last_result,
            closing=closing,
        )


def settings_since(rules: Sequence[DatedRules], since: int) -> Settings:
    """The settings that came into force at that instant (of the newest rules, when they were changed since)."""
    for entry in rules:
        if entry.since == since:
            return entry.settings
    number = in_force(rules, since)
    return rules[number or 0].settings


def utc_day(at: int) -> dt.date:
    """The UTC day of an instant."""
    return to_datetime(at).date()
