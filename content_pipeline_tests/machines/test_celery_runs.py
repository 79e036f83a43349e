"""How launcher and workers find each other, and what is thought of a run's machine."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from content_pipeline.components.celery_runs import (
    QUEUE,
    REDELIVERY_S,
    PipelineCeleryLauncher,
)
from content_pipeline.components.celery_worker import worker_app
from content_pipeline.components.dagster_private import ConfigurableClassData, WorkerStatus
from content_pipeline.config import BROKER_VARIABLE
from content_pipeline.core.errors import ConfigurationError
from content_pipeline_tests.machines.fleet import HOST, Fleet, free_port, wait_until
from content_pipeline_tests.machines.presence import redis_program

# Celery speaks to redis-py as one did before 2.6.12; only here do applications share a process.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Task name:celery.exceptions.DuplicateTaskNameWarning"),
]

DATA = ConfigurableClassData(
    "content_pipeline.components.celery_runs", "PipelineCeleryLauncher", "{}\n"
)


@pytest.fixture
def url(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Redis that answers."""
    program, port = redis_program(), free_port()
    found = f"redis://{HOST}:{port}/0"
    monkeypatch.setenv(BROKER_VARIABLE, found)
    with Fleet(folder=tmp_path, variables={}) as fleet:
        fleet.start("redis", [program, "--port", str(port), "--bind", HOST, "--save", ""])
        wait_until(lambda: "Ready to accept" in fleet.log("redis").read_text(), fleet)
        yield found


@pytest.fixture
def launcher(url: str) -> PipelineCeleryLauncher:
    return PipelineCeleryLauncher.from_config_value(DATA, {})


def run_of(task: str) -> dg.DagsterRun:
    return dg.DagsterRun(job_name="pages", tags={"dagster-celery/task_id": task})


@pytest.mark.parametrize(
    ("state", "told", "status"),
    [
        ("SUCCESS", 0, WorkerStatus.SUCCESS),
        ("STARTED", {"pid": 7, "hostname": "machine@nowhere"}, WorkerStatus.FAILED),
        ("STARTED", None, WorkerStatus.RUNNING),
        ("PENDING", None, WorkerStatus.UNKNOWN),
    ],
    ids=["done", "its machine does not answer", "nobody said where", "nothing is known"],
)
def test_a_run_stands_as_its_task_and_its_machine_do(
    launcher: PipelineCeleryLauncher, state: str, told: object, status: WorkerStatus
) -> None:
    if state != "PENDING":
        launcher.celery.backend.store_result("task", told, state)
    assert launcher.check_run_worker_health(run_of("task")).status is status


def test_what_is_gone_is_named(launcher: PipelineCeleryLauncher) -> None:
    launcher.celery.backend.store_result("task", {"hostname": "m@nowhere"}, "STARTED")
    assert "m@nowhere" in str(launcher.check_run_worker_health(run_of("task")).msg)
    assert "m@nowhere" in str(launcher.get_run_worker_debug_info(run_of("task")))
    assert launcher.get_run_worker_debug_info(run_of("another")) is None


def test_launcher_and_worker_agree(launcher: PipelineCeleryLauncher, url: str) -> None:
    worker = worker_app(url)
    ours = launcher.celery
    assert worker.conf.broker_url == ours.conf.broker_url == url
    assert worker.conf.result_backend == ours.conf.result_backend == url
    assert launcher.default_queue == worker.conf.task_default_queue == QUEUE
    for app in (worker, ours):
        assert app.conf.broker_transport_options == {"visibility_timeout": REDELIVERY_S}


def test_a_worker_knows_the_tasks_of_runs_and_no_other_of_dagster() -> None:
    names = {name for name in worker_app("redis://nowhere").tasks if not name.startswith("celery.")}
    assert names == {"execute_job", "resume_job"}


def test_a_worker_takes_no_run_that_it_cannot_begin() -> None:
    """With Celery's defaults a machine that dies takes the next run with it, for an hour."""
    settings = worker_app("redis://nowhere").conf
    assert settings.worker_disable_prefetch
    assert not settings.task_acks_late
    assert settings.worker_max_tasks_per_child == 1


@pytest.mark.parametrize("value", [None, " ", "amqp://guest@rabbit//", "localhost:6379"])
def test_without_a_redis_the_launcher_says_what_to_set(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BROKER_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(BROKER_VARIABLE, value)
    with pytest.raises(ConfigurationError, match=BROKER_VARIABLE) as caught:
        PipelineCeleryLauncher.from_config_value(DATA, {})
    assert "guest" not in str(caught.value)


def test_what_is_read_of_dagsters_launcher_is_there(launcher: PipelineCeleryLauncher) -> None:
    from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

    assert set(run_of("task").tags) == {DAGSTER_CELERY_TASK_ID_TAG}
    assert launcher.supports_check_run_worker_health
    assert PipelineCeleryLauncher.config_type() == {}
