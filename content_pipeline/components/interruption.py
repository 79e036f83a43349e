"""Ending a run in order when somebody terminates it.

What belongs here: how a run's work hears of it: by a signal, for which Dagster would raise at any
line (the pages at work would then be finished, but nobody would hear of them), and by the status of
the run, for the signal comes from its code server and from nobody once that is gone.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import dagster as dg

from content_pipeline.components.event_log import RunContext
from content_pipeline.operations.repeating import repeated

LOOK_INTERVAL_S = 5.0
"""Between two looks at the status: as often as the sign of life is shown."""


@dataclass(slots=True)
class Interruption:
    """Whether a run was asked to end."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Set: begin no new page. A lane that is done with its site sets it as well."""
    requested: bool = False
    """Somebody terminated the run."""


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Let a termination stop the lane after the pages at work; a second one ends the run at once.

    Only the main thread can take signals; elsewhere nothing is ever requested.
    """
    interruption = Interruption()
    signalled = False
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal signalled
        if signalled:
            # Not Dagster's own interrupt: a retry policy would start the step again after it.
            raise dg.Failure(description="The run was terminated twice.", allow_retries=False)
        signalled = True
        interruption.requested = True
        interruption.stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def heeding_its_status(context: RunContext, interruption: Interruption) -> Iterator[None]:
    """Begin no page any more once the run is being ended, or has ended, for Dagster.

    A person who terminated a run after its code server had died was not heard: all its pages were
    paid for all the same.
    """

    def look() -> None:
        if status_of(context) not in AT_WORK:
            interruption.requested = True
            interruption.stop.set()

    with repeated(look, every_s=LOOK_INTERVAL_S, name="look at the run's status"):
        yield


AT_WORK = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED)


def status_of(context: RunContext) -> dg.DagsterRunStatus:
    """What the run is for Dagster now; one that somebody deleted counts as cancelled."""
    run = context.instance.get_run_by_id(context.run.run_id)
    return dg.DagsterRunStatus.CANCELED if run is None else run.status
