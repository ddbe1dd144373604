"""Woken by the queue that uploads are announced in: runs their imports, and goes on with those that broke off."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.ids import fold_id
from shared.store import imports
from shared.store.table import Busy
from shared.usecases import import_jobs, watch
from shared.usecases.bootstrap import context
from shared.usecases.context import Context
from shared.usecases.import_jobs import Locked

PREFIX = "uploads/"
PATIENCE, STEP = 120.0, 1.0
"""Seconds for which an import waits for another one of its club, and between two looks."""

log = Logger(service="importer")
metrics = Metrics()


class ImportsLeftError(Exception):
    """Some imports are not over: the queue gives the message again."""


@metrics.log_metrics
def handler(event: Mapping[str, Any], invocation: object) -> None:
    """One message of the queue. Raises ImportsLeftError when it is to come back."""
    log.append_keys(correlation_id=getattr(invocation, "aws_request_id", ""))
    ctx = context().patient()
    left = [
        import_id
        for record in event.get("Records", ())
        for import_id in announced(record)
        if not run(ctx, import_id, PATIENCE)
    ]
    if left:
        raise ImportsLeftError(", ".join(left))


def run(ctx: Context, import_id: str, patience: float) -> bool:
    """Whether an import is over. Strangers made what it reads, so of a fault only its kind and place are told."""
    waited, told = 0.0, dict[str, Any](import_id=import_id)
    while True:
        try:
            job = imports.load(ctx.table, import_id)
            told |= {"pool": job.pool, "sender": job.club} if job is not None else {}
            status = import_jobs.run(ctx, import_id)
        except Locked:
            if waited < patience:
                time.sleep(STEP)
                waited += STEP
                continue
            log.info("import waits for another", **told)
            return False
        except Busy:
            log.info("import found the table busy", **told)
            return False
        except Exception as error:
            log.error("import broke off", **told, **watch.fault(error))
            metrics.add_metric("ImportsBroken", MetricUnit.Count, 1)
            return False
        log.info("import over", status=status, **told)
        return True


def announced(record: Mapping[str, Any]) -> Iterator[str]:
    """The imports a message of the queue tells of; a bucket's own test message tells of none."""
    body = json.loads(record["body"])
    for entry in body.get("Records", ()):
        key = unquote_plus(entry.get("s3", {}).get("object", {}).get("key", ""))
        import_id = fold_id(key.removeprefix(PREFIX))
        if key.startswith(PREFIX) and import_id is not None:
            yield import_id
