"""What a submission is compared with, and everything that is wrong with it told at once."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from local.inprocess import System
from shared.ratings import rule_system
from tests.integration.people_fixture import Ladder, at, fields

TEAMS = {"teams": [["anna", "bob"], ["cy", "dora"]]}
OTHER = {"teams": [["dora", "cy"], ["bob", "anna"]]}


def instant(text: str) -> str:
    """As the API answers it."""
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.players("anna bob cy dora")
    return made


@pytest.mark.parametrize(
    ("rules", "settings", "one", "two"),
    [
        (
            "spades",
            {},
            {"outcome": "team1", "nils": [{"bidder": "anna", "set": True, "set_by": "cy"}]},
            {"outcome": "team2", "nils": [{"bidder": "anna", "set": True, "set_by": "cy"}]},
        ),
        ("spades", {}, {"outcome": "draw"}, {"outcome": "draw"}),
        ("jass", {}, {"striche": [3, 0]}, {"striche": [0, 3]}),
        (
            "jass",
            {},
            {"striche": [{"berg": 1, "sieg": 2}, {"matsch": 1}], "winner": "team1"},
            {"striche": [{"matsch": 1}, {"berg": 1, "sieg": 2}], "winner": "team2"},
        ),
        ("jass", {"measure": "points", "target_points": 2500}, {"points": [2500, 1800]}, {"points": [1800, 2500]}),
    ],
)
def test_a_game_is_the_same_from_either_side(
    ladder: Ladder, rules: str, settings: dict[str, Any], one: dict[str, Any], two: dict[str, Any]
) -> None:
    ladder.pool("p", rules, **settings)
    first = ladder.send("p", "g", {**TEAMS, **one}, at(1))
    assert ladder.send("p", "g", {**OTHER, **two}, at(1), status=200) == first, "the same game again"
    answer = ladder.send("p", "again", {**OTHER, **two}, at(1), status=409)
    assert (answer["code"], answer["existing"]["game_id"]) == ("possible-duplicate", "g")
    if one != two:
        assert ladder.send("p", "g", {**OTHER, **one}, at(1), status=409)["code"] == "conflict"
        ladder.send("p", "lost", {**OTHER, **one}, at(1))


@pytest.mark.parametrize("rules", ["spades", "jass"])
def test_told_twice_from_the_other_side_is_told_as_at_first(rules: str) -> None:
    system: Any = rule_system(rules)
    content = {**TEAMS, "outcome": "team2", "winner": "team1", "striche": [0, 3], "categories": [{}, {"sieg": 2}]}
    other = system.from_other_side(content)
    assert other != content
    assert system.from_other_side(other) == content


def test_every_wrong_field_at_once(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    teams = [["anna", "who"], ["cy", "dora"]]
    body = {"game_id": "g", "finished_at": at(1), "round": "x", "result": {"teams": teams, "striche": ["a", 1]}}
    wrong = [("round", "int-type"), ("result.striche[0]", None), ("result.teams[0][1]", "unknown-player")]
    answer = ladder.post("/v1/pools/p/games", body, status=422)
    assert [name for name, _ in fields(answer)] == [name for name, _ in wrong]
    body |= {"finished_at": "2099-01-01T00:00:00Z", "round": 1}
    assert [name for name, _ in fields(ladder.post("/v1/pools/p/games", body, status=422))] == [
        "finished_at",
        "result.striche[0]",
        "result.teams[0][1]",
    ]
    body |= {"finished_at": "2569-05-01T12:00:00Z"}
    answer = ladder.post("/v1/pools/p/games", body, status=422)
    assert answer["errors"][0]["message"].endswith("Buddhist calendar; here it would be 2026.")
    body |= {"finished_at": "yesterday", "register": [{"id": "who"}]}
    found = [name for name, _ in fields(ladder.post("/v1/pools/p/games", body, status=422))]
    assert found == ["finished_at", "register[0].name", "result.striche[0]"], "who was meant cannot be told"
    body = {"game_id": "g", "round": -1, "sequence": "1"}
    found = [name for name, _ in fields(ladder.post("/v1/pools/p/games", body, status=422))]
    assert found == ["round", "sequence", "result", "started_at"]


def test_every_wrong_field_of_a_correction_at_once(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    ladder.send("p", "g", {**TEAMS, "striche": [3, 0]}, at(1))
    body = {"round": -1, "result": {**TEAMS, "striche": [3, 2.5]}}
    found = ladder.put("/v1/pools/p/games/g", body, revision=1, status=422)
    assert [name for name, _ in fields(found)] == ["round", "reason", "result.striche[1]"]
    assert ladder.get("/v1/pools/p/games/g")["revision"] == 1


def test_who_sits_twice_and_who_is_unknown_come_together(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    result = {"teams": [["anna", "Anna"], ["nobody", "dora"]], "striche": [0, 0]}
    body = {"game_id": "g", "finished_at": at(1), "round": -1, "result": result}
    wrong = {name for name, _ in fields(ladder.post("/v1/pools/p/games", body, status=422))}
    assert {"round", "result.teams[0][1]", "result.teams[1][0]"} <= wrong
    body["result"] = {**result, "striche": ["x", 1]}
    wrong = {name for name, _ in fields(ladder.post("/v1/pools/p/games", body, status=422))}
    assert wrong == {"round", "result.striche[0]", "result.teams[0][1]", "result.teams[1][0]"}


@pytest.mark.parametrize("rules", ["jass", "spades", "bridier"])
def test_the_games_of_an_erased_player_go_in_again_and_nothing_changes(ladder: Ladder, rules: str) -> None:
    ladder.pool("p", rules)
    result: dict[str, Any] = {**TEAMS, **({"striche": [3, 0]} if rules == "jass" else {"outcome": "team1"})}
    if rules == "bridier":
        result = {"players": ["anna", "dora"], "winner": "dora"}
    ladder.send("p", "g", result, at(1))
    ladder.system.settle()
    assert ladder.system.request("DELETE", "/v1/players/anna", key=ladder.key).status == 202
    ladder.system.settle()
    text = ladder.get(f"/v1/pools/p/games?month={at(1)[:7]}")["csv"]
    answer = ladder.system.request(
        "POST",
        "/v1/pools/p/imports?mode=strict&filename=games.csv",
        body=text.encode(),
        key=ladder.key,
        headers={"content-type": "application/octet-stream"},
    )
    assert (answer.body["new"], answer.body["unchanged"], answer.body["corrected"]) == (0, 1, 0), answer.body


@pytest.mark.parametrize("body", [None, [], 5, "x"])
def test_a_body_that_is_no_object(ladder: Ladder, body: Any) -> None:
    ladder.pool("p", "jass")
    answer = ladder.system.request("POST", "/v1/pools/p/games", json=body, key=ladder.key)
    assert answer.status == 422
    assert "GameBody" not in str(answer.body)


def test_a_preview_names_those_whom_it_would_register(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    ladder.send("p", "g", {**TEAMS, "striche": [3, 0]}, at(1))
    newcomer = {"register": [{"id": "eve", "name": "Eve"}]}
    result = {"teams": [["anna", "eve"], ["cy", "dora"]], "striche": [3, 0]}
    body = {"finished_at": at(2), "result": result, **newcomer}
    effects = ladder.post("/v1/pools/p/games?preview=true", body, status=200)["effects"]
    assert {row["player"] for row in effects["players"]} == {"anna", "eve", "cy", "dora"}
    body = {"reason": "it was Eve", "result": result, **newcomer}
    effects = ladder.put("/v1/pools/p/games/g?preview=true", body, revision=1, status=200)["effects"]
    assert {row["player"] for row in effects["players"]} == {"eve", "bob"}


def test_a_quote_does_not_seat_one_person_twice(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    assert ladder.system.admin("POST", "/v1/players/anna/merge", {"into": "bob"}).status == 202
    ladder.system.settle()
    answer = ladder.post("/v1/pools/p/quote", TEAMS, status=422)
    assert fields(answer) == [("teams[0][0]", "player-twice"), ("teams[0][1]", "player-twice")]


def test_nobody_carries_over_a_result_that_is_still_to_come(ladder: Ladder) -> None:
    ladder.pool("p", "bridier")
    start = {"start": {"rank": 520, "index": 453, "last_result_on": "2999-05-01"}}
    answer = ladder.system.admin("PUT", "/v1/pools/p/players/anna", start)
    assert fields(answer.body) == [("start.last_result_on", "in-the-future")]
    start["start"]["last_result_on"] = "2026-13-01"
    answer = ladder.system.admin("PUT", "/v1/pools/p/players/anna", start)
    assert fields(answer.body) == [("start.last_result_on", "invalid")]
    assert "no such day" in answer.body["errors"][0]["message"]


@pytest.mark.parametrize("first", ["anna", "eve"])
def test_a_game_sent_again_with_a_merged_record_is_the_same_game(ladder: Ladder, first: str) -> None:
    """Whichever of the two records it named first, and whichever was merged into the other."""
    ladder.players("eve")
    ladder.pool("p", "jass")
    second = {"anna": "eve", "eve": "anna"}[first]
    told = {name: {"teams": [[name, "bob"], ["cy", "dora"]], "striche": [3, 0]} for name in ("anna", "eve")}
    ladder.send("p", "g", told[first], at(1))
    assert ladder.system.admin("POST", "/v1/players/anna/merge", {"into": "eve"}).status == 202
    ladder.system.settle()
    answer = ladder.send("p", "again", told[second], at(1), status=409)
    assert (answer["code"], answer["existing"]["game_id"]) == ("possible-duplicate", "g")
    ladder.send("p", "another", told[second], at(2))
    ladder.send("p", "again", told[second], at(1), distinct=True)


def test_what_cannot_be_held_is_told_with_the_rest(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    huge = "9" * 41
    raw = (
        f'{{"game_id": "g", "finished_at": {huge}, "round": {huge}, "group": "a b", "note": "\\ud800", '
        f'"result": {{"teams": [["anna", "bob"], ["cy", "dora"]], "striche": [{huge}, 1]}}}}'
    )
    answer = ladder.system.request("POST", "/v1/pools/p/games", body=raw.encode(), key=ladder.key)
    assert (answer.status, answer.body["code"]) == (422, "invalid")
    assert {(e["field"], e["code"]) for e in answer.body["errors"]} == {
        ("finished_at", "number-too-large"),
        ("round", "number-too-large"),
        ("note", "not-unicode"),
        ("result.striche[0]", "number-too-large"),
        ("group", "id"),
    }
    body = {"game_id": "g", "finished_at": at(1), "result": {**TEAMS, "striche": [3, 1]}}
    again = {"key": ladder.key, "headers": {"Idempotency-Key": "k"}}
    assert ladder.system.request("POST", "/v1/pools/p/games", json={**body, "round": None}, **again).status == 201
    text = json.dumps({**body, "round": 0}).replace('"round": 0', f'"round": {huge}')
    other = ladder.system.request("POST", "/v1/pools/p/games", body=text.encode(), **again)
    assert other.status == 422, "another body, though the number is held by nobody"


# -- a start that was not given ------------------------------------------------------------------------------------
@pytest.mark.parametrize("finish", [at(1, 19), at(1, 22)])
def test_a_start_that_was_not_given_follows_the_finish(ladder: Ladder, finish: str) -> None:
    ladder.pool("p", "jass")
    ladder.send("p", "g", {**TEAMS, "striche": [3, 1]}, at(1))
    ladder.put("/v1/pools/p/games/g", {"reason": "later", "finished_at": finish}, revision=1, status=200)
    game = ladder.get("/v1/pools/p/games/g")
    assert (game["started_at"], game["finished_at"]) == (instant(finish), instant(finish))
    equal = {"game_id": "g", "finished_at": finish, "result": {**TEAMS, "striche": [3, 1]}}
    assert ladder.post("/v1/pools/p/games", equal, status=200)["revision"] == 2


def test_a_start_that_was_given_stays(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    ladder.send("p", "g", {**TEAMS, "striche": [3, 1]}, at(1), started_at=at(1, 19))
    ladder.put("/v1/pools/p/games/g", {"reason": "later", "finished_at": at(1, 22)}, revision=1, status=200)
    assert ladder.get("/v1/pools/p/games/g")["started_at"] == instant(at(1, 19))
    answer = ladder.put("/v1/pools/p/games/g", {"reason": "x", "finished_at": at(1, 18)}, revision=2, status=422)
    assert fields(answer) == [("finished_at", "before-start")]
    both = {"reason": "x", "started_at": at(1, 22), "finished_at": at(1, 23)}
    ladder.put("/v1/pools/p/games/g", both, revision=2, status=200)
    alone = {"reason": "x", "started_at": at(1, 21)}
    ladder.put("/v1/pools/p/games/g", alone, revision=3, status=200)
    game = ladder.get("/v1/pools/p/games/g")
    assert (game["started_at"], game["finished_at"]) == (instant(at(1, 21)), instant(at(1, 23)))


@pytest.mark.parametrize("finish", [at(1, 19, 30), at(1, 22)])
@pytest.mark.parametrize("start", [{}, {"started_at": at(1, 19)}])
def test_what_happened_at_the_finish_stays_there(ladder: Ladder, finish: str, start: dict[str, str]) -> None:
    ladder.pool("p", "bridier")
    ladder.pool("q", "spades")
    early = [{"winner": "anna", "loser": "cy", "at": at(1, 19, 10)}] if start else []
    result = {"players": ["anna", "bob", "cy"], "defeats": [*early, {"winner": "anna", "loser": "bob"}],
              "ruins": [{"player": "cy"}]}  # fmt: skip
    ladder.send("p", "g", result, at(1), **start)
    quits = [{"player": "anna"}, {"player": "cy", "at": at(1), "back_at": at(1)}]
    ladder.send("q", "g", {**TEAMS, "outcome": "team2", "quits": quits}, at(1), **start)
    for pool in "pq":
        ladder.put(f"/v1/pools/{pool}/games/g", {"reason": "x", "finished_at": finish}, revision=1, status=200)
    told = ladder.get("/v1/pools/p/games/g")["result"]
    assert [line["at"] for line in told["defeats"]] == [*(instant(e["at"]) for e in early), instant(finish)]
    assert [line["at"] for line in told["ruins"]] == [instant(finish)]
    assert ladder.get("/v1/pools/q/games/g")["result"]["quits"] == [
        {"player": "anna", "at": instant(finish)},
        {"player": "cy", "at": instant(finish), "back_at": instant(finish)},
    ]
