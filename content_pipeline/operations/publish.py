"""Publish: make one stored revision the page's public content, and prove it by reading back.

What belongs here: the way from ``ready_to_publish`` to ``published`` when nothing is lost: look,
decide, write at most once, read back. What became of a write whose answer was lost is settled in
``reconcile``; how either ends is put on record by ``publish_ends``.
"""

from sqlalchemy import Connection

from content_pipeline.core.article import Article
from content_pipeline.core.cms import Document, FindsOurs, Marker, PageLookUp, RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import (
    PublishAction,
    PublishDecision,
    decide_publish,
)
from content_pipeline.core.rendering import render_document
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    attempts,
    drafts,
    effects,
    jobs,
    publish_rate,
    routes,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.publish_ends import (
    CONFIRMED_EXISTING,
    PublishTry,
    call_uncertain,
    conflict,
    left_as_it_is,
    not_written,
    prove,
    superseded,
)
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.twins import remove_twins

BREATH_S = 0.1
"""Ends the walk of a page whose CMS is to be left alone. Nobody claims it before that is over, so a
person who puts the account in order need not wait for a wait of the page's own."""

SETTLES_WITHIN_S = 1.0
"""Beyond its own wait, for the look at an older write that may still arrive."""


def publish(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``ready_to_publish`` → ``published``, or to where the CMS's answer leads.

    Nothing is written while an older draft of the page may yet arrive at the CMS, nor when the CMS
    told another page to wait since this one was claimed, perhaps seconds ago. A page that never was
    public first waits for its turn, where the site has a publish rate.
    """
    with runtime.ledger.single() as connection:
        article = drafts.load(connection, job)
    # Before the transaction, in which all others of the site would wait for it with their turn.
    document = _rendered(runtime, job, article)
    rate = runtime.site.schedule.rate
    with runtime.ledger.fenced(lease) as connection:
        waiting = _put_off(connection, runtime, job)
        if waiting is not None:
            return waiting
        turn = publish_rate.turn_of(connection, job, rate)
        if rate is not None and turn is not None:
            publish_rate.let_wait(connection, job, rate, turn)
            return jobs.load(connection, job.page_job_id)
        key = effects.begin_publish(connection, job, request_hash=document.marker.content_hash)
        attempt_id = attempts.open_attempt(
            connection,
            job,
            AttemptKind.PUBLISH,
            number=job.publishes + 1,
            worker=runtime.worker,
            run_id=runtime.run_id,
            effect_key=key,
        )
        remote_id = last_known_id(connection, job)
        job = jobs.move(connection, job, PageJobState.PUBLISHING, lease=lease)
    runtime.on_checkpoint("publish_intended")
    this_try = PublishTry(
        runtime=runtime,
        lease=lease,
        document=document,
        attempt_id=attempt_id,
        effect_key=key,
        remote_id=remote_id,
    )
    return _look_and_write(this_try, job)


def _put_off(connection: Connection, runtime: SiteRuntime, job: PageJob) -> PageJob | None:
    """The job, put off while the CMS is to be left alone or an older publish of its page is open.

    None when it can go on. A page's first draft has none before it, and a CMS that refuses late
    writes needs no such wait for an older one.
    """
    if routes.obstacle(connection, runtime.cms_route) is not None:
        return jobs.postpone(connection, job, BREATH_S)
    if job.revision == 1 or refuses_late_writes(runtime):
        return None
    open_for_s = jobs.unsettled_publish_s(connection, job)
    if open_for_s is None:
        return None
    return jobs.postpone(connection, job, open_for_s + SETTLES_WITHIN_S)


def last_known_id(connection: Connection, job: PageJob) -> str | None:
    """Under which id the CMS was last seen to hold the job's page, as a draft or in public."""
    return effects.last_reference(connection, job.page_id) or job.remote_id


def document_of(connection: Connection, runtime: SiteRuntime, job: PageJob) -> Document:
    """What the CMS is to hold for the job's revision: the same bytes whenever it is asked."""
    return _rendered(runtime, job, drafts.load(connection, job))


def _rendered(runtime: SiteRuntime, job: PageJob, article: Article) -> Document:
    assert job.revision is not None
    return render_document(
        article,
        page_id=job.page_id,
        revision=job.revision,
        site_title=runtime.site.title,
        language=runtime.site.language,
        path=job.path,
        url=runtime.site.url_of(job.path),
    )


def _look_and_write(this_try: PublishTry, job: PageJob, *, path_is_taken: bool = False) -> PageJob:
    wanted = this_try.document.marker
    # A path that is taken shows when the draft is created, so a first look need not ask about it.
    look_briefly = this_try.remote_id is None and not path_is_taken
    look = look_at(this_try.runtime, job, this_try.remote_id, briefly=look_briefly)
    remove_twins(this_try.runtime, job, look)
    decision = decide(this_try.runtime, job, look, wanted)
    match decision.action:
        case PublishAction.UNKNOWN:
            return not_written(this_try, job, why_unknown(look))
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
            return _confirmed(this_try, job, look.page, CONFIRMED_EXISTING)
        case PublishAction.CREATE | PublishAction.REPLACE as action:
            closed = _obstacle(this_try.runtime)
            if closed is not None:
                return not_written(this_try, job, closed)
            outcome = "created" if action is PublishAction.CREATE else "replaced"
            return _write(this_try, job, look.page, outcome, looked_briefly=look_briefly)


def _obstacle(runtime: SiteRuntime) -> Failure | None:
    """Why the CMS may not be written to since it was looked at, which takes a second when busy."""
    with runtime.ledger.single() as connection:
        return routes.obstacle(connection, runtime.cms_route)


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


def look_at(
    runtime: SiteRuntime, job: PageJob, remote_id: str | None, *, briefly: bool = False
) -> PageLookUp:
    """What the CMS holds for the job's page; unknown when it cannot be asked.

    ``briefly``: a stranger at its path need not be looked for, where the CMS can leave that out.
    """
    cms = runtime.cms
    try:
        if briefly and isinstance(cms, FindsOurs):
            return cms.find_ours(job.page_id, job.path, remote_id)
        return cms.look_up(job.page_id, job.path, remote_id)
    except CallFailed as failed:
        return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed.failure)


def why_unknown(look: PageLookUp) -> Failure:
    """The failure of a look-up that said nothing."""
    return look.failure or Failure(
        failure_class=FailureClass.TRANSIENT, message="the CMS could not say what it holds"
    )


def _write(
    this_try: PublishTry,
    job: PageJob,
    seen: RemotePage | None,
    outcome: str,
    *,
    looked_briefly: bool,
) -> PageJob:
    """Invisible first where the CMS allows it: a lost create then leaves no public page."""
    runtime, document = this_try.runtime, this_try.document
    cms = runtime.cms
    try:
        if seen is None and cms.capabilities.drafts:
            seen = cms.create_draft(document)
            _note_draft(this_try, seen)
            runtime.on_checkpoint("draft_created")
            unfit = _unfit(runtime, seen, document)
            if unfit is not None:
                cms.remove(seen)
                if looked_briefly and seen.path != document.path:
                    return _look_and_write(this_try, job, path_is_taken=True)
                return not_written(this_try, job, unfit)
        written = cms.publish(document, replacing=seen)
    except CallFailed as failed:
        return _write_failed(this_try, job, failed.failure)
    runtime.on_checkpoint("page_written")
    return _read_back(this_try, job, written, outcome)


def _note_draft(this_try: PublishTry, draft: RemotePage) -> None:
    """Keep the draft's id: lists may not show it yet when the page is tried again.

    A CMS whose lists were 2 s behind got a second draft within the second after its 429.
    """
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        effects.note_reference(connection, this_try.effect_key, draft.remote_id)


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
    return not_written(this_try, job, failure)


def refuses_late_writes(runtime: SiteRuntime) -> bool:
    """Whether the CMS rejects a write over anything but what its sender saw."""
    offers = runtime.cms.capabilities
    return offers.client_id and offers.compare_and_swap


def quiet_s(runtime: SiteRuntime) -> float:
    """How long a lost write may still take effect on the CMS."""
    return 0.0 if refuses_late_writes(runtime) else runtime.site.lane.publish_quiet_s


def _read_back(this_try: PublishTry, job: PageJob, written: RemotePage, outcome: str) -> PageJob:
    """A 2xx proves nothing; only the page as read back does, at its path and to the letter."""
    runtime, wanted = this_try.runtime, this_try.document.marker
    look = look_at(runtime, job, written.remote_id)
    # Without the baseline: what we have just written differs from what we wrote before.
    decision = decide_publish(
        look, wanted=wanted, path=job.path, baseline=None, policy=runtime.site.site_changes
    )
    if decision.action is PublishAction.CONFIRM and look.page is not None:
        return _confirmed(this_try, job, look.page, outcome)
    if decision.action is PublishAction.CONFLICT:
        return conflict(this_try, job, decision, look.page)
    failure = look.failure or Failure(
        failure_class=FailureClass.UNCERTAIN,
        message=f"the CMS accepted revision {wanted.revision} but does not show it yet",
    )
    return call_uncertain(this_try, job, failure, quiet_s(runtime))


def _confirmed(this_try: PublishTry, job: PageJob, page: RemotePage, outcome: str) -> PageJob:
    """The CMS says so; where the site asks for it, a visitor must get the page as well."""
    failure = why_not_shown(this_try)
    if failure is not None:
        return call_uncertain(this_try, job, failure, quiet_s(this_try.runtime))
    return prove(this_try, job, page, outcome)


def why_not_shown(this_try: PublishTry) -> Failure | None:
    """Why visitors do not get the document that the CMS holds; None when nobody wants to know."""
    public = this_try.runtime.public
    return None if public is None else public.why_not_shown(this_try.document)
