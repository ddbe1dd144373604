"""The counts of one more game, and of a late one, checked against the emulator's own log of requests.

The same requests go to the same handlers (API, rater, publisher) twice: over the table and buckets in memory, counted
by the meters that ``onegame`` uses; and over the emulator, counted by what its log says that reached it. The log names
the service, and of S3 the method; it does not name DynamoDB's operations, so these are compared in sum. The handlers
run in this process and not in the emulator's, where warming up and the sweep would ask as well.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from unittest import mock

import functions.publisher.app
import functions.rater.app
from functions.api import app
from local.emulator import Emulator
from local.inprocess import LambdaContext, System, stream_event
from local.system import http_event, publish_event
from shared.store import keys
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases import access, bootstrap
from shared.usecases.context import Context, random_token
from shared.usecases.throttle import Limits
from tests.bench.table import Line
from tests.bench.units import MeteredBucket, MeteredTable
from tests.integration.memory import MemoryBucket, MemoryTable

PEOPLE = [f"p{number}" for number in range(8)]
ADMIN_KEY = "admin-key"
PLENTY = 1_000_000
Counts = dict[str, int]
_REQUEST = re.compile(r"\[ministack\] (\w+) \S+ -> service=(\w+)")
_S3 = {"put_object": "S3 PUT", "get_object": "S3 GET", "head_object": "S3 HEAD", "delete_objects": "S3 POST"}
_S3 |= {"list_objects_v2": "S3 GET"}


class Place(Protocol):
    """Where the handlers run."""

    def request(self, method: str, path: str, body: Any, key: str) -> Any:
        """Answer a request of the API."""

    def rate(self, pool: str) -> None:
        """Wake the rater."""

    def publish(self, pool: str) -> None:
        """Wake the publisher."""

    def counted(self) -> Counter[str]:
        """Requests so far, by kind."""


@dataclass
class InMemory:
    """Over the fakes, counted by the meters."""

    table: MeteredTable
    buckets: tuple[MeteredBucket, MeteredBucket]

    def request(self, method: str, path: str, body: Any, key: str) -> Any:
        """Answer a request of the API."""
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        event = http_event(method, path, headers=headers, body=json.dumps(body))
        answer = app.handler(event, LambdaContext("api"))  # type: ignore[arg-type]
        assert answer["statusCode"] < 300, answer
        return json.loads(answer["body"])

    def rate(self, pool: str) -> None:
        """Wake the rater."""
        functions.rater.app.handler(stream_event([keys.inbox(pool, 0)]), LambdaContext("rater"))

    def publish(self, pool: str) -> None:
        """Wake the publisher."""
        functions.publisher.app.handler(publish_event([pool]), LambdaContext("publisher"))

    def counted(self) -> Counter[str]:
        """Requests so far, by kind."""
        found = Counter({"DynamoDB": sum(self.table.meter.requests.values())})
        for bucket in self.buckets:
            for name, number in bucket.requests.items():
                found[_S3[name]] += number
        return found


@dataclass
class InEmulator:
    """Over the emulator, counted by its log."""

    system: System
    emulator: Emulator

    def request(self, method: str, path: str, body: Any, key: str) -> Any:
        """Answer a request of the API."""
        answer = self.system.request(method, path, json=body, key=key)
        assert answer.status < 300, answer
        return answer.body

    def rate(self, pool: str) -> None:
        """Wake the rater."""
        self.system.invoke("RaterFunction", stream_event([keys.inbox(pool, 0)]))

    def publish(self, pool: str) -> None:
        """Wake the publisher."""
        self.system.invoke("PublisherFunction", publish_event([pool]))

    def counted(self) -> Counter[str]:
        """Requests so far, by kind."""
        found: Counter[str] = Counter()
        for method, service in _REQUEST.findall(self.emulator.log.read_text(errors="replace")):
            if service == "dynamodb":
                found["DynamoDB"] += 1
            elif service == "s3":
                found[f"S3 {method}"] += 1
        return found


@contextmanager
def in_memory() -> Iterator[InMemory]:
    """The handlers over the fakes."""
    table = MeteredTable(MemoryTable())
    data, site = MeteredBucket(MemoryBucket()), MeteredBucket(MemoryBucket())
    ctx = Context(
        Table(table, "memory"),  # type: ignore[arg-type]
        Bucket(data, "data"),  # type: ignore[arg-type]
        Bucket(site, "site"),  # type: ignore[arg-type]
        token=random_token,
        limits=Limits(PLENTY, PLENTY),
    )
    access.install_admin_key(ctx.table, ADMIN_KEY)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, POWERTOOLS_METRICS_DISABLED="true"))
        for module in (bootstrap, functions.rater.app, functions.publisher.app):
            stack.enter_context(mock.patch.object(module, "context", return_value=ctx))
        yield InMemory(table, (data, site))


@contextmanager
def in_emulator() -> Iterator[InEmulator]:
    """The handlers over an emulator of their own, which writes down its requests."""
    with Emulator(log_requests=True) as emulator, System.on_endpoint(emulator.url) as system:
        yield InEmulator(system, emulator)


def workload(place: Place, admin_key: str) -> dict[str, Counter[str]]:
    """A pool with some games, one more, and one of last week; what each step asked."""
    pool = f"p{uuid.uuid4().hex[:6]}"
    rules = [{"from": "2020-01-01", "quit_ban_minutes": 0, "opt_out_ban_days": 0}]
    body = {"name": "P", "system": "spades", "time_zone": "UTC", "languages": ["en"], "rules": rules}
    place.request("PUT", f"/v1/pools/{pool}", body, admin_key)
    place.request("PUT", "/v1/clubs/bern", {"name": "Bern"}, admin_key)
    key = place.request("POST", "/v1/clubs/bern/keys", {"scopes": ["submit"]}, admin_key)["key"]
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    register = [{"id": name, "name": name} for name in PEOPLE]

    def send(game_id: str, ago: dt.timedelta, first: int, **more: Any) -> None:
        seats = [PEOPLE[(first + seat) % len(PEOPLE)] for seat in range(4)]
        result = {"teams": [seats[:2], seats[2:]], "outcome": "team1"}
        sent = {"game_id": game_id, "finished_at": (now - ago).isoformat(), "result": result, **more}
        place.request("POST", f"/v1/pools/{pool}/games", sent, key)

    for number in range(6):
        people = register[:4] if number == 0 else register[4:] if number == 1 else []
        send(f"g{number}", dt.timedelta(days=10 - number), 4 * number, **({"register": people} if people else {}))
    place.rate(pool)
    place.publish(pool)

    def step(run: Callable[[], None]) -> Counter[str]:
        before = place.counted()
        run()
        after = place.counted()
        return Counter({kind: after[kind] - before[kind] for kind in after if after[kind] != before[kind]})

    return {
        "submit": step(lambda: send("one-more", dt.timedelta(hours=1), 0)),
        "rate": step(lambda: place.rate(pool)),
        "publish": step(lambda: place.publish(pool)),
        "late: submit": step(lambda: send("late", dt.timedelta(days=7, hours=1), 2)),
        "late: rate": step(lambda: place.rate(pool)),
        "late: publish": step(lambda: place.publish(pool)),
    }


def both() -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """What the meters counted, and what the emulator's log says."""
    with in_memory() as place:
        counted = workload(place, ADMIN_KEY)
    with in_emulator() as emulated:
        logged = workload(emulated, emulated.system.admin_key)
    return counted, logged


def measure(scale: float) -> list[Line]:
    """The lines of the table. (``scale`` changes nothing.)"""
    counted, logged = both()
    return [
        Line(
            f"{step}: {kind} requests by the emulator's log",
            logged[step][kind],
            "",
            "counted",
            counted[step][kind],
            "equal",
            logged[step][kind] == counted[step][kind],
        )
        for step in logged
        for kind in sorted(logged[step] | counted[step])
    ]
