"""The fold: the ledger in played order, turned into ratings. The same ledger gives the same ratings, to the bit.

A fold owns the states of the players it is given and walks through *ticks* in played order: the start of a game (its
ratings are taken down), its quits, its finish, the closings of the calendar, resets and carried-over starts. What
happened at each tick is yielded as a ``Rated`` record: small, complete enough to explain every change, and the only
thing that is stored.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from shared.ledger import calendar
from shared.ledger.lane import NO_RECORD, Chunk, Lane, label_names
from shared.ledger.order import BEGINNING, CLOSING, RESET, SNAPSHOT, START, after_closing, order, tick_of, to_datetime
from shared.ledger.plain import Part, apart
from shared.ledger.rules import DatedRules, in_force
from shared.ratings.base import (
    FINISH,
    NO_TALLY,
    BulkSystem,
    CannotRate,
    Content,
    Game,
    Moment,
    PlayerState,
    Rating,
    RuleSystem,
    Settings,
    Tally,
)

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
    """A closing has been applied."""

    at: int
    day: dt.date
    moments: int
    """How many moments the fold has applied so far."""
    fold: Fold

    @property
    def states(self) -> Mapping[str, PlayerState]:
        """The fold's own states, to be read before the next step and not kept."""
        return self.fold.states


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
    plain: Sequence[Part] = ()
    """Games told column by column, part after part in played order; none of them is among ``games``. Only for a fold
    from the beginning."""


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
        self._states: dict[str, PlayerState] = {} if states is None else states
        self._lane: Lane | None = None
        self._parts: deque[Part] = deque()
        """Those of the story that are not reached yet."""
        self._apart: deque[Tick] = deque()
        """What is left to tell of the present part's games that go one by one."""
        self._is_plain: dict[bytes, bool] = {}
        self.with_labels = labels
        self.moments = 0
        self._starts: dict[GameRef, dict[str, Rating]] = {}
        self._fresh = system.start(None, rules[0].settings)

    @property
    def states(self) -> dict[str, PlayerState]:
        """The players' states after everything told so far."""
        if self._lane is not None:
            self._lane.flush()
        return self._states

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
        """Tell the story from ``since`` on, every moment by itself.

        Args:
            since: only what lies behind this tick (``closing_boundary`` of a checkpoint); None: everything.
            closings_after: insert the closings later than this instant; None: from the first thing that happened on.
            closed_until: ... and not later than this one; None: no closings.
        """
        told = self.stream(story, since=since, closings_after=closings_after, closed_until=closed_until)
        for what in told:
            if isinstance(what, Chunk):
                yield from self.rows(what)
                self._settle()
            else:
                yield what

    def stream(
        self, story: Story, *, since: Tick | None = None, closings_after: int | None, closed_until: int | None
    ) -> Iterator[Rated | Closed | Held | Opened | Chunk]:
        """The same (see ``run``), with the plain games of the story in chunks: their ratings as columns of numbers."""
        if story.plain and since is not None:
            raise ValueError("plain games are told from the beginning only")
        ticks, held = self.ticks(story, since)
        yield from held
        if story.plain and isinstance(self.system, BulkSystem):
            self._lane = Lane(
                self.system, self.rules, self.time_zone, self._states, self._fresh, labels=self.with_labels
            )
        self._parts, self._apart = deque(story.plain), deque()
        first = next((tick[:1] for tick in ticks if tick[0] > BEGINNING), None)
        while self._is_next_due(first) and self._first_of_part() is None:
            yield from self._open_part(story)
        closings = self._closings(ticks, story, closings_after, closed_until)
        due, queue = next(closings, None), deque(ticks)
        while True:
            source = queue
            if self._apart and (not queue or self._apart[0][:7] < queue[0][:7]):
                source = self._apart
            tick: Tick | None = source[0] if source else None
            closes = due is not None and (tick is None or (due[0], CLOSING) <= tick[:2])
            limit = (due[0], CLOSING) if due is not None and closes else tick
            yield from self._plain_until(limit)
            if self._is_next_due(limit):
                yield from self._open_part(story)
            elif due is not None and closes:
                yield from self._close(*due)
                due = next(closings, None)
            elif tick is not None:
                source.popleft()
                yield from self._tell(tick)
            else:
                return

    def _tell(self, tick: Tick) -> Iterator[Rated | Held | Opened]:
        self._settle()
        subject = tick[8]
        if isinstance(subject, Start):
            yield self._start(subject, dormant=tick[7])
        elif isinstance(subject, Reset):
            yield self._reset(subject, tick[7])
        elif tick[1] == SNAPSHOT:
            game, _, players, told, _ = subject
            ref = (game.club, game.game_id)
            if ref not in self._starts:  # else somebody quit at the very start: rated by what stood before that
                self._take_down(game, players)
            if game.finished_at is None:
                start = self._starts[ref]
                yield Opened(told, [start[p] for p in players], order(*tick[:7]))
        else:
            try:
                yield self._moment(tick)
            except CannotRate as error:
                yield Held(subject[3], error.reason)

    # -- plain games ---------------------------------------------------------------------------------------------
    def _is_next_due(self, limit: Tick | None) -> bool:
        """Whether games of the next part can stand before a tick (None: the end of all)."""
        return bool(self._parts) and (limit is None or self._parts[0].begins <= limit[0])

    def _open_part(self, story: Story) -> Iterator[Held]:
        """Go on to the next part: its games that can be rated in bulk, and those that are looked at one by one."""
        if self._lane is not None:
            self._lane.close()
        plain = self._parts.popleft().load()
        fast, others = apart(plain, self.system, self._is_rated_in_bulk, story.aliases, self.rules[0].since)
        if self._lane is not None:
            self._lane.open(fast)
        ticks, held = self.ticks(Story(others, aliases=story.aliases), None)
        self._apart.extend(ticks)
        yield from held

    def _is_rated_in_bulk(self, kind: Content) -> bool:
        key = msgspec.json.encode(kind)
        if key not in self._is_plain:
            bulk = self.system if isinstance(self.system, BulkSystem) else None
            self._is_plain[key] = bulk is not None and all(bulk.plain(kind, r.settings) is not None for r in self.rules)
        return self._is_plain[key]

    def _first_of_part(self) -> int | None:
        """When the first game of the present part that is not told yet was played."""
        times = [tick[0] for tick in self._apart][:1]
        lane = self._lane
        if lane is not None and lane.plain is not None and lane.next < len(lane.plain):
            times.append(lane.plain.at[lane.next])
        return min(times, default=None)

    def _plain_until(self, tick: Tick | None) -> Iterator[Chunk]:
        if self._lane is None:
            return
        for chunk in self._lane.until(tick):
            self.moments += len(chunk)
            yield chunk
            self._lane.settle_where_many_wait()

    def _settle(self) -> None:
        if self._lane is not None:
            self._lane.settle()

    def rows(self, chunk: Chunk) -> Iterator[Rated]:
        """The moments of a chunk one by one; to be read before the next step."""
        lane = self._lane
        if lane is None:
            return
        lane.settle_before(chunk)
        plain, since = chunk.plain, self.rules[chunk.rules].since
        games: dict[str, int] = {}
        for number in range(chunk.first, chunk.last):
            start, end = chunk.ratings(number)
            score = lane.result(chunk, number).score
            before: list[Before] = []
            after: list[After] = []
            for seat, player in enumerate(plain.players(number)):
                state = self._states.get(player, self._fresh)
                played = games.get(player, state.games)
                games[player] = played + 1
                before.append((*start[seat], played, state.counters))
                after.append((player, *end[seat], score if seat < plain.width / 2 else -score, True))
            yield Rated(
                order(*plain.tick(number)),
                FINISH,
                plain.at[number],
                after,
                plain.game(self.system, number),
                0,
                since,
                start,
                before,
            )

    def _closings(
        self, ticks: Sequence[Tick], story: Story, after: int | None, until: int | None
    ) -> Iterator[tuple[int, dt.date]]:
        if until is None:
            return iter(())
        if after is None:
            times = [tick[0] for tick in ticks if tick[0] > BEGINNING][:1]
            first = self._first_of_part()
            times += [] if first is None else [first]
            times += [
                calendar.first_instant(dt.date.fromordinal(s.state.last_result), self.time_zone)
                for s in story.starts
                if s.state.last_result
            ]
            if not times:
                return iter(())
            after = min(times) - 1
        return calendar.closings(after, until, self.time_zone)

    def _take_down(self, game: Game, players: Sequence[str]) -> None:
        fresh, states = self._fresh, self._states
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
        states = self._states
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
        names = label_names(game.club, game.group, game.tournament, day.year) if day is not None else []
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
                self._note_labels(state, names, o.score, tally.get(o.player, NO_TALLY), gained)
            after.append((o.player, o.rating, o.index, o.score, o.is_result))
        self._changed(o.player for o in outcomes)
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
        self, state: PlayerState, names: Sequence[str], score: int | None, tally: Tally, gained: int
    ) -> None:
        played = 0 if score is None else 1
        won = 1 if score is not None and score > 0 else 0
        lost = 1 if score is not None and score < 0 else 0
        drawn = played - won - lost
        own, other, beside = tally
        labels = dict(state.labels)
        for name in names:
            g, w, d, lo, f, a, ga, be = labels.get(name, NO_RECORD)
            labels[name] = (g + played, w + won, d + drawn, lo + lost, f + own, a + other, ga + gained, be + beside)
        state.labels = labels

    def _start(self, start: Start, *, dormant: bool) -> Rated:
        fresh = self._fresh
        state = msgspec.structs.replace(start.state)
        self.moments += 1
        key = order(BEGINNING, START, game_id=start.player)
        if dormant:
            return Rated(key, START, start.accepted_at, [], carried=state)
        self._states[start.player] = state
        self._changed([start.player])
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
        state = self._states.get(person)
        self.moments += 1
        if state is None:
            return Rated(key, RESET, reset.at, [])
        before: Before = (state.rating, state.index, state.games, state.counters)
        state.rating, state.index = self._fresh.rating, self._fresh.index
        self._changed([person])
        return Rated(key, RESET, reset.at, [(person, state.rating, state.index, None, False)], before=[before])

    def _close(self, at: int, day: dt.date) -> Iterator[Rated | Closed]:
        if self.system.has_closings:
            self._settle()
            closing = day.toordinal()
            for player in sorted(self._states):
                if (row := self.close_one(player, at, closing)) is not None:
                    yield row
        yield Closed(at, day, self.moments, self)

    def _changed(self, players: Iterable[str]) -> None:
        """States of the fold's own making: the lane must look at them again."""
        if self._lane is not None:
            for player in players:
                self._lane.forget(player)

    def close_one(self, player: str, at: int, closing: int) -> Rated | None:
        """Apply a closing to one player; the row of it when it changed his rating."""
        state = self._states[player]
        rating = self.system.close(state, closing)
        if rating is None or rating == (state.rating, state.index):
            return None
        before: Before = (state.rating, state.index, state.games, {})
        state.rating, state.index = rating
        self._changed([player])
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
