"""Lists: the order of a pool's players and their places. One order, defined once, for pages, data and previews."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence

from shared.ratings.base import PlayerState, RuleSystem

Collate = Callable[[str], object]
"""Sort key of a name in the language of a page."""


def collate_plain(name: str) -> tuple[str, str]:
    """Collation where no language is asked for: case and accents matter last."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    return (plain, name)


def ordered(
    system: RuleSystem, states: Mapping[str, PlayerState], named: Mapping[str, tuple[str, str]], collate: Collate
) -> list[str]:
    """The players in the order of the list: the system's order, then collated name, then id.

    Args:
        named: server-made id → (name, handle).
    """

    def key(sid: str) -> tuple[object, ...]:
        name, handle = named.get(sid, (sid, sid))
        return (system.order_key(states[sid]), collate(name), handle)

    return sorted(states, key=key)


def places(system: RuleSystem, states: Mapping[str, PlayerState], order: Sequence[str]) -> dict[str, int]:
    """Places 1, 2, 2, 4: players with equal ratings share one."""
    found: dict[str, int] = {}
    previous: tuple[int, ...] | None = None
    place = 0
    for number, sid in enumerate(order, start=1):
        key = system.place_key(states[sid])
        if key != previous:
            place, previous = number, key
        found[sid] = place
    return found
