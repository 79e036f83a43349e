"""Canonical paths and WordPress's slugs: which slug a path asks for, and below which page.

What belongs here: the rule of what can be a slug, and finding the parent of a page. A parent is
never created: whoever owns that address decides what stands there.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from content_pipeline.adapters.cms.wordpress_pages import Json, PageForm, status_of
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import RemoteStatus
from content_pipeline.core.cms_settings import WORDPRESS_SLUG
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

TOP = 0
"""The parent of a page at the top of the site."""

_LONGEST_SLUG = 200
"""Of the database's column; WordPress cuts there."""


def slugs_of(path: str) -> tuple[str, ...]:
    """The slugs along ``path``. Raises CallFailed (invalid_input) for one WordPress would change.

    ``/austria/vienna/`` is ``("austria", "vienna")``.
    """
    slugs = tuple(path[1:-1].split("/"))
    whole = len(path) > 2 and path.startswith("/") and path.endswith("/")
    if not whole or not all(map(_is_kept, slugs)):
        raise _refused(
            FailureClass.INVALID_INPUT,
            f"the path {path[:80]!a} cannot stand in WordPress as it is: between single slashes it "
            f"may hold lower-case letters, digits, _ and single - (at most {_LONGEST_SLUG}), and "
            "be no mere number and no word of a feed; correct it in the table",
        )
    return slugs


class ParentPages:
    """The ids of pages that others stand below; each is asked for once."""

    def __init__(self, rest: WordPressREST, form: PageForm) -> None:
        self._rest = rest
        self._form = form
        self._known: dict[str, int] = {}

    def parent_of(self, path: str) -> int:
        """The id of the page that ``path`` stands below; TOP when there is none.

        Raises CallFailed: request when the site has no such page, else as a listing.
        """
        slugs = slugs_of(path)[:-1]
        if not slugs:
            return TOP
        above = f"/{'/'.join(slugs)}/"
        if above not in self._known:
            self._known[above] = self._ask(above, slugs[-1])
        return self._known[above]

    @contextmanager
    def of(self, path: str) -> Iterator[None]:
        """A write at ``path``: when it is refused, its parent may be the one that is gone."""
        try:
            yield
        except CallFailed:
            self.forget(path)
            raise

    def forget(self, path: str) -> None:
        """Ask anew for the parent of ``path`` next time: it was not where it was thought."""
        self._known.pop(path.rstrip("/").rpartition("/")[0] + "/", None)

    def _ask(self, above: str, slug: str) -> int:
        doing = f"looking for the parent page {above}"
        listed = self._rest.with_slugs([slug], fields=self._form.page_fields, doing=doing)
        standing = [page for page in listed.pages if self._stands_at(page, above)]
        if not standing:
            raise _refused(
                FailureClass.REQUEST,
                f"{self._rest.name}, {doing}: the site has no such page; publish it first, then "
                "retry (retries.request.attempts makes pages wait for their parents)",
            )
        return _lowest_id(standing)

    def _stands_at(self, page: Json, path: str) -> bool:
        return status_of(page) is not RemoteStatus.TRASHED and self._form.path(page) == path


def _is_kept(slug: str) -> bool:
    return len(slug) <= _LONGEST_SLUG and WORDPRESS_SLUG.fullmatch(slug) is not None


def _lowest_id(pages: Sequence[Json]) -> int:
    return min(int(page["id"]) for page in pages)


def _refused(failure_class: FailureClass, message: str) -> CallFailed:
    return CallFailed(Failure(failure_class=failure_class, message=message))
