"""HTTP answers that are no completion: the codes first, then the status, else uncertain."""

import json
from typing import Any

import pytest

from content_pipeline.adapters.llm.envelope import envelope_in
from content_pipeline.adapters.llm.refusals import (
    ADVICE,
    CODES,
    classify_answer,
    classify_error_object,
)
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.llm.samples import NOW

HTML = b"<html><head><title>502 Bad Gateway</title></head></html>"


def answered(status: int, body: bytes | object, **headers: str) -> Failure:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify_answer(status, named, data, service="openai at host", now=NOW)


def error(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "free text", **fields}}


QUOTA_CODES = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "budget_exceeded",
]


@pytest.mark.parametrize("code", QUOTA_CODES)
@pytest.mark.parametrize("status", [400, 403, 429, 500])
def test_an_empty_account_is_recognised_by_its_code_behind_any_status(
    code: str, status: int
) -> None:
    failure = answered(status, error(code=code, type="rate_limit_error"))
    assert failure.failure_class is FailureClass.QUOTA


@pytest.mark.parametrize("code", [*QUOTA_CODES, "a_code_of_next_year", None])
def test_an_empty_account_is_recognised_by_its_type_behind_any_code(code: str | None) -> None:
    failure = answered(429, error(type="insufficient_quota", code=code))
    assert failure.failure_class is FailureClass.QUOTA


TABLE: list[tuple[int, bytes | object, FailureClass]] = [
    # throttled
    (429, error(type="requests", code="rate_limit_exceeded"), FailureClass.THROTTLED),
    (429, error(type="tokens", code="rate_limit_exceeded"), FailureClass.THROTTLED),
    (429, error(type="rate_limit_error"), FailureClass.THROTTLED),
    (429, error(code="slow_down"), FailureClass.THROTTLED),
    (429, error(code="resource_unavailable"), FailureClass.THROTTLED),
    (429, HTML, FailureClass.THROTTLED),
    (429, b"", FailureClass.THROTTLED),
    (503, error(code="slow_down"), FailureClass.THROTTLED),
    (503, error(code="server_is_overloaded"), FailureClass.THROTTLED),
    (503, error(type="service_unavailable_error"), FailureClass.THROTTLED),
    (503, error(code=503, type="unavailable_error"), FailureClass.THROTTLED),
    (529, error(type="overloaded_error"), FailureClass.THROTTLED),
    # a single request beyond the limit never succeeds
    (
        429,
        error(message="Request too large for gpt-5.2: Limit 30000, Requested 45000", type="tokens"),
        FailureClass.REQUEST,
    ),
    (
        429,
        error(message="Request too large for gpt-5.2", code="rate_limit_exceeded"),
        FailureClass.REQUEST,
    ),
    # quota and credentials
    (402, b"", FailureClass.QUOTA),
    (402, error(code=402), FailureClass.QUOTA),
    (401, error(code="invalid_api_key", type="invalid_request_error"), FailureClass.AUTH),
    (401, HTML, FailureClass.AUTH),
    (403, error(code="unsupported_country_region_territory"), FailureClass.AUTH),
    (403, error(type="permission_error"), FailureClass.AUTH),
    (403, HTML, FailureClass.AUTH),
    # policy
    (400, error(code="content_policy_violation"), FailureClass.POLICY),
    (400, error(code="sexual_content_policy_violation"), FailureClass.POLICY),
    (400, error(code="invalid_prompt", type="invalid_request_error"), FailureClass.POLICY),
    (400, error(code="content_filter", param="prompt"), FailureClass.POLICY),
    (
        400,
        error(code="BadRequest", innererror={"code": "ResponsibleAIPolicyViolation"}),
        FailureClass.POLICY,
    ),
    (403, error(code=403, metadata={"reasons": ["violence"]}), FailureClass.POLICY),
    (451, b"", FailureClass.POLICY),
    # the request
    (400, error(code="context_length_exceeded"), FailureClass.REQUEST),
    (400, error(type="invalid_request_error"), FailureClass.REQUEST),
    (400, error(code=400, type="exceed_context_size_error"), FailureClass.REQUEST),
    (400, {"object": "error", "message": "m", "code": 400}, FailureClass.REQUEST),
    (400, {"error": "only a text"}, FailureClass.REQUEST),
    (404, error(code="model_not_found"), FailureClass.REQUEST),
    (404, error(code="DeploymentNotFound"), FailureClass.REQUEST),
    (404, HTML, FailureClass.REQUEST),
    (405, b"", FailureClass.REQUEST),
    (413, HTML, FailureClass.REQUEST),
    (415, b"", FailureClass.REQUEST),
    (422, {"detail": [{"loc": ["body"]}]}, FailureClass.REQUEST),
    (301, b"", FailureClass.REQUEST),
    (308, b"", FailureClass.REQUEST),
    # the provider's own fault, in its own words
    (500, error(type="server_error"), FailureClass.TRANSIENT),
    (500, [error(code=500)], FailureClass.TRANSIENT),
    (
        500,
        {"object": "error", "message": "m", "type": "InternalServerError"},
        FailureClass.TRANSIENT,
    ),
    # somebody in between
    (500, HTML, FailureClass.UNCERTAIN),
    (500, b"", FailureClass.UNCERTAIN),
    (500, {"error": "Internal Server Error"}, FailureClass.UNCERTAIN),
    (500, {"message": "An unexpected error occurred"}, FailureClass.UNCERTAIN),
    (502, error(type="server_error"), FailureClass.UNCERTAIN),
    (503, HTML, FailureClass.UNCERTAIN),
    (504, error(), FailureClass.UNCERTAIN),
    *((status, HTML, FailureClass.UNCERTAIN) for status in range(520, 528)),
    (408, b"", FailureClass.UNCERTAIN),
    (409, error(code="conversation_locked"), FailureClass.UNCERTAIN),
    (499, b"", FailureClass.UNCERTAIN),
    (999, b"", FailureClass.UNCERTAIN),
]


@pytest.mark.parametrize(("status", "body", "failure_class"), TABLE)
def test_an_answer_is_classified(
    status: int, body: bytes | object, failure_class: FailureClass
) -> None:
    assert answered(status, body).failure_class is failure_class


def test_no_code_stands_in_two_classes() -> None:
    codes = [code for _, group in CODES for code in group]
    assert len(codes) == len(set(codes))
    assert all(code == code.lower() for code in codes)


def test_every_class_that_an_answer_can_get_comes_with_advice() -> None:
    reached = {failure_class for _, _, failure_class in TABLE}
    assert reached == ADVICE.keys()


def test_a_fault_of_the_provider_says_that_it_may_have_been_billed() -> None:
    assert "may have been billed" in answered(500, error(type="server_error")).message


def test_the_message_holds_status_type_and_code_and_no_text_of_the_provider() -> None:
    body = error(message="Incorrect API key provided: sk-abc", type="t_1", code="invalid_api_key")
    failure = answered(401, body, x_request_id="req_7")
    assert failure.message.startswith(
        "openai at host answered HTTP 401, type t_1, code invalid_api_key: "
    )
    assert "sk-abc" not in failure.message
    assert failure.request_id == "req_7"


@pytest.mark.parametrize(
    "code", ["sk-abcdef", "Incorrect API key", "a" * 200, "<script>", {"a": 1}, True, 10**40, ""]
)
def test_a_code_that_is_no_identifier_is_dropped(code: object) -> None:
    failure = answered(400, error(code=code, type=code))
    assert failure.code is None
    assert failure.type is None
    assert failure.failure_class is FailureClass.REQUEST


def test_a_number_as_code_is_kept_as_text() -> None:
    assert answered(400, error(code=400)).code == "400"


@pytest.mark.parametrize(
    ("body", "failure_class"),
    [
        (error(code="insufficient_quota"), FailureClass.QUOTA),
        (error(code=402), FailureClass.QUOTA),
        (error(code=429), FailureClass.THROTTLED),
        (error(code="rate_limit_exceeded"), FailureClass.THROTTLED),
        (error(code="invalid_prompt"), FailureClass.POLICY),
        (error(code=500), FailureClass.UNCERTAIN),
        (error(code="server_error"), FailureClass.UNCERTAIN),
        (error(), FailureClass.UNCERTAIN),
    ],
)
def test_an_error_object_inside_a_success_counts_only_when_its_code_is_known(
    body: object, failure_class: FailureClass
) -> None:
    envelope = envelope_in(body)
    assert envelope is not None
    failure = classify_error_object(envelope, status=200, headers={}, service="s", now=NOW)
    assert failure.failure_class is failure_class


@pytest.mark.parametrize(
    "document", [None, [], [1], "text", 3, {}, {"error": None}, {"error": "t"}, {"message": "m"}]
)
def test_other_json_is_no_error_object(document: object) -> None:
    assert envelope_in(document) is None


def test_a_deeply_nested_body_is_no_error_object_and_no_crash() -> None:
    assert answered(500, b"[" * 200_000).failure_class is FailureClass.UNCERTAIN
