"""A run's worker dies together with all that watched it: others take its pages, and all is shown.

What is true is taken from the provider's account and the folder's own log.
"""

import json
import subprocess
import sys
import time
from typing import Any

import dagster as dg
import pytest

from content_pipeline.components import run_repair
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.config import HOME_VARIABLE, environment
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of
from content_pipeline_tests.components.test_due_work import tick
from content_pipeline_tests.components.test_killed_schedule import WORKER
from content_pipeline_tests.components.test_repairing import pass_time, repair

PAGES = 16
LONGEST_S = 120

SLOW: dict[str, Any] = {
    "provider": "sandbox",
    "model": "gpt-5-mini",
    "deadline_s": 5,
    "answer_slack_s": 1,
    "in_flight": 3,
    "sandbox": {"latency_median_s": 0.3},
}


def started(site: TownSite) -> subprocess.Popen[str]:
    """A run worker of the site's due work, which no code server watches."""
    order = {
        "file": str(site.site.file),
        "job": f"{site.assets.name}_due_work",
        "tags": {},
        "run_config": {},
    }
    home = str(site.project.root)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WORKER],
        env={**environment(), DAGSTER_HOME: home, HOME_VARIABLE: home},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    return process


def killed_in_the_middle(site: TownSite) -> str:
    """The run whose worker was killed after some pages were paid for."""
    worker = started(site)
    until = time.monotonic() + LONGEST_S
    try:
        while site.billed() < PAGES // 3 and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        worker.kill()
        worker.wait()
    assert PAGES // 3 <= site.billed() < PAGES, "it was killed in the middle"
    (run,) = site.instance.get_runs(dg.RunsFilter(job_name=f"{site.assets.name}_due_work"))
    assert run.status is dg.DagsterRunStatus.STARTED, "nobody told Dagster"
    return run.run_id


def test_the_pages_of_a_killed_worker_are_taken_over_and_shown(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_repair, "LEAST_SILENCE_S", 1)  # the tests' database is just up
    site = make_site(
        rows_of(PAGES),
        lane={"patience_s": 20, "lease_s": 1, "publish_quiet_s": 0.2},
        generation=SLOW,
    )
    site.provider.set_settings(ProviderSettings(latency_median_s=0.3, idle_exit_s=600))
    site.materialize_topics()
    site.submit()
    run_id = killed_in_the_middle(site)

    # The dead run holds the one place of the due work until it is given up.
    assert isinstance(tick(site, "due_work_sensor"), dg.SkipReason)
    pass_time(site, 100)
    first = repair(site)
    pass_time(site, 20)
    second = repair(site, first.cursor)
    assert second.given_up == (run_id,)

    until = time.monotonic() + LONGEST_S
    while not isinstance(tick(site, "due_work_sensor"), dg.RunRequest):
        assert time.monotonic() < until, "what a dead worker held counts as due"
        time.sleep(0.1)
    assert site.run_job(f"{site.assets.name}_due_work").success
    repair(site, second.cursor)

    keys = [row["code"] for row in rows_of(PAGES)]
    assert {site.report(key).state for key in keys} == {PageJobState.PUBLISHED}
    for stage in Stage:
        assert set(site.statuses(stage, keys).values()) == {"MATERIALIZED"}
    assert site.billed() == PAGES, "nothing was paid twice, and no orphan went on paying"
    assert len({line.split("\t")[1] for line in site.writes()}) == len(site.writes()) == PAGES
