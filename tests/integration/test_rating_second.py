"""Random histories with crashes in them, against a second calculation that shares no code with the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.ledger.order import to_datetime
from shared.store import rated as store
from shared.usecases import games, reading
from tests.integration.histories import History
from tests.integration.ladder import Ladder, small_steps
from tests.integration.memory import Killed
from tests.integration.second_fold import SecondFold, Told
from tests.integration.test_crash_rating import Fuse


@dataclass
class Remembering(Ladder):
    """A ladder that keeps what no game tells."""

    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    resets: list[tuple[Any, str]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)

    def start(self, handle: str, start: dict[str, Any], pool: str = "p") -> None:
        super().start(handle, start, pool)
        self.starts[handle] = start

    def leave(self, player: str, when: int, pool: str = "p") -> None:
        super().leave(player, when, pool)
        if (to_datetime(when), player) not in self.resets:
            self.resets.append((to_datetime(when), player))

    def merge(self, player: str, into: str, pool: str = "p") -> None:
        super().merge(player, into, pool)
        self.aliases[player] = into

    def unmerge(self, player: str, pool: str = "p") -> None:
        super().unmerge(player, pool)
        del self.aliases[player]


def told(history: History, ladder: Remembering) -> Told:
    """What the pool was told in the end, in the API's words."""
    pool, closed = ladder.pool(), ladder.cursor().closed_until
    assert closed is not None
    refs = [key[0].split("#")[2:] for key in ladder.items() if key[0].startswith("GAME#p#")]
    bodies = [games.read(ladder.ctx, pool, (club, game)) for club, game in refs]
    return Told(
        history.system,
        pool.time_zone,
        pool.rules_as_given,
        bodies,
        ladder.starts,
        ladder.resets,
        ladder.aliases,
        to_datetime(closed),
    )


def compare(history: History, ladder: Remembering) -> None:
    """Every number of every player, the hash, and what each game is said to have changed."""
    final = told(history, ladder)
    second = SecondFold(final)
    rows = store.read_all_states(ladder.ctx.table, "p", ladder.cursor().view)
    ours = {
        sid.removeprefix("sid-"): (s.rating, s.index, s.games, s.won, s.drawn, s.lost)
        for sid, row in rows.items()
        if (s := row.state)
    }
    theirs = {n: (*p.now, p.games, p.won, p.drawn, p.lost) for n, p in second.people.items()}
    assert ours == theirs
    assert ladder.cursor().hash == second.hash_of("sid-")
    assert {b["game_id"] for b in final.games if b["status"] == "held"} == second.held
    unit = "rank" if history.system == "bridier" else "rating"
    scale = 1 if history.system == "bridier" else 1_000_000
    for body in final.games:
        changes: dict[str, int] = {}
        for line in body["changes"]:
            changes[line["player"]] = changes.get(line["player"], 0) + round(line["change"][unit] * scale)
        expected = second.changes.get(body["game_id"], {})
        assert {p: c for p, c in changes.items() if c} == {p: c for p, c in expected.items() if c}, body["game_id"]
    for name, person in second.people.items():
        shown = reading.player_in_pool(ladder.ctx, ladder.pool(), name, None)
        assert round(shown["rating"][unit] * scale) == person.now[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rules", ["spades", "bridier", "jass"])
def test_whatever_happened_and_died_the_second_calculation_agrees(rules: str, seed: int) -> None:
    ladder = Remembering.in_memory(page=20_000)
    assert isinstance(ladder, Remembering)
    history = History(ladder, rules, 1000 + seed)
    died = 0
    with small_steps(IN_PLACE=(100, 8, 40, 8)[seed % 4], CHECKPOINT_SPACING=(3, 20)[seed % 2]):
        history.open()
        whole = {history.submit, history.correct, history.void, history.revive, history.finish, history.rate}
        for number in range(300):
            operation = history.random.choice(history.operations())
            if operation in whole and history.random.random() < 0.6:
                fuse = Fuse(history.random.randrange(1, 6), after=history.random.random() < 0.5)
                ladder.calls.after, ladder.calls.before = (fuse, None) if fuse.after else (None, fuse)
            try:
                history.attempt(operation)
            except Killed:
                died += 1
            ladder.calls.before = ladder.calls.after = None
            if number % 60 == 59:
                ladder.rate()
                compare(history, ladder)
    assert died > 10
