"""Previews: what a submission, correction, void or merge would change, before it is sent. Stores nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.ledger import calendar
from shared.ledger.events import Event
from shared.ledger.lists import MAIN, collate_plain, ordered, places, variants
from shared.problems import BadField, Problem, invalid
from shared.ratings.base import PlayerState
from shared.store import keys, ledger, people, pools, rated
from shared.store.pools import Pool
from shared.store.table import Busy, ConditionFailed, Operation, Put, Update
from shared.usecases.context import Context
from shared.usecases.drafts import Answer

LOOKS = 5
"""How often a preview is begun again when the rater goes on meanwhile."""


def preview(ctx: Context, pool: Pool, events: Sequence[Event], handles: Mapping[str, str] | None = None) -> Answer:
    """The effects of events that are not stored, on the pool as it stands once all that waits is rated.

    Args:
        handles: handle → server-made id of those whom the events would register.

    Raises:
        Busy: a replay is being written by the rater; in a moment there will be something to look at.
    """
    from shared.usecases import rating

    for _ in range(LOOKS):
        if rating.apply(ctx, pool.id, chores=False).left:
            raise Busy("replay")
        pool = pools.load(ctx.table, pool.id) or pool
        with contextlib.suppress(rated.StaleView):
            effects = rating.simulate(ctx, pool, events)
            if rated.read_cursor(ctx.table, pool.id).version == effects.cursor.version:
                break  # nothing was rated while it was looked at
    else:
        raise Busy("preview")
    today = calendar.day_of(ctx.clock(), pool.time_zone).toordinal()
    place = (_places(pool, effects.before, today), _places(pool, effects.after, today))
    named = people.persons(ctx.table, effects.changed)
    fresh = pool.system.start(None, pool.settings)
    rows: list[dict[str, Any]] = []
    new = {sid: handle for handle, sid in (handles or {}).items()}
    for sid in effects.changed:
        was, now = effects.before.get(sid), effects.after.get(sid)
        one, two = was or fresh, now or fresh
        rows.append(
            {
                "player": named[sid].handle if sid in named else new.get(sid, sid),
                "before": pool.system.present(one.rating, one.index) if was is not None else None,
                "after": pool.system.present(two.rating, two.index) if now is not None else None,
                "change": pool.system.present_change((one.rating, one.index), (two.rating, two.index)),
                "place_before": place[0].get(sid),
                "place_after": place[1].get(sid),
            }
        )
    rows.sort(key=lambda r: (r["place_after"] or 10**9, r["player"]))
    told: dict[str, Any] = {"games_rerated": effects.games_rerated, "players": rows}
    if effects.held:
        told["held"] = [{"game": ":".join(ref), "reason": reason} for ref, reason in effects.held]
    return Answer(200, {"effects": told, "preview_token": f"v{effects.cursor.version}"})


def _places(pool: Pool, states: Mapping[str, PlayerState], today: int) -> dict[str, int]:
    """Places of who stands in the list, as it is published. They need no names: equal ratings share one."""
    order = ordered(pool.system, states, {}, collate_plain)
    listed = variants(pool.system, pool.settings, states, order, today)
    return places(pool.system, states, [sid for sid in order if listed[sid] == MAIN])


def guard(ctx: Context, pool: Pool, token: str) -> Operation:
    """The condition that the pool has not moved since the preview.

    Raises:
        Problem: 422 for a token that is none, 409 when something waits that the preview did not know.
    """
    version = token[1:]
    if not token.startswith("v") or not version.isascii() or not version.isdigit() or len(version) > 18:
        raise invalid([BadField("preview_token", "invalid", "This is not a token of a preview.")])
    if ledger.pending(ctx.table, pool.id):
        raise moved()
    # Moves the version itself, so that of two commits that rest on one preview the second is refused.
    if int(version) == 0:
        return rated.put_cursor(rated.Cursor(pool.id), 0)
    due = calendar.last_closing(ctx.clock(), pool.time_zone)  # a closing that is due by now moves the pool too
    known = {"known": int(version), "next": int(version) + 1, "due": due}
    condition = "#version = :known AND #closed_until >= :due"
    return Update(keys.cursor(pool.id), "SET #version = :next", known, condition)


def guarded(ctx: Context, pool: Pool, token: str, operations: Iterable[Operation]) -> list[Operation]:
    """These writes on the word of a preview: refused when the pool has moved, else exactly what was previewed.

    What is stored between this look at the inbox and the writes is not rated yet, and will be rated after them: the
    writes move the cursor's version, so no run of the rater that has not seen them can come to count.
    """
    return [*ledger.ahead(operations), guard(ctx, pool, token)]


def moved() -> Problem:
    """409: the pool has moved since the preview."""
    return Problem(409, "pool-moved", "The pool has changed since the preview; please look at a new preview.")


def raise_if_moved(operations: Sequence[Operation], failure: ConditionFailed) -> None:
    """The problem when the failed condition was the preview's."""
    for number in failure.failed:
        operation = operations[number]
        pk, sk = (operation.item["pk"], operation.item["sk"]) if isinstance(operation, Put) else operation.key
        if pk.startswith("POOL#") and sk == "CURSOR":
            raise moved() from failure
