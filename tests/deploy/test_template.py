"""What the template promises, read from it: what an emulator cannot show, and what nobody may lose by mistake."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from functions.api import app
from functions.api.routing import ROUTES
from local import package, template
from shared.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = template.read()
RESOURCES: dict[str, dict[str, Any]] = DOCUMENT["Resources"]
FUNCTIONS = template.of_type(DOCUMENT, "AWS::Serverless::Function")
QUEUES = template.of_type(DOCUMENT, "AWS::SQS::Queue")
SCHEDULES = template.of_type(DOCUMENT, "AWS::Scheduler::Schedule")
WORKING = {"PublishQueue", "ImportQueue"}
"""The queues that carry work; all others are where failures end."""


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = RESOURCES[name]["Properties"]
    return found


def target(reference: dict[str, Any]) -> str:
    """The logical id that a Ref or GetAtt names."""
    name: str = reference["Ref"] if "Ref" in reference else reference["Fn::GetAtt"][0]
    return name


# -- what is kept ------------------------------------------------------------------------------------------------


def test_what_holds_data_is_known_and_kept() -> None:
    stateful = {
        name for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket") for name in template.of_type(DOCUMENT, kind)
    }
    assert stateful == {"Table", "DataBucket", "SiteBucket"}
    for name in stateful:
        assert RESOURCES[name]["DeletionPolicy"] == RESOURCES[name]["UpdateReplacePolicy"] == "Retain", name


def test_the_table_can_be_restored_and_is_encrypted() -> None:
    table = properties("Table")
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize(("stage", "expected"), [("dev", False), ("prod", True)])
def test_production_cannot_be_deleted_by_a_slip(stage: str, expected: bool) -> None:
    resolve = template.Resolver(DOCUMENT, {"Stage": stage})
    assert resolve(properties("Table")["DeletionProtectionEnabled"]) is expected


@pytest.mark.parametrize("name", template.of_type(DOCUMENT, "AWS::S3::Bucket"))
def test_buckets_are_private_encrypted_and_tls_only(name: str) -> None:
    bucket = properties(name)
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    (policy,) = [
        resource["Properties"]["PolicyDocument"]["Statement"]
        for resource in template.of_type(DOCUMENT, "AWS::S3::BucketPolicy").values()
        if target(resource["Properties"]["Bucket"]) == name
    ]
    (denial,) = [statement for statement in policy if statement["Effect"] == "Deny"]
    assert denial["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(denial["Resource"]) == 2
    for allowed in (statement for statement in policy if statement["Effect"] == "Allow"):
        assert allowed["Principal"] == {"Service": "cloudfront.amazonaws.com"}
        assert "AWS:SourceArn" in allowed["Condition"]["StringEquals"]


@pytest.mark.parametrize("name", QUEUES)
def test_queues_are_encrypted(name: str) -> None:
    assert properties(name)["SqsManagedSseEnabled"] is True


# -- functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_keeps_its_log_for_a_set_time(name: str) -> None:
    group = target(properties(name)["LoggingConfig"]["LogGroup"])
    assert properties(group)["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    (log,) = [statement for statement in statements(name) if statement["Sid"] == "Log"]
    assert target(log["Resource"]) == group


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_packed_and_its_handler_is_where_the_template_says(name: str) -> None:
    short = name.removesuffix("Function").lower()
    assert RESOURCES[name]["Metadata"] == {"BuildMethod": "makefile"}
    assert properties(name)["Handler"] == f"functions.{short}.app.handler"
    assert short in package.CONTENTS


def variables(function: str) -> set[str]:
    shared = DOCUMENT["Globals"]["Function"]["Environment"]["Variables"]
    return shared.keys() | properties(function)["Environment"]["Variables"].keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_says_what_the_settings_need_and_nothing_unknown(name: str) -> None:
    fields = Settings.model_fields.values()
    assert {field.alias for field in fields if field.is_required()} <= variables(name)
    known = {field.alias for field in fields}
    assert {v for v in variables(name) if not v.startswith("POWERTOOLS_")} <= known


def test_every_setting_is_given_to_some_function() -> None:
    given = {v for name in FUNCTIONS for v in variables(name)}
    assert {field.alias for field in Settings.model_fields.values()} <= given
    # Only the publisher writes the API's address into the site, and only the API knows callers.
    assert [n for n in FUNCTIONS if "API_ORIGIN" in variables(n)] == ["PublisherFunction"]
    assert [n for n in FUNCTIONS if "KEY_REQUESTS_PER_MINUTE" in variables(n)] == ["ApiFunction"]


def test_no_secret_is_in_the_environment() -> None:
    for name in FUNCTIONS:
        assert not [v for v in variables(name) if any(word in v for word in ("SECRET", "PASSWORD", "TOKEN", "_KEY"))]


def statements(function: str) -> list[dict[str, Any]]:
    role = properties(target(properties(function)["Role"]))
    assert "ManagedPolicyArns" not in role
    return [statement for policy in role["Policies"] for statement in policy["PolicyDocument"]["Statement"]]


def actions(statement: dict[str, Any]) -> list[str]:
    found = statement["Action"]
    return [found] if isinstance(found, str) else list(found)


READS = {"GetItem", "BatchGetItem", "Query"}
ITEMS = READS | {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"}
GRANTS = {
    "ApiFunction": {
        "logs": {"CreateLogStream", "PutLogEvents"},
        "dynamodb": ITEMS,
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "sqs": {"SendMessage"},
    },
    "RaterFunction": {
        "logs": {"CreateLogStream", "PutLogEvents"},
        "dynamodb": ITEMS | {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"},
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "sqs": {"SendMessage"},
    },
    "ClosingFunction": {
        "logs": {"CreateLogStream", "PutLogEvents"},
        "dynamodb": ITEMS,
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "sqs": {"SendMessage"},
    },
    "ImporterFunction": {
        "logs": {"CreateLogStream", "PutLogEvents"},
        "dynamodb": ITEMS,
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "sqs": {"ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "SendMessage"},
    },
    "PublisherFunction": {
        "logs": {"CreateLogStream", "PutLogEvents"},
        "dynamodb": READS | {"UpdateItem", "BatchWriteItem"},
        "s3": {"GetObject", "PutObject", "DeleteObject", "ListBucket"},
        "sqs": {"ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "SendMessage"},
    },
}
WRITES = {
    "ApiFunction": {"Put": {"uploads", "reports", "checkpoints"}, "Delete": {"checkpoints"}},
    "RaterFunction": {"Put": {"checkpoints", "erased"}, "Delete": {"checkpoints", "reports"}},
    "ClosingFunction": {
        "Put": {"checkpoints", "segments", "frozen", "erased"},
        "Delete": {"checkpoints", "reports"},
    },
    "ImporterFunction": {"Put": {"reports", "checkpoints"}, "Delete": {"checkpoints"}},
    "PublisherFunction": {"Put": {"parts", "published"}},
}
"""Prefixes of the data bucket."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_writes_what_it_makes_in_the_data_bucket_and_nothing_else(name: str) -> None:
    found: dict[str, set[str]] = {}
    for statement in statements(name):
        places = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        for action in actions(statement):
            kind = action.removeprefix("s3:").removesuffix("Object")
            texts = [str(place.get("Fn::Sub", "")) for place in places if kind in ("Put", "Delete")]
            prefixes = {text.split("/")[1] for text in texts if text.startswith("${DataBucket.Arn}/")}
            if prefixes:
                found.setdefault(kind, set()).update(prefixes)
    assert found == WRITES[name]


def test_the_publisher_can_change_no_result_no_person_and_no_key() -> None:
    conditions = [(name, s["Condition"]) for name in FUNCTIONS for s in statements(name) if "Condition" in s]
    partitions = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["POOL#*", "OUTBOX#*"]}}
    assert conditions == [("PublisherFunction", partitions)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_what_is_written_here_and_nothing_else(name: str) -> None:
    granted: dict[str, set[str]] = {}
    for statement in statements(name):
        for action in actions(statement):
            service, _, what = action.partition(":")
            granted.setdefault(service, set()).add(what)
    assert granted == GRANTS[name]


def test_no_grant_is_wider_than_aws_demands() -> None:
    roles = template.of_type(DOCUMENT, "AWS::IAM::Role")
    for name, role in roles.items():
        for policy in role["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                assert not [action for action in actions(statement) if "*" in action], name
                if statement["Resource"] == "*":
                    assert actions(statement) == ["dynamodb:ListStreams"], name


def test_every_role_belongs_to_one_function() -> None:
    used = [target(function["Properties"]["Role"]) for function in FUNCTIONS.values()]
    assert len(used) == len(set(used))
    assert set(used) | {"SchedulerRole", "ExportRole"} == set(template.of_type(DOCUMENT, "AWS::IAM::Role"))


def test_a_copy_of_the_table_is_written_every_week_and_no_function_touches_it() -> None:
    export = properties("Export")
    what = json.loads(template.Resolver(DOCUMENT, {"Table.Arn": "t", "DataBucket": "b"})(export["Target"]["Input"]))
    assert what == {"TableArn": "t", "S3Bucket": "b", "S3Prefix": "exports", "ExportFormat": "DYNAMODB_JSON"}
    granted = {
        action: statement["Resource"]
        for policy in properties("ExportRole")["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in actions(statement)
    }
    assert granted == {
        "dynamodb:ExportTableToPointInTime": {"Fn::GetAtt": ["Table", "Arn"]},
        "s3:PutObject": {"Fn::Sub": "${DataBucket.Arn}/exports/*"},
        "s3:PutObjectAcl": {"Fn::Sub": "${DataBucket.Arn}/exports/*"},
        "s3:AbortMultipartUpload": {"Fn::Sub": "${DataBucket.Arn}/exports/*"},
        "sqs:SendMessage": {"Fn::GetAtt": ["DeadLetters", "Arn"]},
    }
    for name in FUNCTIONS:
        for statement in statements(name):
            if actions(statement) != ["s3:ListBucket"]:
                assert "exports" not in json.dumps(statement)
                assert "${DataBucket.Arn}/*" not in json.dumps(statement)
            if "erased" in json.dumps(statement):
                assert (actions(statement), name) in (
                    (["s3:PutObject"], f) for f in ("RaterFunction", "ClosingFunction")
                )
    rules = {rule["Id"]: rule for rule in properties("DataBucket")["LifecycleConfiguration"]["Rules"]}
    kept = rules["exports-live-as-long-as-point-in-time-recovery"]
    assert kept["Prefix"] == "exports/"
    assert kept["ExpirationInDays"] + kept["NoncurrentVersionExpiration"]["NoncurrentDays"] == 35
    resolve = template.Resolver(DOCUMENT, {"ExportSchedule": ""})
    assert resolve.holds({"Condition": RESOURCES["Export"]["Condition"]}) is False


def test_only_the_publisher_touches_the_site() -> None:
    for name in FUNCTIONS:
        touches = "SiteBucket" in json.dumps(statements(name))
        assert touches == (name == "PublisherFunction")


# -- edges -------------------------------------------------------------------------------------------------------


def test_only_inbox_inserts_wake_the_rater() -> None:
    inbox = properties("RaterFunction")["Events"]["Inbox"]["Properties"]
    (pattern,) = (json.loads(entry["Pattern"]) for entry in inbox["FilterCriteria"]["Filters"])
    assert pattern == {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "INBOX#"}]}}}}
    assert properties("Table")["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
    assert inbox["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert inbox["BisectBatchOnFunctionError"] is True
    assert inbox["MaximumRetryAttempts"] >= 1


def test_every_asynchronous_edge_ends_in_a_dead_letter_queue() -> None:
    inbox = properties("RaterFunction")["Events"]["Inbox"]["Properties"]
    ends = [target(inbox["DestinationConfig"]["OnFailure"]["Destination"])]
    for name in ("RaterFunction", "ClosingFunction"):
        destination = target(properties(name)["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"])
        ends.append(destination)
        senders = [s for s in statements(name) if actions(s) == ["sqs:SendMessage"]]
        assert {"Fn::GetAtt": [destination, "Arn"]} in senders[0]["Resource"]
    ends += [target(properties(queue)["RedrivePolicy"]["deadLetterTargetArn"]) for queue in WORKING]
    ends += [target(schedule["Properties"]["Target"]["DeadLetterConfig"]["Arn"]) for schedule in SCHEDULES.values()]
    for name in set(ends) | {"FailedPools"}:
        assert properties(name)["MessageRetentionPeriod"] == 14 * 86400, name
        assert "RedrivePolicy" not in properties(name)
    assert set(QUEUES) == set(ends) | WORKING | {"FailedPools"}


def test_a_message_is_not_given_away_while_its_function_runs() -> None:
    assert properties("PublishQueue")["VisibilityTimeout"] > properties("PublisherFunction")["Timeout"]
    assert properties("ImportQueue")["VisibilityTimeout"] > properties("ImporterFunction")["Timeout"]


def test_only_uploads_are_announced_and_only_by_our_own_buckets() -> None:
    (told,) = properties("DataBucket")["NotificationConfiguration"]["QueueConfigurations"]
    assert told["Filter"] == {"S3Key": {"Rules": [{"Name": "prefix", "Value": "uploads/"}]}}
    assert target(told["Queue"]) == "ImportQueue"
    assert RESOURCES["DataBucket"]["DependsOn"] == "ImportQueuePolicy"
    (statement,) = properties("ImportQueuePolicy")["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_months_are_closed_on_every_hour_they_can_turn() -> None:
    closing = {
        name: schedule["Properties"]
        for name, schedule in SCHEDULES.items()
        if schedule["Properties"]["Target"]["Arn"] == {"Fn::GetAtt": ["ClosingFunction", "Arn"]}
    }
    assert {entry["ScheduleExpression"] for entry in closing.values()} == {"cron(5 * L * ? *)", "cron(5 * 1 * ? *)"}
    for entry in closing.values():
        assert entry["ScheduleExpressionTimezone"] == "UTC"
        assert json.loads(entry["Target"]["Input"]) == {"at": "<aws.scheduler.scheduled-time>"}
        assert entry["Target"]["RetryPolicy"]["MaximumRetryAttempts"] >= 1


# -- the edge of the site ------------------------------------------------------------------------------------------


def test_only_embedded_pages_may_be_framed() -> None:
    resolve = template.Resolver(DOCUMENT, {"AWS::Region": "eu-central-1", "AWS::URLSuffix": "amazonaws.com"})

    def policy(name: str) -> str:
        headers = properties(name)["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
        text: str = resolve(headers["ContentSecurityPolicy"]["ContentSecurityPolicy"])
        return text

    assert "frame-ancestors 'none'" in policy("PageHeaders")
    assert "frame-ancestors *" in policy("EmbedHeaders")
    for name in ("PageHeaders", "EmbedHeaders"):
        assert policy(name).startswith("default-src 'self'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy(name)
    behaviours = properties("Distribution")["DistributionConfig"]["CacheBehaviors"]
    framed = [b["PathPattern"] for b in behaviours if target(b["ResponseHeadersPolicyId"]) == "EmbedHeaders"]
    assert framed == ["/embed/*"]


def test_the_gateway_and_the_function_tell_browsers_the_same() -> None:
    """In the cloud the gateway answers for the site's origin; on one machine the function does."""
    cors = properties("HttpApi")["CorsConfiguration"]
    assert set(cors["ExposeHeaders"]) == {h.lower() for h in app.EXPOSED_HEADERS.split(", ")}
    assert set(cors["AllowHeaders"]) == {h.lower() for h in app.ALLOWED_HEADERS.split(", ")}
    assert set(cors["AllowMethods"]) == {route.method for route in ROUTES}


def test_error_pages_cannot_touch_the_api() -> None:
    origins = properties("Distribution")["DistributionConfig"]["Origins"]
    assert [origin["DomainName"] for origin in origins] == [{"Fn::GetAtt": ["SiteBucket", "RegionalDomainName"]}]


@pytest.mark.parametrize(
    ("domain", "origin"), [("", "https://d1.cloudfront.net"), ("ladder.org", "https://ladder.org")]
)
def test_functions_know_the_site_under_the_name_readers_use(domain: str, origin: str) -> None:
    resolve = template.Resolver(DOCUMENT, {"DomainName": domain, "Distribution.DomainName": "d1.cloudfront.net"})
    assert resolve(DOCUMENT["Globals"]["Function"]["Environment"]["Variables"]["SITE_ORIGIN"]) == origin
    assert resolve(properties("HttpApi")["CorsConfiguration"]["AllowOrigins"]) == [origin]


# -- tools ---------------------------------------------------------------------------------------------------------


def test_cfn_lint_has_nothing_to_say() -> None:
    command = [str(ROOT / ".venv/bin/cfn-lint"), "-a", "cfn_lint_serverless.rules", "-t", "template.yaml"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


def test_sam_finds_the_template_valid() -> None:
    sam = ROOT / ".venvs/sam/bin/sam"
    if not sam.exists():
        pytest.fail("the SAM CLI is not installed: run 'make setup-test'")
    environment = {
        "PATH": "/usr/bin:/bin",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "HOME": str(ROOT),
    }
    answer = subprocess.run(
        [str(sam), "validate", "--lint"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
