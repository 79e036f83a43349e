"""What an operation works with: one site, its ledger and its adapters, as one value."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from content_pipeline.core.chain import Chain
from content_pipeline.core.cms import CMS, PublicPages
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import (
    Connected,
    EmbeddingModel,
    LanguageModel,
    NewsHook,
    PriceList,
    SiteHook,
)
from content_pipeline.core.retries import RetryPolicy
from content_pipeline.core.site import SiteSettings
from content_pipeline.ledger import spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.spend import Caps
from content_pipeline.ledger.vectors import KnownVectors
from content_pipeline.operations.call_tally import CallTally


class SiteAsking(Protocol):
    """As much of a site as asking for its pages takes: no provider and no CMS."""

    @property
    def site(self) -> SiteSettings:
        """The site as declared."""
        ...

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the topic table that enter a page."""
        ...

    @property
    def generation_version(self) -> str:
        """Identity of how the site makes its pages."""
        ...

    @property
    def model_route(self) -> str:
        """Names the provider's account in the ledger."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where the pages are wanted."""
        ...


class SitePlanning(SiteAsking, Protocol):
    """As much of a site as planning its pages takes."""

    @property
    def chain(self) -> Chain:
        """The paid calls that a page is made by."""
        ...

    @property
    def prices(self) -> PriceList:
        """What they cost."""
        ...

    @property
    def caps(self) -> Caps:
        """The dollars that they must not pass."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSite:
    """A site that is only looked at: there is no provider and no CMS that could be called."""

    site: SiteSettings
    chain: Chain = field(repr=False)
    columns: frozenset[str]
    generation_version: str
    ledger: Ledger
    prices: PriceList
    model_route: str
    caps: Caps


def _ignore(_checkpoint: str) -> None:
    """Do nothing at a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRuntime:
    """Everything that work on one site needs; safe to share between threads."""

    site: SiteSettings
    chain: Chain = field(repr=False)
    """The paid calls that a page is made by."""
    columns: frozenset[str]
    """The columns of the topic table that enter a page."""
    generation_version: str
    ledger: Ledger
    model: LanguageModel
    prices: PriceList
    model_route: str
    """Names the provider's account in the ledger, for every machine that shares it."""
    cms: CMS
    cms_route: str
    public: PublicPages | None
    """Asked as well before a page counts as published; None: the CMS's word is enough."""
    hooks: tuple[SiteHook, ...]
    """Told after pages were published and proved."""
    worker: str
    """Names this process in leases, attempts and transitions: host, pid and purpose."""
    run_id: str | None
    """The Dagster run on whose behalf the work is done, if any."""
    random: Callable[[], float]
    """Uniform in [0, 1), for jitter."""
    call_slots: AbstractContextManager[object]
    """Held during each paid call: bounds the calls in flight of this process."""
    calls: CallTally = field(default_factory=CallTally, repr=False)
    """What became of this worker's paid calls since its last claim."""
    embeddings: EmbeddingModel | None = None
    """For chains with a step that embeds."""
    known_vectors: KnownVectors = field(default_factory=KnownVectors, repr=False)
    """Of the site's accepted pages, for comparing drafts with them."""
    day_usd: Decimal | None = None
    """What all sites of the ledger together may spend per UTC day; None: no such cap."""
    given_up: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set: the run was given up for dead and others have its pages; begin none any more."""
    on_checkpoint: Callable[[str], None] = _ignore
    """Called after each durable checkpoint with its name; tests end the process there."""

    def retries(self, step: str | None) -> Mapping[FailureClass, RetryPolicy]:
        """The policies for a failed call of ``step``: its own before the site's.

        None, and a step that the chain no longer has, mean the site's alone.
        """
        own = next((each.retries for each in self.chain.steps if each.name == step), {})
        return {**self.site.retries, **own}

    def close(self) -> None:
        """Close what the adapters keep open, the failing ones too; the ledger is its opener's."""
        with ExitStack() as stack:
            for part in (self.model, self.cms, self.public, *self.hooks):
                if isinstance(part, Connected):
                    stack.callback(part.close)

    @property
    def hook_delays_s(self) -> dict[str, float]:
        """Kind of hook → how many seconds after a change it is told, of all changes until then."""
        return {
            hook.kind: hook.terms.debounce_s
            if isinstance(hook, NewsHook)
            else self.site.listing_delay_s(hook.kind)
            for hook in self.hooks
        }

    @property
    def caps(self) -> Caps:
        """The dollars that this site's calls must not pass."""
        return spend.caps_of(self.site.budgets, self.day_usd)
