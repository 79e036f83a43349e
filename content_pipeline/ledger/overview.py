"""Overview: a site as a whole, and what one worker did, always read fresh from the ledger.

What belongs here: counts and sums. A single page is ``reports``'s.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, RowMapping, func, select

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import effects as site_effects
from content_pipeline.ledger import retirement, site_changes
from content_pipeline.ledger.publications import ON_THE_SITE
from content_pipeline.ledger.schema import (
    AttemptKind,
    EffectState,
    SpendState,
    attempts,
    effects,
    page_jobs,
    pages,
    rejected_rows,
    spend,
    topics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus:
    """A site at a glance."""

    topics: int
    """In the table."""
    retired_topics: int
    """No longer in it."""
    states: dict[PageJobState, int]
    failures: dict[FailureClass, int]
    """Current page jobs that wait or failed, by class."""
    live_pages: int
    site_changes: dict[SiteChange, int]
    """Pages that were changed on the site and wait for a decision, by kind of change."""
    oldest_due_s: float | None
    next_attempt_at: datetime | None
    pending_announcements: int
    failed_announcements: int
    """Hooks whose latest announcement failed for good."""
    rejected_rows: tuple[str, ...]


def site_status(connection: Connection, site: str) -> SiteStatus:
    """Counts of a site's current page jobs and what is left to do."""
    current = (
        select(page_jobs)
        .join(topics, topics.c.current_job_id == page_jobs.c.page_job_id)
        .where(topics.c.site == site)
        .subquery()
    )
    states = connection.execute(select(current.c.state, func.count()).group_by(current.c.state))
    failures = connection.execute(
        select(current.c.failure_class, func.count())
        .where(current.c.failure_class.is_not(None))
        .group_by(current.c.failure_class)
    )
    counts = {PageJobState(state): count for state, count in states}
    waiting = current.c.finished_at.is_(None)
    times = connection.execute(
        select(
            func.extract("epoch", func.now() - func.min(current.c.next_attempt_at)),
            func.min(current.c.next_attempt_at).filter(current.c.next_attempt_at > func.now()),
        ).where(waiting)
    ).one()
    announcements = {
        EffectState(state): count
        for state, count in connection.execute(
            select(effects.c.state, func.count())
            .where(effects.c.site == site, effects.c.page_id.is_(None))
            .group_by(effects.c.state)
        )
    }
    live = connection.execute(
        select(func.count()).select_from(pages).where(pages.c.site == site, ON_THE_SITE)
    ).scalar_one()
    retired = retirement.count(connection, site)
    rejected = connection.execute(
        select(rejected_rows.c.message)
        .where(rejected_rows.c.site == site)
        .order_by(rejected_rows.c.row_number)
    ).scalars()
    return SiteStatus(
        topics=sum(counts.values()) - retired,
        retired_topics=retired,
        states=counts,
        failures={FailureClass(name): count for name, count in failures},
        live_pages=live,
        site_changes=site_changes.waiting_by_kind(connection, site),
        oldest_due_s=None if times[0] is None else max(0.0, float(times[0])),
        next_attempt_at=times[1],
        pending_announcements=announcements.get(EffectState.PENDING, 0)
        + announcements.get(EffectState.IN_PROGRESS, 0),
        failed_announcements=len(site_effects.given_up(connection, site)),
        rejected_rows=tuple(rejected),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one worker did."""

    generate_attempts: int
    publish_attempts: int
    input_tokens: int
    output_tokens: int
    usd: Decimal
    uncertain_usd: Decimal


def work_of(connection: Connection, worker: str) -> Work:
    """The attempts that ``worker`` opened, and what they cost."""
    amount = func.coalesce(spend.c.settled_usd, spend.c.reserved_usd, 0)
    generating = attempts.c.kind == AttemptKind.GENERATE
    row = connection.execute(
        select(
            func.count().filter(generating),
            func.count().filter(attempts.c.kind == AttemptKind.PUBLISH),
            func.coalesce(func.sum(attempts.c.input_tokens), 0),
            func.coalesce(func.sum(attempts.c.output_tokens), 0),
            func.coalesce(func.sum(amount), 0),
            func.coalesce(func.sum(amount).filter(spend.c.state == SpendState.UNCERTAIN), 0),
        )
        .select_from(attempts)
        .outerjoin(spend, spend.c.attempt_id == attempts.c.attempt_id)
        .where(attempts.c.worker == worker)
    ).one()
    return Work(
        generate_attempts=row[0],
        publish_attempts=row[1],
        input_tokens=row[2],
        output_tokens=row[3],
        usd=row[4],
        uncertain_usd=row[5],
    )


def uncertain_calls(connection: Connection, site: str) -> list[RowMapping]:
    """Paid calls that may have been billed and that nobody could ask about, oldest first."""
    return list(
        connection.execute(
            select(
                attempts.c.attempt_id,
                attempts.c.page_job_id,
                attempts.c.number,
                attempts.c.started_at,
                attempts.c.model,
                attempts.c.state,
                attempts.c.failure_message,
                attempts.c.request_id,
                page_jobs.c.topic_key,
                page_jobs.c.state.label("job_state"),
                spend.c.reserved_usd,
            )
            .join(spend, spend.c.attempt_id == attempts.c.attempt_id)
            .join(page_jobs, page_jobs.c.page_job_id == attempts.c.page_job_id)
            .where(spend.c.site == site, spend.c.state == SpendState.UNCERTAIN)
            .order_by(attempts.c.started_at)
        ).mappings()
    )
