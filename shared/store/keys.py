"""Every key of the table, in one place; nothing else knows how a key is spelt. See docs/data-model.md."""

from __future__ import annotations

import hashlib

from shared.store.table import Key

SHARDS = 4
"""Inbox and ledger of a pool are spread over so many partitions, so that 500 results a second (2 write units each for
a transactional put) stay below DynamoDB's 1,000 write units a second on any one key."""
RATED_SHARDS = 8
"""Rated rows of a pool and month are spread over so many partitions: 500 rows a second (4 write units each, two
versions in a transaction) put 250 on each of them, and a rebuild that writes every row anew has 2,000 rows a second."""
STATE_SHARDS = 16
"""Player states of a pool are spread over so many partitions, so that a closing can read and write them in parallel."""
META = "META"


def shard(text: str, shards: int = SHARDS) -> int:
    """A stable number from 0 to shards − 1 for a text."""
    return hashlib.blake2b(text.encode(), digest_size=2).digest()[1] % shards


def digest(*parts: str) -> str:
    """A stable 32-digit hex digest of texts, for keys made of content."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


# -- who ---------------------------------------------------------------------------------------------------------
def clubs() -> str:
    """Partition that lists all clubs."""
    return "CLUBS"


def club(club_id: str) -> Key:
    """A club."""
    return f"CLUB#{club_id}", META


def club_key(club_id: str, key_id: str) -> Key:
    """A club's key as its list shows it, without the secret."""
    return f"CLUB#{club_id}", f"KEY#{key_id}"


def secret(key_hash: str) -> Key:
    """What a key may do, found by the key's hash."""
    return f"KEY#{key_hash}", META


def handle(player: str) -> Key:
    """A player's handle: leads to the server-made id."""
    return f"PLAYER#{player}", META


def door(player: str, pool: str) -> Key:
    """What the door must know of a player in a pool: bans, unrated games, rank_me, version of start."""
    return f"PLAYER#{player}", f"DOOR#{pool}"


def person(sid: str) -> Key:
    """The person behind a server-made id: handle, name, clubs. What an erasure empties."""
    return f"SID#{sid}", META


def roster(club_id: str) -> str:
    """Partition of a club's players, by search name."""
    return f"ROSTER#{club_id}"


def memberships(sid: str) -> str:
    """Partition of the pools a player is in."""
    return f"MEMBER#{sid}"


def merges() -> str:
    """Partition of all merges; sort key: the server-made id merged away."""
    return "MERGES"


def merging() -> Key:
    """Counts the changes of merges, so that they come one after the other, and new pools know them all."""
    return "MERGING", META


def attention(club_id: str) -> str:
    """Partition of what a club should look at; sort keys: ``warning#pool#game``, ``rows#pool#file``."""
    return f"ATTENTION#{club_id}"


# -- pool --------------------------------------------------------------------------------------------------------
def pools() -> str:
    """Partition that lists all pools."""
    return "POOLS"


def pool(pool_id: str) -> Key:
    """A pool's definition."""
    return f"POOL#{pool_id}", META


def past_rules(pool_id: str, version: int) -> Key:
    """A pool's rules of the past, under the last version of its definition that had them."""
    return f"RULES#{pool_id}", f"{version:08d}"


def cursor(pool_id: str) -> Key:
    """How far a pool is rated."""
    return f"POOL#{pool_id}", "CURSOR"


def calibration(pool_id: str) -> Key:
    """How far a pool's results stray from expectation, at one version of its cursor."""
    return f"POOL#{pool_id}", "CALIBRATION"


def published(pool_id: str) -> Key:
    """How far a pool is published."""
    return f"POOL#{pool_id}", "PUBLISHED"


def frozen(pool_id: str) -> Key:
    """Up to which closing a pool's lists are frozen."""
    return f"POOL#{pool_id}", "FROZEN"


def game(pool_id: str, club_id: str, game_id: str) -> Key:
    """A game: its current revision and the list of all."""
    return f"GAME#{pool_id}#{club_id}#{game_id}", META


def fingerprint(pool_id: str, content_digest: str) -> Key:
    """Who first sent a game of this content: guards against possible duplicates."""
    return f"FP#{pool_id}#{content_digest}", META


def idempotency(club_id: str, key: str) -> Key:
    """The answer to a request that carried an Idempotency-Key."""
    return f"IDEM#{club_id}#{digest(key)}", META


def limit(subject: str, window: int) -> Key:
    """How many requests of a key, or to a pool, a minute has seen. Leaves by itself."""
    return f"LIMIT#{subject}", f"{window:010d}"


def import_job(import_id: str) -> Key:
    """An import that outlasts a request, and how far it is."""
    return f"IMPORT#{import_id}", META


def import_lock(pool_id: str, club_id: str) -> Key:
    """Who of a club is importing into a pool: one at a time, so that two files cannot get mixed half and half."""
    return f"IMPORTING#{pool_id}#{club_id}", META


def ledger(pool_id: str, month: str, number: int) -> str:
    """Partition of the events accepted in a month (UTC, ``2026-11``), shard ``number``; sort key: event id."""
    return f"LEDGER#{pool_id}#{month}#{number}"


INBOX = "INBOX#"


def inbox(pool_id: str, number: int) -> str:
    """Partition of the events not yet applied; sort key: event id. The stream announces inserts here."""
    return f"{INBOX}{pool_id}#{number}"


# -- ratings -----------------------------------------------------------------------------------------------------
def rated(pool_id: str, month: str, number: int) -> str:
    """Partition of the rated moments of a month (UTC, by when they happened), shard ``number``; sort key: order."""
    return f"RATED#{pool_id}#{month}#{number}"


def state(pool_id: str, sid: str) -> Key:
    """A player's current state in a pool."""
    return state_partition(pool_id, shard(sid, STATE_SHARDS)), sid


def state_partition(pool_id: str, number: int) -> str:
    """Partition of player states, shard ``number``."""
    return f"STATE#{pool_id}#{number}"


def history(pool_id: str, sid: str) -> str:
    """Partition of pointers to a player's rated moments; sort key: order."""
    return f"HIST#{pool_id}#{sid}"


def label(pool_id: str, name: str) -> str:
    """Partition of pointers to the rated games of a tournament or group (``tournament:x``); sort key: order."""
    return f"LABEL#{pool_id}#{name}"


def open_games(pool_id: str) -> str:
    """Partition of open games, with their frozen start ratings; sort key: ``club#game``."""
    return f"OPEN#{pool_id}"


def held(pool_id: str) -> str:
    """Partition of held events and their reasons; sort key: ``club#game``."""
    return f"HELD#{pool_id}"


def aliases(pool_id: str) -> str:
    """Partition of merged players of a pool; sort key: the id merged away."""
    return f"ALIASES#{pool_id}"


def outbox(pool_id: str) -> str:
    """Partition of what changed since the last publication; sort key: position."""
    return f"OUTBOX#{pool_id}"


def changelog(pool_id: str) -> str:
    """Partition of corrections, voids, revivals, merges of a pool; sort key: when accepted, then which."""
    return f"CHANGELOG#{pool_id}"


def journal(pool_id: str, sid: str) -> str:
    """Partition of what corrections did to a player's rating; sort key: the ledger's position, then the game."""
    return f"JOURNAL#{pool_id}#{sid}"
