"""The two changes of a page in a repository: put it there, take it away.

What belongs here: the comparison of what stands on the branch with what the caller saw, file by
file. It is made on the very commit that the push names, so nothing can come between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from content_pipeline.adapters.cms.git_clone import GitClone
from content_pipeline.adapters.cms.git_page_file import (
    PageFile,
    Scalar,
    read_page_file,
    write_page_file,
)
from content_pipeline.adapters.cms.git_site_index import PAGE_SUFFIX, SiteIndex, own_file
from content_pipeline.core.cms import Document, RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Let ``document`` be the page, over what ``replacing`` saw."""

    document: Document
    replacing: RemotePage | None
    extra: Mapping[str, Scalar]
    clone: GitClone

    @property
    def title(self) -> str:
        """What the change does."""
        return f"Publish {self.document.path} revision {self.document.marker.revision}"

    def target(self, content_folder: str) -> str:
        """The file it is written to: where a person moved it, as long as its address is ours."""
        own = own_file(content_folder, self.document.path)
        seen = self.replacing
        if seen is not None and seen.path == self.document.path:
            return seen.remote_id if seen.remote_id.endswith(PAGE_SUFFIX) else own
        return own

    def files(self, index: SiteIndex, now: datetime) -> dict[str, bytes | None]:
        """As ``Change.files``."""
        name = self.target(index.content_folder)
        held = self._held(index)
        others = {entry.name for entry in index.standing_at(self.document.path)}
        others |= {name} if index.named(name) else set()
        others -= {self.replacing.remote_id} if self.replacing else set()
        if others:
            raise _conflict(self.title, f"{min(others)} already stands there")
        if self.replacing is None and index.marked(self.document.marker.page_id):
            raise _conflict(self.title, "the page already stands elsewhere on the site")
        above = index.bundle_above(name)
        if above is not None:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.TERMINAL,
                    message=f"{self.title}: {above} takes all files below it for its attachments; "
                    f"rename it to {above.replace('/index.', '/_index.')}",
                )
            )
        if held is not None and self._is_so(held, name, now):
            return {}
        data = write_page_file(self.document, over=held, extra=self.extra, now=now)
        moved = self.replacing is not None and self.replacing.remote_id != name
        gone = {self.replacing.remote_id: None} if self.replacing is not None and moved else {}
        return {**gone, name: data}

    def _held(self, index: SiteIndex) -> PageFile | None:
        if self.replacing is None:
            return None
        _refuse_unless_as_seen(self.title, index, self.replacing)
        blob_id = self.replacing.version
        return read_page_file(self.clone.blobs([blob_id])[blob_id])

    def _is_so(self, held: PageFile, name: str, now: datetime) -> bool:
        assert self.replacing is not None
        return (
            held.marker == self.document.marker
            and held.intact
            and not held.is_hidden(now)
            and (self.replacing.remote_id, self.replacing.path) == (name, self.document.path)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAway:
    """Let exactly ``page`` be gone."""

    page: RemotePage

    @property
    def title(self) -> str:
        """What the change does."""
        return f"Remove {self.page.path}"

    def files(self, index: SiteIndex, now: datetime) -> dict[str, bytes | None]:  # noqa: ARG002 - the change has no time
        """As ``Change.files``."""
        if index.named(self.page.remote_id) is None:
            return {}
        _refuse_unless_as_seen(self.title, index, self.page)
        return {self.page.remote_id: None}


def _refuse_unless_as_seen(title: str, index: SiteIndex, seen: RemotePage) -> None:
    entry = index.named(seen.remote_id)
    if entry is None:
        raise _conflict(title, f"{seen.remote_id} was removed or moved meanwhile")
    if entry.blob_id != seen.version:
        raise _conflict(title, f"{seen.remote_id} changed meanwhile")


def _conflict(title: str, why: str) -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.CONFLICT,
            message=f"{title}: {why}; look at it again before replacing it",
        )
    )
