"""Every kind of fault as the real SDK sees it, and what it bills."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from pydantic import ValidationError

from content_pipeline.core.article import Article
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.faults import FaultKind, FaultPlan
from content_pipeline_tests.sandbox.asking import (
    body_of,
    content_of,
    create,
    exchange,
    raw_request,
    stored_as,
    wait_until,
)


def strike(
    box: SandboxClient, kind: str, *, match: Any = None, times: int = 1, **fault: Any
) -> None:
    """Set a plan of one rule."""
    rule = {"fault": {"kind": kind, **fault}, "match": match or {}, "times": times}
    box.set_faults(FaultPlan.model_validate({"rules": [rule]}))


def call(sdk: openai.OpenAI) -> Any:
    return create(sdk, **stored_as("attempt-1"))


def parse(sdk: openai.OpenAI) -> Any:
    body = body_of(**stored_as("attempt-1")) | {"response_format": Article}
    return sdk.chat.completions.parse(**body)


def raw(sdk: openai.OpenAI) -> Any:
    return sdk.chat.completions.with_raw_response.create(**body_of(**stored_as("attempt-1")))


def billed(box: SandboxClient) -> int:
    return int(box.truth()["generations_by_attempt_id"].get("attempt-1", 0))


RAISING: list[tuple[str, dict[str, Any], Callable[[openai.OpenAI], Any], type[Exception], int]] = [
    ("status", {"status": 500}, call, openai.InternalServerError, 0),
    ("status", {"status": 429}, call, openai.RateLimitError, 0),
    ("status", {"status": 401}, call, openai.AuthenticationError, 0),
    ("status", {"status": 402}, call, openai.APIStatusError, 0),
    ("status", {"status": 500, "billed": True}, call, openai.InternalServerError, 1),
    ("failed", {"status": 500}, call, openai.InternalServerError, 0),
    ("drop_before", {}, call, openai.APIConnectionError, 0),
    ("drop_after", {}, call, openai.APIConnectionError, 1),
    ("hang", {"seconds": 0.05}, call, openai.APIConnectionError, 1),
    ("cut_body", {}, call, openai.APIConnectionError, 1),
    ("html", {"status": 502}, call, openai.InternalServerError, 0),
    ("html", {"status": 504, "billed": True}, call, openai.InternalServerError, 1),
    ("empty", {}, call, json.JSONDecodeError, 1),
    ("length", {}, parse, openai.LengthFinishReasonError, 1),
    ("content_filter", {}, parse, openai.ContentFilterFinishReasonError, 1),
    ("broken_json", {}, parse, ValidationError, 1),
]

ANSWERING: list[tuple[str, dict[str, Any], Callable[[Any], bool]]] = [
    ("drip", {"seconds": 0.1}, lambda answer: "Bern" in content_of(answer)),
    ("slow", {"seconds": 0.05}, lambda answer: "Bern" in content_of(answer)),
    ("no_choices", {}, lambda answer: answer.choices == []),
    ("null_usage", {}, lambda answer: answer.usage is None and "Bern" in content_of(answer)),
    ("refusal", {}, lambda answer: answer.choices[0].message.refusal.startswith("I'm sorry")),
    ("content_filter", {}, lambda answer: answer.choices[0].finish_reason == "content_filter"),
    ("length", {}, lambda answer: answer.choices[0].finish_reason == "length"),
    ("broken_json", {}, lambda answer: answer.choices[0].finish_reason == "stop"),
    ("empty_content", {}, lambda answer: content_of(answer) == ""),
    ("html", {"status": 200}, lambda answer: isinstance(answer, str) and "<html>" in answer),
]


@pytest.mark.parametrize(("kind", "fault", "ask", "error", "generations"), RAISING)
def test_a_fault_raises_in_the_sdk_and_bills_what_it_says(
    box: SandboxClient,
    sdk: openai.OpenAI,
    kind: str,
    fault: dict[str, Any],
    ask: Callable[[openai.OpenAI], Any],
    error: type[Exception],
    generations: int,
) -> None:
    strike(box, kind, **fault)
    with pytest.raises(error):
        ask(sdk)
    assert billed(box) == generations
    assert box.truth()["faults"] == {kind: 1}
    assert box.truth()["creates_by_attempt_id"] == {"attempt-1": 1}
    call(sdk)
    assert billed(box) == generations + 1, "the rule was for one request only"


@pytest.mark.parametrize(("kind", "fault", "holds"), ANSWERING)
def test_a_fault_that_answers_looks_like_this(
    box: SandboxClient,
    sdk: openai.OpenAI,
    kind: str,
    fault: dict[str, Any],
    holds: Callable[[Any], bool],
) -> None:
    strike(box, kind, **fault)
    assert holds(call(sdk))
    assert box.truth()["faults"] == {kind: 1}


def test_every_kind_of_fault_is_tried_here() -> None:
    assert {kind for kind, *_ in [*RAISING, *ANSWERING]} == set(FaultKind)


WHOLE_IN_STORE = ["drop_after", "hang", "cut_body", "empty", "no_choices", "null_usage", "drip"]


@pytest.mark.parametrize("kind", WHOLE_IN_STORE)
def test_what_delivery_spoilt_is_whole_in_the_store(
    box: SandboxClient, sdk: openai.OpenAI, kind: str
) -> None:
    strike(box, kind, seconds=0.05)
    try:
        call(sdk)
    except (openai.APIConnectionError, json.JSONDecodeError):
        assert kind in {"drop_after", "hang", "cut_body", "empty"}
    found = sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data
    assert len(found) == 1
    assert found[0].usage is not None
    Article.model_validate_json(content_of(found[0]))


@pytest.mark.parametrize(
    ("kind", "finish_reason"), [("length", "length"), ("content_filter", "content_filter")]
)
def test_what_the_model_spoilt_is_spoilt_in_the_store(
    box: SandboxClient, sdk: openai.OpenAI, kind: str, finish_reason: str
) -> None:
    strike(box, kind)
    answered = call(sdk)
    found = sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data[0]
    assert found.choices[0].finish_reason == finish_reason
    assert content_of(found) == content_of(answered)
    assert box.truth()["generations"][0]["fault"] == kind


def test_what_was_dropped_before_generating_is_nowhere(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(box, "drop_before")
    with pytest.raises(openai.APIConnectionError) as caught:
        call(sdk)
    assert isinstance(caught.value.__cause__, httpx2.RemoteProtocolError)
    assert sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data == []


def test_an_error_carries_the_words_and_headers_of_the_plan(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(
        box,
        "status",
        status=429,
        type="insufficient_quota",
        code="credit_balance_exhausted",
        message="You have run out of credits.",
        headers={"retry-after": "17", "x-should-retry": "false"},
    )
    with pytest.raises(openai.RateLimitError) as caught:
        call(sdk)
    assert caught.value.type == "insufficient_quota"
    assert caught.value.code == "credit_balance_exhausted"
    assert "out of credits" in caught.value.message
    assert caught.value.response.headers["retry-after"] == "17"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.request_id is not None


def test_a_proxys_page_has_no_envelope(box: SandboxClient, sdk: openai.OpenAI) -> None:
    strike(box, "html", status=503, headers={"server": "edge"})
    with pytest.raises(openai.InternalServerError) as caught:
        call(sdk)
    assert (caught.value.type, caught.value.code) == (None, None)
    assert caught.value.response.headers["content-type"] == "text/html"
    assert caught.value.response.headers["server"] == "edge"


def test_an_empty_answer_is_a_success_without_a_body(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(box, "empty")
    answer = raw(sdk)
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_hanging_call_is_billed_and_runs_into_the_clients_timeout(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(box, "hang")
    with pytest.raises(openai.APITimeoutError):
        call(sdk.with_options(timeout=0.2))
    assert billed(box) == 1
    wait_until(lambda: box.health()["in_flight"] == 0)


def test_a_dripping_body_outlasts_a_timeout_per_read(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(box, "drip", seconds=3.0)
    assert "Bern" in content_of(call(sdk.with_options(timeout=1.5)))


def test_half_a_body_is_half_of_the_announced(box: SandboxClient) -> None:
    strike(box, "cut_body")
    request = raw_request(json.dumps(body_of()).encode())
    head, _, body = exchange(box, request + request).partition(b"\r\n\r\n")
    (length,) = [
        int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length")
    ]
    assert len(body) == length // 2


def test_slowness_is_part_of_the_noted_latency(box: SandboxClient, sdk: openai.OpenAI) -> None:
    strike(box, "slow", seconds=0.25)
    call(sdk)
    assert box.truth()["generations"][0]["latency_s"] == 0.25


@pytest.mark.parametrize("operation", ["list", "retrieve"])
@pytest.mark.parametrize("kind", ["status", "html", "drop_before"])
def test_a_look_up_can_fail_as_well(
    box: SandboxClient, sdk: openai.OpenAI, operation: str, kind: str
) -> None:
    created = call(sdk)
    strike(box, kind, match={"operation": operation})
    asking: dict[str, Callable[[], Any]] = {
        "list": lambda: sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}),
        "retrieve": lambda: sdk.chat.completions.retrieve(created.id),
    }
    with pytest.raises((openai.InternalServerError, openai.APIConnectionError)):
        asking[operation]()
    assert sdk.chat.completions.retrieve(created.id).id == created.id
    assert len(sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data) == 1


def test_a_rule_can_pick_one_page_by_its_facts(box: SandboxClient, sdk: openai.OpenAI) -> None:
    strike(box, "refusal", match={"prompt_contains": "Reykjav"}, times=9)
    assert call(sdk).choices[0].message.refusal is None
    icelandic = {"Name": "Iceland", "Capital": "Reykjavík"}
    assert create(sdk, facts=icelandic).choices[0].message.refusal is not None


def test_a_new_plan_counts_from_the_beginning(box: SandboxClient, sdk: openai.OpenAI) -> None:
    for _ in range(2):
        strike(box, "drop_before", match={"nth": 2})
        call(sdk)
        with pytest.raises(openai.APIConnectionError):
            call(sdk)
    assert box.truth()["faults"] == {"drop_before": 2}


def test_refused_requests_use_up_no_fault(box: SandboxClient, sdk: openai.OpenAI) -> None:
    strike(box, "drop_before", match={"nth": 1})
    with pytest.raises(openai.NotFoundError):
        create(sdk, model="nowhere")
    with pytest.raises(openai.APIConnectionError):
        call(sdk)
