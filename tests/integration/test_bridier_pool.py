"""Bridier over HTTP: bases, games of many, ruins, limits at the door, opponents worth a game, inactivity, classes."""

from __future__ import annotations

import datetime as dt
import random
import re
from typing import Any

import pytest

from local.inprocess import System
from shared.ledger.calendar import day_of
from shared.ratings.bridier import adjusted_stake, stake
from shared.usecases import bootstrap
from tests.integration.people_fixture import ZONE, Ladder, at, duel, fields

GAMES = "/v1/pools/duels/games"


@pytest.fixture
def ladder(system: System) -> Ladder:
    return Ladder(system)


def duels(ladder: Ladder, players: str = "anna bob cy dora", **settings: Any) -> None:
    ladder.pool("duels", "bridier", **settings)
    ladder.players(players)


def carried(ladder: Ladder, player: str, rank: int, index: int, last: str = "2024-02-20") -> None:
    ladder.start("duels", player, rank=rank, index=index, last_result_on=last)


def today() -> str:
    return day_of(bootstrap.context().clock(), ZONE).isoformat()


def after(ladder: Ladder, player: str) -> tuple[int, int]:
    """Rank and index right after a player's last game, whatever closings came since."""
    ladder.rate()
    history = ladder.get(f"/v1/pools/duels/players/{player}")["history"]
    line = next(h for h in history if h["kind"] == "game")
    return line["after"]["rank"], line["after"]["index"]


# -- whose ratings count -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("basis", "rating"), [("start", (700, 300)), ("hybrid", (586, 414))])
def test_twenty_parallel_wins(ladder: Ladder, basis: str, rating: tuple[int, int]) -> None:
    """Twenty games begun at 500/500 against 500/500 opponents, all won."""
    names = [f"o{n}" for n in range(20)]
    duels(ladder, "anna " + " ".join(names), basis=basis)
    for n, name in enumerate(names):
        body = {"players": ["anna", name]}
        ladder.open("duels", f"g{n}", body, at(1, 8), round=n)
    ladder.rate()
    for n, name in enumerate(names):
        body = {"reason": "over", "finished_at": at(2, 8, n), "result": duel("anna", name)}
        ladder.put(f"{GAMES}/g{n}", body, revision=1, status=200)
        if n == 10:
            ladder.rate()
    assert after(ladder, "anna") == rating
    assert ladder.hash("duels") == ladder.rebuilt("duels")


def test_basis_end_takes_what_stands_at_the_end(ladder: Ladder) -> None:
    duels(ladder, basis="end")
    begun = at(1, 8)
    ladder.send("duels", "g1", duel("anna", "bob"), at(1, 10), started_at=begun)
    ladder.send("duels", "g2", duel("anna", "bob"), at(1, 11), started_at=begun)
    gain = adjusted_stake(stake(510 - 490), 490, 490)
    assert after(ladder, "anna") == (510 + gain, 490 - gain)


def test_the_example_of_the_source(ladder: Ladder) -> None:
    duels(ladder)
    carried(ladder, "anna", 520, 453)
    carried(ladder, "bob", 648, 131)
    ladder.send("duels", "g", duel("anna", "bob"), at(1))
    assert (after(ladder, "anna"), after(ladder, "bob")) == ((562, 411), (646, 129))


def test_a_draw_moves_nothing_and_is_no_result(ladder: Ladder) -> None:
    duels(ladder)
    carried(ladder, "anna", 520, 150, "2024-01-10")
    ladder.send("duels", "g", {"players": ["anna", "bob"], "draw": True}, at(1))
    assert after(ladder, "anna") == (520, 150)
    shown = ladder.get("/v1/pools/duels/players/anna")
    assert shown["record"] == {"games": 1, "won": 0, "drawn": 1, "lost": 0}
    closing = next(h for h in reversed(shown["history"]) if h["kind"] == "closing")
    assert (closing["at"], closing["explanation"]["months"]) == ("2024-04-30T22:00:00Z", 3)  # since January


# -- games of three to twenty --------------------------------------------------------------------------------------
def test_defeats_of_one_game_rest_on_one_snapshot(ladder: Ladder) -> None:
    duels(ladder)
    for player, rank in (("anna", 520), ("bob", 500), ("cy", 480)):
        carried(ladder, player, rank, 100)
    pairs = [("anna", "bob"), ("cy", "anna"), ("bob", "cy")]
    results = []
    for number, order in enumerate(([0, 1, 2], [2, 1, 0])):
        defeats = [{"winner": pairs[i][0], "loser": pairs[i][1], "at": at(1, 19, n)} for n, i in enumerate(order)]
        body = {"players": ["anna", "bob", "cy"], "defeats": defeats}
        if number == 0:
            ladder.send("duels", "g", body, at(1), started_at=at(1, 18))
        else:
            ladder.put(f"{GAMES}/g", {"reason": "other order", "result": body}, revision=1, status=200)
        results.append([after(ladder, p) for p in ("anna", "bob", "cy")])
    assert results[0] == results[1] == [(518, 100), (500, 100), (482, 100)]


def test_no_defeat_changes_nothing(ladder: Ladder) -> None:
    duels(ladder)
    ladder.send("duels", "g", {"players": ["anna", "bob", "cy"], "defeats": []}, at(1))
    ladder.rate()
    game = ladder.get(f"{GAMES}/bern:g")
    assert (game["status"], game["changes"]) == ("rated", [])
    assert ladder.get("/v1/pools/duels")["players"] == 0


def test_ruins_count_on(ladder: Ladder) -> None:
    duels(ladder, ruin_penalty=5)
    carried(ladder, "bob", 600, 100)
    alone = {"players": ["anna", "bob", "cy"], "ruins": [{"player": "bob"}]}
    for number, loss in ((1, 5), (2, 10), (3, 15)):
        ladder.send("duels", f"g{number}", alone, at(number))
        before = 600 - 5 * (number - 1) * number // 2
        assert after(ladder, "bob") == (before - loss, 100)
    caused = {"players": ["anna", "bob"], "ruins": [{"player": "bob", "by": "anna"}]}
    ladder.send("duels", "g4", caused, at(4))
    lost = adjusted_stake(stake(500 - 570), 100, 500)
    assert after(ladder, "bob") == (570 - lost - 20, 100)
    history = ladder.get("/v1/pools/duels/players/bob")["history"]
    line = next(h for h in history if h["kind"] == "game")["explanation"]["lines"]
    assert [entry["result"] for entry in line] == ["loss", "ruin"]
    assert line[1]["previous_ruins"] == 3
    ladder.post(f"{GAMES}/g1/void", {"reason": "was another"}, status=200)
    assert after(ladder, "bob")[0] == 600 - 5 - 10 - adjusted_stake(stake(500 - 585), 100, 500) - 15


@pytest.mark.parametrize("seed", [1, 2])
def test_games_of_up_to_twenty_against_a_plain_calculation(ladder: Ladder, seed: int) -> None:
    dice = random.Random(seed)
    count = 20 if seed == 1 else dice.randint(3, 9)
    names = [f"p{n:02d}" for n in range(count)]
    duels(ladder, " ".join(names), alliance_average=True, ruin_penalty=3)
    start = {name: (dice.randint(300, 800), dice.randint(100, 499)) for name in names}
    for name, (rank, index) in start.items():
        carried(ladder, name, rank, index)
    allied = dice.sample(names, 4 if count > 4 else 2)
    alliances = [allied[:2], allied[2:]] if len(allied) == 4 else [allied]
    means = {p: sum(start[q][0] for q in group) // len(group) for group in alliances for p in group}
    pairs = dice.sample([(a, b) for a in names for b in names if a != b], min(30, count * 2))
    ruined = {b: a for a, b in pairs[:2]}
    defeats = [(a, b) for a, b in pairs if ruined.get(b) != a]
    now = {name: list(rating) for name, rating in start.items()}
    ruins = [{"player": b, "by": a, "at": at(1, 19, 59)} for b, a in ruined.items()]
    listed = [{"winner": a, "loser": b, "at": at(1, 19, n)} for n, (a, b) in enumerate(defeats)]
    for winner, loser in [*defeats, *sorted((a, b) for b, a in ruined.items())]:
        points = stake(means.get(winner, start[winner][0]) - means.get(loser, start[loser][0]))
        for player, other, sign in ((winner, loser, 1), (loser, winner, -1)):
            own = adjusted_stake(points, start[player][1], start[other][1])
            now[player][0] = max(now[player][0] + sign * own, 100)
            now[player][1] = max(now[player][1] - own, 100)
        if ruined.get(loser) == winner:
            now[loser][0] = max(now[loser][0] - 3, 100)
    body = {"players": names, "defeats": dice.sample(listed, len(listed)), "alliances": alliances, "ruins": ruins}
    ladder.send("duels", "war", body, at(1), started_at=at(1, 18))
    ladder.rate()
    assert {p: after(ladder, p) for p in names} == {p: tuple(rating) for p, rating in now.items()}
    changes = ladder.get(f"{GAMES}/war")["changes"]
    for change in changes:
        for key, total in (("rank", "rank_change"), ("index", "index_change")):
            assert change["explanation"][total] == change["change"][key]
            assert sum(line[f"applied_{key}"] for line in change["explanation"]["lines"]) == change["change"][key]


def test_alliances_must_be_fair_where_the_pool_asks(ladder: Ladder) -> None:
    duels(ladder, "anna bob cy dora eve", fair_alliances=True)
    body = {"players": ["anna", "bob", "cy", "dora", "eve"], "alliances": [["anna", "bob"], ["cy", "dora", "eve"]]}
    refused = ladder.open("duels", "g", body, at(1), status=422)
    assert fields(refused) == [("line_up.alliances", "unequal-alliances")]


# -- limits at the door --------------------------------------------------------------------------------------------
def test_limits_of_the_pool(ladder: Ladder) -> None:
    duels(ladder, entry={"minimum_rank": 450, "maximum_rank": 600, "minimum_index": 100, "maximum_index": 400})
    carried(ladder, "anna", 449, 100)
    carried(ladder, "bob", 601, 400)
    carried(ladder, "cy", 500, 400)
    ladder.rate()
    body = ladder.send("duels", "g", duel("bob", "anna"), at(1), status=422)
    assert [(e["field"], e["code"], e["message"]) for e in body["errors"]] == [
        ("result.players[1]", "minimum-rank", "anna has rank 449; this game asks for at least 450."),
        ("result.players[0]", "maximum-rank", "bob has rank 601; this game allows at most 600."),
    ]
    body = ladder.open("duels", "g", {"players": ["dora", "cy"]}, at(1), status=422)
    assert [(e["field"], e["code"], e["message"]) for e in body["errors"]] == [
        ("line_up.players[0]", "maximum-index", "dora has index 500; this game allows at most 400.")
    ]
    ladder.send("duels", "u", duel("bob", "anna"), at(1), rated=False)


@pytest.mark.parametrize(("index", "gain"), [(460, 1), (461, 0)])
def test_the_gain_itself_is_tested(ladder: Ladder, index: int, gain: int) -> None:
    duels(ladder, entry={"minimum_gain": 1})
    carried(ladder, "anna", 500, 100, today())
    carried(ladder, "bob", 500, index, today())
    ladder.rate()
    answer = ladder.post(GAMES, {"game_id": "g", "started_at": at(1), "line_up": {"players": ["bob", "anna"]}})
    assert answer.status == (201 if gain else 422)
    if not gain:
        assert [(e["field"], e["code"], e["message"]) for e in answer.body["errors"]] == [
            ("line_up.players[1]", "minimum-gain", "anna would win 0 against bob; this game asks for at least 1.")
        ]
    found = ladder.get("/v1/pools/duels/players/anna/opponents?minimum_gain=1")["opponents"]
    assert found == ([{"player": "bob", "gain": 1, "loss": 1}] if gain else [])
    everybody = ladder.get("/v1/pools/duels/players/anna/opponents?minimum_gain=0")["opponents"]
    assert everybody == [{"player": "bob", "gain": gain, "loss": gain}]


def test_limits_of_one_game(ladder: Ladder) -> None:
    duels(ladder)
    carried(ladder, "anna", 500, 500)
    carried(ladder, "bob", 500, 100)
    ladder.rate()
    limits = {"maximum_loss": 20, "minimum_rank": 500}
    body = ladder.open("duels", "g", {"players": ["anna", "bob"], "entry": limits}, at(1), status=422)
    assert [(e["field"], e["code"], e["message"]) for e in body["errors"]] == [
        ("line_up.players[0]", "maximum-loss", "anna would lose 50 against bob; this game allows at most 20.")
    ]
    game = ladder.open("duels", "g", {"players": ["anna", "bob"], "entry": {"minimum_rank": 500}}, at(1))
    assert game["line_up"]["entry"] == {"minimum_rank": 500}
    wrong = {"players": ["anna", "bob"], "entry": {"minimum_rank": 600, "maximum_rank": 500}}
    assert fields(ladder.open("duels", "h", wrong, at(1), status=422)) == [("line_up.entry.maximum_rank", "invalid")]


def test_limits_look_at_the_start_of_the_game(ladder: Ladder) -> None:
    duels(ladder, entry={"maximum_rank": 505})
    ladder.send("duels", "g1", duel("anna", "bob"), at(1, 12))
    ladder.rate()
    ladder.send("duels", "late", duel("anna", "cy"), at(1, 13), started_at=at(1, 11))  # she had 500 then
    body = ladder.send("duels", "next", duel("anna", "cy"), at(1, 14), status=422)
    assert [e["message"] for e in body["errors"]] == ["anna has rank 520; this game allows at most 505."]


def test_limits_look_at_what_still_waits_to_be_rated(ladder: Ladder) -> None:
    duels(ladder, entry={"maximum_rank": 550})
    carried(ladder, "anna", 551, 300)
    line_up = {"players": ["anna", "bob"]}
    body = ladder.open("duels", "t", line_up, at(1, 10), status=422)
    assert fields(body) == [("line_up.players[0]", "maximum-rank")]
    for n, loser in enumerate(("bob", "cy")):  # 500/500 against 500/500: ten points, then less
        ladder.send("duels", f"g{n}", duel("dora", loser), at(1, 11 + n))
    ladder.pool("duels", "bridier", entry={"maximum_rank": 509})
    body = ladder.send("duels", "h", duel("bob", "dora"), at(1, 14), status=422)
    assert fields(body) == [("result.players[1]", "maximum-rank")]


def test_who_was_let_in_may_finish_and_be_corrected(ladder: Ladder) -> None:
    duels(ladder, entry={"maximum_rank": 505})
    ladder.open("duels", "g", {"players": ["anna", "bob"]}, at(1, 11))
    ladder.send("duels", "other", duel("anna", "cy"), at(1, 12))
    ladder.rate()
    done = {"reason": "over", "finished_at": at(1, 14), "result": duel("anna", "bob")}
    ladder.put(f"{GAMES}/g", done, revision=1, status=200)
    ladder.rate()
    ladder.put(f"{GAMES}/g", {"reason": "bob won", "result": duel("bob", "anna")}, revision=2, status=200)
    carried(ladder, "dora", 900, 100)
    ladder.rate()
    body = ladder.put(f"{GAMES}/g", {"reason": "dora", "result": duel("dora", "bob")}, revision=3, status=422)
    assert fields(body) == [("result.players[0]", "maximum-rank")]


# -- opponents -----------------------------------------------------------------------------------------------------
def test_opponents_best_first_page_by_page(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.usecases import quotes

    duels(ladder)
    for player, rank, index in (("anna", 500, 300), ("bob", 500, 300), ("cy", 560, 100), ("dora", 440, 300)):
        carried(ladder, player, rank, index, today())
    ladder.rate()
    path = "/v1/pools/duels/players/anna/opponents"
    found = ladder.get(path)["opponents"]

    def line(player: str, rank: int, index: int) -> dict[str, Any]:
        gain = adjusted_stake(stake(500 - rank), 300, index)
        return {"player": player, "gain": gain, "loss": adjusted_stake(stake(rank - 500), 300, index)}

    lines = [line("bob", 500, 300), line("cy", 560, 100), line("dora", 440, 300)]
    assert found == sorted(lines, key=lambda entry: (-entry["gain"], entry["loss"]))
    monkeypatch.setattr(quotes, "OPPONENTS", 2)
    first = ladder.get(path)
    second = ladder.get(f"{path}?cursor={first['next']}")
    assert [*first["opponents"], *second["opponents"]] == found
    assert second["next"] is None
    assert fields(ladder.get(f"{path}?cursor=zzz", 422)) == [("cursor", "invalid")]
    ladder.pool("cards", "spades")
    assert fields(ladder.get("/v1/pools/cards/players/anna/opponents", 422)) == [("pool", "no-stakes")]
    assert ladder.get("/v1/pools/duels/players/nobody/opponents", 404)["code"] == "not-found"


# -- inactivity ----------------------------------------------------------------------------------------------------
def test_what_the_closings_to_come_will_do(ladder: Ladder) -> None:
    duels(ladder)
    carried(ladder, "anna", 600, 100, today())
    carried(ladder, "bob", 600, 400, today())
    ladder.rate()
    decay = ladder.get("/v1/pools/duels/players/anna")["decay"]
    assert [step["index"] for step in decay] == [200, 300, 400, 500]
    days = [dt.date.fromisoformat(step["on"]) for step in decay]
    assert all(day.day == 1 for day in days)
    assert days == sorted(set(days))
    assert 89 <= (days[0] - dt.date.fromisoformat(today())).days <= 124
    assert set(decay[0]) == {"on", "index"}
    assert [step["index"] for step in ladder.get("/v1/pools/duels/players/bob")["decay"]] == [500]
    ladder.send("duels", "g", duel("cy", "dora"), at(1))
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/cy")["decay"] == []  # long back at 500
    ladder.pool("cards", "spades")
    ladder.start("cards", "anna", rating=1600)
    ladder.rate()
    assert "decay" not in ladder.get("/v1/pools/cards/players/anna")


def test_closings_stand_in_the_history(ladder: Ladder) -> None:
    duels(ladder)
    carried(ladder, "anna", 600, 100, "2023-11-30")
    ladder.rate()
    history = ladder.get("/v1/pools/duels/players/anna")["history"]
    rises = [(h["at"], h["after"]["index"]) for h in reversed(history) if h["kind"] == "closing"]
    assert rises == [
        ("2024-02-29T23:00:00Z", 200),  # 30 November is three months old on 29 February
        ("2024-03-31T22:00:00Z", 300),
        ("2024-04-30T22:00:00Z", 400),
        ("2024-05-31T22:00:00Z", 500),
    ]
    ladder.send("duels", "g", duel("anna", "bob"), at(5, month=2))
    ladder.rate()
    history = ladder.get("/v1/pools/duels/players/anna")["history"]
    assert next(h["at"] for h in reversed(history) if h["kind"] == "closing") == "2024-05-31T22:00:00Z"
    assert ladder.hash("duels") == ladder.rebuilt("duels")


# -- classes -------------------------------------------------------------------------------------------------------
def test_classes(ladder: Ladder) -> None:
    duels(ladder, "anna bob cy dora", new_above_index=450)
    for player, index in (("anna", 100), ("bob", 101), ("cy", 450), ("dora", 451)):
        carried(ladder, player, 500, index, today())
    ladder.rate()
    shown = {p: ladder.get(f"/v1/pools/duels/players/{p}")["class"] for p in ("anna", "bob", "cy", "dora")}
    assert shown == {"anna": "established", "bob": "settling", "cy": "settling", "dora": "new"}


def test_a_start_below_500_needs_its_date(ladder: Ladder) -> None:
    duels(ladder)
    answer = ladder.system.admin("PUT", "/v1/pools/duels/players/anna", {"start": {"rank": 520, "index": 453}})
    assert answer.status == 422
    assert fields(answer.body) == [("start.last_result_on", "missing")]


def test_head_to_head_of_a_game_of_many_is_who_beat_whom(ladder: Ladder) -> None:
    """Each opponent has what happened against him, and who was not met has nothing of it."""
    duels(ladder, "anna bob cy dora", ruin_penalty=5)
    ladder.send("duels", "duel", {"players": ["anna", "bob"], "winner": "anna"}, at(1))
    before = ladder.rate() or ladder.get("/v1/pools/duels/players/anna")["rating"]
    many = {
        "players": ["anna", "bob", "cy", "dora"],
        "defeats": [
            {"winner": "anna", "loser": "cy"},
            {"winner": "bob", "loser": "cy"},
        ],
        "ruins": [{"player": "anna", "by": "dora"}],
    }
    ladder.send("duels", "many", many, at(2))
    ladder.system.settle()
    lines = ladder.get("/v1/pools/duels/games/many")["changes"]
    (mine,) = [change["explanation"]["lines"] for change in lines if change["player"] == "anna"]
    by = {name: sum(line["applied_rank"] for line in mine if line["opponent"] == name) for name in ("cy", "dora")}
    after = ladder.get("/v1/pools/duels/players/anna")["rating"]
    assert by["cy"] + by["dora"] == after["rank"] - before["rank"]
    page = ladder.system.page("/duels/players/anna/")[2].decode()
    table = page[page.index("Head to head") :]
    rows = {
        name: re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row))
        for name in ("bob", "cy", "dora")
        for row in re.findall(r"<tr>.*?</tr>", table, re.S)
        if f"/players/{name}/" in row
    }
    assert " 1 1–0–0 " in rows["bob"], "the duel alone"
    assert " 1 1–0–0 " in rows["cy"]
    assert " 0–0–1 " in rows["dora"], "the ruin is no meeting of its own"
    for name, gained in by.items():
        assert f"{abs(gained)}" in rows[name]
