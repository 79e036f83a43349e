"""Survey: find out what was changed on a site since we published, and do what its policy says.

What belongs here: looking at what the CMS says changed, and, in slices, at everything it holds.
Nothing is written to the CMS but the removal of twins; ours is put back by the lane, which a page
that the policy wants restored is handed to.
"""

import itertools
import threading
from dataclasses import dataclass, field
from datetime import datetime

from content_pipeline.core.cms import PageLookUp, RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import (
    OFF_THE_SITE,
    Baseline,
    Reaction,
    SiteChange,
    change_of,
    standing_of,
)
from content_pipeline.ledger import effects, jobs, resting, routes, site_changes, surveys
from content_pipeline.ledger.site_changes import KnownPage
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.setbacks import heed
from content_pipeline.operations.twins import remove_twins

MISSING_AT_ONCE = 200
"""Pages that no slice listed are asked about one by one: a wiped site takes several surveys."""


@dataclass(slots=True, kw_only=True)
class SurveyReport:
    """What one survey saw and did."""

    listed: int = 0
    """Pages of the CMS that were listed, ours or not."""
    looked_at: int = 0
    """Pages of ours that were looked at one by one."""
    found: dict[SiteChange, int] = field(default_factory=dict)
    """Changes that were not known before, by kind."""
    news: set[str] = field(default_factory=set)
    """Topics of whose page something is known now that was not before."""
    restored: int = 0
    """Pages handed to the lane, to have ours put back."""
    twins_removed: int = 0
    is_complete: bool = False
    """Whether a sweep over everything ended with this survey."""
    is_stopped: bool = False
    """Whether it was ended before it was done; the next one looks at the same slice again."""
    failure: Failure | None = None
    """Why it stopped early; the next survey goes on where it stopped."""


class _Stopped(Exception):
    """Somebody, or the time, ends the survey; it never leaves this module."""


def survey(
    runtime: SiteRuntime, *, slices: int | None = 1, stop: threading.Event | None = None
) -> SurveyReport:
    """Look at recent changes and at ``slices`` slices of everything the CMS holds; None: at all.

    A failing CMS ends it early, and ``stop`` before the next look, with what was seen until then on
    record. 0 slices look at recent changes only.
    """
    report = SurveyReport()
    at_work = _Survey(runtime=runtime, report=report, stop=stop or threading.Event())
    try:
        if not _is_closed(runtime, report):
            _look_at_recent(at_work)
            _sweep(at_work, slices)
    except _Stopped:
        report.is_stopped = True
    except CallFailed as failed:
        report.failure = failed.failure
        heed(runtime, runtime.cms_route, failed.failure)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """A survey at work."""

    runtime: SiteRuntime
    report: SurveyReport
    stop: threading.Event

    def may_go_on(self) -> None:
        """Asked before each call. Raises _Stopped."""
        if self.stop.is_set():
            raise _Stopped


def _is_closed(runtime: SiteRuntime, report: SurveyReport) -> bool:
    with runtime.ledger.begin() as connection:
        report.failure = routes.obstacle(connection, runtime.cms_route)
    return report.failure is not None


def _look_at_recent(at_work: _Survey) -> None:
    runtime = at_work.runtime
    site = runtime.site.site
    at_work.may_go_on()
    with runtime.ledger.begin() as connection:
        point = surveys.load(connection, site).point
    changes = runtime.cms.recent_changes(point)
    for page in changes.pages:
        _assess_changed(at_work, page)
    with runtime.ledger.begin() as connection:
        surveys.note_point(connection, site, changes.point)


def _assess_changed(at_work: _Survey, page: RemotePage) -> None:
    """A page that the CMS says changed: ours, a twin of ours, or none of our business."""
    runtime = at_work.runtime
    with runtime.ledger.begin() as connection:
        by_id = site_changes.known_by_remote_id(connection, runtime.site.site, [page.remote_id])
        known = by_id.get(page.remote_id)
        if known is None and page.marker is not None:
            known = site_changes.known_by_page_id(
                connection, runtime.site.site, page.marker.page_id
            )
    if known is None:
        return
    if known.remote_id == page.remote_id:
        look = PageLookUp(verdict=Verdict.PRESENT, page=page)
        _assess(runtime, at_work.report, known, look)
    else:
        _look_closely(at_work, known)  # our mark on another page: a twin


def _sweep(at_work: _Survey, slices: int | None) -> None:
    runtime, report = at_work.runtime, at_work.report
    site = runtime.site.site
    for _ in itertools.count() if slices is None else range(slices):
        at_work.may_go_on()
        with runtime.ledger.begin() as connection:
            surveys.begin_sweep(connection, site)
            at = surveys.load(connection, site)
        assert at.sweep_began_at is not None
        part = runtime.cms.inventory(at.next_slice)
        report.listed += len(part.glances)
        remote_ids = [glance.remote_id for glance in part.glances]
        with runtime.ledger.begin() as connection:
            site_changes.mark_listed(connection, site, remote_ids)
            known = site_changes.known_by_remote_id(connection, site, remote_ids)
        for glance in part.glances:
            page = known.get(glance.remote_id)
            if page is not None and glance.version != page.settled_version:
                _look_closely(at_work, page)
        if part.next_slice is None:
            _end_sweep(at_work, at.sweep_began_at)
            return
        with runtime.ledger.begin() as connection:
            surveys.advance(connection, site, next_slice=part.next_slice)


def _end_sweep(at_work: _Survey, began_at: datetime) -> None:
    """What no slice listed may be gone: each is asked about, and only an answer counts."""
    runtime = at_work.runtime
    site = runtime.site.site
    with runtime.ledger.begin() as connection:
        missing = site_changes.not_listed_since(connection, site, began_at, most=MISSING_AT_ONCE)
    for page in missing:
        _look_closely(at_work, page)
    with runtime.ledger.begin() as connection:
        surveys.end_sweep(connection, site)
    at_work.report.is_complete = True


def _look_closely(at_work: _Survey, known: KnownPage) -> None:
    runtime, report = at_work.runtime, at_work.report
    at_work.may_go_on()
    look = runtime.cms.look_up(known.page_id, known.path, known.remote_id)
    report.looked_at += 1
    if look.verdict is Verdict.UNKNOWN:
        if look.failure is not None:
            raise CallFailed(look.failure)
        return
    if known.page_job_id is not None and look.twins:
        with runtime.ledger.begin() as connection:
            job = jobs.load(connection, known.page_job_id)
        report.twins_removed += remove_twins(runtime, job, look)
    _assess(runtime, report, known, look)


def _assess(runtime: SiteRuntime, report: SurveyReport, known: KnownPage, look: PageLookUp) -> None:
    """Compare the page with our baseline; record, restore or leave what differs."""
    if known.page_job_id is None:
        return  # a job of the page is on its way and looks at the site itself
    page = look.page
    found = change_of(
        page,
        page_id=known.page_id,
        path=known.path,
        baseline=Baseline(revision=known.published_revision, fingerprint=known.remote_fingerprint),
    )
    if found is None:
        with runtime.ledger.begin() as connection:
            site_changes.note_version(connection, known.page_id, page.version if page else None)
            why = "the page is as we left it again"
            if site_changes.clear(connection, known.page_id, by=runtime.worker, why=why):
                report.news.add(known.topic_key)
        return
    change, reason = found
    if standing_of(page) in (known.kept_standing, known.change_standing):
        return
    report.found[change] = report.found.get(change, 0) + 1
    report.news.add(known.topic_key)
    _react(runtime, report, known, change, reason, page)


def _react(
    runtime: SiteRuntime,
    report: SurveyReport,
    known: KnownPage,
    change: SiteChange,
    reason: str,
    page: RemotePage | None,
) -> None:
    reaction = runtime.site.site_changes.to(change)
    assert known.page_job_id is not None
    with runtime.ledger.begin() as connection:
        if reaction is Reaction.LEAVE:
            why = f"by the site's policy: {reason}"
            site_changes.keep_theirs(
                connection, known.page_id, page=page, by=runtime.worker, why=why
            )
        else:
            site_changes.record(
                connection, known.page_id, change, reason, page=page, by=runtime.worker
            )
        if reaction is Reaction.RESTORE:
            report.restored += resting.want_back(
                connection,
                known.page_job_id,
                worker=runtime.worker,
                cause=f"put back by the site's policy: {reason}",
            )
        if change in OFF_THE_SITE:
            effects.want_for_site(
                connection, runtime.site.site, runtime.hook_delays_s, runtime.site.owner
            )
