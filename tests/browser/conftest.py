"""The invented site in a folder, served on 127.0.0.1, and Chromium to look at it."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
POLICY = "default-src 'self'; frame-ancestors *"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """As the site is delivered: index pages of folders, strict policy."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of every kind, of three pools, awkward names among the players."""
    from tests.browser.site_fixture import whole_site, write

    folder = tmp_path_factory.mktemp("site")
    write(folder, whole_site(few=True))
    return folder


@pytest.fixture(scope="session")
def long_site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with names, and whatever else people write, of 64 to 80 letters without a space."""
    from tests.browser.site_fixture import whole_site, write

    folder = tmp_path_factory.mktemp("long-site")
    write(folder, whole_site(few=True, long=True))
    return folder


@pytest.fixture(scope="session")
def site_url(site_folder: Path) -> Iterator[str]:
    """Where it is served."""
    yield from _served(site_folder)


@pytest.fixture(scope="session")
def long_site_url(long_site_folder: Path) -> Iterator[str]:
    """Where that is served."""
    yield from _served(long_site_folder)


def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One Chromium for all tests."""
    if CHROMIUM is None:
        pytest.fail("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
        )
        yield started
        started.close()
