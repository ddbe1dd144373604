"""Everything on one machine: emulator, deployment, gateway, and the way to stop all of it."""

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import template
from local.deploy import deploy
from local.emulator import Emulator, EmulatorError
from local.gateway import Gateway, Server, check_port
from local.system import DeployedSystem

PUBLISH_DELAY_SECONDS = "1"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Served:
    """A running system."""

    url: str
    admin_key: str
    system: DeployedSystem


def new_admin_key() -> str:
    """A key of 256 bits."""
    return secrets.token_urlsafe(32)


@contextmanager
def serving(
    *,
    port: int = 8000,
    admin_key: str | None = None,
    site_directory: Path | None = None,
    enforce_permissions: bool = False,
    parameters: Mapping[str, str] | None = None,
    say: Say = lambda _: None,
) -> Iterator[Served]:
    """Start everything; stop everything at the end. Port 0 takes a free one; `parameters` are the template's."""
    began = time.monotonic()
    with ExitStack() as stack:
        check_port(port)
        if port == 0:
            from local.emulator import free_port

            port = free_port()
        url = f"http://127.0.0.1:{port}"
        if site_directory is not None:
            site_directory.mkdir(parents=True, exist_ok=True)
        emulator = stack.enter_context(Emulator(enforce_permissions=enforce_permissions))
        say(f"emulator started after {time.monotonic() - began:.1f} s")
        chosen = {"PublishDelaySeconds": PUBLISH_DELAY_SECONDS, **template.UNLIMITED, **(parameters or {})}
        deployment = deploy(emulator, origin=url, parameters=chosen)
        system = DeployedSystem(emulator, deployment, site_directory)
        say(f"template.yaml deployed after {time.monotonic() - began:.1f} s")
        key = admin_key or new_admin_key()
        install_admin_key(system, key)
        system.warm()
        server = Server(Gateway(system), port)
        stack.callback(server.close)
        stack.callback(system.mirror)
        say(f"ready after {time.monotonic() - began:.1f} s")
        yield Served(url, key, system)


def install_admin_key(system: DeployedSystem, key: str) -> None:
    """Let a key in as admin: what an operator does once after the first deployment."""
    from shared.store.table import Table
    from shared.usecases.access import install_admin_key as install

    try:
        install(Table(system.emulator.client("dynamodb"), system.table), key)
    except ValueError as error:
        raise EmulatorError(str(error)) from None


def copy_of_log(system: DeployedSystem, to: Path) -> None:
    """Keep the emulator's log, to look at after it is gone."""
    shutil.copyfile(system.emulator.log, to)
