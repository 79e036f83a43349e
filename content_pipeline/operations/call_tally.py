"""The tally of a worker's calls: what became of them, until a claim takes it to the ledger.

What belongs here: counts in memory, shared by the threads of one worker. A claim writes the row of
the account anyway, so a call that succeeds costs no statement of its own. What a worker that dies
has not handed over is lost, which is a few calls of a thousand that are remembered.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.throttling import Outcome


class CallTally:
    """How many calls are out on the account as last counted, and the outcomes since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out = 1
        self._outcomes: list[Outcome] = []

    def count(self, out: int) -> None:
        """So many calls are out now, those that are about to begin included."""
        with self._lock:
            self._out = max(1, out)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call: it was answered, rejected (``THROTTLED``), or proves nothing."""
        with self._lock:
            out = self._out
        try:
            yield
        except CallFailed as failed:
            if failed.failure.failure_class is FailureClass.THROTTLED:
                self._note(Outcome(out=out, rejected=True))
            raise
        self._note(Outcome(out=out, rejected=False))

    def _note(self, outcome: Outcome) -> None:
        with self._lock:
            self._outcomes.append(outcome)

    def outcomes(self) -> tuple[Outcome, ...]:
        """What is to be handed over, oldest first."""
        with self._lock:
            return tuple(self._outcomes)

    def hand_over(self, outcomes: tuple[Outcome, ...]) -> None:
        """Forget ``outcomes``, which are committed: the oldest ones."""
        with self._lock:
            del self._outcomes[: len(outcomes)]
