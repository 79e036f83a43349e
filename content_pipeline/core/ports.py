"""The seams: what operations need from the world outside, as Protocols and the values they pass.

Adapters implement these; operations receive them as arguments. Nothing here knows a vendor.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from content_pipeline.core.failures import Failure
from content_pipeline.core.money import Usage


class Verdict(StrEnum):
    """What the other side says about a call whose outcome we do not know."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


# --- the topic table ----------------------------------------------------------------------------


@runtime_checkable
class TopicTable(Protocol):
    """The rows of a site's topic table, read anew each time they are asked for."""

    def __iter__(self) -> Iterator[Mapping[str, str]]:
        """Each row as column → text. Raises TopicTableError, also after some rows."""
        ...

    def identity(self) -> str | None:
        """Equal only for equal rows that are understood alike, and cheaper than reading them.

        None where nothing is: the rows are then never known to be the same.
        """
        ...


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
class EmbeddingRequest:
    """One paid call for a vector, fully determined before anything is sent."""

    attempt_id: str
    model: str
    text: str
    dimensions: int | None
    """Numbers of the vector; None: as many as the model gives by itself."""
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
    vector: bytes | None = field(default=None, repr=False)
    """Of an embedding, in the form of ``core.vectors``; its length is not checked yet."""


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


class EmbeddingModel(Protocol):
    """A provider of paid embeddings. One ``send`` is exactly one HTTP request.

    There is no way to ask afterwards: no provider keeps embeddings.
    """

    def send(self, request: EmbeddingRequest) -> RawResponse:
        """Make the paid call. Raises CallFailed with the failure's class, and nothing else."""
        ...

    def read(self, raw: RawResponse) -> Reading:
        """Interpret a raw answer; never raises for anything a provider may have sent."""
        ...


class PriceList(Protocol):
    """Dollars of tokens."""

    def cost(self, model: str, usage: Usage) -> Decimal:
        """The price of ``usage`` in dollars. Raises UnknownPrice for a model without a price."""
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
    withdrawn: tuple[str, ...] = ()
    """Paths of pages that were taken off the site because their topic is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawnPage:
    """One page that a hook was told of and that visitors see no more."""

    path: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNews:
    """What changed on a site since a hook was last told, or a batch of it."""

    site: str
    site_title: str
    base_url: str
    delivery_id: str
    """The same for the same news told again after a failure, else never the same."""
    changed: tuple[ListedPage, ...]
    """Proved public pages that are new or hold another text than when the hook was last told."""
    withdrawn: tuple[WithdrawnPage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What came of an announcement."""

    location: str
    """Where to look: a path or URL."""
    changed: bool
    """False when the other side already held exactly this."""


class ListingHook(Protocol):
    """Told the whole list of pages after any of them changed: a sitemap, an index page."""

    @property
    def kind(self) -> str:
        """Names the effect in the ledger, e.g. ``sitemap``."""
        ...

    def announce(self, listing: SiteListing) -> Announcement:
        """Tell it. Harmless to repeat. Raises CallFailed and nothing else."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTerms:
    """When and how a hook wants its news."""

    debounce_s: float
    """It is told so many seconds after the first change, of all changes until then."""
    batch: int
    """Pages in one call, at most."""
    tells_existing: bool = False
    """Whether pages that were public before the site had this hook are news to it."""


@runtime_checkable
class NewsHook(Protocol):
    """Told what changed, and of each change once: IndexNow, a cache, a deploy hook, a webhook."""

    @property
    def kind(self) -> str:
        """Names the effect in the ledger, e.g. ``indexnow``."""
        ...

    @property
    def terms(self) -> HookTerms:
        """When and how it wants its news."""
        ...

    def tell(self, news: SiteNews) -> Announcement:
        """One call. Repeated after a failure or a crash. Raises CallFailed and nothing else."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


@runtime_checkable
class Connected(Protocol):
    """An adapter that keeps connections open between its calls; a folder, say, keeps none."""

    def close(self) -> None:
        """Close every connection; the adapter is not used afterwards."""
        ...


SiteHook = ListingHook | NewsHook
"""Something to be told after pages changed."""
