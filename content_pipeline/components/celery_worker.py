"""A worker that carries out runs on its machine, as ``python -m`` of this module.

What belongs here: the worker's process. What it does with a run is Dagster's; how launcher and
workers talk is ``celery_runs``.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from billiard import active_children
from celery import Celery
from celery.signals import worker_shutting_down
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from content_pipeline.components.celery_runs import QUEUE, app_arguments
from content_pipeline.config import broker_url


def worker_app(url: str) -> Celery:
    """The Celery application of a worker: it can carry out runs, and nothing else."""
    app: Celery = make_app(app_arguments(url))  # type: ignore[no-untyped-call]
    create_execute_job_task(app)
    create_resume_job_task(app)
    return app


def _hand_over(**_told: Any) -> None:
    """Let the runs at work end after their pages at work, and leave the rest to other workers.

    Celery would wait for whole runs, half an hour; whoever drains a machine does not.
    """
    for child in active_children():
        os.kill(child.pid, signal.SIGTERM)


def main(arguments: Sequence[str]) -> None:
    """Work until told to end. ``arguments`` go to ``celery worker``, e.g. ``--concurrency 4``."""
    worker_shutting_down.connect(_hand_over, weak=False)
    worker_app(broker_url()).worker_main(
        ["worker", "--loglevel", "INFO", "--queues", QUEUE, *arguments]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
