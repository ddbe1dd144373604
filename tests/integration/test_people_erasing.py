"""Erasing a person: the name is gone everywhere, the numbers stay, nothing brings it back."""

from __future__ import annotations

import contextlib
import json
import zlib
from typing import Any

import pytest

from local.inprocess import System
from shared.store import attention
from shared.store.table import from_wire
from shared.usecases import bootstrap, erasure
from tests.integration.people_fixture import Ladder, at, duel, fields


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.pool("duels", "bridier")
    made.pool("other", "bridier")
    made.players("anna bob cy")
    made.system.request("PUT", "/v1/players/zora77", json={"name": "Zora Nightingale"}, key=made.key)
    return made


def erase(ladder: Ladder, player: str = "zora77", *, key: str | None = None, status: int = 202) -> Any:
    return ladder.expect(ladder.system.request("DELETE", f"/v1/players/{player}", key=key or ladder.key), status)


def stored(ladder: Ladder) -> dict[str, str]:
    """Everything that is kept anywhere, as text: table, data bucket, site."""
    system = ladder.system
    found: dict[str, str] = {}
    for page in system.dynamodb.get_paginator("scan").paginate(TableName=system.names["Table"]):
        for item in map(from_wire, page["Items"]):
            found[f"table {item['pk']} {item['sk']}"] = json.dumps({k: str(v) for k, v in item.items()})
    for bucket in ("DataBucket", "SiteBucket"):
        for page in system.s3.get_paginator("list_objects_v2").paginate(Bucket=system.names[bucket]):
            for entry in page.get("Contents", []):
                body = system.s3.get_object(Bucket=system.names[bucket], Key=entry["Key"])["Body"].read()
                with contextlib.suppress(zlib.error):
                    body = zlib.decompress(body)
                found[f"{bucket} {entry['Key']}"] = entry["Key"] + body.decode(errors="replace")
    return found


def naming(ladder: Ladder, *words: str) -> list[str]:
    return [where for where, text in stored(ladder).items() if any(w in text.casefold() for w in words)]


def games(ladder: Ladder) -> None:
    ladder.send("duels", "g1", duel("zora77", "anna"), at(1), note="Zora was late")
    ladder.send("duels", "g2", duel("bob", "anna"), at(2), note="zora nightingale kept the score")
    ladder.send("duels", "g3", duel("anna", "bob"), at(3), note="nothing to say")
    ladder.send("duels", "g4", duel("cy", "zora77"), at(4))
    ladder.post("/v1/pools/duels/games/g4/void", {"reason": "Nightingale left"}, status=200)
    ladder.put("/v1/pools/duels/games/g3", {"reason": "ZORA77 told us", "note": "new"}, revision=1, status=200)
    answer = ladder.system.request(
        "POST",
        "/v1/pools/duels/games",
        json={"finished_at": at(5), "result": duel("zora77", "cy")},
        key=ladder.key,
        headers={"Idempotency-Key": "k1"},
    )
    assert answer.status == 201


def test_the_name_is_gone_everywhere_and_the_numbers_stay(ladder: Ladder) -> None:
    games(ladder)
    ladder.system.settle()
    assert naming(ladder, "zora", "nightingale")
    before, others = ladder.hash("duels"), [ladder.rating("duels", p) for p in ("anna", "bob", "cy")]
    pseudonym = erase(ladder)["player"]
    assert pseudonym.startswith("erased-")
    assert ladder.get("/v1/players/zora77", status=404)["code"] == "not-found"  # at once
    ladder.system.settle()
    assert naming(ladder, "zora", "nightingale") == []
    assert ladder.hash("duels") == before == ladder.rebuilt("duels")
    assert [ladder.rating("duels", p) for p in ("anna", "bob", "cy")] == others
    shown = ladder.get(f"/v1/pools/duels/players/{pseudonym}")
    assert (shown["player"], shown["name"], shown["record"]["games"]) == (pseudonym, pseudonym, 2)
    assert ladder.get(f"/v1/players/{pseudonym}")["clubs"] == []
    game = ladder.get("/v1/pools/duels/games/g1")
    assert game["result"]["winner"] == pseudonym
    assert sorted(game["result"]["players"]) == ["anna", pseudonym]
    assert game["note"] == ""
    assert ladder.get("/v1/pools/duels/games/g2")["note"] == ""
    third = ladder.get("/v1/pools/duels/games/g3")
    assert (third["note"], [r["reason"] for r in third["revisions"]]) == ("new", ["", ""])
    assert ladder.system.page(f"/duels/players/{pseudonym}/")[0] == 200
    assert ladder.system.page("/duels/players/zora77/")[0] == 404


def test_nothing_revives_an_erased_person(ladder: Ladder) -> None:
    games(ladder)
    ladder.rate()
    pseudonym = erase(ladder)["player"]
    ladder.rate()
    body = ladder.send("duels", "g1", duel("zora77", "anna"), at(1), status=422, note="Zora was late")
    assert {code for _, code in fields(body)} == {"unknown-player"}
    register = [{"id": "zora77", "name": "Zora Nightingale"}]
    again = {"game_id": "g1", "finished_at": at(1), "result": duel("zora77", "anna"), "register": register}
    assert ladder.post("/v1/pools/duels/games", again).status == 409
    assert ladder.get("/v1/players/zora77", status=404)
    body = ladder.send("duels", "g9", duel(pseudonym, "anna"), at(9), status=422)
    assert fields(body) == [("result.players[0]", "erased-player")]
    put = ladder.system.request("PUT", f"/v1/players/{pseudonym}", json={"name": "Zora"}, key=ladder.key)
    assert (put.status, put.body["code"]) == (409, "erased")
    # Who registers under the old handle is somebody new.
    ladder.send("duels", "g10", duel("zora77", "anna"), at(10), register=register)
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/zora77")["record"]["games"] == 1
    assert ladder.get(f"/v1/pools/duels/players/{pseudonym}")["record"]["games"] == 2


def test_games_of_an_erased_person_can_still_be_corrected(ladder: Ladder) -> None:
    games(ladder)
    ladder.rate()
    pseudonym = erase(ladder)["player"]
    ladder.rate()
    game = ladder.put("/v1/pools/duels/games/g1", {"reason": "r", "round": 2}, revision=1, status=200)
    assert (game["revision"], game["round"], game["result"]["winner"]) == (2, 2, pseudonym)
    ladder.put(
        "/v1/pools/duels/games/g1", {"reason": "other way", "result": duel("anna", pseudonym)}, revision=2, status=200
    )
    ladder.rate()
    assert ladder.get(f"/v1/pools/duels/players/{pseudonym}")["record"] == {"games": 2, "won": 1, "drawn": 0, "lost": 1}
    assert ladder.hash("duels") == ladder.rebuilt("duels")


def test_who_may_erase(ladder: Ladder) -> None:
    basel, submits = ladder.club("basel"), ladder.club("thun", ("submit",))
    for key in (basel, submits):
        assert erase(ladder, key=key, status=403)["code"] == "forbidden"
    assert ladder.system.request("DELETE", "/v1/players/zora77").status == 401
    assert erase(ladder, "nobody", status=404)["code"] == "not-found"
    first = ladder.system.admin("DELETE", "/v1/players/zora77")
    assert first.status == 202
    assert erase(ladder, first.body["player"]) == first.body  # again, under the name it has now


def test_all_records_of_a_merged_person_are_erased(ladder: Ladder) -> None:
    basel = ladder.club("basel")
    ladder.system.request("PUT", "/v1/players/zo", json={"name": "Zo Finch"}, key=basel)
    games(ladder)
    ladder.send("duels", "g7", duel("zo", "bob"), at(7), note="finch won")
    ladder.rate()
    assert ladder.system.admin("POST", "/v1/players/zo/merge", {"into": "zora77"}).status == 202
    ladder.system.settle()
    before = ladder.hash("duels")
    assert erase(ladder, status=403)["code"] == "forbidden"  # one of the records is Basel's
    assert ladder.system.admin("DELETE", "/v1/players/zo").status == 202
    ladder.system.settle()
    assert naming(ladder, "zora", "nightingale", "finch") == []
    assert ladder.hash("duels") == before == ladder.rebuilt("duels")


def test_two_people_with_one_name_stay_two(ladder: Ladder) -> None:
    ladder.system.request("PUT", "/v1/players/zora2", json={"name": "Zora Nightingale"}, key=ladder.key)
    ladder.send("duels", "g1", duel("zora2", "anna"), at(1))
    erase(ladder)
    ladder.rate()
    assert ladder.get("/v1/players/zora2")["name"] == "Zora Nightingale"
    assert ladder.get("/v1/pools/duels/games/g1")["result"]["winner"] == "zora2"


def test_a_pseudonym_that_somebody_took_is_not_used(ladder: Ladder) -> None:
    table = bootstrap.context().table
    sid = (table.get("PLAYER#zora77", "META") or {})["sid"]
    taken = f"erased-{sid[:6]}"
    ladder.players(taken)
    assert erase(ladder)["player"] == f"erased-{sid[:7]}"
    assert ladder.get(f"/v1/players/{taken}")["name"] == f"{taken.title()} Muster"


def test_a_crash_while_cleaning_is_made_good(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    games(ladder)
    ladder.rate()
    erase(ladder)

    def fails(*_: Any) -> None:
        raise RuntimeError("lost")

    for step in ("_clean_game", "_clean_changelog"):
        with monkeypatch.context() as patch:
            patch.setattr(erasure, step, fails)
            ladder.rate()
        assert naming(ladder, "nightingale"), step
    ladder.system.settle()
    assert naming(ladder, "zora", "nightingale") == []


def test_reports_of_imports_that_name_the_person_go(ladder: Ladder) -> None:
    data = bootstrap.context().data
    data.put(
        "reports/i1.json", b'{"registered": [{"player": "zora77", "name": "Zora Nightingale"}]}', "application/json"
    )
    data.put("reports/i2.json", b'{"registered": [{"player": "zora777", "name": "Zoran"}]}', "application/json")
    table = bootstrap.context().table
    for file, name in (("a.csv", "Zora Nightingale"), ("b.csv", "Zoran")):
        told = {"filename": file, "errors": [{"message": f'"{name}" plays twice in this game.'}]}
        table.write(attention.left("duels", "bern", file, told, 0))
    erase(ladder)
    ladder.rate()
    assert [key for key, _ in data.list("reports/")] == ["reports/i2.json"]
    assert [line["filename"] for line in attention.files(table, "bern")] == ["b.csv"]


def test_warnings_of_ours_name_the_pseudonym(ladder: Ladder) -> None:
    ladder.pool("cards", "spades")
    quits = [{"player": "zora77", "at": at(1, 19), "back_at": at(1, 19, 30)}]
    result = {"teams": [["zora77", "anna"], ["bob", "cy"]], "outcome": "team1", "quits": quits}
    sent = ladder.send("cards", "s1", result, at(1), started_at=at(1, 18))
    assert "zora77 was back" in sent["warnings"][0]["message"]
    pseudonym = erase(ladder)["player"]
    ladder.system.settle()
    assert naming(ladder, "zora", "nightingale") == []
    message = ladder.get("/v1/pools/cards/games/s1")["warnings"][0]["message"]
    assert message.startswith(f"{pseudonym} was back more than 3 minutes later")


@pytest.mark.parametrize(
    ("text", "own", "found"),
    [
        ("Anna Meier was late", False, True),
        ("ANNA  MEIER", False, True),
        ("ＡＮＮＡ meier", False, True),
        ("Anna Meiers", False, False),
        ("meier forgot", True, True),
        ("meier forgot", False, False),
        ("am-7 left", False, True),
        ("the 7 of hearts", True, False),
        ("", True, False),
    ],
)
def test_how_a_person_is_recognised(text: str, own: bool, found: bool) -> None:
    traces = erasure.Traces("am-7", "Anna Meier", "erased-x")
    assert traces.named_in(text, own_game=own) is found


def test_a_handle_of_a_letter_is_a_word_elsewhere() -> None:
    traces = erasure.Traces("a", "Al <script>", "erased-x")
    assert traces.named_in("a was b", own_game=True)
    assert not traces.named_in("what a game", own_game=False)
    assert (
        traces.replaced("a was back: a quit, not anna or a-b.") == "erased-x was back: erased-x quit, not anna or a-b."
    )
