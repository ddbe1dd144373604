"""Closing months: ratings brought up to the closing, the month's list frozen for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from shared.ledger import calendar, replay
from shared.ledger.events import Event
from shared.ledger.fold import Closed, Fold
from shared.ledger.segments import Segment
from shared.ratings.base import MICROSECONDS, PlayerState
from shared.store import keys, ledger, pools
from shared.store import rated as store
from shared.store.pools import Pool
from shared.store.table import ConditionFailed, Update
from shared.usecases import compact, rating, wake
from shared.usecases.context import Context

SETTLING = 60 * MICROSECONDS
"""A list is frozen only so long after the closing by the real clock: what was accepted just before is stored then."""


def frozen_key(pool: str, month: str) -> str:
    """Where a frozen list is kept: server-made ids and numbers, no names."""
    return f"frozen/{pool}/{month}"


def close(ctx: Context, pool_id: str, now: int | None = None) -> list[str]:
    """Close a pool's months that have ended by ``now`` in its time zone; the months frozen by this call.

    Twice, late or missed: the same ratings, the same lists.
    """
    moment = ctx.clock() if now is None else now
    rating.apply(ctx, pool_id, moment)
    pool = pools.load(ctx.table, pool_id)
    if pool is None:
        raise KeyError(pool_id)
    frozen = freeze(ctx, pool, moment)
    compact.compact(ctx, pool)
    if frozen:
        wake.ask(ctx, pool_id)
    return frozen


def freeze(ctx: Context, pool: Pool, now: int) -> list[str]:
    """Freeze the list of every month that ended since the pool was opened and has none yet.

    ``now`` ahead of the clock (a schedule fired by hand, to see what it will do) has nothing to wait for.
    """
    clock = ctx.clock()
    limit = now if now > clock else min(now, clock - SETTLING)
    key = keys.frozen(pool.id)
    item = ctx.table.get(*key) or {}
    after = item.get("until", pool.created_at)
    done: list[str] = []
    for at, day in calendar.closings(after, limit, pool.time_zone):
        month = calendar.closed_month(day)
        if ctx.data.get(frozen_key(pool.id, month)) is None:
            store.put_checkpoint(ctx.data, frozen_key(pool.id, month), states_at(ctx, pool, at))
        try:
            ctx.table.write(Update(key, "SET #until = :at", {"at": at}, "attribute_not_exists(#until) OR #until < :at"))
        except ConditionFailed:
            continue
        done.append(month)
    return done


def states_at(ctx: Context, pool: Pool, closing: int) -> Mapping[str, PlayerState]:
    """The states after a closing by the events that were accepted before its instant.

    Where nothing accepted later is in yet, the checkpoint of that closing is just that; else the ledger is folded.
    """
    cursor = store.read_cursor(ctx.table, pool.id)
    if cursor.newest < closing and not ledger.pending(ctx.table, pool.id):
        for checkpoint in store.read_index(ctx.table, pool.id).checkpoints:
            if checkpoint.at == closing:
                states = store.get_checkpoint(ctx.data, checkpoint.key)
                if states is not None:
                    return states
    return fold_until(pool, *compact.read_packed(ctx, pool), closing)


def fold_until(
    pool: Pool, months: Sequence[compact.Packed], events: Iterable[Event], at: int
) -> Mapping[str, PlayerState]:
    """The states right after a closing by what a ledger accepted before it, under the rules that this tells.

    Args:
        months: read when the fold reaches them: no more than a month or two are unpacked at a time.
        events: of the months that are not among these.
    """
    told = [event for event in events if event.accepted_at < at]
    others = [*(event for month in months for event in month.others if event.accepted_at < at), *told]
    rules = replay.rules_in(pool.system, others) if any(e.kind == "rules" for e in others) else pool.rules
    fold = Fold(pool.system, rules, pool.time_zone)
    story = replay.story_of_segments(pool.system, rules, [partial(_before, month, at) for month in months], told)
    for what in fold.stream(story, closings_after=None, closed_until=at):
        if isinstance(what, Closed) and what.at == at:
            return dict(what.states)
    return {}


def _before(month: compact.Packed, instant: int) -> Segment:
    return month().before(instant)


def is_frozen(pool: Pool, closing: int) -> bool:
    """Whether the list of a closing is frozen (else reconstructed): the pool was open before it."""
    return closing > pool.created_at


def frozen_states(ctx: Context, pool: str, month: str) -> dict[str, PlayerState] | None:
    """The states of a frozen list, or None when there is none."""
    return store.get_checkpoint(ctx.data, frozen_key(pool, month))


def closing_of(month: str, time_zone: str) -> int:
    """The closing that ends a month."""
    year, number = calendar.next_month(int(month[:4]), int(month[5:]))
    return calendar.closing_instant(year, number, time_zone)
