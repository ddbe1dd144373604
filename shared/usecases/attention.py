"""What a club should look at: held games, games left open, warnings, and questions about its players; in all pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from shared.ledger.order import iso
from shared.ratings.base import MICROSECONDS, Game
from shared.store import attention as store
from shared.store import keys, people, pools, rated
from shared.store.pools import Pool
from shared.usecases.context import Context

LEFT_OPEN = 86_400 * MICROSECONDS
"""A game open for longer was probably forgotten."""
MOST = 200
"""Lines of each kind in an answer."""


def attention(ctx: Context, club: str) -> dict[str, Any]:
    """Everything a club should look at.

    Returns:
        ``held`` (games that cannot be rated, with the reason), ``open`` (games open for more than a day), ``warnings``
        (games with the warnings of their present revision), ``rows`` (files of which an import did not take all),
        ``questions`` (players of one name: one person or two?), at most 200 of each, and in ``more`` how many of each
        kind are left off.
    """
    held: list[dict[str, Any]] = []
    still_open: list[dict[str, Any]] = []
    before = ctx.clock() - LEFT_OPEN
    for pool_id in pools.all_ids(ctx.table):
        pool = pools.load(ctx.table, pool_id)
        if pool is None:
            continue
        view = rated.read_cursor(ctx.table, pool_id).view
        for row in rated.read_held(ctx.table, pool_id, view).values():
            if row.game.club == club:
                held.append({**_line(pool, row.game), "reason": row.reason})
        for opened in rated.read_open(ctx.table, pool_id, view).values():
            if opened.game.club == club and opened.game.started_at < before:
                still_open.append(_line(pool, opened.game))
    lists = {
        "held": held,
        "open": still_open,
        "warnings": list(_warnings(ctx, club)),
        "rows": store.files(ctx.table, club),
        "questions": list(_same_names(ctx, club)),
    }
    shown = {kind: lines[:MOST] for kind, lines in lists.items()}
    _name_players(ctx, [*shown["held"], *shown["open"]])
    return {"club": club, **shown, "more": {kind: max(0, len(lines) - MOST) for kind, lines in lists.items()}}


def _line(pool: Pool, game: Game) -> dict[str, Any]:
    return {
        "pool": pool.id,
        "game": f"{game.club}:{game.game_id}",
        "started_at": iso(game.started_at),
        "players": list(pool.system.mentioned(game.content)),
    }


def _name_players(ctx: Context, lines: Iterable[dict[str, Any]]) -> None:
    """Handles in place of server-made ids."""
    known = people.persons(ctx.table, {sid for line in lines for sid in line["players"]})
    for line in lines:
        line["players"] = [known[sid].handle if sid in known else sid for sid in line["players"]]


def _warnings(ctx: Context, club: str) -> Iterator[dict[str, Any]]:
    refs = list(store.warned(ctx.table, club))
    found = ctx.table.batch_get([keys.game(pool, club, game_id) for pool, game_id in refs])
    for pool, game_id in refs:
        item = found.get(keys.game(pool, club, game_id))
        warnings = msgspec.json.decode(item["warnings"]) if item is not None else []
        if warnings:
            yield {"pool": pool, "game": f"{club}:{game_id}", "warnings": warnings}


def _same_names(ctx: Context, club: str) -> Iterator[dict[str, Any]]:
    """Players of the club who bear one name: the roster is in the order of names, so they stand together."""
    together: list[tuple[str, str]] = []
    name = ""
    for handle, sid, spelt in people.roster(ctx.table, club):
        folded = people.search_name(spelt)
        if folded != name:
            yield from _question(ctx, together)
            together, name = [], folded
        together.append((handle, sid))
    yield from _question(ctx, together)


def _question(ctx: Context, together: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    if len(together) < 2:
        return
    known = people.persons(ctx.table, [sid for _, sid in together])
    apart = [p for p in known.values() if p.merged_into is None]
    if len(apart) > 1:
        yield {
            "code": "same-name",
            "name": apart[0].name,
            "players": sorted(p.handle for p in apart),
            "message": "These players bear one name: if they are one person, an admin can merge them.",
        }
