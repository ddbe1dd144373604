"""The API's handler in the process, on a moto table, called with the gateway's events (payload 2.0)."""

from __future__ import annotations

import base64
import io
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import boto3
from moto import mock_aws

from functions.api import app
from shared.ledger.events import Event
from shared.store import ledger
from shared.store.bucket import Bucket
from shared.store.table import Table, from_wire
from shared.usecases import access, bootstrap
from shared.usecases.context import Context

NOW = 1_790_000_000_000_000
"""2026-09-21T14:13:20Z"""
ADMIN_KEY = "test-admin-key"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [(e["field"], e["code"]) for e in self.body["errors"]]


@dataclass
class Api:
    ctx: Context
    asked: list[tuple[str, int]] = field(default_factory=list)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> Reply:
        sent = {k.lower(): v for k, v in (headers or {}).items()}
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        payload = raw if raw is not None else (json.dumps(body).encode() if body is not None else b"")
        event = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": urlencode(query),
            "headers": sent,
            "queryStringParameters": query or None,
            "requestContext": {
                "http": {"method": method, "path": path, "sourceIp": "192.0.2.1"},
                "requestId": "req-1",
                "stage": "$default",
            },
            "body": base64.b64encode(payload).decode() if payload else None,
            "isBase64Encoded": bool(payload),
        }
        answer = app.handler(event, SimpleNamespace(aws_request_id="lambda-1"))  # type: ignore[arg-type]
        return Reply(answer["statusCode"], answer["headers"], answer.get("body") or "")

    def admin(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        return self.call(method, path, body, ADMIN_KEY, **more)

    def at(self, now: int) -> None:
        """Set the clock."""
        self.clock[0] = now

    clock: list[int] = field(default_factory=lambda: [NOW])
    log: io.StringIO = field(default_factory=io.StringIO)

    def logged(self) -> list[str]:
        """The lines logged so far, as they go out."""
        return self.log.getvalue().splitlines()

    def dump(self) -> list[dict[str, Any]]:
        """Every item of the table."""
        found = self.ctx.table.client.scan(TableName=self.ctx.table.name)["Items"]
        return sorted((from_wire(i) for i in found), key=lambda i: (i["pk"], i["sk"]))

    def inbox(self, pool: str) -> list[Event]:
        return ledger.read_inbox(self.ctx.table, pool, 1000)

    def newest(self, pool: str, kind: str) -> Event:
        """The waiting event of a kind with the highest number."""
        return max((e for e in self.inbox(pool) if e.kind == kind), key=lambda e: e.number)

    def club(self, club: str, *scopes: str) -> str:
        """A club with a key of these scopes."""
        assert self.admin("PUT", f"/v1/clubs/{club}", {"name": club.title()}).status in (200, 201)
        reply = self.admin("POST", f"/v1/clubs/{club}/keys", {"scopes": list(scopes or ("submit", "manage"))})
        assert reply.status == 201, reply.text
        return str(reply.body["key"])


@contextmanager
def running_api() -> Iterator[Api]:
    """A fresh table and the handler on it."""
    env = {
        "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    with mock.patch.dict(os.environ, env), mock_aws():
        session = _session()
        client = session.client("dynamodb")
        name = f"table-{uuid.uuid4().hex}"
        client.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
        )
        storage = session.client("s3")
        for bucket in ("data", "site"):
            storage.create_bucket(
                Bucket=f"{bucket}-{name}", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
            )
        asked: list[tuple[str, int]] = []
        clock = [NOW]
        ctx = Context(
            table=Table(client, name),
            data=Bucket(storage, f"data-{name}"),
            site=Bucket(storage, f"site-{name}"),
            clock=lambda: clock[0],
            ask_to_publish=lambda pool, delay: asked.append((pool, delay)),
            site_origin="https://ladder.example.org",
        )
        access.install_admin_key(ctx.table, ADMIN_KEY)
        with mock.patch.object(bootstrap, "context", return_value=ctx):
            api = Api(ctx, asked, clock=clock)
            handler: Any = app.log.registered_handler
            stream = handler.setStream(api.log)
            try:
                yield api
            finally:
                handler.setStream(stream)


@cache
def _session() -> boto3.Session:
    """One for all tests: it keeps what it read of the services' models."""
    return boto3.Session()
