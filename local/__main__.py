"""`python -m local serve` and `python -m local demo`."""

import argparse
import importlib
import signal
import sys
from pathlib import Path

from local.emulator import EmulatorError
from local.serve import serving


def _terminate(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    with serving(
        port=options.port,
        admin_key=options.admin_key,
        site_directory=options.site_dir,
        enforce_permissions=options.enforce_permissions,
        say=lambda text: print(text, flush=True),
    ) as served:
        if options.demo_data:
            importlib.import_module("local.demo").fill(served)
        print(f"\n  site   {served.url}/\n  API    {served.url}/v1\n  admin  {served.admin_key}\n", flush=True)
        print("Ctrl-C stops everything.", flush=True)
        while True:
            signal.pause()


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m local", description="The whole system on one machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("serve", help="deploy template.yaml into the emulator and serve site and API on one port")
    one.add_argument("--port", type=int, default=8000)
    one.add_argument("--admin-key", metavar="KEY", help="the admin's key (a new one is made and shown otherwise)")
    one.add_argument("--empty", dest="demo_data", action="store_false", help="with nothing but the admin key")
    one.add_argument("--site-dir", type=Path, metavar="DIR", help="mirror the published site into a directory")
    one.add_argument("--enforce-permissions", action="store_true", help="let the emulator check the template's roles")
    two = commands.add_parser("demo", help="... and send real results through the API", add_help=False)
    two.add_argument("rest", nargs=argparse.REMAINDER)

    raw = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _terminate)
    try:
        if raw[:1] == ["demo"]:
            return int(importlib.import_module("local.demo").main(raw[1:]) or 0)
        return serve(parser.parse_args(raw))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        return 0
    except EmulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
