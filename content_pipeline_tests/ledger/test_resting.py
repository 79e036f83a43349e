"""Jobs that no worker holds: put back on the site, taken off it, set down, or woken as wanted."""

from collections.abc import Callable

import pytest

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.ledger import jobs, resting, rollbacks
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import page_jobs, transitions
from content_pipeline_tests.ledger.wanting import (
    WAYS,
    current_job,
    job_in,
    let_go,
    moved,
    rows_where,
    take_in,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState
CONFLICT = Failure(failure_class=FailureClass.CONFLICT, message="the page was edited")


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


def rested(ledger: Ledger, site: str, state: PageJobState) -> PageJob:
    job, lease = job_in(ledger, site, state)
    let_go(ledger, lease)
    return job


def back(ledger: Ledger, job: PageJob) -> bool:
    with ledger.begin() as connection:
        return resting.want_back(connection, job.page_job_id, worker="anna", cause="it is missed")


def off(ledger: Ledger, job: PageJob) -> bool:
    with ledger.begin() as connection:
        return resting.take_off(connection, job.page_job_id, worker="anna")


def down(ledger: Ledger, job: PageJob) -> bool:
    with ledger.begin() as connection:
        return resting.set_down(connection, job.page_job_id, worker="anna", cause="theirs is kept")


Move = Callable[[Ledger, PageJob], bool]

WAYS_OUT: list[tuple[Move, PageJobState, PageJobState]] = [
    (back, S.PUBLISHED, S.READY_TO_PUBLISH),
    (off, S.PUBLISHED, S.WITHDRAWING),
    (down, S.FAILED_TERMINAL, S.SUPERSEDED),
]


@pytest.mark.parametrize(("move", "source", "to"), WAYS_OUT)
def test_each_leads_from_one_state_to_one_and_is_logged(
    move: Move, source: PageJobState, to: PageJobState, ledger: Ledger, site: str
) -> None:
    job = rested(ledger, site, source)
    assert move(ledger, job)
    row = current_job(ledger, site)
    assert (row["state"], row["epoch"], row["failure_class"]) == (to, job.epoch + 1, None)
    assert (row["finished_at"] is not None) == (to is S.SUPERSEDED)
    log = rows_where(ledger, transitions, page_job_id=job.page_job_id)[-1]
    assert (log["from_state"], log["to_state"], log["worker"]) == (source, to, "anna")
    assert (source, to) in MOVES
    assert not move(ledger, job), "what was done is not done twice"


@pytest.mark.parametrize(("move", "source", "to"), WAYS_OUT)
@pytest.mark.parametrize("state", sorted(WAYS))
def test_none_of_them_touches_a_job_elsewhere(
    state: PageJobState,
    move: Move,
    source: PageJobState,
    to: PageJobState,
    ledger: Ledger,
    site: str,
) -> None:
    if state is source:
        assert (state, to) in MOVES
        return
    job = rested(ledger, site, state)
    assert not move(ledger, job)
    assert current_job(ledger, site)["state"] == state


def test_ours_is_not_wanted_back_where_the_topic_wants_another_page_job(
    ledger: Ledger, site: str
) -> None:
    job = rested(ledger, site, S.PUBLISHED)
    rows = rows_of(1)
    rows[0]["population"] = "99,999"
    wanted(ledger, site, rows)
    assert not back(ledger, job)


def test_ours_is_not_wanted_back_where_the_topic_left_the_table(ledger: Ledger, site: str) -> None:
    job = rested(ledger, site, S.PUBLISHED)
    wanted(ledger, site, [])
    assert not back(ledger, job)


def test_ours_is_not_wanted_back_while_another_job_of_the_page_is_on_its_way(
    ledger: Ledger, site: str
) -> None:
    job = rested(ledger, site, S.PUBLISHED)
    rows = rows_of(1)
    rows[0]["population"] = "99,999"
    wanted(ledger, site, rows)
    wanted(ledger, site, rows_of(1))
    assert current_job(ledger, site)["page_job_id"] == job.page_job_id
    assert not back(ledger, job), "it looks at the site itself, and is told that nobody wants it"


def test_ours_is_not_wanted_back_where_its_version_was_rolled_back(
    ledger: Ledger, site: str
) -> None:
    job = rested(ledger, site, S.PUBLISHED)
    with ledger.begin() as connection:
        rollbacks.refuse(connection, site, "v1", cause="it boasts", by="anna")
    assert not back(ledger, job)
    with ledger.begin() as connection:
        assert rollbacks.lift(connection, site, "v1")
    assert back(ledger, job)


@pytest.mark.parametrize("state", [S.FAILED_TERMINAL, S.DEAD_LETTERED])
def test_a_failed_withdrawal_is_woken_where_it_was(
    state: PageJobState, ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, S.WITHDRAWING)
    moved(ledger, job, lease, state)
    let_go(ledger, lease)
    with ledger.begin() as connection:
        to = resting.move_resting(
            connection, job.page_job_id, sources=[state], worker="a person", next_epoch=True
        )
    assert to is S.WITHDRAWING
    row = current_job(ledger, site)
    assert (row["state"], row["revision"], row["epoch"]) == ("withdrawing", 1, job.epoch + 1)


def test_only_what_a_topic_wants_is_taken_up(ledger: Ledger, site: str) -> None:
    job = rested(ledger, site, S.WITHDRAWN)
    for expected in ([job.page_job_id], []):
        with ledger.begin() as connection:
            taken = resting.take_up_wanted(connection, [job.page_job_id, "other"], worker="w")
        assert taken == expected
    assert current_job(ledger, site)["state"] == "generated"


def test_what_a_retired_topic_wanted_is_not_taken_up(ledger: Ledger, site: str) -> None:
    job = rested(ledger, site, S.WITHDRAWN)
    wanted(ledger, site, [])
    with ledger.begin() as connection:
        assert resting.take_up_wanted(connection, [job.page_job_id], worker="w") == []
        assert resting.take_up_wanted(connection, [], worker="w") == []
    assert current_job(ledger, site)["state"] == "withdrawn"


# --- an older publish that is not settled --------------------------------------------------------


def test_a_page_knows_of_its_other_publish_that_is_not_settled(
    ledger: Ledger, site_name: str
) -> None:
    site = settings_of(site_name)
    take_in(ledger, site, rows_of(1))
    older, lease = job_in(ledger, site_name, S.PUBLISH_UNCERTAIN)
    rows = rows_of(1)
    rows[0]["population"] = "99,999"
    take_in(ledger, site, rows)
    newer_id = current_job(ledger, site_name)["page_job_id"]
    with ledger.begin() as connection:
        newer = jobs.load(connection, newer_id)
        assert jobs.unsettled_publish_s(connection, newer) == 0
        jobs.postpone(connection, older, 90)
        left = jobs.unsettled_publish_s(connection, newer)
        assert left is not None
        assert 80 < left <= 90
        assert jobs.unsettled_publish_s(connection, older) is None
    moved(ledger, older, lease, S.READY_TO_PUBLISH)
    with ledger.begin() as connection:
        assert jobs.unsettled_publish_s(connection, newer) is None
    assert len(rows_where(ledger, page_jobs, site=site_name)) == 2
