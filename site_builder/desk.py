"""The desk: the page from which clubs send results, in each of the site's languages; a script does the work."""

from __future__ import annotations

import json
from collections.abc import Iterator

from shared.ratings import system_names
from site_builder.addresses import key, prefix
from site_builder.site import HTML, render_page
from site_builder.views import Page, SiteView
from site_builder.words import words


def N_(text: str) -> str:  # noqa: N802 - gettext's name for it
    """Mark a text for translation."""
    return text


WORDS = {
    # -- at the door
    "key-unknown": N_("This key is not known. Please check it."),
    "no-pools": N_("No list takes results of this club yet."),
    "offline": N_("The service cannot be reached. Nothing was sent; please try again."),
    "busy": N_("The service is busy. Nothing was stored; please try again in a moment."),
    "failed": N_("Something went wrong. Please try again; sending twice does no harm."),
    # -- players
    "register": N_("Register “{name}” as a new player"),
    "new": N_("new"),
    "choose": N_("Please choose a player from the list."),
    "twice": N_("This player already sits at the table."),
    # -- one game
    "wrong": N_("Please look at these:"),
    "result-missing": N_("The result is missing."),
    "number": N_("A whole number is wanted."),
    "day": N_("The day is missing."),
    "no-such-time": N_("This time does not exist: the clocks were put forward over it."),
    "sent": N_("Game {id} is stored."),
    "unchanged": N_("Game {id} was stored already; nothing changed."),
    "quote": N_("What it would bring"),
    "outcome": N_("Result"),
    "team1": N_("Team 1 won"),
    "team2": N_("Team 2 won"),
    "draw": N_("Draw"),
    "effect": N_("What it would change"),
    "no-effect": N_("No rating would change."),
    "player": N_("Player"),
    "before": N_("Before"),
    "after": N_("After"),
    "place": N_("Place"),
    "rerated": N_("{count} later games would be rated anew."),
    "team-short": N_("Team {n}"),
    "minus": N_("{name}, {team}: less"),
    "plus": N_("{name}, {team}: more"),
    "berg": N_("Berg"),
    "sieg": N_("Sieg"),
    "matsch": N_("Matsch"),
    "schneider": N_("Schneider"),
    "kontermatsch": N_("Kontermatsch"),
    "nobody-said": N_("not said"),
    "no-ally": N_("alone"),
    "player-n": N_("Player {n}"),
    "remove": N_("Remove"),
    # -- live
    "started": N_("started {time}"),
    "quit": N_("{name} quits"),
    "back": N_("{name} is back"),
    "quit-at": N_("quit at {time}"),
    "quits": N_("quits"),
    "is-back": N_("is back"),
    "finish": N_("Finish"),
    "finished": N_("Game {id} is over and stored."),
    "void": N_("Take back"),
    "void-why": N_("Why is it taken back?"),
    "not-open": N_("Game {id} is not running."),
    "forget": N_("Hide"),
    # -- many games
    "nothing": N_("Please choose a file or paste some rows."),
    "too-large": N_("The file is too large: at most 12 MB can be read."),
    "uploading": N_("Sending the file …"),
    "reading": N_("Reading the file …"),
    "storing": N_("{done} of {rows} rows"),
    "games-1": N_("1 game"),
    "games": N_("{count} games"),
    "need-answer": N_("one question first"),
    "need-0": N_("all can be taken"),
    "need-1": N_("1 row needs you"),
    "need": N_("{count} rows need you"),
    "count-new": N_("new"),
    "count-unchanged": N_("unchanged"),
    "count-corrected": N_("corrected"),
    "count-skipped": N_("left out"),
    "count-bad": N_("to be mended"),
    "confirm": N_("Store {count} games"),
    "confirm-none": N_("There is nothing new to store."),
    "confirm-good": N_("Store the {count} good ones and keep the others here"),
    "look-again": N_("Look at it again"),
    "start-over": N_("Another file"),
    "stored": N_("{new} new, {unchanged} unchanged, {corrected} corrected."),
    "left": N_("{count} rows were not taken. Mend them here, or keep them for later:"),
    "download": N_("Rows that were not taken (CSV)"),
    "taken-out": N_("{count} games"),
    "taken-none": N_("No rated games in this month."),
    "taken-left": N_("{count} games cannot be told by these columns and are not in it."),
    "questions": N_("Questions about the file"),
    "rows": N_("Rows {rows}"),
    "row": N_("Row {row}"),
    "who-is": N_("Which “{name}” is meant?"),
    "who-new": N_("“{name}” is not in the club’s list."),
    "who-register": N_("a new player: register as {id}"),
    "who-all": N_("Register all {count} as new players"),
    "who-other": N_("Somebody else:"),
    "last-game": N_("last game {day}"),
    "never": N_("no game yet"),
    "later": N_("decide later"),
    "date-order": N_("In which order do the days stand, as in “{example}”?"),
    "dmy": N_("day, month, year"),
    "mdy": N_("month, day, year"),
    "ymd": N_("year, month, day"),
    "repeated-hour": N_("The clocks were put back: was this the first or the second time?"),
    "first": N_("the first"),
    "second": N_("the second"),
    "last": N_("the last"),
    "round-dates": N_("The report does not say when its rounds were played. Which of its days?"),
    "possible-duplicate": N_("A game with the same players, result and time is stored as {id}. Is this another one?"),
    "distinct": N_("Yes, another game"),
    "skip": N_("No, leave it out"),
    "duplicates-all": N_("The same for all {count} such rows"),
    "corrections": N_("Corrections"),
    "instead": N_("{after} instead of {before}"),
    "empty": N_("nothing"),
    "all-rows": N_("All rows"),
    "sheet": N_("Sheet of the workbook"),
    "forfeits": N_("Games won without play count too"),
    "no-heading": N_("Without a heading"),
    "status": N_("Status"),
    "effects": N_("What would change"),
    "not-read": N_("The file could not be read:"),
    "columns-players": N_("The players, by name or id:"),
    "columns-result": N_("The result:"),
    "columns-more": N_("When, and what else:"),
    # -- what is wrong with a row, by the code of the error
    "e:excel-date": N_("The spreadsheet made a day of this. Type the value again, as text."),
    "e:excel-time": N_("The spreadsheet made a time of this. Type the value again, as text."),
    "e:excel-number": N_("The spreadsheet cut this number short. Type all digits, as text."),
    "e:excel-error": N_("The cell shows an error of the spreadsheet."),
    "e:negative": N_("This is negative; the least is 0."),
    "e:not-whole": N_("This is not a whole number."),
    "e:not-a-number": N_("This is not a number."),
    "e:ambiguous-number": N_("This means thousands to some and a fraction to others; write it without points."),
    "e:out-of-range": N_("This number is too large."),
    "e:buddhist-year": N_("This looks like a year of the Buddhist calendar, which counts 543 more."),
    "e:date": N_("This is not a day; write it like 2026-11-03."),
    "e:date-without-year": N_("The year is missing."),
    "e:date-order": N_("This day contradicts the order of the others."),
    "e:missing": N_("Something is missing here."),
    "e:missing-player": N_("The player is missing."),
    "e:player-twice": N_("This player sits at the table twice."),
    "e:unknown-player": N_("There is no such player."),
    "e:winner": N_("This is no winner: write 1, 2 or draw."),
    "e:game-id-twice": N_("Another row has this id too, with another game."),
    "e:in-the-future": N_("This lies in the future."),
    "e:before-rules": N_("This is before the list began."),
    "e:banned": N_("A player is banned from rated games at that time."),
    "e:conflict": N_("There is another game of this id."),
    "e:possible-duplicate": N_("An equal game was sent already. If this is another one, say so under “More”."),
    "e:pool-moved": N_("The list has changed since you looked. Please look again."),
    "e:import-running": N_("Another file of your club is being stored. Please wait a moment."),
    "e:back-too-late": N_("It is too late to take the quit back."),
    "e:another-revision": N_("Somebody else changed this game in between. It was loaded again."),
    # -- the inbox
    "inbox-empty": N_("Nothing needs you."),
    "held": N_("Cannot be rated yet"),
    "warnings": N_("Stored, but please check"),
    "asks": N_("Questions"),
    "open": N_("Open for more than a day"),
    "left-rows": N_("Files with rows that were not taken"),
    "left-count": N_("rows not taken: {count}"),
    "mend": N_("Mend them"),
    "e:same-name": N_("Several players bear this name. If they are one person, an admin can merge them."),
}
"""What the script says, by the key it uses."""

COLUMN_NAMES = {
    "game_id": N_("Game id"),
    "date": N_("Day"),
    "time": N_("Time"),
    "group": N_("Group"),
    "tournament": N_("Tournament"),
    "round": N_("Round"),
    "note": N_("Note"),
    "winner": N_("Winner"),
}


def desk_pages(site: SiteView) -> Iterator[Page]:
    """``/desk/`` in every language of the site."""
    alternates = [(code, words(code).name, prefix(site.languages, code) + "desk/") for code in site.languages]
    for language, _, address in alternates:
        text = words(language)
        said = {name: text.gettext(message) for name, message in WORDS.items()}
        said |= {f"c:{name}": text.gettext(message) for name, message in COLUMN_NAMES.items()}
        context = {
            "site": site,
            "language": language,
            "home": prefix(site.languages, language),
            "address": address,
            "alternates": alternates,
            "accent": 0,
            "pool": None,
            "systems": system_names(),
            "words_json": json.dumps(said, ensure_ascii=False, separators=(",", ":")),
        }
        yield Page(key(address), HTML, render_page("desk.html", language, context))
