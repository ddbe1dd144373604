"""Clubs and their keys. A key is stored only as its SHA-256; what the list of keys shows lies beside the club."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.store import keys
from shared.store.table import ABSENT, PRESENT, Delete, Item, Operation, Put, Table, Update

ADMIN = "admin"
"""The club that an admin acts for unless another is named. It exists without being made."""


@dataclass(frozen=True)
class KeyRecord:
    """What is known of a key: everything but the key."""

    hash: str
    club: str
    key_id: str
    scopes: tuple[str, ...]
    label: str
    created_at: int
    last_used_on: str | None = None
    """UTC day of the last use, ``2026-11-03``."""


def put(club: str, name: str, *, new: bool) -> list[Operation]:
    """Make a club, or name it anew."""
    pk, sk = keys.club(club)
    return [
        Put({"pk": pk, "sk": sk, "club": club, "name": name}, ABSENT if new else PRESENT),
        Put({"pk": keys.clubs(), "sk": club, "name": name}),
    ]


def name(table: Table, club: str) -> str | None:
    """A club's name, or None when there is no such club. One round trip."""
    item = table.get(*keys.club(club))
    return str(item["name"]) if item else None


def existing(table: Table, clubs: Iterable[str]) -> set[str]:
    """Which of these clubs exist. One round trip per 100."""
    wanted = set(clubs)
    found = {str(item["club"]) for item in table.batch_get([keys.club(c) for c in sorted(wanted)]).values()}
    return found | (wanted & {ADMIN})


def names(table: Table) -> dict[str, str]:
    """All clubs and their names, by id."""
    return {str(item["sk"]): str(item["name"]) for item in table.query(keys.clubs())}


# -- keys ----------------------------------------------------------------------------------------------------------
def key_operations(record: KeyRecord) -> list[Operation]:
    """Store a key: what it may do, found by its hash; and its line in the club's list."""
    pk, sk = keys.secret(record.hash)
    shown = {"key_id": record.key_id, "scopes": list(record.scopes), "hash": record.hash, "club": record.club}
    line_pk, line_sk = keys.club_key(record.club, record.key_id)
    return [
        Put({"pk": pk, "sk": sk, **shown}),
        Put({"pk": line_pk, "sk": line_sk, **shown, "label": record.label, "created_at": record.created_at}),
    ]


def list_keys(table: Table, club: str) -> list[KeyRecord]:
    """A club's keys, oldest first. Two round trips."""
    lines = list(table.query(keys.club(club)[0], begins="KEY#"))
    uses = table.batch_get([keys.secret(line["hash"]) for line in lines])
    found = [_record(line, uses.get(keys.secret(line["hash"]), {})) for line in lines]
    return sorted(found, key=lambda k: (k.created_at, k.key_id))


def _record(line: Item, secret: dict[str, Any]) -> KeyRecord:
    return KeyRecord(
        hash=line["hash"],
        club=line["club"],
        key_id=line["key_id"],
        scopes=tuple(line["scopes"]),
        label=line["label"],
        created_at=line["created_at"],
        last_used_on=secret.get("last_used_on"),
    )


def find_key(table: Table, club: str, key_id: str) -> KeyRecord | None:
    """One key of a club by its id."""
    line = table.get(*keys.club_key(club, key_id))
    return _record(line, {}) if line else None


def removal(record: KeyRecord) -> list[Operation]:
    """Revoke a key: from the next request on nobody finds it."""
    return [
        Delete(keys.secret(record.hash)),
        Delete(keys.club_key(record.club, record.key_id), PRESENT),
    ]


def used(key_hash: str, day: str) -> Update:
    """Record the day of a key's last use; never brings a revoked key back."""
    return Update(keys.secret(key_hash), "SET #last_used_on = :day", {"day": day}, PRESENT)
