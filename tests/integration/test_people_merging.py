"""Two records of one person: merged, split again; what is rated, waits, or comes later, in every pool."""

from __future__ import annotations

import random
from typing import Any

import pytest

from local.inprocess import System
from shared.usecases import bootstrap, merging
from tests.integration.people_fixture import Ladder, at, duel


@pytest.fixture
def ladder(system: System) -> Ladder:
    made = Ladder(system)
    made.pool("duels", "bridier")
    made.players("anna ann bob cy")
    return made


def merge(ladder: Ladder, player: str, into: str, *, status: int = 202, query: str = "") -> Any:
    answer = ladder.system.admin("POST", f"/v1/players/{player}/merge{query}", {"into": into})
    return ladder.expect(answer, status)


def unmerge(ladder: Ladder, player: str, body: Any = None, *, status: int = 202, query: str = "") -> Any:
    answer = ladder.system.admin("POST", f"/v1/players/{player}/unmerge{query}", body or {})
    return ladder.expect(answer, status)


def some_games(ladder: Ladder, pool: str = "duels") -> None:
    ladder.send(pool, "g1", duel("anna", "bob"), at(1))
    ladder.send(pool, "g2", duel("ann", "cy"), at(2))
    ladder.send(pool, "g3", duel("bob", "ann"), at(3))
    ladder.send(pool, "g4", duel("anna", "cy"), at(4))


def test_a_merge_is_an_alias_over_the_whole_history(ladder: Ladder) -> None:
    some_games(ladder)
    before = ladder.hash("duels")
    body = merge(ladder, "ann", "anna")
    assert (body["player"], body["into"], body["pools"]) == ("ann", "anna", ["duels"])
    merged = ladder.hash("duels")
    ladder.pool("fresh", "bridier")
    ladder.players("anna2 bob2 cy2")
    for n, (winner, loser) in enumerate((("anna2", "bob2"), ("anna2", "cy2"), ("bob2", "anna2"), ("anna2", "cy2")), 1):
        ladder.send("fresh", f"f{n}", duel(winner, loser), at(n))
    assert ladder.rating("duels", "anna") == ladder.rating("fresh", "anna2")
    assert ladder.rating("duels", "bob") == ladder.rating("fresh", "bob2")
    shown = ladder.get("/v1/pools/duels/players/anna")
    assert ladder.games_of("duels", "anna") == ["g4", "g3", "g2", "g1"]
    assert shown["record"] == {"games": 4, "won": 3, "drawn": 0, "lost": 1}
    assert ladder.rebuilt("duels") == merged != before
    unmerge(ladder, "ann")
    assert ladder.hash("duels") == before == ladder.rebuilt("duels")
    assert ladder.get("/v1/pools/duels/players/ann")["record"]["games"] == 2


def test_reading_a_merged_player_shows_the_survivor(ladder: Ladder) -> None:
    some_games(ladder)
    merge(ladder, "ann", "anna")
    found = ladder.get("/v1/players/ann")
    assert (found["player"], found["name"], found["merged"]) == ("anna", "Anna Muster", ["ann"])
    ladder.rate()
    shown = ladder.get("/v1/pools/duels/players/ann")
    assert (shown["player"], shown["name"], shown["record"]["games"]) == ("anna", "Anna Muster", 4)
    unmerge(ladder, "ann", {"into": "anna"})
    assert ladder.get("/v1/players/ann")["player"] == "ann"
    assert "merged" not in ladder.get("/v1/players/anna")


def test_both_handles_work_afterwards_and_mean_themselves_after_an_unmerge(ladder: Ladder) -> None:
    some_games(ladder)
    merge(ladder, "ann", "anna")
    ladder.send("duels", "g5", duel("ann", "bob"), at(5))
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/anna")["record"]["games"] == 5
    assert ladder.get("/v1/pools/duels/games/bern:g5")["result"]["players"] == ["ann", "bob"]
    unmerge(ladder, "ann")
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/anna")["record"]["games"] == 2
    assert ladder.get("/v1/pools/duels/players/ann")["record"]["games"] == 3
    assert ladder.hash("duels") == ladder.rebuilt("duels")


def test_pools_joined_or_opened_later_know_the_merge(ladder: Ladder) -> None:
    ladder.pool("quiet", "bridier")
    some_games(ladder)
    merge(ladder, "ann", "anna")
    ladder.rate()
    ladder.pool("later", "bridier")
    for pool in ("quiet", "later"):
        some_games(ladder, pool)
        ladder.rate()
        assert ladder.get(f"/v1/pools/{pool}/players/anna")["record"]["games"] == 4, pool
        assert ladder.get(f"/v1/pools/{pool}")["players"] == 3
    assert ladder.hash("quiet") == ladder.hash("later") == ladder.hash("duels") == ladder.rebuilt("quiet")
    unmerge(ladder, "ann")
    for pool in ("quiet", "later"):
        ladder.rate()
        assert ladder.get(f"/v1/pools/{pool}/players/ann")["record"]["games"] == 2, pool
        assert ladder.hash(pool) == ladder.rebuilt(pool)


def test_a_merge_that_changes_nothing_does_not_replay_a_pool(ladder: Ladder) -> None:
    ladder.pool("quiet", "bridier")
    ladder.send("quiet", "q", duel("bob", "cy"), at(1))
    some_games(ladder)
    ladder.rate()
    before = ladder.get("/v1/pools/quiet")
    merge(ladder, "ann", "anna")
    ladder.rate()
    after = ladder.get("/v1/pools/quiet")
    assert after["position"] == before["position"] + 1
    assert after["state_hash"] == before["state_hash"]
    item = bootstrap.context().table.get("POOL#quiet", "CURSOR")
    assert item is not None
    assert item["generation"] == 0


def test_waiting_and_open_games_take_part(ladder: Ladder) -> None:
    ladder.send("duels", "g1", duel("anna", "bob"), at(1))
    ladder.rate()
    ladder.open("duels", "live", {"players": ["ann", "cy"]}, at(2))
    ladder.rate()  # ann has no rating yet, and sits in an open game
    ladder.send("duels", "wait", duel("ann", "bob"), at(1, 22))
    merge(ladder, "ann", "anna")
    ladder.rate()
    ladder.put(
        "/v1/pools/duels/games/live", {"reason": "over", "finished_at": at(3), "result": duel("ann", "cy")}, revision=1
    )
    ladder.rate()
    assert ladder.games_of("duels", "anna") == ["live", "wait", "g1"]
    game = ladder.get("/v1/pools/duels/games/live")
    line = next(c for c in game["changes"] if c["player"] == "anna")
    assert line["explanation"]["lines"][0]["own_rank"] == 518  # what both together had at its start
    assert ladder.hash("duels") == ladder.rebuilt("duels")


def test_the_survivors_start_holds(ladder: Ladder) -> None:
    ladder.start("duels", "anna", rank=600, index=100, last_result_on="2024-02-20")
    ladder.start("duels", "ann", rank=900, index=100, last_result_on="2024-02-20")
    some_games(ladder)
    before = ladder.hash("duels")
    merge(ladder, "ann", "anna")
    ladder.rate()
    history = ladder.get("/v1/pools/duels/players/anna")["history"]
    assert history[-1]["after"] == {"rank": 600, "index": 100}
    assert [h["kind"] for h in history].count("start") == 1
    answer = ladder.system.admin("PUT", "/v1/pools/duels/players/ann", {"start": {"rank": 700}})
    assert (answer.status, answer.body["code"], answer.body["into"]) == (409, "merged", "anna")
    unmerge(ladder, "ann")
    assert ladder.hash("duels") == before


def test_whoever_met_in_a_game_is_not_one_person(ladder: Ladder) -> None:
    def refused(**game: Any) -> Any:
        body = merge(ladder, "ann", "anna", status=409)
        assert body["code"] == "met-in-a-game"
        return body["existing"]

    ladder.pool("cards", "spades")
    ladder.players("dora eve")
    sent = {"teams": [["bob", "cy"], ["dora", "eve"]], "outcome": "team1"}
    quits = [{"player": "bob", "at": at(1, 19)}]
    body = {**sent, "teams": [["bob", "anna"], ["dora", "eve"]], "quits": quits}
    body["substitutes"] = [{"for": "bob", "player": "ann"}]
    ladder.send("cards", "sub", body, at(1), started_at=at(1, 18))
    assert refused() == {"pool": "cards", "game": "bern:sub"}  # a substitute, and not even rated yet
    ladder.post("/v1/pools/cards/games/sub/void", {"reason": "x"}, status=200)
    ladder.send("duels", "friendly", duel("ann", "anna"), at(1), rated=False)
    assert refused() == {"pool": "duels", "game": "bern:friendly"}
    correction = {"reason": "was bob", "result": duel("ann", "bob")}
    ladder.put("/v1/pools/duels/games/friendly", correction, revision=1, status=200)
    ladder.open("duels", "live", {"players": ["ann", "anna"]}, at(2))
    assert refused() == {"pool": "duels", "game": "bern:live"}
    ladder.post("/v1/pools/duels/games/live/void", {"reason": "x"}, status=200)
    ladder.rate()
    merge(ladder, "ann", "anna")


def test_whoever_met_a_record_merged_before_is_refused_too(ladder: Ladder) -> None:
    ladder.send("duels", "g1", duel("ann", "cy"), at(1))
    merge(ladder, "ann", "anna")
    assert merge(ladder, "cy", "anna", status=409)["code"] == "met-in-a-game"
    assert merge(ladder, "anna", "cy", status=409)["code"] == "met-in-a-game"


def test_a_game_that_brings_them_together_later_is_held(ladder: Ladder) -> None:
    some_games(ladder)
    merge(ladder, "ann", "anna")
    ladder.send("duels", "odd", duel("ann", "anna"), at(6))
    ladder.send("duels", "after", duel("bob", "cy"), at(7))
    ladder.rate()
    game = ladder.get("/v1/pools/duels/games/odd")
    assert (game["status"], game["held_reason"]) == ("held", "the same person sits twice at the table")
    assert ladder.get("/v1/pools/duels/games/after")["status"] == "rated"
    assert ladder.get("/v1/pools/duels")["held"] == 1
    unmerge(ladder, "ann")
    ladder.rate()
    assert ladder.get("/v1/pools/duels/games/odd")["status"] == "rated"
    assert ladder.hash("duels") == ladder.rebuilt("duels")


def test_refusals(ladder: Ladder) -> None:
    some_games(ladder)
    assert merge(ladder, "nobody", "anna", status=404)["code"] == "not-found"
    assert merge(ladder, "ann", "nobody", status=422)["errors"][0]["code"] == "unknown-player"
    assert merge(ladder, "ann", "ann", status=422)["errors"][0] == {
        "field": "into",
        "code": "same-player",
        "message": "A player cannot be merged into himself.",
    }
    for body in ({}, {"into": 1}, {"into": "~"}, {"into": "anna", "x": 1}):
        answer = ladder.system.admin("POST", "/v1/players/ann/merge", body)
        assert answer.status == 422, body
    key = ladder.key
    assert ladder.system.request("POST", "/v1/players/ann/merge", json={"into": "anna"}, key=key).status == 403
    assert ladder.system.request("POST", "/v1/players/ann/unmerge", json={}, key=key).status == 403
    assert unmerge(ladder, "ann", status=409)["code"] == "not-merged"
    assert unmerge(ladder, "nobody", status=404)["code"] == "not-found"
    merge(ladder, "ann", "anna")
    assert merge(ladder, "ann", "cy", status=409)["code"] == "already-merged"
    assert merge(ladder, "anna", "ann", status=409)["code"] == "already-merged"
    assert unmerge(ladder, "ann", {"into": "cy"}, status=409)["code"] == "not-merged"


def test_the_same_again_changes_nothing(ladder: Ladder) -> None:
    some_games(ladder)
    ladder.rate()
    first = merge(ladder, "ann", "anna")
    ladder.rate()
    position = ladder.get("/v1/pools/duels")["position"]
    assert merge(ladder, "ann", "anna") == first
    ladder.rate()
    assert ladder.get("/v1/pools/duels")["position"] == position
    undone = unmerge(ladder, "ann")
    ladder.rate()
    assert unmerge(ladder, "ann") == undone
    ladder.rate()
    assert ladder.get("/v1/pools/duels")["position"] == position + 1


def test_chains_follow_through(ladder: Ladder) -> None:
    ladder.players("an")
    some_games(ladder)
    ladder.send("duels", "g5", duel("an", "cy"), at(5))
    before = ladder.hash("duels")
    merge(ladder, "an", "ann")
    merge(ladder, "ann", "anna")
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/an")["player"] == "anna"
    assert ladder.get("/v1/players/anna")["merged"] == ["an", "ann"]
    assert ladder.get("/v1/pools/duels/players/anna")["record"]["games"] == 5
    unmerge(ladder, "ann")
    ladder.rate()
    assert ladder.get("/v1/pools/duels/players/ann")["record"]["games"] == 3
    assert ladder.get("/v1/players/ann")["merged"] == ["an"]
    unmerge(ladder, "an")
    assert ladder.hash("duels") == before


def test_preview_tells_every_pool_and_its_token_holds_the_commit(ladder: Ladder) -> None:
    ladder.pool("more", "bridier")
    ladder.pool("none", "bridier")
    some_games(ladder)
    ladder.send("more", "m", duel("ann", "bob"), at(1))
    before = {pool: ladder.hash(pool) for pool in ladder.pools}
    told = merge(ladder, "ann", "anna", status=200, query="?preview=true")
    assert [p["pool"] for p in told["effects"]["pools"]] == ["duels", "more"]
    assert told["effects"]["games_rerated"] == 4  # not the first, in which ann had no part
    assert {pool: ladder.hash(pool) for pool in ladder.pools} == before
    assert ladder.get("/v1/players/ann")["player"] == "ann"
    token = told["preview_token"]
    ladder.send("more", "late", duel("bob", "cy"), at(2))
    for _ in range(2):  # waiting, then rated
        body = merge(ladder, "ann", "anna", status=409, query=f"?preview_token={token}")
        assert body["code"] == "pool-moved"
        ladder.rate()
    told = merge(ladder, "ann", "anna", status=200, query="?preview=true")
    merge(ladder, "ann", "anna", query=f"?preview_token={told['preview_token']}")
    ladder.rate()
    for row in told["effects"]["players"]:
        if row["after"] is None:
            assert row["player"] == "ann"
            continue
        assert ladder.get(f"/v1/pools/{row['pool']}/players/{row['player']}")["rating"] == row["after"]
    back = unmerge(ladder, "ann", status=200, query="?preview=true")["effects"]
    assert {(r["pool"], r["player"]) for r in back["players"]} == {
        (r["pool"], r["player"]) for r in told["effects"]["players"]
    }
    for bad in ("v3", "m", "x" * 33):
        answer = merge(ladder, "ann", "cy", status=409, query=f"?preview_token={bad}")
        assert answer["code"] in ("met-in-a-game", "already-merged")
    unmerge(ladder, "ann")
    assert merge(ladder, "ann", "anna", status=422, query="?preview_token=v3")["errors"][0]["field"] == "preview_token"


def test_more_pools_than_a_transaction_holds(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    some_games(ladder)
    for n in range(4):
        ladder.pool(f"p{n}", "bridier")
    monkeypatch.setattr(merging, "POOLS_AT_ONCE", 2)
    monkeypatch.setattr(merging, "_tell_the_rest", lambda ctx, made: None)  # a crash behind the first transaction
    merge(ladder, "ann", "anna")
    table = bootstrap.context().table
    monkeypatch.undo()
    monkeypatch.setattr(merging, "POOLS_AT_ONCE", 2)
    assert [len(m["untold"]) for m in table.query("MERGES")] == [3]
    merge(ladder, "ann", "anna")  # the retry completes it
    assert [m["untold"] for m in table.query("MERGES")] == [[]]
    ladder.players("an")
    merge(ladder, "an", "bob")
    monkeypatch.setattr(merging, "POOLS_AT_ONCE", 0)
    ladder.pool("newest", "bridier")  # told before it is made
    monkeypatch.undo()
    ladder.rate()
    for pool in ladder.pools:
        aliases = {item["sk"] for item in table.query(f"ALIASES#{pool}")}
        assert len(aliases) == 2, pool


def test_random_histories_end_as_a_fresh_fold_does(ladder: Ladder) -> None:
    dice = random.Random(7)
    names = [f"p{n}" for n in range(6)]
    ladder.players(" ".join(names))
    into: dict[str, str] = {}
    sent = 0
    for _ in range(45):
        step = dice.random()
        if step < 0.6:
            one, two = dice.sample(names, 2)
            sent += 1
            ladder.send("duels", f"r{sent}", duel(one, two), at(dice.randint(1, 28), dice.randint(8, 22)))
        elif step < 0.75:
            one, two = dice.sample(names, 2)
            if ladder.system.admin("POST", f"/v1/players/{one}/merge", {"into": two}).status == 202:
                into[one] = two
        elif step < 0.85 and into:
            one = dice.choice(sorted(into))
            unmerge(ladder, one)
            del into[one]
        elif sent:
            ladder.post(f"/v1/pools/duels/games/r{dice.randint(1, sent)}/void", {"reason": "x"}, status=200)
        if dice.random() < 0.4:
            ladder.rate()
    assert ladder.hash("duels") == ladder.rebuilt("duels")
