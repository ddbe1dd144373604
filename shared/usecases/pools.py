"""Pools: defining them, changing their rules, reading them. A change of rules is an event of the pool's ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from shared.fields import bad_fields
from shared.ledger.calendar import first_instant
from shared.ledger.events import Event, event_id
from shared.ledger.rules import DatedRules
from shared.problems import BadField, Problem, invalid, not_found
from shared.ratings import rule_system
from shared.ratings.base import Settings
from shared.store import keys, ledger, pools, rated
from shared.store.pools import Pool
from shared.store.table import ABSENT, TRANSACTION_ITEMS, Busy, ConditionFailed, Item, Key, Operation, Put
from shared.usecases import merging
from shared.usecases.context import Context

ATTEMPTS = 3
RULES_BYTES = 32_000
"""Of all dated rules together: with the names of 1,000 clubs beside them, the pool's item stays below 100 KB."""
TOKEN = 12


@dataclass(frozen=True)
class PoolDraft:
    """A pool as an admin sent it, every field checked."""

    name: str
    system: str
    time_zone: str
    languages: tuple[str, ...]
    clubs: tuple[str, ...] | None
    rules: tuple[Mapping[str, Any], ...]
    """``{"from": "2016-04-10", ...settings}``, checked by ``check_rules``."""


def check_rules(system: str, rules: Sequence[Mapping[str, Any]]) -> list[BadField]:
    """What is wrong with the settings and dates of dated rules; paths like ``rules[0].k``."""
    model = rule_system(system).settings_model
    wrong: list[BadField] = []
    seen: dict[str, int] = {}
    first: Settings | None = None
    for number, entry in enumerate(rules):
        settings = {k: v for k, v in entry.items() if k != "from"}
        try:
            parsed = _parse(model, settings)
        except ValidationError as error:
            wrong += bad_fields(error, settings, f"rules[{number}]")
        else:
            first = first or parsed
            wrong += _fixed(number, first, parsed)
        day = entry.get("from")
        if not isinstance(day, str):
            continue  # said by the door
        if day in seen:
            wrong.append(BadField(f"rules[{number}].from", "same-day", f"This is the day of rules[{seen[day]}] too."))
        seen.setdefault(day, number)
    return wrong


def _fixed(number: int, one: Settings, other: Settings) -> list[BadField]:
    """The settings that all rules of a pool must share, and these (the second in entry ``number``) do not."""
    return [
        BadField(f"rules[{number}].{name}", "fixed", f"A pool keeps its `{name}` for good; open another pool.")
        for name in one.fixed
        if getattr(one, name) != getattr(other, name)
    ]


def _parse(model: type[Settings], settings: Mapping[str, Any]) -> Settings:
    """Strict as JSON is: "25" is not 25, and a date is a text."""
    return model.model_validate_json(orjson.dumps(settings), strict=True)


def _dated(draft: PoolDraft) -> tuple[tuple[DatedRules, ...], tuple[dict[str, Any], ...]]:
    """The rules in ascending order, as the fold wants them and as they were given."""
    model = rule_system(draft.system).settings_model
    dated, given = [], []
    for entry in sorted(draft.rules, key=lambda e: str(e["from"])):
        settings = {k: v for k, v in entry.items() if k != "from"}
        since = first_instant(dt.date.fromisoformat(entry["from"]), draft.time_zone)
        dated.append(DatedRules(since, _parse(model, settings)))
        given.append({"from": entry["from"], **settings})
    if len(orjson.dumps(given)) > RULES_BYTES:
        raise invalid([BadField("rules", "too-long", f"All rules together may have {RULES_BYTES} bytes.")])
    return tuple(dated), tuple(given)


def _touched(old: Pool | None, new: Pool) -> int | None:
    """From when on ratings may change: the first instant whose rules are not what they were."""
    if old is None:
        return None
    differing = [r.since for r in new.rules if r not in old.rules] + [r.since for r in old.rules if r not in new.rules]
    return min(differing)


def _rules_event(ctx: Context, pool: Pool, known: Pool | None, now: int) -> Event:
    rules = [
        {**given, "from": dated.since} for dated, given in zip(pool.rules, pool.rules_as_given, strict=True)
    ]  # the instant in place of the day
    return Event(
        id=event_id(now, ctx.token(TOKEN)),
        kind="rules",
        accepted_at=now,
        value={"version": pool.version, "rules": rules},
        number=pool.version,
        touches=_touched(known, pool),
    )


def put(ctx: Context, pool_id: str, draft: PoolDraft) -> tuple[bool, Pool]:
    """Open a pool or change it. Returns whether it is new, and the pool.

    Raises:
        Problem: 409 ``system-fixed`` or ``time-zone-fixed``: games are stored under them already; 422 ``fixed`` for a
            setting that a pool keeps.
    """
    told: set[str] = set()
    for _ in range(ATTEMPTS):
        known = pools.load(ctx.table, pool_id)
        new = _changed(ctx, pool_id, draft, known)
        if known is not None and new is known:
            return False, known
        writes = _writes(ctx, new, known)
        if known is None:
            before, with_it = merging.tell_new_pool(ctx, pool_id, told)
            for start in range(0, len(before), TRANSACTION_ITEMS):
                ctx.table.transact(before[start : start + TRANSACTION_ITEMS])
            writes += with_it
        try:
            ctx.table.transact(writes)
        except ConditionFailed:
            continue
        ctx.ask_to_publish(pool_id, 0)
        return known is None, new
    raise Busy("pool")


def _changed(ctx: Context, pool_id: str, draft: PoolDraft, known: Pool | None) -> Pool:
    """The pool as the draft wants it; ``known`` itself when it says nothing new."""
    if known is not None and known.system.name != draft.system:
        raise Problem(409, "system-fixed", "The rule system of a pool cannot be changed; open another pool.")
    if known is not None and known.time_zone != draft.time_zone:
        raise Problem(409, "time-zone-fixed", "The time zone of a pool cannot be changed; open another pool.")
    rules, given = _dated(draft)
    if known is not None and (fixed := _fixed(0, known.rules[0].settings, rules[0].settings)):
        raise invalid(fixed)
    if known is not None and rules == known.rules:
        given = known.rules_as_given
        if (draft.name, draft.languages, draft.clubs) == (known.name, known.languages, known.clubs):
            return known
    version = known.version + 1 if known is not None else 1
    return Pool(
        id=pool_id,
        name=draft.name,
        system=rule_system(draft.system),
        time_zone=draft.time_zone,
        languages=draft.languages,
        clubs=draft.clubs,
        rules=rules,
        rules_as_given=given,
        version=version,
        created_at=known.created_at if known is not None else ctx.clock(),
        rules_version=known.rules_version if known is not None and rules == known.rules else version,
    )


def _writes(ctx: Context, new: Pool, known: Pool | None) -> list[Operation]:
    item, now = pools.to_item(new), ctx.clock()
    if known is None:
        listed = {"pk": keys.pools(), "sk": new.id}
        return [Put(item, ABSENT), Put(listed), *ledger.append(new.id, _rules_event(ctx, new, known, now))]
    writes: list[Operation] = [Put(item, "#version = :known", {"known": known.version})]
    if new.rules != known.rules:
        writes += [pools.past_rules(known), *ledger.append(new.id, _rules_event(ctx, new, known, now))]
    else:
        writes.append(republish(ctx, new.id))
    return writes


def republish(ctx: Context, pool_id: str, renamed: str = "") -> Operation:
    """Tell the publisher that pages of a pool may have changed though no rating did (names, languages, clubs).

    Args:
        renamed: the one player whose name or clubs changed, by server-made id; without it any page may have.
    """
    what = {"renamed": renamed} if renamed else {"all": True}
    return Put({"pk": keys.outbox(pool_id), "sk": f"{ctx.clock():016x}-{ctx.token(TOKEN)}", **what})


def require(ctx: Context, pool_id: str, ahead: Mapping[Key, Item | None] | None = None) -> Pool:
    """A pool; no round trip when it is among what was read ahead. Raises 404 when there is none."""
    key = keys.pool(pool_id)
    if ahead is not None and key in ahead:
        item = ahead[key]
        pool = pools.from_item(item) if item is not None else None
    else:
        pool = pools.load(ctx.table, pool_id)
    if pool is None:
        raise not_found("pool")
    return pool


def definition(pool: Pool) -> dict[str, Any]:
    """A pool as it was defined."""
    return {
        "pool": pool.id,
        "name": pool.name,
        "system": pool.system.name,
        "time_zone": pool.time_zone,
        "languages": list(pool.languages),
        "clubs": list(pool.clubs) if pool.clubs is not None else None,
        "rules": [dict(g) for g in pool.rules_as_given],
    }


def read(ctx: Context, pool: Pool) -> dict[str, Any]:
    """A pool's definition and how far it is rated."""
    cursor = rated.read_cursor(ctx.table, pool.id)
    return {
        **definition(pool),
        "players": cursor.players,
        "games": cursor.games,
        "position": cursor.position,
        "state_hash": cursor.hash,
        "pending": ledger.pending(ctx.table, pool.id),
        "held": cursor.held,
    }
