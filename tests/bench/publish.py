"""Publishing a pool whole: pages a second, total time, memory; alone, and over several publisher runs side by side."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shared.usecases.bootstrap import HELPERS, UPLOADS_AT_ONCE
from tests.bench.onegame import pool_of
from tests.bench.side_by_side import Outcome, publish
from tests.bench.table import Line

UPLOAD_SECONDS = 0.03
"""One object to S3 from a function in the same region: an assumption, not measured here."""
LAMBDA_SECONDS = 900
S3_PUTS = 3_500
"""A second, below one prefix; more once S3 has split it."""
MEMORY_MB = 2_048
"""The publisher function's."""


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    cores = os.cpu_count() or 1
    small, large = max(300, int(10_000 * scale)), max(600, int(100_000 * scale))
    with tempfile.TemporaryDirectory() as folder:
        ladder, _, _, _ = pool_of(small, 300)
        alone = publish(ladder.ctx, "p", 0, Path(folder) / "alone")
        shared = publish(ladder.ctx, "p", cores - 1, Path(folder) / "shared")
        ladder, _, _, _ = pool_of(large, 300)
        whole = publish(ladder.ctx, "p", max(1, cores - 1), Path(folder) / "large")
    lines = [
        *_lines(f"{small:,} players, one run", alone),
        *_lines(f"{small:,} players, {cores} runs on {cores} cores", shared),
        Line("... times as fast as one", alone.seconds / shared.seconds, "times", "cores", float(cores)),
        *_lines(f"{large:,} players, {cores} runs on {cores} cores", whole),
    ]
    objects = sum(share.objects for share in whole.shares)
    most = max(share.memory for share in whole.shares)
    met = most < MEMORY_MB
    lines.append(Line("... most memory of a run", most, "MB", "its function", MEMORY_MB, "below", met))
    per_run = min(UPLOADS_AT_ONCE / UPLOAD_SECONDS, objects / sum(share.cpu for share in whole.shares))
    rate = min(S3_PUTS, (HELPERS + 1) * per_run)
    seconds = objects / rate
    lines.append(
        Line(
            f"... in the cloud, {HELPERS + 1} runs (arithmetic)",
            seconds,
            "s",
            "one function",
            LAMBDA_SECONDS,
            "below",
            seconds < LAMBDA_SECONDS,
            f"{per_run:.0f} objects a second and run: {UPLOADS_AT_ONCE} uploads of {UPLOAD_SECONDS * 1000:.0f} ms at a "
            f"time, or the processor; at most {S3_PUTS:,} a second below one prefix",
        )
    )
    return lines


def _lines(what: str, outcome: Outcome) -> list[Line]:
    objects, size = (sum(getattr(share, name) for share in outcome.shares) for name in ("objects", "bytes"))
    cpu = sum(share.cpu for share in outcome.shares)
    note = f"{objects:,} objects of {size / objects:,.0f} bytes, {cpu:.1f} s of CPU"
    if outcome.helped:
        note += f"; helpers did {outcome.helped} parts"
    return [
        Line(what, objects / outcome.seconds, "objects/s", note=note),
        Line("... total time", outcome.seconds, "s"),
    ]
