"""Players: registering, changing, and what they are in a pool before they play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shared.ratings.base import PlayerState
from shared.store import keys, people
from tests.integration.api_fixture import NOW, Api, running_api

DAY = 86_400_000_000
POOL = {"name": "P", "time_zone": "Europe/Zurich", "languages": ["en"], "rules": [{"from": "2016-04-10"}]}


@pytest.fixture
def api() -> Iterator[Api]:
    with running_api() as running:
        running.admin("PUT", "/v1/pools/spades", {**POOL, "system": "spades"})
        running.admin("PUT", "/v1/pools/bridier", {**POOL, "system": "bridier"})
        yield running


@pytest.fixture
def bern(api: Api) -> str:
    return api.club("bern")


@pytest.fixture
def basel(api: Api) -> str:
    return api.club("basel")


def sid_of(api: Api, handle: str) -> str:
    return people.resolve(api.ctx.table, [handle])[handle]


# -- the person ----------------------------------------------------------------------------------------------------
def test_register(api: Api, bern: str) -> None:
    reply = api.call("PUT", "/v1/players/Anna", {"name": "Anna  Müller", "registered_on": "2020-02-29"}, bern)
    shown = {
        "player": "anna",
        "name": "Anna  Müller",
        "clubs": ["bern"],
        "managed_by": "bern",
        "registered_on": "2020-02-29",
    }
    assert (reply.status, reply.body) == (201, shown)
    assert api.call("GET", "/v1/players/ANNA").body == {**shown, "pools": []}
    sid = sid_of(api, "anna")
    assert sid != "anna"
    assert list(people.roster(api.ctx.table, "bern")) == [("anna", sid, "Anna  Müller")]
    before = api.dump()
    assert api.call("PUT", "/v1/players/anna", {"name": "Anna  Müller"}, bern).status == 200
    assert api.dump() == before


def test_nobody_and_nonsense(api: Api) -> None:
    assert api.call("GET", "/v1/players/nobody").status == 404
    assert api.call("GET", "/v1/players/~").status == 404


def test_another_clubs_player(api: Api, bern: str, basel: str) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna", "clubs": ["basel"]}, bern)
    api.call("PUT", "/v1/players/own", {"name": "Own"}, basel)
    before = api.dump()
    for body in ({"name": "Mine"}, {"name": ""}, {}):
        reply = api.call("PUT", "/v1/players/anna", body, basel)
        assert (reply.status, reply.body["code"]) == (403, "forbidden")
    assert api.call("PUT", "/v1/pools/spades/players/anna", {"rank_me": False}, basel).status == 403
    assert api.call("PUT", "/v1/pools/nothing/players/anna", {"rank_me": False}, basel).status == 403
    assert api.dump() == before
    assert api.admin("PUT", "/v1/players/anna", {"name": "Anna B."}).body["managed_by"] == "bern"


def test_rename_moves_the_roster_and_publishes(api: Api, bern: str) -> None:
    api.admin("PUT", "/v1/clubs/basel", {"name": "Basel"})
    api.call("PUT", "/v1/players/anna", {"name": "Anna", "registered_on": "2020-01-01"}, bern)
    api.admin("PUT", "/v1/pools/spades/players/anna", {"start": {"rating": 1512, "games": 60}})
    api.asked.clear()
    reply = api.call("PUT", "/v1/players/anna", {"name": "ZOË", "clubs": ["basel", "bern"]}, bern)
    assert reply.status == 200
    assert reply.body["registered_on"] == "2020-01-01"  # left out: kept
    sid = sid_of(api, "anna")
    for club in ("bern", "basel"):
        assert list(people.roster(api.ctx.table, club)) == [("anna", sid, "ZOË")]
    assert people.named(api.ctx.table, "basel", "zoe\u0308 ") == [("anna", sid)]
    assert [i["renamed"] for i in api.ctx.table.query(keys.outbox("spades"))] == [sid], "not every page of the pool"
    assert api.asked == [("spades", 0)]
    api.call("PUT", "/v1/players/anna", {"name": "ZOË", "clubs": [], "registered_on": None}, bern)
    assert api.call("GET", "/v1/players/anna").body == {
        "player": "anna",
        "name": "ZOË",
        "clubs": [],
        "managed_by": "bern",
        "registered_on": None,
        "pools": ["spades"],
    }
    assert list(people.roster(api.ctx.table, "bern")) == []


def test_two_people_with_one_name_stay_two(api: Api, bern: str) -> None:
    for handle in ("anna", "anna2"):
        api.call("PUT", f"/v1/players/{handle}", {"name": "Anna"}, bern)
    assert [h for h, _ in people.named(api.ctx.table, "bern", "ANNA")] == ["anna", "anna2"]
    assert sid_of(api, "anna") != sid_of(api, "anna2")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, [("name", "missing")]),
        ({"name": None}, [("name", "string-type")]),
        ({"name": "x" * 81, "rating": 1}, [("name", "string-too-long"), ("rating", "unknown-field")]),
        ({"name": "a\u202eb"}, [("name", "not-printable")]),
        ({"name": "a\nb"}, [("name", "not-printable")]),
        ({"name": " \u00a0"}, [("name", "blank")]),
        ({"name": "A", "clubs": ["bern", "bern"]}, [("clubs[1]", "twice")]),
        (
            {"name": 1, "clubs": ["bern", "x", "~"]},
            [("name", "string-type"), ("clubs[1]", "unknown-club"), ("clubs[2]", "id")],
        ),
        ({"name": "A", "registered_on": "yesterday"}, [("registered_on", "day")]),
    ],
)
def test_wrong_players(api: Api, bern: str, body: Any, wrong: list[tuple[str, str]]) -> None:
    assert api.call("PUT", "/v1/players/anna", body, bern).fields == wrong
    assert api.call("GET", "/v1/players/anna").status == 404


def test_longest_name_in_nfkc_fits_a_key(api: Api, bern: str) -> None:
    name = "\ufdfa" * 80  # eighteen letters each
    assert api.call("PUT", "/v1/players/anna", {"name": name}, bern).status == 201
    assert people.named(api.ctx.table, "bern", name) == [("anna", sid_of(api, "anna"))]


def test_registration_within_a_submission(api: Api, bern: str) -> None:
    table = api.ctx.table
    table.transact(people.registration("anna", "Anna", "bern", "sid1"))
    assert people.persons(table, ["sid1", "none"])["sid1"].managed_by == "bern"
    assert api.call("GET", "/v1/players/anna").body["clubs"] == ["bern"]
    from shared.store.table import ConditionFailed

    with pytest.raises(ConditionFailed):
        table.transact(people.registration("anna", "Other", "bern", "sid2"))


# -- a start carried over ------------------------------------------------------------------------------------------
def test_start(api: Api, bern: str) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    body = {"start": {"rank": 520, "index": 453, "last_result_on": "2026-05-01"}}
    reply = api.admin("PUT", "/v1/pools/bridier/players/anna", body)
    assert (reply.status, reply.body) == (200, {"pool": "bridier", "player": "anna", **body})
    event = api.newest("bridier", "start")
    assert (event.kind, event.player, event.value, event.number) == ("start", sid_of(api, "anna"), body["start"], 1)
    before = api.dump()
    assert api.admin("PUT", "/v1/pools/bridier/players/anna", body).status == 200
    assert api.dump() == before
    other = {"start": {"rank": 530, "index": 500}}
    assert api.admin("PUT", "/v1/pools/bridier/players/anna", other).status == 200
    assert api.newest("bridier", "start").number == 2
    assert api.call("GET", "/v1/players/anna").body["pools"] == ["bridier"]


def test_start_is_the_admins(api: Api, bern: str) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    before = api.dump()
    for path in ("/v1/pools/spades/players/anna", "/v1/pools/no/players/no"):
        assert api.call("PUT", path, {"start": {"rating": "x"}}, bern).status == 403
    assert api.dump() == before


def test_start_after_the_first_rated_game(api: Api, bern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    state = PlayerState(rating=1_512_000_000, games=60)
    monkeypatch.setattr("shared.store.rated.player_state", lambda *_: state)
    body = {"start": {"rating": 1512, "games": 60}}
    assert api.admin("PUT", "/v1/pools/spades/players/anna", body).status == 200  # sixty games, all elsewhere
    state.last_played = NOW
    assert api.admin("PUT", "/v1/pools/spades/players/anna", body).status == 200  # the same: nothing to do
    reply = api.admin("PUT", "/v1/pools/spades/players/anna", {"start": {"rating": 1513}})
    assert (reply.status, reply.body["code"]) == (409, "already-rated")


@pytest.mark.parametrize(
    ("pool", "body", "wrong"),
    [
        ("spades", {}, [("", "start-or-rank-me")]),
        ("spades", {"start": {"rating": 1}, "rank_me": True}, [("", "start-or-rank-me")]),
        ("spades", {"start": {"rating": 1}, "at": "2026-01-01T00:00:00Z"}, [("", "start-has-no-time")]),
        (
            "spades",
            {"start": {"rating": "1512", "x": 1}},
            [("start.rating", "float-type"), ("start.x", "unknown-field")],
        ),
        ("spades", {"rank_me": "no", "at": "2026-01-01T00:00:00"}, [("rank_me", "bool-type"), ("at", "no-offset")]),
        ("spades", {"rank_me": False, "at": "2026-09-21T14:23:21Z"}, [("at", "in-the-future")]),
        ("bridier", {"start": {"rank": 520, "index": 453}}, [("start.last_result_on", None)]),
        ("bridier", {"rank_me": False}, [("rank_me", "no-rank-me")]),
    ],
)
def test_wrong_settings(api: Api, bern: str, pool: str, body: Any, wrong: list[tuple[str, str | None]]) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    before = api.dump()
    reply = api.admin("PUT", f"/v1/pools/{pool}/players/anna", body)
    assert reply.status == 422, reply.text
    assert [(f, c if w else None) for (f, c), (_, w) in zip(reply.fields, wrong, strict=True)] == wrong
    assert api.dump() == before


def test_404_of_player_and_pool(api: Api, bern: str) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    for path in ("/v1/pools/spades/players/nobody", "/v1/pools/nothing/players/anna", "/v1/pools/~/players/anna"):
        assert api.call("PUT", path, key=bern, raw=b"no json").status == 404


# -- taking part ---------------------------------------------------------------------------------------------------
def test_rank_me(api: Api, bern: str) -> None:
    api.call("PUT", "/v1/players/anna", {"name": "Anna"}, bern)
    path = "/v1/pools/spades/players/anna"
    reply = api.call("PUT", path, {"rank_me": False, "at": "2026-09-20T12:00:00+02:00"}, bern)
    off = {
        "pool": "spades",
        "player": "anna",
        "rank_me": False,
        "at": "2026-09-20T10:00:00Z",
        "opted_out_until": "2026-09-27T10:00:00Z",
    }
    assert (reply.status, reply.body) == (200, off)
    event = api.newest("spades", "rank-me")
    assert (event.kind, event.number, event.value["on"]) == ("rank-me", 1, False)
    before = api.dump()
    assert api.call("PUT", path, {"rank_me": False, "at": "2026-09-20T10:00:00Z"}, bern).body == off
    assert api.call("PUT", path, {"rank_me": False}, bern).body == off
    reply = api.call("PUT", path, {"rank_me": True}, bern)
    assert (reply.status, reply.body["code"], reply.body["until"]) == (409, "opted-out", "2026-09-27T10:00:00Z")
    assert api.dump() == before
    api.at(NOW + 7 * DAY)
    assert api.call("PUT", path, {"rank_me": True}, bern).body["opted_out_until"] is None
    assert api.newest("spades", "rank-me").number == 2
