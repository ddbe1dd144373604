"""Keys and who may do what. A key is 256 random bits, shown once, stored as its SHA-256, found by one read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shared.ledger.order import to_datetime
from shared.problems import BadField, Problem, invalid
from shared.store import clubs, keys
from shared.store.clubs import ADMIN, KeyRecord
from shared.store.table import Busy, ConditionFailed, Item, Key, Table
from shared.usecases.context import Context

Scope = Literal["submit", "manage", "admin"]

KEY_BYTES = 32
PREFIX = "cl_"
LONGEST_KEY = 512


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    kind: Literal["club", "admin"]
    club: str
    """Whose key it is; ``admin`` for an admin."""
    scopes: frozenset[str]
    key_id: str
    acts_for: str
    """The club this request acts for: an admin may name another."""

    @property
    def is_admin(self) -> bool:
        """An admin may do all."""
        return self.kind == "admin"

    def may(self, scope: Scope) -> bool:
        """Whether the key has a scope."""
        return self.is_admin or scope in self.scopes

    def owns(self, club: str) -> bool:
        """Whether something of this club may be changed by this key."""
        return self.is_admin or club == self.club


def hash_of(key: str) -> str:
    """What is stored of a key. A plain hash suffices for 256 random bits: there is nothing to guess."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def new_key() -> str:
    """A fresh key."""
    return PREFIX + secrets.token_urlsafe(KEY_BYTES)


def unauthorised(detail: str) -> Problem:
    """401."""
    return Problem(401, "unauthorized", detail)


def _bearer(header: str | None) -> str:
    scheme, _, key = (header or "").strip().partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise unauthorised("This route needs a key: send `Authorization: Bearer <key>`.")
    if len(key) > LONGEST_KEY:
        raise unauthorised("This key is not known.")
    return key


def authenticate(
    ctx: Context,
    authorization: str | None,
    acts_for: str | None = None,
    also: Sequence[Key] = (),
    ahead: dict[Key, Item | None] | None = None,
) -> Caller:
    """Who this is. One read; once a day a key's first request also records the day.

    Args:
        authorization: the header's value.
        acts_for: the club an admin names by ``?club=``; read together with the key.
        also: items that the route will need: read together with the key.
        ahead: they are put here, or None for one that does not exist.

    Raises:
        Problem: 401 without a key or with one that is unknown or revoked; 403 when a club's key names another club;
            422 when an admin names a club that does not exist.
    """
    digest = hash_of(_bearer(authorization))
    wanted = [keys.secret(digest), *also]
    if acts_for is not None:
        wanted.append(keys.club(acts_for))
    found = ctx.table.batch_get(wanted) if len(wanted) > 1 else {}
    item = found.get(wanted[0]) if found or len(wanted) > 1 else ctx.table.get(*wanted[0])
    if item is None or not hmac.compare_digest(str(item["hash"]).encode(), digest.encode()):
        raise unauthorised("This key is not known.")
    if ahead is not None:
        ahead.update((key, found.get(key)) for key in also)
    scopes, club = frozenset(item["scopes"]), str(item["club"])
    is_admin = "admin" in scopes and club == ADMIN
    if acts_for is not None and acts_for != club:
        if not is_admin:
            raise Problem(403, "forbidden", "This key belongs to another club.")
        if keys.club(acts_for) not in found:
            raise unknown_club("club")
    _record_use(ctx, digest, item.get("last_used_on"))
    return Caller("admin" if is_admin else "club", club, scopes, str(item["key_id"]), acts_for or club)


def unknown_club(field: str) -> Problem:
    """422: a club that does not exist is named."""
    return invalid([BadField(field, "unknown-club", "There is no such club.")])


def _record_use(ctx: Context, digest: str, last_used_on: str | None) -> None:
    """Coarse on purpose: a day tells whether a key is still in use, and costs one write a day."""
    today = to_datetime(ctx.clock()).date().isoformat()
    if last_used_on == today:
        return
    try:
        ctx.table.write(clubs.used(digest, today))
    except (ConditionFailed, Busy):
        return


def install_admin_key(table: Table, key: str, created_at: int = 0) -> str:
    """Make this key an admin's, as the first key of a deployment; installing it again changes nothing.

    Returns:
        the key's id.
    """
    if not key.strip() or key != key.strip() or len(key) > LONGEST_KEY:
        raise ValueError(f"an admin key has 1 to {LONGEST_KEY} characters and no blanks around it")
    digest = hash_of(key)
    key_id = f"admin-{digest[:12]}"
    table.transact(clubs.key_operations(KeyRecord(digest, ADMIN, key_id, ("admin",), "first admin key", created_at)))
    return key_id
