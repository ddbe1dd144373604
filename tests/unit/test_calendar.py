"""Months belong to the pool's time zone, clock changes and odd zones included."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ledger import calendar
from shared.ledger.order import to_instant

ZONES = [
    "Europe/Zurich",
    "UTC",
    "America/Los_Angeles",
    "Pacific/Kiritimati",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Beirut",
    "Antarctica/Troll",
]
zones = st.sampled_from(ZONES)
instants = st.integers(
    to_instant(dt.datetime(1975, 1, 1, tzinfo=dt.UTC)), to_instant(dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
)


def at(text: str) -> int:
    return to_instant(dt.datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("2025-04-01T00:30+02:00", "2025-04"),
        ("2025-03-31T23:30+02:00", "2025-03"),
        ("2025-03-31T22:00+00:00", "2025-04"),
        ("2025-03-31T21:59:59.999999+00:00", "2025-03"),
        ("2025-12-31T23:00+00:00", "2026-01"),
    ],
)
def test_the_edges_of_months_in_zurich(text: str, month: str) -> None:
    assert calendar.month_of(at(text), "Europe/Zurich") == month


@pytest.mark.parametrize(
    ("day", "zone", "first"),
    [
        (dt.date(2026, 11, 1), "Europe/Zurich", "2026-10-31T23:00+00:00"),
        (dt.date(2026, 10, 1), "Europe/Zurich", "2026-09-30T22:00+00:00"),
        (dt.date(2026, 1, 1), "Pacific/Kiritimati", "2025-12-31T10:00+00:00"),
        (dt.date(2026, 1, 1), "America/Los_Angeles", "2026-01-01T08:00+00:00"),
        (dt.date(2018, 11, 4), "America/Sao_Paulo", "2018-11-04T03:00+00:00"),  # midnight was skipped
        (dt.date(2015, 11, 1), "America/Havana", "2015-11-01T04:00+00:00"),  # midnight came twice
        (dt.date(2011, 12, 31), "Pacific/Apia", "2011-12-30T10:00+00:00"),  # the day before was skipped
    ],
)
def test_first_instants(day: dt.date, zone: str, first: str) -> None:
    assert calendar.first_instant(day, zone) == at(first)


@given(instants, zones)
def test_the_last_closing_is_the_first_instant_of_its_month(now: int, zone: str) -> None:
    closing = calendar.last_closing(now, zone)
    assert closing <= now
    assert calendar.month_of(closing, zone) == calendar.month_of(now, zone)
    assert calendar.month_of(closing - 1, zone) != calendar.month_of(now, zone)
    assert calendar.day_of(closing, zone).day == 1


@given(instants, st.integers(0, 40 * 86_400 * 1_000_000 * 12), zones)
def test_closings_between_two_instants(after: int, length: int, zone: str) -> None:
    until = after + length
    found = list(calendar.closings(after, until, zone))
    assert all(after < instant <= until for instant, _ in found)
    assert [instant for instant, _ in found] == sorted({instant for instant, _ in found})
    for instant, day in found:
        assert day == calendar.day_of(instant, zone)
        assert calendar.last_closing(instant, zone) == instant
        assert calendar.last_closing(instant - 1, zone) < instant
    months = {calendar.month_of(after, zone), *(f"{d.year:04d}-{d.month:02d}" for _, d in found)}
    assert calendar.month_of(until, zone) in months, "none is left out at the end"
    years = calendar.day_of(until, zone).year * 12 + calendar.day_of(until, zone).month
    assert years - calendar.day_of(after, zone).year * 12 - calendar.day_of(after, zone).month == len(found)


def test_a_closing_is_later_than_after_and_not_later_than_until() -> None:
    may, june = (calendar.closing_instant(2026, month, "Europe/Zurich") for month in (5, 6))
    assert [i for i, _ in calendar.closings(may, june, "Europe/Zurich")] == [june]
    assert [i for i, _ in calendar.closings(may - 1, june - 1, "Europe/Zurich")] == [may]


def test_the_month_that_a_closing_ended() -> None:
    assert calendar.closed_month(dt.date(2026, 12, 1)) == "2026-11"
    assert calendar.closed_month(dt.date(2027, 1, 1)) == "2026-12"
    assert calendar.next_month(2026, 12) == (2027, 1)


def test_a_zone_that_is_none() -> None:
    with pytest.raises(ZoneInfoNotFoundError):
        calendar.zone("Europe/Bern")
    assert calendar.zone("Europe/Zurich") == ZoneInfo("Europe/Zurich")
