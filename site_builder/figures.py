"""Ratings as readers see them: columns, rounding, movement. Knows no rule system by name, only what each presents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from shared.ratings.base import MILLION, Rating
from site_builder.views import Band, PoolView, Standing
from site_builder.words import MINUS, Words


def N_(text: str) -> str:  # noqa: N802 - gettext's name for "translate later"
    """Mark a text for extraction."""
    return text


COLUMNS = {"rating": N_("Rating"), "rank": N_("Rank"), "index": N_("Index")}


class Row(NamedTuple):
    """A line of a list, ready to print."""

    standing: Standing
    rating: str
    """Its whole part when there is a ``fraction``."""
    fraction: str
    """``.4`` where neighbours would print alike, else empty."""
    second: str
    """The second number of a rating (an index); empty when there is none."""


class Figures:
    """How one pool's ratings are written in one language."""

    def __init__(self, pool: PoolView, words: Words) -> None:
        self.pool, self.words = pool, words
        system = pool.rule_system
        one = system.present(MILLION, 0)
        self.columns: tuple[str, ...] = tuple(one)
        self.unit = MILLION // int(one[self.columns[0]])
        """What a shown point is, in the units of the fold."""
        self.decimals = system.shown_decimals

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Names of the columns of a rating."""
        return tuple(self.words.gettext(COLUMNS.get(c, c.capitalize())) for c in self.columns)

    @property
    def paired(self) -> bool:
        """True when a rating is two numbers."""
        return len(self.columns) > 1

    def first(self, rating: int, decimals: int | None = None) -> str:
        """The rating, or the rank."""
        digits = self.decimals if decimals is None else decimals
        if rating >= 0 and digits < 2:  # as ``plain_number`` below, in a tenth of its time: every line of a list asks
            if not digits:
                return str((2 * rating + self.unit) // (2 * self.unit))
            whole, tenth = divmod((20 * rating + self.unit) // (2 * self.unit), 10)
            return f"{whole}{self.words.decimal}{tenth}"
        return self.words.scaled(rating, self.unit, digits, group=False)

    def show(self, rating: Rating, decimals: int | None = None) -> str:
        """``1536``; ``562 / 411``."""
        text = self.first(rating[0], decimals)
        return f"{text} / {rating[1]}" if self.paired else text

    def exact(self, rating: Rating) -> str:
        """With three decimals where there are any."""
        return self.show(rating, 3 if self.unit > 1 else 0)

    def delta(self, before: Rating | None, after: Rating, decimals: int = 1) -> str:
        """The change of the first number, with its sign; ``+12.4``."""
        if before is None:
            return ""
        gained = after[0] - before[0]
        if decimals == 1 and self.unit > 1 and abs(gained) < 1_000 * self.unit:  # as below, in a tenth of its time
            whole, tenth = divmod((20 * abs(gained) + self.unit) // (2 * self.unit), 10)
            sign = "±" if not whole and not tenth else MINUS if gained < 0 else "+"
            return f"{sign}{whole}{self.words.decimal}{tenth}"
        return self.words.scaled(after[0] - before[0], self.unit, decimals if self.unit > 1 else 0, sign=True)

    def change(self, before: Rating | None, after: Rating, decimals: int = 1) -> str:
        """The change of both numbers: ``+42 / −42``."""
        text = self.delta(before, after, decimals)
        if before is None or not self.paired:
            return text
        moved = after[1] - before[1]
        return f"{text} / {'+' if moved > 0 else MINUS if moved < 0 else '±'}{abs(moved)}"

    def printed(
        self, standings: Sequence[Standing], around: tuple[Standing | None, Standing | None]
    ) -> list[tuple[str, str]]:
        """The ratings of a list, whole part and the rest with its mark (``.4``, or nothing). Neighbours that print
        alike but differ get one decimal more."""
        before, after = around
        line = [s.rating for s in standings]
        if before is not None:
            line.insert(0, before.rating)
        if after is not None:
            line.append(after.rating)
        begin = 0 if before is None else 1
        unit, mark = self.unit, self.words.decimal
        plain = not self.decimals and min(line, default=0) >= 0
        if plain:  # as ``first``, which every line of every list would call
            shown = [str((2 * rating + unit) // (2 * unit)) for rating in line]
        else:
            shown = [self.first(rating) for rating in line]
        alike = set[int]()
        if unit > 1:
            for one, two, text, other in zip(line, line[1:], shown, shown[1:], strict=False):
                if text == other and one != two:
                    alike.add(one)
                    alike.add(two)
        found = []
        for rating, text in zip(line, shown, strict=True):
            if plain and rating in alike:
                whole, tenth = divmod((20 * rating + unit) // (2 * unit), 10)
                found.append((str(whole), f"{mark}{tenth}"))
            elif plain:
                found.append((text, ""))
            else:
                more = self.first(rating, self.decimals + 1) if rating in alike else text
                whole_, _, rest = more.partition(mark)
                found.append((whole_, rest and mark + rest))
        return found[begin : begin + len(standings)]

    def band_name(self, band: Band) -> str:
        """A tier's name in the language, else in the first there is."""
        return band.names.get(self.words.language) or next(iter(band.names.values()), "")

    def band_label(self, band: Band) -> str:
        """The same with its symbol."""
        return f"{band.symbol} {self.band_name(band)}".strip()

    def band_of(self, rating: int) -> Band | None:
        """The tier of a rating."""
        for band in self.pool.bands:
            if (band.lower is None or rating >= band.lower) and (band.upper is None or rating < band.upper):
                return band
        return None
