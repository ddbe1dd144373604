"""DynamoDB and S3 in memory, as far as the store calls them: fast enough to fail every single write of a run in turn.

Trusted only because the same suites also run against moto and MiniStack. Strict where a careless fake would be kind:
an expression it does not know is an error, items may not be empty, transactions hold 100 different items at most.
"""

# ruff: noqa: N803 - boto3 names its arguments so
from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

import msgspec
from botocore.exceptions import ClientError

Wire = dict[str, Any]


class Killed(BaseException):
    """The process died here; nothing of it runs on."""


def _refuse(code: str, operation: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}, **more}, operation)  # type: ignore[arg-type]


# -- expressions -----------------------------------------------------------------------------------------------------
_TOKEN = re.compile(r"\s*(attribute_not_exists|attribute_exists|AND|OR|<=|>=|<>|=|<|>|\(|\)|[#:]?\w+)")


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise AssertionError(f"a condition that the table in memory cannot read: {text}")
        found.append(match[1])
        at = match.end()
    return found


def _comparable(value: Wire | None) -> Any:
    if value is None:
        return None
    ((kind, plain),) = value.items()
    return (kind, int(plain) if kind == "N" else plain)


class _Condition:
    def __init__(self, text: str, names: Mapping[str, str], values: Mapping[str, Wire], item: Wire) -> None:
        self.left, self.names, self.values, self.item = _tokens(text), names, values, item

    def holds(self) -> bool:
        result = self._or()
        if self.left:
            raise AssertionError(f"a condition that the table in memory cannot read to its end: {self.left}")
        return result

    def _next(self) -> str:
        return self.left.pop(0)

    def _or(self) -> bool:
        result = self._and()
        while self.left[:1] == ["OR"]:
            self._next()
            other = self._and()
            result = result or other
        return result

    def _and(self) -> bool:
        result = self._one()
        while self.left[:1] == ["AND"]:
            self._next()
            other = self._one()
            result = result and other
        return result

    def _value(self, token: str) -> Wire | None:
        if token.startswith(":"):
            return self.values[token]
        return self.item.get(self.names[token] if token.startswith("#") else token)

    def _one(self) -> bool:
        token = self._next()
        if token == "(":
            result = self._or()
            assert self._next() == ")"
            return result
        if token in ("attribute_not_exists", "attribute_exists"):
            assert self._next() == "("
            present = self._value(self._next()) is not None
            assert self._next() == ")"
            return present == (token == "attribute_exists")
        one, sign, two = _comparable(self._value(token)), self._next(), _comparable(self._value(self._next()))
        if one is None or two is None or one[0] != two[0]:
            return sign == "<>"
        result = {
            "=": one == two,
            "<>": one != two,
            "<": one < two,
            "<=": one <= two,
            ">": one > two,
            ">=": one >= two,
        }
        return result[sign]


def _holds(entry: Mapping[str, Any], item: Wire | None) -> bool:
    text = entry.get("ConditionExpression")
    if text is None:
        return True
    names, values = entry.get("ExpressionAttributeNames", {}), entry.get("ExpressionAttributeValues", {})
    return _Condition(text, names, values, item or {}).holds()


def updated(entry: Mapping[str, Any], item: Wire | None) -> Wire:
    """An item after an update's expression."""
    names, values = entry.get("ExpressionAttributeNames", {}), entry.get("ExpressionAttributeValues", {})
    changed = dict(item) if item is not None else dict(entry["Key"])
    text = entry["UpdateExpression"]
    for verb, part in re.findall(r"(SET|REMOVE|ADD) (.*?)(?= SET | REMOVE | ADD |$)", text):
        for clause in part.split(","):
            if verb == "REMOVE":
                changed.pop(names.get(clause.strip(), clause.strip()), None)
            elif verb == "SET":
                name, value = (side.strip() for side in clause.split("="))
                changed[names[name]] = values[value]
            else:
                name, value = clause.split()
                ((kind, plain),) = values[value].items()
                old = changed.get(names[name])
                if kind == "N":
                    changed[names[name]] = {"N": str(int(old["N"] if old else 0) + int(plain))}
                else:
                    changed[names[name]] = {kind: sorted({*(old[kind] if old else ()), *plain})}
    return changed


def _size(item: Wire) -> int:
    return len(msgspec.json.encode(item, enc_hook=repr))


# -- the table -------------------------------------------------------------------------------------------------------
READS = ("get_item", "batch_get_item", "query")
WRITES = ("put_item", "update_item", "delete_item", "transact_write_items", "batch_write_item", "put_object")
WRITES += ("delete_objects",)


@dataclass
class Calls:
    """What was called, and what a test wants to happen at a call."""

    log: list[str] = field(default_factory=list)
    before: Callable[[str, Mapping[str, Any]], None] | None = None
    """Called before every call; may raise."""
    after: Callable[[str, Mapping[str, Any]], None] | None = None
    """Called after a call has had its effect; may raise."""

    def writes(self) -> int:
        """How many writing calls there were."""
        return sum(name in WRITES for name in self.log)

    def reads(self) -> int:
        """How many reading calls of the table there were."""
        return sum(name in READS for name in self.log)


class MemoryTable:
    """The client of one table."""

    def __init__(self, calls: Calls | None = None, *, page: int = 1_000_000) -> None:
        self.calls = calls if calls is not None else Calls()
        self.page = page
        self.partitions: dict[str, dict[str, Wire]] = {}
        self.lock = threading.RLock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(type(self), f"_{name}", None)
        if method is None:
            raise AttributeError(name)

        def call(**arguments: Any) -> Any:
            with self.lock:
                self.calls.log.append(name)
                if self.calls.before is not None:
                    self.calls.before(name, arguments)
                answer = method(self, **arguments)
                if self.calls.after is not None:
                    self.calls.after(name, arguments)
                return answer

        return call

    # -- plain access for tests
    def items(self) -> Iterator[Wire]:
        """All items."""
        for pk in sorted(self.partitions):
            for sk in sorted(self.partitions[pk]):
                yield self.partitions[pk][sk]

    def find(self, key: Wire) -> Wire | None:
        """The item under a key (or under an item's), without a call."""
        found: Wire | None = self.partitions.get(key["pk"]["S"], {}).get(key["sk"]["S"])
        return found

    def store(self, item: Wire) -> None:
        """Put an item, without a call."""
        assert item["pk"]["S"]
        assert item["sk"]["S"]
        assert _size(item) < 400_000
        self.partitions.setdefault(item["pk"]["S"], {})[item["sk"]["S"]] = item

    def _drop(self, key: Wire) -> None:
        self.partitions.get(key["pk"]["S"], {}).pop(key["sk"]["S"], None)

    # -- calls
    def _get_item(self, *, TableName: str, Key: Wire, ConsistentRead: bool) -> Any:
        item = self.find(Key)
        return {} if item is None else {"Item": item}

    def _batch_get_item(self, *, RequestItems: Any) -> Any:
        ((name, request),) = RequestItems.items()
        keys = request["Keys"]
        assert 0 < len(keys) <= 100
        assert len({(k["pk"]["S"], k["sk"]["S"]) for k in keys}) == len(keys)
        return {"Responses": {name: [item for key in keys if (item := self.find(key)) is not None]}}

    def _query(
        self,
        *,
        TableName: str,
        KeyConditionExpression: str,
        ExpressionAttributeValues: Wire,
        ConsistentRead: bool,
        ScanIndexForward: bool = True,
        Limit: int | None = None,
        ExclusiveStartKey: Wire | None = None,
        Select: str = "",
    ) -> Any:
        values = {k: v["S"] for k, v in ExpressionAttributeValues.items()}
        rows = self.partitions.get(values[":pk"], {})
        low, high, prefix = None, None, ""
        match KeyConditionExpression.removeprefix("pk = :pk"):
            case "":
                pass
            case " AND begins_with(sk, :a)":
                prefix = low = values[":a"]
            case " AND sk BETWEEN :a AND :b":
                low, high = values[":a"], values[":b"]
            case " AND sk >= :a":
                low = values[":a"]
            case " AND sk <= :b":
                high = values[":b"]
            case other:
                raise AssertionError(f"a query that the table in memory cannot answer: {other}")
        start = ExclusiveStartKey["sk"]["S"] if ExclusiveStartKey is not None else None
        found: list[Wire] = []
        size, last = 0, None
        for sk in sorted(rows, reverse=not ScanIndexForward):
            if (low is not None and sk < low) or (high is not None and sk > high):
                continue
            if prefix and not sk.startswith(prefix):
                continue
            if start is not None and (sk <= start if ScanIndexForward else sk >= start):
                continue
            if (Limit is not None and len(found) >= Limit) or size >= self.page:
                last = {"pk": {"S": values[":pk"]}, "sk": {"S": found[-1]["sk"]["S"]}}
                break
            found.append(rows[sk])
            size += _size(rows[sk])
        answer: dict[str, Any] = {"Count": len(found)}
        if Select != "COUNT":
            answer["Items"] = found
        if last is not None:
            answer["LastEvaluatedKey"] = last
        return answer

    def _apply(self, kind: str, entry: Mapping[str, Any]) -> None:
        if kind == "Put":
            self.store(entry["Item"])
        elif kind == "Update":
            self.store(updated(entry, self.find(entry["Key"])))
        elif kind == "Delete":
            self._drop(entry["Key"])

    def _write_one(self, kind: str, entry: Mapping[str, Any]) -> Any:
        there = self.find(entry["Item"] if kind == "Put" else entry["Key"])
        if not _holds(entry, there):
            more = {"Item": there} if there is not None else {}
            raise _refuse("ConditionalCheckFailedException", kind, **more)
        self._apply(kind, entry)
        return {}

    def _put_item(self, **entry: Any) -> Any:
        return self._write_one("Put", entry)

    def _update_item(self, **entry: Any) -> Any:
        return self._write_one("Update", entry)

    def _delete_item(self, **entry: Any) -> Any:
        return self._write_one("Delete", entry)

    def _transact_write_items(self, *, TransactItems: list[Any], ClientRequestToken: str = "") -> Any:
        assert 0 < len(TransactItems) <= 100
        seen = set()
        reasons: list[Any] = []
        for operation in TransactItems:
            ((_, entry),) = operation.items()
            key = entry.get("Item") or entry["Key"]
            seen.add((key["pk"]["S"], key["sk"]["S"]))
            there = self.find(key)
            if _holds(entry, there):
                reasons.append({"Code": "None"})
            else:
                more = {"Item": there} if there is not None else {}
                reasons.append({"Code": "ConditionalCheckFailed", **more})
        assert len(seen) == len(TransactItems), "two operations on one item"
        if any(r["Code"] != "None" for r in reasons):
            raise _refuse("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        for operation in TransactItems:
            ((kind, entry),) = operation.items()
            self._apply(kind, entry)
        return {}

    def _batch_write_item(self, *, RequestItems: Any) -> Any:
        ((_, requests),) = RequestItems.items()
        assert 0 < len(requests) <= 25
        for request in requests:
            ((kind, entry),) = request.items()
            self._apply(kind.removesuffix("Request"), entry)
        return {}


class MemoryBucket:
    """The client of one bucket."""

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls if calls is not None else Calls()
        self.objects: dict[str, bytes] = {}

    def _called(self, name: str, when: Callable[[str, Mapping[str, Any]], None] | None, key: str) -> None:
        if when is not None:
            when(name, {"Key": key})

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **_: Any) -> Any:
        self.calls.log.append("put_object")
        self._called("put_object", self.calls.before, Key)
        self.objects[Key] = Body
        self._called("put_object", self.calls.after, Key)
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> Any:
        self.calls.log.append("get_object")
        if Key not in self.objects:
            raise _refuse("NoSuchKey", "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def head_object(self, *, Bucket: str, Key: str) -> Any:
        if Key not in self.objects:
            raise _refuse("404", "HeadObject")
        return {"ETag": f'"{md5(self.objects[Key], usedforsecurity=False).hexdigest()}"'}

    def get_paginator(self, name: str) -> MemoryBucket:
        assert name == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[Any]:
        found = [key for key in sorted(self.objects) if key.startswith(Prefix)]
        for start in range(0, len(found), 1000):
            self.calls.log.append("list_objects_v2")
            part = found[start : start + 1000]
            yield {"Contents": [{"Key": key, **self.head_object(Bucket=Bucket, Key=key)} for key in part]}

    def delete_objects(self, *, Bucket: str, Delete: Any) -> Any:
        self.calls.log.append("delete_objects")
        self._called("delete_objects", self.calls.before, "")
        for entry in Delete["Objects"]:
            self.objects.pop(entry["Key"], None)
        self._called("delete_objects", self.calls.after, "")
        return {}
