"""Games: submitting, reading, correcting, voiding, quits."""

from __future__ import annotations

from functions.api import answers, models
from functions.api.http import Request
from functions.api.routing import CURSOR, IDEMPOTENCY_KEY, IF_MATCH, PREVIEW, PREVIEW_TOKEN, Access, Parameter, route
from shared.problems import BadField, Problem, forbidden, invalid
from shared.store.pools import Pool
from shared.usecases import exporting, games, pools
from shared.usecases.drafts import Answer

GAME = "/v1/pools/{pool}/games/{game}"
MONTH = Parameter(
    "month",
    {"type": "string", "pattern": "^[12][0-9]{3}-(0[1-9]|1[0-2])$"},
    "In the pool's time zone, by when the games ended.",
    required=True,
)


def submittable_pool(request: Request) -> Pool:
    """The pool in the path, which the sending club may submit to."""
    pool = pools.require(request.ctx, request.existing_id("pool"), request.ahead)
    if pool.clubs is not None and request.club not in pool.clubs and not request.admin:
        raise forbidden("This club may not submit to this pool.")
    return pool


def _own_game(request: Request) -> tuple[Pool, tuple[str, str]]:
    """Pool and game in the path; the game the sender's own."""
    pool, ref = submittable_pool(request), request.game()
    if not request.sender.owns(ref[0]):
        raise forbidden("This game belongs to another club.")
    return pool, ref


@route(
    "POST",
    "/v1/pools/{pool}/games",
    Access.SUBMIT,
    {200: answers.Reply, 201: answers.Game, 202: answers.Job},
    problems=(409,),
    body=models.GameBody,
    parameters=(IDEMPOTENCY_KEY, PREVIEW, PREVIEW_TOKEN),
    existing=("pool",),
)
def submit(request: Request) -> Answer:
    """Send a game, finished or open; the same again changes nothing."""
    pool = submittable_pool(request)
    body, wrong = request.model_in_part(models.GameBody, time_zone=pool.time_zone)
    return games.submit(
        request.ctx,
        pool,
        request.club,
        body.draft(wrong),
        idempotency_key=request.idempotency_key(),
        body_digest=request.digest,
        preview=request.flag("preview"),
        preview_token=request.text("preview_token"),
    )


@route(
    "GET",
    "/v1/pools/{pool}/games",
    Access.SUBMIT,
    {200: answers.GamesOfMonth},
    problems=(422,),
    parameters=(MONTH, CURSOR),
    existing=("pool",),
)
def games_of_month(request: Request) -> Answer:
    """One's own club's rated games of a month as a CSV file that an import takes again."""
    pool = submittable_pool(request)
    month = request.text("month") or ""
    return Answer(200, exporting.games_of_month(request.ctx, pool, request.club, month, request.text("cursor")))


@route("GET", GAME, Access.KNOWN, {200: answers.Game}, existing=("pool", "game"))
def get_game(request: Request) -> Answer:
    """A game and what it changed; one's own by `game_id`, any by `club:game_id`."""
    pool, ref = pools.require(request.ctx, request.existing_id("pool")), request.game()
    return Answer(200, games.read(request.ctx, pool, ref))


@route(
    "PUT",
    GAME,
    Access.SUBMIT,
    {200: answers.Reply, 202: answers.Job},
    problems=(409, 412, 428),
    body=models.CorrectionBody,
    parameters=(IF_MATCH, PREVIEW, PREVIEW_TOKEN),
    existing=("pool", "game"),
)
def correct(request: Request) -> Answer:
    """Correct a game, finish an open one, or revive a void one; what is left out keeps its value."""
    pool, ref = _own_game(request)
    body, wrong = request.model_in_part(models.CorrectionBody, time_zone=pool.time_zone)
    if body.game_id not in (None, ref[1]):
        wrong.append(BadField("game_id", "another-game", "This is not the game in the path."))
    try:
        if_match = request.if_match()
    except Problem as problem:
        raise invalid([*wrong, *problem.errors]) if wrong else problem from None
    return games.correct(
        request.ctx,
        pool,
        request.club,
        ref,
        body.draft(wrong),
        reason=body.reason,
        if_match=if_match,
        admin=request.admin,
        preview=request.flag("preview"),
        preview_token=request.text("preview_token"),
    )


@route(
    "POST",
    GAME + "/void",
    Access.SUBMIT,
    {200: answers.Reply, 202: answers.Job},
    problems=(409,),
    body=models.VoidBody,
    parameters=(PREVIEW, PREVIEW_TOKEN),
    existing=("pool", "game"),
)
def void(request: Request) -> Answer:
    """Take a game back; its ratings are as if it had not been."""
    pool, ref = _own_game(request)
    body = request.model(models.VoidBody)
    return games.void(
        request.ctx,
        pool,
        request.club,
        ref,
        reason=body.reason,
        admin=request.admin,
        preview=request.flag("preview"),
        preview_token=request.text("preview_token"),
    )


@route(
    "POST",
    GAME + "/quits",
    Access.SUBMIT,
    {200: answers.Reply, 201: answers.Reply},
    problems=(409,),
    body=models.QuitBody,
    existing=("pool", "game"),
)
def quit_game(request: Request) -> Answer:
    """A player left an open game; rated at once."""
    pool, ref = _own_game(request)
    body = request.model(models.QuitBody)
    return games.quit(request.ctx, pool, request.club, ref, body.player, body.at)


@route(
    "POST",
    GAME + "/quits/{player}/return",
    Access.SUBMIT,
    {200: answers.Reply},
    problems=(409,),
    body=models.ReturnBody,
    existing=("pool", "game", "player"),
)
def return_to_game(request: Request) -> Answer:
    """A player came back in time and has not quit."""
    pool, ref = _own_game(request)
    player = request.existing_id("player")
    body = request.model(models.ReturnBody)
    return games.quit_return(request.ctx, pool, request.club, ref, player, body.at)
