"""Anybody folds a published ledger, offline, into the published standings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local import recompute
from local.inprocess import System
from tests.integration.people_fixture import Ladder, at


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
