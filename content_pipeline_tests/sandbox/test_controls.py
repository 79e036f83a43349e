"""The sandbox's endpoints about itself, through their client."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.connections import listen
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.server import serving
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.sandbox.asking import create, exchange, raw_request, stored_as


def post(box: SandboxClient, name: str, document: object) -> tuple[int, Any]:
    line = f"POST /sandbox/{name} HTTP/1.1"
    head, _, body = exchange(box, raw_request(json.dumps(document).encode(), line=line)).partition(
        b"\r\n\r\n"
    )
    return int(head.split(b" ")[1]), json.loads(body)


def test_health_tells_instance_settings_and_counts(box: SandboxClient, sdk: openai.OpenAI) -> None:
    create(sdk)
    health = box.health()
    assert health["status"] == "ok"
    assert health["pid"] == os.getpid()
    assert len(health["token"]) == 32
    assert health["started_at"].endswith("+00:00")
    assert (health["requests"], health["generations"], health["in_flight"]) == (1, 1, 0)
    assert ProviderSettings.model_validate(health["settings"]).latency_median_s == 0


def test_questions_about_the_sandbox_are_no_requests_to_the_provider(box: SandboxClient) -> None:
    box.set_faults(FaultPlan.model_validate({"rules": [{"fault": {"kind": "drop_before"}}]}))
    for _ in range(3):
        box.health()
    assert box.truth()["requests"] == 0


def test_settings_hold_from_the_next_request_on(box: SandboxClient, sdk: openai.OpenAI) -> None:
    before = create(sdk).choices[0].message.content
    box.set_settings(ProviderSettings(latency_median_s=0.01, latency_sigma=0, seed=9))
    after = create(sdk).choices[0].message.content
    assert before != after
    assert [g["latency_s"] for g in box.truth()["generations"]] == [0, 0.01]


def test_a_reset_forgets_requests_completions_and_faults(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    created = create(sdk, **stored_as("attempt-1"))
    box.set_faults(FaultPlan.model_validate({"rules": [{"fault": {"kind": "drop_before"}}]}))
    box.reset()
    assert box.truth()["generations"] == []
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.retrieve(created.id)
    create(sdk)


@pytest.mark.parametrize(
    ("name", "document", "told"),
    [
        ("faults", {"rules": [{"fault": {"kind": "explode"}}]}, "rules.0.fault.kind"),
        ("faults", {"rule": []}, "rule: "),
        ("faults", [], "an object"),
        ("settings", {"latency_median_s": -1}, "latency_median_s"),
        ("settings", {"speed": 3}, "speed: "),
        ("stop", {}, "token"),
    ],
)
def test_a_wrong_order_is_refused_by_its_place(
    box: SandboxClient, name: str, document: object, told: str
) -> None:
    status, answer = post(box, name, document)
    assert status == 400
    assert told in answer["error"]["message"]


def test_a_refused_order_changes_nothing(box: SandboxClient) -> None:
    before = box.health()["settings"]
    post(box, "settings", {"latency_median_s": 3, "speed": 3})
    assert box.health()["settings"] == before


@pytest.mark.parametrize("name", ["nothing", "health", "truth", ""])
def test_an_unknown_order_is_not_found(box: SandboxClient, name: str) -> None:
    assert post(box, name, {})[0] == 404


def test_only_the_right_token_stops_it(box: SandboxClient) -> None:
    with pytest.raises(CallFailed, match="Another instance") as caught:
        box.stop("0" * 32)
    assert caught.value.failure.http_status == 409
    assert box.health()["status"] == "ok"


def test_the_end_of_the_block_is_the_end_of_the_provider() -> None:
    with serving() as box:
        threads = threading.active_count()
        box.health()
    assert threading.active_count() == threads - 1
    with pytest.raises(CallFailed) as caught:
        box.health()
    assert caught.value.failure.failure_class is FailureClass.NOT_SENT


def test_a_provider_ends_although_calls_hang(make_sdk: Callable[..., openai.OpenAI]) -> None:
    plan = FaultPlan.model_validate({"rules": [{"fault": {"kind": "hang"}}]})
    with serving(ProviderSettings(latency_median_s=0), faults=plan) as box:
        sdk = make_sdk(box.base_url)
        failed: list[BaseException] = []

        def call() -> None:
            try:
                create(sdk)
            except openai.APIConnectionError as error:
                failed.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        while box.truth()["generations"] == []:
            pass
    thread.join()
    assert len(failed) == 1


def test_it_listens_on_loopback_only(box: SandboxClient) -> None:
    with listen() as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    assert box.base_url == f"http://127.0.0.1:{box.port}/v1"


def test_a_port_in_use_is_told_at_once(box: SandboxClient) -> None:
    with pytest.raises(OSError, match="in use"), serving(port=box.port):
        pass


@contextmanager
def stranger(answer: bytes) -> Iterator[SandboxClient]:
    """Something else that listens on a port and gives ``answer`` to the first who comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield SandboxClient(listener.getsockname()[1])
        thread.join()


@pytest.mark.parametrize(
    ("answer", "failure_class"),
    [
        (b"", FailureClass.UNCERTAIN),
        (b"SSH-2.0-x\r\n", FailureClass.UNCERTAIN),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", FailureClass.UNCERTAIN),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", FailureClass.REQUEST),
        (b"HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}", FailureClass.REQUEST),
        (b'HTTP/1.1 404 No\r\ncontent-length: 11\r\n\r\n{"error":1}', FailureClass.REQUEST),
    ],
)
def test_a_stranger_on_the_port_is_a_failed_call(
    answer: bytes, failure_class: FailureClass
) -> None:
    with stranger(answer) as client, pytest.raises(CallFailed) as caught:
        client.health()
    assert caught.value.failure.failure_class is failure_class
    assert f"port {client.port}" in str(caught.value)
