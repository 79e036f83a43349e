"""Withdraw: take the page of a retired topic off the site, and prove that it is gone.

What belongs here: the way from ``withdrawing`` to ``withdrawn``. Doing it twice is harmless, so a
lost answer needs no quiet period: the CMS is looked at, and what still shows is taken off again. A
page that somebody changed since is a person's to decide about.
"""

from content_pipeline.core.cms import PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import Reaction, SiteChange, change_of, standing_of
from content_pipeline.core.retries import RetryAfter, decide
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, deadlines, effects, jobs, publications, site_changes
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, SiteEventKind
from content_pipeline.operations.publish import look_at, note_change, why_unknown
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import give_up, heed
from content_pipeline.operations.twins import remove_twins

_GONE = frozenset({RemoteStatus.HIDDEN, RemoteStatus.TRASHED})


def withdraw(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``withdrawing`` → ``withdrawn``, or to where the CMS's answer leads."""
    if not job.topic_is_retired:
        with runtime.ledger.fenced(lease) as connection:
            return jobs.move(connection, job, PageJobState.READY_TO_PUBLISH, lease=lease)
    look = look_at(runtime, job, job.remote_id)
    if look.verdict is Verdict.UNKNOWN:
        return _not_yet(runtime, job, lease, None, why_unknown(look))
    remove_twins(runtime, job, look)
    if _is_gone(look, job.page_id):
        return _withdrawn(runtime, job, lease, None)
    assert look.page is not None
    found = change_of(look.page, page_id=job.page_id, path=job.path, baseline=job.baseline)
    if found is not None and job.may_overwrite != standing_of(look.page):
        change, reason = found
        if runtime.site.site_changes.to(change) is Reaction.LEAVE:
            return _withdrawn(runtime, job, lease, None)
        if runtime.site.site_changes.to(change) is Reaction.ASK:
            return _changed(runtime, job, lease, change, reason, look.page)
    return _take_off(runtime, job, lease, look.page)


def _is_gone(look: PageLookUp, page_id: str) -> bool:
    """Whether visitors see nothing of ours."""
    page = look.page
    if page is None or page.status in _GONE:
        return True
    return page.marker is None or page.marker.page_id != page_id


def _take_off(runtime: SiteRuntime, job: PageJob, lease: Lease, page: RemotePage) -> PageJob:
    with runtime.ledger.fenced(lease) as connection:
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.WITHDRAW,
            number=attempts.next_number(connection, job.page_job_id, AttemptKind.WITHDRAW),
            worker=runtime.worker,
            run_id=runtime.run_id,
            step=AttemptKind.WITHDRAW,
        )
    runtime.on_checkpoint("withdrawal_intended")
    try:
        runtime.cms.withdraw(page)
    except CallFailed as failed:
        return _not_yet(runtime, job, lease, attempt_id, failed.failure)
    runtime.on_checkpoint("page_withdrawn")
    look = look_at(runtime, job, page.remote_id)
    if look.verdict is not Verdict.UNKNOWN and _is_gone(look, job.page_id):
        return _withdrawn(runtime, job, lease, attempt_id)
    failure = look.failure or Failure(
        failure_class=FailureClass.TRANSIENT,
        message=f"the CMS accepted to take {page.path} off the site and still shows it",
    )
    return _not_yet(runtime, job, lease, attempt_id, failure)


def _not_yet(
    runtime: SiteRuntime, job: PageJob, lease: Lease, attempt_id: str | None, failure: Failure
) -> PageJob:
    """Look again later, or leave it to a person once the tries are used up."""
    heed(runtime, runtime.cms_route, failure)
    with runtime.ledger.fenced(lease) as connection:
        if attempt_id is not None:
            attempts.fail(connection, attempt_id, failure)
        failed = attempts.failed_tries(connection, job, AttemptKind.WITHDRAW, failure.failure_class)
        decision = decide(
            failure,
            failed_attempts=max(1, failed.count),
            policies=runtime.site.retries,
            jitter=runtime.random(),
            failing_for_s=failed.since_s,
            page_left_s=deadlines.left_s(connection, job.page_job_id),
        )
        if failure.failure_class is FailureClass.CONFLICT:
            job = jobs.postpone(connection, job, 0, failure)  # one look away from known
        elif isinstance(decision, RetryAfter):
            job = jobs.postpone(connection, job, decision.wait_s, failure)
        else:
            job = give_up(connection, job, lease, failure, dead_letter=decision.dead_letter)
    return job


def _changed(
    runtime: SiteRuntime,
    job: PageJob,
    lease: Lease,
    change: SiteChange,
    reason: str,
    page: RemotePage,
) -> PageJob:
    failure = Failure(
        failure_class=FailureClass.CONFLICT,
        message=f"its topic is retired and the page was to be taken off the site, but {reason}",
    )
    with runtime.ledger.fenced(lease) as connection:
        note_change(connection, runtime, job, change, reason, page)
        return jobs.move(
            connection, job, PageJobState.FAILED_TERMINAL, lease=lease, failure=failure
        )


def _withdrawn(runtime: SiteRuntime, job: PageJob, lease: Lease, attempt_id: str | None) -> PageJob:
    """Record what was proved with all that follows, in one transaction."""
    with runtime.ledger.fenced(lease) as connection:
        if attempt_id is not None:
            attempts.succeed(connection, attempt_id, revision=job.revision, output_hash="")
        publications.record_withdrawn(connection, job.page_id)
        site_changes.log(
            connection,
            job.site,
            job.page_id,
            SiteEventKind.WITHDRAWN,
            "its topic is retired: visitors see the page no more",
            by=runtime.worker,
        )
        job = jobs.move(connection, job, PageJobState.WITHDRAWN, lease=lease)
        effects.want_for_site(connection, job.site, runtime.hook_delays_s, job.owner)
    runtime.on_checkpoint("withdrawal_proved")
    return job
