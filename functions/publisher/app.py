"""Woken by the publish queue: writes the pages that changed. A message without a pool writes what all pools share; one
with a run and a stage asks for help with another run's pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.usecases import wake, watch
from shared.usecases.bootstrap import context
from shared.usecases.context import Context
from site_builder import parts, publisher

log = Logger(service="publisher")
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], invocation: object) -> dict[str, Any]:
    """Publish each pool once. A pool that fails goes back to the queue; after its attempts, to the dead letters."""
    log.append_keys(correlation_id=getattr(invocation, "aws_request_id", ""))
    ctx = context()
    wanted: dict[str, list[str]] = {}
    for record in event.get("Records", []):
        asked = _asked(record)
        if asked.run:
            _help(ctx, asked)
        else:
            wanted.setdefault(asked.pool, []).append(record["messageId"])
    if wanted or not event.get("Records"):
        publisher.publish_site(ctx)
    failed = [message for pool, messages in wanted.items() if not _publish(ctx, pool) for message in messages]
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _publish(ctx: Context, pool: str) -> bool:
    try:
        done = publisher.publish(ctx, pool) if pool else None
    except publisher.Overtaken:
        wake.ask(ctx, pool)
        return True
    except Exception as error:
        log.error("pool not published", pool=pool, **watch.fault(error))
        metrics.add_metric("PublicationsFailed", MetricUnit.Count, 1)
        return False
    if done is not None:
        metrics.add_metric("ObjectsWritten", MetricUnit.Count, done.written)
        log.info(
            "pool published",
            pool=pool,
            publication=done.publication,
            position=done.position,
            built=done.built,
            written=done.written,
            bytes=done.bytes,
            helped=done.helped,
        )
    return True


def _help(ctx: Context, asked: _Asked) -> None:
    """Help another run. When that fails nothing is lost: the run that asked does again what is missing."""
    try:
        done = parts.help_out(ctx, asked.pool, asked.run, asked.stage)
    except publisher.Overtaken:
        return
    except Exception as error:
        log.error("no help with a publication", pool=asked.pool, **watch.fault(error))
        return
    if done is not None:
        log.info(
            "helped with a publication", pool=asked.pool, stage=asked.stage, written=done.written, bytes=done.bytes
        )


class _Asked(NamedTuple):
    """What a message asks for."""

    pool: str = ""
    run: int = 0
    """Of whom help is asked; 0: a publication is."""
    stage: str = ""


def _asked(record: Mapping[str, Any]) -> _Asked:
    try:
        body = json.loads(record.get("body", ""))
    except ValueError:
        return _Asked()
    pool, run, stage = (body.get(name) for name in _Asked._fields) if isinstance(body, dict) else ("", 0, "")
    if not isinstance(pool, str):
        return _Asked()
    return _Asked(pool, run, stage) if isinstance(run, int) and isinstance(stage, str) else _Asked(pool)
