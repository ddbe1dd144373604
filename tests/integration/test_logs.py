"""What leaves the functions beside their answers: logs that follow a request and name nobody, metrics without pools."""

from __future__ import annotations

import importlib
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from functions.importer import app as importer
from local import template
from local.inprocess import System
from shared.ledger.order import iso
from shared.store import keys, pools
from shared.store.table import Busy, Table, to_wire
from shared.usecases import rating
from site_builder import publisher

NAMES = ["Zoë <script>alert(1)</script>", "Ünal O'Brien; DROP TABLE", "明子 🂡"]
HANDLES = ["zoe-handle", "unal-handle", "akiko-handle"]
SECRETS = [*NAMES, *HANDLES, "a note about Zoë", "typo in the note", "Club of Odd Names", "private-label", "DROP TABLE"]
POOL = {
    "name": "Pool of Odd Names",
    "system": "bridier",
    "time_zone": "Europe/Zurich",
    "languages": ["en"],
    "rules": [{"from": "2016-04-10"}],
}
MODULES = [
    template.read()["Resources"][name]["Properties"]["Handler"].rpartition(".")[0]
    for name in template.of_type(template.read(), "AWS::Serverless::Function")
]
OCTOBER = "2026-10-05T20:00:00+02:00"


class Lines:
    """All that was logged."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def of(self, message: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in found if line["message"] == message]


@pytest.fixture
def lines(system: System) -> Iterator[Lines]:
    kept, plain = Lines(), io.StringIO()
    before = []
    for module in MODULES:
        log = importlib.import_module(module).log
        before.append((log, log.log_level, log.registered_handler.setStream(kept.stream)))
        log.setLevel("INFO")
    root = logging.StreamHandler(plain)
    logging.getLogger("shared").addHandler(root)
    yield kept
    logging.getLogger("shared").removeHandler(root)
    for log, level, stream in reversed(before):
        log.setLevel(level)
        log.registered_handler.setStream(stream)
    assert not [secret for secret in SECRETS if secret in plain.getvalue()]


def send(system: System, key: str, game: dict[str, Any], **more: Any) -> Any:
    body = {"game_id": "g1", "finished_at": OCTOBER, "note": "a note about Zoë", **game}
    return system.request("POST", "/v1/pools/odd/games", json=body, key=key, **more)


def prepared(system: System) -> str:
    system.admin("PUT", "/v1/clubs/odd-club", {"name": "Club of Odd Names"})
    made = system.admin("POST", "/v1/clubs/odd-club/keys", {"scopes": ["submit", "manage"], "label": "private-label"})
    key = str(made.body["key"])
    assert system.admin("PUT", "/v1/pools/odd", POOL).status == 201
    for handle, name in zip(HANDLES, NAMES, strict=True):
        assert system.request("PUT", f"/v1/players/{handle}", json={"name": name}, key=key).status == 201
    return key


def test_a_journey_leaves_no_name_note_or_key_in_the_logs(
    system: System, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = prepared(system)
    result = {"players": HANDLES[:2], "winner": HANDLES[0]}
    assert send(system, key, {"result": result}).status == 201
    assert (
        send(system, key, {"game_id": "g2", "result": {"players": [HANDLES[0], NAMES[2]], "winner": NAMES[2]}}).status
        == 422
    )
    assert send(system, "cl_" + "guess" * 8, {"result": result}).status == 401
    change = {"reason": "typo in the note", "result": {**result, "winner": HANDLES[1]}}
    headers = {"If-Match": '"1"'}
    path = "/v1/pools/odd/games/g1"
    assert system.request("PUT", path, json=change, key=key, headers=headers).status == 200
    system.settle()
    table = f"date,player1,player2,winner\n05.10.2026,{NAMES[0]},{HANDLES[2]},1\nrubbish,{NAMES[1]},x,7\n".encode()
    kind = {"content-type": "application/octet-stream"}
    system.request("POST", "/v1/pools/odd/imports?filename=Zoe-private-label.csv", body=table, key=key, headers=kind)
    upload = system.request(
        "POST", "/v1/pools/odd/uploads", json={"filename": "Zoe-private-label.csv", "bytes": len(table)}, key=key
    )
    key_of_it = f"uploads/{upload.body['import_id']}"
    system.s3.put_object(Bucket=system.names["DataBucket"], Key=key_of_it, Body=table)
    announced = {"Records": [{"body": json.dumps({"Records": [{"s3": {"object": {"key": key_of_it}}}]})}]}
    system.invoke("ImporterFunction", announced)
    system.settle()
    assert system.request("POST", f"{path}/void", json={"reason": "typo in the note"}, key=key).status == 200
    system.schedule("closing", "2027-01-01T00:05:00Z")
    system.settle()

    def crash(*_: Any, **__: Any) -> None:
        message = f"{NAMES[0]} {HANDLES[0]} a note about Zoë"
        raise ValueError(message)

    monkeypatch.setattr(rating, "apply", crash)
    monkeypatch.setattr(publisher, "publish", crash)
    system.rate(["odd"])
    system.schedule("closing", "2027-02-01T00:05:00Z")
    system.publish(["odd"])
    another = system.request("POST", "/v1/pools/odd/uploads", json={"filename": "Zoe.csv", "bytes": 9}, key=key)
    monkeypatch.setattr("shared.usecases.import_jobs.run", crash)
    with pytest.raises(importer.ImportsLeftError):
        system.invoke(
            "ImporterFunction",
            json.loads(json.dumps(announced).replace(*(a.body["import_id"] for a in (upload, another)))),
        )
    monkeypatch.setattr("shared.usecases.games.submit", crash)
    assert send(system, key, {"result": result}).status == 500

    for secret in [*SECRETS, *(json.dumps(s)[1:-1] for s in SECRETS), key, system.admin_key, "guessguess"]:
        assert secret not in lines.text
    # ... while a result can be followed from its request to its page.
    requests = lines.of("request")
    assert {r["status"] for r in requests} >= {200, 201, 401, 422, 500}
    assert all(r["request_id"] and r["route"] for r in requests)
    sent = next(r for r in requests if r["status"] == 201 and r["route"] == "/v1/pools/{pool}/games")
    assert (sent["pool"], sent["game"], sent["sender"]) == ("odd", "g1", "odd-club")
    assert sent["key_id"]
    for message in (
        "pool rated",
        "pool published",
        "pool closed",
        "pool not rated",
        "pool not closed",
        "pool not published",
        "import over",
        "import broke off",
    ):
        found = lines.of(message)
        assert found, message
        assert all(line["pool"] == "odd" and line["correlation_id"] for line in found)
    begun = next(r for r in requests if r["route"] == "/v1/pools/{pool}/uploads")
    assert begun["import_id"] == lines.of("import over")[0]["import_id"] == upload.body["import_id"]
    for message in ("pool not rated", "pool not closed", "pool not published", "import broke off"):
        assert lines.of(message)[-1]["error"] == "ValueError"
        assert "crash" in lines.of(message)[-1]["where"][-1]


def test_a_line_break_in_a_path_makes_no_line_in_the_log(system: System, lines: Lines) -> None:
    forged = "x%0A%7B%22message%22%3A%22request%22%2C%22status%22%3A200%7D%0D%0A"
    for path in (f"/v1/pools/{forged}", f"/v1/{forged}", f"/v1/pools/odd/games/{forged}"):
        system.admin("GET", path)
        system.admin("POST", path, {})
    assert [json.loads(line)["status"] for line in lines.text.splitlines()] == [404, 405, 404, 404, 404, 405]


# -- metrics -------------------------------------------------------------------------------------------------------
def metrics_of(text: str) -> list[dict[str, Any]]:
    """The metric lines (CloudWatch's embedded format) in what a function printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and '"_aws"' in line]


def sweep(system: System, capsys: pytest.CaptureFixture[str], at: str) -> dict[str, Any]:
    capsys.readouterr()
    system.schedule("sweep", at)
    merged: dict[str, Any] = {}
    for line in metrics_of(capsys.readouterr().out):
        merged |= {name: max(value) for name, value in line.items() if isinstance(value, list)}
    return merged


@pytest.fixture
def measured(system: System, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    return system


def test_no_metric_costs_by_the_pool(measured: System, capsys: pytest.CaptureFixture[str]) -> None:
    key = prepared(measured)
    assert send(measured, key, {"result": {"players": HANDLES[:2], "winner": HANDLES[0]}}).status == 201
    measured.settle()
    measured.schedule("sweep", "2026-11-30T12:00:00Z")
    measured.schedule("closing", "2027-01-01T00:05:00Z")
    found = metrics_of(capsys.readouterr().out)
    directives = [d for line in found for d in line["_aws"]["CloudWatchMetrics"]]
    assert all(d["Dimensions"] == [["service"]] for d in directives)
    assert {d["Namespace"] for d in directives} == {"Clubladder/stack"}
    assert not [line for line in found if "odd" in json.dumps(line)]
    named = {m["Name"] for d in directives for m in d["Metrics"]}
    assert named >= {"EventsRated", "ObjectsWritten", "MonthsFrozen", "OldestUnratedSeconds", "MonthsUnclosed"}


def test_a_month_that_nobody_closed_is_seen_on_its_second_day(
    measured: System, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the closing schedule is gone: only the sweep runs."""
    prepared(measured)
    table = Table(measured.dynamodb, measured.names["Table"])
    pool = pools.load(table, "odd")
    assert pool is not None
    opened = 1_793_600_000_000_000  # 2 November 2026
    item = {**pools.to_item(pool), "created_at": opened}
    measured.dynamodb.put_item(TableName=table.name, Item=to_wire(item))
    assert sweep(measured, capsys, "2026-11-30T22:00:00Z")["MonthsUnclosed"] == 0
    # The month ends at 23:00 UTC in Zurich; a day later it is the second day.
    assert sweep(measured, capsys, "2026-12-01T22:55:00Z")["MonthsUnclosed"] == 0
    assert sweep(measured, capsys, "2026-12-01T23:00:00Z")["MonthsUnclosed"] == 1
    measured.schedule("closing", "2026-12-01T23:05:00Z")
    assert sweep(measured, capsys, "2026-12-01T23:10:00Z")["MonthsUnclosed"] == 0


def test_what_waits_too_long_is_measured(measured: System, capsys: pytest.CaptureFixture[str]) -> None:
    key = prepared(measured)
    measured.settle()
    assert send(measured, key, {"result": {"players": HANDLES[:2], "winner": HANDLES[0]}}).status == 201
    table = Table(measured.dynamodb, measured.names["Table"])
    (accepted,) = [i["sk"] for n in range(keys.SHARDS) for i in table.query(keys.inbox("odd", n))]
    now = int(accepted[:16], 16)

    def minutes_later(minutes: int) -> str:
        return iso(now + minutes * 60_000_000)

    seen = sweep(measured, capsys, minutes_later(20))
    assert 20 * 60 - 1 <= seen["OldestUnratedSeconds"] <= 20 * 60  # the schedule says whole seconds
    assert seen["OldestUnpublishedSeconds"] == 0
    # The sweep itself has rated it; now its publication is what waits.
    seen = sweep(measured, capsys, minutes_later(40))
    assert seen["OldestUnratedSeconds"] == 0
    assert 39 * 60 < seen["OldestUnpublishedSeconds"] <= 40 * 60
    measured.settle()
    seen = sweep(measured, capsys, minutes_later(60))
    assert (seen["OldestUnratedSeconds"], seen["OldestUnpublishedSeconds"]) == (0, 0)


def test_a_busy_table_is_no_failure_of_a_pool(
    measured: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = prepared(measured)
    assert send(measured, key, {"result": {"players": HANDLES[:2], "winner": HANDLES[0]}}).status == 201

    def busy(*_: Any) -> None:
        raise Busy("transact_write_items")

    with monkeypatch.context() as patched:
        patched.setattr(rating, "apply", busy)
        measured.rate(["odd"])
    queue = measured.names["FailedPools"]
    assert "Messages" not in measured.sqs.receive_message(QueueUrl=queue)
    measured.settle()
    assert measured.request("GET", "/v1/pools/odd").body["games"] == 1


def test_every_watched_metric_is_one_that_a_function_gives() -> None:
    document = template.read()
    ours = set()
    for alarm in template.of_type(document, "AWS::CloudWatch::Alarm").values():
        found = alarm["Properties"]
        queries = [m["MetricStat"]["Metric"] for m in found.get("Metrics", []) if "MetricStat" in m] or [found]
        ours |= {m["MetricName"] for m in queries if "Clubladder" in json.dumps(m["Namespace"])}
    assert ours == {"OldestUnratedSeconds", "OldestUnpublishedSeconds", "MonthsUnclosed"}
