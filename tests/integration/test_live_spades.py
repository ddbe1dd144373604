"""Live Spades tables over HTTP: quits rated at once, returns, substitutes, leaving the ranking; the same afterwards."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

from local.inprocess import System
from tests.integration.people_fixture import Ladder, at, fields

TEAMS = {"teams": [["peter", "john"], ["mary", "sue"]]}
GAMES = "/v1/pools/cards/games"


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.pool("cards", "spades")
    made.players("peter john mary sue extra")
    return made


def quit_(ladder: Ladder, game: str, player: str, when: str, *, status: int = 201, pool: str = "cards") -> Any:
    return ladder.post(f"/v1/pools/{pool}/games/{game}/quits", {"player": player, "at": when}, status=status)


def back(ladder: Ladder, game: str, player: str, when: str, *, status: int = 200, pool: str = "cards") -> Any:
    path = f"/v1/pools/{pool}/games/{game}/quits/{player}/return"
    return ladder.post(path, {"at": when}, status=status)


def finish(ladder: Ladder, game: str, when: str, revision: int, *, pool: str = "cards", **result: Any) -> Any:
    body = {"reason": "over", "finished_at": when, "result": {**TEAMS, **result}}
    return ladder.put(f"/v1/pools/{pool}/games/{game}", body, revision=revision, status=200)


def four(ladder: Ladder, pool: str = "cards") -> list[float]:
    return [round(ladder.rating(pool, p), 6) for p in ("peter", "john", "mary", "sue")]


# -- quits ---------------------------------------------------------------------------------------------------------
def test_a_quit_is_rated_at_once_and_the_rest_at_the_end(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    ladder.rate()
    assert ladder.rating("cards", "peter") == 1475
    assert ladder.system.request("GET", "/v1/pools/cards/players/john").status == 404
    game = ladder.get(f"{GAMES}/t")
    assert (game["status"], [c["kind"] for c in game["changes"]]) == ("open", ["quit"])
    finish(ladder, "t", at(1), 2, outcome="team1")
    assert four(ladder) == [1475, 1525, 1500, 1500]
    game = ladder.get(f"{GAMES}/t")
    assert game["status"] == "rated"
    assert game["result"]["quits"] == [{"player": "peter", "at": "2024-03-01T18:20:00Z"}]
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_his_side_loses(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    finish(ladder, "t", at(1), 2, outcome="team2")
    assert four(ladder) == [1475, 1475, 1525, 1525]


def test_both_partners_gone_settle_the_game(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    quit_(ladder, "t", "john", at(1, 19, 30))
    assert four(ladder) == [1475, 1475, 1525, 1525]  # before anybody said that it was over
    assert {p: kinds(ladder, p)[-1][0] for p in ("peter", "john", "mary", "sue")} == {
        "peter": "quit",
        "john": "quit",
        "mary": "game",  # nor did she quit: her game was decided by it
        "sue": "game",
    }
    changes = ladder.get(f"{GAMES}/t")["changes"]
    assert [(c["player"], c["kind"]) for c in changes] == [
        ("peter", "quit"),
        ("john", "quit"),
        ("mary", "game"),
        ("sue", "game"),
    ]
    ladder.system.settle()
    page = ladder.system.page("/cards/games/bern/t/")[2].decode()
    assert page.count("<i>quit</i>") == 2
    assert "<b>Won</b>" in ladder.system.page("/cards/players/mary/")[2].decode()
    quit_(ladder, "t", "mary", at(1, 19, 40))  # too late to cost her anything
    finish(ladder, "t", at(1), 4, outcome=None)
    assert four(ladder) == [1475, 1475, 1525, 1525]
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_back_within_three_minutes_has_not_quit(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    ladder.rate()
    back(ladder, "t", "peter", at(1, 19, 23))
    assert ladder.get(f"{GAMES}/t")["line_up"]["quits"][0]["back_at"] == "2024-03-01T18:23:00Z"
    ladder.rate()
    assert ladder.system.request("GET", "/v1/pools/cards/players/peter").status == 404
    again = back(ladder, "t", "peter", at(1, 19, 23))
    assert again["revision"] == 3
    ladder.open("cards", "next", TEAMS, at(1, 19, 30))  # nor is he banned
    finish(ladder, "t", at(1), 3, outcome="team1")
    assert four(ladder) == [1525, 1525, 1475, 1475]


def test_a_second_late_is_too_late(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    late = at(1, 19, 23).replace(":23:00", ":23:01")
    assert back(ladder, "t", "peter", late, status=409)["code"] == "back-too-late"
    assert fields(back(ladder, "t", "peter", at(1, 19, 19), status=422)) == [("at", "back-before-quit")]
    assert fields(back(ladder, "t", "john", at(1, 19, 21), status=422)) == [("player", "not-quit")]


def test_the_same_quit_twice_is_one(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    first = quit_(ladder, "t", "peter", at(1, 19, 20))
    assert quit_(ladder, "t", "peter", at(1, 19, 20), status=200)["revision"] == first["revision"] == 2
    assert fields(quit_(ladder, "t", "peter", at(1, 19, 40), status=422)) == [("player", "quit-twice")]
    assert fields(quit_(ladder, "t", "extra", at(1, 19, 40), status=422)) == [("player", "quitter-not-seated")]
    assert fields(quit_(ladder, "t", "john", at(1, 18, 59), status=422)) == [("at", "quit-outside-game")]
    finish(ladder, "t", at(1), 2, outcome="team1")
    assert quit_(ladder, "t", "john", at(1, 19, 50), status=409)["code"] == "not-open"


def test_a_correction_of_an_open_game_keeps_its_quits(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    game = ladder.put(f"{GAMES}/t", {"reason": "a note", "note": "table 4"}, revision=2, status=200)
    assert game["line_up"]["quits"] == [{"player": "peter", "at": "2024-03-01T18:20:00Z"}]
    body = {"reason": "it was extra", "line_up": {"teams": [["peter", "john"], ["mary", "extra"]]}}
    game = ladder.put(f"{GAMES}/t", body, revision=3, status=200)
    assert len(game["line_up"]["quits"]) == 1
    assert ladder.rating("cards", "peter") == 1475
    body = {"reason": "nor was it peter", "line_up": {"teams": [["sue", "john"], ["mary", "extra"]]}}
    game = ladder.put(f"{GAMES}/t", body, revision=4, status=200)
    assert "quits" not in game["line_up"]
    ladder.rate()
    assert ladder.get("/v1/pools/cards")["players"] == 0


# -- substitutes ---------------------------------------------------------------------------------------------------
def sit_in(ladder: Ladder, revision: int, *substitutes: dict[str, Any], status: int = 200) -> Any:
    body = {"reason": "sits in", "line_up": {**TEAMS, "substitutes": list(substitutes)}}
    return ladder.put(f"{GAMES}/t", body, revision=revision, status=status)


def test_a_substitute_sits_in_and_is_not_rated(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    game = sit_in(ladder, 2, {"for": "peter", "player": "extra"})
    assert game["line_up"]["substitutes"] == [{"for": "peter", "player": "extra"}]
    assert game["revisions"][-1]["what"] == "substituted"
    ladder.rate()
    quit_(ladder, "t", "sue", at(1, 19, 40))
    game = sit_in(ladder, 4, {"for": "peter", "player": "extra"}, {"for": "sue", "robot": True})
    assert game["line_up"]["quits"] == [
        {"player": "peter", "at": "2024-03-01T18:20:00Z"},
        {"player": "sue", "at": "2024-03-01T18:40:00Z"},
    ]
    done = finish(ladder, "t", at(1), 5, outcome="team1")
    assert done["result"]["substitutes"] == game["line_up"]["substitutes"]
    # Peter quit first: he loses both, Sue beats him. John beats Sue; Mary beats Peter and loses to John.
    assert four(ladder) == [1475, 1525, 1500, 1500]
    assert ladder.system.request("GET", "/v1/pools/cards/players/extra").status == 404
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_who_may_not_sit_in(ladder: Ladder) -> None:
    substitute = {"for": "peter", "player": "extra"}
    body = {"game_id": "s", "started_at": at(1, 19), "line_up": {**TEAMS, "substitutes": [substitute]}}
    assert fields(ladder.post(GAMES, body, status=422)) == [("line_up.substitutes[0].for", "substitute-without-quit")]
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    for wrong, field, code in (
        ({"for": "john", "player": "extra"}, ".for", "substitute-without-quit"),
        ({"for": "extra", "robot": True}, ".for", "seat-unknown"),
        ({"for": "peter"}, "", "substitute-player-or-robot"),
        ({"for": "peter", "player": "extra", "robot": True}, "", "substitute-player-or-robot"),
        ({"for": "peter", "player": "sue"}, ".player", "substitute-seated"),
        ({"for": "peter", "player": "nobody"}, ".player", "unknown-player"),
    ):
        answer = sit_in(ladder, 2, wrong, status=422)
        assert fields(answer) == [(f"line_up.substitutes[0]{field}", code)], wrong
    sit_in(ladder, 2, substitute)
    assert "substitutes" not in sit_in(ladder, 3)["line_up"]  # named, and nobody: he got up again


def test_finishing_may_name_quits_and_substitutes_itself(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 20))
    sit_in(ladder, 2, {"for": "peter", "robot": True})
    ladder.rate()
    finish(ladder, "t", at(1), 3, outcome="team1", quits=[], substitutes=[])  # it was somebody else
    assert four(ladder) == [1525, 1525, 1475, 1475]
    ladder.open("cards", "next", TEAMS, at(1, 20, 1))  # and the ban is gone
    assert ladder.hash("cards") == ladder.rebuilt("cards")


# -- live, or in one submission afterwards -------------------------------------------------------------------------
def minutes(start: dt.datetime, number: float) -> str:
    return (start + dt.timedelta(minutes=number)).isoformat()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_live_and_afterwards_give_identical_ratings(ladder: Ladder, seed: int) -> None:
    dice = random.Random(seed)
    k = {"first": 50, "up_to_games": 2, "then": 30}
    rules = [{"from": "2020-01-01", "k": k, "opposition": "pairwise"}, {"from": "2024-03-04"}]
    for pool in ("live", "once"):
        ladder.pool(pool, "spades", *rules)
    names = ["peter", "john", "mary", "sue", "extra", "more"]
    ladder.players("more")
    for name in names[:3]:
        start = {"rating": dice.randint(1300, 1700), "games": dice.randint(0, 3)}
        for pool in ("live", "once"):
            ladder.start(pool, name, **start)
    for day in range(1, 7):
        begin = dt.datetime.fromisoformat(at(day, 19))
        seats = dice.sample(names, 4)
        teams = [sorted(seats[:2]), sorted(seats[2:])]
        game, revision = f"g{day}", 1
        ladder.open("live", game, {"teams": teams}, minutes(begin, 0))
        quits, gone = [], set()
        for number, player in enumerate(dice.sample(seats, dice.choice([0, 1, 2, 3, 4]))):
            when = minutes(begin, 5 + 6 * number)
            quit_(ladder, game, player, when, pool="live")
            revision += 1
            entry = {"player": player, "at": when}
            if dice.random() < 0.3:
                entry["back_at"] = minutes(begin, 5 + 6 * number + dice.choice([1, 3]))
                back(ladder, game, player, entry["back_at"], pool="live")
                revision += 1
            else:
                gone.add(player)
            quits.append(entry)
            if dice.random() < 0.5:
                ladder.rate()
        bench = [n for n in names if n not in seats]
        pairs = zip(sorted(gone), bench, strict=False)
        substitutes = [{"for": seat, "player": player} for seat, player in pairs if dice.random() < 0.5]
        if substitutes:
            body = {"reason": "sits in", "line_up": {"teams": teams, "substitutes": substitutes}}
            ladder.put(f"/v1/pools/live/games/{game}", body, revision=revision, status=200)
            revision += 1
        settled = any(gone.issuperset(team) for team in teams)
        outcome = None if settled else dice.choice(["team1", "team2", "draw"])
        nils = [{"bidder": seats[0], "set": True, "set_by": None}]
        end = minutes(begin, 60)
        result = {"teams": teams, "outcome": outcome, "nils": nils}
        body = {"reason": "over", "finished_at": end, "result": result}
        ladder.put(f"/v1/pools/live/games/{game}", body, revision=revision, status=200)
        afterwards = {**result, "quits": dice.sample(quits, len(quits)), "substitutes": substitutes}
        ladder.send("once", game, afterwards, end, started_at=minutes(begin, 0))
    assert ladder.hash("live") == ladder.hash("once") == ladder.rebuilt("live")
    for name in names:
        one, two = (ladder.system.request("GET", f"/v1/pools/{p}/players/{name}") for p in ("live", "once"))
        assert one.status == two.status
        if one.status == 200:
            lines = [[h for h in answer.body["history"] if h["kind"] != "start"] for answer in (one, two)]
            assert lines[0] == lines[1]
            assert one.body["skill"] == two.body["skill"]


# -- leaving the ranking -------------------------------------------------------------------------------------------
def rank_me(ladder: Ladder, player: str, on: bool, when: str, *, status: int = 200, pool: str = "cards") -> Any:
    body = {"rank_me": on, "at": when}
    answer = ladder.system.request("PUT", f"/v1/pools/{pool}/players/{player}", json=body, key=ladder.key)
    return ladder.expect(answer, status)


def kinds(ladder: Ladder, player: str) -> list[tuple[str, float, float]]:
    history = ladder.get(f"/v1/pools/cards/players/{player}")["history"]
    return [(h["kind"], h["before"]["rating"], h["after"]["rating"]) for h in reversed(history)]


def test_leaving_in_a_running_game_is_a_quit_and_then_the_reset(ladder: Ladder) -> None:
    ladder.send("cards", "g", {**TEAMS, "outcome": "team1"}, at(1))
    ladder.open("cards", "t", TEAMS, at(2, 19))
    ladder.rate()
    answer = rank_me(ladder, "peter", False, at(2, 19, 30))
    assert answer["opted_out_until"] == "2024-03-09T18:30:00Z"
    ladder.rate()
    (game, quit_line, reset) = kinds(ladder, "peter")
    assert game == ("game", 1500, 1525)
    assert (quit_line[0], quit_line[1], reset) == ("quit", 1525, ("reset", quit_line[2], 1500))
    assert quit_line[2] < 1500
    assert rank_me(ladder, "peter", False, at(2, 19, 30)) == answer  # again: nothing new
    done = finish(ladder, "t", at(2), 2, outcome="team1")
    assert done["result"]["quits"] == [{"player": "peter", "at": "2024-03-02T18:30:00Z"}]
    ladder.rate()
    assert len(kinds(ladder, "peter")) == 3
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_the_same_when_the_game_is_sent_afterwards(ladder: Ladder) -> None:
    ladder.send("cards", "g", {**TEAMS, "outcome": "team1"}, at(1))
    rank_me(ladder, "peter", False, at(2, 19, 30))
    ladder.rate()
    result = {**TEAMS, "outcome": "team1"}
    sent = ladder.send("cards", "t", result, at(2), started_at=at(2, 19))
    assert sent["result"]["quits"] == [{"player": "peter", "at": "2024-03-02T18:30:00Z"}]
    assert [(w["field"], w["code"]) for w in sent["warnings"]] == [("result.quits", "rank-me-off-quit")]
    ladder.rate()
    assert [k for k, *_ in kinds(ladder, "peter")] == ["game", "quit", "reset"]
    body = {"game_id": "t", "started_at": at(2, 19), "finished_at": at(2), "result": result}
    assert ladder.post(GAMES, body).status == 200  # the same again
    # A correction that says nothing of the quit does not undo it.
    body = {"reason": "they lost", "result": {**TEAMS, "outcome": "team2"}}
    corrected = ladder.put(f"{GAMES}/t", body, revision=1, status=200)
    assert corrected["result"]["quits"] == sent["result"]["quits"]
    assert ladder.hash("cards") == ladder.rebuilt("cards")


@pytest.mark.parametrize("rated", [True, False])
def test_the_same_when_he_says_so_afterwards(ladder: Ladder, rated: bool) -> None:
    ladder.send("cards", "g", {**TEAMS, "outcome": "team1"}, at(1))
    ladder.send("cards", "t", {**TEAMS, "outcome": "team1"}, at(2), started_at=at(2, 19))
    if rated:
        ladder.rate()
    rank_me(ladder, "peter", False, at(2, 19, 30))
    ladder.rate()
    game = ladder.get(f"{GAMES}/t")
    assert game["result"]["quits"] == [{"player": "peter", "at": "2024-03-02T18:30:00Z"}]
    assert game["revisions"][-1] == {**game["revisions"][-1], "what": "corrected", "by": "bern"}
    assert [k for k, *_ in kinds(ladder, "peter")] == ["game", "quit", "reset"]
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_leaving_between_games_quits_nothing(ladder: Ladder) -> None:
    ladder.send("cards", "g", {**TEAMS, "outcome": "team1"}, at(1), started_at=at(1, 19))
    rank_me(ladder, "peter", False, at(1, 20, 1))
    ladder.send("cards", "h", {"teams": [["john", "extra"], ["mary", "sue"]], "outcome": "draw"}, at(2))
    ladder.rate()
    assert [k for k, *_ in kinds(ladder, "peter")] == ["game", "reset"]
    assert ladder.rating("cards", "peter") == 1500


def test_whoever_quit_before_leaving_does_not_quit_again(ladder: Ladder) -> None:
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quit_(ladder, "t", "peter", at(1, 19, 10))
    rank_me(ladder, "peter", False, at(1, 19, 30))
    ladder.rate()
    assert kinds(ladder, "peter") == [("quit", 1500, 1475), ("reset", 1475, 1500)]


def test_on_again_only_after_the_ban(ladder: Ladder) -> None:
    rank_me(ladder, "peter", False, at(1, 12))
    refused = rank_me(ladder, "peter", True, at(8, 11, 59), status=409)
    assert (refused["code"], refused["until"]) == ("opted-out", "2024-03-08T11:00:00Z")
    assert rank_me(ladder, "peter", True, at(8, 12)) == {
        "pool": "cards",
        "player": "peter",
        "rank_me": True,
        "at": "2024-03-08T11:00:00Z",
        "opted_out_until": None,
    }
    rank_me(ladder, "peter", False, at(9, 12))
    ladder.rate()
    position = ladder.get("/v1/pools/cards")["position"]
    rank_me(ladder, "peter", False, at(9, 12))
    ladder.rate()
    assert ladder.get("/v1/pools/cards")["position"] == position


def test_late_results_meet_every_time_that_somebody_left(ladder: Ladder) -> None:
    """Left on 1 March and on 20 March: what was played at the first time is refused, or quit, all the same."""
    leaving = rank_me(ladder, "peter", False, at(1, 12))
    rank_me(ladder, "peter", True, at(8, 12))
    rank_me(ladder, "peter", False, at(20, 12))
    result = {**TEAMS, "outcome": "team1"}
    refused = ladder.send("cards", "in-the-ban", result, at(8, 11, 59), status=422)
    assert fields(refused) == [("result.teams[0][0]", "banned")]
    assert "until 2024-03-08T11:00:00Z" in refused["errors"][0]["message"]
    sent = ladder.send("cards", "over-it", result, at(1, 13), started_at=at(1, 11))
    assert sent["result"]["quits"] == [{"player": "peter", "at": "2024-03-01T11:00:00Z"}]
    ladder.send("cards", "between", result, at(15))
    ladder.rate()
    assert [k for k, *_ in kinds(ladder, "peter")] == ["quit", "reset", "game", "reset"]
    position = ladder.get("/v1/pools/cards")["position"]
    assert rank_me(ladder, "peter", False, at(1, 12)) != leaving  # it answers what holds now, and changes nothing
    ladder.rate()
    assert ladder.get("/v1/pools/cards")["position"] == position
    assert ladder.hash("cards") == ladder.rebuilt("cards")


def test_where_the_pool_asks_for_rank_me_old_absences_count(ladder: Ladder) -> None:
    ladder.pool("cards", "spades", opt_out_ban_days=0, eligibility={"rank_me": True})
    for off, on in ((1, 3), (5, 9)):
        rank_me(ladder, "peter", False, at(off, 12))
        rank_me(ladder, "peter", True, at(on, 12))
    result = {**TEAMS, "outcome": "draw"}
    for day, hour, status in ((1, 11, 201), (1, 12, 422), (3, 11, 422), (3, 12, 201), (5, 12, 422), (9, 12, 201)):
        answer = ladder.send("cards", f"g{day}-{hour}", result, at(day, hour), status=status)
        assert status == 201 or fields(answer) == [("result.teams[0][0]", "rank-me-off")]


def test_there_is_no_such_switch_elsewhere(ladder: Ladder) -> None:
    ladder.pool("duels", "bridier")
    answer = rank_me(ladder, "peter", False, at(1), status=422, pool="duels")
    assert fields(answer) == [("rank_me", "no-rank-me")]
    answer = rank_me(ladder, "peter", False, "2999-01-01T00:00:00Z", status=422)
    assert fields(answer) == [("at", "in-the-future")]
