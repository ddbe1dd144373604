"""Clubs, keys and the door itself: who may, in which order it is checked, and what never leaves the process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from shared.usecases import access
from tests.integration.api_fixture import ADMIN_KEY, NOW, Api, running_api

DAY = 86_400_000_000
CHANGING = [
    ("PUT", "/v1/clubs/bern"),
    ("POST", "/v1/clubs/bern/keys"),
    ("DELETE", "/v1/clubs/bern/keys/k"),
    ("PUT", "/v1/pools/p"),
    ("POST", "/v1/pools/p/rebuild"),
    ("PUT", "/v1/players/a"),
    ("PUT", "/v1/pools/p/players/a"),
    ("POST", "/v1/pools/p/games"),
    ("PUT", "/v1/pools/p/games/g"),
    ("POST", "/v1/pools/p/games/g/void"),
    ("POST", "/v1/pools/p/games/g/quits"),
    ("POST", "/v1/pools/p/games/g/quits/a/return"),
]
ADMINS_ONLY = [*CHANGING[:5], ("GET", "/v1/clubs/bern/keys")]


@pytest.fixture
def api() -> Iterator[Api]:
    with running_api() as running:
        yield running


@pytest.fixture(scope="module")
def closed() -> Iterator[Api]:
    """For tests that change nothing."""
    with running_api() as running:
        yield running


# -- the door ------------------------------------------------------------------------------------------------------
def test_health(closed: Api) -> None:
    reply = closed.call("GET", "/v1/health")
    assert (reply.status, reply.body) == (200, {"status": "ok"})
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["X-Request-Id"] == "req-1"
    assert closed.call("HEAD", "/v1/health").text == ""


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/nothing", "/v1/clubs//keys", "/v1/health/", "/v1/pools/%2F/x/y/z"]
)
def test_unknown_address(closed: Api, path: str) -> None:
    reply = closed.call("GET", path)
    assert (reply.status, reply.body["code"]) == (404, "no-such-route")
    assert reply.headers["Content-Type"] == "application/problem+json"


def test_method_not_allowed(closed: Api) -> None:
    reply = closed.call("PATCH", "/v1/pools/p/games/g")
    assert (reply.status, reply.body["code"]) == (405, "method-not-allowed")
    assert reply.headers["Allow"] == "GET, HEAD, OPTIONS, PUT"


def test_preflight(closed: Api) -> None:
    reply = closed.call("OPTIONS", "/v1/pools/p/games", headers={"Origin": "https://ladder.example.org"})
    assert reply.status == 204
    assert reply.headers["Access-Control-Allow-Origin"] == "https://ladder.example.org"
    assert "If-Match" in reply.headers["Access-Control-Allow-Headers"]
    other = closed.call("OPTIONS", "/v1/pools/p/games", headers={"Origin": "https://elsewhere.example"})
    assert "Access-Control-Allow-Origin" not in other.headers


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"{", "column"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"name": NaN}', "NaN"),
        (b'{"name": -Infinity}', "Infinity"),
        (b'{"name": "a", "name": "b"}', "twice"),
        (b'{"\\udfff": 1}', "half a character"),
        (b"[" * 30 + b"]" * 30, "levels"),
        (b"[" * 400_000, "levels"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "levels"),
    ],
)
def test_not_json(closed: Api, raw: bytes, why: str) -> None:
    reply = closed.admin("PUT", "/v1/clubs/bern", raw=raw)
    assert (reply.status, reply.body["code"]) == (422, "not-json")
    assert why in reply.body["detail"]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "123456789012345678901234567890", str(2**63), str(-(2**63))])
def test_a_number_too_large_is_told_by_its_field(closed: Api, number: str) -> None:
    reply = closed.admin("PUT", "/v1/clubs/bern", raw=f'{{"name": {number}, "more": [1, {{"k": {number}}}]}}'.encode())
    assert (reply.status, reply.body["code"]) == (422, "invalid")
    found = {e["field"]: e["code"] for e in reply.body["errors"]}
    assert found == {"name": "number-too-large", "more[1].k": "number-too-large", "more": "unknown-field"}
    assert closed.admin("PUT", "/v1/clubs/bern", raw=number.encode()).body["errors"][0]["field"] == ""
    largest = closed.admin("PUT", "/v1/clubs/bern", raw=b'{"name": 9223372036854775807}')
    assert largest.body["errors"][0]["code"] == "string-type"


def test_half_a_character_is_told_by_its_field(closed: Api) -> None:
    reply = closed.admin("PUT", "/v1/clubs/bern", raw=b'{"name": "a\\ud800", "\\u00e4": ["\\udfff"]}')
    found = [(e["field"], e["code"]) for e in reply.body["errors"]]
    assert found == [("name", "not-unicode"), ("\u00e4[0]", "not-unicode"), ("\u00e4", "unknown-field")]
    assert "UTF-8" not in reply.text
    assert closed.admin("PUT", "/v1/clubs/bern", raw=b'{"name": "\\ud83c\\udca1", "x": 1}').body["errors"] == [
        {"field": "x", "code": "unknown-field", "message": "There is no such field."}
    ], "both halves are a character"


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_body_must_be_an_object(closed: Api, body: object) -> None:
    reply = closed.admin("PUT", "/v1/clubs/bern", raw=json.dumps(body).encode())
    assert reply.status == 422
    assert reply.body["errors"][0]["field"] == ""


def test_too_large(closed: Api) -> None:
    raw = json.dumps({"name": "x" * 1_000_001}).encode()
    reply = closed.admin("PUT", "/v1/clubs/bern", raw=raw)
    assert (reply.status, reply.body["code"], reply.body["limit"]) == (413, "too-large", 1_000_000)
    just = json.dumps({"name": "x" * 999_980}).encode()
    assert closed.admin("PUT", "/v1/clubs/bern", raw=just).status == 422


def test_unexpected_error_tells_nothing(closed: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Anna Muster")

    monkeypatch.setattr("shared.usecases.clubs.put", fail)
    reply = closed.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    assert (reply.status, reply.body["code"], reply.body["request_id"]) == (500, "internal", "req-1")
    line = closed.logged()[-1]
    assert "Muster" not in reply.text + line
    assert json.loads(line)["error"] == "RuntimeError"


def test_busy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.store.table import Busy

    def fail(*_: object) -> None:
        raise Busy("put_item")

    monkeypatch.setattr("shared.usecases.clubs.put", fail)
    reply = api.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    assert (reply.status, reply.headers["Retry-After"]) == (503, "2")


def test_mistyped_parameter_of_a_change_is_refused(api: Api) -> None:
    reply = api.admin("PUT", "/v1/clubs/bern", {"name": "Bern"}, prewiew="true")
    assert (reply.status, reply.fields) == (422, [("prewiew", "unknown-parameter")])
    assert api.call("GET", "/v1/health", t="1").status == 200


# -- who may -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "path"), [*CHANGING, ("GET", "/v1/clubs/bern/keys")])
@pytest.mark.parametrize("key", [None, "cl_unknown", " ", "x" * 600])
def test_401_comes_first(closed: Api, method: str, path: str, key: str | None) -> None:
    api = closed
    before = api.dump()
    reply = api.call(method, path, key=key, raw=b"no json")
    assert (reply.status, reply.body["code"]) == (401, "unauthorized")
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert api.dump() == before


@pytest.mark.parametrize("header", ["", "Bearer", "Basic YTpi", "Bearer  ", "test-admin-key"])
def test_no_bearer(closed: Api, header: str) -> None:
    assert closed.call("PUT", "/v1/clubs/bern", headers={"Authorization": header}).status == 401


def test_scheme_in_any_case(api: Api) -> None:
    reply = api.call("PUT", "/v1/clubs/bern", {"name": "B"}, headers={"Authorization": f"bearer {ADMIN_KEY}"})
    assert reply.status == 201


def test_403_by_scope_before_anything_else(api: Api) -> None:
    submit, manage = api.club("bern", "submit"), api.club("basel", "manage")
    api.call("GET", "/v1/health")
    assert api.call("PUT", "/v1/players/a", key=submit, raw=b"no json").status == 403
    assert api.call("PUT", "/v1/players/a", {"name": "A"}, manage).status == 201
    before = api.dump()
    for method, path in ADMINS_ONLY:
        for key in (submit, manage):
            assert api.call(method, path, key=key, raw=b"no json").status == 403, path
    for method, path in CHANGING[7:]:
        assert api.call(method, path, key=manage, raw=b"no json").status == 403, path
    for method, path in CHANGING[5:7]:
        assert api.call(method, path, key=submit, raw=b"no json").status == 403, path
    changed = [i for i, j in zip(before, api.dump(), strict=True) if i != j]
    assert all(i["pk"].startswith("KEY#") for i in changed)  # the day of a key's first use, nothing else


def test_404_before_422(api: Api) -> None:
    key = api.club("bern")
    assert api.admin("POST", "/v1/clubs/nobody/keys", raw=b"no json").status == 404
    assert api.admin("POST", "/v1/pools/nothing/rebuild", raw=b"no json").status == 404
    assert api.call("POST", "/v1/pools/nothing/games", key=key, raw=b"no json").status == 404
    assert api.call("POST", "/v1/pools/NOT~AN~ID/games", key=key, raw=b"no json").status == 404


def test_a_clubs_key_acts_for_its_own_club_only(api: Api) -> None:
    bern = api.club("bern")
    api.club("basel")
    assert api.call("PUT", "/v1/players/a", {"name": "A"}, bern, club="basel").status == 403
    assert api.call("PUT", "/v1/players/a", {"name": "A"}, bern, club="bern").status == 201
    assert api.admin("PUT", "/v1/players/b", {"name": "B"}, club="Basel").body["managed_by"] == "basel"
    reply = api.admin("PUT", "/v1/players/c", {"name": "C"}, club="nobody")
    assert (reply.status, reply.fields) == (422, [("club", "unknown-club")])
    assert api.admin("PUT", "/v1/players/c", {"name": "C"}, club="~").status == 422


# -- clubs and keys ------------------------------------------------------------------------------------------------
def test_put_club(api: Api) -> None:
    reply = api.admin("PUT", "/v1/clubs/Bern", {"name": "Jassclub Bärn 🃏"})
    assert (reply.status, reply.body) == (201, {"club": "bern", "name": "Jassclub Bärn 🃏"})
    before = api.dump()
    assert api.admin("PUT", "/v1/clubs/bern", {"name": "Jassclub Bärn 🃏"}).status == 200
    assert api.dump() == before
    assert api.admin("PUT", "/v1/clubs/bern", {"name": "Other"}).body == {"club": "bern", "name": "Other"}


def test_every_wrong_field_at_once(api: Api) -> None:
    reply = api.admin("PUT", "/v1/clubs/EN", {"name": "", "more": 1})
    assert reply.fields == [("club", "id"), ("name", "string-too-short"), ("more", "unknown-field")]
    assert reply.body["type"] == "urn:clubladder:problem:invalid"
    assert reply.body["status"] == 422


def test_key_is_shown_once_and_stored_as_a_hash(api: Api) -> None:
    api.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    made = api.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit"], "label": "Anna's laptop"})
    assert made.status == 201
    assert set(made.body) == {"key_id", "key", "scopes"}
    key = made.body["key"]
    assert len(key) >= 43  # 256 bits
    api.call("PUT", "/v1/players/a", {"name": "A"}, key)
    listed = api.admin("GET", "/v1/clubs/bern/keys")
    (line,) = listed.body["keys"]
    assert line == {
        "key_id": made.body["key_id"],
        "scopes": ["submit"],
        "label": "Anna's laptop",
        "created_at": "2026-09-21T14:13:20Z",
        "last_used_on": "2026-09-21",
    }
    stored, logged = json.dumps(api.dump()), api.log.getvalue()
    assert key not in stored + listed.text + logged
    assert ADMIN_KEY not in stored + logged
    assert hashlib.sha256(key.encode()).hexdigest() in stored
    assert hashlib.sha256(key.encode()).hexdigest() not in listed.text


def test_revoked_at_once(api: Api) -> None:
    first = api.club("bern", "manage")
    key_id = api.admin("GET", "/v1/clubs/bern/keys").body["keys"][0]["key_id"]
    api.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["manage"]})
    assert api.call("PUT", "/v1/players/a", {"name": "A"}, first).status == 201
    reply = api.admin("DELETE", f"/v1/clubs/bern/keys/{key_id}")
    assert (reply.status, reply.text) == (204, "")
    assert api.call("PUT", "/v1/players/a", {"name": "A"}, first).status == 401
    assert access.hash_of(first) not in json.dumps(api.dump())
    assert api.admin("DELETE", f"/v1/clubs/bern/keys/{key_id}").status == 404
    assert len(api.admin("GET", "/v1/clubs/bern/keys").body["keys"]) == 1


def test_key_of_another_club_is_not_revoked(api: Api) -> None:
    api.club("bern")
    api.club("basel")
    key_id = api.admin("GET", "/v1/clubs/bern/keys").body["keys"][0]["key_id"]
    before = api.dump()
    assert api.admin("DELETE", f"/v1/clubs/basel/keys/{key_id}").status == 404
    assert api.dump() == before


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, [("scopes", "missing")]),
        ({"scopes": []}, [("scopes", "too-short")]),
        ({"scopes": ["submit", "submit"]}, [("scopes[1]", "twice")]),
        ({"scopes": ["submit", "x"], "label": "\u202e"}, [("scopes[1]", "literal-error"), ("label", "not-printable")]),
        ({"scopes": ["admin"]}, [("scopes", "admin-scope")]),
    ],
)
def test_wrong_keys(api: Api, body: object, fields: list[tuple[str, str]]) -> None:
    api.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    assert api.admin("POST", "/v1/clubs/bern/keys", body).fields == fields


def test_a_second_admin_key_and_the_end_of_the_first(api: Api) -> None:
    second = api.admin("POST", "/v1/clubs/admin/keys", {"scopes": ["admin"], "label": "new"}).body["key"]
    (first,) = [k for k in api.admin("GET", "/v1/clubs/admin/keys").body["keys"] if k["label"] != "new"]
    assert api.call("DELETE", f"/v1/clubs/admin/keys/{first['key_id']}", key=second).status == 204
    assert api.admin("PUT", "/v1/clubs/bern", {"name": "B"}).status == 401
    assert api.call("PUT", "/v1/clubs/bern", {"name": "B"}, second).status == 201


def test_scope_admin_in_a_clubs_key_would_be_worth_nothing(api: Api) -> None:
    from shared.store.clubs import KeyRecord, key_operations

    api.ctx.table.transact(key_operations(KeyRecord(access.hash_of("k"), "bern", "k", ("admin",), "", 0)))
    assert api.call("PUT", "/v1/clubs/x", {"name": "X"}, "k").status == 403


def test_found_item_must_bear_the_whole_hash(api: Api) -> None:
    """Should the table ever answer another item, its hash decides."""
    table = api.ctx.table
    item = table.get(f"KEY#{access.hash_of(ADMIN_KEY)}", "META")
    assert item is not None
    from shared.store.table import Put

    table.write(Put({**item, "hash": "0" * 64}))
    assert api.admin("GET", "/v1/clubs/admin/keys").status == 401


def test_last_use_costs_one_write_a_day(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    key = api.club("bern", "manage")
    calls: list[str] = []
    real = api.ctx.table._call
    monkeypatch.setattr(api.ctx.table, "_call", lambda op, **kw: calls.append(op) or real(op, **kw))
    caller = access.authenticate(api.ctx, f"Bearer {key}")
    assert (caller.kind, caller.club, caller.may("manage"), caller.may("submit")) == ("club", "bern", True, False)
    assert calls == ["get_item", "update_item"]
    calls.clear()
    access.authenticate(api.ctx, f"Bearer {key}")
    assert calls == ["get_item"]
    api.at(NOW + DAY)
    access.authenticate(api.ctx, f"Bearer {key}")
    assert calls == ["get_item", "get_item", "update_item"]
    calls.clear()
    access.authenticate(api.ctx, f"Bearer {ADMIN_KEY}", "bern")
    assert calls[0] == "batch_get_item"


def test_installing_the_admin_key_again(api: Api) -> None:
    before = api.dump()
    access.install_admin_key(api.ctx.table, ADMIN_KEY)
    assert api.dump() == before
    for bad in ("", " ", " x", "x" * 513):
        with pytest.raises(ValueError, match="admin key"):
            access.install_admin_key(api.ctx.table, bad)


def test_logs_tell_route_status_pool_and_no_more(api: Api) -> None:
    key = api.club("bern", "manage")
    before = len(api.logged())
    api.call("PUT", "/v1/players/anna-muster", {"name": "Anna Muster"}, key)
    api.call("PUT", "/v1/players/anna-muster\n%0aforged", {"name": "Anna Muster"}, key)
    lines = api.logged()[before:]
    assert len(lines) == 2
    for line in lines:
        assert "nna" not in line
        assert json.loads(line)["route"] == "/v1/players/{player}"
    assert [json.loads(line)["status"] for line in lines] == [201, 422]
