"""Of several things that one replay brings in, a player's journal names what can have moved him."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared.ledger.causes import MOST
from shared.store import notes
from shared.usecases.drafts import GameDraft
from site_builder import publisher
from tests.integration.ladder import DAY, Ladder, at, audit, small_steps, spades
from tests.integration.memory import MemoryBucket
from tests.integration.test_changes_visible import text_of
from tests.integration.test_publisher_random import with_site

X1, X2, Y1, Y2 = (f"2026-11-{day} 20:00" for day in ("03", "10", "04", "11"))
CORRECTED, VOIDED, LATE = ("corrected", "bern", "x1"), ("voided", "bern", "x1"), ("finished", "bern", "late")


@pytest.fixture(
    params=[{}, {"IN_PLACE": 3}, {"LONG_REPLAY": 1}],
    ids=["in-place", "new-generation", "from-the-ledger"],
    autouse=True,
)
def limits(request: pytest.FixtureRequest) -> Iterator[None]:
    with small_steps(**request.param):
        yield


def two_groups() -> Ladder:
    """A to D play x1 and x2, E to H y1 and y2; all is rated."""
    ladder = Ladder.in_memory()
    ladder.open_pool(rules=[{"from": "2026-01-01"}])
    ladder.register(*"abcdefghijkl")
    for game, teams, when in (("x1", "ac-bd", X1), ("x2", "ad-bc", X2), ("y1", "eg-fh", Y1), ("y2", "eh-fg", Y2)):
        ladder.submit(spades(game, teams, when))
        ladder.rate()
    return ladder


def turned(teams: str = "ac-bd") -> dict[str, Any]:
    """The result of x1 the other way round."""
    one, two = teams.split("-")
    return {"result": {"teams": [list(one), list(two)], "outcome": "team2"}}


def correct_x1(ladder: Ladder) -> None:
    ladder.correct("x1", **turned())


def send_late(ladder: Ladder) -> None:
    ladder.submit(spades("late", "ef-gh", "2026-11-01 20:00"))


def causes(ladder: Ladder, players: str) -> dict[str, list[tuple[str, str, str]]]:
    """Player → the causes of his newest entry."""
    view = ladder.cursor().view
    found = {sid: notes.read_journal(ladder.ctx.table, "p", f"sid-{sid}", view) for sid in players}
    return {sid: entries[0].causes for sid, entries in found.items() if entries}


def each(players: str, *values: Any) -> dict[str, list[Any]]:
    """The same of all these players."""
    return {player: list(values) for player in players}


@pytest.mark.parametrize(("first", "second"), [(correct_x1, send_late), (send_late, correct_x1)])
def test_two_groups_that_never_meet_each_have_their_own_cause(
    first: Callable[[Ladder], None], second: Callable[[Ladder], None]
) -> None:
    ladder = two_groups()
    first(ladder)
    second(ladder)
    ladder.rate()
    assert causes(ladder, "abcdefgh") == {**each("abcd", CORRECTED), **each("efgh", LATE)}
    audit(ladder)


def test_a_players_page_names_the_correction_that_moved_him() -> None:
    ladder, bucket = two_groups(), MemoryBucket()
    with_site(ladder, bucket)
    send_late(ladder)
    correct_x1(ladder)
    ladder.rate()
    publisher.publish(ladder.ctx, "p")

    def page(player: str) -> str:
        return text_of(bucket.objects[f"p/players/{player}/index.html"])

    corrected = "the game of 3 November 2026 was corrected: the rating went from 1550.0 to 1500.0. 2 games were"
    assert corrected in page("a")
    assert "late" not in page("a")
    assert "the game of 1 November 2026 came in late: the rating went from" in page("e")
    assert "corrected" not in page("e")


def test_who_meets_one_that_was_moved_has_his_cause_and_ones_own_comes_first() -> None:
    ladder = two_groups()
    for game, teams, when in (
        ("meet", "ai-jk", "2026-11-12 20:00"),  # I, J and K only know the first group
        ("both", "el-ik", "2026-11-13 20:00"),  # L knows both, and the second only by E
        ("last", "jl-bf", "2026-11-14 20:00"),
    ):
        ladder.submit(spades(game, teams, when))
        ladder.rate()
    correct_x1(ladder)
    send_late(ladder)
    ladder.rate()
    found = causes(ladder, "abcdefghijkl")
    assert found == {
        **each("abcd", CORRECTED),
        **each("efgh", LATE),
        **each("ijkl", CORRECTED, LATE),
    }


def test_who_was_taken_out_of_a_game_by_its_correction_was_in_it() -> None:
    ladder = two_groups()
    send_late(ladder)
    ladder.correct("x1", **turned("ic-bd"))
    ladder.rate()
    found = causes(ladder, "abcdi")
    assert found == each("abcd", CORRECTED), "I had no rated game before"


def test_a_void_is_told_as_one_whatever_came_before_it_and_a_late_game_as_late() -> None:
    ladder = two_groups()
    correct_x1(ladder)
    ladder.void("x1")
    send_late(ladder)
    ladder.correct("late", result={"teams": [["e", "f"], ["g", "h"]], "outcome": "team2"})
    ladder.rate()
    assert causes(ladder, "abcdefgh") == {**each("abcd", VOIDED), **each("efgh", LATE)}


def test_a_game_that_came_in_time_is_no_cause_and_its_points_are_no_corrections() -> None:
    def told(*new: GameDraft) -> dict[str, list[notes.Entry]]:
        ladder = two_groups()
        ladder.submit(spades("meet", "ae-bg", "2026-11-12 20:00"))
        ladder.rate()
        for draft in new:
            ladder.submit(draft)
        ladder.now = at("2026-11-22 12:00")
        send_late(ladder)
        ladder.rate()
        audit(ladder)
        view = ladder.cursor().view
        found = {sid: notes.read_journal(ladder.ctx.table, "p", f"sid-{sid}", view) for sid in "abcdefgh"}
        return {sid: entries for sid, entries in found.items() if entries}

    alone = told()
    assert {sid: [entry.causes for entry in entries] for sid, entries in alone.items()} == each("abefgh", [LATE])
    assert told(spades("new", "ac-bg", "2026-11-15 20:00"), spades("more", "ad-eh", "2026-11-16 20:00")) == alone


def test_a_correction_that_changes_no_rating_is_no_cause() -> None:
    ladder = two_groups()
    ladder.submit(spades("meet", "ae-bg", "2026-11-12 20:00"))
    ladder.rate()
    ladder.correct("meet", group="tuesday")
    send_late(ladder)
    ladder.rate()
    assert causes(ladder, "abcdefgh") == each("abefgh", LATE)


def test_a_merge_and_a_late_game() -> None:
    ladder, bucket = two_groups(), MemoryBucket()
    with_site(ladder, bucket)
    ladder.submit(spades("x0", "ic-bd", "2026-11-02 20:00"))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    send_late(ladder)
    ladder.merge("i", into="a")
    ladder.rate()
    merged = ("merge", "", "")
    assert causes(ladder, "abcdefgh") == {**each("abcd", merged), **each("efgh", LATE)}
    publisher.publish(ladder.ctx, "p")
    page = text_of(bucket.objects["p/players/b/index.html"])
    assert "two entries of one player were joined: the rating went from" in page
    ladder.submit(spades("later", "ef-gh", "2026-11-02 20:00"))
    ladder.unmerge("i")
    ladder.rate()
    found = causes(ladder, "abcdefgh")
    assert found["e"] == [("finished", "bern", "later")]
    assert found["a"] == found["b"] == [("unmerge", "", "")]


def test_rules_that_change_reach_everybody_from_their_first_day_on() -> None:
    ladder = two_groups()
    ladder.open_pool(rules=[{"from": "2026-01-01"}, {"from": "2026-11-09", "k": 50}])
    ladder.correct("y1", **turned("eg-fh"))
    ladder.rate()
    found = causes(ladder, "abcdefgh")
    assert found == {
        **each("abcd", ("rules", "", "")),
        **each("efgh", ("corrected", "bern", "y1")),
    }


def test_of_many_causes_a_few_are_kept() -> None:
    ladder = two_groups()
    many = [f"late{number}" for number in range(3 * MOST)]
    for number, game in enumerate(many):
        ladder.submit(spades(game, "ac-bd", at("2026-10-01 20:00") + number * DAY))
    send_late(ladder)
    ladder.rate()
    found = causes(ladder, "abcdefgh")
    assert found["e"] == [LATE]
    assert found["a"] == [("finished", "bern", game) for game in many[:MOST]]


def test_a_change_too_small_for_a_tenth_is_told_with_the_decimals_that_show_it() -> None:
    ladder, bucket = Ladder.in_memory(), MemoryBucket()
    with_site(ladder, bucket)
    ladder.open_pool(rules=[{"from": "2026-01-01", "k": 0.01}])
    ladder.register(*"abcd")
    ladder.submit(spades("x1", "ac-bd", X1))
    ladder.rate()
    correct_x1(ladder)
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    page = text_of(bucket.objects["p/players/a/index.html"])
    assert "was corrected: the rating went from 1500.01 to 1499.99." in page
