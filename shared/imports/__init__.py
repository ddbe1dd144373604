"""Result files of clubs as draft games: CSV, workbooks, tournament reports, PGN. Pure: bytes in, rows out.

table = read_table(data, "evening.csv")                      # ImportFileError, TooLarge
reading = read_games(table, "jass", zone, {"date-order": "dmy"})
reading.questions, reading.rows, bad_rows_csv(reading)
"""

from shared.imports.errors import CellError, ImportFileError, TooLarge
from shared.imports.export import bad_rows_csv, game_cells, games_csv, says_all
from shared.imports.games import ImportReading, Question, Row, column_of_field, read_games
from shared.imports.headings import COLUMNS, LAYOUTS, column_of
from shared.imports.table import (
    MAX_BYTES,
    MAX_CELL,
    MAX_COLUMNS,
    MAX_ROWS,
    Forfeits,
    Notice,
    Table,
    TableRow,
    read_table,
)
from shared.imports.text import Match, Roster, match_key, match_name, neutralise, restore, search_key

__all__ = [
    "COLUMNS",
    "LAYOUTS",
    "MAX_BYTES",
    "MAX_CELL",
    "MAX_COLUMNS",
    "MAX_ROWS",
    "CellError",
    "Forfeits",
    "ImportFileError",
    "ImportReading",
    "Match",
    "Notice",
    "Question",
    "Roster",
    "Row",
    "Table",
    "TableRow",
    "TooLarge",
    "bad_rows_csv",
    "column_of",
    "column_of_field",
    "game_cells",
    "games_csv",
    "match_key",
    "match_name",
    "neutralise",
    "read_games",
    "read_table",
    "restore",
    "says_all",
    "search_key",
]
