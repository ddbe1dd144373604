"""The main job over real HTTP: pools of the three systems, games in shuffled order, ratings, pages, a month frozen.

What comes out is compared with ``reference.py``, which shares no code with the project. The duels are every fourth one
of a real forum where ``../shared/data`` has them (the fold's own test takes them all).
"""

from __future__ import annotations

import datetime as dt
import html
import random
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from local import demo, generator
from local.generator import PoolPlan
from local.testing import ServedProcess
from tests.system import reference
from tests.system.reference import Numbers, Reference, moment

Json = dict[str, Any]
POOLS = ["j-schieber", "j-spades", "j-forum"]
EVIL = "<script>alert('jass')</script> & Söhne"
LATE = 7
"""The game of this number (of the Schieber pool) is kept back and sent after the month is frozen."""


@dataclass
class Journey:
    """What was sent, and what should come of it."""

    served: ServedProcess
    plans: dict[str, PoolPlan]
    keys: dict[str, str]
    late: tuple[str, Json]
    now: dt.datetime
    closing: dt.datetime
    """The next one: fired ahead of its time."""

    def expected(self, pool: str, until: dt.datetime, *, late: bool = False) -> Reference:
        """The pool by the reference."""
        plan = self.plans[pool]
        games = [*plan.games, self.late] if late else list(plan.games)
        return reference.calculate(plan.body, games, plan.starts, until)

    def player(self, pool: str, player: str) -> tuple[Json, list[Json]]:
        """A player as the API tells, with his whole history, oldest line first."""
        body = self.served.request("GET", f"/v1/pools/{pool}/players/{player}").body
        lines, following = list(body["history"]), body["next"]
        while following:
            more = self.served.request("GET", f"/v1/pools/{pool}/players/{player}?cursor={following}").body
            lines, following = lines + more["history"], more["next"]
        return body, lines[::-1]


def numbers(rating: Mapping[str, Any]) -> Numbers:
    """A rating of the API as whole numbers."""
    if "rank" in rating:
        return rating["rank"], rating["index"]
    return round(rating["rating"] * reference.MILLION), 0


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value with every text that is a player's id replaced."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list | tuple):
        return [_renamed(v, names) for v in value]
    return {k: _renamed(v, names) for k, v in value.items()} if isinstance(value, dict) else value


def _own(plan: PoolPlan, every: int) -> PoolPlan:
    """A pool of this test's own: other tests share the system, so clubs, players and pool get names of ours."""
    names = {player.id: f"j-{player.id}" for player in plan.players}
    players = tuple(
        generator.PlayerPlan(names[p.id], EVIL if number == 1 else p.name, f"j-{p.club}", p.registered_on)
        for number, p in enumerate(plan.players)
    )
    games = tuple((f"j-{c}", {**body, "result": _renamed(body["result"], names)}) for c, body in plan.games[::every])
    body = {**plan.body, "clubs": [f"j-{club}" for club in plan.body["clubs"]]}
    starts = {names[player]: start for player, start in plan.starts.items()}
    return PoolPlan(f"j-{plan.id}", body, players, games, starts)


def _plans() -> dict[str, PoolPlan]:
    until = dt.datetime.now(dt.UTC).date() - dt.timedelta(2)
    real = demo.REAL_DUELS.exists()
    duels = demo.real_duels(demo.REAL_DUELS) if real else generator.generate_duels(21, until, 400)
    schieber, spades = generator.generate(21, until).pools
    plans = [_own(schieber, 10), _own(spades, 6), _own(duels.pools[0], 4)]
    first = plans[2].games[0][1]["started_at"][:10]
    day = (dt.date.fromisoformat(first) - dt.timedelta(40)).isoformat()
    starts = {
        plans[2].players[2].id: {"rank": 540, "index": 320, "last_result_on": day},
        plans[2].players[5].id: {"rank": 480, "index": 500},
    }
    plans[2] = PoolPlan(plans[2].id, plans[2].body, plans[2].players, plans[2].games, starts)
    return {plan.id: plan for plan in plans}


@pytest.fixture(scope="module")
def journey(served: ServedProcess) -> Journey:
    """Everything sent in shuffled order, rated and published."""
    plans = _plans()
    schieber = plans["j-schieber"]
    late = schieber.games[LATE]
    plans["j-schieber"] = PoolPlan(
        schieber.id,
        schieber.body,
        schieber.players,
        schieber.games[:LATE] + schieber.games[LATE + 1 :],
        schieber.starts,
    )
    keys: dict[str, str] = {}
    for plan in plans.values():
        for club in plan.body["clubs"]:
            assert served.admin("PUT", f"/v1/clubs/{club}", {"name": club}).status == 201
            made = served.admin("POST", f"/v1/clubs/{club}/keys", {"scopes": ["submit", "manage"]})
            keys[club] = made.body["key"]
        assert served.admin("PUT", f"/v1/pools/{plan.id}", plan.body).status == 201
        with ThreadPoolExecutor(4) as threads:
            answers = threads.map(
                lambda p: served.request("PUT", f"/v1/players/{p.id}", json=p.body, key=keys[p.club]), plan.players
            )
            assert {answer.status for answer in answers} == {201}
        for player, start in plan.starts.items():
            answer = served.admin("PUT", f"/v1/pools/{plan.id}/players/{player}", {"start": start})
            assert answer.status == 200, answer.body
    sent = [(plan.id, club, body) for plan in plans.values() for club, body in plan.games]
    random.Random(5).shuffle(sent)
    with ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(
                lambda g: served.request("POST", f"/v1/pools/{g[0]}/games", json=g[2], key=keys[g[1]]),
                sent,
            )
        )
    refused = [answer.body for answer in answers if answer.status != 201]
    assert refused == []
    served.settle()
    now = dt.datetime.now(dt.UTC)
    return Journey(served, plans, keys, late, now, _closing_after(now))


# -- as it stands now --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pool", POOLS)
def test_ratings_and_records_are_those_of_the_independent_calculation(journey: Journey, pool: str) -> None:
    expected = journey.expected(pool, journey.now)
    assert len(expected.players) > 10
    shown = {name: journey.player(pool, name)[0] for name in expected.players}
    assert {n: numbers(b["rating"]) for n, b in shown.items()} == {n: p.now for n, p in expected.players.items()}
    records = {n: (p.games, p.won, p.drawn, p.lost) for n, p in expected.players.items()}
    assert {n: tuple(b["record"][k] for k in ("games", "won", "drawn", "lost")) for n, b in shown.items()} == records
    about = journey.served.request("GET", f"/v1/pools/{pool}").body
    assert about["players"] == len(expected.players)
    assert about["games"] == sum(1 for _, body in journey.plans[pool].games if body.get("rated", True))
    assert (about["pending"], about["held"]) == (0, 0)


@pytest.mark.parametrize("pool", POOLS)
def test_histories_tell_every_change_and_add_up(journey: Journey, pool: str) -> None:
    expected = journey.expected(pool, journey.now)
    for name, player in expected.players.items():
        _, lines = journey.player(pool, name)
        told = [line for line in lines if line["kind"] != "start"]
        # A quitter's nils are counted at the end of his game: a line more, and no change.
        steps = [step for step, _ in groupby((line["game"] or "", numbers(line["after"])) for line in told)]
        wanted = [step for step, _ in groupby(zip(player.games_of_changes, player.values, strict=True))]
        assert steps == wanted
        for before, after in pairwise(lines):
            assert before["after"] == after["before"]
        assert all(line["explanation"] for line in told)


@pytest.mark.parametrize("pool", POOLS)
def test_games_show_the_change_of_each_player(journey: Journey, pool: str) -> None:
    expected = journey.expected(pool, journey.now)
    plan = journey.plans[pool]
    for club, body in plan.games[:: len(plan.games) // 25]:
        ref = f"{club}:{body['game_id']}"
        game = journey.served.request("GET", f"/v1/pools/{pool}/games/{ref}").body
        assert game["status"] == ("rated" if body.get("rated", True) else "unrated")
        found: dict[str, int] = {}
        for change in game["changes"]:
            moved = numbers(change["after"])[0] - numbers(change["before"])[0]
            found[change["player"]] = found.get(change["player"], 0) + moved
        assert found == expected.changes.get(ref, {})
        assert moment(game["started_at"]) == moment(body["started_at"])


def test_the_same_again_is_no_change_and_another_content_is_refused(journey: Journey) -> None:
    for pool, plan in journey.plans.items():
        before = journey.served.request("GET", f"/v1/pools/{pool}").body["state_hash"]
        club, body = plan.games[len(plan.games) // 2]
        again = journey.served.request("POST", f"/v1/pools/{pool}/games", json=body, key=journey.keys[club])
        assert (again.status, again.body["game_id"]) == (200, body["game_id"])
        other = {**body, "note": "another"}
        refused = journey.served.request("POST", f"/v1/pools/{pool}/games", json=other, key=journey.keys[club])
        assert refused.status == 409
        assert refused.body["existing"]["game_id"] == body["game_id"]
        journey.served.settle()
        assert journey.served.request("GET", f"/v1/pools/{pool}").body["state_hash"] == before


def test_shuffled_and_in_order_give_the_same_state_hash(journey: Journey) -> None:
    plan, served = journey.plans["j-schieber"], journey.served
    assert served.admin("PUT", "/v1/pools/j-in-order", {**plan.body, "name": "In order"}).status == 201
    for player, start in plan.starts.items():
        served.admin("PUT", f"/v1/pools/j-in-order/players/{player}", {"start": start})
    for club, body in plan.games:
        answer = served.request("POST", "/v1/pools/j-in-order/games", json=body, key=journey.keys[club])
        assert answer.status == 201
    served.settle()
    hashes = [served.request("GET", f"/v1/pools/{p}").body["state_hash"] for p in ("j-schieber", "j-in-order")]
    assert hashes[0] == hashes[1] != "0" * 64


# -- the site ----------------------------------------------------------------------------------------------------
def _page(served: ServedProcess, path: str) -> str:
    answer = served.request("GET", path)
    assert answer.status == 200, path
    assert answer.headers["content-type"].startswith("text/html")
    text: str = answer.body.decode()
    return text


@pytest.mark.parametrize("pool", POOLS)
def test_the_list_is_published_as_page_and_as_data(journey: Journey, pool: str) -> None:
    expected = journey.expected(pool, journey.now)
    published = journey.served.request("GET", f"/{pool}/standings.json").body
    rows = published["standings"]
    assert rows
    assert [numbers(r["rating"]) for r in rows] == [expected.players[r["player"]].now for r in rows]
    assert [r["place"] for r in rows] == sorted(r["place"] for r in rows)
    keys = [(-n[0], n[1]) for n in (numbers(r["rating"]) for r in rows)]
    assert keys == sorted(keys)
    names = {player.id: player.name for player in journey.plans[pool].players}
    page = _page(journey.served, f"/{pool}/")
    for row in rows:
        assert row["name"] == names[row["player"]]
        assert html.escape(row["name"]).replace("&#x27;", "&#39;") in page
        assert f"players/{row['player']}/" in page
    assert "<script>alert" not in page
    asked = journey.served.request("GET", f"/v1/pools/{pool}/standings").body
    assert asked["standings"] == [{k: v for k, v in row.items() if k != "previous"} for row in rows]
    position = journey.served.request("GET", f"/{pool}/publication.json").body
    about = journey.served.request("GET", f"/v1/pools/{pool}").body
    assert (position["position"], position["state_hash"]) == (about["position"], about["state_hash"])


@pytest.mark.parametrize("pool", POOLS)
def test_player_and_game_pages_stand_and_lead_to_each_other(journey: Journey, pool: str) -> None:
    plan = journey.plans[pool]
    for club, body in (plan.games[0], plan.games[-1]):
        page = _page(journey.served, f"/{pool}/games/{club}/{body['game_id']}/")
        teams = body["result"].get("teams") or [body["result"]["players"]]
        for player in {p for team in teams for p in team}:
            assert f"/{pool}/players/{player}/" in page
            found = _page(journey.served, f"/{pool}/players/{player}/")
            if body is plan.games[-1][1]:  # a page shows the newest games
                assert f"/games/{club}/{body['game_id']}/" in found
    evil = next(player.id for player in plan.players if player.name == EVIL)
    page = _page(journey.served, f"/{pool}/players/{evil}/")
    assert "<script>alert" not in page
    assert "<svg" in page


@pytest.mark.parametrize("pool", POOLS)
def test_no_link_of_a_list_leads_nowhere(journey: Journey, pool: str) -> None:
    page = _page(journey.served, f"/{pool}/")
    links = {link for link in re.findall(r'(?:href|src)="(/[^"#?]*)', page) if not link.startswith("//")}
    assert len(links) > 10
    broken = [link for link in sorted(links) if journey.served.request("GET", link).status != 200]
    assert broken == []


# -- the month closes --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def closed(journey: Journey) -> Journey:
    """The schedule `closing` has fired as of the next month's first day, twice."""
    answer = journey.served.schedule("closing", journey.closing.isoformat())
    month = journey.now.astimezone(dt.UTC).strftime("%Y-%m")
    assert all(answer["frozen"][pool] == [month] for pool in POOLS)
    again = journey.served.schedule("closing", journey.closing.isoformat())
    assert not set(POOLS) & set(again["frozen"])
    journey.served.settle()
    return journey


def _month_list(served: ServedProcess, pool: str, month: str) -> Json:
    answer = served.request("GET", f"/{pool}/lists/{month}/standings.json")
    assert answer.status == 200, (pool, month)
    found: Json = answer.body
    assert (found["pool"], found["month"]) == (pool, month)
    return found


@pytest.mark.parametrize("pool", POOLS)
def test_every_month_has_its_list_and_the_last_one_is_frozen(closed: Journey, pool: str) -> None:
    expected = closed.expected(pool, closed.closing)
    last = closed.now.strftime("%Y-%m")
    assert max(expected.lists) == last
    assert len(expected.lists) >= 14
    for month, wanted in expected.lists.items():
        found = _month_list(closed.served, pool, month)
        assert found["kind"] == ("frozen" if month == last else "reconstructed")
        assert {row["player"]: numbers(row["rating"]) for row in found["standings"]} == wanted
        assert f"/lists/{month}/" in _page(closed.served, f"/{pool}/lists/")
    _page(closed.served, f"/{pool}/lists/{last}/")


def test_a_late_result_changes_the_ratings_and_no_frozen_list(closed: Journey) -> None:
    pool, served = "j-schieber", closed.served
    month = closed.now.strftime("%Y-%m")
    frozen = served.request("GET", f"/{pool}/lists/{month}/standings.json").body
    club, body = closed.late
    assert served.request("POST", f"/v1/pools/{pool}/games", json=body, key=closed.keys[club]).status == 201
    served.settle()
    expected = closed.expected(pool, closed.closing, late=True)
    before = closed.expected(pool, closed.closing)
    assert {n: p.now for n, p in expected.players.items()} != {n: p.now for n, p in before.players.items()}
    for name, player in expected.players.items():
        assert numbers(closed.player(pool, name)[0]["rating"]) == player.now
    after = served.request("GET", f"/{pool}/lists/{month}/standings.json").body
    assert after == frozen
    for earlier in sorted(expected.lists)[:-1]:
        found = _month_list(served, pool, earlier)
        assert {row["player"]: numbers(row["rating"]) for row in found["standings"]} == expected.lists[earlier]


def _closing_after(moment: dt.datetime) -> dt.datetime:
    """When the month of a moment has ended in every time zone."""
    begin = (moment.replace(day=1) + dt.timedelta(32)).replace(day=1)
    return begin.replace(hour=12, minute=5, second=0, microsecond=0)


# -- with the template's roles -----------------------------------------------------------------------------------
def test_the_main_job_needs_no_more_than_the_roles_allow(tmp_path: Path) -> None:
    until = dt.datetime.now(dt.UTC).date() - dt.timedelta(2)
    plans = [_own(pool, 40) for pool in generator.generate(3, until).pools]
    with ServedProcess(tmp_path, enforce_permissions=True) as served:
        for plan in plans:
            for club in plan.body["clubs"]:
                served.admin("PUT", f"/v1/clubs/{club}", {"name": club})
            assert served.admin("PUT", f"/v1/pools/{plan.id}", plan.body).status == 201
            key = served.admin("POST", f"/v1/clubs/{plan.body['clubs'][0]}/keys", {"scopes": ["submit"]}).body["key"]
            names = {player.id: player.name for player in plan.players}
            for club, body in plan.games:
                people = {p for team in body["result"]["teams"] for p in team}
                people |= {s["player"] for s in body["result"].get("substitutes", ()) if "player" in s}
                register = [{"id": p, "name": names[p]} for p in sorted(people)]
                sent = {**body, "register": register}
                assert served.admin("POST", f"/v1/pools/{plan.id}/games?club={club}", sent).status == 201
            assert served.request("POST", f"/v1/pools/{plan.id}/games", json={}, key=key).status == 422
        served.settle()
        closing = _closing_after(dt.datetime.now(dt.UTC))
        served.schedule("closing", closing.isoformat())
        served.schedule("sweep")
        served.settle()
        for plan in plans:
            expected = reference.calculate(plan.body, plan.games, {}, closing)
            for name, player in expected.players.items():
                shown = served.request("GET", f"/v1/pools/{plan.id}/players/{name}").body
                assert numbers(shown["rating"]) == player.now
            month = dt.datetime.now(dt.UTC).strftime("%Y-%m")
            assert _month_list(served, plan.id, month)["kind"] == "frozen"
            assert "<table" in _page(served, f"/{plan.id}/")
            answer = served.admin("POST", f"/v1/pools/{plan.id}/rebuild", {})
            assert answer.status == 202
        served.settle()
        assert served.request("GET", "/v1/health").body == {"status": "ok"}
