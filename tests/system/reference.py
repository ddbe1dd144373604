"""The three rule systems once more, written from the rules pages alone, slow and plain; no code of the project is used.

A pool is calculated from what was submitted (bodies as API.md has them): every moment in time order, ratings at the
start of a game looked up in what each player had by then. Numbers are decimals of 60 digits, rounded once per change.
"""

from __future__ import annotations

import bisect
import calendar
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo

Body = Mapping[str, Any]
Numbers = tuple[int, int]
"""Millionths and 0, or rank and index."""
MILLION = 1_000_000
DIGITS = 60
LATER = 9
NEW: dict[str, Numbers] = {"spades": (1500 * MILLION, 0), "jass": (100 * MILLION, 0), "bridier": (500, 500)}


def moment(text: str) -> dt.datetime:
    """An ISO time in UTC."""
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(dt.UTC)


@dataclass
class Player:
    """What is known of a player, and everything he ever had: (when, kind) → numbers."""

    first: Numbers
    games: int = 0
    won: int = 0
    drawn: int = 0
    lost: int = 0
    last_result: dt.date | None = None
    times: list[tuple[dt.datetime, int]] = field(default_factory=list)
    values: list[Numbers] = field(default_factory=list)
    games_of_changes: list[str] = field(default_factory=list)
    """Per change: ``club:game``, empty for a closing."""

    @property
    def now(self) -> Numbers:
        """The current numbers."""
        return self.values[-1] if self.values else self.first

    def at(self, when: dt.datetime) -> Numbers:
        """The numbers after everything up to and including an instant."""
        number = bisect.bisect_right(self.times, (when, LATER))
        return self.values[number - 1] if number else self.first

    def change(self, when: dt.datetime, kind: int, numbers: Numbers, game: str) -> None:
        """New numbers."""
        self.times.append((when, kind))
        self.values.append(numbers)
        self.games_of_changes.append(game)

    def count(self, score: int) -> None:
        """A rated game more: 1 won, 0 drawn, −1 lost."""
        self.games += 1
        self.won += score > 0
        self.drawn += score == 0
        self.lost += score < 0


@dataclass
class Reference:
    """A pool calculated."""

    players: dict[str, Player] = field(default_factory=dict)
    lists: dict[str, dict[str, Numbers]] = field(default_factory=dict)
    """Month → numbers after the closing that ended it, of everybody who was there."""
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    """``club:game`` → player → change of rating or rank by that game, quits included."""


def calculate(
    pool: Body, games: Iterable[tuple[str, Body]], starts: Mapping[str, Body], closed_until: dt.datetime
) -> Reference:
    """Everything a pool should say once all these games are rated and it is closed up to an instant."""
    with localcontext() as context:
        context.prec = DIGITS
        return _Calculation(pool, starts, closed_until).run(list(games))


class _Calculation:
    def __init__(self, pool: Body, starts: Mapping[str, Body], closed_until: dt.datetime) -> None:
        self.system = pool["system"]
        self.zone = ZoneInfo(pool["time_zone"])
        self.rules = sorted(pool["rules"], key=lambda r: r["from"])
        self.closed_until = closed_until
        self.found = Reference()
        for player, start in starts.items():
            if self.system == "bridier":
                carried = self.player(player, (start["rank"], start["index"]))
                if "last_result_on" in start:
                    carried.last_result = dt.date.fromisoformat(start["last_result_on"])
            else:
                carried = self.player(player, (round(Decimal(repr(start["rating"])) * MILLION), 0))
                carried.games = start.get("games", 0)

    def player(self, name: str, first: Numbers | None = None) -> Player:
        """A player, new when he was not there yet."""
        return self.found.players.setdefault(name, Player(first or NEW[self.system]))

    def settings(self, started: dt.datetime) -> Body:
        """The rules in force at the start of a game."""
        day = started.astimezone(self.zone).date().isoformat()
        return [entry for entry in self.rules if entry["from"] <= day][-1]

    def run(self, games: list[tuple[str, Body]]) -> Reference:
        """Tell everything in the order in which it happened."""
        ticks: list[tuple[Any, ...]] = []
        for club, body in games:
            if body.get("rated", True) is False:
                continue
            ref = f"{club}:{body['game_id']}"
            started, finished = moment(body["started_at"]), moment(body["finished_at"])
            head = (body.get("round") or 0, body.get("sequence", 0), club, body["game_id"])
            ticks.append((finished, 5, *head, 0, ref, started, body["result"]))
            if self.system == "spades":
                for number, (player, at) in enumerate(_quits(body["result"])):
                    ticks.append((at, 3, *head, number, ref, started, body["result"], player))
        ticks.sort(key=lambda t: t[:7])
        first = ticks[0][0].astimezone(self.zone).date()
        carried = [p.last_result for p in self.found.players.values() if p.last_result]
        due = _closings(min([first, *carried]), self.closed_until, self.zone)
        for tick in ticks:
            while due and due[0][0] <= tick[0]:
                self.close(*due.pop(0))
            self.tell(tick)
        for closing in due:
            self.close(*closing)
        return self.found

    def tell(self, tick: tuple[Any, ...]) -> None:
        """One finish or quit."""
        at, kind, ref, started, result = tick[0], tick[1], tick[7], tick[8], tick[9]
        rules = self.settings(started)
        if self.system == "spades":
            changes = self.spades(rules, result, started, tick[10] if kind == 3 else None)
        elif self.system == "jass":
            changes = self.jass(rules, result, started)
        else:
            changes = self.bridier(result, started)
        day = at.astimezone(self.zone).date()
        for name, (numbers, score, is_result) in changes.items():
            player = self.player(name)
            told = self.found.changes.setdefault(ref, {})
            told[name] = told.get(name, 0) + numbers[0] - player.now[0]
            player.change(at, kind, numbers, ref)
            player.count(score)
            if is_result:
                player.last_result = max(player.last_result or day, day)

    # -- Spades --------------------------------------------------------------------------------------------------
    def spades(
        self, rules: Body, result: Body, started: dt.datetime, quitter: str | None
    ) -> dict[str, tuple[Numbers, int, bool]]:
        """Ratings by a quit of ``quitter``, or by the end of the game."""
        one, two = result["teams"]
        quits = [name for name, _ in _quits(result)]
        emptied = next(
            (n for n in range(len(quits)) if {*one} <= {*quits[: n + 1]} or {*two} <= {*quits[: n + 1]}), None
        )
        if quitter is not None and emptied is not None and quits.index(quitter) > emptied:
            return {}
        if quitter is None:
            rated = [] if emptied is not None else [p for p in (*one, *two) if p not in quits]
        elif emptied is not None and quits.index(quitter) == emptied:
            rated = [quitter, *(p for p in (*one, *two) if p not in quits[: emptied + 1])]
        else:
            rated = [quitter]
        found = {}
        for name in rated:
            own, others = (one, two) if name in one else (two, one)
            score = Decimal(0)
            for other in others:
                if name in quits and other in quits:
                    score += quits.index(other) < quits.index(name)
                elif name in quits or other in quits:
                    score += other in quits
                else:
                    wins = {"team1": one, "team2": two}.get(result["outcome"])
                    score += Decimal("0.5") if wins is None else int(own == wins)
            expected = self._spades_expected(rules, name, own, others, started)
            player = self.player(name)
            k = rules.get("k", 25)
            if isinstance(k, Mapping):
                k = k["first"] if player.games <= k["up_to_games"] else k["then"]
            change = rounded(Decimal(repr(k)) * (score - expected) * MILLION)
            if name in quits:
                counted = -1
            elif quitter is not None:
                counted = 1
            else:
                counted = {"team1": 1, "team2": -1}.get(result["outcome"], 0) * (1 if own == one else -1)
            found[name] = ((player.now[0] + change, 0), counted, True)
        return found

    def _spades_expected(
        self, rules: Body, name: str, own: Sequence[str], others: Sequence[str], started: dt.datetime
    ) -> Decimal:
        ratings = {p: Decimal(self.player(p).at(started)[0]) / MILLION for p in (*own, *others)}
        if rules.get("opposition", "team_average") == "pairwise":
            differences = [ratings[other] - ratings[name] for other in others]
        else:
            mean = sum(ratings[p] for p in others) / 2 - sum(ratings[p] for p in own) / 2
            differences = [mean, mean]
        return sum((1 / (1 + Decimal(10) ** (d / 400)) for d in differences), Decimal(0))

    # -- Jass ----------------------------------------------------------------------------------------------------
    def jass(self, rules: Body, result: Body, started: dt.datetime) -> dict[str, tuple[Numbers, int, bool]]:
        """Ratings by striche."""
        sums = [Decimal(sum(self.player(p).at(started)[0] for p in team)) / MILLION for team in result["teams"]]
        striche = [sum(s.values()) if isinstance(s, Mapping) else s for s in result["striche"]]
        expected = 1 / (1 + Decimal(10) ** ((sums[1] / 2 - sums[0] / 2) / 1000))
        deviation = striche[0] - striche[1] - (2 * expected - 1) * sum(striche)
        score = min(max(Decimal("0.5") + deviation / 14, Decimal(0)), Decimal(1))
        change = rounded(Decimal(repr(rules.get("k", 32))) * (score - expected) * MILLION / 2)
        winner = _jass_winner(result, striche)
        found = {}
        for sign, team in zip((1, -1), result["teams"], strict=True):
            for name in team:
                found[name] = ((self.player(name).now[0] + sign * change, 0), sign * winner, True)
        return found

    # -- Bridier -------------------------------------------------------------------------------------------------
    def bridier(self, result: Body, started: dt.datetime) -> dict[str, tuple[Numbers, int, bool]]:
        """Ranks and indexes by a duel, on the basis of the ratings at its start."""
        one, two = result["players"]
        if result.get("draw"):
            return {name: (self.player(name).now, 0, False) for name in (one, two)}
        winner, loser = (one, two) if result["winner"] == one else (two, one)
        (high, i), (low, j) = self.player(winner).at(started), self.player(loser).at(started)
        base = stake(high - low)
        found = {}
        for name, sign, own, other in ((winner, 1, i, j), (loser, -1, j, i)):
            moved = base * (10000 + 1900 * own - 100 * other - 3 * own * other) // 160000
            rank, index = self.player(name).now
            found[name] = ((max(rank + sign * moved, 100), max(index - moved, 100)), sign, True)
        return found

    def close(self, at: dt.datetime, day: dt.date) -> None:
        """The closing at the first instant of a month."""
        month = (day - dt.timedelta(1)).isoformat()[:7]
        for player in self.found.players.values():
            if self.system == "bridier" and player.last_result is not None:
                floor = max((level for months, level in ((3, 200), (4, 300), (5, 400), (6, 500))
                             if months_later(player.last_result, months) <= day), default=100)  # fmt: skip
                rank, index = player.now
                if floor > index:
                    player.change(at, 1, (rank, floor), "")
        self.found.lists[month] = {name: player.now for name, player in self.found.players.items()}


def stake(gap: int) -> int:
    """The base stake: what a winner so many rank points above the loser stakes."""
    limits = (0, 10, 20, 30, 40, 60, 80, 100, 140, 200)
    return next((10 - n for n, limit in enumerate(limits) if gap <= limit), 0)


def months_later(day: dt.date, months: int) -> dt.date:
    """So many calendar months later, clamped to the month's end."""
    number = day.year * 12 + day.month - 1 + months
    year, month = number // 12, number % 12 + 1
    return dt.date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _closings(first: dt.date, until: dt.datetime, zone: ZoneInfo) -> list[tuple[dt.datetime, dt.date]]:
    """The closings after a day: (instant, first day of the month)."""
    found = []
    day = months_later(first.replace(day=1), 1)
    while (at := dt.datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(dt.UTC)) <= until:
        found.append((at, day))
        day = months_later(day, 1)
    return found


def _quits(result: Body) -> list[tuple[str, dt.datetime]]:
    """Quits that count, first to last: who was back within three minutes has not quit."""
    found = []
    for quit_ in result.get("quits", ()):
        at = moment(quit_["at"])
        back = quit_.get("back_at")
        if back is None or moment(back) - at > dt.timedelta(minutes=3):
            found.append((at, quit_["player"]))
    return [(player, at) for at, player in sorted(found)]


def _jass_winner(result: Body, striche: Sequence[int]) -> int:
    """1 the first team won, −1 the second, 0 nobody: by name, by the sieg, by what totals allow, by more striche."""
    if "winner" in result:
        return 1 if result["winner"] == "team1" else -1
    if isinstance(result["striche"][0], Mapping):
        return 1 if result["striche"][0]["sieg"] else -1
    return (striche[0] > striche[1]) - (striche[0] < striche[1])


def rounded(value: Decimal) -> int:
    """Half to even."""
    return int(value.to_integral_value(ROUND_HALF_EVEN))
