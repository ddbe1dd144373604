"""What of a club nothing else finds: games with warnings (pointers), and files of which rows were not taken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.store import keys
from shared.store.imports import KEPT
from shared.store.table import Delete, Item, Key, Operation, Put, Table

WARNING = "warning#"
ROWS = "rows#"


def mark(pool: str, club: str, game_id: str, *, before: bool, now: bool) -> list[Operation]:
    """The write when a game begins or ends to have warnings; none when that stays as it was."""
    pk, sk = keys.attention(club), f"{WARNING}{pool}#{game_id}"
    if before == now:
        return []
    return [Put({"pk": pk, "sk": sk}) if now else Delete((pk, sk))]


def warned(table: Table, club: str) -> Iterator[tuple[str, str]]:
    """The club's games with warnings: (pool, game id), by pool."""
    for item in table.query(keys.attention(club), begins=WARNING):
        pool, game_id = item["sk"].removeprefix(WARNING).split("#")
        yield pool, game_id


def left(pool: str, club: str, filename: str, told: Mapping[str, Any], now: int) -> Put:
    """Rows of a file wait to be mended; one line a file and pool, as long as imports are kept.

    Args:
        told: what the line says, as JSON.
        now: instant.
    """
    pk, sk = _file(pool, club, filename)
    return Put(
        {"pk": pk, "sk": sk, "told": json.dumps(told, ensure_ascii=False), "at": now, "ttl": now // 1_000_000 + KEPT}
    )


def taken(pool: str, club: str, filename: str) -> Delete:
    """The file came again, and all its rows were taken."""
    return Delete(_file(pool, club, filename))


def files(table: Table, club: str) -> list[dict[str, Any]]:
    """The club's files with rows that were not taken, the latest first."""
    found: list[Item] = sorted(table.query(keys.attention(club), begins=ROWS), key=lambda item: -int(item["at"]))
    return [json.loads(item["told"]) for item in found]


def naming(table: Table, club: str, pattern: re.Pattern[bytes]) -> list[Key]:
    """The keys of the club's files of which the lines name somebody."""
    items = table.query(keys.attention(club), begins=ROWS)
    return [(item["pk"], item["sk"]) for item in items if pattern.search(item["told"].encode())]


def _file(pool: str, club: str, filename: str) -> tuple[str, str]:
    return keys.attention(club), f"{ROWS}{pool}#{keys.digest(filename)}"
