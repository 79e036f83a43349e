"""A request, a completion and a client, each with one detail to change."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.core.article import SCHEMA_NAME, article_schema
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.ports import GenerationRequest, RawResponse

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
"""The time in every test; after the dated prices of the list."""

KEY = "sk-canary-key-0123456789"
PROMPT = "canary prompt: twelve quiet towers of Bologna"
TEXT = '{"title": "canary text of the model"}'


def now() -> datetime:
    return NOW


def request(**changes: Any) -> GenerationRequest:
    fields: dict[str, Any] = {
        "attempt_id": "att-0001",
        "page_job_id": "job-0001",
        "model": "gpt-5.2",
        "system": "You write articles.",
        "user": PROMPT,
        "schema_name": SCHEMA_NAME,
        "schema": article_schema(),
        "max_output_tokens": 1200,
        "temperature": None,
        "deadline_s": 20.0,
    }
    return GenerationRequest(**{**fields, **changes})


def chat(base_url: str, *, profile: str = "openai", **changes: Any) -> OpenAIModel:
    arguments = {"api_key": KEY, "now": now, "base_url": base_url, **changes}
    return OpenAIModel(profile=provider_profile(profile), **arguments)


def responses(base_url: str, **changes: Any) -> OpenAIModel:
    """The same client, over the Responses API and in the background unless said otherwise."""
    return chat(base_url, **{"api": GenerationAPI.RESPONSES, "background": True, **changes})


def completion(
    *, message: Mapping[str, Any] | None = None, finish: object = "stop", **changes: Any
) -> dict[str, Any]:
    """A chat completion as OpenAI sends it."""
    whole = {"role": "assistant", "content": TEXT, "refusal": None, **(message or {})}
    document = {
        "id": "chatcmpl-0001",
        "object": "chat.completion",
        "created": 1796000000,
        "model": "gpt-5.2-2025-12-11",
        "choices": [{"index": 0, "message": whole, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 900,
            "completion_tokens": 300,
            "total_tokens": 1200,
            "prompt_tokens_details": {"cached_tokens": 800},
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        "service_tier": "default",
    }
    return {**document, **changes}


def response(
    *, parts: Sequence[object] | None = None, status: str = "completed", **changes: Any
) -> dict[str, Any]:
    """A response as OpenAI sends it; ``parts``: the content of its message."""
    content = [{"type": "output_text", "text": TEXT, "annotations": []}] if parts is None else parts
    document = {
        "id": "resp_0001",
        "object": "response",
        "created_at": 1796000000,
        "status": status,
        "background": True,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.2-2025-12-11",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": []},
            {"id": "msg_1", "type": "message", "role": "assistant", "content": content},
        ],
        "usage": {
            "input_tokens": 900,
            "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 40},
            "output_tokens": 300,
            "output_tokens_details": {"reasoning_tokens": 100},
            "total_tokens": 1200,
        },
        "service_tier": "default",
        "metadata": {"attempt_id": "att-0001"},
    }
    return {**document, **changes}


def accepted(status: str = "queued", **changes: Any) -> dict[str, Any]:
    """A background response that is not complete."""
    return response(status=status, output=[], usage=None, **changes)


def raw(body: bytes | object, headers: Mapping[str, str] | None = None) -> RawResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return RawResponse(status=200, headers=headers or {}, body=data)
