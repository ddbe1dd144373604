"""Spades Elo: two against two, with forfeits for quitting. Rules: "Spades rankings at World of Card Games" (2016/2017).

Ratings are whole millionths of a point, scores are counted in halves (a win against both opponents is 4). With
``S`` the score and ``E`` the expected score of a player against his two opponents, the change is ``K (S − E)``, rounded
half to even. ``K S`` is an exact integer, so only ``K E`` is rounded; it is computed in floating point, and again with
60 decimal digits when it lies so near to a half that a processor's last bit could decide. (An exact half never
happens: E is irrational, or a fraction with an odd denominator, or a multiple of a half, and K has four decimals.)
So the numbers are correctly rounded, equal on every machine, and independent of the order of teams and partners.

Every pair of opponents is decided once: whoever quits first loses it, a pair of which nobody quit goes by the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
)

from shared.ratings.base import (
    FINISH,
    MICROSECONDS,
    MILLION,
    NO_TALLY,
    QUIT,
    BulkSystem,
    CannotRate,
    Caution,
    Content,
    FieldError,
    Game,
    Moment,
    Normalised,
    Outcome,
    PlainBatch,
    PlainResult,
    Player,
    PlayerState,
    Rating,
    RuleError,
    RuleSystem,
    Settings,
    Tally,
    TeamSystem,
    from_other_side,
)

START_RATING = 1500 * MILLION
SCALE = 400 * MILLION
"""A player this far (millionths) above another is expected to win 10 times as often as he loses."""
BOTH_SCALES = 2.0 * SCALE
"""The scale for the difference of two sums of ratings instead of two means."""
CERTAIN = 30.0
"""From this exponent on the weaker side's K E is below any millionth, for every K allowed."""
NEAR_HALF = 0.4999
"""A rounding error above this is checked exactly; floating point is off by less than 0.00002 at the largest K."""
MAXIMUM_K = 10_000
_WHOLE = 1.5 * 2.0**52
"""Added and taken away again, it rounds a float (below 2^51) half to even: a third of the time that round() takes."""
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_LN10 = Decimal(10).ln(_EXACT)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCORES = {"team1": (4, 0, 1), "draw": (2, 2, 0), "team2": (0, 4, -1)}
"""Per outcome: halves team 1 scores against both opponents, halves of team 2, the record's score of team 1."""


# -- models at the door ----------------------------------------------------------------------------------------------


def _four_decimals(k: float) -> float:
    if Decimal(repr(k)) * 10_000 % 1:
        raise ValueError("K has at most four decimals")
    return int(k) if k == int(k) else k


def _iso(at: object) -> object:
    """Only a datetime or ISO text, so that bare numbers are not taken for seconds since 1970."""
    if isinstance(at, datetime) or (isinstance(at, str) and len(at) > 10 and at[4] == "-" and at[10] in "Tt "):
        return at
    raise ValueError("an instant is a text like 2026-11-03T19:00:00+01:00")


_AS_IS = PlainSerializer(lambda k: k, return_type=int | float)
"""Whole numbers stay whole in JSON: 25, not 25.0."""
Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_iso)]
K = Annotated[float, Field(gt=0, le=MAXIMUM_K, allow_inf_nan=False), AfterValidator(_four_decimals), _AS_IS]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class KByGames(_Strict):
    """K by the rated games a player has before this one: ``first`` up to ``up_to_games``, ``then`` from there on."""

    first: K
    up_to_games: int = Field(ge=0, le=MILLION)
    then: K


def _kind_of_k(k: object) -> str:
    return "by_games" if isinstance(k, dict | KByGames) else "number"


class Eligibility(_Strict):
    """What a pool asks of a player at the door, apart from bans. Each part is off unless the pool sets it."""

    registered: bool = False
    minimum_regular_games: int | None = Field(default=0, ge=0, le=MILLION)
    """Unrated games needed before the first rated one; 0 or None: off."""
    rank_me: bool = False
    no_robots_at_start: bool = False


class SpadesSettings(Settings):
    """The rules of a Spades pool from a date on."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    opposition: Literal["team_average", "pairwise"] = "team_average"
    """Whether the means of the two teams oppose each other, or each player's own rating each opponent's."""
    k: Annotated[
        Annotated[K, Tag("number")] | Annotated[KByGames, Tag("by_games")],
        Discriminator(_kind_of_k),
    ] = 25
    """Points a game is worth against each opponent: above 0, at most 10,000, at most four decimals."""
    quit_ban_minutes: int = Field(default=60, ge=0, le=60 * 24 * 366)
    opt_out_ban_days: int = Field(default=7, ge=0, le=3660)
    grace_minutes: int = Field(default=3, ge=0, le=60 * 24)
    """A quitter back within this many minutes (inclusive) has not quit."""
    hide_after_days: int | None = Field(default=None, ge=1, le=36_600)
    eligibility: Eligibility = Eligibility()
    minimum_games: int = Field(default=0, ge=0, le=MILLION)


class SpadesQuit(_Strict):
    """A quit; without ``at`` it happened at the end of the game."""

    player: Player
    at: Instant | None = None
    back_at: Instant | None = None


class SpadesSubstitute(_Strict):
    """Who took the seat of a quitter: a player or a robot."""

    seat: Player = Field(alias="for")
    player: Player | None = None
    robot: bool = False


class SpadesNil(_Strict):
    """A nil bid (a blind one too): whether it was set, and by whom if that is known."""

    bidder: Player
    is_set: bool = Field(alias="set")
    set_by: Player | None = None


Teams = Annotated[
    list[Annotated[list[Player], Field(min_length=2, max_length=2)]],
    Field(min_length=2, max_length=2),
]


class SpadesResult(_Strict):
    """The result of a finished game, as a club sends it."""

    teams: Teams
    outcome: Literal["team1", "team2", "draw"] | None = None
    quits: list[SpadesQuit] = Field(default=[], max_length=32)
    substitutes: list[SpadesSubstitute] = Field(default=[], max_length=32)
    nils: list[SpadesNil] = Field(default=[], max_length=200)


class SpadesLineUp(_Strict):
    """Who sits down, as a club sends it; while the game runs, also who took the seat of a quitter."""

    teams: Teams
    substitutes: list[SpadesSubstitute] | None = Field(default=None, max_length=32)


class SpadesStart(_Strict):
    """What a player carries over from elsewhere: rating in points, rated games so far."""

    rating: float = Field(ge=-100_000, le=100_000, allow_inf_nan=False)
    games: int = Field(default=0, ge=0, le=MILLION)


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _k(settings: SpadesSettings, games: int) -> int:
    """K in millionths (a multiple of 100) for a player with so many rated games before this one."""
    k = settings.k
    if isinstance(k, KByGames):
        k = k.first if games <= k.up_to_games else k.then
    return round(k * 10_000) * 100


def _chance(exponent: float) -> float:
    """The expected score against somebody ``exponent`` scales stronger: between 0 and 1."""
    if exponent > CERTAIN:
        return 0.0
    if exponent < -CERTAIN:
        return 1.0
    power: float = 10.0**exponent
    return 1.0 / (1.0 + power)


def _exact(k: int, differences: Sequence[int], scale: int) -> int:
    """Round(K E) in millionths with 60 digits; E the sum of the chances at these differences (opponent − own)."""
    expected = Decimal(0)
    for difference in differences:
        power = _EXACT.exp(_EXACT.multiply(_EXACT.divide(Decimal(difference), Decimal(scale)), _LN10))
        expected = _EXACT.add(expected, _EXACT.divide(Decimal(1), _EXACT.add(Decimal(1), power)))
    return int(_EXACT.to_integral_value(_EXACT.multiply(Decimal(k), expected)))


def _rounded(k: int, expected: float, differences: Sequence[int], scale: int) -> int:
    product = k * expected
    whole = round(product)
    if -NEAR_HALF < product - whole < NEAR_HALF:
        return whole
    return _exact(k, differences, scale)


def _team_share(k: int, difference: int) -> int:
    """Round(K E) in millionths of a player whose opponents' ratings sum to ``difference`` more than his team's."""
    expected = 2.0 * _chance(difference / BOTH_SCALES)
    product = k * expected
    whole = round(product)
    if -NEAR_HALF < product - whole < NEAR_HALF:
        return whole
    return _exact(k, (difference, difference), 2 * SCALE)


def _share(k: int, seat: int, ratings: Sequence[int], pairwise: bool) -> int:
    """Round(K E) in millionths for a seat; ratings at the start in seat order (team 1 first)."""
    if pairwise:
        own = ratings[seat]
        first = 2 if seat < 2 else 0
        differences = (ratings[first] - own, ratings[first + 1] - own)
        expected = _chance(differences[0] / SCALE) + _chance(differences[1] / SCALE)
        return _rounded(k, expected, differences, SCALE)
    share = _team_share(k, ratings[2] + ratings[3] - ratings[0] - ratings[1])
    return share if seat < 2 else 2 * k - share


# -- what happened ---------------------------------------------------------------------------------------------------


class Quit(NamedTuple):
    """A quit that counts."""

    player: str
    at: int
    """Microseconds."""
    rated: bool
    """False when a whole side had quit before, so that the game was over for ratings."""


class _Course(NamedTuple):
    """The quits of a game that count, and when (at which of them) it was over for ratings."""

    order: dict[str, int]
    """Player -> 0 for the first to quit, 1 for the second ..."""
    ats: list[int]
    settled: int | None
    """Number of the quit that emptied a side, None when none did."""


def _course(teams: Sequence[Sequence[str]], quits: Sequence[Mapping[str, Any]], settings: SpadesSettings) -> _Course:
    grace = settings.grace_minutes * 60 * MICROSECONDS
    order: dict[str, int] = {}
    ats: list[int] = []
    settled = None
    for quit_ in quits:
        player, at, back_at = quit_["player"], quit_["at"], quit_["back_at"]
        if player in order or (back_at is not None and back_at - at <= grace):
            continue
        order[player] = len(ats)
        ats.append(at)
        if settled is None and any(team[0] in order and team[1] in order for team in teams):
            settled = order[player]
    return _Course(order, ats, settled)


def _halves(seat: int, opponent: int, seats: Sequence[str], order: Mapping[str, int], outcome: str | None) -> int:
    """What a seat scores against an opponent: 0, 1 or 2 halves."""
    own, his = order.get(seats[seat]), order.get(seats[opponent])
    if own is not None:
        return 2 if his is not None and his < own else 0
    if his is not None:
        return 2
    if outcome is None:
        raise CannotRate("outcome-missing")
    return _SCORES[outcome][0 if seat < 2 else 1] // 2


def _nil_counts(content: Content) -> dict[str, dict[str, int]]:
    """Increments of ``nil_chances`` and ``nils_set`` of the rated players; only nils they bid count."""
    counts: dict[str, dict[str, int]] = {}
    team1, team2 = content["teams"]
    for nil in content.get("nils", ()):
        bidder = nil["bidder"]
        if bidder not in team1 and bidder not in team2:
            continue
        opponents = team2 if bidder in team1 else team1
        for player in opponents:
            count = counts.setdefault(player, {})
            count["nil_chances"] = count.get("nil_chances", 0) + 1
            if nil["set"] and nil["set_by"] in (None, player):
                count["nils_set"] = count.get("nils_set", 0) + 1
    return counts


class _Line(NamedTuple):
    """One player rated at a moment, with everything that went into it."""

    seat: int
    reason: Literal["result", "quit", "settled", "nils"]
    k: int
    halves: tuple[int, int]
    share: int
    score: int | None

    @property
    def change(self) -> int:
        """Millionths."""
        return self.k * sum(self.halves) // 2 - self.share


def _lines(
    game: Game,
    moment: Moment,
    start: Mapping[str, Rating],
    now: Mapping[str, PlayerState],
    settings: SpadesSettings,
    counts: Mapping[str, Any],
) -> Iterator[_Line]:
    """The players a moment rates, in seat order, whatever quits there are."""
    content = game.content
    teams = content["teams"]
    seats = (*teams[0], *teams[1])
    order, _, settled = _course(teams, content.get("quits", ()), settings)
    outcome = content.get("outcome")
    ratings = [start[player][0] for player in seats]
    for seat, player in enumerate(seats):
        quit_number = order.get(player)
        reason: Literal["result", "quit", "settled"]
        if quit_number is not None and (settled is None or quit_number <= settled):
            reason, at = "quit", (QUIT, quit_number)
        elif settled is not None:
            reason, at = "settled", (QUIT, settled)
        else:
            reason, at = "result", (FINISH, 0)
        if at != (moment.kind, moment.number):
            if moment.kind == FINISH and player in counts:
                yield _Line(seat, "nils", 0, (0, 0), 0, None)
            continue
        k = _k(settings, now[player].games)
        first = 2 if seat < 2 else 0
        halves = (
            _halves(seat, first, seats, order, outcome),
            _halves(seat, first + 1, seats, order, outcome),
        )
        if reason == "result":
            if outcome is None:
                raise CannotRate("outcome-missing")
            score = _SCORES[outcome][2] * (1 if seat < 2 else -1)
        else:
            score = -1 if reason == "quit" else 1
        yield _Line(seat, reason, k, halves, _share(k, seat, ratings, settings.opposition == "pairwise"), score)


def _distinct(content: Content) -> None:
    (a, c), (b, d) = content["teams"]
    if a in (b, c, d) or c in (b, d) or b == d:
        raise CannotRate("player-twice")


# -- normalising -----------------------------------------------------------------------------------------------------


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _settings(settings: Settings) -> SpadesSettings:
    if not isinstance(settings, SpadesSettings):
        raise TypeError("the settings of a Spades pool are SpadesSettings")
    return settings


def _checked_teams(teams: Sequence[Sequence[str]], errors: list[FieldError]) -> list[list[str]]:
    seen: set[str] = set()
    for number, team in enumerate(teams):
        for place, player in enumerate(team):
            if player in seen:
                errors.append(
                    FieldError(f"teams[{number}][{place}]", "player-twice", f"{player} sits at this table twice.")
                )
            seen.add(player)
    return [sorted(team) for team in teams]


def _checked_quits(
    result: SpadesResult,
    settings: SpadesSettings,
    started_at: int,
    finished_at: int,
    errors: list[FieldError],
    warnings: list[Caution],
) -> list[dict[str, Any]]:
    seated = {player for team in result.teams for player in team}
    grace = settings.grace_minutes * 60 * MICROSECONDS
    quits: list[tuple[int, str, int | None, int]] = []
    for number, quit_ in enumerate(result.quits):
        path = f"quits[{number}]"
        at = finished_at if quit_.at is None else _micros(quit_.at)
        back_at = None if quit_.back_at is None else _micros(quit_.back_at)
        if quit_.player not in seated:
            errors.append(
                FieldError(f"{path}.player", "quitter-not-seated", f"{quit_.player} is none of the four players.")
            )
        if quit_.at is None and back_at is not None:
            errors.append(
                FieldError(f"{path}.at", "quit-without-time", "A quitter who came back needs the time of the quit.")
            )
        elif not started_at <= at <= finished_at:
            errors.append(
                FieldError(f"{path}.at", "quit-outside-game", "A quit lies between the start and the end of the game.")
            )
        elif back_at is not None and back_at < at:
            errors.append(
                FieldError(f"{path}.back_at", "back-before-quit", "A quitter cannot be back before the quit.")
            )
        elif back_at is not None and back_at > finished_at:
            errors.append(
                FieldError(f"{path}.back_at", "back-outside-game", "A quitter comes back before the end of the game.")
            )
        elif back_at is not None and back_at - at > grace:
            warnings.append(
                Caution(
                    f"{path}.back_at",
                    "back-too-late",
                    f"{quit_.player} was back more than {settings.grace_minutes} minutes later, so the quit counts.",
                )
            )
        quits.append((at, quit_.player, back_at, number))
    quits.sort(key=lambda q: (q[0], q[1], q[2] is None, q[2] or 0))
    last: dict[str, tuple[int, int | None]] = {}
    for at, player, back_at, number in quits:
        if player in last:
            earlier, back = last[player]
            if back is None or back - earlier > grace or at < back:
                errors.append(
                    FieldError(f"quits[{number}].player", "quit-twice", f"{player} had quit already and was not back.")
                )
        last[player] = (at, back_at)
    return [{"player": player, "at": at, "back_at": back_at} for at, player, back_at, _ in quits]


def _substitute_error(
    path: str, seat: str, player: str | None, robot: bool, seated: Sequence[str], quitters: set[str]
) -> FieldError | None:
    if seat not in seated:
        return FieldError(f"{path}.for", "seat-unknown", f"{seat} is none of the four players.")
    if seat not in quitters:
        return FieldError(f"{path}.for", "substitute-without-quit", f"{seat} has not quit, so nobody took the seat.")
    if (player is not None) == robot:
        return FieldError(path, "substitute-player-or-robot", "A substitute is either a player or a robot.")
    if player is not None and player in seated:
        return FieldError(f"{path}.player", "substitute-seated", f"{player} is one of the four players.")
    return None


def _checked_substitutes(
    result: SpadesResult | SpadesLineUp, quitters: set[str], errors: list[FieldError]
) -> list[dict[str, Any]]:
    seated = [player for team in result.teams for player in team]
    found: set[tuple[str, str, bool]] = set()
    for number, substitute in enumerate(result.substitutes or ()):
        path = f"substitutes[{number}]"
        error = _substitute_error(path, substitute.seat, substitute.player, substitute.robot, seated, quitters)
        key = (substitute.seat, substitute.player or "", substitute.robot)
        if error is None and key in found:
            error = FieldError(path, "substitute-twice", "This substitute is listed twice for the same seat.")
        if error is not None:
            errors.append(error)
        found.add(key)
    return [{"for": seat, "player": player or None, "robot": robot} for seat, player, robot in sorted(found)]


def _checked_nils(result: SpadesResult, errors: list[FieldError]) -> list[dict[str, Any]]:
    sides: dict[str, set[int]] = {}
    for side, team in enumerate(result.teams):
        for player in team:
            sides.setdefault(player, set()).add(side)
    seated = {player: set(found) for player, found in sides.items()}
    for substitute in result.substitutes:
        if substitute.player is not None:
            sides.setdefault(substitute.player, set()).update(seated.get(substitute.seat, ()))
    nils: list[tuple[str, bool, str]] = []
    for number, nil in enumerate(result.nils):
        path = f"nils[{number}]"
        if nil.bidder not in sides:
            errors.append(FieldError(f"{path}.bidder", "bidder-not-seated", f"{nil.bidder} did not play this game."))
        if nil.set_by is not None:
            if not nil.is_set:
                errors.append(
                    FieldError(f"{path}.set_by", "set-by-without-set", "A nil that was made was set by nobody.")
                )
            elif nil.set_by not in sides:
                errors.append(
                    FieldError(f"{path}.set_by", "setter-not-seated", f"{nil.set_by} did not play this game.")
                )
            elif nil.bidder in sides and not any(
                own != other for own in sides[nil.bidder] for other in sides[nil.set_by]
            ):
                errors.append(
                    FieldError(f"{path}.set_by", "setter-not-opponent", "Only an opponent of the bidder sets a nil.")
                )
        nils.append((nil.bidder, nil.is_set, nil.set_by or ""))
    return [{"bidder": bidder, "set": is_set, "set_by": set_by or None} for bidder, is_set, set_by in sorted(nils)]


def _content(base: Content, **lists: list[dict[str, Any]]) -> Content:
    """Canonical key order; empty lists are left out."""
    content = dict(base)
    for key in ("quits", "substitutes", "nils"):
        entries = lists.get(key, content.pop(key, None))
        content.pop(key, None)
        if entries:
            content[key] = entries
    return content


# -- the rule system -------------------------------------------------------------------------------------------------


class Spades:
    """The rule system ``spades``; see the module's text, and ``shared.ratings.base.RuleSystem`` for what each does.

    Content of a finished game: ``{"teams": [[a, c], [b, d]], "outcome": "team1" | "team2" | "draw" | None,
    "quits": [{"player", "at", "back_at"}], "substitutes": [{"for", "player", "robot"}],
    "nils": [{"bidder", "set", "set_by"}]}``; of an open one the same without outcome and nils. Empty lists are left
    out. Partners are sorted, teams stay as sent. Quits are in the order in which they count: by instant, then handle.
    All instants are integer microseconds.
    """

    name: ClassVar[str] = "spades"
    settings_model: ClassVar[type[Settings]] = SpadesSettings
    result_model: ClassVar[Any] = SpadesResult
    line_up_model: ClassVar[Any] = SpadesLineUp
    positional: ClassVar[tuple[str, ...]] = ("teams",)
    start_model: ClassVar[type[BaseModel]] = SpadesStart
    has_closings: ClassVar[bool] = False
    listed_by: ClassVar[tuple[str, ...]] = ("skill",)
    """Figures that players have a list of their own by, highest first."""
    plain_indexes: ClassVar[bool] = False
    shown_decimals: ClassVar[int] = 0

    # -- at the door

    def normalise(self, result: BaseModel, settings: Settings, started_at: int, finished_at: int) -> Normalised:
        """Check a result and bring it into canonical form; instants in microseconds.

        An outcome that no rule of grace could make count (both partners quit and never came back) becomes None.

        Raises:
            RuleError: with every wrong field; codes ``player-twice``, ``quitter-not-seated``, ``quit-without-time``,
                ``quit-outside-game``, ``back-before-quit``, ``back-outside-game``, ``quit-twice``, ``seat-unknown``,
                ``substitute-without-quit``, ``substitute-player-or-robot``, ``substitute-seated``,
                ``substitute-twice``, ``bidder-not-seated``, ``set-by-without-set``, ``setter-not-seated``,
                ``setter-not-opponent``, ``outcome-missing``.
        """
        if not isinstance(result, SpadesResult):
            raise TypeError("the result of a Spades game is a SpadesResult")
        rules = _settings(settings)
        errors: list[FieldError] = []
        warnings: list[Caution] = []
        teams = _checked_teams(result.teams, errors)
        quits = _checked_quits(result, rules, started_at, finished_at, errors, warnings)
        substitutes = _checked_substitutes(result, {quit_["player"] for quit_ in quits}, errors)
        nils = _checked_nils(result, errors)
        outcome: str | None = result.outcome
        if _course(teams, quits, rules).settled is None:
            if outcome is None:
                errors.append(
                    FieldError(
                        "outcome", "outcome-missing", "A game needs an outcome unless both players of a team have quit."
                    )
                )
        elif outcome is not None:
            warnings.append(
                Caution("outcome", "outcome-ignored", "Both players of a team have quit, so the outcome is ignored.")
            )
            gone = {quit_["player"] for quit_ in quits if quit_["back_at"] is None}
            if any(gone.issuperset(team) for team in teams):
                outcome = None
        if errors:
            raise RuleError(errors)
        content = _content({"teams": teams, "outcome": outcome}, quits=quits, substitutes=substitutes, nils=nils)
        return Normalised(content, tuple(warnings))

    def normalise_line_up(self, line_up: BaseModel, settings: Settings) -> Normalised:
        """Check who sits down. Raises RuleError (``player-twice``; ``substitute-without-quit``: so far nobody has)."""
        return self._line_up(line_up, settings, {})

    def with_live_line_up(self, line_up: SpadesLineUp, content: Content, settings: Settings) -> Normalised:
        """The line-up of a running game: the quits so far of those who sit there, and its substitutes, or those so far.

        Raises:
            RuleError: ``player-twice``; for substitutes that are named ``seat-unknown``, ``substitute-without-quit``,
                ``substitute-player-or-robot``, ``substitute-seated``, ``substitute-twice``.
        """
        return self._line_up(line_up, settings, content)

    def _line_up(self, line_up: BaseModel, settings: Settings, live: Content) -> Normalised:
        if not isinstance(line_up, SpadesLineUp):
            raise TypeError("the line-up of a Spades game is a SpadesLineUp")
        _settings(settings)
        errors: list[FieldError] = []
        teams = _checked_teams(line_up.teams, errors)
        seated = {player for team in teams for player in team}
        quits = [quit_ for quit_ in live.get("quits", ()) if quit_["player"] in seated]
        gone = {quit_["player"] for quit_ in quits}
        if line_up.substitutes is not None:
            substitutes = _checked_substitutes(line_up, gone, errors)
        else:
            substitutes = [s for s in live.get("substitutes", ()) if s["for"] in gone and s["player"] not in seated]
        if errors:
            raise RuleError(errors)
        return Normalised(_content({"teams": teams}, quits=quits, substitutes=substitutes))

    def with_quit(self, content: Content, player: str, at: int, started_at: int | None = None) -> Content:
        """The content (with handles, not server ids) of an open game after a quit at ``at`` (microseconds).

        The same quit again changes nothing.

        Raises:
            RuleError: ``quitter-not-seated``, ``quit-outside-game`` (before ``started_at``), ``quit-twice`` (has quit
                already and is not back, or is back only later than ``at``). Paths as in the body ``{"player", "at"}``.
        """
        if player not in self.players(content):
            raise RuleError([FieldError("player", "quitter-not-seated", f"{player} is none of the four players.")])
        if started_at is not None and at < started_at:
            raise RuleError([FieldError("at", "quit-outside-game", "A quit is not before the start of the game.")])
        quits: list[dict[str, Any]] = list(content.get("quits", ()))
        for quit_ in quits:
            if quit_["player"] == player:
                if quit_["at"] == at and quit_["back_at"] is None:
                    return content
                if quit_["back_at"] is None or quit_["at"] <= at < quit_["back_at"]:
                    raise RuleError(
                        [FieldError("player", "quit-twice", f"{player} had quit already and was not back.")]
                    )
        quits.append({"player": player, "at": at, "back_at": None})
        quits.sort(key=lambda q: (q["at"], q["player"], q["back_at"] is None, q["back_at"] or 0))
        own = [quit_ for quit_ in quits if quit_["player"] == player]
        if any(quit_["back_at"] is None for quit_ in own[:-1]):
            raise RuleError([FieldError("at", "quit-twice", f"{player} quit again later, so was back before that.")])
        return _content(content, quits=quits)

    def with_return(self, content: Content, player: str, at: int, settings: Settings) -> Content:
        """The content of an open game after a quitter is back at ``at`` (microseconds), within the grace (inclusive).

        The same return again changes nothing.

        Raises:
            RuleError: ``not-quit``, ``back-before-quit``, ``back-too-late``.
        """
        rules = _settings(settings)
        quits: list[dict[str, Any]] = list(content.get("quits", ()))
        if any(quit_["player"] == player and quit_["back_at"] == at for quit_ in quits):
            return content
        for number, quit_ in enumerate(quits):
            if quit_["player"] != player or quit_["back_at"] is not None:
                continue
            if at < quit_["at"]:
                raise RuleError([FieldError("at", "back-before-quit", "A quitter cannot be back before the quit.")])
            if at - quit_["at"] > rules.grace_minutes * 60 * MICROSECONDS:
                raise RuleError(
                    [FieldError("at", "back-too-late", f"More than {rules.grace_minutes} minutes after the quit.")]
                )
            quits[number] = {"player": player, "at": quit_["at"], "back_at": at}
            return _content(content, quits=quits)
        raise RuleError([FieldError("player", "not-quit", f"{player} has not quit this game.")])

    def with_substitute(self, content: Content, seat: str, player: str | None = None, robot: bool = False) -> Content:
        """The content of an open game after somebody took a quitter's seat. The same substitute again changes nothing.

        Raises:
            RuleError: ``seat-unknown``, ``substitute-without-quit``, ``substitute-player-or-robot``,
                ``substitute-seated``.
        """
        quitters = {quit_["player"] for quit_ in content.get("quits", ())}
        error = _substitute_error("", seat, player, robot, self.players(content), quitters)
        if error is not None:
            raise RuleError([FieldError(error.field.lstrip("."), error.code, error.message)])
        substitutes: list[dict[str, Any]] = list(content.get("substitutes", ()))
        entry = {"for": seat, "player": player, "robot": robot}
        if entry in substitutes:
            return content
        substitutes.append(entry)
        substitutes.sort(key=lambda s: (s["for"], s["player"] or "", s["robot"]))
        return _content(content, substitutes=substitutes)

    def with_live(self, result: SpadesResult, content: Content) -> SpadesResult:
        """A result with the quits and substitutes of the open game's content, each only where the result has no word
        of them: so that a game can be finished by its outcome alone, and no forfeit gets lost by that."""
        kept: dict[str, Any] = {}
        if "quits" not in result.model_fields_set:
            kept["quits"] = [
                SpadesQuit(
                    player=quit_["player"],
                    at=_instant(quit_["at"]),
                    back_at=None if quit_["back_at"] is None else _instant(quit_["back_at"]),
                )
                for quit_ in content.get("quits", ())
            ]
        if "substitutes" not in result.model_fields_set:
            kept["substitutes"] = [SpadesSubstitute.model_validate(s) for s in content.get("substitutes", ())]
        return result.model_copy(update=kept)

    def robots_at_start(self, content: Content, started_at: int) -> tuple[str, ...]:
        """The players whose seat a robot took at the start (microseconds), for the setting ``no_robots_at_start``."""
        gone = {quit_["player"] for quit_ in content.get("quits", ()) if quit_["at"] <= started_at}
        taken = {s["for"] for s in content.get("substitutes", ()) if s["robot"]}
        return tuple(player for player in self.players(content) if player in gone and player in taken)

    def players(self, content: Content) -> tuple[str, ...]:
        """The four, team 1 first."""
        team1, team2 = content["teams"]
        return (*team1, *team2)

    def mentioned(self, content: Content) -> tuple[str, ...]:
        """The four, then substitutes who are players, each once."""
        found = dict.fromkeys(self.players(content))
        found.update(dict.fromkeys(s["player"] for s in content.get("substitutes", ()) if s["player"] is not None))
        return tuple(found)

    def translate(self, content: Content, name: Callable[[str], str]) -> Content:
        """Every player replaced by ``name(player)``; the order of all lists stays."""
        out = dict(content)
        out["teams"] = [[name(player) for player in team] for team in content["teams"]]
        if "quits" in content:
            out["quits"] = [{**quit_, "player": name(quit_["player"])} for quit_ in content["quits"]]
        if "substitutes" in content:
            out["substitutes"] = [
                {**s, "for": name(s["for"]), "player": None if s["player"] is None else name(s["player"])}
                for s in content["substitutes"]
            ]
        if "nils" in content:
            out["nils"] = [
                {**n, "bidder": name(n["bidder"]), "set_by": None if n["set_by"] is None else name(n["set_by"])}
                for n in content["nils"]
            ]
        return out

    def from_other_side(self, content: Content) -> Content:
        """The same game with its teams named in the other order."""
        return from_other_side(content, self.positional, ("outcome",))

    def as_submitted(self, content: Content) -> Content:
        """The content as the API writes and takes it: instants in ISO 8601 (UTC), what says nothing left out."""
        shown = {key: value for key, value in content.items() if value is not None}
        if "quits" in content:
            shown["quits"] = [
                {
                    k: v if k == "player" else _instant(v).isoformat().replace("+00:00", "Z")
                    for k, v in entry.items()
                    if v is not None
                }
                for entry in content["quits"]
            ]
        if "substitutes" in content:
            shown["substitutes"] = [
                {k: v for k, v in entry.items() if v is not None and v is not False} for entry in content["substitutes"]
            ]
        if "nils" in content:
            shown["nils"] = [{k: v for k, v in entry.items() if v is not None} for entry in content["nils"]]
        return shown

    def start(self, start: BaseModel | None, settings: Settings) -> PlayerState:
        """1500 points and no games, or what the player carries over, rounded half to even to the millionth."""
        _settings(settings)
        if start is None:
            return PlayerState(START_RATING)
        if not isinstance(start, SpadesStart):
            raise TypeError("the start of a Spades player is a SpadesStart")
        rating = (Decimal(repr(start.rating)) * MILLION).to_integral_value(ROUND_HALF_EVEN)
        return PlayerState(int(rating), games=start.games)

    # -- in the fold

    def quits(self, game: Game, settings: Settings) -> tuple[Quit, ...]:
        """The quits that count (for bans too), in the order in which they count."""
        order, ats, settled = _course(game.content["teams"], game.content.get("quits", ()), _settings(settings))
        return tuple(
            Quit(player, ats[number], settled is None or number <= settled) for player, number in order.items()
        )

    def moments(self, game: Game, settings: Settings) -> Sequence[Moment]:
        """Each quit that counts, by instant, then the finish. The order of the quits is the content's."""
        found: list[Moment] = []
        if "quits" in game.content:
            course = _course(game.content["teams"], game.content["quits"], _settings(settings))
            found = [Moment(at, QUIT, number) for number, at in enumerate(course.ats)]
        if game.finished_at is not None:
            found.append(Moment(game.finished_at, FINISH, 0))
        return found

    def rate(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> Sequence[Outcome]:
        """New ratings (millionths) of the players this moment decides; expectations from ``start`` only.

        A quit rates the quitter; when it empties a side, also the opponents who stayed, and nobody after that. The
        finish rates who is left, and adds every rated player's nils: who was rated before gets an outcome without
        score for them.

        Raises:
            CannotRate: ``player-twice`` after a merge; ``outcome-missing`` when other rules of grace brought a team
                back into a game that was sent without an outcome.
        """
        rules = _settings(settings)
        content = game.content
        if "quits" in content or "nils" in content or content.get("outcome") is None:
            return self._rate_any(game, moment, start, now, rules)
        (a, c), (b, d) = content["teams"]
        if a in (b, c, d) or c in (b, d) or b == d:
            raise CannotRate("player-twice")
        now_a, now_b, now_c, now_d = now[a], now[b], now[c], now[d]
        halves1, halves2, score = _SCORES[content["outcome"]]
        if rules.opposition == "pairwise":
            a_, b_, c_, d_ = start[a][0], start[b][0], start[c][0], start[d][0]
            ab, ad = _chance((b_ - a_) / SCALE), _chance((d_ - a_) / SCALE)
            cb, cd = _chance((b_ - c_) / SCALE), _chance((d_ - c_) / SCALE)
            k = _k(rules, now_a.games)
            change_a = k * halves1 // 2 - _rounded(k, ab + ad, (b_ - a_, d_ - a_), SCALE)
            k = _k(rules, now_c.games)
            change_c = k * halves1 // 2 - _rounded(k, cb + cd, (b_ - c_, d_ - c_), SCALE)
            k = _k(rules, now_b.games)
            change_b = k * halves2 // 2 - _rounded(k, 2.0 - ab - cb, (a_ - b_, c_ - b_), SCALE)
            k = _k(rules, now_d.games)
            change_d = k * halves2 // 2 - _rounded(k, 2.0 - ad - cd, (a_ - d_, c_ - d_), SCALE)
        else:
            difference = start[b][0] + start[d][0] - start[a][0] - start[c][0]
            if isinstance(rules.k, KByGames):
                k = _k(rules, now_a.games)
                change_a = k * halves1 // 2 - _team_share(k, difference)
                k = _k(rules, now_c.games)
                change_c = k * halves1 // 2 - _team_share(k, difference)
                k = _k(rules, now_b.games)
                change_b = k * halves2 // 2 - 2 * k + _team_share(k, difference)
                k = _k(rules, now_d.games)
                change_d = k * halves2 // 2 - 2 * k + _team_share(k, difference)
            else:
                k = _k(rules, 0)
                change_a = change_c = k * halves1 // 2 - _team_share(k, difference)
                change_b = change_d = -change_a
        return (
            Outcome(a, now_a.rating + change_a, 0, score),
            Outcome(c, now_c.rating + change_c, 0, score),
            Outcome(b, now_b.rating + change_b, 0, -score),
            Outcome(d, now_d.rating + change_d, 0, -score),
        )

    def _rate_any(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: SpadesSettings,
    ) -> Sequence[Outcome]:
        _distinct(game.content)
        counts = _nil_counts(game.content) if moment.kind == FINISH else {}
        seats = self.players(game.content)
        return [
            Outcome(
                seats[line.seat],
                now[seats[line.seat]].rating + line.change,
                0,
                line.score,
                line.score is not None,
                counts.get(seats[line.seat]),
            )
            for line in _lines(game, moment, start, now, settings, counts)
        ]

    def plain(self, content: Content, settings: Settings) -> PlainResult | None:
        """A game that nobody quit and nobody bid nil in. ``data``: halves that each team scores."""
        if "quits" in content or "nils" in content or content.get("outcome") is None:
            return None
        _settings(settings)
        halves1, halves2, score = _SCORES[content["outcome"]]
        return PlainResult((halves1, halves2), score)

    def team_change(self, result: PlainResult, settings: Settings) -> Callable[[float], float] | None:
        """As ``rate``, where the teams' means oppose each other and K is the same for all."""
        rules = _settings(settings)
        if rules.opposition == "pairwise" or isinstance(rules.k, KByGames):
            return None
        k = _k(rules, 0)
        gain, twice = float(k * int(result.data[0]) // 2), 2.0 * k
        near_low, near_high = -NEAR_HALF, NEAR_HALF

        def change(difference: float) -> float:
            try:
                # Where one side is certain to win, the share is all or nothing here too.
                product = twice / (1.0 + 10.0 ** (difference / BOTH_SCALES))
            except OverflowError:
                return gain
            share: float = (product + _WHOLE) - _WHOLE
            if near_low < product - share < near_high:
                return gain - share
            return gain - _team_share(k, int(difference))

        return change

    def rate_plain(self, batch: PlainBatch, settings: Settings) -> None:
        """As ``rate``, for games without quits and nils."""
        rules = _settings(settings)
        ratings, games, pairwise = batch.ratings, batch.games, rules.opposition == "pairwise"
        halves = [(0, 0) if result is None else tuple(map(int, result.data)) for result in batch.results]
        for kind, *seats in zip(batch.kinds, *batch.seats, strict=True):
            before = [ratings[player] for player in seats]
            batch.history.extend(before)
            for seat, player in enumerate(seats):
                k = _k(rules, games[player])
                gain = k * halves[kind][0 if seat < 2 else 1] // 2
                ratings[player] += gain - _share(k, seat, before, pairwise)
                games[player] += 1
            batch.history.extend([ratings[player] for player in seats])

    def close(self, state: PlayerState, closing: int) -> Rating | None:  # noqa: ARG002
        """A closing changes nothing."""
        return None

    # -- for readers

    def place_key(self, state: PlayerState) -> tuple[int, ...]:
        """Equal ratings share a place."""
        return (-state.rating,)

    def order_key(self, state: PlayerState) -> tuple[int, ...]:
        """Rating descending, then more games first."""
        return (-state.rating, -state.games)

    def present(self, rating: int, index: int) -> dict[str, float | int]:  # noqa: ARG002
        """``{"rating": points}``, exact to the millionth."""
        return {"rating": rating / MILLION}

    def present_change(self, before: Rating, after: Rating) -> dict[str, float | int]:
        """``{"rating": points}``, exact to the millionth."""
        return {"rating": (after[0] - before[0]) / MILLION}

    def hash_token(self, rating: int, index: int) -> str:  # noqa: ARG002
        """Millionths."""
        return str(rating)

    def figures(self, state: PlayerState, settings: Settings) -> dict[str, Any]:  # noqa: ARG002
        """``skill``: nils set ÷ nils the opponents bid, 0 to 1; None without any."""
        chances = state.counters.get("nil_chances", 0)
        return {"skill": state.counters.get("nils_set", 0) / chances if chances else None}

    def tally(self, game: Game) -> Mapping[str, Tally]:
        """Nothing is counted for and against in Spades."""
        return dict.fromkeys(self.players(game.content), NO_TALLY)

    def explain(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> dict[str, dict[str, Any]]:
        """Per player this moment rates, the numbers of his change: ratings in points, expected scores from 0 to 2.

        ``reason``: ``result``, ``quit``, ``settled`` (the opponents all quit) or ``nils`` (rated before, nils added).
        The opponents' ``change`` add up to the player's. ``decided_by`` tells whether a quit or the result decided
        against that opponent.
        """
        rules = _settings(settings)
        content = game.content
        _distinct(content)
        teams = content["teams"]
        seats = (*teams[0], *teams[1])
        order = _course(teams, content.get("quits", ()), rules).order
        counts = _nil_counts(content) if moment.kind == FINISH else {}
        ratings = [start[player][0] for player in seats]
        sums = (ratings[0] + ratings[1], ratings[2] + ratings[3])
        explained: dict[str, dict[str, Any]] = {}
        for line in _lines(game, moment, start, now, rules, counts):
            seat, player = line.seat, seats[line.seat]
            before = now[player].rating
            about: dict[str, Any] = {
                "reason": line.reason,
                "start": ratings[seat] / MILLION,
                "before": before / MILLION,
                "after": (before + line.change) / MILLION,
                "change": line.change / MILLION,
                "score_of_record": line.score,
            }
            if counts.get(player):
                about["nil_chances"] = counts[player].get("nil_chances", 0)
                about["nils_set"] = counts[player].get("nils_set", 0)
            replaced = [s for s in content.get("substitutes", ()) if s["for"] == player]
            if replaced:
                about["substitutes"] = [{"player": s["player"], "robot": s["robot"]} for s in replaced]
            explained[player] = about
            if line.reason == "nils":
                continue
            first = 2 if seat < 2 else 0
            if rules.opposition == "pairwise":
                chances = [_chance((ratings[first + i] - ratings[seat]) / SCALE) for i in (0, 1)]
            else:
                mine, theirs = (0, 1) if seat < 2 else (1, 0)
                about["own_team_mean"], about["opposing_team_mean"] = sums[mine] / 2e6, sums[theirs] / 2e6
                chances = [_chance((sums[theirs] - sums[mine]) / BOTH_SCALES)] * 2
            part = line.k * line.halves[0] // 2 - round(line.k * chances[0])
            opponents = []
            for i, change in enumerate((part, line.change - part)):
                opponent = seats[first + i]
                by_quit = player in order or opponent in order
                opponents.append(
                    {
                        "player": opponent,
                        "rating": ratings[first + i] / MILLION,
                        "expected": chances[i],
                        "score": line.halves[i] / 2,
                        "decided_by": "quit" if by_quit else "result",
                        "quit_first": (
                            min((p for p in (player, opponent) if p in order), key=order.__getitem__)
                            if by_quit
                            else None
                        ),
                        "change": change / MILLION,
                    }
                )
            about["opposition"] = rules.opposition
            about["k"] = line.k / MILLION
            about["games_before"] = now[player].games
            about["expected"] = math.fsum(chances)
            about["score"] = sum(line.halves) / 2
            about["opponents"] = opponents
        return explained

    def explain_closing(
        self,
        before: Rating,  # noqa: ARG002
        after: Rating,  # noqa: ARG002
        last_result: int,  # noqa: ARG002
        closing: int,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Spades has no closings that change a rating."""
        return {}

    def quote(
        self, content: Content, states: Mapping[str, PlayerState], settings: Settings
    ) -> list[tuple[str, dict[str, Rating]]]:
        """New ratings (millionths) after ``team1``, ``draw`` and ``team2``, if nobody quits."""
        start = {player: (states[player].rating, 0) for player in self.players(content)}
        moment = Moment(0, FINISH, 0)
        quoted: list[tuple[str, dict[str, Rating]]] = []
        for outcome in ("team1", "draw", "team2"):
            game = Game("", "", 1, 0, 0, content={"teams": content["teams"], "outcome": outcome})
            rated = self.rate(game, moment, start, states, settings)
            quoted.append((outcome, {new.player: (new.rating, new.index) for new in rated}))
        return quoted


SYSTEM = Spades()

if TYPE_CHECKING:
    _: RuleSystem = SYSTEM
    _bulk: BulkSystem = SYSTEM
    _teams: TeamSystem = SYSTEM
