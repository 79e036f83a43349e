"""Conflicts: pages that were changed on the site, and what a person decides about them.

What belongs here: the two texts side by side, and the two decisions. Nothing is written to the CMS
here: ours is put back by the lane, over exactly what the person saw.
"""

import difflib
from dataclasses import dataclass

from content_pipeline.core.cms import RemoteContent, RemotePage
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import SiteChange, change_of
from content_pipeline.core.states import NEEDS_PERSON, NEXT, PageJobState
from content_pipeline.ledger import jobs, reports, resting, site_changes
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.resting import move_resting
from content_pipeline.operations.publish import document_of
from content_pipeline.operations.runtime import SiteRuntime

CONTEXT_LINES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Our page and what stands on the site."""

    path: str
    reason: str
    """What was changed, in words; empty when nothing is."""
    change: SiteChange | None
    lines: tuple[str, ...]
    """A unified diff from ours to theirs, of title, description and body."""


def difference(runtime: SiteRuntime, page: str) -> Difference:
    """Our newest text of ``page`` beside the site's. Raises UnknownPage, CallFailed."""
    job = _job_of(runtime, page)
    there = _on_the_site(runtime, job)
    found = change_of(there, page_id=job.page_id, path=job.path, baseline=job.baseline)
    ours: list[str] = []
    if job.revision is not None:
        with runtime.ledger.begin() as connection:
            document = document_of(connection, runtime, job)
        ours = _lines(
            RemoteContent(
                title=document.title,
                meta_description=document.meta_description,
                body_html=document.body_html,
            )
        )
    theirs = [] if there is None else _lines(runtime.cms.content_of(there))
    return Difference(
        path=job.path,
        reason=found[1] if found else "",
        change=found[0] if found else None,
        lines=tuple(
            difflib.unified_diff(ours, theirs, "ours", "on the site", lineterm="", n=CONTEXT_LINES)
        ),
    )


def _lines(content: RemoteContent) -> list[str]:
    """One element of the body a line, so that a diff shows what a reader would call a change."""
    body = content.body_html.replace("><", ">\n<").splitlines()
    return [f"title: {content.title}", f"description: {content.meta_description}", *body]


def keep_theirs(runtime: SiteRuntime, page: str, *, cause: str, by: str) -> str:
    """The site's version stands until the page's topic changes; what that means, in a sentence."""
    job = _job_of(runtime, page)
    there = _on_the_site(runtime, job)
    with runtime.ledger.begin() as connection:
        site_changes.keep_theirs(connection, job.page_id, page=there, by=by, why=cause)
        set_down = _is_conflict(job) and resting.set_down(
            connection, job.page_job_id, worker=by, cause=f"theirs is kept: {cause}"
        )
    told = f"{job.path} stays as it is on the site, and nobody is asked again until it changes"
    if set_down:
        told += "; our revision is kept and not published"
    return told


def publish_ours(runtime: SiteRuntime, page: str, *, cause: str, by: str) -> str:
    """Ours is published over exactly what is on the site now; what comes next, in a sentence."""
    job = _job_of(runtime, page)
    there = _on_the_site(runtime, job)
    with runtime.ledger.begin() as connection:
        site_changes.allow_ours(connection, job.page_id, page=there, by=by, why=cause)
        woken: PageJobState | None = None
        if job.state in NEEDS_PERSON:
            woken = move_resting(
                connection,
                job.page_job_id,
                sources=sorted(NEEDS_PERSON),
                worker=by,
                cause=f"ours is published: {cause}",
                next_epoch=True,
            )
        elif resting.want_back(
            connection, job.page_job_id, worker=by, cause=f"ours is published: {cause}"
        ):
            woken = PageJobState.READY_TO_PUBLISH
    if woken is None:
        return f"{job.path} is {job.state}: {NEXT[job.state]}; ours may be written over theirs then"
    if woken is PageJobState.WITHDRAWING:
        return f"{job.path} is {woken}; the next run takes the page off the site as it is now"
    return f"{job.path} is {woken}; the next run publishes ours over what is on the site now"


def _is_conflict(job: PageJob) -> bool:
    return job.state is PageJobState.FAILED_TERMINAL and job.failure_class is FailureClass.CONFLICT


def _job_of(runtime: SiteRuntime, page: str) -> PageJob:
    with runtime.ledger.begin() as connection:
        report = reports.page_of_site(connection, runtime.site.site, page)
        if report.page_id is None:
            raise ConfigurationError(
                f"{report.topic_key} has no page: its row cannot be used; correct the table"
            )
        return jobs.load(connection, report.page_job_id)


def _on_the_site(runtime: SiteRuntime, job: PageJob) -> RemotePage | None:
    look = runtime.cms.look_up(job.page_id, job.path, job.remote_id)
    if look.verdict is Verdict.UNKNOWN:
        assert look.failure is not None
        raise CallFailed(look.failure)
    return look.page
