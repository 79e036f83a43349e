"""The seams: what operations need from the world outside, as Protocols and the values they pass.

Adapters implement these; operations receive them as arguments. Nothing here knows a vendor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from content_pipeline.core.failures import Failure
from content_pipeline.core.money import Usage


class Verdict(StrEnum):
    """What the other side says about a call whose outcome we do not know."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


# --- the language model -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One paid call, fully determined before anything is sent."""

    attempt_id: str
    page_job_id: str
    model: str
    system: str
    user: str
    schema_name: str
    schema: Mapping[str, Any]
    max_output_tokens: int
    temperature: float | None
    deadline_s: float
    """Wall-clock seconds from the first byte sent to the last byte read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    """A provider's 2xx answer as it came, committed before anybody parses it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a raw answer turned out to be. A paid answer may still be a failure: both are kept."""

    text: str | None = field(repr=False)
    """The model's text (JSON of the asked schema); None when there is a failure."""
    usage: Usage | None
    """None when the provider reported none: the caller books the reserved worst case."""
    model: str | None
    response_id: str | None
    request_id: str | None
    finish_reason: str | None
    failure: Failure | None
    kept_as: str | None = None
    """The id under which the provider hands the answer out (again), complete or not yet; None when
    it hands out nothing by id. With an uncertain failure: accepted, and not complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationLookUp:
    """Answer to "did this call complete?". One that is still at work is unknown."""

    verdict: Verdict
    raw: RawResponse | None = None
    """The stored answer when ``verdict`` is present."""
    failure: Failure | None = None
    """Why nothing can be said when ``verdict`` is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelCapabilities:
    """What can be asked of a provider after the fact."""

    look_up_by_attempt: bool
    """Completed calls can be listed by our attempt id."""
    look_up_by_id: bool = False
    """A call can be asked for by the id that the provider gave it."""


class LanguageModel(Protocol):
    """A provider of paid completions. One ``send`` is exactly one HTTP request, and alone pays."""

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        """What can be asked after the fact."""
        ...

    def send(self, request: GenerationRequest) -> RawResponse:
        """Make the paid call. Raises CallFailed with the failure's class, and nothing else.

        The answer may only say that the call was accepted: see ``Reading.kept_as``.
        """
        ...

    def read(self, raw: RawResponse) -> Reading:
        """Interpret a raw answer; never raises for anything a provider may have sent."""
        ...

    def look_up(self, attempt_id: str, kept_as: str | None = None) -> GenerationLookUp:
        """Ask what became of an earlier call; never raises for a failing service.

        By the id ``kept_as`` where the provider gave one, else by our attempt id.
        """
        ...

    def cancel(self, kept_as: str) -> None:
        """Ask the provider once to stop working on a call; what comes of it is looked up.

        Never raises: nothing may depend on a wish that comes too late as easily as in time.
        """
        ...

    def close(self) -> None:
        """Close every connection; the model is not used afterwards."""
        ...


class PriceList(Protocol):
    """Dollars of tokens."""

    def cost(self, model: str, usage: Usage) -> Decimal:
        """The price of ``usage`` in dollars. Raises UnknownPrice for a model without a price."""
        ...


# --- the content management system --------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Our mark on a page of the CMS: tells whose it is, which revision, and with what content."""

    page_id: str
    revision: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What the CMS is asked to hold: one revision of one page, already sanitised."""

    marker: Marker
    site_title: str
    language: str
    path: str
    """Canonical path below the site's base: starts with and ends in a slash."""
    url: str
    """Canonical absolute URL."""
    title: str
    meta_description: str
    body_html: str
    """Sanitised HTML of the article without the title."""
    json_ld: Mapping[str, Any]


class RemoteStatus(StrEnum):
    """Where a page of the CMS stands for a visitor."""

    PUBLISHED = "published"
    DRAFT = "draft"
    TRASHED = "trashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePage:
    """One page as the CMS holds it now."""

    remote_id: str
    """The CMS's own id; opaque to us."""
    path: str
    url: str
    status: RemoteStatus
    marker: Marker | None
    """None: the page does not carry our mark."""
    fingerprint: str
    """Digest of what the server returned; changes with every edit, by whomever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLookUp:
    """Answer to "what do you hold for this page?". Only a parsed answer says present or absent."""

    verdict: Verdict
    page: RemotePage | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CMSCapabilities:
    """What a CMS offers; the publish protocol picks the strongest."""

    client_id: bool
    """We choose the id, so creating twice cannot make two pages."""
    compare_and_swap: bool
    """A write names the version it replaces and is refused when that changed."""
    drafts: bool
    """A page can be created invisible and published by id afterwards."""
    marker_look_up: bool
    """A page can be found by our marker wherever it was moved."""


class CMS(Protocol):
    """Where pages are published. Every method raises CallFailed and nothing else."""

    @property
    def capabilities(self) -> CMSCapabilities:
        """What the publish protocol may build on."""
        ...

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """What the CMS holds for our page: by stored id, marker and path."""
        ...

    def create_draft(self, document: Document) -> RemotePage:
        """Create the page invisible; only called when ``capabilities.drafts``."""
        ...

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Make ``document`` the page's public content, over exactly what ``replacing`` saw.

        ``replacing`` is None when the page does not exist yet. Raises CallFailed of class
        conflict when the CMS can tell that the page is not what ``replacing`` saw.
        """
        ...


# --- what is announced once pages are proved ----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """One proved public page of a site."""

    path: str
    url: str
    title: str
    meta_description: str
    modified_at: datetime
    """When the page's content last changed; a mere re-check does not move it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteListing:
    """All proved public pages of a site, ordered by path."""

    site: str
    site_title: str
    base_url: str
    language: str
    pages: tuple[ListedPage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What came of an announcement."""

    location: str
    """Where to look: a path or URL."""
    changed: bool
    """False when the other side already held exactly this."""


class SiteHook(Protocol):
    """Something to be told after pages changed: a sitemap, an index page, a deploy hook."""

    @property
    def kind(self) -> str:
        """Names the effect in the ledger, e.g. ``sitemap``."""
        ...

    def announce(self, listing: SiteListing) -> Announcement:
        """Tell it. Harmless to repeat. Raises CallFailed and nothing else."""
        ...
