"""The last list with changed rows put in is the list that all players give: the same rows, in the same order."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.ratings.base import PlayerState
from shared.usecases.published import MAIN, ListRow
from site_builder.listing import Listing, changes, handles_of, players_of
from tests.integration.ladder import Ladder, at

DAY = 86_400_000_000
TODAY = at("2026-11-20 12:00")
ORDINAL = 739_940
"""A day near that one; only differences count."""
SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    ("spades", {}),
    ("spades", {"minimum_games": 3, "hide_after_days": 30}),
    ("spades", {"hide_after_days": 10}),
    ("jass", {}),
    ("bridier", {}),
    ("bridier", {"minimum_games": 1}),
]


def states(system: str) -> st.SearchStrategy[PlayerState]:
    """Few ratings and names, so that places are shared and names decide."""
    ratings = st.sampled_from([500, 562, 700] if system == "bridier" else [100_000_000, 100_000_001, 130_000_000])
    index = st.sampled_from([100, 200, 500]) if system == "bridier" else st.just(0)
    games = st.integers(0, 4)
    return st.builds(
        lambda rating, index, games, days: PlayerState(
            rating, index, games, last_result=ORDINAL - days if games else None
        ),
        ratings,
        index,
        games,
        st.integers(0, 40),
    )


@pytest.mark.parametrize(("system", "settings"), SYSTEMS)
@hypothesis.settings(deadline=None)
@given(data=st.data())
def test_a_list_with_changes_is_the_list_of_all(system: str, settings: dict[str, Any], data: st.DataObject) -> None:
    pool = Ladder.in_memory().open_pool("p", system, [{"from": "2026-01-01", **settings}])
    names = st.sampled_from(["Anna", "anna", "Élodie", "Zoé", ""])

    def listing(days: int) -> Listing:
        found = Listing(pool, TODAY)
        found.today = ORDINAL + days
        return found

    def row(sid: str) -> ListRow:
        return ListRow(sid, f"h-{sid}", data.draw(names), (), data.draw(states(system)))

    everybody = {sid: row(sid) for sid in data.draw(st.sets(st.sampled_from("abcdefghijkl")))}
    last = listing(0).of_all(everybody)
    for days in sorted(data.draw(st.lists(st.integers(0, 40), max_size=3))):
        touched = data.draw(st.sets(st.sampled_from("abcdefghijkl"), max_size=3))
        fresh = {sid: row(sid) for sid in sorted(touched) if data.draw(st.booleans())}
        now = {row.sid: row for row in last if row.sid not in touched} | fresh
        before = {row.sid: replace(row) for row in last}
        expected = listing(days).of_all({sid: replace(row) for sid, row in now.items()})
        applied, put = listing(days).applied(last, touched, fresh)
        assert applied == expected
        after = {row.sid: row for row in applied}
        assert {sid: after.get(sid) for sid in put} == put
        assert {sid for sid in before.keys() | after.keys() if _told(before.get(sid)) != _told(after.get(sid))} <= {
            *put
        }
        assert all(one.place is None for one in applied if one.variant != MAIN)
        last = applied


def test_rows_that_say_the_same_are_the_same() -> None:
    """So that one more game does not look at 100,000 players."""
    pool = Ladder.in_memory().open_pool("p", "spades", [{"from": "2026-01-01"}])
    ratings = dict(zip("abcdefgh", range(800, 0, -100), strict=True))
    rows = {sid: ListRow(sid, sid, sid.title(), (), PlayerState(rating, 0, 1)) for sid, rating in ratings.items()}
    last = Listing(pool, TODAY).of_all(rows)
    moved = replace(rows["f"], state=PlayerState(450, 0, 2))
    before = {row.sid: row for row in last}
    now, put = Listing(pool, TODAY).applied(last, {"f"}, {"f": moved})
    assert put.keys() == {"f"}
    assert [row.sid for row in now] == list("abcdfegh")
    assert [row.place for row in now] == list(range(1, 9))
    assert {row.sid for row in now if not any(row is one for one in last)} == {"f"}, "the other only gave way"
    assert [row.sid for _, row in changes(before, {row.sid: row for row in now}) if row is not None] == ["f"]


def test_changes_tell_who_came_and_went() -> None:
    one, two, three = (ListRow(sid, sid, sid, (), PlayerState(1)) for sid in "abc")
    again = replace(two, name="B", place=2)
    assert changes(_by_sid(one, two), _by_sid(one, replace(two, place=2))) == []
    found = changes(_by_sid(one, two), _by_sid(again, three))
    assert found == [(two, again), (None, three), (one, None)]
    assert changes(_by_sid(one), _by_sid(one)) == []
    assert changes(_by_sid(one, two), _by_sid(again, three), ["c"]) == [(None, three)]
    assert players_of(found) == ({"c"}, {"a"})


def test_a_handle_that_goes_to_another_player_stays() -> None:
    """As when a person is merged into another and takes the name over."""
    one, two = (ListRow(sid, f"h-{sid}", sid, (), PlayerState(1)) for sid in "ab")
    found = changes(_by_sid(one, two), _by_sid(replace(two, handle="h-a")))
    assert handles_of(found) == (set(), {"h-b"})
    assert handles_of(changes({}, _by_sid(one, two))) == ({"h-a", "h-b"}, set())


def _by_sid(*rows: ListRow) -> dict[str, ListRow]:
    return {row.sid: row for row in rows}


def _told(row: ListRow | None) -> ListRow | None:
    """A row but for its place."""
    return None if row is None else replace(row, place=None)
