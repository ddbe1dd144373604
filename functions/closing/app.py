"""The monthly job: closes every pool whose month has turned in its own time zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from shared.ledger.order import to_instant
from shared.store import pools
from shared.usecases import closing
from shared.usecases.bootstrap import context

log = Logger()
metrics = Metrics()


@metrics.log_metrics
def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Close all pools by the schedule's time. One pool's error is reported and the others go on."""
    ctx = context()
    now = _instant(event.get("at"), ctx.clock())
    frozen: dict[str, list[str]] = {}
    for pool in pools.all_ids(ctx.table):
        try:
            frozen[pool] = closing.close(ctx, pool, now)
        except Exception as error:
            log.exception("pool not closed", pool=pool)
            metrics.add_metric("PoolsFailed", MetricUnit.Count, 1)
            ctx.report_failure(pool, type(error).__name__)
    metrics.add_metric("MonthsFrozen", MetricUnit.Count, sum(map(len, frozen.values())))
    return {"frozen": {pool: months for pool, months in frozen.items() if months}}


def _instant(at: Any, otherwise: int) -> int:
    """The schedule's time, when it gave one."""
    if not isinstance(at, str):
        return otherwise
    try:
        moment = dt.datetime.fromisoformat(at.replace("Z", "+00:00"))
    except ValueError:
        return otherwise
    return to_instant(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
