"""The machine's own time zone changes nothing: the same bytes wherever it stands."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import hashlib, random, sys
sys.path.insert(0, ".")
from tests.unit.test_fold import fold_of, story, story_of
from tests.unit.test_fold_duels import folded, generated
from shared.ledger.fold import Rated
from shared.store.rated import dump
digest = hashlib.sha256()
for system in ("spades", "bridier", "jass"):
    for seed in range(12):
        told = story(system, seed, 20)
        fold = fold_of(told)
        for row in fold.run(story_of(told, random.Random(0)), closings_after=None, closed_until=told.closed_until):
            if isinstance(row, Rated):
                digest.update(dump(row).encode())
        digest.update(repr(sorted(fold.states.items())).encode())
digest.update(repr(folded(generated(), "Europe/Zurich")).encode())
print(digest.hexdigest())
"""


def digest_under(zone: str, seed: str) -> str:
    environment = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def here() -> str:
    """As it comes out under UTC."""
    return digest_under("UTC", "1")


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
def test_the_same_bytes_everywhere(here: str, zone: str) -> None:
    assert len(here) == len(hashlib.sha256().hexdigest())
    assert digest_under(zone, "2") == here
