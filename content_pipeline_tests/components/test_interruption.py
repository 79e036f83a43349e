"""Ending a run in order: pages at work are finished, the others wait, nothing is lost."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from content_pipeline.components import interruption
from content_pipeline.components.interruption import interruptible
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline_tests.components.conftest import MakeSite, TownSite, fault, rows_of
from content_pipeline_tests.components.failures import reason_of

SIGNALS = (signal.SIGINT, signal.SIGTERM)

ONE_BY_ONE: dict[str, Any] = {"provider": "sandbox", "model": "gpt-5-mini", "in_flight": 1}


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
        with interruptible() as asked:
            seen.append(asked.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def _signal_itself(_site: TownSite) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _interrupted_run(
    site: TownSite, interrupt: Callable[[TownSite], None] = _signal_itself
) -> dg.ExecuteInProcessResult:
    """A run that is interrupted once the provider has the first page."""
    over = threading.Event()
    before = len(site.provider.truth()["creates_by_attempt_id"])

    def watch() -> None:
        while not over.is_set():
            if len(site.provider.truth()["creates_by_attempt_id"]) > before:
                interrupt(site)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        return site.materialize(*Stage, pages=("t01", "t12"))
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def slow(make_site: MakeSite) -> TownSite:
    site = make_site(rows_of(12), generation=ONE_BY_ONE)
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


def _reported(how: str) -> Callable[[TownSite], None]:
    """What Dagster writes down of a run whose worker it cannot, or need not, reach."""

    def report(site: TownSite) -> None:
        (run,) = site.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        getattr(site.instance, how)(run)

    return report


@pytest.mark.parametrize(
    ("how", "ends"),
    [
        ("report_run_canceling", dg.DagsterRunStatus.CANCELED),  # terminated, nobody signals it
        ("report_run_canceled", dg.DagsterRunStatus.CANCELED),  # terminated by force
        ("report_run_failed", dg.DagsterRunStatus.FAILURE),  # its time limit, or given up for dead
    ],
)
def test_a_run_that_is_over_for_dagster_begins_no_page_and_is_not_started_again(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, how: str, ends: dg.DagsterRunStatus
) -> None:
    monkeypatch.setattr(interruption, "LOOK_INTERVAL_S", 0.05)
    site = make_site(rows_of(12), generation=ONE_BY_ONE)
    site.materialize_topics()
    site.set_faults(fault(FaultKind.SLOW, "", seconds=0.2))
    result = _interrupted_run(site, _reported(how))
    assert not result.success
    assert 1 <= site.billed() == len(site.writes()) < 12
    run = site.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.status is ends
    assert "dagster/retry_on_asset_or_op_failure" not in run.tags

    site.set_faults()
    assert site.materialize(*Stage, pages=("t01", "t12")).success
    assert (site.billed(), len(site.writes())) == (12, 12)


def test_a_status_that_cannot_be_read_stops_nothing(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interruption, "LOOK_INTERVAL_S", 0.01)
    site = make_site(rows_of(1))

    def fail(_context: object) -> dg.DagsterRunStatus:
        raise OperationalError("SELECT", {}, Exception("the server is away"))

    monkeypatch.setattr(interruption, "status_of", fail)
    site.set_faults(fault(FaultKind.SLOW, "", seconds=0.2))
    site.materialize_topics()
    assert site.materialize(*Stage, pages="t01").success
    assert "look at the run's status: not done this time: OperationalError" in caplog.text
