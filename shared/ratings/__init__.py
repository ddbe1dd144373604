"""The rule systems, found by themselves: every module of this package that sets ``SYSTEM`` is one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from shared.ratings.base import RuleSystem

_registered: dict[str, RuleSystem] = {}


@cache
def _shipped() -> dict[str, RuleSystem]:
    found: dict[str, RuleSystem] = {}
    for module in pkgutil.iter_modules(__path__):
        system = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SYSTEM", None)
        if system is not None:
            found[system.name] = system
    return found


def register(system: RuleSystem) -> None:
    """Add a rule system that does not ship with Clubladder (an operator's own, or a test's)."""
    _registered[system.name] = system


def system_names() -> list[str]:
    """The names of all rule systems, sorted."""
    return sorted({*_shipped(), *_registered})


def rule_system(name: str) -> RuleSystem:
    """The rule system of that name.

    Raises:
        KeyError: there is none.
    """
    return _registered[name] if name in _registered else _shipped()[name]
