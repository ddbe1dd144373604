"""AWS's limits that a pool's traffic can meet, as its guides give them; a * marks what AWS raises on request."""

from __future__ import annotations

KEY_WRITES = 1_000
"""Write units a second on one partition key: hard."""
KEY_READS = 3_000
TABLE_WRITES = 40_000
"""Write units a second of one on-demand table.*"""
TABLE_READS = 40_000
CONCURRENCY = 1_000
"""Functions at once in an account; a new account has ten.*"""
FUNCTION_SECONDS = 900
STREAM_RECORDS = 1_000
"""Records a second of one shard of the table's stream; a shard belongs to a partition of the table."""
S3_PUTS = 3_500
"""PUTs a second below one prefix."""
S3_GETS = 5_500
