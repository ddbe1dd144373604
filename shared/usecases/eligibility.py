"""Who may play rated games: checked at the door, against what is rated and waiting then; never again by a replay.

The door keeps one item per player and pool: the quits that bring bans (one attribute a game), the open games he
sits in, his unrated games, and what he said of ``rank_me``. They are written in the transaction of what causes them.
How long a ban lasts is not kept: it follows from the rules that are in force at its date, as they are now. Records that
were merged are one person, so the doors of all their handles count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shared.fields import mentions
from shared.ledger import calendar
from shared.ledger.order import iso
from shared.ledger.rules import in_force
from shared.problems import BadField, invalid
from shared.ratings.base import MICROSECONDS, Game, LiveSystem, Rating, RuleError, StakeSystem
from shared.store import keys, ledger, people
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.store.table import Item, Key, Operation, Update
from shared.usecases.context import Context

BAN = "ban:"
OPEN = "open:"
DAY = 86_400 * MICROSECONDS
OPT_OUT_BAN_DAYS = "opt_out_ban_days"
"""The setting of rule systems in which a player can leave the ranking (``rank_me``)."""

Refs = list[tuple[str, str]]


@dataclass(frozen=True)
class Ban:
    """From when until when a player may not start a rated game, instants; the end is open."""

    since: int
    until: int


@dataclass
class Door:
    """What the door knows of a person in a pool."""

    quits: list[tuple[int, int]] = field(default_factory=list)
    """(when, start of the game) of rated quits."""
    open_games: Refs = field(default_factory=list)
    """(club, game id) of the open rated games he sits in."""
    regular_games: int = 0
    """Finished unrated games."""
    away: list[tuple[int, int | None]] = field(default_factory=list)
    """(when he left the ranking, when he joined it again or None), every time: late results ask for old ones too."""

    def off(self, at: int) -> bool:
        """Whether he had left the ranking at an instant."""
        return any(left <= at and (back is None or at < back) for left, back in self.away)


def has_door(pool: Pool) -> bool:
    """Whether the pool's rule system keeps anybody out at the door."""
    return isinstance(pool.system, LiveSystem)


def door_of(items: Iterable[Mapping[str, Any]]) -> Door:
    """What the items of a person's handles say together."""
    door = Door()
    for item in items:
        for name, value in item.items():
            if name.startswith(BAN):
                at, started = value.split(",")
                door.quits.append((int(at), int(started)))
            elif name.startswith(OPEN):
                club, game_id = name.removeprefix(OPEN).split(":")
                door.open_games.append((club, game_id))
        door.regular_games += item.get("regular_games", 0)
        door.away += [(left, back) for left, back in item.get("away", ())]
    return door


def doors(ctx: Context, pool: Pool, handles: Iterable[str], ahead: Mapping[Key, Item]) -> dict[str, Door]:
    """The doors of these players, those of handles merged with theirs included.

    Args:
        ahead: items read before: the handles', and the doors' where there are any.
    """
    wanted = list(handles)
    same = {h: people.same_as(ahead.get(keys.handle(h), {})) for h in wanted}
    missing = {keys.door(other, pool.id) for others in same.values() for other in others}
    found = {**ahead, **ctx.table.batch_get(missing)} if missing else ahead
    return {h: door_of(found.get(keys.door(other, pool.id), {}) for other in (h, *same[h])) for h in wanted}


def read_ahead(ctx: Context, pool: Pool, handles: Iterable[str]) -> dict[Key, Item]:
    """The items that ``doors`` needs of these players. One round trip."""
    wanted = list(handles)
    return ctx.table.batch_get([*(keys.handle(h) for h in wanted), *(keys.door(h, pool.id) for h in wanted)])


def settings_at(pool: Pool, at: int) -> Any:
    """The settings in force at an instant; before the first rules, those."""
    return pool.rules[in_force(pool.rules, at) or 0].settings


def opt_out_end(pool: Pool, left_at: int) -> int:
    """Until when somebody who left the ranking stays out."""
    return left_at + int(getattr(settings_at(pool, left_at), OPT_OUT_BAN_DAYS)) * DAY


def bans_of(pool: Pool, door: Door) -> list[Ban]:
    """All bans, by the rules as they are now."""
    found = [
        Ban(at, at + settings_at(pool, started).quit_ban_minutes * 60 * MICROSECONDS) for at, started in door.quits
    ]
    return found + [Ban(left, opt_out_end(pool, left)) for left, _ in door.away]


# -- new games -----------------------------------------------------------------------------------------------------
def check(
    ctx: Context,
    pool: Pool,
    game: Game,
    handles: Mapping[str, str],
    ahead: Mapping[Key, Item],
    body: Mapping[str, Any] | None = None,
) -> list[Operation]:
    """Refuse a rated game whose players may not play it; the door's own writes for one that is accepted.

    Args:
        handles: handle → server-made id of everybody in the game.
        ahead: items read before, the door's among them where the body named the players.
        body: ``{"result": ...}`` or ``{"line_up": ...}`` as it was sent, to name the wrong fields in it.

    Raises:
        Problem: 422 naming the rule, the player and, for a ban, the time it ends.
    """
    _refuse_erased(handles, ahead, body)
    if game.rated:
        by_sid = {sid: handle for handle, sid in handles.items()}
        seats = [by_sid[sid] for sid in pool.system.players(game.content)]
        _raise_for(
            [
                *(_refusals(ctx, pool, game, handles, seats, ahead, body) if has_door(pool) else []),
                *_entry(ctx, pool, game, handles, body),
            ]
        )
    return after_change(pool, None, game, ctx, handles)


def check_change(
    ctx: Context, pool: Pool, old: Game, new: Game, handles: Mapping[str, str], body: Mapping[str, Any] | None
) -> None:
    """Refuse a correction that brings somebody into a rated game who may not play it.

    Whoever sat in the rated game before was let in then, and is not asked again. Raises Problem 422.
    """
    if not new.rated:
        return
    system = pool.system
    by_sid = {sid: handle for handle, sid in handles.items()}
    before = set(system.players(old.content)) if old.rated else set()
    seats = [by_sid[sid] for sid in system.players(new.content) if sid not in before]
    if not seats:
        return
    errors: list[BadField] = []
    if has_door(pool):
        errors += _refusals(ctx, pool, new, handles, seats, read_ahead(ctx, pool, seats), body)
    _raise_for([*errors, *_entry(ctx, pool, new, handles, body)])


def _raise_for(errors: Sequence[BadField]) -> None:
    if errors:
        raise invalid(errors, "Not everybody may play this rated game. It can be sent as an unrated one.")


def _where(body: Mapping[str, Any] | None, game: Game, handle: str) -> str:
    """The path of a player in the body."""
    below = "line_up" if game.finished_at is None else "result"
    return next(mentions(body, handle), below) if body is not None else below


def _refuse_erased(handles: Mapping[str, str], ahead: Mapping[Key, Item], body: Mapping[str, Any] | None) -> None:
    """The pseudonym of an erased person is no player any more; old games keep it, new ones may not take it up."""
    erased = [h for h in handles if ahead.get(keys.handle(h), {}).get("erased")]
    if erased:
        raise invalid(
            [
                BadField(next(mentions(body or {}, h), ""), "erased-player", f"{h} was erased and plays no more.")
                for h in erased
            ]
        )


def _refusals(
    ctx: Context,
    pool: Pool,
    game: Game,
    handles: Mapping[str, str],
    seats: Sequence[str],
    ahead: Mapping[Key, Item],
    body: Mapping[str, Any] | None,
) -> list[BadField]:
    """Why these players may not play this game."""
    wants = settings_at(pool, game.started_at).eligibility
    known = people.persons(ctx.table, [handles[h] for h in seats]) if wants.registered else {}
    found = doors(ctx, pool, seats, ahead)
    errors: list[BadField] = []
    for handle in seats:
        door, where = found[handle], _where(body, game, handle)
        ends = [ban.until for ban in bans_of(pool, door) if ban.since <= game.started_at < ban.until]
        if ends:
            text = f"{handle} is banned from rated games until {iso(max(ends))}."
            errors.append(BadField(where, "banned", text))
        if wants.rank_me and door.off(game.started_at):
            errors.append(BadField(where, "rank-me-off", f"{handle} has switched rank_me off."))
        minimum = wants.minimum_regular_games or 0
        if door.regular_games < minimum:
            text = f"{handle} has played {door.regular_games} regular (unrated) games; rated games need {minimum}."
            errors.append(BadField(where, "minimum-regular-games", text))
        if wants.registered and not _registered(pool, known.get(handles[handle]), game.started_at):
            errors.append(BadField(where, "not-registered", f"{handle} is not a registered player."))
    if wants.no_robots_at_start and isinstance(pool.system, LiveSystem):
        by_sid = {sid: handle for handle, sid in handles.items()}
        for seat in pool.system.robots_at_start(game.content, game.started_at):
            handle = by_sid[seat]
            text = f"A robot had the seat of {handle} from the start; rated games begin without robots."
            errors.append(BadField(_where(body, game, handle), "robot-at-start", text))
    return errors


def _registered(pool: Pool, person: people.Person | None, at: int) -> bool:
    if person is None or person.registered_on is None:
        return False
    return person.registered_on <= calendar.day_of(at, pool.time_zone).isoformat()


# -- entry limits --------------------------------------------------------------------------------------------------
def _entry(
    ctx: Context, pool: Pool, game: Game, handles: Mapping[str, str], body: Mapping[str, Any] | None
) -> list[BadField]:
    """Whom the limits of the pool, or of this game, keep out: by what is rated and waiting, as of the game's start."""
    system, settings = pool.system, settings_at(pool, game.started_at)
    if not isinstance(system, StakeSystem) or not system.has_entry_limits(game.content, settings):
        return []
    by_sid = {sid: handle for handle, sid in handles.items()}
    ratings = _ratings_at_start(ctx, pool, game)
    content = pool.system.translate(game.content, lambda sid: by_sid[sid])
    seats = pool.system.players(content)
    errors = system.entry_errors(content, {by_sid[sid]: rating for sid, rating in ratings.items()}, settings)
    return [
        BadField(_where(body, game, seats[int(e.field.removeprefix("players[").removesuffix("]"))]), e.code, e.message)
        for e in errors
    ]


def _ratings_at_start(ctx: Context, pool: Pool, game: Game) -> dict[str, Rating]:
    from shared.usecases import rating

    if ledger.pending(ctx.table, pool.id):
        rating.apply(ctx, pool.id, chores=False)
    cursor = rated_store.read_cursor(ctx.table, pool.id)
    return rating.ratings_at(ctx, pool, cursor, pool.system.players(game.content), game.started_at)


# -- leaving the ranking in a running game -------------------------------------------------------------------------
def with_leavers(
    ctx: Context, pool: Pool, game: Game, handles: Mapping[str, str], ahead: Mapping[Key, Item]
) -> tuple[Game, list[dict[str, str]]]:
    """The game with a quit of every player who left the ranking while it ran and is not said to have quit before.

    Leaving the ranking in a running game is a quit first; so a game that is sent afterwards has it too.

    Returns:
        the game, and a warning for each quit that was added.
    """
    system, finished = pool.system, game.finished_at
    if not isinstance(system, LiveSystem) or not game.rated or game.void or finished is None:
        return game, []
    by_sid = {sid: handle for handle, sid in handles.items()}
    seats = [by_sid[sid] for sid in pool.system.players(game.content)]
    warnings: list[dict[str, str]] = []
    for handle, door in doors(ctx, pool, seats, ahead).items():
        # The first counts; whoever left in the middle of a game has quit it then.
        at = min((left for left, _ in door.away if game.started_at < left <= finished), default=None)
        changed = leave(pool, game, by_sid, handle, at) if at is not None else game
        if changed is not game:
            game = changed
            text = f"{handle} left the ranking during this game, which counts as quitting it."
            warnings.append({"field": "result.quits", "code": "rank-me-off-quit", "message": text})
    return game, warnings


def leave(pool: Pool, game: Game, by_sid: Mapping[str, str], handle: str, at: int) -> Game:
    """The game after a player has quit it at ``at``; the game itself when he had quit before and was not back."""
    system = pool.system
    if not isinstance(system, LiveSystem):
        return game
    to_sid = {h: sid for sid, h in by_sid.items()}
    content = pool.system.translate(game.content, lambda sid: by_sid[sid])
    try:
        quitted = system.with_quit(content, handle, at, game.started_at)
    except RuleError:
        return game
    if quitted == content:
        return game
    return msgspec.structs.replace(game, content=pool.system.translate(quitted, lambda h: to_sid[h]))


# -- what games write at the door ----------------------------------------------------------------------------------
def _bans(pool: Pool, game: Game | None) -> dict[str, str]:
    """Server-made id → ban that a game's quits bring: when, and the start of the game, whose rules say how long."""
    if game is None or not game.rated or game.void or not isinstance(pool.system, LiveSystem):
        return {}
    quits = pool.system.quits(game, settings_at(pool, game.started_at))
    return {q.player: f"{q.at},{game.started_at}" for q in quits if q.rated}


def _sits_open(pool: Pool, game: Game | None) -> set[str]:
    if game is None or not game.rated or game.void or game.finished_at is not None:
        return set()
    return set(pool.system.players(game.content))


def _regular(pool: Pool, game: Game | None) -> set[str]:
    if game is None or game.rated or game.void or game.finished_at is None:
        return set()
    return set(pool.system.players(game.content))


def after_change(
    pool: Pool, old: Game | None, new: Game, ctx: Context, handles: Mapping[str, str] | None = None
) -> list[Operation]:
    """The door's writes when a game comes in (``old`` None) or changes: bans, open seats, unrated games."""
    if not has_door(pool):
        return []
    bans = (_bans(pool, old), _bans(pool, new))
    seats = (_sits_open(pool, old), _sits_open(pool, new))
    regular = (_regular(pool, old), _regular(pool, new))
    sids = sorted({*bans[0], *bans[1], *seats[0], *seats[1], *regular[0], *regular[1]})
    if not sids:
        return []
    if handles is None:
        names = {sid: p.handle for sid, p in people.persons(ctx.table, sids).items()}
    else:
        names = {sid: handle for handle, sid in handles.items()}
    ref = f"{new.club}:{new.game_id}"
    operations: list[Operation] = []
    for sid in sids:
        writes = [(BAN + ref, bans[0].get(sid), bans[1].get(sid))]
        writes.append((OPEN + ref, "1" if sid in seats[0] else None, "1" if sid in seats[1] else None))
        update = _update(writes, (sid in regular[1]) - (sid in regular[0]))
        if update is not None and sid in names:
            expression, values, attributes = update
            operations.append(Update(keys.door(names[sid], pool.id), expression, values, names=attributes))
    return operations


def _update(
    writes: Sequence[tuple[str, str | None, str | None]], played: int
) -> tuple[str, dict[str, Any], dict[str, str]] | None:
    """The update expression that turns each attribute's first value into its second; None when nothing changes."""
    sets: list[str] = []
    removes: list[str] = []
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, (attribute, was, now) in enumerate(writes):
        if was == now:
            continue
        names[f"#n{number}"] = attribute
        if now is None:
            removes.append(f"#n{number}")
        else:
            sets.append(f"#n{number} = :v{number}")
            values[f"v{number}"] = now
    parts = []
    if sets:
        parts.append("SET " + ", ".join(sets))
    if removes:
        parts.append("REMOVE " + ", ".join(removes))
    if played:
        parts.append("ADD #regular_games :played")
        values["played"] = played
    return (" ".join(parts), values, names) if parts else None
