"""Against aimock: error envelopes to the letter, and a journal that shows every header."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.llm.samples import KEY, PROMPT, TEXT, request
from content_pipeline_tests.partners.aimock import Aimock
from content_pipeline_tests.partners.calls import failure_of, reading_of
from content_pipeline_tests.partners.conftest import MakeModel

INVALID = "invalid_request_error"
OWN_WORDS = "canary words of the provider"

ENVELOPES = [
    (400, INVALID, "context_length_exceeded", FailureClass.REQUEST),
    (400, INVALID, "invalid_json_schema", FailureClass.REQUEST),
    (400, INVALID, "unsupported_parameter", FailureClass.REQUEST),
    (400, INVALID, "content_policy_violation", FailureClass.POLICY),
    (400, INVALID, "invalid_prompt", FailureClass.POLICY),
    (400, INVALID, "sexual_content_policy_violation", FailureClass.POLICY),
    (400, "image_generation_user_error", "moderation_blocked", FailureClass.POLICY),
    (401, INVALID, "invalid_api_key", FailureClass.AUTH),
    (401, INVALID, None, FailureClass.AUTH),
    (402, "billing_error", None, FailureClass.QUOTA),
    (403, "request_forbidden", "unsupported_country_region_territory", FailureClass.AUTH),
    (403, INVALID, "ip_not_authorized", FailureClass.AUTH),
    (404, INVALID, "model_not_found", FailureClass.REQUEST),
    (404, None, "DeploymentNotFound", FailureClass.REQUEST),
    (409, None, "conversation_locked", FailureClass.UNCERTAIN),
    (429, "requests", "rate_limit_exceeded", FailureClass.THROTTLED),
    (429, "tokens", "rate_limit_exceeded", FailureClass.THROTTLED),
    (429, "rate_limit_error", None, FailureClass.THROTTLED),
    (429, "insufficient_quota", "insufficient_quota", FailureClass.QUOTA),
    (429, "insufficient_quota", "credit_balance_exhausted", FailureClass.QUOTA),
    (429, "insufficient_quota", "organization_usage_limit_exceeded", FailureClass.QUOTA),
    (429, "insufficient_quota", "a_code_of_next_year", FailureClass.QUOTA),
    (429, "budget_exceeded", "400", FailureClass.QUOTA),
    (500, "server_error", None, FailureClass.TRANSIENT),
    (503, "service_unavailable_error", "server_is_overloaded", FailureClass.THROTTLED),
    (503, "server_error", "slow_down", FailureClass.THROTTLED),
    (529, "overloaded_error", None, FailureClass.THROTTLED),
]


def only_request(aimock: Aimock) -> dict[str, Any]:
    """The one request in its journal, which must be the first try of the SDK."""
    (entry,) = aimock.journal()
    assert (entry["method"], entry["path"]) == ("POST", "/v1/chat/completions")
    assert entry["headers"]["x-stainless-retry-count"] == "0"
    return entry


def envelope(kind: str | None, code: str | None, message: str = OWN_WORDS) -> dict[str, Any]:
    named = {"message": message, "type": kind, "code": code}
    return {"error": {name: value for name, value in named.items() if value is not None}}


# --- what is sent ---------------------------------------------------------------------------------


def test_every_call_is_one_post_under_its_own_ids(aimock: Aimock, make_model: MakeModel) -> None:
    aimock.answer_with({"content": TEXT})
    model = make_model(aimock.base_url)
    ids = [f"att-{number}" for number in range(5)]
    for attempt_id in ids:
        model.send(request(attempt_id=attempt_id))
    headers = [entry["headers"] for entry in aimock.journal()]
    assert [each["idempotency-key"] for each in headers] == ids
    assert [each["x-client-request-id"] for each in headers] == ids
    assert {each["x-stainless-retry-count"] for each in headers} == {"0"}


def test_no_key_and_no_header_of_the_environment_is_in_anothers_journal(
    aimock: Aimock, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Foreign: foreign")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-foreign")
    aimock.answer_with({"content": TEXT})
    make_model(aimock.base_url).send(request())
    entry = only_request(aimock)
    assert entry["headers"]["authorization"] == "[REDACTED]"
    assert KEY not in str(entry)
    assert "foreign" not in str(entry)


def test_compression_is_not_asked_for(aimock: Aimock, make_model: MakeModel) -> None:
    aimock.answer_with({"content": TEXT})
    make_model(aimock.base_url).send(request())
    assert only_request(aimock)["headers"]["accept-encoding"] == "identity"


def test_the_schema_arrives_as_structured_output(aimock: Aimock, make_model: MakeModel) -> None:
    aimock.answer_with({"content": TEXT}, match={"responseFormat": "json_schema"})
    reading = reading_of(make_model(aimock.base_url))
    wanted = only_request(aimock)["body"]["response_format"]["json_schema"]
    assert reading.text == TEXT
    assert wanted["strict"] is True
    assert wanted["schema"]["additionalProperties"] is False


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "kind", "code", "failure_class"), ENVELOPES)
def test_an_envelope_is_kept_to_the_letter_and_decides_the_class(
    aimock: Aimock,
    make_model: MakeModel,
    status: int,
    kind: str | None,
    code: str | None,
    failure_class: FailureClass,
) -> None:
    aimock.answer_with({**envelope(kind, code), "status": status})
    failure = failure_of(make_model(aimock.base_url))
    entry = only_request(aimock)
    assert failure.failure_class is failure_class
    assert failure.code == code
    assert failure.type == (kind or "server_error")  # what aimock fills in
    assert failure.http_status == entry["response"]["status"] == status
    assert failure.request_id == entry["headers"]["x-request-id"]
    assert OWN_WORDS not in failure.message


def test_one_call_beyond_the_whole_limit_is_not_taken_for_a_busy_account(
    aimock: Aimock, make_model: MakeModel
) -> None:
    words = "Request too large for gpt-5.2 on tokens per min (TPM): Limit 30000, Requested 60000."
    aimock.answer_with({**envelope("tokens", "rate_limit_exceeded", words), "status": 429})
    failure = failure_of(make_model(aimock.base_url))
    only_request(aimock)
    assert failure.failure_class is FailureClass.REQUEST


@pytest.mark.parametrize("seconds", [1, 60, 121, 86_400])
def test_the_announced_wait_is_kept_with_the_refusal(
    aimock: Aimock, make_model: MakeModel, seconds: int
) -> None:
    refusal = {**envelope("requests", "rate_limit_exceeded"), "status": 429}
    aimock.answer_with({**refusal, "retryAfter": seconds})
    failure = failure_of(make_model(aimock.base_url))
    only_request(aimock)
    assert failure.retry_after_s == seconds


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_refusal_is_not_repeated_although_the_next_call_would_succeed(
    aimock: Aimock, make_model: MakeModel, status: int
) -> None:
    aimock.answer_with({**envelope(None, None), "status": status}, match={"sequenceIndex": 0})
    aimock.answer_with({"content": TEXT})
    model = make_model(aimock.base_url)
    failure_of(model, attempt_id="att-1")
    assert reading_of(model, attempt_id="att-2").text == TEXT
    journal = aimock.journal()
    assert [entry["response"]["status"] for entry in journal] == [status, 200]
    assert [entry["headers"]["idempotency-key"] for entry in journal] == ["att-1", "att-2"]


# --- answers that are none ------------------------------------------------------------------------

CHAOS = [
    ("disconnectRate", FailureClass.UNCERTAIN, None),
    ("malformedRate", FailureClass.UNCERTAIN, 200),
    ("dropRate", FailureClass.TRANSIENT, 500),
    ("rateLimitRate", FailureClass.THROTTLED, 429),
]


@pytest.mark.parametrize(("chaos", "failure_class", "status"), CHAOS)
def test_chaos_is_one_request_and_one_class(
    aimock: Aimock,
    make_model: MakeModel,
    chaos: str,
    failure_class: FailureClass,
    status: int | None,
) -> None:
    aimock.answer_with({"content": TEXT}, chaos={chaos: 1})
    failure = failure_of(make_model(aimock.base_url))
    assert only_request(aimock)["response"]["chaosAction"] == chaos.removesuffix("Rate")
    assert failure.failure_class is failure_class
    assert failure.http_status == status


def test_an_answer_that_comes_too_late_is_not_asked_for_again(
    aimock: Aimock, make_model: MakeModel
) -> None:
    aimock.answer_with({"content": TEXT}, match={"userMessage": "late"}, chaos={"latencyMs": 1500})
    aimock.answer_with({"content": TEXT})
    model = make_model(aimock.base_url)
    failure = failure_of(model, attempt_id="att-late", user="late", deadline_s=0.6)
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert reading_of(model, attempt_id="att-next").text == TEXT
    # It journals no call whose client has left; a second try would be there.
    assert [entry["headers"]["idempotency-key"] for entry in aimock.journal()] == ["att-next"]


ERRORS_IN_A_200: list[tuple[Mapping[str, Any], FailureClass]] = [
    (envelope("insufficient_quota", "a_code_of_next_year"), FailureClass.QUOTA),
    (envelope("tokens", "rate_limit_exceeded"), FailureClass.THROTTLED),
    (envelope(INVALID, "content_filter"), FailureClass.POLICY),
    (envelope("server_error", "server_error"), FailureClass.UNCERTAIN),
    (envelope("server_error", "502"), FailureClass.UNCERTAIN),
    (envelope("server_error", "429"), FailureClass.THROTTLED),
]


@pytest.mark.parametrize(("document", "failure_class"), ERRORS_IN_A_200)
def test_an_error_inside_a_200_is_no_success(
    aimock: Aimock,
    make_model: MakeModel,
    document: Mapping[str, Any],
    failure_class: FailureClass,
) -> None:
    aimock.answer_with({**document, "status": 200})
    failure = failure_of(make_model(aimock.base_url))
    assert only_request(aimock)["response"]["status"] == 200
    assert failure.failure_class is failure_class


UNUSABLE = [
    ({"content": "part", "finishReason": "length"}, FailureClass.BAD_OUTPUT),
    ({"content": "part", "finishReason": "content_filter"}, FailureClass.POLICY),
    ({"toolCalls": [{"name": "publish", "arguments": "{}"}]}, FailureClass.BAD_OUTPUT),
]


@pytest.mark.parametrize(("response", "failure_class"), UNUSABLE)
def test_an_unusable_answer_was_paid_for_once(
    aimock: Aimock,
    make_model: MakeModel,
    response: Mapping[str, Any],
    failure_class: FailureClass,
) -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340}
    aimock.answer_with({**response, "usage": usage})
    reading = reading_of(make_model(aimock.base_url))
    only_request(aimock)
    assert reading.failure is not None
    assert reading.failure.failure_class is failure_class
    assert reading.usage is not None
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == (300, 40)


def test_what_the_answer_says_of_itself_is_kept(aimock: Aimock, make_model: MakeModel) -> None:
    aimock.answer_with(
        {
            "content": TEXT,
            "id": "chatcmpl-canary",
            "model": "gpt-5.2-2025-12-11",
            "usage": {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200},
        }
    )
    reading = reading_of(make_model(aimock.base_url))
    entry = only_request(aimock)
    assert reading.text == TEXT
    assert reading.response_id == "chatcmpl-canary"
    assert reading.model == "gpt-5.2-2025-12-11"
    assert reading.request_id == entry["headers"]["x-request-id"]
    assert reading.usage is not None
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == (900, 300)


def test_a_server_without_a_list_of_completions_says_neither_present_nor_absent(
    aimock: Aimock, make_model: MakeModel
) -> None:
    found = make_model(aimock.base_url).look_up("att-0001")
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert not [entry for entry in aimock.journal() if entry["method"] == "POST"]


def test_a_request_without_an_answer_of_its_own_is_no_success(
    aimock: Aimock, make_model: MakeModel
) -> None:
    failure = failure_of(make_model(aimock.base_url))
    only_request(aimock)
    assert failure.failure_class is FailureClass.REQUEST
    assert re.fullmatch(r"[a-z_]+", failure.code or "")
    assert PROMPT not in failure.message
