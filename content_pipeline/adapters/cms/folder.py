"""A folder as a CMS: every page is one file that a web server or a browser shows as it stands.

What belongs here: the CMS port on top of a site's folder. The path is the id, so creating twice
cannot make two pages; every write compares what stands there, under the folder's lock, with what
the caller saw. A person who edits a file without that lock between the comparison and the rename
(well under a millisecond) is the one race left.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.adapters.cms.folder_paths import PAGE_FILE, page_file
from content_pipeline.adapters.cms.page_html import render_page
from content_pipeline.adapters.cms.page_marker import mark_of, parse_marker
from content_pipeline.adapters.cms.page_reading import read_page, says_what_it_is_marked
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
"""Pages of one slice of the inventory: read in well under a second."""

CLOCK_SLACK_S = 1.0
"""The file system's clock lags behind the process's by some milliseconds."""


class FolderCMS:
    """Publishes to the folder ``root``, which is created with the first page.

    ``base_url`` is where the folder is served, without a trailing slash; ``clock`` gives the time
    (aware, UTC) of a line in the folder's log of writes: time, path and revision, tab-separated.
    """

    capabilities = CMSCapabilities(
        client_id=True, compare_and_swap=True, drafts=False, marker_look_up=False, trash=False
    )

    def __init__(self, root: Path, *, base_url: str, clock: Callable[[], datetime]) -> None:
        self._folder = SiteFolder(root=root)
        self._base_url = base_url
        self._clock = clock

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:  # noqa: ARG002 - the path is the id
        """What the file of ``path`` holds; unknown when it cannot be read as a file."""
        try:
            held = self._folder.read(page_file(path))
        except CallFailed as error:
            return PageLookUp(verdict=Verdict.UNKNOWN, failure=error.failure)
        if held is None:
            return PageLookUp(verdict=Verdict.ABSENT)
        return PageLookUp(verdict=Verdict.PRESENT, page=self._page(path, held))

    def create_draft(self, document: Document) -> RemotePage:
        """Never possible: a file in the folder is public. Raises CallFailed (request)."""
        raise CallFailed(
            Failure(
                failure_class=FailureClass.REQUEST,
                message=f"a folder has no drafts, so {document.path} cannot be created as one",
            )
        )

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Write the page's file over exactly what ``replacing`` saw.

        Nothing is written when the file already holds these bytes. Raises CallFailed: conflict,
        invalid_input (the path), storage (nothing changed), transient (the lock), uncertain.
        """
        name = page_file(document.path)
        wanted = render_page(document)
        with self._folder.writing() as writer:
            held = self._folder.read(name)
            _refuse_unless_as_seen(document.path, held, replacing)
            if held != wanted:
                writer.replace(name, wanted)
                revision = document.marker.revision
                writer.record(f"{self._clock().isoformat()}\t{document.path}\t{revision}")
        return self._page(document.path, wanted)

    def withdraw(self, page: RemotePage) -> None:
        """Remove the page's file: a folder hides nothing that stands in it."""
        self.remove(page)

    def remove(self, page: RemotePage) -> None:
        """Remove the page's file if it is what ``page`` saw. Raises CallFailed as ``publish``."""
        name = page_file(page.path)
        with self._folder.writing() as writer:
            held = self._folder.read(name)
            if held is None:
                return
            _refuse_unless_as_seen(page.path, held, page)
            writer.remove(name)
            writer.record(f"{self._clock().isoformat()}\t{page.path}\tremoved")

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text of the page's file now. Raises CallFailed: conflict when it is gone, storage."""
        held = self._folder.read(page_file(page.path))
        if held is None:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.CONFLICT,
                    message=f"{page.path} cannot be read: the file was removed meanwhile",
                )
            )
        return read_page(held)

    def inventory(self, next_slice: str | None) -> Inventory:
        """The next SLICE pages by path. Raises CallFailed (storage)."""
        paths = [path for path in self._paths() if next_slice is None or path >= next_slice]
        here, later = paths[:SLICE], paths[SLICE:]
        pages = filter(None, map(self._seen, here))
        return Inventory(
            glances=tuple(
                Glance(remote_id=at.remote_id, path=at.path, status=at.status, version=at.version)
                for at in pages
            ),
            next_slice=later[0] if later else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Pages whose file was written since ``point``, a time. Raises CallFailed (storage)."""
        now = self._clock().timestamp() - CLOCK_SLACK_S
        paths = [] if point is None else self._paths(written_since_s=float(point))
        return RecentChanges(pages=tuple(filter(None, map(self._seen, paths))), point=repr(now))

    def check(self) -> CMSCheck:
        """Whether the folder can be written by this user; it is created with its first page."""
        problem = self._folder.problem()
        return CMSCheck(
            identity=f"folder {self._folder.root}", problems=(problem,) if problem else ()
        )

    def _paths(self, *, written_since_s: float = 0.0) -> list[str]:
        names = self._folder.files_called(PAGE_FILE, written_since_s=written_since_s)
        # The root's own index lists the pages and is none.
        return sorted("/" + name.removesuffix(PAGE_FILE) for name in names if name != PAGE_FILE)

    def _seen(self, path: str) -> RemotePage | None:
        try:
            held = self._folder.read(page_file(path))
        except CallFailed as error:
            if error.failure.failure_class is FailureClass.INVALID_INPUT:
                return None  # no page of ours can stand there
            raise
        return None if held is None else self._page(path, held)

    def _page(self, path: str, held: bytes) -> RemotePage:
        marker = parse_marker(mark_of(held))
        return RemotePage(
            remote_id=path,
            path=path,
            url=self._base_url + path,
            status=RemoteStatus.PUBLISHED,
            marker=marker,
            fingerprint=_fingerprint(held),
            version=_fingerprint(held),
            intact=says_what_it_is_marked(read_page(held), marker),
        )


def _fingerprint(held: bytes) -> str:
    return hashlib.sha256(held).hexdigest()


def _refuse_unless_as_seen(path: str, held: bytes | None, seen: RemotePage | None) -> None:
    if seen is None:
        problem = None if held is None else "a file already stands there"
    elif held is None:
        problem = "the file was removed meanwhile"
    else:
        problem = None if _fingerprint(held) == seen.fingerprint else "the file changed meanwhile"
    if problem:
        raise CallFailed(
            Failure(
                failure_class=FailureClass.CONFLICT,
                message=f"{path} was not written: {problem}; look at it again before replacing it",
            )
        )
