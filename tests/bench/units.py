"""What calls of DynamoDB and S3 cost, counted at the client: request and capacity units per call and per key.

Sizes and prices as DynamoDB's developer guide says: a write unit per KB (two in a transaction), half a read unit per
4 KB (one when consistent). An item's size is that of its names and values, a number a digit pair and a byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from tests.integration.memory import updated

Wire = Mapping[str, Any]
WRITE_UNIT, READ_UNIT = 1024, 4096


def size_of(item: Wire) -> int:
    """Bytes of an item in wire format."""
    return sum(len(name.encode()) + _value(value) for name, value in item.items())


def _value(value: Wire) -> int:
    ((kind, plain),) = value.items()
    if kind == "S":
        return len(plain.encode())
    if kind == "N":
        return len(plain) // 2 + 2
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "SS":
        return 3 + sum(len(text.encode()) for text in plain)
    if kind == "L":
        return 3 + sum(1 + _value(entry) for entry in plain)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value(entry) for name, entry in plain.items())
    return len(plain)


Look = Callable[[Wire], Wire | None]
"""The item that stands under a key, or None."""


def _nothing(_: Wire) -> None:
    return None


@dataclass(frozen=True)
class Written:
    """A write of one item: its partition key, and the units it takes."""

    pk: str
    units: int


def written(operation: str, arguments: Wire, look: Look = _nothing) -> list[Written]:
    """What a call writes, item by item in the call's order; called before it is carried out.

    Args:
        look: finds the items that stand, since an update or a deletion costs by the size of what it meets.
    """
    match operation:
        case "put_item":
            entries, units = [("Put", arguments)], 1
        case "update_item":
            entries, units = [("Update", arguments)], 1
        case "delete_item":
            entries, units = [("Delete", arguments)], 1
        case "batch_write_item":
            ((_, requests),) = arguments["RequestItems"].items()
            entries, units = [next(iter(request.items())) for request in requests], 1
        case "transact_write_items":
            entries, units = [next(iter(entry.items())) for entry in arguments["TransactItems"]], 2
        case _:
            return []
    return [_one(kind, entry, units, look) for kind, entry in entries]


def _one(kind: str, entry: Wire, units: int, look: Look) -> Written:
    key = entry.get("Item") or entry["Key"]
    there = look(key)
    size = max(size_of(key), size_of(there or {}))
    if kind == "Update":  # the larger of the item before and after
        size = max(size, size_of(updated(entry, there)))
    return Written(key["pk"]["S"], units * max(1, ceil(size / WRITE_UNIT)))


def read(operation: str, arguments: Wire, answer: Wire) -> list[tuple[str, float]]:
    """(partition key, read units) of what a call has read."""
    match operation:
        case "get_item":
            found = size_of(answer.get("Item", {}))
            return [(arguments["Key"]["pk"]["S"], _units(found, arguments))]
        case "batch_get_item":
            ((name, request),) = arguments["RequestItems"].items()
            items = {(i["pk"]["S"], i["sk"]["S"]): i for i in answer["Responses"].get(name, ())}
            left = [key["pk"]["S"] for key in answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys", ())]
            wanted = [(key["pk"]["S"], key["sk"]["S"]) for key in request["Keys"]]
            return [(key[0], _units(size_of(items.get(key, {})), request)) for key in wanted if key[0] not in left]
        case "query":
            total = sum(size_of(item) for item in answer.get("Items", ()))
            return [(arguments["ExpressionAttributeValues"][":pk"]["S"], _units(total, arguments))]
    return []


def _units(size: int, request: Wire) -> float:
    return max(1, ceil(size / READ_UNIT)) * (1 if request.get("ConsistentRead", False) else 0.5)


@dataclass
class Meter:
    """Counts what goes over the client of a table."""

    requests: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    """Write units by partition key."""
    reads: dict[str, float] = field(default_factory=dict)
    """Read units by partition key."""
    items: Counter[str] = field(default_factory=Counter)
    """Items that queries gave, by what their partition keys begin with: ``RATED``, ``LEDGER`` ..."""

    @property
    def write_units(self) -> int:
        """All of them."""
        return sum(self.written.values())

    @property
    def read(self) -> float:
        """All read units."""
        return sum(self.reads.values())

    def write(self, written: Iterable[Written]) -> None:
        """Count writes."""
        for one in written:
            self.written[one.pk] += one.units

    def call(self, operation: str, arguments: Wire, answer: Wire) -> None:
        """Count one call and what it has read."""
        self.requests[operation] += 1
        if operation == "query":
            pk = arguments["ExpressionAttributeValues"][":pk"]["S"]
            self.items[pk.split("#")[0]] += len(answer.get("Items", ()))
        for pk, units in read(operation, arguments, answer):
            self.reads[pk] = self.reads.get(pk, 0.0) + units


CALLS = ("get_item", "batch_get_item", "query", "put_item", "update_item", "delete_item")
CALLS += ("transact_write_items", "batch_write_item")


class MeteredTable:
    """The client of a table in memory, with a meter before it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.meter = Meter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if name not in CALLS:
            return method

        def call(**arguments: Any) -> Any:
            self.meter.write(written(name, arguments, self.client.find))
            answer = method(**arguments)
            self.meter.call(name, arguments, answer)
            return answer

        return call


class MeteredBucket:
    """The client of a bucket, with a count of requests and bytes."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.requests: Counter[str] = Counter()
        self.bytes = 0
        self.keys: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if not name.endswith("_object") and not name.endswith("_objects"):
            return method

        def call(**arguments: Any) -> Any:
            self.requests[name] += 1
            if name == "put_object":
                self.bytes += len(arguments["Body"])
                self.keys.append(arguments["Key"])
            return method(**arguments)

        return call
