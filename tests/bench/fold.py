"""How fast a fold is, beside the public libraries that rate teams.

CPU time of one process, the best of several turns that take place between the peers' turns, so that a busy machine
slows both alike. Parsing is stated apart, and counted in "whole".
"""

from __future__ import annotations

import gc
import json
import subprocess
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from shared.ledger import segments
from shared.ledger.fold import Chunk, Fold, Story
from shared.ledger.order import utc_month
from shared.ledger.replay import story_of_segments
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from tests.bench import pools
from tests.bench.table import Line, peak_mb

PEERS = Path(".venvs/bench/bin/python")
UNTIL = pools.BEGIN + 740 * 86_400_000_000
ZONE = "Europe/Zurich"
TURNS = 3
SHARE = 5
"""Jass and Bridier are measured with so many times fewer games."""


@dataclass
class Timing:
    """Seconds of CPU time per game."""

    parse: float
    fold: float

    @property
    def whole(self) -> float:
        return self.parse + self.fold


def stored(system: str, games: int, players: int) -> list[bytes]:
    """A ledger as it is kept: one compressed segment a month."""
    rules = rule_system(system)
    months: dict[str, list[segments.Event]] = {}
    for event in pools.events(system, games, players):
        months.setdefault(utc_month(event.accepted_at), []).append(event)
    return [segments.encode(segments.columnar(rules, events)) for events in months.values()]


def replay(system: str, ledger: list[bytes], *, labels: bool, keep: bool = True) -> tuple[Timing, int]:
    """Fold it to standings; all ratings before and after every game are kept (or handed on and forgotten)."""
    rules = rule_system(system)
    dated = (DatedRules(-(2**60), rules.settings_model()),)
    begin = time.process_time()
    story = story_of_segments(rules, dated, [segments.decode(body) for body in ledger], [])
    parsed = time.process_time()
    fold = Fold(rules, dated, ZONE, labels=labels)
    history: list[array[float]] = []
    games = 0
    for what in fold.stream(story, closings_after=None, closed_until=UNTIL):
        if isinstance(what, Chunk):
            games += len(what)
            if keep:
                history.append(what.history)
    states = fold.states
    end = time.process_time()
    return Timing((parsed - begin) / games, (end - parsed) / games), len(states)


def one_by_one(system: str, games: int, players: int) -> float:
    """Games per second of the general path: objects in, a row with every number out."""
    rules = rule_system(system)
    told = list(pools.games(system, games, players))
    fold = Fold(rules, (DatedRules(-(2**60), rules.settings_model()),), ZONE)
    begin = time.process_time()
    for _ in fold.run(Story(told), closings_after=None, closed_until=UNTIL):
        pass
    return games / (time.process_time() - begin)


def peers(games: int, players: int) -> dict[str, float]:
    """The libraries' speeds on the games of the Spades pool; nothing where they are not installed."""
    if not PEERS.exists():
        return {}
    numbers: dict[str, int] = {}
    lines = []
    for game in pools.games("spades", games, players):
        (a, c), (b, d) = game.content["teams"]
        seats = [numbers.setdefault(sid, len(numbers)) for sid in (a, c, b, d)]
        lines.append(f"{' '.join(map(str, seats))} {int(game.content['outcome'] == 'team1')}\n")
    done = subprocess.run(
        [PEERS, Path(__file__).parent / "peers.py"], input="".join(lines), stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    count, players = int(1_000_000 * scale), int(10_000 * scale)
    counts = {system: count if system == "spades" else count // SHARE for system in pools.WIDTH}
    ledgers = {system: stored(system, counts[system], players) for system in pools.WIDTH}
    best: dict[tuple[str, bool], Timing] = {}
    others: dict[str, float] = {}
    gc.collect()
    gc.freeze()
    gc.disable()
    for _ in range(TURNS):
        for name, speed in peers(min(count, 40_000), players).items():
            others[name] = max(speed, others.get(name, 0.0))
        for system, ledger in ledgers.items():
            for labels in (False, True):
                timing, _ = replay(system, ledger, labels=labels)
                known = best.get((system, labels))
                if known is None or timing.whole < known.whole:
                    best[(system, labels)] = timing
    lines = []
    elote = others.get("elote")
    openskill_name, openskill = max(
        ((n, s) for n, s in others.items() if n.startswith("openskill")),
        key=lambda e: e[1],
        default=("openskill", None),
    )
    for system in ledgers:
        plain, full = best[(system, False)], best[(system, True)]
        teams = system == "spades"
        whole, folded = 1 / plain.whole, 1 / plain.fold
        lines.append(
            Line(
                f"{system}: whole, segments to standings with history",
                whole,
                "games/s",
                "elote teams" if teams else "",
                elote if teams else None,
                "at least × 5" if teams else "",
                whole >= 5 * elote if teams and elote else None,
                f"parsing {plain.parse * 1e6:.2f} µs a game, folding {plain.fold * 1e6:.2f} µs",
            )
        )
        if teams:
            met = whole >= 10 * openskill if openskill else None
            lines.append(Line("  ... beside", whole, "games/s", openskill_name, openskill, "at least × 10", met))
            lines.append(Line("  ... folding alone", folded, "games/s", "elote teams", elote))
        lines.append(
            Line(
                f"{system}: ... with records per club, group, year",
                1 / full.whole,
                "games/s",
                "elote teams" if teams else "",
                elote if teams else None,
                note="which no peer keeps",
            )
        )
        seconds = full.fold * 1_000_000
        what = f"{system}: folding 1,000,000 games, all records (of {counts[system]:,})"
        lines.append(Line(what, seconds, "s", budget="under 10 s", met=seconds < 10))
        size = sum(map(len, ledgers[system])) / counts[system]
        lines.append(Line(f"{system}: stored", size, "bytes/game", note=f"{players:,} players"))
        lines.append(
            Line(
                f"{system}: one by one, every row built",
                one_by_one(system, min(count // 5, 20_000), players),
                "games/s",
            )
        )
    lines.append(Line("most memory held (three ledgers, history kept)", peak_mb(), "MB"))
    return lines
