"""What a game would be worth before it is played, by the same code that will rate it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.fields import mentions
from shared.problems import BadField, Problem, invalid, not_found
from shared.ratings.base import PlayerState, StakeSystem
from shared.store import people
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.usecases.context import Context
from shared.usecases.eligibility import settings_at
from shared.usecases.games import parse_content
from shared.usecases.reading import decode_cursor, encode_cursor, survivor

OPPONENTS = 200
"""Opponents an answer holds."""


def quote(ctx: Context, pool: Pool, body: Mapping[str, Any]) -> dict[str, Any]:
    """For a line-up: every possible outcome with each player's rating before, change, after.

    Raises:
        Problem: 422 for a line-up that is none, or a player who is not registered.
    """
    system, settings = pool.system, settings_at(pool, ctx.clock())
    try:
        parsed = parse_content(system, dict(body), "line_up", settings, 0, None, None)
    except Problem as problem:  # the body is the line-up, so paths in it begin there
        raise replace(problem, errors=[replace(e, field=_own_path(e.field)) for e in problem.errors]) from None
    content = parsed.content
    handles = parsed.seats or system.players(content)
    found = people.resolve(ctx.table, handles)
    unknown = [h for h in handles if h not in found]
    if unknown:
        raise invalid(
            [BadField(next(mentions(body, h), ""), "unknown-player", f"There is no player {h!r}.") for h in unknown]
        )
    view = rated_store.read_cursor(ctx.table, pool.id).view
    stands = {h: survivor(ctx.table, pool.id, view, sid) for h, sid in found.items()}
    if len(set(stands.values())) < len(stands):
        twice = [h for h in stands if sum(sid == stands[h] for sid in stands.values()) > 1]
        message = "These are one person, and nobody sits at a table twice."
        raise invalid([BadField(next(mentions(body, h), ""), "player-twice", message) for h in twice])
    rows = rated_store.read_states(ctx.table, pool.id, stands.values(), view)
    fresh = system.start(None, settings)
    states: dict[str, PlayerState] = {h: rows[s].state if s in rows else fresh for h, s in stands.items()}
    outcomes = []
    for outcome, ratings in system.quote(content, states, settings):
        players = []
        for handle, after in ratings.items():
            before = (states[handle].rating, states[handle].index)
            players.append(
                {
                    "player": handle,
                    "before": system.present(*before),
                    "change": system.present_change(before, after),
                    "after": system.present(*after),
                }
            )
        outcomes.append({"outcome": outcome, "players": players})
    return {"outcomes": outcomes}


def _own_path(field: str) -> str:
    return field.removeprefix("line_up").removeprefix(".")


def opponents(ctx: Context, pool: Pool, handle: str, minimum_gain: int, cursor: str | None) -> dict[str, Any]:
    """Whom a player can meet so that a win is worth at least ``minimum_gain``, best first.

    Raises:
        Problem: 404; 422 when the pool's rule system knows no stakes.
    """
    system = pool.system
    if not isinstance(system, StakeSystem):
        raise invalid([BadField("pool", "no-stakes", "The rules of this pool know no stakes.")])
    person = people.find(ctx.table, handle)
    if person is None:
        raise not_found("player")
    view = rated_store.read_cursor(ctx.table, pool.id).view
    sid = survivor(ctx.table, pool.id, view, person.sid)
    states = rated_store.read_all_states(ctx.table, pool.id, view)
    fresh = system.start(None, pool.settings)
    own = states[sid].state if sid in states else fresh
    others = [(s, (r.state.rating, r.state.index)) for s, r in states.items() if s != sid]
    worth = system.opponents_worth((own.rating, own.index), others, minimum_gain)
    worth.sort(key=lambda line: (-line[1], line[2], line[0]))
    text = decode_cursor(cursor)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid([BadField("cursor", "invalid", "This is not a cursor of an answer.")])
    first = int(text or 0)
    page = worth[first : first + OPPONENTS]
    named = people.persons(ctx.table, [s for s, *_ in page])
    return {
        "opponents": [{"player": named[s].handle, "gain": gain, "loss": loss} for s, gain, loss in page if s in named],
        "next": encode_cursor(str(first + OPPONENTS)) if first + OPPONENTS < len(worth) else None,
    }
