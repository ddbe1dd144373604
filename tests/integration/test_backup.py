"""The drill: everything out, the table and the private bucket wiped, everything back; the same ratings and pages."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local import backup
from local.inprocess import System
from shared.store import keys, rated
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases import bootstrap
from shared.usecases.pools import republish

POOLS: dict[str, Any] = {
    "duels": {"system": "bridier", "rules": [{"from": "2016-04-10"}]},
    "tarot": {"system": "spades", "rules": [{"from": "2016-04-10"}, {"from": "2026-10-01", "k": 30}]},
}
PLAYERS = {"anna": "Anna <b>", "beat": "Beat", "carl": "Çarl", "dora": "Dora", "emil": "Emil"}
OLD = 1_788_300_000_000_000
"""2 September 2026: the pools are as old as that, so that months have ended."""


def season(system: System) -> str:
    """Two pools with games, a correction, a void, a late result, a start rating, an open game, and closed months."""
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    key = str(system.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]}).body["key"])
    for pool, rules in POOLS.items():
        made = {"name": pool.title(), "time_zone": "Europe/Zurich", "languages": ["en"], **rules}
        assert system.admin("PUT", f"/v1/pools/{pool}", made).status == 201
        system.dynamodb.update_item(
            TableName=system.names["Table"],
            Key={"pk": {"S": f"POOL#{pool}"}, "sk": {"S": "META"}},
            UpdateExpression="SET created_at = :old",
            ExpressionAttributeValues={":old": {"N": str(OLD)}},
        )
    for player, name in PLAYERS.items():
        assert system.request("PUT", f"/v1/players/{player}", json={"name": name}, key=key).status == 201
    start = {"start": {"rank": 520, "index": 453, "last_result_on": "2026-05-01"}}
    assert system.admin("PUT", "/v1/pools/duels/players/anna", start).status == 200
    for number in range(5):
        won, lost = list(PLAYERS)[number % 5], list(PLAYERS)[(number + 1) % 5]
        send(
            system,
            key,
            "duels",
            f"d{number}",
            f"2026-10-{number + 1:02d}T20:00:00Z",
            {"players": [won, lost], "winner": won},
        )
        teams = [["anna", "beat"], ["carl", "dora"]]
        send(
            system,
            key,
            "tarot",
            f"s{number}",
            f"2026-11-{number + 1:02d}T20:00:00Z",
            {"teams": teams, "outcome": "team1"},
        )
    system.settle()
    late = {"players": ["emil", "anna"], "winner": "emil"}
    send(system, key, "duels", "late", "2026-09-15T20:00:00Z", late)
    change = {"reason": "other way round", "result": {"players": ["anna", "beat"], "winner": "beat"}}
    headers = {"If-Match": '"1"'}
    path = "/v1/pools/duels/games"
    assert system.request("PUT", f"{path}/d0", json=change, key=key, headers=headers).status == 200
    assert system.request("POST", f"{path}/d3/void", json={"reason": "never played"}, key=key).status == 200
    opened = {
        "game_id": "open",
        "started_at": "2026-11-20T20:00:00Z",
        "line_up": {"teams": [["anna", "beat"], ["carl", "dora"]]},
    }
    assert system.request("POST", "/v1/pools/tarot/games", json=opened, key=key).status == 201
    system.settle()
    system.schedule("closing", "2026-12-01T00:05:00Z")
    system.settle()
    return key


def send(system: System, key: str, pool: str, game_id: str, at: str, result: dict[str, Any]) -> None:
    body = {"game_id": game_id, "finished_at": at, "result": result, "note": f"note of {game_id}"}
    answer = system.request("POST", f"/v1/pools/{pool}/games", json=body, key=key)
    assert answer.status == 201, answer.body


def answers(system: System) -> dict[str, Any]:
    """What the API tells of it all."""
    paths = [f"/v1/pools/{pool}{more}" for pool in POOLS for more in ("", "/players/anna", "/players/emil")]
    paths += [f"/v1/pools/duels/games/bern:{g}" for g in ("d0", "d1", "d3", "late")]
    paths += [
        "/v1/pools/tarot/games/bern:s2",
        "/v1/pools/tarot/games/bern:open",
        "/v1/players/anna",
        "/v1/clubs/bern/keys",
    ]
    return {path: system.admin("GET", path).body for path in paths}


def pages(system: System) -> dict[str, bytes]:
    listed = system.keys()
    return {key: (system.object(key) or (b"", ""))[0] for key in listed}


def wipe(system: System, *, keep: str | None = None) -> None:
    """Lose the table's content and the private bucket's, but for what lies below a prefix."""
    name = system.names["Table"]
    while found := system.dynamodb.scan(TableName=name, ProjectionExpression="pk, sk")["Items"]:
        for item in found:
            system.dynamodb.delete_item(TableName=name, Key=item)
    listed = system.s3.list_objects_v2(Bucket=system.names["DataBucket"]).get("Contents", [])
    for entry in listed:
        if keep is not None and entry["Key"].startswith(keep):
            continue
        system.s3.delete_object(Bucket=system.names["DataBucket"], Key=entry["Key"])


def table_of(system: System) -> Table:
    return Table(system.dynamodb, system.names["Table"])


def export(system: System, to: backup.Place) -> backup.Backup:
    return backup.export(table_of(system), to, bootstrap.context().clock(), segments=1)


def test_everything_comes_back(any_system: System, tmp_path: Path) -> None:
    system = any_system
    season(system)
    for pool in POOLS:
        table_of(system).write(republish(bootstrap.context(), pool))  # the whole site, as the restore makes it
    system.settle()
    before, site = answers(system), pages(system)
    frozen = {p: list(bootstrap.context().data.list(f"frozen/{p}/")) for p in POOLS}
    assert all(len(found) >= 2 for found in frozen.values())
    made = export(system, backup.Folder(tmp_path))
    assert made.left_out == 0
    assert set(made.hashes) == set(POOLS)

    wipe(system)
    assert system.request("GET", "/v1/pools/duels").status == 404
    restored = backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    assert restored.differing == []
    assert restored.expected == restored.hashes == {p: before[f"/v1/pools/{p}"]["state_hash"] for p in POOLS}
    assert restored.events == made.events
    system.settle()
    assert answers(system) == before
    assert {p: list(bootstrap.context().data.list(f"frozen/{p}/")) for p in POOLS} == frozen

    again = pages(system)
    assert again.keys() == site.keys()
    stamped = {key for key in site if again[key] != site[key]}
    # Pages that carry the publication's number and time say another one; all others are the same to the byte.
    assert {k for k in stamped if "/players/" in k or "/games/" in k or "/lists/" in k} == set()
    assert all(
        k.endswith(("publication.json", "standings.json", "index.html", ".xml", ".csv", "index.json")) for k in stamped
    )


def test_the_restored_system_goes_on(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    key = season(system)
    export(system, backup.Folder(tmp_path))
    wipe(system)
    backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    system.settle()
    body = {"game_id": "d1", "finished_at": "2026-10-02T20:00:00Z", "note": "note of d1"}
    again = system.request(
        "POST",
        "/v1/pools/duels/games",
        json={**body, "result": {"players": ["beat", "carl"], "winner": "beat"}},
        key=key,
    )
    assert again.status == 200  # known already, whoever sends it again
    before = system.request("GET", "/v1/pools/duels").body
    send(system, key, "duels", "new", "2026-11-29T20:00:00Z", {"players": ["anna", "dora"], "winner": "anna"})
    system.settle()
    after = system.request("GET", "/v1/pools/duels").body
    assert (after["games"], after["position"]) == (before["games"] + 1, before["position"] + 1)
    assert b"Anna &lt;b&gt;" in system.page("/duels/")[2]


def test_results_that_waited_are_rated_after_the_restore(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    key = season(system)
    send(system, key, "duels", "waits", "2026-11-28T20:00:00Z", {"players": ["anna", "dora"], "winner": "anna"})
    made = export(system, backup.Folder(tmp_path))
    assert set(made.hashes) == {"tarot"}  # of duels nobody can say yet what it will be
    system.settle()
    expected = system.request("GET", "/v1/pools/duels").body["state_hash"]
    wipe(system)
    restored = backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    assert restored.hashes["duels"] == expected
    system.settle()
    assert system.request("GET", "/v1/pools/duels").body["pending"] == 0


class Busy(backup.Folder):
    """A place during whose writing results come in."""

    def __init__(self, path: Path, happens: Any) -> None:
        super().__init__(path)
        self.happens = happens

    def write(self, name: str, body: bytes) -> None:
        super().write(name, body)
        self.happens(name)


def test_a_backup_during_play_is_whole(
    emulated_system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file that is written, a new player comes with a game, and one game is corrected."""
    system = emulated_system
    key = season(system)
    monkeypatch.setattr(backup, "LINES", 10)
    count = iter(range(1000))

    def play(_: str) -> None:
        number = next(count)
        if number < 12:
            body = {
                "game_id": f"during{number}",
                "finished_at": f"2026-11-{number + 10}T18:00:00Z",
                "register": [{"id": f"new{number}", "name": f"New {number}"}],
                "result": {"players": ["anna", f"new{number}"], "winner": "anna"},
            }
            assert system.request("POST", "/v1/pools/duels/games", json=body, key=key).status == 201

    made = export(system, Busy(tmp_path, play))
    wipe(system)
    backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    system.settle()
    table = table_of(system)
    (games, events) = ({}, {})
    for item in (backup.from_wire(w) for w in backup._scan(table, 1)):
        if item["pk"].startswith("GAME#duels#"):
            games[backup._ref(item)] = item["revision"]
        if item["pk"].startswith("LEDGER#duels#"):
            event = backup.decode(item["event"])
            if event.game is not None:
                ref = (event.game.club, event.game.game_id)
                events[ref] = max(events.get(ref, 0), event.game.revision)
    assert games == events
    during = [g for _, g in games if g.startswith("during")]
    assert 0 < len(during) <= 12
    assert len(during) + made.left_out >= 1
    for game in during:
        player = game.replace("during", "new")
        assert system.request("GET", f"/v1/players/{player}").body["name"] == player.replace("new", "New ")
        assert system.request("GET", f"/v1/pools/duels/games/bern:{game}").body["status"] == "rated"


def test_dynamodbs_own_export_is_read_too(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    season(system)
    before = answers(system)
    folder = backup.Folder(tmp_path)
    lines = b"".join(backup._line(wire) for wire in backup._scan(table_of(system), 1))
    for name in ("AWSDynamoDB/01700000000000-old/data/a.json.gz", "AWSDynamoDB/01790000000000-new/data/b.json.gz"):
        folder.write(name, gzip.compress(lines if "new" in name else b""))
        folder.write(name.rpartition("/data/")[0] + "/manifest-summary.json", b"{}")
    wipe(system)
    restored = backup.restore(bootstrap.context(), folder, workers=1)
    assert restored.expected == restored.hashes
    assert set(restored.expected) == set(POOLS)
    system.settle()
    assert answers(system) == before


def test_a_backup_in_s3(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    season(system)
    system.s3.create_bucket(Bucket="kept", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    there = backup.place("s3://kept/backups/2026-11-30", lambda: system.s3)
    export(system, there)
    assert json.loads(there.read("manifest.json"))["format"] == backup.FORMAT
    wipe(system)
    assert backup.restore(bootstrap.context(), there, workers=1).differing == []
    with pytest.raises(FileNotFoundError):
        there.read("nothing")


def test_what_is_not_whole_or_not_empty_is_refused(system: System, tmp_path: Path) -> None:
    system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
    folder = backup.Folder(tmp_path)
    export(system, folder)
    ctx = bootstrap.context()
    with pytest.raises(backup.BackupError, match="not empty"):
        backup.restore(ctx, folder, workers=1)
    with pytest.raises(backup.BackupError, match="already"):
        export(system, folder)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(backup.BackupError, match="manifest"):
        backup.restore(ctx, folder, workers=1)
    folder.write("manifest.json", json.dumps({"format": 99}).encode())
    with pytest.raises(backup.BackupError, match="newer"):
        backup.restore(ctx, folder, workers=1)
    assert (tmp_path / "data/000000.json.gz").stat().st_mode & 0o077 == 0


def test_a_restore_that_broke_off_can_be_done_again(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    season(system)
    before = answers(system)
    export(system, backup.Folder(tmp_path))
    wipe(system)
    for _ in range(2):
        restored = backup.restore(bootstrap.context(), backup.Folder(tmp_path), anyway=True, workers=1)
        assert restored.differing == []
    system.settle()
    assert answers(system) == before


def test_only_what_can_be_made_again_is_left_out(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    season(system)
    kept, left = set(), set()
    for wire in backup._scan(table_of(system), 1):
        pk, sk = wire["pk"]["S"], wire["sk"]["S"]
        (kept if backup.is_kept(pk, sk) else left).add(pk.split("#")[0] + (f" {sk}" if pk.startswith("POOL#") else ""))
    assert {"GAME", "LEDGER", "KEY", "CLUB", "PLAYER", "SID", "ROSTER", "POOL META", "CHANGELOG", "JOURNAL"} <= kept
    assert {"RATED", "STATE", "HIST", "POOL CURSOR", "POOL INDEX"} <= left
    assert backup.is_kept("SOMETHING#new", "x")
    assert not backup.is_kept(keys.state("p", "x")[0], "x")
    assert not backup.is_kept(rated.index_key("p")[0], rated.index_key("p")[1])


def test_bytes_survive(tmp_path: Path) -> None:
    wire = {"pk": {"S": "a"}, "x": {"M": {"l": {"L": [{"B": b"\x00\xff"}, {"NULL": True}]}}}, "n": {"N": "1"}}
    assert backup._wire_of(backup._line(wire)) == wire


def tell_of_emil(system: System, key: str) -> None:
    """A game with a note that names a player."""
    note = {"game_id": "told", "finished_at": "2026-11-25T20:00:00Z", "note": "Emil was late"}
    result = {"players": ["anna", "beat"], "winner": "anna"}
    assert system.request("POST", "/v1/pools/duels/games", json={**note, "result": result}, key=key).status == 201


def test_who_was_erased_since_the_copy_does_not_come_back(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    key = season(system)
    tell_of_emil(system, key)
    assert system.request("PUT", "/v1/players/emile", json={"name": "Emil"}, key=key).status == 201
    assert system.admin("POST", "/v1/players/emile/merge", {"into": "emil"}).status == 202
    assert system.request("PUT", "/v1/players/fred", json={"name": "Fred"}, key=key).status == 201
    system.settle()
    export(system, backup.Folder(tmp_path))
    assert system.request("DELETE", "/v1/players/emil", key=key).status == 202
    assert system.request("PUT", "/v1/players/later", json={"name": "Later"}, key=key).status == 201
    assert system.request("DELETE", "/v1/players/later", key=key).status == 202  # the copy does not know of them
    system.settle()
    gone = [key for key, _ in bootstrap.context().data.list("erased/")]
    assert len(gone) == 3
    hashes = {pool: system.request("GET", f"/v1/pools/{pool}").body["state_hash"] for pool in POOLS}

    wipe(system, keep="erased/")
    restored = backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    assert restored.differing == []
    assert len(restored.erased) == 2
    system.settle()
    assert [system.request("GET", f"/v1/players/{who}").status for who in ("emil", "emile", "fred")] == [404, 404, 200]
    assert system.admin("GET", "/v1/pools/duels/games/bern:told").body["note"] == ""
    assert not [key for key, body in pages(system).items() if b"Emil" in body]
    assert {pool: system.request("GET", f"/v1/pools/{pool}").body["state_hash"] for pool in POOLS} == hashes
    again = backup.restore(bootstrap.context(), backup.Folder(tmp_path), anyway=True, workers=1)
    assert len(again.erased) == 2, "what was put once more is erased once more"


def test_a_copy_beside_which_the_erased_are_named(emulated_system: System, tmp_path: Path) -> None:
    """Into a new stack, whose own bucket knows nothing: the old stack's names them beside its exports."""
    system = emulated_system
    key = season(system)
    old = system.names["DataBucket"]
    system.s3.create_bucket(Bucket="new", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    export(system, backup.place(f"s3://{old}/exports", lambda: system.s3))
    assert system.request("DELETE", "/v1/players/emil", key=key).status == 202
    system.settle()
    copy = backup.Folder(tmp_path)
    for name in backup.place(f"s3://{old}/exports", lambda: system.s3).names():
        copy.write(name, system.s3.get_object(Bucket=old, Key=f"exports/{name}")["Body"].read())
    ctx = replace(bootstrap.context(), data=Bucket(system.s3, "new"))
    for source, erased in ((f"s3://{old}/exports", None), (str(tmp_path), f"s3://{old}/erased"), (str(tmp_path), None)):
        if erased is not None:
            ctx.data.delete([key for key, _ in ctx.data.list("erased/")])
        wipe(system, keep="e")
        told = backup.place(erased, lambda: system.s3) if erased else None
        restored = backup.restore(ctx, backup.place(source, lambda: system.s3), erased=told, workers=1)
        assert (restored.differing, len(restored.erased)) == ([], 1)
        assert system.request("GET", "/v1/players/emil").status == 404
        assert len(list(ctx.data.list("erased/"))) == 1, "from now on the new bucket knows it, too"


def test_an_erasure_under_way_is_carried_out_after_the_restore(emulated_system: System, tmp_path: Path) -> None:
    system = emulated_system
    key = season(system)
    tell_of_emil(system, key)
    system.settle()
    erased = system.request("DELETE", "/v1/players/emil", key=key)
    assert erased.status == 202
    export(system, backup.Folder(tmp_path))  # before anybody has cleaned up the notes
    wipe(system)
    backup.restore(bootstrap.context(), backup.Folder(tmp_path), workers=1)
    system.settle()
    assert system.admin("GET", "/v1/pools/duels/games/bern:told").body["note"] == ""
    assert not [key for key, body in pages(system).items() if b"Emil" in body]
