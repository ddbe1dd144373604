"""Played order: the one order in which everything that happened is told (idea 3 of the design)."""

from __future__ import annotations

import datetime as dt

from shared.ratings.base import FINISH, MICROSECONDS, QUIT

START, CLOSING, RULES, RESET = 0, 1, 2, 4
"""Kinds at one instant come in this order: start ratings, closing, rule change, quit (3), reset, finish (5)."""
KINDS = {START: "start", CLOSING: "closing", RULES: "rules", QUIT: "quit", RESET: "reset", FINISH: "game"}

BEGINNING = -(2**56)
"""Before everything (314 BC, before the first year that a date can have): where a carried-over start rating stands."""
END = 2**55

_OFFSET = 2**56
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)

Order = str
"""A sort key: comparing two orders as text compares (when, kind, round, sequence, club, game id, number)."""


def order(
    at: int, kind: int, round_: int | None = None, sequence: int = 0, club: str = "", game_id: str = "", number: int = 0
) -> Order:
    """The sort key of one moment.

    Args:
        at: instant, microseconds since 1970.
        kind: one of START, CLOSING, RULES, QUIT, RESET, FINISH.
        round_: 0 to 999,999; None sorts as 0.
        sequence: 0 to 999,999,999.
        number: several quits of one game at one instant, 0 to 99.

    ``!`` sorts before every character of an id, so that a club sorts before its longer namesakes.
    """
    return f"{at + _OFFSET:016x}{kind}{round_ or 0:06d}{sequence:09d}{club}!{game_id}!{number:02d}"


SNAPSHOT = 9
"""Behind every kind: the ratings at the start of a game are those after all events of its ``started_at``."""
_LAST = 10**12


def after_closing(at: int) -> Order:
    """Sorts behind all rows of the closing of that instant and before everything else at it."""
    return f"{at + _OFFSET:016x}{CLOSING}~"


def tick_of(key: Order) -> tuple[int | str, ...]:
    """An order as the tuple that the fold compares: (when, kind, round, sequence, club, game id, number)."""
    at, kind, rest = instant_of(key), int(key[16]), key[17:]
    if rest == "~":
        return (at, kind, _LAST)
    club, game_id, number = rest[15:].split("!")
    return (at, kind, int(rest[:6]), int(rest[6:15]), club, game_id, int(number))


def subject_of(key: Order) -> str:
    """The game id of an order, or the player of a start, closing or reset."""
    return key[32:].split("!")[1]


def instant_of(key: Order) -> int:
    """The instant of an order."""
    return int(key[:16], 16) - _OFFSET


def kind_of(key: Order) -> int:
    """The kind of an order."""
    return int(key[16])


def just_after(at: int) -> Order:
    """Sorts behind every order of that instant."""
    return f"{at + _OFFSET:016x}~"


def just_before(at: int) -> Order:
    """Sorts before every order of that instant."""
    return f"{at + _OFFSET:016x}"


def to_instant(moment: dt.datetime) -> int:
    """Microseconds since 1970 of an aware datetime, exactly."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * MICROSECONDS + delta.microseconds


def to_datetime(at: int) -> dt.datetime:
    """The UTC datetime of an instant."""
    return _EPOCH + dt.timedelta(microseconds=at)


def iso(at: int) -> str:
    """An instant as the API answers it: ``2026-11-03T18:40:00Z``, with microseconds only when there are any."""
    return (_NAIVE_EPOCH + dt.timedelta(microseconds=at)).isoformat() + "Z"  # without a zone: in half the time


def utc_month(at: int) -> str:
    """The UTC month of an instant, ``2026-11``: which partition a moment is stored in; ``0000-00`` at the beginning."""
    if at <= BEGINNING:
        return "0000-00"
    moment = to_datetime(at)
    return f"{moment.year:04d}-{moment.month:02d}"
