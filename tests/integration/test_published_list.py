"""The list that the publisher keeps: what is packed comes back, what did not change is not packed again."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.ratings.base import PlayerState
from shared.usecases import published
from shared.usecases.published import MAIN, Kept, ListRow, PublishedList, pack, unpack
from site_builder import publisher
from tests.integration.ladder import MINUTE, Ladder, spades
from tests.integration.memory import Calls, MemoryBucket
from tests.integration.test_publisher_random import with_site

BLOCK = 8


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "BLOCK", BLOCK)
        yield


def row(sid: str, rating: int, variant: str = MAIN) -> ListRow:
    """A row that has been played for a while."""
    state = PlayerState(rating, 0, 3, 1, 0, 2, best=(rating, 0, 5), labels={"year:2026": (3, 1, 0, 2, 0, 0, 7, 0)})
    return ListRow(sid, f"h-{sid}", f"Näme <{sid}>", ("bern",), state, variant, None, 3, (rating - 1, 0), (1, 2))


def listed(rows: list[ListRow]) -> PublishedList:
    """A list of rows, which are given their places."""
    place, before = 0, None
    for number, one in enumerate(rows, start=1):
        if one.variant == MAIN:
            place = place if one.state.rating == before else number
            one.place, before = place, one.state.rating
    return PublishedList("00000001", 1, 2, "", None, None, 1, rows, loose={"p#a": ["b"]}, members={"year:2026": 3})


def in_order(ratings: list[int], apart: int) -> list[ListRow]:
    """Rows by their ratings, and some listed apart behind them."""
    main = [row(f"m{number}", rating) for number, rating in enumerate(sorted(ratings, reverse=True))]
    return main + [row(f"a{number}", 1, "inactive") for number in range(apart)]


@given(st.lists(st.integers(1, 12), max_size=40), st.integers(0, 5))
def test_what_is_packed_comes_back(ratings: list[int], apart: int) -> None:
    told = listed(in_order(ratings, apart))
    found = unpack(pack(told).body)
    assert found.published == told
    assert [one for block in found.blocks for one in block.rows] == told.rows
    assert all(one is other for block in found.blocks for one, other in zip(block.rows, block.rows, strict=True))


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60))
def test_after_any_changes_the_list_comes_back_and_blocks_stay_of_a_size(seed: int, players: int) -> None:
    dice = random.Random(seed)
    rows = in_order([dice.randrange(1000) for _ in range(players)], 2)
    kept: Kept = pack(listed(rows))
    for step in range(12):
        rows = [*kept.published.rows]
        for _ in range(dice.randrange(3)):
            if rows and dice.random() < 0.4:
                rows.pop(dice.randrange(len(rows)))
            place = dice.randrange(len(rows) + 1)
            rows.insert(place, row(f"n{step}-{dice.random()}", dice.randrange(1000), rows[place - 1].variant))
        rows.sort(key=lambda one: (one.variant != MAIN, -one.state.rating))
        kept = pack(listed(rows), kept.blocks)
        assert unpack(kept.body).published == kept.published
        sizes = [len(block.rows) for block in kept.blocks]
        assert all(size <= 2 * BLOCK for size in sizes)
        assert sum(size < BLOCK // 4 for size in sizes) <= 1


def test_what_did_not_change_is_not_packed_again() -> None:
    rows = in_order(list(range(80)), 0)
    first = pack(listed(rows))
    assert len(first.blocks) == 10
    moved = replace(rows[30], state=PlayerState(999))
    second = pack(listed([moved, *rows[:30], *rows[31:]]), first.blocks)
    packed = {block.packed for block in first.blocks}
    assert sum(block.packed in packed for block in second.blocks) == 9, "all but where he was"
    assert [len(block.rows) for block in second.blocks] == [1, 8, 8, 8, 7, *[8] * 6]
    assert [one.place for one in unpack(second.body).published.rows] == list(range(1, 81)), "though all above gave way"


def test_an_earlier_versions_list_can_be_read() -> None:
    told = listed(in_order([3, 3, 2, 1], 1))
    found = unpack(zlib.compress(msgspec.json.encode(told)))
    assert found.published == told
    assert pack(found.published, found.blocks).body == pack(told).body


# -- at hand ------------------------------------------------------------------------------------------------------
@pytest.fixture
def ladder() -> Ladder:
    """A published pool, and nothing at hand of any other."""
    published.forget()
    found = Ladder.in_memory()
    with_site(found, MemoryBucket(Calls()))
    found.open_pool("p", "spades", [{"from": "2026-01-01"}])
    found.register(*"abcd")
    _game(found, "g0")
    publisher.publish(found.ctx, "p")
    return found


def _game(ladder: Ladder, game_id: str) -> None:
    ladder.now += MINUTE
    ladder.submit(spades(game_id, "ab-cd", ladder.now - MINUTE))
    ladder.rate()


def test_the_list_is_at_hand_for_the_next_publication_and_handed_out_once(ladder: Ladder) -> None:
    one = published.take(ladder.ctx, "p")
    two = published.take(ladder.ctx, "p")
    assert one is not None
    assert two is not None
    assert one.published == two.published
    assert one.published.rows[0] is not two.published.rows[0], "the first may have been changed since"


def test_another_processes_list_is_read(ladder: Ladder) -> None:
    at_hand = published._kept.copy()
    _game(ladder, "g1")
    publisher.publish(ladder.ctx, "p")
    published._kept.update(at_hand)
    found, stored = published.take(ladder.ctx, "p"), published.load(ladder.ctx, "p")
    assert found is not None
    assert found.published == stored


def test_with_nothing_to_publish_the_list_stays_at_hand(ladder: Ladder) -> None:
    (known,) = [kept for (_, pool), (_, kept) in published._kept.items() if pool == "p"]
    assert publisher.publish(ladder.ctx, "p") is None
    assert published.take(ladder.ctx, "p") is known


def test_lists_at_hand_are_forgotten_beyond_so_many_rows(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "REMEMBERED", 6)
    ladder.open_pool("q", "spades", [{"from": "2026-01-01"}])
    published.save(ladder.ctx, "q", listed(in_order([1, 2, 3], 0)))
    assert {pool for _, pool in published._kept} == {"q"}
    published.save(ladder.ctx, "r", listed(in_order([1, 2, 3], 0)))
    assert {pool for _, pool in published._kept} == {"q", "r"}
