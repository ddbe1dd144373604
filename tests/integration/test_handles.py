"""Handles are folded at the door before anything is compared or sorted by them, in every rule system."""

from __future__ import annotations

from typing import Any

import pytest

from local.inprocess import System
from tests.integration.people_fixture import Ladder, at, fields

PLACES: dict[str, tuple[Any, Any, str]] = {
    "spades": (
        {"teams": [["Bob", "anna"], ["Cy", "dora"]], "outcome": "team1", "nils": [{"bidder": "BOB", "set": False}]},
        {"teams": [["anna", "bob"], ["Anna", "cy"]]},
        "teams[1][0]",
    ),
    "jass": (
        {"teams": [["Bob", "anna"], ["Cy", "dora"]], "striche": [3, 0]},
        {"teams": [["anna", "Anna"], ["bob", "cy"]]},
        "teams[0][1]",
    ),
    "bridier": (
        {
            "players": ["Bob", "anna", "Cy"],
            "defeats": [{"winner": "bob", "loser": "Anna"}],
            "ruins": [{"player": "CY", "by": "ANNA"}],
            "alliances": [["anna", "cy"]],
        },
        {"players": ["anna", "bob", "Anna"]},
        "players[2]",
    ),
}


def lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: lowered(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [lowered(entry) for entry in value]
    return value.lower() if isinstance(value, str) else value


@pytest.mark.parametrize("rules", list(PLACES))
def test_case_means_nothing(system: System, rules: str) -> None:
    ladder = Ladder(system)
    ladder.pool("p", rules)
    ladder.players("anna bob cy dora")
    result, twice, field = PLACES[rules]
    sent = ladder.send("p", "g", result, at(1), started_at=at(1, 19))
    assert ladder.send("p", "g", lowered(result), at(1), started_at=at(1, 19), status=200) == sent
    answer = ladder.post("/v1/pools/p/quote", twice, status=422)
    assert fields(answer) == [(field, "player-twice")]
    body = {"game_id": "t", "started_at": at(2), "line_up": twice}
    answer = ladder.post("/v1/pools/p/games", body, status=422)
    assert fields(answer) == [(f"line_up.{field}", "player-twice")]


def test_quits_at_one_instant_go_by_the_folded_handles(system: System) -> None:
    ladder = Ladder(system)
    ladder.pool("p", "spades")
    ladder.players("anna bob cy dora")
    quits = [{"player": player, "at": at(1, 19, 30)} for player in ("Bob", "anna")]
    result = {"teams": [["anna", "cy"], ["Bob", "dora"]], "outcome": "team1", "quits": quits}
    ladder.send("p", "g", result, at(1), started_at=at(1, 19))
    # Anna quit first: she loses to both. Bob beats her, loses to Cy; Cy wins twice, Dora beats Anna only.
    assert [ladder.rating("p", player) for player in ("anna", "bob", "cy", "dora")] == [1475, 1500, 1525, 1500]
