# ruff: noqa: DTZ001 - what a workbook holds has no zone
import datetime as dt
import io
from zoneinfo import ZoneInfo

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.imports import (
    ImportFileError,
    TooLarge,
    bad_rows_csv,
    column_of_field,
    game_cells,
    games_csv,
    read_games,
    read_table,
)

ZONE = ZoneInfo("Europe/Zurich")
JASS = "game_id,date,time,round,note,team1_player1,team1_player2,team2_player1,team2_player2,striche1,striche2\n"
PAIR = "date,player1,player2,winner\n"


def read(text, system="jass", answers=None, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return read_games(read_table(data, **options), system, ZONE, answers)


def jass(**cells):
    values = {"game_id": "", "date": "2026-11-03", "time": "", "round": "", "note": "", "a": "a", "b": "b", "c": "c",
              "d": "d", "striche1": "3", "striche2": "0"} | cells  # fmt: skip
    return read(JASS + ",".join('"' + value + '"' for value in values.values()) + "\n").rows[0]


def places(row):
    return [(error.row, error.column, error.code) for error in row.errors]


def test_a_jass_game():
    row = jass(game_id="Abend.1", time="19:30", round="2", note="gut")
    assert row.game == {
        "game_id": "abend.1", "started_at": "2026-11-03T19:30:00+01:00", "finished_at": "2026-11-03T19:30:00+01:00",
        "round": 2, "note": "gut", "result": {"teams": [["a", "b"], ["c", "d"]], "striche": [3, 0]},
    }  # fmt: skip


def test_points_and_winner_in_jass():
    head = "Datum;T1P1;T1P2;T2P1;T2P2;Punkte 1;Punkte 2;Sieger\n"
    rows = read(head + "3.11.2026;a;b;c;d;2'500;1800;1\n3.11.2026;a;b;c;d;1;2;remis\n").rows
    assert rows[0].game["result"] == {"teams": [["a", "b"], ["c", "d"]], "points": [2500, 1800], "winner": "team1"}
    assert places(rows[1]) == [(3, "winner", "winner-contradicts")]


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("1", "team1"), ("1.0", "team1"), ("Team 2", "team2"), ("team1", "team1"), ("Équipe 2", "team2"), ("draw", "draw"),
     ("Unentschieden", "draw"), ("égalité", "draw"), ("pareggio", "draw"), ("½", "draw"), ("squadra 1", "team1")],
)  # fmt: skip
def test_winners_of_teams(word, outcome):
    head = "date;team1_player1;team1_player2;team2_player1;team2_player2;winner\n"
    row = read(head + f"2026-11-03;a;c;b;d;{word}\n", "spades").rows[0]
    assert row.game["result"] == {"teams": [["a", "c"], ["b", "d"]], "outcome": outcome}


@pytest.mark.parametrize(
    ("word", "result"),
    [("1", {"winner": "Zoë"}), ("ZOË", {"winner": "Zoë"}), ("b", {"winner": "b"}), ("0-1", {"winner": "b"}),
     ("nul", {"draw": True}), ("1/2-1/2", {"draw": True})],
)  # fmt: skip
def test_winners_of_pairs(word, result):
    row = read(PAIR + f"2026-11-03,Zoë,b,{word}\n", "bridier").rows[0]
    assert row.game["result"] == {"players": ["Zoë", "b"], **result}


def test_a_player_called_one():
    row = read(PAIR + "2026-11-03,2,1,1\n", "bridier").rows[0]
    assert places(row) == [(2, "winner", "winner-ambiguous")]


@pytest.mark.parametrize(
    ("cells", "column", "code"),
    [
        *[({"striche1": text}, "striche1", "excel-date") for text in
          ("03. Feb", "03.02.", "Feb 03", "3-Feb", "Mrz 25", "45690", "3/2/2025", "2025-02-03", "03.02.2025",
           "févr-03")],
        *[({"striche2": text}, "striche2", "excel-number") for text in ("9.45E+12", "9,45E+12", "3.4e185", "1E5")],
        ({"striche1": "03:00"}, "striche1", "excel-time"),
        ({"striche1": "#NV"}, "striche1", "excel-error"),
        ({"striche1": "-1"}, "striche1", "negative"),
        ({"striche1": "'-1"}, "striche1", "negative"),
        ({"striche1": "−1"}, "striche1", "negative"),
        ({"striche1": "3.5"}, "striche1", "not-whole"),
        ({"striche1": "3,5"}, "striche1", "not-whole"),
        *[({"striche1": text}, "striche1", "not-a-number") for text in
          ("NaN", "inf", "-inf", "drei", "TRUE", "٣", "³", "0x3", "1_0", "3 0", "+3")],
        ({"striche1": "2.500"}, "striche1", "ambiguous-number"),
        ({"striche1": "9999999"}, "striche1", "out-of-range"),
        ({"striche1": "9" * 500}, "striche1", "out-of-range"),
        ({"striche1": ""}, "striche1", "missing"),
        ({"striche1": "", "striche2": ""}, "striche1", "missing"),
        *[({"game_id": text}, "game_id", "excel-date") for text in ("03. Feb", "45690", "03.02.", "2025-02-03")],
        ({"game_id": "9.45E+12"}, "game_id", "excel-number"),
        ({"game_id": "a b"}, "game_id", "game-id"),
        ({"game_id": "x" * 65}, "game_id", "game-id"),
        ({"round": "03. Feb"}, "round", "excel-date"),
        ({"round": "45690"}, "round", "excel-date"),
        ({"round": "eins"}, "round", "not-a-number"),
        ({"a": ""}, "team1_player1", "missing-player"),
        ({"c": " A "}, "team2_player1", "player-twice"),
        ({"b": "x" * 81}, "team1_player2", "too-long"),
        ({"b": "a\u202eb"}, "team1_player2", "not-printable"),
        ({"b": "#NAME?"}, "team1_player2", "excel-error"),
        ({"date": "3.11.2568"}, "date", "buddhist-year"),
        ({"date": "2568-11-03"}, "date", "buddhist-year"),
        ({"date": "2700-01-01"}, "date", "buddhist-year"),
        ({"date": "1799-01-01"}, "date", "year"),
        ({"date": "31.02.2026"}, "date", "date"),
        ({"date": "2026-02-30"}, "date", "date"),
        ({"date": "gestern"}, "date", "date"),
        ({"date": "45690"}, "date", "date-serial"),
        ({"date": "03. Feb"}, "date", "date-without-year"),
        ({"date": "03.02."}, "date", "date-without-year"),
        ({"date": ""}, "date", "missing"),
        ({"time": "25:00"}, "time", "time"),
        ({"time": "abends"}, "time", "time"),
        ({"date": "2026-03-29", "time": "02:30"}, "date", "no-such-time"),
    ],
)  # fmt: skip
def test_refusals_name_row_and_column(cells, column, code):
    row = jass(**cells)
    assert row.game is None
    assert places(row) == [(2, column, code)]
    assert row.errors[0].message.endswith((".", "?"))
    assert row.errors[0].heading == column


@pytest.mark.parametrize("word", ["03. Feb", "01.02.", "45690", "01:00", "9.45E+12"])
def test_a_damaged_winner(word):
    row = read(PAIR + f"2026-11-03,a,b,{word}\n", "bridier").rows[0]
    assert row.errors[0].column == "winner"
    assert row.errors[0].code.startswith("excel-")


@pytest.mark.parametrize("text", ["3", "3,0", "3.0", "3.00", " 3 ", "03"])
def test_whole_numbers(text):
    assert jass(striche1=text).game["result"]["striche"] == [3, 0]


def test_every_wrong_cell_at_once():
    row = jass(game_id="45690", date="", a="", striche1="x", striche2="y", round="z")
    assert [error.column for error in row.errors] == [
        "game_id", "date", "round", "team1_player1", "striche1", "striche2"]  # fmt: skip


def test_more_cells_than_the_heading():
    assert read(PAIR + "2026-11-03,a,b,1,x\n", "bridier").rows[0].errors[0].code == "extra-cells"


# -- headings


def test_columns_missing_twice_and_unknown():
    with pytest.raises(ImportFileError) as refused:
        read("Datum;Date;T1P1;T1P2;T2P1;Wetter\n")
    assert [(error.code, error.column, error.row) for error in refused.value.errors] == [
        ("column-twice", "date", 1),
        ("missing-column", "team2_player2", 1),
        ("missing-column", "striche1 and striche2 (or points1 and points2)", 1),
    ]
    reading = read("Jass am Dienstag\n\nWetter;Sieger;Spieler 2;Datum;Spieler 1\nnass;1;b;2026-11-03;a\n", "bridier")
    assert reading.ignored_columns == ("Wetter",)
    assert reading.rows[0].number == 4
    assert reading.games[0]["result"] == {"players": ["a", "b"], "winner": "a"}


def test_thirty_thousand_rows_are_the_most():
    with pytest.raises(TooLarge) as refused:
        read(PAIR + "2026-11-03,a,b,1\n" * 30_001, "bridier")
    assert refused.value.limit == 30_000


# -- days and times


def days(*texts, answers=None):
    reading = read(PAIR + "".join(f'"{text}",a,b,1\n' for text in texts), "bridier", answers)
    return reading, [row.game["started_at"][:10] if row.game else None for row in reading.rows]


@pytest.mark.parametrize(
    ("text", "day"),
    [("2026-11-03", "2026-11-03"), ("3.11.2026", "2026-11-03"), ("03.11.26", "2026-11-03"),
     ("3. 11. 2026", "2026-11-03"),
     ("13/11/2026", "2026-11-13"), ("11/13/2026", "2026-11-13"), ("31-12-99", "1999-12-31"), ("1.1.69", "2069-01-01"),
     ("2026/11/03", "2026-11-03"), ("20261103", "2026-11-03"), ("3. November 2026", "2026-11-03"),
     ("Nov 3, 2026", "2026-11-03"), ("3 févr. 2026", "2026-02-03"), ("1872-11-30", "1872-11-30"),
     ("02/02/2026", "2026-02-02")],
)  # fmt: skip
def test_days(text, day):
    reading, found = days(text)
    assert (found, reading.questions) == ([day], ())


@pytest.mark.parametrize(
    "text",
    ["Sonntag, 1. März 2026", "So 01.03.2026", "Sunday, March 1, 2026", "Sun Mar 1 2026", "dimanche 1er mars 2026",
     "dim. 1 mars 2026", "domenica 1 marzo 2026", "domenica 1º marzo 2026", "dom 01-03-26"],
)  # fmt: skip
def test_long_days_of_a_spreadsheet(text):
    assert days(text, answers={"date-order": "dmy"})[1] == ["2026-03-01"]


def test_a_word_before_a_day_is_a_weekday_or_an_error():
    for text in ("Abend 01.03.2026", "So", "So 03. Feb", "So So 01.03.2026"):
        reading, found = days(text)
        assert found == [None]
        assert reading.rows[0].errors


@pytest.mark.parametrize("heading", ["Result", "Ergebnis", "Resultat", "Résultat", "Risultato"])
def test_a_result_is_the_winner_where_nothing_else_can_be_said(heading):
    line = f"date;player1;player2;{heading}\n2026-03-01;anna;beat;0-1"
    assert read_games(read_table(line.encode()), "bridier", ZONE).games[0]["result"]["winner"] == "beat"
    head = "date;team1_player1;team1_player2;team2_player1;team2_player2;striche1;striche2"
    reading = read_games(read_table(f"{head};{heading}\n2026-03-01;a;b;c;d;3;1;3:1".encode()), "jass", ZONE)
    assert (len(reading.games), reading.ignored_columns) == (1, (heading,))
    both = f"date;player1;player2;{heading};Sieger\n2026-03-01;anna;beat;21:7;1"
    reading = read_games(read_table(both.encode()), "bridier", ZONE)
    assert (reading.games[0]["result"]["winner"], reading.ignored_columns) == ("anna", (heading,))


def test_the_order_is_asked_once_and_never_guessed():
    reading, found = days("03/04/2026", "05/06/2026", "2026-01-01", "02/02/2026")
    assert found == [None, None, "2026-01-01", "2026-02-02"]
    (question,) = reading.questions
    assert (question.key, question.candidates) == ("date-order", ("dmy", "mdy"))
    assert question.examples == ((2, "03/04/2026"), (3, "05/06/2026"))
    assert [row.waiting for row in reading.rows] == [("date-order",), ("date-order",), (), ()]
    assert days("03/04/2026", answers={"date-order": "dmy"})[1] == ["2026-04-03"]
    assert days("03/04/2026", answers={"date-order": "mdy"})[1] == ["2026-03-04"]
    assert days("03/04/05")[0].questions[0].candidates == ("dmy", "mdy", "ymd")
    assert days("03/04/05", answers={"date-order": "ymd"})[1] == ["2003-04-05"]


def test_one_row_decides_for_all():
    assert days("03/04/2026", "13/04/2026")[1] == ["2026-04-03", "2026-04-13"]
    assert days("03/04/2026", "04/13/2026")[1] == ["2026-03-04", "2026-04-13"]


def test_days_that_disagree():
    reading, found = days("03/04/2026", "13/04/2026", "14/04/2026", "04/13/2026")
    assert found == [None, "2026-04-13", "2026-04-14", None]
    assert places(reading.rows[3]) == [(5, "date", "date-order")]
    assert reading.questions[0].candidates == ("dmy", "mdy")
    reading, found = days("03/04/2026", "13/04/2026", "04/13/2026", answers={"date-order": "mdy"})
    assert found == ["2026-03-04", None, "2026-04-13"]
    assert places(reading.rows[1]) == [(3, "date", "date-order")]
    reading, found = days("13/04/2026", "04/13/2026")
    assert [row.errors[0].code for row in reading.rows] == ["date-order", "date-order"]
    assert days("3.4.2026", "4.13.2026", "14.3.2026", "15.3.2026")[1] == [None, None, "2026-03-14", "2026-03-15"]


def test_unknown_answers_are_refused():
    for answers in ({"date-order": "dym"}, {"weather": "wet"}, {"repeated-hour:x": "first"}):
        with pytest.raises(ImportFileError) as refused:
            days("2026-11-03", answers=answers)
        assert refused.value.code == "answer"


def test_the_repeated_hour_is_asked():
    text = "date,time,player1,player2,winner\n2026-10-25,02:30,a,b,1\n2026-10-25,03:00,a,b,1\n"
    reading = read(text, "bridier")
    assert [row.waiting for row in reading.rows] == [("repeated-hour:2",), ()]
    question = reading.questions[0]
    assert (question.code, question.row, question.candidates) == ("repeated-hour", 2, ("first", "second"))
    for answers, offset in (({"repeated-hour:2": "first"}, "+02:00"), ({"repeated-hour": "second"}, "+01:00"),
                            ({"repeated-hour": "first", "repeated-hour:2": "second"}, "+01:00")):  # fmt: skip
        assert read(text, "bridier", answers).games[0]["started_at"] == f"2026-10-25T02:30:00{offset}"


@pytest.mark.parametrize(
    ("text", "instant"),
    [("2026-11-03T19:30:00+01:00", "2026-11-03T19:30:00+01:00"), ("2026-11-03T18:30:00Z", "2026-11-03T18:30:00+00:00"),
     ("2026-11-03 19:30", "2026-11-03T19:30:00+01:00"), ("3.11.2026 19:30:15", "2026-11-03T19:30:15+01:00"),
     ("3.11.2026, 7:30 pm", "2026-11-03T19:30:00+01:00"), ("3.11.2026", "2026-11-03T12:00:00+01:00"),
     ("1.6.2026 20h15", "2026-06-01T20:15:00+02:00"), ("2026-10-25T02:30+01:00", "2026-10-25T02:30:00+01:00")],
)  # fmt: skip
def test_started(text, instant):
    game = read(f'Beginn;player1;player2;winner\n"{text}";a;b;1\n', "bridier").games[0]
    assert game["started_at"] == game["finished_at"] == instant


def test_date_and_started_must_agree():
    head = "date;started;player1;player2;winner\n"
    rows = read(head + "3.11.2026;2026-11-03 19:30;a;b;1\n4.11.2026;2026-11-03T19:30Z;a;b;1\n", "bridier").rows
    assert rows[0].game
    assert places(rows[1]) == [(3, "started", "date-conflict")]


# -- ids


def test_ids_come_from_content_and_count():
    text = PAIR + "2026-11-03,a,b,1\n2026-11-03,A , b,1\n2026-11-03,a,b,2\n"
    games = read(text, "bridier").games
    ids = [game["game_id"] for game in games]
    assert len(set(ids)) == 3
    assert all(len(game_id) == 24 and game_id.startswith("row-") for game_id in ids)
    assert [game.get("distinct") for game in games] == [None, True, None]
    assert ids == [game["game_id"] for game in read(text.replace(",", ";").encode("utf-16"), "bridier").games]
    shuffled = "winner;note;player2;date;player1\n1;x;b;3.11.2026;a\n"
    assert read(shuffled, "bridier").games[0]["game_id"] == ids[0]
    # ids are kept by clubs' files for ever: a change here makes every old file new
    assert ids[:2] == ["row-106b7f1d00a35b3b238d", "row-3d68970dc314c391a679"]


def test_an_id_twice():
    head = "game_id,date,player1,player2,winner\n"
    rows = read(
        head + "g1,2026-11-03,a,b,1\nG1,2026-11-03,a,b,1\ng2,2026-11-03,a,b,1\ng2,2026-11-03,a,b,2\n", "bridier"
    ).rows
    assert [bool(row.game) for row in rows] == [True, False, False, False]
    assert rows[1].repeat_of == 2
    assert places(rows[2]) == [(4, "game_id", "game-id-twice")]
    assert places(rows[3]) == [(5, "game_id", "game-id-twice")]


# -- workbooks


def test_a_workbook_is_read_as_the_csv_is():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["game_id", "Datum", "Zeit", "T1P1", "T1P2", "T2P1", "T2P2", "striche1", "striche2"])
    sheet.append([187, dt.datetime(2026, 11, 3), dt.time(19, 30), "a", "b", "c", 7, 3, 0.0])
    sheet.append([45690, dt.datetime(2026, 11, 3, 19, 30), None, "a", "b", "c", "d", dt.datetime(2026, 2, 3), True])
    sheet.append([9.45e12, dt.datetime(2568, 11, 3), None, "a", "b", "c", "d", 3.5, 3.4e185])
    sheet.append(["x", 45690, None, "a", "b", "c", "d", dt.time(3, 0), "12"])
    out = io.BytesIO()
    book.save(out)
    rows = read(out.getvalue()).rows
    assert rows[0].game["game_id"] == "187"
    assert rows[0].game["started_at"] == "2026-11-03T19:30:00+01:00"
    assert rows[0].game["result"] == {"teams": [["a", "b"], ["c", "7"]], "striche": [3, 0]}
    assert [places(row) for row in rows[1:]] == [
        [(3, "game_id", "excel-date"), (3, "striche1", "excel-date"), (3, "striche2", "not-a-number")],
        [(4, "game_id", "excel-number"), (4, "date", "buddhist-year"), (4, "striche1", "not-whole"),
         (4, "striche2", "excel-number")],
        [(5, "date", "date-serial"), (5, "striche1", "excel-time")],
    ]  # fmt: skip


# -- back again


def test_bad_rows_can_be_sent_again():
    text = (
        "Datum;Wetter;Grund;Spieler 1;Spieler 2;Sieger\n"
        "03/04/2026;=1+1;alt;a;b;1\n"
        "13/04/2026;x;alt;a;b;1\n"
        '14/04/2026;\'t;;"c;d";b;03. Feb\n'
    )
    reading = read(text, "bridier")
    assert [row.number for row in reading.rows if row.errors] == [4]
    back = bad_rows_csv(reading)
    assert back.startswith(b"\xef\xbb\xbf")
    assert back.decode("utf-8-sig").splitlines()[0] == "Datum;Wetter;Spieler 1;Spieler 2;Sieger;reason"
    again = read(back, "bridier")
    assert again.ignored_columns == ("Wetter",)
    assert [(row.number, row.errors[0].code) for row in again.rows] == [(2, "excel-date")]
    mended = read(back.replace(b"03. Feb", b"2", 1), "bridier")
    assert mended.games[0]["result"]["players"] == ["c;d", "b"]
    given_by_caller = bad_rows_csv(reading, {1: ["No player a.", "No player b."]}).decode("utf-8-sig")
    assert given_by_caller.splitlines()[1] == "03/04/2026;'=1+1;a;b;1;No player a. No player b."
    assert read(given_by_caller, "bridier", {"date-order": "dmy"}).games == reading.games[:1]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=10).filter(
    lambda name: not name.startswith("#")
)
LABELS = st.none() | NAMES
INSTANTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC))
IDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True) | st.sampled_from(
    ["45690", "2026-11-03", "03-02-25", "1e5", "9450000000000", "1-jan", "00187"]
)


@given(
    players=st.lists(NAMES, min_size=4, max_size=4, unique_by=lambda name: name.casefold()),
    at=INSTANTS, game_id=IDS, group=LABELS,
    note=st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=20),
    stage=st.none() | st.integers(0, 9_999), scores=st.tuples(st.integers(0, 30_000), st.integers(0, 30_000)),
    outcome=st.sampled_from(["team1", "team2", "draw"]), system=st.sampled_from(["spades", "jass", "bridier"]),
    separator=st.sampled_from(",;\t"),
)  # fmt: skip
def test_our_export_goes_in_again(players, at, game_id, group, note, stage, scores, outcome, system, separator):
    from shared.imports import match_key

    if len({match_key(name) for name in players}) < 4 or not all(name.isprintable() for name in players):
        return
    if system == "bridier":
        result = {"players": players[:2]}
        result |= {"draw": True} if outcome == "draw" else {"winner": players[int(outcome[-1]) - 1]}
    else:
        result = {"teams": [players[:2], players[2:]]}
        result |= {"outcome": outcome} if system == "spades" else {"striche": list(scores)}
    game = {"game_id": game_id, "started_at": at.isoformat(), "finished_at": at.isoformat(), "group": group,
            "tournament": None, "round": stage, "note": note.strip(), "result": result}  # fmt: skip
    cells = game_cells(game, system, ZONE)
    reading = read_games(read_table(games_csv([cells], system, separator)), system, ZONE)
    assert reading.errors == ()
    assert reading.questions == ()
    (back,) = reading.games
    assert back["result"] == result
    assert dt.datetime.fromisoformat(back["started_at"]) == at
    assert game_cells(back, system, ZONE) == cells
    assert {key: back[key] for key in ("game_id", "group", "tournament", "round", "note")} == {
        key: game[key] for key in ("game_id", "group", "tournament", "round", "note")}  # fmt: skip


def test_games_csv_cannot_say():
    base = {"game_id": "x", "started_at": "2026-11-03T19:00:00Z"}
    three = base | {"result": {"players": ["a", "b", "c"], "defeats": []}}
    assert game_cells(three, "bridier", ZONE) is None
    assert game_cells(base | {"line_up": {"players": ["a", "b"]}}, "bridier", ZONE) is None
    quits = base | {"result": {"teams": [["a", "b"], ["c", "d"]], "outcome": None}}
    assert game_cells(quits, "spades", ZONE) is None
    counted = base | {"result": {"teams": [["a", "b"], ["c", "d"]], "striche": [{"berg": 1, "sieg": 2}, {"berg": 0}]}}
    cells = game_cells(counted, "jass", ZONE)
    assert (cells["striche1"], cells["striche2"]) == ("3", "0")


def test_errors_of_the_api_find_their_cell():
    assert column_of_field("result.teams[0][1]", ()) == "team1_player2"
    assert column_of_field("result.players[1]", ()) == "player2"
    assert column_of_field("result.striche[1].sieg", ()) == "striche2"
    assert column_of_field("result.outcome", ()) == "winner"
    assert column_of_field("started_at", ("date",)) == "date"
    assert column_of_field("register", ()) is None
    reading = read("Datum;Weiss;Schwarz;Sieger\n2026-11-03;a;b;1\n", "bridier")
    error = reading.error_at(reading.rows[0], "result.players[1]", "unknown-player", "No b.")
    assert (error.row, error.column, error.heading, error.value) == (2, "player2", "Schwarz", "b")


@given(st.text(max_size=25), st.sampled_from(["date", "time", "striche1", "round", "game_id"]))
def test_any_cell_is_read_or_refused(text, column):
    row = jass(**{column: text.replace('"', "").translate(dict.fromkeys(range(32)))})
    assert row.game is not None or row.errors or row.waiting
