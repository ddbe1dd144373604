"""Months close by the calendar alone; a month's list is frozen as it was known then, and never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from functions.closing import app as closing_function
from shared.ledger import calendar
from shared.ratings.base import PlayerState
from shared.store import rated as store
from shared.usecases import closing, rating
from tests.integration.histories import History
from tests.integration.ladder import DAY, HOUR, SECOND, Ladder, at, audit, duel, small_steps

ZONE = "Europe/Zurich"


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_steps():
        yield


@pytest.fixture
def ladder() -> Ladder:
    """A Bridier pool, opened in May 2026."""
    made = Ladder.in_memory()
    made.now = at("2026-05-20 12:00")
    made.open_pool(system="bridier", rules=[{"from": "2025-01-01"}])
    made.register("a", "b", "c", "d")
    made.submit(duel("old", "a", "b", "2026-01-15 20:00"))
    made.rate()
    return made


def ratings(states: dict[str, PlayerState] | None) -> dict[str, tuple[int, int]] | None:
    if states is None:
        return None
    return {sid.removeprefix("sid-"): (s.rating, s.index) for sid, s in states.items()}


def frozen(ladder: Ladder, month: str) -> dict[str, tuple[int, int]] | None:
    return ratings(closing.frozen_states(ladder.ctx, "p", month))


# -- closings --------------------------------------------------------------------------------------------------------
def test_whoever_applies_anything_applies_what_is_due(ladder: Ladder) -> None:
    assert ladder.cursor().closed_until == calendar.closing_instant(2026, 5, ZONE)
    assert ladder.ratings()["a"] == (510, 490), "from 490 no floor of 300 raises it"
    ladder.now = at("2026-07-02 12:00")
    ladder.submit(duel("new", "c", "d", "2026-07-01 20:00"))
    ladder.rate()
    audit(ladder)
    assert ladder.cursor().closed_until == calendar.closing_instant(2026, 7, ZONE)
    assert ladder.ratings()["a"] == (510, 490), "five and a half months: at least 400"
    ladder.now = at("2026-08-02 12:00")
    ladder.rate()
    audit(ladder)
    assert ladder.ratings()["a"] == (510, 500), "six"


@pytest.mark.parametrize(
    "calls",
    [
        ["2026-06-01", "2026-07-01", "2026-08-01", "2026-09-02"],
        ["2026-06-01", "2026-06-01", "2026-06-02", "2026-07-05", "2026-09-01", "2026-09-02"],
        ["2026-09-02"],
        [],
    ],
    ids=["on time", "twice and late", "once", "never"],
)
def test_twice_late_or_missed_the_same_ratings_and_lists(ladder: Ladder, calls: list[str]) -> None:
    for call in calls:
        ladder.now = at(call) + HOUR
        closing.close(ladder.ctx, "p")
        audit(ladder)
    ladder.now = at("2026-09-03 12:00")
    ladder.submit(duel("new", "c", "d", "2026-09-02 20:00"))
    ladder.rate()
    audit(ladder)
    closing.close(ladder.ctx, "p")
    assert frozen(ladder, "2026-05") == {"a": (510, 490), "b": (490, 490)}
    assert frozen(ladder, "2026-06") == {"a": (510, 490), "b": (490, 490)}
    assert frozen(ladder, "2026-07") == frozen(ladder, "2026-08") == {"a": (510, 500), "b": (490, 500)}
    assert frozen(ladder, "2026-04") is None, "before the pool was opened: reconstructed"


def test_each_pool_in_its_own_time_zone(ladder: Ladder) -> None:
    ladder.open_pool("east", "bridier", [{"from": "2025-01-01"}], time_zone="Pacific/Kiritimati")
    ladder.open_pool("west", "bridier", [{"from": "2025-01-01"}], time_zone="America/Los_Angeles")
    ladder.open_pool("empty", "bridier", [{"from": "2025-01-01"}])
    for pool in ("east", "west"):
        ladder.submit(duel("g", "c", "d", "2026-05-20 10:00"), pool)
        ladder.rate(pool)
    seen: dict[str, dict[str, list[str]]] = {}
    times = ["2026-05-31T10:05Z", "2026-05-31T22:05Z", "2026-06-01T07:05Z", "2026-06-01T08:05Z"]
    with (
        mock.patch.object(closing_function, "context", return_value=ladder.ctx),
        mock.patch.dict("os.environ", POWERTOOLS_METRICS_DISABLED="true"),
    ):
        for time in times:
            ladder.now = at(time.replace("Z", "+00:00"))
            seen[time] = closing_function.handler({"at": time}, mock.Mock(function_name="closing"))["frozen"]
    assert seen == {
        times[0]: {"east": ["2026-05"]},
        times[1]: {"p": ["2026-05"], "empty": ["2026-05"]},
        times[2]: {"west": ["2026-05"]},
        times[3]: {},
    }
    assert closing.frozen_states(ladder.ctx, "empty", "2026-05") == {}


def test_a_month_is_frozen_only_when_what_was_accepted_in_it_is_stored(ladder: Ladder) -> None:
    first = calendar.closing_instant(2026, 6, ZONE)
    ladder.now = first + 59 * SECOND
    assert closing.close(ladder.ctx, "p") == []
    assert closing.close(ladder.ctx, "p", first) == []
    ladder.now = first + 61 * SECOND
    assert closing.close(ladder.ctx, "p") == ["2026-05"]
    assert closing.close(ladder.ctx, "p") == []
    second = calendar.closing_instant(2026, 7, ZONE)
    assert closing.close(ladder.ctx, "p", second - 1) == []
    assert closing.close(ladder.ctx, "p", second) == ["2026-06"], "fired by hand, ahead of the clock"


# -- frozen lists ----------------------------------------------------------------------------------------------------
def test_a_frozen_list_holds_what_was_accepted_before_the_closing_and_never_changes(ladder: Ladder) -> None:
    first = calendar.closing_instant(2026, 6, ZONE)
    ladder.now = first - 3 * SECOND
    ladder.submit(duel("in-time", "c", "d", "2026-05-31 20:00"))
    ladder.submit(duel("too-late", "a", "c", "2026-05-31 19:00"))
    assert ladder.now == first - SECOND
    ladder.submit(duel("next", "a", "d", "2026-05-31 18:00"))  # accepted at the closing's instant: not before it
    assert ladder.now == first
    ladder.now = first + HOUR
    closing.close(ladder.ctx, "p")
    was = frozen(ladder, "2026-05")
    body = ladder.ctx.data.get(closing.frozen_key("p", "2026-05"))
    assert was is not None
    assert was["c"] != ladder.ratings()["c"], "what came at the instant is in the ratings, not in the list"
    assert was == {"a": (518, 482), "b": (490, 490), "c": (500, 482), "d": (490, 490)}
    for change in (
        lambda: ladder.submit(duel("more", "b", "d", "2026-05-30 20:00")),
        lambda: ladder.void("old"),
        lambda: ladder.correct("in-time", result={"players": ["c", "d"], "winner": "d"}),
        lambda: ladder.merge("d", "b"),
        lambda: ladder.open_pool(system="bridier", rules=[{"from": "2025-01-01", "basis": "end"}]),
    ):
        ladder.now += DAY
        change()
        ladder.rate()
        audit(ladder)
        closing.close(ladder.ctx, "p")
        assert ladder.ctx.data.get(closing.frozen_key("p", "2026-05")) == body


def test_a_list_that_is_frozen_months_late_is_the_same(ladder: Ladder) -> None:
    """... though corrections, merges and new rules came in between: the ledger knows what was known then."""
    histories = []
    for late in (False, True):
        made = Ladder.in_memory()
        history = History(made, "bridier", 3, starts=False)  # whether one is taken hangs on what is rated by then
        history.open()
        for number in range(140):
            history.step()
            if number % 10 == 0:
                made.now += 9 * DAY
            if not late and number % 3 == 0:
                closing.close(made.ctx, "p")
        made.now += 40 * DAY
        closing.close(made.ctx, "p")
        audit(made)
        months = [f"2026-{m:02d}" for m in range(8, 13)] + ["2027-01"]
        histories.append({m: closing.frozen_states(made.ctx, "p", m) for m in months})
    assert histories[0] == histories[1]
    assert sum(bool(states) for states in histories[0].values()) >= 3
    assert len({str(states) for states in histories[0].values()}) >= 3, "they differ from month to month"


def test_a_lost_checkpoint_costs_time_and_nothing_else(ladder: Ladder) -> None:
    for number in range(12):
        ladder.submit(duel(f"g{number}", "a", "b", at("2026-02-01 12:00") + number * 8 * DAY))
    ladder.rate()
    marks = store.read_index(ladder.ctx.table, "p").checkpoints
    assert len(marks) >= 3
    ladder.ctx.data.delete([mark.key for mark in marks[1:]])
    ladder.submit(duel("late", "c", "d", "2026-04-10 20:00"))
    applied = ladder.rate()
    assert applied.replays == 1
    audit(ladder)


def test_reconstructed_lists_follow_the_ledger(ladder: Ladder) -> None:
    for number in range(12):
        ladder.submit(duel(f"g{number}", "a", "b", at("2026-02-01 12:00") + number * 8 * DAY))
    ladder.rate()

    def lists(since: int) -> list[tuple[str, dict[str, tuple[int, int]] | None]]:
        found = rating.closings_since(ladder.ctx, ladder.pool(), since)
        return [(calendar.closed_month(c.day), ratings(dict(c.states))) for c in found]

    every = lists(0)
    assert [month for month, _ in every] == ["2026-01", "2026-02", "2026-03", "2026-04"]
    expected = audit(ladder)
    assert [states for _, states in every] == [ratings(s) for s in expected.closings.values()]
    march = calendar.closing_instant(2026, 4, ZONE)
    assert lists(march) == every[2:]
    assert lists(march + 1) == every[3:]
    assert not closing.is_frozen(ladder.pool(), march)
    assert closing.is_frozen(ladder.pool(), calendar.closing_instant(2026, 6, ZONE))
    ladder.void("g0")
    ladder.rate()
    assert lists(0)[1:] != every[1:]


def test_the_closing_of_a_month() -> None:
    assert closing.closing_of("2026-12", ZONE) == at("2027-01-01T00:00+01:00")


def test_one_pool_that_cannot_be_closed_does_not_stop_the_others(ladder: Ladder) -> None:
    ladder.open_pool("q", "bridier", [{"from": "2025-01-01"}])
    failures: list[str] = []
    real_close = closing.close

    def close(ctx: Any, pool: str, now: int) -> list[str]:
        if pool == "p":
            raise ZeroDivisionError
        return real_close(ctx, pool, now)

    ladder.now = at("2026-06-02 12:00")
    ctx = replace(ladder.ctx, report_failure=lambda pool, _: failures.append(pool))
    with (
        mock.patch.object(closing_function, "context", return_value=ctx),
        mock.patch.object(closing_function.closing, "close", close),
        mock.patch.dict("os.environ", POWERTOOLS_METRICS_DISABLED="true"),
    ):
        answer = closing_function.handler({}, mock.Mock(function_name="closing"))
    assert failures == ["p"]
    assert answer["frozen"] == {"q": ["2026-05"]}
