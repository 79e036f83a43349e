from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.money import (
    MESSAGE_OVERHEAD_TOKENS,
    USD_QUANTUM,
    Usage,
    input_token_bound,
    round_usd,
)

amounts = st.decimals(
    min_value=0, max_value=10**9, allow_nan=False, allow_infinity=False, places=14
)


@given(amount=amounts)
def test_an_amount_is_rounded_up_by_less_than_a_quantum(amount: Decimal) -> None:
    rounded = round_usd(amount)
    assert 0 <= rounded - amount < USD_QUANTUM
    assert round_usd(rounded) == rounded


@given(parts=st.lists(amounts, max_size=20))
def test_a_sum_of_rounded_parts_never_understates(parts: list[Decimal]) -> None:
    assert sum(map(round_usd, parts), Decimal(0)) >= sum(parts, Decimal(0))


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [
        ("0", "0.00000000"),
        ("0.000000001", "0.00000001"),
        ("1.000000010", "1.00000001"),
        ("1.000000011", "1.00000002"),
        ("0.1", "0.10000000"),
    ],
)
def test_amounts_keep_eight_decimals(amount: str, rounded: str) -> None:
    assert f"{round_usd(Decimal(amount)):f}" == rounded


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [((), 0), (("",), 0), (("abc",), 3), (("é", "日本"), 8), (("\N{GRINNING FACE}",), 4)],
)
def test_a_token_is_never_shorter_than_one_byte(texts: tuple[str, ...], tokens: int) -> None:
    assert input_token_bound(*texts) == tokens + MESSAGE_OVERHEAD_TOKENS


def test_a_usage_without_particulars_cached_nothing() -> None:
    usage = Usage(input_tokens=10, output_tokens=2)
    assert (usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens) == (0, 0, 0)
    assert usage.service_tier is None


@pytest.mark.parametrize(
    "counts",
    [
        {"input_tokens": -1, "output_tokens": 0},
        {"input_tokens": 0, "output_tokens": -1},
        {"input_tokens": 1, "output_tokens": 0, "cached_tokens": -1},
        {"input_tokens": 1, "output_tokens": 0, "cached_tokens": 2},
        {"input_tokens": 1, "output_tokens": 0, "cache_write_tokens": -1},
        {"input_tokens": 1, "output_tokens": 0, "reasoning_tokens": -1},
    ],
    ids=str,
)
def test_impossible_counts_are_refused(counts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="impossible token counts"):
        Usage(**counts)


def test_everything_that_was_sent_may_have_been_cached() -> None:
    assert Usage(input_tokens=5, output_tokens=0, cached_tokens=5).cached_tokens == 5
