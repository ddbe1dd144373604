"""Appending to a pool's ledger and inbox, and reading them back."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from shared.ledger.calendar import next_month
from shared.ledger.events import Event, decode, encode
from shared.ledger.order import utc_month
from shared.store import keys
from shared.store.table import ABSENT, Delete, Operation, Put, Table


def _shard_text(event: Event) -> str:
    """What decides the shard: all events of one game, or one player, share it, so that they are read in their order."""
    return f"{event.game.club}#{event.game.game_id}" if event.game is not None else event.player


def inbox_shard(event: Event) -> int:
    """The shard of the inbox and ledger that an event belongs to."""
    return keys.shard(_shard_text(event))


def append(pool: str, event: Event) -> list[Operation]:
    """The two writes that accept an event: ledger and inbox. They belong in the transaction of what caused it."""
    number = inbox_shard(event)
    line = encode(event)
    month = utc_month(event.accepted_at)
    return [
        Put({"pk": keys.ledger(pool, month, number), "sk": event.id, "event": line}, ABSENT),
        Put({"pk": keys.inbox(pool, number), "sk": event.id, "event": line}, ABSENT),
    ]


def ahead(operations: Iterable[Operation]) -> list[Operation]:
    """The same writes, but what they put into an inbox is rated before whatever else waits there."""
    found: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Put) and operation.item["pk"].startswith(keys.INBOX):
            event = replace(decode(operation.item["event"]), ahead=True)
            operation = Put({**operation.item, "event": encode(event)}, operation.condition, operation.values)
        found.append(operation)
    return found


def read_inbox(table: Table, pool: str, limit: int) -> list[Event]:
    """The ``limit`` oldest of the waiting events, by when they were accepted; consistent.

    The oldest of all shards, and not those of one shard first: what is left behind would come late to the ratings, and
    each late result is a replay.
    """
    shards = [table.query(keys.inbox(pool, number), limit=limit) for number in range(keys.SHARDS)]
    oldest = heapq.merge(*shards, key=lambda item: str(item["sk"]))
    return [decode(item["event"]) for item in itertools.islice(oldest, limit)]


def removal(pool: str, event: Event) -> Delete:
    """Takes an applied event out of the inbox; one that is gone already is no error."""
    return Delete((keys.inbox(pool, inbox_shard(event)), event.id))


def pending(table: Table, pool: str) -> int:
    """How many events wait."""
    return sum(table.count(keys.inbox(pool, number)) for number in range(keys.SHARDS))


def read_month(table: Table, pool: str, month: str) -> Iterator[Event]:
    """The events accepted in a UTC month, in no particular order; page by page."""
    for line in lines(table, pool, month):
        yield decode(line)


def lines(table: Table, pool: str, month: str) -> Iterator[str]:
    """The same as they are stored, so that a search decodes only what it wants; all of one game in their order."""
    for number in range(keys.SHARDS):
        for item in table.query(keys.ledger(pool, month, number)):
            yield item["event"]


def months(first: int, last: int) -> Iterator[str]:
    """The UTC months from one instant to another, in order."""
    month, end = utc_month(first), utc_month(last)
    while month <= end:
        yield month
        year, number = next_month(int(month[:4]), int(month[5:]))
        month = f"{year:04d}-{number:02d}"
