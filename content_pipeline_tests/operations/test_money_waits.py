"""Pages without money: they wait, come back when there is some, or stop when there never is."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import func, select, update

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import page_jobs, seconds_from_now, transitions
from content_pipeline.operations.lane import advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel

S = PageJobState


def bench_of(make_bench: MakeBench, towns: int = 1) -> tuple[Bench, ScriptedModel]:
    model = ScriptedModel()
    bench = make_bench(towns=towns, model=model, cms=ScriptedCMS())
    bench.submit()
    return bench, model


def worst_case(bench: Bench) -> Decimal:
    """What a call of the site may cost at most, as a page that found no money noted it."""
    bench.step(day_usd=Decimal(0))
    with bench.ledger.begin() as connection:
        noted: Decimal = connection.execute(
            select(page_jobs.c.waits_for_usd).where(
                page_jobs.c.page_job_id == bench.report().page_job_id
            )
        ).scalar_one()
    return noted


def moves(bench: Bench) -> int:
    """All moves of all pages of the site."""
    with bench.ledger.begin() as connection:
        count: int = connection.execute(
            select(func.count())
            .select_from(transitions.join(page_jobs))
            .where(page_jobs.c.site == bench.name)
        ).scalar_one()
    return count


def test_a_page_comes_back_as_soon_as_the_cap_is_raised(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench)
    usd = worst_case(bench)
    assert bench.states() == {"t0": "failed_retryable"}
    assert not bench.is_due()
    bench.change(budgets={"site_day_usd": usd})
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 1


def test_a_day_with_room_for_some_takes_those_and_lets_the_others_wait(
    make_bench: MakeBench,
) -> None:
    bench, model = bench_of(make_bench, 5)
    usd = worst_case(bench) * Decimal("1.05")
    nothing = replace(bench.worker(), day_usd=Decimal(0))
    list(advance(nothing, Selection(site=bench.name)))
    assert set(bench.states().values()) == {"failed_retryable"}
    bench.change(budgets={"site_day_usd": 2 * usd})
    bench.run()
    assert Counter(bench.states().values()) == {"failed_retryable": 3, "published": 2}
    assert len(model.sent) == 2


def test_while_nothing_fits_nothing_moves(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 3)
    nothing = replace(bench.worker(), day_usd=Decimal(0))
    list(advance(nothing, Selection(site=bench.name)))
    before = moves(bench)
    for _ in range(3):
        assert list(advance(nothing, Selection(site=bench.name))) == []
    assert (moves(bench), model.sent) == (before, [])


@pytest.mark.parametrize("whose", ["the site's", "all sites'"])
def test_a_call_above_a_whole_days_cap_is_put_by_with_the_way_out(
    whose: str, make_bench: MakeBench
) -> None:
    bench, model = bench_of(make_bench)
    if whose == "the site's":
        bench.change(budgets={"site_day_usd": "0.000001"})
        bench.run()
        key = "budgets.site_day_usd"
    else:
        runtime = replace(bench.worker(), day_usd=Decimal("0.000001"))
        list(advance(runtime, Selection(site=bench.name)))
        key = "CONTENT_PIPELINE_DAY_USD"
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, FailureClass.BUDGET)
    message = report.failure_message or ""
    assert f"raise {key}, or lower max_output_tokens" in message
    assert "$0.000001)" in message
    assert model.sent == []


def test_a_page_does_not_wait_for_a_day_that_begins_after_its_deadline(
    make_bench: MakeBench,
) -> None:
    bench, model = bench_of(make_bench)
    with bench.ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == bench.name)
            .values(deadline_at=seconds_from_now(0))
        )
    bench.step(day_usd=Decimal(0))
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, FailureClass.BUDGET)
    assert "the page's deadline has passed" in (report.failure_message or "")
    assert "wait for the next day; that is in" in (report.failure_message or "")
    assert model.sent == []


def test_a_page_that_somebody_wants_cancelled_is_not_put_before_a_person(
    make_bench: MakeBench,
) -> None:
    bench, model = bench_of(make_bench)
    bench.change(budgets={"page_usd": "0.000001"})
    bench.cancel()
    bench.step()
    assert bench.states() == {"t0": "cancelled"}
    assert model.sent == []
