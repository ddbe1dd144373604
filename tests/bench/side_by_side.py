"""Several publisher runs side by side on one machine: processes that share what the cloud would share.

The pool's table is the in-memory one, which each process has as it was when it began; the item with the lease and the
counter of parts, and what helpers are told, are files that all see. Pages are counted and thrown away.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shared.store import keys
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases.context import Context
from site_builder import parts, publisher
from tests.bench.table import peak_mb
from tests.integration.memory import MemoryBucket, MemoryTable


class SharedItem:
    """A table's client, of which one item is the same for every process."""

    def __init__(self, client: Any, key: tuple[str, str], file: Path) -> None:
        self._client, self._key, self._file = client, {"pk": {"S": key[0]}, "sk": {"S": key[1]}}, file
        found = client.find(self._key)
        file.write_text(json.dumps(found))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in ("get_item", "update_item"):
            return method

        def call(**arguments: Any) -> Any:
            if arguments["Key"] != self._key:
                return method(**arguments)
            with self._file.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                table = MemoryTable()
                table.store(json.load(file))
                answer = getattr(table, name)(**arguments)
                file.seek(0)
                file.truncate()
                json.dump(table.find(self._key), file)
                file.flush()
            return answer

        return call


class SharedFolder:
    """A bucket's client: what helpers are told lies in a folder, the rest where it was."""

    def __init__(self, client: MemoryBucket, folder: Path) -> None:
        self._client, self._folder = client, folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _file(self, key: str) -> Path:
        return self._folder / key.replace("/", "_")

    def put_object(self, *, Key: str, Body: bytes, **more: Any) -> Any:  # noqa: N803 - AWS's names
        """Whole or not at all."""
        if not Key.startswith("parts/"):
            return self._client.put_object(Key=Key, Body=Body, **more)
        half = self._file(Key).with_suffix(f".{os.getpid()}")
        half.write_bytes(Body)
        half.rename(self._file(Key))
        return {}

    def get_object(self, *, Key: str, **more: Any) -> Any:  # noqa: N803 - AWS's names
        """As put."""
        file = self._file(Key)
        if Key.startswith("parts/") and file.exists():
            return {"Body": file.open("rb")}
        return self._client.get_object(Key=Key, **more)


class Sink(MemoryBucket):
    """Counts what is written and forgets it."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.bytes = 0

    def put_object(self, *, Body: bytes, **_: Any) -> Any:  # noqa: N803 - AWS's names
        """One more."""
        self.puts += 1
        self.bytes += len(Body)
        return {}

    def paginate(self, **_: Any) -> Iterator[Mapping[str, Any]]:
        """Nothing stands there."""
        return iter(())


@dataclass
class Share:
    """What one process did."""

    objects: int
    bytes: int
    cpu: float
    memory: float
    """MB above what the process began with, which is the fake table."""


@dataclass
class Outcome:
    """A publication."""

    seconds: float
    lead: Share
    helpers: list[Share]
    helped: int
    """Parts that helpers did."""

    @property
    def shares(self) -> list[Share]:
        """Of all processes."""
        return [self.lead, *self.helpers]


def publish(ctx: Context, pool: str, helpers: int, folder: Path) -> Outcome:
    """Publish everything, with so many helpers at a time, in real time."""
    folder.mkdir()
    reports: list[Path] = []
    running: set[int] = set()
    sink = Sink()

    def help_with(_pool: str, run: int, stage: str) -> None:
        report = folder / f"report-{len(reports)}"
        reports.append(report)
        child = os.fork()
        if child:
            running.add(child)
            return
        try:
            sink.puts = sink.bytes = 0
            begun, memory = time.process_time(), peak_mb()
            parts.help_out(shared, pool, run, stage)
            told = [sink.puts, sink.bytes, time.process_time() - begun, peak_mb() - memory]
            report.write_text(json.dumps(told))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    ctx.data.delete([f"published/{pool}/list"])
    table: Any = SharedItem(ctx.table.client, keys.published(pool), folder / "item")
    data: Any = SharedFolder(ctx.data.client, folder)  # type: ignore[arg-type]
    site: Any = sink
    shared = replace(
        ctx,
        table=Table(table, "memory"),
        data=Bucket(data, "data"),
        site=Bucket(site, "site"),
        helpers=helpers,
        ask_for_help=help_with,
    )
    gc.collect()
    gc.freeze()
    memory, cpu, begun = peak_mb(), time.process_time(), time.perf_counter()
    done = publisher.publish(shared, pool)
    seconds = time.perf_counter() - begun
    assert done is not None
    lead = Share(sink.puts, sink.bytes, time.process_time() - cpu, peak_mb() - memory)
    for child in running:
        os.waitpid(child, 0)
    return Outcome(seconds, lead, [Share(*json.loads(r.read_text())) for r in reports if r.exists()], done.helped)
