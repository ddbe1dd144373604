"""Clubs and their keys."""

from __future__ import annotations

from functions.api import answers, models
from functions.api.http import Request
from functions.api.routing import Access, route
from shared.ids import fold_id
from shared.problems import forbidden, not_found
from shared.usecases import attention, clubs
from shared.usecases.drafts import Answer


@route("PUT", "/v1/clubs/{club}", Access.ADMIN, {200: answers.Club, 201: answers.Club}, body=models.ClubBody)
def put_club(request: Request) -> Answer:
    """Make a club, or name it anew."""
    club, wrong = request.new_id("club")
    body = request.model(models.ClubBody, wrong)
    created = clubs.put(request.ctx, club, body.name)
    return Answer(201 if created else 200, {"club": club, "name": body.name})


@route(
    "POST",
    "/v1/clubs/{club}/keys",
    Access.ADMIN,
    {201: answers.NewKey},
    body=models.KeyBody,
    existing=("club",),
)
def make_key(request: Request) -> Answer:
    """Make a key of a club; the key itself is shown only here."""
    club = request.existing_id("club")
    clubs.require(request.ctx, club)
    body = request.model(models.KeyBody, club=club)
    return Answer(201, clubs.give_key(request.ctx, club, body.scopes, body.label))


@route("GET", "/v1/clubs/{club}/keys", Access.ADMIN, {200: answers.Keys}, existing=("club",))
def list_keys(request: Request) -> Answer:
    """A club's keys, without their secrets."""
    club = request.existing_id("club")
    clubs.require(request.ctx, club)
    return Answer(200, {"keys": clubs.list_keys(request.ctx, club)})


@route("DELETE", "/v1/clubs/{club}/keys/{key_id}", Access.ADMIN, {204: None}, existing=("club", "key_id"))
def revoke_key(request: Request) -> Answer:
    """Revoke a key at once."""
    club, key_id = request.existing_id("club"), request.path_text("key_id")
    if not fold_id(key_id):
        raise not_found("key")
    clubs.revoke(request.ctx, club, key_id)
    return Answer(204, {})


@route("GET", "/v1/clubs/{club}/attention", Access.SUBMIT, {200: answers.Attention}, existing=("club",))
def club_attention(request: Request) -> Answer:
    """What a club should look at: held and forgotten games, warnings, questions."""
    club = request.existing_id("club")
    if not request.sender.owns(club):
        raise forbidden("This is another club's.")
    clubs.require(request.ctx, club)
    return Answer(200, attention.attention(request.ctx, club))
