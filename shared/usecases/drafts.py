"""What comes through the door, parsed in form but not yet checked against a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.problems import BadField


@dataclass(frozen=True)
class GameDraft:
    """A game as a club sent it. Instants in microseconds; players as handles; `result` and `line_up` still raw JSON."""

    game_id: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    rated: bool = True
    group: str | None = None
    tournament: str | None = None
    round: int | None = None
    sequence: int = 0
    note: str = ""
    result: Any = None
    line_up: Any = None
    distinct: bool = False
    register: tuple[tuple[str, str], ...] = ()
    """(handle, name) of players to register with this submission."""
    given: frozenset[str] = frozenset()
    """Names of the fields the body had: a correction keeps the value of the others."""
    wrong: tuple[BadField, ...] = ()
    """Fields that were wrong in form and are left out here: nothing may be stored, but the rest is checked too."""


@dataclass(frozen=True)
class Answer:
    """What a use case answers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
