"""Backfills as people start them in the UI: red pages alone, and daemons that die in between.

Everything is asked of GraphQL, as the UI does. What was paid is taken from the provider.
"""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from dagster_graphql.test.utils import define_out_of_process_context, execute_dagster_graphql

from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.config import HOME_VARIABLE, environment
from content_pipeline.core.states import Stage
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import INVALID, MakeSite, TownSite, rows_of

LONGEST_S = 240
"""Until a test gives up waiting: Dagster's daemon looks at backfills each half minute only."""

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

AGAIN = """
mutation($params: ReexecutionParams!) {
  reexecutePartitionBackfill(reexecutionParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""

pytestmark = [
    # Dagster's own GraphQL calls what Dagster deprecates.
    pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources`:DeprecationWarning"),
    # Dagster asks its code server to end and does not wait for it.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Popen:pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the definitions of a site stand for other processes."""
    return tmp_path / "definitions.py"


def asked_of_graphql(site: TownSite, file: Path, query: str, params: dict[str, Any]) -> str:
    """The id of the backfill that the mutation made."""
    file.write_text(DEFINITIONS.format(file=str(site.site.file)))
    answer = _answer(site, file, query, params)
    gc.collect()  # what Dagster leaves is complained of here, where it is expected
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    return str(answer["backfillId"])


def _answer(site: TownSite, file: Path, query: str, params: dict[str, Any]) -> dict[str, Any]:
    with define_out_of_process_context(str(file), None, site.instance) as context:
        result = execute_dagster_graphql(context, query, {"params": params})
    assert result.data, result.errors
    (answer,) = result.data.values()
    return dict(answer)


def launched(site: TownSite, file: Path, keys: Sequence[str]) -> str:
    """The backfill of a selection of partitions."""
    assets = [{"path": site.assets.key(stage).path} for stage in Stage]
    return asked_of_graphql(
        site, file, LAUNCH, {"assetSelection": assets, "partitionNames": list(keys)}
    )


def asked_for(site: TownSite, backfill_id: str) -> set[tuple[str, str]]:
    """Asset and partition of everything that a backfill is about."""
    found = site.instance.get_backfill(backfill_id)
    assert found is not None
    assert found.asset_backfill_data is not None
    pairs = found.asset_backfill_data.target_subset.iterate_asset_partitions()
    return {(pair.asset_key.path[-1], str(pair.partition_key)) for pair in pairs}


def failed_of(site: TownSite, keys: Sequence[str]) -> list[str]:
    """What the UI's selection "failed" holds."""
    shown = site.statuses(Stage.ARTIFACT, keys)
    return [key for key in keys if shown[key] == "FAILED"]


@contextmanager
def daemon_at_work(site: TownSite, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon; in the end all that it started is gone with it."""
    home = str(site.project.root)
    process = subprocess.Popen(
        [Path(sys.executable).with_name("dagster-daemon"), "run", "-f", str(file)],
        env={**environment(), DAGSTER_HOME: home, HOME_VARIABLE: home},
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(what: Callable[[], bool], reason: str) -> None:
    until = time.monotonic() + LONGEST_S
    while not what():
        assert time.monotonic() < until, reason
        time.sleep(0.2)


def test_the_red_pages_of_a_run_alone_are_asked_for_again(make_site: MakeSite, file: Path) -> None:
    site = make_site(rows_of(10, t03=INVALID, t08=INVALID))
    site.materialize_topics()
    assert not site.materialize(*Stage, pages=("t01", "t10")).success
    failed = failed_of(site, [row["code"] for row in rows_of(10)])
    assert failed == ["t03", "t08"]
    billed = site.billed()
    asked = asked_for(site, launched(site, file, failed))
    assert asked == {(stage.value, key) for stage in Stage for key in failed}
    assert site.billed() == billed


@pytest.mark.timeout(2 * LONGEST_S + 60)
def test_a_backfill_outlives_its_daemon_and_pays_for_no_page_twice(
    make_site: MakeSite, file: Path
) -> None:
    """Two pages need a person: the UI's "re-execute from failure" asks for exactly those."""
    slow = {"latency_median_s": 0.5}
    site = make_site(
        rows_of(12, t03=INVALID, t09=INVALID),
        generation={
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 20,
            "in_flight": 1,
            "sandbox": slow,
        },
        lane={"patience_s": 30, "lease_s": 2, "publish_quiet_s": 0.2},
    )
    site.provider.set_settings(ProviderSettings(latency_median_s=0.5, idle_exit_s=600))
    site.materialize_topics()
    keys = [row["code"] for row in rows_of(12) if row["code"] not in ("t05", "t10")]

    backfill_id = launched(site, file, keys)  # three stretches: a run each

    def is_open() -> bool:
        found = site.instance.get_backfill(backfill_id)
        assert found is not None
        return found.status.value == "REQUESTED"

    with daemon_at_work(site, file) as first:
        wait_for(lambda: site.billed() >= 2, "the backfill was never begun")
        first.kill()
        first.wait()
        assert site.billed() < len(keys), "it was killed too late to say anything"
        assert is_open()
        with daemon_at_work(site, file):
            wait_for(lambda: not is_open(), "the backfill was not carried on")
    found = site.instance.get_backfill(backfill_id)
    assert found is not None
    assert found.status.value == "COMPLETED_FAILED", "two pages need a person"
    assert failed_of(site, keys) == ["t03", "t09"]
    assert site.billed() == len(keys), "no page was paid for twice"
    assert len(site.writes()) == len(keys) - 2
    again = asked_of_graphql(
        site, file, AGAIN, {"parentRunId": backfill_id, "strategy": "FROM_FAILURE"}
    )
    assert {key for _, key in asked_for(site, again)} == {"t03", "t09"}
