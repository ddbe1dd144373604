"""The fast lane of the fold: plain games rated column by column, with the same results to the bit.

Rating itself goes game by game in played order, on two flat lists of numbers. All the rest of a player's state (his
record, last days, best rating, records per label) depends only on what happened in which game, not on the next one's
rating, so it is *settled* for many games at once, when somebody reads the states or another kind of event comes.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any

from shared.ledger import calendar
from shared.ledger.rules import DatedRules
from shared.ratings.base import BulkSystem, PlainBatch, PlainResult, PlayerState

if TYPE_CHECKING:
    from shared.ledger.plain import Plain

MOST_AT_ONCE = 65_536
"""Games rated, and settled, at a time: what they need besides the history is given back after each."""
_BITS = 17
_UNIT_WON, _UNIT_LOST = 1 << _BITS, 1 << 2 * _BITS
"""One won and one lost game in a number that also counts the games in its lowest bits; all of it below 2^53."""
_MOST_COUNTED = 1 << _BITS
_LABELS = 1 << 24
"""More than there are labels (club, group, tournament, year) in a pool."""
_NEVER = -(2**62)


class Chunk:
    """Plain games that were rated one after another, and every seat's rating before and after each.

    ``history`` holds, per game: rating (and index, in a system whose games change it) of every seat before it, then
    after it; whole numbers.
    """

    __slots__ = ("first", "history", "last", "rules", "stride")

    def __init__(self, first: int, last: int, rules: int, stride: int) -> None:
        self.first = first
        self.last = last
        """Numbers of the games in ``Story.plain``: from ``first`` up to, not including, ``last``."""
        self.rules = rules
        self.stride = stride
        self.history = array("d")


class Lane:
    """Rates the plain games of a story; ``states`` are the fold's own."""

    def __init__(
        self,
        system: BulkSystem,
        rules: Sequence[DatedRules],
        time_zone: str,
        states: dict[str, PlayerState],
        fresh: PlayerState,
        plain: Plain,
        *,
        labels: bool,
    ) -> None:
        self.system = system
        self.rules = rules
        self.time_zone = time_zone
        self.states = states
        self.fresh = fresh
        self.plain = plain
        self.with_labels = labels
        self.next = 0
        """The first game not yet rated."""
        size = len(plain.ids)
        self._ratings: list[Any] = [0] * size
        self._indexes = [0] * size
        self._games = [0] * size
        self._record = [0] * size
        """Games, won and lost since the states were settled."""
        self._last = [_NEVER] * size
        self._limit = [float(_NEVER)] * size
        """No rating below this one is a new best."""
        self._known = bytearray(size)
        """1: the lists above hold what this player's state will be once settled."""
        self._numbers = {sid: number for number, sid in enumerate(plain.ids)}
        self._pending: list[Chunk] = []
        self._results: dict[int, list[PlainResult | None]] = {}
        self._records: defaultdict[int, complex] = defaultdict(complex)
        """Player and label → gained, and as imaginary part the record: not yet in the states. Two whole numbers below
        2^53 in one object: half the time of two."""
        self._scored: defaultdict[int, complex] = defaultdict(complex)
        """... for, and as imaginary part against."""
        self._counted = 0
        """Games in these records."""
        self._label_ids: dict[tuple[int, int], int] = {}
        self._label_names: list[list[str]] = []

    # -- rating --------------------------------------------------------------------------------------------------
    def until(self, tick: Sequence[Any] | None) -> Iterator[Chunk]:
        """Rate the games that stand before a tick (None: all that are left)."""
        plain = self.plain
        end = len(plain) if tick is None else plain.before(tick, self.next)
        while self.next < end:
            first = self.next
            number = max(n for n, r in enumerate(self.rules) if r.since <= plain.at[first])
            last = min(end, first + MOST_AT_ONCE)
            if number + 1 < len(self.rules):
                last = min(last, bisect_left(plain.at, self.rules[number + 1].since, first))
            yield self._rate(first, last, number)

    def _rate(self, first: int, last: int, number: int) -> Chunk:
        plain, system = self.plain, self.system
        if number not in self._results:
            # Other rules may count games where these did not: begin again from the states.
            self.settle()
            self._known = bytearray(len(plain.ids))
            settings = self.rules[number].settings
            self._results[number] = [system.plain(kind, settings) for kind in plain.kinds]
        results = self._results[number]
        seats = [column[first:last] for column in plain.seats]
        for player in set().union(*seats):
            if not self._known[player]:
                self._load(player)
        chunk = Chunk(first, last, number, 2 * plain.width * (2 if system.plain_indexes else 1))
        history: list[float] = []
        numbers = (self._ratings, self._indexes, self._games)
        system.rate_plain(
            PlainBatch(results, plain.kind[first:last], seats, *numbers, history), self.rules[number].settings
        )
        # A list takes numbers in less than half the time that an array does; an array needs a fraction of the room.
        chunk.history = array("d", history)
        self._pending.append(chunk)
        self.next = last
        return chunk

    def _load(self, player: int) -> None:
        state = self.states.get(self.plain.ids[player], self.fresh)
        self._ratings[player] = self.system.plain_number(state.rating)
        self._indexes[player] = state.index
        self._games[player] = state.games
        if state.best is not None:
            self._limit[player] = float(state.best[0])
        self._known[player] = 1

    def forget(self, sid: str) -> None:
        """A player's (settled) state is changed by somebody else: look at it again."""
        number = self._numbers.get(sid)
        if number is not None:
            self._known[number] = 0

    # -- settling ------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Bring the states up to the last game rated, but for the records per label."""
        for chunk in self._pending:
            self._settle(chunk)
            self._counted += chunk.last - chunk.first
            if self._counted + MOST_AT_ONCE >= _MOST_COUNTED:
                self._tell_labels()
        self._pending.clear()

    def settle_before(self, chunk: Chunk) -> None:
        """Settle all but a chunk that was just rated."""
        if self._pending[-1:] != [chunk]:
            raise ValueError("a chunk is read before the next step")
        for earlier in self._pending[:-1]:
            self._settle(earlier)
        del self._pending[:-1]

    def result(self, chunk: Chunk, number: int) -> PlainResult:
        """What a game was rated by."""
        result = self._results[chunk.rules][self.plain.kind[number]]
        assert result is not None  # noqa: S101 - ``apart`` took the others out
        return result

    @property
    def unsettled(self) -> int:
        """Games rated that are not in the states yet."""
        return sum(chunk.last - chunk.first for chunk in self._pending)

    def _settle(self, chunk: Chunk) -> None:
        plain, first, last, width = self.plain, chunk.first, chunk.last, self.plain.width
        results = self._results[chunk.rules]
        at, kinds = plain.at[first:last], plain.kind[first:last]
        days = self._days(at)
        scores = [0 if r is None else r.score for r in results]
        units = [[1 + _unit(score) for score in scores], [1 + _unit(-score) for score in scores]]
        counted = [list(map(side.__getitem__, kinds)) for side in units]
        labels = self._labels(chunk, days) if self.with_labels else None
        bests: dict[int, tuple[float, float, int]] = {}
        touched: set[int] = set()
        for seat in range(0, width, 2):
            pair = [
                (number, plain.seats[number][first:last], counted[2 * number // width]) for number in (seat, seat + 1)
            ]
            for _, players, _ in pair:
                touched.update(players)
            self._count(chunk, pair[0], pair[1], at, bests)
            if labels is not None:
                for number, players, _ in pair:
                    self._label(chunk, number, players, kinds, labels, units[2 * number // width])
        self._write(chunk, touched, at, days, bests)

    def _count(
        self,
        chunk: Chunk,
        one: tuple[int, Sequence[int], Sequence[int]],
        two: tuple[int, Sequence[int], Sequence[int]],
        at: Sequence[int],
        bests: dict[int, tuple[float, float, int]],
    ) -> None:
        """Two seats' games (seat, players, what a game counts): record, last instant, best rating of each player."""
        record, last, limit, history, stride = self._record, self._last, self._limit, chunk.history, chunk.stride
        step = 2 if self.system.plain_indexes else 1
        places = [(self.plain.width + seat) * step for seat in (one[0], two[0])]
        high: list[tuple[int, int, int]] = []
        columns = (one[1], one[2], history[places[0] :: stride], two[1], two[2], history[places[1] :: stride], at)
        number = -stride
        for player, unit, rating, other, other_unit, other_rating, instant in zip(*columns, strict=True):
            number += stride
            record[player] += unit
            record[other] += other_unit
            if instant > last[player]:
                last[player] = instant
            if instant > last[other]:
                last[other] = instant
            if rating >= limit[player]:
                limit[player] = rating
                high.append((player, number + places[0], instant))
            if other_rating >= limit[other]:
                limit[other] = other_rating
                high.append((other, number + places[1], instant))
        # Few are left to look at closely: as high as the highest so far of these seats, or of the state.
        for player, place, instant in high:
            rating, index = history[place], history[place + 1] if step == 2 else 0.0
            known = bests.get(player)
            if known is None or (-rating, index, instant) < (-known[0], known[1], known[2]):
                bests[player] = (rating, index, instant)

    def _write(
        self,
        chunk: Chunk,
        touched: set[int],
        at: Sequence[int],
        days: Sequence[int],
        bests: dict[int, tuple[float, float, int]],
    ) -> None:
        """What was counted goes into the states."""
        states, ids, ratings, indexes = self.states, self.plain.ids, self._ratings, self._indexes
        records, lasts, fresh, with_indexes = self._record, self._last, self.fresh, self.system.plain_indexes
        latest = None if list(days) == sorted(days) else self._latest_days(chunk, days)
        for player in touched:
            sid = ids[player]
            state = states.get(sid)
            if state is None:
                state = states[sid] = PlayerState(fresh.rating, fresh.index)
            state.rating = int(ratings[player])
            if with_indexes:
                state.index = indexes[player]
            record, instant = records[player], lasts[player]
            games, won, lost = _parts(record)
            records[player], lasts[player] = 0, _NEVER
            state.games += games
            state.won += won
            state.lost += lost
            state.drawn += games - won - lost
            state.last_played = instant
            day = days[bisect_left(at, instant)] if latest is None else latest[player]
            if day > state.last_result:
                state.last_result = day
            found = bests.get(player)
            if found is not None:
                old, rating, index = state.best, int(found[0]), int(found[1]) if with_indexes else state.index
                if old is None or rating > old[0] or (rating == old[0] and index < old[1]):
                    state.best = (rating, index, found[2])

    def _latest_days(self, chunk: Chunk, days: Sequence[int]) -> dict[int, int]:
        """The latest day of each player where days go back for a while."""
        found: dict[int, int] = {}
        for column in self.plain.seats:
            for player, day in zip(column[chunk.first : chunk.last], days, strict=True):
                found[player] = max(found.get(player, 0), day)
        return found

    def _days(self, at: Sequence[int]) -> array[int]:
        """The day (ordinal) of each instant; they ascend."""
        found = array("i")
        zone, number = self.time_zone, 0
        while number < len(at):
            day = calendar.day_of(at[number], zone)
            begin, end = calendar.first_instant(day, zone), calendar.first_instant(day + dt.timedelta(days=1), zone)
            if end - begin == calendar.DAY:
                later = bisect_left(at, end, number)
                found.extend(array("i", [day.toordinal()]) * (later - number))
                number = later
            else:
                # A clock change. It may even bring back the day before (in Newfoundland, at one past midnight).
                found.append(day.toordinal())
                number += 1
        return found

    # -- labels --------------------------------------------------------------------------------------------------
    def _labels(self, chunk: Chunk, days: Sequence[int]) -> Sequence[int]:
        """The number of club, group, tournament and year of each game."""
        labels = self.plain.label[chunk.first : chunk.last]
        first, last = (dt.date.fromordinal(day).year for day in (min(days), max(days)))
        if first == last:
            here = {label: self._label_id(label, first) for label in set(labels)}
            return list(map(here.__getitem__, labels))
        return [self._label_id(label, dt.date.fromordinal(day).year) for label, day in zip(labels, days, strict=True)]

    def _label_id(self, label: int, year: int) -> int:
        number = self._label_ids.get((label, year))
        if number is None:
            number = self._label_ids[(label, year)] = len(self._label_names)
            self._label_names.append(label_names(*self.plain.labels[label], year))
        return number

    def _label(
        self,
        chunk: Chunk,
        seat: int,
        players: Sequence[int],
        kinds: Sequence[int],
        labels: Sequence[int],
        units: Sequence[int],
    ) -> None:
        step = 2 if self.system.plain_indexes else 1
        before = chunk.history[seat * step :: chunk.stride]
        after = chunk.history[(self.plain.width + seat) * step :: chunk.stride]
        keys = list(map(add, map(mul, players, repeat(_LABELS)), labels))
        told = map([complex(0, unit) for unit in units].__getitem__, kinds)
        records = self._records
        for key, gained in zip(keys, map(add, told, map(sub, after, before)), strict=True):
            records[key] += gained
        tallies = [(0, 0) if r is None else r.tally for r in self._results[chunk.rules]]
        if any(tally != (0, 0) for tally in tallies):
            if 2 * seat >= self.plain.width:
                tallies = [(two, one) for one, two in tallies]
            numbers, scored = [complex(*tally) for tally in tallies], self._scored
            for key, tally in zip(keys, map(numbers.__getitem__, kinds), strict=True):
                scored[key] += tally

    def flush(self) -> None:
        """Bring the states up to the last game rated, with the records per label."""
        self.settle()
        self._tell_labels()

    def _tell_labels(self) -> None:
        self._counted = 0
        ids, states, scored = self.plain.ids, self.states, self._scored
        by_player: dict[int, list[int]] = {}
        for key in self._records:
            by_player.setdefault(key // _LABELS, []).append(key)
        for player, keys in by_player.items():
            state = states[ids[player]]
            labels = dict(state.labels)
            for key in keys:
                told = self._records[key]
                games, won, lost = _parts(int(told.imag))
                drawn, gained, tally = games - won - lost, int(told.real), scored.get(key, 0j)
                own, other = int(tally.real), int(tally.imag)
                for name in self._label_names[key % _LABELS]:
                    g, w, d, lo, f, a, ga = labels.get(name, NO_RECORD)
                    labels[name] = (g + games, w + won, d + drawn, lo + lost, f + own, a + other, ga + gained)
            state.labels = labels
        self._records.clear()
        scored.clear()


NO_RECORD = (0, 0, 0, 0, 0, 0, 0)


def _parts(record: int) -> tuple[int, int, int]:
    """Games, won, lost."""
    return record % _UNIT_WON, record // _UNIT_WON % _UNIT_WON, record // _UNIT_LOST


def _unit(score: int) -> int:
    return _UNIT_WON if score > 0 else _UNIT_LOST if score < 0 else 0


def label_names(club: str, group: str | None, tournament: str | None, year: int) -> list[str]:
    """The labels of a game: whose lists and records it counts in."""
    names = [f"year:{year}", f"club:{club}", f"club:{club}:{year}"]
    if group:
        names += [f"group:{group}", f"group:{group}:{year}"]
    if tournament:
        names.append(f"tournament:{tournament}")
    return names
