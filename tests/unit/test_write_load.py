"""Five hundred results a second to one pool leave every partition key below DynamoDB's 1,000 write units a second."""

from __future__ import annotations

import pytest

from shared.store import keys
from tests.bench import limits, pools


@pytest.mark.parametrize("system", sorted(pools.WIDTH))
def test_no_key_is_hotter_than_dynamodb_allows(system: str) -> None:
    worst, total = limits.load_of(500, 4, next(pools.games(system, 1, 200)))
    hottest, units = worst.most_common(1)[0]
    assert units < limits.KEY_WRITES, hottest
    inboxes = [key for key in worst if key.startswith("INBOX#")]
    assert len(inboxes) == keys.SHARDS
    assert sum(total.written[key] for key in inboxes) == 2 * 500 * 4


def test_one_shard_would_not_do() -> None:
    """Why the ledger is spread: two units each, 500 times a second, are the whole of what one key takes."""
    worst, _ = limits.load_of(500, 1, next(pools.games("spades", 1, 200)))
    assert sum(units for key, units in worst.items() if key.startswith("INBOX#")) >= limits.KEY_WRITES
