"""From a site's file to definitions, the way Dagster and dg go."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

import content_pipeline
from content_pipeline.components.broken_site import VALIDATION_VARIABLE
from content_pipeline.components.content_site import ContentSite
from content_pipeline.config import Project
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import Stage
from content_pipeline.definitions import defs
from content_pipeline.site_files import COMPONENT_TYPE, load_site
from content_pipeline_tests.components.conftest import (
    REPOSITORY,
    rows_of,
    settings_of,
    write_site,
)

pytestmark = [
    pytest.mark.oldest,
    # What Dagster's own loader uses while it reads a site's file.
    pytest.mark.filterwarnings("ignore:.*parse_obj_as:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]


JOBS = (
    "due_work",
    "scheduled_pages",
    "nightly_plan",
    "reconcile",
    "survey",
    "republish",
    "reports",
)


@contextmanager
def declared(attributes: dict[str, Any], *, without: str = "") -> Iterator[dg.Definitions]:
    """The definitions that Dagster builds from a project with one site."""
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "towns"
        write_site(folder, rows_of(2), attributes)
        if without:
            (folder / without).unlink()
        with sandbox.build_all_defs() as definitions:
            yield definitions


def complaint(attributes: dict[str, Any], **options: str) -> str:
    """What Dagster says to who checks a site that it cannot load, causes included."""
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(Exception, match="towns") as caught,
    ):
        patch.setenv(VALIDATION_VARIABLE, "1")
        with declared(attributes, **options):
            pass
    causes, error = [], caught.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(causes)


def test_the_projects_own_sites_load() -> None:
    found = defs()
    dg.Definitions.validate_loadable(found)
    sites = [load_site(file).settings.site for file in Project(root=REPOSITORY).site_files()]
    assert sites
    keys = {key.path[0] for key in found.resolve_all_asset_keys()}
    assert keys == set(sites)


def test_runs_work_in_their_own_process_and_not_in_one_that_would_outlive_them() -> None:
    assert defs().executor is dg.in_process_executor


def test_a_site_file_becomes_assets_checks_jobs_sensors_and_schedules() -> None:
    with declared(settings_of("towns")) as found:
        names = {"/".join(key.path) for key in found.resolve_all_asset_keys()}
        graph = found.resolve_asset_graph()
        assert names == {
            f"towns/{name}"
            for name in (
                "topics",
                "draft",
                "page",
                "artifact",
                "sitemap",
                "index_page",
                "nightly_plan",
                "cost_report",
                "pipeline_health",
            )
        }
        assert {key.name for key in graph.asset_check_keys} == {
            "usable_rows",
            "generated",
            "valid",
            "published",
            "cost_within_plan",
            "queue_age",
            "uncertain_age",
            "failures_not_rising",
        }
        for job in JOBS:
            assert found.resolve_job_def(f"towns_{job}")
        assert {sensor.name for sensor in found.sensors or ()} == {
            "towns_due_work_sensor",
            "towns_partitions_sensor",
            "towns_planned_runs_sensor",
            "towns_reconcile_sensor",
            "towns_repair_sensor",
            "towns_site_changes_sensor",
        }
        assert [schedule.name for schedule in found.schedules or ()] == [
            "towns_schedule",
            "towns_nightly_sweep",
            "towns_reports_schedule",
        ]


def test_jobs_schedules_and_sensors_say_whose_they_are() -> None:
    with declared(settings_of("towns")) as found:
        ticking = [*(found.sensors or ()), *(found.schedules or ())]
        for each in ticking:
            assert isinstance(each, dg.SensorDefinition | dg.ScheduleDefinition)
            assert list(each.owners or ()) == ["team:town team"], each.name
            assert each.tags["site"] == "towns", each.name
        for job in JOBS:
            assert found.resolve_job_def(f"towns_{job}").tags["site"] == "towns", job


def test_the_assets_follow_each_other_and_say_whose_they_are() -> None:
    with declared(settings_of("towns")) as found:
        graph = found.resolve_asset_graph()
        parents = {
            key.path[-1]: [parent.path[-1] for parent in graph.get(key).parent_keys]
            for key in found.resolve_all_asset_keys()
        }
        assert parents == {
            "topics": [],
            "draft": ["topics"],
            "page": ["draft"],
            "artifact": ["page"],
            "sitemap": ["artifact"],
            "index_page": ["artifact"],
            "nightly_plan": [],
            "cost_report": [],
            "pipeline_health": [],
        }
        for key in found.resolve_all_asset_keys():
            assert graph.get(key).group_name == "towns"
            assert graph.get(key).owners == ["team:town team"]


def test_every_asset_says_what_it_is_made_of_by_which_code_and_by_what_it_is_found() -> None:
    hooks = [{"kind": "sitemap"}, {"kind": "index_page"}, {"kind": "deploy_hook"}]
    with declared(settings_of("towns", announce=hooks)) as found:
        graph = found.resolve_asset_graph()
        keys = found.resolve_all_asset_keys()
        assert len(keys) == 10
        for key in keys:
            asset = graph.get(key)
            assert asset.kinds, key
            assert asset.description, key
            assert asset.code_version, key
            assert asset.tags["site"] == "towns", key


def test_what_lies_somewhere_says_where() -> None:
    hooks = [{"kind": "sitemap"}, {"kind": "index_page"}, {"kind": "deploy_hook"}]
    with declared(settings_of("towns", announce=hooks)) as found:
        graph = found.resolve_asset_graph()
        told = {
            key.path[-1]: graph.get(key).metadata["dagster/uri"].value
            for key in found.resolve_all_asset_keys()
            if "dagster/uri" in graph.get(key).metadata
        }
    assert told.pop("topics").endswith("/defs/towns/topics.csv")
    assert told == {
        "artifact": "https://towns.example/",
        "index_page": "https://towns.example/",
        "sitemap": "https://towns.example/sitemap.xml",
    }


def test_a_query_is_not_told_where_it_is_sent() -> None:
    topics = {"query": "SELECT 1", "database_env": "TOWNS_URL", "id": "code", "name": "name"}
    with declared(settings_of("towns", topics=topics)) as found:
        metadata = found.resolve_asset_graph().get(dg.AssetKey(["towns", "topics"])).metadata
    assert "dagster/uri" not in metadata
    assert metadata["source"].value == "a SQL query"


def test_the_table_of_topics_says_which_columns_enter_a_page_and_what_they_mean() -> None:
    with declared(settings_of("towns")) as found:
        metadata = found.resolve_asset_graph().get(dg.AssetKey(["towns", "topics"])).metadata
    schema = metadata["dagster/column_schema"].value
    assert [
        (column.name, column.constraints.nullable, column.constraints.unique)
        for column in schema.columns
    ] == [
        ("code", False, True),
        ("known_for", True, False),
        ("name", False, False),
        ("population", False, False),
    ]
    assert schema.columns[1].description == "The fact 'Known for'."


def test_the_pages_are_one_step_that_can_be_run_in_part_and_in_batches() -> None:
    with declared(settings_of("towns")) as found:
        (lane,) = [each for each in found.assets or () if len(getattr(each, "keys", ())) == 3]
        assert isinstance(lane, dg.AssetsDefinition)
        assert {key.path[-1] for key in lane.keys} == {stage.value for stage in Stage}
        assert lane.can_subset
        assert lane.backfill_policy == dg.BackfillPolicy.multi_run(200)


def test_each_step_is_retried_by_dagster_only_a_little() -> None:
    with declared(settings_of("towns")) as found:
        policies = [
            each.op.retry_policy
            for each in found.assets or ()
            if isinstance(each, dg.AssetsDefinition)
        ]
        assert policies == [dg.RetryPolicy(max_retries=2, delay=5)] * 6


@pytest.mark.parametrize(
    ("owner", "shown"),
    [
        ("jo@example.com", ["jo@example.com"]),
        ("jo@home", ["team:jo@home"]),
        ("editors", ["team:editors"]),
        ("", []),
    ],
)
def test_an_owner_is_an_address_or_a_team(owner: str, shown: list[str]) -> None:
    with declared(settings_of("towns", owner=owner)) as found:
        graph = found.resolve_asset_graph()
        assert graph.get(dg.AssetKey(["towns", "draft"])).owners == shown


def test_unknown_keys_are_refused_with_their_place() -> None:
    said = complaint(settings_of("towns", colour="red"))
    assert "colour" in said
    assert "defs.yaml" in said


def test_a_value_out_of_bounds_is_refused_with_its_key() -> None:
    generation = settings_of("towns")["generation"] | {"in_flight": 0}
    said = complaint(settings_of("towns", generation=generation))
    assert "in_flight" in said


def test_a_credential_in_the_file_is_refused_as_on_the_command_line() -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0"
    said = complaint(settings_of("towns", title=key))
    assert "this looks like a credential" in said
    assert key not in said


def test_a_missing_prompt_is_named() -> None:
    assert "prompt.md" in complaint(settings_of("towns"), without="prompt.md")


def test_dagster_and_the_command_line_know_the_same_keys() -> None:
    told = ContentSite.get_model_cls().model_json_schema()
    for name in ("properties", "required", "additionalProperties", "$defs"):
        assert told[name] == SiteSettings.model_json_schema()[name]
    module, _, name = COMPONENT_TYPE.rpartition(".")
    assert getattr(sys.modules[module], name) is ContentSite


def test_dg_finds_the_component_by_looking_through_the_package() -> None:
    assert "ContentSite" in dir(content_pipeline)
    assert "produces" in type(ContentSite.get_spec()).__annotations__
    assert list(ContentSite.get_spec().produces) == [
        "asset",
        "asset_check",
        "job",
        "sensor",
        "schedule",
    ]


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="ContentSites"):
        _ = content_pipeline.ContentSites


def test_the_command_line_does_not_import_dagster() -> None:
    code = "import sys, content_pipeline.cli; sys.exit('dagster' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_dg_finds_nothing_to_complain_about(project: Project) -> None:
    """In the repository itself, with the instance of the tests' project."""
    found = subprocess.run(
        [str(Path(sys.executable).with_name("dg")), "check", "defs"],
        cwd=REPOSITORY,
        env={"HOME": str(project.root), "DAGSTER_HOME": str(project.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "All component YAML validated successfully." in found.stdout
    assert "Warning" not in found.stdout + found.stderr
