"""A static site in a git repository as a CMS: a page is a file, and a push is a publish.

What belongs here: the CMS port. The branch is compared and swapped as a whole, and the page's own
file with what the caller saw, so neither a page nor a person's edit is ever written over. What is
on the branch is accepted; it is published when the site itself says that it shows that very file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from content_pipeline.adapters.cms.git_changes import Put, TakeAway
from content_pipeline.adapters.cms.git_checks import check_site
from content_pipeline.adapters.cms.git_clone import Blob, GitClone
from content_pipeline.adapters.cms.git_deployed import deployed_commit
from content_pipeline.adapters.cms.git_page_file import Scalar, read_page_file
from content_pipeline.adapters.cms.git_site_index import PageEntry, SiteIndex, own_file
from content_pipeline.adapters.cms.git_writer import GitWriter
from content_pipeline.core.cms import (
    CMSCapabilities,
    CMSCheck,
    Document,
    Glance,
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

SLICE = 1000
"""Pages of one slice of the inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSite:
    """How a site lies in its repository."""

    base_url: str
    """Where the site is served, without a trailing slash."""
    content_folder: str = "content"
    deployed: str | None = None
    """URL or file with the commit that visitors see; None: what is committed counts as shown."""
    front_matter: Mapping[str, Scalar] = field(default_factory=dict)
    """Further keys of every page of ours."""


class GitCMS:
    """Publishes to the branch of ``clone``; ``clock`` gives the time (aware, UTC) of commits."""

    capabilities = CMSCapabilities(
        client_id=True, compare_and_swap=True, drafts=False, marker_look_up=True, trash=False
    )

    def __init__(self, clone: GitClone, site: GitSite, *, clock: Callable[[], datetime]) -> None:
        self._clone = clone
        self._site = site
        self._clock = clock
        self._index = SiteIndex(site.content_folder)
        self._writer = GitWriter(clone=clone, index=self._index, clock=clock)

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """What the branch holds now: the file with our mark, else whatever stands at the path."""
        try:
            own_file(self._site.content_folder, path)
            self._writer.refresh()
            found = self._marked(page_id, path, remote_id)
            found = found or self._pages(self._index.standing_at(path))
        except CallFailed as error:
            return PageLookUp(verdict=Verdict.UNKNOWN, failure=error.failure)
        if not found:
            return PageLookUp(verdict=Verdict.ABSENT)
        # No twins: a write of ours cannot leave one here, so a copy is a person's work.
        return PageLookUp(verdict=Verdict.PRESENT, page=found[0])

    def create_draft(self, document: Document) -> RemotePage:
        """Never possible: the branch is what is deployed. Raises CallFailed (request)."""
        raise CallFailed(
            Failure(
                failure_class=FailureClass.REQUEST,
                message=f"a branch has no drafts, so {document.path} cannot be created as one",
            )
        )

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Commit the page over exactly what ``replacing`` saw, and push.

        Nothing is committed when the branch already holds it. Raises CallFailed as
        ``GitWriter.write``, and invalid_input for a path or text that cannot be a content file.
        """
        change = Put(
            document=document,
            replacing=replacing,
            extra=self._site.front_matter,
            clone=self._clone,
        )
        name = change.target(self._site.content_folder)
        self._writer.write(change)
        entry = self._index.named(name)
        pages = self._pages([entry]) if entry is not None else []
        if not pages:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.UNCERTAIN,
                    message=f"{name} was pushed and removed again at once; look at it again",
                )
            )
        return pages[0]

    def withdraw(self, page: RemotePage) -> None:
        """Take the page's file off the branch: the history keeps it, and visitors lose it."""
        self.remove(page)

    def remove(self, page: RemotePage) -> None:
        """Delete the page's file if it is what ``page`` saw. Raises CallFailed as ``publish``."""
        self._writer.write(TakeAway(page=page))

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text of the page's file now. Raises CallFailed: conflict when it is gone."""
        self._writer.refresh()
        entry = self._index.named(page.remote_id)
        if entry is None:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.CONFLICT,
                    message=f"{page.path} cannot be read: {page.remote_id} was removed meanwhile",
                )
            )
        return read_page_file(self._clone.blobs([entry.blob_id])[entry.blob_id]).content

    def inventory(self, next_slice: str | None) -> Inventory:
        """The next SLICE pages by file name. Raises CallFailed."""
        self._writer.refresh()
        names = [name for name in self._index.names() if next_slice is None or name >= next_slice]
        pages = self._named(names[:SLICE])
        return Inventory(
            glances=tuple(
                Glance(remote_id=at.remote_id, path=at.path, status=at.status, version=at.version)
                for at in pages
            ),
            next_slice=names[SLICE] if len(names) > SLICE else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Pages whose file is another than at the commit ``point``. Raises CallFailed.

        Of a point that the branch's history no longer holds, all pages may have changed.
        """
        self._writer.refresh()
        head = self._index.commit
        assert head is not None
        names: list[str] = []
        if point is not None and not self._clone.knows(point):
            names = self._index.names()
        elif point is not None:
            changed = self._clone.changed(point, head, self._site.content_folder)
            names = [blob.name for blob in changed]
        return RecentChanges(pages=tuple(self._named(names)), point=head)

    def check(self) -> CMSCheck:
        """Whether the repository can be read and pushed to, and what the site shows."""
        return check_site(
            self._clone,
            content_folder=self._site.content_folder,
            deployed=self._site.deployed,
        )

    def _marked(self, page_id: str, path: str, remote_id: str | None) -> list[RemotePage]:
        """Our page first, then its copies."""
        pages = [
            page
            for page in self._pages(self._index.marked(page_id))
            if page.marker is not None and page.marker.page_id == page_id
        ]
        return sorted(
            pages, key=lambda page: (page.remote_id != remote_id, page.path != path, page.remote_id)
        )

    def _named(self, names: list[str]) -> list[RemotePage]:
        entries = (self._index.named(name) for name in names)
        return self._pages([entry for entry in entries if entry is not None])

    def _pages(self, entries: list[PageEntry]) -> list[RemotePage]:
        if not entries:
            return []
        texts = self._clone.blobs([entry.blob_id for entry in entries])
        shown = self._shown(entries)
        now = self._clock()
        return [
            self._page(entry, texts[entry.blob_id], shown=entry in shown, now=now)
            for entry in entries
        ]

    def _page(self, entry: PageEntry, text: bytes, *, shown: bool, now: datetime) -> RemotePage:
        file = read_page_file(text)
        status = RemoteStatus.PUBLISHED if shown else RemoteStatus.ACCEPTED
        return RemotePage(
            remote_id=entry.name,
            path=entry.path,
            url=self._site.base_url + entry.path,
            status=RemoteStatus.HIDDEN if file.is_hidden(now) else status,
            marker=file.marker,
            fingerprint=file.fingerprint,
            version=entry.blob_id,
            intact=file.intact,
        )

    def _shown(self, entries: list[PageEntry]) -> set[PageEntry]:
        """The entries whose very content visitors see."""
        if self._site.deployed is None:
            return set(entries)
        try:
            commit = deployed_commit(self._site.deployed)
        except CallFailed:
            return set()  # nobody can say what visitors see: nothing is proved
        blobs = [Blob(entry.name, entry.blob_id) for entry in entries]
        same = self._clone.same_at(commit, blobs)
        return {entry for entry in entries if entry.name in same}
