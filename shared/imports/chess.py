"""Tournament reports (FIDE TRF16) and PGN tags as tables of two-player games. Pure; linear in the text.

Both become a ``Table`` with our own columns (``date, round, tournament, player1, player2, winner``), player 1 having
White, so that everything after the reading (days, checks, ids, bad rows back as CSV) is the same as for a CSV.
Byes, unplayed rounds and unfinished games (``*``) are not games; they are counted in notices.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter

from shared.imports.errors import CellError, TooLarge
from shared.imports.table import MAX_CELL, MAX_ROWS, Forfeits, Notice, Table, TableRow, too_many_rows

HEADINGS = ("date", "round", "tournament", "player1", "player2", "winner")

_TAG = re.compile(r'\[\s*([A-Za-z0-9_]+)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_TRF_LINE = re.compile(r"^001 {1,4}\d", re.MULTILINE)
_TRF_START = re.compile(r"\s*(?:\d{3}|###|[A-Z]{3}) ")


def is_pgn(text: str) -> bool:
    """Whether the text begins, after blank, ``%`` and ``;`` lines, with a tag pair like ``[Event "..."]``."""
    for line in text[:20_000].splitlines():
        line = line.strip()
        if line and line[0] not in "%;":
            return _TAG.match(line[:4_000]) is not None
    return False


def is_trf(text: str) -> bool:
    """Whether the text begins with a three-letter code and has a player's line (``001 ...``)."""
    return _TRF_START.match(text[:1_000]) is not None and _TRF_LINE.search(text) is not None


# -- PGN -------------------------------------------------------------------------------------------------------------

_RESULTS = {
    "1-0": "1", "0-1": "2", "1/2-1/2": "draw", "1/2": "draw", "½-½": "draw",
}  # fmt: skip
_FORFEITS = {"+--": "1", "--+": "2", "+/-": "1", "-/+": "2", "+:-": "1", "-:+": "2", "+-": "1", "-+": "2"}
_FORFEITS |= {"1-0f": "1", "0-1f": "2", "1f-0": "1", "0-1 forfeit": "2", "1-0 forfeit": "1"}
_FORFEIT_WORDS = ("forfeit", "default", "walkover", "unplayed", "no show", "no-show")
_DOUBLE = ("---", "-/-", "-:-", "--", "0-0")
_UNKNOWN = ("", "?", "-")


def read_pgn(text: str, encoding: str, forfeits: Forfeits) -> Table:
    """The games of a PGN file by their tags White, Black, Date, Round, Result, Event; the moves are passed over.

    A game is a forfeit when its Result says so (``+/-``) or its Termination tag is forfeit, default, walkover or
    unplayed; "time forfeit" is an ordinary loss.
    """
    rows: list[TableRow] = [TableRow(1, HEADINGS)]
    skipped: Counter[str] = Counter()
    tags: dict[str, str] = {}
    first = 0
    in_comment = False
    in_moves = True

    def finish() -> None:
        if tags:
            row = _pgn_row(tags, first, forfeits, skipped)
            if row is not None:
                rows.append(row)
                if len(rows) > MAX_ROWS + 1:
                    raise too_many_rows()
            tags.clear()

    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not in_comment:
            if not bare or line[0] == "%":
                continue
            if bare[0] == "[":
                found = _TAG.findall(bare[:4_000])
                if found:
                    if in_moves:
                        finish()
                        first, in_moves = number, False
                    for name, value in found:
                        if name.lower() in tags:  # a game without moves went before
                            finish()
                            first = number
                        if len(value) > MAX_CELL:
                            raise TooLarge("cell", MAX_CELL, f"Line {number} has {len(value):,} characters.", number)
                        tags[name.lower()] = re.sub(r"\\(.)", r"\1", value).strip()
                    continue
        in_moves = True
        in_comment = _comment_open(line, in_comment)
    finish()
    return Table("pgn", tuple(rows), ",", encoding, notices=_notices(skipped))


def _comment_open(line: str, inside: bool) -> bool:
    """Whether a ``{`` comment is open after a line of moves."""
    at = 0
    while True:
        if inside:
            at = line.find("}", at)
            if at < 0:
                return True
            inside = False
        opened = line.find("{", at)
        rest = line.find(";", at)
        if opened < 0 or 0 <= rest < opened:
            return False
        at, inside = opened, True


def _pgn_row(tags: dict[str, str], number: int, forfeits: Forfeits, skipped: Counter[str]) -> TableRow | None:
    white, black = tags.get("white", ""), tags.get("black", "")
    result = "".join(tags.get("result", "").split()).casefold()
    forfeit = _FORFEITS.get(result) or _FORFEITS.get(tags.get("result", "").casefold())
    termination = tags.get("termination", "").casefold()
    is_forfeit = forfeit is not None or (
        "time" not in termination and any(word in termination for word in _FORFEIT_WORDS)
    )
    winner = forfeit or _RESULTS.get(result)
    if "bye" in (white.casefold(), black.casefold()):
        skipped["bye"] += 1
        return None
    if result == "*" or (winner is None and result in _DOUBLE):
        skipped["unfinished" if result == "*" else "unplayed"] += 1
        return None
    if is_forfeit and (forfeits == "skip" or winner not in ("1", "2")):
        skipped["forfeit"] += 1
        return None
    errors: list[CellError] = []
    if winner is None:
        shown = tags.get("result", "")
        message = f'The Result tag says "{shown[:40]}"; it must be 1-0, 0-1, 1/2-1/2 or *.'
        if not shown:
            message = "The game has no Result tag."
        errors.append(CellError("winner", message, number, "winner", "Result", shown[:80]))
    day = tags.get("date", "")
    if "?" in day or not day:
        message = f'The Date tag says "{day[:40]}"; the whole day is needed.' if day else "The game has no Date tag."
        errors.append(CellError("date-incomplete", message, number, "date", "Date", day[:80]))
        day = ""
    stage = tags.get("round", "")
    stage = "" if stage in _UNKNOWN else stage.split(".")[0]
    event = tags.get("event", "")
    names = tuple("" if name in _UNKNOWN else name for name in (white, black))
    cells = (day.replace(".", "-"), stage, "" if event in _UNKNOWN else event, *names, winner or "")
    return TableRow(number, cells, tuple(errors))


# -- TRF16 -----------------------------------------------------------------------------------------------------------

_WHITE_RESULT = {"1": "1", "0": "2", "=": "draw", "+": "1", "-": "2", "w": "1", "l": "2", "d": "draw"}
_MIRROR = {"1": "0", "0": "1", "=": "=", "+": "-", "-": "+", "w": "l", "l": "w", "d": "d"}
_BYES = {"h", "f", "u", "z"}
_NOT_PLAYED = {"+", "-", "w", "l", "d"}
"""Won by forfeit, and ended before the first move was answered (W, D, L)."""
_DAY = re.compile(
    r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})|(\d{2})[./-](\d{1,2})[./-](\d{1,2})|(\d{1,2})\.(\d{1,2})\.(\d{4})"
)


def _trf_day(text: str) -> str:
    """A day of a report (YYYY/MM/DD, YY/MM/DD as in line 132, or DD.MM.YYYY) as ISO text; "" when it is none."""
    match = _DAY.fullmatch(text.strip())
    if match is None:
        return ""
    parts = match.groups()
    if parts[6]:
        year, month, day = int(parts[8]), int(parts[7]), int(parts[6])
    elif parts[3]:
        year, month, day = int(parts[3]), int(parts[4]), int(parts[5])
        year += 2000 if year < 70 else 1900
    else:
        year, month, day = int(parts[0]), int(parts[1]), int(parts[2])
    try:
        return dt.date(year, month, day).isoformat()
    except ValueError:
        return ""


def read_trf(text: str, encoding: str, forfeits: Forfeits) -> Table:
    """The games of a FIDE tournament report (TRF16), each once, in order of rounds and then of lines.

    Fixed columns: player lines ``001`` (start number 5-8, name 15-47, from 92 on ten columns a round: opponent, colour,
    result), the tournament's name ``012``, first and last day ``042`` and ``052``, the rounds' days ``132``.
    A game both players report differently is a row with an error.
    """
    name, days, first_day, last_day = "", [""], "", ""
    players: dict[int, tuple[int, str, str]] = {}
    errors: list[TableRow] = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line[:3]
        if code == "012":
            name = line[4:].strip()[:MAX_CELL]
        elif code == "042":
            first_day = _trf_day(line[4:])
        elif code == "052":
            last_day = _trf_day(line[4:])
        elif code == "132":
            days = [_trf_day(line[at : at + 8]) for at in range(91, min(len(line), 10_000), 10)]
        elif code == "001":
            start, called = line[4:8].strip(), line[14:47].strip()
            if not (start.isascii() and start.isdigit()) or int(start) in players:
                message = f'"{start[:8]}" is not a start number of its own (characters 5 to 8 of the line).'
                errors.append(TableRow(number, (), (CellError("trf-line", message, number, "player1"),)))
                continue
            players[int(start)] = (number, called, line[89:])
            if len(players) > MAX_ROWS:
                raise too_many_rows()
    games: list[tuple[int, TableRow]] = [(0, row) for row in errors]
    skipped: Counter[str] = Counter()
    for own, (number, _, rounds) in players.items():
        for stage in range(1, len(rounds) // 10 + 2):
            row = _trf_game(players, own, stage, forfeits, skipped)
            if row is None:
                continue
            day = days[stage - 1] if stage <= len(days) else ""
            cells = (day, str(stage), name, *row.cells)
            games.append((stage, TableRow(number, cells, row.errors)))
            if len(games) > MAX_ROWS:
                raise too_many_rows()
    games.sort(key=lambda game: game[0])
    rows = (TableRow(1, HEADINGS), *(row for _, row in games))
    return Table(
        "trf",
        rows,
        ",",
        encoding,
        notices=_notices(skipped),
        first_day=first_day or None,
        last_day=last_day or first_day or None,
    )


def _entry(rounds: str, stage: int) -> tuple[str, str, str]:
    """Opponent, colour and result of a round: ten columns, of which the first two are blank."""
    cell = rounds[(stage - 1) * 10 : stage * 10].ljust(10)
    return cell[2:6].strip(), cell[7].casefold(), cell[9].casefold()


def _trf_game(
    players: dict[int, tuple[int, str, str]], start: int, stage: int, forfeits: Forfeits, skipped: Counter[str]
) -> TableRow | None:
    """A round of one player as (player1, player2, winner), where this player is the one to report it; else None."""
    number, called, rounds = players[start]
    against, colour, result = _entry(rounds, stage)
    if not against and not result.strip():
        return None

    def wrong(message: str, column: str = "winner", other: str = "") -> TableRow:
        return TableRow(number, (called, other, ""), (CellError("trf-round", message, number, column),))

    if not against.strip("0"):
        kind = "forfeit" if result in ("+", "-") else "bye"
        skipped[kind if result in _BYES or result in ("+", "-") else "unplayed"] += 1
        return None
    if not (against.isascii() and against.isdigit()):
        return wrong(f'Round {stage}: "{against}" is not a start number; are the columns shifted?', "player2")
    if not result.strip() or result == "*":
        if colour != "b":
            skipped["unfinished"] += 1
        return None
    if result not in _WHITE_RESULT:
        return wrong(f'Round {stage}: "{result}" is not a result of TRF16; are the columns shifted?')
    opponent = players.get(int(against))
    if opponent is None or int(against) == start:
        return wrong(f"Round {stage}: there is no other player with start number {against}.", "player2")
    back, back_colour, back_result = _entry(opponent[2], stage)
    reports = colour == "w" or (colour != "b" and back_colour != "w" and start < int(against))
    if back != str(start):
        if back.lstrip("0") != str(start):
            return wrong(f"Round {stage}: {opponent[1]} does not name {called} as opponent.", "player2", opponent[1])
    elif colour == back_colour and colour in ("w", "b"):
        reports = start < int(against)
    if not reports:
        return None
    if result == "-" and back_result == "-":
        skipped["forfeit"] += 1
        return None
    if back_result != _MIRROR[result]:
        message = f'Round {stage}: {called} has "{result}", but {opponent[1]} has "{back_result}".'
        return TableRow(number, (called, opponent[1], ""), (CellError("results-disagree", message, number, "winner"),))
    if result in _NOT_PLAYED and forfeits == "skip":
        skipped["forfeit"] += 1
        return None
    names = (called, opponent[1]) if colour != "b" else (opponent[1], called)
    winner = _WHITE_RESULT[result]
    if colour == "b":
        winner = {"1": "2", "2": "1"}.get(winner, winner)
    return TableRow(number, (*names, winner))


_WORDS = {
    "bye": "byes",
    "forfeit": "games won without play",
    "unfinished": "unfinished games",
    "unplayed": "rounds without play",
}


def _notices(skipped: Counter[str]) -> tuple[Notice, ...]:
    return tuple(
        Notice(f"skipped-{kind}", f"Not taken as games: {count:,} {_WORDS[kind]}.", count)
        for kind, count in sorted(skipped.items())
    )
