"""One more game in a pool of 100 players, and in one of 100,000: what submitting, rating and publishing it costs.

Both pools hold the same 1,000 real games; the large one has 99,900 players more with 990,000 games in their records,
written straight into the table, so that whatever a run reads or writes in proportion to the pool shows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from shared.ledger.statehash import line_hash, to_hex
from shared.ratings.base import PlayerState
from shared.store import keys, people
from shared.store import rated as store
from shared.store.bucket import Bucket
from shared.store.rated import StateRow
from shared.store.table import Put, Table, to_wire
from shared.usecases import published
from site_builder import publisher
from tests.bench.table import Line
from tests.bench.units import MeteredBucket, MeteredTable
from tests.integration.ladder import HOUR, Ladder, at, spades
from tests.integration.memory import MemoryBucket


def pool_of(players: int, games: int) -> tuple[Ladder, MeteredTable, MeteredBucket, MeteredBucket]:
    """A pool with so many players, rated and published, and meters that stand at nought."""
    ladder = Ladder.in_memory()
    dice = random.Random(1)
    handles = [f"p{number:03d}" for number in range(100)]
    ladder.now = at("2026-11-01 12:00")
    ladder.open_pool("p", "spades", [{"from": "2026-01-01", "quit_ban_minutes": 0, "opt_out_ban_days": 0}])
    ladder.register(*handles)
    for number in range(games):
        ladder.now += HOUR // 4
        draft = spades(f"g{number}", "ab-cd", ladder.now)
        table = dice.sample(handles, 4)
        draft.result["teams"] = [table[:2], table[2:]]  # type: ignore[index]
        draft.result["outcome"] = dice.choice(["team1", "team2"])  # type: ignore[index]
        ladder.submit(draft)
        if number % 50 == 49:
            ladder.rate()
    ladder.rate()
    site = MeteredBucket(MemoryBucket())
    ladder.ctx = replace(ladder.ctx, site=Bucket(site, "site"))  # type: ignore[arg-type]
    publisher.publish(ladder.ctx, "p")
    if players > len(handles):
        _more(ladder, players - len(handles), games)
    table_, data = MeteredTable(ladder.ctx.table.client), MeteredBucket(ladder.ctx.data.client)
    ladder.ctx = replace(ladder.ctx, table=Table(table_, "memory"), data=Bucket(data, "data"))  # type: ignore[arg-type]
    site.requests.clear()
    site.bytes = 0
    site.keys.clear()
    return ladder, table_, data, site


def _more(ladder: Ladder, players: int, games: int) -> None:
    """Players whose states, records and lines of the list are there, as a million games would have left them."""
    dice = random.Random(2)
    ctx, pool = ladder.ctx, ladder.pool()
    cursor = store.read_cursor(ctx.table, "p")
    old = published.load(ctx, "p")
    assert old is not None
    rows = list(old.rows)
    total = int(cursor.hash, 16)
    client = ctx.table.client
    for number in range(players):
        sid = f"sid-q{number:06d}"
        rating = 1_500_000_000 + int(dice.gauss(0, 90_000_000))
        state = PlayerState(rating, 0, 40, 20, 0, 20, 739_900, ladder.now - HOUR, best=(rating, 0, ladder.now))
        state.labels = {"year:2026": (40, 20, 0, 20, 0, 0, 0, 0), "club:uri": (40, 20, 0, 20, 0, 0, 0, 0)}
        pk, sk = keys.state(pool.id, sid)
        client.store(to_wire({"pk": pk, "sk": sk, "ag": 0, "a": store.dump(StateRow(state, ""))}))  # type: ignore[attr-defined]
        for operation in people.registration(f"q{number:06d}", f"Player {number}", "uri", sid):
            if isinstance(operation, Put):
                client.store(to_wire(operation.item))  # type: ignore[attr-defined]
        total += line_hash(pool.system, sid, state)
        rows.append(published.ListRow(sid, f"q{number:06d}", f"Player {number}", ["uri"], state))
    moved = replace(
        cursor,
        hash=to_hex(total % (1 << 256)),
        players=cursor.players + players,
        games=cursor.games + players * 10,
        version=cursor.version + 1,
    )
    ctx.table.write(store.put_cursor(replace(moved, version=cursor.version), cursor.version))
    rows.sort(key=lambda row: (pool.system.order_key(row.state), row.name, row.handle))
    for place, row in enumerate(rows, start=1):
        row.place = place
    old.rows = rows
    published.save(ctx, "p", old)


def _step(meters: tuple[MeteredTable, MeteredBucket, MeteredBucket], run: Callable[[], object]) -> dict[str, float]:
    table, data, site = meters
    before = (table.meter.write_units, table.meter.read, sum(table.meter.requests.values()))
    s3 = [sum(bucket.requests.values()) for bucket in (data, site)]
    size, puts = data.bytes + site.bytes, site.requests["put_object"]
    begin = time.process_time()
    run()
    return {
        "write units": table.meter.write_units - before[0],
        "read units": table.meter.read - before[1],
        "DynamoDB requests": sum(table.meter.requests.values()) - before[2],
        "S3 requests, data": sum(data.requests.values()) - s3[0],
        "S3 requests, site": sum(site.requests.values()) - s3[1],
        "pages written": site.requests["put_object"] - puts,
        "bytes written": data.bytes + site.bytes - size,
        "CPU seconds": time.process_time() - begin,
    }


def one_more(players: int, games: int) -> dict[str, dict[str, float]]:
    """Submit, rate and publish a game; what each step cost."""
    ladder, table, data, site = pool_of(players, games)
    ladder.now += HOUR // 2  # the files of the whole pool are due once an hour, and are measured apart
    draft = spades("one-more", "ab-cd", ladder.now)
    draft.result["teams"] = [["p001", "p002"], ["p003", "p004"]]  # type: ignore[index]
    meters = (table, data, site)
    found = {
        "submit": _step(meters, lambda: ladder.submit(draft)),
        "rate": _step(meters, lambda: ladder.rate()),
        "publish": _step(meters, lambda: publisher.publish(ladder.ctx, "p")),
    }
    lists = [key for key in site.keys if key.startswith(("p/page/", "p/index", "p/standings", "p/clubs", "p/lists"))]
    found["publish"]["list pages"] = len(lists)
    ladder.now += HOUR
    found["hourly files"] = _step(meters, lambda: publisher.publish(ladder.ctx, "p"))
    return found


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    games, many = 1_000, max(1_000, int(100_000 * scale))
    small, large = one_more(100, games), one_more(many, games)
    lines = []
    for step, figures in large.items():
        for what, figure in figures.items():
            other = small[step].get(what, 0.0)
            counted = what.startswith(("write", "read", "DynamoDB", "S3"))
            same = counted and step in ("submit", "rate")
            met = (
                figure <= other + 2 if same else (figure < 2.0 if (step, what) == ("publish", "CPU seconds") else None)
            )
            budget = "as in the small pool" if same else "under 2 s" if met is not None else ""
            lines.append(
                Line(f"{step}: {what}, {many:,} players", figure, "", "of 100 players", other or None, budget, met)
            )
    return lines
