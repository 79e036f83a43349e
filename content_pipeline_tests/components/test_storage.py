"""Dagster's own records, with the repository's dagster.yaml."""

from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Engine, QueuePool, text

from content_pipeline.components.storage import (
    PipelineArtifacts,
    PipelineComputeLogs,
    PipelineStorage,
)
from content_pipeline.config import Project
from content_pipeline.ledger.database import Ledger
from content_pipeline.postgres.server import EmbeddedServer

pytestmark = pytest.mark.oldest

PARTS = ("run_storage", "event_log_storage", "schedule_storage")


def engine_of(instance: dg.DagsterInstance, part: str) -> Engine:
    engine: Engine = getattr(instance, part)._engine
    return engine


def test_dagster_yaml_names_the_storage(instance: dg.DagsterInstance) -> None:
    assert isinstance(instance.get_ref().storage, PipelineStorage)


def test_the_tables_lie_in_the_schema_dagster_of_the_projects_database(
    instance: dg.DagsterInstance,
) -> None:
    with engine_of(instance, "event_log_storage").connect() as connection:
        tables = connection.execute(
            text("SELECT table_schema FROM information_schema.tables WHERE table_name = :name"),
            {"name": "event_logs"},
        ).scalars()
        assert list(tables) == ["dagster"]


def test_dagsters_connections_do_not_wait_for_the_disk_and_the_ledgers_do(
    instance: dg.DagsterInstance, ledger: Ledger
) -> None:
    show = text("SHOW synchronous_commit")
    with engine_of(instance, "run_storage").connect() as connection:
        assert connection.execute(show).scalar_one() == "off"
    with ledger.begin() as connection:
        assert connection.execute(show).scalar_one() == "on"


@pytest.mark.parametrize("part", PARTS)
def test_each_part_keeps_its_connection(instance: dg.DagsterInstance, part: str) -> None:
    engine = engine_of(instance, part)
    assert isinstance(engine.pool, QueuePool)
    with engine.connect() as first:
        pid = first.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with engine.connect() as second:
        assert second.execute(text("SELECT pg_backend_pid()")).scalar_one() == pid


def test_a_stopped_database_is_brought_back_by_whatever_dagster_does_next(
    project: Project, instance: dg.DagsterInstance, ledger: Ledger
) -> None:
    before = instance.get_runs_count()
    EmbeddedServer(project.data_home).stop()
    ledger.dispose()  # the other tests' connections went with it
    assert instance.get_runs_count() == before


def test_another_process_gets_the_same_storage_from_the_reference(
    instance: dg.DagsterInstance,
) -> None:
    with dg.DagsterInstance.from_ref(instance.get_ref()) as other:
        assert other.get_runs_count() == instance.get_runs_count()


def test_folders_do_not_depend_on_the_working_directory(
    project: Project, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.from_ref(instance.get_ref()) as other:
        wanted = project.data_home / "dagster"
        assert Path(other.storage_directory()) == wanted / "storage"
        assert isinstance(other._local_artifact_storage, PipelineArtifacts)
        assert isinstance(other.compute_log_manager, PipelineComputeLogs)
        logs = other.compute_log_manager.get_captured_local_path(
            ["run", "compute_logs", "a"], "out"
        )
        assert Path(logs).is_relative_to(wanted)
    assert list(tmp_path.iterdir()) == []


def test_only_crashed_runs_are_retried_and_no_run_lasts_for_ever(
    instance: dg.DagsterInstance,
) -> None:
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 1
    assert instance.run_retries_retry_on_asset_or_op_failure is False
    assert instance.run_monitoring_enabled
    assert 1_800 <= instance.run_monitoring_max_runtime_seconds <= 3_600


def test_nothing_is_sent_home_and_nobody_is_greeted(instance: dg.DagsterInstance) -> None:
    assert instance.telemetry_enabled is False
    assert instance.nux_enabled is False


def test_one_run_at_a_time_takes_up_what_is_due_of_a_site(instance: dg.DagsterInstance) -> None:
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 4
    assert queue.max_user_code_failure_retries == 240
    assert list(queue.tag_concurrency_limits) == [
        {
            "key": "content_pipeline/due_work",
            "value": {"applyLimitPerUniqueValue": True},
            "limit": 1,
        }
    ]
