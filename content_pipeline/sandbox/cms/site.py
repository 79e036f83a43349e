"""One site at work: its store, its settings, its clock, and what it keeps in memory only.

What belongs here: the state that requests, people and controls share. What is done with it is in
the modules named after what is asked.
"""

import re
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from content_pipeline.sandbox.cms.pages import Page, Status
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.cms.writing import GMT, numbered
from content_pipeline.sandbox.settings import latency_s
from content_pipeline.sandbox.wire import Reply


class Site:
    """A site. Lives on one event loop."""

    def __init__(self, settings: CMSSettings, store: Store) -> None:
        self.store = store
        self.busy_keys: set[str] = set()
        """Keys of creates that were let in and are not stored yet."""
        self._cached: dict[str, tuple[float, Reply]] = {}
        self._asked: Counter[str] = Counter()
        self.set_settings(settings)

    def set_settings(self, settings: CMSSettings) -> None:
        """Replace the settings for everything that comes from now on."""
        self.settings = settings
        self.pattern = re.compile(settings.marker_pattern)

    @property
    def now_gmt(self) -> str:
        """The time as the site's own clock has it: whole seconds, like all of its times."""
        moment = time.time() + self.settings.clock_offset_s
        return datetime.fromtimestamp(moment, UTC).strftime(GMT)

    def next_latency_s(self, key: str) -> float:
        """Seconds the next request about ``key`` takes; every one is a draw of its own."""
        if not self.settings.latency_median_s:
            return 0.0
        self._asked[key] += 1
        return latency_s(self.settings, f"{key} {self._asked[key]}")

    def stored(self, page: Page, *, by: int, cause: str) -> Page:
        """Store a row that was worked out before; a new page gets its id now."""
        if not page.id:
            page = numbered(page, self.store.new_id())
        self.store.write(page, by=by, cause=cause, pattern=self.pattern)
        return page

    def publish_due(self) -> int:
        """What WordPress's timer does: planned pages whose date has come go live. How many did."""
        planned = [page for page in self.store.pages.values() if page.status is Status.FUTURE]
        due = [page for page in planned if page.date_gmt <= self.now_gmt]
        for page in due:
            live = replace(page, status=Status.PUBLISH)
            self.stored(live, by=page.author, cause="timer")
        return len(due)

    # --- the cache in front of the public pages ------------------------------------------------

    def cached(self, target: str) -> Reply | None:
        """What the cache shows for ``target``, path and query; None when it must ask."""
        held = self._cached.get(target)
        return held[1] if held and time.monotonic() < held[0] else None

    def cache(self, target: str, reply: Reply) -> None:
        """Let the cache keep ``reply`` for as long as the settings say."""
        if self.settings.cache_s:
            self._cached[target] = (time.monotonic() + self.settings.cache_s, reply)

    def purge(self, paths: list[str] | None) -> None:
        """Forget the answers for ``paths``, whatever their query; None: all."""
        gone = [t for t in self._cached if paths is None or t.partition("?")[0] in paths]
        for target in gone:
            del self._cached[target]

    def reset(self) -> None:
        """Forget everything that ever happened."""
        self.store.reset()
        self.busy_keys.clear()
        self._cached.clear()
        self._asked.clear()
