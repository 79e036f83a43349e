"""The Responses API: one POST that pays, any number of questions that do not."""

import json
from typing import Any

import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import GenerationLookUp, Verdict
from content_pipeline_tests.adapters.llm import loopback
from content_pipeline_tests.adapters.llm.samples import (
    PROMPT,
    TEXT,
    accepted,
    chat,
    completion,
    request,
    response,
    responses,
)
from content_pipeline_tests.adapters.llm.test_send import FAULTS, SHORT_S, SLOW

ATTEMPT, KEPT = "att-0001", "resp_0001"
NOT_FOUND = {"error": {"type": "invalid_request_error", "code": None, "message": "not found"}}


def sent_body(**changes: Any) -> tuple[loopback.Received, Any]:
    """What goes over the wire."""
    with loopback.serving(loopback.answer(200, accepted())) as server:
        model = responses(server.base_url, **changes)
        model.send(request(temperature=0.2))
        model.close()
    (received,) = server.received
    return received, received.json()


def look_up(behaviour: loopback.Behaviour, **changes: Any) -> GenerationLookUp:
    with loopback.serving(behaviour) as server:
        model = responses(server.base_url, **changes)
        found = model.look_up(ATTEMPT, KEPT)
        model.close()
    return found


# --- the call that pays -------------------------------------------------------------------------


def test_the_request_carries_the_schema_the_limits_and_the_ids() -> None:
    received, body = sent_body()
    assert (received.method, received.target) == ("POST", "/v1/responses")
    assert received.headers["idempotency-key"] == ATTEMPT
    assert received.headers["x-client-request-id"] == ATTEMPT
    assert body["model"] == "gpt-5.2"
    assert body["instructions"] == "You write articles."
    assert body["input"] == [{"role": "user", "content": PROMPT}]
    assert body["max_output_tokens"] == 1200
    assert body["temperature"] == 0.2
    assert (body["background"], body["store"]) == (True, True)
    assert body["metadata"] == {"attempt_id": ATTEMPT, "page_job_id": "job-0001"}
    assert body["service_tier"] == "default"
    described = body["text"]["format"]
    assert (described["type"], described["strict"]) == ("json_schema", True)
    assert described["schema"]["additionalProperties"] is False


def test_without_the_background_the_answer_is_waited_for_and_kept_all_the_same() -> None:
    _, body = sent_body(background=False)
    assert (body["background"], body["store"]) == (False, True)


def test_an_azure_project_chooses_its_own_tier() -> None:
    _, body = sent_body(profile="azure")
    assert "service_tier" not in body


def test_the_acceptance_comes_back_byte_for_byte_and_can_be_asked_for() -> None:
    with loopback.serving(loopback.answer(200, accepted())) as server:
        model = responses(server.base_url)
        raw = model.send(request())
        reading = model.read(raw)
        model.close()
    assert json.loads(raw.body) == accepted()
    assert reading.kept_as == KEPT
    assert server.posts == 1


@pytest.mark.parametrize(("behaviour", "failure_class"), FAULTS)
def test_a_fault_is_classified_like_a_chat_completions_after_one_post(
    behaviour: loopback.Behaviour, failure_class: FailureClass
) -> None:
    with loopback.serving(behaviour) as server:
        model = responses(server.base_url)
        with pytest.raises(CallFailed) as caught:
            model.send(request())
        model.close()
    assert caught.value.failure.failure_class is failure_class
    assert len(server.received) == 1


@pytest.mark.parametrize("behaviour", SLOW)
def test_an_acceptance_that_stalls_ends_at_the_deadline(behaviour: loopback.Behaviour) -> None:
    with loopback.serving(behaviour) as server:
        model = responses(server.base_url)
        with pytest.raises(CallFailed) as caught:
            model.send(request(deadline_s=SHORT_S))
        model.close()
    assert caught.value.failure.failure_class is FailureClass.UNCERTAIN
    assert server.posts == 1


# --- the questions that do not ------------------------------------------------------------------


def test_a_response_is_asked_for_once_by_its_id() -> None:
    with loopback.serving(loopback.answer(200, response())) as server:
        model = responses(server.base_url)
        found = model.look_up(ATTEMPT, KEPT)
        model.close()
    assert [(each.method, each.target) for each in server.received] == [
        ("GET", f"/v1/responses/{KEPT}")
    ]
    assert found.verdict is Verdict.PRESENT


def test_what_is_found_is_readable_like_the_answer_of_a_call() -> None:
    found = look_up(loopback.answer(200, response(), {"x-request-id": "req_8"}))
    assert found.raw is not None
    model = responses("http://127.0.0.1:9/v1")
    reading = model.read(found.raw)
    model.close()
    assert (reading.text, reading.request_id) == (TEXT, "req_8")


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_at_work_is_not_known_yet(status: str) -> None:
    found = look_up(loopback.answer(200, accepted(status)))
    assert found.verdict is Verdict.UNKNOWN
    assert found.raw is None
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.TRANSIENT
    assert f"the response is {status}" in found.failure.message


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "incomplete"])
def test_a_response_that_has_ended_is_present_however_it_ended(status: str) -> None:
    assert look_up(loopback.answer(200, response(status=status))).verdict is Verdict.PRESENT


def test_a_response_that_the_provider_does_not_know_is_absent() -> None:
    assert look_up(loopback.answer(404, NOT_FOUND)) == GenerationLookUp(verdict=Verdict.ABSENT)


def test_a_gateways_page_is_no_absence() -> None:
    found = look_up(loopback.answer(404, b"<html>not found</html>"))
    assert found.verdict is Verdict.UNKNOWN


UNREADABLE: list[bytes | object] = [
    b"",
    b"<html></html>",
    b'{"id": "resp_0001"',
    None,
    [],
    {},
    response(id="resp_of_somebody_else"),
    {"error": {"message": "m"}},
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_an_answer_that_is_not_the_response_proves_nothing(body: bytes | object) -> None:
    found = look_up(loopback.answer(200, body))
    assert (found.verdict, found.raw) == (Verdict.UNKNOWN, None)


FAILING = [
    (loopback.answer(401, {"error": {}}), FailureClass.AUTH),
    (loopback.answer(429, b""), FailureClass.THROTTLED),
    (loopback.answer(500, {"error": {}}), FailureClass.TRANSIENT),
    (loopback.answer(502, b"<html>"), FailureClass.TRANSIENT),
    (loopback.reset_at_once, FailureClass.TRANSIENT),
    (loopback.cut_body, FailureClass.TRANSIENT),
]


@pytest.mark.parametrize(("behaviour", "failure_class"), FAILING)
def test_a_question_that_fails_is_itself_never_uncertain(
    behaviour: loopback.Behaviour, failure_class: FailureClass
) -> None:
    found = look_up(behaviour)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is failure_class


def test_what_was_sent_by_the_other_api_is_still_found() -> None:
    """A site that changed its API asks about the calls of before as they were sent."""
    listing = {"data": [completion(metadata={"attempt_id": ATTEMPT})]}
    with loopback.serving(loopback.answer(200, listing)) as server:
        model = responses(server.base_url)
        found = model.look_up(ATTEMPT)
        model.close()
    assert found.verdict is Verdict.PRESENT
    assert server.received[0].target.startswith("/v1/chat/completions?")
    with loopback.serving(loopback.answer(200, response())) as server:
        model = chat(server.base_url)
        found = model.look_up(ATTEMPT, KEPT)
        assert found.raw is not None
        assert model.read(found.raw).text == TEXT
        model.close()


def test_a_provider_that_keeps_nothing_is_not_asked() -> None:
    with loopback.serving(loopback.answer(200, response())) as server:
        model = chat(server.base_url, profile="vllm")
        assert not model.capabilities.look_up_by_id
        assert model.look_up(ATTEMPT, KEPT).verdict is Verdict.UNKNOWN
        model.close()
    assert server.received == []


# --- stopping one -------------------------------------------------------------------------------


def test_a_response_is_cancelled_by_one_request() -> None:
    with loopback.serving(loopback.answer(200, accepted("cancelled"))) as server:
        model = responses(server.base_url)
        model.cancel(KEPT)
        model.close()
    assert [(each.method, each.target) for each in server.received] == [
        ("POST", f"/v1/responses/{KEPT}/cancel")
    ]


@pytest.mark.parametrize(
    "behaviour",
    [loopback.answer(404, NOT_FOUND), loopback.answer(500, b""), loopback.reset_at_once],
)
def test_a_cancellation_that_fails_is_not_repeated_and_hurts_nobody(
    behaviour: loopback.Behaviour,
) -> None:
    with loopback.serving(behaviour) as server:
        model = responses(server.base_url)
        model.cancel(KEPT)
        model.close()
    assert len(server.received) == 1
