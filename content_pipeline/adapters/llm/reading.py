"""What a stored 2xx answer turned out to be: a usable text, or a failure that was perhaps paid.

What belongs here: the order of the questions asked of a chat completion. HTTP 200 is not success:
gateways answer it with pages, error objects, ``null`` and half a body. Whether the text is an
article is not asked here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from content_pipeline.adapters.llm.envelope import envelope_in, parse_json
from content_pipeline.adapters.llm.headers import request_id, safe_token
from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.refusals import classify_error_object
from content_pipeline.adapters.llm.usage import reported_usage
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import RawResponse, Reading

CUT_REASONS = frozenset({"length", "max_tokens", "max_output_tokens"})
TOOL_REASONS = frozenset({"tool_calls", "function_call"})


class Unusable(Exception):
    """The answer holds nothing usable; never leaves a reader."""

    def __init__(self, failure_class: FailureClass, words: str) -> None:
        super().__init__(words)
        self.failure_class = failure_class
        self.words = words


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
                text = _text(_choice(document), finish_null_ok=self.profile.finish_reason_null_ok)
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
        )


def reported_error(
    document: Mapping[str, Any], raw: RawResponse, *, service: str, now: datetime
) -> Failure | None:
    """The error that a 2xx answer reports in its body. Raises Unusable for one of no known form."""
    envelope = envelope_in(document)
    if envelope is None and document.get("error"):
        raise Unusable(FailureClass.UNCERTAIN, "the body reports an error of unknown form")
    if envelope is None:
        return None
    return classify_error_object(
        envelope, status=raw.status, headers=raw.headers, service=service, now=now
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
    try:
        return safe_token(_choice(document).get("finish_reason"))
    except Unusable:
        return None


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


def _text(choice: Mapping[str, Any], *, finish_null_ok: bool) -> str:
    """The text of a completed answer. The reason of the end is asked before the content is."""
    message = choice["message"]
    _check_declined(choice, message)
    _check_finish(choice, message, finish_null_ok=finish_null_ok)
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        reasoned = message.get("reasoning_content") or message.get("reasoning")
        what = "only reasoning and no text" if reasoned else "no text"
        raise Unusable(FailureClass.BAD_OUTPUT, f"the answer holds {what}")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise Unusable(FailureClass.BAD_OUTPUT, "the text is not valid Unicode") from None
    return content


def _check_declined(choice: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    if choice.get("finish_reason") == "content_filter":
        raise Unusable(
            FailureClass.POLICY, "the content filter stopped the answer; a person must decide"
        )
    if message.get("refusal"):
        raise Unusable(FailureClass.POLICY, "the model refuses the subject; a person must decide")


def _check_finish(
    choice: Mapping[str, Any], message: Mapping[str, Any], *, finish_null_ok: bool
) -> None:
    reason = choice.get("finish_reason")
    if reason is not None and not isinstance(reason, str):
        raise Unusable(FailureClass.BAD_OUTPUT, "the finish reason is not a text")
    if reason in CUT_REASONS:
        raise Unusable(
            FailureClass.BAD_OUTPUT,
            "the answer was cut at the token limit; raise max_output_tokens or ask for less",
        )
    if message.get("tool_calls") or message.get("function_call") or reason in TOOL_REASONS:
        raise Unusable(FailureClass.BAD_OUTPUT, "the model called a tool, none was offered")
    if reason is None and not finish_null_ok:
        raise Unusable(
            FailureClass.BAD_OUTPUT,
            "no finish reason, so the answer may be incomplete; if this server never sends one, "
            "use a provider profile that allows it",
        )
    if reason not in (None, "stop"):
        name = safe_token(reason) or "without a name"
        raise Unusable(FailureClass.BAD_OUTPUT, f"unexpected finish reason {name}")
