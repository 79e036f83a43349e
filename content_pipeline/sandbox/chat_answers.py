"""Composing the answer to an accepted request: text, usage and the completion document.

What belongs here: pure functions. The model's own failings (a refusal, an answer cut short) are
made here as well, because they are part of what is billed and stored; faults of delivery are not.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from content_pipeline.core.article import Article
from content_pipeline.sandbox.chat_requests import (
    BYTES_PER_TOKEN,
    ApiError,
    CompletionRequest,
    count_tokens,
)
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline.sandbox.schemas import ImpossibleSchema, instance_of
from content_pipeline.sandbox.writer import write_article

REASONING = re.compile(r"^(o\d|gpt-5)")
"""Models that bill hidden reasoning tokens as output."""
REASONING_STEP = 64
REFUSAL = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model came up with, and the output it bills."""

    content: str | None = field(repr=False)
    refusal: str | None = None
    finish_reason: str = "stop"
    reasoning_tokens: int = 0

    @property
    def completion_tokens(self) -> int:
        """All output, reasoning included."""
        return self.reasoning_tokens + count_tokens(self.content or self.refusal or "")


def compose(request: CompletionRequest, seed: int, fault: FaultKind | None) -> Answer:
    """The model's answer, spoilt as ``fault`` says if that is a fault of the model.

    Raises ApiError for a schema that no answer can be made for.
    """
    text = _text(request, seed)
    reasoning = _reasoning_tokens(request, seed)
    half = text[: len(text) // 2]
    match fault:
        case FaultKind.REFUSAL:
            return Answer(content=None, refusal=REFUSAL, reasoning_tokens=reasoning)
        case FaultKind.CONTENT_FILTER:
            return Answer(content=half, finish_reason="content_filter", reasoning_tokens=reasoning)
        case FaultKind.LENGTH:
            return Answer(content=half, finish_reason="length", reasoning_tokens=reasoning)
        case FaultKind.BROKEN_JSON:
            return Answer(content=half, reasoning_tokens=reasoning)
        case FaultKind.EMPTY_CONTENT:
            return Answer(content="", reasoning_tokens=reasoning)
    return _within_limit(Answer(content=text, reasoning_tokens=reasoning), request.max_tokens)


def _text(request: CompletionRequest, seed: int) -> str:
    if request.schema is None:
        return write_article(request.prompt, seed).plain_text()
    if not request.schema or set(request.schema.get("properties", ())) == set(Article.model_fields):
        return write_article(request.prompt, seed).model_dump_json()
    try:
        return json.dumps(instance_of(request.schema), ensure_ascii=False)
    except ImpossibleSchema as error:
        reason = str(error)
    except (AttributeError, KeyError, TypeError):
        reason = "it is not a JSON schema"
    message = f"Invalid schema for response_format: {reason}."
    raise ApiError(400, message, code="invalid_json_schema", param="response_format")


def _reasoning_tokens(request: CompletionRequest, seed: int) -> int:
    if not REASONING.match(request.model):
        return 0
    draw = random.Random(f"reasoning {seed} {request.key}")  # noqa: S311  # seeded on purpose
    return REASONING_STEP * draw.randint(1, 8)


def _within_limit(answer: Answer, max_tokens: int | None) -> Answer:
    """``answer``, cut where ``max_tokens`` ends it: reasoning counts, and comes first."""
    if max_tokens is None or answer.completion_tokens <= max_tokens:
        return answer
    reasoning = min(answer.reasoning_tokens, max_tokens)
    room = (max_tokens - reasoning) * BYTES_PER_TOKEN
    return Answer(
        content=(answer.content or "").encode()[:room].decode(errors="ignore"),
        finish_reason="length",
        reasoning_tokens=reasoning,
    )


def completion_document(
    request: CompletionRequest, answer: Answer, completion_id: str, created: int
) -> dict[str, Any]:
    """The chat.completion object as create() returns it: without the metadata."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.content,
        "refusal": answer.refusal,
        "annotations": [],
    }
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": request.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": answer.finish_reason,
            }
        ],
        "usage": _usage(request, answer),
        "service_tier": "default",
        "system_fingerprint": "fp_sandbox",
    }


def _usage(request: CompletionRequest, answer: Answer) -> Mapping[str, Any]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": request.prompt_tokens + answer.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": request.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
