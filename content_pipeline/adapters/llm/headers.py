"""Headers of a provider's answers: which ones are kept, and what they say about waiting.

What belongs here: pure functions over response headers. Request headers are ``http``'s.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from content_pipeline.adapters.retry_after import announced_wait_s

KEPT_HEADERS = frozenset(
    {
        "apim-request-id",
        "cf-ray",
        "content-type",
        "date",
        "openai-processing-ms",
        "openai-version",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
    }
)
"""Stored with every answer; anything else may be a cookie or name an account."""

KEPT_PREFIX = "x-ratelimit-"

KEPT_VALUE_LENGTH = 256
"""Characters of a header kept: the longest useful one is a date of 29."""

_TOKEN = re.compile(r"(?!sk-)[A-Za-z0-9][A-Za-z0-9_.:/+@-]{0,127}")
"""What an identifier looks like: no blanks, so no sentence; and never the start of a key."""


def safe_token(value: object) -> str | None:
    """``value`` if it is an identifier that may be stored and shown, else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**9 else None
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers worth storing, by lower-case name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {
        name: value[:KEPT_VALUE_LENGTH]
        for name, value in lower.items()
        if name in KEPT_HEADERS or name.startswith(KEPT_PREFIX)
    }


def request_id(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the request, for a support case."""
    kept = kept_headers(headers)
    return safe_token(kept.get("x-request-id")) or safe_token(kept.get("apim-request-id"))


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the other side asks to wait, at most a day; None when it says nothing usable."""
    kept = kept_headers(headers)
    milliseconds = announced_wait_s(kept.get("retry-after-ms"), now, unit_s=0.001)
    return milliseconds or announced_wait_s(kept.get("retry-after"), now)
