"""One table for all services told by HTTP: what an answer means, and what is said of it."""

import logging

import pytest

from content_pipeline.adapters.hooks import cache_purge, deploy_hook, indexnow, webhook
from content_pipeline.adapters.hooks.told_by_http import count_of, urls_of
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.hooks.listings import listed
from content_pipeline_tests.adapters.hooks.news import news, telling
from content_pipeline_tests.adapters.llm.loopback import (
    Behaviour,
    answer,
    close_at_once,
    drip_body,
    drip_headers,
    free_port,
    garbage,
    hang_before_headers,
    redirect_to_itself,
    reset_at_once,
    serving,
)

F = FailureClass
SECRET_PATH = "/hooks/s3cr3t-of-the-address"
TOKEN = "t0ken-that-nobody-may-see"


def failure_of(behaviour: Behaviour, *, deadline_s: float = 5.0) -> tuple[Failure, int]:
    """The failure, and how many requests it took."""
    with serving(behaviour) as server:
        url = server.base_url.removesuffix("/v1") + SECRET_PATH
        with telling(url, token=TOKEN, deadline_s=deadline_s) as told:
            with pytest.raises(CallFailed) as failed:
                told.post(news(), document={"a": 1})
            requests = len(server.received)
    assert SECRET_PATH not in str(failed.value)
    assert TOKEN not in repr(failed.value) + repr(failed.value.failure)
    return failed.value.failure, requests


@pytest.mark.parametrize(
    ("status", "headers", "failure_class", "wait_s"),
    [
        (400, {}, F.REQUEST, None),
        (401, {}, F.AUTH, None),
        (403, {}, F.AUTH, None),
        (404, {}, F.REQUEST, None),
        (405, {}, F.REQUEST, None),
        (408, {}, F.TRANSIENT, None),
        (410, {}, F.REQUEST, None),
        (413, {}, F.REQUEST, None),
        (422, {}, F.REQUEST, None),
        (425, {}, F.TRANSIENT, None),
        (429, {}, F.THROTTLED, None),
        (429, {"Retry-After": "120"}, F.THROTTLED, 120),
        (429, {"Retry-After": "Mon, 02 Mar 2026 09:31:00 GMT"}, F.THROTTLED, 60),
        (429, {"Retry-After": "soon"}, F.THROTTLED, None),
        (499, {}, F.TRANSIENT, None),
        (500, {}, F.TRANSIENT, None),
        (502, {}, F.TRANSIENT, None),
        (503, {}, F.TRANSIENT, None),
        (503, {"Retry-After": "30"}, F.THROTTLED, 30),
        (504, {}, F.TRANSIENT, None),
        (301, {"Location": "https://elsewhere.example/"}, F.REQUEST, None),
        (308, {"Location": "https://elsewhere.example/"}, F.REQUEST, None),
    ],
)
def test_every_answer_has_a_class(
    status: int, headers: dict[str, str], failure_class: FailureClass, wait_s: float | None
) -> None:
    failure, requests = failure_of(answer(status, b"never quoted", headers))
    assert (failure.failure_class, failure.retry_after_s) == (failure_class, wait_s)
    assert failure.http_status == status
    assert f"HTTP {status}" in failure.message
    assert "told of 1 page" in failure.message
    assert "never quoted" not in failure.message
    assert requests == 1


@pytest.mark.parametrize(
    "behaviour",
    [close_at_once, reset_at_once, garbage, hang_before_headers, drip_headers, drip_body],
)
def test_an_answer_that_was_lost_is_asked_for_again(behaviour: Behaviour) -> None:
    failure, requests = failure_of(behaviour, deadline_s=0.3)
    assert failure.failure_class is F.TRANSIENT, "telling twice does no harm"
    assert requests == 1


def test_a_redirect_is_not_followed() -> None:
    failure, requests = failure_of(redirect_to_itself)
    assert requests == 1
    assert "is not followed" in failure.message


def test_a_service_that_is_not_there_heard_nothing() -> None:
    with (
        telling(f"http://127.0.0.1:{free_port()}{SECRET_PATH}") as told,
        pytest.raises(CallFailed) as failed,
    ):
        told.post(news())
    assert failed.value.failure.failure_class is F.NOT_SENT
    assert SECRET_PATH not in str(failed.value)


def test_an_address_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        serving(answer(200, b"{}")) as server,
        telling(server.base_url + SECRET_PATH, token=TOKEN) as told,
    ):
        told.post(news(), document={})
    assert SECRET_PATH not in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    "advice",
    [indexnow.ADVICE, cache_purge.CLOUDFLARE_ADVICE, deploy_hook.ADVICE, webhook.ADVICE],
)
def test_a_services_own_advice_comes_first(advice: dict[int, str]) -> None:
    for status, words in advice.items():
        with (
            serving(answer(status, b"")) as server,
            telling(server.base_url, advice=advice) as told,
            pytest.raises(CallFailed, match=f"HTTP {status}: ") as failed,
        ):
            told.post(news())
        assert failed.value.failure.message.endswith(words)


def test_withdrawn_pages_count_as_well() -> None:
    both = news([listed("Austria")], withdrawn=["/belgium/"])
    assert count_of(both) == "2 pages"
    assert urls_of(both) == ["https://example.com/austria/", "https://example.com/belgium/"]
