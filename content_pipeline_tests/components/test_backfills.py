"""Backfills as people start them in the UI: its selection "failed" asks for the red pages alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from dagster_graphql.test.utils import execute_dagster_graphql

from content_pipeline.core.states import Stage
from content_pipeline_tests.components.conftest import INVALID, MakeSite, TownSite, rows_of

DEFINITIONS = """
from pathlib import Path
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site
defs = site_definitions(load_site(Path({file!r})))
"""

LAUNCH = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""


def launched(site: TownSite, folder: Path, keys: Sequence[str]) -> str:
    """The backfill that GraphQL makes of a selection of partitions, as the UI asks it to."""
    file = folder / "definitions.py"
    file.write_text(DEFINITIONS.format(file=str(site.site.file)))
    target = PythonFileTarget(
        python_file=str(file), attribute=None, working_directory=None, location_name="sites"
    )
    params = {
        "assetSelection": [{"path": site.assets.key(stage).path} for stage in Stage],
        "partitionNames": list(keys),
    }
    with WorkspaceProcessContext(site.instance, target) as process:
        context = process.create_request_context()
        result = execute_dagster_graphql(context, LAUNCH, {"params": params})
    answer = result.data["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    return str(answer["backfillId"])


# Dagster's own GraphQL calls what Dagster deprecates.
@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources`:DeprecationWarning")
def test_the_red_pages_of_a_run_alone_are_asked_for_again(
    make_site: MakeSite, tmp_path: Path
) -> None:
    site = make_site(rows_of(10, t03=INVALID, t08=INVALID))
    site.materialize_topics()
    assert not site.materialize(*Stage, pages=("t01", "t10")).success
    keys = [row["code"] for row in rows_of(10)]
    shown = site.statuses(Stage.ARTIFACT, keys)
    failed = [key for key in keys if shown[key] == "FAILED"]
    assert failed == ["t03", "t08"]
    billed = site.billed()

    backfill = site.instance.get_backfill(launched(site, tmp_path, failed))
    assert backfill is not None
    assert backfill.asset_backfill_data is not None
    pairs = backfill.asset_backfill_data.target_subset.iterate_asset_partitions()
    asked = {(pair.asset_key, str(pair.partition_key)) for pair in pairs}
    assert asked == {(site.assets.key(stage), key) for stage in Stage for key in failed}
    assert site.billed() == billed
