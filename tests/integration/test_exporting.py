"""A club takes its games out as a file, and sending that file in again changes nothing."""

from __future__ import annotations

import csv
import io
import itertools
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.inprocess import System
from shared.usecases import exporting, games, pools
from shared.usecases.bootstrap import context
from tests.integration.people_fixture import Ladder, fields

AWKWARD = ["=1+1", "'quoted", 'a "b"; c, d', "+41", "two\nlines", "مرحبا", "🂡"]


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.players("anna bob cy dora")
    return made


def content(rules: str, number: int) -> dict[str, Any]:
    if rules == "bridier":
        pair = [["anna", "bob"], ["cy", "dora"], ["anna", "dora"]][number % 3]
        return {"players": pair, "winner": pair[number % 2]} if number % 5 else {"players": pair, "draw": True}
    teams = [["anna", "bob"], ["cy", "dora"]] if number % 2 else [["anna", "cy"], ["bob", "dora"]]
    if rules == "spades":
        return {"teams": teams, "outcome": ["team1", "team2", "draw"][number % 3]}
    return {"teams": teams, "striche": [number % 4 + 2, 1]}


def exported(ladder: Ladder, month: str, **more: Any) -> dict[str, Any]:
    query = "&".join(f"{name}={value}" for name, value in {"month": month, **more}.items())
    return ladder.get(f"/v1/pools/p/games?{query}")


def sent_again(ladder: Ladder, text: str) -> dict[str, Any]:
    answer = ladder.system.request(
        "POST",
        "/v1/pools/p/imports?mode=strict&filename=games.csv",
        body=text.encode(),
        key=ladder.key,
        headers={"content-type": "application/octet-stream"},
    )
    return dict(ladder.expect(answer, 200))


@pytest.mark.parametrize("rules", ["spades", "jass", "bridier"])
def test_a_months_games_go_in_again_and_nothing_changes(
    ladder: Ladder, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "PAGE", 4)
    ladder.pool("p", rules)
    other = ladder.club("uri")
    for number, note in enumerate(AWKWARD):
        more = {"note": note, "round": number, "group": "dienstag" if number % 2 else None}
        ladder.send("p", f"g-{number}", content(rules, number), f"2026-09-{number + 2:02d}T20:00:00+02:00", **more)
    ladder.send("p", "march-4", content(rules, 1), "2026-09-30T23:59:59+02:00")  # as a spreadsheet would spoil it
    ladder.send("p", "october", content(rules, 2), "2026-10-01T00:00:00+02:00")  # in UTC still September
    ladder.send("p", "gone", content(rules, 1), "2026-09-20T20:00:00+02:00")
    ladder.post("/v1/pools/p/games/gone/void", {"reason": "not played"}, status=200)
    body = {"game_id": "x", "finished_at": "2026-09-15T12:00:00Z", "result": content(rules, 1)}
    assert ladder.system.request("POST", "/v1/pools/p/games", json=body, key=other).status == 201
    ladder.rate()
    pages = [exported(ladder, "2026-09")]
    while pages[-1]["next"]:
        pages.append(exported(ladder, "2026-09", cursor=pages[-1]["next"]))
    assert [page["games"] for page in pages] == [4, 4]
    ids = [row["game_id"] for page in pages for row in csv.DictReader(io.StringIO(page["csv"].removeprefix("\ufeff")))]
    assert [game_id.removeprefix("'") for game_id in ids] == [*(f"g-{n}" for n in range(7)), "march-4"]
    before = ladder.get("/v1/pools/p")["state_hash"]
    for page in pages:
        report = sent_again(ladder, page["csv"])
        assert (report["new"], report["unchanged"], report["corrected"], report["bad"]) == (0, 4, 0, 0), report
    ladder.rate()
    assert ladder.get("/v1/pools/p")["state_hash"] == before
    assert ladder.get("/v1/pools/p/games/g-0")["revision"] == 1
    assert exported(ladder, "2026-10")["games"] == 1
    empty = exported(ladder, "2026-08")
    assert [empty[name] for name in ("month", "games", "shortened", "left_out", "next")] == ["2026-08", 0, 0, 0, None]
    theirs = ladder.system.request("GET", "/v1/pools/p/games?month=2026-09", key=other)
    assert (theirs.status, theirs.body["games"], theirs.body["club"]) == (200, 1, "uri"), "each club its own"


def test_what_the_columns_cannot_say_is_counted(ladder: Ladder) -> None:
    ladder.pool("p", "bridier")
    three = {"players": ["anna", "bob", "cy"], "defeats": [{"winner": "anna", "loser": "bob"}]}
    ladder.send("p", "g", three, "2026-09-03T20:00:00Z")
    ladder.rate()
    found = exported(ladder, "2026-09")
    assert (found["games"], found["left_out"]) == (0, 1)


def test_what_the_columns_leave_away_is_counted(ladder: Ladder) -> None:
    ladder.pool("p", "spades")
    teams = {"teams": [["anna", "bob"], ["cy", "dora"]], "outcome": "team1"}
    ladder.send("p", "plain", teams, "2026-09-03T20:00:00Z")
    ladder.send("p", "nil", {**teams, "nils": [{"bidder": "anna", "set": False}]}, "2026-09-04T20:00:00Z")
    ladder.send("p", "quit", {**teams, "quits": [{"player": "anna"}]}, "2026-09-05T20:00:00Z")
    ladder.rate()
    found = exported(ladder, "2026-09")
    assert (found["games"], found["shortened"], found["left_out"]) == (3, 2, 0)
    assert sent_again(ladder, found["csv"])["unchanged"] == 3


@pytest.mark.parametrize("month", ["", "2026", "2026-13", "2026-1", "2026-09-01", "x"])
def test_a_month_that_is_none(ladder: Ladder, month: str) -> None:
    ladder.pool("p", "jass")
    answer = ladder.system.request("GET", f"/v1/pools/p/games?month={month}", key=ladder.key)
    assert (answer.status, fields(answer.body)) == (422, [("month", "length" if not month else "month")])
    assert ladder.system.request("GET", "/v1/pools/p/games?month=2026-09").status == 401


# -- odd texts -----------------------------------------------------------------------------------------------------
PERSIAN = "علی\u200cرضا"
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
ODD = ["trailing ", "\u00a0leading", FAMILY, PERSIAN, " ", "\t=1+1", "line\r\n", "'", "a\u2003b\u3000", "sep=;", "#N/A"]
SIGNS = " \u00a0\u3000\t\r\n\u200c\u200d'\"=+-@,;#a1é👧"
YEARS = itertools.count(1970)


def test_odd_notes_go_in_again_and_nothing_changes(ladder: Ladder) -> None:
    ladder.pool("p", "bridier")
    ladder.players("0 1 draw")
    for number, note in enumerate(ODD):
        ladder.send("p", f"g-{number}", content("bridier", number), f"2026-09-{number + 2:02d}T20:00:00Z", note=note)
    ladder.send("p", "zero", {"players": ["0", "1"], "winner": "0"}, "2026-09-20T20:00:00Z", round=40_000)
    ladder.send("p", "drawn", {"players": ["anna", "draw"], "draw": True}, "2026-09-20T20:00:00Z", round=999_999)
    ladder.rate()
    report = sent_again(ladder, exported(ladder, "2026-09")["csv"])
    assert (report["rows"], report["unchanged"], report["errors"]) == (len(ODD) + 2, len(ODD) + 2, [])
    assert ladder.get("/v1/pools/p/games/g-0")["note"] == "trailing"
    for number, note in enumerate(ODD):
        finished = f"2026-09-{number + 2:02d}T20:00:00Z"
        again = ladder.send("p", f"g-{number}", content("bridier", number), finished, note=note, status=200)
        assert again["revision"] == 1


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.sampled_from(SIGNS) | st.characters(), max_size=20), min_size=1, max_size=8))
def test_whatever_note_the_api_takes_comes_back(ladder: Ladder, notes: list[str]) -> None:
    year = next(YEARS)
    ladder.pool("p", "jass", {"from": "1900-01-01"})
    sent = 0
    for number, note in enumerate(notes):
        body = {"game_id": f"{year}-{number}", "finished_at": f"{year}-03-{number + 2:02d}T20:00:00Z", "note": note}
        answer = ladder.post("/v1/pools/p/games", {**body, "result": content("jass", number)})
        assert answer.status in (201, 422)
        sent += answer.status == 201
    ladder.rate()
    report = sent_again(ladder, exported(ladder, f"{year}-03")["csv"])
    assert (report["rows"], report["unchanged"], report["errors"]) == (sent, sent, [])


def test_notes_kept_with_blanks_from_before_are_no_change(ladder: Ladder) -> None:
    ladder.pool("p", "jass")
    ladder.send("p", "g", content("jass", 1), "2026-09-03T20:00:00Z", note="kept")
    ladder.rate()
    ctx = context()
    pool = pools.require(ctx, "p")
    stored = games.load(ctx, pool, ("bern", "g"))
    stored.note = "\u00a0kept "
    stored.digest = stored.revisions[0].digest = games.digest_of(pool.system, stored.game, stored.note)
    ctx.table.batch_write([games.to_item("p", stored)])
    assert ladder.get("/v1/pools/p/games/g")["note"] == "\u00a0kept "
    report = sent_again(ladder, exported(ladder, "2026-09")["csv"])
    assert (report["unchanged"], report["corrected"]) == (1, 0)
    again = ladder.send("p", "g", content("jass", 1), "2026-09-03T20:00:00Z", note="\u00a0kept ", status=200)
    assert again["revision"] == 1
    ladder.put("/v1/pools/p/games/g", {"reason": "same", "note": "kept "}, revision=1, status=200)
    assert ladder.get("/v1/pools/p/games/g")["revision"] == 1
    ladder.put("/v1/pools/p/games/g", {"reason": "other", "note": "other"}, revision=1, status=200)
    assert ladder.get("/v1/pools/p/games/g")["revision"] == 2


def test_names_with_joiners_are_found_by_a_file(ladder: Ladder) -> None:
    ladder.pool("p", "bridier")
    for player, name in (("zw", PERSIAN), ("fam", f"Fam. {FAMILY}")):
        answer = ladder.system.request("PUT", f"/v1/players/{player}", json={"name": name}, key=ladder.key)
        assert (answer.status, answer.body["name"]) == (201, name)
    text = f"date,player1,player2,winner,note\n2026-09-03,{PERSIAN},Fam. {FAMILY},{PERSIAN},{FAMILY}\n"
    answer = ladder.system.request(
        "POST",
        f"/v1/pools/p/imports?filename={quote(PERSIAN)}.csv",
        body=text.encode(),
        key=ladder.key,
        headers={"content-type": "application/octet-stream"},
    )
    report = ladder.expect(answer, 200)
    assert (report["new"], report["errors"], report["questions"]) == (1, [], [])
    ladder.rate()
    assert sent_again(ladder, exported(ladder, "2026-09")["csv"])["unchanged"] == 1
