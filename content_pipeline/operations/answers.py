"""Answers: book a saved answer, keep its step's output, and make a draft once the chain is whole.

What belongs here: everything between the raw answer of a paid call and the draft. It costs nothing
and can be repeated; how an answer is obtained is ``generate``'s and ``recover``'s.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from content_pipeline.core.article import NotAnArticle, article_json
from content_pipeline.core.chain import NotOfSchema, Step, StepRole, parse_output
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import Reading
from content_pipeline.core.states import PageJobState
from content_pipeline.core.vectors import NotAVector, check, description
from content_pipeline.ledger import attempts, drafts, jobs, spend, step_outputs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AnswerSource, AttemptKind
from content_pipeline.operations.paid_calls import can_be_asked_about
from content_pipeline.operations.requests import ChainPosition, position
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed, set_back


def is_unreadable(reading: Reading) -> bool:
    """Whether a saved answer does not even say that it is one: a proxy's page, or not yet one."""
    failure = reading.failure
    return failure is not None and failure.failure_class is FailureClass.UNCERTAIN


def take_answer(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    attempt_id: str,
    reading: Reading,
    *,
    recovered: bool,
    asked: ChainPosition | None = None,
) -> PageJob:
    """Book a saved answer and go on with its output, or record why it is none.

    Works from ``generating`` and from ``generation_uncertain``; costs nothing, so a crash repeats
    it. An answer that stays unreadable when the provider itself hands it out is a useless one.
    ``asked``: where the chain stood at the call, when the caller has just looked.
    """
    # Whether the site's file has changed since the question, of which nobody knows it any more.
    outdated = asked is None and job.generation_version != runtime.generation_version
    before = asked or position(runtime, job, by_itself=outdated)
    assert before.step is not None, f"page job {job.page_job_id} has an answer to no question"
    step = before.step
    reading = _with_usage(runtime, step, attempt_id, reading)
    output = _output_of(reading, step)
    if isinstance(output, Failure) and not _is_paid(output):
        heed(runtime, runtime.model_route, output)
    with runtime.ledger.fenced(lease, repeatable=True) as connection:
        if isinstance(output, Failure):
            attempts.fail(connection, attempt_id, output, reading=reading)
            job = set_back(
                connection, runtime, job, lease, output, AttemptKind.GENERATE, step=step.name
            )
            _book_failure(connection, runtime, attempt_id, step, reading, output)
            return job
        step_outputs.take_over(connection, job, before.of_earlier_jobs(job))
        step_outputs.store(
            connection,
            job,
            step=step.name,
            step_key=_key_for_nobody(attempt_id) if outdated else before.step_key(job),
            attempt_id=attempt_id,
            output=output,
            vector=reading.vector,
        )
        values = before.values | {step.name: output}
        job = _go_on(connection, runtime, job, lease, values, attempt_id)
        attempts.succeed(
            connection,
            attempt_id,
            revision=job.revision,
            output_hash=digest("output", output),
            recovered=recovered,
            reading=reading,
        )
        _book(connection, runtime, attempt_id, step, reading)
    if job.revision is None:
        runtime.on_checkpoint("step_stored")
    else:
        runtime.on_checkpoint("draft_stored")
    return job


def _key_for_nobody(attempt_id: str) -> str:
    """Under which no other page job finds an answer.

    An answer to an earlier prompt, found after a crash, was once taken over as one to the new.
    """
    return digest("answer to an earlier way of generating", attempt_id)


def complete(runtime: SiteRuntime, job: PageJob, lease: Lease, found: ChainPosition) -> PageJob:
    """``queued`` whose steps all have their output already: a draft of it, for nothing."""
    attempt_id = list(found.outputs.values())[-1].attempt_id
    with runtime.ledger.fenced(lease, repeatable=True) as connection:
        step_outputs.take_over(connection, job, found.outputs.values())
        return _go_on(connection, runtime, job, lease, found.values, attempt_id)


def _with_usage(runtime: SiteRuntime, step: Step, attempt_id: str, reading: Reading) -> Reading:
    """``reading`` with the tokens that the provider itself keeps of an answer that names none.

    Asked once: an answer that is kept without them, or not listed yet, is booked at its worst.
    """
    if reading.usage is not None or not _is_paid(reading.failure):
        return reading
    if reading.kept_as is None and not can_be_asked_about(runtime, step.name):
        return reading
    found = runtime.model.look_up(attempt_id, reading.kept_as)
    if found.raw is None:
        return reading
    with runtime.ledger.begin() as connection:
        attempts.save_response(connection, attempt_id, found.raw, AnswerSource.LOOK_UP)
    return replace(reading, usage=runtime.model.read(found.raw).usage)


def _is_paid(failure: Failure | None) -> bool:
    """Whether tokens were certainly generated: also a cut or declined answer is paid for."""
    return failure is None or failure.failure_class in _PAID


_PAID = frozenset({FailureClass.BAD_OUTPUT, FailureClass.POLICY})


def _book_failure(
    connection: Connection,
    runtime: SiteRuntime,
    attempt_id: str,
    step: Step,
    reading: Reading,
    failure: Failure,
) -> None:
    """Settle an answer that is none: one that names tokens was paid for, whatever it says else."""
    if reading.usage is None and not _is_paid(failure):
        book_unpaid(connection, attempt_id, failure)
    else:
        _book(connection, runtime, attempt_id, step, reading)


def book_unpaid(connection: Connection, attempt_id: str, failure: Failure) -> None:
    """Settle a call that failed without an answer."""
    if failure.failure_class is FailureClass.TRANSIENT:
        # A provider that fails inside may have counted the tokens: nobody refunds a guess.
        spend.keep_as_uncertain(connection, attempt_id)
    else:
        spend.release(connection, attempt_id)


def _book(
    connection: Connection, runtime: SiteRuntime, attempt_id: str, step: Step, reading: Reading
) -> None:
    """Settle the dollars; last in its transaction, since the rows of budgets are everybody's."""
    if reading.usage is None:
        # Paid, and the provider does not say how much: the reserved worst case stands.
        spend.settle_at_worst_case(connection, attempt_id)
    else:
        spend.settle(connection, attempt_id, runtime.prices.cost(step.model, reading.usage))


def _output_of(reading: Reading, step: Step) -> Any:
    """The parsed output, of a vector its description, or the Failure that stands in its place."""
    if reading.failure is not None:
        if reading.failure.failure_class is FailureClass.UNCERTAIN:
            return replace(reading.failure, failure_class=FailureClass.BAD_OUTPUT)
        return reading.failure
    try:
        if step.role is StepRole.EMBEDDING:
            vector = reading.vector or b""
            check(vector, model=step.model, dimensions=step.dimensions)
            return description(vector, step.model_identity)
        return parse_output(reading.text or "", step)
    except (NotAVector, NotOfSchema) as error:
        return Failure(
            failure_class=FailureClass.BAD_OUTPUT,
            message=f"step {step.name}: {error}",
            request_id=reading.request_id,
        )


def _go_on(
    connection: Connection,
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    values: dict[str, Any],
    attempt_id: str,
) -> PageJob:
    """To the next step, or, when the chain is whole, to the draft."""
    chain = runtime.chain
    if chain.next_step(values) is not None:
        return jobs.move(connection, job, PageJobState.QUEUED, lease=lease)
    try:
        rejected = chain.rejections(values)
        article = chain.article(values)
    except NotAnArticle as error:
        return _unfit(connection, runtime, job, lease, f"the outputs make no page: {error}")
    if rejected:
        return _unfit(connection, runtime, job, lease, f"rejected by {', '.join(rejected)}")
    output_hash = digest("article", article_json(article))
    revision = drafts.store(
        connection, job, attempt_id=attempt_id, article=article, output_hash=output_hash
    )
    return jobs.move(connection, job, PageJobState.GENERATED, lease=lease, revision=revision)


def _unfit(
    connection: Connection, runtime: SiteRuntime, job: PageJob, lease: Lease, why: str
) -> PageJob:
    failure = Failure(failure_class=FailureClass.INVALID_PAGE, message=why)
    return set_back(connection, runtime, job, lease, failure, AttemptKind.GENERATE)
