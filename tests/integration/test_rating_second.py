"""Random histories with crashes in them, against a second calculation that shares no code with the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.ledger.order import to_datetime
from shared.store import rated as store
from shared.usecases import games, rating, reading
from shared.usecases.drafts import GameDraft
from site_builder import publisher
from tests.integration.histories import History
from tests.integration.ladder import HOUR, MINUTE, SECOND, Ladder, at, iso_of, small_steps
from tests.integration.memory import Killed, MemoryBucket
from tests.integration.second_fold import SecondFold, Told
from tests.integration.test_crash_rating import Fuse
from tests.integration.test_publisher_random import with_site


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


def test_until_new_rules_are_applied_everything_is_told_by_the_old_ones() -> None:
    """A game without an outcome, as a whole side quit: under new rules one of the two was back in time."""
    ladder = Ladder.in_memory()
    old = [{"from": "2026-01-01", "grace_minutes": 3, "quit_ban_minutes": 0}]
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool(rules=old)
    ladder.register(*"abcd")
    end = at("2026-08-10 20:00")
    result = {"teams": [["a", "c"], ["b", "d"]], "outcome": None, "quits": []}
    for player, back in (("a", None), ("c", 5)):
        quit_ = {"player": player, "at": iso_of(end - 20 * MINUTE)}
        result["quits"].append({**quit_, "back_at": iso_of(end - 15 * MINUTE)} if back else quit_)  # type: ignore[attr-defined]
    ladder.submit(GameDraft(game_id="g", started_at=end - HOUR, finished_at=end, result=result))
    ladder.rate()
    bucket = MemoryBucket(ladder.calls)
    with_site(ladder, bucket)
    publisher.publish(ladder.ctx, "p")

    def seen() -> list[Any]:
        pool = ladder.pool()
        found: list[Any] = [reading.player_in_pool(ladder.ctx, pool, who, None) for who in "abcd"]
        for body in found:
            body["place"] = None
        return [*found, games.read(ladder.ctx, pool, ("bern", "g"))]

    told, page = seen(), bucket.objects["p/games/bern/g/index.html"]
    for grace in (8, 6, 8):
        ladder.now += SECOND
        ladder.open_pool(rules=[{**old[0], "grace_minutes": grace}])
        assert seen() == told
        publisher.publish(ladder.ctx, "p")
        assert bucket.objects["p/games/bern/g/index.html"] == page
    ladder.rate()
    after = games.read(ladder.ctx, ladder.pool(), ("bern", "g"))
    assert (after["status"], after["held_reason"]) == ("held", "outcome-missing")
    assert [c["player"] for c in after["changes"]] == ["a"]
    publisher.publish(ladder.ctx, "p")
    assert bucket.objects["p/games/bern/g/index.html"] != page


@dataclass
class Previewing(Ladder):
    """A ladder on which everything is previewed, done on the word of the preview, and compared with it."""

    compared: int = 0

    def _state(self) -> tuple[dict[str, Any], dict[tuple[str, str], list[str]]]:
        """Handle → what a list shows of him; game → its rated rows."""
        pool, view = self.pool(), self.cursor().view
        shown = {
            handle: pool.system.present(*numbers) for handle, numbers in self.ratings().items()
        }  # fmt: skip
        rows: dict[tuple[str, str], list[str]] = {}
        for month in store.read_index(self.ctx.table, "p").months:
            for _, text in store.read_month(self.ctx.table, "p", month, view):
                if (game := store.load_rated(text).game) is not None:
                    rows.setdefault((game.club, game.game_id), []).append(text)
        return shown, rows

    def _previewed(self, act: Any) -> Any:
        self.rate()
        told = act(preview=True)
        if "preview_token" not in told.body:
            return told  # nothing would change: it is the answer
        before, rows_before = self._state()
        answer = act(preview_token=told.body["preview_token"])
        self.rate()
        after, rows_after = self._state()
        changed = {who for who in {*before, *after} if before.get(who) != after.get(who)}
        effects = told.body["effects"]
        assert {r["player"] for r in effects["players"] if r["before"] != r["after"]} == changed
        for row in effects["players"]:
            assert (row["before"], row["after"]) == (before.get(row["player"]), after.get(row["player"]))
        anew = [game for game, rows in rows_before.items() if rows != rows_after.get(game)]
        assert effects["games_rerated"] == len(anew)
        self.compared += 1
        return answer

    def submit(self, draft: GameDraft, pool: str = "p", club: str = "bern", **more: Any) -> Any:
        self.now += SECOND
        given = {"idempotency_key": None, "body_digest": repr(draft)}
        return self._previewed(lambda **how: games.submit(self.ctx, self.pool(), club, draft, **given, **how))

    def correct(self, game_id: str, pool: str = "p", club: str = "bern", **changes: Any) -> Any:
        self.now += SECOND
        revision = games.load(self.ctx, self.pool(), (club, game_id)).game.revision
        draft = GameDraft(game_id=game_id, given=frozenset(changes), **changes)
        how_ever = {"reason": "wrong", "if_match": revision}
        return self._previewed(
            lambda **how: games.correct(self.ctx, self.pool(), club, (club, game_id), draft, **how_ever, **how)
        )

    def void(self, game_id: str, pool: str = "p", club: str = "bern") -> Any:
        self.now += SECOND
        return self._previewed(
            lambda **how: games.void(self.ctx, self.pool(), club, (club, game_id), reason="not played", **how)
        )


@pytest.mark.parametrize("most", [rating.LONG_REPLAY, -1], ids=["from-a-checkpoint", "from-the-ledger"])
@pytest.mark.parametrize("rules", ["spades", "bridier", "jass"])
def test_every_preview_is_what_then_happens(rules: str, most: int) -> None:
    ladder = Previewing.in_memory()
    assert isinstance(ladder, Previewing)
    history = History(ladder, rules, 77)
    with small_steps(IN_PLACE=30, LONG_REPLAY=most):
        history.open()
        for _ in range(150):
            history.step()
    assert ladder.compared > 40
