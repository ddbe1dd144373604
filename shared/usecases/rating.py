"""The rater: what waits in a pool's inbox becomes ratings, in played order, exactly once.

Two ways lead there, and both end in one transaction that is conditional on the cursor's version:

* *append*: everything new lies behind the head. Only the players concerned are read; whole games are written in
  transactions of at most 100 items, each of which takes its inbox entries out and moves the cursor.
* *replay*: something lies before the head (a late result, a correction, new rules, a merge), or a closing is due.
  From the last checkpoint that it cannot touch, all is folded anew and compared with what is stored; the rows that
  differ are written, in place when they fit one transaction, else under a new generation.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from shared.ledger import calendar
from shared.ledger.causes import Causes
from shared.ledger.events import Event
from shared.ledger.explain import rated_game
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
    settings_since,
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
    kind_of,
    order,
    subject_of,
    tick_of,
    utc_month,
)
from shared.ledger.replay import follow, start_of, story_of_segments
from shared.ledger.rules import in_force
from shared.ledger.statehash import MODULUS, line_hash, to_hex
from shared.ratings.base import (
    FINISH,
    QUIT,
    CannotRate,
    Game,
    LiveSystem,
    Moment,
    PlayerState,
    Rating,
)
from shared.store import keys, ledger, notes, pools
from shared.store import rated as store
from shared.store.pools import Pool
from shared.store.rated import Change, Checkpoint, Cursor, Draft, HeldRow, Index, OpenRow, StateRow
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
from shared.usecases import compact, erasure, wake
from shared.usecases.context import Context
from shared.usecases.generation import GenerationWriter, Overtaken, progress, progress_key

INBOX_LIMIT = 2000
"""Events taken at once; their ids fit an item of 100 KB."""
CHECKPOINT_SPACING = 300
"""A past closing gets a checkpoint when so many moments lie between: replaying fewer costs less than keeping it."""
CHECKPOINTS = 150
"""How many checkpoints a pool keeps; beyond, every second one of the older half goes."""
OUTBOX_NAMES = 5_000
"""Beyond so many changed players and games, the publisher is told to look at the whole pool: a late result of last week
changes hundreds of games, and a pool of 100,000 players has half a million pages."""
OUTBOX_BYTES = 200_000
"""... or beyond so much text of them: an item holds 400 KB."""
BESIDE = 500
"""A long fold tells that it is alive once in so many moments, where it is time to."""
PASSES = 200
"""Rounds of one call; what is left then waits for the next wake-up."""
IN_PLACE = TRANSACTION_ITEMS
"""A replay of at most so many writes is one transaction; a larger one takes a new generation."""
READ_AHEAD = 20
"""For at most so many events everything that appending them needs is read at once."""
SINGLE_ALIASES = 100
"""For more players than these all merges of the pool are read: one query, where each player who was never merged would
cost a read unit on the one key that holds them."""
WATCH_SECONDS = 5.0
"""A replay by another run that writes nothing for so long has died: a live one tells of itself twice a second."""
WATCH_EVERY = 0.25
"""How often is looked."""
KEPT = 5_000
"""Of a replay's rows that differ so many are kept between planning and writing; where there are more, all are found
again, so that memory does not grow with them."""
LONG_REPLAY = 100_000
"""A replay of more games is folded from the ledger, as a rebuild is: all of it in less time and memory than objects
take of a part."""
POINTERS = 5
"""How many of a player's last changes are looked at together: nearly always the first is the one."""


@dataclass
class Applied:
    """What a call of ``apply`` did."""

    pool: str
    events: int = 0
    closings: int = 0
    replays: int = 0
    transactions: int = 0
    position: int = 0
    left: bool = False
    """Another run is replaying the pool; what waits is left to it."""

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.events or self.closings)


class _Reads:
    """Items read in one pass: each once, and as many together as are known to be needed."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[Key, Item | None] = {}

    def fetch(self, wanted: Iterable[Key]) -> dict[Key, Item]:
        """Those of these items that exist; no round trip for what was read before."""
        asked = list(dict.fromkeys(wanted))
        if missing := [key for key in asked if key not in self._known]:
            found = self._table.batch_get(missing)
            self._known.update((key, found.get(key)) for key in missing)
        return {key: item for key in asked if (item := self._known[key]) is not None}

    def fetch_partition(self, pk: str, wanted: Iterable[str]) -> None:
        """Read a whole partition, of which items under these sort keys are wanted."""
        self._known.update(((pk, sk), None) for sk in wanted)
        self._known.update(((pk, item["sk"]), item) for item in self._table.query(pk))


@dataclass
class Run:
    """One pass over a pool: what it read and what it is about to write."""

    ctx: Context
    pool: Pool
    cursor: Cursor
    result: Applied
    now: int
    reads: _Reads
    begun: _Begun | None = None
    """What a run that died left half written."""

    @property
    def table(self) -> Table:
        """The table."""
        return self.ctx.table

    def system_fold(self, states: dict[str, PlayerState]) -> Fold:
        """A fold of this pool over these states."""
        return Fold(self.pool.system, self.pool.rules, self.pool.time_zone, states)


def apply(ctx: Context, pool_id: str, now: int | None = None, *, chores: bool = True) -> Applied:
    """Bring a pool up to date: its inbox applied, the closings due by ``now`` inserted.

    Safe to call at any time, any number of times, concurrently: the ratings come out the same.

    Args:
        chores: also clean up after erased people, which looks through every game. Not inside a request: the rater has
            been woken for it.

    Raises:
        Busy: the table did not take the calls; whatever was committed stands, the rest waits.
        KeyError: there is no such pool.
    """
    moment = ctx.clock() if now is None else now
    result = Applied(pool_id)
    overtaken = 0
    for _ in range(PASSES):
        try:
            if not _one_pass(ctx, pool_id, moment, result, chores=chores):
                break
        except (Overtaken, store.StaleView):
            overtaken += 1
            if overtaken > 50:
                raise
    if result.changed:
        wake.ask(ctx, pool_id)
    return result


def _one_pass(ctx: Context, pool_id: str, now: int, result: Applied, *, chores: bool) -> bool:
    """One round: read, decide, write. False when nothing is left to do."""
    reads = _Reads(ctx.table)
    found = reads.fetch([keys.pool(pool_id), keys.cursor(pool_id)])
    if keys.pool(pool_id) not in found:
        raise KeyError(pool_id)
    pool = pools.from_item(found[keys.pool(pool_id)])
    cursor = store.cursor_of(pool_id, found.get(keys.cursor(pool_id)))
    result.position = cursor.position
    begun = None
    if cursor.is_claimed:
        if _somebody_replays(ctx.table, cursor):
            result.left = True
            return False
        begun = _begun(ctx.table, cursor)
        cursor = replace(cursor, dead=(*cursor.dead, *_given_up(cursor, cursor.claimed + 1)))
    removed: set[str] = set()
    if cursor.removing:  # after the cursor was read: what a replay has applied since then fails our own condition
        removed = _finish_removals(ctx.table, pool_id)
        cursor = replace(cursor, removing=False)
    waiting = ledger.read_inbox(ctx.table, pool_id, INBOX_LIMIT)
    events = [e for e in waiting if e.id not in removed]
    cleaned = [e for e in events if e.kind == "erase" and chores and erasure.clean(ctx, pool, e)]
    for order_done in cleaned:
        ctx.table.write(ledger.removal(pool_id, order_done))
    events = [e for e in events if e.kind != "erase"]
    # What was stored on the word of a preview comes first, and alone: what was previewed is what happens.
    previewed = [e for e in events if e.ahead]
    rest = bool(previewed) and len(events) > len(previewed)
    events = previewed or events
    due = calendar.last_closing(max(now, cursor.closed_until or BEGINNING), pool.time_zone)
    if begun is not None and begun.events <= {e.id for e in events} and begun.due <= due:
        # Whatever came in since: first what was begun is brought to its end, or a long replay would never end.
        rest = rest or begun.due < due or len(begun.events) < len(events)
        events, due = [e for e in events if e.id in begun.events], begun.due
    closing_due = cursor.closed_until is None or due > cursor.closed_until
    if not events and not closing_due:
        return bool(cleaned)
    if any(e.kind == "rules" and e.number > pool.version for e in events):
        raise Overtaken  # the rules changed after the pool was read
    more = rest or len(waiting) >= INBOX_LIMIT
    starts = [e for e in events if e.kind == "start"]
    if starts and not closing_due:
        more = more or len(starts) < len(events)
        events = starts  # they come before everything else of their players, and are folded alone
    run = Run(ctx, pool, cursor, result, now, reads, begun)
    if len(events) <= READ_AHEAD and not closing_due:
        reads.fetch(_needed(run, events))
    current = _newest_revisions(run, events)
    if not closing_due and _append(run, events, current):
        return more
    # What came in during a long replay was left to this run.
    return _replay(run, events, current, due) or more


def _needed(run: Run, events: Sequence[Event]) -> list[Key]:
    """What appending these events will read, as far as they tell."""
    pool, wanted, people = run.pool.id, list[Key](), set[str]()
    for event in events:
        if event.game is None:
            people.add(event.player)
            continue
        wanted.append(keys.game(pool, event.game.club, event.game.game_id))
        people.update(run.pool.system.mentioned(event.game.content))
        if event.game.revision > 1:
            wanted.append((keys.open_games(pool), f"{event.game.club}#{event.game.game_id}"))
    for sid in sorted(people - {""}):
        wanted += [(keys.aliases(pool), sid), keys.state(pool, sid)]
    return wanted


def _plan_key(pool: str) -> Key:
    return f"POOL#{pool}", "REPLAY-PLAN"


@dataclass(frozen=True)
class _Begun:
    """A replay that a run began to write and died over."""

    generation: int
    done: int
    """Writes that were made of it."""
    beat: int
    """When it was last heard of."""
    digest: str
    """Of all its writes."""
    due: int
    events: frozenset[str]


def _begun(table: Table, cursor: Cursor) -> _Begun | None:
    """What was begun under the cursor's claim."""
    at, plan = progress_key(cursor.pool), _plan_key(cursor.pool)
    found = table.batch_get([at, plan])
    if at not in found or plan not in found:
        return None
    done, told = found[at], found[plan]
    if not done["generation"] == told["generation"] == cursor.claimed:
        return None
    events = frozenset(msgspec.json.decode(told["events"], type=list[str]))
    return _Begun(cursor.claimed, done["done"], done["beat"], told["digest"], told["due"], events)


def _plan_item(pool: Pool, generation: int, digest: str, due: int | None, events: Sequence[Event]) -> Put:
    pk, sk = _plan_key(pool.id)
    told = msgspec.json.encode([e.id for e in events]).decode()
    return Put({"pk": pk, "sk": sk, "generation": generation, "digest": digest, "due": due, "events": told})


def _somebody_replays(table: Table, cursor: Cursor) -> bool:
    """Whether the run that claimed the next generation is still writing it; then it is left alone, as two that take
    turns in overtaking each other would never end."""
    before = table.get(*progress_key(cursor.pool))
    until = time.monotonic() + WATCH_SECONDS
    while True:
        time.sleep(min(WATCH_EVERY, WATCH_SECONDS))
        if table.get(*progress_key(cursor.pool)) != before:
            return True
        if time.monotonic() >= until:
            return False


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


def waiting(ctx: Context, pool: str) -> set[str]:
    """Ids of the accepted events that are not rated yet: what is in the inbox, but for what a replay that died before
    it had emptied it has applied."""
    item = ctx.table.get(*_applied_key(pool))  # first: whoever removes it has emptied the inbox before
    entries: list[list[Any]] = msgspec.json.decode(item["events"]) if item is not None else []
    return {e.id for e in ledger.read_inbox(ctx.table, pool, 10**9)} - {event_id for _, event_id in entries}


def _newest_revisions(run: Run, events: Sequence[Event]) -> list[Event]:
    """The events that still matter: of each game only its newest revision, as an older one arriving late must not
    bring back what was corrected; its successor is in already or waits too."""
    found = run.reads.fetch(keys.game(run.pool.id, e.game.club, e.game.game_id) for e in events if e.game is not None)
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
    told_anew: dict[GameRef, list[Rated]] = field(default_factory=dict)
    """Quits that are rated already, with the new content of their games."""


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
        if batch.is_full():
            batch.flush()
    waiting: dict[Any, Event] = {_waits_for(e): e for e in current}
    told = {(g.club, g.game_id) for g in plan.games}
    batch.take([e for e in events if _waits_for(e) not in waiting or waiting[_waits_for(e)] is not e])
    batch.take([e for e in current if not _tells(e, told)])
    pending = {(g.club, g.game_id): _moments_left(run, g) for g in plan.games}
    for row in [row for rows in plan.told_anew.values() for row in rows]:
        batch.tell_anew(row)
        if batch.is_full():
            batch.flush()
    for game in plan.games:
        # An open game that began before the head, or whose content changed without a new moment (a substitute sat
        # down), only has its row written.
        ref = (game.club, game.game_id)
        seats = run.pool.system.players(_translated(run, game, plan.aliases).content)
        if len(set(seats)) < len(seats):
            continue  # the fold holds it
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
    number = in_force(run.pool.rules, game.started_at)
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
            reset = Reset(event.value["at"], event.player)
            if reset not in plan.resets:
                plan.resets.append(reset)
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
            elif not _plan_next_revision(run, plan, game, keys_, len(behind)):
                return None
            plan.games.append(game)
            mentioned.update(run.pool.system.mentioned(game.content))
    if not _read_players(run, plan, mentioned):
        return None
    return plan


def _has_played(run: Run, sid: str) -> bool:
    """Whether merging this player away could change anything. Every pool is told of every merge, most for nothing.

    Where the rules know live games he may have been a substitute, of whom only the games themselves tell.
    """
    pool, view = run.pool, run.cursor.view
    if isinstance(pool.system, LiveSystem):
        return True
    places = [keys.state(pool.id, sid), (keys.aliases(pool.id), sid)]
    if any(view.pick(item) is not None for item in run.reads.fetch(places).values()):
        return True
    return _has_been_told_of(run, sid)


def _plan_next_revision(run: Run, plan: _Append, game: Game, moments: Sequence[tuple[str, int]], behind: int) -> bool:
    """Whether an open game goes on behind the head: the same people, and what is rated of it already stays as it is."""
    ref = (game.club, game.game_id)
    key = (keys.open_games(run.pool.id), "#".join(ref))
    opened = run.cursor.view.pick(run.reads.fetch([key]).get(key))
    if opened is None:
        return False
    row = msgspec.json.decode(opened, type=OpenRow)
    before = _moments(run, row.game)
    if row.game.revision != game.revision - 1 or list(moments[: len(before)]) != before:
        return False
    if behind != len(moments) - len(before) or row.game.started_at != game.started_at:
        return False
    system = run.pool.system
    if system.players(row.game.content) != system.players(game.content):
        return False
    if before:
        again = _rated_alike(run, game, before)
        if again is None:
            return False
        plan.told_anew[ref] = again
    plan.opened[ref] = row
    plan.known[ref] = row.start
    return True


def _rated_alike(run: Run, game: Game, moments: Sequence[tuple[str, int]]) -> list[Rated] | None:
    """The rows of a game's rated moments with its new content; None when that would rate them otherwise."""
    system, pool = run.pool.system, run.pool
    places = [store.rated_key(pool.id, key, at) for key, at in moments]
    found = run.reads.fetch(places)
    again: list[Rated] = []
    for place in places:
        text = run.cursor.view.pick(found.get(place))
        if text is None:
            return None
        row = msgspec.structs.replace(store.load_rated(text), game=game)
        content = rated_game(system, row)
        players = system.players(content.content) if content is not None else ()
        if content is None or len(players) != len(row.start):
            return None
        start = dict(zip(players, row.start, strict=True))
        now = {p: PlayerState(b[0], b[1], games=b[2], counters=b[3]) for p, b in zip(players, row.before, strict=True)}
        try:
            moment = Moment(row.at, QUIT if row.kind == QUIT else FINISH, row.number)
            outcomes = system.rate(content, moment, start, now, settings_since(pool.rules, row.rules))
        except CannotRate:
            return None
        if [(o.player, o.rating, o.index, o.score, o.is_result) for o in outcomes] != row.after:
            return None
        again.append(row)
    return again


def _has_been_told_of(run: Run, player: str) -> bool:
    """Whether any row names a player who has no rating yet: he sits at an open table or a held one, a game that
    changed nothing had him, or he left the ranking before he came."""
    pool, view, system = run.pool.id, run.cursor.view, run.pool.system
    if next(iter(run.table.query(keys.history(pool, player), limit=1)), None) is not None:
        return True
    games = [row.game for row in store.read_open(run.table, pool, view).values()]
    games += [row.game for row in store.read_held(run.table, pool, view).values()]
    return any(player in system.mentioned(game.content) for game in games)


def _read_players(run: Run, plan: _Append, mentioned: set[str]) -> bool:
    """Aliases and states of the players, and their ratings at starts that lie before the head."""
    pool, view = run.pool.id, run.cursor.view
    wanted = mentioned
    if len(wanted) > SINGLE_ALIASES:
        run.reads.fetch_partition(keys.aliases(pool), wanted)
    while wanted:
        found = run.reads.fetch((keys.aliases(pool), sid) for sid in wanted)
        new = {sk: text for (_, sk), item in found.items() if (text := view.pick(item)) is not None}
        new |= {sid: plan.merged[sid] for sid in wanted if sid in plan.merged}
        plan.aliases.update(new)
        wanted = {into for into in new.values() if into not in plan.aliases}
    plan.aliases = follow(plan.aliases)
    people = {plan.aliases.get(sid, sid) for sid in mentioned}
    for (_, sid), item in run.reads.fetch(keys.state(pool, sid) for sid in people).items():
        if (text := view.pick(item)) is not None:
            plan.states[sid] = store.load_state(text)
    for start in plan.starts:
        if start.player in plan.states or start.player in plan.aliases or _has_been_told_of(run, start.player):
            return False
    if len({start.player for start in plan.starts}) < len(plan.starts):
        return False
    head = tick_of(run.cursor.head) if run.cursor.head else None
    for game in plan.games:
        ref = (game.club, game.game_id)
        if ref in plan.known or game.started_at == game.finished_at or head is None:
            continue
        at = order(game.started_at, SNAPSHOT, 0, 0, game.club, game.game_id)
        if tick_of(at) > head:
            continue
        players = run.pool.system.players(_translated(run, game, plan.aliases).content)
        plan.known[ref] = [_rating_at(run, plan.states.get(p), p, game.started_at) for p in players]
    return True


def _rating_at(run: Run, row: StateRow | None, player: str, at: int) -> Rating:
    """A player's rating after everything up to and including an instant."""
    limit = just_after(at)
    if row is not None and row.last <= limit:
        return (row.state.rating, row.state.index)
    if row is not None and (last := _last_row_until(run, player, limit)) is not None:
        return next((rating, index) for sid, rating, index, *_ in last.after if sid == player)
    fresh = run.pool.system.start(None, run.pool.settings)
    return (fresh.rating, fresh.index)


def ratings_at(ctx: Context, pool: Pool, cursor: Cursor, players: Iterable[str], at: int) -> dict[str, Rating]:
    """Ratings after all that is rated up to an instant, by server-made id; of merged players the survivors'."""
    run = Run(ctx, pool, cursor, Applied(pool.id), ctx.clock(), _Reads(ctx.table))
    through = follow(store.read_aliases(ctx.table, pool.id, cursor.view))
    stands = {sid: through.get(sid, sid) for sid in players}
    rows = store.read_states(ctx.table, pool.id, stands.values(), cursor.view)
    return {sid: _rating_at(run, rows.get(who), who, at) for sid, who in stands.items()}


def _last_row_until(run: Run, player: str, limit: str) -> Rated | None:
    """A player's last row up to a limit that exists in this view."""
    pool, after = run.pool.id, None
    while True:
        pointers = list(
            run.table.query(keys.history(pool, player), last=limit, after=after, forward=False, limit=POINTERS)
        )
        places = [store.rated_key(pool, item["sk"], instant_of(item["sk"])) for item in pointers]
        found = run.reads.fetch(places)
        for place in places:
            text = run.cursor.view.pick(found.get(place))
            row = store.load_rated(text) if text is not None else None
            if row is not None and any(sid == player for sid, *_ in row.after):
                return row
        if len(pointers) < POINTERS:
            return None
        after = pointers[-1]["sk"]


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
        self.months.add(store.month_of(key))
        self.draft.pointers |= pointers_of(self.run.pool, row, row.order)
        for sid, *_ in row.after:
            self.dirty[sid] = row.order
        self.head = max(self.head, row.order)
        if row.game is not None:
            self.touched_games.add((row.game.club, row.game.game_id))
            self.games += row.kind == FINISH
        self.since = min(self.since, instant_of(row.order))

    def tell_anew(self, row: Rated) -> None:
        """A row that is there already, with the new content of its game."""
        self.draft.rows[store.rated_key(self.run.pool.id, row.order, instant_of(row.order))] = store.dump(row)

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
            self.draft.rows[keys.state(pool.id, sid)] = store.dump_state(StateRow(state, key))
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
        games = self.touched_games | _games_of(self.removals)
        if self.dirty or games:
            operations.append(outbox_entry(run, moved, set(self.dirty), games, self.since))
        self.months -= _month_known(cursor)
        if self.months:
            operations.append(Update(store.index_key(pool.id), "ADD #months :months", {"months": self.months}))
        _commit(run, operations, moved)
        run.result.events += len(self.removals)
        self._reset()


def _month_known(cursor: Cursor) -> set[str]:
    """The month of the head, where that is a rated moment: it stands in the index, which is not written again. With
    its checkpoints the index weighs ten units, and it lies on the key of the cursor, which every batch moves."""
    if not cursor.head or kind_of(cursor.head) not in (QUIT, RESET, FINISH):
        return set()
    return {utc_month(instant_of(cursor.head))}


def pointers_of(pool: Pool, row: Rated, key: str) -> set[Key]:
    """Where a row is to be found from: each changed player's history, and the lists of its tournament and group.

    A moment that changed nobody is found from those it could have changed: a rating carried over later may differ.
    """
    people = {sid for sid, *_ in row.after}
    if not people and row.kind == RESET:
        people = {subject_of(row.order)}
    elif not people and (game := rated_game(pool.system, row)) is not None:
        people = set(pool.system.players(game.content))
    found = {(keys.history(pool.id, sid), key) for sid in people}
    if row.game is not None and row.kind == FINISH:
        if row.game.tournament:
            found.add((keys.label(pool.id, f"tournament:{row.game.tournament}"), key))
        if row.game.group:
            found.add((keys.label(pool.id, f"group:{row.game.group}"), key))
    return found


def outbox_entry(run: Run, moved: Cursor, players: set[str], games: set[GameRef], since: int) -> Put:
    """Tells the publisher what changed."""
    named = {"since": since, "players": sorted(players), "games": sorted(games)}
    body = msgspec.json.encode(named) if len(players) + len(games) <= OUTBOX_NAMES else b""
    if not 0 < len(body) <= OUTBOX_BYTES:
        body = msgspec.json.encode({"since": since, "all": True})
    sk = f"{run.now:016x}-{moved.position:012d}-{run.ctx.token(8)}"
    return Put({"pk": keys.outbox(run.pool.id), "sk": sk, "body": body.decode()})


def _games_of(events: Iterable[Event]) -> set[GameRef]:
    """The games that events are about: their pages change even where nothing is rated."""
    return {(event.game.club, event.game.game_id) for event in events if event.game is not None}


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

    rows: dict[Key, str] = field(default_factory=dict)
    """As they are stored, the moments' too: a pool of a million games has to fit."""
    finishes: int = 0
    """Games finished in them."""
    games: dict[GameRef, Game] = field(default_factory=dict)
    starts: dict[GameRef, Sequence[Rating]] = field(default_factory=dict)
    resets: dict[tuple[int, str], Reset] = field(default_factory=dict)
    carried: dict[str, Start] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    kept_held: set[GameRef] = field(default_factory=set)
    beside: dict[Key, int] = field(default_factory=dict)
    """The generation of the version ``b`` of a moment's row, where there is one."""


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
    """Rows, and the story that they tell."""
    old = _Old()
    table, pool, view = run.table, run.pool.id, run.cursor.view
    months: list[tuple[str, str | None]] = [(m, boundary or None) for m in index.months if m >= start_month]
    if boundary and "0000-00" in index.months:
        months.append(("0000-00", None))
    for month, first in months:
        for item in store.items_of_month(table, pool, month, first=first):
            key = (item["pk"], item["sk"])
            text = view.pick(item)
            if "bg" in item:
                old.beside[key] = item["bg"]
            if text is None:
                continue
            row = store.load_rated(text)
            if row.kind == START:
                if row.carried is not None:
                    old.carried[subject_of(row.order)] = Start(subject_of(row.order), row.carried, row.at)
                if boundary:
                    continue
            old.rows[key] = text
            old.finishes += row.kind == FINISH
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
                if boundary and game.started_at < instant_of(boundary):
                    old.kept_held.add(ref)
                else:
                    old.games.setdefault(ref, game)


def _from_ledger(run: Run, old: _Old, events: Sequence[Event], current: Sequence[Event]) -> Story:
    """What the ledger says in place of what the rows say: the ratings from the ledger alone."""
    # What waits may be in a segment: that month is unpacked, to leave it out.
    waiting = [*ledger.read_inbox(run.table, run.pool.id, 10**9), *events]
    packed, told = compact.read_packed(run.ctx, run.pool, {utc_month(event.accepted_at) for event in waiting})
    # Read again, as what came in meanwhile is in the ledger and waits too.
    out = {event.id for event in [*waiting, *ledger.read_inbox(run.table, run.pool.id, 10**9)]}
    told = [event for event in told if event.id not in out]
    run.cursor = replace(run.cursor, position=sum(month.events for month in packed) + len(told))
    old.kept_held, old.aliases = set(), {}
    others = [event for month in packed for event in month.others]
    others += [event for event in told if event.game is None]
    _tell(run, old, sorted([*others, *(e for e in current if e.game is None)], key=lambda e: e.id))
    return story_of_segments(run.pool.system, run.pool.rules, packed, [*told, *current])


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
class _Prepared:
    """All that a fold from a checkpoint, or from the ledger, needs."""

    index: Index
    checkpoint: Checkpoint | None
    boundary: str
    old: _Old
    """From the ledger: open and held games and aliases only. The moments' rows are read beside the fold."""
    fold: Fold
    story: Story
    from_ledger: bool = False


def _quiet() -> None:
    """Nobody needs to hear of this fold."""


@dataclass
class _Replay:
    """A replay before it is written: what stood, what the fold says now."""

    run: Run
    ready: _Prepared
    due: int
    new: _New
    rebuild: bool
    dry: bool
    told: bool = False
    """The fold has been run."""

    def changes(self, alive: Callable[[], None] = _quiet) -> Iterator[Change]:
        """The moments' rows that differ, in played order; each time the same ones.

        Of a replay from the ledger nothing but the ledger is held in memory: the first call runs the fold, and reads
        the rows that stand beside it; each further one does so again.

        Args:
            alive: called now and then.
        """
        old, new = self.ready.old, self.new
        if not self.ready.from_ledger:
            rated = {key for key in old.rows.keys() | new.rows.keys() if store.is_rated_key(key)}
            for key in sorted((k for k in rated if old.rows.get(k) != new.rows.get(k)), key=lambda k: k[1]):
                yield Change(key, old.beside.get(key), old.rows.get(key), new.rows.get(key))
            return
        again, self.told = self.told, True
        fold, into = (self.run.system_fold({}), _New()) if again else (self.ready.fold, new)
        rows = _rows_of_fold(self.run, self.ready, fold, self.due, into, first=not again and not self.dry)
        yield from _differences(self.run, self.ready.index.months, rows, alive)


def _differences(
    run: Run, months: Iterable[str], rows: Iterable[tuple[Key, str]], alive: Callable[[], None]
) -> Iterator[Change]:
    """What a fold tells beside what stands in the table, both in played order and neither held."""
    view = run.cursor.view
    months_ = (store.items_of_month(run.table, run.pool.id, month) for month in sorted(months))
    stored = itertools.chain.from_iterable(months_)

    def gone(item: Item) -> Iterator[Change]:
        if (was := view.pick(item)) is not None:
            yield Change((item["pk"], item["sk"]), item.get("bg"), was, None)

    item, head = next(stored, None), ""
    for number, (key, text) in enumerate(rows):
        if key[1] <= head:
            raise ValueError(f"a fold tells moments in played order: {key[1]} behind {head}")
        head = key[1]
        if number % BESIDE == 0:
            alive()
        while item is not None and item["sk"] < head:
            yield from gone(item)
            item = next(stored, None)
        was, beside = None, None
        if item is not None and item["sk"] == head:
            was, beside = view.pick(item), item.get("bg")
            item = next(stored, None)
        if was != text:
            yield Change(key, beside, was, text)
    while item is not None:
        yield from gone(item)
        item = next(stored, None)


def _replay(run: Run, events: Sequence[Event], current: Sequence[Event], due: int) -> bool:
    """Fold anew from the last checkpoint that these events cannot touch, or from the ledger, and write what differs;
    whether that took a new generation."""
    replay = _fold_again(run, events, current, due, dry=False)
    try:
        return _write_replay(run, events, replay, due)
    except Overtaken:
        known = {c.key for c in replay.ready.index.checkpoints}
        run.ctx.data.delete(sorted({mark.key for mark in replay.new.marks} - known))
        raise


def _prepare(
    run: Run, touched: int, events: Sequence[Event], current: Sequence[Event], *, from_ledger: bool, most: int = END
) -> _Prepared:
    """Read what lies behind the last checkpoint before ``touched``, and put the new events into it.

    Args:
        from_ledger: the ratings from the ledger alone.
        most: where more games than that are to be replayed, also.
    """
    index = store.read_index(run.table, run.pool.id)
    checkpoint, states = (None, {}) if from_ledger else _checkpoint_before(run, index, touched)
    if from_ledger or run.cursor.games - (checkpoint.moments if checkpoint else 0) > most:
        old = _Old()
        _read_side_rows(run, old, "")
        story = _from_ledger(run, old, events, current)
        return _Prepared(index, None, "", old, run.system_fold({}), story, from_ledger=True)
    boundary = after_closing(checkpoint.at) if checkpoint else ""
    old = _read_old(run, index, boundary, utc_month(checkpoint.at) if checkpoint else "")
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
    """What is to be compared. ``dry``: only to be looked at, so no checkpoint is kept."""
    rebuild = any(e.kind == "rebuild" for e in current)
    touched = BEGINNING if rebuild else min([_touched(e) for e in current], default=END)
    ready = _prepare(run, touched, events, current, from_ledger=rebuild, most=LONG_REPLAY)
    old, new = ready.old, _New()
    replay = _Replay(run, ready, due, new, rebuild, dry)
    if not ready.from_ledger:
        for key, text in _rows_of_fold(run, ready, ready.fold, due, new, first=not dry):
            was = old.rows.get(key)
            new.rows[key] = was if was == text else text  # what is equal is held once
    for ref in old.kept_held:
        key = (keys.held(run.pool.id), "#".join(ref))
        new.rows[key] = old.rows[key]
    for player, into in old.aliases.items():
        new.rows[(keys.aliases(run.pool.id), player)] = into
    return replay


def closings_since(ctx: Context, pool: Pool, since: int) -> Iterator[Closed]:
    """The closings at and after an instant with the states of all players right after each, as the ledger has it now.

    For lists of past months. The states belong to the fold: read them before taking the next closing.
    """
    cursor = store.read_cursor(ctx.table, pool.id)
    if cursor.closed_until is None:
        return
    run = Run(ctx, pool, cursor, Applied(pool.id), ctx.clock(), _Reads(ctx.table))
    ready = _prepare(run, since - 1, [], [], from_ledger=False)
    first = None if ready.checkpoint is None else closing_boundary(ready.checkpoint.at)
    after = ready.checkpoint.at if ready.checkpoint else None
    for what in ready.fold.run(ready.story, since=first, closings_after=after, closed_until=cursor.closed_until):
        if isinstance(what, Closed) and what.at >= since:
            yield what


def _checkpoint_before(run: Run, index: Index, touched: int) -> tuple[Checkpoint | None, dict[str, PlayerState]]:
    """The last checkpoint no later than ``touched``, and none in the middle of a held game: quits of that may be rated
    behind it, from start ratings that are kept nowhere else."""
    held = [row.game for row in store.read_held(run.table, run.pool.id, run.cursor.view).values()]
    spans = [(game.started_at, game.finished_at) for game in held if game.finished_at is not None]
    for checkpoint in reversed(index.checkpoints):
        if checkpoint.at <= touched and not any(began < checkpoint.at <= ended for began, ended in spans):
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
    """What a fold tells, but for the moments' rows where those are handed on."""

    rows: dict[Key, str] = field(default_factory=dict)
    months: set[str] = field(default_factory=set)
    """The months that have moments' rows."""
    finishes: int = 0
    head: str = ""
    last: dict[str, str] = field(default_factory=dict)
    """Each player's last order."""
    marks: list[Checkpoint] = field(default_factory=list)
    """The checkpoints on the way."""


def _rows_of_fold(
    run: Run, ready: _Prepared, fold: Fold, due: int, new: _New, *, first: bool
) -> Iterator[tuple[Key, str]]:
    """Run a fold: the moments' rows in played order; what else it tells is found in ``new`` afterwards.

    Args:
        first: its checkpoints are kept, its closings counted.
    """
    pool, story, checkpoint = run.pool, ready.story, ready.checkpoint
    new.head = ready.boundary
    since = None if checkpoint is None else closing_boundary(checkpoint.at)
    previous = checkpoint
    base = checkpoint.moments if checkpoint else 0
    closings_after = checkpoint.at if checkpoint else None
    for what in fold.run(story, since=since, closings_after=closings_after, closed_until=due):
        if isinstance(what, Rated):
            key = store.rated_key(pool.id, what.order, instant_of(what.order))
            yield key, store.dump(what)
            new.months.add(store.month_of(key))
            new.finishes += what.kind == FINISH
            for sid, *_ in what.after:
                new.last[sid] = what.order
            new.head = max(new.head, what.order)
        elif isinstance(what, Opened):
            ref = f"{what.game.club}#{what.game.game_id}"
            new.rows[(keys.open_games(pool.id), ref)] = store.dump(OpenRow(what.game, what.start))
            new.head = max(new.head, what.order)
        elif isinstance(what, Held):
            ref = f"{what.game.club}#{what.game.game_id}"
            new.rows[(keys.held(pool.id), ref)] = store.dump(HeldRow(what.game, what.reason))
        elif first:
            run.result.closings += run.cursor.closed_until is None or what.at > run.cursor.closed_until
            previous = _mark(run, what, previous, base, due, new.marks)
    for ref_key, row in _still_open(story, since):
        new.rows[(keys.open_games(pool.id), ref_key)] = store.dump(row)
    new.head = max(new.head, after_closing(due))


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
        key = f"checkpoints/{run.pool.id}/{closed.at - BEGINNING:016x}-{run.ctx.token(12)}"
        store.put_checkpoint(run.ctx.data, key, closed.states)
        mark = Checkpoint(closed.at, key, moments)
    marks.append(mark)
    return mark


def _thinned(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    kept = tuple(checkpoints)
    while len(kept) > CHECKPOINTS:
        half = len(kept) // 2
        kept = kept[:half:2] + kept[half:]
    return kept


class _Plan:
    """What a replay is about to write of moments' rows, and all that follows from it: told row by row, in order."""

    def __init__(self, pool: Pool, causes: Causes | None = None, head: str = "") -> None:
        """
        Args:
            causes: are told the rows too, where there is a journal to be written.
            head: how far the pool was rated.
        """
        self.pool = pool
        self.causes = causes
        self.head = head
        self.writes = 0
        """Rows, and pointers to be added."""
        self.kept: list[Change] | None = []
        """The rows, where they are few."""
        self.lost: set[Key] = set()
        """Pointers to be dropped."""
        self.players: set[str] = set()
        self.games: set[GameRef] = set()
        """Not all of them, where they are more than the publisher is told."""
        self.since = END
        """The earliest instant. By the order of a row and not its time: a rating carried over stands before
        everything, whenever it was accepted."""
        self.rerated: dict[str, int] = {}
        """How many of a player's rated games come out anew."""
        self.came_to: dict[str, Rating] = {}
        """What these came to, for those of the players who have more behind the head: that is no correction's doing."""
        self._digest = hashlib.sha256()

    def take(self, change: Change) -> None:
        """The next row."""
        was, now = _moment(change.was), _moment(change.now)
        before, after = _pointers(self.pool, was), _pointers(self.pool, now)
        self.lost |= before - after
        self.count(change, sorted(after - before))
        if self.kept is not None:
            self.kept.append(change)
            if len(self.kept) > KEPT:
                self.kept = None
        for row in (was, now):
            if row is not None:
                self.players.update(sid for sid, *_ in row.after)
                self.since = min(self.since, instant_of(row.order))
                if row.game is not None and len(self.games) <= OUTBOX_NAMES:
                    self.games.add((row.game.club, row.game.game_id))
        if was is not None and was.game is not None:
            for sid, *_ in was.after:
                self.rerated[sid] = self.rerated.get(sid, 0) + 1
        if self.causes is not None:
            self.causes.row(was, now)
            if was is None and now is not None and now.order > self.head:
                for sid, rating in _just_before(self.pool, now):
                    if sid in self.rerated:
                        self.came_to.setdefault(sid, rating)

    def count(self, change: Change, pointers: Sequence[Key]) -> None:
        """Only what tells whether two runs write the same."""
        self.writes += 1 + len(pointers)
        self.tell(change.key, change.now)
        for key in pointers:
            self.tell(key, None)

    def tell(self, key: Key, text: str | None) -> None:
        """A write, for the digest."""
        self._digest.update(f"{key[0]}\t{key[1]}\t{'' if text is None else '=' + text}\n".encode())

    def digest(self, draft: Draft) -> str:
        """Tells whether two runs are about to write the same, but for the journal. ``draft``: all that is no moment's
        row."""
        told = self._digest.copy()
        for key, text in sorted(draft.rows.items()):
            told.update(f"{key[0]}\t{key[1]}\t{'' if text is None else '=' + text}\n".encode())
        for pk, sk in sorted(draft.pointers):
            told.update(f"{pk}\t{sk}\n".encode())
        return told.hexdigest()


def _just_before(pool: Pool, row: Rated) -> Iterator[tuple[str, Rating]]:
    """Where a row's players stood just before it."""
    game = rated_game(pool.system, row)
    players = pool.system.players(game.content) if game is not None else [sid for sid, *_ in row.after]
    for sid, (rating, index, *_) in zip(players, row.before, strict=False):
        yield sid, (rating, index)


def _added(pool: Pool, change: Change) -> list[Key]:
    """The pointers that a change adds."""
    return sorted(_pointers(pool, _moment(change.now)) - _pointers(pool, _moment(change.was)))


def _pointers(pool: Pool, row: Rated | None) -> set[Key]:
    return set() if row is None else pointers_of(pool, row, row.order)


def _write_replay(run: Run, events: Sequence[Event], replay: _Replay, due: int) -> bool:
    """Write what differs; True when it took a new generation."""
    pool, cursor = run.pool, run.cursor
    index, boundary, old, new = replay.ready.index, replay.ready.boundary, replay.ready.old, replay.new
    causes = Causes(pool.system, events, follow(old.aliases), cursor.head)
    plan, draft = _Plan(pool, None if replay.rebuild else causes, cursor.head), Draft()
    for change in replay.changes():
        plan.take(change)
    for key in old.rows.keys() | new.rows.keys():
        if not store.is_rated_key(key) and old.rows.get(key) != new.rows.get(key):
            draft.rows[key] = new.rows.get(key)
    total, count = _state_rows(run, draft, plan.players, replay)
    games = plan.games | _games_of(events)
    games |= {_ref(sk) for pk, sk in draft.rows if pk in (keys.open_games(pool.id), keys.held(pool.id))}
    kept = [c for c in index.checkpoints if boundary and c.at <= instant_of(boundary)]
    checkpoints = _thinned([*kept, *new.marks])
    moved = replace(
        cursor,
        position=cursor.position + sum(1 for e in events if e.kind != "rebuild"),
        head=new.head,
        closed_until=due,
        hash=to_hex(total),
        players=count,
        games=new.finishes if not boundary else cursor.games + new.finishes - old.finishes,
        held=sum(1 for pk, _ in new.rows if pk == keys.held(pool.id)),
        newest=max([cursor.newest, *(e.accepted_at for e in events if e.kind != "rebuild")]),
        rules_version=pool.version,
    )
    _journal(run, draft, causes, replay, plan, moved)
    closing: list[Operation] = [_index_operation(run, index, new, checkpoints)]
    if plan.players or games or due != cursor.closed_until:
        closing.append(outbox_entry(run, moved, plan.players, games, plan.since))
    run.result.replays += 1
    removals: list[Operation] = [ledger.removal(pool.id, e) for e in events]
    draft.lost_pointers |= plan.lost
    lost: list[Operation] = [Delete(key) for key in sorted(draft.lost_pointers)]
    small = len(draft.rows) + len(draft.pointers) + len(draft.beside) + plan.writes
    long = small + len(closing) + len(removals) + len(lost) + 1 > IN_PLACE
    if long:
        _new_generation(run, draft, plan, moved, replay, closing, events)
    else:
        for change in plan.kept if plan.kept is not None else replay.changes():
            draft.rows[change.key] = change.now
            draft.pointers.update(_added(pool, change))
        writes = store.in_place(draft, cursor.generation)
        _commit(run, [store.put_cursor(moved, cursor.version), *writes, *lost, *closing, *removals], moved)
    run.result.events += len(events)
    _drop_objects(run, [*index.checkpoints, *new.marks], checkpoints)
    return long


def _journal(run: Run, draft: Draft, causes: Causes, replay: _Replay, plan: _Plan, moved: Cursor) -> None:
    """Tell each player whose rated games came out anew what they were before, and what caused it."""
    if not plan.rerated or replay.rebuild:
        return
    before = store.read_states(run.table, run.pool.id, plan.rerated, run.cursor.view)
    for sid, games in plan.rerated.items():
        row, now = before.get(sid), replay.ready.fold.states.get(sid)
        one = (row.state.rating, row.state.index) if row is not None else None
        two = plan.came_to.get(sid, (now.rating, now.index) if now is not None else None)
        if one != two:
            entry = notes.Entry(run.now, causes.of(sid), one, two, games)
            item = notes.entry_item(run.pool.id, sid, moved.position, run.now, entry)
            draft.beside.append(item)


def _moment(text: str | None) -> Rated | None:
    """A moment out of its row. Of a million nobody holds more at once than the rows."""
    return None if text is None else store.load_rated(text)


def _state_rows(run: Run, draft: Draft, players: set[str], replay: _Replay) -> tuple[int, int]:
    """Add the states that differ to the draft; the new state hash and number of players."""
    states, last, boundary = replay.ready.fold.states, replay.new.last, replay.ready.boundary
    pool, view, system = run.pool, run.cursor.view, run.pool.system
    every = replay.ready.from_ledger
    if every:
        before = store.read_all_states(run.table, pool.id, view)
        players = players | set(before) | set(states)
        total, count = 0, 0
    else:
        before = store.read_states(run.table, pool.id, players, view)
        total, count = int(run.cursor.hash, 16), run.cursor.players
    for sid in sorted(players):
        was, now = before.get(sid), states.get(sid)
        if not every:
            total -= line_hash(system, sid, was.state) if was is not None else 0
            count -= was is not None
        if now is None:
            if was is not None:
                draft.rows[keys.state(pool.id, sid)] = None
                draft.lost_pointers.add((keys.memberships(sid), pool.id))
            continue
        total += line_hash(system, sid, now)
        count += 1
        key = last.get(sid, "")
        if not key and boundary and (before_it := _last_row_until(run, sid, boundary)) is not None:
            key = before_it.order
        row = StateRow(now, key)
        if was is None or was != row:
            draft.rows[keys.state(pool.id, sid)] = store.dump_state(row)
        if was is None:
            draft.pointers.add((keys.memberships(sid), pool.id))
    return total % MODULUS, count


def _index_operation(run: Run, index: Index, new: _New, checkpoints: Sequence[Checkpoint]) -> Update:
    months = set(index.months) | new.months
    values: dict[str, Any] = {"checkpoints": msgspec.json.encode(checkpoints).decode()}
    expression = "SET #checkpoints = :checkpoints"
    if months:
        expression += ", #months = :months"
        values["months"] = months
    return Update(store.index_key(run.pool.id), expression, values)


def _new_generation(
    run: Run,
    draft: Draft,
    plan: _Plan,
    moved: Cursor,
    replay: _Replay,
    closing: Sequence[Operation],
    events: Sequence[Event],
) -> None:
    """Write the plan beside what stands, then let one transaction make it count.

    Where a run that died had the same in mind, what it wrote stands, and only the rest is written.

    Args:
        draft: all but the moments' rows and pointers to them.
    """
    pool, cursor, begun, view = run.pool, run.cursor, run.begun, run.cursor.view
    ordered = sorted(draft.rows)
    digest = plan.digest(draft)
    mine, done = max(cursor.claimed, cursor.generation) + 1, 0
    # Journal lines are told anew, with the time of this run: where they were begun, nothing can be taken over.
    before_journal = plan.writes + len(ordered) + len(draft.pointers)
    if begun is not None and begun.digest == digest and begun.done <= before_journal:
        mine, done = begun.generation, begun.done
    # Read before the claim: from then on others watch this run write. They cannot have changed anything either.
    old, new = replay.ready.old.rows, replay.new.rows
    states = run.reads.fetch(key for key in ordered if key not in old and key not in new)
    dead = [g for g in (*cursor.dead, *_given_up(cursor, mine)) if g != mine]
    claim = replace(cursor, claimed=mine, dead=tuple(dead))
    beat = begun.beat + 1 if begun is not None else 0
    first = progress(pool.id, mine, done, beat)
    if begun is not None:  # while this run planned, the other may have turned out to be alive
        first = replace(
            first, condition="#beat = :beat AND #done = :done", values={"beat": begun.beat, "done": begun.done}
        )
    told = _plan_item(pool, mine, digest, moved.closed_until, events)
    _commit(run, [store.put_cursor(claim, cursor.version), first, told], claim)
    claimed_version = run.cursor.version
    fence = Check(keys.cursor(pool.id), "#version = :version", {"version": claimed_version})
    at_once = run.ctx.writes_at_once
    writer = GenerationWriter(run.table, pool.id, mine, fence, view=view, done=done, beat=beat, at_once=at_once)

    def side_rows() -> Iterator[Operation]:
        for key in ordered:
            stands = old.get(key)
            if stands is None and key in states:
                stands = view.pick(states[key])
            yield Put(store.as_next(key, stands, view, draft.rows[key], mine))
        yield from (Put({"pk": pk, "sk": sk}) for pk, sk in sorted(draft.pointers))
        yield from (Put({**item, "generation": mine}) for item in draft.beside)

    try:
        again = _Plan(pool)
        for change in plan.kept if plan.kept is not None else replay.changes(writer.alive):
            pointers = _added(pool, change)
            again.count(change, pointers)
            writer.change(change, pointers)
        if again.digest(draft) != digest:
            raise Overtaken  # what stands is no longer what the plan was made from
        writer.all_sent()
        writer.one_by_one(side_rows())
    finally:
        writer.close()
        run.result.transactions += writer.transactions
    final = replace(moved, generation=mine, claimed=mine, dead=run.cursor.dead, removing=bool(events))
    entries = [[ledger.inbox_shard(e), e.id] for e in events]
    applied_pk, applied_sk = _applied_key(pool.id)
    operations: list[Operation] = [store.put_cursor(final, claimed_version), *closing]
    if entries:
        body = msgspec.json.encode(entries).decode()
        operations.append(Put({"pk": applied_pk, "sk": applied_sk, "events": body}, "attribute_not_exists(pk)"))
    _commit(run, operations, final)
    with contextlib.suppress(Overtaken):  # it counts by now; whoever was faster has emptied the inbox
        _finish_removals(run.table, pool.id)
    _drop_pointers(run, draft)


def _given_up(cursor: Cursor, until: int) -> list[int]:
    """Generations before that one which never came to count."""
    return [g for g in range(cursor.generation + 1, until) if g not in cursor.dead]


def _drop_pointers(run: Run, draft: Draft) -> None:
    """Pointers to rows that are no longer there: they lead nowhere, so losing this work costs nothing but space."""
    fence = Check(keys.cursor(run.pool.id), "#version = :version", {"version": run.cursor.version})
    deletes: list[Operation] = [Delete(key) for key in sorted(draft.lost_pointers)]
    try:
        for start in range(0, len(deletes), TRANSACTION_ITEMS - 1):
            run.table.transact([fence, *deletes[start : start + TRANSACTION_ITEMS - 1]])
    except ConditionFailed:
        return


def _drop_objects(run: Run, known: Sequence[Checkpoint], kept: Sequence[Checkpoint]) -> None:
    """Checkpoint objects that nothing names any more."""
    gone = {c.key for c in known} - {c.key for c in kept}
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
    run = Run(ctx, pool, cursor, Applied(pool.id), ctx.clock(), _Reads(ctx.table))
    replay = _fold_again(run, events, events, due, dry=True)
    plan, anew = _Plan(pool), set[GameRef]()
    before = {sid: row.state for sid, row in store.read_all_states(ctx.table, pool.id, cursor.view).items()}
    for change in replay.changes():
        plan.take(change)
        was = _moment(change.was)
        if was is not None and was.game is not None:
            anew.add((was.game.club, was.game.game_id))
    concerned, states = plan.players, replay.ready.fold.states
    after = dict(before)
    for sid in concerned:
        if sid in states:
            after[sid] = states[sid]
        else:
            after.pop(sid, None)
    changed = {sid for sid in concerned if before.get(sid) != after.get(sid)}
    mine = {(e.game.club, e.game.game_id) for e in events if e.game is not None}
    held = [
        (ref, msgspec.json.decode(text, type=HeldRow).reason)
        for (pk, sk), text in replay.new.rows.items()
        if pk == keys.held(pool.id) and (ref := _ref(sk)) in mine
    ]
    return Effects(cursor, len(anew), sorted(changed), before, after, held)
