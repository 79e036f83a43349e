"""The schedule: what a tick plans and requests, and that its runs do exactly that."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import dagster as dg
import pytest

from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.operations.repair import retry
from content_pipeline_tests.components.conftest import (
    INVALID,
    MakeSite,
    TownSite,
    rows_of,
    write_table,
)

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


def schedule_of(site: TownSite) -> dg.ScheduleDefinition:
    found = site.definitions.resolve_schedule_def(f"{site.assets.name}_schedule")
    assert isinstance(found, dg.ScheduleDefinition)
    return found


class Answer(Protocol):
    """What the daemon reads of a schedule's answer; its class is Dagster's own."""

    @property
    def run_requests(self) -> Sequence[dg.RunRequest] | None: ...

    @property
    def skip_message(self) -> str | None: ...


def tick(site: TownSite, at: datetime = NIGHT) -> Answer:
    """What the daemon would get from the schedule."""
    with dg.build_schedule_context(site.instance, scheduled_execution_time=at) as context:
        return schedule_of(site).evaluate_tick(context)


def requests_of(site: TownSite, at: datetime = NIGHT) -> list[dg.RunRequest]:
    return list(tick(site, at).run_requests or ())


def carry_out(site: TownSite, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    return job.execute_in_process(
        instance=site.instance,
        run_config=request.run_config,
        tags=dict(request.tags),
        raise_on_error=False,
    )


def topics_of(request: dg.RunRequest) -> list[str]:
    """The pages that a request names one by one; empty for a range."""
    ops = request.run_config.get("ops", {})
    return [key for op in ops.values() for key in op["config"]["topics"]]


def change(site: TownSite, count: int, **known_for: str) -> None:
    assert site.site.table is not None
    write_table(site.site.table, rows_of(count, **known_for))


def test_it_is_off_until_somebody_switches_it_on_and_then_runs_at_night(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    schedule = schedule_of(site)
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 2 * * *", "UTC")
    other = make_site(rows_of(1), schedule={"cron": "30 4 * * 1"})
    assert schedule_of(other).cron_schedule == "30 4 * * 1"


def test_a_new_site_is_ranges_of_partitions_that_publish_everything_once(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    requests = requests_of(site)
    ranges = [
        (
            request.tags["dagster/asset_partition_range_start"],
            request.tags["dagster/asset_partition_range_end"],
        )
        for request in requests
    ]
    assert ranges == [("t01", "t30"), ("t31", "t60")]
    assert site.billed() == 0, "planning pays nothing"
    results = [carry_out(site, request) for request in requests]
    assert all(result.success for result in results)
    assert [site.tags_of(result)["pages/published"] for result in results] == ["30", "30"]
    assert (site.billed(), len(site.writes())) == (60, 60)
    assert set(site.statuses(Stage.ARTIFACT, ["t01", "t30", "t60"]).values()) == {"MATERIALIZED"}


def test_scattered_pages_are_one_run_that_names_them_and_touches_no_other(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(12))
    for request in requests_of(site):
        carry_out(site, request)
    change(site, 14, t03="its harbour", t09="its tower")
    (request,) = requests_of(site, NIGHT + timedelta(days=1))
    assert topics_of(request) == ["t03", "t09", "t13", "t14"]
    result = carry_out(site, request)
    assert result.success
    assert site.tags_of(result)["pages/published"] == "4"
    assert (site.billed(), len(site.writes())) == (16, 16)
    shown = {
        event.partition
        for event in site.events_of(result, dg.DagsterEventType.ASSET_MATERIALIZATION)
        if event.partition
    }
    assert shown == {"t03", "t09", "t13", "t14"}
    statuses = site.statuses(Stage.ARTIFACT, ["t01", "t03", "t14"])
    assert set(statuses.values()) == {"MATERIALIZED"}


def test_a_run_says_what_was_planned_for_it(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    (request,) = requests_of(site)
    result = carry_out(site, request)
    tags = site.tags_of(result)
    assert tags["content_pipeline/plan"] == "2026-03-01T02:00Z"
    assert tags["plan/batch"] == "1 of 1"
    assert tags["plan/pages"] == "3"
    assert 0 < float(tags["plan/expected_usd"]) < float(tags["plan/worst_usd"])
    assert float(tags["cost_usd"]) <= float(tags["plan/worst_usd"])
    run = site.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags["dagster/max_runtime"] == "1800"


def test_a_tick_that_is_evaluated_again_names_its_runs_as_before(make_site: MakeSite) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    first = [request.run_key for request in requests_of(site)]
    assert len(set(first)) == 2
    assert [request.run_key for request in requests_of(site)] == first
    later = [request.run_key for request in requests_of(site, NIGHT + timedelta(days=1))]
    assert not set(first) & set(later), "another night asks again"


def test_a_tick_that_crashed_half_way_asks_for_the_rest_though_the_first_run_is_done(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    first, second = requests_of(site)
    carry_out(site, first)
    (rest,) = requests_of(site)
    assert rest.run_key not in (first.run_key,), "or Dagster would drop it as requested already"
    carry_out(site, rest)
    assert site.billed() == 60
    assert carry_out(site, second).success
    assert (site.billed(), len(site.writes())) == (60, 60)


def test_the_runs_of_an_earlier_tick_are_waited_for(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    (request,) = requests_of(site)
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    run = site.instance.create_run_for_job(job, run_config=request.run_config, tags=request.tags)
    said = tick(site, NIGHT + timedelta(days=1))
    assert said.skip_message == "The runs of 2026-03-01T02:00Z are not finished."
    assert [again.run_key for again in requests_of(site)] == [request.run_key], "the same tick"
    site.instance.report_run_canceled(run)
    assert len(requests_of(site, NIGHT + timedelta(days=1))) == 1


def test_a_night_without_work_is_skipped_and_says_why(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    for request in requests_of(site):
        carry_out(site, request)
    said = tick(site, NIGHT + timedelta(days=1))
    assert not said.run_requests
    assert said.skip_message is not None
    assert "3 unchanged and published" in said.skip_message


def test_a_page_that_needs_a_person_is_left_alone_until_it_is_released(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3, t02=INVALID))
    (request,) = requests_of(site)
    assert not carry_out(site, request).success, "a red run: a page needs a person"
    assert site.report("t02").state is PageJobState.FAILED_TERMINAL
    said = tick(site, NIGHT + timedelta(days=1))
    assert "1 needs a person" in (said.skip_message or "")
    retry(site.ledger, site.assets.name, "t02", cause="test")
    (again,) = requests_of(site, NIGHT + timedelta(days=2))
    assert topics_of(again) == ["t02"]


def test_the_publish_rate_holds_back_what_is_not_paid_for_yet(make_site: MakeSite) -> None:
    site = make_site(rows_of(9), schedule={"new_pages_per_day": 4})
    said = tick(site)
    assert said.run_requests
    (request,) = said.run_requests
    assert topics_of(request) == ["t01", "t02", "t03", "t04"]
    carry_out(site, request)
    assert (site.billed(), len(site.writes())) == (4, 4)
    later = tick(site, NIGHT + timedelta(hours=1))
    assert "5 publish rate reached" in (later.skip_message or "")


def test_a_backfill_of_everything_pays_for_no_more_than_the_publish_rate_takes(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(5), schedule={"new_pages_per_day": 2})
    site.materialize_topics()
    result = site.materialize(*Stage, pages=("t01", "t05"))
    assert result.success, "pages that wait are no failure"
    assert (site.billed(), len(site.writes())) == (2, 2)
    held = [
        check.description or ""
        for check in site.checks_of(result)
        if check.check_name == "generated" and not check.passed
    ]
    assert len(held) == 3
    for description in held:
        assert "waits for its turn: the site publishes at most 2 new pages a day" in description
        assert description.endswith(" 00:00 UTC."), "and when that is"


def test_the_budget_holds_back_what_it_has_no_room_for(make_site: MakeSite) -> None:
    site = make_site(rows_of(12), budgets={"page_usd": 0.1, "site_day_usd": 0.012})
    (request,) = requests_of(site)
    pages = int(request.tags["plan/pages"])
    assert 0 < pages < 12
    result = carry_out(site, request)
    assert int(site.tags_of(result).get("pages/published", 0)) > 0


def test_a_table_that_cannot_be_read_is_the_ticks_error_and_changes_nothing(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3))
    assert site.site.table is not None
    site.site.table.unlink()
    with pytest.raises(Exception, match="evaluation of schedule") as caught:
        tick(site)
    assert "topics.csv" in str(caught.value.__cause__)
    assert site.instance.get_dynamic_partitions(site.assets.partitions_name) == []
