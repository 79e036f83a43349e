"""A publish that nobody knows the end of is settled by asking the CMS, after its quiet period."""

from dataclasses import replace

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components.site_at_work import site_at_work
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import jobs, routes
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.site_cms import cms_route
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of
from content_pipeline_tests.components.test_due_work import sensor_of, tick, told, waited_s

S = PageJobState


def die_while_publishing(site: TownSite, *, written: bool) -> None:
    """Let a worker be gone with its first page, right before or after the CMS took it."""
    wanted = "page_written" if written else "publish_intended"

    def die(checkpoint: str) -> None:
        if checkpoint == wanted:
            raise KeyboardInterrupt

    site.submit()
    with site_at_work(site.site, "a run") as runtime, pytest.raises(KeyboardInterrupt):
        mortal = replace(runtime, on_checkpoint=die)
        list(advance(mortal, Selection(site=site.assets.name)))
    page = site.report("t01")
    assert page.state is S.PUBLISHING
    with site.ledger.begin() as connection:  # the time of the dead worker's lease passes
        gone = text("DELETE FROM content_pipeline.leases WHERE resource = :resource")
        connection.execute(gone, {"resource": f"page:{page.page_id}"})


def wait(site: TownSite, seconds: float) -> None:
    with site.ledger.begin() as connection:
        job = jobs.load(connection, site.report("t01").page_job_id)
        jobs.postpone(connection, job, seconds)


def test_nothing_is_asked_where_nothing_is_unsettled(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.submit()
    assert told(tick(site, "reconcile_sensor")) == "No page is unsettled."


def test_it_is_on_because_it_pays_for_nothing(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    status = sensor_of(site, "reconcile_sensor").default_status
    assert status is dg.DefaultSensorStatus.RUNNING


@pytest.mark.parametrize("job", ["reconcile", "due_work"])
@pytest.mark.parametrize("written", [True, False])
def test_a_lost_publish_is_settled_end_to_end(job: str, written: bool, make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    die_while_publishing(site, written=written)
    billed, writes = site.billed(), len(site.writes())
    assert writes == int(written)

    wait(site, 90)
    said = told(tick(site, "reconcile_sensor"))
    assert said.startswith("1 pages are unsettled; the CMS is asked in ")
    assert 30 < waited_s(said) <= 90
    assert told(tick(site, "due_work_sensor")).startswith("1 pages wait; the first is due in ")
    wait(site, 0)
    assert isinstance(tick(site, f"{job}_sensor"), dg.RunRequest)

    name = f"{site.assets.name}_{job}"
    for _ in range(3):
        if site.report("t01").state is not S.PUBLISHED:
            assert site.run_job(name).success
            wait(site, 0)
    assert site.report("t01").state is S.PUBLISHED
    assert len(site.writes()) == 1, "present is confirmed, absent is written once"
    assert site.billed() == billed
    assert site.event(Stage.ARTIFACT, "t01").partition == "t01"
    assert told(tick(site, "reconcile_sensor")) == "No page is unsettled."


def test_no_other_page_is_begun_by_it(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.submit()
    assert site.run_job(f"{site.assets.name}_reconcile").success
    assert (site.billed(), site.writes()) == (0, [])


def test_a_closed_cms_is_not_asked(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    die_while_publishing(site, written=True)
    wait(site, 0)
    refused = Failure(failure_class=FailureClass.AUTH, message="401")
    with site.ledger.begin() as connection:
        routes.open_circuit(connection, cms_route(site.site), refused)
    assert isinstance(tick(site, "reconcile_sensor"), dg.SkipReason)
