"""The operator's commands: `backup`, `restore`, `redrive` on a stack, with his own credentials; and `cost`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local import backup, redrive
from local.cloud import CloudError
from shared.store.bucket import Bucket
from shared.store.table import Table
from shared.usecases.context import Context

Say = Callable[[str], None]


@dataclass
class Stack:
    """A deployed stack: its outputs and resources, read when they are needed."""

    name: str
    region: str | None = None

    def client(self, service: str) -> Any:
        """A client in the stack's region."""
        return boto3.client(service, region_name=self.region)  # type: ignore[call-overload]

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs by name."""
        (stack,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}

    def physical(self, logical: str) -> str:
        """What a resource of the template is called in the cloud."""
        found = self.client("cloudformation").describe_stack_resource(StackName=self.name, LogicalResourceId=logical)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def context(self) -> Context:
        """What use cases need, on this stack."""
        s3, sqs, queue = self.client("s3"), self.client("sqs"), self.outputs["PublishQueueUrl"]

        def ask(pool: str, delay: int) -> None:
            sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"pool": pool}), DelaySeconds=delay)

        return Context(
            table=Table(self.client("dynamodb"), self.outputs["TableName"]),
            data=Bucket(s3, self.outputs["DataBucketName"]),
            site=Bucket(s3, self.outputs["SiteBucketName"]),
            ask_to_publish=ask,
            publish_delay=0,
        )

    def target(self) -> redrive.Target:
        """Where redriven messages go."""
        functions, sqs = self.client("lambda"), self.client("sqs")
        names = {"rater": "RaterFunction", "closing": "ClosingFunction"}

        def invoke(function: str, event: Mapping[str, Any]) -> None:
            functions.invoke(
                FunctionName=self.physical(names[function]),
                InvocationType="Event",
                Payload=json.dumps(event).encode(),
            )

        def publish(pool: str) -> None:
            sqs.send_message(QueueUrl=self.outputs["PublishQueueUrl"], MessageBody=json.dumps({"pool": pool}))

        def announce(body: str) -> None:
            sqs.send_message(QueueUrl=self.physical("ImportQueue"), MessageBody=body)

        return redrive.Target(invoke, publish, announce)


def _stack(options: argparse.Namespace) -> Stack:
    return Stack(options.stack, options.region)


def run_backup(options: argparse.Namespace) -> int:
    """Write a backup."""
    stack = _stack(options)
    ctx = stack.context()
    made = backup.export(ctx.table, backup.place(options.to, lambda: stack.client("s3")), ctx.clock())
    print(f"{made.items:,} items, {sum(made.events.values()):,} events of {len(made.events)} pools, in {options.to}")
    if made.left_out:
        print(f"{made.left_out} results came in at the very end and are not in it; the next backup has them")
    print("It holds names: keep it as you keep the table, and delete it when its time is over.")
    return 0


def run_restore(options: argparse.Namespace) -> int:
    """Fill an empty table; 0 when every pool has the ratings it had."""
    stack = _stack(options)
    source = backup.place(options.source, lambda: stack.client("s3"))
    erased = backup.place(options.erased, lambda: stack.client("s3")) if options.erased else None
    restored = backup.restore(stack.context(), source, anyway=options.anyway, erased=erased)
    print(f"{restored.items:,} items, {sum(restored.events.values()):,} events")
    for pool, found in sorted(restored.hashes.items()):
        wanted = restored.expected.get(pool)
        told = "not known before" if wanted is None else "as before" if wanted == found else f"was {wanted}"
        print(f"  {pool}: {found} ({told})")
    print(f"{len(restored.erased)} who were erased since the backup was made are erased again.")
    print("All pages are asked for and appear in the next minutes.")
    return 1 if restored.differing else 0


def run_redrive(options: argparse.Namespace) -> int:
    """Empty the dead-letter queues of a stack."""
    stack = _stack(options)
    target = stack.target()
    if options.pool:
        for function, event in (("rater", {"pool": options.pool}), ("closing", {})):
            target.invoke(function, event)
        target.publish(options.pool)
    queues = [options.queue] if options.queue else [stack.outputs["FailedQueueUrl"], stack.outputs["DeadLettersUrl"]]
    done = redrive.run(stack.client("sqs"), queues, target, dry=options.dry_run)
    if not options.dry_run and not options.queue and not options.pool:
        target.invoke("rater", {"task": "sweep"})
        target.invoke("closing", {})
    what = ", ".join(f"{name} {count}" for name, count in sorted(done.actions.items())) or "nothing"
    print(f"{done.messages} messages: {what}{' would be done' if options.dry_run else ''}")
    if done.unknown:
        print(f"{done.unknown} of them are of no known kind and stay where they are")
    return 0


def run_cost(_: argparse.Namespace) -> int:
    """Count and price."""
    from local import cost

    print(cost.run())
    return 0


def guarded(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Errors of AWS and of backups as one line for a person."""

    def call(options: argparse.Namespace) -> int:
        try:
            return command(options)
        except (ClientError, BotoCoreError, backup.BackupError, FileNotFoundError) as error:
            raise CloudError(str(error)) from error

    return call


def add_commands(commands: Any) -> None:
    """The commands, for the command line of `python -m local`."""
    one = commands.add_parser("backup", help="write what cannot be made again from a stack's table to S3 or a folder")
    _on_a_stack(one)
    one.add_argument("--to", required=True, metavar="PLACE", help="s3://bucket/prefix or a folder, empty so far")
    one.set_defaults(run=guarded(run_backup))

    two = commands.add_parser(
        "restore",
        help="fill an empty table from a backup and make all ratings and pages anew",
        description="Reads what `backup` wrote, or DynamoDB's own export to S3 (the newest whole one there). "
        "Compares the state hash of every pool with that of the backup; ends with 1 when one differs.",
    )
    _on_a_stack(two)
    two.add_argument("--from", dest="source", required=True, metavar="PLACE", help="s3://bucket/prefix or a folder")
    two.add_argument(
        "--anyway", action="store_true", help="though the table is not empty: go on with a broken-off restore"
    )
    two.add_argument(
        "--erased",
        metavar="PLACE",
        help="s3://old-data-bucket/erased: who is to be erased again, beside those whom the stack's own data bucket "
        "and the bucket of the copy name",
    )
    two.set_defaults(run=guarded(run_restore))

    three = commands.add_parser(
        "redrive",
        help="send dead letters of a stack where they belong",
        description="Without --queue and --pool also wakes rater and closing once. Can be run at any time, and twice.",
    )
    _on_a_stack(three)
    three.add_argument("--queue", metavar="URL", help="only this dead-letter queue (default: both of the stack)")
    three.add_argument("--pool", help="rate, close and publish this pool, too")
    three.add_argument("--dry-run", action="store_true", help="only say what lies there")
    three.set_defaults(run=guarded(run_redrive))

    four = commands.add_parser(
        "cost",
        help="count what a small season uses of each service, and price a club, a federation and a platform",
    )
    four.set_defaults(run=run_cost)


def _on_a_stack(command: argparse.ArgumentParser) -> None:
    command.add_argument("--stack", required=True, metavar="NAME", help="the stack's name")
    command.add_argument("--region", help="its region (default: your AWS configuration's)")
