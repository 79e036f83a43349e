"""The paid call for a vector: ``core.ports.EmbeddingModel`` with the openai SDK.

What belongs here: building one request, making it once, and reading its answer. The client, with
the SDK's own retries off, is the account's, see ``client``. Whether a vector is the one that
was expected is not asked here.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import openai
from openai import omit

from content_pipeline.adapters.llm.classify import classify
from content_pipeline.adapters.llm.headers import kept_headers, safe_token
from content_pipeline.adapters.llm.http import call_timeout
from content_pipeline.adapters.llm.reading import (
    document_of,
    failure_of,
    reported_error,
    request_id_of,
)
from content_pipeline.adapters.llm.unusable import Unusable
from content_pipeline.adapters.llm.usage import reported_embedding_usage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import EmbeddingRequest, RawResponse, Reading
from content_pipeline.core.vectors import NotAVector, packed


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEmbeddings:
    """The embeddings of one provider account; threads may share it freely."""

    client: openai.OpenAI = field(repr=False)
    service: str
    """Names the provider in messages."""
    now: Callable[[], datetime] = field(repr=False)
    """The aware UTC time, against which an announced waiting date is read."""

    def send(self, request: EmbeddingRequest) -> RawResponse:
        """Make exactly one POST, over within ``request.deadline_s`` seconds.

        Raises CallFailed, without a cause: the SDK's exceptions quote what the provider wrote.
        """
        try:
            answer = self.client.embeddings.with_raw_response.create(
                model=request.model,
                input=request.text,
                # The SDK asks for base64 by itself; a server that knows only numbers sends those.
                dimensions=omit if request.dimensions is None else request.dimensions,
                extra_headers={
                    "Idempotency-Key": request.attempt_id,
                    "X-Client-Request-Id": request.attempt_id,
                },
                timeout=call_timeout(request.deadline_s),
            )
            return RawResponse(
                status=answer.status_code,
                headers=kept_headers(answer.headers),
                body=answer.content,
            )
        except Exception as error:  # noqa: BLE001  # boundary: the port promises CallFailed
            failure = classify(error, service=self.service, now=self.now())
        raise CallFailed(failure)

    def read(self, raw: RawResponse) -> Reading:
        """Interpret an answer of ``send``; never raises. Usage is kept: it was paid for."""
        document: Mapping[str, Any] = {}
        vector: bytes | None = None
        failure: Failure | None = None
        try:
            document = document_of(raw)
            failure = reported_error(document, raw, service=self.service, now=self.now())
            if failure is None:
                vector = _vector(_only_item(document))
        except Unusable as unusable:
            failure = failure_of(unusable, document, raw, service=self.service)
        return Reading(
            text=None,
            usage=reported_embedding_usage(document),
            model=safe_token(document.get("model")),
            response_id=safe_token(document.get("id")),
            request_id=request_id_of(document, raw),
            finish_reason=None,
            failure=failure,
            vector=vector,
        )


def _only_item(document: Mapping[str, Any]) -> Mapping[str, Any]:
    items = document.get("data")
    if not isinstance(items, list) or not items:
        raise Unusable(
            FailureClass.UNCERTAIN,
            "the body has no data, so it is no embedding; one may exist and be billed",
        )
    if len(items) > 1:
        raise Unusable(FailureClass.BAD_OUTPUT, f"{len(items)} vectors where one was asked for")
    if not isinstance(items[0], Mapping):
        raise Unusable(FailureClass.BAD_OUTPUT, "its only item holds no vector")
    return items[0]


def _vector(item: Mapping[str, Any]) -> bytes:
    """The vector in ``item``: base64 of little-endian float32, or a list of numbers."""
    found = item.get("embedding")
    try:
        if isinstance(found, str):
            return base64.b64decode(found, validate=True)
        if isinstance(found, list) and not any(isinstance(each, bool) for each in found):
            return packed(found)
    except (binascii.Error, ValueError, NotAVector):
        pass
    raise Unusable(FailureClass.BAD_OUTPUT, "the embedding is neither base64 nor numbers")
