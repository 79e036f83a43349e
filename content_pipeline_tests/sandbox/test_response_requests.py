"""Requests for responses: taken as the API documents them, refused as it refuses them."""

import json
from typing import Any

import pytest

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.response_requests import ResponseRequest, parse_response_request
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.sandbox.asking import response_body_of

SETTINGS = ProviderSettings()
USER = {"role": "user", "content": "x"}


def parsed(settings: ProviderSettings = SETTINGS, **more: Any) -> ResponseRequest:
    return parse_response_request(json.dumps(response_body_of(**more)).encode(), settings)


def refusal(settings: ProviderSettings = SETTINGS, **more: Any) -> tuple[int, Any, Any]:
    """Status, code and param of the refusal."""
    with pytest.raises(ApiError) as caught:
        parsed(settings, **more)
    error = caught.value.envelope["error"]
    assert error["type"] == "invalid_request_error"
    return caught.value.status, error["code"], error["param"]


def test_a_usual_request_is_taken_as_meant() -> None:
    wanted = parsed(background=True, max_output_tokens=900)
    asked = wanted.asked
    assert wanted.background
    assert asked.key == "attempt-1"
    assert asked.metadata == {"attempt_id": "attempt-1", "page_job_id": "page-job-1"}
    assert [message["role"] for message in asked.messages] == ["system", "user"]
    assert "Switzerland" in asked.prompt
    assert asked.max_tokens == 900
    assert asked.schema is not None
    assert "title" in asked.schema["properties"]


def test_a_response_is_stored_unless_the_request_says_otherwise() -> None:
    assert parsed().asked.store
    assert parsed(store=True).asked.store
    assert not parsed(store=False).asked.store
    assert not parsed().background


def test_a_text_alone_is_the_users_message() -> None:
    asked = parsed(input="Write a page", instructions=None).asked
    assert asked.messages == [{"role": "user", "content": "Write a page"}]
    assert asked.prompt == "Write a page"


def test_parts_of_a_message_are_one_text() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert parsed(input=[{"role": "user", "content": parts}]).asked.prompt == "a\nb"


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        (None, None),
        ({}, None),
        ({"format": {"type": "text"}}, None),
        ({"format": {"type": "json_object"}}, {}),
    ],
)
def test_a_format_other_than_a_schema_is_taken_too(text: Any, schema: Any) -> None:
    assert parsed(text=text).asked.schema == schema


def test_without_an_attempt_the_body_names_the_request() -> None:
    key = parsed(metadata=None).asked.key
    assert len(key) == 32
    assert key == parsed(metadata=None).asked.key
    assert key != parsed(metadata=None, temperature=1).asked.key


REFUSED: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"model": "nonsense"}, "model_not_found", None),
    ({"model": None}, None, "model"),
    ({"input": None}, None, "input"),
    ({"input": []}, None, "input"),
    ({"input": [{"role": "pope", "content": "x"}]}, None, "input[0].role"),
    ({"input": ["x"]}, None, "input[0].role"),
    ({"input": [{"role": "user", "content": 7}]}, "invalid_type", "input[0]"),
    ({"input": [{"role": "assistant", "content": "x"}]}, None, "input"),
    ({"instructions": 7}, "invalid_type", "instructions"),
    ({"metadata": {"a": 1}}, None, "metadata"),
    ({"metadata": {"a": "x" * 513}}, "string_above_max_length", "metadata"),
    ({"background": True, "store": False}, None, "background"),
    ({"stream": True}, None, "stream"),
    ({"max_output_tokens": 15}, "integer_below_min_value", "max_output_tokens"),
    ({"max_output_tokens": "many"}, None, "max_output_tokens"),
    ({"max_output_tokens": 127_900}, "context_length_exceeded", "input"),
    ({"text": {"format": {"type": "xml"}}}, None, "text.format"),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, None, "text.format"),
    (
        {"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}},
        None,
        "text.format",
    ),
    (
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "a",
                    "strict": True,
                    "schema": {"type": "object", "properties": {}},
                }
            }
        },
        "invalid_json_schema",
        "text.format",
    ),
]


@pytest.mark.parametrize(("more", "code", "param"), REFUSED)
def test_what_the_api_refuses_is_refused(
    more: dict[str, Any], code: str | None, param: str | None
) -> None:
    status, *rest = refusal(**more)
    assert status == (404 if code == "model_not_found" else 400)
    assert rest == [code, param]
