"""What the measurements count at the client is what the emulator's own log of requests says."""

from __future__ import annotations

from tests.bench import emulator


def test_the_emulators_log_says_what_was_counted() -> None:
    counted, logged = emulator.both()
    assert logged == counted
    assert logged["submit"] == {"DynamoDB": 3}, "key and pool; game and players; one transaction"
    assert logged["rate"].keys() == {"DynamoDB"}
    assert logged["late: publish"]["S3 PUT"] > 0
