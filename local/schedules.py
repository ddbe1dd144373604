"""Fires a schedule of the template by hand: its target, with its input, at a time of one's choice."""

import datetime as dt
import json
from collections.abc import Iterable

PLACEHOLDER = "<aws.scheduler.scheduled-time>"


def choose(wanted: str, names: Iterable[str], stack: str) -> str | None:
    """The schedule meant by `closing`, `sweep` or a full name; of several with one target, the first."""
    for name in sorted(names):
        short = name.removeprefix(f"{stack}-")
        if wanted in (name, short) or short.startswith(f"{wanted}-"):
            return name
    return None


def filled(template: str, at: str | None) -> str:
    """The input as AWS sends it: with the time it was due, in UTC without fractions."""
    if at is None:
        moment = dt.datetime.now(dt.UTC)
    else:
        moment = dt.datetime.fromisoformat(at)
        if moment.tzinfo is None:
            message = f"{at} has no offset"
            raise ValueError(message)
    return template.replace(PLACEHOLDER, moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def sweep_input() -> str:
    """What the sweep's schedule sends, now."""
    return filled(json.dumps({"task": "sweep", "at": PLACEHOLDER}), None)
