"""Styles, scripts and pictures under names that change with their content, so that they can be cached for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from site_builder.views import Page

FOLDER = Path(__file__).parent / "assets"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def _found() -> dict[str, tuple[str, bytes]]:
    found = {}
    for file in sorted(FOLDER.rglob("*")):
        if file.suffix in TYPES:
            body = file.read_bytes()
            name = file.relative_to(FOLDER).with_suffix("").as_posix()
            key = f"assets/{name}.{hashlib.sha256(body).hexdigest()[:10]}{file.suffix}"
            found[file.relative_to(FOLDER).as_posix()] = (key, body)
    return found


def asset(name: str) -> str:
    """The address of an asset: ``/assets/site.0123456789.css``; empty when there is none of that name."""
    entry = _found().get(name)
    return "/" + entry[0] if entry else ""


def asset_pages() -> Iterator[Page]:
    """All assets. They go up before any page; old ones stay, since pages that did not change use them."""
    for key, body in _found().values():
        yield Page(key, TYPES[Path(key).suffix], body)
