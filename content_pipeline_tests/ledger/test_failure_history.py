"""Failure history: what stopped for a person, day by day, and what trying again brought."""

from dataclasses import replace
from decimal import Decimal

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, cost_history, failure_history, jobs
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.failure_history import REPAIRED, Retries
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline_tests.ledger.paying import Call, age, make
from content_pipeline_tests.ledger.wanting import job_in, let_go, move_once, wanted
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
GENERATE, PUBLISH = AttemptKind.GENERATE, AttemptKind.PUBLISH


def stop(ledger: Ledger, site: str, topic: str, state: S, of_class: FailureClass) -> None:
    """Bring a queued page job to ``state``."""
    job, lease = job_in(ledger, site, S.QUEUED, topic)
    failure = Failure(failure_class=of_class, message="it failed")
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, state, failure=failure)
    let_go(ledger, lease)


def stopped(ledger: Ledger, site: str, days: int = 10) -> list[tuple[int, str, str, int]]:
    """Days ago, state, reason and pages."""
    with ledger.begin() as connection:
        seen = cost_history.window(connection, days)
        found = failure_history.failed_by_day(connection, site, seen)
    return [
        ((seen.today - item.day).days, item.state.value, item.reason, item.pages) for item in found
    ]


def test_stopped_pages_stand_by_day_state_and_class(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(6))
    stop(ledger, site_name, "t0", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    age(ledger_url, site_name, 12)
    stop(ledger, site_name, "t1", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    age(ledger_url, site_name, 2)
    stop(ledger, site_name, "t2", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    stop(ledger, site_name, "t3", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    stop(ledger, site_name, "t4", S.FAILED_TERMINAL, FailureClass.POLICY)
    job_in(ledger, site_name, S.PUBLISHED, "t5")
    assert stopped(ledger, site_name) == [
        (2, "dead_lettered", "transient", 1),
        (0, "dead_lettered", "transient", 2),
        (0, "failed_terminal", "policy", 1),
    ]


def test_a_page_that_was_taken_up_again_is_told_apart(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, S.DEAD_LETTERED)
    with ledger.fenced(lease) as connection:
        job = move_once(connection, job, lease, S.QUEUED)
    assert stopped(ledger, site_name) == [(0, "dead_lettered", REPAIRED, 1)]
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, S.DEAD_LETTERED)
    assert stopped(ledger, site_name) == [
        (0, "dead_lettered", REPAIRED, 1),
        (0, "dead_lettered", "transient", 1),
    ]


def test_lately_is_counted_in_spans_of_24_hours_newest_first(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(5))
    stop(ledger, site_name, "t0", S.FAILED_TERMINAL, FailureClass.POLICY)
    age(ledger_url, site_name, 5)
    stop(ledger, site_name, "t1", S.FAILED_TERMINAL, FailureClass.POLICY)
    stop(ledger, site_name, "t2", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    age(ledger_url, site_name, 2)
    stop(ledger, site_name, "t3", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    wanted(ledger, f"{site_name}_b", rows_of(1))
    stop(ledger, f"{site_name}_b", "t0", S.DEAD_LETTERED, FailureClass.TRANSIENT)
    with ledger.begin() as connection:
        found = failure_history.failed_lately(connection, site_name, 4)
        assert found == (1, 0, 2, 0)
        assert failure_history.failed_lately(connection, site_name, 8) == (1, 0, 2, 0, 0, 0, 0, 1)


def retried(ledger: Ledger, site: str, days: int = 10) -> list[Retries]:
    with ledger.begin() as connection:
        seen = cost_history.window(connection, days)
        return failure_history.retries(connection, site, seen)


def row(of_class: FailureClass, number: int, tries: int, succeeded: int, usd: str) -> Retries:
    return Retries(
        kind=GENERATE,
        failure_class=of_class,
        number=number,
        tries=tries,
        succeeded=succeeded,
        usd=Decimal(usd),
    )


def test_each_try_after_a_failure_counts_for_the_class_and_number_it_had(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(4))
    bad, good = Call(end="bad_output", cost_usd="0.1"), Call(end="ok", cost_usd="0.2")
    make(ledger, site_name, "t0", [bad, good])
    make(ledger, site_name, "t1", [bad, bad, good])
    make(ledger, site_name, "t2", [bad, Call(end="throttled"), Call(end="open")])
    make(ledger, site_name, "t3", [good])
    assert retried(ledger, site_name) == [
        row(FailureClass.BAD_OUTPUT, 2, tries=3, succeeded=1, usd="0.3"),
        row(FailureClass.BAD_OUTPUT, 3, tries=1, succeeded=1, usd="0.2"),
    ]


def test_an_uncertain_retry_costs_its_worst_case(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    lost = Call(end="uncertain", worst_usd="0.4")
    make(ledger, site_name, "t0", [Call(end="not_sent"), lost, Call(end="ok", cost_usd="0.2")])
    assert retried(ledger, site_name) == [
        row(FailureClass.NOT_SENT, 2, tries=1, succeeded=0, usd="0.4"),
        row(FailureClass.UNCERTAIN, 3, tries=1, succeeded=1, usd="0.2"),
    ]


def test_numbers_start_anew_after_a_success_and_with_each_step(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(2))
    bad, good = Call(end="bad_output", cost_usd="0"), Call(end="ok", cost_usd="0")
    outline = replace(good, step="outline")
    make(ledger, site_name, "t0", [outline, bad, good])
    make(ledger, site_name, "t1", [bad, good, bad, good])
    assert retried(ledger, site_name) == [
        row(FailureClass.BAD_OUTPUT, 2, tries=3, succeeded=3, usd="0")
    ]


def test_a_failed_step_is_not_retried_by_the_step_after_it(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    make(ledger, site_name, "t0", [Call(end="bad_output", step="review"), Call(end="ok")])
    assert retried(ledger, site_name) == []


def test_failures_before_the_window_are_left_out(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    make(ledger, site_name, "t0", [Call(end="bad_output"), Call(end="ok", cost_usd="0.2")])
    age(ledger_url, site_name, 3)
    assert retried(ledger, site_name, days=3) == []
    assert len(retried(ledger, site_name, days=4)) == 1


def test_publishing_is_counted_beside_generation(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, S.PUBLISHING)
    failure = Failure(failure_class=FailureClass.THROTTLED, message="slow down")
    for number, is_good in ((1, False), (2, True)):
        with ledger.fenced(lease) as connection:
            fresh = jobs.load(connection, job.page_job_id)
            opened = attempts.open_attempt(
                connection, fresh, PUBLISH, number=number, worker="w", run_id=None
            )
            if is_good:
                attempts.succeed(connection, opened, revision=1, output_hash="h")
            else:
                attempts.fail(connection, opened, failure)
    (found,) = retried(ledger, site_name)
    assert (found.kind, found.failure_class, found.number) == (PUBLISH, FailureClass.THROTTLED, 2)
    assert (found.tries, found.succeeded, found.usd) == (1, 1, 0)
