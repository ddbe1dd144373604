"""Which objects a published pool consists of, worked out from its list alone and not from what was built.

So a publication can tell whether it built all it should, and which objects of the last one have no place any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from shared.usecases.published import MAIN, ListRow, PublishedList
from site_builder import addresses, data, site
from site_builder.addresses import Addresses, key
from site_builder.placed import VARIANTS, established, mains
from site_builder.views import Person, PoolView

SECTIONS = ("lists", "changes", "rules", "calculator", "statistics", "ledger", "best")


def variants_of(view: PoolView) -> tuple[str, ...]:
    """All lists that a pool can have."""
    return (*VARIANTS, *getattr(view.rule_system, "listed_by", ()))


def pages_of(view: PoolView, where: str) -> Iterator[str]:
    """The keys of a page in all languages. ``where``: its address below the pool's, such as ``rules/``."""
    for language in view.languages or ("en",):
        yield key(Addresses(view, language).pool + where)


def _numbered(view: PoolView, base: str, players: int) -> Iterator[str]:
    for number in range(1, site.pages_needed(players) + 1):
        yield from pages_of(view, _page(base, number))


def _page(base: str, number: int) -> str:
    return base if number == 1 else f"{base}page/{number}/"


def list_page(view: PoolView, variant: str, number: int) -> Iterator[str]:
    """A page of the list, or of a list apart, in all languages with its data."""
    where = _page("" if variant == MAIN else f"{variant}/", number)
    yield from pages_of(view, where)
    yield f"{view.id}/{where}standings.json"


def label_page(view: PoolView, label: str, number: int) -> Iterator[str]:
    """A page of the list of a club, group, tournament or year in all languages."""
    yield from pages_of(view, _page(_label_base(label), number))


def _label_base(label: str) -> str:
    kind, _, rest = label.partition(":")
    return f"{kind}s/{rest.replace(':', '/')}/"


@dataclass(frozen=True)
class Counts:
    """What the pages of a list follow from, counted once: there may be 100,000 rows."""

    lists: Mapping[str, int]
    """Players in the list and in each list apart."""
    labels: Mapping[str, int]
    """Players of every club, group, tournament and year."""
    players: int


def count(view: PoolView, rows: Sequence[ListRow], members: Mapping[str, int] | None = None) -> Counts:
    """Count a list. ``members``: the players of every label, where they are known."""
    labels = members or Counter(chain.from_iterable(map(attrgetter("state.labels"), rows)))
    end = mains(rows)
    apart = Counter(row.variant for row in rows[end:])
    found = {variant: apart[variant] if variant in VARIANTS else end for variant in variants_of(view)}
    return Counts(found | {MAIN: end, "established": sum(established(rows[:end]))}, labels, len(rows))


def members_after(members: Mapping[str, int], moved: Iterable[tuple[ListRow | None, ListRow | None]]) -> dict[str, int]:
    """The players of every label after changes: rows as they were and as they are."""
    found = Counter(members)
    for was, row in moved:
        if was is not None:
            found.subtract(was.state.labels.keys())
        if row is not None:
            found.update(row.state.labels.keys())
    return {label: players for label, players in found.items() if players}


def list_keys(view: PoolView, counts: Counts) -> Iterator[str]:
    """The pages of the list and of the lists apart, with their data."""
    for variant, players in counts.lists.items():
        if players or variant == MAIN:
            for number in range(1, site.pages_needed(players) + 1):
                yield from list_page(view, variant, number)


def label_keys(view: PoolView, counts: Counts) -> Iterator[str]:
    """The pages of clubs, groups, tournaments and years."""
    for label, players in counts.labels.items():
        yield from _numbered(view, _label_base(label), players)


def month_pages(view: PoolView, month: str, players: int) -> Iterator[str]:
    """The pages of one month's list."""
    yield from _numbered(view, f"lists/{month}/", players)


def month_keys(view: PoolView, published: PublishedList) -> Iterator[str]:
    """The pages of the months with their data."""
    for note in published.months:
        yield from month_pages(view, note.month, note.players)
        names = ["standings.json", "standings.csv", *(["changes.json"] if note.kind == "frozen" else [])]
        yield from (f"{view.id}/lists/{note.month}/{name}" for name in names)


def whole_keys(view: PoolView, rows: Sequence[ListRow]) -> Iterator[str]:
    """The files that hold the whole pool: CSV, search, picture."""
    yield f"{view.id}/standings.csv"
    shards: set[str] = set()
    for row in rows:
        shards |= data.shards_of(Person(row.handle, row.name))
    yield from (f"{view.id}/search/{letter}.json" for letter in shards)
    if view.pictures:
        yield f"{view.id}/picture.png"


def addresses_of(view: PoolView, shared: Iterable[str], rows: Iterable[ListRow]) -> Iterator[str]:
    """What a sitemap names: every page in every language but those of games, which players' pages lead to.

    Args:
        shared: what ``shared_keys`` gives.
    """
    for found in sorted([*shared, *player_keys(view, (row.handle for row in rows))]):
        if _is_named(found):
            yield "/" + found.removesuffix("index.html")


def addresses_count(view: PoolView, shared: Iterable[str], players: int) -> int:
    """How many those are."""
    return sum(map(_is_named, shared)) + players * len(view.languages or ("en",))


def _is_named(found: str) -> bool:
    return found.endswith("index.html") and "embed/" not in found


def folders(view: PoolView) -> Iterator[str]:
    """Where objects can be that a list without them would not remember."""
    below = ["players/", "page/", "clubs/", "groups/", "tournaments/", "years/", "lists/", "search/"]
    below += [f"{variant}/" for variant in variants_of(view) if variant != MAIN]
    for language in view.languages or ("en",):
        root = Addresses(view, language).pool.removeprefix("/")
        yield from (root + folder for folder in below)


def section_keys(view: PoolView) -> Iterator[str]:
    """What every pool has once."""
    for section in SECTIONS:
        yield from pages_of(view, f"{section}/")
    for language in view.languages or ("en",):
        yield addresses.embed_key(view, language)
    yield from (f"{view.id}/{name}" for name in ("feed.xml", "ledger/index.json", "ledger/players.json"))


def list_and_label_keys(view: PoolView, counts: Counts) -> Iterator[str]:
    """The pages of all lists but those of months."""
    yield from list_keys(view, counts)
    yield from label_keys(view, counts)


def shared_keys(view: PoolView, published: PublishedList, of_lists: Iterable[str]) -> set[str]:
    """Everything but the pages of players and games, the ledger's segments, and what holds the whole pool.

    Args:
        of_lists: what ``list_and_label_keys`` gives.
    """
    return {*of_lists, *month_keys(view, published), *section_keys(view)}


def player_keys(view: PoolView, handles: Iterable[str]) -> Iterator[str]:
    """The pages, data and feeds of players."""
    for handle in handles:
        yield from addresses.player_keys(view, handle)


def game_keys(view: PoolView, games: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The pages of games, by (club, game id)."""
    for club, game in games:
        yield from addresses.game_keys(view, club, game)
