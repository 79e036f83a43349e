"""The site as a visitor gets it: one request for a page's public URL.

What belongs here: asking past caches, which are purged only once a page is proved, and telling what
was got instead. No redirect is followed: WordPress leads from a missing page to any other whose
address begins alike.
"""

from content_pipeline.adapters.http_calls import Call, HTTPService
from content_pipeline.core.cms import Document, Marker
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

CACHE_BUSTER = "content-pipeline"
"""A query that no cache has seen, for it names the revision's content."""

OK = 200


class PublicSite:
    """Visits the site at ``base_url``; safe for many threads. Close it."""

    def __init__(self, base_url: str, *, deadline_s: float) -> None:
        self._base_url = base_url
        self._service = HTTPService(
            base_url, name="the public site", headers={}, deadline_s=deadline_s
        )

    def why_not_shown(self, document: Document) -> Failure | None:
        """None when the page's URL shows our mark of exactly this revision; else why not."""
        call = Call(
            doing=f"visiting {document.path}",
            method="GET",
            path=document.url.removeprefix(self._base_url),
            params={CACHE_BUSTER: document.marker.content_hash},
        )
        try:
            answer = self._service.send(call)
        except CallFailed as failed:
            return failed.failure
        if answer.status != OK:
            return _not_shown(document, f"answers with status {answer.status}")
        if not _carries(answer.body.decode(errors="replace"), document.marker):
            return _not_shown(document, "shows another page or revision")
        return None

    def close(self) -> None:
        """Close every connection."""
        self._service.close()


def _carries(page: str, marker: Marker) -> bool:
    return marker.page_id in page and marker.content_hash in page


def _not_shown(document: Document, instead: str) -> Failure:
    return Failure(
        failure_class=FailureClass.UNCERTAIN,
        message=f"the CMS holds revision {document.marker.revision} of {document.path}, but its "
        f"public URL {instead}; look at caches, the deployment and base_url",
    )
