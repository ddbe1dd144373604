"""The lines of lists, written as text. One more game moves thousands of lines: as template macros each took 50 µs.

What recurs is made once: names with their links, figures, dates, words. The headings of the tables, and everything
around them, are in the templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

from markupsafe import Markup, escape

from shared.ledger.calendar import day_of
from site_builder import charts
from site_builder.addresses import Addresses
from site_builder.figures import Figures, Row
from site_builder.views import Standing
from site_builder.words import Words

Found = TypeVar("Found")
_PLAIN = re.compile("[^&<>\"']*").fullmatch
MOST_REMEMBERED = 400_000
"""Beyond, a cache begins anew: a list of 100,000 players has as many names."""


class Remembered(dict[Hashable, Any]):
    """Values by what they are made from."""

    def of(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """The value of a key, made when it is not known."""
        found: Found | None = self.get(key)
        if found is None:
            if len(self) >= MOST_REMEMBERED:
                self.clear()
            found = self[key] = make()
        return found


class Lines:
    """Writes lines of one pool's lists in one language."""

    def __init__(self, figures: Figures, to: Addresses, rules: Any) -> None:
        self.figures, self.words, self.to = figures, figures.words, to
        self.rules = rules
        """The rule system's template, for its further figures."""
        self._names, self._figures, self._sparks = Remembered(), Remembered(), Remembered()
        self._days, self._gains = Remembered(), Remembered()
        gettext = self.words.gettext
        provisional, inactive = gettext("provisional"), gettext("inactive")  # not in an f-string: none looks there
        self._provisional, self._inactive = f" <i>{provisional}</i>", f" <i>{inactive}</i>"
        self._new, self._up, self._down = gettext("new"), gettext("up %(places)s"), gettext("down %(places)s")
        self._former = gettext("a former player")

    def rows(
        self,
        standings: Sequence[Standing],
        around: tuple[Standing | None, Standing | None] = (None, None),
        label: str | None = None,
    ) -> list[Row]:
        """What lines print. ``label``: the club, group, tournament or year whose record they show."""
        figures, sparks, mark = self.figures, self._sparks, self.words.decimal
        found = []
        for line, rating in zip(standings, figures.printed(standings, around), strict=True):
            whole, _, fraction = rating.partition(mark)
            record: Sequence[int] = line.labels.get(label, ()) if label else ()
            _, won, drawn, lost = record[:4] or (line.games, line.won, line.drawn, line.lost)
            moved = 0 if line.place is None or line.previous_place is None else line.previous_place - line.place
            changed = line.previous is not None and line.previous[0] != line.rating
            spark = line.spark
            found.append(
                Row(
                    line,
                    whole,
                    fraction and mark + fraction,
                    str(line.index) if figures.paired else "",
                    moved,
                    figures.delta(line.previous, (line.rating, line.index), 0) if changed else "",
                    line.previous is None,
                    f"{won}–{drawn}–{lost}",
                    "" if line.last_played is None else self._last(line.last_played),
                    sparks.of(spark, lambda spark=spark: charts.sparkline(spark)) if spark else "",  # type: ignore[misc]
                )
            )
        return found

    def of_list(self, rows: Sequence[Row], variant: str, *, movement: bool) -> Markup:
        """``list.html``: place, name, rating, movement, further figures, games, record, last game, one year."""
        shown = [
            (
                figure["key"],
                f'<td class="{"" if figure["key"] == variant else "w3"}{" n" if figure.get("number") else ""}">',
            )
            for figure in self.rules.list_figures
        ]
        paired, out = self.figures.paired, []
        for row in rows:
            line = row.standing
            second = f'<td class="r2">{row.second}</td>' if paired else ""
            cells = "".join(f"{head}{self._figure(key, line)}</td>" for key, head in shown)
            spark = f'<svg aria-hidden="true"><path d="{row.spark}"/></svg>' if row.spark else ""
            out.append(
                f"{self._begin(line)}{_rating(row)}{second}{self._moved(row) if movement else ''}{cells}"
                f'<td class="n w1">{line.games}</td><td class="n w2">{row.record}</td>'
                f'<td class="n w3 soft">{row.last}</td><td class="w2">{spark}</td></tr>\n'
            )
        return Markup("".join(out))  # noqa: S704 - names are escaped, the rest is ours

    def of_label(self, rows: Sequence[Row], label: str, *, tallied: bool, points: bool) -> Markup:
        """``label.html``: the list of a club, group, tournament or year. In a tournament its own count comes first.

        Args:
            tallied: somebody has scored for and against.
            points: what was counted beside is shown.
        """
        tournament = label.startswith("tournament:")
        aside = " w1" if tallied and tournament else ""
        paired, gains, out = self.figures.paired, self._gains, []

        def delta(gained: int) -> str:
            return self.figures.delta((0, 0), (gained, 0))

        for row in rows:
            line = row.standing
            own = line.labels.get(label) or (line.games, line.won, line.drawn, line.lost)
            second = f'<td class="r2 w1">{row.second}</td>' if paired else ""
            tally = f'<td class="n {"" if tournament else "w2"}">{own[4]}–{own[5]}</td>' if tallied else ""
            beside = f'<td class="n w1">{own[7]}</td>' if points and tournament else ""
            gained = gains.of(own[6], partial(delta, own[6])) if len(own) > 6 else ""
            out.append(
                f'{self._begin(line)}{_rating(row, aside)}{second}<td class="n{aside}">{own[0]}</td>'
                f'<td class="n w1">{row.record}</td>{tally}{beside}<td class="n w2">{gained}</td></tr>\n'
            )
        return Markup("".join(out))  # noqa: S704 - names are escaped, the rest is ours

    def of_month(self, rows: Sequence[Row]) -> Markup:
        """``month.html``: the list at the end of a month."""
        paired, out = self.figures.paired, []
        for row in rows:
            second = f'<td class="r2">{row.second}</td>' if paired else ""
            out.append(
                f"{self._begin(row.standing)}{_rating(row)}{second}{self._moved(row)}"
                f'<td class="n w1">{row.standing.games}</td><td class="n w2">{row.record}</td></tr>\n'
            )
        return Markup("".join(out))  # noqa: S704 - names are escaped, the rest is ours

    def _begin(self, line: Standing) -> str:
        """Place and name."""
        place = "–" if line.place is None else line.place
        name = self._names.of((line.player, line.name, line.linked), lambda: self._named(line))
        tags = self._provisional if line.provisional else ""
        if line.inactive:
            tags += self._inactive
        return f'<tr><td>{place}</td><th scope="row">{name}{tags}</th>'

    def _named(self, line: Standing) -> str:
        if not line.linked:
            return f'<span dir="auto">{_escaped(line.name or self._former)}</span>'
        return f'<a href="{_escaped(self.to.player(line.player))}" dir="auto">{_escaped(line.name)}</a>'

    def _figure(self, key: str, line: Standing) -> str:
        """A further figure as its rule system writes it. It follows from the player's figures and his tier."""
        band = self.figures.band_of(line.rating) if self.figures.pool.bands else None
        known = (key, repr(line.figures), None if band is None else band.lower)  # a figure may be any JSON value
        return self._figures.of(known, lambda: str(escape(self.rules.figure(key, line))))

    def _moved(self, row: Row) -> str:
        """The cell that says how somebody moved."""
        gained = f"<b>{row.gained}</b>" if row.gained else ""
        if row.new:
            return f'<td class="m soft">{self._new}{gained}</td>'
        if not row.moved:
            return f'<td class="m">{gained}</td>'
        way, text = (" up", self._up) if row.moved > 0 else (" down", self._down)
        return f'<td class="m{way}">{text % {"places": abs(row.moved)}} {gained}</td>'

    def _last(self, at: int) -> str:
        return self._days.of(at, lambda: self.words.short_day(day_of(at, self.figures.pool.time_zone)))


def pager(words: Words, number: int, pages: int, address: Callable[[int], str]) -> Markup:
    """Links to the pages of a list: first, last, and those around page ``number``; empty where there is one only."""
    if pages < 2:
        return Markup("")
    gettext = words.gettext
    name, back, on = gettext("Pages"), gettext("Back"), gettext("On")
    out = [f'<nav class="pager" aria-label="{name}"><ul>\n']
    if number > 1:
        out.append(f'<li><a href="{escape(address(number - 1))}" rel="prev">{back}</a></li>')
    shown = sorted({1, pages, *range(max(number - 2, 1), min(number + 2, pages) + 1)})
    for before, page in zip([0, *shown], shown, strict=False):
        if before and page - before > 1:
            out.append("<li><span>…</span></li>")
        link = f'<a href="{escape(address(page))}">{page}</a>'
        here = f'<b aria-current="page">{page}</b>'
        out.append(f"<li>{here if page == number else link}</li>\n")
    if number < pages:
        out.append(f'<li><a href="{escape(address(number + 1))}" rel="next">{on}</a></li>')
    return Markup("".join([*out, "</ul></nav>\n"]))  # noqa: S704 - addresses are escaped, the rest is ours


def _escaped(text: str) -> str:
    """As ``escape``, which makes an object of every text, most of which have nothing to be escaped."""
    return text if _PLAIN(text) else str(escape(text))


def _rating(row: Row, more: str = "") -> str:
    """The cell of the rating."""
    if row.fraction:
        return f'<td class="r d{more}">{row.rating}<small>{row.fraction}</small></td>'
    return f'<td class="r{more}">{row.rating}</td>'
