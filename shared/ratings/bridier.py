"""Bridier: a rank and an index, both integers, for duels and for games of up to twenty.

Source: "An improved Stellar Crisis ranking system" (agt-the-walker, 2006), adapted from the system that rated French
postal chess. A defeat moves a *stake* that depends on the gap of the ranks; each player's own share of it, the
*adjusted stake*, depends on both indexes. The index says how unsettled a rank is: 500 new, 100 established.

``PlayerState.rating`` is the rank, ``PlayerState.index`` the index. Everything is integer arithmetic.

Canonical content of a result (players sorted by handle at the door; list order is kept ever after)::

    {"players": [a, b], "winner": a}
    {"players": [a, b], "draw": true}
    {"players": [a, b, c], "defeats": [{"winner", "loser", "at"}], "alliances": [[a, c]],
     "ruins": [{"player", "by", "at"}]}

and of a line-up ``{"players": [...]}`` with ``alliances`` when there are any. Either may carry the game's own ``entry``
limits. A ruin with a named cause that fell at the same instant as a defeat also carries ``after``: how many of the
listed defeats count before it. That order comes from the handles, which the ledger does not keep.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from shared.ratings.base import (
    FINISH,
    NO_TALLY,
    BulkSystem,
    CannotRate,
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
)

START_RANK = 500
START_INDEX = 500
RANK_FLOOR = 100
INDEX_FLOOR = 100
"""An index this low means *established*."""
INDEX_CEILING = 500
"""An index this high means *new*."""
MOST_PLAYERS = 20

LARGEST_GAP = 200
"""Above it a win is worth nothing."""
_STEPS = ((0, 10), (10, 9), (20, 8), (30, 7), (40, 6), (60, 5), (80, 4), (100, 3), (140, 2), (LARGEST_GAP, 1))
"""(largest gap, stake)."""
_STAKES = tuple(next(stake for most, stake in _STEPS if gap <= most) for gap in range(LARGEST_GAP + 1))

FACTOR_UNIT = 160_000
"""The factor's denominator: 16, with both indexes in hundredths."""

_INACTIVITY = ((6, 500), (5, 400), (4, 300), (3, 200))
"""(months without a result, what the index becomes at least)."""
_SHORTEST_INACTIVITY = 89
"""Days of the shortest three months, 31 January to 30 April: spares most players of a closing the calendar."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_POINTS = 1_000_000
"""No limit of the rules, only of what is taken in."""


# -- the arithmetic ------------------------------------------------------------------------------------------------


def stake(gap: int) -> int:
    """The stake, 0 to 10, of a defeat with ``gap`` = winner's rank − loser's rank (table of the rules page)."""
    if gap <= 0:
        return 10
    return _STAKES[gap] if gap <= LARGEST_GAP else 0


def factor(own_index: int, opponent_index: int) -> int:
    """The factor of a player's own stake in 160,000ths (0 to 800,000), from two indexes of 100 to 500.

    (1 + 19A − B − 3AB) / 16 with A and B the hundredth parts of the own and the opponent's index.
    """
    return 10_000 + 1_900 * own_index - 100 * opponent_index - 3 * own_index * opponent_index


def adjusted_stake(points: int, own_index: int, opponent_index: int) -> int:
    """What a player himself wins or loses of a stake of ``points``: 0 to 50, rounded down."""
    return points * factor(own_index, opponent_index) // FACTOR_UNIT


def months_between(earlier: int, later: int) -> int:
    """Whole calendar months from one day (ordinal) to another, the day clamped to the month's end; negative never."""
    first, last = date.fromordinal(earlier), date.fromordinal(later)
    months = (last.year - first.year) * 12 + last.month - first.month
    if last.day < min(first.day, monthrange(last.year, last.month)[1]):
        months -= 1
    return max(months, 0)


def index_at_least(months: int) -> int:
    """What ``months`` calendar months without a result raise an index to: 0 (nothing yet), or 200 to 500."""
    return next((floor for least, floor in _INACTIVITY if months >= least), 0)


# -- models at the door ----------------------------------------------------------------------------------------------


def _parse_instant(value: object) -> object:
    if isinstance(value, str):
        if "T" not in value.upper():
            raise ValueError("an instant is written as date, T, time and offset")
        return datetime.fromisoformat(value)
    return value


def _parse_day(value: object) -> object:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            raise ValueError("a day is written as YYYY-MM-DD")
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError("there is no such day in the calendar") from None
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


Instant = Annotated[AwareDatetime, BeforeValidator(_parse_instant)]
Day = Annotated[date, BeforeValidator(_parse_day)]
_Players = Annotated[list[Player], Field(min_length=2, max_length=MOST_PLAYERS)]
_Alliances = Annotated[
    list[Annotated[list[Player], Field(min_length=1, max_length=MOST_PLAYERS)]], Field(max_length=MOST_PLAYERS)
]
_Limit = Annotated[int, Field(ge=0, le=_MOST_POINTS)]


class Entry(_Strict):
    """Who may take part in a game; None sets no limit. Ranks, indexes, and a player's own adjusted stake."""

    minimum_rank: _Limit | None = None
    maximum_rank: _Limit | None = None
    minimum_index: _Limit | None = None
    maximum_index: _Limit | None = None
    minimum_gain: _Limit | None = None
    """Each player's own adjusted stake for a win over any opponent must reach it."""
    maximum_loss: _Limit | None = None
    """Each player's own adjusted stake for a loss to any opponent must not exceed it."""

    @field_validator("maximum_rank", "maximum_index")
    @classmethod
    def _interval(cls, value: int | None, info: ValidationInfo) -> int | None:
        least = f"minimum_{(info.field_name or '').removeprefix('maximum_')}"
        if value is not None and (info.data.get(least) or 0) > value:
            raise ValueError(f"The {least} is above it.")
        return value


class BridierSettings(Settings):
    """Settings of a Bridier pool."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    basis: Literal["start", "hybrid", "end"] = "start"
    """Whose ratings make the stake: both at the start; own at the end and the opponent's at the start; both current."""
    alliance_average: bool = False
    """Take the mean rank of a player's alliance for the gap."""
    fair_alliances: bool = False
    """Refuse alliances of unequal size."""
    ruin_penalty: Annotated[int, Field(ge=0, le=1000)] = 0
    """Rank points per ruin so far, this one included; 0: none."""
    entry: Entry = Entry()
    new_above_index: Annotated[int, Field(ge=INDEX_FLOOR, le=INDEX_CEILING)] = 495
    """Players with an index above it are listed apart as new."""


class Defeat(_Strict):
    """One player beaten by another; without ``at`` it happened at the finish."""

    winner: Player
    loser: Player
    at: Instant | None = None


class Ruin(_Strict):
    """A player fallen into ruin, with or without somebody who caused it; without ``at`` at the finish."""

    player: Player
    by: Player | None = None
    at: Instant | None = None


class BridierResult(_Strict):
    """A duel with its winner or its draw, or a game with its defeats, alliances and ruins."""

    players: _Players
    winner: Player | None = None
    draw: bool = False
    defeats: Annotated[list[Defeat], Field(max_length=MOST_PLAYERS * (MOST_PLAYERS - 1))] | None = None
    alliances: _Alliances | None = None
    ruins: Annotated[list[Ruin], Field(max_length=MOST_PLAYERS * MOST_PLAYERS)] | None = None
    entry: Entry | None = None


class BridierLineUp(_Strict):
    """Who is about to play."""

    players: _Players
    alliances: _Alliances | None = None
    entry: Entry | None = None


class BridierStart(_Strict):
    """What a player carries over from elsewhere."""

    rank: Annotated[int, Field(ge=RANK_FLOOR, le=_MOST_POINTS)] = START_RANK
    index: Annotated[int, Field(ge=INDEX_FLOOR, le=INDEX_CEILING)] = START_INDEX
    last_result_on: Day | None = None
    """Day of the last result, in the pool's time zone; closings count from it. Required with an index below 500."""


# -- who may meet whom -----------------------------------------------------------------------------------------------


def opponents_worth(own: Rating, others: Iterable[tuple[str, Rating]], minimum_gain: int) -> list[tuple[str, int, int]]:
    """Whom a player can meet so that a win is worth at least ``minimum_gain`` rank points to him.

    Returns:
        (player, gain, loss) in the order of ``others``: his own adjusted stake for a win and for a loss (before the
        floor of his rank).
    """
    rank, index = own
    found = []
    for player, (other_rank, other_index) in others:
        gain = adjusted_stake(stake(rank - other_rank), index, other_index)
        if gain >= minimum_gain:
            found.append((player, gain, adjusted_stake(stake(other_rank - rank), index, other_index)))
    return found


def entry_errors(
    ratings: Mapping[str, Rating],
    limits: Entry,
    alliances: Sequence[Sequence[str]] = (),
    *,
    alliance_average: bool = False,
) -> list[FieldError]:
    """Which players of a game break its entry limits, at the start of the game.

    Args:
        ratings: every player's (rank, index), in seat order.
        limits: of the pool or of the one game.
        alliances: declared with the game. Allies are not tested against each other.
        alliance_average: the gap takes an ally's mean rank, as the game would.

    Returns:
        one error per player and broken limit, ``field`` as ``players[2]``, ``code`` as ``minimum-rank``; the message
        names the player, the limit and his number (for gain and loss the worst opponent). Empty: all may play.
    """
    errors: list[FieldError] = []
    team = {player: number for number, members in enumerate(alliances) for player in members}
    mean = _alliance_means(alliances, ratings) if alliance_average else {}
    for seat, (player, (rank, index)) in enumerate(ratings.items()):

        def refuse(code: str, message: str, field: str = f"players[{seat}]") -> None:
            errors.append(FieldError(field, code, message))

        for what, number, least, most in (
            ("rank", rank, limits.minimum_rank, limits.maximum_rank),
            ("index", index, limits.minimum_index, limits.maximum_index),
        ):
            if least is not None and number < least:
                refuse(f"minimum-{what}", f"{player} has {what} {number}; this game asks for at least {least}.")
            if most is not None and number > most:
                refuse(f"maximum-{what}", f"{player} has {what} {number}; this game allows at most {most}.")
        if limits.minimum_gain is None and limits.maximum_loss is None:
            continue
        own = mean.get(player, rank)
        worth = [
            (other, gain, loss)
            for other, (other_rank, other_index) in ratings.items()
            if other != player and (player not in team or team.get(other) != team[player])
            for _, gain, loss in opponents_worth(
                (own, index), [(other, (mean.get(other, other_rank), other_index))], minimum_gain=0
            )
        ]
        if not worth:
            continue
        other, gain, _ = min(worth, key=lambda line: line[1])
        if limits.minimum_gain is not None and gain < limits.minimum_gain:
            refuse(
                "minimum-gain",
                f"{player} would win {gain} against {other}; this game asks for at least {limits.minimum_gain}.",
            )
        other, _, loss = max(worth, key=lambda line: line[2])
        if limits.maximum_loss is not None and loss > limits.maximum_loss:
            refuse(
                "maximum-loss",
                f"{player} would lose {loss} against {other}; this game allows at most {limits.maximum_loss}.",
            )
    return errors


def game_entry_errors(content: Content, ratings: Mapping[str, Rating], settings: BridierSettings) -> list[FieldError]:
    """The entry errors of a line-up or result under the pool's limits and the game's own, each once.

    Args:
        content: normalised.
        ratings: (rank, index) of its players at the start of the game; names as in ``content``.
        settings: in force at the start of the game.
    """
    seated = {player: ratings[player] for player in content["players"]}
    found: dict[FieldError, None] = {}
    for limits in (settings.entry, Entry(**content.get("entry", {}))):
        for error in entry_errors(
            seated, limits, content.get("alliances", ()), alliance_average=settings.alliance_average
        ):
            found[error] = None
    return list(found)


def decay_to_come(state: PlayerState, today: int) -> list[tuple[int, int]]:
    """How the index will rise if the player has no further result.

    Args:
        state: at the latest closing.
        today: day (ordinal) in the pool's zone; a closing on this day has already been.

    Returns:
        (closing day, new index) of each rise, at most four; empty without a result or at 500.
    """
    coming: list[tuple[int, int]] = []
    index, day = state.index, date.fromordinal(today)
    while state.last_result and index < INDEX_CEILING:
        day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        closing = day.toordinal()
        least = index_at_least(months_between(state.last_result, closing))
        if least > index:
            index = least
            coming.append((closing, index))
    return coming


def as_submitted(content: Content) -> Content:
    """A normalised result or line-up as the API writes it: instants in ISO 8601 (UTC), without ``after``."""

    def line(entry: Mapping[str, Any]) -> dict[str, Any]:
        shown = {key: value for key, value in entry.items() if key != "after"}
        shown["at"] = (_EPOCH + shown["at"] * _MICROSECOND).isoformat().replace("+00:00", "Z")
        return shown

    return {
        key: [line(entry) for entry in value] if key in ("defeats", "ruins") else value
        for key, value in content.items()
    }


# -- one game ----------------------------------------------------------------------------------------------------------


class _Event(NamedTuple):
    winner: str | None
    """None: a ruin with nobody named."""
    loser: str
    ruin: bool


def _events(content: Content) -> list[_Event]:
    """Defeats and ruins of a game in the order in which they count."""
    winner = content.get("winner")
    if winner is not None:
        first, second = content["players"]
        return [_Event(winner, second if winner == first else first, False)]
    defeats = content.get("defeats", ())
    ordered: list[_Event] = []
    taken = 0
    for ruin in content.get("ruins", ()):
        before = ruin.get("after", -1)
        while taken < len(defeats) and (taken < before or defeats[taken]["at"] < ruin["at"]):
            ordered.append(_Event(defeats[taken]["winner"], defeats[taken]["loser"], False))
            taken += 1
        ordered.append(_Event(ruin["by"], ruin["player"], True))
    ordered.extend(_Event(defeat["winner"], defeat["loser"], False) for defeat in defeats[taken:])
    return ordered


def _alliance_means(alliances: Sequence[Sequence[str]], start: Mapping[str, Rating]) -> dict[str, int]:
    """Each ally's mean rank of his alliance at the start of the game, rounded down."""
    return {
        player: mean
        for members in alliances
        for mean in (sum(start[member][0] for member in members) // len(members),)
        for player in members
    }


_Lines = dict[str, list[dict[str, Any]]]


def _half(
    lines: list[dict[str, Any]] | None,
    opponent: str,
    *,
    won: bool,
    own: tuple[int, int],
    other: tuple[int, int],
    mean: tuple[int | None, int | None],
    current: list[int],
) -> None:
    """Apply one player's half of a defeat to his ``current`` [rank, index], and write its line when one is asked for.

    Args:
        lines: where the line goes.
        opponent: who stood against him.
        won: he was the winner.
        own: (rank, index) that make his stake.
        other: the opponent's.
        mean: mean ranks of his and of the opponent's alliance, for the gap.
        current: his rating now; changed in place.
    """
    own_rank = own[0] if mean[0] is None else mean[0]
    other_rank = other[0] if mean[1] is None else mean[1]
    gap = own_rank - other_rank if won else other_rank - own_rank
    points = stake(gap)
    adjusted = adjusted_stake(points, own[1], other[1])
    rank, index = current
    current[0] = rank + adjusted if won else max(rank - adjusted, RANK_FLOOR)
    current[1] = max(index - adjusted, INDEX_FLOOR)
    if lines is not None:
        lines.append(
            {
                "opponent": opponent,
                "result": "win" if won else "loss",
                "own_rank": own[0],
                "own_index": own[1],
                "opponent_rank": other[0],
                "opponent_index": other[1],
                "own_alliance_rank": mean[0],
                "opponent_alliance_rank": mean[1],
                "gap": gap,
                "stake": points,
                "factor": factor(own[1], other[1]) / FACTOR_UNIT,
                "adjusted": adjusted,
                "applied_rank": current[0] - rank,
                "applied_index": current[1] - index,
                "floor": not won and rank - adjusted < RANK_FLOOR,
                "index_floor": index - adjusted < INDEX_FLOOR,
            }
        )


def _play(
    content: Content,
    start: Mapping[str, Rating],
    now: Mapping[str, PlayerState],
    settings: BridierSettings,
    lines: _Lines | None = None,
) -> list[Outcome]:
    """Count a finished game; fills ``lines`` for an explanation. Raises CannotRate."""
    players = content["players"]
    if len(set(players)) < len(players):
        raise CannotRate("A player would meet himself: two players of this game have been merged.")
    events = _events(content)
    if not events:
        if "draw" not in content:
            return []
        for player in players if lines is not None else ():
            opponent = players[1] if player == players[0] else players[0]
            line = {"opponent": opponent, "result": "draw", "applied_rank": 0, "applied_index": 0, "floor": False}
            cast("_Lines", lines)[player].append(line)
        return [Outcome(player, now[player].rating, now[player].index, 0, is_result=False) for player in players]

    basis = settings.basis
    means = _alliance_means(content.get("alliances", ()), start) if settings.alliance_average else {}
    current = {player: [now[player].rating, now[player].index] for player in players}
    balance = dict.fromkeys(players, 0)
    results: set[str] = set()
    ruins: dict[str, int] = {}
    for winner, loser, ruin in events:
        results.add(loser)
        balance[loser] -= 1
        if winner is not None:
            results.add(winner)
            balance[winner] += 1
            winner_start, loser_start = start[winner], start[loser]
            if basis == "start":
                winner_own, loser_own = winner_start, loser_start
            else:
                winner_own = (current[winner][0], current[winner][1])
                loser_own = (current[loser][0], current[loser][1])
            at_start = basis != "end"
            winner_seen = winner_start if at_start else winner_own
            loser_seen = loser_start if at_start else loser_own
            winner_mean, loser_mean = means.get(winner), means.get(loser)
            _half(
                None if lines is None else lines[winner],
                loser,
                won=True,
                own=winner_own,
                other=loser_seen,
                mean=(winner_mean, loser_mean),
                current=current[winner],
            )
            _half(
                None if lines is None else lines[loser],
                winner,
                won=False,
                own=loser_own,
                other=winner_seen,
                mean=(loser_mean, winner_mean),
                current=current[loser],
            )
        if ruin:
            earlier = now[loser].counters.get("ruins", 0) + ruins.get(loser, 0)
            ruins[loser] = ruins.get(loser, 0) + 1
            penalty = settings.ruin_penalty * (earlier + 1)
            rank = current[loser][0]
            current[loser][0] = max(rank - penalty, RANK_FLOOR)
            if lines is not None:
                lines[loser].append(
                    {
                        "opponent": winner,
                        "result": "ruin",
                        "previous_ruins": earlier,
                        "penalty": penalty,
                        "applied_rank": current[loser][0] - rank,
                        "applied_index": 0,
                        "floor": rank - penalty < RANK_FLOOR,
                    }
                )
    return [
        Outcome(
            player,
            current[player][0],
            current[player][1],
            (balance[player] > 0) - (balance[player] < 0),
            player in results,
            {"ruins": ruins[player]} if player in ruins else None,
        )
        for player in players
    ]


# -- checking a submission -------------------------------------------------------------------------------------------


class _Door:
    """Collects every wrong field of one submission."""

    def __init__(self, players: Sequence[str]) -> None:
        self.errors: list[FieldError] = []
        self.players = set(players)
        seen: set[str] = set()
        for seat, player in enumerate(players):
            if player in seen:
                self.refuse(f"players[{seat}]", "player-twice", f"{player} is named twice.")
            seen.add(player)

    def refuse(self, field: str, code: str, message: str) -> None:
        self.errors.append(FieldError(field, code, message))

    def plays(self, field: str, player: str) -> None:
        if player not in self.players:
            self.refuse(field, "not-in-the-game", f"{player} is not a player of this game.")

    def alliances(self, alliances: Sequence[Sequence[str]], *, fair: bool) -> list[list[str]]:
        seen: set[str] = set()
        for number, members in enumerate(alliances):
            if len(members) < 2:
                self.refuse(f"alliances[{number}]", "alliance-too-small", "An alliance has at least two members.")
            for place, player in enumerate(members):
                field = f"alliances[{number}][{place}]"
                self.plays(field, player)
                if player in seen:
                    self.refuse(field, "allied-twice", f"{player} is named in the alliances twice.")
                seen.add(player)
        if fair and len({len(members) for members in alliances}) > 1:
            self.refuse("alliances", "unequal-alliances", "This pool asks for alliances of the same size.")
        return sorted(sorted(members) for members in alliances)

    def pair(self, fields: tuple[str, str], winner: str, loser: str, beaten: set[tuple[str, str]]) -> None:
        self.plays(fields[0], winner)
        self.plays(fields[1], loser)
        if winner == loser:
            self.refuse(fields[1], "own-opponent", f"{loser} cannot be beaten by himself.")
        elif (winner, loser) in beaten:
            self.refuse(fields[1], "beaten-twice", f"{loser} is already beaten by {winner} in this game.")
        beaten.add((winner, loser))

    def instant(self, field: str, at: datetime | None, started_at: int, finished_at: int) -> int:
        if at is None:
            return finished_at
        instant = (at - _EPOCH) // _MICROSECOND
        if not started_at <= instant <= finished_at:
            self.refuse(field, "outside-the-game", "This lies before the start or after the finish of the game.")
        return instant


def _entry(entry: Entry | None) -> dict[str, Any]:
    given = entry.model_dump(exclude_none=True) if entry is not None else {}
    return {"entry": given} if given else {}


class Bridier:
    """The rule system ``bridier``."""

    name: ClassVar[str] = "bridier"
    settings_model: ClassVar[type[Settings]] = BridierSettings
    result_model: ClassVar[Any] = BridierResult
    line_up_model: ClassVar[Any] = BridierLineUp
    start_model: ClassVar[type[BaseModel]] = BridierStart
    has_closings: ClassVar[bool] = True
    plain_indexes: ClassVar[bool] = True
    shown_decimals: ClassVar[int] = 0

    def normalise(self, result: BaseModel, settings: Settings, started_at: int, finished_at: int) -> Normalised:
        """Check a result and bring it into the canonical form of this module.

        Args:
            result: a ``BridierResult``.
            settings: ``fair_alliances`` is looked at.
            started_at: microseconds; every ``at`` lies from here to ``finished_at``, both included.
            finished_at: where a defeat or ruin without ``at`` happened.

        Raises:
            RuleError: every wrong field.
        """
        given = cast("BridierResult", result)
        rules = cast("BridierSettings", settings)
        door = _Door(given.players)
        several = given.defeats is not None or given.alliances is not None or given.ruins is not None
        content: Content = {"players": sorted(given.players)}
        if given.winner is not None or given.draw:
            duel = "winner" if given.winner is not None else "draw"
            if len(given.players) != 2:
                door.refuse(duel, "not-a-duel", "Only a game of two has a winner or a draw; list the defeats.")
            if given.defeats or given.ruins:
                door.refuse(duel, "two-results", "Give a winner, a draw, or the defeats: only one of them.")
            if given.alliances:
                if len(given.players) == 2:
                    door.refuse("alliances", "alliances-in-a-duel", "A game of two has no alliances; leave them out.")
                door.alliances(given.alliances, fair=rules.fair_alliances)
            if given.winner is not None and given.draw:
                door.refuse("draw", "two-results", "A game with a winner is no draw.")
            if given.winner is not None:
                door.plays("winner", given.winner)
            content[duel] = given.winner if given.winner is not None else True
        elif len(given.players) == 2 and not several:
            door.refuse("", "no-result", "Name the winner, or say that it was a draw.")
        else:
            content |= self._several(given, rules, door, started_at, finished_at)
        if door.errors:
            raise RuleError(door.errors)
        return Normalised(content | _entry(given.entry))

    @staticmethod
    def _several(
        given: BridierResult, rules: BridierSettings, door: _Door, started_at: int, finished_at: int
    ) -> Content:
        beaten: set[tuple[str, str]] = set()
        lost: set[str] = set()
        defeats: list[tuple[int, str, str]] = []
        ruins: list[tuple[int, str, str]] = []
        for number, defeat in enumerate(given.defeats or ()):
            field = f"defeats[{number}]"
            door.pair((f"{field}.winner", f"{field}.loser"), defeat.winner, defeat.loser, beaten)
            at = door.instant(f"{field}.at", defeat.at, started_at, finished_at)
            defeats.append((at, defeat.winner, defeat.loser))
        for number, ruin in enumerate(given.ruins or ()):
            field = f"ruins[{number}]"
            if ruin.by is not None:
                door.pair((f"{field}.by", f"{field}.player"), ruin.by, ruin.player, beaten)
            else:
                door.plays(f"{field}.player", ruin.player)
                if ruin.player in lost:
                    door.refuse(f"{field}.player", "ruined-twice", f"{ruin.player} is already ruined in this game.")
                lost.add(ruin.player)
            at = door.instant(f"{field}.at", ruin.at, started_at, finished_at)
            ruins.append((at, ruin.by or "", ruin.player))
        alliances = door.alliances(given.alliances or (), fair=rules.fair_alliances)
        defeats.sort()
        ruins.sort()
        lines: list[dict[str, Any]] = []
        for at, by, player in ruins:
            line: dict[str, Any] = {"player": player, "by": by or None, "at": at}
            if by and any(instant == at for instant, _, _ in defeats):
                line["after"] = sum(other < (at, by, player) for other in defeats)
            lines.append(line)
        return {
            "defeats": [{"winner": winner, "loser": loser, "at": at} for at, winner, loser in defeats],
            "alliances": alliances,
            "ruins": lines,
        }

    def normalise_line_up(self, line_up: BaseModel, settings: Settings) -> Normalised:
        """Check a ``BridierLineUp``; raises RuleError. Players sorted, ``alliances`` only when there are any."""
        given = cast("BridierLineUp", line_up)
        door = _Door(given.players)
        alliances = door.alliances(given.alliances or (), fair=cast("BridierSettings", settings).fair_alliances)
        if door.errors:
            raise RuleError(door.errors)
        content: Content = {"players": sorted(given.players)}
        if alliances:
            content["alliances"] = alliances
        return Normalised(content | _entry(given.entry), seats=tuple(given.players))

    def players(self, content: Content) -> tuple[str, ...]:
        """The players in canonical order."""
        return tuple(content["players"])

    def mentioned(self, content: Content) -> tuple[str, ...]:
        """The same: nobody else is named in a Bridier game."""
        return tuple(content["players"])

    def translate(self, content: Content, name: Callable[[str], str]) -> Content:
        """The content with every player replaced by ``name(player)``; lists keep their order."""
        new: Content = dict(content)
        new["players"] = [name(player) for player in content["players"]]
        if "winner" in content:
            new["winner"] = name(content["winner"])
        if "alliances" in content:
            new["alliances"] = [[name(player) for player in members] for members in content["alliances"]]
        if "defeats" in content:
            new["defeats"] = [
                {**line, "winner": name(line["winner"]), "loser": name(line["loser"])} for line in content["defeats"]
            ]
            new["ruins"] = [
                {**line, "player": name(line["player"]), "by": None if line["by"] is None else name(line["by"])}
                for line in content["ruins"]
            ]
        return new

    def as_submitted(self, content: Content) -> Content:
        """The content as the API writes and takes it; it normalises to the same again."""
        return as_submitted(content)

    def start(self, start: BaseModel | None, settings: Settings) -> PlayerState:  # noqa: ARG002
        """500/500, or the ``BridierStart`` carried over.

        Raises:
            RuleError: ``last_result_on`` missing with an index below 500.
        """
        given = BridierStart() if start is None else cast("BridierStart", start)
        if given.last_result_on is None and given.index < INDEX_CEILING:
            message = "An index below 500 needs the day of the last result."
            raise RuleError([FieldError("last_result_on", "missing", message)])
        last_result = given.last_result_on.toordinal() if given.last_result_on is not None else 0
        return PlayerState(rating=given.rank, index=given.index, last_result=last_result)

    def moments(self, game: Game, settings: Settings) -> Sequence[Moment]:  # noqa: ARG002
        """The finish: defeats and ruins count there, whenever they happened."""
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
        """What a finished game makes of its players.

        A player's game is won with more wins than losses in it, lost with fewer, else drawn (a ruin with nobody named
        is a loss). Who neither won nor lost in a game that others decided has drawn, without a result. A game with no
        defeat and no ruin gives no outcome at all. A draw of two is a game, not a result.

        Raises:
            CannotRate: two players of the game are one by now.
        """
        return _play(game.content, start, now, cast("BridierSettings", settings))

    def plain(self, content: Content, settings: Settings) -> PlainResult | None:  # noqa: ARG002
        """A game of two that one of them won. ``data``: the winner's seat, 0 or 1.

        Without a duration, what counts at its end is what counted at its start, so the basis makes no difference.
        """
        winner, players = content.get("winner"), content["players"]
        if winner is None or len(players) != 2 or "alliances" in content:
            return None
        return PlainResult((players.index(winner),), 1 if winner == players[0] else -1)

    def rate_plain(self, batch: PlainBatch, settings: Settings) -> None:  # noqa: ARG002
        """As ``rate``."""
        ratings, indexes, extend = batch.ratings, batch.indexes, batch.history.extend
        winners = [0 if result is None else result.data[0] for result in batch.results]
        for second_won, first, second in zip(map(winners.__getitem__, batch.kinds), *batch.seats, strict=True):
            winner, loser = (second, first) if second_won else (first, second)
            won_rank, lost_rank = ratings[winner], ratings[loser]
            won_index, lost_index = indexes[winner], indexes[loser]
            gap = won_rank - lost_rank
            points = 10 if gap <= 0 else _STAKES[gap] if gap <= LARGEST_GAP else 0
            product = 3 * won_index * lost_index
            up = points * (10_000 + 1_900 * won_index - 100 * lost_index - product) // FACTOR_UNIT
            down = points * (10_000 + 1_900 * lost_index - 100 * won_index - product) // FACTOR_UNIT
            ratings[winner] = up_rank = won_rank + up
            ratings[loser] = down_rank = lost_rank - down if lost_rank - down > RANK_FLOOR else RANK_FLOOR
            indexes[winner] = up_index = won_index - up if won_index - up > INDEX_FLOOR else INDEX_FLOOR
            indexes[loser] = down_index = lost_index - down if lost_index - down > INDEX_FLOOR else INDEX_FLOOR
            if second_won:
                extend((lost_rank, lost_index, won_rank, won_index, down_rank, down_index, up_rank, up_index))
            else:
                extend((won_rank, won_index, lost_rank, lost_index, up_rank, up_index, down_rank, down_index))

    def close(self, state: PlayerState, closing: int) -> Rating | None:
        """The rating after a closing: the index at least 200 / 300 / 400 / 500 after 3 / 4 / 5 / 6 months."""
        if not state.last_result or state.index >= INDEX_CEILING or closing - state.last_result < _SHORTEST_INACTIVITY:
            return None
        least = index_at_least(months_between(state.last_result, closing))
        return (state.rating, least) if least > state.index else None

    def place_key(self, state: PlayerState) -> tuple[int, ...]:
        """Rank descending, then index ascending."""
        return (-state.rating, state.index)

    def order_key(self, state: PlayerState) -> tuple[int, ...]:
        """As ``place_key``."""
        return (-state.rating, state.index)

    def present(self, rating: int, index: int) -> dict[str, float | int]:
        """``{"rank": 562, "index": 411}``."""
        return {"rank": rating, "index": index}

    def present_change(self, before: Rating, after: Rating) -> dict[str, float | int]:
        """``{"rank": 42, "index": -42}``."""
        return {"rank": after[0] - before[0], "index": after[1] - before[1]}

    def hash_token(self, rating: int, index: int) -> str:
        """``562,411``."""
        return f"{rating},{index}"

    def figures(self, state: PlayerState, settings: Settings) -> dict[str, Any]:
        """``{"class": ...}``: ``new`` (index above the pool's limit), ``established`` (100), else ``settling``."""
        if state.index > cast("BridierSettings", settings).new_above_index:
            return {"class": "new"}
        return {"class": "established" if state.index == INDEX_FLOOR else "settling"}

    def tally(self, game: Game) -> Mapping[str, Tally]:
        """Nothing is counted for and against in a Bridier game."""
        return dict.fromkeys(game.content["players"], NO_TALLY)

    def explain(
        self,
        game: Game,
        moment: Moment,  # noqa: ARG002
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: Settings,
    ) -> dict[str, dict[str, Any]]:
        """Per player ``{"basis", "lines", "rank_change", "index_change"}``; the lines' ``applied_*`` add up to these.

        A line's ``result`` is ``win``, ``loss``, ``draw`` or ``ruin`` (the penalty, after its loss); ``opponent`` is a
        player, or null for a ruin with nobody named. ``own_*`` and ``opponent_*`` are the ratings the stake was made
        from, ``*_alliance_rank`` the means that replace the ranks in the gap. ``floor``: the rank floor cut the loss.
        """
        rules = cast("BridierSettings", settings)
        lines: _Lines = {player: [] for player in game.content["players"]}
        _play(game.content, start, now, rules, lines)
        return {
            player: {
                "basis": rules.basis,
                "lines": own,
                "rank_change": sum(line["applied_rank"] for line in own),
                "index_change": sum(line["applied_index"] for line in own),
            }
            for player, own in lines.items()
        }

    def explain_closing(self, before: Rating, after: Rating, last_result: int, closing: int) -> dict[str, Any]:
        """``{"last_result_on", "closing", "months", "index_floor", "index_change"}``; months are whole ones."""
        months = months_between(last_result, closing) if last_result else 0
        return {
            "last_result_on": date.fromordinal(last_result).isoformat() if last_result else None,
            "closing": date.fromordinal(closing).isoformat(),
            "months": months,
            "index_floor": index_at_least(months),
            "index_change": after[1] - before[1],
        }

    def quote(
        self, content: Content, states: Mapping[str, PlayerState], settings: Settings
    ) -> list[tuple[str, dict[str, Rating]]]:
        """What each outcome would bring, from the current ratings; every player's new rating in seat order.

        Two players: ``player1`` (the first of ``states`` wins), ``draw``, ``player2``. More: each single defeat, as
        ``player1>player2``.
        """
        rules = cast("BridierSettings", settings)
        players = [player for player in states if player in content["players"]]
        start = {player: (states[player].rating, states[player].index) for player in players}
        finish = {"players": players, "alliances": content.get("alliances", ()), "ruins": ()}

        def after(winner: str, loser: str) -> dict[str, Rating]:
            defeat = {**finish, "defeats": [{"winner": winner, "loser": loser, "at": 0}]}
            return {line.player: (line.rating, line.index) for line in _play(defeat, start, states, rules)}

        if len(players) == 2:
            first, second = players
            return [("player1", after(first, second)), ("draw", start), ("player2", after(second, first))]
        return [
            (f"player{one}>player{two}", after(winner, loser))
            for one, winner in enumerate(players, 1)
            for two, loser in enumerate(players, 1)
            if one != two
        ]

    # -- stakes and inactivity

    def opponents_worth(
        self, own: Rating, others: Iterable[tuple[str, Rating]], minimum_gain: int
    ) -> list[tuple[str, int, int]]:
        """Whom a player can meet so that a win is worth at least ``minimum_gain``."""
        return opponents_worth(own, others, minimum_gain)

    def has_entry_limits(self, content: Content, settings: Settings) -> bool:
        """Whether the pool or this game sets limits."""
        return bool(content.get("entry")) or cast("BridierSettings", settings).entry != Entry()

    def entry_errors(self, content: Content, ratings: Mapping[str, Rating], settings: Settings) -> list[FieldError]:
        """The errors of ``game_entry_errors``."""
        return game_entry_errors(content, ratings, cast("BridierSettings", settings))

    def decay_to_come(self, state: PlayerState, today: int) -> list[tuple[int, Rating]]:
        """The closings that will raise the index; the rank stays."""
        return [(day, (state.rating, index)) for day, index in decay_to_come(state, today)]


SYSTEM: RuleSystem = Bridier()
_BULK: BulkSystem = Bridier()
"""Says to the type checker that it is one of these too."""
