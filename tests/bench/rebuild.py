"""A rebuild of a large pool: what is measured here, what is counted, and the arithmetic of what DynamoDB adds to it.

Measured: folding segments into encoded rows; CPU and memory of the rater, its table in another process; the CPU that
AWS's client takes for a row (its answers are made here). Counted over the table in memory: requests, write units by
key, ledger items read, and what is written twice when a run breaks off. Arithmetic: those units at the rates that
DynamoDB's guide gives for a key and a table. Nothing was run against AWS.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import botocore.session
from botocore.awsrequest import AWSResponse

from shared.ledger.fold import Fold, Rated
from shared.ledger.replay import story_of_segments
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from shared.store import keys
from shared.store import rated as store
from shared.store.rated import Change, View
from shared.store.table import TRANSACTION_ITEMS, Table, to_wire
from shared.usecases import rating
from shared.usecases.compact import Packed
from tests.bench import rebuilding
from tests.bench.fold import UNTIL, ZONE, stored
from tests.bench.limits import KEY_WRITES, TABLE_WRITES
from tests.bench.table import Line
from tests.bench.units import Meter, MeteredTable
from tests.integration.ladder import Ladder
from tests.integration.memory import Killed, MemoryTable

LAMBDA_SECONDS = 900
LAMBDA_MB = 2_048
"""The rater's MemorySize in template.yaml."""
IDLE_MB = 110
"""What the process holds before it has a pool in hand: the packages, and Lambda's own runtime."""
PAGES_FULL = 100_000
"""With fewer games the pages that a rebuild reads side by side still grow, and memory seems to grow with games."""
ONE_BY_ONE = 10
"""One game in so many has a duration, a quit or a correction, and is no column of a segment: an assumption."""
PAGE_SECONDS = 0.03
"""A page of 1 MB of a query, from a function in the same region: an assumption, not measured here."""
FRESH_TABLE_WRITES = 4_000
"""Write units a second of a new on-demand table; it takes twice its last peak within half an hour."""
FULL = 1_000_000


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    lines, row_bytes = _encoded(min(FULL, int(FULL * scale * 5)))
    counted, costs = _counted(max(2_000, int(50_000 * scale)))
    games = FULL if scale >= 1 else int(FULL * scale / 2)
    held, cpu = _held(games)
    return [*lines, *held, *counted, *_interrupted(max(2_000, int(20_000 * scale))), *_whole(cpu, costs, row_bytes)]


# -- folding -----------------------------------------------------------------------------------------------------------
def _encoded(games: int) -> tuple[list[Line], float]:
    """Segments to encoded rows; the bytes of a row."""
    players = max(200, games // 100)
    system = rule_system("spades")
    rules = (DatedRules(-(2**60), system.settings_model()),)
    ledger = [Packed(body, 0, []) for body in stored("spades", games, players)]
    gc.collect()
    begin = time.process_time()
    fold = Fold(system, rules, ZONE)
    rows = size = 0
    for what in fold.run(story_of_segments(system, rules, ledger, []), closings_after=None, closed_until=UNTIL):
        if isinstance(what, Rated):
            rows += 1
            size += len(store.dump(what))
    seconds = time.process_time() - begin
    whole = seconds / rows * FULL
    note = f"{rows:,} rows of {size / rows:.0f} bytes, {players:,} players"
    met = whole < LAMBDA_SECONDS
    return [
        Line("segments to encoded rows, one process", rows / seconds, "rows/s", note=note),
        Line("... 1,000,000 games", whole, "s", "one function", LAMBDA_SECONDS, "under 900 s", met),
    ], size / rows


# -- memory and CPU ----------------------------------------------------------------------------------------------------
def _held(games: int) -> tuple[list[Line], dict[str, float]]:
    """Memory of the rater at two sizes; CPU seconds a game of each step at the larger one."""
    peaks: dict[int, float] = {}
    cpu: dict[str, float] = {}
    players = max(500, games // 100)
    lines = []
    for size in (games // 4, games):
        steps = _steps(size, players)
        peaks[size] = steps[-1]["mb"]
        cpu = {step["step"]: step["cpu"] / size for step in steps}
        note = "; ".join(f"{step['step']}: {step['mb']:.0f}" for step in steps)
        lines.append(Line(f"memory of a rebuild, {size:,} games, {players:,} players", peaks[size], "MB", note=note))
    small, large = sorted(peaks)
    each = (peaks[large] - peaks[small]) * 1e6 / (large - small)
    at_full = IDLE_MB + peaks[large] + each * (FULL - large) / 1e6
    apart = (_steps(small, players, minutes=20)[-1]["mb"] - peaks[small]) * 1e6 / small
    mixed = at_full + apart * FULL / ONE_BY_ONE / 1e6
    return [
        *lines,
        Line("... bytes a game", each, "bytes", note="the packed ledger, and what the fakes of this measurement hold"),
        Line("... and of a game that is told one by one (it took a while)", apart, "bytes"),
        Line("... 1,000,000 games, none of those, with an idle process's", at_full, "MB"),
        Line(
            f"... 1,000,000 games, one in {ONE_BY_ONE} of those",
            mixed,
            "MB",
            "the rater's MemorySize",
            LAMBDA_MB,
            "half of it at most",
            mixed < LAMBDA_MB / 2 if large >= PAGES_FULL else None,
        ),
        Line(
            "... 1,000,000 games, all of those",
            at_full + apart * FULL / 1e6,
            "MB",
            "the rater's MemorySize",
            LAMBDA_MB,
            "below it",
            at_full + apart * FULL / 1e6 < LAMBDA_MB if large >= PAGES_FULL else None,
        ),
    ], cpu


def _steps(games: int, players: int, minutes: int = 0) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.bench.rebuilding", str(games), str(players), str(minutes)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in told]


def _client(answer: bytes) -> Table:
    """A table over AWS's own client, whose requests are made and signed, and answered here."""

    class Raw:
        def stream(self, *_: object, **__: object) -> Any:
            yield answer

    def send(request: Any, **_: object) -> AWSResponse:
        return AWSResponse(request.url, 200, {"content-type": "application/x-amz-json-1.0"}, Raw())

    client = botocore.session.Session().create_client(
        "dynamodb", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    client.meta.events.register("before-send.dynamodb", send)
    return Table(client, "table")


def _seconds_of(act: Callable[[], object], times: int) -> float:
    act()
    begin = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - begin) / times


def _client_seconds(row_bytes: float) -> tuple[float, float, float]:
    """CPU seconds that the client takes to write a row in a transaction, to write a pointer in a batch, and to read a
    row in a page of 1 MB."""
    text = "x" * int(row_bytes)
    changes = [Change((keys.rated("p", "2026-01", n % 8), f"{n:060d}"), None, text, text) for n in range(100)]
    writes = [store.change_operation(change, View(1), 2) for change in changes]
    writer = _client(b"{}")
    written = _seconds_of(lambda: writer.transact(writes), 20)
    pointers = [{"pk": keys.history("p", f"{n:020x}"), "sk": f"{n:060d}"} for n in range(100)]
    pointed = _seconds_of(lambda: writer.batch_write(pointers), 20)
    count = int(1e6 / (row_bytes + 150))
    page = json.dumps({"Items": [to_wire(write.item) for write in writes] * (count // 100), "Count": count}).encode()
    table = _client(page)
    read = _seconds_of(lambda: list(table.query("p")), 20)
    return written / len(writes), pointed / len(pointers), read / (count // 100 * 100)


# -- requests and units ------------------------------------------------------------------------------------------------
@dataclass
class _Cost:
    """What a step wrote, a game."""

    rows: float
    """Write units on the keys of rated rows."""
    others: float
    hottest: float
    """The share of those of rated rows that the hottest key of its month takes."""


@dataclass
class _Watched(MeteredTable):
    """Also counts the ledger's items that are read."""

    client: Any
    ledger_items: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.client)

    def query(self, **arguments: Any) -> Any:
        """A query."""
        answer = super().__getattr__("query")(**arguments)
        self.ledger_items += sum(item["pk"]["S"].startswith("LEDGER#") for item in answer["Items"])
        return answer


def _counted(games: int) -> tuple[list[Line], dict[str, _Cost]]:
    table = _Watched(MemoryTable())
    ladder, bucket = rebuilding.pool_in(table, rebuilding.segments_of(games, max(200, games // 50)))
    lines, costs = [], {}
    for step, act in rebuilding.steps(ladder):
        table.meter, table.ledger_items = Meter(), 0
        bucket.requests.clear()
        act()
        written = table.meter.written
        rated = Counter({key: units for key, units in written.items() if key.startswith("RATED#")})
        months: Counter[str] = Counter()
        for key, units in rated.items():
            months[key.rsplit("#", 1)[0]] += units
        hottest = max((units / months[key.rsplit("#", 1)[0]] for key, units in rated.items()), default=0.0)
        others = Counter({key.split("#")[0]: 0 for key in written})
        for key, units in written.items():
            others[key.split("#")[0]] += units
        costs[step] = _Cost(rated.total() / games, (written.total() - rated.total()) / games, hottest)
        kinds = ", ".join(f"{kind} {units / games:.2f}" for kind, units in others.most_common(5) if units > games / 100)
        pool_key = written["POOL#p"] / games
        lines += [
            Line(f"{step}: write units a game", written.total() / games, "units", note=kinds or "nothing but the plan"),
            Line(
                f"{step}: ... on the key of the pool's cursor", pool_key, "units", note="no key that holds up the rest"
            ),
            Line(f"{step}: table requests a game", sum(table.meter.requests.values()) / games, "", note=_told(table)),
            Line(f"{step}: read units a game", table.meter.read / games, "units"),
            Line(
                f"{step}: segments read from S3",
                bucket.requests["get_object"],
                "requests",
                "ledger items read",
                table.ledger_items,
                "none of closed months",
                table.ledger_items <= 2,  # the rules, accepted in the month that is not closed yet
            ),
        ]
    return lines, costs


def _told(table: MeteredTable) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in table.meter.requests.most_common(4))


# -- breaking off ------------------------------------------------------------------------------------------------------
def _interrupted(games: int) -> list[Line]:
    """A replay that changes every row dies half-way, and the next run goes on."""
    ledger = rebuilding.segments_of(games, 200)

    def rated_once(stop: Callable[[str, Any], None] | None) -> tuple[Ladder, Counter[Any]]:
        ladder, _ = rebuilding.pool_in(MemoryTable(), ledger)
        rows: Counter[Any] = Counter()
        for step, act in rebuilding.steps(ladder):
            if step == "nothing changes":
                continue
            if step == "every row changes":
                table: Any = ladder.ctx.table.client
                table.calls.after = lambda name, call: _note(rows, name, call)
                table.calls.before = stop
                try:
                    act()
                except Killed:
                    table.calls.before = None
                    with mock.patch.object(rating, "LONG_REPLAY", 0):
                        ladder.rate()
            else:
                act()
        return ladder, rows

    with mock.patch.object(rating, "WATCH_SECONDS", 0.0):
        whole, every = rated_once(None)
        seen = 0

        def stop(name: str, _: Any) -> None:
            nonlocal seen
            seen += name == "transact_write_items"
            if seen == games // TRANSACTION_ITEMS // 2:
                raise Killed

        broken, rows = rated_once(stop)
    same = broken.cursor().hash == whole.cursor().hash and rows.keys() == every.keys()
    twice = sum(count - 1 for count in rows.values())
    note = f"state hash {broken.cursor().hash[:16]}…, both; {len(rows):,} rows"
    return [
        Line("broken off half-way and gone on with: rows written twice", twice, "rows", "", None, "none", twice == 0),
        Line("... the same state hash and rows", float(same), "", "", None, "the same", same, note),
    ]


def _note(rows: Counter[Any], name: str, call: Any) -> None:
    if name == "transact_write_items":
        for entry in call["TransactItems"]:
            item = entry.get("Put", {}).get("Item", {})
            if "bg" in item and item["pk"]["S"].startswith("RATED#"):
                rows[(item["pk"]["S"], item["sk"]["S"])] += 1


# -- a million games ---------------------------------------------------------------------------------------------------
def _whole(cpu: dict[str, float], costs: dict[str, _Cost], row_bytes: float) -> list[Line]:
    """What all of it comes to: the processor's time was measured, the table's is arithmetic."""
    write, point, read = _client_seconds(row_bytes)
    lines = [
        Line("AWS's client: CPU to write a row", write * 1e6, "µs", note="in a transaction of 100"),
        Line("... to write a pointer", point * 1e6, "µs", note="in a batch of 25"),
        Line("... to read a row", read * 1e6, "µs", note="in a page of 1 MB"),
    ]
    passes = {"every row is new": 0, "nothing changes": 1, "every row changes": 2}
    """How often the rows that stand are read."""
    for step, cost in costs.items():
        pages = passes[step] * FULL * row_bytes / 1e6
        busy = (cpu[step] + passes[step] * read + (step != "nothing changes") * write) * FULL
        busy += cost.others * point * FULL  # a unit each
        waits = pages * PAGE_SECONDS
        note = f"{busy:.0f} s of CPU, {waits:.0f} s for {pages:,.0f} pages"
        if step == "nothing changes":
            seconds = busy + waits
            lines.append(_fits(f"1,000,000 games, {step}: one run", seconds, note))
            continue
        units = cost.rows + cost.others
        in_one_month = FULL * cost.rows * cost.hottest / KEY_WRITES
        for where, table_seconds in (
            ("all in one month, its keys' limit", max(in_one_month, FULL * units / TABLE_WRITES)),
            (f"over 24 months, a table of {TABLE_WRITES:,} units/s", FULL * units / TABLE_WRITES),
            (f"a new table of {FRESH_TABLE_WRITES:,} units/s", FULL * units / FRESH_TABLE_WRITES),
        ):
            more = f"{note}; the table: {table_seconds:.0f} s, while the processor works"
            lines.append(_fits(f"1,000,000 games, {step}: {where}", max(busy, table_seconds) + waits, more))
    return lines


def _fits(what: str, seconds: float, note: str) -> Line:
    return Line(what, seconds, "s", "", None, "under 900 s", seconds < LAMBDA_SECONDS, note)
