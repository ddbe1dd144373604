"""Compact segments: the ledger of a closed month as one compressed object, so that a replay reads no million items.

Nine games in ten are plain (see ``plain``) and go in columns; every other event goes as it is. The bytes begin with
a mark, the version and the SHA-256 of what follows, so that a damaged or cut-off object is told from a whole one.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from operator import add, sub
from typing import Any

import msgspec

from shared.ledger import calendar
from shared.ledger.events import Event, event_id
from shared.ledger.order import BEGINNING, to_datetime
from shared.ledger.plain import Details, GameRef, Label, Part, Plain, PlainBuilder, merged, without
from shared.ratings.base import Content, Game, RuleSystem

_MAGIC = b"CLSEG1\n"
_LEVEL = 6
_NEVER = 2**63 - 1
"""Later than every instant."""


class SegmentError(ValueError):
    """These bytes are no whole segment."""


class _Columns(msgspec.Struct, array_like=True, gc=False):
    """Plain games, one column a field; numbers as little-endian bytes, instants as differences."""

    width: int
    ids: list[str]
    kinds: list[Content]
    labels: list[Label]
    at: bytes
    kind: bytes
    label: bytes
    seats: list[bytes]
    details: bytes
    """``_Details``, compressed apart: a replay leaves them packed."""


class _Details(msgspec.Struct, array_like=True, gc=False):
    rounds: bytes
    sequences: bytes
    accepted: bytes
    """Microseconds from the finish to the acceptance."""
    game_ids: str
    tokens: str
    """Both are joined by line ends."""


class _Body(msgspec.Struct, array_like=True, gc=False):
    events: int
    latest: int
    columns: _Columns | None
    rest: list[Event]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Body)
_details_decoder = msgspec.msgpack.Decoder(_Details)


@dataclass
class Segment:
    """The events that were accepted in one month."""

    plain: Plain | None = None
    """The games told as columns: each finished, told once, in played order."""
    rest: list[Event] = field(default_factory=list)
    """Every other event, by id."""
    latest: int = 0
    """When the last of all was accepted."""

    def __len__(self) -> int:
        return (0 if self.plain is None else len(self.plain)) + len(self.rest)

    def events(self, system: RuleSystem) -> Iterator[Event]:
        """Every event as it was accepted, in no particular order."""
        if self.plain is not None:
            details = self.plain.details
            for number, (accepted, token) in enumerate(zip(details.accepted, details.tokens, strict=True)):
                yield Event(event_id(accepted, token), "game", accepted, "finished", self.plain.game(system, number))
        yield from self.rest

    def with_both(self, system: RuleSystem, ours: AbstractSet[str], theirs: AbstractSet[str]) -> Iterator[Game]:
        """The games told as columns in which somebody of either set sat."""
        plain = self.plain
        if plain is None or ours.isdisjoint(plain.ids) or theirs.isdisjoint(plain.ids):
            return
        one, two = ({n for n, sid in enumerate(plain.ids) if sid in group} for group in (ours, theirs))
        for number, seats in enumerate(zip(*plain.seats, strict=True)):
            if not one.isdisjoint(seats) and not two.isdisjoint(seats):
                yield plain.game(system, number)

    def before(self, instant: int) -> Segment:
        """Only what was accepted before an instant."""
        if self.latest < instant:
            return self
        plain = self.plain
        if plain is not None:
            plain = plain.kept([accepted < instant for accepted in plain.details.accepted])
        return Segment(plain, [event for event in self.rest if event.accepted_at < instant], instant - 1)


def _sort_key(event: Event) -> tuple[Any, ...]:
    game = event.game
    if game is None:
        return (0, 0, 0, "", "")
    return (game.started_at, game.round or 0, game.sequence, game.club, game.game_id)


def columnar(system: RuleSystem, events: Iterable[Event]) -> Segment:
    """Events as a segment. An event that is given twice (same id) counts once."""
    once = {event.id: event for event in events}
    ordered = sorted(once.values(), key=lambda e: e.id)
    widths = Counter(len(system.players(e.game.content)) for e in ordered if e.game is not None)
    width = max([n for n in widths if n % 2 == 0], key=lambda n: (widths[n], n), default=0)
    told: dict[GameRef, int] = {}
    for event in ordered:
        if event.game is not None:
            ref = (event.game.club, event.game.game_id)
            told[ref] = told.get(ref, 0) + 1
    builder = PlainBuilder(system, width)
    rest: list[Event] = []
    for event in sorted(ordered, key=_sort_key):
        token = event.id[16:]
        like = Event(event_id(event.accepted_at, token), "game", event.accepted_at, "finished", event.game)
        again = event.game is not None and told[(event.game.club, event.game.game_id)] > 1
        plain = event.game is not None and event == like and not again and "\n" not in token
        if not plain or event.game is None or not builder.add(event.game, event.accepted_at, token):
            rest.append(event)
    rest.sort(key=lambda e: e.id)
    plain_games = builder.done()
    latest = max((event.accepted_at for event in ordered), default=0)
    return Segment(plain_games if len(plain_games) else None, rest, latest)


def _bytes(column: array[int]) -> bytes:
    if sys.byteorder == "big":  # pragma: no cover - no such machine here
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def _array(typecode: str, data: bytes, length: int) -> array[int]:
    found: array[int] = array(typecode)
    found.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover - no such machine here
        found.byteswap()
    if len(found) != length:
        raise SegmentError("a column is cut off")
    return found


def _unpacked(data: bytes, at: array[int]) -> Details:
    told, count, details = _details_decoder.decode(zlib.decompress(data)), len(at), Details()
    details.rounds, details.sequences = _array("I", told.rounds, count), _array("I", told.sequences, count)
    details.accepted = array("q", map(add, at, _array("q", told.accepted, count)))
    details.game_ids, details.tokens = told.game_ids.split("\n"), told.tokens.split("\n")
    return details


def encode(segment: Segment) -> bytes:
    """A segment's bytes; the same segment gives the same bytes."""
    plain = segment.plain
    columns = None
    if plain is not None:
        details = plain.details
        packed = _Details(
            _bytes(details.rounds),
            _bytes(details.sequences),
            _bytes(array("q", map(sub, details.accepted, plain.at))),
            "\n".join(details.game_ids),
            "\n".join(details.tokens),
        )
        columns = _Columns(
            plain.width,
            plain.ids,
            plain.kinds,
            plain.labels,
            _bytes(array("q", map(sub, plain.at, chain([0], plain.at)))),
            _bytes(plain.kind),
            _bytes(plain.label),
            [_bytes(column) for column in plain.seats],
            zlib.compress(_encoder.encode(packed), _LEVEL),
        )
    body = zlib.compress(_encoder.encode(_Body(len(segment), segment.latest, columns, segment.rest)), _LEVEL)
    return _MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Segment:
    """A segment from its bytes.

    Raises:
        SegmentError: they are damaged, cut off, or of another version.
    """
    start = len(_MAGIC)
    body = memoryview(data)[start + 32 :]
    if data[:start] != _MAGIC or hashlib.sha256(body).digest() != data[start : start + 32]:
        raise SegmentError("not a whole segment")
    try:
        told = _decoder.decode(zlib.decompress(body))
    except (zlib.error, msgspec.DecodeError) as error:
        raise SegmentError(str(error)) from error
    columns = told.columns
    segment = Segment(None, told.rest, told.latest)
    if columns is not None:
        plain = segment.plain = Plain(columns.width)
        plain.ids, plain.kinds, plain.labels = columns.ids, columns.kinds, columns.labels
        count = len(columns.kind) // plain.kind.itemsize
        plain.at = array("q", accumulate(_array("q", columns.at, count)))
        plain.kind, plain.label = _array("I", columns.kind, count), _array("I", columns.label, count)
        plain.seats = [_array("I", column, count) for column in columns.seats]
        plain.detail(partial(_unpacked, columns.details, plain.at))
    if len(segment) != told.events:
        raise SegmentError("events are missing")
    return segment


Source = Callable[[], Segment]
"""Gives a segment: from memory, or read and decoded anew. It is asked twice."""


def parts_of(
    sources: Iterable[Source], told_again: AbstractSet[GameRef] = frozenset()
) -> tuple[list[Part], list[Event]]:
    """Several segments as one story: the plain games, without those that a later event tells again, and the rest.

    A segment holds what was accepted in a month, a part what was played in it. So each segment is looked through
    once for games played outside of its month; these are kept and told in their time, and everything else is read
    again when its month comes: a month's columns are in memory at a time, and those of the games told late.

    Args:
        sources: oldest month first; in another order more games are kept.
        told_again: games told by events that are in none of the segments.
    """
    rest: list[Event] = []
    spans: list[tuple[int, Source]] = []
    aside: Plain | None = None
    edge = BEGINNING
    widths: set[int] = set()
    for source in sources:
        here, width, end, elsewhere = _looked_through(source, edge)
        rest += here
        if not width:
            continue
        widths.add(width)
        if len(widths) > 1:
            raise SegmentError("segments of different pools")
        for more in elsewhere:
            aside = more if aside is None else merged([aside, more])
        spans.append((edge, source))
        edge = end
    again = {(e.game.club, e.game.game_id) for e in rest if e.game is not None} | told_again

    def part(begin: int, end: int, source: Source) -> Part:
        def load() -> Plain:
            plain = source().plain
            found = [] if plain is None else [plain.cut(*_numbers(plain, begin, min(end, edge)))]
            if aside is not None:
                found.append(aside.cut(*_numbers(aside, begin, end)).seated())
            return without(merged(found), again)

        return Part(begin, load)

    ends = [begin for begin, _ in spans[1:]] + [_NEVER] * bool(spans)
    return [part(begin, end, source) for (begin, source), end in zip(spans, ends, strict=True)], rest


def _looked_through(source: Source, edge: int) -> tuple[list[Event], int, int, list[Plain]]:
    """What a first look at a segment tells: its other events, the width of its plain games (0: it has none), the end of
    its month, and the games that were played before ``edge`` or after that end. Nothing else of it stays in memory."""
    segment = source()
    plain = segment.plain
    if plain is None or not len(plain):
        return segment.rest, 0, edge, []
    end, elsewhere = max(edge, _month_end(segment.latest)), []
    here, beyond = _numbers(plain, edge, end)
    for first, last in ((0, here), (beyond, len(plain))):
        if first < last:
            more = plain.cut(first, last).seated()
            more.detail(partial(_details_of, source, first, last))
            elsewhere.append(more)
    return segment.rest, plain.width, end, elsewhere


def _details_of(source: Source, first: int, last: int) -> Details:
    """Read a segment again for the details of some of its games: they are hardly ever asked for."""
    plain = source().plain
    if plain is None:
        raise SegmentError("a segment is not what it was")
    return plain.cut(first, last).details


def _numbers(plain: Plain, begin: int, end: int) -> tuple[int, int]:
    """Which games were played in a time: the first, and the one behind the last."""
    return bisect_left(plain.at, begin), bisect_left(plain.at, end)


def _month_end(at: int) -> int:
    month = to_datetime(at)
    return calendar.closing_instant(*calendar.next_month(month.year, month.month), "UTC")
