"""Compact segments: what goes in comes out, whatever is damaged is noticed, and the fold sees no difference."""

from __future__ import annotations

import random

import msgspec
import pytest

from shared.ledger import replay, segments
from shared.ledger.events import Event, event_id
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from shared.ratings.base import Game
from tests.unit.test_lane import BEGIN, HOUR, RULES, games_of


def ledger(name: str, seed: int, count: int = 300) -> list[Event]:
    """A ledger with corrections, voids, open games, starts, merges and rank-me switches among its games."""
    dice = random.Random(seed)
    found: list[Event] = []

    def add(at: int, kind: str, **more: object) -> None:
        token = "".join(dice.choice("0123456789abcdefghjkmnpqrstvwxyz") for _ in range(12))
        found.append(Event(event_id(at, token), kind, at, **more))  # type: ignore[arg-type]

    for game in games_of(dice, name, count, 3000):
        accepted = (game.finished_at or 0) + dice.randrange(HOUR)
        add(accepted, "game", what="finished", game=game)
        if dice.random() < 0.1:
            changed = msgspec.structs.replace(game, revision=2, sequence=7, void=dice.random() < 0.5)
            what = "voided" if changed.void else "corrected"
            later = accepted + dice.choice([1, 1500 * HOUR])
            add(later, "game", what=what, game=changed, touches=game.started_at)
    add(BEGIN + HOUR, "rank-me", player="p2", value={"at": BEGIN + HOUR, "on": False})
    add(BEGIN + 2 * HOUR, "merge", player="p3", value={"into": "p4"})
    return found


@pytest.mark.parametrize("name", sorted(RULES))
def test_what_goes_in_comes_out(name: str) -> None:
    system = rule_system(name)
    events = ledger(name, 5)
    data = segments.encode(segments.columnar(system, [*events, *events[:10]]))
    back = segments.decode(data)
    assert sorted(back.events(system), key=lambda e: e.id) == sorted(events, key=lambda e: e.id)
    assert back.plain is not None
    assert len(back.plain) > 100
    assert segments.encode(segments.columnar(system, list(back.events(system)))) == data
    assert len(segments.columnar(system, [])) == 0
    assert list(segments.decode(segments.encode(segments.columnar(system, []))).events(system)) == []


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("seed", range(4))
def test_a_replay_of_segments_equals_one_of_events(name: str, seed: int) -> None:
    system = rule_system(name)
    rules = (DatedRules(0, system.settings_model()),)
    events = ledger(name, seed)
    until = BEGIN + 3000 * HOUR
    cuts = [BEGIN + 500 * HOUR, BEGIN + 1200 * HOUR, 2**60]
    parts = []
    low = 0
    for cut in cuts:
        chosen = [e for e in events if low <= e.accepted_at < cut]
        parts.append(segments.decode(segments.encode(segments.columnar(system, chosen))))
        low = cut
    expected = replay.states_of(system, rules, "Europe/Zurich", events, until)
    assert replay.states_of_segments(system, rules, "Europe/Zurich", parts, [], until) == expected
    tail = [e for e in events if e.accepted_at >= cuts[1]]
    assert replay.states_of_segments(system, rules, "Europe/Zurich", parts[:2], tail, until) == expected
    middle = BEGIN + 800 * HOUR
    early = [part.before(middle) for part in parts]
    some = [e for e in events if e.accepted_at < middle]
    assert sum(map(len, early)) == len(some)
    assert replay.states_of_segments(system, rules, "Europe/Zurich", early, [], until) == replay.states_of(
        system, rules, "Europe/Zurich", some, until
    )


@pytest.mark.parametrize("cut", [0, 3, 20, 60, -1])
def test_a_damaged_segment_is_noticed(cut: int) -> None:
    system = rule_system("spades")
    data = segments.encode(segments.columnar(system, ledger("spades", 1, 30)))
    with pytest.raises(segments.SegmentError):
        segments.decode(data[:cut])
    changed = bytearray(data)
    changed[cut] ^= 1
    with pytest.raises(segments.SegmentError):
        segments.decode(bytes(changed))


def test_games_of_another_width_go_as_they_are() -> None:
    system = rule_system("bridier")
    two = Game("a", "1", 1, BEGIN, BEGIN, content={"players": ["x", "y"], "winner": "x"})
    three = Game("a", "2", 1, BEGIN, BEGIN, content={"players": ["x", "y", "z"], "defeats": [], "ruins": []})
    events = [
        Event(event_id(BEGIN + n, "0" * 12), "game", BEGIN + n, "finished", game) for n, game in enumerate([two, three])
    ]
    segment = segments.columnar(system, events)
    assert [e.game for e in segment.rest] == [three]
