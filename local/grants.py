"""What a function's role lets it do, read from the template: systems in one process hold every call against it.

An emulator's own check knows actions only, and only what a test happens to do there; this one knows tables, prefixes of
buckets and queues, and stands behind every test that calls a handler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from local.template import Resolver

Need = tuple[str, str]
"""(action, resource) that a call needs."""
ACCOUNT = "000000000000"
EVERY = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["*"]}}
"""The one condition that a grant may have here, when it has none."""
_TRANSACTED = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
_OBJECTS = {
    "GetObject": "GetObject",
    "HeadObject": "GetObject",
    "PutObject": "PutObject",
    "DeleteObject": "DeleteObject",
}


def table_arn(region: str, name: str) -> str:
    """The ARN of a table."""
    return f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/{name}"


def queue_arn(region: str, url: str) -> str:
    """The ARN of a queue by its address."""
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{url.rpartition('/')[2]}"


def granted(template: Mapping[str, Any], function: str, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Resources (with ``*``) by action, as the function's role names them. Logs are left out: the runtime writes them.

    Args:
        values: what references stand for, ``Table.Arn`` and ``DataBucket.Arn`` among them.
    """
    role = template["Resources"][template["Resources"][function]["Properties"]["Role"]["Fn::GetAtt"][0]]
    resolve, found = Resolver(template, values), dict[str, list[str]]()
    for policy in role["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            actions = statement["Action"]
            for action in [actions] if isinstance(actions, str) else actions:
                if not action.startswith("logs:"):
                    resources = resolve({"of": statement["Resource"]})["of"]
                    partitions = statement.get("Condition", EVERY)["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
                    for resource in [resources] if isinstance(resources, str) else resources:
                        behind = [f"/{p}" for p in partitions] if action.startswith("dynamodb:") else [""]
                        found.setdefault(action, []).extend(resource + part for part in behind)
    return found


def needs(service: str, operation: str, params: Mapping[str, Any], region: str) -> Iterator[Need]:
    """What a call of a client needs. What is not known here needs an action that nobody has."""
    match service, operation:
        case "dynamodb", "TransactWriteItems":
            for entry in params["TransactItems"]:
                ((kind, what),) = entry.items()
                yield f"dynamodb:{_TRANSACTED[kind]}", table_arn(region, what["TableName"]) + _leading(what)
        case "dynamodb", "BatchGetItem":
            for name, asked in params["RequestItems"].items():
                for key in asked["Keys"]:
                    yield f"dynamodb:{operation}", table_arn(region, name) + _leading({"Key": key})
        case "dynamodb", "BatchWriteItem":
            for name, requests in params["RequestItems"].items():
                for request in requests:
                    yield f"dynamodb:{operation}", table_arn(region, name) + _leading(*request.values())
        case "dynamodb", _:
            yield f"dynamodb:{operation}", table_arn(region, params.get("TableName", "")) + _leading(params)
        case "s3", "ListObjectsV2":
            yield "s3:ListBucket", f"arn:aws:s3:::{params['Bucket']}"
        case "s3", "DeleteObjects":
            for entry in params["Delete"]["Objects"]:
                yield "s3:DeleteObject", f"arn:aws:s3:::{params['Bucket']}/{entry['Key']}"
        case "s3", _:
            yield f"s3:{_OBJECTS.get(operation, operation)}", f"arn:aws:s3:::{params['Bucket']}/{params.get('Key', '')}"
        case "sqs", _:
            yield f"sqs:{operation}", queue_arn(region, params.get("QueueUrl", ""))
        case _:
            yield f"{service}:{operation}", ""


def _leading(what: Mapping[str, Any]) -> str:
    """The partition that a call touches, behind the ARN."""
    item = what.get("Item") or what.get("Key") or {"pk": what.get("ExpressionAttributeValues", {}).get(":pk", {})}
    return "/" + str(item["pk"].get("S", ""))


def check(grants: Mapping[str, list[str]], wanted: Iterator[Need], operation: str) -> None:
    """Refuse a call as AWS does.

    Raises:
        ClientError: ``AccessDenied`` (S3), ``AccessDeniedException`` (the others).
    """
    for action, resource in wanted:
        if not any(fnmatchcase(resource, pattern) for pattern in grants.get(action, ())):
            code = "AccessDenied" if action.startswith("s3:") else "AccessDeniedException"
            raise ClientError({"Error": {"Code": code, "Message": f"no grant of {action} on {resource}"}}, operation)
