"""Tokens to dollars: golden values, and no way for a paid call to cost nothing or too little."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.llm.prices import GenaiPrices, PriceOverride
from content_pipeline.core.errors import ConfigurationError, UnknownPrice
from content_pipeline.core.money import Usage
from content_pipeline_tests.adapters.llm.samples import now

pytestmark = pytest.mark.oldest

PRICES = GenaiPrices(provider="openai", now=now)


def usage(**changes: Any) -> Usage:
    fields = {"input_tokens": 1000, "cached_tokens": 800, "output_tokens": 200}
    return Usage(**{**fields, **changes})


GOLDEN = [
    # gpt-5.2: 1.75 in, 0.175 cached, 14 out; flex and batch half, priority and fast double
    ("gpt-5.2", usage(), "0.00329"),
    ("gpt-5.2", usage(cached_tokens=0), "0.00455"),
    ("gpt-5.2", usage(service_tier="default"), "0.00329"),
    ("gpt-5.2", usage(service_tier="standard"), "0.00329"),
    ("gpt-5.2", usage(service_tier="flex"), "0.001645"),
    ("gpt-5.2", usage(service_tier="batch"), "0.001645"),
    ("gpt-5.2", usage(service_tier="priority"), "0.00658"),
    ("gpt-5.2", usage(service_tier="Priority"), "0.00658"),
    ("gpt-5.2", usage(service_tier="fast"), "0.00658"),
    # reasoning is inside the output
    ("gpt-5.2", usage(reasoning_tokens=150), "0.00329"),
    ("GPT-5.2", usage(), "0.00329"),
    ("gpt-5.2-2025-12-11", usage(), "0.00329"),
    # gpt-4.1: 2 in, 0.5 cached, 8 out, and no flex tier: the list price bounds it
    ("gpt-4.1", usage(), "0.0024"),
    ("gpt-4.1", usage(service_tier="flex"), "0.0024"),
    ("gpt-4.1", usage(service_tier="priority"), "0.0042"),
    # gpt-5.6: 4 in, 5 written to the cache, 0.4 cached, 20 out
    ("gpt-5.6", usage(), "0.00512"),
    ("gpt-5.6", usage(cache_write_tokens=200), "0.00532"),
    ("gpt-5.6", usage(cache_write_tokens=200, service_tier="priority"), "0.01064"),
    # above 272,000 tokens of input everything costs more: 10 written, 30 out
    ("gpt-5.6", usage(input_tokens=300_000, cached_tokens=0, cache_write_tokens=300_000), "3.006"),
    # fractions of the ledger's quantum are rounded up
    ("gpt-5-nano", Usage(input_tokens=1, output_tokens=1, cached_tokens=1), "0.00000041"),
]


@pytest.mark.parametrize(("model", "tokens", "dollars"), GOLDEN)
def test_a_call_costs_what_the_list_says(model: str, tokens: Usage, dollars: str) -> None:
    assert PRICES.cost(model, tokens) == Decimal(dollars)


@pytest.mark.parametrize("tier", ["ultrafast", "turbo", "background"])
def test_an_unknown_tier_is_never_taken_for_the_standard_one(tier: str) -> None:
    assert PRICES.cost("gpt-5.2", usage(service_tier=tier)) == 4 * PRICES.cost("gpt-5.2", usage())


def test_a_dear_tier_the_list_does_not_know_for_a_model_is_charged_like_an_unknown_one() -> None:
    standard = PRICES.cost("gpt-4-turbo", usage())
    assert PRICES.cost("gpt-4-turbo", usage(service_tier="priority")) == 4 * standard


def test_a_model_another_provider_resells_keeps_its_tiers() -> None:
    azure = GenaiPrices(provider="azure", now=now)
    assert azure.cost("gpt-5.2", usage()) == Decimal("0.00329")
    assert azure.cost("gpt-5.2", usage(service_tier="priority")) == Decimal("0.00658")


def test_the_price_of_the_day_is_charged() -> None:
    before = GenaiPrices(provider="openai", now=lambda: datetime(2026, 8, 20, tzinfo=UTC))
    assert before.cost("gpt-5.6", usage(cache_write_tokens=200)) == Decimal("0.00765")


UNKNOWN = [
    ("gpt-5.2-turbo", "gpt-5.2-pro"),
    ("gtp-5", "gpt-5"),
    ("my-deployment", "set price:"),
    ("ft:gpt-5.2:acme::x1", "set price:"),
    ("whisper-1", "lists no price of tokens"),
    ("text-embedding-3-small", "lists no price of tokens"),
    ("moderation", "lists no price of tokens"),
    ("", "set price:"),
]


@pytest.mark.parametrize(("model", "words"), UNKNOWN)
def test_a_model_without_a_price_is_refused_with_a_way_out(model: str, words: str) -> None:
    for _ in range(2):
        with pytest.raises(UnknownPrice) as caught:
            PRICES.cost(model, usage())
        assert words in str(caught.value)
        assert "site's file" in str(caught.value)


EMBEDDINGS = [
    # 0.02, 0.13 and 0.10 for a million tokens in; there are none out
    ("openai", "text-embedding-3-small", "0.00002"),
    ("openai", "text-embedding-3-large", "0.00013"),
    ("azure", "text-embedding-3-small", "0.00002"),
]


@pytest.mark.parametrize(("provider", "model", "dollars"), EMBEDDINGS)
def test_what_writes_nothing_needs_no_price_of_writing(
    provider: str, model: str, dollars: str
) -> None:
    prices = GenaiPrices(provider=provider, now=now)
    assert prices.cost(model, Usage(input_tokens=1000, output_tokens=0)) == Decimal(dollars)
    with pytest.raises(UnknownPrice, match="lists no price of tokens"):
        prices.cost(model, Usage(input_tokens=1000, output_tokens=1))


@pytest.mark.parametrize("model", ["text-embedding-9", "moderation", "whisper-1", ""])
def test_an_embedding_without_a_price_is_never_free(model: str) -> None:
    with pytest.raises(UnknownPrice, match="site's file"):
        PRICES.cost(model, Usage(input_tokens=1000, output_tokens=0))


def test_a_misspelt_embedding_is_answered_with_those_that_have_a_price() -> None:
    with pytest.raises(UnknownPrice, match="text-embedding-3-small"):
        PRICES.cost("text-embeding-3-small", Usage(input_tokens=1, output_tokens=0))


def test_a_listed_price_of_zero_is_no_price() -> None:
    openrouter = GenaiPrices(provider="openrouter", now=now)
    with pytest.raises(UnknownPrice, match="lists no price"):
        openrouter.cost("agentica-org/deepcoder-14b-preview:free", usage())


def test_a_provider_without_public_prices_has_only_what_a_site_states() -> None:
    override = PriceOverride(input_usd_per_mtok=Decimal(1), output_usd_per_mtok=Decimal(2))
    prices = GenaiPrices(provider=None, now=now, overrides={"llama": override})
    assert prices.cost("llama", usage()) == Decimal("0.0014")
    with pytest.raises(UnknownPrice, match="no public price list"):
        prices.cost("gpt-5.2", usage())


def test_an_override_wins_over_the_list_and_may_be_zero() -> None:
    free = PriceOverride(input_usd_per_mtok=Decimal(0), output_usd_per_mtok=Decimal(0))
    own = PriceOverride(
        input_usd_per_mtok=Decimal(3),
        output_usd_per_mtok=Decimal(9),
        cached_input_usd_per_mtok=Decimal("0.5"),
    )
    prices = GenaiPrices(provider="openai", now=now, overrides={"gpt-5.2": own, "own": free})
    assert prices.cost("gpt-5.2", usage()) == Decimal("0.0028")
    assert prices.cost("own", usage()) == 0


def test_a_misspelt_model_is_answered_with_the_sites_own_names_too() -> None:
    own = PriceOverride(input_usd_per_mtok=Decimal(3), output_usd_per_mtok=Decimal(9))
    prices = GenaiPrices(provider="openai", now=now, overrides={"acme-writer-7b": own})
    with pytest.raises(UnknownPrice, match="acme-writer-7b"):
        prices.cost("acme-writer-7", usage())


@pytest.mark.parametrize("price", ["-1", "nan", "inf"])
def test_an_impossible_price_is_refused(price: str) -> None:
    with pytest.raises(ConfigurationError):
        PriceOverride(input_usd_per_mtok=Decimal(price), output_usd_per_mtok=Decimal(1))
    with pytest.raises(ConfigurationError):
        PriceOverride(
            input_usd_per_mtok=Decimal(1),
            output_usd_per_mtok=Decimal(1),
            cached_input_usd_per_mtok=Decimal(price),
        )


def test_a_provider_that_is_not_in_the_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="acme"):
        GenaiPrices(provider="acme", now=now)


def test_the_price_data_has_a_version_to_record() -> None:
    assert PRICES.version == f"genai-prices {genai_prices.__version__}"


def test_prices_never_come_over_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a price was looked up over the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("genai_prices.UpdatePrices.start", refuse)
    fresh = GenaiPrices(provider="openai", now=now)
    assert fresh.cost("gpt-5.2", usage()) == Decimal("0.00329")


@settings(deadline=None)
@given(
    st.integers(1, 500_000),
    st.integers(1, 100_000),
    st.sampled_from([None, "default", "flex", "batch", "priority", "fast", "later"]),
    st.sampled_from(["gpt-5.2", "gpt-4.1", "gpt-5.6", "gpt-5-nano"]),
)
def test_every_paid_call_costs_something_and_caching_never_adds(
    sent: int, received: int, tier: str | None, model: str
) -> None:
    tokens = {"input_tokens": sent, "output_tokens": received, "service_tier": tier}
    plain = PRICES.cost(model, Usage(**tokens))  # type: ignore[arg-type]
    cached = PRICES.cost(model, Usage(**tokens, cached_tokens=sent))  # type: ignore[arg-type]
    assert 0 < cached <= plain
