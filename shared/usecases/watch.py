"""What an operator should hear of, measured by the sweep: what waits too long, and months that nobody closed."""

from __future__ import annotations

import datetime as dt
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.ledger import calendar
from shared.ledger.order import to_instant
from shared.ratings.base import MICROSECONDS
from shared.store import keys, pools
from shared.usecases.context import Context

DAY = 24 * 3600 * MICROSECONDS
INSTANT_DIGITS = 16
"""Ids of events and entries of the outbox begin with their instant in so many hex digits."""
DEEPEST_CALLS = 12
"""So many of the innermost calls of an unexpected error are logged."""


@dataclass(frozen=True)
class Watch:
    """The worst over all pools. No pool is named here: a metric costs by its dimensions."""

    oldest_unrated: int = 0
    """Seconds since the oldest event that waits to be rated was accepted; 0: none waits."""
    oldest_unpublished: int = 0
    """Seconds since the oldest change that no page shows yet; 0: the site is up to date."""
    months_unclosed: int = 0
    """Pools whose last month ended a day ago or more and has no frozen list."""


def look(ctx: Context, pool_ids: Iterable[str], now: int) -> Watch:
    """Look at these pools. Seven reads of one item each a pool."""
    unrated = unpublished = unclosed = 0
    for pool in pool_ids:
        inboxes = (keys.inbox(pool, number) for number in range(keys.SHARDS))
        unrated = max(unrated, *(_age(ctx, partition, now) for partition in inboxes))
        unpublished = max(unpublished, _age(ctx, keys.outbox(pool), now))
        unclosed += _is_unclosed(ctx, pool, now)
    return Watch(unrated, unpublished, unclosed)


def _age(ctx: Context, partition: str, now: int) -> int:
    """Seconds since the oldest entry of a partition whose sort keys begin with an instant."""
    oldest = next(iter(ctx.table.query(partition, limit=1)), None)
    if oldest is None:
        return 0
    return max(0, now - int(oldest["sk"][:INSTANT_DIGITS], 16)) // MICROSECONDS


def _is_unclosed(ctx: Context, pool_id: str, now: int) -> bool:
    found = ctx.table.batch_get([keys.pool(pool_id), keys.frozen(pool_id)])
    if keys.pool(pool_id) not in found:
        return False
    pool = pools.from_item(found[keys.pool(pool_id)])
    frozen_until = int(found.get(keys.frozen(pool_id), {}).get("until", pool.created_at))
    return next(calendar.closings(frozen_until, now - DAY, pool.time_zone), None) is not None


def schedule_time(at: Any, otherwise: int) -> int:
    """The instant for which a schedule was due, when its event says one."""
    if not isinstance(at, str):
        return otherwise
    try:
        moment = dt.datetime.fromisoformat(at.replace("Z", "+00:00"))
    except ValueError:
        return otherwise
    return to_instant(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))


def fault(error: Exception) -> dict[str, Any]:
    """What a log may say of an unexpected error: of what kind it is and where it happened.

    Its message may hold what people sent, so it is left out.
    """
    where = [f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    return {"error": type(error).__name__, "where": where[-DEEPEST_CALLS:]}
