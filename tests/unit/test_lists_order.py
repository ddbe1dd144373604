"""The order of a list is the system's, then the collated name, then the id, however it is worked out."""

from __future__ import annotations

import random

import pytest

from shared.ledger.lists import collate_plain, ordered
from shared.ratings import rule_system
from shared.ratings.base import PlayerState


@pytest.mark.parametrize("name", ["spades", "jass", "bridier"])
@pytest.mark.parametrize("seed", range(5))
def test_order_by_system_then_name_then_handle(name: str, seed: int) -> None:
    dice = random.Random(seed)
    system = rule_system(name)
    states = {f"s{n}": PlayerState(dice.randrange(4), dice.choice([100, 200]), dice.randrange(3)) for n in range(60)}
    named = {sid: (dice.choice(["Émile", "emil", "Zoë", "Ada"]), f"h{dice.randrange(10**6)}") for sid in states}
    named.pop("s7")

    def key(sid: str) -> tuple[object, ...]:
        shown, handle = named.get(sid, (sid, sid))
        return (system.order_key(states[sid]), collate_plain(shown), handle)

    expected = sorted(states, key=key)
    for _ in range(3):
        items = list(states.items())
        dice.shuffle(items)
        assert ordered(system, dict(items), named, collate_plain) == expected


def test_names_are_collated_only_among_equals() -> None:
    system = rule_system("spades")
    states = {"a": PlayerState(3), "b": PlayerState(2), "c": PlayerState(2)}
    asked: list[str] = []

    def collate(shown: str) -> str:
        asked.append(shown)
        return shown

    assert ordered(system, states, {s: (s, s) for s in states}, collate) == ["a", "b", "c"]
    assert sorted(asked) == ["b", "c"]
