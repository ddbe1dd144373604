"""Made-up results: the same for a seed, valid at the door, possible in life."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from functions.api import models
from local import demo, generator
from local.generator import PoolPlan, World
from shared.ledger import calendar
from shared.ratings import rule_system
from shared.ratings.base import MICROSECONDS, Game, LiveSystem
from shared.usecases.drafts import GameDraft

UNTIL = dt.date(2026, 11, 28)
SEEDS = st.integers(0, 10**6)
DAYS = st.dates(dt.date(2020, 1, 1), dt.date(2030, 12, 31))


def _worlds(seed: int, until: dt.date) -> list[World]:
    return [generator.generate(seed, until), generator.generate_duels(seed, until, 200)]


def _pools(seed: int, until: dt.date) -> list[PoolPlan]:
    return [pool for world in _worlds(seed, until) for pool in world.pools]


def _draft(pool: PoolPlan, body: dict[str, Any]) -> GameDraft:
    return models.GameBody.model_validate(body, context={"time_zone": pool.body["time_zone"]}).draft()


def _rules(pool: PoolPlan) -> list[tuple[int, Any]]:
    """Instants and settings, as the pool would have them."""
    system = rule_system(pool.body["system"])
    return [
        (
            calendar.first_instant(dt.date.fromisoformat(entry["from"]), pool.body["time_zone"]),
            system.settings_model.model_validate({k: v for k, v in entry.items() if k != "from"}),
        )
        for entry in pool.body["rules"]
    ]


def test_the_same_seed_and_day_give_the_same_world() -> None:
    assert _worlds(3, UNTIL) == _worlds(3, UNTIL)
    assert generator.generate(3, UNTIL) != generator.generate(4, UNTIL)


def test_a_world_is_the_same_on_every_machine() -> None:
    """Numbers of one seed written down: random's methods may change between versions of Python, and this says so."""
    games = {pool.id: pool.games for pool in _pools(7, UNTIL)}
    assert {pool: len(found) for pool, found in games.items()} == {"schieber": 924, "spades": 456, "forum": 200}
    assert games["schieber"][0][1]["result"] == {
        "teams": [["elif-caglar", "kaethi-rueegsegger"], ["hanspeter-naegeli", "beat-zgraggen"]],
        "striche": [3, 5],
    }


@settings(max_examples=12, deadline=None)
@given(SEEDS, DAYS)
def test_pools_players_and_starts_pass_the_door(seed: int, until: dt.date) -> None:
    for world in _worlds(seed, until):
        clubs = {club.id for club in world.clubs}
        assert all(models.fold_id(club) == club for club in clubs)
        for pool in world.pools:
            models.PoolBody.model_validate(pool.body, context={"clubs": clubs})
            system = rule_system(pool.body["system"])
            for start in pool.starts.values():
                system.start(system.start_model.model_validate(start), _rules(pool)[0][1])
            assert set(pool.starts) <= {player.id for player in pool.players}
        for player in world.players:
            models.PlayerBody.model_validate(player.body, context={"clubs": clubs})
            assert models.fold_id(player.id) == player.id
            assert player.club in clubs


@settings(max_examples=12, deadline=None)
@given(SEEDS, DAYS)
def test_games_are_valid_under_the_rules_in_force(seed: int, until: dt.date) -> None:
    for pool in _pools(seed, until):
        system, rules = rule_system(pool.body["system"]), _rules(pool)
        known = {player.id for player in pool.players}
        ids = [(club, body["game_id"]) for club, body in pool.games]
        assert len(set(ids)) == len(ids)
        assert {club for club, _ in pool.games} <= set(pool.body["clubs"])
        for _, body in pool.games:
            draft = _draft(pool, body)
            assert draft.started_at is not None
            assert draft.finished_at is not None
            newest = max(n for n, (since, _) in enumerate(rules) if since <= draft.started_at)
            result = TypeAdapter(system.result_model).validate_python(draft.result)
            normal = system.normalise(result, rules[newest][1], draft.started_at, draft.finished_at)
            assert normal.warnings == ()
            assert set(system.mentioned(normal.content)) <= known


@settings(max_examples=12, deadline=None)
@given(SEEDS, DAYS)
def test_nobody_plays_two_games_at_once_or_before_a_ban_ends(seed: int, until: dt.date) -> None:
    for pool in generator.generate(seed, until).pools:
        system, rules = rule_system(pool.body["system"]), _rules(pool)
        busy: dict[str, list[tuple[int, int]]] = defaultdict(list)
        bans: list[tuple[str, int, int]] = []
        starts: list[tuple[str, int]] = []
        for club, body in pool.games:
            draft = _draft(pool, body)
            assert draft.started_at is not None
            assert draft.finished_at is not None
            number = max(n for n, (since, _) in enumerate(rules) if since <= draft.started_at)
            result = TypeAdapter(system.result_model).validate_python(draft.result)
            content = system.normalise(result, rules[number][1], draft.started_at, draft.finished_at).content
            game = Game(club, body["game_id"], 1, draft.started_at, draft.finished_at, content=content)
            for player in system.players(content):
                busy[player].append((draft.started_at, draft.finished_at))
                if draft.rated:
                    starts.append((player, draft.started_at))
            if isinstance(system, LiveSystem):
                length = rules[number][1].quit_ban_minutes * 60 * MICROSECONDS
                bans += [(q.player, q.at, q.at + length) for q in system.quits(game, rules[number][1])]
        for spans in busy.values():
            for (_, ended), (began, _) in itertools.pairwise(sorted(spans)):
                assert ended <= began
        for player, since, end in bans:
            assert not [at for who, at in starts if who == player and since < at < end]


def test_a_world_has_what_it_promises() -> None:
    schieber, spades = generator.generate(7, UNTIL).pools
    bodies = [body for _, body in schieber.games]
    months = {body["finished_at"][:7] for body in bodies} | {body["finished_at"][:7] for _, body in spades.games}
    assert len(months) == 14
    assert {club for club, _ in schieber.games} == {"limmat", "emme"}
    assert {body.get("group") for body in bodies} == {"dienstag", "senioren", "stammtisch", None}
    assert {body["round"] for body in bodies if "tournament" in body} == {1, 2, 3, 4, 5}
    shapes = {type(body["result"]["striche"][0]) for body in bodies}
    assert shapes == {dict, int}
    results = [body["result"] for _, body in spades.games]
    quits = [quit_ for result in results for quit_ in result.get("quits", ())]
    assert any("back_at" in quit_ for quit_ in quits)
    assert any("back_at" not in quit_ for quit_ in quits)
    substitutes = [s for result in results for s in result.get("substitutes", ())]
    assert any("robot" in s for s in substitutes)
    assert any("player" in s for s in substitutes)
    nils = [nil for result in results for nil in result.get("nils", ())]
    assert {nil["set"] for nil in nils} == {True, False}
    assert any("set_by" in nil for nil in nils)
    assert {result["outcome"] for result in results} >= {"team1", "team2", "draw"}
    assert any(result["outcome"] is None for result in results)
    assert any(body.get("rated") is False for _, body in spades.games)


def test_namesakes_get_ids_of_their_own() -> None:
    taken: set[str] = set()
    assert generator.player_id("Peter Meier", taken) == "peter-meier"
    assert generator.player_id("Péter  Meier", taken) == "peter-meier-2"
    assert generator.player_id("Þórdís O’Neill-Größ", taken) == "thordis-oneill-groess"
    assert generator.player_id("宮本 はるか", taken) == "member"
    assert len(generator.player_id("x" * 80, taken)) == 40


def test_games_of_all_pools_are_sent_in_their_own_order() -> None:
    pools = _pools(5, UNTIL)
    sent = demo._interleaved(pools)
    for pool in pools:
        assert [(club, body) for name, club, body in sent if name == pool.id] == list(pool.games)
    assert len(sent) == sum(len(pool.games) for pool in pools)


def test_the_forum_duels_are_read_as_they_lie(tmp_path: Any) -> None:
    path = tmp_path / "duels.csv"
    path.write_text(
        "game_id,started_on,finished_on,player_a,player_b,winner,forfeit\n"
        "g2,2016-09-19,2016-09-21,p3,p4,p3,1\ng1,2016-09-19,2016-09-20,p1,p2,p2,0\n"
    )
    (pool,) = demo.real_duels(path).pools
    assert [player.id for player in pool.players] == ["p1", "p2", "p3", "p4"]
    assert pool.body["rules"] == [{"from": "2016-09-19"}]
    assert [body["game_id"] for _, body in pool.games] == ["g1", "g2"]
    body = pool.games[1][1]
    assert (body["started_at"], body["finished_at"]) == ("2016-09-19T00:00:00Z", "2016-09-21T23:00:00Z")
    assert body["result"] == {"players": ["p3", "p4"], "winner": "p3"}
    assert body["distinct"] is True
