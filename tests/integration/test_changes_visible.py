"""Changes made visible: a frozen list never changes, and what was revised since stands beside it and in the journal."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from shared.usecases import closing, games
from site_builder import publisher
from tests.integration.ladder import DAY, Ladder, at, spades
from tests.integration.memory import MemoryBucket
from tests.integration.test_publisher_random import with_site


def july() -> tuple[Ladder, MemoryBucket]:
    """A and C beat B and D twice in July; the month is closed and published."""
    ladder, bucket = Ladder.in_memory(), MemoryBucket()
    ladder.now = at("2026-06-20 12:00")
    with_site(ladder, bucket)
    ladder.open_pool(rules=[{"from": "2026-01-01"}])
    ladder.register(*"abcd")
    for game, when in (("first", "2026-07-03 20:00"), ("second", "2026-07-10 20:00")):
        ladder.now = at(when) + DAY
        ladder.submit(spades(game, "ac-bd", when))
        ladder.rate()
        publisher.publish(ladder.ctx, "p")
    ladder.now = at("2026-08-05 12:00")
    assert closing.close(ladder.ctx, "p") == ["2026-06", "2026-07"]
    publisher.publish(ladder.ctx, "p")
    return ladder, bucket


def text_of(page: bytes) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.decode())).split())


def test_a_frozen_list_stays_and_tells_what_was_revised_since() -> None:
    ladder, bucket = july()
    folder = "p/lists/2026-07/"
    frozen = {key: body for key, body in bucket.objects.items() if key.startswith(folder) and "standings." in key}
    assert len(frozen) >= 2
    listed: list[Any] = json.loads(frozen[f"{folder}standings.json"])["standings"]
    assert {s["player"]: round(s["rating"]["rating"], 2) for s in listed} == {
        **dict.fromkeys("ac", 1546.43),
        **dict.fromkeys("bd", 1453.57),
    }
    assert json.loads(bucket.objects[f"{folder}changes.json"]) == {"pool": "p", "month": "2026-07", "changes": []}
    ladder.void("first")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert {key: bucket.objects[key] for key in frozen} == frozen
    changes = json.loads(bucket.objects[f"{folder}changes.json"])["changes"]
    assert [
        (c["player"], round(c["frozen"]["rating"], 2), c["now"]["rating"]) for c in changes
    ] == [("a", 1546.43, 1525), ("b", 1453.57, 1475), ("c", 1546.43, 1525), ("d", 1453.57, 1475)]  # fmt: skip
    page = bucket.objects[f"{folder}index.html"]
    assert "would change 4 of these ratings." in text_of(page)
    assert b'href="/p/lists/2026-07/changes.json"' in page
    # Taken back again, nothing differs any more, and the list says so.
    ladder.correct("first", note="it was played")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert {key: bucket.objects[key] for key in frozen} == frozen
    assert json.loads(bucket.objects[f"{folder}changes.json"])["changes"] == []


def test_corrections_are_told_with_who_when_and_why() -> None:
    ladder, bucket = july()
    ladder.void("first")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    changes = text_of(bucket.objects["p/changes/index.html"])
    assert "not played" in changes
    assert "Game first was taken out. A , C , B , D ." in changes
    revisions = games.read(ladder.ctx, ladder.pool(), ("bern", "first"))["revisions"]
    assert [(r["revision"], r["by"], r["what"], r["reason"]) for r in revisions] == [
        (1, "bern", "finished", ""),
        (2, "bern", "voided", "not played"),
    ]
    assert revisions[1]["at"] == "2026-08-05T12:00:01Z"
    player = json.loads(bucket.objects["p/players/a.json"])
    assert [(line["game"], round(line["change"]["rating"], 2)) for line in player["history"]] == [("bern:second", 25.0)]
    voided = (
        "On 5 August 2026 game first was taken out: the rating went from 1546.4 to 1525.0. 2 games were rated again."
    )
    page = text_of(bucket.objects["p/players/a/index.html"])
    assert voided in page
    assert "1546" not in page.replace(voided, ""), "what is no more true stands in the journal only"
    ladder.correct("first", note="it was played")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    page = text_of(bucket.objects["p/players/a/index.html"])
    assert voided.replace("game first", "the game of 3 July 2026") in page, "nothing is taken out of the journal"
    assert "counts again: the rating went from 1525.0 to 1546.4." in page
