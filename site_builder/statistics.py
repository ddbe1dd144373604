"""What a pool's numbers say about the pool, and about the ratings themselves: how well they predict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BINS = 10
SURE = 1e-9
"""An expected score is kept this far from 0 and 1, so that one surprise does not make the log-loss infinite."""


@dataclass(frozen=True)
class Bin:
    """Games whose expected score fell into a range."""

    lower: float
    upper: float
    count: int
    expected: float
    actual: float


@dataclass(frozen=True)
class Honesty:
    """How well expected scores foretold the results; lower scores are better."""

    count: int
    log_loss: float
    brier: float
    coin_log_loss: float
    """What saying 50 % each time would have scored."""
    coin_brier: float
    bins: tuple[Bin, ...]
    """Only those with games in them."""


def log_loss(scores: Iterable[tuple[float, float]]) -> float:
    """Mean of −(s ln e + (1 − s) ln(1 − e)); a draw counts half of each."""
    losses = []
    for expected, actual in scores:
        chance = min(max(expected, SURE), 1 - SURE)
        losses.append(-(actual * math.log(chance) + (1 - actual) * math.log1p(-chance)))
    return math.fsum(losses) / len(losses)


def brier(scores: Iterable[tuple[float, float]]) -> float:
    """Mean of (e − s)²."""
    squares = [(expected - actual) ** 2 for expected, actual in scores]
    return math.fsum(squares) / len(squares)


def calibration(scores: Iterable[tuple[float, float]], bins: int = BINS) -> tuple[Bin, ...]:
    """Expected against actual mean scores in equal ranges of the expected one."""
    sums: list[list[float]] = [[0, 0.0, 0.0] for _ in range(bins)]
    for expected, actual in scores:
        entry = sums[min(int(expected * bins), bins - 1)]
        entry[0] += 1
        entry[1] += expected
        entry[2] += actual
    return tuple(
        Bin(number / bins, (number + 1) / bins, int(count), total / count, scored / count)
        for number, (count, total, scored) in enumerate(sums)
        if count
    )


def honesty(scores: Sequence[tuple[float, float]]) -> Honesty | None:
    """All of it; None without a game."""
    if not scores:
        return None
    coin = [(0.5, actual) for _, actual in scores]
    return Honesty(len(scores), log_loss(scores), brier(scores), log_loss(coin), brier(coin), calibration(scores))


def distribution(ratings: Sequence[int], unit: int, most: int = 30) -> list[tuple[int, int]]:
    """(lower bound in shown points, how many) in ranges of a round width, empty ones between included."""
    if not ratings:
        return []
    low, high = min(ratings), max(ratings)
    width = next(w * unit for w in _WIDTHS if (high // (w * unit) - low // (w * unit)) < most)
    first = low // width
    counts = [0] * (high // width - first + 1)
    for rating in ratings:
        counts[rating // width - first] += 1
    return [((first + number) * width // unit, count) for number, count in enumerate(counts)]


_WIDTHS = tuple(f * 10**p for p in range(9) for f in (1, 2, 5))
