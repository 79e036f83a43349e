"""Recover: find out what became of a paid call whose answer was lost, before anything is paid anew.

What belongs here: settling ``generating`` after a crash and ``generation_uncertain`` always. The
order is: our own saved answer, the provider's (by the id it gave, or listed by our attempt), the
end of the time in which an answer could still come. Only then may the policy allow one more paid
try.
"""

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.ports import Reading, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, jobs, routes, spend
from content_pipeline.ledger.attempts import Attempt
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.answers import is_unreadable, take_answer
from content_pipeline.operations.kept_answers import save_found
from content_pipeline.operations.paid_calls import can_be_asked_about, read
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed_wait, set_back

LOOK_EVERY_S = 5.0
"""A stored answer may be listed with a delay; asking more often would only load the provider."""

KEEP_ASKING_S = 3600.0
"""A provider that cannot be asked for an hour is taken for one that will not answer."""


def resume_generating(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generating`` whose worker is gone: read the saved answer, or call the outcome uncertain."""
    attempt = _newest(runtime, job)
    reading = _saved(runtime, attempt)
    if reading is not None and not is_unreadable(reading):
        return take_answer(runtime, job, lease, attempt.attempt_id, reading, recovered=True)
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message="the worker stopped while the call was out; whether it was paid is not known yet",
    )
    with runtime.ledger.fenced(lease) as connection:
        if reading is not None and reading.kept_as is not None:
            attempts.accept(connection, attempt.attempt_id, reading.kept_as)
        attempts.leave_uncertain(connection, attempt.attempt_id, failure)
        spend.keep_as_uncertain(connection, attempt.attempt_id)
        return jobs.move(
            connection, job, PageJobState.GENERATION_UNCERTAIN, lease=lease, failure=failure
        )


def settle_generation(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generation_uncertain``: take the answer if one can be found, else wait or move on."""
    attempt = _newest(runtime, job)
    reading = _saved(runtime, attempt)
    if reading is not None and not is_unreadable(reading):
        return take_answer(runtime, job, lease, attempt.attempt_id, reading, recovered=True)
    left_s = attempt.answer_by_s or 0.0
    no_way_to_ask = _no_way_to_ask(runtime, attempt)
    if no_way_to_ask is not None:
        if left_s > 0:
            return _wait(runtime, job, lease, left_s)
        return _give_up_asking(runtime, job, lease, attempt, no_way_to_ask)
    with runtime.ledger.begin() as connection:
        closed = routes.obstacle(connection, runtime.model_route)
    if closed is not None:  # told so after the page was claimed
        return _wait(runtime, job, lease, closed.retry_after_s or LOOK_EVERY_S)
    return _ask(runtime, job, lease, attempt, left_s)


def _ask(
    runtime: SiteRuntime, job: PageJob, lease: Lease, attempt: Attempt, left_s: float
) -> PageJob:
    """Take the provider's answer, or wait for it, or go on without."""
    found = runtime.model.look_up(attempt.attempt_id, attempt.kept_as)
    if found.failure is not None:
        # Not the whole of it: a key that may not list completions may well make them.
        heed_wait(runtime, runtime.model_route, found.failure)
    if found.verdict is Verdict.PRESENT and found.raw is not None:
        save_found(runtime, attempt.attempt_id, found.raw)
        reading = runtime.model.read(found.raw)
        return take_answer(runtime, job, lease, attempt.attempt_id, reading, recovered=True)
    if found.verdict is Verdict.ABSENT:
        if left_s > 0:
            return _wait(runtime, job, lease, min(left_s, LOOK_EVERY_S))
        if attempt.kept_as is not None:
            # It gave the id out, so it did begin; projects without storage forget after 10 minutes.
            why = "the provider accepted it and does not know it any more"
            return _give_up_asking(runtime, job, lease, attempt, why)
        return _never_happened(runtime, job, lease, attempt)
    if job.cancel_requested and attempt.kept_as is not None:
        runtime.model.cancel(attempt.kept_as)
    if left_s > 0 or (left_s > -KEEP_ASKING_S and not _cannot_be_asked(found.failure)):
        return _wait(runtime, job, lease, LOOK_EVERY_S, found.failure)
    if attempt.kept_as is not None:
        runtime.model.cancel(attempt.kept_as)  # what never ends must not be billed for ever
    why = "the provider could not be asked, or did not end it"
    return _give_up_asking(runtime, job, lease, attempt, why)


def _no_way_to_ask(runtime: SiteRuntime, attempt: Attempt) -> str | None:
    """Why the provider cannot be asked about this call; None when it can.

    It depends on the API the call was sent through, whichever the site uses now.
    """
    if attempt.api == GenerationAPI.CHAT:
        can_be_asked = can_be_asked_about(runtime, attempt.step)
        return None if can_be_asked else "the provider offers no way to ask"
    if attempt.kept_as is None:
        return "its id was lost with the answer, and a provider lists no responses"
    by_id = runtime.model.capabilities.look_up_by_id
    return None if by_id else "the provider hands out no responses by id"


def _cannot_be_asked(failure: Failure | None) -> bool:
    """A server that refuses the question itself (it keeps no answers) will refuse it again."""
    return failure is not None and failure.failure_class is FailureClass.REQUEST


def _newest(runtime: SiteRuntime, job: PageJob) -> Attempt:
    with runtime.ledger.begin() as connection:
        attempt = attempts.newest(connection, job.page_job_id, AttemptKind.GENERATE)
    assert attempt is not None, f"page job {job.page_job_id} is {job.state} without an attempt"
    return attempt


def _saved(runtime: SiteRuntime, attempt: Attempt) -> Reading | None:
    """What our own saved answer says, if there is one."""
    return None if attempt.raw is None else read(runtime, attempt.step, attempt.raw)


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
