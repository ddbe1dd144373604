"""Each example event of ``events/`` does to its handler what its trigger would: one file per function and trigger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local import template
from local.inprocess import System
from shared.store import clubs
from shared.store.table import Table
from shared.usecases.access import hash_of

EVENTS = Path(__file__).resolve().parents[2] / "events"
FUNCTIONS = {
    "api-submit": "ApiFunction",
    "rater-stream": "RaterFunction",
    "rater-sweep": "RaterFunction",
    "closing-schedule": "ClosingFunction",
    "publisher-queue": "PublisherFunction",
    "importer-queue": "ImporterFunction",
}
RATED = {"system": "jass", "time_zone": "Europe/Zurich", "languages": ["de"], "rules": [{"from": "2026-01-01"}]}


def _event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def club(system: System) -> System:
    """What the examples take for granted: a pool, four players, and the club whose key they carry."""
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    record = clubs.KeyRecord(hash_of("cl_example"), "bern", "example", ("submit",), "", 0)
    Table(system.dynamodb, system.names["Table"]).transact(clubs.key_operations(record))
    assert system.admin("PUT", "/v1/pools/schieber", {"name": "Schieber", **RATED}).status == 201
    for player in ("anna", "beat", "clara", "dora"):
        system.admin("PUT", f"/v1/players/{player}?club=bern", {"name": player.title()})
    return system


def _submit(system: System) -> Any:
    return system.invoke("ApiFunction", _event("api-submit"))


def _status(system: System) -> str:
    status: str = system.request("GET", "/v1/pools/schieber/games/bern:2026-11-03-t2-r1").body["status"]
    return status


def test_every_function_and_no_other_has_examples() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == set(FUNCTIONS)
    assert set(FUNCTIONS.values()) == set(template.of_type(template.read(), "AWS::Serverless::Function"))


def test_the_request_is_a_game_that_is_accepted_once(club: System) -> None:
    answer = _submit(club)
    assert answer["statusCode"] == 201, answer["body"]
    assert json.loads(answer["body"])["game_id"] == "2026-11-03-t2-r1"
    assert _submit(club)["statusCode"] == 200


@pytest.mark.parametrize("name", ["rater-stream", "rater-sweep"])
def test_stream_and_sweep_rate_what_waits(club: System, name: str) -> None:
    _submit(club)
    assert _status(club) == "pending"
    club.invoke(FUNCTIONS[name], _event(name))
    assert _status(club) == "rated"


def test_the_schedule_closes_up_to_its_own_time(club: System) -> None:
    """The example's time is later than that of the pool in any clock, or the pool has no month to freeze."""
    _submit(club)
    event = _event("closing-schedule")
    answer = club.invoke("ClosingFunction", {**event, "at": "2099-02-01T00:05:00Z"})
    assert "2099-01" in answer["frozen"]["schieber"]
    assert set(event) == {"at"}
    assert club.invoke("ClosingFunction", event)["frozen"] == {}
    assert _status(club) == "rated"


def test_the_queue_makes_the_publisher_write_the_pool(club: System) -> None:
    _submit(club)
    club.invoke("RaterFunction", _event("rater-stream"))
    assert club.page("/schieber/")[0] == 404
    assert club.invoke("PublisherFunction", _event("publisher-queue")) == {"batchItemFailures": []}
    status, kind, page = club.page("/schieber/games/bern/2026-11-03-t2-r1/")
    assert (status, kind.split(";")[0]) == (200, "text/html")
    assert b"Anna" in page


def test_the_announced_upload_of_nobody_is_no_error(club: System) -> None:
    """An object under ``uploads/`` without an import is a leftover: passed over, not retried for ever."""
    club.invoke("ImporterFunction", _event("importer-queue"))


def test_the_announced_upload_is_imported(club: System) -> None:
    rows = "game_id,date,team1_player1,team1_player2,team2_player1,team2_player2,striche1,striche2\n"
    rows += "u1,2026-11-03,Anna,Clara,Beat,Dora,3,0\n"
    made = club.request(
        "POST",
        "/v1/pools/schieber/uploads",
        json={"filename": "november.csv", "bytes": len(rows)},
        key="cl_example",
    )
    assert made.status == 201, made.body
    event = _event("importer-queue")
    body = json.loads(event["Records"][0]["body"])
    key = f"uploads/{made.body['import_id']}"
    assert body["Records"][0]["s3"]["object"]["key"].startswith("uploads/")
    body["Records"][0]["s3"]["object"]["key"] = key
    event["Records"][0]["body"] = json.dumps(body)
    club.s3.put_object(Bucket=club.names["DataBucket"], Key=key, Body=rows.encode())
    club.invoke("ImporterFunction", event)
    status = club.request("GET", f"/v1/imports/{made.body['import_id']}", key="cl_example").body
    assert status["status"] == "done", status
    club.settle()
    assert club.request("GET", "/v1/pools/schieber/games/bern:u1").body["status"] == "rated"
