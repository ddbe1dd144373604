"""What comes in and what goes out, as pydantic models: the door's own, apart from what the inside works with."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, LiteralString
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from shared.characters import (
    NAME_LENGTH,
    NOTE_LENGTH,
    is_blank,
    is_printable,
    is_printable_text,
    tidy_note,
)
from shared.ids import ID_FORM, ID_PATTERN, fold_id
from shared.ledger.calendar import zone
from shared.ledger.order import to_instant
from shared.problems import BadField
from shared.ratings import system_names
from shared.usecases.drafts import GameDraft
from shared.usecases.people import parse_start
from shared.usecases.pools import check_rules

REASON_LENGTH = 500
LABEL_LENGTH = 80
MOST_CLUBS = 20
"""Clubs a player plays for at once; each is a line in a roster, written in one transaction."""
MOST_POOL_CLUBS = 1000
MOST_RULES = 200
MOST_REGISTRATIONS = 20
DAY_FORM: LiteralString = "A day is wanted, as 2026-11-03."
FIRST_YEAR, LAST_YEAR = 1000, 9998
"""Days and instants outside lose themselves in conversions between time zones."""

_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)?",
    re.ASCII,
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


# -- ids and texts -------------------------------------------------------------------------------------------------
def _id(value: Any) -> str:
    folded = fold_id(value) if isinstance(value, str) else None
    if folded is None:
        raise PydanticCustomError("id", ID_FORM)
    return folded


def _printable(value: str) -> str:
    if not is_printable(value):
        raise PydanticCustomError("not-printable", "Control and invisible characters are not allowed.")
    return value


def _not_blank(value: str) -> str:
    if is_blank(value):
        raise PydanticCustomError("blank", "There must be something to read.")
    return value


def _text(value: str) -> str:
    """Text of several lines: line ends and tabs are fine."""
    return value if is_printable_text(value) else _printable(value)


Id = Annotated[
    str,
    BeforeValidator(_id),
    WithJsonSchema({"type": "string", "pattern": f"^{ID_PATTERN}$", "description": "Case is folded."}),
]
Name = Annotated[
    str, Field(min_length=1, max_length=NAME_LENGTH), AfterValidator(_printable), AfterValidator(_not_blank)
]
Label = Annotated[str, Field(max_length=LABEL_LENGTH), AfterValidator(_printable)]
Note = Annotated[str, Field(max_length=NOTE_LENGTH), AfterValidator(_text), AfterValidator(tidy_note)]
Reason = Annotated[
    str, Field(min_length=1, max_length=REASON_LENGTH), AfterValidator(_text), AfterValidator(_not_blank)
]


# -- times ---------------------------------------------------------------------------------------------------------
def is_day(value: str) -> bool:
    """Whether this is a day of the calendar, within the years we know."""
    try:
        return bool(_DAY.fullmatch(value)) and FIRST_YEAR <= dt.date.fromisoformat(value).year <= LAST_YEAR
    except ValueError:
        return False


def _day(value: Any) -> str:
    if not isinstance(value, str) or not is_day(value):
        raise PydanticCustomError("day", DAY_FORM)
    return value


def parse_time(value: Any) -> int:
    """An ISO 8601 time with an offset, as an instant. Raises PydanticCustomError."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise PydanticCustomError("time", "A time is wanted, as 2026-11-03T19:00:00+01:00.")
    if found[4] is None:
        raise PydanticCustomError("no-offset", "A time needs its offset, as in 2026-11-03T19:00:00+01:00.")
    try:
        moment = dt.datetime.fromisoformat(value.upper().replace(",", "."))
    except ValueError:
        raise PydanticCustomError("time", "There is no such time.") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise PydanticCustomError("time", "There is no such time.")
    return to_instant(moment)


def _time_of_game(value: Any, info: ValidationInfo) -> int | None:
    """A time, or a day that means its noon in the pool's zone."""
    if value is None:
        return None
    if isinstance(value, str) and is_day(value):
        time_zone = (info.context or {}).get("time_zone", "UTC")
        return to_instant(dt.datetime.combine(dt.date.fromisoformat(value), dt.time(12), zone(time_zone)))
    return parse_time(value)


Day = Annotated[str, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
Instant = Annotated[int, BeforeValidator(parse_time), WithJsonSchema({"type": "string", "format": "date-time"})]
GameTime = Annotated[
    int | None,
    BeforeValidator(_time_of_game),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
                {"type": "null"},
            ],
            "description": "A time with an offset; a day alone means 12:00 in the pool's time zone.",
        }
    ),
]


class Body(BaseModel):
    """A body: strict types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True)


def _known_club(value: str, info: ValidationInfo) -> str:
    known = (info.context or {}).get("clubs")
    if known is not None and value not in known:
        raise PydanticCustomError("unknown-club", "There is no such club.")
    return value


KnownClub = Annotated[Id, AfterValidator(_known_club)]


def _all_different(values: list[Any]) -> list[Any]:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ValidationError.from_exception_data(
                "list",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("twice", "This is in the list twice."), loc=(number,), input=None
                    )
                ],
            )
    return values


# -- clubs ---------------------------------------------------------------------------------------------------------
class EmptyBody(Body):
    """Nothing is asked for."""


class ClubBody(Body):
    """A club."""

    name: Name


class KeyBody(Body):
    """A key to be made."""

    scopes: Annotated[
        list[Literal["submit", "manage", "admin"]], Field(min_length=1, max_length=3), AfterValidator(_all_different)
    ] = Field(description="`admin` only for the club `admin`.")
    label: Label = ""

    @field_validator("scopes")
    @classmethod
    def _admin_only_for_admin(cls, value: list[str], info: ValidationInfo) -> list[str]:
        club = (info.context or {}).get("club")
        if "admin" in value and club is not None and club != "admin":
            raise PydanticCustomError("admin-scope", "Only keys of the club `admin` may have this scope.")
        return value


# -- pools ---------------------------------------------------------------------------------------------------------
def _system(value: str) -> str:
    if value not in system_names():
        names = ", ".join(system_names())
        raise PydanticCustomError("unknown-system", "One of these is wanted: {names}.", {"names": names})
    return value


def _time_zone(value: str) -> str:
    if value not in available_timezones() or value in ("localtime", "Factory"):
        raise PydanticCustomError("unknown-time-zone", "A time zone is wanted, as Europe/Zurich.")
    return value


RULES_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_RULES,
    "items": {
        "type": "object",
        "properties": {"from": {"type": "string", "format": "date"}},
        "required": ["from"],
        "description": "Settings of the pool's rule system and the day `from` which they hold.",
    },
}


class PoolBody(Body):
    """A pool."""

    name: Name
    system: Annotated[str, AfterValidator(_system)]
    time_zone: Annotated[str, AfterValidator(_time_zone)]
    languages: Annotated[
        list[Literal["en", "de", "fr", "it"]], Field(min_length=1, max_length=4), AfterValidator(_all_different)
    ]
    clubs: Annotated[list[KnownClub], Field(max_length=MOST_POOL_CLUBS), AfterValidator(_all_different)] | None = None
    rules: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_RULES), WithJsonSchema(RULES_SCHEMA)]

    @field_validator("rules")
    @classmethod
    def _rules(cls, value: list[dict[str, Any]], info: ValidationInfo) -> list[dict[str, Any]]:
        wrong = [BadField(f"rules[{n}].from", *_why_no_day(e)) for n, e in enumerate(value) if _why_no_day(e)]
        if "system" in info.data:  # else nobody knows what the settings should be
            wrong += check_rules(info.data["system"], value)
        _raise_all(wrong, "rules")
        return value


def _why_no_day(entry: dict[str, Any]) -> tuple[str, str] | tuple[()]:
    """Code and message of what is wrong with the day of an entry, or nothing."""
    if "from" not in entry:
        return "missing", "This field is required."
    day = entry["from"]
    return () if isinstance(day, str) and is_day(day) else ("day", DAY_FORM)


def _raise_all(wrong: list[BadField], below: str) -> None:
    """Hand problems that the inside found on as pydantic errors of one field, paths kept."""
    if wrong:
        raise ValidationError.from_exception_data(
            below,
            [
                InitErrorDetails(
                    type=PydanticCustomError(error.code, "{text}", {"text": error.message}),
                    loc=_steps(error.field.removeprefix(below)),
                    input=None,
                )
                for error in wrong
            ],
        )


def _steps(path: str) -> tuple[str | int, ...]:
    """``[0].k.first`` as steps."""
    return tuple(int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path))


# -- players -------------------------------------------------------------------------------------------------------
class PlayerBody(Body):
    """A player."""

    name: Name
    clubs: Annotated[list[KnownClub], Field(max_length=MOST_CLUBS), AfterValidator(_all_different)] | None = None
    registered_on: Day | None = None


class PlayerInPoolBody(Body):
    """What a player is in a pool: either a start carried over, or whether he takes part in the ranking."""

    start: dict[str, Any] | None = Field(default=None, description="As the pool's rule system has it.")
    rank_me: bool | None = None
    at: Instant | None = None

    @field_validator("start")
    @classmethod
    def _start(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        pool = (info.context or {}).get("pool")
        if value is None or pool is None:
            return value
        parsed, wrong = parse_start(pool, value)
        _raise_all(wrong, "start")
        return parsed

    @model_validator(mode="after")
    def _one_of_two(self) -> PlayerInPoolBody:
        if (self.start is None) == (self.rank_me is None):
            raise PydanticCustomError("start-or-rank-me", "Either `start` or `rank_me` is wanted.")
        if self.at is not None and self.rank_me is None:
            raise PydanticCustomError("start-has-no-time", "`at` goes with `rank_me` only.")
        return self


class MergeBody(Body):
    """Whom a player is the same person as."""

    into: Id


class UnmergeBody(Body):
    """Nothing, or whom the sender believes the player to be merged into."""

    into: Id | None = None


# -- games ---------------------------------------------------------------------------------------------------------
class Registration(Body):
    """A player whom a submission registers."""

    id: Id
    name: Name


class GameBody(Body):
    """A game. `result` and `line_up` are looked at by the pool's rule system."""

    game_id: Id | None = None
    started_at: GameTime = None
    finished_at: GameTime = None
    rated: bool = True
    group: Id | None = None
    tournament: Id | None = None
    round: Annotated[int, Field(ge=0, le=999_999)] | None = None
    sequence: Annotated[int, Field(ge=0, le=999_999_999)] = 0
    note: Note = ""
    result: Any = None
    line_up: Any = None
    distinct: bool = False
    register_: Annotated[list[Registration], Field(max_length=MOST_REGISTRATIONS)] = Field(default=[], alias="register")

    @field_validator("register_")
    @classmethod
    def _different_ids(cls, value: list[Registration]) -> list[Registration]:
        _all_different([r.id for r in value])
        return value

    def draft(self, wrong: Sequence[BadField] = ()) -> GameDraft:
        """What the use cases work with. ``wrong``: fields that were taken out of the body before."""
        given = {"register" if name == "register_" else name for name in self.model_fields_set} - {"reason"}
        return GameDraft(
            game_id=self.game_id,
            started_at=self.started_at,
            finished_at=self.finished_at,
            rated=self.rated,
            group=self.group,
            tournament=self.tournament,
            round=self.round,
            sequence=self.sequence,
            note=self.note,
            result=self.result,
            line_up=self.line_up,
            distinct=self.distinct,
            register=tuple((r.id, r.name) for r in self.register_),
            given=frozenset(given),
            wrong=tuple(wrong),
        )


class CorrectionBody(GameBody):
    """A game corrected: what is left out keeps its value; `result` is replaced whole."""

    reason: Reason


class VoidBody(Body):
    """A game taken back."""

    reason: Reason


class QuitBody(Body):
    """A player left the table."""

    player: Id
    at: Instant


class ReturnBody(Body):
    """A player came back to the table."""

    at: Instant


class LineUpBody(BaseModel):
    """Who would play; the pool's rule system says what is in it."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True)
