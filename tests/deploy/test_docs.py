"""What the documents for operators say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from local import template
from local.__main__ import parser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = template.read()
FOR_OPERATORS = ("deploy", "runbook", "backup", "security", "cost", "erasure")


def text(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


def test_every_parameter_is_explained_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ?(.*?) ?\|", text("deploy"), re.MULTILINE))
    told = {name: re.sub("`", "", default).strip() for name, default in rows.items()}
    assert told == {name: str(found.get("Default", "")) for name, found in DOCUMENT["Parameters"].items()}


def test_outputs_that_are_named_exist() -> None:
    named = set(re.findall(r"\b(\w+(?:Url|Name|Domain))\b", text("deploy"))) - DOCUMENT["Parameters"].keys()
    assert named - {"BucketName"} <= DOCUMENT["Outputs"].keys()


@pytest.mark.parametrize("name", FOR_OPERATORS)
def test_commands_exist(name: str) -> None:
    for command in re.findall(r"python -m local ([a-z-]+)([^&`#\n]*)", text(name)):
        options = re.findall(r"(--[a-z-]+)", command[1])
        help_text = _help(command[0])
        assert all(option in help_text for option in options), command
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z-]+)`", text(name)):
        assert f"\n{target}:" in makefile, target


def _help(command: str) -> str:
    (actions,) = [a for a in parser()._actions if hasattr(a, "choices") and a.choices]
    return str(actions.choices[command].format_help())  # type: ignore[index,call-overload]


@pytest.mark.parametrize("name", FOR_OPERATORS)
def test_files_that_are_named_exist(name: str) -> None:
    for path in re.findall(
        r"`((?:docs|tests|local|shared|requirements)/[\w./-]+\.\w+|\.\w+\.yaml|[A-Z]+\.md)`", text(name)
    ):
        assert (ROOT / path).exists(), path


def test_the_table_of_roles_is_that_of_the_template() -> None:
    rows = dict(
        re.findall(r"^\| (\w+) \| (.*) \|$", text("security").partition("## What a role may do")[2], re.MULTILINE)
    )
    functions = {n.removesuffix("Function").lower() for n in template.of_type(DOCUMENT, "AWS::Serverless::Function")}
    assert functions <= rows.keys()
    statements = {
        name: [s for p in role["Properties"]["Policies"] for s in p["PolicyDocument"]["Statement"]]
        for name, role in template.of_type(DOCUMENT, "AWS::IAM::Role").items()
    }
    assert "dynamodb:Scan" not in str(statements)
    for function in functions:
        told, granted = rows[function], str(statements[f"{function.title()}Role"])
        assert ("batch writes" in told) == ("BatchWriteItem" in granted), function
        assert told.endswith("read, write, delete") == ("SiteBucket.Arn" in granted), function


def test_prices_are_those_of_the_script() -> None:
    from local import cost

    for size in cost.SIZES:
        assert f"**{size.name}**" in text("cost")
