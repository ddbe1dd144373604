"""The lines of lists, written as text. One more game moves thousands of lines: as template macros each took 50 µs.

What recurs is made once: names with their links, figures, dates, words. The headings of the tables, and everything
around them, are in the templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar

from markupsafe import Markup, escape
from msgspec.json import encode as to_json

from shared.ledger.calendar import day_of, first_instant
from shared.ledger.lists import MAIN
from site_builder import charts
from site_builder.addresses import Addresses
from site_builder.figures import Figures, Row
from site_builder.views import LabelPage, Standing
from site_builder.words import Words

Around = tuple[Standing | None, Standing | None]
"""The lines next to a page of a list, on the pages before and after it."""
NOBODY: Around = (None, None)
Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")
_PLAIN = re.compile("[^&<>\"']*").fullmatch
MOST_REMEMBERED = 400_000
"""Beyond, a cache begins anew: a list of 100,000 players has as many names."""
DAY = 86_400_000_000
"""Microseconds in a day."""
SINCE = 10 * 366 * DAY
"""From 1980 on no zone has gone back over the date line: days follow each other everywhere."""


class _Days(NamedTuple):
    """The local days in a day of UTC."""

    until: int
    """When the first of them is over."""
    first: str
    then: str


class Written(NamedTuple):
    """Lines as a page holds them."""

    lines: Markup
    decimals: bool
    """Whether a rating among them is printed with one."""


class Remembered(dict[Key, Made], Generic[Key, Made]):
    """Texts by what they are made from. What is known is found without a call: every line of every list asks."""

    def __init__(self, make: Callable[[Key], Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Key) -> Made:
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        found = self[key] = self._make(key)
        return found


class Lines:
    """Writes lines of one pool's lists in one language."""

    def __init__(self, figures: Figures, to: Addresses, rules: Any) -> None:
        self.figures, self.words, self.to = figures, figures.words, to
        self.rules = rules
        """The rule system's template, for its further figures."""
        self._names = Remembered(self._named)
        self._sparks = Remembered(_spark)
        self._days = Remembered(self._days_in)
        self._gains = Remembered(self._gained)
        self._moves = Remembered(self._movement)
        self._figures: dict[Hashable, str] = {}
        gettext = self.words.gettext
        # Not in an f-string: none looks there for texts to translate.
        provisional, inactive = gettext("provisional"), gettext("inactive")
        self._provisional, self._inactive = f" <i>{provisional}</i>", f" <i>{inactive}</i>"
        up, down = gettext("up %(places)s"), gettext("down %(places)s")
        self._new, self._up, self._down = gettext("new"), up, down
        self._former = gettext("a former player")

    def rows(self, standings: Sequence[Standing]) -> list[Row]:
        """A short list as templates print it that write their lines themselves."""
        paired = self.figures.paired
        printed = zip(standings, self.figures.printed(standings, NOBODY), strict=True)
        return [Row(line, *rating, str(line.index) if paired else "") for line, rating in printed]

    def of_list(
        self, standings: Sequence[Standing], around: Around = NOBODY, *, variant: str = MAIN, movement: bool
    ) -> Written:
        """``list.html``: place, name, rating, movement, further figures, games, record, last game, one year."""
        heads = [
            (
                figure["key"],
                f'<td class="{"" if figure["key"] == variant else "w3"}{" n" if figure.get("number") else ""}">',
            )
            for figure in self.rules.list_figures
        ]
        names, days, sparks, out = self._names, self._days, self._sparks, []
        ratings, decimals = self._ratings(standings, around)
        for line, rating in zip(standings, ratings, strict=True):
            if (at := line.last_played) is None:
                last = ""
            elif at < SINCE:
                last = self._day_at(at)
            else:
                until, last, then = days[at // DAY]
                if at >= until:
                    last = then
            drawn = sparks[line.spark] if line.spark else ""
            out.append(
                f"<tr><td>{'–' if line.place is None else line.place}</td>"
                f'<th scope="row">{names[line.player, line.name, line.linked]}{self._tags(line)}</th>'
                f"{rating}{self._moved(line) if movement else ''}{self._cells(heads, variant, line) if heads else ''}"
                f'<td class="n w1">{line.games}</td><td class="n w2">{line.won}–{line.drawn}–{line.lost}</td>'
                f'<td class="n w3 soft">{last}</td><td class="w2">{drawn}</td></tr>\n'
            )
        return Written(Markup("".join(out)), decimals)  # noqa: S704 - names are escaped, the rest is ours

    def of_label(self, page: LabelPage, label: str, *, tallied: bool, points: bool) -> Written:
        """``label.html``: the list of a club, group, tournament or year. In a tournament its own count comes first.

        Args:
            tallied: somebody has scored for and against.
            points: what was counted beside is shown.
        """
        tournament = label.startswith("tournament:")
        aside = " w1" if tallied and tournament else ""
        names, gains, out = self._names, self._gains, []
        places = page.places or [line.place for line in page.standings]
        ratings, decimals = self._ratings(page.standings, page.around, aside, " w1")
        for line, place, rating in zip(page.standings, places, ratings, strict=True):
            own = line.labels.get(label) or (line.games, line.won, line.drawn, line.lost)
            tally = f'<td class="n {"" if tournament else "w2"}">{own[4]}–{own[5]}</td>' if tallied else ""
            beside = f'<td class="n w1">{own[7]}</td>' if points and tournament else ""
            gained = gains[own[6]] if len(own) > 6 else ""
            out.append(
                f"<tr><td>{'–' if place is None else place}</td>"
                f'<th scope="row">{names[line.player, line.name, line.linked]}{self._tags(line)}</th>'
                f'{rating}<td class="n{aside}">{own[0]}</td>'
                f'<td class="n w1">{own[1]}–{own[2]}–{own[3]}</td>{tally}{beside}'
                f'<td class="n w2">{gained}</td></tr>\n'
            )
        return Written(Markup("".join(out)), decimals)  # noqa: S704 - names are escaped, the rest is ours

    def of_month(self, standings: Sequence[Standing]) -> list[tuple[str, Markup, bool]]:
        """``month.html``: the list at the end of a month, by the list apart (or ``""``) in which they stand."""
        names, found = self._names, []
        ratings, decimals = self._ratings(standings, NOBODY)
        lines = zip(standings, ratings, strict=True)
        for apart, group in groupby(lines, lambda entry: entry[0].apart):
            out = [
                f"<tr><td>{'–' if line.place is None else line.place}</td>"
                f'<th scope="row">{names[line.player, line.name, line.linked]}{self._tags(line)}</th>'
                f'{rating}{self._moved(line)}<td class="n w1">{line.games}</td>'
                f'<td class="n w2">{line.won}–{line.drawn}–{line.lost}</td></tr>\n'
                for line, rating in group
            ]
            found.append((apart, Markup("".join(out)), decimals))  # noqa: S704 - names are escaped, the rest is ours
        return found

    def _ratings(
        self, standings: Sequence[Standing], around: Around, more: str = "", second: str = ""
    ) -> tuple[list[str], bool]:
        """The cells of the ratings, and whether there are decimals among them. ``more``, ``second``: further classes
        of the first number's cell and of the second's."""
        printed = self.figures.printed(standings, around)
        cells = [
            f'<td class="r d{more}">{whole}<small>{fraction}</small></td>'
            if fraction
            else f'<td class="r{more}">{whole}</td>'
            for whole, fraction in printed
        ]
        if self.figures.paired:
            pairs = zip(cells, standings, strict=True)
            cells = [f'{cell}<td class="r2{second}">{line.index}</td>' for cell, line in pairs]
        return cells, any(fraction for _, fraction in printed)

    def _tags(self, line: Standing) -> str:
        """What is said behind a name."""
        if not (line.provisional or line.inactive):
            return ""
        return (self._provisional if line.provisional else "") + (self._inactive if line.inactive else "")

    def _named(self, key: tuple[str, str, bool]) -> str:
        """A player by handle, name, and whether he has a page."""
        player, name, linked = key
        if not linked:
            return f'<span dir="auto">{_escaped(name or self._former)}</span>'
        return f'<a href="{_escaped(self.to.player(player))}" dir="auto">{_escaped(name)}</a>'

    def _cells(self, heads: Sequence[tuple[str, str]], variant: str, line: Standing) -> str:
        """The further figures as the rule system writes them. They follow from the player's figures and his tier."""
        band = self.figures.band_of(line.rating) if self.figures.pool.bands else None
        known = (to_json(line.figures), variant, None if band is None else band.lower)  # a figure may be any JSON value

        found = self._figures.get(known)
        if found is None:
            if len(self._figures) >= MOST_REMEMBERED:
                self._figures.clear()
            cells = (f"{head}{escape(self.rules.figure(key, line))}</td>" for key, head in heads)
            found = self._figures[known] = "".join(cells)
        return found

    def _moved(self, line: Standing) -> str:
        """The cell that says how somebody moved since the last closing."""
        if line.previous is None:
            return f'<td class="m soft">{self._new}</td>'
        moved = 0 if line.place is None or line.previous_place is None else line.previous_place - line.place
        if line.previous[0] == line.rating:
            return self._moves[moved]
        gained = self.figures.delta(line.previous, (line.rating, line.index), 0)
        return self._movement(moved, f"<b>{gained}</b>" if gained else "")

    def _movement(self, moved: int, gained: str = "") -> str:
        if not moved:
            return f'<td class="m">{gained}</td>'
        way, text = (" up", self._up) if moved > 0 else (" down", self._down)
        return f'<td class="m{way}">{text % {"places": abs(moved)}} {gained}</td>'

    def _day_at(self, at: int) -> str:
        return self.words.short_day(day_of(at, self.figures.pool.time_zone))

    def _days_in(self, utc_day: int) -> _Days:
        """The local days in one of UTC, which is numbered from 1970."""
        begin, end = utc_day * DAY, (utc_day + 1) * DAY
        zone = self.figures.pool.time_zone
        last = day_of(end - 1, zone)
        until = max(begin, first_instant(last, zone))
        return _Days(until, self._day_at(begin), self.words.short_day(last))

    def _gained(self, points: int) -> str:
        return self.figures.delta((0, 0), (points, 0))


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
    return text if text.isalnum() or _PLAIN(text) else str(escape(text))


def _spark(ratings: tuple[int, ...]) -> str:
    path = charts.sparkline(ratings)
    return f'<svg aria-hidden="true"><path d="{path}"/></svg>' if path else ""
