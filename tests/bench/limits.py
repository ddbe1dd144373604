"""A model of the limits that a pool's traffic meets first, and of the load it puts on each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from shared.ledger.events import Event, event_id
from shared.ratings.base import Game
from shared.store import keys, ledger
from shared.store.table import Put, to_wire
from tests.bench.units import Meter

KEY_WRITES = 1_000
"""Write units a second on one partition key; DynamoDB's hard limit."""
KEY_READS = 3_000
TABLE_WRITES = 40_000
"""Write units a second of one on-demand table, an account's default quota; raised on request."""
CONCURRENCY = 1_000
"""Lambda: an account's default, raised on request."""
SHARD_WRITES = 1_000
"""Records a second of one shard of the stream; a shard belongs to a partition."""
S3_PUTS = 3_500
"""PUTs a second below one prefix."""


@dataclass
class Submission:
    """What one submitted result writes, by partition key, with the sizes that the real code makes."""

    game: Game
    club: str
    pool: str = "p"

    def operations(self, at: int, number: int) -> list[Put]:
        """The four writes of a submission: game, fingerprint, ledger event, inbox entry."""
        event = Event(event_id(at, f"{number:012d}"), "game", at, "finished", self.game)
        body = "x" * 450  # the game's item: content, the draft as sent, its digest
        return [
            Put({"pk": keys.game(self.pool, self.club, self.game.game_id)[0], "sk": "META", "game": body}),
            Put({"pk": keys.fingerprint(self.pool, f"{number:032x}")[0], "sk": "META"}),
            *[operation for operation in ledger.append(self.pool, event) if isinstance(operation, Put)],
        ]


def load_of(games_per_second: int, seconds: int, game: Game) -> tuple[Counter[str], Meter]:
    """The most write units that any second puts on each partition key, at an even rate of submissions."""
    worst: Counter[str] = Counter()
    total = Meter()
    for second in range(seconds):
        meter = Meter()
        for number in range(games_per_second):
            count = second * games_per_second + number
            at = 1_790_000_000_000_000 + count * 1_000_000 // games_per_second
            one = Game(game.club, f"g{count}", 1, at, at, group=game.group, content=game.content)
            wire = [{"Put": {"Item": to_wire(o.item)}} for o in Submission(one, game.club).operations(at, count)]
            meter.call("transact_write_items", {"TransactItems": wire}, {})
        for key, units in meter.written.items():
            worst[key] = max(worst[key], units)
        total.written.update(meter.written)
    return worst, total
