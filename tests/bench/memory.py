"""Memory of a fold whose history is handed on: each run in a process of its own, games and players varied apart."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.table import Line

_RUN = """
import gc, json, sys
from tests.bench import fold
from tests.bench.table import peak_mb
games, players = int(sys.argv[1]), int(sys.argv[2])
import subprocess, pickle, base64
body = subprocess.run([sys.executable, "-c", "import sys,pickle; from tests.bench import fold;"
    "sys.stdout.buffer.write(pickle.dumps(fold.stored('spades', int(sys.argv[1]), int(sys.argv[2]))))",
    str(games), str(players)], stdout=subprocess.PIPE, check=True).stdout
ledger = pickle.loads(body)
before = peak_mb()
gc.disable()
fold.replay("spades", ledger, labels=True, keep=False)
print(json.dumps([before, peak_mb(), sum(map(len, ledger)) / 1e6]))
"""


def _run(games: int, players: int) -> tuple[float, float, float]:
    done = subprocess.run([sys.executable, "-c", _RUN, str(games), str(players)], stdout=subprocess.PIPE, check=True)
    before, after, stored = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return before, after, stored


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    lines = []
    for most, people in ((250_000, 10_000), (1_000_000, 10_000), (1_000_000, 100_000)):
        games, players = int(most * scale), int(people * scale)
        before, after, stored = _run(games, players)
        lines.append(
            Line(
                f"{games:,} games, {players:,} players",
                after - before,
                "MB",
                note=f"above the {before:.0f} MB of an idle process with the ledger's {stored:.1f} MB in hand",
            )
        )
    per_game = (lines[1].figure - lines[0].figure) * 1e6 / (750_000 * scale)
    lines.append(
        Line(
            "... of which per game",
            per_game,
            "bytes",
            note="the columns that are read: 32 bytes each; states and records are the players'",
        )
    )
    return lines
