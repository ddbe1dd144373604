"""Ids, names, times, paths of wrong fields: what the door lets in."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from functions.api import models, openapi
from functions.api.http import MAXIMUM_DEPTH, parse_json, tidy_path
from shared.fields import bad_fields
from shared.ledger.order import iso, to_instant
from shared.problems import Problem
from shared.store.people import search_name

ROOT = Path(__file__).resolve().parents[2]
NAME = TypeAdapter(models.Name)


# -- ids -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "folded"), [("A", "a"), ("2026-11-03-T2.r_1", "2026-11-03-t2.r_1"), ("a" * 64, "a" * 64)]
)
def test_ids(text: str, folded: str) -> None:
    assert models.fold_id(text) == folded


@pytest.mark.parametrize(
    "text",
    ["", "-a", ".a", "_a", "a b", "a/b", "a:b", "a\n", "\u212a", "é", "١", "a" * 65, "V1", "desk", "De", "a%"],
)
def test_no_ids(text: str) -> None:
    assert models.fold_id(text) is None


@given(st.text())
def test_any_text_is_an_id_or_not(text: str) -> None:
    folded = models.fold_id(text)
    if folded is not None:
        assert folded == text.lower() == models.fold_id(folded)
        assert folded.isascii()
        assert 1 <= len(folded) <= 64
        assert not set(folded) & set("/:#%?! \\\"'<>")


# -- names ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "Anna", " Anna ", "<img src=x onerror=1>", '"><script>', "=cmd()", "محمد علي", "שלום", "李小龍",
        "👩‍👩‍👧", "🏳️‍🌈",
        "می‌خواهم", "O'Neil", "x" * 80, "🃏" * 80, "Zoe\u0308", "A\u00a0B",
    ],
)  # fmt: skip
def test_names_stay_as_typed(name: str) -> None:
    assert NAME.validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "\u00a0\u3000", "\u200d", "x" * 81, "a\nb", "a\tb", "a\x00b", "a\x7fb", "a\x85b", "\u202eabc",
        "a\u2066b",        "\u200babc", "\ufeffabc", "a\u2028b", "a\ue000b", "soft\u00adhyphen", "a\u200fb",
    ],
)  # fmt: skip
def test_no_names(name: str) -> None:
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


@given(st.text(max_size=100))
def test_any_text_is_a_name_or_not(text: str) -> None:
    try:
        name = NAME.validate_python(text)
    except ValidationError:
        return
    assert name == text
    assert 1 <= len(name) <= 80
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
    assert search_name(search_name(name)) == search_name(name)


# -- times ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-03T19:00:00+01:00", "2026-11-03T18:00:00Z"),
        ("2026-11-03T19:00Z", "2026-11-03T19:00:00Z"),
        ("2026-11-03t19:00:00.5z", "2026-11-03T19:00:00.500000Z"),
        ("2026-11-03 19:00:00,123456-0330", "2026-11-03T22:30:00.123456Z"),
        ("2025-04-01T00:30:00+02:00", "2025-03-31T22:30:00Z"),
    ],
)
def test_times(text: str, utc: str) -> None:
    assert iso(models.parse_time(text)) == utc


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("2026-11-03T19:00:00", "no-offset"),
        ("2026-11-03", "time"),
        ("2026-13-03T19:00:00Z", "time"),
        ("2026-02-30T19:00:00Z", "time"),
        ("2026-11-03T24:00:00Z", "time"),
        ("2026-11-03T19:60:00Z", "time"),
        ("2026-11-03T19:00:60Z", "time"),
        ("2026-W45-2T19:00:00Z", "time"),
        ("0001-01-01T00:00:00Z", "time"),
        ("9999-12-31T23:59:59-23:59", "time"),
        ("٢٠٢٦-11-03T19:00:00Z", "time"),
        (" 2026-11-03T19:00:00Z", "time"),
        (1_790_000_000, "time"),
        (True, "time"),
        (None, "time"),
    ],
)
def test_no_times(value: Any, code: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        models.parse_time(value)
    assert caught.value.type == code


@given(st.datetimes(dt.datetime(1000, 1, 2), dt.datetime(9998, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_every_time_with_whole_minutes_of_offset(moment: dt.datetime) -> None:
    offset = moment.utcoffset()
    assert offset is not None
    if offset % dt.timedelta(minutes=1):
        moment = moment.astimezone(dt.UTC)
    assert models.parse_time(moment.isoformat()) == to_instant(moment)


def test_a_day_is_noon_in_the_pools_zone() -> None:
    body = {"game_id": "G", "finished_at": "2026-11-03", "started_at": None, "register": [{"id": "X", "name": "X"}]}
    game = models.GameBody.model_validate(body, strict=True, context={"time_zone": "Europe/Zurich"}).draft()
    assert game.finished_at is not None
    assert (game.game_id, iso(game.finished_at), game.started_at) == ("g", "2026-11-03T11:00:00Z", None)
    assert game.register == (("x", "X"),)
    assert game.given == {"game_id", "finished_at", "started_at", "register"}


def test_every_wrong_field_of_a_game() -> None:
    body = {
        "game_id": "a b",
        "started_at": "2026-11-03T19:00:00",
        "finished_at": "soon",
        "rated": "yes",
        "group": "v1",
        "round": -1,
        "sequence": 1.5,
        "note": "\x00",
        "register": [{"id": "a", "name": "A"}, {"id": "a", "name": ""}],
        "resultt": {},
    }
    with pytest.raises(ValidationError) as caught:
        models.GameBody.model_validate(body, strict=True)
    assert [(e.field, e.code) for e in bad_fields(caught.value, body)] == [
        ("game_id", "id"),
        ("started_at", "no-offset"),
        ("finished_at", "time"),
        ("rated", "bool-type"),
        ("group", "id"),
        ("round", "greater-than-equal"),
        ("sequence", "int-type"),
        ("note", "not-printable"),
        ("register[1].name", "string-too-short"),
        ("resultt", "unknown-field"),
    ]


def test_a_player_is_registered_once() -> None:
    body = {"register": [{"id": "a", "name": "A"}, {"id": "A", "name": "B"}]}
    with pytest.raises(ValidationError) as caught:
        models.GameBody.model_validate(body, strict=True)
    assert [(e.field, e.code) for e in bad_fields(caught.value, body)] == [("register[1]", "twice")]


# -- paths of wrong fields -----------------------------------------------------------------------------------------
def test_arms_of_unions_are_not_steps() -> None:
    class Two(BaseModel):
        first: int
        then: int

    class Holder(BaseModel):
        k: list[int | Two]

    body = {"k": [1, {"first": "x"}, "y"]}
    with pytest.raises(ValidationError) as caught:
        Holder.model_validate(body, strict=True)
    found = [(e.field, e.code) for e in bad_fields(caught.value, body, "rules[0]")]
    assert found == [
        ("rules[0].k[1].first", "int-type"),
        ("rules[0].k[1].then", "missing"),
        ("rules[0].k[2]", "int-type"),
    ]


# -- JSON ----------------------------------------------------------------------------------------------------------
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_json_round_trip(value: Any) -> None:
    assert parse_json(json.dumps(value).encode("utf-8", "surrogatepass")) == value


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:0123456789eE+-.\\u nulltrefas').map(str.encode))
def test_any_bytes_are_json_or_a_problem(raw: bytes) -> None:
    try:
        parse_json(raw)
    except Problem as problem:
        document = json.loads(json.dumps(problem.document()))
    else:
        return
    assert (document["status"], document["code"]) == (422, "not-json")


def test_depth() -> None:
    assert parse_json(b"[" * (MAXIMUM_DEPTH) + b"]" * (MAXIMUM_DEPTH))
    with pytest.raises(Problem):
        parse_json(b"[" * (MAXIMUM_DEPTH + 2) + b"]" * (MAXIMUM_DEPTH + 2))


@given(st.text().filter(lambda t: "/" not in t and t.isprintable()))
def test_parts_of_paths_come_as_one_safe_word(part: str) -> None:
    assert tidy_path(f"/v1/{part}/x").count("/") == 3


# -- OpenAPI -------------------------------------------------------------------------------------------------------
def test_committed_openapi_is_what_the_code_makes() -> None:
    code = "from functions.api import openapi; print(openapi.text(), end='')"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert openapi.FILE.read_text(encoding="utf-8") == made, "run: python -m functions.api.openapi"


def test_openapi_is_valid_and_complete() -> None:
    from openapi_spec_validator import validate

    from functions.api.routing import ROUTES

    document = openapi.document()
    validate(document)
    operations = [o for path in document["paths"].values() for o in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({o["operationId"] for o in operations}) == len(ROUTES)
