"""Handlers do what the template's roles let them do. Every test that calls one holds that; here what others omit."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local import grants
from local.inprocess import System
from shared.ledger.events import decode

OLD = 1_788_300_000_000_000
"""2 September 2026: as old as that is the pool, so that months have ended since."""
POOL = {"name": "P", "time_zone": "Europe/Zurich", "languages": ["en"], "system": "bridier"}
ENTRY = {"basis": "start", "entry": {"minimum_rank": 1}}


@pytest.fixture(params=["preview", "entry", "merge"])
def asking(request: pytest.FixtureRequest, system: System) -> tuple[System, str, Any]:
    """A pool in which results wait, a month has ended and a person is being erased; and a request that rates first."""
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    key = str(system.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]}).body["key"])
    rules = [{"from": "2016-04-10", **(ENTRY if request.param == "entry" else {})}]
    assert system.admin("PUT", "/v1/pools/p", {**POOL, "rules": rules}).status == 201
    system.dynamodb.update_item(
        TableName=system.names["Table"],
        Key={"pk": {"S": "POOL#p"}, "sk": {"S": "META"}},
        UpdateExpression="SET created_at = :old",
        ExpressionAttributeValues={":old": {"N": str(OLD)}},
    )
    for player in ("anna", "beat", "carl", "dora"):
        assert system.request("PUT", f"/v1/players/{player}", json={"name": player.title()}, key=key).status == 201
    for number, at in enumerate(("2026-09-20", "2026-10-20", "2026-10-02")):
        assert system.request("POST", "/v1/pools/p/games", json=game(f"g{number}", at), key=key).status == 201
    assert system.request("DELETE", "/v1/players/dora", key=key).status == 202

    def ask() -> Any:
        if request.param == "merge":
            return system.admin("POST", "/v1/players/carl/merge?preview=true", {"into": "anna"})
        query = "?preview=true" if request.param == "preview" else ""
        return system.request("POST", f"/v1/pools/p/games{query}", json=game("asked", "2026-09-25"), key=key)

    return system, key, ask


def game(game_id: str, at: str) -> dict[str, Any]:
    result = {"players": ["anna", "beat"], "winner": "anna"}
    return {"game_id": game_id, "finished_at": f"{at}T20:00:00Z", "note": "Dora watched", "result": result}


def test_what_waits_may_be_rated_inside_a_request(asking: tuple[System, str, Any]) -> None:
    system, key, ask = asking
    answer = ask()
    assert answer.status in (200, 201), answer.body
    waiting = [e for e in system.dynamodb.scan(TableName=system.names["Table"])["Items"] if "INBOX" in e["pk"]["S"]]
    assert any(decode(e["event"]["S"]).kind == "erase" for e in waiting), "cleaning up takes longer than a request may"
    system.settle()
    for name in ("g0", "g1", "g2"):
        told = system.request("GET", f"/v1/pools/p/games/bern:{name}", key=key).body
        assert (told["status"], told["note"]) == ("rated", "")
    assert system.request("GET", "/v1/pools/p").body["pending"] == 0
    late = system.request("POST", "/v1/pools/p/games", json=game("late", "2026-09-21"), key=key)
    assert late.status == 201
    assert ask().status == 200, "after a replay, too"


def test_a_call_without_a_grant_is_refused() -> None:
    own = {"s3:GetObject": ["arn:aws:s3:::b/uploads/*"], "dynamodb:PutItem": [grants.table_arn("r", "t") + "/POOL#*"]}
    pool = {"pk": {"S": "POOL#p"}}
    allowed: list[tuple[str, str, dict[str, Any], bool]] = [
        ("s3", "GetObject", {"Bucket": "b", "Key": "uploads/x"}, True),
        ("s3", "HeadObject", {"Bucket": "b", "Key": "uploads/x"}, True),
        ("s3", "GetObject", {"Bucket": "b", "Key": "exports/x"}, False),
        ("s3", "ListObjectsV2", {"Bucket": "b"}, False),
        ("s3", "DeleteObjects", {"Bucket": "b", "Delete": {"Objects": [{"Key": "uploads/x"}]}}, False),
        ("dynamodb", "PutItem", {"TableName": "t", "Item": pool}, True),
        ("dynamodb", "PutItem", {"TableName": "t", "Item": {"pk": {"S": "KEY#x"}}}, False),
        ("dynamodb", "PutItem", {"TableName": "another", "Item": pool}, False),
        ("dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "t", "Item": pool}}]}, True),
        ("dynamodb", "TransactWriteItems", {"TransactItems": [{"Delete": {"TableName": "t", "Key": pool}}]}, False),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [{"PutRequest": {"Item": pool}}]}}, False),
        ("dynamodb", "Scan", {"TableName": "t"}, False),
        ("sqs", "SendMessage", {"QueueUrl": "https://sqs/0/q"}, False),
        ("events", "PutEvents", {}, False),
    ]
    for service, operation, params, expected in allowed:
        try:
            grants.check(own, grants.needs(service, operation, params, "r"), operation)
        except ClientError:
            assert not expected, (operation, params)
        else:
            assert expected, (operation, params)
