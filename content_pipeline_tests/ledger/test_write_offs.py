"""Write-offs: a call that nobody can settle ends as spent, and no sum of money gets smaller."""

from decimal import Decimal

import pytest
from sqlalchemy import select

from content_pipeline.ledger import health, reports, spend, write_offs
from content_pipeline.ledger.costs import Cost, Dimension, costs
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import budgets
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.ledger.write_offs import WrittenOff
from content_pipeline_tests.ledger.paying import Call, age, lose_call, make
from content_pipeline_tests.ledger.wanting import wanted
from content_pipeline_tests.operations.small_site import rows_of

USD = Decimal
AFTER_DAYS = 30


def write_off(ledger: Ledger, site: str) -> int:
    with ledger.begin() as connection:
        return write_offs.write_off(connection, site, after_days=AFTER_DAYS)


def written_off(ledger: Ledger, site: str) -> WrittenOff:
    with ledger.begin() as connection:
        return write_offs.of_site(connection, site)


def total(ledger: Ledger, site: str) -> Cost:
    with ledger.begin() as connection:
        (found,) = costs(connection, (), site=site)
    return found


def committed(ledger: Ledger, site: str) -> list[Decimal]:
    """What the days' budgets hold, oldest day first."""
    with ledger.begin() as connection:
        scope = spend.site_day_scope(site, "%")
        found = select(budgets.c.committed_usd).where(budgets.c.scope.like(scope))
        return list(connection.execute(found.order_by(budgets.c.scope)).scalars())


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """A site with a lost call, one that failed inside the provider, and good and open ones."""
    wanted(ledger, site_name, rows_of(2))
    make(ledger, site_name, "t0", [Call(end="uncertain", worst_usd="0.4"), Call(end="ok")])
    make(
        ledger,
        site_name,
        "t1",
        [Call(end="maybe", worst_usd="0.2"), Call(end="not_sent"), Call(end="open")],
    )
    return site_name


def test_what_was_uncertain_for_longer_than_the_site_waits_is_counted_as_spent(
    ledger: Ledger, ledger_url: str, site: str
) -> None:
    before, in_budgets = total(ledger, site), committed(ledger, site)
    age(ledger_url, site, AFTER_DAYS)
    assert write_off(ledger, site) == 0, "the last of the days is not over"
    assert written_off(ledger, site) == WrittenOff(calls=0, usd=USD(0))
    age(ledger_url, site, 1)
    assert write_off(ledger, site) == 2
    assert written_off(ledger, site) == WrittenOff(calls=2, usd=USD("0.6"))
    assert write_off(ledger, site) == 0, "once"

    after = total(ledger, site)
    assert after.usd == before.usd, "no dollar came or went"
    assert (before.settled_usd, before.uncertain_usd) == (USD("0.2"), USD("0.6"))
    assert (after.settled_usd, after.uncertain_usd) == (USD("0.8"), USD(0))
    assert after.reserved_usd == before.reserved_usd == USD("0.5"), "the call that is out stays"
    assert committed(ledger, site) == in_budgets
    with ledger.begin() as connection:
        found = health.possible_double_spend(connection, site)
        summed = spend.totals(connection, site)
        (page,) = reports.page_reports(connection, site, ["t0"])
    assert (found.calls, found.usd, found.oldest_at) == (0, 0, None)
    assert (summed.settled_usd, summed.uncertain_calls) == (USD("0.8"), 0)
    assert (page.usd, page.uncertain_usd) == (USD("0.6"), 0)


def test_by_class_it_stays_what_it_was(ledger: Ledger, ledger_url: str, site: str) -> None:
    age(ledger_url, site, AFTER_DAYS + 1)
    write_off(ledger, site)
    with ledger.begin() as connection:
        found = {cost.keys[0]: cost for cost in costs(connection, (Dimension.CLASS,), site=site)}
    assert found["uncertain"].settled_usd == USD("0.4")
    assert found["transient"].settled_usd == USD("0.2")


def test_what_is_still_asked_about_is_not_given_up(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    lose_call(ledger, site_name, "t0", "0.4")
    age(ledger_url, site_name, 400)
    assert write_off(ledger, site_name) == 0


def test_another_site_s_calls_are_its_own(ledger: Ledger, ledger_url: str, site: str) -> None:
    age(ledger_url, site, 400)
    assert write_off(ledger, f"{site}x") == 0
    assert total(ledger, site).uncertain_usd == USD("0.6")


@pytest.mark.parametrize(("cost", "state"), [("0.1", "settled"), (None, "released")])
def test_evidence_that_comes_later_settles_it_all_the_same(
    cost: str | None, state: str, ledger: Ledger, ledger_url: str, site: str
) -> None:
    age(ledger_url, site, AFTER_DAYS + 1)
    write_off(ledger, site)
    with ledger.begin() as connection:
        attempt_id = connection.execute(
            select(spend_rows.c.attempt_id).where(
                spend_rows.c.site == site, spend_rows.c.settled_usd == USD("0.4")
            )
        ).scalar_one()
        if cost is None:
            spend.release(connection, attempt_id)
        else:
            spend.settle(connection, attempt_id, USD(cost))
        row = connection.execute(
            select(spend_rows).where(spend_rows.c.attempt_id == attempt_id)
        ).one()
    assert (row.state, row.settled_usd) == (state, USD(cost or 0))
    assert written_off(ledger, site) == WrittenOff(calls=1, usd=USD("0.2"))
