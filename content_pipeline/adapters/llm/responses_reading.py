"""The text of a response (the Responses API), or why it has none, or not yet.

What belongs here: the order of the questions asked of a response. Why one ``failed`` is told by
its error object, like every error object, in ``reading``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from content_pipeline.adapters.llm.headers import safe_token
from content_pipeline.adapters.llm.unusable import (
    Unusable,
    called_a_tool,
    checked_text,
    cut,
    declined,
    filtered,
)
from content_pipeline.core.failures import FailureClass

AT_WORK = frozenset({"queued", "in_progress"})

ENDED_EARLY = {"max_output_tokens": cut, "content_filter": filtered}
"""Why a response is incomplete, where that means what it means for a chat completion."""


def is_response(document: Mapping[str, Any]) -> bool:
    """Whether ``document`` is an answer of the Responses API."""
    return document.get("object") == "response"


def kept_as(document: Mapping[str, Any]) -> str | None:
    """The id by which the provider hands ``document`` out again."""
    return safe_token(document.get("id")) if is_response(document) else None


def response_text(document: Mapping[str, Any]) -> str:
    """The text of a completed response. Raises Unusable."""
    _check_status(document)
    output = document.get("output")
    if not isinstance(output, list) or not output:
        raise Unusable(
            FailureClass.UNCERTAIN,
            "the response is complete and has no output; it may exist elsewhere and be billed",
        )
    items = [item for item in output if isinstance(item, Mapping)]
    kinds = {item.get("type") for item in items}
    parts = list(_parts(items))
    if any(part.get("type") == "refusal" for part in parts):
        raise declined()
    if any(isinstance(kind, str) and kind.endswith("_call") for kind in kinds):
        raise called_a_tool()
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    text = "".join(text for text in texts if isinstance(text, str))
    return checked_text(text, reasoned="reasoning" in kinds)


def response_finish(document: Mapping[str, Any]) -> str | None:
    """Why it is incomplete, or else its status, where that is an identifier."""
    details = document.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return safe_token(reason) or safe_token(document.get("status"))


def _check_status(document: Mapping[str, Any]) -> None:
    status = document.get("status")
    if isinstance(status, str) and status in AT_WORK:
        raise Unusable(
            FailureClass.UNCERTAIN, f"the response is {status}; it is asked for by its id"
        )
    if status == "cancelled":
        raise Unusable(
            FailureClass.BAD_OUTPUT,
            "the response was cancelled before it was complete; what it cost is not known",
        )
    if status == "incomplete":
        reason = response_finish(document)
        end = ENDED_EARLY.get(reason or "")
        words = f"the response is incomplete for the reason {reason}"
        raise end() if end else Unusable(FailureClass.BAD_OUTPUT, words)
    if status != "completed":
        name = safe_token(status) or "without a name"
        raise Unusable(
            FailureClass.UNCERTAIN,
            f"the response has the status {name}, which is none; it may exist and be billed",
        )


def _parts(items: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The parts of the messages among ``items``, in order."""
    for item in items:
        content = item.get("content")
        if item.get("type") == "message" and isinstance(content, list):
            yield from (part for part in content if isinstance(part, Mapping))
