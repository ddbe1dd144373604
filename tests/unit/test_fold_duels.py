"""1,106 real duels of six years: rank and index of every player, month by month, against a calculation of its own.

The calculation knows nothing of the project but what its rules page says: stakes, indexes, months without a result.
Where the data are not at hand a seeded generator makes as many duels.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from shared.ledger.fold import Closed, Fold, Story
from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from shared.ratings.base import Game

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "forum_duels.csv"
STAKES = [(0, 10), (10, 9), (20, 8), (30, 7), (40, 6), (60, 5), (80, 4), (100, 3), (140, 2), (200, 1)]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
UNTIL = dt.date(2023, 1, 1)


class Duel(NamedTuple):
    game: str
    started: dt.datetime
    finished: dt.datetime
    winner: str
    loser: str


def real() -> list[Duel]:
    found = []
    with DATA.open() as lines:
        for row in csv.DictReader(lines):
            pair = {row["player_a"], row["player_b"]}
            started = dt.datetime.fromisoformat(row["started_on"]).replace(tzinfo=dt.UTC)
            finished = dt.datetime.fromisoformat(row["finished_on"]).replace(hour=23, tzinfo=dt.UTC)
            (loser,) = pair - {row["winner"]}
            found.append(Duel(row["game_id"], started, finished, row["winner"], loser))
    return found


def generated() -> list[Duel]:
    rng = random.Random(20160919)
    people = [f"p{n:03d}" for n in range(80)]
    found = []
    for number in range(1106):
        started = dt.datetime(2016, 9, 19, tzinfo=dt.UTC) + dt.timedelta(days=rng.randrange(2000) * rng.random())
        started = started.replace(hour=0, minute=0, second=0, microsecond=0)
        finished = started + dt.timedelta(days=rng.choice([0, 1, 2, 10, 40]), hours=23)
        winner, loser = rng.sample(people[: 10 + number // 15], 2)
        found.append(Duel(f"cx{number:04d}", started, finished, winner, loser))
    return found


# -- the calculation of its own --------------------------------------------------------------------------------------
def stake(gap: int) -> int:
    return next((points for limit, points in STAKES if gap <= limit), 0)


def adjusted(points: int, own: int, other: int) -> int:
    i, j = Fraction(own, 100), Fraction(other, 100)
    exact = points * (1 + 19 * i - j - 3 * i * j) / 16
    return exact.numerator // exact.denominator


def months_later(day: dt.date, months: int) -> dt.date:
    number = day.year * 12 + day.month - 1 + months
    year, month = number // 12, number % 12 + 1
    last = (dt.date(year + month // 12, month % 12 + 1, 1) - dt.timedelta(days=1)).day
    return dt.date(year, month, min(day.day, last))


def ladder(duels: list[Duel], zone: str) -> dict[dt.date, dict[str, tuple[int, int]]]:
    """Closing → player → (rank, index)."""
    here = ZoneInfo(zone)
    rank: dict[str, int] = {}
    index: dict[str, int] = {}
    last: dict[str, dt.date] = {}
    at_start: dict[str, dict[str, tuple[int, int]]] = {}
    happenings: list[tuple[dt.datetime, int, str, object]] = []
    for duel in duels:
        happenings.append((duel.started, 9, duel.game, duel))
        happenings.append((duel.finished, 5, duel.game, duel))
    month = min(d.started for d in duels).astimezone(here).date().replace(day=1)
    while (month := months_later(month, 1)) <= UNTIL:
        happenings.append((dt.datetime(month.year, month.month, 1, tzinfo=here).astimezone(dt.UTC), 1, "", month))
    lists: dict[dt.date, dict[str, tuple[int, int]]] = {}
    for instant, kind, _, what in sorted(happenings, key=lambda h: h[:3]):
        if isinstance(what, dt.date):
            for player, day in last.items():
                for months, least in ((3, 200), (4, 300), (5, 400), (6, 500)):
                    if months_later(day, months) <= what:
                        index[player] = max(index[player], least)
            lists[what] = {player: (rank[player], index[player]) for player in rank}
        elif isinstance(what, Duel) and kind == 9:
            pair = (what.winner, what.loser)
            at_start[what.game] = {p: (rank.get(p, 500), index.get(p, 500)) for p in pair}
        elif isinstance(what, Duel):
            start = at_start[what.game]
            points = stake(start[what.winner][0] - start[what.loser][0])
            for player, other, sign in ((what.winner, what.loser, 1), (what.loser, what.winner, -1)):
                worth = adjusted(points, start[player][1], start[other][1])
                rank[player] = max(rank.get(player, 500) + sign * worth, 100)
                index[player] = max(index.get(player, 500) - worth, 100)
                last[player] = instant.astimezone(here).date()
    return lists


# -- the project's ---------------------------------------------------------------------------------------------------
def micros(moment: dt.datetime) -> int:
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def folded(duels: list[Duel], zone: str) -> dict[dt.date, dict[str, tuple[int, int]]]:
    system = rule_system("bridier")
    games = [
        Game(
            "forum",
            d.game,
            1,
            micros(d.started),
            micros(d.finished),
            content={"players": sorted([d.winner, d.loser]), "winner": d.winner},
        )
        for d in duels
    ]
    fold = Fold(system, [DatedRules(micros(dt.datetime(2016, 1, 1, tzinfo=dt.UTC)), system.settings_model())], zone)
    until = micros(dt.datetime(UNTIL.year, UNTIL.month, 1, tzinfo=ZoneInfo(zone)).astimezone(dt.UTC))
    return {
        what.day: {player: (s.rating, s.index) for player, s in what.states.items()}
        for what in fold.run(Story(games), closings_after=None, closed_until=until)
        if isinstance(what, Closed)
    }


@pytest.mark.parametrize("zone", ["Europe/Zurich", "America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("source", [*(["real"] if DATA.exists() else []), "generated"])
def test_every_rank_and_index_month_by_month(source: str, zone: str) -> None:
    duels = real() if source == "real" else generated()
    assert len(duels) == 1106
    random.Random(zone).shuffle(duels)
    expected = ladder(duels, zone)
    assert folded(duels, zone) == expected
    final = expected[UNTIL]
    assert len(final) == 80 or source == "generated"
    assert len({i for month in expected.values() for _, i in month.values()}) > 50, "indexes move"
