"""A larger file on the real path: form, bucket, queue, importer; permissions as the template gives them."""

from __future__ import annotations

import time
from typing import Any

import urllib3

from local.testing import ServedProcess

GAMES = 1_000


def _club(served: ServedProcess, club: str) -> str:
    served.admin("PUT", f"/v1/clubs/{club}", {"name": club})
    key: str = served.admin("POST", f"/v1/clubs/{club}/keys", {"scopes": ["submit", "manage"]}).body["key"]
    rules = [{"from": "2016-01-01"}]
    pool = {"name": club, "system": "bridier", "time_zone": "Europe/Zurich", "languages": ["en"], "rules": rules}
    assert served.admin("PUT", f"/v1/pools/{club}", pool).status == 201
    for player in ("anna", "beat", "cora", "dario"):
        served.request("PUT", f"/v1/players/{club}-{player}", json={"name": player.title()}, key=key)
    return key


def _file(games: int, *, last: str = "1") -> bytes:
    players = ("Anna", "Beat", "Cora", "Dario")
    lines = ["game_id,date,time,player1,player2,winner"]
    for number in range(games):
        one, two = players[number % 4], players[(number + 1 + number // 4 % 3) % 4]
        winner = last if number == games - 1 else str(1 + number % 2)
        lines.append(
            f"g{number},2026-{1 + number % 9:02}-{1 + number % 28:02},{number % 24:02}:00,{one},{two},{winner}"
        )
    return "\n".join(lines).encode()


def _upload(served: ServedProcess, key: str, pool: str, data: bytes, query: str = "") -> Any:
    body = {"filename": "season.csv", "bytes": len(data)}
    answer = served.request("POST", f"/v1/pools/{pool}/uploads{query}", json=body, key=key)
    assert answer.status == 201, answer.body
    form = {**answer.body["fields"], "file": ("season.csv", data)}
    assert urllib3.request("POST", answer.body["url"], fields=form).status == 204
    deadline = time.monotonic() + 120
    while True:
        now = served.request("GET", f"/v1/imports/{answer.body['import_id']}", key=key)
        assert now.status == 200
        if now.body["status"] in ("done", "failed"):
            return now.body
        assert time.monotonic() < deadline, now.body
        time.sleep(0.2)


def test_an_upload_becomes_games_each_once(served: ServedProcess) -> None:
    key = _club(served, "season")
    data = _file(GAMES)
    first = _upload(served, key, "season", data)
    assert (first["status"], first["rows"], first["done"]) == ("done", GAMES, GAMES), first
    assert (first["report"]["new"], first["report"]["errors"]) == (GAMES, [])
    again = _upload(served, key, "season", data)["report"]
    assert (again["new"], again["unchanged"]) == (0, GAMES)
    served.settle()
    pool = served.admin("GET", "/v1/pools/season").body
    assert (pool["games"], pool["held"], pool["pending"]) == (GAMES, 0, 0)


def test_the_desk_may_send_a_file_to_where_the_form_says(served: ServedProcess) -> None:
    key = _club(served, "desk-file")
    form = served.request("POST", "/v1/pools/desk-file/uploads", json={"filename": "a.csv", "bytes": 9}, key=key).body
    policy = urllib3.request("GET", f"{served.url}/desk/").headers["content-security-policy"]
    allowed = next(part for part in policy.split(";") if part.strip().startswith("connect-src")).split()
    assert form["url"].rpartition("/")[0] in allowed


def test_strict_stores_nothing_of_a_file_with_one_bad_row(served: ServedProcess) -> None:
    key = _club(served, "strict")
    failed = _upload(served, key, "strict", _file(60, last="3.5"))
    assert failed["status"] == "failed"
    assert [(e["row"], e["column"]) for e in failed["report"]["errors"]] == [(61, "winner")]
    assert served.request("GET", "/v1/pools/strict/games/strict:g0").status == 404
    good = _upload(served, key, "strict", _file(60, last="3.5"), "?mode=lenient")["report"]
    assert (good["status"], good["new"], good["bad"]) == ("done", 59, 1)
