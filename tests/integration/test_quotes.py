"""A quote is what then happens, whatever the system, the line-up and the ratings."""

from __future__ import annotations

import random
from typing import Any

import pytest

from local.inprocess import System
from shared.ledger.order import iso
from shared.usecases import bootstrap
from tests.integration.people_fixture import Ladder, fields

NAMES = "anna bob cy dora"


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.players(NAMES)
    return made


def quote(ladder: Ladder, pool: str, line_up: Any, *, status: int = 200) -> Any:
    answer = ladder.system.request("POST", f"/v1/pools/{pool}/quote", json=line_up)
    return ladder.expect(answer, status)


def spades(line_up: Any, outcome: str) -> Any:
    return {**line_up, "outcome": outcome}


def jass(line_up: Any, outcome: str) -> Any:
    return {**line_up, "striche": [int(n) for n in outcome.split(":")]}


def points(line_up: Any, outcome: str) -> Any:
    difference = int(outcome)
    return {**line_up, "points": [2500 + max(difference, 0), 2500 + max(-difference, 0)]}


def two(line_up: Any, outcome: str) -> Any:
    if outcome == "draw":
        return {**line_up, "draw": True}
    return {**line_up, "winner": line_up["players"][int(outcome[-1]) - 1]}


def several(line_up: Any, outcome: str) -> Any:
    winner, loser = (line_up["players"][int(p.removeprefix("player")) - 1] for p in outcome.split(">"))
    return {**line_up, "defeats": [{"winner": winner, "loser": loser}]}


SPADES_K = {"first": 50, "up_to_games": 5, "then": 30}
CASES: list[tuple[str, dict[str, Any], Any, int]] = [
    ("spades", {}, spades, 4),
    ("spades", {"opposition": "pairwise", "k": SPADES_K}, spades, 4),
    ("jass", {}, jass, 4),
    ("jass", {"berg": False}, jass, 4),
    ("jass", {"measure": "points", "target_points": 2500}, points, 4),
    ("bridier", {}, two, 2),
    ("bridier", {"basis": "hybrid"}, two, 2),
    ("bridier", {"basis": "end", "alliance_average": True}, several, 4),
]


@pytest.mark.parametrize(("system_name", "settings", "result_of", "seats"), CASES)
def test_a_quote_is_what_then_happens(
    ladder: Ladder, system_name: str, settings: dict[str, Any], result_of: Any, seats: int
) -> None:
    dice = random.Random(f"{system_name}{settings}")
    ladder.pool("pool", system_name, **settings)
    names = NAMES.split()
    for name in names[:3]:  # one has never played
        if system_name == "bridier":
            start: dict[str, Any] = {"rank": dice.randint(300, 700), "index": 500}
        elif system_name == "spades":
            start = {"rating": dice.randint(1200, 1800), "games": dice.randint(0, 12)}
        else:
            start = {"rating": dice.randint(60, 140)}
        ladder.start("pool", name, **start)
    ladder.rate()
    table = dice.sample(names, seats)
    line_up: dict[str, Any] = {"players": table} if system_name == "bridier" else {"teams": [table[:2], table[2:]]}
    if result_of is several:
        line_up["alliances"] = [table[:2]]
    outcomes = quote(ladder, "pool", line_up)["outcomes"]
    assert len(outcomes) >= 3
    assert len({o["outcome"] for o in outcomes}) == len(outcomes)
    now = iso(bootstrap.context().clock())  # a quote is for now: an index has risen since any older day
    before = ladder.get("/v1/pools/pool")["state_hash"]
    for told in outcomes:
        body = {"finished_at": now, "result": result_of(line_up, told["outcome"])}
        effects = ladder.post("/v1/pools/pool/games?preview=true", body, status=200)["effects"]
        happened = {row["player"]: row for row in effects["players"]}
        assert [line["player"] for line in told["players"]] == table or system_name != "bridier"
        assert {line["player"] for line in told["players"]} == set(table)
        for line in told["players"]:
            row = happened.get(line["player"])
            assert line["after"] == (row["after"] if row is not None else line["before"]), (told["outcome"], line)
            if row is not None:
                assert line["change"] == row["change"]
    assert ladder.get("/v1/pools/pool")["state_hash"] == before  # quotes and previews store nothing
    last = outcomes[-1]
    ladder.send("pool", "g", result_of(line_up, last["outcome"]), now)
    ladder.rate()
    shown = {c["player"]: c["after"] for c in ladder.get("/v1/pools/pool/games/g")["changes"]}
    assert shown == {line["player"]: line["after"] for line in last["players"] if line["player"] in shown}
    assert shown


def test_a_quote_of_a_merged_player_is_the_survivors(ladder: Ladder) -> None:
    ladder.pool("pool", "bridier")
    ladder.players("ann")
    ladder.start("pool", "anna", rank=640, index=500)
    assert ladder.system.admin("POST", "/v1/players/ann/merge", {"into": "anna"}).status == 202
    ladder.rate()
    outcomes = quote(ladder, "pool", {"players": ["ann", "bob"]})["outcomes"]
    assert {line["player"]: line["before"]["rank"] for line in outcomes[0]["players"]} == {"ann": 640, "bob": 500}


def test_what_cannot_be_quoted(ladder: Ladder) -> None:
    ladder.pool("cards", "spades")
    body = quote(ladder, "cards", {"teams": [["anna", "bob"], ["cy", "nobody"]]}, status=422)
    assert fields(body) == [("teams[1][1]", "unknown-player")]
    body = quote(ladder, "cards", {"teams": [["anna", "bob"], ["cy", "anna"]]}, status=422)
    assert fields(body) == [("teams[1][1]", "player-twice")]
    body = quote(ladder, "cards", {"teams": [["anna", "bob"]], "x": 1}, status=422)
    assert {f for f, _ in fields(body)} == {"teams", "x"}
    assert quote(ladder, "nothing", {}, status=404)["code"] == "not-found"


def test_rules_of_a_day_to_come_count_for_nothing_yet(ladder: Ladder) -> None:
    """They may be told long before: quote, K in force, rules page and calculator go by those of now."""
    ladder.pool("jass", "jass", {"from": "2020-01-01", "k": 28}, {"from": "2990-01-01", "k": 40})
    line_up = {"teams": [["anna", "bob"], ["cy", "dora"]]}
    (seven,) = (o for o in quote(ladder, "jass", line_up)["outcomes"] if o["outcome"] == "7:0")
    assert {line["change"]["rating"] for line in seven["players"]} == {7.0, -7.0}  # half of 28 × (1 − 0.5)
    assert ladder.get("/v1/pools/jass/calibration")["k"] == 28
    ladder.system.settle()
    page = ladder.system.page("/jass/rules/")[2].decode()
    assert "<mn>28</mn><mo>×</mo>" in page
    assert "The winners gain 3.000 each" in page  # 28 × 3/14, half of it
    assert "2990" in page
    assert '"k":28' in ladder.system.page("/jass/calculator/")[2].decode().replace("&#34;", '"').replace(".0", "")
