"""From settings to running parts: the ledger, the provider, the CMS of a site, put together.

What belongs here: the one place that knows which adapter a setting means, and that reads clocks and
random numbers. The command line and Dagster both start here, so they do the same.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

from content_pipeline.adapters.llm.prices import GenaiPrices, PriceOverride
from content_pipeline.adapters.llm.profiles import ProviderProfile, provider_profile
from content_pipeline.config import DAY_BUDGET_VARIABLE, Project, day_budget_usd, environment
from content_pipeline.core.chain import Step
from content_pipeline.core.errors import ConfigurationError, SiteFileError, UnknownPrice
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import EmbeddingModel, LanguageModel, PriceList
from content_pipeline.garbage import not_sought
from content_pipeline.ledger import migrate, spend
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import SCHEMA
from content_pipeline.ledger.spend import Caps
from content_pipeline.operations.requests import most_usage
from content_pipeline.operations.runtime import PlannedSite, SiteRuntime
from content_pipeline.postgres.healing import install_heal
from content_pipeline.postgres.schemas import ensure_schema
from content_pipeline.postgres.urls import database_url
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import ensure_provider_running
from content_pipeline.site_cms import cms_route, open_cms, public_pages
from content_pipeline.site_files import Site
from content_pipeline.site_table import SiteTable

SANDBOX = "sandbox"
SANDBOX_KEY = "sandbox"
"""The sandbox provider wants a key like every provider, and any will do."""


def utc_now() -> datetime:
    """The time, where a clock must be read."""
    return datetime.now(UTC)  # noqa: TID251 - clocks are handed on from here


def open_ledger(project: Project, variables: Mapping[str, str] | None = None) -> Ledger:
    """The project's ledger, started and brought up to date.

    ``variables`` stand in for the environment of this process. Raises ConfigurationError or
    DatabaseUnavailable.
    """
    urls = database_url(environment() if variables is None else variables, project.data_home)
    ensure_schema(urls.ledger_url, SCHEMA)
    engine = create_ledger_engine(urls.ledger_url)
    install_heal(engine, urls.server)
    migrate.upgrade(engine)
    return Ledger(engine)


def open_site(
    site: Site, project: Project, ledger: Ledger, *, purpose: str, run_id: str | None = None
) -> SiteRuntime:
    """Everything that work on ``site`` needs. ``purpose`` names the process in the records.

    Starts the sandbox provider when the site uses it. Raises ConfigurationError for a missing key
    or a cap that no call could ever keep, and UnknownPrice for a model without a price, before
    anything is spent.
    """
    settings = site.settings
    prices = prices_of(site)
    cms, hooks = open_cms(site, project, clock=utc_now)
    model, embeddings = open_models(site, project)
    return SiteRuntime(
        site=settings,
        chain=site.chain,
        columns=site.columns,
        generation_version=site.generation_version,
        ledger=ledger,
        model=model,
        embeddings=embeddings,
        prices=prices,
        model_route=model_route(site),
        cms=cms,
        cms_route=cms_route(site),
        public=public_pages(site),
        hooks=hooks,
        worker=f"{socket.gethostname()}:{os.getpid()}:{purpose}:{time.time_ns() // 1_000_000:x}",
        run_id=run_id,
        random=random.random,
        call_slots=threading.Semaphore(settings.generation.in_flight),
        day_usd=day_budget_usd(),
    )


def open_for_planning(site: Site, ledger: Ledger) -> PlannedSite:
    """What planning ``site`` and asking for its pages needs: no key, and nobody is called.

    Raises ConfigurationError and UnknownPrice as ``open_site`` does.
    """
    return PlannedSite(
        site=site.settings,
        chain=site.chain,
        columns=site.columns,
        generation_version=site.generation_version,
        ledger=ledger,
        prices=prices_of(site),
        model_route=model_route(site),
        caps=caps_of(site),
    )


def topic_rows(site: Site) -> SiteTable:
    """The rows of the site's topic table, read anew by each iteration; see there for errors."""
    return SiteTable(site=site)


def prices_of(site: Site) -> PriceList:
    """What the site's models cost. Raises UnknownPrice, and ConfigurationError for hopeless caps.

    No call is made: a price must be known, and the caps must admit one call, before any.
    """
    prices = _price_list(site, provider_profile(site.settings.generation.provider))
    _refuse_hopeless_caps(site, prices)
    day_usd = day_budget_usd()
    if day_usd:  # 0 pays nothing for a while, on purpose
        for step, usd in _least_usd(site, prices):
            if usd > day_usd:
                raise ConfigurationError(
                    f"{DAY_BUDGET_VARIABLE} is ${day_usd:f}, and {_could_cost(site, step, usd)}; "
                    f"raise {DAY_BUDGET_VARIABLE}, or set it to 0 to pay nothing for a while"
                )
    return prices


def refuse_hopeless_caps(site: Site) -> None:
    """Raise SiteFileError when a cap of the site's file is below what each call could cost.

    A model whose price is not known is refused by ``prices_of``, before anything is paid.
    """
    with suppress(UnknownPrice):
        prices = _price_list(site, provider_profile(site.settings.generation.provider))
        _refuse_hopeless_caps(site, prices)


def _price_list(site: Site, profile: ProviderProfile) -> PriceList:
    generation = site.settings.generation
    stated = [(generation.model, generation.price)]
    stated += [(step.model or generation.model, step.price) for step in generation.steps]
    overrides = {
        model: PriceOverride(
            input_usd_per_mtok=price.input_usd_per_mtok,
            output_usd_per_mtok=price.output_usd_per_mtok,
            cached_input_usd_per_mtok=price.cached_input_usd_per_mtok,
        )
        for model, price in stated
        if price is not None
    }
    return GenaiPrices(provider=profile.price_provider, now=utc_now, overrides=overrides)


def _refuse_hopeless_caps(site: Site, prices: PriceList) -> None:
    budgets = site.settings.budgets
    caps = {"page_usd": budgets.page_usd, "site_day_usd": budgets.site_day_usd}
    for step, usd in _least_usd(site, prices):
        for name, cap in caps.items():
            if usd > cap:
                raise SiteFileError(
                    f"{site.file}: budgets.{name} is ${cap:f}, and {_could_cost(site, step, usd)}; "
                    f"raise budgets.{name} or lower max_output_tokens"
                )


def _least_usd(site: Site, prices: PriceList) -> list[tuple[Step, Decimal]]:
    """What is reserved at least for a call of each step: with an empty prompt. UnknownPrice."""
    return [(step, prices.cost(step.model, most_usage(step, ""))) for step in site.chain.steps]


def _could_cost(site: Site, step: Step, usd: Decimal) -> str:
    tokens = f"{step.max_output_tokens:,}"
    return (
        f"one call of step {step.name!r} of site {site.settings.site} could cost ${usd:f} for its "
        f"max_output_tokens ({tokens}) and an empty prompt, so no page could ever be made"
    )


def caps_of(site: Site) -> Caps:
    """The dollars that the site's calls must not pass."""
    return spend.caps_of(site.settings.budgets, day_budget_usd())


def open_models(site: Site, project: Project) -> tuple[LanguageModel, EmbeddingModel]:
    """Both sides of the site's account at its provider. Raises ConfigurationError (no key).

    Starts the sandbox provider when the site uses it.
    """
    with not_sought():
        from content_pipeline.adapters.llm.openai_model import OpenAIModel  # the SDK: 0.4 s

    profile = provider_profile(site.settings.generation.provider)
    generation, variables = site.settings.generation, environment()
    if generation.provider == SANDBOX:
        running = ensure_provider_running(
            project.data_home,
            ProviderSettings(
                latency_median_s=generation.sandbox.latency_median_s,
                latency_sigma=generation.sandbox.latency_sigma,
                most_at_once=generation.sandbox.most_at_once,
                seed=generation.sandbox.seed,
            ),
        )
        model = OpenAIModel(
            profile=profile,
            api_key=SANDBOX_KEY,
            base_url=running.base_url,
            now=utc_now,
            api=generation.api,
            background=generation.background,
        )
        return model, model.embeddings
    key = variables.get(generation.api_key_env, "").strip()
    if not key and profile.needs_api_key:
        raise ConfigurationError(
            f"{site.file}: provider {generation.provider!r} needs a key in the environment "
            f"variable {generation.api_key_env}; set it, or use `provider: sandbox` to try the "
            "site without one"
        )
    base_url = variables.get(generation.base_url_env, "").strip() or None
    model = OpenAIModel(
        profile=profile,
        api_key=key or None,
        base_url=base_url,
        now=utc_now,
        api=generation.api,
        background=generation.background,
    )
    return model, model.embeddings


def model_route(site: Site) -> str:
    """The account at the provider: a new key is a new account, so it starts with a clean slate."""
    generation, variables = site.settings.generation, environment()
    account = digest(
        variables.get(generation.base_url_env, ""), variables.get(generation.api_key_env, "")
    )
    return f"{generation.provider}:{account[:8]}"
