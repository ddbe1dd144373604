"""The site in Chromium: every kind of page by axe, on a phone and wide, light and dark, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

KINDS = {
    "home": "/",
    "list": "/schieber/",
    "list-pair": "/duels/",
    "list-apart": "/duels/new/",
    "player": "/schieber/players/{schieber}/",
    "player-pair": "/duels/players/{duels}/",
    "player-spades": "/spades/players/{spades}/",
    "game": "/schieber/games/bern/g0278/",
    "game-pair": "/duels/games/bern/g0179/",
    "game-spades": "/spades/games/bern/g0200/",
    "month": "/schieber/lists/2026-10/",
    "month-pair": "/duels/lists/2026-10/",
    "lists": "/schieber/lists/",
    "club": "/schieber/clubs/bern/",
    "tournament": "/schieber/tournaments/herbst/",
    "group": "/schieber/groups/dienstag/",
    "group-year": "/schieber/groups/dienstag/2026/",
    "best": "/schieber/best/",
    "ledger": "/schieber/ledger/",
    "changes": "/schieber/changes/",
    "rules": "/schieber/rules/",
    "rules-pair": "/duels/rules/",
    "rules-spades": "/spades/rules/",
    "calculator": "/schieber/calculator/",
    "calculator-pair": "/duels/calculator/",
    "calculator-spades": "/spades/calculator/",
    "statistics": "/schieber/statistics/",
    "embed": "/embed/schieber/",
    "missing": "/404.html",
}
LANGUAGES = ("", "/de", "/fr", "/it")


@pytest.fixture(scope="session")
def address(site_folder: Path) -> Any:
    """The address of a kind of page; the player is the one that was rendered."""
    first = {
        pool: next((site_folder / pool / "players").glob("*/index.html")).parent.name
        for pool in ("schieber", "spades", "duels")
    }
    return lambda kind: KINDS[kind].format(**first)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors and foreign requests fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
    opened.on(
        "request",
        lambda request: trouble.append(request.url) if not request.url.startswith("http://127.0.0.1:") else None,
    )
    yield opened
    context.close()
    assert trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(page: Any, site_url: str, address: Any, kind: str, scheme: str) -> None:
    axe = Axe()
    page.emulate_media(color_scheme=scheme)
    page.goto(site_url + address(kind))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found = axe.run(page).response["violations"]
    assert [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in found] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_scrolls_sideways_on_a_phone(page: Any, site_url: str, address: Any, language: str) -> None:
    wide = []
    for width in (320, 375):
        page.set_viewport_size({"width": width, "height": 700})
        for kind in KINDS:
            if kind == "missing" and language:
                continue
            page.goto(site_url + language + address(kind))
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            if (shown := page.evaluate("document.documentElement.scrollWidth")) > width:
                wide.append((kind, width, shown))
    assert wide == []


@pytest.mark.parametrize("width", [760, 1000, 1248, 1280])
def test_every_table_stays_in_its_frame(page: Any, site_url: str, site_folder: Path, width: int) -> None:
    """Beside a column the list is narrow: its columns must not run over the frame."""
    page.set_viewport_size({"width": width, "height": 800})
    wide = []
    for language in ("", "de/", "fr/", "it/"):
        for pool in ("schieber", "spades", "duels"):
            if not (site_folder / language / pool / "index.html").exists():
                continue
            page.goto(f"{site_url}/{language}{pool}/")
            if page.evaluate("""[...document.querySelectorAll('.list')].some(list =>
                [...list.querySelectorAll('td,th')].some(cell =>
                    cell.getBoundingClientRect().right > list.getBoundingClientRect().right + 0.5))"""):
                wide.append((language, pool))
    assert wide == []


@pytest.mark.parametrize("width", [320, 375])
def test_names_longer_than_a_line_do_not_widen_a_page(
    page: Any, long_site_url: str, long_site_folder: Path, width: int
) -> None:
    """One page of each kind, in the language with the longest words."""
    page.set_viewport_size({"width": width, "height": 700})
    kinds: dict[tuple[str, ...], str] = {"home": "de/", "missing": "404.html"}  # type: ignore[dict-item]
    for file in sorted((long_site_folder / "de").rglob("index.html")):
        parts = file.parent.relative_to(long_site_folder).parts
        kinds.setdefault((*parts[1:3], str(len(parts))), "/".join(parts) + "/")
    assert len(kinds) > 40
    wide = []
    for path in kinds.values():
        page.goto(f"{long_site_url}/{path}")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        if (shown := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide.append((path, shown))
    assert wide == []


BROKEN_WORDS = """() => [...document.querySelectorAll('th')].flatMap((th) => {
  const found = [];
  const walker = document.createTreeWalker(th, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('[dir=auto], .sr')) continue;
    for (const word of node.data.matchAll(/[^\\s–_-]+/g)) {
      if (word[0].includes('\\u00ad')) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter((r) => r.width).map((r) => Math.round(r.top)));
      if (lines.size > 1) found.push(word[0]);
    }
  }
  return found;
})"""
"""The words of headings that go on in the next line. Names may; nothing that the pages say themselves."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_heading_of_a_table_breaks_within_a_word(page: Any, site_url: str, address: Any, language: str) -> None:
    broken = []
    for width in (320, 375, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        for kind in KINDS:
            if kind == "missing":
                continue
            page.goto(site_url + language + address(kind))
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            broken += [(kind, width, word) for word in page.evaluate(BROKEN_WORDS)]
    assert broken == []


def test_names_are_literal_text(page: Any, site_url: str) -> None:
    page.goto(site_url + "/schieber/")
    names = page.locator("table tbody th a").all_inner_texts()
    assert "<img src=x onerror=1>" in names
    assert '"><script>alert(1)</script>' in names
    assert page.locator("img").count() == 0


def test_a_list_without_script_says_everything(browser: Any, site_url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site_url + "/schieber/")
    assert page.locator("tbody tr").count() == 20
    assert page.locator("[data-search]").is_hidden()
    page.locator("tbody th a").first.click()
    assert page.locator("svg.chart").is_visible()
    context.close()


def test_sorting_by_a_column_and_back(page: Any, site_url: str) -> None:
    page.goto(site_url + "/schieber/")
    column = page.get_by_role("columnheader", name="Games")
    column.get_by_role("button").click()
    games = [int(text) for text in page.locator("tbody td.w1").all_inner_texts()]
    assert games == sorted(games, reverse=True)
    assert column.get_attribute("aria-sort") == "descending"
    column.get_by_role("button").press("Enter")
    games = [int(text) for text in page.locator("tbody td.w1").all_inner_texts()]
    assert games == sorted(games)


def test_search_finds_without_accents_and_by_keyboard(page: Any, site_url: str) -> None:
    page.goto(site_url + "/schieber/")
    page.get_by_role("searchbox").fill("osgur")
    link = page.locator("[data-search] li a")
    link.wait_for()
    assert link.inner_text().startswith("Ösgür")
    page.get_by_role("searchbox").press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").startswith("Ösgür")
    page.get_by_role("searchbox").fill("qqqq")
    page.get_by_text("No player of that name.").wait_for()


def test_the_language_switch_keeps_the_page(page: Any, site_url: str, address: Any) -> None:
    page.goto(site_url + address("player"))
    page.get_by_role("link", name="Deutsch").click()
    assert page.url == site_url + "/de" + address("player")
    assert page.get_by_role("heading", name="Verlauf").is_visible()


def test_the_calculator_answers_while_one_types(page: Any, site_url: str) -> None:
    page.goto(site_url + "/duels/calculator/")
    for name, value in (("a", 520), ("i", 453), ("b", 648), ("j", 131)):
        page.locator(f"[name={name}]").fill(str(value))
    row = page.locator("tr[data-wins=first]")
    assert row.locator("td").all_inner_texts() == ["10", "562 / 411 (+42)", "646 / 129 (−2)"]
    page.goto(site_url + "/spades/calculator/")
    for name, value in (("a", 1512), ("c", 1484), ("b", 1562), ("d", 1417)):
        page.locator(f"[name={name}]").fill(str(value))
    cells = page.locator("tr[data-score='1'] td").all_inner_texts()
    assert cells == ["1536.4 (+24.4)", "1508.4 (+24.4)", "1537.6 (−24.4)", "1392.6 (−24.4)"]


def test_the_jass_calculator_by_hand(page: Any, site_url: str) -> None:
    """Even teams, three to nothing: S = 0.5 + 3/14, and each of the winners has half of K times the rest, 32 × 3/28."""
    page.goto(site_url + "/schieber/calculator/")
    for name, value in (("a", 100), ("c", 100), ("b", 100), ("d", 100), ("x", 3), ("y", 0)):
        page.locator(f"[name={name}]").fill(str(value))
    out = page.locator("[data-out]")
    told = dict(zip(out.evaluate_all("cells => cells.map((c) => c.dataset.out)"), out.all_inner_texts(), strict=True))
    assert float(told["e"]) == 0.5
    assert told["s"] == "0.7143"
    assert told["change"] == "+3.429"
    assert float(told["a"].split()[0]) == pytest.approx(103.429, abs=0.05)
    assert float(told["b"].split()[0]) == pytest.approx(96.571, abs=0.05)


@pytest.mark.parametrize("pool", ["schieber", "spades", "duels"])
def test_a_calculator_without_script_says_how_to_ask(browser: Any, site_url: str, pool: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site_url}/{pool}/calculator/")
    assert page.get_by_text(f"/v1/pools/{pool}/quote").is_visible()
    assert page.locator("form.card").is_hidden()
    context.close()


@pytest.mark.parametrize("kind", ["list", "player", "missing"])
def test_the_tab_key_reaches_everything_in_order(page: Any, site_url: str, address: Any, kind: str) -> None:
    """Every link and field once, in the order of the page, each visible with an outline when it has the focus."""
    page.goto(site_url + address(kind))
    wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], input, button, summary')].filter((e) => e.checkVisibility()).length"
    )
    seen = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => {
                  const e = document.activeElement, all = [...document.querySelectorAll('*')];
                  const box = e.getBoundingClientRect();
                  return [all.indexOf(e), getComputedStyle(e).outlineStyle, box.width > 0 && box.height > 0];
                }"""
            )
        )
    assert [n for n, _, _ in seen] == sorted({n for n, _, _ in seen})
    assert all(style != "none" and shown for _, style, shown in seen)


def test_paper_is_white_and_has_no_switches(page: Any, site_url: str, address: Any) -> None:
    """Printed by somebody whose screen is dark: no light colours, tabs or closed tables on paper."""
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(site_url + "/duels/")
    assert page.locator(".tabs").is_hidden()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    light = page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent')")
    page.emulate_media(media="screen", color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent')") == light
    page.emulate_media(media="print")
    page.goto(site_url + address("player"))
    assert page.locator("summary").first.is_hidden()
    assert page.locator("svg.chart").is_visible()
