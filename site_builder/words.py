"""Texts, numbers and dates in a reader's language."""

from __future__ import annotations

import datetime as dt
import gettext
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from shared.ledger.calendar import day_of, zone
from shared.ledger.order import to_datetime

LOCALES = Path(__file__).parent / "locales"
MINUS = "−"
NANO = 10**9
"""Computed numbers (expected scores and the like) are shown from their ninth decimal."""
FIRST_OF_MONTH = {"fr": "1er", "it": "1º"}
"""CLDR does not know that these two count the first day."""


@cache
def _cldr() -> dict[str, dict[str, Any]]:
    data: dict[str, dict[str, Any]] = json.loads((LOCALES / "cldr.json").read_text("utf-8"))
    return data


def languages() -> tuple[str, ...]:
    """The languages the pages can be written in; English first."""
    return tuple(sorted(_cldr(), key=lambda code: (code != "en", code)))


def plain_number(value: int, scale: int, decimals: int) -> str:
    """``value / scale`` rounded half away from zero, exactly: no binary fractions in between."""
    tenth = 10**decimals
    magnitude = (2 * abs(value) * tenth + scale) // (2 * scale)
    whole, rest = divmod(magnitude, tenth)
    text = f"{whole}.{rest:0{decimals}d}" if decimals else str(whole)
    return "-" + text if value < 0 and magnitude else text


class Words:
    """One language. Make it with ``words``."""

    def __init__(self, language: str) -> None:
        known = language if language in _cldr() else "en"
        self.language = known
        """What the page says it is written in."""
        self._data = _cldr()[known]
        self.name: str = self._data["name"][0].upper() + self._data["name"][1:]
        self.decimal: str = self._data["decimal"]
        self.months_short: list[str] = self._data["months_short"]
        self._texts: gettext.NullTranslations = (
            gettext.NullTranslations()
            if known == "en"
            else gettext.translation("messages", str(LOCALES), languages=[known])
        )
        self.gettext: Callable[[str], str] = self._texts.gettext
        self.ngettext: Callable[[str, str, int], str] = self._texts.ngettext

    # -- numbers -----------------------------------------------------------------------------------------------------
    def number(self, value: float, decimals: int = 0, sign: bool = False, group: bool = True) -> str:
        """A number with a fixed count of decimals; with ``sign`` a plus before positive ones."""
        if isinstance(value, int):
            return self.scaled(value, 1, decimals, sign, group)
        return self.scaled(round(value * NANO), NANO, decimals, sign, group)

    def scaled(self, value: int, scale: int, decimals: int = 0, sign: bool = False, group: bool = True) -> str:
        """``value / scale``, exactly rounded."""
        text = plain_number(value, scale, decimals)
        negative = text.startswith("-")
        whole, _, rest = text.removeprefix("-").partition(".")
        if group and len(whole) > 4:
            parts = []
            while whole:
                parts.append(whole[-3:])
                whole = whole[:-3]
            whole = self._data["group"].join(reversed(parts))
        text = whole + (self._data["decimal"] + rest if rest else "")
        if negative:
            return MINUS + text
        return "+" + text if sign and text.strip("0.,") else ("±" + text if sign else text)

    def trim(self, value: float) -> str:
        """A number with as many decimals as it needs, at most six."""
        text = self.number(value, 6, group=False)
        return text.rstrip("0").rstrip(str(self._data["decimal"]))

    def percent(self, share: float, decimals: int = 0) -> str:
        """A share of 1 in per cent."""
        number = self.number(share * 100, decimals)
        return number + str(self._data["percent"]).lstrip("#,0.")

    # -- dates -------------------------------------------------------------------------------------------------------
    def _day(self, day: dt.date, pattern: str) -> str:
        first = FIRST_OF_MONTH.get(self.language)
        return (
            str(self._data[pattern])
            .replace("MMMM", "\0")
            .replace("MMM", "\1")
            .replace("d", first if first and day.day == 1 else str(day.day))
            .replace("y", str(day.year))
            .replace("\0", self._data["months"][day.month - 1])
            .replace("\1", self._data["months_short"][day.month - 1])
        )

    def day(self, day: dt.date) -> str:
        """``3 November 2026``"""
        return self._day(day, "long")

    def iso_day(self, day: str) -> str:
        """The same from ``2026-11-03``."""
        return self._day(dt.date.fromisoformat(day), "long")

    def short_day(self, day: dt.date) -> str:
        """``3 Nov 2026``"""
        return self._day(day, "short")

    def day_month(self, day: dt.date) -> str:
        """``3 November``"""
        return self._day(day, "day_month")

    def short_month(self, month: str) -> str:
        """``Nov``, and ``2026`` for January: under a chart."""
        year, number = month.split("-")
        return year if number == "01" else self.months_short[int(number) - 1]

    def month(self, month: str) -> str:
        """``November 2026`` from ``2026-11``, as a title."""
        text = self.month_within(month)
        return text[0].upper() + text[1:]

    def month_within(self, month: str) -> str:
        """The same within a sentence: ``novembre 2026``."""
        year, number = month.split("-")
        name = self._data["months_alone"][int(number) - 1]
        return str(self._data["month"]).replace("LLLL", "MMMM").replace("y", year).replace("MMMM", name)

    def date_at(self, at: int, time_zone: str) -> str:
        """The day of an instant there, long."""
        return self.day(day_of(at, time_zone))

    def time_at(self, at: int, time_zone: str) -> str:
        """The time of an instant there, ``19:40``."""
        return to_datetime(at).astimezone(zone(time_zone)).strftime("%H:%M")

    def moment_at(self, at: int, time_zone: str) -> str:
        """Day and time: ``3 November 2026, 19:40``."""
        return f"{self.date_at(at, time_zone)}, {self.time_at(at, time_zone)}"

    # -- lists -------------------------------------------------------------------------------------------------------
    def conjunction(self, items: list[str | Markup]) -> Markup:
        """``a, b and c``; texts that are not markup are escaped."""
        parts = [Markup.escape(item) for item in items]
        if len(parts) < 2:
            return Markup("").join(parts)
        return Markup("{} {} {}").format(Markup(", ").join(parts[:-1]), self.gettext("and"), parts[-1])


def _(text: str) -> str:  # pragma: no cover - marks texts for extraction
    return text


AND = _("and")


@cache
def words(language: str) -> Words:
    """The words of a language; English where there is no translation."""
    return Words(language)
