"""Publish: make one stored revision the page's public content, and prove it by reading back.

What belongs here: the way from ``ready_to_publish`` to ``published`` when nothing is lost: look,
decide, write at most once, read back. What became of a write whose answer was lost is settled in
``reconcile``, which proves a page through ``prove``.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from content_pipeline.core.cms import Document, Marker, PageLookUp, RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import (
    OFF_THE_SITE,
    PublishAction,
    PublishDecision,
    SiteChange,
    decide_publish,
    holds,
)
from content_pipeline.core.rendering import render_document
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    attempts,
    drafts,
    effects,
    jobs,
    publications,
    publish_rate,
    site_changes,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, EffectState
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed, set_back
from content_pipeline.operations.twins import remove_twins

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


def publish(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``ready_to_publish`` → ``published``, or to where the CMS's answer leads.

    A page that never was public first waits for its turn, where the site has a publish rate.
    """
    rate = runtime.site.schedule.rate
    with runtime.ledger.fenced(lease) as connection:
        turn = publish_rate.turn_of(connection, job, rate)
        if rate is not None and turn is not None:
            publish_rate.let_wait(connection, job, rate, turn)
            return jobs.load(connection, job.page_job_id)
        document = document_of(connection, runtime, job)
        key = effects.begin_publish(connection, job, request_hash=document.marker.content_hash)
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.PUBLISH,
            number=attempts.next_number(connection, job.page_job_id, AttemptKind.PUBLISH),
            worker=runtime.worker,
            run_id=runtime.run_id,
            effect_key=key,
        )
        job = jobs.move(connection, job, PageJobState.PUBLISHING, lease=lease)
    runtime.on_checkpoint("publish_intended")
    this_try = PublishTry(
        runtime=runtime, lease=lease, document=document, attempt_id=attempt_id, effect_key=key
    )
    return _look_and_write(this_try, job)


def document_of(connection: Connection, runtime: SiteRuntime, job: PageJob) -> Document:
    """What the CMS is to hold for the job's revision: the same bytes whenever it is asked."""
    assert job.revision is not None
    return render_document(
        drafts.load(connection, job),
        page_id=job.page_id,
        revision=job.revision,
        site_title=runtime.site.title,
        language=runtime.site.language,
        path=job.path,
        url=runtime.site.url_of(job.path),
    )


def _look_and_write(this_try: PublishTry, job: PageJob) -> PageJob:
    wanted = this_try.document.marker
    look = look_at(this_try.runtime, job, job.remote_id)
    remove_twins(this_try.runtime, job, look)
    decision = decide(this_try.runtime, job, look, wanted)
    match decision.action:
        case PublishAction.UNKNOWN:
            return _not_written(this_try, job, why_unknown(look))
        case PublishAction.CONFLICT:
            return conflict(this_try, job, decision, look.page)
        case PublishAction.LEAVE:
            return left_as_it_is(this_try, job, decision, look.page)
        case PublishAction.AWAIT:
            return call_uncertain(this_try, job, not_shown_yet(decision), quiet_s(this_try.runtime))
        case PublishAction.SUPERSEDED:
            return superseded(this_try, job, decision.reason)
        case PublishAction.CONFIRM:
            assert look.page is not None
            return prove(this_try, job, look.page, CONFIRMED_EXISTING)
        case PublishAction.CREATE | PublishAction.REPLACE as action:
            outcome = "created" if action is PublishAction.CREATE else "replaced"
            return _write(this_try, job, look.page, outcome)


def decide(runtime: SiteRuntime, job: PageJob, look: PageLookUp, wanted: Marker) -> PublishDecision:
    """What the look allows for the job's revision, by the site's policy."""
    return decide_publish(
        look,
        wanted=wanted,
        path=job.path,
        baseline=job.baseline,
        policy=runtime.site.site_changes,
        may_overwrite=job.may_overwrite,
    )


def not_shown_yet(decision: PublishDecision) -> Failure:
    """The failure of a page that the CMS holds and no visitor sees yet."""
    return Failure(failure_class=FailureClass.UNCERTAIN, message=decision.reason)


def look_at(runtime: SiteRuntime, job: PageJob, remote_id: str | None) -> PageLookUp:
    """What the CMS holds for the job's page; unknown when it cannot be asked."""
    try:
        return runtime.cms.look_up(job.page_id, job.path, remote_id)
    except CallFailed as failed:
        return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed.failure)


def why_unknown(look: PageLookUp) -> Failure:
    """The failure of a look-up that said nothing."""
    return look.failure or Failure(
        failure_class=FailureClass.TRANSIENT, message="the CMS could not say what it holds"
    )


def _write(this_try: PublishTry, job: PageJob, seen: RemotePage | None, outcome: str) -> PageJob:
    """Invisible first where the CMS allows it: a lost create then leaves no public page."""
    runtime, document = this_try.runtime, this_try.document
    cms = runtime.cms
    try:
        if seen is None and cms.capabilities.drafts:
            seen = cms.create_draft(document)
            runtime.on_checkpoint("draft_created")
            unfit = _unfit(runtime, seen, document)
            if unfit is not None:
                cms.remove(seen)
                return _not_written(this_try, job, unfit)
        written = cms.publish(document, replacing=seen)
    except CallFailed as failed:
        return _write_failed(this_try, job, failed.failure)
    runtime.on_checkpoint("page_written")
    return _read_back(this_try, job, written, outcome)


def _unfit(runtime: SiteRuntime, draft: RemotePage, document: Document) -> Failure | None:
    """Why a page that was just created must not become public."""
    if draft.path != document.path:
        return Failure(
            failure_class=FailureClass.CONFLICT,
            message=f"{document.path} is taken on the site: the CMS offered {draft.path} instead; "
            "free the address or give the page another path",
        )
    if not draft.intact and not runtime.site.site_changes.accept_altered_text:
        return Failure(
            failure_class=FailureClass.TERMINAL,
            message=f"the CMS altered the text it was sent for {document.path}; give its user the "
            "right to unfiltered HTML, or set site_changes.accept_altered_text",
        )
    return None


def _write_failed(this_try: PublishTry, job: PageJob, failure: Failure) -> PageJob:
    """A write that may have taken effect is uncertain; a lost race is one look away from known."""
    if failure.failure_class is FailureClass.CONFLICT:
        return call_uncertain(this_try, job, failure, wait_s=0)
    if failure.failure_class is FailureClass.UNCERTAIN:
        return call_uncertain(this_try, job, failure, quiet_s(this_try.runtime))
    return _not_written(this_try, job, failure)


def refuses_late_writes(runtime: SiteRuntime) -> bool:
    """Whether the CMS rejects a write over anything but what its sender saw."""
    offers = runtime.cms.capabilities
    return offers.client_id and offers.compare_and_swap


def quiet_s(runtime: SiteRuntime) -> float:
    """How long a lost write may still take effect on the CMS."""
    return 0.0 if refuses_late_writes(runtime) else runtime.site.lane.publish_quiet_s


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


def _not_written(this_try: PublishTry, job: PageJob, failure: Failure) -> PageJob:
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
        effects.want_for_site(connection, job.site, runtime.hook_kinds, job.owner)


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


def _read_back(this_try: PublishTry, job: PageJob, written: RemotePage, outcome: str) -> PageJob:
    """A 2xx proves nothing; only the page as read back does."""
    look = look_at(this_try.runtime, job, written.remote_id)
    page, wanted = look.page, this_try.document.marker
    seen = look.verdict is Verdict.PRESENT and page is not None and page.path == job.path
    if seen and page is not None and holds(page, wanted):
        return prove(this_try, job, page, outcome)
    failure = look.failure or Failure(
        failure_class=FailureClass.UNCERTAIN,
        message=f"the CMS accepted revision {wanted.revision} but does not show it yet",
    )
    return call_uncertain(this_try, job, failure, quiet_s(this_try.runtime))


def prove(this_try: PublishTry, job: PageJob, page: RemotePage, outcome: str) -> PageJob:
    """The CMS shows the revision: record it with all that follows, in one transaction."""
    runtime, marker = this_try.runtime, this_try.document.marker
    # A page that comes back to the site is news as well, though its text is what it was.
    changed = job.published_content_hash != marker.content_hash or job.is_off_the_site
    with runtime.ledger.fenced(this_try.lease) as connection:
        publications.record_proved(connection, job, this_try.document, page)
        publications.supersede_older(connection, job, runtime.worker)
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
            effects.want_for_site(connection, job.site, runtime.hook_kinds, job.owner)
    runtime.on_checkpoint("page_proved")
    return job
