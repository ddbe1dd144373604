"""Random histories of a pool: results in order and late, corrections, voids, merges, new rules, closings."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from shared.ledger.events import Event, event_id
from shared.problems import Problem
from shared.store import ledger
from shared.usecases import games, rebuild
from shared.usecases.drafts import GameDraft
from tests.integration.ladder import DAY, HOUR, MINUTE, Ladder, at, iso_of

PLAYERS = "abcdefgh"
FIRST = at("2026-05-20 00:00")
RULES: dict[str, list[dict[str, Any]]] = {
    "spades": [
        {"quit_ban_minutes": 0, "opt_out_ban_days": 0, **rules}
        for rules in (
            {"k": 25},
            {"k": 32, "opposition": "pairwise"},
            {"k": {"first": 50, "up_to_games": 3, "then": 30}},
            {"grace_minutes": 4},
            {"grace_minutes": 5},
        )
    ],
    "bridier": [{}, {"basis": "end", "ruin_penalty": 5}, {"basis": "hybrid", "alliance_average": True}],
    "jass": [{}, {"k": 20}, {"schneider": 1}],
}
STARTS: dict[str, list[dict[str, Any]]] = {
    "spades": [{"rating": 1512, "games": 60}, {"rating": 1400, "games": 2}],
    "bridier": [
        {"rank": 520, "index": 453, "last_result_on": "2026-05-01"},
        {"rank": 640, "index": 100, "last_result_on": "2026-01-10"},
        {"rank": 480, "index": 500},
    ],
    "jass": [{"rating": 112}, {"rating": 90.5}],
}


@dataclass
class History:
    """One random history; the same seed always makes the same."""

    ladder: Ladder
    system: str
    seed: int
    pool: str = "p"
    merges: bool = True
    starts: bool = True
    random: random.Random = field(init=False)
    count: int = 0
    merged: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.system} {self.seed}")

    def open(self) -> None:
        """Open the pool and register the players."""
        self.ladder.now = at("2026-08-31 20:00")
        self.ladder.open_pool(self.pool, self.system, [{"from": "2026-01-01", **RULES[self.system][0]}])
        self.ladder.register(*PLAYERS)

    # -- drafts
    def instant(self) -> int:
        """Some time in the past months, not too often the same, sometimes the very closing."""
        roll = self.random.random()
        if roll < 0.1:
            return self.random.choice([at("2026-06-30 22:00"), at("2026-07-31 22:00"), at("2026-08-15 12:00")])
        if roll < 0.5:
            return self.ladder.now - self.random.randrange(6 * HOUR)
        return FIRST + self.random.randrange((self.ladder.now - FIRST) // HOUR) * HOUR

    def draft(self) -> GameDraft:
        """A finished game."""
        rng = self.random
        end = self.instant()
        minutes = rng.choice([0, 0, 30, 60, 3 * 24 * 60])
        more: dict[str, Any] = {
            "started_at": end - minutes * MINUTE,
            "finished_at": end,
            "rated": rng.random() > 0.1,
            "round": rng.choice([None, None, 1, 2]),
            "sequence": rng.choice([0, 0, 1]),
            "group": rng.choice([None, "di", "do"]),
            "tournament": rng.choice([None, None, "cup"]),
            "distinct": True,
        }
        self.count += 1
        return GameDraft(game_id=f"g{self.count}", result=self.result(end, minutes), **more)

    def result(self, end: int, minutes: int) -> dict[str, Any]:
        """A result of the system."""
        rng = self.random
        if self.system == "bridier":
            return self._bridier(end)
        four = rng.sample(PLAYERS, 4)
        teams = [four[:2], four[2:]]
        if self.system == "jass":
            return {"teams": teams, "striche": rng.choice([[3, 0], [2, 2], [0, 5], [7, 1], [2, 3]])}
        result: dict[str, Any] = {"teams": teams, "outcome": rng.choice(["team1", "team2", "draw"])}
        if minutes and rng.random() < 0.5:
            quitters = rng.sample(four, rng.choice([1, 1, 2]))
            if rng.random() < 0.2:
                quitters, result["outcome"] = four[:2], None  # a whole side
            result["quits"] = [self._quit(q, end - rng.randrange(minutes + 1) * MINUTE) for q in quitters]
        if rng.random() < 0.3:
            result["nils"] = [{"bidder": four[0], "set": rng.random() < 0.5}]
        return result

    def _quit(self, player: str, when: int) -> dict[str, Any]:
        back = when + self.random.choice([3, 4, 5]) * MINUTE
        return {"player": player, "at": iso_of(when), **self.random.choice([{}, {"back_at": iso_of(back)}])}

    def _bridier(self, end: int) -> dict[str, Any]:
        rng = self.random
        if rng.random() < 0.7:
            pair = rng.sample(PLAYERS, 2)
            return {"players": pair, "draw": True} if rng.random() < 0.2 else {"players": pair, "winner": pair[0]}
        table = rng.sample(PLAYERS, 3)
        defeats = [{"winner": table[0], "loser": table[1], "at": iso_of(end)}] if rng.random() < 0.7 else []
        ruins = [{"player": table[2], "by": None, "at": iso_of(end)}] if rng.random() < 0.5 else []
        return {"players": table, "defeats": defeats, "ruins": ruins}

    # -- operations
    def operations(self) -> list[Callable[[], None]]:
        """What may happen, as often as it is listed."""
        live = [self.open_game, self.quit, self.finish] if self.system == "spades" else [self.open_game, self.finish]
        merges = [self.merge, self.unmerge] if self.merges else []
        return [
            *[self.submit] * 6,
            *[self.correct] * 3,
            *[self.void] * 2,
            self.revive,
            *live * 2,
            *merges,
            *([self.start] if self.starts else []),
            *([self.leave] if self.system == "spades" else []),
            self.rules,
            self.rebuild,
            self.wait,
            *[self.rate] * 6,
        ]

    def step(self) -> str:
        """One of them. What the door refuses has not happened."""
        return self.attempt(self.random.choice(self.operations()))

    def attempt(self, operation: Callable[[], None]) -> str:
        """This one."""
        try:
            operation()
        except Problem as problem:
            return f"{operation.__name__}: {problem.code}"
        self.done.append(operation.__name__)
        return operation.__name__

    def _stored(self) -> list[Any]:
        found = []
        for number in range(1, self.count + 1):
            try:
                found.append(games.load(self.ladder.ctx, self.ladder.pool(self.pool), ("bern", f"g{number}")))
            except Problem:
                continue
        return found

    def _any(self, wanted: Callable[[Any], bool]) -> str | None:
        found = [s.game.game_id for s in self._stored() if wanted(s.game)]
        return self.random.choice(found) if found else None

    def submit(self) -> None:
        """Some come twice."""
        draft = self.draft()
        self.ladder.submit(draft, self.pool)
        if self.random.random() < 0.2:
            assert self.ladder.submit(draft, self.pool).status == 200

    def correct(self) -> None:
        game = self._any(lambda g: g.finished_at is not None and not g.void)
        if game is None:
            return
        draft = self.draft()
        what = self.random.choice(["result", "times", "round", "rated", "all"])
        changes: dict[str, Any] = {}
        if what in ("result", "all"):
            changes["result"] = draft.result
            changes |= {"started_at": draft.started_at, "finished_at": draft.finished_at}
        if what in ("times", "all") and "quits" not in str(self._stored()):
            changes |= {"started_at": draft.started_at, "finished_at": draft.finished_at}
        if what in ("round", "all"):
            changes |= {"round": draft.round, "sequence": draft.sequence, "group": draft.group}
        if what == "rated":
            changes["rated"] = draft.rated
        self.ladder.correct(game, self.pool, **changes)

    def void(self) -> None:
        if (game := self._any(lambda g: not g.void)) is not None:
            self.ladder.void(game, self.pool)

    def revive(self) -> None:
        if (game := self._any(lambda g: g.void)) is not None:
            self.ladder.correct(game, self.pool, note="it was played after all")

    def open_game(self) -> None:
        draft = self.draft()
        content = draft.result or {}
        line_up = {k: content[k] for k in ("teams", "players") if k in content}
        self.ladder.submit(replace(draft, result=None, line_up=line_up, finished_at=None), self.pool)

    def quit(self) -> None:
        if (game := self._any(lambda g: g.finished_at is None and not g.void)) is None:
            return
        stored = games.load(self.ladder.ctx, self.ladder.pool(self.pool), ("bern", game))
        sids = self.ladder.pool(self.pool).system.players(stored.game.content)
        player = self.random.choice(sids).removeprefix("sid-")
        when = self.random.choice([self.ladder.now, stored.game.started_at + self.random.randrange(30) * MINUTE])
        self.ladder.now += 1_000_000
        games.quit(self.ladder.ctx, self.ladder.pool(self.pool), "bern", ("bern", game), player, when)

    def finish(self) -> None:
        if (game := self._any(lambda g: g.finished_at is None and not g.void)) is None:
            return
        stored = games.load(self.ladder.ctx, self.ladder.pool(self.pool), ("bern", game)).game
        end = max(self.ladder.now, stored.started_at)
        sids = self.ladder.pool(self.pool).system.players(stored.content)
        players = [sid.removeprefix("sid-") for sid in sids]
        result = self.result(end, 0)
        if self.system == "bridier":
            result = {"players": players[:2], "winner": players[0]} if len(players) == 2 else {**result}
            if len(players) > 2:
                result = {"players": players, "defeats": [{"winner": players[0], "loser": players[1]}]}
        elif self.random.random() < 0.9:
            result["teams"] = [players[:2], players[2:]]
            result.pop("nils", None)
        self.ladder.correct(game, self.pool, result=result, finished_at=end)

    def merge(self) -> None:
        away, into = self.random.sample(PLAYERS, 2)
        if away in self.merged or into in self.merged:
            return
        self.merged.add(away)
        self.ladder.merge(away, into, self.pool)

    def unmerge(self) -> None:
        if self.merged:
            player = self.random.choice(sorted(self.merged))
            self.merged.remove(player)
            self.ladder.unmerge(player, self.pool)

    def start(self) -> None:
        self.ladder.start(self.random.choice(PLAYERS), self.random.choice(STARTS[self.system]), self.pool)

    def leave(self) -> None:
        self.ladder.leave(self.random.choice(PLAYERS), self.instant(), self.pool)

    def rules(self) -> None:
        rules = [{"from": "2026-01-01", **self.random.choice(RULES[self.system])}]
        if self.random.random() < 0.7:
            day = self.random.choice(["2026-06-01", "2026-07-01", "2026-07-15", "2026-08-20"])
            rules.append({"from": day, **self.random.choice(RULES[self.system])})
        self.ladder.open_pool(self.pool, self.system, rules)

    def rebuild(self) -> None:
        self.ladder.now += 1
        rebuild.request(self.ladder.ctx, self.ladder.pool(self.pool))

    def wait(self) -> None:
        """Days go by, months turn."""
        self.ladder.now += self.random.choice([HOUR, DAY, 12 * DAY])

    def rate(self) -> None:
        self.ladder.rate(self.pool)


def retell(history: History, other: str) -> None:
    """Tell another pool, in any order, only what counts in the end: each game once, as it is now."""
    ladder, rng = history.ladder, history.random
    rules = ladder.pool(history.pool).rules_as_given
    ladder.open_pool(other, history.system, rules)
    told: dict[Any, Event] = {}
    for (pk, _), item in sorted(ladder.items().items(), key=lambda entry: entry[0][1]):
        if not pk.startswith(f"LEDGER#{history.pool}#"):
            continue
        event = msgspec.json.decode(item["event"], type=Event)
        if event.game is not None:
            ref: Any = (event.game.club, event.game.game_id)
            if ref not in told or told[ref].game.revision < event.game.revision:  # type: ignore[union-attr]
                told[ref] = event
        elif event.kind in ("merge", "unmerge"):
            told["merge", event.player] = event
        elif event.kind == "start":
            told["start", event.player] = event
        elif event.kind == "rank-me":
            told[event.kind, event.player, event.value["at"]] = event
    final = [e for e in told.values() if e.kind != "unmerge" and not (e.game is not None and e.game.void)]
    rng.shuffle(final)
    for event in final:
        ladder.now += 1
        game = event.game
        if game is not None:
            game = msgspec.structs.replace(game, revision=1)
        again = msgspec.structs.replace(
            event, id=event_id(ladder.now, ladder.ctx.token(12)), accepted_at=ladder.now, game=game, touches=None
        )
        ladder.ctx.table.transact(ledger.append(other, again))
        if rng.random() < 0.3:
            ladder.rate(other)
    ladder.rate(other)
