"""What people change on a site shows on their pages in Dagster, and a nightly sweep misses none."""

import dagster as dg

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import routes
from content_pipeline.site_cms import cms_route
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of, write_table
from content_pipeline_tests.components.test_due_work import sensor_of, tick, told

S = PageJobState


def live(make_site: MakeSite, count: int = 2, **changes: object) -> TownSite:
    site = make_site(rows_of(count), **changes)
    site.submit()
    assert site.run_job(f"{site.assets.name}_due_work").success
    return site


def look(site: TownSite, **config: object) -> dg.ExecuteInProcessResult:
    return site.run_job(f"{site.assets.name}_survey", **config)


def check_of(site: TownSite, result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = site.checks_of(result)
    return found


def test_an_untouched_site_is_one_green_run_without_a_word(make_site: MakeSite) -> None:
    site = live(make_site)
    result = look(site)
    assert result.success
    assert site.checks_of(result) == []
    name = site.assets.name
    assert site.tags_of(result) == {"site": name, "content_pipeline/survey": name}


def test_an_edit_shows_on_the_check_and_the_pane_of_its_page(make_site: MakeSite) -> None:
    site = live(make_site)
    site.edit("t01")
    result = look(site)
    assert result.success
    check = check_of(site, result)
    assert (check.partition, check.passed) == ("t01", False)
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert "the page was edited on the site since we published revision 1" in (
        check.description or ""
    )
    assert "content-pipeline conflicts" in (check.description or "")
    assert str(check.metadata["on_the_site"].value).startswith("the page was edited")
    assert site.told_of(Stage.ARTIFACT, "t01", result) == [check.description]
    assert site.tags_of(result)["site/edited"] == "1"
    assert site.checks_of(look(site)) == [], "it is told once"


def test_a_later_run_over_the_page_tells_it_again_and_repeats_nothing(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    site.materialize_topics()
    site.edit("t01")
    look(site)
    result = site.materialize(*Stage, pages="t01")
    assert result.success
    told_by = {check.check_name: check.passed for check in site.checks_of(result)}
    assert told_by == {"generated": True, "valid": True, "published": False}
    assert site.billed() == 1


def test_a_change_that_is_taken_back_makes_the_check_green(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    before = site.file_of("t01").read_text()
    site.edit("t01")
    look(site)
    site.file_of("t01").write_text(before)
    assert check_of(site, look(site)).passed


def test_what_the_policy_puts_back_is_due_work(make_site: MakeSite) -> None:
    site = live(make_site)
    site.file_of("t02").unlink()
    result = look(site, full=True)
    assert site.tags_of(result)["site/put_back"] == "1"
    assert not site.file_of("t02").exists(), "the survey writes nothing"
    assert isinstance(tick(site, "due_work_sensor"), dg.RunRequest)
    assert site.run_job(f"{site.assets.name}_due_work").success
    assert site.file_of("t02").exists()
    assert site.billed() == 2


def test_time_ends_a_survey_and_the_next_goes_on(make_site: MakeSite) -> None:
    site = live(make_site)
    site.edit("t01")
    site.edit("t02")
    assert look(site, budget_s=0.0).success
    assert "site/edited" in site.tags_of(look(site, full=True))


def test_the_sensor_is_off_and_asks_for_one_run_at_a_time(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    sensor = sensor_of(site, "site_changes_sensor")
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    assert isinstance(tick(site, "site_changes_sensor"), dg.RunRequest)
    job = site.definitions.resolve_job_def(f"{site.assets.name}_survey")
    run = site.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert told(tick(site, "site_changes_sensor")) == "A run is at it."
    site.instance.delete_run(run.run_id)


def test_a_cms_that_refuses_us_is_not_looked_at(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    refused = Failure(failure_class=FailureClass.AUTH, message="401 from the CMS")
    with site.ledger.begin() as connection:
        routes.open_circuit(connection, cms_route(site.site), refused)
    said = told(tick(site, "site_changes_sensor"))
    assert said == "The CMS is not asked now: 401 from the CMS"
    result = look(site)
    assert not result.success
    assert "401 from the CMS" in site.shown_of(result)


def test_the_nightly_sweep_is_off_and_looks_at_everything(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    name = f"{site.assets.name}_nightly_sweep"
    schedule = site.definitions.resolve_schedule_def(name)
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert schedule.cron_schedule == "0 3 * * *"
    with dg.build_schedule_context(instance=site.instance) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or ()
    job = site.definitions.resolve_job_def(f"{site.assets.name}_survey")
    result = job.execute_in_process(instance=site.instance, run_config=dict(request.run_config))
    assert result.success


def test_the_partition_of_a_withdrawn_page_tells_so(make_site: MakeSite) -> None:
    topics = {
        "table": "topics.csv",
        "id": "code",
        "name": "name",
        "path": "/{name}/",
        "when_gone": "unpublish",
    }
    site = live(make_site, 2, topics=topics)
    site.materialize_topics()
    assert site.site.table is not None
    write_table(site.site.table, rows_of(1))
    taken = site.materialize_topics()
    assert taken.success
    result = site.run_job(f"{site.assets.name}_due_work")
    assert result.success
    assert not site.file_of("t02").exists()
    said = f"{site.report('t02').name} is off the site: its topic is no longer in the table."
    assert site.told_of(Stage.ARTIFACT, "t02", result) == [said]
    checks = {check.check_name: check for check in site.checks_of(result)}
    assert checks["published"].description == said
    assert not checks["published"].passed
    assert checks["published"].severity is dg.AssetCheckSeverity.WARN
    partitions = site.instance.get_dynamic_partitions(f"{site.assets.name}_pages")
    assert "t02" in partitions, "its history stays, and a topic that returns has it again"
    again = site.materialize(*Stage, pages="t02")
    assert again.success
    assert (site.report("t02").state, site.billed()) == (S.WITHDRAWN, 2)
