"""Standings, players in a pool, quotes: open to everybody."""

from __future__ import annotations

from functions.api import answers
from functions.api.http import Request
from functions.api.models import LineUpBody
from functions.api.routing import CURSOR, Access, Parameter, route
from shared.usecases import pools, quotes, reading
from shared.usecases.drafts import Answer

MOST_GAIN = 1000
MINIMUM_GAIN = Parameter(
    "minimum_gain",
    {"type": "integer", "minimum": 0, "maximum": MOST_GAIN, "default": 1},
    "Only opponents a win against whom brings at least so much.",
)


@route(
    "GET",
    "/v1/pools/{pool}/standings",
    Access.OPEN,
    {200: answers.Standings},
    problems=(422,),
    parameters=(CURSOR,),
    existing=("pool",),
)
def standings(request: Request) -> Answer:
    """The last published list."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    return Answer(200, reading.standings(request.ctx, pool, request.text("cursor")))


@route(
    "GET",
    "/v1/pools/{pool}/players/{player}",
    Access.OPEN,
    {200: answers.PlayerInPool},
    problems=(422,),
    parameters=(CURSOR,),
    existing=("pool", "player"),
)
def player_in_pool(request: Request) -> Answer:
    """A player in a pool: rating, record, history."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    handle = request.existing_id("player")
    return Answer(200, reading.player_in_pool(request.ctx, pool, handle, request.text("cursor")))


@route(
    "GET",
    "/v1/pools/{pool}/players/{player}/opponents",
    Access.OPEN,
    {200: answers.Opponents},
    problems=(422,),
    parameters=(MINIMUM_GAIN, CURSOR),
    existing=("pool", "player"),
)
def opponents(request: Request) -> Answer:
    """Whom to play for a gain."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    handle = request.existing_id("player")
    gain = request.number("minimum_gain", 1, 0, MOST_GAIN)
    return Answer(200, quotes.opponents(request.ctx, pool, handle, gain, request.text("cursor")))


@route(
    "POST",
    "/v1/pools/{pool}/quote",
    Access.OPEN,
    {200: answers.Quote},
    body=LineUpBody,
    existing=("pool",),
)
def quote(request: Request) -> Answer:
    """What each outcome of a line-up would bring each player."""
    pool = pools.require(request.ctx, request.existing_id("pool"))
    body = request.model(LineUpBody)
    return Answer(200, quotes.quote(request.ctx, pool, body.model_dump()))
