"""A request dies at a write, every one in turn; the client sends it again and it has happened exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.problems import Problem
from shared.usecases import games
from shared.usecases.drafts import Answer, GameDraft
from tests.integration.ladder import SECOND, Ladder, at, audit, small_steps, spades
from tests.integration.test_crash_rating import crashes

NEW = replace(spades("x", "ac-bn", "2026-08-10 20:00", minutes=40), register=(("n", "Nora"),), distinct=False)


def evening() -> Ladder:
    """A game is rated, another is open."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool()
    ladder.register(*"abcdef")
    ladder.submit(spades("g1", "ac-bd", "2026-07-03 20:00", minutes=40))
    line_up = {"teams": [["a", "b"], ["c", "d"]]}
    ladder.submit(GameDraft(game_id="live", started_at=at("2026-08-20 11:30"), line_up=line_up))
    ladder.rate()
    return ladder


def submit(ladder: Ladder) -> Answer:
    return ladder.submit(NEW, idempotency_key="k1", body_digest="d")


def submit_nameless(ladder: Ladder) -> Answer:
    return ladder.submit(replace(NEW, game_id=None), idempotency_key="k1", body_digest="d")


def correct(ladder: Ladder) -> Answer:
    changes = GameDraft(round=3, given=frozenset({"round"}))
    pool = ladder.pool()
    return games.correct(ladder.ctx, pool, "bern", ("bern", "g1"), changes, reason="round", if_match=1)


def void(ladder: Ladder) -> Answer:
    return ladder.void("g1")


def leave_table(ladder: Ladder) -> Answer:
    return games.quit(ladder.ctx, ladder.pool(), "bern", ("bern", "live"), "a", at("2026-08-20 11:45"))


REQUESTS: dict[str, tuple[Callable[[Ladder], Answer], str, int]] = {
    "submit": (submit, "x", 1),
    "submit without an id": (submit_nameless, "", 1),
    "correct": (correct, "g1", 2),
    "void": (void, "g1", 2),
    "quit": (leave_table, "live", 2),
}


def again(ladder: Ladder, request: Callable[[Ladder], Answer]) -> Answer:
    """What a client does that was told nothing: the same request, later when it is told that the first still runs."""
    try:
        return request(ladder)
    except Problem as problem:
        if problem.code != "still-running" or problem.retry_after is None:
            raise
    ladder.now += 40 * SECOND
    return request(ladder)


@pytest.mark.parametrize("name", REQUESTS)
def test_sent_again_it_has_happened_once(name: str) -> None:
    request, game_id, revision = REQUESTS[name]
    with small_steps():
        whole = evening()
        first = request(whole)
        whole.rate()
        audit(whole)
        count = 0
        for ladder, where in crashes(evening, request):
            ladder.rate()
            answer = again(ladder, request)
            assert answer.status in (200, first.status), where
            assert answer.body["game_id"] == first.body["game_id"]
            assert answer.body["revision"] == revision
            assert request(ladder).status in (200, first.status)
            ladder.rate()
            audit(ladder)
            assert sorted(ladder.ratings().values()) == sorted(whole.ratings().values()), where
            assert ladder.cursor().position == whole.cursor().position, where
            stored = games.load(ladder.ctx, ladder.pool(), ("bern", game_id or first.body["game_id"]))
            assert len(stored.revisions) == revision
            count += 1
        assert count >= 2


def test_a_mark_of_a_request_that_died_holds_for_as_long_as_it_could_have_run() -> None:
    (ladder,) = [dead for dead, where in crashes(evening, submit) if where == "after write 1"]
    assert [pk[:5] for pk, _ in ladder.items() if pk.startswith(("IDEM#", "GAME#p#bern#x"))] == ["IDEM#"]
    ladder.now += 30 * SECOND
    with pytest.raises(Problem) as refused:
        submit(ladder)
    assert (refused.value.status, refused.value.code, refused.value.retry_after) == (409, "still-running", 2)
    ladder.now += 10 * SECOND
    assert submit(ladder).status == 201
