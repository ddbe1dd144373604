"""What a club should look at, over all pools, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from local.inprocess import System
from shared.usecases import attention
from tests.integration.people_fixture import Ladder, at, duel


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.pool("duels", "bridier")
    made.pool("cards", "jass")
    made.players("anna ann bob cy dora eve")
    return made


def look(ladder: Ladder, club: str = "bern", *, key: str | None = None, status: int = 200) -> Any:
    answer = ladder.system.request("GET", f"/v1/clubs/{club}/attention", key=key or ladder.key)
    return ladder.expect(answer, status)


EVENING = {"teams": [["anna", "bob"], ["cy", "dora"]], "striche": [24, 3]}


def test_everything_a_club_should_look_at(ladder: Ladder) -> None:
    assert look(ladder) == {
        "club": "bern",
        "held": [],
        "open": [],
        "warnings": [],
        "rows": [],
        "questions": [],
        "more": {"held": 0, "open": 0, "warnings": 0, "rows": 0, "questions": 0},
    }
    ladder.system.admin("POST", "/v1/players/ann/merge", {"into": "anna"})
    ladder.send("duels", "odd", duel("anna", "ann"), at(1))
    ladder.open("duels", "old", {"players": ["bob", "cy"]}, at(1))
    ladder.send("cards", "evening", EVENING, at(2))
    ladder.rate()
    found = look(ladder)
    assert found["held"] == [
        {
            "pool": "duels",
            "game": "bern:odd",
            "started_at": "2024-03-01T19:00:00Z",
            "players": found["held"][0]["players"],
            "reason": "the same person sits twice at the table",
        }
    ]
    assert sorted(found["held"][0]["players"]) == ["ann", "anna"]
    assert [(o["pool"], o["game"], o["players"]) for o in found["open"]] == [("duels", "bern:old", ["bob", "cy"])]
    (warned,) = found["warnings"]
    assert (warned["pool"], warned["game"]) == ("cards", "bern:evening")
    assert [(w["field"], w["code"]) for w in warned["warnings"]] == [("result.striche[0]", "whole-evening")]
    assert found["warnings"][0]["warnings"] == ladder.get("/v1/pools/cards/games/evening")["warnings"]


def test_warnings_go_when_the_game_is_corrected_or_voided(ladder: Ladder) -> None:
    for game in ("one", "two"):
        ladder.send("cards", game, EVENING, at(2), round=1 if game == "one" else 2)
    assert [w["game"] for w in look(ladder)["warnings"]] == ["bern:one", "bern:two"]
    fixed = {"reason": "a typo", "result": {**EVENING, "striche": [4, 3]}}
    ladder.put("/v1/pools/cards/games/one", fixed, revision=1, status=200)
    ladder.post("/v1/pools/cards/games/two/void", {"reason": "an evening"}, status=200)
    assert look(ladder)["warnings"] == []
    ladder.put("/v1/pools/cards/games/two", {"reason": "it was one game"}, revision=2, status=200)
    assert [w["game"] for w in look(ladder)["warnings"]] == ["bern:two"]
    ladder.put("/v1/pools/cards/games/one", {"reason": "no", "result": EVENING}, revision=2, status=200)
    assert len(look(ladder)["warnings"]) == 2


def test_a_game_opened_today_is_not_forgotten(ladder: Ladder) -> None:
    now = ladder.post("/v1/pools/duels/games", {"started_at": at(1), "line_up": {"players": ["bob", "cy"]}})
    assert now.status == 201
    from shared.ledger.order import iso
    from shared.usecases import bootstrap

    fresh = iso(bootstrap.context().clock() - 3600 * 10**6)
    ladder.open("duels", "fresh", {"players": ["anna", "cy"]}, fresh)
    ladder.rate()
    assert [o["game"] for o in look(ladder)["open"]] == [f"bern:{now.body['game_id']}"]


def test_players_of_one_name_are_asked_about(ladder: Ladder) -> None:
    for player in ("p1", "p2"):
        body = {"name": "Peter  MÜLLER" if player == "p1" else "peter müller"}
        ladder.system.request("PUT", f"/v1/players/{player}", json=body, key=ladder.key)
    (question,) = look(ladder)["questions"]
    assert (question["code"], question["players"]) == ("same-name", ["p1", "p2"])
    assert ladder.system.admin("POST", "/v1/players/p1/merge", {"into": "p2"}).status == 202
    assert look(ladder)["questions"] == []


def test_only_ones_own(ladder: Ladder) -> None:
    basel = ladder.club("basel")
    manages = ladder.club("thun", ("manage",))
    ladder.send("cards", "evening", EVENING, at(2))
    assert look(ladder, key=basel, status=403)["code"] == "forbidden"
    assert look(ladder, "thun", key=manages, status=403)["code"] == "forbidden"
    assert look(ladder, "basel", key=basel)["warnings"] == []
    assert ladder.system.request("GET", "/v1/clubs/bern/attention").status == 401
    assert len(ladder.system.admin("GET", "/v1/clubs/bern/attention").body["warnings"]) == 1
    assert ladder.system.admin("GET", "/v1/clubs/nobody/attention").status == 404
    assert ladder.system.admin("GET", "/v1/clubs/admin/attention").status == 200


def test_long_lists_are_cut_and_say_so(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "MOST", 2)
    for n in range(3):
        ladder.send("cards", f"g{n}", EVENING, at(2), round=n)
    found = look(ladder)
    assert (len(found["warnings"]), found["more"]["warnings"]) == (2, 1)
