"""The gate before paid calls: it closes when the provider's account or credentials fail.

What belongs here: holding one of the process's call slots, and refusing it once a call has shown
that every further one would fail alike.
"""

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from content_pipeline.core.errors import CallFailed, ContentPipelineError
from content_pipeline.core.retries import HALTS_SITE


class CallsHalted(ContentPipelineError):
    """An earlier call failed in a way that ends all: this one is not made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGate:
    """``slots`` with a door. Whoever waited for a slot finds the door closed before calling."""

    slots: AbstractContextManager[object]
    closed: threading.Event

    def __enter__(self) -> None:
        """Take a slot. Raises CallsHalted when the gate is closed."""
        self.slots.__enter__()
        if self.closed.is_set():
            self.slots.__exit__(None, None, None)
            raise CallsHalted("no call is made: the provider's account or credentials fail")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the slot back; a call that failed for all closes the gate first."""
        if isinstance(error, CallFailed) and error.failure.failure_class in HALTS_SITE:
            self.closed.set()
        self.slots.__exit__(kind, error, trace)
