"""Small words for scenarios over HTTP: pools, players, games, and what they came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from local.inprocess import System

ZONE = "Europe/Zurich"


@dataclass
class Ladder:
    """A system with a club, `bern`, whose key may do everything a club may."""

    system: System
    key: str = ""
    pools: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = self.club("bern")

    def club(self, club: str, scopes: tuple[str, ...] = ("submit", "manage")) -> str:
        self.ok(self.system.admin("PUT", f"/v1/clubs/{club}", {"name": club.title()}))
        answer = self.ok(self.system.admin("POST", f"/v1/clubs/{club}/keys", {"scopes": list(scopes)}))
        return str(answer["key"])

    def pool(self, pool: str, system: str, *rules: dict[str, Any], **settings: Any) -> str:
        dated = list(rules) or [{"from": "2020-01-01", **settings}]
        body = {"name": pool.title(), "system": system, "time_zone": ZONE, "languages": ["en"], "rules": dated}
        self.ok(self.system.admin("PUT", f"/v1/pools/{pool}", body))
        if pool not in self.pools:
            self.pools.append(pool)
        return pool

    def players(self, names: str, key: str | None = None, **more: Any) -> None:
        for name in names.split():
            body = {"name": f"{name.title()} Muster", **more}
            self.ok(self.system.request("PUT", f"/v1/players/{name}", json=body, key=key or self.key))

    def start(self, pool: str, player: str, **start: Any) -> None:
        self.ok(self.system.admin("PUT", f"/v1/pools/{pool}/players/{player}", {"start": start}))

    def post(self, path: str, body: Any, *, key: str | None = None, status: int | None = None) -> Any:
        return self.expect(self.system.request("POST", path, json=body, key=key or self.key), status)

    def put(self, path: str, body: Any, *, revision: int | None = None, status: int | None = None) -> Any:
        headers = {"If-Match": f'"{revision}"'} if revision is not None else {}
        return self.expect(self.system.request("PUT", path, json=body, key=self.key, headers=headers), status)

    def send(self, pool: str, game_id: str, result: Any, finished: str, *, status: int = 201, **more: Any) -> Any:
        """Send a finished game."""
        body = {"game_id": game_id, "finished_at": finished, "result": result, **more}
        return self.post(f"/v1/pools/{pool}/games", body, status=status)

    def open(self, pool: str, game_id: str, line_up: Any, started: str, *, status: int = 201, **more: Any) -> Any:
        """Start a live game."""
        body = {"game_id": game_id, "started_at": started, "line_up": line_up, **more}
        return self.post(f"/v1/pools/{pool}/games", body, status=status)

    def get(self, path: str, status: int = 200) -> Any:
        return self.expect(self.system.request("GET", path, key=self.key), status)

    def games_of(self, pool: str, player: str) -> list[str]:
        """The rated games of a player, newest first."""
        history = self.get(f"/v1/pools/{pool}/players/{player}")["history"]
        return [line["game"].removeprefix("bern:") for line in history if line["kind"] == "game"]

    def rate(self) -> None:
        self.system.rate(self.pools)

    def hash(self, pool: str) -> str:
        """A pool's state hash once everything is rated."""
        self.rate()
        found = self.get(f"/v1/pools/{pool}")
        assert found["pending"] == 0, found
        return str(found["state_hash"])

    def rebuilt(self, pool: str) -> str:
        """The state hash that the ledger alone gives."""
        self.ok(self.system.admin("POST", f"/v1/pools/{pool}/rebuild", {}))
        return self.hash(pool)

    def rating(self, pool: str, player: str) -> Any:
        self.rate()
        rating = self.get(f"/v1/pools/{pool}/players/{player}")["rating"]
        return rating["rating"] if "rating" in rating else (rating["rank"], rating["index"])

    @staticmethod
    def expect(answer: Any, status: int | None) -> Any:
        if status is None:
            return answer
        assert answer.status == status, (answer.status, answer.body)
        return answer.body

    @classmethod
    def ok(cls, answer: Any) -> Any:
        assert answer.status < 300, (answer.status, answer.body)
        return answer.body


def duel(winner: str, loser: str) -> dict[str, Any]:
    return {"players": [winner, loser], "winner": winner}


def at(day: int, hour: int = 20, minute: int = 0, month: int = 3) -> str:
    """An instant of 2024 in Zurich's winter time."""
    return f"2024-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:00+01:00"


def fields(body: Any) -> list[tuple[str, str]]:
    return [(e["field"], e["code"]) for e in body["errors"]]
