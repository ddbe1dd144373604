"""Too many requests of a key, of an address, or to a pool: 429 with Retry-After, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from shared.store import keys
from shared.store.table import Busy
from shared.usecases import bootstrap, throttle
from shared.usecases.throttle import FREE, Limits
from tests.integration.api_fixture import NOW, Api, running_api

PER_KEY = 100
PER_POOL = 60
MINUTE = 60_000_000


@pytest.fixture
def api() -> Iterator[Api]:
    with running_api() as running:
        yield running


def limited(api: Api, per_key: int = PER_KEY, per_pool: int = 0) -> mock._patch[mock.MagicMock]:
    """As another process would: with counts of its own."""
    ctx = replace(api.ctx, limits=Limits(per_key, per_pool))
    return mock.patch.object(bootstrap, "context", return_value=ctx)


def answered(api: Api, key: str | None, most: int, path: str = "/v1/pools/none/games") -> int:
    """How many requests are answered before the first 429."""
    for number in range(most):
        method = "POST" if key else "GET"
        reply = api.call(method, path, {}, key)
        if reply.status == 429:
            assert reply.body["code"] == "too-many-requests"
            assert 1 <= int(reply.headers["Retry-After"]) <= 60
            assert reply.headers["Content-Type"] == "application/problem+json"
            return number
    return most


def test_a_key_is_held_back_and_no_other(api: Api) -> None:
    flood, calm = api.club("bern"), api.club("basel")
    with limited(api):
        # What is free, and then shares of a twentieth until the budget is used up.
        assert answered(api, flood, 500) == FREE + PER_KEY
        assert answered(api, calm, 10) == 10
        assert api.call("GET", "/v1/health").status == 200
        api.at(NOW + MINUTE)
        assert answered(api, flood, 10) == 10


def test_retry_after_says_when_the_minute_ends(api: Api) -> None:
    key = api.club("bern")
    with limited(api):
        begin = NOW // MINUTE * MINUTE
        api.at(begin + 17_000_000)
        assert answered(api, key, 500) == FREE + PER_KEY
        reply = api.call("POST", "/v1/pools/none/games", {}, key)
        assert reply.headers["Retry-After"] == "43"
        api.at(begin + MINUTE - 1)
        assert api.call("POST", "/v1/pools/none/games", {}, key).headers["Retry-After"] == "1"


def test_processes_share_a_keys_budget(api: Api) -> None:
    key = api.club("bern")
    total = 0
    for _ in range(3):
        with limited(api):
            total += answered(api, key, 500)
    assert total == 3 * FREE + PER_KEY


def test_a_refused_request_reads_no_more_than_its_key_and_writes_nothing(api: Api) -> None:
    key = api.club("bern")
    with limited(api):
        answered(api, key, 500)
        before = api.dump()
        with mock.patch.object(api.ctx.table, "_call", wraps=api.ctx.table._call) as calls:
            assert api.call("POST", "/v1/pools/none/games", {}, key).status == 429
        assert [c.args[0] for c in calls.call_args_list] == ["batch_get_item"], "the key, and the pool with it"
        assert api.dump() == before


def test_a_quiet_club_costs_no_write(api: Api) -> None:
    key = api.club("bern")
    with limited(api):
        assert answered(api, key, FREE) == FREE
        assert not [item for item in api.dump() if item["pk"].startswith("LIMIT#")]
        answered(api, key, 1)
        (item,) = [item for item in api.dump() if item["pk"].startswith("LIMIT#")]
    assert item["used"] == throttle.share_of(PER_KEY)
    assert NOW // 1_000_000 < item["ttl"] < NOW // 1_000_000 + 2 * 3600


def test_a_pool_is_held_back_over_all_clubs(api: Api) -> None:
    clubs = [api.club(name) for name in ("bern", "basel", "chur")]
    with limited(api, per_key=1000, per_pool=PER_POOL):
        total = sum(answered(api, key, 50) for key in clubs)
        assert total == FREE + PER_POOL
        assert answered(api, clubs[0], 5, "/v1/pools/other/games") == 5
        # Reading is not what fills a pool.
        assert api.call("GET", "/v1/pools/none/games/g", key=clubs[0]).status == 404


def test_an_address_without_a_key_is_held_back_and_not_stored(api: Api) -> None:
    with limited(api):
        before = api.dump()
        assert answered(api, None, 500, "/v1/pools/none") == PER_KEY
        assert api.call("POST", "/v1/pools/none/games", {}, "cl_guessed").status == 429
        assert api.dump() == before
        assert "192.0.2.1" not in "".join(api.logged())


def test_without_limits_nothing_is_counted(api: Api) -> None:
    key = api.club("bern")
    with limited(api, per_key=0):
        assert answered(api, key, FREE + 20) == FREE + 20


def test_a_busy_table_refuses_nobody(api: Api) -> None:
    limits = Limits(PER_KEY)
    with mock.patch.object(api.ctx.table, "write", side_effect=Busy("update_item")):
        for _ in range(200):
            limits.key(api.ctx.table, NOW, "bern/k")


def test_many_addresses_do_not_fill_the_memory() -> None:
    limits = Limits(PER_KEY)
    for number in range(throttle.MOST_SUBJECTS + 100):
        limits.address(NOW, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(limits.counts) <= throttle.MOST_SUBJECTS


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"),
        ("2001:db8:1:2::9", "2001:db8:1:2"),
        ("2001:0db8:0001:0002::", "2001:db8:1:2"),
        ("2001:db8::1", "2001:db8:0:0"),
        ("::1", "0:0:0:0"),
    ],
)
def test_who_shares_a_fate(address: str, network: str) -> None:
    assert throttle._network(address) == network


def test_a_window_item_has_its_own_key_each_minute() -> None:
    assert keys.limit("key#a", 1) != keys.limit("key#a", 2)
