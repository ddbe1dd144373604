"""The monthly job: closes every pool whose month has turned in its own time zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.store import pools
from shared.usecases import closing, watch
from shared.usecases.bootstrap import context

log = Logger(service="closing")
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], invocation: object) -> dict[str, Any]:
    """Close all pools by the schedule's time. One pool's error is reported and the others go on."""
    log.append_keys(correlation_id=getattr(invocation, "aws_request_id", ""))
    ctx = context().patient()
    now = watch.schedule_time(event.get("at"), ctx.clock())
    frozen: dict[str, list[str]] = {}
    for pool in pools.all_ids(ctx.table):
        try:
            frozen[pool] = closing.close(ctx, pool, now)
            log.info("pool closed", pool=pool, frozen=frozen[pool])
        except Exception as error:
            log.error("pool not closed", pool=pool, **watch.fault(error))
            metrics.add_metric("PoolsFailed", MetricUnit.Count, 1)
            ctx.report_failure(pool, type(error).__name__)
    metrics.add_metric("MonthsFrozen", MetricUnit.Count, sum(map(len, frozen.values())))
    return {"frozen": {pool: months for pool, months in frozen.items() if months}}
