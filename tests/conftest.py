"""Systems to test against, from the lightest to the heaviest. None is started before a test asks for it."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator

import pytest

from local.emulator import Emulator
from local.inprocess import System
from local.testing import ServedProcess

# Handlers read these once, when they are imported; whichever test imports them first.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "Clubladder/stack")
os.environ.setdefault("POWERTOOLS_SERVICE_NAME", "tests")

ZONES = ("UTC", "America/Los_Angeles", "Pacific/Kiritimati")
"""Where the machine stands while a test runs: a third of the tests in each, always the same ones."""
_GIVEN = os.environ.get("TZ")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Set the zone of a test by its name, unless whoever runs them has chosen one for all (``TZ=... make test``)."""
    if _GIVEN is None:
        os.environ["TZ"] = ZONES[zlib.crc32(item.nodeid.encode()) % len(ZONES)]
        time.tzset()


@pytest.fixture
def system() -> Iterator[System]:
    """The handlers in this process over moto, empty; for tens of items."""
    with System.on_moto() as started:
        yield started


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """One emulator a session (and worker), with nothing deployed."""
    with Emulator() as started:
        yield started


@pytest.fixture
def emulated_system(emulator: Emulator) -> Iterator[System]:
    """The handlers in this process over the emulator, in a table and buckets of their own; for volume and threads."""
    with System.on_endpoint(emulator.url) as started:
        yield started


@pytest.fixture(params=["moto", "ministack"])
def any_system(request: pytest.FixtureRequest) -> System:
    """Both, one after the other: what only one of them does is not to be relied on."""
    chosen: System = request.getfixturevalue("system" if request.param == "moto" else "emulated_system")
    return chosen


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    """`local serve --empty` on a free port: template.yaml in the emulator, over HTTP. Shared: use pools of your own."""
    with ServedProcess(tmp_path_factory.mktemp("site")) as started:
        yield started
