"""Which games of a club have warnings: pointers, since nothing else finds them; the warnings stay with the game."""

from __future__ import annotations

from collections.abc import Iterator

from shared.store import keys
from shared.store.table import Delete, Operation, Put, Table

WARNING = "warning#"


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
