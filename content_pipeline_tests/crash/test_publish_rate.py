"""The publish rate with several processes at once, and with processes that die while publishing."""

from sqlalchemy import func, update

from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import page_jobs, pages
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.crash.conftest import LONGEST_S, Start
from content_pipeline_tests.crash.worker import Order
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.small_site import writes

TOWNS = 16
RATE = 5
DAY_S = 86_400


def let_a_day_pass(ledger: Ledger, site: str) -> None:
    """All that is public was so yesterday already, and who waited for today is due."""
    with ledger.begin() as connection:
        yesterday = pages.c.first_public_at - func.make_interval(0, 0, 0, 1)
        connection.execute(
            update(pages).where(pages.c.site == site).values(first_public_at=yesterday)
        )
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == site, page_jobs.c.state == "ready_to_publish")
            .values(next_attempt_at=page_jobs.c.next_attempt_at - func.make_interval(0, 0, 0, 1))
        )


def test_together_they_publish_as_many_new_pages_as_one_would_and_lose_none(
    start: Start, order: Order, sandbox: SandboxClient, ledger: Ledger
) -> None:
    published: list[int] = []
    paid: list[int] = []
    for _day in range(4):
        workers = [start(order, towns=TOWNS, new_pages_per_day=RATE) for _ in range(2)]
        for worker in workers:
            worker.join(LONGEST_S)
        assert [worker.exitcode for worker in workers] == [0, 0]
        published.append(len(writes(order.folder)))
        paid.append(len(sandbox.truth()["generations"]))
        let_a_day_pass(ledger, order.site)
    assert published == [5, 10, 15, 16]
    assert paid == published, "no draft is paid for before its day"
    assert len({path for path, _ in writes(order.folder)}) == TOWNS


def test_one_that_dies_while_publishing_frees_no_turn_before_its_outcome_is_known(
    start: Start, order: Order, ledger: Ledger
) -> None:
    for dies_at in ("publish_intended", "page_written"):
        worker = start(order, towns=TOWNS, new_pages_per_day=RATE, dies_at=dies_at)
        worker.join(LONGEST_S)
        assert worker.exitcode != 0
    worker = start(order, towns=TOWNS, new_pages_per_day=RATE)
    worker.join(LONGEST_S)
    assert worker.exitcode == 0
    assert len({path for path, _ in writes(order.folder)}) == RATE
    public = [row for row in rows_where(ledger, pages, site=order.site) if row["first_public_at"]]
    assert len(public) == RATE


def test_a_turn_far_ahead_gives_the_page_time_until_after_it(
    start: Start, order: Order, ledger: Ledger
) -> None:
    worker = start(order, towns=TOWNS, new_pages_per_day=1, drafts_ahead_days=TOWNS)
    worker.join(LONGEST_S)
    waiting = [
        row
        for row in rows_where(ledger, page_jobs, site=order.site)
        if row["state"] == "ready_to_publish"
    ]
    assert len(waiting) == TOWNS - 1
    turns = sorted(row["next_attempt_at"] for row in waiting)
    assert len(set(turns)) == TOWNS - 1, "each has a day of its own"
    assert (turns[-1] - turns[0]).total_seconds() == (TOWNS - 2) * DAY_S
    for row in waiting:
        assert row["deadline_at"] > row["next_attempt_at"]
        assert row["failure_class"] is None
        assert "1 new page a day" in row["failure_message"]
