"""The rater: what waits in a pool's inbox becomes ratings, in played order, exactly once.

Two ways lead there, and both end in one transaction that is conditional on the cursor's version:

* *append*: everything new lies behind the head. Only the players concerned are read; whole games are written in
  transactions of at most 100 items, each of which takes its inbox entries out and moves the cursor.
* *replay*: something lies before the head (a late result, a correction, new rules, a merge), or a closing is due.
  From the last checkpoint that it cannot touch, all is folded anew and compared with what is stored; the rows that
  differ are written, in place when they fit one transaction, else under a new generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from shared.ledger import calendar
from shared.ledger.events import Event
from shared.ledger.fold import (
    Closed,
    Fold,
    GameRef,
    Held,
    Opened,
    Rated,
    Reset,
    Start,
    Story,
    closing_boundary,
)
from shared.ledger.order import (
    BEGINNING,
    END,
    RESET,
    SNAPSHOT,
    START,
    after_closing,
    instant_of,
    just_after,
    order,
    subject_of,
    tick_of,
    utc_month,
)
from shared.ledger.replay import follow, start_of
from shared.ledger.statehash import MODULUS, line_hash, to_hex
from shared.ratings.base import FINISH, Game, LiveSystem, PlayerState, Rating
from shared.store import keys, ledger, notes, pools
from shared.store import rated as store
from shared.store.pools import Pool
from shared.store.rated import Checkpoint, Cursor, Draft, HeldRow, Index, OpenRow, StateRow
from shared.store.table import (
    TRANSACTION_ITEMS,
    Check,
    ConditionFailed,
    Delete,
    Item,
    Key,
    Operation,
    Put,
    Table,
    Update,
)
from shared.usecases import wake
from shared.usecases.context import Context

INBOX_LIMIT = 2000
"""Events taken at once; their ids fit an item of 100 KB."""
CHECKPOINT_SPACING = 300
"""A past closing gets a checkpoint when so many moments lie between: replaying fewer costs less than keeping it."""
CHECKPOINTS = 150
"""How many checkpoints a pool keeps; beyond, every second one of the older half goes."""
CAUSES = 5
"""A journal names so many of the events that were applied together."""
OUTBOX_NAMES = 300
"""Beyond so many changed players and games, the publisher is told to look at the whole pool."""
PASSES = 200
"""Rounds of one call; what is left then waits for the next wake-up."""


class Overtaken(Exception):
    """Another run has moved the pool's cursor; read again."""


@dataclass
class Applied:
    """What a call of ``apply`` did."""

    pool: str
    events: int = 0
    closings: int = 0
    replays: int = 0
    transactions: int = 0
    position: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.events or self.closings)


@dataclass
class Run:
    """One pass over a pool: what it read and what it is about to write."""

    ctx: Context
    pool: Pool
    cursor: Cursor
    result: Applied
    now: int
    outbox_players: set[str] = field(default_factory=set)
    outbox_games: set[GameRef] = field(default_factory=set)
    since: int = END

    @property
    def table(self) -> Table:
        """The table."""
        return self.ctx.table

    def system_fold(self, states: dict[str, PlayerState]) -> Fold:
        """A fold of this pool over these states."""
        return Fold(self.pool.system, self.pool.rules, self.pool.time_zone, states)


def apply(ctx: Context, pool_id: str, now: int | None = None) -> Applied:
    """Bring a pool up to date: its inbox applied, the closings due by ``now`` inserted.

    Safe to call at any time, any number of times, concurrently: the ratings come out the same.

    Raises:
        Busy: the table did not take the calls; whatever was committed stands, the rest waits.
        KeyError: there is no such pool.
    """
    moment = ctx.clock() if now is None else now
    result = Applied(pool_id)
    overtaken = 0
    for _ in range(PASSES):
        try:
            if not _one_pass(ctx, pool_id, moment, result):
                break
        except (Overtaken, store.StaleView):
            overtaken += 1
            if overtaken > 50:
                raise
    if result.changed:
        wake.ask(ctx, pool_id)
    return result


def _one_pass(ctx: Context, pool_id: str, now: int, result: Applied) -> bool:
    """One round: read, decide, write. False when nothing is left to do."""
    pool = pools.load(ctx.table, pool_id)
    if pool is None:
        raise KeyError(pool_id)
    cursor = store.read_cursor(ctx.table, pool_id)
    removed = _finish_removals(ctx.table, pool_id)
    events = [e for e in ledger.read_inbox(ctx.table, pool_id, INBOX_LIMIT) if e.id not in removed]
    due = calendar.last_closing(max(now, cursor.closed_until or BEGINNING), pool.time_zone)
    closing_due = cursor.closed_until is None or due > cursor.closed_until
    result.position = cursor.position
    if not events and not closing_due:
        return False
    starts = [e for e in events if e.kind == "start"]
    if starts and not closing_due:
        events = starts  # they come before everything else of their players, and are folded alone
    run = Run(ctx, pool, cursor, result, now)
    current = _newest_revisions(run, events)
    if not closing_due and _append(run, events, current):
        return True
    _replay(run, events, current, due)
    return True


# -- the inbox ---------------------------------------------------------------------------------------------------
def _applied_key(pool: str) -> Key:
    return f"POOL#{pool}", "APPLIED"


def _finish_removals(table: Table, pool: str) -> set[str]:
    """Take out of the inbox what the last replay applied; a crash may have come between."""
    item = table.get(*_applied_key(pool))
    if item is None:
        return set()
    entries: list[list[Any]] = msgspec.json.decode(item["events"])
    table.batch_write(deletes=[(keys.inbox(pool, number), event_id) for number, event_id in entries])
    try:
        table.write(Delete(_applied_key(pool), "#events = :was", {"was": item["events"]}))
    except ConditionFailed:
        raise Overtaken from None
    return {event_id for _, event_id in entries}


def _newest_revisions(run: Run, events: Sequence[Event]) -> list[Event]:
    """The events that still matter: of each game only its newest revision, as an older one arriving late must not
    bring back what was corrected; its successor is in already or waits too."""
    games = {keys.game(run.pool.id, e.game.club, e.game.game_id) for e in events if e.game is not None}
    found = run.table.batch_get(games)
    current: list[Event] = []
    for event in events:
        if event.game is not None:
            item = found.get(keys.game(run.pool.id, event.game.club, event.game.game_id))
            if item is not None and item["revision"] > event.game.revision:
                continue
        current.append(event)
    return current


# -- appending ---------------------------------------------------------------------------------------------------
@dataclass
class _Append:
    games: list[Game] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    resets: list[Reset] = field(default_factory=list)
    known: dict[GameRef, Sequence[Rating]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    """Merges that change no rating here yet."""
    states: dict[str, StateRow] = field(default_factory=dict)
    opened: dict[GameRef, OpenRow] = field(default_factory=dict)


def _append(run: Run, events: Sequence[Event], current: Sequence[Event]) -> bool:
    """Apply all these events behind the head; False (and nothing written) when one of them does not lie there."""
    plan = _plan_append(run, current)
    if plan is None:
        return False
    fold = run.system_fold({sid: row.state for sid, row in plan.states.items()})
    widest = max([len(run.pool.system.players(g.content)) for g in plan.games], default=1)
    batch = _Batch(run, {sid: row.last for sid, row in plan.states.items()}, fold, reserve=8 + 4 * widest)
    for player, into in plan.merged.items():
        batch.draft.rows[(keys.aliases(run.pool.id), player)] = into
    waiting: dict[Any, Event] = {_waits_for(e): e for e in current}
    told = {(g.club, g.game_id) for g in plan.games}
    batch.take([e for e in events if _waits_for(e) not in waiting or waiting[_waits_for(e)] is not e])
    batch.take([e for e in current if not _tells(e, told)])
    pending = {(g.club, g.game_id): _moments_left(run, g) for g in plan.games}
    for game in plan.games:
        # An open game that began before the head, or whose content changed without a new moment (a substitute sat
        # down), only has its row written.
        ref = (game.club, game.game_id)
        if pending[ref] == 0 and game.finished_at is None and ref in plan.known:
            batch.open(game, list(plan.known[ref]), "")
            batch.take([waiting[ref]])
    story = Story(plan.games, plan.starts, plan.resets, plan.aliases, plan.known)
    until = run.cursor.closed_until if plan.starts else None
    since = tick_of(run.cursor.head) if run.cursor.head else None
    for what in fold.run(story, since=since, closings_after=None, closed_until=until):
        if isinstance(what, Closed):
            continue
        ref = (what.game.club, what.game.game_id) if what.game is not None else ("", "")
        if isinstance(what, Held):
            batch.hold(what)
            batch.take([waiting[ref]])
        elif isinstance(what, Opened):
            batch.open(what.game, what.start, what.order)
            if pending[ref] == 0:
                batch.take([waiting[ref]])
        else:
            batch.rated(what)
            if what.game is None:
                batch.take([e for e in [waiting.get((what.kind, subject_of(what.order), what.at))] if e is not None])
            else:
                pending[ref] -= 1
                if what.kind == FINISH:
                    batch.close_open(ref, plan)
                elif what.game.finished_at is None:
                    batch.open(what.game, what.start, what.order)
                if pending[ref] == 0:
                    batch.take([waiting[ref]])
        if batch.is_full():
            batch.flush()
    batch.take(batch.untaken(events))
    batch.flush()
    return True


def _waits_for(event: Event) -> Any:
    """What the fold will tell when it has come to this event."""
    if event.game is not None:
        return (event.game.club, event.game.game_id)
    if event.kind == "start":
        return (START, event.player, event.accepted_at)
    if event.kind == "rank-me" and not event.value["on"]:
        return (RESET, event.player, event.value["at"])
    return event.id


def _tells(event: Event, told: set[GameRef]) -> bool:
    """Whether the fold has anything to tell of this event."""
    if event.game is not None:
        return (event.game.club, event.game.game_id) in told
    return event.kind == "start" or (event.kind == "rank-me" and not event.value["on"])


def _is_rated(game: Game) -> bool:
    return game.rated and not game.void


def _translated(run: Run, game: Game, aliases: dict[str, str]) -> Game:
    if not aliases:
        return game
    content = run.pool.system.translate(game.content, lambda p: aliases.get(p, p))
    return msgspec.structs.replace(game, content=content)


def _moments(run: Run, game: Game) -> list[tuple[str, int]]:
    """(order, instant) of the moments of a game, as the fold will order them."""
    number = max((i for i, r in enumerate(run.pool.rules) if r.since <= game.started_at), default=None)
    if number is None:
        return []
    moments = run.pool.system.moments(game, run.pool.rules[number].settings)
    head = (game.round or 0, game.sequence, game.club, game.game_id)
    if game.finished_at == game.started_at:
        return [(order(m.at, FINISH, *head, i), m.at) for i, m in enumerate(moments)]
    return [(order(m.at, m.kind, *head, m.number), m.at) for m in moments]


def _moments_left(run: Run, game: Game) -> int:
    return sum(1 for key, _ in _moments(run, game) if key > run.cursor.head)


def _plan_append(run: Run, current: Sequence[Event]) -> _Append | None:
    """Read what appending needs, or None when an event does not lie behind the head."""
    plan = _Append()
    head = run.cursor.head
    seen: set[GameRef] = set()
    mentioned: set[str] = set()
    for event in current:
        if event.kind == "rank-me":
            if event.value["on"]:
                continue
            if order(event.value["at"], RESET, game_id=event.player) <= head:
                return None
            plan.resets.append(Reset(event.value["at"], event.player))
            mentioned.add(event.player)
        elif event.kind == "start":
            plan.starts.append(start_of(run.pool.system, run.pool.rules, event))
            mentioned.add(event.player)
        elif event.kind == "merge" and not _has_played(run, event.player):
            plan.merged[event.player] = event.value["into"]
        elif event.kind != "game" or event.game is None:
            return None
        else:
            game = event.game
            ref = (game.club, game.game_id)
            if ref in seen:
                return None
            seen.add(ref)
            if game.revision == 1 and not _is_rated(game):
                continue
            if game.revision > 1 and (event.what not in ("quit", "finished", "substituted") or not _is_rated(game)):
                return None
            keys_ = _moments(run, game)
            behind = [k for k, _ in keys_ if k > head]
            if game.revision == 1:
                if len(behind) != len(keys_):
                    return None
                if game.finished_at is None and not keys_ and order(game.started_at, SNAPSHOT) <= head:
                    pass  # an open game that began before the head: its start ratings are looked up below
            else:
                opened = run.cursor.view.pick(run.table.get(keys.open_games(run.pool.id), f"{ref[0]}#{ref[1]}"))
                if opened is None:
                    return None
                row = msgspec.json.decode(opened, type=OpenRow)
                before = _moments(run, row.game)
                if row.game.revision != game.revision - 1 or keys_[: len(before)] != before:
                    return None
                if len(behind) != len(keys_) - len(before) or row.game.started_at != game.started_at:
                    return None
                plan.opened[ref] = row
                plan.known[ref] = row.start
            plan.games.append(game)
            mentioned.update(run.pool.system.mentioned(game.content))
    if not _read_players(run, plan, mentioned):
        return None
    return plan


def _has_played(run: Run, sid: str) -> bool:
    """Whether merging this player away could change anything. Every pool is told of every merge, most for nothing.

    Without a state he has no rated moment; he may sit in an open or held game, be merged already, or (where the rules
    know live games) have left the ranking before his first game.
    """
    table, pool, view = run.table, run.pool, run.cursor.view
    if isinstance(pool.system, LiveSystem) or store.read_states(table, pool.id, [sid], view):
        return True
    if view.pick(table.get(keys.aliases(pool.id), sid)) is not None:
        return True
    open_games, held = store.read_open(table, pool.id, view), store.read_held(table, pool.id, view)
    games = [row.game for row in (*open_games.values(), *held.values())]
    return any(sid in pool.system.mentioned(game.content) for game in games)


def _read_players(run: Run, plan: _Append, mentioned: set[str]) -> bool:
    """Aliases and states of the players, and their ratings at starts that lie before the head."""
    table, pool, view = run.table, run.pool.id, run.cursor.view
    wanted = mentioned
    while wanted:
        found = table.batch_get([(keys.aliases(pool), sid) for sid in wanted])
        new = {sk: text for (_, sk), item in found.items() if (text := view.pick(item)) is not None}
        new |= {sid: plan.merged[sid] for sid in wanted if sid in plan.merged}
        plan.aliases.update(new)
        wanted = {into for into in new.values() if into not in plan.aliases}
    plan.aliases = follow(plan.aliases)
    people = {plan.aliases.get(sid, sid) for sid in mentioned}
    plan.states = store.read_states(table, pool, people, view)
    for start in plan.starts:
        if start.player in plan.states or start.player in plan.aliases:
            return False
    head = tick_of(run.cursor.head) if run.cursor.head else None
    starting = {s.player for s in plan.starts}
    for game in plan.games:
        ref = (game.club, game.game_id)
        if ref in plan.known or game.started_at == game.finished_at or head is None:
            continue
        at = order(game.started_at, SNAPSHOT, 0, 0, game.club, game.game_id)
        if tick_of(at) > head:
            continue
        players = run.pool.system.players(_translated(run, game, plan.aliases).content)
        if starting & set(players):
            return False
        plan.known[ref] = [_rating_at(run, plan.states.get(p), p, game.started_at) for p in players]
    return True


def _rating_at(run: Run, row: StateRow | None, player: str, at: int) -> Rating:
    """A player's rating after everything up to and including an instant."""
    limit = just_after(at)
    if row is not None and row.last <= limit:
        return (row.state.rating, row.state.index)
    key = _last_row_until(run, player, limit) if row is not None else None
    if key is not None:
        item = run.table.get(*store.rated_key(run.pool.id, key, instant_of(key)))
        text = run.cursor.view.pick(item)
        if text is not None:
            for sid, rating, index, *_ in store.load_rated(text).after:
                if sid == player:
                    return (rating, index)
    fresh = run.pool.system.start(None, run.pool.settings)
    return (fresh.rating, fresh.index)


def _last_row_until(run: Run, player: str, limit: str) -> str | None:
    """The order of a player's last row up to a limit that exists in this view."""
    for item in run.table.query(keys.history(run.pool.id, player), last=limit, forward=False):
        key: str = item["sk"]
        row = run.table.get(*store.rated_key(run.pool.id, key, instant_of(key)))
        text = run.cursor.view.pick(row)
        if text is not None and any(sid == player for sid, *_ in store.load_rated(text).after):
            return key
    return None


class _Batch:
    """What one appending transaction is to write; flushed before it outgrows DynamoDB's limit."""

    def __init__(self, run: Run, last: dict[str, str], fold: Fold, *, reserve: int) -> None:
        self.run = run
        self.reserve = reserve
        self.last = last
        self.fold = fold
        self.old_hash = {sid: line_hash(run.pool.system, sid, s) for sid, s in fold.states.items()}
        self.known_players = set(fold.states)
        self.taken: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        self.draft = Draft()
        self.dirty: dict[str, str] = {}
        self.removals: list[Event] = []
        self.opens: dict[GameRef, OpenRow | None] = {}
        self.holds: list[Held] = []
        self.games = 0
        self.head = self.run.cursor.head
        self.touched_games: set[GameRef] = set()
        self.since = END
        self.months: set[str] = set()

    def take(self, events: Iterable[Event]) -> None:
        """These events are done with this batch."""
        for event in events:
            if event.id not in self.taken:
                self.taken.add(event.id)
                self.removals.append(event)
                if self.is_full():
                    self.flush()

    def untaken(self, events: Iterable[Event]) -> list[Event]:
        """Events not yet done with."""
        return [e for e in events if e.id not in self.taken]

    def rated(self, row: Rated) -> None:
        """A row of the fold."""
        key = store.rated_key(self.run.pool.id, row.order, instant_of(row.order))
        self.draft.rows[key] = store.dump(row)
        self.months.add(key[0])
        self.draft.pointers |= pointers_of(self.run.pool.id, row, row.order)
        for sid, *_ in row.after:
            self.dirty[sid] = row.order
        self.head = max(self.head, row.order)
        if row.game is not None:
            self.touched_games.add((row.game.club, row.game.game_id))
            self.games += row.kind == FINISH
        self.since = min(self.since, row.at)

    def open(self, game: Game, start: list[Rating], key: str) -> None:
        """An open game's row."""
        self.opens[(game.club, game.game_id)] = OpenRow(game, start)
        self.touched_games.add((game.club, game.game_id))
        self.head = max(self.head, key)

    def close_open(self, ref: GameRef, plan: _Append) -> None:
        """A game that is no longer open."""
        if ref in plan.opened or ref in self.opens:
            self.opens[ref] = None

    def hold(self, held: Held) -> None:
        """A game that cannot be rated."""
        self.holds.append(held)
        self.touched_games.add((held.game.club, held.game.game_id))

    def is_full(self) -> bool:
        """Whether one more moment might not fit."""
        rows = len(self.draft.rows) + len(self.draft.pointers) + 2 * len(self.dirty)
        return rows + len(self.removals) + len(self.opens) + len(self.holds) + self.reserve > TRANSACTION_ITEMS

    def flush(self) -> None:
        """Write it, and move the cursor."""
        run = self.run
        if not self.removals and not self.draft.rows and not self.opens and not self.holds:
            return
        pool, cursor = run.pool, run.cursor
        total = int(cursor.hash, 16)
        new_players = 0
        for sid, key in self.dirty.items():
            state = self.fold.states[sid]
            self.last[sid] = key
            self.draft.rows[keys.state(pool.id, sid)] = store.dump(StateRow(state, key))
            new_hash = line_hash(pool.system, sid, state)
            total += new_hash - self.old_hash.get(sid, 0)
            self.old_hash[sid] = new_hash
            if sid not in self.known_players:
                self.known_players.add(sid)
                new_players += 1
                self.draft.pointers.add((keys.memberships(sid), pool.id))
        for ref, row in self.opens.items():
            self.draft.rows[(keys.open_games(pool.id), "#".join(ref))] = None if row is None else store.dump(row)
        for held in self.holds:
            ref = (held.game.club, held.game.game_id)
            self.draft.rows[(keys.held(pool.id), "#".join(ref))] = store.dump(HeldRow(held.game, held.reason))
        moved = replace(
            cursor,
            position=cursor.position + len(self.removals),
            head=self.head,
            hash=to_hex(total % MODULUS),
            players=cursor.players + new_players,
            games=cursor.games + self.games,
            held=cursor.held + len(self.holds),
            newest=max([cursor.newest, *(e.accepted_at for e in self.removals)]),
        )
        operations: list[Operation] = [store.put_cursor(moved, cursor.version)]
        operations += store.in_place(self.draft, cursor.generation)
        operations += [ledger.removal(pool.id, e) for e in self.removals]
        if self.dirty or self.touched_games:
            operations.append(outbox_entry(run, moved, set(self.dirty), self.touched_games, self.since))
        if self.months:
            months = {m.rsplit("#", 1)[1] for m in self.months}
            operations.append(Update(store.index_key(pool.id), "ADD #months :months", {"months": months}))
        _commit(run, operations, moved)
        run.result.events += len(self.removals)
        self._reset()


def pointers_of(pool: str, row: Rated, key: str) -> set[Key]:
    """Where a row is to be found from: each changed player's history, and the lists of its tournament and group."""
    found = {(keys.history(pool, sid), key) for sid, *_ in row.after}
    if row.game is not None and row.kind == FINISH:
        if row.game.tournament:
            found.add((keys.label(pool, f"tournament:{row.game.tournament}"), key))
        if row.game.group:
            found.add((keys.label(pool, f"group:{row.game.group}"), key))
    return found


def outbox_entry(run: Run, moved: Cursor, players: set[str], games: set[GameRef], since: int) -> Put:
    """Tells the publisher what changed."""
    body: dict[str, Any] = {"since": since}
    if len(players) + len(games) > OUTBOX_NAMES:
        body["all"] = True
    else:
        body["players"] = sorted(players)
        body["games"] = sorted(games)
    sk = f"{run.now:016x}-{moved.position:012d}-{run.ctx.token(8)}"
    return Put({"pk": keys.outbox(run.pool.id), "sk": sk, "body": msgspec.json.encode(body).decode()})


def _commit(run: Run, operations: Sequence[Operation], moved: Cursor) -> None:
    try:
        run.table.transact(operations)
    except ConditionFailed:
        raise Overtaken from None
    run.cursor = replace(moved, version=run.cursor.version + 1)
    run.result.transactions += 1
    run.result.position = moved.position


# -- replaying ---------------------------------------------------------------------------------------------------
@dataclass
class _Old:
    """What is stored behind the checkpoint."""

    items: dict[Key, Item] = field(default_factory=dict)
    rows: dict[Key, str] = field(default_factory=dict)
    rated: dict[Key, Rated] = field(default_factory=dict)
    games: dict[GameRef, Game] = field(default_factory=dict)
    starts: dict[GameRef, Sequence[Rating]] = field(default_factory=dict)
    resets: dict[tuple[int, str], Reset] = field(default_factory=dict)
    carried: dict[str, Start] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    kept_held: set[GameRef] = field(default_factory=set)


def _touched(event: Event) -> int:
    """The earliest instant at which an event can change ratings."""
    if event.kind == "game" and event.game is not None:
        return min(event.game.started_at, event.touches if event.touches is not None else END)
    if event.kind == "rank-me":
        return END if event.value["on"] else int(event.value["at"])
    if event.kind == "rules" and event.touches is not None:
        return event.touches
    return BEGINNING


def _read_old(run: Run, index: Index, boundary: str, start_month: str) -> _Old:
    old = _Old()
    table, pool, view = run.table, run.pool.id, run.cursor.view
    partitions: list[tuple[str, str | None]] = [
        (keys.rated(pool, month), boundary or None) for month in index.months if month >= start_month
    ]
    if boundary and "0000-00" in index.months:
        partitions.append((keys.rated(pool, "0000-00"), None))
    for pk, first in partitions:
        for item in table.query(pk, first=first):
            key = (pk, item["sk"])
            old.items[key] = item
            text = view.pick(item)
            if text is None:
                continue
            row = store.load_rated(text)
            if row.kind == START:
                if row.carried is not None:
                    old.carried[subject_of(row.order)] = Start(subject_of(row.order), row.carried, row.at)
                if boundary:
                    continue
            old.rows[key] = text
            old.rated[key] = row
            if row.kind == RESET:
                old.resets[(row.at, subject_of(row.order))] = Reset(row.at, subject_of(row.order))
            if row.kind == FINISH and row.game is not None:
                ref = (row.game.club, row.game.game_id)
                old.games[ref] = row.game
                old.starts[ref] = row.start
    _read_side_rows(run, old, boundary)
    return old


def _ref(sk: str) -> GameRef:
    club, game_id = sk.split("#")
    return (club, game_id)


def _read_side_rows(run: Run, old: _Old, boundary: str) -> None:
    """Open and held games, aliases: all of them, they are few."""
    table, pool, view = run.table, run.pool.id, run.cursor.view
    for pk in (keys.open_games(pool), keys.held(pool), keys.aliases(pool)):
        for item in table.query(pk):
            key = (pk, item["sk"])
            old.items[key] = item
            text = view.pick(item)
            if text is None:
                continue
            old.rows[key] = text
            if pk == keys.aliases(pool):
                old.aliases[item["sk"]] = text
                continue
            ref = _ref(item["sk"])
            if pk == keys.open_games(pool):
                row = msgspec.json.decode(text, type=OpenRow)
                old.games[ref] = row.game
                old.starts[ref] = row.start
            else:
                game = msgspec.json.decode(text, type=HeldRow).game
                if boundary and game.started_at <= instant_of(boundary):
                    old.kept_held.add(ref)
                else:
                    old.games.setdefault(ref, game)


def _from_ledger(run: Run, old: _Old, events: Sequence[Event]) -> None:
    """Replace what the rows say by what the ledger says: the ratings from the ledger alone."""
    old.games, old.resets, old.carried, old.aliases = {}, {}, {}, {}
    old.kept_held = set()
    found = sorted(read_ledger(run.ctx, run.pool), key=lambda e: e.id)
    waiting = {e.id for e in events}
    late = {e.id for e in ledger.read_inbox(run.table, run.pool.id, 10**9)} - waiting
    included = [e for e in found if e.id not in late and e.id not in waiting]
    _tell(run, old, included)
    run.cursor = replace(run.cursor, position=len(included))


def read_ledger(ctx: Context, pool: Pool) -> list[Event]:
    """All events of a pool's ledger, from the month in which it was opened to the present one."""
    found: list[Event] = []
    at, end = pool.created_at, ctx.clock()
    month, last = utc_month(at), utc_month(end)
    while month <= last:
        found.extend(ledger.read_month(ctx.table, pool.id, month))
        year, number = calendar.next_month(int(month[:4]), int(month[5:]))
        month = f"{year:04d}-{number:02d}"
    return found


def _tell(run: Run, old: _Old, events: Iterable[Event]) -> None:
    """Add events to the story."""
    for event in events:
        if event.game is not None:
            ref = (event.game.club, event.game.game_id)
            known = old.games.get(ref)
            if known is None or known.revision < event.game.revision:
                old.games[ref] = event.game
                old.kept_held.discard(ref)
        elif event.kind == "rank-me" and not event.value["on"]:
            reset = Reset(event.value["at"], event.player)
            old.resets[reset] = reset
        elif event.kind == "start":
            old.carried[event.player] = start_of(run.pool.system, run.pool.rules, event)
        elif event.kind == "merge":
            old.aliases[event.player] = event.value["into"]
        elif event.kind == "unmerge":
            old.aliases.pop(event.player, None)


@dataclass
class _Replay:
    """A replay before it is written: what stood, what the fold says now."""

    index: Index
    boundary: str
    old: _Old
    new: _New
    states: dict[str, PlayerState]
    last: dict[str, str]
    marks: list[Checkpoint]
    rebuild: bool


def _replay(run: Run, events: Sequence[Event], current: Sequence[Event], due: int) -> None:
    """Fold anew from the last checkpoint that these events cannot touch, and write what differs."""
    _write_replay(run, events, _fold_again(run, events, current, due, dry=False), due)


@dataclass
class _Prepared:
    """All that a fold from a checkpoint needs."""

    index: Index
    checkpoint: Checkpoint | None
    boundary: str
    old: _Old
    fold: Fold
    story: Story


def _prepare(run: Run, touched: int, events: Sequence[Event], current: Sequence[Event], *, rebuild: bool) -> _Prepared:
    """Read what lies behind the last checkpoint before ``touched``, and put the new events into it."""
    index = store.read_index(run.table, run.pool.id)
    checkpoint, states = _checkpoint_before(run, index, touched)
    boundary = after_closing(checkpoint.at) if checkpoint else ""
    old = _read_old(run, index, boundary, utc_month(checkpoint.at) if checkpoint else "")
    if rebuild:
        _from_ledger(run, old, events)
    _tell(run, old, current)
    aliases = follow(old.aliases)
    fold = run.system_fold(states)
    starts: list[Start] = list(old.carried.values())
    if checkpoint is not None:
        _bring_in(run, fold, starts, aliases, checkpoint.at)
        starts = []
    games = [g for ref, g in old.games.items() if ref not in old.kept_held]
    story = Story(games, starts, list(old.resets.values()), aliases, old.starts)
    return _Prepared(index, checkpoint, boundary, old, fold, story)


def _fold_again(run: Run, events: Sequence[Event], current: Sequence[Event], due: int, *, dry: bool) -> _Replay:
    pool = run.pool
    rebuild = any(e.kind == "rebuild" for e in current)
    touched = BEGINNING if rebuild else min([_touched(e) for e in current], default=END)
    ready = _prepare(run, touched, events, current, rebuild=rebuild)
    old = ready.old
    new, last, marks = _run_fold(run, ready.fold, ready.story, ready.checkpoint, due, dry=dry)
    for ref in old.kept_held:
        key = (keys.held(pool.id), "#".join(ref))
        new.rows[key] = old.rows[key]
    for player, into in old.aliases.items():
        new.rows[(keys.aliases(pool.id), player)] = into
    return _Replay(ready.index, ready.boundary, old, new, ready.fold.states, last, marks, rebuild)


def closings_since(ctx: Context, pool: Pool, since: int) -> Iterator[Closed]:
    """The closings at and after an instant with the states of all players right after each, as the ledger has it now.

    For lists of past months. The states belong to the fold: read them before taking the next closing.
    """
    cursor = store.read_cursor(ctx.table, pool.id)
    if cursor.closed_until is None:
        return
    run = Run(ctx, pool, cursor, Applied(pool.id), ctx.clock())
    ready = _prepare(run, since - 1, [], [], rebuild=False)
    first = None if ready.checkpoint is None else closing_boundary(ready.checkpoint.at)
    after = ready.checkpoint.at if ready.checkpoint else None
    for what in ready.fold.run(ready.story, since=first, closings_after=after, closed_until=cursor.closed_until):
        if isinstance(what, Closed) and what.at >= since:
            yield what


def _checkpoint_before(run: Run, index: Index, touched: int) -> tuple[Checkpoint | None, dict[str, PlayerState]]:
    for checkpoint in reversed(index.checkpoints):
        if checkpoint.at <= touched:
            states = store.get_checkpoint(run.ctx.data, checkpoint.key)
            if states is not None:
                return checkpoint, states
    return None, {}


def _bring_in(run: Run, fold: Fold, starts: Sequence[Start], aliases: dict[str, str], until: int) -> None:
    """Players who carried a rating over after the checkpoint was made: they have no games before it, so they stand
    there as the closings since their last result left them."""
    for start in starts:
        if start.player in fold.states or start.player in aliases:
            continue
        alone = run.system_fold({})
        for _ in alone.run(Story(starts=[start]), closings_after=None, closed_until=until):
            pass
        fold.states.update(alone.states)


@dataclass
class _New:
    rows: dict[Key, str] = field(default_factory=dict)
    rated: dict[Key, Rated] = field(default_factory=dict)
    head: str = ""


def _run_fold(
    run: Run, fold: Fold, story: Story, checkpoint: Checkpoint | None, due: int, *, dry: bool
) -> tuple[_New, dict[str, str], list[Checkpoint]]:
    """The fold's rows, each player's last order, and the checkpoints on the way."""
    pool = run.pool
    new = _New(head=after_closing(checkpoint.at) if checkpoint else "")
    first = None if checkpoint is None else closing_boundary(checkpoint.at)
    last: dict[str, str] = {}
    marks: list[Checkpoint] = []
    previous = checkpoint
    base = checkpoint.moments if checkpoint else 0
    closings_after = checkpoint.at if checkpoint else None
    for what in fold.run(story, since=first, closings_after=closings_after, closed_until=due):
        if isinstance(what, Rated):
            key = store.rated_key(pool.id, what.order, instant_of(what.order))
            new.rows[key] = store.dump(what)
            new.rated[key] = what
            for sid, *_ in what.after:
                last[sid] = what.order
            new.head = max(new.head, what.order)
        elif isinstance(what, Opened):
            ref = f"{what.game.club}#{what.game.game_id}"
            new.rows[(keys.open_games(pool.id), ref)] = store.dump(OpenRow(what.game, what.start))
            new.head = max(new.head, what.order)
        elif isinstance(what, Held):
            ref = f"{what.game.club}#{what.game.game_id}"
            new.rows[(keys.held(pool.id), ref)] = store.dump(HeldRow(what.game, what.reason))
        else:
            run.result.closings += run.cursor.closed_until is None or what.at > run.cursor.closed_until
            if not dry:
                previous = _mark(run, what, previous, base, due, marks)
    for ref_key, row in _still_open(story, first):
        new.rows[(keys.open_games(pool.id), ref_key)] = store.dump(row)
    new.head = max(new.head, after_closing(due))
    return new, last, marks


def _still_open(story: Story, since: Any) -> list[tuple[str, OpenRow]]:
    """Open games that began before the fold did: their frozen start ratings stay."""
    if since is None:
        return []
    rows = []
    for game in story.games:
        ref = (game.club, game.game_id)
        snapshot = (game.started_at, SNAPSHOT, 0, 0, game.club, game.game_id, 0)
        if game.finished_at is None and _is_rated(game) and snapshot <= since and ref in story.known_starts:
            rows.append(("#".join(ref), OpenRow(game, list(story.known_starts[ref]))))
    return rows


def _mark(
    run: Run, closed: Closed, previous: Checkpoint | None, base: int, due: int, marks: list[Checkpoint]
) -> Checkpoint | None:
    """Keep a checkpoint at this closing when it earns its keep."""
    moments = base + closed.moments
    since = moments - (previous.moments if previous else 0)
    if closed.at != due and since < CHECKPOINT_SPACING:
        return previous
    if not moments:
        return previous
    if previous is not None and since == 0:
        mark = Checkpoint(closed.at, previous.key, moments)
    else:
        key = f"checkpoints/{run.pool.id}/{closed.at + 2**55:016x}-{run.ctx.token(12)}"
        store.put_checkpoint(run.ctx.data, key, closed.states)
        mark = Checkpoint(closed.at, key, moments)
    marks.append(mark)
    return mark


def _thinned(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    if len(checkpoints) <= CHECKPOINTS:
        return tuple(checkpoints)
    half = len(checkpoints) // 2
    return tuple(checkpoints[:half:2]) + tuple(checkpoints[half:])


def _write_replay(run: Run, events: Sequence[Event], replay: _Replay, due: int) -> None:
    pool, cursor = run.pool, run.cursor
    index, boundary, old, new = replay.index, replay.boundary, replay.old, replay.new
    draft = Draft()
    for key in old.rows.keys() | new.rows.keys():
        if old.rows.get(key) != new.rows.get(key):
            draft.rows[key] = new.rows.get(key)
    changed = _pointer_changes(run, draft, old, new)
    players = {sid for row in changed for sid, *_ in row.after}
    total, count = _state_rows(run, draft, players, replay)
    games = {(r.game.club, r.game.game_id) for r in changed if r.game is not None}
    for pk, sk in draft.rows:
        if pk in (keys.open_games(pool.id), keys.held(pool.id)):
            games.add(_ref(sk))
    kept = [c for c in index.checkpoints if boundary and c.at <= instant_of(boundary)]
    checkpoints = _thinned([*kept, *replay.marks])
    finishes = _finishes(new.rated.values()) - _finishes(old.rated.values())
    moved = replace(
        cursor,
        position=cursor.position + sum(1 for e in events if e.kind != "rebuild"),
        head=new.head,
        closed_until=due,
        hash=to_hex(total),
        players=count,
        games=(0 if not boundary else cursor.games) + (_finishes(new.rated.values()) if not boundary else finishes),
        held=sum(1 for pk, _ in new.rows if pk == keys.held(pool.id)),
        newest=max([cursor.newest, *(e.accepted_at for e in events if e.kind != "rebuild")]),
        rules_version=pool.version,
    )
    _journal(run, draft, events, replay, moved)
    closing: list[Operation] = [_index_operation(run, index, new, checkpoints)]
    if players or games or due != cursor.closed_until:
        since = min([r.at for r in changed], default=END)
        closing.append(outbox_entry(run, moved, players, games, since))
    run.result.replays += 1
    removals: list[Operation] = [ledger.removal(pool.id, e) for e in events]
    small = store.in_place(draft, cursor.generation)
    lost: list[Operation] = [Delete(key) for key in sorted(draft.lost_pointers)]
    if len(small) + len(closing) + len(removals) + len(lost) + 1 <= TRANSACTION_ITEMS:
        _commit(run, [store.put_cursor(moved, cursor.version), *small, *lost, *closing, *removals], moved)
    else:
        _new_generation(run, draft, moved, old, closing, events)
    run.result.events += len(events)
    _drop_objects(run, index, checkpoints)


def _journal(run: Run, draft: Draft, events: Sequence[Event], replay: _Replay, moved: Cursor) -> None:
    """Tell each player whose rated games came out anew what they were before, and what caused it."""
    rerated: dict[str, int] = {}
    for key in draft.rows:
        was = replay.old.rated.get(key)
        if was is not None and was.game is not None:
            for sid, *_ in was.after:
                rerated[sid] = rerated.get(sid, 0) + 1
    if not rerated or replay.rebuild:
        return
    causes: list[tuple[str, str, str]] = [
        (str(e.what or e.kind), e.game.club if e.game is not None else "", e.game.game_id if e.game is not None else "")
        for e in events
    ][:CAUSES]
    before = store.read_states(run.table, run.pool.id, rerated, run.cursor.view)
    for sid, games in rerated.items():
        row, now = before.get(sid), replay.states.get(sid)
        one = (row.state.rating, row.state.index) if row is not None else None
        two = (now.rating, now.index) if now is not None else None
        if one != two:
            entry = notes.Entry(run.now, causes, one, two, games)
            item = notes.entry_item(run.pool.id, sid, moved.position, entry)
            draft.beside.append(item)


def _finishes(rows: Iterable[Rated]) -> int:
    return sum(1 for r in rows if r.kind == FINISH)


def _pointer_changes(run: Run, draft: Draft, old: _Old, new: _New) -> list[Rated]:
    """Add and remove pointers where rows differ; the rows concerned, old and new."""
    changed: list[Rated] = []
    for key in draft.rows:
        was, now = old.rated.get(key), new.rated.get(key)
        before = pointers_of(run.pool.id, was, key[1]) if was is not None else set()
        after = pointers_of(run.pool.id, now, key[1]) if now is not None else set()
        draft.pointers |= after - before
        draft.lost_pointers |= before - after
        changed += [r for r in (was, now) if r is not None]
    return changed


def _state_rows(run: Run, draft: Draft, players: set[str], replay: _Replay) -> tuple[int, int]:
    """Add the states that differ to the draft; the new state hash and number of players."""
    states, last, boundary, rebuild = replay.states, replay.last, replay.boundary, replay.rebuild
    pool, view, system = run.pool, run.cursor.view, run.pool.system
    if rebuild:
        before = store.read_all_states(run.table, pool.id, view)
        players = players | set(before) | set(states)
        total, count = 0, 0
    else:
        before = store.read_states(run.table, pool.id, players, view)
        total, count = int(run.cursor.hash, 16), run.cursor.players
    for sid in sorted(players):
        was, now = before.get(sid), states.get(sid)
        if not rebuild:
            total -= line_hash(system, sid, was.state) if was is not None else 0
            count -= was is not None
        if now is None:
            draft.rows[keys.state(pool.id, sid)] = None
            draft.lost_pointers.add((keys.memberships(sid), pool.id))
            continue
        total += line_hash(system, sid, now)
        count += 1
        key = last.get(sid) or (_last_row_until(run, sid, boundary) if boundary else None) or ""
        row = StateRow(now, key)
        if was is None or was != row or rebuild:
            draft.rows[keys.state(pool.id, sid)] = store.dump(row)
        if was is None:
            draft.pointers.add((keys.memberships(sid), pool.id))
    return total % MODULUS, count


def _index_operation(run: Run, index: Index, new: _New, checkpoints: Sequence[Checkpoint]) -> Update:
    months = set(index.months) | {pk.rsplit("#", 1)[1] for pk, _ in new.rated}
    values: dict[str, Any] = {"checkpoints": msgspec.json.encode(checkpoints).decode()}
    expression = "SET #checkpoints = :checkpoints"
    if months:
        expression += ", #months = :months"
        values["months"] = months
    return Update(store.index_key(run.pool.id), expression, values)


def _new_generation(
    run: Run, draft: Draft, moved: Cursor, old: _Old, closing: Sequence[Operation], events: Sequence[Event]
) -> None:
    """Write the draft beside what stands, then let one transaction make it count."""
    pool, cursor = run.pool, run.cursor
    mine = max(cursor.claimed, cursor.generation) + 1
    given_up = tuple(g for g in range(cursor.generation + 1, mine) if g not in cursor.dead)
    claim = replace(cursor, claimed=mine, dead=cursor.dead + given_up)
    _commit(run, [store.put_cursor(claim, cursor.version)], claim)
    claimed_version = run.cursor.version
    view = run.cursor.view
    fence = Check(keys.cursor(pool.id), "#version = :version", {"version": claimed_version})
    pk_states = [key for key in draft.rows if key not in old.items]
    items = old.items | run.table.batch_get(pk_states)
    writes: list[Operation] = [
        Put(store.as_next(key, items.get(key), view, text, mine)) for key, text in sorted(draft.rows.items())
    ]
    writes += [Put({"pk": pk, "sk": sk}) for pk, sk in sorted(draft.pointers)]
    writes += [Put(item) for item in draft.beside]
    step = TRANSACTION_ITEMS - 1
    try:
        for start in range(0, len(writes), step):
            run.table.transact([fence, *writes[start : start + step]])
            run.result.transactions += 1
    except ConditionFailed:
        raise Overtaken from None
    final = replace(moved, generation=mine, claimed=mine, dead=run.cursor.dead)
    entries = [[ledger.inbox_shard(e), e.id] for e in events]
    applied_pk, applied_sk = _applied_key(pool.id)
    operations: list[Operation] = [store.put_cursor(final, claimed_version), *closing]
    if entries:
        body = msgspec.json.encode(entries).decode()
        operations.append(Put({"pk": applied_pk, "sk": applied_sk, "events": body}, "attribute_not_exists(pk)"))
    _commit(run, operations, final)
    _finish_removals(run.table, pool.id)
    _drop_pointers(run, draft)


def _drop_pointers(run: Run, draft: Draft) -> None:
    """Pointers to rows that are no longer there: they lead nowhere, so losing this work costs nothing but space."""
    fence = Check(keys.cursor(run.pool.id), "#version = :version", {"version": run.cursor.version})
    deletes: list[Operation] = [Delete(key) for key in sorted(draft.lost_pointers)]
    try:
        for start in range(0, len(deletes), TRANSACTION_ITEMS - 1):
            run.table.transact([fence, *deletes[start : start + TRANSACTION_ITEMS - 1]])
    except ConditionFailed:
        return


def _drop_objects(run: Run, index: Index, kept: Sequence[Checkpoint]) -> None:
    """Checkpoint objects that nothing names any more."""
    gone = {c.key for c in index.checkpoints} - {c.key for c in kept}
    if gone:
        run.ctx.data.delete(sorted(gone))


# -- trying out --------------------------------------------------------------------------------------------------
@dataclass
class Effects:
    """What events would change, had they been accepted now."""

    cursor: Cursor
    games_rerated: int
    changed: list[str]
    """Players whose state would differ."""
    before: dict[str, PlayerState]
    after: dict[str, PlayerState]
    """Every player's state, before and after."""
    held: list[tuple[GameRef, str]]


def simulate(ctx: Context, pool: Pool, events: Sequence[Event]) -> Effects:
    """What these events would change in a pool that is up to date. Writes nothing.

    The same replay that would rate them runs up to the point of writing.
    """
    cursor = store.read_cursor(ctx.table, pool.id)
    due = calendar.last_closing(max(ctx.clock(), cursor.closed_until or BEGINNING), pool.time_zone)
    run = Run(ctx, pool, cursor, Applied(pool.id), ctx.clock())
    replay = _fold_again(run, events, events, due, dry=True)
    before = {sid: row.state for sid, row in store.read_all_states(ctx.table, pool.id, cursor.view).items()}
    rows = [
        k for k in replay.old.rows.keys() | replay.new.rows.keys() if replay.old.rows.get(k) != replay.new.rows.get(k)
    ]
    changed = {
        sid for k in rows for r in (replay.old.rated.get(k), replay.new.rated.get(k)) if r for sid, *_ in r.after
    }
    after = dict(before)
    for sid in changed:
        if sid in replay.states:
            after[sid] = replay.states[sid]
        else:
            after.pop(sid, None)
    rerated = {(g.club, g.game_id) for k in rows if (r := replay.old.rated.get(k)) and (g := r.game) is not None}
    mine = {(e.game.club, e.game.game_id) for e in events if e.game is not None}
    held = [
        (ref, msgspec.json.decode(text, type=HeldRow).reason)
        for (pk, sk), text in replay.new.rows.items()
        if pk == keys.held(pool.id) and (ref := _ref(sk)) in mine
    ]
    return Effects(cursor, len(rerated), sorted(changed), before, after, held)
