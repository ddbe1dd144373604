"""The helpers of `local`: schedules by name, their input, and the template's functions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from local import emulator, schedules, template
from local.inprocess import stream_event
from local.system import http_event, publish_event

NAMES = ["clubladder-closing-last-day", "clubladder-closing-first-day", "clubladder-sweep"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("closing", "clubladder-closing-first-day"),
        ("closing-last-day", "clubladder-closing-last-day"),
        ("sweep", "clubladder-sweep"),
        ("clubladder-sweep", "clubladder-sweep"),
        ("close", None),
        ("", None),
    ],
)
def test_a_schedule_is_found_by_its_short_name(wanted: str, found: str | None) -> None:
    assert schedules.choose(wanted, NAMES, "clubladder") == found


def test_the_placeholder_becomes_the_time_in_utc() -> None:
    filled = schedules.filled('{"at": "<aws.scheduler.scheduled-time>"}', "2026-12-01T00:05:00+01:00")
    assert filled == '{"at": "2026-11-30T23:05:00Z"}'


@pytest.mark.parametrize("at", ["2026-12-01T00:05:00", "soon"])
def test_a_time_without_an_offset_is_refused(at: str) -> None:
    with pytest.raises(ValueError, match=at):
        schedules.filled("", at)


def test_functions_of_the_template_are_evaluated() -> None:
    document = {
        "Parameters": {"Name": {"Default": ""}},
        "Conditions": {"Named": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Name"}, ""]}]}},
    }
    value = {
        "a": {"Fn::If": ["Named", {"Fn::Sub": "x-${Name}-${T.Arn}"}, {"Ref": "AWS::NoValue"}]},
        "b": [{"Ref": "Name"}],
    }
    assert template.Resolver(document, {})(value) == {"b": [""]}
    assert template.Resolver(document, {"Name": "n", "T.Arn": "arn"})(value) == {"a": "x-n-arn", "b": ["n"]}


def test_events_have_the_form_of_the_examples() -> None:
    request = http_event("GET", "/v1/x", query="a=1&a=2&b=", headers={"X-Y": "z"})
    assert request["queryStringParameters"] == {"a": "1,2", "b": ""}
    assert request["headers"] == {"x-y": "z"}
    assert stream_event(["INBOX#p#0"])["Records"][0]["dynamodb"]["Keys"]["pk"] == {"S": "INBOX#p#0"}
    assert publish_event(["p"])["Records"][0]["body"] == '{"pool": "p"}'


def test_the_emulator_works_in_memory_only_where_there_is_plenty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [emulator.PLENTY]
    monkeypatch.setattr(emulator.shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    monkeypatch.delenv("TMPDIR", raising=False)
    assert emulator.working_place(tmp_path) == str(tmp_path)
    assert emulator.working_place(tmp_path / "missing") is None
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    assert emulator.working_place(tmp_path) is None
    monkeypatch.delenv("TMPDIR")
    free[0] -= 1
    assert emulator.working_place(tmp_path) is None
