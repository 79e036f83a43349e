"""Backfills as people start them in the UI, carried out by a real daemon that is killed midway.

Everything goes through GraphQL as the UI does it. What was paid is taken from the provider.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from dagster_graphql.test.utils import execute_dagster_graphql

from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.config import HOME_VARIABLE, environment
from content_pipeline.core.states import Stage
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import INVALID, MakeSite, TownSite, rows_of

LONGEST_S = 200
"""Until a test gives up waiting; it takes half a minute on a quiet machine."""

SCATTERED = [f"t{n:02}" for n in (1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14)]
"""Three stretches of four: a run each."""

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


@contextmanager
def workspace(instance: dg.DagsterInstance, file: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Asks GraphQL as the UI does."""
    target = PythonFileTarget(
        python_file=str(file), attribute=None, working_directory=None, location_name="sites"
    )
    with WorkspaceProcessContext(instance, target) as process:

        def ask(query: str, params: dict[str, Any]) -> dict[str, Any]:
            context = process.create_request_context()
            result = execute_dagster_graphql(context, query, {"params": params})
            assert result.data, result.errors
            (answer,) = result.data.values()
            assert answer["__typename"] == "LaunchBackfillSuccess", answer
            return dict(answer)

        yield ask


def daemon(site: TownSite, file: Path) -> subprocess.Popen[bytes]:
    home = str(site.project.root)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "dagster._daemon", "run", "-f", str(file)],
        env={**environment(), DAGSTER_HOME: home, HOME_VARIABLE: home},
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextmanager
def daemon_at_work(site: TownSite, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon; in the end all that it started is gone with it."""
    process = daemon(site, file)
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


def launch(ask: Callable[..., dict[str, Any]], site: TownSite, keys: Sequence[str]) -> str:
    assets = [{"path": site.assets.key(stage).path} for stage in Stage]
    answer = ask(LAUNCH, {"assetSelection": assets, "partitionNames": list(keys)})
    return str(answer["backfillId"])


def status(site: TownSite, backfill_id: str) -> str:
    found = site.instance.get_backfill(backfill_id)
    assert found is not None
    return found.status.value


def asked_for(site: TownSite, backfill_id: str) -> set[tuple[str, str]]:
    """Asset and partition of everything that a backfill is about."""
    found = site.instance.get_backfill(backfill_id)
    assert found is not None
    assert found.asset_backfill_data is not None
    pairs = found.asset_backfill_data.target_subset.iterate_asset_partitions()
    return {(pair.asset_key.path[-1], str(pair.partition_key)) for pair in pairs}


@pytest.fixture
def site(make_site: MakeSite) -> TownSite:
    generation = {
        "provider": "sandbox",
        "model": "gpt-5-mini",
        "deadline_s": 20,
        "in_flight": 1,
        "sandbox": {"latency_median_s": 0.5},
    }
    made = make_site(
        rows_of(14, t03=INVALID, t12=INVALID),
        generation=generation,
        lane={"patience_s": 30, "lease_s": 1, "publish_quiet_s": 0.2},
    )
    made.provider.set_settings(ProviderSettings(latency_median_s=0.5, idle_exit_s=600))
    made.materialize_topics()
    return made


# Dagster's own GraphQL calls what Dagster deprecates.
@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources`:DeprecationWarning")
def test_a_backfill_survives_its_daemon_and_its_red_pages_alone_are_asked_for_again(
    site: TownSite, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.py"
    file.write_text(DEFINITIONS.format(file=str(site.site.file)))
    with workspace(site.instance, file) as ask:
        backfill_id = launch(ask, site, SCATTERED)
        with daemon_at_work(site, file) as first:
            wait_for(lambda: site.billed() >= 2, "the backfill was begun")
            first.kill()  # alone: its code server ends by itself, once its runs have
            assert site.billed() < len(SCATTERED), "it was killed in the middle"
            assert status(site, backfill_id) == "REQUESTED"
            with daemon_at_work(site, file):
                wait_for(lambda: status(site, backfill_id) != "REQUESTED", "it was carried on")
        assert status(site, backfill_id) == "COMPLETED_FAILED", "two pages need a person"
        assert site.billed() == len(SCATTERED), "no page was paid twice"
        red = {
            key
            for key, value in site.statuses(Stage.ARTIFACT, SCATTERED).items()
            if value == "FAILED"
        }
        assert red == {"t03", "t12"}
        again = ask(AGAIN, {"parentRunId": backfill_id, "strategy": "FROM_FAILURE"})
        assert {key for _, key in asked_for(site, str(again["backfillId"]))} == {"t03", "t12"}
