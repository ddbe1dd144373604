"""One more game in a pool of 100 players, and in one of 100,000: what submitting, rating and publishing it costs.

Both pools hold the same 1,000 real games, of two weeks over a month's end; the large one has 99,900 players more with
999,000 games in their records, written straight into the table, the checkpoint and the published list, so that whatever
a run reads or writes in proportion to the pool shows. Then comes a late result, of a week before.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from shared.ledger.statehash import line_hash, to_hex
from shared.ratings.base import PlayerState
from shared.store import keys, people
from shared.store import rated as store
from shared.store.bucket import Bucket
from shared.store.rated import StateRow
from shared.store.table import Put, Table, Update, to_wire
from shared.usecases import published
from site_builder import publisher, site
from tests.bench.table import Line
from tests.bench.units import MeteredBucket, MeteredTable
from tests.integration.ladder import DAY, HOUR, SECOND, Ladder, at, spades
from tests.integration.memory import MemoryBucket

APART = HOUR // 3
LATE = 7 * DAY
"""So long ago the late result was played."""
PAGE = 100
"""Rows of a list's page."""


def pool_of(players: int, games: int) -> tuple[Ladder, MeteredTable, MeteredBucket, MeteredBucket]:
    """A pool with so many players, rated and published, and meters that stand at nought."""
    ladder = Ladder.in_memory()
    dice = random.Random(1)
    handles = [f"p{number:03d}" for number in range(100)]
    ladder.now = at("2026-10-28 12:00")
    ladder.open_pool("p", "spades", [{"from": "2026-01-01", "quit_ban_minutes": 0, "opt_out_ban_days": 0}])
    ladder.register(*handles)
    for number in range(games):
        ladder.now += APART
        draft = spades(f"g{number}", "ab-cd", ladder.now)
        table = dice.sample(handles, 4)
        draft.result["teams"] = [table[:2], table[2:]]  # type: ignore[index]
        draft.result["outcome"] = dice.choice(["team1", "team2"])  # type: ignore[index]
        ladder.submit(draft)
        if number % 50 == 49:
            ladder.rate()
    ladder.rate()
    site = MeteredBucket(MemoryBucket())
    ladder.ctx = replace(ladder.ctx, site=Bucket(site, "site"))  # type: ignore[arg-type]
    publisher.publish(ladder.ctx, "p")
    if players > len(handles):
        _more(ladder, players - len(handles), games)
    table_, data = MeteredTable(ladder.ctx.table.client), MeteredBucket(ladder.ctx.data.client)
    ladder.ctx = replace(ladder.ctx, table=Table(table_, "memory"), data=Bucket(data, "data"))  # type: ignore[arg-type]
    site.requests.clear()
    site.bytes = 0
    site.keys.clear()
    return ladder, table_, data, site


def _more(ladder: Ladder, players: int, games: int) -> None:
    """Players whose states, records and lines of the list are there, as a million games would have left them."""
    dice = random.Random(2)
    ctx, pool = ladder.ctx, ladder.pool()
    cursor = store.read_cursor(ctx.table, "p")
    old = published.load(ctx, "p")
    assert old is not None
    rows = list(old.rows)
    total = int(cursor.hash, 16)
    marks = {
        mark.key: store.get_checkpoint(ctx.data, mark.key) or {}
        for mark in store.read_index(ctx.table, "p").checkpoints
    }
    client = ctx.table.client
    for number in range(players):
        sid = f"sid-q{number:06d}"
        rating = 1_500_000_000 + int(dice.gauss(0, 90_000_000))
        won, last = dice.randrange(40), ladder.now - dice.randrange(HOUR, 300 * DAY)
        state = PlayerState(rating, 0, 40, won, 0, 40 - won, 739_900, last, best=(rating, 0, last))
        record = (40, won, 0, 40 - won, 0, 0, dice.randrange(-40_000_000, 40_000_000), 0)
        state.labels = {"year:2026": record, "club:uri": record}
        pk, sk = keys.state(pool.id, sid)
        client.store(to_wire({"pk": pk, "sk": sk, "ag": 0, "a": store.dump(StateRow(state, ""))}))  # type: ignore[attr-defined]
        for operation in people.registration(f"q{number:06d}", f"Player {number}", "uri", sid):
            if isinstance(operation, Put):
                client.store(to_wire(operation.item))  # type: ignore[attr-defined]
        total += line_hash(pool.system, sid, state)
        for states in marks.values():
            states[sid] = state
        rows.append(published.ListRow(sid, f"q{number:06d}", f"Player {number}", ("uri",), state))
    for key, states in marks.items():
        store.put_checkpoint(ctx.data, key, states)
    index = store.read_index(ctx.table, "p")
    told = [msgspec.structs.replace(mark, moments=mark.moments + players * 10) for mark in index.checkpoints]
    text = msgspec.json.encode(told).decode()
    ctx.table.write(Update(store.index_key("p"), "SET #checkpoints = :told", {"told": text}))
    moved = replace(
        cursor,
        hash=to_hex(total % (1 << 256)),
        players=cursor.players + players,
        games=cursor.games + players * 10,
        version=cursor.version + 1,
    )
    ctx.table.write(store.put_cursor(replace(moved, version=cursor.version), cursor.version))
    rows.sort(key=lambda row: (pool.system.order_key(row.state), row.name, row.handle))
    for place, row in enumerate(rows, start=1):
        row.place = place
    old.rows = rows
    best = sorted((row for row in rows if row.state.best), key=lambda row: -row.state.best[0])  # type: ignore[index]
    old.best = [row.sid for row in best[: site.PAGE_SIZE]]
    old.played, old.members = {}, {}
    for row in rows:
        for label, record in row.state.labels.items():
            old.played[label] = old.played.get(label, 0) + record[0]
            old.members[label] = old.members.get(label, 0) + 1
    published.save(ctx, "p", old)


Figures = dict[str, float]
TURNS = 3
FRESH, AT_HAND = "CPU seconds, by a fresh process", "CPU seconds, by the process of the last publication"


def _is_list(key: str) -> bool:
    """Whether an object shows rows of a list (the pool's, or one of its mirrors), or names its pages (the sitemap)."""
    if key.startswith("sitemap"):
        return True
    parts = key.split("/")
    return len(parts) > 2 - (parts[0] == "p") and parts[1] not in (
        "games",
        "players",
        "lists",
        "changes",
        "feed.xml",
        "publication.json",
    )


def _main_pages(rows: list[published.ListRow]) -> dict[int, list[tuple[str, int | None, int]]]:
    """What the pages of the pool's own list say of each player: who, which place, which rating."""
    listed = [(row.sid, row.place, row.state.rating) for row in rows if row.variant == published.MAIN]
    return {number: listed[begin : begin + PAGE] for number, begin in enumerate(range(0, len(listed), PAGE), start=1)}


class _Pool:
    """A pool, its meters, and what each step came to."""

    def __init__(self, players: int, games: int) -> None:
        self.ladder, self.table, self.data, self.site = pool_of(players, games)
        self.found: dict[str, Figures] = {}
        self.others: dict[str, set[str]] = {}
        """By step: the objects that show no list."""

    def step(self, name: str, run: Callable[[], object]) -> Figures:
        """Count what a step asks and writes."""
        table, data, site = self.table.meter, self.data, self.site
        before = (table.write_units, table.read, sum(table.requests.values()), table.items.copy())
        s3 = [sum(bucket.requests.values()) for bucket in (data, site)]
        size, keys_ = data.bytes + site.bytes, len(site.keys)
        gc.collect()
        gc.freeze()  # the fake table's items, which the collector would look through again and again
        begin = time.process_time()
        run()
        took = time.process_time() - begin
        written = site.keys[keys_:]
        lists = sum(map(_is_list, written))
        self.others[name] = {key for key in written if not _is_list(key)}
        self.found[name] = {
            "write units": table.write_units - before[0],
            "read units": table.read - before[1],
            "DynamoDB requests": sum(table.requests.values()) - before[2],
            "moments read again": table.items["RATED"] - before[3]["RATED"],
            "events read from the ledger": table.items["LEDGER"] - before[3]["LEDGER"],
            "S3 requests, data": sum(data.requests.values()) - s3[0],
            "S3 requests, site": sum(site.requests.values()) - s3[1],
            "objects that show a list's rows": lists,
            "other objects": len(written) - lists,
            "MB written": (data.bytes + site.bytes - size) / 1e6,
            "CPU seconds": took,
        }
        return self.found[name]

    def publish(self, name: str, turns: int = 1) -> None:
        """Publish; and of the pool's own list: which pages were written, and which differ.

        Args:
            turns: how often the same publication is made again for its time, the lowest of which is told: by a process
                that has just begun, and by one that has made the publication before.
        """
        before = _main_pages(self._rows())
        keys_ = len(self.site.keys)
        stood = self._stored()
        published.forget()
        figures = self.step(name, lambda: publisher.publish(self.ladder.ctx, "p"))
        cold = [figures.pop("CPU seconds"), *(self._again(stood, at_hand=False) for _ in range(turns - 1))]
        figures[FRESH] = min(cold)
        if turns > 1:
            figures[AT_HAND] = min(self._again(stood, at_hand=True) for _ in range(turns))
        written = set(self.site.keys[keys_:])
        after = _main_pages(self._rows())
        # The first page also says how many games there are: it is written in any case.
        figures["further pages of the pool's list that differ"] = sum(
            before.get(number) != after.get(number) for number in (before.keys() | after.keys()) - {1}
        )
        figures["further pages of the pool's list written"] = sum(
            key.startswith("p/page/") and key.endswith("/index.html") for key in written
        )

    def _stored(self) -> tuple[dict[str, dict[str, Any]], list[dict[str, bytes]]]:
        """All that stands in the table and the buckets."""
        partitions = self.table.client.partitions
        buckets = [bucket.client.objects for bucket in (self.data, self.site)]
        return {pk: items.copy() for pk, items in partitions.items()}, [objects.copy() for objects in buckets]

    def _again(self, stood: tuple[dict[str, dict[str, Any]], list[dict[str, bytes]]], *, at_hand: bool) -> float:
        """CPU seconds of the publication that follows from what stood there."""
        partitions, buckets = stood
        self.table.client.partitions = {pk: items.copy() for pk, items in partitions.items()}
        for bucket, objects in zip((self.data, self.site), buckets, strict=True):
            bucket.client.objects = objects.copy()
        ctx = self.ladder.ctx
        published.forget()
        if at_hand and (kept := published.take(ctx, "p")) is not None:
            published.hold(ctx, "p", kept)
        keys_ = len(self.site.keys)
        gc.collect()
        gc.freeze()
        begin = time.process_time()
        publisher.publish(ctx, "p")
        took = time.process_time() - begin
        del self.site.keys[keys_:]
        return took

    def _rows(self) -> list[published.ListRow]:
        metered = self.ladder.ctx
        found = published.load(replace(metered, data=Bucket(self.data.client, "data")), "p")
        assert found is not None
        return list(found.rows)

    def game(self, game_id: str, when: int, *players: str) -> None:
        """Send a game that was over then."""
        draft = spades(game_id, "ab-cd", when)
        draft.result["teams"] = [list(players[:2]), list(players[2:])]  # type: ignore[index]
        self.ladder.submit(draft)


def one_more(players: int, games: int) -> _Pool:
    """Submit, rate and publish a game, and then a late one; what each step cost."""
    pool = _Pool(players, games)
    ladder = pool.ladder
    ladder.now += HOUR // 4  # the files of the whole pool are due once an hour, and are measured apart
    pool.step("submit", lambda: pool.game("one-more", ladder.now, "p001", "p002", "p003", "p004"))
    pool.step("rate", ladder.rate)
    pool.publish("publish", TURNS)
    ladder.now += HOUR
    pool.step("hourly files", lambda: publisher.publish(ladder.ctx, "p"))
    ladder.now += HOUR // 4
    pool.step("late: submit", lambda: pool.game("late", ladder.now - LATE, "p005", "p006", "p007", "p008"))
    pool.step("late: rate", ladder.rate)
    pool.publish("late: publish")
    return pool


SMALLER = 20_000
"""A pool of this size is published in time; what a larger one takes is printed with it."""
SAME = ("submit", "rate", "late: submit", "late: rate")
"""Steps that know nothing of the pool's size; publishing writes the pages whose rows moved."""
COUNTED = ("write units", "read units", "DynamoDB requests", "moments read again", "events read from the ledger")
COUNTED += ("S3 requests, data",)


def _verdict(step: str, what: str, figure: float, figures: Figures, other: float) -> tuple[str, bool | None]:
    """Budget, and whether it is met."""
    if step in SAME and what in COUNTED:
        return "as in the small pool", figure == other
    if not step.endswith("publish"):
        return "", None
    if what in (FRESH, AT_HAND) and step == "publish":
        return "under 2 s", figure < 2.0
    if what == "other objects":
        return "as in the small pool", figure == other
    if what == "further pages of the pool's list written":
        return "those that differ", figure == figures["further pages of the pool's list that differ"]
    return "", None


def since_checkpoint(games: int) -> int:
    """Of the recorded games, those behind the month's end; a late result replays these, itself and the one more."""
    begin, end = at("2026-10-28 12:00"), at("2026-10-31 23:00")
    return games - sum(begin + number * APART + (number - 1) * SECOND <= end for number in range(1, games + 1)) + 1


def measure(scale: float) -> list[Line]:
    """The lines of the table; 100,000 players but for ``--small``."""
    games, many = 1_000, 100_000 if scale >= 0.2 else 2_000
    one, two = one_more(100, games), one_more(many, games)
    small, large = one.found, two.found
    lines = []
    for step, figures in large.items():
        for what, figure in figures.items():
            other = small[step][what]
            budget, met = _verdict(step, what, figure, figures, other)
            note = ""
            if what == "other objects" and met is False:
                note = "in one pool only: " + ", ".join(sorted(one.others[step] ^ two.others[step])[:5])
            if figure or other or met is not None:
                lines.append(Line(f"{step}: {what}", figure, "", "100 players", other, budget, met, note))
    if many > SMALLER:
        took = one_more(SMALLER, games).found["publish"][FRESH]
        lines.append(Line(f"publish: {FRESH}, {SMALLER:,} players", took, "s", budget="under 2 s", met=took < 2.0))
    behind = since_checkpoint(games)
    again = large["late: rate"]["moments read again"]
    lines.append(
        Line(
            "late: moments behind the last checkpoint",
            again,
            "",
            "of all recorded",
            games + 1,
            f"{behind}",
            again == behind,
            f"of {many:,} players with {many * 10:,} games in their records",
        )
    )
    return lines
