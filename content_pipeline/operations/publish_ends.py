"""How a try to publish ends: each end put on record in one transaction.

What belongs here: a try, and the moves of its job, attempt and effect together. Whether an end is
the right one is decided in ``publish`` and ``reconcile``.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from content_pipeline.core.cms import Document, RemotePage
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.publishing import OFF_THE_SITE, PublishDecision, SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    attempts,
    effects,
    jobs,
    publications,
    resting,
    retirement,
    site_changes,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, EffectState
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed, set_back

CONFIRMED_EXISTING = "confirmed_existing"
"""Outcome of a publish that found its revision already in place and wrote nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTry:
    """One attempt to put one document in place, with the rights and records it works under."""

    runtime: SiteRuntime
    lease: Lease
    document: Document
    attempt_id: str
    effect_key: str
    remote_id: str | None
    """The CMS's id of the page, or of a draft that was made for it and not published yet."""


def call_uncertain(this_try: PublishTry, job: PageJob, failure: Failure, wait_s: float) -> PageJob:
    """The write may have taken effect: nothing is sent before the CMS has been asked."""
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        attempts.leave_uncertain(connection, this_try.attempt_id, failure)
        effects.mark(connection, this_try.effect_key, EffectState.UNCERTAIN, failure, wait_s=wait_s)
        return jobs.move(
            connection,
            job,
            PageJobState.PUBLISH_UNCERTAIN,
            lease=this_try.lease,
            failure=failure,
            wait_s=wait_s,
        )


def not_written(this_try: PublishTry, job: PageJob, failure: Failure) -> PageJob:
    """Nothing was written: the page waits or fails, and everybody heeds what the CMS said."""
    runtime, lease = this_try.runtime, this_try.lease
    heed(runtime, runtime.cms_route, failure)
    with runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        job = set_back(connection, runtime, job, lease, failure, AttemptKind.PUBLISH)
        waits = job.state is PageJobState.FAILED_RETRYABLE
        state = EffectState.PENDING if waits else EffectState.FAILED
        effects.mark(connection, this_try.effect_key, state, failure)
    return job


def conflict(
    this_try: PublishTry, job: PageJob, decision: PublishDecision, page: RemotePage | None
) -> PageJob:
    """The site was changed by somebody: nothing is written, and a person decides."""
    failure = Failure(failure_class=FailureClass.CONFLICT, message=decision.reason)
    runtime = this_try.runtime
    with runtime.ledger.fenced(this_try.lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        effects.mark(connection, this_try.effect_key, EffectState.FAILED, failure)
        assert decision.change is not None
        note_change(connection, runtime, job, decision.change, decision.reason, page)
        return jobs.move(
            connection, job, PageJobState.FAILED_TERMINAL, lease=this_try.lease, failure=failure
        )


def note_change(
    connection: Connection,
    runtime: SiteRuntime,
    job: PageJob,
    change: SiteChange,
    reason: str,
    page: RemotePage | None,
) -> None:
    """Put a change on record; a page that is off the site is announced no more."""
    new = site_changes.record(connection, job.page_id, change, reason, page=page, by=runtime.worker)
    if new and job.baseline is not None and change in OFF_THE_SITE:
        effects.want_for_site(connection, job.site, runtime.hook_delays_s, job.owner)


def left_as_it_is(
    this_try: PublishTry, job: PageJob, decision: PublishDecision, page: RemotePage | None
) -> PageJob:
    """The site's policy lets the change stand: this revision is never written."""
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        why = f"by the site's policy: {decision.reason}"
        site_changes.keep_theirs(
            connection, job.page_id, page=page, by=this_try.runtime.worker, why=why
        )
    return superseded(this_try, job, decision.reason)


def superseded(this_try: PublishTry, job: PageJob, reason: str) -> PageJob:
    """The CMS holds a newer revision of ours: this one is never written."""
    failure = Failure(failure_class=FailureClass.TERMINAL, message=reason)
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        effects.mark(connection, this_try.effect_key, EffectState.FAILED, failure)
        return jobs.move(connection, job, PageJobState.SUPERSEDED, lease=this_try.lease)


def prove(this_try: PublishTry, job: PageJob, page: RemotePage, outcome: str) -> PageJob:
    """The CMS shows the revision: record it with all that follows, in one transaction."""
    runtime, marker = this_try.runtime, this_try.document.marker
    # A page that comes back to the site is news as well, though its text is what it was.
    changed = job.published_content_hash != marker.content_hash or job.is_off_the_site
    with runtime.ledger.fenced(this_try.lease) as connection:
        publications.record_proved(connection, job, this_try.document, page)
        older = publications.supersede_older(connection, job, runtime.worker)
        effects.finish(
            connection, this_try.effect_key, outcome=outcome, result_reference=page.remote_id
        )
        attempts.succeed(
            connection,
            this_try.attempt_id,
            revision=marker.revision,
            output_hash=marker.content_hash,
            recovered=outcome == CONFIRMED_EXISTING,
        )
        job = jobs.move(connection, job, PageJobState.PUBLISHED, lease=this_try.lease)
        if changed:
            effects.want_for_site(connection, job.site, runtime.hook_delays_s, job.owner)
        # Settled late: meanwhile its topic may have left the table, or want the draft it replaced.
        resting.take_up_wanted(connection, older, worker=runtime.worker)
        if retirement.is_to_go(connection, job, runtime.site.topics) and resting.take_off(
            connection, job.page_job_id, worker=runtime.worker
        ):
            job = jobs.load(connection, job.page_job_id)
    runtime.on_checkpoint("page_proved")
    return job
