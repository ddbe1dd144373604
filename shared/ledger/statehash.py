"""The state hash: one number for all ratings of a pool, kept up to date change by change (API.md)."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping

from shared.ratings.base import PlayerState, RuleSystem

MODULUS = 1 << 256


def line_hash(system: RuleSystem, sid: str, state: PlayerState) -> int:
    """SHA-256 of ``server_id \\t rating \\t games \\t last_result_date`` (the date empty when there is none)."""
    last = dt.date.fromordinal(state.last_result).isoformat() if state.last_result else ""
    line = f"{sid}\t{system.hash_token(state.rating, state.index)}\t{state.games}\t{last}"
    return int.from_bytes(hashlib.sha256(line.encode()).digest())


def state_hash(system: RuleSystem, states: Mapping[str, PlayerState]) -> int:
    """The sum over all players, modulo 2^256."""
    return sum(line_hash(system, sid, state) for sid, state in states.items()) % MODULUS


def to_hex(value: int) -> str:
    """64 hex digits."""
    return f"{value:064x}"
