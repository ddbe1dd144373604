"""Woken by the stream of inbox entries, by the sweep, or for one pool: rates what waits. Carries nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.store import pools
from shared.store.table import Busy
from shared.usecases import rating, wake, watch
from shared.usecases.bootstrap import context
from shared.usecases.context import Context

log = Logger(service="rater")
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], invocation: object) -> dict[str, Any]:
    """One wake-up. Never raises for one pool's sake: that pool is reported, the others go on."""
    log.append_keys(correlation_id=getattr(invocation, "aws_request_id", ""))
    ctx = context().patient()
    for pool in _pools(ctx, event):
        rate(ctx, pool)
    return {"batchItemFailures": []}


def rate(ctx: Context, pool: str) -> None:
    """Bring one pool up to date; an unexpected error becomes a dead letter and an alarm.

    A busy table or bucket is none: what was not done waits for the next wake-up, and its age is watched.
    """
    try:
        applied = rating.apply(ctx, pool)
    except Busy:
        log.warning("pool not rated: the table is busy", pool=pool)
        metrics.add_metric("PoolsBusy", MetricUnit.Count, 1)
        return
    except Exception as error:
        log.error("pool not rated", pool=pool, **watch.fault(error))
        metrics.add_metric("PoolsFailed", MetricUnit.Count, 1)
        ctx.report_failure(pool, type(error).__name__)
        return
    if applied.changed:
        metrics.add_metric("EventsRated", MetricUnit.Count, applied.events)
        log.info("pool rated", pool=pool, events=applied.events, replays=applied.replays, position=applied.position)


def _pools(ctx: Context, event: Mapping[str, Any]) -> Iterable[str]:
    """Which pools a wake-up is about."""
    if "Records" in event:
        return _announced(event["Records"])
    if event.get("task") == "sweep":
        return _left_behind(ctx, watch.schedule_time(event.get("at"), ctx.clock()))
    return [event["pool"]] if "pool" in event else []


def _announced(records: Iterable[Mapping[str, Any]]) -> list[str]:
    found: dict[str, None] = {}
    for record in records:
        pk = record.get("dynamodb", {}).get("Keys", {}).get("pk", {}).get("S", "")
        if pk.startswith("INBOX#"):
            found[pk.split("#")[1]] = None
    return list(found)


def _left_behind(ctx: Context, now: int) -> list[str]:
    """Every pool: what the stream never announced is found here, and a publication that got lost is asked for."""
    found = pools.all_ids(ctx.table)
    seen = watch.look(ctx, found, now)
    metrics.add_metric("OldestUnratedSeconds", MetricUnit.Seconds, seen.oldest_unrated)
    metrics.add_metric("OldestUnpublishedSeconds", MetricUnit.Seconds, seen.oldest_unpublished)
    metrics.add_metric("MonthsUnclosed", MetricUnit.Count, seen.months_unclosed)
    for pool in found:
        if wake.is_behind(ctx, pool):
            wake.ask(ctx, pool)
    return found
