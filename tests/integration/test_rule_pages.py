"""What the rules page and the game page say in words, in four languages, with the pool's own numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local.inprocess import System
from tests.integration.people_fixture import ZONE, Ladder, at

SETTINGS: dict[str, list[tuple[dict[str, Any], list[str]]]] = {
    "spades": [
        (
            {
                "k": {"first": 51, "up_to_games": 37, "then": 31},
                "opposition": "pairwise",
                "quit_ban_minutes": 241,
                "opt_out_ban_days": 19,
                "grace_minutes": 11,
                "hide_after_days": 83,
                "minimum_games": 13,
                "eligibility": {
                    "registered": True,
                    "minimum_regular_games": 29,
                    "rank_me": True,
                    "no_robots_at_start": True,
                },
            },
            # 31 × (2 − 1.0619445826627862)
            ["51", "37", "31", "241", "19", "11", "83", "13", "29", "1.062", "29.080"],
        ),
        ({"k": 25}, ["0.512", "24.388"]),  # the rules page's own example: 1512 becomes 1536.388
    ],
    "jass": [
        ({"k": 28, "schneider": 1, "kontermatsch": 2}, ["28", "3.000"]),  # 28 × 3 / 28, half of the team's change
        ({"measure": "points", "target_points": 1256}, ["1256"]),
    ],
    "bridier": [
        (
            {
                "ruin_penalty": 7,
                "alliance_average": True,
                "fair_alliances": True,
                "new_above_index": 487,
                "entry": {
                    "minimum_rank": 211,
                    "maximum_rank": 911,
                    "minimum_index": 123,
                    "maximum_index": 477,
                    "minimum_gain": 6,
                    "maximum_loss": 33,
                },
            },
            ["7", "487", "211", "911", "123", "477", "6", "33"],
        )
    ],
}


def words_of(system: System, path: str) -> str:
    """The text of a page up to its table of raw settings, numbers as in English."""
    status, _, body = system.page(path)
    assert status == 200, path
    main = body.decode().split("<main")[1].split("<h3>")[0]
    text = re.sub(r"<[^>]+>", " ", main).replace("\u202f", "").replace("’", "").replace("\u00a0", "")
    return re.sub(r"(?<=\d)[,.](?=\d)", ".", text)


@pytest.mark.parametrize("rules", list(SETTINGS))
def test_rules_pages_tell_every_setting(system: System, rules: str) -> None:
    for number, (settings, _) in enumerate(SETTINGS[rules]):
        body = {
            "name": "P",
            "system": rules,
            "time_zone": ZONE,
            "languages": ["en", "de", "fr", "it"],
            "rules": [{"from": "2020-01-01", **settings}],
        }
        assert system.admin("PUT", f"/v1/pools/p{number}", body).status == 201
    system.settle()
    for number, (_, numbers) in enumerate(SETTINGS[rules]):
        for language in ("", "/de", "/fr", "/it"):
            told = re.findall(r"\d+(?:\.\d+)?", words_of(system, f"{language}/p{number}/rules/"))
            assert set(numbers) <= set(told), (language, number, set(numbers) - set(told))


def test_what_is_off_is_not_told(system: System) -> None:
    ladder = Ladder(system)
    ladder.pool("cards", "spades")
    ladder.pool("duels", "bridier")
    system.settle()
    assert "Who may play rated games" not in words_of(system, "/cards/rules/")
    text = words_of(system, "/duels/rules/")
    assert "Who may meet whom" not in text
    assert "same size" not in text


def test_a_ruin_is_told_with_its_number_and_the_floor(system: System) -> None:
    ladder = Ladder(system)
    ladder.pool("duels", "bridier", ruin_penalty=7)
    ladder.players("anna bob cy")
    ladder.start("duels", "cy", rank=111, index=100, last_result_on="2024-02-20")
    for day in (1, 2):
        result = {"players": ["anna", "bob", "cy"], "ruins": [{"player": "cy", "by": None}]}
        ladder.send("duels", f"g{day}", result, at(day))
    system.settle()
    first, second = (words_of(system, f"/duels/games/bern/g{day}/") for day in (1, 2))
    text = system.page("/duels/games/bern/g2/")[2].decode()
    assert "104 / 100" in first
    assert "100 / 100" in second
    assert "Ruin number 2: 2 × 7 = 14 points of rank besides, the index stays. Rank −4, index ±0." in text
    assert "A rank does not fall below 100" in text
