"""A pool calculated a second time, from the rules pages alone, out of what the API says of its games in the end.

No code of the product is used: plain loops in time order, decimals rounded once per change, dates from the calendar.
Beside what ``tests/system/reference.py`` knows (its small parts serve here too) it knows what a history of corrections
leaves: open games, quits, resets, carried-over ratings, merges, dated rules, Bridier games of three.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo

from tests.system.reference import DIGITS, MILLION, NEW, Body, Numbers, Player, moment, months_later, rounded, stake

CLOSING, QUIT, RESET, FINISH = 1, 3, 4, 5


@dataclass
class Told:
    """What a pool was told in the end."""

    system: str
    zone: str
    rules: Sequence[Body]
    games: Sequence[Body]
    """As ``GET /v1/pools/{pool}/games/{game}`` answers; void ones may be among them."""
    starts: Mapping[str, Body]
    resets: Sequence[tuple[dt.datetime, str]]
    aliases: Mapping[str, str]
    """Merged away → into whom."""
    closed_until: dt.datetime


@dataclass
class Person(Player):
    """A player, and how often he fell into ruin."""

    ruins: int = 0


class SecondFold:
    """Everything in played order, once."""

    def __init__(self, told: Told) -> None:
        self.told, self.zone = told, ZoneInfo(told.zone)
        self.people: dict[str, Person] = {}
        self.changes: dict[str, dict[str, int]] = {}
        """Game → player → what the game changed of his rating or rank, quits included."""
        self.held: set[str] = set()
        with localcontext() as context:
            context.prec = DIGITS
            self._run()

    def hash_of(self, prefix: str) -> str:
        """The state hash as API.md tells it; server-made ids are the prefix and the handle."""
        total = 0
        for name, person in self.people.items():
            numbers = f"{person.now[0]},{person.now[1]}" if self.told.system == "bridier" else f"{person.now[0]}"
            last = person.last_result.isoformat() if person.last_result else ""
            line = f"{prefix}{name}\t{numbers}\t{person.games}\t{last}"
            total += int(hashlib.sha256(line.encode()).hexdigest(), 16)
        return f"{total % 2**256:064x}"

    def _survivor(self, name: str) -> str:
        while name in self.told.aliases:
            name = self.told.aliases[name]
        return name

    def _day(self, when: dt.datetime) -> dt.date:
        return when.astimezone(self.zone).date()

    def _rules(self, when: dt.datetime) -> Body:
        return max((r for r in self.told.rules if r["from"] <= self._day(when).isoformat()), key=lambda r: r["from"])

    # -- what happens when -------------------------------------------------------------------------------------------
    def _run(self) -> None:
        for name, start in self.told.starts.items():
            if self._survivor(name) == name:
                self._carry_over(name, start)
        ticks: list[tuple[Any, ...]] = [
            (when, RESET, 0, 0, "", name, 0, None) for when, name in self.told.resets
        ]  # fmt: skip
        for body in self.told.games:
            if body["status"] != "void" and body["rated"]:
                ticks += self._ticks(body)
        ticks.sort(key=lambda tick: tick[:7])
        days = [p.last_result for p in self.people.values() if p.last_result] + [self._day(t[0]) for t in ticks[:1]]
        closings = self._closings(min(days)) if days else []
        for tick in ticks:
            while closings and closings[0][0] <= tick[0]:
                self._close(*closings.pop(0))
            self._tell(tick)
        for closing in closings:
            self._close(*closing)

    def _carry_over(self, name: str, start: Body) -> None:
        if self.told.system == "bridier":
            last = start.get("last_result_on")
            person = Person((start["rank"], start["index"]))
            person.last_result = dt.date.fromisoformat(last) if last else None
        else:
            person = Person((round(Decimal(repr(start["rating"])) * MILLION), 0), games=start.get("games", 0))
        self.people[name] = person

    def _ticks(self, body: Body) -> list[tuple[Any, ...]]:
        started, finished = moment(body["started_at"]), body["finished_at"] and moment(body["finished_at"])
        content = body["result"] if finished else body["line_up"]
        seats = content["players"] if "players" in content else [p for team in content["teams"] for p in team]
        if len({self._survivor(p) for p in seats}) < len(seats):
            self.held.add(body["game_id"])
            return []
        quits = self._quits(content, started)
        game = {"started": started, "content": content, "ref": body["game_id"], "quits": [p for _, p in quits]}
        game |= {"seats": [self._survivor(p) for p in seats], "instant": finished == started}
        head = (body["round"] or 0, body["sequence"], body["club"], body["game_id"])
        moments = [(at, QUIT, player) for at, player in quits] + ([(finished, FINISH, None)] if finished else [])
        if game["instant"]:
            return [(finished, FINISH, *head, n, game, who) for n, (_, _, who) in enumerate(moments)]
        return [(at, kind, *head, n, game, who) for n, (at, kind, who) in enumerate(moments)]

    def _quits(self, content: Body, started: dt.datetime) -> list[tuple[dt.datetime, str]]:
        grace = dt.timedelta(minutes=self._rules(started).get("grace_minutes", 3))
        found = []
        for one in content.get("quits", ()):
            at, back = moment(one["at"]), one.get("back_at")
            if back is None or moment(back) - at > grace:
                found.append((at, self._survivor(one["player"])))
        return sorted(found)

    def _tell(self, tick: tuple[Any, ...]) -> None:
        at, kind, game = tick[0], tick[1], tick[7]
        if game is None:
            person = self.people.get(self._survivor(tick[5]))
            if person is not None:
                person.change(at, kind, NEW[self.told.system], "")
            return
        if "start" not in game:
            now_counts = game["instant"] or (kind == QUIT and at == game["started"])
            game["start"] = {p: self._now(p) if now_counts else self._at(p, game["started"]) for p in game["seats"]}
        rules = self._rules(game["started"])
        changes = getattr(self, f"_{self.told.system}")(rules, game, tick[8])
        for name, (numbers, score, is_result) in changes.items():
            person = self.people.setdefault(name, Person(NEW[self.told.system]))
            told = self.changes.setdefault(game["ref"], {})
            told[name] = told.get(name, 0) + numbers[0] - person.now[0]
            person.change(at, kind, numbers, game["ref"])
            person.count(score)
            if is_result:
                person.last_result = max(person.last_result or self._day(at), self._day(at))

    def _now(self, name: str) -> Numbers:
        return self.people[name].now if name in self.people else NEW[self.told.system]

    def _at(self, name: str, when: dt.datetime) -> Numbers:
        return self.people[name].at(when) if name in self.people else NEW[self.told.system]

    # -- closings ------------------------------------------------------------------------------------------------------
    def _closings(self, first: dt.date) -> list[tuple[dt.datetime, dt.date]]:
        found, day = [], first.replace(day=1)
        while True:
            at = dt.datetime(day.year, day.month, 1, tzinfo=self.zone).astimezone(dt.UTC)
            if at > self.told.closed_until:
                return found
            found.append((at, day))
            day = months_later(day, 1)

    def _close(self, at: dt.datetime, day: dt.date) -> None:
        for person in self.people.values():
            if self.told.system == "bridier" and person.last_result is not None:
                months = [n for n in (3, 4, 5, 6) if months_later(person.last_result, n) <= day]
                index = max([person.now[1], *((n - 1) * 100 for n in months)])
                if index != person.now[1]:
                    person.change(at, CLOSING, (person.now[0], index), "")

    # -- Spades --------------------------------------------------------------------------------------------------------
    def _spades(self, rules: Body, game: Body, quitter: str | None) -> dict[str, tuple[Numbers, int, bool]]:
        seats, quits, outcome = game["seats"], game["quits"], game["content"].get("outcome")
        sides = (seats[:2], seats[2:])
        gone = next((n for n in range(len(quits)) if any(set(s) <= set(quits[: n + 1]) for s in sides)), None)
        if gone is not None and quitter in quits[gone + 1 :]:
            return {}  # the game was over
        quits = quits if gone is None else quits[: gone + 1]
        if quitter is None and gone is None and outcome is None:  # newer rules say that who was gone was back in time
            self.held.add(game["ref"])
            return {}
        if quitter is None:
            rated = [] if gone is not None else [p for p in seats if p not in quits]
        else:
            rated = [quitter]
            if quits.index(quitter) == gone:
                rated += [p for p in seats if p not in quits]
        found = {}
        for name in rated:
            own, others = sides if name in sides[0] else sides[::-1]
            score = Decimal(0)
            for other in others:
                if name in quits and other in quits:
                    score += quits.index(other) < quits.index(name)
                elif name in quits or other in quits:
                    score += other in quits
                else:
                    wins = {"team1": sides[0], "team2": sides[1]}.get(outcome)
                    score += Decimal("0.5") if wins is None else own == wins
            k = rules.get("k", 25)
            person = self.people.get(name) or Person(NEW["spades"])
            if isinstance(k, Mapping):
                k = k["first"] if person.games <= k["up_to_games"] else k["then"]
            expected = self._expected(rules, game["start"], name, own, others)
            change = rounded(Decimal(repr(k)) * (score - expected) * MILLION)
            if name in quits or quitter is not None:
                counted = -1 if name in quits else 1
            else:
                counted = {"team1": 1, "team2": -1}.get(outcome, 0) * (1 if own == sides[0] else -1)
            found[name] = ((person.now[0] + change, 0), counted, True)
        return found

    def _expected(
        self, rules: Body, start: Mapping[str, Numbers], name: str, own: Sequence[str], others: Sequence[str]
    ) -> Decimal:
        points = {p: Decimal(n[0]) / MILLION for p, n in start.items()}
        if rules.get("opposition") == "pairwise":
            gaps = [points[other] - points[name] for other in others]
        else:
            gaps = [sum(points[p] for p in others) / 2 - sum(points[p] for p in own) / 2] * 2
        return sum((1 / (1 + Decimal(10) ** (gap / 400)) for gap in gaps), Decimal(0))

    # -- Jass ----------------------------------------------------------------------------------------------------------
    def _jass(self, rules: Body, game: Body, _: None) -> dict[str, tuple[Numbers, int, bool]]:
        seats, (one, two) = game["seats"], game["content"]["striche"]
        points = [Decimal(game["start"][p][0]) / MILLION for p in seats]
        expected = 1 / (1 + Decimal(10) ** ((sum(points[2:]) / 2 - sum(points[:2]) / 2) / 1000))
        deviation = (one - two) - (2 * expected - 1) * (one + two)
        score = min(max(Decimal("0.5") + deviation / 14, Decimal(0)), Decimal(1))
        change = rounded(rules.get("k", 32) * (score - expected) * MILLION / 2)
        winner = (one > two) - (one < two)
        signs = zip(seats, (1, 1, -1, -1), strict=True)
        return {p: ((self._now(p)[0] + sign * change, 0), sign * winner, True) for p, sign in signs}

    # -- Bridier -------------------------------------------------------------------------------------------------------
    def _bridier(self, rules: Body, game: Body, _: None) -> dict[str, tuple[Numbers, int, bool]]:
        content, start, seats = game["content"], game["start"], game["seats"]
        if content.get("draw"):
            return {p: (self._now(p), 0, False) for p in seats}
        defeats = [(moment(d["at"]), d["winner"], d["loser"]) for d in content.get("defeats", ()) if "at" in d]
        if "winner" in content:
            loser = next(p for p in content["players"] if p != content["winner"])
            defeats = [(game["started"], content["winner"], loser)]
        now = {p: list(self._now(p)) for p in seats}
        tally: dict[str, list[int]] = {}
        for _, winner, loser in sorted((at, self._survivor(w), self._survivor(x)) for at, w, x in defeats):
            moved = {}
            for name, other in ((winner, loser), (loser, winner)):
                own = start[name] if rules.get("basis", "start") == "start" else now[name]
                his = now[other] if rules.get("basis") == "end" else start[other]
                gap = own[0] - his[0] if name == winner else his[0] - own[0]
                factor = 10000 + 1900 * own[1] - 100 * his[1] - 3 * own[1] * his[1]
                moved[name] = stake(gap) * factor // 160000
            for name, sign in ((winner, 1), (loser, -1)):
                now[name] = [max(now[name][0] + sign * moved[name], 100), max(now[name][1] - moved[name], 100)]
                tally.setdefault(name, []).append(sign)
        for ruin in content.get("ruins", ()):
            name = self._survivor(ruin["player"])
            person = self.people.setdefault(name, Person(NEW["bridier"]))
            now[name][0] = max(now[name][0] - rules.get("ruin_penalty", 0) * (person.ruins + 1), 100)
            person.ruins += 1
            tally.setdefault(name, []).append(-1)
        if not tally:
            return {}
        return {p: ((now[p][0], now[p][1]), sum(tally.get(p, [0])), p in tally) for p in seats}
