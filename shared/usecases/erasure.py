"""Erasing a person: a stable pseudonym stands in his place, the numbers stay. What copies keep: docs/erasure.md.

The request empties the person's records at once. What hangs in the pools (notes and reasons that name him, answers
kept for retries, bans under his handle) is looked for pool by pool when the rater is woken; the order to do so lies in
each pool's inbox until it is done, so nothing of it is lost by a crash, and doing it twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.ledger.events import Event, decode, encode, event_id
from shared.problems import forbidden, not_found
from shared.ratings.base import MICROSECONDS
from shared.store import attention, clubs, keys, ledger, merges, people, pools
from shared.store.people import Person, search_name
from shared.store.pools import Pool
from shared.store.table import Busy, ConditionFailed, Item, Key, Operation, Put, Update
from shared.usecases import wake
from shared.usecases.context import Context
from shared.usecases.drafts import Answer

ATTEMPTS = 3
TOKEN = 12
SHORTEST_PSEUDONYM = 6
"""Characters of the server-made id in a pseudonym; more where another player has it already."""
POOLS_AT_ONCE = 40
"""Pools ordered to clean up in the transaction that empties the records; those beyond are ordered just before it."""
SHORTEST_WORD = 3
"""A part of a name is looked for on its own, in games of the person, when it has so many letters."""
GAMES_AT_ONCE = 100
REPORTS = "reports/"
"""Reports of imports in the data bucket."""
ERASED = "erased/"
"""One object for each erased record, named after its server-made id: after a restore they are erased once more."""
LONGEST_REQUEST = 60 * MICROSECONDS
"""After so long a request that orders an erasure has emptied the records, or has died and never will."""


def erase(ctx: Context, handle: str, club: str, *, admin: bool) -> Answer:
    """Erase the person behind a handle, with all records that were merged with it.

    Raises:
        Problem: 404; 403 when one of the person's records is another club's.
    """
    for _ in range(ATTEMPTS):
        records = _records(ctx, handle)
        if not admin and any(p.managed_by != club for p in records):
            raise forbidden("This player is managed by another club.")
        names = _pseudonyms(ctx, records)
        answer = Answer(202, {"status": "accepted", "player": names[records[0].sid]})
        living = [p for p in records if not p.erased]
        if not living:
            return answer
        if _empty(ctx, living, names):
            return answer
    raise Busy("erasure")


def again(ctx: Context, sids: Iterable[str]) -> list[str]:
    """Erase these records once more, where a restore brought them back as they were before.

    Args:
        sids: server-made ids, as the objects below ``erased/`` name them; unknown ones are passed over.

    Returns:
        ids of those that had come back.
    """
    _, found = merges.load(ctx.table)
    aliases, left = merges.aliases(found), set(sids)
    done: list[str] = []
    while left:
        group = left & set(merges.group(aliases, min(left)))
        left -= group
        for _ in range(ATTEMPTS):
            records = list(people.persons(ctx.table, sorted(group)).values())
            living = [p for p in records if not p.erased]
            if not living or _empty(ctx, living, _pseudonyms(ctx, records)):
                break
        else:
            raise Busy("erasure")
        done += [p.sid for p in living]
    return sorted(done)


def _records(ctx: Context, handle: str) -> list[Person]:
    """All records of a person, the one that was named first."""
    person = people.find(ctx.table, handle)
    if person is None:
        raise not_found("player")
    _, found = merges.load(ctx.table)
    group = set(merges.group(merges.aliases(found), person.sid)) - {person.sid}
    return [person, *sorted(people.persons(ctx.table, group).values(), key=lambda p: p.sid)]


def _pseudonyms(ctx: Context, records: Iterable[Person]) -> dict[str, str]:
    """Server-made id → pseudonym: always the same for the same person, and nobody else's handle."""
    found: dict[str, str] = {}
    for person in records:
        choices = [f"erased-{person.sid[:n]}" for n in range(SHORTEST_PSEUDONYM, len(person.sid) + 1)]
        taken = people.resolve(ctx.table, choices)
        free = next((c for c in choices if taken.get(c, person.sid) == person.sid), None)
        found[person.sid] = person.handle if person.erased else free or f"erased-{person.sid}-{person.sid[:4]}"
    return found


def _empty(ctx: Context, living: list[Person], names: dict[str, str]) -> bool:
    """Empty the records and order the pools to clean up. False when somebody changed a record in between."""
    every = pools.all_ids(ctx.table)
    orders = [
        _order(ctx, pool, person, names[person.sid], reports=number == 0)
        for number, pool in enumerate(every)
        for person in living
    ]
    at_once = POOLS_AT_ONCE // len(living) * len(living)
    for late in orders[at_once:]:
        ctx.table.write(late)
    writes: list[Operation] = list(orders[:at_once])
    for person in living:
        others = {name for sid, name in names.items() if sid != person.sid}
        writes += people.erasure(person, names[person.sid], others)
    try:
        ctx.table.transact(writes)
    except ConditionFailed:
        return False
    return True


def _order(ctx: Context, pool: str, person: Person, pseudonym: str, *, reports: bool) -> Put:
    """The inbox entry that makes the rater clean up a pool. It is no event of the ledger."""
    now = ctx.clock()
    value = {"handle": person.handle, "name": person.name, "pseudonym": pseudonym, "reports": reports}
    event = Event(event_id(now, ctx.token(TOKEN)), "erase", now, player=person.sid, value=value)
    return Put({"pk": keys.inbox(pool, ledger.inbox_shard(event)), "sk": event.id, "event": encode(event)})


# -- cleaning up a pool --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Traces:
    """How a person is recognised in free text."""

    handle: str
    name: str
    pseudonym: str

    def _finds(self, text: str, words: Iterable[str]) -> bool:
        folded = search_name(text)
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded) for word in words if word)

    def named_in(self, text: str, *, own_game: bool) -> bool:
        """Whether a note or reason names the person: by the whole name or the handle; where it is about a game the
        person played, also by a part of the name or a very short handle, which elsewhere may be a word like others."""
        if not text:
            return False
        name, handle = search_name(self.name), search_name(self.handle)
        words = [name]
        if own_game:
            words += [handle, *(part for part in re.split(r"\W+", name) if len(part) >= SHORTEST_WORD)]
        elif len(handle) >= SHORTEST_WORD:
            words.append(handle)
        return self._finds(text, words)

    def replaced(self, text: str) -> str:
        """A message of ours with the handle replaced by the pseudonym."""
        pattern = re.compile(rf"(?<![\w.-]){re.escape(self.handle)}(?![\w-])", re.IGNORECASE)
        return pattern.sub(self.pseudonym, text)


def clean(ctx: Context, pool: Pool, event: Event) -> bool:
    """Remove what names an erased person from a pool, and have all of its pages made anew.

    An order that was written before the records were emptied waits for that; when its request died in between, nobody
    was erased, and it is over.

    Returns:
        whether the order is over.
    """
    person = people.persons(ctx.table, [event.player]).get(event.player)
    if person is None or not person.erased:
        return event.accepted_at + LONGEST_REQUEST < ctx.clock()
    traces = Traces(event.value["handle"], event.value["name"], event.value["pseudonym"])
    ctx.table.batch_write(deletes=[keys.door(traces.handle, pool.id)])
    own = _games(ctx, pool, event.player)
    for refs in _chunks(sorted(own)):
        for item in ctx.table.batch_get([keys.game(pool.id, *ref) for ref in refs]).values():
            _clean_game(ctx, traces, item, own_game=own[_ref_of(item)])
    _clean_changelog(ctx, pool, traces, event.player)
    if event.value["reports"]:
        _drop_reports(ctx, traces)
        ctx.data.put(ERASED + event.player, b"", "application/octet-stream")
    entry = {"pk": keys.outbox(pool.id), "sk": f"{ctx.clock():016x}-{ctx.token(TOKEN)}", "all": True}
    ctx.table.write(Put(entry))
    wake.ask(ctx, pool.id)
    return True


def _games(ctx: Context, pool: Pool, sid: str) -> dict[tuple[str, str], bool]:
    """Every game of a pool's ledger, and whether a person was ever in it: any may have a note that names him."""
    found: dict[tuple[str, str], bool] = {}
    for month in ledger.months(pool.created_at, ctx.clock()):
        for line in ledger.lines(ctx.table, pool.id, month):
            game = decode(line).game
            if game is not None:
                ref = (game.club, game.game_id)
                found[ref] = found.get(ref, False) or (sid in line and sid in pool.system.mentioned(game.content))
    return found


def _chunks(refs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    for start in range(0, len(refs), GAMES_AT_ONCE):
        yield refs[start : start + GAMES_AT_ONCE]


def _ref_of(item: Item) -> tuple[str, str]:
    _, _, club, game_id = item["pk"].split("#")
    return club, game_id


def _clean_game(ctx: Context, traces: Traces, item: Item, *, own_game: bool) -> None:
    """Texts of one game, again if it is changed meanwhile; and, of the person's own, the answer kept for a retry."""
    key: Key = (item["pk"], item["sk"])
    if own_game and "idem" in item:
        ctx.table.batch_write(deletes=[(item["idem"], keys.META)])
    now: Item | None = item
    while now is not None:
        changed = _cleaned(traces, now, own_game=own_game)
        if not changed:
            return
        sets = ", ".join(f"#{name} = :{name}" for name in changed)
        values: dict[str, Any] = {**changed, "known": now["revision"]}
        try:
            ctx.table.write(Update(key, f"SET {sets}", values, "#revision = :known"))
            return
        except ConditionFailed:
            now = ctx.table.get(*key)


def _cleaned(traces: Traces, item: Item, *, own_game: bool) -> dict[str, str]:
    """The attributes of a game that must change, with their new values."""
    changed: dict[str, str] = {}
    if traces.named_in(item["note"], own_game=own_game):
        changed["note"] = ""
    revisions = msgspec.json.decode(item["revisions"])
    for revision in revisions:
        if traces.named_in(revision.get("reason", ""), own_game=own_game):
            revision["reason"] = ""
    warnings = msgspec.json.decode(item["warnings"])
    if own_game:
        for warning in warnings:
            warning["message"] = traces.replaced(warning["message"])
    for name, value in (("revisions", revisions), ("warnings", warnings)):
        text = msgspec.json.encode(value).decode()
        if value != msgspec.json.decode(item[name]):
            changed[name] = text
    return changed


def _clean_changelog(ctx: Context, pool: Pool, traces: Traces, sid: str) -> None:
    for item in ctx.table.query(keys.changelog(pool.id)):
        note = msgspec.json.decode(item["note"])
        if traces.named_in(note.get("reason", ""), own_game=sid in note.get("players", ())):
            note["reason"] = ""
            text = msgspec.json.encode(note).decode()
            ctx.table.write(Update((item["pk"], item["sk"]), "SET #note = :note", {"note": text}))


def _drop_reports(ctx: Context, traces: Traces) -> None:
    """Reports of imports that name the person, and what clubs' inboxes say of them: all would go in a month."""
    names = [w.encode() for w in {traces.name, traces.handle} if w]
    pattern = re.compile(rb"(?<![\w-])(?:" + b"|".join(re.escape(n) for n in names) + rb")(?![\w-])", re.IGNORECASE)
    gone = []
    for key, _ in ctx.data.list(REPORTS):
        body = ctx.data.get(key)
        if body is not None and pattern.search(body):
            gone.append(key)
    if gone:
        ctx.data.delete(gone)
    jobs = {key.removeprefix(REPORTS).partition(".")[0] for key in gone}
    lines = [key for club in (*clubs.names(ctx.table), "admin") for key in attention.naming(ctx.table, club, pattern)]
    ctx.table.batch_write(deletes=[*(keys.import_job(job) for job in sorted(jobs)), *lines])
