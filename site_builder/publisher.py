"""A publication: what changed since the last one becomes pages. Details first, lists after them, the rest last.

The run keeps the last published list as one compact object, applies the changed standings to it and writes only the
pages whose content differs. A run that breaks off leaves its outbox entries where they are, so the next run does it
all again; every object is compared with what is there before it is written.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, count
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace as replace_struct

from shared.ledger import calendar, lists
from shared.ledger.order import BEGINNING, END
from shared.ledger.rules import in_force
from shared.ratings.base import MICROSECONDS, PlayerState, Rating, Settings
from shared.store import keys, pools
from shared.store import rated as rated_store
from shared.store.bucket import etag
from shared.store.pools import Pool
from shared.store.rated import Cursor
from shared.store.table import ConditionFailed, Update
from shared.usecases import closing, compact, published, rating, wake
from shared.usecases.context import Context
from shared.usecases.published import MAIN, ListRow, MonthNote, PublishedList
from site_builder import assets, data, garbage, inventory, ledger_files, parts, site, views
from site_builder.collation import collation_key
from site_builder.gather import GameRef, Gatherer, game_page_id, player_page_id
from site_builder.listing import Change, Listing, changes, handles_of, players_of
from site_builder.parts import LEASE as LEASE
from site_builder.parts import Overtaken as Overtaken
from site_builder.parts import renew
from site_builder.placed import VARIANTS, Placed, as_listed, changed_pages, mains, of_labels, pages_of, pages_that_moved
from site_builder.stages import MOVED, Stages, Task, pool_view
from site_builder.uploads import CACHE_PAGES, Uploads
from site_builder.words import languages

STEADY_READS = 30
"""How often a run reads again what changed while it read, before it leaves the pool to the next run."""
CLOSINGS_IN_SPARK = 12
SLACK = 3600 * MICROSECONDS
"""By so much clocks may differ, and results wait."""
RENAMED = 20_000
"""Pages beyond which publishing those that show a new name is no better than publishing everything."""
STATISTICS_GAMES = 20_000
"""Beyond, statistics wait for the next publication of everything, as they need every game; they say their day."""
PLAYER_FILES = 3
"""Objects of a player beside his pages: JSON, feed, picture."""
ALONE = 3
"""Parts that are sooner done than others have come to help."""
LARGE = 20_000
"""Objects from which a whole publication no longer holds every row of the pool at once."""
_last_played = attrgetter("state.last_played")
CACHE_ASSETS = "public, max-age=31536000, immutable"


@dataclass
class Published:
    """What a run did."""

    pool: str
    publication: str = ""
    position: int = 0
    built: int = 0
    written: int = 0
    bytes: int = 0
    removed: int = 0
    helped: int = 0
    """Parts that other runs did."""


@dataclass
class _Dirty:
    """What the outbox says has changed."""

    everything: bool = False
    players: set[str] = field(default_factory=set)
    games: set[GameRef] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)
    """Players who have another name or other clubs."""
    since: int = END
    entries: list[str] = field(default_factory=list)


def publish(ctx: Context, pool_id: str) -> Published | None:
    """Publish a pool; None when there is nothing to do.

    Raises:
        Overtaken: another run is at it; its end asks again when anything is left.
    """
    pool = pools.load(ctx.table, pool_id)
    if pool is None:
        return None
    with garbage.held_off():  # until all that the run has made is dropped
        return _publish(ctx, pool)


def _publish(ctx: Context, pool: Pool) -> Published | None:
    pool_id = pool.id
    run, after_crash = _begin(ctx, pool_id)
    publication = _Publication(ctx, pool, run, after_crash=after_crash)
    alone = False
    try:
        wake.answered(ctx, pool_id)
        done = publication.publish()
        alone = True
        return done
    except rated_store.StaleView:
        raise Overtaken(pool_id) from None
    finally:
        publication.uploads.close()
        if alone or not publication.has_helpers:  # one that breaks off must leave its helpers the time they have
            _end(ctx, pool_id, run)


def _begin(ctx: Context, pool: str) -> tuple[int, bool]:
    """Take the lease; the number of this run, and whether a run before it wrote pages and broke off."""
    now = ctx.clock()
    item = ctx.table.get(*keys.published(pool)) or {}
    run = int(item.get("run", 0)) + 1
    try:
        ctx.table.write(
            Update(
                keys.published(pool),
                "SET #run = :run, #leased = :until",
                {"run": run, "until": now + LEASE, "was": run - 1, "now": now},
                "(attribute_not_exists(#run) OR #run = :was) AND (attribute_not_exists(#leased) OR #leased < :now)",
            )
        )
    except ConditionFailed:
        raise Overtaken(pool) from None
    return run, int(item.get("began", 0)) > int(item.get("completed", 0))


def _end(ctx: Context, pool: str, run: int) -> None:
    try:
        ctx.table.write(Update(keys.published(pool), "REMOVE #leased", {"run": run}, "#run = :run"))
    except ConditionFailed:
        return


def _refresh(ctx: Context, pool: Pool, cursor: Cursor, states: dict[str, PlayerState], players: Iterable[str]) -> None:
    """Replace these players' states by what the cursor's view has; those without one go."""
    wanted = set(players)
    found = rated_store.read_states(ctx.table, pool.id, wanted, cursor.view)
    for sid in wanted:
        if sid in found:
            states[sid] = found[sid].state
        else:
            states.pop(sid, None)


class _Month(NamedTuple):
    """A month whose list is to be written."""

    at: int
    """Its closing."""
    players: int
    packed: bytes
    """Their states: a list of 100,000 players for each of 24 months would not fit."""


class _Publication:
    """One run."""

    def __init__(self, ctx: Context, pool: Pool, run: int, *, after_crash: bool) -> None:
        self.ctx = ctx
        self.pool = pool
        self.run = run
        self.after_crash = after_crash
        self.result = Published(pool.id)
        self.site = views.SiteView(ctx.site_origin, ctx.api_origin or ctx.site_origin)
        self.uploads = Uploads(ctx, lambda: renew(ctx, pool.id, run))
        self.lead: parts.Lead | None = None
        self.ledger_left = False
        """The pool moved while its ledger was read: what is published of it stays."""
        self.known: Mapping[str, ListRow] = {}
        """The rows of the last list by player."""
        self.by_sid: dict[str, ListRow] = {}
        """The rows of this list by player."""
        self.changes: list[Change] = []

    @property
    def has_helpers(self) -> bool:
        """Whether other runs may be writing pages of this one."""
        return self.lead is not None and self.lead.asked

    # -- the run -------------------------------------------------------------------------------------------------
    def publish(self) -> Published | None:
        """Read, build, write."""
        ctx, pool = self.ctx, self.pool
        cursor = rated_store.read_cursor(ctx.table, pool.id)
        newest = pool
        pool = self.pool = pools.as_rated(ctx.table, newest, cursor.rules_version)
        dirty = self._outbox()
        kept = published.take(ctx, pool.id)
        old = kept.published if kept is not None else None
        if old is None or old.rules_version != pool.version:
            dirty.everything = True
        if dirty.renamed and not dirty.everything:
            self._named_anew(dirty)
        if dirty.everything:
            dirty.since = BEGINNING
        fresh_month = old is None or old.closed_until != cursor.closed_until
        now = ctx.clock()
        whole = dirty.everything or fresh_month or bool(dirty.renamed)
        whole = whole or old is None or now - old.whole_at >= wake.whole_files_every(ctx)
        overdue = whole and old is not None and old.whole_at < old.published_at
        frozen = _frozen_since(ctx, pool, old)
        dirty.since = min(dirty.since, frozen)
        idle = not (dirty.entries or dirty.everything or fresh_month or overdue or frozen < END)
        if idle and kept is not None and kept.published.position == cursor.position:
            published.hold(ctx, pool.id, kept)
            return None
        states, cursor = self._states(cursor, dirty)
        if pools.as_rated(ctx.table, newest, cursor.rules_version).version != pool.version:
            raise Overtaken(pool.id)  # new rules have come to count meanwhile
        self.gather = Gatherer(ctx, pool, cursor)
        # A row that only gives way gets its new place itself; so the old ones are taken down before.
        self.was = as_listed(old.rows) if old is not None else Placed()
        rows = self._rows(states, old, dirty, now)
        self.gather.listed = self.by_sid.keys()
        if dirty.everything:
            self.uploads.present = self._stored()
            if not self._is_large(cursor):
                self.gather.read_everything()
        new = PublishedList(
            publication=f"{self.run:08d}",
            published_at=now,
            position=cursor.position,
            state_hash=cursor.hash,
            results_up_to=max((at for at in map(_last_played, rows) if at is not None), default=None),
            closed_until=cursor.closed_until,
            rules_version=pool.version,
            rows=rows,
            months=[replace_struct(note) for note in old.months] if old is not None and not dirty.everything else [],
            whole_at=old.whole_at if old is not None else 0,
            loose={} if dirty.everything or old is None else dict(old.loose),
            best=old.best if old is not None else [],
            played=dict(old.played) if old is not None else {},
        )
        self.view = pool_view(pool, new, cursor)
        self._count(new, old, dirty)
        self.gather.labels = set(self.counts.labels)
        self.gather.loose = new.loose
        # A run that broke off may have written other players' pages too, of a month's list that is gone again.
        self.every_player = dirty.everything or fresh_month
        self.every_player |= self.after_crash and dirty.since <= (cursor.closed_until or BEGINNING)
        whole = self._expand(old, dirty) or whole
        self._closings(new, old, dirty, fresh_month)
        if new.rows is not rows:
            self.by_sid = {row.sid: row for row in new.rows}
            self.changes = changes(self.known, self.by_sid)
        dirty.players |= {row.sid for was, row in self.changes if was and row and _shows(was) != _shows(row)}
        self.result.publication, self.result.position = new.publication, new.position
        self._write_stubs(old)
        self.whole = whole
        self._write(new, old, dirty, cursor, fresh_month)
        self._check(new, old, dirty)
        self._finish(new, old)
        published.save(ctx, pool.id, new, kept)
        self._done(new, dirty)
        uploads = self.uploads
        self.result.built, self.result.written, self.result.bytes = uploads.built, uploads.written, uploads.bytes
        self.result.helped = self.lead.helped if self.lead is not None else 0
        return self.result

    def _is_large(self, cursor: Cursor) -> bool:
        """Whether so much is to be published that it is read part by part, by whoever does the part."""
        languages = len(self.pool.languages or ("en",))
        objects = cursor.players * (languages + PLAYER_FILES) + cursor.games * languages
        return self.ctx.helpers > 0 and objects > LARGE

    def _count(self, new: PublishedList, old: PublishedList | None, dirty: _Dirty) -> None:
        """Count the lists, this and the last. Who is in which club, group, tournament and year follows from the
        changes, but where everything is made anew."""
        counts_were = inventory.count(self.view, self.was.rows, old.members if old is not None else None)
        members: Mapping[str, int] | None = None
        if not dirty.everything:
            members = inventory.members_after(counts_were.labels, self.changes)
        self.counts = inventory.count(self.view, new.rows, members)
        # Where the counts are the same, so are the keys that follow from them.
        self.counts_were = self.counts if self.counts == counts_were else counts_were
        new.members = dict(self.counts.labels)

    def _stored(self) -> dict[str, str]:
        """Every object of the pool, also those of languages that it has no more."""
        found = dict(self.ctx.site.list(f"{self.pool.id}/"))
        for language in languages():
            found |= dict(self.ctx.site.list(f"{language}/{self.pool.id}/"))
            found |= dict(self.ctx.site.list(f"{language}/embed/{self.pool.id}/"))
        return found | dict(self.ctx.site.list(f"embed/{self.pool.id}/"))

    def _expand(self, old: PublishedList | None, dirty: _Dirty) -> bool:
        """Pages that change because somebody they name got a page or lost it. True: the whole-pool files do too."""
        if old is None or dirty.everything:
            return True
        came, gone = players_of(self.changes)
        switched = came | gone | (self.counts_were.labels.keys() ^ self.counts.labels.keys())
        for page, names in old.loose.items():
            if self.after_crash or not switched.isdisjoint(names):
                kind, _, rest = page.partition("#")
                if kind == "p":
                    dirty.players.add(rest)
                else:
                    club, _, game = rest.partition("#")
                    dirty.games.add((club, game))
        if gone or self.after_crash:
            dirty.since = BEGINNING
        for note in old.months:
            if not self.gather.listed.isdisjoint(note.pageless):
                dirty.since = min(dirty.since, closing.closing_of(note.month, self.pool.time_zone))
        # What is told on the page of corrections has a page, also while it waits to be rated.
        recent = old.published_at - SLACK
        dirty.games |= {(n.club, n.game_id) for n in self.gather.notes() if n.club and n.game_id and n.at > recent}
        return self.after_crash or bool(gone) or not self._list_keys(self.counts_were) <= self._list_keys(self.counts)

    def _outbox(self) -> _Dirty:
        dirty = _Dirty()
        for item in self.ctx.table.query(keys.outbox(self.pool.id)):
            dirty.entries.append(item["sk"])
            body: Mapping[str, Any] = msgspec.json.decode(item["body"]) if "body" in item else item
            if body.get("all"):
                dirty.everything = True
            if "renamed" in body:
                dirty.renamed.add(body["renamed"])
            dirty.players |= set(body.get("players", ()))
            dirty.games |= {(c, g) for c, g in body.get("games", ())}
            dirty.since = min(dirty.since, body.get("since", END))
        return dirty

    def _named_anew(self, dirty: _Dirty) -> None:
        """Add the pages that show a name which changed: of the games, of everybody in them, and of the months since.

        Lists are written where a row differs; it takes one reading of the ledger, since a game that was never rated
        names its players too.
        """
        told = compact.read(self.ctx, self.pool)
        merges = [(event.player, event.value["into"]) for event in told.others() if event.kind == "merge"]
        same = set(dirty.renamed)
        while more := {away for away, into in merges if into in same} - same:
            same |= more
        found = set(same)
        for game in told.games_of(same):
            dirty.games.add((game.club, game.game_id))
            found |= set(self.pool.system.mentioned(game.content))
            dirty.since = min(dirty.since, game.started_at)
        if any(event.kind in ("start", "rank-me") and event.player in same for event in told.others()):
            dirty.since = BEGINNING
        while more := {into for away, into in merges if away in found} - found:
            found |= more
        dirty.players |= found
        dirty.everything = len(found) + len(dirty.games) > RENAMED

    def _list_keys(self, counts: inventory.Counts) -> frozenset[str]:
        """The pages of lists and labels of this publication or the last, which mostly has the same."""
        if counts is not self.counts:
            return self._list_keys_were
        return self._list_keys_now

    @cached_property
    def _list_keys_now(self) -> frozenset[str]:
        return frozenset(inventory.list_and_label_keys(self.view, self.counts))

    @cached_property
    def _list_keys_were(self) -> frozenset[str]:
        return frozenset(inventory.list_and_label_keys(self.view, self.counts_were))

    def _shared_keys(self, published: PublishedList, counts: inventory.Counts) -> set[str]:
        """All that a publication has but pages of players and games, the ledger's segments, and whole-pool files."""
        return inventory.shared_keys(self.view, published, self._list_keys(counts))

    def _new_pages(self, old: PublishedList | None) -> set[str]:
        """Pages that are not there yet and that others will link to."""
        view, fresh = self.view, set(self._list_keys(self.counts))
        known = set[str]()
        if old is None:
            fresh |= set(inventory.section_keys(view))
        else:
            fresh -= self._list_keys(self.counts_were)
            known = {note.month for note in old.months if note.kind == "frozen"}
        fresh |= set(inventory.player_keys(view, handles_of(self.changes)[0]))
        for month, told in self.months.items():
            if month not in known:
                frozen = closing.frozen_states(self.ctx, self.pool.id, month)
                stands = frozen is not None and closing.is_frozen(self.pool, told.at)
                fresh |= set(inventory.month_pages(view, month, len(frozen) if stands and frozen else told.players))
        return {key for key in fresh if key.endswith(".html") and "embed/" not in key}

    # -- the list ------------------------------------------------------------------------------------------------
    def _states(self, cursor: Cursor, dirty: _Dirty) -> tuple[dict[str, PlayerState], Cursor]:
        """The states of all players, or of those that changed, as of one cursor: read again what the rater changed
        meanwhile until it held still."""
        table, pool = self.ctx.table, self.pool
        states: dict[str, PlayerState] = {}
        if dirty.everything:
            states = {s: r.state for s, r in rated_store.read_all_states(table, pool.id, cursor.view).items()}
        else:
            _refresh(self.ctx, pool, cursor, states, dirty.players)
        for _ in range(STEADY_READS):
            again = rated_store.read_cursor(table, pool.id)
            if again.version == cursor.version:
                return states, cursor
            cursor, more = again, self._outbox()
            if (more.everything or not more.renamed <= dirty.renamed) and not dirty.everything:
                raise Overtaken(pool.id)
            _refresh(self.ctx, pool, cursor, states, more.players)
            dirty.players |= more.players
            dirty.games |= more.games
            dirty.since = min(dirty.since, more.since)
            dirty.entries = more.entries
        raise Overtaken(pool.id)

    def _rows(
        self, states: Mapping[str, PlayerState], old: PublishedList | None, dirty: _Dirty, now: int
    ) -> list[ListRow]:
        """The rows of the new list, in its order and with places, previous ones still of the old list.

        A row that says the same as before is the same object, so that the many that did are told apart at no cost.
        """
        known: dict[str, ListRow] = {row.sid: row for row in self.was.rows}
        self.known = known
        touched = states.keys() if dirty.everything else dirty.players
        self.gather.read_anew(touched)
        if not dirty.everything:
            self.gather.remembered = known
        rows: dict[str, ListRow] = {}
        for sid in touched & states.keys():
            was, person = known.get(sid), self.gather.persons.get(sid)
            if person is None:
                if was is not None:
                    rows[sid] = replace_struct(was, state=states[sid])
                continue
            named = (person.handle, person.name, tuple(person.clubs))
            if was is None:
                rows[sid] = ListRow(sid, *named, states[sid])
            else:
                rows[sid] = replace_struct(was, handle=named[0], name=named[1], clubs=named[2], state=states[sid])
        listing = Listing(self.pool, now)
        if dirty.everything or old is None:
            listed = listing.of_all(rows)
            self.by_sid = {row.sid: row for row in listed}
            self.changes = changes(known, self.by_sid)
            return listed
        listed, put = listing.applied(old.rows, touched, rows)
        self.by_sid = {**known, **{sid: row for sid, row in put.items() if row is not None}}
        for sid in (sid for sid, row in put.items() if row is None):
            self.by_sid.pop(sid, None)
        self.changes = changes(known, self.by_sid, put)
        return listed

    # -- months --------------------------------------------------------------------------------------------------
    def _closings(self, new: PublishedList, old: PublishedList | None, dirty: _Dirty, fresh_month: bool) -> None:
        """Lists of the months that changed, and from the last closings movement and sparklines."""
        self.months: dict[str, _Month] = {}
        self.before_months: dict[str, tuple[int | None, Rating]] = {}
        """Place and rating of everybody at the closing before the first of them."""
        last = new.closed_until
        if last is None or not (fresh_month or dirty.since <= last):
            return
        # The list before the first new one links to it, so it is written too.
        since = dirty.since
        if fresh_month:
            since = min(since, old.closed_until if old is not None and old.closed_until is not None else BEGINNING)
        sparks: dict[str, list[int]] = {row.sid: [] for row in new.rows}
        recent = self._recent_closings(last)
        begin = min([since, *recent[:1]])
        if begin > BEGINNING:
            # One closing before, for what a month's list is compared with.
            begin = calendar.last_closing(begin - 1, self.pool.time_zone)
        latest: dict[str, tuple[int | None, Rating]] = {}
        for closed in rating.closings_since(self.ctx, self.pool, begin):
            month = calendar.closed_month(closed.day)
            if closed.at >= since:
                if not self.months:
                    self.before_months = latest
                self.months[month] = _Month(closed.at, len(closed.states), rated_store.pack_states(closed.states))
            latest = self._standing_at(closed.states, closed.at)
            if closed.at in recent:
                for sid, (_, at_closing) in latest.items():
                    if sid in sparks:
                        sparks[sid].append(at_closing[0])
        self._months_without_results(since, last)
        new.months = [note for note in new.months if closing.closing_of(note.month, self.pool.time_zone) < since]
        shown = self._last_list(last, latest)
        rows = []
        for row in new.rows:
            previous_place, previous = latest.get(row.sid, (None, None))
            month_place = shown[row.sid][0] or 0 if row.sid in shown else None
            moved = {"previous_place": previous_place, "previous": previous, "month_place": month_place}
            rows.append(replace_struct(row, spark=tuple(sparks[row.sid]), **moved))
        new.rows = rows

    def _months_without_results(self, since: int, last: int) -> None:
        """A frozen list stands even when every result before it was voided."""
        for at, day in calendar.closings(max(since, self.pool.created_at) - 1, last, self.pool.time_zone):
            month = calendar.closed_month(day)
            if month in self.months or not closing.is_frozen(self.pool, at):
                continue
            if closing.frozen_states(self.ctx, self.pool.id, month):
                self.months[month] = _Month(at, 0, rated_store.pack_states({}))

    def _last_list(
        self, last: int, latest: dict[str, tuple[int | None, Rating]]
    ) -> dict[str, tuple[int | None, Rating]]:
        """The places of the last month's list as it stands on its page."""
        if not closing.is_frozen(self.pool, last):
            return latest
        month = calendar.closed_month(calendar.day_of(last, self.pool.time_zone))
        frozen = closing.frozen_states(self.ctx, self.pool.id, month)
        return latest if frozen is None else self._standing_at(frozen, last)

    def _recent_closings(self, last: int) -> list[int]:
        year_before = last - 366 * 86_400 * MICROSECONDS
        found = [at for at, _ in calendar.closings(year_before, last, self.pool.time_zone)]
        return found[-CLOSINGS_IN_SPARK:]

    def _standing_at(self, states: Mapping[str, PlayerState], at: int) -> dict[str, tuple[int | None, Rating]]:
        """Place (None: listed apart) and rating of everybody at a closing."""
        order = lists.ordered(self.pool.system, states, {}, lists.collate_plain)
        variants = self._variants(states, order, at, self.pool.rules[self._rules_at(at)].settings)
        places = lists.places(self.pool.system, states, [sid for sid in order if variants[sid] == MAIN])
        return {sid: (places.get(sid), (s.rating, s.index)) for sid, s in states.items()}

    def _variants(
        self, states: Mapping[str, PlayerState], order: Sequence[str], at: int, settings: Settings
    ) -> dict[str, str]:
        """In which list everybody stands at an instant, by the pool's stated rules."""
        today = calendar.day_of(at, self.pool.time_zone).toordinal()
        return lists.variants(self.pool.system, settings, states, order, today)

    def _rules_at(self, closed: int) -> int:
        """Number of the rules by which a month's list stands: those at its end, so that later ones leave it alone."""
        return in_force(self.pool.rules, closed - 1) or 0

    def _month_pages(self, new: PublishedList) -> Iterator[views.Page]:
        notes = {note.month: note for note in new.months}
        every = sorted({*notes, *self.months})
        latest = self.before_months
        for month in sorted(self.months):
            at, states = self.months[month].at, rated_store.unpack_states(self.months[month].packed)
            before: Mapping[str, tuple[int | None, Rating]] = {}
            if states:
                before, latest = latest, self._standing_at(states, at)
            kind, revised = "reconstructed", None
            frozen = closing.frozen_states(self.ctx, self.pool.id, month) if closing.is_frozen(self.pool, at) else None
            if frozen is not None:
                kind = "frozen"
                difference = _differences(frozen, states)
                revised = len(difference)
                yield self._month_changes(month, difference)
                states = frozen
            rows, first = self._month_rows(states, before, at)
            number = every.index(month)
            pages = site.pages_needed(len(rows))
            pageless = sorted(states.keys() - self.gather.listed)
            whole = views.MonthPage(
                month,
                kind,  # type: ignore[arg-type]
                tuple(rows),
                movers=_movers(rows),
                revised_since=revised,
                pages=pages,
                earlier=every[number - 1] if number else None,
                later=every[number + 1] if number + 1 < len(every) else None,
                rules=self._rules_at(at),
            )
            yield data.month_json(self.view, whole)
            yield data.month_csv(self.view, whole)
            for page in range(1, pages + 1):
                part = tuple(rows[(page - 1) * site.PAGE_SIZE : page * site.PAGE_SIZE])
                yield from site.month_pages(
                    self.site,
                    self.view,
                    replace(whole, standings=part, page=page, movers=whole.movers if page == 1 else ()),
                )
            notes[month] = MonthNote(month, kind, len(rows), first, pageless)
        new.months = [notes[month] for month in sorted(notes)]

    def _month_rows(
        self, states: Mapping[str, PlayerState], before: Mapping[str, tuple[int | None, Rating]], at: int
    ) -> tuple[list[views.Standing], str]:
        """The lines of a month's list, and who leads it."""
        self.gather.know(states)
        settings = self.pool.rules[self._rules_at(at)].settings
        language = self.pool.languages[0] if self.pool.languages else "en"
        named = {sid: found for sid in states if (found := self.gather.named(sid)) is not None}
        order = lists.ordered(self.pool.system, states, named, lambda name: collation_key(name, language))
        variants = self._variants(states, order, at, settings)
        places = lists.places(self.pool.system, states, [sid for sid in order if variants[sid] == MAIN])
        rows = []
        for sid in sorted(order, key=lambda sid: VARIANTS.index(variants[sid])):
            name, handle = named.get(sid, ("", sid))
            place, was = before.get(sid, (None, None))
            line = ListRow(sid, handle, name, (), states[sid], variants[sid], places.get(sid), place, was)
            rows.append(self.gather.standing(line, settings))
        return rows, next((sid for sid in order if sid in places), "")

    def _month_changes(self, month: str, difference: Sequence[tuple[str, Rating | None, Rating | None]]) -> views.Page:
        present = self.pool.system.present
        lines = []
        for sid, was, now in difference:
            self.gather.know([sid])
            lines.append(
                {
                    "player": self.gather.handle(sid),
                    "frozen": present(*was) if was is not None else None,
                    "now": present(*now) if now is not None else None,
                }
            )
        body = data.to_json({"pool": self.pool.id, "month": month, "changes": lines})
        return views.Page(f"{self.pool.id}/lists/{month}/changes.json", data.JSON, body)

    # -- pages ---------------------------------------------------------------------------------------------------
    def _write(
        self, new: PublishedList, old: PublishedList | None, dirty: _Dirty, cursor: Cursor, fresh_month: bool
    ) -> None:
        """All pages of this run in the order in which they go up: those before are there before those behind."""
        renew(self.ctx, self.pool.id, self.run)
        month = new.months[-1].month if new.months else None
        if new.closed_until is not None:
            month = calendar.closed_month(calendar.day_of(new.closed_until, self.pool.time_zone))
        stages = self.stages = Stages(self.ctx, self.pool, self.site, self.view, self.gather, new, self.by_sid, month)
        bare = old is None and not self.uploads.present
        plan = parts.Plan(cursor, new, month, bare, self.after_crash)
        lead = self.lead = parts.Lead(self.ctx, self.run, stages, self.uploads, plan)
        languages = len(self.pool.languages or ("en",))
        if dirty.everything:
            dirty.games |= self.gather.every_game()
        missing = self._stage(lead, "games", sorted(dirty.games), languages)
        dirty.games -= set(missing)
        for ref in missing:
            new.loose.pop(game_page_id(ref), None)
        self._stage(lead, "players", self._players_to_write(new, dirty), languages + PLAYER_FILES)
        self._send(self._month_pages(new))
        self._stage(lead, "labels", self._labels_to_write(dirty), languages)
        self._stage(lead, "lists", self._lists_to_write(dirty, fresh_month=fresh_month), languages + 1)
        first = [self.gather.standing(row) for row in stages.placed(MAIN).rows[:10]]
        self._send(site.embed_pages(self.site, self.view, first))
        # Behind this publication where it leaves the whole-pool files out, also when both fall on one tick.
        new.whole_at = new.published_at if self.whole else min(new.whole_at, new.published_at - 1)
        self._send(self._section_pages(new, old, dirty, cursor))

    def _stage(self, lead: parts.Lead, stage: str, tasks: Sequence[Task], objects_each: int) -> list[GameRef]:
        """Everything of a stage, with help where there is much; the games that do not exist."""
        found = parts.cut(tasks, objects_each)
        if self.ctx.helpers and len(found) > ALONE:
            return lead.share(stage, found)
        missing = []
        for number, part in enumerate(found):
            if number:
                garbage.sweep()
            missing += lead.build(stage, part)
        self.uploads.all_sent()
        return missing

    def _send(self, pages: Iterable[views.Page]) -> None:
        for page in pages:
            self.uploads.put(page)
        self.uploads.all_sent()

    def _players_to_write(self, new: PublishedList, dirty: _Dirty) -> list[Task]:
        by_sid = self.by_sid
        for sid in (sid for sid in dirty.players if sid not in by_sid):
            new.loose.pop(player_page_id(sid), None)
        return [(sid,) for sid in sorted(by_sid if self.every_player else filter(by_sid.__contains__, dirty.players))]

    def _lists_to_write(self, dirty: _Dirty, *, fresh_month: bool) -> list[Task]:
        """Pages of the list, and of the lists apart, whose rows differ."""
        # Tabs and the day of the last closing stand on every page.
        tabs = [variant for variant, players in self.counts_were.lists.items() if variant != MAIN and players]
        every = dirty.everything or self.after_crash or fresh_month or self.stages.variants != tabs
        found: list[Task] = []
        for variant in (MAIN, *self.stages.variants):
            now = self.stages.placed(variant)
            pages = site.pages_needed(len(now.rows))
            if not every and variant in VARIANTS:
                numbers = changed_pages(self.stages.placed_in(self.was, variant), now)
            elif not every:
                numbers = self._changed_by_figure(variant)
            if every or variant == MAIN:
                numbers = list(range(1, pages + 1)) if every else sorted({1, *numbers})
            found += [(variant, str(number)) for number in numbers]
        return found

    def _changed_by_figure(self, figure: str) -> list[int]:
        """Numbers of the pages of a figure's list whose rows differ. Where no figure changed, neither did the order."""
        now = self.stages.placed(figure)
        told = {row.sid for was, row in self.changes if was and row and _but_place(was) != _but_place(row)}
        if all(
            was and row and self._in_figure(was, figure) == self._in_figure(row, figure) for was, row in self.changes
        ):
            spots = compress(count(), map(told.__contains__, map(attrgetter("sid"), now.rows)))
            return pages_of(spots, len(now.rows))
        return changed_pages(self.stages.placed_in(self.was, figure), now, _but_place)

    def _in_figure(self, row: ListRow, figure: str) -> object:
        """What decides where a row stands in a figure's list."""
        return (row.handle, row.variant == MAIN, self.gather.figures(row.state).get(figure))

    def _labels_to_write(self, dirty: _Dirty) -> list[Task]:
        """Pages of the lists of clubs, groups, tournaments and years in which a row or a game differs."""
        every = dirty.everything or self.after_crash
        touched = self.gather.played_in & self.gather.labels
        for was, row in self.changes:
            if was is None or row is None or _in_label(was) != _in_label(row):
                touched |= row.state.labels.keys() if row is not None else set()
                touched |= was.state.labels.keys() if was is not None else set()
        if every:
            touched |= self.counts.labels.keys()
        # A year more, or one less, is a tab on the pages of all the others.
        new_years = {n.rpartition(":")[0] for n in self.counts.labels.keys() ^ self.counts_were.labels.keys()}
        touched |= {n for n in self.counts.labels if n.count(":") == 2 and n.rpartition(":")[0] in new_years}
        members = self.stages.members_of(touched)
        members_were = of_labels(self.was, () if every else touched, self.counts_were.labels)
        found: list[Task] = []
        for label in sorted(touched):
            if not members[label].rows:
                continue
            placed = self.stages.ordered(label)
            if every:
                found += [(label, str(number)) for number in range(1, site.pages_needed(len(placed.rows)) + 1)]
                continue
            were = self.stages.label_order(label, members_were[label])
            numbers = changed_pages(were, placed, _in_label)
            told = set() if self.after_crash else pages_that_moved(were, placed, numbers)
            found += [(label, str(n), MOVED) if n in told else (label, str(n)) for n in sorted({1, *numbers})]
        return found

    def _section_pages(
        self, new: PublishedList, old: PublishedList | None, dirty: _Dirty, cursor: Cursor
    ) -> Iterator[views.Page]:
        """Index of lists, changes, rules, calculator, statistics, feed, whole-pool files."""
        notes = self.gather.notes()
        yield from site.changes_pages(self.site, self.view, notes)
        yield from site.feed_pages(self.site, self.view, self.stages.recent, self._month_feed(new))
        yield from self._index(new, old)
        yield from site.best_pages(self.site, self.view, self._best(new, old))
        if not self.whole:
            return
        yield from site.rules_pages(self.site, self.view)
        yield from site.calculator_pages(self.site, self.view)
        handles = {row.sid: row.handle for row in new.rows}
        try:
            yield from ledger_files.ledger_pages(self.ctx, self.site, self.view, self.pool, cursor, handles)
        except ledger_files.Moving:
            self.ledger_left, new.whole_at = True, 0
        standings = [self.gather.standing(row) for row in new.rows]
        yield data.standings_csv(self.view, standings)
        yield from data.search_pages(self.view, [views.Person(row.handle, row.name) for row in new.rows])
        ratings = [row.state.rating for row in new.rows]
        if self.view.pictures:
            yield site.picture_page(self.view, ratings)
        yield from data.pool_sitemaps(
            self.site, self.pool.id, inventory.addresses_of(self.view, self._shared_keys(new, self.counts), new.rows)
        )
        if dirty.everything or cursor.games <= STATISTICS_GAMES:
            told = self.gather.statistics(self.gather.every_row(), ratings)
            yield from site.statistics_pages(self.site, self.view, told)

    def _month_feed(self, new: PublishedList) -> list[tuple[str, int]]:
        return [(n.month, closing.closing_of(n.month, self.pool.time_zone)) for n in new.months[-24:]]

    def _best(self, new: PublishedList, old: PublishedList | None) -> list[views.BestEver]:
        """The best ratings that anybody ever had. Only who was among them, or has changed, can be, unless one of them
        is so no more."""
        key = self.pool.system.order_key

        def entry(row: ListRow) -> tuple[tuple[int, ...], int, str] | None:
            if row.state.best is None or row.variant == "unlisted":
                return None
            rating, index, at = row.state.best
            return key(replace_struct(row.state, rating=rating, index=index)), at, row.handle

        def slipped(was: ListRow, row: ListRow | None) -> bool:
            before, now = entry(was), entry(row) if row is not None else None
            return now is None or (before is not None and now > before)

        rows: Iterable[ListRow] = new.rows
        among = set(new.best)
        known = old is not None and len(among) == min(site.PAGE_SIZE, len(old.rows))
        if known and not any(slipped(was, row) for was, row in self.changes if was is not None and was.sid in among):
            among |= {row.sid for _, row in self.changes if row is not None}
            by_sid = self.by_sid
            rows = [by_sid[sid] for sid in among if sid in by_sid]
        found = [(rank, row) for row in rows if (rank := entry(row)) is not None]
        first = [row for _, row in heapq.nsmallest(site.PAGE_SIZE, found, key=itemgetter(0))]
        new.best = [row.sid for row in first]
        told = ((row, row.state.best) for row in first)
        return [views.BestEver(row.handle, row.name, best[:2], best[2]) for row, best in told if best is not None]

    def _index(self, new: PublishedList, old: PublishedList | None) -> Iterator[views.Page]:
        self.gather.know({note.first for note in new.months if note.first})
        months = tuple(
            views.MonthEntry(
                n.month,
                n.kind,  # type: ignore[arg-type]
                n.players,
                self.gather.person(n.first) if n.first else None,
            )
            for n in reversed(new.months)
        )
        rows = self.changes
        if old is None or not old.played:
            new.played, rows = {}, [(None, row) for row in new.rows]
        for was, row in rows:
            for told, sign in ((was, -1), (row, 1)):
                for label, record in told.state.labels.items() if told is not None else ():
                    new.played[label] = new.played.get(label, 0) + sign * record[0]
        new.played = {label: new.played[label] for label in sorted(self.counts.labels)}
        tables = [len(self.pool.system.players(dict(line.content))) for line in self.stages.recent]
        seats = max(tables, default=2)
        entries = []
        for label, taken in new.played.items():
            kind, _, rest = label.partition(":")
            name = self.gather.club_names.get(rest, rest) if kind == "club" else rest
            players = self.counts.labels[label]
            entries.append(views.LabelEntry(kind, rest, name, players, taken // seats))  # type: ignore[arg-type]
        yield from site.index_pages(self.site, self.view, views.IndexPage(months, tuple(entries)))

    # -- writing -------------------------------------------------------------------------------------------------
    def _write_stubs(self, old: PublishedList | None) -> None:
        """Pages link to each other in circles, so new ones are there first and have their content afterwards."""
        for path in sorted(self._new_pages(old)):
            if self.uploads.etag(path) is None:
                self.uploads.send(site.stub_page(self.site, self.view, path))
        if old is None:
            # Linked from every page, and known only after all of them.
            for page in (*site.feed_pages(self.site, self.view, ()), data.standings_csv(self.view, ())):
                if self.uploads.etag(page.path) is None:
                    self.uploads.send(page)
        self.uploads.all_sent()

    def _check(self, new: PublishedList, old: PublishedList | None, dirty: _Dirty) -> None:
        """Refuse to finish when a page that should be there was not built, or one was built that should not be."""
        needed = self._shared_keys(new, self.counts)
        if self.whole:
            needed |= set(inventory.whole_keys(self.view, new.rows))
        games = set(inventory.game_keys(self.view, dirty.games))
        if dirty.everything:
            needed |= set(inventory.player_keys(self.view, (row.handle for row in new.rows))) | games
            if self.ledger_left:
                needed = {key for key in needed if "/ledger/" not in key}
            missing, more = needed - self.uploads.kept, self.uploads.kept - needed
        else:
            were = self._shared_keys(old, self.counts_were) if old is not None else set[str]()
            missing = (needed - were - self.uploads.kept) | (games - self.uploads.kept)
            missing |= set(inventory.player_keys(self.view, handles_of(self.changes)[0])) - self.uploads.kept
            more = self.uploads.kept - needed - games
            more = {key for key in more if "/players/" not in key}
        more = {key for key in more if not key.startswith((f"{self.pool.id}/ledger/", f"{self.pool.id}/sitemap"))}
        if missing or more:
            raise RuntimeError(
                f"{len(missing)} pages were not built, {len(more)} should not have been: "
                f"{sorted(missing)[:5]} {sorted(more)[:5]}"
            )

    def _finish(self, new: PublishedList, old: PublishedList | None) -> None:
        """Home page, then ``publication.json``, then what is gone goes."""
        ctx, pool = self.ctx, self.pool
        renew(ctx, pool.id, self.run)
        new.pages = self.uploads.built
        named = inventory.addresses_count(self.view, self._shared_keys(new, self.counts), len(new.rows))
        sitemaps = data.sitemaps_needed(named)
        save_summary(ctx, pool, new, self.view, sitemaps)
        for page in site_pages(ctx, self.site):
            self._put_shared(page)
        self._send([data.publication_json(self.view, new.pages)])
        self._remove(new, old)

    def _done(self, new: PublishedList, dirty: _Dirty) -> None:
        """The list is kept: so is the run's number, and what was to be done is struck off."""
        ctx, pool = self.ctx, self.pool
        ctx.table.write(
            Update(
                keys.published(pool.id),
                "SET #position = :position, #publication = :publication, #published_at = :at, #completed = :run, "
                "#whole_at = :whole",
                {
                    "position": new.position,
                    "publication": new.publication,
                    "at": new.published_at,
                    "run": self.run,
                    "whole": new.whole_at,
                },
                "#run = :run",
            )
        )
        ctx.table.batch_write(deletes=[(keys.outbox(pool.id), sk) for sk in dirty.entries])

    def _put_shared(self, page: views.Page) -> None:
        if self.ctx.site.etag(page.path) != etag(page.body):
            self.ctx.site.put(page.path, page.body, page.content_type, CACHE_PAGES)
            self.uploads.written += 1

    def _remove(self, new: PublishedList, old: PublishedList | None) -> None:
        """What is no longer there."""
        gone: set[str] = set()
        if self.uploads.present is not None:
            # Segments of the ledger that grow no more are not built again.
            folders = [f"{self.pool.id}/ledger/"]
            if self.ledger_left:
                folders += [f"{language}/{self.pool.id}/ledger/" for language in self.pool.languages]
            gone = {
                key
                for key in self.uploads.present
                if key not in self.uploads.kept and not key.startswith(tuple(folders))
            }
            gone.discard(f"{self.pool.id}/publication.json")
        elif old is not None:
            gone = set(inventory.player_keys(self.view, handles_of(self.changes)[1]))
            gone |= self._shared_keys(old, self.counts_were) - self._shared_keys(new, self.counts)
            if self.whole:
                gone |= {*inventory.whole_keys(self.view, old.rows)} - {*inventory.whole_keys(self.view, new.rows)}
            gone |= self._left_by_a_crash(new)
        if gone:
            self.ctx.site.delete(sorted(gone))
            self.result.removed = len(gone)

    def _left_by_a_crash(self, new: PublishedList) -> set[str]:
        """Objects of a run that broke off which nobody remembers: looked for where they can have come to be."""
        if not self.after_crash:
            return set()
        needed = self._shared_keys(new, self.counts) | {*inventory.whole_keys(self.view, new.rows)}
        needed |= set(inventory.player_keys(self.view, (row.handle for row in new.rows)))
        found: set[str] = set()
        for folder in inventory.folders(self.view):
            found |= {key for key, _ in self.ctx.site.list(folder)}
        return found - needed


def _but_place(row: ListRow) -> tuple[object, ...]:
    """A row in a list that has places of its own."""
    return (row.sid, row.handle, row.name, row.state, row.spark, row.previous, row.previous_place)


def _in_label(row: ListRow) -> tuple[object, ...]:
    """What a row shows in the list of a club, group, tournament or year: not its place in the whole list."""
    return (row.sid, row.handle, row.name, row.state, row.variant == "inactive")


def _shows(row: ListRow) -> object:
    """What a player's own page shows though no game of his changed: his place in the last month, his movement, and
    that he counts as inactive."""
    return (row.month_place, row.previous, row.variant == "inactive")


def _frozen_since(ctx: Context, pool: Pool, old: PublishedList | None) -> int:
    """The first closing whose list was published before it was frozen and is frozen now; END: there is none."""
    for note in old.months if old is not None else ():
        at = closing.closing_of(note.month, pool.time_zone)
        if note.kind == "frozen" or not closing.is_frozen(pool, at):
            continue
        if ctx.data.etag(closing.frozen_key(pool.id, note.month)) is not None:
            return at
    return END


def _differences(
    frozen: Mapping[str, PlayerState], now: Mapping[str, PlayerState]
) -> list[tuple[str, Rating | None, Rating | None]]:
    found: list[tuple[str, Rating | None, Rating | None]] = []
    for sid in sorted({*frozen, *now}):
        one, two = frozen.get(sid), now.get(sid)
        was = (one.rating, one.index) if one is not None else None
        then = (two.rating, two.index) if two is not None else None
        if was != then:
            found.append((sid, was, then))
    return found


def _movers(rows: Sequence[views.Standing], most: int = 5) -> tuple[views.Mover, ...]:
    moved = [r for r in rows if r.previous is not None and r.previous[0] != r.rating]
    moved.sort(key=lambda r: (-abs(r.rating - (r.previous or (0, 0))[0]), r.player))
    return tuple(
        views.Mover(r.player, r.name, r.previous or (0, 0), (r.rating, r.index), r.linked) for r in moved[:most]
    )


# -- what all pools share ----------------------------------------------------------------------------------------
def _summary_key(pool: str) -> str:
    return f"published/{pool}/summary"


def save_summary(ctx: Context, pool: Pool, new: PublishedList, view: views.PoolView, sitemaps: int) -> None:
    """What the home page says of a pool."""
    leaders = new.rows[: min(mains(new.rows), 3)]
    body = msgspec.json.encode(
        {
            "players": view.players,
            "games": view.games,
            "last_played": new.results_up_to,
            "leaders": leaders,
            "sitemaps": sitemaps,
        }
    )
    ctx.data.put(_summary_key(pool.id), body, "application/json")


class _Summary(msgspec.Struct):
    players: int
    games: int
    last_played: int | None
    leaders: list[ListRow]
    sitemaps: int = 1


def summaries(ctx: Context) -> tuple[views.PoolSummary, ...]:
    """All pools as the home page shows them."""
    found = []
    for pool_id in pools.all_ids(ctx.table):
        pool = pools.load(ctx.table, pool_id)
        body = ctx.data.get(_summary_key(pool_id))
        if pool is None:
            continue
        summary = msgspec.json.decode(body, type=_Summary) if body is not None else _Summary(0, 0, None, [])
        gather = Gatherer(ctx, pool, Cursor(pool_id))
        found.append(
            views.PoolSummary(
                pool.id,
                pool.name,
                pool.system.name,
                pool.languages,
                summary.players,
                summary.games,
                summary.last_played,
                pool.time_zone,
                tuple(gather.standing(row) for row in summary.leaders),
                summary.sitemaps if body is not None else 0,
            )
        )
    return tuple(found)


def site_pages(ctx: Context, shared: views.SiteView) -> Iterator[views.Page]:
    """Home in all languages, 404, ``site.json``, ``robots.txt``, ``sitemap.xml``."""
    found = summaries(ctx)
    yield from site.home_pages(replace(shared, pools=found))
    yield data.sitemap_index(shared, {summary.id: summary.sitemaps for summary in found})


def publish_site(ctx: Context) -> int:
    """Write what belongs to no pool: assets, home, 404. How many objects were written."""
    shared = views.SiteView(ctx.site_origin, ctx.api_origin or ctx.site_origin)
    written = 0
    for page in assets.asset_pages():
        if ctx.site.etag(page.path) is None:
            ctx.site.put(page.path, page.body, page.content_type, CACHE_ASSETS)
            written += 1
    for page in site_pages(ctx, shared):
        if ctx.site.etag(page.path) != etag(page.body):
            ctx.site.put(page.path, page.body, page.content_type, CACHE_PAGES)
            written += 1
    return written
