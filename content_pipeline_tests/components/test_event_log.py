"""Where the events of pages go, with the project's storage and with Dagster's own."""

import dagster as dg
import pytest

from content_pipeline.components.dagster_private import newest_evaluation
from content_pipeline.components.event_log import EventLog

pytestmark = pytest.mark.oldest

CHECK = "valid"


@pytest.fixture
def asset(request: pytest.FixtureRequest) -> dg.AssetKey:
    """An asset that no other test knows."""
    return dg.AssetKey(["event_log", request.node.name])


def judged(asset: dg.AssetKey, *, passed: bool) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=asset, check_name=CHECK, passed=passed, partition="a", metadata={}
    )


def says(instance: dg.DagsterInstance, asset: dg.AssetKey) -> bool | None:
    found = newest_evaluation(instance, dg.AssetCheckKey(asset, CHECK), "a")
    return None if found is None else found.passed


def tell_twice(instance: dg.DagsterInstance, asset: dg.AssetKey) -> None:
    for passed in (False, True):
        with EventLog.without_run(instance) as log:
            log.log(judged(asset, passed=passed))
        assert says(instance, asset) is passed


def test_a_check_is_told_anew_without_a_run(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> None:
    tell_twice(instance, asset)


def test_a_check_is_told_anew_where_dagster_has_another_storage(asset: dg.AssetKey) -> None:
    with dg.DagsterInstance.ephemeral() as other:
        tell_twice(other, asset)


def test_the_newest_materializations_are_those_logged_here_and_else_those_on_record(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> None:
    for partition in ("a", "b"):
        made = dg.AssetMaterialization(asset_key=asset, partition=partition)
        instance.report_runless_asset_event(made)
    with EventLog.without_run(instance) as log:
        log.log(dg.AssetMaterialization(asset_key=asset, partition="b"))
        found = log.newest(asset, ["a", "b", "c"])
    on_record = instance.fetch_materializations(asset, limit=3).records
    assert {key: each.storage_id for key, each in found.items()} == {
        "a": on_record[2].storage_id,
        "b": on_record[0].storage_id,
    }
