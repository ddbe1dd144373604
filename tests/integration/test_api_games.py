"""The routes of games and of reading: what they hand to the use cases, and who gets that far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shared.ledger.order import iso
from shared.usecases.drafts import Answer
from tests.integration.api_fixture import Api, running_api

POOL = {
    "name": "P",
    "system": "bridier",
    "time_zone": "Europe/Zurich",
    "languages": ["en"],
    "rules": [{"from": "2016-04-10"}],
}
GAMES = "/v1/pools/duels/games"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """Nothing is stored here: the use cases are replaced, or refuse."""
    with running_api() as running:
        running.admin("PUT", "/v1/pools/duels", POOL)
        yield running


@pytest.fixture(scope="module")
def bern(api: Api) -> str:
    return api.club("bern")


class Seen:
    """What a use case was called with."""

    args: tuple[Any, ...] = ()
    more: dict[str, Any]

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.args, self.more = args, more
        return self.answer


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    def replace(name: str, answer: Any = None) -> Seen:
        use_case = Seen(answer if answer is not None else Answer(200, {"done": True}))
        monkeypatch.setattr(f"shared.usecases.{name}", use_case)
        return use_case

    return replace


def test_submit(api: Api, bern: str, seen: Any) -> None:
    submit = seen("games.submit", Answer(201, {"revision": 1}, {"ETag": '"1"'}))
    body = {"game_id": "G1", "finished_at": "2026-09-20", "result": {"players": ["a", "b"], "winner": "a"}}
    reply = api.call("POST", GAMES, body, bern, headers={"Idempotency-Key": "k 1".replace(" ", "-")}, preview="true")
    assert (reply.status, reply.body, reply.headers["ETag"]) == (201, {"revision": 1}, '"1"')
    _, pool, club, draft = submit.args
    assert (pool.id, club, draft.game_id, draft.result) == ("duels", "bern", "g1", body["result"])
    assert iso(draft.finished_at) == "2026-09-20T10:00:00Z"
    assert submit.more["idempotency_key"] == "k-1"
    assert submit.more["preview"] is True
    digest = submit.more["body_digest"]
    api.call("POST", GAMES, dict(reversed(body.items())), bern, preview_token="t")
    assert submit.more["body_digest"] == digest  # the same body laid out another way
    assert (submit.more["preview"], submit.more["preview_token"]) == (False, "t")
    api.call("POST", GAMES, {**body, "round": 1}, bern)
    assert submit.more["body_digest"] != digest
    api.admin("POST", GAMES, body)
    assert submit.args[2] == "admin"
    api.admin("POST", GAMES, body, club="bern")
    assert submit.args[2] == "bern"


def test_wrong_parameters(api: Api, bern: str, seen: Any) -> None:
    seen("games.submit")
    assert api.call("POST", GAMES, {}, bern, preview="yes").fields == [("preview", "not-a-flag")]
    assert api.call("POST", GAMES, {}, bern, preview_token="x" * 1001).fields == [("preview_token", "length")]
    for key in ("", "ä", "x" * 256):
        reply = api.call("POST", GAMES, {}, bern, headers={"Idempotency-Key": key})
        assert reply.fields == [("Idempotency-Key", "pattern")]


def test_correct(api: Api, bern: str, seen: Any) -> None:
    correct = seen("games.correct")
    body = {"reason": "typo", "note": "x"}
    path = f"{GAMES}/G1"
    assert api.call("PUT", path, body, bern).status == 428
    assert api.call("PUT", path, body, bern).body["code"] == "if-match-required"
    for header in ("3", "abc", '"x"', '"0"', 'W/"3"', "*", '"1", "2"'):
        reply = api.call("PUT", path, body, bern, headers={"If-Match": header})
        assert reply.fields == [("If-Match", "revision")], header
    assert api.call("PUT", path, {"note": "x"}, bern).fields == [("reason", "missing")]  # 422 before 428
    api.call("PUT", path, {**body, "game_id": "g2", "round": -1}, bern, headers={"If-Match": '"3"'})
    wrong = [(error.field, error.code) for error in correct.args[4].wrong]
    assert wrong == [("round", "greater-than-equal"), ("game_id", "another-game")], "told with what is wrong inside"
    assert api.call("PUT", path, {**body, "game_id": "G1"}, bern, headers={"If-Match": '"3"'}).status == 200
    assert correct.args[3] == ("bern", "g1")
    assert correct.args[4].given == {"game_id", "note"}
    assert (correct.more["reason"], correct.more["if_match"], correct.more["admin"]) == ("typo", 3, False)
    api.admin("PUT", f"{GAMES}/bern%3AG1", body, headers={"If-Match": '"12"'})
    assert (correct.args[2:4], correct.more["admin"]) == (("admin", ("bern", "g1")), True)
    for reason in ("", " ", "x" * 501, None):
        assert api.call("PUT", path, {"reason": reason}, bern).fields[0][0] == "reason"


def test_void_and_quits(api: Api, bern: str, seen: Any) -> None:
    void, quit_, back = seen("games.void"), seen("games.quit", Answer(201, {})), seen("games.quit_return")
    assert api.call("POST", f"{GAMES}/g/void", {"reason": "twice"}, bern).status == 200
    assert (void.args[3], void.more["reason"]) == (("bern", "g"), "twice")
    body = {"player": "D", "at": "2026-09-20T12:00:00+02:00"}
    assert api.call("POST", f"{GAMES}/g/quits", body, bern).status == 201
    assert (quit_.args[4], iso(quit_.args[5])) == ("d", "2026-09-20T10:00:00Z")
    assert api.call("POST", f"{GAMES}/g/quits/D/return", {"at": body["at"]}, bern).status == 200
    assert back.args[4] == "d"
    assert api.call("POST", f"{GAMES}/g/quits", {"at": "2026-09-20"}, bern).fields == [
        ("player", "missing"),
        ("at", "time"),
    ]


def test_read_a_game(api: Api, bern: str, seen: Any) -> None:
    read = seen("games.read", {"revision": 1})
    assert api.call("GET", f"{GAMES}/g", key=bern).status == 200
    assert read.args[2] == ("bern", "g")
    api.call("GET", f"{GAMES}/Basel:G")
    assert read.args[2] == ("basel", "g")
    api.admin("GET", f"{GAMES}/g")
    assert read.args[2] == ("admin", "g")
    api.admin("GET", f"{GAMES}/g", club="bern")
    assert read.args[2] == ("bern", "g")
    for path in ("g", "~", "a:~", "a:b:c", ":g", "a:"):
        assert api.call("GET", f"{GAMES}/{path}").status == 404, path
    assert api.call("GET", "/v1/pools/nothing/games/a:g").status == 404


def test_read_lists(api: Api, seen: Any) -> None:
    standings = seen("reading.standings", {"standings": []})
    player = seen("reading.player_in_pool", {"player": "a"})
    opponents = seen("quotes.opponents", {"opponents": []})
    quote = seen("quotes.quote", {"outcomes": []})
    rebuild = seen("rebuild.request", {})
    assert api.call("GET", "/v1/pools/duels/standings", cursor="c").status == 200
    assert standings.args[2] == "c"
    assert api.call("GET", "/v1/pools/duels/standings", cursor="x" * 1001).status == 422
    assert api.call("GET", "/v1/pools/duels/players/A").status == 200
    assert player.args[2:] == ("a", None)
    assert api.call("GET", "/v1/pools/duels/players/a/opponents", minimum_gain="12").status == 200
    assert opponents.args[2:] == ("a", 12, None)
    for gain in ("-1", "1.5", "x", "1001", "", "١"):
        reply = api.call("GET", "/v1/pools/duels/players/a/opponents", minimum_gain=gain)
        assert reply.fields == [("minimum_gain", "number")]
    assert api.call("POST", "/v1/pools/duels/quote", {"players": ["a", "b"]}).status == 200
    assert quote.args[2] == {"players": ["a", "b"]}
    assert api.call("POST", "/v1/pools/duels/quote", raw=b"[]").status == 422
    assert api.admin("POST", "/v1/pools/duels/rebuild", {}).status == 202
    assert api.admin("POST", "/v1/pools/duels/rebuild", {"x": 1}).fields == [("x", "unknown-field")]
    assert rebuild.args[1].id == "duels"


def test_openapi_is_served(api: Api) -> None:
    document = api.call("GET", "/v1/openapi.json").body
    assert document["openapi"] == "3.1.0"
    assert "/v1/pools/{pool}/games" in document["paths"]
