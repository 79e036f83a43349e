"""What is proved: drafts numbered per page, the baseline of each page, and the public list."""

import pytest

from content_pipeline.core.cms import Document, Marker, RemotePage, RemoteStatus
from content_pipeline.core.publishing import Baseline
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import drafts, jobs, publications, reports
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import draft_revisions, pages
from content_pipeline_tests.ledger.wanting import (
    ARTICLE,
    current_job,
    job_in,
    let_go,
    moved,
    rows_where,
    take_in,
)
from content_pipeline_tests.operations.small_site import BASE_URL, Row, rows_of, settings_of

S = PageJobState


@pytest.fixture
def rows() -> list[Row]:
    return rows_of(3)


@pytest.fixture
def site(ledger: Ledger, site_name: str, rows: list[Row]) -> str:
    take_in(ledger, settings_of(site_name), rows)
    return site_name


def document_of(job: PageJob, content_hash: str) -> Document:
    assert job.revision is not None
    return Document(
        marker=Marker(page_id=job.page_id, revision=job.revision, content_hash=content_hash),
        site_title="Towns",
        language="en",
        path=job.path,
        url=BASE_URL + job.path,
        title=f"Title of {content_hash}",
        meta_description="A description.",
        body_html="<p>Text</p>",
        json_ld={},
    )


def proved(ledger: Ledger, job: PageJob, lease: Lease, content_hash: str) -> PageJob:
    """Record that the CMS shows the job's revision, and that it is published."""
    document = document_of(job, content_hash)
    remote = RemotePage(
        remote_id=f"remote:{job.path}",
        path=job.path,
        url=document.url,
        status=RemoteStatus.PUBLISHED,
        marker=document.marker,
        fingerprint=f"print of {content_hash}",
    )
    with ledger.fenced(lease) as connection:
        publications.record_proved(connection, job, document, remote)
        publications.supersede_older(connection, job, lease.worker)
        jobs.move(connection, job, S.PUBLISHED, lease=lease)
        return jobs.load(connection, job.page_job_id)


def publish(ledger: Ledger, site: str, topic: str, content_hash: str) -> PageJob:
    job, lease = job_in(ledger, site, S.PUBLISHING, topic)
    job = proved(ledger, job, lease, content_hash)
    let_go(ledger, lease)
    return job


def test_drafts_of_a_page_are_numbered_upwards(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.GENERATING)
    for number in (1, 2, 3):
        with ledger.fenced(lease) as connection:
            revision = drafts.store(
                connection, job, attempt_id=f"a{number}", article=ARTICLE, output_hash="h"
            )
        assert revision == number
    assert len(rows_where(ledger, draft_revisions, page_id=job.page_id)) == 3


def test_a_draft_is_read_as_it_was_written(ledger: Ledger, site: str) -> None:
    job, _ = job_in(ledger, site, S.GENERATED)
    with ledger.begin() as connection:
        assert drafts.load(connection, job) == ARTICLE


def test_a_proved_page_has_its_baseline(ledger: Ledger, site: str) -> None:
    job = publish(ledger, site, "t0", "one")
    assert job.baseline == Baseline(revision=1, fingerprint="print of one")
    assert (job.remote_id, job.published_content_hash) == (f"remote:{job.path}", "one")
    (page,) = rows_where(ledger, pages, page_id=job.page_id)
    assert page["published_title"] == "Title of one"
    assert page["remote_url"] == BASE_URL + job.path
    assert page["verified_at"] >= page["content_changed_at"]


def test_a_page_proved_again_with_the_same_content_did_not_change(
    ledger: Ledger, site: str
) -> None:
    job, lease = job_in(ledger, site, S.PUBLISHING)
    job = proved(ledger, job, lease, "one")
    (before,) = rows_where(ledger, pages, page_id=job.page_id)
    for content_hash in ("one", "two"):
        with ledger.fenced(lease) as connection:
            publications.record_proved(
                connection,
                job,
                document_of(job, content_hash),
                RemotePage(
                    remote_id="r",
                    path=job.path,
                    url=job.path,
                    status=RemoteStatus.PUBLISHED,
                    marker=None,
                    fingerprint="f",
                ),
            )
        (after,) = rows_where(ledger, pages, page_id=job.page_id)
        same = content_hash == "one"
        assert (after["content_changed_at"] == before["content_changed_at"]) == same
        assert after["verified_at"] > before["verified_at"]


def test_a_newer_published_job_takes_the_place_of_the_older(
    ledger: Ledger, site: str, rows: list[Row]
) -> None:
    old = publish(ledger, site, "t0", "one")
    other = publish(ledger, site, "t1", "other")
    take_in(ledger, settings_of(site), [rows[0] | {"river": "Rhine"}, *rows[1:]])
    new = publish(ledger, site, "t0", "two")
    with ledger.begin() as connection:
        log = reports.history(connection, old.page_job_id)
        states = [jobs.load(connection, job.page_job_id).state for job in (old, new, other)]
    assert states == [S.SUPERSEDED, S.PUBLISHED, S.PUBLISHED]
    assert (log[-1]["from_state"], log[-1]["to_state"]) == ("published", "superseded")
    assert (log[-1]["worker"], log[-1]["sequence"]) == ("worker", len(log))
    assert new.baseline == Baseline(revision=2, fingerprint="print of two")


def test_the_list_holds_exactly_what_is_proved_by_path(ledger: Ledger, site: str) -> None:
    settings = settings_of(site)
    with ledger.begin() as connection:
        assert publications.listing(connection, settings).pages == ()
    publish(ledger, site, "t2", "chur")
    publish(ledger, site, "t0", "aarau")
    job_in(ledger, site, S.PUBLISHING, "t1")
    with ledger.begin() as connection:
        listing = publications.listing(connection, settings)
    assert (listing.site, listing.site_title, listing.base_url, listing.language) == (
        site,
        "Towns",
        BASE_URL,
        "en",
    )
    assert [(page.path, page.url, page.title) for page in listing.pages] == [
        ("/aarau-0/", f"{BASE_URL}/aarau-0/", "Title of aarau"),
        ("/chur-2/", f"{BASE_URL}/chur-2/", "Title of chur"),
    ]


def test_a_live_page_stays_listed_while_a_newer_revision_is_made(
    ledger: Ledger, site: str, rows: list[Row]
) -> None:
    publish(ledger, site, "t0", "one")
    take_in(ledger, settings_of(site), [rows[0] | {"river": "Rhine"}, *rows[1:]])
    job, lease = job_in(ledger, site, S.VALIDATING)
    moved(ledger, job, lease, S.FAILED_TERMINAL)
    assert current_job(ledger, site)["state"] == S.FAILED_TERMINAL
    with ledger.begin() as connection:
        (page,) = publications.listing(connection, settings_of(site)).pages
    assert page.title == "Title of one"
