"""A site's reports as assets: what they show, which checks warn, and when they are made anew."""

import re
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components.report_assets import (
    COST_REPORT,
    PIPELINE_HEALTH,
    report_key,
)
from content_pipeline.core.states import Stage
from content_pipeline.ledger.costs import costs, total
from content_pipeline_tests.components.conftest import (
    FOR_LONG,
    INVALID,
    MakeSite,
    TownSite,
    faulty,
    rows_of,
)

BOTH = (COST_REPORT, PIPELINE_HEALTH)


def make_reports(site: TownSite, *names: str) -> dg.ExecuteInProcessResult:
    return site.materialize(also=[report_key(site.assets, name) for name in names or BOTH])


def shown(site: TownSite, name: str) -> dict[str, dg.MetadataValue]:
    wanted = dg.AssetRecordsFilter(report_key(site.assets, name))
    (record,) = site.instance.fetch_materializations(wanted, limit=1).records
    assert record.asset_materialization is not None
    return dict(record.asset_materialization.metadata)


def verdicts(site: TownSite, result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    found = site.checks_of(result)
    assert all(check.severity is dg.AssetCheckSeverity.WARN for check in found)
    return {check.check_name: check.passed for check in found}


def file_of(site: TownSite) -> Path:
    return site.project.root / "reports" / f"{site.assets.name}.html"


def published(make_site: MakeSite, **changes: object) -> TownSite:
    site = make_site(rows_of(2), **changes)
    site.materialize_topics()
    assert site.materialize(*Stage, pages=("t01", "t02")).success
    return site


def test_the_cost_report_shows_the_dollars_of_the_ledger(make_site: MakeSite) -> None:
    site = published(make_site)
    assert make_reports(site).success
    with site.ledger.begin() as connection:
        spent = total(costs(connection, (), site=site.assets.name)).usd
    found = shown(site, COST_REPORT)
    assert Decimal(str(found["window_usd"].value)) == spent > 0
    assert found["today_usd"] == found["window_usd"]
    assert found["published"].value == 2
    assert found["page_usd"].value == float(round(spent / 2, 6))
    days = found["days"]
    assert isinstance(days, dg.TableMetadataValue)
    assert [(row.data["published"], row.data["usd_not_ok"]) for row in days.records] == [(2, 0.0)]


def test_its_text_holds_the_plots_themselves(make_site: MakeSite) -> None:
    site = published(make_site)
    make_reports(site)
    report = shown(site, COST_REPORT)["report"]
    assert isinstance(report, dg.MarkdownMetadataValue)
    images = re.findall(r"!\[([^\]]*)\]\(data:image/svg\+xml,[^)\s]+\)", report.value)
    assert "Dollars per day by class" in images
    assert len(images) == 5  # nothing failed, so there is no plot of retries


def test_it_says_where_the_file_is_that_the_command_line_writes_too(make_site: MakeSite) -> None:
    site = published(make_site)
    make_reports(site)
    for name in BOTH:
        assert shown(site, name)["file"].value == str(file_of(site))
    page = file_of(site).read_text()
    assert f"Towns of {site.assets.name}" in page
    assert "<h2>Costs</h2>" in page
    assert "<h2>Health</h2>" in page


def test_its_definition_says_the_columns_that_it_then_shows(make_site: MakeSite) -> None:
    site = published(make_site)
    make_reports(site)
    graph = site.definitions.resolve_asset_graph()
    declared = {
        name: [
            (column.name, column.type)
            for column in graph.get(report_key(site.assets, name))
            .metadata["dagster/column_schema"]
            .value.columns
        ]
        for name in BOTH
    }
    days = shown(site, COST_REPORT)["days"]
    assert isinstance(days, dg.TableMetadataValue)
    assert [(column.name, column.type) for column in days.schema.columns] == declared[COST_REPORT]
    figures = shown(site, PIPELINE_HEALTH)
    kinds = {"int": int, "float": float}
    for name, kind in declared[PIPELINE_HEALTH]:
        assert isinstance(figures[name].value, kinds[kind]), name
    for name in BOTH:
        assert shown(site, name)["dagster/uri"].value == file_of(site).resolve().as_uri()


def test_one_report_can_be_made_alone_and_the_file_is_whole_all_the_same(
    make_site: MakeSite,
) -> None:
    site = published(make_site)
    result = make_reports(site, PIPELINE_HEALTH)
    assert verdicts(site, result).keys() == {"queue_age", "uncertain_age", "failures_not_rising"}
    key = report_key(site.assets, COST_REPORT)
    assert site.instance.get_latest_materialization_event(key) is None
    assert "<h2>Costs</h2>" in file_of(site).read_text()


def test_a_healthy_site_passes_every_check(make_site: MakeSite) -> None:
    site = published(make_site)
    assert verdicts(site, make_reports(site)) == {
        "cost_within_plan": True,
        "queue_age": True,
        "uncertain_age": True,
        "failures_not_rising": True,
    }


@pytest.mark.parametrize(
    ("check", "health"),
    [
        ("cost_within_plan", {"day_budget_share": 0.0000001}),
        ("queue_age", {"queue_age_s": 100}),
        ("failures_not_rising", {"failed_at_least": 1}),
    ],
)
def test_a_check_warns_and_leaves_the_run_green(
    check: str, health: dict[str, float], make_site: MakeSite
) -> None:
    site = make_site(
        rows_of(3, t01=INVALID), health={"queue_age_s": 1_000_000, "failed_at_least": 9} | health
    )
    site.materialize_topics()
    site.materialize(*Stage, pages=("t01", "t02"))
    with site.ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.page_jobs SET next_attempt_at = now() - interval '1 hour' "
                "WHERE site = :site AND state = 'queued'"
            ),
            {"site": site.assets.name},
        )
    result = make_reports(site)
    assert result.success
    assert [name for name, passed in verdicts(site, result).items() if not passed] == [check]


def test_pages_that_wait_for_later_do_not_make_the_queue_old(make_site: MakeSite) -> None:
    site = make_site(rows_of(1), retries=FOR_LONG)
    site.materialize_topics()
    site.set_faults(faulty("Brigg 1"))
    site.materialize(*Stage, pages="t01")
    make_reports(site)
    found = shown(site, PIPELINE_HEALTH)
    assert (found["due"].value, found["queue_age_s"].value) == (0, 0.0)
    assert found["possible_double_spend_usd"].value == pytest.approx(
        float(site.report("t01").uncertain_usd)
    )


def test_nothing_that_a_model_wrote_or_a_prompt_says_is_shown(make_site: MakeSite) -> None:
    site = make_site(rows_of(1, t01=INVALID))
    site.materialize_topics()
    site.materialize(*Stage, pages="t01")
    result = make_reports(site)
    assert "need_a_person" in shown(site, PIPELINE_HEALTH)
    assert INVALID not in site.shown_of(result)
    assert INVALID not in file_of(site).read_text()


def test_a_file_that_cannot_be_written_fails_the_run_and_says_why(make_site: MakeSite) -> None:
    site = published(make_site)
    file_of(site).mkdir(parents=True)
    result = make_reports(site)
    assert not result.success
    assert "the report cannot be written to" in site.shown_of(result)


def test_the_job_makes_both_reports(make_site: MakeSite) -> None:
    site = published(make_site)
    assert site.run_job(f"{site.assets.name}_reports").success
    assert all(shown(site, name)["file"].value for name in BOTH)


def schedule_of(site: TownSite) -> dg.ScheduleDefinition:
    """When the reports of a site are made anew."""
    (found,) = [
        schedule
        for schedule in site.definitions.schedules or ()
        if schedule.name == f"{site.assets.name}_reports_schedule"
    ]
    assert isinstance(found, dg.ScheduleDefinition)
    return found


@pytest.mark.parametrize(
    ("refresh", "cron"), [("hourly", r"\d+ \* \* \* \*"), ("daily", r"\d+ 5 \* \* \*")]
)
def test_the_schedule_is_on_and_goes_as_often_as_the_site_file_says(
    refresh: str, cron: str, make_site: MakeSite
) -> None:
    schedule = schedule_of(make_site(rows_of(1), health={"refresh": refresh}))
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert re.fullmatch(cron, str(schedule.cron_schedule))
    assert 0 <= int(str(schedule.cron_schedule).split()[0]) < 60


def test_sites_are_spread_over_the_hour(make_site: MakeSite) -> None:
    schedules = [schedule_of(make_site(rows_of(1))) for _ in range(5)]
    assert len({str(schedule.cron_schedule) for schedule in schedules}) > 1
