"""The Responses API as the real SDK sees it: at once, in the background, stopped, and struck."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from content_pipeline.core.article import Article, parse_article
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.server import serving
from content_pipeline_tests.sandbox.asking import (
    SWITZERLAND,
    create,
    exchange,
    raw_request,
    respond,
    response_body_of,
    stored_as,
    wait_until,
)
from content_pipeline_tests.sandbox.conftest import INSTANT, MakeSdk

NEVER = INSTANT.model_copy(update={"latency_median_s": 600.0, "latency_sigma": 0.0})
"""A provider whose background responses stay at work for as long as any test takes."""


def billed(box: SandboxClient) -> int:
    return int(box.truth()["generations_by_attempt_id"].get("attempt-1", 0))


def ended(sdk: openai.OpenAI, response_id: str) -> Response:
    """The response once it has ended."""
    wait_until(lambda: sdk.responses.retrieve(response_id).status not in ("queued", "in_progress"))
    return sdk.responses.retrieve(response_id)


def strike(box: SandboxClient, kind: str, operation: str = "create", **fault: Any) -> None:
    rule = {"fault": {"kind": kind, **fault}, "match": {"operation": operation}, "times": 1}
    box.set_faults(FaultPlan.model_validate({"rules": [rule]}))


# --- waiting for the answer ---------------------------------------------------------------------


def test_an_answer_that_is_waited_for_is_an_article_of_the_facts(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    response = respond(sdk)
    assert (response.object, response.status) == ("response", "completed")
    assert response.id.startswith("resp_")
    assert (response.model, response.service_tier) == ("gpt-4.1-mini", "default")
    assert response.metadata == {"attempt_id": "attempt-1", "page_job_id": "page-job-1"}
    text = parse_article(response.output_text).plain_text()
    assert all(value in text for value in SWITZERLAND.values())
    assert billed(box) == 1


def test_the_sdk_parses_the_answer(sdk: openai.OpenAI) -> None:
    body = response_body_of()
    del body["text"]
    parsed = sdk.responses.parse(**body, text_format=Article).output_parsed
    assert isinstance(parsed, Article)


def test_usage_counts_what_the_journal_bills(sdk: openai.OpenAI, box: SandboxClient) -> None:
    usage = respond(sdk, model="gpt-5.2").usage
    (generation,) = box.truth()["generations"]
    assert usage is not None
    assert usage.output_tokens_details.reasoning_tokens == generation["reasoning_tokens"] > 0
    assert usage.input_tokens == generation["prompt_tokens"]
    assert usage.output_tokens == generation["completion_tokens"]
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens


def test_the_same_question_by_either_api_is_answered_and_billed_alike(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    chat = create(sdk, **stored_as("attempt-1")).choices[0].message.content
    assert respond(sdk).output_text == chat
    first, second = box.truth()["generations"]
    assert first["completion_tokens"] == second["completion_tokens"]


def test_an_answer_is_handed_out_again_by_its_id_and_listed_nowhere(sdk: openai.OpenAI) -> None:
    response = respond(sdk)
    assert sdk.responses.retrieve(response.id) == response
    assert sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data == []
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.retrieve(response.id)


def test_a_chat_completion_is_no_response(sdk: openai.OpenAI) -> None:
    completion = create(sdk, **stored_as("attempt-1"))
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(completion.id)


def test_what_was_not_to_be_stored_is_not_found(sdk: openai.OpenAI) -> None:
    response = respond(sdk, store=False)
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.retrieve(response.id)
    assert caught.value.type == "invalid_request_error"


def test_only_a_background_response_can_be_cancelled(sdk: openai.OpenAI) -> None:
    response = respond(sdk)
    with pytest.raises(openai.BadRequestError):
        sdk.responses.cancel(response.id)


# --- in the background --------------------------------------------------------------------------


def test_the_id_comes_at_once_and_nothing_is_billed_before_the_end(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    box.set_settings(NEVER)
    accepted = respond(sdk, background=True)
    assert (accepted.status, accepted.output, accepted.usage) == ("queued", [], None)
    assert sdk.responses.retrieve(accepted.id).status == "in_progress"
    assert billed(box) == 0


def test_it_completes_and_is_billed_once_whether_or_not_anybody_asks(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    accepted = respond(sdk, background=True)
    wait_until(lambda: billed(box) == 1)
    for _ in range(3):
        response = ended(sdk, accepted.id)
        assert response.status == "completed"
        assert "Bern" in response.output_text
    assert billed(box) == 1
    assert box.truth()["requests_by_operation"]["create"] == 1
    assert box.truth()["creates_by_attempt_id"] == {"attempt-1": 1}


def test_a_cancelled_response_ends_unbilled(sdk: openai.OpenAI, box: SandboxClient) -> None:
    box.set_settings(NEVER)
    accepted = respond(sdk, background=True)
    assert sdk.responses.cancel(accepted.id).status == "cancelled"
    assert sdk.responses.cancel(accepted.id).status == "cancelled"
    assert sdk.responses.retrieve(accepted.id).status == "cancelled"
    assert billed(box) == 0
    assert box.truth()["requests_by_operation"]["cancel"] == 2


def test_a_cancellation_that_comes_too_late_changes_nothing(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    accepted = respond(sdk, background=True)
    assert ended(sdk, accepted.id).status == "completed"
    assert sdk.responses.cancel(accepted.id).status == "completed"
    assert billed(box) == 1


def test_a_billed_response_survives_its_provider_and_an_unfinished_one_does_not(
    tmp_path: Path, make_sdk: MakeSdk
) -> None:
    with serving(INSTANT, folder=tmp_path) as box:
        sdk = make_sdk(box.base_url)
        done = respond(sdk, background=True)
        ended(sdk, done.id)
        box.set_settings(NEVER)
        lost = respond(sdk, background=True)
    with serving(INSTANT, folder=tmp_path) as box:
        sdk = make_sdk(box.base_url)
        assert sdk.responses.retrieve(done.id).status == "completed"
        with pytest.raises(openai.NotFoundError):
            sdk.responses.retrieve(lost.id)
        assert billed(box) == 1


def test_a_reset_stops_what_is_at_work(sdk: openai.OpenAI, box: SandboxClient) -> None:
    box.set_settings(NEVER)
    accepted = respond(sdk, background=True)
    box.reset()
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(accepted.id)


@pytest.mark.parametrize(
    "line",
    [
        "GET /v1/responses HTTP/1.1",
        "DELETE /v1/responses/resp_1 HTTP/1.1",
        "POST /v1/responses/resp_1 HTTP/1.1",
        "POST /v1/responses/resp_1/cancel/now HTTP/1.1",
    ],
)
def test_there_is_no_list_and_no_other_address(box: SandboxClient, line: str) -> None:
    answer = exchange(box, raw_request(b"{}", line=line))
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"Invalid URL" in answer


# --- faults -------------------------------------------------------------------------------------

MODELS_OWN: list[tuple[str, str, Any]] = [
    ("length", "incomplete", "max_output_tokens"),
    ("content_filter", "incomplete", "content_filter"),
    ("broken_json", "completed", None),
    ("empty_content", "completed", None),
    ("refusal", "completed", None),
]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(("kind", "status", "reason"), MODELS_OWN)
def test_a_failing_of_the_model_is_billed_and_kept(
    kind: str, status: str, reason: Any, background: bool, sdk: openai.OpenAI, box: SandboxClient
) -> None:
    strike(box, kind)
    response = ended(sdk, respond(sdk, background=background).id)
    assert response.status == status
    details = response.incomplete_details
    assert (details.reason if details else None) == reason
    part = response.output[-1].content[0]  # type: ignore[union-attr, index]
    assert part.type == ("refusal" if kind == "refusal" else "output_text")
    assert billed(box) == 1


LOST = ["drop_after", "cut_body", "hang", "html", "empty"]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("kind", LOST)
def test_a_lost_answer_is_billed_all_the_same(
    kind: str, background: bool, sdk: openai.OpenAI, box: SandboxClient
) -> None:
    strike(box, kind, status=502, billed=True, seconds=0.05)
    with pytest.raises((openai.OpenAIError, json.JSONDecodeError)):
        respond(sdk, background=background)
    wait_until(lambda: billed(box) == 1)


@pytest.mark.parametrize("kind", ["status", "drop_before", "html"])
def test_a_refused_response_is_not_billed(
    kind: str, sdk: openai.OpenAI, box: SandboxClient
) -> None:
    strike(box, kind)
    with pytest.raises(openai.OpenAIError):
        respond(sdk, background=True)
    assert billed(box) == 0
    assert box.truth()["faults"] == {kind: 1}


def test_an_answer_may_come_without_output_or_usage(sdk: openai.OpenAI, box: SandboxClient) -> None:
    strike(box, "no_choices")
    bare = respond(sdk)
    assert bare.output == []
    assert "Bern" in sdk.responses.retrieve(bare.id).output_text
    strike(box, "null_usage")
    uncounted = respond(sdk)
    assert uncounted.usage is None
    assert sdk.responses.retrieve(uncounted.id).usage is not None


def test_a_background_response_can_fail_with_a_code_and_unbilled(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    strike(box, "failed", code="rate_limit_exceeded", message="Too many tokens")
    response = ended(sdk, respond(sdk, background=True).id)
    assert (response.status, response.usage) == ("failed", None)
    assert response.error is not None
    assert (response.error.code, response.error.message) == (
        "rate_limit_exceeded",
        "Too many tokens",
    )
    assert billed(box) == 0


def test_what_is_not_in_the_background_fails_by_its_status(
    sdk: openai.OpenAI, box: SandboxClient
) -> None:
    for call in (respond, create):
        strike(box, "failed", status=500)
        with pytest.raises(openai.InternalServerError):
            call(sdk)
    assert box.truth()["generations"] == []


@pytest.mark.parametrize("operation", ["retrieve", "cancel"])
def test_a_question_about_a_response_can_fail_once(
    operation: str, sdk: openai.OpenAI, box: SandboxClient
) -> None:
    box.set_settings(NEVER)
    accepted = respond(sdk, background=True)
    strike(box, "status", operation, status=429)
    ask = sdk.responses.cancel if operation == "cancel" else sdk.responses.retrieve
    with pytest.raises(openai.RateLimitError):
        ask(accepted.id)
    assert ask(accepted.id).status in ("cancelled", "in_progress")
    assert box.truth()["requests_by_operation"][operation] == 2


def test_a_slow_response_is_accepted_as_fast_as_any(sdk: openai.OpenAI, box: SandboxClient) -> None:
    strike(box, "slow", seconds=600)
    accepted = respond(sdk, background=True)
    assert sdk.responses.retrieve(accepted.id).status == "in_progress"
    assert billed(box) == 0
