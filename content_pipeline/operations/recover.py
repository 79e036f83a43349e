"""Recover: find out what became of a paid call whose answer was lost, before anything is paid anew.

What belongs here: settling ``generating`` after a crash and ``generation_uncertain`` always. The
order is: our own saved answer, the provider's stored one, the end of the time in which an answer
could still come. Only then may the policy allow one more paid try.
"""

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, jobs, routes, spend
from content_pipeline.ledger.attempts import Attempt
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AnswerSource, AttemptKind
from content_pipeline.operations.answers import take_answer, why_unreadable
from content_pipeline.operations.paid_calls import can_be_asked_about
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed_wait, set_back

LOOK_EVERY_S = 5.0
"""A stored answer may be listed with a delay; asking more often would only load the provider."""

KEEP_ASKING_S = 3600.0
"""A provider that cannot be asked for an hour is taken for one that will not answer."""


def resume_generating(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generating`` whose worker is gone: read the saved answer, or call the outcome uncertain."""
    attempt = _newest(runtime, job)
    if attempt.raw is not None and why_unreadable(runtime, attempt.step, attempt.raw) is None:
        return take_answer(runtime, job, lease, attempt.attempt_id, attempt.raw, recovered=True)
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message="the worker stopped while the call was out; whether it was paid is not known yet",
    )
    with runtime.ledger.fenced(lease) as connection:
        attempts.leave_uncertain(connection, attempt.attempt_id, failure)
        spend.keep_as_uncertain(connection, attempt.attempt_id)
        return jobs.move(
            connection, job, PageJobState.GENERATION_UNCERTAIN, lease=lease, failure=failure
        )


def settle_generation(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generation_uncertain``: take the answer if one can be found, else wait or move on."""
    attempt = _newest(runtime, job)
    if attempt.raw is not None and why_unreadable(runtime, attempt.step, attempt.raw) is None:
        return take_answer(runtime, job, lease, attempt.attempt_id, attempt.raw, recovered=True)
    left_s = attempt.answer_by_s or 0.0
    if not can_be_asked_about(runtime, attempt.step):
        if left_s > 0:
            return _wait(runtime, job, lease, left_s)
        return _give_up_asking(runtime, job, lease, attempt, "the provider offers no way to ask")
    with runtime.ledger.begin() as connection:
        closed = routes.obstacle(connection, runtime.model_route)
    if closed is not None:  # told so after the page was claimed
        return _wait(runtime, job, lease, closed.retry_after_s or LOOK_EVERY_S)
    found = runtime.model.look_up(attempt.attempt_id)
    if found.failure is not None:
        # Not the whole of it: a key that may not list completions may well make them.
        heed_wait(runtime, runtime.model_route, found.failure)
    if found.verdict is Verdict.PRESENT and found.raw is not None:
        with runtime.ledger.begin() as connection:
            attempts.save_response(connection, attempt.attempt_id, found.raw, AnswerSource.LOOK_UP)
        runtime.on_checkpoint("answer_recovered")
        return take_answer(runtime, job, lease, attempt.attempt_id, found.raw, recovered=True)
    if found.verdict is Verdict.ABSENT:
        if left_s > 0:
            return _wait(runtime, job, lease, min(left_s, LOOK_EVERY_S))
        return _never_happened(runtime, job, lease, attempt)
    if left_s > 0 or (left_s > -KEEP_ASKING_S and not _cannot_be_asked(found.failure)):
        return _wait(runtime, job, lease, LOOK_EVERY_S, found.failure)
    return _give_up_asking(runtime, job, lease, attempt, "the provider could not be asked")


def _cannot_be_asked(failure: Failure | None) -> bool:
    """A server that refuses the question itself (it keeps no answers) will refuse it again."""
    return failure is not None and failure.failure_class is FailureClass.REQUEST


def _newest(runtime: SiteRuntime, job: PageJob) -> Attempt:
    with runtime.ledger.begin() as connection:
        attempt = attempts.newest(connection, job.page_job_id, AttemptKind.GENERATE)
    assert attempt is not None, f"page job {job.page_job_id} is {job.state} without an attempt"
    return attempt


def _wait(
    runtime: SiteRuntime, job: PageJob, lease: Lease, wait_s: float, why: Failure | None = None
) -> PageJob:
    with runtime.ledger.fenced(lease) as connection:
        return jobs.postpone(connection, job, wait_s, why)


def _never_happened(runtime: SiteRuntime, job: PageJob, lease: Lease, attempt: Attempt) -> PageJob:
    """The provider was asked after the last moment and has no such call: nothing was paid."""
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message="the provider has no record of the call, so it was not paid",
    )
    with runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, attempt.attempt_id, failure)
        job = set_back(
            connection, runtime, job, lease, failure, AttemptKind.GENERATE, step=attempt.step
        )
        spend.release(connection, attempt.attempt_id)
        return job


def _give_up_asking(
    runtime: SiteRuntime, job: PageJob, lease: Lease, attempt: Attempt, why: str
) -> PageJob:
    """Nobody can say: the attempt stays booked at its worst case, and the policy decides."""
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message=f"the call may have been paid; {why}, so its worst case stays booked",
    )
    with runtime.ledger.fenced(lease) as connection:
        attempts.leave_uncertain(connection, attempt.attempt_id, failure)
        return set_back(
            connection, runtime, job, lease, failure, AttemptKind.GENERATE, step=attempt.step
        )
