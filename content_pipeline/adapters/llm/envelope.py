"""The error object in a provider's answer, reduced to the few facts a decision needs.

What belongs here: recognising the shapes OpenAI-compatible servers use. The provider's free text
is searched for known phrases and then dropped: it may quote the prompt or the key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.adapters.llm.headers import safe_token

_MODERATION_KEYS = frozenset({"flagged_input", "reasons"})
"""OpenRouter's 403 carries these when moderation refused the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEnvelope:
    """One error object; every field may be unknown."""

    code: str | None
    type: str | None
    inner_code: str | None
    """Azure's ``innererror.code``, which names the policy."""
    too_large: bool
    """This single request exceeds the account's limit: it would never succeed."""
    out_of_quota: bool
    """The text says that the account is empty; a failed response has no code of its own for it."""
    moderated: bool
    """The object carries a moderation verdict."""

    @property
    def names(self) -> frozenset[str]:
        """Every code and type in it, in lower case."""
        return frozenset(
            name.lower() for name in (self.code, self.type, self.inner_code) if name is not None
        )


def parse_json(body: bytes) -> Any:
    """The JSON value in ``body``. Raises ValueError for anything a peer may have sent instead."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def envelope_in_body(body: bytes) -> ErrorEnvelope | None:
    """The error object of an HTTP error's ``body``; None for HTML, plain text or other JSON."""
    try:
        document = parse_json(body)
    except ValueError:
        return None
    return envelope_in(document)


def envelope_in(document: object) -> ErrorEnvelope | None:
    """The error object in a JSON ``document``; None when there is none of a known shape.

    Known: ``{"error": {...}}``, the same in a list (Gemini), and the bare object of older vLLM.
    A mere text under ``error`` is not one: gateways write that too.
    """
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, Mapping):
        return None
    error = document.get("error")
    if error is None and document.get("object") == "error":
        error = document
    return _from_object(error) if isinstance(error, Mapping) else None


def _from_object(error: Mapping[str, Any]) -> ErrorEnvelope:
    message = error.get("message")
    text = message.lower() if isinstance(message, str) else ""
    metadata = error.get("metadata")
    inner = error.get("innererror")
    return ErrorEnvelope(
        code=safe_token(error.get("code")),
        type=safe_token(error.get("type")),
        inner_code=safe_token(inner.get("code")) if isinstance(inner, Mapping) else None,
        too_large="request too large" in text,
        out_of_quota="exceeded your current quota" in text,
        moderated=isinstance(metadata, Mapping) and not _MODERATION_KEYS.isdisjoint(metadata),
    )
