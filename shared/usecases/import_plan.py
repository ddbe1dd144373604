"""What the rows of a file would do to a pool: new, unchanged, corrected, or wrong. Reads in bulk, stores nothing."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from shared.characters import NOTE_LENGTH, is_printable_text
from shared.ids import ID_FORM, fold_id, id_from
from shared.imports import (
    LAYOUTS,
    CellError,
    ImportReading,
    Notice,
    Row,
    game_cells,
    match_key,
    search_key,
)
from shared.ledger import calendar
from shared.ledger.events import Event
from shared.ledger.order import iso, to_datetime, to_instant
from shared.problems import Problem
from shared.ratings.base import Content
from shared.store import keys, people
from shared.store.pools import Pool
from shared.store.table import BATCH_GET_ITEMS, Item, Key, Operation
from shared.usecases import eligibility, games
from shared.usecases.context import Context
from shared.usecases.drafts import GameDraft
from shared.usecases.exporting import cells_of
from shared.usecases.games import Checked, Stored, Write
from shared.usecases.import_names import Mention, Names, handle_items, resolve

Status = Literal["new", "unchanged", "corrected", "skipped", "bad"]

DUPLICATE = "duplicate"
"""The question whether a game that looks like one already stored is another: ``duplicate:<row>``, or for all rows."""
DISTINCT, SKIP = "distinct", "skip"
READERS = 4
"""Batches of a large file are read side by side."""
SIDE_BY_SIDE = 5
"""... when there are more than so many."""
_SAID_BY_CSV = frozenset({"teams", "players", "outcome", "winner", "draw", "striche", "points"})
"""Fields of a result that rows speak of; what else a stored result says stays when its players do."""


@dataclass
class Planned:
    """A row and what it would do."""

    row: Row
    status: Status = "bad"
    errors: list[CellError] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    checked: Checked | None = None
    stored: Stored | None = None
    """The game as it is now, for a correction."""
    door: list[Operation] = field(default_factory=list)
    fingerprint: str = ""
    distinct: bool = False
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    repeated: bool = False

    @property
    def game_id(self) -> str:
        """The game's id; empty for a row that is no game."""
        return str((self.row.game or {}).get("game_id") or "")


@dataclass
class Plan:
    """What a whole file would do."""

    reading: ImportReading
    rows: list[Planned]
    names: Names
    duplicates: dict[int, dict[str, str]] = field(default_factory=dict)
    """Row → the stored game it looks like, where that waits for an answer."""
    notices: list[Notice] = field(default_factory=list)

    def counts(self) -> Counter[str]:
        """Rows by what they do."""
        return Counter(row.status for row in self.rows)

    @property
    def writes(self) -> list[Planned]:
        """The rows that store something."""
        return [row for row in self.rows if row.status in ("new", "corrected")]


def make(ctx: Context, pool: Pool, club: str, reading: ImportReading, answers: Mapping[str, str]) -> Plan:
    """Plan an import. Round trips grow with the file's games (100 a batch), never with the pool.

    Raises:
        Problem: 422 for answers that cannot be.
    """
    return _Planner(ctx, pool, club, reading, answers).plan()


class _Bad(Exception):
    """The row has errors, and they are noted."""


class _Planner:
    def __init__(self, ctx: Context, pool: Pool, club: str, reading: ImportReading, answers: Mapping[str, str]) -> None:
        self.ctx, self.pool, self.club, self.reading, self.answers = ctx, pool, club, reading, answers
        self.zone = calendar.zone(pool.time_zone)
        self.players = LAYOUTS[pool.system.name].players
        self.plan_ = Plan(reading, [], Names())
        self.stored: dict[str, Stored] = {}
        self.handles: dict[str, str] = {}
        """Server-made id → handle, of players of stored games."""
        self.names: dict[str, str] = {}
        """Server-made id → name as it is compared, of the same."""
        self.found: dict[Key, Item] = {}
        self.labels: dict[str, set[str]] = {}
        self.older: list[int] = []
        self.void: list[int] = []
        self.parted: list[int] = []

    def plan(self) -> Plan:
        rows = [self._begin(row) for row in self.reading.rows]
        self.plan_.rows = rows
        ready = [planned for planned in rows if planned.row.game is not None]
        self._read_games(ready)
        self._resolve_names(ready)
        ready = [planned for planned in ready if not planned.waiting]
        self._read_doors()
        for planned in ready:
            self._try(planned, self._check)
        self._look_for_duplicates([p for p in ready if p.status == "new"])
        self._notice()
        return self.plan_

    def _begin(self, row: Row) -> Planned:
        planned = Planned(row, errors=list(row.errors), waiting=list(row.waiting))
        if row.repeat_of is not None:
            planned.status, planned.repeated = "unchanged", True
        return planned

    def _try(self, planned: Planned, step: Callable[[Planned], None]) -> None:
        """A problem of one row is its own."""
        try:
            step(planned)
        except _Bad:
            planned.status = "bad"
        except Problem as problem:
            planned.status = "bad"
            planned.errors += [self.reading.error_at(planned.row, e.field, e.code, e.message) for e in problem.errors]
            if not problem.errors:
                planned.errors.append(CellError(problem.code, problem.detail, planned.row.number))

    # -- reading in bulk
    def _batch(self, wanted: Iterable[Key]) -> dict[Key, Item]:
        return read_many(self.ctx, wanted)

    def _read_games(self, ready: Sequence[Planned]) -> None:
        found = self._batch(keys.game(self.pool.id, self.club, p.game_id) for p in ready)
        for item in found.values():
            stored = games.from_item(item)
            self.stored[stored.game.game_id] = stored
        mentioned = self.pool.system.mentioned
        sids = {sid for stored in self.stored.values() for sid in mentioned(stored.game.content)}
        persons = people.persons(self.ctx.table, sorted(sids))
        self.handles = {sid: person.handle for sid, person in persons.items() if person.handle}
        self.names = {sid: match_key(person.name) for sid, person in persons.items() if person.name}

    def _resolve_names(self, ready: Sequence[Planned]) -> None:
        mentions = []
        for planned in ready:
            stored = self.stored.get(planned.game_id)
            known: dict[str, tuple[str, str]] = {}
            if stored is not None:
                known = self._known(stored)
            for column, text in zip(self.players, seats(planned.row.game or {}), strict=True):
                mentions.append(Mention(planned.row.number, column, text, known))
        everybody = self.club == "admin"
        names = resolve(self.ctx, self.club, mentions, self.answers, everybody=everybody)
        self.plan_.names = names
        asked = {number: key for key, entry in names.asked.items() for number in entry.rows}
        for planned in ready:
            if planned.row.number in asked:
                texts = seats(planned.row.game or {})
                planned.waiting += sorted(
                    {f"player:{match_key(t)}" for t in texts if names.handle(planned.row.number, t) is None}
                )
        self.found = handle_items(names.sids)

    def _known(self, stored: Stored) -> dict[str, tuple[str, str]]:
        """Ids and names of a stored game's players; a name that two of them bear says nothing."""
        sids = [sid for sid in self.pool.system.mentioned(stored.game.content) if sid in self.handles]
        borne = Counter(self.names.get(sid) for sid in sids)
        known = {
            self.names[sid]: (self.handles[sid], sid)
            for sid in sids
            if borne[self.names.get(sid)] == 1 and sid in self.names
        }
        return known | {self.handles[sid]: (self.handles[sid], sid) for sid in sids}

    def _read_doors(self) -> None:
        if eligibility.has_door(self.pool):
            self.found |= self._batch(keys.door(handle, self.pool.id) for handle in self.plan_.names.sids)

    # -- one row
    def _check(self, planned: Planned) -> None:
        game = self._with_handles(planned)
        draft = self._draft(planned, game)
        stored = self.stored.get(planned.game_id)
        if stored is not None:
            self._compare(planned, game, draft, stored)
            return
        checked = games.check(self.ctx, self.pool, self.club, draft, None, self.found)
        checked.game = msgspec.structs.replace(checked.game, game_id=planned.game_id)
        planned.door = eligibility.check(self.ctx, self.pool, checked.game, checked.handles, self.found)
        planned.checked, planned.status = checked, "new"
        planned.fingerprint = games.fingerprint_of(self.pool.system, checked.game)
        planned.distinct = bool(game.get("distinct"))

    def _with_handles(self, planned: Planned) -> dict[str, Any]:
        """The row's game with players' ids in place of what was typed, labels made ids."""
        game = dict(planned.row.game or {})
        number, names = planned.row.number, self.plan_.names

        def name(text: str) -> str:
            return names.handle(number, text) or text

        result = dict(game["result"])
        if "teams" in result:
            result["teams"] = [[name(text) for text in side] for side in result["teams"]]
        else:
            result["players"] = [name(text) for text in result["players"]]
            if result.get("winner"):  # where there are no teams, a player
                result["winner"] = name(result["winner"])
        game["result"] = result
        sitting = seats(game)
        for seat, handle in enumerate(sitting):
            if handle in sitting[:seat]:
                text = f"This is {handle}, who already sits at this table under another spelling."
                planned.errors.append(self._error(planned, self.players[seat], "player-twice", text))
        for label in ("group", "tournament"):
            if game.get(label):
                made = id_from(search_key(game[label]))
                if made is None:
                    planned.errors.append(self._error(planned, label, "id", ID_FORM))
                elif made != game[label].lower():
                    self.labels.setdefault(made, set()).add(game[label])
                game[label] = made
        if fold_id(planned.game_id) is None:
            planned.errors.append(self._error(planned, "game_id", "id", ID_FORM))
        note = game.get("note") or ""
        if len(note) > NOTE_LENGTH or not is_printable_text(note):
            text = f"A note has at most {NOTE_LENGTH} printable characters."
            planned.errors.append(self._error(planned, "note", "note", text))
        if planned.errors:
            raise _Bad
        return game

    def _error(self, planned: Planned, column: str, code: str, message: str) -> CellError:
        found = self.reading.error_at(planned.row, column, code, message)
        return found if found.column is not None else replace(found, column=column)

    def _draft(self, planned: Planned, game: Mapping[str, Any]) -> GameDraft:
        started = to_instant(dt.datetime.fromisoformat(game["started_at"]))
        given = frozenset(game) - {"distinct", "game_id"}
        return GameDraft(
            game_id=planned.game_id,
            started_at=started,
            finished_at=started,
            group=game.get("group"),
            tournament=game.get("tournament"),
            round=game.get("round"),
            note=game.get("note") or "",
            result=game["result"],
            distinct=bool(game.get("distinct")),
            given=given,
        )

    def _compare(self, planned: Planned, game: dict[str, Any], draft: GameDraft, stored: Stored) -> None:
        """A game of this id is stored: the row says the same, or corrects it."""
        planned.stored = stored
        if stored.game.void:
            self.void.append(planned.row.number)
            planned.status = "unchanged"
            return
        draft = self._keep_times(planned, draft, stored)
        system = self.pool.system
        told = system.translate(stored.game.content, lambda sid: self.handles.get(sid, sid))
        result = system.as_submitted(told)
        before = self._cells(stored, result)
        said = dict(game_cells({**game, "started_at": iso(draft.started_at or 0)}, system.name, self.zone) or {})
        if before and all(_same(column, said, before) for column in self._result_columns()):
            draft = replace(draft, result=None, given=draft.given - {"result"})
        elif stored.game.finished_at is not None and seats({"result": result}) == seats(game):
            kept = {name: value for name, value in result.items() if name not in _SAID_BY_CSV}
            draft = replace(draft, result={**kept, **game["result"]})
        whole = games.merged(self.pool, stored, draft, self.handles)
        live: Content | None = told if stored.game.finished_at is None else None
        checked = games.check(self.ctx, self.pool, self.club, whole, live, self._found_with(stored))
        changed = msgspec.structs.replace(
            checked.game, game_id=planned.game_id, revision=stored.game.revision + 1, void=False
        )
        checked.game = changed
        digest = games.digest_of(self.pool.system, changed, checked.note)
        if games.says_the_same(self.pool.system, stored, digest):
            planned.status = "unchanged"
        elif digest in {revision.digest for revision in stored.revisions}:
            self.older.append(planned.row.number)
            planned.status = "unchanged"
        else:
            games.revision_time(self.ctx, stored)
            planned.status, planned.checked, planned.before = "corrected", checked, before
            now = system.as_submitted(system.translate(changed.content, self._handle_of(checked)))
            planned.after = self._cells(replace(stored, game=changed, note=checked.note), now)

    def _handle_of(self, checked: Checked) -> Callable[[str], str]:
        handles = {sid: handle for handle, sid in checked.handles.items()}
        return lambda sid: handles.get(sid, self.handles.get(sid, sid))

    def _found_with(self, stored: Stored) -> dict[Key, Item]:
        """What was read ahead, and the players of a stored game whom the row leaves out (substitutes)."""
        sids = self.pool.system.mentioned(stored.game.content)
        return {**self.found, **handle_items({self.handles[sid]: sid for sid in sids if sid in self.handles})}

    def _keep_times(self, planned: Planned, draft: GameDraft, stored: Stored) -> GameDraft:
        """Rows know one time at most: a start that is not changed keeps the stored finish; a day keeps the hour."""
        start, day = stored.game.started_at, to_datetime(draft.started_at or 0).astimezone(self.zone).date()
        stored_day = to_datetime(start).astimezone(self.zone).date()
        same = draft.started_at == start or (day == stored_day and not self._says_a_time(planned.row))
        if not same:
            return draft
        finished = stored.game.finished_at
        times = {"started_at"} if finished is None else {"started_at", "finished_at"}
        return replace(
            draft,
            started_at=start,
            finished_at=finished if finished is not None else max(start, draft.finished_at or start),
            given=draft.given - times,
        )

    def _says_a_time(self, row: Row) -> bool:
        cells = self.reading.table.rows[row.index].cells
        columns = (self.reading.columns.get(name) for name in ("started", "date", "time"))
        return any(":" in cells[index] or "T" in cells[index] for index in columns if index is not None
                   and index < len(cells))  # fmt: skip

    def _result_columns(self) -> list[str]:
        return [c for c in self.reading.columns if c in self.players or c[:6] in ("winner", "strich", "points")]

    def _cells(self, stored: Stored, result: Content) -> dict[str, str]:
        return cells_of(self.pool, stored, result, self.zone) or {}

    # -- games that look like another
    def _look_for_duplicates(self, new: Sequence[Planned]) -> None:
        """A game of the same content under another id is asked about; within one file ids tell games apart."""
        owners = self._batch(keys.fingerprint(self.pool.id, p.fingerprint) for p in new)
        seen: dict[str, int] = {}
        for planned in new:
            number = planned.row.number
            first = seen.setdefault(planned.fingerprint, number)
            if first != number:
                if not planned.distinct:
                    self.parted.append(number)
                planned.distinct, planned.fingerprint = True, ""
                continue
            owner = owners.get(keys.fingerprint(self.pool.id, planned.fingerprint))
            if owner is None:
                continue
            answer = self.answers.get(f"{DUPLICATE}:{number}", self.answers.get(DUPLICATE))
            if planned.distinct or answer == DISTINCT:
                planned.distinct, planned.fingerprint = True, ""
            elif answer == SKIP:
                planned.status = "skipped"
            else:
                planned.status = "bad"
                planned.waiting.append(f"{DUPLICATE}:{number}")
                self.plan_.duplicates[number] = {"club": owner["club"], "game_id": owner["game_id"]}

    def _notice(self) -> None:
        told = self.plan_.notices
        told += self.reading.notices
        if self.reading.ignored_columns:
            named = ", ".join(f'"{text[:40]}"' for text in self.reading.ignored_columns[:10])
            told.append(Notice("ignored-columns", f"Columns that were not read: {named}.", len(self.reading.ignored_columns)))  # fmt: skip  # noqa: E501
        for made, typed in sorted(self.labels.items()):
            shown = ", ".join(f'"{text}"' for text in sorted(typed))
            told.append(Notice("label-id", f"{shown} is kept under the id {made}.", len(typed)))
        for code, rows, what in (
            ("older-revision", self.older, "say what was corrected since; the correction stays"),
            ("void", self.void, "are games that were taken back; they stay so"),
            ("same-content", self.parted, "have the content of an earlier row and another id; taken as other games"),
        ):
            if rows:
                shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
                told.append(Notice(code, f"Rows {shown} {what}.", len(rows)))


def _same(column: str, said: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Whether a row says of a column what is stored; an empty winner beside a score says nothing."""
    if column == "winner" and not said.get(column):
        return True
    return said.get(column, "") == before.get(column, "")


def seats(game: Mapping[str, Any]) -> list[str]:
    """The players of a game as it is sent, in seat order."""
    result = game.get("result") or {}
    sides = result.get("teams")
    return [p for side in sides for p in side] if sides else list(result.get("players", ()))


def read_many(ctx: Context, wanted: Iterable[Key]) -> dict[Key, Item]:
    """Items by key, any number; large reads go side by side."""
    todo = list(dict.fromkeys(wanted))
    parts = [todo[n : n + BATCH_GET_ITEMS] for n in range(0, len(todo), BATCH_GET_ITEMS)]
    found: dict[Key, Item] = {}
    if len(parts) <= SIDE_BY_SIDE:
        for part in parts:
            found |= ctx.table.batch_get(part)
        return found
    with ThreadPoolExecutor(READERS) as readers:
        for items in readers.map(ctx.table.batch_get, parts):
            found |= items
    return found


# -- writing -------------------------------------------------------------------------------------------------------
def write_of(ctx: Context, pool: Pool, club: str, planned: Planned, reason: str) -> Write:
    """The writes of a row that is new or corrects."""
    checked = planned.checked
    if checked is None:  # pragma: no cover - only rows that passed all checks get here
        raise ValueError("this row stores nothing")
    if planned.stored is None:
        write = games.first_revision(ctx, pool, club, checked, planned.fingerprint, planned.door)
        return _unguarded(pool, write) if planned.distinct and not planned.fingerprint else write
    return games.next_revision(
        ctx, pool, planned.stored, checked.game, _what(planned.stored), by=club, reason=reason, checked=checked
    )


def _what(stored: Stored) -> Literal["finished", "corrected"]:
    return "finished" if stored.game.finished_at is None else "corrected"


def _unguarded(pool: Pool, write: Write) -> Write:
    """Another game has the guard of this content, and keeps it."""
    if write.guard is not None:
        write.operations.remove(write.guard)
    write.stored.fingerprint = ""
    return Write(write.stored, [games.put_game(pool.id, write.stored), *write.operations[1:]], None)


def events(ctx: Context, plan: Plan) -> list[Event]:
    """What the plan would put into the ledger, for a preview."""
    found = []
    for planned in plan.writes:
        if planned.checked is not None:
            stored = planned.stored
            touches = None if stored is None else min(stored.earliest, planned.checked.game.started_at)
            what: Literal["finished", "corrected"] = "finished" if stored is None else _what(stored)
            found.append(games.event_of(ctx, planned.checked.game, what, ctx.clock(), touches))
    return found
