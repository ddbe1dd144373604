"""Jass over HTTP: measures, refusals, warnings, tiers, and the calibration of K."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from local.inprocess import System
from tests.integration.people_fixture import Ladder, at, fields

TEAMS = {"teams": [["anna", "cy"], ["bob", "dora"]]}
POOL = {"name": "Jass", "system": "jass", "time_zone": "Europe/Zurich", "languages": ["de"]}


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.pool("jass", "jass")
    made.players("anna bob cy dora")
    return made


def game(ladder: Ladder, game_id: str, a: int, b: int, when: str, *, pool: str = "jass", **more: Any) -> Any:
    return ladder.send(pool, game_id, {**TEAMS, "striche": [a, b]}, when, **more)


# -- one game ------------------------------------------------------------------------------------------------------
def test_a_first_game_and_its_explanation(ladder: Ladder) -> None:
    game(ladder, "g", 7, 0, at(1))
    assert ladder.rating("jass", "anna") == 108
    assert ladder.rating("jass", "bob") == 92
    changes = {c["player"]: c for c in ladder.get("/v1/pools/jass/games/g")["changes"]}
    told = changes["anna"]["explanation"]
    assert (told["e"], told["s"], told["deviation"], told["clamped"]) == (0.5, 1.0, 7.0, False)
    assert sum(c["change"]["rating"] for c in changes.values()) == 0


def test_a_warning_is_stored_returned_and_does_not_refuse(ladder: Ladder) -> None:
    sent = game(ladder, "g", 10, 9, at(1))
    assert [(w["field"], w["code"]) for w in sent["warnings"]] == [("result.striche[0]", "whole-evening")]
    assert ladder.get("/v1/pools/jass/games/g")["warnings"] == sent["warnings"]
    assert game(ladder, "h", 9, 0, at(2))["warnings"] == []


REFUSED: list[tuple[Any, str, str]] = [
    ([0, 0], "result.striche", "sieg-on-no-side"),
    ([1, 0], "result.striche", "sieg-on-no-side"),
    ([1, 1], "result.striche", "sieg-on-no-side"),
    ([2, 0], "result.striche", "berg-on-no-side"),
    ([3, -1], "result.striche[1]", "greater-than-equal"),
    ([3.5, 1], "result.striche[0]", "int-type"),
    ([True, 3], "result.striche[0]", "int-type"),
    (["3", 0], "result.striche[0]", "int-type"),
    ([{"sieg": 2}, {"sieg": 2, "berg": 1}], "result.striche[0].sieg", "sieg-on-both-sides"),
    ([{"berg": 1}, {"matsch": 1}], "result.striche[0].sieg", "sieg-on-no-side"),
    ([{"sieg": 2, "berg": 1}, {"berg": 1}], "result.striche[0].berg", "berg-on-both-sides"),
    ([{"sieg": 2}, {"matsch": 1}], "result.striche[0].berg", "berg-on-no-side"),
    ([{"sieg": 2, "berg": 1}, {"schneider": 2}], "result.striche[1].schneider", "schneider-without-sieg"),
    ([{"sieg": 2, "schneider": 2}, {"berg": 1}], "result.striche[0].schneider", "schneider-against-berg"),
]


@pytest.mark.parametrize(("striche", "field", "code"), REFUSED)
def test_refusals_name_the_field(ladder: Ladder, striche: Any, field: str, code: str) -> None:
    body = ladder.send("jass", "g", {**TEAMS, "striche": striche}, at(1), status=422)
    assert (field, code) in fields(body)


def test_the_named_winner_is_checked(ladder: Ladder) -> None:
    body = ladder.send("jass", "g", {**TEAMS, "striche": [3, 0], "winner": "team2"}, at(1), status=422)
    assert fields(body) == [("result.winner", "winner-without-sieg")]
    sent = ladder.send("jass", "g", {**TEAMS, "striche": [3, 3], "winner": "team2", "points": [900, 800]}, at(1))
    assert (sent["result"]["winner"], sent["result"]["points"]) == ("team2", [900, 800])
    ladder.rate()
    assert ladder.get("/v1/pools/jass/players/bob")["record"]["won"] == 1


def test_settings_of_categories(ladder: Ladder) -> None:
    ladder.pool("plain", "jass", berg=False, schneider=None, kontermatsch=1)
    ladder.send("plain", "g", {**TEAMS, "striche": [2, 0]}, at(1))
    konter = [{"sieg": 2, "kontermatsch": 1}, {}]
    ladder.send("plain", "h", {**TEAMS, "striche": konter}, at(2))
    wrong = [{"sieg": 2, "berg": 1, "schneider": 2}, {}]
    body = ladder.send("plain", "i", {**TEAMS, "striche": wrong}, at(3), status=422)
    assert fields(body) == [("result.striche[0].berg", "berg-off"), ("result.striche[0].schneider", "schneider-off")]


# -- measures ------------------------------------------------------------------------------------------------------
def test_points_and_striche_in_two_pools_of_one_group(ladder: Ladder) -> None:
    ladder.pool("points", "jass", measure="points", target_points=2500)
    game(ladder, "g", 3, 0, at(1), group="dienstag")
    ladder.send("points", "g", {**TEAMS, "points": [2500, 1800]}, at(1), group="dienstag")
    assert ladder.rating("points", "anna") == round(100 + 16 * (700 / 5000), 6)
    body = ladder.send("points", "h", {**TEAMS, "striche": [3, 0]}, at(2), status=422)
    assert ("result.points", "missing") in fields(body)
    body = ladder.send("jass", "h", {**TEAMS, "points": [2500, 1800]}, at(2), status=422)
    assert fields(body) == [("result.striche", "missing")]


def put_rules(ladder: Ladder, *rules: dict[str, Any]) -> Any:
    return ladder.system.admin("PUT", "/v1/pools/jass", {**POOL, "rules": list(rules)})


def test_a_pool_keeps_its_measure(ladder: Ladder) -> None:
    answer = put_rules(ladder, {"from": "2020-01-01", "measure": "points"})
    assert (answer.status, fields(answer.body)) == (422, [("rules[0].target_points", "missing")])
    points = {"measure": "points", "target_points": 1000}
    answer = put_rules(ladder, {"from": "2020-01-01"}, {"from": "2024-01-01", **points})
    assert (answer.status, fields(answer.body)) == (422, [("rules[1].measure", "fixed")])
    answer = put_rules(ladder, {"from": "2020-01-01", **points})
    assert (answer.status, fields(answer.body)) == (422, [("rules[0].measure", "fixed")])
    assert put_rules(ladder, {"from": "2020-01-01", "measure": "striche", "k": 20}).status == 200
    new = {**POOL, "rules": [{"from": "2020-01-01", **points}, {"from": "2024-01-01"}]}
    answer = ladder.system.admin("PUT", "/v1/pools/other", new)
    assert (answer.status, fields(answer.body)) == (422, [("rules[1]", "fixed")])  # by what it leaves out
    assert "`measure`" in answer.body["errors"][0]["message"]


# -- tiers ---------------------------------------------------------------------------------------------------------
def test_a_change_of_tier_stands_in_the_history(ladder: Ladder) -> None:
    ladder.start("jass", "anna", rating=104.6)
    ladder.start("jass", "bob", rating=105)
    ladder.rate()
    assert ladder.get("/v1/pools/jass/players/anna")["tier"] == 11  # prints as 105, and stands below it
    assert ladder.get("/v1/pools/jass/players/bob")["tier"] == 12
    game(ladder, "g", 4, 0, at(1))
    ladder.rate()
    for player, tiers in (("anna", (11, 12)), ("bob", (12, 11)), ("cy", (11, 11)), ("dora", (11, 10))):
        shown = ladder.get(f"/v1/pools/jass/players/{player}")
        told = shown["history"][0]["explanation"]
        assert (told["tier_before"], told["tier_after"]) == tiers, player
        assert shown["tier"] == tiers[1]
    ladder.system.settle()
    for player, line in (("anna", "Up to 13 Alder"), ("bob", "Down to 12 Birch"), ("cy", None)):
        page = ladder.system.page(f"/jass/players/{player}/")[2].decode()
        assert line is None or line in page, player
        assert page.count("Up to") + page.count("Down to") == (line is not None)


# -- tournaments ---------------------------------------------------------------------------------------------------
ROUNDS = [  # teams, striche, card points, when
    (("anna", "cy"), ("bob", "dora"), [3, 2], [900, 800], "2023-12-30T20:00:00+01:00"),
    (("anna", "bob"), ("cy", "dora"), [3, 2], [700, 600], "2024-01-05T20:00:00+01:00"),
    (("anna", "dora"), ("bob", "cy"), [2, 3], [400, 1000], "2024-01-05T21:00:00+01:00"),
]


def ranking(page: str) -> list[tuple[str, str]]:
    """Places and players of a page's first table."""
    rows = page.split("<tbody>")[1].split("</tbody>")[0]
    return re.findall(r"<tr><td>(\d+)</td><th[^>]*><a[^>]*>(\w+) Muster", rows)


def test_a_tournament_ranks_by_striche_then_difference_then_points(ladder: Ladder) -> None:
    """Anna, Bob and Cy all have 8:7. Bob and Cy made 2500 points, Anna 2000; each of them won twice."""
    for number, (one, two, striche, points, when) in enumerate(ROUNDS, 1):
        result = {"teams": [list(one), list(two)], "striche": striche, "points": points}
        ladder.send("jass", f"r{number}", result, when, tournament="cup", round=number)
    game(ladder, "elsewhere", 7, 0, at(1))
    ladder.system.settle()

    def page(path: str) -> str:
        status, _, body = ladder.system.page(path)
        assert status == 200, path
        return body.decode()

    whole = page("/jass/tournaments/cup/")
    assert ranking(whole) == [("1", "Cy"), ("1", "Bob"), ("3", "Anna"), ("4", "Dora")]  # equals by rating
    assert re.findall(r"<td[^>]*>(\d+–\d+)</td><td[^>]*>(\d+)</td>", whole.split("</tbody>")[0]) == [
        ("8–7", "2500"),
        ("8–7", "2500"),
        ("8–7", "2000"),
        ("6–9", "1800"),
    ]
    assert re.findall(r"<h2>(Round \d)</h2>", whole) == ["Round 1", "Round 2", "Round 3"]
    for year in ("2023", "2024"):
        assert f'href="/jass/tournaments/cup/{year}/"' in whole
    early, late = page("/jass/tournaments/cup/2023/"), page("/jass/tournaments/cup/2024/")
    assert sorted(ranking(early)) == [("1", "Anna"), ("1", "Cy"), ("3", "Bob"), ("3", "Dora")]
    assert [p for _, p in ranking(late)] == ["Bob", "Cy", "Anna", "Dora"]  # 6:4; 5:5 with 1600 points; with 1100; 4:6
    assert re.findall(r"<h2>(Round \d)</h2>", early) == ["Round 1"]
    assert re.findall(r"<h2>(Round \d)</h2>", late) == ["Round 2", "Round 3"]
    assert 'href="/jass/tournaments/cup/2024/"' in early


def test_without_points_equal_striche_share_the_place(ladder: Ladder) -> None:
    for number, (one, two, striche, _, when) in enumerate(ROUNDS, 1):
        result = {"teams": [list(one), list(two)], "striche": striche}
        ladder.send("jass", f"r{number}", result, when, tournament="cup", round=number)
    ladder.system.settle()
    page = ladder.system.page("/jass/tournaments/cup/")[2].decode()
    assert sorted(ranking(page)) == [("1", "Anna"), ("1", "Bob"), ("1", "Cy"), ("4", "Dora")]
    assert '<th scope="col" class="n w1">Card points' not in page


# -- calibration ---------------------------------------------------------------------------------------------------
def calibration(ladder: Ladder, pool: str, reference: str | None = None, *, status: int = 200) -> Any:
    query = f"?reference={reference}" if reference is not None else ""
    return ladder.expect(ladder.system.request("GET", f"/v1/pools/{pool}/calibration{query}"), status)


def thirty(ladder: Ladder, pool: str, wild: bool, count: int = 30) -> list[float]:
    """So many games; S − E of team 1 of each, worked out here."""
    dice = random.Random(pool)
    found, ratings = [], dict.fromkeys(("anna", "bob", "cy", "dora"), 100.0)
    names = list(ratings)
    for n in range(count):
        seats = dice.sample(names, 4)
        a, b = dice.choice([(7, 0), (0, 7), (5, 0)] if wild else [(3, 2), (2, 3), (2, 2)])
        result = {"teams": [seats[:2], seats[2:]], "striche": [a, b]}
        ladder.send(pool, f"g{n}", result, at(1 + n % 28, 8 + n // 28), round=n)
        found.append((n % 28, n // 28, seats, a - b, a + b))
    deviations = []
    for _, _, seats, difference, total in sorted(found):
        mean = [(ratings[seats[i]] + ratings[seats[i + 1]]) / 2 for i in (0, 2)]
        e = 1 / (1 + 10 ** ((mean[1] - mean[0]) / 1000))
        s = min(max(0.5 + (difference - (2 * e - 1) * total) / 14, 0), 1)
        deviations.append(s - e)
        for seat, sign in zip(seats, (1, 1, -1, -1), strict=True):
            ratings[seat] = round(ratings[seat] + sign * 16 * (s - e), 6)
    return deviations


def test_k_follows_from_how_far_results_stray(ladder: Ladder) -> None:
    ladder.pool("calm", "jass", k=20)
    wild, calm = thirty(ladder, "jass", wild=True), thirty(ladder, "calm", wild=False)
    ladder.rate()
    sigma = math.sqrt(sum(d * d for d in wild) / 30)
    own = calibration(ladder, "jass")
    assert own == {"pool": "jass", "games": 30, "sigma": pytest.approx(sigma, abs=1e-9), "k": 32}
    told = calibration(ladder, "calm", "jass")
    assert told["reference"] == own
    assert (told["pool"], told["games"], told["k_now"]) == ("calm", 30, 20)
    assert told["k"] == pytest.approx(32 * sigma / told["sigma"])
    assert told["sigma"] == pytest.approx(math.sqrt(sum(d * d for d in calm) / 30), abs=1e-3)  # K 20: other ratings
    assert calibration(ladder, "jass", "jass")["k"] == pytest.approx(32)
    # Applying it is a rule with a date, by an admin; shown K follows, rated games keep theirs.
    before = ladder.hash("calm")
    rules = [{"from": "2020-01-01", "k": 20}, {"from": "2024-05-01", "k": told["k"]}]
    ladder.pool("calm", "jass", *rules)
    assert ladder.hash("calm") == before
    assert calibration(ladder, "calm")["k"] == told["k"]


def test_it_follows_the_pool(ladder: Ladder) -> None:
    game(ladder, "g", 7, 0, at(1))
    ladder.rate()
    first = calibration(ladder, "jass")
    assert (first["games"], first["sigma"]) == (1, 0.5)
    game(ladder, "h", 3, 3, at(2))
    ladder.rate()
    assert calibration(ladder, "jass")["games"] == 2
    ladder.post("/v1/pools/jass/games/h/void", {"reason": "x"}, status=200)
    ladder.rate()
    assert calibration(ladder, "jass") == first


def test_it_refuses_with_the_reason(ladder: Ladder) -> None:
    ladder.pool("calm", "jass")
    assert calibration(ladder, "jass") == {"pool": "jass", "games": 0, "sigma": 0.0, "k": 32}
    thirty(ladder, "jass", wild=True)
    thirty(ladder, "calm", wild=False, count=29)
    ladder.rate()
    few = calibration(ladder, "calm", "jass", status=409)
    assert few["code"] == "cannot-calibrate"
    assert few["detail"] == "The pool has 29 games; at least 30 are needed."
    assert (few["games"], few["reference"]["games"]) == (29, 30)
    few = calibration(ladder, "jass", "calm", status=409)
    assert few["detail"] == "The reference pool has 29 games; at least 30 are needed."
    ladder.pool("level", "jass")
    for n in range(30):
        ladder.send("level", f"g{n}", {**TEAMS, "striche": [3, 3]}, at(1 + n % 28, 8 + n // 28), round=n)
    ladder.rate()
    flat = calibration(ladder, "level", "jass", status=409)
    assert flat["detail"] == "Every game of the pool ended exactly as expected: its spread is 0."


def test_it_is_for_pools_of_the_same_rules(ladder: Ladder) -> None:
    ladder.pool("duels", "bridier")
    assert fields(calibration(ladder, "duels", status=422)) == [("pool", "no-calibration")]
    assert fields(calibration(ladder, "jass", "duels", status=422)) == [("reference", "another-system")]
    for unknown in ("nothing", "~", "v1"):
        assert fields(calibration(ladder, "jass", unknown, status=422)) == [("reference", "unknown-pool")]
    assert calibration(ladder, "nothing", status=404)["code"] == "not-found"
