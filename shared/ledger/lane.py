"""The fast lane of the fold: plain games rated column by column, with the same results to the bit.

Rating itself goes game by game in played order, on flat lists of numbers. All the rest of a player's state (his
record, last days, records per label) depends only on what happened in which game, not on the next one's rating, so it
is counted in loops of its own: each has little to look at, which stays in a processor's cache. It is *settled* (written
into the states) when somebody reads them, or another kind of event comes.
"""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, pairwise, repeat
from operator import add, neg, sub
from struct import pack
from typing import TYPE_CHECKING, Any

import msgspec

from shared.ledger import calendar
from shared.ledger.rules import DatedRules
from shared.ratings.base import (
    NO_TALLY,
    BulkSystem,
    Content,
    PlainBatch,
    PlainResult,
    PlayerState,
    Rating,
    Settings,
    TeamSystem,
)

if TYPE_CHECKING:
    from shared.ledger.plain import Label, Plain

MOST_AT_ONCE = 1_024
"""Games rated at a time: the numbers they make stay in a processor's cache until they are packed into the history."""
_BITS = 26
_WON = float(1 << _BITS)
"""One won game, in a number that also counts the games in its lower half: whole, and below 2^53."""
SETTLE_AT = (1 << _BITS) - 1_000_000
"""So many games may be counted before they are settled, at the latest."""
LABEL_AT = 8_192
"""So many games are rated before their labels are counted, if they are of one part and under the same rules."""
_NEVER = -(2**62)


_Table = defaultdict[str, complex]


class Chunk:
    """Plain games that were rated one after another, and every seat's rating before and after each.

    ``history`` holds ``stride`` whole numbers a game. Where all of a team move alike: the rating of every seat before
    it, then by how much the first team's ratings change (the second's: the opposite). Else: rating (and index, in a
    system whose games change it) of every seat before it, then the same after it.
    """

    __slots__ = ("alike", "first", "history", "indexed", "last", "plain", "rules", "stride")

    def __init__(self, plain: Plain, first: int, last: int, rules: int, *, indexed: bool) -> None:
        self.plain = plain
        self.first = first
        self.last = last
        """Numbers of the games in ``plain``: from ``first`` up to, not including, ``last``."""
        self.rules = rules
        self.alike = False
        self.indexed = indexed
        self.stride = 2 * plain.width * (2 if indexed else 1)
        self.history = array("d")

    def __len__(self) -> int:
        return self.last - self.first

    def pack(self, history: Sequence[float]) -> None:
        """Set the history. A list takes numbers in less than half the time that an array does; an array needs a
        fraction of the room, and takes them packed by ``struct`` in less than half the time of one by one."""
        self.history.frombytes(pack(f"{len(history)}d", *history))

    def gained(self, seat: int) -> Iterable[float]:
        """By how much the rating of a seat changed in each game."""
        width = self.plain.width
        if self.alike:
            changes = self.history[width :: self.stride]
            return changes if 2 * seat < width else map(neg, changes)
        step = 2 if self.indexed else 1
        return map(sub, self.history[(width + seat) * step :: self.stride], self.history[seat * step :: self.stride])

    def ratings(self, number: int) -> tuple[list[Rating], list[Rating]]:
        """Every seat's rating before and after a game, by its number in ``plain``."""
        begin, width = (number - self.first) * self.stride, self.plain.width
        values = list(map(int, self.history[begin : begin + self.stride]))
        if self.alike:
            change, half = values.pop(), width // 2
            values += [value + change for value in values[:half]] + [value - change for value in values[half:]]
        if self.indexed:
            pairs = list(zip(values[::2], values[1::2], strict=True))
        else:
            pairs = list(zip(values, repeat(0, 2 * width), strict=True))
        return pairs[:width], pairs[width:]


class Lane:
    """Rates plain games, part by part of a story; ``states`` are the fold's own."""

    def __init__(
        self,
        system: BulkSystem,
        rules: Sequence[DatedRules],
        time_zone: str,
        states: dict[str, PlayerState],
        fresh: PlayerState,
        *,
        labels: bool,
    ) -> None:
        self.system = system
        self.rules = rules
        self.time_zone = time_zone
        self.states = states
        self.fresh = fresh
        self.with_labels = labels
        self.plain: Plain | None = None
        """The part that is being told."""
        self.next = 0
        """Its first game not yet rated."""
        self._ids: list[str] = []
        """All players told of so far, the part's first and in its order: its columns are read as they are."""
        self._numbers: dict[str, int] = {}
        self._ratings: list[Any] = []
        self._indexes: list[int] = []
        self._games: list[int] = []
        self._record: list[float] = []
        """Games and won since the states were settled."""
        self._last: list[int] = []
        self._best: list[float] = []
        self._best_index: list[float] = []
        self._best_at: list[int] = []
        """The best rating, its index, and when it was reached since the states were settled."""
        self._stale: set[int] = set()
        """Players of whom the lists above do not hold what their state will be once settled."""
        self._drawn: defaultdict[str, int] = defaultdict(int)
        self._prepared: tuple[Plain | None, int] = (None, -1)
        """The part and the number of the rules by which its kinds of games are rated so:"""
        self._results: list[PlainResult | None] = []
        self._changes: list[Callable[[float], float] | None] = []
        self._units: list[tuple[float, float]] = []
        """What a game of each kind counts for the first half of its seats, and for the second."""
        self._even: set[int] = set()
        """Kinds of drawn games."""
        self._alike = False
        """Every kind has a change: two against two by the sums of their ratings."""
        self._rated: dict[bytes, tuple[PlainResult | None, Callable[[float], float] | None]] = {}
        """Result and change of every kind that these rules were asked about."""
        self._waiting = 0
        """Games not yet in the states; who played them, while these are few; the last of them."""
        self._few: list[Sequence[int]] | None = []
        self._latest: Chunk | None = None
        self._day = (0, 0, 0)
        """The day last looked up: its first instant, the first behind it, its ordinal."""
        self._day_begins: list[int] = []
        """The days of the games that wait, ascending: an instant from which each is, and its ordinal."""
        self._days: list[int] = []
        self._unlabelled: list[Chunk] = []
        """Games of the part whose labels are to be counted, and these labels' numbers."""
        self._labels: list[int] = []
        self._records: list[_Table] = []
        """By label, by player: gained, and as imaginary part games and won; not yet in the states. Two whole numbers
        below 2^53 in one object: half the time of two."""
        self._scored: list[_Table] = []
        """... for, and as imaginary part against."""
        self._others: list[_Table] = []
        """... what was counted beside, and as imaginary part drawn."""
        self._counted = 0
        """Games in these records."""
        self._label_ids: dict[tuple[Label, int], int] = {}
        self._label_names: list[list[str]] = []

    # -- parts ---------------------------------------------------------------------------------------------------
    def open(self, plain: Plain) -> None:
        """Go on with these games, which stand behind all told before."""
        self.plain, self.next = plain, 0
        known = len(self._ids)
        new = [sid for sid in plain.ids if sid not in self._numbers]
        for zeros in (self._ratings, self._indexes, self._games, self._best_index):
            zeros.extend([0] * len(new))
        for numbers in (self._last, self._best, self._best_at):
            numbers.extend([_NEVER] * len(new))
        self._record.extend([0.0] * len(new))
        self._ids += new
        self._numbers.update(zip(new, range(known, len(self._ids)), strict=True))
        self._stale.update(range(known, len(self._ids)))
        order = list(map(self._numbers.__getitem__, plain.ids))
        others = bytearray(b"\1") * len(self._ids)
        for number in order:
            others[number] = 0
        order += compress(range(len(others)), others)
        if order != list(range(len(order))):
            self._arrange(order)

    def _arrange(self, order: Sequence[int]) -> None:
        """Number the players anew."""
        columns: list[list[Any]] = [self._ids, self._ratings, self._record, self._last, self._best, self._best_at]
        columns += [self._indexes, self._games, self._best_index]
        for column in columns:
            column[:] = list(map(column.__getitem__, order))
        self._numbers = dict(zip(self._ids, range(len(order)), strict=True))
        if self._stale:
            self._stale = {new for new, old in enumerate(order) if old in self._stale}
        self._few = None if self._waiting else []

    def close(self) -> None:
        """Let go of the part that was told; what was counted stays."""
        self._label()
        self.plain = self._latest = None
        self._prepared = (None, self._prepared[1])

    # -- rating --------------------------------------------------------------------------------------------------
    def until(self, tick: Sequence[Any] | None) -> Iterator[Chunk]:
        """Rate the games of the part that stand before a tick (None: all that are left)."""
        plain = self.plain
        if plain is None:
            return
        end = len(plain) if tick is None else plain.before(tick, self.next)
        while self.next < end:
            first = self.next
            number = max(n for n, r in enumerate(self.rules) if r.since <= plain.at[first])
            last = min(end, first + MOST_AT_ONCE)
            if number + 1 < len(self.rules):
                last = min(last, bisect_left(plain.at, self.rules[number + 1].since, first))
            yield self._rate(plain, first, last, number)

    def _rate(self, plain: Plain, first: int, last: int, number: int) -> Chunk:
        runs = self._runs(plain.at[first:last])
        # Days go back for a while where clocks do so at midnight. Those that wait must ascend.
        if self._days and runs[0][1] < self._days[-1]:
            self.settle()
        for (_, before), (place, day) in pairwise(runs):
            if day < before:
                last = first + place
                break
        runs = [run for run in runs if first + run[0] < last]
        self._prepare(plain, number)
        if self._stale:
            for player in self._stale:
                self._load(player)
            self._stale.clear()
        seats = [column[first:last] for column in plain.seats]
        kinds = plain.kind[first:last]
        at = plain.at[first:last]
        chunk = Chunk(plain, first, last, number, indexed=self.system.plain_indexes)
        for place, day in runs:
            if not self._days or day > self._days[-1]:
                self._days.append(day)
                self._day_begins.append(at[place])
        if self._alike:
            self._rate_teams(chunk, kinds, at, seats)
        else:
            history: list[float] = []
            numbers = (self._ratings, self._indexes, self._games)
            batch = PlainBatch(self._results, kinds, seats, *numbers, history)
            self.system.rate_plain(batch, self.rules[number].settings)
            chunk.pack(history)
            self._count(chunk, kinds, at, seats)
        self._note_drawn(kinds, seats)
        self._waiting += len(chunk)
        self._latest = chunk
        if self._few is not None:
            self._few += seats
            if plain.width * self._waiting > len(self._ids):
                self._few = None
        if self.with_labels:
            self._unlabelled.append(chunk)
            self._labels += self._labels_of(chunk, runs)
            if len(self._labels) >= LABEL_AT:
                self._label()
        self.next = last
        return chunk

    def _prepare(self, plain: Plain, number: int) -> None:
        """Have a result, and a change where the system has such, for each kind of game under these rules."""
        if self._prepared == (plain, number):
            return
        new = number != self._prepared[1]
        self._label()
        if new:
            self._rated.clear()
        self._prepared = (plain, number)
        settings = self.rules[number].settings
        teams = self.system if isinstance(self.system, TeamSystem) and plain.width == 4 else None
        rated = [self._rate_kind(kind, settings, teams) for kind in plain.kinds]
        self._results, self._changes = [result for result, _ in rated], [change for _, change in rated]
        scores = [0 if result is None else result.score for result in self._results]
        self._units = [(1.0 + (_WON if s > 0 else 0.0), 1.0 + (_WON if s < 0 else 0.0)) for s in scores]
        self._even = {kind for kind, score in enumerate(scores) if not score}
        alike = None not in self._changes
        if new or alike != self._alike:
            # Others may count games where these did not, or need whole numbers: begin again from the states.
            self.settle()
            self._stale.update(range(len(self._ids)))
        self._alike = alike

    def _rate_kind(
        self, kind: Content, settings: Settings, teams: TeamSystem | None
    ) -> tuple[PlainResult | None, Callable[[float], float] | None]:
        key = msgspec.json.encode(kind)
        if key not in self._rated:
            result = self.system.plain(kind, settings)
            change: Callable[[float], float] | None = None if teams is None else float
            if result is not None and teams is not None:
                change = teams.team_change(result, settings)
            self._rated[key] = (result, change)
        return self._rated[key]

    def _rate_teams(
        self,
        chunk: Chunk,
        kinds: Sequence[int],
        at: Sequence[int],
        seats: Sequence[Sequence[int]],
    ) -> None:
        """Two against two: rating and best rating in one go, record and last instant in another."""
        ratings, best, best_at = self._ratings, self._best, self._best_at
        changes: list[Any] = self._changes
        history: list[float] = []
        extend = history.extend
        for change_of, a, c, b, d in zip(map(changes.__getitem__, kinds), *seats, strict=True):
            rating_a, rating_c, rating_b, rating_d = ratings[a], ratings[c], ratings[b], ratings[d]
            change = change_of(rating_b + rating_d - rating_a - rating_c)
            ratings[a] = after_a = rating_a + change
            ratings[c] = after_c = rating_c + change
            ratings[b] = after_b = rating_b - change
            ratings[d] = after_d = rating_d - change
            extend((rating_a, rating_c, rating_b, rating_d, change))
            if after_a > best[a]:
                best[a], best_at[a] = after_a, at[len(history) // 5 - 1]
            if after_c > best[c]:
                best[c], best_at[c] = after_c, at[len(history) // 5 - 1]
            if after_b > best[b]:
                best[b], best_at[b] = after_b, at[len(history) // 5 - 1]
            if after_d > best[d]:
                best[d], best_at[d] = after_d, at[len(history) // 5 - 1]
        chunk.alike, chunk.stride = True, 5
        chunk.pack(history)
        record, last = self._record, self._last
        units = map(self._units.__getitem__, kinds)
        for (unit, other), instant, a, c, b, d in zip(units, at, *seats, strict=True):
            record[a] += unit
            record[c] += unit
            record[b] += other
            record[d] += other
            last[a] = last[c] = last[b] = last[d] = instant

    def _count(self, chunk: Chunk, kinds: Sequence[int], at: Sequence[int], seats: Sequence[Sequence[int]]) -> None:
        """Record, last instant and best rating of games that the system rated by itself."""
        record, last, best, best_index, best_at = self._record, self._last, self._best, self._best_index, self._best_at
        units, width, indexed = list(zip(*self._units, strict=True)), len(seats), chunk.indexed
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

    def _note_drawn(self, kinds: Sequence[int], seats: Sequence[Sequence[int]]) -> None:
        """Count the drawn games among these by player."""
        if self._even.isdisjoint(kinds):
            return
        mask = list(map(self._even.__contains__, kinds))
        for players in seats:
            for player in compress(players, mask):
                self._drawn[self._ids[player]] += 1

    def _load(self, player: int) -> None:
        state = self.states.get(self._ids[player], self.fresh)
        self._ratings[player] = float(state.rating) if self._alike else state.rating
        self._indexes[player] = state.index
        self._games[player] = state.games
        if state.best is not None:
            self._best[player], self._best_index[player] = state.best[:2]
        self._best_at[player] = _NEVER

    def forget(self, sid: str) -> None:
        """A player's (settled) state is changed by somebody else: look at it again."""
        number = self._numbers.get(sid)
        if number is not None:
            self._stale.add(number)

    # -- settling ------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Bring the states up to the last game rated, but for the records per label."""
        if not self._waiting:
            return
        touched: Iterable[int] = compress(range(len(self._ids)), self._record)
        if self._few is not None:
            touched = set().union(*self._few)
        self._write(touched)
        self._waiting, self._few, self._latest = 0, [], None
        self._day_begins, self._days = [], []
        self._drawn.clear()

    def settle_where_many_wait(self) -> None:
        """Settle before more games have come together than can be counted."""
        if max(self._waiting, self._counted + len(self._labels)) >= SETTLE_AT:
            self.flush()

    def settle_before(self, chunk: Chunk) -> None:
        """A chunk that was just rated is about to be read: nothing else may wait."""
        if self._latest is not chunk or self._waiting != len(chunk):
            raise ValueError("a chunk is read before the next step, and settled after it")

    def _write(self, touched: Iterable[int]) -> None:
        """What was counted goes into the states."""
        states, ids, ratings, indexes, drawn = self.states, self._ids, self._ratings, self._indexes, self._drawn
        records, lasts, fresh, with_indexes = self._record, self._last, self.fresh, self.system.plain_indexes
        best, best_index, best_at = self._best, self._best_index, self._best_at
        begins, days = self._day_begins, self._days
        for player in touched:
            sid = ids[player]
            state = states.get(sid)
            if state is None:
                state = states[sid] = PlayerState(fresh.rating, fresh.index)
            state.rating = int(ratings[player])
            if with_indexes:
                state.index = indexes[player]
            games, won = _parts(records[player])
            even, instant = drawn.get(sid, 0), lasts[player]
            records[player], lasts[player] = 0.0, _NEVER
            state.games += games
            state.won += won
            state.drawn += even
            state.lost += games - won - even
            state.last_played = instant
            day = days[bisect_right(begins, instant) - 1]
            if day > state.last_result:
                state.last_result = day
            if best_at[player] != _NEVER:
                index = int(best_index[player]) if with_indexes else state.index
                state.best = (int(best[player]), index, best_at[player])
                best_at[player] = _NEVER

    def _runs(self, at: Sequence[int]) -> list[tuple[int, int]]:
        """The days (ordinals) of these instants, which ascend: from which of them on it is that day."""
        found: list[tuple[int, int]] = []
        zone, number = self.time_zone, 0
        while number < len(at):
            begin, end, ordinal = self._day
            if not begin <= at[number] < end:
                day = calendar.day_of(at[number], zone)
                ordinal = day.toordinal()
                begin, end = calendar.first_instant(day, zone), calendar.first_instant(day + dt.timedelta(days=1), zone)
                if end - begin != calendar.DAY:
                    # A clock change: it may bring back the day before (Newfoundland's, at one past midnight).
                    begin, end = at[number], at[number] + 1
                self._day = (begin, end, ordinal)
            if not found or found[-1][1] != ordinal:
                found.append((number, ordinal))
            number = bisect_left(at, end, number)
        return found

    # -- labels --------------------------------------------------------------------------------------------------
    def _label_id(self, label: Label, year: int) -> int:
        number = self._label_ids.get((label, year))
        if number is None:
            number = self._label_ids[(label, year)] = len(self._label_names)
            self._label_names.append(label_names(*label, year))
            self._records.append(defaultdict(complex))
            self._scored.append(defaultdict(complex))
            self._others.append(defaultdict(complex))
        return number

    def _labels_of(self, chunk: Chunk, runs: Sequence[tuple[int, int]]) -> list[int]:
        """The number of club, group, tournament and year of each game."""
        labels, told = chunk.plain.label[chunk.first : chunk.last], chunk.plain.labels
        found: list[int] = []
        years = [dt.date.fromordinal(day).year for _, day in runs]
        begins = [n for n, year in enumerate(years) if n == 0 or year != years[n - 1]]
        places = [runs[n][0] for n in begins] + [len(labels)]
        for n, (begin, end) in zip(begins, pairwise(places), strict=True):
            here = labels[begin:end]
            numbers = {label: self._label_id(told[label], years[n]) for label in set(here)}
            found += map(numbers.__getitem__, here)
        return found

    def _label(self) -> None:
        """Add up what each player did and gained under each label: label by label, so that what is added to is small
        and stays in the cache."""
        chunks, labels, sids = self._unlabelled, self._labels, self._ids
        if not chunks:
            return
        plain, first, last = chunks[0].plain, chunks[0].first, chunks[-1].last
        kinds, seats = plain.kind[first:last], [column[first:last] for column in plain.seats]
        sums = self._sums(chunks, kinds)
        order = sorted(range(len(labels)), key=labels.__getitem__)
        end = 0
        for label, count in sorted(Counter(labels).items()):
            games = order[end : end + count]
            end += count
            for tables, told in sums:
                found: defaultdict[int, complex] = defaultdict(complex)
                for players, more in zip(seats, told, strict=True):
                    for player, by in zip(map(players.__getitem__, games), map(more.__getitem__, games), strict=True):
                        found[player] += by
                table = tables[label]
                for player, by in found.items():
                    table[sids[player]] += by
        self._counted += last - first
        self._unlabelled, self._labels = [], []

    def _sums(self, chunks: Sequence[Chunk], kinds: Sequence[int]) -> list[tuple[list[_Table], list[list[complex]]]]:
        """What is to be added, and to which tables: per seat a number per game."""
        sides = [2 * seat // chunks[0].plain.width for seat in range(chunks[0].plain.width)]
        counted = [[complex(0, units[side]) for units in self._units] for side in (0, 1)]
        gained: list[list[complex]] = []
        for seat, side in enumerate(sides):
            if seat and chunks[0].alike and side == sides[seat - 1]:
                gained.append(gained[-1])
                continue
            ratings = chain.from_iterable(chunk.gained(seat) for chunk in chunks)
            gained.append(list(map(add, map(counted[side].__getitem__, kinds), ratings)))
        found = [(self._records, gained)]
        tallies = [(NO_TALLY, NO_TALLY) if result is None else result.tallies for result in self._results]
        scored = [[complex(both[side].own, both[side].other) for both in tallies] for side in (0, 1)]
        others = [
            [complex(both[side].beside, kind in self._even) for kind, both in enumerate(tallies)] for side in (0, 1)
        ]
        for tables, numbers in ((self._scored, scored), (self._others, others)):
            if any(number[kind] for number in numbers for kind in set(kinds)):
                found.append((tables, [list(map(numbers[side].__getitem__, kinds)) for side in sides]))
        return found

    def flush(self) -> None:
        """Bring the states up to the last game rated, with the records per label."""
        self.settle()
        self._label()
        self._tell_labels()

    def result(self, chunk: Chunk, number: int) -> PlainResult:
        """What a game of the latest chunk was rated by."""
        result = self._results[chunk.plain.kind[number]]
        assert result is not None  # noqa: S101 - ``apart`` took the others out
        return result

    def _tell_labels(self) -> None:
        self._counted = 0
        states, known = self.states, set[str]()
        for names, records, scored, others in zip(
            self._label_names, self._records, self._scored, self._others, strict=True
        ):
            for player, told in records.items():
                state = states[player]
                if player not in known:  # copies of the state share its records
                    known.add(player)
                    state.labels = dict(state.labels)
                labels = state.labels
                games, won = _parts(told.imag)
                gained, tally, more = int(told.real), scored.get(player, 0j), others.get(player, 0j)
                own, other, beside, drawn = int(tally.real), int(tally.imag), int(more.real), int(more.imag)
                lost = games - won - drawn
                for name in names:
                    g, w, d, lo, f, a, ga, be = labels.get(name, NO_RECORD)
                    record = (g + games, w + won, d + drawn, lo + lost, f + own, a + other, ga + gained, be + beside)
                    labels[name] = record
            records.clear()
            scored.clear()
            others.clear()


NO_RECORD = (0, 0, 0, 0, 0, 0, 0, 0)


def _parts(record: float) -> tuple[int, int]:
    """Games, won."""
    won, games = divmod(record, _WON)
    return int(games), int(won)


def label_names(club: str, group: str | None, tournament: str | None, year: int) -> list[str]:
    """The labels of a game: whose lists and records it counts in."""
    names = [f"year:{year}", f"club:{club}", f"club:{club}:{year}"]
    if group:
        names += [f"group:{group}", f"group:{group}:{year}"]
    if tournament:
        names += [f"tournament:{tournament}", f"tournament:{tournament}:{year}"]
    return names
