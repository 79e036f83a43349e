"""Revisions: an earlier draft comes back as the newest one, under a number of its own."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import RowMapping

from content_pipeline.core.article import Article
from content_pipeline.ledger import drafts, revisions
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import draft_revisions, pages
from content_pipeline_tests.ledger.wanting import ARTICLE, leased, rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of


@pytest.fixture
def job(ledger: Ledger, site_name: str) -> PageJob:
    wanted(ledger, site_name, rows_of(2))
    return leased(ledger, site_name)[0]


def store(ledger: Ledger, job: PageJob, title: str) -> int:
    """Keep a draft; its number."""
    article: Article = ARTICLE.model_copy(update={"title": title})
    with ledger.begin() as connection:
        return drafts.store(
            connection,
            job,
            attempt_id=f"attempt of {title}",
            article=article,
            output_hash=f"hash of {title}",
        )


def renew(ledger: Ledger, job: PageJob, revision: int) -> int:
    with ledger.begin() as connection:
        return revisions.renew(connection, job.page_id, revision)


def of_page(ledger: Ledger, job: PageJob) -> list[RowMapping]:
    """The page's drafts, oldest first."""
    found = rows_where(ledger, draft_revisions, page_id=job.page_id)
    return sorted(found, key=lambda row: row["revision"])


def last_revision(ledger: Ledger, job: PageJob) -> int:
    (page,) = rows_where(ledger, pages, page_id=job.page_id)
    last: int = page["last_revision"]
    return last


def test_the_newest_draft_stays_as_it_is(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "first")
    newest = store(ledger, job, "second")
    before = of_page(ledger, job)
    assert renew(ledger, job, newest) == newest == 2
    assert of_page(ledger, job) == before
    assert last_revision(ledger, job) == 2


def test_an_earlier_draft_comes_back_under_the_next_number(ledger: Ledger, job: PageJob) -> None:
    for title in ("first", "second", "third"):
        store(ledger, job, title)
    assert renew(ledger, job, 1) == 4
    assert last_revision(ledger, job) == 4
    first, _, third, fourth = of_page(ledger, job)
    assert fourth["article"] == first["article"] != third["article"]
    for name in ("output_hash", "attempt_id", "page_job_id"):
        assert fourth[name] == first[name], name
    assert [row["copied_from_revision"] for row in of_page(ledger, job)] == [None, None, None, 1]


def test_a_copy_can_come_back_as_well(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "first")
    store(ledger, job, "second")
    assert renew(ledger, job, 1) == 3
    assert store(ledger, job, "third") == 4
    assert renew(ledger, job, 3) == 5
    newest = of_page(ledger, job)[-1]
    assert (newest["article"]["title"], newest["copied_from_revision"]) == ("first", 3)


def test_the_earlier_draft_itself_is_never_touched(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "first")
    store(ledger, job, "second")
    before = of_page(ledger, job)
    renew(ledger, job, 1)
    assert of_page(ledger, job)[:2] == before


def test_many_at_once_get_numbers_of_their_own_or_the_newest(ledger: Ledger, job: PageJob) -> None:
    """The page's row admits one at a time, so no number is given twice and none is left out."""
    for title in ("first", "second", "third"):
        store(ledger, job, title)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda turn: renew(ledger, job, 1 + turn % 2), range(16)))
    assert sorted(numbers) == list(range(4, 20))
    assert [row["revision"] for row in of_page(ledger, job)] == list(range(1, 20))
    assert last_revision(ledger, job) == 19


def test_another_page_keeps_its_numbers(ledger: Ledger, site_name: str, job: PageJob) -> None:
    other, _ = leased(ledger, site_name, "t1")
    for title in ("first", "second"):
        store(ledger, job, title)
        store(ledger, other, title)
    renew(ledger, job, 1)
    assert last_revision(ledger, other) == 2
    assert len(of_page(ledger, other)) == 2
