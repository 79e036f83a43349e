"""What is due without anybody's selection: the sensors, and the job's limits.

The job at work is in ``test_mixed_run``.
"""

import re

import dagster as dg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from content_pipeline.bootstrap import model_route
from content_pipeline.components import due_work, sensor_ticks
from content_pipeline.config import DAY_BUDGET_VARIABLE
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import Stage
from content_pipeline.ledger import jobs, leases, reports, routes
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline_tests.components.conftest import (
    FOR_LONG,
    MakeSite,
    TownSite,
    faulty,
    rows_of,
    throttled,
)


def sensor_of(site: TownSite, name: str) -> dg.SensorDefinition:
    sensor = site.definitions.resolve_sensor_def(f"{site.assets.name}_{name}")
    assert isinstance(sensor, dg.SensorDefinition)
    return sensor


def tick(site: TownSite, name: str) -> object:
    with dg.build_sensor_context(instance=site.instance) as context:
        return sensor_of(site, name)(context)


def limit_of(site: TownSite, result: dg.ExecuteInProcessResult) -> str:
    """After how many seconds Dagster ends the run."""
    run = site.instance.get_run_by_id(result.run_id)
    assert run is not None
    return run.tags["dagster/max_runtime"]


def told(answer: object) -> str:
    assert isinstance(answer, dg.SkipReason)
    return answer.skip_message or ""


def waited_s(said: str) -> int:
    """The seconds that a sensor names: some pass before it is asked."""
    found = re.search(r"(\d+) s\.$", said)
    assert found, said
    return int(found[1])


def test_no_paid_work_starts_by_itself_before_somebody_switches_it_on(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    assert sensor_of(site, "due_work_sensor").default_status is dg.DefaultSensorStatus.STOPPED


def test_a_run_is_asked_for_while_something_is_due_and_none_is_at_it(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    assert told(tick(site, "due_work_sensor")) == "Every page is done, failed or stopped."
    site.submit()
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)

    job = site.definitions.resolve_job_def(f"{site.assets.name}_due_work")
    run = site.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert told(tick(site, "due_work_sensor")) == "A run is at it."
    site.instance.delete_run(run.run_id)
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)


def test_pages_that_wait_are_counted_and_their_time_told(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.set_faults(throttled("Brigg"))
    site.materialize_topics()
    site.materialize(*Stage, pages="t01")
    said = told(tick(site, "due_work_sensor"))
    due = re.match(r"1 pages wait; the first is due in (\d+) s", said)
    assert due is not None, said
    assert 300 < int(due[1]) < 700, "600 s, some jitter, and less by what the machine took so far"


def test_many_pages_that_wait_are_not_all_counted(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(rows_of(4))
    site.submit()
    with site.ledger.begin() as connection:
        for page in reports.page_reports(connection, site.assets.name):
            jobs.postpone(connection, jobs.load(connection, page.page_job_id), wait_s=900)
    said = told(tick(site, "due_work_sensor"))
    assert said.startswith("4 pages wait; the first is due in ")
    assert 800 < waited_s(said) <= 900
    monkeypatch.setattr(leases, "COUNTED_TO", 4)
    said = told(tick(site, "due_work_sensor"))
    assert said.startswith("4+ pages wait; the first is due in ")


def test_what_it_starts_is_said_on_it_announcements_too(make_site: MakeSite) -> None:
    said = sensor_of(make_site(rows_of(1)), "due_work_sensor").description or ""
    for word in ("retries", "workers that died", "announcements", "off until switched on"):
        assert word in said


def test_a_tick_that_the_ledger_does_not_answer_is_given_up(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sensor that waited for ever would hold up all others."""
    monkeypatch.setattr(sensor_ticks, "STATEMENT_LIMIT_S", 0.05)
    site = make_site(rows_of(1))
    with site.ledger.begin() as migrating:
        migrating.execute(text("LOCK TABLE content_pipeline.page_jobs"))
        with pytest.raises(OperationalError, match="statement timeout"):
            due_work.run_once(site.instance, site.ledger, site.assets)
    answer = due_work.run_once(site.instance, site.ledger, site.assets)
    assert answer.said == "Every page is done, failed or stopped."


def test_pages_whose_time_has_come_among_many_that_wait_are_one_run_and_looking_sends_nothing(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(12), retries=FOR_LONG)
    site.set_faults(*(faulty(row["name"]) for row in rows_of(12)))
    site.submit()
    name = f"{site.assets.name}_due_work"
    assert site.run_job(name).success
    calls = len(site.provider.requests())
    assert told(tick(site, "due_work_sensor")).startswith("12 pages wait; the first is due in ")
    with site.ledger.begin() as connection:
        pages = reports.page_reports(connection, site.assets.name)
        for page in pages[:5]:
            jobs.postpone(connection, jobs.load(connection, page.page_job_id), wait_s=0)
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    assert len(site.provider.requests()) == calls == 12
    site.set_faults()
    assert site.tags_of(site.run_job(name))["pages/published"] == "5"


def test_an_announcement_that_waits_is_due_work_though_every_page_is_done(
    make_site: MakeSite,
) -> None:
    storage = {"attempts": 9, "first_wait_s": 500_000, "max_wait_s": 500_000}
    site = make_site(rows_of(1), retries={"storage": storage})
    sitemap = site.project.root / "public" / site.assets.name / "sitemap.xml"
    sitemap.mkdir(parents=True)
    site.submit()
    name = f"{site.assets.name}_due_work"
    assert not site.run_job(name).success
    said = told(tick(site, "due_work_sensor"))
    assert said.startswith("Every page is done, failed or stopped. An announcement is due in ")

    sitemap.rmdir()
    let_announcements_be_due(site)
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    assert site.run_job(name).success
    assert sitemap.read_text().count("<url>") == 1
    assert told(tick(site, "due_work_sensor")) == "Every page is done, failed or stopped."


def test_a_hook_that_gathers_is_due_work_when_its_window_ends(
    make_site: MakeSite, sandbox_cms: CMSClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_HOOK_URL", f"{sandbox_cms.base_url}/hooks/deploy/towns")
    site = make_site(rows_of(2), announce=[{"kind": "deploy_hook", "debounce_s": 3600}])
    site.submit()
    name = f"{site.assets.name}_due_work"
    assert site.run_job(name).success
    said = told(tick(site, "due_work_sensor"))
    assert said.startswith("Every page is done, failed or stopped. An announcement is due in 3")

    let_announcements_be_due(site)
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    assert site.run_job(name).success
    assert len(sandbox_cms.deliveries()) == 1
    assert told(tick(site, "due_work_sensor")) == "Every page is done, failed or stopped."


def let_announcements_be_due(site: TownSite) -> None:
    with site.ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.effects SET next_attempt_at = now() "
                "WHERE site = :site AND state = 'pending'"
            ),
            {"site": site.assets.name},
        )


def test_no_run_is_asked_for_while_only_a_person_can_help(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.submit()
    with site.ledger.begin() as connection:
        refused = Failure(failure_class=FailureClass.AUTH, message="the key is revoked")
        routes.open_circuit(connection, model_route(site.site), refused)
    assert told(tick(site, "due_work_sensor")) == (
        "1 pages wait until a person has put an account in order; see `content-pipeline status`."
    )


def test_its_runs_come_before_the_queue_of_a_backfill(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    job = site.definitions.resolve_job_def(f"{site.assets.name}_due_work")
    assert job.tags == {
        "site": site.assets.name,
        "content_pipeline/due_work": site.assets.name,
        "dagster/priority": "10",
        "dagster/max_runtime": "1800",
    }


def test_a_run_is_ended_after_what_its_site_allows(make_site: MakeSite) -> None:
    site = make_site(rows_of(1), lane={"run_limit_s": 900.5, "patience_s": 0})
    site.materialize_topics()
    by_assets = site.materialize(*Stage, pages="t01")
    by_job = site.run_job(f"{site.assets.name}_due_work")
    for result in (by_assets, by_job):
        assert limit_of(site, result) == "900.5"


def test_a_limit_that_somebody_gave_a_run_stays(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    job = site.definitions.resolve_job_def(f"{site.assets.name}_due_work")
    result = job.execute_in_process(instance=site.instance, tags={"dagster/max_runtime": "60"})
    assert limit_of(site, result) == "60"


def test_a_run_begins_no_page_that_it_could_be_ended_with(make_site: MakeSite) -> None:
    """Half a second of a run's time is not reserved for pages at work, so a few are begun."""
    site = make_site(
        rows_of(12),
        generation={
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 5,
            "answer_slack_s": 1,
            "in_flight": 1,
            "sandbox": {"latency_median_s": 0.3, "latency_sigma": 0},
        },
        lane={"patience_s": 0, "longest_hold_s": 40, "run_limit_s": 40.5},
    )
    site.submit()
    name = f"{site.assets.name}_due_work"
    first = site.run_job(name)
    assert first.success
    done = int(site.tags_of(first)["pages/published"])
    assert 1 <= done < 12
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)


def test_pages_that_waited_for_a_budget_are_due_once_it_is_raised(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(rows_of(2))
    site.submit()
    monkeypatch.setenv(DAY_BUDGET_VARIABLE, "0")
    site.run_job(f"{site.assets.name}_due_work")
    for _ in range(2):
        assert told(tick(site, "due_work_sensor")).startswith("2 pages wait; the first is due in ")
    monkeypatch.delenv(DAY_BUDGET_VARIABLE)
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    site.run_job(f"{site.assets.name}_due_work")
    assert len(site.writes()) == 2


def test_a_run_ends_after_so_many_pages_and_the_next_goes_on(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_work, "PAGES_PER_RUN", 2)
    generation = {"provider": "sandbox", "model": "gpt-5-mini", "in_flight": 1}
    site = make_site(rows_of(12), generation=generation)
    site.submit()
    name = f"{site.assets.name}_due_work"
    first = site.run_job(name)
    assert first.success
    done = int(site.tags_of(first)["pages/published"])
    assert 2 <= done < 12
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    rest = 0
    while rest + done < 12:
        rest += int(site.tags_of(site.run_job(name))["pages/published"])
    assert (site.billed(), len(site.writes())) == (12, 12)


def test_a_run_with_nothing_to_do_is_green(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    result = site.run_job(f"{site.assets.name}_due_work")
    assert result.success
    assert site.tags_of(result) == {
        "site": site.assets.name,
        "content_pipeline/due_work": site.assets.name,
        "cost_usd": "0.0000",
        "tokens": "0",
    }
