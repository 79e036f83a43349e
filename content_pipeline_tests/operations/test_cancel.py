"""Cancelling: at once where nobody works, else at the worker's next safe point; never half."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from content_pipeline.core.errors import CallFailed, UnknownPage
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationRequest, RawResponse
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.operations.cancel import Cancellation, CancelOutcome, cancel
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedModel,
    article_answer,
    call_raises,
    loses_the_answer,
)

S = PageJobState
PAGES = 60


def scripted(
    make_bench: MakeBench, towns: int = 1, **more: Any
) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model, cms = ScriptedModel(), ScriptedCMS()
    bench = make_bench(towns, model=model, cms=cms, **more)
    bench.submit()
    return bench, model, cms


def give_up(bench: Bench, topic: str = "t0") -> Cancellation:
    return cancel(bench.ledger, bench.name, topic, reason="not wanted", by="ann")


def test_a_page_that_nobody_works_on_is_cancelled_at_once(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    came = give_up(bench)
    assert came.outcome is CancelOutcome.CANCELLED
    assert came.message == "t0 is cancelled and will not be published"
    assert bench.states() == {"t0": "cancelled"}
    assert bench.reasons()[-1].endswith("asked for by ann: not wanted")
    bench.run()
    assert (model.sent, bench.spend()) == ([], [])


def test_a_paid_draft_is_kept(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench)
    bench.run(Stage.DRAFT)
    came = give_up(bench)
    assert came.message == "t0 is cancelled and will not be published; its paid draft is kept"
    bench.run()
    assert (len(model.sent), cms.looks, bench.spend()) == (1, 0, ["settled"])


def test_what_is_live_stays_live(make_bench: MakeBench) -> None:
    bench, _, cms = scripted(make_bench)
    bench.run()
    bench.rows[0]["river"] = "Inn"
    bench.submit()
    came = give_up(bench)
    assert came.message.endswith("the page that is live stays as it is")
    bench.run()
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_page_that_waits_for_hours_is_cancelled_now(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    throttled = Failure(failure_class=FailureClass.THROTTLED, message="429", retry_after_s=7200)
    model.on_send.append(call_raises(CallFailed(throttled)))
    assert bench.step().state is S.FAILED_RETRYABLE
    assert give_up(bench).outcome is CancelOutcome.CANCELLED
    assert len(model.sent) == 1


def test_money_set_aside_for_a_call_that_was_not_made_is_free_again(
    make_bench: MakeBench,
) -> None:
    bench, _, _ = scripted(make_bench)
    bench.step(until=S.RESERVED)
    assert bench.spend() == ["reserved"]
    assert give_up(bench).outcome is CancelOutcome.CANCELLED
    assert bench.spend() == ["released"]


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("published", CancelOutcome.NOTHING_TO_CANCEL),
        ("cancelled", CancelOutcome.CANCELLED),
        ("publish_uncertain", CancelOutcome.TOO_LATE),
    ],
)
def test_what_has_ended_or_begun_to_be_published_is_left_alone(
    state: str, outcome: CancelOutcome, make_bench: MakeBench
) -> None:
    bench, _, cms = scripted(make_bench)
    if state == "cancelled":
        give_up(bench)
    if state == "publish_uncertain":
        cms.on_write.append(loses_the_answer)
    if state != "cancelled":
        bench.step()
    history = bench.history()
    assert history[-1] == state
    assert give_up(bench).outcome is outcome
    assert bench.history() == history


def test_a_page_that_does_not_exist_is_named(make_bench: MakeBench) -> None:
    bench, _, _ = scripted(make_bench)
    with pytest.raises(UnknownPage, match="no page 'nobody'"):
        give_up(bench, "nobody")


def test_a_row_that_can_be_no_page_has_nothing_to_cancel(make_bench: MakeBench) -> None:
    bench, _, _ = scripted(make_bench)
    bench.rows[0]["population"] = ""
    bench.submit()
    came = give_up(bench)
    assert came.outcome is CancelOutcome.NOTHING_TO_CANCEL
    assert "failed_terminal" in came.message


# --- while a worker has the page ----------------------------------------------------------------


def test_an_answer_that_comes_after_the_wish_is_recorded_and_billed_and_not_published(
    make_bench: MakeBench,
) -> None:
    bench, model, cms = scripted(make_bench)
    came: list[Cancellation] = []

    def answer(request: GenerationRequest) -> RawResponse:
        came.append(give_up(bench))
        return article_answer(request)

    model.on_send.append(answer)
    bench.run()
    assert came[0].outcome is CancelOutcome.REQUESTED
    assert "does not stop the provider" in came[0].message
    assert "may still complete and be billed" in came[0].message
    assert bench.states() == {"t0": "cancelled"}
    assert bench.report().revision == 1
    assert bench.spend() == ["settled"]
    assert (cms.looks, cms.writes) == (0, [])
    assert [state for _, state, _ in bench.attempts()] == ["succeeded"]


@pytest.mark.parametrize(
    "failure_class", [FailureClass.POLICY, FailureClass.TRANSIENT, FailureClass.REQUEST]
)
def test_a_call_that_fails_after_the_wish_leaves_nobody_anything_to_repair(
    failure_class: FailureClass, make_bench: MakeBench
) -> None:
    bench, model, _ = scripted(make_bench)

    def fail(_request: GenerationRequest) -> RawResponse:
        give_up(bench)
        raise CallFailed(Failure(failure_class=failure_class, message="as scripted"))

    model.on_send.append(fail)
    bench.run()
    assert bench.states() == {"t0": "cancelled"}
    assert len(model.sent) == 1


def test_a_lost_call_is_settled_first_and_then_the_page_is_cancelled(
    make_bench: MakeBench,
) -> None:
    soon = {"deadline_s": 0.1, "answer_slack_s": 0.01}
    bench, model, _ = scripted(make_bench, generation=soon)
    lost = Failure(failure_class=FailureClass.UNCERTAIN, message="the connection broke")
    model.on_send.append(call_raises(CallFailed(lost)))
    assert bench.step().state is S.GENERATION_UNCERTAIN
    came = give_up(bench)
    assert came.outcome is CancelOutcome.REQUESTED
    assert "generation_uncertain" in came.message
    bench.run()
    assert bench.states() == {"t0": "cancelled"}
    assert bench.spend() == ["uncertain"]  # it may have been billed, and nobody can be asked
    assert len(model.sent) == 1


@pytest.mark.parametrize(
    ("checkpoint", "published"),
    [
        ("call_intended", False),
        ("draft_stored", False),
        ("draft_validated", False),
        ("publish_intended", True),
        ("page_written", True),
    ],
)
def test_the_same_walk_ends_the_page_at_its_next_safe_point(
    checkpoint: str, published: bool, make_bench: MakeBench
) -> None:
    bench, _, cms = scripted(make_bench)
    came: list[CancelOutcome] = []

    def ask(passed: str) -> None:
        if passed == checkpoint:
            came.append(give_up(bench).outcome)

    bench.on_checkpoint = ask
    job = bench.step()
    assert job.state is (S.PUBLISHED if published else S.CANCELLED)
    assert came == [CancelOutcome.TOO_LATE if published else CancelOutcome.REQUESTED]
    assert len(cms.writes) == published


def test_a_worker_that_died_with_the_page_does_not_keep_it(make_bench: MakeBench) -> None:
    bench, _, _ = scripted(make_bench)
    runtime = bench.worker()
    bench.claim(runtime)
    assert give_up(bench).outcome is CancelOutcome.REQUESTED
    bench.let_leases_run_out()
    assert give_up(bench).outcome is CancelOutcome.CANCELLED


def test_lanes_and_people_who_cancel_never_leave_a_page_both_published_and_cancelled(
    make_bench: MakeBench,
) -> None:
    bench, model, cms = scripted(make_bench, PAGES, lane={"lease_s": 30})
    came: dict[str, CancelOutcome] = {}
    begun = threading.Event()

    def first(request: GenerationRequest) -> RawResponse:
        begun.set()
        return article_answer(request)

    model.on_send.append(first)

    def people() -> None:
        begun.wait(30)
        for number in range(PAGES):
            came[f"t{number}"] = give_up(bench, f"t{number}").outcome

    with ThreadPoolExecutor(3) as pool:
        lanes = [pool.submit(bench.run) for _ in range(2)]
        pool.submit(people).result()
        for lane in lanes:
            lane.result()
    bench.run()
    states = bench.states()
    assert set(states.values()) == {"published", "cancelled"}
    live = {path for path, _ in cms.writes}
    assert len(cms.writes) == len(live)
    for number, row in enumerate(bench.rows):
        topic, path = f"t{number}", f"/{row['name'].lower().replace(' ', '-')}/"
        assert (path in live) is (states[topic] == "published"), topic
        accepted = came[topic] in (CancelOutcome.CANCELLED, CancelOutcome.REQUESTED)
        assert accepted is (states[topic] == "cancelled"), topic
