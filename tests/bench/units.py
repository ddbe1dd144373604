"""What calls of DynamoDB and S3 cost, counted at the client: request and capacity units per call and per key.

Sizes and prices as DynamoDB's developer guide says: a write unit per KB (two in a transaction), half a read unit per
4 KB (one when consistent). An item's size is that of its names and values, a number a digit pair and a byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

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


@dataclass
class Meter:
    """Counts what goes over the client of a table."""

    requests: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    """Write units by partition key."""
    read: float = 0.0

    @property
    def write_units(self) -> int:
        """All of them."""
        return sum(self.written.values())

    def call(self, operation: str, arguments: Mapping[str, Any], answer: Any, found: Wire | None = None) -> None:
        """Count one call. ``found``: the item that an update or a deletion meets."""
        self.requests[operation] += 1
        match operation:
            case "put_item":
                self._write(arguments["Item"], 1)
            case "update_item" | "delete_item":
                self._write(found or arguments["Key"], 1)
            case "batch_write_item":
                for request in next(iter(arguments["RequestItems"].values())):
                    ((_, entry),) = request.items()
                    self._write(entry.get("Item") or entry["Key"], 1)
            case "transact_write_items":
                for operation_ in arguments["TransactItems"]:
                    ((_, entry),) = operation_.items()
                    self._write(entry.get("Item") or entry["Key"], 2)
            case "get_item":
                self._read(size_of(answer.get("Item", {})), consistent=arguments.get("ConsistentRead", False))
            case "batch_get_item":
                for request in arguments["RequestItems"].values():
                    items = [item for some in answer["Responses"].values() for item in some]
                    missing = len(request["Keys"]) - len(items)
                    for size in [*map(size_of, items), *([0] * missing)]:
                        self._read(size, consistent=request.get("ConsistentRead", False))
            case "query":
                total = sum(size_of(item) for item in answer.get("Items", ()))
                self._read(total, consistent=arguments.get("ConsistentRead", False))

    def _write(self, item: Wire, units: int) -> None:
        self.written[item["pk"]["S"]] += units * max(1, ceil(size_of(item) / WRITE_UNIT))

    def _read(self, size: int, *, consistent: bool) -> None:
        self.read += max(1, ceil(size / READ_UNIT)) * (1 if consistent else 0.5)


class MeteredTable:
    """The client of a table, with a meter before it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meter = Meter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not name.endswith("_item") and not name.endswith("_items") and name != "query":
            return method

        def call(**arguments: Any) -> Any:
            answer = method(**arguments)
            self.meter.call(name, arguments, answer)
            return answer

        return call


class MeteredBucket:
    """The client of a bucket, with a count of requests and bytes."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.requests: Counter[str] = Counter()
        self.bytes = 0
        self.keys: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not name.endswith("_object") and not name.endswith("_objects"):
            return method

        def call(**arguments: Any) -> Any:
            self.requests[name] += 1
            if name == "put_object":
                self.bytes += len(arguments["Body"])
                self.keys.append(arguments["Key"])
            return method(**arguments)

        return call
