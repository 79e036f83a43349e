"""What a stored 2xx answer turned out to be: a usable text, or a failure that was perhaps paid.

What belongs here: what is asked of every body, whichever API it comes from; its text is read in
``chat_reading`` and ``responses_reading``. HTTP 200 is not success: gateways answer it with pages,
error objects, ``null`` and half a body. Whether the text is an article is not asked here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from content_pipeline.adapters.llm.chat_reading import completion_finish, completion_text
from content_pipeline.adapters.llm.envelope import envelope_in, parse_json
from content_pipeline.adapters.llm.headers import request_id, safe_token
from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.refusals import classify_error_object
from content_pipeline.adapters.llm.responses_reading import (
    is_response,
    kept_as,
    response_finish,
    response_text,
)
from content_pipeline.adapters.llm.unusable import Unusable
from content_pipeline.adapters.llm.usage import reported_usage
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import RawResponse, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How answers of one provider are read."""

    profile: ProviderProfile
    service: str
    """Names the provider in messages."""

    def read(self, raw: RawResponse, now: datetime) -> Reading:
        """Interpret ``raw``. Usage is kept even when the text is unusable: it was paid for."""
        document: Mapping[str, Any] = {}
        text: str | None = None
        failure: Failure | None = None
        try:
            document = document_of(raw)
            failure = reported_error(document, raw, service=self.service, now=now)
            if failure is None:
                text = self._text(document)
        except Unusable as unusable:
            failure = failure_of(unusable, document, raw, service=self.service)
        return Reading(
            text=text,
            usage=reported_usage(document),
            model=safe_token(document.get("model")),
            response_id=safe_token(document.get("id")),
            request_id=request_id_of(document, raw),
            finish_reason=_finish_reason(document),
            failure=failure,
            kept_as=kept_as(document),
        )

    def _text(self, document: Mapping[str, Any]) -> str:
        if is_response(document):
            return response_text(document)
        return completion_text(document, finish_null_ok=self.profile.finish_reason_null_ok)


def reported_error(
    document: Mapping[str, Any], raw: RawResponse, *, service: str, now: datetime
) -> Failure | None:
    """The error that a 2xx answer reports in its body. Raises Unusable for one of no known form."""
    envelope = envelope_in(document)
    if envelope is None and document.get("error"):
        raise Unusable(FailureClass.UNCERTAIN, "the body reports an error of unknown form")
    if envelope is None:
        return None
    has_failed = is_response(document) and document.get("status") == "failed"
    return classify_error_object(
        envelope,
        status=raw.status,
        headers=raw.headers,
        service=service,
        now=now,
        # A response that the provider itself calls failed has an outcome, whatever the code.
        unknown=FailureClass.TRANSIENT if has_failed else FailureClass.UNCERTAIN,
    )


def failure_of(
    unusable: Unusable, document: Mapping[str, Any], raw: RawResponse, *, service: str
) -> Failure:
    """Why the answer ``raw`` is of no use."""
    return Failure(
        failure_class=unusable.failure_class,
        message=f"{service} answered HTTP {raw.status}: {unusable.words}",
        http_status=raw.status,
        request_id=request_id_of(document, raw),
    )


def request_id_of(document: Mapping[str, Any], raw: RawResponse) -> str | None:
    """From the headers; a listed completion carries it in its body."""
    return request_id(raw.headers) or safe_token(document.get("request_id"))


def _finish_reason(document: Mapping[str, Any]) -> str | None:
    return response_finish(document) if is_response(document) else completion_finish(document)


def document_of(raw: RawResponse) -> Mapping[str, Any]:
    """The JSON object in ``raw``. Raises Unusable."""
    try:
        document = parse_json(raw.body)
    except ValueError:
        raise Unusable(FailureClass.UNCERTAIN, _unparsed(raw)) from None
    if not isinstance(document, Mapping):
        raise Unusable(
            FailureClass.UNCERTAIN,
            f"the body is JSON but a {type(document).__name__}, not a completion; it may exist "
            "and be billed",
        )
    return document


def _unparsed(raw: RawResponse) -> str:
    """Says what the body looks like, never what it says."""
    start = raw.body.lstrip()[:1]
    if not start:
        looks = "is empty"
    elif start == b"<":
        looks = "is a page of markup, probably of a gateway"
    elif start == b"{":
        looks = "is JSON that ends too early or is broken"
    else:
        looks = "is not JSON"
    return f"the body {looks} ({len(raw.body)} bytes); the completion may exist and be billed"
