"""Validate: hold a stored draft against the site's rules. Costs nothing and can be repeated."""

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.validation import Finding, validate_article
from content_pipeline.ledger import drafts, jobs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import set_back

SHOWN_FINDINGS = 5
"""Enough to see what is wrong; a page that breaks 40 rules has one cause."""


def validate(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``generated`` or ``validating`` → ``ready_to_publish``, or failed with the findings."""
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
        if findings:
            failure = Failure(failure_class=FailureClass.INVALID_PAGE, message=_summary(findings))
            return set_back(connection, runtime, job, lease, failure, AttemptKind.GENERATE)
        job = jobs.move(connection, job, PageJobState.READY_TO_PUBLISH, lease=lease)
    runtime.on_checkpoint("draft_validated")
    return job


def _summary(findings: tuple[Finding, ...]) -> str:
    shown = "; ".join(str(finding) for finding in findings[:SHOWN_FINDINGS])
    more = len(findings) - SHOWN_FINDINGS
    return f"{shown}; and {more} more" if more > 0 else shown
