"""What is written a hundred thousand times a run is written as what is written once."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ledger.calendar import day_of
from shared.ledger.order import to_instant
from shared.ratings.base import MILLION
from site_builder.addresses import Addresses
from site_builder.figures import Figures
from site_builder.rows import Lines
from site_builder.views import PoolView, Standing
from site_builder.words import MINUS, words

LANGUAGES = ["en", "de", "fr"]
SYSTEMS = ["spades", "jass", "bridier"]
near = st.integers(-2_000_000_000, 2_000_000_000) | st.integers(-200, 200).map(lambda n: n * 50_000 + n % 3 - 1)


def figures(system: str, language: str) -> Figures:
    """How a pool's ratings are written."""
    return Figures(PoolView("p", "P", system, "UTC", (language,), ({"from": "2026-01-01"},), 0), words(language))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("system", SYSTEMS)
@given(before=near, after=near)
def test_a_change_is_written_exactly_rounded(system: str, language: str, before: int, after: int) -> None:
    told = figures(system, language)
    decimals = 1 if told.unit > 1 else 0
    expected = told.words.scaled(after - before, told.unit, decimals, sign=True)
    assert told.delta((before, 0), (after, 0)) == expected


def test_a_change_of_nearly_nothing_has_no_sign() -> None:
    told = figures("spades", "de")
    changes = [told.delta((0, 0), (points, 0)) for points in (49_999, 50_000, -49_999, -50_000, 0, 1_000 * MILLION)]
    assert changes == ["±0,0", "+0,1", "±0,0", f"{MINUS}0,1", "±0,0", "+1000,0"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("system", SYSTEMS)
@given(ratings=st.lists(near | st.integers(1_500_000_000, 1_501_000_000), max_size=8), edges=st.tuples(near, near))
def test_neighbours_that_print_alike_are_told_apart(
    system: str, language: str, ratings: list[int], edges: tuple[int, int]
) -> None:
    told = figures(system, language)
    lines = [Standing(None, "a", "A", rating) for rating in sorted(ratings, reverse=True)]
    before, after = (Standing(None, "a", "A", rating) for rating in sorted(edges, reverse=True))
    every = [before.rating, *(line.rating for line in lines), after.rating]
    plain = [told.words.scaled(rating, told.unit, told.decimals, group=False) for rating in every]
    alike = {
        rating
        for (one, two), (text, other) in zip(pairwise(every), pairwise(plain), strict=True)
        if text == other and one != two and told.unit > 1
        for rating in (one, two)
    }
    expected = [
        told.words.scaled(rating, told.unit, told.decimals + (rating in alike), group=False) for rating in every[1:-1]
    ]
    found = told.printed(lines, (before, after))
    assert ["".join(parts) for parts in found] == expected
    assert all(not rest or rest.startswith(told.words.decimal) for _, rest in found)


ZONES = ["UTC", "Europe/Zurich", "Asia/Kathmandu", "America/St_Johns", "Pacific/Chatham", "Pacific/Apia", "Asia/Beirut"]


def last_days(zone: str, moments: list[int]) -> list[str]:
    """The days of last games as a list shows them."""
    pool = PoolView("p", "P", "spades", zone, ("en",), ({"from": "2026-01-01"},), 0)

    class Rules:
        list_figures = ()

    lines = Lines(Figures(pool, words("en")), Addresses(pool, "en"), Rules())
    players = [Standing(1, "a", "A", 0, last_played=moment) for moment in moments]
    return re.findall(r'soft">([^<]*)</td>', lines.of_list(players, movement=False).lines)


@pytest.mark.parametrize("zone", ZONES)
@given(at=st.integers(-2_000_000_000, 4_000_000_000), micro=st.integers(0, 999_999), apart=st.integers(0, 90_000))
def test_the_day_of_the_last_game_is_that_of_its_instant(zone: str, at: int, micro: int, apart: int) -> None:
    moments = [at * 1_000_000 + micro, (at + apart) * 1_000_000, at * 1_000_000 - at * 1_000_000 % 86_400_000_000]
    assert last_days(zone, moments) == [words("en").short_day(day_of(moment, zone)) for moment in moments]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", ["2011-12-29", "2011-12-30", "2026-03-29", "2026-10-25", "1980-01-01"])
def test_the_day_changes_when_the_zones_does(zone: str, day: str) -> None:
    """Also where a day was left out (Apia, 30 December 2011) and where summer time begins at midnight (Beirut)."""
    begin = to_instant(dt.datetime.fromisoformat(f"{day}T00:00:00+00:00"))
    moments = [begin + minute * 60_000_000 - odd for minute in range(0, 2 * 1440, 15) for odd in (0, 1)]
    assert last_days(zone, moments) == [words("en").short_day(day_of(moment, zone)) for moment in moments]
