"""What becomes of paid calls reaches the account's row with the next claim, and at the end."""

import threading
from collections import deque

import pytest
from sqlalchemy import delete

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.throttling import START, CallLimit, Outcome
from content_pipeline.ledger import call_limits
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import call_limits as limits
from content_pipeline.operations.call_tally import CallTally
from content_pipeline.operations.lane import advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedModel, call_raises, failed


def make_call(tally: CallTally, failure_class: FailureClass | None = None) -> None:
    with tally.call():
        if failure_class is not None:
            raise failed(failure_class)


def test_a_call_is_noted_with_what_was_out_when_it_began() -> None:
    tally = CallTally()
    tally.count(7)
    with tally.call():
        tally.count(9)
    make_call(tally)
    assert tally.outcomes() == (Outcome(out=7, rejected=False), Outcome(out=9, rejected=False))


def test_a_call_that_nobody_counted_was_out_alone() -> None:
    tally = CallTally()
    make_call(tally)
    tally.count(0)
    make_call(tally)
    assert tally.outcomes() == (Outcome(out=1, rejected=False),) * 2


@pytest.mark.parametrize("failure_class", FailureClass)
def test_a_failure_is_a_rejection_or_proves_nothing(failure_class: FailureClass) -> None:
    tally = CallTally()
    with pytest.raises(CallFailed):
        make_call(tally, failure_class)
    expected = (Outcome(out=1, rejected=True),)
    assert tally.outcomes() == (expected if failure_class is FailureClass.THROTTLED else ())


def test_what_comes_between_a_look_and_its_commit_is_kept() -> None:
    tally = CallTally()
    make_call(tally)
    taken = tally.outcomes()
    tally.count(5)
    make_call(tally)
    tally.hand_over(taken)
    assert tally.outcomes() == (Outcome(out=5, rejected=False),)


def test_no_outcome_is_lost_between_threads() -> None:
    tally, handed_over = CallTally(), 0

    def work() -> None:
        for _ in range(500):
            make_call(tally)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or tally.outcomes():
        taken = tally.outcomes()
        tally.hand_over(taken)
        handed_over += len(taken)
    assert handed_over == 2000


# --- in a lane -----------------------------------------------------------------------------------


def known(bench: Bench) -> CallLimit:
    with bench.ledger.begin() as connection:
        found = call_limits.read(connection, bench.worker().model_route)
    assert found is not None
    return found


def forget(bench: Bench) -> None:
    """The account is the one of all tests here."""
    with bench.ledger.begin() as connection:
        connection.execute(delete(limits))


def test_when_a_lane_ends_all_its_calls_are_known(make_bench: MakeBench) -> None:
    bench = make_bench(towns=12)
    forget(bench)
    bench.submit_and_run()
    assert sum(known(bench).calls) == pytest.approx(12, abs=0.2)
    assert sum(known(bench).rejections) == 0
    assert known(bench).limit > START


def test_calls_that_are_rejected_are_known_too(make_bench: MakeBench) -> None:
    throttled = [call_raises(failed(FailureClass.THROTTLED)) for _ in range(2)]
    bench = make_bench(towns=5, model=ScriptedModel(on_send=deque(throttled)))
    forget(bench)
    bench.submit()
    runtime = bench.worker()
    stop = threading.Event()
    for settled in advance(runtime, Selection(site=bench.name), stop=stop):
        if settled.state is PageJobState.FAILED_RETRYABLE:
            stop.set()
    assert sum(known(bench).rejections) == pytest.approx(2, abs=0.1)
    assert runtime.calls.outcomes() == ()
