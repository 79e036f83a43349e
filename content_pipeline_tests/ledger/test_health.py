"""Health: what waits, is uncertain, failed or was changed on the site, now."""

from decimal import Decimal

import pytest
from sqlalchemy import text, update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, health, site_changes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.health import PossibleDoubleSpend, Queue, UncertainPages
from content_pipeline.ledger.schema import AttemptKind, page_jobs, seconds_from_now
from content_pipeline_tests.ledger.paying import Call, lose_call, make
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    move_once,
    moved,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState


def put(ledger: Ledger, site: str, topic: str, due_in_s: float, priority: int = 0) -> None:
    """Let a topic's page job be due at a time, with a priority."""
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.page_job_id == current_job(ledger, site, topic)["page_job_id"])
            .values(next_attempt_at=seconds_from_now(due_in_s), priority=priority)
        )


def queue(ledger: Ledger, site: str) -> Queue:
    with ledger.begin() as connection:
        return health.queue(connection, site)


def test_the_oldest_due_page_is_found_whatever_its_priority(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(6))
    for topic, due_in_s, priority in (
        ("t0", -10, 5),
        ("t1", -500, 0),
        ("t2", -50, 0),
        ("t3", 600, 0),
        ("t4", -900, -3),
        ("t5", 600, 9),
    ):
        put(ledger, site_name, topic, due_in_s, priority)
    found = queue(ledger, site_name)
    assert [page.topic_key for page in found.oldest] == ["t4", "t1", "t2", "t0"]
    assert found.due == 4
    assert 900 <= found.age_s < 1_000
    assert found.oldest[0].state is S.QUEUED


def test_a_page_at_work_is_due_and_does_not_wait(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    put(ledger, site_name, "t0", -500)
    put(ledger, site_name, "t1", -50)
    _, lease = leased(ledger, site_name, "t0")
    found = queue(ledger, site_name)
    assert (found.due, [page.topic_key for page in found.oldest]) == (2, ["t1"])
    let_go(ledger, lease)
    assert queue(ledger, site_name).age_s >= 500


def test_a_dead_workers_page_waits_again_once_its_lease_ran_out(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    leased(ledger, site_name, lease_s=-1)
    assert [page.topic_key for page in queue(ledger, site_name).oldest] == ["t0"]


def test_nothing_waits_where_all_is_done_or_nothing_is_known(
    ledger: Ledger, site_name: str
) -> None:
    empty = Queue(due=0, oldest=())
    assert queue(ledger, site_name) == empty
    wanted(ledger, site_name, rows_of(1))
    job_in(ledger, site_name, S.PUBLISHED)
    assert queue(ledger, site_name) == empty
    assert empty.age_s == 0


def test_counting_stops_where_the_number_helps_nobody(
    ledger: Ledger, site_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "COUNTED_TO", 4)
    monkeypatch.setattr(health, "SHOWN", 2)
    wanted(ledger, site_name, rows_of(7))
    for number in range(7):
        put(ledger, site_name, f"t{number}", -number, priority=number % 3)
    found = queue(ledger, site_name)
    assert found.due == 4
    assert [page.topic_key for page in found.oldest] == ["t6", "t5"]


def uncertain(ledger: Ledger, site: str) -> list[UncertainPages]:
    with ledger.begin() as connection:
        return health.uncertain_pages(connection, site)


def double_spend(ledger: Ledger, site: str) -> PossibleDoubleSpend:
    with ledger.begin() as connection:
        return health.possible_double_spend(connection, site)


def test_lost_calls_stand_with_the_oldest_and_their_worst_case(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(3))
    lose_call(ledger, site_name, "t0", "0.3")
    lose_call(ledger, site_name, "t1", "0.2")
    with ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.attempts SET started_at = started_at - interval '1 hour' "
                "WHERE page_job_id = :job"
            ),
            {"job": current_job(ledger, site_name, "t1")["page_job_id"]},
        )
    (found,) = uncertain(ledger, site_name)
    assert (found.state, found.pages, found.usd) == (S.GENERATION_UNCERTAIN, 2, Decimal("0.5"))
    assert found.oldest_topic == "t1"
    assert 3_600 <= found.oldest_s < 3_700


def test_lost_writes_stand_beside_lost_calls_and_cost_nothing(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(2))
    lose_call(ledger, site_name, "t0", "0.3")
    job, lease = job_in(ledger, site_name, S.PUBLISHING, "t1")
    with ledger.fenced(lease) as connection:
        attempts.open_attempt(
            connection, job, AttemptKind.PUBLISH, number=1, worker="w", run_id=None
        )
    moved(ledger, job, lease, S.PUBLISH_UNCERTAIN)
    found = {pages.state: (pages.pages, pages.usd) for pages in uncertain(ledger, site_name)}
    assert found == {
        S.GENERATION_UNCERTAIN: (1, Decimal("0.3")),
        S.PUBLISH_UNCERTAIN: (1, 0),
    }


def test_what_nobody_could_settle_stays_a_possible_double_spend(
    ledger: Ledger, site_name: str
) -> None:
    assert double_spend(ledger, site_name) == PossibleDoubleSpend(
        calls=0, usd=Decimal(0), oldest_at=None
    )
    wanted(ledger, site_name, rows_of(2))
    make(ledger, site_name, "t0", [Call(end="uncertain", worst_usd="0.4"), Call(end="ok")])
    make(ledger, site_name, "t1", [Call(end="maybe", worst_usd="0.2"), Call(end="open")])
    found = double_spend(ledger, site_name)
    assert (found.calls, found.usd) == (2, Decimal("0.6"))
    assert found.oldest_at is not None
    assert uncertain(ledger, site_name) == []


def test_pages_that_need_a_person_stand_by_cause_the_largest_first(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(5))
    for topic, of_class, message in (
        ("t0", FailureClass.POLICY, "declined 'Chur' as req_8f3a"),
        ("t1", FailureClass.TRANSIENT, "answered 500"),
        ("t2", FailureClass.POLICY, "declined 'Bern' as req_77aa"),
    ):
        job, lease = job_in(ledger, site_name, S.QUEUED, topic)
        failure = Failure(failure_class=of_class, message=message)
        with ledger.fenced(lease) as connection:
            move_once(connection, job, lease, S.FAILED_TERMINAL, failure=failure)
    job_in(ledger, site_name, S.PUBLISHED, "t3")
    with ledger.begin() as connection:
        found = health.failed_now(connection, site_name)
    assert [(group.cause.failure_class, group.pages) for group in found] == [
        (FailureClass.POLICY, 2),
        (FailureClass.TRANSIENT, 1),
    ]
    assert "Chur" not in found[0].cause.text


def test_a_failed_job_that_the_table_no_longer_wants_needs_nobody(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    job_in(ledger, site_name, S.DEAD_LETTERED)
    with ledger.begin() as connection:
        assert len(health.failed_now(connection, site_name)) == 1
    changed = [{**row, "river": "Rhine"} for row in rows_of(1)]
    wanted(ledger, site_name, changed)
    with ledger.begin() as connection:
        assert health.failed_now(connection, site_name) == []


def test_changes_on_the_site_stand_by_kind(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(3))
    with ledger.begin() as connection:
        for topic, change in (
            ("t0", SiteChange.TRASHED),
            ("t1", SiteChange.MISSING),
            ("t2", SiteChange.MISSING),
        ):
            page_id = current_job(ledger, site_name, topic)["page_id"]
            site_changes.record(connection, page_id, change, "it is gone", page=None, by="test")
    with ledger.begin() as connection:
        found = health.conflicts(connection, site_name)
    assert [(each.change, each.pages) for each in found] == [
        (SiteChange.MISSING, 2),
        (SiteChange.TRASHED, 1),
    ]
