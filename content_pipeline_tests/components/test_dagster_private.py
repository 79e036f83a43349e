"""What is used of Dagster though it is not public: each use fails here when it changes."""

import ast
import inspect
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import DataProvenance
from dagster_postgres.storage import DagsterPostgresStorage

from content_pipeline.components import dagster_private
from content_pipeline.components.dagster_private import (
    EVENT_BATCH_VARIABLE,
    MAX_RUNTIME_SECONDS_TAG,
    PRIORITY_TAG,
    RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
    AssetCheckExecutionsTable,
    CheckedMaterialization,
    PostgresEventLogStorage,
    checked_materializations,
    log_check,
    version_tags,
)
from content_pipeline_tests.components.conftest import REPOSITORY

pytestmark = pytest.mark.oldest

OURS = {Path(dagster_private.__file__), Path(__file__)}
"""The one module that may, and the test that looks at what it uses."""

FILES = [
    file
    for folder in ("content_pipeline", "content_pipeline_tests", "benchmarks", "scripts", "docs")
    for file in sorted((REPOSITORY / folder).rglob("*.py"))
]


def _imported(file: Path) -> set[str]:
    """Modules and names that are imported anywhere in ``file``, in full."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def _is_private(module: str) -> bool:
    package, *parts = module.split(".")
    return package in {"dagster_postgres", "dagster_shared", "dagster_dg_core"} or (
        package == "dagster" and any(part.startswith("_") for part in parts)
    )


def test_one_module_alone_imports_what_is_private() -> None:
    private = {file for file in FILES if any(map(_is_private, _imported(file)))}
    assert private == OURS


def test_nothing_else_of_the_shell_uses_a_private_attribute() -> None:
    """Of Dagster's objects, that is: a name with a single underscore on anything but ourselves."""
    shell = [file for file in FILES if file.parent.name == "components" and file not in OURS]
    for file in shell:
        if not file.is_relative_to(REPOSITORY / "content_pipeline"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                assert owner in {"self", "cls", "os"} or node.attr.startswith("__"), (
                    f"{file.name}:{node.lineno} uses {node.attr}"
                )


@pytest.mark.parametrize("name", dagster_private.__all__)
def test_each_private_name_is_there_in_the_dagster_that_is_installed(name: str) -> None:
    assert getattr(dagster_private, name, None) is not None


@pytest.mark.parametrize("name", ["_run_storage", "_event_log_storage", "_schedule_storage"])
def test_the_storage_has_the_parts_whose_engines_are_replaced(name: str) -> None:
    assert f"self.{name} =" in inspect.getsource(DagsterPostgresStorage.__init__)


def test_the_parts_make_their_engine_under_the_name_that_is_replaced() -> None:
    from dagster_postgres.event_log import PostgresEventLogStorage
    from dagster_postgres.run_storage import PostgresRunStorage
    from dagster_postgres.schedule_storage import PostgresScheduleStorage

    for part in (PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage):
        source = inspect.getsource(part)
        assert "self._engine = create_pg_engine(" in source
        assert "poolclass=db_pool.NullPool" in source


def test_the_event_log_has_what_our_own_inherits_and_uses() -> None:
    from content_pipeline.components.event_store import EventStore

    for name in ("_event_to_row", "_store_asset_event", "_store_asset_event_tags"):
        assert callable(getattr(PostgresEventLogStorage, name))
    for name in ("has_table", "store_event", "store_event_batch", "store_asset_check_event"):
        ours, theirs = getattr(EventStore, name), getattr(PostgresEventLogStorage, name)
        assert list(inspect.signature(ours).parameters) == list(
            inspect.signature(theirs).parameters
        ), name


def test_the_database_keeps_one_row_of_a_check_for_partition_and_run() -> None:
    unique = [
        [column.name for column in index.columns]
        for index in AssetCheckExecutionsTable.indexes
        if index.unique
    ]
    assert unique == [["asset_key", "check_name", "run_id", "partition"]]


def test_a_check_has_no_other_columns_than_those_that_are_filled() -> None:
    assert {column.name for column in AssetCheckExecutionsTable.columns} == {
        "id",
        "create_timestamp",
        "asset_key",
        "check_name",
        "partition",
        "run_id",
        "execution_status",
        "evaluation_event",
        "evaluation_event_timestamp",
        "evaluation_event_storage_id",
        "materialization_event_storage_id",
    }


def test_dagster_reads_from_the_environment_how_much_it_hands_over_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dagster._core.instance.utils import _get_event_batch_size

    monkeypatch.setenv(EVENT_BATCH_VARIABLE, "17")
    assert _get_event_batch_size() == 17


def test_the_tags_are_those_that_people_read_and_type() -> None:
    assert PRIORITY_TAG == "dagster/priority"
    assert MAX_RUNTIME_SECONDS_TAG == "dagster/max_runtime"
    assert RETRY_ON_ASSET_OR_OP_FAILURE_TAG == "dagster/retry_on_asset_or_op_failure"
    assert version_tags("v2", {dg.AssetKey(["towns", "draft"]): "7"}) == {
        "dagster/code_version": "v2",
        "dagster/input_data_version/towns/draft": "7",
        "dagster/input_event_pointer/towns/draft": "NULL",
    }


def test_dagster_reads_the_tags_as_provenance() -> None:
    parent = dg.AssetKey(["towns", "draft"])
    provenance = DataProvenance.from_tags(version_tags("v2", {parent: "7"}))
    assert provenance is not None
    assert provenance.code_version == "v2"
    assert provenance.input_data_versions == {parent: dg.DataVersion("7")}
    assert provenance.input_storage_ids == {parent: None}


def test_an_op_can_log_the_evaluation_of_one_partition_with_its_materialization() -> None:
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("page"),
        check_name="valid",
        passed=True,
        partition="t01",
        target_materialization_data=CheckedMaterialization(storage_id=5, run_id="r", timestamp=1.0),
    )

    @dg.op
    def check(context: dg.OpExecutionContext) -> None:
        log_check(context, evaluation)

    @dg.job
    def checking() -> None:
        check()

    with dg.DagsterInstance.ephemeral() as instance:
        found = checking.execute_in_process(instance=instance).get_asset_check_evaluations()
    assert found == [evaluation]


def test_the_newest_materialization_of_each_partition_is_found() -> None:
    asset = dg.AssetKey("page")
    with dg.DagsterInstance.ephemeral() as instance:
        for partition in ("a", "b", "a", "c"):
            instance.report_runless_asset_event(
                dg.AssetMaterialization(asset_key=asset, partition=partition)
            )
        every = instance.fetch_materializations(asset, limit=10).records
        found = checked_materializations(instance, asset, ["a", "b", "missing"])
        assert checked_materializations(instance, asset, []) == {}
    assert {key: each.storage_id for key, each in found.items()} == {
        "a": max(each.storage_id for each in every if each.partition_key == "a"),
        "b": next(each.storage_id for each in every if each.partition_key == "b"),
    }
