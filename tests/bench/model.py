"""Traffic replayed second by second against a model of the limits: what waits where, and which limit comes first.

A pool has an inbox (shards of partitions), one rater at a time, and a publisher that comes a delay after it was asked.
What a result costs on each kind of key is counted by running the real code (``costs``); which shard it falls on is told
by the real hash (``shared.store.keys.shard``). What is given by AWS stands in ``limits``; what is assumed stands below.
Left out, all on the lenient side of AWS: DynamoDB's saved-up capacity of 300 s; the minutes that a new table or a
function's concurrency takes to grow; that two shards of the stream may wake the same pool at once.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from shared.store import keys
from shared.store.table import Table
from shared.usecases import bootstrap
from site_builder import parts
from tests.bench import limits, pools
from tests.bench.units import Meter, MeteredTable
from tests.integration.ladder import Ladder, at
from tests.integration.memory import MemoryTable

SUBMIT_SECONDS = 0.05
"""A submission in a warm function: three calls of the table, 20 ms of its own."""
TRANSACTION_SECONDS = 0.026
"""A transaction of 100 items, measured in the emulator."""
GAME_SECONDS = 0.0008
"""CPU of rating a game in a batch, as ``make bench ARGS=submit`` has it, in a function of 2,048 MB."""
WAKE_SECONDS = 0.03
"""What a wake-up takes that finds nothing to do for a pool: two reads, four queries."""
PUT_SECONDS, QUESTIONS = 0.03, 2
"""S3 answers so fast; each object is asked for before it is put."""
MOVED = 0.5
"""Of the pages of a list, so many differ by one game: 472 of 1,000 in ``onegame``."""
OBJECT_SECONDS = 0.0005
"""CPU of building a page."""
PLAYER_OBJECTS, GAME_OBJECTS, PAGE_OBJECTS, PAGE_ROWS = 4, 1, 2, 100
REPLAY_MOMENTS, REPLAY_UNITS, REPLAYED = 4_000, 3.2, 2_000
"""A replay folds so many moments a second, writes so many units for each, and takes so many results with it, as ``make
bench ARGS=onegame`` has a late result."""
VIEWS = 20
"""Pages that readers look at for each result, assumed; the demo has no readers."""
CACHED_SECONDS = 60
"""``s-maxage`` of the pages: each is asked of S3 once in so long, if at all. Nothing is ever invalidated."""
HOT = 1.25
"""The hottest of some shards, beside their mean, in a second of tens to hundreds of results."""


@dataclass(frozen=True)
class Costs:
    """What one result costs, counted."""

    submit: dict[str, float]
    """Write units of submitting, by what the partition keys begin with."""
    rate: dict[str, float]
    """... and of rating it in a batch."""
    games: float
    """Games of a rating transaction."""
    removal: float
    """Write units on the inbox of taking an event out."""


@cache
def costs() -> Costs:
    """Counted over the table in memory: 200 games of Spades in a pool of 400 players who have played before."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-11-02 12:00")
    ladder.open_pool()
    ladder.rate()
    every = list(pools.games("spades", 600, 400))
    ladder.register(*sorted({name for game in every for name in itertools.chain(*game.content["teams"])}))
    for game in every[:400]:
        ladder.submit(pools.draft(game, ladder.now))
    ladder.rate()
    games = every[400:]
    sent = _metered(ladder, lambda: [ladder.submit(pools.draft(game, ladder.now)) for game in games])
    rated = _metered(ladder, ladder.rate)
    removal = sum(units for pk, units in rated.written.items() if pk.startswith(keys.INBOX)) / len(games)
    moved = rated.requests["transact_write_items"]
    return Costs(_kinds(sent, len(games)), _kinds(rated, len(games)), len(games) / moved, removal)


def _metered(ladder: Ladder, run: object) -> Meter:
    client = ladder.ctx.table.client
    assert isinstance(client, MemoryTable)
    table = MeteredTable(client)
    before, ladder.ctx = ladder.ctx, replace(ladder.ctx, table=Table(table, "memory"))  # type: ignore[arg-type]
    run()  # type: ignore[operator]
    ladder.ctx = before
    return table.meter


def _kinds(meter: Meter, games: int) -> dict[str, float]:
    found: Counter[str] = Counter()
    for pk, units in meter.written.items():
        found[pk.split("#")[0]] += units
    return {kind: units / games for kind, units in found.items()}


@dataclass(frozen=True)
class Settings:
    """What an operator can set, or a later version of the code: the answers."""

    gateway: float = 600
    """``ApiRateLimit``."""
    per_pool: float = 3_000
    """``PoolRequestsPerMinute``."""
    publish_delay: int = 60
    uploads: int = 16
    """``UPLOADS_AT_ONCE``."""
    helpers: int = bootstrap.HELPERS
    publishers: int = 12
    """``MaximumConcurrency`` of the publish queue: runs of the publisher at once, helpers among them."""
    inbox_shards: int = keys.SHARDS
    rated_shards: int = keys.RATED_SHARDS
    table_writes: float = limits.TABLE_WRITES
    concurrency: float = limits.CONCURRENCY
    parallel: int = 1
    """``ParallelizationFactor`` of the stream: batches of one of its shards at once."""


@dataclass(frozen=True)
class Stage:
    """A size: results a second, second by second over all pools, and how many pools and players share them."""

    name: str
    results: Sequence[float]
    pools: int
    players: int
    """Of each pool."""
    late: float = 0.0
    """The share of results that come after later ones were rated."""
    recorded: int = 0
    """Rated games of each pool since the last closing: what a late result replays."""


@dataclass
class Outcome:
    """What came of a stage under some settings."""

    shares: dict[str, float] = field(default_factory=dict)
    """The most of each limit that the traffic asks for; above 1 something waits, or is refused."""
    stored_after: int = 0
    """Seconds that a result waited at most until a try of its sender was accepted."""
    rated_after: int = 0
    """... after that until it was rated."""
    published_after: int = 0
    """... after that until it was on the pages."""
    most_waiting: int = 0
    """Results in the inbox of one pool."""

    @property
    def first(self) -> str:
        """The limit that comes first."""
        return max(self.shares, key=lambda name: self.shares[name])


@dataclass
class _Pool:
    """One pool's queues: (second, how many)."""

    clients: deque[list[float]] = field(default_factory=deque)
    inbox: deque[list[float]] = field(default_factory=deque)
    unpublished: deque[list[float]] = field(default_factory=deque)
    asked_at: int | None = None
    publishing: list[float] = field(default_factory=list)
    """[objects left, rated since when, runs that share it] of a publication."""
    taken: float = 0.0
    """Requests of the running minute."""
    late: float = 0.0
    """Late results in the inbox."""
    replaying: list[float] = field(default_factory=list)
    """[until when, how many results, the oldest of when] of a replay that runs."""


def _add(queue: deque[list[float]], second: int, number: float) -> None:
    if number > 0:
        queue.append([second, number])


def _take(queue: deque[list[float]], most: float, now: int) -> tuple[float, int]:
    """The oldest ``most`` of a queue: how many, and how long the oldest had waited."""
    taken, waited = 0.0, 0
    while queue and taken < most:
        since, number = queue[0]
        part = min(number, most - taken)
        waited = max(waited, now - int(since))
        taken += part
        if part >= number - 1e-9:
            queue.popleft()
        else:
            queue[0][1] = number - part
    return taken, waited


def objects_of(games: float, players: int) -> float:
    """Objects that a publication of so many games writes: theirs, their players', and pages of the list."""
    people = min(players, 4 * games)
    pages = min(-(-players // PAGE_ROWS), max(1.0, games * players / PAGE_ROWS * MOVED))
    return games * GAME_OBJECTS + people * PLAYER_OBJECTS + pages * PAGE_OBJECTS


def uploads_a_second(settings: Settings) -> float:
    """Objects that one publication puts."""
    return 1 / (OBJECT_SECONDS + PUT_SECONDS * QUESTIONS / settings.uploads)


def runs_of(objects: float, free: float, settings: Settings) -> float:
    """How many runs share a publication: its own, and a helper for each thousand objects, as far as they may."""
    return 1 + max(0, min(settings.helpers, free - 1, objects // parts.OBJECTS))


def rated_a_second(cost: Costs, settings: Settings) -> dict[str, float]:
    """Games a second that each limit of one pool lets its rater rate."""
    return {
        "one rater's time": 1 / (TRANSACTION_SECONDS / cost.games + GAME_SECONDS),
        "key of a month's rated rows": limits.KEY_WRITES * settings.rated_shards / HOT / cost.rate["RATED"],
        "key of players' states": limits.KEY_WRITES * keys.STATE_SHARDS / HOT / cost.rate["STATE"],
        "key of the pool": limits.KEY_WRITES / cost.rate["POOL"],
        "key of one tournament's games": limits.KEY_WRITES / cost.rate["LABEL"],  # if all are of one
        "key of the outbox": limits.KEY_WRITES / cost.rate["OUTBOX"],
    }


def simulate(stage: Stage, settings: Settings, cost: Costs) -> Outcome:
    """Replay a stage, and go on until nothing waits (an hour longer at most)."""
    out = Outcome()
    each = [_Pool() for _ in range(stage.pools)]
    speeds = rated_a_second(cost, settings)
    speed = min(speeds.values())
    put = cost.submit["INBOX"] * HOT / settings.inbox_shards
    removal = cost.removal * HOT / settings.inbox_shards
    units = sum(cost.submit.values()), sum(cost.rate.values())
    uploads = uploads_a_second(settings)
    shards = max(4, -(-int(max(stage.results) * sum(units)) // limits.KEY_WRITES))
    peak = _Peaks(out.shares)
    second = 0
    while second < len(stage.results) + 3600:
        results = stage.results[second] if second < len(stage.results) else 0.0
        if second >= len(stage.results) and not any(
            p.clients or p.inbox or p.replaying or p.unpublished or p.publishing for p in each
        ):
            break
        table = settings.table_writes
        accepted_all = raters = puts = 0.0
        running = sum(pool.publishing[2] for pool in each if pool.publishing)
        for pool in each:
            _add(pool.clients, second, results / stage.pools)
        wanted = sum(number for pool in each for _, number in pool.clients)
        gateway = min(1.0, settings.gateway / wanted) if wanted else 1.0  # lets so large a part of everybody's through
        for pool in each:
            if second % 60 == 0:
                pool.taken = 0.0
            through = gateway * sum(number for _, number in pool.clients)
            room = min(through, settings.per_pool - pool.taken, limits.KEY_WRITES / put, table / units[0])
            accepted, waited = _take(pool.clients, max(0.0, room), second)
            out.stored_after = max(out.stored_after, waited if accepted else 0)
            table -= accepted * units[0]
            pool.taken += accepted
            accepted_all += accepted
            _add(pool.inbox, second, accepted)
            waiting = sum(number for _, number in pool.inbox)
            out.most_waiting = max(out.most_waiting, round(waiting))
            pool.late += accepted * stage.late
            room = min(speed, (limits.KEY_WRITES - accepted * put) / removal, table / units[1])
            replayed = bool(pool.replaying)  # such a run has written its rows over its whole time
            rated, waited = _rate(pool, max(0.0, room), stage.recorded, settings, second)
            out.rated_after = max(out.rated_after, waited if rated else 0)
            table -= 0 if replayed else rated * units[1]
            raters += 1 if pool.replaying else rated / speeds["one rater's time"]
            _add(pool.unpublished, second, rated)
            written, begun = _publish(pool, settings, stage.players, running, second, out)
            running += begun
            puts = max(puts, written)
        a_pool = results / stage.pools
        if stage.late and a_pool:
            peak("replays of late results", a_pool * replay_seconds(stage.recorded, settings) / REPLAYED)
        peak("API gateway (ApiRateLimit)", results / settings.gateway)
        peak("partition of the inbox", a_pool * (put + removal) / limits.KEY_WRITES)
        for name, most in speeds.items():
            peak(name, a_pool / most)
        peak("table's write units", results * sum(units) / settings.table_writes)
        peak("functions at once", (accepted_all * SUBMIT_SECONDS + raters + running) / settings.concurrency)
        peak("shards of the stream, records", results / shards / limits.STREAM_RECORDS)
        peak("shards of the stream, wake-ups", _wake_ups(results, stage.pools, shards, speeds, settings))
        peak("S3 PUTs below a prefix", puts / limits.S3_PUTS)
        seen = min(results * VIEWS, stage.pools * stage.players * 1.1 / CACHED_SECONDS)
        peak("S3 GETs below a prefix", seen / stage.pools / limits.S3_GETS)
        second += 1
    minute = _most_in(stage.results, 60) / stage.pools
    peak("a pool's limit (PoolRequestsPerMinute)", minute / settings.per_pool)
    window = max(60, settings.publish_delay)
    objects = objects_of(_most_in(stage.results, window) / stage.pools, stage.players)
    peak("publisher's time", objects / uploads / runs_of(objects, settings.publishers, settings) / window)
    peak("publishers at once", objects * stage.pools / uploads / window / settings.publishers)
    return out


def replay_seconds(recorded: int, settings: Settings) -> float:
    """What a replay takes: folding, and writing every row anew under its limit by key, or by its transactions."""
    keys_ = REPLAY_UNITS * HOT / settings.rated_shards / limits.KEY_WRITES
    return recorded * (1 / REPLAY_MOMENTS + max(keys_, TRANSACTION_SECONDS / 98))


def _rate(pool: _Pool, room: float, recorded: int, settings: Settings, second: int) -> tuple[float, int]:
    """A second of a pool's rater: what is rated with it, and how long the oldest of it waited."""
    if pool.replaying:
        until, number, since = pool.replaying
        if second < until:
            return 0.0, 0
        pool.replaying = []
        return number, second - int(since)
    if pool.late >= 1 and pool.inbox:
        pool.late = 0.0
        number, waited = _take(pool.inbox, REPLAYED, second)
        pool.replaying = [second + replay_seconds(recorded, settings), number, second - waited]
        return 0.0, 0
    return _take(pool.inbox, room, second)


class _Peaks:
    def __init__(self, shares: dict[str, float]) -> None:
        self.shares = shares

    def __call__(self, name: str, share: float) -> None:
        self.shares[name] = max(share, self.shares.get(name, 0.0))


def _most_in(results: Sequence[float], window: int) -> float:
    """The most results of so many seconds in a row."""
    running = most = sum(results[:window])
    for new, old in zip(results[window:], results, strict=False):
        running += new - old
        most = max(most, running)
    return most


def _wake_ups(results: float, pools_: int, shards: int, speeds: dict[str, float], settings: Settings) -> float:
    """How busy one shard's reader is: a batch names pools, and the rater goes to each, one after another."""
    records = results / shards
    named = min(records, pools_)  # of a second's batch, each pool once
    work = named * WAKE_SECONDS + results / speeds["one rater's time"] / shards
    return work / settings.parallel


def _publish(
    pool: _Pool, settings: Settings, players: int, running: float, second: int, out: Outcome
) -> tuple[float, float]:
    """A second of a pool's publisher: how many objects it wrote, and how many runs began; ``running``: of all pools."""
    begun = 0.0
    if pool.unpublished and pool.asked_at is None and not pool.publishing:
        pool.asked_at = second
    free = settings.publishers - running
    if pool.asked_at is not None and second >= pool.asked_at + settings.publish_delay and free >= 1:
        pool.asked_at = None
        games, waited = _take(pool.unpublished, float("inf"), second)
        objects = objects_of(games, players)
        begun = runs_of(objects, free, settings)
        pool.publishing = [objects, second - waited, begun]
    if not pool.publishing:
        return 0.0, 0.0
    written = min(uploads_a_second(settings) * pool.publishing[2], pool.publishing[0])
    pool.publishing[0] -= written
    if pool.publishing[0] <= 1e-6:
        out.published_after = max(out.published_after, second + 1 - int(pool.publishing[1]))
        pool.publishing = []
    return written, begun
