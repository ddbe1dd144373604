"""Bytes in, rows of text out: what kind of file it is, its encoding and separator, its limits. Pure.

Every cell becomes text here, numbers and dates of a workbook too, as Excel would show them, so that a row of a CSV
and a row of a workbook mean the same afterwards. Linear in the size of the file.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shared.imports.errors import CellError, TooLarge, refuse
from shared.imports.headings import known
from shared.imports.text import restore

MAX_BYTES = 12_000_000
MAX_ROWS = 30_000
"""Rows that are not empty, without the heading."""
MAX_COLUMNS = 64
MAX_CELL = 2_000
"""Characters."""
MAX_LINES = 1_048_576
"""Rows a spreadsheet can have, empty ones included."""
MAX_LINE = 400_000
"""Characters of one physical line: more than 64 cells of 2,000 characters need, quotes included."""
HEADING_WITHIN = 10
"""The heading is looked for in so many first rows, for a title may stand above it."""
BOM = "\ufeff"

Forfeits = Literal["skip", "count"]


class TableRow(NamedTuple):
    """One row that is not empty."""

    number: int
    """From 1, as a spreadsheet counts (empty rows too); in TRF and PGN the line of the text."""
    cells: tuple[str, ...]
    """Trimmed; our own apostrophes before ``= + - @`` taken off; no empty cells at the end."""
    errors: tuple[CellError, ...] = ()
    """What the reader of a tournament report found wrong with this game."""


@dataclass(frozen=True)
class Notice:
    """Something the sender should be told, that is not an error."""

    code: str
    message: str
    count: int = 1


@dataclass(frozen=True)
class Table:
    """A file as rows of text; the heading is still among them."""

    kind: Literal["csv", "xlsx", "trf", "pgn"]
    rows: tuple[TableRow, ...]
    separator: str = ","
    """What separated the cells, and will in ``bad_rows_csv``."""
    encoding: str | None = None
    """``utf-8``, ``utf-8-sig``, ``utf-16-le``, ``utf-16-be``, ``cp1252``; None for a workbook."""
    sheet: str | None = None
    """Name of the sheet that was read."""
    sheets: tuple[str, ...] = ()
    """Names of all visible sheets."""
    notices: tuple[Notice, ...] = ()
    first_day: str | None = None
    last_day: str | None = None
    """ISO days a tournament report names for the whole tournament, when its rounds have no days of their own."""


def column_letters(index: int) -> str:
    """The name a spreadsheet gives a column: 0 is A, 26 is AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def read_table(
    data: bytes, filename: str | None = None, *, sheet: str | None = None, forfeits: Forfeits = "skip"
) -> Table:
    """Read a result file of any kind we know; the content decides which, the name is only used in messages.

    Args:
        data: CSV (UTF-8 with or without BOM, UTF-16, Windows-1252; comma, semicolon or tab; any line ends), a
            workbook (.xlsx), a tournament report (TRF16) or PGN. At most 12,000,000 bytes and 30,000 rows.
        filename: as the sender calls it. Where the content is no format we know and not clearly a table either, its
            ending says what was expected.
        sheet: of a workbook, the sheet to read; else its first visible sheet that has cells.
        forfeits: of a tournament report or PGN: whether games won without play count.

    Raises:
        TooLarge: a limit was passed; carries the limit.
        ImportFileError: ``empty-file``, ``not-text``, ``mixed-encoding``, ``quote-not-closed``, ``old-excel``,
            ``not-a-workbook``, ``not-pgn``, ``not-trf``, ``no-such-sheet``, ``encrypted``, ``other-format``.
    """
    from shared.imports import chess, xlsx  # they build tables, so they import this module

    if len(data) > MAX_BYTES:
        raise TooLarge("bytes", MAX_BYTES, f"The file has {len(data):,} bytes; at most {MAX_BYTES:,} can be read.")
    called = f'"{filename[:80]}"' if filename else "The file"
    if not data.strip(b" \t\r\n\0"):
        raise refuse("empty-file", f"{called} is empty.")
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return xlsx.read(data, sheet)
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise refuse("old-excel", f"{called} is an old or encrypted Excel file; save it as .xlsx without password.")
    if data.startswith((b"%PDF", b"\x1f\x8b", b"\x89PNG", b"\xff\xd8\xff", b"Rar!", b"7z\xbc\xaf")):
        raise refuse("other-format", f"{called} is not a table; save it as CSV or .xlsx.")
    text, encoding = decode(data)
    if chess.is_pgn(text):
        return chess.read_pgn(text, encoding, forfeits)
    if chess.is_trf(text):
        return chess.read_trf(text, encoding, forfeits)
    if text.lstrip()[:100].lower().startswith(("<!doctype", "<html", "<?xml", "{\\rtf")):
        raise refuse("other-format", f"{called} is not a table; save it as CSV or .xlsx.")
    expected = _EXPECTED.get((filename or "").rpartition(".")[2].strip().lower())
    if expected is not None and not _is_table(text):
        raise refuse(expected[0], f"{called} {expected[1]}")
    return _read_csv(text, encoding)


_NO_TRF = (
    "not-trf",
    "is no tournament report (TRF16): it must begin with a line such as 012 and the tournament's name, and have a line "
    "001 for each player.",
)
_NO_WORKBOOK = ("not-a-workbook", "is no workbook; save it as .xlsx, or as CSV with the columns' headings.")
_EXPECTED = {
    "pgn": ("not-pgn", 'is no PGN: it must begin with the tags of a game, such as [White "Anna"], each in a line.'),
    "trf": _NO_TRF,
    "trfx": _NO_TRF,
    "xlsx": _NO_WORKBOOK,
    "xls": _NO_WORKBOOK,
}
"""By a file name's ending, what the file is not after all: the code, and what was expected."""


_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_UTF8_PAIR = re.compile(rb"[\xc3-\xc5][\x80-\xbf]")


def decode(data: bytes) -> tuple[str, str]:
    """The text and its encoding. Without a BOM: UTF-16 when every other byte is 0, UTF-8 when valid, else Windows-1252.

    Raises:
        ImportFileError: ``not-text``; ``mixed-encoding`` when parts are UTF-8 and parts are not.
    """
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if encoding not in ("utf-8", "utf-8-sig"):
            raise refuse("not-text", f"The file is cut off or is not text (line {line}).", line) from None
        if encoding == "utf-8-sig" or _UTF8_PAIR.search(data):
            message = f"The file is UTF-8, but line {line} has a character in another encoding; save it anew as UTF-8."
            raise refuse("mixed-encoding", message, line) from None
        encoding = "cp1252"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as other:
            line = data.count(b"\n", 0, other.start) + 1
            raise refuse("not-text", f"Line {line} is neither UTF-8 nor Windows-1252 text.", line) from None
    text = text.removeprefix(BOM).rstrip("\x1a\0")
    control = _CONTROL.search(text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        raise refuse("not-text", f"Line {line} has a control character, so this is not a text file.", line)
    return text, encoding


def _encoding(data: bytes) -> str:
    if data.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    if data.startswith(b"\xfe\xff"):
        return "utf-16-be"
    head = data[:2000]
    even, odd, half = head[0::2].count(0), head[1::2].count(0), len(head) // 2
    if odd * 2 > half and even * 10 < half:
        return "utf-16-le"
    if even * 2 > half and odd * 10 < half:
        return "utf-16-be"
    return "utf-8"


_END = "\x02"


def _records(text: str, separator: str) -> Iterator[list[str]]:
    """All records. The last line fed is a mark: if it does not come back alone, a quote was left open."""

    def fed() -> Iterator[str]:
        for number, line in enumerate(io.StringIO(text, newline=""), 1):
            if len(line) > MAX_LINE:
                raise TooLarge("cell", MAX_CELL, f"Line {number} has {len(line):,} characters.", number)
            yield line
        yield _END

    return csv.reader(fed(), delimiter=separator)


def _separator(text: str) -> tuple[str, int]:
    """The separator, and how many characters Excel's own line ``sep=;`` takes (it is no row in Excel either)."""
    if text[:4].lower() == "sep=" and text[4:5] in (",", ";", "\t"):
        end = 5
        while text[end : end + 1] in ("\r", "\n") and end < 7:
            end += 1
        return text[4], end
    sample = text[:100_000]
    best: tuple[tuple[int, int], str] | None = None
    for separator in (";", ",", "\t"):
        rows: list[list[str]] = []
        try:
            for cells in csv.reader(io.StringIO(sample, newline=""), delimiter=separator):
                rows.append([cell.strip() for cell in cells[: MAX_COLUMNS * 2]])
                if len(rows) > HEADING_WITHIN * 10:
                    break
        except csv.Error:
            pass
        rank = max(((known(cells), len(cells)) for cells in rows), default=(0, 0))
        if best is None or rank > best[0]:
            best = (rank, separator)
    return (best[1] if best else ","), 0


def _is_table(text: str) -> bool:
    """Whether one of the first rows has headings we know, two at least."""
    separator, start = _separator(text)
    lines = io.StringIO(text[start : start + 100_000], newline="")
    try:
        first = itertools.islice(csv.reader(lines, delimiter=separator), HEADING_WITHIN)
        return any(known(cells[: MAX_COLUMNS * 2]) >= 2 for cells in first)
    except csv.Error:
        return False


def _read_csv(text: str, encoding: str) -> Table:
    separator, start = _separator(text)
    text = text[start:]
    if not text.endswith(("\r", "\n")):
        text += "\n"
    rows: list[TableRow] = []
    number = 0
    cells: list[str] = []
    try:
        for cells in _records(text, separator):
            number += 1
            if number > MAX_LINES + 1:
                raise TooLarge("rows", MAX_ROWS, f"The file has more than {MAX_LINES:,} lines.")
            trimmed = tidy(cells, number)
            if trimmed:
                rows.append(TableRow(number, trimmed))
                if len(rows) > MAX_ROWS + HEADING_WITHIN + 1:
                    raise too_many_rows()
    except csv.Error:
        message = f"A cell of row {number + 1} has more than {MAX_CELL:,} characters; is a quote not closed?"
        raise TooLarge("cell", MAX_CELL, message, number + 1) from None
    if cells != [_END]:
        raise refuse("quote-not-closed", f"Row {number} opens a quote that is never closed.", number)
    rows.pop()
    if not rows:
        raise refuse("empty-file", "The file has no cells.")
    return Table("csv", tuple(rows), separator, encoding)


def too_many_rows() -> TooLarge:
    """More rows than can be read."""
    return TooLarge("rows", MAX_ROWS, f"The file has more than {MAX_ROWS:,} rows; send it in parts.")


_BLANK = "\ufeff\u200b\u2060"


def tidy(cells: Sequence[str], number: int) -> tuple[str, ...]:
    """The cells trimmed, our own apostrophes taken off, empty cells at the end dropped; () for an empty row.

    Raises TooLarge for the 65th column and the 2,001st character.
    """
    row = [restore(cell.strip().strip(_BLANK).strip()) if cell else "" for cell in cells]
    while row and not row[-1]:
        row.pop()
    if len(row) > MAX_COLUMNS:
        message = f"Row {number} has {len(row):,} columns; at most {MAX_COLUMNS} can be read."
        raise TooLarge("columns", MAX_COLUMNS, message, number)
    if sum(map(len, row)) > MAX_CELL:
        for index, cell in enumerate(row):
            if len(cell) > MAX_CELL:
                column = column_letters(index)
                message = f"Cell {column}{number} has {len(cell):,} characters; at most {MAX_CELL:,} can be read."
                raise TooLarge("cell", MAX_CELL, message, number, column)
    return tuple(row)
