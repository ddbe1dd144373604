"""A merge, an erasure, a publication dies at a write, every one in turn; done again, or woken again, it is complete."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from shared.store import keys, people
from shared.usecases import erasure, merging
from site_builder import publisher
from tests.integration.ladder import HOUR, Ladder, at, audit, spades
from tests.integration.memory import Calls, MemoryBucket
from tests.integration.test_crash_rating import crashes
from tests.integration.test_publisher_random import differences, links, publish_everything, told, with_site

POOLS = ("p", "q", "r")


def clubs() -> Ladder:
    """Three pools; x is g's second record."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-08-20 12:00")
    for pool in POOLS:
        ladder.open_pool(pool, rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
    ladder.register(*"abcdefgx")
    for pool in POOLS[:2]:
        for number, teams in enumerate(["ac-bd", "gc-bd", "xf-ed", "ae-fx"]):
            when = at("2026-08-01 12:00") + number * HOUR
            ladder.submit(spades(f"g{number}", teams, when, note=f"X was there, {teams}"), pool)
        ladder.rate(pool)
    return ladder


def merge(ladder: Ladder) -> object:
    return merging.merge(ladder.ctx, "x", "g")


def unmerge(ladder: Ladder) -> object:
    return merging.unmerge(ladder.ctx, "x", "g")


def merged() -> Ladder:
    ladder = clubs()
    merge(ladder)
    for pool in POOLS:
        ladder.rate(pool)
    return ladder


@pytest.mark.parametrize("at_once", [1, 25])
@pytest.mark.parametrize(("scene", "act"), [(clubs, merge), (merged, unmerge)], ids=["merge", "unmerge"])
def test_a_merge_that_died_is_done_by_the_same_request(scene: Any, act: Any, at_once: int) -> None:
    with mock.patch.object(merging, "POOLS_AT_ONCE", at_once):
        whole = scene()
        act(whole)
        for pool in POOLS:
            whole.rate(pool)
        count = 0
        for ladder, where in crashes(scene, act):
            ladder.rate("p")
            assert act(ladder).status == 202, where
            for pool in POOLS:
                ladder.rate(pool)
                audit(ladder, pool)
                assert ladder.cursor(pool).hash == whole.cursor(pool).hash, (where, pool)
                assert ladder.cursor(pool).position == whole.cursor(pool).position, "told once"
            count += 1
        assert count >= (6 if at_once == 1 else 2)


def naming(ladder: Ladder) -> list[tuple[str, str]]:
    """What still holds a note that names him, the handle or the name."""
    return [
        (pk, sk)
        for (pk, sk), item in ladder.items().items()
        if pk == "PLAYER#x"
        or (pk.startswith("ROSTER#") and sk.endswith("#x"))
        or (pk.startswith("GAME#") and "X was" in item["note"])
    ]


@pytest.mark.parametrize("at_once", [1, 40])
def test_an_erasure_that_died_is_completed(at_once: int) -> None:
    with mock.patch.object(erasure, "POOLS_AT_ONCE", at_once):

        def act(ladder: Ladder) -> None:
            erasure.erase(ladder.ctx, "x", "bern", admin=False)

        for ladder, where in crashes(clubs, act):
            hashes = {pool: ladder.cursor(pool).hash for pool in POOLS}
            if people.find(ladder.ctx.table, "x") is not None:  # else it was done; only the answer got lost
                act(ladder)
            else:
                assert where.startswith("after")
            for pool in POOLS:
                ladder.rate(pool)
                audit(ladder, pool)
            assert naming(ladder) == [], where
            assert {pool: ladder.cursor(pool).hash for pool in POOLS} == hashes


def test_an_erasure_that_died_and_is_never_repeated_takes_nothing_away() -> None:
    """With more pools than a transaction holds, some are ordered to clean up before anybody is erased."""

    def act(ladder: Ladder) -> None:
        erasure.erase(ladder.ctx, "x", "bern", admin=False)

    count = 0
    with mock.patch.object(erasure, "POOLS_AT_ONCE", 1):
        for ladder, where in crashes(clubs, act):
            if people.find(ladder.ctx.table, "x") is None:
                continue
            before = naming(ladder)
            for pool in POOLS:
                ladder.rate(pool)  # as the orders wake the rater
            ladder.now += erasure.LONGEST_REQUEST + 1
            for pool in POOLS:
                ladder.rate(pool)  # as the sweep does
            assert naming(ladder) == before, where
            assert not [pk for pk, _ in ladder.items() if pk.startswith("INBOX#")]
            assert not list(ladder.ctx.data.list(erasure.ERASED))
            count += 1
    assert count >= 2


def test_an_order_waits_for_a_request_that_is_still_running() -> None:
    """The rater is woken by an order before the records are emptied."""
    ladder = clubs()

    def rate_at_once(name: str, _: Any) -> None:
        if name == "put_item":
            ladder.calls.after = None
            ladder.rate("q")
            ladder.rate("r")

    with mock.patch.object(erasure, "POOLS_AT_ONCE", 1):
        ladder.calls.after = rate_at_once
        erasure.erase(ladder.ctx, "x", "bern", admin=False)
    assert [pk for pk, _ in ladder.items() if pk.startswith(("INBOX#q", "INBOX#r"))]
    for pool in POOLS:
        ladder.rate(pool)
    assert naming(ladder) == []
    assert not [pk for pk, _ in ladder.items() if pk.startswith("INBOX#")]
    assert [key for key, _ in ladder.ctx.data.list(erasure.ERASED)] == ["erased/sid-x"]


def test_cleaning_up_that_died_is_done_by_the_next_wake_up() -> None:
    def scene() -> Ladder:
        ladder = clubs()
        ladder.correct("g2", round=2)
        ladder.ctx.table.batch_write(puts=[{"pk": "PLAYER#x", "sk": "DOOR#p", "rank_me": True}])
        erasure.erase(ladder.ctx, "x", "bern", admin=False)
        return ladder

    count = 0
    for ladder, where in crashes(scene, Ladder.rate):
        ladder.rate()
        ladder.rate("q")
        audit(ladder)
        assert naming(ladder) == [], where
        assert ladder.ctx.table.get(*keys.door("x", "p")) is None
        count += 1
    assert count > 10


def test_a_publication_that_dies_at_any_write_of_the_table_is_completed() -> None:
    """At uploads it dies in ``test_publisher_runs.py``; here at what it notes of itself, and at its list's object."""

    def scene() -> Ladder:
        ladder = clubs()
        with_site(ladder, MemoryBucket(Calls()))
        publisher.publish(ladder.ctx, "p")
        ladder.submit(spades("late", "ab-ef", "2026-07-20 12:00"))
        ladder.void("g1")
        ladder.rate()
        return ladder

    def act(ladder: Ladder) -> None:
        publisher.publish(ladder.ctx, "p")

    whole: dict[str, bytes] = {}
    count = 0
    for ladder, where in crashes(scene, act):
        ladder.now += HOUR  # the dead run's lease is over; and whole-pool files are due
        publisher.publish(ladder.ctx, "p")
        objects = dict(ladder.ctx.site.client.objects)  # type: ignore[attr-defined]
        assert sorted(links(objects)) == [], where
        whole = whole or told(publish_everything(ladder))
        assert differences(told(objects), whole) == [], where
        count += 1
    assert count > 4
