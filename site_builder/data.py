"""The files beside the pages: JSON and CSV of lists and players, feeds' raw material, search, sitemaps."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from msgspec.structs import replace

from shared.ledger.order import iso
from shared.ratings.base import Rating
from site_builder.views import HistoryLine, MonthPage, Page, Person, PlayerPage, PoolView, SiteView, Standing

JSON = "application/json; charset=utf-8"
CSV = "text/csv; charset=utf-8"
XML = "application/xml; charset=utf-8"
SITEMAP_LIMIT = 50_000

Present = Callable[[int, int], Mapping[str, float | int]]
_MARKED = re.compile(r"'*[=+\-@\t\r]")


def neutralise(cell: str) -> str:
    """A cell that a spreadsheet would run as a formula, with an apostrophe before it.

    So is a cell that looks as if it had been treated already; so the import can always tell, and takes it off again.
    """
    return "'" + cell if _MARKED.match(cell) else cell


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8, keys in the order given, one line."""
    return msgspec.json.encode(value) + b"\n"


def standing(present: Present, line: Standing) -> dict[str, Any]:
    """A line of a list as data. ``present``: the rule system's."""
    data: dict[str, Any] = {
        "place": line.place,
        "player": line.player,
        "name": line.name,
        "rating": present(line.rating, line.index),
        "record": {"games": line.games, "won": line.won, "drawn": line.drawn, "lost": line.lost},
        "last_played": None if line.last_played is None else iso(line.last_played),
        **line.figures,
    }
    if line.previous is not None:
        data["previous"] = {"place": line.previous_place, "rating": present(*line.previous)}
    if line.provisional:
        data["provisional"] = True
    if line.inactive:
        data["inactive"] = True
    return data


def standings_json(
    pool: PoolView, standings: Iterable[Standing], number: int, pages: int, variant: str = "main"
) -> Page:
    """``/{pool}/standings.json``, and ``/{pool}/page/2/standings.json`` and so on; ``next`` links the following."""
    folder = pool.id if variant == "main" else f"{pool.id}/{variant}"

    present = pool.rule_system.present

    def path(page: int) -> str:
        return f"{folder}/standings.json" if page == 1 else f"{folder}/page/{page}/standings.json"

    return Page(
        path(number),
        JSON,
        to_json(
            {
                "pool": pool.id,
                "publication": pool.publication,
                "published_at": None if pool.published_at is None else iso(pool.published_at),
                "results_up_to": None if pool.results_up_to is None else iso(pool.results_up_to),
                "page": number,
                "pages": pages,
                "standings": [standing(present, line) for line in standings],
                "next": f"/{path(number + 1)}" if number < pages else None,
            }
        ),
    )


def standings_csv(pool: PoolView, standings: Iterable[Standing], path: str | None = None) -> Page:
    """The whole list as a table: ``/{pool}/standings.csv``, or a month's under ``path``."""
    present = pool.rule_system.present
    columns = tuple(present(0, 0))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["place", "player", "name", *columns, "games", "won", "drawn", "lost", "last_played"])
    for line in standings:
        shown = present(line.rating, line.index)
        writer.writerow(
            [
                "" if line.place is None else line.place,
                neutralise(line.player),
                neutralise(line.name),
                *(shown[column] for column in columns),
                line.games,
                line.won,
                line.drawn,
                line.lost,
                "" if line.last_played is None else iso(line.last_played),
            ]
        )
    return Page(path or f"{pool.id}/standings.csv", CSV, out.getvalue().encode())


def month_json(pool: PoolView, month: MonthPage) -> Page:
    """``/{pool}/lists/2026-11/standings.json``; all players in one file when ``month`` holds all."""
    folder = f"{pool.id}/lists/{month.month}"
    present = pool.rule_system.present
    frozen = month.kind == "frozen"  # never changes again, while the month before it may still be corrected
    data: dict[str, Any] = {
        "pool": pool.id,
        "month": month.month,
        "kind": month.kind,
        "standings": [standing(present, replace(line, previous=None) if frozen else line) for line in month.standings],
    }
    return Page(f"{folder}/standings.json", JSON, to_json(data))


def month_csv(pool: PoolView, month: MonthPage) -> Page:
    """``/{pool}/lists/2026-11/standings.csv``"""
    return standings_csv(pool, month.standings, f"{pool.id}/lists/{month.month}/standings.csv")


def _rating(pool: PoolView, rating: Rating | None) -> Mapping[str, float | int] | None:
    return None if rating is None else pool.rule_system.present(*rating)


def history_line(pool: PoolView, line: HistoryLine) -> dict[str, Any]:
    """A line of a player's history, as the API answers it."""
    return {
        "at": iso(line.at),
        "kind": line.kind,
        "game": f"{line.club}:{line.game_id}" if line.game_id else None,
        "before": _rating(pool, line.before),
        "after": _rating(pool, line.after),
        "change": None if line.before is None else pool.rule_system.present_change(line.before, line.after),
        "explanation": line.explanation,
    }


def player_json(pool: PoolView, page: PlayerPage) -> Page:
    """``/{pool}/players/{player}.json``; as the API, less the live place."""
    line = page.standing
    system = pool.rule_system
    best = page.best and {"rating": system.present(page.best[0], page.best[1]), "at": iso(page.best[2])}
    return Page(
        f"{pool.id}/players/{line.player}.json",
        JSON,
        to_json(
            {
                "pool": pool.id,
                "player": line.player,
                "name": line.name,
                "clubs": [club for club, _ in page.clubs],
                "rating": system.present(line.rating, line.index),
                "record": {"games": line.games, "won": line.won, "drawn": line.drawn, "lost": line.lost},
                "last_played": None if line.last_played is None else iso(line.last_played),
                **line.figures,
                "best": best or None,
                "history": [history_line(pool, entry) for entry in page.history],
                "history_total": page.history_total if page.history_total is not None else len(page.history),
            }
        ),
    )


def publication_json(pool: PoolView, pages: int) -> Page:
    """``/{pool}/publication.json``, written last."""
    return Page(
        f"{pool.id}/publication.json",
        JSON,
        to_json(
            {
                "publication": pool.publication,
                "published_at": None if pool.published_at is None else iso(pool.published_at),
                "results_up_to": None if pool.results_up_to is None else iso(pool.results_up_to),
                "position": pool.position,
                "state_hash": pool.state_hash,
                "pages": pages,
            }
        ),
    )


def site_json(site: SiteView) -> Page:
    """``/site.json``: where the API is, for the desk."""
    pools = [{"pool": p.id, "name": p.name, "system": p.system, "languages": p.languages} for p in site.pools]
    return Page("site.json", JSON, to_json({"api": site.api_origin, "name": site.name, "pools": pools}))


# -- search --------------------------------------------------------------------------------------------------------

_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "n"}
)


def fold(text: str) -> str:
    """A name as the search compares it; ``assets/site.js`` does the same."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
    return bare.lower().translate(_LETTERS)


def shards_of(player: Person) -> frozenset[str]:
    """Which search files a player is in: one per first letter of a word of the name, and of the handle."""
    return _shards(player.name, player.handle or "")


@lru_cache(maxsize=131_072)
def _shards(name: str, handle: str) -> frozenset[str]:
    """Asked of every player several times a run."""
    words = [*re.split(r"[\s-]+", fold(name)), handle]
    return frozenset(word[0] if re.match(r"[a-z0-9]", word) else "other" for word in words if word)


def search_pages(pool: PoolView, players: Iterable[Person]) -> Iterator[Page]:
    """``/{pool}/search/a.json`` and so on: ``[[handle, name], ...]``, small enough to fetch while somebody types."""
    shards: dict[str, list[tuple[str, str]]] = {}
    for player in players:
        for letter in sorted(shards_of(player)):
            shards.setdefault(letter, []).append((player.handle or "", player.name))
    for letter in sorted(shards):
        yield Page(f"{pool.id}/search/{letter}.json", JSON, to_json(sorted(shards[letter], key=lambda p: (p[1], p[0]))))


# -- sitemaps ------------------------------------------------------------------------------------------------------


_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def sitemaps_needed(addresses: int) -> int:
    """How many files so many addresses take."""
    return max(1, -(-addresses // SITEMAP_LIMIT))


def sitemap_path(pool: str, number: int) -> str:
    """``tuesday/sitemap.xml``, ``tuesday/sitemap-2.xml``"""
    return f"{pool}/sitemap.xml" if number == 1 else f"{pool}/sitemap-{number}.xml"


def pool_sitemaps(site: SiteView, pool: str, addresses: Iterable[str]) -> Iterator[Page]:
    """The addresses of a pool (``/tuesday/``), 50,000 a file."""
    every = list(addresses)
    for number in range(1, sitemaps_needed(len(every)) + 1):
        part = every[(number - 1) * SITEMAP_LIMIT : number * SITEMAP_LIMIT]
        lines = "".join(f"<url><loc>{escape(site.origin + address)}</loc></url>\n" for address in part)
        body = f"{_HEAD}<urlset {_SPACE}>\n{lines}</urlset>\n"
        yield Page(sitemap_path(pool, number), XML, body.encode())


def sitemap_index(site: SiteView, pools: Mapping[str, int]) -> Page:
    """``/sitemap.xml``: the files of all pools. ``pools``: how many each has."""
    paths = [sitemap_path(pool, number) for pool, count in sorted(pools.items()) for number in range(1, count + 1)]
    lines = "".join(f"<sitemap><loc>{escape(f'{site.origin}/{path}')}</loc></sitemap>\n" for path in paths)
    return Page("sitemap.xml", XML, f"{_HEAD}<sitemapindex {_SPACE}>\n{lines}</sitemapindex>\n".encode())
