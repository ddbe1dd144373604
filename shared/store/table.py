"""The one DynamoDB table: reading, conditional writing, transactions; the only module that talks to its client.

Domain code sees plain dicts (str, int, bool, None, list, dict, bytes) and two errors: ``ConditionFailed`` (somebody was
there first) and ``Busy`` (throttled or in conflict: nothing was written, try again).
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]
Key = tuple[str, str]

TRANSACTION_ITEMS = 100
"""DynamoDB's limit of items in one transaction."""
BATCH_GET_ITEMS = 100
BATCH_WRITE_ITEMS = 25
ATTEMPTS = 6
"""How often a conflicting or throttled call is tried before ``Busy``; with the pauses, under two seconds in all, as
somebody waits for the answer."""
PATIENT_ATTEMPTS = 40
"""The same where nobody waits: some ten seconds. A key that has taken its 1,000 units takes more in the next second."""

_THROTTLES = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TransactionInProgressException",
    "TransactionConflictException",  # of a plain write, while a transaction holds the item
    "InternalServerError",
    "ServiceUnavailable",
}


class Busy(Exception):
    """The table did not take the call (throttling, a conflicting transaction, an outage). Nothing was written."""


class ConditionFailed(Exception):
    """A condition did not hold; nothing was written.

    ``failed`` are the indexes of the operations whose condition failed; ``items`` the items found there instead.
    """

    def __init__(self, failed: Sequence[int], items: Mapping[int, Item]) -> None:
        super().__init__(f"condition failed at {list(failed)}")
        self.failed = tuple(failed)
        self.items = dict(items)


@dataclass(frozen=True)
class Put:
    """Put a whole item."""

    item: Item
    condition: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """Change attributes of an item by an update expression. Attribute names are written ``#name``."""

    key: Key
    expression: str
    values: Mapping[str, Any] = field(default_factory=dict)
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Attribute names that an expression cannot spell, by the placeholder that stands for them: ``{"#ban": ...}``."""


@dataclass(frozen=True)
class Delete:
    """Remove an item."""

    key: Key
    condition: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """Only check that a condition holds."""

    key: Key
    condition: str
    values: Mapping[str, Any] = field(default_factory=dict)


Operation = Put | Update | Delete | Check

ABSENT = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    match kind:
        case "S" | "BOOL" | "B":
            return inner
        case "N":
            try:
                return int(inner)
            except ValueError:
                number = Decimal(inner)
                return int(number) if number == number.to_integral_value() else float(number)
        case "L":
            return [_plain(entry) for entry in inner]
        case "M":
            return {name: _plain(entry) for name, entry in inner.items()}
        case "NULL":
            return None
        case "SS":
            return set(inner)
    raise TypeError(f"items here have no attributes of type {kind}")


def _serialise(value: Any) -> dict[str, Any]:
    # boto3's own serialiser does the same in four times the time, and its import takes half of that of boto3.
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case None:
            return {"NULL": True}
        case list() | tuple():
            return {"L": [_serialise(entry) for entry in value]}
        case dict():
            return {"M": {name: _serialise(entry) for name, entry in value.items()}}
        case bytes():
            return {"B": value}
        case set() | frozenset() if value and all(isinstance(entry, str) for entry in value):
            return {"SS": sorted(value)}
    raise TypeError(f"an item takes no {type(value).__name__}")


def from_wire(item: Mapping[str, Any]) -> Item:
    """An item as DynamoDB's wire format has it, as plain values."""
    return {name: _plain(value) for name, value in item.items()}


def to_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """A plain item in DynamoDB's wire format. Floats are refused: numbers are integers or text here."""
    return {name: _serialise(value) for name, value in item.items()}


def _wire_key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _names(*expressions: str | None) -> dict[str, str]:
    """``#name`` stands for the attribute ``name`` wherever an expression says so."""
    found: dict[str, str] = {}
    for expression in expressions:
        for part in (expression or "").split("#")[1:]:
            name = ""
            for char in part:
                if not (char.isalnum() or char == "_"):
                    break
                name += char
            found["#" + name] = name
    return found


def _conditioned(entry: dict[str, Any], condition: str | None, values: Mapping[str, Any], expression: str = "") -> None:
    if condition is not None:
        entry["ConditionExpression"] = condition
        entry["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if names := _names(condition, expression):
        entry["ExpressionAttributeNames"] = names
    if values:
        entry["ExpressionAttributeValues"] = {f":{k}": _serialise(v) for k, v in values.items()}


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0, min(0.02 * 2**attempt, 0.6)))  # noqa: S311 - jitter, no secret


def pause(attempt: int) -> None:
    """Wait before what was overtaken is tried again: longer each time, and never all for the same time."""
    _pause(attempt)


class Table:
    """The table of one deployment."""

    def __init__(self, client: DynamoDBClient, name: str, attempts: int = ATTEMPTS) -> None:
        self.client = client
        self.name = name
        self.attempts = attempts

    def patient(self) -> Table:
        """The same table for work that nobody waits for: a throttled call is tried again for longer."""
        return Table(self.client, self.name, PATIENT_ATTEMPTS)

    def _call(self, operation: str, **arguments: Any) -> Any:
        for attempt in range(self.attempts):
            try:
                return getattr(self.client, operation)(**arguments)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code", "") not in _THROTTLES:
                    raise
                cause: Exception = error
            except BotoCoreError as error:
                cause = error
            _pause(attempt)
        raise Busy(operation) from cause

    # -- reading -------------------------------------------------------------------------------------------------
    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        """One item, or None. One round trip."""
        answer = self._call("get_item", TableName=self.name, Key=_wire_key((pk, sk)), ConsistentRead=consistent)
        return from_wire(answer["Item"]) if "Item" in answer else None

    def batch_get(self, keys: Iterable[Key], *, consistent: bool = True) -> dict[Key, Item]:
        """All items of these keys that exist; one round trip per 100 keys and 16 MB."""
        wanted = list(dict.fromkeys(keys))
        found: dict[Key, Item] = {}
        for start in range(0, len(wanted), BATCH_GET_ITEMS):
            pending: list[dict[str, Any]] = [_wire_key(k) for k in wanted[start : start + BATCH_GET_ITEMS]]
            for attempt in range(self.attempts * 2):
                request = {self.name: {"Keys": pending, "ConsistentRead": consistent}}
                answer = self._call("batch_get_item", RequestItems=request)
                for wire in answer["Responses"].get(self.name, []):
                    item = from_wire(wire)
                    found[(item["pk"], item["sk"])] = item
                pending = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
                if not pending:
                    break
                _pause(attempt)
            else:
                raise Busy("batch_get_item")
        return found

    def query(
        self,
        pk: str,
        *,
        begins: str | None = None,
        first: str | None = None,
        last: str | None = None,
        after: str | None = None,
        forward: bool = True,
        limit: int | None = None,
        consistent: bool = True,
    ) -> Iterator[Item]:
        """The items of a partition in sort-key order, read page by page (1 MB each) as they are taken.

        Args:
            begins: only sort keys with this prefix; or ``first``/``last``: only sort keys in this closed interval.
            after: start behind this sort key (exclusive), in the direction of reading.
            limit: at most so many items.
        """
        condition, values = "pk = :pk", {":pk": {"S": pk}}
        if begins is not None:
            condition += " AND begins_with(sk, :a)"
            values[":a"] = {"S": begins}
        elif first is not None and last is not None:
            condition += " AND sk BETWEEN :a AND :b"
            values[":a"], values[":b"] = {"S": first}, {"S": last}
        elif first is not None:
            condition += " AND sk >= :a"
            values[":a"] = {"S": first}
        elif last is not None:
            condition += " AND sk <= :b"
            values[":b"] = {"S": last}
        arguments: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": forward,
            "ConsistentRead": consistent,
        }
        if after is not None:
            arguments["ExclusiveStartKey"] = _wire_key((pk, after))
        left = limit
        while left is None or left > 0:
            if left is not None:
                arguments["Limit"] = left
            answer = self._call("query", **arguments)
            for wire in answer["Items"]:
                yield from_wire(wire)
            if left is not None:
                left -= len(answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def count(self, pk: str) -> int:
        """How many items a partition holds."""
        arguments: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "Select": "COUNT",
            "ConsistentRead": True,
        }
        total: int = 0
        while True:
            answer = self._call("query", **arguments)
            total += int(answer["Count"])
            if "LastEvaluatedKey" not in answer:
                return total
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    # -- writing -------------------------------------------------------------------------------------------------
    def _wire_operation(self, operation: Operation) -> dict[str, Any]:
        entry: dict[str, Any] = {"TableName": self.name}
        match operation:
            case Put(item, condition, values):
                entry["Item"] = to_wire(item)
                _conditioned(entry, condition, values)
                return {"Put": entry}
            case Update(key, expression, values, condition, names):
                entry["Key"] = _wire_key(key)
                entry["UpdateExpression"] = expression
                _conditioned(entry, condition, values, expression)
                entry.setdefault("ExpressionAttributeNames", {}).update(names)
                if not entry["ExpressionAttributeNames"]:
                    del entry["ExpressionAttributeNames"]
                return {"Update": entry}
            case Delete(key, condition, values):
                entry["Key"] = _wire_key(key)
                _conditioned(entry, condition, values)
                return {"Delete": entry}
            case Check(key, condition, values):
                entry["Key"] = _wire_key(key)
                _conditioned(entry, condition, values)
                return {"ConditionCheck": entry}

    def transact(self, operations: Sequence[Operation]) -> None:
        """All of these writes or none; at most 100 on different items. A single one goes as a plain write.

        Raises:
            ConditionFailed: a condition did not hold.
            Busy: conflicts or throttling did not end within the attempts.
        """
        if len(operations) == 1 and not isinstance(operations[0], Check):
            self._single(operations[0])
            return
        wire = [self._wire_operation(o) for o in operations]
        for attempt in range(self.attempts):
            try:
                # One token for all tries of one call: where the answer got lost, the next try gives it again.
                self._call("transact_write_items", TransactItems=wire, ClientRequestToken=uuid.uuid4().hex)
                return
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") != "TransactionCanceledException":
                    raise
                reasons: list[Any] = list(error.response.get("CancellationReasons", []))
                failed = [i for i, r in enumerate(reasons) if r.get("Code") == "ConditionalCheckFailed"]
                if failed:
                    items = {i: from_wire(reasons[i]["Item"]) for i in failed if reasons[i].get("Item")}
                    raise ConditionFailed(failed, items) from error
                if any(r.get("Code") in ("ValidationError", "ItemCollectionSizeLimitExceeded") for r in reasons):
                    raise
            _pause(attempt)
        raise Busy("transact_write_items")

    def _single(self, operation: Operation) -> None:
        (kind, entry), *_ = self._wire_operation(operation).items()
        call = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}[kind]
        try:
            self._call(call, **entry)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            raise ConditionFailed([0], {0: from_wire(item)} if item else {}) from error

    def write(self, operation: Operation) -> None:
        """One conditional write. Raises ConditionFailed, Busy."""
        self._single(operation)

    def batch_write(self, puts: Iterable[Item] = (), deletes: Iterable[Key] = ()) -> None:
        """Unconditional puts and deletes of different items in batches of 25: may be repeated, is not atomic."""
        requests: list[dict[str, Any]] = [{"PutRequest": {"Item": to_wire(i)}} for i in puts]
        requests += [{"DeleteRequest": {"Key": _wire_key(k)}} for k in deletes]
        for start in range(0, len(requests), BATCH_WRITE_ITEMS):
            pending = requests[start : start + BATCH_WRITE_ITEMS]
            for attempt in range(self.attempts * 2):
                answer = self._call("batch_write_item", RequestItems={self.name: pending})
                pending = answer.get("UnprocessedItems", {}).get(self.name, [])
                if not pending:
                    break
                _pause(attempt)
            else:
                raise Busy("batch_write_item")
