"""The packages in the runtime of the template, where this machine has it, and in the machine's own Python."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local import package, template
from local.system import http_event

ROOT = Path(__file__).resolve().parents[2]
UV = str(ROOT / ".venv/bin/uv")
RUNTIME = template.read()["Globals"]["Function"]["Runtime"].removeprefix("python")
FOLDERS = ("shared", "functions", "site_builder", "local")
BROUGHT = ("boto3", "botocore", "s3transfer", "urllib3", "jmespath", "dateutil", "six.py")
"""What the Lambda runtime brings."""
CALL = """
import importlib, json, sys
handler = importlib.import_module(f"functions.{sys.argv[1]}.app").handler
if sys.argv[1] == "api":
    answer = handler(json.loads(sys.argv[2]), None)
    assert answer["statusCode"] == 200, answer
    assert json.loads(answer["body"])["openapi"] == "3.1.0"
print(".".join(map(str, sys.version_info[:2])))
"""
ENVIRONMENT = {
    "TABLE_NAME": "t",
    "DATA_BUCKET": "d",
    "SITE_BUCKET": "s",
    "PUBLISH_QUEUE_URL": "q",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def interpreters() -> list[str]:
    """This Python, and the runtime's where it is found."""
    found = [shutil.which(f"python{RUNTIME}")]
    found += [str(p) for p in sorted((Path.home() / ".pyenv/versions").glob(f"{RUNTIME}.*/bin/python"))]
    for candidate in filter(None, found):
        asked = [candidate, "-c", "import sys; print('.'.join(map(str, sys.version_info[:2])))"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == RUNTIME and candidate != sys.executable:
            return [sys.executable, candidate]
    return [sys.executable]


@pytest.mark.parametrize("interpreter", interpreters(), ids=lambda path: Path(path).parts[-3] if "/" in path else path)
def test_every_handler_runs_from_its_package_alone(interpreter: str, tmp_path: Path) -> None:
    own = interpreter == sys.executable
    version = f"{sys.version_info[0]}.{sys.version_info[1]}" if own else RUNTIME
    dependencies = tmp_path / "dependencies"
    machine = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
    package.install_dependencies(dependencies, uv=UV, python_version=version, platform=f"{machine}-manylinux_2_28")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    site = next((ROOT / ".venv/lib").glob("python3*")) / "site-packages"
    for name in BROUGHT:
        (runtime / name).symlink_to(site / name)
    for name in package.CONTENTS:
        sources = tmp_path / name
        package.copy_sources(name, sources)
        path = os.pathsep.join(map(str, (sources, dependencies, runtime)))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, **ENVIRONMENT}
        command = [interpreter, "-S", "-P", "-c", CALL, name, json.dumps(http_event("GET", "/v1/openapi.json"))]
        answer = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, f"{name}: {answer.stderr}"
        assert answer.stdout.split()[-1] == version


def test_the_code_is_of_the_oldest_python_that_is_promised() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 60
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 11))


def test_the_lock_pins_every_dependency_with_hashes() -> None:
    for name in ("lambda", "dev", "emulator", "sam", "security", "uv"):
        lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
        assert pinned, name
        for number, line in enumerate(lines):
            if line and not line.startswith((" ", "#")):
                assert "==" in line, line
                assert "--hash=sha256:" in lines[number + 1], line
        assert not [line for line in lines if "://" in line.partition("#")[0] or line.startswith("-")], name


def test_nothing_of_the_runtime_is_packed() -> None:
    """boto3 would be four fifths of the package."""
    lines = (ROOT / "requirements/lambda.txt").read_text(encoding="utf-8")
    assert not [line for line in lines.splitlines() if line.startswith(("boto3==", "botocore=="))]
