"""The text of a chat completion, or why it has none.

What belongs here: the order of the questions asked of a completion. The body as a whole, and what
it says beside the text, are ``reading``'s.
"""

from collections.abc import Mapping
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

CUT_REASONS = frozenset({"length", "max_tokens", "max_output_tokens"})
TOOL_REASONS = frozenset({"tool_calls", "function_call"})


def completion_text(document: Mapping[str, Any], *, finish_null_ok: bool) -> str:
    """The text of a completed answer. Raises Unusable.

    The reason of the end is asked before the content is.
    """
    choice = _choice(document)
    message = choice["message"]
    _check_declined(choice, message)
    _check_finish(choice, message, finish_null_ok=finish_null_ok)
    reasoned = message.get("reasoning_content") or message.get("reasoning")
    return checked_text(message.get("content"), reasoned=bool(reasoned))


def completion_finish(document: Mapping[str, Any]) -> str | None:
    """The reason of the end, where it is an identifier."""
    try:
        return safe_token(_choice(document).get("finish_reason"))
    except Unusable:
        return None


def _choice(document: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unusable(
            FailureClass.UNCERTAIN,
            "the body has no choices, so it is no completion; one may exist and be billed",
        )
    if len(choices) > 1:
        raise Unusable(FailureClass.BAD_OUTPUT, f"{len(choices)} choices where one was asked for")
    choice = choices[0]
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        raise Unusable(
            FailureClass.UNCERTAIN,
            "its only choice holds no message; a completion may exist and be billed",
        )
    return choice


def _check_declined(choice: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    if choice.get("finish_reason") == "content_filter":
        raise filtered()
    if message.get("refusal"):
        raise declined()


def _check_finish(
    choice: Mapping[str, Any], message: Mapping[str, Any], *, finish_null_ok: bool
) -> None:
    reason = choice.get("finish_reason")
    if reason is not None and not isinstance(reason, str):
        raise Unusable(FailureClass.BAD_OUTPUT, "the finish reason is not a text")
    if reason in CUT_REASONS:
        raise cut()
    if message.get("tool_calls") or message.get("function_call") or reason in TOOL_REASONS:
        raise called_a_tool()
    if reason is None and not finish_null_ok:
        raise Unusable(
            FailureClass.BAD_OUTPUT,
            "no finish reason, so the answer may be incomplete; if this server never sends one, "
            "use a provider profile that allows it",
        )
    if reason not in (None, "stop"):
        name = safe_token(reason) or "without a name"
        raise Unusable(FailureClass.BAD_OUTPUT, f"unexpected finish reason {name}")
