"""What an exception of the openai SDK or of its transport means, decided once.

What belongs here: one rule per exception class; a test walks both libraries and fails for a class
without one. The class alone separates "never sent" from "may have been billed", so the cause of
an SDK exception counts more than its name: APITimeoutError covers both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import httpx2
import openai
from openai._exceptions import SubjectTokenProviderError  # exported nowhere else

from content_pipeline.adapters.llm.envelope import envelope_in
from content_pipeline.adapters.llm.refusals import classify_answer, classify_error_object
from content_pipeline.core.failures import Failure, FailureClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a rule needs beside the exception."""

    service: str
    now: datetime


Rule = Callable[[Exception, Circumstances], Failure]


def classify(error: Exception, *, service: str, now: datetime) -> Failure:
    """The failure that ``error`` stands for; one of unknown class may have been billed.

    ``service`` names the other side in the message ("openai at api.openai.com"). The message is
    built from our own words: an exception's text may quote the prompt or the key.
    """
    circumstances = Circumstances(service=service, now=now)
    for kind in type(error).__mro__:
        rule = RULES.get(kind)
        if rule is not None:
            return rule(error, circumstances)
    return _UNKNOWN(error, circumstances)


def _always(failure_class: FailureClass, words: str) -> Rule:
    """The same class and words for every exception of a kind."""

    def rule(_error: Exception, circumstances: Circumstances) -> Failure:
        return Failure(failure_class=failure_class, message=f"{circumstances.service}: {words}")

    return rule


def _by_answer(error: Exception, circumstances: Circumstances) -> Failure:
    """By the HTTP answer an APIStatusError carries."""
    if not isinstance(error, openai.APIStatusError | httpx2.HTTPStatusError):
        return _UNKNOWN(error, circumstances)
    answer = error.response
    return classify_answer(
        answer.status_code,
        answer.headers,
        _body(answer),
        service=circumstances.service,
        now=circumstances.now,
    )


def _body(answer: httpx2.Response) -> bytes:
    try:
        return answer.content
    except httpx2.ResponseNotRead:
        return b""


def _by_cause(error: Exception, circumstances: Circumstances) -> Failure:
    """By what the transport raised beneath an APIConnectionError; without it, uncertain."""
    cause = error.__cause__
    if not isinstance(cause, httpx2.HTTPError):
        return _UNKNOWN(error, circumstances)
    return classify(cause, service=circumstances.service, now=circumstances.now)


def _by_body(error: Exception, circumstances: Circumstances) -> Failure:
    """By the error object of a bare APIError, which comes from inside a stream."""
    body = error.body if isinstance(error, openai.APIError) else None
    envelope = envelope_in({"error": body})
    if envelope is None:
        return _UNKNOWN(error, circumstances)
    return classify_error_object(
        envelope,
        status=None,
        headers={},
        service=circumstances.service,
        now=circumstances.now,
    )


def _by_credentials(error: Exception, circumstances: Circumstances) -> Failure:
    """The SDK raises the bare class only while it looks for credentials.

    A subclass without a rule of its own may mean anything.
    """
    rule = _NO_CREDENTIALS if type(error) is openai.OpenAIError else _UNKNOWN
    return rule(error, circumstances)


_UNREACHED = "it could not be reached, nothing was sent; check base_url, DNS, TLS and the network"
_CUT = "the connection broke before a whole answer came; the completion may exist and be billed"
_LATE = "no whole answer before the deadline; the completion may exist and be billed"
_MISREAD = "it answered in a form that cannot be read; the completion was most likely billed"
_MISPLACED = "an error that no completion call raises; please report it"

_UNKNOWN: Rule = _always(
    FailureClass.UNCERTAIN,
    "the call ended in an unexpected error; the completion may exist and be billed",
)
_NO_CREDENTIALS: Rule = _always(
    FailureClass.AUTH, "the SDK found no usable credentials; nothing was sent, set the API key"
)

RULES: Mapping[type[BaseException], Rule] = {
    # --- the SDK --------------------------------------------------------------------------------
    openai.APIStatusError: _by_answer,
    openai.BadRequestError: _by_answer,
    openai.AuthenticationError: _by_answer,
    openai.OAuthError: _by_answer,
    openai.PermissionDeniedError: _by_answer,
    openai.NotFoundError: _by_answer,
    openai.ConflictError: _by_answer,
    openai.UnprocessableEntityError: _by_answer,
    openai.RateLimitError: _by_answer,
    openai.InternalServerError: _by_answer,
    openai.APIConnectionError: _by_cause,
    openai.APITimeoutError: _by_cause,
    openai.APIError: _by_body,
    openai.APIResponseValidationError: _always(FailureClass.UNCERTAIN, _MISREAD),
    openai.LengthFinishReasonError: _always(
        FailureClass.BAD_OUTPUT, "the answer was cut at the token limit; raise max_output_tokens"
    ),
    openai.ContentFilterFinishReasonError: _always(
        FailureClass.POLICY, "its content filter stopped the answer; a person must decide"
    ),
    SubjectTokenProviderError: _always(
        FailureClass.AUTH, "no token could be obtained for it; check the credentials"
    ),
    openai.OpenAIError: _by_credentials,
    openai.WebSocketConnectionClosedError: _always(FailureClass.UNCERTAIN, _CUT),
    openai.WebSocketQueueFullError: _always(FailureClass.INTERNAL, _MISPLACED),
    openai.InvalidWebhookSignatureError: _always(FailureClass.INTERNAL, _MISPLACED),
    # --- the transport: never sent --------------------------------------------------------------
    httpx2.ConnectError: _always(FailureClass.NOT_SENT, _UNREACHED),
    httpx2.ConnectTimeout: _always(FailureClass.NOT_SENT, _UNREACHED),
    httpx2.PoolTimeout: _always(
        FailureClass.NOT_SENT, "every connection was busy, nothing was sent; lower the concurrency"
    ),
    httpx2.ProxyError: _always(
        FailureClass.NOT_SENT, "the proxy refused the connection, nothing was sent; check it"
    ),
    # --- the transport: a person must change the address ----------------------------------------
    httpx2.UnsupportedProtocol: _always(
        FailureClass.REQUEST, "base_url must start with https:// or http://; nothing was sent"
    ),
    httpx2.InvalidURL: _always(FailureClass.REQUEST, "base_url is not a URL; nothing was sent"),
    httpx2.TooManyRedirects: _always(
        FailureClass.REQUEST, "it redirects in a circle; base_url must be the final address"
    ),
    # --- the transport: sent, or perhaps sent ---------------------------------------------------
    httpx2.ReadTimeout: _always(FailureClass.UNCERTAIN, _LATE),
    httpx2.WriteTimeout: _always(FailureClass.UNCERTAIN, _LATE),
    httpx2.TimeoutException: _always(FailureClass.UNCERTAIN, _LATE),
    httpx2.ReadError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.WriteError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.CloseError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.NetworkError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.RemoteProtocolError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.LocalProtocolError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.ProtocolError: _always(FailureClass.UNCERTAIN, _CUT),
    httpx2.DecodingError: _always(FailureClass.UNCERTAIN, _MISREAD),
    httpx2.TransportError: _UNKNOWN,
    httpx2.RequestError: _UNKNOWN,
    httpx2.HTTPError: _UNKNOWN,
    httpx2.HTTPStatusError: _by_answer,
    httpx2.CookieConflict: _UNKNOWN,
    httpx2.SSEError: _UNKNOWN,
    httpx2.StreamError: _UNKNOWN,
    httpx2.StreamConsumed: _UNKNOWN,
    httpx2.StreamClosed: _UNKNOWN,
    httpx2.ResponseNotRead: _UNKNOWN,
    httpx2.RequestNotRead: _UNKNOWN,
    # --- reading a 200: JSONDecodeError, UnicodeDecodeError and pydantic's error are ValueErrors -
    ValueError: _always(FailureClass.UNCERTAIN, _MISREAD),
}
