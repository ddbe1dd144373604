"""The files beside the pages, and the numbers of the statistics page."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.imports import text as imports
from site_builder import charts, data, picture, statistics
from site_builder.views import HistoryLine, MonthPage, Person, PlayerPage, PoolView, SiteView, Standing

SITE = SiteView("https://ratings.example", "https://api.example")
POOL = PoolView(
    "duels",
    "Duels",
    "bridier",
    "UTC",
    ("en",),
    ({"from": "2020-01-01"},),
    0,
    publication="p7",
    published_at=0,
    results_up_to=60_000_000,
    position="12",
    state_hash="ab",
)
LINE = Standing(
    1, "a", "=cmd|'/c calc'!A1", 562, 411, 3, 2, 0, 1, 60_000_000, {"class": "settling"}, 2, (520, 453)
)  # fmt: skip
SPACE = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}


def test_standings_json() -> None:
    page = data.standings_json(POOL, [LINE], 1, 2)
    assert page.path == "duels/standings.json"
    assert json.loads(page.body) == {
        "pool": "duels",
        "publication": "p7",
        "published_at": "1970-01-01T00:00:00Z",
        "results_up_to": "1970-01-01T00:01:00Z",
        "page": 1,
        "pages": 2,
        "standings": [
            {
                "place": 1,
                "player": "a",
                "name": "=cmd|'/c calc'!A1",
                "rating": {"rank": 562, "index": 411},
                "record": {"games": 3, "won": 2, "drawn": 0, "lost": 1},
                "last_played": "1970-01-01T00:01:00Z",
                "class": "settling",
                "previous": {"place": 2, "rating": {"rank": 520, "index": 453}},
            }
        ],
        "next": "/duels/page/2/standings.json",
    }
    assert json.loads(data.standings_json(POOL, [], 2, 2).body)["next"] is None
    assert data.standings_json(POOL, [], 2, 2, "new").path == "duels/new/page/2/standings.json"


def test_month_and_player_and_publication_json() -> None:
    month = MonthPage("2026-11", "frozen", (LINE,))
    page = data.month_json(POOL, month)
    assert page.path == "duels/lists/2026-11/standings.json"
    assert {k: json.loads(page.body)[k] for k in ("pool", "month", "kind")} == {
        "pool": "duels",
        "month": "2026-11",
        "kind": "frozen",
    }
    history = (HistoryLine(0, "game", (520, 453), (562, 411), "bern", "g1", 1, {"lines": []}),)
    player = json.loads(data.player_json(POOL, PlayerPage(LINE, history=history)).body)
    assert player["history"] == [
        {
            "at": "1970-01-01T00:00:00Z",
            "kind": "game",
            "game": "bern:g1",
            "before": {"rank": 520, "index": 453},
            "after": {"rank": 562, "index": 411},
            "change": {"rank": 42, "index": -42},
            "explanation": {"lines": []},
        }
    ]
    assert "place" not in player, "another's game would change it"
    assert json.loads(data.publication_json(POOL, 4).body) == {
        "publication": "p7",
        "published_at": "1970-01-01T00:00:00Z",
        "results_up_to": "1970-01-01T00:01:00Z",
        "position": "12",
        "state_hash": "ab",
        "pages": 4,
    }
    assert json.loads(data.site_json(SITE).body)["api"] == "https://api.example"


def test_csv_cells_are_harmless_and_come_back() -> None:
    page = data.standings_csv(POOL, [LINE])
    rows = list(csv.DictReader(io.StringIO(page.body.decode(), newline="")))
    assert rows[0]["name"] == "'=cmd|'/c calc'!A1"
    assert imports.restore(rows[0]["name"]) == LINE.name
    assert (rows[0]["rank"], rows[0]["index"], rows[0]["place"]) == ("562", "411", "1")
    assert data.month_csv(POOL, MonthPage("2026-11", "frozen", (LINE,))).path == "duels/lists/2026-11/standings.csv"


@settings(deadline=None)
@given(st.text(max_size=12))
def test_neutralised_as_the_import_expects(cell: str) -> None:
    assert data.neutralise(cell) == imports.neutralise(cell)
    assert imports.restore(data.neutralise(cell)) == cell
    assert not data.neutralise(cell).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_sitemap_is_split() -> None:
    (one,) = data.pool_sitemaps(SITE, "duels", ["/a&b/"])
    assert ElementTree.fromstring(one.body).findtext("s:url/s:loc", namespaces=SPACE) == "https://ratings.example/a&b/"
    pages = [*data.pool_sitemaps(SITE, "duels", (f"/{n}/" for n in range(50_001)))]
    assert [page.path for page in pages] == ["duels/sitemap.xml", "duels/sitemap-2.xml"]
    assert [len(ElementTree.fromstring(page.body)) for page in pages] == [50_000, 1]
    assert data.sitemaps_needed(50_000) == 1
    index = data.sitemap_index(SITE, {"duels": data.sitemaps_needed(50_001), "empty": 0})
    found = [entry.text for entry in ElementTree.fromstring(index.body).iterfind("s:sitemap/s:loc", SPACE)]
    assert found == [f"https://ratings.example/{page.path}" for page in pages]


def test_search_files() -> None:
    people = [Person("p1", "Ösgür Łukasz"), Person("x2", "محمد")]
    shards = {page.path: json.loads(page.body) for page in data.search_pages(POOL, people)}
    assert shards == {
        "duels/search/l.json": [["p1", "Ösgür Łukasz"]],
        "duels/search/o.json": [["p1", "Ösgür Łukasz"]],
        "duels/search/p.json": [["p1", "Ösgür Łukasz"]],
        "duels/search/x.json": [["x2", "محمد"]],
        "duels/search/other.json": [["x2", "محمد"]],
    }


# -- statistics ----------------------------------------------------------------------------------------------------


def test_log_loss_and_brier_by_hand() -> None:
    scores = [(0.8, 1.0), (0.6, 0.0), (0.5, 0.5)]
    assert statistics.log_loss(scores) == pytest.approx((-math.log(0.8) - math.log(0.4) + math.log(2)) / 3)
    assert statistics.brier(scores) == pytest.approx((0.04 + 0.36) / 3)
    found = statistics.honesty(scores)
    assert found is not None
    assert found.coin_log_loss == pytest.approx(math.log(2))
    assert found.coin_brier == pytest.approx((0.25 + 0.25) / 3)
    assert statistics.honesty([]) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=60))
def test_every_game_is_in_one_bin(scores: list[tuple[float, float]]) -> None:
    bins = statistics.calibration(scores)
    assert sum(b.count for b in bins) == len(scores)
    assert all(b.lower - 1e-9 <= b.expected <= b.upper + 1e-9 for b in bins)
    assert math.isfinite(statistics.log_loss(scores))


@settings(deadline=None)
@given(st.lists(st.integers(-300_000_000, 3_000_000_000), max_size=50))
def test_every_player_is_in_the_distribution(ratings: list[int]) -> None:
    spread = statistics.distribution(ratings, 1_000_000)
    assert sum(count for _, count in spread) == len(ratings)
    assert len(spread) <= 30
    assert [low for low, _ in spread] == sorted({low for low, _ in spread})


# -- charts --------------------------------------------------------------------------------------------------------


def test_sparkline() -> None:
    assert charts.sparkline([5]) == ""
    assert charts.sparkline([1, 1]) == "M0 8l60 0"
    assert charts.sparkline([0, 10, 5]) == "M0 14l30-12 30 6"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**17), st.integers(-(10**9), 10**9)), min_size=2, max_size=900))
def test_a_chart_stays_inside_its_frame(points: list[tuple[int, int]]) -> None:
    series = sorted(points)
    thin = charts.thin_out(series)
    assert len(thin) <= max(charts.MOST_POINTS, 4) + 4
    values = [v for _, v in series]
    assert min(values) == min(v for _, v in thin)
    assert max(values) == max(v for _, v in thin)
    chart = charts.line_chart(series[:200], 1_000_000, "UTC", ["m"] * 12)
    assert chart is not None
    assert charts.LEFT <= chart.last[0] <= chart.right
    assert chart.top <= chart.last[1] <= chart.bottom
    assert all(charts.TOP <= tick.at <= chart.bottom for tick in chart.y)


@settings(deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.sampled_from([1, 1_000_000]))
def test_grid_lines_hold_the_values(low: int, span: int, unit: int) -> None:
    grid = charts.steps(low, low + span, unit)
    assert grid[0] <= low
    assert grid[-1] >= low + span
    assert 2 <= len(grid) <= 7
    assert all(value % unit == 0 for value in grid)


# -- pictures ------------------------------------------------------------------------------------------------------


def test_pictures_are_small_pngs_of_the_right_size() -> None:
    for body in (
        picture.of_player("1536", [(n, n * n % 97) for n in range(50)], 3),
        picture.of_player("562/411", [], 9),
        picture.of_player("−12", [(0, 5), (0, 5)], 0),
        picture.of_pool([1, 0, 5], 2),
        picture.of_pool([], 2),
    ):
        assert body.startswith(b"\x89PNG\r\n\x1a\n")
        assert body[16:24] == (600).to_bytes(4, "big") + (315).to_bytes(4, "big")
        assert len(body) < 6_000
        start = body.index(b"IDAT")
        length = int.from_bytes(body[start - 4 : start], "big")
        assert len(zlib.decompress(body[start + 4 : start + 4 + length])) == 315 * 601


def test_pictures_have_the_colours_of_the_pages() -> None:
    css = (Path(picture.__file__).parent / "assets" / "site.css").read_text("utf-8").split("@media")[0]
    assert tuple(re.findall(r"--accent:#([0-9a-f]{6})", css)) == picture.ACCENTS


def test_a_chart_of_months_names_the_years() -> None:
    months = [(f"{2019 + n // 12}-{n % 12 + 1:02d}", n) for n in range(4, 40)]
    drawn, _ = charts.bars(months, first=2019 * 12 + 4)
    ticks = [bar.label for bar in drawn if bar.tick]
    assert ticks == ["2019-07", "2020-01", "2020-07", "2021-01", "2021-07", "2022-01"]
