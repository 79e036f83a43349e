"""Buckets of pages as partitions: when one is green, what it shows, and who brings it there."""

from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
import yaml
from sqlalchemy import text

from content_pipeline.components import bucket_stock
from content_pipeline.components.content_site import site_definitions
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger import intake
from content_pipeline.operations.cancel import cancel
from content_pipeline.site_files import load_site
from content_pipeline_tests.components.conftest import (
    FOR_LONG,
    INVALID,
    MakeSite,
    TownSite,
    faulty,
    rows_of,
    write_table,
)
from content_pipeline_tests.components.failures import reason_of
from content_pipeline_tests.components.test_schedule import NIGHT, requests_of

S = PageJobState
COUNT = 3
BUCKETS = Buckets(count=COUNT)
NAMES = list(BUCKETS.names())
PAGES = 12
KEYS = [row["code"] for row in rows_of(PAGES)]
OF = {name: [key for key in KEYS if BUCKETS.name_of(key) == name] for name in NAMES}
"""Bucket → its pages, in the order of the table."""

MATERIALIZED, MISSING, FAILED = "MATERIALIZED", "MISSING", "FAILED"


def bucket_site(make_site: MakeSite, count: int = PAGES, **changes: Any) -> TownSite:
    known_for = changes.pop("known_for", {})
    changes = {"partition_by": "bucket", "buckets": COUNT} | changes
    return make_site(rows_of(count, **known_for), **changes)


def green(site: TownSite, stage: Stage = Stage.ARTIFACT) -> dict[str, str]:
    return site.statuses(stage, NAMES)


def check_of(
    site: TownSite, result: dg.ExecuteInProcessResult, stage: Stage, bucket: str
) -> dg.AssetCheckEvaluation:
    (found,) = [
        check
        for check in site.checks_of(result)
        if (check.asset_key, check.partition) == (site.assets.key(stage), bucket)
    ]
    return found


def numbers_of(metadata: Any) -> dict[str, int]:
    names = ("pages", "done", "waiting", "failed", "stopped", "changed_on_the_site")
    return {name: metadata[name].value for name in names if metadata[name].value}


def not_green(metadata: Any) -> dict[str, dict[str, Any]]:
    """The table of a bucket, by page."""
    return {record.data["page"]: dict(record.data) for record in metadata["not_green"].records}


def known_topics(site: TownSite) -> list[str]:
    """The topics that the ledger has heard of."""
    with site.ledger.begin() as connection:
        return sorted(intake.topic_keys(connection, site.assets.name))


def make_due(site: TownSite) -> None:
    """Let every wait of the site's pages be over."""
    with site.ledger.begin() as connection:
        connection.execute(
            text("UPDATE content_pipeline.page_jobs SET next_attempt_at = now() WHERE site = :it"),
            {"it": site.assets.name},
        )


def run_check(site: TownSite, stage: Stage, bucket: str | None = None) -> dg.ExecuteInProcessResult:
    """Execute the check of an asset without the asset, for a bucket or for everything."""
    checks = dg.AssetSelection.checks_for_assets(site.assets.key(stage))
    job = dg.define_asset_job("only_checks", selection=checks)
    definitions = dg.Definitions.merge(site.definitions, dg.Definitions(jobs=[job]))
    return definitions.resolve_job_def("only_checks").execute_in_process(
        instance=site.instance, tags={"dagster/partition": bucket} if bucket else {}
    )


def run_pages(site: TownSite, **config: list[str]) -> dg.ExecuteInProcessResult:
    """A run of the pages without partitions that says what it is about."""
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    return job.execute_in_process(
        instance=site.instance,
        run_config={"ops": {site.assets.lane_op: {"config": config}}},
        raise_on_error=False,
    )


def carry_out(site: TownSite, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """What Dagster's daemon would do with a request of the schedule."""
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    return job.execute_in_process(
        instance=site.instance,
        run_config=request.run_config,
        tags=dict(request.tags),
        raise_on_error=False,
    )


def test_the_sample_has_pages_in_every_bucket() -> None:
    assert all(len(keys) >= 2 for keys in OF.values()), OF


def test_one_bucket_is_made_and_no_row_of_another_is_even_wanted(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    result = site.materialize(*Stage, pages=NAMES[1])
    assert result.success
    for stage in Stage:
        assert green(site, stage) == {
            NAMES[0]: MISSING,
            NAMES[1]: MATERIALIZED,
            NAMES[2]: MISSING,
        }
    mine = OF[NAMES[1]]
    assert {key: site.report(key).state for key in mine} == dict.fromkeys(mine, S.PUBLISHED)
    assert known_topics(site) == sorted(mine)
    assert site.billed() == len(site.writes()) == len(mine)
    assert site.tags_of(result)["pages/published"] == str(len(mine))


def test_one_materialization_for_stage_and_bucket_tells_its_numbers(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    result = site.materialize(*Stage, pages=NAMES[0])
    events = site.events_of(result, dg.DagsterEventType.ASSET_MATERIALIZATION)
    assert [event.partition for event in events if event.partition] == [NAMES[0]] * 3
    shown = site.event(Stage.ARTIFACT, NAMES[0])
    count = len(OF[NAMES[0]])
    assert numbers_of(shown.metadata) == {"pages": count, "done": count}
    assert "not_green" not in shown.metadata
    paid = sum(site.report(key).usd for key in OF[NAMES[0]])
    assert shown.metadata["cost_usd"].value == pytest.approx(float(paid))
    assert shown.metadata["generation_version"].value == site.site.generation_version
    assert shown.tags is not None
    assert shown.tags["dagster/code_version"] == site.site.generation_version
    for stage in Stage:
        check = check_of(site, result, stage, NAMES[0])
        assert check.passed
        assert check.target_materialization_data is not None
        assert (check.description or "").startswith(f"{count} of {count} pages: ")


def test_all_buckets_are_one_run_and_a_second_one_pays_nothing(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    first = site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    assert first.success
    assert set(green(site).values()) == {MATERIALIZED}
    assert site.billed() == len(site.writes()) == PAGES
    second = site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    assert site.tags_of(second) == {
        "pages/reused": str(PAGES),
        "cost_usd": "0.0000",
        "tokens": "0",
    }
    assert site.billed() == len(site.writes()) == PAGES
    assert site.event(Stage.ARTIFACT, NAMES[0]).metadata["cost_usd"].value == 0.0


def test_a_failed_page_makes_its_bucket_red_and_is_named_in_its_table(make_site: MakeSite) -> None:
    bad = OF[NAMES[0]][0]
    site = bucket_site(make_site, known_for={bad: INVALID})
    result = site.materialize(*Stage, pages=NAMES[0])
    assert not result.success
    reason = reason_of(result)
    count = len(OF[NAMES[0]])
    assert f"1 of {count} pages needs a person: {bad} (invalid_page" in reason
    assert green(site, Stage.DRAFT)[NAMES[0]] == MATERIALIZED
    assert green(site, Stage.PAGE)[NAMES[0]] == green(site)[NAMES[0]] == FAILED
    assert site.tags_of(result)["pages/published"] == str(count - 1)
    check = check_of(site, result, Stage.ARTIFACT, NAMES[0])
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert numbers_of(check.metadata) == {"pages": count, "done": count - 1, "failed": 1}
    row = not_green(check.metadata)
    assert list(row) == [bad]
    assert row[bad]["state"] == "failed_terminal"
    assert row[bad]["error_class"] == "invalid_page"
    assert row[bad]["attempts"] == 1
    assert row[bad]["usd"] > 0
    assert row[bad]["next_action"]
    assert check.metadata["not_green_shown"].value == "1 of 1"
    assert check_of(site, result, Stage.DRAFT, NAMES[0]).passed


def test_a_page_that_waits_leaves_its_bucket_grey_in_a_green_run(make_site: MakeSite) -> None:
    slow = OF[NAMES[1]][-1]
    name = next(row["name"] for row in rows_of(PAGES) if row["code"] == slow)
    site = bucket_site(make_site, retries=FOR_LONG)
    site.set_faults(faulty(name))
    result = site.materialize(*Stage, pages=(NAMES[0], NAMES[1]))
    assert result.success
    assert green(site) == {NAMES[0]: MATERIALIZED, NAMES[1]: MISSING, NAMES[2]: MISSING}
    check = check_of(site, result, Stage.ARTIFACT, NAMES[1])
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "1 wait for a later run" in (check.description or "")
    assert not_green(check.metadata)[slow]["state"] == "failed_retryable"
    assert site.told_of(Stage.ARTIFACT, NAMES[1], result) == [check.description]


def test_the_due_work_makes_the_bucket_green_that_its_last_page_completes(
    make_site: MakeSite,
) -> None:
    site = bucket_site(make_site)
    site.submit()
    result = site.run_job(f"{site.assets.name}_due_work")
    assert result.success
    for stage in Stage:
        assert set(green(site, stage).values()) == {MATERIALIZED}
    assert site.tags_of(result)["pages/published"] == str(PAGES)
    events = site.events_of(result, dg.DagsterEventType.ASSET_MATERIALIZATION)
    assert len([event for event in events if event.partition]) == COUNT * len(Stage)


def test_due_work_on_one_page_tells_of_its_bucket_alone(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize(*Stage, pages=NAMES[0])
    last = OF[NAMES[2]][0]
    site.submit()
    for key in KEYS:
        if key not in (*OF[NAMES[0]], last):
            cancel(site.ledger, site.assets.name, key, reason="not now", by="test")
    result = site.run_job(f"{site.assets.name}_due_work")
    assert result.success
    assert {check.partition for check in site.checks_of(result)} == {NAMES[2]}
    check = check_of(site, result, Stage.ARTIFACT, NAMES[2])
    stopped = len(OF[NAMES[2]]) - 1
    assert numbers_of(check.metadata) == {
        "pages": stopped + 1,
        "done": 1,
        "stopped": stopped,
    }
    assert green(site)[NAMES[2]] == MISSING, "not all pages are out, though nobody has to act"


def test_a_changed_topic_turns_its_green_bucket_and_the_next_run_mends_it(
    make_site: MakeSite,
) -> None:
    site = bucket_site(make_site, retries=FOR_LONG)
    site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    changed = OF[NAMES[2]][0]
    name = next(row["name"] for row in rows_of(PAGES) if row["code"] == changed)
    assert site.site.table is not None
    write_table(site.site.table, rows_of(PAGES, **{changed: "its new harbour"}))
    site.set_faults(faulty(name))
    waiting = site.materialize(*Stage, pages=NAMES[2])
    check = check_of(site, waiting, Stage.ARTIFACT, NAMES[2])
    assert waiting.success
    assert not check.passed
    assert list(not_green(check.metadata)) == [changed]
    assert green(site)[NAMES[2]] == MATERIALIZED, "its older pages are on the site as they were"
    assert site.event(Stage.ARTIFACT, NAMES[2]).metadata["done"].value == len(OF[NAMES[2]])

    site.set_faults()
    make_due(site)
    mended = site.run_job(f"{site.assets.name}_due_work")
    assert check_of(site, mended, Stage.ARTIFACT, NAMES[2]).passed
    assert site.report(changed).state is S.PUBLISHED
    assert site.billed() == PAGES + 1


def test_an_edit_on_the_site_shows_on_the_bucket_with_the_page_in_its_table(
    make_site: MakeSite,
) -> None:
    site = bucket_site(make_site)
    site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    edited = OF[NAMES[1]][0]
    site.edit(edited)
    result = site.run_job(f"{site.assets.name}_survey")
    assert result.success
    (check,) = site.checks_of(result)
    assert (check.partition, check.passed) == (NAMES[1], False)
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert "1 changed on the site; see `content-pipeline conflicts`" in (check.description or "")
    row = not_green(check.metadata)[edited]
    assert row["state"] == "edited"
    assert "a person decides" in row["next_action"]
    assert site.told_of(Stage.ARTIFACT, NAMES[1], result) == [check.description]
    assert green(site)[NAMES[1]] == MATERIALIZED
    again = site.materialize(*Stage, pages=NAMES[1])
    assert not check_of(site, again, Stage.ARTIFACT, NAMES[1]).passed, "it is not forgotten"


def test_a_page_that_was_taken_off_the_site_is_no_page_of_its_bucket(make_site: MakeSite) -> None:
    topics = {"when_gone": "unpublish", "most_gone_share": 1.0}
    site = bucket_site(
        make_site,
        topics={"table": "topics.csv", "id": "code", "name": "name", "path": "/{name}/"} | topics,
    )
    site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    gone = KEYS[-1]
    assert site.site.table is not None
    write_table(site.site.table, rows_of(PAGES - 1))
    site.materialize_topics()
    bucket = BUCKETS.name_of(gone)
    waiting = run_check(site, Stage.ARTIFACT, bucket)
    assert not_green(check_of(site, waiting, Stage.ARTIFACT, bucket).metadata)[gone]["state"] == (
        "withdrawing"
    )
    result = site.run_job(f"{site.assets.name}_due_work")
    assert site.report(gone).state is S.WITHDRAWN
    check = check_of(site, result, Stage.ARTIFACT, bucket)
    assert check.passed
    assert numbers_of(check.metadata)["pages"] == len(OF[bucket]) - 1


def test_the_table_of_a_bad_bucket_is_bounded_and_those_for_a_person_come_first(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_stock, "SHOWN", 2)
    bad = KEYS[-1]
    site = bucket_site(make_site, buckets=1, retries=FOR_LONG, known_for={bad: INVALID})
    names = {row["code"]: row["name"] for row in rows_of(PAGES)}
    site.set_faults(*(faulty(names[key]) for key in KEYS if key != bad))
    result = site.materialize(*Stage, pages="b0-of-1")
    check = check_of(site, result, Stage.ARTIFACT, "b0-of-1")
    table = not_green(check.metadata)
    assert len(table) == 2
    assert next(iter(table)) == bad
    assert check.metadata["not_green_shown"].value == f"2 of {PAGES}"
    assert numbers_of(check.metadata) == {"pages": PAGES, "waiting": PAGES - 1, "failed": 1}


def test_a_bucket_without_pages_is_green_at_once(make_site: MakeSite) -> None:
    site = bucket_site(make_site, 1)
    (other, *_) = [name for name in NAMES if name != BUCKETS.name_of("t01")]
    assert site.materialize(*Stage, pages=other).success
    assert green(site)[other] == MATERIALIZED
    assert site.billed() == 0
    assert known_topics(site) == []


def test_drafts_alone_leave_the_later_assets_of_a_bucket_alone(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    assert site.materialize(Stage.DRAFT, pages=NAMES[0]).success
    assert green(site, Stage.DRAFT)[NAMES[0]] == MATERIALIZED
    assert green(site, Stage.PAGE)[NAMES[0]] == green(site)[NAMES[0]] == MISSING
    assert site.writes() == []
    assert site.materialize(Stage.PAGE, Stage.ARTIFACT, pages=NAMES[0]).success
    assert green(site)[NAMES[0]] == MATERIALIZED
    assert site.billed() == len(OF[NAMES[0]])


def test_more_pages_than_a_slice_holds_are_all_made(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_rows.pages, "__defaults__", (2,))
    monkeypatch.setattr(bucket_rows.unfinished, "__defaults__", (2,))
    site = bucket_site(make_site)
    result = site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    assert site.tags_of(result)["pages/published"] == str(PAGES)
    assert set(green(site).values()) == {MATERIALIZED}


def test_checks_without_their_assets_tell_of_every_bucket(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize(*Stage, pages=NAMES[0])
    result = run_check(site, Stage.ARTIFACT)
    found = {check.partition: check.passed for check in site.checks_of(result)}
    assert found == dict.fromkeys(NAMES, True), "two buckets have no known pages so far"
    site.materialize_topics()
    result = run_check(site, Stage.ARTIFACT)
    found = {check.partition: check.passed for check in site.checks_of(result)}
    assert found == {NAMES[0]: True, NAMES[1]: False, NAMES[2]: False}


def test_another_number_of_buckets_renames_them_and_costs_nothing(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    document = yaml.safe_load(site.site.file.read_text())
    document["attributes"]["buckets"] = 2
    site.site.file.write_text(yaml.safe_dump(document, sort_keys=False))
    changed = load_site(site.site.file)
    other = TownSite(
        project=site.project,
        site=changed,
        instance=site.instance,
        ledger=site.ledger,
        provider=site.provider,
        definitions=site_definitions(changed),
    )
    names = list(Buckets(count=2).names())
    assert other.statuses(Stage.ARTIFACT, names) == dict.fromkeys(names, MISSING)
    result = other.materialize(*Stage, pages=(names[0], names[1]))
    assert other.tags_of(result)["pages/reused"] == str(PAGES)
    assert other.statuses(Stage.ARTIFACT, names) == dict.fromkeys(names, MATERIALIZED)
    assert other.billed() == PAGES
    stale = run_pages(other, buckets=[NAMES[0]])
    assert "request the buckets of now" in reason_of(stale)


def test_a_run_says_topics_or_buckets_and_buckets_only_where_there_are_some(
    make_site: MakeSite,
) -> None:
    site = bucket_site(make_site)
    both = run_pages(site, buckets=[NAMES[0]], topics=["t01"])
    assert "give `topics`; or `buckets` instead" in reason_of(both)
    named = run_pages(site, topics=["t01"])
    assert named.success
    assert known_topics(site) == ["t01"]
    pages = make_site(rows_of(1))
    assert "`partition_by: bucket`" in reason_of(run_pages(pages, buckets=[NAMES[0]]))


def test_buckets_need_no_registering(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize_topics()
    assert site.instance.get_dynamic_partitions(site.assets.partitions_name) == []
    assert site.assets.pages.get_partition_keys() == NAMES
    repository = site.definitions.get_repository_def()
    assert not repository.has_sensor_def(f"{site.assets.name}_partitions_sensor")


def test_republishing_tells_of_the_buckets_it_touched(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize(*Stage, pages=(NAMES[0], NAMES[-1]))
    page = OF[NAMES[1]][0]
    site.file_of(page).unlink()
    result = site.run_job(f"{site.assets.name}_republish", cause="a lost disk", topics=[page])
    assert result.success
    assert site.file_of(page).exists()
    assert {check.partition for check in site.checks_of(result)} == {NAMES[1]}
    assert check_of(site, result, Stage.ARTIFACT, NAMES[1]).passed


def test_the_schedule_requests_the_buckets_that_hold_due_pages(make_site: MakeSite) -> None:
    site = bucket_site(make_site, 30, schedule={"pages_per_run": 50})
    (request,) = requests_of(site, NIGHT)
    assert request.tags["dagster/asset_partition_range_start"] == NAMES[0]
    assert request.tags["dagster/asset_partition_range_end"] == NAMES[-1]
    assert request.tags["plan/pages"] == "30"
    assert carry_out(site, request).success
    assert set(green(site).values()) == {MATERIALIZED}
    assert requests_of(site, NIGHT.replace(day=2)) == []


def test_scattered_buckets_are_named_and_no_other_is_touched(make_site: MakeSite) -> None:
    site = bucket_site(make_site, 30, buckets=30)
    divided = Buckets(count=30)
    for request in requests_of(site, NIGHT):
        carry_out(site, request)
    changed = {"t03": "its harbour", "t20": "its tower"}
    names = sorted({divided.name_of(key) for key in changed})
    assert site.site.table is not None
    write_table(site.site.table, rows_of(30, **changed))
    (request,) = requests_of(site, NIGHT.replace(day=2))
    (op,) = request.run_config["ops"].values()
    assert op["config"] == {"buckets": names}
    result = carry_out(site, request)
    assert result.success
    assert site.tags_of(result)["pages/published"] == "2"
    assert {check.partition for check in site.checks_of(result)} == set(names)
    assert site.billed() == 32


def praising(site: TownSite) -> TownSite:
    """The site with another prompt, so that every page asked for is a new page job."""
    (site.site.file.parent / "prompt.md").write_text("Praise {{ name }}.\n\n{{ facts }}\n")
    loaded = load_site(site.site.file)
    return replace(site, site=loaded, definitions=site_definitions(loaded))


def test_the_run_of_a_bucket_takes_its_rows_from_the_ledger_where_the_table_is_the_one_taken_in(
    make_site: MakeSite,
) -> None:
    site = bucket_site(make_site)
    site.materialize_topics()
    bucket = NAMES[0]
    topic = OF[bucket][0]
    with site.ledger.begin() as connection:
        connection.execute(
            text("UPDATE content_pipeline.topics SET name = 'of the ledger' WHERE site = :it"),
            {"it": site.assets.name},
        )
    site = praising(site)
    assert site.materialize(*Stage, pages=bucket).success
    assert green(site)[bucket] == MATERIALIZED
    assert site.report(topic).name == "of the ledger"
    table = site.site.table
    assert table is not None
    write_table(table, rows_of(PAGES, **{topic: "its bridge"}))
    assert site.materialize(*Stage, pages=bucket).success
    assert site.report(topic).name in {row["name"] for row in rows_of(PAGES)}, "it is read again"
