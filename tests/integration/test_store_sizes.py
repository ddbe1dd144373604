"""Large pools and long histories: no item above 100 KB, no page of 1 MB forgotten, and small things stay small."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from local.inprocess import System
from shared.ledger.events import Event, encode, event_id
from shared.problems import Problem
from shared.ratings.base import Game
from shared.store import keys, ledger, people
from shared.store import rated as store
from shared.usecases import games, reading, rebuild
from shared.usecases.drafts import GameDraft
from tests.integration.ladder import DAY, HOUR, MINUTE, Ladder, at, audit, iso_of, small_steps, spades

ITEM = 100_000
"""Bytes that no item may exceed."""


def tell(ladder: Ladder, games: list[Game]) -> None:
    """Write games into the ledger as if they had been rated long ago, and ask for a rebuild."""
    items: list[dict[str, Any]] = []
    for game in games:
        ladder.now += 1000
        event = Event(event_id(ladder.now, ladder.ctx.token(12)), "game", ladder.now, "finished", game)
        month = "2026-08"
        pk = keys.ledger("p", month, ledger.inbox_shard(event))
        items.append({"pk": pk, "sk": event.id, "event": encode(event)})
    ladder.ctx.table.batch_write(puts=items)
    rebuild.request(ladder.ctx, ladder.pool())


def game(number: int, teams: list[list[str]], when: int, **more: Any) -> Game:
    sids = [[f"sid-{p}" for p in team] for team in teams]
    outcome = ("team1", "team2", "draw")[number % 3]
    return Game(
        "bern", f"g{number:05d}", 1, when - 30 * MINUTE, when, content={"teams": sids, "outcome": outcome}, **more
    )


def sizes(ladder: Ladder) -> dict[tuple[str, str], int]:
    return {key: len(msgspec.json.encode(item)) for key, item in ladder.items().items()}


def prepared(ladder: Ladder, players: list[str]) -> Ladder:
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool(rules=[{"from": "1950-01-01"}])
    for player in players:
        ladder.ctx.table.transact(people.registration(player, player.title(), "bern", f"sid-{player}"))
    return ladder


def test_a_pool_of_three_megabytes(emulated_system: System) -> None:
    """Of players, of rated moments in one month, of inbox and ledger: each several pages of 1 MB on MiniStack."""
    players = [f"player-{n:04d}" for n in range(1600)]
    ladder = prepared(Ladder.of(emulated_system), [])
    told = []
    for number in range(2600):
        four = [players[(number * 4 + seat * (1 + number // 400)) % 1600] for seat in range(4)]
        if len(set(four)) == 4:
            more = {"group": f"group-{number % 5}", "tournament": f"championship-of-the-year-{number % 7}"}
            told.append(game(number, [four[:2], four[2:]], at("2026-07-01 12:00") + number * 16 * MINUTE, **more))
    tell(ladder, told)
    with small_steps():
        ladder.rate()
        expected = audit(ladder)
        weight: dict[str, int] = {}
        for (pk, _), size in sizes(ladder).items():
            kind = f"RATED#{pk.split('#')[2]}" if pk.startswith("RATED") else pk.split("#")[0]
            weight[kind] = weight.get(kind, 0) + size
        assert weight["RATED#2026-07"] > 2_000_000, "pages are missed where there are several"
        assert weight["STATE"] + weight["RATED#2026-07"] + weight["LEDGER"] > 3_000_000
        assert len(store.read_all_states(ladder.ctx.table, "p", ladder.cursor().view)) == len(expected.fold.states)
        ladder.register("x", "y", "z", "w")
        ladder.submit(spades("late", "xy-zw", "2026-07-28 12:00"))
        ladder.submit(spades("new", "xy-zw", "2026-08-19 12:00"))
        ladder.rate()
        audit(ladder)


def test_a_player_of_twenty_thousand_games() -> None:
    ladder = prepared(Ladder.in_memory(), list("abcdefgh"))
    ladder.register("n")
    start = at("2001-01-01 12:00")
    told = []
    for number in range(20_000):
        others = "bcdefgh"
        three = [others[(number + seat) % 7] for seat in range(3)]
        more = {"tournament": f"cup-{number // 40}", "group": f"evening-{number % 30}"}
        told.append(game(number, [["a", three[0]], three[1:]], start + number * 11 * HOUR, **more))
    tell(ladder, told)
    ladder.rate()
    pool, view = ladder.pool(), ladder.cursor().view
    assert ladder.cursor().games == 20_000
    rows, cursor, seen = [], None, 0
    while True:
        rows, cursor = reading.history_rows(ladder.ctx.table, "p", "sid-a", view, before=cursor, limit=1000)
        seen += len(rows)
        if cursor is None:
            break
    assert seen == 20_000
    found = sizes(ladder)
    largest = max(found, key=lambda key: found[key])
    assert found[largest] < ITEM, largest
    assert found[keys.cursor("p")] < 1_000
    assert found[store.index_key("p")] < 40_000
    packed = ladder.items()[keys.state("p", "sid-a")]
    assert str(packed.get("b", packed.get("a"))).startswith(store.PACKED), "its labels are packed"
    ladder.submit(spades("one-more", "ab-cd", ladder.now - 2 * HOUR))
    ladder.rate()
    ladder.submit(spades("and-one", "ab-cd", ladder.now - HOUR))
    ladder.calls.log.clear()
    ladder.rate()
    assert len(ladder.calls.log) == 8, "no more round trips than for anybody else"
    ladder.submit(spades("overlaps", "ab-cd", ladder.now - HOUR + MINUTE, minutes=600))
    ladder.calls.log.clear()
    ladder.rate()
    assert ladder.calls.reads() <= 14
    body = reading.player_in_pool(ladder.ctx, pool, "a", None)
    assert (body["record"]["games"], len(body["history"])) == (20_003, reading.PAGE)
    assert (
        store.read_states(ladder.ctx.table, "p", ["sid-a"], ladder.cursor().view)["sid-a"].state.labels["club:bern"][0]
        == 20_003
    )


def test_the_largest_game_corrected_for_ever() -> None:
    """Twenty players, each beaten by each; long notes and reasons in characters of four bytes."""
    players = [f"player{number:02d}" for number in range(20)]  # server-made ids of twelve characters
    ladder = prepared(Ladder.in_memory(), players)
    ladder.open_pool("duels", "bridier", [{"from": "2026-01-01"}])
    when = at("2026-08-10 12:00")
    defeats = [{"winner": a, "loser": b, "at": iso_of(when)} for a in players for b in players if a != b]
    result = {"players": players, "defeats": defeats}
    draft = GameDraft(game_id="g", started_at=when - DAY, finished_at=when, result=result, note="🂡" * 1000)
    ladder.submit(draft, "duels")
    pool, count = ladder.pool("duels"), 0

    def correct(number: int) -> None:
        ladder.now += 1000
        change = GameDraft(game_id="g", round=number, given=frozenset({"round"}))
        reason = "🂡" * 500 if number % 2 else "a" * 500
        games.correct(ladder.ctx, pool, "bern", ("bern", "g"), change, reason=reason, if_match=number)

    while len(ladder.items()[keys.game("duels", "bern", "g")]["revisions"].encode()) <= games.REVISIONS_BYTES:
        correct(count := count + 1)
    with pytest.raises(Problem) as refused:
        correct(count + 1)
    assert (refused.value.status, refused.value.code) == (409, "too-many-revisions")
    assert count > 20
    ladder.rate("duels")
    audit(ladder, "duels")
    found = {key: sum(len(f"{k}{v}".encode()) for k, v in item.items()) for key, item in ladder.items().items()}
    largest = max(found, key=lambda key: found[key])
    assert 80_000 < found[largest] < ITEM, largest


def test_rules_that_an_item_cannot_hold_are_refused() -> None:
    ladder = Ladder.in_memory()
    named = dict.fromkeys(("en", "de", "fr", "it"), "a" * 40)
    tiers = [{"names": named, "symbol": "x"} for _ in range(22)]
    with pytest.raises(Problem) as refused:
        ladder.open_pool("j", "jass", [{"from": f"{year}-01-01", "tiers": tiers} for year in range(2000, 2020)])
    assert [(e.field, e.code) for e in refused.value.errors] == [("rules", "too-long")]
    ladder.open_pool("j", "jass", [{"from": f"{year}-01-01", "tiers": tiers} for year in range(2000, 2003)])


def test_the_checkpoints_of_many_years_stay_few() -> None:
    ladder = prepared(Ladder.in_memory(), list("abcd"))
    start = at("1960-01-01 12:00")
    tell(ladder, [game(n, [["a", "b"], ["c", "d"]], start + n * 15 * DAY) for n in range(1600)])
    with small_steps(CHECKPOINT_SPACING=1):
        ladder.rate()
        audit(ladder)
        marks = store.read_index(ladder.ctx.table, "p").checkpoints
        assert 75 <= len(marks) <= 150
        assert [m.at for m in marks] == sorted({m.at for m in marks})
        ladder.submit(spades("late", "ab-cd", "1970-05-05 12:00"))
        ladder.rate()
        audit(ladder)
        client: Any = ladder.ctx.data.client
        kept = {m.key for m in store.read_index(ladder.ctx.table, "p").checkpoints}
        assert {key for key in client.objects if key.startswith("checkpoints/")} == kept


@pytest.mark.parametrize("size", [1, 300, 5000])
def test_a_state_survives_its_packing(size: int) -> None:
    labels = {f"tournament:bern-{n:05d}": (1, 1, 0, 0, n, 2, -n, 0) for n in range(size)}
    ladder = Ladder.in_memory()
    state = ladder.open_pool().system.start(None, ladder.pool().settings)
    state.labels = labels
    text = store.dump_state(store.StateRow(state, "x"))
    assert store.load_state(text) == store.StateRow(state, "x")
    assert len(text) < ITEM
    assert text.startswith(store.PACKED) == (size >= 300)
