"""What is sent but not yet rated, or rated but not yet published: read from the table, as an operator would."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.store import keys


@dataclass(frozen=True)
class PoolState:
    """How far one pool is."""

    pool: str
    inbox: int  # entries seen; an inbox of thousands is not counted to its end
    position: int
    published: int
    outbox: bool

    @property
    def is_rated(self) -> bool:
        """Whether everything sent so far is in the ratings."""
        return self.inbox == 0

    @property
    def is_published(self) -> bool:
        """Whether the site shows the ratings as they are."""
        return self.published == self.position and not self.outbox

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left to do."""
        return self.is_rated and self.is_published


def unsettled(states: Iterable[PoolState]) -> list[PoolState]:
    """Those that have something left to do."""
    return [state for state in states if not state.is_settled]


def pool_states(client: Any, table: str) -> list[PoolState]:
    """The state of every pool, in strongly consistent reads."""

    def some(partition: str, limit: int) -> list[dict[str, Any]]:
        answer = client.query(
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}},
            ConsistentRead=True,
            Limit=limit,
        )
        items: list[dict[str, Any]] = answer["Items"]
        return items

    def position(key: tuple[str, str]) -> int:
        answer = client.get_item(TableName=table, Key={"pk": {"S": key[0]}, "sk": {"S": key[1]}}, ConsistentRead=True)
        value = answer.get("Item", {}).get("position", {})
        return int(value.get("N", value.get("S", "0")))

    states = []
    for item in some(keys.pools(), 1000):
        pool = item["sk"]["S"]
        # The inbox first: the position that is read afterwards then holds at least what was in it.
        inbox = sum(len(some(keys.inbox(pool, shard), 100)) for shard in range(keys.SHARDS))
        outbox = bool(some(keys.outbox(pool), 1))
        states.append(PoolState(pool, inbox, position(keys.cursor(pool)), position(keys.published(pool)), outbox))
    return states
