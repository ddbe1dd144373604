"""What a measurement says: one line of the table, one entry of the JSON."""

from __future__ import annotations

import platform
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Line:
    """A figure, and beside it what it is to be compared with, measured in the same run."""

    what: str
    figure: float
    unit: str
    peer: str = ""
    peer_figure: float | None = None
    budget: str = ""
    met: bool | None = None
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The figure over its peer's."""
        return self.figure / self.peer_figure if self.peer_figure else None


_STATUS = Path("/proc/self/status")
Section = Callable[[float], list[Line]]
"""Takes which share of the full size to measure; gives lines."""


def number(value: float) -> str:
    """Three figures, thousands set apart."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(title: str, lines: list[Line]) -> None:
    """Print a section."""
    print(f"\n{title}")
    for line in lines:
        peer = f"{line.peer} {number(line.peer_figure)}" if line.peer_figure is not None else ""
        ratio = f"× {line.ratio:.2f}" if line.ratio is not None else ""
        met = "" if line.met is None else "ok" if line.met else "MISSED"
        print(
            f"  {line.what:<58} {number(line.figure):>11} {line.unit:<10} {peer:<34} {ratio:<8} {line.budget:<22} {met}"
        )
        if line.note:
            print(f"      {line.note}")


def as_json(line: Line) -> dict[str, Any]:
    """A line without what it does not say."""
    found = {name: getattr(line, name) for name in line.__dataclass_fields__}
    found["ratio"] = None if line.ratio is None else round(line.ratio, 3)
    found["figure"] = round(line.figure, 4)
    return {key: value for key, value in found.items() if value not in (None, "", {})}


def machine() -> dict[str, Any]:
    """Where this was measured."""
    return {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}


def peak_mb() -> float:
    """The most memory this process has held, in MB."""
    # Not getrusage where it can be helped: on Linux it begins with what the process held that started this one.
    if _STATUS.exists():
        told = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(told["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
