"""How far a pool's results stray from expectation, and the K that follows. Only shown: a dated rule applies it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from shared.ledger.explain import rated_game
from shared.ledger.fold import Rated, settings_since
from shared.problems import BadField, Problem, invalid
from shared.ratings.base import FINISH, CalibratingSystem, CannotCalibrate, CannotRate, Spread
from shared.store import keys, pools, rated
from shared.store.pools import Pool
from shared.store.table import Put
from shared.usecases.context import Context
from shared.usecases.eligibility import settings_at


def calibration(ctx: Context, pool: Pool, reference_id: str | None) -> dict[str, Any]:
    """σ, number of games and K of a pool; with a reference, its figures too, and as ``k`` the K that makes a game of
    either weigh alike (``k_now`` is the one in force).

    To apply it, an admin sends the pool's rules with one more entry: the day ``from`` which it holds, and ``k``.

    Raises:
        Problem: 422 for a pool whose rules know no calibration, or a reference that is none; 409 ``cannot-calibrate``
            with the reason: fewer than 30 games on either side, or a σ of 0.
    """
    system = _system(pool, "pool")
    own = _spread(ctx, pool, system)
    told = _shown(ctx, pool, system, own)
    if reference_id is None:
        return told
    reference = pools.load(ctx.table, reference_id)
    if reference is None:
        raise invalid([BadField("reference", "unknown-pool", "There is no such pool.")])
    if reference.system.name != pool.system.name:
        raise invalid([BadField("reference", "another-system", "The reference has other rules than this pool.")])
    standard = _spread(ctx, reference, system)
    told |= {"k": None, "k_now": told["k"], "reference": _shown(ctx, reference, system, standard)}
    try:
        k = system.calibrated_k(told["reference"]["k"], standard, own)
    except CannotCalibrate as error:
        raise Problem(409, "cannot-calibrate", error.reason, extra=told) from None
    return {**told, "k": k}


def _system(pool: Pool, field: str) -> CalibratingSystem:
    if not isinstance(pool.system, CalibratingSystem):
        raise invalid([BadField(field, "no-calibration", "The rules of this pool know no calibration.")])
    return pool.system


def _shown(ctx: Context, pool: Pool, system: CalibratingSystem, spread: Spread) -> dict[str, Any]:
    k = system.k_of(settings_at(pool, ctx.clock()))
    return {"pool": pool.id, "games": spread.games, "sigma": spread.sigma, "k": k}


def _spread(ctx: Context, pool: Pool, system: CalibratingSystem) -> Spread:
    """σ over all rated games; worked out once for every state of the pool, since it reads every game."""
    cursor = rated.read_cursor(ctx.table, pool.id)
    pk, sk = keys.calibration(pool.id)
    known = ctx.table.get(pk, sk)
    if known is not None and known["version"] == cursor.version:
        return msgspec.json.decode(known["spread"], type=Spread)
    months = rated.read_index(ctx.table, pool.id).months
    rows = rated.read_rated(ctx.table, pool.id, months, cursor.view)
    spread = system.spread(_deviations(pool, system, rows))
    text = msgspec.json.encode(spread).decode()
    ctx.table.write(Put({"pk": pk, "sk": sk, "version": cursor.version, "spread": text}))
    return spread


def _deviations(pool: Pool, system: CalibratingSystem, rows: Iterable[Rated]) -> Iterator[float]:
    for row in rows:
        game = rated_game(pool.system, row)
        if row.kind != FINISH or game is None:
            continue
        players = pool.system.players(game.content)
        start: Mapping[str, tuple[int, int]] = dict(zip(players, [(r[0], r[1]) for r in row.start], strict=True))
        try:
            yield system.deviation(game, start, settings_since(pool.rules, row.rules))
        except CannotRate:  # pragma: no cover - it was rated under these very settings
            continue
