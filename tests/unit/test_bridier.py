"""Bridier against the rules page, the vectors, exact fractions and its own symmetries."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from itertools import permutations
from math import floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.ratings import rule_system
from shared.ratings.base import CannotRate, Content, Game, Moment, Normalised, Outcome, PlayerState, Rating, RuleError
from shared.ratings.bridier import (
    SYSTEM,
    BridierLineUp,
    BridierResult,
    BridierSettings,
    BridierStart,
    Entry,
    adjusted_stake,
    as_submitted,
    decay_to_come,
    entry_errors,
    factor,
    game_entry_errors,
    months_between,
    opponents_worth,
    stake,
)

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors"
DEFAULTS = BridierSettings()
START, FINISH = 1_000_000, 9_000_000
UTC_START = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)

PUBLISHED = [
    ((520, 453), (648, 131), 10, 42, 2, (562, 411), (646, 129)),
    ((500, 500), (500, 500), 10, 10, 10, (510, 490), (490, 490)),
    ((500, 100), (500, 100), 10, 10, 10, (510, 100), (490, 100)),
    ((600, 130), (650, 100), 10, 13, 9, (613, 117), (641, 100)),
    ((500, 100), (500, 460), 10, 1, 46, (501, 100), (454, 414)),
    ((500, 100), (500, 461), 10, 0, 46, (500, 100), (454, 415)),
    ((104, 100), (103, 100), 9, 9, 9, (113, 100), (100, 100)),
]
"""Numbers that the rules page itself says or that follow from it by hand."""
PUBLISHED_CLOSINGS = [("2024-11-30", 100, {"2025-02-01": 100, "2025-03-01": 200, "2025-06-01": 500})]


def vectors() -> list[Any]:
    def pair(entry: dict[str, int]) -> Rating:
        return entry["rank"], entry["index"]

    file = VECTORS / "bridier.json"
    found = [
        (
            pair(v["winner"]),
            pair(v["loser"]),
            v["stake"],
            v["winner_adjusted"],
            v["loser_adjusted"],
            pair(v["winner_after"]),
            pair(v["loser_after"]),
        )
        for v in (json.loads(file.read_text()) if file.exists() else [])
    ]
    return PUBLISHED + found


def closing_vectors() -> list[Any]:
    file = VECTORS / "bridier_closings.json"
    found = json.loads(file.read_text()) if file.exists() else []
    return PUBLISHED_CLOSINGS + [(v["last_result"], v["index"], v["index_at_closing"]) for v in found]


def normalise(result: dict[str, Any], rules: BridierSettings = DEFAULTS) -> Normalised:
    return SYSTEM.normalise(BridierResult.model_validate(result), rules, START, FINISH)


def play(
    content: Content,
    start: dict[str, Rating],
    now: dict[str, PlayerState] | None = None,
    rules: BridierSettings = DEFAULTS,
) -> dict[str, Outcome]:
    """Rate, and check on the way that the explanation adds up to the change."""
    now = now or {player: PlayerState(*rating) for player, rating in start.items()}
    game = Game("club", "game", 1, START, FINISH, content=content)
    (moment,) = SYSTEM.moments(game, rules)
    before = {player: PlayerState(s.rating, s.index, counters=dict(s.counters)) for player, s in now.items()}
    outcomes = {outcome.player: outcome for outcome in SYSTEM.rate(game, moment, start, now, rules)}
    explained = SYSTEM.explain(game, moment, start, now, rules)
    json.dumps(explained)
    for player, outcome in outcomes.items():
        lines = explained[player]["lines"]
        change = SYSTEM.present_change((before[player].rating, before[player].index), (outcome.rating, outcome.index))
        assert sum(line["applied_rank"] for line in lines) == change["rank"] == explained[player]["rank_change"]
        assert sum(line["applied_index"] for line in lines) == change["index"] == explained[player]["index_change"]
        assert now[player].counters == before[player].counters
    return outcomes


def rating(outcome: Outcome) -> Rating:
    return outcome.rating, outcome.index


def at(second: float) -> datetime:
    return UTC_START + timedelta(seconds=second)


def refused(result: dict[str, Any], rules: BridierSettings = DEFAULTS) -> set[tuple[str, str]]:
    with pytest.raises(RuleError) as caught:
        normalise(result, rules)
    return {(error.field, error.code) for error in caught.value.errors}


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", vectors())
def test_vectors(vector: Any) -> None:
    winner, loser, points, won, lost, winner_after, loser_after = vector
    start = {"a": winner, "b": loser}
    content = normalise({"players": ["a", "b"], "winner": "a"}).content
    for basis in ("start", "hybrid", "end"):
        outcomes = play(content, start, rules=BridierSettings(basis=basis))
        assert rating(outcomes["a"]) == winner_after
        assert rating(outcomes["b"]) == loser_after
        assert (outcomes["a"].score, outcomes["b"].score) == (1, -1)
        assert outcomes["a"].is_result
        assert outcomes["b"].is_result
    now = {player: PlayerState(*value) for player, value in start.items()}
    game = Game("club", "game", 1, START, FINISH, content=content)
    explained = SYSTEM.explain(game, Moment(FINISH, 5, 0), start, now, DEFAULTS)
    (gain,), (loss,) = explained["a"]["lines"], explained["b"]["lines"]
    assert (gain["stake"], gain["adjusted"], loss["stake"], loss["adjusted"]) == (points, won, points, lost)
    assert loss["floor"] == (loser[0] - lost < 100)


@pytest.mark.parametrize(("last_result", "index", "expected"), closing_vectors())
def test_closings(last_result: str, index: int, expected: dict[str, int]) -> None:
    first = date.fromisoformat(last_result).toordinal()
    state = PlayerState(640, index, last_result=first)
    late = PlayerState(640, index, last_result=first)
    coming = dict(decay_to_come(state, first))
    for day, after in expected.items():
        closing = date.fromisoformat(day).toordinal()
        before = (state.rating, state.index)
        for _ in range(2):
            changed = SYSTEM.close(state, closing)
            if changed is not None:
                state.rating, state.index = changed
                assert coming[closing] == changed[1]
                explained = SYSTEM.explain_closing(before, changed, first, closing)
                assert explained["index_floor"] == changed[1]
                assert explained["months"] >= 3
        assert (state.rating, state.index) == (640, after)
        assert (SYSTEM.close(late, closing) or (640, index)) == (640, after), "a closing needs no earlier one"
    assert len(coming) <= 4


def test_closing_without_a_result() -> None:
    assert SYSTEM.close(PlayerState(500, 500), date(2030, 1, 1).toordinal()) is None
    assert SYSTEM.close(PlayerState(500, 300), date(2030, 1, 1).toordinal()) is None
    assert decay_to_come(PlayerState(500, 300), date(2030, 1, 1).toordinal()) == []
    assert SYSTEM.explain_closing((500, 500), (500, 500), 0, date(2030, 1, 1).toordinal())["months"] == 0


def test_decay_to_come_says_the_next_rise() -> None:
    played = date(2025, 11, 15).toordinal()
    assert decay_to_come(PlayerState(500, 250, last_result=played), date(2025, 12, 20).toordinal()) == [
        (date(2026, 4, 1).toordinal(), 300),
        (date(2026, 5, 1).toordinal(), 400),
        (date(2026, 6, 1).toordinal(), 500),
    ]


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)), st.integers(0, 90))
def test_no_three_months_are_shorter_than_the_short_cut(day: date, days: int) -> None:
    if months_between(day.toordinal(), day.toordinal() + days) >= 3:
        assert days >= 89


@pytest.mark.parametrize(
    ("basis", "expected"),
    [("start", (700, 300)), ("hybrid", (586, 414)), ("end", None)],
    ids=["start", "hybrid", "end"],
)
def test_twenty_parallel_wins(basis: Any, expected: Rating | None) -> None:
    rules = BridierSettings(basis=basis)
    own: Rating = (500, 500)
    content = normalise({"players": ["a", "b"], "winner": "a"}).content
    for _ in range(20):
        now = {"a": PlayerState(*own), "b": PlayerState(500, 500)}
        own = rating(play(content, {"a": (500, 500), "b": (500, 500)}, now, rules)["a"])
    assert expected is None or own == expected


def test_stakes_of_the_table() -> None:
    limits = [0, 10, 20, 30, 40, 60, 80, 100, 140, 200]
    for stakes, limit in zip(range(10, 0, -1), limits, strict=True):
        assert (stake(limit), stake(limit + 1)) == (stakes, stakes - 1)
    assert stake(-900) == 10
    assert stake(10**6) == 0


def test_factor_of_equals_is_one_when_new_or_established() -> None:
    assert factor(100, 100) == factor(500, 500) == 160_000
    assert factor(500, 100) == 800_000
    assert factor(100, 500) == 0


index = st.integers(100, 500)


@given(st.integers(0, 10), index, index)
def test_integers_agree_with_fractions(points: int, i: int, j: int) -> None:
    own, other = Fraction(i, 100), Fraction(j, 100)
    exact = (1 + 19 * own - other - 3 * own * other) / 16
    assert 0 <= exact <= 5
    assert adjusted_stake(points, i, j) == floor(points * exact)


@given(st.integers(0, 10), index, index, st.integers(0, 400))
def test_more_own_index_never_less_stake_more_of_the_other_never_more(points: int, i: int, j: int, more: int) -> None:
    assert adjusted_stake(points, min(i + more, 500), j) >= adjusted_stake(points, i, j)
    assert adjusted_stake(points, i, min(j + more, 500)) <= adjusted_stake(points, i, j)


@given(st.integers(-500, 500), st.integers(0, 100))
def test_a_bigger_gap_is_never_a_bigger_stake(gap: int, more: int) -> None:
    assert 0 <= stake(gap + more) <= stake(gap) <= 10


# -- games of several ------------------------------------------------------------------------------------------------

names = st.sampled_from("abcdefgh")
ranks = st.tuples(st.integers(100, 900), index)


@st.composite
def games(draw: st.DrawFn) -> dict[str, Any]:
    players = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    pairs = list(permutations(players, 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8))
    instants = st.one_of(st.none(), st.integers(0, 3).map(at))
    defeats, ruins = [], []
    for winner, loser in chosen:
        if draw(st.integers(0, 3)):
            defeats.append({"winner": winner, "loser": loser, "at": draw(instants)})
        else:
            ruins.append({"player": loser, "by": winner, "at": draw(instants)})
    for player in draw(st.lists(st.sampled_from(players), unique=True, max_size=2)):
        ruins.append({"player": player, "by": None, "at": draw(instants)})
    size = draw(st.integers(0, len(players)))
    return {
        "players": players,
        "defeats": defeats,
        "ruins": ruins,
        "alliances": [players[:size]] if size >= 2 else [],
    }


rule_sets = st.builds(
    BridierSettings,
    basis=st.sampled_from(["start", "hybrid", "end"]),
    alliance_average=st.booleans(),
    ruin_penalty=st.integers(0, 20),
)


@settings(max_examples=150, deadline=None)
@given(games(), rule_sets, st.data())
def test_any_game(game: dict[str, Any], rules: BridierSettings, data: st.DataObject) -> None:
    content = normalise(game, rules).content
    players = content["players"]
    start = {player: data.draw(ranks) for player in players}
    now = {
        player: PlayerState(*data.draw(ranks), counters={"ruins": data.draw(st.integers(0, 3))}) for player in players
    }
    outcomes = play(content, start, now, rules)
    touched = {name for d in game["defeats"] for name in (d["winner"], d["loser"])}
    touched |= {name for r in game["ruins"] for name in (r["player"], r["by"])} - {None}
    assert list(outcomes) == (players if touched else [])
    for player, outcome in outcomes.items():
        assert outcome.rating >= 100
        assert 100 <= outcome.index <= now[player].index
        assert outcome.is_result == (player in touched)
        ruined = sum(ruin["player"] == player for ruin in game["ruins"])
        assert (outcome.counters or {}).get("ruins", 0) == ruined
        if player not in touched:
            assert rating(outcome) == (now[player].rating, now[player].index)
    # the ledger's names sort otherwise, and still the order of the handles holds
    renamed = {player: f"p{len(players) - seat}" for seat, player in enumerate(players)}
    moved = SYSTEM.translate(content, renamed.__getitem__)
    there = play(moved, {renamed[p]: v for p, v in start.items()}, {renamed[p]: v for p, v in now.items()}, rules)
    assert {renamed[p]: (rating(o), o.score) for p, o in outcomes.items()} == {
        p: (rating(o), o.score) for p, o in there.items()
    }
    back = {new: old for old, new in renamed.items()}
    assert SYSTEM.translate(moved, back.__getitem__) == content
    # what the API shows can be sent again, in any order, and means the same
    shown = as_submitted(content)
    json.dumps(shown)
    assert normalise(shown, rules).content == content
    for key in ("players", "defeats", "ruins", "alliances"):
        shown[key] = data.draw(st.permutations(shown[key]))
    assert normalise(shown, rules).content == content


@settings(max_examples=60, deadline=None)
@given(games(), st.data())
def test_order_does_not_matter_from_one_snapshot(game: dict[str, Any], data: st.DataObject) -> None:
    """Under basis start, away from the floors."""
    game["ruins"] = []
    high = st.tuples(st.integers(700, 900), st.integers(480, 500))
    start = {player: data.draw(high) for player in game["players"]}
    game["defeats"] = game["defeats"][:5]
    first = play(normalise(game).content, start)
    for defeat in game["defeats"]:
        defeat["at"] = data.draw(st.integers(0, 5).map(at))
    assert play(normalise(game).content, start) == first


def test_several_defeats_from_one_snapshot() -> None:
    content = normalise(
        {
            "players": ["c", "b", "a"],
            "defeats": [{"winner": "a", "loser": "c"}, {"winner": "a", "loser": "b", "at": at(2)}],
        }
    ).content
    assert content == {
        "players": ["a", "b", "c"],
        "defeats": [{"winner": "a", "loser": "b", "at": 3_000_000}, {"winner": "a", "loser": "c", "at": FINISH}],
        "alliances": [],
        "ruins": [],
    }
    outcomes = play(content, dict.fromkeys("abc", (500, 500)))
    assert [rating(outcomes[p]) for p in "abc"] == [(520, 480), (490, 490), (490, 490)]
    assert [outcomes[p].score for p in "abc"] == [1, -1, -1]
    hybrid = play(content, dict.fromkeys("abc", (500, 500)), rules=BridierSettings(basis="hybrid"))
    # 10 of 10; then rank 510 over 500 gives 9, index 490 against 500: floor(9 * 156000 / 160000) = 8
    assert rating(hybrid["a"]) == (518, 482)


def test_bases_differ_only_in_whose_ratings_count() -> None:
    content = normalise({"players": ["a", "b"], "winner": "a"}).content
    start = {"a": (500, 500), "b": (500, 500)}
    now = {"a": PlayerState(700, 100), "b": PlayerState(650, 300)}
    expected = {
        "start": ((710, 100), (640, 290)),
        # a: gap 200, stake 1, index 100 against 500: 0; b: gap -150, stake 10, index 300 against 500: a half
        "hybrid": ((700, 100), (645, 295)),
        # gap 50, stake 5; a: 100 against 300: 2; b: 300 against 100: 15
        "end": ((702, 100), (635, 285)),
    }
    for basis, (a, b) in expected.items():
        outcomes = play(content, start, now, BridierSettings.model_validate({"basis": basis}))
        assert (rating(outcomes["a"]), rating(outcomes["b"])) == (a, b)


def test_alliance_average() -> None:
    result = {"players": list("abcd"), "alliances": [["b", "a"]], "defeats": [{"winner": "a", "loser": "c"}]}
    content = normalise(result).content
    start = {"a": (600, 100), "b": (401, 100), "c": (480, 100), "d": (100, 100)}
    assert play(content, start)["a"].rating == 602
    with_average = BridierSettings(alliance_average=True)
    assert play(content, start, rules=with_average)["a"].rating == 608, "mean 500 (1001 halved), gap 20"
    moved = {player: PlayerState(300 if player == "b" else rank, 100) for player, (rank, _) in start.items()}
    for basis in ("hybrid", "end"):
        rules = BridierSettings.model_validate({"basis": basis, "alliance_average": True})
        assert play(content, start, moved, rules)["a"].rating == 608, "gap 20, from start ranks"


def test_ruins() -> None:
    rules = BridierSettings(ruin_penalty=5)
    ruined = {"players": list("abc"), "defeats": [], "ruins": [{"player": "b", "by": "a"}]}
    content = normalise(ruined).content
    start = dict.fromkeys("abc", (500, 100))
    for earlier, penalty in ((0, 5), (1, 10), (6, 35)):
        now = {p: PlayerState(500, 100, counters={"ruins": earlier}) for p in "abc"}
        outcomes = play(content, start, now, rules)
        assert rating(outcomes["a"]) == (510, 100)
        assert rating(outcomes["b"]) == (490 - penalty, 100)
        assert outcomes["b"].counters == {"ruins": 1}
        assert outcomes["c"] == Outcome("c", 500, 100, 0, is_result=False)
    nobody = normalise({**ruined, "ruins": [{"player": "b"}]}).content
    outcomes = play(nobody, start, rules=rules)
    assert outcomes["b"] == Outcome("b", 495, 100, -1, True, {"ruins": 1})
    assert rating(outcomes["a"]) == (500, 100)
    off = play(content, start)
    assert (off["b"].rating, off["b"].counters) == (490, {"ruins": 1})
    low = play(content, dict.fromkeys("abc", (112, 500)), rules=rules)
    assert rating(low["b"]) == (100, 490), "the penalty leaves the index alone"


def test_ruins_are_merged_with_defeats_by_time_then_names() -> None:
    rules = BridierSettings(ruin_penalty=50, basis="end")
    start = {"a": (200, 100), "b": (120, 100), "c": (150, 100)}

    def lines(defeat: tuple[str, str], by: str | None) -> list[str]:
        result = {
            "players": list("abc"),
            "defeats": [{"winner": defeat[0], "loser": defeat[1], "at": at(1)}],
            "ruins": [{"player": "b", "by": by, "at": at(1)}],
        }
        game = Game("club", "game", 1, START, FINISH, content=normalise(result).content)
        moved = SYSTEM.translate(game.content, {"a": "z", "b": "y", "c": "x"}.__getitem__)
        now = {p: PlayerState(*v) for p, v in {"z": start["a"], "y": start["b"], "x": start["c"]}.items()}
        there = Game("club", "game", 1, START, FINISH, content=moved)
        snapshot = {p: (s.rating, s.index) for p, s in now.items()}
        explained = SYSTEM.explain(there, Moment(FINISH, 5, 0), snapshot, now, rules)
        return [line["result"] for line in explained["y"]["lines"]]

    assert lines(("a", "b"), "c") == ["loss", "loss", "ruin"], "a beats b before c ruins b"
    assert lines(("c", "b"), "a") == ["loss", "ruin", "loss"]
    assert lines(("b", "a"), "a") == ["loss", "ruin", "win"]
    assert lines(("a", "b"), None) == ["ruin", "loss"], "nobody's name sorts before every name"


def test_draws_and_games_without_a_defeat() -> None:
    draw = normalise({"players": ["b", "a"], "draw": True}).content
    assert draw == {"players": ["a", "b"], "draw": True}
    outcomes = play(draw, {"a": (520, 453), "b": (648, 131)})
    assert outcomes["a"] == Outcome("a", 520, 453, 0, is_result=False)
    assert outcomes["b"] == Outcome("b", 648, 131, 0, is_result=False)
    for players in (["a", "b"], ["a", "b", "c"]):
        peace = normalise({"players": players, "defeats": []}).content
        assert play(peace, dict.fromkeys(players, (500, 500))) == {}
    both = {"players": ["a", "b"], "defeats": [{"winner": "a", "loser": "b"}, {"winner": "b", "loser": "a"}]}
    assert [o.score for o in play(normalise(both).content, dict.fromkeys("ab", (500, 500))).values()] == [0, 0]


def test_a_stake_of_nothing_is_a_result() -> None:
    outcomes = play(normalise({"players": ["a", "b"], "winner": "a"}).content, {"a": (900, 100), "b": (100, 100)})
    assert rating(outcomes["a"]) == (900, 100)
    assert outcomes["a"].is_result


def test_merged_players_are_held() -> None:
    content = SYSTEM.translate(normalise({"players": ["a", "b"], "winner": "a"}).content, lambda _: "same")
    with pytest.raises(CannotRate):
        play(content, {"same": (500, 500)})


def test_moments() -> None:
    content = {"players": ["a", "b"], "winner": "a"}
    assert SYSTEM.moments(Game("c", "g", 1, START, FINISH, content=content), DEFAULTS) == (Moment(FINISH, 5, 0),)
    for game in (
        Game("c", "g", 1, START, content={"players": ["a", "b"]}),
        Game("c", "g", 1, START, FINISH, void=True, content=content),
        Game("c", "g", 1, START, FINISH, rated=False, content=content),
    ):
        assert SYSTEM.moments(game, DEFAULTS) == ()


# -- refusals ----------------------------------------------------------------------------------------------------------

ABC = ["a", "b", "c"]
BEATEN = {"winner": "a", "loser": "b"}


@pytest.mark.parametrize(
    ("result", "errors"),
    [
        ({"players": ["a", "b"]}, {("", "no-result")}),
        ({"players": ["a", "b"], "draw": False}, {("", "no-result")}),
        ({"players": ["a", "a"], "winner": "a"}, {("players[1]", "player-twice")}),
        ({"players": ["a", "b"], "winner": "x"}, {("winner", "not-in-the-game")}),
        ({"players": ["a", "b"], "winner": "a", "draw": True}, {("draw", "two-results")}),
        ({"players": ["a", "b"], "winner": "a", "defeats": [BEATEN]}, {("winner", "two-results")}),
        ({"players": ["a", "b"], "draw": True, "ruins": [{"player": "a"}]}, {("draw", "two-results")}),
        (
            {"players": ["a", "b"], "winner": "a", "alliances": [["a", "a"]]},
            {("alliances", "alliances-in-a-duel"), ("alliances[0][1]", "allied-twice")},
        ),
        ({"players": ["a", "b"], "draw": True, "alliances": [["b", "a"]]}, {("alliances", "alliances-in-a-duel")}),
        (
            {"players": ["a", "b"], "winner": "a", "alliances": [["a", "b"]], "defeats": [BEATEN]},
            {("alliances", "alliances-in-a-duel"), ("winner", "two-results")},
        ),
        (
            {"players": ABC, "winner": "a", "alliances": [["a", "x"]]},
            {("winner", "not-a-duel"), ("alliances[0][1]", "not-in-the-game")},
        ),
        ({"players": ABC, "winner": "a"}, {("winner", "not-a-duel")}),
        ({"players": ABC, "draw": True}, {("draw", "not-a-duel")}),
        (
            {"players": ABC, "defeats": [{"winner": "x", "loser": "y"}]},
            {("defeats[0].winner", "not-in-the-game"), ("defeats[0].loser", "not-in-the-game")},
        ),
        ({"players": ABC, "defeats": [{"winner": "a", "loser": "a"}]}, {("defeats[0].loser", "own-opponent")}),
        ({"players": ABC, "defeats": [BEATEN, BEATEN]}, {("defeats[1].loser", "beaten-twice")}),
        (
            {"players": ABC, "defeats": [BEATEN], "ruins": [{"player": "b", "by": "a"}]},
            {("ruins[0].player", "beaten-twice")},
        ),
        ({"players": ABC, "ruins": [{"player": "b"}, {"player": "b"}]}, {("ruins[1].player", "ruined-twice")}),
        ({"players": ABC, "ruins": [{"player": "x"}]}, {("ruins[0].player", "not-in-the-game")}),
        ({"players": ABC, "ruins": [{"player": "a", "by": "x"}]}, {("ruins[0].by", "not-in-the-game")}),
        ({"players": ABC, "ruins": [{"player": "a", "by": "a"}]}, {("ruins[0].player", "own-opponent")}),
        ({"players": ABC, "defeats": [{**BEATEN, "at": at(-0.5)}]}, {("defeats[0].at", "outside-the-game")}),
        ({"players": ABC, "ruins": [{"player": "a", "at": at(8.000001)}]}, {("ruins[0].at", "outside-the-game")}),
        ({"players": ABC, "alliances": [["a"]]}, {("alliances[0]", "alliance-too-small")}),
        ({"players": ABC, "alliances": [["a", "x"]]}, {("alliances[0][1]", "not-in-the-game")}),
        ({"players": ABC, "alliances": [["a", "a"]]}, {("alliances[0][1]", "allied-twice")}),
        (
            {"players": ABC, "alliances": [["a", "b"], ["b", "c"]], "defeats": [BEATEN, BEATEN]},
            {("alliances[1][0]", "allied-twice"), ("defeats[1].loser", "beaten-twice")},
        ),
    ],
)
def test_refusals_name_every_field(result: dict[str, Any], errors: set[tuple[str, str]]) -> None:
    assert refused(result) == errors


def test_fair_alliances() -> None:
    fair = BridierSettings(fair_alliances=True)
    unfair = {"players": list("abcde"), "alliances": [["a", "b", "c"], ["d", "e"]]}
    assert refused(unfair, fair) == {("alliances", "unequal-alliances")}
    normalise(unfair)
    normalise({"players": list("abcde"), "alliances": [["a", "b"], ["d", "e"]]}, fair)
    with pytest.raises(RuleError):
        SYSTEM.normalise_line_up(BridierLineUp.model_validate(unfair), fair)


@pytest.mark.parametrize(
    "result",
    [
        {"players": ["a"]},
        {"players": [f"p{n}" for n in range(21)], "defeats": []},
        {"players": ["a", ""], "winner": "a"},
        {"players": ["a", "b" * 81], "winner": "a"},
        {"players": ["a", 1], "winner": "a"},
        {"players": "ab", "winner": "a"},
        {"players": ["a", "b"], "winner": True},
        {"players": ["a", "b"], "draw": 1},
        {"players": ["a", "b"], "draw": "true"},
        {"players": ["a", "b"], "winner": "a", "points": 3},
        {"players": ABC, "defeats": [{"winner": "a"}]},
        {"players": ABC, "defeats": [{**BEATEN, "at": "2026-11-03T19:00:00"}]},
        {"players": ABC, "defeats": [{**BEATEN, "at": datetime(2026, 11, 3)}]},  # noqa: DTZ001
        {"players": ABC, "defeats": [{**BEATEN, "at": "2026-11-03"}]},
        {"players": ABC, "defeats": [{**BEATEN, "at": 1_700_000_000}]},
        {"players": ABC, "defeats": [{**BEATEN, "at": "1700000000"}]},
        {"players": ABC, "defeats": [{**BEATEN, "how": "nuke"}]},
        {"players": ABC, "defeats": [], "entry": {"minimum_rank": "500"}},
        {"players": ABC, "defeats": [], "entry": {"minimum_rank": 500, "maximum_rank": 400}},
    ],
)
def test_wrong_types_are_refused(result: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BridierResult.model_validate(result)


@pytest.mark.parametrize(
    "wrong",
    [
        {"basis": "middle"},
        {"ruin_penalty": -1},
        {"ruin_penalty": True},
        {"ruin_penalty": 5.0},
        {"alliance_average": 1},
        {"new_above_index": 501},
        {"entry": {"minimum_gain": -1}},
        {"entry": {"other": 1}},
        {"k": 32},
        {"minimum_games": "3"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BridierSettings.model_validate(wrong)


def test_one_instant_is_one_instant_in_every_zone() -> None:
    def content(when: object) -> Content:
        return normalise({"players": ABC, "defeats": [{**BEATEN, "at": when}]}).content

    zone = timezone(timedelta(hours=1))
    expected = content(at(3))
    assert content(at(3).astimezone(zone)) == content("1970-01-01T01:00:04+01:00") == expected
    assert content("1970-01-01T00:00:04Z") == expected
    assert expected["defeats"][0]["at"] == 4_000_000
    assert content(None) == content(at(8)), "without a time: at the finish"


# -- start, lists, quotes, entry ---------------------------------------------------------------------------------------


def test_start() -> None:
    assert SYSTEM.start(None, DEFAULTS) == PlayerState(500, 500)
    carried = BridierStart.model_validate({"rank": 520, "index": 453, "last_result_on": "2026-05-01"})
    last = date(2026, 5, 1).toordinal()
    assert SYSTEM.start(carried, DEFAULTS) == PlayerState(520, 453, last_result=last)
    assert SYSTEM.start(BridierStart(rank=900), DEFAULTS) == PlayerState(900, 500)
    with pytest.raises(RuleError) as caught:
        SYSTEM.start(BridierStart(rank=520, index=499), DEFAULTS)
    assert [error.field for error in caught.value.errors] == ["last_result_on"]
    for wrong in (
        {"rank": 99},
        {"rank": 520.0},
        {"rank": "520"},
        {"rank": True},
        {"index": 99},
        {"index": 501},
        {"last_result_on": "2026-05-01T00:00:00Z"},
        {"last_result_on": 5},
        {"games": 3},
    ):
        with pytest.raises(ValidationError):
            BridierStart.model_validate(wrong)


def test_lists() -> None:
    states = [PlayerState(500, 100), PlayerState(600, 300), PlayerState(600, 200)]
    assert sorted(states, key=SYSTEM.order_key) == [states[2], states[1], states[0]]
    assert SYSTEM.place_key(states[0]) == SYSTEM.order_key(states[0])
    classes = {index: SYSTEM.figures(PlayerState(500, index), DEFAULTS)["class"] for index in (100, 101, 495, 496)}
    assert classes == {100: "established", 101: "settling", 495: "settling", 496: "new"}
    assert SYSTEM.present(562, 411) == {"rank": 562, "index": 411}
    assert SYSTEM.hash_token(562, 411) == "562,411"
    game = Game("c", "g", 1, START, FINISH, content={"players": ["a", "b"], "winner": "a"})
    assert SYSTEM.tally(game) == {"a": (0, 0, 0), "b": (0, 0, 0)}
    assert SYSTEM.players(game.content) == SYSTEM.mentioned(game.content) == ("a", "b")
    assert rule_system("bridier") is SYSTEM


def test_quote_of_a_duel() -> None:
    line_up = SYSTEM.normalise_line_up(BridierLineUp(players=["b", "a"]), DEFAULTS).content
    assert line_up == {"players": ["a", "b"]}
    states = {"a": PlayerState(520, 453), "b": PlayerState(648, 131)}
    quoted = SYSTEM.quote(line_up, states, DEFAULTS)
    assert [outcome for outcome, _ in quoted] == ["player1", "draw", "player2"]
    found = dict(quoted)
    assert found["player1"] == {"a": (562, 411), "b": (646, 129)}
    assert found["draw"] == {"a": (520, 453), "b": (648, 131)}
    assert list(found["player2"]) == ["a", "b"]


def test_quote_of_several() -> None:
    rules = BridierSettings(alliance_average=True)
    line_up = BridierLineUp(players=["c", "b", "a"], alliances=[["b", "a"]])
    content = SYSTEM.normalise_line_up(line_up, rules).content
    states = {"a": PlayerState(600, 100), "b": PlayerState(400, 100), "c": PlayerState(500, 100)}
    found = dict(SYSTEM.quote(content, states, rules))
    assert len(found) == 6
    assert found["player1>player3"] == {"a": (610, 100), "b": (400, 100), "c": (490, 100)}


def test_whom_a_win_is_worth_something_against() -> None:
    others = [("x", (500, 460)), ("y", (500, 461)), ("z", (299, 100))]
    assert opponents_worth((500, 100), others, 1) == [("x", 1, 1)]
    assert opponents_worth((500, 100), others, 0) == [("x", 1, 1), ("y", 0, 0), ("z", 0, 10)]


def test_entry_limits() -> None:
    ratings = {"a": (500, 100), "b": (700, 461)}
    limits = Entry(minimum_rank=501, maximum_rank=699, minimum_index=101, maximum_index=460, minimum_gain=1)
    errors = entry_errors(ratings, limits)
    assert [(e.field, e.code) for e in errors] == [
        ("players[0]", "minimum-rank"),
        ("players[0]", "minimum-index"),
        ("players[0]", "minimum-gain"),
        ("players[1]", "maximum-rank"),
        ("players[1]", "maximum-index"),
    ]
    assert all(name in error.message for name, error in zip("aaabb", errors, strict=True))
    assert "501" in errors[0].message
    assert "500" in errors[0].message
    loss = entry_errors(ratings, Entry(maximum_loss=45))
    assert [(e.field, e.code) for e in loss] == [("players[1]", "maximum-loss")]
    assert "46" in loss[0].message
    assert entry_errors(ratings, Entry()) == []


def test_entry_limits_among_allies() -> None:
    ratings = {"a": (900, 100), "b": (100, 100), "c": (500, 100)}
    limits = Entry(minimum_gain=1)
    assert [e.field for e in entry_errors(ratings, limits)] == ["players[0]", "players[2]"]
    assert entry_errors(ratings, limits, [["a", "b"]], alliance_average=True) == []


def test_entry_limits_of_pool_and_game() -> None:
    rules = BridierSettings(entry=Entry(minimum_rank=400))
    content = SYSTEM.normalise_line_up(BridierLineUp(players=["b", "a"], entry=Entry(maximum_rank=800)), rules).content
    assert content == {"players": ["a", "b"], "entry": {"maximum_rank": 800}}
    errors = game_entry_errors(content, {"a": (900, 100), "b": (399, 100)}, rules)
    assert {(e.field, e.code) for e in errors} == {("players[0]", "maximum-rank"), ("players[1]", "minimum-rank")}
    both = BridierSettings(entry=Entry(maximum_rank=800))
    assert len(game_entry_errors(content, {"a": (900, 100), "b": (399, 100)}, both)) == 1
    assert normalise({"players": ["a", "b"], "winner": "a", "entry": {}}).content == {
        "players": ["a", "b"],
        "winner": "a",
    }
