"""Generate: reserve the worst case, make the paid call once, keep its answer, make a draft of it.

What belongs here: the way from ``queued`` to ``generated`` when nothing is lost. What a call came
to whose answer was lost is settled in ``recover``, which takes answers through ``take_answer``.
"""

from dataclasses import replace

from sqlalchemy import Connection

from content_pipeline.core.article import (
    SCHEMA_NAME,
    Article,
    NotAnArticle,
    article_json,
    article_schema,
    parse_article,
)
from content_pipeline.core.errors import BudgetExhausted, CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import digest
from content_pipeline.core.money import Usage, input_token_bound
from content_pipeline.core.ports import GenerationRequest, RawResponse, Reading
from content_pipeline.core.prompts import SYSTEM_PROMPT, PromptError, render_prompt
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, drafts, jobs, spend
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import set_back

FIRST_LOOK_S = 1.0
"""A lost answer is looked for this soon; most lost connections hide a finished call."""

SPREAD_S = 60.0
"""Pages that wait for a new day's budget come back over this long, not all in one instant."""


def reserve(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``queued`` → ``reserved``: the next call's worst case is set aside, or the page waits."""
    try:
        request = build_request(runtime, job, attempt_id="")
    except PromptError as error:
        failure = Failure(failure_class=FailureClass.INVALID_INPUT, message=str(error))
        with runtime.ledger.fenced(lease) as connection:
            return jobs.move(
                connection, job, PageJobState.FAILED_TERMINAL, lease=lease, failure=failure
            )
    sent = input_token_bound(request.system, request.user, str(request.schema))
    bound = Usage(
        input_tokens=sent,
        cache_write_tokens=sent,
        output_tokens=request.max_output_tokens,
    )
    worst_case = runtime.prices.cost(request.model, bound)
    try:
        with runtime.ledger.fenced(lease, repeatable=True) as connection:
            number = attempts.next_number(connection, job.page_job_id, AttemptKind.GENERATE)
            reserved = jobs.move(connection, job, PageJobState.RESERVED, lease=lease)
            spend.reserve(
                connection,
                attempt_id=attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number),
                page_job_id=job.page_job_id,
                site=job.site,
                worst_case_usd=worst_case,
                caps=runtime.caps,
            )
        return reserved
    except BudgetExhausted as exhausted:
        return _out_of_money(runtime, job, lease, exhausted)


def _out_of_money(
    runtime: SiteRuntime, job: PageJob, lease: Lease, exhausted: BudgetExhausted
) -> PageJob:
    failure = Failure(failure_class=FailureClass.BUDGET, message=str(exhausted))
    with runtime.ledger.fenced(lease) as connection:
        if isinstance(exhausted, spend.PageBudgetExhausted):
            return jobs.move(
                connection, job, PageJobState.DEAD_LETTERED, lease=lease, failure=failure
            )
        wait_s = spend.seconds_to_next_day(connection) + SPREAD_S * runtime.random()
        return jobs.move(
            connection,
            job,
            PageJobState.FAILED_RETRYABLE,
            lease=lease,
            failure=failure,
            wait_s=wait_s,
        )


def generate(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``reserved`` → ``generated``, or to where the call's failure leads."""
    try:
        with runtime.call_slots:
            job, attempt_id = _intend_call(runtime, job, lease)
            runtime.on_checkpoint("call_intended")
            raw = runtime.model.send(build_request(runtime, job, attempt_id))
    except CallFailed as failed:
        return _record_failed_call(runtime, job, lease, attempt_id, failed.failure)
    runtime.on_checkpoint("call_answered")
    with runtime.ledger.begin() as connection:
        attempts.save_response(connection, attempt_id, raw)
    runtime.on_checkpoint("answer_saved")
    unreadable = why_unreadable(runtime, raw)
    if unreadable is not None:
        return _record_failed_call(runtime, job, lease, attempt_id, unreadable)
    return take_answer(runtime, job, lease, attempt_id, raw, recovered=False)


def why_unreadable(runtime: SiteRuntime, raw: RawResponse) -> Failure | None:
    """Why a saved answer does not even say whether it is one (a proxy's page, a cut body)."""
    failure = runtime.model.read(raw).failure
    uncertain = failure is not None and failure.failure_class is FailureClass.UNCERTAIN
    return failure if uncertain else None


def _intend_call(runtime: SiteRuntime, job: PageJob, lease: Lease) -> tuple[PageJob, str]:
    """Commit the intent; the job as it stands then, and the attempt's id."""
    settings = runtime.site.generation
    with runtime.ledger.fenced(lease) as connection:
        number = attempts.next_number(connection, job.page_job_id, AttemptKind.GENERATE)
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.GENERATE,
            number=number,
            worker=runtime.worker,
            run_id=runtime.run_id,
            model=settings.model,
            answer_within_s=settings.deadline_s + settings.answer_slack_s,
        )
        return jobs.move(connection, job, PageJobState.GENERATING, lease=lease), attempt_id


def build_request(runtime: SiteRuntime, job: PageJob, attempt_id: str) -> GenerationRequest:
    """The paid call for ``job``, from its own snapshot of the input."""
    settings, article = runtime.site.generation, runtime.site.article
    facts = {
        label: job.input_columns[column]
        for column, label in article.facts.items()
        if job.input_columns.get(column)
    }
    return GenerationRequest(
        attempt_id=attempt_id,
        page_job_id=job.page_job_id,
        model=settings.model,
        system=SYSTEM_PROMPT,
        user=render_prompt(runtime.prompt_template, job.input_columns, facts),
        schema_name=SCHEMA_NAME,
        schema=article_schema(),
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
        deadline_s=settings.deadline_s,
    )


def _record_failed_call(
    runtime: SiteRuntime, job: PageJob, lease: Lease, attempt_id: str, failure: Failure
) -> PageJob:
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
        if failure.failure_class is FailureClass.TRANSIENT:
            # A provider that fails inside may have counted the tokens: nobody refunds a guess.
            spend.keep_as_uncertain(connection, attempt_id)
        else:
            spend.release(connection, attempt_id)
        return set_back(connection, runtime, job, lease, failure, AttemptKind.GENERATE)


def take_answer(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    attempt_id: str,
    raw: RawResponse,
    *,
    recovered: bool,
) -> PageJob:
    """Book a saved answer and make a draft of it, or record why it is none.

    Works from ``generating`` and from ``generation_uncertain``; costs nothing, so a crash repeats
    it. An answer that stays unreadable when the provider itself hands it out is a useless one.
    """
    reading = runtime.model.read(raw)
    article = _article_of(reading)
    with runtime.ledger.fenced(lease, repeatable=True) as connection:
        if isinstance(article, Failure):
            attempts.fail(connection, attempt_id, article, reading=reading)
            job = set_back(connection, runtime, job, lease, article, AttemptKind.GENERATE)
            _book(connection, runtime, attempt_id, reading)
            return job
        output_hash = digest("article", article_json(article))
        revision = drafts.store(
            connection, job, attempt_id=attempt_id, article=article, output_hash=output_hash
        )
        attempts.succeed(
            connection,
            attempt_id,
            revision=revision,
            output_hash=output_hash,
            recovered=recovered,
            reading=reading,
        )
        job = jobs.move(connection, job, PageJobState.GENERATED, lease=lease, revision=revision)
        _book(connection, runtime, attempt_id, reading)
    runtime.on_checkpoint("draft_stored")
    return job


def _book(connection: Connection, runtime: SiteRuntime, attempt_id: str, reading: Reading) -> None:
    """Settle a paid answer; last in its transaction, for all pages share the day's budget row."""
    if reading.usage is None:
        # Paid, and the provider does not say how much: the reserved worst case stands.
        spend.settle_at_worst_case(connection, attempt_id)
    else:
        cost = runtime.prices.cost(runtime.site.generation.model, reading.usage)
        spend.settle(connection, attempt_id, cost)


def _article_of(reading: Reading) -> Article | Failure:
    """The article, or the failure that stands in its place."""
    if reading.failure is not None:
        if reading.failure.failure_class is FailureClass.UNCERTAIN:
            return replace(reading.failure, failure_class=FailureClass.BAD_OUTPUT)
        return reading.failure
    try:
        return parse_article(reading.text or "")
    except NotAnArticle as error:
        return Failure(
            failure_class=FailureClass.BAD_OUTPUT,
            message=str(error),
            request_id=reading.request_id,
        )
