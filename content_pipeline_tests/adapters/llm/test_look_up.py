"""Asking for a lost answer: only a listing asked by our attempt id says present or absent."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import GenerationLookUp, Verdict
from content_pipeline_tests.adapters.llm import loopback
from content_pipeline_tests.adapters.llm.samples import TEXT, chat, completion

ATTEMPT = "att-0001"


def stored(attempt_id: str = ATTEMPT, **changes: Any) -> dict[str, Any]:
    return completion(metadata={"attempt_id": attempt_id}, request_id="req_5", **changes)


def listing(*items: object) -> dict[str, Any]:
    return {"object": "list", "data": list(items), "has_more": False}


def look_up(behaviour: loopback.Behaviour, profile: str = "openai") -> GenerationLookUp:
    with loopback.serving(behaviour) as server:
        model = chat(server.base_url, profile=profile)
        found = model.look_up(ATTEMPT)
        model.close()
    return found


def test_the_provider_is_asked_once_by_the_attempt_id() -> None:
    with loopback.serving(loopback.answer(200, listing())) as server:
        model = chat(server.base_url)
        model.look_up(ATTEMPT)
        model.close()
    asked = urlsplit(server.received[0].target)
    assert len(server.received) == 1
    assert server.received[0].method == "GET"
    assert asked.path == "/v1/chat/completions"
    assert parse_qs(asked.query)["metadata[attempt_id]"] == [ATTEMPT]


def test_a_stored_answer_is_present_and_readable_like_the_original() -> None:
    with loopback.serving(loopback.answer(200, listing(stored()))) as server:
        model = chat(server.base_url)
        found = model.look_up(ATTEMPT)
        assert found.verdict is Verdict.PRESENT
        assert found.raw is not None
        reading = model.read(found.raw)
        model.close()
    assert json.loads(found.raw.body) == stored()
    assert reading.text == TEXT
    assert reading.request_id == "req_5"
    assert reading.usage is not None


def test_an_empty_listing_is_absence() -> None:
    found = look_up(loopback.answer(200, listing()))
    assert found == GenerationLookUp(verdict=Verdict.ABSENT)


def test_of_two_answers_of_one_attempt_the_first_counts() -> None:
    found = look_up(loopback.answer(200, listing(stored(id="chatcmpl-a"), stored(id="chatcmpl-b"))))
    assert found.raw is not None
    assert json.loads(found.raw.body)["id"] == "chatcmpl-a"


def test_our_answer_is_found_among_others() -> None:
    found = look_up(loopback.answer(200, listing(stored("att-other"), stored())))
    assert found.verdict is Verdict.PRESENT


@pytest.mark.parametrize(
    "item",
    [stored("att-other"), completion(), completion(metadata=None), "text", None, {"metadata": []}],
)
def test_a_server_that_lists_what_we_did_not_ask_for_proves_nothing(item: object) -> None:
    found = look_up(loopback.answer(200, listing(item)))
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None


UNREADABLE: list[bytes | object] = [
    b"",
    b"<html></html>",
    b'{"data": [',
    None,
    [],
    {},
    {"data": None},
    {"data": {}},
    {"error": {"message": "m"}},
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_listing_that_cannot_be_read_proves_nothing(body: bytes | object) -> None:
    assert look_up(loopback.answer(200, body)).verdict is Verdict.UNKNOWN


FAILING = [
    (loopback.answer(404, {"error": {}}), FailureClass.REQUEST),
    (loopback.answer(401, {"error": {}}), FailureClass.AUTH),
    (loopback.answer(429, b""), FailureClass.THROTTLED),
    (loopback.answer(500, {"error": {}}), FailureClass.TRANSIENT),
    (loopback.answer(502, b"<html>"), FailureClass.TRANSIENT),
    (loopback.reset_at_once, FailureClass.TRANSIENT),
    (loopback.cut_body, FailureClass.TRANSIENT),
    (loopback.redirect_to_itself, FailureClass.REQUEST),
]


@pytest.mark.parametrize(("behaviour", "failure_class"), FAILING)
def test_a_failing_look_up_is_unknown_and_never_itself_uncertain(
    behaviour: loopback.Behaviour, failure_class: FailureClass
) -> None:
    found = look_up(behaviour)
    assert found.verdict is Verdict.UNKNOWN
    assert found.raw is None
    assert found.failure is not None
    assert found.failure.failure_class is failure_class


def test_an_unreachable_provider_is_unknown() -> None:
    model = chat(f"http://127.0.0.1:{loopback.free_port()}/v1")
    found = model.look_up(ATTEMPT)
    model.close()
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.NOT_SENT


def test_a_provider_that_keeps_nothing_is_not_asked() -> None:
    with loopback.serving(loopback.answer(200, listing())) as server:
        model = chat(server.base_url, profile="vllm")
        assert not model.capabilities.look_up_by_attempt
        found = model.look_up(ATTEMPT)
        model.close()
    assert found.verdict is Verdict.UNKNOWN
    assert server.received == []
