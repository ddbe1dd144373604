"""Woken by the publish queue: writes the pages that changed. A message without a pool writes what all pools share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.usecases import wake, watch
from shared.usecases.bootstrap import context
from shared.usecases.context import Context
from site_builder import publisher

log = Logger(service="publisher")
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], invocation: object) -> dict[str, Any]:
    """Publish each pool once. A pool that fails goes back to the queue; after its attempts, to the dead letters."""
    log.append_keys(correlation_id=getattr(invocation, "aws_request_id", ""))
    ctx = context()
    records = event.get("Records", [])
    wanted: dict[str, list[str]] = {}
    for record in records:
        wanted.setdefault(_pool(record), []).append(record["messageId"])
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
        )
    return True


def _pool(record: Mapping[str, Any]) -> str:
    try:
        body = json.loads(record.get("body", ""))
    except ValueError:
        return ""
    pool = body.get("pool") if isinstance(body, dict) else None
    return pool if isinstance(pool, str) else ""
