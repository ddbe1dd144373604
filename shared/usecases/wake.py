"""Waking the publisher: once per pool and delay, however many results come in."""

from __future__ import annotations

from shared.ratings.base import MICROSECONDS
from shared.store import keys
from shared.store.table import ConditionFailed, Update
from shared.usecases.context import Context

LOST = 30 * MICROSECONDS
"""A wake-up that has not been answered so long after it was due counts as lost."""


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


def is_behind(ctx: Context, pool: str) -> bool:
    """Whether anything has changed since the last publication."""
    return next(iter(ctx.table.query(keys.outbox(pool), limit=1)), None) is not None
