"""Woken by the stream of inbox entries, by the sweep, or for one pool: rates what waits. Carries nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.store import ledger, pools
from shared.usecases import rating, wake
from shared.usecases.bootstrap import context
from shared.usecases.context import Context

log = Logger()
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """One wake-up. Never raises for one pool's sake: that pool is reported, the others go on."""
    ctx = context()
    for pool in _pools(ctx, event):
        rate(ctx, pool)
    return {"batchItemFailures": []}


def rate(ctx: Context, pool: str) -> None:
    """Bring one pool up to date; an unexpected error becomes a dead letter and an alarm."""
    try:
        applied = rating.apply(ctx, pool)
    except Exception as error:
        log.exception("pool not rated", pool=pool)
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
        return _left_behind(ctx)
    return [event["pool"]] if "pool" in event else []


def _announced(records: Iterable[Mapping[str, Any]]) -> list[str]:
    found: dict[str, None] = {}
    for record in records:
        pk = record.get("dynamodb", {}).get("Keys", {}).get("pk", {}).get("S", "")
        if pk.startswith("INBOX#"):
            found[pk.split("#")[1]] = None
    return list(found)


def _left_behind(ctx: Context) -> list[str]:
    """Every pool: what the stream never announced is found here, and a publication that got lost is asked for."""
    found = pools.all_ids(ctx.table)
    waiting = 0
    for pool in found:
        waiting += ledger.pending(ctx.table, pool)
        if wake.is_behind(ctx, pool):
            wake.ask(ctx, pool)
    metrics.add_metric("EventsWaiting", MetricUnit.Count, waiting)
    return found
