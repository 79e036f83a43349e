"""Cancellations: a wish is on record or refused, and of wish and success exactly one wins."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.states import CANCELLABLE, MOVES, PageJobState
from content_pipeline.ledger import cancellations, jobs, leases, reports, resting
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import page_jobs, transitions
from content_pipeline_tests.ledger.wanting import (
    WAYS,
    current_job,
    job_in,
    leased,
    move_once,
    moved,
    rows_where,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
ROUNDS = 1_000
PAIRS = 4
"""Publishers and cancellers at once; more only wait for the two cores."""


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


def ask(ledger: Ledger, job: PageJob, by: str = "ann", reason: str = "not wanted") -> bool:
    with ledger.begin() as connection:
        return cancellations.request(connection, job.page_job_id, by=by, reason=reason)


@pytest.mark.parametrize("state", PageJobState)
def test_a_wish_is_accepted_exactly_where_no_publish_has_begun(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, _ = job_in(ledger, site, state)
    assert ask(ledger, job) is (state in CANCELLABLE)
    with ledger.begin() as connection:
        wish = cancellations.on_record(connection, job.page_job_id)
        assert cancellations.is_requested(connection, job.page_job_id) is (state in CANCELLABLE)
    assert (wish is not None) is (state in CANCELLABLE)
    assert current_job(ledger, site)["state"] == state


def test_the_first_wish_stands(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    assert ask(ledger, job, by="ann", reason="a typo")
    assert not ask(ledger, job, by="bob", reason="something else")
    with ledger.begin() as connection:
        wish = cancellations.on_record(connection, job.page_job_id)
    assert wish is not None
    assert (wish.by, wish.reason) == ("ann", "a typo")


@pytest.mark.parametrize("state", sorted(CANCELLABLE))
def test_a_page_that_waits_without_a_call_need_not_wait_for_its_end(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, state)
    with ledger.fenced(lease) as connection:
        jobs.postpone(connection, job, 3600)
    ask(ledger, job)
    with ledger.begin() as connection:
        is_due = jobs.load(connection, job.page_job_id).is_due
    assert is_due is ((state, S.CANCELLED) in MOVES)


def test_who_and_why_stay_in_the_log_when_the_page_is_wanted_again(
    ledger: Ledger, site: str
) -> None:
    job, lease = leased(ledger, site)
    ask(ledger, job, by="ann", reason="a typo")
    moved(ledger, job, lease, S.CANCELLED)
    with ledger.begin() as connection:
        resting.move_resting(connection, job.page_job_id, sources=[S.CANCELLED], worker="repair")
        assert cancellations.on_record(connection, job.page_job_id) is None
        log = reports.history(connection, job.page_job_id)
    why = [row["why"] for row in log if row["to_state"] == S.CANCELLED]
    assert why == [f"{MOVES[S.QUEUED, S.CANCELLED]}; asked for by ann: a typo"]
    assert ask(ledger, job)


def test_a_move_that_is_no_cancellation_does_not_name_who_asked_for_one(
    ledger: Ledger, site: str
) -> None:
    job, lease = leased(ledger, site)
    ask(ledger, job)
    moved(ledger, job, lease, S.FAILED_TERMINAL)
    rows = rows_where(ledger, transitions, page_job_id=job.page_job_id)
    assert MOVES[S.QUEUED, S.FAILED_TERMINAL] in {row["why"] for row in rows}


# --- raced --------------------------------------------------------------------------------------


def ready_jobs(ledger: Ledger, site: str) -> list[tuple[PageJob, Lease]]:
    """A leased page job for each round, ready to be published."""
    wanted(ledger, site, rows_of(ROUNDS))
    with ledger.begin() as connection:
        claims = leases.claim_due(
            connection, Selection(site=site), most=ROUNDS, worker="worker", lease_s=600
        )
    ready = []
    for claim in claims:
        with ledger.fenced(claim.lease, repeatable=True) as connection:
            job = jobs.load(connection, claim.page_job_id)
            for state in WAYS[S.READY_TO_PUBLISH][1:]:
                job = move_once(connection, job, claim.lease, state)
        ready.append((job, claim.lease))
    return ready


def test_of_a_thousand_wishes_raced_against_a_publish_each_wins_or_loses_wholly(
    ledger: Ledger, site_name: str
) -> None:
    ready = ready_jobs(ledger, site_name)
    assert len(ready) == ROUNDS
    meet = [threading.Barrier(2) for _ in ready]
    written: list[str] = []
    refused: list[str] = []

    def publish(position: int) -> None:
        job, lease = ready[position]
        meet[position].wait()
        try:
            with ledger.fenced(lease, repeatable=True) as connection:
                job = jobs.move(connection, job, S.PUBLISHING, lease=lease)
        except LeaseLost:
            with ledger.fenced(lease, repeatable=True) as connection:
                jobs.move(connection, job, S.CANCELLED, lease=lease)
            return
        written.append(job.page_job_id)
        with ledger.fenced(lease, repeatable=True) as connection:
            jobs.move(connection, job, S.PUBLISHED, lease=lease)

    def cancel(position: int) -> None:
        pause = random.Random(position).random() * 0.004
        meet[position].wait()
        time.sleep(pause)
        if not ask(ledger, ready[position][0]):
            refused.append(ready[position][0].page_job_id)

    with ThreadPoolExecutor(2 * PAIRS) as pool:
        # In pairs, so that no barrier waits for somebody who waits for a thread.
        for _ in pool.map(
            lambda at: (publish if at % 2 else cancel)(at // 2), range(2 * ROUNDS), chunksize=1
        ):
            pass

    with ledger.begin() as connection:
        ended = connection.execute(
            select(
                page_jobs.c.page_job_id, page_jobs.c.state, page_jobs.c.cancel_requested_at
            ).where(page_jobs.c.site == site_name)
        ).all()
        ends: dict[str, int] = dict(
            connection.execute(
                select(transitions.c.page_job_id, func.count())
                .where(transitions.c.to_state.in_((S.PUBLISHED, S.CANCELLED)))
                .where(transitions.c.page_job_id.in_([row.page_job_id for row in ended]))
                .group_by(transitions.c.page_job_id)
            ).all()
        )
    published = {row.page_job_id for row in ended if row.state == S.PUBLISHED}
    cancelled = {row.page_job_id for row in ended if row.state == S.CANCELLED}
    assert len(published) + len(cancelled) == ROUNDS
    assert published == set(written) == set(refused)
    assert {row.page_job_id for row in ended if row.cancel_requested_at} == cancelled
    assert Counter(ends.values()) == {1: ROUNDS}
    assert min(len(published), len(cancelled)) >= 50, "one side always won: this was no race"
