"""Kept answers: those that the provider hands out by id, and asking for them until they are there.

What belongs here: what a call whose answer is kept under an id allows beside waiting for a
connection: the id is committed before anything else, asking costs nothing, and a call that nobody
wants any more can be stopped. What becomes of one that did not end in time is ``recover``'s.
"""

import time

from content_pipeline.core.ports import RawResponse, Reading, Verdict
from content_pipeline.ledger import attempts, cancellations
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AnswerSource
from content_pipeline.operations.answers import is_unreadable
from content_pipeline.operations.runtime import SiteRuntime

FIRST_ASK_S = 0.2
"""Nothing real is complete sooner."""

SLOWER_EACH_TIME = 1.5
LONGEST_BETWEEN_S = 5.0
"""The wait between two questions grows with the age of the call: 64 calls at once ask a provider
13 times a second at most, and a page is at most 5 s later than its answer."""


def wait_for_answer(
    runtime: SiteRuntime, job: PageJob, attempt_id: str, reading: Reading, *, until: float
) -> Reading:
    """The saved answer of a call that ``reading`` only accepted; ``reading`` when it is one.

    ``until``: an instant of ``time.monotonic``. ``reading`` as well when there was none by then.
    """
    if reading.kept_as is None or not is_unreadable(reading):
        return reading
    with runtime.ledger.begin() as connection:
        attempts.accept(connection, attempt_id, reading.kept_as)
    runtime.on_checkpoint("call_accepted")
    raw = _ask(runtime, job, attempt_id, reading.kept_as, until)
    return reading if raw is None else runtime.model.read(raw)


def save_found(runtime: SiteRuntime, attempt_id: str, raw: RawResponse) -> None:
    """Commit an answer that was asked for, before anything parses it."""
    with runtime.ledger.begin() as connection:
        attempts.save_response(connection, attempt_id, raw, AnswerSource.LOOK_UP)
    runtime.on_checkpoint("answer_recovered")


def _ask(
    runtime: SiteRuntime, job: PageJob, attempt_id: str, kept_as: str, until: float
) -> RawResponse | None:
    """The saved answer, or None when there was none by ``until``.

    A question that fails is asked again: nothing is paid for it, and nothing is known from it.
    """
    wait_s, is_stopped = FIRST_ASK_S, False
    while (left_s := until - time.monotonic()) > 0:
        time.sleep(min(wait_s, left_s))
        found = runtime.model.look_up(attempt_id, kept_as)
        if found.verdict is Verdict.PRESENT and found.raw is not None:
            save_found(runtime, attempt_id, found.raw)
            return found.raw
        if not is_stopped and _is_unwanted(runtime, job):
            runtime.model.cancel(kept_as)
            is_stopped = True
        announced_s = found.failure.retry_after_s if found.failure else None
        wait_s = max(min(wait_s * SLOWER_EACH_TIME, LONGEST_BETWEEN_S), announced_s or 0.0)
    return None


def _is_unwanted(runtime: SiteRuntime, job: PageJob) -> bool:
    with runtime.ledger.begin() as connection:
        return cancellations.is_requested(connection, job.page_job_id)
