"""The AWS emulator as a child process: started from its own environment, stopped with everything it started."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".venvs" / "emulator" / "bin" / "ministack"
REGION = "eu-central-1"
MEMORY = Path("/dev/shm")  # noqa: S108 - the name is made by mkdtemp
PLENTY = 6 * 1024**3
"""Free bytes in memory: many times what a long test session takes."""
READY_WITHIN = 30.0
STOPPED_WITHIN = 10.0
_PR_SET_PDEATHSIG = 1


class EmulatorError(Exception):
    """The emulator is not installed, did not start, or did not do what was asked."""


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def working_place(memory: Path = MEMORY) -> str | None:
    """Where the emulator unpacks its workers, 20,000 files of 400 MB: in memory where there is plenty.

    On a busy disk unpacking and removing them takes a minute. None: where temporary files are otherwise; so too when
    ``TMPDIR`` names a place.
    """
    with contextlib.suppress(OSError):
        if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= PLENTY:
            return str(memory)
    return None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


class Emulator:
    """One MiniStack, with a folder of its own that is gone when it is."""

    def __init__(self, *, enforce_permissions: bool = False, log_requests: bool = False) -> None:
        self.enforce_permissions = enforce_permissions
        self.log_requests = log_requests
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = Path(tempfile.mkdtemp(prefix="clubladder-", dir=working_place()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the emulator writes, while it lives."""
        return self._directory / "emulator.log"

    def start(self) -> Self:
        """Start, and return when it answers."""
        if not PROGRAM.exists():
            message = f"the emulator is not installed ({PROGRAM.relative_to(ROOT)}): run 'make setup'"
            raise EmulatorError(message)
        temporary = self._directory / "tmp"
        temporary.mkdir()
        # The functions inherit this environment, as they would not in the cloud: so it is bare.
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self._directory),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
            "LAMBDA_WARM_TTL_SECONDS": "86400",
            "LOG_LEVEL": "DEBUG" if self.log_requests else "WARNING",
            "AUTH": "true" if self.enforce_permissions else "false",
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM)],
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        deadline = time.monotonic() + READY_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self.log.read_text(errors="replace")[-2000:]
                self.stop()
                message = f"the emulator did not start:\n{said}"
                raise EmulatorError(message)
            time.sleep(0.05)
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def client(self, service: str) -> Any:
        """A boto3 client of the emulator."""
        make: Any = boto3.client  # one overload per service, and the service is only known at run time
        return make(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106  (the emulator takes any)
            config=Config(retries={"max_attempts": 1}, read_timeout=900, max_pool_connections=50),
        )

    def stop(self) -> None:
        """Stop it and its workers: first politely, then its process group."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOPPED_WITHIN)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                deadline = time.monotonic() + STOPPED_WITHIN
                while time.monotonic() < deadline:  # until the last worker is gone too
                    os.killpg(process.pid, 0)
                    time.sleep(0.01)
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.stop()
