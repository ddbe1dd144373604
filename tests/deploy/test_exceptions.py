"""Exceptions from the checks of `make security`: each has a reason beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from local import licences

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "field"), [(".checkov.yaml", "skip-check"), (".bandit.yaml", "skips")])
def test_every_exception_has_a_reason(name: str, field: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    listed = yaml.safe_load(text)[field]
    assert listed
    assert len(listed) == len(set(listed))
    lines = [line.strip() for line in text.splitlines()]
    for exception in listed:
        (number,) = [n for n, line in enumerate(lines) if line.partition("#")[0].strip() == f"- {exception}"]
        reason = lines[number].partition("#")[2] or lines[number - 1].partition("#")[2]
        assert len(reason) > 20, exception


def test_the_commands_read_them() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "checkov --config-file .checkov.yaml" in makefile
    assert "bandit -q -c .bandit.yaml" in makefile


def test_what_ruff_is_told_to_pass_over_bandit_is_told_too() -> None:
    """They are the same checks (S101 is B101), but bandit runs only when asked and knows no ``noqa``."""
    passed = set(yaml.safe_load((ROOT / ".bandit.yaml").read_text(encoding="utf-8"))["skips"])
    for folder in ("shared", "functions", "site_builder", "local"):
        for path in (ROOT / folder).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                _, _, codes = line.partition("# noqa: ")
                for number in re.findall(r"\bS(\d{3})\b", codes):
                    assert f"B{number}" in passed, (path, line.strip())


# -- licences ------------------------------------------------------------------------------------------------------
FREE = ("MIT", "BSD", "Apache", "MPL", "PSF", "Python Software Foundation", "ISC")


def test_the_list_of_licences_is_that_of_the_lock() -> None:
    assert licences.FILE.read_text(encoding="utf-8") == licences.text(), "run 'make licences'"


def test_all_that_is_deployed_may_be_passed_on_with_an_mit_project() -> None:
    for package, _ in licences.locked():
        named, _ = licences.licence(package)
        assert any(word in named for word in FREE), (package, named)
        assert "GPL" not in named
