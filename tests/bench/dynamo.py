"""A model of DynamoDB's throughput: the table in memory, with its limits per partition key and a clock that we move.

* A partition key takes 1,000 write and 3,000 read units in a second, the table 40,000 of each (an account's default).
  What would exceed that is refused as DynamoDB refuses it: a call by itself by ProvisionedThroughputExceededException,
  a transaction as cancelled by ThrottlingError, of a batch the entries that do not fit.
* Unused capacity is not saved up (DynamoDB saves up to 300 s of it, where it can), and the client library's own two
  tries before ours are left out: both make the model stricter than DynamoDB.
* Calls take time on the clock and nothing else does, so a run is the same on every machine. Several processes share
  the table: each has its own time (``Clock.now``), which may lie a little behind another's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.bench import units
from tests.bench.limits import KEY_READS, KEY_WRITES, TABLE_READS, TABLE_WRITES
from tests.integration.memory import MemoryTable

PAGE_READS = 256
"""A query's page of 1 MB, consistent: what it costs is known when it is read, and may so exceed a second's limit."""
SECOND = 1_000_000

_MILLISECONDS = {"get_item": 3.0, "batch_get_item": 5.0, "query": 5.0, "batch_write_item": 8.0}
_WRITE, _TRANSACTION, _PER_ITEM = 5.0, 10.0, 0.16
"""What a write, a transaction and each item of it takes, as measured in the emulator: 10 ms for 3 items, 26 for 100."""


@dataclass
class Clock:
    """The time of the process that runs, in microseconds since 1970."""

    now: int

    def sleep(self, seconds: float) -> None:
        """Stands in for ``time.sleep``."""
        self.now += round(seconds * SECOND)


@dataclass
class Second:
    """What was taken in one second."""

    written: Counter[str] = field(default_factory=Counter)
    read: dict[str, float] = field(default_factory=dict)
    all_written: int = 0
    all_read: float = 0.0

    def takes(self, pk: str, write_units: int, table: int) -> bool:
        """Whether so many units more can be written on a key; ``table``: what the same call writes besides."""
        fits = self.written[pk] + write_units <= KEY_WRITES
        return fits and self.all_written + table + write_units <= TABLE_WRITES

    def gives(self, pk: str) -> bool:
        """Whether a key can still be read: what a read costs is only known afterwards."""
        return self.read.get(pk, 0) < KEY_READS and self.all_read < TABLE_READS


def _refusal(code: str, operation: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}, **more}, operation)  # type: ignore[arg-type]


class LimitedTable:
    """The client of a table in memory that takes no more than DynamoDB does."""

    def __init__(self, memory: MemoryTable, clock: Clock) -> None:
        self.memory = memory
        self.clock = clock
        self.seconds: dict[int, Second] = {}
        self.meter = units.Meter()
        self.throttled: Counter[str] = Counter()
        """Refused writes and reads by partition key."""

    def __getattr__(self, name: str) -> Any:
        if name not in units.CALLS:
            return getattr(self.memory, name)

        def call(**arguments: Any) -> Any:
            entries = arguments.get("TransactItems", ())
            took = _MILLISECONDS.get(name, _WRITE) if not entries else _TRANSACTION + _PER_ITEM * len(entries)
            self.clock.now += round(took * 1000)
            return self._limited(name, arguments)

        return call

    def _limited(self, name: str, arguments: dict[str, Any]) -> Any:
        second = self.seconds.setdefault(self.clock.now // SECOND, Second())
        if name in ("get_item", "query", "batch_get_item"):
            answer = self._read(second, name, arguments)
        elif name == "batch_write_item":
            answer = self._batch_write(second, arguments)
        else:
            self._write(second, name, arguments)
            answer = getattr(self.memory, name)(**arguments)
        self.meter.call(name, arguments, answer)
        return answer

    # -- reading
    def _read(self, second: Second, name: str, arguments: dict[str, Any]) -> Any:
        refused: list[Any] = []
        if name == "batch_get_item":
            ((table, request),) = arguments["RequestItems"].items()
            wanted = [key for key in request["Keys"] if second.gives(key["pk"]["S"])]
            refused = [key for key in request["Keys"] if key not in wanted]
            self.throttled.update(key["pk"]["S"] for key in refused)
            if not wanted:
                raise _refusal("ProvisionedThroughputExceededException", name)
            arguments = {"RequestItems": {table: {**request, "Keys": wanted}}}
        else:
            key = arguments["Key"]["pk"] if name == "get_item" else arguments["ExpressionAttributeValues"][":pk"]
            if not second.gives(key["S"]):
                self.throttled[key["S"]] += 1
                raise _refusal("ProvisionedThroughputExceededException", name)
        answer = getattr(self.memory, name)(**arguments)
        for pk, taken in units.read(name, arguments, answer):
            second.read[pk] = second.read.get(pk, 0.0) + taken
            second.all_read += taken
        if refused:
            answer["UnprocessedKeys"] = {table: {**request, "Keys": refused}}
        return answer

    # -- writing
    def _write(self, second: Second, name: str, arguments: dict[str, Any]) -> None:
        wanted = units.written(name, arguments, self.memory.find)
        on_key: Counter[str] = Counter()
        reasons = []
        for one in wanted:
            on_key[one.pk] += one.units
            reasons.append(second.takes(one.pk, on_key[one.pk], sum(on_key.values()) - on_key[one.pk]))
        if not all(reasons):
            self.throttled.update({one.pk for one, fits in zip(wanted, reasons, strict=True) if not fits})
            if name != "transact_write_items":
                raise _refusal("ProvisionedThroughputExceededException", name)
            told = [{"Code": "None" if fits else "ThrottlingError"} for fits in reasons]
            raise _refusal("TransactionCanceledException", name, CancellationReasons=told)
        self._take(second, wanted)

    def _batch_write(self, second: Second, arguments: dict[str, Any]) -> Any:
        ((table, requests),) = arguments["RequestItems"].items()
        written = units.written("batch_write_item", arguments, self.memory.find)
        done, left = [], []
        for request, one in zip(requests, written, strict=True):
            if second.takes(one.pk, one.units, 0):
                self._take(second, [one])
                done.append(request)
            else:
                self.throttled[one.pk] += 1
                left.append(request)
        if not done:
            raise _refusal("ProvisionedThroughputExceededException", "batch_write_item")
        answer = self.memory.batch_write_item(RequestItems={table: done})
        return {**answer, "UnprocessedItems": {table: left}} if left else answer

    def _take(self, second: Second, written: list[units.Written]) -> None:
        self.meter.write(written)
        for one in written:
            second.written[one.pk] += one.units
            second.all_written += one.units

    # -- what it came to
    def hottest_writes(self) -> list[tuple[str, float]]:
        """Partition keys with the most write units that any second put on them, the hottest first."""
        return _worst(second.written for second in self.seconds.values())

    def hottest_reads(self) -> list[tuple[str, float]]:
        """The same of read units."""
        return _worst(second.read for second in self.seconds.values())

    def busiest(self) -> int:
        """The most write units that any second put on the table."""
        return max((second.all_written for second in self.seconds.values()), default=0)


def _worst(seconds: Iterable[Mapping[str, float]]) -> list[tuple[str, float]]:
    worst: dict[str, float] = {}
    for second in seconds:
        for pk, taken in second.items():
            worst[pk] = max(taken, worst.get(pk, 0))
    return sorted(worst.items(), key=lambda entry: (-entry[1], entry[0]))
