"""From failure to dead letter and back: the same state as without the fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local import redrive
from local.inprocess import System
from shared.usecases import rating
from site_builder import publisher

POOL = {"system": "bridier", "time_zone": "Europe/Zurich", "languages": ["en"], "rules": [{"from": "2016-04-10"}]}
POOLS = ("good", "bad")


def prepared(system: System) -> str:
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    key = str(system.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]}).body["key"])
    for pool in POOLS:
        assert system.admin("PUT", f"/v1/pools/{pool}", {"name": pool, **POOL}).status == 201
    for player in ("anna", "beat", "carl"):
        assert system.request("PUT", f"/v1/players/{player}", json={"name": player}, key=key).status == 201
    return key


def play(system: System, key: str) -> None:
    for pool in POOLS:
        for number, (won, lost) in enumerate([("anna", "beat"), ("beat", "carl"), ("carl", "anna")]):
            body = {
                "game_id": f"g{number}",
                "finished_at": f"2026-11-1{number}T20:00:00Z",
                "result": {"players": [won, lost], "winner": won},
            }
            assert system.request("POST", f"/v1/pools/{pool}/games", json=body, key=key).status == 201


def target(system: System) -> redrive.Target:
    functions = {"rater": "RaterFunction", "closing": "ClosingFunction"}

    def invoke(function: str, event: Mapping[str, Any]) -> None:
        system.invoke(functions[function], event)

    def publish(pool: str) -> None:
        system.sqs.send_message(QueueUrl=system.names["PublishQueue"], MessageBody=json.dumps({"pool": pool}))

    def announce(body: str) -> None:
        system.sqs.send_message(QueueUrl=system.names["ImportQueue"], MessageBody=body)

    return redrive.Target(invoke, publish, announce)


def queues(system: System) -> list[str]:
    return [system.names["FailedPools"], system.names["DeadLetters"]]


def state(system: System) -> dict[str, Any]:
    shown = {pool: system.admin("GET", f"/v1/pools/{pool}").body for pool in POOLS}
    players = {
        (pool, p): system.admin("GET", f"/v1/pools/{pool}/players/{p}").body["rating"]
        for pool in POOLS
        for p in ("anna", "beat", "carl")
    }
    return {"pools": shown, "players": players, "pages": sorted(system.keys())}


def test_a_pool_that_failed_ends_as_if_it_had_not(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    key = prepared(system)
    system.settle()
    apply = rating.apply

    def failing(ctx: Any, pool: str, now: int | None = None) -> Any:
        if pool == "bad":
            raise RuntimeError("a fault")
        return apply(ctx, pool, now)

    with monkeypatch.context() as patched:
        patched.setattr(rating, "apply", failing)
        play(system, key)
        system.rate(POOLS)
        system.schedule("sweep", "2026-11-30T12:00:00Z")
    assert system.admin("GET", "/v1/pools/good").body["games"] == 3  # the other pool noticed nothing
    assert system.admin("GET", "/v1/pools/bad").body["pending"] == 3
    looked = redrive.run(system.sqs, queues(system), target(system), dry=True)
    assert looked.messages == 2
    assert looked.actions == {"rate": 1, "close": 1, "publish": 1}
    assert system.admin("GET", "/v1/pools/bad").body["pending"] == 3

    done = redrive.run(system.sqs, queues(system), target(system))
    assert (done.messages, done.unknown) == (2, 0)
    assert redrive.run(system.sqs, queues(system), target(system)).messages == 0
    system.settle()
    after = state(system)
    assert after["pools"]["bad"]["pending"] == 0
    bad = {p: r for (pool, p), r in after["players"].items() if pool == "bad"}
    good = {p: r for (pool, p), r in after["players"].items() if pool == "good"}
    assert bad == good  # the same games, in a pool without the fault
    assert after["pools"]["bad"]["state_hash"] == after["pools"]["good"]["state_hash"]
    assert {k.removeprefix("bad/") for k in after["pages"] if k.startswith("bad/")} == {
        k.removeprefix("good/") for k in after["pages"] if k.startswith("good/")
    }


def test_a_publication_that_was_given_up_is_done(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    key = prepared(system)
    system.settle()
    play(system, key)
    system.rate(POOLS)

    def crash(*_: Any, **__: Any) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as patched:
        patched.setattr(publisher, "publish", crash)
        answer = system.publish(["bad"])
    assert len(answer["batchItemFailures"]) == 1  # so the queue gives it again, and after five times gives it up:
    system.sqs.send_message(QueueUrl=system.names["DeadLetters"], MessageBody='{"pool": "bad"}')
    done = redrive.run(system.sqs, queues(system), target(system))
    assert done.actions == {"rate": 1, "close": 1, "publish": 1}
    system.settle()
    assert b"anna" in system.page("/bad/")[2]


def test_what_cannot_be_accepted_stays(system: System) -> None:
    queue = system.names["DeadLetters"]
    system.sqs.send_message(QueueUrl=queue, MessageBody='{"task": "sweep", "at": "2026-11-30T12:00:00Z"}')

    def refuse(*_: Any) -> None:
        raise RuntimeError("throttled")

    refusing = redrive.Target(refuse, refuse, refuse)
    with pytest.raises(RuntimeError):
        redrive.run(system.sqs, [queue], refusing)
    # It is only hidden, and comes back by itself.
    attributes = system.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert int(attributes["ApproximateNumberOfMessagesNotVisible"]) == 1


STREAM = json.dumps({"requestContext": {"functionArn": "x"}, "DDBStreamBatchInfo": {"shardId": "s", "batchSize": 3}})
CALL = json.dumps(
    {"requestContext": {"functionArn": "x"}, "requestPayload": {"task": "sweep", "at": "2026-11-30T12:00:00Z"}}
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (STREAM, ["sweep"]),
        (CALL, ["sweep"]),
        ('{"requestPayload": {"at": "2026-12-01T00:05:00Z"}}', ["close"]),
        ('{"requestPayload": {"pool": "p"}}', ["rate", "close", "publish"]),
        ('{"requestPayload": {"Records": []}}', ["sweep"]),
        ('{"task": "sweep", "at": "2026-11-30T12:00:00Z"}', ["sweep"]),
        ('{"at": "2026-12-01T00:05:00Z"}', ["close"]),
        ('{"pool": "p"}', ["rate", "close", "publish"]),
        ('{"pool": ""}', ["publish"]),
        ('{"pool": "p", "reason": "KeyError"}', ["rate", "close", "publish"]),
        ('{"Records": [{"s3": {"object": {"key": "uploads/i1"}}}]}', ["import"]),
        ("no json", []),
        ("[1]", []),
        ('{"something": "else"}', []),
    ],
)
def test_what_a_dead_letter_asks_for(body: str, expected: list[str]) -> None:
    assert [what for what, _ in redrive.actions_of(body)] == expected


def test_what_nobody_knows_stays_in_the_queue(system: System) -> None:
    queue = system.names["DeadLetters"]
    system.sqs.send_message(QueueUrl=queue, MessageBody='{"something": "else"}')
    for _ in range(2):
        done = redrive.run(system.sqs, [queue], target(system))
        assert (done.messages, done.unknown) == (1, 1)
