"""What rating asks of the table: in proportion to the games, and no one key for each of them."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import msgspec
import pytest

from shared.store import keys
from shared.store import rated as store
from shared.store.table import Table
from shared.usecases import rating
from tests.bench.units import Meter, MeteredTable
from tests.integration.ladder import MINUTE, Ladder, at, audit, spades

PLAYERS = 120


def rated(ladder: Ladder) -> Meter:
    """What one run of the rater asks."""
    table = MeteredTable(ladder.ctx.table.client)
    before, ladder.ctx = ladder.ctx, replace(ladder.ctx, table=Table(table, "memory"))  # type: ignore[arg-type]
    ladder.rate()
    ladder.ctx = before
    return table.meter


def play(ladder: Ladder, game_id: str, *seats: int) -> None:
    """A game of the players with these numbers, a minute after the last one."""
    ladder.now += MINUTE
    one, two, three, four = (f"p{seat % PLAYERS:03d}" for seat in seats)
    result = {"teams": [[one, two], [three, four]], "outcome": "team1"}
    ladder.submit(replace(spades(game_id, "-", ladder.now), result=result))


def ladder_of(games: int) -> Ladder:
    """A pool with so many games that wait, everybody at the tables in turn."""
    ladder = Ladder.in_memory()
    ladder.open_pool()
    ladder.register(*(f"p{number:03d}" for number in range(PLAYERS)))
    ladder.rate()
    for number in range(games):
        play(ladder, f"g{number:03d}", *range(4 * number, 4 * number + 4))
    return ladder


def test_many_games_read_all_merges_at_once_and_follow_them() -> None:
    ladder = ladder_of(30)
    ladder.merge("p000", "p001")
    ladder.merge("p001", "p002")
    ladder.rate()
    play(ladder, "merged", 0, 3, 4, 5)
    for number in range(30):
        play(ladder, f"h{number:03d}", *range(4 * number + 3, 4 * number + 7))
    meter = rated(ladder)
    assert PLAYERS - 1 > rating.SINGLE_ALIASES
    assert meter.reads[keys.aliases("p")] == 1
    audit(ladder)


def test_few_games_look_for_their_players_only() -> None:
    meter = rated(ladder_of(2))
    assert meter.reads[keys.aliases("p")] == 8


def test_the_index_is_written_for_a_new_month_only() -> None:
    ladder = ladder_of(1)
    first = rated(ladder)
    play(ladder, "again", 0, 1, 2, 3)
    second = rated(ladder)
    index = 2  # units of its item in a transaction, while it is short
    assert second.written["POOL#p"] == first.written["POOL#p"] - index
    ladder.now = at("2026-12-02 12:00")
    ladder.rate()
    play(ladder, "december", 0, 1, 2, 3)
    assert rated(ladder).written["POOL#p"] == first.written["POOL#p"]
    assert store.read_index(ladder.ctx.table, "p").months == ("2026-11", "2026-12")
    audit(ladder)


@pytest.mark.parametrize(
    ("limits", "whole"), [({"OUTBOX_NAMES": 5}, False), ({"OUTBOX_NAMES": 4}, True), ({"OUTBOX_BYTES": 60}, True)]
)
def test_the_publisher_is_told_who_changed_unless_they_are_very_many(limits: dict[str, int], whole: bool) -> None:
    ladder = ladder_of(1)
    with mock.patch.multiple(rating, **limits):
        ladder.rate()
    (entry,) = [
        msgspec.json.decode(item["body"]) for (pk, _), item in ladder.items().items() if pk == keys.outbox("p")
    ][-1:]
    assert entry.get("all", False) is whole
    assert entry.get("players", []) == ([] if whole else [f"sid-p{seat:03d}" for seat in range(4)])
    assert entry.get("games", []) == ([] if whole else [["bern", "g000"]])
