"""The tokens a paid answer reports, or nothing at all when the report cannot be right.

What belongs here: the checks that keep a wrong report from becoming a cost of zero. Dollars are
``prices``'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from content_pipeline.adapters.llm.headers import safe_token
from content_pipeline.core.money import Usage


@dataclass(frozen=True, slots=True)
class _Names:
    """What one API calls the two counts; their details are named after them."""

    sent: str
    received: str


_CHAT = _Names("prompt_tokens", "completion_tokens")
_RESPONSES = _Names("input_tokens", "output_tokens")


def reported_usage(document: Mapping[str, object]) -> Usage | None:
    """The usage in the ``document`` of a completion or response; None: book the worst case.

    None for missing, negative or non-integer counts and for a call without a single token in or
    out: a gateway that fills in zeros would otherwise make a paid call free.
    """
    usage = document.get("usage")
    if not isinstance(usage, Mapping):
        return None
    names = _RESPONSES if document.get("object") == "response" else _CHAT
    sent = _count(usage.get(names.sent))
    received = _count(usage.get(names.received))
    if not sent or not received:
        return None
    try:
        return Usage(
            input_tokens=sent,
            output_tokens=_all_output(sent, received, usage),
            cached_tokens=_detail(usage, f"{names.sent}_details", "cached_tokens"),
            cache_write_tokens=_detail(usage, f"{names.sent}_details", "cache_write_tokens"),
            reasoning_tokens=_detail(usage, f"{names.received}_details", "reasoning_tokens"),
            service_tier=safe_token(document.get("service_tier")),
        )
    except ValueError:
        return None


def reported_embedding_usage(document: Mapping[str, object]) -> Usage | None:
    """The usage in an answer of embeddings, which have no output; None as above."""
    usage = document.get("usage")
    if not isinstance(usage, Mapping):
        return None
    sent = max(_count(usage.get("prompt_tokens")) or 0, _count(usage.get("total_tokens")) or 0)
    return Usage(input_tokens=sent, output_tokens=0) if sent else None


def _all_output(sent: int, received: int, usage: Mapping[str, object]) -> int:
    """Output with reasoning: some servers bill it in the total but leave it out of the output."""
    total = _count(usage.get("total_tokens")) or 0
    return max(received, total - sent)


def _detail(usage: Mapping[str, object], group: str, name: str) -> int:
    details = usage.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, Mapping) else 0


def _count(value: object) -> int | None:
    """A token count; None for anything else. Beyond 10**9 it is not a count of one call."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
        return value
    return None
