"""Imports: a file of results read, matched with what is stored, reported on, and stored whole or row by row.

Strict is all or nothing: either every row can be taken, and then all are, or nothing is stored. Up to one transaction's
worth that is the transaction itself. More is first written down as a job (``import_jobs``), so that whoever comes next
after a crash completes it. Lenient takes the good rows and gives the others back as a CSV with reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from shared.imports import (
    COLUMNS,
    LAYOUTS,
    CellError,
    Forfeits,
    ImportFileError,
    ImportReading,
    Table,
    TooLarge,
    bad_rows_csv,
    read_games,
    read_table,
)
from shared.ledger import calendar
from shared.ledger.order import iso
from shared.problems import BadField, Problem, invalid
from shared.store import attention, ledger
from shared.store.pools import Pool
from shared.store.table import (
    TRANSACTION_ITEMS,
    ConditionFailed,
    Operation,
    Put,
)
from shared.usecases import import_names, import_plan, previews
from shared.usecases.context import Context
from shared.usecases.import_plan import Plan, Planned

Mode = Literal["strict", "lenient"]
MODES = ("strict", "lenient")
REQUEST_ROWS = 2_000
"""A file with more rows is not done within a request, but as a job."""
REASON_LENGTH = 500
MOST_ERRORS = 1_000
"""Errors a report lists; it counts all."""
MOST_CORRECTIONS = 500
MOST_SHOWN = 2_000
"""Rows a preview shows whole; of larger files it shows those that need somebody."""
MOST_EFFECTS = 500
MOST_NOTED = 5
"""Reasons of a file that the club's inbox names."""
INLINE_CSV = 1_500_000
"""Characters of the bad rows that still go into the report itself."""
ATTEMPTS = 3


@dataclass(frozen=True)
class Options:
    """How a file is to be read and taken."""

    mode: Mode = "strict"
    preview: bool = False
    filename: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    sheet: str | None = None
    forfeits: Forfeits = "skip"


def read(pool: Pool, data: bytes, options: Options) -> ImportReading:
    """What the file says.

    Raises:
        Problem: 413 with the limit, 422 with every reason why the file as a whole cannot be read.
    """
    require_columns(pool)
    try:
        return reading_of(pool, table_of(data, options), options)
    except ImportFileError as error:
        raise unreadable(error) from None


def require_columns(pool: Pool) -> None:
    """Raise 422 where no columns are known for the games of a pool's rule system: they are sent one by one."""
    if pool.system.name not in LAYOUTS:
        message = "There are no files for the rules of this pool; send its games one by one."
        raise invalid([BadField("pool", "no-imports", message)])


def table_of(data: bytes, options: Options) -> Table:
    """The file as rows of text. Raises ImportFileError."""
    return read_table(data, options.filename or None, sheet=options.sheet, forfeits=options.forfeits)


def reading_of(pool: Pool, table: Table, options: Options) -> ImportReading:
    """The rows as games. Raises ImportFileError."""
    names = (import_names.PLAYER, import_plan.DUPLICATE + ":")
    known = (import_names.EVERY_PLAYER, import_plan.DUPLICATE)
    answers = {k: v for k, v in options.answers.items() if not k.startswith(names) and k not in known}
    return read_games(table, pool.system.name, calendar.zone(pool.time_zone), answers)


def unreadable(error: ImportFileError) -> Problem:
    """The problem document of a file that cannot be read."""
    fields = [BadField(_place(e), e.code, e.message) for e in error.errors]
    detail = " ".join(e.message for e in error.errors)[:1000]
    if isinstance(error, TooLarge):
        return Problem(413, error.code, detail, fields, {"limit": error.limit})
    return Problem(
        422,
        error.code,
        detail,
        fields,
        {"file_errors": [_error(e) for e in error.errors], "sheets": list(error.sheets)},
    )


def _place(error: CellError) -> str:
    if error.code == "answer":
        return "answers"
    row = "" if error.row is None else f"row {error.row}"
    return ", ".join(part for part in (row, error.column or "") if part) or "file"


# -- reports -------------------------------------------------------------------------------------------------------
def _error(error: CellError) -> dict[str, Any]:
    return {
        "row": error.row,
        "column": error.column,
        "heading": error.heading,
        "value": error.value,
        "code": error.code,
        "message": error.message,
    }


def report(ctx: Context, pool: Pool, plan: Plan, options: Options) -> dict[str, Any]:
    """What an import would do or did, row by row where somebody is needed."""
    counts, bad = plan.counts(), [row for row in plan.rows if row.status == "bad"]
    refused = options.mode == "strict" and bool(bad)
    stored = not options.preview and not refused
    errors = [error for row in bad for error in row.errors]
    told: dict[str, Any] = {
        "status": "preview" if options.preview else "refused" if refused else "done",
        "mode": options.mode,
        "filename": options.filename,
        "rows": len(plan.rows),
        "new": counts["new"] if stored or options.preview else 0,
        "corrected": counts["corrected"] if stored or options.preview else 0,
        "unchanged": counts["unchanged"],
        "skipped": counts["skipped"],
        "bad": counts["bad"],
        "good": len(plan.rows) - counts["bad"],
        "repeated": sum(row.repeated for row in plan.rows),
        "errors": [_error(error) for error in errors[:MOST_ERRORS]],
        "error_count": len(errors),
        "questions": _questions(ctx, pool, plan, bad),
        "corrections": [_correction(plan, row) for row in plan.rows if row.status == "corrected"][:MOST_CORRECTIONS],
        "registered": [{"player": h, "name": n} for h, n in plan.names.registrations.items()],
        "notices": [{"code": n.code, "message": n.message, "count": n.count} for n in plan.notices],
        "ignored_columns": list(plan.reading.ignored_columns),
        "date_order": plan.reading.date_order,
        "sheet": plan.reading.table.sheet,
        "sheets": list(plan.reading.table.sheets),
        "bad_rows_csv": bad_rows(plan, bad) if bad else None,
    }
    if options.preview:
        told |= _shown(plan)
    return told


def note(ctx: Context, pool_id: str, club: str, told: Mapping[str, Any], import_id: str | None = None) -> None:
    """Put what an import did not take into the club's inbox, or take it out again once the file came whole."""
    filename = told["filename"]
    reasons = [{name: error[name] for name in ("row", "column", "code", "message")} for error in told["errors"]]
    reasons += [
        {"row": next(iter(asked["rows"]), None), **{name: asked[name] for name in ("column", "code", "message")}}
        for asked in told["questions"]
    ]
    if not reasons and not told["bad"]:
        ctx.table.write(attention.taken(pool_id, club, filename))
        return
    line = {
        "pool": pool_id,
        "filename": filename,
        "import_id": import_id,
        "at": iso(ctx.clock()),
        "bad": told["bad"],
        "errors": reasons[:MOST_NOTED],
    }
    ctx.table.write(attention.left(pool_id, club, filename, line, ctx.clock()))


def bad_rows(plan: Plan, bad: Sequence[Planned]) -> str:
    """The rows that cannot be taken, with a column that says why; as text that begins with a byte order mark."""
    asked = {q.key: q.message for q in plan.reading.questions}
    asked |= {key: import_names.message_of(entry) for key, entry in plan.names.asked.items()}
    reasons: dict[int, list[str]] = {}
    for planned in bad:
        said = [f"{e.heading or e.column}: {e.message}" if e.column else e.message for e in planned.errors]
        said += [asked.get(key) or _looks_like(plan.duplicates.get(planned.row.number, {})) for key in planned.waiting]
        reasons[planned.row.index] = said
    return bad_rows_csv(plan.reading, reasons).decode()


def _looks_like(first: Mapping[str, str]) -> str:
    where = f"{first.get('club', '')}:{first.get('game_id', '')}"
    return f"Game {where} has the same players, result, time and round: is this another game?"


def _questions(ctx: Context, pool: Pool, plan: Plan, bad: Sequence[Planned]) -> list[dict[str, Any]]:
    waiting: dict[str, list[int]] = {}
    for planned in bad:
        for key in planned.waiting:
            waiting.setdefault(key, []).append(planned.row.number)
    found: list[dict[str, Any]] = [
        {
            "key": q.key,
            "code": q.code,
            "message": q.message,
            "column": q.column,
            "rows": waiting.get(q.key, [])[:100],
            "candidates": list(q.candidates),
            "examples": [{"row": row, "text": text} for row, text in q.examples],
        }
        for q in plan.reading.questions
    ]
    found += import_names.questions(ctx, pool, plan.names)
    found += [
        {
            "key": f"{import_plan.DUPLICATE}:{row}",
            "code": "possible-duplicate",
            "message": _looks_like(first),
            "column": None,
            "rows": [row],
            "candidates": [import_plan.DISTINCT, import_plan.SKIP],
            "existing": first,
        }
        for row, first in list(plan.duplicates.items())[:MOST_ERRORS]
    ]
    return found


def _correction(plan: Plan, planned: Planned) -> dict[str, Any]:
    """What a row corrects, in the columns the file has; what follows from them is not told."""
    before, after = planned.before, planned.after
    return {
        "row": planned.row.number,
        "game_id": planned.game_id,
        "revision": planned.stored.game.revision if planned.stored is not None else 0,
        "changes": [
            {"column": column, "before": before.get(column, ""), "after": after.get(column, "")}
            for column in COLUMNS
            if (column in plan.reading.columns or column == "started")
            and before.get(column, "") != after.get(column, "")
        ],
    }


def _shown(plan: Plan) -> dict[str, Any]:
    """The table of the preview: the file's own columns and cells, and what each row would do."""
    table, reading = plan.reading.table, plan.reading
    whole = len(plan.rows) <= MOST_SHOWN
    rows = plan.rows if whole else [row for row in plan.rows if row.status == "bad"][:MOST_SHOWN]
    named = {index: column for column, index in reading.columns.items()}
    head = table.rows[reading.heading].cells
    return {
        "columns": [{"name": named.get(index), "heading": text} for index, text in enumerate(head)],
        "complete": whole,
        "games": [
            {
                "row": planned.row.number,
                "status": planned.status,
                "game_id": planned.game_id or None,
                "started_at": (planned.row.game or {}).get("started_at"),
                "cells": list(table.rows[planned.row.index].cells),
                "errors": [_error(error) for error in planned.errors],
                "questions": planned.waiting,
                "players": _players(plan, planned),
            }
            for planned in rows
        ],
    }


def _players(plan: Plan, planned: Planned) -> dict[str, str | None]:
    """Whom each name of a row was taken for."""
    texts = import_plan.seats(planned.row.game or {})
    return {text: plan.names.handle(planned.row.number, text) for text in texts if text}


def effects(ctx: Context, pool: Pool, plan: Plan) -> dict[str, Any]:
    """What the ratings would become: ``effects`` and ``preview_token`` of a preview."""
    new = {handle: plan.names.sids[handle] for handle in plan.names.registrations}
    answer = dict(previews.preview(ctx, pool, import_plan.events(ctx, plan), new).body)
    told = dict(answer["effects"])
    players = told["players"]
    if len(players) > MOST_EFFECTS:
        told["more_players"] = len(players) - MOST_EFFECTS
    told["players"] = players[:MOST_EFFECTS]
    return {"effects": told, "preview_token": answer["preview_token"]}


# -- storing -------------------------------------------------------------------------------------------------------
More = Callable[[int], Sequence[Operation]]


@dataclass
class Unit:
    """Writes that belong together: a game's, or a new player's."""

    operations: list[Operation]
    planned: Planned | None = None
    optional: Put | None = None
    """May be left out when another game has the guard of this content."""


def reason_of(options: Options) -> str:
    """The reason of a correction by a file."""
    return f"import {options.filename}".strip()[:REASON_LENGTH]


def units(ctx: Context, pool: Pool, club: str, plan: Plan, options: Options) -> Iterator[Unit]:
    """All writes of a plan: new players first, then the games in file order."""
    for operations in plan.names.operations(club):
        yield Unit(operations)
    for planned in plan.writes:
        write = import_plan.write_of(ctx, pool, club, planned, reason_of(options))
        yield Unit(write.operations, planned, write.guard)


def chunks(found: Iterable[Unit], room: int) -> Iterator[list[Unit]]:
    """Units by transactions: as many as fit, no item twice in one."""
    chunk: list[Unit] = []
    used: set[tuple[str, str]] = set()
    for unit in found:
        touched = {_key(operation) for operation in unit.operations}
        if chunk and (sum(len(u.operations) for u in chunk) + len(unit.operations) > room or touched & used):
            yield chunk
            chunk, used = [], set()
        chunk.append(unit)
        used |= touched
    if chunk:
        yield chunk


def _key(operation: Operation) -> tuple[str, str]:
    if isinstance(operation, Put):
        return operation.item["pk"], operation.item["sk"]
    return operation.key


class Moved(Exception):
    """Something the plan rests on changed before any of its games was stored: plan again."""


def store_chunk(ctx: Context, chunk: Sequence[Unit], more: More = lambda _: ()) -> None:
    """Store one transaction; row by row when a row of it does not hold any more: that row is marked as bad.

    Args:
        more: further operations of a transaction that stores so many rows; their failing is the caller's.

    Raises:
        ConditionFailed: one of ``more`` failed; nothing was stored.
        Moved: a player whom it registers was registered in between.
    """
    extra = list(more(sum(unit.planned is not None for unit in chunk)))
    try:
        ctx.table.transact([*extra, *(operation for unit in chunk for operation in unit.operations)])
        return
    except ConditionFailed as failure:
        if any(number < len(extra) for number in failure.failed):
            raise
    for unit in chunk:
        _store_alone(ctx, unit, more)


def _store_alone(ctx: Context, unit: Unit, more: More) -> None:
    extra = list(more(int(unit.planned is not None)))
    operations = list(unit.operations)
    while True:
        try:
            ctx.table.transact([*extra, *operations])
            return
        except ConditionFailed as failure:
            failed = [number - len(extra) for number in failure.failed]
            if min(failed) < 0:
                raise
            game, there = operations[0], failure.items.get(len(extra), {})
            if unit.planned is None:
                # Registered already: by our own write whose answer was lost, or by somebody else, as somebody else's
                # record, and then the games of this plan would name a player whom nobody knows.
                if isinstance(game, Put) and there.get("sid") == game.item["sid"]:
                    return
                raise Moved from failure
            if 0 in failed and isinstance(game, Put) and there.get("digest") == game.item["digest"]:
                return  # somebody else has stored just this
            if unit.optional is None or [operations[number] for number in failed] != [unit.optional]:
                text = "This game was changed by somebody else while the file was imported; send the file again."
                unit.planned.errors.append(CellError("changed-meanwhile", text, unit.planned.row.number))
                unit.planned.status = "bad"
                return
            operations.remove(unit.optional)
            if isinstance(game, Put):
                game.item["fingerprint"] = ""


def store_at_once(ctx: Context, chunk: Sequence[Unit], guard: Operation | None) -> None:
    """Store a whole import in one transaction.

    Raises:
        Moved: something changed since it was planned; nothing was stored.
        Problem: 409 when the pool has moved since the preview.
    """
    operations = [operation for unit in chunk for operation in unit.operations]
    if guard is not None:
        operations = [*ledger.ahead(operations), guard]
    if not operations:
        return
    try:
        ctx.table.transact(operations)
    except ConditionFailed as failure:
        if guard is not None and len(operations) - 1 in failure.failed:
            raise previews.moved() from failure
        raise Moved from failure


def fits(found: Sequence[Unit]) -> bool:
    """Whether one transaction stores it all; a preview's guard finds room too."""
    return len(list(chunks(found, TRANSACTION_ITEMS - 1))) <= 1


def parse_answers(raw: Any) -> dict[str, str]:
    """Answers as a sender gave them. Raises Problem 422."""
    if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
        raise invalid([BadField("answers", "answers", "Answers are a JSON object of texts, by the questions' keys.")])
    return {str(key): value for key, value in raw.items()}
