"""What an operator does once to a stack in the cloud, from his own machine and with his own AWS credentials."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from shared.store.table import Table
from shared.usecases.access import install_admin_key, new_key
from shared.usecases.context import wall_clock


class CloudError(Exception):
    """AWS did not do what was asked; the message says what it was."""


def make_admin_key(table: str, region: str | None = None) -> tuple[str, str]:
    """Make an admin's key and install its hash in the stack's table.

    Args:
        table: the table's name, output ``TableName`` of the stack.
        region: of the stack; None: the one of the AWS configuration.

    Returns:
        key and key id; the key is nowhere else, so it must be shown now.

    Raises:
        CloudError: there is no such table, or no right to write to it.
    """
    key = new_key()
    try:
        client = boto3.client("dynamodb", region_name=region)
        client.describe_table(TableName=table)  # a mistyped name gets an answer that names it
        return key, install_admin_key(Table(client, table), key, wall_clock())
    except (ClientError, BotoCoreError) as error:
        message = f"the key could not be installed in table {table}: {error}"
        raise CloudError(message) from error
