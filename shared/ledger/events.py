"""The events of a pool's ledger: what was accepted, when, never changed. Server-made player ids only, no free text."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from shared.ratings.base import Game

Kind = Literal["game", "start", "rank-me", "rules", "merge", "unmerge", "rebuild", "erase"]
"""The last two are no events of the ledger and only stand in the inbox: ``rebuild`` asks for a fold of the whole
ledger, ``erase`` for the removal of what names an erased person."""
What = Literal["started", "quit", "returned", "substituted", "finished", "corrected", "voided", "revived", ""]


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One accepted event.

    A game event carries the whole content of its revision, so the fold needs only the newest revision of each game.
    """

    id: str
    """Sorts by when it was accepted: 16 hex digits of the instant, then random ones."""
    kind: Kind
    accepted_at: int
    what: What = ""
    game: Game | None = None
    player: str = ""
    """start, rank-me, merge, unmerge: whose."""
    value: dict[str, Any] = {}
    """start: the carried-over start, normalised by the rule system's ``start_model``; rank-me: ``{"at", "on"}``;
    rules: ``{"version", "rules": [{"from": instant, ...settings}]}``; merge: ``{"into": player}``;
    erase: ``{"handle", "name", "pseudonym", "reports"}``."""
    touches: int | None = None
    """The earliest instant that ratings can change at, where it is earlier than the game's ``started_at``: the start
    of any earlier revision; the date of the first rules that differ."""
    number: int = 0
    """Version of what the event replaces: of the pool's rules, of the player's start or rank-me; the newest counts."""
    ahead: bool = False
    """Only in the inbox: accepted on the word of a preview, so it is rated before whatever else waits, and alone."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode(event: Event) -> str:
    """One line of JSON."""
    return _encoder.encode(event).decode()


def decode(line: str | bytes) -> Event:
    """An event from its line. Raises msgspec.ValidationError when it is none."""
    return _decoder.decode(line)


def event_id(accepted_at: int, token: str) -> str:
    """An id that sorts by when the event was accepted. ``token``: 12 or more random characters."""
    return f"{accepted_at:016x}{token}"
