"""Lost answers: asked for before anything is paid anew, and booked at their worst until then."""

from collections import deque
from typing import Any

import pytest
from sqlalchemy import update

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationLookUp, RawResponse, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts as attempt_ledger
from content_pipeline.ledger import jobs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, attempts, seconds_from_now
from content_pipeline.operations.generate import reserve
from content_pipeline.operations.recover import KEEP_ASKING_S
from content_pipeline.operations.requests import build_request, position
from content_pipeline.operations.steps import walk
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedModel,
    article_answer,
    call_raises,
    failed,
)
from content_pipeline_tests.operations.small_site import site_of

S = PageJobState
LOST: list[tuple[str, dict[str, Any]]] = [
    ("drop_after", {}),
    ("cut_body", {}),
    ("empty", {}),
    ("no_choices", {}),
    ("html", {"status": 200, "billed": True}),
    ("html", {"status": 502, "billed": True}),
]
"""The call is billed, and what arrives of its answer says nothing."""

UNCERTAIN_CALL = call_raises(failed(FailureClass.UNCERTAIN, "the connection broke"))


def no_answer_can_come_any_more(bench: Bench, seconds_ago: float = 1) -> None:
    """Let the time pass in which the newest call could still have completed."""
    with bench.ledger.begin() as connection:
        connection.execute(
            update(attempts)
            .where(attempts.c.page_job_id == bench.report().page_job_id)
            .values(answer_by=seconds_from_now(-seconds_ago))
        )


@pytest.mark.parametrize(("kind", "fault"), LOST)
def test_a_billed_answer_that_was_lost_is_fetched_and_not_paid_again(
    kind: str, fault: dict[str, Any], make_bench: MakeBench
) -> None:
    bench = make_bench()
    bench.strike(kind, **fault)
    bench.submit()
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert bench.attempts() == [("generate", "uncertain", "uncertain")]
    assert bench.spend() == ["uncertain"]
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts() == [("generate", "succeeded", None), ("publish", "succeeded", None)]
    assert bench.report().attempts[0].recovered
    assert bench.spend() == ["settled"]
    assert (bench.billed(), bench.calls()) == (1, 1)
    assert bench.writes() == [("/aarau-0/", 1)]


def test_a_lane_recovers_within_its_patience(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.strike("drop_after")
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert (bench.billed(), bench.calls()) == (1, 1)
    assert "generation_uncertain" in bench.history()


def test_an_answer_later_than_the_deadline_is_fetched(make_bench: MakeBench) -> None:
    bench = make_bench(generation={"deadline_s": 0.3, "answer_slack_s": 20})
    bench.strike("hang", seconds=1.0)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert (bench.billed(), bench.calls()) == (1, 1)


def test_a_call_that_never_arrived_is_paid_once_and_only_after_its_time(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.strike("drop_before")
    bench.submit()
    for _ in range(2):
        assert bench.step().state is S.GENERATION_UNCERTAIN  # absent may only mean "not yet"
    assert (bench.calls(), bench.spend()) == (1, ["uncertain"])
    no_answer_can_come_any_more(bench)
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts() == [
        ("generate", "failed", "uncertain"),
        ("generate", "succeeded", None),
        ("publish", "succeeded", None),
    ]
    assert bench.spend() == ["released", "settled"]
    assert (bench.billed(), bench.calls()) == (1, 2)


def test_a_call_that_never_arrives_is_not_repeated_for_ever(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.strike("drop_before", times=None)
    bench.submit()
    for _ in range(2):
        bench.step()
        no_answer_can_come_any_more(bench)
    assert bench.step().state is S.DEAD_LETTERED
    assert bench.attempts() == [("generate", "failed", "uncertain")] * 2
    assert bench.spend() == ["released"] * 2
    assert (bench.billed(), bench.calls()) == (0, 2)


def test_a_provider_that_cannot_be_asked_is_asked_again(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.sandbox_plan(
        {"fault": {"kind": "drop_after"}, "times": 1},
        {"fault": {"kind": "status", "status": 500}, "match": {"operation": "list"}, "times": 2},
    )
    bench.submit()
    for _ in range(3):
        assert bench.step().state is S.GENERATION_UNCERTAIN
    assert "stored answer" in (bench.report().failure_message or "") or (
        bench.report().failure_class is FailureClass.TRANSIENT
    )
    no_answer_can_come_any_more(bench)
    assert bench.step().state is S.PUBLISHED
    assert (bench.billed(), bench.calls()) == (1, 1)


def test_a_provider_that_stays_silent_leaves_the_call_booked(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.sandbox_plan(
        {"fault": {"kind": "drop_after"}, "times": 1},
        {"fault": {"kind": "status", "status": 500}, "match": {"operation": "list"}},
    )
    bench.submit()
    bench.step()
    no_answer_can_come_any_more(bench, KEEP_ASKING_S + 1)
    assert bench.step().state is S.PUBLISHED  # one more try, as the policy allows
    assert bench.attempts()[0] == ("generate", "uncertain", "uncertain")
    assert bench.spend() == ["settled", "uncertain"]
    assert bench.report().uncertain_usd > 0
    assert (bench.billed(), bench.calls()) == (2, 2)


# --- a provider without any way to ask ----------------------------------------------------------


def test_without_a_way_to_ask_one_more_call_is_paid_and_the_first_stays_booked(
    make_bench: MakeBench,
) -> None:
    model = ScriptedModel(on_send=deque([UNCERTAIN_CALL]))
    bench = make_bench(model=model)
    bench.submit()
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert len(model.sent) == 1
    no_answer_can_come_any_more(bench)
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts()[0] == ("generate", "uncertain", "uncertain")
    assert bench.spend() == ["settled", "uncertain"]
    assert (len(model.sent), model.looks) == (2, 0)
    assert len({request.attempt_id for request in model.sent}) == 2


def test_a_policy_of_one_try_pays_no_second_call(make_bench: MakeBench) -> None:
    model = ScriptedModel(on_send=deque([UNCERTAIN_CALL]))
    bench = make_bench(model=model, retries={"uncertain": {"attempts": 1}})
    bench.submit()
    bench.step()
    no_answer_can_come_any_more(bench)
    assert bench.step().state is S.DEAD_LETTERED
    assert (len(model.sent), bench.spend()) == (1, ["uncertain"])


def test_an_absent_answer_right_before_its_end_is_looked_for_once_more(
    make_bench: MakeBench,
) -> None:
    model = ScriptedModel(look_up_by_attempt=True, on_send=deque([UNCERTAIN_CALL]))
    bench = make_bench(model=model)
    bench.submit()
    bench.step()
    bench.step()
    assert (len(model.sent), model.looks) == (1, 1)
    raw = article_answer(model.sent[0])
    model.on_look.append(GenerationLookUp(verdict=Verdict.PRESENT, raw=raw))
    no_answer_can_come_any_more(bench)
    assert bench.step().state is S.PUBLISHED
    assert len(model.sent) == 1


# --- a worker that is gone ----------------------------------------------------------------------


def call_left_open(bench: Bench, raw: RawResponse | None = None) -> tuple[PageJob, Lease]:
    """A job in ``generating`` whose worker stopped, before or after it saved the answer."""
    runtime = bench.worker()
    claim = bench.claim(runtime)
    with bench.ledger.begin() as connection:
        job = jobs.load(connection, claim.page_job_id)
    job = reserve(runtime, job, claim.lease)
    with bench.ledger.fenced(claim.lease) as connection:
        identifier = attempt_ledger.open_attempt(
            connection,
            job,
            AttemptKind.GENERATE,
            number=1,
            worker=runtime.worker,
            run_id=None,
            step="article",
            answer_within_s=30,
        )
        job = jobs.move(connection, job, S.GENERATING, lease=claim.lease)
        if raw is not None:
            attempt_ledger.save_response(connection, identifier, raw)
    bench.release(claim.lease)
    return job, claim.lease


def test_a_saved_answer_is_read_without_asking_anybody(make_bench: MakeBench) -> None:
    model = ScriptedModel(look_up_by_attempt=True)
    bench = make_bench(model=model)
    bench.submit()
    donor = ScriptedModel()
    runtime = bench.worker()
    claim = bench.claim(runtime)
    with bench.ledger.begin() as connection:
        job = jobs.load(connection, claim.page_job_id)
    asked = position(runtime, job)
    assert asked.step is not None
    request = build_request(runtime, job, asked.step, asked.prompt, "a")
    bench.release(claim.lease)
    call_left_open(bench, donor.send(request))
    assert bench.step().state is S.PUBLISHED
    assert (len(model.sent), model.looks) == (0, 0)
    assert "generation_uncertain" not in bench.history()
    assert bench.report().attempts[0].recovered
    assert bench.spend() == ["settled"]


def test_an_open_call_of_a_worker_that_is_gone_is_looked_up(make_bench: MakeBench) -> None:
    model = ScriptedModel(look_up_by_attempt=True)
    bench = make_bench(model=model)
    bench.submit()
    call_left_open(bench)
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert bench.attempts() == [("generate", "uncertain", "uncertain")]
    assert bench.spend() == ["uncertain"]
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert (len(model.sent), model.looks) == (0, 1)


def test_an_answer_that_comes_after_the_lease_was_lost_is_used_by_the_next_worker(
    make_bench: MakeBench,
) -> None:
    """A slow worker loses its page, another calls the outcome uncertain, then the answer comes."""
    bench = make_bench(model=ScriptedModel())
    bench.submit()

    def lose_the_lease(checkpoint: str) -> None:
        if checkpoint == "call_answered":
            bench.let_leases_run_out()
            bench.on_checkpoint = None
            assert bench.step().state is S.GENERATION_UNCERTAIN

    bench.on_checkpoint = lose_the_lease
    runtime = bench.worker()
    claim = bench.claim(runtime)
    with pytest.raises(LeaseLost):
        walk(runtime, bench.claimed(claim), claim.lease)
    assert bench.report().state is S.GENERATION_UNCERTAIN
    assert bench.step().state is S.PUBLISHED
    model = bench.model
    assert isinstance(model, ScriptedModel)
    assert len(model.sent) == 1
    assert bench.writes() == [("/aarau-0/", 1)]


def test_what_the_provider_hands_out_unreadable_is_a_useless_answer(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.strike("drop_after")
    bench.submit()
    bench.step()
    real = bench.model
    garbage = RawResponse(status=200, headers={}, body=b"<html>")

    class Garbled(ScriptedModel):
        def read(self, raw: RawResponse) -> Any:
            return real.read(raw)

    bench.model = Garbled(
        look_up_by_attempt=True,
        on_look=deque([GenerationLookUp(verdict=Verdict.PRESENT, raw=garbage)]),
        on_send=deque([call_raises(failed(FailureClass.REQUEST))]),
    )
    bench.step()
    assert bench.attempts()[0] == ("generate", "failed", "bad_output")
    assert bench.spend()[-1] == "settled"


def test_a_useless_recovered_answer_is_paid_for_and_tried_once_more(
    make_bench: MakeBench,
) -> None:
    model = ScriptedModel(look_up_by_attempt=True, on_send=deque([UNCERTAIN_CALL]))
    bench = make_bench(model=model)
    bench.submit()
    bench.step()
    useless = RawResponse(status=200, headers={}, body=b'{"title": 1}')
    model.on_look.append(GenerationLookUp(verdict=Verdict.PRESENT, raw=useless))
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts()[0] == ("generate", "failed", "bad_output")
    assert bench.spend() == ["settled", "settled"]
    assert len(model.sent) == 2


def test_a_look_up_that_names_a_dead_account_is_told(make_bench: MakeBench) -> None:
    model = ScriptedModel(look_up_by_attempt=True, on_send=deque([UNCERTAIN_CALL]))
    bench = make_bench(model=model)
    bench.submit()
    bench.step()
    failure = Failure(failure_class=FailureClass.AUTH, message="the key is revoked")
    model.on_look.append(GenerationLookUp(verdict=Verdict.UNKNOWN, failure=failure))
    assert bench.step().state is S.GENERATION_UNCERTAIN
    report = bench.report()
    assert (report.failure_class, report.failure_message) == (
        FailureClass.AUTH,
        "the key is revoked",
    )


# --- the site's file changes meanwhile ----------------------------------------------------------

OTHER_PROMPT = "Write quite another page. {{ facts }}"


@pytest.mark.parametrize("kind", ["drop_after", "cut_body"])
def test_a_recovered_answer_to_an_earlier_prompt_is_not_taken_for_one_to_the_new(
    kind: str, make_bench: MakeBench
) -> None:
    bench = make_bench()
    earlier = bench.site
    bench.strike(kind)
    bench.submit()
    assert bench.step().state is S.GENERATION_UNCERTAIN
    old_job = bench.report().page_job_id
    bench.site = site_of(earlier.settings, prompt=OTHER_PROMPT)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert bench.state_of(old_job) == "superseded"
    assert bench.billed() == bench.calls() == 2
    # Wanted again, the earlier way has the draft that was paid for.
    bench.site = earlier
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert bench.report().page_job_id == old_job
    assert bench.billed() == 2


def test_a_saved_answer_of_a_worker_that_died_is_not_taken_for_one_to_a_newer_prompt(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.submit()

    def die(checkpoint: str) -> None:
        if checkpoint == "answer_saved":
            raise KeyboardInterrupt

    bench.on_checkpoint = die
    with pytest.raises(KeyboardInterrupt):
        bench.step()
    bench.on_checkpoint = None
    bench.let_leases_run_out()
    bench.site = site_of(bench.site.settings, prompt=OTHER_PROMPT)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert bench.billed() == bench.calls() == 2
