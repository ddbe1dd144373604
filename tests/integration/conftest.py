"""A Spades pool of eight players, over the emulator and in memory."""

from __future__ import annotations

import pytest

from local.inprocess import System
from tests.integration.ladder import Ladder, at


@pytest.fixture
def real(emulated_system: System) -> Ladder:
    """A Spades pool over MiniStack."""
    return prepared(Ladder.of(emulated_system))


@pytest.fixture
def memory() -> Ladder:
    """A Spades pool in memory."""
    return prepared(Ladder.in_memory())


def prepared(ladder: Ladder) -> Ladder:
    """The pool opened, its players registered."""
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool(rules=[{"from": "2026-01-01", "quit_ban_minutes": 0}])
    ladder.register(*"abcdefgh")
    ladder.rate()
    return ladder
