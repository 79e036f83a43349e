"""Walking one page: every workable state has its step, and stop rules come before each of them."""

import pytest

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.retries import CLOSES_CIRCUIT
from content_pipeline.core.states import MOVES, WORKABLE, PageJobState, Stage
from content_pipeline.ledger import routes
from content_pipeline.operations.repair import retry
from content_pipeline.operations.steps import STEPS, walk
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedModel,
    call_raises,
    failed,
)

S = PageJobState

CHECKPOINTS = (
    "call_intended",
    "call_answered",
    "answer_saved",
    "draft_stored",
    "draft_validated",
    "publish_intended",
    "page_written",
    "page_proved",
)
"""Of a page without trouble, in order."""


def scripted(make_bench: MakeBench, **more: object) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model, cms = ScriptedModel(), ScriptedCMS()
    bench = make_bench(**{"model": model, "cms": cms, **more})
    bench.submit()
    return bench, model, cms


def test_every_workable_state_has_a_step() -> None:
    assert set(STEPS) == WORKABLE


def test_a_page_passes_its_checkpoints_in_order(make_bench: MakeBench) -> None:
    bench, _, _ = scripted(make_bench)
    passed: list[str] = []
    bench.on_checkpoint = passed.append
    bench.step()
    assert tuple(passed) == CHECKPOINTS


@pytest.mark.parametrize("state", sorted(WORKABLE))
def test_a_walk_goes_no_further_than_it_may(state: str, make_bench: MakeBench) -> None:
    bench, _, _ = scripted(make_bench)
    runtime = bench.worker()
    claim = bench.claim(runtime)
    job = walk(runtime, bench.claimed(claim), claim.lease, through=frozenset({S(state)}))
    assert job.state is (S.RESERVED if state == S.QUEUED else S.QUEUED)


def test_a_page_whose_wait_is_not_over_is_left_alone(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    runtime = bench.worker()
    claim = bench.claim(runtime)
    bench.make_wait(60)
    assert walk(runtime, bench.claimed(claim), claim.lease).state is S.QUEUED
    assert model.sent == []


def test_a_worker_whose_lease_is_gone_calls_nobody(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench)
    runtime = bench.worker()
    claim = bench.claim(runtime)
    bench.let_leases_run_out()
    with pytest.raises(LeaseLost):
        walk(runtime, bench.claimed(claim), claim.lease)
    assert (model.sent, cms.looks) == ([], 0)


# --- cancelled ----------------------------------------------------------------------------------

BEFORE = ("call_intended", "draft_stored", "draft_validated")
"""A cancellation at these comes in time."""


def test_a_page_cancelled_before_its_call_is_not_paid_for(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench)
    bench.cancel()
    assert bench.step().state is S.CANCELLED
    assert (model.sent, cms.writes, bench.spend()) == ([], [], [])


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_cancellation_wins_until_publishing_begins_and_never_after(
    checkpoint: str, make_bench: MakeBench
) -> None:
    bench, model, cms = scripted(make_bench)

    def cancel(passed: str) -> None:
        if passed == checkpoint:
            bench.cancel()

    bench.on_checkpoint = cancel
    lost_to_the_wish = False
    try:
        bench.step()
    except LeaseLost:  # it was asked for between a look at the job and the next move
        lost_to_the_wish = True
        bench.on_checkpoint = None
        bench.step()
    in_time = CHECKPOINTS.index(checkpoint) < CHECKPOINTS.index("publish_intended")
    assert bench.states() == {"t0": "cancelled" if in_time else "published"}
    assert len(cms.writes) == (0 if in_time else 1)
    assert len(model.sent) == 1
    assert bench.spend() == ["settled"]
    assert not lost_to_the_wish or in_time


def test_a_cancelled_page_wanted_again_goes_on_at_its_draft(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench)
    bench.run(Stage.DRAFT)
    bench.cancel()
    assert bench.step().state is S.CANCELLED
    answer = retry(bench.ledger, bench.name, "t0", cause="wanted after all")
    assert answer == "t0 is generated again; the next run goes on with it"
    assert bench.step().state is S.PUBLISHED
    assert (len(model.sent), len(cms.writes)) == (1, 1)


# --- newer input --------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_newer_input_replaces_a_page_under_way_and_the_older_is_never_published_over_it(
    checkpoint: str, make_bench: MakeBench
) -> None:
    bench, model, cms = scripted(make_bench)
    old = bench.report().page_job_id

    def change(passed: str) -> None:
        if passed == checkpoint:
            bench.on_checkpoint = None
            bench.rows[0]["river"] = "Rhine"
            bench.submit()

    bench.on_checkpoint = change
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert bench.state_of(old) == "superseded"
    assert "Rhine" in model.sent[-1].user
    begun = CHECKPOINTS.index(checkpoint) >= CHECKPOINTS.index("publish_intended")
    assert cms.writes == ([("/aarau-0/", 1)] if begun else []) + [("/aarau-0/", 2)]
    assert len(model.sent) == 2


def test_newer_input_before_the_call_costs_nothing(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    bench.rows[0]["river"] = "Rhine"
    bench.submit()
    bench.run()
    assert len(model.sent) == 1
    assert "Rhine" in model.sent[0].user


def test_input_taken_back_while_the_newer_was_being_published_wins_in_the_end(
    make_bench: MakeBench,
) -> None:
    """A is live, B is being published, A is wanted again: once B is proved, A comes back."""
    bench, model, cms = scripted(make_bench)
    bench.run()
    first = bench.report().page_job_id
    bench.rows[0]["river"] = "Rhine"
    bench.submit()

    def take_back(passed: str) -> None:
        if passed == "page_written":
            bench.on_checkpoint = None
            bench.rows[0]["river"] = "Aare"
            bench.submit()

    bench.on_checkpoint = take_back
    bench.run()
    assert cms.writes == [("/aarau-0/", revision) for revision in (1, 2, 3)]
    assert bench.report().page_job_id == first
    assert bench.states() == {"t0": "published"}
    bench.submit_and_run()
    assert len(cms.writes) == 3
    assert len(model.sent) == 2


def test_a_repaired_page_keeps_what_exists(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    bench.change(article={"rules": {"min_words": 3_000, "max_words": 4_000}})
    assert bench.step().state is S.FAILED_TERMINAL
    assert bench.report().failure_class is FailureClass.INVALID_PAGE
    assert "nothing to repair" not in retry(bench.ledger, bench.name, "t0", cause="other rules")
    bench.change(article={"rules": {"min_words": 10}})
    assert bench.step().state is S.PUBLISHED
    assert len(model.sent) == 1
    assert (S.FAILED_TERMINAL, S.GENERATED) in MOVES
    assert bench.history().count("generating") == 1


@pytest.mark.parametrize("failure_class", sorted(CLOSES_CIRCUIT))
def test_a_dead_account_is_called_again_only_after_a_person_resumed_it(
    failure_class: FailureClass, make_bench: MakeBench
) -> None:
    bench, model, _ = scripted(make_bench)
    model.on_send.append(call_raises(failed(failure_class)))
    assert bench.step().state is S.FAILED_RETRYABLE
    bench.make_due()
    bench.run()
    assert len(model.sent) == 1
    with bench.ledger.begin() as connection:
        assert routes.close_circuit(connection, bench.worker().model_route)
    bench.make_due()
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert bench.spend() == ["released", "settled"]
