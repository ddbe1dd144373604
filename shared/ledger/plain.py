"""Plain games, column by column: what a replay of a million games can be fed with at the speed of reading it.

A game that was over in an instant (start = finish), was told once and has only its players and a result that recurs
is not kept as an object but as a few numbers: who sat there, which of the few *kinds* of result it was, when, and
where. ``game(i)`` makes the object again, equal to the bit. What does not fit stays an ordinary event.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import lt
from typing import Any

import msgspec

from shared.ratings.base import FINISH, Content, Game, RuleSystem

GameRef = tuple[str, str]
Label = tuple[str, str | None, str | None]
"""Club, group, tournament."""
ROUNDS = 1_000_000
"""Above every number of a round."""


def rate_of(system: RuleSystem, content: Content) -> tuple[tuple[str, ...], Content] | None:
    """The players of a content and its kind: the content with each player replaced by his seat's number.

    None where somebody sits twice, or somebody is named who is not rated.
    """
    players = system.players(content)
    if len(set(players)) != len(players) or system.mentioned(content) != players:
        return None
    seats = {player: str(seat) for seat, player in enumerate(players)}
    return players, system.translate(content, seats.__getitem__)


class Details:
    """What a fold hardly ever needs of plain games, column by column."""

    __slots__ = ("accepted", "game_ids", "rounds", "sequences", "tokens")

    def __init__(self) -> None:
        self.rounds = array("I")
        """0: none; else the round plus 1."""
        self.sequences = array("I")
        self.accepted = array("q")
        """Instants."""
        self.game_ids: list[str] = []
        """The clubs' ids of the games."""
        self.tokens: list[str] = []
        """The random ends of the events' ids."""

    def columns(self) -> list[Any]:
        """All of them."""
        return [self.rounds, self.sequences, self.accepted, self.game_ids, self.tokens]


class Plain:
    """Plain games of one pool, all with equally many seats, in played order.

    Lists of what recurs (``ids``, ``kinds``, ``labels``), and columns with one number per game that point into them.
    """

    __slots__ = ("_details", "at", "ids", "kind", "kinds", "label", "labels", "seats", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.ids: list[str] = []
        """Players."""
        self.kinds: list[Content] = []
        self.labels: list[Label] = []
        self.at = array("q")
        """Start and finish, microseconds."""
        self.kind = array("I")
        self.label = array("I")
        self.seats: list[array[int]] = [array("I") for _ in range(width)]
        self._details: Details | Callable[[], Details] = Details()

    @property
    def details(self) -> Details:
        """What a fold hardly ever needs: unpacked where somebody asks."""
        if not isinstance(self._details, Details):
            self._details = self._details()
        return self._details

    def detail(self, details: Details | Callable[[], Details]) -> None:
        """Set the details, or where to get them from."""
        self._details = details

    def __len__(self) -> int:
        return len(self.at)

    def players(self, number: int) -> tuple[str, ...]:
        """Who sat in a game, in seat order."""
        return tuple(self.ids[column[number]] for column in self.seats)

    def game(self, system: RuleSystem, number: int) -> Game:
        """A game as it was told."""
        players = self.players(number)
        content = system.translate(self.kinds[self.kind[number]], lambda seat: players[int(seat)])
        club, group, tournament = self.labels[self.label[number]]
        details = self.details
        at, round_ = self.at[number], details.rounds[number]
        return Game(
            club,
            details.game_ids[number],
            1,
            at,
            at,
            group=group,
            tournament=tournament,
            round=round_ - 1 if round_ else None,
            sequence=details.sequences[number],
            content=content,
        )

    def tick(self, number: int) -> tuple[Any, ...]:
        """Where a game stands in played order, as ``fold.Tick`` begins."""
        club, details = self.labels[self.label[number]][0], self.details
        round_ = max(details.rounds[number] - 1, 0)
        return (self.at[number], FINISH, round_, details.sequences[number], club, details.game_ids[number], 0)

    def before(self, tick: Sequence[Any], first: int) -> int:
        """The number of the first game, from ``first`` on, that does not stand before a tick."""
        number = bisect_left(self.at, tick[0], first)
        while number < len(self.at) and self.at[number] == tick[0] and self.tick(number) < tuple(tick[:7]):
            number += 1
        return number

    def _told(self) -> list[Any]:
        return [self.at, self.kind, self.label, *self.seats]

    def _columns(self) -> list[Any]:
        return [*self._told(), *self.details.columns()]

    def kept(self, mask: Sequence[bool]) -> Plain:
        """Only the games where the mask says so."""
        found = Plain(self.width)
        found.ids, found.kinds, found.labels = self.ids, self.kinds, self.labels
        for new, old in zip(found._columns(), self._columns(), strict=True):
            new.extend(compress(old, mask))
        return found

    def cut(self, first: int, last: int) -> Plain:
        """The games from number ``first`` up to, not including, ``last``; itself where these are all."""
        if first <= 0 and last >= len(self):
            return self
        found = Plain(self.width)
        found.ids, found.kinds, found.labels = self.ids, self.kinds, self.labels
        for new, old in zip(found._told(), self._told(), strict=True):
            new.extend(old[first:last])

        def details() -> Details:
            cut = Details()
            for new, old in zip(cut.columns(), self.details.columns(), strict=True):
                new.extend(old[first:last])
            return cut

        found.detail(details)
        return found

    def seated(self) -> Plain:
        """The same with only those as players who sit in one of the games, by id."""
        found = Plain(self.width)
        found.at, found.kind, found.label = self.at, self.kind, self.label
        found.kinds, found.labels, found._details = self.kinds, self.labels, self._details
        used = sorted(set().union(*self.seats), key=self.ids.__getitem__)
        found.ids = [self.ids[number] for number in used]
        numbers = {number: new for new, number in enumerate(used)}
        found.seats = [array("I", map(numbers.__getitem__, column)) for column in self.seats]
        return found

    def _sort(self, first: int = 0) -> None:
        """Bring the games from number ``first`` on into played order; those before it are, and stand before them."""
        at = self.at
        tail = at[first:]
        if all(map(lt, tail, tail[1:])):
            return
        order = sorted(range(first, len(at)), key=at.__getitem__)
        if any(at[one] == at[two] for one, two in pairwise(order)):
            order.sort(key=self.tick)
        if order == list(range(first, len(at))):
            return
        _arrange(self._told(), order)
        packed = self._details
        if isinstance(packed, Details):
            _arrange(packed.columns(), order)
            return

        def details() -> Details:
            found = packed()
            _arrange(found.columns(), order)
            return found

        self._details = details


def _arrange(columns: Iterable[Any], order: Sequence[int]) -> None:
    """Put the last numbers of each column in another order."""
    for column in columns:
        there = list(map(column.__getitem__, order))
        del column[len(column) - len(order) :]
        column.extend(there)


@dataclass(frozen=True)
class Part:
    """Some of a story's plain games, made ready when the fold reaches them. No game of another part stands between."""

    begins: int
    """An instant not later than its first game, and later than every game of the parts before it."""
    load: Callable[[], Plain]


def one_part(plain: Plain | None) -> list[Part]:
    """Plain games as one part; none where there is nothing."""
    return [Part(plain.at[0], lambda: plain)] if plain is not None and len(plain) else []


class PlainBuilder:
    """Makes ``Plain`` game by game."""

    def __init__(self, system: RuleSystem, width: int) -> None:
        self.system = system
        self.plain = Plain(width)
        self._ids: dict[str, int] = {}
        self._kinds: dict[bytes, int] = {}
        self._labels: dict[Label, int] = {}

    def add(self, game: Game, accepted_at: int = 0, token: str = "") -> bool:
        """Take a game in; False (and nothing happens) when it is not plain in shape."""
        if game.revision != 1 or game.finished_at != game.started_at or not game.rated or game.void:
            return False
        if (game.round or 0) >= ROUNDS or not 0 <= game.sequence < 2**32:
            return False
        found = rate_of(self.system, game.content)
        if found is None or len(found[0]) != self.plain.width:
            return False
        plain, (players, kind) = self.plain, found
        plain.at.append(game.started_at)
        plain.kind.append(_number(self._kinds, plain.kinds, msgspec.json.encode(kind), kind))
        label = (game.club, game.group, game.tournament)
        plain.label.append(_number(self._labels, plain.labels, label, label))
        for column, player in zip(plain.seats, players, strict=True):
            column.append(_number(self._ids, plain.ids, player, player))
        row = (0 if game.round is None else game.round + 1, game.sequence, accepted_at, game.game_id, token)
        for column, value in zip(plain.details.columns(), row, strict=True):
            column.append(value)
        return True

    def done(self) -> Plain:
        """All games taken in, in played order; the players in order of their ids, so that those of most months are
        the same ones in the same order."""
        self.plain._sort()
        return self.plain.seated()


def _number(known: dict[Any, int], values: list[Any], key: Any, value: Any) -> int:
    number = known.get(key)
    if number is None:
        number = known[key] = len(values)
        values.append(value)
    return number


def from_games(system: RuleSystem, games: Iterable[Game], width: int) -> tuple[Plain, list[Game]]:
    """The games that are plain in shape, and the others."""
    builder = PlainBuilder(system, width)
    others = [game for game in games if not builder.add(game)]
    return builder.done(), others


def merged(parts: Sequence[Plain]) -> Plain:
    """Several, each in played order, as one."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    whole = Plain(parts[0].width)
    ids: dict[str, int] = {}
    kinds: dict[bytes, int] = {}
    labels: dict[Label, int] = {}
    for part in filled:
        if part.width != whole.width:
            raise ValueError("games of different width")
        new = [sid for sid in part.ids if sid not in ids]
        ids.update(zip(new, range(len(ids), len(ids) + len(new)), strict=True))
        whole.at.extend(part.at)
        here = [_number(kinds, whole.kinds, msgspec.json.encode(kind), kind) for kind in part.kinds]
        whole.kind.extend(_renumbered(part.kind, here))
        here = [_number(labels, whole.labels, label, label) for label in part.labels]
        whole.label.extend(_renumbered(part.label, here))
        here = list(map(ids.__getitem__, part.ids))
        for column, seats in zip(whole.seats, part.seats, strict=True):
            column.extend(_renumbered(seats, here))
    whole.ids = list(ids)
    whole.detail(lambda: _details_of(filled))
    # Before the first game of any later part, the first part's games stand where they belong.
    whole._sort(bisect_left(filled[0].at, min(part.at[0] for part in filled[1:])) if filled else 0)
    return whole


def _renumbered(column: array[int], numbers: list[int]) -> Iterable[int]:
    """A column with other numbers; itself where they are the same."""
    return column if numbers == list(range(len(numbers))) else map(numbers.__getitem__, column)


def _details_of(parts: Sequence[Plain]) -> Details:
    whole = Details()
    for part in parts:
        for column, more in zip(whole.columns(), part.details.columns(), strict=True):
            column.extend(more)
    return whole


def apart(
    plain: Plain,
    system: RuleSystem,
    is_rated: Callable[[Content], bool],
    merged_players: Container[str] = (),
    since: int | None = None,
) -> tuple[Plain, list[Game]]:
    """The games that can be rated in bulk, and those that the fold must look at one by one.

    Args:
        is_rated: whether a kind of result can be rated in bulk.
        merged_players: games of these are looked at.
        since: so are games before this instant.
    """
    good = [is_rated(kind) for kind in plain.kinds]
    merged = bytearray(sid in merged_players for sid in plain.ids)
    early = 0 if since is None else bisect_left(plain.at, since)
    if all(good) and not any(merged) and not early:
        return plain, []
    mask = [good[kind] for kind in plain.kind]
    mask[:early] = [False] * early
    if any(merged):
        for column in plain.seats:
            mask = [one and not merged[player] for one, player in zip(mask, column, strict=True)]
    others = [plain.game(system, number) for number, one in enumerate(mask) if not one]
    return plain.kept(mask), others


def without(plain: Plain, told_again: AbstractSet[GameRef]) -> Plain:
    """Only the games that were not told again elsewhere."""
    again = {game_id for _, game_id in told_again}
    if not again or again.isdisjoint(plain.details.game_ids):
        return plain
    clubs = [label[0] for label in plain.labels]
    mask = [
        game_id not in again or (clubs[label], game_id) not in told_again
        for game_id, label in zip(plain.details.game_ids, plain.label, strict=True)
    ]
    return plain.kept(mask)
