"""Names and cells as text: how they are compared, searched, and made harmless for spreadsheets. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_MARKED = re.compile(r"'*[=+\-@\t\r]")
"""Cells that a spreadsheet would run, and those that look like one already made harmless."""

_LETTERS = str.maketrans(
    {
        "þ": "th", "ð": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "đ": "d", "ħ": "h", "ı": "i", "ŋ": "n", "ŧ": "t",
        "ĸ": "k", "ƒ": "f", "ə": "e", "ß": "ss", "ẞ": "ss", "’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'",
        "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-",
    }
)  # fmt: skip
"""Letters that Unicode does not take apart into a base letter and an accent."""


def neutralise(cell: str) -> str:
    """The cell as our exports write it: what a spreadsheet would run as a formula gets an apostrophe before it.

    That is every cell that begins with ``= + - @``, tab or carriage return; and, so that ``restore`` can always tell,
    every cell that begins with apostrophes followed by one of these. All others (``'t Hooft``) stay as they are.
    """
    return "'" + cell if _MARKED.match(cell) else cell


def restore(cell: str) -> str:
    """The exact inverse of ``neutralise``: ``restore(neutralise(cell)) == cell`` for every text."""
    return cell[1:] if cell.startswith("'") and _MARKED.match(cell) else cell


def match_key(text: str) -> str:
    """The text as names are compared: NFKC, case folded, white space collapsed and trimmed. Accents count."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def search_key(text: str) -> str:
    """The text as a type-ahead searches it: as ``match_key``, and without accents.

    ``þ`` becomes th, ``ø`` o, ``ß`` ss, ``ł`` l, ``æ`` ae, ``đ`` and ``ð`` d; typographic apostrophes and dashes become
    plain ones. For finding only: two names with one search key are not the same name. Applying it twice is as once.
    """
    apart = unicodedata.normalize("NFKD", match_key(text))
    bare = "".join(c for c in apart if not unicodedata.combining(c)).translate(_LETTERS)
    return " ".join(unicodedata.normalize("NFC", bare).casefold().split())


@dataclass(frozen=True)
class Match:
    """Whom a typed text means in a club's roster."""

    kind: Literal["one", "several", "none"]
    handles: tuple[str, ...] = ()
    """The one match, or all candidates in roster order."""

    @property
    def handle(self) -> str | None:
        """The handle when exactly one matches."""
        return self.handles[0] if self.kind == "one" else None


class Roster:
    """A club's players, indexed once for many look-ups (a file has thousands of names)."""

    def __init__(self, players: Iterable[tuple[str, str]]) -> None:
        """Take the club's players as (handle, name); the order is kept in answers."""
        self._handles: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}
        for handle, name in players:
            self._handles.setdefault(match_key(handle), handle)
            known = self._names.setdefault(match_key(name), [])
            if handle not in known:
                known.append(handle)

    def match(self, text: str) -> Match:
        """Whom the text means: an id first, then a name, then ``Family, Given`` as ``Given Family``. Never a guess."""
        key = match_key(text)
        if not key:
            return Match("none")
        if key in self._handles:
            return Match("one", (self._handles[key],))
        found = self._names.get(key)
        if not found and key.count(",") == 1:
            family, given = key.split(",")
            found = self._names.get(f"{given.strip()} {family.strip()}")
        if not found:
            return Match("none")
        return Match("one" if len(found) == 1 else "several", tuple(found))


def match_name(text: str, roster: Iterable[tuple[str, str]]) -> Match:
    """Whom the text means in a roster of (handle, name); see ``Roster.match``. For many texts build a ``Roster``."""
    return Roster(roster).match(text)
