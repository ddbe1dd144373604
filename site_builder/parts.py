"""A publication shared by several runs of the publisher. See docs/decisions/0032-publishing-side-by-side.md.

The run that has the pool's lease *leads*. A stage with very many tasks it cuts into parts, asks the publish queue for
helpers, and then takes part after part itself, as the helpers do: off a counter beside the lease. When none is left it
waits for those that others took, and does again what a helper that died left undone. So no help is needed for a stage
to end, and help that comes late finds nothing to do.

Whoever takes a part renews the lease, and writes for a shorter time than that holds: no other run can begin while
anybody of this one may still write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from shared.ratings.base import MICROSECONDS
from shared.store import keys, pools
from shared.store.pools import Pool
from shared.store.rated import Cursor
from shared.store.table import ConditionFailed, Update
from shared.usecases.context import Context
from shared.usecases.published import PublishedList
from site_builder import garbage, views
from site_builder.gather import GameRef, Gatherer
from site_builder.stages import MOVED, Stages, Task, pool_view
from site_builder.uploads import Uploads

LEASE = 180 * MICROSECONDS
"""A run that has not renewed its lease for so long is dead; another may begin."""
PART = 120 * MICROSECONDS
"""Who took a part writes for at most so long afterwards."""
MARGIN = 30 * MICROSECONDS
"""Clocks may differ, and an upload that has begun may be tried three times."""
OBJECTS = 1_000
"""About so many objects make a part: a few seconds' work, beside which reading the plan is little."""
POLL_SECONDS = 0.2
pause: Callable[[float], None] = time.sleep


class Overtaken(Exception):
    """Another run publishes this pool, or the pool moved while it was read."""


class Plan(msgspec.Struct):
    """What helpers are told of a run."""

    cursor: Cursor
    new: PublishedList
    month: str | None
    bare: bool
    """Nothing of the pool stood there when the run began: no object need be asked for."""
    after_crash: bool
    """A run before this one wrote pages and broke off."""


class Result(msgspec.Struct):
    """What came of a part."""

    built: int
    written: int
    bytes: int
    missing: list[GameRef]
    """Games that do not exist."""
    loose: dict[str, list[str]]
    """As ``PublishedList.loose``, of the part's pages."""
    played_in: list[str]


_plan = msgspec.json.Decoder(Plan)
_tasks = msgspec.json.Decoder(list[Task])
_result = msgspec.json.Decoder(Result)
_encode = msgspec.json.Encoder().encode


def _key(pool: str, run: int, name: str) -> str:
    """Where a run keeps what it tells its helpers and they tell it, in the data bucket; gone after a day."""
    return f"parts/{pool}/{run:08d}/{name}"


def renew(ctx: Context, pool: str, run: int) -> None:
    """Go on having the lease. Raises Overtaken when another run has it."""
    try:
        ctx.table.write(
            Update(
                keys.published(pool),
                "SET #leased = :until, #began = :run",
                {"until": ctx.clock() + LEASE, "run": run},
                "#run = :run",
            )
        )
    except ConditionFailed:
        raise Overtaken(pool) from None


def cut(tasks: Sequence[Task], objects_each: int) -> list[Sequence[Task]]:
    """Tasks in parts of about ``OBJECTS`` objects."""
    size = max(1, OBJECTS // objects_each)
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def build(stages: Stages, uploads: Uploads, stage: str, tasks: Sequence[Task], *, after_crash: bool) -> list[GameRef]:
    """Build and send the pages of tasks; the games among them that do not exist.

    Pages of lists say which publication they are of, so they cannot stand there already unless a run broke off.

    Raises:
        RuntimeError: something was not built that should have been, or the other way round.
    """
    begun, stages.missing = len(uploads.kept), []
    if stage == "labels":
        stages.members_of({label for label, *_ in tasks})  # together
        for task in tasks:
            for page in stages.build(stage, [task]):
                uploads.put(page, changed=task[-1] == MOVED)
    else:
        for page in stages.build(stage, tasks):
            uploads.put(page, changed=stage == "lists" and not after_crash)
    gone = dict.fromkeys(stages.missing)
    wanted = set(stages.keys(stage, [task for task in tasks if task not in gone]))
    if len(uploads.kept) - begun != len(wanted) or not wanted <= uploads.kept:
        raise RuntimeError(f"{stage}: {len(wanted)} pages were to be built, {len(uploads.kept) - begun} were")
    return list(gone)


class Lead:
    """The run that has the lease, with help."""

    def __init__(self, ctx: Context, run: int, stages: Stages, uploads: Uploads, plan: Plan) -> None:
        self.ctx, self.run, self.stages, self.uploads, self.plan = ctx, run, stages, uploads, plan
        self.pool = stages.pool.id
        self.asked = False
        """Whether there may be helpers."""
        self.helped = 0
        """Parts that helpers did."""

    def share(self, stage: str, parts: Sequence[Sequence[Task]]) -> list[GameRef]:
        """All parts of a stage, with whoever helps; the games that do not exist. Waits until every page is there."""
        self._announce(stage, parts)
        missing, mine = [], set()
        while (taken := _take(self.ctx, self.pool, self.run, stage)) is not None:
            mine.add(taken.number)
            missing += self.build(stage, parts[taken.number])
            garbage.sweep()
        self.uploads.all_sent()
        until = self.ctx.clock() + PART + MARGIN
        for number in sorted(set(range(len(parts))) - mine):
            result = self._wait(f"{stage}-{number}", until)
            if result is None:
                missing += self.build(stage, parts[number])
            else:
                missing += self._accept(stage, parts[number], result)
        self.uploads.all_sent()
        return missing

    def build(self, stage: str, tasks: Sequence[Task]) -> list[GameRef]:
        """A part, by this run itself."""
        return build(self.stages, self.uploads, stage, tasks, after_crash=self.plan.after_crash)

    def _announce(self, stage: str, parts: Sequence[Sequence[Task]]) -> None:
        entries = {f"{stage}-{number}-tasks": _encode(part) for number, part in enumerate(parts)}
        if not self.asked:
            entries["plan"] = _encode(self.plan)
            self.asked = True
        self._keep(entries.items())
        values = {"stage": stage, "parts": len(parts), "zero": 0, "until": self.ctx.clock() + LEASE, "run": self.run}
        change = "SET #stage = :stage, #parts = :parts, #taken = :zero, #leased = :until, #began = :run"
        try:
            self.ctx.table.write(Update(keys.published(self.pool), change, values, "#run = :run"))
        except ConditionFailed:
            raise Overtaken(self.pool) from None
        for _ in range(min(self.ctx.helpers, len(parts) - 1)):
            self.ctx.ask_for_help(self.pool, self.run, stage)

    def _keep(self, entries: Iterable[tuple[str, bytes]]) -> None:
        def put(entry: tuple[str, bytes]) -> None:
            self.ctx.data.put(_key(self.pool, self.run, entry[0]), entry[1], "application/json")

        with ThreadPoolExecutor(self.ctx.uploads_at_once) as threads:
            list(threads.map(put, entries))

    def _wait(self, name: str, until: int) -> Result | None:
        """The result of a part that somebody else took; None when it has not come by then."""
        renewed = 0
        while (body := self.ctx.data.get(_key(self.pool, self.run, name))) is None:
            now = self.ctx.clock()
            if now > until:
                return None
            if now - renewed > LEASE // 6:
                renew(self.ctx, self.pool, self.run)
                renewed = now
            pause(POLL_SECONDS)
        return _result.decode(body)

    def _accept(self, stage: str, tasks: Sequence[Task], result: Result) -> list[GameRef]:
        gone = set(result.missing)
        there = [task for task in tasks if task not in gone]
        self.uploads.kept |= set(self.stages.keys(stage, there))
        self.uploads.built += result.built
        self.uploads.written += result.written
        self.uploads.bytes += result.bytes
        gather = self.stages.gather
        for task in tasks:
            gather.loose.pop(self.stages.page_id(stage, task) or "", None)
        gather.loose.update(result.loose)
        gather.played_in |= set(result.played_in)
        self.helped += 1
        return result.missing


class _Taken(NamedTuple):
    number: int
    until: int
    """Until when whoever took the part may write."""


def _take(ctx: Context, pool: str, run: int, stage: str) -> _Taken | None:
    """The next part that nobody has taken; None when there is none, or the stage or the run is over."""
    item = ctx.table.get(*keys.published(pool)) or {}
    while item.get("run") == run and item.get("stage") == stage and item["taken"] < item["parts"]:
        number, now = int(item["taken"]), ctx.clock()
        values = {"run": run, "stage": stage, "was": number, "now": number + 1, "until": now + LEASE}
        try:
            ctx.table.write(
                Update(
                    keys.published(pool),
                    "SET #taken = :now, #leased = :until",
                    values,
                    "#run = :run AND #stage = :stage AND #taken = :was",
                )
            )
        except ConditionFailed as refused:
            item = refused.items.get(0) or {}
        else:
            return _Taken(number, now + PART)
    return None


def help_out(ctx: Context, pool_id: str, run: int, stage: str) -> Uploads | None:
    """Do parts of another run's stage until none is left; what was sent, or None when there was nothing to do.

    Raises:
        Overtaken: the run is over, or this took too long: the lead does the part again.
    """
    taken = _take(ctx, pool_id, run, stage)
    newest = pools.load(ctx.table, pool_id)
    body = ctx.data.get(_key(pool_id, run, "plan")) if taken is not None else None
    if taken is None or newest is None or body is None:
        return None
    with garbage.held_off():
        helper = _Helper(ctx, newest, run, _plan.decode(body))
        try:
            while taken is not None:
                helper.do(stage, taken)
                taken = _take(ctx, pool_id, run, stage)
        finally:
            helper.uploads.close()
    return helper.uploads


class _Helper:
    """Another run's stages, and a clock that runs out."""

    def __init__(self, ctx: Context, newest: Pool, run: int, plan: Plan) -> None:
        self.ctx, self.run = ctx, run
        self.pool = pools.as_rated(ctx.table, newest, plan.cursor.rules_version)
        self.view = pool_view(self.pool, plan.new, plan.cursor)
        self.gather = Gatherer(ctx, self.pool, plan.cursor)
        self.gather.remembered = {row.sid: row for row in plan.new.rows}
        self.gather.listed = self.gather.remembered.keys()
        self.gather.labels = set(plan.new.members)
        site = views.SiteView(ctx.site_origin, ctx.api_origin or ctx.site_origin)
        self.stages = Stages(ctx, self.pool, site, self.view, self.gather, plan.new, self.gather.remembered, plan.month)
        self.uploads = Uploads(ctx, self._still_ours)
        self.uploads.present = {} if plan.bare else None
        self._until = 0
        self._after_crash = plan.after_crash

    def _still_ours(self) -> None:
        item = self.ctx.table.get(*keys.published(self.pool.id)) or {}
        if item.get("run") != self.run or self.ctx.clock() > self._until:
            raise Overtaken(self.pool.id)

    def do(self, stage: str, taken: _Taken) -> None:
        """A part that was just taken."""
        self._until = taken.until
        body = self.ctx.data.get(_key(self.pool.id, self.run, f"{stage}-{taken.number}-tasks"))
        if body is None:
            raise Overtaken(self.pool.id)
        before = (self.uploads.built, self.uploads.written, self.uploads.bytes)
        self.gather.loose, self.gather.played_in = {}, set()
        missing = build(self.stages, self.uploads, stage, _tasks.decode(body), after_crash=self._after_crash)
        self.uploads.all_sent()
        built, written, size = self.uploads.built, self.uploads.written, self.uploads.bytes
        result = Result(
            built - before[0],
            written - before[1],
            size - before[2],
            missing,
            self.gather.loose,
            sorted(self.gather.played_in),
        )
        garbage.sweep()
        self._still_ours()
        key = _key(self.pool.id, self.run, f"{stage}-{taken.number}")
        self.ctx.data.put(key, _encode(result), "application/json")
