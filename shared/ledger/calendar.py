"""Months, days and closings in a pool's time zone. The calendar alone decides when a closing is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from functools import cache
from zoneinfo import ZoneInfo

from shared.ledger.order import to_datetime, to_instant

DAY = 86_400_000_000
"""Microseconds of a day without a change of clocks."""
BUDDHIST = range(2400, 2701)
"""Years refused with a hint: the Buddhist calendar counts 543 years more."""


@cache
def zone(name: str) -> ZoneInfo:
    """The time zone of that IANA name. Raises KeyError (ZoneInfoNotFoundError) when there is none."""
    return ZoneInfo(name)


def first_instant(day: dt.date, time_zone: str) -> int:
    """The first instant of a day there (where clocks skip midnight, the first that exists)."""
    local = dt.datetime(day.year, day.month, day.day, tzinfo=zone(time_zone))
    # A midnight in the gap of a clock change maps to the instant of the change; one that exists twice, to its first.
    return to_instant(local.astimezone(dt.UTC))


def day_of(at: int, time_zone: str) -> dt.date:
    """The day of an instant there."""
    return to_datetime(at).astimezone(zone(time_zone)).date()


def month_of(at: int, time_zone: str) -> str:
    """The month of an instant there, ``2026-11``."""
    day = day_of(at, time_zone)
    return f"{day.year:04d}-{day.month:02d}"


@cache
def closing_instant(year: int, month: int, time_zone: str) -> int:
    """The closing at the first instant of that month."""
    return first_instant(dt.date(year, month, 1), time_zone)


def next_month(year: int, month: int) -> tuple[int, int]:
    """The month after."""
    return (year + 1, 1) if month == 12 else (year, month + 1)


def closings(after: int, until: int, time_zone: str) -> Iterator[tuple[int, dt.date]]:
    """The closings later than ``after`` and not later than ``until``: (instant, first day of the month)."""
    day = day_of(after, time_zone)
    year, month = next_month(day.year, day.month)
    if day.day == 1 and closing_instant(day.year, day.month, time_zone) > after:  # pragma: no cover - odd zones
        year, month = day.year, day.month
    while (at := closing_instant(year, month, time_zone)) <= until:
        if at > after:
            yield at, dt.date(year, month, 1)
        year, month = next_month(year, month)


def last_closing(at: int, time_zone: str) -> int:
    """The latest closing at or before an instant."""
    day = day_of(at, time_zone)
    return closing_instant(day.year, day.month, time_zone)


def closed_month(closing: dt.date) -> str:
    """The month that a closing ended: ``2026-11`` for the closing of 1 December."""
    day = closing - dt.timedelta(days=1)
    return f"{day.year:04d}-{day.month:02d}"
