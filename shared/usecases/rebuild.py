"""Ratings from the ledger alone: asked for here, done by the rater."""

from __future__ import annotations

from typing import Any

from shared.ledger.events import Event, encode, event_id
from shared.store import keys, ledger
from shared.store.pools import Pool
from shared.store.table import Put
from shared.usecases.context import Context


def request(ctx: Context, pool: Pool) -> dict[str, Any]:
    """Ask the rater to fold the whole ledger anew and to compare all that is stored with it."""
    now = ctx.clock()
    event = Event(event_id(now, ctx.token(12)), "rebuild", now)
    ctx.table.write(Put({"pk": keys.inbox(pool.id, ledger.inbox_shard(event)), "sk": event.id, "event": encode(event)}))
    return {"pool": pool.id, "status": "accepted"}
