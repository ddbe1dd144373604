"""Why a rating changed: every number that went in, worked out again from the stored row by the rule system itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shared.ledger.fold import Rated, settings_since
from shared.ledger.order import CLOSING, KINDS, RESET, START, iso
from shared.ledger.rules import DatedRules
from shared.ratings.base import FINISH, QUIT, Game, LiveSystem, Moment, PlayerState, RuleSystem

Change = dict[str, Any]
"""``{"player", "at", "kind", "before", "after", "change", "explanation"}``, players as server-made ids."""


def rated_game(system: RuleSystem, row: Rated) -> Game | None:
    """The game of a row as it was rated: with merged players replaced."""
    if row.game is None or not row.alias:
        return row.game
    content = system.translate(row.game.content, lambda p: row.alias.get(p, p))
    return msgspec.structs.replace(row.game, content=content)


def changes_of(system: RuleSystem, rules: Sequence[DatedRules], row: Rated) -> list[Change]:
    """What a row changed, player by player, with explanations."""
    settings = settings_since(rules, row.rules)
    game = rated_game(system, row)
    before: dict[str, tuple[int, int]] = {}
    explained: Mapping[str, dict[str, Any]] = {}
    kinds: Mapping[str, str] = {}
    if game is not None:
        players = system.players(game.content)
        start = {p: (r[0], r[1]) for p, r in zip(players, row.start, strict=True)}
        now = {p: PlayerState(b[0], b[1], games=b[2], counters=b[3]) for p, b in zip(players, row.before, strict=True)}
        before = {p: (s.rating, s.index) for p, s in now.items()}
        moment = Moment(row.at, QUIT if row.kind == QUIT else FINISH, row.number)
        explained = system.explain(game, moment, start, now, settings)
        rules_note = {"rules_from": iso(row.rules)}
        if row.kind == QUIT and isinstance(system, LiveSystem):
            # A quit can settle a game, and then the others' game is rated at that moment too.
            quitter = system.quits(game, settings)[row.number].player
            kinds = {player: KINDS[QUIT if player == quitter else FINISH] for player in players}
    else:
        for (player, *_), b in zip(row.after, row.before, strict=False):
            before[player] = (b[0], b[1])
        rules_note = {}
    found: list[Change] = []
    for player, rating, index, score, _ in row.after:
        after = (rating, index)
        explanation: dict[str, Any] = dict(explained.get(player, {}))
        if row.kind == CLOSING:
            explanation = system.explain_closing(before[player], after, row.last_result, row.closing)
        elif row.kind == START:
            explanation = {"carried_over": True}
        elif row.kind == RESET:
            explanation = {"rank_me": False}
        found.append(
            {
                "player": player,
                "at": iso(row.at),
                "kind": kinds.get(player, KINDS[row.kind]),
                "score": score,
                "before": system.present(*before[player]),
                "after": system.present(*after),
                "change": system.present_change(before[player], after),
                "explanation": {**explanation, **rules_note},
            }
        )
    return found


def translate_players(value: Any, name: Callable[[str], str]) -> Any:
    """A JSON value with every text (and key) that is a server-made id replaced."""
    if isinstance(value, str):
        return name(value)
    if isinstance(value, list | tuple):
        return [translate_players(v, name) for v in value]
    if isinstance(value, dict):
        return {name(k): translate_players(v, name) for k, v in value.items()}
    return value
