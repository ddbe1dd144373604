# ruff: noqa: DTZ001 - what a workbook holds has no zone
import contextlib
import io
import struct
import time
import zipfile

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.imports import MAX_CELL, MAX_ROWS, ImportFileError, TooLarge, read_table
from shared.imports import xlsx as xlsx_module

ENCODINGS = {
    "utf-8": ("utf-8", b""), "utf-8-sig": ("utf-8", b"\xef\xbb\xbf"), "cp1252": ("cp1252", b""),
    "utf-16-le": ("utf-16-le", b"\xff\xfe"), "utf-16-be": ("utf-16-be", b"\xfe\xff"),
    "utf-16-le without BOM": ("utf-16-le", b""), "utf-16-be without BOM": ("utf-16-be", b""),
}  # fmt: skip


def rows_of(data, **options):
    return [(row.number, row.cells) for row in read_table(data, **options).rows]


@pytest.mark.parametrize("last", [True, False], ids=["last line ended", "last line open"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("name", ENCODINGS)
def test_encodings_separators_line_ends(name, separator, end, last):
    encoding, bom = ENCODINGS[name]
    lines = [
        separator.join(["date", "player1", "player2", "winner", "note"]),
        separator.join(
            ["2026-11-03", "Zoë Müller", f'"Frei{separator} Jörg"', "1", f'"zwei{end}Zeilen ""so"""', "", ""]
        ),
        separator * 4,
        separator.join(["2026-11-04", " Ünal ", "b", "2", ""]),
    ]
    data = bom + (end.join(lines) + (end if last else "")).encode(encoding)
    table = read_table(data, "x.csv")
    assert table.separator == separator
    assert table.encoding == name.removesuffix(" without BOM")
    assert [(row.number, row.cells) for row in table.rows] == [
        (1, ("date", "player1", "player2", "winner", "note")),
        (2, ("2026-11-03", "Zoë Müller", f"Frei{separator} Jörg", "1", f'zwei{end}Zeilen "so"')),
        (4, ("2026-11-04", "Ünal", "b", "2")),
    ]


PIECES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.lists(PIECES, min_size=4, max_size=4), max_size=6),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_is_written_is_read(rows, separator, end, encoding):
    from shared.imports import restore

    head = ["date", "player1", "player2", "winner"]
    quoted = [separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    data = (separator.join(head) + end + end.join(quoted)).encode(encoding)
    blank = "\ufeff\u200b\u2060"
    expected = []
    for number, row in enumerate(rows, 2):
        cells = [restore(cell.strip().strip(blank).strip()) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            expected.append((number, tuple(cells)))
    assert rows_of(data)[1:] == expected


def test_the_separator_line_of_excel_is_no_row():
    assert rows_of(b"sep=;\r\ndate;winner\r\n1;2\r\n") == [(1, ("date", "winner")), (2, ("1", "2"))]


def test_our_apostrophes_are_taken_off():
    assert rows_of(b"date,note\n1,'=SUM(A1)\n2,'t Hooft\n")[1:] == [(2, ("1", "=SUM(A1)")), (3, ("2", "'t Hooft"))]


@pytest.mark.parametrize(
    ("data", "code", "row"),
    [
        (b"", "empty-file", None),
        (b"\xef\xbb\xbf", "empty-file", None),
        (b" \r\n\r\n", "empty-file", None),
        (b";;;\n;;;\n", "empty-file", None),
        (b"date,winner\n1,\x01\n", "not-text", 2),
        (b"date,winner\n1,\x81\n", "not-text", 2),
        ("date,player1\n1,Müller\n2,".encode() + b"\xfc\n", "mixed-encoding", 3),
        (b'date,winner\n1,"2\n3,4\n5,6\n', "quote-not-closed", 2),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 50, "old-excel", None),
        (b"%PDF-1.7", "other-format", None),
        (b"<html><table>", "other-format", None),
        (b"PK\x03\x04 not really", "not-a-workbook", None),
    ],
)
def test_files_that_cannot_be_read(data, code, row):
    with pytest.raises(ImportFileError) as refused:
        read_table(data, "x.csv")
    assert (refused.value.code, refused.value.errors[0].row) == (code, row)


@pytest.mark.parametrize(
    ("data", "what", "limit", "row", "column"),
    [
        (b"x" * 12_000_001, "bytes", 12_000_000, None, None),
        (b"date,winner\n" + b"1,2\n" * (MAX_ROWS + 20), "rows", MAX_ROWS, None, None),
        (b"date,winner\n" + b"1," * 64 + b"2\n", "columns", 64, 2, None),
        (b"date,winner\n1," + b"x" * 2_001 + b"\n", "cell", MAX_CELL, 2, "B"),
        (b"date,winner\n1," + b"x" * 500_000 + b"\n", "cell", MAX_CELL, 2, None),
        (b'date,winner\n1,"' + b"x,y\n" * 50_000, "cell", MAX_CELL, 2, None),
    ],
)
def test_limits(data, what, limit, row, column):
    with pytest.raises(TooLarge) as refused:
        read_table(data)
    error = refused.value
    assert (error.what, error.limit, error.errors[0].row, error.errors[0].column) == (what, limit, row, column)
    assert error.code == f"too-large-{what}"


def test_the_limits_themselves_are_allowed():
    table = read_table(b"date,winner\n" + b"1," * 63 + b"2\n" + b"3," + b"x" * MAX_CELL)
    assert len(table.rows[1].cells) == 64


@pytest.mark.parametrize("piece", ["[", '[a "', '[a "\\', "'", '"', " ", ",", "\n", "1-", "#", "001 ", "{", "\r"])
def test_nothing_is_slow(piece):
    start = time.perf_counter()
    for head in ("", "date,player1,player2,winner\n", '[White "a"]\n'):
        with contextlib.suppress(ImportFileError):
            read_table((head + piece * (1_000_000 // len(piece))).encode())
    assert time.perf_counter() - start < 8


# -- workbooks


def workbook(fill):
    book = openpyxl.Workbook()
    fill(book, book.active)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_a_workbook_in_the_spreadsheets_own_rows():
    import datetime as dt

    def fill(book, sheet):
        sheet["A3"], sheet["B3"], sheet["C3"] = "Datum", "Zeit", "Sieger"
        sheet["A5"], sheet["B5"], sheet["C5"] = dt.datetime(2026, 11, 3), dt.time(20, 20), 1
        sheet["A6"], sheet["B6"], sheet["C6"] = dt.datetime(2026, 11, 3, 20, 20), 0.5, 9.45e12
        sheet["A7"], sheet["B7"], sheet["C7"] = True, 1e185, "#REF!"
        sheet["C7"].data_type = "e"
        sheet["Z900"].number_format = "0.00"

    table = read_table(workbook(fill), "x.csv")
    assert table.kind == "xlsx"
    assert [(row.number, row.cells) for row in table.rows] == [
        (3, ("Datum", "Zeit", "Sieger")),
        (5, ("2026-11-03", "20:20:00", "1")),
        (6, ("2026-11-03T20:20:00", "0.5", "9.45E+12")),
        (7, ("TRUE", "1E+185", "#REF!")),
    ]


def test_the_first_visible_sheet_with_cells():
    def fill(book, sheet):
        hidden = book.create_sheet("Geheim", 0)
        hidden["A1"] = "no"
        hidden.sheet_state = "hidden"
        book.create_sheet("Abend")["A1"] = "yes"
        book.create_sheet("Rest")["A1"] = "rest"
        book.active = 1

    data = workbook(fill)
    table = read_table(data)
    assert (table.sheet, table.rows[0].cells) == ("Abend", ("yes",))
    assert [notice.code for notice in table.notices] == ["other-sheets"]
    assert read_table(data, sheet="Rest").rows[0].cells == ("rest",)
    with pytest.raises(ImportFileError) as refused:
        read_table(data, sheet="Geheim")
    assert refused.value.code == "no-such-sheet"


def far(cell, value="x"):
    def fill(book, sheet):
        sheet["A1"] = "date"
        sheet[cell] = value

    return workbook(fill)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (far("A1048576"), "rows"),
        (far("XFD1"), "columns"),
        (far("XFD1048576"), "rows"),
        (far("B2", "x" * 2_001), "cell"),
    ],
)
def test_a_cell_far_away_does_not_end_the_process(data, what):
    with pytest.raises(TooLarge) as refused:
        read_table(data)
    assert refused.value.what == what


def with_part(data, name, change):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            content = old.read(item)
            new.writestr(item, change(content) if item == name else content)
    return out.getvalue()


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    "cell",
    [b'<c r="XFD1048576" t="str"><v></v></c>', b'<c r="XFD1048576" t="inlineStr"><is><t/></is></c>',
     b'<c r="XFD1048576"><f>1</f></c>', b'<c r="xfd1048576"><v>1</v></c>', b'<c r="A99999999999"><v>1</v></c>'],
)  # fmt: skip
def test_strange_far_cells(cell):
    row = b'<row r="1048576">' + cell + b"</row></sheetData>"
    with pytest.raises(ImportFileError):
        read_table(with_part(far("B2"), SHEET, lambda xml: xml.replace(b"</sheetData>", row)))


def test_a_false_dimension_does_no_harm():
    data = with_part(far("B2"), SHEET, lambda xml: xml.replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"'))
    assert rows_of(data) == [(1, ("date",)), (2, ("", "x"))]


def test_zip_bombs_and_entities(monkeypatch):
    bomb = with_part(far("B2"), SHEET, lambda xml: xml.replace(b"</sheetData>", b"</sheetData>" + b" " * 70_000_000))
    assert len(bomb) < 200_000
    with pytest.raises(TooLarge) as refused:
        read_table(bomb)
    assert refused.value.what == "unpacked"
    entity = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><worksheet'
    with pytest.raises(ImportFileError) as other:
        read_table(with_part(far("B2"), SHEET, lambda xml: xml.replace(b"<worksheet", entity, 1)))
    assert other.value.code == "not-a-workbook"


@pytest.mark.parametrize(
    ("central", "local", "value", "code"),
    [(10, 8, 99, "not-a-workbook"), (8, 6, 1, "encrypted")],
    ids=["a compression that nobody knows", "a password on every part"],
)
def test_an_archive_whose_parts_cannot_be_unpacked(central, local, value, code):
    data = bytearray(far("B2"))
    for head, offset in ((b"PK\x01\x02", central), (b"PK\x03\x04", local)):
        at = data.find(head)
        while at >= 0:
            struct.pack_into("<H", data, at + offset, value)
            at = data.find(head, at + 4)
    with pytest.raises(ImportFileError) as refused:
        read_table(bytes(data))
    assert refused.value.code == code


def test_too_many_sheets(monkeypatch):
    monkeypatch.setattr(xlsx_module, "MAX_SHEETS", 2)

    def fill(book, sheet):
        book.create_sheet("b")
        book.create_sheet("c")

    with pytest.raises(TooLarge) as refused:
        read_table(workbook(fill))
    assert refused.value.what == "sheets"


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    for head in (b"", b"PK\x03\x04", b"001    1", b'[White "x"]\n'):
        with contextlib.suppress(ImportFileError):
            assert read_table(head + data).rows


@given(st.integers(0, 5000), st.integers(0, 255))
@settings(max_examples=100, deadline=None)
def test_a_damaged_workbook_is_read_or_refused(at, byte):
    data = bytearray(GOOD)
    data[at % len(data)] = byte
    with contextlib.suppress(ImportFileError):
        assert read_table(bytes(data)).rows


GOOD = far("B2")


MOVES = b"1. e4 e5 2. Nf3 Nc6 1-0\n"


@pytest.mark.parametrize(
    "data", [MOVES, b"anna;beat;1\n", b'an open "quote\nand, more', b"012 Winter Cup\n042 2026/11/01\n"]
)
@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [("a.pgn", "not-pgn", "PGN"), ("A.PGN", "not-pgn", "PGN"), ("a.b.trf", "not-trf", "TRF16"),
     ("a.trfx", "not-trf", "TRF16"), ("a.xlsx", "not-a-workbook", "workbook"), ("a.xls", "not-a-workbook", "workbook")],
)  # fmt: skip
def test_a_file_that_is_not_what_its_name_says(data, name, code, expected):
    with pytest.raises(ImportFileError) as caught:
        read_table(data, name)
    (error,) = caught.value.errors
    assert error.code == code
    assert name in error.message
    assert expected in error.message


@pytest.mark.parametrize("name", ["a.pgn", "a.trf", "a.xlsx", "a.csv", "a.txt", "pgn", None])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_is_one_whatever_it_is_called(name, separator):
    data = f"Our evening\nDatum{separator}Weiss{separator}Schwarz\n2026-11-03{separator}a{separator}b\n".encode()
    assert len(rows_of(data, filename=name)) == 3
    assert rows_of(b"x,y\n1,2\n", filename=None if name is None else "a.csv") == [(1, ("x", "y")), (2, ("1", "2"))]
    assert read_table(b'[White "a"]\n[Black "b"]\n[Result "1-0"]\n', name).kind == "pgn"
