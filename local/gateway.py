"""One port for all: `/v1` goes to the HTTP API, `/_local` to the helpers of this machine, the rest to CloudFront."""

import json
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import urllib3
from waitress.server import create_server  # type: ignore[import-untyped]

from local.emulator import EmulatorError
from local.system import DeployedSystem, FunctionFailedError, NotSettledError

THREADS = 16
_HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "server", "date", "content-length",
}  # fmt: skip

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class Gateway:
    """The WSGI application."""

    def __init__(self, system: DeployedSystem) -> None:
        self.system = system
        self._upstream = urllib3.HTTPConnectionPool("127.0.0.1", system.emulator.port, maxsize=2 * THREADS, timeout=300)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        path: str = environ["PATH_INFO"]
        if path == "/v1" or path.startswith("/v1/"):
            return self._forward(environ, start_response, self._api_host())
        if path.startswith("/_local/"):
            return self._local(environ, start_response, path)
        if "." not in path.rpartition("/")[2] and not path.endswith("/"):
            return self._to_folder(environ, start_response)
        return self._forward(environ, start_response, self.system.deployment.site_host)

    @staticmethod
    def _to_folder(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """What the function at the edge answers when the last slash is left out."""
        raw_path = str(environ.get("REQUEST_URI") or environ["PATH_INFO"]).partition("?")[0]
        location = f"http://{environ.get('HTTP_HOST', '127.0.0.1')}{raw_path}/"
        start_response("301 Moved Permanently", [("Location", location), ("Content-Length", "0")])
        return []

    def _api_host(self) -> str:
        return f"{self.system.deployment.api_id}.execute-api.localhost:{self.system.emulator.port}"

    def _forward(self, environ: Environ, start_response: StartResponse, host: str) -> Iterable[bytes]:
        headers = {
            name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")
        }
        headers = {name: value for name, value in headers.items() if name not in _HOP_BY_HOP}
        if environ.get("CONTENT_TYPE"):
            headers["content-type"] = environ["CONTENT_TYPE"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or None
        headers |= {"host": host, "x-forwarded-proto": "https"}
        raw_path = environ.get("REQUEST_URI") or environ["PATH_INFO"]
        answer = self._upstream.urlopen(
            environ["REQUEST_METHOD"], raw_path, body=body, headers=headers,
            redirect=False, retries=False, decode_content=False,
        )  # fmt: skip
        kept = [
            (name, self._with_buckets(value) if name.lower() == "content-security-policy" else value)
            for name, value in answer.headers.items()
            if name.lower() not in _HOP_BY_HOP
        ]
        if environ["REQUEST_METHOD"] == "HEAD" and "content-length" in answer.headers:
            kept.append(("Content-Length", answer.headers["content-length"]))
        else:
            kept.append(("Content-Length", str(len(answer.data))))
        start_response(f"{answer.status} {answer.reason or ''}".strip(), kept)
        return [answer.data]

    def _with_buckets(self, policy: str) -> str:
        """The policy of a page, with the buckets where they are here: the desk sends larger files to one."""
        return policy.replace("connect-src 'self'", f"connect-src 'self' {self.system.emulator.url}")

    def _local(self, environ: Environ, start_response: StartResponse, path: str) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "POST":
            return _json(start_response, "405 Method Not Allowed", {"detail": "POST only"})
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            body = json.loads(raw) if raw.strip() else {}
            if path == "/_local/settle":
                states = self.system.settle(float(body.get("timeout", 300)))
                return _json(start_response, "200 OK", {"settled": True, "pools": {s.pool: s.position for s in states}})
            if path.startswith("/_local/schedules/"):
                answer = self.system.fire(path.removeprefix("/_local/schedules/"), body.get("at"))
                return _json(start_response, "200 OK", {"fired": True, "answer": answer})
        except (ValueError, AttributeError) as error:
            return _json(start_response, "422 Unprocessable Content", {"detail": str(error)})
        except KeyError as error:
            return _json(start_response, "404 Not Found", {"detail": f"no schedule {error.args[0]}"})
        except NotSettledError as error:
            return _json(start_response, "504 Gateway Timeout", {"detail": str(error)})
        except FunctionFailedError as error:
            return _json(start_response, "502 Bad Gateway", {"detail": str(error)})
        return _json(start_response, "404 Not Found", {"detail": path})


def _json(start_response: StartResponse, status: str, body: Any) -> Iterable[bytes]:
    content = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
    return [content]


def check_port(port: int) -> None:
    """Fail early, and clearly, when somebody listens there already."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            message = f"port {port} of 127.0.0.1 is not free ({error.strerror}); choose another with --port"
            raise EmulatorError(message) from error


class Server:
    """The gateway on its port, in a thread of its own."""

    def __init__(self, application: Gateway, port: int) -> None:
        self._server = create_server(
            application, host="127.0.0.1", port=port, threads=THREADS, ident=None, channel_timeout=600,
            clear_untrusted_proxy_headers=False, max_request_body_size=64 * 1024 * 1024,
        )  # fmt: skip
        self.port: int = self._server.effective_port
        threading.Thread(target=self._server.run, name="gateway", daemon=True).start()

    def close(self) -> None:
        """Stop listening. The threads are daemons: nobody waits for readers who keep their connection."""
        self._server.close()
