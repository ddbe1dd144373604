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
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any

from shared.ledger import calendar
from shared.ledger.rules import DatedRules
from shared.ratings.base import NO_TALLY, BulkSystem, PlainBatch, PlainResult, PlayerState, Settings, TeamSystem

if TYPE_CHECKING:
    from shared.ledger.plain import Plain

MOST_AT_ONCE = 4_096
"""Games rated at a time: the numbers they make stay in a processor's cache until they are packed into the history. With
sixteen times as many a fold of a million games takes half as long again."""
SETTLE_AT = 50_000
"""So many games are rated before what follows from their ratings is worked out."""
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
        self._best: list[float] = [_NEVER] * size
        self._best_index: list[float] = [0] * size
        self._best_at = [_NEVER] * size
        """The best rating, its index, and when it was reached since the states were settled."""
        self._changes: list[Callable[[float], float]] | None = None
        self._unknown = size
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
        self._beside: defaultdict[int, int] = defaultdict(int)
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
        plain, settings = self.plain, self.rules[number].settings
        if number not in self._results:
            # Other rules may count games where these did not: begin again from the states.
            self.settle()
            self._known = bytearray(len(plain.ids))
            self._unknown = len(plain.ids)
            results = self._results[number] = [self.system.plain(kind, settings) for kind in plain.kinds]
            self._changes = self._team_changes(results, settings)
        seats = [column[first:last] for column in plain.seats]
        if self._unknown:
            for player in set().union(*seats):
                if not self._known[player]:
                    self._load(player)
        chunk = Chunk(first, last, number, 2 * plain.width * (2 if self.system.plain_indexes else 1))
        if self._changes is not None:
            self._rate_teams(chunk, seats, self._changes)
        else:
            history: list[float] = []
            numbers = (self._ratings, self._indexes, self._games)
            batch = PlainBatch(self._results[number], plain.kind[first:last], seats, *numbers, history)
            self.system.rate_plain(batch, settings)
            chunk.history = array("d", history)
            self._count(chunk, seats)
        self._pending.append(chunk)
        self.next = last
        return chunk

    def _team_changes(
        self, results: Sequence[PlainResult | None], settings: Settings
    ) -> list[Callable[[float], float]] | None:
        """A function per kind of game, where the system has them (and numbers to 2^53 are enough)."""
        if not isinstance(self.system, TeamSystem) or self.plain.width != 4:
            return None
        found = []
        for result in results:
            change = float if result is None else self.system.team_change(result, settings)
            if change is None:
                return None
            found.append(change)
        return found

    def _units(self, number: int) -> list[list[int]]:
        """What a game of each kind counts for the first half of its seats, and for the second."""
        scores = [0 if r is None else r.score for r in self._results[number]]
        return [[1 + _unit(score) for score in scores], [1 + _unit(-score) for score in scores]]

    def _rate_teams(
        self, chunk: Chunk, seats: Sequence[Sequence[int]], changes: Sequence[Callable[[float], float]]
    ) -> None:
        """Two against two: rating, record, last instant and best rating in one go."""
        kinds, at = self.plain.kind[chunk.first : chunk.last], self.plain.at[chunk.first : chunk.last]
        ratings, record, last, best, best_at = self._ratings, self._record, self._last, self._best, self._best_at
        told = list(zip(changes, *self._units(chunk.rules), strict=True))
        history: list[float] = []
        extend = history.extend
        games = zip(map(told.__getitem__, kinds), at, *seats, strict=True)
        for (change_of, unit, other_unit), instant, a, c, b, d in games:
            rating_a, rating_c, rating_b, rating_d = ratings[a], ratings[c], ratings[b], ratings[d]
            change = change_of(rating_b + rating_d - rating_a - rating_c)
            ratings[a] = after_a = rating_a + change
            ratings[c] = after_c = rating_c + change
            ratings[b] = after_b = rating_b - change
            ratings[d] = after_d = rating_d - change
            extend((rating_a, rating_c, rating_b, rating_d, after_a, after_c, after_b, after_d))
            record[a] += unit
            record[c] += unit
            record[b] += other_unit
            record[d] += other_unit
            last[a] = last[c] = last[b] = last[d] = instant
            if after_a > best[a]:
                best[a], best_at[a] = after_a, instant
            if after_c > best[c]:
                best[c], best_at[c] = after_c, instant
            if after_b > best[b]:
                best[b], best_at[b] = after_b, instant
            if after_d > best[d]:
                best[d], best_at[d] = after_d, instant
        # A list takes numbers in less than half the time that an array does; an array needs a fraction of the room.
        chunk.history = array("d", history)

    def _count(self, chunk: Chunk, seats: Sequence[Sequence[int]]) -> None:
        """Record, last instant and best rating of games that the system rated by itself."""
        kinds, at = self.plain.kind[chunk.first : chunk.last], self.plain.at[chunk.first : chunk.last]
        record, last, best, best_index, best_at = self._record, self._last, self._best, self._best_index, self._best_at
        units, width, indexed = self._units(chunk.rules), self.plain.width, self.system.plain_indexes
        step = 2 if indexed else 1
        for seat, players in enumerate(seats):
            counted = map(units[2 * seat // width].__getitem__, kinds)
            place = (width + seat) * step
            ratings = chunk.history[place :: chunk.stride]
            indexes: Iterable[float] = repeat(0.0, len(ratings))
            if indexed:
                indexes = chunk.history[place + 1 :: chunk.stride]
            for player, unit, instant, rating, index in zip(players, counted, at, ratings, indexes, strict=True):
                record[player] += unit
                if instant > last[player]:
                    last[player] = instant
                known = best[player]
                # Seat by seat, not in played order: of equal ones the earliest counts, unless it is the state's own.
                if rating > known or (
                    rating == known
                    and (index < best_index[player] or (index == best_index[player] and instant < best_at[player]))
                ):
                    best[player], best_index[player], best_at[player] = rating, index, instant

    def _load(self, player: int) -> None:
        state = self.states.get(self.plain.ids[player], self.fresh)
        self._ratings[player] = float(state.rating) if self._changes is not None else state.rating
        self._indexes[player] = state.index
        self._games[player] = state.games
        if state.best is not None:
            self._best[player], self._best_index[player] = state.best[:2]
        self._best_at[player] = _NEVER
        self._known[player] = 1
        self._unknown -= 1

    def forget(self, sid: str) -> None:
        """A player's (settled) state is changed by somebody else: look at it again."""
        number = self._numbers.get(sid)
        if number is not None and self._known[number]:
            self._known[number] = 0
            self._unknown += 1

    # -- settling ------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Bring the states up to the last game rated, but for the records per label."""
        if self._pending:
            self._settle(self._pending)
            self._pending = []

    def settle_where_many_wait(self) -> None:
        """Settle once enough games have come together."""
        if sum(chunk.last - chunk.first for chunk in self._pending) >= SETTLE_AT:
            self.settle()

    def settle_before(self, chunk: Chunk) -> None:
        """A chunk that was just rated is about to be read: nothing else may wait."""
        if self._pending != [chunk]:
            raise ValueError("a chunk is read before the next step, and settled after it")

    def result(self, chunk: Chunk, number: int) -> PlainResult:
        """What a game was rated by."""
        result = self._results[chunk.rules][self.plain.kind[number]]
        assert result is not None  # noqa: S101 - ``apart`` took the others out
        return result

    def _settle(self, chunks: Sequence[Chunk]) -> None:
        plain, first, last = self.plain, chunks[0].first, chunks[-1].last
        at = plain.at[first:last]
        days = self._days(at)
        if self.with_labels:
            for chunk in chunks:
                self._label(chunk, days[chunk.first - first : chunk.last - first])
            self._counted += last - first
        columns = [column[first:last] for column in plain.seats]
        touched: Iterable[int] = compress(range(len(plain.ids)), self._record)
        if plain.width * (last - first) < len(plain.ids):
            touched = set().union(*columns)
        # Days go back for a while where clocks do so at midnight: then the latest instant need not be on the latest.
        self._write(touched, at, days, None if list(days) == sorted(days) else _latest(columns, days))
        if self._counted + SETTLE_AT + MOST_AT_ONCE >= _MOST_COUNTED:  # the next games may be one too many
            self._tell_labels()

    def _write(
        self, touched: Iterable[int], at: Sequence[int], days: Sequence[int], latest: dict[int, int] | None
    ) -> None:
        """What was counted goes into the states."""
        states, ids, ratings, indexes = self.states, self.plain.ids, self._ratings, self._indexes
        records, lasts, fresh, with_indexes = self._record, self._last, self.fresh, self.system.plain_indexes
        best, best_index, best_at = self._best, self._best_index, self._best_at
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
            if best_at[player] != _NEVER:
                index = int(best_index[player]) if with_indexes else state.index
                state.best = (int(best[player]), index, best_at[player])
                best_at[player] = _NEVER

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

    def _label(self, chunk: Chunk, days: Sequence[int]) -> None:
        """Add up what each player did and gained under each label."""
        plain, results = self.plain, self._results[chunk.rules]
        kinds, labels, width = plain.kind[chunk.first : chunk.last], self._labels(chunk, days), plain.width
        units, step, stride = self._units(chunk.rules), 2 if self.system.plain_indexes else 1, chunk.stride
        tallies = [[NO_TALLY if r is None else r.tallies[half] for r in results] for half in (0, 1)]
        has_tallies = any(tally != NO_TALLY for tally in tallies[0])
        has_beside = any(tally.beside for half in tallies for tally in half)
        records, scored = self._records, self._scored
        for seat, column in enumerate(plain.seats):
            half = 2 * seat // width
            before, after = chunk.history[seat * step :: stride], chunk.history[(width + seat) * step :: stride]
            keys = list(map(add, map(mul, column[chunk.first : chunk.last], repeat(_LABELS)), labels))
            told = map([complex(0, unit) for unit in units[half]].__getitem__, kinds)
            for key, gained in zip(keys, map(add, told, map(sub, after, before)), strict=True):
                records[key] += gained
            if has_tallies:
                numbers = [complex(tally.own, tally.other) for tally in tallies[half]]
                for key, tally in zip(keys, map(numbers.__getitem__, kinds), strict=True):
                    scored[key] += tally
            if has_beside:
                points = [tally.beside for tally in tallies[half]]
                for key, more in zip(keys, map(points.__getitem__, kinds), strict=True):
                    self._beside[key] += more

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
                own, other, beside = int(tally.real), int(tally.imag), self._beside.get(key, 0)
                for name in self._label_names[key % _LABELS]:
                    g, w, d, lo, f, a, ga, be = labels.get(name, NO_RECORD)
                    record = (g + games, w + won, d + drawn, lo + lost, f + own, a + other, ga + gained, be + beside)
                    labels[name] = record
            state.labels = labels
        self._records.clear()
        scored.clear()
        self._beside.clear()


NO_RECORD = (0, 0, 0, 0, 0, 0, 0, 0)


def _latest(columns: Sequence[Sequence[int]], days: Sequence[int]) -> dict[int, int]:
    """The latest day of each player."""
    found: dict[int, int] = {}
    for players in columns:
        for player, day in zip(players, days, strict=True):
            found[player] = max(found.get(player, 0), day)
    return found


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
        names += [f"tournament:{tournament}", f"tournament:{tournament}:{year}"]
    return names
