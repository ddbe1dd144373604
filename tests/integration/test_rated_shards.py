"""A month's rated rows lie on several keys: none is written more than it can take, and readers see one order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shared.ledger.order import CLOSING, kind_of
from shared.store import keys
from shared.store import rated as store
from shared.store.table import Table
from tests.bench.units import MeteredTable
from tests.integration.ladder import SECOND, Ladder, at, audit, duel, spades

KEY_WRITES = 1_000
"""Write units a second that one partition key takes."""


def busy(players: int, games: int) -> Ladder:
    """Results of one second in one pool, stored and not yet rated."""
    ladder = Ladder.in_memory()
    dice = random.Random(4)
    handles = [f"p{number:03d}" for number in range(players)]
    ladder.open_pool(rules=[{"from": "2000-01-01", "quit_ban_minutes": 0, "opt_out_ban_days": 0}])
    ladder.register(*handles)
    first = ladder.now - 3600 * SECOND
    for number in range(games):
        submit(ladder, f"g{number:04d}", dice.sample(handles, 4), first + number * SECOND // games)
    return ladder


def submit(ladder: Ladder, game_id: str, four: list[str], when: int) -> None:
    draft = spades(game_id, "ab-cd", when)
    draft.result["teams"] = [four[:2], four[2:]]  # type: ignore[index]
    ladder.submit(draft)


def test_five_hundred_results_of_a_second_put_no_key_over_its_limit_when_they_are_rated() -> None:
    ladder = busy(400, 500)
    meter = MeteredTable(ladder.ctx.table.client)
    ladder.ctx = replace(ladder.ctx, table=Table(meter, "memory"))  # type: ignore[arg-type]
    ladder.rate()
    rated = {key: units for key, units in meter.meter.written.items() if key.startswith("RATED#")}
    assert len(rated) == keys.RATED_SHARDS
    assert sum(rated.values()) >= 1_000, "two units a row at least"
    assert max(rated.values()) < KEY_WRITES / 2, "a row may weigh twice as much"
    assert max(meter.meter.written.values()) < KEY_WRITES, meter.meter.written.most_common(3)
    ladder.ctx = replace(ladder.ctx, table=Table(meter.client, "memory"))
    audit(ladder)


def test_a_months_rows_come_in_played_order_from_any_order_on() -> None:
    ladder = busy(12, 60)
    ladder.rate()
    table, view = ladder.ctx.table, ladder.cursor().view
    orders = [order for order, _ in store.read_month(table, "p", "2026-11", view)]
    assert len(orders) == 60
    assert orders == sorted(orders)
    assert len({keys.shard(order, keys.RATED_SHARDS) for order in orders}) == keys.RATED_SHARDS
    for number in (0, 1, 37, 59):
        behind = store.read_month(table, "p", "2026-11", view, first=orders[number])
        assert [order for order, _ in behind] == orders[number:]
    told = store.read_rated(table, "p", ["2026-11"], view)
    assert [row.order for row in told] == orders


@pytest.mark.parametrize("chunk", [2, 5, 1000])
def test_the_newest_of_a_month_are_read_backwards_and_no_further_than_wanted(chunk: int) -> None:
    ladder = busy(12, 200)
    ladder.rate()
    table, view = ladder.ctx.table, ladder.cursor().view
    orders = [order for order, _ in store.read_month(table, "p", "2026-11", view)]
    newest = store.newest_of_month(table, "p", "2026-11", view, chunk)
    assert [next(newest)[0] for _ in range(10)] == orders[:-11:-1]
    assert [order for order, _ in newest] == orders[-11::-1]
    if chunk == 5:
        before = ladder.calls.reads()
        few = store.newest_of_month(table, "p", "2026-11", view, chunk)
        for _ in range(10):
            next(few)
        assert ladder.calls.reads() - before <= 2 * keys.RATED_SHARDS


def test_closings_are_passed_over_when_the_newest_are_read() -> None:
    """Each shard has closings of its own; a game may end in the same instant as a month, and comes after them."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-04-20 12:00")
    ladder.open_pool(system="bridier", time_zone="UTC")
    people = [f"p{number:02d}" for number in range(40)]
    ladder.register(*people)
    for number in range(40):
        ladder.start(people[number], {"rank": 600 + number, "index": 100, "last_result_on": "2026-01-10"})
        ladder.submit(duel(f"a{number}", people[number], people[number - 1], at("2026-04-19 20:00")))
    ladder.rate()
    ladder.now = at("2026-10-02 12:00")
    ladder.rate()
    ladder.submit(duel("edge", "p01", "p02", at("2026-08-01 00:00")))
    ladder.submit(duel("later", "p03", "p04", at("2026-08-05 20:00")))
    ladder.rate()
    audit(ladder)
    table, view = ladder.ctx.table, ladder.cursor().view
    orders = [order for order, _ in store.read_month(table, "p", "2026-08", view)]
    assert sum(kind_of(order) == CLOSING for order in orders) > 2 * keys.RATED_SHARDS
    newest = [order for order, _ in store.newest_of_month(table, "p", "2026-08", view, 5)]
    assert newest == [order for order in reversed(orders) if kind_of(order) != CLOSING]
    assert len(newest) == 2


def test_the_index_is_written_for_a_months_first_row_and_not_for_every_game() -> None:
    """With its checkpoints it weighs ten units, and lies on the key of the cursor."""
    ladder = busy(12, 10)
    writes: Counter[str] = Counter()

    def note(name: str, call: Any) -> None:
        for entry in call.get("TransactItems", ()):
            ((_, one),) = entry.items()
            writes[(one.get("Item") or one["Key"])["sk"]["S"]] += 1

    ladder.calls.before = note
    ladder.rate()
    writes.clear()
    for number in range(3):
        submit(ladder, f"n{number}", ["p001", "p002", "p003", f"p00{4 + number}"], ladder.now)
        ladder.rate()
    assert writes["CURSOR"] == 3
    assert writes["INDEX"] == 0
    ladder.calls.before = None
    audit(ladder)
