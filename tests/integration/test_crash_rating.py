"""The process dies at a write: before it, or after it and before anybody hears of it. Every write of every run in turn.

The next wake-up gives what a run without a crash gives, and whoever reads in between sees the old ratings whole, or the
new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from shared.problems import Problem
from shared.store import notes
from shared.store import rated as store
from shared.store.table import Put
from shared.usecases import closing, compact, games, reading, rebuild
from shared.usecases.generation import progress_key
from tests.integration.ladder import DAY, Ladder, at, audit, duel, small_steps, spades
from tests.integration.memory import READS, WRITES, Calls, Killed


@dataclass
class Fuse:
    """Kills the process at its n-th write."""

    number: int
    after: bool
    seen: int = 0
    calls: Calls | None = None
    """Of a process in which nothing is written any more, by whatever cleans up behind it."""

    def __call__(self, name: str, _: Mapping[str, Any]) -> None:
        if name in WRITES:
            self.seen += 1
            if self.seen == self.number:
                if self.calls is not None:
                    self.calls.before = _dead
                raise Killed(name)


def _dead(name: str, _: Mapping[str, Any]) -> None:
    if name in WRITES:
        raise Killed(name)


def crashes(prepare: Callable[[], Ladder], act: Callable[[Ladder], object]) -> Iterator[tuple[Ladder, str]]:
    """A ladder for every write at which ``act`` can die, dead at that write."""
    for after in (False, True):
        for number in range(1, 200):
            ladder = prepare()
            fuse = Fuse(number, after, calls=ladder.calls)
            if after:
                ladder.calls.after = fuse
            else:
                ladder.calls.before = fuse
            try:
                act(ladder)
            except Killed:
                ladder.calls.before = ladder.calls.after = None
                yield ladder, f"{'after' if after else 'before'} write {number}"
            else:
                assert number > 1, "it writes"
                break
        else:
            pytest.fail("it never ends")


# -- scenes ----------------------------------------------------------------------------------------------------------
def summer() -> Ladder:
    """Some weeks of Spades, a month closed."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool(rules=[{"from": "2000-01-01", "quit_ban_minutes": 0}])
    ladder.register(*"abcdefgh")
    for number, (teams, when) in enumerate(
        [
            ("ac-bd", "2026-06-10 20:00"),
            ("ab-ce", "2026-06-28 20:00"),
            ("ef-gh", "2026-07-03 20:00"),
            ("ae-cg", "2026-07-10 20:00"),
            ("bd-fh", "2026-07-20 20:00"),
            ("ac-eh", "2026-08-02 20:00"),
            ("cb-gf", "2026-08-12 20:00"),
        ]
    ):
        ladder.submit(spades(f"g{number}", teams, when, minutes=40, group="di"))
        ladder.rate()
    return ladder


def appending() -> Ladder:
    ladder = summer()
    for number in range(9):
        ladder.submit(spades(f"n{number}", "ac-bd", at("2026-08-15 20:00") + number * DAY // 2, minutes=60))
    return ladder


def late() -> Ladder:
    ladder = summer()
    ladder.submit(spades("late", "ab-gh", "2026-08-01 20:00", minutes=30, quits=[("a", 10)]))
    return ladder


def much() -> Ladder:
    """A late result, a correction, a void and a merge at once."""
    ladder = summer()
    ladder.submit(spades("late", "ab-gh", "2026-06-05 20:00", minutes=30, tournament="cup"))
    ladder.correct("g2", result={"teams": [["e", "f"], ["g", "h"]], "outcome": "team2"})
    ladder.void("g3")
    ladder.merge("h", "b")
    return ladder


def new_rules() -> Ladder:
    ladder = summer()
    ladder.open_pool(rules=[{"from": "2000-01-01"}, {"from": "2026-07-01", "k": 40}])
    return ladder


def month_turned() -> Ladder:
    ladder = Ladder.in_memory()
    ladder.now = at("2026-07-20 12:00")
    ladder.open_pool(system="bridier")
    ladder.register(*"abcd")
    ladder.start("d", {"rank": 640, "index": 100, "last_result_on": "2026-04-10"})
    for number, (pair, when) in enumerate([("ab", "2026-04-10 20:00"), ("ac", "2026-06-12 20:00")]):
        ladder.submit(duel(f"g{number}", *pair, when))
    ladder.rate()
    ladder.now = at("2026-10-02 12:00")
    return ladder


def rebuilding() -> Ladder:
    """Rows were lost, and some are wrong."""
    ladder = summer()
    items = [key for key in ladder.items() if key[0].startswith("RATED#")]
    ladder.ctx.table.batch_write(deletes=items[::2])
    rebuild.request(ladder.ctx, ladder.pool())
    return ladder


SCENES: dict[str, tuple[Callable[[], Ladder], dict[str, int]]] = {
    "append": (appending, {}),
    "replay-in-place": (late, {}),
    "replay-under-a-new-generation": (late, {"IN_PLACE": 5}),
    "much-in-place": (much, {}),
    "much-under-a-new-generation": (much, {"IN_PLACE": 5}),
    "new-rules": (new_rules, {"IN_PLACE": 5}),
    "closing": (month_turned, {}),
    "closing-under-a-new-generation": (month_turned, {"IN_PLACE": 5}),
    "rebuild": (rebuilding, {"IN_PLACE": 5}),
    "rebuild-kept-in-memory": (rebuilding, {"IN_PLACE": 5, "KEPT": 1000}),
    "much-from-the-ledger-under-a-new-generation": (much, {"IN_PLACE": 5, "LONG_REPLAY": -1}),
    "new-rules-from-the-ledger": (new_rules, {"IN_PLACE": 5, "LONG_REPLAY": -1}),
    "late-from-the-ledger-in-place": (late, {"LONG_REPLAY": -1}),
}


def dies_behind(ladder: Ladder, number: int) -> None:
    """The rater dies right behind its n-th write."""
    ladder.calls.after = Fuse(number, after=True)
    with pytest.raises(Killed):
        ladder.rate()
    ladder.calls.after = None


@pytest.mark.parametrize("name", SCENES)
def test_the_next_wake_up_completes_it(name: str) -> None:
    scene, limits = SCENES[name]
    with small_steps(TRANSACTION_ITEMS=30, **limits):
        whole = scene()
        whole.rate()
        audit(whole)
        count = 0
        for ladder, where in crashes(scene, Ladder.rate):
            ladder.rate()
            audit(ladder)
            assert ladder.cursor().hash == whole.cursor().hash, where
            count += 1
        assert count >= 3, "a transaction and the wake-up of the publisher"


@pytest.mark.parametrize("name", ["append", "much-under-a-new-generation", "closing"])
def test_it_dies_again_and_again(name: str) -> None:
    scene, limits = SCENES[name]
    with small_steps(TRANSACTION_ITEMS=30, **limits):
        whole = scene()
        whole.rate()
        ladder = scene()
        for number in [*range(1, 12), *range(12, 1, -1), 10_000]:
            ladder.calls.before, ladder.calls.after = (
                (Fuse(number, False), None) if number % 2 else (None, Fuse(number, True))
            )
            try:
                ladder.rate()
            except Killed:
                continue
        ladder.calls.before = ladder.calls.after = None
        ladder.rate()
        audit(ladder)
        assert ladder.cursor().hash == whole.cursor().hash


# -- readers ---------------------------------------------------------------------------------------------------------
def everything(ladder: Ladder) -> dict[str, Any]:
    """What readers see of a pool: every player with his history, every game."""
    pool = ladder.pool()
    seen: dict[str, Any] = {}
    handles = sorted(
        pk.removeprefix("PLAYER#") for pk, sk in ladder.items() if pk.startswith("PLAYER#") and sk == "META"
    )
    for handle in handles:
        try:
            body = reading.player_in_pool(ladder.ctx, pool, handle, None)
        except Problem:
            continue
        total = sum(line["change"].get("rating", line["change"].get("rank", 0)) for line in body["history"])
        first = body["history"][-1]["before"]
        now = body["rating"]
        key = "rating" if "rating" in now else "rank"
        assert round(first[key] + total, 6) == now[key]
        seen[handle] = body
    for pk, _ in ladder.items():
        if pk.startswith("GAME#p#"):
            club, game = pk.split("#")[2:]
            seen[game] = games.read(ladder.ctx, pool, (club, game))["changes"]
    return seen


@pytest.mark.parametrize("name", [n for n in SCENES if n != "append" and not n.startswith("rebuild")])
def test_readers_see_the_old_ratings_whole_until_the_new_ones_stand(name: str) -> None:
    scene, limits = SCENES[name]
    with small_steps(TRANSACTION_ITEMS=30, **limits):
        whole = scene()
        old = everything(whole)
        whole.rate()
        new = everything(whole)
        ladder = scene()
        seen: list[bool] = []

        def look(call: str, _: Mapping[str, Any]) -> None:
            if call in WRITES:
                ladder.calls.before = ladder.calls.after = None
                now = everything(ladder)
                seen.append(now == new)
                assert now in (old, new)
                ladder.calls.before = ladder.calls.after = look

        ladder.calls.before = ladder.calls.after = look
        ladder.rate()
        assert old != new
        assert not seen[0]
        assert seen[-1]
        assert sorted(seen) == seen, "never back to the old ones"


def test_an_old_cursor_is_told_so() -> None:
    """A reader that holds a view from two replays ago is told to read the cursor again, and never sees a mixture."""
    with small_steps(IN_PLACE=5):
        ladder = summer()
        old = ladder.cursor().view
        for number in range(2):
            ladder.submit(spades(f"late{number}", "ac-bd", at("2026-06-01 20:00") + number * DAY))
            ladder.rate()
        with pytest.raises(store.StaleView):
            store.read_all_states(ladder.ctx.table, "p", old)


@pytest.mark.parametrize("name", [n for n in SCENES if "IN_PLACE" in SCENES[n][1]])
def test_a_run_that_was_taken_for_dead_goes_on_and_does_no_harm(name: str) -> None:
    """It sleeps before one of its writes; another run takes over, is done, and more is rated; then it wakes up."""
    scene, limits = SCENES[name]
    with small_steps(TRANSACTION_ITEMS=12, **limits):
        whole = scene()
        whole.rate()
        for number in range(1, 100):
            ladder = scene()
            writes = 0

            def sleep(call: str, _: Mapping[str, Any], ladder: Ladder = ladder, number: int = number) -> None:
                nonlocal writes
                writes += call in WRITES
                if writes == number:
                    ladder.calls.before = None
                    ladder.rate()

            ladder.calls.before = sleep
            ladder.rate()
            audit(ladder)
            assert ladder.cursor().hash == whole.cursor().hash
            if ladder.calls.before is not None:
                break
        assert 5 < number < 99


# -- what is not the rater -------------------------------------------------------------------------------------------
def test_freezing_dies_and_is_done_again() -> None:
    def act(ladder: Ladder) -> list[str]:
        return closing.close(ladder.ctx, "p")

    with small_steps():
        whole = month_turned()
        act(whole)
        months = ["2026-07", "2026-08", "2026-09"]
        frozen = {m: closing.frozen_states(whole.ctx, "p", m) for m in months}
        assert all(frozen.values())
        for ladder, where in crashes(month_turned, act):
            act(ladder)
            assert {m: closing.frozen_states(ladder.ctx, "p", m) for m in months} == frozen, where
            audit(ladder)
            assert act(ladder) == []


def test_no_checkpoint_is_left_behind_by_a_run_that_was_overtaken() -> None:
    with small_steps():
        ladder = late()
        raced = False

        def overtake(name: str, arguments: Mapping[str, Any]) -> None:
            nonlocal raced
            if not raced and name == "transact_write_items":
                raced = True
                ladder.rate()

        ladder.calls.before = overtake
        ladder.rate()
        ladder.calls.before = None
        audit(ladder)
        named = {mark.key for mark in store.read_index(ladder.ctx.table, "p").checkpoints}
        assert {key for key, _ in objects(ladder) if key.startswith("checkpoints/")} == named


def objects(ladder: Ladder) -> list[tuple[str, bytes]]:
    """What lies in the data bucket."""
    client: Any = ladder.ctx.data.client
    return sorted(client.objects.items())


# -- the journal -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limits", [{}, {"IN_PLACE": 5}], ids=["in-place", "new-generation"])
def test_the_journal_tells_each_replay_once_whatever_died(limits: dict[str, int]) -> None:
    def journal(ladder: Ladder) -> list[tuple[Any, ...]]:
        view = ladder.cursor().view
        found = [(sid, notes.read_journal(ladder.ctx.table, "p", f"sid-{sid}", view)) for sid in "abcdefgh"]
        return [(sid, e.causes, e.before, e.after, e.games) for sid, entries in found for e in entries]

    with small_steps(TRANSACTION_ITEMS=30, **limits):
        whole = late()
        quiet = journal(whole)
        whole.rate()
        told = journal(whole)
        assert len(told) > len(quiet)
        for ladder, where in crashes(late, Ladder.rate):
            assert journal(ladder) in (quiet, told), where
            ladder.submit(
                spades("another", "ef-ab", "2026-08-19 20:00")
            )  # the next run has more to do than the dead one
            ladder.rate()
            assert [(sid, games) for sid, *_, games in journal(ladder)] == [(sid, games) for sid, *_, games in told], (
                where
            )


@pytest.mark.parametrize("limits", [{}, {"IN_PLACE": 5}], ids=["in-place", "new-generation"])
@pytest.mark.parametrize("scene", [appending, late, month_turned], ids=lambda scene: scene.__name__)
def test_a_reader_between_whose_reads_things_are_rated_sees_one_state(
    scene: Callable[[], Ladder], limits: dict[str, int]
) -> None:
    with small_steps(**limits):
        whole = scene()
        old = everything(whole)
        whole.rate()
        new = everything(whole)
        who = "d" if scene is month_turned else "a"
        assert old[who] != new[who]
        for number in range(1, 40):
            ladder = scene()
            reads = 0

            def rate(name: str, _: Mapping[str, Any], ladder: Ladder = ladder, number: int = number) -> None:
                nonlocal reads
                reads += 1
                if reads == number:
                    ladder.calls.before = None
                    ladder.rate()

            ladder.calls.before = rate
            body = reading.player_in_pool(ladder.ctx, ladder.pool(), who, None)
            assert body in (old[who], new[who]), number
            if ladder.calls.before is not None:
                break
        else:
            pytest.fail("it never ends")
        assert number > 5


# -- a long replay that dies is gone on with ---------------------------------------------------------------------------
def _rows_written(ladder: Ladder) -> list[tuple[str, str]]:
    written: list[tuple[str, str]] = []

    def note(name: str, call: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            puts = [entry["Put"]["Item"] for entry in call["TransactItems"] if "Put" in entry]
            written.extend((item["pk"]["S"], item["sk"]["S"]) for item in puts if "bg" in item)

    ladder.calls.before = note
    return written


@pytest.mark.parametrize("more", ["nothing", "a result", "a late result", "a month's end"])
def test_what_a_dead_replay_wrote_is_not_written_again(more: str) -> None:
    with small_steps(TRANSACTION_ITEMS=6, IN_PLACE=5):
        whole = new_rules()
        every = _rows_written(whole)
        whole.rate()
        ladder = new_rules()
        first = _rows_written(ladder)
        dies_behind(ladder, 5)
        claimed = ladder.cursor().claimed
        if more == "a result":
            ladder.submit(spades("new", "ab-cd", "2026-08-19 20:00"))
        elif more == "a late result":
            ladder.submit(spades("new", "ab-cd", "2026-06-01 20:00"))
        elif more == "a month's end":
            ladder.now = at("2026-09-02 12:00")
        second = _rows_written(ladder)
        ladder.rate()
        audit(ladder)
        assert 0 < len(first) < len(every)
        left = [row for row in every if row not in first]
        assert second[: len(left)] == left, "first what was left, and nothing of what was there"
        if more == "nothing":
            assert second == left
            assert ladder.cursor().generation == claimed
            assert ladder.cursor().hash == whole.cursor().hash


def test_what_a_dead_replay_wrote_by_rules_that_changed_again_is_given_up() -> None:
    with small_steps(TRANSACTION_ITEMS=6, IN_PLACE=5):
        ladder = new_rules()
        dies_behind(ladder, 5)
        claimed = ladder.cursor().claimed
        ladder.open_pool(rules=[{"from": "2000-01-01"}, {"from": "2026-07-01", "k": 50}])
        ladder.rate()
        audit(ladder)
        assert ladder.cursor().generation > claimed


# -- several transactions at a time ------------------------------------------------------------------------------------
def threaded(scene: Callable[[], Ladder]) -> Callable[[], Ladder]:
    """The same with four transactions at a time."""

    def prepare() -> Ladder:
        ladder = scene()
        ladder.ctx = replace(ladder.ctx, writes_at_once=4)
        return ladder

    return prepare


@pytest.mark.parametrize("name", ["rebuild", "new-rules", "much-under-a-new-generation"])
def test_it_dies_while_it_writes_several_transactions_at_a_time(name: str) -> None:
    scene, limits = SCENES[name]
    with small_steps(TRANSACTION_ITEMS=4, **limits):
        whole = scene()
        whole.rate()
        count = 0
        for ladder, where in crashes(threaded(scene), Ladder.rate):
            ladder.rate()
            audit(ladder)
            assert ladder.cursor().hash == whole.cursor().hash, where
            count += 1
        assert count > 8


Sent = tuple[str, Mapping[str, Any]]


def _on_their_way(scene: Callable[[], Ladder]) -> Iterator[tuple[Ladder, Sent]]:
    """A ladder for every call of a replay that writes items: it is sent, and arrives only when somebody lets it; the
    run that sent it is gone."""
    for number in range(1, 100):
        ladder = scene()
        sent: list[Sent] = []

        def lose(
            name: str, call: Mapping[str, Any], ladder: Ladder = ladder, sent: Any = sent, at: int = number
        ) -> None:
            if name in ("transact_write_items", "put_item", "batch_write_item"):
                sent.append((name, call))
                if len(sent) == at:
                    ladder.calls.before = _dead
                    raise Killed(name)

        ladder.calls.before = lose
        try:
            ladder.rate()
        except Killed:
            ladder.calls.before = None
            yield ladder, sent[-1]
        else:
            return
    pytest.fail("it never ends")


def _arrives(ladder: Ladder, sent: Sent) -> bool:
    """The call arrives; whether it was taken."""
    name, call = sent
    try:
        getattr(ladder.ctx.table.client, name)(**call)
    except ClientError:
        return False
    return True


def _each_row(sent: Sent) -> Iterator[Sent]:
    """A transaction of rated rows as one for each: another condition may not be what keeps a row from being written."""
    name, call = sent
    entries = call.get("TransactItems", [])
    if entries and all(
        e.get("Put", {}).get("Item", {}).get("pk", {}).get("S", "").startswith("RATED#") for e in entries
    ):
        for entry in entries:
            yield name, {**call, "TransactItems": [entry]}
    else:
        yield sent


def _goes_on(ladder: Ladder) -> None:
    ladder.rate()


def _other_rules(ladder: Ladder) -> None:
    """The plan becomes another: what was begun is given up."""
    ladder.open_pool(rules=[{"from": "2000-01-01"}, {"from": "2026-07-01", "k": 50}])
    ladder.rate()


def _and_more(ladder: Ladder) -> None:
    """It is brought to its end, and then rows are changed and taken away in place."""
    ladder.rate()
    with small_steps(IN_PLACE=100):
        ladder.void("g5")
        ladder.rate()
        ladder.correct("g6", group="mi")
        ladder.rate()
        for number in range(2):
            ladder.submit(spades(f"x{number}", "ab-cd", "2026-08-19 20:00"))
            ladder.rate()


def _other_rules_in_place(ladder: Ladder) -> None:
    """It is given up, and the rows are changed under the generation that counts all the time."""
    with small_steps(IN_PLACE=1000):
        _other_rules(ladder)


def _other_rules_and_more(ladder: Ladder) -> None:
    _other_rules(ladder)
    _and_more(ladder)


@pytest.mark.parametrize("then", [_goes_on, _other_rules, _and_more, _other_rules_in_place, _other_rules_and_more])
@pytest.mark.parametrize("name", ["rebuild", "new-rules", "much-under-a-new-generation"])
def test_what_a_dead_run_sent_and_arrives_late_changes_nothing(name: str, then: Callable[[Ladder], None]) -> None:
    """Whatever has happened since: the generation is finished by another run, given up, or long past."""
    scene, limits = SCENES[name]
    taken = refused = 0
    with small_steps(TRANSACTION_ITEMS=4, **limits):
        for ladder, late_call in _on_their_way(scene):
            then(ladder)
            audit(ladder)
            seen = everything(ladder)
            for one in _each_row(late_call):
                if _arrives(ladder, one):
                    taken += 1
                else:
                    refused += 1
            audit(ladder)
            assert everything(ladder) == seen
            ladder.submit(spades("after", "ab-cd", "2026-08-20 10:00"))
            ladder.rate()
            ladder.void("g0")
            ladder.rate()
            audit(ladder)
    assert refused > 2
    if then is _goes_on:
        assert taken > 0, "rows that stand as they would be written"


def test_a_row_that_was_taken_away_is_not_brought_back_by_a_late_write() -> None:
    """The replay adds a row; another run finishes it; the game is voided; then the first run's write arrives."""
    with small_steps(TRANSACTION_ITEMS=4, IN_PLACE=5):
        for ladder, late_call in _on_their_way(late):
            adding = [e for e in late_call[1].get("TransactItems", ()) if _adds(e, "!late!")]
            ladder.rate()
            with small_steps(IN_PLACE=100):
                ladder.void("late")
                ladder.rate()
            audit(ladder)
            if adding:
                assert not _arrives(ladder, (late_call[0], {**late_call[1], "TransactItems": adding}))
                audit(ladder)
                return
    pytest.fail("no transaction writes the late game's row")


def _adds(entry: Mapping[str, Any], part: str) -> bool:
    item = entry.get("Put", {}).get("Item", {})
    return bool(item) and item["pk"]["S"].startswith("RATED#") and part in item["sk"]["S"] and "a" not in item


def test_a_rebuild_that_is_interrupted_writes_no_row_twice() -> None:
    with small_steps(TRANSACTION_ITEMS=4, IN_PLACE=5):
        whole = rebuilding()
        every = _rows_written(whole)
        whole.rate()
        for number in range(3, 8):
            ladder = rebuilding()
            first = _rows_written(ladder)
            ladder.calls.after = Fuse(number, after=True)
            with pytest.raises(Killed):
                ladder.rate()
            ladder.calls.after = None
            second = _rows_written(ladder)
            ladder.rate()
            audit(ladder)
            assert ladder.cursor().hash == whole.cursor().hash
            assert sorted(first + second) == sorted(every)


def test_a_run_that_planned_while_the_other_came_back_to_life_leaves_it_alone() -> None:
    """It was taken for dead; while the second run folds, it writes again. Then the second must not take over."""
    with small_steps(TRANSACTION_ITEMS=4, IN_PLACE=5):
        ladder = new_rules()
        dies_behind(ladder, 4)
        at_first = ladder.cursor().version
        beaten = 0

        def beat(name: str, call: Mapping[str, Any]) -> None:
            """The first run goes on, as the second is about to claim."""
            nonlocal beaten
            if name == "transact_write_items" and beaten < 2:
                beaten += 1
                ladder.calls.before = None
                item = ladder.ctx.table.get(*progress_key("p"))
                assert item is not None
                ladder.ctx.table.write(Put({**item, "beat": item["beat"] + 1}))
                assert ladder.cursor().version == at_first, "not taken over"
                ladder.calls.before = beat

        ladder.calls.before = beat
        ladder.rate()
        assert beaten == 2
        audit(ladder)


def test_a_result_that_comes_in_at_any_read_of_a_rebuild_is_rated_once() -> None:
    """It is in the ledger and waits: the rebuild leaves it to the run after it."""
    with small_steps(IN_PLACE=5):
        for number in range(1, 200):
            ladder = rebuilding()
            compact.compact(ladder.ctx, ladder.pool())
            reads = 0

            def send(name: str, _: Mapping[str, Any], ladder: Ladder = ladder, number: int = number) -> None:
                nonlocal reads
                reads += name in READS or name == "get_object"
                if reads == number:
                    ladder.calls.before = None
                    ladder.submit(spades("meanwhile", "ab-gh", "2026-08-19 21:00"))

            ladder.calls.before = send
            ladder.rate()
            if ladder.calls.before is not None:
                break
            ladder.rate()
            audit(ladder)
        assert 20 < number < 199
