"""Objects on their way to the site's bucket: several at a time, none that stands there already."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from shared.store.bucket import etag
from shared.usecases.context import Context
from site_builder.views import Page

RENEW_EVERY = 100
"""Objects looked at between two looks at whether the run may still write."""
CACHE_PAGES = "public, max-age=0, s-maxage=60, must-revalidate"


class Uploads:
    """What one run sends."""

    def __init__(self, ctx: Context, still_ours: Callable[[], None]) -> None:
        """``still_ours`` is called every ``RENEW_EVERY`` objects; it raises when another run has taken over."""
        self.ctx = ctx
        self.present: Mapping[str, str] | None = None
        """ETag by path of all that stood there when the run began; None: ask one by one."""
        self.built = 0
        self.written = 0
        self.bytes = 0
        self.kept: set[str] = set()
        """Paths of the pages that belong to the publication."""
        self._still_ours = still_ours
        self._since = 0
        self._threads: ThreadPoolExecutor | None = None
        self._sending: deque[Future[int | None]] = deque()

    def etag(self, path: str) -> str | None:
        """What stands there now."""
        return self.present.get(path) if self.present is not None else self.ctx.site.etag(path)

    def put(self, page: Page, *, changed: bool = False) -> None:
        """A page of the publication. Raises RuntimeError when it was built before.

        Args:
            changed: it cannot stand there as it is, so nobody need ask.
        """
        if page.path in self.kept:
            raise RuntimeError(f"{page.path} was built twice")
        self.kept.add(page.path)
        self.built += 1
        self.send(page, changed=changed)

    def send(self, page: Page, *, changed: bool = False) -> None:
        """Have an object written by one of the threads; where there is one only, at once."""
        self._since += 1
        if self._since >= RENEW_EVERY:
            self._since = 0
            self._still_ours()
        if self.ctx.uploads_at_once == 1:
            self._sent(self._upload(page, changed))
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.ctx.uploads_at_once)
        self._sending.append(self._threads.submit(self._upload, page, changed))
        while len(self._sending) > 2 * self.ctx.uploads_at_once:
            self._sent(self._sending.popleft().result())

    def all_sent(self) -> None:
        """Wait until everything sent so far is there."""
        while self._sending:
            self._sent(self._sending.popleft().result())

    def close(self) -> None:
        """Begin no more uploads, and wait for those that run: nothing may be written once the lease is given back."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _upload(self, page: Page, changed: bool) -> int | None:
        """Write an object; its size, or None where the same stands already. Touches nothing of the run's own."""
        if not changed and self.etag(page.path) == etag(page.body):
            return None
        self.ctx.site.put(page.path, page.body, page.content_type, CACHE_PAGES)
        return len(page.body)

    def _sent(self, size: int | None) -> None:
        if size is not None:
            self.written += 1
            self.bytes += size
