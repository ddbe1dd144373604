"""An operator's work on the deployed template in the emulator, with its permission checks on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local import redrive
from local.__main__ import main
from local.deploy import STACK
from local.operate import Stack
from local.serve import Served, serving

POOL = {"system": "bridier", "time_zone": "Europe/Zurich", "languages": ["en"], "rules": [{"from": "2016-04-10"}]}
UPLOAD = b"date,player1,player2,winner\n" + b"".join(
    f"2026-11-{day:02d},anna,{who},{1 + day % 2}\n".encode() for day in range(1, 29) for who in ("beat", "carl")
)


class Client:
    """Requests to the one port."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._http = urllib3.PoolManager(retries=False, timeout=120.0)

    def __call__(
        self, method: str, path: str, body: Any = None, key: str | None = None, raw: bytes | None = None
    ) -> Any:
        headers = {"authorization": f"Bearer {key or self.served.admin_key}"}
        if raw is None and body is not None:
            raw, headers["content-type"] = json.dumps(body).encode(), "application/json"
        elif raw is not None:
            headers["content-type"] = "application/octet-stream"
        answer = self._http.request(method, f"{self.served.url}{path}", body=raw, headers=headers)
        assert answer.status < 300, (method, path, answer.status, answer.data)
        return answer.json() if answer.data and "json" in answer.headers.get("content-type", "") else answer.data


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(port=0, enforce_permissions=True) as running:
        yield running


@pytest.fixture(scope="module")
def call(served: Served) -> Client:
    return Client(served)


@pytest.fixture
def credentials(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's shell."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", served.system.emulator.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", served.system.emulator.client("s3").meta.region_name)


def logged(served: Served, function: str) -> list[dict[str, Any]]:
    """The JSON lines in a function's log group."""
    logs = served.system.emulator.client("logs")
    group = f"/clubladder/{STACK}/{function}"
    events = logs.filter_log_events(logGroupName=group, limit=10_000)["events"]
    found = []
    for event in events:
        for line in event["message"].splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
    return found


def test_all_jobs_run_with_the_roles_of_the_template(served: Served, call: Client) -> None:
    """Every function does all it can do: a grant that is missing fails here."""
    call("PUT", "/v1/clubs/bern", {"name": "Bern"})
    key = call("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]})["key"]
    call("PUT", "/v1/pools/duels", {"name": "Duels", **POOL})
    for player in ("anna", "beat", "carl", "dora"):
        call("PUT", f"/v1/players/{player}", {"name": player.title()}, key)
    game = {
        "game_id": "g1",
        "finished_at": "2026-11-01T20:00:00Z",
        "result": {"players": ["dora", "anna"], "winner": "dora"},
    }
    call("POST", "/v1/pools/duels/games", game, key)
    served.system.settle()
    report = call("POST", "/v1/pools/duels/imports?filename=a.csv", raw=UPLOAD, key=key)
    assert report
    served.system.settle()
    late = {**game, "game_id": "late", "finished_at": "2026-10-01T20:00:00Z"}
    call("POST", "/v1/pools/duels/games", late, key)
    call("POST", "/v1/pools/duels/games/g1/void", {"reason": "never played"}, key)
    call("POST", "/_local/schedules/closing", {"at": "2026-12-01T00:05:00Z"})
    call("POST", "/_local/schedules/sweep", {"at": "2026-12-01T00:10:00Z"})
    call("POST", "/v1/pools/duels/rebuild", {})
    call("DELETE", "/v1/players/dora", key=key)
    served.system.settle()
    pool = call("GET", "/v1/pools/duels")
    assert (pool["pending"], pool["held"]) == (0, 0)
    assert pool["games"] == 57  # 56 of the file and the late one
    assert b"Anna" in call("GET", "/duels/")
    for name in ("api", "rater", "closing", "publisher"):
        lines = logged(served, name)
        assert lines, name
        assert not [line for line in lines if line.get("level") in ("ERROR", "CRITICAL")], name
    sqs = served.system.emulator.client("sqs")
    for queue in ("FailedPools", "DeadLetters"):
        assert "Messages" not in sqs.receive_message(QueueUrl=served.system.deployment[queue])


def test_a_missing_closing_schedule_is_told_by_its_metric(served: Served, call: Client) -> None:
    scheduler = served.system.emulator.client("scheduler")
    closing = [s["Name"] for s in scheduler.list_schedules()["Schedules"] if "closing" in s["Name"]]
    assert len(closing) == 2
    call("PUT", "/v1/pools/other", {"name": "Other", **POOL})
    served.system.settle()
    kept = {name: scheduler.get_schedule(Name=name) for name in closing}
    for name in closing:
        scheduler.delete_schedule(Name=name)

    def unclosed(at: str) -> float:
        before = len(logged(served, "rater"))
        call("POST", "/_local/schedules/sweep", {"at": at})
        told = [line["MonthsUnclosed"] for line in logged(served, "rater")[before:] if "MonthsUnclosed" in line]
        return float(told[-1][0])

    assert unclosed("2026-12-01T12:00:00Z") == 0
    assert unclosed("2027-02-02T12:00:00Z") >= 1  # nobody closed anything since
    for name, schedule in kept.items():
        wanted = ("ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target")
        scheduler.create_schedule(Name=name, **{k: schedule[k] for k in wanted if k in schedule})
    call("POST", "/_local/schedules/closing", {"at": "2027-02-01T00:05:00Z"})
    assert unclosed("2027-02-02T12:05:00Z") == 0


@pytest.mark.usefixtures("credentials")
def test_dead_letters_are_sent_where_they_belong(
    served: Served, call: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    sqs, deployment = served.system.emulator.client("sqs"), served.system.deployment
    sqs.send_message(QueueUrl=deployment["FailedPools"], MessageBody='{"pool": "duels", "reason": "RuntimeError"}')
    sqs.send_message(QueueUrl=deployment["DeadLetters"], MessageBody='{"task": "sweep", "at": "2026-12-01T00:00:00Z"}')
    assert main(["redrive", "--stack", STACK, "--dry-run"]) == 0
    assert "2 messages: close 1, publish 1, rate 1, sweep 1 would be done" in capsys.readouterr().out
    assert main(["redrive", "--stack", STACK]) == 0
    assert "2 messages" in capsys.readouterr().out
    left = redrive.run(sqs, [deployment["FailedPools"], deployment["DeadLetters"]], Stack(STACK).target(), dry=True)
    assert left.messages == 0
    served.system.settle()


@pytest.mark.usefixtures("credentials")
def test_a_lost_table_is_made_again_with_one_command(
    served: Served, call: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.system.settle()
    before = {pool: call("GET", f"/v1/pools/{pool}") for pool in ("duels", "other")}
    player = call("GET", "/v1/pools/duels/players/anna")
    place = str(tmp_path / "backup")
    assert main(["backup", "--stack", STACK, "--to", place]) == 0
    dynamodb = served.system.emulator.client("dynamodb")
    while found := dynamodb.scan(TableName=served.system.table, ProjectionExpression="pk, sk")["Items"]:
        for item in found:
            dynamodb.delete_item(TableName=served.system.table, Key=item)
    assert main(["restore", "--stack", STACK, "--from", place]) == 0
    said = capsys.readouterr().out
    assert said.count("(as before)") == 2
    served.system.settle()
    assert {pool: call("GET", f"/v1/pools/{pool}") for pool in before} == before
    assert call("GET", "/v1/pools/duels/players/anna") == player
    assert b"Anna" in call("GET", "/duels/")
    assert main(["restore", "--stack", STACK, "--from", place]) == 1
    assert "is not empty" in capsys.readouterr().err
