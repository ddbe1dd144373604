"""`python -m local demo`: starts everything, sends results through the HTTP API, closes months, publishes.

What is sent: the duels of a real forum where they lie beside the project (``../shared/data/forum_duels.csv``; made-up
ones otherwise), and what ``local.generator`` makes up: two Schieber clubs and a Spades club.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime as dt
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3

from local import generator, settling
from local.emulator import EmulatorError
from local.generator import ClubPlan, PlayerPlan, PoolPlan, World
from local.serve import Served, serving

ROOT = Path(__file__).resolve().parent.parent
REAL_DUELS = ROOT.parent / "shared" / "data" / "forum_duels.csv"
SEED = 7
CLIENTS = 4
"""Requests at a time: more make the emulator no faster on two cores."""
ATTEMPTS = 5
TRY_AGAIN = (429, 502, 503, 504)
EVERY = 2.0
"""Seconds between two lines of progress."""

Say = Callable[[str], None]
Json = dict[str, Any]


class DemoError(EmulatorError):
    """The API refused something that should have been fine."""


# -- what is sent ------------------------------------------------------------------------------------------------
def real_duels(path: Path) -> World:
    """The forum's duels as a world: days become 00:00 and 23:00 UTC."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    club = ClubPlan("forum", "Duelling forum")
    names = sorted({row[seat] for row in rows for seat in ("player_a", "player_b")})
    games = [
        (
            club.id,
            {
                "game_id": row["game_id"],
                "started_at": f"{row['started_on']}T00:00:00Z",
                "finished_at": f"{row['finished_on']}T23:00:00Z",
                "note": "forfeit" if row["forfeit"] == "1" else "",
                "distinct": True,  # a few pairs met twice on the same days
                "result": {"players": [row["player_a"], row["player_b"]], "winner": row["winner"]},
            },
        )
        for row in sorted(rows, key=lambda r: (r["finished_on"], r["game_id"]))
    ]
    players = tuple(PlayerPlan(name, name, club.id) for name in names)
    first = min(row["started_on"] for row in rows)
    return World((club,), (PoolPlan("forum", generator.duels_pool(first, club.id), players, tuple(games)),))


def worlds(seed: int = SEED, today: dt.date | None = None) -> list[World]:
    """All that the demo sends. Made-up results end two days ago, as no zone's evening may lie in the future."""
    until = (today or dt.datetime.now(dt.UTC).date()) - dt.timedelta(2)
    duels = real_duels(REAL_DUELS) if REAL_DUELS.exists() else generator.generate_duels(seed, until)
    return [duels, generator.generate(seed, until)]


# -- how it is sent ----------------------------------------------------------------------------------------------
class Client:
    """The HTTP API, with one key. Safe under threads."""

    def __init__(self, url: str, key: str, connections: urllib3.PoolManager | None = None) -> None:
        self.url, self.key = url, key
        self.connections = connections or urllib3.PoolManager(maxsize=CLIENTS, retries=False, timeout=120.0)

    def with_key(self, key: str) -> Client:
        """The same API with another key."""
        return Client(self.url, key, self.connections)

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        """One request, tried again when it is not a good moment. Raises DemoError with the problem document."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        sent = json.dumps(body).encode() if body is not None else None
        for attempt in range(ATTEMPTS):
            answer = self.connections.request(method, self.url + path, headers=headers, body=sent)
            if answer.status not in TRY_AGAIN:
                break
            time.sleep(0.2 * 2**attempt)
        if answer.status >= 400:
            message = f"{method} {path}: {answer.status} {answer.data.decode(errors='replace')[:2000]}"
            raise DemoError(message)
        found: Json = answer.json()
        return found


class _Stage:
    """Says what a stage did and how long it took."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.began = time.monotonic()

    @contextlib.contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.say(f"{what}: {time.monotonic() - began:.1f} s")


def _in_parallel(tasks: Iterable[Callable[[], object]], progress: Callable[[int], None] | None = None) -> int:
    """Run tasks in their order by a few threads; the first failure ends it. Answers how many were run."""
    waiting, lock, failures = iter(tasks), threading.Lock(), list[BaseException]()
    done = 0

    def work() -> None:
        nonlocal done
        while not failures:
            with lock:
                task = next(waiting, None)
            if task is None:
                return
            try:
                task()
            except BaseException as error:
                failures.append(error)
                return
            with lock:
                done += 1
                if progress is not None:
                    progress(done)

    with ThreadPoolExecutor(CLIENTS) as pool:
        for future in [pool.submit(work) for _ in range(CLIENTS)]:
            future.result()
    if failures:
        raise failures[0]
    return done


def _register(client: Client, world: World) -> dict[str, Client]:
    """Clubs, their keys, pools, players and carried-over starts; a client for each club."""
    clubs: dict[str, Client] = {}
    for club in world.clubs:
        client.send("PUT", f"/v1/clubs/{club.id}", {"name": club.name})
        made = client.send("POST", f"/v1/clubs/{club.id}/keys", {"scopes": ["submit", "manage"], "label": "demo"})
        clubs[club.id] = client.with_key(made["key"])
    for pool in world.pools:
        client.send("PUT", f"/v1/pools/{pool.id}", pool.body)

    def register(player: PlayerPlan) -> Callable[[], object]:
        return lambda: clubs[player.club].send("PUT", f"/v1/players/{player.id}", player.body)

    _in_parallel(map(register, world.players))
    for pool in world.pools:
        for player, start in pool.starts.items():
            client.send("PUT", f"/v1/pools/{pool.id}/players/{player}", {"start": start})
    return clubs


def _interleaved(pools: Sequence[PoolPlan]) -> list[tuple[str, str, Json]]:
    """(pool, club, body) of all games: each pool's in its own order, all pools advancing alike."""
    keyed = [
        ((number + 1) / len(pool.games), pool.id, club, body)
        for pool in pools
        for number, (club, body) in enumerate(pool.games)
    ]
    return [(pool, club, body) for _, pool, club, body in sorted(keyed, key=lambda entry: entry[:2])]


def fill(served: Served, say: Say = print, *, seed: int = SEED) -> list[settling.PoolState]:
    """Send everything to a system that is empty, let it rate, publish and close months.

    Raises:
        DemoError: the API refused something.
        NotSettledError: rating or publishing did not come to an end.
    """
    stage = _Stage(say)
    admin = Client(served.url, served.admin_key)
    told = worlds(seed)
    clubs: dict[str, Client] = {}
    pools = [pool for world in told for pool in world.pools]
    source = "real duels of a forum" if REAL_DUELS.exists() else "made-up duels"
    with stage(f"{sum(len(world.players) for world in told)} players of {sum(len(w.clubs) for w in told)} clubs"):
        for world in told:
            clubs |= _register(admin, world)
    games = _interleaved(pools)
    say(f"sending {len(games)} games to {len(pools)} pools ({source} in 'forum', the rest made up from seed {seed})")
    with served.system.publishing_paused():
        with stage(f"{len(games)} games sent, {CLIENTS} at a time"):
            _send_games(clubs, games, say)
        with stage("the last of them rated"):
            served.system.settle_ratings()
    with stage("published"):
        served.system.settle()
    with stage("schedule 'closing' fired: every month that has ended is closed"):
        served.system.fire("closing")
        states = served.system.settle()
    for state in states:
        shown = admin.send("GET", f"/v1/pools/{state.pool}")
        say(f"  {state.pool:<10} {shown['players']:>4} players {shown['games']:>5} rated games, "
            f"state hash {shown['state_hash'][:16]}")  # fmt: skip
    say(f"demo data in place after {time.monotonic() - stage.began:.1f} s")
    return states


def _send_games(clubs: dict[str, Client], games: Sequence[tuple[str, str, Json]], say: Say) -> None:
    began = time.monotonic()
    told = began

    def progress(done: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= EVERY:
            told = now
            say(f"  {done:>5} of {len(games)} sent, {done / (now - began):.0f} a second")

    def task(pool: str, club: str, body: Json) -> Callable[[], object]:
        return lambda: clubs[club].send("POST", f"/v1/pools/{pool}/games", body)

    _in_parallel((task(*game) for game in games), progress)


# -- the command -------------------------------------------------------------------------------------------------
def main(arguments: Sequence[str]) -> int:
    """``python -m local demo`` with these arguments; answers the exit status."""
    from local.__main__ import main as command_line

    return command_line(["demo", *arguments])


def run(options: argparse.Namespace, say: Say) -> int:
    """Run the demo: end after publishing when ``options.once``, else serve until stopped."""
    with serving(port=options.port, admin_key=options.admin_key, site_directory=options.site_dir, say=say) as served:
        states = fill(served, say, seed=options.seed)
        if options.once:
            if options.site_dir is not None:
                say(f"  pages in {options.site_dir}/")
            return 0
        say(addresses(served, [state.pool for state in states]))
        while True:
            signal.pause()


def addresses(served: Served, pools: Iterable[str]) -> str:
    """What to open, and the key."""
    lines = ["", f"  site       {served.url}/"]
    lines += [f"  {pool:<10} {served.url}/{pool}/" for pool in pools]
    lines += [f"  API        {served.url}/v1", f"  admin key  {served.admin_key}", "", "Ctrl-C stops everything."]
    return "\n".join(lines)
