"""Two records of one person: merged, and split again. An alias over the whole history, told to every pool's ledger.

Every pool is told, also where neither has played yet: so whatever is on its way there, or comes later under either
handle, is rated as the one person's. A pool that is opened later is told of all merges when it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from shared.ledger.events import Event, event_id
from shared.problems import BadField, Problem, invalid, not_found
from shared.ratings.base import Game
from shared.store import ledger, merges, notes, people, pools, rated
from shared.store.merges import Merge
from shared.store.people import Person
from shared.store.pools import Pool
from shared.store.table import TRANSACTION_ITEMS, Busy, ConditionFailed, Operation
from shared.usecases import compact, previews
from shared.usecases.context import Context
from shared.usecases.drafts import Answer

ATTEMPTS = 3
TOKEN = 12
POOLS_AT_ONCE = 25
"""Pools told in one transaction: three writes each beside those of the records."""

Kind = Literal["merge", "unmerge"]


@dataclass(frozen=True)
class _Plan:
    """A merge or unmerge that passed every check."""

    kind: Kind
    known: int
    """How often merges had changed when the checks were made."""
    person: Person
    into: Person
    still: Sequence[Person]
    """Records beside the person's own on which the checks rest."""
    alias: Mapping[str, str]
    """As it will be."""
    merge: Merge | None
    """The record's last merge."""


def merge(ctx: Context, handle: str, into: str, *, preview: bool = False, preview_token: str | None = None) -> Answer:
    """Say that a record is the same person's as another, which survives: name, start and handle are the survivor's.

    Raises:
        Problem: 404; 422 ``unknown-player``, ``same-player``; 409 ``met-in-a-game`` when both were in one game of any
            pool, ``already-merged``, ``erased``, ``pool-moved``.
    """
    for _ in range(ATTEMPTS):
        plan = _plan_merge(ctx, handle, into)
        if isinstance(plan, Answer):
            return plan
        answer = _carry_out(ctx, plan, preview, preview_token)
        if answer is not None:
            return answer
    raise Busy("merge")


def unmerge(
    ctx: Context, handle: str, into: str | None, *, preview: bool = False, preview_token: str | None = None
) -> Answer:
    """Undo a merge: both records are again what they would be without it.

    Args:
        into: whom the sender believes it to be merged into, or None.

    Raises:
        Problem: 404; 409 ``not-merged``, ``pool-moved``.
    """
    for _ in range(ATTEMPTS):
        plan = _plan_unmerge(ctx, handle, into)
        if isinstance(plan, Answer):
            return plan
        answer = _carry_out(ctx, plan, preview, preview_token)
        if answer is not None:
            return answer
    raise Busy("unmerge")


# -- checks --------------------------------------------------------------------------------------------------------
def _plan_merge(ctx: Context, handle: str, into: str) -> _Plan | Answer:
    known, found = merges.load(ctx.table)
    person, other = people.find(ctx.table, handle), people.find(ctx.table, into)
    if person is None:
        raise not_found("player")
    if other is None:
        raise invalid([BadField("into", "unknown-player", f"There is no player {into!r}.")])
    if person.sid == other.sid:
        raise invalid([BadField("into", "same-player", "A player cannot be merged into himself.")])
    if person.erased or other.erased:
        raise Problem(409, "erased", "One of the two was erased; nobody knows who that was.")
    if person.merged_into == other.sid:
        _tell_the_rest(ctx, found[person.sid])
        return _accepted(ctx, "merge", person, other)
    if person.merged_into is not None:
        raise Problem(409, "already-merged", f"{handle} is merged into another player already; unmerge first.")
    still = people.chain(ctx.table, other)
    if person.sid in {p.sid for p in still}:
        raise Problem(409, "already-merged", f"{into} is merged into {handle} already.")
    alias = merges.aliases(found)
    _refuse_if_met(ctx, set(merges.group(alias, person.sid)), set(merges.group(alias, other.sid)))
    alias[person.sid] = other.sid
    return _Plan("merge", known, person, other, still, alias, found.get(person.sid))


def _plan_unmerge(ctx: Context, handle: str, into: str | None) -> _Plan | Answer:
    known, found = merges.load(ctx.table)
    person = people.find(ctx.table, handle)
    if person is None:
        raise not_found("player")
    last = found.get(person.sid)
    other = people.persons(ctx.table, [last.was]).get(last.was) if last is not None else None
    if last is None or other is None or (into is not None and into != other.handle):
        raise Problem(409, "not-merged", f"{handle} is not merged into {into or 'another player'}.")
    if person.merged_into is None:  # done before: the answer was lost
        _tell_the_rest(ctx, last)
        return _accepted(ctx, "unmerge", person, other)
    alias = merges.aliases(found)
    del alias[person.sid]
    return _Plan("unmerge", known, person, other, [], alias, last)


def _refuse_if_met(ctx: Context, ours: set[str], theirs: set[str]) -> None:
    for pool_id in pools.all_ids(ctx.table):
        pool = pools.load(ctx.table, pool_id)
        game = next(_met(ctx, pool, ours, theirs), None) if pool is not None else None
        if game is not None:
            raise Problem(
                409,
                "met-in-a-game",
                f"These two met in game {game} of pool {pool_id}, so they are not one person.",
                extra={"existing": {"pool": pool_id, "game": game}},
            )


def _met(ctx: Context, pool: Pool, ours: set[str], theirs: set[str]) -> Iterator[str]:
    """The games, rated or not, waiting ones too, in which somebody of one group met somebody of the other.

    All that a ledger tells of any game must be looked at, so closed months are read from their segments.
    """
    told = compact.read(ctx, pool)
    newest: dict[tuple[str, str], Game] = {}
    for event in told.others():
        if event.game is not None:
            ref = (event.game.club, event.game.game_id)
            if ref not in newest or newest[ref].revision < event.game.revision:
                newest[ref] = event.game
    for ref, game in sorted(newest.items()):
        seated = () if game.void else pool.system.mentioned(game.content)
        if not ours.isdisjoint(seated) and not theirs.isdisjoint(seated):
            yield ":".join(ref)
    for segment in told.segments:
        for game in segment.with_both(pool.system, ours, theirs):
            if (game.club, game.game_id) not in newest:
                yield f"{game.club}:{game.game_id}"


# -- doing it ------------------------------------------------------------------------------------------------------
def _carry_out(ctx: Context, plan: _Plan, preview: bool, preview_token: str | None) -> Answer | None:
    """Preview or store; None when something changed in between and the checks must be made again."""
    now = max(ctx.clock(), plan.merge.at + 1 if plan.merge is not None else 0)
    if preview:
        return _preview(ctx, plan, now)
    if plan.merge is not None:
        _tell_the_rest(ctx, plan.merge)
    guards = _guards(ctx, plan, preview_token) if preview_token is not None else {}
    every = sorted(pools.all_ids(ctx.table), key=lambda pool: (pool not in guards, pool))
    into = plan.into.sid if plan.kind == "merge" else None
    group = people.persons(ctx.table, {*merges.group(plan.alias, plan.person.sid), *_old_group(plan)})
    handles = {sid: p.handle for sid, p in group.items()}
    writes: list[Operation] = [
        merges.count_one(plan.known),
        people.merging(plan.person, into),
        *(people.unchanged(p) for p in plan.still),
        *(
            people.tell_same(handle, {handles[s] for s in merges.group(plan.alias, sid) if s in handles} - {handle})
            for sid, handle in handles.items()
        ),
        *guards.values(),
    ]
    room = min(POOLS_AT_ONCE, (TRANSACTION_ITEMS - 1 - len(writes)) // 3)
    made = Merge(plan.person.sid, into, plan.into.sid, now, tuple(every[room:]))
    known = _members(ctx, made)
    for pool_id in every[:room]:
        told = _tell(ctx, pool_id, made, in_it=pool_id in known)
        writes += ledger.ahead(told) if pool_id in guards else told
    writes.append(merges.put(made))
    try:
        ctx.table.transact(writes)
    except ConditionFailed as failure:
        previews.raise_if_moved(writes, failure)
        return None
    _tell_the_rest(ctx, made)
    return _accepted(ctx, plan.kind, plan.person, plan.into)


def _old_group(plan: _Plan) -> list[str]:
    before = dict(plan.alias)
    if plan.kind == "unmerge":
        before[plan.person.sid] = plan.into.sid
    return merges.group(before, plan.person.sid)


def event_of(ctx: Context, made: Merge, now: int) -> Event:
    """The ledger's event of a merge, or of its undoing."""
    kind: Kind = "merge" if made.into is not None else "unmerge"
    value = {"into": made.into} if made.into is not None else {}
    return Event(event_id(now, ctx.token(TOKEN)), kind, now, player=made.sid, value=value)


def _members(ctx: Context, made: Merge) -> set[str]:
    """The pools either of the two is in."""
    return {*people.memberships(ctx.table, made.sid), *people.memberships(ctx.table, made.was)}


def _tell(ctx: Context, pool_id: str, made: Merge, *, in_it: bool) -> list[Operation]:
    """The writes that tell a pool of a merge; with a line in its changelog when one of the two is in it."""
    event = event_of(ctx, made, made.at)
    writes: list[Operation] = [*ledger.append(pool_id, event)]
    if in_it:
        what = "merged" if event.kind == "merge" else "unmerged"
        writes.append(notes.put_note(pool_id, notes.Note(made.at, what, by="admin", players=[made.sid, made.was])))
    return writes


def _tell_the_rest(ctx: Context, made: Merge) -> None:
    """Tell the pools that did not fit; after a crash the next request about this record does."""
    left = list(made.untold)
    known = _members(ctx, made) if left else set()
    while left:
        now, left = left[:POOLS_AT_ONCE], left[POOLS_AT_ONCE:]
        writes: list[Operation] = [merges.told(made, left)]
        for pool_id in now:
            writes += _tell(ctx, pool_id, made, in_it=pool_id in known)
        try:
            ctx.table.transact(writes)
        except ConditionFailed:  # another request has gone on
            raise Busy("merge") from None


def tell_new_pool(ctx: Context, pool_id: str, told: set[str]) -> tuple[list[Operation], list[Operation]]:
    """For a pool about to be made: writes that may come before it (may be empty), and those of its own transaction.

    Args:
        told: ids that an earlier attempt has told the pool of; added to.
    """
    known, found = merges.load(ctx.table)
    now, holding = ctx.clock(), {sid: m for sid, m in found.items() if m.into is not None}
    events = [event_of(ctx, m, now) for sid, m in sorted(holding.items())]
    events += [event_of(ctx, replace(found[sid], into=None), now) for sid in sorted(told - set(holding))]
    writes = [write for event in events for write in ledger.append(pool_id, event)]
    split = max(0, len(writes) - 2 * POOLS_AT_ONCE)
    told.update(holding)
    return writes[:split], [*writes[split:], merges.count_one(known)]


def _accepted(ctx: Context, kind: Kind, person: Person, into: Person) -> Answer:
    known = sorted({*people.memberships(ctx.table, person.sid), *people.memberships(ctx.table, into.sid)})
    return Answer(202, {"player": person.handle, "into": into.handle, "status": f"{kind} accepted", "pools": known})


# -- previews ------------------------------------------------------------------------------------------------------
def _concerned(ctx: Context, plan: _Plan) -> list[Pool]:
    """The pools in which ratings would change, once all that waits in any is rated."""
    from shared.usecases import rating

    for pool_id in pools.all_ids(ctx.table):
        if ledger.pending(ctx.table, pool_id):
            rating.apply(ctx, pool_id, chores=False)
    subject = plan.person.sid if plan.kind == "merge" else merges.survivor(plan.alias, plan.into.sid)
    found = [pools.load(ctx.table, pool_id) for pool_id in people.memberships(ctx.table, subject)]
    return [pool for pool in found if pool is not None]


def _preview(ctx: Context, plan: _Plan, now: int) -> Answer:
    """The effects in every pool concerned, and all together."""
    made = Merge(plan.person.sid, plan.into.sid if plan.kind == "merge" else None, plan.into.sid, now)
    every: dict[str, Any] = {"games_rerated": 0, "players": []}
    by_pool, versions = [], []
    for pool in _concerned(ctx, plan):
        body = previews.preview(ctx, pool, [event_of(ctx, made, now)]).body
        effects = body["effects"]
        by_pool.append({"pool": pool.id, **effects})
        versions.append((pool.id, body["preview_token"]))
        every["games_rerated"] += effects["games_rerated"]
        every["players"] += [{"pool": pool.id, **row} for row in effects["players"]]
    return Answer(200, {"effects": {**every, "pools": by_pool}, "preview_token": _token(versions)})


def _token(versions: Sequence[tuple[str, str]]) -> str:
    return "m" + hashlib.sha256(msgspec.json.encode(versions)).hexdigest()[:32]


def _guards(ctx: Context, plan: _Plan, token: str) -> dict[str, Operation]:
    """Per pool concerned, the condition that it has not moved since the preview.

    Raises:
        Problem: 422, 409 ``pool-moved``.
    """
    if len(token) != 33 or not token.startswith("m"):
        raise invalid([BadField("preview_token", "invalid", "This is not a token of a preview of a merge.")])
    if any(ledger.pending(ctx.table, pool_id) for pool_id in pools.all_ids(ctx.table)):
        raise previews.moved()
    concerned = _concerned(ctx, plan)
    cursors = [rated.read_cursor(ctx.table, pool.id) for pool in concerned]
    if _token([(c.pool, f"v{c.version}") for c in cursors]) != token:
        raise previews.moved()
    return {c.pool: previews.guard(ctx, pool, f"v{c.version}") for c, pool in zip(cursors, concerned, strict=True)}
