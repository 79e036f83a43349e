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
from content_pipeline.adapters.cms.folder_paths import page_file
from content_pipeline.adapters.cms.page_html import render_page
from content_pipeline.adapters.cms.page_marker import mark_of, parse_marker
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import (
    CMSCapabilities,
    Document,
    PageLookUp,
    RemotePage,
    RemoteStatus,
    Verdict,
)


class FolderCMS:
    """Publishes to the folder ``root``, which is created with the first page.

    ``base_url`` is where the folder is served, without a trailing slash; ``clock`` gives the time
    (aware, UTC) of a line in the folder's log of writes: time, path and revision, tab-separated.
    """

    capabilities = CMSCapabilities(
        client_id=True, compare_and_swap=True, drafts=False, marker_look_up=False
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

    def _page(self, path: str, held: bytes) -> RemotePage:
        return RemotePage(
            remote_id=path,
            path=path,
            url=self._base_url + path,
            status=RemoteStatus.PUBLISHED,
            marker=parse_marker(mark_of(held)),
            fingerprint=_fingerprint(held),
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
