"""The licences of what the packages carry, from the lock and the installed packages: `python -m local.licences`."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "licences.md"
LOCK = ROOT / "requirements" / "lambda.txt"
HEAD = """# Licences of what is deployed

Made by `make licences` from `requirements/lambda.txt`; a test compares. Licence texts lie in the packages, beside the
code they belong to. What only develops, tests or runs the emulator is not deployed and not listed; boto3 (Apache-2.0)
is brought by the runtime.

| package | version | licence | home |
|---|---|---|---|
"""
CLASSIFIER = "License :: OSI Approved :: "


def locked() -> list[tuple[str, str]]:
    """(package, version) of all that the functions carry, sorted."""
    text = LOCK.read_text(encoding="utf-8")
    return sorted(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE))


def licence(package: str) -> tuple[str, str]:
    """(licence, home page) as the package says."""
    try:
        found: Any = metadata(package)  # a message of headers, which its type does not say
    except PackageNotFoundError:
        return "not installed on this system", ""
    named = found.get("License-Expression") or ", ".join(
        c.removeprefix(CLASSIFIER) for c in found.get_all("Classifier") or () if c.startswith(CLASSIFIER)
    )
    named = named or (found.get("License") or "").strip().partition("\n")[0]
    homes = dict(entry.split(", ", 1) for entry in found.get_all("Project-URL") or () if ", " in entry)
    folded = {name.casefold(): address for name, address in homes.items()}
    wanted = ("homepage", "source", "source code", "repository", "github", "documentation")
    home = found.get("Home-page") or next((folded[name] for name in wanted if name in folded), "")
    return named or "?", home


def text() -> str:
    """The list."""
    rows = []
    for package, version in locked():
        named, home = licence(package)
        rows.append(f"| {package} | {version} | {named} | {home} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
