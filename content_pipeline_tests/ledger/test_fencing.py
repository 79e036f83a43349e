"""The fence: only the holder of a live lease writes, and nobody takes it away meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Connection, func, select, text, update

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import RawResponse
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, drafts, jobs, leases
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Claim, Selection
from content_pipeline.ledger.schema import AttemptKind, page_jobs
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline_tests.ledger.wanting import (
    ARTICLE,
    FAILED,
    current_job,
    job_in,
    leased,
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


def run_out(ledger: Ledger, lease: Lease) -> None:
    """Let the time of ``lease`` pass."""
    with ledger.begin() as connection:
        connection.execute(
            update(lease_rows)
            .where(lease_rows.c.token == lease.token)
            .values(expires_at=func.clock_timestamp())
        )


def stolen(ledger: Ledger, site: str, lease: Lease) -> tuple[PageJob, Lease]:
    run_out(ledger, lease)
    return leased(ledger, site, worker="thief")


def claimed(ledger: Ledger, site: str, most: int = 10) -> list[Claim]:
    with ledger.begin() as connection:
        return leases.claim_due(
            connection, Selection(site=site), most=most, worker="another", lease_s=30
        )


WRITES: dict[str, Callable[[Connection, PageJob, Lease], object]] = {
    "a move": lambda c, job, lease: jobs.move(c, job, S.GENERATED, lease=lease, revision=1),
    "a wait": lambda c, job, _: jobs.postpone(c, job, 600, FAILED),
    "a draft": lambda c, job, _: drafts.store(
        c, job, attempt_id="a", article=ARTICLE, output_hash="h"
    ),
    "an attempt": lambda c, job, _: attempts.open_attempt(
        c, job, AttemptKind.GENERATE, number=1, worker="w", run_id=None
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("lost", ["run out", "stolen", "let go"])
def test_a_lost_lease_writes_nothing(
    lost: str, write: Callable[[Connection, PageJob, Lease], object], ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, S.GENERATING)
    before = current_job(ledger, site)
    if lost == "let go":
        with ledger.begin() as connection:
            leases.release(connection, lease)
    else:
        run_out(ledger, lease)
    if lost == "stolen":
        leased(ledger, site, worker="thief")
    with pytest.raises(LeaseLost, match="worker no longer holds page:"), ledger.fenced(lease) as c:
        write(c, job, lease)
    assert current_job(ledger, site) == before


def test_a_thief_gets_a_greater_token_and_writes(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    taken, stolen_lease = stolen(ledger, site, lease)
    assert taken.page_job_id == job.page_job_id
    assert stolen_lease.token > lease.token
    assert moved(ledger, taken, stolen_lease, S.RESERVED).state is S.RESERVED


def test_a_worker_cannot_renew_or_let_go_what_another_holds(ledger: Ledger, site: str) -> None:
    _, lease = leased(ledger, site)
    _, stolen_lease = stolen(ledger, site, lease)
    with ledger.begin() as connection:
        assert leases.renew(connection, [lease], 600, longest_hold_s=600) == frozenset()
        leases.release(connection, lease)
        forged = replace(lease, token=stolen_lease.token + 1)
        assert leases.renew(connection, [forged], 600, longest_hold_s=600) == frozenset()
    (row,) = rows_where(ledger, lease_rows, resource=lease.resource)
    assert (row["token"], row["worker"]) == (stolen_lease.token, "thief")


def test_a_lease_that_ran_out_is_not_renewed_although_nobody_took_it(
    ledger: Ledger, site: str
) -> None:
    _, lease = leased(ledger, site)
    run_out(ledger, lease)
    with ledger.begin() as connection:
        assert leases.renew(connection, [lease], 600, longest_hold_s=600) == frozenset()
    assert len(claimed(ledger, site)) == 2


def test_a_heartbeat_does_not_wait_for_a_fenced_transaction(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    with ledger.fenced(lease) as connection:
        jobs.move(connection, job, S.RESERVED, lease=lease)
        with ledger.begin() as beating:
            beating.execute(text("SET LOCAL lock_timeout = '2s'"))
            assert leases.renew(beating, [lease], 600, longest_hold_s=600) == {lease.token}


def test_two_fenced_transactions_of_one_lease_do_not_wait_for_each_other(
    ledger: Ledger, site: str
) -> None:
    _, lease = leased(ledger, site)
    with ledger.fenced(lease), ledger.fenced(lease) as second:
        second.execute(text("SELECT 1"))


def test_a_lease_that_runs_out_under_a_fenced_transaction_cannot_be_stolen_before_its_end(
    ledger: Ledger, site: str
) -> None:
    job, lease = leased(ledger, site, lease_s=1)
    with ledger.fenced(lease) as connection:
        connection.execute(text("SELECT pg_sleep(1.1)"))
        assert [claim.topic_key for claim in claimed(ledger, site)] == ["t1"]
        # The thief must hold nothing that this transaction still needs.
        jobs.move(connection, job, S.RESERVED, lease=lease)
    assert [claim.topic_key for claim in claimed(ledger, site)] == ["t0"]
    assert current_job(ledger, site)["state"] == S.RESERVED


def test_fenced_transactions_and_thieves_never_block_each_other_for_good(
    ledger: Ledger, site: str
) -> None:
    """Leases far too short for the work: whoever loses one notices, and no deadlock is reported."""
    over = threading.Event()

    def steal() -> int:
        count = 0
        while not over.is_set():
            with ledger.begin() as connection:
                count += len(
                    leases.claim_due(
                        connection, Selection(site=site), most=5, worker="thief", lease_s=0
                    )
                )
        return count

    def work() -> int:
        done = 0
        for _ in range(60):
            with ledger.begin() as connection:
                claims = leases.claim_due(
                    connection, Selection(site=site), most=1, worker="worker", lease_s=0.004
                )
            for claim in claims:
                try:
                    with ledger.fenced(claim.lease) as connection:
                        connection.execute(text("SELECT pg_sleep(0.003)"))
                        job = jobs.load(connection, claim.page_job_id)
                        failure = Failure(failure_class=FailureClass.BUDGET, message="m")
                        job = jobs.move(
                            connection, job, S.FAILED_RETRYABLE, lease=claim.lease, failure=failure
                        )
                        jobs.move(connection, job, S.QUEUED, lease=claim.lease)
                        done += 1
                except LeaseLost:
                    continue
        return done

    with ThreadPoolExecutor(4) as pool:
        thieves = [pool.submit(steal) for _ in range(2)]
        workers = [pool.submit(work) for _ in range(2)]
        try:
            done = sum(worker.result() for worker in workers)
        finally:
            over.set()
        assert done > 0
        assert sum(thief.result() for thief in thieves) > 0
    with ledger.begin() as connection:
        sequences = connection.execute(
            select(func.sum(page_jobs.c.sequence - 1)).where(page_jobs.c.site == site)
        ).scalar_one()
    assert sequences == 2 * done


def test_a_late_answer_is_kept_even_without_a_lease(ledger: Ledger, site: str) -> None:
    job, lease = leased(ledger, site)
    with ledger.fenced(lease) as connection:
        identifier = attempts.open_attempt(
            connection, job, AttemptKind.GENERATE, number=1, worker="w", run_id=None
        )
    run_out(ledger, lease)
    raw = RawResponse(status=200, headers={"a": "b"}, body=b"late")
    with ledger.begin() as connection:
        attempts.save_response(connection, identifier, raw)
        found = attempts.newest(connection, job.page_job_id, AttemptKind.GENERATE)
    assert found is not None
    assert found.raw == raw
