"""Runs on several machines: a launcher that hands each run to the Celery workers.

What belongs here: the class that ``deploy/dagster.celery.yaml`` names, and how launcher and workers
talk to the broker. A run stays one process, wherever it is: the executor is the same as on one
machine. The worker itself is ``celery_worker``; needs the extra ``celery``.
"""

from typing import Any

import dagster as dg
from dagster_celery.launcher import CeleryRunLauncher

from content_pipeline.components.dagster_private import (
    CheckRunHealthResult,
    ConfigurableClassData,
    WorkerStatus,
)
from content_pipeline.config import broker_url

QUEUE = "dagster"
"""The only queue: dagster-celery's routes know no other by default."""

PING_WAIT_S = 3.0
PINGS = 3
"""A worker that answers none of three in a row is gone, or cannot be reached: nine seconds. One
that is merely slow then works beside the retry of its run, and the leases keep them apart."""

REDELIVERY_S = 60
"""A run that a worker took from the queue and did not begin is given to the next one. It must begin
within milliseconds; Celery's own default is an hour."""


def app_arguments(url: str) -> dict[str, Any]:
    """What launcher and workers must agree on, as ``celery.Celery`` takes it."""
    return {
        "broker": url,
        "backend": url,
        "task_default_queue": QUEUE,
        "config_source": {
            # Acknowledged when it begins: a broken-off run is started again by Dagster, which
            # knows whether it ended, and never by the broker, which does not.
            "task_acks_late": False,
            "worker_prefetch_multiplier": 1,
            "worker_disable_prefetch": True,
            "broker_transport_options": {"visibility_timeout": REDELIVERY_S},
            "broker_connection_retry_on_startup": True,
            # Each run in a process of its own, as on one machine.
            "worker_max_tasks_per_child": 1,
            # What a run prints is Dagster's: as warnings of Celery each line would stand twice.
            "worker_redirect_stdouts": False,
            "worker_hijack_root_logger": False,
        },
    }


class PipelineCeleryLauncher(CeleryRunLauncher):
    """Hands runs to workers, and notices when the machine of a run is gone.

    Celery calls a task "started" for as long as nobody says otherwise, so a run whose machine died
    would be ended by its time limit only, half an hour later.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing can be configured here: the broker comes from the environment."""
        return {}

    @classmethod
    def from_config_value(
        cls,
        inst_data: ConfigurableClassData,
        config_value: Any,  # noqa: ARG003
    ) -> "PipelineCeleryLauncher":
        """Raises ConfigurationError without a broker."""
        arguments = app_arguments(broker_url())
        queue = arguments.pop("task_default_queue")
        return cls(default_queue=queue, inst_data=inst_data, **arguments)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """How the run's task stands; failed as well when its worker does not answer."""
        stand = super().check_run_worker_health(run)
        if stand.status is not WorkerStatus.RUNNING:
            return stand
        worker = self._worker_of(run)
        if worker is None or self._answers(worker):
            return stand
        return CheckRunHealthResult(WorkerStatus.FAILED, f"Celery worker {worker} is gone.")

    def get_run_worker_debug_info(
        self,
        run: dg.DagsterRun,
        include_container_logs: bool | None = True,  # noqa: ARG002, FBT001, FBT002
    ) -> str | None:
        """Where the run was. The inherited text asks for an attribute that Celery has not."""
        worker = self._worker_of(run)
        return None if worker is None else f"It was with the Celery worker {worker}."

    def _worker_of(self, run: dg.DagsterRun) -> str | None:
        """The name of the worker that said it began the run."""
        task = self.celery.AsyncResult(run.tags["dagster-celery/task_id"])
        told = task.info
        return told.get("hostname") if isinstance(told, dict) else None

    def _answers(self, worker: str) -> bool:
        ping = self.celery.control.ping
        return any(ping(destination=[worker], timeout=PING_WAIT_S) for _ in range(PINGS))
