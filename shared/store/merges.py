"""Merges: which records of players are the same person's. What the pools' ledgers are told lies in one place too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.store import keys
from shared.store.table import ABSENT, Item, Operation, Put, Table, Update


@dataclass(frozen=True)
class Merge:
    """A record merged into another, or split from it again."""

    sid: str
    into: str | None
    """None: the merge was undone."""
    was: str
    """Whom it was merged into last."""
    at: int
    """Instant of the last change."""
    untold: tuple[str, ...] = ()
    """Pools whose ledger is yet to be told, where there are too many for one transaction."""


def _from_item(item: Item) -> Merge:
    return Merge(item["sk"], item["into"], item["was"], item["at"], tuple(item["untold"]))


def load(table: Table) -> tuple[int, dict[str, Merge]]:
    """How often merges have changed, and all of them by the id merged away."""
    counter = table.get(*keys.merging())
    found = {item["sk"]: _from_item(item) for item in table.query(keys.merges())}
    return (counter["count"] if counter else 0), found


def count_one(known: int) -> Update:
    """The write that makes this change the next one; it fails when another came in between."""
    condition = "#count = :known" if known else ABSENT
    values = {"next": known + 1, **({"known": known} if known else {})}
    return Update(keys.merging(), "SET #count = :next", values, condition)


def put(merge: Merge) -> Put:
    """The write of a merge."""
    item: Item = {"pk": keys.merges(), "sk": merge.sid, "into": merge.into, "was": merge.was, "at": merge.at}
    item["untold"] = list(merge.untold)
    return Put(item)


def told(merge: Merge, left: Iterable[str]) -> Operation:
    """The write that says which pools are still to be told of a merge; fails when it has changed since."""
    values = {"left": list(left), "at": merge.at}
    return Update((keys.merges(), merge.sid), "SET #untold = :left", values, "#at = :at")


def aliases(merges: Mapping[str, Merge]) -> dict[str, str]:
    """Id merged away → whom it was merged into, as far as that still holds."""
    return {sid: merge.into for sid, merge in merges.items() if merge.into is not None}


def survivor(alias: Mapping[str, str], sid: str) -> str:
    """Whom an id stands for in the end."""
    seen = {sid}
    while sid in alias and alias[sid] not in seen:
        sid = alias[sid]
        seen.add(sid)
    return sid


def group(alias: Mapping[str, str], sid: str) -> list[str]:
    """All ids of the same person, sorted."""
    who = survivor(alias, sid)
    return sorted({who, *(other for other in alias if survivor(alias, other) == who)})
