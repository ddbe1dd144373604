"""Every route that asks for a key, with the key of another club: 403, and not one byte stored or changed.

The cases are made from the table of routes, so a new route is in it by itself; when its path has a part that is not
known here, the test says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from functions.api.routing import ROUTES, Access, Route
from tests.integration.api_fixture import Api, running_api

GUARDED = [route for route in ROUTES if route.access not in (Access.OPEN, Access.KNOWN)]
POOL = {
    "name": "P",
    "system": "bridier",
    "time_zone": "Europe/Zurich",
    "languages": ["en"],
    "clubs": ["bern"],
    "rules": [{"from": "2016-04-10"}],
}
PARTS = {"club": "bern", "pool": "duels", "player": "anna", "game": "bern:g1", "key_id": "k1", "import": "i1"}
RESULT = {"players": ["anna", "beat"], "winner": "anna"}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PUT", "/v1/clubs/{club}"): {"name": "Ours now"},
    ("POST", "/v1/clubs/{club}/keys"): {"scopes": ["submit", "manage"]},
    ("PUT", "/v1/pools/{pool}"): {**POOL, "clubs": None},
    ("POST", "/v1/pools/{pool}/rebuild"): {},
    ("PUT", "/v1/players/{player}"): {"name": "Ours now"},
    ("POST", "/v1/players/{player}/merge"): {"into": "beat"},
    ("POST", "/v1/players/{player}/unmerge"): {"into": "beat"},
    ("PUT", "/v1/pools/{pool}/players/{player}"): {"rank_me": False, "at": "2026-09-20T12:00:00Z"},
    ("POST", "/v1/pools/{pool}/games"): {"game_id": "g9", "finished_at": "2026-09-20", "result": RESULT},
    ("PUT", "/v1/pools/{pool}/games/{game}"): {
        "reason": "r",
        "result": {"players": ["anna", "beat"], "winner": "beat"},
    },
    ("POST", "/v1/pools/{pool}/games/{game}/void"): {"reason": "r"},
    ("POST", "/v1/pools/{pool}/games/{game}/quits"): {"player": "anna", "at": "2026-09-20T12:00:00Z"},
    ("POST", "/v1/pools/{pool}/games/{game}/quits/{player}/return"): {"at": "2026-09-20T12:00:00Z"},
    ("POST", "/v1/pools/{pool}/uploads"): {"filename": "games.csv", "bytes": 2_000_000},
}
"""Bodies that would be taken from the owner. What is not here is sent without one."""
OF_ONESELF = {"/v1/key"}
"""Routes that speak of the sender alone."""
FOR_ALL = {"/v1/pools/{pool}/games", "/v1/pools/{pool}/imports", "/v1/pools/{pool}/uploads"}
"""Routes by which any club sends what then is its own, in a pool that is open to all."""


def _named(route: Route) -> str:
    return f"{route.method} {route.path}"


def _path(route: Route, **other: str) -> str:
    missing = set(re.findall(r"{(\w+)}", route.path)) - PARTS.keys()
    assert not missing, f"say in PARTS what of bern's {missing} stands for"
    return re.sub(r"{(\w+)}", lambda part: (PARTS | other)[part[1]], route.path)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """Bern's pool, players, games and import; Basel's key, which has been used today."""
    with running_api() as running:
        bern = running.club("bern")
        assert running.admin("PUT", "/v1/pools/duels", POOL).status == 201
        assert running.admin("PUT", "/v1/pools/all", {**POOL, "clubs": None}).status == 201
        for player in ("anna", "beat"):
            assert running.call("PUT", f"/v1/players/{player}", {"name": player.title()}, bern).status == 201
        game = {"game_id": "g1", "finished_at": "2026-09-19", "result": RESULT}
        for pool in ("duels", "all"):
            assert running.call("POST", f"/v1/pools/{pool}/games", game, bern).status == 201
        PARTS["key_id"] = running.admin("GET", "/v1/clubs/bern/keys").body["keys"][0]["key_id"]
        upload = running.call("POST", "/v1/pools/duels/uploads", {"filename": "g.csv", "bytes": 2_000_000}, bern)
        assert upload.status == 201, upload.text
        PARTS["import"] = upload.body["import_id"]
        yield running


@pytest.fixture(scope="module")
def basel(api: Api) -> str:
    key = api.club("basel")
    assert api.call("PUT", "/v1/players/carl", {"name": "Carl"}, key).status == 201
    return key


def contents(api: Api) -> list[Any]:
    objects = [(bucket.name, *found) for bucket in (api.ctx.data, api.ctx.site) for found in bucket.list("")]
    return [*api.dump(), *objects]


@pytest.mark.parametrize("route", GUARDED, ids=_named)
@pytest.mark.parametrize("acting", [None, "bern"])
def test_another_clubs_key_changes_nothing(api: Api, basel: str, route: Route, acting: str | None) -> None:
    before, asked = contents(api), list(api.asked)
    body = BODIES.get((route.method, route.path))
    query = {"club": acting} if acting else {}
    reply = api.call(route.method, _path(route), body, basel, headers={"If-Match": '"1"'}, **query)
    if route.path in OF_ONESELF and acting is None:
        assert (reply.status, reply.body["club"]) == (200, "basel")
        return
    if route.method == "GET" and "{" not in route.path and acting is None:
        assert reply.status == 200  # it names nothing of anybody: one reads what is one's own
        assert "bern" not in reply.text
    else:
        assert (reply.status, reply.body["code"]) == (403, "forbidden"), reply.text
    assert "Anna" not in reply.text
    assert contents(api) == before
    assert api.asked == asked


@pytest.mark.parametrize("route", [r for r in GUARDED if "{pool}" in r.path and r.path not in FOR_ALL], ids=_named)
def test_what_another_club_sent_is_safe_in_a_pool_that_is_open_to_all(api: Api, basel: str, route: Route) -> None:
    """There the pool refuses nobody: the game, the player says no."""
    before, asked = contents(api), list(api.asked)
    body = BODIES.get((route.method, route.path))
    reply = api.call(route.method, _path(route, pool="all"), body, basel, headers={"If-Match": '"1"'})
    assert (reply.status, reply.body["code"]) == (403, "forbidden"), reply.text
    assert contents(api) == before
    assert api.asked == asked


@pytest.mark.parametrize("path", sorted(FOR_ALL))
def test_there_any_club_may_send(api: Api, basel: str, path: str) -> None:
    """Else the test above could not fail. With a preview nothing is stored."""
    body = BODIES.get(("POST", path))
    reply = api.call(
        "POST", path.replace("{pool}", "all"), body, basel, raw=None if body else b"date\n", preview="true"
    )
    assert reply.status in (200, 201, 422), reply.text


def test_whoever_changes_anything_needs_a_key() -> None:
    """A quote is the one request with a body that anybody may send: it only computes."""
    free = {_named(r) for r in ROUTES if r.method != "GET" and r not in GUARDED}
    assert free == {"POST /v1/pools/{pool}/quote"}


@pytest.mark.parametrize("route", [r for r in GUARDED if r.access is not Access.ADMIN], ids=_named)
def test_the_owner_is_not_refused(api: Api, route: Route) -> None:
    """Else the test above could not fail. What is asked of bern's things may be refused for other reasons."""
    key = api.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]}).body["key"]
    reply = api.call(route.method, _path(route), None, key, headers={"If-Match": '"1"'})
    assert reply.status not in (401, 403), reply.text


def test_bodies_are_of_routes_that_exist() -> None:
    assert BODIES.keys() <= {(r.method, r.path) for r in ROUTES}
