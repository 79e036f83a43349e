"""The health report: what waits, is uncertain, failed or was changed on the site.

What belongs here: choosing rows, columns and words. The numbers are ``site_report``'s.
"""

from collections import defaultdict
from datetime import date
from decimal import Decimal

from content_pipeline.core.causes import WHAT_TO_DO
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.health import COUNTED_TO
from content_pipeline.reporting.content import (
    Figure,
    Section,
    Table,
    chart_by_day,
    count,
    long_ago,
    usd,
    when,
)
from content_pipeline.reporting.site_report import HealthReport, SiteReport

MOST_CAUSES = 20
"""A site with more of them has one that comes first."""

_IS_ASKED: dict[PageJobState, str] = {
    PageJobState.GENERATION_UNCERTAIN: "generation: the provider is asked",
    PageJobState.PUBLISH_UNCERTAIN: "publish: the site is asked",
}


def health_figures(report: SiteReport) -> list[Figure]:
    """What people look for first."""
    health = report.health
    uncertain = sum(pages.pages for pages in health.uncertain)
    return [
        Figure(
            label="due",
            value=_due(health),
            note=f"oldest waits {long_ago(health.queue.age_s)}" if health.queue.oldest else "",
        ),
        Figure(
            label="uncertain now",
            value=count(uncertain),
            note=f"oldest for {long_ago(health.uncertain_age_s)}" if uncertain else "",
        ),
        Figure(
            label="possible double spend",
            value=usd(health.double_spend.usd),
            note=f"{count(health.double_spend.calls)} calls",
        ),
        Figure(
            label="need a person",
            value=count(sum(group.pages for group in health.failed_now)),
            note=f"{count(health.failed_lately[0])} in the last 24 hours",
        ),
    ]


def health_sections(report: SiteReport) -> list[Section]:
    """The subjects of the health report."""
    return [
        _queue(report.health),
        _uncertain(report.health),
        _failed(report.health, report.seen.days),
        _causes(report.health),
        _conflicts(report.health),
    ]


def _due(health: HealthReport) -> str:
    more = " or more" if health.queue.due == COUNTED_TO else ""
    return f"{count(health.queue.due)}{more}"


def _queue(health: HealthReport) -> Section:
    in_line = (
        f"{count(health.in_line)} new pages wait for their turn, as the publish rate says. "
        if health.in_line
        else ""
    )
    return Section(
        title="Queue",
        note=in_line
        + (
            f"{_due(health)} pages are due, those at work included. The oldest that no worker "
            "holds:"
            if health.queue.oldest
            else f"{_due(health)} pages are due, and none waits for a worker."
        ),
        table=Table(
            columns=("topic", "state", "due since", "waits"),
            rows=tuple(
                (
                    page.topic_key,
                    page.state.value.replace("_", " "),
                    when(page.due_since),
                    long_ago(page.waits_s),
                )
                for page in health.queue.oldest
            ),
            texts=3,
        ),
    )


def _uncertain(health: HealthReport) -> Section:
    spend = health.double_spend
    over = health.written_off
    ended = (
        f" Another {usd(over.usd)} in {count(over.calls)} older calls was written off: it is "
        "counted as spent."
        if over.calls
        else ""
    )
    oldest = "" if spend.oldest_at is None else f", the oldest of {when(spend.oldest_at)}"
    return Section(
        title="Uncertain",
        note=(
            f"Possible double spend: {usd(spend.usd)} in {count(spend.calls)} calls "
            f"that may have been billed without a usable answer{oldest}. They are booked at this, "
            f"their worst case.{ended} Being asked about now:"
        ),
        table=Table(
            columns=("what", "oldest topic", "pages", "oldest for", "possible double spend"),
            rows=tuple(
                (
                    _IS_ASKED[pages.state],
                    pages.oldest_topic,
                    count(pages.pages),
                    long_ago(pages.oldest_s),
                    usd(pages.usd) if pages.usd else "",
                )
                for pages in health.uncertain
            ),
            texts=2,
        ),
    )


def _failed(health: HealthReport, days: tuple[date, ...]) -> Section:
    by_reason: defaultdict[str, defaultdict[date, Decimal]] = defaultdict(
        lambda: defaultdict(Decimal)
    )
    sums: defaultdict[tuple[str, str], int] = defaultdict(int)
    for failed in health.failed_by_day:
        by_reason[failed.reason][failed.day] += failed.pages
        sums[failed.state.value.replace("_", " "), failed.reason] += failed.pages
    return Section(
        title="Pages that stopped for a person, per day",
        note=(
            "Failed for good or dead-lettered, by the class of the failure. Pages that were taken "
            "up again since stand together."
        ),
        chart=chart_by_day("Pages that stopped, per day", days, by_reason, count),
        table=Table(
            columns=("state", "class", "pages"),
            rows=tuple(
                (*keys, count(pages))
                for keys, pages in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
            ),
            texts=2,
        ),
    )


def _causes(health: HealthReport) -> Section:
    return Section(
        title="Pages that need a person now, by cause",
        note="Current page jobs. To see one with its pages: content-pipeline repair show CAUSE.",
        table=Table(
            columns=("cause", "class", "what happened", "what to do", "pages", "newest"),
            rows=tuple(
                (
                    group.cause.fingerprint,
                    group.cause.failure_class.value,
                    group.cause.text,
                    WHAT_TO_DO[group.cause.failure_class],
                    count(group.pages),
                    when(group.newest_at),
                )
                for group in health.failed_now[:MOST_CAUSES]
            ),
            texts=4,
        ),
    )


def _conflicts(health: HealthReport) -> Section:
    return Section(
        title="Changed on the site by somebody else",
        note="Pages that stand differently on the site than we left them, as last seen.",
        table=Table(
            columns=("change", "pages", "oldest found"),
            rows=tuple(
                (found.change.value, count(found.pages), when(found.oldest_at))
                for found in health.conflicts
            ),
        ),
    )
