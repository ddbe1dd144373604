"""What a use case is given: table, buckets, the time and fresh ids. Built once per function by ``bootstrap``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shared.ratings.base import MICROSECONDS
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases.throttle import Limits

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that is read for another."""


def random_token(length: int = 16) -> str:
    """A fresh random id of base-32 characters (5 bits each)."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def wall_clock() -> int:
    """Now, in microseconds since 1970."""
    return time.time_ns() * MICROSECONDS // 1_000_000_000


def _nobody_listens(*_: object) -> None:
    """Where no queue is set up, as in tests of a single use case."""


@dataclass(frozen=True)
class Context:
    """The outside world as the use cases see it."""

    table: Table
    data: Bucket
    """Private: checkpoints, ledger segments, uploads, the publisher's own notes."""
    site: Bucket
    """What CloudFront serves."""
    clock: Callable[[], int] = wall_clock
    token: Callable[[int], str] = random_token
    ask_to_publish: Callable[[str, int], None] = _nobody_listens
    """Wake the publisher for a pool after a delay in seconds."""
    ask_for_help: Callable[[str, int, str], None] = _nobody_listens
    """Wake another run of the publisher to help with a stage of a pool's run: pool, run, stage."""
    helpers: int = 0
    """How many are asked for at most; 0: a publication is one run's work."""
    uploads_at_once: int = 1
    """Pages that a publication sends at a time; 1: in the order in which they are built."""
    writes_at_once: int = 1
    """Transactions that a long replay sends at a time; 1: one after another."""
    publish_delay: int = 60
    """Seconds for which a pool's changes are gathered before its pages are written."""
    report_failure: Callable[[str, str], None] = _nobody_listens
    """A pool could not be rated for an unexpected reason: dead letter and alarm."""
    limits: Limits = field(default_factory=Limits)
    """How many requests this process has answered in the running minute."""
    site_origin: str = ""
    """``https://...`` of the public site, for links."""
    api_origin: str = ""
    """``https://...`` of the API."""

    def patient(self) -> Context:
        """The same for work that nobody waits for: what the table throttles is tried again for longer."""
        return replace(self, table=self.table.patient())
