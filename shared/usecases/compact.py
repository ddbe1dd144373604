"""Compact segments of a pool's ledger: written for months that are past, read in place of their items.

The items stay what counts: a segment that is lost or damaged costs time and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Set
from dataclasses import dataclass, field

from shared.ledger import calendar, segments
from shared.ledger.events import Event
from shared.ledger.order import utc_month
from shared.ledger.segments import Segment, SegmentError
from shared.ratings.base import MICROSECONDS, Game
from shared.store import ledger
from shared.store.pools import Pool
from shared.usecases.context import Context

SETTLED = 3600 * MICROSECONDS
"""A month is closed so long after its end: whatever was accepted in it is stored by then, clocks a little apart or
not (a request ends within half a minute, an import's run within 15 minutes)."""
CLOCKS = 24 * 3600 * MICROSECONDS
"""Months are looked at so far before the pool was opened and after now, whatever the clocks."""
_log = logging.getLogger(__name__)


def prefix(pool: str) -> str:
    """Where a pool's segments are kept, in the data bucket."""
    return f"segments/{pool}/"


def key(pool: str, month: str) -> str:
    """Where the segment of a UTC month (of acceptance) is kept. Server-made ids and numbers, no names."""
    return prefix(pool) + month


def months(ctx: Context, pool: Pool) -> Iterator[tuple[str, bool]]:
    """The UTC months in which events can have been accepted, oldest first, and whether no more can come."""
    month, last = utc_month(pool.created_at - CLOCKS), utc_month(ctx.clock() + CLOCKS)
    settled = utc_month(ctx.clock() - SETTLED)
    while month <= last:
        yield month, month < settled
        year, number = calendar.next_month(int(month[:4]), int(month[5:]))
        month = f"{year:04d}-{number:02d}"


def compact(ctx: Context, pool: Pool) -> list[str]:
    """Write the segment of every closed month that has none yet; the months written. Twice: nothing more happens."""
    there = {name for name, _ in ctx.data.list(prefix(pool.id))}
    written = []
    for month, closed in months(ctx, pool):
        if not closed or key(pool.id, month) in there:
            continue
        segment = segments.columnar(pool.system, ledger.read_month(ctx.table, pool.id, month))
        ctx.data.put(key(pool.id, month), segments.encode(segment), "application/octet-stream")
        written.append(month)
    return written


@dataclass
class Ledger:
    """A pool's ledger as it was read: closed months as segments, the rest as events."""

    pool: Pool
    segments: list[Segment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def every(self) -> Iterator[Event]:
        """Every event, in no particular order."""
        for segment in self.segments:
            yield from segment.events(self.pool.system)
        yield from self.events

    def others(self) -> Iterator[Event]:
        """Every event but the games that the segments tell as columns."""
        for segment in self.segments:
            yield from segment.rest
        yield from self.events

    def games(self) -> Iterator[tuple[str, str]]:
        """Club and id of every game ever sent, one told twice perhaps twice; no event is made for it."""
        for segment in self.segments:
            if segment.plain is not None:
                clubs = [label[0] for label in segment.plain.labels]
                yield from zip(map(clubs.__getitem__, segment.plain.label), segment.plain.details.game_ids, strict=True)
        yield from ((event.game.club, event.game.game_id) for event in self.others() if event.game is not None)

    def games_of(self, players: Set[str]) -> Iterator[Game]:
        """The games that name one of these players, as they were ever told."""
        system = self.pool.system
        for segment in self.segments:
            yield from segment.with_both(system, players, players)
        for event in self.others():
            if event.game is not None and not players.isdisjoint(system.mentioned(event.game.content)):
                yield event.game


def read(ctx: Context, pool: Pool) -> Ledger:
    """The whole ledger: one object per closed month, items where there is no (whole) segment."""
    found = Ledger(pool)
    for month, closed in months(ctx, pool):
        segment = _segment(ctx, pool, month) if closed else None
        if segment is not None:
            found.segments.append(segment)
        else:
            found.events.extend(ledger.read_month(ctx.table, pool.id, month))
    return found


@dataclass
class Packed:
    """A month's segment as it is stored, unpacked anew whenever it is asked for: some 30 bytes a game."""

    body: bytes
    events: int
    others: list[Event]
    """Those that are about no game."""

    def __call__(self) -> Segment:
        """The segment itself."""
        return segments.decode(self.body)


def read_packed(ctx: Context, pool: Pool, open_months: Container[str] = ()) -> tuple[list[Packed], list[Event]]:
    """The whole ledger for a fold that goes month by month: closed months as they are stored, oldest first, and the
    events of the others.

    Args:
        open_months: told event by event even where they have a segment.
    """
    packed: list[Packed] = []
    events: list[Event] = []
    for month, closed in months(ctx, pool):
        body = ctx.data.get(key(pool.id, month)) if closed else None
        segment = None if body is None else _decoded(pool, month, body)
        if body is None or segment is None:
            events.extend(ledger.read_month(ctx.table, pool.id, month))
        elif month in open_months:
            events.extend(segment.events(pool.system))
        else:
            packed.append(Packed(body, len(segment), [event for event in segment.rest if event.game is None]))
    return packed, events


def _segment(ctx: Context, pool: Pool, month: str) -> Segment | None:
    body = ctx.data.get(key(pool.id, month))
    return None if body is None else _decoded(pool, month, body)


def _decoded(pool: Pool, month: str, body: bytes) -> Segment | None:
    try:
        return segments.decode(body)
    except SegmentError as error:
        _log.warning("damaged segment", extra={"pool": pool.id, "month": month, "error": str(error)})
        return None
