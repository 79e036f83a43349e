"""Dagster's picture is made to agree with the ledger, whoever died or worked elsewhere."""

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.bootstrap import open_site
from content_pipeline.components import repairing, run_repair, sign_of_life
from content_pipeline.components.dagster_private import newest_evaluation
from content_pipeline.components.repairing import Repair, RepairCursor, run_once
from content_pipeline.components.sign_of_life import showing_life
from content_pipeline.components.site_assets import CHECKS
from content_pipeline.components.site_at_work import site_at_work
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import run_signs
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline_tests.components.conftest import (
    INVALID,
    MakeSite,
    TownSite,
    rows_of,
    write_table,
)
from content_pipeline_tests.components.test_due_work import sensor_of, tick, told

S = PageJobState
ALL = frozenset(Stage)


def work_elsewhere(site: TownSite, stages: frozenset[Stage] = ALL) -> None:
    """Make the site's pages as another machine or the command line does, without Dagster."""
    site.submit()
    with closing(open_site(site.site, site.project, site.ledger, purpose="cli")) as runtime:
        list(advance(runtime, Selection(site=site.assets.name, stages=stages)))


def repair(site: TownSite, cursor: RepairCursor | None = None, budget_s: float = 60) -> Repair:
    return run_once(
        site.instance,
        site.ledger,
        site.assets,
        cursor or RepairCursor(),
        settled_s=0,
        budget_s=budget_s,
    )


def pass_time(site: TownSite, seconds: float) -> None:
    """Let all signs of the site's runs be older by ``seconds``."""
    with site.ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.run_signs SET "
                "seen_at = seen_at - make_interval(secs => :s), "
                "suspected_at = suspected_at - make_interval(secs => :s) WHERE site = :site"
            ),
            {"s": seconds, "site": site.assets.name},
        )


def story(site: TownSite, stage: Stage, page: str) -> dg.AssetCheckEvaluation:
    check = dg.AssetCheckKey(site.assets.key(stage), CHECKS[stage])
    found = newest_evaluation(site.instance, check, page)
    assert found is not None
    return found


def begun_run(site: TownSite, status: dg.DagsterRunStatus) -> str:
    """A run of the site's pages as Dagster shows it, without any process."""
    job = site.definitions.resolve_job_def(f"{site.assets.name}_due_work")
    return site.instance.create_run_for_job(job, status=status).run_id


def status_of(site: TownSite, run_id: str) -> dg.DagsterRunStatus:
    run = site.instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings of a site whose silent runs are suspected after a second.

    The tests' database is up for a few seconds only, and longer silence is held against nobody.
    """
    monkeypatch.setattr(run_repair, "LEAST_SILENCE_S", 1)
    return {"patience_s": 0, "lease_s": 0.5}


class _Died(BaseException):
    """What a process that is gone would have left: no handler, no event."""


def die_at_work(site: TownSite, run_id: str, *, after: int, at: str = "page_proved") -> None:
    """Let the worker of a run be gone once ``after`` pages passed a checkpoint."""
    seen: list[str] = []

    def die(checkpoint: str) -> None:
        seen.append(checkpoint)
        if seen.count(at) >= after:
            raise _Died

    with pytest.raises(_Died), site_at_work(site.site, run_id) as runtime:
        mortal = replace(runtime, on_checkpoint=die)
        list(advance(mortal, Selection(site=site.assets.name)))
        raise _Died


def test_pages_made_elsewhere_are_shown_once(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    work_elsewhere(site)
    keys = ["t01", "t02", "t03"]
    assert set(site.statuses(Stage.ARTIFACT, keys).values()) == {"MISSING"}

    done = repair(site)
    assert (done.looked_at, done.materialized, done.stories) == (3, 9, 3)
    for stage in Stage:
        assert set(site.statuses(stage, keys).values()) == {"MATERIALIZED"}
        assert story(site, stage, "t02").passed
        target = story(site, stage, "t02").target_materialization_data
        assert target is not None
    shown = site.event(Stage.ARTIFACT, "t01")
    assert (shown.description or "").endswith("as the ledger says; no run lived to tell it")
    assert shown.metadata["cost_usd"].value == float(site.report("t01").usd), "told in full"
    assert shown.tags is not None
    assert shown.tags["dagster/code_version"] == site.site.generation_version

    again = repair(site)  # from the begin: comparing alone
    assert (again.looked_at, again.materialized, again.stories) == (3, 0, 0)
    assert repair(site, done.cursor).looked_at == 0
    assert repair(site, done.cursor).line() == "Dagster and the ledger agree."
    assert site.billed() == 3, "a look pays for nothing"


def test_what_a_run_told_itself_is_not_told_again(make_site: MakeSite) -> None:
    site = make_site(rows_of(2, t02=INVALID))
    site.materialize_topics()
    site.materialize(*Stage, pages=("t01", "t02"))
    done = repair(site)
    assert (done.looked_at, done.materialized, done.stories) == (2, 0, 0)


def test_the_reason_of_a_page_that_failed_elsewhere_is_told(make_site: MakeSite) -> None:
    site = make_site(rows_of(2, t01=INVALID))
    work_elsewhere(site)
    failed = [page for page in ("t01", "t02") if site.report(page).needs_person]
    assert failed == ["t01"]
    done = repair(site)
    assert (done.materialized, done.stories) == (4, 2)
    evaluation = story(site, Stage.ARTIFACT, "t01")
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert (evaluation.description or "").startswith("invalid_page")
    assert repair(site).stories == 0


def test_a_newer_revision_than_the_one_shown_counts_as_missing(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    assert site.materialize(*Stage, pages="t01").success
    before = repair(site)
    assert before.materialized == 0
    changed = replace_row(site, population="999")
    work_elsewhere(changed)
    assert changed.report("t01").revision == 2
    done = repair(changed, before.cursor)
    assert (done.looked_at, done.materialized) == (2, 3), "the superseded page job moved as well"
    assert changed.event(Stage.ARTIFACT, "t01").metadata["revision"].value == 2


def replace_row(site: TownSite, **values: str) -> TownSite:
    assert site.site.table is not None
    write_table(site.site.table, [rows_of(1)[0] | values])
    return site


def test_a_paid_draft_alone_is_shown_as_such(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    work_elsewhere(site, frozenset({Stage.DRAFT}))
    done = repair(site)
    assert done.materialized == 1
    assert site.statuses(Stage.DRAFT, ["t01"]) == {"t01": "MATERIALIZED"}
    assert site.statuses(Stage.PAGE, ["t01"]) == {"t01": "MISSING"}


def test_a_look_ends_with_its_budget_and_the_next_goes_on(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "PAGES_AT_ONCE", 2)
    site = make_site(rows_of(5))
    work_elsewhere(site)
    cursor, looks = RepairCursor(), []
    for _ in range(4):
        look = repair(site, RepairCursor.parse(str(cursor)), budget_s=0)
        looks.append(look.looked_at)
        cursor = look.cursor
    assert looks == [2, 2, 1, 0]
    assert set(site.statuses(Stage.PAGE, [f"t{n:02}" for n in range(1, 6)]).values()) == {
        "MATERIALIZED"
    }


def test_a_change_that_commits_late_is_not_passed_over(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    work_elsewhere(site)
    with site.ledger.begin() as slow:
        # It changes its page before the other one, and commits after the look at that one.
        slow.execute(
            text(
                "UPDATE content_pipeline.page_jobs SET updated_at = clock_timestamp() "
                "WHERE site = :site AND topic_key = 't01'"
            ),
            {"site": site.assets.name},
        )
        with site.ledger.begin() as quick:
            quick.execute(
                text(
                    "UPDATE content_pipeline.page_jobs SET updated_at = clock_timestamp() "
                    "WHERE site = :site AND topic_key = 't02'"
                ),
                {"site": site.assets.name},
            )
        first = repair(site)
    second = repair(site, first.cursor)
    assert site.statuses(Stage.ARTIFACT, ["t01", "t02"]) == {
        "t01": "MATERIALIZED",
        "t02": "MATERIALIZED",
    }
    assert second.looked_at == 2


def test_the_sensor_is_on_and_keeps_its_place(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    sensor = sensor_of(site, "repair_sensor")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert not sensor.has_jobs
    assert told(tick(site, "repair_sensor")) == "Dagster and the ledger agree."
    with dg.build_sensor_context(instance=site.instance) as context:
        sensor(context)
        assert json.loads(context.cursor or "")["read_again"] == []


def test_a_run_at_work_is_never_given_up(make_site: MakeSite, impatient: dict[str, Any]) -> None:
    site = make_site(rows_of(1), lane=impatient)
    run_id = begun_run(site, dg.DagsterRunStatus.STARTED)
    with site_at_work(site.site, run_id) as runtime:
        for _ in range(4):
            # However long it was silent: its sign comes before the look that would end it.
            pass_time(site, 1_000)
            assert repair(site).given_up == ()
            pass_time(site, 20)
            with site.ledger.begin() as connection:
                assert run_signs.show(
                    connection, run_id=run_id, site=site.assets.name, worker=runtime.worker
                )
            assert repair(site).given_up == ()
    assert status_of(site, run_id) is dg.DagsterRunStatus.STARTED
    assert not runtime.given_up.is_set()


@pytest.mark.parametrize(
    ("shown", "ends"),
    [
        (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE),
        (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.FAILURE),
        (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED),
    ],
)
def test_a_run_without_a_worker_is_ended_and_its_pages_are_shown(
    shown: dg.DagsterRunStatus,
    ends: dg.DagsterRunStatus,
    make_site: MakeSite,
    impatient: dict[str, Any],
) -> None:
    site = make_site(rows_of(2), lane=impatient)
    site.submit()
    run_id = begun_run(site, shown)
    die_at_work(site, run_id, after=1)
    first = repair(site)
    assert first.looked_at == 2
    assert first.materialized == 0, "a run that may live tells of its pages itself"

    pass_time(site, 100)
    second = repair(site, first.cursor)
    pass_time(site, 20)
    third = repair(site, second.cursor)
    assert second.given_up + third.given_up == (run_id,)
    assert status_of(site, run_id) is ends
    assert second.materialized + third.materialized > 0, (
        "its pages are read again from its begin on"
    )
    kept = [entry.dagster_event for entry in site.instance.all_logs(run_id)]
    said = [event.message or "" for event in kept if event]
    assert any(each.startswith("Nothing was heard of this run's worker") for each in said)
    fourth = repair(site, third.cursor)
    assert (fourth.given_up, fourth.looked_at) == ((), 0)


def test_a_worker_that_was_given_up_begins_no_page(
    make_site: MakeSite, impatient: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_of_life, "SIGN_INTERVAL_S", 3_600)  # cut off from the ledger
    site = make_site(rows_of(3), lane=impatient)
    site.submit()
    run_id = begun_run(site, dg.DagsterRunStatus.STARTED)
    with site_at_work(site.site, run_id) as runtime:
        for seconds in (1_000, 20):
            pass_time(site, seconds)
            repair(site)
        assert status_of(site, run_id) is dg.DagsterRunStatus.FAILURE
        with showing_life(runtime, run_id):
            assert runtime.given_up.is_set(), "it is told at its next sign"
        assert list(advance(runtime, Selection(site=site.assets.name))) == []
    assert site.billed() == 0


def test_an_orphan_of_a_run_that_dagster_ended_is_told_to_stop(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    run_id = begun_run(site, dg.DagsterRunStatus.STARTED)
    with site_at_work(site.site, run_id) as runtime:
        run = site.instance.get_run_by_id(run_id)
        assert run is not None
        site.instance.report_run_failed(run)  # forced termination, or its time limit
        look = repair(site)
        repair(site, look.cursor)
        with showing_life(runtime, run_id):
            assert runtime.given_up.is_set()


def test_a_run_that_ends_in_order_leaves_no_sign(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.submit()
    assert site.run_job(f"{site.assets.name}_due_work").success
    with site.ledger.begin() as connection:
        left = connection.execute(
            text("SELECT count(*) FROM content_pipeline.run_signs WHERE site = :site"),
            {"site": site.assets.name},
        ).scalar_one()
    assert left == 0


def test_a_page_that_changes_again_and_again_elsewhere_is_told_each_time(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1, t01=INVALID))
    work_elsewhere(site)
    cursor = repair(site).cursor
    assert not story(site, Stage.ARTIFACT, "t01").passed
    for population in ("998", "999"):
        work_elsewhere(replace_row(site, population=population))
        look = repair(site, cursor)
        cursor = look.cursor
        assert look.materialized == 3
        told = story(site, Stage.ARTIFACT, "t01")
        assert told.passed
        assert told.target_materialization_data is not None
    assert (
        site.event(Stage.ARTIFACT, "t01").metadata["revision"].value == site.report("t01").revision
    )


def test_pages_that_are_no_partitions_yet_become_such_in_the_order_of_the_table(
    make_site: MakeSite,
) -> None:
    rows = rows_of(4)
    site = make_site(list(reversed(rows)))
    site.submit()
    runtime = open_site(site.site, site.project, site.ledger, purpose="cli")
    with closing(runtime):
        list(advance(runtime, Selection(site=site.assets.name, topics=("t01", "t02"))))
    assert repair(site).materialized == 6
    known = site.instance.get_dynamic_partitions(site.assets.partitions_name)
    assert list(known) == ["t04", "t03", "t02", "t01"]


def planned_run(site: TownSite, first: str, last: str) -> str:
    """A run of some pages as Dagster has planned it, that no worker ever works on."""
    job = site.definitions.resolve_implicit_global_asset_job_def()
    run = site.instance.create_run_for_job(
        job,
        status=dg.DagsterRunStatus.STARTED,
        asset_selection=frozenset(site.assets.key(stage) for stage in Stage),
        tags={
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        },
    )
    return run.run_id


def test_pages_that_were_done_before_a_run_planned_them_and_died_are_green_again(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(rows_of(3, t02=INVALID))
    site.materialize_topics()
    site.materialize(*Stage, pages=("t01", "t03"))
    cursor = repair(site).cursor
    keys = ["t01", "t02", "t03"]
    before = {stage: site.statuses(stage, keys) for stage in Stage}

    run_id = planned_run(site, "t01", "t03")
    with pytest.raises(_Died), site_at_work(site.site, run_id):
        raise _Died
    run = site.instance.get_run_by_id(run_id)
    assert run is not None
    site.instance.report_run_failed(run)
    assert set(site.statuses(Stage.ARTIFACT, keys).values()) == {"FAILED"}

    monkeypatch.setattr(repairing, "PAGES_AT_ONCE", 2)
    first = repair(site, cursor, budget_s=0)
    assert first.materialized == 4, "t02 has a draft only"
    assert "4 materializations" in first.line()
    look = repair(site, RepairCursor.parse(str(first.cursor)))
    assert first.materialized + look.materialized == 7, "all but two assets of the failed page"
    assert {stage: site.statuses(stage, keys) for stage in Stage} == before
    target = story(site, Stage.ARTIFACT, "t01").target_materialization_data
    assert target is not None
    assert target.run_id != run_id
    again = repair(site, look.cursor)
    assert (again.materialized, again.stories) == (0, 0)
    assert site.billed() == 3
