"""Geometry of the pictures: numbers in, coordinates out. The templates draw inline SVG; no script is needed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared.ledger.calendar import closing_instant, day_of, next_month

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 50, 8, 10, 26
NAMES = 58
"""Room for the names of tiers, right of the line."""
SPARK_WIDTH, SPARK_HEIGHT = 60, 16
MOST_POINTS = 300
DAY = 86_400_000_000


@dataclass(frozen=True)
class Tick:
    """A line of the grid with its label."""

    at: float
    label: str
    odd: bool = False
    """Hidden where there is little room."""
    anchor: str = "middle"


@dataclass(frozen=True)
class Stripe:
    """A tier behind the line."""

    y: float
    height: float
    name: str
    even: bool


@dataclass(frozen=True)
class LineChart:
    """A rating over time."""

    path: str
    area: str
    dots: tuple[tuple[float, float], ...]
    """The rating at the closings."""
    last: tuple[float, float]
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    stripes: tuple[Stripe, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


@dataclass(frozen=True)
class Bar:
    """A bar with what it stands for."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int
    tick: bool = False


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def steps(low: int, high: int, unit: int, about: int = 4) -> list[int]:
    """Round numbers from below ``low`` to above ``high``, about so many."""
    span = max(high - low, unit * about)
    size = unit
    while True:
        for factor in (1, 2, 5):
            step = size * factor
            if span <= step * about:
                first = low // step * step
                last = -(-high // step) * step
                return list(range(first, max(last, first + step) + 1, step))
        size *= 10


def sparkline(values: Sequence[int]) -> str:
    """The ``d`` of a small line; empty for fewer than two values. Whole numbers, since a list has a hundred of them."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = max(high - low, 1)
    across = SPARK_WIDTH / (len(values) - 1)
    points = [
        (round(number * across), round(SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * (value - low) / span))
        for number, value in enumerate(values)
    ]
    if low == high:
        points = [(x, SPARK_HEIGHT // 2) for x, _ in points]
    # Step by step, which takes fewer characters than places do; a minus needs no space before it.
    steps = "".join(f" {x - x0}{'' if y < y0 else ' '}{y - y0}" for (x0, y0), (x, y) in pairwise(points))
    return f"M{points[0][0]} {points[0][1]}l{steps.strip()}"


def thin_out(points: Sequence[tuple[int, int]], most: int = MOST_POINTS) -> list[tuple[int, int]]:
    """Fewer points of the same look: of every stretch its first, lowest, highest and last."""
    if len(points) <= most:
        return list(points)
    size = -(-len(points) * 4 // most)
    kept: list[tuple[int, int]] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        values = [value for _, value in stretch]
        wanted = {0, values.index(min(values)), values.index(max(values)), len(stretch) - 1}
        kept.extend(stretch[number] for number in sorted(wanted))
    return kept


def line_chart(
    series: Sequence[tuple[int, int]],
    unit: int,
    time_zone: str,
    month_label: Sequence[str],
    bands: Sequence[tuple[int | None, int | None, str]] = (),
) -> LineChart | None:
    """A rating over time as steps, with dots at the closings; None for fewer than two changes.

    Args:
        series: (instant, rating), ascending.
        unit: what one shown point is.
        month_label: twelve short names of months.
        bands: (lower, upper, name) of what is drawn behind.
    """
    if len(series) < 2:
        return None
    points = thin_out(series)
    start, end = points[0][0], points[-1][0]
    if end - start < DAY:
        start -= DAY
    values = [value for _, value in points]
    margin = max((max(values) - min(values)) // 12, unit)
    grid = steps(min(values) - margin, max(values) + margin, unit)
    low, high = grid[0], grid[-1]
    right, bottom = WIDTH - (NAMES if bands else RIGHT), HEIGHT - BOTTOM

    def x(at: int) -> float:
        return LEFT + (right - LEFT) * (at - start) / (end - start)

    def y(value: int) -> float:
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    path = f"M{_n(x(points[0][0]))} {_n(y(points[0][1]))}" + "".join(
        f"H{_n(x(at))}V{_n(y(value))}" for at, value in points[1:]
    )
    months = _months(start, end, time_zone)
    dots: list[tuple[float, float]] = []
    position = 0
    for at, _month in months:
        while position + 1 < len(series) and series[position + 1][0] <= at:
            position += 1
        if series[position][0] <= at:
            dots.append((round(x(at), 1), round(y(series[position][1]), 1)))
    every = next(n for n in (1, 2, 3, 6, 12, 24, 60, 120, 1200) if len(months) <= n * 8 or n == 1200)
    ticks = [(at, month) for at, month in months if (month.year * 12 + month.month - 1) % every == 0] or months[:1]
    return LineChart(
        path=path,
        area=f"{path}V{bottom}H{_n(x(points[0][0]))}Z",
        dots=tuple(dots) if len(dots) <= 60 else (),
        last=(round(x(points[-1][0]), 1), round(y(points[-1][1]), 1)),
        x=tuple(
            Tick(
                round(x(at), 1),
                str(month.year) if every >= 12 or month.month == 1 else month_label[month.month - 1],
                number % 2 == 1,
                "middle" if x(at) < WIDTH - 20 else "end",
            )
            for number, (at, month) in enumerate(ticks)
        ),
        y=tuple(Tick(round(y(value), 1), str(value // unit)) for value in grid),
        stripes=_stripes(bands, low, high, y),
        right=right,
    )


def _stripes(
    bands: Sequence[tuple[int | None, int | None, str]], low: int, high: int, place: Callable[[int], float]
) -> tuple[Stripe, ...]:
    stripes = []
    for number, (lower, upper, name) in enumerate(bands):
        bottom = low if lower is None else max(lower, low)
        top = high if upper is None else min(upper, high)
        if bottom < top:
            at = round(place(top), 1)
            stripes.append(Stripe(at, round(place(bottom) - at, 1), name, number % 2 == 0))
    return tuple(stripes)


def _months(start: int, end: int, time_zone: str) -> list[tuple[int, dt.date]]:
    day = day_of(start, time_zone)
    year, month = day.year, day.month
    found: list[tuple[int, dt.date]] = []
    while True:
        year, month = next_month(year, month)
        at = closing_instant(year, month, time_zone)
        if at > end:
            return found
        found.append((at, dt.date(year, month, 1)))


def bars(
    values: Sequence[tuple[str, int]], about_ticks: int = 8, first: int = 0
) -> tuple[tuple[Bar, ...], tuple[Tick, ...]]:
    """A bar chart: bars and the lines behind them.

    Args:
        first: number of the first bar on the calendar (its month), so that ticks come where quarters and years begin.
    """
    most = max((value for _, value in values), default=0)
    grid = steps(0, max(most, 1), 1)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across = (right - LEFT) / max(len(values), 1)
    every = next(n for n in (1, 2, 3, 6, 12, 24, 60, 120, 1200) if len(values) <= n * about_ticks or n == 1200)
    drawn = []
    for number, (label, value) in enumerate(values):
        height = (bottom - TOP) * value / grid[-1]
        gap = min(across * 0.2, 4)
        drawn.append(
            Bar(
                round(LEFT + number * across + gap / 2, 1),
                round(bottom - height, 1),
                round(across - gap, 1),
                round(height, 1),
                label,
                value,
                (first + number) % every == 0,
            )
        )
    return tuple(drawn), tuple(Tick(round(bottom - (bottom - TOP) * value / grid[-1], 1), str(value)) for value in grid)
