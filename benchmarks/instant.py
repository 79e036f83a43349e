"""A model and a CMS behind the ports that answer at once from memory, so that the rest shows.

What belongs here: the least that satisfies ``core.ports``, and articles that the example's rules
accept.
"""

import threading
from collections.abc import Mapping
from decimal import Decimal

from content_pipeline.core.article import Article, Section, article_json
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
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import (
    GenerationLookUp,
    GenerationRequest,
    LanguageModelCapabilities,
    RawResponse,
    Reading,
    Verdict,
)

SENTENCE = "Anybody who travels there finds more to see than one short page can ever tell. "


class InstantModel:
    """Answers each page job with the article it was given for it."""

    capabilities = LanguageModelCapabilities(look_up_by_attempt=False)

    def __init__(self, articles: Mapping[str, Article]) -> None:
        self._answers = {
            page_job_id: RawResponse(
                status=200,
                headers={"x-request-id": page_job_id},
                body=article_json(article).encode(),
            )
            for page_job_id, article in articles.items()
        }

    def send(self, request: GenerationRequest) -> RawResponse:
        return self._answers[request.page_job_id]

    def read(self, raw: RawResponse) -> Reading:
        return Reading(
            text=raw.body.decode(),
            usage=Usage(input_tokens=500, output_tokens=400),
            model="instant",
            response_id=None,
            request_id=raw.headers["x-request-id"],
            finish_reason="stop",
            failure=None,
        )

    def look_up(
        self,
        attempt_id: str,  # noqa: ARG002 - nothing is kept
        kept_as: str | None = None,  # noqa: ARG002
    ) -> GenerationLookUp:
        return GenerationLookUp(verdict=Verdict.UNKNOWN)

    def cancel(self, kept_as: str) -> None:
        """Nothing is ever at work."""

    def close(self) -> None:
        """Nothing is connected."""


class InstantCMS:
    """Holds pages in memory, by path."""

    capabilities = CMSCapabilities(
        client_id=True, compare_and_swap=True, drafts=False, marker_look_up=False, trash=False
    )

    def __init__(self) -> None:
        self._pages: dict[str, RemotePage] = {}
        self._lock = threading.Lock()

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:  # noqa: ARG002 - the path is the id
        with self._lock:
            page = self._pages.get(path)
        return PageLookUp(verdict=Verdict.ABSENT if page is None else Verdict.PRESENT, page=page)

    def create_draft(self, document: Document) -> RemotePage:
        raise AssertionError(f"{document.path}: a draft was asked of a CMS without drafts")

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        page = RemotePage(
            remote_id=document.path,
            path=document.path,
            url=document.url,
            status=RemoteStatus.PUBLISHED,
            marker=document.marker,
            fingerprint=document.marker.content_hash,
        )
        with self._lock:
            assert self._pages.get(document.path) == replacing, f"{document.path}: lost race"
            self._pages[document.path] = page
        return page

    def withdraw(self, page: RemotePage) -> None:
        self.remove(page)

    def remove(self, page: RemotePage) -> None:
        with self._lock:
            self._pages.pop(page.path, None)

    def content_of(self, page: RemotePage) -> RemoteContent:
        raise AssertionError(f"{page.path}: no text is kept")

    def inventory(self, next_slice: str | None) -> Inventory:
        assert next_slice is None
        with self._lock:
            glances = tuple(
                Glance(remote_id=at.remote_id, path=at.path, status=at.status, version=at.version)
                for at in self._pages.values()
            )
        return Inventory(glances=glances, next_slice=None)

    def recent_changes(self, point: str | None) -> RecentChanges:
        return RecentChanges(pages=(), point=point or "")

    def check(self) -> CMSCheck:
        return CMSCheck(identity="memory")


class FlatPrices:
    """Every call costs the same."""

    def cost(self, model: str, usage: Usage) -> Decimal:  # noqa: ARG002 - a constant
        return Decimal("0.001")


def article_of(facts: Mapping[str, str]) -> Article:
    """About 300 words that state every fact."""
    stated = " ".join(f"{label}: {value}." for label, value in facts.items() if value)
    return Article(
        title=facts["Name"][:60],
        meta_description=f"What a traveller should know about this country. {SENTENCE}",
        introduction=stated,
        sections=[
            Section(heading=heading, body_markdown=f"{SENTENCE * 3}\n\n{SENTENCE * 3}")
            for heading in ("Geography", "People", "Economy")
        ],
    )
