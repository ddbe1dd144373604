"""Compact segments: the ledger of a closed month as one compressed object, so that a replay reads no million items.

Nine games in ten are plain (see ``plain``) and go in columns; every other event goes as it is. The bytes begin with
a mark, the version and the SHA-256 of what follows, so that a damaged or cut-off object is told from a whole one.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate, chain, compress
from operator import add, sub
from typing import Any

import msgspec

from shared.ledger.events import Event, event_id
from shared.ledger.plain import GameRef, Label, Plain, PlainBuilder, merged, without
from shared.ratings.base import Content, RuleSystem

_MAGIC = b"CLSEG1\n"
_LEVEL = 6


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
    rounds: bytes
    sequences: bytes
    accepted: bytes
    """Microseconds from the finish to the acceptance."""
    game_ids: str
    tokens: str
    """The random ends of the event ids. Both are joined by line ends."""


class _Body(msgspec.Struct, array_like=True, gc=False):
    events: int
    columns: _Columns | None
    rest: list[Event]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Body)


@dataclass
class Segment:
    """The events that were accepted in one month."""

    plain: Plain | None = None
    """The games told as columns: each finished, told once, in played order."""
    accepted: array[int] = field(default_factory=lambda: array("q"))
    """When each of them was accepted."""
    tokens: str = ""
    """The random ends of their ids, by line ends."""
    rest: list[Event] = field(default_factory=list)
    """Every other event, by id."""

    def __len__(self) -> int:
        return len(self.accepted) + len(self.rest)

    def events(self, system: RuleSystem) -> Iterator[Event]:
        """Every event as it was accepted, in no particular order."""
        if self.plain is not None:
            for number, (accepted, token) in enumerate(zip(self.accepted, self.tokens.split("\n"), strict=True)):
                yield Event(event_id(accepted, token), "game", accepted, "finished", self.plain.game(system, number))
        yield from self.rest

    def before(self, instant: int) -> Segment:
        """Only what was accepted before an instant."""
        mask = [accepted < instant for accepted in self.accepted]
        rest = [event for event in self.rest if event.accepted_at < instant]
        if all(mask) and len(rest) == len(self.rest):
            return self
        return Segment(
            None if self.plain is None else self.plain.kept(mask),
            array("q", compress(self.accepted, mask)),
            "\n".join(compress(self.tokens.split("\n"), mask)),
            rest,
        )


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
    accepted: array[int] = array("q")
    tokens: list[str] = []
    rest: list[Event] = []
    for event in sorted(ordered, key=_sort_key):
        token = event.id[16:]
        like = Event(event_id(event.accepted_at, token), "game", event.accepted_at, "finished", event.game)
        again = event.game is not None and told[(event.game.club, event.game.game_id)] > 1
        plain = event.game is not None and event == like and not again and "\n" not in token
        if not plain or event.game is None or not builder.add(event.game):
            rest.append(event)
        else:
            accepted.append(event.accepted_at)
            tokens.append(token)
    rest.sort(key=lambda e: e.id)
    return Segment(builder.done() if accepted else None, accepted, "\n".join(tokens), rest)


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


def encode(segment: Segment) -> bytes:
    """A segment's bytes; the same segment gives the same bytes."""
    plain = segment.plain
    columns = None
    if plain is not None:
        columns = _Columns(
            plain.width,
            plain.ids,
            plain.kinds,
            plain.labels,
            _bytes(array("q", map(sub, plain.at, chain([0], plain.at)))),
            _bytes(plain.kind),
            _bytes(plain.label),
            [_bytes(column) for column in plain.seats],
            _bytes(plain.rounds),
            _bytes(plain.sequences),
            _bytes(array("q", map(sub, segment.accepted, plain.at))),
            plain.joined,
            segment.tokens,
        )
    body = zlib.compress(_encoder.encode(_Body(len(segment), columns, segment.rest)), _LEVEL)
    return _MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Segment:
    """A segment from its bytes.

    Raises:
        SegmentError: they are damaged, cut off, or of another version.
    """
    start = len(_MAGIC)
    body = data[start + 32 :]
    if data[:start] != _MAGIC or hashlib.sha256(body).digest() != data[start : start + 32]:
        raise SegmentError("not a whole segment")
    try:
        told = _decoder.decode(zlib.decompress(body))
    except (zlib.error, msgspec.DecodeError) as error:
        raise SegmentError(str(error)) from error
    columns = told.columns
    segment = Segment(rest=told.rest)
    if columns is not None:
        plain = segment.plain = Plain(columns.width)
        plain.ids, plain.kinds, plain.labels = columns.ids, columns.kinds, columns.labels
        count = len(columns.kind) // plain.kind.itemsize
        plain.at = array("q", accumulate(_array("q", columns.at, count)))
        plain.kind, plain.label = _array("I", columns.kind, count), _array("I", columns.label, count)
        plain.seats = [_array("I", column, count) for column in columns.seats]
        plain.rounds, plain.sequences = _array("I", columns.rounds, count), _array("I", columns.sequences, count)
        plain.joined = columns.game_ids
        segment.accepted = array("q", map(add, plain.at, _array("q", columns.accepted, count)))
        segment.tokens = columns.tokens
    if len(segment) != told.events:
        raise SegmentError("events are missing")
    return segment


def together(
    segments: Sequence[Segment], told_again: AbstractSet[GameRef] = frozenset()
) -> tuple[Plain | None, list[Event]]:
    """Several segments as one story: the plain games, without those that a later event tells again, and the rest.

    Args:
        told_again: games told by events that are in none of the segments.
    """
    rest = [event for segment in segments for event in segment.rest]
    again = {(e.game.club, e.game.game_id) for e in rest if e.game is not None} | told_again
    parts = [segment.plain for segment in segments if segment.plain is not None]
    if len({part.width for part in parts}) > 1:
        raise SegmentError("segments of different pools")
    if not parts:
        return None, rest
    return without(merged(parts), again), rest
