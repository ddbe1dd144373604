"""Of events that were applied together: which of them can have moved whom. For the journal; no rating rests on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shared.ledger.events import Event
from shared.ledger.explain import rated_game
from shared.ledger.fold import After, Rated
from shared.ledger.order import RESET, subject_of
from shared.ratings.base import Game, RuleSystem

MOST = 5
"""So many causes are kept of one player."""

Cause = tuple[str, str, str]
"""(what, club, game id)"""
_Ref = tuple[str, str]


class Causes:
    """Told the rows that a replay changes, in played order, it knows which events each player's change can come from.

    An event is a cause in the rows that it is about: those of its game, before or after its correction, the reset of
    its player, all that a merged player played. Whoever comes out of such a row otherwise than before was moved by it
    directly. From there it spreads through the rows that changed: whoever comes out otherwise of a game with somebody
    whom a cause has reached may have been moved by that cause. A row that stayed the same spreads nothing.

    The work is a look at the players of each changed row. Kept are at most ``MOST`` numbers of events for each player
    who changed, in a tuple that the players of one game share: of thousands of events that reach a player the earliest
    are remembered. Of a single event there is nothing to find out, and nothing is kept.
    """

    def __init__(self, system: RuleSystem, events: Iterable[Event], aliases: Mapping[str, str], head: str) -> None:
        """
        Args:
            events: in the order in which they were accepted.
            aliases: merged players, followed through to the survivor, as they are now.
            head: how far the pool was rated. What lies behind it came in time and is no cause for anything.
        """
        self._system = system
        self._head = head
        self._told: list[Cause] = []
        self._games: dict[_Ref, int] = {}
        self._resets: dict[tuple[str, int], int] = {}
        self._merges: dict[str, int] = {}
        self._rules: list[tuple[int, int]] = []
        """(first instant, number)"""
        self._direct: dict[str, tuple[int, ...]] = {}
        self._reached: dict[str, tuple[int, ...]] = {}
        new: set[_Ref] = set()
        for event in events:
            self._event(event, aliases, new)

    def _event(self, event: Event, aliases: Mapping[str, str], new: set[_Ref]) -> None:
        number = len(self._told)
        if event.game is not None:
            ref = (event.game.club, event.game.game_id)
            known = self._games.setdefault(ref, number)
            told = (event.what, *ref)
            if known < number:  # a revision more; a game that nobody saw rated before came in late, however often sent
                if ref not in new:
                    self._told[known] = told
                return
            if event.game.revision == 1:
                new.add(ref)
            self._told.append(told)
            return
        if (event.kind == "rules" and event.touches is None) or (event.kind == "rank-me" and event.value["on"]):
            return  # a pool was opened, somebody takes part again: nothing that is rated changes
        self._told.append((event.kind, "", ""))
        match event.kind:
            case "start":
                self._seed(aliases.get(event.player, event.player), number)
            case "rank-me":
                self._resets[event.player, int(event.value["at"])] = number
            case "merge" | "unmerge":
                self._merges[event.player] = number
                for sid in (event.player, event.value.get("into"), aliases.get(event.player)):
                    if sid is not None:
                        self._seed(sid, number)
            case "rules" if event.touches is not None:
                self._rules.append((event.touches, number))

    def _seed(self, sid: str, number: int) -> None:
        self._direct[sid] = _joined(self._direct.get(sid, ()), (number,))
        self._reached[sid] = _joined((number,), self._reached.get(sid, ()))

    def row(self, was: Rated | None, now: Rated | None) -> None:
        """The next row that differs: what stood there, and what stands there now."""
        if len(self._told) < 2:
            return
        one, two = _outcomes(was), _outcomes(now)
        moved = {entry[0] for entry in one ^ two}
        if not moved:
            return
        rows = [row for row in (was, now) if row is not None]
        for away, into in (pair for row in rows for pair in row.alias.items() if self._merges):
            if away in self._merges:
                self._seed(away, self._merges[away])
                self._seed(into, self._merges[away])
        own = self._own(was, now)
        found = self._reaching({entry[0] for entry in one | two})
        if not own and not found:
            # Somebody may count in a game without being changed by it: who has quit, for whom another sits in.
            found = self._reaching({sid for row in rows for sid in self._seated(row)})
        found |= {number for since, number in self._rules if rows[0].at >= since}
        causes = _joined(own, sorted(found))
        if not causes:
            return
        for sid in moved:
            known = self._reached.get(sid)
            if known is None:
                self._reached[sid] = causes
            elif known != causes:
                self._reached[sid] = _joined(own, sorted({*known, *causes}))
            if own:
                self._direct[sid] = _joined(self._direct.get(sid, ()), own)

    def _own(self, was: Rated | None, now: Rated | None) -> tuple[int, ...]:
        """The event that this row is about."""
        row = now if now is not None else was
        if row is None or (was is None and row.order > self._head):
            return ()
        if row.game is not None:
            number = self._games.get((row.game.club, row.game.game_id))
            if was is not None and now is not None and _rated_alike(was.game, now.game):
                return ()  # another note, or another list to stand in
        elif row.kind == RESET and (was is None or now is None):
            number = self._resets.get((subject_of(row.order), row.at))
        else:
            number = None
        return () if number is None else (number,)

    def _reaching(self, people: Iterable[str]) -> set[int]:
        return {number for sid in people for number in self._reached.get(sid, ())}

    def _seated(self, row: Rated) -> Sequence[str]:
        game = rated_game(self._system, row)
        return self._system.mentioned(game.content) if game is not None else ()

    def of(self, sid: str) -> list[Cause]:
        """What can have moved a player: what he was in himself; else what reached him through games; else the first."""
        numbers = self._direct.get(sid) or self._reached.get(sid) or range(min(MOST, len(self._told)))
        return [self._told[number] for number in numbers]


def _outcomes(row: Rated | None) -> set[After]:
    return set(row.after) if row is not None else set()


def _joined(first: Sequence[int], then: Iterable[int]) -> tuple[int, ...]:
    return (*first, *(number for number in then if number not in first))[:MOST]


def _rated_alike(one: Game | None, two: Game | None) -> bool:
    """Whether two revisions differ in nothing that ratings come from."""
    if one is None or two is None:
        return False
    return msgspec.structs.replace(one, revision=two.revision, group=two.group, tournament=two.tournament) == two
