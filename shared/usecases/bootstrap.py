"""The one composition root: what a function needs of the outside world, built once and only when it is used."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from shared.settings import Settings, from_environment
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases.context import Context
from shared.usecases.throttle import Limits

if TYPE_CHECKING:
    from botocore.session import Session

CONNECT_SECONDS = 2
READ_SECONDS = 5
"""A call that takes longer than this is tried again: DynamoDB answers in milliseconds."""
CLIENT_ATTEMPTS = 3
UPLOADS_AT_ONCE = 16
"""An object takes S3 some 30 ms, and two questions: one after another, 100,000 players would take hours."""
WRITES_AT_ONCE = 8
"""A transaction of a hundred rows takes DynamoDB some 50 ms: eight write more than the keys of a month take."""
HELPERS = 8
"""Runs of the publisher that a large publication asks for beside its own; MaximumConcurrency leaves room for others."""
LONGEST_DELAY = 900
"""SQS holds a message back for at most so many seconds."""

log = logging.getLogger(__name__)


class _Later:
    """A client that is made at its first use: the API rarely needs S3, and each costs some 30 ms."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)


@cache
def _session() -> Session:
    from botocore.session import get_session  # here: tests that bring their own context need none of it

    return get_session()


def _client(service: str) -> Any:
    def make() -> Any:
        # Without boto3 around it: its clients are these, and its import takes longer than all of botocore's.
        from botocore.config import Config

        return _session().create_client(
            service,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                max_pool_connections=2 * UPLOADS_AT_ONCE,
                retries={"mode": "standard", "total_max_attempts": CLIENT_ATTEMPTS},
                s3={"addressing_style": "virtual"},  # so that forms for uploads name the bucket's own host and region
            ),
        )

    return _Later(make)


def _sender(queue: Any, url: str) -> Callable[[dict[str, str | int], int], None]:
    def send(message: dict[str, str | int], delay: int) -> None:
        """Best effort: what the message asks for is stored already, and a sweep finds it when this is lost."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            queue.send_message(
                QueueUrl=url, MessageBody=json.dumps(message), DelaySeconds=max(0, min(delay, LONGEST_DELAY))
            )
        except (BotoCoreError, ClientError) as error:
            log.warning("message not sent, the sweep will do it: %s", type(error).__name__)

    return send


def build(settings: Settings) -> Context:
    """A context for these settings."""
    storage, queue = _client("s3"), _client("sqs")
    publish = _sender(queue, settings.publish_queue_url)
    failed = _sender(queue, settings.failed_queue_url)

    def report_failure(pool: str, reason: str) -> None:
        if settings.failed_queue_url:
            failed({"pool": pool, "reason": reason}, 0)

    return Context(
        table=Table(cast("Any", _client("dynamodb")), settings.table_name),
        data=Bucket(cast("Any", storage), settings.data_bucket),
        site=Bucket(cast("Any", storage), settings.site_bucket),
        ask_to_publish=lambda pool, delay: publish({"pool": pool}, delay),
        ask_for_help=lambda pool, run, stage: publish({"pool": pool, "run": run, "stage": stage}, 0),
        helpers=HELPERS if UPLOADS_AT_ONCE > 1 else 0,
        uploads_at_once=UPLOADS_AT_ONCE,
        writes_at_once=WRITES_AT_ONCE,
        publish_delay=settings.publish_delay_seconds,
        report_failure=report_failure,
        limits=Limits(settings.key_requests_per_minute, settings.pool_requests_per_minute),
        site_origin=settings.site_origin,
        api_origin=settings.api_origin,
    )


@cache
def context() -> Context:
    """The context of this process, from its environment. ``context.cache_clear()`` forgets it (tests)."""
    return build(from_environment())
