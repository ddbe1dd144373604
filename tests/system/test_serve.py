"""`local serve` itself: one port, clear errors, and nothing left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

from local.testing import ServedProcess

ROOT = Path(__file__).resolve().parents[2]


def test_api_and_admin_key_answer_on_the_one_port(served: ServedProcess) -> None:
    assert served.request("GET", "/v1/health").body == {"status": "ok"}
    assert served.admin("PUT", "/v1/clubs/serve", json={"name": "Serve"}).status in (200, 201)
    assert served.request("PUT", "/v1/clubs/serve", json={"name": "Serve"}).status == 401


def test_settle_and_schedules_answer(served: ServedProcess) -> None:
    assert isinstance(served.settle(), dict)
    served.schedule("closing", "2026-01-01T00:05:00Z")
    assert served.request("POST", "/_local/schedules/nothing").status == 404
    assert served.request("POST", "/_local/schedules/closing", json={"at": "2026-01-01T00:05:00"}).status == 422
    assert served.request("GET", "/_local/settle").status == 405


def test_pages_come_with_the_headers_of_the_template(served: ServedProcess) -> None:
    headers = served.request("GET", "/").headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["x-content-type-options"] == "nosniff"


def test_a_folder_without_its_slash_leads_to_it(served: ServedProcess) -> None:
    answer = served.request("GET", "/desk")
    assert (answer.status, answer.headers["location"]) == (301, f"{served.url}/desk/")
    assert served.request("GET", "//elsewhere.example/x").headers["location"].startswith(served.url)
    assert served.request("GET", "/nothing.json").status == 404


def test_a_port_in_use_is_said_clearly() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "local", "serve", "--port", str(port), "--empty"]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert f"port {port} of 127.0.0.1 is not free" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_stopping_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-u", "-m", "local", "serve", "--port", "0", "--empty"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if "Ctrl-C" in line:
                break
        assert _children(process.pid)
        before = _children(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert list(tmp_path.glob("clubladder-*")) == []
    assert not [pid for pid in before if Path(f"/proc/{pid}").exists()]


def _children(pid: int) -> list[int]:
    """Everything a process started, and what that started."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [grandchild for child in found for grandchild in _children(child)]
