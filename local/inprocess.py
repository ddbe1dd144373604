"""The whole system inside one Python process, for tests: the real handlers, called the way AWS calls them.

    with System.on_moto() as system:
        status, headers, body = system.request("PUT", "/v1/clubs/a", json={"name": "A"}, key=system.admin_key)
        system.settle()                                     # rates and publishes what was sent
        system.schedule("closing", "2026-12-01T00:05:00Z")  # does what the schedule does
        page = system.page("/")                             # what a reader sees

Table, buckets and queues are made as template.yaml says, so keys, stream and TTL are written there only.
"""

import base64
import importlib
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

import boto3
import botocore.session

from local import grants, schedules, settling, template
from local.emulator import REGION
from local.system import NotSettledError, http_event, publish_event
from shared.store import keys

ADMIN_KEY = "admin-key-of-the-tests"
ORIGIN = "https://ladder.test"
_ROUNDS_WITHOUT_PROGRESS = 3
_TEXT = ("text/", "application/json", "application/javascript", "application/xml")


class Answer(NamedTuple):
    """An answer of the API: `status, headers, body = system.request(...)`. JSON is parsed."""

    status: int
    headers: dict[str, str]
    body: Any


class LambdaContext:
    """What a handler is told of its invocation."""

    memory_limit_in_mb = 1024
    function_version = "$LATEST"
    log_group_name = log_stream_name = "local"

    def __init__(self, function: str) -> None:
        self.function_name = function
        self.invoked_function_arn = f"arn:aws:lambda:{REGION}:000000000000:function:{function}"
        self.aws_request_id = str(uuid.uuid4())

    def get_remaining_time_in_millis(self) -> int:
        """Plenty."""
        return 900_000


class System:
    """The system, over moto or over an emulator's endpoint. Not more than one at a time in a process."""

    def __init__(self, endpoint: str | None = None) -> None:
        self.endpoint = endpoint
        self.admin_key = ADMIN_KEY
        self.template = template.read()
        self.names: dict[str, str] = {}
        self._stack = ExitStack()
        self._lock = threading.RLock()
        self._running: list[str] = []
        self._grants: dict[str, dict[str, list[str]]] = {}

    @classmethod
    def on_moto(cls) -> Self:
        """In this process alone; fast with tens of items, slow with thousands."""
        return cls()

    @classmethod
    def on_endpoint(cls, url: str) -> Self:
        """Over DynamoDB, S3 and SQS of a running emulator, in a table and buckets of its own."""
        return cls(url)

    # -- life ----------------------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        self._stack.callback(_restore_environment, dict(os.environ))
        os.environ.update(
            AWS_ACCESS_KEY_ID="testing",
            AWS_SECRET_ACCESS_KEY="testing",  # noqa: S106  (nobody checks it)
            AWS_DEFAULT_REGION=REGION,
            AWS_REGION=REGION,
            AWS_ACCOUNT_ID_ENDPOINT_MODE="disabled",
            AWS_EC2_METADATA_DISABLED="true",
            POWERTOOLS_METRICS_DISABLED="true",
        )
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
            os.environ.pop(name, None)
        if self.endpoint is None:
            from moto import mock_aws

            self._stack.enter_context(mock_aws())
        else:
            os.environ["AWS_ENDPOINT_URL"] = self.endpoint
        self._stack.callback(setattr, boto3, "DEFAULT_SESSION", boto3.DEFAULT_SESSION)
        session, boto3.DEFAULT_SESSION = _session(on_moto=self.endpoint is None)
        session.register("provide-client-params", self._check_grant)
        self._stack.callback(session.unregister, "provide-client-params", self._check_grant)
        self.dynamodb: Any = boto3.client("dynamodb")
        self.s3: Any = boto3.client("s3")
        self.sqs: Any = boto3.client("sqs")
        self._make_resources()
        for function in template.of_type(self.template, "AWS::Serverless::Function"):
            os.environ.update(template.environment(self.template, function, self.names))
            self._grants[function] = grants.granted(self.template, function, self.names)
        os.environ["POWERTOOLS_LOG_LEVEL"] = "WARNING"
        from shared.usecases import bootstrap

        self._stack.callback(setattr, bootstrap, "_session", bootstrap._session)
        bootstrap._session = lambda: session  # type: ignore[assignment]
        self._stack.callback(setattr, bootstrap, "UPLOADS_AT_ONCE", bootstrap.UPLOADS_AT_ONCE)
        self._stack.callback(setattr, bootstrap, "WRITES_AT_ONCE", bootstrap.WRITES_AT_ONCE)
        if self.endpoint is None:
            bootstrap.UPLOADS_AT_ONCE = bootstrap.WRITES_AT_ONCE = 1  # moto is not safe under threads
        self._forget_context()
        self._stack.callback(self._forget_context)
        self._install_admin_key()

    @staticmethod
    def _forget_context() -> None:
        from shared.usecases import bootstrap

        bootstrap.context.cache_clear()

    def _install_admin_key(self) -> None:
        from shared.store.table import Table
        from shared.usecases.access import install_admin_key

        install_admin_key(Table(self.dynamodb, self.names["Table"]), self.admin_key)

    def _make_resources(self) -> None:
        suffix = uuid.uuid4().hex[:12]
        for name in template.of_type(self.template, "AWS::S3::Bucket"):
            bucket = f"{name.lower()}-{suffix}"
            self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
            self.names |= {name: bucket, f"{name}.Arn": f"arn:aws:s3:::{bucket}"}
        for name in template.of_type(self.template, "AWS::SQS::Queue"):
            url = self.sqs.create_queue(QueueName=f"{name}-{suffix}")["QueueUrl"]
            self.names |= {name: url, f"{name}.Arn": grants.queue_arn(REGION, url)}
        self.names |= {
            "Distribution.DomainName": urlsplit(ORIGIN).netloc,
            "HttpApi": "api",
            "AWS::StackName": "stack",
            **template.UNLIMITED,
            "AWS::Region": REGION,
            "AWS::URLSuffix": "test",
        }
        (table,) = template.of_type(self.template, "AWS::DynamoDB::Table").values()
        properties = table["Properties"]
        name = f"table-{suffix}"
        self.names |= {"Table": name, "Table.Arn": grants.table_arn(REGION, name), "Table.StreamArn": "stream"}
        self.dynamodb.create_table(
            TableName=self.names["Table"],
            BillingMode=properties["BillingMode"],
            AttributeDefinitions=properties["AttributeDefinitions"],
            KeySchema=properties["KeySchema"],
            StreamSpecification={"StreamEnabled": True, **properties["StreamSpecification"]},
        )
        self.dynamodb.update_time_to_live(
            TableName=self.names["Table"], TimeToLiveSpecification=properties["TimeToLiveSpecification"]
        )

    # -- calls ---------------------------------------------------------------------------------------------------
    def invoke(self, function: str, event: Any) -> Any:
        """Call a function's handler, by its name in the template."""
        module, _, name = self.template["Resources"][function]["Properties"]["Handler"].rpartition(".")
        handler: Callable[[Any, Any], Any] = getattr(importlib.import_module(module), name)
        with self._lock:  # moto is not safe under threads
            self._running.append(function)
            try:
                answer = handler(json.loads(json.dumps(event)), LambdaContext(function))
            finally:
                self._running.pop()
        return json.loads(json.dumps(answer))

    def _check_grant(self, params: dict[str, Any], model: Any, context: Mapping[str, Any], **_: Any) -> None:
        """A handler may do what the template's role lets it do, and nothing else.

        A form for an upload is signed without a call, under the name of another operation: it is passed over.
        """
        form = model.name == "CreateBucket" and context.get("is_presign_request")
        if self._running and not form:
            wanted = grants.needs(model.service_model.service_name, model.name, params, REGION)
            grants.check(self._grants[self._running[-1]], wanted, model.name)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send a request to the API; `path` may carry a query."""
        sent = {"host": "api.test", "user-agent": "tests", **{k.lower(): v for k, v in (headers or {}).items()}}
        if json is not None:
            body = _dumps(json)
            sent.setdefault("content-type", "application/json")
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        status, answered, raw = self.handle(method, path, sent, body)
        parsed = _loads(raw) if "json" in answered.get("content-type", "") and raw else raw
        return Answer(status, answered, parsed)

    def admin(self, method: str, path: str, json: Any = None, **more: Any) -> Answer:
        """The same with the admin's key."""
        return self.request(method, path, json=json, key=self.admin_key, **more)

    def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request as bytes, through the event an HTTP API makes of it, and its answer as bytes."""
        path, _, query = path.partition("?")
        is_text = headers.get("content-type", "application/octet-stream").startswith(_TEXT)
        text: str | None = None
        if body:
            try:
                text = body.decode() if is_text else base64.b64encode(body).decode()
            except UnicodeDecodeError:
                text, is_text = base64.b64encode(body).decode(), False
        event = http_event(method, path, query=query, headers=headers, body=text, is_base64=bool(body) and not is_text)
        answer = self.invoke("ApiFunction", event)
        content = answer.get("body") or ""
        raw = base64.b64decode(content) if answer.get("isBase64Encoded") else content.encode()
        answered = {name.lower(): str(value) for name, value in answer.get("headers", {}).items()}
        return int(answer["statusCode"]), answered, raw

    def schedule(self, name: str, at: str | None = None) -> Any:
        """Do what a schedule of the template does when it is due."""
        resolve = template.Resolver(self.template, self.names)
        found = {
            resolve(resource["Properties"]["Name"]): resource["Properties"]["Target"]
            for resource in template.of_type(self.template, "AWS::Scheduler::Schedule").values()
        }
        chosen = schedules.choose(name, found, "stack")
        if chosen is None:
            raise KeyError(name)
        target = found[chosen]
        return self.invoke(target["Arn"]["Fn::GetAtt"][0], _loads(schedules.filled(target["Input"], at).encode()))

    # -- what happens by itself in the cloud ---------------------------------------------------------------------
    def states(self) -> list[settling.PoolState]:
        """How far each pool is."""
        return settling.pool_states(self.dynamodb, self.names["Table"])

    def settle(self) -> list[settling.PoolState]:
        """Rate what lies in the inboxes, then publish what changed or was asked for."""
        standing, before, asked = 0, None, set[str]()
        while True:
            asked |= self._messages()
            states = self.states()
            inboxes = [state.pool for state in states if not state.is_rated]
            waiting = sorted(asked | {state.pool for state in states if not state.is_published})
            if not inboxes and not waiting:
                return states
            standing, before = (standing + 1 if before == (states, waiting) else 0), (states, waiting)
            if standing == _ROUNDS_WITHOUT_PROGRESS:
                message = f"no progress: {settling.unsettled(states) or waiting}"
                raise NotSettledError(message)
            if inboxes:
                self.rate(inboxes)
            else:
                self.publish(waiting)
                asked.clear()

    def rate(self, pools: Iterable[str]) -> Any:
        """Wake the rater for some pools, as the stream does."""
        return self.invoke("RaterFunction", stream_event(keys.inbox(pool, 0) for pool in pools))

    def publish(self, pools: Iterable[str]) -> Any:
        """Wake the publisher for some pools, as its queue does."""
        return self.invoke("PublisherFunction", publish_event(list(pools)))

    def _messages(self) -> set[str]:
        """Take all messages from the publish queue."""
        pools: set[str] = set()
        url = self.names["PublishQueue"]
        while found := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in found:
                asked = _loads(message["Body"].encode())
                if "run" not in asked:  # help for a run that is over
                    pools.add(asked["pool"])
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return pools

    # -- the site ------------------------------------------------------------------------------------------------
    def object(self, key: str) -> tuple[bytes, str] | None:
        """An object of the site bucket and its content type."""
        try:
            found = self.s3.get_object(Bucket=self.names["SiteBucket"], Key=key)
        except self.s3.exceptions.NoSuchKey:
            return None
        return found["Body"].read(), found["ContentType"]

    def page(self, path: str) -> tuple[int, str, bytes]:
        """What CloudFront answers: (status, content type, bytes)."""
        key = (path + "index.html" if path.endswith("/") else path).lstrip("/")
        if found := self.object(key):
            return 200, found[1], found[0]
        missing = self.object("404.html") or (b"", "text/plain")
        return 404, missing[1], missing[0]

    def keys(self) -> list[str]:
        """Every object of the site."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.names["SiteBucket"])
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def wsgi(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """API and site as one WSGI application: for schemathesis, a browser, a load tool."""
        path, method = environ["PATH_INFO"].encode("latin-1").decode(errors="replace"), environ["REQUEST_METHOD"]
        if path == "/v1" or path.startswith("/v1/"):
            headers = {
                name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")
            }
            if environ.get("CONTENT_TYPE"):
                headers["content-type"] = environ["CONTENT_TYPE"]
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            target = quote(path, safe="/:%") + (f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else "")
            status, answered, raw = self.handle(method, target, headers, body)
        else:
            with self._lock:
                status, kind, raw = self.page(path)
            answered = {"content-type": kind}
        answered["content-length"] = str(len(raw))
        start_response(f"{status} {_REASONS.get(status, 'Answer')}", list(answered.items()))
        return [b"" if method == "HEAD" else raw]


_REASONS = {200: "OK", 404: "Not Found"}


def stream_event(partitions: Iterable[str]) -> dict[str, Any]:
    """What the rater gets from the table's stream: keys of inserts, and nothing else."""
    return {
        "Records": [
            {
                "eventID": f"{number:032x}",
                "eventName": "INSERT",
                "eventVersion": "1.1",
                "eventSource": "aws:dynamodb",
                "awsRegion": REGION,
                "dynamodb": {
                    "Keys": {"pk": {"S": partition}, "sk": {"S": f"local-{number}"}},
                    "SequenceNumber": str(100000 + number),
                    "SizeBytes": 64,
                    "StreamViewType": "KEYS_ONLY",
                },
                "eventSourceARN": f"arn:aws:dynamodb:{REGION}:000000000000:table/local/stream/local",
            }
            for number, partition in enumerate(partitions)
        ]
    }


@cache
def _session(*, on_moto: bool) -> Any:  # noqa: ARG001 - one of each kind
    """One session for all systems of a kind, botocore's and boto3's around it: it keeps the services' models, 0.3 s.

    Two kinds, as only one made after moto is imported reaches moto. Its clients' messages are not held back: nobody
    waits here.
    """
    session: Any = botocore.session.get_session()
    session.register("provide-client-params.sqs.SendMessage", _without_delay)
    return session, boto3.Session(botocore_session=session)


def _without_delay(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return {**params, "DelaySeconds": 0}


def _restore_environment(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def _loads(raw: bytes) -> Any:
    return json.loads(raw)
