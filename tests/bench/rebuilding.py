"""Bytes per game that the rater itself holds while it rebuilds a pool, of which its limit follows."""

from __future__ import annotations

import tracemalloc

from shared.usecases import rebuild
from tests.bench.onegame import pool_of


def bytes_per_game(games: int) -> float:
    """The peak of what a rebuild allocates, over its games (the in-memory table's own items not counted)."""
    ladder, _, _, _ = pool_of(100, games)
    rebuild.request(ladder.ctx, ladder.pool())
    tracemalloc.start()
    ladder.rate()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / games
