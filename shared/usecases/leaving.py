"""Leaving the ranking in the middle of a game is a quit first: so every game that ran just then gets it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shared.ledger.order import instant_of, just_before
from shared.ratings.base import Game
from shared.store import keys, ledger, people, rated
from shared.store.people import Person
from shared.store.pools import Pool
from shared.store.table import Busy, ConditionFailed
from shared.usecases import eligibility, games
from shared.usecases.context import Context
from shared.usecases.games import GameRef

ATTEMPTS = 3
ROWS = 50
"""Rated moments after the instant that are looked at; who leaves a game is not in fifty others that ran then too."""
WAITING = 2000
REASON = "Left the ranking during this game."


def leave_games(ctx: Context, pool: Pool, person: Person, at: int, by: str) -> None:
    """Make a player quit, at an instant, every rated game that ran at it. Doing it again changes nothing.

    Args:
        by: the club that sent it, as the games' revisions name it.
    """
    ahead = eligibility.read_ahead(ctx, pool, [person.handle])
    handles = [person.handle, *people.same_as(ahead.get(keys.handle(person.handle), {}))]
    own = set(people.resolve(ctx.table, handles).values()) | {person.sid}
    door = eligibility.doors(ctx, pool, [person.handle], ahead)[person.handle]
    refs = dict.fromkeys([*door.open_games, *_finished_later(ctx, pool, person.sid, at), *_waiting(ctx, pool, own)])
    for ref in refs:
        for _ in range(ATTEMPTS):
            if _quit(ctx, pool, ref, own, at, by):
                break
        else:
            raise Busy("leave")


def _runs(game: Game, at: int) -> bool:
    until = game.finished_at
    return game.rated and not game.void and game.started_at < at and (until is None or at <= until)


def _finished_later(ctx: Context, pool: Pool, sid: str, at: int) -> Iterator[GameRef]:
    """Rated games of a player that finished at or after an instant and had begun before it."""
    pointers = ctx.table.query(keys.history(pool.id, sid), first=just_before(at), limit=ROWS)
    wanted = [rated.rated_key(pool.id, item["sk"], instant_of(item["sk"])) for item in pointers]
    view = rated.read_cursor(ctx.table, pool.id).view
    for item in ctx.table.batch_get(wanted).values():
        text = view.pick(item)
        game = rated.load_rated(text).game if text is not None else None
        if game is not None and _runs(game, at):
            yield game.club, game.game_id


def _waiting(ctx: Context, pool: Pool, own: set[str]) -> Iterator[GameRef]:
    """Games of a player that are not rated yet."""
    for event in ledger.read_inbox(ctx.table, pool.id, WAITING):
        if event.game is not None and own & set(pool.system.players(event.game.content)):
            yield event.game.club, event.game.game_id


def _quit(ctx: Context, pool: Pool, ref: GameRef, own: set[str], at: int, by: str) -> bool:
    """Put the quit into one game. False when the game changed in between."""
    stored = games.load(ctx, pool, ref)
    game = stored.game
    if not _runs(game, at):
        return True
    by_sid = games.names(ctx, pool.system.mentioned(game.content))
    for sid in own & set(pool.system.players(game.content)):
        new = eligibility.leave(pool, game, by_sid, by_sid[sid], at)
        if new is game:
            continue
        new = msgspec.structs.replace(new, revision=game.revision + 1)
        write = games.next_revision(
            ctx, pool, stored, new, "quit" if game.finished_at is None else "corrected", by=by, reason=REASON
        )
        try:
            ctx.table.transact(write.operations)
        except ConditionFailed:
            return False
    return True
