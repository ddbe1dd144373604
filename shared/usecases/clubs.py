"""Clubs and their keys: making, naming, giving out, revoking (an admin's); and who plays for a club."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ledger.order import iso
from shared.problems import not_found
from shared.store import clubs, keys, pools
from shared.store.clubs import ADMIN, KeyRecord
from shared.store.table import Busy, ConditionFailed
from shared.usecases import access, published
from shared.usecases.context import Context
from shared.usecases.pools import republish
from shared.usecases.reading import decode_cursor, encode_cursor

KEY_ID_LENGTH = 10
ATTEMPTS = 3
ROSTER_PAGE = 1_000


def put(ctx: Context, club: str, name: str) -> bool:
    """Make a club or name it anew. Returns whether it is new."""
    for _ in range(ATTEMPTS):
        known = clubs.name(ctx.table, club)
        if known == name:
            return False
        try:
            ctx.table.transact(clubs.put(club, name, new=known is None))
        except ConditionFailed:
            continue
        if known is not None:
            _tell_pools(ctx, club)
        return known is None
    raise Busy("club")


def _tell_pools(ctx: Context, club: str) -> None:
    """The pages of the pools in which the club plays name it."""
    for pool in pools.all_ids(ctx.table):
        last = published.load_cached(ctx, pool)
        if last is not None and any(f"club:{club}" in row.state.labels or club in row.clubs for row in last.rows):
            ctx.table.write(republish(ctx, pool))
            ctx.ask_to_publish(pool, 0)


def require(ctx: Context, club: str) -> None:
    """Raise 404 unless the club exists."""
    if club != ADMIN and clubs.name(ctx.table, club) is None:
        raise not_found("club")


def called(ctx: Context, club: str) -> str:
    """A club's name; its id when it has none (the club ``admin``)."""
    return clubs.name(ctx.table, club) or club


def give_key(ctx: Context, club: str, scopes: Sequence[str], label: str) -> dict[str, Any]:
    """A new key of a club (which exists). The answer is the only place where the key itself is ever seen."""
    key = access.new_key()
    record = KeyRecord(
        access.hash_of(key), club, ctx.token(KEY_ID_LENGTH), tuple(scopes), label, created_at=ctx.clock()
    )
    ctx.table.transact(clubs.key_operations(record))
    return {"key_id": record.key_id, "key": key, "scopes": list(scopes)}


def list_keys(ctx: Context, club: str) -> list[dict[str, Any]]:
    """A club's keys without their secrets."""
    return [
        {
            "key_id": record.key_id,
            "scopes": list(record.scopes),
            "label": record.label,
            "created_at": iso(record.created_at),
            "last_used_on": record.last_used_on,
        }
        for record in clubs.list_keys(ctx.table, club)
    ]


def revoke(ctx: Context, club: str, key_id: str) -> None:
    """Revoke a key at once. Raises 404 when the club has no such key."""
    record = clubs.find_key(ctx.table, club, key_id)
    if record is None:
        raise not_found("key")
    try:
        ctx.table.transact(clubs.removal(record))
    except ConditionFailed:
        raise not_found("key") from None


def players(ctx: Context, club: str, cursor: str | None) -> dict[str, Any]:
    """A page of a club's players, by name. Raises 422 for a cursor that is none."""
    after = decode_cursor(cursor)
    found = list(ctx.table.query(keys.roster(club), after=after, limit=ROSTER_PAGE))
    return {
        "players": [{"player": item["handle"], "name": item["name"]} for item in found],
        "next": encode_cursor(found[-1]["sk"]) if len(found) == ROSTER_PAGE else None,
    }
