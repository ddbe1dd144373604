"""The pages of a publication that there are many of, stage by stage: games, players, labels, lists.

Each stage has *tasks*, a few words each (``("bern", "t1")`` a game, ``("main", "7")`` a page of a list), so that
another run can be told which to do (``parts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from shared.store.pools import Pool
from shared.store.rated import Cursor
from shared.usecases.context import Context
from shared.usecases.published import MAIN, ListRow, PublishedList
from site_builder import inventory, site, views
from site_builder.gather import GameRef, Gatherer, game_page_id, player_page_id
from site_builder.placed import VARIANTS, Placed, among_themselves, as_listed, numbered, of_labels, of_variant

RECENT = 10
"""Games in a pool's feed."""
ASIDE = 6
"""Of the newest games, and of those being played, so many stand on the first page of the list: it is to stay small."""
GAMES_OF_LABEL = {"club": 0, "group": 10, "tournament": 500, "year": 0}
"""Games shown with the list of one."""
STAGES = ("games", "players", "labels", "lists")
"""In the order in which they go up: pages link backwards only."""

Task = tuple[str, ...]
MOVED = "moved"
"""Behind a label's page in a task: its rows moved, so it cannot stand there already as it is to be."""


class Slice(NamedTuple):
    """A page of a list."""

    lines: Sequence[views.Standing]
    places: Sequence[int | None]
    """In this list. A line has the place in the main list."""
    around: tuple[views.Standing | None, views.Standing | None]
    """The lines next to it on either side."""

    def in_place(self) -> Sequence[views.Standing]:
        """The lines with the places of this list."""
        lines = zip(self.lines, self.places, strict=True)
        return [line if line.place == place else replace(line, place=place) for line, place in lines]


def bands_of(pool: Pool) -> tuple[views.Band, ...]:
    """The tiers of a pool's rule system, when it has any."""
    make = getattr(pool.system, "bands", None)
    return tuple(views.Band(*band) for band in make(pool.settings)) if make is not None else ()


def pool_view(pool: Pool, new: PublishedList, cursor: Cursor) -> views.PoolView:
    """A pool as the pages of a publication need it."""
    return views.PoolView(
        id=pool.id,
        name=pool.name,
        system=pool.system.name,
        time_zone=pool.time_zone,
        languages=pool.languages,
        rules=pool.rules_as_given,
        created_at=pool.created_at,
        publication=new.publication,
        published_at=new.published_at,
        results_up_to=new.results_up_to,
        position=cursor.position,
        state_hash=cursor.hash,
        last_closing=cursor.closed_until,
        bands=bands_of(pool),
        players=cursor.players,
        games=cursor.games,
        pictures=True,
    )


@dataclass
class Stages:
    """Builds the pages of tasks."""

    ctx: Context
    pool: Pool
    site: views.SiteView
    view: views.PoolView
    gather: Gatherer
    new: PublishedList
    by_sid: Mapping[str, ListRow]
    """Its rows by player."""
    month: str | None
    """The last closed month."""
    missing: list[GameRef] = field(default_factory=list)
    """Games of tasks that do not exist."""
    _lists: dict[str, Placed] = field(default_factory=dict)
    _members: dict[str, Placed] = field(default_factory=dict)
    _ordered: dict[str, Placed] = field(default_factory=dict)

    def build(self, stage: str, tasks: Sequence[Task]) -> Iterator[views.Page]:
        """The pages of these tasks of a stage."""
        if stage == "games":
            yield from self._games([(club, game_id) for club, game_id in tasks])
        elif stage == "players":
            yield from self._players([sid for (sid,) in tasks])
        elif stage == "labels":
            self.members_of({label for label, *_ in tasks})
            for label, number, *_ in tasks:
                yield from self._label_page(label, int(number))
        else:
            for variant, number in tasks:
                yield from self._list_page(variant, int(number))

    def keys(self, stage: str, tasks: Sequence[Task]) -> Iterator[str]:
        """The objects that ``build`` makes of tasks, those of games that do not exist included."""
        if stage == "games":
            yield from inventory.game_keys(self.view, ((club, game_id) for club, game_id in tasks))
        elif stage == "players":
            yield from inventory.player_keys(self.view, (self.by_sid[sid].handle for (sid,) in tasks))
        elif stage == "labels":
            for label, number, *_ in tasks:
                yield from inventory.label_page(self.view, label, int(number))
        else:
            for variant, number in tasks:
                yield from inventory.list_page(self.view, variant, int(number))

    @staticmethod
    def page_id(stage: str, task: Task) -> str | None:
        """How ``PublishedList.loose`` names a task's page."""
        if stage == "games":
            return game_page_id((task[0], task[1]))
        return player_page_id(task[0]) if stage == "players" else None

    # -- games and players ---------------------------------------------------------------------------------------
    def _games(self, refs: Sequence[GameRef]) -> Iterator[views.Page]:
        for ref, page in self.gather.game_pages(refs):
            if page is None:
                self.missing.append(ref)
            else:
                yield from site.game_pages(self.site, self.view, page)

    def _players(self, sids: Sequence[str]) -> Iterator[views.Page]:
        for page in self.gather.player_pages([self.by_sid[sid] for sid in sids], self.month):
            yield from site.player_pages(self.site, self.view, page)

    # -- lists ---------------------------------------------------------------------------------------------------
    @cached_property
    def whole(self) -> Placed:
        """All rows with their places in the main list."""
        return as_listed(self.new.rows)

    def placed(self, variant: str) -> Placed:
        """A list in its order, with places."""
        found = self._lists.get(variant)
        if found is None:
            found = self._lists[variant] = self.placed_in(self.whole, variant)
        return found

    def placed_in(self, whole: Placed, variant: str) -> Placed:
        """A list of this publication or another."""
        found = of_variant(whole, variant)
        return found if variant in VARIANTS else self._by_figure(found.rows, variant)

    def _by_figure(self, rows: Sequence[ListRow], figure: str) -> Placed:
        """The list of a figure: the highest first, none last.

        Equal figures, and those without, follow each other by handle: so no game moves them that leaves the figure
        alone.
        """
        figures, settings = self.pool.system.figures, self.pool.settings
        values: list[Any] = [figures(row.state, settings).get(figure) for row in rows]
        handles = list(map(attrgetter("handle"), rows))
        order = sorted(range(len(rows)), key=handles.__getitem__)
        known = sorted((number for number in order if values[number] is not None), key=lambda number: -values[number])
        unknown = [number for number in order if values[number] is None]
        places = numbered(values[number] for number in known)
        return Placed([rows[number] for number in (*known, *unknown)], [*places, *(None for _ in unknown)])

    @cached_property
    def variants(self) -> list[str]:
        """The lists apart that there are: each is a tab on the pages of all."""
        told = inventory.variants_of(self.view)
        return [v for v in told if v != MAIN and self.placed(v if v in VARIANTS else MAIN).rows]

    @cached_property
    def recent(self) -> tuple[views.GameLine, ...]:
        """The newest rated games."""
        return tuple(self.gather.game_line(row) for row in self.gather.newest_games(RECENT))

    def _list_page(self, variant: str, number: int) -> Iterator[views.Page]:
        first = number == 1 and variant == MAIN
        placed = self.placed(variant)
        page = self.lines(placed, number)
        yield from site.list_pages(
            self.site,
            self.view,
            page.lines if variant in VARIANTS else page.in_place(),
            number,
            site.pages_needed(len(placed.rows)),
            variant=variant,
            variants=self.variants,
            recent=self.recent[:ASIDE] if first else (),
            live=self.gather.open_games(ASIDE) if first else (),
            around=page.around,
        )

    def lines(self, placed: Placed, number: int) -> Slice:
        """A page of a list."""
        first, last = (number - 1) * site.PAGE_SIZE, number * site.PAGE_SIZE
        found = [self.gather.standing(row) for row in placed.rows[max(first - 1, 0) : last + 1]]
        before = found.pop(0) if first else None
        after = found.pop() if len(found) > site.PAGE_SIZE else None
        return Slice(found, placed.places[first:last], (before, after))

    # -- labels --------------------------------------------------------------------------------------------------
    def members_of(self, labels: set[str]) -> Mapping[str, Placed]:
        """The players of each of these clubs, groups, tournaments and years, found together."""
        self._members |= of_labels(self.whole, labels - self._members.keys(), self.new.members)
        return self._members

    def ordered(self, label: str) -> Placed:
        """The players of one of ``members_of`` with their places in its list."""
        found = self._ordered.get(label)
        if found is None:
            found = self._ordered[label] = self.label_order(label, self._members[label])
        return found

    def _label_page(self, label: str, number: int) -> Iterator[views.Page]:
        ordered = self.ordered(label)
        kind, _, rest = label.partition(":")
        base = rest.partition(":")[0]
        first = number == 1
        has_games = kind == "tournament" or ":" not in rest
        shown = self.lines(ordered, number)
        page = views.LabelPage(
            kind,  # type: ignore[arg-type]
            rest,
            self.gather.club_names.get(base, base) if kind == "club" else base,
            tuple(shown.lines),
            games=self.gather.label_games(label, GAMES_OF_LABEL[kind]) if first and has_games else (),
            page=number,
            pages=site.pages_needed(len(ordered.rows)),
            year=rest.partition(":")[2],
            years=tuple(self._years.get(f"{kind}:{base}", ())) if first else (),
            gainers=self._gainers(label) if first and kind == "tournament" else (),
            around=shown.around,
            places=tuple(shown.places),
        )
        yield from site.label_pages(self.site, self.view, page)

    @cached_property
    def _years(self) -> Mapping[str, Sequence[str]]:
        """By club, group and tournament: the years that have a list."""
        found: dict[str, list[str]] = {}
        for label in sorted(self.gather.labels):
            base, _, year = label.rpartition(":")
            if ":" in base:
                found.setdefault(base, []).append(year)
        return found

    def _gainers(self, label: str) -> tuple[views.Standing, ...]:
        """The first of a tournament by what its games brought them."""
        ordered = sorted(self._members[label].rows, key=lambda row: -row.state.labels[label][6])
        return tuple(self.lines(Placed(ordered, numbered(row.state.labels[label][6] for row in ordered)), 1).in_place())

    def label_order(self, label: str, members: Placed) -> Placed:
        """The players of a label with their places: by rating, in a tournament by what they did there."""
        if not label.startswith("tournament:"):
            return among_themselves(members, self.pool.system)
        keys_of = {row.sid: _tournament_key(row.state.labels[label]) for row in members.rows}
        ordered = sorted(members.rows, key=lambda row: keys_of[row.sid])
        return Placed(ordered, numbered(keys_of[row.sid] for row in ordered))


def _tournament_key(record: views.Record) -> tuple[int, ...]:
    """Most scored first, then the difference, then what was counted beside (the points of the cards); where nothing
    is counted, wins and half wins."""
    _, won, drawn, _, own, other, _, beside = record
    return (-own, other - own, -beside) if own or other else (0, 0, -2 * won - drawn)
