"""The last published list of a pool: one compact object that the publisher applies changes to and the API reads."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from shared.ledger import lists
from shared.ledger.order import iso
from shared.ratings.base import PlayerState, Rating
from shared.store.pools import Pool
from shared.usecases.context import Context

MAIN = lists.MAIN
CACHED = 4
"""Lists of so many pools are kept in memory, by their ETag."""


class ListRow(msgspec.Struct, array_like=True, gc=False):
    """A player in the list."""

    sid: str
    handle: str
    name: str
    clubs: list[str]
    state: PlayerState
    variant: str = MAIN
    """``main``, or the list apart: ``new``, ``inactive``, ``unlisted``."""
    place: int | None = None
    """In the main list; None apart."""
    previous_place: int | None = None
    """At the last closing."""
    previous: Rating | None = None
    """Rating at the last closing."""
    spark: list[int] = []
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


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(PublishedList)
_cache: dict[tuple[str, str], tuple[str, PublishedList]] = {}


def list_key(pool: str) -> str:
    """Where the list is kept, in the data bucket."""
    return f"published/{pool}/list"


def save(ctx: Context, pool: str, published: PublishedList) -> None:
    """Keep the list."""
    body = zlib.compress(_encoder.encode(published), 1)
    ctx.data.put(list_key(pool), body, "application/octet-stream")


def load(ctx: Context, pool: str) -> PublishedList | None:
    """The list of the last publication, or None before the first."""
    body = ctx.data.get(list_key(pool))
    return None if body is None else _decoder.decode(zlib.decompress(body))


def load_cached(ctx: Context, pool: str) -> PublishedList | None:
    """The same for readers: read again only when it has changed. The rows must not be changed."""
    etag = ctx.data.etag(list_key(pool))
    if etag is None:
        return None
    key = (ctx.data.name, pool)
    if key not in _cache or _cache[key][0] != etag:
        published = load(ctx, pool)
        if published is None:
            return None
        while len(_cache) >= CACHED:
            _cache.pop(next(iter(_cache)))
        _cache[key] = (etag, published)
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
