"""How fast a fold is, beside the public libraries that rate teams.

CPU time of one process. Ours and the peers' turns alternate, and each is cut into slices of a few milliseconds; of each
slice the best turn counts, for them as for us: what neighbours on a busy machine do to a caches' contents hits short
slices seldom, long runs always. Parsing is stated apart, and counted in "whole". Opening a month's part (late games
brought into their place) counts as folding.
"""

from __future__ import annotations

import gc
import json
import subprocess
import time
from array import array
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from shared.ledger import segments
from shared.ledger.fold import Chunk, Fold, Story
from shared.ledger.order import utc_month
from shared.ledger.plain import PlainBuilder
from shared.ledger.replay import story_of_segments
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from tests.bench import pools
from tests.bench.table import Line, peak_mb

PEERS = Path(".venvs/bench/bin/python")
UNTIL = pools.BEGIN + 740 * 86_400_000_000
ZONE = "Europe/Zurich"
TURNS = 5
FULL = 1_000_000
"""The size that the budget names, measured whenever a section is not asked to be small: games; a hundredth: players."""
TURNS_WITH_RECORDS = 3
PEERS_GAMES = 40_000
"""The peers rate so many games, the first of the pool: their speed does not change with more."""


@dataclass
class Timing:
    """Seconds of CPU time, slice by slice."""

    games: int
    parsing: list[float]
    folding: list[float]

    def best(self, other: Timing | None) -> Timing:
        """Of each slice the shorter time."""
        if other is None:
            return self
        return Timing(self.games, shorter(self.parsing, other.parsing), shorter(self.folding, other.folding))

    @property
    def parse(self) -> float:
        """Per game."""
        return sum(self.parsing) / self.games

    @property
    def fold(self) -> float:
        """Per game."""
        return sum(self.folding) / self.games

    @property
    def whole(self) -> float:
        """Per game."""
        return self.parse + self.fold


def shorter(one: list[float], two: list[float]) -> list[float]:
    """Of each slice the shorter time."""
    return [min(pair) for pair in zip(one, two, strict=True)]


class Clock:
    """Times slices."""

    def __init__(self) -> None:
        self.slices: list[float] = []
        self._since = time.process_time()

    def lap(self) -> None:
        """A slice ends here, and the next begins."""
        now = time.process_time()
        self.slices.append(now - self._since)
        self._since = now


def stored(system: str, games: int, players: int, months: int = 24) -> list[bytes]:
    """A ledger as it is kept: one compressed segment a month. All games are plain, so they go straight into columns."""
    rules = rule_system(system)
    builders: dict[str, PlainBuilder] = {}
    latest: dict[str, int] = {}
    for event in pools.events(system, games, players, months=months):
        month = utc_month(event.accepted_at)
        if month not in builders:
            builders[month] = PlainBuilder(rules, pools.WIDTH[system])
        if event.game is None or not builders[month].add(event.game, event.accepted_at, event.id[16:]):
            raise ValueError("not a plain game")
        latest[month] = event.accepted_at
    return [segments.encode(segments.Segment(b.done(), [], latest[month])) for month, b in builders.items()]


def replay(system: str, ledger: list[bytes], *, labels: bool) -> Timing:
    """Fold it to standings; all ratings before and after every game are kept."""
    rules = rule_system(system)
    dated = (DatedRules(-(2**60), rules.settings_model()),)
    parsing, parts = Clock(), []
    for body in ledger:
        parts.append(segments.decode(body))
        parsing.lap()
    story = story_of_segments(rules, dated, parts, [])
    parsing.lap()
    fold = Fold(rules, dated, ZONE, labels=labels)
    history: list[array[float]] = []
    games, folding = 0, Clock()
    for what in fold.stream(story, closings_after=None, closed_until=UNTIL):
        if isinstance(what, Chunk):
            games += len(what)
            history.append(what.history)
            folding.lap()
    if not fold.states or len(history) == 0:
        raise ValueError("nothing was folded")
    folding.lap()
    return Timing(games, parsing.slices, folding.slices)


def one_by_one(system: str, games: int, players: int) -> float:
    """Games per second of the general path: objects in, a row with every number out."""
    rules = rule_system(system)
    told = list(pools.games(system, games, players))
    fold = Fold(rules, (DatedRules(-(2**60), rules.settings_model()),), ZONE)
    begin = time.process_time()
    for _ in fold.run(Story(told), closings_after=None, closed_until=UNTIL):
        pass
    return games / (time.process_time() - begin)


def peers(count: int, players: int) -> dict[str, tuple[int, list[float]]]:
    """The libraries' times on the first games of the Spades pool: games, and seconds of each slice; nothing where they
    are not installed."""
    if not PEERS.exists():
        return {}
    numbers: dict[str, int] = {}
    lines = []
    for game in islice(pools.games("spades", count, players), PEERS_GAMES):
        (a, c), (b, d) = game.content["teams"]
        seats = [numbers.setdefault(sid, len(numbers)) for sid in (a, c, b, d)]
        lines.append(f"{' '.join(map(str, seats))} {int(game.content['outcome'] == 'team1')}\n")
    done = subprocess.run(
        [PEERS, Path(__file__).parent / "peers.py"], input="".join(lines), stdout=subprocess.PIPE, text=True, check=True
    )
    return {name: (games, slices) for name, (games, slices) in json.loads(done.stdout).items()}


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    count = FULL if scale >= 0.2 else int(FULL * scale)
    players = count // 100
    ledgers = {system: stored(system, count, players) for system in pools.WIDTH}
    best: dict[tuple[str, bool], Timing] = {}
    peers_best: dict[str, tuple[int, list[float]]] = {}
    gc.collect()
    gc.freeze()
    gc.disable()
    for turn in range(TURNS):
        for name, (games, slices) in peers(count, players).items():
            _, known = peers_best.get(name, (games, slices))
            peers_best[name] = (games, shorter(slices, known))
        for system, ledger in ledgers.items():
            for labels in (False, True) if turn < TURNS_WITH_RECORDS else (False,):
                best[(system, labels)] = replay(system, ledger, labels=labels).best(best.get((system, labels)))
    others = {name: games / sum(slices) for name, (games, slices) in peers_best.items()}
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
                f"{count:,} games, {players:,} players: parsing {plain.parse * 1e6:.2f} µs a game, folding "
                f"{plain.fold * 1e6:.2f} µs",
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
        measured = "measured" if count == FULL else f"from {count:,}"
        what = f"{system}: folding 1,000,000 games, all records ({measured})"
        lines.append(Line(what, seconds, "s", budget="under 10 s", met=seconds < 10))
        size = sum(map(len, ledgers[system])) / count
        lines.append(Line(f"{system}: stored", size, "bytes/game", note=f"{players:,} players"))
        lines.append(
            Line(
                f"{system}: one by one, every row built",
                one_by_one(system, min(count // 5, 20_000), players // 5),
                "games/s",
            )
        )
    lines.append(Line("most memory held (three ledgers, history kept)", peak_mb(), "MB"))
    return lines
