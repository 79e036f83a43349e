"""What a plan is made from: how each topic's page stands, and what earlier calls came to.

What belongs here: reading, in few statements for a whole site. What follows from it is decided in
``core.planning`` and ``core.forecast``.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, exists, func, or_, select

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.forecast import StepHistory
from content_pipeline.core.planning import Stand
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.schema import (
    AttemptKind,
    AttemptState,
    TopicStatus,
    attempts,
    page_jobs,
    pages,
    rejected_drafts,
    spend,
    topics,
)

LAST_CALLS = 200
"""Of a step and model: enough for a mean within 2 % at the spread of real pages, and recent."""


def now(connection: Connection) -> datetime:
    """The time on the database's clock."""
    at: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return at


def wanted_jobs(connection: Connection, site: str) -> dict[str, str]:
    """Topic key → the page job that it wants at present."""
    rows = connection.execute(
        select(topics.c.topic_key, topics.c.current_job_id).where(
            topics.c.site == site, topics.c.status != TopicStatus.RETIRED
        )
    )
    return {row.topic_key: row.current_job_id for row in rows}


def stands(connection: Connection, site: str) -> list[Stand]:
    """How the page of each topic stands, in the order of the table.

    With those of retired topics that are to be taken off the site.
    """
    return [_stand(row) for row in connection.execute(_stands(site))]


def _stands(site: str) -> Select[Any]:
    shown = page_jobs.alias("shown")
    spent = (
        select(
            spend.c.page_job_id,
            func.sum(func.coalesce(spend.c.settled_usd, spend.c.reserved_usd)).label("usd"),
        )
        .where(spend.c.site == site)
        .group_by(spend.c.page_job_id)
        .subquery()
    )
    is_wanted = or_(
        topics.c.status != TopicStatus.RETIRED, page_jobs.c.state == PageJobState.WITHDRAWING
    )
    return (
        select(
            page_jobs,
            topics.c.status.label("topic_status"),
            pages.c.first_public_at,
            shown.c.input_hash.label("shown_input_hash"),
            shown.c.generation_version.label("shown_version"),
            func.coalesce(spent.c.usd, 0).label("spent_usd"),
            (page_jobs.c.next_attempt_at <= func.clock_timestamp()).label("is_due"),
            exists()
            .where(rejected_drafts.c.page_job_id == page_jobs.c.page_job_id)
            .where(rejected_drafts.c.is_asked_again)
            .label("is_asked_again"),
        )
        .join(topics, topics.c.current_job_id == page_jobs.c.page_job_id)
        .outerjoin(pages, pages.c.page_id == page_jobs.c.page_id)
        .outerjoin(
            shown,
            and_(shown.c.page_id == page_jobs.c.page_id, shown.c.state == PageJobState.PUBLISHED),
        )
        .outerjoin(spent, spent.c.page_job_id == page_jobs.c.page_job_id)
        .where(topics.c.site == site, is_wanted)
        .order_by(topics.c.row_number, topics.c.topic_key)
    )


def _stand(row: Row[Any]) -> Stand:
    may_wait = row.state in (PageJobState.QUEUED, PageJobState.READY_TO_PUBLISH)
    return Stand(
        topic_key=row.topic_key,
        page_job_id=row.page_job_id,
        page_id=row.page_id,
        state=PageJobState(row.state),
        is_rejected=row.topic_status == TopicStatus.REJECTED,
        failure_class=FailureClass(row.failure_class) if row.failure_class else None,
        is_due=row.is_due,
        was_released=row.epoch > 1,
        was_public=row.first_public_at is not None,
        waits_for_turn=may_wait and row.failure_class is None and row.failure_message is not None,
        has_draft=row.revision is not None,
        nonce=row.nonce,
        input_hash=row.input_hash,
        generation_version=row.generation_version,
        shown_input_hash=row.shown_input_hash,
        shown_version=row.shown_version,
        spent_usd=row.spent_usd,
        is_asked_again=row.is_asked_again,
        input_columns=row.input_columns,
    )


def history(connection: Connection, site: str) -> list[StepHistory]:
    """What the last paid calls of each step and model of ``site`` came to."""
    paid = (
        select(
            attempts,
            func.row_number()
            .over(
                partition_by=(attempts.c.step, attempts.c.model),
                order_by=attempts.c.started_at.desc(),
            )
            .label("age"),
        )
        .join(page_jobs, page_jobs.c.page_job_id == attempts.c.page_job_id)
        .where(page_jobs.c.site == site, attempts.c.kind == AttemptKind.GENERATE)
        .where(attempts.c.output_tokens.is_not(None))
        .subquery()
    )
    call = paid.c
    good = call.state == AttemptState.SUCCEEDED
    rows = connection.execute(
        select(
            call.step,
            call.model,
            func.count().label("calls"),
            func.count(call.page_job_id.distinct()).label("page_jobs"),
            *(
                func.avg(column).filter(good).label(column.name)
                for column in (call.input_tokens, call.cached_tokens, call.output_tokens)
            ),
            func.avg(call.prompt_bytes).filter(good).label("prompt_bytes"),
            func.avg(call.latency_s).filter(good).label("latency_s"),
        )
        .where(call.age <= LAST_CALLS)
        .group_by(call.step, call.model)
        .having(func.count().filter(good) > 0)
        .order_by(call.step, call.model)
    )
    return [
        StepHistory(
            step=row.step,
            model=row.model,
            calls=row.calls,
            page_jobs=row.page_jobs,
            input_tokens=float(row.input_tokens),
            cached_tokens=float(row.cached_tokens or 0),
            output_tokens=float(row.output_tokens),
            prompt_bytes=None if row.prompt_bytes is None else float(row.prompt_bytes),
            latency_s=None if row.latency_s is None else float(row.latency_s),
        )
        for row in rows
    ]
