"""Waking the publisher: once per pool and delay, however many results come in."""

from __future__ import annotations

from shared.ratings.base import MICROSECONDS
from shared.store import keys
from shared.store.table import ConditionFailed, Update
from shared.usecases.context import Context

LOST = 30 * MICROSECONDS
"""A wake-up that has not been answered so long after it was due counts as lost."""

WHOLE_FILES_EVERY = 3600 * MICROSECONDS
"""Files of a whole pool (CSV, sitemap, statistics) are rewritten at most so often, and at closings."""
GATHERED = 30
"""A stack that gathers changes for fewer seconds than these is one machine's."""


def ask(ctx: Context, pool: str) -> None:
    """Ask for a publication after the usual delay, unless one is on its way already."""
    now = ctx.clock()
    due = now + ctx.publish_delay * MICROSECONDS
    try:
        ctx.table.write(
            Update(
                keys.published(pool),
                "SET #asked = :due",
                {"due": due, "lost": now - LOST},
                "attribute_not_exists(#asked) OR #asked < :lost",
            )
        )
    except ConditionFailed:
        return
    ctx.ask_to_publish(pool, ctx.publish_delay)


def answered(ctx: Context, pool: str) -> None:
    """A publication begins: whatever changes from now on asks anew."""
    ctx.table.write(Update(keys.published(pool), "REMOVE #asked"))


def whole_files_every(ctx: Context) -> int:
    """How often the files of a whole pool are written, in microseconds.

    Hourly; where pages may follow each other by the second (one machine), so may they.
    """
    return WHOLE_FILES_EVERY if ctx.publish_delay >= GATHERED else ctx.publish_delay * MICROSECONDS


def is_behind(ctx: Context, pool: str) -> bool:
    """Whether anything has changed since the last publication, or files of the whole pool have waited long enough."""
    if next(iter(ctx.table.query(keys.outbox(pool), limit=1)), None) is not None:
        return True
    last = ctx.table.get(*keys.published(pool)) or {}
    whole_at, published_at = last.get("whole_at"), last.get("published_at")
    if whole_at is None or published_at is None or whole_at >= published_at:
        return False
    return bool(whole_at + whole_files_every(ctx) <= ctx.clock())
