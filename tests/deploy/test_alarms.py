"""Alarms, their paragraphs in the runbook, and the dashboard: each says something that exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from local import template

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = template.read()
RESOURCES: dict[str, dict[str, Any]] = DOCUMENT["Resources"]
ALARMS = {n: a["Properties"] for n, a in template.of_type(DOCUMENT, "AWS::CloudWatch::Alarm").items()}
RESOLVED = template.Resolver(DOCUMENT, {"AWS::StackName": "stack"})
OURS = "Clubladder/stack"
MOST_ALARM_METRICS = 13
"""Ten are free, each further one costs 0.10 $ a month."""


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm, those it adds up too."""
    return [q["MetricStat"]["Metric"] for q in alarm.get("Metrics", []) if "MetricStat" in q] or [alarm]


METRICS = [(n, m) for n, a in ALARMS.items() for m in watched(a)]


def of(metric: dict[str, Any]) -> tuple[str, str, str]:
    """(namespace, name, what it is of)."""
    (dimension,) = metric["Dimensions"]
    value = dimension["Value"]
    of_what = value if isinstance(value, str) else value.get("Ref") or value["Fn::GetAtt"][0]
    return str(RESOLVED(metric["Namespace"])), metric["MetricName"], of_what


def test_what_an_operator_must_hear_of_has_an_alarm() -> None:
    assert {of(m) for _, m in METRICS} == {
        ("AWS/ApiGateway", "5xx", "HttpApi"),
        ("AWS/Lambda", "Errors", "RaterFunction"),
        ("AWS/Lambda", "Errors", "ClosingFunction"),
        ("AWS/Lambda", "Errors", "PublisherFunction"),
        ("AWS/Lambda", "Throttles", "ApiFunction"),
        ("AWS/DynamoDB", "WriteThrottleEvents", "Table"),
        ("AWS/DynamoDB", "ReadThrottleEvents", "Table"),
        (OURS, "OldestUnratedSeconds", "rater"),
        (OURS, "OldestUnpublishedSeconds", "rater"),
        (OURS, "MonthsUnclosed", "rater"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "FailedPools"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "DeadLetters"),
    }
    assert len(METRICS) <= MOST_ALARM_METRICS


def test_no_metric_is_split_by_the_pool() -> None:
    assert {d["Name"] for _, m in METRICS for d in m["Dimensions"]} == {
        "ApiId",
        "FunctionName",
        "TableName",
        "QueueName",
        "service",
    }


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_tells_somebody_and_leads_into_the_runbook(name: str) -> None:
    alarm = ALARMS[name]
    for email, expected in (("", None), ("a@example.org", ["topic"])):
        resolve = template.Resolver(DOCUMENT, {"AlarmEmail": email, "AlarmTopic": "topic"})
        assert resolve({"actions": alarm["AlarmActions"]}).get("actions") == expected
    found = re.search(r"Runbook - ([a-z-]+)\.$", alarm["AlarmDescription"])
    assert found
    anchor = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower().removesuffix("-waiting")
    assert found[1] == anchor
    assert f"\n## {found[1]}\n" in (ROOT / "docs/runbook.md").read_text(encoding="utf-8")


def test_the_runbook_has_no_paragraph_without_an_alarm() -> None:
    text = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    alarms = text.partition("# Alarms\n")[2].partition("\n# ")[0]
    named = {a["AlarmDescription"].rpartition("Runbook - ")[2].rstrip(".") for a in ALARMS.values()}
    assert set(re.findall(r"^## ([a-z-]+)$", alarms, re.MULTILINE)) == named


def test_cloudwatch_can_reach_the_topic() -> None:
    """It may not use the AWS-managed key of SNS, so a topic encrypted with that would stay silent for ever."""
    assert "KmsMasterKeyId" not in RESOURCES["AlarmTopic"]["Properties"]


def test_a_missing_sweep_is_an_alarm_too() -> None:
    assert [n for n, a in ALARMS.items() if a["TreatMissingData"] == "breaching"] == ["ResultsWait"]


def test_added_up_metrics_are_looked_at_over_one_time() -> None:
    for name, alarm in ALARMS.items():
        periods = {q["MetricStat"]["Period"] for q in alarm.get("Metrics", []) if "MetricStat" in q}
        assert len(periods) <= 1, name
        returned = [q for q in alarm.get("Metrics", []) if q.get("ReturnData")]
        assert len(returned) == ("Metrics" in alarm)


def test_the_dashboard_shows_what_exists() -> None:
    (dashboard,) = template.of_type(DOCUMENT, "AWS::CloudWatch::Dashboard").values()
    text = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
    logical = set(re.findall(r"\$\{(\w+)(?:\.\w+)?\}", text))
    assert logical <= set(RESOURCES)
    body = json.loads(re.sub(r"\$\{([^}]+)\}", r"\1", text))
    metrics = [m for w in body["widgets"] for m in w["properties"]["metrics"]]
    assert len(metrics) <= 50  # as many as a free dashboard has
    functions = template.of_type(DOCUMENT, "AWS::Serverless::Function")
    assert {m[3] for m in metrics if m[:2] == ["AWS/Lambda", "Errors"]} == set(functions)
    own = {m[1] for m in metrics if m[0].startswith("Clubladder/")}
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "functions").glob("*/app.py"))
    for name in own | {m["MetricName"] for _, m in METRICS if "Clubladder" in json.dumps(m["Namespace"])}:
        assert f'"{name}"' in sources
    places = [(w["x"], w["y"]) for w in body["widgets"]]
    assert len(places) == len(set(places))
