"""Validate: hold a stored draft against the site's rules. Costs nothing and can be repeated.

What belongs here: applying the rules, and what becomes of a draft that breaks one.
"""

from sqlalchemy import Connection

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.validation import Finding, validate_article
from content_pipeline.ledger import drafts, jobs, rejections
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import give_up
from content_pipeline.operations.similarity import similarity_findings

SHOWN_FINDINGS = 5
"""Enough to see what is wrong; a page that breaks 40 rules has one cause."""


def validate(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generated`` or ``validating`` → ``ready_to_publish``, or rejected with the findings."""
    settings = runtime.site.article
    with runtime.ledger.fenced(lease, repeatable=True) as connection:
        if job.state is PageJobState.GENERATED:
            job = jobs.move(connection, job, PageJobState.VALIDATING, lease=lease)
        article = drafts.load(connection, job)
        findings = validate_article(
            article,
            rules=settings.rules,
            must_state={
                settings.facts[column]: job.input_columns[column]
                for column in settings.must_state
                if job.input_columns.get(column)
            },
        )
        findings = findings or similarity_findings(connection, runtime, job)
        if findings:
            return _reject(connection, runtime, job, lease, findings)
        job = jobs.move(connection, job, PageJobState.READY_TO_PUBLISH, lease=lease)
    runtime.on_checkpoint("draft_validated")
    return job


def _reject(
    connection: Connection,
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    findings: tuple[Finding, ...],
) -> PageJob:
    """Ask once more with the findings, where the site pays for that; else hand to a person.

    Never the same question again, whatever the retry policy says: it would break the same rules.
    """
    failure = Failure(failure_class=FailureClass.INVALID_PAGE, message=_summary(findings))
    earlier = rejections.of_job(connection, job.page_job_id)
    asked = sum(draft.is_asked_again for draft in earlier)
    asks_again = asked < runtime.site.article.regenerations
    rejections.record(connection, job, findings, is_asked_again=asks_again)
    if asks_again:
        return jobs.move(connection, job, PageJobState.QUEUED, lease=lease, failure=failure)
    return give_up(connection, job, lease, failure, dead_letter=asked > 0)


def _summary(findings: tuple[Finding, ...]) -> str:
    shown = "; ".join(str(finding) for finding in findings[:SHOWN_FINDINGS])
    more = len(findings) - SHOWN_FINDINGS
    return f"{shown}; and {more} more" if more > 0 else shown
