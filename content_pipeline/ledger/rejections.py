"""Rejections: drafts that broke a rule of their site, with what was found, kept for good.

What belongs here: recording and reading them. Whether another draft is asked for is decided in
``operations.validate``; findings never quote what the model wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.validation import Finding
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import rejected_drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One draft that broke rules."""

    revision: int
    findings: tuple[Finding, ...]
    is_asked_again: bool
    """Whether another draft was asked for, with these findings."""
    at: datetime


def record(
    connection: Connection, job: PageJob, findings: Sequence[Finding], *, is_asked_again: bool
) -> None:
    """Keep what was found in the job's draft; the same draft checked again keeps the newest."""
    assert job.revision is not None
    rejecting = upsert(rejected_drafts).values(
        page_job_id=job.page_job_id,
        revision=job.revision,
        findings=[{"rule": finding.rule, "detail": finding.detail} for finding in findings],
        is_asked_again=is_asked_again,
    )
    connection.execute(
        rejecting.on_conflict_do_update(
            index_elements=[rejected_drafts.c.page_job_id, rejected_drafts.c.revision],
            set_={"findings": rejecting.excluded.findings},
        )
    )


def of_job(connection: Connection, page_job_id: str) -> list[Rejection]:
    """All rejected drafts of a page job, oldest first."""
    rows = connection.execute(
        select(rejected_drafts)
        .where(rejected_drafts.c.page_job_id == page_job_id)
        .order_by(rejected_drafts.c.revision)
    )
    return [
        Rejection(
            revision=row.revision,
            findings=tuple(Finding(**finding) for finding in row.findings),
            is_asked_again=row.is_asked_again,
            at=row.created_at,
        )
        for row in rows
    ]
