"""Answers that the provider hands out by id: asked for, never paid for again, whatever happens.

The provider's own journal is the judge: how many calls it received, and what it billed.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import update

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.schema import attempts, seconds_from_now, spend
from content_pipeline.operations.kept_answers import LONGEST_BETWEEN_S
from content_pipeline.operations.recover import KEEP_ASKING_S
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.conftest import INSTANT_PROVIDER, MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedModel, article_answer
from content_pipeline_tests.operations.small_site import real_model

S = PageJobState
RESPONSES = GenerationAPI.RESPONSES
NEVER = INSTANT_PROVIDER.model_copy(update={"latency_median_s": 600.0, "latency_sigma": 0.0})
"""A provider that is at work for as long as any test takes."""


class Gone(BaseException):
    """The worker's process ends here: nothing of it runs any more."""


@pytest.fixture
def bench(make_bench: MakeBench, sandbox: SandboxClient) -> Iterator[Bench]:
    """One town on background responses."""
    model = real_model(sandbox.base_url, api=RESPONSES, background=True)
    bench = make_bench(model=model, generation={"api": "responses", "background": True})
    bench.submit()
    yield bench
    model.close()


@pytest.fixture
def waiting_bench(make_bench: MakeBench, sandbox: SandboxClient) -> Iterator[Bench]:
    """One town on responses whose answers are waited for."""
    model = real_model(sandbox.base_url, api=RESPONSES)
    bench = make_bench(model=model, generation={"api": "responses"})
    bench.submit()
    yield bench
    model.close()


def gone_at(bench: Bench, name: str) -> None:
    """Let a worker work until the checkpoint ``name`` and be gone there."""

    def end(checkpoint: str) -> None:
        if checkpoint == name:
            raise Gone

    bench.on_checkpoint = end
    with pytest.raises(Gone):
        bench.step()
    bench.on_checkpoint = None


def at(bench: Bench, name: str, act: Callable[[], Any]) -> None:
    """Let ``act`` happen when a worker passes the checkpoint ``name``."""

    def look(checkpoint: str) -> None:
        if checkpoint == name:
            act()

    bench.on_checkpoint = look


def let_time_pass(bench: Bench, seconds_ago: float = 1) -> None:
    """Let the time pass in which the newest call could still have completed."""
    with bench.ledger.begin() as connection:
        connection.execute(
            update(attempts)
            .where(attempts.c.page_job_id == bench.report().page_job_id)
            .values(answer_by=seconds_from_now(-seconds_ago))
        )


def asked(bench: Bench, operation: str = "retrieve") -> int:
    return int(bench.sandbox.truth()["requests_by_operation"].get(operation, 0))


def steps_until(bench: Bench, state: PageJobState, most: int = 200) -> None:
    """Let worker after worker look at the page until it is in ``state``."""
    for _ in range(most):
        if bench.step().state is state:
            return
    raise AssertionError(f"the page never came to {state}: {bench.history()}")


# --- the way without trouble --------------------------------------------------------------------


def test_a_page_is_billed_once_and_its_answer_is_asked_for(bench: Bench) -> None:
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts() == [("generate", "succeeded", None), ("publish", "succeeded", None)]
    assert "generation_uncertain" not in bench.history()
    assert (bench.calls(), bench.billed()) == (1, 1)
    assert asked(bench) >= 1
    assert asked(bench, "list") == 0
    assert bench.spend() == ["settled"]
    assert bench.writes() == [("/aarau-0/", 1)]


def test_the_id_and_the_api_stand_in_the_attempt_before_anything_is_asked(bench: Bench) -> None:
    seen: list[Any] = []

    def look() -> None:
        row = bench.rows_in(attempts)[0]
        seen.append((row.state, row.api, row.response_id[:5], asked(bench)))

    at(bench, "call_accepted", look)
    bench.step()
    assert seen == [("open", "responses", "resp_", 0)]


def test_an_answer_that_takes_several_questions_is_paid_once(bench: Bench) -> None:
    bench.strike("slow", seconds=1.0)
    assert bench.step().state is S.PUBLISHED
    assert 2 <= asked(bench) <= 1 + 1.0 / 0.2
    assert (bench.calls(), bench.billed()) == (1, 1)


def test_an_answer_that_is_waited_for_needs_no_question(waiting_bench: Bench) -> None:
    assert waiting_bench.step().state is S.PUBLISHED
    assert (waiting_bench.calls(), waiting_bench.billed(), asked(waiting_bench)) == (1, 1, 0)


def test_a_lane_of_several_pages_is_done_by_responses(
    make_bench: MakeBench, sandbox: SandboxClient
) -> None:
    model = real_model(sandbox.base_url, api=RESPONSES, background=True)
    bench = make_bench(
        5, model=model, generation={"api": "responses", "background": True, "in_flight": 3}
    )
    bench.submit_and_run()
    model.close()
    assert set(bench.states().values()) == {"published"}
    assert (bench.calls(), bench.billed()) == (5, 5)


def test_a_call_in_the_background_holds_its_slot_until_its_answer_is_there(
    make_bench: MakeBench, sandbox: SandboxClient
) -> None:
    model = real_model(sandbox.base_url, api=RESPONSES, background=True)
    bench = make_bench(
        4, model=model, generation={"api": "responses", "background": True, "in_flight": 1}
    )
    bench.strike("slow", seconds=0.25, times=None)
    bench.submit_and_run()
    model.close()
    begun = [each["at"] for each in sandbox.requests() if each["operation"] == "create"]
    ended = [each["at"] for each in sandbox.truth()["generations"]]
    assert len(begun) == len(ended) == 4
    assert all(end < begin for end, begin in zip(ended, begun[1:], strict=False))


# --- a worker that is gone ----------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", ["answer_saved", "call_accepted"])
def test_a_worker_gone_between_acceptance_and_answer_costs_no_second_call(
    checkpoint: str, bench: Bench
) -> None:
    bench.strike("slow", seconds=0.3)
    gone_at(bench, checkpoint)
    assert bench.report().state is S.GENERATING
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert bench.rows_in(attempts)[0].response_id.startswith("resp_")
    steps_until(bench, S.PUBLISHED)
    assert (bench.calls(), bench.billed()) == (1, 1)
    assert bench.report().attempts[0].recovered
    assert bench.spend() == ["settled"]
    assert bench.writes() == [("/aarau-0/", 1)]


def test_a_worker_gone_with_the_found_answer_in_its_hands_is_followed_by_one_that_reads_it(
    bench: Bench,
) -> None:
    gone_at(bench, "answer_recovered")
    questions = asked(bench)
    assert bench.step().state is S.PUBLISHED
    assert (bench.calls(), bench.billed(), asked(bench)) == (1, 1, questions)


def test_a_worker_that_loses_its_page_while_it_asks_writes_nothing(bench: Bench) -> None:
    bench.strike("slow", seconds=0.3)

    def lose_it() -> None:
        bench.let_leases_run_out()
        bench.on_checkpoint = None
        steps_until(bench, S.PUBLISHED)

    at(bench, "call_accepted", lose_it)
    with pytest.raises(LeaseLost):
        bench.step()
    assert (bench.calls(), bench.billed()) == (1, 1)
    assert bench.writes() == [("/aarau-0/", 1)]


# --- questions that fail ------------------------------------------------------------------------


def test_questions_that_fail_are_asked_again_and_nothing_is_paid_for_them(bench: Bench) -> None:
    retrieve = {"match": {"operation": "retrieve"}, "times": 1}
    bench.sandbox_plan(
        {"fault": {"kind": "status", "status": 429, "type": "requests"}, **retrieve},
        {"fault": {"kind": "status", "status": 500}, **retrieve},
        {"fault": {"kind": "drop_before"}, **retrieve},
        {"fault": {"kind": "html", "status": 502}, **retrieve},
        {"fault": {"kind": "status", "status": 404}, **retrieve},
    )
    assert bench.step().state is S.PUBLISHED
    assert (bench.calls(), bench.billed(), asked(bench)) == (1, 1, 6)
    assert bench.spend() == ["settled"]


def test_a_wait_that_a_question_is_told_is_kept(bench: Bench) -> None:
    slow_down = {"kind": "status", "status": 429, "retry_after_s": 0.9, "retry_after_style": "ms"}
    bench.sandbox_plan({"fault": slow_down, "match": {"operation": "retrieve"}, "times": 1})
    assert bench.step().state is S.PUBLISHED
    received = bench.sandbox.requests()
    first, second = [each for each in received if each["operation"] == "retrieve"]
    assert second["at"] > first["at"]
    assert asked(bench) == 2


def test_an_answer_later_than_the_deadline_is_fetched(bench: Bench) -> None:
    bench.change(generation={"deadline_s": 0.4, "answer_slack_s": 20})
    bench.strike("slow", seconds=0.8)
    assert bench.step().state is S.GENERATION_UNCERTAIN
    report = bench.report()
    assert "the response is queued; it is asked for by its id" in (report.failure_message or "")
    assert bench.spend() == ["uncertain"]
    steps_until(bench, S.PUBLISHED)
    assert (bench.calls(), bench.billed()) == (1, 1)
    assert bench.spend() == ["settled"]


def test_a_page_waits_at_most_some_seconds_longer_than_its_answer() -> None:
    assert LONGEST_BETWEEN_S <= 5


# --- a response that ends badly -----------------------------------------------------------------


def test_a_response_without_output_is_asked_for_by_its_id(waiting_bench: Bench) -> None:
    waiting_bench.strike("no_choices")
    assert waiting_bench.step().state is S.PUBLISHED
    assert (waiting_bench.calls(), waiting_bench.billed(), asked(waiting_bench)) == (1, 1, 1)


BAD_ENDS = [
    ("refusal", "policy"),
    ("content_filter", "policy"),
    ("length", "bad_output"),
    ("broken_json", "bad_output"),
    ("empty_content", "bad_output"),
]


@pytest.mark.parametrize(("kind", "failure_class"), BAD_ENDS)
def test_a_useless_answer_is_paid_for_as_reported(
    kind: str, failure_class: str, bench: Bench
) -> None:
    bench.strike(kind)
    bench.step()
    assert bench.attempts()[0] == ("generate", "failed", failure_class)
    (row,) = bench.rows_in(spend)
    assert row.state == "settled"
    assert 0 < row.settled_usd < row.reserved_usd
    assert (bench.calls(), bench.billed()) == (1, 1)


def test_a_response_that_failed_inside_may_have_been_billed_and_is_tried_again(
    bench: Bench,
) -> None:
    bench.strike("failed")
    assert bench.step().state is S.FAILED_RETRYABLE
    assert bench.attempts() == [("generate", "failed", "transient")]
    assert bench.spend() == ["uncertain"]
    assert bench.step().state is S.PUBLISHED
    assert (bench.calls(), bench.billed()) == (2, 1)


@pytest.mark.parametrize(
    ("code", "failure_class", "spent"),
    [("server_error", "transient", "uncertain"), ("rate_limit_exceeded", "throttled", "released")],
)
def test_a_response_that_failed_while_no_worker_looked_ends_the_same(
    code: str, failure_class: str, spent: str, bench: Bench
) -> None:
    bench.strike("failed", code=code)
    gone_at(bench, "call_accepted")
    steps_until(bench, S.PUBLISHED)
    assert bench.attempts()[:2] == [
        ("generate", "failed", failure_class),
        ("generate", "succeeded", None),
    ]
    assert bench.spend() == sorted(["settled", spent])
    assert (bench.calls(), bench.billed()) == (2, 1)


def test_a_response_that_failed_for_the_traffic_is_not_paid_and_heeded(bench: Bench) -> None:
    bench.strike("failed", code="rate_limit_exceeded")
    assert bench.step().state is S.FAILED_RETRYABLE
    assert bench.attempts() == [("generate", "failed", "throttled")]
    assert bench.spend() == ["released"]


def test_a_response_that_failed_for_an_empty_account_stops_the_other_pages(
    make_bench: MakeBench, sandbox: SandboxClient
) -> None:
    model = real_model(sandbox.base_url, api=RESPONSES, background=True)
    bench = make_bench(
        3, model=model, generation={"api": "responses", "background": True, "in_flight": 1}
    )
    bench.strike("failed", code="insufficient_quota", times=None)
    bench.submit_and_run()
    model.close()
    assert bench.calls() == 1
    assert bench.billed() == 0


# --- what cannot be known -----------------------------------------------------------------------


def test_a_lost_id_leaves_the_call_booked_and_says_so(bench: Bench) -> None:
    bench.strike("drop_after")
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert bench.step().state is S.GENERATION_UNCERTAIN
    assert (bench.calls(), asked(bench), asked(bench, "list")) == (1, 0, 0)
    let_time_pass(bench)
    assert bench.step().state is S.PUBLISHED  # one more try, as the policy allows
    first = bench.rows_in(attempts)[0]
    assert (first.state, first.failure_class) == ("uncertain", "uncertain")
    assert "its id was lost with the answer" in first.failure_message
    assert "worst case stays booked" in first.failure_message
    assert bench.spend() == ["settled", "uncertain"]
    assert bench.report().uncertain_usd > 0
    assert (bench.calls(), bench.billed()) == (2, 2)


def test_a_worker_gone_before_it_could_save_the_id_is_no_different(bench: Bench) -> None:
    gone_at(bench, "call_answered")
    assert bench.step().state is S.GENERATION_UNCERTAIN
    let_time_pass(bench)
    assert bench.step().state is S.PUBLISHED
    assert bench.spend() == ["settled", "uncertain"]


def test_a_lost_id_is_not_taken_for_an_unpaid_call_once_the_site_uses_chat(
    bench: Bench, make_bench: MakeBench
) -> None:
    """The list of chat completions knows nothing of responses, so it would say "absent"."""
    bench.strike("drop_after")
    bench.step()
    bench.change(generation={"api": "chat", "background": False})
    bench.model = make_bench().model
    let_time_pass(bench)
    assert bench.step().state is S.PUBLISHED
    assert bench.rows_in(attempts)[0].state == "uncertain"
    assert asked(bench, "list") == 0
    assert bench.spend() == ["settled", "uncertain"]


def test_a_known_id_is_asked_for_once_the_site_uses_chat(
    bench: Bench, make_bench: MakeBench
) -> None:
    gone_at(bench, "call_accepted")
    bench.change(generation={"api": "chat", "background": False})
    bench.model = make_bench().model
    steps_until(bench, S.PUBLISHED)
    assert (bench.calls(), bench.billed()) == (1, 1)


def test_a_lost_completion_is_listed_once_the_site_uses_responses(
    make_bench: MakeBench, sandbox: SandboxClient
) -> None:
    bench = make_bench()
    bench.strike("drop_after")
    bench.submit()
    bench.step()
    bench.change(generation={"api": "responses", "background": True})
    model = real_model(sandbox.base_url, api=RESPONSES, background=True)
    bench.model = model
    assert bench.step().state is S.PUBLISHED
    model.close()
    assert (bench.calls(), bench.billed()) == (1, 1)


def test_a_response_that_the_provider_forgot_stays_booked(bench: Bench) -> None:
    gone_at(bench, "call_accepted")
    bench.sandbox.reset()
    for _ in range(3):
        assert bench.step().state is S.GENERATION_UNCERTAIN
    let_time_pass(bench)
    bench.step()
    first = bench.rows_in(attempts)[0]
    assert first.state == "uncertain"
    assert "accepted it and does not know it any more" in first.failure_message
    assert bench.spend() == ["settled", "uncertain"]


def test_a_response_that_never_ends_is_cancelled_and_stays_booked(bench: Bench) -> None:
    bench.change(generation={"deadline_s": 0.4})
    bench.sandbox.set_settings(NEVER)
    assert bench.step().state is S.GENERATION_UNCERTAIN
    let_time_pass(bench)
    assert bench.step().state is S.GENERATION_UNCERTAIN  # at work is not absent
    let_time_pass(bench, KEEP_ASKING_S + 1)
    bench.sandbox.set_settings(INSTANT_PROVIDER)
    assert bench.step().state is S.PUBLISHED
    assert asked(bench, "cancel") == 1
    assert bench.spend() == ["settled", "uncertain"]
    assert (bench.calls(), bench.billed()) == (2, 1)


# --- a page that nobody wants any more ----------------------------------------------------------


def test_a_cancelled_pages_response_is_stopped_by_one_request(bench: Bench) -> None:
    bench.sandbox.set_settings(NEVER)
    at(bench, "call_accepted", bench.cancel)
    assert bench.step().state is S.CANCELLED
    assert asked(bench, "cancel") == 1
    assert (bench.calls(), bench.billed()) == (1, 0)
    assert bench.attempts() == [("generate", "failed", "bad_output")]
    assert bench.spend() == ["settled"]  # the provider does not say what it had cost


def test_an_answer_that_comes_in_spite_of_it_is_kept_and_billed(bench: Bench) -> None:
    at(bench, "answer_recovered", bench.cancel)
    assert bench.step().state is S.CANCELLED
    assert bench.attempts() == [("generate", "succeeded", None)]
    assert bench.spend() == ["settled"]
    assert (bench.billed(), asked(bench, "cancel")) == (1, 0)
    assert bench.writes() == []


def test_a_page_cancelled_while_its_call_is_uncertain_has_its_response_stopped(
    bench: Bench,
) -> None:
    bench.change(generation={"deadline_s": 0.4})
    bench.sandbox.set_settings(NEVER)
    assert bench.step().state is S.GENERATION_UNCERTAIN
    bench.cancel()
    steps_until(bench, S.CANCELLED, most=5)
    assert (asked(bench, "cancel"), bench.calls(), bench.billed()) == (1, 1, 0)


# --- an answer that does not tell its tokens ----------------------------------------------------


def test_the_tokens_of_a_completion_that_names_none_are_asked_for(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.strike("null_usage")
    bench.submit()
    assert bench.step().state is S.PUBLISHED
    assert asked(bench, "list") == 1
    (row,) = bench.rows_in(spend)
    assert (row.state, row.settled_usd < row.reserved_usd) == ("settled", True)
    (generation,) = bench.sandbox.truth()["generations"]
    assert bench.rows_in(attempts)[0].output_tokens == generation["completion_tokens"]
    assert (bench.calls(), bench.billed()) == (1, 1)


def test_the_tokens_of_a_response_that_names_none_are_asked_for(waiting_bench: Bench) -> None:
    waiting_bench.strike("null_usage")
    assert waiting_bench.step().state is S.PUBLISHED
    assert (asked(waiting_bench), asked(waiting_bench, "list")) == (1, 0)
    (row,) = waiting_bench.rows_in(spend)
    assert row.settled_usd < row.reserved_usd


def test_tokens_that_are_not_listed_yet_are_booked_at_their_worst(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.sandbox.set_settings(INSTANT_PROVIDER.model_copy(update={"listing_delay_s": 600.0}))
    bench.strike("null_usage")
    bench.submit()
    assert bench.step().state is S.PUBLISHED
    (row,) = bench.rows_in(spend)
    assert (row.state, row.settled_usd) == ("settled", row.reserved_usd)


def test_a_provider_that_cannot_be_asked_is_not_asked_for_tokens(make_bench: MakeBench) -> None:
    class Silent(ScriptedModel):
        def read(self, raw: Any) -> Any:
            found = super().read(raw)
            return type(found)(
                text=found.text,
                usage=None,
                model=None,
                response_id=None,
                request_id=None,
                finish_reason="stop",
                failure=None,
            )

    model = Silent(on_send=deque([article_answer]))
    bench = make_bench(model=model)
    bench.submit()
    assert bench.step().state is S.PUBLISHED
    assert model.looks == 0
    (row,) = bench.rows_in(spend)
    assert row.settled_usd == row.reserved_usd
