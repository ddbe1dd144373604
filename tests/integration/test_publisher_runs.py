"""Publications one by one: what they write, what they leave when they die, who gives way to whom."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from shared.ratings.base import MICROSECONDS
from shared.store import keys, people
from shared.usecases import closing, clubs, games, published, reading, wake
from shared.usecases import people as people_use
from site_builder import charts, publisher, site, uploads
from site_builder.views import Page
from tests.integration.ladder import HOUR, MINUTE, Ladder, at, duel, spades
from tests.integration.memory import Calls, Killed, MemoryBucket
from tests.integration.test_publisher_random import differences, links, publish_everything, told, with_site

NAMES = (
    "<img src=x onerror=1>",
    '"><script>alert(1)</script>',
    "Maximiliane-Leopoldine von Hohenstein-Untertürkheim zu Zimmern",
    "محمد الفاتح",
    "🂡 Ace of Spades 🃏",
    "=HYPERLINK(1)",
    "\u202eevil",
    "a & b",
)


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "PAGE_SIZE", 3)


@pytest.fixture
def bucket() -> MemoryBucket:
    """The site."""
    return MemoryBucket(Calls())


@pytest.fixture
def ladder(bucket: MemoryBucket) -> Ladder:
    """A pool of eight with a few games, published."""
    made = Ladder.in_memory()
    with_site(made, bucket, delay=60)
    made.open_pool()
    for number, handle in enumerate("abcdefgh"):
        made.ctx.table.transact(people.registration(handle, NAMES[number], "bern", f"sid-{handle}"))
    for number, teams in enumerate(["ab-cd", "ef-gh", "ac-eg", "bd-fh", "ah-bg"]):
        made.submit(spades(f"g{number}", teams, f"2026-11-{number + 1:02d} 20:00"))
    made.rate()
    publisher.publish(made.ctx, "p")
    return made


def puts(bucket: MemoryBucket) -> list[str]:
    """Objects written from now on."""
    written: list[str] = []
    bucket.calls.before = lambda name, call: written.append(call["Key"]) if name == "put_object" else None
    return written


def test_one_more_game_writes_what_it_touches(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.submit(spades("new", "ab-cd", "2026-11-19 20:00"))
    ladder.rate()
    before, written = dict(bucket.objects), puts(bucket)
    done = publisher.publish(ladder.ctx, "p")
    assert done is not None
    assert done.written == len(written) == len(set(written))
    assert all(before.get(key) != bucket.objects[key] for key in written), "nothing is written that stands there"
    players = {key.split("/")[2] for key in written if key.startswith("p/players/")}
    assert {name.partition(".")[0] for name in players} == set("abcd"), "others' pages rest"
    assert [key for key in written if "/games/" in key] == ["p/games/bern/new/index.html"]
    assert not [key for key in written if key.endswith(".csv") or "/search/" in key or "/ledger/" in key]
    details = max(n for n, key in enumerate(written) if "/players/" in key or "/games/" in key)
    lists = [n for n, key in enumerate(written) if key == "p/index.html" or key.startswith("p/page/")]
    assert details < min(lists) < max(lists) < written.index("index.html")
    assert written[-1] == "p/publication.json"


def test_a_list_that_an_earlier_version_kept_is_gone_on_with(ladder: Ladder, bucket: MemoryBucket) -> None:
    """It is one text, and does not say who was best and what was played where: that is found out from all rows."""
    kept = published.load(ladder.ctx, "p")
    assert kept is not None
    assert kept.best
    assert kept.played
    assert kept.members
    kept.best, kept.played, kept.members = [], {}, {}
    body = zlib.compress(msgspec.json.encode(kept))
    ladder.ctx.data.put(published.list_key("p"), body, "application/octet-stream")
    ladder.submit(spades("new", "ab-cd", "2026-11-19 20:00"))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert differences(_timeless(bucket.objects), _timeless(_whole(ladder, bucket))) == []


def test_nothing_new_writes_nothing(ladder: Ladder, bucket: MemoryBucket) -> None:
    written = puts(bucket)
    assert publisher.publish(ladder.ctx, "p") is None
    assert written == []


def test_whole_files_come_an_hour_later_by_themselves(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.submit(spades("new", "ab-cd", "2026-11-19 20:00"))
    ladder.rate()
    ladder.now += MINUTE
    assert wake.is_behind(ladder.ctx, "p")
    publisher.publish(ladder.ctx, "p")
    assert not wake.is_behind(ladder.ctx, "p"), "the sweep asks when the hour is over, not before"
    ladder.now += HOUR
    assert wake.is_behind(ladder.ctx, "p")
    written = puts(bucket)
    publisher.publish(ladder.ctx, "p")
    assert {"p/standings.csv", "p/ledger/index.json", "p/ledger/index.html"} <= set(written)
    assert not wake.is_behind(ladder.ctx, "p")


def test_a_crash_after_any_upload_leaves_no_broken_link(ladder: Ladder, bucket: MemoryBucket) -> None:
    """A game of new players, a void that takes a player's only games, a rename: then die at each call in turn."""
    ladder.register("x", "y")
    ladder.submit(spades("late", "ax-by", "2026-10-20 20:00"))
    ladder.void("g1")
    ladder.rate()
    start = dict(bucket.objects)
    notes = ladder.ctx.data.get(published.list_key("p"))
    assert notes is not None
    outbox = [item for key, item in ladder.items().items() if key[0] == keys.outbox("p")]
    whole: dict[str, bytes] = {}
    for last in itertools.count(1):
        bucket.objects = dict(start)
        ladder.ctx.data.put(published.list_key("p"), notes, "application/octet-stream")
        ladder.ctx.table.batch_write(outbox)
        bucket.calls.before, bucket.calls.after = None, _killed_at(last)
        try:
            publisher.publish(ladder.ctx, "p")
        except Killed:
            died = True
        else:
            died = False
        bucket.calls.after = None
        assert sorted(links(bucket.objects)) == [], f"after upload {last}"
        if not died:
            assert last > 20, "there were uploads to die at"
            return
        ladder.now += publisher.LEASE + 1
        assert publisher.publish(ladder.ctx, "p") is not None
        assert sorted(links(bucket.objects)) == []
        whole = whole or _whole(ladder, bucket)
        assert differences(_timeless(bucket.objects), _timeless(whole)) == []


def test_a_crash_of_the_first_publication_leaves_no_broken_link(ladder: Ladder, bucket: MemoryBucket) -> None:
    whole = set(bucket.objects)
    for last in itertools.count(1, 7):
        bucket.objects.clear()
        ladder.ctx.data.delete([published.list_key("p"), "published/p/summary"])
        publisher.publish_site(ladder.ctx)
        bucket.calls.after = _killed_at(last)
        try:
            publisher.publish(ladder.ctx, "p")
        except Killed:
            assert sorted(links(bucket.objects)) == [], f"after upload {last}"
            ladder.now += publisher.LEASE + 1
        else:
            break
    assert last > len(whole)
    assert sorted(links(bucket.objects)) == []
    assert {*bucket.objects} - {key for key in bucket.objects if key.startswith("assets/")} == whole


def test_many_uploads_at_a_time_leave_the_same_site_and_no_broken_link(ladder: Ladder, bucket: MemoryBucket) -> None:
    one_by_one = told(bucket.objects)
    ladder.ctx = replace(ladder.ctx, uploads_at_once=16)
    for last in (3, 40, 80, 10_000):
        bucket.objects.clear()
        ladder.ctx.data.delete([published.list_key("p"), "published/p/summary"])
        publisher.publish_site(ladder.ctx)
        bucket.calls.after = _killed_at(last)
        if last < 10_000:
            with pytest.raises(Killed):
                publisher.publish(ladder.ctx, "p")
            there = dict(bucket.objects)
            ladder.now += publisher.LEASE + 1
            assert there == bucket.objects, "nothing is sent behind its back"
        else:
            done = publisher.publish(ladder.ctx, "p")
            assert done is not None
            assert done.written > len(one_by_one) - 20
        assert sorted(links(bucket.objects)) == [], f"after upload {last}"
    assets = {key for key in bucket.objects if key.startswith("assets/")}
    assert {key: body for key, body in told(bucket.objects).items() if key not in assets} == one_by_one


def _killed_at(number: int) -> Any:
    count = itertools.count(1)

    def die(name: str, _: Mapping[str, Any]) -> None:
        if name in ("put_object", "delete_objects") and next(count) == number:
            raise Killed

    return die


def _whole(ladder: Ladder, bucket: MemoryBucket) -> dict[str, bytes]:
    notes = ladder.ctx.data.get(published.list_key("p"))
    whole = publish_everything(ladder)
    with_site(ladder, bucket, delay=60)
    assert notes is not None
    ladder.ctx.data.put(published.list_key("p"), notes, "application/octet-stream")
    return whole


def _timeless(objects: dict[str, bytes]) -> dict[str, bytes]:
    """Without the files that are gathered for an hour."""
    later = ("p/ledger/", "p/search/", "p/sitemap", "p/standings.csv", "p/statistics/", "p/picture")
    return {key: body for key, body in told(objects).items() if not key.startswith(later)}


def test_what_a_dead_run_left_and_nobody_remembers_goes(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.register("x", "y")
    ladder.submit(spades("brief", "ax-by", "2026-11-18 20:00"))
    ladder.rate()
    bucket.calls.before = _dies_at("p/index.html")
    with pytest.raises(Killed):
        publisher.publish(ladder.ctx, "p")
    bucket.calls.before = None
    assert "p/players/x/index.html" in bucket.objects
    ladder.void("brief")
    ladder.rate()
    ladder.now += publisher.LEASE + 1
    publisher.publish(ladder.ctx, "p")
    assert not [key for key in bucket.objects if key.startswith(("p/players/x", "p/players/y"))]
    assert sorted(links(bucket.objects)) == []


def _dies_at(path: str) -> Any:
    def die(name: str, call: Mapping[str, Any]) -> None:
        if name == "put_object" and call["Key"] == path:
            raise Killed

    return die


def test_an_older_run_gives_way(ladder: Ladder, bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at a page while another begins, which ends first: the older writes nothing over it."""
    monkeypatch.setattr(uploads, "RENEW_EVERY", 1)
    ladder.submit(spades("one", "ab-cd", "2026-11-18 20:00"))
    ladder.rate()
    newer: list[publisher.Published | None] = []

    def meanwhile(name: str, call: Mapping[str, Any]) -> None:
        if name == "put_object" and call["Key"].startswith("p/players/") and not newer:
            newer.append(None)
            with pytest.raises(publisher.Overtaken):
                publisher.publish(ladder.ctx, "p")
            ladder.submit(spades("two", "ab-cd", "2026-11-19 20:00"))
            ladder.rate()
            ladder.now += publisher.LEASE + 1
            newer[0] = publisher.publish(ladder.ctx, "p")
            newer.append(None)
            standing.update(bucket.objects)

    standing: dict[str, bytes] = {}
    bucket.calls.before = meanwhile
    with pytest.raises(publisher.Overtaken):
        publisher.publish(ladder.ctx, "p")
    assert newer[0] is not None
    changed = [key for key in bucket.objects if bucket.objects[key] != standing.get(key)]
    assert len(changed) <= 1, "at most the object that was on its way"
    ladder.now += MINUTE
    ladder.submit(spades("three", "ab-cd", "2026-11-19 21:00"))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    ladder.now += HOUR
    publisher.publish(ladder.ctx, "p")
    assert differences(told(bucket.objects), told(publish_everything(ladder))) == []


def test_two_builds_of_one_state_are_the_same_bytes(ladder: Ladder) -> None:
    one = publish_everything(ladder)
    item = ladder.ctx.table.get(*keys.published("p"))
    assert item is not None
    item["run"] -= 1
    ladder.ctx.table.batch_write([item])
    two = publish_everything(ladder)
    assert one == two
    assert len(one) > 60


def test_a_path_built_twice_or_not_at_all_fails(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    build = site.game_pages

    def twice(*arguments: Any) -> Iterator[Page]:
        yield from build(*arguments)
        yield from build(*arguments)

    monkeypatch.setattr(site, "game_pages", twice)
    with pytest.raises(RuntimeError, match="built twice"):
        publish_everything(ladder)
    monkeypatch.setattr(site, "game_pages", lambda *_: iter(()))
    with pytest.raises(RuntimeError, match="games: 5 pages were to be built, 0 were"):
        publish_everything(ladder)


def test_a_new_name_and_a_club_named_anew_reach_every_page(ladder: Ladder, bucket: MemoryBucket) -> None:
    clubs.put(ladder.ctx, "bern", "Bern")
    people_use.put(
        ladder.ctx, "a", "bern", people_use.PersonDraft(name="Zoé <new>", given=frozenset(["name"])), admin=False
    )
    publisher.publish(ladder.ctx, "p")
    clubs.put(ladder.ctx, "bern", "Bärn")
    assert wake.is_behind(ladder.ctx, "p")
    publisher.publish(ladder.ctx, "p")
    text = b"".join(body for key, body in bucket.objects.items() if key.endswith(".html"))
    assert b"Zo\xc3\xa9 &lt;new&gt;" in text
    assert b"onerror" not in text, "no page has the old name any more"
    assert "Bärn" in bucket.objects["p/clubs/bern/index.html"].decode()
    assert differences(told(bucket.objects), told(publish_everything(ladder))) == []


def test_a_new_name_writes_the_pages_that_show_it(ladder: Ladder, bucket: MemoryBucket) -> None:
    """Not those of people who never met the player; but also a game that was never rated, and the month he was in."""
    ladder.register("w", "x", "y", "z")
    ladder.submit(spades("theirs", "wx-yz", "2026-10-12 20:00"))
    ladder.submit(spades("friendly", "wx-ab", "2026-11-14 20:00", rated=False))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    written = puts(bucket)
    draft = people_use.PersonDraft(name="Wanda", given=frozenset(["name"]))
    people_use.put(ladder.ctx, "w", "bern", draft, admin=False)
    publisher.publish(ladder.ctx, "p")
    assert {key.split("/")[2].partition(".")[0] for key in written if key.startswith("p/players/")} <= set("wxyz")
    games = {key for key in written if "/games/" in key}
    assert games == {f"p/games/bern/{game}/index.html" for game in ("theirs", "friendly")}
    assert {"p/search/w.json", "p/standings.csv", "p/players/x/index.html", "p/lists/2026-10/index.html"} <= set(
        written
    )
    assert not [key for key, body in bucket.objects.items() if key.endswith(".html") and b">W<" in body]
    assert differences(told(bucket.objects), told(publish_everything(ladder))) == []


def test_an_unrated_and_an_open_game_have_pages(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.submit(spades("friendly", "ab-cd", "2026-11-18 20:00", rated=False))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert b"not rated" in bucket.objects["p/games/bern/friendly/index.html"]
    assert games.load(ladder.ctx, ladder.pool(), ("bern", "friendly")).game.rated is False
    whole = publish_everything(ladder)
    assert "p/games/bern/friendly/index.html" in whole


def test_the_lease_is_taken_by_one(ladder: Ladder) -> None:
    run, crashed = publisher._begin(ladder.ctx, "p")
    assert (run, crashed) == (2, False)
    with pytest.raises(publisher.Overtaken):
        publisher.publish(ladder.ctx, "p")
    ladder.now += publisher.LEASE + MICROSECONDS
    assert publisher.publish(ladder.ctx, "p") is None


def test_a_month_published_before_it_was_frozen_is_frozen_on_its_page(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.now = at("2026-11-30 23:30")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert b'"kind":"reconstructed"' in bucket.objects["p/lists/2026-11/standings.json"]
    assert closing.freeze(ladder.ctx, ladder.pool(), ladder.now) == ["2026-11"]
    publisher.publish(ladder.ctx, "p")
    assert b'"kind":"frozen"' in bucket.objects["p/lists/2026-11/standings.json"]
    assert publisher.publish(ladder.ctx, "p") is None


def test_a_rating_brought_along_is_the_oldest_line_wherever_a_player_is_told(
    ladder: Ladder, bucket: MemoryBucket
) -> None:
    """It was accepted after the days on which its player's games were played."""
    ladder.register("n")
    ladder.start("n", {"rating": 1712, "games": 60})
    for number, day in enumerate((3, 9)):
        ladder.submit(spades(f"old{number}", "na-bc", f"2026-11-{day:02d} 21:00"))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    page = bucket.objects["p/players/n/index.html"].decode()
    rows = re.findall(r'<tr><td class="when">(.*?)</td>', page)
    assert rows == ["9 Nov 2026", "3 Nov 2026", "Start"]
    chart = re.search(r'<path class="line" d="M([\d.]+) ([\d.]+)H([\d.]+)V', page)
    assert chart is not None
    assert chart.group(1) == chart.group(3) == str(charts.LEFT), "from the rating brought along the first game leads on"
    told = json.loads(bucket.objects["p/players/n.json"])["history"]
    asked = reading.player_in_pool(ladder.ctx, ladder.pool(), "n", None)["history"]
    for history in (told, asked):
        assert [line["kind"] for line in history] == ["game", "game", "start"]
        assert history[-1]["after"] == {"rating": 1712}
    assert told == asked, "the file says what the API says"
    assert publish_everything(ladder)["p/players/n/index.html"].decode() == page


def test_a_month_in_which_some_are_new_says_so_of_them(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.open_pool("duels", "bridier")
    ladder.register("old", "young")
    ladder.start("old", {"rank": 600, "index": 100, "last_result_on": "2026-10-01"}, "duels")
    ladder.submit(duel("g", "young", "old", "2026-10-05 20:00"), "duels")
    ladder.rate("duels")
    publisher.publish(ladder.ctx, "duels")
    page = bucket.objects["duels/lists/2026-10/index.html"].decode()
    assert "<h2>" not in page, "with one result an index is below the limit"
    ladder.register("newest", "other")
    ladder.start("newest", {"rank": 700, "index": 500}, "duels")
    drawn = {"players": ["newest", "other"], "draw": True}
    ladder.submit(replace(duel("h", "newest", "other", "2026-10-06 20:00"), result=drawn), "duels")
    ladder.rate("duels")
    publisher.publish(ladder.ctx, "duels")
    index = bucket.objects["duels/lists/index.html"].decode()
    leaders = set(re.findall(r'<td><a href="/duels/players/(\w+)/" dir="auto">', index))
    assert leaders == {"old"}, "who leads the list, though one who is new has a higher rank"
    page = bucket.objects["duels/lists/2026-10/index.html"].decode()
    assert page.index("Young") < page.index("<h2>New players</h2>") < page.index("Newest")
    assert "Index above 495" in page


def test_statistics_of_rules_that_foretell_nothing_count_favourites(ladder: Ladder, bucket: MemoryBucket) -> None:
    """By hand: even at first, then the higher won, lost, drew; and a month without games stands between two with."""
    ladder.open_pool("duels", "bridier")
    ladder.register("hi", "lo")
    for number, (winner, loser, when) in enumerate(
        [("hi", "lo", "2026-08-05"), ("hi", "lo", "2026-08-06"), ("lo", "hi", "2026-10-07"), ("hi", "lo", "2026-10-08")]
    ):
        game = duel(f"g{number}", winner, loser, f"{when} 20:00")
        drawn = {"players": ["hi", "lo"], "draw": True}
        ladder.submit(replace(game, result=drawn) if number == 3 else game, "duels")
    ladder.rate("duels")
    publisher.publish(ladder.ctx, "duels")
    page = bucket.objects["duels/statistics/index.html"].decode()
    assert "Of 3 games between two of different rank, the one ranked higher has scored 50.0%" in page
    assert "Results up to 8 October 2026." in page
    activity = re.findall(r'<tr><th scope="row">(\w+) 2026</th><td class="n">(\d+)</td><td class="n">(\d+)</td>', page)
    assert activity == [("October", "2", "2"), ("September", "0", "0"), ("August", "2", "2")]


def test_rules_of_a_later_day_leave_the_lists_of_the_months_before_alone(ladder: Ladder, bucket: MemoryBucket) -> None:
    ladder.submit(spades("early", "ab-cd", "2026-10-12 20:00"))
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    shown = {key: body for key, body in bucket.objects.items() if key.startswith("p/lists/2026-10/")}
    assert len(shown) > 2
    ladder.open_pool(rules=[{"from": "2000-01-01"}, {"from": "2026-11-20", "minimum_games": 9}])
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    assert {key: body for key, body in bucket.objects.items() if key.startswith("p/lists/2026-10/")} == shown
    assert "p/unlisted/index.html" in bucket.objects, "today's list goes by them"
