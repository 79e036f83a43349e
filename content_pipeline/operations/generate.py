"""Generate: reserve the worst case, make the paid call of the next step once, save its answer.

What belongs here: the way from ``queued`` to a saved answer when nothing is lost. What becomes of
the answer is ``answers``'s; what became of a call whose answer was lost is settled in ``recover``.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal

from content_pipeline.core.chain import Step
from content_pipeline.core.durations import in_words
from content_pipeline.core.errors import (
    BudgetExhausted,
    CallFailed,
    CapTooSmall,
    PageBudgetExhausted,
)
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Reading
from content_pipeline.core.prompts import PromptError
from content_pipeline.core.retries import page_deadline_told
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    attempts,
    budget_waits,
    deadlines,
    draft_line,
    jobs,
    routes,
    spend,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.answers import (
    book_unpaid,
    complete,
    is_unreadable,
    take_answer,
)
from content_pipeline.operations.kept_answers import wait_for_answer
from content_pipeline.operations.paid_calls import api_of, read, send
from content_pipeline.operations.requests import most_usage, position, sent_bytes
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import give_up, heed, set_back

FIRST_LOOK_S = 1.0
"""A lost answer is looked for this soon; most lost connections hide a finished call."""

LOOK_AGAIN_S = 1.0
"""A page before a closed circuit is claimed once it is open; until then it is not looked at."""

SPREAD_S = 60.0
"""Pages that wait for a new day's budget come back over this long, not all in one instant."""


def reserve(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``queued`` → ``reserved``: the next call's worst case is set aside, or the page waits.

    For a budget, or, a new page, for the day on which the publish rate has a turn for it.
    """
    try:
        found = position(runtime, job)
    except PromptError as error:
        failure = Failure(failure_class=FailureClass.INVALID_INPUT, message=str(error))
        with runtime.ledger.fenced(lease) as connection:
            return jobs.move(
                connection, job, PageJobState.FAILED_TERMINAL, lease=lease, failure=failure
            )
    if found.step is None:
        return complete(runtime, job, lease, found)
    worst_case = runtime.prices.cost(found.step.model, most_usage(found.step, found.prompt))
    try:
        with runtime.ledger.fenced(lease, repeatable=True) as connection:
            if draft_line.hold_back(connection, job, runtime.site.schedule.rate):
                return jobs.load(connection, job.page_job_id)
            reserved = jobs.move(connection, job, PageJobState.RESERVED, lease=lease)
            spend.reserve(
                connection,
                attempt_id=attempts.attempt_id(
                    job.page_job_id, AttemptKind.GENERATE, job.calls + 1
                ),
                page_job_id=job.page_job_id,
                site=job.site,
                worst_case_usd=worst_case,
                caps=runtime.caps,
            )
        return reserved
    except BudgetExhausted as exhausted:
        return _out_of_money(runtime, job, lease, exhausted, worst_case)


def _out_of_money(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    exhausted: BudgetExhausted,
    worst_case_usd: Decimal,
) -> PageJob:
    """Wait for a new day or a higher cap; for a person where neither would help or come in time."""
    message = str(exhausted)
    with runtime.ledger.fenced(lease) as connection:
        wait_s = spend.seconds_to_next_day(connection) + SPREAD_S * runtime.random()
        left_s = deadlines.left_s(connection, job.page_job_id)
        is_hopeless = isinstance(exhausted, PageBudgetExhausted | CapTooSmall)
        if not is_hopeless and wait_s > left_s:
            is_hopeless = True
            deadline = page_deadline_told(left_s)
            message = f"{message}; that is in {in_words(wait_s)}, {deadline}"
        failure = Failure(failure_class=FailureClass.BUDGET, message=message)
        if is_hopeless:
            return give_up(connection, job, lease, failure, dead_letter=True)
        budget_waits.note(connection, job.page_job_id, worst_case_usd)
        return jobs.move(
            connection,
            job,
            PageJobState.FAILED_RETRYABLE,
            lease=lease,
            failure=failure,
            wait_s=wait_s,
        )


def generate(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``reserved`` → the next step or ``generated``, or to where the call's failure leads."""
    found = position(runtime, job)
    assert found.step is not None, f"page job {job.page_job_id} reserved money for no step"
    with ExitStack() as slot:
        slot.enter_context(runtime.call_slots)
        job, attempt_id = _intend_call(runtime, job, lease, found.step, found.prompt)
        if attempt_id is None:
            return job
        runtime.on_checkpoint("call_intended")
        try:
            with runtime.calls.call():
                reading = _answer(runtime, job, found.step, found.prompt, attempt_id, slot.close)
        except CallFailed as failed:
            # While the slot is held: what went wrong may forbid the call of the page after this.
            step = found.step.name
            return _record_failed_call(runtime, job, lease, attempt_id, step, failed.failure)
        return take_answer(runtime, job, lease, attempt_id, reading, recovered=False, asked=found)


def _answer(
    runtime: SiteRuntime,
    job: PageJob,
    step: Step,
    prompt: str,
    attempt_id: str,
    free_slot: Callable[[], None],
) -> Reading:
    """Make the call; its saved answer. Raises CallFailed, also for one that says nothing yet.

    ``free_slot``: the next call may go out. One in the background is in flight until its answer.
    """
    until = time.monotonic() + runtime.site.generation.deadline_s
    raw = send(runtime, job, step, prompt, attempt_id)
    runtime.on_checkpoint("call_answered")
    if not runtime.site.generation.background:
        free_slot()
    with runtime.ledger.single() as connection:
        attempts.save_response(connection, attempt_id, raw)
    runtime.on_checkpoint("answer_saved")
    said = read(runtime, step.name, raw)
    reading = wait_for_answer(runtime, job, attempt_id, said, until=until)
    if reading.failure is not None and is_unreadable(reading):
        raise CallFailed(reading.failure)
    return reading


def _intend_call(
    runtime: SiteRuntime, job: PageJob, lease: Lease, step: Step, prompt: str
) -> tuple[PageJob, str | None]:
    """Commit the intent; the job as it stands then, and the attempt's id.

    No id when the route was closed meanwhile: a page that waited for a free slot does not call a
    service that has just told another page to wait.
    """
    settings = runtime.site.generation
    with runtime.ledger.fenced(lease) as connection:
        closed = routes.obstacle(connection, runtime.model_route)
        if closed is not None:
            wait_s = closed.retry_after_s or LOOK_AGAIN_S
            return jobs.move(connection, job, PageJobState.QUEUED, lease=lease, wait_s=wait_s), None
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.GENERATE,
            number=job.calls + 1,
            worker=runtime.worker,
            run_id=runtime.run_id,
            step=step.name,
            model=step.model,
            api=api_of(runtime, step.name),
            answer_within_s=settings.deadline_s + settings.answer_slack_s,
            prompt_bytes=sent_bytes(step, prompt),
        )
        return jobs.move(connection, job, PageJobState.GENERATING, lease=lease), attempt_id


def _record_failed_call(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    attempt_id: str,
    step: str,
    failure: Failure,
) -> PageJob:
    heed(runtime, runtime.model_route, failure)
    with runtime.ledger.fenced(lease) as connection:
        if failure.failure_class is FailureClass.UNCERTAIN:
            attempts.leave_uncertain(connection, attempt_id, failure)
            spend.keep_as_uncertain(connection, attempt_id)
            return jobs.move(
                connection,
                job,
                PageJobState.GENERATION_UNCERTAIN,
                lease=lease,
                failure=failure,
                wait_s=FIRST_LOOK_S,
            )
        attempts.fail(connection, attempt_id, failure)
        job = set_back(connection, runtime, job, lease, failure, AttemptKind.GENERATE, step=step)
        book_unpaid(connection, attempt_id, failure)
        return job
