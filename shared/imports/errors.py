"""What can be wrong with a file, and with a cell. Codes are stable (kebab-case), messages are one plain sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CellError:
    """One thing that is wrong, with its place in the file as a spreadsheet numbers it."""

    code: str
    """Stable and machine-readable, e.g. ``excel-date``."""
    message: str
    """One plain English sentence for a secretary."""
    row: int | None = None
    """From 1, the header included, as Excel shows it (for TRF and PGN: the line of the text). None: the whole file."""
    column: str | None = None
    """The column's name in the API (``team1_player2``), or the heading as typed when it has none. None: the row."""
    heading: str | None = None
    """The column's heading as the file has it."""
    value: str | None = None
    """What stood there, as text, cut at 80 characters."""


class ImportFileError(ValueError):
    """The file as a whole cannot be read: nothing of it was taken. Carries every reason at once."""

    def __init__(self, errors: Sequence[CellError], sheets: Sequence[str] = ()) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = tuple(errors)
        self.sheets = tuple(sheets)
        """Of a workbook, its visible sheets: another one may have the games."""

    @property
    def code(self) -> str:
        """The code of the first reason."""
        return self.errors[0].code


class TooLarge(ImportFileError):
    """A limit was passed (HTTP 413)."""

    def __init__(self, what: str, limit: int, message: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__([CellError(f"too-large-{what}", message, row, column)])
        self.what = what
        """``bytes``, ``rows``, ``columns``, ``cell``, ``sheets`` or ``unpacked``."""
        self.limit = limit
        """In bytes for ``bytes`` and ``unpacked``, in characters for ``cell``, else a count."""


def refuse(code: str, message: str, row: int | None = None, column: str | None = None) -> ImportFileError:
    """A refusal of the file with one reason."""
    return ImportFileError([CellError(code, message, row, column)])
