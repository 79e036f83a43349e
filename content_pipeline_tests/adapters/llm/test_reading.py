"""HTTP 200 is not success: every shape of answer is read, none raises, usage survives."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.adapters.llm.reading import Reader
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import RawResponse, Reading
from content_pipeline_tests.adapters.llm.samples import NOW, TEXT, completion, raw


def read(answer: RawResponse, profile: str = "openai") -> Reading:
    return Reader(profile=provider_profile(profile), service="openai at host").read(answer, NOW)


def test_a_completed_answer_gives_text_usage_and_ids() -> None:
    reading = read(raw(completion(), {"x-request-id": "req_3"}))
    assert reading.text == TEXT
    assert reading.failure is None
    assert reading.model == "gpt-5.2-2025-12-11"
    assert reading.response_id == "chatcmpl-0001"
    assert reading.request_id == "req_3"
    assert reading.finish_reason == "stop"
    assert reading.usage is not None
    assert reading.usage.input_tokens == 900


def test_a_listed_answer_names_its_request_in_the_body() -> None:
    assert read(raw(completion(request_id="req_4"))).request_id == "req_4"


NOT_A_COMPLETION: list[tuple[bytes | object, str]] = [
    (b"", "empty"),
    (b"   \n", "empty"),
    (b"<!doctype html><html></html>", "markup"),
    (b"upstream timed out", "not JSON"),
    (b"\xff\xfe\x00", "not JSON"),
    (json.dumps(completion()).encode()[:-40], "too early"),
    (b'{"id": ' + b"9" * 5000 + b"}", "too early or is broken"),
    (b"[" * 200_000, "not JSON"),
    (None, "NoneType"),
    ("a text", "str"),
    ([completion()], "list"),
    (7, "int"),
    ({}, "no choices"),
    (completion(choices=None), "no choices"),
    (completion(choices=[]), "no choices"),
    (completion(choices={}), "no choices"),
    (completion(choices="x"), "no choices"),
    (completion(choices=[None]), "no message"),
    (completion(choices=[{}]), "no message"),
    (completion(choices=[{"message": None}]), "no message"),
    ({"error": {"message": "boom"}}, "an error object may hide a completion"),
    ({"error": {"message": "boom", "code": "server_error"}}, "server_error"),
    ({"error": "boom"}, "error of unknown form"),
    (completion(error="boom"), "error of unknown form"),
    ({"object": "error", "message": "boom"}, "may exist"),
]


@pytest.mark.parametrize(("body", "words"), NOT_A_COMPLETION)
def test_a_body_that_is_no_completion_is_uncertain_never_success(
    body: bytes | object, words: str
) -> None:
    reading = read(raw(body))
    assert reading.text is None
    assert reading.failure is not None
    assert reading.failure.failure_class is FailureClass.UNCERTAIN
    assert reading.failure.http_status == 200
    assert words in reading.failure.message or "may exist" in reading.failure.message


KNOWN_ERRORS = [
    ("insufficient_quota", FailureClass.QUOTA),
    ("invalid_api_key", FailureClass.AUTH),
    ("rate_limit_exceeded", FailureClass.THROTTLED),
    ("context_length_exceeded", FailureClass.REQUEST),
    ("content_policy_violation", FailureClass.POLICY),
    (402, FailureClass.QUOTA),
    (429, FailureClass.THROTTLED),
]


@pytest.mark.parametrize(("code", "failure_class"), KNOWN_ERRORS)
def test_an_error_object_with_a_known_code_says_what_it_says(
    code: object, failure_class: FailureClass
) -> None:
    reading = read(raw({"error": {"message": "m", "code": code}}, {"retry-after": "7"}))
    assert reading.failure is not None
    assert reading.failure.failure_class is failure_class
    assert reading.failure.retry_after_s == 7.0


def with_message(finish: object = "stop", **message: Any) -> dict[str, Any]:
    return completion(message=message, finish=finish)


PAID_BUT_UNUSABLE: list[tuple[str, dict[str, Any], FailureClass]] = [
    ("cut", with_message("length"), FailureClass.BAD_OUTPUT),
    ("cut, in a gateway's words", with_message("max_tokens"), FailureClass.BAD_OUTPUT),
    ("cut before any text", with_message("length", content=None), FailureClass.BAD_OUTPUT),
    ("filtered", with_message("content_filter"), FailureClass.POLICY),
    ("filtered, empty", with_message("content_filter", content=""), FailureClass.POLICY),
    ("refused", with_message(content=None, refusal="I cannot help."), FailureClass.POLICY),
    ("refused beside a text", with_message(refusal="I cannot help."), FailureClass.POLICY),
    ("refused and cut", with_message("length", refusal="I cannot"), FailureClass.POLICY),
    ("no content", with_message(content=None), FailureClass.BAD_OUTPUT),
    ("empty", with_message(content=""), FailureClass.BAD_OUTPUT),
    ("blank", with_message(content=" \n\t "), FailureClass.BAD_OUTPUT),
    ("parts", with_message(content=[{"type": "text"}]), FailureClass.BAD_OUTPUT),
    ("half a character", with_message(content="\ud83d"), FailureClass.BAD_OUTPUT),
    (
        "only reasoning",
        with_message(content=None, reasoning_content="Let me think"),
        FailureClass.BAD_OUTPUT,
    ),
    ("tool", with_message("tool_calls", content=None), FailureClass.BAD_OUTPUT),
    ("tool, stopped", with_message("stop", tool_calls=[{"id": "t"}]), FailureClass.BAD_OUTPUT),
    ("function", with_message("function_call"), FailureClass.BAD_OUTPUT),
    ("no reason", with_message(None), FailureClass.BAD_OUTPUT),
    ("failed upstream", with_message("error"), FailureClass.BAD_OUTPUT),
    ("a reason of no kind", with_message(["stop"]), FailureClass.BAD_OUTPUT),
    (
        "two choices",
        completion(choices=completion()["choices"] * 2),
        FailureClass.BAD_OUTPUT,
    ),
]


@pytest.mark.parametrize(
    ("document", "failure_class"),
    [case[1:] for case in PAID_BUT_UNUSABLE],
    ids=[case[0] for case in PAID_BUT_UNUSABLE],
)
def test_a_paid_answer_that_is_unusable_fails_and_keeps_its_usage(
    document: dict[str, Any], failure_class: FailureClass
) -> None:
    reading = read(raw(document))
    assert reading.text is None
    assert reading.failure is not None
    assert reading.failure.failure_class is failure_class
    assert reading.usage is not None
    assert reading.usage.output_tokens == 300
    assert reading.response_id == "chatcmpl-0001"


def test_a_cut_answer_is_called_cut_although_its_json_happens_to_be_whole() -> None:
    reading = read(raw(with_message("length", content="{}")))
    assert reading.failure is not None
    assert "token limit" in reading.failure.message
    assert reading.finish_reason == "length"


def test_a_missing_finish_reason_is_accepted_only_from_a_server_known_for_it() -> None:
    answer = raw(with_message(None))
    assert read(answer, "ollama").text == TEXT
    assert read(answer, "generic").text is None
    assert read(raw(with_message(None, content="")), "ollama").text is None


def test_messages_never_hold_what_the_model_wrote() -> None:
    secret = "canary words"
    for document in (
        with_message(refusal=secret),
        with_message(content=[secret]),
        with_message(secret),
        completion(error=secret),
        {"error": {"message": secret, "code": secret, "type": secret}},
    ):
        reading = read(raw(document))
        assert reading.failure is not None
        assert secret not in repr(reading)


MESSAGE_FIELDS = ("content", "refusal", "tool_calls", "reasoning")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "error": json_values,
            "object": st.sampled_from(["error", "chat.completion"]),
            "choices": json_values
            | st.lists(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "finish_reason": json_values | st.just("stop"),
                        "message": json_values
                        | st.fixed_dictionaries(
                            {},
                            optional=dict.fromkeys(
                                ("content", "refusal", "tool_calls", "reasoning"), json_values
                            ),
                        ),
                    },
                ),
                max_size=2,
            ),
            "usage": json_values,
            "model": json_values,
            "id": json_values,
            "service_tier": json_values,
        },
    )
)
def test_no_json_object_makes_reading_raise_or_succeed_without_text(document: Any) -> None:
    reading = read(raw(document))
    assert (reading.text is None) != (reading.failure is None)
    assert reading.text is None or reading.text.strip()


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    reading = read(raw(body))
    assert reading.text is None
    assert reading.failure is not None
