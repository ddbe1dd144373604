"""How many requests a key, a pool and an address may make in a minute. See docs/decisions/0020-limits.md.

Every process counts for itself. What a process may use up without asking anybody is small (``FREE``); beyond that it
takes shares of the subject's budget out of one item a minute in the table, so that the limit holds over all processes
at one write per share, and a club with twenty games a week never costs a write.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.problems import Problem
from shared.ratings.base import MICROSECONDS
from shared.store import keys
from shared.store.table import Busy, ConditionFailed, Table, Update

WINDOW_SECONDS = 60
FREE = 5
"""Requests a process serves per subject and window before it takes a share: a table write per share is the price. Few,
as five hundred requests a second begin some three hundred processes, and each serves so many beside the limit."""
SHARE = 10
"""Requests of a budget that a process takes at once. What it does not use of them is lost: so they are few."""
LEAST_SHARES = 20
"""A small budget is taken in so many shares at least."""
FORGET_SECONDS = 3600
"""The table forgets a window's item so long after its end."""
MOST_SUBJECTS = 20_000
"""A process remembers so many callers in one window; a flood from more addresses than that starts the count anew."""


@dataclass
class _Count:
    used: int = 0
    left: int = FREE
    refused: bool = False


@dataclass
class Limits:
    """The counts of one process, of the window that runs."""

    per_key: int = 0
    """Requests a minute of one key, and of one address without a key; 0: no limit."""
    per_pool: int = 0
    """Changing requests a minute to one pool, over all clubs; 0: no limit."""
    window: int = 0
    counts: dict[str, _Count] = field(default_factory=dict)

    def key(self, table: Table, now: int, key_id: str) -> None:
        """Count a request of a key. Raises Problem 429."""
        self._shared(table, now, f"key#{key_id}", self.per_key, "This key sends")

    def pool(self, table: Table, now: int, pool: str) -> None:
        """Count a request that may change a pool. Raises Problem 429."""
        self._shared(table, now, f"pool#{pool}", self.per_pool, "This pool gets")

    def address(self, now: int, address: str) -> None:
        """Count a request of an address, in this process only: addresses are never stored. Raises Problem 429."""
        if not self.per_key or not address:
            return
        count = self._count(now, f"address#{_network(address)}")
        if count.used >= self.per_key:
            raise self._too_many(now, "This address sends")
        count.used += 1

    def _shared(self, table: Table, now: int, subject: str, limit: int, who: str) -> None:
        if not limit:
            return
        count = self._count(now, subject)
        if count.left == 0 and not count.refused:
            count.left = _take_share(table, self.window, subject, limit)
            count.refused = count.left == 0
        if count.refused:
            raise self._too_many(now, who)
        count.left -= 1

    def _count(self, now: int, subject: str) -> _Count:
        window = now // (WINDOW_SECONDS * MICROSECONDS)
        if window != self.window or len(self.counts) >= MOST_SUBJECTS:
            self.window, self.counts = window, {}
        return self.counts.setdefault(subject, _Count())

    def _too_many(self, now: int, who: str) -> Problem:
        end = (self.window + 1) * WINDOW_SECONDS * MICROSECONDS
        seconds = max(1, -(-(end - now) // MICROSECONDS))
        detail = f"{who} too many requests. Nothing was stored; please try again in {seconds} s."
        return Problem(429, "too-many-requests", detail, retry_after=seconds)


def share_of(limit: int) -> int:
    """How many requests of a budget a process takes at once."""
    return max(1, min(SHARE, limit // LEAST_SHARES))


def _take_share(table: Table, window: int, subject: str, limit: int) -> int:
    """A share of what is left of a subject's budget; 0 when nothing is. A busy table refuses nobody for our sake."""
    share = share_of(limit)
    until = (window + 1) * WINDOW_SECONDS + FORGET_SECONDS
    try:
        table.write(
            Update(
                keys.limit(subject, window),
                "ADD #used :share SET #ttl = :ttl",
                {"share": share, "ttl": until, "most": limit - share},
                "attribute_not_exists(#used) OR #used <= :most",
            )
        )
    except ConditionFailed:
        return 0
    except Busy:
        return share
    return share


def _network(address: str) -> str:
    """Who shares a fate: an IPv4 address; of IPv6 the /64, since one caller has as many addresses as he likes in it."""
    if ":" not in address:
        return address
    head, gap, tail = address.partition("::")
    groups = head.split(":") if head else []
    if gap:
        behind = tail.split(":") if tail else []
        groups += ["0"] * (8 - len(groups) - len(behind)) + behind
    return ":".join(group.lstrip("0") or "0" for group in groups[:4])
