"""WordPress as a CMS: pages or posts over its REST API, with an application password.

What belongs here: the CMS port. A page is created as a draft and published by its id, so a lost
create leaves no public page; our mark in the content finds it again. WordPress itself keeps no key
unique and refuses no stale write; with the companion plugin it does both. Only a parsed 200 says
that a page is there or not: everything else is unknown.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from content_pipeline.adapters.cms.wordpress_changes import changes_since
from content_pipeline.adapters.cms.wordpress_check import check_site
from content_pipeline.adapters.cms.wordpress_content import search_token
from content_pipeline.adapters.cms.wordpress_pages import (
    GLANCE_FIELDS,
    Json,
    PageForm,
    status_of,
    was_never_edited,
)
from content_pipeline.adapters.cms.wordpress_paths import ParentPages, slugs_of
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
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
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict

_PREFERENCE = (
    RemoteStatus.PUBLISHED,
    RemoteStatus.ACCEPTED,
    RemoteStatus.HIDDEN,
    RemoteStatus.TRASHED,
)
"""Of several pages with our mark the first is the page."""


class WordPressCMS:
    """Publishes to one WordPress site. ``clock`` gives the time, aware and UTC."""

    def __init__(
        self,
        rest: WordPressREST,
        form: PageForm,
        *,
        content_type: str,
        clock: Callable[[], datetime],
    ) -> None:
        self._rest = rest
        self._json = rest.json
        self._form = form
        self._content_type = content_type
        self._clock = clock
        self._parents = ParentPages(rest, form)

    def close(self) -> None:
        """Close every connection."""
        self._rest.close()

    @property
    def capabilities(self) -> CMSCapabilities:
        """What the site offers, by its last answer; it is asked once when there was none yet."""
        if self._rest.guarded is None:
            # The weaker protocol is right for a site that does not answer.
            self._rest.guarded = False
            with suppress(CallFailed):
                self._rest.index()
        guarded = self._rest.guarded is True
        return CMSCapabilities(
            client_id=guarded,
            compare_and_swap=guarded,
            drafts=True,
            marker_look_up=True,
            trash=True,
        )

    # --- looking --------------------------------------------------------------------------------

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """By stored id (one request for a public page), then by mark, then at the path.

        Never raises.
        """
        return self._looked_up(page_id, path, remote_id, asks_at_path=True)

    def find_ours(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """By stored id, then by mark: one request less than a whole look-up. Never raises."""
        return self._looked_up(page_id, path, remote_id, asks_at_path=False)

    def _looked_up(
        self, page_id: str, path: str, remote_id: str | None, *, asks_at_path: bool
    ) -> PageLookUp:
        doing = f"looking for {path}"
        try:
            return self._look_up(page_id, path, remote_id, doing, asks_at_path=asks_at_path)
        except CallFailed as failed:
            failure = failed.failure
        except ValueError:
            failure = self._json.unreadable(doing, writes=False)
        return PageLookUp(verdict=Verdict.UNKNOWN, failure=failure)

    def _look_up(
        self, page_id: str, path: str, remote_id: str | None, doing: str, *, asks_at_path: bool
    ) -> PageLookUp:
        slug, fields = slugs_of(path)[-1], self._form.page_fields
        known = self._rest.get(remote_id, fields=fields, doing=doing) if remote_id else None
        under_id = None if known is None else self._form.page(known)
        is_known = under_id is not None and _is_ours(under_id, page_id)
        if under_id is not None and is_known and _is_public(under_id):
            return PageLookUp(verdict=Verdict.PRESENT, page=under_id)
        listed = self._rest.find(search_token(page_id), or_slugs=[slug], fields=fields, doing=doing)
        found_by_id = {str(found["id"]): found for found in listed.pages}
        if known is not None and is_known:
            found_by_id[str(known["id"])] = known  # lists may be behind, this one never is
        pages = [self._form.page(found) for found in found_by_id.values()]
        ours = [page for page in pages if _is_ours(page, page_id)]
        if ours:
            return self._present(ours, path, found_by_id)
        if asks_at_path and not listed.guarded:
            there = self._rest.with_slugs([slug], fields=fields, doing=doing)
            pages = [self._form.page(found) for found in there.pages]
        standing = [page for page in pages if _stands_at(page, path)]
        # Last: our page that lost its mark and its address, or one that got its id by chance.
        standing += [under_id] if under_id is not None else []
        if standing:
            return PageLookUp(verdict=Verdict.PRESENT, page=standing[0])
        return PageLookUp(verdict=Verdict.ABSENT)

    def _present(
        self, ours: list[RemotePage], path: str, found_by_id: Mapping[str, Json]
    ) -> PageLookUp:
        """The page among several with our mark, and its twins.

        What is in the trash is no twin any more, and a copy that a person made never was one.
        """
        ours.sort(
            key=lambda page: (
                _PREFERENCE.index(page.status),
                page.path != path,
                int(page.remote_id),
            )
        )
        others = [page for page in ours[1:] if page.status is not RemoteStatus.TRASHED]
        twins = [page for page in others if self._rest.is_mine(found_by_id[page.remote_id])]
        return PageLookUp(verdict=Verdict.PRESENT, page=ours[0], twins=tuple(twins))

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text that the page holds now. Raises CallFailed: conflict when it is gone."""
        doing = f"reading {page.path}"
        found = self._rest.get(page.remote_id, fields=self._form.page_fields, doing=doing)
        if found is None:
            raise self._json.conflict(doing, "the page was deleted meanwhile")
        return self._json.read(self._form.content, found, doing=doing)

    def inventory(self, next_slice: str | None) -> Inventory:
        """The next hundred pages by id. A page deleted while slices are read may hide another."""
        number, doing = int(next_slice or 1), "listing all pages"
        listed = self._rest.slice(number, fields=GLANCE_FIELDS, doing=doing)
        return Inventory(
            glances=tuple(
                self._json.read(self._form.glance, found, doing=doing) for found in listed.pages
            ),
            next_slice=str(number + 1) if listed.more else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Pages written since ``point``, a time of WordPress's clock, and a minute before it."""
        return changes_since(self._rest, self._form, point, now=self._clock())

    def check(self) -> CMSCheck:
        """Whether account, rights and settings allow publishing; changes nothing."""
        return check_site(
            self._rest, self._form, content_type=self._content_type, clock=self._clock
        )

    # --- writing --------------------------------------------------------------------------------

    def create_draft(self, document: Document) -> RemotePage:
        """Create the page as a draft. Raises CallFailed; one with our key exists: conflict."""
        doing = f"creating {document.path}"
        with self._parents.of(document.path):
            created = self._rest.create(
                {"status": "draft", **self._placed(document), **self._form.written(document)},
                key=document.marker.page_id,
                fields=self._form.page_fields,
                doing=doing,
            )
        draft = self._json.read(self._form.page, created, doing=doing, writes=True)
        if draft.path != document.path:
            self._parents.forget(document.path)
        return draft

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Publish by id what ``replacing`` saw, or a new draft.

        Nothing is written when the page is already just that. Raises CallFailed; a page that would
        be public elsewhere than asked is a draft again before the conflict is raised.
        """
        doing = f"publishing {document.path}"
        if replacing is None:
            replacing = self._own_draft(document, doing)
        if _is_wanted(replacing, document):
            seen = self._rest.get(replacing.remote_id, fields=self._form.page_fields, doing=doing)
            page = None if seen is None else self._json.read(self._form.page, seen, doing=doing)
            if page is not None and page.standing == replacing.standing:
                return page
        with self._parents.of(document.path):
            written = self._rest.update(
                replacing.remote_id,
                {"status": "publish", **self._placed(document), **self._form.written(document)},
                version=replacing.version,
                fields=self._form.page_fields,
                doing=doing,
            )
        page = self._json.read(self._form.page, written, doing=doing, writes=True)
        self._refuse_elsewhere(page, document, was_public=_is_public(replacing), doing=doing)
        return page

    def withdraw(self, page: RemotePage) -> None:
        """Make the page a draft. Raises CallFailed: conflict when it is not what was seen."""
        doing = f"withdrawing {page.path}"
        if self._still(page, doing) is not None and _is_public(page):
            self._hide(page, doing)

    def remove(self, page: RemotePage) -> None:
        """Put the page into the trash; a draft that nobody ever edited is deleted for good.

        Such a draft, when our account made it, is a lost or unfit write: in the trash it would
        read as if a person had put the page there. Raises CallFailed as ``withdraw``.
        """
        doing = f"removing {page.path}"
        found = self._still(page, doing)
        if found is None or page.status is RemoteStatus.TRASHED:
            return
        hidden = {page.status, status_of(found)} == {RemoteStatus.HIDDEN}
        self._rest.delete(
            page.remote_id,
            version=page.version,
            for_good=hidden and was_never_edited(found) and self._rest.is_mine(found),
            doing=doing,
        )

    def _own_draft(self, document: Document, doing: str) -> RemotePage:
        draft = self.create_draft(document)
        if draft.path != document.path:
            self.remove(draft)
            raise self._json.conflict(
                doing, f"the address is taken, {draft.path} was offered instead"
            )
        return draft

    def _placed(self, document: Document) -> dict[str, object]:
        """The fields that say where the page stands."""
        slug = slugs_of(document.path)[-1]
        if self._content_type == "posts":
            return {"slug": slug}  # where posts stand is the site's own setting
        return {"slug": slug, "parent": self._parents.parent_of(document.path)}

    def _refuse_elsewhere(
        self, page: RemotePage, document: Document, *, was_public: bool, doing: str
    ) -> None:
        if page.path == document.path and page.status is RemoteStatus.PUBLISHED:
            return
        self._parents.forget(document.path)
        if not was_public:
            self._hide(page, doing)
        if page.path != document.path:
            raise self._json.conflict(
                doing, f"the address is taken, it was given {page.path} instead"
            )
        raise CallFailed(
            Failure(
                failure_class=FailureClass.TERMINAL,
                message=f"{self._rest.name}, {doing}: it was not published but scheduled, or kept "
                "for review; set the page's date to now and check the server's clock and what "
                "plugins do to new pages",
            )
        )

    def _hide(self, page: RemotePage, doing: str) -> None:
        self._rest.update(
            page.remote_id, {"status": "draft"}, version=page.version, fields="id", doing=doing
        )

    def _still(self, page: RemotePage, doing: str) -> Json | None:
        """The page as it stands, None when it is gone already. Raises CallFailed (conflict)."""
        found = self._rest.get(page.remote_id, fields=self._form.page_fields, doing=doing)
        if found is None:
            return None
        now = self._json.read(self._form.page, found, doing=doing)
        if now.status is RemoteStatus.TRASHED:
            return None
        if now.fingerprint != page.fingerprint:
            raise self._json.conflict(doing, "its text was changed meanwhile, so it is left alone")
        return found


def _is_ours(page: RemotePage, page_id: str) -> bool:
    return page.marker is not None and page.marker.page_id == page_id


def _is_public(page: RemotePage) -> bool:
    return page.status is RemoteStatus.PUBLISHED


def _stands_at(page: RemotePage, path: str) -> bool:
    return page.path == path and page.status is not RemoteStatus.TRASHED


def _is_wanted(page: RemotePage, document: Document) -> bool:
    exact = page.marker == document.marker and page.intact
    return exact and _is_public(page) and page.path == document.path
