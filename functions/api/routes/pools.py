"""Pools: defining, reading, rebuilding."""

from __future__ import annotations

from functions.api import answers, models
from functions.api.http import Request
from functions.api.routing import Access, Parameter, route
from shared.ids import fold_id
from shared.problems import BadField, invalid
from shared.store import clubs
from shared.usecases import calibration, pools, rebuild
from shared.usecases.drafts import Answer

REFERENCE = Parameter("reference", {"type": "string"}, "The pool whose games this one's are to weigh as much as.")


@route(
    "PUT",
    "/v1/pools/{pool}",
    Access.ADMIN,
    {200: answers.Pool, 201: answers.Pool},
    problems=(409,),
    body=models.PoolBody,
)
def put_pool(request: Request) -> Answer:
    """Open a pool, or change its name, languages, clubs and rules."""
    pool_id, wrong = request.new_id("pool")
    named = {folded for text in request.strings("clubs") if (folded := fold_id(text))}
    known = clubs.existing(request.ctx.table, named) if named else set()
    body = request.model(models.PoolBody, wrong, clubs=known)
    draft = pools.PoolDraft(
        name=body.name,
        system=body.system,
        time_zone=body.time_zone,
        languages=tuple(body.languages),
        clubs=tuple(body.clubs) if body.clubs is not None else None,
        rules=tuple(body.rules),
    )
    created, pool = pools.put(request.ctx, pool_id, draft)
    return Answer(201 if created else 200, pools.definition(pool))


@route("GET", "/v1/pools/{pool}", Access.OPEN, {200: answers.PoolNow}, existing=("pool",))
def get_pool(request: Request) -> Answer:
    """A pool, how far it is rated, and its state hash."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    return Answer(200, pools.read(request.ctx, pool))


@route(
    "GET",
    "/v1/pools/{pool}/calibration",
    Access.OPEN,
    {200: answers.Calibration},
    problems=(409, 422),
    parameters=(REFERENCE,),
    existing=("pool",),
)
def calibrate(request: Request) -> Answer:
    """How far results stray from expectation, and the K that would make this pool weigh as much as another."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    text = request.text("reference")
    reference = fold_id(text) if text is not None else None
    if text is not None and reference is None:
        raise invalid([BadField("reference", "unknown-pool", "There is no such pool.")])
    return Answer(200, calibration.calibration(request.ctx, pool, reference))


@route(
    "POST",
    "/v1/pools/{pool}/rebuild",
    Access.ADMIN,
    {202: answers.Job},
    body=models.EmptyBody,
    existing=("pool",),
)
def rebuild_pool(request: Request) -> Answer:
    """Make the ratings anew from the ledger alone."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    request.model(models.EmptyBody)
    return Answer(202, rebuild.request(request.ctx, pool))
