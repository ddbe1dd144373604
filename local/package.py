"""Puts together what a function needs and nothing else: `sam build` calls this through the Makefile, `serve` directly.

Standard library only, since an operator runs it with whatever Python is there. The same sources and locks give the same
bytes: times are fixed, files are sorted, nothing is compiled, and what installers note about themselves is left out.
"""

import argparse
import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements" / "lambda.txt"

# What the functions are made of, beside their locked dependencies.
CONTENTS: dict[str, tuple[str, ...]] = {
    "api": ("functions/__init__.py", "functions/api", "shared"),
    "rater": ("functions/__init__.py", "functions/rater", "shared"),
    "closing": ("functions/__init__.py", "functions/closing", "shared"),
    "importer": ("functions/__init__.py", "functions/importer", "shared"),
    "publisher": ("functions/__init__.py", "functions/publisher", "shared", "site_builder"),
}

# What the template declares: its runtime and architecture, on Amazon Linux 2023.
PYTHON_VERSION = "3.13"
PLATFORM = "aarch64-manylinux_2_28"

EPOCH = 315619200  # 1980-01-02: the earliest day every zip reader and time zone can say
_SKIPPED_DIRECTORIES = {"__pycache__", "tests", "test", ".pytest_cache", ".mypy_cache", ".ruff_cache", "bin"}
_SKIPPED_SUFFIXES = {".pyc", ".pyo", ".pyi", ".pyx", ".pxd", ".c", ".h"}
_KEPT_OF_DIST_INFO = {"METADATA", "entry_points.txt"}  # read at run time; and licences


def install_dependencies(target: Path, *, uv: str, python_version: str | None, platform: str | None) -> None:
    """Install the locked dependencies into `target`, for this interpreter or for another."""
    for_whom = ["--python", sys.executable]
    if python_version and platform:
        for_whom = ["--python-version", python_version, "--python-platform", platform, *for_whom]
    command = [uv, "pip", "install", "--quiet", "--target", str(target), *for_whom, "--only-binary", ":all:"]
    command += ["--link-mode", "copy", "--require-hashes", "--no-deps", "-r", str(REQUIREMENTS)]
    subprocess.run(command, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"})
    strip(target)


def strip(directory: Path) -> None:
    """Remove what no function reads."""
    for path in sorted(directory.rglob("*"), reverse=True):
        if path.is_dir():
            if path.name in _SKIPPED_DIRECTORIES:
                shutil.rmtree(path)
        elif path.suffix in _SKIPPED_SUFFIXES or path.name in {".lock", "py.typed"} or _is_a_note_of_installers(path):
            path.unlink()


def copy_sources(name: str, target: Path) -> None:
    """Copy the function's own code and what it imports of ours."""
    for content in CONTENTS[name]:
        source = ROOT / content
        files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
        for path in files:
            inside = path.relative_to(ROOT)
            if _SKIPPED_DIRECTORIES.isdisjoint(inside.parts) and path.suffix not in _SKIPPED_SUFFIXES:
                (target / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target / inside)


def fix_times(directory: Path) -> None:
    """Give every file and folder one time and one mode, so that only content makes a difference."""
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.suffix == ".so" else 0o644)
        os.utime(path, (EPOCH, EPOCH))


def build(name: str, target: Path, *, uv: str, python_version: str | None = None, platform: str | None = None) -> None:
    """Fill `target` with the function `name`."""
    target.mkdir(parents=True, exist_ok=True)
    install_dependencies(target, uv=uv, python_version=python_version, platform=platform)
    copy_sources(name, target)
    fix_times(target)


def zip_directory(directory: Path, to: Path, *, append: bool = False) -> None:
    """Zip a directory's contents, sorted and with fixed times; or add them to an archive that is there."""
    with zipfile.ZipFile(to, "a" if append else "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(path.relative_to(directory).as_posix(), (1980, 1, 2, 0, 0, 0))
            info.external_attr = (0o755 if path.suffix == ".so" else 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


def compile_bytes(directory: Path) -> None:
    """Compile for this machine's Python, bound to no time: the emulator unpacks a package anew for each worker."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(directory, quiet=2, stripdir=directory, invalidation_mode=mode, workers=2)


def local_dependencies(cache: Path, *, uv: str) -> Path:
    """The functions' dependencies for this machine's own Python, kept between runs until the lock changes.

    Beside the directory lies the same as an archive (`.zip`), which the packages of all functions begin with.
    """
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + Path(__file__).read_bytes() + sys.version.encode()).hexdigest()[
        :12
    ]
    directory = cache / f"dependencies-{key}"
    if not directory.exists():
        unfinished = cache / f"dependencies-{key}.{os.getpid()}"
        install_dependencies(unfinished, uv=uv, python_version=None, platform=None)
        compile_bytes(unfinished)
        zip_directory(unfinished, unfinished.with_suffix(f".{os.getpid()}.zip"))
        unfinished.with_suffix(f".{os.getpid()}.zip").rename(directory.with_suffix(".zip"))
        try:
            unfinished.rename(directory)
        except OSError:  # another run was faster
            shutil.rmtree(unfinished)
    return directory


def _is_a_note_of_installers(path: Path) -> bool:
    return path.parent.name.endswith(".dist-info") and path.name not in _KEPT_OF_DIST_INFO and not _is_licence(path)


def _is_licence(path: Path) -> bool:
    return path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"))


def main() -> None:
    """The command line, as the Makefile uses it."""
    parser = argparse.ArgumentParser(prog="package.py", description=__doc__)
    parser.add_argument("name", choices=sorted(CONTENTS))
    parser.add_argument("target", type=Path)
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--python-version", default=PYTHON_VERSION)
    parser.add_argument("--platform", default=PLATFORM)
    options = parser.parse_args()
    build(options.name, options.target, uv=options.uv, python_version=options.python_version, platform=options.platform)


if __name__ == "__main__":
    main()
