"""Who may play ranked: checked at the door, against what is rated and waiting at that time; never again by a replay.

The door keeps one item per player and pool: the bans that his quits brought (one attribute a game), the open games he
sits in, his unrated games, and what he said of ``rank_me``. They are written in the transaction of what causes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.ledger import calendar
from shared.ledger.order import iso
from shared.ledger.rules import in_force
from shared.problems import BadField, invalid
from shared.ratings.base import MICROSECONDS, Game, LiveSystem
from shared.store import keys, people
from shared.store.pools import Pool
from shared.store.table import Item, Key, Operation, Update
from shared.usecases.context import Context

BAN = "ban:"
OPEN = "open:"


@dataclass(frozen=True)
class Ban:
    """From when until when a player may not start a ranked game, instants; the end is open."""

    since: int
    until: int


def has_door(pool: Pool) -> bool:
    """Whether the pool's rule system keeps anybody out at the door."""
    return isinstance(pool.system, LiveSystem)


def bans_of(door: Mapping[str, Any]) -> list[Ban]:
    """All bans an item of the door tells of."""
    found = []
    for name, value in door.items():
        if name.startswith(BAN):
            since, until = value.split(",")
            found.append(Ban(int(since), int(until)))
    if door.get("opt_out_until"):
        found.append(Ban(door["rank_me_at"], door["opt_out_until"]))
    return found


def open_games_of(door: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The open rated games a player sits in: (club, game id)."""
    return [(n.split(":")[1], n.split(":", 2)[2]) for n in door if n.startswith(OPEN)]


def _settings(pool: Pool, game: Game) -> Any:
    number = in_force(pool.rules, game.started_at)
    return pool.rules[number or 0].settings


def check(
    ctx: Context, pool: Pool, game: Game, handles: Mapping[str, str], ahead: Mapping[Key, Item]
) -> list[Operation]:
    """Refuse a rated game whose players may not play it; the door's own writes for one that is accepted.

    Args:
        handles: handle → server-made id of everybody in the game.
        ahead: items read before, the door's among them where the body named the players.

    Raises:
        Problem: 422 naming the rule, the player and, for a ban, the time it ends.
    """
    _refuse_erased(handles, ahead)
    if not has_door(pool):
        return []
    doors = {h: ahead.get(keys.door(h, pool.id), {}) for h in handles}
    if game.rated:
        _refuse(ctx, pool, game, handles, doors)
    return after_change(pool, None, game, ctx, handles)


def _refuse_erased(handles: Mapping[str, str], ahead: Mapping[Key, Item]) -> None:
    """The pseudonym of an erased person is no player any more; old games keep it, new ones may not take it up."""
    erased = [h for h in handles if ahead.get(keys.handle(h), {}).get("erased")]
    if erased:
        raise invalid([BadField("", "erased-player", f"{h} was erased and plays no more.") for h in erased])


def _refuse(
    ctx: Context, pool: Pool, game: Game, handles: Mapping[str, str], doors: Mapping[str, Mapping[str, Any]]
) -> None:
    settings = _settings(pool, game)
    wants = settings.eligibility
    below = "line_up" if game.finished_at is None else "result"
    by_sid = {sid: handle for handle, sid in handles.items()}
    seats = [by_sid[sid] for sid in pool.system.players(game.content)]
    known = people.persons(ctx.table, [handles[h] for h in seats]) if wants.registered else {}
    errors: list[BadField] = []
    for handle in seats:
        door = doors[handle]
        for ban in bans_of(door):
            if ban.since <= game.started_at < ban.until:
                text = f"{handle} is banned from ranked games until {iso(ban.until)}."
                errors.append(BadField(below, "banned", text))
                break
        if wants.rank_me and door.get("rank_me") is False:
            errors.append(BadField(below, "rank-me-off", f"{handle} has switched rank_me off."))
        minimum, played = wants.minimum_regular_games or 0, door.get("regular_games", 0)
        if played < minimum:
            text = f"{handle} has played {played} regular (unrated) games; ranked games need {minimum}."
            errors.append(BadField(below, "minimum-regular-games", text))
        if wants.registered and not _registered(pool, known.get(handles[handle]), game.started_at):
            errors.append(BadField(below, "not-registered", f"{handle} is not a registered player."))
    if wants.no_robots_at_start and isinstance(pool.system, LiveSystem):
        for seat in pool.system.robots_at_start(game.content, game.started_at):
            text = (
                f"A robot had the seat of {by_sid.get(seat, seat)} from the start; ranked games begin without robots."
            )
            errors.append(BadField(below, "robot-at-start", text))
    if errors:
        raise invalid(errors, "Not everybody may play this ranked game. It can be sent as an unrated one.")


def _registered(pool: Pool, person: people.Person | None, at: int) -> bool:
    if person is None or person.registered_on is None:
        return False
    return person.registered_on <= calendar.day_of(at, pool.time_zone).isoformat()


def _bans(pool: Pool, game: Game | None) -> dict[str, str]:
    """Server-made id → ban that a game's quits bring."""
    if game is None or not game.rated or game.void or not isinstance(pool.system, LiveSystem):
        return {}
    settings = _settings(pool, game)
    length = settings.quit_ban_minutes * 60 * MICROSECONDS
    if not length:
        return {}
    return {q.player: f"{q.at},{q.at + length}" for q in pool.system.quits(game, settings) if q.rated}


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
