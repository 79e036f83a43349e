"""A wait that a service announces to one page holds for all pages of all workers, at once."""

import threading
import time
from collections import deque

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationLookUp, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import call_limits, jobs, routes
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Claim
from content_pipeline.operations.generate import generate, reserve
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.stalled import stalled_claim
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedModel, call_raises, failed

S = PageJobState
WAIT_S = 30
PATIENCE_S = 10
"""For another thread to get as far as it can."""


def ready_to_call(bench: Bench, topic: str) -> tuple[SiteRuntime, Claim, PageJob]:
    """A worker of its own that has claimed a page and reserved its money."""
    runtime = bench.worker()
    claim = bench.claim(runtime, topic, lease_s=120)  # another worker stands still meanwhile
    with bench.ledger.begin() as connection:
        job = jobs.load(connection, claim.page_job_id)
    return runtime, claim, reserve(runtime, job, claim.lease)


def pause_s(bench: Bench) -> float:
    with bench.ledger.begin() as connection:
        return routes.wait_s(connection, bench.worker().model_route)


def wait_for_pause(bench: Bench) -> float:
    deadline = time.monotonic() + PATIENCE_S
    while not (seconds := pause_s(bench)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return seconds


def test_nobody_calls_after_an_announcement_while_another_worker_stands_still_in_its_claim(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(towns=2)
    bench.strike("status", status=429, code="rate_limit_exceeded", retry_after_s=WAIT_S)
    bench.submit()
    told, not_told = ready_to_call(bench, "t0"), ready_to_call(bench, "t1")
    with bench.ledger.begin() as connection:
        call_limits.capacity(connection, told[0].model_route, most_calls=8)
    with stalled_claim(bench.ledger, told[0].model_route, 8) as process:
        told_worker = threading.Thread(target=lambda: generate(told[0], told[2], told[1].lease))
        told_worker.start()
        assert wait_for_pause(bench) > 0
        runtime, claim, job = not_told
        assert generate(runtime, job, claim.lease).state is S.QUEUED
        assert bench.calls() == 1
        process.kill()
        told_worker.join()
    assert bench.states() == {"t0": "failed_retryable", "t1": "queued"}
    assert bench.calls() == 1


def test_a_page_claimed_before_an_announcement_does_not_ask_about_its_call(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(towns=2)
    bench.strike("drop_after")
    bench.submit()
    assert bench.step("t0").state is S.GENERATION_UNCERTAIN
    bench.strike("status", status=429, code="rate_limit_exceeded", retry_after_s=WAIT_S)
    assert bench.step("t1").state is S.FAILED_RETRYABLE
    assert bench.step("t0").state is S.GENERATION_UNCERTAIN
    assert bench.sandbox.truth()["requests_by_operation"] == {"create": 2}
    assert not bench.is_due("t0")


def test_a_wait_announced_to_a_question_holds_for_calls_as_well(make_bench: MakeBench) -> None:
    wait = Failure(failure_class=FailureClass.THROTTLED, message="slow down", retry_after_s=WAIT_S)
    model = ScriptedModel(
        look_up_by_attempt=True,
        on_send=deque([call_raises(failed(FailureClass.UNCERTAIN))]),
        on_look=deque([GenerationLookUp(verdict=Verdict.UNKNOWN, failure=wait)]),
    )
    bench = make_bench(towns=2, model=model)
    bench.submit()
    assert bench.step("t0").state is S.GENERATION_UNCERTAIN
    assert pause_s(bench) == 0
    assert bench.step("t0").state is S.GENERATION_UNCERTAIN
    assert pause_s(bench) > WAIT_S - 10
    assert bench.step("t1").state is S.QUEUED
    assert len(model.sent) == 1
