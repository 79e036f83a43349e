"""Materializing pages: alone, in a range, all of them, in part, and again."""

import dagster as dg
import pytest

from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import reports
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline_tests.components.conftest import (
    FOR_LONG,
    MakeSite,
    TownSite,
    fault,
    faulty,
    rows_of,
    throttled,
    write_table,
)
from content_pipeline_tests.components.failures import reason_of

pytestmark = pytest.mark.oldest

MISSING, MATERIALIZED, FAILED = "MISSING", "MATERIALIZED", "FAILED"


def test_one_page_goes_all_the_way_and_the_others_stay_untouched(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    site.materialize_topics()
    assert site.materialize(*Stage, pages="t02").success
    for stage in Stage:
        assert site.statuses(stage, ["t01", "t02", "t03"]) == {
            "t01": MISSING,
            "t02": MATERIALIZED,
            "t03": MISSING,
        }
    assert site.report("t02").state is PageJobState.PUBLISHED
    assert site.report("t01").state is PageJobState.QUEUED
    assert site.billed() == 1
    assert len(site.writes()) == 1


def test_a_range_is_one_run_and_a_second_time_pays_and_writes_nothing(make_site: MakeSite) -> None:
    site = make_site(rows_of(12))
    site.materialize_topics()
    first = site.materialize(*Stage, pages=("t01", "t12"))
    assert first.success
    assert site.tags_of(first)["pages/published"] == "12"
    assert (site.billed(), len(site.writes())) == (12, 12)

    second = site.materialize(*Stage, pages=("t01", "t12"))
    assert second.success
    assert (site.billed(), len(site.writes())) == (12, 12)
    assert site.tags_of(second) == {"pages/reused": "12", "cost_usd": "0.0000", "tokens": "0"}
    assert len(second.asset_materializations_for_node(f"{site.assets.name}_pages")) == 36
    again = site.event(Stage.ARTIFACT, "t07").metadata
    assert again["reused"].value is True
    assert again["cost_usd"].value == 0.0


def test_a_page_is_materialized_alone_though_topics_never_was(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.instance.add_dynamic_partitions(f"{site.assets.name}_pages", ["t01"])
    assert site.materialize(*Stage, pages="t01").success
    assert site.report("t01").state is PageJobState.PUBLISHED
    with site.ledger.begin() as connection:
        wanted = reports.page_reports(connection, site.assets.name)
    assert [page.topic_key for page in wanted] == ["t01"]
    assert site.billed() == 1


def test_a_page_is_made_of_the_table_as_it_is_now(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.materialize_topics()
    site.materialize(*Stage, pages="t01")
    table = site.site.table
    assert table is not None
    write_table(table, rows_of(2, t01="its harbour"))
    assert site.materialize(*Stage, pages="t01").success
    assert site.report("t01").published_revision == 2
    assert site.event(Stage.ARTIFACT, "t01").metadata["revision"].value == 2
    assert site.billed() == 2


def test_topics_pages_and_sitemap_can_be_materialized_in_one_run(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.materialize_topics()
    both = [site.assets.topics, site.assets.announcement("sitemap")]
    result = site.materialize(*Stage, pages="t01", also=both)
    assert result.success
    assert {key.path[-1] for key in _materialized(result)} == {
        "topics",
        "draft",
        "page",
        "artifact",
        "sitemap",
        "index_page",
    }


def _materialized(result: dg.ExecuteInProcessResult) -> set[dg.AssetKey]:
    found = {event.asset_key for event in result.get_asset_materialization_events()}
    return {key for key in found if key is not None}


@pytest.fixture
def drafted(make_site: MakeSite) -> TownSite:
    """Two pages of which only the drafts were asked for."""
    site = make_site(rows_of(2))
    site.materialize_topics()
    assert site.materialize(Stage.DRAFT, pages=("t01", "t02")).success
    return site


def test_the_draft_alone_is_paid_for_and_nothing_is_published(drafted: TownSite) -> None:
    assert drafted.report("t01").state is PageJobState.GENERATED
    assert (drafted.billed(), drafted.writes()) == (2, [])
    assert drafted.statuses(Stage.DRAFT, ["t01"]) == {"t01": MATERIALIZED}
    assert drafted.statuses(Stage.PAGE, ["t01"]) == {"t01": MISSING}


def test_a_draft_that_exists_is_reused_by_a_run_that_goes_all_the_way(drafted: TownSite) -> None:
    result = drafted.materialize(*Stage, pages="t01")
    assert result.success
    assert drafted.billed() == 2
    draft, artifact = drafted.event(Stage.DRAFT, "t01"), drafted.event(Stage.ARTIFACT, "t01")
    assert (draft.metadata["reused"].value, artifact.metadata["reused"].value) == (True, False)
    assert artifact.metadata["cost_usd"].value == 0.0
    assert artifact.metadata["cost_in_all"].value != "$0"


def test_the_artifact_alone_publishes_what_is_ready_and_never_pays(drafted: TownSite) -> None:
    assert drafted.materialize(Stage.PAGE, pages="t01").success
    result = drafted.materialize(Stage.ARTIFACT, pages=("t01", "t02"))
    assert result.success
    assert drafted.statuses(Stage.ARTIFACT, ["t01", "t02"]) == {
        "t01": MATERIALIZED,
        "t02": MISSING,  # its draft was never validated
    }
    assert drafted.tags_of(result)["pages/waiting"] == "1"
    assert (drafted.billed(), len(drafted.writes())) == (2, 1)


def test_the_artifact_alone_leaves_a_page_without_a_draft_unpaid(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    assert site.materialize(Stage.ARTIFACT, pages="t01").success
    assert site.billed() == 0
    assert site.statuses(Stage.ARTIFACT, ["t01"]) == {"t01": MISSING}


def test_pages_that_wait_stay_grey_in_a_green_run_and_say_when_they_go_on(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3), retries=FOR_LONG)
    site.materialize_topics()
    site.set_faults(faulty("Celle 2"))
    result = site.materialize(*Stage, pages=("t01", "t03"))
    assert result.success
    assert site.tags_of(result)["pages/waiting"] == "1"
    for stage in Stage:
        assert site.statuses(stage, ["t01", "t02", "t03"])["t02"] == MISSING
    (check,) = [
        check
        for check in site.checks_of(result)
        if (check.check_name, check.partition) == ("published", "t02")
    ]
    assert not check.passed
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert "transient" in (check.description or "")
    due = check.metadata["next_attempt_at"].value
    assert due == pytest.approx(site.report("t02").next_attempt_at.timestamp())


def test_an_announced_pause_makes_pages_wait_in_a_green_run_that_says_so(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    site.set_faults(throttled("Brigg"))
    result = site.materialize(*Stage, pages="t01")
    assert result.success
    assert site.tags_of(result)["pages/waiting"] == "1"
    assert " is closed: " in site.shown_of(result)


def test_rejected_credentials_end_the_run_as_failed_though_the_pages_only_wait(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(12))
    site.materialize_topics()
    site.set_faults(fault(FaultKind.STATUS, "", status=401, code="invalid_api_key"))
    for _ in range(2):
        result = site.materialize(*Stage, pages=("t01", "t12"))
        assert not result.success
        assert " (auth)" in reason_of(result)
        assert "put it in order, then `content-pipeline resume`" in reason_of(result)
    asked = site.provider.truth()["requests"]
    assert asked < 12  # the first run stopped asking, the second never began


def test_a_partition_that_is_no_topic_fails_and_is_named(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.instance.add_dynamic_partitions(f"{site.assets.name}_pages", ["ghost"])
    result = site.materialize(*Stage, pages="ghost")
    assert not result.success
    assert reason_of(result) == "1 partitions are no topics of the table: ghost"
    assert site.statuses(Stage.DRAFT, ["ghost"]) == {"ghost": FAILED}


def test_a_table_that_cannot_be_read_fails_the_run_once_and_says_why(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    table = site.site.table
    assert table is not None
    table.unlink()
    result = site.materialize(*Stage, pages="t01")
    assert not result.success
    assert "topics.csv" in reason_of(result)
    assert "STEP_UP_FOR_RETRY" not in {event.event_type_value for event in result.all_events}


def test_checks_can_be_run_without_their_assets_and_then_only_tell(drafted: TownSite) -> None:
    checks = dg.AssetSelection.checks_for_assets(drafted.assets.key(Stage.PAGE))
    job = dg.define_asset_job("only_checks", selection=checks)
    definitions = dg.Definitions.merge(drafted.definitions, dg.Definitions(jobs=[job]))
    result = definitions.resolve_job_def("only_checks").execute_in_process(
        instance=drafted.instance, tags={"dagster/partition": "t01"}
    )
    (check,) = drafted.checks_of(result)
    assert (check.check_name, check.partition, check.passed) == ("valid", "t01", False)
    assert check.description == "Brigg 1 is generated: the site's rules are applied to the draft."
    assert drafted.report("t01").state is PageJobState.GENERATED


def test_pages_that_were_done_before_are_shown_so_before_the_others_are_begun(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(3))
    site.materialize_topics()
    site.materialize(*Stage, pages=("t02", "t02"))
    result = site.materialize(*Stage, pages=("t01", "t03"))
    made = [event.partition for event in result.all_events if event.is_step_materialization]
    pages = [key for key in made if key is not None]
    assert pages[:3] == ["t02"] * 3
    assert sorted(pages) == sorted(["t01", "t02", "t03"] * 3)
