"""A topic that leaves the table: its page stays or goes, as the site wants; it may come back."""

from typing import Any

import pytest
from sqlalchemy import text

from content_pipeline.core.errors import LeaseLost, TopicTableError
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import PageJobState
from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import intake, jobs, retirement
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import TopicStatus, page_jobs, topics, transitions
from content_pipeline.ledger.wishes import Request
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    moved,
    rows_where,
    take_in,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState

TAKES_OFF: dict[str, Any] = {
    "unpublish": {"when_gone": "unpublish"},
    "redirect": {"when_gone": "redirect", "redirect_to": "/towns/"},
}


def site_with(name: str, **topic_settings: Any) -> SiteSettings:
    return settings_of(name, topics=topic_settings)


def statuses(ledger: Ledger, site: str) -> dict[str, str]:
    return {row["topic_key"]: row["status"] for row in rows_where(ledger, topics, site=site)}


def everything(ledger: Ledger, site: str) -> list[list[dict[str, Any]]]:
    """All that an intake could have changed."""
    tables = (topics, page_jobs)
    return [[dict(row) for row in rows_where(ledger, table, site=site)] for table in tables]


def published(ledger: Ledger, site: SiteSettings, count: int = 3) -> None:
    take_in(ledger, site, rows_of(count))
    for number in range(count):
        job, lease = job_in(ledger, site.site, S.PUBLISHED, f"t{number}")
        assert job.state is S.PUBLISHED
        let_go(ledger, lease)


def test_by_default_the_page_of_a_topic_that_is_gone_stays(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name)
    published(ledger, site)
    assert take_in(ledger, site, rows_of(2)).retired == ("t2",)
    assert statuses(ledger, site_name)["t2"] == TopicStatus.RETIRED
    assert current_job(ledger, site_name, "t2")["state"] == "published"


@pytest.mark.parametrize("when_gone", sorted(TAKES_OFF))
def test_where_the_site_wants_it_the_page_is_to_be_taken_off(
    when_gone: str, ledger: Ledger, site_name: str
) -> None:
    site = site_with(site_name, **TAKES_OFF[when_gone])
    published(ledger, site)
    assert take_in(ledger, site, rows_of(2)).retired == ("t2",)
    row = current_job(ledger, site_name, "t2")
    assert (row["state"], row["finished_at"], row["epoch"]) == ("withdrawing", None, 2)
    assert current_job(ledger, site_name, "t0")["state"] == "published"


def test_a_topic_is_retired_once(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site)
    take_in(ledger, site, rows_of(2))
    before = everything(ledger, site_name)
    assert take_in(ledger, site, rows_of(2)).retired == ()
    assert everything(ledger, site_name) == before
    with ledger.begin() as connection:
        assert retirement.count(connection, site_name) == 1
        assert intake.topic_keys(connection, site_name) == ["t0", "t1"]


def test_too_many_at_once_are_refused_and_nothing_is_changed(
    ledger: Ledger, site_name: str
) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site, 1)
    take_in(ledger, site, rows_of(20))
    before = everything(ledger, site_name)
    rows = rows_of(9)
    rows[0]["population"] = "99,999"
    with pytest.raises(TopicTableError, match="11 of 20 topics are no longer in the table"):
        take_in(ledger, site, rows)
    assert everything(ledger, site_name) == before


def test_a_few_may_always_go_and_more_when_the_site_says_so(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    take_in(ledger, site, rows_of(20))
    assert len(take_in(ledger, site, rows_of(10)).retired) == 10
    all_may_go = site_with(site_name, when_gone="unpublish", most_gone_share=1)
    assert len(take_in(ledger, all_may_go, rows_of(1)).retired) == 9


def test_an_empty_table_takes_no_page_off(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site)
    with pytest.raises(TopicTableError, match="3 of 3 topics"):
        take_in(ledger, site, [])
    assert current_job(ledger, site_name)["state"] == "published"


def test_pages_that_stay_may_all_lose_their_topics(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name)
    take_in(ledger, site, rows_of(20))
    assert len(take_in(ledger, site, []).retired) == 20


def test_a_row_that_cannot_be_used_is_not_gone(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site, 2)
    bad = RejectedRow(row_number=2, key="t1", message="row 2 (t1): column 'name' is empty")
    assert take_in(ledger, site, rows_of(1), rejected=[bad]).retired == ()
    assert statuses(ledger, site_name)["t1"] == TopicStatus.REJECTED


def test_asking_for_some_topics_retires_none(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site, 2)
    request = Request(
        site=site, generation_version="v1", model_route="scripted", requested_by="test"
    )
    with ledger.begin() as connection:
        taken = intake.take_in_some(connection, request, intake.Part(topics=[]), ["t0"])
    assert taken.retired == ()
    assert set(statuses(ledger, site_name).values()) == {TopicStatus.ACTIVE}


def test_a_withdrawn_page_comes_back_with_its_draft(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site, 2)
    take_in(ledger, site, rows_of(1))
    job, lease = leased(ledger, site_name, "t1")
    moved(ledger, job, lease, S.WITHDRAWN)
    let_go(ledger, lease)
    assert take_in(ledger, site, rows_of(2)).wanted == 1
    row = current_job(ledger, site_name, "t1")
    assert (row["state"], row["revision"]) == ("generated", 1)
    assert statuses(ledger, site_name)["t1"] == TopicStatus.ACTIVE


def test_a_topic_that_comes_back_with_other_input_is_made_anew(
    ledger: Ledger, site_name: str
) -> None:
    site = site_with(site_name)
    published(ledger, site, 2)
    take_in(ledger, site, rows_of(1))
    rows = rows_of(2)
    rows[1]["population"] = "99,999"
    take_in(ledger, site, rows)
    assert current_job(ledger, site_name, "t1")["state"] == "queued"


@pytest.mark.parametrize("state", [S.QUEUED, S.GENERATED, S.READY_TO_PUBLISH])
def test_a_job_under_way_is_no_longer_wanted(
    state: PageJobState, ledger: Ledger, site_name: str
) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    take_in(ledger, site, rows_of(2))
    job, lease = job_in(ledger, site_name, state, "t1")
    assert job.is_current
    take_in(ledger, site, rows_of(1))
    with ledger.begin() as connection:
        now = jobs.load(connection, job.page_job_id)
    assert (now.is_current, now.topic_is_retired) == (False, True)
    to = S.PUBLISHING if state is S.READY_TO_PUBLISH else None
    if to is not None:
        with pytest.raises(LeaseLost):
            moved(ledger, job, lease, to)
    moved(ledger, job, lease, S.SUPERSEDED)


def test_the_move_says_why_it_was_made(ledger: Ledger, site_name: str) -> None:
    site = site_with(site_name, **TAKES_OFF["unpublish"])
    published(ledger, site, 2)
    take_in(ledger, site, rows_of(1))
    job_id = current_job(ledger, site_name, "t1")["page_job_id"]
    rows = rows_where(ledger, transitions, page_job_id=job_id)
    last = max(rows, key=lambda row: int(row["sequence"]))
    assert last["why"] == "its topic is retired, and the site takes such pages off"
    assert last["worker"] == "test"


def test_more_topics_than_a_statement_has_parameters_can_go_at_once(
    ledger: Ledger, site_name: str
) -> None:
    site = site_with(site_name)
    take_in(ledger, site, rows_of(1))
    many = 70_000
    with ledger.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO content_pipeline.topics "
                "(site, topic_key, name, row_number, status, input_hash) "
                "SELECT :site, 'gone' || n, 'n', n, 'active', 'h' FROM generate_series(1, :many) n"
            ),
            {"site": site_name, "many": many},
        )
    assert len(take_in(ledger, site, rows_of(1)).retired) == many
    with ledger.begin() as connection:
        assert retirement.count(connection, site_name) == many
        assert retirement.count_others(connection, site_name) == 1
