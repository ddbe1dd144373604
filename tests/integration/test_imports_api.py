"""Imports through the API: what a file of a club does, strict and lenient, once and twice, and broken off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from functions.importer import app as importer
from local.inprocess import Answer, System
from shared.imports import game_cells, games_csv
from shared.ledger.calendar import zone
from shared.store.table import Busy, Table
from shared.usecases import import_jobs, importing
from shared.usecases.bootstrap import context

ZONE = "Europe/Zurich"
NAMES = {"anna": "Anna Aebi", "beat": "Beat Egli", "cla": "Cla Tanner", "thordur": "Þórður", "a1": "Alex", "a2": "Alex"}
JASS = "game_id,date,time,team1_player1,team1_player2,team2_player1,team2_player2,striche1,striche2"


class Club:
    """A club with a pool of each system, and what its secretary does."""

    def __init__(self, system: System) -> None:
        self.system = system
        system.admin("PUT", "/v1/clubs/bern", {"name": "Bern"})
        self.key = self.new_key("bern")
        for player, name in NAMES.items():
            assert system.request("PUT", f"/v1/players/{player}", json={"name": name}, key=self.key).status == 201
        for pool in ("jass", "spades", "bridier"):
            body = {"name": pool, "system": pool, "time_zone": ZONE, "languages": ["de"]}
            assert system.admin("PUT", f"/v1/pools/{pool}", {**body, "rules": [{"from": "2016-01-01"}]}).status == 201

    def new_key(self, club: str) -> str:
        body = {"scopes": ["submit", "manage"]}
        key: str = self.system.admin("POST", f"/v1/clubs/{club}/keys", body).body["key"]
        return key

    def send(self, data: str | bytes, pool: str = "jass", *, answers: Any = None, **query: str) -> Answer:
        query |= {"answers": json.dumps(answers)} if answers is not None else {}
        text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        body = data.encode() if isinstance(data, str) else data
        kind = {"content-type": "application/octet-stream"}
        return self.system.request("POST", f"/v1/pools/{pool}/imports?{text}", key=self.key, body=body, headers=kind)

    def report(self, data: str | bytes, pool: str = "jass", *, answers: Any = None, **query: str) -> dict[str, Any]:
        answer = self.send(data, pool, answers=answers, **query)
        assert answer.status == 200, answer.body
        report: dict[str, Any] = answer.body
        return report

    def game(self, game: str, pool: str = "jass") -> Answer:
        return self.system.request("GET", f"/v1/pools/{pool}/games/bern:{game}")

    def pool(self, pool: str = "jass") -> dict[str, Any]:
        self.system.rate([pool])
        found: dict[str, Any] = self.system.request("GET", f"/v1/pools/{pool}").body
        return found


@pytest.fixture
def club(system: System) -> Club:
    return Club(system)


def rows(count: int, *, first: int = 0, striche: str = "3,1") -> str:
    lines = [
        f"g{n},2026-03-{1 + n % 28:02},{n % 24:02}:00,Anna Aebi,beat,cla,Þórður,{striche}"
        for n in range(first, first + count)
    ]
    return "\r\n".join([JASS, *lines]) + "\r\n"


def counts(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["new"], report["unchanged"], report["corrected"], report["bad"]


# -- all or nothing, or the good ones ------------------------------------------------------------------------------


def test_a_preview_stores_nothing_and_tells_all(club: Club) -> None:
    report = club.report(rows(3), preview="true")
    assert (report["status"], counts(report)) == ("preview", (3, 0, 0, 0))
    assert report["effects"]["players"][0]["change"]["rating"] > 0
    assert [row["cells"][0] for row in report["games"]] == ["g0", "g1", "g2"]
    assert report["games"][0]["players"]["Anna Aebi"] == "anna"
    assert club.game("g0").status == 404
    assert club.pool()["games"] == 0


def test_strict_stores_no_row_when_one_is_bad(club: Club) -> None:
    data = rows(2) + "g9,2026-03-09,,anna,beat,cla,thordur,03. Feb,1\r\n"
    report = club.report(data, mode="strict")
    assert (report["status"], counts(report), report["good"]) == ("refused", (0, 0, 0, 1), 2)
    (error,) = report["errors"]
    assert (error["row"], error["column"], error["code"]) == (4, "striche1", "excel-date")
    assert club.game("g0").status == 404
    assert club.pool()["games"] == 0


def test_lenient_takes_the_good_rows_and_gives_the_others_back(club: Club) -> None:
    data = rows(2) + "g9,2026-03-09,,anna,beat,cla,thordur,-1,1\r\n"
    report = club.report(data, mode="lenient")
    assert (report["status"], counts(report)) == ("done", (2, 0, 0, 1))
    assert "reason" in report["bad_rows_csv"].splitlines()[0]
    mended = report["bad_rows_csv"].replace(",'-1,1,", ",4,1,")
    assert counts(club.report(mended)) == (1, 0, 0, 0)
    assert club.pool()["games"] == 3


@pytest.mark.parametrize("count", [2, 60])
def test_the_same_file_again_changes_nothing(club: Club, count: int) -> None:
    assert counts(club.report(rows(count))) == (count, 0, 0, 0)
    before = club.pool()
    again = club.report(rows(count))
    assert counts(again) == (0, count, 0, 0)
    assert club.pool() == before
    assert before["games"] == count


def test_rows_without_ids_are_the_same_games_again(club: Club) -> None:
    data = "date;team 1 player 1;team 1 player 2;team 2 player 1;team 2 player 2;striche 1;striche 2\n" + (
        "3.2.2026;anna;beat;cla;thordur;3;1\n" * 2 + "4.2.2026;anna;beat;cla;thordur;3;1"
    )
    assert counts(club.report(data)) == (3, 0, 0, 0)
    assert counts(club.report(data)) == (0, 3, 0, 0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("kind", ["application/octet-stream", "text/csv"])
def test_bytes_arrive_as_they_were_sent(club: Club, encoding: str, kind: str) -> None:
    club.system.request("PUT", "/v1/players/jurg", json={"name": "Jürg Öhl"}, key=club.key)
    data = (JASS.replace(",", ";") + "\r\nx1;3.2.2026;19:00;Jürg Öhl;beat;cla;anna;3,0;1").encode(encoding)
    path = "/v1/pools/jass/imports"
    answer = club.system.request("POST", path, key=club.key, body=data, headers={"content-type": kind})
    assert (answer.status, answer.body["new"], answer.body["errors"]) == (200, 1, [])
    assert club.game("x1").body["result"]["striche"] == [3, 1]


# -- names -----------------------------------------------------------------------------------------------------------


def test_a_name_that_several_bear_is_asked_about(club: Club) -> None:
    data = f"{JASS}\ng1,2026-03-01,,Alex,beat,cla,anna,3,1\ng2,2026-03-02,,Alex,beat,cla,anna,3,1"
    report = club.report(data)
    (question,) = report["questions"]
    assert (question["code"], question["rows"]) == ("which-player", [2, 3])
    assert [(c["player"], c["clubs"], c["last_game"]) for c in question["candidates"]] == [
        ("a1", ["Bern"], None),
        ("a2", ["Bern"], None),
    ]
    answered = club.report(data, answers={question["key"]: "a1", f"{question['key']}#3": "a2"})
    assert counts(answered) == (2, 0, 0, 0)
    assert club.game("g1").body["result"]["teams"][0][0] == "a1"
    assert club.game("g2").body["result"]["teams"][0][0] == "a2"
    assert counts(club.report(data)) == (0, 2, 0, 0)  # who was meant is known from the games


def test_the_name_of_several_is_asked_about_even_when_it_is_the_id_of_one(club: Club) -> None:
    club.system.request("PUT", "/v1/players/alex", json={"name": "Alex"}, key=club.key)
    row = "g1,2026-03-01,,{},beat,cla,anna,3,1"
    (question,) = club.report(f"{JASS}\n{row.format('Alex')}")["questions"]
    assert [c["player"] for c in question["candidates"]] == ["alex", "a1", "a2"]
    assert club.report(f"{JASS}\n{row.format('alex')}")["new"] == 1


def test_a_new_name_is_registered_only_when_somebody_says_so(club: Club) -> None:
    data = f"{JASS}\ng1,2026-03-01,,Neu Mann,beat,cla,anna,3,1\ng2,2026-03-02,,neu  mann,beat,cla,Lü,3,1"
    report = club.report(data, mode="lenient")
    assert counts(report) == (0, 0, 0, 2)
    assert {q["key"]: (q["code"], q["register"]) for q in report["questions"]} == {
        "player:neu mann": ("unknown-player", "neu-mann"),
        "player:lü": ("unknown-player", "lu"),
    }
    assert club.system.request("GET", "/v1/players/neu-mann").status == 404
    done = club.report(data, answers={"player:neu mann": "+nm", "player:lü": "beat"})
    assert [(e["row"], e["code"]) for e in done["errors"]] == [(3, "player-twice")]
    done = club.report(data, answers={"player": "register"})
    assert counts(done) == (2, 0, 0, 0)
    assert done["registered"] == [{"player": "neu-mann", "name": "Neu Mann"}, {"player": "lu", "name": "Lü"}]
    assert club.system.request("GET", "/v1/players/neu-mann").body["clubs"] == ["bern"]
    assert counts(club.report(data)) == (0, 2, 0, 0)


def test_a_player_of_another_club_is_never_linked_by_his_name(club: Club) -> None:
    club.system.admin("PUT", "/v1/clubs/thun", {"name": "Thun"})
    other = club.new_key("thun")
    club.system.request("PUT", "/v1/players/zoe", json={"name": "Zoe"}, key=other)
    data = f"{JASS}\ng1,2026-03-01,,Zoe,beat,cla,anna,3,1"
    (question,) = club.report(data)["questions"]
    assert (question["code"], question["register"]) == ("unknown-player", "zoe-2")
    assert club.send(data, answers={"player:zoe": "+zoe"}).status == 422
    assert club.report(data, answers={"player:zoe": "zoe"})["new"] == 1  # a guest, named by id
    assert club.game("g1").body["result"]["teams"][0] == ["beat", "zoe"]


# -- corrections -----------------------------------------------------------------------------------------------------


def test_a_corrected_file_corrects_by_id_and_says_what(club: Club) -> None:
    club.report(rows(3))
    changed = rows(3).replace("beat,cla,Þórður,3,1", "beat,cla,Þórður,3,2", 1)
    preview = club.report(changed, preview="true")
    assert counts(preview) == (0, 2, 1, 0)
    (entry,) = preview["corrections"]
    assert (entry["row"], entry["game_id"]) == (2, "g0")
    assert entry["changes"] == [{"column": "striche2", "before": "1", "after": "2"}]
    assert club.game("g0").body["revision"] == 1
    assert counts(club.report(changed, filename="März.csv")) == (0, 2, 1, 0)
    game = club.game("g0").body
    assert (game["revision"], game["result"]["striche"]) == (2, [3, 2])
    assert game["revisions"][-1]["reason"] == "import März.csv"
    old = club.report(rows(3))  # the old file once more: the correction stays
    assert (counts(old), [n["code"] for n in old["notices"]]) == ((0, 3, 0, 0), ["older-revision"])
    assert club.game("g0").body["revision"] == 2


def test_a_correction_keeps_what_a_row_cannot_say(club: Club) -> None:
    teams = [["anna", "beat"], ["cla", "thordur"]]
    quits = [{"player": "cla", "at": "2026-03-01T18:30:00Z"}]
    result = {"teams": teams, "outcome": "team1", "quits": quits, "nils": [{"bidder": "anna", "set": False}]}
    times = {"started_at": "2026-03-01T19:00:00+01:00", "finished_at": "2026-03-01T20:10:00+01:00"}
    body = {"game_id": "s1", **times, "note": "final", "result": result}
    sent = club.system.request("POST", "/v1/pools/spades/games", json=body, key=club.key)
    assert sent.status == 201, sent.body
    head = "game_id,date,team1_player1,team1_player2,team2_player1,team2_player2,winner\n"
    same = head + "s1,2026-03-01,Anna Aebi,beat,cla,Þórður,1"
    assert counts(club.report(same, "spades")) == (0, 1, 0, 0)
    assert counts(club.report(same[:-1] + "2", "spades")) == (0, 0, 1, 0)
    game = club.game("s1", "spades").body
    assert (game["started_at"], game["finished_at"]) == ("2026-03-01T18:00:00Z", "2026-03-01T19:10:00Z")
    assert (game["result"]["outcome"], game["note"]) == ("team2", "final")
    assert [q["player"] for q in game["result"]["quits"]] == ["cla"]
    assert game["result"]["nils"][0]["bidder"] == "anna"


def test_a_game_that_was_taken_back_stays_so(club: Club) -> None:
    club.report(rows(2))
    club.system.request("POST", "/v1/pools/jass/games/g0/void", json={"reason": "typo"}, key=club.key)
    again = club.report(rows(2))
    assert (counts(again), [n["code"] for n in again["notices"]]) == ((0, 2, 0, 0), ["void"])
    assert club.game("g0").body["status"] == "void"


def test_a_game_known_under_another_id_is_asked_about(club: Club) -> None:
    club.report(rows(1))
    renamed = rows(1).replace("g0,", "other,")
    (question,) = club.report(renamed)["questions"]
    assert (question["code"], question["existing"]) == ("possible-duplicate", {"club": "bern", "game_id": "g0"})
    skipped = club.report(renamed, answers={"duplicate": "skip"})
    assert (skipped["skipped"], counts(skipped)) == (1, (0, 0, 0, 0))
    assert club.report(renamed, answers={question["key"]: "distinct"})["new"] == 1
    assert club.pool()["games"] == 2


def test_rows_of_one_file_with_ids_of_their_own_are_games_of_their_own(club: Club) -> None:
    data = rows(1) + rows(1).splitlines()[1].replace("g0,", "h0,")
    report = club.report(data)
    assert (counts(report), [n["code"] for n in report["notices"]]) == ((2, 0, 0, 0), ["same-content"])
    assert counts(club.report(data)) == (0, 2, 0, 0)


def test_our_own_exports_go_in_again_unchanged(club: Club) -> None:
    teams = [["anna", "beat"], ["cla", "thordur"]]
    kinds = {"berg": 0, "sieg": 2, "matsch": 1, "schneider": 0, "kontermatsch": 0}
    results: list[dict[str, Any]] = [
        {"teams": teams, "striche": [kinds, {**kinds, "berg": 1, "sieg": 0}]},
        {"teams": teams, "striche": [4, 3], "winner": "team2"},
        {"teams": teams, "striche": [2, 2]},
    ]
    stored = []
    for number, result in enumerate(results):
        body = {
            "game_id": f"0{number}e5",
            "started_at": f"2026-10-25T02:3{number}:00+01:00",
            "finished_at": "2026-10-25T04:00:00+01:00",
            "group": "dienstag",
            "note": "=1+1",
            "result": result,
        }
        answer = club.system.request("POST", "/v1/pools/jass/games", json=body, key=club.key)
        assert answer.status == 201, answer.body
        stored.append(answer.body)
    cells = [game_cells(game, "jass", zone(ZONE)) for game in stored]
    exported = games_csv([row for row in cells if row is not None], "jass")
    assert counts(club.report(exported)) == (0, 3, 0, 0)
    assert all(club.game(game["game_id"]).body["revision"] == 1 for game in stored)


# -- rows the pool refuses ---------------------------------------------------------------------------------------------


def test_what_the_rules_refuse_names_row_and_column(club: Club) -> None:
    data = (
        f"{JASS}\ng1,2026-03-01,,anna,beat,cla,thordur,3,1\ng2,2996-03-01,,anna,beat,cla,thordur,3,1\n"
        "g3,2010-03-01,,anna,beat,cla,thordur,3,1\ng4,2026-03-01,,anna,Anna Aebi,cla,thordur,3,1\n"
        "desk,2026-03-01,,anna,beat,cla,thordur,3,1\ng6,1.5.2569,,anna,beat,cla,thordur,3.4e185,1\n"
    )
    report = club.report(data, mode="lenient")
    assert counts(report) == (1, 0, 0, 5)
    assert {(e["row"], e["column"], e["code"]) for e in report["errors"]} == {
        (3, "date", "year"),
        (4, "date", "before-rules"),
        (5, "team1_player2", "player-twice"),
        (6, "game_id", "id"),
        (7, "date", "buddhist-year"),
        (7, "striche1", "excel-number"),
    }


def test_a_ban_refuses_the_row(club: Club) -> None:
    teams = [["anna", "beat"], ["cla", "thordur"]]
    result = {"teams": teams, "outcome": "team1", "quits": [{"player": "cla", "at": "2026-03-01T18:30:00Z"}]}
    times = {"started_at": "2026-03-01T18:00:00Z", "finished_at": "2026-03-01T19:00:00Z"}
    body = {"game_id": "s1", **times, "result": result}
    assert club.system.request("POST", "/v1/pools/spades/games", json=body, key=club.key).status == 201
    head = "game_id,started,team1_player1,team1_player2,team2_player1,team2_player2,winner\n"
    report = club.report(head + "s2,2026-03-01 20:15,anna,beat,cla,thordur,1", "spades")
    assert [(e["row"], e["code"]) for e in report["errors"]] == [(2, "banned")]


def test_the_order_of_day_and_month_is_asked_once(club: Club) -> None:
    data = f"{JASS}\ng1,03/02/2026,,anna,beat,cla,thordur,3,1\ng2,04/02/2026,,anna,beat,cla,thordur,3,1"
    (question,) = club.report(data)["questions"]
    assert (question["key"], question["candidates"]) == ("date-order", ["dmy", "mdy"])
    assert club.report(data, answers={"date-order": "mdy"})["new"] == 2
    assert club.game("g1").body["started_at"] == "2026-03-02T11:00:00Z"


def test_what_was_not_taken_waits_in_the_inbox_until_the_file_comes_whole(club: Club) -> None:
    def inbox() -> Any:
        return club.system.request("GET", "/v1/clubs/bern/attention", key=club.key).body["rows"]

    data = rows(2) + "g2,2026-03-09,12:00,anna,beat,cla,Þórður,-1,1\r\ng3,2026-03-09,13:00,Zoe,beat,cla,Þórður,3,1\r\n"
    club.report(data, filename="a.csv", mode="lenient", preview="true")
    assert inbox() == []
    club.report(data, filename="a.csv", mode="lenient")
    club.report(data, filename="b.csv")  # strict: refused
    second, first = inbox()
    assert (first["filename"], second["filename"], first["pool"], first["bad"]) == ("a.csv", "b.csv", "jass", 2)
    told = [(error["row"], error["column"], error["code"]) for error in first["errors"]]
    assert told == [(4, "striche1", "negative"), (5, "team1_player1", "unknown-player")]
    club.report(rows(2), filename="a.csv")
    assert [line["filename"] for line in inbox()] == ["b.csv"]


def test_a_tournament_report(club: Club) -> None:
    pgn = "\n\n".join(
        f'[Event "Frühlingsturnier 2026"]\n[White "{w}"]\n[Black "{b}"]\n[Date "2026.03.0{n}"]\n[Result "{r}"]\n\n{r}'
        for n, (w, b, r) in enumerate([("anna", "beat", "1-0"), ("cla", "anna", "1/2-1/2"), ("beat", "cla", "*")], 1)
    )
    report = club.report(pgn, "bridier", filename="t.pgn")
    assert (report["new"], report["bad"]) == (2, 0)
    assert {n["code"] for n in report["notices"]} >= {"label-id"}
    standings = club.system.request("GET", "/v1/pools/bridier/players/anna").body
    club.system.rate(["bridier"])
    standings = club.system.request("GET", "/v1/pools/bridier/players/anna").body
    assert standings["record"]["drawn"] == 1


# -- the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("mode=maybe", "mode"),
        ("forfeits=x", "forfeits"),
        ("answers=%5B1%5D", "answers"),
        ("answers=%7B", "answers"),
        ("answers=%7B%22player%3Azoe%22%3A%22nobody%22%7D", "answers"),
        ("answers=%7B%22date-order%22%3A%22x%22%7D", "answers"),
        ("preview=1", "preview"),
        ("prewiew=true", "prewiew"),
        ("filename=%0A", "filename"),
        ("preview_token=x", "preview_token"),
    ],
)
def test_wrong_parameters_are_named(club: Club, query: str, field: str) -> None:
    body = f"{JASS}\ng1,2026-03-01,,Zoe,beat,cla,anna,3,1" if "zoe" in query else rows(1)
    path = f"/v1/pools/jass/imports?{query}"
    answer = club.system.request("POST", path, key=club.key, body=body.encode())
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)
    assert club.game("g1").status == club.game("g0").status == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "empty-file"),
        (b"a,b\n1,2", 422, "missing-column"),
        (b"%PDF-1.4", 422, "other-format"),
        (b"PK\x03\x04nonsense", 422, "not-a-workbook"),
        (b"x" * 1_000_001, 413, "too-large"),
        ((JASS + "\n" + "a" * 3_000).encode(), 413, "too-large-cell"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem_document(club: Club, body: bytes, status: int, code: str) -> None:
    answer = club.send(body)
    assert (answer.status, answer.body["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_preview_binds_until_the_pool_moves(club: Club) -> None:
    token = club.report(rows(2), preview="true")["preview_token"]
    assert club.send(rows(1, first=99)).status == 200
    club.system.rate(["jass"])
    late = club.send(rows(2), preview_token=token)
    assert (late.status, late.body["code"]) == (409, "pool-moved")
    assert club.game("g0").status == 404
    token = club.report(rows(30), preview="true")["preview_token"]
    assert club.report(rows(30), preview_token=token)["new"] == 30


# -- breaking off ------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the table fail from its n-th transaction of several items on, until it is mended."""
    whole, left = Table.transact, [0]

    def transact(self: Table, operations: Any) -> None:
        if len(operations) > 40:
            if left[0] <= 0:
                raise Busy("transact_write_items")
            left[0] -= 1
        whole(self, operations)

    def break_after(transactions: int) -> None:
        left[0] = transactions
        monkeypatch.setattr(Table, "transact", transact)

    yield break_after
    monkeypatch.setattr(Table, "transact", whole)


def test_strict_broken_off_in_the_middle_is_completed_each_game_once(
    club: Club, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(2)
    answer = club.send(rows(60), filename="season.csv")
    assert answer.status == 202, answer.body
    path = f"/v1/imports/{answer.body['import_id']}"
    half = club.system.request("GET", path, key=club.key).body
    assert (half["status"], half["rows"]) == ("running", 60)
    assert 40 <= half["done"] < 60
    assert "report" not in half
    monkeypatch.undo()
    event = {"Records": [{"messageId": "1", "body": json.dumps(_announcement(answer.body["import_id"]))}]}
    club.system.invoke("ImporterFunction", event)
    club.system.invoke("ImporterFunction", event)  # delivered twice
    done = club.system.request("GET", path, key=club.key).body
    assert (done["status"], done["done"], done["report"]["new"]) == ("done", 60, 60)
    assert club.pool()["games"] == 60
    assert counts(club.report(rows(60))) == (0, 60, 0, 0)


def test_a_registration_broken_off_is_not_done_twice(club: Club, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(60).replace("Þórður", "Neu Mann")
    answers = {"player:neu mann": "+neu"}
    broken(1)
    answer = club.send(data, answers=answers)
    assert answer.status == 202
    monkeypatch.undo()
    assert import_jobs.run(context(), answer.body["import_id"]) == "done"
    assert club.pool()["games"] == 60
    players = club.system.request("GET", "/v1/clubs/bern/players", key=club.key).body["players"]
    assert [p["player"] for p in players if p["name"] == "Neu Mann"] == ["neu"]


def test_lenient_broken_off_goes_on_when_it_is_sent_again(
    club: Club, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(1)
    assert club.send(rows(60), mode="lenient").status == 503
    monkeypatch.undo()
    new, unchanged, _, _ = counts(club.report(rows(60), mode="lenient"))
    assert new + unchanged == 60
    assert unchanged > 0
    assert club.pool()["games"] == 60


def _meanwhile(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Let something happen once, before the second larger transaction."""
    whole, count = Table.transact, [0]

    def transact(self: Table, operations: Any) -> None:
        count[0] += len(operations) > 40
        if count[0] == 2:
            count[0] += 1
            act()
        whole(self, operations)

    monkeypatch.setattr(Table, "transact", transact)


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_game_the_club_sends_or_corrects_meanwhile_is_as_if_it_had_come_before_the_file(
    club: Club, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    def act() -> None:
        line = f"{JASS}\ng59,2026-05-01,18:59,anna,beat,cla,thordur,7,0"
        assert counts(club.report(line)) == (1, 0, 0, 0)

    _meanwhile(monkeypatch, act)
    report = club.report(rows(60), mode=mode)
    monkeypatch.undo()
    if mode == "strict":  # all or nothing, and it was decided: all
        assert counts(report) == (60, 0, 0, 0)
        assert report["errors"] == []
        assert club.game("g59").body["revision"] == 2
        assert counts(club.report(rows(60))) == (0, 60, 0, 0)
    else:
        assert counts(report) == (59, 0, 0, 1)
        assert [(e["row"], e["code"]) for e in report["errors"]] == [(61, "changed-meanwhile")]
        assert "g59" in report["bad_rows_csv"]
        assert counts(club.report(rows(60), mode=mode)) == (0, 59, 1, 0)
    assert club.pool()["games"] == 60


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("who", ["bern", "basel"])
def test_a_new_player_whom_somebody_registers_meanwhile_is_one_player(
    club: Club, monkeypatch: pytest.MonkeyPatch, mode: str, who: str
) -> None:
    """Else the games would name a record that nobody knows."""
    whole, seen = Table.transact, list[int]()

    def transact(self: Table, operations: Any) -> None:
        if len(operations) > 40 and not seen:
            seen.append(len(operations))
            key = club.key if who == "bern" else club.new_key("basel")
            answer = club.system.request("PUT", "/v1/players/nora-neu", json={"name": "Nora Neu"}, key=key)
            assert answer.status == 201
        whole(self, operations)

    club.system.admin("PUT", "/v1/clubs/basel", {"name": "Basel"})
    monkeypatch.setattr(Table, "transact", transact)
    report = club.report(rows(60).replace("Anna Aebi", "Nora Neu"), mode=mode, answers={"player": "register"})
    monkeypatch.undo()
    assert seen
    assert report["errors"] == []
    assert report["good"] == 60
    assert club.pool()["games"] == 60
    seated = [{p for team in club.game(g).body["result"]["teams"] for p in team} for g in ("g0", "g59")]
    assert seated[0] == seated[1]
    (nora,) = seated[0] - {"beat", "cla", "thordur"}
    assert (nora == "nora-neu") == (who == "bern")
    told = club.system.request("GET", f"/v1/players/{nora}").body
    assert (told["name"], told["managed_by"]) == ("Nora Neu", "bern")


def test_a_row_that_meanwhile_cannot_be_a_game_any_more_is_told(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        assert club.system.request("DELETE", "/v1/players/cla", key=club.key).status == 202
        others = {"teams": [["anna", "beat"], ["a1", "a2"]]}
        body = {"game_id": "g59", "started_at": "2026-05-01T12:00:00Z", "line_up": others}
        assert club.system.request("POST", "/v1/pools/jass/games", json=body, key=club.key).status == 201

    _meanwhile(monkeypatch, act)
    report = club.report(rows(60))
    monkeypatch.undo()
    assert counts(report) == (59, 0, 0, 1)
    header, lost, end = report["bad_rows_csv"].split("\r\n")
    assert header.endswith(",reason")
    assert lost.startswith("g59,")
    assert "no player" in lost
    assert end == ""


def test_two_files_of_a_club_do_not_mix(club: Club) -> None:
    ctx = context()
    job = import_jobs._new_job(ctx, _pool(), "bern", importing.Options())
    with import_jobs._lock(ctx, job):
        answer = club.send(rows(60))
        assert (answer.status, answer.body["code"]) == (409, "import-running")
        assert "retry-after" in answer.headers
        assert club.game("g0").status == 404
        assert not importer.run(ctx, _stored(club), 0.0)
    assert counts(club.report(rows(60))) == (60, 0, 0, 0)


def _pool() -> Any:
    from shared.store import pools

    return pools.load(context().table, "jass")


def _stored(club: Club) -> str:
    """An upload that has arrived."""
    body = {"filename": "x.csv", "bytes": 10}
    answer = club.system.request("POST", "/v1/pools/jass/uploads", json=body, key=club.key)
    import_id: str = answer.body["import_id"]
    context().data.put(f"uploads/{import_id}", rows(2).encode(), "application/octet-stream")
    return import_id


def _announcement(import_id: str) -> dict[str, Any]:
    return {"Records": [{"s3": {"object": {"key": f"uploads/{import_id}"}}}]}


# -- uploads -----------------------------------------------------------------------------------------------------------


def test_a_large_file_is_announced_uploaded_and_imported(club: Club) -> None:
    import_id = _stored(club)
    path = f"/v1/imports/{import_id}"
    waiting = club.system.request("GET", path, key=club.key).body
    assert (waiting["status"], waiting["rows"], waiting["filename"]) == ("waiting", 0, "x.csv")
    assert import_jobs.run(context(), import_id) == "done"
    done = club.system.request("GET", path, key=club.key).body
    assert (done["status"], done["rows"], done["done"], done["report"]["new"]) == ("done", 2, 2, 2)


def test_more_rows_than_a_request_may_do_become_a_job(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "REQUEST_ROWS", 10)
    answer = club.send(rows(11), preview="true")
    assert (answer.status, answer.headers["location"]) == (202, f"/v1/imports/{answer.body['import_id']}")
    assert import_jobs.run(context(), answer.body["import_id"]) == "done"
    report = club.system.request("GET", answer.headers["location"], key=club.key).body["report"]
    assert (report["status"], report["new"], "effects" in report) == ("preview", 11, True)
    assert club.game("g0").status == 404


def test_a_job_that_cannot_be_taken_says_why(club: Club) -> None:
    ctx = context()
    for data, code in ((b"%PDF", "other-format"), (rows(1).replace("3,1", "3,x").encode(), "not-a-number")):
        import_id = _stored(club)
        ctx.data.put(f"uploads/{import_id}", data, "application/octet-stream")
        assert import_jobs.run(ctx, import_id) == "failed"
        told = club.system.request("GET", f"/v1/imports/{import_id}", key=club.key).body
        assert (told["status"], told["report"]["errors"][0]["code"]) == ("failed", code)
    assert club.game("g0").status == 404


def test_bad_rows_that_are_too_many_for_the_report_lie_apart(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "INLINE_CSV", 10)
    monkeypatch.setattr(importing, "REQUEST_ROWS", 1)
    answer = club.send(rows(2).replace("3,1", "x,1", 1), mode="lenient")
    assert import_jobs.run(context(), answer.body["import_id"]) == "done"
    told = club.system.request("GET", f"/v1/imports/{answer.body['import_id']}", key=club.key).body
    assert (told["report"]["new"], told["report"]["bad"], told["report"]["bad_rows_csv"]) == (1, 1, None)
    assert f"reports/{answer.body['import_id']}.csv" in told["bad_rows_url"]
    assert b"reason" in (context().data.get(f"reports/{answer.body['import_id']}.csv") or b"")


def test_uploads_at_the_door(club: Club) -> None:
    path = "/v1/pools/jass/uploads"

    def announce(body: Any, key: str | None = club.key) -> Answer:
        return club.system.request("POST", path, json=body, key=key)

    large = announce({"filename": "x.csv", "bytes": 12_000_001})
    assert (large.status, large.body["limit"]) == (413, 12_000_000)
    assert announce({"filename": "x.csv", "bytes": 12_000_000}).status == 201
    assert announce({"filename": "x.csv"}).status == 422
    assert announce({"filename": "x.csv", "bytes": 1, "more": 1}).status == 422
    assert announce({"filename": "x.csv", "bytes": 1}, None).status == 401
    club.system.admin("PUT", "/v1/clubs/thun", {"name": "Thun"})
    other = club.new_key("thun")
    import_id = announce({"filename": "x.csv", "bytes": 1}).body["import_id"]
    assert club.system.request("GET", f"/v1/imports/{import_id}", key=other).status == 403
    assert club.system.admin("GET", f"/v1/imports/{import_id}").status == 200
    assert club.system.request("GET", "/v1/imports/none", key=club.key).status == 404
    assert club.system.request("GET", "/v1/clubs/bern/players", key=other).status == 403


def test_whose_key_it_is(club: Club) -> None:
    own = club.system.request("GET", "/v1/key", key=club.key).body
    assert own == {"club": "bern", "name": "Bern", "scopes": ["manage", "submit"]}
    assert club.system.admin("GET", "/v1/key").body["club"] == "admin"
    assert club.system.request("GET", "/v1/key").status == 401


def test_an_admin_imports_for_a_club(club: Club) -> None:
    body = rows(2).encode()
    answer = club.system.admin("POST", "/v1/pools/jass/imports?club=bern", body=body)
    assert (answer.status, answer.body["new"]) == (200, 2)
    assert club.game("g0").body["club"] == "bern"
    own = club.system.admin("POST", "/v1/pools/jass/imports", body=body.replace(b"Anna Aebi", b"anna"))
    assert [q["key"] for q in own.body["questions"]] == ["player:þórður"]  # ids alone: an admin has no roster
