"""Neither the key nor a prompt nor the model's text leaves through an error or a log line."""

import io
import logging
import traceback
from collections.abc import Iterator

import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline_tests.adapters.llm import loopback
from content_pipeline_tests.adapters.llm.samples import (
    KEY,
    PROMPT,
    TEXT,
    accepted,
    chat,
    completion,
    request,
    responses,
)

CANARIES = (KEY, PROMPT, "canary")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything any library logs, at the most talkative level."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.setLevel(level)
    root.removeHandler(handler)


def echo(status: int) -> loopback.Behaviour:
    """A provider that quotes key and prompt wherever an error has room for text."""
    quoted = f"Incorrect API key provided: {KEY}. Your prompt was: {PROMPT}"
    error = {"message": quoted, "code": KEY, "type": PROMPT, "param": PROMPT, "innererror": TEXT}
    return loopback.answer(status, {"error": error})


FAULTS = [
    *(echo(status) for status in (307, 400, 401, 402, 403, 404, 409, 413, 429, 500, 502, 503)),
    loopback.answer(500, f"<html>{PROMPT} {KEY}</html>".encode()),
    loopback.reset_at_once,
    loopback.garbage,
    loopback.cut_body,
    loopback.bad_gzip,
]


@pytest.mark.parametrize("behaviour", FAULTS)
def test_a_failed_call_shows_no_secret(behaviour: loopback.Behaviour, log: io.StringIO) -> None:
    with loopback.serving(behaviour) as server:
        model = chat(server.base_url)
        with pytest.raises(CallFailed) as caught:
            model.send(request())
        model.close()
    error = caught.value
    shown = "".join(traceback.format_exception(error))
    assert error.__cause__ is None
    assert error.__context__ is None
    everything = f"{error} {error!r} {error.failure!r} {shown} {log.getvalue()}"
    assert [canary for canary in CANARIES if canary in everything] == []


@pytest.mark.parametrize("behaviour", FAULTS)
def test_a_failed_question_about_a_response_shows_no_secret(
    behaviour: loopback.Behaviour, log: io.StringIO
) -> None:
    with loopback.serving(behaviour) as server:
        model = responses(server.base_url)
        found = model.look_up("att-0001", "resp_1")
        model.cancel("resp_1")
        model.close()
    everything = f"{found!r} {log.getvalue()}"
    assert [canary for canary in CANARIES if canary in everything] == []


def test_a_failed_response_shows_nothing_of_what_the_provider_wrote() -> None:
    error = {"code": "server_error", "message": f"{PROMPT} {KEY}"}
    with loopback.serving(loopback.answer(200, accepted("failed", error=error))) as server:
        model = responses(server.base_url)
        reading = model.read(model.send(request()))
        model.close()
    assert reading.failure is not None
    assert [canary for canary in CANARIES if canary in repr(reading)] == []


def test_a_header_that_quotes_the_key_is_not_taken_for_an_id_or_a_time() -> None:
    headers = {"x-request-id": KEY, "retry-after": KEY, "set-cookie": KEY, "location": KEY}
    with loopback.serving(loopback.answer(429, b"", headers)) as server:
        model = chat(server.base_url)
        with pytest.raises(CallFailed) as caught:
            model.send(request())
        model.close()
    assert KEY not in repr(caught.value.failure)


def test_a_success_logs_no_secret(log: io.StringIO) -> None:
    with loopback.serving(loopback.answer(200, completion(), {"set-cookie": "a=b"})) as server:
        model = chat(server.base_url)
        raw = model.send(request())
        reading = model.read(raw)
        model.close()
    assert reading.text == TEXT
    everything = f"{raw!r} {reading!r} {log.getvalue()}"
    assert "POST" in log.getvalue()
    assert [canary for canary in CANARIES if canary in everything] == []


def test_the_client_itself_does_not_show_its_key() -> None:
    model = chat("http://127.0.0.1:9/v1")
    shown = f"{model} {model!r}"
    model.close()
    assert KEY not in shown


def test_an_unreadable_200_shows_nothing_of_its_body() -> None:
    model = chat("http://127.0.0.1:9/v1")
    for body in (
        f"<html>{PROMPT}</html>",
        PROMPT,
        f'"{PROMPT}"',
        f'{{"error": "{PROMPT}"}}',
        f'{{"error": {{"message": "{PROMPT}", "code": "{KEY}"}}}}',
    ):
        with loopback.serving(loopback.answer(200, body.encode())) as server:
            live = chat(server.base_url)
            reading = live.read(live.send(request()))
            live.close()
        assert reading.failure is not None
        assert [canary for canary in CANARIES if canary in repr(reading)] == []
    model.close()
