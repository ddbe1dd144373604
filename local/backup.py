"""Backups: what cannot be made again, out of the table and back into an empty one; ratings are then folded anew.

    python -m local backup  --stack STACK --to s3://bucket/prefix     (or a folder)
    python -m local restore --stack STACK --from s3://bucket/prefix   (or a folder)

The files are those of DynamoDB's own export to S3: gzipped lines `{"Item": {...}}` in DynamoDB's JSON. So `restore`
reads the exports that the schedule of the stack makes, too. Rows of ratings are in those, and are passed over.

A backup made while results come in is whole in this sense: a game is in it when its event in the ledger is, and the
other way round. Everything but the ledger is read first; the ledger last, so that it knows every game that was seen;
games accepted meanwhile are read again just before; an event that is newer than its game's copy is left out.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from shared.ledger import calendar
from shared.ledger.events import Event, decode, encode, event_id
from shared.ledger.order import utc_month
from shared.ratings.base import MICROSECONDS
from shared.store import keys, ledger, people, pools, rated
from shared.store.table import BATCH_WRITE_ITEMS, Item, Put, Table, from_wire, to_wire
from shared.usecases import closing, compact, erasure
from shared.usecases.context import Context
from shared.usecases.pools import republish

FORMAT = 1
MANIFEST = "manifest.json"
NATIVE_MANIFEST = "manifest-summary.json"
"""DynamoDB's own exports say with it that they are complete."""
DERIVED = ("RATED#", "STATE#", "HIST#", "LABEL#", "OPEN#", "HELD#", "ALIASES#", "OUTBOX#")
"""Partitions that the ledger makes again."""
PASSING = ("LIMIT#", "IMPORTING#")
"""Partitions that mean nothing an hour later. What is not named here is kept, so no new kind of item is lost by it."""
POOL_ROWS = ("CURSOR", "INDEX", "APPLIED", "REPLAY", "FROZEN")
"""Rows of a pool that the ledger makes again."""
TOLD = ("CURSOR", "FROZEN")
"""Of these a backup holds a copy that is not put back: how far the pool was, and its state hash."""
LAST = ("POOLS", "INBOX#")
"""Restored last: before it is listed nobody finds a pool, and nobody rates half a ledger."""
ORDERS = ("erase",)
"""What lies in an inbox is in the ledger too, but for orders like these."""
RECENT = 120 * MICROSECONDS
"""Events accepted so shortly before the beginning may still have been on their way into the table."""
DAY = 86_400 * MICROSECONDS
LINES = 20_000
"""Items a file holds."""
SEGMENTS = 4


class BackupError(Exception):
    """A backup that is not whole, or a table that is not empty. The message says which."""


class Place(Protocol):
    """Where a backup lies."""

    def write(self, name: str, body: bytes) -> None:
        """Write a file."""

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises FileNotFoundError."""

    def names(self) -> list[str]:
        """All files, sorted."""


class Folder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, body: bytes) -> None:
        """Write a file, readable by its owner alone: it holds names."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(body)
        target.chmod(0o600)

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        return (self.path / name).read_bytes()

    def names(self) -> list[str]:
        """All files, sorted."""
        return sorted(p.relative_to(self.path).as_posix() for p in self.path.rglob("*") if p.is_file())


class S3Prefix:
    """Objects below a prefix of a bucket."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self.client = client
        self.bucket = bucket
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""

    def write(self, name: str, body: bytes) -> None:
        """Write an object, encrypted by the bucket's rule."""
        self.client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=body)

    def read(self, name: str) -> bytes:
        """An object's bytes."""
        try:
            found: bytes = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            raise FileNotFoundError(name) from None
        return found

    def names(self) -> list[str]:
        """All objects below the prefix, by their names in it."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix)
        return sorted(e["Key"].removeprefix(self.prefix) for page in pages for e in page.get("Contents", []))


def _erased(ctx: Context, source: Place, told: Place | None) -> set[str]:
    """Server-made ids of all who were erased, by the stack's data bucket, the bucket of a copy, and a list that was
    named; from now on the stack's own bucket knows them all."""
    own = {key.removeprefix(erasure.ERASED) for key, _ in ctx.data.list(erasure.ERASED)}
    known = set(told.names()) if told is not None else set()
    if isinstance(source, S3Prefix):
        known |= set(S3Prefix(source.client, source.bucket, erasure.ERASED).names())
    for sid in sorted(known - own):
        ctx.data.put(erasure.ERASED + sid, b"", "application/octet-stream")
    return known | own


def place(text: str, s3: Callable[[], Any]) -> Place:
    """`s3://bucket/prefix` or a folder."""
    if text.startswith("s3://"):
        bucket, _, prefix = text.removeprefix("s3://").partition("/")
        return S3Prefix(s3(), bucket, prefix)
    return Folder(Path(text))


# -- what is kept --------------------------------------------------------------------------------------------------
def is_kept(pk: str, sk: str) -> bool:
    """Whether an item cannot be made again."""
    if pk.startswith((*DERIVED, *PASSING)):
        return False
    return not (pk.startswith("POOL#") and sk in POOL_ROWS)


def _is_order(item: Item) -> bool:
    """Whether an entry of an inbox is one that no ledger holds and that must not be lost."""
    return decode(item["event"]).kind in ORDERS


def _line(wire: Mapping[str, Any]) -> bytes:
    return json.dumps({"Item": wire}, separators=(",", ":"), default=_binary).encode() + b"\n"


def _binary(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _wire_of(line: bytes) -> dict[str, Any]:
    wire: dict[str, Any] = json.loads(line)["Item"]
    return {name: _with_bytes(value) for name, value in wire.items()}


def _with_bytes(value: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    if kind == "B":
        return {"B": base64.b64decode(content)}
    if kind == "L":
        return {"L": [_with_bytes(v) for v in content]}
    if kind == "M":
        return {"M": {k: _with_bytes(v) for k, v in content.items()}}
    return dict(value)


# -- out -----------------------------------------------------------------------------------------------------------
@dataclass
class Backup:
    """What a backup holds."""

    made_at: int
    items: int = 0
    events: dict[str, int] = field(default_factory=dict)
    """Events of the ledger by pool."""
    left_out: int = 0
    """Events that came in at the very end; the next backup has them."""
    hashes: dict[str, str] = field(default_factory=dict)
    """State hash by pool, of pools where nothing waited to be rated."""


@dataclass
class _Files:
    to: Place
    number: int = 0
    lines: list[bytes] = field(default_factory=list)
    items: int = 0

    def add(self, wire: Mapping[str, Any]) -> None:
        self.lines.append(_line(wire))
        self.items += 1
        if len(self.lines) >= LINES:
            self.flush()

    def flush(self) -> None:
        if self.lines:
            self.to.write(f"data/{self.number:06d}.json.gz", gzip.compress(b"".join(self.lines), 6, mtime=0))
            self.number, self.lines = self.number + 1, []


def export(table: Table, to: Place, now: int, segments: int = SEGMENTS) -> Backup:
    """Write what cannot be made again. The manifest comes last: without it a backup is not whole.

    Raises:
        BackupError: there is a backup already.
    """
    if to.names():
        raise BackupError("there is something already: give each backup a place of its own")
    made, files, since = Backup(now), _Files(to), now - RECENT
    for wire in _scan(table, segments):
        pk, sk = wire["pk"]["S"], wire["sk"]["S"]
        if pk.startswith("LEDGER#") or (pk.startswith("INBOX#") and not _is_order(from_wire(wire))):
            continue
        if is_kept(pk, sk) or (pk.startswith("POOL#") and sk in TOLD):
            files.add(wire)
    for pool_id in pools.all_ids(table):
        pool = pools.load(table, pool_id)
        if pool is not None:
            _export_ledger(table, pool, since, now, files, made)
            cursor = rated.read_cursor(table, pool_id)
            if cursor.position == made.events[pool_id]:
                made.hashes[pool_id] = cursor.hash
    files.flush()
    made.items = files.items
    to.write(MANIFEST, json.dumps({"format": FORMAT, **made.__dict__}, indent=1).encode())
    return made


def _scan(table: Table, segments: int) -> Iterator[dict[str, Any]]:
    """Every item, in DynamoDB's own form; the parts are read side by side."""

    def part(number: int, start: Any) -> Any:
        more = {"ExclusiveStartKey": start} if start else {}
        return table.client.scan(
            TableName=table.name, ConsistentRead=True, Segment=number, TotalSegments=segments, **more
        )

    with ThreadPoolExecutor(segments) as pool:
        running = {number: pool.submit(part, number, None) for number in range(segments)}
        while running:
            for number, future in list(running.items()):
                answer = future.result()
                if start := answer.get("LastEvaluatedKey"):
                    running[number] = pool.submit(part, number, start)
                else:
                    del running[number]
                yield from answer["Items"]


def _months(pool: pools.Pool, now: int) -> Iterator[str]:
    month, last = utc_month(pool.created_at - DAY), utc_month(now + DAY)
    while month <= last:
        yield month
        year, number = calendar.next_month(int(month[:4]), int(month[5:]))
        month = f"{year:04d}-{number:02d}"


def _export_ledger(table: Table, pool: pools.Pool, since: int, now: int, files: _Files, made: Backup) -> None:
    """A pool's ledger, and once more what belongs to its newest events."""
    copied = _export_recent_games(table, pool, since, now, files)
    count = 0
    for month in _months(pool, now):
        for event in ledger.read_month(table, pool.id, month):
            if event.accepted_at >= since and event.game is not None:
                ref = (event.game.club, event.game.game_id)
                if copied.get(ref, 0) < event.game.revision:
                    made.left_out += 1
                    continue
            pk = keys.ledger(pool.id, month, ledger.inbox_shard(event))
            files.add(to_wire({"pk": pk, "sk": event.id, "event": encode(event)}))
            count += 1
    made.events[pool.id] = count


def _export_recent_games(
    table: Table, pool: pools.Pool, since: int, now: int, files: _Files
) -> dict[tuple[str, str], int]:
    """The games that the newest events are of, with what was stored together with them: each game's revision."""
    recent = [e for month in {utc_month(since), utc_month(now + DAY)} for e in _newer(table, pool.id, month, since)]
    games = {keys.game(pool.id, e.game.club, e.game.game_id) for e in recent if e.game is not None}
    found = table.batch_get(games)
    beside: set[tuple[str, str]] = set()
    for item in found.values():
        files.add(to_wire(item))
        if item.get("fingerprint"):
            beside.add(keys.fingerprint(pool.id, item["fingerprint"]))
    sids = {p for e in recent if e.game is not None for p in pool.system.mentioned(e.game.content)}
    sids |= {e.player for e in recent if e.player}
    for person in people.persons(table, sids).values():
        beside |= {keys.person(person.sid), keys.handle(person.handle), keys.door(person.handle, pool.id)}
        for club in person.clubs:
            for item in table.query(keys.roster(club)):
                if item["sid"] == person.sid:
                    files.add(to_wire(item))
    for item in table.batch_get(beside).values():
        files.add(to_wire(item))
    return {_ref(item): int(item["revision"]) for item in found.values()}


def _newer(table: Table, pool: str, month: str, since: int) -> Iterator[Event]:
    for number in range(keys.SHARDS):
        for item in table.query(keys.ledger(pool, month, number), first=event_id(since, "")):
            yield decode(item["event"])


def _ref(item: Item) -> tuple[str, str]:
    _, _, club, game_id = item["pk"].split("#")
    return club, game_id


# -- back ----------------------------------------------------------------------------------------------------------
@dataclass
class Restored:
    """What a restore brought back."""

    items: int = 0
    events: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    """State hashes as the backup has them; a pool where results waited to be rated has none."""
    erased: list[str] = field(default_factory=list)
    """Server-made ids of those who were erased after the backup was made, and are erased again."""

    @property
    def differing(self) -> list[str]:
        """Pools whose ratings are not those of the backup."""
        return sorted(p for p, h in self.expected.items() if self.hashes.get(p) != h)


@dataclass
class _Seen:
    """What the files tell of the pools."""

    events: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    cursors: dict[str, Item] = field(default_factory=dict)
    until: dict[str, int] = field(default_factory=dict)
    """The latest closing that was applied, or frozen."""
    waiting: set[str] = field(default_factory=set)
    last: list[Item] = field(default_factory=list)

    def note(self, item: Item) -> None:
        pk, sk = item["pk"], item["sk"]
        if pk.startswith("LEDGER#"):
            pool = pk.split("#")[1]
            self.events[pool] = self.events.get(pool, 0) + 1
            self.newest[pool] = max(self.newest.get(pool, 0), decode(item["event"]).accepted_at)
        elif pk.startswith("INBOX#") and not _is_order(item):
            self.waiting.add(pk.split("#")[1])
        elif pk.startswith("POOL#") and sk in TOLD:
            pool = pk.removeprefix("POOL#")
            if sk == "CURSOR":
                self.cursors[pool] = item
            until = item.get("closed_until" if sk == "CURSOR" else "until")
            self.until[pool] = max(self.until.get(pool, 0), until or 0)


def restore(
    ctx: Context, source: Place, *, anyway: bool = False, erased: Place | None = None, workers: int = SEGMENTS
) -> Restored:
    """Fill an empty table from a backup, fold every pool's ledger, and ask for all pages.

    Args:
        ctx: the table to fill, the buckets beside it.
        source: a backup, or one export of DynamoDB's own.
        anyway: the table need not be empty (to go on with a restore that broke off).
        erased: where another data bucket names those who were erased.
        workers: batches written side by side.

    Raises:
        BackupError: the table is not empty, or the backup not whole.
    """
    names, expected = _whole(source)
    if not anyway and ctx.table.client.scan(TableName=ctx.table.name, Limit=1).get("Items"):
        raise BackupError(f"table {ctx.table.name} is not empty")
    result, seen = Restored(expected=expected), _Seen()
    for name in names:
        _put_file(ctx.table, gzip.decompress(source.read(name)).splitlines(), seen, result, workers)
    ctx.table.batch_write(puts=seen.last)
    result.erased = erasure.again(ctx, _erased(ctx, source, erased))
    result.items += len(seen.last)
    result.events = seen.events
    if not expected:  # DynamoDB's own export is of one instant, so its cursors tell
        ours = {p: c for p, c in seen.cursors.items() if p not in seen.waiting}
        result.expected = {p: str(c["hash"]) for p, c in ours.items()}
    for pool in pools.all_ids(ctx.table):
        _bring_up(ctx, pool, seen)
        result.hashes[pool] = rated.read_cursor(ctx.table, pool).hash
    return result


def _whole(source: Place) -> tuple[list[str], dict[str, str]]:
    """The files of a whole backup, oldest first, and the state hashes it knows."""
    names = source.names()
    data = [n for n in names if n.endswith(".json.gz") and "data/" in n]
    if MANIFEST in names:
        manifest = json.loads(source.read(MANIFEST))
        if manifest["format"] != FORMAT:
            raise BackupError(f"format {manifest['format']} is newer than this program")
        return data, manifest["hashes"]
    exports = sorted(n.rpartition("/")[0] for n in names if n.rpartition("/")[2] == NATIVE_MANIFEST)
    if not exports:
        raise BackupError("no whole backup is there: a manifest is written last, and there is none")
    newest = exports[-1]
    return [n for n in data if n.startswith(f"{newest}/data/" if newest else "data/")], {}


def _put_file(table: Table, lines: Iterable[bytes], seen: _Seen, result: Restored, workers: int) -> None:
    """Put a file's items; where one comes twice, its later line counts."""
    wanted: dict[tuple[str, str], Item] = {}
    for line in lines:
        item = from_wire(_wire_of(line))
        seen.note(item)
        if item["pk"].startswith(LAST):
            if not item["pk"].startswith("INBOX#") or _is_order(item):
                seen.last.append(item)
        elif item["pk"].startswith("POOL#") and item["sk"] == "PUBLISHED":
            kept = {k: v for k, v in item.items() if k not in ("asked", "leased")}
            wanted[(item["pk"], item["sk"])] = kept
        elif is_kept(item["pk"], item["sk"]):
            wanted[(item["pk"], item["sk"])] = item
    rows = iter(wanted.values())
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(rows, BATCH_WRITE_ITEMS * workers)):
            parts = [chunk[n : n + BATCH_WRITE_ITEMS] for n in range(0, len(chunk), BATCH_WRITE_ITEMS)]
            list(pool.map(table.batch_write, parts))
    result.items += len(wanted)


def _bring_up(ctx: Context, pool_id: str, seen: _Seen) -> None:
    """Fold a pool's ledger, as far in time as it was, freeze its lists, and ask for all of its pages."""
    # What was made of another state of the ledger may know events that this one does not: it is made anew.
    ctx.data.delete([key for key, _ in ctx.data.list(compact.prefix(pool_id))])
    cursor = rated.read_cursor(ctx.table, pool_id)
    told = rated.bump(cursor, position=seen.events.get(pool_id, 0), newest=seen.newest.get(pool_id, cursor.newest))
    ctx.table.write(rated.put_cursor(told, cursor.version))
    now = ctx.clock()
    event = Event(event_id(now, ctx.token(12)), "rebuild", now)
    ctx.table.write(Put({"pk": keys.inbox(pool_id, ledger.inbox_shard(event)), "sk": event.id, "event": encode(event)}))
    closing.close(ctx, pool_id, max(now, seen.until.get(pool_id, 0) + closing.SETTLING))
    ctx.table.write(republish(ctx, pool_id))
    ctx.ask_to_publish(pool_id, 0)
