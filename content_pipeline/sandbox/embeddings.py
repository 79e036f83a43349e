"""What the sandbox provider accepts as a request for embeddings, and the answer to it.

What belongs here: the documented rules of that endpoint, as pure functions of a request's body and
the settings. How vectors come about is in ``vectors``.
"""

import base64
import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from content_pipeline.sandbox.chat_requests import (
    ApiError,
    count_tokens,
    json_body,
    unknown_model,
)
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.vectors import vector_of

LENGTHS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "sandbox-embedding": 256,
}
"""The models there are and how many numbers a vector of each has."""
FIXED = frozenset({"text-embedding-ada-002"})
"""Models of before ``dimensions`` could be asked for."""
MOST_TOKENS = 8192
"""Of one text."""
MOST_TEXTS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsRequest:
    """One accepted request for embeddings."""

    key: str
    """The caller's request id, or the digest of the body: seed of latency and faults."""
    attempt_id: str | None
    """The caller's request id: the endpoint takes no metadata."""
    model: str
    texts: Sequence[str] = field(repr=False)
    dimensions: int
    is_base64: bool
    prompt_tokens: int


def parse_embeddings(
    body: bytes, headers: Mapping[str, str], settings: ProviderSettings
) -> EmbeddingsRequest:
    """The request in ``body``. Raises ApiError."""
    document = json_body(body)
    model = _model(document, settings)
    texts = _texts(document.get("input"))
    tokens = [count_tokens(text) for text in texts]
    if max(tokens) > MOST_TOKENS:
        raise ApiError(
            400,
            f"This model's maximum context length is {MOST_TOKENS} tokens, however you requested "
            f"{max(tokens)} tokens. Please reduce your prompt.",
            code="context_length_exceeded",
            param="input",
        )
    encoding = document.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise ApiError(400, "Invalid 'encoding_format'.", param="encoding_format")
    attempt_id = headers.get("x-client-request-id") or None
    return EmbeddingsRequest(
        key=attempt_id or hashlib.sha256(body).hexdigest()[:32],
        attempt_id=attempt_id,
        model=model,
        texts=texts,
        dimensions=_dimensions(document, model),
        is_base64=encoding == "base64",
        prompt_tokens=sum(tokens),
    )


def embeddings_document(asked: EmbeddingsRequest, fault: FaultKind | None) -> dict[str, Any]:
    """The list of vectors as the endpoint returns it, spoilt as ``fault`` says if that is one."""
    vectors = [vector_of(text, asked.dimensions, LENGTHS[asked.model]) for text in asked.texts]
    match fault:
        case FaultKind.BROKEN_JSON:
            vectors = [[math.nan, *vector[1:]] for vector in vectors]
        case FaultKind.LENGTH:
            vectors = [vector[: len(vector) // 2] for vector in vectors]
        case FaultKind.EMPTY_CONTENT:
            vectors = [[] for _ in vectors]
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, asked)}
            for index, vector in enumerate(vectors)
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": asked.prompt_tokens, "total_tokens": asked.prompt_tokens},
    }


def _encoded(vector: Sequence[float], asked: EmbeddingsRequest) -> str | list[float]:
    if asked.is_base64:
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    return list(vector)


def _model(document: Mapping[str, Any], settings: ProviderSettings) -> str:
    model = document.get("model")
    if not isinstance(model, str) or not model:
        raise ApiError(400, "you must provide a model parameter", param="model")
    if model not in LENGTHS or (settings.models and model not in settings.models):
        raise unknown_model(model)
    return model


def _texts(asked: object) -> list[str]:
    items = asked if isinstance(asked, list) else [asked]
    texts = [item for item in items if isinstance(item, str)]
    if not items or len(items) > MOST_TEXTS:
        raise ApiError(400, f"'input' must hold 1 to {MOST_TEXTS} texts.", param="input")
    if len(texts) < len(items):
        raise ApiError(400, "The sandbox embeds texts, not tokens.", param="input")
    if not all(texts):
        raise ApiError(400, "'input' cannot be an empty string.", param="input")
    try:
        json.dumps(texts, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ApiError(400, "'input' is not valid Unicode.", param="input") from None
    return texts


def _dimensions(document: Mapping[str, Any], model: str) -> int:
    asked = document.get("dimensions")
    if asked is None:
        return LENGTHS[model]
    if model in FIXED:
        raise ApiError(400, "This model does not support specifying dimensions.")
    if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= LENGTHS[model]:
        message = f"Invalid 'dimensions': must be 1 to {LENGTHS[model]}."
        raise ApiError(400, message, param="dimensions")
    return asked
