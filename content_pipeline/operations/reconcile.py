"""Reconcile: find out what became of a publish whose answer was lost, by asking the CMS.

What belongs here: settling ``publishing`` after a crash and ``publish_uncertain`` always. Present
is confirmed without writing; a draft is published by its id, which does no harm twice; absent must
be seen twice, unless the CMS itself refuses late writes; what stays unknown goes to a person. There
is no blind second write.
"""

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import publish_key
from content_pipeline.core.publishing import PublishAction, is_draft_of
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, effects, jobs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, EffectState
from content_pipeline.operations import publish, publish_ends
from content_pipeline.operations.publish_ends import PublishTry
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import set_back
from content_pipeline.operations.twins import remove_twins

ABSENT_LOOKS = 2
"""Right after a lost write "not there" may only mean "not yet"; two agreeing looks mean it."""

UNKNOWN_LOOKS = 20
"""After this many useless answers a person is better placed to find out."""

DEPLOYMENT_LOOKS = 150
"""A day: a site's build may stay broken overnight, and then all its pages wait for one repair."""

LOOK_AGAIN_S = 5.0
"""The first wait between two looks; it doubles while the answers stay useless."""

MOST_WAIT_S = 600.0


def resume_publishing(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``publishing`` whose worker is gone: the outcome is uncertain until the CMS was asked."""
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message="the worker stopped while publishing; the CMS is asked what it holds",
    )
    this_try = _newest_try(runtime, job, lease)
    return publish_ends.call_uncertain(this_try, job, failure, publish.quiet_s(runtime))


def settle_publish(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PageJob:
    """``publish_uncertain``: confirm, go back before the write, wait, or hand to a person."""
    this_try = _newest_try(runtime, job, lease)
    look = publish.look_at(runtime, job, this_try.remote_id)
    remove_twins(runtime, job, look)
    decision = publish.decide(runtime, job, look, this_try.document.marker)
    match decision.action:
        case PublishAction.CONFIRM:
            assert look.page is not None
            not_shown = publish.why_not_shown(this_try)
            if not_shown is not None:
                return _still_unknown(this_try, job, not_shown)
            return publish_ends.prove(this_try, job, look.page, publish_ends.CONFIRMED_EXISTING)
        case PublishAction.AWAIT:
            return _still_unknown(
                this_try, job, publish.not_shown_yet(decision), most=DEPLOYMENT_LOOKS
            )
        case PublishAction.SUPERSEDED:
            return publish_ends.superseded(this_try, job, decision.reason)
        case PublishAction.LEAVE:
            return publish_ends.left_as_it_is(this_try, job, decision, look.page)
        case PublishAction.CONFLICT:
            return publish_ends.conflict(this_try, job, decision, look.page)
        case PublishAction.UNKNOWN:
            return _still_unknown(this_try, job, publish.why_unknown(look))
        case PublishAction.REPLACE if is_draft_of(look.page, this_try.document.marker):
            return _go_on(this_try, job, "the CMS holds the revision as a draft")
        case PublishAction.CREATE | PublishAction.REPLACE:
            return _seen_absent(this_try, job)


def _newest_try(runtime: SiteRuntime, job: PageJob, lease: Lease) -> PublishTry:
    assert job.revision is not None
    with runtime.ledger.begin() as connection:
        document = publish.document_of(connection, runtime, job)
        attempt = attempts.newest(connection, job.page_job_id, AttemptKind.PUBLISH)
        remote_id = publish.last_known_id(connection, job)
    assert attempt is not None, f"page job {job.page_job_id} is {job.state} without an attempt"
    return PublishTry(
        runtime=runtime,
        lease=lease,
        document=document,
        attempt_id=attempt.attempt_id,
        effect_key=publish_key(job.page_id, job.revision),
        remote_id=remote_id,
    )


def _seen_absent(this_try: PublishTry, job: PageJob) -> PageJob:
    runtime, lease, key = this_try.runtime, this_try.lease, this_try.effect_key
    failure = Failure(
        failure_class=FailureClass.UNCERTAIN,
        message="the CMS shows that the lost write did not take effect",
    )
    with runtime.ledger.fenced(lease) as connection:
        seen = effects.looks(connection, key).absent + 1
        if seen < ABSENT_LOOKS and not publish.refuses_late_writes(runtime):
            effects.mark(connection, key, EffectState.UNCERTAIN, failure, absent_looks=seen)
            return jobs.postpone(connection, job, LOOK_AGAIN_S, failure)
    return _go_on(this_try, job, failure.message)


def _go_on(this_try: PublishTry, job: PageJob, message: str) -> PageJob:
    """Back to before the write, which is known now not to come, or to be harmless if it does."""
    runtime, lease = this_try.runtime, this_try.lease
    failure = Failure(failure_class=FailureClass.UNCERTAIN, message=message)
    with runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        effects.mark(connection, this_try.effect_key, EffectState.PENDING, failure, absent_looks=0)
        return set_back(connection, runtime, job, lease, failure, AttemptKind.PUBLISH)


def _still_unknown(
    this_try: PublishTry, job: PageJob, failure: Failure, *, most: int = UNKNOWN_LOOKS
) -> PageJob:
    key = this_try.effect_key
    with this_try.runtime.ledger.fenced(this_try.lease) as connection:
        asked = effects.looks(connection, key).unknown + 1
        if asked < most:
            wait_s = min(MOST_WAIT_S, LOOK_AGAIN_S * 2.0 ** min(asked, 30))
            effects.mark(connection, key, EffectState.UNCERTAIN, failure, unknown_looks=asked)
            return jobs.postpone(connection, job, wait_s, failure)
    return _to_person(this_try, job, failure)


def _to_person(this_try: PublishTry, job: PageJob, failure: Failure) -> PageJob:
    lease = this_try.lease
    with this_try.runtime.ledger.fenced(lease) as connection:
        attempts.fail(connection, this_try.attempt_id, failure)
        effects.mark(connection, this_try.effect_key, EffectState.FAILED, failure)
        return jobs.move(
            connection, job, PageJobState.FAILED_TERMINAL, lease=lease, failure=failure
        )
