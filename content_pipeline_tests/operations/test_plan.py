"""The plan against the real intake, ledger and provider: what is due, and what it costs."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import func, select, update

from content_pipeline.core.forecast import Basis
from content_pipeline.core.planning import Due, Plan, Skipped, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import (
    attempts,
    draft_revisions,
    leases,
    page_jobs,
    pages,
    sites,
    step_outputs,
    topics,
    transitions,
)
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.operations import repair, rollback
from content_pipeline.operations.lane import advance
from content_pipeline.operations.plan import make_plan
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import (
    PROMPT,
    rows_of,
    settings_of,
    site_of,
)

TABLES = (sites, topics, pages, page_jobs, transitions, attempts, spend_rows, leases, step_outputs)

LONGER = PROMPT + "\nMention what a visitor in a hurry should know first, in one plain sentence.\n"


def plan_of(bench: Bench) -> Plan:
    return make_plan(bench.worker(), bench.rows)


def due_of(plan: Plan) -> dict[str, str]:
    return {page.topic_key: page.reason.value for page in plan.today}


def skipped_of(plan: Plan) -> dict[str, str]:
    return {page.topic_key: page.reason.value for page in plan.skipped}


def with_prompt(bench: Bench, prompt: str) -> None:
    bench.site = site_of(bench.site.settings, prompt=prompt)


def spent(bench: Bench) -> Decimal:
    with bench.ledger.begin() as connection:
        return spend.totals(connection, bench.name).settled_usd


def rows_in_all(ledger: Ledger) -> dict[str, int]:
    with ledger.begin() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in TABLES
        }


def let_drafts_age(bench: Bench, days: int, *topic_keys: str) -> None:
    of_topics = select(pages.c.page_id).where(
        pages.c.site == bench.name, pages.c.topic_key.in_(topic_keys)
    )
    with bench.ledger.begin() as connection:
        connection.execute(
            update(draft_revisions)
            .where(draft_revisions.c.page_id.in_(of_topics))
            .values(created_at=draft_revisions.c.created_at - func.make_interval(0, 0, 0, days))
        )


def test_a_plan_writes_nothing_and_calls_nobody(make_bench: MakeBench) -> None:
    bench = make_bench(5)
    before = rows_in_all(bench.ledger)
    assert due_of(plan_of(bench)) == dict.fromkeys(("t0", "t1", "t2", "t3", "t4"), Due.NEW)
    assert rows_in_all(bench.ledger) == before
    assert bench.calls() == 0
    bench.submit_and_run()
    before, calls = rows_in_all(bench.ledger), bench.calls()
    with_prompt(bench, LONGER)
    bench.rows = bench.rows[1:] + rows_of(6)[5:]
    plan_of(bench)
    assert rows_in_all(bench.ledger) == before
    assert bench.calls() == calls
    assert set(bench.states()) == {"t0", "t1", "t2", "t3", "t4"}


def test_before_any_call_the_expected_dollars_are_called_an_assumption(
    make_bench: MakeBench,
) -> None:
    plan = plan_of(make_bench(3))
    assert plan.basis is Basis.ASSUMPTION
    assert {call.usage.output_tokens for call in plan.calls} == {1_500}, "half of the limit"
    assert Decimal(0) < plan.expected_usd < plan.worst_usd


def test_the_worst_case_is_what_is_reserved(make_bench: MakeBench) -> None:
    bench = make_bench(3)
    plan = plan_of(bench)
    bench.submit_and_run()
    with bench.ledger.begin() as connection:
        reserved = connection.execute(
            select(func.sum(spend_rows.c.reserved_usd)).where(spend_rows.c.site == bench.name)
        ).scalar_one()
    assert plan.worst_usd == reserved


def test_after_one_run_a_changed_prompt_costs_what_was_expected(make_bench: MakeBench) -> None:
    bench = make_bench(40)
    bench.submit_and_run()
    first = spent(bench)
    with_prompt(bench, LONGER)
    plan = plan_of(bench)
    assert set(due_of(plan).values()) == {Due.CHANGED_WAY}
    assert (len(plan.today), plan.basis, plan.verdict) == (40, Basis.HISTORY, Verdict.FITS)
    bench.submit_and_run()
    really = spent(bench) - first
    assert bench.billed() == 80
    assert abs(plan.expected_usd - really) / really <= Decimal("0.1")
    assert really < plan.worst_usd


def test_tokens_of_a_longer_prompt_are_counted_from_it(make_bench: MakeBench) -> None:
    bench = make_bench(4)
    bench.submit_and_run()
    with_prompt(bench, LONGER)
    short = plan_of(bench).expected_input_tokens
    with_prompt(bench, LONGER * 10)
    assert plan_of(bench).expected_input_tokens > 3 * short


def test_each_page_is_due_for_a_reason_of_its_own(make_bench: MakeBench) -> None:
    bench = make_bench(6, schedule={"stale_after_days": 30})
    bench.rows = rows_of(5)
    bench.submit_and_run()
    bench.rows = rows_of(6)
    bench.rows[1] = bench.rows[1] | {"river": "Rhine"}
    let_drafts_age(bench, 31, "t2")
    let_drafts_age(bench, 29, "t3")
    plan = plan_of(bench)
    assert due_of(plan) == {"t1": Due.CHANGED_INPUT, "t2": Due.STALE, "t5": Due.NEW}
    assert skipped_of(plan) == dict.fromkeys(("t0", "t3", "t4"), Skipped.UNCHANGED)


def test_a_stale_page_is_made_anew_once_and_is_fresh_then(make_bench: MakeBench) -> None:
    bench = make_bench(2, schedule={"stale_after_days": 30})
    bench.submit_and_run()
    let_drafts_age(bench, 31, "t0")
    assert bench.submit().wanted == 1
    assert due_of(plan_of(bench)) == {"t0": Due.MADE_ANEW}, "it is wanted already"
    bench.run()
    assert bench.billed() == 3
    assert sorted(revision for path, revision in bench.writes()) == [1, 1, 2]
    assert bench.submit().wanted == 0
    assert not plan_of(bench).today
    assert "stale_after_days (30)" in bench.reasons("t0")[0]


def test_asking_for_some_pages_makes_no_stale_page_anew(make_bench: MakeBench) -> None:
    from content_pipeline.operations.submit import submit

    bench = make_bench(2, schedule={"stale_after_days": 30})
    bench.submit_and_run()
    let_drafts_age(bench, 31, "t0", "t1")
    assert submit(bench.worker(), bench.rows, requested_by="test", only=("t0",)).wanted == 0


def test_a_site_that_says_nothing_of_age_keeps_its_pages(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    bench.submit_and_run()
    let_drafts_age(bench, 3_000, "t0")
    assert skipped_of(plan_of(bench)) == {"t0": Skipped.UNCHANGED}


def test_what_failed_waits_or_was_stopped(make_bench: MakeBench) -> None:
    bench = make_bench(4)
    bench.rows = rows_of(4)[:2] + rows_of(4)[3:]
    bench.submit()
    bench.strike("refusal", match={"prompt_contains": "Baden 1"})
    bench.cancel("t3")
    bench.run()
    bench.rows = [*rows_of(4), {**rows_of(1)[0], "id": "t9"}]
    bench.submit()
    bench.make_wait(600)
    plan = plan_of(bench)
    assert not plan.today
    assert skipped_of(plan) == {
        "t0": Skipped.UNCHANGED,
        "t1": Skipped.NEEDS_PERSON,
        "t2": Skipped.WAITS,
        "t3": Skipped.CANCELLED,
        "t9": Skipped.REJECTED,
    }
    bench.make_due()
    assert due_of(plan_of(bench)) == {"t2": Due.NEW}
    repair.retry(bench.ledger, bench.name, "t1", cause="it was a mistake")
    assert due_of(plan_of(bench))["t1"] == Due.RELEASED


def test_an_uncertain_call_is_expected_to_be_recovered_and_may_cost_one_more(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(1)
    bench.submit()
    bench.strike("drop_after", times=1)
    bench.step(until=PageJobState.GENERATION_UNCERTAIN)
    plan = plan_of(bench)
    assert due_of(plan) == {"t0": Due.UNCERTAIN}
    assert plan.expected_usd == 0
    assert plan.worst_usd > 0


@pytest.mark.filterwarnings("ignore:.*DISTINCT ON:DeprecationWarning")
def test_pages_of_a_rolled_back_way_are_left_alone(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    bench.submit_and_run()
    with_prompt(bench, LONGER)
    bench.submit_and_run()
    worker = bench.worker()
    rollback.roll_back(worker, worker.generation_version, cause="too long", by="test")
    bench.run()
    bench.rows = rows_of(2)
    assert skipped_of(plan_of(bench)) == dict.fromkeys(("t0", "t1"), Skipped.ROLLED_BACK)


def test_a_draft_that_waits_for_its_turn_is_told_from_one_that_is_not_paid_for(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(5, schedule={"new_pages_per_day": 2, "drafts_ahead_days": 2})
    plan = plan_of(bench)
    assert due_of(plan) == {f"t{number}": Due.NEW for number in range(5)}
    bench.submit_and_run()
    assert len(bench.writes()) == 2
    plan = plan_of(bench)
    assert not plan.today
    assert sorted(skipped_of(plan).values()) == [Skipped.PUBLISH_RATE] * 3 + [Skipped.UNCHANGED] * 2
    bench.make_due()
    with bench.ledger.begin() as connection:
        yesterday = pages.c.first_public_at - func.make_interval(0, 0, 0, 1)
        connection.execute(
            update(pages).where(pages.c.site == bench.name).values(first_public_at=yesterday)
        )
    plan = plan_of(bench)
    assert [page.reason for page in plan.today] == [Due.WAITED] * 2
    assert plan.expected_usd == 0
    bench.run()
    assert (len(bench.writes()), bench.billed()) == (4, 5)


def test_pages_that_wait_for_money_are_planned_as_soon_as_a_cap_has_room(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(2)
    bench.submit()
    nothing = replace(bench.worker(), day_usd=Decimal(0))
    list(advance(nothing, Selection(site=bench.name)))
    assert set(bench.states().values()) == {"failed_retryable"}
    assert skipped_of(make_plan(nothing, bench.rows)) == dict.fromkeys(("t0", "t1"), Skipped.BUDGET)
    assert due_of(plan_of(bench)) == dict.fromkeys(("t0", "t1"), Due.WAITED)


@pytest.mark.parametrize(
    ("budgets", "verdict", "today"),
    [
        ({"site_day_usd": "5"}, Verdict.FITS, 12),
        ({"site_day_usd": "0.02"}, Verdict.PARTLY, None),
        ({"page_usd": "0.0061", "site_day_usd": "5"}, Verdict.NEVER, 0),
        ({"page_usd": "1", "site_day_usd": "0.0061"}, Verdict.NEVER, 0),
    ],
)
def test_the_verdict_on_the_budget(
    budgets: dict[str, str], verdict: Verdict, today: int | None, make_bench: MakeBench
) -> None:
    plan = plan_of(make_bench(12, budgets=budgets))
    assert plan.verdict is verdict
    assert len(plan.today) + len(plan.later) == 12
    if today is not None:
        assert len(plan.today) == today
    else:
        assert 0 < len(plan.today) < 12
        assert plan.expected_usd < Decimal(budgets["site_day_usd"])


def test_as_many_pages_as_the_plan_says_are_made_on_a_day_with_little_money(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(12, generation={"in_flight": 1})
    bench.submit_and_run()
    little = spent(bench) + Decimal("0.012")
    bench.site = site_of(
        settings_of(bench.name, generation={"in_flight": 1}, budgets={"site_day_usd": str(little)}),
        prompt=LONGER,
    )
    plan = plan_of(bench)
    assert 0 < len(plan.today) < 12
    calls = bench.billed()
    bench.submit()
    for _ in range(12):
        bench.run()
    assert abs((bench.billed() - calls) - len(plan.today)) <= 1


OUTLINE = {
    "type": "object",
    "properties": {"points": {"type": "array", "items": {"type": "string"}}},
    "required": ["points"],
    "additionalProperties": False,
}


def chain_site(bench: Bench, page_prompt: str) -> None:
    bench.changes = {
        "generation": {
            "steps": [
                {"name": "outline", "prompt": "outline.md", "output": "outline.json"},
                {"name": "page", "prompt": "page.md"},
            ]
        }
    }
    bench.site = site_of(
        settings_of(bench.name, **bench.changes),
        files={
            "outline.md": "Outline a page from {{ facts }}",
            "outline.json": json.dumps(OUTLINE),
            "page.md": page_prompt,
        },
    )


def test_only_the_steps_that_a_change_concerns_are_planned(make_bench: MakeBench) -> None:
    bench = make_bench(3)
    chain_site(bench, "Write a page from {{ facts }} along {{ outline }}")
    assert [call.step for call in plan_of(bench).calls] == ["outline", "page"] * 3
    bench.submit_and_run()
    first = spent(bench)
    chain_site(bench, "Write a good page from {{ facts }} along {{ outline }}")
    plan = plan_of(bench)
    assert [call.step for call in plan.calls] == ["page"] * 3
    bench.submit_and_run()
    assert spent(bench) - first <= plan.worst_usd
