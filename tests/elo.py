"""A fourth rule system, for the tests only: Elo for two players, all there is to write for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from shared.ratings.base import (
    FINISH,
    MILLION,
    NO_TALLY,
    CannotRate,
    Content,
    FieldError,
    Game,
    Moment,
    Normalised,
    Outcome,
    Player,
    PlayerState,
    Rating,
    RuleError,
    RuleSystem,
    Tally,
)
from shared.ratings.base import Settings as BaseSettings


class EloSettings(BaseSettings):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    k: int = Field(default=20, ge=1, le=100)


class EloLineUp(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    white: Player
    black: Player


class EloResult(EloLineUp):
    score: float = Field(ge=0, le=1, multiple_of=0.5)


class EloStart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rating: int = 1000


def expected(own: int, other: int) -> float:
    return float(1 / (1 + 10 ** ((other - own) / (400 * MILLION))))


class Elo:
    name: ClassVar[str] = "elo"
    settings_model: ClassVar[type[BaseSettings]] = EloSettings
    result_model: ClassVar[Any] = EloResult
    line_up_model: ClassVar[Any] = EloLineUp
    start_model: ClassVar[type[BaseModel]] = EloStart
    has_closings: ClassVar[bool] = False
    shown_decimals: ClassVar[int] = 0

    def normalise(self, result: BaseModel, settings: BaseSettings, started_at: int, finished_at: int) -> Normalised:
        assert isinstance(result, EloResult)
        return Normalised({**self.normalise_line_up(result, settings).content, "halves": int(result.score * 2)})

    def normalise_line_up(self, line_up: BaseModel, settings: BaseSettings) -> Normalised:
        assert isinstance(line_up, EloLineUp)
        if line_up.white == line_up.black:
            raise RuleError([FieldError("black", "player-twice", f"{line_up.black} cannot play himself.")])
        return Normalised({"white": line_up.white, "black": line_up.black})

    def players(self, content: Content) -> tuple[str, ...]:
        return content["white"], content["black"]

    def mentioned(self, content: Content) -> tuple[str, ...]:
        return self.players(content)

    def translate(self, content: Content, name: Callable[[str], str]) -> Content:
        return {**content, "white": name(content["white"]), "black": name(content["black"])}

    def as_submitted(self, content: Content) -> Content:
        shown = {k: v for k, v in content.items() if k != "halves"}
        return {**shown, "score": content["halves"] / 2} if "halves" in content else shown

    def start(self, start: BaseModel | None, settings: BaseSettings) -> PlayerState:
        return PlayerState((start.rating if isinstance(start, EloStart) else 1000) * MILLION)

    def moments(self, game: Game, settings: BaseSettings) -> Sequence[Moment]:
        return [Moment(game.finished_at, FINISH, 0)] if game.finished_at is not None else []

    def rate(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: BaseSettings,
    ) -> Sequence[Outcome]:
        assert isinstance(settings, EloSettings)
        white, black = self.players(game.content)
        if white == black:
            raise CannotRate("one person on both sides")
        halves = game.content["halves"]
        change = round(settings.k * MILLION * (halves / 2 - expected(start[white][0], start[black][0])))
        return [
            Outcome(white, now[white].rating + change, 0, halves - 1),
            Outcome(black, now[black].rating - change, 0, 1 - halves),
        ]

    def close(self, state: PlayerState, closing: int) -> Rating | None:
        return None

    def place_key(self, state: PlayerState) -> tuple[int, ...]:
        return (-state.rating,)

    def order_key(self, state: PlayerState) -> tuple[int, ...]:
        return (-state.rating, -state.games)

    def present(self, rating: int, index: int) -> dict[str, float | int]:
        return {"rating": rating / MILLION}

    def present_change(self, before: Rating, after: Rating) -> dict[str, float | int]:
        return {"rating": (after[0] - before[0]) / MILLION}

    def hash_token(self, rating: int, index: int) -> str:
        return str(rating)

    def figures(self, state: PlayerState, settings: BaseSettings) -> dict[str, Any]:
        return {}

    def tally(self, game: Game) -> Mapping[str, Tally]:
        return dict.fromkeys(self.players(game.content), NO_TALLY)

    def explain(
        self,
        game: Game,
        moment: Moment,
        start: Mapping[str, Rating],
        now: Mapping[str, PlayerState],
        settings: BaseSettings,
    ) -> dict[str, dict[str, Any]]:
        white, black = self.players(game.content)
        e = expected(start[white][0], start[black][0])
        return {white: {"expected": e}, black: {"expected": 1 - e}}

    def explain_closing(self, before: Rating, after: Rating, last_result: int, closing: int) -> dict[str, Any]:
        return {}

    def quote(
        self, content: Content, states: Mapping[str, PlayerState], settings: BaseSettings
    ) -> list[tuple[str, dict[str, Rating]]]:
        start = {p: (states[p].rating, 0) for p in self.players(content)}
        quoted = []
        for label, halves in (("white", 2), ("draw", 1), ("black", 0)):
            game = Game("", "", 1, 0, 0, content={**content, "halves": halves})
            rated = self.rate(game, Moment(0, FINISH, 0), start, states, settings)
            quoted.append((label, {o.player: (o.rating, 0) for o in rated}))
        return quoted


SYSTEM: RuleSystem = Elo()
