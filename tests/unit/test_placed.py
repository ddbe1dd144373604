"""Lists as columns: places, members, and which pages differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.ledger import lists
from shared.ratings import rule_system
from shared.ratings.base import PlayerState
from shared.usecases.published import MAIN, ListRow
from site_builder import placed, site
from site_builder.inventory import members_after
from site_builder.placed import Placed, among_themselves, as_listed, changed_pages, numbered, of_labels, of_variant

SIZE = 3
SPADES = rule_system("spades")
LABELS = ["club:bern", "club:uri", "year:2026"]


@pytest.fixture(autouse=True, scope="module")
def _short_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "PAGE_SIZE", SIZE)
        yield


def rows_of(ratings: list[int], apart: int, labels: list[set[str]]) -> list[ListRow]:
    """A list with places, some rows apart behind it."""
    rows = [
        ListRow(f"s{n}", f"h{n}", f"N{n}", (), PlayerState(rating, labels=dict.fromkeys(sorted(own), (1,))))
        for n, (rating, own) in enumerate(zip(ratings, labels, strict=False))
    ]
    main, rest = sorted(rows[apart:], key=lambda row: -row.state.rating), rows[:apart]
    places = lists.places(SPADES, {row.sid: row.state for row in main}, [row.sid for row in main])
    return [replace(row, place=places[row.sid]) for row in main] + [replace(row, variant="new") for row in rest]


everybody = st.builds(
    rows_of,
    st.lists(st.integers(1, 6), max_size=14),
    st.integers(0, 3),
    st.lists(st.sets(st.sampled_from(LABELS)), min_size=14, max_size=14),
)


def counted(rows: list[ListRow]) -> dict[str, int]:
    """The members of every label that has any."""
    every = {label: sum(label in row.state.labels for row in rows) for label in LABELS}
    return {label: players for label, players in every.items() if players}


@given(everybody)
def test_who_shares_a_place_in_the_whole_list_shares_one_in_a_part(rows: list[ListRow]) -> None:
    for label, part in of_labels(as_listed(rows), LABELS, counted(rows)).items():
        members = [row for row in rows if label in row.state.labels]
        assert list(part.rows) == members
        expected = lists.places(SPADES, {row.sid: row.state for row in members}, [row.sid for row in members])
        assert among_themselves(part, SPADES) == Placed(part.rows, [expected[row.sid] for row in members])


@given(everybody)
def test_many_labels_are_found_as_few_are(rows: list[ListRow]) -> None:
    few = of_labels(as_listed(rows), LABELS, {})
    many = of_labels(as_listed(rows), [*LABELS, *(f"group:{number}" for number in range(placed.FEW))], counted(rows))
    assert {label: Placed(*map(list, many[label])) for label in few} == few


@given(everybody)
def test_every_row_is_in_one_list(rows: list[ListRow]) -> None:
    whole = as_listed(rows)
    parts = [of_variant(whole, variant) for variant in placed.VARIANTS if variant != "established"]
    assert sorted(row.sid for part in parts for row in part.rows) == sorted(row.sid for row in rows)
    assert all(row.variant == MAIN and row.place == place for row, place in zip(*parts[0], strict=True))
    assert of_variant(whole, "established") == Placed([], [])
    assert of_variant(whole, "skill") == parts[0]


def test_the_established_have_an_index_of_100() -> None:
    rows = [ListRow(sid, sid, sid, (), PlayerState(500, index)) for sid, index in zip("abc", (100, 200, 100))]  # noqa: B905
    rows.append(ListRow("d", "d", "d", (), PlayerState(500, 100), "inactive"))
    assert [row.sid for row in of_variant(as_listed(rows), "established").rows] == ["a", "c"]


@given(everybody, st.lists(st.sampled_from(["new", "away", "said", "same"]), max_size=20), st.randoms())
def test_pages_differ_where_a_row_or_a_place_does(rows: list[ListRow], steps: list[str], dice: object) -> None:
    """And the page next to it, when it is at the edge: neighbours decide how a rating is printed."""
    after = [*rows]
    for number, step in enumerate(steps):
        spot = dice.randrange(len(after) + 1)  # type: ignore[attr-defined]
        if step == "new":
            after.insert(spot, ListRow(f"n{number}", "h", "N", (), PlayerState(3)))
        elif spot < len(after):
            if step == "away":
                after.pop(spot)
            else:
                after[spot] = replace(after[spot], name="other" if step == "said" else after[spot].name)
    old, new = as_listed(rows), Placed(after, numbered(row.state.rating for row in after))
    pages = site.pages_needed(len(after))
    if pages != site.pages_needed(len(rows)):
        assert changed_pages(old, new) == list(range(1, pages + 1))
        return
    told_old = list(zip(old.rows, old.places, strict=True))
    told_new = list(zip(new.rows, new.places, strict=True))
    spots = [n for n in range(max(len(old.rows), len(new.rows))) if told_old[n : n + 1] != told_new[n : n + 1]]
    expected = {near // SIZE + 1 for spot in spots for near in (spot - 1, spot, spot + 1) if near >= 0}
    assert changed_pages(old, new) == sorted(page for page in expected if page <= pages)
    by_name = changed_pages(old, new, lambda row: (row.sid, row.name))
    assert set(by_name) <= set(changed_pages(old, new))


def test_what_a_list_does_not_show_changes_no_page() -> None:
    one = [
        ListRow(sid, sid, sid, (), PlayerState(rating), place=n)
        for n, (sid, rating) in enumerate(zip("abcdef", range(9, 3, -1), strict=True), 1)
    ]
    two = [*one[:4], replace(one[4], spark=(1, 2)), one[5]]
    assert changed_pages(as_listed(one), as_listed(two)) == [2]
    assert changed_pages(as_listed(one), as_listed(two), lambda row: row.sid) == []


@given(everybody, everybody)
def test_members_are_counted_from_changes(rows: list[ListRow], others: list[ListRow]) -> None:
    were, are = {row.sid: row for row in rows}, {row.sid: row for row in others}
    changed = [(were.get(sid), are.get(sid)) for sid in were | are]
    assert members_after(counted(rows), changed) == counted(others)


def test_pages_between_two_that_change_places_have_moved() -> None:
    def row(sid: str, rating: int) -> ListRow:
        return ListRow(sid, sid, sid, (), PlayerState(rating))

    before = [row(sid, 100 - n) for n, sid in enumerate("abcdefghijkl")]
    after = [*before[:2], row("k", 97), *before[2:10], before[11]]
    old, new = (Placed(rows, list(range(1, 13))) for rows in (before, after))
    assert changed_pages(old, new) == [1, 2, 3, 4]
    assert placed.pages_that_moved(old, new, [1, 2, 3, 4]) == {1, 2, 3, 4}
    same = [*before[:4], replace(before[4], name="other"), *before[5:]]
    assert changed_pages(old, Placed(same, old.places)) == [2]
    assert placed.pages_that_moved(old, Placed(same, old.places), [2]) == set(), "who knows what is printed of it"
