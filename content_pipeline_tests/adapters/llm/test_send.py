"""One send is one POST, whatever the other side does, and it ends at the deadline."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.llm import loopback
from content_pipeline_tests.adapters.llm.samples import KEY, chat, completion, request

SHORT_S = 0.4
"""A deadline for servers that would take a minute or for ever."""


def failure_of(base_url: str, **changes: object) -> Failure:
    model = chat(base_url)
    try:
        with pytest.raises(CallFailed) as caught:
            model.send(request(**changes))
    finally:
        model.close()
    return caught.value.failure


def test_an_answer_comes_back_byte_for_byte() -> None:
    body = b'{"id":   "chatcmpl-\\u00e9",\n\n "choices": [] }\n'
    with loopback.serving(loopback.answer(200, body)) as server:
        model = chat(server.base_url)
        raw = model.send(request())
        model.close()
    assert raw.status == 200
    assert raw.body == body
    assert server.posts == 1


def test_only_harmless_headers_of_the_answer_are_kept() -> None:
    headers = {
        "X-Request-Id": "req_1",
        "X-RateLimit-Remaining-Tokens": "12",
        "OpenAI-Processing-Ms": "88",
        "Set-Cookie": "session=secret",
        "OpenAI-Organization": "user-acme",
        "Date": "Sun, 29 Nov 2026 12:00:00 GMT",
    }
    with loopback.serving(loopback.answer(200, completion(), headers)) as server:
        model = chat(server.base_url)
        raw = model.send(request())
        model.close()
    assert raw.headers == {
        "content-type": "application/json",
        "date": "Sun, 29 Nov 2026 12:00:00 GMT",
        "openai-processing-ms": "88",
        "x-ratelimit-remaining-tokens": "12",
        "x-request-id": "req_1",
    }


FAULTS = [
    (loopback.reset_at_once, FailureClass.UNCERTAIN),
    (loopback.close_at_once, FailureClass.UNCERTAIN),
    (loopback.garbage, FailureClass.UNCERTAIN),
    (loopback.cut_body, FailureClass.UNCERTAIN),
    (loopback.reset_in_body, FailureClass.UNCERTAIN),
    (loopback.bad_gzip, FailureClass.UNCERTAIN),
    (loopback.huge_body, FailureClass.UNCERTAIN),
    (loopback.redirect_to_itself, FailureClass.REQUEST),
    (loopback.answer(500, {"error": {"type": "server_error"}}), FailureClass.TRANSIENT),
    (loopback.answer(502, b"<html>bad gateway</html>"), FailureClass.UNCERTAIN),
    (loopback.answer(408, b""), FailureClass.UNCERTAIN),
    (loopback.answer(409, {"error": {"code": "conflict"}}), FailureClass.UNCERTAIN),
    (loopback.answer(429, b"<html>slow down</html>"), FailureClass.THROTTLED),
    (
        loopback.answer(429, {"error": {"type": "insufficient_quota"}}, {"Retry-After": "0"}),
        FailureClass.QUOTA,
    ),
    (
        loopback.answer(400, {"error": {}}, {"x-should-retry": "true"}),
        FailureClass.REQUEST,
    ),
    (
        loopback.answer(503, {"error": {"code": "slow_down"}}, {"x-should-retry": "true"}),
        FailureClass.THROTTLED,
    ),
]


@pytest.mark.parametrize(("behaviour", "failure_class"), FAULTS)
def test_a_fault_after_the_request_is_classified_after_one_post(
    behaviour: loopback.Behaviour, failure_class: FailureClass
) -> None:
    with loopback.serving(behaviour) as server:
        failure = failure_of(server.base_url)
    assert failure.failure_class is failure_class
    assert server.posts == 1
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 430), 451, 499, *range(500, 530)])
def test_no_status_is_answered_with_a_second_request(status: int) -> None:
    with loopback.serving(loopback.answer(status, b"")) as server:
        failure = failure_of(server.base_url)
    assert failure.http_status == status
    assert len(server.received) == 1


SLOW = [
    loopback.hang_before_headers,
    loopback.hang_after_headers,
    loopback.drip_headers,
    loopback.drip_interim_answers,
    loopback.drip_body,
]


@pytest.mark.parametrize("behaviour", SLOW)
def test_a_call_ends_at_its_deadline_however_the_other_side_stalls(
    behaviour: loopback.Behaviour,
) -> None:
    with loopback.serving(behaviour) as server:
        failure = failure_of(server.base_url, deadline_s=SHORT_S)
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert "deadline" in failure.message
    assert server.posts == 1


def test_a_peer_that_does_not_read_the_request_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        base_url = f"http://127.0.0.1:{port}/v1"
        failure = failure_of(base_url, deadline_s=SHORT_S, user="x" * 30_000_000)
    assert failure.failure_class is FailureClass.UNCERTAIN


def test_a_refused_connection_was_never_sent() -> None:
    failure = failure_of(f"http://127.0.0.1:{loopback.free_port()}/v1")
    assert failure.failure_class is FailureClass.NOT_SENT
    assert failure.http_status is None


def test_a_host_that_never_accepts_is_left_at_the_deadline_with_nothing_sent() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        crowd = [socket.socket() for _ in range(8)]
        for visitor in crowd:
            visitor.setblocking(False)
            visitor.connect_ex(listener.getsockname())
        failure = failure_of(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", deadline_s=SHORT_S)
        for visitor in crowd:
            visitor.close()
    assert failure.failure_class is FailureClass.NOT_SENT


def test_a_host_without_an_address_was_never_sent() -> None:
    failure = failure_of("http://no-such-host.invalid/v1")
    assert failure.failure_class is FailureClass.NOT_SENT


def test_a_server_that_does_not_speak_tls_was_never_sent_the_request() -> None:
    with loopback.serving(loopback.garbage) as server:
        failure = failure_of(server.base_url.replace("http:", "https:"), deadline_s=5.0)
    assert failure.failure_class is FailureClass.NOT_SENT
    assert server.posts == 0


def test_the_request_carries_the_schema_the_limits_and_the_ids() -> None:
    with loopback.serving(loopback.answer(200, completion())) as server:
        model = chat(server.base_url)
        model.send(request(temperature=0.2))
        model.close()
    received = server.received[0]
    body = received.json()
    assert received.target == "/v1/chat/completions"
    assert received.headers["idempotency-key"] == "att-0001"
    assert received.headers["x-client-request-id"] == "att-0001"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["accept-encoding"] == "identity"
    assert body["model"] == "gpt-5.2"
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["max_completion_tokens"] == 1200
    assert body["temperature"] == 0.2
    assert body["store"] is True
    assert body["metadata"] == {"attempt_id": "att-0001", "page_job_id": "job-0001"}
    assert body["service_tier"] == "default"
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["response_format"]["json_schema"]["schema"]["additionalProperties"] is False


def test_a_provider_that_keeps_nothing_is_not_asked_to_store() -> None:
    with loopback.serving(loopback.answer(200, completion())) as server:
        model = chat(server.base_url, profile="llama_cpp", api_key=None)
        model.send(request())
        model.close()
    body = server.received[0].json()
    assert body.keys() == {"model", "messages", "response_format", "max_tokens"}
    assert "strict" not in body["response_format"]["json_schema"]


def test_nothing_of_the_environment_reaches_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback.serving(loopback.answer(200, completion())) as server:
        port = loopback.free_port()
        for name, value in {
            "OPENAI_API_KEY": "sk-foreign",
            "OPENAI_ADMIN_KEY": "sk-foreign",
            "OPENAI_ORG_ID": "org-foreign",
            "OPENAI_PROJECT_ID": "proj-foreign",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-foreign\nX-Foreign: foreign",
            "HTTP_PROXY": f"http://127.0.0.1:{port}",
            "ALL_PROXY": f"http://127.0.0.1:{port}",
        }.items():
            monkeypatch.setenv(name, value)
        model = chat(server.base_url)
        model.send(request())
        model.close()
    assert server.posts == 1
    assert "foreign" not in str(server.received[0].headers)
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


def test_organization_and_project_are_sent_when_a_site_names_them() -> None:
    with loopback.serving(loopback.answer(200, completion())) as server:
        model = chat(server.base_url, organization="org-1", project="proj-1")
        model.send(request())
        model.close()
    assert server.received[0].headers["openai-organization"] == "org-1"
    assert server.received[0].headers["openai-project"] == "proj-1"


def test_a_named_proxy_carries_the_call() -> None:
    with loopback.serving(loopback.answer(200, completion())) as proxy:
        model = chat(
            "http://models.example.invalid/v1", proxy_url=f"http://user:pass@127.0.0.1:{proxy.port}"
        )
        model.send(request())
        model.close()
    assert proxy.received[0].target == "http://models.example.invalid/v1/chat/completions"
    assert proxy.received[0].headers["proxy-authorization"].startswith("Basic ")


def test_one_client_serves_64_threads_at_once_without_mixing_answers() -> None:
    everybody_there = threading.Barrier(64)

    def echo(wire: loopback.Wire, received: loopback.Received) -> None:
        everybody_there.wait(30)
        loopback.answer(200, {"echo": received.headers["idempotency-key"]})(wire, received)

    with loopback.serving(echo) as server:
        model = chat(server.base_url)
        ids = [f"att-{number}" for number in range(64)]
        with ThreadPoolExecutor(64) as threads:
            raws = list(threads.map(lambda name: model.send(request(attempt_id=name)), ids))
        model.close()
    assert [json.loads(raw.body)["echo"] for raw in raws] == ids
    assert server.posts == 64


def test_a_deadline_of_one_thread_leaves_the_others_alone() -> None:
    def slow_for_one(wire: loopback.Wire, received: loopback.Received) -> None:
        if received.headers["idempotency-key"] == "att-slow":
            wire.hang()
        else:
            loopback.answer(200, completion())(wire, received)

    with loopback.serving(slow_for_one) as server:
        model = chat(server.base_url)
        with ThreadPoolExecutor(2) as threads:
            slow = threads.submit(model.send, request(attempt_id="att-slow", deadline_s=SHORT_S))
            for number in range(20):
                assert model.send(request(attempt_id=f"att-{number}")).status == 200
            with pytest.raises(CallFailed):
                slow.result()
        model.close()


def test_a_schema_that_strict_mode_cannot_express_is_never_sent() -> None:
    with loopback.serving(loopback.answer(200, completion())) as server:
        failure = failure_of(server.base_url, schema={"$ref": "#/$defs/Lost", "title": "Lost"})
    assert failure.failure_class is FailureClass.INTERNAL
    assert server.posts == 0


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-\N{HORIZONTAL ELLIPSIS}", "sk-\x07"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        chat("http://127.0.0.1:9/v1", api_key=key)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key_is_named_before_anything_is_sent(key: str | None) -> None:
    assert provider_profile("openai").needs_api_key
    with pytest.raises(ConfigurationError, match="needs an API key"):
        chat("http://127.0.0.1:9/v1", api_key=key)


@pytest.mark.parametrize(
    "base_url", ["models.example.com/v1", "ftp://models/v1", "http://", "http://host:port/v1"]
)
def test_an_address_that_is_no_http_url_is_refused(base_url: str) -> None:
    with pytest.raises(ConfigurationError, match="base_url"):
        chat(base_url)


@pytest.mark.parametrize(
    "place", ["//me:canary@host/v1", "//host/v1?key=canary", "//host/v1#canary"]
)
def test_an_address_that_carries_a_secret_is_refused_because_addresses_are_logged(
    place: str,
) -> None:
    with pytest.raises(ConfigurationError, match="must not carry") as caught:
        chat(f"https:{place}")
    assert "canary" not in str(caught.value)


def test_a_provider_without_a_fixed_address_needs_one() -> None:
    with pytest.raises(ConfigurationError, match="set base_url"):
        chat("", profile="vllm")


def test_the_failure_carries_what_a_support_case_needs() -> None:
    body = {"error": {"type": "requests", "code": "rate_limit_exceeded", "message": "Slow down"}}
    headers = {"x-request-id": "req_9", "retry-after": "61"}
    with loopback.serving(loopback.answer(429, body, headers)) as server:
        failure = failure_of(server.base_url)
    assert failure.request_id == "req_9"
    assert failure.retry_after_s == 61.0
    assert failure.type == "requests"
    assert failure.code == "rate_limit_exceeded"
    assert "openai at 127.0.0.1" in failure.message
