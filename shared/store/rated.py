"""Ratings in the table: rows in two versions, so that a replay is invisible until one small write makes it whole.

Every row of the ratings (a rated moment, a player's state, an open or held game, an alias) is one item with up to two
versions: ``a`` of generation ``ag`` and ``b`` of generation ``bg``. A replay claims a new generation and writes what
differs as ``b``; readers take ``b`` only when its generation is the cursor's or older and not given up. Moving the
cursor's generation is the one write that makes all of it count. Each batch of a replay checks in its transaction that
the claim is still its own, so a replay that was overtaken cannot write any more.
"""

from __future__ import annotations

import base64
import heapq
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from shared.ledger.fold import Rated
from shared.ledger.order import BEGINNING, CLOSING, kind_of, utc_month
from shared.ledger.statehash import to_hex
from shared.ratings.base import Game, PlayerState, Rating
from shared.store import keys
from shared.store.bucket import Bucket
from shared.store.table import Delete, Item, Key, Operation, Put, Table

LONG_STATE = 12_000
"""Bytes from which a state is packed: labels of clubs, groups, tournaments and years shrink to a sixth."""
PACKED = "z"
"""What a packed text begins with; JSON never does."""


class StaleView(Exception):
    """The reader's cursor is older than what it found; read the cursor again."""


@dataclass(frozen=True)
class Cursor:
    """How far a pool is rated. One item; every change of ratings is conditional on its version."""

    pool: str
    version: int = 0
    generation: int = 0
    """The generation that readers see."""
    claimed: int = 0
    """The newest generation that a replay has claimed."""
    dead: tuple[int, ...] = ()
    """Generations given up: their rows do not count."""
    position: int = 0
    """How many events of the ledger are in."""
    head: str = ""
    """The last order applied: what sorts behind it can be appended."""
    closed_until: int | None = None
    """The latest closing applied."""
    hash: str = to_hex(0)
    players: int = 0
    games: int = 0
    """Rated games."""
    held: int = 0
    newest: int = BEGINNING
    """The latest ``accepted_at`` among the events that are in."""
    rules_version: int = 0
    removing: bool = False
    """The last replay may not have taken its events out of the inbox yet."""

    @property
    def is_claimed(self) -> bool:
        """Whether a replay has begun to write the next generation (and may have died since)."""
        return self.claimed > self.generation and self.claimed not in self.dead

    @property
    def view(self) -> View:
        """What readers of this cursor see."""
        return View(self.generation, frozenset(self.dead))


@dataclass(frozen=True)
class View:
    """Which versions of rows count."""

    generation: int
    dead: frozenset[int] = frozenset()

    def counts(self, generation: int) -> bool:
        """Whether what was written under a generation can be seen."""
        return generation <= self.generation and generation not in self.dead

    def pick(self, item: Item | None) -> str | None:
        """The row's text in this view, or None when it does not exist there.

        Raises:
            StaleView: the row has already been written over twice since this view's cursor was read.
        """
        if item is None:
            return None
        if "bg" in item and self.counts(item["bg"]):
            return item.get("b")
        if item.get("ag", 0) > self.generation:
            raise StaleView(item["pk"])
        return item.get("a")


class StateRow(msgspec.Struct, array_like=True, gc=False):
    """A player's state and the order of his last change."""

    state: PlayerState
    last: str


class OpenRow(msgspec.Struct, array_like=True, gc=False):
    """An open game and its frozen start ratings."""

    game: Game
    start: list[Rating]


class HeldRow(msgspec.Struct, array_like=True, gc=False):
    """A game that cannot be rated, and why."""

    game: Game
    reason: str


class Checkpoint(msgspec.Struct, array_like=True, gc=False):
    """Where the states right after a closing are kept."""

    at: int
    key: str
    moments: int


@dataclass(frozen=True)
class Index:
    """Which months have rated rows, and the checkpoints, oldest first."""

    months: tuple[str, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()


_encode = msgspec.json.Encoder().encode
_rated = msgspec.json.Decoder(Rated)
_state = msgspec.json.Decoder(StateRow)
_open = msgspec.json.Decoder(OpenRow)
_held = msgspec.json.Decoder(HeldRow)
_checkpoints = msgspec.json.Decoder(tuple[Checkpoint, ...])
_states = msgspec.json.Decoder(dict[str, PlayerState])


def dump(row: Any) -> str:
    """A row's text."""
    return _encode(row).decode()


def load_rated(text: str) -> Rated:
    """A rated moment from its text."""
    return _rated.decode(text)


def dump_state(row: StateRow) -> str:
    """A state's text; packed when it is long, as that of somebody who played in a thousand tournaments."""
    text = _encode(row)
    if len(text) <= LONG_STATE:
        return text.decode()
    return PACKED + base64.b85encode(zlib.compress(text, 6)).decode()


def load_state(text: str) -> StateRow:
    """A state from its text."""
    if text.startswith(PACKED):
        return _state.decode(zlib.decompress(base64.b85decode(text[len(PACKED) :])))
    return _state.decode(text)


# -- cursor and index --------------------------------------------------------------------------------------------
def _cursor_from(item: Item) -> Cursor:
    fields = {f: item[f] for f in Cursor.__dataclass_fields__ if f in item}
    fields["dead"] = tuple(item.get("dead", ()))
    return Cursor(**fields)


def read_cursor(table: Table, pool: str) -> Cursor:
    """A pool's cursor; a fresh one when nothing is rated yet. One consistent read."""
    return cursor_of(pool, table.get(*keys.cursor(pool)))


def cursor_of(pool: str, item: Item | None) -> Cursor:
    """A cursor from its item; a fresh one when there is none."""
    return _cursor_from(item) if item else Cursor(pool)


def put_cursor(cursor: Cursor, condition_version: int) -> Put:
    """The write of a cursor (its version one higher), on condition that nobody else has moved it."""
    pk, sk = keys.cursor(cursor.pool)
    item = {"pk": pk, "sk": sk, **{f: getattr(cursor, f) for f in Cursor.__dataclass_fields__}}
    item["dead"] = list(cursor.dead)
    item["version"] = condition_version + 1
    if condition_version == 0:
        return Put(item, "attribute_not_exists(pk)")
    return Put(item, "#version = :was", {"was": condition_version})


def index_key(pool: str) -> Key:
    """The pool's index of months and checkpoints."""
    return f"POOL#{pool}", "INDEX"


def read_index(table: Table, pool: str) -> Index:
    """The index; empty when nothing is rated yet."""
    item = table.get(*index_key(pool))
    if item is None:
        return Index()
    return Index(
        tuple(sorted(item.get("months", ()))), _checkpoints.decode(item["checkpoints"]) if "checkpoints" in item else ()
    )


# -- rows --------------------------------------------------------------------------------------------------------
def rated_key(pool: str, order: str, at: int) -> Key:
    """Where a rated moment of that order and instant is kept."""
    return keys.rated(pool, utc_month(at), keys.shard(order, keys.RATED_SHARDS)), order


def is_rated_key(key: Key) -> bool:
    """Whether it is a rated moment that is kept there."""
    return key[0].startswith("RATED#")


def month_of(key: Key) -> str:
    """The month of a rated moment's key."""
    return key[0].rsplit("#", 2)[1]


def read_rows(
    table: Table, pk: str, view: View, *, first: str | None = None, last: str | None = None
) -> Iterator[tuple[str, str]]:
    """(sort key, text) of the rows of a partition that exist in the view."""
    for item in table.query(pk, first=first, last=last):
        text = view.pick(item)
        if text is not None:
            yield item["sk"], text


def items_of_month(table: Table, pool: str, month: str, *, first: str | None = None) -> Iterator[Item]:
    """The items of the rated moments of a month in played order, from an order on (inclusive), in whatever version:
    its shards side by side, each page by page."""
    shards = (table.query(keys.rated(pool, month, number), first=first) for number in range(keys.RATED_SHARDS))
    return heapq.merge(*shards, key=_sort_key)


def read_month(
    table: Table, pool: str, month: str, view: View, *, first: str | None = None
) -> Iterator[tuple[str, str]]:
    """(order, text) of the rated moments of a month that exist in the view, in played order, from an order on
    (inclusive)."""
    for item in items_of_month(table, pool, month, first=first):
        text = view.pick(item)
        if text is not None:
            yield item["sk"], text


def read_rated(table: Table, pool: str, months: Iterable[str], view: View, after: str = "") -> Iterator[Rated]:
    """The rated moments behind an order, in played order."""
    for month in sorted(months):
        for _, text in read_month(table, pool, month, view, first=after or None):
            yield _rated.decode(text)


def newest_of_month(table: Table, pool: str, month: str, view: View, chunk: int) -> Iterator[tuple[str, str]]:
    """(order, text) of the rated moments of a month from its end, without closings, of which there is one for every
    player. Reads no more than is taken, ``chunk`` items of a shard at a time."""
    shards = (_backwards(table, keys.rated(pool, month, number), chunk) for number in range(keys.RATED_SHARDS))
    for item in heapq.merge(*shards, key=_sort_key, reverse=True):
        text = view.pick(item)
        if text is not None:
            yield item["sk"], text


def _sort_key(item: Item) -> str:
    order: str = item["sk"]
    return order


def _backwards(table: Table, pk: str, chunk: int) -> Iterator[Item]:
    bound: str | None = None
    while True:
        found = list(table.query(pk, forward=False, last=bound, limit=chunk))
        for item in found:
            if kind_of(item["sk"]) == CLOSING:
                bound = item["sk"][:16]  # sorts before all that happened at its instant: only closings are passed over
                break
            if item["sk"] != bound:
                yield item
        else:
            if len(found) < chunk:
                return
            bound = found[-1]["sk"]


def read_states(table: Table, pool: str, sids: Iterable[str], view: View) -> dict[str, StateRow]:
    """The states of these players, as far as they have one. One round trip per 100."""
    wanted = {keys.state(pool, sid): sid for sid in sids}
    found = table.batch_get(wanted)
    rows: dict[str, StateRow] = {}
    for key, item in found.items():
        text = view.pick(item)
        if text is not None:
            rows[wanted[key]] = load_state(text)
    return rows


def read_all_states(table: Table, pool: str, view: View) -> dict[str, StateRow]:
    """Every player's state."""
    rows: dict[str, StateRow] = {}
    for number in range(keys.STATE_SHARDS):
        for sid, text in read_rows(table, keys.state_partition(pool, number), view):
            rows[sid] = load_state(text)
    return rows


def player_state(table: Table, pool: str, sid: str) -> PlayerState | None:
    """One player's current state, or None."""
    view = read_cursor(table, pool).view
    row = read_states(table, pool, [sid], view).get(sid)
    return row.state if row else None


def read_open(table: Table, pool: str, view: View) -> dict[str, OpenRow]:
    """Open games by ``club#game``."""
    return {sk: _open.decode(text) for sk, text in read_rows(table, keys.open_games(pool), view)}


def read_held(table: Table, pool: str, view: View) -> dict[str, HeldRow]:
    """Held games by ``club#game``."""
    return {sk: _held.decode(text) for sk, text in read_rows(table, keys.held(pool), view)}


def read_aliases(table: Table, pool: str, view: View) -> dict[str, str]:
    """Merged players: id merged away → survivor, as the merges said (not yet followed through)."""
    return dict(read_rows(table, keys.aliases(pool), view))


@dataclass
class Draft:
    """The rows that differ, before they are written: key → new text, or None for "no longer there"."""

    rows: dict[Key, str | None] = field(default_factory=dict)
    pointers: set[Key] = field(default_factory=set)
    """Pointers to add; they need no generation, as a pointer to a row that does not exist is passed over."""
    lost_pointers: set[Key] = field(default_factory=set)
    beside: list[Item] = field(default_factory=list)
    """Items that are new; they are written with the generation under which they count."""


def in_place(draft: Draft, generation: int) -> list[Operation]:
    """The draft as writes of the current generation, for one transaction with the cursor.

    A rated moment that is no longer there leaves an item without a text: what a run that sleeps would still write on
    condition that the row is as it saw it (see ``as_next``) must not bring it back.
    """
    operations: list[Operation] = []
    for (pk, sk), text in draft.rows.items():
        if text is not None:
            operations.append(Put({"pk": pk, "sk": sk, "ag": generation, "a": text}))
        elif is_rated_key((pk, sk)):
            operations.append(Put({"pk": pk, "sk": sk, "ag": generation}))
        else:
            operations.append(Delete((pk, sk)))
    operations += [Put({"pk": pk, "sk": sk}) for pk, sk in sorted(draft.pointers)]
    operations += [Put({**item, "generation": generation}) for item in draft.beside]
    return operations


def as_next(key: Key, current: str | None, view: View, text: str | None, generation: int) -> Item:
    """A row with its present version kept and the new one beside it, for a replay of ``generation``.

    Args:
        current: what stands in the view; None: nothing does.
    """
    item: Item = {"pk": key[0], "sk": key[1], "bg": generation, "ag": view.generation}
    if current is not None:
        item["a"] = current
    if text is not None:
        item["b"] = text
    return item


@dataclass(frozen=True, slots=True)
class Change:
    """A rated moment whose row a replay writes anew."""

    key: Key
    beside: int | None
    """The generation of the version ``b`` that was found there, whether it counts or not."""
    was: str | None
    """What stands in the view; None: nothing does."""
    now: str | None
    """What the fold says; None: nothing."""


def change_operation(change: Change, view: View, generation: int) -> Put:
    """The write of a change under a generation, on condition that the row is still what the run saw, or is what this
    write makes of it. So a run that was taken for dead may wake up and go on: it writes what stands there, or nothing.

    * Its generation is being written by another run: of the same plan, so the row is the same.
    * Its generation counts by now: a row that was changed since has ``ag`` or ``bg`` of that generation or newer.
    * Its generation was given up: what it writes as ``b`` never counts, and ``a`` is compared, so it stays.
    """
    item = as_next(change.key, change.was, view, change.now, generation)
    values: dict[str, Any] = {"mine": generation}
    if change.beside is not None and view.counts(change.beside):
        values["seen"] = change.beside
        return Put(item, "#bg = :mine OR #bg = :seen", values)
    older = "(attribute_not_exists(#ag) OR #ag < :mine) AND (attribute_not_exists(#bg) OR #bg < :mine)"
    if change.was is None:
        return Put(item, f"#bg = :mine OR (attribute_not_exists(#a) AND {older})", values)
    values["a"] = change.was
    return Put(item, f"#bg = :mine OR (#a = :a AND {older})", values)


# -- checkpoints -------------------------------------------------------------------------------------------------
def put_checkpoint(bucket: Bucket, key: str, states: Mapping[str, PlayerState]) -> None:
    """Keep the states of all players, compressed."""
    bucket.put(key, pack_states(states, 6), "application/octet-stream")


def get_checkpoint(bucket: Bucket, key: str) -> dict[str, PlayerState] | None:
    """The states of a checkpoint, or None when the object is gone."""
    body = bucket.get(key)
    return None if body is None else unpack_states(body)


def pack_states(states: Mapping[str, PlayerState], level: int = 1) -> bytes:
    """The states of all players in a tenth of the room."""
    return zlib.compress(_encode(states), level)


def unpack_states(body: bytes) -> dict[str, PlayerState]:
    """What ``pack_states`` packed."""
    return _states.decode(zlib.decompress(body))


def bump(cursor: Cursor, **changes: Any) -> Cursor:
    """The cursor with changes."""
    return replace(cursor, **changes)
