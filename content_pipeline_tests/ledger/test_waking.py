"""Waking a page job: what exists is looked for before anything is paid; and back to the queue."""

from dataclasses import replace

import pytest

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.core.validation import Finding
from content_pipeline.ledger import attempts, jobs, rejections, reports, resting
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    moved,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
RESTING = (S.FAILED_TERMINAL, S.DEAD_LETTERED, S.CANCELLED, S.SUPERSEDED)
LOST = Failure(failure_class=FailureClass.UNCERTAIN, message="the answer is lost")


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


def called(ledger: Ledger, job: PageJob, *, lost: bool, number: int = 1) -> None:
    """A paid call of ``job`` that ended, or whose end nobody knows."""
    with ledger.begin() as connection:
        identifier = attempts.open_attempt(
            connection, job, AttemptKind.GENERATE, number=number, worker="w", run_id=None
        )
        end = attempts.leave_uncertain if lost else attempts.fail
        end(connection, identifier, LOST)


def wake(ledger: Ledger, job: PageJob, source: PageJobState) -> PageJobState | None:
    with ledger.begin() as connection:
        return resting.move_resting(
            connection, job.page_job_id, sources=[source], worker="a person", next_epoch=True
        )


@pytest.mark.parametrize("state", RESTING)
def test_a_job_whose_call_was_lost_is_woken_where_it_is_asked_about(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = leased(ledger, site)
    called(ledger, job, lost=True)
    moved(ledger, job, lease, state)
    let_go(ledger, lease)
    assert wake(ledger, job, state) is S.GENERATION_UNCERTAIN
    row = current_job(ledger, site)
    assert (row["failure_class"], row["finished_at"], row["epoch"]) == ("uncertain", None, 2)
    assert "asked before another is paid" in row["failure_message"]
    with ledger.begin() as connection:
        log = reports.history(connection, job.page_job_id)
    assert log[-1]["why"] == MOVES[state, S.GENERATION_UNCERTAIN]
    again, _ = leased(ledger, site)
    assert again.state is S.GENERATION_UNCERTAIN


@pytest.mark.parametrize("later", [True, False])
def test_a_lost_call_that_another_followed_is_settled(
    later: bool, ledger: Ledger, site: str
) -> None:
    job, lease = leased(ledger, site)
    called(ledger, job, lost=not later)
    called(ledger, job, lost=later, number=2)
    moved(ledger, job, lease, S.DEAD_LETTERED)
    wanted_state = S.GENERATION_UNCERTAIN if later else S.QUEUED
    assert wake(ledger, job, S.DEAD_LETTERED) is wanted_state


def test_a_draft_is_used_whatever_became_of_earlier_calls(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    called(ledger, job, lost=True)
    moved(ledger, job, lease, S.RESERVED, S.GENERATING, S.GENERATED, S.CANCELLED)
    assert wake(ledger, job, S.CANCELLED) is S.GENERATED


# --- back to the queue after a rejected draft ---------------------------------------------------


def reject(ledger: Ledger, job: PageJob, lease: Lease, *details: str, asks: bool = True) -> None:
    with ledger.fenced(lease) as connection:
        findings = [Finding(rule="words", detail=detail) for detail in details]
        rejections.record(connection, job, findings, is_asked_again=asks)


def test_a_job_that_goes_back_to_the_queue_has_no_draft_any_more(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.VALIDATING)
    assert (job.revision, job.is_asked_again) == (1, False)
    reject(ledger, job, lease, "too few")
    job = moved(ledger, job, lease, S.QUEUED)
    assert (job.revision, job.is_asked_again) == (None, True)
    assert current_job(ledger, site)["revision"] is None
    with ledger.begin() as connection:
        kept = jobs.load(connection, job.page_job_id)
    assert kept == replace(job, has_outputs=False, calls=0), "no call was really made"
    job = moved(ledger, job, lease, S.RESERVED, S.GENERATING, S.GENERATED)
    assert (job.revision, job.is_asked_again) == (2, True)


def test_every_rejected_draft_is_kept_with_its_findings(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.VALIDATING)
    reject(ledger, job, lease, "too few", "too plain")
    reject(ledger, job, lease, "too few")  # the rules were relaxed, and it was checked again
    job = moved(ledger, job, lease, S.QUEUED, S.RESERVED, S.GENERATING, S.GENERATED, S.VALIDATING)
    reject(ledger, job, lease, "too many", asks=False)
    moved(ledger, job, lease, S.DEAD_LETTERED)
    with ledger.begin() as connection:
        found = rejections.of_job(connection, job.page_job_id)
    assert [(item.revision, item.is_asked_again) for item in found] == [(1, True), (2, False)]
    assert [[str(finding) for finding in item.findings] for item in found] == [
        ["words: too few"],
        ["words: too many"],
    ]


def test_a_draft_that_is_only_left_to_a_person_asks_for_nothing(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.VALIDATING)
    reject(ledger, job, lease, "too few", asks=False)
    with ledger.begin() as connection:
        assert not jobs.load(connection, job.page_job_id).is_asked_again
