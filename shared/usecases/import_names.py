"""Whom the names of a file mean: found in the sending club's roster, asked for, or registered; never a silent guess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.ids import fold_id, id_from
from shared.imports import Match, Roster, match_key, search_key
from shared.ledger.order import iso
from shared.problems import BadField, invalid
from shared.store import clubs, keys, people
from shared.store import rated as rated_store
from shared.store.people import Person
from shared.store.pools import Pool
from shared.store.table import Item, Key, Operation
from shared.usecases.context import Context

PLAYER = "player:"
"""Answers ``player:<name>`` say whom a name means in the whole file, ``player:<name>#<row>`` in one row."""
EVERY_PLAYER = "player"
"""The answer ``register`` under this key registers every name that nobody bears, under the id we suggest."""
REGISTER = "register"
NEW = "+"
"""An answer ``+alex-2`` registers a new player under that id, named as the file has it."""
SUFFIXES = 9
"""``anna``, ``anna-2`` ... ``anna-9`` are tried for a new player's id; then a part of a hash."""
SID_LENGTH = 12
CANDIDATES = 20
"""Players of one name that a question lists."""


@dataclass
class Asked:
    """A name that needs an answer."""

    text: str
    """As first typed."""
    matches: tuple[str, ...]
    """Handles of the roster's players of that name."""
    rows: list[int] = field(default_factory=list)
    column: str | None = None


@dataclass(frozen=True)
class Mention:
    """A name in a row."""

    row: int
    column: str
    text: str
    known: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Id or name (as compared) → (handle, server-made id) of the players of this game as it is stored: sent again, a
    name means who it meant before."""


@dataclass
class Names:
    """The names of one file, resolved."""

    sids: dict[str, str] = field(default_factory=dict)
    """handle → server-made id of everybody who is linked."""
    registrations: dict[str, str] = field(default_factory=dict)
    """handle → name of players to register."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """By question key."""
    suggestions: dict[str, str] = field(default_factory=dict)
    """question key → the id we would give a new player."""
    _linked: dict[tuple[int, str], str] = field(default_factory=dict)

    def handle(self, row: int, text: str) -> str | None:
        """Whom a text means in a row; None: a question waits (``key_of``)."""
        return self._linked.get((row, match_key(text)))

    def operations(self, club: str) -> Iterator[list[Operation]]:
        """The writes that register the new players, one list for each; their ids are made by ``resolve``."""
        for handle, name in self.registrations.items():
            yield people.registration(handle, name, club, self.sids[handle])


class _Roster(Roster):
    """A roster in which a name that is also somebody's id is asked about, when others bear it as their name."""

    def __init__(self, players: Sequence[tuple[str, str]]) -> None:
        super().__init__(players)
        self._bearers: dict[str, list[str]] = {}
        for handle, name in players:
            self._bearers.setdefault(match_key(name), []).append(handle)

    def match(self, text: str) -> Match:
        """As ``Roster.match``; ``Alex`` is the player of that id and everybody of that name, ``alex`` is the id."""
        found = super().match(text)
        if found.handle is None or text.strip() == found.handle:
            return found
        handles = list(dict.fromkeys([found.handle, *self._bearers.get(match_key(text), [])]))
        return found if len(handles) == 1 else Match("several", tuple(handles))


def key_of(text: str) -> str:
    """The key of the question about a name."""
    return PLAYER + match_key(text)


def resolve(
    ctx: Context, club: str, mentions: Sequence[Mention], answers: Mapping[str, str], *, everybody: bool = False
) -> Names:
    """Find out whom the names of a file mean.

    Args:
        answers: of the sender, by question key.
        everybody: a name may also be the id of any player (an admin, who has no roster).

    Raises:
        Problem: 422 for an answer that names nobody, or registers under an id that is taken or none.
    """
    names = Names()
    listed = list(people.roster(ctx.table, club))
    roster = _Roster([(handle, name) for handle, _, name in listed])
    sid_of = {handle: sid for handle, sid, _ in listed}
    texts = {match_key(m.text): m.text.strip() for m in reversed(mentions)}
    ids = _other_ids(ctx, texts, roster, answers, everybody)
    sid_of |= ids
    taken = _taken(ctx, [key for key in texts if roster.match(key).kind == "none"])
    for mention in mentions:
        _resolve_one(ctx, names, mention, roster, sid_of, answers, taken, everybody)
    return names


def _other_ids(
    ctx: Context, texts: Mapping[str, str], roster: _Roster, answers: Mapping[str, str], everybody: bool
) -> dict[str, str]:
    """Players beyond the roster that answers (or an admin's file) name by id."""
    wanted = {fold_id(value.removeprefix(NEW)) for key, value in answers.items() if key.startswith(PLAYER)}
    if everybody:
        wanted |= {fold_id(key) for key in texts if roster.match(key).kind == "none"}
    return people.resolve(ctx.table, sorted(h for h in wanted if h))


def _suggested(key: str) -> list[str]:
    base = id_from(search_key(key)) or f"player-{keys.digest(key)[:8]}"
    short = base[:60]
    return [base, *(f"{short}-{n}" for n in range(2, SUFFIXES + 1)), f"{short[:50]}-{keys.digest(key)[:8]}"]


def _taken(ctx: Context, unknown: Iterable[str]) -> dict[str, bool]:
    """Which of the ids that new players could get are taken: read in as few rounds as there are collisions."""
    waiting = {key: _suggested(key) for key in unknown}
    taken: dict[str, bool] = {}
    while waiting:
        found = people.resolve(ctx.table, sorted({options[0] for options in waiting.values()}))
        for options in waiting.values():
            taken[options[0]] = options[0] in found
        waiting = {key: options[1:] for key, options in waiting.items() if taken[options[0]] and len(options) > 1}
    return taken


def _resolve_one(
    ctx: Context,
    names: Names,
    mention: Mention,
    roster: _Roster,
    sid_of: Mapping[str, str],
    answers: Mapping[str, str],
    taken: dict[str, bool],
    everybody: bool,
) -> None:
    key = match_key(mention.text)
    question = PLAYER + key
    answer = answers.get(f"{question}#{mention.row}")
    single = answer is not None
    if key in mention.known and not single:
        known, sid = mention.known[key]
        names.sids[known] = sid
        names._linked[mention.row, key] = known
        return
    match = roster.match(mention.text)
    answer = answer if single else answers.get(question)
    handle = match.handle
    if handle is None and everybody and (own := fold_id(key)) in sid_of:
        handle = own
    if answer is None and match.kind == "none" and handle is None and answers.get(EVERY_PLAYER) == REGISTER:
        answer = REGISTER
    registers = answer is not None and (answer == REGISTER or answer.startswith(NEW))
    if answer is not None and not (registers and handle is not None) and not (answer == REGISTER and match.handles):
        handle = _answered(ctx, names, question, mention, answer, sid_of, taken, roster)
    if handle is None:
        asked = names.asked.setdefault(question, Asked(mention.text, match.handles))
        if not asked.rows or asked.rows[-1] != mention.row:
            asked.rows.append(mention.row)
        asked.column = asked.column or mention.column
        if question not in names.suggestions:
            names.suggestions[question] = _free(names, key, taken)
        return
    if handle in sid_of:
        names.sids[handle] = sid_of[handle]
    names._linked[mention.row, key] = handle


def _free(names: Names, key: str, taken: dict[str, bool]) -> str:
    """The first suggested id that nobody has, nor gets with this file."""
    mine = set(names.suggestions.values()) | set(names.registrations)
    return next((o for o in _suggested(key) if not taken.get(o) and o not in mine), _suggested(key)[-1])


def _answered(
    ctx: Context,
    names: Names,
    question: str,
    mention: Mention,
    answer: str,
    sid_of: Mapping[str, str],
    taken: Mapping[str, bool],
    roster: _Roster,
) -> str:
    """The handle an answer names; a new player is noted for registration.

    Registering again whom this file has registered before (it broke off, or is sent again) links him.
    """
    if answer == REGISTER or answer.startswith(NEW):
        if answer == REGISTER:
            handle = names.suggestions.get(question) or _free(names, match_key(mention.text), dict(taken))
            names.suggestions[question] = handle
        else:
            handle = fold_id(answer.removeprefix(NEW)) or ""
        if handle in sid_of and handle in roster.match(mention.text).handles:
            return handle
        if not handle or handle in sid_of or taken.get(handle):
            said = "is taken" if handle else "is no id"
            text = f'"{answer[:70]}" {said}; a new player needs an id of his own.'
            raise invalid([BadField("answers", "new-player-id", text)])
        if handle not in names.registrations:
            names.registrations[handle] = " ".join(mention.text.split())
            names.sids[handle] = ctx.token(SID_LENGTH)
        elif match_key(names.registrations[handle]) != match_key(mention.text):
            text = f'"{handle}" would be two new players: {names.registrations[handle]} and {mention.text}.'
            raise invalid([BadField("answers", "new-player-id", text)])
        return handle
    handle = fold_id(answer) or ""
    if handle not in sid_of:
        raise invalid([BadField("answers", "unknown-player", f'There is no player "{answer[:70]}".')])
    return handle


# -- questions -----------------------------------------------------------------------------------------------------
def questions(ctx: Context, pool: Pool, names: Names) -> list[dict[str, Any]]:
    """Every name that needs an answer, with who could be meant: club and last game. A few round trips."""
    handles = sorted({h for asked in names.asked.values() for h in asked.matches[:CANDIDATES]})
    sids = people.resolve(ctx.table, handles)
    persons = people.persons(ctx.table, sids.values())
    called = clubs.names(ctx.table) if persons else {}
    view = rated_store.read_cursor(ctx.table, pool.id).view if persons else None
    states = rated_store.read_states(ctx.table, pool.id, persons, view) if view is not None else {}

    def candidate(handle: str) -> dict[str, Any]:
        sid = sids.get(handle, "")
        person: Person | None = persons.get(sid)
        played = states[sid].state.last_played if sid in states else None
        return {
            "player": handle,
            "name": person.name if person else handle,
            "clubs": [called.get(c, c) for c in person.clubs] if person else [],
            "last_game": iso(played) if played is not None else None,
        }

    return [
        {
            "key": key,
            "code": "which-player" if asked.matches else "unknown-player",
            "message": message_of(asked),
            "name": asked.text,
            "column": asked.column,
            "rows": asked.rows[:100],
            "candidates": [candidate(h) for h in asked.matches[:CANDIDATES]],
            "register": names.suggestions.get(key),
        }
        for key, asked in names.asked.items()
    ]


def message_of(asked: Asked) -> str:
    """The question about a name, in one sentence."""
    if asked.matches:
        return f'Which "{asked.text}" is meant? {len(asked.matches)} players of the club bear this name.'
    return f'The club has no player "{asked.text}". Register a new player, or say who it is.'


def handle_items(sids: Mapping[str, str]) -> dict[Key, Item]:
    """What reading the handles would give, for checks that want it read ahead."""
    return {keys.handle(handle): {"sid": sid} for handle, sid in sids.items()}
