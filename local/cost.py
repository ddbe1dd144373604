"""What it costs: counts the calls of every function in a small season, and prices three sizes with them.

    python -m local cost

The handlers run in this process over the emulator; every call to DynamoDB, S3 and SQS is counted by the function that
made it, and its units are computed from the sizes of the items, as AWS does (an emulator's own figures are not AWS's).
Time is computed too: the processor time measured here, and for each call what it takes in the cloud.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from local import inprocess
from local.emulator import Emulator
from local.inprocess import System, stream_event
from shared.store import keys

# US dollars, eu-central-1, on demand, autumn 2026 as far as known here: check before you rely on them.
PRICES = {
    "API requests": 1.20e-6,
    "Lambda requests": 0.20e-6,
    "Lambda GB-seconds (arm64)": 1.33334e-5,
    "DynamoDB write units": 0.7625e-6,
    "DynamoDB read units": 0.1525e-6,
    "DynamoDB GB-months": 0.306,
    "DynamoDB backup GB-months (PITR)": 0.2448,
    "DynamoDB export GB": 0.1224,
    "S3 PUT, LIST": 5.4e-6,
    "S3 GET": 0.43e-6,
    "S3 GB-months": 0.0245,
    "SQS requests": 0.40e-6,
    "Log GB": 0.63,
    "Metrics": 0.30,
    "Alarm metrics": 0.10,
    "CloudFront requests": 1.20e-6,
    "CloudFront GB": 0.085,
}
FREE = {
    "Lambda requests": 1_000_000,
    "Lambda GB-seconds (arm64)": 400_000,
    "DynamoDB GB-months": 25,
    "SQS requests": 1_000_000,
    "Log GB": 5,
    "Metrics": 10,
    "Alarm metrics": 10,
    "CloudFront requests": 10_000_000,
    "CloudFront GB": 1000,
}
"""What every account has for nothing each month, for ever."""
LATENCY = {"dynamodb": 0.006, "s3": 0.030, "sqs": 0.010}
"""Seconds a call takes inside a region."""
MEMORY_GB = {"ApiFunction": 1.0, "RaterFunction": 2.0, "ClosingFunction": 2.0, "PublisherFunction": 2.0}
LOG_BYTES = 600
"""A line of ours and Lambda's own three."""
MINUTES = 30 * 24 * 60
SWEEPS = MINUTES / 5
METRICS = 8
ALARM_METRICS = 12
SECTION = 1024
READ_SECTION = 4096


Amounts = defaultdict[str, float]


# -- counting ------------------------------------------------------------------------------------------------------
@dataclass
class Use:
    """What some calls of functions used."""

    units: Amounts = field(default_factory=lambda: defaultdict(float))
    """Prices' names: how many."""
    calls: Amounts = field(default_factory=lambda: defaultdict(float))
    """``dynamodb.Query``: how many round trips."""

    def __sub__(self, other: Use) -> Use:
        left = self.scaled(1)
        _add(left.units, other.units, -1)
        _add(left.calls, other.calls, -1)
        return left

    def scaled(self, factor: float) -> Use:
        """So many times as much."""
        made = Use()
        _add(made.units, self.units, factor)
        _add(made.calls, self.calls, factor)
        return made


def _add(to: Amounts, more: Mapping[str, float], factor: float = 1) -> None:
    for name, count in more.items():
        to[name] += count * factor


def size_of(wire: Mapping[str, Any]) -> int:
    """Bytes of an item as DynamoDB counts them, near enough: names and values."""
    return sum(len(name) + _value_size(value) for name, value in wire.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind in ("S", "B"):
        return len(content.encode() if isinstance(content, str) else content)
    if kind == "N":
        return len(content) // 2 + 1
    if kind == "L":
        return 3 + sum(1 + _value_size(v) for v in content)
    if kind == "M":
        return 3 + sum(1 + len(k) + _value_size(v) for k, v in content.items())
    return 1


def units_of(operation: str, params: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    """Priced units of one call."""
    service, _, name = operation.partition(".")
    if service == "s3":
        return {"S3 GET" if name in ("GetObject", "HeadObject") else "S3 PUT, LIST": name != "DeleteObjects"}
    if service == "sqs":
        return {"SQS requests": 1}
    if service != "dynamodb":
        return {}
    if name in ("GetItem", "BatchGetItem"):
        found = [answer["Item"]] if "Item" in answer else []
        found += [item for items in answer.get("Responses", {}).values() for item in items]
        asked = sum(len(wanted["Keys"]) for wanted in params.get("RequestItems", {}).values()) or 1
        sections = sum(math.ceil(size_of(item) / READ_SECTION) for item in found) + asked - len(found)
        return {"DynamoDB read units": sections}
    if name == "Query":
        size = sum(size_of(item) for item in answer.get("Items", []))
        return {"DynamoDB read units": max(1, math.ceil(size / READ_SECTION))}
    return {"DynamoDB write units": _written(name, params)}


def _written(name: str, params: Mapping[str, Any]) -> int:
    if name == "TransactWriteItems":
        return sum(2 * _sections(entry) for wrapped in params["TransactItems"] for entry in wrapped.values())
    if name == "BatchWriteItem":
        requests = [r for found in params["RequestItems"].values() for r in found]
        return sum(_sections(next(iter(r.values()))) for r in requests)
    return _sections(params)


def _sections(entry: Mapping[str, Any]) -> int:
    """Kilobytes begun; of what is changed or removed we do not know the size, and most of ours are below one."""
    return max(1, math.ceil(size_of(entry["Item"]) / SECTION)) if "Item" in entry else 1


def waiting(calls: Mapping[str, float]) -> float:
    """Seconds in which a function waits for the answers of these calls, as if one followed the other: at most."""
    return sum(count * LATENCY[operation.partition(".")[0]] for operation, count in calls.items())


class Counting(System):
    """The system in this process, which counts what its functions use."""

    used: dict[str, Use]

    def _start(self) -> None:
        self.used = {}
        session, _ = inprocess._session(on_moto=self.endpoint is None)
        hooks = [("provide-client-params", self._before), ("after-call", self._after)]
        for name, hook in hooks:
            session.register(name, hook)
            self._stack.callback(session.unregister, name, hook)
        super()._start()

    def _before(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["counted"] = params

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if not self._running:
            return
        operation = f"{model.service_model.service_name}.{model.name}"
        use = self.used.setdefault(self._running[-1], Use())
        use.calls[operation] += 1
        _add(use.units, units_of(operation, context.get("counted", {}), parsed))

    def invoke(self, function: str, event: Any) -> Any:
        """Call a function, and count."""
        use = self.used.setdefault(function, Use())
        waited, began = waiting(use.calls), time.process_time()
        try:
            return super().invoke(function, event)
        finally:
            use.units["Lambda requests"] += 1
            use.units["Log GB"] += LOG_BYTES / 1e9
            seconds = time.process_time() - began + waiting(use.calls) - waited
            use.units["Lambda GB-seconds (arm64)"] += seconds * MEMORY_GB.get(function, 2.0)
            if function == "ApiFunction":
                use.units["API requests"] += 1

    def taken(self) -> dict[str, Use]:
        """What was used since this was asked last."""
        used, self.used = self.used, {}
        return used


# -- a small season ------------------------------------------------------------------------------------------------
@dataclass
class Measured:
    """What one of each costs."""

    submit: Use
    rate: Use
    """One game rated by itself."""
    rate_more: Use
    """A further game in the same run."""
    publish: Use
    """A publication after one game."""
    publish_more: Use
    """A further game in the same publication."""
    sweep: Use
    close: Use
    """A month of one pool."""
    bytes_per_game: float
    """In the table, with everything that is kept of a game."""
    players: int


def season(system: Counting, players: int = 50, history: int = 60) -> Measured:
    """Play a small season and measure one of each."""
    key = _prepare(system, players)
    for number in range(history):
        _send(system, key, number, players)
    system.settle()
    before = _table_bytes(system)
    system.taken()

    submitted = _played(system, key, [history], players)["ApiFunction"]
    rated, published = _rated(system), _published(system)
    more = 10
    _played(system, key, range(history + 1, history + 1 + more), players)
    many_rated, many_published = _rated(system), _published(system)
    each = (_table_bytes(system) - before) / (1 + more)
    system.schedule("sweep", "2026-11-30T12:00:00Z")
    swept = system.taken()["RaterFunction"]
    system.schedule("closing", "2026-12-01T00:05:00Z")
    closed = system.taken()["ClosingFunction"]
    return Measured(
        submitted,
        rated,
        (many_rated - rated).scaled(1 / (more - 1)),
        published,
        (many_published - published).scaled(1 / (more - 1)),
        swept,
        closed,
        each,
        players,
    )


def _prepare(system: Counting, players: int) -> str:
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    scopes = {"scopes": ["submit", "manage"]}
    key = str(system.admin("POST", "/v1/clubs/bern/keys", scopes).body["key"])
    pool = {
        "name": "P",
        "system": "bridier",
        "time_zone": "UTC",
        "languages": ["en"],
        "rules": [{"from": "2016-04-10"}],
    }
    system.admin("PUT", "/v1/pools/p", pool)
    for number in range(players):
        system.request("PUT", f"/v1/players/p{number}", json={"name": f"Player {number}"}, key=key)
    return key


def _send(system: Counting, key: str, number: int, players: int) -> None:
    one, two = number % players, (number * 7 + 3) % players
    two = two if two != one else (two + 1) % players
    minute, hour, day = number % 60, number // 60 % 24, 1 + number // 1440
    game = {
        "game_id": f"game-{number}",
        "finished_at": f"2026-11-{day:02d}T{hour:02d}:{minute:02d}:00Z",
        "result": {"players": [f"p{one}", f"p{two}"], "winner": f"p{one}"},
    }
    answer = system.request("POST", "/v1/pools/p/games", json=game, key=key)
    if answer.status != 201:
        message = f"not taken: {answer.body}"
        raise RuntimeError(message)


def _played(system: Counting, key: str, numbers: Any, players: int) -> dict[str, Use]:
    for number in numbers:
        _send(system, key, number, players)
    return system.taken()


def _rated(system: Counting) -> Use:
    system.invoke("RaterFunction", stream_event([keys.inbox("p", 0)]))
    return system.taken()["RaterFunction"]


def _published(system: Counting) -> Use:
    system.publish(["p"])
    with suppress(KeyError):
        return system.taken()["PublisherFunction"]
    return Use()


def _table_bytes(system: Counting) -> int:
    total, start = 0, None
    while True:
        more: dict[str, Any] = {"ExclusiveStartKey": start} if start else {}
        answer = system.dynamodb.scan(TableName=system.names["Table"], **more)
        total += sum(size_of(item) + 100 for item in answer["Items"])  # AWS adds 100 bytes to each
        start = answer.get("LastEvaluatedKey")
        if not start:
            return total


# -- pricing -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Size:
    """How large somebody is. All a month."""

    name: str
    players: int
    games: int
    pools: int
    evenings: int
    """Minutes in which results come in, over all pools: a pool is published at most once in each."""
    views: int
    """Pages looked at."""


SIZES = (
    Size("club: 50 players, 20 games a week", 50, 87, 1, 60, 2_000),
    Size("federation: 5,000 players, 50,000 games a month", 5_000, 50_000, 5, 20_000, 300_000),
    Size("platform: 1 M players, 10 M games a month", 1_000_000, 10_000_000, 100, 100 * MINUTES, 60_000_000),
)
OBJECTS_PER_VIEW = 3
KB_PER_VIEW = 15
YEARS_KEPT = 3
"""Games of so many years lie in the table."""


def month(measured: Measured, size: Size) -> dict[str, float]:
    """Units of one month by the prices' names."""
    publications = min(size.evenings, size.games)
    total: Amounts = defaultdict(float)
    for use, times in (
        (measured.submit, size.games),
        (measured.rate, publications),
        (measured.rate_more, size.games - publications),
        (measured.publish, publications),
        (measured.publish_more, size.games - publications),
        (measured.sweep, SWEEPS * size.pools),
        (measured.close, size.pools * max(1.0, size.players / size.pools / measured.players)),
    ):
        _add(total, use.units, times)
    stored = measured.bytes_per_game * size.games * 12 * YEARS_KEPT / 1e9
    _add(
        total,
        {
            "DynamoDB GB-months": stored,
            "DynamoDB backup GB-months (PITR)": stored,
            "DynamoDB export GB": stored * 52 / 12,
            "S3 GB-months": stored * 6,  # pages, checkpoints, five exports
            "SQS requests": MINUTES * 60 / 20 * 5 * 2,  # Lambda asks both queues, five at a time
            "Metrics": METRICS,
            "Alarm metrics": ALARM_METRICS,
            "CloudFront requests": size.views * OBJECTS_PER_VIEW,
            "CloudFront GB": size.views * KB_PER_VIEW / 1e6,
            "S3 GET": size.views // 20,
        },
    )
    return dict(total)


def price(units: Mapping[str, float]) -> dict[str, float]:
    """Dollars a month by part, what is free left out; the dearest first."""
    cost = {name: max(0.0, count - FREE.get(name, 0)) * PRICES[name] for name, count in units.items() if name in PRICES}
    return dict(sorted(cost.items(), key=lambda entry: -entry[1]))


# -- saying --------------------------------------------------------------------------------------------------------
def report(measured: Measured) -> str:
    """Both tables, in Markdown."""
    lines = ["| one ... | round trips | write units | read units | S3 PUT | S3 GET | GB-seconds |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    for name, use in (
        ("result sent", measured.submit),
        ("result rated by itself", measured.rate),
        ("further result of the same run", measured.rate_more),
        ("publication after one result", measured.publish),
        ("further result in it", measured.publish_more),
        ("sweep of a pool", measured.sweep),
        (f"closing of a pool of {measured.players} players", measured.close),
    ):
        units = use.units
        shown = [units["DynamoDB write units"], units["DynamoDB read units"], units["S3 PUT, LIST"], units["S3 GET"]]
        figures = " | ".join(f"{count:.1f}".removesuffix(".0") for count in (sum(use.calls.values()), *shown))
        lines.append(f"| {name} | {figures} | {units['Lambda GB-seconds (arm64)']:.2f} |")
    lines += [
        "",
        f"A result takes {measured.bytes_per_game / 1000:.1f} KB in the table, with all that is kept of it.",
        "",
    ]
    for size in SIZES:
        cost = price(month(measured, size))
        total = sum(cost.values())
        lines += [f"**{size.name}**: {total:,.2f} $ a month", ""]
        lines += [f"* {name}: {dollars:,.2f} $" for name, dollars in cost.items() if dollars > max(0.005, total / 100)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def run() -> str:
    """Start an emulator, play, and say what it costs."""
    with Emulator() as emulator, Counting.on_endpoint(emulator.url) as system:
        return report(season(system))


if __name__ == "__main__":
    print(run())
