"""What a cold start waits for: the import of each handler, and the size of its package; beside both, what it would be
with everything loaded at once.

At once: AWS's client as boto3 brings it, the serialiser of boto3, all rule systems, and every model built, as the code
did before. The package is compared with one that carries boto3 itself, which Lambda's runtime has.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
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
if len(sys.argv) > 2:
    begin = time.process_time()
    import boto3, boto3.dynamodb.types, pydantic
    from shared.ratings import system_names
    system_names()
    def below(model):
        for one in model.__subclasses__():
            yield one
            yield from below(one)
    for model in list(below(pydantic.BaseModel)):
        if model.__module__.startswith(("shared.", "functions.")):
            model.model_rebuild()
    took += time.process_time() - begin
print(json.dumps([took, len(after), sorted({m.partition(".")[0] for m in after})]))
"""


def import_of(module: str, *, at_once: bool = False) -> tuple[float, int, list[str]]:
    """CPU seconds of importing a module in a fresh interpreter, modules loaded, and the large packages among them.

    Args:
        at_once: and of loading what is put off otherwise.
    """
    best: tuple[float, int, list[str]] | None = None
    for _ in range(TURNS):
        command = [sys.executable, "-c", _TIME, module, *(["at once"] if at_once else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
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


def client_mb() -> float:
    """What AWS's client would add to a package, zipped."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("boto3", "botocore", "s3transfer", "jmespath"):
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.submodule_search_locations is not None
            origin = next(iter(found.submodule_search_locations))
            shutil.copytree(origin, Path(folder) / "in" / name, ignore=shutil.ignore_patterns("__pycache__"))
        return Path(shutil.make_archive(f"{folder}/client", "zip", f"{folder}/in")).stat().st_size / 1e6


def measure(scale: float) -> list[Line]:
    """The lines of the table."""
    lines = []
    boto, _, _ = import_of("boto3")
    client = client_mb()
    for name in HANDLERS:
        module = f"functions.{name}.app"
        seconds, modules, packages = import_of(module)
        before, _, _ = import_of(module, at_once=True)
        lines.append(
            Line(
                f"{name}: import",
                seconds * 1000,
                "ms",
                "with all loaded at once",
                before * 1000,
                "less",
                seconds < before,
                note=f"boto3 alone {boto * 1000:.0f} ms; {modules} modules; "
                + ", ".join(p for p in packages if p in LARGE),
            )
        )
        size = zipped_mb(name)
        if size is not None:
            lines.append(
                Line(
                    f"{name}: package, zipped",
                    size,
                    "MB",
                    "with boto3 in it",
                    size + client,
                    f"at most {MOST_MB:.0f} MB",
                    size <= MOST_MB,
                )
            )
    return lines
