"""The deployed system as one object: what the gateway, the demo and the tests ask of it."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import urllib3

from local import schedules, settling
from local.deploy import STACK, Deployment
from local.emulator import Emulator

MIRROR_THREADS = 4
_PATIENCE = 0.2  # how long a pool may stand still before somebody is woken by hand
_FUNCTIONS = ("ApiFunction", "RaterFunction", "ImporterFunction", "ClosingFunction", "PublisherFunction")


class NotSettledError(Exception):
    """Something was not rated or not published in time."""


class FunctionFailedError(Exception):
    """A function raised; the message is what it said."""


class DeployedSystem:
    """The system in the emulator."""

    def __init__(self, emulator: Emulator, deployment: Deployment, site_directory: Path | None = None) -> None:
        self.emulator = emulator
        self.deployment = deployment
        self.site_directory = site_directory
        self._dynamodb = emulator.client("dynamodb")
        self._lambda = emulator.client("lambda")
        self._s3 = emulator.client("s3")
        self._sqs = emulator.client("sqs")
        self._scheduler = emulator.client("scheduler")
        self._mirror_lock = threading.Lock()
        self._mirrored: dict[str, str] = {}

    @property
    def table(self) -> str:
        """The table's name."""
        return self.deployment["Table"]

    def invoke(self, function: str, payload: str) -> Any:
        """Invoke a function by its name in the template, and wait for its answer."""
        answer = self._lambda.invoke(FunctionName=self.deployment[function], Payload=payload.encode())
        body = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise FunctionFailedError(f"{function}: {body.decode(errors='replace')[:4000]}")
        return json.loads(body or b"null")

    def warm(self) -> None:
        """Let each function import what it needs, before somebody waits for it."""
        payloads = {"ApiFunction": json.dumps(http_event("GET", "/v1/health")), "PublisherFunction": '{"Records": []}'}

        def call(function: str) -> None:
            self.invoke(function, payloads.get(function, '{"Records": []}'))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(call, [name for name in _FUNCTIONS if name != "ClosingFunction"]))

    def states(self) -> list[settling.PoolState]:
        """How far each pool is."""
        return settling.pool_states(self._dynamodb, self.table)

    def settle(self, timeout: float = 300.0) -> list[settling.PoolState]:
        """Return when everything sent before this call is rated and published; wake who sleeps.

        A publication that is asked for comes within PublishDelaySeconds by itself. So the rater is woken when its pools
        stand still, and the publisher only when nobody asked: two runs at once would do the work twice.
        """
        deadline = time.monotonic() + timeout
        stood_since, before = time.monotonic(), None
        while True:
            asking = time.monotonic()
            importing = self._messages("ImportQueue")  # first: what it holds may come into an inbox
            states = self.states()
            left, asked = settling.unsettled(states), self._messages("PublishQueue")
            if not left and not asked and not importing:
                break
            now = time.monotonic()
            if now > deadline:
                still = left or f"{asked} publications, {importing} imports to come"
                message = f"not settled after {timeout:.0f} s: {still}"
                raise NotSettledError(message)
            if (left, asked) != before:
                stood_since, before = now, (left, asked)
            if now - stood_since > _PATIENCE:
                self._wake(left, asked)
                stood_since = time.monotonic()
            time.sleep(min(max(0.03, 3 * (time.monotonic() - asking)), 0.5))  # asking takes time from those who work
        self.mirror()
        return states

    def settle_ratings(self, timeout: float = 300.0) -> None:
        """Return when everything sent before this call is rated, published or not."""
        deadline = time.monotonic() + timeout
        while left := [state for state in self.states() if not state.is_rated]:
            if time.monotonic() > deadline:
                message = f"not rated after {timeout:.0f} s: {left}"
                raise NotSettledError(message)
            time.sleep(0.3)

    @contextmanager
    def publishing_paused(self) -> Iterator[None]:
        """Let nobody publish meanwhile: what thousands of results change is then written once, not every second."""
        arn = self._lambda.get_function(FunctionName=self.deployment["PublisherFunction"])["Configuration"][
            "FunctionArn"
        ]
        mappings = [
            mapping["UUID"]
            for mapping in self._lambda.list_event_source_mappings()["EventSourceMappings"]
            if mapping["FunctionArn"] == arn
        ]
        for mapping in mappings:
            self._lambda.update_event_source_mapping(UUID=mapping, Enabled=False)
        try:
            yield
        finally:
            for mapping in mappings:
                self._lambda.update_event_source_mapping(UUID=mapping, Enabled=True)

    def _wake(self, left: list[settling.PoolState], asked: int) -> None:
        if any(not state.is_rated for state in left):
            self.invoke("RaterFunction", schedules.sweep_input())
        elif left and not asked:
            self.invoke("PublisherFunction", json.dumps(publish_event([state.pool for state in left])))

    def _messages(self, queue: str) -> int:
        """Messages in a working queue: held back, waiting, or in its function's hands."""
        answer = self._sqs.get_queue_attributes(QueueUrl=self.deployment[queue], AttributeNames=["All"])
        return sum(
            int(answer["Attributes"][f"ApproximateNumberOfMessages{kind}"]) for kind in ("", "Delayed", "NotVisible")
        )

    def fire(self, name: str, at: str | None = None) -> Any:
        """Do what a schedule does when it is due. Raises KeyError when there is no such schedule."""
        names = [entry["Name"] for entry in self._scheduler.list_schedules()["Schedules"]]
        found = schedules.choose(name, names, STACK)
        if found is None:
            raise KeyError(name)
        target = self._scheduler.get_schedule(Name=found)["Target"]
        function = next(key for key in _FUNCTIONS if target["Arn"].endswith(f":{self.deployment[key]}"))
        return self.invoke(function, schedules.filled(target["Input"], at))

    def mirror(self) -> int:
        """Bring the site directory in line with the published site; answers how many files were written."""
        if self.site_directory is None:
            return 0
        with self._mirror_lock:
            root = self.site_directory
            there: dict[str, str] = {}
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.deployment["SiteBucket"]):
                there |= {entry["Key"]: entry["ETag"] for entry in page.get("Contents", [])}
            changed = [key for key, etag in there.items() if self._mirrored.get(key) != etag]

            # Plain requests of signed addresses: a third of the time that boto3 takes, and there are thousands.
            connections = urllib3.PoolManager(maxsize=MIRROR_THREADS)

            def fetch(key: str) -> None:
                wanted = {"Bucket": self.deployment["SiteBucket"], "Key": key}
                answer = connections.request("GET", self._s3.generate_presigned_url("get_object", Params=wanted))
                if answer.status == 404:
                    return  # removed since
                if answer.status != 200:
                    message = f"{key} could not be read from the site: {answer.status}"
                    raise NotSettledError(message)
                path = root / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(answer.data)

            with ThreadPoolExecutor(MIRROR_THREADS) as pool:
                list(pool.map(fetch, changed))
            for key in self._mirrored.keys() - there.keys():
                remove_file(root, key)
            self._mirrored = there
            return len(changed)


def remove_file(root: Path, key: str) -> None:
    """Remove a file, and the folders above it that are empty then: a name in one of them may have been erased."""
    path = root / key
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == root:
            return
        if folder.exists():
            if any(folder.iterdir()):
                return
            folder.rmdir()


def publish_event(pools: list[str]) -> dict[str, Any]:
    """What the publisher gets from its queue."""
    return {
        "Records": [
            {
                "messageId": f"local-{number}",
                "receiptHandle": f"local-{number}",
                "body": json.dumps({"pool": pool}),
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:publish",
                "awsRegion": "eu-central-1",
            }
            for number, pool in enumerate(pools)
        ]
    }


def http_event(
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    is_base64: bool = False,
) -> dict[str, Any]:
    """A request as an HTTP API hands it to its function (payload format 2.0)."""
    names = {name.lower(): value for name, value in (headers or {}).items()}
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    now = time.time()
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": names,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": names.get("host", "localhost"),
            "domainPrefix": "local",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": names.get("user-agent", ""),
            },
            "requestId": f"local-{time.monotonic_ns()}",
            "routeKey": "$default",
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": is_base64,
    }
    if parameters:
        event["queryStringParameters"] = parameters
    if body is not None:
        event["body"] = body
    return event
