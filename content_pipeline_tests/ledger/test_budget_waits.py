"""Pages that wait for a budget: woken in order as far as there is room, else left alone."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from sqlalchemy import update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import budget_waits, jobs, spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import page_jobs
from content_pipeline.ledger.spend import Caps
from content_pipeline_tests.ledger.wanting import leased, let_go, reserved, rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
USD = Decimal
HOUR_S = 3600.0


def caps(day: str, everything: str | None = None) -> Caps:
    return Caps(
        page_usd=USD(1),
        site_day_usd=USD(day),
        global_day_usd=None if everything is None else USD(everything),
    )


def let_wait(
    ledger: Ledger,
    site: str,
    topic: str,
    usd: str | None,
    *,
    failure_class: FailureClass = FailureClass.BUDGET,
    wait_s: float = HOUR_S,
) -> None:
    """Let the topic's page wait for a budget that would allow it ``usd``."""
    job, lease = leased(ledger, site, topic)
    failure = Failure(failure_class=failure_class, message="as scripted")
    with ledger.fenced(lease) as connection:
        if usd is not None:
            budget_waits.note(connection, job.page_job_id, USD(usd))
        jobs.move(connection, job, S.FAILED_RETRYABLE, lease=lease, failure=failure, wait_s=wait_s)
    let_go(ledger, lease)


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """Three pages that wait, the later the longer, for 0.2, 0.3 and 0.4 dollars."""
    wanted(ledger, site_name, rows_of(4))
    for number, usd in enumerate(("0.2", "0.3", "0.4")):
        let_wait(ledger, site_name, f"t{number}", usd, wait_s=HOUR_S + number)
    return site_name


def wake(
    ledger: Ledger, site: str, allowed: Caps, topics: Sequence[str] | None = None
) -> list[str]:
    """The topics that are woken; as many as is told."""
    before = waiting(ledger, site)
    selection = Selection(site=site, topics=None if topics is None else tuple(topics))
    with ledger.begin() as connection:
        count = budget_waits.wake(connection, selection, allowed)
    woken = [topic for topic in before if topic not in waiting(ledger, site)]
    assert len(woken) == count
    return woken


def waiting(ledger: Ledger, site: str) -> list[str]:
    found = []
    for row in rows_where(ledger, page_jobs, site=site, state="failed_retryable"):
        with ledger.begin() as connection:
            if not jobs.load(connection, row["page_job_id"]).is_due:
                found.append(row["topic_key"])
    return sorted(found)


@pytest.mark.parametrize(
    ("day", "woken"),
    [
        ("0.1", []),
        ("0.19999999", []),
        ("0.2", ["t0"]),
        ("0.49", ["t0"]),
        ("0.5", ["t0", "t1"]),
        ("0.9", ["t0", "t1", "t2"]),
        ("50", ["t0", "t1", "t2"]),
    ],
)
def test_as_many_are_woken_as_the_day_has_room_for(
    day: str, woken: list[str], ledger: Ledger, site: str
) -> None:
    assert wake(ledger, site, caps(day)) == woken
    assert wake(ledger, site, caps(day)) == [], "nobody has reserved it yet, but it is promised"
    assert waiting(ledger, site) == sorted({"t0", "t1", "t2"} - set(woken))


def test_what_is_committed_already_leaves_less_room(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site, "t3")
    attempt = reserved(ledger, job, 1, "0.6")
    assert wake(ledger, site, caps("0.7")) == []
    with ledger.begin() as connection:
        spend.settle(connection, attempt, USD("0.1"))
    assert wake(ledger, site, caps("0.7")) == ["t0", "t1"]


def test_all_sites_together_must_have_room_as_well(ledger: Ledger, site: str) -> None:
    assert wake(ledger, site, caps("50", everything="0")) == []
    assert wake(ledger, site, caps("50")) == ["t0", "t1", "t2"]


def test_a_page_that_needs_too_much_does_not_keep_the_others_waiting(
    ledger: Ledger, site: str
) -> None:
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == site, page_jobs.c.topic_key == "t0")
            .values(waits_for_usd=USD("30"))
        )
    assert wake(ledger, site, caps("0.5")) == ["t1"]


def test_a_selection_leaves_the_other_pages_waiting(ledger: Ledger, site: str) -> None:
    assert wake(ledger, site, caps("50"), ["t1", "t3"]) == ["t1"]
    assert waiting(ledger, site) == ["t0", "t2"]


def test_another_sites_pages_are_its_own_affair(ledger: Ledger, site: str) -> None:
    other = f"{site}_b"
    wanted(ledger, other, rows_of(1))
    assert wake(ledger, other, caps("50")) == []
    assert waiting(ledger, site) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("failure_class", [FailureClass.THROTTLED, FailureClass.TRANSIENT])
def test_who_waits_for_something_else_is_not_woken(
    failure_class: FailureClass, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    let_wait(ledger, site_name, "t0", "0.1", failure_class=failure_class)
    assert wake(ledger, site_name, caps("50")) == []


def test_a_page_whose_need_nobody_noted_waits_for_the_new_day(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    let_wait(ledger, site_name, "t0", None)
    assert wake(ledger, site_name, caps("50")) == []


def test_two_that_wake_at_once_wait_for_nobody_and_wake_each_page_once(
    ledger: Ledger, site: str
) -> None:
    def once(_: int) -> int:
        with ledger.begin() as connection:
            return budget_waits.wake(connection, Selection(site=site), caps("50"))

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(once, range(8)))
    assert sum(counts) == 3
    assert waiting(ledger, site) == []
