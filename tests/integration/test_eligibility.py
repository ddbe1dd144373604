"""Who may play rated games: each rule refuses naming itself, the player's place in the body, and a ban's end."""

from __future__ import annotations

from typing import Any

import pytest

from local.inprocess import System
from shared.ledger.lists import listed, why_apart
from shared.ratings.base import PlayerState
from shared.ratings.spades import SpadesSettings
from tests.integration.people_fixture import Ladder, at, fields

TEAMS = {"teams": [["peter", "john"], ["mary", "sue"]]}
WON = {**TEAMS, "outcome": "team1"}
QUIT = {**WON, "quits": [{"player": "john", "at": at(1, 19, 30)}]}


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.players("peter john mary sue extra")
    return made


def cards(ladder: Ladder, **eligibility: Any) -> None:
    ladder.pool("cards", "spades", eligibility=eligibility)


def refused(ladder: Ladder, when: str = at(5), result: Any = WON, **more: Any) -> list[tuple[str, str, str]]:
    body = ladder.send("cards", "refused", result, when, status=422, **more)
    assert body["detail"] == "Not everybody may play this rated game. It can be sent as an unrated one."
    return [(e["field"], e["code"], e["message"]) for e in body["errors"]]


# -- the pool's own rules ------------------------------------------------------------------------------------------
def test_registered_players_only(ladder: Ladder) -> None:
    cards(ladder, registered=True)
    everybody = {(f"result.teams[{team}][{place}]", "not-registered") for team in (0, 1) for place in (0, 1)}
    assert {r[:2] for r in refused(ladder)} == everybody
    ladder.players("peter john mary", registered_on="2024-01-01")
    ladder.players("sue", registered_on="2024-03-06")
    assert refused(ladder) == [("result.teams[1][1]", "not-registered", "sue is not a registered player.")]
    ladder.send("cards", "g", WON, at(6, 0))  # registered on that day
    ladder.send("cards", "u", WON, at(5), rated=False)


def test_experience_comes_from_unrated_games(ladder: Ladder) -> None:
    cards(ladder, minimum_regular_games=2)
    ladder.send("cards", "u1", WON, at(1), rated=False)
    ladder.send("cards", "u2", {**WON, "teams": [["peter", "john"], ["mary", "extra"]]}, at(2), rated=False)
    assert refused(ladder) == [
        (
            "result.teams[1][1]",
            "minimum-regular-games",
            "sue has played 1 regular (unrated) games; rated games need 2.",
        )
    ]
    ladder.post("/v1/pools/cards/games/u2/void", {"reason": "x"}, status=200)
    assert len(refused(ladder)) == 4  # a void game was none
    ladder.put("/v1/pools/cards/games/u2", {"reason": "it was", "result": WON}, revision=2, status=200)
    ladder.send("cards", "g", WON, at(5))


def test_an_open_table_and_a_substitute_are_no_experience(ladder: Ladder) -> None:
    cards(ladder, minimum_regular_games=1)
    ladder.open("cards", "u", TEAMS, at(1, 19), rated=False)
    assert len(refused(ladder)) == 4
    result = {**WON, "quits": [{"player": "sue", "at": at(1)}], "substitutes": [{"for": "sue", "player": "extra"}]}
    body = {"reason": "over", "finished_at": at(1), "result": result}
    ladder.put("/v1/pools/cards/games/u", body, revision=1, status=200)
    ladder.send("cards", "g", WON, at(5))
    other = {**WON, "teams": [["peter", "john"], ["extra", "mary"]]}
    assert [r[:2] for r in refused(ladder, at(6), other)] == [("result.teams[1][0]", "minimum-regular-games")]


def test_rank_me(ladder: Ladder) -> None:
    cards(ladder, rank_me=True)
    path = "/v1/pools/cards/players/mary"
    ladder.put(path, {"rank_me": False, "at": at(1, 12)}, status=200)
    codes = [r[:2] for r in refused(ladder)]
    assert codes == [("result.teams[1][0]", "banned"), ("result.teams[1][0]", "rank-me-off")]
    assert refused(ladder, at(20)) == [("result.teams[1][0]", "rank-me-off", "mary has switched rank_me off.")]
    ladder.send("cards", "before", WON, at(1, 11))  # she was in the ranking then
    ladder.put(path, {"rank_me": True, "at": at(20, 12)}, status=200)
    assert [r[1] for r in refused(ladder, at(20, 11))] == ["rank-me-off"]
    ladder.send("cards", "after", WON, at(20, 12))


def test_no_robots_at_the_start(ladder: Ladder) -> None:
    cards(ladder, no_robots_at_start=True)
    robot = {"substitutes": [{"for": "sue", "robot": True}]}
    start = {**WON, "quits": [{"player": "sue", "at": at(5, 19)}], **robot}
    assert refused(ladder, at(5), start, started_at=at(5, 19)) == [
        (
            "result.teams[1][1]",
            "robot-at-start",
            "A robot had the seat of sue from the start; rated games begin without robots.",
        )
    ]
    later = {**start, "quits": [{"player": "sue", "at": at(5, 19, 1)}]}
    ladder.send("cards", "g", later, at(5), started_at=at(5, 19))


def test_everything_is_off_unless_the_pool_says_so(ladder: Ladder) -> None:
    cards(ladder)
    ladder.put("/v1/pools/cards/players/mary", {"rank_me": False, "at": at(1, 12)}, status=200)
    robot = [{"for": "sue", "robot": True}]
    ladder.send("cards", "g", {**WON, "quits": [{"player": "sue", "at": at(9)}], "substitutes": robot}, at(9))


def test_every_reason_of_every_player_at_once(ladder: Ladder) -> None:
    cards(ladder, registered=True, minimum_regular_games=1)
    found = refused(ladder)
    assert len(found) == 8
    body = ladder.open("cards", "t", TEAMS, at(5), status=422)
    assert {f for f, _ in fields(body)} == {f"line_up.teams[{t}][{p}]" for t in (0, 1) for p in (0, 1)}


# -- bans ----------------------------------------------------------------------------------------------------------
def test_a_quit_bans_for_an_hour(ladder: Ladder) -> None:
    cards(ladder)
    ladder.send("cards", "g", QUIT, at(1), started_at=at(1, 19))
    assert refused(ladder, at(1, 20, 29)) == [
        ("result.teams[0][1]", "banned", "john is banned from rated games until 2024-03-01T19:30:00Z.")
    ]
    assert refused(ladder, at(2), started_at=at(1, 19, 30))  # the start counts
    ladder.send("cards", "u", WON, at(1, 20, 29), rated=False)
    ladder.send("cards", "before", WON, at(1, 19, 40), started_at=at(1, 19, 29))
    ladder.send("cards", "h", WON, at(1, 20, 30))


def test_a_live_quit_bans_at_once_and_a_return_lifts_it(ladder: Ladder) -> None:
    cards(ladder)
    ladder.open("cards", "t", TEAMS, at(1, 19))
    quits = "/v1/pools/cards/games/t/quits"
    ladder.post(quits, {"player": "john", "at": at(1, 19, 30)}, status=201)
    other = {"teams": [["extra", "john"], ["mary", "sue"]]}
    body = ladder.open("cards", "x", other, at(1, 19, 31), status=422)
    assert fields(body) == [("line_up.teams[0][1]", "banned")]
    ladder.post(f"{quits}/john/return", {"at": at(1, 19, 33)}, status=200)
    ladder.open("cards", "x", other, at(1, 19, 31))


@pytest.mark.parametrize("how", ["void", "corrected", "unrated"])
def test_a_ban_goes_with_the_quit(ladder: Ladder, how: str) -> None:
    cards(ladder)
    ladder.send("cards", "g", QUIT, at(1), started_at=at(1, 19))
    assert refused(ladder, at(1, 20, 10))
    game = "/v1/pools/cards/games/g"
    if how == "void":
        ladder.post(f"{game}/void", {"reason": "x"}, status=200)
    elif how == "corrected":
        ladder.put(game, {"reason": "it was nobody", "result": WON}, revision=1, status=200)
    else:
        ladder.put(game, {"reason": "a friendly", "rated": False}, revision=1, status=200)
    ladder.send("cards", "h", WON, at(1, 20, 10))


def test_a_ban_comes_with_a_corrected_quit(ladder: Ladder) -> None:
    cards(ladder)
    ladder.send("cards", "g", WON, at(1), started_at=at(1, 19))
    body = {"reason": "john left", "result": QUIT}
    ladder.put("/v1/pools/cards/games/g", body, revision=1, status=200)
    assert [r[:2] for r in refused(ladder, at(1, 20, 10))] == [("result.teams[0][1]", "banned")]


def test_ban_lengths_are_dated(ladder: Ladder) -> None:
    rules = [
        {"from": "2024-01-01", "quit_ban_minutes": 240, "opt_out_ban_days": 14},
        {"from": "2024-03-05", "quit_ban_minutes": 120},
        {"from": "2024-03-10"},
        {"from": "2024-03-15", "quit_ban_minutes": 0, "opt_out_ban_days": 0},
    ]
    ladder.pool("cards", "spades", *rules)
    for day, hours in ((1, 4), (6, 2), (11, 1)):
        quits = [{"player": "john", "at": at(day, 10)}]
        ladder.send("cards", f"g{day}", {**WON, "quits": quits}, at(day, 10), started_at=at(day, 9))
        assert f"until 2024-03-{day:02d}T{9 + hours:02d}:00:00Z" in refused(ladder, at(day, 9 + hours, 59))[0][2]
        ladder.send("cards", f"h{day}", WON, at(day, 10 + hours))
    ladder.send("cards", "none", {**WON, "quits": [{"player": "john", "at": at(16, 10)}]}, at(16, 10))
    ladder.send("cards", "free", WON, at(16, 10), round=2)
    path = "/v1/pools/cards/players/extra"
    assert ladder.put(path, {"rank_me": False, "at": at(4)}, status=200)["opted_out_until"] == "2024-03-18T19:00:00Z"
    free = ladder.put("/v1/pools/cards/players/sue", {"rank_me": False, "at": at(17)}, status=200)
    assert free["opted_out_until"] is None
    ladder.put("/v1/pools/cards/players/sue", {"rank_me": True, "at": at(17)}, status=200)
    # The rules change for the past, and so do the bans.
    ladder.pool("cards", "spades", {"from": "2024-01-01", "quit_ban_minutes": 600})
    assert "until 2024-03-01T19:00:00Z" in refused(ladder, at(1, 19, 59))[0][2]


def test_a_ban_lasts_beyond_a_new_rating_rule_of_the_next_day(ladder: Ladder) -> None:
    """A game's quits follow the rules at its start, not those at the quit."""
    rules = [{"from": "2024-01-01", "quit_ban_minutes": 240}, {"from": "2024-03-02", "quit_ban_minutes": 10}]
    ladder.pool("cards", "spades", *rules)
    late = {**WON, "quits": [{"player": "john", "at": at(2, 0, 30)}]}
    ladder.send("cards", "g", late, at(2, 1), started_at=at(1, 23, 30))
    assert "until 2024-03-02T03:30:00Z" in refused(ladder, at(2, 4, 29))[0][2]


def test_leaving_the_ranking_bans_for_a_week(ladder: Ladder) -> None:
    cards(ladder)
    ladder.put("/v1/pools/cards/players/sue", {"rank_me": False, "at": at(1, 12)}, status=200)
    assert refused(ladder, at(8, 11, 59)) == [
        ("result.teams[1][1]", "banned", "sue is banned from rated games until 2024-03-08T11:00:00Z.")
    ]
    ladder.send("cards", "g", WON, at(8, 12))


# -- corrections ---------------------------------------------------------------------------------------------------
def test_a_correction_cannot_bring_in_whom_the_door_refuses(ladder: Ladder) -> None:
    cards(ladder)
    ladder.send("cards", "g", QUIT, at(1), started_at=at(1, 19))
    other = {**WON, "teams": [["peter", "extra"], ["mary", "sue"]]}
    ladder.send("cards", "h", other, at(1, 20, 10))
    path = "/v1/pools/cards/games/h"
    body = ladder.put(path, {"reason": "it was john", "result": WON}, revision=1, status=422)
    assert fields(body) == [("result.teams[0][1]", "banned")]
    ladder.send("cards", "u", WON, at(1, 20, 10), rated=False)
    body = ladder.put("/v1/pools/cards/games/u", {"reason": "it counts", "rated": True}, revision=1, status=422)
    assert fields(body) == [("result.teams[0][0]", "banned")]  # where the stored game has him
    # Whoever was let in is not asked again: a note, a voiding and a revival pass.
    ladder.put("/v1/pools/cards/games/g", {"reason": "n", "note": "n"}, revision=1, status=200)
    ladder.post("/v1/pools/cards/games/g/void", {"reason": "x"}, status=200)
    ladder.put("/v1/pools/cards/games/g", {"reason": "it was"}, revision=3, status=200)
    assert ladder.put(path, {"reason": "now", "result": WON}, revision=1, status=422)


def test_a_table_that_was_started_in_time_can_be_finished(ladder: Ladder) -> None:
    cards(ladder)
    ladder.open("cards", "t", TEAMS, at(1, 19))
    ladder.send("cards", "other", QUIT, at(1, 19, 30), started_at=at(1, 18))
    body = {"reason": "over", "finished_at": at(1), "result": WON}
    ladder.put("/v1/pools/cards/games/t", body, revision=1, status=200)


def test_no_replay_asks_the_door_again(ladder: Ladder) -> None:
    cards(ladder)
    ladder.send("cards", "g", WON, at(1))
    ladder.rate()
    ladder.pool("cards", "spades", eligibility={"registered": True, "minimum_regular_games": 10})
    ladder.rate()
    assert ladder.get("/v1/pools/cards/games/g")["status"] == "rated"
    assert ladder.hash("cards") == ladder.rebuilt("cards")


# -- merged records ------------------------------------------------------------------------------------------------
def test_bans_of_merged_records_hold_for_both(ladder: Ladder) -> None:
    cards(ladder, minimum_regular_games=2)
    for n, player in enumerate(("john", "extra")):
        teams = [["peter", player], ["mary", "sue"]]
        ladder.send("cards", f"u{n}", {**WON, "teams": teams}, at(1, 8, n), rated=False)
    assert ladder.system.admin("POST", "/v1/players/john/merge", {"into": "extra"}).status == 202
    ladder.send("cards", "g", QUIT, at(1), started_at=at(1, 19))  # the two have played two games together
    same = {**WON, "teams": [["peter", "extra"], ["mary", "sue"]]}
    assert [r[:2] for r in refused(ladder, at(1, 20, 10), same)] == [("result.teams[0][1]", "banned")]
    ladder.system.admin("POST", "/v1/players/john/unmerge", {})
    assert [r[:2] for r in refused(ladder, at(1, 20, 10), same)] == [("result.teams[0][1]", "minimum-regular-games")]


# -- who stands in the list ----------------------------------------------------------------------------------------
def test_who_stands_in_the_list() -> None:
    state = PlayerState(1500, games=3, last_result=1000)
    assert listed(state, SpadesSettings(), 10**5)
    assert listed(state, SpadesSettings(minimum_games=3), 10**5)
    assert why_apart(state, SpadesSettings(minimum_games=4), 1000) == "unlisted"
    hiding = SpadesSettings(hide_after_days=30)
    assert listed(state, hiding, 1030)
    assert why_apart(state, hiding, 1031) == "inactive"
    assert listed(PlayerState(1500, games=60), hiding, 1000)  # carried over, has not played here yet
