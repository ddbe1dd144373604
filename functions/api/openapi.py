"""The OpenAPI 3.1 document, made from the table of routes and the models.

``python -m functions.api.openapi`` writes the committed copy; a test compares.
Own small builder: powertools' would describe its own validation errors, which we never answer.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from functions.api import answers, routes
from functions.api.routing import ROUTES, Access, Parameter, Route
from shared.ids import ID_PATTERN
from shared.ratings import system_names

assert routes  # noqa: S101 - importing them has filled the table

FILE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
REFERENCE = "#/components/schemas/{model}"
REASONS = {
    200: "Done, or unchanged.",
    201: "Made.",
    202: "Accepted; done in a while.",
    204: "Done.",
    401: "No key, or one that is unknown or revoked.",
    403: "The key may not do this.",
    404: "There is no such thing.",
    409: "In conflict with what is stored.",
    412: "The revision has moved on.",
    413: "The body is too large.",
    422: "Not valid; every wrong field is named.",
    428: "`If-Match` is missing.",
    429: "Too many requests.",
    500: "A fault of ours.",
    503: "Busy; nothing was stored.",
}
RETRY_LATER = {409, 429, 503}
"""A 409 has it only where waiting helps (the first request under an Idempotency-Key still runs)."""
PARTS = {
    "game": {
        "type": "string",
        "pattern": f"^({ID_PATTERN}:)?{ID_PATTERN}$",
        "description": "`game_id` of one's own, or `club:game_id`.",
    }
}
PART = {"type": "string", "pattern": f"^{ID_PATTERN}$"}
CLUB = Parameter("club", PART, "The club an admin acts for; a club's key may name its own.")


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Clubladder",
            "version": "1",
            "description": "Results in, ratings out. Checks run in this order: 401, 403, 404, 422, 412, 409.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {str(status): _problem(status) for status in sorted(REASONS) if status >= 400},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A club's or admin's key."}},
        },
    }


def text() -> str:
    """The document as it is committed."""
    return json.dumps(document(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


# -- operations ----------------------------------------------------------------------------------------------------
def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.function.__name__,
        "summary": route.summary,
        "tags": [route.path.split("/")[2]],
        "x-access": route.access.value,
        "security": _security(route),
        "parameters": [_parameter(p) for p in _parameters(route)],
        "responses": {
            **{str(status): _answer(status, model) for status, model in route.answers.items()},
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in _problems(route)},
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _reference(route.body)}},
        }
    if route.takes_file:
        file = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": file}}
    return operation


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.access is Access.OPEN:
        return []
    return [{}, {"key": []}] if route.access is Access.KNOWN else [{"key": []}]


def _parameters(route: Route) -> list[Parameter]:
    parts = [
        Parameter(name, PARTS.get(name, PART), "", where="path", required=True)
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    acting = [CLUB] if route.access is not Access.OPEN else []
    return [*parts, *route.parameters, *acting]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {"description": parameter.description} if parameter.description else {}
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "schema": dict(parameter.schema),
        **described,
    }


def _problems(route: Route) -> list[int]:
    found = {*route.problems, 413, 429, 500, 503}
    if route.access is not Access.OPEN:
        found |= {401, 403, 422}  # 422: an admin names a club that does not exist
    if "{" in route.path:
        found.add(404)  # also what cannot be an address at all
    if route.body is not None or route.method != "GET":
        found.add(422)
    return sorted(found)


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=model.__name__)}


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"schema": {"type": "string"}} for name in names}


def _answer(status: int, model: type[BaseModel] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": REASONS[status], "headers": _headers("X-Request-Id")}
    if model is not None:
        answer["content"] = {"application/json": {"schema": _reference(model)}}
    return answer


def _problem(status: int) -> dict[str, Any]:
    names = ["X-Request-Id"]
    names += ["Retry-After"] if status in RETRY_LATER else []
    names += ["WWW-Authenticate"] if status == 401 else []
    return {
        "description": REASONS[status],
        "headers": _headers(*names),
        "content": {"application/problem+json": {"schema": _reference(answers.ProblemDocument)}},
    }


# -- schemas -------------------------------------------------------------------------------------------------------
def _schemas() -> dict[str, Any]:
    bodies = {r.body for r in ROUTES if r.body is not None}
    replies = {m for r in ROUTES for m in r.answers.values() if m is not None} | {answers.ProblemDocument}
    wanted: list[tuple[type[BaseModel], Any]] = [
        *((m, "validation") for m in sorted(bodies, key=lambda m: m.__name__)),
        *((m, "serialization") for m in sorted(replies, key=lambda m: m.__name__)),
    ]
    _, made = models_json_schema(wanted, ref_template=REFERENCE)
    schemas: dict[str, Any] = made["$defs"]
    schemas["PoolBody"]["properties"]["system"]["enum"] = system_names()
    return schemas


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
