"""The packages as they are uploaded: complete, small, only what is needed, and the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local import package, template
from local.deploy import CACHE

ROOT = Path(__file__).resolve().parents[2]
UV = str(ROOT / ".venv/bin/uv")
MAXIMUM_ZIPPED = 15_000_000


def tree(directory: Path) -> dict[str, tuple[str, int, int]]:
    return {
        path.relative_to(directory).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
            int(path.stat().st_mtime),
        )
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_package_is_small_and_built_for_the_cloud_and_reproducible(tmp_path: Path) -> None:
    for number in (1, 2):
        package.build(
            "publisher",
            tmp_path / str(number),
            uv=UV,
            python_version=package.PYTHON_VERSION,
            platform=package.PLATFORM,
        )
        package.zip_directory(tmp_path / str(number), tmp_path / f"{number}.zip")
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    first, second = ((tmp_path / f"{number}.zip").read_bytes() for number in (1, 2))
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()
    assert len(first) <= MAXIMUM_ZIPPED
    libraries = [path.name for path in (tmp_path / "1").rglob("*.so")]
    assert libraries
    assert all("aarch64" in name or "abi3" in name for name in libraries)
    assert not list((tmp_path / "1").rglob("*.pyc"))


def test_packages_are_built_for_what_the_template_declares() -> None:
    function = template.read()["Globals"]["Function"]
    assert function["Runtime"] == f"python{package.PYTHON_VERSION}"
    assert function["Architectures"] == ["arm64"]
    assert package.PLATFORM.startswith("aarch64-")


@pytest.mark.parametrize("name", package.CONTENTS)
def test_a_function_imports_from_its_package_alone(name: str, tmp_path: Path) -> None:
    """No site-packages: only the package, and the boto3 that the Lambda runtime brings."""
    if not (ROOT / "functions" / name / "app.py").exists():
        pytest.fail(f"functions/{name}/app.py is missing")
    CACHE.mkdir(exist_ok=True)
    dependencies = package.local_dependencies(CACHE, uv=UV)
    package.copy_sources(name, tmp_path)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    site = next((ROOT / ".venv/lib").glob("python3*")) / "site-packages"
    for brought in ("boto3", "botocore", "s3transfer", "urllib3", "jmespath", "dateutil", "six.py"):
        (runtime / brought).symlink_to(site / brought)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, dependencies, runtime))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }
    command = [sys.executable, "-S", "-P", "-c", f"from functions.{name}.app import handler"]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_only_what_a_function_needs_is_in_its_package(tmp_path: Path) -> None:
    package.copy_sources("api", tmp_path)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert all(name.startswith(("functions/api/", "shared/")) or name == "functions/__init__.py" for name in files)
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]
