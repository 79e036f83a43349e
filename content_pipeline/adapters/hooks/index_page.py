"""The site's front page: every proved page by its first letter, with links that work anywhere.

What belongs here: ordering, grouping and cutting the list into sheets. How a sheet looks is
``page_html``'s. A front page that somebody else wrote is left alone.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.adapters.cms.page_html import IndexGroup, IndexSheet, render_index
from content_pipeline.adapters.cms.page_marker import INDEX_MARK, mark_of
from content_pipeline.adapters.hooks.derived_files import DerivedFiles
from content_pipeline.core.ports import Announcement, ListedPage, SiteListing

INDEX_FILE = "index.html"

MAX_ENTRIES = 5_000
"""Per sheet: about 1 MB of HTML, which a browser still lays out at once."""

MAX_DESCRIPTION_CHARACTERS = 155
"""What a search engine shows of a description."""

NO_LETTER = "#"

_FILES = DerivedFiles(
    family=re.compile(r"index(-[0-9]+)?\.html"),
    is_ours=lambda data: mark_of(data) == INDEX_MARK,
)


class IndexPage:
    """Keeps ``index.html`` in ``root``, and ``index-2.html`` onwards when one is not enough."""

    kind = "index_page"

    def __init__(self, root: Path, *, max_entries: int = MAX_ENTRIES) -> None:
        self._folder = SiteFolder(root=root)
        self._max_entries = max_entries

    def announce(self, listing: SiteListing) -> Announcement:
        """Write what changed; untouched files keep their time. Raises CallFailed."""
        files = _sheets(listing, self._max_entries)
        changed = _FILES.bring_up_to_date(self._folder, files)
        return Announcement(location=str(self._folder.root / INDEX_FILE), changed=changed)


def _sheets(listing: SiteListing, max_entries: int) -> dict[str, bytes]:
    """File name → bytes, the front page last because it links to the others."""
    pages = sorted(listing.pages, key=_order)
    runs = [pages[at : at + max_entries] for at in range(0, len(pages), max_entries)] or [[]]
    names = [INDEX_FILE, *(f"index-{number}.html" for number in range(2, len(runs) + 1))]
    base = listing.base_url.rstrip("/") + "/"
    files = {}
    for number, (name, run) in enumerate(zip(names, runs, strict=True), start=1):
        files[name] = render_index(
            IndexSheet(
                site_title=listing.site_title,
                language=listing.language,
                url=base if number == 1 else base + name,
                description=_description(run),
                groups=_groups(run),
                number=number,
                file_names=names,
            )
        )
    return dict(reversed(files.items()))


def _groups(pages: Sequence[ListedPage]) -> list[IndexGroup]:
    return [
        IndexGroup(letter=letter, pages=tuple(group)) for letter, group in groupby(pages, _letter)
    ]


def _order(page: ListedPage) -> tuple[str, str, str]:
    """By letter, then title without accents and case, then path so that the order is total."""
    return _letter(page), _bare(page.title), page.path


def _letter(page: ListedPage) -> str:
    first = _bare(page.title)[:1].upper()[:1]
    return first if first.isalpha() else NO_LETTER


def _bare(title: str) -> str:
    """``title`` as it is sorted: Österreich stands among the O, whatever the case."""
    decomposed = unicodedata.normalize("NFKD", title)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def _description(pages: Sequence[ListedPage]) -> str:
    """The first titles: a description that is true in any language."""
    shown = ""
    for page in pages:
        longer = f"{shown}, {page.title}" if shown else page.title
        if len(longer) > MAX_DESCRIPTION_CHARACTERS:
            break
        shown = longer
    return shown
