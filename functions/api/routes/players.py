"""Players, and what they are in a pool before they play."""

from __future__ import annotations

from functions.api import answers, models
from functions.api.http import Request
from functions.api.routing import PREVIEW, PREVIEW_TOKEN, Access, route
from shared.ids import fold_id
from shared.problems import forbidden
from shared.store import clubs
from shared.usecases import erasure, merging, people, pools
from shared.usecases.drafts import Answer


@route(
    "PUT",
    "/v1/players/{player}",
    Access.MANAGE,
    {200: answers.Player, 201: answers.Player},
    body=models.PlayerBody,
)
def put_player(request: Request) -> Answer:
    """Register a player, or change one's own."""
    player, wrong = request.new_id("player")
    if player:
        people.find_own(request.ctx, player, request.club, admin=request.admin)
    named = {folded for text in request.strings("clubs") if (folded := fold_id(text))}
    known = clubs.existing(request.ctx.table, named) if named else set()
    body = request.model(models.PlayerBody, wrong, clubs=known)
    draft = people.PersonDraft(
        name=body.name,
        clubs=tuple(body.clubs) if body.clubs is not None else None,
        registered_on=body.registered_on,
        given=frozenset(body.model_fields_set),
    )
    created, person = people.put(request.ctx, player, request.club, draft, admin=request.admin)
    return Answer(201 if created else 200, people.present(person))


@route("GET", "/v1/players/{player}", Access.OPEN, {200: answers.PlayerNow}, existing=("player",))
def get_player(request: Request) -> Answer:
    """A player and the pools he is in."""
    return Answer(200, people.read(request.ctx, request.existing_id("player")))


@route("DELETE", "/v1/players/{player}", Access.MANAGE, {202: answers.Erasure}, existing=("player",))
def erase_player(request: Request) -> Answer:
    """Erase a person: a pseudonym takes his place, everybody's numbers stay."""
    player = request.existing_id("player")
    return erasure.erase(request.ctx, player, request.club, admin=request.admin)


@route(
    "POST",
    "/v1/players/{player}/merge",
    Access.ADMIN,
    {200: answers.Preview, 202: answers.Merge},
    problems=(409,),
    body=models.MergeBody,
    parameters=(PREVIEW, PREVIEW_TOKEN),
    existing=("player",),
)
def merge_player(request: Request) -> Answer:
    """Say that this player is the same person as another, who survives."""
    player = request.existing_id("player")
    people.require_own(request.ctx, player, request.club, admin=True)
    body = request.model(models.MergeBody)
    return merging.merge(
        request.ctx,
        player,
        body.into,
        preview=request.flag("preview"),
        preview_token=request.text("preview_token"),
    )


@route(
    "POST",
    "/v1/players/{player}/unmerge",
    Access.ADMIN,
    {200: answers.Preview, 202: answers.Merge},
    problems=(409,),
    body=models.UnmergeBody,
    parameters=(PREVIEW, PREVIEW_TOKEN),
    existing=("player",),
)
def unmerge_player(request: Request) -> Answer:
    """Undo a merge; ratings are as if it had not been."""
    player = request.existing_id("player")
    people.require_own(request.ctx, player, request.club, admin=True)
    body = request.model(models.UnmergeBody)
    return merging.unmerge(
        request.ctx,
        player,
        body.into,
        preview=request.flag("preview"),
        preview_token=request.text("preview_token"),
    )


@route(
    "PUT",
    "/v1/pools/{pool}/players/{player}",
    Access.MANAGE,
    {200: answers.PlayerSetting},
    problems=(409,),
    body=models.PlayerInPoolBody,
    existing=("pool", "player"),
)
def put_player_in_pool(request: Request) -> Answer:
    """Carry over a start rating (admin), or take part in the ranking, or leave it."""
    if request.peek("start") and not request.admin:
        raise forbidden("Only an admin may carry over a start rating.")
    player, pool_id = request.existing_id("player"), request.existing_id("pool")
    person = people.require_own(request.ctx, player, request.club, admin=request.admin)
    pool = pools.require(request.ctx, pool_id)
    body = request.model(models.PlayerInPoolBody, pool=pool)
    if body.start is not None:
        return Answer(200, people.set_start(request.ctx, pool, person, body.start))
    return Answer(200, people.set_rank_me(request.ctx, pool, person, bool(body.rank_me), body.at, request.club))
