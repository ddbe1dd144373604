"""`local serve` as a child process, for tests that want the whole system over HTTP."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from local.emulator import EmulatorError, free_port
from local.inprocess import ADMIN_KEY, Answer

ROOT = Path(__file__).resolve().parent.parent
READY_WITHIN = 90.0


class ServedProcess:
    """A system of its own on a free port, in the way a user starts it."""

    def __init__(self, site_directory: Path, *, enforce_permissions: bool = False) -> None:
        self.site_directory = site_directory
        self.admin_key = ADMIN_KEY
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._more = ["--enforce-permissions"] if enforce_permissions else []
        self._http = urllib3.PoolManager(maxsize=32, retries=False, timeout=600.0)

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "local", "serve", "--empty", "--port", str(self.port)]
        command += ["--admin-key", self.admin_key, "--site-dir", str(self.site_directory), *self._more]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + READY_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._stop()
                said = self._process.stdout.read() if self._process.stdout else ""
                message = f"local serve did not start:\n{said}"
                raise EmulatorError(message)
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _answers(self) -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return self._http.request("GET", f"{self.url}/v1/health").status < 500
        return False

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

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
        """Send a request, to the API or to the site; JSON is parsed."""
        sent = dict(headers or {})
        if json is not None:
            body = _dumps(json)
            sent.setdefault("content-type", "application/json")
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        answer = self._http.request(method, self.url + path, headers=sent, body=body, redirect=False)
        answered = {name.lower(): value for name, value in answer.headers.items()}
        is_json = "json" in answered.get("content-type", "") and bool(answer.data)
        return Answer(answer.status, answered, answer.json() if is_json else answer.data)

    def admin(self, method: str, path: str, json: Any = None, **more: Any) -> Answer:
        """The same with the admin's key."""
        return self.request(method, path, json=json, key=self.admin_key, **more)

    def settle(self) -> dict[str, int]:
        """Wait until everything sent is rated and published: pool -> position."""
        answer = self.request("POST", "/_local/settle")
        if answer.status != 200:
            raise EmulatorError(str(answer.body))
        pools: dict[str, int] = answer.body["pools"]
        return pools

    def schedule(self, name: str, at: str | None = None) -> Any:
        """Fire a schedule."""
        answer = self.request("POST", f"/_local/schedules/{name}", json={"at": at} if at else {})
        if answer.status != 200:
            raise EmulatorError(str(answer.body))
        return answer.body["answer"]


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode()
