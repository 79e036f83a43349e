"""Cost history: the dollars of ``costs``, day by day, and the pages that came of them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import cost_history
from content_pipeline.ledger.cost_history import HISTORY, Window
from content_pipeline.ledger.costs import Dimension, costs, total
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.paying import Call, age, make
from content_pipeline_tests.ledger.wanting import job_in, let_go, moved, wanted
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState

TROUBLED = [Call(end="throttled"), Call(end="uncertain", worst_usd="0.41"), Call(end="ok")]


def seen(ledger: Ledger, days: int = 10) -> Window:
    with ledger.begin() as connection:
        return cost_history.window(connection, days)


def test_a_window_ends_today_and_begins_at_midnight_utc(ledger: Ledger) -> None:
    found = seen(ledger, days=3)
    assert found.days == tuple(found.today - timedelta(days=ago) for ago in (2, 1, 0))
    assert found.now.tzinfo is UTC
    assert found.begins_at == datetime(*found.days[0].timetuple()[:3], tzinfo=UTC)
    assert seen(ledger, days=1).days == (found.today,)


@pytest.mark.parametrize("dimension", HISTORY)
def test_by_any_key_it_agrees_with_the_costs_to_the_last_decimal(
    dimension: Dimension, ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(3))
    make(ledger, site_name, "t0", TROUBLED)
    age(ledger_url, site_name, 2)
    make(ledger, site_name, "t1", [Call(end="bad_output", cost_usd="0.00000001"), Call(end="ok")])
    make(ledger, site_name, "t2", [Call(end="maybe"), Call(end="uncalled")])
    with ledger.begin() as connection:
        history = cost_history.cost_history(connection, site_name, seen(ledger))
        expected = costs(connection, [dimension], site=site_name)
    place = HISTORY.index(dimension)
    keys = sorted({cost.keys[place] for cost in history})
    assert keys == sorted(cost.keys[0] for cost in expected)
    for group in expected:
        own = total([cost for cost in history if cost.keys[place] == group.keys[0]])
        assert (own.settled_usd, own.uncertain_usd, own.reserved_usd, own.attempts) == (
            group.settled_usd,
            group.uncertain_usd,
            group.reserved_usd,
            group.attempts,
        )


def test_what_is_older_than_the_window_is_left_out(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(2))
    make(ledger, site_name, "t0", [Call(end="ok", cost_usd="0.3")])
    age(ledger_url, site_name, 4)
    make(ledger, site_name, "t1", [Call(end="ok", cost_usd="0.1")])
    with ledger.begin() as connection:
        for days, usd in ((4, "0.1"), (5, "0.4")):
            window = cost_history.window(connection, days)
            history = cost_history.cost_history(connection, site_name, window)
            assert total(history).usd == Decimal(usd)
            assert {cost.keys[0] for cost in history} <= {day.isoformat() for day in window.days}


def test_pages_count_on_the_day_they_were_proved(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    other = f"{site_name}_b"
    wanted(ledger, site_name, rows_of(4))
    wanted(ledger, other, rows_of(1))
    job_in(ledger, other, S.PUBLISHED)
    for topic in ("t0", "t1"):
        let_go(ledger, job_in(ledger, site_name, S.PUBLISHED, topic)[1])
    age(ledger_url, site_name, 3)
    let_go(ledger, job_in(ledger, site_name, S.PUBLISHED, "t2")[1])
    job_in(ledger, site_name, S.FAILED_TERMINAL, "t3")
    with ledger.begin() as connection:
        window = cost_history.window(connection, 10)
        found = cost_history.published_by_day(connection, site_name, window)
        assert found == {window.today - timedelta(days=3): 2, window.today: 1}
        short = cost_history.window(connection, 3)
        assert cost_history.published_by_day(connection, site_name, short) == {window.today: 1}


def test_a_page_that_was_put_back_on_the_site_counts_once(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, S.PUBLISHED)
    moved(ledger, job, lease, S.READY_TO_PUBLISH, S.PUBLISHING, S.PUBLISHED)
    with ledger.begin() as connection:
        window = cost_history.window(connection, 2)
        assert cost_history.published_by_day(connection, site_name, window) == {window.today: 1}


def test_pages_are_told_apart_by_how_many_paid_calls_they_took(
    ledger: Ledger, ledger_url: str, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(5))
    make(ledger, site_name, "t0", [Call(end="ok")])
    age(ledger_url, site_name, 20)
    make(ledger, site_name, "t1", TROUBLED)
    make(ledger, site_name, "t2", [Call(end="ok")])
    make(ledger, site_name, "t3", [Call(end="ok"), Call(end="uncalled")])
    make(ledger, site_name, "t4", [Call(end="uncalled")])
    with ledger.begin() as connection:
        window = cost_history.window(connection, 10)
        assert cost_history.calls_per_page(connection, site_name, window) == {1: 2, 3: 1}
