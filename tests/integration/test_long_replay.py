"""A long replay: what it holds, what a table that throttles does to it, and whether it is heard of all the while."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from local.inprocess import System
from shared.store import table as store_table
from shared.store.table import Busy
from shared.usecases import generation, rating, rebuild
from shared.usecases.generation import progress_key
from tests.bench import rebuilding
from tests.integration.ladder import MINUTE, Ladder, at, audit, small_steps
from tests.integration.memory import MemoryTable
from tests.integration.test_crash_rating import new_rules
from tests.integration.test_crash_rating import rebuilding as lost_rows
from tests.integration.test_store_sizes import game, prepared, tell


def _peak(games: int) -> int:
    """Bytes that a rebuild holds at most which finds everything as it should be."""
    ladder, _ = rebuilding.pool_in(MemoryTable(), rebuilding.segments_of(games, 40))
    for _ in range(2):
        rebuild.request(ladder.ctx, ladder.pool())
        tracemalloc.start()
        ladder.rate()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert ladder.cursor().games == games
    return peak


def test_a_rebuild_does_not_hold_the_rows() -> None:
    """A row has some 700 bytes, its item as much again."""
    few, many = _peak(1_000), _peak(4_000)
    assert (many - few) / 3_000 < 350


def _throttled(calls: int) -> Any:
    """The first so many transactions of rows are throttled."""
    left = calls

    def refuse(name: str, call: Mapping[str, Any]) -> None:
        nonlocal left
        rows = name == "transact_write_items" and "Put" in call["TransactItems"][0]
        if left and rows and call["TransactItems"][0]["Put"]["Item"]["pk"]["S"].startswith("RATED#"):
            left -= 1
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, name)  # type: ignore[arg-type]

    return refuse


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_table_that_throttles_is_asked_again(at_once: int) -> None:
    with (
        small_steps(IN_PLACE=5, TRANSACTION_ITEMS=2),
        mock.patch.object(store_table, "ATTEMPTS", 1),
        mock.patch.object(generation, "PATIENCE", (0.0, 0.0, 0.0)),
    ):
        whole = new_rules()
        whole.rate()
        ladder = new_rules()
        ladder.ctx = replace(ladder.ctx, writes_at_once=at_once)
        ladder.calls.before = _throttled(3)
        ladder.rate()
        audit(ladder)
        assert ladder.cursor().hash == whole.cursor().hash
        assert ladder.cursor().generation == whole.cursor().generation, "in the same go"


def test_what_a_table_does_not_take_at_all_is_left_to_the_next_run() -> None:
    with (
        small_steps(IN_PLACE=5, TRANSACTION_ITEMS=2),
        mock.patch.object(store_table, "ATTEMPTS", 1),
        mock.patch.object(generation, "PATIENCE", (0.0,)),
    ):
        ladder = new_rules()
        before = ladder.ratings()
        ladder.calls.before = _throttled(10_000)
        with pytest.raises(Busy):
            ladder.rate()
        assert ladder.ratings() == before
        ladder.calls.before = None
        ladder.rate()
        audit(ladder)


def test_a_run_tells_that_it_is_alive_while_it_reads_and_folds_and_has_nothing_to_write() -> None:
    """Else another would take it for dead: here everybody is heard of at once, whatever the clock says."""
    beats: list[int] = []
    with small_steps(IN_PLACE=5, KEPT=0), mock.patch.multiple(generation, REPORT_SECONDS=-1.0):
        ladder = lost_rows()

        def note(name: str, call: Mapping[str, Any]) -> None:
            for entry in call.get("TransactItems", ()):
                item = entry.get("Put", {}).get("Item", {})
                if item.get("sk", {}).get("S") == progress_key("p")[1]:
                    beats.append(int(item["beat"]["N"]))

        ladder.calls.before = note
        with mock.patch.object(rating, "BESIDE", 1):
            ladder.rate()
        audit(ladder)
    rows = sum(key[0].startswith("RATED#") for key in ladder.items())
    assert len(beats) >= rows, "once for every row that is folded"
    assert beats == sorted(set(beats)), "another number each time"


def test_two_folds_of_one_replay_tell_the_same() -> None:
    """What is written is what was planned: the second fold's digest is compared with the first one's."""
    with small_steps(IN_PLACE=5, KEPT=0):
        ladder = lost_rows()
        told = rating._Replay.changes
        calls = 0

        def changed(self: Any, *more: Any) -> Any:
            nonlocal calls
            calls += 1
            for number, change in enumerate(told(self, *more)):
                if calls == 2 and number == 1:
                    continue
                yield change

        with mock.patch.object(rating._Replay, "changes", changed):
            ladder.rate()
        assert calls >= 4, "planned and begun, given up, planned and written"
        audit(ladder)


def test_eight_transactions_at_a_time_through_the_client_of_aws(emulated_system: System) -> None:
    """Against an emulator, over HTTP: every row is new, then nothing changes, then every row does."""
    ladder = prepared(Ladder.of(emulated_system), [])
    ladder.ctx = replace(ladder.ctx, writes_at_once=8)
    people = [f"p{number:02d}" for number in range(40)]
    fours = [[people[(number * 7 + 11 * seat) % 40] for seat in range(4)] for number in range(400)]
    start = at("2026-07-01 12:00")
    told = [game(n, [four[:2], four[2:]], start + n * 90 * MINUTE, group="di") for n, four in enumerate(fours)]
    tell(ladder, told)
    with small_steps(TRANSACTION_ITEMS=10, IN_PLACE=5, REPORT_WRITES=60, LONG_REPLAY=-1):
        ladder.rate()
        audit(ladder)
        was = ladder.cursor()
        assert was.games == 400
        rebuild.request(ladder.ctx, ladder.pool())
        ladder.rate()
        assert ladder.cursor().hash == was.hash
        assert ladder.cursor().generation == was.generation, "nothing was to be written"
        ladder.open_pool(rules=[{"from": "1950-01-01", "k": 40}])
        ladder.rate()
        audit(ladder)
    assert ladder.cursor().generation > was.generation
    assert ladder.cursor().hash != was.hash
