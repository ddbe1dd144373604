"""Every route against made-up requests: no crash, every answer as docs/openapi.json promises, and all that was stored
can be rated and published.

A run in `make test` sends some hundred cases from a fixed seed; `make fuzz` sends 10,000 (`FUZZ_CASES`, `FUZZ_SEED`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from functions.api.openapi import document
from functions.api.routing import ROUTES
from local.inprocess import System

CASES = int(os.environ.get("FUZZ_CASES", "480"))
SEED = int(os.environ.get("FUZZ_SEED", "20261130"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
POOLS: dict[str, dict[str, Any]] = {
    "duels": {"system": "bridier", "rules": [{"from": "2016-04-10"}]},
    "spades": {
        "system": "spades",
        "rules": [{"from": "2016-04-10", "k": {"first": 50, "up_to_games": 50, "then": 30}}],
    },
    "jass": {"system": "jass", "rules": [{"from": "2016-04-10"}]},
}
PLAYERS = ["anna", "beat", "carl", "dora"]
KNOWN: dict[str, list[str]] = {
    "club": ["bern", "basel", "admin"],
    "pool": list(POOLS),
    "player": PLAYERS,
    "game": ["g1", "bern:g1", "open", "bern:open", "basel:g1"],
}
TEXTS = ["<script>alert(1)</script>", "' OR 1=1 --", "..%2f..%2fetc", "a\r\nX-Evil: 1", "%00", "𐍈" * 20, " "]
"""What people who mean harm put into a path."""


@dataclass
class World:
    """A running system with something in it, and keys to it."""

    system: System
    keys: list[str | None]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with System.on_moto() as system:
        keys = []
        for club in ("bern", "basel"):
            system.admin("PUT", f"/v1/clubs/{club}", {"name": club})
            scopes = {"scopes": ["submit", "manage"]}
            keys.append(system.admin("POST", f"/v1/clubs/{club}/keys", scopes).body["key"])
        for player in PLAYERS:
            assert system.request("PUT", f"/v1/players/{player}", json={"name": player}, key=keys[0]).status == 201
        for pool, rules in POOLS.items():
            made = {"name": pool, "time_zone": "Europe/Zurich", "languages": ["en", "de"], **rules}
            assert system.admin("PUT", f"/v1/pools/{pool}", made).status == 201
        games: list[tuple[str, dict[str, Any]]] = [
            ("duels", {"game_id": "g1", "result": {"players": ["anna", "beat"], "winner": "anna"}}),
            ("jass", {"game_id": "g1", "result": {"teams": [["anna", "beat"], ["carl", "dora"]], "striche": [3, 0]}}),
            (
                "spades",
                {"game_id": "g1", "result": {"teams": [["anna", "beat"], ["carl", "dora"]], "outcome": "team1"}},
            ),
        ]
        for pool, game in games:
            game["finished_at"] = "2026-06-01T20:00:00Z"
            answer = system.request("POST", f"/v1/pools/{pool}/games", json=game, key=keys[0])
            assert answer.status == 201, answer.body
        opened = {
            "game_id": "open",
            "started_at": "2026-06-02T20:00:00Z",
            "line_up": {"teams": [PLAYERS[:2], PLAYERS[2:]]},
        }
        assert system.request("POST", "/v1/pools/spades/games", json=opened, key=keys[0]).status == 201
        system.settle()
        yield World(system, [system.admin_key, *keys, None, "cl_wrong"])


@pytest.fixture(scope="module")
def schema(world: World) -> Any:
    made = schemathesis.openapi.from_dict(document())
    made.app = world.system.wsgi
    made.config.generation.modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    return made


@pytest.mark.parametrize(("method", "path"), [(r.method, r.path) for r in ROUTES], ids=lambda part: part)
def test_no_request_makes_it_crash_or_break_its_promise(world: World, schema: Any, method: str, path: str) -> None:
    operation = schema[path][method]
    each = settings(
        max_examples=max(10, CASES // len(ROUTES)),
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    @seed(SEED)
    @each
    @given(case=operation.as_strategy(), data=st.data())
    def send(case: Any, data: st.DataObject) -> None:
        for name in case.path_parameters or {}:
            chosen = data.draw(st.sampled_from([*KNOWN.get(name, []), *TEXTS, None, None]))
            if chosen is not None:
                case.path_parameters[name] = chosen
        key = data.draw(st.sampled_from([world.keys[0], *world.keys]))
        headers = {"authorization": f"Bearer {key}"} if key else {}
        response = case.call(headers=headers)
        case.validate_response(response, checks=CHECKS)

    send()


def test_what_was_stored_is_rated_and_published(world: World) -> None:
    """Comes last: nothing that the door let in stops the rater or the publisher."""
    world.system.settle()
    queue = world.system.names["FailedPools"]
    assert "Messages" not in world.system.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
