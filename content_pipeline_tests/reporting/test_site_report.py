"""A report gathered from the ledger: the same dollars everywhere, and the site's limits."""

from decimal import Decimal

from content_pipeline.core.health import HealthCheck, HealthSettings
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.costs import Dimension, costs, total
from content_pipeline.ledger.database import Ledger
from content_pipeline.reporting.plan import planned
from content_pipeline.reporting.site_report import SiteReport, gather
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.paying import Call, age, make
from content_pipeline_tests.ledger.wanting import job_in, wanted
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = HealthCheck


def gathered(ledger: Ledger, site: str, **health: object) -> SiteReport:
    settings = settings_of(site, health=health)
    with ledger.begin() as connection:
        return gather(connection, settings)


def test_a_site_at_work_is_told_to_the_cent(make_bench: MakeBench, ledger: Ledger) -> None:
    bench = make_bench(towns=3)
    bench.submit()
    bench.run()
    with ledger.begin() as connection:
        report = gather(connection, bench.site.settings)
        spent = total(costs(connection, [Dimension.SITE], site=bench.name))
    assert report.costs.usd == spent.usd > 0
    assert report.costs.outlay.today_usd == spent.usd
    assert report.costs.pages == 3
    assert report.costs.page_usd == spent.usd / 3
    assert report.costs.calls_per_page == {1: 3}
    assert report.health.queue.due == 0
    assert all(verdict.passed for verdict in report.verdicts.values())
    assert set(report.verdicts) == set(HealthCheck)


def test_groups_of_any_key_add_up_to_all_dollars(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    make(ledger, site_name, "t0", [Call(end="bad_output"), Call(end="ok")])
    make(ledger, site_name, "t1", [Call(end="uncertain"), Call(end="open")])
    found = gathered(ledger, site_name).costs
    for dimension in (None, Dimension.CLASS, Dimension.TEMPLATE, Dimension.MODEL):
        days = found.by_day(dimension).values()
        assert sum(sum(amounts.values()) for amounts in days) == found.usd


def test_the_cost_of_a_page_is_held_against_a_week_and_not_the_whole_window(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(3))
    make(ledger, site_name, "t0", [Call(end="ok", cost_usd="0.3")])
    age(ledger_url, site_name, 7)
    make(ledger, site_name, "t1", [Call(end="ok", cost_usd="0.1"), Call(end="open")])
    job_in(ledger, site_name, PageJobState.PUBLISHED, "t2")
    outlay = gathered(ledger, site_name).costs.outlay
    assert outlay.recent_usd == Decimal("0.1")  # what is out may yet come to less
    assert outlay.today_usd == Decimal("0.6")
    assert outlay.recent_pages == 1


def test_each_limit_of_the_site_file_is_heeded(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    make(ledger, site_name, "t0", [Call(end="ok", cost_usd="0.3")])
    assert gathered(ledger, site_name).verdicts[S.QUEUE_AGE].passed
    strict = gathered(
        ledger, site_name, queue_age_s=0.000001, day_budget_share=0.001, history_days=7
    )
    assert [check for check, verdict in strict.verdicts.items() if not verdict.passed] == [
        S.QUEUE_AGE,
        S.COST,
    ]
    assert len(strict.seen.days) == 7


def test_the_plan_is_what_the_site_file_says(site_name: str) -> None:
    settings: SiteSettings = settings_of(
        site_name, budgets={"site_day_usd": "3"}, health={"expected_page_usd": "0.004"}
    )
    assert (planned(settings).day_usd, planned(settings).page_usd) == (3, Decimal("0.004"))
    assert planned(settings_of(site_name)).page_usd is None
    assert settings_of(site_name).health == HealthSettings()
