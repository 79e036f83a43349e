"""Dagster's event log in the project's database, which stores many events of pages at once.

What belongs here: how events come into the tables of dagster-postgres, which stores one event of a
page by five statements in three transactions. What is inherited and used here though it is not
public is held to in the test of ``dagster_private``.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import dagster as dg
from sqlalchemy import delete, insert, tuple_
from sqlalchemy.dialects import postgresql

from content_pipeline.components.dagster_private import (
    AssetCheckExecutionRecordStatus,
    AssetCheckExecutionsTable,
    CheckedMaterialization,
    DagsterPostgresException,
    PostgresEventLogStorage,
    SqlEventLogStorageTable,
)
from content_pipeline.operations.repeating import PASSING, repeated

DAGSTERS_BATCH = 1_000
"""Events that Dagster itself writes at once, such as the plan of a run: 300 for 100 pages."""

COLLECTED = 100
"""Events of pages that are written at once: those of some thirty pages."""

WRITTEN_EACH_S = 1.0
"""No event waits longer. Who looks at a run asks for its events about as often."""

_Kind = dg.DagsterEventType
_Status = AssetCheckExecutionRecordStatus

_OF_ASSETS = frozenset(
    {_Kind.ASSET_MATERIALIZATION, _Kind.ASSET_MATERIALIZATION_PLANNED, _Kind.ASSET_OBSERVATION}
)
_OF_CHECKS = frozenset({_Kind.ASSET_CHECK_EVALUATION, _Kind.ASSET_CHECK_EVALUATION_PLANNED})

_EVENTS, _CHECKS = SqlEventLogStorageTable, AssetCheckExecutionsTable
_Row = dict[str, Any]

_IDENTITY = (_CHECKS.c.asset_key, _CHECKS.c.check_name, _CHECKS.c.run_id, _CHECKS.c.partition)
"""The database keeps one row for each."""

_SAID = (
    "execution_status",
    "evaluation_event",
    "evaluation_event_timestamp",
    "evaluation_event_storage_id",
    "materialization_event_storage_id",
)

_NEW_CHECK = postgresql.insert(_CHECKS)
_KEEP_CHECK = _NEW_CHECK.on_conflict_do_update(
    index_elements=_IDENTITY, set_={name: _NEW_CHECK.excluded[name] for name in _SAID}
)


class EventStore(PostgresEventLogStorage):
    """The events of all runs."""

    def __init__(self, postgres_url: str) -> None:
        super().__init__(postgres_url, should_autocreate_tables=False)  # whose place it takes has
        self._tables: set[str] = set()

    def has_table(self, table_name: str) -> bool:
        """Whether the table exists; one that does is not asked for again.

        Dagster asks before it stores any evaluation of a check.
        """
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def store_event(self, event: dg.EventLogEntry) -> None:
        """Store ``event``, or leave it to what its thread collects; see ``stored_together``."""
        collected = _COLLECTED.get()
        if collected is None or collected.store is not self:
            super().store_event(event)
        elif event.dagster_event_type in _OF_ASSETS | _OF_CHECKS:
            collected.add(event)
        else:
            collected.write()  # the order of a run's events is that of their numbers
            super().store_event(event)

    def store_event_batch(self, events: Sequence[dg.EventLogEntry]) -> None:
        """Store ``events`` in their order; also kinds that dagster-postgres stores one by one."""
        if {event.dagster_event_type for event in events} <= _OF_ASSETS | _OF_CHECKS:
            self.store_together(events)
        else:
            super().store_event_batch(events)

    def store_together(self, events: Sequence[dg.EventLogEntry]) -> list[int]:
        """Store ``events`` of assets and checks in their order; the numbers they are kept under."""
        if not events:
            return []
        rows = [self._event_to_row(event) for event in events]
        # A transaction of its own: Dagster reads on from the last number it saw, so none may become
        # visible long after later ones.
        with self.index_connection() as connection:
            kept = insert(_EVENTS).returning(_EVENTS.c.id, sort_by_parameter_order=True)
            numbers = list(connection.execute(kept, rows).scalars())
        self._show_on_assets(numbers, events)
        of_checks: list[_Row] = []
        for number, event, row in zip(numbers, events, rows, strict=True):
            of_check = _rows_of_check(number, event, row)
            if event.dagster_event_type in _OF_CHECKS and not of_check:
                super().store_asset_check_event(event, number)
            of_checks += of_check
        self._show_on_checks(of_checks)
        return numbers

    def store_asset_check_event(self, event: dg.EventLogEntry, event_id: int | None) -> None:
        """Show ``event`` on its check.

        Dagster refuses a second evaluation of a partition without a run; here it takes the place of
        the first.
        """
        rows = (
            [] if event_id is None else _rows_of_check(event_id, event, self._event_to_row(event))
        )
        if rows:
            self._show_on_checks(rows)
        else:
            super().store_asset_check_event(event, event_id)

    def _show_on_assets(self, numbers: Sequence[int], events: Sequence[dg.EventLogEntry]) -> None:
        """Keep of each asset what came last; by its key, so that no two runs block each other."""
        of_assets = [
            (number, event)
            for number, event in zip(numbers, events, strict=True)
            if event.dagster_event_type in _OF_ASSETS
        ]
        newest = {
            (str(event.get_dagster_event().asset_key), event.dagster_event_type): (number, event)
            for number, event in of_assets
        }
        if not of_assets:
            return
        with self.index_transaction() as connection:
            self._store_asset_event_tags(
                connection, [event for _, event in of_assets], [number for number, _ in of_assets]
            )
            for _, (number, event) in sorted(
                newest.items(), key=lambda item: (item[0][0], item[1][0])
            ):
                self._store_asset_event(connection, event, number)

    def _show_on_checks(self, rows: Sequence[_Row]) -> None:
        """Keep the last of ``rows`` for each check, partition and run."""
        last = {tuple(row[column.name] for column in _IDENTITY): row for row in rows}
        without_run = [key for key, row in last.items() if not row["run_id"]]
        if not last:
            return
        with self.index_transaction() as connection:
            if without_run:
                # Not updated: what stands newest of a partition is the row that was made last.
                connection.execute(delete(_CHECKS).where(tuple_(*_IDENTITY).in_(without_run)))
            connection.execute(_KEEP_CHECK, list(last.values()))


def _rows_of_check(number: int, event: dg.EventLogEntry, row: _Row) -> list[_Row]:
    """What ``event`` says of a check, by partition; nothing unless the check has partitions."""
    told = event.get_dagster_event()
    said: _Row
    if event.dagster_event_type is _Kind.ASSET_CHECK_EVALUATION:
        evaluation = told.asset_check_evaluation_data
        partitions = [] if evaluation.partition is None else [evaluation.partition]
        target = evaluation.target_materialization_data
        status = _Status.SUCCEEDED if evaluation.passed else _Status.FAILED
        check, about = evaluation.asset_check_key, target.storage_id if target else None
    elif event.dagster_event_type is _Kind.ASSET_CHECK_EVALUATION_PLANNED:
        planned = told.asset_check_planned_data
        subset = planned.partitions_subset
        partitions = [] if subset is None else list(subset.get_partition_keys())
        check, status, about = planned.asset_check_key, _Status.PLANNED, None
    else:
        return []
    said = {
        "asset_key": check.asset_key.to_string(),
        "check_name": check.name,
        "run_id": event.run_id,
        "execution_status": status.value,
        "evaluation_event": row["event"],
        "evaluation_event_timestamp": row["timestamp"],
        "evaluation_event_storage_id": number,
        "materialization_event_storage_id": about,
    }
    return [said | {"partition": partition} for partition in partitions]


class Collected:
    """Events of pages that are not written yet: at most COLLECTED, none for long."""

    def __init__(self, store: EventStore | None) -> None:
        self.store = store
        self._waiting: list[dg.EventLogEntry] = []
        self._lock = threading.Lock()
        self._materialized: dict[tuple[dg.AssetKey, str], CheckedMaterialization] = {}

    def add(self, event: dg.EventLogEntry) -> None:
        """Write ``event`` with the next ones."""
        with self._lock:
            self._waiting.append(event)
            is_full = len(self._waiting) >= COLLECTED
        if is_full:
            self.write()

    def write(self) -> None:
        """Write what waits. When that fails it waits still, and the error is raised."""
        with self._lock:
            if self.store is None or not self._waiting:
                return
            numbers = self.store.store_together(self._waiting)
            for number, event in zip(numbers, self._waiting, strict=True):
                self._remember(number, event)
            self._waiting = []

    def materialized(self, asset: dg.AssetKey, partition: str) -> CheckedMaterialization | None:
        """What the newest materialization of a partition was written as, if it was one of these."""
        return self._materialized.get((asset, partition))

    def _remember(self, number: int, event: dg.EventLogEntry) -> None:
        told = event.get_dagster_event()
        if told.is_step_materialization and told.asset_key and told.partition:
            self._materialized[told.asset_key, told.partition] = CheckedMaterialization(
                storage_id=number, run_id=event.run_id, timestamp=event.timestamp
            )


_COLLECTED: ContextVar[Collected | None] = ContextVar("collected", default=None)


@contextmanager
def stored_together(instance: dg.DagsterInstance) -> Iterator[Collected]:
    """Collect the events of pages that this thread logs, and write many at once.

    All are written when the block ends, however it ends; those of the last WRITTEN_EACH_S are lost
    when the process is killed: the repair sensor tells of their pages. Where Dagster has another
    storage, each event is written at once.
    """
    store = instance.event_log_storage
    collected = Collected(store if isinstance(store, EventStore) else None)
    passing = (*PASSING, DagsterPostgresException)
    token = _COLLECTED.set(collected)
    try:
        with repeated(collected.write, every_s=WRITTEN_EACH_S, name="events", passing=passing):
            yield collected
    finally:
        _COLLECTED.reset(token)
        collected.write()
