"""The sitemap: tells search engines which pages there are and when each last changed.

What belongs here: the format and limits of sitemaps.org. A site within the limits has one file;
beyond them ``sitemap.xml`` is an index of numbered files.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.adapters.hooks.derived_files import DerivedFiles
from content_pipeline.core.ports import Announcement, ListedPage, SiteListing

SITEMAP_FILE = "sitemap.xml"

MAX_URLS = 50_000
"""Per file, by sitemaps.org."""

MAX_BYTES = 50 * 1024 * 1024
"""Per uncompressed file, by sitemaps.org."""

_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_SIGN = b"<!-- Written by content-pipeline; changes made here are overwritten. -->\n"
_START = b'<?xml version="1.0" encoding="UTF-8"?>\n' + _SIGN

_URL_CHARACTERS = "%/:=&?~#+!$,;'@()*[]"
"""Left alone when a URL is encoded: reserved characters, and what is encoded already."""

_FILES = DerivedFiles(
    family=re.compile(r"sitemap(-[0-9]+)?\.xml"), is_ours=lambda data: data.startswith(_START)
)


class SitemapFile:
    """Keeps ``sitemap.xml`` in ``root``. The limits are parameters for sites served elsewhere."""

    kind = "sitemap"

    def __init__(self, root: Path, *, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES) -> None:
        self._folder = SiteFolder(root=root)
        self._max_urls = max_urls
        self._max_bytes = max_bytes

    def announce(self, listing: SiteListing) -> Announcement:
        """Write what changed; untouched files keep their time. Raises CallFailed."""
        changed = _FILES.bring_up_to_date(self._folder, self._files(listing))
        return Announcement(location=str(self._folder.root / SITEMAP_FILE), changed=changed)

    def _files(self, listing: SiteListing) -> dict[str, bytes]:
        shards = list(self._shards(listing.pages))
        if len(shards) <= 1:
            entries = (_page_entry(page) for page in listing.pages)
            return {SITEMAP_FILE: _document(b"urlset", entries)}
        files = {
            f"sitemap-{number}.xml": _document(b"urlset", map(_page_entry, pages))
            for number, pages in enumerate(shards, start=1)
        }
        base = listing.base_url.rstrip("/")
        entries = (
            _entry(b"sitemap", f"{base}/{name}", max(page.modified_at for page in pages))
            for name, pages in zip(files, shards, strict=True)
        )
        return files | {SITEMAP_FILE: _document(b"sitemapindex", entries)}

    def _shards(self, pages: Sequence[ListedPage]) -> Iterator[list[ListedPage]]:
        """``pages`` in order, cut into runs that fit into one file each."""
        frame_bytes = len(_document(b"urlset", ()))
        shard: list[ListedPage] = []
        size = frame_bytes
        for page in pages:
            entry_bytes = len(_page_entry(page))
            if shard and (len(shard) == self._max_urls or size + entry_bytes > self._max_bytes):
                yield shard
                shard, size = [], frame_bytes
            shard.append(page)
            size += entry_bytes
        if shard:
            yield shard


def _document(element: bytes, entries: Iterable[bytes]) -> bytes:
    opening = b'<%s xmlns="%s">\n' % (element, _NAMESPACE.encode())
    return b"".join([_START, opening, *entries, b"</%s>\n" % element])


def _page_entry(page: ListedPage) -> bytes:
    return _entry(b"url", page.url, page.modified_at)


def _entry(element: bytes, url: str, modified_at: datetime) -> bytes:
    location = escape(quote(url, safe=_URL_CHARACTERS), {"'": "&apos;", '"': "&quot;"})
    moment = modified_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = f"<loc>{location}</loc><lastmod>{moment}</lastmod>"
    return b"<%s>%s</%s>\n" % (element, text.encode(), element)
