"""Failed pages: the pages of a site that need a person, grouped by what they have in common.

What belongs here: reading them. Only current page jobs count: what the table no longer wants needs
nobody. What to do about them is ``operations.repair``'s.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, exists, or_, select

from content_pipeline.core.causes import Cause, cause_of
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import NEEDS_PERSON
from content_pipeline.ledger.schema import (
    AttemptKind,
    TopicStatus,
    attempts,
    page_jobs,
    topics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPage:
    """One page that needs a person."""

    topic_key: str
    page_job_id: str
    message: str
    failed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedGroup:
    """All failed pages of one cause, in table order."""

    cause: Cause
    pages: tuple[FailedPage, ...]


def by_cause(connection: Connection, site: str) -> list[FailedGroup]:
    """The site's failed pages by cause, the largest group first."""
    withdrawal = (
        exists()
        .where(attempts.c.page_job_id == page_jobs.c.page_job_id)
        .where(attempts.c.kind == AttemptKind.WITHDRAW)
    )
    rows = connection.execute(
        select(
            page_jobs.c.page_job_id,
            page_jobs.c.topic_key,
            page_jobs.c.failure_class,
            page_jobs.c.failure_message,
            page_jobs.c.finished_at,
        )
        .join(topics, topics.c.current_job_id == page_jobs.c.page_job_id)
        .where(topics.c.site == site, page_jobs.c.state.in_(NEEDS_PERSON))
        # A page that nobody wants any more needs somebody only where it refuses to go.
        .where(or_(topics.c.status != TopicStatus.RETIRED, withdrawal))
        .order_by(topics.c.row_number, topics.c.topic_key)
    )
    groups: defaultdict[Cause, list[FailedPage]] = defaultdict(list)
    for row in rows:
        cause = cause_of(FailureClass(row.failure_class), row.failure_message)
        groups[cause].append(
            FailedPage(
                topic_key=row.topic_key,
                page_job_id=row.page_job_id,
                message=row.failure_message,
                failed_at=row.finished_at,
            )
        )
    found = [FailedGroup(cause=cause, pages=tuple(pages)) for cause, pages in groups.items()]
    return sorted(found, key=lambda group: (-len(group.pages), group.cause.fingerprint))


def of_cause(connection: Connection, site: str, fingerprint: str) -> FailedGroup | None:
    """The site's failed pages of one cause; None when there are none (any more)."""
    groups = by_cause(connection, site)
    return next((group for group in groups if group.cause.fingerprint == fingerprint), None)
