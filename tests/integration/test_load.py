"""Many clubs at once over a model of DynamoDB's limits: every result stored or honestly refused, no key too hot."""

from __future__ import annotations

import pytest

from shared.store import keys
from shared.usecases import throttle
from tests.bench import dynamo, limits, submit
from tests.bench.crowd import Crowd, crowd
from tests.bench.pools import WIDTH

COUNT = submit.RATE * 3 // 2


def all_is_well(run: Crowd, count: int) -> None:
    """Each result once in the ledger, all rated, no answer that a client cannot act on, no key above its limit."""
    names = {f"g{number:06d}" for number in range(count)}
    assert sorted(run.ledger()) == sorted(names)
    assert sorted(run.came.accepted) == sorted(names)
    assert set(run.came.answers) <= {201, 429, 503}
    assert run.came.without_retry_after == 0
    assert run.came.refused_but_stored == 0
    run.drain()
    assert run.waiting() == 0
    assert run.rated() == count
    assert run.table.hottest_writes()[0][1] <= limits.KEY_WRITES
    assert run.table.hottest_reads()[0][1] < limits.KEY_READS + dynamo.PAGE_READS


@pytest.mark.parametrize("system", sorted(WIDTH))
def test_five_hundred_a_second_to_one_pool_are_stored_and_no_key_is_too_hot(system: str) -> None:
    with crowd(system, 0, 0) as run:
        run.run(run.results(COUNT), submit.RATE, again=False)
        assert run.came.answers == {201: COUNT}
        hottest, refused = submit.of_submissions(run)
        assert refused == 0
        assert hottest[0][1] < limits.KEY_WRITES * 2 / 3
        inboxes = {key for key, _ in hottest if key.startswith("INBOX#")}
        assert len(inboxes) == keys.SHARDS
        assert run.table.hottest_reads()[0][0] == "POOL#p", "no other key is read by every submission"
        all_is_well(run, COUNT)


def test_what_the_limits_refuse_comes_again_and_is_stored_once() -> None:
    with crowd("spades", 1200, 300) as run:
        run.run(run.results(600), 50, again=True)
        assert run.came.first[429] > 100
        assert run.came.last_accepted > 60 * dynamo.SECOND, "what was refused waited for the next minute"
        all_is_well(run, 600)


def test_what_the_table_refuses_comes_again_and_is_stored_once() -> None:
    with crowd("spades", 0, 0) as run:
        run.run(run.results(4000), 4000, again=True, rater=False)
        _, refused = submit.of_submissions(run)
        assert refused > 100
        all_is_well(run, 4000)


def test_processes_add_little_to_the_limit_of_a_pool() -> None:
    with crowd("spades", 0, 100) as run:
        run.run(run.results(600), 50, again=False, rater=False)
        assert run.started > 20
        assert 100 < run.came.answers[201] <= 100 + throttle.FREE * run.started < 600
