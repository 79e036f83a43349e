"""Directus as a CMS: items of one collection over its REST API, with a static token.

What belongs here: the CMS port. The id of an item is ours and its key and path are unique, so
there is never a second item of a page; a stale write is not refused, so each write is preceded by
a look at what it replaces. Only a parsed 200 says that an item is there or not: everything else is
unknown.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from content_pipeline.adapters.cms.directus_api import DirectusAPI
from content_pipeline.adapters.cms.directus_check import check_collection
from content_pipeline.adapters.cms.directus_items import ItemForm, is_item_id, item_id_of
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
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict

OVERLAP = timedelta(seconds=60)
"""Directus takes the time of a write before it waits for its database."""


class DirectusCMS:
    """Publishes to one collection. ``clock`` gives the time, aware and UTC."""

    def __init__(self, api: DirectusAPI, form: ItemForm, *, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._json = api.json
        self._form = form
        self._clock = clock
        self.capabilities = CMSCapabilities(
            client_id=True,
            compare_and_swap=False,
            drafts=form.names.status is not None,
            marker_look_up=True,
            trash=form.archived is not None,
        )

    def close(self) -> None:
        """Close every connection."""
        self._json.close()

    # --- looking --------------------------------------------------------------------------------

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """By id, key and path in one request. Never raises."""
        try:
            pages = self._find(page_id, path, remote_id, f"looking for {path}")
        except CallFailed as failed:
            return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed.failure)
        ours = [page for page in pages if page.marker and page.marker.page_id == page_id]
        standing = [page for page in pages if _stands_at(page, path)]
        # Last: our item that lost its mark and its address.
        under_id = [page for page in pages if page.remote_id in (remote_id, item_id_of(page_id))]
        for page in (*ours, *standing, *under_id):
            return PageLookUp(verdict=Verdict.PRESENT, page=page)
        return PageLookUp(verdict=Verdict.ABSENT)

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text that the item holds now. Raises CallFailed: conflict when it is gone."""
        doing = f"reading {page.path}"
        found = self._item(page.remote_id, doing)
        if found is None:
            raise self._json.conflict(doing, "the item was deleted meanwhile")
        return self._json.read(self._form.content, found, doing=doing)

    def inventory(self, next_slice: str | None) -> Inventory:
        """The next hundred items by id. One deleted while slices are read may hide another."""
        number, doing = int(next_slice or 1), "listing all items"
        listed = self._api.slice(number, sort=self._form.names.id, doing=doing)
        return Inventory(
            glances=tuple(
                self._json.read(self._form.glance, found, doing=doing) for found in listed.items
            ),
            next_slice=str(number + 1) if listed.more else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Items written since ``point``, a time of Directus's clock, and a minute before it."""
        doing, updated = "asking for recent changes", self._form.names.updated
        # The time before the listing: what is written meanwhile shows again next time.
        told = self._api.slice(1, sort=self._form.names.id, doing=doing).date
        now = _time(told, self._clock()).isoformat()
        if point is None or updated is None:
            return RecentChanges(pages=(), point=now)
        since, pages, number, more = datetime.fromisoformat(point) - OVERLAP, [], 1, True
        while more:
            listed = self._api.changed_since(updated, since, number, doing=doing)
            pages += [self._page(found, doing) for found in listed.items]
            number, more = number + 1, listed.more
        return RecentChanges(pages=tuple(pages), point=max(now, point))

    def check(self) -> CMSCheck:
        """Whether token, rights and fields allow publishing; changes nothing."""
        return check_collection(self._api, self._form)

    # --- writing --------------------------------------------------------------------------------

    def create_draft(self, document: Document) -> RemotePage:
        """Create the item as a draft. Raises CallFailed; without a status field: request."""
        doing = f"creating {document.path}"
        if not self.capabilities.drafts:
            message = f"{self._json.name}, {doing}: the collection has no field for a status"
            raise CallFailed(Failure(failure_class=FailureClass.REQUEST, message=message))
        return self._create(document, self._form.draft, doing)

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Publish by id over what ``replacing`` saw, which is looked at once more just before.

        Nothing is written when the item is already just that. Raises CallFailed.
        """
        doing = f"publishing {document.path}"
        if replacing is None:
            return self._create(document, self._form.published, doing)
        now = self._now(replacing, doing)
        if now is None or now.standing != replacing.standing:
            raise self._json.conflict(doing, "the item is not what was seen before")
        if _is_wanted(now, document):
            return now
        fields = self._form.written(document, status=self._form.published)
        return self._updated(replacing, fields, doing)

    def withdraw(self, page: RemotePage) -> None:
        """Make the item a draft, or remove it where there are none. Raises CallFailed."""
        if not self.capabilities.drafts:
            self.remove(page)
            return
        doing = f"withdrawing {page.path}"
        now = self._still(page, doing)
        if now is not None and now.status is RemoteStatus.PUBLISHED:
            self._set_status(page, self._form.draft, doing)

    def remove(self, page: RemotePage) -> None:
        """Archive the item; delete a draft of ours for good, and all where there is no archive.

        In the archive an unfit draft would read as if a person had put it there. Raises CallFailed.
        """
        doing = f"removing {page.path}"
        now = self._still(page, doing)
        if now is None or now.status is RemoteStatus.TRASHED:
            return
        is_lost_draft = now.status is RemoteStatus.HIDDEN and now.intact
        if self._form.archived is not None and not is_lost_draft:
            self._set_status(page, self._form.archived, doing)
        elif not self._api.delete(page.remote_id, doing=doing):
            self._gone_or_refused(page, doing)

    def _create(self, document: Document, status: str, doing: str) -> RemotePage:
        item = {
            self._form.names.id: item_id_of(document.marker.page_id),
            **self._form.written(document, status=status),
        }
        return self._page(self._api.create(item, doing=doing), doing, writes=True)

    def _set_status(self, page: RemotePage, status: str, doing: str) -> None:
        assert self._form.names.status is not None
        self._updated(page, {self._form.names.status: status}, doing)

    def _updated(self, page: RemotePage, fields: Json, doing: str) -> RemotePage:
        found = self._api.update(page.remote_id, fields, doing=doing)
        if found is None:
            self._gone_or_refused(page, doing)
            raise self._json.conflict(doing, "the item was deleted meanwhile")
        return self._page(found, doing, writes=True)

    def _gone_or_refused(self, page: RemotePage, doing: str) -> None:
        """Raises CallFailed (auth) when the item that was not changed is there."""
        if self._now(page, doing) is not None:
            raise self._api.refused(doing)

    # --- answers --------------------------------------------------------------------------------

    def _find(self, page_id: str, path: str, remote_id: str | None, doing: str) -> list[RemotePage]:
        names = self._form.names
        ids = {item_id_of(page_id)} | (
            {remote_id} if remote_id and is_item_id(remote_id) else set()
        )
        terms = [{names.id: each} for each in sorted(ids)]
        terms += [{names.key: page_id}, {names.path: self._form.held_path(path)}]
        return [self._page(found, doing) for found in self._api.find(terms, doing=doing)]

    def _item(self, remote_id: str, doing: str) -> Json | None:
        found = self._api.find([{self._form.names.id: remote_id}], doing=doing)
        return found[0] if found else None

    def _now(self, page: RemotePage, doing: str) -> RemotePage | None:
        found = self._item(page.remote_id, doing)
        return None if found is None else self._page(found, doing)

    def _still(self, page: RemotePage, doing: str) -> RemotePage | None:
        """The item as it stands, None when it is gone already. Raises CallFailed (conflict)."""
        now = self._now(page, doing)
        if now is not None and now.fingerprint != page.fingerprint:
            raise self._json.conflict(doing, "its text was changed meanwhile, so it is left alone")
        return now

    def _page(self, found: Json, doing: str, *, writes: bool = False) -> RemotePage:
        return self._json.read(self._form.page, found, doing=doing, writes=writes)


def _stands_at(page: RemotePage, path: str) -> bool:
    return page.path == path and page.status is not RemoteStatus.TRASHED


def _is_wanted(page: RemotePage, document: Document) -> bool:
    exact = page.marker == document.marker and page.intact
    return exact and page.status is RemoteStatus.PUBLISHED and page.path == document.path


def _time(date: str | None, now: datetime) -> datetime:
    try:
        return parsedate_to_datetime(date or "").astimezone(UTC)
    except (ValueError, TypeError):
        return now
