"""Every refusal is a problem document (RFC 9457) with a stable code and, for bad input, every wrong field at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True)
class BadField:
    """One wrong field: its path in the body (``result.teams[0][1]``) or the parameter's name."""

    field: str
    code: str
    message: str


@dataclass
class Problem(Exception):
    """A refusal the caller can act on. Nothing was stored.

    Args:
        status: HTTP status.
        code: stable, machine-readable, kebab-case.
        detail: one plain sentence for a person.
        errors: every wrong field.
        extra: further members of the document, e.g. ``existing``.
        retry_after: seconds, for 409 (still running), 429 and 503.
    """

    status: int
    code: str
    detail: str
    errors: Sequence[BadField] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    retry_after: int | None = None

    def document(self) -> dict[str, Any]:
        """The body: ``{type, title, status, detail, code, errors}`` and the extra members."""
        return {
            "type": f"urn:clubladder:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "errors": [{"field": e.field, "code": e.code, "message": e.message} for e in self.errors],
            **self.extra,
        }


def invalid(errors: Sequence[BadField], detail: str = "The request has fields that are not valid.") -> Problem:
    """422 with every wrong field."""
    return Problem(422, "invalid", detail, errors)


def not_found(what: str) -> Problem:
    """404 for a club, pool, player, game or import that does not exist."""
    return Problem(404, "not-found", f"There is no such {what}.")


def forbidden(detail: str) -> Problem:
    """403: the key may not do this."""
    return Problem(403, "forbidden", detail)


def busy() -> Problem:
    """503: the table did not take the call; nothing was stored; try again."""
    return Problem(503, "busy", "The service is busy. Nothing was stored; please try again.", retry_after=2)
