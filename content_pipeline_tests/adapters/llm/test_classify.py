"""Every exception of the SDK and its transport has a class, and the cause decides over the name."""

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import openai
import pydantic
import pytest

from content_pipeline.adapters.llm.classify import RULES, classify
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.llm.samples import NOW, PROMPT

REQUEST = httpx2.Request("POST", "https://api.example.com/v1/chat/completions")


def classified(error: Exception) -> Failure:
    return classify(error, service="openai at api.example.com", now=NOW)


def sdk_error(error: Exception, cause: Exception | None) -> Exception:
    """``error`` as the SDK raises it: from the transport's own."""
    error.__cause__ = cause
    return error


def status_error(
    kind: type[openai.APIStatusError], status: int, body: object
) -> openai.APIStatusError:
    answer = httpx2.Response(status, json=body, request=REQUEST)
    return kind("text of the provider", response=answer, body=body)


ELSEWHERE = (
    # Parts of the SDK that a chat completion over HTTP does not pass through.
    "openai._extras.",
    "openai._legacy_response.MissingStreamClassError",
    "openai._response.MissingStreamClassError",
    "openai._response.StreamAlreadyConsumed",
    "openai._AmbiguousModuleClientUsageError",
    "openai.auth._x509.",
    "openai.lib.",
    "httpx2._exceptions.HTTPXDeprecationWarning",
)


def exceptions_of(package: str) -> Iterator[type[Exception]]:
    """Every exception class defined in any module of ``package``."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.startswith(("openai.types", "openai.resources", "openai.cli")):
            with suppress(ImportError):  # an optional dependency is not installed
                importlib.import_module(module.name)
    for name, loaded in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for value in vars(loaded).values():
                if isinstance(value, type) and issubclass(value, Exception):
                    yield value


@pytest.mark.parametrize("package", ["openai", "httpx2"])
def test_every_exception_class_of_the_library_has_a_rule_of_its_own(package: str) -> None:
    found = {kind for kind in exceptions_of(package) if kind.__module__.split(".")[0] == package}
    assert len(found) > 15
    without = {f"{kind.__module__}.{kind.__qualname__}" for kind in found - RULES.keys()}
    assert {name for name in without if not name.startswith(ELSEWHERE)} == set()


def test_a_new_error_of_the_sdk_may_have_been_billed_until_it_has_a_rule() -> None:
    class NextYearsError(openai.OpenAIError):
        pass

    assert classified(NextYearsError("text")).failure_class is FailureClass.UNCERTAIN


CAUSES = [
    (httpx2.ConnectError("refused"), FailureClass.NOT_SENT),
    (httpx2.ProxyError("407"), FailureClass.NOT_SENT),
    (httpx2.UnsupportedProtocol("ftp"), FailureClass.REQUEST),
    (httpx2.TooManyRedirects("20"), FailureClass.REQUEST),
    (httpx2.ReadError("reset"), FailureClass.UNCERTAIN),
    (httpx2.WriteError("reset"), FailureClass.UNCERTAIN),
    (httpx2.RemoteProtocolError("closed"), FailureClass.UNCERTAIN),
    (httpx2.LocalProtocolError("state"), FailureClass.UNCERTAIN),
    (httpx2.DecodingError("gzip"), FailureClass.UNCERTAIN),
    (OSError("something"), FailureClass.UNCERTAIN),
    (None, FailureClass.UNCERTAIN),
]


@pytest.mark.parametrize(("cause", "failure_class"), CAUSES)
def test_a_connection_error_is_judged_by_its_cause(
    cause: Exception | None, failure_class: FailureClass
) -> None:
    error = sdk_error(openai.APIConnectionError(request=REQUEST), cause)
    assert classified(error).failure_class is failure_class


TIMEOUTS = [
    (httpx2.ConnectTimeout("t"), FailureClass.NOT_SENT),
    (httpx2.PoolTimeout("t"), FailureClass.NOT_SENT),
    (httpx2.ReadTimeout("t"), FailureClass.UNCERTAIN),
    # A write timeout that matched the retry rule first has paid twice before.
    (httpx2.WriteTimeout("t"), FailureClass.UNCERTAIN),
    (None, FailureClass.UNCERTAIN),
]


@pytest.mark.parametrize(("cause", "failure_class"), TIMEOUTS)
def test_a_timeout_is_not_sent_only_before_the_connection_stood(
    cause: Exception | None, failure_class: FailureClass
) -> None:
    error = sdk_error(openai.APITimeoutError(request=REQUEST), cause)
    assert classified(error).failure_class is failure_class


ANSWERS: list[tuple[type[openai.APIStatusError], int, object, FailureClass]] = [
    (openai.BadRequestError, 400, {"error": {"code": 400}}, FailureClass.REQUEST),
    (openai.AuthenticationError, 401, {"error": {}}, FailureClass.AUTH),
    (openai.PermissionDeniedError, 403, {"error": {}}, FailureClass.AUTH),
    (openai.NotFoundError, 404, {"error": {"code": "model_not_found"}}, FailureClass.REQUEST),
    (openai.ConflictError, 409, {"error": {}}, FailureClass.UNCERTAIN),
    (openai.UnprocessableEntityError, 422, {"detail": []}, FailureClass.REQUEST),
    (openai.RateLimitError, 429, {"error": {"type": "insufficient_quota"}}, FailureClass.QUOTA),
    (openai.RateLimitError, 429, {"error": {}}, FailureClass.THROTTLED),
    (openai.InternalServerError, 500, {"error": {}}, FailureClass.TRANSIENT),
    (openai.APIStatusError, 402, {"error": {}}, FailureClass.QUOTA),
]


@pytest.mark.parametrize(("kind", "status", "body", "failure_class"), ANSWERS)
def test_a_status_error_is_judged_by_its_answer(
    kind: type[openai.APIStatusError], status: int, body: object, failure_class: FailureClass
) -> None:
    failure = classified(status_error(kind, status, body))
    assert failure.failure_class is failure_class
    assert failure.http_status == status


def test_an_oauth_failure_is_about_credentials() -> None:
    answer = httpx2.Response(401, json={"error": "invalid_grant"}, request=REQUEST)
    error = openai.OAuthError(response=answer, body={"error": "invalid_grant"})
    assert classified(error).failure_class is FailureClass.AUTH


def test_a_status_error_whose_body_was_never_read_still_has_its_status() -> None:
    stream = httpx2.Response(401, stream=httpx2.ByteStream(b""), request=REQUEST)
    error = openai.AuthenticationError("text", response=stream, body=None)
    assert classified(error).failure_class is FailureClass.AUTH


def pydantic_error() -> Exception:
    with pytest.raises(pydantic.ValidationError) as caught:
        pydantic.TypeAdapter(int).validate_python("x")
    return caught.value


OTHERS = [
    (openai.OpenAIError("Missing credentials"), FailureClass.AUTH),
    (json.JSONDecodeError("Expecting value", PROMPT, 0), FailureClass.UNCERTAIN),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), FailureClass.UNCERTAIN),
    (pydantic_error(), FailureClass.UNCERTAIN),
    (RuntimeError("Didn't receive a `response.completed` event"), FailureClass.UNCERTAIN),
    (KeyError("anything"), FailureClass.UNCERTAIN),
    (openai.APIError("text", REQUEST, body=None), FailureClass.UNCERTAIN),
    (openai.APIError("text", REQUEST, body={"code": "server_error"}), FailureClass.UNCERTAIN),
    (openai.APIError("text", REQUEST, body={"code": "insufficient_quota"}), FailureClass.QUOTA),
    (openai.APIError("text", REQUEST, body={"type": "rate_limit_error"}), FailureClass.THROTTLED),
    (openai.ContentFilterFinishReasonError(), FailureClass.POLICY),
    (httpx2.ReadTimeout("raw, from reading an error's body"), FailureClass.UNCERTAIN),
]


@pytest.mark.parametrize(("error", "failure_class"), OTHERS)
def test_any_other_exception_may_have_been_billed_unless_it_says_otherwise(
    error: Exception, failure_class: FailureClass
) -> None:
    assert classified(error).failure_class is failure_class


def test_a_subclass_nobody_foresaw_is_judged_like_its_parent() -> None:
    class NewTimeout(httpx2.ReadTimeout):
        pass

    assert classified(NewTimeout("t")).failure_class is FailureClass.UNCERTAIN


def test_the_message_names_the_service_and_the_remedy_not_the_exceptions_text() -> None:
    error = sdk_error(openai.APIConnectionError(request=REQUEST), httpx2.ConnectError(PROMPT))
    message = classified(error).message
    assert message.startswith("openai at api.example.com: ")
    assert "nothing was sent" in message
    assert PROMPT not in message
