"""Spades Elo: vectors, the numbers of the rules page, properties against an independent reading of the rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.ratings import spades
from shared.ratings.base import FINISH, QUIT, CannotRate, Game, Moment, PlayerState, RuleError
from shared.ratings.spades import (
    SYSTEM,
    KByGames,
    SpadesLineUp,
    SpadesQuit,
    SpadesResult,
    SpadesSettings,
    SpadesStart,
    SpadesSubstitute,
    _exact,
    _k,
    _share,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
START = int(datetime(2026, 11, 3, 18, tzinfo=UTC).timestamp()) * 1_000_000
END = START + 40 * MINUTE
TEAMS = [["a", "c"], ["b", "d"]]
RULES = SpadesSettings()
BY_GAMES = {"first": 50, "up_to_games": 50, "then": 30}

# The numbers the rules page publishes, for where the vectors are not at hand.
PUBLISHED: list[dict[str, Any]] = [
    {
        "id": "published-average",
        "opposition": "team_average",
        "k": 25,
        "ratings": {"A": 1512, "B": 1562, "C": 1484, "D": 1417},
        "outcome": "AC",
        "new": {"A": 1536.388, "B": 1537.612, "C": 1508.388, "D": 1392.612},
    },
    {
        "id": "published-pairwise",
        "opposition": "pairwise",
        "k": 25,
        "ratings": {"A": 1512, "B": 1562, "C": 1484, "D": 1417},
        "outcome": "AC",
        "new": {"A": 1535.451, "B": 1532.453, "C": 1509.379, "D": 1397.716},
    },
    {
        "id": "published-quit-side-wins",
        "opposition": "team_average",
        "k": 25,
        "ratings": {"A": 1500, "B": 1500, "C": 1500, "D": 1500},
        "outcome": "BD",
        "quit_order": ["D"],
        "new": {"A": 1500, "B": 1525, "C": 1500, "D": 1475},
    },
    {
        "id": "published-quit-side-loses",
        "opposition": "team_average",
        "k": 25,
        "ratings": {"A": 1500, "B": 1500, "C": 1500, "D": 1500},
        "outcome": "AC",
        "quit_order": ["D"],
        "new": {"A": 1525, "B": 1475, "C": 1525, "D": 1475},
    },
]


def vectors() -> list[tuple[dict[str, Any], float]]:
    """Cases and how far a new rating may be off (points)."""
    cases = [(case, 0.0005) for case in PUBLISHED]
    path = Path(__file__).parents[2].parent / "shared" / "vectors" / "spades.json"
    if path.is_file():
        cases += [(case, 0.000001) for case in json.loads(path.read_text())]
    return cases


def iso(at: int) -> str:
    return (EPOCH + timedelta(microseconds=at)).isoformat()


def parse(**parts: Any) -> SpadesResult:
    return SpadesResult.model_validate_json(json.dumps({"teams": TEAMS, "outcome": "team1"} | parts))


def content_of(rules: SpadesSettings = RULES, **parts: Any) -> dict[str, Any]:
    return SYSTEM.normalise(parse(**parts), rules, START, END).content


def codes(rules: SpadesSettings = RULES, **parts: Any) -> list[tuple[str, str]]:
    with pytest.raises(RuleError) as caught:
        content_of(rules, **parts)
    return [(error.field, error.code) for error in caught.value.errors]


def refused(model: Any, value: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return [".".join(str(part) for part in error["loc"]) for error in caught.value.errors()]


def states_of(ratings: Mapping[str, int], games: Mapping[str, int] | None = None) -> dict[str, PlayerState]:
    return {player: PlayerState(rating, games=(games or {}).get(player, 0)) for player, rating in ratings.items()}


def play(
    content: dict[str, Any],
    states: dict[str, PlayerState],
    rules: SpadesSettings = RULES,
    finished_at: int | None = END,
) -> tuple[dict[str, PlayerState], list[tuple[Moment, Any]]]:
    """A little fold of one game; the explanation of each change is checked on the way."""
    game = Game("club", "game", 1, START, finished_at, content=content)
    start = {player: (state.rating, 0) for player, state in states.items()}
    now = dict(states)
    seen = []
    moments = SYSTEM.moments(game, rules)
    assert list(moments) == sorted(moments)
    for moment in moments:
        explained = SYSTEM.explain(game, moment, start, now, rules)
        outcomes = SYSTEM.rate(game, moment, start, now, rules)
        assert list(explained) == [outcome.player for outcome in outcomes]
        for new in outcomes:
            old = now[new.player]
            change = (new.rating - old.rating) / 1_000_000
            about = explained[new.player]
            assert about["change"] == change
            if "opponents" in about:
                lines = about["opponents"]
                assert sum(round(line["change"] * 1_000_000) for line in lines) == new.rating - old.rating
                assert sum(line["score"] for line in lines) == about["score"]
                assert abs(about["k"] * (about["score"] - about["expected"]) - change) < 0.000_001
            counters = dict(old.counters)
            for key, value in (new.counters or {}).items():
                counters[key] = counters.get(key, 0) + value
            now[new.player] = PlayerState(
                new.rating,
                games=old.games + (new.score is not None),
                won=old.won + (new.score == 1),
                drawn=old.drawn + (new.score == 0),
                lost=old.lost + (new.score == -1),
                counters=counters,
            )
            seen.append((moment, new))
    return now, seen


def reference(
    ratings: Mapping[str, int],
    teams: list[list[str]],
    quit_order: Iterable[str],
    outcome: str | None,
    pairwise: bool,
    k: Mapping[str, str],
) -> dict[str, int]:
    """The rules once more, in decimals and pair by pair; new ratings in millionths."""
    order = list(quit_order)
    new = {}
    with localcontext(prec=50):
        for own, team in enumerate(teams):
            for player in team:
                total = Decimal(0)
                for opponent in teams[1 - own]:
                    if pairwise:
                        gap = Decimal(ratings[opponent] - ratings[player])
                    else:
                        gap = Decimal(sum(ratings[p] for p in teams[1 - own]) - sum(ratings[p] for p in team)) / 2
                    if player in order and (opponent not in order or order.index(player) < order.index(opponent)):
                        score = Decimal(0)
                    elif opponent in order:
                        score = Decimal(1)
                    else:
                        score = {"draw": Decimal("0.5"), f"team{own + 1}": Decimal(1)}.get(str(outcome), Decimal(0))
                    total += score - 1 / (1 + Decimal(10) ** (gap / 400_000_000))
                change = (Decimal(k[player]) * total * 1_000_000).to_integral_value(ROUND_HALF_EVEN)
                new[player] = ratings[player] + int(change)
    return new


# -- the numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "near"), vectors(), ids=lambda value: value["id"] if isinstance(value, dict) else "")
def test_vector(case: dict[str, Any], near: float) -> None:
    k = BY_GAMES if case["k"] == "30/50" else case["k"]
    rules = SpadesSettings.model_validate({"opposition": case["opposition"], "k": k})
    outcome = {"AC": "team1", "BD": "team2"}.get(case["outcome"], case["outcome"])
    quits = [
        {"player": player.lower(), "at": iso(START + number * MINUTE)}
        for number, player in enumerate(case.get("quit_order", ()))
    ]
    ratings = {player.lower(): round(rating * 1_000_000) for player, rating in case["ratings"].items()}
    games = {player.lower(): count for player, count in (case.get("rated_games_before") or {}).items()}
    now, _ = play(content_of(rules, outcome=outcome, quits=quits), states_of(ratings, games), rules)
    expected = case.get("new") or {player: numbers["new"] for player, numbers in case["expected"].items()}
    for player, rating in expected.items():
        state = now[player.lower()]
        assert abs(state.rating / 1_000_000 - rating) <= near
        assert state.games == games.get(player.lower(), 0) + 1


def test_expected_score_of_the_rules_page() -> None:
    gaps = [(opponent - 1613) * 1_000_000 for opponent in (1609, 1477, 1388, 1586, 1720)]
    each = [_exact(1_000_000, [gap], 400_000_000) / 1_000_000 for gap in gaps]
    assert [round(e, 3) for e in each] == [0.506, 0.686, 0.785, 0.539, 0.351]
    assert abs(sum(each) - 2.867) < 0.0006
    assert round(1613 + 32 * (2.5 - sum(each))) == 1601


def test_digits_decide_near_a_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where K E lies within 0.0001 of a half, 60 digits decide and not the processor; elsewhere both agree."""
    asked: list[int] = []

    def exact(k: int, differences: Sequence[int], scale: int) -> int:
        asked.append(differences[0])
        return _exact(k, differences, scale)

    monkeypatch.setattr(spades, "_exact", exact)
    near = []
    for extra in range(20_000):
        ratings = (1_512_000_000 + extra, 1_484_000_000, 1_562_000_000, 1_417_000_000)
        gap = ratings[2] + ratings[3] - ratings[0] - ratings[1]
        product = 25_000_000 * 2 / (1 + 10 ** (gap / 8e8))
        share = _share(25_000_000, 0, ratings, pairwise=False)
        if abs(product % 1 - 0.5) < 0.00009:
            near.append(gap)
        if extra < 500:
            assert share == _exact(25_000_000, (gap, gap), 800_000_000)
    assert near
    assert set(near) <= set(asked)
    assert len(asked) < 20


def test_k_by_games() -> None:
    rules = SpadesSettings(k=KByGames(first=50, up_to_games=50, then=30))
    assert [_k(rules, games) for games in (0, 50, 51)] == [50_000_000, 50_000_000, 30_000_000]
    assert _k(SpadesSettings(k=0.0001), 7) == 100
    assert _k(SpadesSettings(k=16.3), 7) == 16_300_000
    assert SpadesSettings(k=25).model_dump_json().count("25.0") == 0


def test_huge_gaps_do_not_overflow() -> None:
    for opposition in ("team_average", "pairwise"):
        rules = SpadesSettings(opposition=opposition, k=10_000)
        states = states_of({"a": 10**11, "c": 10**11, "b": -(10**11), "d": -(10**11)})
        now, _ = play(content_of(outcome="team2"), states, rules)
        assert now["a"].rating == 10**11 - 20_000_000_000
        assert now["b"].rating == -(10**11) + 20_000_000_000


# -- quits: when, who, what for the record ----------------------------------------------------------------------------


def quit_list(order: Iterable[str], step: int = MINUTE) -> list[dict[str, Any]]:
    return [{"player": player, "at": iso(START + number * step)} for number, player in enumerate(order)]


EVEN = dict.fromkeys("abcd", 1_500_000_000)


def test_a_quit_is_rated_at_once_and_only_the_quitter() -> None:
    line_up = SYSTEM.normalise_line_up(SpadesLineUp(teams=TEAMS), RULES).content
    now, seen = play(SYSTEM.with_quit(line_up, "d", START + 5), states_of(EVEN), finished_at=None)
    assert [(moment, new.player, new.rating, new.score) for moment, new in seen] == [
        (Moment(START + 5, QUIT, 0), "d", 1_475_000_000, -1)
    ]
    assert now["a"].games == 0
    assert SYSTEM.moments(Game("x", "y", 1, START, content=line_up), RULES) == []


def test_an_emptied_side_settles_the_game_at_that_quit() -> None:
    now, seen = play(content_of(outcome=None, quits=quit_list("cad")), states_of(EVEN))
    assert [(moment.number, moment.kind, new.player, new.score) for moment, new in seen] == [
        (0, QUIT, "c", -1),
        (1, QUIT, "a", -1),
        (1, QUIT, "b", 1),
        (1, QUIT, "d", 1),
    ]
    assert {player: state.rating for player, state in now.items()} == {
        "a": 1_475_000_000,
        "b": 1_525_000_000,
        "c": 1_475_000_000,
        "d": 1_525_000_000,
    }
    game = Game("x", "y", 1, START, END, content=content_of(outcome=None, quits=quit_list("cad")))
    assert [(quit_.player, quit_.rated) for quit_ in SYSTEM.quits(game, RULES)] == [
        ("c", True),
        ("a", True),
        ("d", False),
    ]
    assert [moment.kind for moment in SYSTEM.moments(game, RULES)] == [QUIT, QUIT, QUIT, FINISH]


def test_partner_of_a_quitter_by_the_result_and_opponents_win_against_the_quitter() -> None:
    content = content_of(outcome="team2", quits=quit_list("d"), substitutes=[{"for": "d", "robot": True}])
    game = Game("x", "y", 1, START, END, content=content)
    states = states_of(EVEN)
    about = SYSTEM.explain(game, Moment(END, FINISH, 0), {p: (s.rating, 0) for p, s in states.items()}, states, RULES)
    assert list(about) == ["a", "c", "b"]
    assert about["a"]["reason"] == "result"
    assert [(o["player"], o["score"], o["decided_by"], o["quit_first"]) for o in about["a"]["opponents"]] == [
        ("b", 0.0, "result", None),
        ("d", 1.0, "quit", "d"),
    ]
    assert about["a"]["own_team_mean"] == 1500.0
    at_quit = SYSTEM.explain(game, Moment(START, QUIT, 0), {p: (s.rating, 0) for p, s in states.items()}, states, RULES)
    assert at_quit["d"]["substitutes"] == [{"player": None, "robot": True}]
    assert at_quit["d"]["reason"] == "quit"


def test_record_of_the_others_goes_by_the_outcome() -> None:
    now, _ = play(content_of(outcome="team2", quits=quit_list("d")), states_of(EVEN))
    assert [(now[p].won, now[p].drawn, now[p].lost) for p in "abcd"] == [(0, 0, 1), (1, 0, 0), (0, 0, 1), (0, 0, 1)]
    now, _ = play(content_of(outcome="draw"), states_of(EVEN))
    assert all((now[p].won, now[p].drawn, now[p].lost) == (0, 1, 0) for p in "abcd")


def test_expectations_from_the_start_changes_on_the_current_rating() -> None:
    game = Game("x", "y", 1, START, END, content=content_of())
    start = dict.fromkeys("abcd", (1_500_000_000, 0))
    rated = SYSTEM.rate(game, Moment(END, FINISH, 0), start, states_of(dict.fromkeys("abcd", 1_700_000_000)), RULES)
    assert [new.rating for new in rated] == [1_725_000_000, 1_725_000_000, 1_675_000_000, 1_675_000_000]


@pytest.mark.parametrize(("late", "counts"), [(0, False), (1, True)])
def test_back_within_the_grace_inclusive(late: int, counts: bool) -> None:
    quits = [{"player": "d", "at": iso(START), "back_at": iso(START + 3 * MINUTE + late)}]
    normal = SYSTEM.normalise(parse(quits=quits), RULES, START, END)
    assert normal.content["quits"] == [{"player": "d", "at": START, "back_at": START + 3 * MINUTE + late}]
    assert [warning.code for warning in normal.warnings] == (["back-too-late"] if counts else [])
    _, seen = play(normal.content, states_of(EVEN))
    assert any(moment.kind == QUIT for moment, _ in seen) is counts


def test_quits_at_one_instant_in_the_order_of_the_handles_also_after_translation() -> None:
    content = content_of(outcome="draw", quits=[{"player": p, "at": iso(START)} for p in "da"])
    assert [quit_["player"] for quit_ in content["quits"]] == ["a", "d"]
    ids = {"a": "z", "b": "y", "c": "x", "d": "w"}
    now, _ = play(SYSTEM.translate(content, ids.__getitem__), states_of(dict.fromkeys("wxyz", 1_500_000_000)))
    assert now["z"].rating == 1_475_000_000
    assert now["w"].rating == 1_500_000_000


def test_a_quit_without_time_is_at_the_end() -> None:
    assert content_of(quits=[{"player": "d"}])["quits"] == [{"player": "d", "at": END, "back_at": None}]


def test_outcome_is_ignored_once_a_side_is_gone() -> None:
    with_it = SYSTEM.normalise(parse(outcome="team1", quits=quit_list("ac")), RULES, START, END)
    assert with_it.content == content_of(outcome=None, quits=quit_list("ac"))
    assert [warning.code for warning in with_it.warnings] == ["outcome-ignored"]
    late = [
        {"player": "a", "at": iso(START)},
        {"player": "c", "at": iso(START), "back_at": iso(START + 5 * MINUTE)},
    ]
    kept = content_of(outcome="team1", quits=late)
    assert kept["outcome"] == "team1"  # it counts again should the grace of that day be corrected to 5 minutes
    now, _ = play(kept, states_of(EVEN))
    assert now["b"].rating == 1_525_000_000
    now, _ = play(kept, states_of(EVEN), SpadesSettings(grace_minutes=5))
    assert now["b"].rating == 1_500_000_000


def test_outcome_missing_under_corrected_grace_is_held() -> None:
    late = [{"player": p, "at": iso(START), "back_at": iso(START + 5 * MINUTE)} for p in "ac"]
    content = content_of(outcome=None, quits=late)
    with pytest.raises(CannotRate, match="outcome-missing"):
        play(content, states_of(EVEN), SpadesSettings(grace_minutes=5))


@pytest.mark.parametrize("quits", [[], quit_list("d")])
def test_merged_opponents_are_held(quits: list[dict[str, Any]]) -> None:
    content = SYSTEM.translate(content_of(quits=quits), lambda player: {"d": "a"}.get(player, player))
    game = Game("x", "y", 1, START, END, content=content)
    states = states_of(EVEN)
    for moment in SYSTEM.moments(game, RULES):
        with pytest.raises(CannotRate, match="player-twice"):
            SYSTEM.rate(game, moment, {p: (s.rating, 0) for p, s in states.items()}, states, RULES)


# -- nils and skill ---------------------------------------------------------------------------------------------------


def test_skill() -> None:
    content = content_of(
        outcome="team1",
        quits=quit_list("d"),
        substitutes=[{"for": "d", "player": "x"}],
        nils=[
            {"bidder": "a", "set": True, "set_by": "b"},
            {"bidder": "a", "set": True, "set_by": None},
            {"bidder": "c", "set": False},
            {"bidder": "c", "set": True, "set_by": "x"},
            {"bidder": "x", "set": True, "set_by": "a"},
            {"bidder": "b", "set": True, "set_by": "a"},
        ],
    )
    now, seen = play(content, states_of(EVEN))
    assert now["a"].counters == {"nil_chances": 1, "nils_set": 1}
    assert now["b"].counters == {"nil_chances": 4, "nils_set": 2}
    assert now["c"].counters == {"nil_chances": 1}
    assert now["d"].counters == {"nil_chances": 4, "nils_set": 1}
    assert now["d"].games == 1
    last = [new for moment, new in seen if new.player == "d"][-1]
    assert (last.score, last.is_result, last.rating) == (None, False, 1_475_000_000)
    assert SYSTEM.figures(now["b"], RULES) == {"skill": 0.5}
    assert SYSTEM.figures(now["c"], RULES) == {"skill": 0.0}
    assert SYSTEM.figures(PlayerState(0), RULES) == {"skill": None}


def test_nils_count_in_a_settled_game_too() -> None:
    content = content_of(outcome=None, quits=quit_list("bd"), nils=[{"bidder": "b", "set": True}])
    now, seen = play(content, states_of(EVEN))
    assert now["a"].counters == now["c"].counters == {"nil_chances": 1, "nils_set": 1}
    assert all(state.games == 1 for state in now.values())
    assert [new.player for moment, new in seen if moment.kind == FINISH] == ["a", "c"]


# -- canonical form ---------------------------------------------------------------------------------------------------


def test_equal_results_have_one_form() -> None:
    one = content_of(
        quits=[*quit_list("d"), {"player": "b", "at": iso(END)}],
        outcome=None,
        substitutes=[{"for": "d", "robot": True}, {"for": "b", "player": "x"}],
        nils=[{"bidder": "d", "set": False, "set_by": None}, {"bidder": "a", "set": True, "set_by": "x"}],
    )
    other = content_of(
        teams=[["c", "a"], ["d", "b"]],
        quits=[{"player": "b", "back_at": None}, {"player": "d", "at": "2026-11-03T19:00:00+01:00"}],
        outcome=None,
        substitutes=[{"for": "b", "player": "x", "robot": False}, {"for": "d", "robot": True}],
        nils=[{"bidder": "a", "set": True, "set_by": "x"}, {"bidder": "d", "set": False}],
    )
    assert json.dumps(one) == json.dumps(other)
    assert json.dumps(content_of(quits=[], substitutes=[], nils=[])) == json.dumps(content_of())
    assert list(content_of()) == ["teams", "outcome"]
    assert content_of(teams=[["d", "b"], ["a", "c"]])["teams"] == [["b", "d"], ["a", "c"]]


def as_sent(content: dict[str, Any]) -> dict[str, Any]:
    sent = json.loads(json.dumps(content))
    for quit_ in sent.get("quits", ()):
        for key in ("at", "back_at"):
            quit_[key] = None if quit_[key] is None else iso(quit_[key])
    return dict(sent)


def test_players_and_mentioned() -> None:
    content = content_of(
        quits=quit_list("d"),
        substitutes=[{"for": "d", "player": "x"}, {"for": "d", "robot": True}, {"for": "d", "player": "w"}],
    )
    assert SYSTEM.players(content) == ("a", "c", "b", "d")
    assert SYSTEM.mentioned(content) == ("a", "c", "b", "d", "w", "x")
    assert SYSTEM.tally(Game("x", "y", 1, START, END, content=content)) == dict.fromkeys("acbd", (0, 0, 0))


# -- refusals ---------------------------------------------------------------------------------------------------------

LONG = "p" * 81


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"teams": [["a", "c"]]}, "teams"),
        ({"teams": [["a", "c"], ["b", "d"], ["e", "f"]]}, "teams"),
        ({"teams": [["a", "c"], ["b"]]}, "teams.1"),
        ({"teams": [["a", "c", "e"], ["b", "d"]]}, "teams.0"),
        ({"teams": [["a", 1], ["b", "d"]]}, "teams.0.1"),
        ({"teams": [["a", ""], ["b", "d"]]}, "teams.0.1"),
        ({"teams": [["a", LONG], ["b", "d"]]}, "teams.0.1"),
        ({"teams": "abcd"}, "teams"),
        ({"teams": TEAMS, "outcome": "team3"}, "outcome"),
        ({"teams": TEAMS, "outcome": 1}, "outcome"),
        ({"teams": TEAMS, "winner": "team1"}, "winner"),
        ({"outcome": "team1"}, "teams"),
        ({"teams": TEAMS, "quits": [{"player": "a", "at": 1_700_000_000}]}, "quits.0.at"),
        ({"teams": TEAMS, "quits": [{"player": "a", "at": "1700000000"}]}, "quits.0.at"),
        ({"teams": TEAMS, "quits": [{"player": "a", "at": "2026-11-03T19:00:00"}]}, "quits.0.at"),
        ({"teams": TEAMS, "quits": [{"player": "a", "at": "2026-11-03"}]}, "quits.0.at"),
        ({"teams": TEAMS, "quits": [{"player": "a", "why": "?"}]}, "quits.0.why"),
        ({"teams": TEAMS, "quits": [{"player": "a"}] * 33}, "quits"),
        ({"teams": TEAMS, "substitutes": [{"player": "x"}]}, "substitutes.0.for"),
        ({"teams": TEAMS, "substitutes": [{"for": "a", "robot": "yes"}]}, "substitutes.0.robot"),
        ({"teams": TEAMS, "substitutes": [{"for": "a", "robot": True}] * 33}, "substitutes"),
        ({"teams": TEAMS, "nils": [{"bidder": "a", "set": 1}]}, "nils.0.set"),
        ({"teams": TEAMS, "nils": [{"bidder": "a"}]}, "nils.0.set"),
        ({"teams": TEAMS, "nils": [{"bidder": "a", "set": True}] * 201}, "nils"),
    ],
)
def test_model_refuses(value: dict[str, Any], path: str) -> None:
    assert path in refused(SpadesResult, value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"rating": True}, "rating"),
        ({"rating": "1500"}, "rating"),
        ({"rating": float("nan")}, "rating"),
        ({"rating": float("inf")}, "rating"),
        ({"rating": 100_001}, "rating"),
        ({"rating": -100_001}, "rating"),
        ({}, "rating"),
        ({"rating": 1500, "games": -1}, "games"),
        ({"rating": 1500, "games": True}, "games"),
        ({"rating": 1500, "games": 1.0}, "games"),
        ({"rating": 1500, "index": 1}, "index"),
    ],
)
def test_start_refuses(value: dict[str, Any], path: str) -> None:
    assert path in refused(SpadesStart, value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"opposition": "mean"}, "opposition"),
        ({"k": 0}, "k.number"),
        ({"k": -1}, "k.number"),
        ({"k": 10_001}, "k.number"),
        ({"k": 0.00001}, "k.number"),
        ({"k": "25"}, "k.number"),
        ({"k": True}, "k.number"),
        ({"k": None}, "k.number"),
        ({"k": float("nan")}, "k.number"),
        ({"k": {"first": 50, "then": 30}}, "k.by_games.up_to_games"),
        ({"k": {"first": 0, "up_to_games": 50, "then": 30}}, "k.by_games.first"),
        ({"k": {"first": 50, "up_to_games": -1, "then": 30}}, "k.by_games.up_to_games"),
        ({"quit_ban_minutes": -1}, "quit_ban_minutes"),
        ({"opt_out_ban_days": -1}, "opt_out_ban_days"),
        ({"grace_minutes": -1}, "grace_minutes"),
        ({"grace_minutes": 1441}, "grace_minutes"),
        ({"grace_minutes": 3.0}, "grace_minutes"),
        ({"hide_after_days": 0}, "hide_after_days"),
        ({"minimum_games": -1}, "minimum_games"),
        ({"minimum_games": True}, "minimum_games"),
        ({"eligibility": {"registered": 1}}, "eligibility.registered"),
        ({"eligibility": {"minimum_regular_games": -1}}, "eligibility.minimum_regular_games"),
        ({"eligibility": {"age": 18}}, "eligibility.age"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_settings_refuse(value: dict[str, Any], path: str) -> None:
    assert path in refused(SpadesSettings, value)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"teams": [["a", "c"], ["b", "a"]]}, [("teams[1][1]", "player-twice")]),
        ({"teams": [["a", "a"], ["b", "d"]]}, [("teams[0][1]", "player-twice")]),
        ({"outcome": None}, [("outcome", "outcome-missing")]),
        ({"outcome": None, "quits": quit_list("ab")}, [("outcome", "outcome-missing")]),
        ({"quits": [{"player": "x"}]}, [("quits[0].player", "quitter-not-seated")]),
        ({"quits": [{"player": "a", "at": iso(START - 1)}]}, [("quits[0].at", "quit-outside-game")]),
        ({"quits": [{"player": "a", "at": iso(END + 1)}]}, [("quits[0].at", "quit-outside-game")]),
        (
            {"quits": [{"player": "a", "at": iso(START + 1), "back_at": iso(START)}]},
            [("quits[0].back_at", "back-before-quit")],
        ),
        (
            {"quits": [{"player": "a", "at": iso(END), "back_at": iso(END + 1)}]},
            [("quits[0].back_at", "back-outside-game")],
        ),
        ({"quits": [{"player": "a", "back_at": iso(END)}]}, [("quits[0].at", "quit-without-time")]),
        ({"quits": quit_list("aa")}, [("quits[1].player", "quit-twice")]),
        (
            {
                "quits": [
                    {"player": "a", "at": iso(START + MINUTE)},
                    {"player": "a", "at": iso(START), "back_at": iso(START + 2 * MINUTE)},
                ]
            },
            [("quits[0].player", "quit-twice")],
        ),
        (
            {
                "quits": [
                    {"player": "a", "at": iso(START), "back_at": iso(START + 4 * MINUTE)},
                    {"player": "a", "at": iso(START + 5 * MINUTE)},
                ]
            },
            [("quits[1].player", "quit-twice")],
        ),
        ({"substitutes": [{"for": "x", "robot": True}]}, [("substitutes[0].for", "seat-unknown")]),
        ({"substitutes": [{"for": "a", "robot": True}]}, [("substitutes[0].for", "substitute-without-quit")]),
        (
            {"quits": quit_list("a"), "substitutes": [{"for": "a"}]},
            [("substitutes[0]", "substitute-player-or-robot")],
        ),
        (
            {"quits": quit_list("a"), "substitutes": [{"for": "a", "player": "x", "robot": True}]},
            [("substitutes[0]", "substitute-player-or-robot")],
        ),
        (
            {"quits": quit_list("a"), "substitutes": [{"for": "a", "player": "b"}]},
            [("substitutes[0].player", "substitute-seated")],
        ),
        (
            {"quits": quit_list("a"), "substitutes": [{"for": "a", "player": "x"}] * 2},
            [("substitutes[1]", "substitute-twice")],
        ),
        ({"nils": [{"bidder": "x", "set": False}]}, [("nils[0].bidder", "bidder-not-seated")]),
        ({"nils": [{"bidder": "a", "set": False, "set_by": "b"}]}, [("nils[0].set_by", "set-by-without-set")]),
        ({"nils": [{"bidder": "a", "set": True, "set_by": "x"}]}, [("nils[0].set_by", "setter-not-seated")]),
        ({"nils": [{"bidder": "a", "set": True, "set_by": "c"}]}, [("nils[0].set_by", "setter-not-opponent")]),
        ({"nils": [{"bidder": "a", "set": True, "set_by": "a"}]}, [("nils[0].set_by", "setter-not-opponent")]),
        (
            {
                "quits": quit_list("c"),
                "substitutes": [{"for": "c", "player": "x"}],
                "nils": [{"bidder": "a", "set": True, "set_by": "x"}],
            },
            [("nils[0].set_by", "setter-not-opponent")],
        ),
        (
            {"outcome": None, "quits": [{"player": "x"}], "nils": [{"bidder": "y", "set": False}]},
            [
                ("quits[0].player", "quitter-not-seated"),
                ("nils[0].bidder", "bidder-not-seated"),
                ("outcome", "outcome-missing"),
            ],
        ),
    ],
)
def test_result_refused(parts: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert codes(**parts) == expected


def test_quit_again_after_coming_back_in_time() -> None:
    quits = [
        {"player": "a", "at": iso(START), "back_at": iso(START + MINUTE)},
        {"player": "a", "at": iso(START + MINUTE)},
    ]
    _, seen = play(content_of(quits=quits), states_of(EVEN))
    assert (seen[0][0], seen[0][1].player) == (Moment(START + MINUTE, QUIT, 0), "a")


def test_line_up_refused() -> None:
    with pytest.raises(RuleError, match="sits at this table twice"):
        SYSTEM.normalise_line_up(SpadesLineUp(teams=[["a", "b"], ["b", "c"]]), RULES)
    assert refused(SpadesLineUp, {"teams": TEAMS, "outcome": "team1"}) == ["outcome"]


def test_foreign_models_are_a_programming_error() -> None:
    with pytest.raises(TypeError):
        SYSTEM.normalise(SpadesLineUp(teams=TEAMS), RULES, START, END)
    with pytest.raises(TypeError):
        SYSTEM.normalise_line_up(parse(), RULES)
    with pytest.raises(TypeError):
        SYSTEM.start(parse(), RULES)
    with pytest.raises(TypeError):
        SYSTEM.start(None, SpadesStart(rating=1))  # type: ignore[arg-type]


# -- live games -------------------------------------------------------------------------------------------------------


def fails(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(RuleError) as caught:
        call(*args, **more)
    return caught.value.errors[0].field, caught.value.errors[0].code


def test_live_quit_and_return() -> None:
    content = {"teams": TEAMS}
    gone = SYSTEM.with_quit(content, "d", START + MINUTE, started_at=START)
    assert content == {"teams": TEAMS}
    assert gone["quits"] == [{"player": "d", "at": START + MINUTE, "back_at": None}]
    assert SYSTEM.with_quit(gone, "d", START + MINUTE) == gone
    assert fails(SYSTEM.with_quit, gone, "x", START) == ("player", "quitter-not-seated")
    assert fails(SYSTEM.with_quit, gone, "d", START + 2 * MINUTE) == ("player", "quit-twice")
    assert fails(SYSTEM.with_quit, gone, "a", START - 1, started_at=START) == ("at", "quit-outside-game")
    both = SYSTEM.with_quit(gone, "a", START + MINUTE)
    assert [quit_["player"] for quit_ in both["quits"]] == ["a", "d"]
    assert fails(SYSTEM.with_return, gone, "a", END, RULES) == ("player", "not-quit")
    assert fails(SYSTEM.with_return, gone, "d", START, RULES) == ("at", "back-before-quit")
    assert fails(SYSTEM.with_return, gone, "d", START + 4 * MINUTE + 1, RULES) == ("at", "back-too-late")
    back = SYSTEM.with_return(gone, "d", START + 4 * MINUTE, RULES)
    assert SYSTEM.with_return(back, "d", START + 4 * MINUTE, RULES) == back
    assert list(SYSTEM.moments(Game("x", "y", 1, START, content=back), RULES)) == []
    assert fails(SYSTEM.with_quit, back, "d", START + 2 * MINUTE) == ("player", "quit-twice")
    assert fails(SYSTEM.with_quit, back, "d", START) == ("at", "quit-twice")
    again = SYSTEM.with_quit(back, "d", START + 9 * MINUTE)
    assert len(SYSTEM.moments(Game("x", "y", 1, START, content=again), RULES)) == 1


def test_live_substitute() -> None:
    gone = SYSTEM.with_quit({"teams": TEAMS}, "d", START)
    assert fails(SYSTEM.with_substitute, gone, "x", robot=True) == ("for", "seat-unknown")
    assert fails(SYSTEM.with_substitute, gone, "a", robot=True) == ("for", "substitute-without-quit")
    assert fails(SYSTEM.with_substitute, gone, "d") == ("", "substitute-player-or-robot")
    assert fails(SYSTEM.with_substitute, gone, "d", "a") == ("player", "substitute-seated")
    one = SYSTEM.with_substitute(gone, "d", "x")
    assert SYSTEM.with_substitute(one, "d", "x") == one
    two = SYSTEM.with_substitute(one, "d", robot=True)
    assert two["substitutes"] == [
        {"for": "d", "player": None, "robot": True},
        {"for": "d", "player": "x", "robot": False},
    ]
    assert SYSTEM.robots_at_start(two, START) == ("d",)
    assert SYSTEM.robots_at_start(two, START - 1) == ()
    finished = SYSTEM.with_live(parse(), two)
    content = SYSTEM.normalise(finished, RULES, START, END).content
    assert (content["quits"], content["substitutes"]) == (two["quits"], two["substitutes"])
    assert (
        "quits"
        not in SYSTEM.normalise(SYSTEM.with_live(parse(quits=[], substitutes=[]), two), RULES, START, END).content
    )


# -- starts, lists, quotes --------------------------------------------------------------------------------------------


def test_start() -> None:
    assert SYSTEM.start(None, RULES) == PlayerState(1_500_000_000)
    carried = SYSTEM.start(SpadesStart(rating=1512.0000015, games=60), RULES)
    assert (carried.rating, carried.games, carried.won) == (1_512_000_002, 60, 0)
    assert SYSTEM.start(SpadesStart(rating=1512.0000025), RULES).rating == 1_512_000_002


def test_list_and_figures_for_readers() -> None:
    better, more, fewer = PlayerState(2), PlayerState(1, games=9), PlayerState(1, games=3)
    assert sorted([fewer, better, more], key=SYSTEM.order_key) == [better, more, fewer]
    assert SYSTEM.place_key(more) == SYSTEM.place_key(fewer) > SYSTEM.place_key(better)
    assert SYSTEM.present(1_536_388_498, 0) == {"rating": 1536.388498}
    assert SYSTEM.present_change((1_512_000_000, 0), (1_536_388_498, 0)) == {"rating": 24.388498}
    assert SYSTEM.hash_token(1_536_388_498, 0) == "1536388498"
    assert SYSTEM.close(better, 1) is None
    assert SYSTEM.explain_closing((1, 0), (1, 0), 0, 1) == {}


def test_quote() -> None:
    states = states_of({"a": 1_512_000_000, "c": 1_484_000_000, "b": 1_562_000_000, "d": 1_417_000_000})
    quoted = dict(SYSTEM.quote({"teams": TEAMS}, states, RULES))
    assert list(quoted) == ["team1", "draw", "team2"]
    assert quoted["team1"]["a"] == (1_536_388_498, 0)
    assert quoted["draw"]["a"] == (1_511_388_498, 0)
    assert list(quoted["team2"]) == ["a", "c", "b", "d"]


# -- properties -------------------------------------------------------------------------------------------------------

ratings_ = st.fixed_dictionaries({p: st.integers(-3_000_000_000, 6_000_000_000) for p in "abcd"})
outcomes = st.sampled_from(["team1", "draw", "team2"])
quit_orders = st.permutations("abcd").flatmap(lambda order: st.integers(0, 4).map(lambda n: order[:n]))
k_numbers = st.integers(1, 1_000_000).map(lambda k: k / 10_000)
opposition_ = st.sampled_from(["team_average", "pairwise"])


@settings(max_examples=150, deadline=None)
@given(ratings=ratings_, outcome=outcomes, order=quit_orders, k=k_numbers, opposition=opposition_)
def test_against_the_rules_once_more(
    ratings: dict[str, int], outcome: str, order: list[str], k: float, opposition: str
) -> None:
    rules = SpadesSettings.model_validate({"opposition": opposition, "k": k})
    now, _ = play(content_of(rules, outcome=outcome, quits=quit_list(order)), states_of(ratings), rules)
    result = {player: state.rating for player, state in now.items()}
    pairwise = opposition == "pairwise"
    assert result == reference(ratings, TEAMS, order, outcome, pairwise, dict.fromkeys("abcd", repr(k)))
    drift = sum(result.values()) - sum(ratings.values())
    assert abs(drift) <= (2 if pairwise else 0)
    assert all(state.games == 1 and state.won + state.drawn + state.lost == 1 for state in now.values())


@settings(max_examples=80, deadline=None)
@given(
    ratings=ratings_,
    outcome=outcomes,
    order=quit_orders,
    games=st.fixed_dictionaries({p: st.integers(45, 55) for p in "abcd"}),
    opposition=opposition_,
)
def test_k_by_games_against_the_rules_once_more(
    ratings: dict[str, int], outcome: str, order: list[str], games: dict[str, int], opposition: str
) -> None:
    rules = SpadesSettings.model_validate({"opposition": opposition, "k": BY_GAMES})
    now, _ = play(content_of(rules, outcome=outcome, quits=quit_list(order)), states_of(ratings, games), rules)
    k = {player: "50" if count <= 50 else "30" for player, count in games.items()}
    expected = reference(ratings, TEAMS, order, outcome, opposition == "pairwise", k)
    assert {player: state.rating for player, state in now.items()} == expected


@settings(max_examples=60, deadline=None)
@given(ratings=ratings_, outcome=outcomes, order=quit_orders, opposition=opposition_, k=k_numbers)
def test_order_of_teams_and_partners_means_nothing_for_ratings(
    ratings: dict[str, int], outcome: str, order: list[str], opposition: str, k: float
) -> None:
    rules = SpadesSettings.model_validate({"opposition": opposition, "k": k})
    flipped = {"team1": "team2", "team2": "team1", "draw": "draw"}[outcome]
    results = []
    for teams, said in (
        (TEAMS, outcome),
        ([["c", "a"], ["b", "d"]], outcome),
        ([["d", "b"], ["c", "a"]], flipped),
    ):
        content = content_of(rules, teams=teams, outcome=said, quits=quit_list(order))
        content = {**content, "teams": teams}  # unsorted partners must not matter either
        now, _ = play(content, states_of(ratings), rules)
        results.append({player: (state.rating, state.won, state.lost) for player, state in now.items()})
    assert results[0] == results[1] == results[2]


@st.composite
def sent_results(draw: st.DrawFn) -> dict[str, Any]:
    order = draw(quit_orders)
    quits = []
    for player in order:
        at = START + draw(st.integers(0, 3)) * MINUTE
        back = draw(st.sampled_from([None, None, MINUTE, 3 * MINUTE, 4 * MINUTE]))
        quits.append({"player": player, "at": iso(at), "back_at": None if back is None else iso(at + back)})
    substitutes: list[dict[str, Any]] = [
        {"for": player, "robot": True} if draw(st.booleans()) else {"for": player, "player": f"x{player}"}
        for player in order
    ]
    nils = draw(
        st.lists(
            st.sampled_from(
                [
                    {"bidder": "a", "set": True, "set_by": "b"},
                    {"bidder": "a", "set": True, "set_by": None},
                    {"bidder": "d", "set": False, "set_by": None},
                    {"bidder": "b", "set": True, "set_by": "c"},
                ]
            ),
            max_size=5,
        )
    )
    return {"outcome": draw(outcomes), "quits": quits, "substitutes": substitutes, "nils": nils}


@settings(max_examples=80, deadline=None)
@given(sent=sent_results(), data=st.data())
def test_normalising_twice_shuffling_and_translating(sent: dict[str, Any], data: st.DataObject) -> None:
    content = content_of(**sent)
    assert json.loads(json.dumps(content)) == content
    assert json.dumps(content_of(**as_sent(content))) == json.dumps(content)
    shuffled: dict[str, Any] = {
        key: data.draw(st.permutations(value)) if isinstance(value, list) else value for key, value in sent.items()
    }
    assert json.dumps(content_of(**shuffled)) == json.dumps(content)
    ids = {player: f"id-{99 - ord(player[-1])}-{len(player)}" for player in SYSTEM.mentioned(content)}
    back = {number: player for player, number in ids.items()}
    moved = SYSTEM.translate(content, ids.__getitem__)
    assert json.dumps(SYSTEM.translate(moved, back.__getitem__)) == json.dumps(content)
    assert SYSTEM.mentioned(moved) == tuple(ids[player] for player in SYSTEM.mentioned(content))
    one, _ = play(content, states_of(EVEN))
    two, _ = play(moved, states_of({ids[player]: rating for player, rating in EVEN.items()}))
    assert {ids[player]: (state.rating, state.counters) for player, state in one.items()} == {
        player: (state.rating, state.counters) for player, state in two.items()
    }


def test_models_read_names_and_aliases() -> None:
    assert SpadesSubstitute.model_validate({"for": "a", "robot": True}).seat == "a"
    assert SpadesQuit.model_validate({"player": "a", "at": EPOCH}).at == EPOCH
