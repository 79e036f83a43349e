"""Everything of Dagster that is not public and cannot be done without, in one place.

What belongs here: imports from below ``dagster._core`` and the use of one private attribute, each
with the reason. A test names them all, so that an upgrade of Dagster fails there and not in a run.
"""

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as CheckedMaterialization,
)
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition as AssetJob,
)
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.tags import (
    MAX_RUNTIME_SECONDS_TAG,
    PRIORITY_TAG,
    RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
)
from dagster._serdes import ConfigurableClassData
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import DagsterPostgresException, create_pg_engine
from sqlalchemy import Engine, QueuePool

from content_pipeline.postgres.idle_checks import check_when_idle

__all__ = [
    "EVENT_BATCH_VARIABLE",
    "MAX_RUNTIME_SECONDS_TAG",
    "PRIORITY_TAG",
    "RETRY_ON_ASSET_OR_OP_FAILURE_TAG",
    "AssetCheckExecutionRecordStatus",
    "AssetCheckExecutionsTable",
    "AssetJob",
    "CheckRunHealthResult",
    "CheckedMaterialization",
    "ConfigurableClassData",
    "DagsterPostgresException",
    "DagsterPostgresStorage",
    "LocalArtifactStorage",
    "LocalComputeLogManager",
    "PostgresEventLogStorage",
    "SqlEventLogStorageTable",
    "WorkerStatus",
    "checked_materialization",
    "checked_materializations",
    "keep_events_in",
    "log_check",
    "make_room",
    "newest_evaluation",
    "newest_materializations",
    "pool_connections",
    "version_tags",
]

EVENT_BATCH_VARIABLE = "DAGSTER_EVENT_BATCH_SIZE"
"""How many events Dagster hands to the storage at once, of those it knows to belong together (the
plan of a run); it hands over one by one unless this is set."""

POOL_SIZE = 1
POOL_OVERFLOW = 20
POOL_RECYCLE_S = 300
"""One connection is kept, up to 20 more are opened while they are needed."""

_POOLED_PARTS = ("_run_storage", "_event_log_storage", "_schedule_storage")


def keep_events_in(storage: DagsterPostgresStorage, store: PostgresEventLogStorage) -> None:
    """Let ``storage`` keep events in ``store``; dagster-postgres has no setting for its class."""
    storage._event_log_storage = store


def pool_connections(storage: DagsterPostgresStorage, url: str) -> list[Engine]:
    """Give each part of ``storage`` an engine that keeps its connection; the engines.

    dagster-postgres opens a connection for every event and has no setting for it: 1,000 pages of
    three assets cost 80 s of bookkeeping so, and 12 s with a pool.
    """
    engines = []
    for name in _POOLED_PARTS:
        part = getattr(storage, name)
        part._engine.dispose()
        part._engine = create_pg_engine(
            url,
            isolation_level="AUTOCOMMIT",
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_recycle=POOL_RECYCLE_S,
        )
        check_when_idle(part._engine)
        engines.append(part._engine)
    return engines


def version_tags(code_version: str, inputs: Mapping[dg.AssetKey, str]) -> dict[str, str]:
    """Tags of a logged materialization, so that "Unsynced" means: made by another code version.

    ``inputs``: parent → its data version. No tag names the event's own data version: Dagster
    indexes that one, at 6 ms an event, and then shows pages as unsynced that are not.
    """
    tags = {CODE_VERSION_TAG: code_version}
    for key, version in inputs.items():
        tags[get_input_data_version_tag(key)] = version
        tags[get_input_event_pointer_tag(key)] = NULL_EVENT_POINTER
    return tags


def log_check(
    context: dg.OpExecutionContext | dg.AssetExecutionContext, evaluation: dg.AssetCheckEvaluation
) -> None:
    """Log the evaluation of one partition's check; ``log_event`` takes it, its signature does not.

    The public way, returning an AssetCheckResult, knows no partition.
    """
    context.log_event(evaluation)  # type: ignore[arg-type]


def make_room(instance: dg.DagsterInstance, evaluation: dg.AssetCheckEvaluation) -> None:
    """Take away what a check said of a partition without a run.

    Dagster keeps one such row and refuses a second one, where it means to keep every evaluation.
    """
    rows = AssetCheckExecutionsTable
    with instance.event_log_storage.index_connection() as connection:  # type: ignore[attr-defined]
        connection.execute(
            rows.delete().where(
                rows.c.asset_key == evaluation.asset_key.to_string(),
                rows.c.check_name == evaluation.check_name,
                rows.c.partition == evaluation.partition,
                rows.c.run_id == "",
            )
        )


def checked_materializations(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partitions: Sequence[str]
) -> dict[str, CheckedMaterialization]:
    """Partition → its newest materialization, for the evaluations of a check.

    An evaluation that names none counts as older than the materialization, and the UI then shows
    the page's check as missing.
    """
    newest = newest_materializations(instance, asset, partitions)
    return {key: checked_materialization(record) for key, record in newest.items()}


def checked_materialization(record: dg.EventLogRecord) -> CheckedMaterialization:
    """The materialization of ``record`` as the evaluation of a check names it."""
    return CheckedMaterialization(
        storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
    )


def newest_materializations(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partitions: Sequence[str]
) -> dict[str, dg.EventLogRecord]:
    """Partition → the record of its newest materialization."""
    if not partitions:
        return {}
    wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=partitions)
    # Twice as many as partitions: another run may have logged some of them at the same time.
    found = instance.fetch_materializations(wanted, limit=2 * len(partitions))
    newest: dict[str, dg.EventLogRecord] = {}
    for record in found.records:  # newest first
        if record.partition_key is not None:
            newest.setdefault(record.partition_key, record)
    return newest


def newest_evaluation(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, partition: str
) -> dg.AssetCheckEvaluation | None:
    """What the check of a partition says; None when nothing, or when a newer run owes it.

    The public ways to read checks know no partition.
    """
    records = instance.event_log_storage.get_asset_check_execution_history(
        check, limit=1, partition_filter=PartitionKeyFilter(key=partition)
    )
    found = records[0].evaluation if records else None
    return found if isinstance(found, dg.AssetCheckEvaluation) else None
