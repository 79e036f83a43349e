"""Moving page jobs: one move at a time, each on record, and only from where a job was read."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import FINAL, MOVES, PageJobState
from content_pipeline.ledger import jobs, reports, resting
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import draft_revisions, page_jobs, pages, transitions
from content_pipeline_tests.ledger.wanting import (
    WAYS,
    assert_final_alike,
    current_job,
    job_in,
    leased,
    let_go,
    move_once,
    moved,
    rows_where,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """A site with two queued page jobs."""
    wanted(ledger, site_name, rows_of(2))
    return site_name


def ask_to_cancel(ledger: Ledger, page_job_id: str) -> None:
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.page_job_id == page_job_id)
            .values(cancel_requested_at=func.now())
        )


def test_a_job_is_read_with_what_a_step_needs(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    assert (job.state, job.sequence, job.epoch, job.revision) == (S.QUEUED, 1, 1, None)
    assert (job.site, job.topic_key, job.path) == (site, "t0", "/aarau-0/")
    assert job.input_columns == {
        "name": "Aarau 0",
        "canton": "Canton 0",
        "population": "10,000",
        "river": "Aare",
    }
    assert (job.is_due, job.cancel_requested, job.is_current) == (True, False, True)
    assert (job.baseline, job.remote_id, job.published_content_hash) == (None, None, None)
    assert (job.has_outputs, job.calls, job.publishes) == (False, 0, 0)


@pytest.mark.parametrize("state", PageJobState)
def test_every_state_can_be_reached_and_leaves_a_gapless_log(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, state)
    assert job.state is state
    row = current_job(ledger, site)
    assert_final_alike(row)
    with ledger.begin() as connection:
        log = reports.history(connection, job.page_job_id)
    assert [entry["to_state"] for entry in log] == list(WAYS[state])
    assert [entry["sequence"] for entry in log] == list(range(1, len(log) + 1))
    assert [entry["from_state"] for entry in log] == [None, *WAYS[state][:-1]]
    assert [entry["why"] for entry in log[1:]] == [
        MOVES[step] for step in zip(WAYS[state], WAYS[state][1:], strict=False)
    ]
    assert {(entry["worker"], entry["lease_token"]) for entry in log[1:]} <= {
        ("worker", lease.token)
    }


def test_of_two_who_read_the_same_job_one_moves_it(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    barrier = threading.Barrier(8)

    def race(_: int) -> bool:
        barrier.wait()
        try:
            moved(ledger, job, lease, S.RESERVED)
        except LeaseLost:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(race, range(8)))
    assert sum(won) == 1
    assert len(rows_where(ledger, transitions, page_job_id=job.page_job_id)) == 2


def test_a_moved_job_knows_what_was_begun_without_being_read_again(
    ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, S.GENERATING)
    assert (job.has_outputs, job.calls, job.publishes) == (False, 1, 0)
    job = moved(ledger, job, lease, S.GENERATED)
    assert (job.has_outputs, job.calls, job.publishes) == (True, 1, 0)
    for to in (S.VALIDATING, S.READY_TO_PUBLISH, S.PUBLISHING):
        job = moved(ledger, job, lease, to)
    assert (job.has_outputs, job.calls, job.publishes) == (True, 1, 1)


def test_a_lost_race_leaves_nothing_of_its_transaction(ledger: Ledger, site: str) -> None:
    stale, lease = job_in(ledger, site, S.GENERATING)
    moved(ledger, stale, lease, S.FAILED_RETRYABLE)
    with pytest.raises(LeaseLost, match="somebody moved it"):
        moved(ledger, stale, lease, S.GENERATED)
    assert rows_where(ledger, draft_revisions, page_id=stale.page_id) == []
    assert current_job(ledger, site)["state"] == S.FAILED_RETRYABLE


def test_a_job_read_an_age_ago_is_not_moved_although_its_state_is_the_same(
    ledger: Ledger, site: str
) -> None:
    stale, lease = leased(ledger, site)
    moved(ledger, stale, lease, S.FAILED_RETRYABLE, S.QUEUED)
    with pytest.raises(LeaseLost):
        moved(ledger, stale, lease, S.RESERVED)


def test_a_move_outside_the_table_is_a_mistake_of_the_caller(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    with pytest.raises(ValueError, match="no move from queued to published"):
        moved(ledger, job, lease, S.PUBLISHED)
    assert current_job(ledger, site)["sequence"] == 1


def test_a_failure_is_recorded_and_forgotten_with_the_next_move(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    failure = Failure(failure_class=FailureClass.BUDGET, message="the day's money is spent")
    with ledger.fenced(lease) as connection:
        job = jobs.move(connection, job, S.FAILED_RETRYABLE, lease=lease, failure=failure)
    row = current_job(ledger, site)
    assert (row["failure_class"], row["failure_message"]) == ("budget", "the day's money is spent")
    assert job.failure_class is FailureClass.BUDGET
    job = moved(ledger, job, lease, S.QUEUED)
    row = current_job(ledger, site)
    assert (row["failure_class"], row["failure_message"]) == (None, None)


def test_a_wait_counts_on_the_clock_of_the_database(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    with ledger.fenced(lease) as connection:
        job = move_once(connection, job, lease, S.FAILED_RETRYABLE, wait_s=600)
        left = connection.execute(
            select(page_jobs.c.next_attempt_at - func.clock_timestamp()).where(
                page_jobs.c.page_job_id == job.page_job_id
            )
        ).scalar_one()
    assert not job.is_due
    assert 590 < left.total_seconds() <= 600
    job = moved(ledger, job, lease, S.QUEUED)
    assert job.is_due


@pytest.mark.parametrize("source", [S.RESERVED, S.READY_TO_PUBLISH])
def test_nothing_paid_or_outward_begins_once_a_cancellation_is_on_record(
    source: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, source)
    ask_to_cancel(ledger, job.page_job_id)
    begun = S.GENERATING if source is S.RESERVED else S.PUBLISHING
    with pytest.raises(LeaseLost):
        moved(ledger, job, lease, begun)
    assert moved(ledger, job, lease, S.CANCELLED).state is S.CANCELLED


@pytest.mark.parametrize("source", [S.GENERATING, S.PUBLISHING])
def test_an_outcome_wins_over_a_later_cancellation(
    source: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, source)
    ask_to_cancel(ledger, job.page_job_id)
    to = S.GENERATED if source is S.GENERATING else S.PUBLISHED
    assert moved(ledger, job, lease, to).state is to


def test_postponing_leaves_the_state_and_says_why(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.PUBLISH_UNCERTAIN)
    why = Failure(failure_class=FailureClass.STORAGE, message="the disk is full")
    with ledger.fenced(lease) as connection:
        later = jobs.postpone(connection, job, 60, why)
    assert (later.state, later.sequence, later.is_due) == (job.state, job.sequence, False)
    row = current_job(ledger, site)
    assert (row["failure_class"], row["failure_message"]) == ("storage", "the disk is full")
    with ledger.fenced(lease) as connection:
        jobs.postpone(connection, job, 0)
    assert current_job(ledger, site)["failure_message"] == "the disk is full"


def test_postponing_a_job_that_moved_on_changes_nothing(ledger: Ledger, site: str) -> None:
    stale, lease = leased(ledger, site)
    moved(ledger, stale, lease, S.RESERVED)
    with ledger.fenced(lease) as connection:
        job = jobs.postpone(connection, stale, 600)
    assert (job.state, job.is_due) == (S.RESERVED, True)


# --- waking what rests --------------------------------------------------------------------------


def woken(ledger: Ledger, page_job_id: str, *sources: PageJobState) -> PageJobState | None:
    with ledger.begin() as connection:
        return resting.move_resting(
            connection, page_job_id, sources=sources, worker="a person", cause="the cause"
        )


@pytest.mark.parametrize("state", sorted(FINAL - {S.PUBLISHED, S.WITHDRAWN}))
def test_a_resting_job_without_a_draft_is_queued_again(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, _ = job_in(ledger, site, state)
    assert woken(ledger, job.page_job_id, state) is S.QUEUED
    row = current_job(ledger, site)
    assert (row["state"], row["finished_at"], row["failure_class"]) == (S.QUEUED, None, None)
    with ledger.begin() as connection:
        entry = reports.history(connection, job.page_job_id)[-1]
    assert (entry["why"], entry["worker"], entry["lease_token"]) == (
        "the cause",
        "a person",
        None,
    )


def test_a_resting_job_with_a_draft_goes_on_at_its_draft(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.VALIDATING)
    job = moved(ledger, job, lease, S.FAILED_TERMINAL)
    assert woken(ledger, job.page_job_id, S.FAILED_TERMINAL) is S.GENERATED
    assert current_job(ledger, site)["revision"] == job.revision == 1


def test_a_job_that_does_not_rest_is_not_woken(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    assert woken(ledger, job.page_job_id, *FINAL) is None
    assert woken(ledger, "no such job", *FINAL) is None


def test_waking_forgets_a_cancellation_and_may_begin_a_new_epoch(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    ask_to_cancel(ledger, job.page_job_id)
    moved(ledger, job, lease, S.CANCELLED)
    with ledger.begin() as connection:
        resting.move_resting(
            connection, job.page_job_id, sources=[S.CANCELLED], worker="p", next_epoch=True
        )
        again = jobs.load(connection, job.page_job_id)
    assert (again.cancel_requested, again.epoch) == (False, 2)


def test_of_many_who_wake_a_job_one_does(ledger: Ledger, site: str) -> None:
    job, _ = job_in(ledger, site, S.DEAD_LETTERED)
    with ThreadPoolExecutor(8) as pool:
        results = list(
            pool.map(lambda _: woken(ledger, job.page_job_id, S.DEAD_LETTERED), range(8))
        )
    assert sorted(map(str, results)) == ["None"] * 7 + ["queued"]


def test_an_old_draft_wanted_again_becomes_the_newest_revision(ledger: Ledger, site: str) -> None:
    old, lease = job_in(ledger, site, S.GENERATED)
    old = moved(ledger, old, lease, S.SUPERSEDED)
    with ledger.begin() as connection:  # another page job of the page had its draft meanwhile
        connection.execute(
            update(pages).where(pages.c.page_id == old.page_id).values(last_revision=5)
        )
    assert woken(ledger, old.page_job_id, S.SUPERSEDED) is S.GENERATED
    assert current_job(ledger, site)["revision"] == 6
    (page,) = rows_where(ledger, pages, page_id=old.page_id)
    assert page["last_revision"] == 6
    first, copy = sorted(
        rows_where(ledger, draft_revisions, page_id=old.page_id), key=lambda row: row["revision"]
    )
    assert (copy["revision"], copy["copied_from_revision"]) == (6, 1)
    assert (copy["article"], copy["output_hash"]) == (first["article"], first["output_hash"])


def test_a_lease_let_go_does_not_move_a_job(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    let_go(ledger, lease)
    with pytest.raises(LeaseLost, match="no longer holds"):
        moved(ledger, job, lease, S.RESERVED)
    with pytest.raises(LeaseLost):
        moved(ledger, job, replace(lease, token=lease.token + 1), S.RESERVED)
