"""Ghost as a CMS: pages or posts over its Admin API, with the key of a custom integration.

What belongs here: the CMS port. A page is created as a draft and published by its id; Ghost keeps
no key unique and gives a taken slug a suffix, and it refuses a write over another ``updated_at``
than it has. That is a whole second, so what is handed out was read after that second had passed.
Only a parsed 200 says that a page is there or not: everything else is unknown.
"""

from collections.abc import Callable
from datetime import datetime

from content_pipeline.adapters.cms.ghost_api import GhostAPI
from content_pipeline.adapters.cms.ghost_changes import changes_since
from content_pipeline.adapters.cms.ghost_check import check_ghost
from content_pipeline.adapters.cms.ghost_pages import (
    GLANCE_FIELDS,
    PAGE_FIELDS,
    GhostForm,
    search_token,
    was_never_touched,
)
from content_pipeline.adapters.cms.json_service import Json
from content_pipeline.core.cms import (
    CMSCapabilities,
    CMSCheck,
    Document,
    Inventory,
    PageLookUp,
    RecentChanges,
    RemoteContent,
    RemotePage,
    RemoteStatus,
)
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.ports import Verdict


class GhostCMS:
    """Publishes to one Ghost. ``clock`` gives the time, aware and UTC."""

    capabilities = CMSCapabilities(
        client_id=False, compare_and_swap=True, drafts=True, marker_look_up=True, trash=False
    )

    def __init__(self, api: GhostAPI, form: GhostForm, *, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._json = api.json
        self._form = form
        self._clock = clock

    def close(self) -> None:
        """Close every connection."""
        self._json.close()

    # --- looking --------------------------------------------------------------------------------

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """By stored id (one request), else by mark and path (one more). Never raises."""
        doing = f"looking for {path}"
        try:
            return self._look_up(page_id, path, remote_id, doing)
        except CallFailed as failed:
            return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed.failure)

    def _look_up(self, page_id: str, path: str, remote_id: str | None, doing: str) -> PageLookUp:
        slug = self._form.slug_of(path)
        known = self._api.get(remote_id, doing=doing) if remote_id else None
        under_id = None if known is None else self._page(known, doing)
        if under_id is not None and _is_ours(under_id, page_id):
            return PageLookUp(verdict=Verdict.PRESENT, page=under_id)
        listed = self._api.find(search_token(page_id), slug, doing=doing)
        pages = [(self._page(found, doing), found) for found in listed]
        ours = [(page, found) for page, found in pages if _is_ours(page, page_id)]
        if ours:
            return _present(ours, path)
        standing = [page for page, _ in pages if page.path == path]
        # Last: our page that lost its mark and its address.
        standing += [under_id] if under_id is not None else []
        if standing:
            return PageLookUp(verdict=Verdict.PRESENT, page=standing[0])
        return PageLookUp(verdict=Verdict.ABSENT)

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text that the page holds now. Raises CallFailed: conflict when it is gone."""
        doing = f"reading {page.path}"
        found = self._api.get(page.remote_id, fields=f"{PAGE_FIELDS},html", doing=doing)
        if found is None:
            raise self._json.conflict(doing, "the page was deleted meanwhile")
        return self._json.read(self._form.content, found, doing=doing)

    def inventory(self, next_slice: str | None) -> Inventory:
        """The next hundred pages by id. A page deleted while slices are read may hide another."""
        number, doing = int(next_slice or 1), "listing all pages"
        listed = self._api.slice(number, fields=GLANCE_FIELDS, doing=doing)
        return Inventory(
            glances=tuple(
                self._json.read(self._form.glance, found, doing=doing) for found in listed.pages
            ),
            next_slice=str(number + 1) if listed.more else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Pages written since ``point``, a time of Ghost's clock, and a minute before it."""
        return changes_since(self._api, self._form, point, now=self._clock())

    def check(self) -> CMSCheck:
        """Whether key and address allow publishing; changes nothing."""
        return check_ghost(self._api, self._form, clock=self._clock)

    # --- writing --------------------------------------------------------------------------------

    def create_draft(self, document: Document) -> RemotePage:
        """Create the page as a draft. Raises CallFailed."""
        doing = f"creating {document.path}"
        # A site may keep what is new for its members; what becomes of it later is the editors'.
        new = {"status": "draft", "visibility": "public", **self._form.written(document)}
        return self._now(self._api.create(new, doing=doing), doing)

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Publish by id exactly over what ``replacing`` saw, or a new draft.

        Nothing is written when the page is already just that. Raises CallFailed; a page that would
        be public elsewhere than asked is a draft again before the conflict is raised.
        """
        doing = f"publishing {document.path}"
        if replacing is None:
            replacing = self._own_draft(document, doing)
        if _is_wanted(replacing, document):
            seen = self._api.get(replacing.remote_id, doing=doing)
            if seen is not None and self._page(seen, doing) == replacing:
                return replacing
        self._api.update(
            replacing.remote_id,
            {"status": "published", **self._form.written(document)},
            version=replacing.version,
            doing=doing,
        )
        page = self._now(replacing.remote_id, doing)
        if page.path != document.path:
            if not _is_public(replacing) and _is_public(page):
                self._hide(page, doing)
            raise self._json.conflict(
                doing, f"the address is taken, it was given {page.path} instead"
            )
        return page

    def withdraw(self, page: RemotePage) -> None:
        """Make the page a draft. Raises CallFailed: conflict when it is not what was seen."""
        doing = f"withdrawing {page.path}"
        now = self._still(page, doing)
        if now is not None and _is_public(now):
            self._hide(page, doing)

    def remove(self, page: RemotePage) -> None:
        """Delete the page for good: Ghost has no trash. Raises CallFailed as ``withdraw``.

        A public page is made a draft first, for that write is refused when somebody was faster;
        a deletion is not.
        """
        doing = f"removing {page.path}"
        now = self._still(page, doing)
        if now is None:
            return
        if _is_public(now):
            self._hide(page, doing)
        self._api.delete(page.remote_id, doing=doing)

    def _own_draft(self, document: Document, doing: str) -> RemotePage:
        draft = self.create_draft(document)
        if draft.path != document.path:
            self.remove(draft)
            raise self._json.conflict(
                doing, f"the address is taken, {draft.path} was offered instead"
            )
        return draft

    def _hide(self, page: RemotePage, doing: str) -> None:
        self._api.update(page.remote_id, {"status": "draft"}, version=page.version, doing=doing)

    def _still(self, page: RemotePage, doing: str) -> RemotePage | None:
        """The page as it stands, None when it is gone already. Raises CallFailed (conflict)."""
        found = self._api.get(page.remote_id, doing=doing)
        now = None if found is None else self._page(found, doing)
        if now is not None and now.fingerprint != page.fingerprint:
            raise self._json.conflict(doing, "its text was changed meanwhile, so it is left alone")
        return now

    def _now(self, remote_id: str, doing: str) -> RemotePage:
        """The page that was just written, read in a later second."""
        found = self._api.get(remote_id, doing=doing)
        if found is None:
            raise self._json.conflict(doing, "it was written, and deleted by somebody right after")
        return self._page(found, doing)

    def _page(self, found: Json, doing: str) -> RemotePage:
        return self._json.read(self._form.page, found, doing=doing)


def _present(ours: list[tuple[RemotePage, Json]], path: str) -> PageLookUp:
    """The page among several with our mark, and its twins.

    A copy that a person made has our mark and another title; only what nobody touched is a twin.
    """
    ours.sort(key=lambda each: (not _is_public(each[0]), each[0].path != path, each[0].remote_id))
    (page, _), others = ours[0], ours[1:]
    twins = [twin for twin, found in others if twin.intact and was_never_touched(found)]
    return PageLookUp(verdict=Verdict.PRESENT, page=page, twins=tuple(twins))


def _is_ours(page: RemotePage, page_id: str) -> bool:
    return page.marker is not None and page.marker.page_id == page_id


def _is_public(page: RemotePage) -> bool:
    return page.status is RemoteStatus.PUBLISHED


def _is_wanted(page: RemotePage, document: Document) -> bool:
    exact = page.marker == document.marker and page.intact
    return exact and _is_public(page) and page.path == document.path
