"""Two machines on one broker, one of which dies in the middle: everything ends, once.

The broker is a real Redis, Dagster's daemon is the real one, and what is true is taken from the
provider's account and the folder's own log.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from content_pipeline.bootstrap import open_ledger
from content_pipeline.components.planned_runs import pages_job_name
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import BROKER_VARIABLE, HOME_VARIABLE, Project
from content_pipeline.core.states import Stage
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import ensure_provider_running, stop_provider
from content_pipeline.site_files import load_site
from content_pipeline_tests.components.conftest import (
    REPOSITORY,
    rows_of,
    settings_of,
    write_site,
)
from content_pipeline_tests.machines.fleet import HOST, Fleet, end, free_port, wait_until
from content_pipeline_tests.machines.presence import redis_program
from content_pipeline_tests.postgres.conftest import fastest_place

SITE = "towns"
PAGES = 24
KEYS = [row["code"] for row in rows_of(PAGES)]
LATENCY_S = 2.0
"""Two rounds of calls: long enough that both machines are at it when one dies."""

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site

@dg.definitions
def defs():
    site = load_site(Path(__file__).parent / "content_pipeline/defs/towns/defs.yaml")
    return dg.Definitions.merge(
        site_definitions(site), dg.Definitions(executor=dg.in_process_executor))
"""


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project as deployed: the instance of deploy/, a site and a workspace."""
    root = Path(tempfile.mkdtemp(prefix="cp-", dir=fastest_place()))
    root.chmod(0o755)
    instance = yaml.safe_load((REPOSITORY / "deploy" / "dagster.celery.yaml").read_text())
    instance["run_monitoring"]["poll_interval_seconds"] = 1
    (root / "dagster.yaml").write_text(yaml.safe_dump(instance))
    (root / "machines.py").write_text(DEFINITIONS)
    workspace = {"load_from": [{"python_file": str(root / "machines.py")}]}
    (root / "workspace.yaml").write_text(yaml.safe_dump(workspace))
    settings = settings_of(
        SITE,
        lane={"patience_s": 30, "lease_s": 5, "publish_quiet_s": 0.2},
        generation={
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 8,
            "answer_slack_s": 1,
            "in_flight": 3,
            "sandbox": {"latency_median_s": LATENCY_S},
        },
    )
    write_site(root / "content_pipeline" / "defs" / SITE, rows_of(PAGES), settings)
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in (HOME_VARIABLE, DAGSTER_HOME):
        monkeypatch.setenv(name, str(root))
    made = Project(root=root)
    yield made
    stop_provider(made.data_home)
    EmbeddedServer(made.data_home).stop()
    shutil.rmtree(root)


@pytest.fixture
def fleet(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A Redis with the daemon, and no worker yet."""
    program, port = redis_program(), free_port()
    monkeypatch.setenv(BROKER_VARIABLE, f"redis://{HOST}:{port}/0")
    with Fleet(folder=tmp_path, variables={}) as started:
        options = ["--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no"]
        started.start("redis", [program, *options])
        open_ledger(project).dispose()
        yield started


def requested(project: Project, first: str, last: str) -> "subprocess.Popen[bytes]":
    """Somebody at another computer asks for a range of pages."""
    tags = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }
    command = [sys.executable, "-m", "dagster", "job", "launch"]
    command += ["-w", str(project.root / "workspace.yaml"), "-j", f"{SITE}_scheduled_pages"]
    return subprocess.Popen(
        [*command, "--tags", json.dumps(tags)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=project.root,
    )


@pytest.mark.timeout(400)  # with every core busy three times over it took 150 s
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["dies", "is drained"])
def test_a_machine_that_goes_in_the_middle_costs_nothing_and_loses_no_page(
    project: Project, fleet: Fleet, number: signal.Signals
) -> None:
    slow = ProviderSettings(latency_median_s=LATENCY_S, latency_sigma=0, idle_exit_s=600)
    provider = ensure_provider_running(project.data_home, slow).client()
    site = load_site(project.root / "content_pipeline" / "defs" / SITE / "defs.yaml")
    assets = SiteAssets(site=site)
    with dg.DagsterInstance.get() as instance:

        def runs(*statuses: dg.DagsterRunStatus) -> int:
            """Of the pages' job: one that reconciles a write may have been started besides."""
            mine = dg.RunsFilter(job_name=pages_job_name(assets), statuses=statuses)
            return instance.get_runs_count(mine)

        def billed() -> int:
            return len(provider.truth()["generations"])

        def green() -> bool:
            found = instance.get_status_by_partition(assets.key(Stage.ARTIFACT), KEYS, assets.pages)
            return [value.name for value in (found or {}).values() if value] == (
                ["MATERIALIZED"] * PAGES
            )

        instance.add_dynamic_partitions(assets.partitions_name, KEYS)
        half = PAGES // 2
        asked = [
            requested(project, KEYS[0], KEYS[half - 1]),
            requested(project, KEYS[half], KEYS[-1]),
        ]
        fleet.daemon(project.root / "workspace.yaml")
        machines = [fleet.worker("first"), fleet.worker("second")]
        assert [each.wait() for each in asked] == [0, 0]

        wait_until(lambda: runs(dg.DagsterRunStatus.STARTED) == 2 and billed() >= 4, fleet)
        end(machines[0], number)
        assert billed() < PAGES, "it died in the middle"
        provider.set_settings(slow.model_copy(update={"latency_median_s": 0}))
        wait_until(lambda: green() and runs(dg.DagsterRunStatus.SUCCESS) == 2, fleet)

        # The two that were asked for, and one in the place of the one that died with its machine.
        assert runs(dg.DagsterRunStatus.FAILURE) == 1
        assert runs(*dg.DagsterRunStatus) == 3

    assert billed() == PAGES
    log = project.root / "public" / SITE / ".content-pipeline" / "writes.log"
    written = [line.split("\t")[1] for line in log.read_text().splitlines()]
    assert len(written) == len(set(written)) == PAGES
