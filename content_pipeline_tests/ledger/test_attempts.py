"""Attempts: every try has a row from before the call, whatever comes of it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import RowMapping, update
from sqlalchemy.exc import IntegrityError

from content_pipeline.core.failures import EXPLANATIONS, Failure, FailureClass
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import RawResponse, Reading
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, spend
from content_pipeline.ledger.attempts import FailedTries
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import (
    AnswerSource,
    AttemptKind,
    attempt_responses,
    seconds_from_now,
)
from content_pipeline.ledger.schema import attempts as attempt_rows
from content_pipeline_tests.ledger.wanting import AMPLE, job_in, moved, rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
GENERATE, PUBLISH = AttemptKind.GENERATE, AttemptKind.PUBLISH

READING = Reading(
    text="{}",
    usage=Usage(
        input_tokens=100,
        cached_tokens=20,
        cache_write_tokens=5,
        output_tokens=50,
        reasoning_tokens=10,
        service_tier="default",
    ),
    model="gpt-5-mini-2026",
    response_id="chatcmpl-1",
    request_id="req_1",
    finish_reason="stop",
    failure=None,
)


FAILURE = Failure(failure_class=FailureClass.BAD_OUTPUT, message="m")


@pytest.fixture
def held(ledger: Ledger, site_name: str) -> tuple[PageJob, Lease]:
    wanted(ledger, site_name, rows_of(1))
    return job_in(ledger, site_name, S.GENERATING)


def opened(
    ledger: Ledger,
    job: PageJob,
    kind: AttemptKind = GENERATE,
    answer_within_s: float | None = None,
    api: str | None = None,
) -> str:
    """Open the next attempt of ``kind``."""
    with ledger.begin() as connection:
        return attempts.open_attempt(
            connection,
            job,
            kind,
            number=attempts.next_number(connection, job.page_job_id, kind),
            worker="worker",
            run_id="run",
            step="article",
            model="gpt-5-mini",
            api=api,
            answer_within_s=answer_within_s,
        )


def failed(ledger: Ledger, identifier: str, failure_class: FailureClass) -> None:
    failure = Failure(failure_class=failure_class, message="m")
    with ledger.begin() as connection:
        attempts.fail(connection, identifier, failure)


def row_of(ledger: Ledger, identifier: str) -> RowMapping:
    (row,) = rows_where(ledger, attempt_rows, attempt_id=identifier)
    return row


def test_an_intent_is_on_record_with_all_it_is_about(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    row = row_of(ledger, opened(ledger, job))
    assert (row["kind"], row["step"], row["number"], row["state"]) == (
        "generate",
        "article",
        1,
        "open",
    )
    assert (row["worker"], row["run_id"], row["model"]) == ("worker", "run", "gpt-5-mini")
    assert (row["generation_version"], row["input_hash"]) == ("v1", job.input_hash)
    assert (row["answer_by"], row["finished_at"], row["latency_s"]) == (None, None, None)


def test_the_id_of_an_attempt_is_derived_and_its_own(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    first = opened(ledger, job)
    assert first == attempts.attempt_id(job.page_job_id, GENERATE, 1)
    ids = {
        attempts.attempt_id(job_id, kind, number)
        for job_id in (job.page_job_id, "another")
        for kind in AttemptKind
        for number in (1, 2)
    }
    assert len(ids) == 12


def test_the_id_of_a_kept_answer_is_on_record_while_the_call_is_out(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job, api="responses")
    with ledger.begin() as connection:
        attempts.accept(connection, identifier, "resp_1")
        attempts.accept(connection, identifier, "resp_2")
        found = attempts.newest(connection, job.page_job_id, GENERATE)
    assert found is not None
    assert (found.api, found.kept_as) == ("responses", "resp_1")
    assert row_of(ledger, identifier)["state"] == "open"


def test_the_id_of_a_chat_completion_is_nothing_to_ask_by(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    for api in ("chat", None):
        identifier = opened(ledger, job, api=api)
        with ledger.begin() as connection:
            attempts.fail(connection, identifier, FAILURE, reading=READING)
            found = attempts.newest(connection, job.page_job_id, GENERATE)
        assert found is not None
        assert (found.api, found.kept_as) == ("chat", None)


def test_an_api_that_nobody_knows_is_refused(ledger: Ledger, held: tuple[PageJob, Lease]) -> None:
    job, _ = held
    with pytest.raises(IntegrityError, match="attempts_api"):
        opened(ledger, job, api="assistants")


def test_a_repeated_intent_is_refused(ledger: Ledger, held: tuple[PageJob, Lease]) -> None:
    job, _ = held
    opened(ledger, job)
    with pytest.raises(IntegrityError), ledger.begin() as connection:
        attempts.open_attempt(connection, job, GENERATE, number=1, worker="w", run_id=None)


def test_numbers_count_per_kind(ledger: Ledger, held: tuple[PageJob, Lease]) -> None:
    job, _ = held
    for number in (1, 2, 3):
        identifier = opened(ledger, job)
        assert row_of(ledger, identifier)["number"] == number
        failed(ledger, identifier, FailureClass.TRANSIENT)
    assert row_of(ledger, opened(ledger, job, PUBLISH))["number"] == 1


def test_the_last_moment_for_an_answer_is_told_as_seconds_from_now(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    with ledger.begin() as connection:
        assert attempts.newest(connection, job.page_job_id, GENERATE) is None
    identifier = opened(ledger, job, answer_within_s=60)
    with ledger.begin() as connection:
        found = attempts.newest(connection, job.page_job_id, GENERATE)
    assert found is not None
    assert (found.attempt_id, found.number, found.raw) == (identifier, 1, None)
    assert found.answer_by_s is not None
    assert 50 < found.answer_by_s <= 60
    failed(ledger, identifier, FailureClass.UNCERTAIN)
    opened(ledger, job, answer_within_s=-5)
    with ledger.begin() as connection:
        found = attempts.newest(connection, job.page_job_id, GENERATE)
    assert found is not None
    assert found.answer_by_s is not None
    assert found.answer_by_s <= -5


def test_a_raw_answer_is_kept_to_the_byte_and_once(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    raw = RawResponse(status=200, headers={"x-request-id": "r"}, body=b'{"a":"\xff\x00"}')
    other = RawResponse(status=200, headers={}, body=b"another")
    with ledger.begin() as connection:
        attempts.save_response(connection, identifier, raw)
        attempts.save_response(connection, identifier, other)
        found = attempts.newest(connection, job.page_job_id, GENERATE)
    assert found is not None
    assert found.raw == raw


def test_an_answer_that_was_looked_up_counts_before_the_unreadable_one(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    page = RawResponse(status=200, headers={}, body=b"<html>")
    stored = RawResponse(status=200, headers={}, body=b"{}")
    with ledger.begin() as connection:
        attempts.save_response(connection, identifier, page)
        attempts.save_response(connection, identifier, stored, AnswerSource.LOOK_UP)
        found = attempts.newest(connection, job.page_job_id, GENERATE)
    assert found is not None
    assert found.raw == stored
    kept = rows_where(ledger, attempt_responses, attempt_id=identifier)
    assert sorted(row["source"] for row in kept) == ["call", "look_up"]


def test_a_success_says_what_it_brought_and_what_it_used(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    with ledger.begin() as connection:
        attempts.succeed(
            connection, identifier, revision=3, output_hash="hash", reading=READING, recovered=True
        )
    row = row_of(ledger, identifier)
    assert (row["state"], row["revision"], row["output_hash"], row["recovered"]) == (
        "succeeded",
        3,
        "hash",
        True,
    )
    assert (row["request_id"], row["response_id"], row["model"]) == (
        "req_1",
        "chatcmpl-1",
        "gpt-5-mini-2026",
    )
    assert READING.usage is not None
    for name in ("input", "cached", "cache_write", "output", "reasoning"):
        assert row[f"{name}_tokens"] == getattr(READING.usage, f"{name}_tokens")
    assert row["finished_at"] >= row["started_at"]
    assert row["latency_s"] >= 0


def test_a_failure_is_kept_with_all_the_other_side_said(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    failure = Failure(
        failure_class=FailureClass.THROTTLED,
        message="slow down",
        code="rate_limit_exceeded",
        type="requests",
        http_status=429,
        request_id="req_2",
    )
    with ledger.begin() as connection:
        attempts.fail(connection, identifier, failure)
    row = row_of(ledger, identifier)
    assert row["state"] == "failed"
    for name, value in (
        ("class", "throttled"),
        ("message", "slow down"),
        ("explanation", EXPLANATIONS[FailureClass.THROTTLED]),
        ("code", "rate_limit_exceeded"),
        ("type", "requests"),
    ):
        assert row[f"failure_{name}"] == value
    assert (row["http_status"], row["request_id"], row["model"]) == (429, "req_2", "gpt-5-mini")


def test_a_useless_answer_keeps_its_tokens_and_its_request_id(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    failure = Failure(failure_class=FailureClass.BAD_OUTPUT, message="cut")
    with ledger.begin() as connection:
        attempts.fail(connection, identifier, failure, reading=READING)
    row = row_of(ledger, identifier)
    assert (row["failure_class"], row["output_tokens"], row["request_id"]) == (
        "bad_output",
        50,
        "req_1",
    )


def test_an_uncertain_attempt_that_succeeds_after_all_forgets_its_failure(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    identifier = opened(ledger, job)
    failure = Failure(failure_class=FailureClass.UNCERTAIN, message="lost")
    with ledger.begin() as connection:
        attempts.leave_uncertain(connection, identifier, failure)
    before = row_of(ledger, identifier)
    assert (before["state"], before["failure_class"]) == ("uncertain", "uncertain")
    with ledger.begin() as connection:
        attempts.succeed(connection, identifier, revision=1, output_hash="h", recovered=True)
    row = row_of(ledger, identifier)
    assert (row["state"], row["failure_class"], row["failure_message"]) == ("succeeded", None, None)
    assert row["latency_s"] == before["latency_s"]


def test_tries_are_counted_by_class_kind_and_epoch(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    for failure_class in (
        FailureClass.TRANSIENT,
        FailureClass.TRANSIENT,
        FailureClass.THROTTLED,
    ):
        failed(ledger, opened(ledger, job), failure_class)
    failed(ledger, opened(ledger, job, PUBLISH), FailureClass.TRANSIENT)
    lost = opened(ledger, job)
    with ledger.begin() as connection:
        failure = Failure(failure_class=FailureClass.TRANSIENT, message="m")
        attempts.leave_uncertain(connection, lost, failure)

    def count(kind: AttemptKind, failure_class: FailureClass) -> int:
        with ledger.begin() as connection:
            return attempts.failed_tries(connection, job, kind, failure_class).count

    assert count(GENERATE, FailureClass.TRANSIENT) == 3
    assert count(GENERATE, FailureClass.THROTTLED) == 1
    assert count(PUBLISH, FailureClass.TRANSIENT) == 1
    assert count(PUBLISH, FailureClass.QUOTA) == 0


def test_the_tries_of_an_earlier_epoch_do_not_count(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    failed(ledger, opened(ledger, job), FailureClass.TRANSIENT)
    with ledger.begin() as connection:
        tries = attempts.failed_tries(
            connection, replace(job, epoch=2), GENERATE, FailureClass.TRANSIENT
        )
    assert tries == FailedTries(count=0, since_s=0)


def test_how_long_a_class_has_failed_is_counted_from_its_first_try(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, _ = held
    for age_s in (50, 500, 5):
        identifier = opened(ledger, job)
        failed(ledger, identifier, FailureClass.TRANSIENT)
        with ledger.begin() as connection:
            connection.execute(
                update(attempt_rows)
                .where(attempt_rows.c.attempt_id == identifier)
                .values(finished_at=seconds_from_now(-age_s))
            )
    failed(ledger, opened(ledger, job), FailureClass.THROTTLED)
    with ledger.begin() as connection:
        long_ago = attempts.failed_tries(connection, job, GENERATE, FailureClass.TRANSIENT)
        just_now = attempts.failed_tries(connection, job, GENERATE, FailureClass.THROTTLED)
    assert (long_ago.count, just_now.count) == (3, 1)
    assert 500 <= long_ago.since_s < 560
    assert 0 <= just_now.since_s < 60


def test_attempts_are_listed_with_what_they_cost(
    ledger: Ledger, held: tuple[PageJob, Lease]
) -> None:
    job, lease = held
    first, second = (attempts.attempt_id(job.page_job_id, GENERATE, n) for n in (1, 2))
    for identifier, usd in ((first, "0.5"), (second, "0.25")):
        opened(ledger, job)
        failed(ledger, identifier, FailureClass.TRANSIENT)
        with ledger.begin() as connection:
            spend.reserve(
                connection,
                attempt_id=identifier,
                page_job_id=job.page_job_id,
                site=job.site,
                worst_case_usd=Decimal(usd),
                caps=AMPLE,
            )
    with ledger.begin() as connection:
        spend.settle(connection, first, Decimal("0.1"))
        spend.keep_as_uncertain(connection, second)
    moved(ledger, job, lease, S.FAILED_RETRYABLE)
    opened(ledger, job, PUBLISH)
    with ledger.begin() as connection:
        rows = attempts.of_jobs(connection, [job.page_job_id, "no such job"])
    assert [(row.kind, row.usd, row.spend_state) for row in rows] == [
        ("generate", Decimal("0.1"), "settled"),
        ("generate", Decimal("0.25"), "uncertain"),
        ("publish", 0, None),
    ]
