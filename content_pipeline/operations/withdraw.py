"""Withdraw: take the page of a retired topic off the site, and prove that it is gone.

What belongs here: the way from ``withdrawing`` to ``withdrawn``. Doing it twice is harmless, so a
lost answer needs no quiet period: the CMS is looked at, and what still shows is taken off again. A
page that somebody changed since is a person's to decide about.
"""

from dataclasses import dataclass

from content_pipeline.core.cms import PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import Reaction, SiteChange, change_of, standing_of
from content_pipeline.core.retries import RetryAfter, decide
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    attempts,
    deadlines,
    effects,
    jobs,
    publications,
    resting,
    site_changes,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, SiteEventKind
from content_pipeline.operations.publish import look_at, why_unknown
from content_pipeline.operations.publish_ends import note_change
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import give_up, heed
from content_pipeline.operations.twins import remove_twins

_GONE = frozenset({RemoteStatus.HIDDEN, RemoteStatus.TRASHED})

GONE = "visitors see the page no more"

LOOK_AGAIN_S = 1.0
"""At least so long until the CMS is asked again about a page that it still shows."""

LOST_RACES = 3
"""So often a page may change between our look and our request before a person should look at it."""

_STOPPED = Failure(
    failure_class=FailureClass.UNCERTAIN,
    message="the worker stopped while taking the page off; the CMS is asked what it shows",
)


def withdraw(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``withdrawing`` → ``withdrawn``, or to where the CMS's answer leads."""
    this_try = _intended(runtime, job, lease)
    if this_try is None:
        with runtime.ledger.fenced(lease) as connection:
            return jobs.move(connection, job, PageJobState.READY_TO_PUBLISH, lease=lease)
    look = look_at(runtime, job, job.remote_id)
    if look.verdict is Verdict.UNKNOWN:
        return _not_yet(this_try, job, why_unknown(look))
    remove_twins(runtime, job, look)
    if _is_gone(look, job.page_id):
        return _withdrawn(this_try, job, GONE)
    assert look.page is not None
    if not job.topic_is_retired:
        return _put_back(this_try, job)
    found = change_of(look.page, page_id=job.page_id, path=job.path, baseline=job.baseline)
    if found is not None and job.may_overwrite != standing_of(look.page):
        change, reason = found
        if runtime.site.site_changes.to(change) is Reaction.LEAVE:
            return _withdrawn(this_try, job, f"by the site's policy theirs stays: {reason}")
        if runtime.site.site_changes.to(change) is Reaction.ASK:
            return _changed(this_try, job, change, reason, look.page)
    return _take_off(this_try, job, look.page)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithdrawTry:
    """One attempt to take one page off the site, with the rights it works under."""

    runtime: SiteRuntime
    lease: Lease
    attempt_id: str


def _intended(runtime: SiteRuntime, job: PageJob, lease: Lease) -> _WithdrawTry | None:
    """The attempt, its intent on record; None when the topic is back and nothing was tried yet.

    An attempt that a worker left open may have taken the page off: it is settled by this one.
    """
    with runtime.ledger.fenced(lease) as connection:
        number = attempts.next_number(connection, job.page_job_id, AttemptKind.WITHDRAW)
        tried = attempts.of_epoch(connection, job, AttemptKind.WITHDRAW)
        if not job.topic_is_retired and not tried.count:
            return None
        for attempt_id in tried.left_open:
            attempts.fail(connection, attempt_id, _STOPPED)
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.WITHDRAW,
            number=number,
            worker=runtime.worker,
            run_id=runtime.run_id,
            step=AttemptKind.WITHDRAW,
        )
    runtime.on_checkpoint("withdrawal_intended")
    return _WithdrawTry(runtime=runtime, lease=lease, attempt_id=attempt_id)


def _is_gone(look: PageLookUp, page_id: str) -> bool:
    """Whether visitors see nothing of ours."""
    page = look.page
    if page is None or page.status in _GONE:
        return True
    return page.marker is None or page.marker.page_id != page_id


def _take_off(this_try: _WithdrawTry, job: PageJob, page: RemotePage) -> PageJob:
    runtime = this_try.runtime
    try:
        runtime.cms.withdraw(page)
    except CallFailed as failed:
        if failed.failure.failure_class is not FailureClass.UNCERTAIN:
            return _not_yet(this_try, job, failed.failure)
    runtime.on_checkpoint("page_withdrawn")
    look = look_at(runtime, job, page.remote_id)
    if look.verdict is not Verdict.UNKNOWN and _is_gone(look, job.page_id):
        return _withdrawn(this_try, job, GONE)
    failure = look.failure or Failure(
        failure_class=FailureClass.TRANSIENT,
        message=f"{page.path} was to be taken off the site and the CMS still shows it",
    )
    return _not_yet(this_try, job, failure)


def _not_yet(this_try: _WithdrawTry, job: PageJob, failure: Failure) -> PageJob:
    """Look again later, or leave it to a person once the tries are used up."""
    runtime, lease = this_try.runtime, this_try.lease
    heed(runtime, runtime.cms_route, failure)
    with runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        failed = attempts.failed_tries(connection, job, AttemptKind.WITHDRAW, failure.failure_class)
        if failure.failure_class is FailureClass.CONFLICT and failed.count < LOST_RACES:
            return jobs.postpone(connection, job, LOOK_AGAIN_S, failure)
        decision = decide(
            failure,
            failed_attempts=failed.count,
            policies=runtime.site.retries,
            jitter=runtime.random(),
            failing_for_s=failed.since_s,
            page_left_s=deadlines.left_s(connection, job.page_job_id),
        )
        if isinstance(decision, RetryAfter):
            return jobs.postpone(connection, job, max(LOOK_AGAIN_S, decision.wait_s), failure)
        return give_up(connection, job, lease, failure, dead_letter=decision.dead_letter)


def _put_back(this_try: _WithdrawTry, job: PageJob) -> PageJob:
    """The topic is back and the page still there: an earlier try did not take it off."""
    failure = Failure(
        failure_class=FailureClass.TRANSIENT, message="its topic is back: the page stays"
    )
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        return jobs.move(connection, job, PageJobState.READY_TO_PUBLISH, lease=this_try.lease)


def _changed(
    this_try: _WithdrawTry, job: PageJob, change: SiteChange, reason: str, page: RemotePage
) -> PageJob:
    runtime, lease = this_try.runtime, this_try.lease
    failure = Failure(
        failure_class=FailureClass.CONFLICT,
        message=f"its topic is retired and the page was to be taken off the site, but {reason}",
    )
    with runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        note_change(connection, runtime, job, change, reason, page)
        return jobs.move(
            connection, job, PageJobState.FAILED_TERMINAL, lease=lease, failure=failure
        )


def _withdrawn(this_try: _WithdrawTry, job: PageJob, how: str) -> PageJob:
    """Record what was proved with all that follows, in one transaction.

    A topic that came back meanwhile has its page published again from the stored draft.
    """
    runtime, lease = this_try.runtime, this_try.lease
    with runtime.ledger.fenced(lease) as connection:
        attempts.succeed(connection, this_try.attempt_id, revision=job.revision, output_hash="")
        publications.record_withdrawn(connection, job.page_id)
        site_changes.log(
            connection,
            job.site,
            job.page_id,
            SiteEventKind.WITHDRAWN,
            f"its topic is retired: {how}",
            by=runtime.worker,
        )
        job = jobs.move(connection, job, PageJobState.WITHDRAWN, lease=lease)
        effects.want_for_site(connection, job.site, runtime.hook_delays_s, job.owner)
        if resting.take_up_wanted(connection, [job.page_job_id], worker=runtime.worker):
            job = jobs.load(connection, job.page_job_id)
    runtime.on_checkpoint("withdrawal_proved")
    return job
