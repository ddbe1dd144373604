"""Publishing a pool whole: pages a second, bytes, memory, at a size that is small enough to be measured anywhere."""

from __future__ import annotations

import time
from dataclasses import replace

from shared.store.bucket import Bucket
from site_builder import publisher
from tests.bench.onegame import pool_of
from tests.bench.table import Line, peak_mb
from tests.bench.units import MeteredBucket
from tests.integration.memory import MemoryBucket

FULL_PLAYERS = 100_000


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    players = max(300, int(10_000 * scale))
    ladder, _, _, _ = pool_of(players, 300)
    site = MeteredBucket(MemoryBucket())
    ladder.ctx = replace(ladder.ctx, site=Bucket(site, "site"))  # type: ignore[arg-type]
    ladder.ctx.data.delete(["published/p/list"])
    before, begin = peak_mb(), time.process_time()
    publisher.publish(ladder.ctx, "p")
    seconds = time.process_time() - begin
    pages = site.requests["put_object"]
    whole = seconds / players * FULL_PLAYERS
    return [
        Line(
            f"whole pool of {players:,} players",
            pages / seconds,
            "pages/s",
            note=f"{pages:,} pages in {seconds:.1f} s of CPU",
        ),
        Line("... bytes a page", site.bytes / pages, "bytes"),
        Line(
            "... memory above the pool's own",
            peak_mb() - before,
            "MB",
            note="the pages themselves stay in this fake bucket",
        ),
        Line(f"extrapolated to {FULL_PLAYERS:,} players, one run", whole, "s", "one function", 900.0),
        Line("... publisher runs needed side by side for 15 minutes", max(1.0, whole / 900), "runs"),
    ]
