"""The whole system in this process behind one address: the desk in a browser talks to the real API."""

from __future__ import annotations

import os
import threading
import wsgiref.simple_server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import Any

from local.inprocess import System
from shared.usecases import bootstrap
from site_builder.assets import asset_pages
from site_builder.site import home_pages
from site_builder.views import PoolSummary, SiteView

POLICY = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
PLAYERS = {
    "anna": "Anna Aebi",
    "beat": "Beat Egli",
    "cla": "Cla Tanner",
    "thordur": "Þórður Jónsson",
    "alex": "Alex Muster",
    "alex-2": "Alex Muster",
    "hans": "<script>alert(1)</script>",
}
POOLS = {
    "schieber": {"system": "jass"},
    "spades": {"system": "spades"},
    "duels": {"system": "bridier"},
}


class _Server(ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Desk:
    """Where it is, and what a club has there."""

    url: str
    key: str
    system: System

    def game(self, pool: str, game: str) -> Any:
        """A game of the club, as the API tells it."""
        return self.system.request("GET", f"/v1/pools/{pool}/games/bern:{game}").body

    def inbox(self, pool: str) -> int:
        """How many results wait in a pool to be rated."""
        pending: int = self.system.request("GET", f"/v1/pools/{pool}").body["pending"]
        return pending


@contextmanager
def running_desk(endpoint: str) -> Iterator[Desk]:
    """Club, key, players and a pool of each system; the pages of the desk in the site's bucket.

    Over an emulator, since a preview rates all that waits, which is slow on moto.
    """
    with System.on_endpoint(endpoint) as system:
        os.environ.update(KEY_REQUESTS_PER_MINUTE="0", POOL_REQUESTS_PER_MINUTE="0")  # nobody's thumbs are as quick
        bootstrap.context.cache_clear()
        system.admin("PUT", "/v1/clubs/bern", {"name": "Jassclub Bern"})
        key = system.admin("POST", "/v1/clubs/bern/keys", {"scopes": ["submit", "manage"]}).body["key"]
        for player, name in PLAYERS.items():
            assert system.request("PUT", f"/v1/players/{player}", json={"name": name}, key=key).status == 201
        for pool, more in POOLS.items():
            body = {"name": pool.title(), "time_zone": "Europe/Zurich", "languages": ["en"], **more}
            assert system.admin("PUT", f"/v1/pools/{pool}", {**body, "rules": [{"from": "2016-01-01"}]}).status == 201
        system.rate(POOLS)
        _publish(system)
        server = wsgiref.simple_server.make_server("127.0.0.1", 0, _with_policy(system), _Server, _Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Desk(f"http://127.0.0.1:{server.server_port}", key, system)
        finally:
            server.shutdown()
            server.server_close()


def _publish(system: System) -> None:
    pools = tuple(
        PoolSummary(pool, pool.title(), more["system"], ("en",), 0, 0, time_zone="Europe/Zurich")
        for pool, more in POOLS.items()
    )
    for page in [*asset_pages(), *home_pages(SiteView("https://ladder.test", "", pools=pools))]:
        system.s3.put_object(
            Bucket=system.names["SiteBucket"], Key=page.path, Body=page.body, ContentType=page.content_type
        )


def _with_policy(system: System) -> Any:
    def application(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]]) -> Any:
            return start_response(status, [*headers, ("content-security-policy", POLICY)])

        return system.wsgi(environ, start)

    return application
