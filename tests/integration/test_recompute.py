"""Anybody folds a published ledger, offline, into the published standings."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from local import recompute
from local.inprocess import System
from site_builder import publisher
from tests.integration import ladder as rated
from tests.integration.histories import History
from tests.integration.memory import MemoryBucket
from tests.integration.people_fixture import Ladder, at
from tests.integration.test_crash_rating import Fuse, Killed, late
from tests.integration.test_publisher_random import with_site


@pytest.fixture
def folder(system: System, tmp_path: Path) -> Path:
    """A published pool with ties, a void, a late result, a correction and a merge, as files."""
    ladder = Ladder(system)
    ladder.pool("p", "jass")
    ladder.players("anna bob cy dora eve")
    ladder.start("p", "eve", rating=90, games=3)
    teams = {"teams": [["cy", "anna"], ["bob", "dora"]]}
    ladder.send("p", "g1", {**teams, "striche": [3, 0]}, at(3))
    ladder.send("p", "g2", {"teams": [["eve", "anna"], ["bob", "dora"]], "striche": [0, 4]}, at(4))
    ladder.rate()
    ladder.post("/v1/pools/p/games/g2/void", {"reason": "not played"}, status=200)
    ladder.put("/v1/pools/p/games/g1", {"reason": "counted again", "result": {**teams, "striche": [2, 0]}}, revision=1)
    assert system.admin("POST", "/v1/players/eve/merge", {"into": "cy"}).status == 202
    system.settle()
    bucket = system.names["SiteBucket"]
    for item in system.s3.list_objects_v2(Bucket=bucket, Prefix="p/")["Contents"]:
        file = tmp_path / item["Key"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(system.s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read())
    return tmp_path / "p"


def test_the_published_ledger_gives_the_published_list(
    system: System, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompute.show(str(folder), as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    listed: list[dict[str, Any]] = json.loads((folder / "standings.json").read_text())["standings"]
    assert [(s["place"], s["player"], s["rating"]) for s in found["standings"]] == [
        (s["place"], s["player"], s["rating"]) for s in listed
    ]
    assert [s["place"] for s in found["standings"]] == [1, 1, 3, 3]
    assert found["hash"] == system.admin("GET", "/v1/pools/p").body["state_hash"]
    assert recompute.show(str(folder)) == 0
    out = capsys.readouterr().out
    assert "    1  anna" in out
    assert "    1  cy" in out
    assert "which is the published one" in out


def test_nothing_of_names_or_reasons_is_in_it(folder: Path) -> None:
    for file in (folder / "ledger").glob("*.jsonl"):
        text = file.read_text()
        assert "Muster" not in text
        assert "not played" not in text
        assert "counted again" not in text


def test_what_does_not_fit_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = folder / "ledger" / "index.json"
    told = json.loads(index.read_text())
    index.write_text(json.dumps({**told, "state_hash": "0" * 64}))
    assert recompute.show(str(folder)) == 1
    assert "NOT the published one" in capsys.readouterr().out
    index.write_text(json.dumps({**told, "position": told["position"] + 1}))
    assert recompute.show(str(folder)) == 2
    index.write_text(json.dumps(told))
    segment = next((folder / "ledger").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes()[:-5])
    assert recompute.show(str(folder)) == 2
    assert "checksum" in capsys.readouterr().err


def folded(bucket: MemoryBucket, folder: Path) -> dict[str, Any]:
    """A published pool as files, folded."""
    for key, body in bucket.objects.items():
        if "/ledger/" in key or key.endswith("standings.json"):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(body)
    return recompute.recompute(str(folder / "p"))


@pytest.mark.parametrize("rules", ["spades", "bridier", "jass"])
def test_whatever_happened_the_published_ledger_gives_the_published_hash(rules: str, tmp_path: Path) -> None:
    ladder, bucket = rated.Ladder.in_memory(), MemoryBucket()
    with_site(ladder, bucket)
    history = History(ladder, rules, 31)
    with rated.small_steps(IN_PLACE=20):
        history.open()
        for number in range(120):
            history.step()
            if number % 40 == 39:
                ladder.now += rated.HOUR
                ladder.rate()
                ladder.submit(history.draft())  # waits, and is not told yet
                publisher.publish(ladder.ctx, "p")
                told = folded(bucket, tmp_path)
                assert told["hash"] == told["published_hash"] == ladder.cursor().hash
                assert told["position"] == ladder.cursor().position


def test_what_is_accepted_while_the_ledger_is_read_is_not_told_yet(tmp_path: Path) -> None:
    for number in itertools.count(1):
        ladder, bucket = late(), MemoryBucket()
        with_site(ladder, bucket)
        ladder.rate()
        count = itertools.count(1)

        def accept(name: str, arguments: Any, ladder: Any = ladder, count: Any = count, number: int = number) -> None:
            read = name == "query" and arguments["ExpressionAttributeValues"][":pk"]["S"]
            if read and read.startswith(("LEDGER#p#2026-08", "INBOX#p#")) and next(count) == number:
                ladder.calls.before = None
                for one in range(8):  # in every shard
                    ladder.submit(rated.spades(f"in-between-{one}", "ab-cd", "2026-08-18 12:00"))

        ladder.calls.before = accept
        publisher.publish(ladder.ctx, "p")
        told = folded(bucket, tmp_path / str(number))
        assert told["hash"] == told["published_hash"] == ladder.cursor().hash, number
        if ladder.calls.before is not None:
            break
    assert number > 8


def test_what_a_dead_replay_left_in_the_inbox_is_told(tmp_path: Path) -> None:
    """It counts; only the inbox was not emptied any more."""
    with rated.small_steps(IN_PLACE=5):
        for number in range(1, 30):
            ladder, bucket = late(), MemoryBucket()
            with_site(ladder, bucket)
            ladder.calls.after = Fuse(number, after=True)
            try:
                ladder.rate()
            except Killed:
                ladder.calls.after = None
            else:
                break
            publisher.publish(ladder.ctx, "p")
            told = folded(bucket, tmp_path / str(number))
            assert told["hash"] == told["published_hash"] == ladder.cursor().hash, number
        assert 5 < number < 29


def test_a_site_that_is_just_being_published_is_looked_at_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = (folder / "ledger" / "index.json").read_bytes()
    told = json.loads(index)
    told["segments"][-1]["sha256"] = "0" * 64
    older = json.dumps(told).encode()
    answers = [older, index]

    def fetch(_: str, path: str) -> bytes:
        return answers.pop(0) if path == "ledger/index.json" else (folder / path).read_bytes()

    monkeypatch.setattr(recompute, "fetch", fetch)
    monkeypatch.setattr(recompute, "PAUSE", 0.0)
    assert recompute.show("https://ratings.example/p") == 0
    assert answers == []
    answers += [older] * recompute.LOOKS
    assert recompute.show("https://ratings.example/p") == 2
    answers += [older]
    assert recompute.show(str(folder)) == 2, "a folder does not change by being looked at"
