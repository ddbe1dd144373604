"""Imports as jobs: larger files, and strict ones that one transaction cannot hold. Each game exactly once, resumable.

A job is an item and a file in the data bucket. Whoever runs it takes the club's lock, makes the plan, writes the
report down and marks the job as planned: from then on it can only be completed. Rows are stored in transactions that
also count them and keep the lock; a run that breaks off leaves rows that the next one finds unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, cast

import orjson

from shared.characters import is_printable
from shared.imports import MAX_BYTES, CellError, Forfeits, ImportFileError
from shared.problems import BadField, Problem, forbidden, invalid, not_found
from shared.ratings.base import MICROSECONDS
from shared.store import imports, pools
from shared.store.imports import ImportJob
from shared.store.pools import Pool
from shared.store.table import TRANSACTION_ITEMS, Busy, ConditionFailed, Operation
from shared.usecases import import_plan, importing, previews
from shared.usecases.context import Context
from shared.usecases.drafts import Answer
from shared.usecases.import_plan import Plan, Planned
from shared.usecases.importing import Moved, Options

ID_LENGTH = 20
HOLDER_LENGTH = 12
LOCKED = 90 * MICROSECONDS
"""The lock of a run that was not heard of for so long is free again."""
OWN_OPERATIONS = 2
"""Of a job's transactions: the count of rows, and the lock."""
UPLOAD_WITHIN = 3600
"""Seconds in which an upload must begin."""
DOWNLOAD_WITHIN = 900
ROWS_TYPE = "text/csv; charset=utf-8"


class Locked(Exception):
    """Another import of this club into this pool runs just now."""


# -- within a request ----------------------------------------------------------------------------------------------
def take(ctx: Context, pool: Pool, club: str, data: bytes, options: Options, preview_token: str | None) -> Answer:
    """Import a file: 200 with the report, or 202 with the import that will have it.

    Raises:
        Problem: 413, 422 (the file as a whole), 409 (``import-running``, ``pool-moved``).
    """
    reading = importing.read(pool, data, options)
    if len(reading.rows) > importing.REQUEST_ROWS:
        job = _new_job(ctx, pool, club, options)
        ctx.table.write(imports.create(job))
        ctx.data.put(job.upload_key, data, "application/octet-stream")
        return _accepted(job)
    for _ in range(importing.ATTEMPTS):
        plan = import_plan.make(ctx, pool, club, reading, options.answers)
        told = importing.report(ctx, pool, plan, options)
        if told["status"] == "preview":
            return Answer(200, {**told, **importing.effects(ctx, pool, plan)})
        if told["status"] == "refused" or not (plan.writes or plan.names.registrations):
            return _answered(ctx, pool, club, told)
        guard = previews.guard(ctx, pool, preview_token) if preview_token is not None else None
        found = list(importing.units(ctx, pool, club, plan, options))
        try:
            if importing.fits(found):
                importing.store_at_once(ctx, found, guard)
                return _answered(ctx, pool, club, told)
            if options.mode == "strict":
                return _take_all(ctx, pool, club, data, options, guard)
            _take_good(ctx, found, guard)
        except Moved:
            continue
        return _answered(ctx, pool, club, importing.report(ctx, pool, plan, options))
    raise Busy("import")


def _answered(ctx: Context, pool: Pool, club: str, told: dict[str, Any]) -> Answer:
    importing.note(ctx, pool.id, club, told)
    return Answer(200, told)


def _take_good(ctx: Context, found: Sequence[importing.Unit], guard: Operation | None) -> None:
    """Lenient: transaction by transaction. Broken off, the same file sent again does the rest."""
    more = [guard] if guard is not None else []
    for chunk in importing.chunks(found, TRANSACTION_ITEMS - 1):
        try:
            importing.store_chunk(ctx, chunk, lambda _: tuple(more))
        except ConditionFailed as failure:
            raise previews.moved() from failure
        more.clear()  # the pool has now moved by our own doing


def _take_all(ctx: Context, pool: Pool, club: str, data: bytes, options: Options, guard: Operation | None) -> Answer:
    """Strict and more than a transaction: written down as a job first, and done at once."""
    job = _new_job(ctx, pool, club, options)
    try:
        with _lock(ctx, job) as holder:
            ctx.table.transact([imports.create(job), *([guard] if guard is not None else [])])
            ctx.data.put(job.upload_key, data, "application/octet-stream")
            work(ctx, job, holder)
    except Locked:
        detail = "Another file of this club is being imported into this pool; please wait until it is done."
        raise Problem(409, "import-running", detail, retry_after=5) from None
    except ConditionFailed as failure:
        raise previews.moved() from failure
    except Busy:
        return _accepted(job)  # it is written down: the importer goes on with it
    report = read(ctx, job.id, club, admin=False).get("report")
    return Answer(200, {**report, "import_id": job.id}) if report is not None else _accepted(job)


def _accepted(job: ImportJob) -> Answer:
    return Answer(202, {"import_id": job.id, "status": job.status}, {"Location": f"/v1/imports/{job.id}"})


def _new_job(ctx: Context, pool: Pool, club: str, options: Options) -> ImportJob:
    return ImportJob(
        id=ctx.token(ID_LENGTH),
        club=club,
        pool=pool.id,
        mode=options.mode,
        preview=options.preview,
        filename=options.filename,
        created_at=ctx.clock(),
        options={"forfeits": options.forfeits, **({"sheet": options.sheet} if options.sheet else {})},
        answers=options.answers,
    )


# -- uploads -------------------------------------------------------------------------------------------------------
def upload(ctx: Context, pool: Pool, club: str, size: int, options: Options) -> Answer:
    """Where to send a larger file: 201 with a form that only takes this file, once begun within the hour.

    Raises:
        Problem: 413 above 12 MB; 422 ``no-imports``.
    """
    importing.require_columns(pool)
    if size > MAX_BYTES:
        detail = f"The file has {size:,} bytes; at most {MAX_BYTES:,} can be read."
        wrong = [BadField("bytes", "too-large-bytes", detail)]
        raise Problem(413, "too-large-bytes", detail, wrong, {"limit": MAX_BYTES})
    job = _new_job(ctx, pool, club, options)
    ctx.table.write(imports.create(job))
    form = ctx.data.upload_form(job.upload_key, MAX_BYTES, UPLOAD_WITHIN)
    return Answer(201, {"import_id": job.id, **form}, {"Location": f"/v1/imports/{job.id}"})


def read(ctx: Context, import_id: str, club: str, *, admin: bool) -> dict[str, Any]:
    """How far an import is, with its report when it is over. Raises 404; 403 for another club's."""
    job = imports.load(ctx.table, import_id)
    if job is None:
        raise not_found("import")
    if not admin and job.club != club:
        raise forbidden("This import belongs to another club.")
    told: dict[str, Any] = {
        "import_id": job.id,
        "club": job.club,
        "pool": job.pool,
        "filename": job.filename,
        "mode": job.mode,
        "preview": job.preview,
        "status": job.status,
        "rows": job.rows,
        "done": job.done,
    }
    if job.status in ("done", "failed"):
        raw = ctx.data.get(job.report_key)
        if raw is not None:
            told["report"] = report = orjson.loads(raw)
            if report.get("bad_rows_apart"):
                told["bad_rows_url"] = ctx.data.download_url(job.bad_rows_key, DOWNLOAD_WITHIN)
    return told


# -- running -------------------------------------------------------------------------------------------------------
@contextmanager
def _lock(ctx: Context, job: ImportJob) -> Iterator[str]:
    """Hold the club's lock. Raises Locked."""
    holder, now = ctx.token(HOLDER_LENGTH), ctx.clock()
    try:
        ctx.table.write(imports.lock(job.pool, job.club, holder, now, now + LOCKED))
    except ConditionFailed:
        raise Locked from None
    try:
        yield holder
    finally:
        with suppress(ConditionFailed, Busy):  # lost, or it ends by itself
            ctx.table.write(imports.unlock(job.pool, job.club, holder))


def run(ctx: Context, import_id: str) -> str:
    """Run an import whose file has arrived, or go on with one that broke off.

    Returns:
        its status.

    Raises:
        Locked: another import of the club runs; try again later.
    """
    job = imports.load(ctx.table, import_id)
    if job is None:
        return "unknown"
    if job.status in ("done", "failed"):
        return job.status
    with _lock(ctx, job) as holder:
        again = imports.load(ctx.table, import_id)
        return work(ctx, again, holder) if again is not None else "unknown"


def work(ctx: Context, job: ImportJob, holder: str) -> str:
    """Do what is left of an import; the caller holds the lock."""
    pool, data = pools.load(ctx.table, job.pool), ctx.data.get(job.upload_key)
    if pool is None or data is None:
        return _end(ctx, job, _refusal(job, [CellError("no-file", "The file did not arrive.")]))
    ctx.table.write(imports.begun(job))
    options = _options(job)
    try:
        reading = importing.reading_of(pool, importing.table_of(data, options), options)
        _keep_lock(ctx, job, holder)
        plan = import_plan.make(ctx, pool, job.club, reading, options.answers)
    except ImportFileError as error:
        return _end(ctx, job, _refusal(job, error.errors, error.sheets))
    except Problem as problem:
        errors = [CellError(e.code, e.message) for e in problem.errors]
        return _end(
            ctx, job, _without(_report(ctx, job), errors, job.rows - job.done) if job.planned else _refusal(job, errors)
        )
    if not job.planned:
        told = importing.report(ctx, pool, plan, options)
        if job.preview:
            _keep_lock(ctx, job, holder)
            told |= importing.effects(ctx, pool, plan)
        if told["status"] != "done":
            return _end(ctx, job, told)
        _save(ctx, job, told)
        ctx.table.write(imports.planned(job, told["rows"], told["rows"] - len(plan.writes)))
    refused = set() if job.mode == "strict" else {planned.row.index for planned in plan.rows if planned.status == "bad"}
    plan, lost = _complete(ctx, pool, job, holder, plan, options)
    told = _report(ctx, job)
    now = imports.load(ctx.table, job.id)
    if lost and now is not None and now.done < now.rows:
        errors = [error for planned in lost for error in planned.errors]
        told = _without(told, errors, min(len(lost), now.rows - now.done))
        refused |= {planned.row.index for planned in lost}
        told["bad_rows_csv"] = importing.bad_rows(
            plan, [planned for planned in plan.rows if planned.row.index in refused]
        )
    return _end(ctx, job, told)


def _complete(
    ctx: Context, pool: Pool, job: ImportJob, holder: str, plan: Plan, options: Options
) -> tuple[Plan, list[Planned]]:
    """Store what is left of an import that is decided.

    A row whose game somebody changed since the plan is planned again over what is there now, so that all comes out as
    if the file had been sent just after that change.

    Returns:
        the last plan, and those of its rows that even so cannot be taken any more.

    Raises:
        Busy: it could not be brought to its end now; what was stored stands.
    """
    lost: set[int] = set()
    stored = False
    if job.planned and job.mode == "strict":  # nothing was bad when it was decided
        lost = {planned.row.index for planned in plan.rows if planned.status == "bad"}
    for attempt in range(importing.ATTEMPTS):
        if attempt:
            _keep_lock(ctx, job, holder)
            plan = import_plan.make(ctx, pool, job.club, plan.reading, options.answers)
        writes = plan.writes
        try:
            _store(ctx, pool, job, holder, plan, options)
        except Moved:
            stored = False
            continue
        stored = True
        changed = {planned.row.index for planned in writes if planned.status == "bad"}
        lost |= changed
        if not changed:
            break
    if not stored:  # each time one of the new players was registered in between
        raise Busy("import")
    return plan, [p for p in plan.rows if p.status == "bad" and p.row.index in lost]


def _options(job: ImportJob) -> Options:
    return Options(
        mode=job.mode,
        preview=job.preview,
        filename=job.filename,
        answers=job.answers,
        sheet=job.options.get("sheet"),
        forfeits=cast("Forfeits", job.options.get("forfeits", "skip")),
    )


def _keep_lock(ctx: Context, job: ImportJob, holder: str) -> None:
    try:
        ctx.table.write(imports.keep_lock(job.pool, job.club, holder, ctx.clock() + LOCKED))
    except ConditionFailed:
        raise Locked from None


def _store(ctx: Context, pool: Pool, job: ImportJob, holder: str, plan: Plan, options: Options) -> None:
    """Store the plan's rows. Raises Locked when somebody took the lock: he goes on."""

    def own(rows: int) -> Sequence[Operation]:
        kept = imports.keep_lock(job.pool, job.club, holder, ctx.clock() + LOCKED)
        return [kept, imports.progressed(job.id, rows)]

    found = importing.units(ctx, pool, job.club, plan, options)
    for chunk in importing.chunks(found, TRANSACTION_ITEMS - OWN_OPERATIONS):
        try:
            importing.store_chunk(ctx, chunk, own)
        except ConditionFailed:
            raise Locked from None


def _report(ctx: Context, job: ImportJob) -> dict[str, Any]:
    """What was written down when the import was decided."""
    told: dict[str, Any] = orjson.loads(ctx.data.get(job.report_key) or b"{}")
    return told


def _without(told: dict[str, Any], errors: Sequence[CellError], rows: int) -> dict[str, Any]:
    """The report, less so many rows that could not be stored any more."""
    new = max(0, told["new"] - rows)
    return {
        **told,
        "errors": [*told["errors"], *map(dataclasses.asdict, errors)][: importing.MOST_ERRORS],
        "error_count": told["error_count"] + len(errors),
        "bad": told["bad"] + rows,
        "good": told["good"] - rows,
        "new": new,
        "corrected": told["corrected"] - (rows - told["new"] + new),
    }


def _refusal(job: ImportJob, errors: Sequence[CellError], sheets: Sequence[str] = ()) -> dict[str, Any]:
    """The report of a file that could not be read."""
    counts = dict.fromkeys(("rows", "new", "corrected", "unchanged", "skipped", "bad", "good", "repeated"), 0)
    return {
        "status": "refused",
        "mode": job.mode,
        "filename": job.filename,
        **counts,
        "errors": [dataclasses.asdict(error) for error in errors],
        "error_count": len(errors),
        "questions": [],
        "corrections": [],
        "registered": [],
        "notices": [],
        "ignored_columns": [],
        "date_order": None,
        "sheet": None,
        "sheets": list(sheets),
        "bad_rows_csv": None,
    }


def _save(ctx: Context, job: ImportJob, told: Mapping[str, Any]) -> None:
    told = dict(told)
    text = told.get("bad_rows_csv") or ""
    if len(text) > importing.INLINE_CSV:
        ctx.data.put(job.bad_rows_key, text.encode(), ROWS_TYPE)
        told |= {"bad_rows_csv": None, "bad_rows_apart": True}
    ctx.data.put(job.report_key, orjson.dumps(told), "application/json")


def _end(ctx: Context, job: ImportJob, told: Mapping[str, Any]) -> Literal["done", "failed"]:
    """Write the report down, then say that it is over."""
    status: Literal["done", "failed"] = "failed" if told["status"] == "refused" else "done"
    _save(ctx, job, told)
    if not job.preview:
        importing.note(ctx, job.pool, job.club, told, job.id)
    ctx.table.write(imports.ended(job, status, told["rows"]))
    return status


def options_from(query: Callable[[str], str | None], answers: Mapping[str, str], *, preview: bool) -> Options:
    """Options as a request gives them.

    Args:
        query: a parameter by its name.

    Raises:
        Problem: 422 naming the parameter.
    """
    wrong: list[BadField] = []
    mode, forfeits = query("mode") or "strict", query("forfeits") or "skip"
    if mode not in importing.MODES:
        wrong.append(BadField("mode", "mode", "`mode` is `strict` or `lenient`."))
    if forfeits not in ("skip", "count"):
        wrong.append(BadField("forfeits", "forfeits", "`forfeits` is `skip` or `count`."))
    filename = query("filename") or ""
    if not is_printable(filename):
        wrong.append(BadField("filename", "not-printable", "A file name has only printable characters."))
    if wrong:
        raise invalid(wrong)
    return Options(
        mode=cast("importing.Mode", mode),
        preview=preview,
        filename=filename,
        answers=answers,
        sheet=query("sheet"),
        forfeits=cast("Forfeits", forfeits),
    )
