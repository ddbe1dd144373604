"""Ids that people choose: their form, and how a text becomes one."""

from __future__ import annotations

import re
from typing import LiteralString

LANGUAGES = ("en", "de", "fr", "it")
RESERVED = frozenset({"v1", "desk", "embed", "assets", *LANGUAGES})
"""First steps of the site's addresses; no id may be one of them."""
ID_LENGTH = 64
ID_PATTERN = "[a-z0-9][a-z0-9._-]{0,63}"
ID_FORM: LiteralString = (
    "An id has 1 to 64 of the characters a-z, 0-9, dot, underscore and hyphen, begins with a letter or digit, "
    "and is not v1, desk, embed, assets or a language code."
)
_ID = re.compile(ID_PATTERN)
_APART = re.compile(r"[^a-z0-9._]+")


def fold_id(text: str) -> str | None:
    """An id with its case folded, or None for what cannot be one."""
    folded = text.lower() if text.isascii() else ""
    return folded if _ID.fullmatch(folded) and folded not in RESERVED else None


def id_from(key: str) -> str | None:
    """An id made from a text without accents (``search_key``): ``fruhlingsturnier-2026``; None when nothing is left.

    An id stays what it is.
    """
    made = _APART.sub("-", key).strip("-._")[:ID_LENGTH].rstrip("-._")
    if made in RESERVED:
        made += "-1"
    return fold_id(key) or fold_id(made)
