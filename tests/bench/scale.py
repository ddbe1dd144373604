"""The demo's traffic × 1,000, and what comes after, against a model of the limits: which one is met first."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from shared.store import keys
from tests.bench import limits
from tests.bench.table import Line

SUBMIT_SECONDS = 0.06
RATE_UNITS_ON_MONTH = 4
"""Write units of a game's rated row (1 to 2 KB, in a transaction), all on the key of its pool and month."""


@dataclass(frozen=True)
class Stage:
    """A size: results a second over all pools, and how many pools share them."""

    name: str
    rate: float
    pools: int


STAGES = (
    Stage("a club", 0.01, 1),
    Stage("a federation", 1, 10),
    Stage("demo × 1,000", 50, 10),
    Stage("one busy pool", 500, 1),
    Stage("10 million players", 1_000, 100),
    Stage("the same in one pool", 1_000, 1),
)


def loads(stage: Stage) -> dict[str, float]:
    """Share of each limit that a stage takes; above 1 it is exceeded."""
    each = stage.rate / stage.pools
    return {
        "inbox key": 2 * each / keys.SHARDS / limits.KEY_WRITES,
        "month's key of rated rows": RATE_UNITS_ON_MONTH * each / limits.KEY_WRITES,
        "table's write units": (8 + 27) * stage.rate / limits.TABLE_WRITES,
        "stream shard": each / keys.SHARDS / limits.SHARD_WRITES,
        "concurrent API functions": stage.rate * SUBMIT_SECONDS / limits.CONCURRENCY,
    }


def measure(scale: float) -> list[Line]:
    """The lines of the table. (``scale`` changes nothing: it is a model.)"""
    lines = []
    for stage in STAGES:
        share = loads(stage)
        first = max(share, key=lambda name: share[name])
        note = "within every limit" if share[first] <= 1 else f"needs {ceil(share[first])} times as much"
        lines.append(
            Line(
                f"{stage.name}: {stage.rate:g}/s in {stage.pools} pools",
                share[first],
                "of limit",
                note=f"{first}: {note}",
            )
        )
    return lines
