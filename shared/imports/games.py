"""A table turned into draft games, row by row, in the form the API takes; with errors, and questions for the sender.

Pure: the same table, system, zone and answers give the same reading.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shared.characters import NAME_LENGTH, is_printable, tidy_note
from shared.imports.cells import (
    ORDERS,
    Day,
    Problem,
    damage,
    excel_error,
    instant_text,
    local_readings,
    read_clock,
    read_day,
    read_instant,
    whole,
)
from shared.imports.errors import CellError, ImportFileError, refuse
from shared.imports.headings import COMMON, LAYOUTS, REASON, RESULT, Layout, column_of, known
from shared.imports.table import HEADING_WITHIN, MAX_ROWS, Notice, Table, TableRow, too_many_rows
from shared.imports.text import match_key, search_key

MAX_ROUND = 999_999
"""As the API takes them."""
NOON = dt.time(12)
"""A day without a time."""

DATE_ORDER = "date-order"
REPEATED_HOUR = "repeated-hour"
ROUND_DATES = "round-dates"


@dataclass(frozen=True)
class Question:
    """Something only the sender knows. Answered by ``answers[key] = candidate`` in the next reading."""

    key: str
    """``date-order`` and ``round-dates`` (once per file); ``repeated-hour:<row number>``, or ``repeated-hour`` for all
    such rows that have no answer of their own."""
    code: str
    """``date-order``, ``repeated-hour`` or ``round-dates``."""
    candidates: tuple[str, ...]
    """``dmy``, ``mdy``, ``ymd``; ``first``, ``second``; ``first``, ``last``."""
    message: str
    """One plain English sentence."""
    row: int | None = None
    column: str | None = None
    examples: tuple[tuple[int, str], ...] = ()
    """Up to three (row number, text) it is about; of ``round-dates`` the two days, in the candidates' order."""


@dataclass(frozen=True)
class Row:
    """A row of the file: a game, or errors, or questions that wait."""

    index: int
    """Into ``ImportReading.table.rows``; the key of ``bad_rows_csv``."""
    number: int
    """As a spreadsheet counts, from 1."""
    game: dict[str, Any] | None = None
    """In the API's form, players as typed. Columns the file has not are left out, empty cells are null (note: "")."""
    errors: tuple[CellError, ...] = ()
    waiting: tuple[str, ...] = ()
    """Keys of the questions this row waits for."""
    repeat_of: int | None = None
    """Number of an earlier row with the same id and the same content: not another game."""


@dataclass(frozen=True)
class ImportReading:
    """What a file says."""

    system: str
    table: Table
    columns: Mapping[str, int]
    """Column by its name in the API, and its index."""
    heading: int
    """Index of the heading in ``table.rows``."""
    rows: tuple[Row, ...]
    questions: tuple[Question, ...] = ()
    date_order: str | None = None
    """``dmy``, ``mdy`` or ``ymd`` where the file's days needed one and it is known."""
    ignored_columns: tuple[str, ...] = ()
    """Headings as typed that name no column of this system."""
    notices: tuple[Notice, ...] = ()

    @property
    def games(self) -> tuple[dict[str, Any], ...]:
        """All draft games, in file order."""
        return tuple(row.game for row in self.rows if row.game is not None)

    @property
    def errors(self) -> tuple[CellError, ...]:
        """All row errors, in file order."""
        return tuple(error for row in self.rows for error in row.errors)

    def heading_of(self, column: str) -> str | None:
        """A column's heading as the file has it."""
        index = self.columns.get(column)
        return None if index is None else self.table.rows[self.heading].cells[index]

    def error_at(self, row: Row, path: str, code: str, message: str) -> CellError:
        """An error of the API (``path`` as in a problem document, ``result.teams[0][1]``) put into its cell."""
        column = column_of_field(path, self.columns)
        value = None
        if column is not None and column in self.columns:
            cells = self.table.rows[row.index].cells
            index = self.columns[column]
            value = cells[index][:80] if index < len(cells) else ""
        return CellError(code, message, row.number, column, self.heading_of(column) if column else None, value)


_FIELDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:result\.)?teams\[([01])\]\[([01])\]"), "team{0}_player{1}"),
    (re.compile(r"(?:result\.)?players\[([01])\]"), "player{0}"),
    (re.compile(r"(?:result\.)?(striche|points)\[([01])\]"), "{0}{1}"),
)


def column_of_field(path: str, columns: Iterable[str]) -> str | None:
    """The column a field of the API came from; None when it came from none (or from several)."""
    for pattern, column in _FIELDS:
        match = pattern.match(path)
        if match:
            return column.format(*(str(int(group) + 1) if group.isdigit() else group for group in match.groups()))
    if path in ("started_at", "finished_at"):
        return next((column for column in ("started", "date") if column in columns), None)
    last = path.removeprefix("result.")
    if last in ("winner", "outcome", "draw"):
        return "winner"
    return path if path in COMMON else None


# -- reading ---------------------------------------------------------------------------------------------------------


def read_games(
    table: Table, system_name: str, time_zone: dt.tzinfo, answers: Mapping[str, str] | None = None
) -> ImportReading:
    """Read a table's rows as games of a rule system.

    Args:
        table: from ``read_table``.
        system_name: ``spades``, ``jass`` or ``bridier``.
        time_zone: the pool's, for local times; a day without a time is 12:00 there.
        answers: to the questions of an earlier reading of the same file, by key.

    Returns:
        every row that is not empty below the heading, in order, with its game, its errors, or what it waits for.

    Raises:
        ImportFileError: ``missing-column``, ``column-twice`` (all at once), ``answer``.
        TooLarge: more than 30,000 rows.
        KeyError: no such system.
    """
    return _Reader(table, system_name, time_zone, answers or {}).read()


def _heading(table: Table) -> int:
    counts = [known(row.cells) for row in table.rows[:HEADING_WITHIN]]
    return counts.index(max(counts)) if max(counts) >= 2 else 0


def _columns(table: Table, heading: int, layout: Layout) -> tuple[dict[str, int], tuple[str, ...]]:
    """Columns by name, and the headings that name none of this layout."""
    columns: dict[str, int] = {}
    ignored: list[str] = []
    errors: list[CellError] = []
    row = table.rows[heading]
    wanted = set(layout.columns)
    named = [column_of(text) if text else None for text in row.cells]
    says_winner = ("winner",) in layout.needs and "winner" not in named
    for index, text in enumerate(row.cells):
        column = "winner" if named[index] == RESULT and says_winner else named[index]
        if column == REASON or not text:
            continue
        if column is None or column not in wanted:
            ignored.append(text)
        elif column in columns:
            first = row.cells[columns[column]]
            message = f'The columns "{first[:40]}" and "{text[:40]}" both mean {column}; keep one of them.'
            errors.append(CellError("column-twice", message, row.number, column, text))
        else:
            columns[column] = index
    missing = [name for name in layout.players if name not in columns]
    if not any(all(name in columns for name in names) for names in layout.needs):
        missing.append(" (or ".join(" and ".join(names) for names in layout.needs) + ")" * (len(layout.needs) - 1))
    if "date" not in columns and "started" not in columns:
        missing.append("date (or started)")
    errors.extend(CellError("missing-column", f"There is no column {name}.", row.number, name) for name in missing)
    if errors:
        raise ImportFileError(errors, table.sheets)
    return columns, tuple(ignored)


_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_WINNERS: Mapping[str, tuple[str, ...]] = {
    "1": ("1", "team 1", "team a", "mannschaft 1", "paar 1", "equipe 1", "paire 1", "squadra 1", "coppia 1", "1-0",
          "player 1", "spieler 1", "joueur 1", "giocatore 1", "first", "1:0"),
    "2": ("2", "team 2", "team b", "mannschaft 2", "paar 2", "equipe 2", "paire 2", "squadra 2", "coppia 2", "0-1",
          "player 2", "spieler 2", "joueur 2", "giocatore 2", "second", "0:1"),
    "draw": ("draw", "drawn", "tie", "tied", "remis", "unentschieden", "nul", "nulle", "match nul", "partie nulle",
             "egalite", "pareggio", "pari", "patta", "parita", "½", "½-½", "1/2-1/2", "0.5-0.5", "0,5-0,5"),
}  # fmt: skip


def _winner_key(text: str) -> str:
    return search_key(text).replace(" ", "").replace("_", "")


_WINNER_WORDS: Mapping[str, str] = {_winner_key(word): kind for kind, words in _WINNERS.items() for word in words}


@dataclass
class _Draft:
    """A row on its way to a game."""

    row: TableRow
    errors: list[CellError] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)


class _Reader:
    def __init__(self, table: Table, system: str, zone: dt.tzinfo, answers: Mapping[str, str]) -> None:
        self.table, self.system, self.zone, self.answers = table, system, zone, answers
        self.layout = LAYOUTS[system]
        self.heading = _heading(table)
        self.columns, self.ignored = _columns(table, self.heading, self.layout)
        self.headings = {column: table.rows[self.heading].cells[index] for column, index in self.columns.items()}
        self.width = len(table.rows[self.heading].cells)
        self.questions: dict[str, Question] = {}
        self.days: dict[str, Day | Problem] = {}
        self.keys: dict[str, str] = {}
        self.order: str | None = None
        self.refused_days: set[str] = set()
        self.waiting_days: set[str] = set()
        _check_answers(answers)

    # -- the whole file

    def read(self) -> ImportReading:
        below = self.table.rows[self.heading + 1 :]
        if len(below) > MAX_ROWS:
            raise too_many_rows()
        self._decide_order(below)
        drafts = [self._row(row) for row in below]
        rows = self._with_ids(drafts)
        return ImportReading(
            self.system,
            self.table,
            self.columns,
            self.heading,
            tuple(rows),
            tuple(self.questions.values()),
            self.order,
            self.ignored,
            self.table.notices,
        )

    def _cell(self, row: TableRow, column: str) -> str:
        index = self.columns.get(column)
        return row.cells[index] if index is not None and index < len(row.cells) else ""

    def _day(self, text: str) -> Day | Problem:
        day = self.days.get(text)
        if day is None:
            try:
                day = read_day(text)
            except Problem as problem:
                day = problem
            self.days[text] = day
        return day

    def _decide_order(self, rows: Sequence[TableRow]) -> None:
        """Find the one order of day and month that all days of the file allow; else ask."""
        counts: Counter[str] = Counter()
        first_row: dict[str, int] = {}
        for row in rows:
            for column in ("started", "date"):
                text = self._cell(row, column)
                if text:
                    counts[text] += 1
                    first_row.setdefault(text, row.number)
        found: dict[str, Day] = {}
        for text in counts:
            day = self._day(text)
            if isinstance(day, Day) and "" not in day.readings:
                found[text] = day
        if not found:
            return
        answer = self.answers.get(DATE_ORDER)
        if answer is not None:
            self.order = answer
            self.refused_days = {text for text, day in found.items() if answer not in day.readings}
            return
        possible = [order for order in ORDERS if all(order in day.readings for day in found.values())]
        if not possible:
            support = {
                order: sum(counts[text] for text, day in found.items() if order in day.readings) for order in ORDERS
            }
            best = [order for order in ORDERS if support[order] == max(support.values())]
            self.refused_days = {
                text for text, day in found.items() if not all(order in day.readings for order in best)
            }
            possible = [order for order in ORDERS if support[order]]
        unsure = {
            text: day
            for text, day in found.items()
            if text not in self.refused_days
            and len({day.readings[order] for order in possible if order in day.readings}) > 1
        }
        if not self.refused_days and "dmy" in possible and all(day.dotted for day in unsure.values()):
            self.order = "dmy"
        elif not unsure:
            self.order = next((o for o in possible if all(o in d.readings for d in found.values())), None)
        else:
            self.waiting_days = set(unsure)
            examples = tuple((first_row[text], text) for text in list(unsure)[:3])
            shown = "/".join(possible)
            message = f'In which order do the days of this file stand, as in "{examples[0][1]}": {shown}?'
            self.questions[DATE_ORDER] = Question(
                DATE_ORDER, DATE_ORDER, tuple(possible), message, None, None, examples
            )

    # -- one row

    def _row(self, row: TableRow) -> _Draft:
        draft = _Draft(row, list(row.errors))
        stated = {error.column for error in row.errors}
        if len(row.cells) > self.width:
            message = f"The row has {len(row.cells)} cells, but the heading only {self.width}; is a separator unquoted?"
            draft.errors.append(CellError("extra-cells", message, row.number))
        if not row.cells:
            return draft
        self._read_id(draft)
        if not stated & {"date", "started"}:
            self._read_start(draft)
        self._read_labels(draft)
        players = self._read_players(draft, stated)
        if "winner" not in stated and (not stated or self._cell(row, "winner")):
            getattr(self, f"_read_{self.system}")(draft, players)
        return draft

    def _fail(self, draft: _Draft, column: str, problem: Problem) -> None:
        number = draft.row.number
        value = self._cell(draft.row, column)[:80]
        draft.errors.append(CellError(problem.code, problem.message, number, column, self.headings.get(column), value))

    def _read_id(self, draft: _Draft) -> None:
        text = self._cell(draft.row, "game_id")
        if not text:
            return
        if text[0] == "'":  # our exports mark ids that Excel would change
            text = text[1:]
        else:
            broken = damage(text, is_id=True)
            if broken:
                self._fail(draft, "game_id", broken)
                return
        text = text.casefold()
        if _ID.fullmatch(text):
            draft.values["game_id"] = text
        else:
            message = f'"{text[:40]}" is not an id: up to 64 of a-z, 0-9, point, dash and underscore, no spaces.'
            self._fail(draft, "game_id", Problem("game-id", message))

    def _read_start(self, draft: _Draft) -> None:
        row = draft.row
        started, date = self._cell(row, "started"), self._cell(row, "date")
        column = "started" if started else "date"
        try:
            if started:
                instant = read_instant(started)
                if instant is None:
                    column = "started"
                    instant = self._local(draft, column, started, self._cell(row, "time"))
                elif date:
                    self._same_day(date, instant.astimezone(self.zone).date())
            elif date:
                instant = read_instant(date) or self._local(draft, column, date, self._cell(row, "time"))
            else:
                column = "date" if "date" in self.columns else "started"
                instant = self._tournament_day(draft)
        except Problem as problem:
            self._fail(draft, "time" if problem.code == "time" and self._cell(row, "time") else column, problem)
            return
        if instant is not None:
            draft.values["started_at"] = instant

    def _same_day(self, text: str, day: dt.date) -> None:
        other = self._day(text)
        if isinstance(other, Day) and day not in other.readings.values():
            raise Problem("date-conflict", f'The columns date ("{text[:40]}") and started ({day}) disagree.')

    def _local(self, draft: _Draft, column: str, text: str, time: str) -> dt.datetime | None:
        day = self._day(text)
        if isinstance(day, Problem):
            raise day
        if text in self.refused_days:
            orders = "/".join(day.readings)
            raise Problem("date-order", f'"{text[:40]}" can only be {orders}, other days of the file cannot.')
        clock = NOON
        if day.clock:
            clock = read_clock(day.clock)
        if time:
            separate = read_clock(time.partition("T")[2] if "T" in time else time)
            if day.clock and separate != clock:
                raise Problem("date-conflict", f'"{text[:40]}" and the time "{time[:20]}" disagree.')
            clock = separate
        if column == "started":
            date = self._cell(draft.row, "date")
            other = self._day(date) if date else day
            if isinstance(other, Day) and not set(other.readings.values()) & set(day.readings.values()):
                raise Problem("date-conflict", f'The columns date ("{date[:40]}") and started disagree.')
        if text in self.waiting_days:
            draft.waiting.append(DATE_ORDER)
            return None
        order = "" if "" in day.readings else self.order if self.order in day.readings else next(iter(day.readings))
        return self._at(draft, column, dt.datetime.combine(day.readings[order or ""], clock))

    def _at(self, draft: _Draft, column: str, local: dt.datetime) -> dt.datetime | None:
        instants = local_readings(local, self.zone)
        if len(instants) == 1:
            return instants[0]
        shown = local.isoformat(" ", "minutes")
        number = draft.row.number
        if not instants:
            raise Problem("no-such-time", f"{shown} does not exist there: the clocks were put forward over it.")
        key = f"{REPEATED_HOUR}:{number}"
        answer = self.answers.get(key) or self.answers.get(REPEATED_HOUR)
        if answer is not None:
            return instants[0] if answer == "first" else instants[1]
        message = f"{shown} happened twice, since the clocks were put back: was it the first or the second time?"
        self.questions[key] = Question(
            key, REPEATED_HOUR, ("first", "second"), message, number, column, ((number, shown),)
        )
        draft.waiting.append(key)
        return None

    def _tournament_day(self, draft: _Draft) -> dt.datetime | None:
        first, last = self.table.first_day, self.table.last_day
        if first is None or last is None:
            raise Problem("missing", "The row has no date.")
        answer = "first" if first == last else self.answers.get(ROUND_DATES)
        if answer is not None:
            chosen = dt.date.fromisoformat(first if answer == "first" else last)
            return self._at(draft, "date", dt.datetime.combine(chosen, NOON))
        message = (
            f"The report does not say when its rounds were played: take its first day, {first}, or its last, {last}?"
        )
        days = ((draft.row.number, first), (draft.row.number, last))
        self.questions[ROUND_DATES] = Question(ROUND_DATES, ROUND_DATES, ("first", "last"), message, examples=days)
        draft.waiting.append(ROUND_DATES)
        return None

    def _read_labels(self, draft: _Draft) -> None:
        for column in ("group", "tournament"):
            if column in self.columns:
                text = self._cell(draft.row, column)
                problem = _text_problem(text)
                if problem:
                    self._fail(draft, column, problem)
                draft.values[column] = text or None
        if "round" in self.columns:
            text = self._cell(draft.row, "round")
            try:
                draft.values["round"] = whole(text, MAX_ROUND) if text else None
            except Problem as problem:
                self._fail(draft, "round", problem)
        if "note" in self.columns:
            draft.values["note"] = tidy_note(self._cell(draft.row, "note"))

    def _key(self, text: str) -> str:
        key = self.keys.get(text)
        if key is None:
            key = self.keys[text] = match_key(text)
        return key

    def _read_players(self, draft: _Draft, stated: set[str | None]) -> list[str]:
        players: list[str] = []
        seen: dict[str, str] = {}
        for column in self.layout.players:
            text = self._cell(draft.row, column)
            players.append(text)
            if not text:
                if not (stated and self.table.kind == "trf"):
                    self._fail(draft, column, Problem("missing-player", "The player is missing."))
                continue
            problem = _text_problem(text)
            if problem:
                self._fail(draft, column, problem)
            key = self._key(text)
            if key in seen:
                self._fail(draft, column, Problem("player-twice", f'"{text[:80]}" plays twice in this game.'))
            seen[key] = column
        return players

    def _winner(self, draft: _Draft, players: Sequence[str] = ()) -> str | None:
        """``1``, ``2`` or ``draw``; None when the cell is empty or an error was noted."""
        text = self._cell(draft.row, "winner")
        if not text:
            return None
        said = _WINNER_WORDS.get(_winner_key(text))
        named = [
            str(index) for index, player in enumerate(players, 1) if player and self._key(player) == self._key(text)
        ]
        if named and (said is not None and said != named[0]):
            message = f'"{text[:40]}" is the name of player {named[0]}, but also means "{said}"; use another word.'
            self._fail(draft, "winner", Problem("winner-ambiguous", message))
            return None
        if named:
            return named[0]
        if said is not None:
            return said
        problem = damage(text)
        if problem is None:
            try:
                number = whole(text)
            except Problem:
                number = 0
            if number in (1, 2):
                return str(number)
            allowed = "1, 2, draw or the winning player" if players else "1, 2 or draw"
            problem = Problem("winner", f'"{text[:40]}" is no winner; write {allowed}.')
        self._fail(draft, "winner", problem)
        return None

    def _missing(self, draft: _Draft, column: str) -> None:
        self._fail(draft, column, Problem("missing", "The result is missing."))

    def _read_spades(self, draft: _Draft, players: list[str]) -> None:
        winner = self._winner(draft)
        if not self._cell(draft.row, "winner"):
            self._missing(draft, "winner")
        draft.result = {"teams": [players[:2], players[2:]]}
        if winner:
            draft.result["outcome"] = "draw" if winner == "draw" else f"team{winner}"

    def _read_bridier(self, draft: _Draft, players: list[str]) -> None:
        winner = self._winner(draft, players)
        if not self._cell(draft.row, "winner"):
            self._missing(draft, "winner")
        draft.result = {"players": players}
        if winner == "draw":
            draft.result["draw"] = True
        elif winner:
            draft.result["winner"] = players[int(winner) - 1]

    def _read_jass(self, draft: _Draft, players: list[str]) -> None:
        draft.result = {"teams": [players[:2], players[2:]]}
        scored: list[int] | None = None
        empty = True
        for kind in ("points", "striche"):
            pair = [(f"{kind}{n}", self._cell(draft.row, f"{kind}{n}")) for n in (1, 2)]
            if not any(text for _, text in pair):
                continue
            empty = False
            scores: list[int] = []
            for column, text in pair:
                if not text:
                    self._fail(draft, column, Problem("missing", "The other side has a number here, this one has not."))
                    continue
                try:
                    scores.append(whole(text))
                except Problem as problem:
                    self._fail(draft, column, problem)
            if len(scores) == 2:
                draft.result[kind] = scored = scores
        if empty:
            self._missing(draft, "striche1" if "striche1" in self.columns else "points1")
        winner = self._winner(draft)
        if winner in ("1", "2"):
            draft.result["winner"] = f"team{winner}"
        elif winner == "draw" and scored and scored[0] != scored[1]:
            message = f"The winner says draw, but the result is {scored[0]}:{scored[1]}."
            self._fail(draft, "winner", Problem("winner-contradicts", message))

    # -- ids

    def _content(self, draft: _Draft) -> str:
        """The row's content in one canonical form: all but id and note, names as they are compared."""
        values = draft.values
        result = draft.result
        sides = result.get("teams") or [result["players"]]
        names = [[self._key(name) for name in side] for side in sides]
        outcome = [result.get(key) for key in ("outcome", "striche", "points", "draw")]
        winner = result.get("winner")
        outcome.append(self._key(winner) if winner else None)
        labels = [self._key(values.get(key) or "") for key in ("group", "tournament")]
        started = values["started_at"].astimezone(dt.UTC).isoformat()
        return json.dumps([1, started, values.get("round"), labels, names, outcome], separators=(",", ":"))

    def _with_ids(self, drafts: Sequence[_Draft]) -> list[Row]:
        counts: Counter[str] = Counter()
        rows: list[Row] = []
        by_id: dict[str, list[tuple[int, str]]] = {}
        for index, draft in enumerate(drafts):
            row = Row(self.heading + 1 + index, draft.row.number)
            if draft.errors or draft.waiting:
                rows.append(replace(row, errors=tuple(draft.errors), waiting=tuple(draft.waiting)))
                continue
            content = self._content(draft)
            instant = instant_text(draft.values["started_at"])
            game_id = draft.values.get("game_id")
            count = counts[content]
            game: dict[str, Any] = {"game_id": game_id, "started_at": instant, "finished_at": instant}
            if game_id is None:
                counts[content] += 1
                game["game_id"] = "row-" + hashlib.sha256(f"{content}#{count}".encode()).hexdigest()[:20]
                if count:
                    game["distinct"] = True
            for name in ("group", "tournament", "round", "note"):
                if name in draft.values:
                    game[name] = draft.values[name]
            game["result"] = draft.result
            by_id.setdefault(game["game_id"], []).append((index, content + draft.values.get("note", "")))
            rows.append(replace(row, game=game))
        for game_id, uses in by_id.items():
            if len(uses) < 2:
                continue
            if len({content for _, content in uses}) == 1:
                first = rows[uses[0][0]].number
                for index, _ in uses[1:]:
                    rows[index] = replace(rows[index], game=None, repeat_of=first)
                continue
            for index, _ in uses:
                others = ", ".join(str(rows[other].number) for other, _ in uses[:10] if other != index)
                message = f'The id "{game_id}" also stands in row {others}, with another game.'
                error = CellError(
                    "game-id-twice", message, rows[index].number, "game_id", self.headings.get("game_id"), game_id
                )
                rows[index] = replace(rows[index], game=None, errors=(error,))
        return rows


def _text_problem(text: str) -> Problem | None:
    """What is wrong with a name or a label."""
    if not text:
        return None
    if len(text) > NAME_LENGTH:
        return Problem("too-long", f"The text has {len(text)} characters; at most {NAME_LENGTH} are allowed.")
    if not is_printable(" ".join(text.split())):  # a cell's line breaks are blanks to a name
        return Problem("not-printable", "The text has characters that cannot be printed.")
    return excel_error(text)


_ANSWERS = {
    DATE_ORDER: ORDERS,
    REPEATED_HOUR: ("first", "second"),
    ROUND_DATES: ("first", "last"),
}


def _check_answers(answers: Mapping[str, str]) -> None:
    for key, value in answers.items():
        kind, _, row = key.partition(":")
        allowed = _ANSWERS.get(kind, ())
        if value not in allowed or (row and (kind != REPEATED_HOUR or not row.isdigit())):
            message = f'"{str(value)[:40]}" is no answer to "{key[:40]}".'
            if allowed:
                message = f'"{str(value)[:40]}" is no answer to "{key[:40]}"; it must be {", ".join(allowed)}.'
            raise refuse("answer", message)
