"""A club's own games as a file: in the columns that an import reads, so that sending it again changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from shared.imports import game_cells, games_csv, says_all
from shared.ledger import calendar
from shared.ledger.order import iso, utc_month
from shared.problems import BadField, invalid
from shared.ratings.base import FINISH, Content
from shared.store import keys, people, rated
from shared.store.pools import Pool
from shared.usecases import games
from shared.usecases.context import Context
from shared.usecases.games import GameRef, Stored
from shared.usecases.reading import decode_cursor, encode_cursor

PAGE = 2000
"""Games of one answer: some 300 KB, and twenty reads of a hundred games."""


def cells_of(pool: Pool, stored: Stored, result: Content, zone: tzinfo) -> dict[str, str] | None:
    """A finished game as cells by column, or None for one that a file cannot say (see ``game_cells``).

    Args:
        result: its content as it is submitted, players by their ids.
    """
    game = stored.game
    if game.finished_at is None:
        return None
    told = {
        "game_id": game.game_id,
        "started_at": iso(game.started_at),
        "group": game.group,
        "tournament": game.tournament,
        "round": game.round,
        "note": stored.note,
        "result": result,
    }
    return game_cells(told, pool.system.name, zone)


def games_of_month(ctx: Context, pool: Pool, club: str, month: str, cursor: str | None) -> dict[str, Any]:
    """The rated games of a club that ended in a month of the pool's time zone, in played order.

    Returns:
        ``{"pool", "club", "month", "games", "shortened", "left_out", "csv", "next"}``: of ``shortened`` games the
        columns say the result without its quits, nils, substitutes or categories, ``left_out`` ones they cannot say at
        all; each answer's CSV begins with the headings.

    Raises:
        Problem: 422 for a month that is none.
    """
    if not re.fullmatch(r"[12][0-9]{3}-(0[1-9]|1[0-2])", month):
        raise invalid([BadField("month", "month", "A month is wanted, as 2026-11.")])
    refs, after = _refs(ctx, pool, club, month, decode_cursor(cursor))
    items = ctx.table.batch_get([keys.game(pool.id, *ref) for ref in refs])
    stored = [games.from_item(items[key]) for ref in refs if (key := keys.game(pool.id, *ref)) in items]
    sids = {sid for one in stored for sid in pool.system.mentioned(one.game.content)}
    persons = people.persons(ctx.table, sids)
    zone = calendar.zone(pool.time_zone)
    said: list[dict[str, str]] = []
    shortened = 0
    for one in stored:
        content = pool.system.translate(one.game.content, lambda sid: persons[sid].handle if sid in persons else sid)
        result = pool.system.as_submitted(content)
        if (row := cells_of(pool, one, result, zone)) is not None:
            said.append(row)
            shortened += not says_all(result)
    return {
        "pool": pool.id,
        "club": club,
        "month": month,
        "games": len(said),
        "shortened": shortened,
        "left_out": len(stored) - len(said),
        "csv": games_csv(said, pool.system.name).decode(),
        "next": None if after is None else encode_cursor(after),
    }


def _refs(ctx: Context, pool: Pool, club: str, month: str, after: str | None) -> tuple[list[GameRef], str | None]:
    """The club's games of a page, and the order of the last one when more follow."""
    year, number = int(month[:4]), int(month[5:])
    begin = calendar.closing_instant(year, number, pool.time_zone)
    end = calendar.closing_instant(*calendar.next_month(year, number), pool.time_zone)
    found: list[GameRef] = []
    last = ""
    for order, row in _moments(ctx, pool, begin, end, after):
        if row.kind != FINISH or row.game is None or row.game.club != club or not begin <= row.at < end:
            continue
        if len(found) == PAGE:
            return found, last
        found.append((club, row.game.game_id))
        last = order
    return found, None


def _moments(ctx: Context, pool: Pool, begin: int, end: int, after: str | None) -> Iterator[tuple[str, Any]]:
    view = rated.read_cursor(ctx.table, pool.id).view
    for month in dict.fromkeys((utc_month(begin), utc_month(end - 1))):
        for order, text in rated.read_month(ctx.table, pool.id, month, view, first=after):
            if after is None or order > after:
                yield order, rated.load_rated(text)
