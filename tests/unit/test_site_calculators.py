"""The calculators' scripts, number by number against the rule systems."""

# ruff: noqa: E501 - cases in a row

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

from shared.ratings import rule_system
from shared.ratings.base import MILLION, Game, PlayerState

ASSETS = Path(__file__).parents[2] / "site_builder" / "assets" / "calculator"
NODE = shutil.which("node")


def run(tmp_path: Path, system: str, expression: str, cases: list[Any]) -> list[Any]:
    """What the script answers to each case."""
    module = tmp_path / "calculator.mjs"
    module.write_bytes((ASSETS / f"{system}.js").read_bytes())
    code = (
        f"import * as c from {json.dumps(str(module))};"
        "let text='';process.stdin.on('data',d=>text+=d).on('end',()=>"
        f"console.log(JSON.stringify(JSON.parse(text).map(({expression})))));"
    )
    assert NODE is not None, "node is not installed (apt-get install nodejs)"
    answer = subprocess.run(
        [NODE, "--input-type=module", "-e", code], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    return list(json.loads(answer.stdout))


def ours(
    system: str, settings: Any, content: dict[str, Any], start: dict[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    rules = rule_system(system)
    game = Game("c", "g", 1, 0, MILLION, content=content)
    now = {player: PlayerState(*rating) for player, rating in start.items()}
    moment = rules.moments(game, settings)[-1]
    return {o.player: (o.rating, o.index) for o in rules.rate(game, moment, start, now, settings)}


def test_spades(tmp_path: Path) -> None:
    rng = random.Random(1)
    cases = [
        {
            "teams": [[rng.randrange(900, 2200) + rng.randrange(10) / 10 for _ in "ac"], [rng.randrange(900, 2200) for _ in "bd"]],
            "score": rng.choice([1, 0.5, 0]),
            "k": rng.choice([25, 30, 50, 12.5]),
            "opposition": rng.choice(["team_average", "pairwise"]),
        }
        for _ in range(300)
    ]  # fmt: skip
    cases.append({"teams": [[1512, 1484], [1562, 1417]], "score": 1, "k": 25, "opposition": "team_average"})
    answers = run(tmp_path, "spades", "q=>c.rate(q.teams,q.score,q.k,q.opposition)", cases)
    for case, answer in zip(cases, answers, strict=True):
        settings = rule_system("spades").settings_model.model_validate(
            {"k": case["k"], "opposition": case["opposition"]}
        )
        seats = ["a", "c", "b", "d"]
        flat = [*case["teams"][0], *case["teams"][1]]
        start = {p: (round(r * MILLION), 0) for p, r in zip(seats, flat, strict=True)}
        outcome = {1: "team1", 0.5: "draw", 0: "team2"}[case["score"]]
        new = ours("spades", settings, {"teams": [["a", "c"], ["b", "d"]], "outcome": outcome}, start)
        got = [round(player["after"] * MILLION) for team in answer for player in team]
        assert got == [new[p][0] for p in seats], case
    assert answers[-1][0][0]["after"] == 1536.388498


def test_jass(tmp_path: Path) -> None:
    rng = random.Random(2)
    cases: list[Any] = []
    for _ in range(300):
        points = rng.random() < 0.3
        cases.append(
            {
                "teams": [[rng.randrange(40, 180) for _ in "ac"], [rng.randrange(40, 180) for _ in "bd"]],
                "scored": [2500, rng.randrange(2500)] if points else rng.choice([[3, 0], [2, 1], [3, 3], [1, 4], [9, 0], [0, 7]]),
                "settings": {"measure": "points", "target_points": 2500, "k": 32} if points else {"measure": "striche", "k": rng.choice([32, 20.5])},
            }
        )  # fmt: skip
    answers = run(tmp_path, "jass", "q=>c.rate(q.teams,q.scored,q.settings)", cases)
    for case, answer in zip(cases, answers, strict=True):
        settings = rule_system("jass").settings_model.model_validate(case["settings"])
        seats = ["a", "c", "b", "d"]
        start = {p: (r * MILLION, 0) for p, r in zip(seats, [*case["teams"][0], *case["teams"][1]], strict=True)}
        key = case["settings"]["measure"]
        new = ours("jass", settings, {"teams": [["a", "c"], ["b", "d"]], key: case["scored"]}, start)
        got = [round(rating * MILLION) for team in answer["after"] for rating in team]
        assert got == [new[p][0] for p in seats], case


def test_bridier(tmp_path: Path) -> None:
    rng = random.Random(3)
    cases = [[[rng.randrange(100, 900), rng.randrange(100, 501)] for _ in "ab"] for _ in range(500)]
    cases += [[[520, 453], [648, 131]], [[600, 130], [650, 100]], [[101, 500], [104, 500]], [[500, 500], [500, 500]]]
    answers = run(tmp_path, "bridier", "q=>c.beat(q[0],q[1])", cases)
    settings = rule_system("bridier").settings_model()
    for (one, two), answer in zip(cases, answers, strict=True):
        start = {"a": (one[0], one[1]), "b": (two[0], two[1])}
        new = ours("bridier", settings, {"players": ["a", "b"], "winner": "a"}, start)
        assert (tuple(answer["winner"]), tuple(answer["loser"])) == (new["a"], new["b"]), (one, two)
