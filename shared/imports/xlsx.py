"""Workbooks (.xlsx): values only, through python-calamine, behind a guard. Pure: no files, no external entities.

The library is fast, but it trusts its input: one cell in the last row and column of a sheet makes it reserve 512 GB
and ends the process, and a shared string of a megabyte is copied for each cell that names it. So every part is first
unpacked here against a limit and walked through once with expat, document types refused; and what the library gets is
a new archive with just the parts that were checked.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from xml.parsers import expat

import python_calamine

from shared.imports.errors import ImportFileError, TooLarge, refuse
from shared.imports.table import (
    HEADING_WITHIN,
    MAX_CELL,
    MAX_COLUMNS,
    MAX_ROWS,
    Notice,
    Table,
    TableRow,
    column_letters,
    tidy,
    too_many_rows,
)

MAX_UNPACKED = 64_000_000
"""Bytes of all parts of a workbook that are read, unpacked."""
MAX_PARTS = 2_000
MAX_SHEETS = 100
LAST_ROW = MAX_ROWS + 2_000
"""The last row that may have a value: empty rows between are allowed, a desert is not."""

_PARTS = re.compile(r"\[Content_Types\]\.xml|_rels/\.rels|xl/[^/]+\.xml|xl/_rels/[^/]+\.rels", re.IGNORECASE)
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
Attributes = dict[str, str]


def read(data: bytes, wanted: str | None) -> Table:
    """Read one sheet of a workbook.

    Args:
        data: the file.
        wanted: the sheet's name; None: the first visible sheet that has cells.

    Raises:
        TooLarge: unpacked size, sheets, rows, columns, or a cell.
        ImportFileError: ``not-a-workbook``, ``encrypted``, ``no-such-sheet``, ``empty-file``.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        parts = _Parts(archive)
        return _read(parts, wanted)
    except ImportFileError:
        raise
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, python_calamine.CalamineError) as error:
        raise _broken() from error
    # A RuntimeError is how zipfile says that a part has a compression that it does not know.
    except (EOFError, KeyError, ValueError, IndexError, RuntimeError) as error:
        raise _broken() from error


def _broken() -> ImportFileError:
    return refuse("not-a-workbook", "The file is not a workbook we can read; save it as .xlsx or CSV.")


class _Parts:
    """The archive's parts, unpacked under one limit."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._left = MAX_UNPACKED
        names = archive.namelist()
        if len(names) > MAX_PARTS:
            raise TooLarge("sheets", MAX_PARTS, f"The workbook has {len(names):,} parts.")
        if len({name.lower() for name in names}) != len(names):
            raise _broken()
        self.names = {name.lower(): name for name in names}
        if "xl/workbook.xml" not in self.names:
            raise _broken()

    def read(self, name: str) -> bytes:
        info = self._archive.getinfo(self.names[name.lower()])
        if info.flag_bits & 1:
            raise refuse("encrypted", "The workbook is encrypted; save it without password.")
        with self._archive.open(info) as part:
            content = part.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise TooLarge("unpacked", MAX_UNPACKED, f"The workbook unpacks to more than {MAX_UNPACKED:,} bytes.")
        return content


def _walk(
    content: bytes,
    start: Callable[[str, Attributes], object],
    end: Callable[[str], object] | None = None,
    text: Callable[[str], object] | None = None,
) -> None:
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def no_doctype(*_: object) -> None:
        raise _broken()

    parser.StartDoctypeDeclHandler = no_doctype
    parser.EntityDeclHandler = no_doctype
    parser.StartElementHandler = start
    if end is not None:
        parser.EndElementHandler = end
    if text is not None:
        parser.CharacterDataHandler = text
    parser.Parse(content, True)


def _sheets(parts: _Parts, workbook: bytes) -> list[tuple[str, str]]:
    """(name, part) of the visible sheets, in order."""
    found: list[tuple[str, str, str]] = []
    targets: dict[str, str] = {}

    def sheet(tag: str, attributes: Attributes) -> None:
        if tag.rpartition(":")[2] == "sheet":
            key = next((value for name, value in attributes.items() if name.rpartition(":")[2] == "id"), "")
            found.append((attributes.get("name", ""), key, attributes.get("state", "visible")))

    def relation(tag: str, attributes: Attributes) -> None:
        if tag.rpartition(":")[2] == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    _walk(workbook, sheet)
    _walk(parts.read("xl/_rels/workbook.xml.rels"), relation)
    if len(found) > MAX_SHEETS:
        raise TooLarge("sheets", MAX_SHEETS, f"The workbook has {len(found):,} sheets; at most {MAX_SHEETS}.")
    sheets = []
    for name, key, state in found:
        target = targets.get(key, "")
        part = target[1:] if target.startswith("/") else "xl/" + target
        if state == "visible" and part.lower().startswith("xl/worksheets/") and part.lower() in parts.names:
            sheets.append((name, part))
    return sheets


def _strings(content: bytes) -> list[int]:
    """The length of every shared string, in characters."""
    lengths: list[int] = []
    length = 0

    def start(tag: str, _: Attributes) -> None:
        nonlocal length
        if tag.rpartition(":")[2] == "si":
            length = 0

    def end(tag: str) -> None:
        if tag.rpartition(":")[2] == "si":
            lengths.append(length)

    def text(part: str) -> None:
        nonlocal length
        length += len(part)

    _walk(content, start, end, text)
    return lengths


class _Scan:
    """One pass over a sheet before the library sees it: how far it reaches, how long its texts are, its error cells."""

    def __init__(self, strings: list[int]) -> None:
        self.strings = strings
        self.row = 0
        self.column = 0
        self.kind = ""
        self.text: list[str] = []
        self.taken = False
        """Between the ends of a value or text."""
        self.filled = False
        """The cell has anything inside: an empty text counts too, since it makes the library's range grow."""
        self.cells = 0
        self.errors: dict[tuple[int, int], str] = {}

    def start(self, tag: str, attributes: Attributes) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        if tag == "c":
            reference = attributes.get("r")
            if reference is None:
                self.column += 1
            else:
                match = _REFERENCE.fullmatch(reference)
                if match is None:
                    raise _broken()
                letters, digits = match.groups()
                column = 0
                for letter in letters:
                    column = column * 26 + ord(letter) - 64
                self.column = column
                self.row = int(digits)
            self.kind = attributes.get("t", "")
            self.text.clear()
            self.filled = False
            return
        self.filled = True
        if tag == "v" or tag == "t":
            self.taken = True
        elif tag == "row":
            self.row = int(attributes["r"]) if "r" in attributes else self.row + 1
            self.column = 0

    def characters(self, part: str) -> None:
        if self.taken:
            self.text.append(part)

    def end(self, tag: str) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        if tag == "v" or tag == "t":
            self.taken = False
        if tag != "c" or not self.filled:
            return
        value = "".join(self.text).strip()
        if value:
            self.cells += 1
        where = f"{column_letters(self.column - 1)}{self.row}"
        if self.row > LAST_ROW:
            raise TooLarge("rows", MAX_ROWS, f"Cell {where} has a value; at most {MAX_ROWS:,} rows can be read.")
        if self.column > MAX_COLUMNS:
            message = f"Cell {where} has a value; at most {MAX_COLUMNS} columns can be read."
            raise TooLarge("columns", MAX_COLUMNS, message, self.row)
        length = self.strings[int(value)] if self.kind == "s" and value else len(value)
        if length > MAX_CELL:
            message = f"Cell {where} has {length:,} characters; at most {MAX_CELL:,} can be read."
            raise TooLarge("cell", MAX_CELL, message, self.row, column_letters(self.column - 1))
        if self.kind == "e" and value:
            self.errors[self.row, self.column - 1] = value


def _read(parts: _Parts, wanted: str | None) -> Table:
    kept = {name: parts.read(name) for low, name in parts.names.items() if _PARTS.fullmatch(low)}
    workbook = kept[parts.names["xl/workbook.xml"]]
    sheets = _sheets(parts, workbook)
    names = tuple(name for name, _ in sheets)
    if wanted is not None and wanted not in names:
        raise refuse("no-such-sheet", f'The workbook has no visible sheet "{wanted[:80]}".')
    strings_part = parts.names.get("xl/sharedstrings.xml")
    strings = _strings(kept[strings_part]) if strings_part else []
    for name, part in sheets:
        if wanted is not None and name != wanted:
            continue
        content = parts.read(part)
        scan = _Scan(strings)
        _walk(content, scan.start, scan.end, scan.characters)
        if scan.cells or wanted is not None:
            kept[parts.names[part.lower()]] = content
            rows = _rows(kept, name, scan)
            if not rows:
                continue
            notices: tuple[Notice, ...] = ()
            if len(names) > 1:
                others = ", ".join(other for other in names if other != name)[:200]
                notices = (Notice("other-sheets", f'Sheet "{name}" was read, not: {others}.', len(names) - 1),)
            return Table("xlsx", tuple(rows), ";", None, name, names, notices)
    raise refuse("empty-file", "The workbook has no cells.")


def _rows(kept: dict[str, bytes], name: str, scan: _Scan) -> list[TableRow]:
    clean = io.BytesIO()
    with zipfile.ZipFile(clean, "w", zipfile.ZIP_STORED) as archive:
        for part, content in kept.items():
            archive.writestr(part, content)
    clean.seek(0)
    book = python_calamine.CalamineWorkbook.from_filelike(clean)
    rows: list[TableRow] = []
    for number, values in enumerate(book.get_sheet_by_name(name).to_python(skip_empty_area=False), 1):
        cells = [cell_text(value) for value in values]
        if scan.errors:
            for index in range(MAX_COLUMNS):
                error = scan.errors.get((number, index))
                if error is not None:
                    cells.extend([""] * (index + 1 - len(cells)))
                    cells[index] = error
        trimmed = tidy(cells, number)
        if trimmed:
            rows.append(TableRow(number, trimmed))
            if len(rows) > MAX_ROWS + HEADING_WITHIN:
                raise too_many_rows()
    return rows


def cell_text(value: object) -> str:
    """A value of a workbook as text: days and times in ISO form to the second, whole numbers without a point.

    From 1e11 on numbers are written as Excel shows them, ``9.45E+12``: the digits behind may be lost.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if abs(value) >= 1e11 or value != value:
            mantissa, _, power = f"{value:.5E}".partition("E")
            return f"{mantissa.rstrip('0').rstrip('.')}E{power}" if power else str(value)
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, dt.datetime):
        return _to_second(value).isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.time):
        return _to_second(dt.datetime.combine(dt.date(2000, 1, 1), value)).time().isoformat()
    if isinstance(value, dt.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(value)


def _to_second(value: dt.datetime) -> dt.datetime:
    rounded = value.replace(microsecond=0)
    return rounded + dt.timedelta(seconds=1) if value.microsecond >= 500_000 else rounded
