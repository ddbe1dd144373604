"""Memory of a fold whose history is handed on: each run in a process of its own, games and players varied apart.

The segments lie on disk, one file a month, and are read as the fold reaches them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shared.ledger import segments
from shared.ledger.fold import Fold
from shared.ledger.replay import story_of_segments
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from tests.bench import pools
from tests.bench.fold import ZONE, stored
from tests.bench.table import Line, peak_mb

MOST_PER_GAME = 8.0
"""Bytes."""


def store(folder: str, games: int, players: int, months: int) -> None:
    """Write a ledger, a file a segment."""
    for number, body in enumerate(stored("spades", games, players, months)):
        (Path(folder) / f"{number:03d}").write_bytes(body)


def fold(folder: str, labels: bool) -> None:
    """Fold a ledger from its files; print the memory before, by how much it grew at most (MB), and the players."""
    rules = rule_system("spades")
    dated = (DatedRules(-(2**60), rules.settings_model()),)
    read: list[Callable[[], segments.Segment]] = [partial(_read, path) for path in sorted(Path(folder).iterdir())]
    until = pools.BEGIN + 31 * 86_400_000_000 * len(read)
    before = peak_mb()
    run = Fold(rules, dated, ZONE, labels=labels)
    for _ in run.stream(story_of_segments(rules, dated, read, []), closings_after=None, closed_until=until):
        pass
    people = len(run.states)
    print(json.dumps([before, peak_mb() - before, people]))


def _read(path: Path) -> segments.Segment:
    return segments.decode(path.read_bytes())


def _child(what: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.bench import memory; memory.{what}"], stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode()


def _line(games: int, players: int, months: int) -> tuple[Line, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        _child(f"store({folder!r}, {games}, {players}, {months})")
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        idle, states, _ = json.loads(_child(f"fold({folder!r}, labels=False)"))
        _, records, people = json.loads(_child(f"fold({folder!r}, labels=True)"))
    line = Line(
        f"{games:,} games in {months} months, {people:,} players",
        states,
        "MB",
        note=f"{records:.1f} MB with records per club, group and year; above the {idle:.0f} MB of an idle process; "
        f"{size:.1f} MB of segments on disk",
    )
    return line, states, records


RUNS = (
    (250_000, 10_000, 24),
    (500_000, 10_000, 48),
    (1_000_000, 10_000, 96),
    (500_000, 10_000, 24),
    (500_000, 40_000, 48),
)
"""Games, players, months: the same traffic for longer; twice the traffic; more players."""


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    share = min(1.0, 2.5 * scale)
    lines = []
    alone: list[float] = []
    with_records: list[float] = []
    for games, players, months in RUNS:
        line, states, records = _line(int(games * share), int(players * share), months)
        lines.append(line)
        alone.append(states)
        with_records.append(records)

    def per(found: list[float], more: int, less: int, count: int) -> float:
        return (found[more] - found[less]) * 1e6 / (count * share)

    longer = per(alone, 2, 0, 750_000)
    budget = f"at most {MOST_PER_GAME:.0f}"
    return [
        *lines,
        Line("... per game more, as time passes", longer, "bytes", budget=budget, met=longer <= MOST_PER_GAME),
        Line(
            "... ... with records per club, group and year",
            per(with_records, 2, 0, 750_000),
            "bytes",
            note="a new year, and a guest's first game in a group, open records: they grow with years and with whom "
            "one visits",
        ),
        Line(
            "... per game more in every month",
            per(alone, 3, 0, 250_000) * RUNS[0][2],
            "bytes",
            note="of one month: its columns, and while they are unpacked what they are unpacked from",
        ),
        Line("... per player more", per(alone, 4, 1, 30_000), "bytes"),
    ]
