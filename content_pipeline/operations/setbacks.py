"""What happens to a page job after a failure: the retry decision, carried out.

What belongs here: counting the tries of the failure's class, asking ``core.retries``, and moving
the job accordingly, in the caller's transaction; and telling all others what a service announced,
in a transaction of its own. The failure was classified where it happened.
"""

from dataclasses import replace

from sqlalchemy import Connection

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.retries import CLOSES_CIRCUIT, RetryAfter, announced_wait_s, decide
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.ledger import attempts, cancellations, deadlines, jobs, routes
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.runtime import SiteRuntime

_WAITS = {
    PageJobState.GENERATION_UNCERTAIN: PageJobState.QUEUED,
    PageJobState.PUBLISH_UNCERTAIN: PageJobState.READY_TO_PUBLISH,
}
"""Where a settled uncertainty waits; everything else waits as failed_retryable."""


def set_back(
    connection: Connection,
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    failure: Failure,
    kind: AttemptKind,
    *,
    step: str | None = None,
) -> PageJob:
    """Move ``job`` to where its ``failure`` leads: waiting, failed for good, or dead-lettered.

    The failed attempt must already be closed: it is counted here. ``step``: of the chain, whose
    own policies come before the site's.
    """
    failed = attempts.failed_tries(connection, job, kind, failure.failure_class)
    lost = job.state in _WAITS and failure.failure_class is FailureClass.UNCERTAIN
    if lost and failed.count == 0:
        # The call is one of before a person's retry, which begins with all its tries.
        return jobs.move(connection, job, _WAITS[job.state], lease=lease, failure=failure)
    decision = decide(
        failure,
        failed_attempts=max(1, failed.count),
        policies=runtime.retries(step),
        jitter=runtime.random(),
        failing_for_s=failed.since_s,
        page_left_s=deadlines.left_s(connection, job.page_job_id),
    )
    if isinstance(decision, RetryAfter):
        to = _WAITS.get(job.state, PageJobState.FAILED_RETRYABLE)
        if (job.state, to) in MOVES:
            return jobs.move(
                connection, job, to, lease=lease, failure=failure, wait_s=decision.wait_s
            )
        # A draft that breaks a rule breaks it at every try, whatever a site's policy asks for.
        return give_up(connection, job, lease, failure, dead_letter=False)
    if decision.reason is not None:
        failure = replace(failure, message=f"{failure.message}; {decision.reason}")
    return give_up(connection, job, lease, failure, dead_letter=decision.dead_letter)


def give_up(
    connection: Connection, job: PageJob, lease: Lease, failure: Failure, *, dead_letter: bool
) -> PageJob:
    """Move ``job`` to where a person finds it; one that a person wants cancelled, on its way there.

    So a cancelled page whose call fails is not put before somebody who has no use for it.
    """
    if cancellations.is_requested(connection, job.page_job_id):
        if (job.state, PageJobState.CANCELLED) in MOVES:
            return jobs.move(connection, job, PageJobState.CANCELLED, lease=lease)
        to = _WAITS.get(job.state, PageJobState.FAILED_RETRYABLE)
        return jobs.move(connection, job, to, lease=lease, failure=failure)
    to = PageJobState.DEAD_LETTERED if dead_letter else PageJobState.FAILED_TERMINAL
    if (job.state, to) not in MOVES:
        to = PageJobState.FAILED_TERMINAL
    return jobs.move(connection, job, to, lease=lease, failure=failure)


def heed(runtime: SiteRuntime, route: str, failure: Failure) -> None:
    """Make every machine heed what a service said to one page: wait, or stop.

    Committed at once and before anything else: what is done about the page itself may have to wait
    for rows that others hold, and every moment of it somebody may call a service too early.
    """
    if failure.failure_class in CLOSES_CIRCUIT:
        with runtime.ledger.begin() as connection:
            routes.open_circuit(connection, route, failure)
    else:
        heed_wait(runtime, route, failure)


def heed_wait(runtime: SiteRuntime, route: str, failure: Failure) -> None:
    """Make every machine wait as announced, if a wait was that the site's policy heeds.

    Committed at once like ``heed``.
    """
    wait_s = announced_wait_s(failure, runtime.site.retries)
    if wait_s:
        with runtime.ledger.begin() as connection:
            routes.pause(connection, route, replace(failure, retry_after_s=wait_s))
