"""The budget of all sites together: one cap, whoever spends, from however many processes."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from content_pipeline.config import DAY_BUDGET_VARIABLE
from content_pipeline.core.errors import BudgetExhausted, CapTooSmall, PageBudgetExhausted
from content_pipeline.ledger import migrate, spend
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import budgets
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.ledger.spend import Caps
from content_pipeline_tests.ledger.conftest import MakeDatabase
from content_pipeline_tests.ledger.racing import Order, race
from content_pipeline_tests.ledger.wanting import current_job, leased, reserved, wanted
from content_pipeline_tests.operations.small_site import rows_of

USD = Decimal
RACERS = 32
ROOT = Path(__file__).parents[2]


@pytest.fixture
def own_ledger(make_database: MakeDatabase) -> Iterator[Ledger]:
    """A ledger where nothing was spent: the budget of all sites is everybody's."""
    engine = make_database()
    migrate.upgrade(engine)
    ledger = Ledger(create_ledger_engine(engine.url.render_as_string(hide_password=False)))
    yield ledger
    ledger.dispose()


def caps(cap: str | None, page: str = "1000", day: str = "1000") -> Caps:
    return Caps(
        page_usd=USD(page),
        site_day_usd=USD(day),
        global_day_usd=None if cap is None else USD(cap),
    )


def committed(ledger: Ledger) -> Decimal:
    with ledger.begin() as connection:
        total: Decimal = connection.execute(
            select(func.coalesce(func.sum(budgets.c.committed_usd), 0)).where(
                budgets.c.scope.like("global:day:%")
            )
        ).scalar_one()
    return total


def summed(ledger: Ledger) -> Decimal:
    with ledger.begin() as connection:
        total: Decimal = connection.execute(
            select(
                func.coalesce(
                    func.sum(func.coalesce(spend_rows.c.settled_usd, spend_rows.c.reserved_usd)), 0
                )
            )
        ).scalar_one()
    return total


def both_scopes_agree(ledger: Ledger) -> None:
    """Every row of the budgets is the sum over spend, site by site and all together."""
    assert committed(ledger) == summed(ledger)
    with ledger.begin() as connection:
        of_sites: Decimal = connection.execute(
            select(func.sum(budgets.c.committed_usd)).where(budgets.c.scope.like("site:%"))
        ).scalar_one()
    assert of_sites == summed(ledger)


def test_two_sites_share_it(own_ledger: Ledger) -> None:
    jobs = []
    for name in ("one", "other"):
        wanted(own_ledger, name, rows_of(1))
        jobs.append(leased(own_ledger, name)[0])
    reserved(own_ledger, jobs[0], 1, "0.6", caps("1"))
    with pytest.raises(BudgetExhausted, match=rf"all sites together.*{DAY_BUDGET_VARIABLE}") as no:
        reserved(own_ledger, jobs[1], 1, "0.5", caps("1"))
    assert not isinstance(no.value, PageBudgetExhausted)
    reserved(own_ledger, jobs[1], 1, "0.4", caps("1"))
    both_scopes_agree(own_ledger)
    assert committed(own_ledger) == USD("1.0")


def test_a_refusal_leaves_the_sites_own_budget_untouched(own_ledger: Ledger) -> None:
    wanted(own_ledger, "one", rows_of(1))
    job, _ = leased(own_ledger, "one")
    reserved(own_ledger, job, 1, "0.1", caps("0.4"))
    with pytest.raises(BudgetExhausted, match="all sites"):
        reserved(own_ledger, job, 2, "0.35", caps("0.4"))
    assert committed(own_ledger) == summed(own_ledger) == USD("0.1")
    with pytest.raises(BudgetExhausted, match="the site's cap"):
        reserved(own_ledger, job, 2, "0.35", caps("0.5", day="0.4"))
    reserved(own_ledger, job, 2, "0.3", caps("0.4"))
    both_scopes_agree(own_ledger)


def test_a_call_above_the_whole_cap_would_wait_for_ever(own_ledger: Ledger) -> None:
    wanted(own_ledger, "one", rows_of(1))
    job, _ = leased(own_ledger, "one")
    with pytest.raises(CapTooSmall, match=rf"{DAY_BUDGET_VARIABLE} allows all sites together"):
        reserved(own_ledger, job, 1, "0.5", caps("0.4"))
    assert committed(own_ledger) == summed(own_ledger) == 0


def test_the_room_of_a_day_is_the_smaller_of_both_caps(own_ledger: Ledger) -> None:
    jobs = []
    for name in ("one", "other"):
        wanted(own_ledger, name, rows_of(1))
        jobs.append(leased(own_ledger, name)[0])
    reserved(own_ledger, jobs[0], 1, "0.6")
    with own_ledger.begin() as connection:
        rooms = [
            spend.room_usd(connection, "other", allowed)
            for allowed in (caps("1"), caps("1", day="0.3"), caps("0.5"), caps("0"), caps(None))
        ]
    assert rooms[:4] == [USD("0.4"), USD("0.3"), 0, 0]
    assert rooms[4] == caps(None).site_day_usd


def test_a_cap_of_nothing_allows_nothing(own_ledger: Ledger) -> None:
    wanted(own_ledger, "one", rows_of(1))
    job, _ = leased(own_ledger, "one")
    with pytest.raises(BudgetExhausted) as refused:
        reserved(own_ledger, job, 1, "0.00000001", caps("0"))
    # Who pays nothing for a while means to go on: pages wait, and none is given up.
    assert type(refused.value) is BudgetExhausted


def test_what_was_spent_without_a_cap_counts_once_there_is_one(own_ledger: Ledger) -> None:
    wanted(own_ledger, "one", rows_of(1))
    job, _ = leased(own_ledger, "one")
    reserved(own_ledger, job, 1, "0.6", caps(None))
    with pytest.raises(BudgetExhausted):
        reserved(own_ledger, job, 2, "0.5", caps("1"))


def test_every_end_of_a_call_reaches_both_budgets(own_ledger: Ledger) -> None:
    wanted(own_ledger, "one", rows_of(1))
    job, _ = leased(own_ledger, "one")
    ends: dict[str, Callable[[str], None]] = {}
    with own_ledger.begin() as connection:
        ends = {
            "0.1": lambda call: spend.settle(connection, call, USD("0.1")),
            "0.2": lambda call: spend.release(connection, call),
            "0.3": lambda call: spend.settle_at_worst_case(connection, call),
            "0.4": lambda call: spend.keep_as_uncertain(connection, call),
        }
        calls = {
            usd: reserved(own_ledger, job, number, usd, caps("1"))
            for number, usd in enumerate(ends, start=1)
        }
        for usd, end in ends.items():
            end(calls[usd])
    both_scopes_agree(own_ledger)
    assert committed(own_ledger) == USD("0.8")


# --- raced --------------------------------------------------------------------------------------


@contextmanager
def watched(ledger: Ledger) -> Iterator[list[tuple[Decimal, Decimal]]]:
    """What budget and rows hold, as one snapshot, again and again."""
    seen: list[tuple[Decimal, Decimal]] = []
    over = threading.Event()
    both = text(
        "SELECT (SELECT coalesce(sum(committed_usd), 0) FROM content_pipeline.budgets "
        "WHERE scope LIKE 'global:%'), "
        "(SELECT coalesce(sum(coalesce(settled_usd, reserved_usd)), 0) FROM content_pipeline.spend)"
    )

    def watch() -> None:
        while not over.wait(0.002):
            with ledger.begin() as connection:
                seen.append(tuple(connection.execute(both).one()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def order_for(ledger: Ledger, racers: int) -> Order:
    """Racers on four sites, each with a page job of its own, for ten dollars."""
    sites = [f"site_{number}" for number in range(4)]
    for site in sites:
        wanted(ledger, site, rows_of(racers // 4))
    jobs = [
        (site, current_job(ledger, site, f"t{number}")["page_job_id"])
        for site in sites
        for number in range(racers // 4)
    ]
    url = ledger.engine.url.render_as_string(hide_password=False)
    return Order(url=url, jobs=jobs, worst_usd="0.05", cost_usd="0.04", cap_usd="10")


def assert_kept_and_used(
    ledger: Ledger, made: int, seen: list[tuple[Decimal, Decimal]], order: Order
) -> None:
    cap, cost = USD(order["cap_usd"]), USD(order["cost_usd"])
    assert len(seen) > 20
    for in_budget, in_rows in seen:
        assert in_budget == in_rows <= cap
    fits = int((cap - USD(order["worst_usd"])) / cost) + 1
    assert 0.95 * fits <= made <= fits
    assert committed(ledger) == made * cost
    both_scopes_agree(ledger)


def test_thirty_two_threads_use_it_up_and_never_pass_it(own_ledger: Ledger) -> None:
    order = order_for(own_ledger, RACERS)
    with watched(own_ledger) as seen, ThreadPoolExecutor(RACERS) as pool:
        made = list(pool.map(lambda racer: race(own_ledger, order, racer), range(RACERS)))
    assert_kept_and_used(own_ledger, sum(made), seen, order)


@pytest.mark.parametrize("processes", [16, 64])
def test_many_processes_use_it_up_and_never_pass_it(processes: int, own_ledger: Ledger) -> None:
    order = order_for(own_ledger, processes)
    with watched(own_ledger) as seen:
        done = subprocess.run(
            [sys.executable, "-m", "content_pipeline_tests.ledger.racing"],
            cwd=ROOT,
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=True,
        )
    result = json.loads(done.stdout)
    assert result["statuses"] == [0] * processes, done.stderr
    assert len(result["made"]) == processes
    assert_kept_and_used(own_ledger, sum(result["made"]), seen, order)


def test_a_ledger_from_before_begins_with_what_it_had_spent(make_database: MakeDatabase) -> None:
    engine = make_database()
    with engine.begin() as connection:
        migrate.run_migrations(connection, "0005")
        connection.execute(text("SET search_path = content_pipeline"))
        for statement in (
            "INSERT INTO sites (site, title, base_url, owner) VALUES ('s', 's', 's', 's')",
            "INSERT INTO topics (site, topic_key, name, row_number, status, input_hash) "
            "VALUES ('s', 't', 't', 1, 'active', 'h')",
            "INSERT INTO pages (page_id, site, path, topic_key) VALUES ('p', 's', '/', 't')",
            "INSERT INTO page_jobs (page_job_id, site, topic_key, page_id, state, input_hash, "
            "input_columns, generation_version, owner, requested_by) "
            "VALUES ('j', 's', 't', 'p', 'queued', 'h', '{}', 'v', '', '')",
            "INSERT INTO transitions (page_job_id, sequence, to_state, why, worker) "
            "VALUES ('j', 1, 'queued', 'w', 'w')",
            "INSERT INTO spend (attempt_id, site, page_job_id, day, state, reserved_usd, "
            "settled_usd) VALUES ('a', 's', 'j', '2026-01-01', 'settled', 2, 0.5), "
            "('b', 's', 'j', '2026-01-01', 'uncertain', 1, NULL), "
            "('c', 's', 'j', '2026-01-02', 'reserved', 3, NULL)",
        ):
            connection.execute(text(statement))
    migrate.upgrade(engine)
    with engine.connect() as connection:
        rows = connection.execute(
            select(budgets.c.scope, budgets.c.committed_usd).order_by(budgets.c.scope)
        ).all()
    assert [tuple(row) for row in rows] == [
        ("global:day:2026-01-01", USD("1.5")),
        ("global:day:2026-01-02", USD("3")),
    ]
