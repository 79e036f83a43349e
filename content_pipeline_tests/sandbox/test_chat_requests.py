import json
from typing import Any

import pytest

from content_pipeline.core.money import input_token_bound
from content_pipeline.core.prompts import SYSTEM_PROMPT
from content_pipeline.sandbox.chat_requests import ApiError, count_tokens, parse_request
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.sandbox.asking import (
    ICELAND,
    SWITZERLAND,
    body_of,
    prompt_for,
    response_format,
    stored_as,
)

SETTINGS = ProviderSettings()
USER = {"role": "user", "content": "x"}
PAIRS_17 = {f"key-{n}": "v" for n in range(17)}


def parsed(settings: ProviderSettings = SETTINGS, **more: Any) -> Any:
    return parse_request(json.dumps(body_of(**more)).encode(), settings)


def refusal(body: bytes, settings: ProviderSettings = SETTINGS) -> tuple[int, Any, Any]:
    """Status, code and param of the refusal of ``body``."""
    with pytest.raises(ApiError) as caught:
        parse_request(body, settings)
    error = caught.value.envelope["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    return caught.value.status, error["code"], error["param"]


def test_a_usual_request_is_taken_as_meant() -> None:
    asked = parsed(max_completion_tokens=900, **stored_as("attempt-1", "job-1"))
    assert asked.key == "attempt-1"
    assert asked.model == "gpt-4.1-mini"
    assert asked.prompt == prompt_for(SWITZERLAND)
    assert asked.schema["properties"].keys() >= {"title", "sections"}
    assert asked.max_tokens == 900
    assert asked.store
    assert asked.metadata == {"attempt_id": "attempt-1", "page_job_id": "job-1"}


def test_a_request_without_metadata_is_known_by_its_body() -> None:
    assert parsed().key == parsed().key
    assert parsed().key != parsed(facts=ICELAND).key
    assert len(parsed().key) == 32


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_not_an_object_is_refused(body: bytes) -> None:
    assert refusal(body) == (400, None, None)


@pytest.mark.parametrize(
    ("parameters", "refused"),
    [
        ({"model": None}, (400, None, "model")),
        ({"model": ""}, (400, None, "model")),
        ({"model": 5}, (400, None, "model")),
        ({"model": "claude-x"}, (404, "model_not_found", None)),
        ({"messages": None}, (400, None, "messages")),
        ({"messages": []}, (400, None, "messages")),
        ({"messages": "x"}, (400, None, "messages")),
        ({"messages": ["x"]}, (400, None, "messages[0].role")),
        ({"messages": [USER, {"role": "boss"}]}, (400, None, "messages[1].role")),
        ({"messages": [{"role": ["user"]}]}, (400, None, "messages[0].role")),
        ({"messages": [USER | {"content": 5}]}, (400, "invalid_type", "messages[0].content")),
        ({"messages": [USER | {"content": "\ud800"}]}, (400, None, "messages[0].content")),
        ({"metadata": {"a": "b"}}, (400, None, "metadata")),
        ({"metadata": {"a": "b"}, "store": False}, (400, None, "metadata")),
        ({"metadata": {"a": "b"}, "store": "true"}, (400, None, "metadata")),
        ({"metadata": {"a": 1}, "store": True}, (400, None, "metadata")),
        ({"metadata": ["a"], "store": True}, (400, None, "metadata")),
        ({"metadata": PAIRS_17, "store": True}, (400, None, "metadata")),
        (
            {"metadata": {"k" * 65: "v"}, "store": True},
            (400, "string_above_max_length", "metadata"),
        ),
        (
            {"metadata": {"k": "v" * 513}, "store": True},
            (400, "string_above_max_length", "metadata"),
        ),
        ({"max_tokens": 0}, (400, None, "max_tokens")),
        ({"max_completion_tokens": "9"}, (400, None, "max_completion_tokens")),
        ({"max_completion_tokens": True}, (400, None, "max_completion_tokens")),
        ({"stream": True}, (400, None, None)),
        ({"n": 2}, (400, None, None)),
        ({"response_format": "json"}, (400, None, "response_format")),
        ({"response_format": {"type": "xml"}}, (400, None, "response_format")),
        ({"response_format": {"type": "json_schema"}}, (400, None, "response_format")),
        ({"response_format": response_format(name="a b")}, (400, None, "response_format")),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": "x"}}},
            (400, None, "response_format"),
        ),
        (
            {"response_format": response_format({"type": "object"})},
            (400, "invalid_json_schema", "response_format"),
        ),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(parameters: dict[str, Any], refused: Any) -> None:
    assert refusal(json.dumps(body_of(**parameters)).encode()) == refused


@pytest.mark.parametrize(
    "parameters",
    [
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {f"key-{n}": "v" for n in range(16)}, "store": True},
        {"metadata": {"k" * 64: "v" * 512}, "store": True},
        {"n": 1},
        {"stream": False},
        {"temperature": 0.2, "seed": 4, "service_tier": "default"},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": response_format({"type": "object"}, strict=False)},
        {"messages": [USER | {"content": [{"type": "text", "text": "hello"}]}]},
        {"messages": [{"role": "developer", "content": "x"}]},
        {"messages": [USER, {"role": "assistant", "content": None}]},
        {"model": "o9-mini"},
        {"model": "sandbox"},
    ],
)
def test_what_the_real_service_takes_is_taken(parameters: dict[str, Any]) -> None:
    parsed(**parameters)


def test_named_models_are_the_only_ones() -> None:
    settings = ProviderSettings(models=("acme-1",))
    assert parsed(settings, model="acme-1").model == "acme-1"
    body = json.dumps(body_of(model="gpt-5.2")).encode()
    assert refusal(body, settings) == (404, "model_not_found", None)


def test_prompt_and_asked_output_must_fit_the_context_together() -> None:
    asked = parsed()
    fitting = ProviderSettings(context_tokens=asked.prompt_tokens + 100)
    assert parsed(fitting, max_completion_tokens=100).max_tokens == 100
    body = json.dumps(body_of(max_completion_tokens=101)).encode()
    assert refusal(body, fitting) == (400, "context_length_exceeded", "messages")


@pytest.mark.parametrize("text", ["", "a", "Ünïcödé ✓" * 50, "x" * 10_001])
def test_counted_tokens_stay_below_the_pipelines_bound(text: str) -> None:
    assert count_tokens(text) <= len(text.encode())
    asked = parsed(
        messages=[{"role": "system", "content": SYSTEM_PROMPT}, USER | {"content": text}]
    )
    assert 0 < asked.prompt_tokens <= input_token_bound(SYSTEM_PROMPT, text)


def test_only_a_long_shared_beginning_is_cached() -> None:
    long = {"role": "system", "content": "rule " * 2000}
    assert parsed().cached_tokens == 0
    asked = parsed(messages=[long, USER])
    assert asked.cached_tokens == 2432
    assert asked.cached_tokens % 128 == 0
    assert asked.cached_tokens <= asked.prompt_tokens


def test_the_last_user_message_is_the_prompt() -> None:
    messages = [USER | {"content": "first"}, USER | {"content": "last"}, {"role": "assistant"}]
    assert parsed(messages=messages).prompt == "last"
    assert parsed(messages=[{"role": "system", "content": "alone"}]).prompt == "alone"
