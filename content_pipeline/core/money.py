"""Tokens and dollars: usage of one paid call, and the bounds reserved before it.

What belongs here: arithmetic on tokens and Decimal dollars. Prices come from an adapter behind
``ports.PriceList``; reservations are rows of the ledger.
"""

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

USD_QUANTUM = Decimal("0.00000001")
"""The ledger keeps 8 decimals: one token of the cheapest model costs about 5e-8 dollars."""

MESSAGE_OVERHEAD_TOKENS = 64
"""Roles, separators and the schema's framing that a provider adds around our messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one paid call, as the provider reports them."""

    input_tokens: int
    """All input tokens, the cached ones included."""
    output_tokens: int
    """All output tokens, reasoning included."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    """Input tokens that were written to the provider's cache, which some models charge extra."""
    reasoning_tokens: int = 0
    service_tier: str | None = None
    """The tier that really served the call; it decides the price."""

    def __post_init__(self) -> None:
        counts = (
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
        )
        if min(counts) < 0 or self.cached_tokens > self.input_tokens:
            raise ValueError(
                f"impossible token counts {counts}: negative, or more cached than sent"
            )


def input_token_bound(*texts: str) -> int:
    """An upper bound of the tokens in ``texts``: a token is never shorter than one UTF-8 byte."""
    return sum(len(text.encode()) for text in texts) + MESSAGE_OVERHEAD_TOKENS


def round_usd(amount: Decimal) -> Decimal:
    """``amount`` rounded up to the ledger's 8 decimals, so that a sum never understates."""
    return amount.quantize(USD_QUANTUM, rounding=ROUND_UP)
