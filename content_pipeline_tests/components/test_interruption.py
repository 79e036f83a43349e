"""Ending a run in order: pages at work are finished, the others wait, nothing is lost."""

import os
import signal
import threading
from typing import Any

import dagster as dg
import pytest

from content_pipeline.components.interruption import interruptible
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline_tests.components.conftest import MakeSite, TownSite, fault, rows_of
from content_pipeline_tests.components.failures import reason_of

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_new_pages_and_the_second_the_run(number: int) -> None:
    with interruptible() as seen:
        assert not seen.stop.is_set()
        signal.raise_signal(number)
        assert seen.requested
        assert seen.stop.is_set()
        with pytest.raises(dg.Failure, match="terminated twice") as caught:
            signal.raise_signal(number)
    assert caught.value.allow_retries is False


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_thread_that_cannot_take_signals_works_all_the_same() -> None:
    seen: list[bool] = []

    def work() -> None:
        with interruptible() as interruption:
            seen.append(interruption.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def _interrupted_run(site: TownSite) -> dg.ExecuteInProcessResult:
    """A run that is sent SIGINT once the provider has the first page."""
    over = threading.Event()

    def interrupt() -> None:
        while not over.is_set():
            if site.provider.truth()["creates_by_attempt_id"]:
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        return site.materialize(*Stage, pages=("t01", "t12"))
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def slow(make_site: MakeSite) -> TownSite:
    generation: dict[str, Any] = {"provider": "sandbox", "model": "gpt-5-mini", "in_flight": 1}
    site = make_site(rows_of(12), generation=generation)
    site.materialize_topics()
    site.set_faults(fault(FaultKind.SLOW, "", seconds=0.2))
    return site


def test_a_stopped_run_publishes_what_was_at_work_and_the_next_one_does_the_rest(
    slow: TownSite,
) -> None:
    result = _interrupted_run(slow)
    assert not result.success
    keys = [f"t{number:02}" for number in range(1, 13)]
    published = [key for key in keys if slow.report(key).state is PageJobState.PUBLISHED]
    waiting = [key for key in keys if slow.report(key).state is PageJobState.QUEUED]
    assert published
    assert waiting
    assert len(published) + len(waiting) == 12
    assert reason_of(result) == f"the run was stopped; {len(waiting)} pages go on with the next one"
    assert [key for key in keys if slow.statuses(Stage.ARTIFACT, [key])[key] == "MATERIALIZED"] == (
        published
    )
    # Taken away and not cancelled by anybody: the daemon may start it again.
    run = slow.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags["dagster/retry_on_asset_or_op_failure"] == "true"

    slow.set_faults()
    assert slow.materialize(*Stage, pages=("t01", "t12")).success
    assert (slow.billed(), len(slow.writes())) == (12, 12)
