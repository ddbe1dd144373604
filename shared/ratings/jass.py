"""Jass-Elo: Schieber, two against two, rated by the difference in striche or points.

Source: "Jass-Elo", Jassverband Schweiz. The rating moves with K (S − E), where S measures by how much a team did better
than its expected difference. Expectation enters twice (in the expected difference and in S − E), so a favourite who
plays as expected loses a little: the association's rule, built as written.

Canonical content of a result (partners sorted by handle at the door, teams in the order given)::

    {"teams": [[a, c], [b, d]], "striche": [3, 0], "categories": [{...}, {...}], "winner": "team1", "points": [157, 0]}
    {"teams": [[a, c], [b, d]], "points": [2500, 1800], "winner": "team1"}

``striche`` are totals; ``categories`` is there when a club gave them, ``winner`` when it was named or follows from the
striche, ``points`` in a striche pool when a club gave them. A line-up is ``{"teams": ...}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor, fsum, sqrt
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError

from shared.ratings.base import (
    FINISH,
    MILLION,
    BulkSystem,
    CannotCalibrate,
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
    Spread,
    Tally,
    TeamSystem,
    from_other_side,
)

START = 100
"""Points of a new player: small, so that differences are easy to read (the source)."""
SCALE = 1000
"""Points of team rating that make the odds ten to one; wide, since luck weighs more than in chess (the source)."""
K = 32
"""Of the team's change; each partner takes half."""
MOST_DIFFERENCE = 7
"""Striche: the highest win that is told apart, one berg, two sieg, two matsch, two schneider (the source)."""
SIEG = 2
WHOLE_EVENING = 9
"""More striche than this in one game are probably a whole evening's."""

TIER_STEP = 5
TIERS = 22
_TIER_BELOW = 50
"""The lowest tier ends here; the highest begins at 150."""

FEWEST_GAMES = 30
"""Games that a calibration of K needs."""

_DOUBLE_SCALE = 2 * SCALE * MILLION
"""The exponent's denominator for a difference of *sums* of two ratings in millionths."""
_LARGEST_EXPONENT = 300.0
_HALF_POINT = MILLION // 2
_TOO_CLOSE = 1e-5
"""Millionths from a rounding boundary within which binary floating point is not trusted."""
_NEAR_HALF = 0.4999
"""A rounding error above this is looked at by ``_work``."""
_WHOLE = 1.5 * 2.0**52
"""Added and taken away again, it rounds a float (below 2^51) half to even, as round() does."""
_MOST_STRICHE = 1000
_MOST_POINTS = 100_000
_MOST_RATING = 100_000


# -- the arithmetic --------------------------------------------------------------------------------------------------


def expectation(sum_a: int, sum_b: int) -> float:
    """E of team A, 0 to 1, from the two teams' *sums* of ratings in millionths: 1 / (1 + 10^((R_B − R_A) / 1000))."""
    exponent = (sum_b - sum_a) / _DOUBLE_SCALE
    odds: float = 10.0 ** min(max(exponent, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    return 1 / (1 + odds)


def _exact_change(sum_a: int, sum_b: int, difference: int, base: int, span: int, k: float) -> int:
    """What ``_change`` gives, from numbers exact or right to 40 digits: where rounding hangs on the last bit."""
    quotient, rest = divmod(sum_b - sum_a, _DOUBLE_SCALE)
    if rest == 0:
        odds = Fraction(10) ** quotient
    else:
        with localcontext() as context:
            context.prec = 40
            odds = Fraction(Decimal(10) ** (Decimal(sum_b - sum_a) / _DOUBLE_SCALE))
    e = 1 / (1 + odds)
    raw = Fraction(1, 2) + (difference - (2 * e - 1) * base) / (2 * span)
    return round(Fraction(repr(k)) * (min(max(raw, Fraction(0)), Fraction(1)) - e) * _HALF_POINT)


class _Working(NamedTuple):
    """The numbers of one game, for team A; ratings in points."""

    e: float
    expected: float
    deviation: float
    raw: float
    s: float
    change: int
    """Of each player of team A, in millionths."""


def _work(sum_a: int, sum_b: int, difference: int, base: int, span: int, k: float) -> _Working:
    """The formulas of the rules page.

    Args:
        sum_a: both ratings of team A, in millionths.
        sum_b: team B's.
        difference: striche or points of A less those of B.
        base: what expectation is measured in: all striche of the game, or the target.
        span: the highest difference told apart: 7 striche, or the target.
        k: K.
    """
    e = expectation(sum_a, sum_b)
    expected = (2 * e - 1) * base
    deviation = difference - expected
    raw = 0.5 + deviation / (2 * span)
    s = min(max(raw, 0.0), 1.0)
    change = k * (s - e) * _HALF_POINT
    if abs(change - floor(change) - 0.5) < _TOO_CLOSE:
        return _Working(e, expected, deviation, raw, s, _exact_change(sum_a, sum_b, difference, base, span, k))
    return _Working(e, expected, deviation, raw, s, round(change))


def tier(rating: int) -> int:
    """The tier, 0 to 21, of a rating in millionths: steps of 5 points on the unrounded rating; 100 is in tier 11."""
    return min(max(rating // (TIER_STEP * MILLION) - (_TIER_BELOW // TIER_STEP - 1), 0), TIERS - 1)


def tier_bounds(number: int) -> tuple[int | None, int | None]:
    """(lower bound, upper bound) of a tier in points: lower inclusive, upper exclusive, None where it is open.

    Raises:
        IndexError: ``number`` is not 0 to 21.
    """
    if not 0 <= number < TIERS:
        raise IndexError(f"there is no tier {number}")
    lower = _TIER_BELOW + (number - 1) * TIER_STEP
    return (lower if number > 0 else None, lower + TIER_STEP if number < TIERS - 1 else None)


# -- calibration of K --------------------------------------------------------------------------------------------------


def deviation(game: Game, start: Mapping[str, Rating], settings: Settings) -> float:
    """S − E of team A in a finished game (team B's is its negative), −1 to 1, for ``spread``.

    Args:
        game: with a result.
        start: every player's rating at the start of the game.
        settings: in force at the start of the game.

    Raises:
        CannotRate: the game cannot be rated under these settings.
    """
    working = _rate(game.content, start, cast("JassSettings", settings))
    return working.s - working.e


def spread(deviations: Iterable[float]) -> Spread:
    """σ of a pool from one S − E per game; the sign, i.e. which team was called A, does not matter."""
    squares = [value * value for value in deviations]
    return Spread(len(squares), sqrt(fsum(squares) / len(squares)) if squares else 0.0)


def calibrated_k(k_reference: float, reference: Spread, rule: Spread) -> float:
    """K of a rule set: K_ref · σ_ref / σ_rule.

    Raises:
        CannotCalibrate: fewer than 30 games on either side, or a σ of 0.
    """
    for what, found in (("reference pool", reference), ("pool", rule)):
        if found.games < FEWEST_GAMES:
            raise CannotCalibrate(f"The {what} has {found.games} games; at least {FEWEST_GAMES} are needed.")
        if found.sigma == 0:
            raise CannotCalibrate(f"Every game of the {what} ended exactly as expected: its spread is 0.")
    return k_reference * reference.sigma / rule.sigma


# -- models at the door ------------------------------------------------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


TeamName = Literal["team1", "team2"]
_Team = Annotated[list[Player], Field(min_length=2, max_length=2)]
_Teams = Annotated[list[_Team], Field(min_length=2, max_length=2)]
_Count = Annotated[int, Field(ge=0, le=_MOST_STRICHE)]
_Points = Annotated[list[Annotated[int, Field(ge=0, le=_MOST_POINTS)]], Field(min_length=2, max_length=2)]
_Short = Annotated[str, Field(min_length=1, max_length=40)]


class Categories(_Strict):
    """One team's striche of one game by what they were made for; counted in striche, not in events."""

    berg: _Count = 0
    sieg: _Count = 0
    matsch: _Count = 0
    schneider: _Count = 0
    kontermatsch: _Count = 0


_COUNT: TypeAdapter[int] = TypeAdapter(_Count, config=ConfigDict(strict=True))


def _total_or_categories(value: object, _: ValidatorFunctionWrapHandler) -> int | Categories:
    """Choose by the shape, so that an error names ``striche[0].sieg`` and nothing of the other shape."""
    return Categories.model_validate(value) if isinstance(value, dict | Categories) else _COUNT.validate_python(value)


_TeamStriche = Annotated[_Count | Categories, WrapValidator(_total_or_categories)]


class JassTier(_Strict):
    """Name (per language) and symbol of a tier."""

    names: Annotated[dict[Annotated[str, Field(pattern="^[a-z]{2,3}$")], _Short], Field(min_length=1, max_length=20)]
    symbol: _Short


class JassSettings(Settings):
    """Settings of a Jass pool."""

    fixed: ClassVar[tuple[str, ...]] = ("measure",)
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    measure: Literal["striche", "points"] = "striche"
    target_points: Annotated[Annotated[int, Field(gt=0, le=_MOST_POINTS)] | None, Field(validate_default=True)] = None
    """Of a points pool: the points a game is played to, or rounds × 157."""
    k: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = K
    berg: bool = True
    """Whether the berg is played."""
    schneider: Annotated[int, Field(ge=0, le=2)] | None = 2
    """What a schneider counts; None: it is not played."""
    kontermatsch: Annotated[int, Field(ge=0, le=2)] = 2
    """What each kontermatsch counts."""
    tiers: Annotated[list[JassTier], Field(min_length=TIERS, max_length=TIERS)] | None = None
    """From below 50 to 150 and more; None: ``DEFAULT_TIERS``."""

    @field_validator("target_points")
    @classmethod
    def _target(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and info.data.get("measure") == "points":
            raise PydanticCustomError("missing", "A pool measured in points needs its target.")
        return value


class JassResult(_Strict):
    """A finished game, in striche or (in a points pool) in points."""

    teams: _Teams
    striche: Annotated[list[_TeamStriche], Field(min_length=2, max_length=2)] | None = None
    winner: TeamName | None = None
    points: _Points | None = None


class JassLineUp(_Strict):
    """Who is about to play."""

    teams: _Teams


class JassStart(_Strict):
    """What a player carries over from elsewhere."""

    rating: Annotated[float, Field(ge=-_MOST_RATING, le=_MOST_RATING, allow_inf_nan=False)] = START
    games: Annotated[int, Field(ge=0, le=MILLION)] = 0


_PLANTS = (
    ("Moss", "Moos", "Mousse", "Muschio"),
    ("Grass", "Gras", "Herbe", "Erba"),
    ("Clover", "Klee", "Trèfle", "Trifoglio"),
    ("Fern", "Farn", "Fougère", "Felce"),
    ("Heather", "Erika", "Bruyère", "Erica"),
    ("Ivy", "Efeu", "Lierre", "Edera"),
    ("Broom", "Ginster", "Genêt", "Ginestra"),
    ("Juniper", "Wacholder", "Genévrier", "Ginepro"),
    ("Elder", "Holunder", "Sureau", "Sambuco"),
    ("Hazel", "Hasel", "Noisetier", "Nocciolo"),
    ("Willow", "Weide", "Saule", "Salice"),
    ("Birch", "Birke", "Bouleau", "Betulla"),
    ("Alder", "Erle", "Aulne", "Ontano"),
    ("Poplar", "Pappel", "Peuplier", "Pioppo"),
    ("Maple", "Ahorn", "Érable", "Acero"),
    ("Ash", "Esche", "Frêne", "Frassino"),
    ("Lime", "Linde", "Tilleul", "Tiglio"),
    ("Beech", "Buche", "Hêtre", "Faggio"),
    ("Chestnut", "Kastanie", "Châtaignier", "Castagno"),
    ("Larch", "Lärche", "Mélèze", "Larice"),
    ("Stone pine", "Arve", "Arolle", "Cembro"),
    ("Oak", "Eiche", "Chêne", "Quercia"),
)
_SYMBOLS = tuple(str(number) for number in range(1, TIERS + 1))
"""Plain numbers: many fonts have no circled ones above ten."""

DEFAULT_TIERS: tuple[JassTier, ...] = tuple(
    JassTier(names=dict(zip(("en", "de", "fr", "it"), names, strict=True)), symbol=symbol)
    for names, symbol in zip(_PLANTS, _SYMBOLS, strict=True)
)
"""What grows from the moss to the oak, in place of anybody's own set; a new player starts as a birch."""


def as_submitted(content: Content) -> Content:
    """A normalised result or line-up as the API writes it: categories in the place of their totals."""
    shown = {key: value for key, value in content.items() if key != "categories"}
    if "categories" in content:
        shown["striche"] = content["categories"]
    return shown


# -- one game ----------------------------------------------------------------------------------------------------------


def _measured(content: Content, settings: JassSettings) -> tuple[int, int, int]:
    """(difference, base, span) of a finished game, as ``_work`` takes them. Raises CannotRate."""
    if settings.measure == "striche":
        if "striche" not in content:
            raise CannotRate("The pool counts striche at that time, and this game has none.")
        a, b = content["striche"]
        return a - b, a + b, MOST_DIFFERENCE
    if "points" not in content or settings.target_points is None:
        raise CannotRate("The pool counts points at that time, and this game has none.")
    a, b = content["points"]
    return a - b, settings.target_points, settings.target_points


def _rate(content: Content, start: Mapping[str, Rating], settings: JassSettings) -> _Working:
    (a, c), (b, d) = content["teams"]
    if len({a, b, c, d}) < 4:
        raise CannotRate("A player would meet himself: two players of this game have been merged.")
    difference, base, span = _measured(content, settings)
    return _work(start[a][0] + start[c][0], start[b][0] + start[d][0], difference, base, span, settings.k)


def _score(content: Content) -> int:
    """Of team 1: the named winner, else the more striche (or points). A sieg is among the named winners by then."""
    winner = content.get("winner")
    if winner is not None:
        return 1 if winner == "team1" else -1
    scored: list[int] = content["striche"] if "striche" in content else content["points"]
    return (scored[0] > scored[1]) - (scored[0] < scored[1])


def _tallies(content: Content) -> tuple[Tally, Tally]:
    """Of both teams of a finished game."""
    points: Sequence[int] = content.get("points", (0, 0))
    scored: Sequence[int] | None = content.get("striche")
    (a, b), (one, two) = (points, (0, 0)) if scored is None else (scored, points)
    return Tally(a, b, one), Tally(b, a, two)


# -- checking a submission ---------------------------------------------------------------------------------------------


def _check_teams(teams: Sequence[Sequence[str]], errors: list[FieldError]) -> list[list[str]]:
    seen: set[str] = set()
    for number, members in enumerate(teams):
        for seat, player in enumerate(members):
            if player in seen:
                field = f"teams[{number}][{seat}]"
                errors.append(FieldError(field, "player-twice", f"{player} is named twice."))
            seen.add(player)
    return [sorted(members) for members in teams]


def _check_category(number: int, given: Categories, settings: JassSettings) -> list[FieldError]:
    """The counts of one team on their own."""
    field = f"striche[{number}]"
    errors: list[FieldError] = []

    def refuse(category: str, code: str, message: str) -> None:
        errors.append(FieldError(f"{field}.{category}", code, message))

    if given.berg and not settings.berg:
        refuse("berg", "berg-off", "This pool plays without berg.")
    elif given.berg > 1:
        refuse("berg", "wrong-count", "A berg is 1 strich: 0 or 1.")
    if given.sieg not in (0, SIEG):
        refuse("sieg", "wrong-count", "A sieg is 2 striche: 0 or 2.")
    if given.schneider and settings.schneider is None:
        refuse("schneider", "schneider-off", "This pool plays without schneider.")
    elif given.schneider not in (0, settings.schneider):
        refuse("schneider", "wrong-count", f"A schneider counts {settings.schneider} in this pool.")
    if settings.kontermatsch == 0:
        if given.kontermatsch:
            refuse("kontermatsch", "wrong-count", "A kontermatsch counts 0 in this pool.")
    elif given.kontermatsch % settings.kontermatsch:
        refuse("kontermatsch", "wrong-count", f"Each kontermatsch counts {settings.kontermatsch} in this pool.")
    return errors


def _check_categories(
    pair: tuple[Categories, Categories], settings: JassSettings, errors: list[FieldError]
) -> frozenset[TeamName]:
    """Check both teams' counts, alone and against each other; returns who can have won (one team, or nobody)."""
    alone = [error for number in (0, 1) for error in _check_category(number, pair[number], settings)]
    errors += alone
    wrong = {error.field.rpartition(".")[2] for error in alone}

    def both(category: str, code: str, message: str) -> None:
        errors.extend(FieldError(f"striche[{number}].{category}", code, message) for number in (0, 1))

    first, second = pair
    if "sieg" not in wrong:
        if first.sieg and second.sieg:
            both("sieg", "sieg-on-both-sides", "Only one team can have the sieg.")
        elif not first.sieg and not second.sieg:
            both("sieg", "sieg-on-no-side", "One team must have the sieg.")
    if settings.berg and "berg" not in wrong:
        if first.berg and second.berg:
            both("berg", "berg-on-both-sides", "Only one team can have the berg.")
        elif not first.berg and not second.berg:
            both("berg", "berg-on-no-side", "One team must have the berg.")
    for number, (own, other) in enumerate(((first, second), (second, first))):
        if own.schneider and not own.sieg:
            message = "A team without the sieg cannot have a schneider."
            errors.append(FieldError(f"striche[{number}].schneider", "schneider-without-sieg", message))
        if own.schneider and other.berg:
            message = "A team cannot be schneider when it has the berg."
            errors.append(FieldError(f"striche[{number}].schneider", "schneider-against-berg", message))
    if "sieg" in wrong or first.sieg == second.sieg:
        return frozenset()
    return frozenset({"team1" if first.sieg else "team2"})


def possible_winners(a: int, b: int, settings: JassSettings) -> frozenset[TeamName]:
    """Which teams can have had the sieg when the totals are a : b; nobody: such a game does not exist.

    Every legal game is a sieg on one side, with berg on a berg on one side, and any number of matsch on either;
    schneider and kontermatsch lead to no total that matsch would not.
    """
    bergs = ((1, 0), (0, 1)) if settings.berg else ((0, 0),)
    siegs: tuple[tuple[TeamName, int, int], ...] = (("team1", SIEG, 0), ("team2", 0, SIEG))
    return frozenset(
        team
        for team, sieg_a, sieg_b in siegs
        for berg_a, berg_b in bergs
        if a >= sieg_a + berg_a and b >= sieg_b + berg_b
    )


def _check_totals(a: int, b: int, settings: JassSettings, errors: list[FieldError]) -> frozenset[TeamName]:
    possible = possible_winners(a, b, settings)
    if not possible:
        if a < SIEG and b < SIEG:
            code, message = "sieg-on-no-side", f"{a}:{b} has no sieg: the team that wins has at least 2 striche."
        else:
            code, message = "berg-on-no-side", f"{a}:{b} has no berg: with the sieg that makes at least 3:0 or 2:1."
        errors.append(FieldError("striche", code, message))
    return possible


class Jass:
    """The rule system ``jass``."""

    name: ClassVar[str] = "jass"
    settings_model: ClassVar[type[Settings]] = JassSettings
    result_model: ClassVar[Any] = JassResult
    line_up_model: ClassVar[Any] = JassLineUp
    positional: ClassVar[tuple[str, ...]] = ("teams", "striche", "categories", "points")
    start_model: ClassVar[type[BaseModel]] = JassStart
    has_closings: ClassVar[bool] = False
    plain_indexes: ClassVar[bool] = False
    shown_decimals: ClassVar[int] = 0

    def normalise(self, result: BaseModel, settings: Settings, started_at: int, finished_at: int) -> Normalised:  # noqa: ARG002
        """Check a ``JassResult`` and bring it into the canonical form of this module.

        In a striche pool ``winner`` is filled in where only one team can have had the sieg.

        Returns:
            with a caution ``whole-evening`` for each team above 9 striche.

        Raises:
            RuleError: every wrong field.
        """
        given = cast("JassResult", result)
        rules = cast("JassSettings", settings)
        errors: list[FieldError] = []
        warnings: list[Caution] = []
        content: Content = {"teams": _check_teams(given.teams, errors)}
        if rules.measure == "points":
            if given.striche is not None:
                errors.append(FieldError("striche", "wrong-measure", "This pool counts points, not striche."))
            if given.points is None:
                errors.append(FieldError("points", "missing", "This pool counts points: give both teams'."))
            elif not any(given.points):
                errors.append(FieldError("points", "nothing-scored", "A game in which nobody scored is no game."))
            if given.winner is not None:
                content["winner"] = given.winner
        elif given.striche is None:
            errors.append(FieldError("striche", "missing", "This pool counts striche: give both teams'."))
        else:
            content |= self._striche(given.striche, given.winner, rules, errors)
            for number, total in enumerate(content.get("striche", ())):
                if total > WHOLE_EVENING:
                    message = f"{total} striche are many for one game: is this a whole evening?"
                    warnings.append(Caution(f"striche[{number}]", "whole-evening", message))
        if given.points is not None:
            content["points"] = list(given.points)
        if errors:
            raise RuleError(errors)
        return Normalised(content, tuple(warnings))

    @staticmethod
    def _striche(
        striche: list[int | Categories], winner: TeamName | None, rules: JassSettings, errors: list[FieldError]
    ) -> Content:
        first, second = striche
        content: Content = {}
        if isinstance(first, Categories) and isinstance(second, Categories):
            possible = _check_categories((first, second), rules, errors)
            pair = [first.model_dump(), second.model_dump()]
            content["striche"] = [sum(pair[0].values()), sum(pair[1].values())]
            content["categories"] = pair
        elif isinstance(first, Categories) or isinstance(second, Categories):
            message = "Give totals for both teams, or categories for both."
            errors.append(FieldError("striche", "totals-beside-categories", message))
            return content
        else:
            possible = _check_totals(first, second, rules, errors)
            content["striche"] = [first, second]
        if winner is not None:
            if possible and winner not in possible:
                errors.append(FieldError("winner", "winner-without-sieg", f"The striche say that {winner} lost."))
            content["winner"] = winner
        elif len(possible) == 1:
            content["winner"] = next(iter(possible))
        return content

    def normalise_line_up(self, line_up: BaseModel, settings: Settings) -> Normalised:  # noqa: ARG002
        """Check a ``JassLineUp``; raises RuleError."""
        errors: list[FieldError] = []
        teams = _check_teams(cast("JassLineUp", line_up).teams, errors)
        if errors:
            raise RuleError(errors)
        return Normalised({"teams": teams})

    def players(self, content: Content) -> tuple[str, ...]:
        """The four players, team 1 first."""
        return tuple(player for team in content["teams"] for player in team)

    def mentioned(self, content: Content) -> tuple[str, ...]:
        """The same: nobody else is named in a Jass game."""
        return self.players(content)

    def translate(self, content: Content, name: Callable[[str], str]) -> Content:
        """The content with every player replaced by ``name(player)``."""
        return {**content, "teams": [[name(player) for player in team] for team in content["teams"]]}

    def from_other_side(self, content: Content) -> Content:
        """The same game with its teams named in the other order."""
        return from_other_side(content, self.positional, ("winner",))

    def as_submitted(self, content: Content) -> Content:
        """The content as the API writes and takes it; it normalises to the same again."""
        return as_submitted(content)

    def start(self, start: BaseModel | None, settings: Settings) -> PlayerState:  # noqa: ARG002
        """100 points, or the ``JassStart`` carried over, to the nearest millionth."""
        given = JassStart() if start is None else cast("JassStart", start)
        return PlayerState(rating=round(Fraction(repr(given.rating)) * MILLION), games=given.games)

    def moments(self, game: Game, settings: Settings) -> Sequence[Moment]:  # noqa: ARG002
        """The finish."""
        if game.finished_at is None or game.void or not game.rated:
            return ()
        return (Moment(game.finished_at, FINISH, 0),)

    def rate(
        self,
        game: Game,
        moment: Moment,  # noqa: ARG002
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> Sequence[Outcome]:
        """Half the team's change for each player, added to his current rating; the four changes sum to 0.

        Raises:
            CannotRate: two players of the game are one by now, or the game lacks what the pool counts.
        """
        content = game.content
        change = _rate(content, start, cast("JassSettings", settings)).change
        score = _score(content)
        (a, c), (b, d) = content["teams"]
        return (
            Outcome(a, now[a].rating + change, 0, score),
            Outcome(c, now[c].rating + change, 0, score),
            Outcome(b, now[b].rating - change, 0, -score),
            Outcome(d, now[d].rating - change, 0, -score),
        )

    def plain(self, content: Content, settings: Settings) -> PlainResult | None:
        """A game that has what the pool counts. ``data``: difference, base and span."""
        try:
            measured = _measured(content, cast("JassSettings", settings))
        except CannotRate:
            return None
        return PlainResult(measured, _score(content), _tallies(content))

    def team_change(self, result: PlainResult, settings: Settings) -> Callable[[float], float] | None:
        """As ``rate``."""
        k = cast("JassSettings", settings).k
        difference, base, span = result.data
        spans = 2.0 * span

        def change(apart: float) -> float:
            exponent = apart / _DOUBLE_SCALE
            if -_LARGEST_EXPONENT < exponent < _LARGEST_EXPONENT:
                e = 1.0 / (1.0 + 10.0**exponent)
                s = 0.5 + (difference - (2.0 * e - 1.0) * base) / spans
                product = k * ((0.0 if s < 0.0 else 1.0 if s > 1.0 else s) - e) * _HALF_POINT
                whole: float = (product + _WHOLE) - _WHOLE
                if -_NEAR_HALF < product - whole < _NEAR_HALF:
                    return whole
            return float(_work(0, int(apart), int(difference), int(base), int(span), k).change)

        return change

    def rate_plain(self, batch: PlainBatch, settings: Settings) -> None:
        """As ``rate``."""
        changes = [None if result is None else self.team_change(result, settings) for result in batch.results]
        ratings = batch.ratings
        for kind, a, c, b, d in zip(batch.kinds, *batch.seats, strict=True):
            change_of = changes[kind]
            if change_of is not None:
                before = (ratings[a], ratings[c], ratings[b], ratings[d])
                change = int(change_of(before[2] + before[3] - before[0] - before[1]))
                for player, by in ((a, change), (c, change), (b, -change), (d, -change)):
                    ratings[player] += by
                batch.history.extend((*before, ratings[a], ratings[c], ratings[b], ratings[d]))

    def close(self, state: PlayerState, closing: int) -> Rating | None:  # noqa: ARG002
        """Nothing: a rating keeps."""
        return None

    def place_key(self, state: PlayerState) -> tuple[int, ...]:
        """Rating descending."""
        return (-state.rating,)

    def order_key(self, state: PlayerState) -> tuple[int, ...]:
        """Rating descending, then more games first."""
        return (-state.rating, -state.games)

    def present(self, rating: int, index: int) -> dict[str, float | int]:  # noqa: ARG002
        """``{"rating": 103.428571}``."""
        return {"rating": rating / MILLION}

    def present_change(self, before: Rating, after: Rating) -> dict[str, float | int]:
        """``{"rating": 3.428571}``."""
        return {"rating": (after[0] - before[0]) / MILLION}

    def hash_token(self, rating: int, index: int) -> str:  # noqa: ARG002
        """``103428571``."""
        return str(rating)

    def figures(self, state: PlayerState, settings: Settings) -> dict[str, Any]:  # noqa: ARG002
        """``{"tier": 11}``, 0 to 21; its name is in the settings, or in ``DEFAULT_TIERS``."""
        return {"tier": tier(state.rating)}

    def bands(self, settings: Settings) -> list[tuple[Mapping[str, str], int | None, int | None, str]]:
        """The tiers, ascending: names per language, bounds in millionths (lower inclusive, None open), symbol."""
        tiers = getattr(settings, "tiers", None) or DEFAULT_TIERS
        bounds = [tier_bounds(number) for number in range(TIERS)]
        return [
            (
                shown.names,
                None if lower is None else lower * MILLION,
                None if upper is None else upper * MILLION,
                shown.symbol,
            )
            for shown, (lower, upper) in zip(tiers, bounds, strict=True)
        ]

    def tally(self, game: Game) -> Mapping[str, Tally]:
        """Striche (in a points pool: points) of his team and of the other, per player, and beside the card points."""
        own, other = _tallies(game.content)
        first, second = game.content["teams"]
        return dict.fromkeys(first, own) | dict.fromkeys(second, other)

    def explain(
        self,
        game: Game,
        moment: Moment,  # noqa: ARG002
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> dict[str, dict[str, Any]]:
        """Per player the numbers of his team's side; ``change`` is his own, exact.

        ``team_change`` is K (S − E) as computed, ``change`` its half in whole millionths. Beside them: ``e``,
        ``expected_difference``, ``actual_difference``, ``deviation``, ``s`` and ``s_before_clamp``, ``clamped`` (it
        bit), ``k``, ``team_rating``, ``opponents_rating``, ``own_rating`` (at the start of the game), ``measure`` with
        ``scored`` and ``conceded``, and ``most_difference`` or ``target_points``; and ``tier_before``, ``tier_after``
        (0 to 21) of the player, which differ where he changed his tier.
        """
        rules = cast("JassSettings", settings)
        content = game.content
        working = _rate(content, start, rules)
        difference = _measured(content, rules)[0]
        scored = content["striche"] if rules.measure == "striche" else content["points"]
        sums = [start[first][0] + start[second][0] for first, second in content["teams"]]
        explained: dict[str, dict[str, Any]] = {}
        for number, sign in enumerate((1, -1)):
            e, s, raw = (
                (working.e, working.s, working.raw) if sign > 0 else (1 - working.e, 1 - working.s, 1 - working.raw)
            )
            side = {
                "measure": rules.measure,
                "scored": scored[number],
                "conceded": scored[1 - number],
                "team_rating": sums[number] / 2 / MILLION,
                "opponents_rating": sums[1 - number] / 2 / MILLION,
                "e": e,
                "expected_difference": sign * working.expected + 0.0,  # of −0.0 this makes 0.0
                "actual_difference": sign * difference,
                "deviation": sign * working.deviation + 0.0,
                "s": s,
                "s_before_clamp": raw,
                "clamped": not 0 <= working.raw <= 1,
                "k": rules.k,
                "team_change": sign * rules.k * (working.s - working.e),
                "change": sign * working.change / MILLION,
            }
            if rules.measure == "striche":
                side["most_difference"] = MOST_DIFFERENCE
            else:
                side["target_points"] = rules.target_points
            for player in content["teams"][number]:
                before = now[player].rating
                explained[player] = {
                    **side,
                    "own_rating": start[player][0] / MILLION,
                    "tier_before": tier(before),
                    "tier_after": tier(before + sign * working.change),
                }
        return explained

    def explain_closing(self, before: Rating, after: Rating, last_result: int, closing: int) -> dict[str, Any]:  # noqa: ARG002
        """Nothing: there are no closings."""
        return {}

    def quote(
        self, content: Content, states: Mapping[str, PlayerState], settings: Settings
    ) -> list[tuple[str, dict[str, Rating]]]:
        """What each result would bring, from the current ratings, best for team 1 first.

        In striche ``7:0`` to ``0:7``: a usual result for each difference, the narrow wins 2:1 and 4:3, and two ties.
        In points the difference, ``+2500`` to ``-2500``: the target, three, two and one quarter and a tenth of it, 0.
        """
        rules = cast("JassSettings", settings)
        teams = content["teams"]
        start = {player: (states[player].rating, 0) for team in teams for player in team}
        outcomes: list[tuple[str, Content]] = []
        if rules.measure == "striche":
            two_ahead = (3, 1) if rules.berg else (2, 0)
            wins = ((7, 0), (6, 0), (5, 0), (4, 0), (3, 0), two_ahead, (2, 1), (4, 3))
            pairs = (*wins, (2, 2), (3, 3), *((b, a) for a, b in reversed(wins)))
            outcomes = [(f"{a}:{b}", {"teams": teams, "striche": (a, b)}) for a, b in pairs]
        else:
            target = rules.target_points or 1
            ahead = sorted({target, target * 3 // 4, target // 2, target // 4, target // 10} - {0}, reverse=True)
            for difference in (*ahead, 0, *(-value for value in reversed(ahead))):
                label = f"{difference:+d}" if difference else "0"
                outcomes.append((label, {"teams": teams, "points": (max(difference, 0), max(-difference, 0))}))
        quoted: list[tuple[str, dict[str, Rating]]] = []
        for label, result in outcomes:
            change = _rate(result, start, rules).change
            (a, c), (b, d) = teams
            signs = {a: change, c: change, b: -change, d: -change}
            quoted.append((label, {player: (start[player][0] + signs[player], 0) for player in start}))
        return quoted

    # -- calibration

    def k_of(self, settings: Settings) -> float:
        """K, in points of a team's change."""
        return cast("JassSettings", settings).k

    def deviation(self, game: Game, start: Mapping[str, Rating], settings: Settings) -> float:
        """S − E of team 1. Raises CannotRate."""
        return deviation(game, start, settings)

    def spread(self, deviations: Iterable[float]) -> Spread:
        """σ of a pool."""
        return spread(deviations)

    def calibrated_k(self, k_reference: float, reference: Spread, rule: Spread) -> float:
        """K_ref · σ_ref / σ_rule. Raises CannotCalibrate."""
        return calibrated_k(k_reference, reference, rule)


SYSTEM: RuleSystem = Jass()
_BULK: BulkSystem = Jass()
_TEAMS: TeamSystem = Jass()
"""Says to the type checker that it is one of these too."""
