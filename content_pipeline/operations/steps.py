"""Steps: which operation takes a page job out of which state, as one table.

What belongs here: the table, the stop rules that come before every step, and walking one page as
far as it goes without waiting.
"""

from collections.abc import Callable

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.states import CANCELLABLE, MOVES, WORKABLE, PageJobState
from content_pipeline.ledger import jobs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.operations.generate import generate, reserve
from content_pipeline.operations.publish import publish
from content_pipeline.operations.reconcile import resume_publishing, settle_publish
from content_pipeline.operations.recover import resume_generating, settle_generation
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.validate import validate
from content_pipeline.operations.withdraw import withdraw

Step = Callable[[SiteRuntime, PageJob, Lease], PageJob]


def _go_on(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``failed_retryable`` whose wait is over: back to its last checkpoint."""
    to = PageJobState.QUEUED if job.revision is None else PageJobState.READY_TO_PUBLISH
    with runtime.ledger.fenced(lease) as connection:
        return jobs.move(connection, job, to, lease=lease)


STEPS: dict[PageJobState, Step] = {
    PageJobState.QUEUED: reserve,
    PageJobState.RESERVED: generate,
    PageJobState.GENERATING: resume_generating,
    PageJobState.GENERATION_UNCERTAIN: settle_generation,
    PageJobState.GENERATED: validate,
    PageJobState.VALIDATING: validate,
    PageJobState.READY_TO_PUBLISH: publish,
    PageJobState.PUBLISHING: resume_publishing,
    PageJobState.PUBLISH_UNCERTAIN: settle_publish,
    PageJobState.WITHDRAWING: withdraw,
    PageJobState.FAILED_RETRYABLE: _go_on,
}
"""A job claimed in ``generating`` or ``publishing`` was left there by a worker that is gone."""


_RESTS = frozenset(
    {
        PageJobState.FAILED_RETRYABLE,
        PageJobState.GENERATION_UNCERTAIN,
        PageJobState.PUBLISH_UNCERTAIN,
    }
)
"""A walk ends where a job waits, however shortly: whether its service may be called again is asked
when it is claimed. A walk that went on by itself spun at full speed before a closed circuit."""


def walk(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    *,
    through: frozenset[PageJobState] = WORKABLE,
) -> PageJob:
    """Take one claimed page job as far as it goes without waiting. Raises LeaseLost.

    ``job``: as it was read when, or after, ``lease`` was taken. ``through``: the states to take it
    out of; it is left in any other.
    """
    first = job
    while job.state in through:
        to = _stopped(job)
        if to is not None:
            with runtime.ledger.fenced(lease) as connection:
                job = jobs.move(connection, job, to, lease=lease)
        elif job.is_due and (job is first or job.state not in _RESTS):
            job = _step(runtime, job, lease)
        else:
            break
    return job


def _step(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """One step; the job as it is now when its next move was refused because nobody wants it."""
    try:
        return STEPS[job.state](runtime, job, lease)
    except LeaseLost:
        with runtime.ledger.fenced(lease) as connection:
            now = jobs.load(connection, job.page_job_id)
        if now.sequence != job.sequence or _stopped(now) is None:
            raise
        return now


def _stopped(job: PageJob) -> PageJobState | None:
    """Where a job ends that nobody wants any more, unless a call of it is still unsettled.

    A page whose publish may yet take effect is asked about first: a retired topic would otherwise
    leave a page on the site that nobody takes off.
    """
    if job.state not in CANCELLABLE:
        return None
    for applies, to in (
        (job.cancel_requested, PageJobState.CANCELLED),
        (not job.is_current, PageJobState.SUPERSEDED),
    ):
        if applies and (job.state, to) in MOVES:
            return to
    return None
