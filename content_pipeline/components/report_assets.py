"""``cost_report`` and ``pipeline_health``: a site's numbers for people, and checks that warn.

What belongs here: the two assets of one step, their checks, their job and its schedule. Nothing
here pays, publishes or moves a page, so the schedule is on from the start.
"""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg

from content_pipeline.components.asset_metadata import (
    COLUMN_SCHEMA,
    COST_DAYS,
    HEALTH_FIGURES,
    URI,
    columns,
)
from content_pipeline.components.page_metadata import Metadata, table
from content_pipeline.components.project import this_project
from content_pipeline.components.site_assets import REPORTS_VERSION, SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_ledger
from content_pipeline.core.health import HealthCheck, Refresh
from content_pipeline.core.identity import digest
from content_pipeline.ledger import write_offs
from content_pipeline.ledger.costs import Dimension
from content_pipeline.reporting import files, html
from content_pipeline.reporting.content import Section, Table
from content_pipeline.reporting.cost_sections import cost_figures, cost_sections
from content_pipeline.reporting.health_sections import health_figures, health_sections
from content_pipeline.reporting.markdown import markdown
from content_pipeline.reporting.site_report import SiteReport, gather

COST_REPORT = "cost_report"
PIPELINE_HEALTH = "pipeline_health"

CHECKS: dict[str, dict[HealthCheck, str]] = {
    COST_REPORT: {
        HealthCheck.COST: "Whether the day, and a published page, cost what they should.",
    },
    PIPELINE_HEALTH: {
        HealthCheck.QUEUE_AGE: "Whether a due page has waited too long for a worker.",
        HealthCheck.UNCERTAIN_AGE: "Whether an unknown outcome has been asked about too long.",
        HealthCheck.FAILURES: "Whether more pages stop for a person than in the week before.",
    },
}
"""Asset → its checks. They warn: a report that is red would hide the pages that are."""

_COLUMNS = {COST_REPORT: COST_DAYS, PIPELINE_HEALTH: HEALTH_FIGURES}

_DESCRIPTIONS = {
    COST_REPORT: (
        "Dollars per day by class and template, per published page and per try, and whether they "
        "are within plan. Read from the ledger; costs nothing."
    ),
    PIPELINE_HEALTH: (
        "What waits, what is uncertain and may have been paid twice, what failed and why. Read "
        "from the ledger; costs nothing."
    ),
}


def report_key(assets: SiteAssets, name: str) -> dg.AssetKey:
    """The key of one of the two reports."""
    return dg.AssetKey([assets.name, name])


def build_reports(assets: SiteAssets) -> dg.AssetsDefinition:
    """Both reports of a site, made in one step from one look at the ledger."""

    @dg.multi_asset(
        name=f"{assets.name}_costs_and_health",
        specs=[
            dg.AssetSpec(
                report_key(assets, name),
                description=description,
                group_name=assets.name,
                kinds={"html"},
                owners=assets.owners,
                tags=assets.tags,
                code_version=REPORTS_VERSION,
                metadata={
                    COLUMN_SCHEMA: dg.MetadataValue.table_schema(columns(_COLUMNS[name])),
                },
                skippable=True,
            )
            for name, description in _DESCRIPTIONS.items()
        ],
        check_specs=[
            dg.AssetCheckSpec(check.value, asset=report_key(assets, name), description=description)
            for name, checks in CHECKS.items()
            for check, description in checks.items()
        ],
        can_subset=True,
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def reports(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        project = this_project()
        with site_ledger() as ledger:
            with ledger.begin() as connection:
                days = assets.site.settings.budgets.write_off_after_days
                write_offs.write_off(connection, assets.name, after_days=days)
                report = gather(connection, assets.site.settings)
            file = files.report_file(project, assets.name)
            files.write(file, html.render(report))
        for name in (COST_REPORT, PIPELINE_HEALTH):
            key = report_key(assets, name)
            if key in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=key, metadata=_METADATA[name](report, file))
        for key in context.selected_asset_check_keys:
            yield _check(report, key)

    return reports


def build_reports_schedule(assets: SiteAssets) -> dg.ScheduleDefinition:
    """Makes both reports as often as the site's file says, each site at a minute of its own."""
    job = dg.define_asset_job(
        f"{assets.name}_reports",
        selection=[report_key(assets, name) for name in CHECKS],
        description="Makes the reports of the site anew. Pays nothing and changes no page.",
        executor_def=dg.in_process_executor,
        tags=assets.tags,
    )
    minute = int(digest("reports", assets.name)[:8], 16) % 60
    hour = "5" if assets.site.settings.health.refresh is Refresh.DAILY else "*"
    return dg.ScheduleDefinition(
        name=f"{assets.name}_reports_schedule",
        job=job,
        cron_schedule=f"{minute} {hour} * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=(
            "Makes the reports of the site anew, `health.refresh` of its file says how often. "
            "Pays nothing and changes no page."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )


def _check(report: SiteReport, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    verdict = report.verdicts[HealthCheck(key.name)]
    return dg.AssetCheckResult(
        check_name=key.name,
        asset_key=key.asset_key,
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=verdict.sentence,
    )


def _cost_metadata(report: SiteReport, file: Path) -> Metadata:
    costs = report.costs
    page_usd = costs.page_usd
    sections = cost_sections(report)
    verdicts = [report.verdicts[check] for check in CHECKS[COST_REPORT]]
    return {
        "report": dg.MetadataValue.md(markdown(cost_figures(report), verdicts, sections)),
        "file": dg.MetadataValue.path(file),
        URI: dg.MetadataValue.url(file.resolve().as_uri()),
        "today_usd": dg.MetadataValue.float(float(costs.outlay.today_usd)),
        "window_usd": dg.MetadataValue.float(float(costs.usd)),
        "published": dg.MetadataValue.int(costs.pages),
        **({} if page_usd is None else {"page_usd": _rounded(page_usd)}),
        "days": _days(report),
        **_tables(sections),
    }


def _rounded(usd: Decimal) -> dg.MetadataValue:
    """A quotient to a millionth of a dollar, which is less than the cheapest call costs."""
    return dg.MetadataValue.float(float(round(usd, 6)))


def _days(report: SiteReport) -> dg.MetadataValue:
    """The newest days first."""
    spent = report.costs.by_day().get("all", {})
    by_class = report.costs.by_day(Dimension.CLASS)
    failed = {name: days for name, days in by_class.items() if name != "ok"}
    rows: list[dict[str, str | int | float]] = [
        {
            "day": day.isoformat(),
            "usd": float(spent.get(day, 0)),
            "usd_not_ok": float(sum(days.get(day, 0) for days in failed.values())),
            "published": report.costs.published.get(day, 0),
        }
        for day in reversed(report.seen.days)
        if day in spent or day in report.costs.published
    ]
    return table(COST_DAYS, rows)


def _health_metadata(report: SiteReport, file: Path) -> Metadata:
    health = report.health
    sections = health_sections(report)
    verdicts = [report.verdicts[check] for check in CHECKS[PIPELINE_HEALTH]]
    failed = sum(group.pages for group in health.failed_now)
    uncertain = sum(pages.pages for pages in health.uncertain)
    return {
        "report": dg.MetadataValue.md(markdown(health_figures(report), verdicts, sections)),
        "file": dg.MetadataValue.path(file),
        URI: dg.MetadataValue.url(file.resolve().as_uri()),
        "due": dg.MetadataValue.int(health.queue.due),
        "queue_age_s": dg.MetadataValue.float(round(health.queue.age_s, 1)),
        "uncertain": dg.MetadataValue.int(uncertain),
        "uncertain_age_s": dg.MetadataValue.float(round(health.uncertain_age_s, 1)),
        "possible_double_spend_usd": dg.MetadataValue.float(float(health.double_spend.usd)),
        "written_off_usd": dg.MetadataValue.float(float(health.written_off.usd)),
        "need_a_person": dg.MetadataValue.int(failed),
        "stopped_in_24_hours": dg.MetadataValue.int(health.failed_lately[0]),
        **_tables(sections),
    }


def _tables(sections: list[Section]) -> Metadata:
    """The tables of a report as Dagster shows tables, which can be sorted there."""
    return {
        section.title: _as_table(section.table)
        for section in sections
        if section.table is not None and section.table.rows
    }


def _as_table(shown: Table) -> dg.MetadataValue:
    rows = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    return table([(name, "string") for name in shown.columns], rows)


_METADATA = {COST_REPORT: _cost_metadata, PIPELINE_HEALTH: _health_metadata}
