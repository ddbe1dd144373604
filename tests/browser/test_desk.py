"""The desk in Chromium: by keyboard alone, at the width of a phone, and by axe; every game ends in the real API."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from functions.importer import app as importer
from local.emulator import Emulator
from shared.ids import id_from
from shared.imports import neutralise, search_key
from shared.usecases import importing
from shared.usecases.bootstrap import context
from tests.browser.desk_fixture import PLAYERS, Desk, running_desk

SCRIPT = Path(__file__).resolve().parents[2] / "site_builder/assets/desk/desk.js"
PHONE = {"width": 375, "height": 700}
NARROWEST = 320


@pytest.fixture(scope="module")
def desk(emulator: Emulator) -> Iterator[Desk]:
    with running_desk(emulator.url) as running:
        yield running


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on a phone; errors of scripts, blocked contents and dialogs fail the test."""
    context_ = browser.new_context(viewport=PHONE, locale="de-CH", timezone_id="America/New_York")
    opened = context_.new_page()
    opened.set_default_timeout(10_000)
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
    opened.on(
        "console",
        lambda message: (
            trouble.append(message.text) if message.type == "error" and "status of" not in message.text else None
        ),
    )
    yield opened
    context_.close()
    assert trouble == []


def enter(page: Any, desk: Desk, where: str = "#game", pool: str = "schieber", language: str = "") -> None:
    """Give the key and choose a list, by keyboard. Without transitions: axe must not measure a colour on its way."""
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{desk.url}{language}/desk/{where}")
    page.locator("#enter [name=key]").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type(desk.key)
    page.keyboard.press("Enter")
    page.wait_for_selector("#inside:visible")
    if page.locator("#pool").input_value() != pool:
        page.select_option("#pool", pool)


def to(page: Any, wanted: Any, most: int = 60) -> None:
    """Press Tab until the wanted element has the focus."""
    for _ in range(most):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {wanted}")


def seat(page: Any, box: Any, typed: str) -> None:
    to(page, box)
    page.keyboard.type(typed)
    page.keyboard.press("Enter")


def boxes(page: Any, form: str = "#game") -> Any:
    return page.locator(f"{form} [data-lineup] input[role=combobox]")


def fits(page: Any) -> None:
    """Nothing sticks out at the side, down to the narrowest phones."""
    for width in (PHONE["width"], NARROWEST):
        page.set_viewport_size({**PHONE, "width": width})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(PHONE)


def axe(page: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []


# -- one game --------------------------------------------------------------------------------------------------------


def test_a_game_by_keyboard_alone(page: Any, desk: Desk) -> None:
    enter(page, desk)
    page.locator("#pool").focus()
    for box, typed in zip([boxes(page).nth(n) for n in range(4)], ("anna", "thord", "egli", "CLA"), strict=True):
        seat(page, box, typed)
    assert boxes(page).nth(1).input_value() == "Þórður Jónsson"
    for name, times in (("Sieg, Team 1: more", 1), ("Matsch, Team 1: more", 2), ("Berg, Team 2: more", 1)):
        to(page, page.get_by_role("button", name=name, exact=True))
        for _ in range(times):
            page.keyboard.press("Enter")
    page.wait_for_selector("[data-quote] table")
    to(page, page.locator("[data-try]"))
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-preview] tbody tr")
    assert page.locator("[data-preview] tbody th").all_inner_texts()[0] == "Anna Aebi"
    fits(page)
    before = desk.inbox("schieber")
    page.locator("[data-send]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-sent] a")
    game = desk.game("schieber", page.locator("[data-sent] a").inner_text())
    assert {tuple(team) for team in game["result"]["teams"]} == {("anna", "thordur"), ("beat", "cla")}
    assert [side["matsch"] for side in game["result"]["striche"]] == [2, 0]
    assert desk.inbox("schieber") == before + 1
    assert page.locator(".step output").all_inner_texts() == ["0"] * 10  # ready for the next game of the same four
    assert boxes(page).nth(0).input_value() == "Anna Aebi"


def test_what_is_missing_is_said_at_its_field(page: Any, desk: Desk) -> None:
    enter(page, desk, pool="spades")
    seat(page, boxes(page).nth(0), "anna")
    page.locator("[data-send]").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.hasAttribute('data-errors')")
    assert page.locator("#game [data-errors] li").count() == 4  # three players, the result
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert boxes(page).nth(1).evaluate("box => box === document.activeElement")
    assert boxes(page).nth(1).get_attribute("aria-invalid") == "true"
    axe(page)


def test_two_of_one_name_are_told_apart_and_a_new_one_is_registered(page: Any, desk: Desk) -> None:
    enter(page, desk, pool="duels")
    box = boxes(page).nth(0)
    to(page, box)
    page.keyboard.type("alex")
    assert page.locator("#game li[role=option]").all_inner_texts()[:2] == ["Alex Muster\nalex", "Alex Muster\nalex-2"]
    assert box.get_attribute("aria-activedescendant") == page.locator("li[aria-selected=true]").get_attribute("id")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    to(page, boxes(page).nth(1))
    page.keyboard.type("Zoé Neu")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    to(page, page.locator("#game [data-choice=outcome] input").nth(0))
    page.keyboard.press("Space")
    page.locator("[data-send]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-sent] a")
    game = desk.game("duels", page.locator("[data-sent] a").inner_text())
    assert (game["result"]["players"], game["result"]["winner"]) == (["alex-2", "zoe-neu"], "alex-2")
    assert desk.system.request("GET", "/v1/players/zoe-neu").body["name"] == "Zoé Neu"


def test_a_name_is_never_markup(page: Any, desk: Desk) -> None:
    enter(page, desk, pool="duels")
    to(page, boxes(page).nth(0))
    page.keyboard.type("<script")
    assert page.locator("#game li[role=option]").first.inner_text().startswith(PLAYERS["hans"])
    page.keyboard.press("Escape")
    assert page.locator("#game ul[role=listbox]:visible").count() == 0


def test_an_equal_game_is_stored_only_when_it_is_another(page: Any, desk: Desk) -> None:
    enter(page, desk, pool="duels")
    sent = []
    for _ in range(2):
        if not sent:
            seat(page, boxes(page).nth(0), "beat")
            seat(page, boxes(page).nth(1), "cla")
        page.fill("#game [name=day]", "2026-03-05")
        page.fill("#game [name=ended]", "20:00")
        page.locator("#game [data-choice=outcome] input").nth(1).check()
        page.locator("[data-send]").click()
        page.wait_for_selector("[data-sent] a" if not sent else "#game [data-errors] li")
        sent.append(page.locator("[data-sent] a").inner_text())
    assert page.locator("[name=distinct]").is_visible()
    page.locator("[name=distinct]").check()
    page.locator("[data-send]").click()
    page.locator("[data-sent] a").filter(has_not_text=sent[0]).wait_for()
    assert desk.game("duels", sent[0])["finished_at"] == "2026-03-05T19:00:00Z"  # the pool's clock, not the browser's


def test_a_game_of_several_with_alliances_and_defeats(page: Any, desk: Desk) -> None:
    enter(page, desk, pool="duels")
    page.locator("#game [data-add=players]").click()
    for number, typed in enumerate(("anna", "beat", "cla")):
        seat(page, boxes(page).nth(number), typed)
    page.locator("#game [data-alliances] select").nth(0).select_option("A")
    page.locator("#game [data-alliances] select").nth(2).select_option("A")
    page.locator("#game [data-add=defeats]").click()
    page.locator("#game [data-seat=winner]").select_option("anna")
    page.locator("#game [data-seat=loser]").select_option("beat")
    fits(page)
    page.locator("[data-send]").click()
    page.wait_for_selector("[data-sent] a, #game [data-errors] li")
    assert page.locator("#game [data-errors] li").count() == 0, page.locator("#game [data-errors]").inner_text()
    game = desk.game("duels", page.locator("[data-sent] a").inner_text())
    assert game["result"]["alliances"] == [["anna", "cla"]]
    assert [(d["winner"], d["loser"]) for d in game["result"]["defeats"]] == [("anna", "beat")]


# -- live tables -------------------------------------------------------------------------------------------------------


def test_a_live_table_by_keyboard(page: Any, desk: Desk) -> None:
    enter(page, desk, "#live", pool="spades")
    for number, typed in enumerate(("anna", "beat", "cla", "thord")):
        seat(page, boxes(page, "#start").nth(number), typed)
    to(page, page.locator("#start p button").last)
    page.keyboard.press("Enter")
    card = page.locator("#tables form")
    card.wait_for()
    game_id = card.get_attribute("data-id")
    to(page, page.get_by_role("button", name="Beat Egli quits"))
    page.keyboard.press("Enter")
    back = page.get_by_role("button", name="Beat Egli is back")
    back.wait_for()
    to(page, back)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Beat Egli quits").wait_for()
    to(page, page.get_by_role("button", name="Cla Tanner quits"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Cla Tanner is back").wait_for()
    page.reload()  # the phone went to sleep
    card.wait_for()
    assert desk.game("spades", game_id)["line_up"]["quits"][-1]["player"] == "cla"
    page.locator("#tables [data-add=substitutes]").click()
    page.locator("#tables [data-seat=for]").select_option("cla")
    to(page, page.locator("#tables [data-robot]"))
    page.keyboard.press("Space")
    page.locator("#tables [data-choice=outcome] input").nth(0).check()
    fits(page)
    axe(page)
    to(page, page.locator("#tables form .buttons button").last)
    page.get_by_role("button", name="Finish").focus()
    page.keyboard.press("Enter")
    page.locator("#tables .note").wait_for()
    game = desk.game("spades", game_id)
    assert (game["status"], game["result"]["outcome"]) == ("pending", "team1")
    assert [q["player"] for q in game["result"]["quits"] if not q.get("back_at")] == ["cla"]
    assert game["result"]["substitutes"] == [{"for": "cla", "robot": True}]


def test_a_duel_with_limits_is_started_and_finished(page: Any, desk: Desk) -> None:
    enter(page, desk, "#live", pool="duels")
    seat(page, boxes(page, "#start").nth(0), "anna")
    seat(page, boxes(page, "#start").nth(1), "cla")
    page.locator("#start summary").click()
    page.fill("#start [data-limit=maximum_rank]", "1")
    page.locator("#start p button").last.click()
    page.wait_for_selector("#start [data-errors] li")
    page.fill("#start [data-limit=maximum_rank]", "2000")
    page.locator("#start p button").last.click()
    card = page.locator("#tables form")
    card.wait_for()
    game_id = card.get_attribute("data-id")
    page.locator("#tables [data-choice=outcome] input").nth(2).check()
    page.get_by_role("button", name="Finish").click()
    page.locator("#tables .note").wait_for()
    assert desk.game("duels", game_id)["result"]["winner"] == "cla"


# -- many games --------------------------------------------------------------------------------------------------------

HEAD = "Datum;Team 1 Spieler 1;Team 1 Spieler 2;Team 2 Spieler 1;Team 2 Spieler 2;Striche 1;Striche 2"


def table(rows: list[str]) -> str:
    return "\n".join([HEAD, *rows])


def look(page: Any, text: str) -> None:
    to(page, page.locator("#many textarea"))
    page.locator("#many textarea").fill(text)
    page.locator("#file p button").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#report .verdict")


def test_many_games_with_two_rows_to_mend(page: Any, desk: Desk) -> None:
    enter(page, desk, "#many")
    good = [f"{1 + n}.4.2026;anna;beat;cla;Þórður Jónsson;{3 + n % 4};1" for n in range(25)]
    look(page, table([*good, "26.4.2026;anna;beat;cla;thordur;03. Feb;1", "27.4.2026;anna;beat;cla;;3;1"]))
    assert page.locator(".verdict").inner_text() == "27 games, 2 rows need you"
    fits(page)
    axe(page)
    for row, cell, value in ((27, "Striche 1", "3"), (28, "Team 2 Spieler 2", "thordur")):
        field = page.locator(f"[data-row-number='{row}']").get_by_label(cell)
        assert field.get_attribute("aria-invalid") == "true"
        to(page, field)
        page.keyboard.press("Control+a")
        page.keyboard.type(value)
    to(page, page.locator("[data-again]"))
    page.keyboard.press("Enter")
    page.locator(".verdict", has_text="taken").wait_for()
    assert page.locator(".verdict").inner_text() == "27 games, all can be taken"
    before = desk.inbox("schieber")
    to(page, page.locator("[data-confirm]"))
    page.keyboard.press("Enter")
    page.wait_for_selector("#report .note")
    assert page.locator("#report .note").inner_text() == "27 new, 0 unchanged, 0 corrected."
    assert desk.inbox("schieber") == before + 27


def test_a_months_games_are_taken_out_and_change_nothing_when_sent_again(page: Any, desk: Desk, tmp_path: Path) -> None:
    enter(page, desk, "#many", "duels")
    look(page, "date;player1;player2;winner\n3.3.2025;anna;beat;1\n4.3.2025;cla;beat;draw\n")
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report .note")
    desk.system.rate(["duels"])  # published it would have another address of the API
    page.get_by_label("Month").fill("2025-03")
    page.locator("#take-out button").focus()
    page.keyboard.press("Enter")
    page.locator("#taken-out a").wait_for()
    fits(page)
    axe(page)
    assert page.locator("#taken-out").inner_text().strip() == "duels-bern-2025-03.csv. Games: 2."
    with page.expect_download() as taken:
        page.locator("#taken-out a").click()
    taken.value.save_as(tmp_path / "games.csv")
    page.reload()
    page.wait_for_selector("#file:visible")
    page.locator("#file input[type=file]").set_input_files(tmp_path / "games.csv")
    page.locator("#file p button").click()
    page.wait_for_selector(".verdict")
    assert "2 unchanged" in page.locator("#report").inner_text()
    page.get_by_label("Month").fill("2024-03")
    page.locator("#take-out button").click()
    page.locator("#taken-out", has_text="No rated games").wait_for()


def test_questions_are_answered_in_the_page(page: Any, desk: Desk) -> None:
    enter(page, desk, "#many")
    rows = ["03/02/2025;Alex Muster;beat;cla;anna;3;1", "04/02/2025;Alex Muster;beat;cla;anna;3;1"]
    look(page, table([*rows, "05/02/2025;Ueli Neu;beat;cla;anna;3;0"]))
    assert page.locator(".verdict").inner_text() == "3 games, one question first"
    to(page, page.locator(".asks select").first)
    page.keyboard.press("ArrowDown")
    page.locator("[data-again]").focus()
    page.keyboard.press("Enter")
    page.locator(".verdict", has_text="3 rows").wait_for()
    which = page.locator(".asks").get_by_label("Which “Alex Muster” is meant?")
    which.select_option("alex")
    page.locator(".asks label", has_text=re.compile("^Row 3")).locator("select").select_option("alex-2")
    page.locator(".asks").get_by_label("“Ueli Neu” is not in the club’s list.").select_option("+ueli-neu")
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="all can").wait_for()
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report .note")
    assert page.locator("#report .note").inner_text() == "3 new, 0 unchanged, 0 corrected."
    players = desk.system.request("GET", "/v1/clubs/bern/players", key=desk.key).body["players"]
    assert {"player": "ueli-neu", "name": "Ueli Neu"} in players
    look(page, table(rows))  # the days' order is asked again, whom the names mean is known
    page.locator(".asks select").first.select_option("dmy")
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="all can").wait_for()
    assert page.locator("#report [data-confirm]").inner_text() == "There is nothing new to store."


def test_good_rows_are_stored_and_the_others_stay_here(page: Any, desk: Desk) -> None:
    enter(page, desk, "#many")
    look(page, table(["1.5.2025;anna;beat;cla;thordur;3;1", "2.5.2025;anna;beat;cla;thordur;-1;1"]))
    busy = {"status": 503, "headers": {"Retry-After": "0"}, "json": {"code": "busy"}}
    page.route("**/imports?*", lambda route: route.fulfill(**busy), times=2)  # it asks again, and again
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report a[download]")
    assert page.locator("#report .note").inner_text() == "1 new, 0 unchanged, 0 corrected."
    assert page.locator(".verdict").inner_text() == "1 game, 1 row needs you"
    page.locator("[data-row-number='2']").get_by_label("Striche 1").fill("4")
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="all can").wait_for()
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report > .note:first-child:last-child")


def test_a_cell_beyond_the_headings_can_be_seen_and_mended(page: Any, desk: Desk) -> None:
    enter(page, desk, "#many")
    look(page, table(["6.5.2025;anna;beat;cla;thordur;3;1;2"]))
    assert page.locator(".verdict").inner_text() == "1 game, 1 row needs you"
    field = page.locator("[data-row-number='2']").get_by_label("Without a heading")
    field.fill("")
    field.press("Enter")  # as good as the button, which may be far below
    page.locator(".verdict", has_text="all can").wait_for()


def _tournament(*games: tuple[str, str, str, str]) -> str:
    """A report (TRF16): in each round White, Black and what each of them notes; no line says when the rounds were."""
    names = list(dict.fromkeys(name for white, black, _, _ in games for name in (white, black)))
    start = {name: number for number, name in enumerate(names, 1)}
    lines = []
    for name in names:
        rounds = ""
        for white, black, one, two in games:
            if name == white:
                rounds += f"{start[black]:4} w {one}  "
            else:
                rounds += f"{start[white]:4} b {two}  " if name == black else "0000 - Z  "
        lines.append(f"{f'001 {start[name]:4} m    {name:33}':<91}{rounds}")
    return "\n".join(["012 Cup", "042 2026/03/01", "052 2026/03/08", *lines])


def test_a_tournament_report_keeps_its_days_when_a_row_is_mended(page: Any, desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "cup.trf"
    file.write_text(
        _tournament(
            ("Anna Aebi", "Beat Egli", "1", "0"),
            ("Beat Egli", "Cla Tanner", "1", "1"),
            ("Anna Aebi", "Cla Tanner", "+", "-"),
        )
    )
    enter(page, desk, "#many", "duels")
    page.set_input_files("#many [name=file]", str(file))
    page.locator("#file p button").click()
    page.wait_for_selector("#report .verdict")
    assert page.locator(".verdict").inner_text() == "2 games, one question first, 1 row needs you"
    page.locator(".asks select").first.select_option("last")
    assert page.locator(".asks select").first.locator(":checked").inner_text() == "the last (2026-03-08)"
    page.get_by_label("Games won without play count too").check()
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="3 games, 1 row").wait_for()
    page.locator(".bad").get_by_label("winner").fill("1")
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="3 games, all can").wait_for()
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report .note")
    assert page.locator("#report .note").inner_text() == "3 new, 0 unchanged, 0 corrected."
    desk.system.rate(["duels"])
    history = desk.system.request("GET", "/v1/pools/duels/players/cla").body["history"]
    assert [entry["at"] for entry in history].count("2026-03-08T11:00:00Z") == 2


def test_the_sheet_of_a_workbook_is_chosen(page: Any, desk: Desk, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Only", "words"])
    book.create_sheet("Mai").append(HEAD.split(";"))
    book["Mai"].append(["9.5.2025", "anna", "beat", "cla", "thordur", "3", "1"])
    book.save(tmp_path / "abende.xlsx")
    enter(page, desk, "#many")
    page.set_input_files("#many [name=file]", str(tmp_path / "abende.xlsx"))
    page.locator("#file p button").click()
    page.wait_for_selector("#report [role=alert]")
    to(page, page.get_by_label("Sheet of the workbook"))
    page.get_by_label("Sheet of the workbook").select_option("Mai")
    page.wait_for_selector("#report .verdict")
    assert page.locator(".verdict").inner_text() == "1 game, all can be taken"
    assert page.get_by_label("Sheet of the workbook").input_value() == "Mai"


def test_rows_that_were_not_taken_wait_in_the_inbox(page: Any, desk: Desk) -> None:
    good = [f"{1 + n}.8.2025;anna;beat;cla;thordur;3;1" for n in range(25)]
    path = "/v1/pools/schieber/uploads?mode=lenient"
    body = {"filename": "august.csv", "bytes": 1}
    started = desk.system.request("POST", path, json=body, key=desk.key).body["import_id"]
    text = table([*good, "26.8.2025;anna;beat;cla;thordur;03. Feb;1"])
    context().data.put(f"uploads/{started}", text.encode(), "application/octet-stream")
    assert importer.run(context(), started, 0.0)
    enter(page, desk, "#inbox", "spades")
    letter = page.locator("#letters li", has_text="august.csv")
    assert "Row 27: The spreadsheet made a day of this." in letter.inner_text()
    axe(page)
    fits(page)
    letter.get_by_role("button", name="Mend them").press("Enter")
    page.locator(".verdict", has_text="1 game, 1 row needs you").wait_for()
    assert page.locator("#pool").input_value() == "schieber"
    page.locator(".bad").get_by_label("Striche 1").fill("3")
    page.locator("[data-again]").click()
    page.locator(".verdict", has_text="all can").wait_for()
    page.locator("[data-confirm]").click()
    page.wait_for_selector("#report .note")
    page.locator("#tabs a[href='#inbox']").click()
    page.locator("#letters li", has_text="august.csv").wait_for(state="detached")


def test_a_file_that_takes_longer_shows_its_progress(
    page: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importing, "REQUEST_ROWS", 5)
    file = tmp_path / "abend.csv"
    file.write_bytes(table([f"{1 + n}.6.2025;anna;beat;cla;thordur;{3 + n % 4};1" for n in range(8)]).encode("utf-16"))
    enter(page, desk, "#many")
    page.set_input_files("#many [name=file]", str(file))
    for press, shown in (("#file p button", "#report .verdict"), ("#report [data-confirm]", "#report .note")):
        with page.expect_request(lambda request: "/v1/imports/" in request.url) as asked:
            page.locator(press).click()
        page.wait_for_selector("#progress:visible")
        assert page.evaluate("document.querySelector('progress').getBoundingClientRect().top >= 0")
        assert importer.run(context(), asked.value.url.rpartition("/")[2], 0.0)
        page.wait_for_selector(shown)
    page.wait_for_selector("#report .note")
    assert page.locator("#report .note").inner_text() == "8 new, 0 unchanged, 0 corrected."


def test_a_file_that_cannot_be_read_says_so(page: Any, desk: Desk) -> None:
    enter(page, desk, "#many")
    page.locator("#many textarea").fill("a;b\n1;2")
    page.locator("#file p button").click()
    page.wait_for_selector("#report [role=alert]")
    assert "team1_player1" in page.locator("#report").inner_text()


# -- key, languages, looks ---------------------------------------------------------------------------------------------


def test_the_key_is_kept_only_when_one_says_so(page: Any, desk: Desk) -> None:
    page.goto(f"{desk.url}/desk/")
    page.fill("[name=key]", "nonsense")
    page.keyboard.press("Enter")
    page.wait_for_selector("#alert .note")
    assert page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
    enter(page, desk)
    assert page.evaluate("[localStorage.getItem('desk.key'), sessionStorage.getItem('desk.key') !== null]") == [
        None,
        True,
    ]
    page.locator("#leave").click()
    page.wait_for_selector("#enter:visible")
    assert page.evaluate("sessionStorage.getItem('desk.key')") is None
    page.fill("[name=key]", desk.key)
    page.locator("[name=keep]").check()
    page.keyboard.press("Enter")
    page.wait_for_selector("#inside:visible")
    assert page.evaluate("localStorage.getItem('desk.key')") == desk.key


SMALL = """view => [...document.querySelectorAll(`#${view} :is(button, input, select)`)]
    .filter(e => e.offsetParent && !["checkbox", "radio"].includes(e.type) && e.getBoundingClientRect().height < 43)
    .map(e => e.outerHTML.slice(0, 80))"""
"""What is too small for a thumb."""


@pytest.mark.parametrize("language", ["", "/de", "/fr", "/it"])
@pytest.mark.parametrize("pool", ["schieber", "spades", "duels"])
def test_every_view_by_axe_and_on_a_phone(page: Any, desk: Desk, language: str, pool: str) -> None:
    enter(page, desk, "#game", pool, language)
    for view in ("game", "live", "many", "inbox"):
        page.locator(f"#tabs a[href='#{view}']").click()
        page.wait_for_selector(f"#{view}:visible")
        fits(page)
        axe(page)
        small = page.evaluate(SMALL, view)
        assert small == []


# -- what the script shares with the server ----------------------------------------------------------------------------


def _node(expression: str, values: Any) -> Any:
    """An expression of the script's exports over values."""
    code = (
        f"import * as d from {json.dumps(SCRIPT.as_uri())}; let s='';"
        "for await (const c of process.stdin) s+=c; const f=" + expression + ";"
        "console.log(JSON.stringify(JSON.parse(s).map(f)))"
    )
    answer = subprocess.run(
        ["node", "--input-type=module", "-e", code],
        input=json.dumps(values), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(answer.stdout)


TEXTS = [
    "Þórður Jónsson", "  Zoë   d’Arc ", "Straße", "ŁUKASZ Żółć", "Æbleskiver Øst", "Ǆ ﬁ Ⅷ", "İstanbul ıĞ", "ΣΊΣΥΦΟΣ",
    "Ёлка", "-1", "=SUM(A1)", "'t Hooft", "''=x", "@x", "+41", "\tx", "en", "Desk", "V1", "a_b.c-d", "...",
    "ﬀ", "ŉ", "x" * 90,
    *(chr(code) for code in range(0x20, 0x250)), *(chr(code) for code in range(0x1E00, 0x1F00)),
]  # fmt: skip


def test_names_ids_and_cells_are_made_as_the_server_makes_them() -> None:
    assert _node("d.searchKey", TEXTS) == [search_key(text) for text in TEXTS]
    assert _node("d.idFrom", TEXTS) == [id_from(search_key(text)) or "" for text in TEXTS]
    assert _node("d.neutralise", TEXTS) == [neutralise(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("day", "time", "expected"),
    [
        ("2026-07-01", "20:00", ["2026-07-01T18:00:00.000Z"]),
        ("2026-10-25", "02:30", ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"]),
        ("2026-03-29", "02:30", []),
        ("2026-12-31", "23:59", ["2026-12-31T22:59:00.000Z"]),
    ],
)
def test_local_times_become_instants(day: str, time: str, expected: list[str]) -> None:
    found = _node(
        "([day, time]) => d.instants(day, time, 'Europe/Zurich').map(at => new Date(at).toISOString())", [[day, time]]
    )
    assert found == [expected]
