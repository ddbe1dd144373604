from zoneinfo import ZoneInfo

import pytest

from shared.imports import bad_rows_csv, read_games, read_table

ZONE = ZoneInfo("Europe/Zurich")

PGN = """% exported
[Event "Herbstcup"]
[Site "Bern"]
[Date "2026.11.03"]
[Round "1"]
[White "Müller, Hans"]
[Black "O\\"Neill"]
[Result "1-0"]

1. e4 {a comment
[Result "0-1"]
} e5 2. Nf3 ; [White "x"] {
Nc6 1-0

[Event "Herbstcup"]
[Date "2026.11.04"]
[Round "2.1"]
[White "c"]
[Black "d"]
[Result "1/2-1/2"]

1/2-1/2

[Event "?"] [Date "2026.11.05"] [Round "-"] [White "c"] [Black "a"] [Result "*"]

*

[Date "2026.11.05"]
[White "e"]
[Black "f"]
[Result "1-0"]
[Termination "Forfeit"]
[Date "2026.11.06"]
[White "e"]
[Black "f"]
[Result "0-1"]
[Termination "time forfeit"]

[White "e"]
[Date "2026.??.??"]
[Result "2-0"]
[Black "?"]
"""


def test_pgn():
    table = read_table(PGN.encode())
    assert table.kind == "pgn"
    reading = read_games(table, "bridier", ZONE)
    assert [(game["result"], game["round"], game["tournament"], game["started_at"]) for game in reading.games] == [
        (
            {"players": ["Müller, Hans", 'O"Neill'], "winner": "Müller, Hans"},
            1,
            "Herbstcup",
            "2026-11-03T12:00:00+01:00",
        ),
        ({"players": ["c", "d"], "draw": True}, 2, "Herbstcup", "2026-11-04T12:00:00+01:00"),
        ({"players": ["e", "f"], "winner": "f"}, None, None, "2026-11-06T12:00:00+01:00"),
    ]
    bad = reading.rows[-1]
    assert [(error.column, error.code) for error in bad.errors] == [
        ("winner", "winner"), ("date", "date-incomplete"), ("player2", "missing-player")]  # fmt: skip
    assert bad.errors[0].row == bad.number == 39
    assert {notice.code: notice.count for notice in reading.notices} == {"skipped-forfeit": 1, "skipped-unfinished": 1}


def test_pgn_forfeits_count_by_setting():
    reading = read_games(read_table(PGN.encode("utf-8-sig"), forfeits="count"), "bridier", ZONE)
    assert reading.games[2]["result"] == {"players": ["e", "f"], "winner": "e"}
    assert len(reading.games) == 4


def test_bad_games_of_pgn_come_back_as_csv():
    back = bad_rows_csv(read_games(read_table(PGN.encode()), "bridier", ZONE))
    again = read_games(read_table(back), "bridier", ZONE)
    assert [error.column for error in again.rows[0].errors] == ["date", "player2", "winner"]


def player(start, name, *rounds):
    line = f"001 {start:>4} m    {name:<33} 1500 SUI     1234567 1990/01/01  1.0    1".ljust(91)[:91]
    return line + "  ".join(f"{against:>4} {colour} {result}" for against, colour, result in rounds)


def trf(*players, days=("26/11/03", "26/11/10", "26/11/17"), head="042 2026/11/03\n052 2026/11/17\n"):
    dates = "132".ljust(91) + "  ".join(days) + "\n" if days else ""
    return ("012 Herbstturnier\n022 Bern\n" + head + dates + "\n".join(players) + "\n").encode()


PLAYERS = (
    player(1, "Müller, Hans", (2, "w", "1"), (3, "b", "="), ("0000", "-", "U")),
    player(2, "Frei, Anna", (1, "b", "0"), ("0000", "-", "H"), (3, "w", "+")),
    player(3, "Þórð", (4, "w", "1"), (1, "w", "="), (2, "b", "-")),
    player(4, "Zoë", (3, "b", "0"), ("", " ", " "), ("0000", "-", "Z")),
)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_trf(encoding):
    table = read_table(trf(*PLAYERS).decode().encode(encoding))
    assert table.kind == "trf"
    reading = read_games(table, "bridier", ZONE)
    assert reading.errors == ()
    assert [(g["round"], g["started_at"][:10], g["tournament"], g["result"]) for g in reading.games] == [
        (1, "2026-11-03", "Herbstturnier", {"players": ["Müller, Hans", "Frei, Anna"], "winner": "Müller, Hans"}),
        (1, "2026-11-03", "Herbstturnier", {"players": ["Þórð", "Zoë"], "winner": "Þórð"}),
        (2, "2026-11-10", "Herbstturnier", {"players": ["Þórð", "Müller, Hans"], "draw": True}),
    ]
    assert {notice.code: notice.count for notice in reading.notices} == {"skipped-bye": 3, "skipped-forfeit": 1}


def test_trf_forfeits_count_by_setting():
    reading = read_games(read_table(trf(*PLAYERS), forfeits="count"), "bridier", ZONE)
    assert reading.games[-1]["result"] == {"players": ["Frei, Anna", "Þórð"], "winner": "Frei, Anna"}


def test_trf_days():
    asked = read_games(read_table(trf(*PLAYERS, days=())), "bridier", ZONE)
    assert asked.games == ()
    assert [(question.key, question.candidates) for question in asked.questions] == [("round-dates", ("first", "last"))]
    last = read_games(read_table(trf(*PLAYERS, days=())), "bridier", ZONE, {"round-dates": "last"})
    assert {game["started_at"][:10] for game in last.games} == {"2026-11-17"}
    one_day = read_games(read_table(trf(*PLAYERS, days=(), head="042 2026/11/03\n")), "bridier", ZONE)
    assert {game["started_at"][:10] for game in one_day.games} == {"2026-11-03"}
    none = read_games(read_table(trf(*PLAYERS, days=(), head="")), "bridier", ZONE)
    assert {error.code for error in none.errors} == {"missing"}


def test_trf_that_contradicts_itself():
    data = trf(
        player(1, "a", (2, "w", "1")),
        player(2, "b", (1, "b", "1")),
        player(3, "c", (9, "w", "1")),
        player(4, "d", (1, "w", "1")),
        player(5, "e", (6, "w", "x")),
        player(6, "f", (5, "b", "0")),
        player(6, "g"),
    )
    reading = read_games(read_table(data), "bridier", ZONE)
    assert reading.games == ()
    assert [(error.row, error.column, error.code) for error in reading.errors] == [
        (12, "player1", "trf-line"),
        (6, "winner", "results-disagree"),
        (8, "player2", "trf-round"),
        (9, "player2", "trf-round"),
        (10, "winner", "trf-round"),
    ]
