"""Ending a run in order when somebody terminates it.

What belongs here: the signal handlers of a run's work. Dagster would raise at any line of it; the
pages at work would then be finished, but nobody would hear of them.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import dagster as dg


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
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        if interruption.requested:
            # Not Dagster's own interrupt: a retry policy would start the step again after it.
            raise dg.Failure(description="The run was terminated twice.", allow_retries=False)
        interruption.requested = True
        interruption.stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
