"""The order of things as the design tells it, written down once more in the plainest way: slow, and easy to believe.

Nothing is taken down in advance: every rating that was ever reached is kept with its instant, and the ratings at the
start of a game are looked up among them. Closings are months counted on a calendar. Only the formulas of one game
(``rate``, ``moments``, ``close``) are the rule system's own; they have tests of their own.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from shared.ratings.base import FINISH, CannotRate, Game, Moment, PlayerState, RuleSystem

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
START, CLOSING, RESET = "0 start", "1 closing", "4 reset"
KIND = {3: "3 quit", 5: "5 finish"}


def microseconds(moment: dt.datetime) -> int:
    return (moment.astimezone(dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)


def day(instant: int, zone: str) -> dt.date:
    return (EPOCH + dt.timedelta(microseconds=instant)).astimezone(ZoneInfo(zone)).date()


def month_starts(after: int, until: int, zone: str) -> list[tuple[int, dt.date]]:
    """First instants of months."""
    first = day(after, zone)
    found = []
    for number in range(first.year * 12 + first.month - 1, 9999 * 12):
        date = dt.date(number // 12, number % 12 + 1, 1)
        instant = microseconds(dt.datetime(date.year, date.month, 1, tzinfo=ZoneInfo(zone)))
        if instant > until:
            return found
        if instant > after:
            found.append((instant, date))
    return found


@dataclass
class Person:
    rating: int
    index: int
    games: int = 0
    won: int = 0
    drawn: int = 0
    lost: int = 0
    last_result: dt.date | None = None
    counters: dict[str, int] = field(default_factory=dict)

    def state(self) -> PlayerState:
        last = self.last_result.toordinal() if self.last_result else 0
        return PlayerState(
            self.rating, self.index, self.games, self.won, self.drawn, self.lost, last, counters=self.counters
        )


@dataclass
class Told:
    """What the reference is told, in no order at all."""

    system: RuleSystem
    rules: Sequence[tuple[int, Any]]
    zone: str
    games: Sequence[Game]
    starts: Mapping[str, PlayerState] = field(default_factory=dict)
    resets: Sequence[tuple[int, str]] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    """Followed through."""
    closed_until: int | None = None


class Reference:
    def __init__(self, told: Told) -> None:
        self.told = told
        self.people: dict[str, Person] = {}
        self.reached: dict[str, list[tuple[tuple[Any, ...], int, int]]] = {}
        """Every rating a player ever reached, with when."""
        self.held: set[tuple[str, str]] = set()
        self.starts: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        self.after_closing: dict[dt.date, dict[str, tuple[int, int]]] = {}
        fresh = told.system.start(None, told.rules[0][1])
        self.fresh = (fresh.rating, fresh.index)
        self._run()

    def who(self, player: str) -> str:
        return self.told.merged.get(player, player)

    def settings(self, game: Game) -> Any:
        return [s for since, s in sorted(self.told.rules, key=lambda r: r[0]) if since <= game.started_at][-1]

    # -- what happened, in played order
    def _happenings(self) -> list[tuple[tuple[Any, ...], Any]]:
        told = self.told
        found: list[tuple[tuple[Any, ...], Any]] = []
        for game in told.games:
            if game.void or not game.rated:
                continue
            content = told.system.translate(game.content, self.who)
            seats = told.system.players(content)
            if len(set(seats)) < len(seats):
                self.held.add((game.club, game.game_id))
                continue
            for number, moment in enumerate(told.system.moments(game, self.settings(game))):
                kind = KIND[FINISH] if game.started_at == game.finished_at else KIND[moment.kind]
                within = (game.round or 0, game.sequence, game.club, game.game_id, number)
                found.append(((moment.at, kind, *within), (game, content, moment)))
        for at, player in set(told.resets):
            found.append(((at, RESET, 0, 0, "", player, 0), self.who(player)))
        times = [key[0] for key, _ in found]
        times += [
            microseconds(dt.datetime.combine(dt.date.fromordinal(s.last_result), dt.time(), ZoneInfo(told.zone)))
            for s in told.starts.values()
            if s.last_result
        ]
        times += [g.started_at for g in told.games if g.rated and not g.void and (g.club, g.game_id) not in self.held]
        if times and told.closed_until is not None:
            for instant, date in month_starts(min(times) - 1, told.closed_until, told.zone):
                found.append(((instant, CLOSING, 0, 0, "", "", 0), date))
        return sorted(found, key=lambda entry: entry[0])

    def _run(self) -> None:
        for player, state in self.told.starts.items():
            if player not in self.told.merged:
                last = dt.date.fromordinal(state.last_result) if state.last_result else None
                self.people[player] = Person(state.rating, state.index, state.games, last_result=last)
                self._reach((float("-inf"), START), player)
        for key, what in self._happenings():
            if isinstance(what, dt.date):
                self._close(key, what)
            elif isinstance(what, str):
                if what in self.people:
                    self.people[what].rating, self.people[what].index = self.fresh
                    self._reach(key, what)
            else:
                self._play(key, *what)

    def _reach(self, key: tuple[Any, ...], player: str) -> None:
        person = self.people[player]
        self.reached.setdefault(player, []).append((key, person.rating, person.index))

    def _rating_at_start(self, game: Game, player: str) -> tuple[int, int]:
        """After everything up to and including the game's start; without a duration, just before it. Asked at the
        game's first moment: what happens to it at its very start is rated by what stood before."""
        lasted = game.finished_at != game.started_at
        rows = [
            (rating, index)
            for key, rating, index in self.reached.get(player, [])
            if key[0] < game.started_at
            or (key[0] == game.started_at and (lasted or key[4:6] != (game.club, game.game_id)))
        ]
        return rows[-1] if rows else self.fresh

    def _play(self, key: tuple[Any, ...], game: Game, content: Any, moment: Moment) -> None:
        system = self.told.system
        seats = system.players(content)
        start = self.starts.setdefault((game.club, game.game_id), {p: self._rating_at_start(game, p) for p in seats})
        now = {p: (self.people[p].state() if p in self.people else PlayerState(*self.fresh)) for p in seats}
        played = Game(**{f: getattr(game, f) for f in game.__struct_fields__} | {"content": content})
        try:
            outcomes = system.rate(played, moment, start, now, self.settings(game))
        except CannotRate:
            self.held.add((game.club, game.game_id))
            return
        for outcome in outcomes:
            person = self.people.setdefault(outcome.player, Person(*self.fresh))
            person.rating, person.index = outcome.rating, outcome.index
            if outcome.score is not None:
                person.games += 1
                person.won += outcome.score > 0
                person.lost += outcome.score < 0
                person.drawn += outcome.score == 0
            if outcome.is_result:
                today = day(moment.at, self.told.zone)
                person.last_result = max(person.last_result or today, today)
            for name, by in (outcome.counters or {}).items():
                person.counters[name] = person.counters.get(name, 0) + by
            self._reach(key, outcome.player)

    def _close(self, key: tuple[Any, ...], date: dt.date) -> None:
        for player, person in self.people.items():
            after = self.told.system.close(person.state(), date.toordinal())
            if after is not None:
                person.rating, person.index = after
                self._reach(key, player)
        self.after_closing[date] = {p: (s.rating, s.index) for p, s in self.people.items()}

    # -- what came out
    def records(self) -> dict[str, tuple[Any, ...]]:
        """Rating, index, games, won, drawn, lost, day of the last result."""
        return {p: (s.rating, s.index, s.games, s.won, s.drawn, s.lost, s.last_result) for p, s in self.people.items()}

    def state_hash(self) -> str:
        """As API.md says it."""
        total = 0
        for player, person in self.people.items():
            rating = f"{person.rating},{person.index}" if self.told.system.name == "bridier" else str(person.rating)
            last = person.last_result.isoformat() if person.last_result else ""
            line = "\t".join([player, rating, str(person.games), last])
            total += int(hashlib.sha256(line.encode()).hexdigest(), 16)
        return f"{total % 2**256:064x}"
