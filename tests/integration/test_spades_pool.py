"""Spades over HTTP: rules with dates, at the zone's midnight and through a replay; the list of nils; who leaves it."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest

from local.inprocess import System
from tests.integration.people_fixture import Ladder, fields

WORLD_OF_CARD_GAMES: list[dict[str, Any]] = [
    {
        "from": "2016-04-10",
        "opposition": "pairwise",
        "k": {"first": 50, "up_to_games": 50, "then": 30},
        "quit_ban_minutes": 240,
    },
    {"from": "2017-01-01", "opposition": "pairwise", "quit_ban_minutes": 120},
    {"from": "2017-12-24"},
]


@pytest.fixture
def ladder(system: System) -> Ladder:
    return Ladder(system)


def chance(own: float, other: float) -> float:
    return float(1 / (1 + 10 ** ((other - own) / 400)))


RATINGS = {"a": 1512, "b": 1562, "c": 1484, "d": 1417}
GAMES = {"a": 50, "b": 0, "c": 51, "d": 200}
PAIRWISE = {p: sum(chance(RATINGS[p], RATINGS[o]) for o in ("bd" if p in "ac" else "ac")) for p in "abcd"}
NEW = {p: 50 if GAMES[p] <= 50 else 30 for p in "abcd"}
CASES = [
    # the last instant of one rule, the first of the next, in Zurich; what the four come to
    ("2016-12-31T23:59:59+01:00", {p: RATINGS[p] + NEW[p] * (2 * (p in "ac") - PAIRWISE[p]) for p in "abcd"}),
    ("2017-01-01T00:00:00+01:00", {"a": 1535.451, "b": 1532.453, "c": 1509.379, "d": 1397.716}),
    ("2017-12-23T23:59:59.999999+01:00", {"a": 1535.451, "b": 1532.453, "c": 1509.379, "d": 1397.716}),
    ("2017-12-24T00:00:00+01:00", {"a": 1536.388, "b": 1537.612, "c": 1508.388, "d": 1392.612}),
]


def test_each_game_by_the_rules_of_its_start_also_after_a_replay(ladder: Ladder) -> None:
    ladder.pool("cards", "spades", *WORLD_OF_CARD_GAMES)
    ladder.players(" ".join(f"{p}{n}" for n in range(len(CASES)) for p in "abcd") + " x")

    def check() -> None:
        ladder.rate()
        for n, (_, expected) in enumerate(CASES):
            for p in "abcd":
                assert ladder.rating("cards", f"{p}{n}") == pytest.approx(expected[p], abs=6e-4), (n, p)
            game = ladder.get(f"/v1/pools/cards/games/g{n}")
            since = ("2016-04-09T22:00:00Z", "2016-12-31T23:00:00Z", "2016-12-31T23:00:00Z", "2017-12-23T23:00:00Z")[n]
            assert {c["explanation"]["rules_from"] for c in game["changes"]} == {since}

    for n, (when, _) in enumerate(CASES):
        for p in "abcd":
            ladder.start("cards", f"{p}{n}", rating=RATINGS[p], games=GAMES[p])
        result = {"teams": [[f"a{n}", f"c{n}"], [f"b{n}", f"d{n}"]], "outcome": "team1"}
        # It ends under the next rules, and counts by those of its start.
        end = (dt.datetime.fromisoformat(when) + dt.timedelta(hours=2)).isoformat()
        ladder.send("cards", f"g{n}", result, end, started_at=when)
    check()
    ladder.send("cards", "late", {"teams": [["x", "a1"], ["b1", "c1"]], "outcome": "draw"}, "2016-05-01T12:00:00+02:00")
    ladder.rate()
    ladder.post("/v1/pools/cards/games/late/void", {"reason": "it was not"}, status=200)
    check()
    assert ladder.hash("cards") == ladder.rebuilt("cards")
    early, result = "2016-04-09T23:59:59+02:00", {"teams": [["a0", "b0"], ["c0", "d0"]], "outcome": "draw"}
    refused = ladder.send("cards", "before", result, early, started_at=early, status=422)
    assert fields(refused) == [("started_at", "before-rules")]


def days_ago(days: float) -> str:
    return (dt.datetime.now(dt.UTC) - dt.timedelta(days=days)).isoformat()


def test_nils_have_a_list_of_their_own_and_none_yet_stands_last(ladder: Ladder) -> None:
    ladder.pool("cards", "spades")
    ladder.players("anna bob cy dora eve finn gus hal")
    nils = [
        {"bidder": "anna", "set": True, "set_by": "bob"},  # Bob 1 of 1, Dora 0 of 1
        {"bidder": "bob", "set": True},  # Anna and Cy 1 of 1 each
        {"bidder": "bob", "set": False},  # ... of 2
        {"bidder": "eve", "set": True, "set_by": "anna"},  # she sat in for Dora: nobody's
    ]
    result = {
        "teams": [["anna", "cy"], ["bob", "dora"]],
        "outcome": "draw",
        "nils": nils,
        "quits": [{"player": "dora", "at": days_ago(2.01)}],
        "substitutes": [{"for": "dora", "player": "eve"}],
    }
    ladder.send("cards", "g", result, days_ago(2), started_at=days_ago(2.02))
    ladder.send("cards", "h", {"teams": [["finn", "gus"], ["hal", "anna"]], "outcome": "team1"}, days_ago(1))
    ladder.system.settle()
    skills = {p: ladder.get(f"/v1/pools/cards/players/{p}")["skill"] for p in ("anna", "bob", "cy", "dora", "finn")}
    assert skills == {"anna": 0.5, "bob": 1.0, "cy": 0.5, "dora": 0.0, "finn": None}
    page = ladder.system.page("/cards/skill/")[2].decode().split("<tbody>")[1]
    assert re.findall(r"<tr><td[^>]*>([–\d]+)</td><th[^>]*>\s*<a[^>]*>(\w+) Muster", page) == [
        ("1", "Bob"),
        ("2", "Anna"),
        ("2", "Cy"),
        ("4", "Dora"),
        ("–", "Finn"),
        ("–", "Gus"),
        ("–", "Hal"),
    ]


def test_who_has_not_played_for_long_leaves_the_list_until_the_next_game(ladder: Ladder) -> None:
    ladder.pool("cards", "spades", hide_after_days=30)
    ladder.players("a b c d e f g h")

    def listed() -> list[str]:
        ladder.system.settle()
        return [row["player"] for row in ladder.get("/v1/pools/cards/standings")["standings"]]

    ladder.send("cards", "old", {"teams": [["a", "b"], ["c", "d"]], "outcome": "team1"}, days_ago(32))
    ladder.send("cards", "new", {"teams": [["e", "f"], ["g", "h"]], "outcome": "team1"}, days_ago(29))
    assert listed() == ["e", "f", "g", "h"]
    assert ladder.rating("cards", "a") == 1525
    ladder.send("cards", "back", {"teams": [["a", "e"], ["c", "g"]], "outcome": "draw"}, days_ago(1))
    assert sorted(listed()) == ["a", "c", "e", "f", "g", "h"]
    assert ladder.rating("cards", "b") == 1525
