"""What the pages are made from. The publisher fills these; nothing here knows a store.

Units are those of the fold: a rating is ``(rating, index)`` in millionths of a point or as rank and index, an instant
is microseconds since 1970. The rule system of the pool turns them into what readers see.

``people`` maps whatever ids a game's content and explanations use (server ids or handles) to persons, so nothing has to
be translated before it is shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec

from shared.ledger.calendar import first_instant
from shared.ratings import rule_system
from shared.ratings.base import Rating, RuleSystem, Settings

Record = tuple[int, ...]
"""games, won, drawn, lost, for, against, gained, beside (the last four only for labels)."""


class Page(NamedTuple):
    """One object of the site, whole in itself."""

    path: str
    """Object key, without a leading slash: ``tuesday/index.html``."""
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Person:
    """Whom an id means. An erased person has no handle, and no page."""

    handle: str | None
    name: str = ""


@dataclass(frozen=True)
class PoolSummary:
    """A pool on the home page."""

    id: str
    name: str
    system: str
    languages: tuple[str, ...]
    players: int
    games: int
    last_played: int | None = None
    """Instant of the newest result."""
    time_zone: str = "UTC"
    leaders: tuple[Standing, ...] = ()
    """The first three of the list, or fewer."""
    sitemaps: int = 1
    """How many files its addresses fill."""


@dataclass(frozen=True)
class SiteView:
    """What all pages share. ``pools`` is only looked at by the home page and ``/site.json``."""

    origin: str
    """``https://ratings.example``, without a slash at the end."""
    api_origin: str
    """Where the API answers; may be the same."""
    name: str = "Clubladder"
    languages: tuple[str, ...] = ("en", "de", "fr", "it")
    """Languages of the home page; the first has no prefix."""
    pools: tuple[PoolSummary, ...] = ()


@dataclass(frozen=True)
class Band:
    """A named range of ratings (a tier), lower bound inclusive; None: no bound. Millionths, or ranks."""

    names: Mapping[str, str]
    """Per language."""
    lower: int | None
    upper: int | None
    symbol: str = ""


@dataclass(frozen=True)
class PoolView:
    """A pool, as all of its pages need it."""

    id: str
    name: str
    system: str
    """Name of the rule system."""
    time_zone: str
    languages: tuple[str, ...]
    """The first has no prefix in addresses."""
    rules: tuple[Mapping[str, Any], ...]
    """As the admin gave them, ascending: ``{"from": "2016-04-10", ...settings}``."""
    created_at: int
    publication: str = ""
    """Id of the publication; stands on list pages and in ``publication.json`` only."""
    published_at: int | None = None
    results_up_to: int | None = None
    position: str | int = ""
    state_hash: str = ""
    last_closing: int | None = None
    """Instant of the latest closing, from which movement is told."""
    bands: tuple[Band, ...] = ()
    """Tiers, ascending: on lists, on players' pages and behind the chart; () when the pool has none."""
    players: int | None = None
    """On page 1 of the list only, where it may change at any time."""
    games: int | None = None
    accent: int | None = None
    """0 to 7: the pool's colour; None: made from its id."""
    pictures: bool = False
    """Whether there are pictures for shared links: one more object per player, and ``picture_page`` for the pool."""

    @cached_property
    def rule_system(self) -> RuleSystem:
        """The rule system itself."""
        return rule_system(self.system)

    @property
    def present(self) -> int:
        """Number of the rules in force at the publication: newer ones may be told before their day."""
        days = [first_instant(dt.date.fromisoformat(entry["from"]), self.time_zone) for entry in self.rules]
        at = self.published_at
        return max((n for n, day in enumerate(days) if at is None or day <= at), default=0)

    def settings_at(self, number: int = -1) -> Settings:
        """The settings of one dated entry of the rules, defaults filled in; the newest by default."""
        given = {k: v for k, v in self.rules[number].items() if k not in ("from", "until")}
        return self.rule_system.settings_model.model_validate(given)


class Standing(msgspec.Struct, frozen=True):
    """A player's line in a list. (There may be 100,000: a struct is made in a tenth of a dataclass's time.)"""

    place: int | None
    """None for players listed apart (new, inactive, too few games)."""
    player: str
    """Handle."""
    name: str
    rating: int
    index: int = 0
    games: int = 0
    won: int = 0
    drawn: int = 0
    lost: int = 0
    last_played: int | None = None
    figures: Mapping[str, Any] = {}
    """What ``RuleSystem.figures`` says."""
    previous_place: int | None = None
    """At the last closing."""
    previous: Rating | None = None
    """Rating at the last closing; None: was not there yet."""
    provisional: bool = False
    inactive: bool = False
    apart: str = ""
    """Which of the lists apart the player stands in; empty: in the main list."""
    labels: Mapping[str, Record] = {}
    """The player's record per label; a label's list shows its own."""
    spark: tuple[int, ...] = ()
    """Rating at the last closings, oldest first, and now: up to 13 numbers."""
    linked: bool = True
    """Whether the player has a page."""


@dataclass(frozen=True)
class HistoryLine:
    """One change of one player."""

    at: int
    """When it happened; of a start, which comes before everything else of the player, when it was accepted."""
    kind: Literal["start", "game", "quit", "closing", "reset"]
    before: Rating | None
    """None: the first line. Of a start: what a player without one begins with; it is no gain."""
    after: Rating
    club: str | None = None
    game_id: str | None = None
    score: int | None = None
    """1 won, 0 drawn, -1 lost."""
    explanation: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] | None = None
    """The game's result, for the score in a few words; may be left out."""
    partners: tuple[Person, ...] = ()
    opponents: tuple[Person, ...] = ()


@dataclass(frozen=True)
class Pairing:
    """What a player did with one partner, or against one opponent."""

    person: Person
    games: int
    won: int
    drawn: int
    lost: int
    gained: Rating = (0, 0)
    """What the player himself gained in these games."""
    expected: float | None = None
    """Sum of the expected scores, 0 to 1 a game; None: not known."""
    actual: float | None = None


@dataclass(frozen=True)
class Decay:
    """What a coming closing will do if no result comes before."""

    at: int
    before: Rating
    after: Rating


@dataclass(frozen=True)
class Streaks:
    """Won games in a row, lost games in a row."""

    current: int = 0
    """Positive: that many wins at the end; negative: losses."""
    longest_won: int = 0
    longest_lost: int = 0
    unbeaten: int = 0


@dataclass(frozen=True)
class ChangeNote:
    """A line of the journal: what was corrected, voided, held, merged, and why."""

    at: int
    """When it was accepted."""
    kind: str
    """``corrected``, ``voided``, ``revived``, ``merged``, ``unmerged``, ``rules``, ``start``, ``late``, ``erased``."""
    reason: str = ""
    club: str | None = None
    game_id: str | None = None
    revision: int | None = None
    people: tuple[Person, ...] = ()
    games_rerated: int | None = None
    before: Rating | None = None
    """On a player's page: the rating before and after the correction."""
    after: Rating | None = None
    played_at: int | None = None
    """When the game was played, where that is known."""


@dataclass(frozen=True)
class PlayerPage:
    """A player in a pool."""

    standing: Standing
    """``place``, ``previous_place`` and ``spark`` are not looked at."""
    clubs: tuple[tuple[str, str], ...] = ()
    """(id, name)"""
    pageless: frozenset[str] = frozenset()
    """Those of the clubs that have no page: nothing of this pool was played there."""
    month: str | None = None
    """The last monthly list the player is in, ``2026-10``, and the place there."""
    month_place: int | None = None
    best: tuple[int, int, int] | None = None
    """rating, index, instant"""
    streaks: Streaks | None = None
    series: tuple[tuple[int, int, int], ...] = ()
    """(instant, rating, index) after every change, ascending; thinned out for drawing. A rating brought along is the
    first, at the instant of what came after it where that is earlier than its acceptance."""
    closings: tuple[tuple[str, int, int], ...] = ()
    """(month, rating, index) at the closings, ascending: the table beside the chart."""
    history: tuple[HistoryLine, ...] = ()
    """Newest first; the newest ones when there are many."""
    history_total: int | None = None
    partners: tuple[Pairing, ...] = ()
    opponents: tuple[Pairing, ...] = ()
    decay: tuple[Decay, ...] = ()
    journal: tuple[ChangeNote, ...] = ()
    labels: tuple[tuple[str, str, str, Record], ...] = ()
    """(kind, id, name, record) per club, group and tournament."""


@dataclass(frozen=True)
class GameChange:
    """What a game did to one player."""

    player: str
    """An id that ``people`` knows."""
    kind: Literal["game", "quit"]
    before: Rating
    after: Rating
    score: int | None = None
    explanation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Revision:
    """One revision of a game."""

    number: int
    at: int
    what: str
    """``finished``, ``corrected``, ``voided``, ``revived``, ``quit`` ..."""
    reason: str = ""


@dataclass(frozen=True)
class GamePage:
    """A game and everything it changed."""

    club: str
    game_id: str
    status: Literal["open", "pending", "rated", "unrated", "held", "void"]
    started_at: int
    content: Mapping[str, Any]
    people: Mapping[str, Person]
    club_name: str = ""
    finished_at: int | None = None
    group: tuple[str, str] | None = None
    """(id, name)"""
    tournament: tuple[str, str] | None = None
    round: int | None = None
    note: str = ""
    changes: tuple[GameChange, ...] = ()
    revisions: tuple[Revision, ...] = ()
    warnings: tuple[str, ...] = ()
    held_because: str = ""
    rules: int = -1
    """Number of the rules in force at the start, in ``PoolView.rules``."""
    pageless: frozenset[str] = frozenset()
    """Those of its club, group and tournament (``club:bern``) that have no page."""


@dataclass(frozen=True)
class GameLine:
    """A game in a list of games."""

    at: int
    club: str
    game_id: str
    content: Mapping[str, Any]
    people: Mapping[str, Person]
    status: str = "rated"
    round: int | None = None


@dataclass(frozen=True)
class Mover:
    """Who moved most in a month."""

    player: str
    name: str
    before: Rating
    after: Rating
    linked: bool = True
    """Whether the player has a page."""


@dataclass(frozen=True)
class MonthPage:
    """One page of a month's list."""

    month: str
    """``2026-11``"""
    kind: Literal["frozen", "reconstructed"]
    standings: tuple[Standing, ...]
    """Against the month before: ``previous_place``, ``previous``."""
    movers: tuple[Mover, ...] = ()
    """On page 1."""
    revised_since: int | None = None
    """How many of these ratings a later correction has changed; None: not counted."""
    page: int = 1
    pages: int = 1
    earlier: str | None = None
    later: str | None = None
    rules: int = -1
    """Number of the rules it stands by, in ``PoolView.rules``."""


@dataclass(frozen=True)
class LabelPage:
    """A club's, group's, tournament's or year's own list."""

    kind: Literal["club", "group", "tournament", "year"]
    id: str
    name: str
    standings: tuple[Standing, ...]
    """The record shown is ``labels["{kind}:{id}"]`` where there is one."""
    games: tuple[GameLine, ...] = ()
    """On page 1, newest first, a few; a tournament's in the order they were played, all of them up to a limit."""
    games_total: int | None = None
    page: int = 1
    pages: int = 1
    year: str = ""
    """The list of one year of a club, group or tournament, whose id is ``dienstag:2026``."""
    years: tuple[str, ...] = ()
    """On page 1: the years that have such a list."""
    around: tuple[Standing | None, Standing | None] = (None, None)
    """The last player of the page before and the first of the page after."""
    gainers: tuple[Standing, ...] = ()
    """On page 1 of a tournament: who gained most in its games first, places by that."""
    places: tuple[int | None, ...] = ()
    """Of the standings within the label; left out: those that they have themselves."""


@dataclass(frozen=True)
class LabelEntry:
    """A club, group, tournament or year in the index of lists."""

    kind: Literal["club", "group", "tournament", "year"]
    id: str
    name: str
    players: int
    games: int


@dataclass(frozen=True)
class MonthEntry:
    """A month in the index of lists."""

    month: str
    kind: Literal["frozen", "reconstructed"]
    players: int
    first: Person | None = None
    """Who led."""


@dataclass(frozen=True)
class IndexPage:
    """All lists of a pool."""

    months: tuple[MonthEntry, ...] = ()
    """Newest first."""
    labels: tuple[LabelEntry, ...] = ()


@dataclass(frozen=True)
class BestEver:
    """A line of the all-time list."""

    player: str
    name: str
    rating: Rating
    at: int
    """When it was reached."""


@dataclass(frozen=True)
class StatisticsPage:
    """A pool in numbers. Whoever fills it takes ``statistics.distribution`` and ``statistics.honesty``."""

    ratings: tuple[int, ...]
    """Of all listed players, any order."""
    activity: tuple[tuple[str, int, int], ...] = ()
    """(month, games, players who played), ascending, no month left out."""
    scores: Sequence[tuple[float, float]] = ()
    """(expected, actual), both 0 to 1: one per player or side and game."""
    favourites: tuple[int, int, int] = (0, 0, 0)
    """Where the rule system foretells no scores: games of two that the one rated higher won, drew, lost."""


@dataclass(frozen=True)
class LedgerSegment:
    """A month's file of the published ledger."""

    month: str
    """UTC month in which its events were accepted."""
    events: int
    sha256: str
    settled: bool
    """Whether it changes no more."""


@dataclass(frozen=True)
class LedgerPage:
    """What a reader needs to compute a pool's ratings himself."""

    segments: tuple[LedgerSegment, ...]
    position: int
    """How many events are in them."""
    state_hash: str
