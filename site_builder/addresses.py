"""Where every page and file of the site is: addresses for links, object keys for the store."""

from __future__ import annotations

from site_builder.views import PoolView


class Addresses:
    """Addresses of one pool in one language. All begin and end with a slash."""

    def __init__(self, pool: PoolView, language: str) -> None:
        self.language = language
        self.home = "/"
        self.pool = prefix(pool.languages, language) + pool.id + "/"
        self.data = f"/{pool.id}/"
        """Data files have no language."""

    def list(self, page: int = 1, variant: str = "main") -> str:
        """A page of the list, or of one of the lists apart (``new``, ``established``, ``inactive``)."""
        base = self.pool if variant == "main" else f"{self.pool}{variant}/"
        return base if page == 1 else f"{base}page/{page}/"

    def player(self, player: str) -> str:
        """A player's page."""
        return f"{self.pool}players/{player}/"

    def game(self, club: str, game: str) -> str:
        """A game's page."""
        return f"{self.pool}games/{club}/{game}/"

    def label(self, kind: str, label: str, page: int = 1) -> str:
        """The list of a club, group, tournament or year; ``dienstag:2026`` is a group's year."""
        base = f"{self.pool}{kind}s/{label.replace(':', '/')}/"
        return base if page == 1 else f"{base}page/{page}/"

    def month(self, month: str, page: int = 1) -> str:
        """A month's list."""
        base = f"{self.pool}lists/{month}/"
        return base if page == 1 else f"{base}page/{page}/"

    def section(self, name: str) -> str:
        """``lists``, ``changes``, ``rules``, ``calculator``, ``statistics``."""
        return f"{self.pool}{name}/"


def prefix(languages: tuple[str, ...], language: str) -> str:
    """``/`` for the first language, ``/de/`` for others."""
    return "/" if not languages or language == languages[0] else f"/{language}/"


def key(address: str) -> str:
    """The object key of a page: ``/tuesday/`` is ``tuesday/index.html``."""
    return address.removeprefix("/") + "index.html" if address.endswith("/") else address.removeprefix("/")


def embed_key(pool: PoolView, language: str) -> str:
    """The key of the page for other sites' frames."""
    return key(f"{prefix(pool.languages, language)}embed/{pool.id}/")


def player_keys(pool: PoolView, player: str) -> list[str]:
    """The objects of a player."""
    pages = [key(Addresses(pool, language).player(player)) for language in pool.languages]
    files = [f"{pool.id}/players/{player}.json", f"{pool.id}/players/{player}/feed.xml"]
    return [*pages, *files, *([f"{pool.id}/players/{player}.png"] if pool.pictures else [])]


def game_keys(pool: PoolView, club: str, game: str) -> list[str]:
    """The objects of a game."""
    return [key(Addresses(pool, language).game(club, game)) for language in pool.languages]
