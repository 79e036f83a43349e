"""A response is read by its status first: none of its many ends is taken for another."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.adapters.llm.reading import Reader
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import Reading
from content_pipeline_tests.adapters.llm.samples import NOW, TEXT, accepted, raw, response

TEXT_PART = {"type": "output_text", "text": TEXT}
REFUSAL = {"type": "refusal", "refusal": "I'm sorry"}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": []}


def read(document: object, headers: dict[str, str] | None = None) -> Reading:
    reader = Reader(profile=provider_profile("openai"), service="openai at host")
    return reader.read(raw(document, headers), NOW)


def failure_of(document: object) -> Failure:
    reading = read(document)
    assert reading.text is None
    assert reading.failure is not None
    return reading.failure


def test_a_completed_response_gives_text_usage_and_ids() -> None:
    reading = read(response(), {"x-request-id": "req_3"})
    assert reading.text == TEXT
    assert reading.failure is None
    assert reading.model == "gpt-5.2-2025-12-11"
    assert (reading.response_id, reading.kept_as) == ("resp_0001", "resp_0001")
    assert reading.request_id == "req_3"
    assert reading.finish_reason == "completed"
    assert reading.usage == Usage(
        input_tokens=900,
        output_tokens=300,
        cached_tokens=800,
        cache_write_tokens=40,
        reasoning_tokens=100,
        service_tier="default",
    )


def test_a_text_in_several_parts_and_messages_is_one_text() -> None:
    message = {"type": "message", "content": [TEXT_PART]}
    assert read(response(parts=[TEXT_PART, TEXT_PART])).text == TEXT + TEXT
    assert read(response(output=[message, REASONING, message])).text == TEXT + TEXT


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_accepted_response_is_uncertain_and_can_be_asked_for(status: str) -> None:
    reading = read(accepted(status))
    assert reading.kept_as == "resp_0001"
    assert reading.usage is None
    assert reading.failure is not None
    assert reading.failure.failure_class is FailureClass.UNCERTAIN
    assert f"the response is {status}; it is asked for by its id" in reading.failure.message


ENDS: list[tuple[dict[str, Any], FailureClass, str]] = [
    (
        response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        FailureClass.BAD_OUTPUT,
        "token limit",
    ),
    (
        response(status="incomplete", incomplete_details={"reason": "content_filter"}),
        FailureClass.POLICY,
        "content filter",
    ),
    (
        response(status="incomplete", incomplete_details={"reason": "steered"}),
        FailureClass.BAD_OUTPUT,
        "for the reason steered",
    ),
    (response(status="incomplete"), FailureClass.BAD_OUTPUT, "incomplete"),
    (
        response(status="incomplete", incomplete_details="x"),
        FailureClass.BAD_OUTPUT,
        "incomplete",
    ),
    (response(status="cancelled"), FailureClass.BAD_OUTPUT, "was cancelled"),
    (response(parts=[REFUSAL]), FailureClass.POLICY, "refuses"),
    (response(parts=[TEXT_PART, REFUSAL]), FailureClass.POLICY, "refuses"),
    (response(parts=[]), FailureClass.BAD_OUTPUT, "only reasoning and no text"),
    (response(output=[REASONING]), FailureClass.BAD_OUTPUT, "only reasoning and no text"),
    (response(parts=[{"type": "output_text", "text": " "}]), FailureClass.BAD_OUTPUT, "no text"),
    (response(parts=[{"type": "output_text", "text": 7}]), FailureClass.BAD_OUTPUT, "no text"),
    (
        response(parts=[{"type": "output_text", "text": "\ud800"}]),
        FailureClass.BAD_OUTPUT,
        "not valid Unicode",
    ),
    (
        response(output=[{"type": "function_call", "name": "f", "arguments": "{}"}]),
        FailureClass.BAD_OUTPUT,
        "called a tool",
    ),
    (response(output=[]), FailureClass.UNCERTAIN, "no output"),
    (response(output=None), FailureClass.UNCERTAIN, "no output"),
    (response(output="x"), FailureClass.UNCERTAIN, "no output"),
    (response(output=[None, "x", 7]), FailureClass.BAD_OUTPUT, "no text"),
    (response(status="paused"), FailureClass.UNCERTAIN, "status paused"),
    (response(status=None), FailureClass.UNCERTAIN, "status without a name"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("document", "failure_class", "words"), ENDS)
def test_every_other_end_is_a_failure_of_its_class(
    document: dict[str, Any], failure_class: FailureClass, words: str
) -> None:
    failure = failure_of(document)
    assert failure.failure_class is failure_class
    assert words in failure.message
    assert failure.http_status == 200


def test_the_usage_of_an_unusable_response_is_kept() -> None:
    cut = response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    for document in (cut, response(parts=[REFUSAL]), response(status="cancelled")):
        usage = read(document).usage
        assert usage is not None
        assert usage.output_tokens == 300


def test_a_cut_text_of_valid_json_is_not_taken_for_whole() -> None:
    cut = response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert cut["output"][1]["content"][0]["text"] == TEXT
    assert failure_of(cut).failure_class is FailureClass.BAD_OUTPUT


FAILED = [
    ("server_error", FailureClass.TRANSIENT),
    ("vector_store_timeout", FailureClass.TRANSIENT),
    ("never_heard_of", FailureClass.TRANSIENT),
    ("rate_limit_exceeded", FailureClass.THROTTLED),
    ("insufficient_quota", FailureClass.QUOTA),
    ("invalid_prompt", FailureClass.POLICY),
    ("bio_policy", FailureClass.POLICY),
    ("misalignment_policy_violation", FailureClass.POLICY),
    ("image_content_policy_violation", FailureClass.POLICY),
    ("data_residency_mismatch", FailureClass.REQUEST),
]


@pytest.mark.parametrize(("code", "failure_class"), FAILED)
def test_a_failed_response_is_classified_by_its_code(
    code: str, failure_class: FailureClass
) -> None:
    failure = failure_of(accepted("failed", error={"code": code, "message": "m"}))
    assert failure.failure_class is failure_class
    assert failure.code == code


def test_an_empty_account_hides_behind_the_code_of_a_rate_limit() -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": "rate_limit_exceeded", "message": message}
    assert failure_of(accepted("failed", error=error)).failure_class is FailureClass.QUOTA


def test_a_failed_response_that_does_not_say_why_is_uncertain() -> None:
    assert failure_of(accepted("failed")).failure_class is FailureClass.UNCERTAIN


def test_an_error_object_of_a_gateway_around_a_response_is_uncertain() -> None:
    failure = failure_of(response(error={"code": "never_heard_of", "message": "m"}))
    assert failure.failure_class is FailureClass.UNCERTAIN


@pytest.mark.parametrize("name", [None, 1.5, "resp 1", "sk-key", ["x"], ""])
def test_an_id_that_is_none_is_not_asked_for(name: object) -> None:
    assert read(response(id=name)).kept_as is None


def test_a_chat_completion_is_not_kept_under_an_id() -> None:
    assert read({"object": "chat.completion", "id": "chatcmpl-1"}).kept_as is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["id", "status", "output", "error", "usage", "incomplete_details", "model"]
        ),
        JSON
        | st.sampled_from(["completed", "incomplete", "failed", "cancelled", "queued"])
        | st.lists(
            st.fixed_dictionaries({"type": JSON | st.just("message"), "content": JSON}), max_size=2
        ),
    )
)
def test_nothing_a_provider_may_write_raises(document: dict[str, Any]) -> None:
    reading = read({"object": "response", **document})
    assert (reading.text is None) == (reading.failure is not None)
