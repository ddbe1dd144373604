"""Jass-Elo against the rules page, the vectors, exact fractions and its own symmetries."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.ratings import rule_system
from shared.ratings.base import (
    CannotRate,
    Content,
    Game,
    Moment,
    Normalised,
    Outcome,
    PlayerState,
    Rating,
    RuleError,
    Settings,
)
from shared.ratings.jass import (
    DEFAULT_TIERS,
    SYSTEM,
    TIERS,
    CannotCalibrate,
    JassLineUp,
    JassResult,
    JassSettings,
    JassStart,
    Spread,
    as_submitted,
    calibrated_k,
    deviation,
    expectation,
    possible_winners,
    spread,
    tier,
    tier_bounds,
)

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "jass.json"
DEFAULTS = JassSettings()
TEAMS = [["a", "c"], ["b", "d"]]
FINISH = Moment(10, 5, 0)

GAP_100 = 1 / (1 + 10**-0.1)
PUBLISHED: list[dict[str, Any]] = [
    {"measure": "striche", "a": [100, 100], "b": [100, 100], "result": [3, 0], "s": 5 / 7, "team": 48 / 7},
    {"measure": "striche", "a": [100, 100], "b": [100, 100], "result": [7, 0], "s": 1, "team": 16},
    {"measure": "striche", "a": [100, 100], "b": [100, 100], "result": [9, 0], "s": 1, "team": 16, "clamped": True},
    {"measure": "striche", "a": [100, 100], "b": [100, 100], "result": [3, 3], "s": 0.5, "team": 0},
    {
        "measure": "striche",
        "a": [150, 150],
        "b": [50, 50],
        "result": [3, 3],
        "s": 0.5 - (2 * GAP_100 - 1) * 6 / 14,
        "team": 32 * (0.5 - (2 * GAP_100 - 1) * 6 / 14 - GAP_100),
    },
    {
        "measure": "points",
        "target": 2500,
        "a": [100, 100],
        "b": [100, 100],
        "result": [2500, 1800],
        "s": 0.64,
        "team": 4.48,
    },
]
"""Numbers that the rules page itself says or that follow from it by hand."""


def vectors() -> list[dict[str, Any]]:
    found = json.loads(VECTORS.read_text()) if VECTORS.exists() else []
    return PUBLISHED + [{**v, **v["expected"]} for v in found]


def normalise(result: dict[str, Any], rules: JassSettings = DEFAULTS) -> Normalised:
    return SYSTEM.normalise(JassResult.model_validate({"teams": TEAMS, **result}), rules, 0, 10)


def game(content: Content) -> Game:
    return Game("club", "game", 1, 0, 10, content=content)


def rate(
    content: Content,
    start: dict[str, Rating],
    rules: JassSettings = DEFAULTS,
    now: dict[str, PlayerState] | None = None,
) -> dict[str, Outcome]:
    """Rate, and check on the way that the explanation says the same change."""
    now = now or {player: PlayerState(*value) for player, value in start.items()}
    outcomes = {o.player: o for o in SYSTEM.rate(game(content), FINISH, start, now, rules)}
    explained = SYSTEM.explain(game(content), FINISH, start, now, rules)
    json.dumps(explained)
    assert list(outcomes) == list(SYSTEM.players(content)) == list(explained)
    for player, outcome in outcomes.items():
        change = SYSTEM.present_change((now[player].rating, 0), (outcome.rating, outcome.index))
        assert explained[player]["change"] == change["rating"]
        assert abs(explained[player]["team_change"] / 2 - change["rating"]) <= 0.500001e-6
    return outcomes


def refused(result: dict[str, Any], rules: JassSettings = DEFAULTS) -> set[tuple[str, str]]:
    with pytest.raises(RuleError) as caught:
        normalise(result, rules)
    return {(error.field, error.code) for error in caught.value.errors}


def even(rating: float = 100) -> dict[str, Rating]:
    return dict.fromkeys("abcd", (round(rating * 1_000_000), 0))


def gap(points: float) -> dict[str, Rating]:
    """Team 1 stronger by so many points of team rating."""
    strong, weak = round((100 + points / 2) * 1_000_000), round((100 - points / 2) * 1_000_000)
    return {"a": (strong, 0), "c": (strong, 0), "b": (weak, 0), "d": (weak, 0)}


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", vectors())
def test_vectors(vector: dict[str, Any]) -> None:
    given_k = {"k": float(vector["k"])} if "k" in vector else {}
    rules = JassSettings(measure=vector["measure"], target_points=vector.get("target"), **given_k)
    values = dict(zip("acbd", [*vector["a"], *vector["b"]], strict=True))
    start = {player: (round(value * 1_000_000), 0) for player, value in values.items()}
    content = normalise({vector["measure"]: vector["result"]}, rules).content
    outcomes = rate(content, start, rules)
    now = {player: PlayerState(*value) for player, value in start.items()}
    explained = SYSTEM.explain(game(content), FINISH, start, now, rules)
    side = explained["a"]
    for player, sign in (("a", 1), ("c", 1), ("b", -1), ("d", -1)):
        expected = values[player] + sign * vector["team"] / 2
        assert abs(outcomes[player].rating / 1_000_000 - expected) < 1e-6
    assert side["s"] == pytest.approx(vector["s"], abs=1e-12)
    assert side["team_change"] == pytest.approx(vector["team"], abs=1e-9)
    assert side["clamped"] == vector.get("clamped", False)
    assert explained["d"]["s"] == pytest.approx(1 - vector["s"], abs=1e-12)
    for ours, theirs in (("e", "e"), ("expected_difference", "expected"), ("deviation", "deviation")):
        if theirs in vector:
            assert side[ours] == pytest.approx(vector[theirs], abs=1e-9)


def test_a_tie_is_half_only_between_equals() -> None:
    now = {player: PlayerState(*value) for player, value in gap(100).items()}
    side = SYSTEM.explain(game(normalise({"striche": [3, 3]}).content), FINISH, gap(100), now, DEFAULTS)["a"]
    assert side["s"] == pytest.approx(0.4509, abs=5e-5)


@pytest.mark.parametrize(("striche", "threshold"), [([4, 3], 62.15), ([2, 1], 87.15)])
def test_a_favourite_can_win_narrowly_and_lose(striche: list[int], threshold: float) -> None:
    content = normalise({"striche": striche}).content
    below, above = (rate(content, gap(threshold + step))["a"] for step in (-0.05, 0.05))
    assert below.rating > gap(threshold - 0.05)["a"][0]
    assert above.rating < gap(threshold + 0.05)["a"][0]
    assert above.score == 1


def test_a_favourite_who_performs_as_expected_loses_k_times_what_e_exceeds_a_half() -> None:
    rules = JassSettings(measure="points", target_points=1000)
    start = gap(100)
    expected = round((2 * GAP_100 - 1) * 1000)
    content = normalise({"points": [expected, 0]}, rules).content
    lost = (rate(content, start, rules)["a"].rating - start["a"][0]) * 2 / 1_000_000
    assert lost == pytest.approx(-32 * (GAP_100 - 0.5), abs=32 * 0.5 / 1000)


ratings = st.integers(-200_000_000, 400_000_000)
four = st.fixed_dictionaries({player: st.tuples(ratings, st.just(0)) for player in "abcd"})
totals = st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(lambda t: bool(possible_winners(*t, DEFAULTS)))
ks = st.sampled_from([32.0, 16.0, 25.5, 0.3, 999.9])


@given(four, four, totals, ks)
def test_the_changes_of_a_game_sum_to_nothing(
    start: dict[str, Rating], current: dict[str, Rating], striche: tuple[int, int], k: float
) -> None:
    now = {player: PlayerState(*value) for player, value in current.items()}
    outcomes = rate(normalise({"striche": list(striche)}).content, start, JassSettings(k=k), now)
    changes = [outcomes[player].rating - current[player][0] for player in "acbd"]
    assert changes[0] == changes[1] == -changes[2] == -changes[3]
    assert abs(changes[0]) <= k * 500_000
    mirrored = normalise({"teams": TEAMS[::-1], "striche": list(striche)[::-1]}).content
    assert {p: o.rating for p, o in rate(mirrored, start, JassSettings(k=k), now).items()} == {
        p: o.rating for p, o in outcomes.items()
    }, "which team is named first does not matter"


@settings(max_examples=200)
@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), totals, ks)
def test_rounding_is_that_of_the_exact_value(sum_a: int, sum_b: int, striche: tuple[int, int], k: float) -> None:
    with localcontext() as context:
        context.prec = 60
        odds = Fraction(Decimal(10) ** (Decimal(sum_b - sum_a) / 2_000_000_000))
    e = 1 / (1 + odds)
    a, b = striche
    s = min(max(Fraction(1, 2) + (a - b - (2 * e - 1) * (a + b)) / 14, Fraction(0)), Fraction(1))
    start = {"a": (sum_a, 0), "c": (0, 0), "b": (sum_b, 0), "d": (0, 0)}
    outcomes = rate(normalise({"striche": list(striche)}).content, start, JassSettings(k=k))
    assert outcomes["c"].rating == round(Fraction(repr(k)) * (s - e) * 500_000)
    assert expectation(sum_a, sum_b) == pytest.approx(float(e), abs=1e-15)


def test_ties_are_rounded_to_even_where_binary_fractions_would_not() -> None:
    # 0.3 * (S - E) / 2 is 1.5, 4.5 and 7.5 millionths where S - E is 1, 3 and 5 in 100,000
    rules = JassSettings(measure="points", target_points=50_000, k=0.3)
    for points, change in ((1, 2), (3, 4), (5, 8)):
        content = normalise({"points": [points, 0]}, rules).content
        assert rate(content, even(), rules)["a"].rating - 100_000_000 == change
        mirrored = normalise({"points": [0, points]}, rules).content
        assert rate(mirrored, even(), rules)["a"].rating - 100_000_000 == -change


def test_changes_add_to_current_ratings_from_those_at_the_start() -> None:
    content = normalise({"striche": [7, 0]}).content
    now = {player: PlayerState(-5_000_000 if player == "a" else 230_000_000) for player in "abcd"}
    outcomes = rate(content, even(), DEFAULTS, now)
    assert {p: o.rating for p, o in outcomes.items()} == {
        "a": 3_000_000,
        "c": 238_000_000,
        "b": 222_000_000,
        "d": 222_000_000,
    }


def test_ratings_out_of_all_proportion_still_rate() -> None:
    start = {"a": (10**15, 0), "c": (0, 0), "b": (-(10**15), 0), "d": (0, 0)}
    content = normalise({"striche": [0, 7]}).content
    assert rate(content, start)["c"].rating == -16_000_000


# -- the strich sheet --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("striche", [[2, 1], [3, 0], [5, 0], [2, 2], [3, 3], [7, 0], [9, 0], [14, 2], [0, 3], [1, 2]])
def test_totals_that_exist(striche: list[int]) -> None:
    normalised = normalise({"striche": striche})
    assert normalised.content["striche"] == striche
    assert [w.field for w in normalised.warnings] == (["striche[0]"] if striche[0] > 9 else [])
    assert all(w.code == "whole-evening" for w in normalised.warnings)


@pytest.mark.parametrize(
    ("striche", "code"),
    [
        ([0, 0], "sieg-on-no-side"),
        ([1, 0], "sieg-on-no-side"),
        ([1, 1], "sieg-on-no-side"),
        ([2, 0], "berg-on-no-side"),
    ],
)
def test_totals_that_do_not_exist(striche: list[int], code: str) -> None:
    assert refused({"striche": striche}) == {("striche", code)}
    assert refused({"striche": striche[::-1]}) == {("striche", code)}


def test_two_to_nothing_exists_without_berg() -> None:
    off = JassSettings(berg=False)
    assert normalise({"striche": [2, 0]}, off).content["winner"] == "team1"
    assert refused({"striche": [1, 1]}, off) == {("striche", "sieg-on-no-side")}


rule_sets = [
    JassSettings(berg=berg, schneider=schneider, kontermatsch=kontermatsch)
    for berg, schneider, kontermatsch in product((True, False), (None, 0, 1, 2), (0, 1, 2))
]


@pytest.mark.parametrize("rules", rule_sets)
def test_totals_are_accepted_exactly_when_some_legal_sheet_gives_them(rules: JassSettings) -> None:
    """Every sheet up to four striche a category is submitted as categories; totals and winner must agree."""
    seen: dict[tuple[int, int], set[str]] = {}
    zero = {"berg": 0, "sieg": 0, "matsch": 0, "schneider": 0, "kontermatsch": 0}
    schneider = {0, rules.schneider or 0}
    konter = {0, rules.kontermatsch}
    for berg, sieg in product(((1, 0), (0, 1), (0, 0)), ((2, 0), (0, 2))):
        for own, other, s, k in product(range(4), range(4), schneider, konter):
            one = {**zero, "berg": berg[0], "sieg": sieg[0], "matsch": own, "schneider": s, "kontermatsch": k}
            two = {**zero, "berg": berg[1], "sieg": sieg[1], "matsch": other}
            try:
                content = normalise({"striche": [one, two]}, rules).content
            except RuleError:
                continue
            assert content["striche"] == [sum(one.values()), sum(two.values())]
            seen.setdefault((content["striche"][0], content["striche"][1]), set()).add(content["winner"])
    for a, b in product(range(4), range(4)):
        mirrored = {"team1": "team2", "team2": "team1"}
        found = seen.get((a, b), set()) | {mirrored[w] for w in seen.get((b, a), set())}
        assert possible_winners(a, b, rules) == found, (a, b)


def sheet(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"striche": [first, second]}


WON = {"sieg": 2, "berg": 1}


@pytest.mark.parametrize(
    ("result", "rules", "errors"),
    [
        (sheet({**WON}, {"sieg": 2}), {}, {(f"striche[{n}].sieg", "sieg-on-both-sides") for n in (0, 1)}),
        (sheet({"berg": 1}, {}), {}, {(f"striche[{n}].sieg", "sieg-on-no-side") for n in (0, 1)}),
        (sheet({**WON}, {"berg": 1}), {}, {(f"striche[{n}].berg", "berg-on-both-sides") for n in (0, 1)}),
        (sheet({"sieg": 2}, {}), {}, {(f"striche[{n}].berg", "berg-on-no-side") for n in (0, 1)}),
        (sheet({**WON, "sieg": 1}, {}), {}, {("striche[0].sieg", "wrong-count")}),
        (sheet({**WON, "sieg": 4}, {}), {}, {("striche[0].sieg", "wrong-count")}),
        (sheet({**WON, "berg": 2}, {}), {}, {("striche[0].berg", "wrong-count")}),
        (sheet({**WON, "schneider": 1}, {}), {}, {("striche[0].schneider", "wrong-count")}),
        (sheet({**WON}, {"kontermatsch": 1}), {}, {("striche[1].kontermatsch", "wrong-count")}),
        (
            sheet({**WON}, {"schneider": 2}),
            {},
            {
                ("striche[1].schneider", "schneider-without-sieg"),
                ("striche[1].schneider", "schneider-against-berg"),
            },
        ),
        (sheet({"sieg": 2, "schneider": 2}, {"berg": 1}), {}, {("striche[0].schneider", "schneider-against-berg")}),
        (sheet({**WON}, {}), {"berg": False}, {("striche[0].berg", "berg-off")}),
        (sheet({**WON, "schneider": 2}, {}), {"schneider": None}, {("striche[0].schneider", "schneider-off")}),
        (sheet({**WON, "schneider": 2}, {}), {"schneider": 0}, {("striche[0].schneider", "wrong-count")}),
        (sheet({**WON, "schneider": 2}, {}), {"schneider": 1}, {("striche[0].schneider", "wrong-count")}),
        (sheet({**WON, "kontermatsch": 2}, {}), {"kontermatsch": 0}, {("striche[0].kontermatsch", "wrong-count")}),
        ({**sheet({**WON}, {}), "winner": "team2"}, {}, {("winner", "winner-without-sieg")}),
        ({"striche": [3, 0], "winner": "team2"}, {}, {("winner", "winner-without-sieg")}),
        ({"striche": [2, 1], "winner": "team2"}, {}, {("winner", "winner-without-sieg")}),
        ({"striche": [3, {"sieg": 2}]}, {}, {("striche", "totals-beside-categories")}),
        ({"points": [1000, 500]}, {}, {("striche", "missing")}),
        ({"teams": [["a", "b"], ["b", "d"]], "striche": [3, 0]}, {}, {("teams[1][0]", "player-twice")}),
        (
            {"teams": [["a", "a"], ["b", "d"]], "striche": [0, 0]},
            {},
            {
                ("teams[0][1]", "player-twice"),
                ("striche", "sieg-on-no-side"),
            },
        ),
        (
            {"striche": [3, 0]},
            {"measure": "points", "target_points": 1000},
            {
                ("striche", "wrong-measure"),
                ("points", "missing"),
            },
        ),
        ({"points": [0, 0]}, {"measure": "points", "target_points": 1000}, {("points", "nothing-scored")}),
        (
            sheet({**WON, "sieg": 3, "schneider": 1}, {"berg": 2}),
            {},
            {
                ("striche[0].sieg", "wrong-count"),
                ("striche[0].schneider", "wrong-count"),
                ("striche[0].schneider", "schneider-against-berg"),
                ("striche[1].berg", "wrong-count"),
            },
        ),
    ],
)
def test_refusals_name_every_field(result: dict[str, Any], rules: dict[str, Any], errors: set[tuple[str, str]]) -> None:
    assert refused(result, JassSettings.model_validate(rules)) == errors


@pytest.mark.parametrize(
    ("result", "rules", "striche", "winner"),
    [
        (sheet({**WON, "schneider": 2, "matsch": 2}, {}), {}, [7, 0], "team1"),
        (sheet({"sieg": 2}, {"berg": 1}), {}, [2, 1], "team1"),
        (sheet({"sieg": 2}, {"berg": 1, "matsch": 1}), {}, [2, 2], "team1"),
        (sheet({"matsch": 3, "berg": 1}, {"sieg": 2}), {}, [4, 2], "team2"),
        (sheet({"kontermatsch": 4, "berg": 1}, {"sieg": 2}), {}, [5, 2], "team2"),
        (sheet({**WON, "schneider": 1, "kontermatsch": 1}, {}), {"schneider": 1, "kontermatsch": 1}, [5, 0], "team1"),
        (sheet({"sieg": 2}, {}), {"berg": False}, [2, 0], "team1"),
        ({**sheet({**WON}, {}), "winner": "team1"}, {}, [3, 0], "team1"),
    ],
)
def test_sheets_that_exist(result: dict[str, Any], rules: dict[str, Any], striche: list[int], winner: str) -> None:
    content = normalise(result, JassSettings.model_validate(rules)).content
    assert (content["striche"], content["winner"]) == (striche, winner)
    assert content["categories"][0].keys() == {"berg", "sieg", "matsch", "schneider", "kontermatsch"}
    outcomes = rate(content, even(), JassSettings.model_validate(rules))
    assert outcomes["a"].score == (1 if winner == "team1" else -1)
    assert outcomes["b"].score == -outcomes["a"].score


@pytest.mark.parametrize("wrong", [True, "3", 3.0, 2.5, -1, math.nan, math.inf, None, 1001, [3]])
def test_counts_are_whole_numbers(wrong: object) -> None:
    for field, result in (
        (("striche", 0), {"striche": [wrong, 0]}),
        (("striche", 1, "matsch"), {"striche": [{**WON}, {"matsch": wrong}]}),
        (("points", 1), {"striche": [3, 0], "points": [100, wrong if wrong != 1001 else 100_001]}),
    ):
        with pytest.raises(ValidationError) as caught:
            JassResult.model_validate({"teams": TEAMS, **result})
        assert [error["loc"][: len(field)] for error in caught.value.errors()] == [field]


@pytest.mark.parametrize(
    ("result", "field"),
    [
        ({"teams": [["a"], ["b", "d"]]}, ("teams", 0)),
        ({"teams": [["a", "c", "e"], ["b", "d"]]}, ("teams", 0)),
        ({"teams": [["a", "c"]]}, ("teams",)),
        ({"teams": [["a", "c"], ["b", "d"], ["e", "f"]]}, ("teams",)),
        ({"teams": [["a", 3], ["b", "d"]]}, ("teams", 0, 1)),
        ({"teams": [["a", "x" * 81], ["b", "d"]]}, ("teams", 0, 1)),
        ({"striche": [3]}, ("striche",)),
        ({"striche": [3, 0, 1]}, ("striche",)),
        ({"striche": [{"sieg": 2, "stoeck": 1}, {}]}, ("striche", 0, "stoeck")),
        ({"winner": "draw"}, ("winner",)),
        ({"note": "x"}, ("note",)),
    ],
)
def test_wrong_shapes_name_the_field(result: dict[str, Any], field: tuple[str | int, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        JassResult.model_validate({"teams": TEAMS, "striche": [3, 0], **result})
    assert [error["loc"] for error in caught.value.errors()] == [field]


def test_what_may_stand_beside_striche() -> None:
    content = normalise({"striche": [3, 2], "winner": "team2", "points": [1050, 980]}).content
    assert content == {"teams": TEAMS, "striche": [3, 2], "winner": "team2", "points": [1050, 980]}
    assert rate(content, even())["a"].score == -1
    assert rate(content, even())["a"].rating > 100_000_000, "striche rate, the sieg counts in the record"


@pytest.mark.parametrize(
    ("striche", "named", "winner", "score"),
    [([3, 0], None, "team1", 1), ([3, 2], None, None, 1), ([3, 3], None, None, 0), ([3, 3], "team2", "team2", -1)],
)
def test_who_won_as_far_as_totals_tell(striche: list[int], named: str | None, winner: str | None, score: int) -> None:
    content = normalise({"striche": striche, "winner": named}).content
    assert content.get("winner") == winner
    assert rate(content, even())["a"].score == score


def test_the_same_game_normalises_alike() -> None:
    one = normalise({"teams": [["c", "a"], ["d", "b"]], "striche": [3, 0]})
    assert one == normalise({"striche": [3, 0], "winner": "team1"})
    assert one != normalise({"teams": TEAMS[::-1], "striche": [3, 0]})


@given(totals, st.booleans(), st.booleans())
def test_round_trips(striche: tuple[int, int], named: bool, pointed: bool) -> None:
    result: dict[str, Any] = {"striche": list(striche)}
    if named:
        result["winner"] = min(possible_winners(*striche, DEFAULTS))
    if pointed:
        result["points"] = [900, 1000]
    content = normalise(result).content
    assert normalise(as_submitted(content)).content == content
    there = SYSTEM.translate(content, lambda player: f"id-{player}")
    assert SYSTEM.mentioned(there) == ("id-a", "id-c", "id-b", "id-d")
    assert SYSTEM.translate(there, lambda player: player.removeprefix("id-")) == content


def test_categories_are_shown_as_sent() -> None:
    content = normalise(sheet({**WON}, {"matsch": 1})).content
    shown = as_submitted(content)
    assert shown["striche"][1] == {"berg": 0, "sieg": 0, "matsch": 1, "schneider": 0, "kontermatsch": 0}
    assert normalise(shown).content == content


# -- points, and rules that change -------------------------------------------------------------------------------------


def test_points() -> None:
    rules = JassSettings(measure="points", target_points=12 * 157)
    content = normalise({"points": [980, 904]}, rules).content
    assert content == {"teams": TEAMS, "points": [980, 904]}
    assert rate(content, even(), rules)["a"].score == 1
    assert SYSTEM.tally(game(content)) == {
        "a": (980, 904, 0),
        "c": (980, 904, 0),
        "b": (904, 980, 0),
        "d": (904, 980, 0),
    }
    early = normalise({"points": [980, 1004], "winner": "team1"}, rules).content
    assert rate(early, even(), rules)["a"].score == 1, "out first with fewer card points"
    assert rate(normalise({"points": [942, 942]}, rules).content, even(), rules)["a"].score == 0


def test_what_cannot_be_rated_is_held() -> None:
    points = JassSettings(measure="points", target_points=1000)
    striche = normalise({"striche": [3, 0]}).content
    with pytest.raises(CannotRate):
        rate(striche, even(), points)
    with pytest.raises(CannotRate):
        rate(normalise({"points": [3, 0]}, points).content, even())
    with pytest.raises(CannotRate):
        rate(SYSTEM.translate(striche, {"a": "x", "b": "x", "c": "y", "d": "z"}.__getitem__), {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"measure": "points"},
        {"measure": "points", "target_points": 0},
        {"measure": "points", "target_points": 1000.0},
        {"target_points": True},
        {"measure": "other"},
        {"k": 0},
        {"k": -1},
        {"k": math.nan},
        {"k": math.inf},
        {"k": True},
        {"k": "32"},
        {"schneider": 3},
        {"schneider": True},
        {"kontermatsch": None},
        {"kontermatsch": -1},
        {"berg": 1},
        {"berg": None},
        {"tiers": []},
        {"tiers": [{"names": {}, "symbol": "x"}] * 22},
        {"ruin_penalty": 0},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JassSettings.model_validate(wrong)


def test_tiers_are_a_setting() -> None:
    own = [{"names": {"de": f"Stufe {n}"}, "symbol": "*"} for n in range(22)]
    tiers = JassSettings.model_validate({"tiers": own}).tiers
    assert tiers is not None
    assert tiers[21].names == {"de": "Stufe 21"}


# -- calibration -------------------------------------------------------------------------------------------------------


def test_calibration() -> None:
    content = normalise({"striche": [3, 0]}).content
    value = deviation(game(content), even(), DEFAULTS)
    assert value == pytest.approx(3 / 14)
    mirrored = normalise({"striche": [0, 3]}).content
    assert deviation(game(mirrored), even(), DEFAULTS) == -value
    assert spread([value, -value] * 15) == spread([value] * 30)
    assert spread([0.3, -0.4]).sigma == pytest.approx(math.sqrt(0.125))
    assert calibrated_k(32, Spread(30, 0.2), Spread(30, 0.1)) == pytest.approx(64)
    for reference, rule in (
        (Spread(29, 0.2), Spread(30, 0.1)),
        (Spread(30, 0.2), Spread(29, 0.1)),
        (Spread(30, 0.2), Spread(30, 0.0)),
        (Spread(30, 0.0), Spread(30, 0.1)),
        (spread([]), spread([])),
    ):
        with pytest.raises(CannotCalibrate) as caught:
            calibrated_k(32, reference, rule)
        assert caught.value.reason


# -- start, tiers, lists, quotes ---------------------------------------------------------------------------------------


def test_start() -> None:
    assert SYSTEM.start(None, DEFAULTS) == PlayerState(100_000_000)
    assert SYSTEM.start(JassStart.model_validate({"rating": 104.6, "games": 12}), DEFAULTS) == PlayerState(
        104_600_000, games=12
    )
    assert SYSTEM.start(JassStart(rating=-3), DEFAULTS).rating == -3_000_000
    for wrong in ("104.6", True, math.nan, math.inf, 1e9, None):
        with pytest.raises(ValidationError):
            JassStart.model_validate({"rating": wrong})
    for games in (-1, 1.0, True, "1"):
        with pytest.raises(ValidationError):
            JassStart.model_validate({"games": games})


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (-80, 0),
        (49.999999, 0),
        (50, 1),
        (54.999999, 1),
        (99.999999, 10),
        (100, 11),
        (104.6, 11),
        (104.999999, 11),
        (105, 12),
        (149.999999, 20),
        (150, 21),
        (900, 21),
    ],
)
def test_tiers_go_by_the_unrounded_rating(points: float, expected: int) -> None:
    rating = round(points * 1_000_000)
    assert tier(rating) == expected
    lower, upper = tier_bounds(expected)
    assert lower is None or lower <= points
    assert upper is None or points < upper
    assert SYSTEM.figures(PlayerState(rating), DEFAULTS) == {"tier": expected}


def test_tier_bounds_leave_no_gap() -> None:
    bounds = [tier_bounds(number) for number in range(TIERS)]
    assert bounds[0] == (None, 50)
    assert bounds[11] == (100, 105)
    assert bounds[21] == (150, None)
    assert all(one[1] == two[0] for one, two in pairwise(bounds))
    for number in (-1, 22):
        with pytest.raises(IndexError):
            tier_bounds(number)


def test_default_tiers() -> None:
    assert len(DEFAULT_TIERS) == TIERS
    for language in ("en", "de", "fr", "it"):
        assert len({entry.names[language] for entry in DEFAULT_TIERS}) == TIERS
    assert len({entry.symbol for entry in DEFAULT_TIERS}) == TIERS
    JassSettings.model_validate({"tiers": [entry.model_dump() for entry in DEFAULT_TIERS]})


def test_lists() -> None:
    states = [PlayerState(100_000_000, games=3), PlayerState(100_000_000, games=9), PlayerState(100_000_001)]
    assert sorted(states, key=SYSTEM.order_key) == [states[2], states[1], states[0]]
    assert SYSTEM.place_key(states[0]) == SYSTEM.place_key(states[1])
    assert SYSTEM.present(103_428_571, 0) == {"rating": 103.428571}
    assert SYSTEM.present_change((100_000_000, 0), (103_428_571, 0)) == {"rating": 3.428571}
    assert SYSTEM.hash_token(-103_428_571, 0) == "-103428571"
    assert SYSTEM.close(PlayerState(100_000_000, last_result=1), 730_000) is None
    assert SYSTEM.explain_closing((0, 0), (0, 0), 1, 2) == {}
    content = normalise({"striche": [3, 0]}).content
    assert SYSTEM.tally(game(content)) == {"a": (3, 0, 0), "c": (3, 0, 0), "b": (0, 3, 0), "d": (0, 3, 0)}
    beside = game({**content, "points": [157, 100]})
    assert SYSTEM.tally(beside) == {"a": (3, 0, 157), "c": (3, 0, 157), "b": (0, 3, 100), "d": (0, 3, 100)}
    assert rule_system("jass") is SYSTEM


def test_moments() -> None:
    content = normalise({"striche": [3, 0]}).content
    assert SYSTEM.moments(game(content), DEFAULTS) == (FINISH,)
    for other in (
        Game("c", "g", 1, 0, content={"teams": TEAMS}),
        Game("c", "g", 1, 0, 10, void=True, content=content),
        Game("c", "g", 1, 0, 10, rated=False, content=content),
    ):
        assert SYSTEM.moments(other, DEFAULTS) == ()


def test_line_up() -> None:
    line_up = JassLineUp(teams=[["c", "a"], ["b", "d"]])
    assert SYSTEM.normalise_line_up(line_up, DEFAULTS).content == {"teams": TEAMS}
    with pytest.raises(RuleError) as caught:
        SYSTEM.normalise_line_up(JassLineUp(teams=[["c", "a"], ["c", "d"]]), DEFAULTS)
    assert [error.field for error in caught.value.errors] == ["teams[1][0]"]


@pytest.mark.parametrize("rules", [*rule_sets[::5], JassSettings(k=10)])
def test_quotes_in_striche_are_games_that_exist(rules: JassSettings) -> None:
    start = gap(30)
    states = {player: PlayerState(*value) for player, value in start.items()}
    quoted = SYSTEM.quote({"teams": TEAMS}, states, rules)
    labels = [label for label, _ in quoted]
    assert labels[0] == "7:0"
    assert labels[-1] == "0:7"
    assert len(set(labels)) == len(labels)
    differences = set()
    for label, found in quoted:
        striche = [int(part) for part in label.split(":")]
        differences.add(striche[0] - striche[1])
        outcomes = rate(normalise({"striche": striche}, rules).content, start, rules)
        assert found == {player: (outcome.rating, 0) for player, outcome in outcomes.items()}
    assert differences == set(range(-7, 8))


@pytest.mark.parametrize("target", [1, 7, 157, 1000, 2500])
def test_quotes_in_points(target: int) -> None:
    rules: Settings = JassSettings(measure="points", target_points=target)
    states = {player: PlayerState(*value) for player, value in gap(30).items()}
    quoted = SYSTEM.quote({"teams": TEAMS}, states, rules)
    assert quoted[0][0] == f"+{target}"
    assert quoted[-1][0] == f"-{target}"
    gains = [found["a"][0] for _, found in quoted]
    assert gains == sorted(gains, reverse=True)
    assert "0" in dict(quoted)
