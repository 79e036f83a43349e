"""A step that embeds: paid once, kept as a vector, repeated alone, and never asked about."""

from decimal import Decimal
from typing import Any

import pytest

from content_pipeline.core.states import PageJobState
from content_pipeline.core.vectors import unpacked
from content_pipeline.ledger import vectors
from content_pipeline.ledger.costs import Dimension, costs
from content_pipeline.ledger.schema import attempts, step_outputs
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.sandbox.vectors import vector_of
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.embedding_site import (
    ABOUT_RIVERS,
    OUTLINE,
    PAGE,
    STEPS,
    VECTOR,
    put_on,
    received,
    strike_embedding,
)

S = PageJobState
NO_WAIT = {"first_wait_s": 0, "max_wait_s": 0}
AT_ONCE = {name: {"attempts": 3, **NO_WAIT} for name in ("transient", "throttled", "bad_output")}


class Death(Exception):
    """Stands for the end of a worker in the middle of its work."""


def outputs(bench: Bench, topic: str = "t0") -> dict[str, Any]:
    """Step → row of the job's stored outputs."""
    job_id = bench.report(topic).page_job_id
    with bench.ledger.begin() as connection:
        rows = connection.execute(
            step_outputs.select().where(step_outputs.c.page_job_id == job_id)
        ).all()
    return {row.step: row for row in rows}


def money(bench: Bench) -> list[tuple[str, str]]:
    """Step and what became of the reservation of each paid call, in order."""
    spent = {row.attempt_id: row.state for row in bench.rows_in(spend_rows)}
    return [
        (row.step, spent[row.attempt_id])
        for row in bench.rows_in(attempts)
        if row.kind == "generate"
    ]


def dies_at(checkpoint: str, nth: int) -> Any:
    left = [nth]

    def die(passed: str) -> None:
        left[0] -= passed == checkpoint
        if left[0] == 0 and passed == checkpoint:
            raise Death

    return die


# --- the whole way ------------------------------------------------------------------------------


def test_outline_article_and_vector_make_a_page(make_bench: MakeBench) -> None:
    bench = put_on(make_bench(), limit=0.99, files=ABOUT_RIVERS)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 1, 0)
    assert money(bench) == [("outline", "settled"), ("page", "settled"), ("vector", "settled")]
    assert bench.writes() == [("/aarau-0/", 1)]
    kept = outputs(bench)["vector"]
    told = {name: kept.output[name] for name in ("model", "dimensions")}
    assert told == {"model": "sandbox/text-embedding-3-small", "dimensions": 1536}
    expected = vector_of('The river "Aare" near "Aarau 0"', 1536, 1536)
    assert list(unpacked(kept.vector)) == pytest.approx(expected, abs=1e-6)
    assert outputs(bench)["page"].vector is None


def test_its_cost_is_its_input_at_list_price_and_shows_by_step(make_bench: MakeBench) -> None:
    bench = put_on(make_bench(towns=2))
    bench.submit_and_run()
    with bench.ledger.begin() as connection:
        groups = costs(connection, [Dimension.STEP, Dimension.MODEL], site=bench.name)
    by_step = {group.keys: group for group in groups}
    found = by_step["vector", "text-embedding-3-small"]
    embedded = [
        generation
        for generation in bench.sandbox.truth()["generations"]
        if generation["model"] == "text-embedding-3-small"
    ]
    tokens = sum(generation["prompt_tokens"] for generation in embedded)
    assert (found.attempts, found.input_tokens, found.output_tokens) == (2, tokens, 0)
    assert abs(found.settled_usd - tokens * Decimal("0.02") / 1_000_000) < Decimal("0.00000002")
    assert {step for step, _ in by_step} == {"outline", "page", "vector"}


def test_the_reserve_is_above_the_bill_and_has_no_output(make_bench: MakeBench) -> None:
    bench = put_on(make_bench())
    bench.submit_and_run()
    call = bench.rows_in(attempts)[2]
    assert call.step == "vector"
    spent = {row.attempt_id: row for row in bench.rows_in(spend_rows)}[call.attempt_id]
    assert 0 < spent.settled_usd < spent.reserved_usd < Decimal("0.0001")


def test_running_again_pays_nothing(make_bench: MakeBench) -> None:
    bench = put_on(make_bench(towns=3), limit=0.99)
    bench.submit_and_run()
    before = received(bench)
    assert bench.submit_and_run() == []
    assert received(bench) == before == (6, 3, 0)


# --- only it again ------------------------------------------------------------------------------

FAILURES: list[tuple[str, dict[str, Any], str, str]] = [
    ("status", {"status": 500}, "transient", "uncertain"),
    ("status", {"status": 429}, "throttled", "released"),
    ("status", {"status": 503}, "throttled", "released"),
    ("broken_json", {}, "bad_output", "settled"),
    ("length", {}, "bad_output", "settled"),
    ("empty_content", {}, "bad_output", "settled"),
]


@pytest.mark.parametrize(("kind", "fault", "failure_class", "spent"), FAILURES)
def test_when_it_fails_it_alone_is_paid_again(
    kind: str, fault: dict[str, Any], failure_class: str, spent: str, make_bench: MakeBench
) -> None:
    bench = put_on(make_bench(), retries=AT_ONCE)
    strike_embedding(bench, kind, **fault)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 2, 0)
    assert ("generate", "failed", failure_class) in bench.attempts()
    assert money(bench)[2:] == [("vector", spent), ("vector", "settled")]
    assert bench.writes() == [("/aarau-0/", 1)]


LOST: list[tuple[str, dict[str, Any]]] = [
    ("drop_after", {}),
    ("cut_body", {}),
    ("empty", {}),
    ("no_choices", {}),
    ("html", {"status": 504, "billed": True}),
    ("html", {"status": 200}),
]


@pytest.mark.parametrize(("kind", "fault"), LOST)
def test_a_lost_vector_is_booked_at_its_worst_and_asked_for_again_without_a_look_up(
    kind: str, fault: dict[str, Any], make_bench: MakeBench
) -> None:
    bench = put_on(make_bench())
    bench.change(generation={"deadline_s": 1})
    strike_embedding(bench, kind, **fault)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 2, 0)
    assert ("generate", "uncertain", "uncertain") in bench.attempts()
    assert money(bench)[2:] == [("vector", "uncertain"), ("vector", "settled")]


def test_a_completion_of_the_same_chain_is_still_asked_about(make_bench: MakeBench) -> None:
    bench = put_on(make_bench())
    bench.strike("drop_after", match={"nth": 2})
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    created, embedded, listed = received(bench)
    assert (created, embedded) == (2, 1)
    assert listed >= 1


def test_an_unknown_usage_is_booked_at_its_worst(make_bench: MakeBench) -> None:
    bench = put_on(make_bench())
    strike_embedding(bench, "null_usage")
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    call = bench.rows_in(attempts)[2]
    spent = {row.attempt_id: row for row in bench.rows_in(spend_rows)}[call.attempt_id]
    assert spent.settled_usd == spent.reserved_usd


@pytest.mark.parametrize(
    ("fault", "failure_class"),
    [
        ({"status": 404, "code": "model_not_found"}, "request"),
        ({"status": 400, "code": "context_length_exceeded"}, "request"),
    ],
)
def test_what_only_a_person_can_end_is_not_tried_again(
    fault: dict[str, Any], failure_class: str, make_bench: MakeBench
) -> None:
    bench = put_on(make_bench())
    strike_embedding(bench, "status", times=None, **fault)
    bench.submit_and_run()
    assert (bench.report().state, bench.report().failure_class) == (
        S.FAILED_TERMINAL,
        failure_class,
    )
    assert received(bench) == (2, 1, 0)
    assert bench.writes() == []


def test_another_length_is_another_vector_and_the_article_is_reused(make_bench: MakeBench) -> None:
    bench = put_on(make_bench())
    bench.submit_and_run()
    put_on(bench, [OUTLINE, PAGE, VECTOR | {"dimensions": 64}])
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 2, 0)
    assert len(unpacked(outputs(bench)["vector"].vector)) == 64


def test_a_vector_is_taken_over_when_only_a_later_step_changed(make_bench: MakeBench) -> None:
    opinion = {"name": "opinion", "prompt": "opinion.md", "output": "review"}
    bench = put_on(make_bench(), [PAGE, VECTOR, opinion], limit=0.9, files={"page.md": "{{facts}}"})
    bench.submit_and_run()
    first = bench.report().page_job_id
    put_on(
        bench,
        [PAGE, VECTOR, opinion],
        limit=0.9,
        files={"page.md": "{{facts}}", "opinion.md": "Judge {{ page }} well. {{ facts }}"},
    )
    bench.submit_and_run()
    assert bench.report().page_job_id != first
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (3, 1, 0)
    with bench.ledger.begin() as connection:
        mine = vectors.of_job(connection, bench.report().page_job_id)
        assert mine == vectors.of_job(connection, first) is not None


# --- deaths -------------------------------------------------------------------------------------


def test_a_death_between_the_saved_answer_and_the_vector_costs_nothing(
    make_bench: MakeBench,
) -> None:
    bench = put_on(make_bench())
    bench.submit()
    bench.on_checkpoint = dies_at("answer_saved", 3)
    with pytest.raises(Death):
        bench.step()
    assert (bench.report().state, outputs(bench).keys()) == (S.GENERATING, {"outline", "page"})
    bench.on_checkpoint = None
    bench.let_leases_run_out()
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 1, 0)
    assert money(bench)[2:] == [("vector", "settled")]


def test_a_death_before_the_answer_was_saved_costs_one_vector_more_at_most(
    make_bench: MakeBench,
) -> None:
    bench = put_on(make_bench())
    bench.change(generation={"deadline_s": 1})
    bench.submit()
    bench.on_checkpoint = dies_at("call_answered", 3)
    with pytest.raises(Death):
        bench.step()
    bench.on_checkpoint = None
    bench.let_leases_run_out()
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (2, 2, 0)
    assert money(bench)[2:] == [("vector", "uncertain"), ("vector", "settled")]


def test_a_lost_call_of_a_step_that_is_gone_is_not_asked_about(make_bench: MakeBench) -> None:
    """Absence from the list of completions would make a paid embedding look free."""
    bench = put_on(make_bench(), [PAGE, VECTOR], files={"page.md": "{{ facts }}"})
    bench.change(generation={"deadline_s": 1})
    bench.submit()
    strike_embedding(bench, "drop_after")
    assert bench.step().state is S.GENERATION_UNCERTAIN
    chain = bench.site.chain
    put_on(bench, [PAGE], files={"page.md": "{{ facts }}"})
    assert len(chain.steps) == 2
    bench.run()
    assert received(bench) == (1, 1, 0)
    assert money(bench) == [("page", "settled"), ("vector", "uncertain")]


# --- policies of a step's own -------------------------------------------------------------------


def with_retries(step: str, **policies: Any) -> list[dict[str, Any]]:
    return [{**each, "retries": policies} if each["name"] == step else dict(each) for each in STEPS]


def test_a_steps_own_policy_comes_before_the_sites(make_bench: MakeBench) -> None:
    once = {"attempts": 1}
    bench = put_on(make_bench(), with_retries("vector", transient=once), retries=AT_ONCE)
    strike_embedding(bench, "status", status=500, times=None)
    bench.submit_and_run()
    assert bench.report().state is S.DEAD_LETTERED
    assert received(bench) == (2, 1, 0)


def test_a_steps_own_policy_says_nothing_about_other_steps_and_classes(
    make_bench: MakeBench,
) -> None:
    steps = with_retries("vector", transient={"attempts": 1})
    bench = put_on(make_bench(), steps, retries=AT_ONCE)
    bench.sandbox_plan(
        {"fault": {"kind": "status", "status": 500}, "match": {"nth": 1}},
        {"fault": {"kind": "status", "status": 429}, "match": {"operation": "embed", "nth": 1}},
    )
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (3, 2, 0)


def test_a_step_may_be_tried_more_often_than_the_site_says(make_bench: MakeBench) -> None:
    steps = with_retries("page", bad_output={"attempts": 4, **NO_WAIT})
    bench = put_on(make_bench(), steps, retries={"bad_output": {"attempts": 1}})
    bench.sandbox_plan(
        {"fault": {"kind": "length"}, "match": {"prompt_contains": "Write about"}, "times": 3}
    )
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    assert received(bench) == (5, 1, 0)


def test_without_its_own_or_the_sites_the_defaults_hold(make_bench: MakeBench) -> None:
    bench = put_on(make_bench())
    runtime = bench.worker()
    assert runtime.retries("vector") == runtime.retries(None) == runtime.retries("gone") == {}
    strike_embedding(bench, "length", times=None)
    bench.submit_and_run()
    assert bench.report().state is S.DEAD_LETTERED
    assert received(bench) == (2, 2, 0)  # the default gives bad output one more try


def test_a_lost_call_follows_its_steps_policy(make_bench: MakeBench) -> None:
    bench = put_on(make_bench(), with_retries("vector", uncertain={"attempts": 1}))
    bench.change(generation={"deadline_s": 1})
    strike_embedding(bench, "drop_after", times=None)
    bench.submit_and_run()
    assert bench.report().state is S.DEAD_LETTERED
    assert received(bench) == (2, 1, 0)
    assert money(bench)[2:] == [("vector", "uncertain")]
