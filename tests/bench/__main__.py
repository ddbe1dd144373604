"""Measure against the budgets: ``python -m tests.bench [section ...] [--small] [--json FILE]``.

Every section runs in a process of its own, so that its memory is its own, and prints each figure beside its peer's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.bench.table import Line, as_json, machine, show

SECTIONS = {
    "fold": "Fold: from the stored, compressed ledger to standings",
    "memory": "Memory of a fold: it grows with players, not with games",
    "rebuild": "Rebuild of a large pool",
    "onegame": "One more game: requests and units, large pool beside small",
    "emulator": "One more game: what was counted beside the emulator's log of requests",
    "publish": "Publishing a large pool",
    "submit": "Submitting under load",
    "coldstart": "Packages and imports",
    "scale": "From a club to 10 million players: the demo's traffic, × 1,000 and beyond, against a model of the limits",
}
RESULTS = Path(".build/bench.json")


SIZES = {"small": 0.02, "usual": 0.2, "full": 1.0}
"""Of 1,000,000 games and 100,000 players."""


def one(name: str, size: str) -> None:
    """Measure one section here and write its lines to standard output as JSON."""
    lines: list[Line] = importlib.import_module(f"tests.bench.{name}").measure(SIZES[size])
    print("\n" + json.dumps([vars(line) for line in lines]))


def main() -> int:
    """Measure the sections asked for; 1 when a budget was missed (of the usual or the full size: from a small one
    nothing follows)."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--small", action="store_true", help="to see that it runs: its figures say nothing of budgets")
    sizes.add_argument("--full", action="store_true", help="1,000,000 games and 100,000 players (much longer)")
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := [name for name in given.sections if name not in SECTIONS]:
        parser.error(f"no section {unknown[0]}: {', '.join(SECTIONS)}")
    size = "small" if given.small else "full" if given.full else "usual"
    if given.one:
        one(given.one, size)
        return 0
    results: dict[str, object] = {"machine": machine(), "size": size}
    missed = 0
    for name in given.sections or SECTIONS:
        command = [sys.executable, "-m", "tests.bench", "--one", name, *(f"--{s}" for s in [size] if s != "usual")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"\n{SECTIONS[name]}\n  could not be measured: ended with {done.returncode}")
            missed += 1
            continue
        lines = [Line(**entry) for entry in json.loads(done.stdout.strip().splitlines()[-1])]
        if size == "small":
            lines = [replace(line, met=None) for line in lines]
        show(SECTIONS[name], lines)
        results[name] = [as_json(line) for line in lines]
        missed += sum(line.met is False for line in lines)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nwritten to {given.json}; {missed or 'no'} budget{'s' if missed != 1 else ''} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
