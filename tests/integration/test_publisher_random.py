"""Whatever happens: publishing what changed gives the site that publishing everything gives, byte for byte."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from shared.store import people
from shared.store.bucket import Bucket
from shared.usecases import closing, published
from shared.usecases import people as people_use
from site_builder import publisher, site
from tests.integration.histories import PLAYERS, History
from tests.integration.ladder import HOUR, Ladder, small_steps
from tests.integration.memory import Calls, MemoryBucket

ORIGIN = "https://ladder.test"
LIST_PAGE = re.compile(r"^(\w\w/)?p/((new|established|inactive|unlisted|skill)/)?(page/\d+/)?index\.html$")
GROWING = re.compile(rb'"settled":(true|false)|still growing|complete')
"""Whether a month of the ledger is over is told as of the publication too."""
WHEN = re.compile(rb'<p class="lead">[^\n]*</p>|<p class="when">[^\n]*<code>\d{8}</code></p>')


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three players a page, so that a handful of players fills several; likewise with what is packed together."""
    monkeypatch.setattr(site, "PAGE_SIZE", 3)
    monkeypatch.setattr(published, "BLOCK", 4)


def with_site(ladder: Ladder, bucket: MemoryBucket, delay: int = 0) -> None:
    """Let the system have that bucket for its site."""
    store = Bucket(bucket, "site")  # type: ignore[arg-type]
    ladder.ctx = replace(ladder.ctx, site=store, site_origin=ORIGIN, publish_delay=delay)


def told(objects: dict[str, bytes]) -> dict[str, bytes]:
    """The site without what says when a page was published."""
    found = {}
    for key, body in objects.items():
        if LIST_PAGE.match(key):
            body = WHEN.sub(b"", body)
        elif key.endswith(("/standings.json", "publication.json")) and "/lists/" not in key:
            data = json.loads(body)
            for name in ("publication", "published_at", "results_up_to", "pages"):
                if name != "pages" or key.endswith("publication.json"):
                    data.pop(name, None)
            body = json.dumps(data).encode()
        elif key.endswith(("ledger/index.json", "ledger/index.html")):
            body = GROWING.sub(b"", body)
        found[key] = body
    return found


def links(objects: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Every internal link that leads nowhere: (page, address)."""
    for key, body in objects.items():
        if not key.endswith((".html", ".xml")):
            continue
        for link in re.findall(r'(?:href|src)="([^"]*)"|<loc>([^<]*)</loc>', body.decode()):
            address = (link[0] or link[1]).removeprefix(ORIGIN)
            if not address.startswith("/") or address.startswith("/assets/"):
                continue
            target = address.removeprefix("/") + ("index.html" if address.endswith("/") else "")
            if target.partition("#")[0] not in objects:
                yield key, address


def differences(one: dict[str, bytes], two: dict[str, bytes]) -> list[str]:
    """Keys that only one has, or whose content differs."""
    only = [f"- {key}" for key in one.keys() - two.keys()] + [f"+ {key}" for key in two.keys() - one.keys()]
    return sorted(only + [f"! {key}" for key in one.keys() & two.keys() if one[key] != two[key]])


def publish_everything(ladder: Ladder) -> dict[str, bytes]:
    """The site of the present state, from nothing."""
    ladder.ctx.data.delete([published.list_key("p")])
    bucket = MemoryBucket(Calls())
    with_site(ladder, bucket)
    assert publisher.publish(ladder.ctx, "p") is not None
    return bucket.objects


class Quiet(History):
    """Histories without what makes everything be published anew, but with new names and clubs of players."""

    def operations(self) -> list[Callable[[], None]]:
        """The rarer ones more often: they are what takes pages away."""
        loud = (self.rules, self.rebuild)
        found = [operation for operation in super().operations() if operation not in loud]
        return [*found, self.void, self.void, self.merge, self.unmerge, self.rename, self.rename]

    def rename(self) -> None:
        """Somebody whom the pool has rated has another name, or another club.

        Nobody looks for the pools of others: the page of an unrated game may go on naming them as they were.
        """
        player = self.random.choice(PLAYERS)
        if not people.memberships(self.ladder.ctx.table, f"sid-{player}"):
            return
        name = self.random.choice(["Zoé", "Äbi", "Ødegård", "b", "<b>"]) + str(self.random.randrange(9))
        clubs = self.random.choice([("bern",), ("bern", "thun")])
        draft = people_use.PersonDraft(name=name, clubs=clubs, given=frozenset(["name", "clubs"]))
        people_use.put(self.ladder.ctx, player, "bern", draft, admin=False)


def play(history: History, steps: int) -> None:
    """Things happen, and now and then what changed is published."""
    rng = random.Random(history.seed)
    ladder = history.ladder
    history.open()
    for _ in range(steps):
        history.step()
        if rng.random() < 0.1:
            closing.freeze(ladder.ctx, ladder.pool(), ladder.now)
        if rng.random() < 0.3:
            if rng.random() < 0.5:
                published.forget()
            publisher.publish(ladder.ctx, "p")
    ladder.rate()
    publisher.publish(ladder.ctx, "p")
    # What is gathered for an hour comes by itself, with nothing new to publish.
    ladder.now += HOUR
    publisher.publish(ladder.ctx, "p")
    assert publisher.publish(ladder.ctx, "p") is None


@pytest.mark.parametrize("kind", [History, Quiet])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rules", ["spades", "bridier", "jass"])
def test_what_changed_and_everything_give_the_same_site(rules: str, seed: int, kind: type[History]) -> None:
    ladder, bucket = Ladder.in_memory(), MemoryBucket(Calls())
    with_site(ladder, bucket, delay=60 * (seed % 2))
    with small_steps(IN_PLACE=20):
        play(kind(ladder, rules, seed), 60)
        assert sorted(links(bucket.objects)) == []
        kept = published.load(ladder.ctx, "p")
        whole = publish_everything(ladder)
        anew = published.load(ladder.ctx, "p")
    assert differences(told(bucket.objects), told(whole)) == []
    assert kept is not None
    assert anew is not None
    assert (kept.rows, kept.members) == (anew.rows, anew.members)
