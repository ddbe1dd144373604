"""The command line: `python -m local serve | demo | setup | admin-key | recompute`."""

import argparse
import importlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local import operate
from local.cloud import CloudError, make_admin_key
from local.emulator import EmulatorError
from local.serve import serving

ROOT = Path(__file__).resolve().parent.parent


def _terminate(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, flush=True)


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    with serving(
        port=options.port,
        admin_key=options.admin_key,
        site_directory=options.site_dir,
        enforce_permissions=options.enforce_permissions,
        parameters=dict(options.parameter),
        say=_say,
    ) as served:
        if options.demo_data:
            importlib.import_module("local.demo").fill(served, _say)
        _say(f"\n  site   {served.url}/\n  API    {served.url}/v1\n  admin  {served.admin_key}\n")
        _say("Ctrl-C stops everything.")
        while True:
            signal.pause()


def demo(options: argparse.Namespace) -> int:
    """Send results through the API, publish; serve until stopped unless ``--once``."""
    return int(importlib.import_module("local.demo").run(options, _say))


def setup(_: argparse.Namespace) -> int:
    """Bring the environments in line with their locks."""
    make = shutil.which("make")
    if make is None:
        print("error: 'make' is needed: apt-get install make", file=sys.stderr)
        return 1
    return subprocess.run([make, "-C", str(ROOT), "--no-print-directory", "setup"], check=False).returncode


def admin_key(options: argparse.Namespace) -> int:
    """Make an admin's key for a stack in the cloud, and show it once."""
    key, key_id = make_admin_key(options.table, options.region)
    _say(f"admin key {key_id}, shown only here:\n\n  {key}\n\nOnly its hash is stored. Keep it in a password manager.")
    return 0


def recompute(options: argparse.Namespace) -> int:
    """Fold a pool's published ledger; 0 when it gives the published hash."""
    from local.recompute import show

    return show(options.source, as_json=options.json)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    made = argparse.ArgumentParser(
        prog="python -m local",
        description="The whole system on one machine: template.yaml deployed into an AWS emulator.",
        epilog="'python -m local COMMAND --help' says more. Everything listens on 127.0.0.1 only; Ctrl-C stops it.",
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    one = commands.add_parser(
        "serve",
        help="serve site and API on one port until Ctrl-C",
        description="Deploy template.yaml into the emulator and serve site and API on one port until Ctrl-C. "
        "POST /_local/settle answers when all is rated and published; POST /_local/schedules/{name} fires a schedule.",
    )
    _running(one)
    one.add_argument("--empty", dest="demo_data", action="store_false", help="with nothing but the admin key")
    one.add_argument("--enforce-permissions", action="store_true", help="let the emulator check the template's roles")
    one.add_argument(
        "--parameter",
        action="append",
        default=[],
        type=_parameter,
        metavar="NAME=VALUE",
        help="a parameter of template.yaml, e.g. KeyRequestsPerMinute=60 (may be repeated)",
    )
    one.set_defaults(run=serve)

    two = commands.add_parser(
        "demo",
        help="serve, after sending real results through the API and closing the month",
        description="Deploy template.yaml into the emulator, send results through the HTTP API (a real forum's duels "
        "where ../shared/data has them, made-up ones for the other pools), close the month, publish; then serve.",
    )
    _running(two)
    two.add_argument("--once", action="store_true", help="end after publishing")
    two.add_argument("--seed", type=int, default=7, help="of the made-up results (default 7)")
    two.set_defaults(run=demo)

    three = commands.add_parser("setup", help="install what serve and demo need (as 'make setup' does)")
    three.set_defaults(run=setup)

    four = commands.add_parser(
        "admin-key",
        help="make the first admin key of a stack in the cloud",
        description="Make a random key of 256 bits, install its hash in the stack's table, print the key once. "
        "Uses your AWS credentials.",
    )
    four.add_argument("--table", required=True, metavar="NAME", help="the stack's table (output TableName)")
    four.add_argument("--region", help="the stack's region (default: your AWS configuration's)")
    four.set_defaults(run=admin_key)

    five = commands.add_parser("recompute", help="fold a pool's published ledger, offline, and compare the state hash")
    five.add_argument("source", help="address or folder of a published pool, e.g. http://127.0.0.1:8000/forum/")
    five.add_argument("--json", action="store_true", help="print everything as JSON")
    five.set_defaults(run=recompute)
    operate.add_commands(commands)
    return made


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"NAME=VALUE is wanted, not {text!r}")
    return name, value


def _running(command: argparse.ArgumentParser) -> None:
    """The options of everything that serves."""
    command.add_argument("--port", type=int, default=8000, help="of site and API (default 8000; 0: a free one)")
    command.add_argument("--admin-key", metavar="KEY", help="the admin's key (default: a new one is made and shown)")
    command.add_argument("--site-dir", type=Path, metavar="DIR", help="mirror the published site into a directory")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; answers the exit status."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        _say("stopped")
        return 0
    except (EmulatorError, CloudError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
