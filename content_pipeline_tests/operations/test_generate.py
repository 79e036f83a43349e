"""The paid call: one request per attempt, its worst case reserved first, its answer kept first."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import jobs, leases, spend
from content_pipeline.ledger.schema import attempt_responses, attempts
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.operations.generate import reserve
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench

S = PageJobState
HAPPY = [
    "queued",
    "reserved",
    "generating",
    "generated",
    "validating",
    "ready_to_publish",
    "publishing",
    "published",
]
FAILS_FOR_ONE = "{{ 1 // (population | replace(',', '') | int - 10000) }} {{ facts }}"
"""Divides by zero for the first town, which has 10,000 people."""

NO_WAIT = {"attempts": 3, "first_wait_s": 0, "max_wait_s": 0}


def test_a_page_without_trouble_is_billed_once_and_written_once(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.submit_and_run()
    assert bench.history() == HAPPY
    assert bench.attempts() == [("generate", "succeeded", None), ("publish", "succeeded", None)]
    assert (bench.billed(), bench.calls()) == (1, 1)
    assert bench.writes() == [("/aarau-0/", 1)]


def test_the_bill_is_what_the_provider_counted(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.submit_and_run()
    truth = bench.sandbox.truth()
    call, _ = bench.report().attempts
    assert call.input_tokens == truth["prompt_tokens"]
    assert call.output_tokens == truth["completion_tokens"]
    (row,) = bench.rows_in(spend_rows)
    assert (row.state, row.settled_usd) == ("settled", call.usd)
    assert 0 < row.settled_usd < row.reserved_usd
    runtime = bench.worker()
    with bench.ledger.begin() as connection:
        totals = spend.totals(connection, bench.name)
    assert totals.settled_usd == row.settled_usd
    assert totals.reserved_usd == 0
    assert runtime.caps.page_usd == 1


def test_the_provider_can_find_the_call_by_our_ids(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.submit_and_run()
    (generation,) = bench.sandbox.truth()["generations"]
    call = bench.rows_in(attempts)[0]
    assert generation["attempt_id"] == call.attempt_id
    assert generation["page_job_id"] == bench.report().page_job_id
    assert call.response_id == generation["id"]


def test_the_raw_answer_is_kept_before_it_is_read(make_bench: MakeBench) -> None:
    bench = make_bench()
    seen: list[tuple[str, int]] = []

    def look(checkpoint: str) -> None:
        if checkpoint in ("call_answered", "answer_saved"):
            with bench.ledger.begin() as connection:
                saved = connection.execute(
                    func.count()
                    .select()
                    .select_from(
                        attempt_responses.join(
                            attempts, attempts.c.attempt_id == attempt_responses.c.attempt_id
                        )
                    )
                    .where(attempts.c.page_job_id == bench.report().page_job_id)
                ).scalar_one()
            seen.append((checkpoint, saved))
            assert bench.report().state is S.GENERATING

    bench.on_checkpoint = look
    bench.submit_and_run()
    assert seen == [("call_answered", 0), ("answer_saved", 1)]


def test_running_again_pays_and_writes_nothing(make_bench: MakeBench) -> None:
    bench = make_bench(towns=3)
    bench.submit_and_run()
    calls, writes = bench.calls(), bench.writes()
    assert bench.submit_and_run() == []
    assert (bench.calls(), bench.writes()) == (calls, writes)
    assert calls == len(writes) == 3


def test_drafts_alone_stop_before_the_rules(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2)
    bench.submit()
    bench.run(Stage.DRAFT)
    assert set(bench.states().values()) == {"generated"}
    bench.run(Stage.PAGE)
    assert set(bench.states().values()) == {"ready_to_publish"}
    assert (bench.billed(), bench.writes()) == (2, [])
    bench.run(Stage.ARTIFACT)
    assert set(bench.states().values()) == {"published"}
    assert bench.billed() == 2


RETRIED: list[tuple[str, dict[str, Any], str, str]] = [
    ("status", {"status": 500}, "transient", "uncertain"),
    ("status", {"status": 429}, "throttled", "released"),
    ("status", {"status": 503}, "throttled", "released"),
    ("length", {}, "bad_output", "settled"),
    ("broken_json", {}, "bad_output", "settled"),
    ("empty_content", {}, "bad_output", "settled"),
]


@pytest.mark.parametrize(("kind", "fault", "failure_class", "money"), RETRIED)
def test_a_failure_worth_another_try_gets_one(
    kind: str, fault: dict[str, Any], failure_class: str, money: str, make_bench: MakeBench
) -> None:
    bench = make_bench(retries={failure_class: NO_WAIT})
    bench.strike(kind, **fault)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert bench.attempts() == [
        ("generate", "failed", failure_class),
        ("generate", "succeeded", None),
        ("publish", "succeeded", None),
    ]
    assert bench.spend() == sorted([money, "settled"])
    assert bench.calls() == 2
    assert bench.writes() == [("/aarau-0/", 1)]


@pytest.mark.parametrize(("kind", "fault", "failure_class", "money"), RETRIED)
def test_a_page_that_fails_too_often_in_one_way_is_put_by_with_its_history(
    kind: str, fault: dict[str, Any], failure_class: str, money: str, make_bench: MakeBench
) -> None:
    bench = make_bench(retries={failure_class: NO_WAIT})
    bench.strike(kind, times=None, **fault)
    bench.submit_and_run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, failure_class)
    assert bench.attempts() == [("generate", "failed", failure_class)] * 3
    assert bench.spend() == [money] * 3
    assert (bench.calls(), bench.writes()) == (3, [])


TERMINAL: list[tuple[str, dict[str, Any], str]] = [
    ("refusal", {}, "policy"),
    ("content_filter", {}, "policy"),
    ("status", {"status": 400, "type": "invalid_request_error"}, "request"),
    ("status", {"status": 404, "code": "model_not_found"}, "request"),
    ("status", {"status": 400, "code": "context_length_exceeded"}, "request"),
]


@pytest.mark.parametrize(("kind", "fault", "failure_class"), TERMINAL)
def test_a_failure_that_only_a_person_can_end_is_not_tried_again(
    kind: str, fault: dict[str, Any], failure_class: str, make_bench: MakeBench
) -> None:
    bench = make_bench(towns=2)
    # Of two pages, the one whose prompt names this town.
    bench.strike(kind, times=None, match={"prompt_contains": "Aarau 0"}, **fault)
    bench.submit_and_run()
    assert bench.states() == {"t0": "failed_terminal", "t1": "published"}
    assert bench.report().failure_class == failure_class
    assert bench.attempts() == [("generate", "failed", failure_class)]
    assert bench.calls() == 2


def test_an_announced_wait_is_kept(make_bench: MakeBench) -> None:
    bench = make_bench(lane={"patience_s": 0})
    bench.strike("status", status=429, headers={"retry-after": "120"})
    bench.submit_and_run()
    report = bench.report()
    assert report.state is S.FAILED_RETRYABLE
    with bench.ledger.begin() as connection:
        now = connection.execute(func.clock_timestamp().select()).scalar_one()
    assert 110 < (report.next_attempt_at - now).total_seconds() <= 120
    assert bench.calls() == 1


# --- money --------------------------------------------------------------------------------------


def test_a_page_whose_cap_is_too_small_is_put_by_without_a_call(make_bench: MakeBench) -> None:
    bench = make_bench(budgets={"page_usd": "0.000001"})
    bench.submit_and_run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, FailureClass.BUDGET)
    assert "budgets.page_usd" in (report.failure_message or "")
    assert (bench.calls(), bench.spend()) == (0, [])


def test_a_spent_day_makes_pages_wait_for_the_next_one(make_bench: MakeBench) -> None:
    bench = make_bench(towns=3)
    bench.submit()
    bench.step("t0")
    (first,) = bench.rows_in(spend_rows)
    room_for_one_call = first.settled_usd + first.reserved_usd * Decimal("1.02")
    bench.change(budgets={"site_day_usd": room_for_one_call})
    bench.run()
    assert sorted(bench.states().values()) == ["failed_retryable", "published", "published"]
    (waiting,) = (topic for topic, state in bench.states().items() if state == "failed_retryable")
    report = bench.report(waiting)
    assert report.failure_class is FailureClass.BUDGET
    with bench.ledger.begin() as connection:
        left_s = spend.seconds_to_next_day(connection)
        now = connection.execute(func.clock_timestamp().select()).scalar_one()
    assert abs((report.next_attempt_at - now).total_seconds() - left_s) < 5
    assert (bench.calls(), bench.attempts(waiting), bench.spend(waiting)) == (2, [], [])
    # The next day lets it go on.
    bench.change(budgets={"site_day_usd": 50})
    bench.make_due()
    bench.run()
    assert set(bench.states().values()) == {"published"}


def test_a_page_that_is_cancelled_after_reserving_gives_its_money_back(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.submit()
    runtime = bench.worker()
    claim = bench.claim(runtime)
    with bench.ledger.begin() as connection:
        job = jobs.load(connection, claim.page_job_id)
    job = reserve(runtime, job, claim.lease)
    assert (job.state, bench.spend()) == (S.RESERVED, ["reserved"])
    bench.cancel()
    with bench.ledger.begin() as connection:
        leases.release(connection, claim.lease)
    bench.run()
    assert (bench.states(), bench.spend()) == ({"t0": "cancelled"}, ["released"])
    assert bench.calls() == 0
    # Wanted again, it reserves anew, and the cap is asked again.
    retry(bench.ledger, bench.name, "t0", cause="changed our minds")
    bench.step(day_usd=Decimal(0))
    assert (bench.states(), bench.spend()) == ({"t0": "failed_retryable"}, ["released"])
    bench.make_due()
    bench.run()
    assert (bench.states(), bench.spend()) == ({"t0": "published"}, ["settled"])


def test_a_row_that_the_prompt_fails_on_is_the_rows_failure(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2)
    (step,) = bench.site.chain.steps
    failing = replace(bench.site.chain, steps=(replace(step, template=FAILS_FOR_ONE),))
    bench.site = replace(bench.site, chain=failing)
    bench.submit_and_run()
    assert bench.states() == {"t0": "failed_terminal", "t1": "published"}
    report = bench.report()
    assert report.failure_class is FailureClass.INVALID_INPUT
    assert "prompt template" in (report.failure_message or "")
    assert (bench.calls(), bench.spend()) == (1, [])
