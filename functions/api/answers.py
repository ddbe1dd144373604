"""The answers' models. They describe what the use cases answer and are the OpenAPI document's schemas."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Models, of answers and of bodies, are built when they are first used (``defer_build``): a request uses one or two of
# them, and building all took a seventh of the API's cold start.


class Reply(BaseModel):
    """An answer. Answers may grow fields; clients ignore those they do not know."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)


class WrongField(BaseModel):
    """One wrong field of a request."""

    model_config = ConfigDict(defer_build=True)

    field: str = Field(description="Path in the body, e.g. `result.teams[0][1]`, or a parameter's name.")
    code: str
    message: str


class ProblemDocument(Reply):
    """A refusal (RFC 9457). Nothing was stored."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable and machine-readable.")
    errors: list[WrongField] = Field(description="Every wrong field.")


class Health(Reply):
    """The service answers."""

    status: Literal["ok"]


class Club(Reply):
    """A club."""

    club: str
    name: str


class NewKey(Reply):
    """A new key, shown only here."""

    key_id: str
    key: str
    scopes: list[str]


class KeyLine(Reply):
    """A key without its secret."""

    key_id: str
    scopes: list[str]
    label: str
    created_at: str
    last_used_on: str | None = Field(description="UTC day.")


class Keys(Reply):
    """A club's keys."""

    keys: list[KeyLine]


class GamesOfMonth(Reply):
    """A club's rated games of a month."""

    pool: str
    club: str
    month: str
    games: int = Field(description="In this file.")
    shortened: int = Field(description="Of these, told without their quits, nils, substitutes or categories.")
    left_out: int = Field(description="Games that the columns cannot say, as more than two players in Bridier.")
    csv: str = Field(description="With headings, in played order.")
    next: str | None = Field(description="Cursor of the next page; null: this was the last.")


class Attention(Reply):
    """What a club should look at, at most 200 of each."""

    club: str
    held: list[dict[str, Any]] = Field(description="Games that cannot be rated, with the reason.")
    open: list[dict[str, Any]] = Field(description="Games open for more than a day.")
    warnings: list[dict[str, Any]] = Field(description="Games with the warnings of their present revision.")
    rows: list[dict[str, Any]] = Field(description="Files of the last 30 days with rows that were not taken.")
    questions: list[dict[str, Any]] = Field(description="Players of one name.")
    more: dict[str, int] = Field(description="How many of each are left off.")


class Pool(Reply):
    """A pool as it was defined."""

    pool: str
    name: str
    system: str
    time_zone: str
    languages: list[str]
    clubs: list[str] | None = Field(description="Which clubs may submit; null: every one.")
    rules: list[dict[str, Any]] = Field(description="Settings and the day `from` which they hold, ascending.")


class PoolNow(Pool):
    """A pool and how far it is rated."""

    players: int
    games: int
    position: int
    state_hash: str = Field(pattern="^[0-9a-f]{64}$")
    pending: int = Field(description="Events that are stored and not yet rated.")
    held: int = Field(description="Events that cannot be rated.")


class Calibration(Reply):
    """How far the results of a pool stray from expectation."""

    pool: str
    games: int
    sigma: float = Field(description="Root mean square of S − E.")
    k: float = Field(description="In force; with a reference: the K that makes games of both weigh alike.")
    k_now: float | None = Field(None, description="In force; with a reference.")
    reference: dict[str, Any] | None = Field(None, description="The reference's pool, games, sigma and k.")


class Player(Reply):
    """A player."""

    player: str
    name: str
    clubs: list[str]
    managed_by: str
    registered_on: str | None


class PlayerNow(Player):
    """A player and the pools he is in."""

    pools: list[str]
    merged: list[str] = Field([], description="Other handles of the same person, where records were merged.")


class Merge(Reply):
    """A merge, or its undoing, was accepted; ratings follow."""

    player: str
    into: str
    pools: list[str] = Field(description="Pools one of the two is in.")


class Erasure(Reply):
    """An erasure was accepted: records are empty, notes and pages follow."""

    player: str = Field(description="The pseudonym.")


class PlayerSetting(Reply):
    """What a player is in a pool."""

    pool: str
    player: str


class Game(Reply):
    """A game."""

    club: str
    game_id: str
    revision: int
    status: str


class Preview(Reply):
    """What would happen."""

    effects: dict[str, Any]
    preview_token: str


class Job(Reply):
    """Accepted; it is done in a while."""


class Quote(Reply):
    """What each outcome would bring each player."""

    outcomes: list[dict[str, Any]]


class PlayerInPool(Reply):
    """A player in a pool, with a page of his history."""

    player: str
    name: str
    rating: dict[str, Any]
    place: int | None
    record: dict[str, Any]
    history: list[dict[str, Any]]
    next: str | None


class Opponents(Reply):
    """Opponents worth a game."""

    opponents: list[dict[str, Any]]
    next: str | None


class Standings(Reply):
    """A page of the last published list."""

    publication: Any
    standings: list[dict[str, Any]] = Field(
        description="Each with the further figures of its rule system: in Jass `tier`, from 0 (below 50) to 21 (150 "
        "and more), whose name and symbol are the pool's; in Spades `skill`; in Bridier `class`."
    )
    next: str | None
