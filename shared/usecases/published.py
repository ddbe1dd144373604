"""The last published list of a pool: one compact object that the publisher applies changes to and the API reads."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import is_
from typing import Any, NamedTuple

import msgspec

from shared.ledger import lists
from shared.ledger.order import iso
from shared.ratings.base import PlayerState, Rating
from shared.store.bucket import etag
from shared.store.pools import Pool
from shared.usecases.context import Context

MAIN = lists.MAIN
CACHED = 4
"""Lists of so many pools are kept in memory, by their ETag."""
BLOCK = 1_000
"""About so many rows are packed together; a block none of whose rows changed is kept as it was packed."""
REMEMBERED = 200_000
"""Rows of published lists that the publisher goes on holding between two runs."""
_MARK = b"list 2\n"
"""Begins a list in blocks; before there were any, it was one packed JSON text."""


class ListRow(msgspec.Struct, array_like=True, gc=False):
    """A player in the list."""

    sid: str
    handle: str
    name: str
    clubs: tuple[str, ...]
    state: PlayerState
    variant: str = MAIN
    """``main``, or the list apart: ``new``, ``inactive``, ``unlisted``."""
    place: int | None = None
    """In the main list; None apart."""
    previous_place: int | None = None
    """At the last closing."""
    previous: Rating | None = None
    """Rating at the last closing."""
    spark: tuple[int, ...] = ()
    """Ratings at the last closings, oldest first."""
    month_place: int | None = None
    """In the list of the last closed month as it stands (frozen or not); 0: there without a place; None: not there."""


class MonthNote(msgspec.Struct, array_like=True, gc=False):
    """A month's list as the index of lists tells it."""

    month: str
    kind: str
    players: int
    first: str = ""
    """Server-made id of who led."""
    pageless: list[str] = []
    """Server-made ids of those in it who have no page now: every game of theirs was voided, or they were merged."""


class PublishedList(msgspec.Struct):
    """All that the publisher remembers of its last run."""

    publication: str
    published_at: int
    position: int
    state_hash: str
    results_up_to: int | None
    closed_until: int | None
    rules_version: int
    rows: list[ListRow]
    """In the order of the list, those apart behind."""
    months: list[MonthNote] = []
    """Oldest first."""
    whole_at: int = 0
    """When the whole-pool files were last written."""
    pages: int = 0
    loose: dict[str, list[str]] = {}
    """Page (``p#player``, ``g#club#game``) → players and labels it names though no rating of its own holds them there:
    it is written anew when one of them gets a page or loses it."""
    best: list[str] = []
    """Server-made ids of the best that ever were, in their order."""
    played: dict[str, int] = {}
    """Seats taken in the games of each club, group, tournament and year."""
    members: dict[str, int] = {}
    """Players of each club, group, tournament and year."""


class Block(NamedTuple):
    """Rows that follow each other, as packed."""

    rows: Sequence[ListRow]
    packed: bytes


class Kept(NamedTuple):
    """A list with its packed blocks."""

    published: PublishedList
    blocks: Sequence[Block]
    body: bytes


class _Head(msgspec.Struct, array_like=True):
    """What a list in blocks begins with."""

    published: PublishedList
    """Without rows."""
    shared: list[int]
    """Rows, numbered from 0, that share the place of the row before. So rows need not be packed with their places,
    which a game changes for thousands who did not play."""
    sizes: list[int]
    """Bytes of each block."""


_encode = msgspec.msgpack.Encoder().encode
_head = msgspec.msgpack.Decoder(_Head)
_rows = msgspec.msgpack.Decoder(list[ListRow])
_whole = msgspec.json.Decoder(PublishedList)


def pack(published: PublishedList, known: Sequence[Block] = ()) -> Kept:
    """A list as bytes. Blocks that are ``known`` are taken over where their rows are the same objects."""
    rows = published.rows
    blocks = list(_in_blocks(rows, known))
    shared = [n for n in range(1, len(rows)) if rows[n].place is not None and rows[n].place == rows[n - 1].place]
    bare = msgspec.structs.replace(published, rows=[])
    head = zlib.compress(_encode(_Head(bare, shared, [len(block.packed) for block in blocks])), 1)
    parts = [_MARK, len(head).to_bytes(8, "big"), head, *(block.packed for block in blocks)]
    return Kept(published, blocks, b"".join(parts))


def unpack(body: bytes) -> Kept:
    """What ``pack`` packed, or an earlier version's list."""
    if not body.startswith(_MARK):
        return Kept(_whole.decode(zlib.decompress(body)), (), body)
    begin = len(_MARK) + 8
    end = begin + int.from_bytes(body[len(_MARK) : begin], "big")
    head = _head.decode(zlib.decompress(body[begin:end]))
    blocks, every = list[Block](), list[ListRow]()
    for size in head.sizes:
        packed = body[end : end + size]
        end += size
        rows = _rows.decode(zlib.decompress(packed))
        blocks.append(Block(rows, packed))
        every += rows
    shared, place = set(head.shared), 0
    for number, row in enumerate(every):
        if row.variant == MAIN:
            if number not in shared:
                place = number + 1
            row.place = place
    head.published.rows = every
    return Kept(head.published, blocks, body)


def _in_blocks(rows: Sequence[ListRow], known: Sequence[Block]) -> Iterator[Block]:
    """Rows in blocks, known ones where they stand there still, row for row."""
    begins = {id(block.rows[0]): block for block in known if len(block.rows) >= BLOCK // 4}
    last: Block | None = None
    begin = number = 0

    def packed(end: int) -> Iterator[Block]:
        """The rows since the last known block. A few go into the block before them."""
        nonlocal last
        left = rows[begin:end]
        if last is not None and 0 < len(left) < BLOCK // 4:
            left, last = [*last.rows, *left], None
        if last is not None:
            yield last
        pieces = max(1, round(len(left) / BLOCK))
        for piece in range(pieces):
            part = left[piece * len(left) // pieces : (piece + 1) * len(left) // pieces]
            if part:
                bare = [row if row.place is None else msgspec.structs.replace(row, place=None) for row in part]
                yield Block(part, zlib.compress(_encode(bare), 1))

    while number < len(rows):
        block = begins.get(id(rows[number]))
        end = number + len(block.rows) if block is not None else 0
        if block is not None and end <= len(rows) and all(map(is_, block.rows, islice(rows, number, end))):
            yield from packed(number)
            last, begin, number = block, end, end
        else:
            number += 1
    yield from packed(number)


_cache: dict[tuple[str, str], tuple[str, PublishedList]] = {}
_kept: dict[tuple[str, str], tuple[str, Kept]] = {}
"""The publisher's own, by their ETag: it changes them."""


def list_key(pool: str) -> str:
    """Where the list is kept, in the data bucket."""
    return f"published/{pool}/list"


def save(ctx: Context, pool: str, published: PublishedList, was: Kept | None = None) -> None:
    """Keep the list.

    Args:
        was: what ``take`` gave. Rows that are the same objects as then are not encoded again.
    """
    kept = pack(published, was.blocks if was is not None else ())
    ctx.data.put(list_key(pool), kept.body, "application/octet-stream")
    hold(ctx, pool, kept)


def hold(ctx: Context, pool: str, kept: Kept) -> None:
    """Have the list at hand for the next publication by this process."""
    _kept[ctx.data.name, pool] = (etag(kept.body), kept)
    while len(_kept) > 1 and sum(len(one.published.rows) for _, one in _kept.values()) > REMEMBERED:
        _kept.pop(next(iter(_kept)))


def forget() -> None:
    """Have no list at hand, as a process that has just begun."""
    _kept.clear()


def take(ctx: Context, pool: str) -> Kept | None:
    """The list of the last publication for who makes the next one, or None before the first.

    Where this process made the last one, that is still at hand; it is handed out once, as the next publication gives
    its rows other places.
    """
    known = _kept.pop((ctx.data.name, pool), None)
    if known is not None and known[0] == ctx.data.etag(list_key(pool)):
        return known[1]
    body = ctx.data.get(list_key(pool))
    return None if body is None else unpack(body)


def load(ctx: Context, pool: str) -> PublishedList | None:
    """The list of the last publication, or None before the first."""
    body = ctx.data.get(list_key(pool))
    return None if body is None else unpack(body).published


def load_cached(ctx: Context, pool: str) -> PublishedList | None:
    """The same for readers: read again only when it has changed. The rows must not be changed."""
    now = ctx.data.etag(list_key(pool))
    if now is None:
        return None
    key = (ctx.data.name, pool)
    if key not in _cache or _cache[key][0] != now:
        published = load(ctx, pool)
        if published is None:
            return None
        while len(_cache) >= CACHED:
            _cache.pop(next(iter(_cache)))
        _cache[key] = (now, published)
    return _cache[key][1]


def place_of(ctx: Context, pool: str, sid: str) -> int | None:
    """A player's place in the last published list."""
    published = load_cached(ctx, pool)
    if published is None:
        return None
    return next((row.place for row in published.rows if row.sid == sid), None)


def public_row(pool: Pool, row: ListRow) -> dict[str, Any]:
    """A line of the list as the API shows it."""
    state = row.state
    return {
        "place": row.place,
        "player": row.handle,
        "name": row.name,
        "rating": pool.system.present(state.rating, state.index),
        "record": {"games": state.games, "won": state.won, "drawn": state.drawn, "lost": state.lost},
        "last_played": iso(state.last_played) if state.last_played is not None else None,
        **pool.system.figures(state, pool.settings),
    }
