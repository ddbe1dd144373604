"""What is counted and how it is priced."""

from __future__ import annotations

import pytest

from local import cost, template
from local.cost import Counting, Use
from local.emulator import Emulator

ITEM = {"pk": {"S": "a" * 10}, "sk": {"S": "b"}, "body": {"S": "x" * 1500}}
UPDATE = {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "UpdateExpression": "SET #a = :a"}


@pytest.mark.parametrize(
    ("operation", "params", "answer", "expected"),
    [
        ("dynamodb.GetItem", {}, {"Item": ITEM}, {"DynamoDB read units": 1}),
        ("dynamodb.GetItem", {}, {}, {"DynamoDB read units": 1}),
        ("dynamodb.Query", {}, {"Items": [ITEM] * 6}, {"DynamoDB read units": 3}),
        ("dynamodb.Query", {}, {"Items": []}, {"DynamoDB read units": 1}),
        (
            "dynamodb.BatchGetItem",
            {"RequestItems": {"t": {"Keys": [1, 2, 3]}}},
            {"Responses": {"t": [ITEM, ITEM]}},
            {"DynamoDB read units": 3},
        ),
        ("dynamodb.PutItem", {"Item": ITEM}, {}, {"DynamoDB write units": 2}),
        ("dynamodb.UpdateItem", UPDATE, {}, {"DynamoDB write units": 1}),
        (
            "dynamodb.TransactWriteItems",
            {"TransactItems": [{"Put": {"Item": ITEM}}, {"Update": UPDATE}]},
            {},
            {"DynamoDB write units": 6},
        ),
        (
            "dynamodb.BatchWriteItem",
            {"RequestItems": {"t": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": {}}}]}},
            {},
            {"DynamoDB write units": 3},
        ),
        ("s3.PutObject", {}, {}, {"S3 PUT, LIST": 1}),
        ("s3.ListObjectsV2", {}, {}, {"S3 PUT, LIST": 1}),
        ("s3.DeleteObjects", {}, {}, {"S3 PUT, LIST": 0}),
        ("s3.HeadObject", {}, {}, {"S3 GET": 1}),
        ("sqs.SendMessage", {}, {}, {"SQS requests": 1}),
    ],
)
def test_units_are_counted_as_aws_does(operation: str, params: dict, answer: dict, expected: dict) -> None:  # type: ignore[type-arg]
    assert cost.units_of(operation, params, answer) == expected


def test_what_is_free_costs_nothing_and_the_dearest_comes_first() -> None:
    found = cost.price({"SQS requests": 900_000, "Alarm metrics": 12, "DynamoDB write units": 10_000_000})
    assert found["SQS requests"] == 0
    assert found["Alarm metrics"] == pytest.approx(0.20)
    assert next(iter(found)) == "DynamoDB write units"


def test_a_call_to_a_bucket_takes_longer_than_one_to_the_table() -> None:
    assert cost.waiting({"dynamodb.Query": 10, "s3.PutObject": 2, "sqs.SendMessage": 1}) == pytest.approx(0.13)


def test_alarms_are_priced_as_the_template_has_them() -> None:
    alarms = template.of_type(template.read(), "AWS::CloudWatch::Alarm").values()
    watched = sum(len([m for m in a["Properties"].get("Metrics", [0]) if m == 0 or "MetricStat" in m]) for a in alarms)
    assert watched == cost.ALARM_METRICS


def test_differences_and_multiples() -> None:
    one, two = Use(), Use()
    one.units.update({"a": 1})
    two.units.update({"a": 10, "b": 1})
    assert (two - one).scaled(1 / 9).units["a"] == pytest.approx(1)


def test_a_small_season_stays_within_the_budgets(emulator: Emulator) -> None:
    with Counting.on_endpoint(emulator.url) as system:
        measured = cost.season(system, players=12, history=12)
    submit = sum(measured.submit.calls.values())
    assert submit <= 4, measured.submit.calls  # key, pool, what is needed of players and game, transaction
    assert set(measured.submit.calls) <= {"dynamodb.GetItem", "dynamodb.BatchGetItem", "dynamodb.TransactWriteItems"}
    assert measured.rate.units["DynamoDB write units"] <= 30
    assert measured.rate_more.units["DynamoDB write units"] <= measured.rate.units["DynamoDB write units"]
    assert measured.sweep.units["DynamoDB write units"] == 0  # where nothing waits
    assert measured.publish_more.units["S3 PUT, LIST"] <= measured.publish.units["S3 PUT, LIST"]
    assert 500 < measured.bytes_per_game < 10_000
    club, federation, platform = (sum(cost.price(cost.month(measured, size)).values()) for size in cost.SIZES)
    assert club < 1 < federation < 50 < platform
    report = cost.report(measured)
    for part in ("DynamoDB write units", "S3 PUT, LIST", "CloudFront requests"):
        assert part in report
    for size in cost.SIZES:
        assert next(iter(cost.price(cost.month(measured, size)))) in report
