"""Lists as two columns, rows and places, and which of their pages differ from what they were.

Most rows of a list of 100,000 are the same object as in the last one, so what can be told without looking into them is
told so: column against column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import attrgetter, contains, eq, is_not, ne, or_
from typing import NamedTuple

from shared.ratings.base import RuleSystem
from shared.usecases.published import MAIN, ListRow
from site_builder import site

VARIANTS = (MAIN, "new", "inactive", "unlisted", "established")
"""The list, and the lists apart. Then there is one for each figure that the rule system lists players by."""
FEW = 8
"""Labels looked for one after another sooner than all at once."""

_NO_KEY = object()
ESTABLISHED = 100
"""The index of who is established; it falls no further."""


class Placed(NamedTuple):
    """Rows in the order of a list, with their places in it; None: without."""

    rows: Sequence[ListRow] = ()
    places: Sequence[int | None] = ()

    def only(self, chosen: Iterable[bool]) -> Placed:
        """The rows chosen, one answer for each."""
        mask = list(chosen)
        return Placed(list(compress(self.rows, mask)), list(compress(self.places, mask)))


def as_listed(rows: Sequence[ListRow]) -> Placed:
    """All rows of a published list with their places in the main list. These are what they are now: the next
    publication gives the same rows others."""
    return Placed(rows, list(map(attrgetter("place"), rows)))


def numbered(keys: Iterable[object]) -> list[int | None]:
    """Places by equal keys: 1, 2, 2, 4."""
    found: list[int | None] = []
    previous: object = _NO_KEY
    place = 0
    for number, here in enumerate(keys, start=1):
        if here != previous:
            previous, place = here, number
        found.append(place)
    return found


def mains(rows: Sequence[ListRow]) -> int:
    """How many rows are in the main list, which comes first."""
    return bisect_left(rows, 1, key=lambda row: row.variant != MAIN)


def established(main: Sequence[ListRow]) -> Iterable[bool]:
    """Who of the main list is established. Nobody is where ratings have no index: there it is 0."""
    if not main or not main[0].state.index:
        return repeat(False, len(main))
    return map(eq, map(attrgetter("state.index"), main), repeat(ESTABLISHED))


def of_variant(whole: Placed, variant: str) -> Placed:
    """The list, or a list apart; the established, and those listed by a figure, are in the main list."""
    end = mains(whole.rows)
    if variant in VARIANTS and variant not in (MAIN, "established"):
        apart = Placed(whole.rows[end:], whole.places[end:])
        return apart.only(row.variant == variant for row in apart.rows)
    main = Placed(whole.rows[:end], whole.places[:end])
    if variant != "established":
        return main
    return main.only(established(main.rows))


def of_labels(whole: Placed, labels: Iterable[str], members: Mapping[str, int]) -> dict[str, Placed]:
    """The players of each of these clubs, groups, tournaments and years, in the order and with the places of the whole
    list.

    Args:
        members: how many each has.
    """
    wanted = set(labels)
    of_all = {label: whole for label in wanted if members.get(label, 0) == len(whole.rows)}
    wanted -= of_all.keys()
    if not wanted:
        return of_all
    told = list(map(attrgetter("state.labels"), whole.rows))
    if len(wanted) <= FEW:
        return of_all | {label: whole.only(map(contains, told, repeat(label))) for label in wanted}
    rows: dict[str, tuple[list[ListRow], list[int | None]]] = {label: ([], []) for label in wanted}
    for row, place, of_row in zip(whole.rows, whole.places, told, strict=True):
        for label in of_row:
            if label in rows:
                rows[label][0].append(row)
                rows[label][1].append(place)
    return of_all | {label: Placed(*columns) for label, columns in rows.items()}


def among_themselves(part: Placed, system: RuleSystem) -> Placed:
    """Some rows of the whole list with places of their own. Who shares a place there shares one here."""
    if None not in part.places and not any(map(eq, part.places, part.places[1:])):
        return Placed(part.rows, list(range(1, len(part.rows) + 1)))
    found: list[int | None] = []
    before: ListRow | None = None
    there: int | None = None
    place = 0
    for number, (row, listed) in enumerate(zip(part.rows, part.places, strict=True), start=1):
        if listed is None or there is None:  # of those listed apart nothing is known yet
            shared = before is not None and system.place_key(row.state) == system.place_key(before.state)
        else:
            shared = listed == there
        if not shared:
            place = number
        found.append(place)
        before, there = row, listed
    return Placed(part.rows, found)


def changed_pages(old: Placed, new: Placed, shown: Callable[[ListRow], object] | None = None) -> list[int]:
    """Numbers (from 1) of the pages whose rows differ, or whose number of pages does.

    Args:
        shown: what the list shows of a row beside the place; all of it when left out.
    """
    pages = site.pages_needed(len(new.rows))
    if pages != site.pages_needed(len(old.rows)):
        return list(range(1, pages + 1))
    return _pages_around(_spots(old, new, shown), pages)


def _spots(old: Placed, new: Placed, shown: Callable[[ListRow], object] | None) -> Iterator[int]:
    """Numbers (from 0) of the rows that differ, of each page as many as decide which pages do."""
    size = site.PAGE_SIZE
    maybe = bytes(map(or_, map(is_not, old.rows, new.rows), map(ne, old.places, new.places)))
    number = maybe.find(1)
    while number >= 0:
        one, two = old.rows[number], new.rows[number]
        following = number + 1
        if old.places[number] != new.places[number] or (shown(one) != shown(two) if shown is not None else one != two):
            yield number
            if number % size:  # of the page nothing more is asked but whether its last row differs
                following = max(following, number - number % size + size - 1)
        number = maybe.find(1, following)
    yield from range(*sorted((len(old.rows), len(new.rows))))


def pages_that_moved(old: Placed, new: Placed, pages: Iterable[int]) -> set[int]:
    """Those pages (numbered from 1) whose first or last row is another player's, or has another place: they differ,
    however little is printed of a row."""
    size, end = site.PAGE_SIZE, min(len(old.rows), len(new.rows))

    def moved(number: int) -> bool:
        return number < end and (
            old.places[number] != new.places[number] or old.rows[number].sid != new.rows[number].sid
        )

    return {page for page in pages if moved((page - 1) * size) or moved(page * size - 1)}


def pages_of(spots: Iterable[int], rows: int) -> list[int]:
    """The pages of a list of so many rows on which these (numbered from 0) stand, and those next to them."""
    return _pages_around(spots, site.pages_needed(rows))


def _pages_around(spots: Iterable[int], pages: int) -> list[int]:
    """The pages of rows, and those next to them: a rating is printed with a decimal when its neighbour's prints alike,
    also on the other page."""
    size = site.PAGE_SIZE
    found = {around // size + 1 for spot in spots for around in (spot - 1, spot, spot + 1) if around >= 0}
    return sorted(page for page in found if page <= pages)
