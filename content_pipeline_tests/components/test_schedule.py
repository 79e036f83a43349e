"""The schedule: what a tick plans and requests, and that its runs do exactly that."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components import planned_runs
from content_pipeline.components.planned_runs import PlanCursor
from content_pipeline.components.sensor_ticks import kept_cursor, stored_cursor
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import nightly_plans
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


class SensorAnswer(Answer, Protocol):
    """The same of a sensor's."""

    @property
    def cursor(self) -> str | None: ...


def tick(site: TownSite, at: datetime = NIGHT) -> Answer:
    """What the daemon would get from the schedule."""
    with dg.build_schedule_context(site.instance, scheduled_execution_time=at) as context:
        return schedule_of(site).evaluate_tick(context)


def planned(site: TownSite, at: datetime = NIGHT) -> dg.ExecuteInProcessResult:
    """Carry out the run that a tick asks for."""
    (request,) = tick(site, at).run_requests or ()
    job = site.definitions.resolve_job_def(f"{site.assets.name}_nightly_plan")
    return job.execute_in_process(
        instance=site.instance,
        run_config=request.run_config,
        tags=dict(request.tags),
        raise_on_error=False,
    )


def shown(site: TownSite) -> dict[str, Any]:
    """What the newest plan shows in Dagster."""
    event = site.instance.get_latest_materialization_event(site.assets.nightly_plan)
    assert event is not None
    assert event.asset_materialization is not None
    return {key: value.value for key, value in event.asset_materialization.metadata.items()}


def asked_for(site: TownSite, cursor: str | None = None) -> SensorAnswer:
    """What the daemon would get from the sensor that asks for a plan's runs."""
    sensor = site.definitions.resolve_sensor_def(f"{site.assets.name}_planned_runs_sensor")
    assert isinstance(sensor, dg.SensorDefinition)
    repository = site.definitions.get_repository_def()
    with dg.build_sensor_context(
        instance=site.instance, repository_def=repository, cursor=cursor
    ) as context:
        return sensor.evaluate_tick(context)


def requests_of(site: TownSite, at: datetime = NIGHT) -> list[dg.RunRequest]:
    """The runs of a night: the tick, its plan, and what is asked for then."""
    assert planned(site, at).success
    return list(asked_for(site).run_requests or ())


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


def test_a_tick_reads_neither_table_nor_ledger_and_asks_for_one_run_that_plans(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3))
    assert site.site.table is not None
    site.site.table.unlink()
    (request,) = tick(site).run_requests or ()
    assert request.run_key == f"{site.assets.name}:2026-03-01T02:00Z"
    assert request.tags["content_pipeline/plan"] == "2026-03-01T02:00Z"
    (again,) = tick(site).run_requests or ()
    assert again.run_key == request.run_key, "or Dagster would plan a repeated tick twice"
    (later,) = tick(site, NIGHT + timedelta(days=1)).run_requests or ()
    assert later.run_key != request.run_key


def test_a_tick_that_is_planned_again_keeps_its_runs(make_site: MakeSite) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    requests = requests_of(site)
    first = [request.run_key for request in requests]
    assert len(set(first)) == 2
    carry_out(site, requests[0])
    change(site, 70)
    assert [request.run_key for request in requests_of(site)] == first
    assert shown(site)["plan"].startswith("60 pages are due"), "it says what was kept"
    later = [request.run_key for request in requests_of(site, NIGHT + timedelta(days=1))]
    assert not set(first) & set(later), "another night asks again"


def test_runs_that_are_asked_for_twice_have_one_key_and_are_paid_once(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    assert planned(site).success
    asked = asked_for(site)
    again = asked_for(site)  # the daemon died before it had kept the cursor
    first, second = asked.run_requests or ()
    assert [request.run_key for request in again.run_requests or ()] == [
        first.run_key,
        second.run_key,
    ]
    for request in (first, second, first, second):
        assert carry_out(site, request).success
    assert (site.billed(), len(site.writes())) == (60, 60)
    said = asked_for(site, asked.cursor)
    assert said.skip_message == "All 2 runs of 2026-03-01T02:00Z are asked for."


@pytest.mark.parametrize("job_name", ["scheduled_pages", "nightly_plan"])
def test_the_runs_of_an_earlier_tick_are_waited_for(job_name: str, make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    job = site.definitions.resolve_job_def(f"{site.assets.name}_{job_name}")
    tags = {"content_pipeline/plan": "2026-03-01T02:00Z"}
    run = site.instance.create_run_for_job(job, tags=tags)
    said = tick(site, NIGHT + timedelta(days=1))
    assert said.skip_message == "The runs of 2026-03-01T02:00Z are not finished."
    assert tick(site).run_requests, "the same tick"
    site.instance.report_run_canceled(run)
    assert tick(site, NIGHT + timedelta(days=1)).run_requests


def test_a_night_without_work_asks_for_no_run_and_says_why(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    for request in requests_of(site):
        carry_out(site, request)
    assert requests_of(site, NIGHT + timedelta(days=1)) == []
    assert "3 unchanged and published" in (asked_for(site).skip_message or "")
    assert (shown(site)["pages"], shown(site)["runs"], shown(site)["skipped"]) == (0, 0, 3)


def test_a_page_that_needs_a_person_is_left_alone_until_it_is_released(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3, t02=INVALID))
    (request,) = requests_of(site)
    assert not carry_out(site, request).success, "a red run: a page needs a person"
    assert site.report("t02").state is PageJobState.FAILED_TERMINAL
    assert requests_of(site, NIGHT + timedelta(days=1)) == []
    assert "1 needs a person" in shown(site)["plan"]
    retry(site.ledger, site.assets.name, "t02", cause="test")
    (again,) = requests_of(site, NIGHT + timedelta(days=2))
    assert topics_of(again) == ["t02"]


def test_the_publish_rate_holds_back_what_is_not_paid_for_yet(make_site: MakeSite) -> None:
    site = make_site(rows_of(9), schedule={"new_pages_per_day": 4})
    (request,) = requests_of(site)
    assert topics_of(request) == ["t01", "t02", "t03", "t04"]
    carry_out(site, request)
    assert (site.billed(), len(site.writes())) == (4, 4)
    assert requests_of(site, NIGHT + timedelta(hours=1)) == []
    assert "5 publish rate reached" in shown(site)["plan"]


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


def test_a_table_that_cannot_be_read_is_the_plans_error_and_changes_nothing(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3))
    assert site.site.table is not None
    site.site.table.unlink()
    result = planned(site)
    assert not result.success
    assert "topics.csv" in site.shown_of(result)
    assert site.instance.get_dynamic_partitions(site.assets.partitions_name) == []
    assert asked_for(site).skip_message == "The schedule has planned nothing yet."


def test_the_plan_shows_pages_skips_tokens_dollars_duration_and_the_budget(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(4), schedule={"new_pages_per_day": 3})
    assert planned(site).success
    plan = shown(site)
    assert (plan["tick"], plan["pages"], plan["runs"], plan["skipped"]) == (
        "2026-03-01T02:00Z",
        3,
        1,
        1,
    )
    assert 0 < plan["expected_usd"] < plan["worst_usd"] < plan["room_usd"]
    assert plan["input_tokens"] > 0
    assert plan["output_tokens"] > 0
    assert plan["paid_calls"] == 3
    assert plan["duration_s"] > 0
    assert plan["budget"] == "fits"
    tables = [
        [
            (record.data["reason"], record.data["pages"], record.data["topics"])
            for record in plan[name].records
        ]
        for name in ("due_pages", "skipped_pages")
    ]
    assert tables == [[("new", 3, "t01, t02, t03")], [("publish rate reached", 1, "t04")]]


def test_a_night_costs_within_a_tenth_of_what_its_plan_expected(make_site: MakeSite) -> None:
    count = 40
    site = make_site(rows_of(count))
    for request in requests_of(site):
        carry_out(site, request)
    change(site, count, **{row["code"]: "its old bridge" for row in rows_of(count)})
    requests = requests_of(site, NIGHT + timedelta(days=1))
    expected = shown(site)["expected_usd"]
    assert shown(site)["pages"] == count
    results = [carry_out(site, request) for request in requests]
    cost = sum(float(site.tags_of(result)["cost_usd"]) for result in results)
    assert abs(expected - cost) / cost <= 0.1


def test_a_plan_made_by_hand_shows_the_same_and_writes_nothing(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    result = site.run_job(f"{site.assets.name}_nightly_plan")
    assert result.success
    assert shown(site)["pages"] == 3
    assert "runs" not in shown(site)
    with site.ledger.begin() as connection:
        assert nightly_plans.newest(connection, site.assets.name) is None
        wanted = "SELECT count(*) FROM content_pipeline.topics WHERE site = :site"
        found = connection.execute(text(wanted), {"site": site.assets.name})
        assert found.scalar_one() == 0
    assert asked_for(site).skip_message == "The schedule has planned nothing yet."


def test_a_new_plan_takes_the_place_of_one_whose_runs_were_not_asked_for(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    assert planned(site).success
    before = asked_for(site).cursor
    assert planned(site, NIGHT + timedelta(days=1)).success
    asked = asked_for(site, before)
    tags = [request.tags["content_pipeline/plan"] for request in asked.run_requests or ()]
    assert tags == ["2026-03-02T02:00Z"] * 2


def test_a_long_plan_is_asked_for_little_by_little(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(rows_of(75), schedule={"pages_per_run": 50})
    monkeypatch.setattr(planned_runs, "PER_TICK", 1)
    monkeypatch.setattr(planned_runs, "AHEAD", 2)
    assert planned(site).success
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    others = [site.instance.create_run_for_job(job)]
    asked = asked_for(site)
    assert [request.tags["plan/batch"] for request in asked.run_requests or ()] == ["1 of 2"]
    others.append(site.instance.create_run_for_job(job))
    waits = asked_for(site, asked.cursor)
    assert waits.skip_message == "2 runs are at work or in the queue."
    for run in others:
        site.instance.report_run_canceled(run)
    rest = asked_for(site, waits.cursor)
    assert [request.tags["plan/batch"] for request in rest.run_requests or ()] == ["2 of 2"]


def test_what_was_not_asked_for_within_a_day_is_left_to_the_next_plan(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    assert planned(site).success
    older = "UPDATE content_pipeline.nightly_plans SET created_at = now() - interval '25 hours'"
    with site.ledger.begin() as connection:
        connection.execute(text(f"{older} WHERE site = :site"), {"site": site.assets.name})
    said = asked_for(site)
    assert not said.run_requests
    assert (said.skip_message or "").startswith("1 runs of 2026-03-01T02:00Z were not asked for")


@pytest.mark.parametrize("stored", [None, "", "of another sensor", '{"place": 1}'])
def test_a_cursor_that_is_not_understood_begins_anew(stored: str | None) -> None:
    assert kept_cursor(PlanCursor, stored) == PlanCursor()
    assert kept_cursor(PlanCursor, stored_cursor(PlanCursor(plan_id=3, number=4))).number == 4
