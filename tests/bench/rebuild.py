"""A rebuild of a large pool: what is measured here, and the arithmetic of what DynamoDB adds to it.

Measured: reading segments, folding with every row built, comparing and encoding rows. Counted: the requests that
writing every row anew would take, at the rates that DynamoDB's guide gives for one partition key.
"""

from __future__ import annotations

import gc
import time

from shared.ledger import segments
from shared.ledger.fold import Fold, Rated
from shared.ledger.replay import story_of_segments
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from shared.store import rated as store
from tests.bench.fold import UNTIL, ZONE, stored
from tests.bench.limits import KEY_WRITES
from tests.bench.table import Line, peak_mb

LAMBDA_SECONDS = 900
PAGE_SECONDS = 0.03
"""A page of 1 MB of a query, from a function in the same region: an assumption, not measured here."""
FULL = 1_000_000


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    games, players = int(FULL * scale / 5), max(200, int(10_000 * scale / 5))
    system = rule_system("spades")
    rules = (DatedRules(-(2**60), system.settings_model()),)
    ledger = stored("spades", games, players)
    gc.collect()
    gc.disable()
    begin = time.process_time()
    story = story_of_segments(system, rules, [segments.decode(body) for body in ledger], [])
    fold = Fold(system, rules, ZONE)
    rows = size = 0
    for what in fold.run(story, closings_after=None, closed_until=UNTIL):
        if isinstance(what, Rated):
            rows += 1
            size += len(store.dump(what))
    seconds = time.process_time() - begin
    per_row, bytes_per_row = seconds / rows, size / rows
    whole = per_row * FULL
    pages = bytes_per_row * FULL / 1e6
    # Two versions of a row stand in one item while a replay writes, and a transaction takes two units per KB.
    units = 2 * -(-2 * bytes_per_row // 1024)
    hottest = KEY_WRITES / units
    return [
        Line(
            "segments to encoded rows, one process",
            1 / per_row,
            "rows/s",
            note=f"{rows:,} rows of {bytes_per_row:.0f} bytes",
        ),
        Line("... 1,000,000 games", whole, "s", "one function", LAMBDA_SECONDS, "under 900 s", whole < LAMBDA_SECONDS),
        Line("reading the rows that stand (arithmetic)", pages * PAGE_SECONDS, "s", note=f"{pages:,.0f} pages of 1 MB"),
        Line(
            "writing all rows anew, by one month's key (arithmetic)",
            hottest,
            "rows/s",
            note=f"{units:.0f} write units a row",
        ),
        Line("... rows that differ and fit one function's time", hottest * (LAMBDA_SECONDS - whole), "rows"),
        Line("memory of the fold alone", peak_mb(), "MB"),
    ]
