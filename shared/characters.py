"""Which characters names and notes may have, and how long they are: one rule, whichever way a text comes in. Pure."""

from __future__ import annotations

import re
import unicodedata

NAME_LENGTH = 80
NOTE_LENGTH = 1000

JOINERS = frozenset("\u200c\u200d")
"""Zero-width joiners: invisible, but Persian spelling and family emoji are made with them."""
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_LINE_ENDS = re.compile(r"[\r\n\t]")
_ODD_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def is_printable(text: str) -> bool:
    """No control, format (bidi overrides among them), surrogate, private or line-separating characters."""
    return all(c in JOINERS or unicodedata.category(c) not in _UNPRINTABLE for c in text)


def is_printable_text(text: str) -> bool:
    """The same of a text of several lines: line ends and tabs are fine."""
    return is_printable(_LINE_ENDS.sub("", text))


def is_blank(text: str) -> bool:
    """Whether there is nothing to read."""
    return not any(c not in JOINERS and not c.isspace() for c in text)


def tidy_note(text: str) -> str:
    """A note as it is kept: without blanks at its ends, which no cell of a file can say, and with plain line ends."""
    return _ODD_LINE_ENDS.sub("\n", text).strip()
