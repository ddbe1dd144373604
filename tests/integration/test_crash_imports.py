"""The importer dies at a write, every one in turn; the message comes back, and each row of the file is stored once."""

from __future__ import annotations

import pytest

from functions.importer import app as importer
from shared.store import imports
from shared.usecases import import_jobs, importing
from tests.integration.ladder import Ladder, at, audit
from tests.integration.test_crash_rating import crashes

GAMES = 60
"""More than a transaction holds."""
HEADER = "date,time,team1_player1,team1_player2,team2_player1,team2_player2,winner"
ROWS = [f"2026-08-{1 + n % 28:02d},{n // 28 + 10}:00,a,b,c,{'d' if n % 3 else 'neu'},{1 + n % 2}" for n in range(GAMES)]
FILE = "\r\n".join([HEADER, *ROWS, ""]).encode()


def uploaded(mode: importing.Mode = "strict") -> tuple[Ladder, str]:
    """An announced upload that has arrived; one of its players is to be registered."""
    ladder = Ladder.in_memory()
    ladder.now = at("2026-09-20 12:00")
    pool = ladder.open_pool(rules=[{"from": "2026-01-01"}])
    ladder.register(*"abcd")
    options = importing.Options(mode=mode, filename="season.csv", answers={"player:neu": "+neu"})
    job = import_jobs._new_job(ladder.ctx, pool, "bern", options)
    ladder.ctx.table.write(imports.create(job))
    ladder.ctx.data.put(job.upload_key, FILE, "application/octet-stream")
    return ladder, job.id


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_an_import_that_died_is_gone_on_with_and_stores_each_row_once(mode: importing.Mode) -> None:
    def scene() -> Ladder:
        return uploaded(mode)[0]

    _, import_id = uploaded(mode)  # ids follow each other in a fixed order
    whole = scene()
    assert importer.run(whole.ctx, import_id, 0.0)
    whole.rate()
    games = [key for key in whole.items() if key[0].startswith("GAME#")]
    assert len(games) == GAMES
    count = 0
    for ladder, where in crashes(scene, lambda one: importer.run(one.ctx, import_id, 0.0)):
        ladder.now += import_jobs.LOCKED + 1
        assert importer.run(ladder.ctx, import_id, 0.0), where
        told = import_jobs.read(ladder.ctx, import_id, "bern", admin=False)
        assert (told["status"], told["rows"]) == ("done", GAMES), where
        ladder.rate()
        audit(ladder)
        assert [key for key in ladder.items() if key[0].startswith("GAME#")] == games, where
        assert len([key for key in ladder.items() if key[0].startswith("SID#")]) == 5, where
        count += 1
    assert count > 10


def test_it_waits_for_a_run_that_may_still_live() -> None:
    ladder, import_id = uploaded()
    for dead, _ in crashes(lambda: uploaded()[0], lambda one: importer.run(one.ctx, import_id, 0.0)):
        held = [key for key in dead.items() if key[0].startswith("IMPORTING#")]
        status = import_jobs.read(dead.ctx, import_id, "bern", admin=False)["status"]
        assert importer.run(dead.ctx, import_id, 0.0) is (not held or status == "done")
    assert importer.run(ladder.ctx, import_id, 0.0)
