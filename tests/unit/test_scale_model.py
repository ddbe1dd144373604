"""The model of limits at scale, by traffic small enough to reckon by hand."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from tests.bench import model, scale, traffic
from tests.bench.model import Costs, Settings, Stage, simulate

COST = Costs(
    submit={"GAME": 2, "LEDGER": 2, "INBOX": 2, "FP": 2},
    rate={"RATED": 2, "STATE": 8, "HIST": 8, "LABEL": 2, "POOL": 0.4, "OUTBOX": 0.4, "INBOX": 2},
    games=5.2,
    removal=2,
)
CALM = Settings(gateway=10_000, per_pool=1_000_000)


def test_the_oldest_are_taken_first_and_parts_stay() -> None:
    queue = deque([[0, 3.0], [5, 4.0]])
    assert model._take(queue, 5, 9) == (5, 9)
    assert list(queue) == [[5, 2.0]]
    assert model._take(queue, 5, 9) == (2, 4)
    assert model._take(queue, 5, 9) == (0, 0)


def test_what_is_within_every_limit_waits_for_nothing_but_the_delay() -> None:
    found = simulate(Stage("calm", [1.0] * 10, 1, 100), CALM, COST)
    assert (found.stored_after, found.rated_after, found.most_waiting) == (0, 0, 1)
    # Rated in second 0, asked then, published in second 60: 10 games, 40 players, one page; 235 objects fit a second.
    assert model.objects_of(10, 100) == 10 + 40 * 4 + 2
    assert found.published_after == 61
    assert found.first == "S3 PUTs below a prefix"
    assert found.shares[found.first] == pytest.approx(172 / 3500)
    assert found.shares["publisher's time"] == pytest.approx(172 / (1 / 0.00425) / 60)


def test_a_pools_limit_refuses_until_the_minute_turns() -> None:
    """10 a second, 300 a minute: used up after 30 s; the result of second 30 comes in at second 60."""
    found = simulate(Stage("held", [10.0] * 60, 1, 100), replace(CALM, per_pool=300), COST)
    assert found.shares["a pool's limit (PoolRequestsPerMinute)"] == 600 / 300
    assert found.stored_after == 30


def test_the_gateway_is_shared_by_all_pools() -> None:
    """30 a second for 10 s over 3 pools, 20 a second fit: after 10 s 100 are left, gone 5 s later."""
    found = simulate(Stage("held", [30.0] * 10, 3, 100), replace(CALM, gateway=20), COST)
    assert found.shares["API gateway (ApiRateLimit)"] == 1.5
    assert 4 <= found.stored_after <= 6


def test_one_rater_takes_so_many_games_a_second() -> None:
    """26 ms for 5.2 games, 0.8 ms for each: 172 a second. 20 s of 300 are 6,000: 34.8 s, so the last waits 15."""
    speeds = model.rated_a_second(COST, CALM)
    assert min(speeds, key=lambda name: speeds[name]) == "one rater's time"
    assert speeds["one rater's time"] == pytest.approx(172.4, abs=0.1)
    found = simulate(Stage("busy", [300.0] * 20, 1, 1000), CALM, COST)
    assert found.rated_after in (14, 15)
    assert found.most_waiting == pytest.approx(20 * 300 - 19 * 172.4, abs=1)


def test_keys_take_a_thousand_units() -> None:
    speeds = model.rated_a_second(COST, replace(CALM, rated_shards=1))
    assert speeds["key of a month's rated rows"] == 1000 / 1.25 / 2
    assert speeds["key of one tournament's games"] == 500
    assert speeds["key of the pool"] == 2500
    found = simulate(Stage("hot", [1000.0], 1, 1000), CALM, COST)
    # Four shards, the hottest a quarter more than its share: 2 units to put and 2 to take out for each.
    assert found.shares["partition of the inbox"] == pytest.approx(1000 / 4 * 1.25 * 4 / 1000)


def test_a_late_result_replays_what_was_rated_since_the_closing() -> None:
    """40,000 moments: 10 s to fold; 3.2 units each on 8 keys: 0.5 ms, more than their transactions take: 20 s."""
    assert model.replay_seconds(40_000, CALM) == pytest.approx(10 + 40_000 * 3.2 * 1.25 / 8 / 1000)
    on_time = Stage("on time", [1.0] * 5, 1, 100, late=0.0, recorded=40_000)
    late = replace(on_time, late=0.2)
    assert simulate(on_time, CALM, COST).rated_after == 0
    assert simulate(late, CALM, COST).rated_after == 30


def test_uploads_follow_one_another_in_so_many_lanes() -> None:
    assert model.uploads_a_second(replace(CALM, uploads=1)) == pytest.approx(1 / 0.0605)
    assert model.uploads_a_second(replace(CALM, uploads=60)) == pytest.approx(1 / 0.0015)


def test_a_days_games_become_results_by_the_second() -> None:
    found = traffic.per_second([100, 100, 150], 10, spread=50)
    assert found[0] == pytest.approx(2 * 10 / 50)
    assert sum(found) == pytest.approx(30)
    assert len(found) == 100


def test_every_answer_makes_its_limit_further_off() -> None:
    stage = Stage("busy", [700.0] * 60, 1, 10_000)
    steps = scale.answered(stage)
    assert [what for what, *_ in steps][:2] == ["as shipped", "PoolRequestsPerMinute 63,000"]
    assert steps[0][3].first == "a pool's limit (PoolRequestsPerMinute)"
    assert all(share <= scale.CALM for share in steps[-1][3].shares.values())
    assert steps[-1][1].pools > 1, "one rater is the limit that no setting moves"


def test_a_large_publication_is_shared_and_others_wait_for_their_turn() -> None:
    assert [model.runs_of(objects, 12, CALM) for objects in (999, 1000, 3500, 50_000)] == [1, 2, 4, 9]
    assert model.runs_of(50_000, 3, CALM) == 3
    alone = simulate(Stage("one", [1.0] * 5, 1, 100), replace(CALM, publishers=1), COST)
    both = simulate(Stage("two", [2.0] * 5, 2, 100), replace(CALM, publishers=1), COST)
    assert (alone.published_after, both.published_after) == (61, 62)
