"""The fold against a plain reading of the design, on random stories of all three systems."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.ledger import replay
from shared.ledger.fold import Closed, Fold, Held, Opened, Rated, Reset, Start, Story, closing_boundary
from shared.ledger.order import iso
from shared.ledger.rules import DatedRules
from shared.ledger.statehash import state_hash, to_hex
from shared.ratings import rule_system
from shared.ratings.base import Game, PlayerState
from tests.unit.reference_fold import Reference, Told, microseconds

MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000
ZURICH = "Europe/Zurich"
PEOPLE = "abcdef"


def instant(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))


RULES: dict[str, list[dict[str, Any]]] = {
    "spades": [{}, {"opposition": "pairwise"}, {"k": {"first": 50, "up_to_games": 2, "then": 30}}],
    "bridier": [{}, {"basis": "end", "ruin_penalty": 5}, {"basis": "hybrid", "alliance_average": True}],
    "jass": [{}, {"k": 20}],
}
INSTANTS = [
    instant(text)
    for text in (
        "2026-02-28T22:59:59",
        "2026-02-28T23:00",
        "2026-03-01T20:00",
        "2026-03-31T22:00",
        "2026-05-31T21:00",
        "2026-05-31T22:00",
        "2026-07-15T20:00",
        "2026-10-31T23:00",
    )
]


# -- stories ---------------------------------------------------------------------------------------------------------
def result(system: str, rng: random.Random, start: int, end: int | None) -> dict[str, Any]:
    """A raw result or line-up."""
    if system == "bridier":
        size = rng.choice([2, 2, 2, 3, 4])
        players = rng.sample(PEOPLE, size)
        if end is None:
            return {"players": players}
        if size == 2:
            return {"players": players, **rng.choice([{"draw": True}, {"winner": players[0]}])}
        pairs = rng.sample([(w, x) for w in players for x in players if w < x], rng.randrange(3))
        ruins = [{"player": players[-1], "by": None, "at": iso(end)}] if rng.random() < 0.3 else []
        defeats = [{"winner": w, "loser": x, "at": iso(rng.randint(start, end))} for w, x in pairs]
        return {"players": players, "defeats": defeats, "ruins": ruins, "alliances": [players[:2]]}
    four = rng.sample(PEOPLE, 4)
    teams = [four[:2], four[2:]]
    if end is None:
        return {"teams": teams}
    if system == "jass":
        return {"teams": teams, "striche": rng.choice([[3, 0], [2, 2], [0, 5], [7, 1]])}
    told: dict[str, Any] = {"teams": teams, "outcome": rng.choice(["team1", "team2", "draw"])}
    if rng.random() < 0.4:
        gone = rng.sample(four, rng.randint(1, 4))
        told["quits"] = [{"player": p, "at": iso(rng.choice([start, end, rng.randint(start, end)]))} for p in gone]
    if rng.random() < 0.3:
        told["nils"] = [{"bidder": four[0], "set": True}]
    return told


def game_of(system_name: str, number: int, rng: random.Random, settings_: Any) -> Game:
    system = rule_system(system_name)
    end: int | None = rng.choice(INSTANTS) + rng.choice([0, 0, HOUR, DAY])
    start = end - rng.choice([0, 0, HOUR, 40 * DAY])
    if rng.random() < 0.1:
        end = None
    raw = result(system_name, rng, start, end)
    if end is None:
        parsed = msgspec.json.decode(msgspec.json.encode(raw))
        content = system.normalise_line_up(system.line_up_model.model_validate(parsed), settings_).content
    else:
        from pydantic import TypeAdapter

        model = TypeAdapter(system.result_model)
        content = system.normalise(model.validate_python(raw), settings_, start, end).content
    return Game(
        club=rng.choice(["a", "a-b", "ab"]),
        game_id=f"g{number}",
        revision=1,
        started_at=start,
        finished_at=end,
        rated=rng.random() > 0.05,
        void=rng.random() < 0.05,
        round=rng.choice([None, 0, 1, 2, 10]),
        sequence=rng.choice([0, 0, 1]),
        group=rng.choice([None, "di"]),
        content=content,
    )


def story(system_name: str, seed: int, size: int) -> Told:
    """A random story."""
    rng = random.Random(seed)
    system = rule_system(system_name)
    dates = sorted(rng.sample([instant("2025-01-01T00:00"), *INSTANTS], rng.choice([1, 2, 3])))
    dates[0] = instant("2025-01-01T00:00")
    rules = [(since, system.settings_model.model_validate(rng.choice(RULES[system_name]))) for since in dates]
    games = [game_of(system_name, number, rng, rules[0][1]) for number in range(size)]
    starts: dict[str, PlayerState] = {}
    for player in rng.sample(PEOPLE, rng.choice([0, 1, 2])):
        raw = {
            "spades": {"rating": 1612.5, "games": 1},
            "jass": {"rating": 90},
            "bridier": {"rank": 620, "index": 130, "last_result_on": rng.choice(["2026-01-15", "2025-11-30"])},
        }[system_name]
        starts[player] = system.start(system.start_model.model_validate(raw), rules[0][1])
    resets = [(rng.choice(INSTANTS), rng.choice(PEOPLE)) for _ in range(rng.choice([0, 0, 2]))]
    aliases = rng.choice([{}, {}, {"a": "b"}, {"a": "b", "b": "c"}])
    return Told(
        system,
        rules,
        ZURICH,
        games,
        starts,
        resets,
        replay.follow(aliases),
        rng.choice([None, INSTANTS[-1], instant("2027-01-15T00:00")]),
    )


def story_of(told: Told, order: random.Random) -> Story:
    games, resets = list(told.games), [Reset(*reset) for reset in dict.fromkeys(told.resets)]
    starts = [Start(player, msgspec.structs.replace(state), 0) for player, state in told.starts.items()]
    for entries in (games, resets, starts):
        order.shuffle(entries)  # type: ignore[arg-type]
    return Story(games, starts, resets, told.merged)


def rules_of(told: Told) -> list[DatedRules]:
    return [DatedRules(*entry) for entry in told.rules]


def fold_of(told: Told, states: dict[str, PlayerState] | None = None) -> Fold:
    return Fold(told.system, rules_of(told), told.zone, states)


def records(states: dict[str, PlayerState]) -> dict[str, tuple[Any, ...]]:
    def last(state: PlayerState) -> dt.date | None:
        return dt.date.fromordinal(state.last_result) if state.last_result else None

    return {p: (s.rating, s.index, s.games, s.won, s.drawn, s.lost, last(s)) for p, s in states.items()}


systems = st.sampled_from(["spades", "bridier", "jass"])
seeds = st.integers(0, 2**32)


# -- against the reference -------------------------------------------------------------------------------------------
@settings(max_examples=250, deadline=None)
@given(systems, seeds, st.integers(1, 25))
def test_fold_equals_a_plain_reading_of_the_design(system: str, seed: int, size: int) -> None:
    told = story(system, seed, size)
    expected = Reference(told)
    fold = fold_of(told)
    held, closings = set(), {}
    for what in fold.run(story_of(told, random.Random(seed)), closings_after=None, closed_until=told.closed_until):
        if isinstance(what, Held):
            held.add((what.game.club, what.game.game_id))
        elif isinstance(what, Closed):
            closings[what.day] = {p: (s.rating, s.index) for p, s in what.states.items()}
    assert records(fold.states) == expected.records()
    assert held == expected.held
    assert {day: ratings for day, ratings in closings.items() if ratings} == {
        day: ratings for day, ratings in expected.after_closing.items() if ratings
    }
    assert to_hex(state_hash(told.system, fold.states)) == expected.state_hash()


@settings(max_examples=100, deadline=None)
@given(systems, seeds, st.integers(2, 20))
def test_the_order_in_which_things_are_told_changes_nothing(system: str, seed: int, size: int) -> None:
    told = story(system, seed, size)
    runs = []
    for order in range(2):
        fold = fold_of(told)
        what = fold.run(story_of(told, random.Random(order)), closings_after=None, closed_until=told.closed_until)
        runs.append((list(map(repr, (w for w in what if not isinstance(w, Closed | Held)))), fold.states))
    assert runs[0] == runs[1]


@settings(max_examples=120, deadline=None)
@given(systems, seeds, st.integers(2, 25))
def test_a_fold_from_any_closing_equals_the_whole_one(system: str, seed: int, size: int) -> None:
    told = story(system, seed, size)
    if told.closed_until is None:
        return
    whole = fold_of(told)
    said: list[Any] = []
    marks: list[tuple[int, int, bytes]] = []
    known: dict[tuple[str, str], Sequence[tuple[int, int]]] = {}
    for what in whole.run(story_of(told, random.Random(0)), closings_after=None, closed_until=told.closed_until):
        if isinstance(what, Closed):
            marks.append((what.at, len(said), msgspec.json.encode(what.states)))
        else:
            said.append(what)
            if (isinstance(what, Rated) and what.game is not None) or isinstance(what, Opened):
                known[what.game.club, what.game.game_id] = what.start
    for at, number, states in marks:
        part = fold_of(told, msgspec.json.decode(states, type=dict[str, PlayerState]))
        again = story_of(told, random.Random(1))
        again.starts = []
        held = {(w.game.club, w.game.game_id) for w in said if isinstance(w, Held)}
        again.games = [g for g in again.games if (g.club, g.game_id) not in held or g.started_at >= at]
        again.known_starts = known
        run = part.run(again, since=closing_boundary(at), closings_after=at, closed_until=told.closed_until)
        rest = [what for what in run if not isinstance(what, Closed | Held)]
        assert rest == [w for w in said[number:] if not isinstance(w, Held)]
        assert part.states == whole.states


@settings(max_examples=100, deadline=None)
@given(systems, seeds, st.integers(1, 20))
def test_each_players_lines_hang_together(system: str, seed: int, size: int) -> None:
    told = story(system, seed, size)
    fold = fold_of(told)
    stands: dict[str, tuple[int, int]] = {}
    for row in fold.run(story_of(told, random.Random(0)), closings_after=None, closed_until=told.closed_until):
        if not isinstance(row, Rated):
            continue
        seats: Sequence[str] = [sid for sid, *_ in row.after]
        if row.game is not None:
            content = told.system.translate(row.game.content, lambda p, row=row: row.alias.get(p, p))
            seats = told.system.players(content)
        before = dict(zip(seats, row.before, strict=False))
        for sid, rating, index, *_ in row.after:
            if sid in stands:
                assert before[sid][:2] == stands[sid]
            stands[sid] = (rating, index)
    assert stands == {p: (s.rating, s.index) for p, s in fold.states.items()}


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 25))
def test_what_the_winners_gain_the_losers_lose(seed: int, size: int) -> None:
    """Spades under one K: every game's changes sum to nothing, its quits included, however it overlaps with others."""
    told = story("spades", seed, size)
    rules = told.system.settings_model.model_validate({})
    told = Told(told.system, [(told.rules[0][0], rules)], told.zone, told.games)
    fold = fold_of(told)
    for _ in fold.run(story_of(told, random.Random(0)), closings_after=None, closed_until=None):
        pass
    finished = {s.rating for s in fold.states.values()}
    open_games = any(g.finished_at is None for g in told.games)
    if finished and not open_games:
        assert sum(s.rating - 1_500_000_000 for s in fold.states.values()) == 0


# -- particular orders -----------------------------------------------------------------------------------------------
def spades_game(game_id: str, teams: str, end: int, minutes: int = 0, **more: Any) -> Game:
    one, two = teams.split("-")
    content = {"teams": [list(one), list(two)], "outcome": "team1"} | more.pop("content", {})
    return Game(more.pop("club", "a"), game_id, 1, end - minutes * MINUTE, end, content=content, **more)


def orders(games: Sequence[Game]) -> list[str]:
    told = Told(rule_system("spades"), [(0, rule_system("spades").settings_model())], "UTC", games)
    rows = fold_of(told).run(Story(list(games)), closings_after=None, closed_until=None)
    return [f"{row.game.club}:{row.game.game_id}" for row in rows if isinstance(row, Rated) and row.game is not None]


def test_games_of_one_instant_by_round_sequence_club_and_id() -> None:
    end = instant("2026-05-01T20:00")
    wanted = [
        ("a", "z", None, 0),
        ("a", "b", 1, 0),
        ("a", "b2", 1, 0),
        ("a-b", "a", 1, 0),
        ("a", "a", 1, 1),
        ("a", "c", 2, 0),
        ("a", "d", 10, 0),
    ]
    games = [spades_game(g, "ab-cd", end, club=c, round=r, sequence=s) for c, g, r, s in wanted]
    for order in itertools.islice(itertools.permutations(games), 0, 5000, 97):
        assert orders(order) == [f"{c}:{g}" for c, g, *_ in wanted]


def test_a_quit_at_the_very_start_is_rated_from_what_stood_before_it() -> None:
    """... and so is the rest of that game: one game, one set of start ratings."""
    end = instant("2026-05-01T20:00")
    quit_ = {"player": "a", "at": end - 60 * MINUTE, "back_at": None}
    game = spades_game("g", "ab-cd", end, 60, content={"quits": [quit_]})
    told = Told(rule_system("spades"), [(0, rule_system("spades").settings_model())], "UTC", [game])
    fold = fold_of(told)
    rows = [r for r in fold.run(Story([game]), closings_after=None, closed_until=None) if isinstance(r, Rated)]
    assert [r.start for r in rows] == [[(1_500_000_000, 0)] * 4] * 2
    assert {p: s.rating for p, s in fold.states.items()} == {
        "a": 1_475_000_000,
        "b": 1_525_000_000,
        "c": 1_500_000_000,
        "d": 1_500_000_000,
    }


def test_a_reset_comes_after_quits_and_before_finishes_of_its_instant() -> None:
    end = instant("2026-05-01T20:00")
    first = spades_game("g0", "ab-cd", end - DAY)
    quits = [{"player": "c", "at": end, "back_at": None}]
    games = [
        first,
        spades_game("g1", "cb-ad", end + HOUR, 120, content={"quits": quits}),
        spades_game("g2", "ac-bd", end),
    ]
    told = Told(rule_system("spades"), [(0, rule_system("spades").settings_model())], "UTC", games)
    fold = fold_of(told)
    rows = list(fold.run(Story(games, resets=[Reset(end, "c")]), closings_after=None, closed_until=None))
    assert [(r.kind, r.game.game_id if r.game else "reset") for r in rows if isinstance(r, Rated)] == [
        (5, "g0"),
        (3, "g1"),
        (4, "reset"),
        (5, "g2"),
        (5, "g1"),
    ]


def test_before_the_first_rules_a_game_is_held() -> None:
    end = instant("2026-05-01T20:00")
    told = Told(rule_system("spades"), [(end, rule_system("spades").settings_model())], "UTC", [])
    games = [spades_game("early", "ab-cd", end + HOUR, 61), spades_game("right", "ab-cd", end + HOUR, 60)]
    rows = list(fold_of(told).run(Story(games), closings_after=None, closed_until=None))
    assert [w.game.game_id for w in rows if isinstance(w, Held)] == ["early"]
    assert [w.game.game_id for w in rows if isinstance(w, Rated) and w.game] == ["right"]


@pytest.mark.parametrize("system", ["spades", "bridier", "jass"])
def test_nothing_told_gives_nothing(system: str) -> None:
    told = Told(rule_system(system), [(0, rule_system(system).settings_model())], "UTC", [])
    fold = fold_of(told)
    assert list(fold.run(Story(), closings_after=None, closed_until=instant("2026-05-01T20:00"))) == []
    assert state_hash(told.system, fold.states) == 0
