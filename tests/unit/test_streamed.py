"""A ledger folded month by month, each segment read when it is reached, comes out as one folded whole and as one folded
event by event: rows, states and closings to the bit, with what was told late in its time."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.ledger import lane as lane_module
from shared.ledger import replay, segments
from shared.ledger.events import Event, event_id
from shared.ledger.fold import Closed, Fold, Rated, Story
from shared.ledger.order import to_instant, utc_month
from shared.ledger.plain import Plain
from shared.ledger.rules import DatedRules
from shared.ledger.segments import Segment
from shared.ratings import rule_system
from shared.ratings.base import Game, RuleSystem
from tests.unit.test_lane import BEGIN, HOUR, RULES, _state, games_of

DAY = 24 * HOUR
SPREAD = 6 * 30 * 48
"""Half hours over which the games are played: six months."""


def ledger(dice: random.Random, name: str, count: int) -> list[Event]:
    """Games told at once, months late, or before they were played; corrections, voids, merges, resets among them."""
    found: list[Event] = []

    def add(at: int, kind: str, **more: Any) -> None:
        token = "".join(dice.choice("0123456789abcdefghjkmnpqrstvwxyz") for _ in range(12))
        found.append(Event(event_id(at, token), kind, at, **more))

    for game in games_of(dice, name, count, SPREAD):
        late = dice.choice([HOUR, HOUR, HOUR, 12 * HOUR, 40 * DAY, 100 * DAY, -40 * DAY])
        accepted = (game.finished_at or 0) + late
        add(accepted, "game", what="finished", game=game)
        if dice.random() < 0.1:
            changed = msgspec.structs.replace(game, revision=2, sequence=7, void=dice.random() < 0.5)
            later = accepted + dice.choice([1, 5 * DAY, 70 * DAY])
            add(later, "game", what="voided" if changed.void else "corrected", game=changed, touches=game.started_at)
    if dice.random() < 0.5:
        at = BEGIN + dice.randrange(150) * DAY
        add(at, "rank-me", player="p2", value={"at": at, "on": False})
    if dice.random() < 0.5:
        add(BEGIN + dice.randrange(150) * DAY, "merge", player="p3", value={"into": "p4"})
    return found


def by_month(system: RuleSystem, events: list[Event]) -> list[bytes]:
    """One segment for each month of acceptance, as they are stored."""
    months: dict[str, list[Event]] = {}
    for event in events:
        months.setdefault(utc_month(event.accepted_at), []).append(event)
    return [segments.encode(segments.columnar(system, months[month])) for month in sorted(months)]


def reader(data: bytes) -> Callable[[], Segment]:
    return lambda: segments.decode(data)


def told(fold: Fold, story: Story, until: int) -> tuple[list[Any], list[Any]]:
    rows, closings = [], []
    for what in fold.run(story, closings_after=None, closed_until=until):
        if isinstance(what, Closed):
            closings.append((what.at, what.moments, {sid: _state(state) for sid, state in what.states.items()}))
        else:
            rows.append(what)
    return rows, closings


def streamed(fold: Fold, story: Story, until: int) -> None:
    for _ in fold.stream(story, closings_after=None, closed_until=until):
        pass


@pytest.mark.parametrize("name", sorted(RULES))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), rules=st.integers(0, 10), at_once=st.sampled_from([1, 7, 2048]))
def test_month_by_month_equals_whole_and_one_by_one(name: str, seed: int, rules: int, at_once: int) -> None:
    dice = random.Random(seed)
    system = rule_system(name)
    chosen = RULES[name][rules % len(RULES[name])]
    first = BEGIN + dice.choice([-DAY, 40 * DAY])
    dated = tuple(
        DatedRules(first + number * 50 * DAY, system.settings_model.model_validate(entry))
        for number, entry in enumerate(chosen)
    )
    events = ledger(dice, name, dice.choice([1, 40, 150]))
    until = BEGIN + 300 * DAY
    zone = dice.choice(["Europe/Zurich", "America/St_Johns", "UTC"])
    data = by_month(system, events)
    if dice.random() < 0.2:
        dice.shuffle(data)
    # What was accepted last may not be in a segment yet, and may tell again what is in one.
    cut = BEGIN + dice.choice([120, 400]) * DAY
    lazy = [reader(body) for body in data]
    newer = [event for event in events if event.accepted_at >= cut]
    sources = [(lambda part=part: part().before(cut)) for part in lazy]

    one_by_one = Fold(system, dated, zone)
    expected = told(one_by_one, replay.story_of(system, dated, events), until)
    patch = pytest.MonkeyPatch()
    patch.setattr(lane_module, "MOST_AT_ONCE", at_once)
    patch.setattr(lane_module, "LABEL_AT", at_once * 3)
    try:
        folds = [Fold(system, dated, zone) for _ in range(3)]
        found = told(folds[0], replay.story_of_segments(system, dated, sources, newer), until)
        streamed(folds[1], replay.story_of_segments(system, dated, sources, newer), until)
        whole = [segments.decode(body) for body in data]
        streamed(folds[2], replay.story_of_segments(system, dated, whole, []), until)
    finally:
        patch.undo()

    def key(what: Any) -> tuple[str, str]:
        return (type(what).__name__, what.order if isinstance(what, Rated) else what.game.game_id)

    assert sorted(found[0], key=key) == sorted(expected[0], key=key)
    assert [r.order for r in found[0] if isinstance(r, Rated)] == [r.order for r in expected[0] if isinstance(r, Rated)]
    assert found[1] == expected[1]
    states = {sid: _state(state) for sid, state in one_by_one.states.items()}
    for fold in folds:
        assert {sid: _state(state) for sid, state in fold.states.items()} == states
        assert fold.moments == one_by_one.moments


def test_a_month_is_read_when_it_is_reached_and_let_go_when_it_is_told() -> None:
    """Three months of games, one told three months late: never more than two months' columns are there at a time."""
    system = rule_system("spades")
    dated = (DatedRules(0, system.settings_model()),)
    begin = to_instant(dt.datetime(2025, 1, 1, 19, tzinfo=dt.UTC))
    content = {"teams": [["a", "b"], ["c", "d"]], "outcome": "team1"}
    events = []
    for number in range(180):
        at = begin + number * DAY
        accepted = at + (95 * DAY if number == 3 else HOUR)
        game = Game("bern", f"g{number}", 1, at, at, content=content)
        events.append(Event(event_id(accepted, "0" * 12), "game", accepted, "finished", game))
    data = by_month(system, events)
    reads: list[int] = []

    def source(number: int) -> Callable[[], Segment]:
        def read() -> Segment:
            reads.append(number)
            return segments.decode(data[number])

        return read

    story = replay.story_of_segments(system, dated, [source(n) for n in range(len(data))], [])
    assert reads == [0, 1, 2, 3, 4, 5], "looked through once"
    reads.clear()
    fold = Fold(system, dated, "UTC")
    told_at: list[tuple[list[int], Plain]] = []
    for what in fold.stream(story, closings_after=None, closed_until=begin + 200 * DAY):
        if isinstance(what, lane_module.Chunk):
            told_at.append((list(reads), what.plain))
    assert [numbers for numbers, _ in told_at] == [list(range(n + 1)) for n in range(6)]
    assert [len(plain) for _, plain in told_at] == [31, 28, 31, 30, 31, 29]
    assert told_at[0][1].details.game_ids[3] == "g3", "in its place among the games of its month"
