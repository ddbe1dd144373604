"""Rows a second of the import reader: 30,000 rows of CSV and of a workbook, and files made to be slow.

Run: ``python -m tests.bench.bench_imports`` from the root.
"""

import contextlib
import io
import time
from zoneinfo import ZoneInfo

from shared.imports import MAX_ROWS, ImportFileError, bad_rows_csv, read_games, read_table

ZONE = ZoneInfo("Europe/Zurich")
HEAD = ["Datum", "Zeit", "Gruppe", "Runde", "T1P1", "T1P2", "T2P1", "T2P2", "Striche1", "Striche2", "Bemerkung"]


def line(n: int) -> list[str]:
    players = [f"Spieler {(n * k) % 997 + 1000 * k}" for k in (1, 2, 3, 4)]
    return [f"{n % 28 + 1:02}.{n % 12 + 1:02}.2025", "19:30", "Dienstag", str(n % 9), *players, str(n % 7), "2", "gut"]


def measure(label: str, data: bytes) -> float:
    start = time.perf_counter()
    table = read_table(data)
    middle = time.perf_counter()
    reading = read_games(table, "jass", ZONE)
    end = time.perf_counter()
    rows = len(reading.rows)
    print(
        f"{label}: {rows:,} rows, {len(data):,} bytes, {rows / (end - start):,.0f} rows/s "
        f"(table {middle - start:.2f} s, games {end - middle:.2f} s, {len(reading.games):,} games)"
    )
    return end - start


def main() -> None:
    lines = [line(n) for n in range(MAX_ROWS)]
    for count in (7_500, 15_000, 30_000):
        text = "\n".join(";".join(cells) for cells in [HEAD, *lines[:count]])
        measure("csv", text.encode())
    broken = "\n".join(";".join(cells).replace(";2;", ";03. Feb;") for cells in [HEAD, *lines])
    measure("csv, all rows bad", broken.encode())
    start = time.perf_counter()
    back = bad_rows_csv(read_games(read_table(broken.encode()), "jass", ZONE))
    print(f"bad rows back: {len(back):,} bytes in {time.perf_counter() - start:.2f} s with reading")
    try:
        import openpyxl
    except ImportError:
        print("xlsx: openpyxl is not installed")
    else:
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Abend")
        for cells in [HEAD, *lines]:
            sheet.append([int(cell) if cell.isdigit() else cell for cell in cells])
        out = io.BytesIO()
        book.save(out)
        measure("xlsx", out.getvalue())
    games = "".join(
        f'[Event "E"]\n[Date "2025.01.{n % 28 + 1:02}"]\n[Round "{n % 9}"]\n[White "p{n}"]\n[Black "q{n}"]\n'
        f'[Result "1-0"]\n\n1. e4 {{a comment}} e5 1-0\n\n'
        for n in range(MAX_ROWS)
    )
    start = time.perf_counter()
    rows = len(read_games(read_table(games.encode()), "bridier", ZONE).rows)
    print(f"pgn: {rows:,} games, {rows / (time.perf_counter() - start):,.0f} games/s")
    for piece in ('[a "', '"', ",", "\n", "'", "[", "{"):
        start = time.perf_counter()
        with contextlib.suppress(ImportFileError):
            read_table(('[White "x"]\n' + piece * (11_000_000 // len(piece))).encode())
        print(f"hostile {piece!r} x 11 MB: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
