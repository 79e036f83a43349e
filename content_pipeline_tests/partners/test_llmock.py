"""Against llmock: one send is one request in its journal, and every fault has its class.

Its verdict even passes a client that sends a call without credit three times, so requests are
counted in its journal.
"""

from pathlib import Path
from typing import Any

import pytest

from content_pipeline.core.article import NotAnArticle, parse_article
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.llm.samples import PROMPT, request
from content_pipeline_tests.partners import llmock as llmock_server
from content_pipeline_tests.partners.calls import failure_of, reading_of
from content_pipeline_tests.partners.conftest import CONTEXT_TOKENS, MakeModel
from content_pipeline_tests.partners.llmock import Llmock

SHORT_S = 0.6
"""A deadline well before the end of the stall."""
STALL_S = 1.5

DAY_S = 86_400.0


def only_request(llmock: Llmock) -> dict[str, Any]:
    """The one request it served; its verdict and the SDK itself must agree that there was one."""
    (served,) = llmock.requests()
    verdict = llmock.verdict()
    assert (verdict["calls"], verdict["attempts"]) == (1, 1)
    assert served["sdk_retry_count"] == 0
    assert (served["method"], served["path"]) == ("POST", "/v1/chat/completions")
    return served


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["openai", "generic", "llama_cpp"])
def test_an_answer_that_fits_the_schema_is_an_article(
    llmock: Llmock, make_model: MakeModel, profile: str
) -> None:
    reading = reading_of(make_model(llmock.base_url, profile=profile))
    served = only_request(llmock)
    assert reading.failure is None
    assert parse_article(reading.text or "").sections
    assert reading.model == served["model"] == "gpt-5.2"
    assert reading.usage is not None
    assert reading.usage.input_tokens > 0
    assert reading.usage.output_tokens > 0
    assert llmock.findings() == set()


def test_what_it_received_is_what_was_asked(llmock: Llmock, make_model: MakeModel) -> None:
    make_model(llmock.base_url).send(request())
    body = only_request(llmock)["body"]
    assert body["messages"][1] == {"role": "user", "content": PROMPT}
    assert body["metadata"] == {"attempt_id": "att-0001", "page_job_id": "job-0001"}
    assert "stream" not in body
    assert "n" not in body


UNUSABLE = [
    ({"text": "{", "finish_reason": "length"}, FailureClass.BAD_OUTPUT, "length"),
    ({"text": '{"title": "whole"}', "finish_reason": "length"}, FailureClass.BAD_OUTPUT, "length"),
    ({"text": "", "finish_reason": "content_filter"}, FailureClass.POLICY, "content_filter"),
    ({"text": "part", "finish_reason": "content_filter"}, FailureClass.POLICY, "content_filter"),
    ({"text": ""}, FailureClass.BAD_OUTPUT, "stop"),
    ({"text": " \n"}, FailureClass.BAD_OUTPUT, "stop"),
    ({"text": "part", "finish_reason": "steered"}, FailureClass.BAD_OUTPUT, "steered"),
    ({"tool_calls": [{"name": "publish"}]}, FailureClass.BAD_OUTPUT, "tool_calls"),
]


@pytest.mark.parametrize(("reply", "failure_class", "finish"), UNUSABLE)
def test_an_unusable_answer_keeps_its_usage_because_it_was_paid(
    llmock: Llmock,
    make_model: MakeModel,
    reply: dict[str, Any],
    failure_class: FailureClass,
    finish: str,
) -> None:
    llmock.script({"type": "reply", "times": None, **reply})
    reading = reading_of(make_model(llmock.base_url))
    only_request(llmock)
    assert reading.failure is not None
    assert reading.failure.failure_class is failure_class
    assert reading.finish_reason == finish
    assert reading.text is None
    assert reading.usage is not None


@pytest.mark.parametrize(
    "text", ['{"title": "cut', "I'm sorry, I cannot write that.", "```json\n{}\n```", "[]", "{}"]
)
def test_a_finished_answer_that_is_no_article_is_refused_by_its_reader(
    llmock: Llmock, make_model: MakeModel, text: str
) -> None:
    llmock.script({"type": "reply", "text": text, "times": None})
    reading = reading_of(make_model(llmock.base_url))
    only_request(llmock)
    assert reading.text == text
    assert reading.usage is not None
    with pytest.raises(NotAnArticle):
        parse_article(text)


# --- refusals -------------------------------------------------------------------------------------

STATUSES = [
    (400, FailureClass.REQUEST),
    (401, FailureClass.AUTH),
    (402, FailureClass.QUOTA),
    (403, FailureClass.AUTH),
    (404, FailureClass.REQUEST),
    (405, FailureClass.REQUEST),
    (408, FailureClass.UNCERTAIN),
    (409, FailureClass.UNCERTAIN),
    (413, FailureClass.REQUEST),
    (415, FailureClass.REQUEST),
    (422, FailureClass.REQUEST),
    (429, FailureClass.THROTTLED),
    (500, FailureClass.TRANSIENT),
    (501, FailureClass.UNCERTAIN),
    (502, FailureClass.UNCERTAIN),
    (503, FailureClass.THROTTLED),
    (504, FailureClass.UNCERTAIN),
    (529, FailureClass.THROTTLED),
]


@pytest.mark.parametrize(("status", "failure_class"), STATUSES)
def test_a_refusal_is_classified_after_one_request(
    llmock: Llmock, make_model: MakeModel, status: int, failure_class: FailureClass
) -> None:
    llmock.script({"type": "fail", "status": status, "times": None})
    failure = failure_of(make_model(llmock.base_url))
    assert only_request(llmock)["status"] == status
    assert failure.failure_class is failure_class
    assert failure.http_status == status
    assert failure.code is not None
    assert failure.type is not None


CODES = [
    ("insufficient_quota", FailureClass.QUOTA),
    ("credit_balance_exhausted", FailureClass.QUOTA),
    ("project_spend_limit_exceeded", FailureClass.QUOTA),
    ("billing_not_active", FailureClass.QUOTA),
    ("rate_limit_exceeded", FailureClass.THROTTLED),
    ("slow_down", FailureClass.THROTTLED),
    ("a_code_of_next_year", FailureClass.THROTTLED),
]


@pytest.mark.parametrize(("code", "failure_class"), CODES)
def test_an_empty_account_behind_a_429_is_asked_once_and_never_mistaken_for_a_busy_one(
    llmock: Llmock, make_model: MakeModel, code: str, failure_class: FailureClass
) -> None:
    llmock.script({"type": "fail", "status": 429, "code": code, "times": None})
    failure = failure_of(make_model(llmock.base_url))
    only_request(llmock)
    assert failure.failure_class is failure_class
    assert failure.code == code
    assert failure.type == "rate_limit_error"


WAITS = [
    pytest.param({"retry_after": 7}, 7.0, id="whole seconds"),
    pytest.param({"retry_after": 0.25}, 0.25, id="milliseconds beside the rounded second"),
    pytest.param({"retry_after": 61}, 61.0, id="longer than the SDK once believed"),
    pytest.param({"retry_after": 3600}, 3600.0, id="longer than the SDK believes now"),
    pytest.param({"retry_after": 90_000}, DAY_S, id="more than a day"),
    pytest.param({"retry_after": 1e30}, DAY_S, id="for ever"),
    pytest.param({"retry_after": 0}, None, id="zero"),
    pytest.param({}, 1.0, id="the server's own default"),
]


@pytest.mark.parametrize(("announced", "wait_s"), WAITS)
@pytest.mark.parametrize("status", [429, 503])
def test_an_announced_wait_is_passed_on_and_not_waited_for(
    llmock: Llmock,
    make_model: MakeModel,
    status: int,
    announced: dict[str, float],
    wait_s: float | None,
) -> None:
    llmock.script({"type": "fail", "status": status, "times": None, **announced})
    failure = failure_of(make_model(llmock.base_url))
    only_request(llmock)
    assert failure.failure_class is FailureClass.THROTTLED
    assert failure.retry_after_s == wait_s


def test_a_real_limiter_lets_one_call_through_and_tells_the_next_how_long_to_wait(
    tmp_path: Path, make_model: MakeModel
) -> None:
    with llmock_server.serving(tmp_path, "--rpm", 1) as limited:
        model = make_model(limited.base_url)
        first = model.send(request(attempt_id="att-1"))
        failure = failure_of(model, attempt_id="att-2")
        served = limited.requests()
    assert [each["status"] for each in served] == [200, 429]
    assert first.headers["x-ratelimit-limit-requests"] == "1"
    assert failure.failure_class is FailureClass.THROTTLED
    assert failure.code == "rate_limit_exceeded"
    assert failure.retry_after_s == pytest.approx(served[1]["retry_after"], abs=1)
    assert 0 < (failure.retry_after_s or 0) <= 60


def test_a_prompt_beyond_the_models_window_is_refused_once_and_for_all(
    llmock: Llmock, make_model: MakeModel
) -> None:
    failure = failure_of(make_model(llmock.base_url), user="tower " * CONTEXT_TOKENS)
    only_request(llmock)
    assert failure.failure_class is FailureClass.REQUEST
    assert failure.code == "context_length_exceeded"
    assert "tower" not in failure.message


# --- silence --------------------------------------------------------------------------------------


def test_a_stalled_call_ends_at_our_deadline_while_the_server_completes_it(
    llmock: Llmock, make_model: MakeModel
) -> None:
    llmock.script({"type": "delay", "seconds": STALL_S, "times": None})
    failure = failure_of(make_model(llmock.base_url), deadline_s=SHORT_S)
    served = only_request(llmock)
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert "deadline" in failure.message
    # It answered into the void: a real provider would have billed this.
    assert (served["status"], served["completed"]) == (200, True)


def test_after_every_fault_the_same_client_works_on(llmock: Llmock, make_model: MakeModel) -> None:
    model = make_model(llmock.base_url)
    for status, _ in STATUSES:
        llmock.script({"type": "fail", "status": status})
        failure_of(model)
        assert reading_of(model).failure is None
    assert len(llmock.requests()) == 2 * len(STATUSES)


def test_a_server_without_a_list_of_completions_says_neither_present_nor_absent(
    llmock: Llmock, make_model: MakeModel
) -> None:
    found = make_model(llmock.base_url).look_up("att-0001")
    (served,) = llmock.requests()
    assert (served["method"], served["status"]) == ("GET", 405)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
