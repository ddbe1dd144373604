"""The pages as text: what stands where, escaped, small, the same each time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace as replace_struct

from shared.ratings import _registered, rule_system
from site_builder import data, site, stages
from site_builder.addresses import Addresses
from site_builder.assets import asset_pages
from site_builder.figures import Figures
from site_builder.rows import Lines, pager
from site_builder.views import (
    BestEver,
    GameChange,
    GamePage,
    HistoryLine,
    IndexPage,
    LabelPage,
    MonthPage,
    Page,
    Person,
    PlayerPage,
    PoolView,
    SiteView,
    Standing,
    StatisticsPage,
)
from site_builder.words import words
from tests.browser import site_fixture as fixture

SITE = SiteView("https://ratings.example", "https://api.example")
POOL = PoolView("tuesday", "Tuesday", "spades", "Europe/Zurich", ("de", "en"), ({"from": "2020-01-01"},), 0)
MILLION = 1_000_000
AWKWARD = [*fixture.AWKWARD, "A" * 60, "\u202eevil", "a & b"]


class Reader(HTMLParser):
    """Texts, links and oddities of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.title = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("title", "script"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, text: str) -> None:
        if self._open == ["title"] and not self.title:
            self.title = text
        if "script" not in self._open:
            self.texts.append(text)


def standing(place: int | None, rating: float, **more: Any) -> Standing:
    values = {"player": f"p{place}", "name": f"Player {place}", **more}
    return Standing(place, rating=round(rating * MILLION), **values)


def html(pages: Any, language: str = "en") -> str:
    """The page in one language, out of those a function gives."""
    for page in pages:
        text = page.body.decode()
        if page.path.endswith(".html") and f'lang="{language}"' in text[:60]:
            return str(text)
    raise AssertionError(f"no page in {language}")


@pytest.fixture(scope="module")
def whole() -> dict[str, Page]:
    pages: dict[str, Page] = {}
    for page in fixture.whole_site(players=9):
        assert page.path not in pages, "written twice"
        pages[page.path] = page
    return pages


def test_same_input_same_bytes() -> None:
    first, second = ([*fixture.whole_site(players=9, few=True)] for _ in range(2))
    assert first == second


def test_every_link_leads_to_a_page(whole: dict[str, Page]) -> None:
    missing = set()
    for page in whole.values():
        if not page.path.endswith(".html"):
            continue
        for _tag, attributes in Reader(page.body.decode()).tags:
            for name in ("href", "src"):
                link = (attributes.get(name) or "").removeprefix(fixture.SITE.origin)
                if not link.startswith("/"):
                    continue
                key = link.removeprefix("/") + ("index.html" if link.endswith("/") else "")
                if key not in whole:
                    missing.add((page.path, link))
    # The invented world renders one game in nine of a club that a correction names; all else must be there.
    assert not {link for _, link in missing if "/games/bern/g0010/" not in link}


def test_no_inline_script_or_style_and_no_other_host(whole: dict[str, Page]) -> None:
    for page in whole.values():
        if not page.path.endswith(".html"):
            continue
        for tag, attributes in Reader(page.body.decode()).tags:
            assert tag not in ("style", "iframe", "object", "base"), page.path
            assert "style" not in attributes, page.path
            assert not [name for name in attributes if name.startswith("on")], (page.path, attributes)
            if tag == "script":
                assert attributes.get("src", "").startswith("/assets/") or attributes["type"] == "application/ld+json"  # type: ignore[union-attr]
            if tag in ("img", "script", "source"):
                assert not (attributes.get("src") or "").startswith(("http", "//"))


def test_styles_and_scripts_are_small() -> None:
    pages = {page.path: page for page in asset_pages()}
    for calculator in ("spades", "jass", "bridier"):
        loaded = [p for path, p in pages.items() if "/site." in path or f"calculator/{calculator}." in path]
        assert len(loaded) == 3
        assert sum(len(page.body) for page in loaded) < 30_000
    assert all(re.search(r"\.[0-9a-f]{10}\.(css|js|svg)$", path) for path in pages)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_page_of_a_hundred_is_small(number: int) -> None:
    """With all there can be on it: long names and handles, everybody moved, games being played, four languages."""
    world = fixture.worlds(20, awkward=False)[number]
    name, unit = "Hans-Peter von Siebenthal-Zumbrunn", MILLION if number < 2 else 1
    lines = [
        Standing(
            n, f"hans-peter-siebenthal-{n:03d}", name, 1500 * unit - n * unit // 10, 133, 1411, 700, 11, 700,
            fixture.NOW, {"skill": 0.31, "class": "established"}, n + 9, (1488 * unit, 150),
            inactive=n % 3 == 0, spark=tuple(1500 * unit - k * k * n * unit % 37 for k in range(13)),
        )
        for n in range(1, 101)
    ]  # fmt: skip
    people = {handle: Person(f"hans-peter-siebenthal-{handle}", name) for handle in world.by}
    games = [replace(world.game_line(game), people=people) for game in world.games[: stages.ASIDE]]
    pages = list(
        site.list_pages(SITE, world.pool, lines, 1, 1000, recent=games, live=games, variants=("new", "established"))
    )
    sizes = [len(page.body) for page in pages if page.path.endswith("index.html")]
    assert len(sizes) == 4
    assert max(sizes) < 60_000
    crowd = [len(page.body) for page in fixture.crowd(100) if page.path.endswith("index.html")]
    assert max(crowd) < 50_000, "and more usual ones"


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_literal_text_everywhere(name: str) -> None:
    line = standing(1, 1500, name=name)
    pool = replace(POOL, name=name)
    page = PlayerPage(line, clubs=(("bern", name),), series=((0, 1500 * MILLION, 0), (9 * 10**12, 1510 * MILLION, 0)))
    for made in site.player_pages(SITE, pool, page):
        text = made.body.decode()
        if made.path.endswith(".html"):
            read = Reader(text)
            assert read.title.startswith(name)
            assert name in read.texts
            assert not [tag for tag, _ in read.tags if tag == "img"]
            linked = json.loads(re.search(r'ld\+json">(.*?)</script>', text, re.S).group(1))  # type: ignore[union-attr]
            assert linked["name"] == name
            chart = re.search(r"<svg class=\"chart\".*?</svg>", text, re.S)
            assert chart is not None
            assert name in (ElementTree.fromstring(chart.group(0)).findtext("title") or "")
        elif made.path.endswith(".json"):
            assert json.loads(text)["name"] == name
        else:
            assert ElementTree.fromstring(text).findtext("{http://www.w3.org/2005/Atom}title") == f"{name} – {name}"
    for made in site.list_pages(SITE, pool, [line]):
        if made.path.endswith(".html"):
            assert Reader(made.body.decode()).texts.count(name) >= 3


def test_the_first_language_has_no_prefix() -> None:
    paths = [page.path for page in site.list_pages(SITE, POOL, [standing(1, 1500)], 2, 3)]
    assert paths == ["tuesday/page/2/standings.json", "tuesday/page/2/index.html", "en/tuesday/page/2/index.html"]
    assert b'<html lang="de">' in list(site.list_pages(SITE, POOL, []))[1].body


def test_ties_share_a_place_and_alike_ratings_are_told_apart() -> None:
    lines = [standing(1, 1600.2), standing(2, 1550.5), standing(2, 1550.5), standing(4, 1550.6), standing(5, 1499.5)]
    lines = [replace_struct(line, player=f"q{n}") for n, line in enumerate(lines)]
    text = html(site.list_pages(SITE, POOL, lines))
    ratings = re.findall(r'<td class="r[ d]*">(.*?)</td>', text)
    assert [re.sub("<.*?>", "", rating) for rating in ratings] == ["1600", "1550.5", "1550.5", "1550.6", "1500"]
    assert re.findall(r"<tr><td>(\d+)</td>", text) == ["1", "2", "2", "4", "5"]


def test_the_neighbour_on_the_next_page_counts() -> None:
    text = html(site.list_pages(SITE, POOL, [standing(1, 1500.2)], 1, 2, around=(None, standing(2, 1500.1))))
    assert "1500<small>.2</small>" in text


def test_movement_in_words_and_sign() -> None:
    pool = replace(POOL, last_closing=1_793_487_600_000_000)
    lines = [
        standing(1, 1512.4, previous_place=4, previous=(1500 * MILLION, 0)),
        standing(2, 1490, previous_place=1, previous=(1502 * MILLION, 0)),
        standing(3, 1400),
    ]
    english, german = (html(site.list_pages(SITE, pool, lines), code) for code in ("en", "de"))
    assert '<td class="m up">up 3 <b>+12</b></td>' in english
    assert '<td class="m down">down 1 <b>−12</b></td>' in english
    assert "Since 1 November" in english
    assert '<td class="m soft">new</td>' in english
    assert "3 vor" in german
    assert "Seit 1. November" in german


def test_what_did_not_change_does_not_name_the_publication() -> None:
    world = fixture.worlds(9)[1]
    later = replace(world.pool, publication="zz-other", published_at=1, results_up_to=2, position="9", state_hash="0")
    line = world.standings(world.states, None)[0]
    page, game = world.player_page(line), world.games[-1]
    for made in (site.player_pages, site.game_pages):
        argument: Any = page if made is site.player_pages else game
        assert list(made(SITE, world.pool, argument)) == list(made(SITE, later, argument))  # type: ignore[operator]
    assert "zz-other" in html(site.list_pages(SITE, later, [line]))


def test_a_win_that_loses_points_explains_itself() -> None:
    jass = rule_system("jass")
    settings = jass.settings_model()
    from shared.ratings.base import Game, Moment

    content = {"teams": [["a", "c"], ["b", "d"]], "striche": [4, 3], "winner": "team1"}
    game = Game("bern", "g1", 1, 0, 60 * MILLION, content=content)
    start = {"a": (180 * MILLION, 0), "c": (170 * MILLION, 0), "b": (90 * MILLION, 0), "d": (80 * MILLION, 0)}
    now = {h: jass.start(None, settings) for h in start}
    for handle, state in now.items():
        state.rating = start[handle][0]
    moment: Moment = jass.moments(game, settings)[-1]
    explained = jass.explain(game, moment, start, now, settings)
    changes = tuple(
        GameChange(o.player, "game", start[o.player], (o.rating, o.index), o.score, explained[o.player])
        for o in jass.rate(game, moment, start, now, settings)
    )
    assert changes[0].after[0] < changes[0].before[0]
    people = {h: Person(h, h.upper()) for h in start}
    view = GamePage("bern", "g1", "rated", 0, content, people, finished_at=60 * MILLION, changes=changes)
    pool = PoolView("schieber", "Schieber", "jass", "UTC", ("en",), ({"from": "2020-01-01"},), 0)
    text = html(site.game_pages(SITE, pool, view))
    assert "a favourite gains only when S is above E" in text
    assert text.count("<section") == 2, "partners whom the same words explain stand together"


def test_games_brought_along_make_the_record_add_up() -> None:
    line = standing(1, 1510, games=133, won=31, drawn=4, lost=34)
    assert "31 won, 4 drawn, 34 lost, 64 brought along" in html(site.player_pages(SITE, POOL, PlayerPage(line)))
    line = standing(1, 1510, games=69, won=31, drawn=4, lost=34)
    assert "brought along" not in html(site.player_pages(SITE, POOL, PlayerPage(line)))


def test_an_erased_player_has_no_link() -> None:
    gone = HistoryLine(0, "game", (1500 * MILLION, 0), (1510 * MILLION, 0), "bern", "g1", 1, opponents=(Person(None),))
    text = html(site.player_pages(SITE, POOL, PlayerPage(standing(1, 1510), history=(gone,))))
    assert "a former player" in text
    assert "/players/None/" not in text


def test_a_pool_without_games_renders(tmp_path: Path) -> None:
    for pages in (
        site.list_pages(SITE, POOL, []),
        site.index_pages(SITE, POOL, IndexPage()),
        site.changes_pages(SITE, POOL, ()),
        site.statistics_pages(SITE, POOL, StatisticsPage(())),
        site.month_pages(SITE, POOL, MonthPage("2026-11", "frozen", ())),
        site.label_pages(SITE, POOL, LabelPage("club", "bern", "Bern", ())),
        site.embed_pages(SITE, POOL, ()),
        site.home_pages(SITE),
    ):
        assert len(list(pages)) >= 2


def test_another_rule_system_needs_two_templates_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        """Whole points, nothing else; borrows the arithmetic of another system."""

        name = "fake"
        shown_decimals = 0
        has_closings = False
        settings_model = rule_system("spades").settings_model

        def __getattr__(self, name: str) -> Any:
            return getattr(rule_system("spades"), name)

    monkeypatch.setitem(_registered, "fake", Fake())
    (tmp_path / "rules").mkdir()
    (tmp_path / "calculator").mkdir()
    (tmp_path / "rules" / "fake.html").write_text(
        "{% macro name() %}Fake{% endmacro %}{% macro rules(s) %}Win.{% endmacro %}"
    )
    (tmp_path / "calculator" / "fake.html").write_text("<p>Two and two</p>")
    monkeypatch.setattr(site, "TEMPLATES", list(site.TEMPLATES))
    site.add_templates(str(tmp_path))
    world = fixture.World("fakes", "Fakes", "fake", {}, 6, 40, False)
    texts = {p.path: p.body.decode() for p in world.pages(few=True) if p.path.endswith(".html")}
    assert "Win." in texts["fakes/rules/index.html"]
    assert "Two and two" in texts["fakes/calculator/index.html"]
    assert "Fake" in texts["fakes/index.html"]


def test_no_python_of_the_site_names_a_rule_system() -> None:
    folder = Path(site.__file__).parent
    for file in folder.glob("*.py"):
        assert not re.search(r"\b(spades|jass|bridier)\b", file.read_text("utf-8"), re.I), file.name
    for file in (folder / "templates").glob("*.html"):
        assert not re.search(r"\b(spades|jass|bridier)\b", file.read_text("utf-8"), re.I), file.name


def test_pages_needed() -> None:
    assert [site.pages_needed(n) for n in (0, 1, 100, 101, 20_000)] == [1, 1, 1, 2, 200]


def test_the_list_page_links_its_data() -> None:
    text = html(site.list_pages(SITE, POOL, [standing(1, 1500)], 2, 3))
    assert 'href="/tuesday/page/2/standings.json"' in text
    assert data.standings_json(POOL, [], 2, 3).path == "tuesday/page/2/standings.json"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        *((status, "To be rated") for status in ("pending", "open")),
        *((status, "") for status in ("held", "void", "unrated")),
        ("rated", "Rated by"),
    ],
)
def test_only_what_is_rated_names_the_rules_it_is_rated_by(status: Any, said: str) -> None:
    people = {h: Person(h, h.upper()) for h in "abcd"}
    content = {"teams": [["a", "b"], ["c", "d"]], "outcome": "team1"}
    text = html(site.game_pages(SITE, POOL, GamePage("bern", "g1", status, 0, content, people, finished_at=1)))
    assert ("by the rules in force since 1 January 2020" in text) == bool(said)
    assert said in text


def test_a_start_is_no_gain() -> None:
    """Nor does it lift anybody into a tier, and it says itself that its date is when it was entered."""
    pool = PoolView("t", "T", "jass", "UTC", ("en",), ({"from": "2020-01-01"},), 0, bands=fixture.bands())
    start = HistoryLine(1_764_500_000_000_000, "start", (100 * MILLION, 0), (160 * MILLION, 0))
    text = html(site.player_pages(SITE, pool, PlayerPage(standing(1, 160), history=(start,))))
    (row,) = re.findall(r"<tr><td class=\"when\">.*?</tr>", text, re.S)
    told = [text for text in re.split("<.*?>", row) if text.strip()]
    assert told == ["Start", "Rating brought along, entered on 30 Nov 2025", "160"]


def test_players_listed_apart_in_a_month_have_a_heading_and_a_reason() -> None:
    pool = PoolView("duels", "Duels", "bridier", "UTC", ("en",), ({"from": "2020-01-01"},), 0)
    old = Standing(1, "a", "Anna", 600, 100, figures={"class": "established"})
    new = Standing(None, "b", "Beat", 700, 500, figures={"class": "new"}, apart="new")
    text = html(site.month_pages(SITE, pool, MonthPage("2026-10", "frozen", (old, new))))
    first, second = text.split("<h2>New players</h2>")
    assert "Anna" in first
    assert "Beat" not in first
    assert "Index above 495" in second
    assert "Beat" in second
    assert "still new" not in text
    everybody = (replace_struct(new, place=1, apart=""),)
    month = html(site.month_pages(SITE, pool, MonthPage("2026-10", "frozen", everybody)))
    today = html(site.list_pages(SITE, pool, everybody))
    for text in (month, today):
        assert "Everybody is still new" in text
        assert "<h2>New players" not in text


def test_settings_are_named_whole_and_only_when_set() -> None:
    entry = {"minimum_rank": 300, "maximum_index": 450}
    rules = ({"from": "2020-01-01"}, {"from": "2021-01-01", "entry": entry})
    pool = PoolView("d", "D", "bridier", "UTC", ("en",), rules, 0)
    newer, older = re.findall(r"<code>entry</code></th><td>(.*?)</td>", html(site.rules_pages(SITE, pool)))
    assert re.sub("<.*?>", "", newer) == "minimum_rank 300, maximum_index 450"
    assert older == "–"
    spades = html(site.rules_pages(SITE, POOL))
    shown = re.search(r"<code>eligibility</code></th><td>(.*?)</td>", spades)
    assert shown is not None
    assert re.sub("<.*?>", "", shown.group(1)).startswith("registered no, ")


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ("Pages", "Back", "On")),
        ("de", ("Seiten", "Zurück", "Weiter")),
        ("fr", ("Pages", "Précédente", "Suivante")),
        ("it", ("Pagine", "Indietro", "Avanti")),
    ],
)
def test_a_pager_leads_on_and_back_in_every_language(language: str, texts: tuple[str, ...]) -> None:
    name, back, on = texts
    turn = pager(words(language), 5, 9, lambda page: f"/p/page/{page}/?a&b")
    links = re.findall(r'<a href="([^"]*)"(?: rel="(\w+)")?>([^<]*)</a>', turn)
    assert f'aria-label="{name}"' in turn
    assert links[0] == ("/p/page/4/?a&amp;b", "prev", back)
    assert links[-1] == ("/p/page/6/?a&amp;b", "next", on)
    assert [text for _, rel, text in links if not rel] == ["1", "3", "4", "6", "7", "9"]
    assert turn.count("…") == 2
    assert '<b aria-current="page">5</b>' in turn
    assert pager(words(language), 1, 1, str) == ""


class Told:
    """A rule system's template with a figure that is a list."""

    list_figures = ({"key": "run"},)

    def figure(self, _: str, line: Standing) -> str:
        return "-".join(map(str, line.figures["run"]))


def test_a_further_figure_may_be_any_value_and_is_each_players_own() -> None:
    runs: list[list[Any]] = [[1, 2], [1, 2, 3], ["<b>"], [1, 2]]
    figures, to = Figures(POOL, words("en")), Addresses(POOL, "en")
    lines = Lines(figures, to, Told())
    players = [Standing(n, f"p{n}", f"P{n}", 1500 * MILLION - n, figures={"run": run}) for n, run in enumerate(runs, 1)]
    table = lines.of_list(players, movement=False).lines
    assert re.findall(r'<td class="w3">([^<]*)</td>', table) == ["1-2", "1-2-3", "&lt;b&gt;", "1-2"]


def test_the_best_ever_say_that_they_are_the_first() -> None:
    best = [BestEver(f"p{n}", f"P{n}", (1500 * MILLION - n, 0), fixture.NOW) for n in range(site.PAGE_SIZE)]
    few, many = (html(site.best_pages(SITE, POOL, told)) for told in (best[:-1], best))
    assert "best first</caption>" in few
    assert "best first, the first 100</caption>" in many


def test_a_long_history_leads_to_all_of_it() -> None:
    world = fixture.worlds(9)[0]
    page = world.player_page(world.standings(world.states, None)[0])
    made = (site.player_pages(SITE, world.pool, replace(page, history_total=len(page.history) + n)) for n in (0, 1))
    short, long = (html([one for one in pages if one.path.endswith(".html")]) for pages in made)
    address = f'<a href="{SITE.api_origin}/v1/pools/{world.pool.id}/players/{page.standing.player}">'
    assert address not in short
    assert address in long
