"""What the sandbox provider accepts as a request for a response, and how it refuses.

What belongs here: the documented rules of the Responses API on a request's body. A response is
made like a chat completion, so the accepted request is the same value, and what is asked of the
answer's delivery stands beside it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.sandbox.chat_requests import (
    ROLES,
    TOKENS_PER_MESSAGE,
    ApiError,
    CompletionRequest,
    cached_tokens_of,
    check_length,
    checked_metadata,
    checked_schema,
    count_tokens,
    json_body,
    known_model,
    positive_integer,
    text_in,
)
from content_pipeline.sandbox.settings import ProviderSettings

LEAST_OUTPUT_TOKENS = 16
"""The API refuses a smaller limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """One accepted request for a response."""

    asked: CompletionRequest
    background: bool
    """The client gets the id at once and asks for the rest."""


def parse_response_request(body: bytes, settings: ProviderSettings) -> ResponseRequest:
    """The request in ``body``. Raises ApiError."""
    document = json_body(body)
    model = known_model(document, settings)
    messages = _messages(document)
    metadata = checked_metadata(document)
    background, store = document.get("background") is True, document.get("store") is not False
    if document.get("stream"):
        raise ApiError(400, "The sandbox gives one whole answer: no 'stream'.", param="stream")
    if background and not store:
        raise ApiError(400, "Background mode requires 'store' to be true.", param="background")
    max_tokens = positive_integer(document, "max_output_tokens")
    if max_tokens is not None and max_tokens < LEAST_OUTPUT_TOKENS:
        message = f"Invalid 'max_output_tokens': must be at least {LEAST_OUTPUT_TOKENS}."
        raise ApiError(400, message, code="integer_below_min_value", param="max_output_tokens")
    texts = [message["content"] for message in messages]
    prompt_tokens = sum(count_tokens(text) + TOKENS_PER_MESSAGE for text in texts)
    check_length(prompt_tokens + (max_tokens or 0), settings, param="input")
    asked = CompletionRequest(
        key=metadata.get("attempt_id") or hashlib.sha256(body).hexdigest()[:32],
        model=model,
        messages=messages,
        prompt=[m["content"] for m in messages if m["role"] == "user"][-1],
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens_of(prompt_tokens, texts[0]),
        schema=_schema(document),
        max_tokens=max_tokens,
        store=store,
        metadata=metadata,
    )
    return ResponseRequest(asked=asked, background=background)


def _messages(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Instructions and input as messages of plain text, at least one of them a user's."""
    given = document.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not items:
        raise ApiError(400, "Missing required parameter: 'input'.", param="input")
    messages = []
    if document.get("instructions") is not None:
        text = text_in(document["instructions"], "instructions")
        messages.append({"role": "system", "content": text})
    for index, item in enumerate(items):
        place = f"input[{index}]"
        role = item.get("role") if isinstance(item, dict) else None
        if not isinstance(role, str) or role not in ROLES:
            raise ApiError(400, f"Invalid value for '{place}.role'.", param=f"{place}.role")
        messages.append({"role": role, "content": text_in(item.get("content"), place)})
    if not any(message["role"] == "user" for message in messages):
        raise ApiError(400, "The sandbox needs a user's message in 'input'.", param="input")
    return messages


def _schema(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    text = document.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return {}
    described = wanted if kind == "json_schema" else None
    return checked_schema(described, "text.format", "text.format")
