"""What the sandbox provider accepts as a request for a chat completion, and how it refuses.

What belongs here: the documented rules of the API on a request's body, as pure functions of that
body and the settings. The answer to an accepted request is composed in ``chat_answers``.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from content_pipeline.sandbox.schemas import strict_problem
from content_pipeline.sandbox.settings import ProviderSettings

MODEL_PREFIXES = ("gpt-", "o", "sandbox")
BYTES_PER_TOKEN = 4
"""English text in current vocabularies; a caller's bound of one byte per token stays above it."""
TOKENS_PER_MESSAGE = 4
CACHE_STEP = 128
CACHE_LEAST = 1024
"""Prompts of fewer tokens are never cached, and cached parts grow in steps of 128."""
METADATA_PAIRS, METADATA_KEY, METADATA_VALUE = 16, 64, 512
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class ApiError(Exception):
    """A refused request, as the provider's error envelope tells it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.envelope = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One accepted request for a completion."""

    key: str
    """The attempt id, or the digest of the body: seed of latency, text and faults."""
    model: str
    messages: Sequence[Mapping[str, Any]] = field(repr=False)
    prompt: str = field(repr=False)
    """Text of the last user message."""
    prompt_tokens: int
    cached_tokens: int
    schema: Mapping[str, Any] | None
    """The asked JSON schema; an empty one for JSON of any shape, None for plain text."""
    max_tokens: int | None
    store: bool
    metadata: Mapping[str, str]


def parse_request(body: bytes, settings: ProviderSettings) -> CompletionRequest:
    """The request in ``body``. Raises ApiError."""
    document = json_body(body)
    model = known_model(document, settings)
    messages, texts = _messages(document)
    if document.get("metadata") and document.get("store") is not True:
        message = "The 'metadata' parameter is only allowed when 'store' is enabled."
        raise ApiError(400, message, param="metadata")
    metadata = checked_metadata(document)
    if document.get("stream") or document.get("n") not in (None, 1):
        raise ApiError(400, "The sandbox gives one whole answer: no 'stream' and no 'n' above 1.")
    prompt_tokens = sum(count_tokens(text) + TOKENS_PER_MESSAGE for text in texts)
    max_tokens = positive_integer(document, "max_completion_tokens", "max_tokens")
    check_length(prompt_tokens + (max_tokens or 0), settings, param="messages")
    users = [
        text for message, text in zip(messages, texts, strict=True) if message["role"] == "user"
    ]
    return CompletionRequest(
        key=metadata.get("attempt_id") or hashlib.sha256(body).hexdigest()[:32],
        model=model,
        messages=messages,
        prompt=users[-1] if users else texts[-1],
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens_of(prompt_tokens, texts[0]),
        schema=_schema(document),
        max_tokens=max_tokens,
        store=document.get("store") is True,
        metadata=metadata,
    )


def check_length(needed: int, settings: ProviderSettings, *, param: str) -> None:
    """Raise ApiError when prompt and answer together are too long for a model."""
    if needed > settings.context_tokens:
        raise ApiError(
            400,
            f"This model's maximum context length is {settings.context_tokens} tokens. However, "
            f"you requested {needed} tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
            param=param,
        )


def json_body(body: bytes) -> dict[str, Any]:
    """The JSON object in a request's ``body``. Raises ApiError."""
    try:
        document = json.loads(body)
        if isinstance(document, dict):
            return document
    except (ValueError, RecursionError):
        pass
    raise ApiError(400, "We could not parse the JSON body of your request.")


def model_exists(model: str, settings: ProviderSettings) -> bool:
    """Whether ``model`` can be asked here."""
    if settings.models:
        return model in settings.models
    return model.startswith(MODEL_PREFIXES)


def unknown_model(model: str) -> ApiError:
    """The refusal for a model that does not exist."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return ApiError(404, message, code="model_not_found")


def known_model(document: Mapping[str, Any], settings: ProviderSettings) -> str:
    """The asked model. Raises ApiError for one that does not exist."""
    model = document.get("model")
    if not isinstance(model, str) or not model:
        raise ApiError(400, "you must provide a model parameter", param="model")
    if not model_exists(model, settings):
        raise unknown_model(model)
    return model


def _messages(document: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "Missing required parameter: 'messages'.", param="messages")
    texts = []
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ROLES:
            raise ApiError(400, f"Invalid value for '{place}.role'.", param=f"{place}.role")
        texts.append(text_in(message.get("content"), f"{place}.content"))
    return messages, texts


def text_in(content: object, place: str) -> str:
    """The text of a message's content, of which ``place`` is the name. Raises ApiError."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    if content is None:
        content = ""
    if not isinstance(content, str):
        raise ApiError(400, f"Invalid type for '{place}'.", code="invalid_type", param=place)
    try:
        content.encode()
    except UnicodeEncodeError:
        raise ApiError(400, f"'{place}' is not valid Unicode.", param=place) from None
    return content


def checked_metadata(document: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a request. Raises ApiError."""
    metadata = document.get("metadata")
    if metadata is None or metadata == {}:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ApiError(400, "'metadata' must map strings to strings.", param="metadata")
    if len(metadata) > METADATA_PAIRS:
        raise ApiError(400, f"'metadata' has more than {METADATA_PAIRS} pairs.", param="metadata")
    for key, value in metadata.items():
        if len(key) > METADATA_KEY or len(value) > METADATA_VALUE:
            limits = f"{METADATA_KEY} and {METADATA_VALUE} characters"
            message = f"A key or value of 'metadata' is longer than {limits}."
            raise ApiError(400, message, code="string_above_max_length", param="metadata")
    return metadata


def positive_integer(document: Mapping[str, Any], *names: str) -> int | None:
    """The first of the parameters ``names`` that is given. Raises ApiError."""
    for name in names:
        value = document.get(name)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ApiError(400, f"Invalid '{name}': must be a positive integer.", param=name)
            return value
    return None


def _schema(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = document.get("response_format")
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return {}
    described = wanted.get("json_schema") if kind == "json_schema" else None
    return checked_schema(described, "response_format", "response_format.json_schema")


def checked_schema(described: object, param: str, place: str) -> Mapping[str, Any]:
    """The schema in a described output format. Raises ApiError."""
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(described, dict) or not isinstance(schema, dict):
        raise ApiError(400, f"Invalid '{param}'.", param=param)
    name = described.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise ApiError(400, f"Invalid '{place}.name'.", param=param)
    problem = strict_problem(schema) if described.get("strict") else None
    if problem:
        message = f"Invalid schema for {param} '{name}': {problem}"
        raise ApiError(400, message, code="invalid_json_schema", param=param)
    return schema


def cached_tokens_of(prompt_tokens: int, first: str) -> int:
    """Tokens of the first message, which all pages of a site share, as a warm cache has them."""
    if prompt_tokens < CACHE_LEAST:
        return 0
    return count_tokens(first) // CACHE_STEP * CACHE_STEP


def count_tokens(text: str) -> int:
    """About the tokens of ``text``; never more than its UTF-8 bytes."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)
