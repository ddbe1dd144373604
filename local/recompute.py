"""Recompute a pool's ratings from its published ledger, offline: the same hash, or something is wrong.

python -m local recompute https://ratings.example/forum/       # or a folder with the published site
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from shared.ledger import lists
from shared.ledger.events import Event, decode
from shared.ledger.order import to_instant
from shared.ledger.replay import rules_in, states_of
from shared.ledger.statehash import state_hash, to_hex
from shared.ratings import rule_system

LOOKS = 3
PAUSE = 5.0
"""Seconds between two looks: a publication puts a segment up before the index that names it."""


class RecomputeError(Exception):
    """The published ledger cannot be read, or does not fit its own index."""


def fetch(source: str, path: str) -> bytes:
    """A file below a pool's address or folder."""
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(f"{source.rstrip('/')}/{path}", timeout=60) as answer:
            return bytes(answer.read())
    return (Path(source) / path).read_bytes()


def recompute(source: str) -> dict[str, Any]:
    """Fold a published ledger.

    Returns:
        ``{"pool", "position", "events", "published_hash", "hash", "standings"}``; standings in
        their order, equal ratings sharing the place.

    Raises:
        RecomputeError: a segment does not have its checksum, or the number of events is not the position.
    """
    index = json.loads(fetch(source, "ledger/index.json"))
    events: list[Event] = []
    for segment in index["segments"]:
        body = fetch(source, f"ledger/{segment['month']}.jsonl")
        if hashlib.sha256(body).hexdigest() != segment["sha256"]:
            raise RecomputeError(f"segment {segment['month']} does not have the checksum of the index")
        events += [decode(line) for line in body.splitlines() if line]
    if len(events) != index["position"]:
        raise RecomputeError(f"{len(events)} events, but the index says position {index['position']}")
    system = rule_system(index["system"])
    closed = index["closed_until"]
    until = None if closed is None else to_instant(dt.datetime.fromisoformat(closed.replace("Z", "+00:00")))
    states = states_of(system, rules_in(system, events), index["time_zone"], events, until)
    handles = json.loads(fetch(source, "ledger/players.json"))
    # Names are not in a ledger, so equal ones stand in the order of their ids.
    order = lists.ordered(system, states, {sid: ("", handles.get(sid, sid)) for sid in states}, lists.collate_plain)
    places = lists.places(system, states, order)
    return {
        "pool": index["pool"],
        "position": index["position"],
        "events": len(events),
        "published_hash": index["state_hash"],
        "hash": to_hex(state_hash(system, states)),
        "standings": [
            {
                "place": places[sid],
                "player": handles.get(sid, sid),
                "rating": system.present(states[sid].rating, states[sid].index),
                "games": states[sid].games,
            }
            for sid in order
        ],
    }


def steadily(source: str) -> dict[str, Any]:
    """As ``recompute``; a site that is just being published (a segment newer than the index) is looked at again."""
    for _ in range(LOOKS - 1):
        try:
            return recompute(source)
        except RecomputeError:
            if not source.startswith(("http://", "https://")):
                raise
            time.sleep(PAUSE)
    return recompute(source)


def show(source: str, *, as_json: bool = False) -> int:
    """Print the standings and both hashes; 0 when they agree, 1 when not, 2 when the ledger cannot be read."""
    try:
        found = steadily(source)
    except (OSError, RecomputeError, ValueError, KeyError) as error:
        print(f"cannot recompute: {error}", file=sys.stderr)
        return 2
    agree = found["hash"] == found["published_hash"]
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        for line in found["standings"]:
            shown = " / ".join(str(value) for value in line["rating"].values())
            print(f"{line['place']:>5}  {line['player']:<40} {shown:>18} {line['games']:>6}")
        print(f"{found['events']} events folded, state hash {found['hash']}")
        print("which is the published one" if agree else f"NOT the published one, {found['published_hash']}")
    return 0 if agree else 1
