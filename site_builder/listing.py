"""The rows of a list in its order, with places: of all players, or from the last list and those who changed.

Both give the same rows. One more game changes four of 100,000 players: sorting and comparing all of them took longer
than writing the pages whose rows moved.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from shared.ledger import calendar, lists
from shared.ratings.base import Settings
from shared.store.pools import Pool
from shared.usecases.published import MAIN, ListRow
from site_builder.collation import collation_key
from site_builder.placed import mains

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

    def applied(
        self, last: Sequence[ListRow], touched: Collection[str], fresh: Mapping[str, ListRow]
    ) -> tuple[list[ListRow], Mapping[str, ListRow | None]]:
        """The last list with new rows in place of some; and those rows, None for who has left the list.

        Args:
            last: as ``of_all`` or this gave it, by the same settings. Its rows that only give way are given their new
                places themselves: making thousands anew is slower, and so is telling afterwards who did change.
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
        left = [number for number, row in enumerate(last) if row.sid in gone]
        mains_were = mains(last)
        stay = [*last]
        for number in reversed(left):
            del stay[number]
        staying = mains_were - sum(number < mains_were for number in left)
        if not staying or self._is_new(stay[0]):
            # Nobody else is left: then the new stand in the main list.
            rows = self.of_all({row.sid: row for row in stay} | new)
            return rows, dict.fromkeys(gone) | {row.sid: row for row in rows}
        main, apart = stay[:staying], stay[staying:]
        found: dict[str, ListRow | None] = dict.fromkeys(gone)
        inserted = list[ListRow]()
        for sid, row in new.items():
            variant = self._variant(row)
            put = found[sid] = replace(row, variant=variant, place=row.place if variant == MAIN else None)
            insort(main if variant == MAIN else apart, put, key=self._key)
            if variant == MAIN:
                inserted.append(put)
        moved = [number for number in left if number < mains_were]
        moved += [bisect_left(main, self._key(put), key=self._key) for put in inserted]
        if moved:
            self._place(main, min(moved), max(moved) if len(main) == mains_were else len(main))
        return main + apart, found

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
            if row.place != place:
                row.place = place
            elif number > last:
                return

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


def changes(old: Mapping[str, ListRow], new: Mapping[str, ListRow], among: Iterable[str] | None = None) -> list[Change]:
    """Rows that say something else than before, come, or gone. Another place alone is none: a game gives one to
    thousands who did not play.

    Args:
        old: rows by player.
        among: players beyond whom there is none; everybody when left out.
    """
    found: list[Change] = []
    for sid in among if among is not None else dict.fromkeys((*new, *old)):
        was, row = old.get(sid), new.get(sid)
        if was is not row and (was is None or row is None or not _only_moved(was, row)):
            found.append((was, row))
    return found


def players_of(changed: Iterable[Change]) -> tuple[set[str], set[str]]:
    """Who came into the list, and who has gone from it."""
    came, gone = set[str](), set[str]()
    for was, row in changed:
        if was is None and row is not None:
            came.add(row.sid)
        if row is None and was is not None:
            gone.add(was.sid)
    return came, gone


def handles_of(changed: Iterable[Change]) -> tuple[set[str], set[str]]:
    """Handles that are in the list and were not, and the other way round."""
    were = {was.handle for was, _ in changed if was is not None}
    are = {row.handle for _, row in changed if row is not None}
    return are - were, were - are


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
