"""The demo's traffic: when its results come in, as its worlds say, of the busiest hours that all its pools have had."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from functools import cache

from local import demo

SENT_WITHIN = 600
"""Seconds after a game within which its result is sent: somebody finds the time. The demo itself sends at once."""
HOURS = 1


@cache
def finishes() -> tuple[int, ...]:
    """Seconds since midnight of all games of the day that had most, in order. (Duels carry a date and no time.)"""
    days: dict[str, list[int]] = {}
    for world in demo.worlds():
        for pool in world.pools:
            for _, body in pool.games:
                at = dt.datetime.fromisoformat(body["finished_at"])
                if (at.hour, at.minute, at.second) != (23, 0, 0):
                    days.setdefault(at.date().isoformat(), []).append(at.hour * 3600 + at.minute * 60 + at.second)
    busiest = max(days, key=lambda day: (len(days[day]), day))
    return tuple(sorted(days[busiest]))


def per_second(ends: Sequence[int], factor: float, spread: int = SENT_WITHIN) -> list[float]:
    """Results a second when each of these games is ``factor`` games, sent evenly within ``spread`` seconds of its end.

    The busiest ``HOURS`` only, from the first result to the last.
    """
    steps: Counter[int] = Counter()
    for end in ends:
        steps[end] += 1
        steps[end + spread] -= 1
    found: list[float] = []
    running = 0
    first, last = min(ends), max(ends) + spread
    for second in range(first, last):
        running += steps[second]
        found.append(running * factor / spread)
    window = HOURS * 3600
    if len(found) <= window:
        return found
    sums = [sum(found[begin : begin + window]) for begin in range(0, len(found) - window, 600)]
    begin = 600 * sums.index(max(sums))
    return found[begin : begin + window]
