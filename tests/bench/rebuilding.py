"""A pool that is rebuilt, changed as a whole, and rebuilt again: what the rater holds and does meanwhile.

The table is a process of its own, so that the rater's memory is the rater's: ``python -m tests.bench.rebuilding GAMES
PLAYERS MINUTES`` prints a line of JSON for each step.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

import msgspec
from botocore.exceptions import ClientError

from shared.ledger import segments
from shared.ledger.events import Event
from shared.ledger.order import utc_month
from shared.ratings import rule_system
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases import compact, rating, rebuild
from tests.bench import fold, pools
from tests.bench.table import peak_mb
from tests.bench.units import MeteredBucket
from tests.integration.ladder import DAY, MINUTE, Ladder
from tests.integration.memory import MemoryBucket, MemoryTable

RULES = [{"from": "2000-01-01"}]
OTHER_RULES = [{"from": "2000-01-01", "k": 40}]
"""By which every game is rated otherwise."""
NEVER_READ = ("HIST#", "LABEL#", "MEMBER#")
"""Pointers, which a rebuild only writes: the fake need not keep them."""


# -- a table in another process ------------------------------------------------------------------------------------
class _Packed(dict[str, Any]):
    """A partition whose items are kept as bytes."""

    def __setitem__(self, sk: str, item: Any) -> None:
        super().__setitem__(sk, msgspec.msgpack.encode(item))

    def __getitem__(self, sk: str) -> Any:
        return msgspec.msgpack.decode(super().__getitem__(sk))

    def get(self, sk: str, default: Any = None) -> Any:
        if sk not in self:
            return default
        return self[sk]


class _Forgetful(MemoryTable):
    def _store(self, item: dict[str, Any]) -> None:
        pk = item["pk"]["S"]
        if not pk.startswith(NEVER_READ):
            self.partitions.setdefault(pk, _Packed())
            super()._store(item)


def _serve(connection: Connection) -> None:
    table: Any = _Forgetful()
    while (call := connection.recv()) is not None:
        name, arguments = call
        try:
            connection.send((None, getattr(table, name)(**arguments)))
        except ClientError as error:
            connection.send(((error.response, error.operation_name), None))
        table.calls.log.clear()


class TableProcess:
    """The client of a table that is kept in another process; counts calls by name."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            with self._lock:
                self.requests[name] += 1
                self._connection.send((name, arguments))
                failure, answer = self._connection.recv()
            if failure is not None:
                raise ClientError(*failure)
            return answer

        return call

    def close(self) -> None:
        """End the process."""
        self._connection.send(None)
        self._process.join()


# -- a large pool ----------------------------------------------------------------------------------------------------
def ledger_of(games: int, players: int, minutes: int) -> dict[str, bytes]:
    """The stored segments of a Spades pool by month, made in a process of its own (see ``segments_of``)."""
    code = (
        "import pickle, sys; from tests.bench import rebuilding;"
        "sys.stdout.buffer.write(pickle.dumps(rebuilding.segments_of(*map(int, sys.argv[1:]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(games), str(players), str(minutes)], stdout=subprocess.PIPE, check=True
    )
    made: dict[str, bytes] = pickle.loads(done.stdout)
    return made


def segments_of(games: int, players: int, minutes: int = 0) -> dict[str, bytes]:
    """The same, here. ``minutes``: how long each game took; those that took any time are told one by one."""
    months: dict[str, list[Event]] = {}
    for event in pools.events("spades", games, players):
        game = event.game
        assert game is not None
        longer = msgspec.structs.replace(game, started_at=game.started_at - minutes * MINUTE)
        months.setdefault(utc_month(event.accepted_at), []).append(msgspec.structs.replace(event, game=longer))
    rules = rule_system("spades")
    return {month: segments.encode(segments.columnar(rules, events)) for month, events in months.items()}


def pool_in(client: Any, ledger: dict[str, bytes]) -> tuple[Ladder, MeteredBucket]:
    """A pool whose ledger lies in segments, and of which nothing is rated yet."""
    bucket = MeteredBucket(MemoryBucket())
    ladder = Ladder.over(Table(client, "memory"), Bucket(bucket, "data"))  # type: ignore[arg-type]
    ladder.now = pools.BEGIN - 2 * DAY  # so the first month of the ledger is one that is looked at
    ladder.open_pool("p", "spades", RULES)
    for month, body in ledger.items():
        bucket.put_object(Bucket="data", Key=compact.key("p", month), Body=body)
    ladder.now = fold.UNTIL
    compact.compact(ladder.ctx, ladder.pool())
    return ladder, bucket


def steps(ladder: Ladder) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is done with it, one after the other: every row is new, none changes, all change."""

    def rebuilt() -> None:
        rebuild.request(ladder.ctx, ladder.pool())
        ladder.rate()

    def other_rules() -> None:
        ladder.open_pool("p", "spades", OTHER_RULES)
        with mock.patch.object(rating, "LONG_REPLAY", 0):  # as for a pool of a million games
            ladder.rate()

    yield "every row is new", rebuilt
    yield "nothing changes", rebuilt
    yield "every row changes", other_rules


def main(games: int, players: int, minutes: int) -> None:
    """Run the steps in this process and print what each took."""
    ledger = ledger_of(games, players, minutes)
    table = TableProcess()
    ladder, _ = pool_in(table, ledger)
    ladder.ctx = replace(ladder.ctx, writes_at_once=8)
    del ledger
    gc.collect()
    before = peak_mb()
    for step, act in steps(ladder):
        begin = time.process_time()
        act()
        seconds = time.process_time() - begin
        print(json.dumps({"step": step, "cpu": seconds, "mb": peak_mb() - before, "idle": before}), flush=True)
        assert ladder.cursor().games == games
    table.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
