"""The rows of a list in its order, with places: of all players, or from the last list and those who changed.

Both give the same rows. One more game changes four of 100,000 players: sorting and comparing all of them took longer
than writing the pages whose rows moved.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace

from shared.ledger import calendar, lists
from shared.ratings.base import Settings
from shared.store.pools import Pool
from shared.usecases.published import MAIN, ListRow
from site_builder.collation import collation_key

Change = tuple[ListRow | None, ListRow | None]
"""A row as it was and as it is; None: it was not there, or is not there any more."""


class Listing:
    """Orders the rows of a pool's list as of an instant."""

    def __init__(self, pool: Pool, now: int) -> None:
        self.pool, self.system = pool, pool.system
        self.settings: Settings = pool.settings
        self.today = calendar.day_of(now, pool.time_zone).toordinal()
        self.language = pool.languages[0] if pool.languages else "en"

    def of_all(self, rows: Mapping[str, ListRow]) -> list[ListRow]:
        """Everybody: the main list, then those apart, each in the list's order."""
        named = {sid: (row.name, row.handle) for sid, row in rows.items()}
        states = {sid: row.state for sid, row in rows.items()}
        order = lists.ordered(self.system, states, named, self._collate)
        variants = lists.variants(self.system, self.settings, states, order, self.today)
        main = [sid for sid in order if variants[sid] == MAIN]
        places = lists.places(self.system, states, main)
        apart = [sid for sid in order if variants[sid] != MAIN]
        return [_standing(rows[sid], variants[sid], places.get(sid)) for sid in (*main, *apart)]

    def applied(self, last: Sequence[ListRow], touched: Collection[str], fresh: Mapping[str, ListRow]) -> list[ListRow]:
        """The last list with new rows in place of some.

        Args:
            last: as ``of_all`` or this gave it, by the same settings.
            touched: players whose rows are not what they were.
            fresh: their rows; who has none is not in the list any more.
        """
        gone, new = {*touched}, dict(fresh)
        hide: int | None = getattr(self.settings, "hide_after_days", None)
        if hide is not None:
            due = self.today - hide
            late = [row for row in last if 0 < (row.state.last_result or 0) < due and row.variant in (MAIN, "new")]
            new |= {row.sid: row for row in late if row.sid not in gone}
            gone |= {row.sid for row in late}
        everybody = {row.sid: row for row in last if row.sid not in gone} | new
        variants = {sid: self._variant(row) for sid, row in new.items()}
        stay = [row for row in last if row.sid not in gone]
        mains = sum(map(MAIN.__eq__, map(attrgetter("variant"), stay)))
        if not mains or self._is_new(stay[0]):
            return self.of_all(everybody)  # nobody else is left: then the new stand in the main list
        positions = [number for number, row in enumerate(last) if row.sid in gone and row.variant == MAIN]
        main, apart = stay[:mains], stay[mains:]
        for sid, row in new.items():
            insort(main if variants[sid] == MAIN else apart, replace(row, variant=variants[sid]), key=self._key)
        inserted = {sid for sid, variant in variants.items() if variant == MAIN}
        positions += [number for number, row in enumerate(main) if row.sid in inserted]
        if positions:
            same_length = len(main) == sum(map(MAIN.__eq__, map(attrgetter("variant"), last)))
            self._place(main, min(positions), max(positions) if same_length else len(main))
        return main + [_standing(row, row.variant, None) for row in apart]

    def _place(self, main: list[ListRow], first: int, last: int) -> None:
        """Places from one number on: of all rows up to another, and on while places differ from what they were."""
        key = self.system.place_key
        before = main[first - 1] if first else None
        previous, place = (key(before.state), before.place) if before is not None else (None, 0)
        for number in range(first, len(main)):
            row = main[number]
            here = key(row.state)
            if here != previous:
                previous, place = here, number + 1
            if number > last and row.place == place:
                return
            main[number] = _standing(row, MAIN, place)

    def _variant(self, row: ListRow) -> str:
        """In which list a player stands where there are others than new ones."""
        apart = lists.why_apart(row.state, self.settings, self.today)
        return apart if apart is not None else "new" if self._is_new(row) else MAIN

    def _is_new(self, row: ListRow) -> bool:
        return self.system.figures(row.state, self.settings).get("class") == "new"

    def _collate(self, name: str) -> object:
        return collation_key(name, self.language)

    def _key(self, row: ListRow) -> tuple[object, ...]:
        return (self.system.order_key(row.state), self._collate(row.name), row.handle)


def _standing(row: ListRow, variant: str, place: int | None) -> ListRow:
    """The row there; itself where it stood there before."""
    return row if row.place == place and row.variant == variant else replace(row, variant=variant, place=place)


def changes(old: Sequence[ListRow], new: Sequence[ListRow]) -> list[Change]:
    """Rows that say something else than before, come, or gone. Another place alone is none: a game gives one to
    thousands who did not play."""
    before = {row.sid: row for row in old}
    found: list[Change] = []
    for row in new:
        was = before.pop(row.sid, None)
        if was is row or (was is not None and _only_moved(was, row)):
            continue
        found.append((was, row))
    return [*found, *((was, None) for was in before.values())]


def _only_moved(was: ListRow, row: ListRow) -> bool:
    """Whether one row was made from the other by giving it a place."""
    return (
        was.state is row.state
        and was.name is row.name
        and was.handle is row.handle
        and was.clubs is row.clubs
        and was.spark is row.spark
        and was.previous is row.previous
        and was.variant == row.variant
        and was.previous_place == row.previous_place
        and was.month_place == row.month_place
    )
