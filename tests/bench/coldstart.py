"""What a cold start waits for: the import of each handler, and the size of its package."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.table import Line

HANDLERS = ("api", "rater", "closing", "publisher", "importer")
MOST_MB = 15.0
TURNS = 3
LARGE = ("aws_lambda_powertools", "babel", "boto3", "botocore", "jinja2", "msgspec", "orjson", "pydantic")
LARGE += ("python_calamine",)
_TIME = """
import json, os, sys, time
for name in ("TABLE_NAME", "DATA_BUCKET", "SITE_BUCKET"):
    os.environ.setdefault(name, "x")
before = set(sys.modules)
begin = time.process_time()
__import__(sys.argv[1])
took = time.process_time() - begin
after = set(sys.modules) - before
print(json.dumps([took, len(after), sorted({m.partition(".")[0] for m in after})]))
"""


def import_of(module: str) -> tuple[float, int, list[str]]:
    """CPU seconds of importing a module in a fresh interpreter, modules loaded, and the large packages among them."""
    best: tuple[float, int, list[str]] | None = None
    for _ in range(TURNS):
        done = subprocess.run([sys.executable, "-c", _TIME, module], stdout=subprocess.PIPE, text=True, check=True)
        seconds, count, packages = json.loads(done.stdout.strip().splitlines()[-1])
        if best is None or seconds < best[0]:
            best = (seconds, count, packages)
    assert best is not None
    return best


def zipped_mb(function: str) -> float | None:
    """Size of a function's package for the cloud; None where it cannot be built here."""
    with tempfile.TemporaryDirectory() as folder:
        uv = Path(".venv/bin/uv")
        built = Path(folder) / "built"
        done = subprocess.run(
            [sys.executable, "local/package.py", function, str(built), "--uv", str(uv.resolve())],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return None
        archive = Path(folder) / "package.zip"
        subprocess.run(
            [
                sys.executable,
                "-c",
                "import shutil,sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])",
                str(archive.with_suffix("")),
                str(built),
            ],
            check=True,
        )
        return archive.stat().st_size / 1e6


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    lines = []
    boto, _, _ = import_of("boto3")
    for name in HANDLERS:
        if not Path(f"functions/{name}/app.py").exists():
            continue
        seconds, modules, packages = import_of(f"functions.{name}.app")
        lines.append(
            Line(
                f"{name}: import",
                seconds * 1000,
                "ms",
                "boto3 alone",
                boto * 1000,
                note=f"{modules} modules; {', '.join(p for p in packages if p in LARGE)}",
            )
        )
        size = zipped_mb(name)
        if size is not None:
            lines.append(
                Line(f"{name}: package, zipped", size, "MB", budget=f"at most {MOST_MB:.0f} MB", met=size <= MOST_MB)
            )
    return lines
