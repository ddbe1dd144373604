"""Pydantic's errors as the wrong fields of a problem document, with the paths a client can follow in its own body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.problems import BadField

_CODES = {"extra_forbidden": "unknown-field", "value_error": "invalid", "string_pattern_mismatch": "pattern"}
_OBJECT = "An object is wanted: {...}."
_MESSAGES = {
    "extra_forbidden": "There is no such field.",
    "missing": "This field is required.",
    "model_type": _OBJECT,
    "dict_type": _OBJECT,
}
MOST_ERRORS = 100
"""A body of a megabyte can be wrong in 100,000 places; nobody reads more than this many."""


def path_text(steps: Sequence[str | int]) -> str:
    """``("teams", 0, 1)`` as ``teams[0][1]``."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def outermost(path: str) -> str:
    """``result.teams[0]`` as ``result``: the field of the body in which something is wrong."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def mentions(body: Any, text: str, steps: tuple[str | int, ...] = ()) -> Iterator[str]:
    """The paths at which a body has a text (an id: without regard to case)."""
    if isinstance(body, str):
        if body.strip().lower() == text:
            yield path_text(steps)
    elif isinstance(body, list):
        for number, entry in enumerate(body):
            yield from mentions(entry, text, (*steps, number))
    elif isinstance(body, Mapping):
        for name, entry in body.items():
            yield from mentions(entry, text, (*steps, name))


def _steps(location: Sequence[str | int], body: Any, absent: bool) -> tuple[tuple[str | int, ...], bool]:
    """The steps of an error in the body itself, and whether others named only the arm of a union that was tried.

    ``absent``: the last step is missed in the body, so it is one though it is not there.
    """
    steps: list[str | int] = []
    here, arm = body, False
    for number, step in enumerate(location):
        last = number == len(location) - 1
        if isinstance(step, int):
            if not isinstance(here, list):
                arm = True
                continue
            here = here[step] if step < len(here) else None
        elif isinstance(here, Mapping) and (step in here or (last and absent)):
            here = here.get(step)
        else:
            arm = True
            continue
        steps.append(step)
    return tuple(steps), arm


def bad_fields(error: ValidationError, body: Any, below: str = "") -> list[BadField]:
    """Every wrong field once.

    Args:
        body: the value that was validated, to tell a real step of a path from the name of a union's arm.
        below: the path of ``body`` in the whole request, e.g. ``result``.
    """
    found: dict[tuple[str | int, ...], tuple[bool, BadField]] = {}
    for entry in error.errors(include_url=False, include_input=False, include_context=False)[: MOST_ERRORS * 4]:
        steps, arm = _steps(entry["loc"], body, entry["type"] == "missing")
        if steps in found:
            continue
        inner = path_text(steps)
        path = inner if not below else below + (inner if inner.startswith("[") or not inner else "." + inner)
        kind = entry["type"]
        code = _CODES.get(kind, kind.replace("_", "-"))
        found[steps] = (arm, BadField(path[:200], code, _MESSAGES.get(kind, _sentence(entry["msg"]))))
    # Of a union's arms the one that got furthest is what was meant.
    return [
        field
        for steps, (arm, field) in found.items()
        if not (arm and any(len(o) > len(steps) and o[: len(steps)] == steps for o in found))
    ][:MOST_ERRORS]


def _sentence(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message if message.endswith((".", "!", "?")) else message + "."
