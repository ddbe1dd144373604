"""Closed months of the ledger are kept as compact segments; ratings made from them are those made from the items."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.ledger.order import utc_month
from shared.problems import Problem
from shared.store import keys
from shared.usecases import closing, compact, merging, rebuild
from tests.integration.histories import History
from tests.integration.ladder import DAY, HOUR, Ladder, at, audit, spades

SYSTEMS = ("spades", "bridier", "jass")


def three_months(system: str, seed: int = 3) -> Ladder:
    """A random history over three months, the last of them running."""
    ladder = Ladder.in_memory()
    history = History(ladder, system, seed)
    history.open()
    for month in ("2026-09-10", "2026-10-10", "2026-11-10"):
        ladder.now = max(ladder.now, at(f"{month} 12:00"))
        for _ in range(40):
            history.step()
        ladder.rate()
    return ladder


def ledger_reads(ladder: Ladder) -> list[str]:
    """The months of the ledger whose items a rebuild reads."""

    def act() -> None:
        rebuild.request(ladder.ctx, ladder.pool())
        ladder.rate()

    return months_read(ladder, act)


def months_read(ladder: Ladder, act: Callable[[], None]) -> list[str]:
    """The months of the ledger whose items are read meanwhile."""
    read: set[str] = set()

    def note(name: str, arguments: object) -> None:
        if name == "query" and isinstance(arguments, dict):
            pk = arguments["ExpressionAttributeValues"][":pk"]["S"]
            if pk.startswith("LEDGER#p#"):
                read.add(pk.split("#")[2])

    ladder.calls.before = note
    act()
    ladder.calls.before = None
    return sorted(read)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_rebuild_reads_segments_and_comes_to_the_same(system: str) -> None:
    ladder = three_months(system)
    pool = ladder.pool()
    by_items = sorted(compact.read(ladder.ctx, pool).every(), key=lambda e: e.id)
    before = ladder.cursor().hash
    written = compact.compact(ladder.ctx, pool)
    assert {"2026-09", "2026-10"} <= set(written)
    assert utc_month(ladder.now) not in written
    assert sorted(compact.read(ladder.ctx, pool).every(), key=lambda e: e.id) == by_items
    assert [m for m in ledger_reads(ladder) if m in written] == []
    assert ladder.cursor().hash == before
    audit(ladder)


def test_written_once_and_not_before_the_month_has_settled() -> None:
    ladder = Ladder.in_memory()
    ladder.now = at("2026-09-20 12:00")
    ladder.open_pool(rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
    ladder.register(*"abcd")
    ladder.submit(spades("one", "ab-cd", "2026-09-20 11:00"))
    ladder.now = at("2026-10-01 00:00") + HOUR - 1
    assert compact.compact(ladder.ctx, ladder.pool()) == []
    ladder.now = at("2026-10-01 00:00") + HOUR
    assert compact.compact(ladder.ctx, ladder.pool()) == ["2026-09"]
    writes = ladder.calls.writes()
    assert compact.compact(ladder.ctx, ladder.pool()) == []
    assert ladder.calls.writes() == writes


@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_lost_or_damaged_segment_is_read_from_its_items(damage: str) -> None:
    ladder = three_months("spades")
    pool = ladder.pool()
    before, by_items = ladder.cursor().hash, sorted(compact.read(ladder.ctx, pool).every(), key=lambda e: e.id)
    compact.compact(ladder.ctx, pool)
    name = compact.key("p", "2026-09")
    body = ladder.ctx.data.get(name)
    assert body is not None
    if damage == "lost":
        ladder.ctx.data.delete([name])
    else:
        ladder.ctx.data.put(name, body[:-9], "application/octet-stream")
    assert sorted(compact.read(ladder.ctx, pool).every(), key=lambda e: e.id) == by_items
    assert "2026-09" in ledger_reads(ladder)
    assert ladder.cursor().hash == before
    if damage == "lost":
        assert compact.compact(ladder.ctx, pool) == ["2026-09"]
        assert ladder.ctx.data.get(name) == body


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_frozen_list_is_the_same_from_segments(system: str) -> None:
    ladder = three_months(system, seed=4)
    pool = ladder.pool()
    ends = [closing.closing_of(month, pool.time_zone) for month in ("2026-09", "2026-10")]
    expected = [closing.fold_until(pool, *compact.read_packed(ladder.ctx, pool), end) for end in ends]
    compact.compact(ladder.ctx, pool)
    assert len(compact.read(ladder.ctx, pool).segments) >= 2
    assert [closing.fold_until(pool, *compact.read_packed(ladder.ctx, pool), end) for end in ends] == expected
    assert all(expected)


def test_closing_writes_them() -> None:
    ladder = three_months("jass")
    ladder.now = at("2026-12-01 03:00") + DAY
    closing.close(ladder.ctx, "p")
    assert ladder.ctx.data.get(compact.key("p", "2026-11")) is not None
    assert not any(pk.startswith(keys.inbox("p", 0)) for pk, _ in ladder.items())


def test_whether_two_met_is_read_from_segments() -> None:
    """However long the history: closed months cost an object each. What was told again later counts as it is now."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-07-20 12:00")
    ladder.open_pool(rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
    ladder.register(*"abcdefg")
    for number, teams in enumerate(["ab-cd", "ae-fg", "be-fg", "ac-bg"]):
        ladder.submit(spades(f"g{number}", teams, at("2026-07-10 12:00") + number * HOUR))
    ladder.now = at("2026-09-20 12:00")
    ladder.void("g1")
    ladder.correct("g2", result={"teams": [["a", "f"], ["e", "g"]], "outcome": "team1"})
    ladder.rate()
    assert compact.compact(ladder.ctx, ladder.pool()) == ["2026-07", "2026-08"]

    refusals: list[Problem] = []

    def met(one: str, two: str) -> str:
        def act() -> None:
            with pytest.raises(Problem) as refused:
                merging.merge(ladder.ctx, one, two)
            refusals.append(refused.value)

        assert months_read(ladder, act) == ["2026-09"]
        assert refusals[-1].code == "met-in-a-game"
        return str(refusals[-1].extra["existing"]["game"])

    assert met("b", "a") == "bern:g0"
    assert met("c", "g") == "bern:g3"
    assert met("e", "a") == "bern:g2", "by its correction"
    assert merging.merge(ladder.ctx, "e", "b").status == 202, "by what was corrected"
    assert met("c", "e") == "bern:g0", "through the record that he was merged with"
