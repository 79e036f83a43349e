"""Dagster's events, many at once: the same rows as one by one, in order, and none lost."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from content_pipeline.components import event_store
from content_pipeline.components.dagster_private import (
    EVENT_BATCH_VARIABLE,
    CheckedMaterialization,
    PostgresEventLogStorage,
    log_check,
    newest_evaluation,
)
from content_pipeline.components.event_store import EventStore, stored_together
from content_pipeline.config import environment

pytestmark = pytest.mark.oldest

KINDS = dg.DagsterEventType
CHECK = "valid"
Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


@pytest.fixture
def asset(request: pytest.FixtureRequest) -> dg.AssetKey:
    """An asset that no other test knows."""
    return dg.AssetKey(["event_store", request.node.name])


@pytest.fixture
def store(instance: dg.DagsterInstance) -> EventStore:
    found = instance.event_log_storage
    assert isinstance(found, EventStore)
    return found


def made(asset: dg.AssetKey, partition: str | None, **metadata: Any) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(asset_key=asset, partition=partition, metadata=metadata)


def judged(
    asset: dg.AssetKey, partition: str | None, *, passed: bool = True, about: int | None = None
) -> dg.AssetCheckEvaluation:
    target = about and CheckedMaterialization(storage_id=about, run_id="r", timestamp=1.0)
    return dg.AssetCheckEvaluation(
        asset_key=asset,
        check_name=CHECK,
        passed=passed,
        partition=partition,
        target_materialization_data=target or None,
    )


def run_that_logs(
    instance: dg.DagsterInstance, work: Callable[[dg.OpExecutionContext], None]
) -> dg.ExecuteInProcessResult:
    """A run whose one step does ``work``."""

    @dg.op
    def step(context: dg.OpExecutionContext) -> None:
        work(context)

    @dg.job
    def logging() -> None:
        step()

    return logging.execute_in_process(instance=instance, raise_on_error=False)


def log(context: dg.OpExecutionContext, events: Sequence[Event]) -> None:
    for event in events:
        if isinstance(event, dg.AssetCheckEvaluation):
            log_check(context, event)
        else:
            context.log_event(event)


def kept(instance: dg.DagsterInstance, run_id: str) -> list[tuple[str, str | None]]:
    """Kind and partition of a run's events about pages, in the order of their numbers."""
    found = [entry.dagster_event for entry in instance.all_logs(run_id)]
    return [
        (event.event_type_value, event.partition)
        for event in found
        if event and event.event_type in event_store._OF_ASSETS | event_store._OF_CHECKS
    ]


def rows_of_checks(store: EventStore, asset: dg.AssetKey) -> list[dict[str, Any]]:
    """What the database keeps of an asset's checks, without numbers and times."""
    with store.index_connection() as connection:
        rows = connection.execute(
            text(
                "SELECT partition, check_name, execution_status, materialization_event_storage_id, "
                "evaluation_event_storage_id IN (SELECT id FROM event_logs) AS is_logged, "
                "evaluation_event = (SELECT event FROM event_logs "
                "WHERE id = evaluation_event_storage_id) AS is_the_same, "
                "evaluation_event_timestamp = (SELECT timestamp FROM event_logs "
                "WHERE id = evaluation_event_storage_id) AS is_then "
                "FROM asset_check_executions WHERE asset_key = :asset "
                "ORDER BY evaluation_event_storage_id"
            ),
            {"asset": asset.to_string()},
        ).mappings()
        return [dict(row) for row in rows]


@contextmanager
def one_by_one(instance: dg.DagsterInstance) -> Iterator[None]:
    yield


@pytest.mark.parametrize("written", [one_by_one, stored_together])
def test_events_read_the_same_however_they_were_written(
    written: Any, instance: dg.DagsterInstance, store: EventStore, asset: dg.AssetKey
) -> None:
    events: list[Event] = [
        made(asset, "a", n=1),
        dg.AssetObservation(asset_key=asset, partition="a", metadata={"n": 2}),
        judged(asset, "a", about=7),
        made(asset, "b", n=3),
        judged(asset, "b", passed=False),
        judged(asset, None),
    ]

    def work(context: dg.OpExecutionContext) -> None:
        with written(context.instance):
            log(context, events)

    result = run_that_logs(instance, work)
    assert result.success
    assert kept(instance, result.run_id) == [
        ("ASSET_MATERIALIZATION", "a"),
        ("ASSET_OBSERVATION", "a"),
        ("ASSET_CHECK_EVALUATION", None),
        ("ASSET_MATERIALIZATION", "b"),
        ("ASSET_CHECK_EVALUATION", None),
        ("ASSET_CHECK_EVALUATION", None),
    ]
    assert instance.get_materialized_partitions(asset) == {"a", "b"}
    newest = instance.get_latest_materialization_event(asset)
    assert newest is not None
    assert newest.run_id == result.run_id
    assert newest.asset_materialization == events[3]
    about = {"check_name": CHECK, "is_logged": True, "is_the_same": True, "is_then": True}
    assert rows_of_checks(store, asset) == [
        {
            "partition": partition,
            "execution_status": status,
            "materialization_event_storage_id": number,
            **about,
        }
        for partition, status, number in (
            ("a", "SUCCEEDED", 7),
            ("b", "FAILED", None),
            (None, "SUCCEEDED", None),
        )
    ]


def test_what_else_a_run_logs_keeps_its_place_among_them(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> None:
    def work(context: dg.OpExecutionContext) -> None:
        with stored_together(context.instance):
            log(context, [made(asset, "a")])
            context.log.info("between")
            log(context, [made(asset, "b")])

    result = run_that_logs(instance, work)
    order = [
        entry.user_message if entry.dagster_event is None else entry.dagster_event.partition
        for entry in instance.all_logs(result.run_id)
    ]
    assert [each for each in order if each in {"a", "between", "b"}] == ["a", "between", "b"]


def test_nothing_is_written_before_there_is_enough_of_it(
    instance: dg.DagsterInstance, asset: dg.AssetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "COLLECTED", 3)
    monkeypatch.setattr(event_store, "WRITTEN_EACH_S", 3_600)
    seen = []

    def work(context: dg.OpExecutionContext) -> None:
        with stored_together(context.instance):
            for number in range(7):
                log(context, [made(asset, f"p{number}")])
                seen.append(len(context.instance.get_materialized_partitions(asset)))

    assert run_that_logs(instance, work).success
    assert seen == [0, 0, 3, 3, 3, 6, 6]
    assert len(instance.get_materialized_partitions(asset)) == 7


def test_nothing_waits_for_long(
    instance: dg.DagsterInstance, asset: dg.AssetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "WRITTEN_EACH_S", 0.01)
    written = threading.Event()
    store = EventStore.store_together

    def noticed(self: EventStore, events: Sequence[dg.EventLogEntry]) -> list[int]:
        numbers = store(self, events)
        written.set()
        return numbers

    monkeypatch.setattr(EventStore, "store_together", noticed)
    with stored_together(instance):
        instance.report_runless_asset_event(made(asset, "a"))
        assert written.wait(30)
        assert instance.get_materialized_partitions(asset) == {"a"}


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_was_logged_before_an_error_is_written(
    error: type[BaseException], instance: dg.DagsterInstance, asset: dg.AssetKey
) -> None:
    with pytest.raises(error), stored_together(instance):
        instance.report_runless_asset_event(made(asset, "a"))
        raise error
    assert instance.get_materialized_partitions(asset) == {"a"}


def test_what_could_not_be_written_is_written_later_once(
    instance: dg.DagsterInstance, asset: dg.AssetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "WRITTEN_EACH_S", 3_600)
    with stored_together(instance) as collected:
        instance.report_runless_asset_event(made(asset, "a"))
        with monkeypatch.context() as away, pytest.raises(OperationalError):
            away.setattr(EventStore, "store_together", _is_away)
            collected.write()
        instance.report_runless_asset_event(made(asset, "b"))
    found = instance.fetch_materializations(asset, limit=10).records
    assert [record.partition_key for record in found] == ["b", "a"]


def _is_away(_store: EventStore, _events: Sequence[dg.EventLogEntry]) -> list[int]:
    raise OperationalError("INSERT", {}, Exception("the database is away"))


def test_the_number_of_a_materialization_is_known_without_asking(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> None:
    with stored_together(instance) as collected:
        for partition in ("a", "b", "a"):
            instance.report_runless_asset_event(made(asset, partition))
        assert collected.materialized(asset, "a") is None, "it is not written yet"
        collected.write()
    (last, *_) = instance.fetch_materializations(asset, limit=1).records
    assert collected.materialized(asset, "a") == CheckedMaterialization(
        storage_id=last.storage_id, run_id=last.run_id, timestamp=last.timestamp
    )
    assert collected.materialized(asset, "c") is None


@pytest.mark.parametrize("written", [one_by_one, stored_together])
def test_a_check_is_told_without_a_run_as_often_as_it_changes(
    written: Any, instance: dg.DagsterInstance, store: EventStore, asset: dg.AssetKey
) -> None:
    check = dg.AssetCheckKey(asset, CHECK)

    def tell(*, passed: bool) -> None:
        with written(instance):
            for partition in ("a", "b"):
                instance.report_runless_asset_event(judged(asset, partition, passed=passed))

    tell(passed=False)

    def work(context: dg.OpExecutionContext) -> None:
        log(context, [judged(asset, "a", passed=False)])

    run_that_logs(instance, work)
    tell(passed=True)
    found = newest_evaluation(instance, check, "a")
    assert found is not None
    assert found.passed, "what was told last is newest, though a run has told in between"
    statuses = [(row["partition"], row["execution_status"]) for row in rows_of_checks(store, asset)]
    assert statuses == [("a", "FAILED"), ("a", "SUCCEEDED"), ("b", "SUCCEEDED")]


def test_another_thread_is_not_kept_waiting(
    instance: dg.DagsterInstance, asset: dg.AssetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "WRITTEN_EACH_S", 3_600)
    with stored_together(instance):
        instance.report_runless_asset_event(made(asset, "ours"))
        other = threading.Thread(
            target=instance.report_runless_asset_event, args=(made(asset, "theirs"),)
        )
        other.start()
        other.join()
        assert instance.get_materialized_partitions(asset) == {"theirs"}
    assert instance.get_materialized_partitions(asset) == {"ours", "theirs"}


def test_another_storage_gets_each_event_at_once(asset: dg.AssetKey) -> None:
    with dg.DagsterInstance.ephemeral() as other, stored_together(other) as collected:
        other.report_runless_asset_event(made(asset, "a"))
        assert other.get_materialized_partitions(asset) == {"a"}
        collected.write()
        assert collected.materialized(asset, "a") is None


PAGES = dg.StaticPartitionsDefinition([f"p{number}" for number in range(5)])


def test_the_plan_of_a_run_is_written_at_once(
    instance: dg.DagsterInstance,
    store: EventStore,
    asset: dg.AssetKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert environment()[EVENT_BATCH_VARIABLE] == str(event_store.DAGSTERS_BATCH)
    batches = []
    together = EventStore.store_together

    def counted(self: EventStore, events: Sequence[dg.EventLogEntry]) -> list[int]:
        batches.append([event.dagster_event_type for event in events])
        return together(self, events)

    monkeypatch.setattr(EventStore, "store_together", counted)

    @dg.asset(key=asset, partitions_def=PAGES, output_required=False)
    def pages() -> Iterator[dg.Output[None]]:
        yield from ()

    result = dg.materialize(
        [pages],
        instance=instance,
        tags={
            "dagster/asset_partition_range_start": "p0",
            "dagster/asset_partition_range_end": "p4",
        },
    )
    assert batches[0] == [KINDS.ASSET_MATERIALIZATION_PLANNED] * 5
    planned = instance.all_logs(result.run_id, of_type=KINDS.ASSET_MATERIALIZATION_PLANNED)
    assert {entry.get_dagster_event().partition for entry in planned} == {
        f"p{number}" for number in range(5)
    }


def test_batches_of_other_kinds_are_dagsters_own_affair(
    instance: dg.DagsterInstance, store: EventStore
) -> None:
    result = run_that_logs(instance, lambda context: context.log.info("said"))
    entries = instance.all_logs(result.run_id)
    with pytest.raises(Exception, match="only currently supported events"):
        store.store_event_batch([entry for entry in entries if entry.dagster_event])


def test_a_table_that_exists_is_asked_for_once(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.has_table("event_logs")
    monkeypatch.setattr(PostgresEventLogStorage, "has_table", lambda *_: False)
    assert store.has_table("event_logs")
    assert not store.has_table("no_such_table"), "what is missing may come with a migration"
