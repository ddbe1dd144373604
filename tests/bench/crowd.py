"""Clubs that all send at once: the real API handler in as many processes as it takes, the real rater behind it.

What runs is ``functions.api.app.handler`` and ``shared.usecases.rating.apply``, over the table of
``tests.bench.dynamo``. A request goes to a process that is free, else to a new one, as Lambda does it; each has limits
(``shared.usecases.throttle``) of its own. Requests are carried out one after another, each on its own time: what it
waits for the table, or between two tries, takes that process's time and nobody else's.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from functions.api import app
from local.inprocess import LambdaContext
from local.system import http_event
from shared.ledger.events import decode
from shared.ledger.order import iso
from shared.store import clubs, keys, people
from shared.store import rated as rated_store
from shared.store.bucket import Bucket
from shared.store.clubs import KeyRecord
from shared.store.table import Busy, Table
from shared.usecases import access, bootstrap, pools, rating
from shared.usecases.context import Context
from shared.usecases.throttle import Limits
from tests.bench.dynamo import SECOND, Clock, LimitedTable
from tests.bench.pools import WIDTH
from tests.integration.memory import MemoryBucket, MemoryTable

POOL = "p"
BEGIN = 1_793_534_400_000_000
"""1 November 2026, 12:00 UTC: a minute's first second, and no closing is near."""
CLUBS, MEMBERS = 50, 40
HANDLER_SECONDS = 0.02
"""What the API's own work takes in a function of 1,024 MB, beside its calls of the table."""
COLD_SECONDS = 0.6
"""... and what a new process takes longer."""
STREAM_SECONDS = 1.0
"""The stream gathers wake-ups for so long (``MaximumBatchingWindowInSeconds``)."""


@dataclass
class Sent:
    """A result that a club sends."""

    club: str
    game_id: str
    body: str


@dataclass
class Club:
    """A club's key, and what it has to send again, one after another."""

    name: str
    key: str
    waiting: deque[Sent] = field(default_factory=deque)
    woken_at: int | None = None
    """When it goes on; None: it has nothing left."""


@dataclass
class Came:
    """What came of it."""

    answers: Counter[int] = field(default_factory=Counter)
    """All requests by status."""
    first: Counter[int] = field(default_factory=Counter)
    """Those of the first time that a result was sent."""
    without_retry_after: int = 0
    refused_but_stored: int = 0
    accepted: list[str] = field(default_factory=list)
    """Games answered 201, each time."""
    last_accepted: int = 0
    """Microseconds from the first result sent to the last one accepted."""
    rater_gave_up: int = 0
    """Times that the rater left the rest to the next wake-up, as the table did not take it."""
    slowest: int = 0
    """Microseconds of the slowest request, the waiting for the table included."""


@dataclass
class Crowd:
    """A pool, its clubs, a limited table, and the processes of the API."""

    table: LimitedTable
    clock: Clock
    ctx: Context
    limits: tuple[int, int]
    """Requests a minute of one key, and to one pool; 0: no limit."""
    system: str
    club: dict[str, Club]
    came: Came = field(default_factory=Came)
    processes: list[tuple[int, int, Context]] = field(default_factory=list)
    """(free from, number, context), a heap; what is free longest comes first, which spreads the counts most."""
    started: int = 0
    rated_until: int = 0
    """The rater is at work until then."""

    # -- sending
    def results(self, count: int) -> list[Sent]:
        """So many results, the clubs in turn, everybody with somebody else each time."""
        dice = random.Random(1)
        found = []
        for number in range(count):
            club = f"c{number % CLUBS:02d}"
            table = dice.sample(range(MEMBERS), WIDTH[self.system])
            names = [f"{club}-{seat:02d}" for seat in table]
            if self.system == "bridier":
                result: dict[str, Any] = {"players": names, "winner": names[0]}
            else:
                result = {"teams": [names[:2], names[2:]]}
                result |= {"outcome": "team1"} if self.system == "spades" else {"striche": [3, 1]}
            body = {"game_id": f"g{number:06d}", "finished_at": iso(BEGIN + number), "result": result}
            found.append(Sent(club, f"g{number:06d}", json.dumps(body)))
        return found

    def run(self, results: Sequence[Sent], rate: int, *, again: bool, rater: bool = True) -> None:
        """Send them at an even rate, and, if ``again``, what was refused as soon as the answer allows, until all is in.

        A club sends again one result after another, as fast as it sent before.
        """
        begun = self.clock.now
        pause = SECOND * CLUBS // rate
        due: list[tuple[int, int, Sent | str]] = [
            (begun + number * SECOND // rate, number, sent) for number, sent in enumerate(results)
        ]
        numbers = itertools.count(len(due))
        while due:
            at, _, what = heapq.heappop(due)
            if rater and at >= self.rated_until:
                self.rate(at)
            club = self.club[what.club if isinstance(what, Sent) else what]
            if isinstance(what, str):
                if club.woken_at is not None and club.woken_at > at:
                    heapq.heappush(due, (club.woken_at, next(numbers), club.name))
                    continue
                sent = club.waiting.popleft()
            else:
                sent = what
            status, retry_after = self.request(sent, at, first=isinstance(what, Sent))
            if status in (200, 201):
                self.came.last_accepted = max(self.came.last_accepted, self.clock.now - begun)
            elif again:
                ready = self.clock.now + max(1, retry_after) * SECOND
                (club.waiting.append if isinstance(what, Sent) else club.waiting.appendleft)(sent)
                if isinstance(what, Sent) and club.woken_at is None:
                    heapq.heappush(due, (ready, next(numbers), club.name))
                club.woken_at = ready
            if isinstance(what, str):
                if club.waiting:
                    heapq.heappush(due, (max(self.clock.now + pause, club.woken_at or 0), next(numbers), club.name))
                else:
                    club.woken_at = None

    def request(self, sent: Sent, at: int, *, first: bool) -> tuple[int, int]:
        """One request; status and Retry-After in seconds (0: none)."""
        free, number, ctx = self.processes[0] if self.processes else (at + 1, 0, self.ctx)
        if free <= at:
            heapq.heappop(self.processes)
            self.clock.now = at
        else:
            self.started += 1
            number, ctx = self.started, replace(self.ctx, limits=Limits(*self.limits))
            self.clock.now = at + round(COLD_SECONDS * SECOND)
        self.clock.sleep(HANDLER_SECONDS)
        key = self.club[sent.club].key
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        event = http_event("POST", f"/v1/pools/{POOL}/games", headers=headers, body=sent.body)
        with mock.patch.object(bootstrap, "context", return_value=ctx):
            answer = app.handler(event, LambdaContext("api"))  # type: ignore[arg-type]
        heapq.heappush(self.processes, (self.clock.now, number, ctx))
        status, retry_after = int(answer["statusCode"]), int(answer["headers"].get("Retry-After", 0))
        came = self.came
        came.answers[status] += 1
        came.first[status] += first
        came.slowest = max(came.slowest, self.clock.now - at)
        if status == 201:
            came.accepted.append(sent.game_id)
        elif status != 200:
            came.without_retry_after += retry_after == 0
            pk, sk = keys.game(POOL, sent.club, sent.game_id)
            came.refused_but_stored += self.table.memory.find({"pk": {"S": pk}, "sk": {"S": sk}}) is not None
        return status, retry_after

    # -- rating
    def rate(self, at: int) -> None:
        """Wake the rater, which works on its own time; the next wake-up comes when it is done."""
        self.clock.now = at
        try:
            rating.apply(self.ctx.patient(), POOL)
        except Busy:
            self.came.rater_gave_up += 1
        self.rated_until = max(self.clock.now, at + round(STREAM_SECONDS * SECOND))

    def drain(self) -> None:
        """Rate until nothing waits."""
        at = self.rated_until
        while self.waiting():
            self.rate(at)
            at = self.rated_until

    # -- what is stored
    def waiting(self) -> int:
        """Events that are not rated yet."""
        return sum(len(items) for pk, items in self.table.memory.partitions.items() if pk.startswith(keys.INBOX))

    def ledger(self) -> list[str]:
        """The games of all events of the ledger."""
        found = []
        for pk, items in self.table.memory.partitions.items():
            if pk.startswith(f"LEDGER#{POOL}#"):
                events = [decode(item["event"]["S"]) for item in items.values()]
                found += [event.game.game_id for event in events if event.game is not None]
        return found

    def passed(self) -> float:
        """Seconds since the first result was sent."""
        return (self.clock.now - BEGIN) / SECOND

    def rated(self) -> int:
        """Rated games, by the cursor."""
        return rated_store.read_cursor(self.ctx.table, POOL).games


@contextmanager
def crowd(system: str, per_key: int, per_pool: int) -> Iterator[Crowd]:
    """Fifty clubs of forty players and an empty pool, at noon."""
    clock = Clock(BEGIN)
    table = LimitedTable(MemoryTable(), clock)
    bucket = Bucket(MemoryBucket(), "data")  # type: ignore[arg-type]
    tokens = itertools.count(1)
    ctx = Context(
        Table(table, "memory"),  # type: ignore[arg-type]
        bucket,
        bucket,
        clock=lambda: clock.now,
        token=lambda length: f"{next(tokens):0{length}d}",
    )
    draft = pools.PoolDraft("Pool", system, "Europe/Zurich", ("en",), None, ({"from": "2000-01-01"},))
    with ExitStack() as stack:
        stack.enter_context(mock.patch("time.sleep", clock.sleep))
        stack.enter_context(mock.patch("random.uniform", random.Random(1).uniform))
        stack.enter_context(mock.patch.object(app.log, "info", _say_nothing))
        pools.put(ctx, POOL, draft)
        members = {}
        for number in range(CLUBS):
            name = f"c{number:02d}"
            members[name] = Club(name, f"key-of-{name}")
            ctx.table.transact(clubs.key_operations(_record(members[name])))
            for seat in range(MEMBERS):
                handle = f"{name}-{seat:02d}"
                ctx.table.transact(people.registration(handle, handle, name, f"sid-{handle}"))
        clock.now = BEGIN
        rating.apply(ctx, POOL)
        clock.now = BEGIN
        table.seconds.clear()
        table.throttled.clear()
        table.meter = type(table.meter)()
        yield Crowd(table, clock, ctx, (per_key, per_pool), system, members)


def _say_nothing(*_: object, **__: object) -> None:
    """Instead of a line for each request."""


def _record(club: Club) -> KeyRecord:
    return KeyRecord(access.hash_of(club.key), club.name, "k", ("submit",), "", 0)
