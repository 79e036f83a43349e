"""A project with Dagster's own default executor: its killed run leaves no step that goes on paying.

What is true is taken from the provider's account; which process worked, from the ledger.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.components.step_process import executor_of
from content_pipeline.config import HOME_VARIABLE, environment
from content_pipeline.core.states import Stage
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of

PAGES = 60
LONGEST_S = 120
WARNING = "gave this step a process of its own"

WORKER = """
import sys
from pathlib import Path
import dagster as dg
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site

FILE, FIRST, LAST = {order!r}
RANGE = "dagster/asset_partition_range_"

def of_the_team():
    site = load_site(Path(FILE))
    name = site.settings.site
    pages = [dg.AssetKey([name, stage]) for stage in ("draft", "page", "artifact")]
    job = dg.define_asset_job("of_the_team", selection=dg.AssetSelection.assets(*pages))
    theirs = dg.Definitions(jobs=[job])
    return dg.Definitions.merge(site_definitions(site), theirs).resolve_job_def("of_the_team")

if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        dg.execute_job(
            dg.reconstructable(of_the_team),
            instance=instance,
            tags={{RANGE + "start": FIRST, RANGE + "end": LAST}},
        )
"""
"""The worker of a run of all pages, of another team's job: it says nothing of an executor, so it
has Dagster's default one."""


@pytest.mark.parametrize(
    ("executor", "chosen", "expected"),
    [
        (None, None, "multiprocess"),
        (None, {"multiprocess": {"max_concurrent": 2}}, "multiprocess"),
        (None, {"in_process": {}}, None),
        (dg.in_process_executor, None, None),
        (dg.multiprocess_executor, None, "multiprocess"),
    ],
)
def test_whether_the_step_is_the_run_s_worker_is_read_from_executor_and_configuration(
    executor: dg.ExecutorDefinition | None, chosen: dict[str, Any] | None, expected: str | None
) -> None:
    @dg.asset
    def told() -> None: ...

    definitions = dg.Definitions(assets=[told], executor=executor)
    job = definitions.resolve_implicit_global_asset_job_def()
    run_config = {"execution": {"config": chosen}} if chosen else {}
    assert executor_of(job, run_config) == expected


@pytest.fixture
def slow(make_site: MakeSite) -> TownSite:
    """A site of many slow pages, wanted and registered."""
    site = make_site(
        rows_of(PAGES),
        lane={"patience_s": 20, "lease_s": 1, "publish_quiet_s": 0.2},
        generation={
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 10,
            "answer_slack_s": 1,
            "in_flight": 2,
            "sandbox": {"latency_median_s": 0.4},
        },
    )
    site.provider.set_settings(ProviderSettings(latency_median_s=0.4, idle_exit_s=600))
    site.materialize_topics()
    return site


@pytest.fixture
def run_worker(slow: TownSite, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The worker of a run that materializes all pages, in Dagster's default executor."""
    code = tmp_path / "worker.py"
    keys = [row["code"] for row in rows_of(PAGES)]
    code.write_text(WORKER.format(order=(str(slow.site.file), keys[0], keys[-1])))
    home = str(slow.project.root)
    with (tmp_path / "worker.log").open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(code)],
            env={**environment(), DAGSTER_HOME: home, HOME_VARIABLE: home},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
        yield worker
        worker.kill()
        worker.wait()


def wait_until(site: TownSite, what: str, is_so: Any) -> None:
    until = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < until, f"{what}; {site.billed()} pages were billed"
        time.sleep(0.05)


def step_pid(site: TownSite) -> int:
    """The process that made paid calls, from the records of the calls."""
    with site.ledger.begin() as connection:
        workers = connection.execute(
            text(
                "SELECT DISTINCT a.worker FROM content_pipeline.attempts a"
                " JOIN content_pipeline.page_jobs j USING (page_job_id) WHERE j.site = :site"
            ),
            {"site": site.assets.name},
        ).scalars()
        (worker,) = workers
    return int(worker.split(":")[1])


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_step_of_its_own_says_so_and_ends_with_the_worker_of_its_run(
    slow: TownSite, run_worker: subprocess.Popen[str]
) -> None:
    wait_until(
        slow, "no page was paid for", lambda: slow.billed() >= 4 or run_worker.poll() is not None
    )
    assert run_worker.poll() is None, "the worker ended; its log is beside its script"
    step = step_pid(slow)
    assert step != run_worker.pid, "the default executor gives the step a process of its own"

    run_worker.kill()
    run_worker.wait()
    try:
        wait_until(slow, "the step outlives the worker of its run", lambda: is_gone(step))
    finally:
        if not is_gone(step):
            os.kill(step, signal.SIGKILL)
    assert slow.billed() < PAGES, "it began no new page"
    truth = slow.provider.truth()
    assert set(truth["creates_by_attempt_id"].values()) == {1}
    (run,) = slow.instance.get_runs(limit=1)
    log = "\n".join(str(entry) for entry in slow.instance.all_logs(run.run_id))
    assert WARNING in log
    assert "executor=dg.in_process_executor" in log


def test_a_step_in_the_run_s_worker_is_not_warned_of(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    result = site.materialize(*Stage, pages="t01")
    assert result.success
    assert WARNING not in site.shown_of(result)
