"""Orders compare as text as played order does; instants and months survive the journey."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ledger.fold import closing_boundary
from shared.ledger.order import (
    BEGINNING,
    CLOSING,
    END,
    RESET,
    SNAPSHOT,
    START,
    after_closing,
    instant_of,
    iso,
    just_after,
    just_before,
    kind_of,
    order,
    subject_of,
    tick_of,
    to_datetime,
    to_instant,
    utc_month,
)
from shared.ratings.base import FINISH, QUIT

instants = st.one_of(st.integers(-(10**16), 10**16), st.sampled_from([BEGINNING, 0, END]))
ids = st.text("abz09-._", min_size=1, max_size=4).filter(lambda text: text[0] not in "-._")
moments = st.tuples(
    instants,
    st.sampled_from([START, CLOSING, QUIT, RESET, FINISH, SNAPSHOT]),
    st.integers(0, 999_999),
    st.integers(0, 999_999_999),
    st.one_of(st.just(""), ids),
    ids,
    st.integers(0, 99),
)


@given(moments, moments)
def test_texts_compare_as_moments_do(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    assert (order(*one) < order(*two)) == (one < two)
    assert tick_of(order(*one)) == one


@given(moments)
def test_an_order_tells_what_it_is_made_of(moment: tuple[int, ...]) -> None:
    key = order(*moment)
    assert (instant_of(key), kind_of(key), subject_of(key)) == (moment[0], moment[1], moment[5])
    assert just_before(moment[0]) <= key <= just_after(moment[0])


@given(moments, instants)
def test_the_boundary_behind_a_closing(moment: tuple[int, ...], at: int) -> None:
    behind = moment > (at, CLOSING, 10**12)
    assert (order(*moment) > after_closing(at)) == behind
    assert (moment > closing_boundary(at)) == behind


def test_a_round_left_out_is_round_0() -> None:
    assert order(1, FINISH, None, 0, "a", "g") == order(1, FINISH, 0, 0, "a", "g")


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_instants_are_exact(moment: dt.datetime) -> None:
    at = to_instant(moment)
    assert to_datetime(at) == moment
    assert dt.datetime.fromisoformat(iso(at).replace("Z", "+00:00")) == moment
    assert utc_month(at) == f"{moment.year:04d}-{moment.month:02d}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-03T19:40:00+01:00", "2026-11-03T18:40:00Z"),
        ("2026-11-03T18:40:00.000001+00:00", "2026-11-03T18:40:00.000001Z"),
        ("0999-01-01T00:00:00+00:00", "0999-01-01T00:00:00Z"),
    ],
)
def test_iso(text: str, wanted: str) -> None:
    assert iso(to_instant(dt.datetime.fromisoformat(text))) == wanted


def test_before_everything() -> None:
    assert utc_month(BEGINNING) == "0000-00"
