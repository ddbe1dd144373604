"""A publication shared by several runs: the same pages as alone, whoever does which part, dies in it or comes late."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from functions.publisher import app
from local.inprocess import System
from shared.ratings.base import MICROSECONDS
from shared.store import keys, people
from shared.store.bucket import Bucket
from shared.usecases import published
from site_builder import parts, publisher, site, uploads
from site_builder.stages import STAGES
from tests.integration.ladder import Ladder, spades
from tests.integration.memory import Calls, Killed, MemoryBucket
from tests.integration.test_publisher_random import ORIGIN, differences, links, publish_everything, told, with_site

PLAYERS = "abcdefghij"
GAMES = ["ab-cd", "ef-gh", "ac-eg", "bd-fh", "ah-bg", "ij-ab", "ci-dj", "ek-ij", "ab-gh"]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large: a part is a few objects, and each stage has several."""
    monkeypatch.setattr(site, "PAGE_SIZE", 3)
    monkeypatch.setattr(parts, "OBJECTS", 4)
    monkeypatch.setattr(publisher, "ALONE", 1)
    monkeypatch.setattr(publisher, "LARGE", 0)


@pytest.fixture
def ladder() -> Ladder:
    """A pool in memory."""
    return filled(Ladder.in_memory())


def filled(made: Ladder) -> Ladder:
    """A pool with games of two months, one of which is void, and a player of a club without a page."""
    made.open_pool()
    made.register(*PLAYERS)
    made.ctx.table.transact(people.registration("k", "K", "zug", "sid-k"))  # a club without a page in this pool
    for number, teams in enumerate(GAMES):
        month, day = (10, 20 + number) if number < 4 else (11, number + 1)
        made.submit(spades(f"g{number}", teams, f"2026-{month}-{day:02d} 20:00", group="tuesday", tournament="cup"))
    made.rate()
    made.void("g1")
    made.rate()
    return made


@pytest.fixture
def alone(ladder: Ladder) -> dict[str, bytes]:
    """The site as one run makes it."""
    return told(publish_everything(ladder))


class Crew:
    """Helpers, who come when a test lets them."""

    def __init__(self, ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ladder = ladder
        self.asked: list[tuple[str, int, str]] = []
        self.bucket = MemoryBucket(Calls())
        self.on_asked: Callable[[], None] = self.nobody
        with_site(ladder, self.bucket)
        ladder.ctx = replace(ladder.ctx, helpers=2, ask_for_help=self._ask)
        monkeypatch.setattr(parts, "pause", self._pause)

    def _ask(self, pool: str, run: int, stage: str) -> None:
        self.asked.append((pool, run, stage))
        self.on_asked()

    def _pause(self, seconds: float) -> None:
        self.ladder.now += round(seconds * MICROSECONDS)

    @staticmethod
    def nobody() -> None:
        """No help comes."""

    def come(self) -> uploads.Uploads | None:
        """The helper that was asked last does all that is left."""
        return parts.help_out(self.ladder.ctx, *self.asked[-1])

    def publish(self) -> publisher.Published:
        """Publish everything, from nothing."""
        self.ladder.ctx.data.delete([published.list_key("p")])
        done = publisher.publish(self.ladder.ctx, "p")
        assert done is not None
        return done

    def at_put(self, number: int, then: Callable[[], object]) -> None:
        """Do something when the run is about to write its ``number``-th object."""
        count = 0

        def before(name: str, _: Mapping[str, Any]) -> None:
            nonlocal count
            count += name == "put_object"
            if name == "put_object" and count == number:
                then()

        self.bucket.calls.before = before


@pytest.fixture
def crew(ladder: Ladder, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Crew:
    """After a run alone, so that only the time tells the two apart."""
    assert alone
    return Crew(ladder, monkeypatch)


def test_nobody_comes(crew: Crew, alone: dict[str, bytes]) -> None:
    done = crew.publish()
    assert done.helped == 0
    assert {stage for _, _, stage in crew.asked} == set(STAGES), "each stage was large enough to ask for help"
    assert differences(told(crew.bucket.objects), alone) == []
    assert done.built == len([key for key in crew.bucket.objects if key.startswith(("p/", "embed/"))])


def test_helpers_do_every_part(crew: Crew, alone: dict[str, bytes]) -> None:
    crew.on_asked = crew.come  # type: ignore[assignment]
    done = crew.publish()
    assert done.helped > 10
    assert differences(told(crew.bucket.objects), alone) == []
    assert done.built == len([key for key in crew.bucket.objects if key.startswith(("p/", "embed/"))])
    assert sorted(links(crew.bucket.objects)) == []


def test_a_helper_comes_at_any_object(crew: Crew, alone: dict[str, bytes]) -> None:
    """Lead and helper share the parts in every proportion."""
    shares = set()
    for number in range(1, 90, 4):
        crew.asked.clear()
        crew.bucket.objects.clear()

        def come() -> None:
            if crew.asked:
                crew.come()

        crew.at_put(number, come)
        shares.add(crew.publish().helped)
        crew.bucket.calls.before = None
        assert differences(told(crew.bucket.objects), alone) == [], f"help at object {number}"
    assert len(shares) > 4


def test_what_pages_mention_is_remembered_from_helpers_too(crew: Crew, ladder: Ladder) -> None:
    crew.publish()
    by_lead = published.load(ladder.ctx, "p")
    crew.on_asked = crew.come  # type: ignore[assignment]
    crew.publish()
    by_helpers = published.load(ladder.ctx, "p")
    assert by_lead is not None
    assert by_helpers is not None
    assert by_helpers.loose == by_lead.loose
    assert by_lead.loose == {"p#sid-k": ["club:zug"]}


def test_a_helper_dies_at_any_object(crew: Crew, alone: dict[str, bytes]) -> None:
    """Its part is done again, when the time it had is over."""
    for number in (1, 2, 3, 5, 8, 13, 21):
        crew.bucket.objects.clear()

        def dies(number: int = number) -> None:
            def die() -> None:
                raise Killed

            if crew.asked[-1][2] != "players":
                return
            crew.on_asked = crew.nobody
            crew.at_put(number, die)
            with pytest.raises(Killed):
                crew.come()
            crew.bucket.calls.before = None

        crew.on_asked = dies
        begun = crew.ladder.now
        crew.publish()
        assert differences(told(crew.bucket.objects), alone) == [], f"died at object {number}"
        assert crew.ladder.now - begun > parts.PART, "nobody may write what a helper may still be writing"


def test_help_that_comes_late_does_nothing(crew: Crew) -> None:
    crew.publish()
    before = dict(crew.bucket.objects)
    for asked in crew.asked:
        assert parts.help_out(crew.ladder.ctx, *asked) is None
    crew.publish()
    assert parts.help_out(crew.ladder.ctx, "p", crew.asked[0][1], "players") is None, "of a run that is over"
    assert parts.help_out(crew.ladder.ctx, "nowhere", 1, "players") is None
    assert differences(told(crew.bucket.objects), told(before)) == []


def test_a_slow_helper_stops_and_leaves_its_part_to_the_lead(
    crew: Crew, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "RENEW_EVERY", 1)

    def sleeps() -> None:
        crew.ladder.now += parts.PART + 1

    def slow() -> None:
        crew.on_asked = crew.nobody
        crew.at_put(2, sleeps)
        with pytest.raises(parts.Overtaken):
            crew.come()
        crew.bucket.calls.before = None

    crew.on_asked = slow
    crew.publish()
    assert differences(told(crew.bucket.objects), alone) == []


def test_no_run_begins_while_a_dead_ones_helper_may_write(
    crew: Crew, alone: dict[str, bytes], ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lead dies; its helper goes on: the lease is held for it, and it stops once another run has it."""
    monkeypatch.setattr(uploads, "RENEW_EVERY", 1)

    def die() -> None:
        raise Killed

    crew.on_asked = die
    with pytest.raises(Killed):
        crew.publish()
    crew.on_asked = crew.nobody
    ladder.now += publisher.LEASE - MICROSECONDS
    seen: list[str] = []

    def another() -> None:
        """While the helper is at its second object."""
        with pytest.raises(publisher.Overtaken):
            publisher.publish(ladder.ctx, "p")
        seen.append("the lease was renewed by the helper")
        ladder.now += parts.LEASE + 1
        crew.bucket.calls.before = None
        assert publisher.publish(ladder.ctx, "p") is not None
        seen.append("published")
        standing.update(crew.bucket.objects)

    standing: dict[str, bytes] = {}
    crew.at_put(2, another)
    with pytest.raises(parts.Overtaken):
        parts.help_out(ladder.ctx, *crew.asked[0])
    assert len(seen) == 2
    changed = [key for key, body in crew.bucket.objects.items() if standing.get(key) != body]
    assert len(changed) <= 1, "at most the object that was on its way"
    assert differences(told(standing), alone) == []


def test_a_lead_that_was_overtaken_leaves_the_lease(crew: Crew, ladder: Ladder) -> None:
    """A newer run took over while it wrote: its helpers' time must pass before a third begins."""
    item = ladder.ctx.table.get(*keys.published("p"))
    assert item is not None

    def overtakes() -> None:
        crew.on_asked = crew.nobody
        now = ladder.ctx.table.get(*keys.published("p"))
        assert now is not None
        ladder.ctx.table.batch_write([{**now, "run": now["run"] + 1}])

    crew.on_asked = overtakes
    ladder.ctx.data.delete([published.list_key("p")])
    with pytest.raises(publisher.Overtaken):
        publisher.publish(ladder.ctx, "p")
    left = ladder.ctx.table.get(*keys.published("p"))
    assert left is not None
    assert left["leased"] > ladder.now


def test_a_change_of_many_pages_is_shared_too(crew: Crew, ladder: Ladder, alone: dict[str, bytes]) -> None:
    """Not only a whole publication: here one more game that moves every page of the list."""
    assert alone
    crew.publish()
    crew.asked.clear()
    crew.on_asked = crew.come  # type: ignore[assignment]
    ladder.submit(spades("more", "ij-ab", "2026-11-18 20:00"))
    ladder.rate()
    done = publisher.publish(ladder.ctx, "p")
    assert done is not None
    assert done.helped > 0
    shared = told(crew.bucket.objects)
    crew.on_asked = crew.nobody
    ladder.ctx = replace(ladder.ctx, helpers=0)
    assert differences(shared, told(publish_everything(ladder))) == []


def test_a_small_pool_asks_nobody(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    crew = Crew(ladder, monkeypatch)
    crew.publish()
    assert crew.asked == []
    data = ladder.ctx.data
    assert isinstance(data, Bucket)
    assert not [key for key, _ in data.list("parts/")]


def message(body: object) -> dict[str, Any]:
    """What the queue hands over."""
    return {"Records": [{"messageId": "1", "body": body if isinstance(body, str) else json.dumps(body)}]}


def test_the_function_helps_who_asks(crew: Crew, alone: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "context", lambda: crew.ladder.ctx)
    answers = []

    def come() -> None:
        pool, run, stage = crew.asked[-1]
        answers.append(app.handler(message({"pool": pool, "run": run, "stage": stage}), None))

    crew.on_asked = come
    assert crew.publish().helped > 10
    assert differences(told(crew.bucket.objects), alone) == []
    assert answers
    assert all(answer == {"batchItemFailures": []} for answer in answers)


@pytest.mark.parametrize("fault", [parts.Overtaken("p"), RuntimeError("broken")])
def test_help_that_fails_is_not_tried_again(crew: Crew, fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that asked does it again by itself, long before the queue would."""

    def fails(*_: object) -> None:
        raise fault

    monkeypatch.setattr(app, "context", lambda: crew.ladder.ctx)
    monkeypatch.setattr(parts, "help_out", fails)
    assert app.handler(message({"pool": "p", "run": 3, "stage": "lists"}), None) == {"batchItemFailures": []}


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"pool": "p"}, ("p", 0, "")),
        ({"pool": "p", "run": 3, "stage": "lists"}, ("p", 3, "lists")),
        ({"pool": "p", "run": "3", "stage": "lists"}, ("p", 0, "")),
        ({"pool": ["p"]}, ("", 0, "")),
        ([], ("", 0, "")),
        ("no json", ("", 0, "")),
    ],
)
def test_what_a_message_asks_for(body: object, asked: tuple[str, int, str]) -> None:
    assert app._asked(message(body)["Records"][0]) == asked


def test_runs_side_by_side_over_a_real_store(emulated_system: System) -> None:
    """Four at a time, in threads, each with several uploads under way: the same site as one run makes."""
    system, ladder = emulated_system, filled(Ladder.of(emulated_system))
    site_bucket = Bucket(system.s3, system.names["SiteBucket"])
    ladder.ctx = replace(ladder.ctx, site=site_bucket, site_origin=ORIGIN, uploads_at_once=4)

    def publish() -> tuple[publisher.Published, dict[str, bytes]]:
        ladder.ctx.data.delete([published.list_key("p")])
        site_bucket.delete([key for key, _ in site_bucket.list("")])
        done = publisher.publish(ladder.ctx, "p")
        assert done is not None
        return done, told({key: site_bucket.get(key) or b"" for key, _ in site_bucket.list("")})

    _, alone = publish()
    helpers: list[Future[uploads.Uploads | None]] = []
    with ThreadPoolExecutor(3) as threads:

        def ask(pool: str, run: int, stage: str) -> None:
            helpers.append(threads.submit(parts.help_out, ladder.ctx, pool, run, stage))

        ladder.ctx = replace(ladder.ctx, helpers=3, ask_for_help=ask)
        done, shared = publish()
    assert differences(shared, alone) == []
    came = [helper.result() for helper in helpers]
    assert done.helped > 0
    assert sum(helper.written for helper in came if helper is not None) > 0
