"""What a rule system is. Pure: numbers in, numbers out; no clock, no I/O, no names of people.

Every pool is rated under one rule system. The fold (``shared.ledger.fold``) knows only this interface, so a new rule
system is one module in this package that sets ``SYSTEM``.

Units used everywhere inside:

* a rating is two integers ``(rating, index)``: millionths of a point and 0 for the Elo systems, rank and index for
  Bridier;
* an instant is an integer number of microseconds since 1970-01-01T00:00Z (negative before);
* a day is a proleptic ordinal (``datetime.date.toordinal``) in the pool's time zone, 0 for "none";
* players are opaque strings, unique within a game. At the door they are the clubs' handles, in the ledger and in the
  fold the server-made ids; a rule system never looks inside one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Rating = tuple[int, int]
Content = dict[str, Any]
"""A normalised `result` or `line_up`: plain JSON values in one canonical form, keys sorted by the system's own code."""

Player = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(str.lower)]
"""A player's handle in a model at the door. Its case is folded there, before anything is compared or sorted by it."""

MILLION = 1_000_000
MICROSECONDS = 1_000_000
"""Microseconds in a second."""

FINISH = 5
QUIT = 3


class Settings(BaseModel):
    """One dated entry of a pool's rules, without its ``from``. All fields have defaults; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    fixed: ClassVar[tuple[str, ...]] = ()
    """Settings that all dated rules of one pool share: a later rule cannot change them."""

    minimum_games: int = 0


class PlayerState(msgspec.Struct, array_like=True, gc=False):
    """What the fold knows of one player in one pool. Plain and small: there are 100,000 of them in a large pool."""

    rating: int
    """Millionths of a point, or rank."""
    index: int = 0
    games: int = 0
    """Rated games (a game quit counts at the quit)."""
    won: int = 0
    drawn: int = 0
    lost: int = 0
    last_result: int = 0
    """Day (ordinal, the pool's zone) of the last result, for inactivity; 0: none."""
    last_played: int | None = None
    """Instant of the last rated change by a game."""
    counters: dict[str, int] = {}
    """The rule system's own counts, e.g. ``ruins`` or ``nils_set``. Replaced, never changed in place."""
    best: tuple[int, int, int] | None = None
    """Best ``(rating, index, instant)`` after any game, by the system's order of the list."""
    labels: dict[str, tuple[int, ...]] = {}
    """Record per label, e.g. ``group:dienstag`` or ``club:bern:2026``: games, won, drawn, lost, for, against, gained,
    beside (for and against in units of the system, striche or points; gained in millionths or ranks; beside what
    ``Tally`` has beside). Replaced, never changed."""


class Game(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The content of one revision of a game, as ledger and fold hold it."""

    club: str
    game_id: str
    revision: int
    started_at: int
    finished_at: int | None = None
    """None: the game is still open."""
    rated: bool = True
    void: bool = False
    group: str | None = None
    tournament: str | None = None
    round: int | None = None
    sequence: int = 0
    content: Content = {}
    """The normalised `result` when finished, the normalised `line_up` (with the quits so far) while open."""


class Tally(NamedTuple):
    """What a player's side scored in a game, in the system's units (striche, points; 0 where nothing is counted)."""

    own: int = 0
    other: int = 0
    beside: int = 0
    """What was counted beside and is not rated (the points of the cards, where striche are)."""


NO_TALLY = Tally()


class Moment(NamedTuple):
    """An instant of a game at which ratings change: a quit, or the finish."""

    at: int
    kind: int
    """``QUIT`` or ``FINISH``."""
    number: int
    """0 for the first quit of the game, 1 for the next ...; 0 for the finish."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What one moment of one game makes of one player."""

    player: str
    rating: int
    index: int
    score: int | None
    """1 won, 0 drawn, -1 lost: counts as a rated game. None: the record does not change."""
    is_result: bool = True
    """Counts as a result for inactivity (a Bridier draw does not)."""
    counters: Mapping[str, int] | None = None
    """Increments of the rule system's own counts."""


@dataclass(frozen=True)
class FieldError:
    """One wrong field of a submission, as the problem document names it."""

    field: str
    """Path below ``result`` or ``line_up``, e.g. ``teams[0][1]``; empty for the whole."""
    code: str
    """Stable and machine-readable, kebab-case, e.g. ``sieg-on-both-sides``."""
    message: str
    """One plain English sentence for a secretary."""


class RuleError(ValueError):
    """The submission breaks the rules of the pool; carries every wrong field at once."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{e.field}: {e.message}" for e in errors))
        self.errors = tuple(errors)


class CannotRate(ValueError):
    """An accepted event that cannot be rated (e.g. a player merged into his opponent): it is held with ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Caution:
    """Something odd that is stored and shown, but not refused."""

    field: str
    code: str
    message: str


@dataclass(frozen=True)
class Normalised:
    """A `result` or `line_up` in canonical form: two submissions mean the same exactly when these are equal."""

    content: Content
    warnings: tuple[Caution, ...] = field(default=())
    seats: tuple[str, ...] = ()
    """The players of a line-up in the order they were sent, where the content has another."""


class RuleSystem(Protocol):
    """A rule system. All methods are pure and deterministic; none keeps state between calls."""

    name: ClassVar[str]
    """What pools call it: ``spades``, ``jass``, ``bridier``."""
    settings_model: ClassVar[type[Settings]]
    result_model: ClassVar[Any]
    """Pydantic model, or annotated union of models, of `result` at the door (handles, not server ids)."""
    line_up_model: ClassVar[Any]
    start_model: ClassVar[type[BaseModel]]
    """Pydantic model of the `start` a player carries over."""
    has_closings: ClassVar[bool]
    """True when a closing can change a rating."""
    shown_decimals: ClassVar[int]
    """Decimals of a rating on a list (0) before ties that print alike ask for more."""

    # -- at the door ---------------------------------------------------------------------------------------------
    def normalise(self, result: BaseModel, settings: Settings, started_at: int, finished_at: int) -> Normalised:
        """Check a parsed `result` against the pool's settings and bring it into canonical form.

        Instants inside (``at`` of quits, defeats, ruins) become integers (microseconds), lists whose order means
        nothing are sorted, defaults are filled in. Quits, defeats and ruins must lie within start and finish.

        Raises:
            RuleError: with every wrong field, paths relative to ``result``.
        """
        ...

    def normalise_line_up(self, line_up: BaseModel, settings: Settings) -> Normalised:
        """The same for the `line_up` of an open game. Raises RuleError."""
        ...

    def players(self, content: Content) -> tuple[str, ...]:
        """The players who are rated, in seat order (team 1 first). Robots and substitutes are not among them."""
        ...

    def mentioned(self, content: Content) -> tuple[str, ...]:
        """All players named anywhere in the content (substitutes too), each once, rated players first."""
        ...

    def translate(self, content: Content, name: Callable[[str], str]) -> Content:
        """The same content with every player replaced by ``name(player)`` (handles to server ids, aliases, back)."""
        ...

    def as_submitted(self, content: Content) -> Content:
        """The content as the API writes and takes it: instants in ISO 8601 (UTC), what says nothing left out.

        It normalises to the same content again.
        """
        ...

    def start(self, start: BaseModel | None, settings: Settings) -> PlayerState:
        """The state a player begins with: the system's own, or what he carries over. ``last_result`` set from
        ``last_result_on``. Raises RuleError (paths relative to ``start``)."""
        ...

    # -- in the fold ---------------------------------------------------------------------------------------------
    def moments(self, game: Game, settings: Settings) -> Sequence[Moment]:
        """The moments of a game that can change ratings, in time order; () for an open game without quits.

        An open game has its quits only; a finished one its quits (a quitter back in time has not quit) and its finish.
        """
        ...

    def rate(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> Sequence[Outcome]:
        """What a moment of a game changes.

        Args:
            start: every rated player's rating at the start of the game.
            now: every rated player's current state, just before this moment.
            settings: the rules in force at the start of the game.

        Returns:
            one Outcome for each player this moment rates, in seat order; ratings are the new current ones.

        Raises:
            CannotRate: the event must be held.
        """
        ...

    def close(self, state: PlayerState, closing: int) -> Rating | None:
        """The rating after the closing on day ``closing`` (ordinal), or None when it changes nothing."""
        ...

    # -- for readers ---------------------------------------------------------------------------------------------
    def place_key(self, state: PlayerState) -> tuple[int, ...]:
        """Ascending sort key that decides the place; players with equal keys share it."""
        ...

    def order_key(self, state: PlayerState) -> tuple[int, ...]:
        """Ascending sort key of the list (before collated name and id); refines ``place_key``."""
        ...

    def present(self, rating: int, index: int) -> dict[str, float | int]:
        """A rating as the API shows it: ``{"rating": 1536.388498}`` or ``{"rank": 562, "index": 411}``."""
        ...

    def present_change(self, before: Rating, after: Rating) -> dict[str, float | int]:
        """A change as the API shows it, same keys as ``present``, exact to the unit."""
        ...

    def hash_token(self, rating: int, index: int) -> str:
        """The rating in a line of the state hash: ``1536388498`` or ``562,411``."""
        ...

    def figures(self, state: PlayerState, settings: Settings) -> dict[str, Any]:
        """Further public figures of a player, JSON values: ``{"skill": 0.31 | None}``, ``{"tier": 11}``; may be {}."""
        ...

    def tally(self, game: Game) -> Mapping[str, Tally]:
        """Per rated player what his side scored."""
        ...

    def explain(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> dict[str, dict[str, Any]]:
        """Every number that went into each player's change (same arguments as ``rate``), JSON values, no prose.

        Numbers are in points, not millionths. The lines of one player add up exactly to his change.
        """
        ...

    def explain_closing(self, before: Rating, after: Rating, last_result: int, closing: int) -> dict[str, Any]:
        """The numbers of a closing: months without a result, the floor of the index it brings."""
        ...

    def quote(
        self, content: Content, states: Mapping[str, PlayerState], settings: Settings
    ) -> list[tuple[str, dict[str, Rating]]]:
        """For a line-up: each possible outcome (``team1``, ``draw``, ``3:0`` ...) with every player's new rating.

        ``states`` are in the order in which the sender listed the players: outcomes that number them go by it.
        """
        ...


@runtime_checkable
class SidedSystem(Protocol):
    """What a rule system adds when a game can be told from either side (Spades, Jass)."""

    positional: ClassVar[tuple[str, ...]]
    """Fields of a content whose lists have an entry a team, in their order."""

    def from_other_side(self, content: Content) -> Content:
        """The same game with its teams named in the other order."""
        ...


_OTHER_TEAM = {"team1": "team2", "team2": "team1"}


def from_other_side(content: Content, pairs: Collection[str], names: Collection[str]) -> Content:
    """A content with its teams named in the other order.

    Args:
        pairs: fields with one entry a team.
        names: fields that may name ``team1`` or ``team2``.
    """
    other = dict(content)
    other |= {pair: content[pair][::-1] for pair in pairs if pair in content}
    other |= {name: _OTHER_TEAM.get(content[name], content[name]) for name in names if name in content}
    return other


@runtime_checkable
class LiveSystem(Protocol):
    """What a rule system adds when players can quit a running game (Spades)."""

    def with_quit(self, content: Content, player: str, at: int, started_at: int | None = None) -> Content:
        """An open game's content with one quit more; the same again changes nothing. Raises RuleError."""
        ...

    def with_return(self, content: Content, player: str, at: int, settings: Settings) -> Content:
        """... with a quit taken back in time. Raises RuleError (code ``back-too-late``)."""
        ...

    def with_live(self, result: Any, content: Content) -> Any:
        """A parsed result with the quits and substitutes of the live game where it says nothing of them."""
        ...

    def with_live_line_up(self, line_up: Any, content: Content, settings: Settings) -> Normalised:
        """A parsed line-up of a running game with the live game's quits, and its substitutes where it says nothing of
        them. Raises RuleError."""
        ...

    def quits(self, game: Game, settings: Settings) -> Sequence[Any]:
        """The quits that count: objects with ``player``, ``at`` and ``rated``."""
        ...

    def robots_at_start(self, content: Content, started_at: int) -> tuple[str, ...]:
        """Seats that a robot had from the start."""
        ...


@runtime_checkable
class StakeSystem(Protocol):
    """What a rule system adds when a win has a stake that can be told before the game (Bridier)."""

    def opponents_worth(
        self, own: Rating, others: Iterable[tuple[str, Rating]], minimum_gain: int
    ) -> list[tuple[str, int, int]]:
        """Whom a player can meet so that a win brings at least ``minimum_gain``: (player, gain, loss)."""
        ...

    def has_entry_limits(self, content: Content, settings: Settings) -> bool:
        """Whether the pool or this game sets limits to who may take part."""
        ...

    def entry_errors(self, content: Content, ratings: Mapping[str, Rating], settings: Settings) -> list[FieldError]:
        """Which players break the limits, from everybody's ratings at the start of the game.

        ``field`` is ``players[n]``, n the seat in ``content``; the message names the player, the limit and his number.
        """
        ...


@runtime_checkable
class DecayingSystem(Protocol):
    """What a rule system adds when inactivity changes a rating (Bridier)."""

    def decay_to_come(self, state: PlayerState, today: int) -> list[tuple[int, Rating]]:
        """The closings that will change a player's rating unless he plays: (day, rating from then on), soonest first.

        Args:
            state: at the latest closing.
            today: day (ordinal) in the pool's zone; a closing on this day has already been.
        """
        ...


class PlainResult(NamedTuple):
    """What a rule system needs of a *plain* game to rate it in bulk; games of one kind share it."""

    data: tuple[float, ...]
    """The system's own numbers."""
    score: int
    """1 won, 0 drawn, -1 lost: of the first half of the seats; the second half has the opposite."""
    tallies: tuple[Tally, Tally] = (NO_TALLY, NO_TALLY)
    """What each half scored, as ``RuleSystem.tally``."""


class PlainBatch(NamedTuple):
    """Plain games in played order, column by column, and the players' numbers, changed in place."""

    results: Sequence[PlainResult | None]
    """By kind of game. None: no game of this batch is of that kind."""
    kinds: Sequence[int]
    seats: Sequence[Sequence[int]]
    """Per seat, in seat order: the player's number in each game."""
    ratings: list[int]
    """By player's number."""
    indexes: list[int]
    games: list[int]
    """Rated games so far; counted on where the system's rules ask for them."""
    history: list[float]
    """Takes, per game, rating (and index, with ``plain_indexes``) of every seat before it, then after it."""


@runtime_checkable
class BulkSystem(Protocol):
    """What a rule system adds to rate many plain games at once, with the same results to the bit as ``rate``.

    A game is plain when it has no duration (start = finish), and its only moment is a finish at which every seat gets
    a score, a result for inactivity and no counters, from ratings, indexes and games alone.
    """

    plain_indexes: ClassVar[bool]
    """Whether a game can change indexes."""

    def plain(self, content: Content, settings: Settings) -> PlainResult | None:
        """What to rate games of this content by, whoever sits there; None when it is not plain or cannot be rated.

        ``content`` has all its players different from each other.
        """
        ...

    def rate_plain(self, batch: PlainBatch, settings: Settings) -> None:
        """Rate these games one after another, all under the same settings."""
        ...


@runtime_checkable
class TeamSystem(Protocol):
    """What a bulk system adds where two against two win and lose alike, by the sums of both teams' ratings alone."""

    def team_change(self, result: PlainResult, settings: Settings) -> Callable[[float], float] | None:
        """The change of each player of team 1 (team 2: the opposite) as a function of the sum of team 2's ratings less
        that of team 1's; whole millionths, as floats (exact below 2^53). None where partners do not move alike."""
        ...


class CannotCalibrate(ValueError):
    """K cannot be calibrated, for ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Spread(NamedTuple):
    """How far results stray from expectation in a pool."""

    games: int
    sigma: float
    """Root mean square of S − E over both sides of every game."""


@runtime_checkable
class CalibratingSystem(Protocol):
    """What a rule system adds when K follows from how far results stray from expectation (Jass)."""

    def k_of(self, settings: Settings) -> float:
        """K in force."""
        ...

    def deviation(self, game: Game, start: Mapping[str, Rating], settings: Settings) -> float:
        """S − E of one side of a finished game. Raises CannotRate."""
        ...

    def spread(self, deviations: Iterable[float]) -> Spread:
        """The spread of a pool from one deviation per game."""
        ...

    def calibrated_k(self, k_reference: float, reference: Spread, rule: Spread) -> float:
        """K that makes a game of this pool weigh as much as one of the reference pool. Raises CannotCalibrate."""
        ...
