"""Changes made visible: what was corrected and why (a pool's changelog), and what that did to each player (journal)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shared.ratings.base import Rating
from shared.store import keys
from shared.store.rated import View
from shared.store.table import Item, Put, Table


class Note(msgspec.Struct, omit_defaults=True):
    """A correction, void, revival or merge: when, what, by whom, why."""

    at: int
    what: str
    club: str = ""
    game_id: str = ""
    revision: int = 0
    by: str = ""
    reason: str = ""
    players: list[str] = []
    """Server-made ids of those it is about."""


class Entry(msgspec.Struct, omit_defaults=True):
    """What a correction did to one player: outside the fold and its hash, never changed afterwards."""

    at: int
    causes: list[tuple[str, str, str]]
    """(what, club, game id) of up to five of the events that were applied together, those that can have moved the
    player: what he was in himself, else what reached him through others' games (``shared.ledger.causes``)."""
    before: Rating | None
    after: Rating | None
    games: int
    """How many of the player's rated games came out anew."""


_note = msgspec.json.Decoder(Note)
_entry = msgspec.json.Decoder(Entry)


def put_note(pool: str, note: Note) -> Put:
    """The write of a note, in the transaction of what it tells."""
    sk = f"{note.at:016x}#{note.club}#{note.game_id}"
    return Put({"pk": keys.changelog(pool), "sk": sk, "note": msgspec.json.encode(note).decode()})


def read_notes(table: Table, pool: str, limit: int | None = None) -> Iterator[Note]:
    """A pool's notes, newest first."""
    for item in table.query(keys.changelog(pool), forward=False, limit=limit):
        yield _note.decode(item["note"])


def entry_item(pool: str, sid: str, position: int, now: int, entry: Entry) -> Item:
    """An entry as its item, under the position of the ledger that caused it."""
    body = msgspec.json.encode(entry).decode()
    return {"pk": keys.journal(pool, sid), "sk": f"{position:012d}-{now:016x}", "entry": body}


def read_journal(table: Table, pool: str, sid: str, view: View, limit: int = 50) -> list[Entry]:
    """A player's entries, newest first; what a replay wrote that never came to count is passed over."""
    found: list[Entry] = []
    for item in table.query(keys.journal(pool, sid), forward=False):
        if view.counts(item["generation"]):
            found.append(_entry.decode(item["entry"]))
            if len(found) == limit:
                break
    return found
