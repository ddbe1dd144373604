"""A rule system that nothing in the product knows of: one module, registered, and everything works on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.inprocess import System
from shared import ratings
from shared.ratings import _registered, register, system_names
from site_builder import site
from tests.elo import SYSTEM
from tests.integration.people_fixture import Ladder, at, fields

ROOT = Path(ratings.__file__).parents[2]


RULES_PAGE = """
{% macro name() %}Elo for two{% endmacro %}
{% macro rules(settings) %}<p>K is {{ settings.k }}.</p>{% endmacro %}
"""


@pytest.fixture
def ladder(system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ladder]:
    register(SYSTEM)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "elo.html").write_text(RULES_PAGE)
    monkeypatch.setattr(site, "TEMPLATES", list(site.TEMPLATES))
    site.add_templates(str(tmp_path))
    made = Ladder(system)
    made.pool("chess", "elo", {"from": "2020-01-01"}, {"from": "2024-03-03", "k": 40})
    made.players("anna bob cy")
    yield made
    _registered.pop("elo")
    site._environment.cache_clear()


def board(white: str, black: str, score: float) -> dict[str, Any]:
    return {"white": white, "black": black, "score": score}


def test_from_the_pool_to_the_published_list(ladder: Ladder) -> None:
    ladder.start("chess", "cy", rating=1200)
    ladder.send("chess", "g1", board("anna", "bob", 1), at(1))
    ladder.send("chess", "g2", board("bob", "cy", 0.5), at(3))
    ladder.open("chess", "live", {"white": "anna", "black": "cy"}, at(4, 19))
    ladder.rate()
    done = {"reason": "over", "finished_at": at(4), "result": board("anna", "cy", 0)}
    ladder.put("/v1/pools/chess/games/live", done, revision=1, status=200)
    ladder.system.settle()
    gained = 40 * (0.5 - 1 / (1 + 10 ** ((1200 - 990) / 400)))
    lost = 40 / (1 + 10 ** ((1200 - gained - 1010) / 400))
    assert ladder.rating("chess", "bob") == pytest.approx(990 + gained, abs=1e-6)
    assert ladder.rating("chess", "anna") == pytest.approx(1010 - lost, abs=1e-6)
    game = ladder.get("/v1/pools/chess/games/g1")
    assert game["result"] == board("anna", "bob", 1.0)
    assert [c["change"] for c in game["changes"]] == [{"rating": 10.0}, {"rating": -10.0}]
    assert game["changes"][0]["explanation"]["expected"] == 0.5
    shown = ladder.get("/v1/pools/chess/players/anna")
    assert [line["game"] for line in shown["history"]] == ["bern:live", "bern:g1"]
    assert shown["record"] == {"games": 2, "won": 1, "drawn": 0, "lost": 1}
    standings = ladder.get("/v1/pools/chess/standings")["standings"]
    assert [row["player"] for row in standings] == ["cy", "bob", "anna"]
    assert ladder.hash("chess") == ladder.rebuilt("chess")
    for path in ("/chess/", "/chess/players/anna/", "/chess/games/bern/g1/", "/chess/rules/", "/chess/standings.json"):
        status, _, body = ladder.system.page(path)
        assert (status, b"anna" in body.lower() or "rules" in path) == (200, True), path


def test_late_results_corrections_voids_and_new_rules(ladder: Ladder) -> None:
    ladder.send("chess", "g2", board("bob", "cy", 0.5), at(3))
    ladder.rate()
    ladder.send("chess", "g1", board("anna", "bob", 1), at(1))
    ladder.rate()
    correction = {"reason": "draw", "result": board("anna", "bob", 0.5)}
    ladder.put("/v1/pools/chess/games/g1", correction, revision=1, status=200)
    ladder.post("/v1/pools/chess/games/g2/void", {"reason": "x"}, status=200)
    assert ladder.rating("chess", "anna") == 1000
    ladder.put("/v1/pools/chess/games/g1", {"reason": "no", "result": board("anna", "bob", 1)}, revision=2, status=200)
    ladder.pool("chess", "elo", {"from": "2020-01-01", "k": 30})
    assert ladder.rating("chess", "anna") == 1015
    assert ladder.hash("chess") == ladder.rebuilt("chess")


def test_refusals(ladder: Ladder) -> None:
    body = ladder.send("chess", "g", board("anna", "anna", 1), at(1), status=422)
    assert fields(body) == [("result.black", "player-twice")]
    body = ladder.send("chess", "g", {"white": "anna", "black": "nobody", "score": 0.3}, at(1), status=422)
    assert fields(body) == [("result.score", "multiple-of"), ("result.black", "unknown-player")]
    assert fields(ladder.get("/v1/pools/chess/players/anna/opponents", 422)) == [("pool", "no-stakes")]
    assert fields(ladder.get("/v1/pools/chess/calibration", 422)) == [("pool", "no-calibration")]
    answer = ladder.put("/v1/pools/chess/players/anna", {"rank_me": False}, status=422)
    assert fields(answer) == [("rank_me", "no-rank-me")]
    bad = {
        "name": "P",
        "system": "elo",
        "time_zone": "UTC",
        "languages": ["en"],
        "rules": [{"from": "2020-01-01", "k": 0}],
    }
    assert fields(ladder.system.admin("PUT", "/v1/pools/bad", bad).body) == [("rules[0].k", "greater-than-equal")]


def test_quotes_previews_merges_and_erasure(ladder: Ladder) -> None:
    ladder.send("chess", "g1", board("anna", "bob", 1), at(1))
    ladder.rate()
    line_up = {"white": "anna", "black": "bob"}
    quoted = ladder.post("/v1/pools/chess/quote", line_up, status=200)["outcomes"]
    assert [o["outcome"] for o in quoted] == ["white", "draw", "black"]
    body = {"finished_at": at(5), "result": board("anna", "bob", 0)}  # by the newest rules, as a quote is
    effects = ladder.post("/v1/pools/chess/games?preview=true", body, status=200)["effects"]
    assert {r["player"]: r["after"] for r in effects["players"]} == {
        p["player"]: p["after"] for p in quoted[2]["players"]
    }
    assert ladder.system.admin("POST", "/v1/players/cy/merge", {"into": "anna"}).status == 202
    assert ladder.system.request("DELETE", "/v1/players/bob", key=ladder.key).status == 202
    ladder.system.settle()
    assert ladder.rating("chess", "cy") == 1010
    assert ladder.hash("chess") == ladder.rebuilt("chess")


def test_a_file_for_it_is_refused_and_not_an_error(ladder: Ladder) -> None:
    answer = ladder.system.request(
        "POST",
        "/v1/pools/chess/imports?mode=strict&filename=games.csv",
        body=b"date,player1,player2,winner\n2024-03-01,anna,bob,1\n",
        key=ladder.key,
        headers={"content-type": "application/octet-stream"},
    )
    assert answer.status == 422, answer.body
    assert fields(answer.body) == [("pool", "no-imports")]


def test_it_is_one_of_them_only_while_registered(ladder: Ladder) -> None:
    assert system_names() == ["bridier", "elo", "jass", "spades"]


def test_nothing_else_names_a_rule_system() -> None:
    """A name in the code (not in its docstrings) outside the rule systems is a place that a fifth would have to know.

    Readers and writers of files have one table of columns per system; the site's words and calculators are per system
    by design and lie in files of theirs.
    """
    allowed = {Path("shared/imports"), Path("shared/ratings")}
    found = []
    for folder in ("shared", "functions"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if allowed & set(relative.parents):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and node.value in ("spades", "jass", "bridier"):
                    found.append(f"{relative}:{node.lineno}")
                if isinstance(node, ast.ImportFrom) and node.module in (
                    "shared.ratings.spades",
                    "shared.ratings.jass",
                    "shared.ratings.bridier",
                ):
                    found.append(f"{relative}:{node.lineno}")
    assert found == []
