"""A pool driven through its use cases, and an audit that compares everything stored with a fold of its ledger.

The audit reads the table item by item and never through the rater, so that a row too many is found as well as one that
is missing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import msgspec

from local.inprocess import System
from shared.ledger import replay
from shared.ledger.events import Event, event_id
from shared.ledger.fold import Fold, Held, Opened, Rated
from shared.ledger.order import instant_of, to_instant
from shared.ledger.statehash import state_hash, to_hex
from shared.ratings.base import FINISH, PlayerState
from shared.store import keys, ledger, people, pools
from shared.store import rated as store
from shared.store.bucket import Bucket
from shared.store.pools import Pool
from shared.store.table import Table, from_wire
from shared.usecases import games, generation, rating
from shared.usecases import people as people_use
from shared.usecases import pools as pools_use
from shared.usecases.context import Context
from shared.usecases.drafts import Answer, GameDraft
from tests.integration.memory import Calls, MemoryBucket, MemoryTable

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND


def at(text: str) -> int:
    """An instant from ``2026-07-03 20:00`` (UTC) or an ISO text with an offset."""
    moment = dt.datetime.fromisoformat(text)
    return to_instant(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))


@contextlib.contextmanager
def small_steps(**values: int | float) -> Iterator[None]:
    """The rater with its limits moved to where a test of a few games meets them."""
    chosen = {"WATCH_SECONDS": 0.0, "CHECKPOINT_SPACING": 3, "KEPT": 3, "REPORT_WRITES": 7, **values}
    assert all(hasattr(rating, name) or hasattr(generation, name) for name in chosen)
    with contextlib.ExitStack() as stack:
        for module in (rating, generation):
            there = {name: value for name, value in chosen.items() if hasattr(module, name)}
            stack.enter_context(mock.patch.multiple(module, **there))
        yield


@dataclass
class Ladder:
    """A table, buckets, a clock that stands still, and ids that come in a fixed order."""

    ctx: Context
    calls: Calls
    now: int = at("2026-11-20 12:00")
    asked: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def in_memory(cls, *, page: int = 1_000_000) -> Ladder:
        """Over the fakes."""
        calls = Calls()
        bucket = MemoryBucket(calls)
        return cls.over(Table(MemoryTable(calls, page=page), "memory"), Bucket(bucket, "data"), calls)  # type: ignore[arg-type]

    @classmethod
    def of(cls, system: System) -> Ladder:
        """Over the table and the bucket of a whole system."""
        names = system.names
        return cls.over(Table(system.dynamodb, names["Table"]), Bucket(system.s3, names["DataBucket"]))

    @classmethod
    def over(cls, table: Table, data: Bucket, calls: Calls | None = None) -> Ladder:
        """Over a table and a bucket."""
        numbers = itertools.count(1)
        made = cls(Context(table, data, data), calls or Calls())
        made.ctx = replace(
            made.ctx,
            clock=lambda: made.now,
            token=lambda length: f"{next(numbers):0{length}d}",
            ask_to_publish=lambda pool, delay: made.asked.append((pool, delay)),
        )
        return made

    # -- what an admin and the clubs do
    def open_pool(
        self,
        pool: str = "p",
        system: str = "spades",
        rules: Sequence[Mapping[str, Any]] = ({"from": "2000-01-01"},),
        time_zone: str = "Europe/Zurich",
    ) -> Pool:
        """Open a pool, or change its rules."""
        draft = pools_use.PoolDraft(pool.title(), system, time_zone, ("en",), None, tuple(rules))
        return pools_use.put(self.ctx, pool, draft)[1]

    def register(self, *handles: str) -> None:
        """Players whose server-made ids tell who they are."""
        for handle in handles:
            self.ctx.table.transact(people.registration(handle, handle.title(), "bern", f"sid-{handle}"))

    def pool(self, pool: str = "p") -> Pool:
        """A pool as it is stored."""
        found = pools.load(self.ctx.table, pool)
        assert found is not None
        return found

    def submit(self, draft: GameDraft, pool: str = "p", club: str = "bern", **more: Any) -> Answer:
        """Send a game."""
        given: dict[str, Any] = {"idempotency_key": None, "body_digest": repr(draft), **more}
        self.now += SECOND
        return games.submit(self.ctx, self.pool(pool), club, draft, **given)

    def correct(self, game_id: str, pool: str = "p", club: str = "bern", **changes: Any) -> Answer:
        """Correct a game: what is not named keeps its value."""
        self.now += SECOND
        revision = games.load(self.ctx, self.pool(pool), (club, game_id)).game.revision
        draft = GameDraft(game_id=game_id, given=frozenset(changes), **changes)
        return games.correct(self.ctx, self.pool(pool), club, (club, game_id), draft, reason="wrong", if_match=revision)

    def void(self, game_id: str, pool: str = "p", club: str = "bern") -> Answer:
        """Take a game back."""
        self.now += SECOND
        return games.void(self.ctx, self.pool(pool), club, (club, game_id), reason="not played")

    def start(self, handle: str, start: dict[str, Any], pool: str = "p") -> None:
        """Carry a rating over."""
        self.now += SECOND
        person = people.find(self.ctx.table, handle)
        assert person is not None
        normal, errors = people_use.parse_start(self.pool(pool), start)
        assert not errors
        people_use.set_start(self.ctx, self.pool(pool), person, normal)

    def event(self, kind: Any, player: str, value: dict[str, Any], pool: str = "p") -> None:
        """Write an event to the ledger by hand."""
        self.now += SECOND
        event = Event(event_id(self.now, self.ctx.token(12)), kind, self.now, player=f"sid-{player}", value=value)
        self.ctx.table.transact(ledger.append(pool, event))

    def merge(self, player: str, into: str, pool: str = "p") -> None:
        """Merge one player's record into another's."""
        self.event("merge", player, {"into": f"sid-{into}"}, pool)

    def unmerge(self, player: str, pool: str = "p") -> None:
        """Undo it."""
        self.event("unmerge", player, {}, pool)

    def leave(self, player: str, when: int, pool: str = "p") -> None:
        """Switch ``rank_me`` off."""
        self.event("rank-me", player, {"at": when, "on": False}, pool)

    def rate(self, pool: str = "p") -> rating.Applied:
        """Wake the rater."""
        return rating.apply(self.ctx, pool)

    # -- what came out
    def cursor(self, pool: str = "p") -> store.Cursor:
        """How far a pool is rated."""
        return store.read_cursor(self.ctx.table, pool)

    def ratings(self, pool: str = "p") -> dict[str, tuple[int, int]]:
        """Handle → rating."""
        rows = store.read_all_states(self.ctx.table, pool, self.cursor(pool).view)
        return {sid.removeprefix("sid-"): (row.state.rating, row.state.index) for sid, row in rows.items()}

    def points(self, pool: str = "p") -> dict[str, float]:
        """Handle → rating as a list shows it."""
        return {handle: round(rating / 1e6, 2) for handle, (rating, _) in self.ratings(pool).items()}

    def items(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Every item of the table."""
        client: Any = self.ctx.table.client
        if isinstance(client, MemoryTable):
            wires: Iterable[Any] = client.items()
        else:
            pages = client.get_paginator("scan").paginate(TableName=self.ctx.table.name, ConsistentRead=True)
            wires = (item for page in pages for item in page["Items"])
        return {(item["pk"], item["sk"]): item for item in map(from_wire, wires)}


# -- drafts ----------------------------------------------------------------------------------------------------------
def spades(
    game_id: str | None,
    teams: str,
    when: str | int,
    outcome: str | None = "team1",
    *,
    minutes: int = 0,
    quits: Sequence[tuple[str, int]] = (),
    **more: Any,
) -> GameDraft:
    """``spades("x", "ac-bd", "2026-07-03 20:00")``: single letters are players; ``minutes`` how long it took."""
    end = at(when) if isinstance(when, str) else when
    one, two = teams.split("-")
    result: dict[str, Any] = {"teams": [list(one), list(two)], "outcome": outcome}
    if quits:
        result["quits"] = [{"player": p, "at": iso_of(end - before * MINUTE)} for p, before in quits]
    return GameDraft(
        game_id=game_id,
        started_at=end - minutes * MINUTE,
        finished_at=end,
        result=result,
        distinct=True,
        **more,
    )


def duel(game_id: str | None, winner: str, loser: str, when: str | int, *, minutes: int = 0, **more: Any) -> GameDraft:
    """A Bridier game of two."""
    end = at(when) if isinstance(when, str) else when
    result = {"players": [winner, loser], "winner": winner}
    start = end - minutes * MINUTE
    return GameDraft(game_id=game_id, started_at=start, finished_at=end, result=result, distinct=True, **more)


def iso_of(instant: int) -> str:
    """An instant as JSON says it."""
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=instant)).isoformat()


# -- the audit -------------------------------------------------------------------------------------------------------
@dataclass
class Expected:
    """What a fold of the whole ledger says must be stored."""

    fold: Fold
    rows: dict[tuple[str, str], str] = field(default_factory=dict)
    rated: list[Rated] = field(default_factory=list)
    pointers: set[tuple[str, str]] = field(default_factory=set)
    open: dict[str, Opened] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    closings: dict[int, dict[str, PlayerState]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    events: int = 0


def expect(pool: Pool, events: Sequence[Event], closed_until: int | None) -> Expected:
    """Fold the whole ledger from nothing."""
    rules = replay.rules_in(pool.system, events)
    fold = Fold(pool.system, rules, pool.time_zone)
    story = replay.story_of(pool.system, rules, events)
    expected = Expected(fold, events=len(events))
    for event in sorted(events, key=lambda e: e.id):
        if event.kind == "merge":
            expected.aliases[event.player] = event.value["into"]
        elif event.kind == "unmerge":
            expected.aliases.pop(event.player, None)
    for what in fold.run(story, closings_after=None, closed_until=closed_until):
        if isinstance(what, Rated):
            month = store.rated_key(pool.id, what.order, instant_of(what.order))[0]
            expected.rows[(month, what.order)] = store.dump(what)
            expected.rated.append(what)
            expected.pointers |= {(keys.history(pool.id, sid), what.order) for sid, *_ in what.after}
            if what.game is not None and what.kind == FINISH:
                for kind, name in (("tournament", what.game.tournament), ("group", what.game.group)):
                    if name:
                        expected.pointers.add((keys.label(pool.id, f"{kind}:{name}"), what.order))
        elif isinstance(what, Opened):
            expected.open[f"{what.game.club}#{what.game.game_id}"] = what
        elif isinstance(what, Held):
            expected.held[f"{what.game.club}#{what.game.game_id}"] = what
        else:
            expected.closings[what.at] = msgspec.convert(msgspec.to_builtins(what.states), dict[str, PlayerState])
    return expected


def audit(ladder: Ladder, pool_id: str = "p", *, settled: bool = True) -> Expected:
    """Everything stored of a pool equals a fold of its ledger, to the bit. Returns that fold."""
    ladder_pool = ladder.pool(pool_id)
    items = ladder.items()
    cursor = ladder.cursor(pool_id)
    events = [
        msgspec.json.decode(item["event"], type=Event)
        for (pk, _), item in items.items()
        if pk.startswith(f"LEDGER#{pool_id}#")
    ]
    inbox = [sk for pk, sk in items if pk.startswith(f"INBOX#{pool_id}#")]
    if settled:
        assert inbox == []
        assert (f"POOL#{pool_id}", "APPLIED") not in items
    events = [e for e in events if e.id not in set(inbox)]
    expected = expect(ladder_pool, events, cursor.closed_until)
    view = cursor.view

    def visible(prefix: str) -> dict[tuple[str, str], str]:
        found = {k: view.pick(item) for k, item in items.items() if k[0].startswith(prefix)}
        return {k: text for k, text in found.items() if text is not None}

    assert visible(f"RATED#{pool_id}#") == expected.rows
    states = {sk: store.load_state(text) for (_, sk), text in visible(f"STATE#{pool_id}#").items()}
    assert {sid: row.state for sid, row in states.items()} == expected.fold.states
    last = {sid: row.order for row in expected.rated for sid, *_ in row.after}
    assert {sid: row.last for sid, row in states.items()} == {sid: last[sid] for sid in states}
    assert {sk: msgspec.json.decode(t, type=store.OpenRow) for (_, sk), t in visible(f"OPEN#{pool_id}").items()} == {
        ref: store.OpenRow(o.game, o.start) for ref, o in expected.open.items()
    }
    assert {sk: msgspec.json.decode(t, type=store.HeldRow) for (_, sk), t in visible(f"HELD#{pool_id}").items()} == {
        ref: store.HeldRow(h.game, h.reason) for ref, h in expected.held.items()
    }
    assert {sk: text for (_, sk), text in visible(f"ALIASES#{pool_id}").items()} == expected.aliases
    _audit_pointers(pool_id, items, expected)
    assert cursor.hash == to_hex(state_hash(ladder_pool.system, expected.fold.states))
    assert cursor.players == len(expected.fold.states)
    assert cursor.games == sum(row.kind == FINISH for row in expected.rated)
    assert cursor.held == len(expected.held)
    assert cursor.position == expected.events
    _audit_chains(ladder_pool, expected)
    _audit_checkpoints(ladder, ladder_pool, cursor, expected)
    return expected


def _audit_pointers(pool: str, items: Mapping[tuple[str, str], Any], expected: Expected) -> None:
    found = {key for key in items if key[0].startswith((f"HIST#{pool}#", f"LABEL#{pool}#"))}
    assert expected.pointers <= found
    orders = {row.order: row for row in expected.rated}
    for pk, order in found - expected.pointers:
        row = orders.get(order)  # readers pass over a pointer that leads nowhere, or to a row that did not change him
        assert row is None or pk.split("#", 2)[2] not in [sid for sid, *_ in row.after], (pk, order)
    members = {pk.removeprefix("MEMBER#") for pk, sk in items if pk.startswith("MEMBER#") and sk == pool}
    assert set(expected.fold.states) <= members


def _audit_chains(pool: Pool, expected: Expected) -> None:
    """Each player's lines hang together and add up: start + changes = current."""
    lines: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    for row in expected.rated:
        if row.game is not None:
            content = row.game.content
            if row.alias:
                content = pool.system.translate(content, lambda p, alias=row.alias: alias.get(p, p))
            before = dict(zip(pool.system.players(content), row.before, strict=True))
        else:
            before = {sid: b for (sid, *_), b in zip(row.after, row.before, strict=False)}
        for sid, rating_, index, *_ in row.after:
            lines.setdefault(sid, []).append(((before[sid][0], before[sid][1]), (rating_, index)))
    assert set(lines) == set(expected.fold.states)
    for sid, changes in lines.items():
        for (_, after), (before_next, _) in itertools.pairwise(changes):
            assert after == before_next
        state = expected.fold.states[sid]
        moved = [sum(b[i] - a[i] for a, b in changes) for i in (0, 1)]
        assert (changes[0][0][0] + moved[0], changes[0][0][1] + moved[1]) == (state.rating, state.index)


def _audit_checkpoints(ladder: Ladder, pool: Pool, cursor: store.Cursor, expected: Expected) -> None:
    index = store.read_index(ladder.ctx.table, pool.id)
    assert set(index.months) >= {store.month_of(key) for key in expected.rows}
    carried = {row.order: row.carried for row in expected.rated if row.carried is not None}
    for mark in index.checkpoints:
        assert cursor.closed_until is not None
        assert mark.at <= cursor.closed_until
        states = store.get_checkpoint(ladder.ctx.data, mark.key)
        assert states is not None
        there = expected.closings[mark.at]
        late = set(there) - set(states)
        assert {sid: there[sid] for sid in states} == states
        assert late <= {order.split("!")[1] for order in carried}, "only a carried-over rating may come in later"
