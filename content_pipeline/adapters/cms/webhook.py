"""A site's own endpoint as a CMS: signed requests, by a contract that anybody can implement.

What belongs here: the CMS port. What the receiver can it says itself, or the site's file does; the
publish protocol then promises no more than that allows. Only a parsed 200 that names the contract
says that a page is there or not: everything else is unknown.
"""

from contextlib import suppress

from content_pipeline.adapters.cms.json_service import Json
from content_pipeline.adapters.cms.webhook_endpoint import WebhookEndpoint
from content_pipeline.adapters.cms.webhook_pages import (
    capabilities_in,
    content_in,
    glance_in,
    page_in,
    written,
)
from content_pipeline.core.cms import (
    CAPABILITY_NAMES,
    CMSCapabilities,
    CMSCheck,
    Document,
    Inventory,
    PageLookUp,
    RecentChanges,
    RemoteContent,
    RemotePage,
    RemoteStatus,
    capabilities_of,
)
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict

NOTHING_KNOWN = capabilities_of([])
"""Of a receiver that did not answer yet: the weakest protocol is right for it."""

_PREFERENCE = (
    RemoteStatus.PUBLISHED,
    RemoteStatus.ACCEPTED,
    RemoteStatus.HIDDEN,
    RemoteStatus.TRASHED,
)
"""Of several pages with our mark the first is the page."""


class WebhookCMS:
    """Publishes to one receiver."""

    def __init__(
        self, endpoint: WebhookEndpoint, *, base_url: str, declared: CMSCapabilities | None = None
    ) -> None:
        """``declared``: what the receiver can, when it is not to be asked."""
        self._endpoint = endpoint
        self._json = endpoint.json
        self._base_url = base_url
        self._declared = declared

    def close(self) -> None:
        """Close every connection."""
        self._json.close()

    @property
    def capabilities(self) -> CMSCapabilities:
        """What the receiver declares; it is asked until it answered once."""
        if self._declared is None:
            with suppress(CallFailed):
                self._declared = self._ask_capabilities()
        return self._declared or NOTHING_KNOWN

    # --- looking --------------------------------------------------------------------------------

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """By stored id, mark and path in one request. Never raises."""
        try:
            pages = self._find(page_id, path, remote_id, f"looking for {path}")
        except CallFailed as failed:
            return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed.failure)
        ours = [page for page in pages if page.marker and page.marker.page_id == page_id]
        if ours:
            return _present(ours, path, remote_id)
        standing = [page for page in pages if _stands_at(page, path)]
        # Last: our page that lost its mark and its address.
        standing += [page for page in pages if page.remote_id == remote_id]
        if standing:
            return PageLookUp(verdict=Verdict.PRESENT, page=standing[0])
        return PageLookUp(verdict=Verdict.ABSENT)

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text that the page holds now. Raises CallFailed: conflict when it is gone."""
        doing = f"reading {page.path}"
        listed = self._endpoint.find(
            page_id=_page_id(page), path=page.path, remote_id=page.remote_id, doing=doing
        )
        for found in listed:
            if found.get("remote_id") == page.remote_id:
                return self._json.read(content_in, found, doing=doing)
        raise self._json.conflict(doing, "the page was deleted meanwhile")

    def inventory(self, next_slice: str | None) -> Inventory:
        """The receiver's next slice; nothing where it lists none, so each page is asked about."""
        if not self.capabilities.inventory:
            return Inventory(glances=(), next_slice=None)
        doing = "listing all pages"
        listed, following = self._endpoint.inventory(next_slice, doing=doing)
        glances = [self._json.read(glance_in, found, doing=doing) for found in listed]
        return Inventory(glances=tuple(glances), next_slice=following)

    def recent_changes(self, point: str | None) -> RecentChanges:
        """What the receiver says changed; nothing where it does not tell."""
        if not self.capabilities.inventory:
            return RecentChanges(pages=(), point=point or "")
        doing = "asking for recent changes"
        listed, following = self._endpoint.changes(point or None, doing=doing)
        pages = [self._page(found, doing) for found in listed] if point else []
        return RecentChanges(pages=tuple(pages), point=following)

    def check(self) -> CMSCheck:
        """Whether the receiver answers by the contract and accepts the signature."""
        try:
            told = self._endpoint.describe()
            self._find(None, "/", None, "looking for a page")
            if self._declared is None:
                self._declared = self._ask_capabilities()
        except CallFailed as failed:
            return CMSCheck(identity="", problems=(failed.failure.message,))
        name = told.get("name")
        offers = self.capabilities
        can = [each for each in CAPABILITY_NAMES if getattr(offers, each)]
        return CMSCheck(
            identity=f"{name if isinstance(name, str) and name else self._json.name}",
            notes=(f"{self._json.name} can: {', '.join(can) or 'nothing beyond the least'}",),
        )

    # --- writing --------------------------------------------------------------------------------

    def create_draft(self, document: Document) -> RemotePage:
        """Create the page invisible. Raises CallFailed; without drafts: request."""
        doing = f"creating {document.path}"
        if not self.capabilities.drafts:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.REQUEST,
                    message=f"{self._json.name}, {doing}: it declares no drafts",
                )
            )
        return self._put("draft", document, None, doing)

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Publish over what ``replacing`` saw; nothing is written when it is just that already.

        Raises CallFailed; a page that became public elsewhere than asked is taken off the site
        before the conflict is raised.
        """
        doing = f"publishing {document.path}"
        if replacing is not None and _is_wanted(replacing, document):
            now = self._now(replacing, doing)
            if now == replacing:
                return now
        page = self._put("publish", document, replacing, doing)
        if page.path != document.path:
            if replacing is None or replacing.status is not RemoteStatus.PUBLISHED:
                self.withdraw(page)
            raise self._json.conflict(
                doing, f"the address is taken, it was given {page.path} instead"
            )
        return page

    def withdraw(self, page: RemotePage) -> None:
        """Hide the page, or remove it where there are no drafts. Raises CallFailed (conflict)."""
        if not self.capabilities.drafts:
            self.remove(page)
            return
        doing = f"withdrawing {page.path}"
        now = self._still(page, doing)
        if now is not None and now.status in (RemoteStatus.PUBLISHED, RemoteStatus.ACCEPTED):
            self._endpoint.put(
                "withdraw", _page_id(page) or "-", replaces=page, document=None, doing=doing
            )

    def remove(self, page: RemotePage) -> None:
        """Take the page away, into the trash where there is one. Raises CallFailed (conflict)."""
        doing = f"removing {page.path}"
        if self._still(page, doing) is not None:
            self._endpoint.put(
                "remove", _page_id(page) or "-", replaces=page, document=None, doing=doing
            )

    # --- answers --------------------------------------------------------------------------------

    def _ask_capabilities(self) -> CMSCapabilities:
        return self._json.read(
            capabilities_in, self._endpoint.describe(), doing="asking what it can"
        )

    def _put(
        self, action: str, document: Document, replacing: RemotePage | None, doing: str
    ) -> RemotePage:
        found = self._endpoint.put(
            action,
            document.marker.page_id,
            replaces=replacing,
            document=written(document),
            doing=doing,
        )
        if found is None:
            raise CallFailed(self._json.unreadable(doing, writes=True))
        return self._page(found, doing, writes=True)

    def _find(
        self, page_id: str | None, path: str, remote_id: str | None, doing: str
    ) -> list[RemotePage]:
        listed = self._endpoint.find(page_id=page_id, path=path, remote_id=remote_id, doing=doing)
        return [self._page(found, doing) for found in listed]

    def _now(self, page: RemotePage, doing: str) -> RemotePage | None:
        pages = self._find(_page_id(page), page.path, page.remote_id, doing)
        return next((now for now in pages if now.remote_id == page.remote_id), None)

    def _still(self, page: RemotePage, doing: str) -> RemotePage | None:
        """The page as it stands, None when it is gone already. Raises CallFailed (conflict)."""
        now = self._now(page, doing)
        if now is None or now.status is RemoteStatus.TRASHED:
            return None
        if now.fingerprint != page.fingerprint:
            raise self._json.conflict(doing, "its text was changed meanwhile, so it is left alone")
        return now

    def _page(self, found: Json, doing: str, *, writes: bool = False) -> RemotePage:
        def reader(told: Json) -> RemotePage:
            return page_in(told, self._base_url)

        return self._json.read(reader, found, doing=doing, writes=writes)


def _present(ours: list[RemotePage], path: str, remote_id: str | None) -> PageLookUp:
    """The page among several with our mark, and its twins: untouched pages that nobody sees."""
    ours.sort(
        key=lambda page: (
            page.remote_id != remote_id,
            _PREFERENCE.index(page.status),
            page.path != path,
        )
    )
    twins = [page for page in ours[1:] if page.intact and page.status is RemoteStatus.HIDDEN]
    return PageLookUp(verdict=Verdict.PRESENT, page=ours[0], twins=tuple(twins))


def _page_id(page: RemotePage) -> str | None:
    return page.marker.page_id if page.marker else None


def _stands_at(page: RemotePage, path: str) -> bool:
    return page.path == path and page.status is not RemoteStatus.TRASHED


def _is_wanted(page: RemotePage, document: Document) -> bool:
    exact = page.marker == document.marker and page.intact
    return exact and page.status is RemoteStatus.PUBLISHED and page.path == document.path
