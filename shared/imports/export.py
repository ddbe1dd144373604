"""Rows written back: the ones that could not be taken, and games as CSV in the columns an import reads. Pure."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shared.characters import tidy_note
from shared.imports.cells import damage, instant_text
from shared.imports.games import ImportReading
from shared.imports.headings import LAYOUTS, REASON, column_of
from shared.imports.table import BOM
from shared.imports.text import match_key, neutralise


def _csv(rows: Iterable[Sequence[str]], separator: str) -> bytes:
    out = io.StringIO(newline="")
    out.write(BOM)
    writer = csv.writer(out, delimiter=separator, lineterminator="\r\n")
    for row in rows:
        writer.writerow([neutralise(cell) for cell in row])
    return out.getvalue().encode()


def bad_rows_csv(reading: ImportReading, reasons: Mapping[int, Sequence[str]] | None = None) -> bytes:
    """The rows that could not be taken, with the file's own columns and a column ``reason``, to be sent again.

    UTF-8 with a BOM, the file's separator (semicolon for a workbook, comma for reports), CRLF. The reason column is
    passed over when the file comes back; one the file already had is replaced.

    Args:
        reading: of the file.
        reasons: sentences by ``Row.index``, instead of the reading's own errors and open questions: for what was found
            later (unknown players, rules).
    """
    table = reading.table
    if reasons is None:
        asked = {question.key: question.message for question in reading.questions}
        reasons = {
            row.index: [
                *(
                    f"{error.heading or error.column}: {error.message}" if error.column else error.message
                    for error in row.errors
                ),
                *(asked[key] for key in row.waiting),
            ]
            for row in reading.rows
            if row.errors or row.waiting
        }
    head = table.rows[reading.heading].cells
    kept = [index for index, text in enumerate(head) if not text or column_of(text) != REASON]
    rows: list[list[str]] = [[*(head[index] for index in kept), REASON]]
    for row_index in sorted(reasons):
        cells = table.rows[row_index].cells
        line = [cells[index] if index < len(cells) else "" for index in kept]
        line.append(" ".join(reasons[row_index]))
        line.extend(cells[len(head) :])
        rows.append(line)
    return _csv(rows, table.separator)


def game_cells(game: Mapping[str, Any], system_name: str, time_zone: dt.tzinfo) -> dict[str, str] | None:
    """A finished game of the API as cells by column, such that reading them gives the same game.

    Two games that an import cannot tell apart have equal cells, so a row is "unchanged" exactly when the cells of its
    draft equal those of the stored game: what CSV has no column for (quits, nils, striche by category, a finish after
    the start) does not make a difference.

    Returns:
        None for a game CSV cannot say: more than two players in Bridier, no winner, not finished.
    """
    result = game.get("result")
    if not isinstance(result, Mapping):
        return None
    started = dt.datetime.fromisoformat(str(game.get("started_at") or game["finished_at"]))
    game_id = str(game.get("game_id") or "")
    cells = {
        "game_id": _kept(game_id, is_id=True),
        "started": instant_text(started.astimezone(time_zone)),
        "group": game.get("group") or "",
        "tournament": game.get("tournament") or "",
        "round": "" if game.get("round") is None else _kept(str(game["round"])),
        "note": tidy_note(game.get("note") or ""),
    }
    teams = result.get("teams")
    if teams is not None:
        for team, players in enumerate(teams, 1):
            for seat, player in enumerate(players, 1):
                cells[f"team{team}_player{seat}"] = player
    winner = result.get("outcome", result.get("winner"))
    if system_name == "bridier":
        players = result.get("players", ())
        if len(players) != 2 or (winner is None and not result.get("draw")):
            return None
        cells["player1"], cells["player2"] = players
        cells["winner"] = _duel_winner(players, "draw" if result.get("draw") else str(players.index(winner) + 1))
    else:
        cells["winner"] = {"team1": "1", "team2": "2", "draw": "draw"}.get(winner or "", "")
    for kind in ("striche", "points"):
        scores = result.get(kind)
        if scores is not None:
            for side, score in enumerate(scores, 1):
                cells[f"{kind}{side}"] = _kept(str(sum(score.values()) if isinstance(score, Mapping) else score))
    if system_name == "spades" and not cells["winner"]:
        return None
    return {column: cells.get(column, "") for column in LAYOUTS[system_name].columns if column not in ("date", "time")}


def _kept(cell: str, *, is_id: bool = False) -> str:
    """A cell that a spreadsheet would change, or that looks as if one had, marked so that it is read as it stands."""
    return "'" + cell if damage(cell, is_id=is_id) else cell


_IN_WORDS = {"1": "player 1", "2": "player 2", "draw": "match nul"}
"""The same in words with a blank, which no id has."""


def _duel_winner(players: Sequence[str], word: str) -> str:
    """Who won a game of two, in a word that is not also the id of one who plays."""
    return _IN_WORDS[word] if any(match_key(player) == word for player in players) else word


_SAID = frozenset({"teams", "players", "winner", "outcome", "draw", "striche", "points"})


def says_all(result: Mapping[str, Any]) -> bool:
    """Whether the columns say everything of a result: none for quits, nils, substitutes, striche by category ..."""
    by_category = any(isinstance(scored, Mapping) for scored in result.get("striche") or ())
    return not by_category and all(name in _SAID or not value for name, value in result.items())


def games_csv(rows: Iterable[Mapping[str, str]], system_name: str, separator: str = ",") -> bytes:
    """``game_cells`` of many games as a CSV file: UTF-8 with a BOM, CRLF, cells harmless for spreadsheets."""
    columns = [column for column in LAYOUTS[system_name].columns if column not in ("date", "time")]
    return _csv([columns, *([row.get(column, "") for column in columns] for row in rows)], separator)
