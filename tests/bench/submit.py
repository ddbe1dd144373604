"""Five hundred results a second to one pool, for a minute, against DynamoDB's limit of each partition key.

The writes are those that the code makes (``shared.store.ledger.append``), weighed as DynamoDB weighs them.
"""

from __future__ import annotations

from shared.store import keys
from tests.bench import limits, pools
from tests.bench.table import Line


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    rate, seconds = 500, max(3, int(60 * scale))
    lines = []
    for system in pools.WIDTH:
        game = next(pools.games(system, 1, 200))
        worst, total = limits.load_of(rate, seconds, game)
        key, units = worst.most_common(1)[0]
        lines.append(
            Line(
                f"{system}: write units a second on the hottest key",
                units,
                "units/s",
                "limit",
                limits.KEY_WRITES,
                "below the limit",
                units < limits.KEY_WRITES,
                f"{key}, one of {keys.SHARDS} shards; {rate} results a second for {seconds} s",
            )
        )
        all_units = total.write_units / seconds
        lines.append(
            Line(f"{system}: ... on the whole table", all_units, "units/s", "default quota", limits.TABLE_WRITES)
        )
    return lines
