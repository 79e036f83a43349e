"""Where a page is found: its address, and the page an address stands for.

What belongs here: both directions, and the redirects that WordPress guesses.
"""

from urllib.parse import quote, unquote

from content_pipeline.sandbox.cms.pages import HAS_PERMALINK, Page
from content_pipeline.sandbox.cms.store import Store


def link_of(store: Store, page: Page, home: str) -> str:
    """The page's address; one without an id alone only for pages that have a place."""
    if page.status in HAS_PERMALINK:
        return home + store.path_of(page)
    return f"{home}/?page_id={page.id}"


def at_path(store: Store, path: str) -> Page | None:
    """The public page of a decoded ``path``; the oldest one when several claim it."""
    segment = path.strip("/").rpartition("/")[2]
    for slug in _as_stored(segment):
        for page in store.slugged(slug):
            if page.is_public and unquote(store.path_of(page)) == path:
                return page
    return None


def guessed(store: Store, path: str) -> Page | None:
    """The public page whose slug begins with the last part of a ``path`` where nothing is.

    WordPress redirects there: to the renamed ``alpha-two``, and just as well to ``alpha-2``.
    """
    segment = path.strip("/").rpartition("/")[2]
    if not segment:
        return None
    beginnings = tuple(_as_stored(segment))
    found = (p for p in store.pages.values() if p.is_public and p.slug.startswith(beginnings))
    return min(found, key=lambda page: page.id, default=None)


def _as_stored(segment: str) -> list[str]:
    """Slugs of other scripts are stored percent-encoded, in lower case."""
    return [segment] if segment.isascii() else [segment, quote(segment.encode()).lower()]
