"""Dagster is set the same everywhere: one machine, Celery's workers, Kubernetes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from content_pipeline.components.celery_runs import PipelineCeleryLauncher
from content_pipeline_tests.components.services import WAITS_FOR_CODE
from content_pipeline_tests.deploy.chart import instance_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


ONE_MACHINE = read(ROOT / "dagster.yaml")
CELERY = read(DEPLOY / "dagster.celery.yaml")
HELM = read(DEPLOY / "helm-values.yaml")


def test_with_celery_the_instance_differs_in_who_runs_and_how_long_a_start_may_take() -> None:
    launcher = CELERY.pop("run_launcher")
    assert CELERY["run_monitoring"].pop("start_timeout_seconds") > 180, "runs wait in the broker"
    assert ONE_MACHINE == CELERY
    assert launcher == {
        "module": PipelineCeleryLauncher.__module__,
        "class": PipelineCeleryLauncher.__name__,
        "config": {},
    }


@pytest.mark.parametrize("section", ["concurrency", "run_retries", "run_monitoring"])
def test_on_kubernetes_the_instance_has_the_same_limits_and_retries(section: str) -> None:
    there = instance_of(HELM)[section]
    if section == "run_monitoring":
        assert there.pop("start_timeout_seconds") > 180, "a node may have to be found first"
        assert there.pop("max_resume_run_attempts") == 0, "a run is started again, never resumed"
    assert there == ONE_MACHINE[section]


def test_on_kubernetes_runs_wait_in_dagsters_queue() -> None:
    """Without it, the chart names a coordinator that starts every run at once, limits or not."""
    assert instance_of(HELM)["run_coordinator"]["class"] == "QueuedRunCoordinator"
    alone = {
        **HELM,
        "dagsterDaemon": {**HELM["dagsterDaemon"], "runCoordinator": {"enabled": False}},
    }
    assert instance_of(alone)["run_coordinator"]["class"] == "SyncInMemoryRunCoordinator"


def test_telemetry_is_off_everywhere() -> None:
    for instance in (ONE_MACHINE, CELERY, HELM):
        assert instance["telemetry"] == {"enabled": False}


def test_a_backfill_waits_for_its_code_server_wherever_the_daemon_is_started() -> None:
    """By default one that looks for its assets while their code server is down ends as failed."""
    assert WAITS_FOR_CODE == {"DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR": "1"}
    for line in (f"{name}={value}" for name, value in WAITS_FOR_CODE.items()):
        assert line in (ROOT / ".env").read_text().splitlines()
        assert line in (DEPLOY / "Dockerfile").read_text()
        assert line in (ROOT / "docs" / "own-project.md").read_text()
