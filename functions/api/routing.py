"""The table of routes: what each asks of a caller, takes and answers. Router and OpenAPI are both made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

from functions.api.http import Request
from shared.usecases.drafts import Answer


class Access(Enum):
    """Who may call a route. Ownership is checked by what the route does."""

    OPEN = "open"
    KNOWN = "known"
    """Open, but a key that is sent is looked at: it says whose game a plain ``game_id`` means."""
    SUBMIT = "submit"
    MANAGE = "manage"
    ADMIN = "admin"


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query or a header."""

    name: str
    schema: Mapping[str, Any]
    description: str
    where: str = "query"
    required: bool = False


@dataclass(frozen=True)
class Route:
    """One route."""

    method: str
    path: str
    access: Access
    function: Callable[[Request], Answer]
    answers: Mapping[int, type[BaseModel] | None]
    """The successful answers; None: no body."""
    problems: Sequence[int] = ()
    """Statuses of refusals beside those that follow from access, body and path."""
    body: type[BaseModel] | None = None
    parameters: Sequence[Parameter] = ()
    existing: Sequence[str] = ()
    """Parts of the path that must exist: 404."""
    takes_file: bool = False
    """The body is a file, as it is."""

    @property
    def query(self) -> frozenset[str]:
        """Names of the query's parameters. An admin says on any route which club he acts for."""
        return frozenset(p.name for p in self.parameters if p.where == "query") | {"club"}

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


ROUTES: list[Route] = []
"""All routes, in the order in which the modules of ``functions.api.routes`` define them."""

PREVIEW = Parameter("preview", {"type": "boolean", "default": False}, "Store nothing; answer what would happen.")
PREVIEW_TOKEN = Parameter(
    "preview_token", {"type": "string", "minLength": 1, "maxLength": 1000}, "Of a preview: 409 when the pool has moved."
)
CURSOR = Parameter("cursor", {"type": "string", "minLength": 1, "maxLength": 1000}, "`next` of the page before.")
IF_MATCH = Parameter(
    "If-Match",
    {"type": "string", "pattern": '^"[1-9][0-9]{0,8}"$'},
    "The revision this change builds on.",
    where="header",
    required=True,
)
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "A repeated request with the same key gets the same answer.",
    where="header",
)


def route(
    method: str,
    path: str,
    access: Access,
    answers: Mapping[int, type[BaseModel] | None],
    *,
    problems: Sequence[int] = (),
    body: type[BaseModel] | None = None,
    parameters: Sequence[Parameter] = (),
    existing: Sequence[str] = (),
    takes_file: bool = False,
) -> Callable[[Callable[[Request], Answer]], Callable[[Request], Answer]]:
    """Put a function into the table of routes."""

    def add(function: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        ROUTES.append(Route(method, path, access, function, answers, problems, body, parameters, existing, takes_file))
        return function

    return add
