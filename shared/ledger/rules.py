"""A pool's rules are a list with dates: each game, its quits included, is rated by those in force at its start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shared.ratings.base import Settings


class DatedRules(NamedTuple):
    """Settings and the instant from which they hold (the first instant of a day in the pool's time zone)."""

    since: int
    settings: Settings


def in_force(rules: Sequence[DatedRules], started_at: int) -> int | None:
    """Index of the rules in force at an instant, or None before the first. ``rules`` ascend by ``since``."""
    for number in range(len(rules) - 1, -1, -1):
        if rules[number].since <= started_at:
            return number
    return None
