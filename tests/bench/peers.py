"""The public libraries that rate teams, on the same games: run by ``.venvs/bench``, which has them.

Reads games from standard input (one line ``a c b d won``), prints JSON: library → games, and seconds of CPU time of
each slice of them. They do nothing but rate: no history, no record, no parsing.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable

Game = tuple[int, int, int, int, bool]
SLICE = 200
"""Games: a few milliseconds."""


def timed(games: list[Game], rate: Callable[[list[Game]], None]) -> tuple[int, list[float]]:
    slices = []
    for first in range(0, len(games), SLICE):
        some = games[first : first + SLICE]
        begin = time.process_time()
        rate(some)
        slices.append(time.process_time() - begin)
    return len(games), slices


def elote_teams(games: list[Game], players: int) -> tuple[int, list[float]]:
    from elote import EloCompetitor, TeamCompetitor

    people = [EloCompetitor(1500) for _ in range(players)]

    def rate(some: list[Game]) -> None:
        for a, c, b, d, won in some:
            one, two = TeamCompetitor([people[a], people[c]]), TeamCompetitor([people[b], people[d]])
            if won:
                one.beat(two)
            else:
                two.beat(one)

    return timed(games, rate)


def openskill(name: str, games: list[Game], players: int) -> tuple[int, list[float]]:
    from openskill import models

    model = getattr(models, name)()
    people = [model.rating() for _ in range(players)]

    def rate(some: list[Game]) -> None:
        for a, c, b, d, won in some:
            teams = [[people[a], people[c]], [people[b], people[d]]]
            (people[a], people[c]), (people[b], people[d]) = model.rate(teams, ranks=[0, 1] if won else [1, 0])

    return timed(games, rate)


def main() -> None:
    games = []
    for line in sys.stdin:
        a, c, b, d, won = map(int, line.split())
        games.append((a, c, b, d, bool(won)))
    players = max(max(game[:4]) for game in games) + 1
    gc.collect()
    gc.disable()
    found = {"elote": elote_teams(games, players)}
    for name in ("PlackettLuce", "BradleyTerryFull", "BradleyTerryPart"):
        found[f"openskill {name}"] = openskill(name, games[: len(games) // 2], players)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
