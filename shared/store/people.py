"""Players: handles, the persons behind them, rosters of clubs, pools they are in."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shared.store import keys
from shared.store.table import ABSENT, PRESENT, Delete, Item, Operation, Put, Table, Update

SEARCH_LENGTH = 160
"""A sort key holds 1,024 bytes; a name of 80 characters may grow eighteenfold in NFKC."""


@dataclass(frozen=True)
class Person:
    """Who stands behind a server-made id."""

    sid: str
    handle: str
    name: str
    clubs: tuple[str, ...]
    managed_by: str
    """The club that registered the player; its keys alone may change him."""
    registered_on: str | None
    """``2026-11-03``: a day in each pool's own zone."""
    version: int = 1
    merged_into: str | None = None
    """Server-made id of the record that this one was found to be the same person as."""
    erased: bool = False
    """Nobody is known behind this record any more; handle and name are a pseudonym."""


def search_name(name: str) -> str:
    """How names are compared: NFKC with case folded, blanks around and doubled ones left out."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folded.split())


def _roster_key(club: str, person: Person) -> tuple[str, str]:
    return keys.roster(club), f"{search_name(person.name)[:SEARCH_LENGTH]}#{person.handle}"


def _roster_item(club: str, person: Person) -> Item:
    pk, sk = _roster_key(club, person)
    return {"pk": pk, "sk": sk, "handle": person.handle, "sid": person.sid, "name": person.name}


def _person_item(person: Person) -> Item:
    pk, sk = keys.person(person.sid)
    item: Item = {
        "pk": pk,
        "sk": sk,
        "sid": person.sid,
        "handle": person.handle,
        "name": person.name,
        "clubs": list(person.clubs),
        "managed_by": person.managed_by,
        "registered_on": person.registered_on,
        "version": person.version,
    }
    if person.merged_into is not None:
        item["merged_into"] = person.merged_into
    if person.erased:
        item["erased"] = True
    return item


def _from_item(item: Item) -> Person:
    return Person(
        sid=item["sid"],
        handle=item["handle"],
        name=item["name"],
        clubs=tuple(item["clubs"]),
        managed_by=item["managed_by"],
        registered_on=item.get("registered_on"),
        version=item["version"],
        merged_into=item.get("merged_into"),
        erased=item.get("erased", False),
    )


# -- reading -------------------------------------------------------------------------------------------------------
def resolve(table: Table, handles: Iterable[str]) -> dict[str, str]:
    """The server-made ids of those handles that are registered. One round trip per 100."""
    found = table.batch_get([keys.handle(h) for h in dict.fromkeys(handles)])
    return {pk.removeprefix("PLAYER#"): str(item["sid"]) for (pk, _), item in found.items()}


def persons(table: Table, sids: Iterable[str]) -> dict[str, Person]:
    """The persons behind ids, those that exist. One round trip per 100."""
    found = table.batch_get([keys.person(sid) for sid in dict.fromkeys(sids)])
    return {str(item["sid"]): _from_item(item) for item in found.values()}


def find(table: Table, handle: str) -> Person | None:
    """The person of a handle, or None. Two round trips."""
    pointer = table.get(*keys.handle(handle))
    if pointer is None:
        return None
    item = table.get(*keys.person(pointer["sid"]))
    return _from_item(item) if item else None


def chain(table: Table, person: Person) -> list[Person]:
    """A record, whom it was merged into, and so on to the survivor, who comes last. A round trip a step."""
    found = [person]
    while (into := found[-1].merged_into) is not None and into not in {p.sid for p in found}:
        found.extend(persons(table, [into]).values())
    return found


def same_as(item: Mapping[str, Any]) -> tuple[str, ...]:
    """From a handle's item: the other handles of the same person."""
    return tuple(item.get("same_as", ()))


def roster(table: Table, club: str) -> Iterator[tuple[str, str, str]]:
    """A club's players by search name: (handle, server-made id, name). Page by page."""
    for item in table.query(keys.roster(club)):
        yield item["handle"], item["sid"], item["name"]


def named(table: Table, club: str, name: str) -> list[tuple[str, str]]:
    """Who of a club's players bears this name: (handle, server-made id); two people with one name stay two."""
    wanted = search_name(name)
    begin = wanted[:SEARCH_LENGTH] + "#"
    found = table.query(keys.roster(club), begins=begin)
    return [(item["handle"], item["sid"]) for item in found if search_name(item["name"]) == wanted]


def memberships(table: Table, sid: str) -> list[str]:
    """The pools a player is in, sorted."""
    return [str(item["sk"]) for item in table.query(keys.memberships(sid))]


# -- writing -------------------------------------------------------------------------------------------------------
def register(person: Person) -> list[Operation]:
    """The writes that register a new player; the first fails when somebody has the handle already."""
    pk, sk = keys.handle(person.handle)
    return [
        Put({"pk": pk, "sk": sk, "sid": person.sid}, ABSENT),
        Put(_person_item(person), ABSENT),
        *(Put(_roster_item(club, person)) for club in person.clubs),
    ]


def registration(handle: str, name: str, club: str, sid: str, registered_on: str | None = None) -> list[Operation]:
    """The three writes by which a submission of a club registers a player with it, in its own transaction."""
    return register(Person(sid, handle, name, (club,), club, registered_on))


def change(old: Person, new: Person) -> list[Operation]:
    """The writes that change a person; they fail when somebody changed him in between. ``new.version`` is the next."""
    gone = {_roster_key(c, old) for c in old.clubs} - {_roster_key(c, new) for c in new.clubs}
    return [
        Put(_person_item(new), "#version = :known", {"known": old.version}),
        *(Delete(key) for key in sorted(gone)),
        *(Put(_roster_item(club, new)) for club in new.clubs),
    ]


def merging(old: Person, into: str | None) -> Put:
    """The write by which a record is merged into another, or (None) is one of its own again."""
    new = replace(old, merged_into=into, version=old.version + 1)
    return Put(_person_item(new), "#version = :known", {"known": old.version})


def unchanged(person: Person) -> Update:
    """Holds a person's record still: of two changes that rest on it one fails."""
    values = {"known": person.version, "next": person.version + 1}
    return Update(keys.person(person.sid), "SET #version = :next", values, "#version = :known")


def tell_same(handle: str, others: Iterable[str]) -> Update:
    """Say at a handle which other handles are the same person's."""
    return Update(keys.handle(handle), "SET #same_as = :others", {"others": sorted(others)}, PRESENT)


def erasure(old: Person, pseudonym: str, others: Iterable[str]) -> list[Operation]:
    """The writes that leave nothing of a person but a pseudonym: record emptied, handle and rosters gone.

    ``managed_by`` stays: it is a club, and says who may ask for what is left to be done.
    """
    pk, sk = keys.handle(pseudonym)
    new = replace(
        old,
        handle=pseudonym,
        name=pseudonym,
        clubs=(),
        registered_on=None,
        version=old.version + 1,
        erased=True,
    )
    return [
        Put(_person_item(new), "#version = :known", {"known": old.version}),
        Put(
            {"pk": pk, "sk": sk, "sid": old.sid, "erased": True, "same_as": sorted(others)},
            f"{ABSENT} OR #sid = :sid",  # it is there when a restore has brought the person back
            {"sid": old.sid},
        ),
        Delete(keys.handle(old.handle)),
        *(Delete(_roster_key(club, old)) for club in old.clubs),
    ]
