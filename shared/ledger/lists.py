"""Lists: the order of a pool's players and their places. One order, defined once, for pages, data and previews."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal

from shared.ratings.base import PlayerState, RuleSystem, Settings

MAIN = "main"
"""The list that places are counted in."""
Apart = Literal["unlisted", "inactive"]
"""Why a player does not stand in the list: too few games yet, or none for too long."""
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

    def among_equals(sid: str) -> tuple[object, ...]:
        name, handle = named.get(sid, (sid, sid))
        return (collate(name), handle)

    keys = {sid: system.order_key(state) for sid, state in states.items()}
    order: list[str] = []
    # A name is collated only where the system's order leaves a choice: that takes longer than all the rest.
    for _, group in groupby(sorted(states, key=keys.__getitem__), key=keys.__getitem__):
        equals = list(group)
        order += sorted(equals, key=among_equals) if len(equals) > 1 else equals
    return order


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


def why_apart(state: PlayerState, settings: Settings, today: int) -> Apart | None:
    """Why a player does not stand in the list, or None when he does. No rating hangs on it.

    Args:
        settings: the newest. ``minimum_games`` are needed to be listed; where the rules know ``hide_after_days``, a
            player leaves the list when his last rated game was more days ago, and is back with the next one. Who
            carried a rating over and has not played yet is not late.
        today: day (ordinal) in the pool's zone.
    """
    if state.games < settings.minimum_games:
        return "unlisted"
    hide: int | None = getattr(settings, "hide_after_days", None)
    if hide is not None and state.last_result and today - state.last_result > hide:
        return "inactive"
    return None


def variants(
    system: RuleSystem, settings: Settings, states: Mapping[str, PlayerState], order: Sequence[str], today: int
) -> dict[str, str]:
    """In which list each player stands: ``MAIN``, ``new`` (where the rules list new players apart), or why in neither.

    Args:
        today: day (ordinal) in the pool's zone.
    """

    def one(state: PlayerState) -> str:
        if (apart := why_apart(state, settings, today)) is not None:
            return apart
        return "new" if system.figures(state, settings).get("class") == "new" else MAIN

    found = {sid: one(states[sid]) for sid in order}
    if MAIN not in found.values():
        # Nobody left for the main list (all new): better everybody than an empty page.
        found = {sid: MAIN if variant == "new" else variant for sid, variant in found.items()}
    return found


def listed(state: PlayerState, settings: Settings, today: int) -> bool:
    """Whether a player stands in the list on a day (ordinal) in the pool's zone."""
    return why_apart(state, settings, today) is None
