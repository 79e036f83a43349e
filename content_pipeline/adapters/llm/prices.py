"""Dollars of tokens: the public price list of ``genai_prices``, offline, with a site's overrides.

What belongs here: choosing the price of one call. The list is the one inside the installed
package; it is never updated over the network, so a cost can be traced to a version. A model
without a price is an error and never free.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches

import genai_prices
from genai_prices.data_snapshot import find_provider_by_id
from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

from content_pipeline.core.errors import ConfigurationError, UnknownPrice
from content_pipeline.core.money import Usage, round_usd

TOKENS_PER_PRICE = 1_000_000
"""Prices are per million tokens."""

STANDARD_TIERS = frozenset({"auto", "default", "on_demand", "scale", "standard"})
"""Served at the list price; ``scale`` is paid ahead and dearer than nothing."""

CHEAP_TIERS: Mapping[str, Mapping[str, str]] = {
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
}
"""At most the list price, which is charged where the list has no price for the tier."""

DEAR_TIERS: Mapping[str, Mapping[str, str]] = {
    "fast": {"service_tier": "fast"},
    "priority": {"service_tier": "priority"},
}

UNKNOWN_TIER_FACTOR = 4
"""Times the list price for a tier without a price of its own: the dearest tier of any provider
in the list costs 3.6 times. The call is paid by then, so refusing to price it helps nobody."""

SUGGESTIONS = 3
"""Model names offered when one is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOverride:
    """Prices a site states itself, for a self-hosted, renamed or fine-tuned model."""

    input_usd_per_mtok: Decimal
    output_usd_per_mtok: Decimal
    cached_input_usd_per_mtok: Decimal | None = None
    """None: cached tokens cost what others cost."""

    def __post_init__(self) -> None:
        cached = self.cached_input_usd_per_mtok
        stated = [self.input_usd_per_mtok, self.output_usd_per_mtok]
        stated += [cached] if cached is not None else []
        if not all(price.is_finite() and price >= 0 for price in stated):
            raise ConfigurationError("a price must be a number of dollars, zero or more")


class GenaiPrices:
    """``core.ports.PriceList`` for one provider; threads may share it."""

    def __init__(
        self,
        *,
        provider: str | None,
        now: Callable[[], datetime],
        overrides: Mapping[str, PriceOverride] | None = None,
    ) -> None:
        """Load the price list (0.2 s the first time in a process).

        ``provider`` is its name in the list (``ProviderProfile.price_provider``); None means that
        only ``overrides``, by model name, have prices. ``now`` gives the aware UTC time, because
        prices change by date. Raises ConfigurationError for a provider not in the list.
        """
        from genai_prices.data import providers  # 1.6 MB of data, not at import time

        self._providers = providers
        self._now = now
        self._overrides = dict(overrides or {})
        self._models: dict[tuple[str, bool], ModelInfo] = {}
        self._provider: Provider | None = None
        if provider is not None:
            self._provider = find_provider_by_id(providers, provider)
            if self._provider is None:
                raise ConfigurationError(f"the price list knows no provider {provider!r}")

    @property
    def version(self) -> str:
        """Names the price data, to be recorded with a cost."""
        return f"genai-prices {genai_prices.__version__}"

    def cost(self, model: str, usage: Usage) -> Decimal:
        """The price of ``usage`` in dollars, rounded up to 8 decimals.

        The tier that served the call decides, see the constants above. Where a model bills cache
        writes, all uncached input counts as written: OpenAI writes by default and ``Usage`` does
        not tell how much. Raises UnknownPrice.
        """
        override = self._overrides.get(model)
        if override is not None:
            return round_usd(_cost_by_override(override, usage))
        info = self._found(model, writes=usage.output_tokens > 0)
        price, factor = _price_of_tier(info, usage.service_tier, self._now())
        return round_usd(price.calc_price(_tokens(price, usage))["total_price"] * factor)

    def _found(self, model: str, *, writes: bool) -> ModelInfo:
        """The model's entry, looked up once per name: the list has thousands.

        ``writes``: whether there are tokens of output to pay for; an embedding has none.
        """
        found = self._models.get((model, writes))
        if found is None:
            found = self._models[model, writes] = self._search(model, writes=writes)
        return found

    def _search(self, model: str, *, writes: bool) -> ModelInfo:
        if self._provider is None:
            raise UnknownPrice(
                f"no public price list covers the provider of model {model!r}; set price: for it "
                "in the site's file, in dollars per million tokens"
            )
        info = self._provider.find_model(model, all_providers=self._providers)
        if info is None or not _is_priced(info.get_prices(self._now()), writes=writes):
            raise UnknownPrice(self._unknown(model, self._provider, info, writes=writes))
        return info

    def _unknown(
        self, model: str, provider: Provider, found: ModelInfo | None, *, writes: bool
    ) -> str:
        why = "does not know" if found is None else "lists no price of tokens for"
        names = [
            info.id
            for info in provider.models
            if _is_priced(info.get_prices(self._now()), writes=writes)
        ]
        near = get_close_matches(model, [*names, *self._overrides], n=SUGGESTIONS, cutoff=0.5)
        hint = f" (close names: {', '.join(near)})" if near else ""
        return (
            f"{self.version} {why} model {model!r} of {provider.id}{hint}; correct the name or set "
            "price: for it in the site's file, in dollars per million tokens"
        )


def _is_priced(price: ModelPrice, *, writes: bool) -> bool:
    """Each direction costs something; a listed zero is a gap or a promotion, never a promise."""
    return _base(price.input_mtok) > 0 and (not writes or _base(price.output_mtok) > 0)


def _base(price: Decimal | TieredPrices | None) -> Decimal:
    if price is None:
        return Decimal(0)
    return price.base if isinstance(price, TieredPrices) else price


def _price_of_tier(
    info: ModelInfo, service_tier: str | None, now: datetime
) -> tuple[ModelPrice, int]:
    """The prices of the tier and what to multiply them by."""
    tier = (service_tier or "default").lower()
    standard = info.get_prices(now)
    if tier in STANDARD_TIERS:
        return standard, 1
    context = CHEAP_TIERS.get(tier) or DEAR_TIERS.get(tier)
    if context is not None:
        special = info.get_prices(now, context)
        if special != standard:
            return special, 1
    return standard, 1 if tier in CHEAP_TIERS else UNKNOWN_TIER_FACTOR


def _tokens(price: ModelPrice, usage: Usage) -> genai_prices.Usage:
    counts = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }
    if price.cache_write_mtok is not None:
        counts["cache_write_tokens"] = usage.cache_write_tokens
    return genai_prices.Usage(**counts)


def _cost_by_override(override: PriceOverride, usage: Usage) -> Decimal:
    """A stated price holds for every tier: the site knows what it pays."""
    cached_price = override.cached_input_usd_per_mtok
    if cached_price is None:
        cached_price = override.input_usd_per_mtok
    total = (
        (usage.input_tokens - usage.cached_tokens) * override.input_usd_per_mtok
        + usage.cached_tokens * cached_price
        + usage.output_tokens * override.output_usd_per_mtok
    )
    return total / TOKENS_PER_PRICE
