"""Failed pages: grouped by cause, only those that the table still wants."""

import pytest

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import NEEDS_PERSON, PageJobState
from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import attempts, failed_pages, jobs
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.failed_pages import FailedGroup
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    move_once,
    take_in,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState


def fail(
    ledger: Ledger,
    site: str,
    topic: str,
    message: str,
    failure_class: FailureClass = FailureClass.INVALID_PAGE,
    to: PageJobState = S.FAILED_TERMINAL,
) -> None:
    job, lease = leased(ledger, site, topic)
    failure = Failure(failure_class=failure_class, message=message)
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, to, failure=failure)
    let_go(ledger, lease)


def groups(ledger: Ledger, site: str) -> list[FailedGroup]:
    with ledger.begin() as connection:
        return failed_pages.by_cause(connection, site)


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """Three pages of one cause, one each of two others, one that is well."""
    wanted(ledger, site_name, rows_of(6))
    for topic in ("t4", "t0", "t2"):
        message = f"states_fact: the page does not state Population: '10,0{topic[1]}'"
        fail(ledger, site_name, topic, message)
    fail(ledger, site_name, "t1", "states_fact: the page does not state Name: 'Chur'")
    message = "states_fact: the page does not state Population: '1'"
    fail(ledger, site_name, "t3", message, FailureClass.BAD_OUTPUT, S.DEAD_LETTERED)
    return site_name


def test_pages_that_failed_alike_stand_together_the_largest_group_first(
    ledger: Ledger, site: str
) -> None:
    found = groups(ledger, site)
    assert [page.topic_key for page in found[0].pages] == ["t0", "t2", "t4"]
    assert found[0].cause.text == "states_fact: the page does not state Population"
    assert found[0].cause.failure_class is FailureClass.INVALID_PAGE
    assert found[0].pages[1].message.endswith("'10,02'")
    assert sorted(len(group.pages) for group in found) == [1, 1, 3]
    assert len({group.cause.fingerprint for group in found}) == 3


def test_a_cause_is_found_by_its_fingerprint(ledger: Ledger, site: str) -> None:
    first = groups(ledger, site)[0]
    with ledger.begin() as connection:
        found = failed_pages.of_cause(connection, site, first.cause.fingerprint)
        assert failed_pages.of_cause(connection, site, "cause:00000000") is None
    assert found == first


@pytest.mark.parametrize("state", PageJobState)
def test_only_what_needs_a_person_is_listed(
    state: PageJobState, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    job_in(ledger, site_name, state)
    assert len(groups(ledger, site_name)) == (state in NEEDS_PERSON)


def test_what_the_table_no_longer_wants_needs_nobody(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    fail(ledger, site_name, "t0", "it failed")
    assert len(groups(ledger, site_name)) == 1
    wanted(ledger, site_name, [rows_of(1)[0] | {"river": "Inn"}])
    assert groups(ledger, site_name) == []


def test_a_topic_that_left_the_table_needs_nobody_unless_its_page_refuses_to_go(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    fail(ledger, site_name, "t0", "it failed")
    wanted(ledger, site_name, [])
    assert groups(ledger, site_name) == []
    with ledger.begin() as connection:
        job = jobs.load(connection, current_job(ledger, site_name)["page_job_id"])
        attempts.open_attempt(
            connection, job, AttemptKind.WITHDRAW, number=1, worker="w", run_id=None
        )
    assert len(groups(ledger, site_name)) == 1


def test_a_row_that_cannot_become_a_page_is_listed_too(ledger: Ledger, site_name: str) -> None:
    rejected = [
        RejectedRow(row_number=n, key=f"k{n}", message=f"row {n} (k{n}): column 'name' is empty")
        for n in (1, 2)
    ]
    take_in(ledger, settings_of(site_name), [], rejected=rejected)
    (group,) = groups(ledger, site_name)
    assert group.cause.text == "row …: column 'name' is empty"
    assert [page.topic_key for page in group.pages] == ["k1", "k2"]
