"""Spend: caps hold under any number of workers, and every dollar stands in one row."""

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from content_pipeline.core.errors import BudgetExhausted, CapTooSmall, PageBudgetExhausted
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.ledger import attempts, spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import AttemptKind, budgets
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.ledger.spend import Caps
from content_pipeline_tests.ledger.wanting import (
    AMPLE,
    job_in,
    leased,
    moved,
    reserved,
    rows_where,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
USD = Decimal


@pytest.fixture
def job(ledger: Ledger, site_name: str) -> PageJob:
    wanted(ledger, site_name, rows_of(1))
    return leased(ledger, site_name)[0]


def caps(page: str = "1000", day: str = "1000") -> Caps:
    return Caps(page_usd=USD(page), site_day_usd=USD(day))


def committed(ledger: Ledger, site: str) -> Decimal:
    """What the budget row of the site's day holds."""
    with ledger.begin() as connection:
        total: Decimal = connection.execute(
            select(func.coalesce(func.sum(budgets.c.committed_usd), 0)).where(
                budgets.c.scope.like(f"site:{site}:day:%")
            )
        ).scalar_one()
    return total


def summed(ledger: Ledger, site: str) -> Decimal:
    """What the spend rows of the site add up to."""
    rows = rows_where(ledger, spend_rows, site=site)
    return sum(
        (row["reserved_usd"] if row["settled_usd"] is None else row["settled_usd"] for row in rows),
        USD(0),
    )


def test_a_reservation_is_committed_to_its_day(ledger: Ledger, job: PageJob) -> None:
    reserved(ledger, job, 1, "0.25")
    (row,) = rows_where(ledger, spend_rows, site=job.site)
    assert (row["state"], row["reserved_usd"], row["settled_usd"]) == (
        "reserved",
        USD("0.25"),
        None,
    )
    assert committed(ledger, job.site) == USD("0.25")


def test_reserving_an_attempt_again_reserves_nothing(ledger: Ledger, job: PageJob) -> None:
    reserved(ledger, job, 1, "0.25", caps(page="0.3", day="0.3"))
    reserved(ledger, job, 1, "0.25", caps(page="0.3", day="0.3"))
    assert committed(ledger, job.site) == USD("0.25")


def test_a_reservation_that_was_given_back_is_made_anew(ledger: Ledger, job: PageJob) -> None:
    identifier = reserved(ledger, job, 1, "0.25")
    with ledger.begin() as connection:
        spend.release(connection, identifier)
    assert committed(ledger, job.site) == 0
    with pytest.raises(BudgetExhausted):
        reserved(ledger, job, 1, "0.25", caps(day="0.2"))
    assert committed(ledger, job.site) == 0
    reserved(ledger, job, 1, "0.3")
    (row,) = rows_where(ledger, spend_rows, site=job.site)
    assert (row["state"], row["settled_usd"]) == ("reserved", None)
    assert committed(ledger, job.site) == summed(ledger, job.site) == USD("0.3")


@pytest.mark.parametrize("worst_case", ["0.00000001", "0.000000001", "1.123456789"])
def test_a_fraction_of_the_smallest_amount_is_rounded_up(
    worst_case: str, ledger: Ledger, job: PageJob
) -> None:
    reserved(ledger, job, 1, worst_case)
    assert USD(worst_case) <= committed(ledger, job.site) < USD(worst_case) + USD("0.00000001")


def test_the_cap_of_a_page_counts_all_its_calls_at_their_worst(
    ledger: Ledger, job: PageJob
) -> None:
    first = reserved(ledger, job, 1, "0.4", caps(page="1"))
    reserved(ledger, job, 2, "0.6", caps(page="1"))
    with pytest.raises(PageBudgetExhausted, match=r"raise budgets\.page_usd"):
        reserved(ledger, job, 3, "0.00000001", caps(page="1"))
    with ledger.begin() as connection:
        spend.settle(connection, first, USD("0.1"))
    reserved(ledger, job, 3, "0.3", caps(page="1"))
    with pytest.raises(PageBudgetExhausted):
        reserved(ledger, job, 4, "0.1", caps(page="1"))
    assert committed(ledger, job.site) == USD("1")


def test_a_refused_reservation_leaves_no_trace(ledger: Ledger, job: PageJob) -> None:
    reserved(ledger, job, 1, "0.2", caps(day="0.4"))
    with pytest.raises(BudgetExhausted, match=r"pass the site's cap of \$0\.4") as refused:
        reserved(ledger, job, 2, "0.3", caps(day="0.4"))
    assert type(refused.value) is BudgetExhausted, "a new day may help"
    assert len(rows_where(ledger, spend_rows, site=job.site)) == 1
    reserved(ledger, job, 2, "0.2", caps(day="0.4"))
    with pytest.raises(BudgetExhausted):
        reserved(ledger, job, 3, "0.00000001", caps(day="0.4"))
    assert committed(ledger, job.site) == USD("0.4")


def test_a_call_above_a_whole_days_cap_is_told_apart_from_a_spent_day(
    ledger: Ledger, job: PageJob
) -> None:
    with pytest.raises(CapTooSmall, match=r"could cost \$0\.3.*budgets\.site_day_usd.*\(\$0\.2\)"):
        reserved(ledger, job, 1, "0.3", caps(day="0.2"))
    assert rows_where(ledger, spend_rows, site=job.site) == []
    reserved(ledger, job, 1, "0.2", caps(day="0.2"))


@pytest.mark.parametrize(
    ("more", "allowed", "told"),
    [
        ("0.00000002", caps(page="0.00000001"), ["$0.00000002", "$0.00000001"]),
        ("0.00000002", caps(day="0.00000001"), ["$0.00000002", "($0.00000001)"]),
        ("0.00000001", caps(day="0.00000001"), ["$0.00000001,", "cap of $0.00000001 for"]),
    ],
)
def test_the_smallest_amounts_are_written_out(
    more: str, allowed: Caps, told: list[str], ledger: Ledger, job: PageJob
) -> None:
    reserved(ledger, job, 1, "0.00000001")
    with pytest.raises(BudgetExhausted) as refused:
        reserved(ledger, job, 2, more, allowed)
    for amount in told:
        assert amount in str(refused.value)
    assert "E-" not in str(refused.value)


def test_the_room_of_a_day_is_what_is_not_committed(ledger: Ledger, job: PageJob) -> None:
    def room(allowed: Caps) -> Decimal:
        with ledger.begin() as connection:
            return spend.room_usd(connection, job.site, allowed)

    assert room(caps(day="0.5")) == USD("0.5")
    first = reserved(ledger, job, 1, "0.3")
    assert room(caps(day="0.5")) == USD("0.2")
    assert room(caps(day="0.1")) == 0
    with ledger.begin() as connection:
        spend.settle(connection, first, USD("0.05"))
    assert room(caps(day="0.5")) == USD("0.45")


def test_the_cap_of_the_day_is_never_passed_by_thirty_two_threads(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(32))
    jobs = [leased(ledger, site_name, f"t{number}")[0] for number in range(32)]
    cap = USD("1")
    highest: list[Decimal] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            highest.append(summed(ledger, site_name))
            highest.append(committed(ledger, site_name))

    def spend_it(job: PageJob, numbers: Iterable[int] = range(1, 9)) -> int:
        made = 0
        for number in numbers:
            try:
                identifier = reserved(ledger, job, number, "0.07", caps(day="1"))
            except BudgetExhausted:
                continue
            made += 1
            with ledger.begin() as connection:
                spend.settle(connection, identifier, USD("0.01"))
        return made

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(32) as pool:
            made = sum(pool.map(spend_it, jobs))
    finally:
        over.set()
        watcher.join()
    assert max(highest) <= cap
    assert max(highest) > USD("0.5")
    assert 30 < made <= 94
    # Alone, one gets as far as any could: 0.94 settled leaves no room for another 0.07.
    made += spend_it(jobs[0], range(9, 75))
    assert made == 94
    assert committed(ledger, site_name) == summed(ledger, site_name) == USD("0.94")


@pytest.mark.parametrize(
    "to", sorted(to for source, to in MOVES if source is S.RESERVED and to is not S.GENERATING)
)
def test_a_job_that_leaves_before_its_call_gives_the_money_back(
    to: PageJobState, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, S.RESERVED)
    reserved(ledger, job, 1, "0.25")
    moved(ledger, job, lease, to)
    (row,) = rows_where(ledger, spend_rows, site=site_name)
    assert (row["state"], row["settled_usd"]) == ("released", 0)
    assert committed(ledger, site_name) == 0


def test_a_job_that_goes_on_to_its_call_keeps_the_money(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, S.RESERVED)
    reserved(ledger, job, 1, "0.25")
    moved(ledger, job, lease, S.GENERATING)
    assert committed(ledger, site_name) == USD("0.25")


def test_settling_frees_the_rest_and_may_come_twice(ledger: Ledger, job: PageJob) -> None:
    identifier = reserved(ledger, job, 1, "0.5")
    for cost in ("0.2", "0.3"):
        with ledger.begin() as connection:
            spend.settle(connection, identifier, USD(cost))
        assert committed(ledger, job.site) == summed(ledger, job.site) == USD(cost)


def test_a_call_without_a_price_stays_at_its_worst_case(ledger: Ledger, job: PageJob) -> None:
    identifier = reserved(ledger, job, 1, "0.5")
    with ledger.begin() as connection:
        spend.settle_at_worst_case(connection, identifier)
    (row,) = rows_where(ledger, spend_rows, site=job.site)
    assert (row["state"], row["settled_usd"]) == ("settled", USD("0.5"))


def test_an_uncertain_call_keeps_its_worst_case_until_somebody_knows(
    ledger: Ledger, job: PageJob
) -> None:
    first, second = reserved(ledger, job, 1, "0.5"), reserved(ledger, job, 2, "0.4")
    with ledger.begin() as connection:
        spend.keep_as_uncertain(connection, first)
        spend.keep_as_uncertain(connection, second)
        totals = spend.totals(connection, job.site)
    assert (totals.uncertain_usd, totals.uncertain_calls) == (USD("0.9"), 2)
    assert totals.reserved_usd == totals.settled_usd == 0
    assert committed(ledger, job.site) == USD("0.9")
    with ledger.begin() as connection:
        spend.settle(connection, first, USD("0.1"))
        spend.release(connection, second)
        totals = spend.totals(connection, job.site)
    assert totals.settled_usd == USD("0.1")
    assert totals.uncertain_usd == totals.uncertain_calls == 0
    assert committed(ledger, job.site) == USD("0.1")


def test_what_is_settled_does_not_become_uncertain(ledger: Ledger, job: PageJob) -> None:
    identifier = reserved(ledger, job, 1, "0.5")
    with ledger.begin() as connection:
        spend.settle(connection, identifier, USD("0.1"))
        spend.keep_as_uncertain(connection, identifier)
    (row,) = rows_where(ledger, spend_rows, site=job.site)
    assert row["state"] == "settled"


def test_a_new_day_begins_within_a_day(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        assert 0 < spend.seconds_to_next_day(connection) <= 86_400


def test_money_is_counted_per_site(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    wanted(ledger, f"{site_name}_b", rows_of(1))
    for name, usd in ((site_name, "0.5"), (f"{site_name}_b", "0.7")):
        reserved(ledger, job_in(ledger, name, PageJobState.QUEUED)[0], 1, usd, caps(day="0.8"))
    assert committed(ledger, site_name) == USD("0.5")
    assert committed(ledger, f"{site_name}_b") == USD("0.7")


AMOUNTS = st.decimals(min_value=0, max_value=2, places=8, allow_nan=False, allow_infinity=False)
ACTIONS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["reserve", "settle", "worst", "release", "uncertain"]),
        AMOUNTS,
    ),
    max_size=12,
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(actions=ACTIONS, page_cap=AMOUNTS)
def test_the_budget_is_always_the_sum_of_the_rows(
    actions: list[tuple[int, str, Decimal]], page_cap: Decimal, ledger: Ledger, job: PageJob
) -> None:
    """Whatever happens to three attempts, in whatever order and however often."""
    known = {row["attempt_id"] for row in rows_where(ledger, spend_rows, site=job.site)}
    for number, action, amount in actions:
        identifier = attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number)
        if action == "reserve":
            try:
                reserved(
                    ledger,
                    job,
                    number,
                    str(amount),
                    Caps(page_usd=page_cap, site_day_usd=AMPLE.site_day_usd),
                )
                known.add(identifier)
            except PageBudgetExhausted:
                assert summed(ledger, job.site) + amount > page_cap
        elif identifier in known:
            with ledger.begin() as connection:
                match action:
                    case "settle":
                        spend.settle(connection, identifier, amount)
                    case "worst":
                        spend.settle_at_worst_case(connection, identifier)
                    case "release":
                        spend.release(connection, identifier)
                    case _:
                        spend.keep_as_uncertain(connection, identifier)
        with ledger.begin() as connection:
            totals = spend.totals(connection, job.site)
        assert committed(ledger, job.site) == summed(ledger, job.site)
        assert committed(ledger, job.site) == (
            totals.settled_usd + totals.reserved_usd + totals.uncertain_usd
        )
