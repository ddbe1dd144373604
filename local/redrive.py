"""Sends what ended in the dead-letter queues where it belongs, and removes it once that was accepted.

A wake-up carries nothing, so all of it may be done at any time and twice: a failed batch of the stream becomes a
sweep, a failed pool is rated and closed, a publication is asked for again, an import is announced again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST = 10_000
"""Messages that one run takes; what is left, the next one does."""
PATIENCE_SECONDS = 120
"""So long a message that was taken is hidden from other runs."""


@dataclass(frozen=True)
class Target:
    """Where things belong. The functions by what they are for, the queues by their address."""

    invoke: Callable[[str, Mapping[str, Any]], None]
    """Start a function (``rater``, ``closing``) with an event; raises when it was not accepted."""
    publish: Callable[[str], None]
    """Ask for a pool's publication."""
    announce: Callable[[str], None]
    """Announce an upload again, by the body of its message."""


@dataclass
class Done:
    """What a run did."""

    messages: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    """Messages nobody knows what to do with; they stay."""


Action = tuple[str, str]
"""(what, of which pool, or which body)."""
SWEEP: Action = ("sweep", "")
CLOSE: Action = ("close", "")


def actions_of(body: str) -> list[Action]:
    """What a dead letter asks for; nothing when it is not known what it is."""
    try:
        letter = json.loads(body)
    except ValueError:
        return []
    if not isinstance(letter, dict):
        return []
    if "DDBStreamBatchInfo" in letter:  # a batch of the stream: its inbox entries are still there
        return [SWEEP]
    if "requestPayload" in letter and isinstance(letter["requestPayload"], dict):  # an asynchronous call that failed
        return _of_event(letter["requestPayload"])
    if "Records" in letter:  # an upload
        return [("import", body)]
    return _of_event(letter)


def _of_event(event: Mapping[str, Any]) -> list[Action]:
    if "Records" in event:
        return [SWEEP]
    if isinstance(event.get("pool"), str):  # failed pools, and publications that were given up
        pool = event["pool"]
        return [("rate", pool), CLOSE, ("publish", pool)] if pool else [("publish", "")]
    if event.get("task") == "sweep":
        return [SWEEP]
    if set(event) == {"at"}:
        return [CLOSE]
    return []


def run(sqs: Any, queues: list[str], target: Target, *, dry: bool = False) -> Done:
    """Empty these queues.

    Args:
        sqs: boto3's client.
        queues: addresses of dead-letter queues.
        target: where things belong.
        dry: only look.
    """
    done, wanted = Done(), dict[Action, list[tuple[str, str]]]()
    receipts: list[tuple[str, str, list[Action]]] = []
    for url in queues:
        for message in _messages(sqs, url):
            actions = actions_of(message["Body"])
            done.messages += 1
            done.unknown += not actions
            receipts.append((url, message["ReceiptHandle"], actions))
            for action in actions:
                wanted.setdefault(action, []).append((url, message["ReceiptHandle"]))
    done.actions = Counter(what for what, _ in wanted)
    if not dry:
        for action in sorted(wanted, key=_order):
            _do(action, target)
    for url, receipt, actions in receipts:
        if actions and not dry:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=receipt)
        else:
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)
    return done


def _order(action: Action) -> tuple[int, Action]:
    """Imports first, then ratings, then pages."""
    return ["import", "rate", "sweep", "close", "publish"].index(action[0]), action


def _do(action: Action, target: Target) -> None:
    match action:
        case ("import", body):
            target.announce(body)
        case ("rate", pool):
            target.invoke("rater", {"pool": pool})
        case ("sweep", _):
            target.invoke("rater", {"task": "sweep"})
        case ("close", _):
            target.invoke("closing", {})
        case ("publish", pool):
            target.publish(pool)


def _messages(sqs: Any, url: str) -> Iterator[dict[str, Any]]:
    for _ in range(MOST // 10):
        found = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=PATIENCE_SECONDS, WaitTimeSeconds=1
        ).get("Messages", [])
        if not found:
            return
        yield from found
