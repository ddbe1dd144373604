"""What one cell says: whole numbers, days, times of day, and what Excel made of them. Pure; every pattern is linear."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import NamedTuple

from shared.imports.text import search_key
from shared.ledger.calendar import BUDDHIST

MAX_SCORE = 1_000_000
FIRST_YEAR, LAST_YEAR = 1800, 2399
PIVOT = 70
"""Two-digit years: 70 to 99 are 1970 to 1999, 00 to 69 are 2000 to 2069."""
ORDERS = ("dmy", "mdy", "ymd")
SERIALS = range(36_526, 73_051)
"""Excel's numbers for the days 2000-01-01 to 2099-12-31."""
_SERIAL_EPOCH = dt.date(1899, 12, 30)


class Problem(ValueError):
    """Why a cell cannot be read."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


_MONTH_WORDS = (
    "jan january januar janner janv janvier gen gennaio",
    "feb february februar febr fevr fev fevrier febbraio",
    "mar march marz mrz mars marzo",
    "apr april avr avril aprile",
    "may mai mag maggio",
    "jun june juni juin giu giugno",
    "jul july juli juil juillet lug luglio",
    "aug august aout ago agosto",
    "sep sept september septembre set sett settembre",
    "oct october okt oktober octobre ott ottobre",
    "nov november novembre",
    "dec december dez dezember decembre dic dicembre",
)
_MONTHS: Mapping[str, int] = {word: n for n, words in enumerate(_MONTH_WORDS, 1) for word in words.split()}

_DAY_WORD = re.compile(r"(\d{1,2})(?:er|°|º)?\.?[ \-/.]?([^\W\d_]{3,10})\.?(?:[ \-/.]{1,2}(\d{4}|\d{2}))?")
"""``03. Feb``, ``3-Feb``, ``03. Februar 2025``."""
_WORD_DAY = re.compile(r"([^\W\d_]{3,10})\.?[ \-/.](\d{1,4})(?:,? (\d{4}))?")
"""``Feb 03``, ``Feb-25``, ``Feb 3, 2025``."""
_NUMERIC = re.compile(r"\d{1,2}([./\-])\d{1,2}(?:\1(?:\d{4}|\d{2})?)")
"""``03.02.``, ``3/2/2025``."""
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_TIME = re.compile(r"\d{1,4}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?")
_POWER = re.compile(r"[+-]?\d{1,20}(?:[.,]\d{1,20})?[eE][+-]?\d{1,4}")
_PLAIN_POWER = re.compile(r"\d+e\d+")
_ERROR = re.compile(
    r"#(?:#+|N/A|NV|N/D|(?:REF|BEZUG|RIF|NAME|NOM|NOME|VALUE|WERT|VALEUR|VALORE|DIV/0|NUM|ZAHL|NOMBRE)[!?])"
)
_ERROR_LATE = re.compile(r"#(?:NULL|NUL|NULLO|SPILL|CALC)!")


def excel_error(text: str) -> Problem | None:
    """The problem when the cell is an error value such as ``#REF!``, ``#NV`` or ``####``."""
    if text[:1] == "#" and (_ERROR.fullmatch(text) or _ERROR_LATE.fullmatch(text)):
        return Problem("excel-error", f"The cell shows the spreadsheet's error {text}, so what was meant is lost.")
    return None


def damage(text: str, *, is_id: bool = False) -> Problem | None:
    """What Excel made of a score, winner, round or id: a day, a time, a power of ten, an error; None when it is none.

    Args:
        text: the trimmed cell.
        is_id: lower-case powers without sign or point (``1e5``) are ids, and Excel does not write them.
    """
    if not text or len(text) > 40:
        return None
    if text[0] == "#":
        return excel_error(text)
    if len(text) == 5 and text.isascii() and text.isdigit() and int(text) in SERIALS:
        day = _SERIAL_EPOCH + dt.timedelta(days=int(text))
        return Problem("excel-date", f"{text} is how Excel stores the day {day}; type the value again, as text.")
    if _POWER.fullmatch(text) and not (is_id and _PLAIN_POWER.fullmatch(text)):
        return Problem("excel-number", f'"{text}" is a number cut short to a power of ten; type all digits, as text.')
    if _TIME.fullmatch(text):
        return Problem("excel-time", f'"{text}" is a time of day, perhaps made from a result; type it again, as text.')
    if _ISO.fullmatch(text) or _NUMERIC.fullmatch(text) or _has_month(text):
        return Problem("excel-date", f'"{text}" is a day, made by the spreadsheet; type the value again, as text.')
    return None


def _has_month(text: str) -> bool:
    match = _DAY_WORD.fullmatch(text)
    if match:
        return search_key(match[2]) in _MONTHS
    match = _WORD_DAY.fullmatch(text)
    return match is not None and search_key(match[1]) in _MONTHS


_WHOLE = re.compile(r"\d{1,15}")
_WHOLE_POINT = re.compile(r"(\d{1,15})[.,]0{1,2}")
_THOUSANDS = re.compile(r"\d{1,3}(?:['’\u00a0\u202f ]\d{3}){1,4}")
_AMBIGUOUS = re.compile(r"\d{1,3}(?:[.,]\d{3}){1,4}")
_FRACTION = re.compile(r"\d{0,15}[.,]\d{1,30}")


def whole(text: str, most: int = MAX_SCORE) -> int:
    """A whole number from 0 to ``most``.

    ``3,0`` and ``3.0`` are 3, for Excel's sake; ``2'500`` and ``2 500`` are 2500; ``2.500`` is refused, since it is
    2500 to some and 2.5 to others; and so is all that is negative, a fraction, not a number, or made by Excel. With an
    apostrophe before it, as our exports mark a number of five digits that could be Excel's day, it is what it says.

    Raises:
        Problem: ``negative``, ``not-whole``, ``ambiguous-number``, ``out-of-range``, ``not-a-number``, ``excel-...``.
    """
    if text[:1] == "'" and _WHOLE.fullmatch(text[1:]):
        text = text[1:]
    elif broken := damage(text):
        raise broken
    if not text.isascii() and not _THOUSANDS.fullmatch(text) and text[:1] != "−":
        raise Problem("not-a-number", f'"{text[:40]}" is not a whole number.')
    match = _WHOLE_POINT.fullmatch(text)
    if match:
        value = int(match[1])
    elif _WHOLE.fullmatch(text):
        value = int(text)
    elif _THOUSANDS.fullmatch(text):
        value = int("".join(c for c in text if c.isdigit()))
    elif text[:1] in ("-", "−") and (_WHOLE.fullmatch(text[1:]) or _FRACTION.fullmatch(text[1:])):
        raise Problem("negative", f"{text[:40]} is negative; the least is 0.")
    elif _AMBIGUOUS.fullmatch(text):
        message = f"{text} is thousands to some and a fraction to others; write it without points and commas."
        raise Problem("ambiguous-number", message)
    elif _FRACTION.fullmatch(text):
        raise Problem("not-whole", f"{text[:40]} is not a whole number.")
    elif text.isdigit():
        raise Problem("out-of-range", f"{text[:20]}... is too large; the most is {most:,}.")
    elif text.casefold() in ("true", "false", "wahr", "falsch", "vrai", "faux", "vero", "falso"):
        raise Problem("not-a-number", f'"{text}" is yes or no, not a number.')
    else:
        raise Problem("not-a-number", f'"{text[:40]}" is not a whole number.')
    if value > most:
        raise Problem("out-of-range", f"{value} is too large; the most is {most:,}.")
    return value


class Day(NamedTuple):
    """A cell with a day, before the order of day and month is known."""

    readings: Mapping[str, dt.date]
    """The day in every order (``dmy``, ``mdy``, ``ymd``) in which it is one; only "" when it needs no order."""
    dotted: bool
    """With points, which everywhere stand between day, month and year."""
    clock: str
    """What stands behind the day, a time; or ""."""


_DAY = re.compile(r"(\d{1,4})([./\-])(\d{1,2})\2(\d{1,4})(?:(?:T|,? +)(.{1,40}))?")
_BASIC = re.compile(r"(\d{4})(\d{2})(\d{2})")
_AFTER_POINT = re.compile(r"\. +")
_WEEKDAY_WORDS = (
    "mo di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday",
    "lun mer jeu ven sam dim lundi mardi mercredi jeudi vendredi samedi dimanche",
    "gio sab dom lunedi martedi mercoledi giovedi venerdi sabato domenica",
)
_WEEKDAYS = frozenset(word for words in _WEEKDAY_WORDS for word in words.split())
"""Before a day, as Excel's long dates have them. Not ``mar``, which is also March."""
_FIRST_WORD = re.compile(r"([^\W\d_]{2,10})[.,]{0,2} +(?=\S)")


def read_day(text: str) -> Day:
    """The day a cell of a date column names: ISO, ``d.m.yyyy``, ``d/m/yyyy``, two-digit years, month names, weekdays.

    Raises:
        Problem: ``date``, ``date-without-year``, ``date-serial``, ``buddhist-year``, ``year``, ``excel-error``.
    """
    text = text[:100]
    word = _FIRST_WORD.match(text)
    if word and search_key(word[1]) in _WEEKDAYS:
        text = text[word.end() :]
    text = _AFTER_POINT.sub(".", text)
    match = _DAY.fullmatch(text)
    if match is None:
        return _odd_day(text)
    first, sign, second, third, clock = match.groups()
    clock = (clock or "").strip()
    numbers = {"dmy": (third, second, first), "mdy": (third, first, second), "ymd": (first, second, third)}
    if len(first) == 4 and len(third) <= 2:
        return Day({"": _day(int(first), int(second), int(third), text)}, False, clock)
    if len(third) == 4 and len(first) <= 2:
        del numbers["ymd"]
    elif len(third) > 2 or len(first) > 2 or (len(third) < 2 and len(first) < 2):
        raise Problem("date", f'"{text[:40]}" is not a day; write it like 2026-11-03.')
    readings: dict[str, dt.date] = {}
    refusal: Problem | None = None
    for order, (year, month, day) in numbers.items():
        if len(year) == 1:
            continue
        try:
            readings[order] = _day(_year(year), int(month), int(day), text)
        except Problem as problem:
            if refusal is None or problem.code != "date":
                refusal = problem
    if not readings:
        raise refusal or Problem("date", f'"{text[:40]}" is not a day; write it like 2026-11-03.')
    return Day(readings, sign == ".", clock)


def _year(text: str) -> int:
    """A year of four digits as it stands, of two by the pivot."""
    year = int(text)
    if len(text) == 2:
        year += 1900 if year >= PIVOT else 2000
    return year


def _day(year: int, month: int, day: int, text: str) -> dt.date:
    if year in BUDDHIST:
        hint = f"Year {year} looks like the Buddhist calendar; here it would be {year - 543}."
        raise Problem("buddhist-year", hint)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        hint = "the cell has only a time" if year == 1899 else f"years go from {FIRST_YEAR} to {LAST_YEAR}"
        raise Problem("year", f'"{text[:40]}" is in the year {year}; {hint}.')
    try:
        return dt.date(year, month, day)
    except ValueError:
        raise Problem("date", f'"{text[:40]}" is not a day of the calendar.') from None


def _odd_day(text: str) -> Day:
    broken = excel_error(text)
    if broken:
        raise broken
    match = _BASIC.fullmatch(text)
    if match:
        return Day({"": _day(int(match[1]), int(match[2]), int(match[3]), text)}, False, "")
    if text.isascii() and text.isdigit():
        message = f'"{text[:20]}" is a bare number; format the cell as a date, or write the day like 2026-11-03.'
        if len(text) == 5 and int(text) in SERIALS:
            day = _SERIAL_EPOCH + dt.timedelta(days=int(text))
            message = f"{text} is how Excel stores a day (perhaps {day}); format the cell as a date."
        raise Problem("date-serial", message)
    head, _, clock = text.partition(" at ") if " at " in text else _split_clock(text)
    words = _DAY_WORD.fullmatch(head)
    if words:
        month, number, year = _MONTHS.get(search_key(words[2])), words[1], words[3]
    else:
        words = _WORD_DAY.fullmatch(head)
        month = _MONTHS.get(search_key(words[1])) if words else None
        number, year = (words[2], words[3]) if words else ("", None)
    if (month and not year) or _NUMERIC.fullmatch(text):
        raise Problem("date-without-year", f'"{text[:40]}" has no year; write the day like 2026-11-03.')
    if month and year and len(number) <= 2:
        return Day({"": _day(_year(year), month, int(number), text)}, False, clock.strip())
    raise Problem("date", f'"{text[:40]}" is not a day; write it like 2026-11-03.')


def _split_clock(text: str) -> tuple[str, str, str]:
    """``3. Feb 2026 19:30`` in day and time."""
    head, sign, tail = text.rpartition(" ")
    return (head.rstrip(","), sign, tail) if ":" in tail else (text, "", "")


_CLOCK = re.compile(
    r"(\d{1,2})(?:[:.hH](\d{2}))?(?:[:.](\d{2})(?:[.,](\d{1,6}))?)?(?: ?(am|pm|a\.m\.|p\.m\.|uhr|h|heures|ore))?",
    re.IGNORECASE,
)


def read_clock(text: str) -> dt.time:
    """A time of day: ``19:30``, ``19.30``, ``19:30:15``, ``19h30``, ``7:30 pm``, ``20 Uhr``.

    Raises:
        Problem: ``time``, ``excel-error``.
    """
    broken = excel_error(text)
    if broken:
        raise broken
    wrong = Problem("time", f'"{text[:40]}" is not a time of day; write it like 19:30.')
    match = _CLOCK.fullmatch(text[:60])
    if match is None or (match[2] is None and match[5] is None):
        raise wrong
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    half = (match[5] or "").casefold().replace(".", "")
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise wrong
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        return dt.time(hour, minute, second, int((match[4] or "0").ljust(6, "0")))
    except ValueError:
        raise wrong from None


_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)? ?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)")


def read_instant(text: str) -> dt.datetime | None:
    """An ISO 8601 instant with an offset; None when the text has not that form (a local time, perhaps).

    Raises:
        Problem: ``date``, ``buddhist-year``, ``year``.
    """
    if not _INSTANT.fullmatch(text):
        return None
    _day(int(text[:4]), int(text[5:7]), int(text[8:10]), text)
    try:
        return dt.datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", "").upper())
    except ValueError:
        raise Problem("date", f'"{text[:40]}" is not an instant of the calendar.') from None


def local_readings(local: dt.datetime, zone: dt.tzinfo) -> tuple[dt.datetime, ...]:
    """The instants a local time means in a zone: one, two (the repeated hour, first before second), or none (a gap)."""
    first, second = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    if before is None or after is None or before == after:
        return (first,)
    return (first, second) if before > after else ()


def instant_text(instant: dt.datetime) -> str:
    """ISO 8601 with the zone's offset; in UTC where that offset has seconds (before zones were invented)."""
    offset = instant.utcoffset()
    if offset is None or offset.seconds % 60 or offset.microseconds:
        instant = instant.astimezone(dt.UTC)
    return instant.isoformat()
