"""Whatever happens to a pool, in whatever order: what is stored is a fold of its ledger, to the bit.

Most histories run in memory; the last ones on moto and on MiniStack, so that the fakes cannot hide a fault.
"""

from __future__ import annotations

import itertools

import pytest

from local.inprocess import System
from tests.integration.histories import History, retell
from tests.integration.ladder import Ladder, audit, small_steps

SYSTEMS = ("spades", "bridier", "jass")
LIMITS: tuple[dict[str, int], ...] = (
    {},
    {"IN_PLACE": 8, "CHECKPOINTS": 4},
    {"INBOX_LIMIT": 2, "READ_AHEAD": 0, "CHECKPOINT_SPACING": 1},
    {"LONG_REPLAY": -1, "IN_PLACE": 8, "KEPT": 0},
)
"""As it is; nearly every replay under a new generation; never more than two events at once; every replay from the
ledger, with nothing kept in memory."""


def run(ladder: Ladder, system: str, seed: int, steps: int) -> History:
    """A random history with audits on the way and at the end."""
    history = History(ladder, system, seed)
    history.open()
    for number in range(steps):
        if history.step() == "rate" and number % 3 == 0:
            audit(ladder)
    ladder.rate()
    audit(ladder)
    return history


@pytest.mark.parametrize(
    ("rules", "limits", "seed"),
    [(s, limits, seed) for s, limits in itertools.product(SYSTEMS, LIMITS) for seed in range(8)],
    ids=lambda value: "-".join(value) or "as-it-is" if isinstance(value, dict) else str(value),
)
def test_a_random_history(rules: str, limits: dict[str, int], seed: int) -> None:
    ladder = Ladder.in_memory(page=3000)
    with small_steps(**limits):
        history = run(ladder, rules, seed, 60)
        retell(history, "q")
        audit(ladder, "q")
    assert ladder.cursor("q").hash == ladder.cursor("p").hash
    assert ladder.cursor("q").games == ladder.cursor("p").games


@pytest.mark.parametrize("rules", SYSTEMS)
def test_several_hundred_operations(rules: str) -> None:
    ladder = Ladder.in_memory()
    with small_steps(IN_PLACE=60, CHECKPOINT_SPACING=20):
        history = run(ladder, rules, 99, 350)
        assert len(set(history.done)) >= 13, "nearly everything has happened"
        assert ladder.cursor().generation > 5
        retell(history, "q")
        audit(ladder, "q")
    assert ladder.cursor("q").hash == ladder.cursor("p").hash


@pytest.fixture
def real(any_system: System) -> Ladder:
    """The same over moto and over MiniStack."""
    return Ladder.of(any_system)


@pytest.mark.parametrize("rules", SYSTEMS)
def test_on_both_stores(real: Ladder, rules: str) -> None:
    with small_steps(IN_PLACE=40):
        history = run(real, rules, 7, 15)
        retell(history, "q")
        audit(real, "q")
    assert real.cursor("q").hash == real.cursor("p").hash
    assert real.cursor("q").position > 0
