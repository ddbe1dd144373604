"""What is sent at the same moment is answered as if it had come one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from functions.api import openapi
from shared.problems import Problem
from shared.store import people
from shared.store.table import Busy
from shared.usecases import games
from shared.usecases import people as people_use
from shared.usecases.drafts import Answer, GameDraft
from tests.integration.ladder import HOUR, Ladder, at, audit, spades
from tests.integration.test_exactly_once import at_once, send, status

EIGHT = range(8)
NEW = replace(spades("g", "ac-bz", "2026-08-10 20:00"), register=(("z", "New Z"),))


def void(ladder: Ladder) -> Answer:
    return games.void(ladder.ctx, ladder.pool(), "bern", ("bern", "g"), reason="same")


def correct(ladder: Ladder, match: int = 1, **changes: Any) -> Answer:
    draft = GameDraft(game_id="g", given=frozenset(changes), **changes)
    return games.correct(ladder.ctx, ladder.pool(), "bern", ("bern", "g"), draft, reason="wrong", if_match=match)


def revisions(ladder: Ladder) -> list[str]:
    return [r.what for r in games.load(ladder.ctx, ladder.pool(), ("bern", "g")).revisions]


def just_before_the_write(ladder: Ladder, what: Callable[[], Any], times: int = 1) -> None:
    """Do something between a request's look and its write: the next transaction, or the next few."""
    left = times

    def overtaken(name: str, arguments: Mapping[str, Any]) -> None:
        nonlocal left
        if name == "transact_write_items" and left:
            left -= 1
            ladder.calls.before = None
            what()
            ladder.calls.before = overtaken

    ladder.calls.before = overtaken


# -- one game --------------------------------------------------------------------------------------------------------
def test_a_game_voided_by_eight_at_once(real: Ladder) -> None:
    send(real, spades("g", "ac-bd", "2026-08-10 20:00"))
    answers = at_once([lambda: void(real)] * 8)
    assert [status(answer) for answer in answers] == [200] * 8, answers
    assert {(answer.body["status"], answer.body["revision"]) for answer in answers} == {("void", 2)}
    assert revisions(real) == ["finished", "voided"]
    real.rate()
    audit(real)


def test_a_void_overtaken_by_a_correction_takes_out_what_was_corrected(memory: Ladder) -> None:
    send(memory, spades("g", "ac-bd", "2026-08-10 20:00"))
    just_before_the_write(memory, lambda: correct(memory, round=2))
    answer = void(memory)
    assert (answer.status, answer.body["status"], answer.body["round"]) == (200, "void", 2)
    assert revisions(memory) == ["finished", "corrected", "voided"]
    memory.rate()
    audit(memory)


def test_a_void_that_is_overtaken_again_and_again_says_that_it_is_busy(memory: Ladder) -> None:
    send(memory, spades("g", "ac-bd", "2026-08-10 20:00"))
    rounds = iter(range(1, 100))

    def somebody() -> None:
        number = next(rounds)
        correct(memory, number, round=number)

    just_before_the_write(memory, somebody, times=games.ATTEMPTS)
    with pytest.raises(Busy):
        void(memory)
    assert revisions(memory) == ["finished", *["corrected"] * games.ATTEMPTS]
    assert void(memory).status == 200


def test_the_same_correction_by_eight_at_once_and_another_one(real: Ladder) -> None:
    send(real, spades("g", "ac-bd", "2026-08-10 20:00"))
    answers = at_once([lambda: correct(real, round=2)] * 8)
    assert [status(answer) for answer in answers] == [200] * 8, answers
    assert revisions(real) == ["finished", "corrected"]
    answers = at_once([lambda number=number: correct(real, 2, round=number) for number in (3, 4, 5)])
    assert sorted(map(status, answers), key=str) == [200, "another-revision", "another-revision"]


def test_four_who_leave_a_table_at_once(real: Ladder) -> None:
    line_up = {"teams": [["a", "b"], ["c", "d"]]}
    send(real, GameDraft(game_id="g", started_at=at("2026-08-20 11:30"), line_up=line_up))

    def leave(player: str) -> Answer:
        return games.quit(real.ctx, real.pool(), "bern", ("bern", "g"), player, at("2026-08-20 11:45"))

    answers = at_once([lambda player=player: leave(player) for player in "abcd" for _ in range(2)])
    assert sorted(map(status, answers), key=str) == [200] * 4 + [201] * 4, answers
    assert revisions(real) == ["started", *["quit"] * 4]
    real.rate()
    audit(real)


# -- one new player --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("keys", [False, True], ids=["plain", "with a key each"])
def test_eight_games_at_once_that_register_one_player(real: Ladder, keys: bool) -> None:
    drafts = [
        replace(NEW, game_id=f"g{n}", started_at=when, finished_at=when)
        for n in EIGHT
        for when in [at("2026-08-10 20:00") + n * HOUR]
    ]
    actions = [lambda n=n: send(real, drafts[n], f"key-{n}" if keys else None) for n in EIGHT]
    answers = at_once(actions)
    assert [status(answer) for answer in answers] == [201] * 8, answers
    assert [status(answer) for answer in at_once(actions)] == [201 if keys else 200] * 8
    person = people.find(real.ctx.table, "z")
    assert person is not None
    assert (person.name, person.managed_by) == ("New Z", "bern")
    assert [handle for handle, _, _ in people.roster(real.ctx.table, "bern")].count("z") == 1
    real.rate()
    expected = audit(real)
    assert expected.fold.states[person.sid].games == 8
    assert len([sid for sid in expected.fold.states if sid not in {f"sid-{p}" for p in "abcdefgh"}]) == 1


def test_one_game_sent_three_times_at_once_that_registers_a_player(real: Ladder) -> None:
    for number in range(3):
        handle = "xyz"[number]
        teams = [["a", "c"], ["b", handle]]
        draft = replace(
            spades(f"g{number}", f"ac-b{handle}", at("2026-08-10 20:00") + number * HOUR),
            result={"teams": teams, "outcome": "team1"},
            register=((handle, "New"),),
        )
        answers = at_once([lambda draft=draft: send(real, draft)] * 3)
        assert sorted(map(status, answers), key=str) == [200, 200, 201], answers


def test_a_correction_and_a_game_that_register_one_player(memory: Ladder) -> None:
    send(memory, spades("g", "ac-bd", "2026-08-10 20:00"))
    just_before_the_write(memory, lambda: send(memory, replace(NEW, game_id="h", finished_at=at("2026-08-11 20:00"))))
    answer = correct(memory, result=NEW.result, register=NEW.register)
    assert (answer.status, answer.body["result"]["teams"]) == (200, [["a", "c"], ["b", "z"]])
    memory.rate()
    audit(memory)


@pytest.mark.parametrize(
    ("club", "name", "taken"),
    [("bern", "new  Z", True), ("bern", "Zoe", False), ("basel", "New Z", False)],
    ids=["the same", "another name", "another club"],
)
def test_somebody_else_registered_in_between_is_not_taken_for_the_new_player(
    memory: Ladder, club: str, name: str, taken: bool
) -> None:
    def register() -> None:
        people_use.put(memory.ctx, "z", club, people_use.PersonDraft(name), admin=False)

    just_before_the_write(memory, register)
    if taken:
        assert send(memory, NEW, "key").status == 201
    else:
        with pytest.raises(Problem) as refused:
            send(memory, NEW, "key")
        assert (refused.value.status, refused.value.code) == (409, "player-exists")
        assert send(memory, NEW, "key").status == 201, "the key is free again; who sends it again has been told"
    memory.rate()
    audit(memory)


def test_the_document_names_what_can_come() -> None:
    paths = openapi.document()["paths"]
    game = "/v1/pools/{pool}/games/{game}"
    answers = {
        path: set(paths[path][method]["responses"])
        for path, method in (("/v1/pools/{pool}/games", "post"), (f"{game}/void", "post"), (f"{game}/quits", "post"))
    }
    common = {"401", "403", "404", "409", "413", "422", "429", "500", "503"}
    assert answers == {
        "/v1/pools/{pool}/games": {"200", "201", "202"} | common,
        f"{game}/void": {"200", "202"} | common,
        f"{game}/quits": {"200", "201"} | common,
    }
    assert set(paths[game]["put"]["responses"]) >= {"200", "409", "412", "428", "503"}
