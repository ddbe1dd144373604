"""Numbers that were worked out by hand, through submission, correction, void, late arrival, merge and held games."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from functions.rater import app as rater
from shared.problems import Problem
from shared.store import ledger
from shared.store import rated as store
from shared.usecases import bootstrap, games, reading, rebuild
from shared.usecases.drafts import GameDraft
from tests.integration.ladder import DAY, HOUR, MINUTE, Ladder, at, audit, duel, iso_of, small_steps, spades


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_steps():
        yield


@pytest.fixture(params=["in one transaction", "under a new generation"])
def ladder(request: pytest.FixtureRequest) -> Iterator[Ladder]:
    """A Spades pool (K 25), and every replay done in both ways."""
    made = Ladder.in_memory()
    made.now = at("2026-07-20 12:00")
    made.open_pool(rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
    made.register(*"abcdefgh")
    with small_steps(**({} if request.param.startswith("in") else {"IN_PLACE": 5})):
        yield made


X = spades("x", "ac-bd", "2026-07-03 20:00")
Y = spades("y", "ab-ce", "2026-07-10 20:00")
Z = spades("z", "ce-ad", "2026-07-11 20:00")
XYZ = {"a": 1524.01, "b": 1500.90, "c": 1525.99, "d": 1448.11, "e": 1500.99}


@pytest.mark.parametrize("order", list(itertools.permutations("xyz")), ids="".join)
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_played_order_not_arrival_order(ladder: Ladder, order: tuple[str, ...], at_once: bool) -> None:
    for name in order:
        ladder.submit({"x": X, "y": Y, "z": Z}[name])
        if not at_once:
            ladder.rate()
            audit(ladder)
    ladder.rate()
    audit(ladder)
    assert ladder.points() == XYZ


def test_a_void_is_a_replay_never_a_subtraction(ladder: Ladder) -> None:
    for name, when in (("one", "2026-07-03 20:00"), ("two", "2026-07-04 20:00")):
        ladder.submit(spades(name, "ac-bd", when))
    ladder.rate()
    second = games.read(ladder.ctx, ladder.pool(), ("bern", "two"))["changes"][0]["change"]["rating"]
    ladder.void("one")
    ladder.rate()
    audit(ladder)
    assert ladder.points() == {"a": 1525.0, "c": 1525.0, "b": 1475.0, "d": 1475.0}
    assert round(1500 + second, 2) == 1521.43, "what subtracting the stored change would give"
    ladder.void("two")
    ladder.rate()
    audit(ladder)
    assert ladder.points() == {}
    assert ladder.cursor().hash == f"{0:064x}"
    assert ladder.correct("one", note="played after all").body["status"] == "pending"
    ladder.rate()
    audit(ladder)
    assert ladder.points()["a"] == 1525.0


def test_a_late_march_result_is_rated_with_the_index_before_the_april_closing() -> None:
    """Last result 1 January, index 100: the April closing makes it 200; on 5 April a result of 20 March arrives."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-02-10 12:00")
    ladder.open_pool(system="bridier", rules=[{"from": "2025-01-01"}])
    ladder.register("a", "b", "c")
    ladder.start("a", {"rank": 700, "index": 100, "last_result_on": "2026-01-01"})
    ladder.start("b", {"rank": 700, "index": 100, "last_result_on": "2026-02-01"})
    ladder.rate()
    ladder.now = at("2026-04-05 12:00")
    ladder.rate()
    audit(ladder)
    assert ladder.ratings() == {"a": (700, 200), "b": (700, 100)}
    ladder.submit(duel("march", "a", "b", "2026-03-20 20:00"))
    ladder.rate()
    audit(ladder)
    assert ladder.ratings() == {"a": (710, 100), "b": (690, 100)}, "100 against 100: the stake of ten as it is"
    ladder.submit(duel("april", "a", "b", "2026-04-05 11:00"))
    ladder.rate()
    audit(ladder)
    assert ladder.ratings() == {"a": (718, 100), "b": (682, 100)}, "rated with an index of 100: gap 20, stake 8"
    rows = reading.player_in_pool(ladder.ctx, ladder.pool(), "a", None)["history"]
    assert [row["kind"] for row in rows] == ["game", "game", "start"], "the closing that raised his index is gone"


def test_new_rules_hold_from_their_day_on(ladder: Ladder) -> None:
    for draft in (X, Y, Z):
        ladder.submit(draft)
    ladder.rate()
    ladder.open_pool(rules=[{"from": "2026-01-01"}, {"from": "2026-07-10", "k": 50}])
    assert ladder.points() == XYZ, "until the rater has been there"
    ladder.rate()
    audit(ladder)
    changes = games.read(ladder.ctx, ladder.pool(), ("bern", "x"))["changes"]
    assert changes[0]["change"]["rating"] == 25.0
    assert ladder.points()["b"] - 1475 == pytest.approx(2 * (1500.90 - 1475), abs=0.01), "Y counts twice as much now"
    ladder.open_pool(rules=[{"from": "2026-07-10"}, {"from": "2026-07-11", "k": 50}])
    ladder.rate()
    audit(ladder)
    assert games.read(ladder.ctx, ladder.pool(), ("bern", "x"))["status"] == "held", "before the first rules"
    ladder.open_pool(rules=[{"from": "2026-01-01"}])
    ladder.rate()
    audit(ladder)
    assert ladder.points() == XYZ
    assert ladder.cursor().held == 0


def test_the_rules_change_between_two_reads(ladder: Ladder) -> None:
    """The pool was read before, its inbox after the change: the event must not be used up under the old rules."""
    ladder.submit(X)
    ladder.rate()
    raced = False

    def change(name: str, _: Any) -> None:
        nonlocal raced
        if name == "query" and not raced:
            raced = True
            ladder.open_pool(rules=[{"from": "2026-01-01", "k": 50}])

    ladder.submit(Y)
    ladder.calls.before = change
    ladder.rate()
    ladder.calls.before = None
    audit(ladder)
    assert ladder.points()["d"] == 1450.0


def test_correcting_players_times_and_rated(ladder: Ladder) -> None:
    for draft in (X, Y, Z):
        ladder.submit(draft)
    ladder.rate()
    ladder.correct("y", started_at=at("2026-07-01 20:00"), finished_at=at("2026-07-01 20:30"))
    ladder.rate()
    audit(ladder)
    ladder.correct("x", result={"teams": [["a", "f"], ["b", "d"]], "outcome": "draw"})
    ladder.rate()
    audit(ladder)
    assert "f" in ladder.points()
    ladder.correct("x", rated=False)
    ladder.rate()
    audit(ladder)
    assert "f" not in ladder.points()
    ladder.correct("x", rated=True, result={"teams": [["a", "c"], ["b", "d"]], "outcome": "team1"})
    ladder.correct("y", started_at=at("2026-07-10 20:00"), finished_at=at("2026-07-10 20:00"))
    ladder.rate()
    audit(ladder)
    assert ladder.points() == XYZ


# -- live games ------------------------------------------------------------------------------------------------------
def live(ladder: Ladder) -> None:
    """An open game; one of its players quits, and is rated at once."""
    line_up = {"teams": [["a", "c"], ["b", "d"]]}
    ladder.submit(GameDraft(game_id="live", started_at=ladder.now - 50 * MINUTE, line_up=line_up))
    ladder.rate()
    games.quit(ladder.ctx, ladder.pool(), "bern", ("bern", "live"), "d", ladder.now - 20 * MINUTE)
    ladder.rate()
    audit(ladder)
    assert ladder.points() == {"d": 1475.0}


def finish(ladder: Ladder, **result: Any) -> None:
    given = {"teams": [["a", "c"], ["b", "d"]], "outcome": "team1", **result}
    ladder.correct("live", finished_at=ladder.now, result=given)
    ladder.rate()
    audit(ladder)


def test_a_finished_game_still_tells_of_its_quits(ladder: Ladder) -> None:
    live(ladder)
    finish(ladder)
    body = games.read(ladder.ctx, ladder.pool(), ("bern", "live"))
    assert (body["status"], body["revision"]) == ("rated", 3)
    assert [(c["player"], c["kind"]) for c in body["changes"]] == [
        ("d", "quit"),
        ("a", "game"),
        ("c", "game"),
        ("b", "game"),
    ]
    assert ladder.points() == {"a": 1525.0, "b": 1475.0, "c": 1525.0, "d": 1475.0}
    assert not [key for key in ladder.items() if key[0].startswith("OPEN#")], "nothing is left of the open game"


def test_two_quits_and_the_finish_told_in_one_batch_or_in_three(ladder: Ladder) -> None:
    live(ladder)
    games.quit(ladder.ctx, ladder.pool(), "bern", ("bern", "live"), "a", ladder.now - 10 * MINUTE)
    ladder.rate()
    audit(ladder)
    finish(ladder)
    body = games.read(ladder.ctx, ladder.pool(), ("bern", "live"))
    assert [c["player"] for c in body["changes"]] == ["d", "a", "c", "b"]


def test_the_result_names_another_quitter(ladder: Ladder) -> None:
    """At the same instant, so that only the content tells the difference: what was rated must follow."""
    live(ladder)
    quits = [{"player": "b", "at": iso_of(ladder.now - 20 * MINUTE)}]
    finish(ladder, quits=quits)
    assert ladder.points() == {"a": 1525.0, "b": 1475.0, "c": 1525.0, "d": 1475.0}
    body = games.read(ladder.ctx, ladder.pool(), ("bern", "live"))
    assert body["changes"][0]["player"] == "b"


def test_the_result_names_another_line_up(ladder: Ladder) -> None:
    ladder.submit(replace(spades("before", "ae-bf", ladder.now - 2 * DAY)))
    line_up = {"teams": [["a", "c"], ["b", "d"]]}
    ladder.submit(GameDraft(game_id="live", started_at=ladder.now - 50 * MINUTE, line_up=line_up))
    ladder.rate()
    ladder.correct("live", finished_at=ladder.now, result={"teams": [["e", "c"], ["b", "d"]], "outcome": "team1"})
    ladder.rate()
    audit(ladder)


def test_a_start_carried_over_while_he_sits_at_a_table(ladder: Ladder) -> None:
    """It stands before everything else of that player, so the open game's start ratings change too."""
    line_up = {"teams": [["a", "c"], ["b", "d"]]}
    ladder.submit(GameDraft(game_id="live", started_at=ladder.now - 50 * MINUTE, line_up=line_up))
    ladder.rate()
    ladder.start("d", {"rating": 1700, "games": 80})
    ladder.rate()
    audit(ladder)
    finish(ladder)
    assert ladder.points()["a"] > 1525, "he was the favourite's opponent"


@pytest.mark.parametrize("at_once", [False, True])
def test_the_last_start_holds_whatever_the_clocks_say(ladder: Ladder, at_once: bool) -> None:
    """Two machines, one a minute behind."""
    ladder.start("a", {"rating": 1600, "games": 5})
    if not at_once:
        ladder.rate()
    ladder.now -= MINUTE
    ladder.start("a", {"rating": 1700, "games": 5})
    ladder.rate()
    assert ladder.points()["a"] == 1700
    audit(ladder)
    rebuild.request(ladder.ctx, ladder.pool())
    ladder.rate()
    assert ladder.points()["a"] == 1700
    audit(ladder)


def test_a_start_carried_over_after_he_left_the_ranking(ladder: Ladder) -> None:
    ladder.leave("d", ladder.now - DAY)
    ladder.submit(X)
    ladder.rate()
    ladder.start("h", {"rating": 1700, "games": 80})
    ladder.leave("h", ladder.now - 2 * DAY)
    ladder.rate()
    audit(ladder)
    ladder.start("h", {"rating": 1800, "games": 90})
    ladder.leave("g", ladder.now - 3 * DAY)
    ladder.rate()
    ladder.start("g", {"rating": 1800, "games": 90})
    ladder.rate()
    audit(ladder)
    assert (ladder.points()["g"], ladder.points()["h"]) == (1500.0, 1500.0)


def test_who_carried_a_rating_over_after_a_checkpoint_stands_in_it(ladder: Ladder) -> None:
    """The start was appended; a late result is folded from a checkpoint that was made before it."""
    ladder.submit(spades("june", "ac-bd", "2026-06-20 20:00"))
    ladder.submit(spades("july", "ac-bd", "2026-07-18 20:00"))
    ladder.rate()
    ladder.start("h", {"rating": 1700, "games": 80})
    ladder.rate()
    audit(ladder)
    ladder.submit(spades("late", "ah-bd", "2026-07-10 20:00"))
    assert ladder.rate().replays == 1
    audit(ladder)
    assert ladder.points()["h"] > 1700


# -- held, not blocking ----------------------------------------------------------------------------------------------
def test_a_game_whose_player_was_merged_into_his_opponent_is_held(ladder: Ladder) -> None:
    for draft in (X, Y, Z, spades("w", "ef-gh", "2026-07-12 20:00")):
        ladder.submit(draft)
    ladder.rate()
    ladder.merge("d", "b")
    ladder.submit(spades("v", "ad-bc", "2026-07-13 20:00", minutes=30))
    ladder.rate()
    audit(ladder)
    held = store.read_held(ladder.ctx.table, "p", ladder.cursor().view)
    assert set(held) == {"bern#x", "bern#v"}
    body = games.read(ladder.ctx, ladder.pool(), ("bern", "x"))
    assert (body["status"], body["held_reason"], body["changes"]) == ("held", held["bern#x"].reason, [])
    assert games.read(ladder.ctx, ladder.pool(), ("bern", "w"))["status"] == "rated", "the rest goes on"
    ladder.correct("v", result={"teams": [["a", "d"], ["e", "c"]], "outcome": "team1"})
    ladder.rate()
    audit(ladder)
    assert games.read(ladder.ctx, ladder.pool(), ("bern", "v"))["status"] == "rated"
    ladder.void("x")
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().held == 0


def test_unmerging_gives_the_state_hash_of_before(ladder: Ladder) -> None:
    for draft in (X, Y, Z, spades("w", "fg-gh".replace("fg", "fa"), "2026-07-12 20:00")):
        ladder.submit(draft)
    ladder.rate()
    before = ladder.cursor().hash
    ladder.merge("f", "e")
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().hash != before
    assert "f" not in ladder.ratings()
    ladder.unmerge("f")
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().hash == before


def test_a_held_game_with_rated_quits_survives_replays_behind_its_start(ladder: Ladder) -> None:
    """Under other rules of grace a side that had quit is back, and the game has no outcome: only its finish is held."""
    end = at("2026-07-02 20:00")
    ladder.submit(spades("before", "ab-cd", "2026-06-20 20:00"))
    left = end - 24 * HOUR  # behind July's closing, which the game itself began before
    back = {"a": left + 4 * MINUTE, "c": left + 5 * MINUTE}
    quits = [{"player": p, "at": iso_of(left), "back_at": iso_of(when)} for p, when in back.items()]
    draft = GameDraft(
        game_id="q",
        started_at=end - 100 * HOUR,
        finished_at=end,
        result={"teams": [["a", "c"], ["b", "d"]], "outcome": None, "quits": quits},
    )
    ladder.submit(draft)
    ladder.rate()
    ladder.open_pool(rules=[{"from": "2026-01-01", "grace_minutes": 4}])
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().held == 1
    for when in ("2026-07-12 20:00", "2026-07-05 20:00", "2026-07-01 12:00", "2026-06-29 20:00"):
        ladder.submit(spades(f"late{when[5:10]}", "ef-gh", when))
        ladder.rate()
        audit(ladder)


def test_a_game_that_begins_at_a_closing_comes_back_with_the_rules(ladder: Ladder) -> None:
    """Held before the pool's first rules; they then hold from that very instant, the first of a month."""
    first = at("2026-06-30T22:00+00:00")
    ladder.start("h", {"rating": 1700, "games": 80})
    ladder.leave("h", first - 20 * DAY)
    ladder.submit(spades("before", "ac-bd", first - DAY))
    ladder.submit(spades("g", "ab-ef", first + HOUR, minutes=60))
    ladder.rate()
    ladder.open_pool(rules=[{"from": "2026-07-02"}])
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().held == 2
    assert [mark.at for mark in store.read_index(ladder.ctx.table, "p").checkpoints] == [first]
    ladder.open_pool(rules=[{"from": "2026-07-01"}])
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().held == 1
    assert ladder.points()["a"] == 1525.0


def test_an_unexpected_error_on_one_pool_is_reported_and_the_others_go_on(ladder: Ladder) -> None:
    ladder.open_pool("q", rules=[{"from": "2026-01-01"}])
    failures: list[tuple[str, str]] = []
    ctx = replace(ladder.ctx, report_failure=lambda pool, reason: failures.append((pool, reason)))
    for pool in ("p", "q"):
        for draft in (X, Y, Z):
            ladder.submit(draft, pool)
    system = type(ladder.pool().system)
    real_rate, broken = system.rate, True

    def rate(self: Any, game: Any, *rest: Any) -> Any:
        if broken and game.game_id == "y" and game.content["teams"][0][0] == "sid-a" and "p" in breaking:
            raise ZeroDivisionError
        return real_rate(self, game, *rest)

    def wake(event: Any) -> None:
        with (
            mock.patch.object(rater, "context", return_value=ctx),
            mock.patch.object(bootstrap, "context", return_value=ctx),
            mock.patch.dict("os.environ", POWERTOOLS_METRICS_DISABLED="true"),
        ):
            rater.handler(event, mock.Mock(function_name="rater"))

    breaking: set[str] = set()

    def watched(ctx: Any, pool: str, *rest: Any) -> Any:
        breaking.clear()
        breaking.add(pool)
        return apply(ctx, pool, *rest)

    apply = rater.rating.apply
    with mock.patch.object(system, "rate", rate), mock.patch.object(rater.rating, "apply", watched):
        wake({"Records": [{"dynamodb": {"Keys": {"pk": {"S": f"INBOX#{pool}#1"}}}} for pool in ("p", "q")]})
        assert failures == [("p", "ZeroDivisionError")]
        assert ladder.points("q") == XYZ
        assert ledger.pending(ladder.ctx.table, "p") > 0
        broken = False
        wake({"pool": "p"})
    audit(ladder)
    assert ladder.points() == XYZ
    assert len(failures) == 1


# -- months ----------------------------------------------------------------------------------------------------------
def test_a_game_that_ends_in_the_next_month_by_its_clock() -> None:
    """A clock runs ahead: accepted before the closing, finished after it. The closing comes first all the same."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-03-31T23:55+02:00")
    ladder.open_pool(system="bridier", rules=[{"from": "2025-01-01"}])
    ladder.register("a", "b")
    ladder.start("a", {"rank": 700, "index": 100, "last_result_on": "2026-01-01"})
    ladder.start("b", {"rank": 700, "index": 100, "last_result_on": "2026-03-01"})
    ladder.rate()
    ladder.submit(duel("g", "a", "b", "2026-04-01T00:03+02:00"))
    ladder.rate()
    audit(ladder)
    assert ladder.ratings()["a"] == (710, 100)
    ladder.now = at("2026-04-01T00:10+02:00")
    ladder.rate()
    audit(ladder)
    assert ladder.ratings()["a"] == (720, 180), "his index was 200 by then: the stake of ten doubled"


@pytest.mark.parametrize(
    ("when", "month"),
    [
        ("2025-04-01T00:30+02:00", "2025-04"),
        ("2025-03-31T23:30+02:00", "2025-03"),
        ("2025-03-31T22:00+00:00", "2025-04"),
    ],
)
def test_months_are_the_pools(when: str, month: str) -> None:
    ladder = Ladder.in_memory()
    ladder.now = at("2025-05-10 12:00")
    ladder.open_pool(system="bridier", rules=[{"from": "2025-01-01"}])
    ladder.register("a", "b")
    ladder.submit(duel("g", "a", "b", when))
    ladder.rate()
    expected = audit(ladder)
    first = at("2025-04-01T00:00+02:00")
    assert (first in expected.closings and bool(expected.closings[first])) == (month == "2025-03")


def test_a_random_order_of_arrival_with_many_quits_at_one_instant() -> None:
    rng = random.Random(5)
    drafts = []
    for number in range(14):
        teams = "".join(rng.sample("abcdef", 4))
        gone = [(p, rng.choice([0, 30])) for p in rng.sample(teams, 2)]
        drafts.append(
            spades(
                f"g{number}", f"{teams[:2]}-{teams[2:]}", "2026-07-10 20:00", minutes=30, quits=gone, round=number % 3
            )
        )
    hashes = set()
    for _ in range(3):
        ladder = Ladder.in_memory()
        ladder.now = at("2026-07-20 12:00")
        ladder.open_pool(rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
        ladder.register(*"abcdef")
        rng.shuffle(drafts)
        for draft in drafts:
            try:
                ladder.submit(draft)
            except Problem as problem:  # a ban would be a fault of this test
                pytest.fail(str(problem))
            if rng.random() < 0.5:
                ladder.rate()
        ladder.rate()
        audit(ladder)
        hashes.add(ladder.cursor().hash)
    assert len(hashes) == 1
