"""Imports that outlast a request: what was sent, how far it is; and who of a club is importing just now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from shared.store import keys
from shared.store.table import ABSENT, Delete, Item, Put, Table, Update

Mode = Literal["strict", "lenient"]
Status = Literal["waiting", "running", "done", "failed"]
KEPT = 30 * 86_400
"""Seconds for which an import and its report can be read."""


@dataclass(frozen=True)
class ImportJob:
    """An import: its file lies at ``upload_key``, its report at ``report_key``."""

    id: str
    club: str
    pool: str
    mode: Mode
    preview: bool
    filename: str
    created_at: int
    """Instant."""
    options: Mapping[str, str] = field(default_factory=dict)
    """``sheet``, ``forfeits``."""
    answers: Mapping[str, str] = field(default_factory=dict)
    status: Status = "waiting"
    rows: int = 0
    done: int = 0
    """Rows that are settled: stored, found stored, or refused."""
    planned: bool = False
    """The report is made and nothing can stop the import any more: what is left is storing the rows."""

    @property
    def upload_key(self) -> str:
        """Where the file is in the data bucket."""
        return f"uploads/{self.id}"

    @property
    def report_key(self) -> str:
        """Where the report is in the data bucket."""
        return f"reports/{self.id}.json"

    @property
    def bad_rows_key(self) -> str:
        """Where the rows that were not taken are, when they are too many for the report."""
        return f"reports/{self.id}.csv"


def load(table: Table, import_id: str) -> ImportJob | None:
    """An import, or None. One round trip."""
    item = table.get(*keys.import_job(import_id))
    return _from_item(item) if item else None


def _from_item(item: Item) -> ImportJob:
    return ImportJob(
        id=item["import_id"],
        club=item["club"],
        pool=item["pool"],
        mode=item["mode"],
        preview=item["preview"],
        filename=item["filename"],
        created_at=item["created_at"],
        options=json.loads(item["options"]),
        answers=json.loads(item["answers"]),
        status=item["status"],
        rows=item["rows"],
        done=item["done"],
        planned=item["planned"],
    )


def create(job: ImportJob) -> Put:
    """Store a new import."""
    pk, sk = keys.import_job(job.id)
    item: Item = {
        "pk": pk,
        "sk": sk,
        "import_id": job.id,
        "club": job.club,
        "pool": job.pool,
        "mode": job.mode,
        "preview": job.preview,
        "filename": job.filename,
        "created_at": job.created_at,
        "options": json.dumps(dict(job.options)),
        "answers": json.dumps(dict(job.answers)),
        "status": job.status,
        "rows": job.rows,
        "done": job.done,
        "planned": job.planned,
        "ttl": job.created_at // 1_000_000 + KEPT,
    }
    return Put(item, ABSENT)


def begun(job: ImportJob) -> Update:
    """Somebody works on it."""
    return Update(keys.import_job(job.id), "SET #status = :running", {"running": "running"})


def planned(job: ImportJob, rows: int, done: int) -> Update:
    """It is decided: so many rows, so many of which have nothing to store."""
    values = {"rows": rows, "done": done, "yes": True, "running": "running"}
    return Update(
        keys.import_job(job.id), "SET #status = :running, #rows = :rows, #done = :done, #planned = :yes", values
    )


def progressed(import_id: str, rows: int) -> Update:
    """So many rows more are stored; written in the transaction that stores them."""
    return Update(keys.import_job(import_id), "ADD #done :rows", {"rows": rows})


def ended(job: ImportJob, status: Status, rows: int) -> Update:
    """It is over."""
    values = {"status": status, "rows": rows}
    return Update(keys.import_job(job.id), "SET #status = :status, #rows = :rows, #done = :rows", values)


# -- one import of a club at a time ----------------------------------------------------------------------------------
def lock(pool: str, club: str, holder: str, now: int, until: int) -> Put:
    """Take the lock, or keep it longer; fails when another run holds it."""
    pk, sk = keys.import_lock(pool, club)
    item = {"pk": pk, "sk": sk, "holder": holder, "until": until, "ttl": until // 1_000_000 + 86_400}
    free = f"{ABSENT} OR #holder = :holder OR #until < :now"
    return Put(item, free, {"holder": holder, "now": now})


def keep_lock(pool: str, club: str, holder: str, until: int) -> Update:
    """Keep the lock longer; fails when it was lost."""
    return Update(
        keys.import_lock(pool, club), "SET #until = :until", {"until": until, "holder": holder}, "#holder = :holder"
    )


def unlock(pool: str, club: str, holder: str) -> Delete:
    """Give it back, if it is still one's own."""
    return Delete(keys.import_lock(pool, club), "#holder = :holder", {"holder": holder})
