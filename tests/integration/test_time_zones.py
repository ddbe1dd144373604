"""The machine's own time zone, and the order of its sets, change no byte: of the table, the buckets, the site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ZONES

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import hashlib, json, time
from shared.problems import Problem
from shared.usecases import closing, reading
from site_builder import publisher
from tests.integration.histories import PLAYERS, History
from tests.integration.ladder import DAY, Ladder, iso_of
from tests.integration.memory import MemoryBucket
from tests.integration.test_publisher_random import with_site

print(time.timezone)
for system in ("spades", "bridier", "jass"):
    digest, ladder, bucket = hashlib.sha256(), Ladder.in_memory(), MemoryBucket()
    with_site(ladder, bucket)
    history = History(ladder, system, 3)
    history.open()
    for number in range(60):
        history.step()
        if number % 30 == 29:
            ladder.now += 31 * DAY
            ladder.rate()
            closing.freeze(ladder.ctx, ladder.pool(), ladder.now)
            publisher.publish(ladder.ctx, "p")
    for handle in PLAYERS:
        try:
            body = reading.player_in_pool(ladder.ctx, ladder.pool(), handle, None)
        except Problem as problem:
            body = problem.code
        digest.update(json.dumps(body).encode())
    for key, item in sorted(ladder.items().items()):
        told = {name: sorted(value) if isinstance(value, set) else value for name, value in item.items()}
        digest.update(repr((key, sorted(told.items()))).encode())
    for objects in (bucket.objects, ladder.ctx.data.client.objects):
        for key, body in sorted(objects.items()):
            digest.update(key.encode() + b"\\0" + body)
    print(system, len(bucket.objects), len(ladder.items()), digest.hexdigest())
"""


def test_the_same_bytes_are_stored_and_published_everywhere() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env={**os.environ, "TZ": zone, "PYTHONHASHSEED": str(number)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, zone in enumerate(ZONES)
    ]
    told = [process.communicate(timeout=300)[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert [int(lines[0]) for lines in told] == [0, 8 * 3600, -14 * 3600], "they do stand in different zones"
    assert len(told[0]) == 4
    assert told[0][1:] == told[1][1:] == told[2][1:]
