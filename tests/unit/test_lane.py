"""Plain games rated in bulk come out as those rated one by one: rows, states, closings, to the bit."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.ledger import lane as lane_module
from shared.ledger.fold import Closed, Fold, Rated, Reset, Start, Story
from shared.ledger.order import to_instant
from shared.ledger.plain import apart, from_games, merged, one_part, without
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system, spades
from shared.ratings.base import Game, PlayerState

BEGIN = to_instant(dt.datetime(2025, 9, 20, tzinfo=dt.UTC))
HOUR = 3_600_000_000
RULES: dict[str, list[list[dict[str, Any]]]] = {
    "spades": [
        [{}],
        [{"opposition": "pairwise", "k": 31.25}],
        [{"k": {"first": 40, "up_to_games": 3, "then": 20}}],
        [{"k": 10_000}, {"k": {"first": 40, "up_to_games": 3, "then": 20}}, {"k": 25}],
    ],
    "jass": [[{}], [{"k": 64}, {}], [{"measure": "points", "target_points": 1000}]],
    "bridier": [[{}], [{"basis": "start"}, {"basis": "end"}]],
}


def content_of(dice: random.Random, name: str, players: list[str]) -> dict[str, Any]:
    if name == "bridier":
        two = dice.sample(players, 2)
        kind = dice.random()
        if kind < 0.1:
            return {"players": sorted(two), "draw": True}
        if kind < 0.2:
            three = dice.sample(players, 3)
            defeats = [{"winner": three[0], "loser": three[1], "at": 0}]
            return {"players": sorted(three), "defeats": defeats, "ruins": []}
        return {"players": sorted(two), "winner": two[0]}
    four = dice.sample(players, 4)
    teams = [sorted(four[:2]), sorted(four[2:])]
    if name == "jass":
        if dice.random() < 0.5:
            return {"teams": teams, "points": [dice.randrange(1500), dice.randrange(1500)]}
        a, b = dice.randrange(6), dice.randrange(1, 6)
        found: dict[str, Any] = {"teams": teams, "striche": [a, b]}
        if dice.random() < 0.3:
            found["points"] = [dice.randrange(3) * 157, 157]
        return found | ({"winner": "team1"} if a == b else {})
    found = {"teams": teams, "outcome": dice.choice(["team1", "team2", "draw"])}
    if dice.random() < 0.1:
        found["quits"] = [{"player": four[0], "at": None, "back_at": None}]
    elif dice.random() < 0.1:
        found["nils"] = [{"bidder": four[0], "set": True, "set_by": four[2]}]
    return found


def games_of(dice: random.Random, name: str, count: int, spread: int) -> list[Game]:
    players = [f"p{n}" for n in range(dice.choice([5, 9]))]
    found = []
    for number in range(count):
        at = BEGIN + dice.randrange(spread) * HOUR // 2
        lasts = dice.choice([0, 0, 0, 0, HOUR])
        content = content_of(dice, name, players)
        for quit_ in content.get("quits", ()):
            quit_["at"] = at
        found.append(
            Game(
                dice.choice(["bern", "uri"]),
                f"g{number}",
                1,
                at,
                at + lasts,
                group=dice.choice([None, "dienstag"]),
                tournament=dice.choice([None, None, "cup"]),
                round=dice.choice([None, 0, 1, 2]),
                sequence=dice.randrange(3),
                content=content,
            )
        )
    return found


def told(fold: Fold, story: Story, until: int | None) -> tuple[list[Any], list[Any]]:
    """Everything a fold tells, and the states at every closing."""
    rows: list[Any] = []
    closings = []
    for what in fold.run(story, closings_after=None, closed_until=until):
        if isinstance(what, Closed):
            copies = {sid: _state(state) for sid, state in what.states.items()}
            closings.append((what.at, what.day, what.moments, copies))
        else:
            rows.append(what)
    return rows, closings


def _state(state: PlayerState) -> tuple[Any, ...]:
    return tuple(getattr(state, name) for name in state.__struct_fields__)


@pytest.mark.parametrize("name", sorted(RULES))
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), rules=st.integers(0, 10), at_once=st.sampled_from([1, 3, 100]))
def test_bulk_equals_one_by_one(name: str, seed: int, rules: int, at_once: int) -> None:
    dice = random.Random(seed)
    system = rule_system(name)
    chosen = RULES[name][rules % len(RULES[name])]
    spread = dice.choice([40, 4000])
    dated = [
        DatedRules(BEGIN + HOUR * (number * spread // 8 or 1 - spread % 3), system.settings_model.model_validate(entry))
        for number, entry in enumerate(chosen)
    ]
    games = games_of(dice, name, dice.choice([1, 30, 120]), spread)
    fresh = system.start(None, dated[0].settings)
    carried = PlayerState(fresh.rating + 17, 300 if fresh.index else 0, 7, last_result=738_000 if fresh.index else 0)
    starts = [Start("p1", carried, BEGIN)] if dice.random() < 0.3 else []
    resets = [Reset(BEGIN + spread * HOUR // 4, "p2")] if dice.random() < 0.3 else []
    aliases = {"p3": "p4"} if dice.random() < 0.3 else {}
    until = BEGIN + (spread + 5000) * HOUR // 2 if dice.random() < 0.8 else None
    zone = dice.choice(["Europe/Zurich", "America/St_Johns", "UTC"])
    by_rows = Fold(system, dated, zone)
    expected = told(by_rows, Story(games, starts, resets, aliases), until)
    plain, others = from_games(system, games, 2 if name == "bridier" else 4)
    patch = pytest.MonkeyPatch()
    patch.setattr(lane_module, "MOST_AT_ONCE", at_once)
    patch.setattr(lane_module, "LABEL_AT", at_once * 3)
    patch.setattr(lane_module, "SETTLE_AT", at_once * 2)
    try:
        in_bulk = Fold(system, dated, zone)
        rows, closings = told(in_bulk, Story(others, starts, resets, aliases, plain=one_part(plain)), until)
        streamed = Fold(system, dated, zone)
        story = Story(others, starts, resets, aliases, plain=one_part(plain))
        for _ in streamed.stream(story, closings_after=None, closed_until=until):
            pass
    finally:
        patch.undo()

    def key(what: Any) -> tuple[str, str]:
        return (type(what).__name__, what.order if isinstance(what, Rated) else what.game.game_id)

    assert sorted(rows, key=key) == sorted(expected[0], key=key)
    assert [r.order for r in rows if isinstance(r, Rated)] == [r.order for r in expected[0] if isinstance(r, Rated)]
    assert closings == expected[1]
    whole = {sid: _state(state) for sid, state in by_rows.states.items()}
    assert {sid: _state(state) for sid, state in in_bulk.states.items()} == whole
    assert {sid: _state(state) for sid, state in streamed.states.items()} == whole
    assert in_bulk.moments == streamed.moments == by_rows.moments


@pytest.mark.parametrize("k", [25, 0.0001, 10_000])
@pytest.mark.parametrize("scales", [0, 0.1, 1, 7, 20, 29.9, 30.1, 300, 400])
def test_a_change_is_the_same_at_any_distance(k: float, scales: float) -> None:
    """Also where 10 to the power of it is more than a float can hold."""
    system = spades.Spades()
    rules = system.settings_model.model_validate({"k": k})
    units = round(k * spades.MILLION)
    for sign in (1, -1):
        apart_by = sign * round(scales * spades.BOTH_SCALES)
        for outcome, halves in (("team1", 4), ("draw", 2), ("team2", 0)):
            result = system.plain({"outcome": outcome}, rules)
            assert result is not None
            change = system.team_change(result, rules)
            assert change is not None
            assert change(float(apart_by)) == units * halves // 2 - spades._team_share(units, apart_by)


@pytest.mark.parametrize("name", sorted(RULES))
def test_games_come_back_as_told(name: str) -> None:
    dice = random.Random(7)
    system = rule_system(name)
    games = games_of(dice, name, 200, 50)
    width = 2 if name == "bridier" else 4
    parts = [from_games(system, games[n::3], width) for n in range(3)]
    whole = merged([plain for plain, _ in parts])
    back = [whole.game(system, number) for number in range(len(whole))]
    assert back == sorted(back, key=lambda g: (g.started_at, g.round or 0, g.sequence, g.club, g.game_id))
    others = [game for _, rest in parts for game in rest]
    assert sorted(back + others, key=lambda g: g.game_id) == sorted(games, key=lambda g: g.game_id)
    assert len(back) > 100
    first = back[0]
    assert len(without(whole, {("nobody", first.game_id)})) == len(whole)
    assert [g.game_id for g in back[1:]] == without(whole, {(first.club, first.game_id)}).details.game_ids
    fast, slow = apart(whole, system, lambda kind: True, merged_players={"p0"})
    assert all("p0" in system.players(game.content) for game in slow)
    assert not any("p0" in fast.players(number) for number in range(len(fast)))


def test_a_chunk_is_read_before_the_next_step() -> None:
    system = rule_system("spades")
    plain, _ = from_games(system, games_of(random.Random(1), "spades", 50, 4000), 4)
    fold = Fold(system, [DatedRules(0, system.settings_model())], "UTC")
    until = BEGIN + 4000 * HOUR
    chunks = [
        c
        for c in fold.stream(Story(plain=one_part(plain)), closings_after=None, closed_until=until)
        if not isinstance(c, Closed)
    ]
    with pytest.raises(ValueError, match="before the next step"):
        list(fold.rows(chunks[0]))  # type: ignore[arg-type]


def test_as_many_games_as_may_wait_are_counted_right() -> None:
    most = lane_module.SETTLE_AT + lane_module.MOST_AT_ONCE
    assert lane_module._parts(most * (1.0 + lane_module._WON)) == (most, most)
    assert lane_module._parts(float(most)) == (most, 0)


def test_a_record_under_a_label_is_told_in_several_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four who play all the time: what waits to be told is told before it runs over, and added up."""
    monkeypatch.setattr(lane_module, "SETTLE_AT", 3_000)
    system, count = rule_system("spades"), 20_000
    content = {"teams": [["a", "b"], ["c", "d"]], "outcome": "team1"}
    plain, _ = from_games(system, [Game("bern", "g", 1, BEGIN, BEGIN, content=content)], 4)
    for column in (plain.kind, plain.label, *plain.seats):
        column.extend([column[0]] * (count - 1))
    plain.at.extend(range(BEGIN + 1, BEGIN + count))
    fold = Fold(system, (DatedRules(-(2**60), system.settings_model()),), "UTC")
    for _ in fold.stream(Story([], plain=one_part(plain)), closings_after=None, closed_until=None):
        pass
    winner, loser = fold.states["a"], fold.states["d"]
    assert (winner.games, winner.won, loser.lost) == (count, count, count)
    gained = winner.rating - system.start(None, system.settings_model()).rating
    assert winner.labels["club:bern"] == winner.labels["year:2025"]
    assert winner.labels["club:bern"][:7] == (count, count, 0, 0, 0, 0, gained)
    assert loser.labels["club:bern"][:7] == (count, 0, 0, count, 0, 0, -gained)
