"""Games: submit, read, correct, void, live quits. Each change is one transaction: game, ledger event, inbox entry."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError

from shared.characters import tidy_note
from shared.fields import bad_fields, mentions, outermost
from shared.ledger import calendar
from shared.ledger.events import Event, What, event_id
from shared.ledger.explain import changes_of, translate_players
from shared.ledger.fold import Rated
from shared.ledger.order import instant_of, iso, order, to_datetime
from shared.ledger.rules import in_force
from shared.problems import BadField, Problem, invalid, not_found
from shared.ratings.base import (
    FINISH,
    MICROSECONDS,
    Content,
    Game,
    LiveSystem,
    Normalised,
    RuleError,
    RuleSystem,
    Settings,
    SidedSystem,
)
from shared.store import attention, keys, ledger, notes, people, pools
from shared.store import rated as rated_store
from shared.store.pools import Pool
from shared.store.table import ABSENT, Busy, ConditionFailed, Delete, Item, Key, Operation, Put, pause
from shared.usecases import eligibility, previews
from shared.usecases.context import Context
from shared.usecases.drafts import Answer, GameDraft

FUTURE = 10 * 60 * MICROSECONDS
"""A game may end this much in the future: clocks differ."""
VIEWS = 5
"""How often a reader looks again when replays overtake it."""
ATTEMPTS = 6
"""How often a request looks again when others' writes overtake it, before it answers that the game is busy."""
REVISIONS = 200
"""So many revisions of one game are kept; one more is refused."""
REVISIONS_BYTES = 30_000
"""... or so much text of them, long reasons as they may have: beside a game of twenty players that keeps the item below
100 KB."""
RUNNING = 35 * MICROSECONDS
"""How long a request under an Idempotency-Key counts as still running: a little longer than a function may live."""
ANSWER_KEPT = 48 * 3600
"""Seconds for which the answer to an Idempotency-Key is kept."""

MOST_RECORDS = 256
"""In so many ways the records of merged players are put in for each other, to find a game that was sent before."""

GameRef = tuple[str, str]


class Revision(msgspec.Struct, omit_defaults=True):
    """One revision of a game, as its page tells it."""

    revision: int
    at: int
    by: str
    what: What
    digest: str
    reason: str = ""


@dataclass
class Stored:
    """A game as it is stored."""

    game: Game
    digest: str
    note: str
    revisions: list[Revision]
    warnings: list[dict[str, str]]
    accepted_at: int
    earliest: int
    """The earliest start of any revision: from there on ratings can differ."""
    fingerprint: str = ""
    was: Game | None = None
    """The revision before, whose ratings stand until this one is rated."""
    idem: str = ""
    """Partition of the answer kept for an Idempotency-Key, so that an erasure finds it."""

    @property
    def ref(self) -> GameRef:
        """(club, game id)."""
        return (self.game.club, self.game.game_id)


class Overtaken(Exception):
    """What the request rested on changed between its look and its write, and nothing was stored: it looks again."""


def _looking_again(attempt: Callable[[], Answer]) -> Answer:
    """Answer as if the requests that came at once had come one after another: who was overtaken begins anew, and
    finds what the other has done.

    Raises:
        Busy: it was overtaken each time; nothing was stored.
    """
    for number in range(ATTEMPTS):
        try:
            return attempt()
        except Overtaken:
            pause(number)
    raise Busy("game")


_game = msgspec.json.Decoder(Game)
_revisions = msgspec.json.Decoder(list[Revision])


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def to_item(pool: str, stored: Stored) -> Item:
    """A game as its item."""
    pk, sk = keys.game(pool, *stored.ref)
    item: Item = {
        "pk": pk,
        "sk": sk,
        "revision": stored.game.revision,
        "game": _text(stored.game),
        "digest": stored.digest,
        "note": stored.note,
        "revisions": _text(stored.revisions),
        "warnings": _text(stored.warnings),
        "accepted_at": stored.accepted_at,
        "earliest": stored.earliest,
        "fingerprint": stored.fingerprint,
    }
    if stored.was is not None:
        item["was"] = _text(stored.was)
    if stored.idem:
        item["idem"] = stored.idem
    return item


def from_item(item: Item) -> Stored:
    """A game from its item."""
    return Stored(
        game=_game.decode(item["game"]),
        digest=item["digest"],
        note=item["note"],
        revisions=_revisions.decode(item["revisions"]),
        warnings=msgspec.json.decode(item["warnings"]),
        accepted_at=item["accepted_at"],
        earliest=item["earliest"],
        fingerprint=item["fingerprint"],
        was=_game.decode(item["was"]) if "was" in item else None,
        idem=item.get("idem", ""),
    )


# -- what a game means -------------------------------------------------------------------------------------------
def _told(system: RuleSystem, content: Content) -> bytes:
    """A content as bytes: the same from whichever side it is told, and whatever ids its lists were sorted by (an
    erased player has another)."""
    if not isinstance(system, SidedSystem):
        return _bytes(_unordered(content))
    both = (content, system.from_other_side(content))
    return min(_bytes(_unordered(one, system.positional)) for one in both)


def _bytes(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _unordered(value: Any, positional: Collection[str] = (), name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _unordered(entry, positional, key) for key, entry in value.items()}
    if not isinstance(value, list | tuple):
        return value
    entries = [_unordered(entry, positional) for entry in value]
    return entries if name in positional else sorted(entries, key=_bytes)


def digest_of(system: RuleSystem, game: Game, note: str) -> str:
    """Two submissions are equal exactly when these are; club, id, revision and void do not enter."""
    same = msgspec.structs.replace(game, club="", game_id="", revision=0, void=False, content={})
    told = _told(system, game.content).decode()
    return hashlib.sha256(msgspec.json.encode([same, told, note], order="deterministic")).hexdigest()


def says_the_same(system: RuleSystem, stored: Stored, digest: str) -> bool:
    """Whether a digest is that of the game as it stands; blanks at the ends of a note kept from before do not count."""
    if digest == stored.digest:
        return True
    note = tidy_note(stored.note)
    return note != stored.note and digest == digest_of(system, stored.game, note)


def fingerprint_of(system: RuleSystem, game: Game) -> str:
    """Club, players, result, start, end and round: the same under another id is probably the same game."""
    return keys.digest(
        game.club,
        str(game.started_at),
        str(game.finished_at),
        str(game.round),
        _told(system, game.content).decode(),
        "open" if game.finished_at is None else "",
        ",".join(sorted(system.players(game.content))),
    )


def _rule_fields(error: RuleError, below: str) -> list[BadField]:
    return [
        BadField(f"{below}{'' if not e.field or e.field.startswith('[') else '.'}{e.field}", e.code, e.message)
        for e in error.errors
    ]


def _parsed(system: RuleSystem, raw: Any, below: str) -> Any:
    model = system.result_model if below == "result" else system.line_up_model
    try:
        return TypeAdapter(model).validate_python(raw)
    except ValidationError as error:
        raise invalid(bad_fields(error, raw, below)) from None


def parse_content(
    system: RuleSystem,
    raw: Any,
    below: str,
    settings: Settings,
    started_at: int,
    finished_at: int | None,
    live: Content | None,
) -> Normalised:
    """A raw `result` or `line_up` checked and in canonical form, players as handles.

    Raises:
        Problem: 422 with every wrong field.
    """
    parsed = _parsed(system, raw, below)
    try:
        if below == "line_up":
            if live is not None and isinstance(system, LiveSystem):
                return system.with_live_line_up(parsed, live, settings)
            return system.normalise_line_up(parsed, settings)
        if live is not None and isinstance(system, LiveSystem):
            parsed = system.with_live(parsed, live)
        return system.normalise(parsed, settings, started_at, finished_at or started_at)
    except RuleError as error:
        raise invalid(_rule_fields(error, below)) from None


@dataclass
class Checked:
    """A draft that passed all checks which need no state of the game itself."""

    game: Game
    note: str
    warnings: list[dict[str, str]]
    registrations: list[Operation] = field(default_factory=list)
    registered: dict[str, str] = field(default_factory=dict)
    """handle → name of those whom they register."""
    handles: dict[str, str] = field(default_factory=dict)
    """handle → server-made id."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """``{"result": ...}`` or ``{"line_up": ...}`` as it was sent, to name wrong fields in it."""


def _times(ctx: Context, pool: Pool, draft: GameDraft, errors: list[BadField]) -> tuple[int, int | None, int] | None:
    """(started_at, finished_at, number of the rules in force); None where that cannot be told: why is in ``errors``."""
    finished = draft.finished_at
    if draft.result is None and draft.line_up is None:
        errors.append(BadField("result", "missing", "A finished game needs its result, an open one its line_up."))
    if draft.result is not None and draft.line_up is not None:
        errors.append(BadField("line_up", "result-and-line-up", "Send the result or the line_up, not both."))
    if draft.result is not None and finished is None:
        errors.append(BadField("finished_at", "missing", "A game with a result needs the time it finished."))
    if draft.line_up is not None and draft.result is None and finished is not None:
        errors.append(BadField("finished_at", "open-game", "An open game has no finished_at yet; send its result."))
    started = draft.started_at if draft.started_at is not None else finished
    if started is None:
        # A result that is wrong in form is no longer in the draft; the game is not open for that.
        if draft.result is None and all(outermost(error.field) != "result" for error in draft.wrong):
            errors.append(BadField("started_at", "missing", "An open game needs the time it started."))
        return None
    limit = ctx.clock() + FUTURE
    for name, at in (("started_at", draft.started_at), ("finished_at", finished)):
        if at is not None and at > limit:
            errors.append(to_come(name, at))
    if finished is not None and finished < started:
        errors.append(BadField("finished_at", "before-start", "The game finished before it started."))
        return None
    number = in_force(pool.rules, started)
    if number is None:
        first = pool.rules_as_given[0]["from"]
        name = "started_at" if draft.started_at is not None else "finished_at"
        errors.append(BadField(name, "before-rules", f"The pool's rules begin on {first}."))
        return None
    return started, finished, number


def check(
    ctx: Context,
    pool: Pool,
    club: str,
    draft: GameDraft,
    live: Content | None,
    found: Mapping[Key, Item],
    asked: Collection[Key] = (),
) -> Checked:
    """Check a draft against pool and players.

    Args:
        found: the handle items that were read ahead.
        asked: what was looked for then: a handle among them that was not found is not looked for again.

    Raises:
        Problem: 422 with every wrong field, those of the draft among them.
    """
    system = pool.system
    errors: list[BadField] = []
    times = _times(ctx, pool, draft, errors)
    below = "line_up" if draft.result is None else "result"
    raw = draft.line_up if draft.result is None else draft.result
    normal: Normalised | None = None
    mentioned: Sequence[str] = ()
    try:
        if times is not None and raw is not None:
            started, finished, number = times
            normal = parse_content(system, raw, below, pool.rules[number].settings, started, finished, live)
            mentioned = system.mentioned(normal.content)
        elif raw is not None:
            _parsed(system, raw, below)
    except Problem as problem:
        errors += problem.errors
    if normal is None:
        mentioned, twice = _seated(system, raw, below, pool.settings)
        known = {(error.field, error.code) for error in errors}
        # Only who sits twice: what else a line-up says may rest on what the live game knows.
        errors += [e for e in twice if e.code == "player-twice" and (e.field, e.code) not in known]
    if missing := [k for h in mentioned if (k := keys.handle(h)) not in found and k not in asked]:
        found = {**found, **ctx.table.batch_get(missing)}
    sids, registrations, unknown = _people(ctx, club, draft, mentioned, raw, below, found)
    if normal is None or times is None or errors or unknown or draft.wrong:
        raise _all_wrong(draft, [*errors, *unknown])
    started, finished, _ = times
    game = Game(
        club=club,
        game_id="",
        revision=1,
        started_at=started,
        finished_at=finished,
        rated=draft.rated,
        group=draft.group,
        tournament=draft.tournament,
        round=draft.round,
        sequence=draft.sequence,
        content=system.translate(normal.content, lambda h: sids[h]),
    )
    warnings = [{"field": f"{below}.{w.field}", "code": w.code, "message": w.message} for w in normal.warnings]
    game, more = eligibility.with_leavers(ctx, pool, game, sids, found)
    made = {(one.item["pk"], one.item["sk"]) for one in registrations if isinstance(one, Put)}
    registered = {h.lower(): name for h, name in draft.register if keys.handle(h.lower()) in made}
    return Checked(game, draft.note, warnings + more, registrations, registered, sids, {below: raw})


def _seated(system: RuleSystem, raw: Any, below: str, settings: Settings) -> tuple[Sequence[str], list[BadField]]:
    """Who sits at the table of a content that is wrong elsewhere, and what is wrong with that; nobody where it cannot
    be told."""
    if not isinstance(raw, Mapping):
        return (), []
    seats = {name: value for name, value in raw.items() if name in system.line_up_model.model_fields}
    try:
        parsed = TypeAdapter(system.line_up_model).validate_python(seats)
    except ValidationError:
        return (), []
    try:
        return system.mentioned(system.normalise_line_up(parsed, settings).content), []
    except RuleError as error:
        named = dict.fromkeys(text.lower() for text in _strings(parsed.model_dump(mode="json")))
        return list(named), _rule_fields(error, below)


def _all_wrong(draft: GameDraft, errors: Sequence[BadField]) -> Problem:
    """422 with the fields that were wrong in form, and with what else is wrong apart from these."""
    known = {outermost(error.field) for error in draft.wrong}
    more = [error for error in errors if error.field not in known]
    every = [*draft.wrong, *more]
    if all(error.code == "unknown-player" for error in every):
        return invalid(every, "The game names players who are not registered.")
    return invalid(every)


def _people(
    ctx: Context, club: str, draft: GameDraft, mentioned: Sequence[str], raw: Any, below: str, found: Mapping[Key, Item]
) -> tuple[dict[str, str], list[Operation], list[BadField]]:
    """Server-made ids of all players, the writes that register new ones, and the unknown."""
    sids: dict[str, str] = {h: found[keys.handle(h)]["sid"] for h in mentioned if keys.handle(h) in found}
    registrations: list[Operation] = []
    new = {handle.lower(): name for handle, name in draft.register}
    for handle, name in new.items():
        if handle in sids or keys.handle(handle) in found:
            continue
        sids[handle] = ctx.token(12)
        registrations += people.registration(handle, name, club, sids[handle])
    if any(outermost(error.field) == "register" for error in draft.wrong):
        return sids, registrations, []  # who was meant to be registered cannot be told
    unknown = [
        BadField(path, "unknown-player", f"There is no player {handle!r}; register the player first.")
        for handle in mentioned
        if handle not in sids
        for path in (list(mentions({below: raw}, handle)) or [below])
    ]
    return sids, registrations, unknown


# -- submitting --------------------------------------------------------------------------------------------------
def submit(
    ctx: Context,
    pool: Pool,
    club: str,
    draft: GameDraft,
    *,
    idempotency_key: str | None,
    body_digest: str,
    preview: bool = False,
    preview_token: str | None = None,
) -> Answer:
    """Accept a game: 201 new; 200 equal to this or any earlier revision.

    Three round trips (one read ahead, one transaction, and the mark of an Idempotency-Key when there is one).

    Raises:
        Problem: 409 ``conflict`` (another content under the id), ``possible-duplicate``, ``still-running``; 422.
        Busy: nothing was stored.
    """
    idem = _Idempotency(ctx, club, idempotency_key, f"{pool.id}:{body_digest}")
    game_id = draft.game_id or idem.derived_id() or ctx.token(16)
    try:
        return _looking_again(
            lambda: _submit(ctx, pool, club, game_id, draft, idem, preview=preview, preview_token=preview_token)
        )
    except (Problem, Busy):
        idem.release()
        raise


def _submit(
    ctx: Context,
    pool: Pool,
    club: str,
    game_id: str,
    draft: GameDraft,
    idem: _Idempotency,
    *,
    preview: bool,
    preview_token: str | None,
) -> Answer:
    """Look once and store. Raises Overtaken where somebody else was faster, the mark of the key still being there."""
    wanted = _wanted_ahead(pool, club, game_id, draft, idem)
    ahead = ctx.table.batch_get(wanted)
    if (answer := idem.look(ahead)) is not None:
        return answer
    checked = check(ctx, pool, club, draft, None, ahead, frozenset(wanted))
    checked.game = msgspec.structs.replace(checked.game, game_id=game_id)
    item = ahead.get(keys.game(pool.id, club, game_id))
    if item is not None:
        idem.release()
        return _existing(ctx, pool, from_item(item), checked)
    fingerprint = fingerprint_of(pool.system, checked.game)
    door = eligibility.check(ctx, pool, checked.game, checked.handles, ahead, checked.body)
    if preview:
        return previews.preview(
            ctx, pool, [event_of(ctx, checked.game, "finished", ctx.clock(), None)], checked.handles
        )
    if not draft.distinct:
        _refuse_told_of_a_merged_record(ctx, pool, checked, ahead)
    write = first_revision(ctx, pool, club, checked, fingerprint, door, idem=idem.partition)
    stored, operations, guard = write.stored, write.operations, write.guard
    body = render(ctx, pool, stored, [], "open" if stored.game.finished_at is None else "pending", checked.handles)
    if not stored.game.rated and stored.game.finished_at is not None:
        body["status"] = "unrated"
    answer = Answer(201, body)
    operations += idem.done(answer)
    idem.mark()
    try:
        if preview_token is not None:
            operations = previews.guarded(ctx, pool, preview_token, operations)
        _transact(ctx, operations, guard, distinct=draft.distinct)
    except ConditionFailed as failure:
        if 0 in failure.failed and 0 in failure.items and not checked.registrations:
            idem.release()
            return _existing(ctx, pool, from_item(failure.items[0]), checked)
        raise _reason(ctx, operations, failure, checked) from failure
    return answer


def _transact(ctx: Context, operations: list[Operation], guard: Put | None, *, distinct: bool) -> None:
    """Write; a game sent as ``distinct`` does without the guard when another game of its content has it.

    Raises:
        ConditionFailed: with the indexes of ``operations``.
    """
    try:
        ctx.table.transact(operations)
    except ConditionFailed as failure:
        if guard is None or not distinct or [operations[n] for n in failure.failed] != [guard]:
            raise
        operations.remove(guard)
        game = operations[0]
        if isinstance(game, Put):
            game.item["fingerprint"] = ""
        ctx.table.transact(operations)


def _wanted_ahead(pool: Pool, club: str, game_id: str, draft: GameDraft, idem: _Idempotency) -> list[Key]:
    """What is read in one round trip: game, handles as far as the raw body tells them, the Idempotency-Key."""
    wanted: list[Key] = [keys.game(pool.id, club, game_id)]
    if idem.key is not None:
        wanted.append(idem.key)
    raw = draft.result if draft.result is not None else draft.line_up
    # Who plays stands in lists. A text of its own says how it ended: a million results would all read ``team1``.
    seats = [value for value in raw.values() if not isinstance(value, str)] if isinstance(raw, Mapping) else []
    texts = {t.lower() for t in _strings(seats) if len(t) <= 80}
    wanted += [keys.handle(t) for t in sorted(texts)][:45]
    if eligibility.has_door(pool):
        wanted += [keys.door(t, pool.id) for t in sorted(texts)][:45]
    return wanted


def _strings(raw: Any) -> Iterator[str]:
    if isinstance(raw, str):
        yield raw
    elif isinstance(raw, list):
        for entry in raw:
            yield from _strings(entry)
    elif isinstance(raw, Mapping):
        for entry in raw.values():
            yield from _strings(entry)


@dataclass
class Write:
    """A revision of a game and what one transaction must hold to store it; the game's item comes first."""

    stored: Stored
    operations: list[Operation]
    guard: Put | None
    """Among the operations: keeps out a second game of the same content."""


def first_revision(
    ctx: Context,
    pool: Pool,
    club: str,
    checked: Checked,
    fingerprint: str,
    door: Sequence[Operation],
    *,
    idem: str = "",
) -> Write:
    """A new game with its event, the players it registers and what the door notes."""
    stored, event = _first(ctx, pool, club, checked, fingerprint)
    stored.idem = idem
    guard = _put_fingerprint(pool.id, fingerprint, stored.ref)
    operations = [
        put_game(pool.id, stored),
        *ledger.append(pool.id, event),
        *checked.registrations,
        *door,
        *attention.mark(pool.id, *stored.ref, before=False, now=bool(stored.warnings)),
        guard,
    ]
    return Write(stored, operations, guard)


def put_game(pool: str, stored: Stored) -> Put:
    """The item of a game that must not exist yet."""
    return Put(to_item(pool, stored), ABSENT)


def _first(ctx: Context, pool: Pool, club: str, checked: Checked, fingerprint: str) -> tuple[Stored, Event]:
    now = ctx.clock()
    what: What = "started" if checked.game.finished_at is None else "finished"
    digest = digest_of(pool.system, checked.game, checked.note)
    stored = Stored(
        game=checked.game,
        digest=digest,
        note=checked.note,
        revisions=[Revision(1, now, club, what, digest)],
        warnings=checked.warnings,
        accepted_at=now,
        earliest=checked.game.started_at,
        fingerprint=fingerprint,
    )
    return stored, event_of(ctx, checked.game, what, now, None)


def event_of(ctx: Context, game: Game, what: What, now: int, touches: int | None) -> Event:
    """The ledger's event of a revision."""
    return Event(event_id(now, ctx.token(12)), "game", now, what, game, touches=touches)


def _put_fingerprint(pool: str, fingerprint: str, ref: GameRef) -> Put:
    pk, sk = keys.fingerprint(pool, fingerprint)
    item = {"pk": pk, "sk": sk, "club": ref[0], "game_id": ref[1]}
    return Put(
        item, "attribute_not_exists(pk) OR (#club = :club AND #game_id = :game_id)", {"club": ref[0], "game_id": ref[1]}
    )


def _refuse_told_of_a_merged_record(ctx: Context, pool: Pool, checked: Checked, found: Mapping[Key, Item]) -> None:
    """Raise 409 when the game was sent before with another record of one of its players, merged with his since.

    Costs nothing where nobody was merged: the handles' items say so.
    """
    same = {h: found[key].get("same_as", ()) for h in checked.handles if (key := keys.handle(h)) in found}
    if not any(same.values()):
        return
    others = people.resolve(ctx.table, sorted({other for names in same.values() for other in names}))
    records = [
        [(sid, sid), *((sid, others[other]) for other in same.get(handle, ()) if other in others)]
        for handle, sid in checked.handles.items()
    ]
    asked = []
    for seats in itertools.islice(itertools.product(*records), 1, MOST_RECORDS):  # the first is as it was sent
        told = pool.system.translate(checked.game.content, dict(seats).__getitem__)
        asked.append(fingerprint_of(pool.system, msgspec.structs.replace(checked.game, content=told)))
    for item in ctx.table.batch_get([keys.fingerprint(pool.id, one) for one in asked]).values():
        raise _duplicate(item)


def _duplicate(item: Mapping[str, Any]) -> Problem:
    first = {"club": item.get("club", ""), "game_id": item.get("game_id", "")}
    detail = (
        f"Game {first['club']}:{first['game_id']} has the same players, result, start, end and round. "
        'If this is another game, send it with "distinct": true.'
    )
    return Problem(409, "possible-duplicate", detail, extra={"existing": first})


def _reason(
    ctx: Context, operations: Sequence[Operation], failure: ConditionFailed, checked: Checked | None
) -> Problem | Overtaken:
    """What a failed condition stands for: a refusal, or that what was looked at is no longer so.

    Where the game itself is another by now, all that rests on it is looked at again before anything is refused.
    """
    if 0 in failure.failed:
        return Overtaken()
    previews.raise_if_moved(operations, failure)
    for number in failure.failed:
        operation = operations[number]
        if isinstance(operation, Put) and operation.item["pk"].startswith("FP#"):
            return _duplicate(failure.items.get(number, {}))
        if isinstance(operation, Put) and operation.item["pk"].startswith("IDEM#"):
            return _still_running()
    if checked is not None:
        _refuse_another_person(ctx, checked)
    return Overtaken()


def _refuse_another_person(ctx: Context, checked: Checked) -> None:
    """Raise 409 where somebody else was registered under an id since it was looked for: by another club, or under
    another name. The same person is no reason to refuse: the game goes on with him."""
    for handle, name in checked.registered.items():
        person = people.find(ctx.table, handle)
        if person is None:
            continue
        if person.managed_by != checked.game.club or people.search_name(person.name) != people.search_name(name):
            detail = (
                f"Another player was registered as {handle!r} just now. "
                "Send the game again if this is the same person, else choose another id."
            )
            raise Problem(409, "player-exists", detail)


def _existing(ctx: Context, pool: Pool, stored: Stored, checked: Checked) -> Answer:
    """The id is taken: 200 when this is equal to any of its revisions, else 409 with the present game."""
    body = read_stored(ctx, pool, stored)
    digest = digest_of(pool.system, checked.game, checked.note)
    if digest in {r.digest for r in stored.revisions} or says_the_same(pool.system, stored, digest):
        return Answer(200, body)
    raise Problem(
        409,
        "conflict",
        "There is a game of this id with another content. To correct it, send PUT with If-Match and a reason.",
        extra={"existing": body},
    )


# -- idempotency keys --------------------------------------------------------------------------------------------
def _still_running() -> Problem:
    return Problem(409, "still-running", "The first request with this Idempotency-Key still runs.", retry_after=2)


class _Idempotency:
    """The Idempotency-Key of a request: a mark while it runs, the answer when it is done, both in the table."""

    def __init__(self, ctx: Context, club: str, key: str | None, body: str) -> None:
        self.ctx = ctx
        self.text = key
        self.body = hashlib.sha256(body.encode()).hexdigest()
        self.key = keys.idempotency(club, key) if key is not None else None
        self.club = club
        self.now = ctx.clock()
        self.marked = False
        """This request's own mark stands."""

    @property
    def partition(self) -> str:
        """Where the answer is kept; empty without a key."""
        return self.key[0] if self.key is not None else ""

    def derived_id(self) -> str | None:
        """The game id for a request that leaves it to us: the same for a repeated key, whatever was lost between."""
        return f"g-{keys.digest(self.club, self.text)[:20]}" if self.text is not None else None

    def look(self, ahead: Mapping[Key, Item]) -> Answer | None:
        """The answer given before; None when this is the first.

        Raises:
            Problem: 422 another body under the key, 409 the first still runs.
        """
        item = ahead.get(self.key) if self.key is not None else None
        if item is None:
            return None
        if item["body"] != self.body:
            raise invalid(
                [BadField("Idempotency-Key", "another-body", "This key was used with another body.")],
                "The Idempotency-Key was used for another request.",
            )
        if "answer" in item:
            return Answer(item["status"], msgspec.json.decode(item["answer"]))
        if not self.marked and item["marked_at"] + RUNNING > self.now:
            raise _still_running()
        return None

    def _item(self, **more: Any) -> Item:
        pk, sk = self.key or ("", "")
        ttl = self.now // MICROSECONDS + ANSWER_KEPT
        return {"pk": pk, "sk": sk, "body": self.body, "marked_at": self.now, "ttl": ttl, **more}

    def mark(self) -> None:
        """Say that this request runs. Raises Problem 409 when another one of the same key was faster."""
        if self.key is None or self.marked:
            return
        free = f"{ABSENT} OR (#body = :body AND attribute_not_exists(answer) AND #marked_at <= :stale)"
        values = {"body": self.body, "stale": self.now - RUNNING}
        try:
            self.ctx.table.write(Put(self._item(), free, values))
        except ConditionFailed:
            raise _still_running() from None
        self.marked = True

    def release(self) -> None:
        """Take the mark back: nothing was stored, so that the same request may be sent again at once. Best effort."""
        if not self.marked:
            return
        self.marked = False
        mine = "#marked_at = :mine AND attribute_not_exists(answer)"
        try:
            self.ctx.table.write(Delete(self.key or ("", ""), mine, {"mine": self.now}))
        except (ConditionFailed, Busy):
            return

    def done(self, answer: Answer) -> list[Operation]:
        """The write of the answer, in the transaction that earns it."""
        if self.key is None:
            return []
        item = self._item(status=answer.status, answer=_text(answer.body))
        return [Put(item, "attribute_not_exists(answer)")]


# -- reading -----------------------------------------------------------------------------------------------------
def load(ctx: Context, pool: Pool, ref: GameRef) -> Stored:
    """A stored game. Raises Problem 404."""
    item = ctx.table.get(*keys.game(pool.id, *ref))
    if item is None:
        raise not_found("game")
    return from_item(item)


def read(ctx: Context, pool: Pool, ref: GameRef) -> dict[str, Any]:
    """A game with its status and changes, as the API shows it. Raises Problem 404."""
    return read_stored(ctx, pool, load(ctx, pool, ref))


def moment_orders(pool: Pool, game: Game) -> list[str]:
    """The orders of a game's moments."""
    number = in_force(pool.rules, game.started_at)
    if number is None:
        return []
    moments = pool.system.moments(game, pool.rules[number].settings)
    head = (game.round or 0, game.sequence, game.club, game.game_id)
    if game.finished_at == game.started_at:
        return [order(m.at, FINISH, *head, i) for i, m in enumerate(moments)]
    return [order(m.at, m.kind, *head, m.number) for m in moments]


def read_stored(ctx: Context, pool: Pool, stored: Stored) -> dict[str, Any]:
    """A game with its status and changes: cursor first, then all rows it may have in one round trip."""
    for _ in range(VIEWS):
        try:
            return _read_stored(ctx, pool, stored)
        except rated_store.StaleView:  # two replays have come to count since the cursor was read
            continue
    raise Busy("game")


def _read_stored(ctx: Context, pool: Pool, stored: Stored) -> dict[str, Any]:
    game = stored.game
    cursor = rated_store.read_cursor(ctx.table, pool.id)
    pool, view = pools.as_rated(ctx.table, pool, cursor.rules_version), cursor.view
    candidates = [game] + ([stored.was] if stored.was is not None else [])
    wanted: dict[Key, str] = {}
    for candidate in candidates:
        if candidate.rated and not candidate.void:
            for key in moment_orders(pool, candidate):
                wanted[rated_store.rated_key(pool.id, key, instant_of(key))] = key
    held_key = (keys.held(pool.id), "#".join(stored.ref))
    items = ctx.table.batch_get([*wanted, held_key])
    rows: list[Rated] = []
    for row_key in wanted:
        text = view.pick(items.get(row_key))
        if text is not None:
            row = rated_store.load_rated(text)
            if row.game is not None and (row.game.club, row.game.game_id) == stored.ref:
                rows.append(row)
    held = view.pick(items.get(held_key))
    newest = [r for r in rows if r.game is not None and r.game.revision == game.revision]
    if not newest and rows:
        latest = max(r.game.revision for r in rows if r.game is not None)
        newest = [r for r in rows if r.game is not None and r.game.revision == latest]
    current = any(r.game is not None and r.game.revision == game.revision and r.kind == FINISH for r in newest)
    body = render(ctx, pool, stored, [] if game.void else newest, _status(game, current, held is not None))
    if held is not None and body["status"] == "held":
        body["held_reason"] = msgspec.json.decode(held, type=rated_store.HeldRow).reason
    return body


def _status(game: Game, current: bool, held: bool) -> str:
    if game.void:
        return "void"
    if not game.rated:
        return "open" if game.finished_at is None else "unrated"
    if held:
        return "held"
    if game.finished_at is None:
        return "open"
    return "rated" if current else "pending"


def render(
    ctx: Context,
    pool: Pool,
    stored: Stored,
    rows: Sequence[Rated],
    status: str,
    handles: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A game as the API shows it. ``handles`` (handle → id) saves looking the players up."""
    game, system = stored.game, pool.system
    changes = [c for row in rows for c in changes_of(system, pool.rules, row)]
    if handles is None:
        sids = set(system.mentioned(game.content)) | {c["player"] for c in changes}
        for row in rows:
            sids |= set(row.alias) | set(row.alias.values())
        name = names(ctx, sids)
    else:
        name = {sid: handle for handle, sid in handles.items()}
    shown = system.as_submitted(system.translate(game.content, lambda sid: name.get(sid, sid)))
    body: dict[str, Any] = {
        "club": game.club,
        "game_id": game.game_id,
        "revision": game.revision,
        "status": status,
        "started_at": iso(game.started_at),
        "finished_at": iso(game.finished_at) if game.finished_at is not None else None,
        "rated": game.rated,
        "group": game.group,
        "tournament": game.tournament,
        "round": game.round,
        "sequence": game.sequence,
        "note": stored.note,
        ("line_up" if game.finished_at is None else "result"): shown,
        "warnings": stored.warnings,
        "changes": translate_players(changes, lambda sid: name.get(sid, sid)),
        "revisions": [
            {"revision": r.revision, "at": iso(r.at), "by": r.by, "what": r.what, "reason": r.reason}
            for r in stored.revisions
        ],
    }
    return body


def names(ctx: Context, sids: Iterable[str]) -> dict[str, str]:
    """Server-made id → handle."""
    return {sid: person.handle for sid, person in people.persons(ctx.table, sorted(sids)).items()}


# -- correcting, voiding, quits ----------------------------------------------------------------------------------
def _handles_of(ctx: Context, system: RuleSystem, content: Content) -> dict[str, str]:
    return names(ctx, system.mentioned(content))


def correct(
    ctx: Context,
    pool: Pool,
    club: str,
    ref: GameRef,
    draft: GameDraft,
    *,
    reason: str,
    if_match: int,
    admin: bool = False,
    preview: bool = False,
    preview_token: str | None = None,
) -> Answer:
    """Correct a game, finish an open one, revive a void one; what the draft leaves out keeps its value.

    Raises:
        Problem: 404, 412 (another revision), 422, 409.
        Busy: others changed the game, or its players, each time; nothing was stored.
    """
    by = "admin" if admin else club
    return _looking_again(
        lambda: _correct(ctx, pool, by, ref, draft, reason, if_match, preview=preview, preview_token=preview_token)
    )


def _correct(
    ctx: Context,
    pool: Pool,
    by: str,
    ref: GameRef,
    draft: GameDraft,
    reason: str,
    if_match: int,
    *,
    preview: bool,
    preview_token: str | None,
) -> Answer:
    stored = load(ctx, pool, ref)
    game = stored.game
    name = _handles_of(ctx, pool.system, game.content)
    live = pool.system.translate(game.content, lambda s: name.get(s, s)) if game.finished_at is None else None
    whole = merged(pool, stored, draft, name)
    checked = check(ctx, pool, ref[0], whole, live, _doors_ahead(ctx, pool, whole))
    new = msgspec.structs.replace(checked.game, club=ref[0], game_id=ref[1], revision=game.revision + 1)
    digest = digest_of(pool.system, new, checked.note)
    if says_the_same(pool.system, stored, digest) and not game.void and if_match in (game.revision, game.revision - 1):
        return Answer(200, read_stored(ctx, pool, stored))
    eligibility.check_change(ctx, pool, game, new, checked.handles, checked.body)
    if if_match != game.revision:
        raise _another_revision(game.revision)
    if game.void:
        what: What = "revived"
    elif game.finished_at is None and new.finished_at is not None:
        what = "finished"
    elif _only_substitutes(game, new):
        what = "substituted"
    else:
        what = "corrected"
    return _replace(
        ctx,
        pool,
        stored,
        new,
        what,
        by=by,
        reason=reason,
        checked=checked,
        distinct=draft.distinct,
        preview=preview,
        preview_token=preview_token,
    )


def _doors_ahead(ctx: Context, pool: Pool, draft: GameDraft) -> dict[Key, Item]:
    """What the door knows of everybody a correction names."""
    if not eligibility.has_door(pool):
        return {}
    raw = draft.result if draft.result is not None else draft.line_up
    return eligibility.read_ahead(ctx, pool, sorted({t.lower() for t in _strings(raw) if len(t) <= 80})[:45])


def _only_substitutes(old: Game, new: Game) -> bool:
    """Whether an open game differs only in who sits in for those who quit: nobody's rating hangs on that."""
    if new.finished_at is not None or "substitutes" not in {**old.content, **new.content}:
        return False
    one, two = ({k: v for k, v in g.content.items() if k != "substitutes"} for g in (old, new))
    return one == two and msgspec.structs.replace(old, revision=new.revision, content=new.content) == new


def _another_revision(revision: int) -> Problem:
    return Problem(412, "another-revision", f"The game is at revision {revision} now.", extra={"revision": revision})


def merged(pool: Pool, stored: Stored, draft: GameDraft, name: Mapping[str, str]) -> GameDraft:
    """The draft with what it leaves out taken from the present revision."""
    game, given = stored.game, draft.given
    finishes = draft.result is not None
    kept, follows = game.content, False
    if "finished_at" in given and draft.finished_at is not None and game.finished_at is not None:
        # A start that was not sent is the finish; so is the instant of what happened "at the end".
        follows = "started_at" not in given and game.started_at == game.finished_at
        kept = _with_finish(kept, game.finished_at, draft.finished_at)
    content = pool.system.as_submitted(pool.system.translate(kept, lambda s: name.get(s, s)))
    result, line_up = draft.result, draft.line_up
    if result is None and line_up is None:
        if game.finished_at is not None:
            result = content
        else:
            line_up = {k: v for k, v in content.items() if k not in ("quits", "substitutes")}
    finished = draft.finished_at if "finished_at" in given else game.finished_at
    started = draft.started_at if "started_at" in given else game.started_at
    if follows:
        started = None
    if finishes and finished is None:
        finished = draft.finished_at
    return replace(
        draft,
        result=result,
        line_up=line_up if result is None else None,
        started_at=started,
        finished_at=finished,
        rated=draft.rated if "rated" in given else game.rated,
        group=draft.group if "group" in given else game.group,
        tournament=draft.tournament if "tournament" in given else game.tournament,
        round=draft.round if "round" in given else game.round,
        sequence=draft.sequence if "sequence" in given else game.sequence,
        note=draft.note if "note" in given else stored.note,
    )


def _with_finish(content: Content, old: int, new: int) -> Content:
    """A content whose quits, defeats and ruins at the finish stay there when the finish moves."""

    def moved(line: Any) -> Any:
        if not isinstance(line, Mapping) or line.get("at") != old:
            return line
        return {key: new if key in ("at", "back_at") and value == old else value for key, value in line.items()}

    return {
        key: [moved(line) for line in value] if isinstance(value, list) else value for key, value in content.items()
    }


def revision_time(ctx: Context, stored: Stored) -> int:
    """When the next revision is accepted: after the present one, whatever the clock says. Raises Problem 409."""
    count = len(stored.revisions)
    if count >= REVISIONS or len(msgspec.json.encode(stored.revisions)) > REVISIONS_BYTES:
        raise Problem(409, "too-many-revisions", f"This game has {count} revisions; no more are taken.")
    return max(ctx.clock(), stored.accepted_at + 1)


def next_revision(
    ctx: Context,
    pool: Pool,
    stored: Stored,
    new: Game,
    what: What,
    *,
    by: str,
    reason: str,
    checked: Checked | None = None,
) -> Write:
    """The next revision of a stored game, on condition that the present one is still the newest."""
    now, touches = revision_time(ctx, stored), min(stored.earliest, new.started_at)
    remark = checked.note if checked is not None else stored.note
    digest = digest_of(pool.system, new, remark)
    changed = Stored(
        game=new,
        digest=digest,
        note=remark,
        revisions=[*stored.revisions, Revision(new.revision, now, by, what, digest, reason)],
        warnings=checked.warnings if checked is not None else stored.warnings,
        accepted_at=now,
        earliest=touches,
        fingerprint="" if new.void else fingerprint_of(pool.system, new),
        was=stored.game if _was_rated(stored.game) else stored.was,
        idem=stored.idem,
    )
    operations: list[Operation] = [
        Put(to_item(pool.id, changed), "#revision = :known", {"known": stored.game.revision}),
        *ledger.append(pool.id, event_of(ctx, new, what, now, touches)),
        *(checked.registrations if checked is not None else ()),
        *eligibility.after_change(pool, stored.game, new, ctx),
        *attention.mark(
            pool.id,
            *stored.ref,
            before=bool(stored.warnings) and not stored.game.void,
            now=bool(changed.warnings) and not new.void,
        ),
    ]
    if what in ("corrected", "voided", "revived"):
        players = list(pool.system.players(new.content))
        note = notes.Note(now, what, new.club, new.game_id, new.revision, by, reason, players)
        operations.append(notes.put_note(pool.id, note))
    moves, guard = _move_fingerprint(pool.id, stored, changed)
    return Write(changed, operations + moves, guard)


def _replace(
    ctx: Context,
    pool: Pool,
    stored: Stored,
    new: Game,
    what: What,
    *,
    by: str,
    reason: str,
    checked: Checked | None = None,
    distinct: bool = True,
    preview: bool = False,
    preview_token: str | None = None,
    status: int = 200,
) -> Answer:
    """Store a new revision with its event, on condition that the present one is still the newest.

    Raises:
        Overtaken: it is not; or somebody whom the game names changed.
    """
    if preview:
        now, touches = revision_time(ctx, stored), min(stored.earliest, new.started_at)
        handles = checked.handles if checked is not None else None
        return previews.preview(ctx, pool, [event_of(ctx, new, what, now, touches)], handles)
    write = next_revision(ctx, pool, stored, new, what, by=by, reason=reason, checked=checked)
    changed, operations, guard = write.stored, write.operations, write.guard
    if preview_token is not None:
        operations = previews.guarded(ctx, pool, preview_token, operations)
    try:
        _transact(ctx, operations, guard, distinct=distinct)
    except ConditionFailed as failure:
        raise _reason(ctx, operations, failure, checked) from failure
    return Answer(status, read_stored(ctx, pool, changed))


def _was_rated(game: Game) -> bool:
    return game.rated and not game.void


def _move_fingerprint(pool: str, stored: Stored, changed: Stored) -> tuple[list[Operation], Put | None]:
    """A void game guards nothing; a corrected one guards its new content. ``fingerprint`` is kept only by its owner."""
    old, new = stored.fingerprint, changed.fingerprint
    release: list[Operation] = [Delete(keys.fingerprint(pool, old))] if old and old != new else []
    guard = _put_fingerprint(pool, new, changed.ref) if new and new != old else None
    return release + ([guard] if guard is not None else []), guard


def void(
    ctx: Context,
    pool: Pool,
    club: str,
    ref: GameRef,
    *,
    reason: str,
    admin: bool = False,
    preview: bool = False,
    preview_token: str | None = None,
) -> Answer:
    """Take a game back, with a reason; again, also at the same moment: the same answer.

    Raises:
        Problem: 404, 409.
        Busy: others changed the game each time; nothing was stored.
    """

    def attempt() -> Answer:
        stored = load(ctx, pool, ref)
        if stored.game.void:
            return Answer(200, read_stored(ctx, pool, stored))
        new = msgspec.structs.replace(stored.game, revision=stored.game.revision + 1, void=True)
        by = "admin" if admin else club
        return _replace(
            ctx, pool, stored, new, "voided", by=by, reason=reason, preview=preview, preview_token=preview_token
        )

    return _looking_again(attempt)


def to_come(field: str, at: int) -> BadField:
    """The refusal of an instant that is still to come; with a hint where it is a year of the Buddhist calendar."""
    hint, year = "", to_datetime(at).year
    if year in calendar.BUDDHIST:
        hint = f" Year {year} looks like the Buddhist calendar; here it would be {year - 543}."
    return BadField(field, "in-the-future", "This lies more than 10 minutes in the future." + hint)


def _open_game(ctx: Context, pool: Pool, ref: GameRef) -> tuple[Stored, dict[str, str], Settings]:
    stored = load(ctx, pool, ref)
    if stored.game.finished_at is not None or stored.game.void:
        raise Problem(409, "not-open", "Only an open game can be quit.")
    number = in_force(pool.rules, stored.game.started_at)
    if number is None or not isinstance(pool.system, LiveSystem):
        raise invalid([BadField("player", "no-quits", "This rule system knows no quits.")])
    return stored, _handles_of(ctx, pool.system, stored.game.content), pool.rules[number].settings


def quit(ctx: Context, pool: Pool, club: str, ref: GameRef, player: str, at: int) -> Answer:  # noqa: A001
    """A player left an open game: rated at once. The same again: 200."""
    return _looking_again(lambda: _quit(ctx, pool, club, ref, player, at))


def _quit(ctx: Context, pool: Pool, club: str, ref: GameRef, player: str, at: int) -> Answer:
    stored, name, _ = _open_game(ctx, pool, ref)
    game, system = stored.game, pool.system
    if at > ctx.clock() + FUTURE:
        raise invalid([to_come("at", at)])
    handles = system.translate(game.content, lambda s: name.get(s, s))
    try:
        quitted = system.with_quit(handles, player.lower(), at, game.started_at)  # type: ignore[attr-defined]
    except RuleError as error:
        raise invalid([BadField(e.field or "player", e.code, e.message) for e in error.errors]) from None
    if quitted == handles:
        return Answer(200, read_stored(ctx, pool, stored))
    return _with_content(ctx, pool, stored, quitted, name, "quit", club, 201)


def quit_return(ctx: Context, pool: Pool, club: str, ref: GameRef, player: str, at: int) -> Answer:
    """A quitter is back in time: the quit is taken back. Raises Problem 409 when too late."""
    return _looking_again(lambda: _quit_return(ctx, pool, club, ref, player, at))


def _quit_return(ctx: Context, pool: Pool, club: str, ref: GameRef, player: str, at: int) -> Answer:
    stored, name, settings = _open_game(ctx, pool, ref)
    system = pool.system
    handles = system.translate(stored.game.content, lambda s: name.get(s, s))
    try:
        back = system.with_return(handles, player.lower(), at, settings)  # type: ignore[attr-defined]
    except RuleError as error:
        if any(e.code == "back-too-late" for e in error.errors):
            raise Problem(409, "back-too-late", error.errors[0].message) from None
        raise invalid([BadField(e.field or "player", e.code, e.message) for e in error.errors]) from None
    if back == handles:
        return Answer(200, read_stored(ctx, pool, stored))
    return _with_content(ctx, pool, stored, back, name, "returned", club, 200)


def _with_content(
    ctx: Context,
    pool: Pool,
    stored: Stored,
    content: Content,
    name: Mapping[str, str],
    what: What,
    club: str,
    status: int,
) -> Answer:
    sid = {handle: s for s, handle in name.items()}
    new = msgspec.structs.replace(
        stored.game,
        revision=stored.game.revision + 1,
        content=pool.system.translate(content, lambda h: sid.get(h, h)),
    )
    return _replace(ctx, pool, stored, new, what, by=club, reason="", status=status)
