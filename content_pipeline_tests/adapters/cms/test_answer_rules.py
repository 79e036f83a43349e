"""The rules that hold for any service, and how the first that matches is found."""

from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.answer_rules import (
    ANY_SERVICE,
    Rule,
    failure_by,
    on,
    rule,
    safe_code,
)
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ASK = Call(doing="looking", method="GET", path="/")
WRITE = Call(doing="writing", method="PUT", path="/")


def failure(
    status: int,
    *codes: str | None,
    call: Call = WRITE,
    rules: tuple[Rule, ...] = ANY_SERVICE,
    **headers: str,
) -> Failure:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = Answer(status=status, headers=named, body=b"")
    return failure_by(
        rules, answer, call, codes=codes, told="without a code", service="The CMS", now=NOW
    )


def test_every_status_has_a_class_and_a_question_is_never_uncertain() -> None:
    for status in range(100, 600):
        assert failure(status).http_status == status
        assert failure(status, call=ASK).failure_class is not FailureClass.UNCERTAIN


@pytest.mark.parametrize("status", [100, 200, 201, 204, 408, 499, 500, 502, 503, 504, 520, 599])
def test_what_may_have_taken_effect_is_uncertain(status: int) -> None:
    assert failure(status).failure_class is FailureClass.UNCERTAIN
    assert failure(status, call=ASK).failure_class is FailureClass.TRANSIENT


def test_the_first_rule_that_matches_decides() -> None:
    rules = (
        rule(FailureClass.TERMINAL, "both", statuses=on(400), codes=frozenset({"a"})),
        rule(FailureClass.QUOTA, "code", codes=frozenset({"a", "b"})),
        *ANY_SERVICE,
    )
    assert failure(400, "a", rules=rules).failure_class is FailureClass.TERMINAL
    assert failure(401, "a", rules=rules).failure_class is FailureClass.QUOTA
    assert failure(500, None, "b", rules=rules).failure_class is FailureClass.QUOTA
    assert failure(401, "c", rules=rules).failure_class is FailureClass.AUTH


def test_maintenance_is_told_by_an_announced_wait_alone() -> None:
    told = failure(503, retry_after="30")
    assert (told.failure_class, told.retry_after_s) == (FailureClass.THROTTLED, 30)
    assert failure(503, retry_after="soon").failure_class is FailureClass.UNCERTAIN


def test_a_message_says_who_what_and_the_first_code() -> None:
    assert failure(400, "a", "b").message.startswith("The CMS, writing: answered HTTP 400 a: ")
    assert failure(400).message.startswith("The CMS, writing: answered HTTP 400 without a code: ")
    assert failure(400, "a", "b").code == "a"
    assert "something else than asked for" in failure(200).message


@pytest.mark.parametrize("value", ["a", "rest_no_route", "ROUTE-NOT-FOUND", "E11000", "x" * 64])
def test_a_code_is_passed_on(value: str) -> None:
    assert safe_code(value) == value


@pytest.mark.parametrize("value", ["", "two words", "é", "a" * 65, "a:b", "<b>", None, 3, [], "_"])
def test_what_may_be_a_text_or_a_secret_is_no_code(value: object) -> None:
    assert safe_code(value) is None
