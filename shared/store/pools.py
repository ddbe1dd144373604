"""Pool definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from shared.ledger.rules import DatedRules
from shared.ratings import rule_system
from shared.ratings.base import RuleSystem
from shared.store import keys
from shared.store.table import Item, Put, Table


@dataclass(frozen=True)
class Pool:
    """A pool as the use cases know it."""

    id: str
    name: str
    system: RuleSystem
    time_zone: str
    languages: tuple[str, ...]
    clubs: tuple[str, ...] | None
    """Which clubs may submit; None: every one."""
    rules: tuple[DatedRules, ...]
    """Ascending by date; never empty."""
    rules_as_given: tuple[dict[str, Any], ...]
    """``{"from": "2016-04-10", ...settings}`` as the admin gave them, for reading back."""
    version: int
    """Counts the versions of the definition, from 1."""
    created_at: int
    """Instant at which the pool was opened: months that ended before it have reconstructed lists."""
    rules_version: int = 1
    """The version with which the present rules came in; later ones changed only names, languages or clubs."""

    @property
    def settings(self) -> Any:
        """The newest settings."""
        return self.rules[-1].settings


def to_item(pool: Pool) -> Item:
    """A pool as its item."""
    pk, sk = keys.pool(pool.id)
    return {
        "pk": pk,
        "sk": sk,
        "pool": pool.id,
        "name": pool.name,
        "system": pool.system.name,
        "time_zone": pool.time_zone,
        "languages": list(pool.languages),
        "clubs": list(pool.clubs) if pool.clubs is not None else None,
        "rules": json.dumps(
            [{"since": r.since, "given": g} for r, g in zip(pool.rules, pool.rules_as_given, strict=True)]
        ),
        "version": pool.version,
        "created_at": pool.created_at,
        "rules_version": pool.rules_version,
    }


def past_rules(pool: Pool) -> Put:
    """Keeps a pool's rules when new ones take their place, with the last version under which they held."""
    pk, sk = keys.past_rules(pool.id, pool.version)
    return Put({**to_item(pool), "pk": pk, "sk": sk})


def as_rated(table: Table, pool: Pool, version: int) -> Pool:
    """The pool with the rules of an earlier version: those by which its ratings came about, and are explained, until
    the rater has applied the newest. No round trip unless new rules wait to be applied.

    Args:
        version: the cursor's ``rules_version``; 0 before anything is rated.
    """
    if version >= pool.rules_version or not version:
        return pool
    pk, first = keys.past_rules(pool.id, version)
    item = next(iter(table.query(pk, first=first, limit=1)), None)
    if item is None:
        return pool
    then = from_item(item)
    return replace(pool, rules=then.rules, rules_as_given=then.rules_as_given, version=version)


def from_item(item: Item) -> Pool:
    """A pool from its item."""
    system = rule_system(item["system"])
    rules, given = [], []
    for entry in json.loads(item["rules"]):
        settings = {k: v for k, v in entry["given"].items() if k != "from"}
        rules.append(DatedRules(entry["since"], system.settings_model.model_validate(settings)))
        given.append(entry["given"])
    return Pool(
        id=item["pool"],
        name=item["name"],
        system=system,
        time_zone=item["time_zone"],
        languages=tuple(item["languages"]),
        clubs=tuple(item["clubs"]) if item.get("clubs") is not None else None,
        rules=tuple(rules),
        rules_as_given=tuple(given),
        version=item["version"],
        created_at=item["created_at"],
        rules_version=item["rules_version"] if "rules_version" in item else item["version"],
    )


def load(table: Table, pool_id: str) -> Pool | None:
    """A pool, or None. One round trip."""
    item = table.get(*keys.pool(pool_id))
    return from_item(item) if item else None


def all_ids(table: Table) -> list[str]:
    """The ids of all pools, sorted."""
    return [item["sk"] for item in table.query(keys.pools())]
