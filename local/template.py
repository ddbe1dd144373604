"""Reads template.yaml: what it says once (keys, stream, queues, environment) is taken from it here and by the tests."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "template.yaml"
NO_VALUE = object()


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: `!Ref X` becomes `{"Ref": "X"}`."""


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = str(value).split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


UNLIMITED = {"KeyRequestsPerMinute": "1000000", "PoolRequestsPerMinute": "1000000"}
"""Parameters for one machine, where a test or the demo sends a season in a minute, with one key."""


def read(path: Path = TEMPLATE) -> dict[str, Any]:
    """The template as plain data, functions in their long form."""
    with path.open(encoding="utf-8") as file:
        template: dict[str, Any] = yaml.load(file, _Loader)  # noqa: S506  (a SafeLoader)
    return template


def of_type(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The resources of one type, by logical id."""
    return {name: resource for name, resource in template["Resources"].items() if resource["Type"] == kind}


class Resolver:
    """Evaluates Ref, GetAtt, Sub, If and the conditions, given what references stand for.

    `values` maps `"Table"` (Ref) and `"Table.Arn"` (GetAtt) to their values; parameters have their defaults.
    """

    def __init__(self, template: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.conditions: Mapping[str, Any] = template.get("Conditions", {})
        parameters = template.get("Parameters", {})
        self.values = {name: parameter.get("Default", "") for name, parameter in parameters.items()} | dict(values)

    def __call__(self, value: Any) -> Any:
        """The value with every function in it evaluated."""
        if isinstance(value, list):
            return [item for item in map(self, value) if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (name, argument), *_ = value.items()
            if name == "Ref":
                return NO_VALUE if argument == "AWS::NoValue" else self.values[argument]
            if name == "Fn::GetAtt":
                return self.values[".".join(argument)]
            if name == "Fn::If":
                condition, yes, no = argument
                return self(yes if self.holds({"Condition": condition}) else no)
            if name == "Fn::Sub":
                return self._sub(argument)
        resolved = {key: self(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def holds(self, condition: Mapping[str, Any]) -> bool:
        """Whether a condition holds."""
        ((name, argument),) = condition.items()
        if name == "Condition":
            return self.holds(self.conditions[argument])
        if name == "Fn::Not":
            return not self.holds(argument[0])
        if name == "Fn::And":
            return all(map(self.holds, argument))
        if name == "Fn::Equals":
            return str(self(argument[0])) == str(self(argument[1]))
        message = f"unknown condition {name}"
        raise ValueError(message)

    def _sub(self, argument: Any) -> str:
        text, more = argument if isinstance(argument, list) else (argument, {})
        values = {**self.values, **{name: self(value) for name, value in more.items()}}
        return re.sub(r"\$\{([^!}]+)\}", lambda match: str(values[match[1]]), text)


def environment(template: Mapping[str, Any], function: str, values: Mapping[str, Any]) -> dict[str, str]:
    """The environment variables of a function, evaluated."""
    resolve = Resolver(template, values)
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    own = template["Resources"][function]["Properties"].get("Environment", {}).get("Variables", {})
    return {name: str(resolve(value)) for name, value in {**shared, **own}.items()}
