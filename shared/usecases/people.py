"""Players: registering, renaming, and what they are in a pool before they play (carried-over start, rank_me)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from shared.fields import bad_fields
from shared.ledger import calendar
from shared.ledger.events import Event, event_id
from shared.ledger.order import iso
from shared.problems import BadField, Problem, forbidden, invalid, not_found
from shared.ratings.base import MICROSECONDS, RuleError
from shared.store import keys, ledger, people, rated
from shared.store.people import Person
from shared.store.pools import Pool
from shared.store.table import Busy, ConditionFailed, Item, Operation, Update
from shared.usecases import eligibility, leaving
from shared.usecases.context import Context
from shared.usecases.pools import republish

ATTEMPTS = 3
SID_LENGTH = 12
TOKEN = 12
FUTURE = 10 * 60 * MICROSECONDS
"""Clocks of clients may be wrong by so much."""
TRANSACTION_POOLS = 40
"""Pools whose pages a change of a person touches, told in the same transaction; the rest right after it."""


@dataclass(frozen=True)
class PersonDraft:
    """A player as a club sent him. None: left out, keeps its value."""

    name: str
    clubs: tuple[str, ...] | None = None
    registered_on: str | None = None
    given: frozenset[str] = frozenset()


def find_own(ctx: Context, handle: str, club: str, *, admin: bool) -> Person | None:
    """A player this club may change, or None when there is no such player. Raises 403 for another club's."""
    person = people.find(ctx.table, handle)
    if person is not None and not admin and person.managed_by != club:
        raise forbidden("This player is managed by another club.")
    return person


def require_own(ctx: Context, handle: str, club: str, *, admin: bool) -> Person:
    """A player this club may change. Raises 403 for another club's, 404 when there is no such player."""
    person = find_own(ctx, handle, club, admin=admin)
    if person is None:
        raise not_found("player")
    return person


def put(ctx: Context, handle: str, club: str, draft: PersonDraft, *, admin: bool) -> tuple[bool, Person]:
    """Register a player, or change him. Returns whether he is new. Raises 403 for another club's player."""
    for _ in range(ATTEMPTS):
        known = find_own(ctx, handle, club, admin=admin)
        if known is None:
            clubs = draft.clubs if draft.clubs is not None else (club,)
            new = Person(ctx.token(SID_LENGTH), handle, draft.name, clubs, club, draft.registered_on)
            writes, rest, pools = people.register(new), [], []
        else:
            new = _changed(known, draft)
            if new == known:
                return False, known
            if known.erased:
                raise Problem(409, "erased", "This player was erased; nobody can be registered in his place.")
            new = dataclasses.replace(new, version=known.version + 1)
            pools = people.memberships(ctx.table, known.sid)
            told = [republish(ctx, pool, known.sid) for pool in pools]
            writes, rest = [*people.change(known, new), *told[:TRANSACTION_POOLS]], told[TRANSACTION_POOLS:]
        try:
            ctx.table.transact(writes)
        except ConditionFailed:
            continue
        for late in rest:
            ctx.table.write(late)
        for pool in pools:
            ctx.ask_to_publish(pool, 0)
        return known is None, new
    raise Busy("player")


def _changed(known: Person, draft: PersonDraft) -> Person:
    return dataclasses.replace(
        known,
        name=draft.name,
        clubs=draft.clubs if draft.clubs is not None else known.clubs,
        registered_on=draft.registered_on if "registered_on" in draft.given else known.registered_on,
    )


def present(person: Person) -> dict[str, Any]:
    """A player as the API shows him."""
    return {
        "player": person.handle,
        "name": person.name,
        "clubs": list(person.clubs),
        "managed_by": person.managed_by,
        "registered_on": person.registered_on,
    }


def read(ctx: Context, handle: str) -> dict[str, Any]:
    """A player and the pools he is in; of one merged away, the survivor. Raises 404."""
    person = people.find(ctx.table, handle)
    if person is None:
        raise not_found("player")
    person = people.chain(ctx.table, person)[-1]
    pointer = ctx.table.get(*keys.handle(person.handle)) or {}
    others = list(people.same_as(pointer))
    merged = {"merged": others} if others else {}
    return {**present(person), "pools": people.memberships(ctx.table, person.sid), **merged}


def refuse_merged(ctx: Context, person: Person) -> None:
    """Raise 409 for a record that was merged away: what holds for the person is said at the survivor's."""
    if person.merged_into is not None:
        into = people.chain(ctx.table, person)[-1].handle
        detail = f"This player was merged into {into}; send it for that player."
        raise Problem(409, "merged", detail, extra={"into": into})


# -- a player in a pool --------------------------------------------------------------------------------------------
def parse_start(pool: Pool, raw: Any) -> tuple[dict[str, Any], list[BadField]]:
    """A carried-over start in its canonical form, and what is wrong with it (paths below ``start``)."""
    try:
        start: BaseModel = pool.system.start_model.model_validate_json(orjson.dumps(raw), strict=True)
    except ValidationError as error:
        return {}, bad_fields(error, raw, "start")
    try:
        pool.system.start(start, pool.settings)
    except RuleError as error:
        return {}, [BadField(f"start.{e.field}" if e.field else "start", e.code, e.message) for e in error.errors]
    return start.model_dump(mode="json"), []


def _door(ctx: Context, handle: str, pool: Pool) -> Item:
    return ctx.table.get(*keys.door(handle, pool.id)) or {}


def _has_played(ctx: Context, pool: Pool, sid: str) -> bool:
    state = rated.player_state(ctx.table, pool.id, sid)
    return state is not None and state.last_played is not None  # carried-over games count in `games` too


def _store(ctx: Context, pool: Pool, writes: list[Operation]) -> bool:
    try:
        ctx.table.transact(writes)
    except ConditionFailed:
        return False
    ctx.ask_to_publish(pool.id, 0)
    return True


def _refuse_days_to_come(ctx: Context, pool: Pool, start: Mapping[str, Any]) -> None:
    """Raise 422 for a day in a start that no zone's calendar has reached: nobody carries over what is to come."""
    today = calendar.day_of(ctx.clock(), pool.time_zone).isoformat()
    fields = [f"start.{name}" for name, value in start.items() if name.endswith("_on") and value and value > today]
    if fields:
        raise invalid([BadField(field, "in-the-future", "This day is still to come.") for field in fields])


def set_start(ctx: Context, pool: Pool, person: Person, start: dict[str, Any]) -> dict[str, Any]:
    """Carry over a start rating. The same again changes nothing.

    Raises:
        Problem: 409 ``already-rated`` after the first rated game.
    """
    refuse_merged(ctx, person)
    _refuse_days_to_come(ctx, pool, start)
    answer = {"pool": pool.id, "player": person.handle, "start": start}
    text = json.dumps(start, sort_keys=True)
    for _ in range(ATTEMPTS):
        door = _door(ctx, person.handle, pool)
        if door.get("start") == text:
            return answer
        if _has_played(ctx, pool, person.sid):
            raise Problem(409, "already-rated", "This player has rated games; a start cannot be carried over any more.")
        # Later than the start it replaces, whatever this clock says: events are told in the order of their ids.
        now, known = max(ctx.clock(), door.get("start_at", 0) + 1), door.get("start_version", 0)
        event = Event(
            id=event_id(now, ctx.token(TOKEN)),
            kind="start",
            accepted_at=now,
            player=person.sid,
            value=start,
            number=known + 1,
        )
        remember = _remember(person.handle, pool, "start_version", known, {"start": text, "start_at": now})
        if _store(ctx, pool, [remember, _member(person, pool), *ledger.append(pool.id, event)]):
            return answer
    raise Busy("start")


def _remember(handle: str, pool: Pool, counter: str, known: int, values: dict[str, Any]) -> Update:
    """Count a version at the door, if nobody did so in between, and keep values beside it."""
    sets = ", ".join(f"#{name} = :{name}" for name in [counter, *values])
    condition = f"#{counter} = :known" if known else f"attribute_not_exists(#{counter})"
    stated = {**values, counter: known + 1, **({"known": known} if known else {})}
    return Update(keys.door(handle, pool.id), f"SET {sets}", stated, condition)


def _member(person: Person, pool: Pool) -> Update:
    return Update((keys.memberships(person.sid), pool.id), "SET #pool = :pool", {"pool": pool.id})


def set_rank_me(ctx: Context, pool: Pool, person: Person, on: bool, at: int | None, by: str) -> dict[str, Any]:
    """Take part in the ranking, or leave it: leaving resets the rating at that moment and bans for some days.

    Whoever leaves in the middle of a game has quit it first.

    Args:
        at: since when; None: now.
        by: the club that says so.

    Raises:
        Problem: 422 where the rules know no such thing or ``at`` lies in the future; 409 while the ban lasts.
    """
    now = ctx.clock()
    when = now if at is None else at
    if eligibility.OPT_OUT_BAN_DAYS not in pool.system.settings_model.model_fields:
        raise invalid([BadField("rank_me", "no-rank-me", "The rules of this pool have no such switch.")])
    if when > now + FUTURE:
        raise invalid([BadField("at", "in-the-future", "This is more than 10 minutes in the future.")])
    refuse_merged(ctx, person)
    for _ in range(ATTEMPTS):
        item = _door(ctx, person.handle, pool)
        away = [(left, back) for left, back in item.get("away", ())]
        told = {back if on else left for left, back in away}
        if when in told or (item.get("rank_me") is on and (at is None or item.get("rank_me_at") == at)):
            return _rank_me(person, pool, item)
        until = max((eligibility.opt_out_end(pool, left) for left, back in away if back is None), default=None)
        if on and until is not None and when < until:
            detail = f"This player left the ranking and may join it again at {iso(until)}."
            raise Problem(409, "opted-out", detail, extra={"until": iso(until)})
        if on:
            away = [(left, when if back is None else back) for left, back in away]
        else:
            leaving.leave_games(ctx, pool, person, when, by)
            away.append((when, None))
        values: dict[str, Any] = {"rank_me": on, "rank_me_at": when, "away": [list(spell) for spell in away]}
        known = item.get("rank_version", 0)
        event = Event(
            id=event_id(now, ctx.token(TOKEN)),
            kind="rank-me",
            accepted_at=now,
            player=person.sid,
            value={"at": when, "on": on},
            number=known + 1,
        )
        remember = _remember(person.handle, pool, "rank_version", known, values)
        if _store(ctx, pool, [remember, *ledger.append(pool.id, event)]):
            return _rank_me(person, pool, {**item, **values})
    raise Busy("rank_me")


def _rank_me(person: Person, pool: Pool, door: Item) -> dict[str, Any]:
    until = eligibility.opt_out_end(pool, door["rank_me_at"]) if not door["rank_me"] else None
    return {
        "pool": pool.id,
        "player": person.handle,
        "rank_me": door["rank_me"],
        "at": iso(door["rank_me_at"]),
        "opted_out_until": iso(until) if until is not None and until > door["rank_me_at"] else None,
    }
