"""One rule for the characters of names and notes: what the API takes, a file says too, and comes back as it was."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from functions.api import models
from shared.characters import tidy_note
from shared.imports import ImportReading, Roster, game_cells, games_csv, read_games, read_table

ZONE = ZoneInfo("Europe/Zurich")
NOTE: TypeAdapter[str] = TypeAdapter(models.Note)
NAME: TypeAdapter[str] = TypeAdapter(models.Name)

BLANKS = "\u00a0\u3000\u2003\t\r\n \u2028\x0b\x85"
INVISIBLE = "\u200c\u200d\u202e\u200b\ufeff\u2060\U000e0067"
ODD = BLANKS + INVISIBLE + "=+-@'\"#,;:.\u0660۱½ıßŉ\u0301👩🏴"
TEXTS = st.text(st.sampled_from(ODD) | st.characters(), max_size=30)
PERSIAN = "علی\u200cرضا"
FAMILY = "👩\u200d👩\u200d👧\u200d👦"


def taken(adapter: TypeAdapter[str], text: str) -> str | None:
    """The text as the API keeps it, or None when it refuses it."""
    try:
        return adapter.validate_python(text, strict=True)
    except ValidationError:
        return None


def again(game: dict[str, Any], system: str, separator: str = ",") -> ImportReading:
    """An export of one game, read again."""
    cells = game_cells(game, system, ZONE)
    assert cells is not None
    return read_games(read_table(games_csv([cells], system, separator)), system, ZONE)


def duel(players: list[str], note: str = "", **more: Any) -> dict[str, Any]:
    at = dt.datetime(2026, 11, 3, 19, tzinfo=dt.UTC).isoformat()
    result = {"players": players, "winner": players[0] if players else None}
    return {"game_id": "g", "started_at": at, "finished_at": at, "note": note, "result": result} | more


@given(TEXTS, st.sampled_from(",;\t"))
@example(FAMILY, ",")
@example("trailing ", ",")
@example("\u00a0leading", ",")
@example("\t=1+1", ";")
@example("one\r\ntwo\rthree\n", "\t")
def test_a_note_that_the_api_takes_comes_back_from_a_file(text: str, separator: str) -> None:
    note = taken(NOTE, text)
    assume(note is not None)
    reading = again(duel(["a", "b"], note or ""), "bridier", separator)
    assert (reading.errors, reading.questions) == ((), ())
    assert reading.games[0]["note"] == note
    assert tidy_note(note or "") == note, "tidied once is tidied"


@given(TEXTS)
@example(PERSIAN)
@example(FAMILY)
@example("\u200canna")
@example("Anna\u00a0\u00a0Aebi ")
def test_a_name_that_the_api_takes_is_found_by_a_file(text: str) -> None:
    name = taken(NAME, text)
    assume(name is not None and not name.strip().startswith("#"))  # perhaps a spreadsheet's error
    assert name is not None
    assume(Roster([("id", name)]).match("zz").kind == "none")
    (row,) = again(duel([name, "zz"]), "bridier").rows
    assert row.errors == ()
    assert row.game is not None
    assert Roster([("id", name)]).match(row.game["result"]["players"][0]).handle == "id"


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u00ad", "\ue000", "\x00", "\x7f"])
def test_what_the_api_refuses_a_file_may_not_say(sign: str) -> None:
    text = f"a{sign}b"
    assert taken(NAME, text) is None
    assert taken(NOTE, text) is None
    if sign != "\x00":  # then the whole file is no text
        assert [error.code for error in again(duel([text, "zz"]), "bridier").errors] == ["not-printable"]


@pytest.mark.parametrize("players", [["0", "1"], ["1", "0"], ["2", "1"], ["1", "2"], ["draw", "x"], ["x", "draw"]])
@pytest.mark.parametrize("result", [{"winner": 0}, {"winner": 1}, {"draw": True}])
def test_ids_that_are_words_for_who_won(players: list[str], result: dict[str, Any]) -> None:
    said = {"draw": True} if "draw" in result else {"winner": players[result["winner"]]}
    game = duel(players, result={"players": players, **said})
    reading = again(game, "bridier")
    assert reading.errors == ()
    assert reading.games[0]["result"] == game["result"]


@given(st.integers(0, 999_999), st.tuples(st.integers(0, 100_000), st.integers(0, 100_000)))
@example(40_000, (40_000, 36_526))
def test_numbers_that_could_be_a_spreadsheets_days(stage: int, points: tuple[int, int]) -> None:
    result = {"teams": [["a", "b"], ["c", "d"]], "points": list(points)}
    reading = again(duel([], round=stage, result=result), "jass")
    assert reading.errors == ()
    assert (reading.games[0]["round"], reading.games[0]["result"]) == (stage, result)
