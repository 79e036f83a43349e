"""One run of twelve pages of which some fail, some wait and some need two tries; then their repair.

What is true is taken from the ledger, the provider's account and the folder's own log.
"""

from dataclasses import dataclass

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.core.failures import EXPLANATIONS, FailureClass
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.reports import PageReport
from content_pipeline.operations.repair import retry
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline_tests.components.conftest import (
    FOR_LONG,
    INVALID,
    MakeSite,
    TownSite,
    fault,
    faulty,
    rows_of,
)
from content_pipeline_tests.components.failures import failure_of

KEYS = [f"t{number:02}" for number in range(1, 13)]
BROKEN, REFUSED, WAITING, STUTTERED, LOST = "t03", "t05", "t07", "t08", "t10"
GOOD = [key for key in KEYS if key not in (BROKEN, REFUSED, WAITING)]


@dataclass(frozen=True, kw_only=True)
class Mixed:
    site: TownSite
    result: dg.ExecuteInProcessResult
    pages: dict[str, PageReport]
    """As the run left them."""
    billed: int
    writes: int
    statuses: dict[Stage, dict[str, str]]
    checks: dict[tuple[str, str], dg.AssetCheckEvaluation]
    """(check, page) → its evaluation."""
    observed: list[dg.AssetObservation]


@pytest.fixture(scope="module")
def mixed(make_site: MakeSite) -> Mixed:
    # Patient enough for the look at the lost answer, which comes a second after the loss.
    site = make_site(rows_of(12, **{BROKEN: INVALID}), lane={"patience_s": 10}, retries=FOR_LONG)
    site.materialize_topics()
    site.set_faults(
        fault(FaultKind.REFUSAL, "Fulda 5"),
        faulty("Hull 7"),
        fault(FaultKind.BROKEN_JSON, "Ipswich 8", times=1),
        fault(FaultKind.DROP_AFTER, "Aalen 10", times=1),
    )
    result = site.materialize(*Stage, pages=(KEYS[0], KEYS[-1]))
    with site.ledger.begin() as connection:
        pages = reports.page_reports(connection, site.assets.name)
    evaluations = site.checks_of(result)
    return Mixed(
        site=site,
        result=result,
        pages={page.topic_key: page for page in pages},
        billed=site.billed(),
        writes=len(site.writes()),
        statuses={stage: site.statuses(stage, KEYS) for stage in Stage},
        checks={(each.check_name, str(each.partition)): each for each in evaluations},
        observed=[
            event.asset_observation_data.asset_observation
            for event in site.events_of(result, dg.DagsterEventType.ASSET_OBSERVATION)
        ],
    )


def _those(statuses: dict[str, str], wanted: str) -> list[str]:
    return [key for key, status in statuses.items() if status == wanted]


def test_the_good_pages_are_green_on_every_asset_and_the_run_is_red(mixed: Mixed) -> None:
    assert not mixed.result.success
    for stage in Stage:
        assert set(GOOD) <= set(_those(mixed.statuses[stage], "MATERIALIZED"))
    assert _those(mixed.statuses[Stage.ARTIFACT], "FAILED") == [BROKEN, REFUSED, WAITING]


def test_a_draft_that_breaks_a_rule_is_a_green_draft_and_a_red_page(mixed: Mixed) -> None:
    assert mixed.statuses[Stage.DRAFT][BROKEN] == "MATERIALIZED"
    assert mixed.statuses[Stage.PAGE][BROKEN] == "FAILED"
    assert mixed.statuses[Stage.DRAFT][REFUSED] == "FAILED"


def test_the_run_says_in_one_line_and_a_table_who_must_act(mixed: Mixed) -> None:
    failure = failure_of(mixed.result)
    assert failure is not None
    assert failure.description == "2 of 12 pages need a person: t03 (invalid_page), t05 (policy)"
    table = failure.metadata["pages"]
    assert isinstance(table, dg.TableMetadataValue)
    rows = [record.data for record in table.records]
    assert [row["page"] for row in rows] == [BROKEN, REFUSED]
    assert rows[0]["error"] == mixed.pages[BROKEN].failure_message
    assert rows[1]["usd"] == float(mixed.pages[REFUSED].usd)


def test_the_run_carries_its_totals_and_they_are_the_ledgers(mixed: Mixed) -> None:
    tags = mixed.site.tags_of(mixed.result)
    usd = sum(page.usd for page in mixed.pages.values())
    tokens = sum(
        item.input_tokens + item.output_tokens
        for page in mixed.pages.values()
        for item in page.attempts
    )
    assert tags == {
        "pages/published": str(len(GOOD)),
        "pages/waiting": "1",
        "pages/failed": "2",
        "cost_usd": f"{usd:.4f}",
        "tokens": str(tokens),
    }


def test_the_provider_and_the_folder_agree_with_what_is_shown(mixed: Mixed) -> None:
    billed = [
        item
        for page in mixed.pages.values()
        for item in page.attempts
        if item.kind == "generate" and item.output_tokens
    ]
    assert mixed.billed == len(billed) == 12  # the waiting page made none, one page made two
    assert mixed.writes == len(GOOD)


@pytest.mark.parametrize("key", [GOOD[0], STUTTERED, LOST])
def test_the_numbers_of_a_page_are_those_of_the_ledger(mixed: Mixed, key: str) -> None:
    page = mixed.pages[key]
    calls = [item for item in page.attempts if item.kind == "generate"]
    for stage in (Stage.DRAFT, Stage.ARTIFACT):
        shown = {name: entry.value for name, entry in mixed.site.event(stage, key).metadata.items()}
        assert shown["cost_usd"] == float(page.usd) > 0
        assert shown["attempts"] == len(calls)
        assert shown["input_tokens"] == sum(item.input_tokens for item in calls)
        assert shown["output_tokens"] == sum(item.output_tokens for item in calls)
        assert shown["latency_s"] == round(calls[-1].latency_s or 0, 3)
        assert shown["error_classes"] == (", ".join(page.error_classes) or "none")
        assert shown["model"] == calls[-1].model
        assert shown["generation_version"] == page.generation_version
        assert shown["revision"] == page.revision == 1
        assert shown["page_job_id"] == page.page_job_id
        assert shown["reused"] is False


def test_a_page_that_took_two_tries_shows_both(mixed: Mixed) -> None:
    metadata = mixed.site.event(Stage.ARTIFACT, STUTTERED).metadata
    assert metadata["error_classes"].value == "bad_output"
    log = metadata["attempt_log"]
    assert isinstance(log, dg.TableMetadataValue)
    tries = [
        tuple(row.data[name] for name in ("kind", "step", "state", "error_class"))
        for row in log.records
    ]
    assert tries == [
        ("generate", "article", "failed", "bad_output"),
        ("generate", "article", "succeeded", ""),
        ("publish", "publish", "succeeded", ""),
    ]


def test_an_answer_that_was_lost_and_found_is_one_attempt_and_says_so(mixed: Mixed) -> None:
    log = mixed.site.event(Stage.ARTIFACT, LOST).metadata["attempt_log"]
    assert isinstance(log, dg.TableMetadataValue)
    assert log.records[0].data["state"] == "succeeded, recovered by asking"


def test_a_published_page_shows_where_it_is(mixed: Mixed) -> None:
    site, key = mixed.site, GOOD[0]
    metadata = site.event(Stage.ARTIFACT, key).metadata
    assert metadata["url"] == dg.MetadataValue.url(f"https://{site.assets.name}.example/brigg-1/")
    file = site.project.root / "public" / site.assets.name / "brigg-1" / "index.html"
    assert metadata["file"] == dg.MetadataValue.path(str(file))
    assert file.is_file()
    assert metadata["publish_attempts"].value == 1
    assert metadata["title"].value == mixed.pages[key].published_title


def test_ids_are_text_because_dagster_plots_every_number(mixed: Mixed) -> None:
    plotted = {
        name
        for name, entry in mixed.site.event(Stage.ARTIFACT, GOOD[0]).metadata.items()
        if isinstance(entry, dg.IntMetadataValue | dg.FloatMetadataValue)
    }
    assert plotted == {
        "cost_usd",
        "attempts",
        "publish_attempts",
        "input_tokens",
        "output_tokens",
        "latency_s",
        "revision",
    }


def test_a_validated_page_shows_its_measures(mixed: Mixed) -> None:
    metadata = mixed.site.event(Stage.PAGE, GOOD[0]).metadata
    assert isinstance(metadata["words"].value, int)
    assert metadata["words"].value > 20
    assert metadata["title"].value == mixed.pages[GOOD[0]].published_title


@pytest.mark.parametrize(
    ("check", "failed", "warned"),
    [
        ("generated", [REFUSED], [WAITING]),
        ("valid", [BROKEN, REFUSED], [WAITING]),
        ("published", [BROKEN, REFUSED], [WAITING]),
    ],
)
def test_each_asset_has_a_check_that_tells_every_page_apart(
    mixed: Mixed, check: str, failed: list[str], warned: list[str]
) -> None:
    found = {key: mixed.checks[check, key] for key in KEYS}
    not_passed = {key: each.severity for key, each in found.items() if not each.passed}
    assert not_passed == dict.fromkeys(failed, dg.AssetCheckSeverity.ERROR) | dict.fromkeys(
        warned, dg.AssetCheckSeverity.WARN
    )


def test_the_check_of_a_failed_page_tells_class_reason_cost_and_what_to_do(mixed: Mixed) -> None:
    check, page = mixed.checks["valid", BROKEN], mixed.pages[BROKEN]
    assert check.description == (
        "invalid_page: placeholder: the page holds unfinished text. "
        "Next: a person corrects the cause, then retries it."
    )
    told = {name: entry.value for name, entry in check.metadata.items()}
    assert told["error_class"] == "invalid_page"
    assert told["meaning"] == EXPLANATIONS[FailureClass.INVALID_PAGE]
    assert told["attempts"] == "1"
    assert told["cost_in_all"] == f"${page.usd.normalize():f}"
    assert told["next_action"] == "a person corrects the cause, then retries it"
    assert isinstance(check.metadata["timeline"], dg.TableMetadataValue)


def test_a_check_names_the_materialization_it_is_about_or_the_ui_calls_it_missing(
    mixed: Mixed,
) -> None:
    asset = mixed.site.assets.key(Stage.ARTIFACT)
    found = mixed.site.instance.fetch_materializations(asset, limit=100).records
    newest = {record.partition_key: record.storage_id for record in reversed(found)}
    assert newest.keys() == set(GOOD)
    for key in KEYS:
        target = mixed.checks["published", key].target_materialization_data
        assert (target.storage_id if target else None) == newest.get(key)


def test_failed_pages_are_also_observed_because_their_own_pane_shows_no_check(
    mixed: Mixed,
) -> None:
    seen = {(each.asset_key.path[-1], each.partition) for each in mixed.observed}
    assert seen == {
        ("draft", REFUSED),
        ("page", REFUSED),
        ("artifact", REFUSED),
        ("page", BROKEN),
        ("artifact", BROKEN),
    }


def test_nothing_that_was_sent_or_written_by_the_model_is_kept_by_dagster(mixed: Mixed) -> None:
    shown = mixed.site.shown_of(mixed.result)
    assert "published and proved" in shown
    assert "Write about" not in shown
    with mixed.site.ledger.begin() as connection:
        articles = connection.execute(
            text(
                "SELECT article FROM content_pipeline.draft_revisions "
                "JOIN content_pipeline.pages USING (page_id) WHERE site = :site"
            ),
            {"site": mixed.site.assets.name},
        ).scalars()
        for article in articles:
            assert article["introduction"] not in shown
            assert article["meta_description"] not in shown


def test_every_event_is_tagged_so_that_unsynced_means_another_generation_version(
    mixed: Mixed,
) -> None:
    assets = mixed.site.assets
    for stage in Stage:
        tags = mixed.site.event(stage, GOOD[0]).tags
        assert tags is not None
        assert tags["dagster/code_version"] == assets.site.generation_version
        (parent,) = assets.parents_of(stage, 1)
        name = parent.to_user_string()
        assert tags[f"dagster/input_event_pointer/{name}"] == "NULL"
        assert f"dagster/input_data_version/{name}" in tags
        assert "dagster/data_version" not in tags


def test_the_site_is_announced_by_the_same_run(mixed: Mixed) -> None:
    sitemap = mixed.site.project.root / "public" / mixed.site.assets.name / "sitemap.xml"
    assert sitemap.read_text().count("<url>") == len(GOOD)
    wanted = dg.AssetRecordsFilter(mixed.site.assets.announcement("sitemap"))
    (record,) = mixed.site.instance.fetch_materializations(wanted, limit=1).records
    assert record.asset_materialization is not None
    assert record.asset_materialization.metadata["urls"].value == len(GOOD)


def test_repaired_and_due_pages_are_taken_up_by_one_run_without_partitions(mixed: Mixed) -> None:
    site = mixed.site
    site.set_faults()
    retry(site.ledger, site.assets.name, REFUSED, cause="the provider corrected its filter")
    with site.ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.page_jobs SET next_attempt_at = now() "
                "WHERE site = :site AND state = 'failed_retryable'"
            ),
            {"site": site.assets.name},
        )
    result = site.run_job(f"{site.assets.name}_due_work")
    assert result.success
    assert site.tags_of(result)["pages/published"] == "2"
    for stage in Stage:
        expected = "MATERIALIZED" if stage is Stage.DRAFT else "FAILED"
        found = site.statuses(stage, KEYS)
        assert found.pop(BROKEN) == expected
        assert set(found.values()) == {"MATERIALIZED"}
    checks = {(each.check_name, each.partition) for each in site.checks_of(result) if each.passed}
    assert checks == {
        (name, key) for name in ("generated", "valid", "published") for key in (REFUSED, WAITING)
    }
    assert (site.billed(), len(site.writes())) == (mixed.billed + 2, mixed.writes + 2)


def test_a_failed_page_is_told_once_and_while_others_are_still_at_work(mixed: Mixed) -> None:
    kept = [entry.dagster_event for entry in mixed.site.instance.all_logs(mixed.result.run_id)]
    told, found = [], []
    for place, event in enumerate(kept):
        if event is None:
            continue
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            if event.asset_check_evaluation_data.partition == REFUSED:
                told.append(place)
        elif event.is_step_materialization and event.partition == LOST:
            found.append(place)
    assert len(told) == len(Stage)
    # The look at the lost answer comes a second after the loss, long after the refusal.
    assert max(told) < min(found)
