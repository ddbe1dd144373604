"""What anybody may read: a player in a pool with his history, the list as it was last published."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Iterable
from typing import Any

from shared.ledger import calendar
from shared.ledger.explain import changes_of, translate_players
from shared.ledger.fold import Rated
from shared.ledger.order import instant_of, iso
from shared.problems import BadField, invalid, not_found
from shared.ratings.base import DecayingSystem, PlayerState, RuleSystem, Settings
from shared.store import keys, people, pools
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.store.rated import View
from shared.store.table import Busy, Table
from shared.usecases import published
from shared.usecases.context import Context
from shared.usecases.games import names

VIEWS = 8
"""How often a reader looks again when results come in between two of his reads."""
PAGE = 50
"""Lines of history an answer holds."""


def encode_cursor(text: str) -> str:
    """A page's cursor: opaque to the reader."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> str | None:
    """What ``encode_cursor`` made. Raises Problem 422 for anything else."""
    if cursor is None:
        return None
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        raise invalid([BadField("cursor", "invalid", "This is not a cursor of an answer.")]) from None


def record_of(state: PlayerState) -> dict[str, int]:
    """Games, won, drawn, lost as the API shows them."""
    return {"games": state.games, "won": state.won, "drawn": state.drawn, "lost": state.lost}


def history_rows(
    table: Table, pool: str, sid: str, view: View, *, before: str | None = None, limit: int | None = PAGE
) -> tuple[list[Rated], str | None]:
    """A player's rated moments, newest first, and where the next page begins.

    One query of pointers and one batch read per page; a player of 20,000 games is read page by page.
    """
    rows: list[Rated] = []
    last = before
    want = limit if limit is not None else 10**9
    while len(rows) < want:
        step = min(want - len(rows), 100)
        pointers = list(table.query(keys.history(pool, sid), after=last, forward=False, limit=step))
        if not pointers:
            return rows, None
        wanted = [rated_store.rated_key(pool, item["sk"], instant_of(item["sk"])) for item in pointers]
        found = table.batch_get(wanted)
        for key in wanted:
            text = view.pick(found.get(key))
            if text is None:
                continue
            row = rated_store.load_rated(text)
            if any(player == sid for player, *_ in row.after):
                rows.append(row)
        last = pointers[-1]["sk"]
        if len(pointers) < step:
            return rows, None
    return rows, last


def history_line(system: RuleSystem, pool: Pool, row: Rated, sid: str) -> dict[str, Any]:
    """A line of a player's history as the API shows it, players still as server-made ids."""
    change = next(c for c in changes_of(system, pool.rules, row) if c["player"] == sid)
    game = f"{row.game.club}:{row.game.game_id}" if row.game is not None else None
    return {
        "at": change["at"],
        "kind": change["kind"],
        "game": game,
        "before": change["before"],
        "after": change["after"],
        "change": change["change"],
        "explanation": change["explanation"],
    }


def people_in(rows: Iterable[Rated], system: RuleSystem) -> set[str]:
    """Everybody whom rows name."""
    found: set[str] = set()
    for row in rows:
        found.update(player for player, *_ in row.after)
        if row.game is not None:
            found.update(system.mentioned(row.game.content))
            found.update(row.alias.values())
    return found


def standing_body(
    system: RuleSystem, settings: Settings, person: people.Person, state: PlayerState, place: int | None
) -> dict[str, Any]:
    """What the API says of a player in a pool, without his history."""
    return {
        "player": person.handle,
        "name": person.name,
        "rating": system.present(state.rating, state.index),
        "place": place,
        "record": record_of(state),
        "last_played": iso(state.last_played) if state.last_played is not None else None,
        "skill": None,
        **system.figures(state, settings),
    }


def player_in_pool(ctx: Context, pool: Pool, handle: str, cursor: str | None) -> dict[str, Any]:
    """A player in a pool, the newest lines of his history first. Raises Problem 404."""
    before = decode_cursor(cursor)
    person = people.find(ctx.table, handle)
    if person is None:
        raise not_found("player")
    for _ in range(VIEWS):
        known = rated_store.read_cursor(ctx.table, pool.id)
        try:
            rated_by = pools.as_rated(ctx.table, pool, known.rules_version)
            body = _player(ctx, rated_by, person, before, known.view)
        except rated_store.StaleView:
            continue
        if rated_store.read_cursor(ctx.table, pool.id).version == known.version:
            return body  # nothing was rated between two reads: rating and history belong together
    raise Busy("player")


def _player(ctx: Context, pool: Pool, person: people.Person, before: str | None, view: View) -> dict[str, Any]:
    system, table = pool.system, ctx.table
    sid = survivor(table, pool.id, view, person.sid)
    row = rated_store.read_states(table, pool.id, [sid], view).get(sid)
    if row is None:
        raise not_found("player in this pool")
    rows, following = history_rows(table, pool.id, sid, view, before=before)
    name = names(ctx, people_in(rows, system) | {sid})
    shown = person if sid == person.sid else people.persons(table, [sid])[sid]
    body = standing_body(system, pool.settings, shown, row.state, published.place_of(ctx, pool.id, sid))
    lines = [history_line(system, pool, r, sid) for r in rows]
    body |= decay(pool, row.state, ctx.clock())
    body["history"] = translate_players(lines, lambda s: name.get(s, s))
    body["next"] = encode_cursor(following) if following is not None else None
    return body


def decay(pool: Pool, state: PlayerState, now: int) -> dict[str, Any]:
    """What the closings to come make of a rating unless its player plays: ``{"decay": [{"on": day, "index": 300}]}``.

    Empty where the rules know no inactivity.
    """
    system = pool.system
    if not isinstance(system, DecayingSystem):
        return {}
    present = pool.system.present(state.rating, state.index)
    coming = []
    for day, rating in system.decay_to_come(state, calendar.day_of(now, pool.time_zone).toordinal()):
        changed = {k: v for k, v in pool.system.present(*rating).items() if v != present[k]}
        coming.append({"on": dt.date.fromordinal(day).isoformat(), **changed})
    return {"decay": coming}


def survivor(table: Table, pool: str, view: View, sid: str) -> str:
    """Whom a server-made id stands for in a pool: itself, or whom it was merged into."""
    seen = {sid}
    while True:
        text = view.pick(table.get(keys.aliases(pool), sid))
        if text is None or text in seen:
            return sid
        sid = text
        seen.add(sid)


# -- the published list ------------------------------------------------------------------------------------------
def standings(ctx: Context, pool: Pool, cursor: str | None) -> dict[str, Any]:
    """The last published list, 100 lines an answer."""
    text = decode_cursor(cursor)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid([BadField("cursor", "invalid", "This is not a cursor of an answer.")])
    first = int(text or 0)
    last = published.load_cached(ctx, pool.id)
    if last is None:
        return {"publication": None, "standings": [], "next": None}
    rows = [row for row in last.rows if row.variant == published.MAIN]
    following = encode_cursor(str(first + 100)) if first + 100 < len(rows) else None
    return {
        "publication": last.publication,
        "standings": [published.public_row(pool, row) for row in rows[first : first + 100]],
        "next": following,
    }
