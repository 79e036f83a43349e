"""A step in a process of its own, beside the run's worker: told of in the log, and ended with it.

What belongs here: what an executor other than the in-process one means to a run that pays. A team's
project has Dagster's multiprocess one unless it says otherwise, and an asset cannot choose; jobs
can, and all of a site's own run in process.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from content_pipeline.components.interruption import Interruption
from content_pipeline.operations.repeating import repeated

WATCH_S = 0.5
"""How often a step looks whether the worker of its run still lives."""

ORPHANED = 1
"""Exit status of a step that outlived its run; the ledger has all that it did."""

_IN_PROCESS = frozenset({"in_process", "execute_in_process_executor"})
_IN_CHILD = "multiprocess"
_EITHER = "multi_or_in_process_executor"
"""Dagster's default: the run's configuration chooses, and says multiprocess unless told."""


def executor_of(job: dg.JobDefinition, run_config: Mapping[str, Any]) -> str | None:
    """The executor that gives steps a process of their own; None: the run's worker does it all."""
    name: str = job.executor_def.name
    if name == _EITHER:
        chosen = run_config.get("execution", {}).get("config", {})
        return None if "in_process" in chosen else _IN_CHILD
    return None if name in _IN_PROCESS else name


@contextmanager
def ending_with_worker(
    context: dg.AssetExecutionContext, interruption: Interruption
) -> Iterator[None]:
    """Begin no new page once the run's worker is dead: a killed run must not go on paying.

    Dagster tells a step of its own nothing of that. Pages at work are finished, they are paid for;
    then the process ends, for nobody waits for it any more.
    """
    executor = executor_of(context.job_def, context.run.run_config)
    if executor is None:
        yield
        return
    context.log.warning(
        f"the executor {executor!r} gave this step a process of its own. A run that is killed "
        f"leaves it behind: {_until(executor)}. Set "
        "`executor=dg.in_process_executor` in the Definitions of this code location, or choose "
        "`execution: {config: {in_process: {}}}` for the run; runs then start faster, too. See "
        "docs/own-project.md"
    )
    worker = multiprocessing.parent_process()
    if executor != _IN_CHILD or worker is None:
        yield
        return

    def watch() -> None:
        if not worker.is_alive():
            interruption.stop.set()

    try:
        with repeated(watch, every_s=WATCH_S, name="watch of the run's worker"):
            yield
    finally:
        if not worker.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            # Not by returning: Dagster's queue to the dead worker is full, and a process that ends
            # in order waits for ever until somebody has read it.
            os._exit(ORPHANED)


def _until(executor: str) -> str:
    if executor == _IN_CHILD:
        return f"it begins no page after {WATCH_S:g} s, but finishes, and pays for, those at work"
    return "it goes on paying until the repair sensor finds the run dead, about a minute"
