"""Made-up pools for measuring: clubs with members who mostly meet in their own group, now and then guests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from shared.ledger.events import Event, event_id
from shared.ratings.base import Game
from shared.usecases.drafts import GameDraft

BEGIN = 1_704_067_200_000_000
"""1 January 2024, UTC."""
MEMBERS = 100
GROUPS = 3
WIDTH = {"spades": 4, "jass": 4, "bridier": 2}


def games(system: str, count: int, players: int, *, seed: int = 1, months: int = 24) -> Iterator[Game]:
    """``count`` games in played order, evenly over the months; one in ten with a guest of another club."""
    dice = random.Random(seed)
    ids = [f"{dice.getrandbits(80):020x}" for _ in range(players)]
    clubs = [ids[n : n + MEMBERS] for n in range(0, players, MEMBERS)]
    seats = WIDTH[system]
    step = months * 30 * 86_400_000_000 // count
    for number in range(count):
        club = dice.randrange(len(clubs))
        group = dice.randrange(GROUPS)
        members = clubs[club]
        share = members[group * len(members) // GROUPS : (group + 1) * len(members) // GROUPS]
        table = dice.sample(share if len(share) >= seats else members, seats)
        if dice.random() < 0.1:
            guest = dice.choice(ids)
            if guest not in table:
                table[0] = guest
        at = BEGIN + number * step + dice.randrange(max(step, 1))
        yield Game(
            f"club-{club}",
            f"{club}-{number}",
            1,
            at,
            at,
            group=f"evening-{group}",
            content=_content(dice, system, table),
        )


def _content(dice: random.Random, system: str, table: list[str]) -> dict[str, Any]:
    if system == "bridier":
        return {"players": sorted(table), "winner": table[0]}
    teams = [sorted(table[:2]), sorted(table[2:])]
    if system == "spades":
        return {"teams": teams, "outcome": dice.choice(["team1", "team2"])}
    return {"teams": teams, "striche": dice.choice([[3, 1], [1, 3], [4, 0], [2, 3], [5, 2], [0, 3]])}


def events(system: str, count: int, players: int, *, seed: int = 1, months: int = 24) -> Iterator[Event]:
    """The ledger of such a pool: every game accepted a minute after it was over."""
    dice = random.Random(seed + 1)
    for game in games(system, count, players, seed=seed, months=months):
        accepted = game.started_at + 60_000_000
        yield Event(event_id(accepted, f"{dice.getrandbits(60):012x}"[:12]), "game", accepted, "finished", game)


def draft(game: Game, when: int) -> GameDraft:
    """Such a game as a club sends it, over at that instant; its players' ids as handles."""
    return GameDraft(
        game_id=game.game_id,
        started_at=when,
        finished_at=when,
        result=dict(game.content),
        group=game.group,
        distinct=True,
    )
