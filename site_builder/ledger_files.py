"""``/{pool}/ledger/``: everything a reader needs to compute the ratings himself. Server-made ids, no names, no texts.

A segment (JSON lines, an event each, in the order of acceptance) per month in which events were accepted, and an index
that names them with their checksums, the position, the closings applied and the state hash they must give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from shared.ledger import calendar
from shared.ledger.events import Event, encode
from shared.ledger.order import iso, utc_month
from shared.ratings.base import MICROSECONDS
from shared.store import ledger
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.store.rated import Cursor
from shared.usecases import rating
from shared.usecases.context import Context
from site_builder import data, site
from site_builder.views import LedgerPage, LedgerSegment, Page, PoolView, SiteView

LINES = "application/x-ndjson; charset=utf-8"
SETTLED = 3600 * MICROSECONDS
"""A month's segment changes no more this long after the month's end."""


class Moving(Exception):
    """The pool moved while its ledger was read; the next publication writes it."""


def segment_path(pool: str, month: str) -> str:
    """Where a month's segment is."""
    return f"{pool}/ledger/{month}.jsonl"


def months_of(pool: Pool, now: int) -> list[str]:
    """The UTC months in which events can have been accepted."""
    month, last = utc_month(pool.created_at), utc_month(now)
    found = []
    while month <= last:
        found.append(month)
        year, number = calendar.next_month(int(month[:4]), int(month[5:]))
        month = f"{year:04d}-{number:02d}"
    return found


def _settled(month: str, now: int) -> bool:
    year, number = calendar.next_month(int(month[:4]), int(month[5:]))
    return calendar.closing_instant(year, number, "UTC") + SETTLED < now


def _body(events: list[Event]) -> bytes:
    return "".join(encode(event) + "\n" for event in sorted(events, key=lambda e: e.id)).encode()


def ledger_pages(
    ctx: Context, shared: SiteView, view: PoolView, pool: Pool, cursor: Cursor, handles: dict[str, str]
) -> Iterator[Page]:
    """Segments that are new or still grow, then the index, and the page that tells how to use them.

    Args:
        handles: server-made id → handle of everybody in the pool, for those who look for somebody.

    Raises:
        Moving: events were rated meanwhile, so that hash and segments would not belong together.
    """
    now = ctx.clock()
    known = _known(ctx, pool.id)
    entries: list[dict[str, Any]] = []
    pages: list[Page] = []
    settled_before = {month: known[month] for month in known if known[month]["settled"]}
    read = {
        month: list(ledger.read_month(ctx.table, pool.id, month))
        for month in months_of(pool, now)
        if month not in settled_before
    }
    # Read after the ledger: what was accepted meanwhile waits by now, or was rated, which has moved the cursor.
    waiting = rating.waiting(ctx, pool.id)
    for month in months_of(pool, now):
        if month in settled_before:
            entries.append(settled_before[month])
            continue
        events = [e for e in read[month] if e.id not in waiting]
        body = _body(events)
        settled = _settled(month, now) and not waiting
        digest = hashlib.sha256(body).hexdigest()
        entries.append({"month": month, "events": len(events), "sha256": digest, "settled": settled})
        pages.append(Page(segment_path(pool.id, month), LINES, body))
    moved = rated_store.read_cursor(ctx.table, pool.id).version != cursor.version
    if moved or sum(entry["events"] for entry in entries) != cursor.position:
        raise Moving(pool.id)
    yield from pages
    names = {sid: handles[sid] for sid in sorted(handles)}
    yield Page(f"{pool.id}/ledger/players.json", data.JSON, data.to_json(names))
    index = {
        "pool": pool.id,
        "system": pool.system.name,
        "time_zone": pool.time_zone,
        "opened_at": iso(pool.created_at),
        "closed_until": None if cursor.closed_until is None else iso(cursor.closed_until),
        "position": cursor.position,
        "state_hash": cursor.hash,
        "segments": [{**e, "path": f"/{segment_path(pool.id, e['month'])}"} for e in entries],
    }
    yield Page(f"{pool.id}/ledger/index.json", data.JSON, data.to_json(index))
    segments = tuple(LedgerSegment(e["month"], e["events"], e["sha256"], e["settled"]) for e in entries)
    yield from site.ledger_pages(shared, view, LedgerPage(segments, cursor.position, cursor.hash))


def _known(ctx: Context, pool: str) -> dict[str, dict[str, Any]]:
    """The segments of the last index."""
    body = ctx.site.get(f"{pool}/ledger/index.json")
    if body is None:
        return {}
    index = msgspec.json.decode(body)
    return {e["month"]: {k: v for k, v in e.items() if k != "path"} for e in index["segments"]}
