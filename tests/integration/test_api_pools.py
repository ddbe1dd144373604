"""Pools: defining, changing, reading; what reaches the ledger and what the publisher is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from shared.ledger.order import to_instant
from shared.store import keys, ledger
from tests.integration.api_fixture import NOW, Api, running_api

SPADES = {
    "name": "Spades Bern",
    "system": "spades",
    "time_zone": "Europe/Zurich",
    "languages": ["en", "de"],
    "rules": [{"from": "2016-04-10", "k": {"first": 50, "up_to_games": 50, "then": 30}, "opposition": "pairwise"}],
}


@pytest.fixture
def api() -> Iterator[Api]:
    with running_api() as running:
        yield running


def changed(**fields: Any) -> dict[str, Any]:
    return {**SPADES, **fields}


def test_open_a_pool(api: Api) -> None:
    reply = api.admin("PUT", "/v1/pools/Spades", SPADES)
    assert (reply.status, reply.body) == (201, {"pool": "spades", **SPADES, "clubs": None})
    (event,) = api.inbox("spades")
    assert (event.kind, event.number, event.accepted_at, event.touches) == ("rules", 1, NOW, None)
    since = to_instant(dt.datetime(2016, 4, 9, 22, tzinfo=dt.UTC))
    assert event.value == {"version": 1, "rules": [{**SPADES["rules"][0], "from": since}]}  # type: ignore[index]
    assert list(ledger.read_month(api.ctx.table, "spades", "2026-09")) == [event]
    assert [i["sk"] for i in api.ctx.table.query(keys.pools())] == ["spades"]
    assert api.asked == [("spades", 0)]
    assert api.call("GET", "/v1/pools/SPADES").body == {
        **reply.body,
        "players": 0,
        "games": 0,
        "position": 0,
        "state_hash": "0" * 64,
        "pending": 1,
        "held": 0,
    }


def test_the_same_again_changes_nothing(api: Api) -> None:
    api.admin("PUT", "/v1/pools/spades", SPADES)
    before = api.dump()
    assert api.admin("PUT", "/v1/pools/spades", SPADES).status == 200
    told = changed(rules=[{**SPADES["rules"][0], "quit_ban_minutes": 60}])  # type: ignore[index]
    assert api.admin("PUT", "/v1/pools/spades", told).body["rules"] == SPADES["rules"]  # a default said aloud
    assert api.dump() == before
    assert len(api.asked) == 1


def test_new_rules_are_an_event(api: Api) -> None:
    api.admin("PUT", "/v1/pools/spades", SPADES)
    rules = [{"from": "2017-12-24"}, SPADES["rules"][0], {"from": "2017-01-01", "opposition": "pairwise"}]  # type: ignore[index]
    reply = api.admin("PUT", "/v1/pools/spades", changed(rules=rules))
    assert reply.status == 200
    assert [r["from"] for r in reply.body["rules"]] == ["2016-04-10", "2017-01-01", "2017-12-24"]
    first, second = sorted(api.inbox("spades"), key=lambda e: e.number)
    assert (second.number, second.value["version"], len(second.value["rules"])) == (2, 2, 3)
    assert second.touches == to_instant(dt.datetime(2016, 12, 31, 23, tzinfo=dt.UTC))
    assert first.number == 1
    assert list(api.ctx.table.query(keys.outbox("spades"))) == []


def test_a_new_name_is_no_event_but_is_published(api: Api) -> None:
    api.admin("PUT", "/v1/pools/spades", SPADES)
    assert api.admin("PUT", "/v1/pools/spades", changed(name="New", languages=["de"])).body["name"] == "New"
    assert len(api.inbox("spades")) == 1
    (told,) = api.ctx.table.query(keys.outbox("spades"))
    assert told["all"] is True
    assert told["sk"].startswith(f"{NOW:016x}-")
    assert api.asked == [("spades", 0), ("spades", 0)]


@pytest.mark.parametrize(
    ("field", "value", "code"), [("system", "jass", "system-fixed"), ("time_zone", "UTC", "time-zone-fixed")]
)
def test_what_is_fixed(api: Api, field: str, value: str, code: str) -> None:
    api.admin("PUT", "/v1/pools/spades", SPADES)
    before = api.dump()
    reply = api.admin("PUT", "/v1/pools/spades", changed(rules=[{"from": "2016-04-10"}], **{field: value}))
    assert (reply.status, reply.body["code"]) == (409, code)
    assert api.dump() == before


def test_clubs_that_may_submit(api: Api) -> None:
    bern, basel = api.club("bern"), api.club("basel")
    reply = api.admin("PUT", "/v1/pools/spades", changed(clubs=["Bern", "nobody", "bern"]))
    assert reply.fields == [("clubs[1]", "unknown-club")]
    assert api.admin("PUT", "/v1/pools/spades", changed(clubs=["Bern"])).body["clubs"] == ["bern"]
    for method, path in [("POST", ""), ("PUT", "/g"), ("POST", "/g/void"), ("POST", "/g/quits")]:
        reply = api.call(method, "/v1/pools/spades/games" + path, key=basel, raw=b"no json")
        assert (reply.status, reply.body["code"]) == (403, "forbidden")
    assert api.call("POST", "/v1/pools/spades/games", key=bern, raw=b"no json").status == 422


def test_foreign_games_are_not_touched(api: Api) -> None:
    bern = api.club("bern")
    api.admin("PUT", "/v1/pools/spades", SPADES)
    api.call("POST", "/v1/pools/spades/games", {}, bern, raw=b"no json")
    before = api.dump()
    for colon in (":", "%3A", "%3a"):
        path = f"/v1/pools/spades/games/basel{colon}g"
        for method, more in [("PUT", ""), ("POST", "/void"), ("POST", "/quits"), ("POST", "/quits/a/return")]:
            reply = api.call(method, path + more, key=bern, raw=b"no json")
            assert reply.status == 403, more
    assert api.dump() == before
    assert api.call("GET", "/v1/pools/spades/games/g").status == 404  # nobody's `g`
    assert api.call("GET", "/v1/pools/spades/games/g", key="wrong").status == 401


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"system": "chess"}, [("system", "unknown-system")]),
        ({"time_zone": "Europe/Bern"}, [("time_zone", "unknown-time-zone")]),
        ({"time_zone": "../../etc/passwd"}, [("time_zone", "unknown-time-zone")]),
        ({"languages": []}, [("languages", "too-short")]),
        ({"languages": ["en", "xx"]}, [("languages[1]", "literal-error")]),
        ({"languages": ["en", "en"]}, [("languages[1]", "twice")]),
        ({"clubs": "all"}, [("clubs", "list-type")]),
        ({"rules": []}, [("rules", "too-short")]),
        ({"rules": {}}, [("rules", "list-type")]),
        ({"rules": [{}]}, [("rules[0].from", "missing")]),
        ({"rules": [{"from": "2016-02-30"}]}, [("rules[0].from", "day")]),
        ({"rules": [{"from": "20160210"}]}, [("rules[0].from", "day")]),
        ({"rules": [{"from": "0001-01-01"}]}, [("rules[0].from", "day")]),
        ({"rules": [{"from": "2016-02-01T00:00:00Z"}]}, [("rules[0].from", "day")]),
        ({"rules": [{"from": "2016-02-01"}, {"from": "2016-02-01"}]}, [("rules[1].from", "same-day")]),
        (
            {"rules": [{"from": "x", "k": {"first": 50}}, {"from": "2016-02-01", "kk": 1, "opposition": "none"}]},
            [
                ("rules[0].from", "day"),
                ("rules[0].k.up_to_games", "missing"),
                ("rules[0].k.then", "missing"),
                ("rules[1].opposition", "literal-error"),
                ("rules[1].kk", "unknown-field"),
            ],
        ),
        ({"rules": [{"from": "2016-02-01", "quit_ban_minutes": "60"}]}, [("rules[0].quit_ban_minutes", "int-type")]),
    ],
)
def test_wrong_pools(api: Api, fields: dict[str, Any], wrong: list[tuple[str, str]]) -> None:
    before = len(api.dump())
    reply = api.admin("PUT", "/v1/pools/spades", changed(**fields))
    assert reply.status == 422
    assert sorted(reply.fields) == sorted(wrong)
    assert len(api.dump()) == before


@pytest.mark.parametrize(
    "pool", ["v1", "Desk", "embed", "assets", "en", "DE", "fr", "it", "-a", ".", "..", "a" * 65, "ä"]
)
def test_wrong_ids(api: Api, pool: str) -> None:
    path = f"/v1/pools/{quote(pool)}"
    assert api.admin("PUT", path, SPADES).fields == [("pool", "id")]
    assert api.call("GET", path).status == 404


def test_all_systems(api: Api) -> None:
    for system in ("jass", "bridier"):
        reply = api.admin("PUT", f"/v1/pools/{system}", changed(system=system, rules=[{"from": "2020-01-01"}]))
        assert reply.status == 201
        assert api.call("GET", f"/v1/pools/{system}").body["system"] == system


def test_two_admins_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second reads before the first has written: he is told by the condition and tries again."""
    from shared.usecases import pools as use_case

    api.admin("PUT", "/v1/pools/spades", SPADES)
    real, waiting = use_case.pools.load, [True]
    stale = real(api.ctx.table, "spades")
    api.admin("PUT", "/v1/pools/spades", changed(name="First"))

    def load(table: Any, pool: str) -> Any:
        return stale if waiting and waiting.pop() else real(table, pool)

    monkeypatch.setattr(use_case.pools, "load", load)
    assert api.admin("PUT", "/v1/pools/spades", changed(name="Second")).status == 200
    monkeypatch.undo()
    assert api.call("GET", "/v1/pools/spades").body["name"] == "Second"
