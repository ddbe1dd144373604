"""Health and the OpenAPI document."""

from __future__ import annotations

from functions.api import answers
from functions.api.http import Request
from functions.api.routing import Access, route
from shared.usecases.drafts import Answer


@route("GET", "/v1/health", Access.OPEN, {200: answers.Health})
def health(request: Request) -> Answer:  # noqa: ARG001
    """Whether the service answers."""
    return Answer(200, {"status": "ok"})


@route("GET", "/v1/openapi.json", Access.OPEN, {200: answers.Reply})
def openapi(request: Request) -> Answer:  # noqa: ARG001
    """This document."""
    from functions.api.openapi import document  # here: only this route needs the schemas of all models

    return Answer(200, document())
