"""The response object as the Responses API shows it, from its acceptance to its end.

What belongs here: documents, as pure functions. What the model answers is composed as for a chat
completion, in ``chat_answers``.
"""

from collections.abc import Mapping
from typing import Any

from content_pipeline.sandbox.chat_answers import Answer
from content_pipeline.sandbox.response_requests import ResponseRequest

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""How an end that a chat completion names in ``finish_reason`` is told here."""


def unanswered_document(
    request: ResponseRequest,
    response_id: str,
    created: int,
    status: str,
    error: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A response without output: ``queued``, ``in_progress``, ``failed`` or ``cancelled``."""
    asked = request.asked
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": status,
        "background": request.background,
        "error": error,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": asked.max_tokens,
        "metadata": asked.metadata,
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "service_tier": "default",
        "store": asked.store,
        "temperature": 1.0,
        "text": {"format": {"type": "text" if asked.schema is None else "json_object"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
    }


def answered_document(
    request: ResponseRequest, answer: Answer, response_id: str, created: int
) -> dict[str, Any]:
    """A response that the model has ended: ``completed`` or ``incomplete``."""
    reason = INCOMPLETE.get(answer.finish_reason)
    status = "incomplete" if reason else "completed"
    return unanswered_document(request, response_id, created, status) | {
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [*_reasoning(answer, response_id), _message(answer, response_id, status)],
        "usage": _usage(request, answer),
    }


def _reasoning(answer: Answer, response_id: str) -> list[dict[str, Any]]:
    if not answer.reasoning_tokens:
        return []
    return [{"id": f"rs_{response_id}", "type": "reasoning", "summary": []}]


def _message(answer: Answer, response_id: str, status: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": answer.content, "annotations": []}
    if answer.refusal is not None:
        part = {"type": "refusal", "refusal": answer.refusal}
    return {
        "id": f"msg_{response_id}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [part],
    }


def _usage(request: ResponseRequest, answer: Answer) -> dict[str, Any]:
    asked = request.asked
    return {
        "input_tokens": asked.prompt_tokens,
        "input_tokens_details": {"cached_tokens": asked.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": asked.prompt_tokens + answer.completion_tokens,
    }
