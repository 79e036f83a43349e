"""What people did to our pages on the site: one standing change a page, and a log of everything."""

from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from content_pipeline.core.cms import Document, Marker, RemotePage
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import publications, resting, site_changes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import SiteEventKind, pages
from content_pipeline_tests.ledger.wanting import job_in, let_go, moved, rows_where, take_in
from content_pipeline_tests.operations.fakes import remote_page
from content_pipeline_tests.operations.small_site import path_of, rows_of, settings_of

S = PageJobState
K = SiteEventKind


def page_of(name: str, number: int = 0, edits: int = 0) -> RemotePage:
    """The page of the ``number``-th town as the CMS holds it after so many edits."""
    path = path_of(rows_of(number + 1)[number])
    marker = Marker(page_id=f"{name}{number}", revision=1, content_hash="h")
    return remote_page(path, marker, edits=edits)


def published(ledger: Ledger, name: str, count: int = 1) -> list[str]:
    """Published pages of a new site; their ids."""
    take_in(ledger, settings_of(name), rows_of(count))
    ids = []
    for number in range(count):
        job, lease = job_in(ledger, name, S.PUBLISHING, f"t{number}")
        document = Document(
            marker=Marker(page_id=job.page_id, revision=1, content_hash="h"),
            site_title="Towns",
            language="en",
            path=job.path,
            url=f"https://towns.example{job.path}",
            title="A town",
            meta_description="A description.",
            body_html="<p>A town.</p>",
            json_ld={},
        )
        with ledger.fenced(lease) as connection:
            publications.record_proved(connection, job, document, page_of(name, number))
        moved(ledger, job, lease, S.PUBLISHED)
        let_go(ledger, lease)
        ids.append(job.page_id)
    return ids


def record(ledger: Ledger, page_id: str, page: RemotePage | None, reason: str = "edited") -> bool:
    change = SiteChange.MISSING if page is None else SiteChange.EDITED
    with ledger.begin() as connection:
        return site_changes.record(connection, page_id, change, reason, page=page, by="w")


def waiting(ledger: Ledger, name: str) -> list[tuple[str, SiteChange, str]]:
    with ledger.begin() as connection:
        found = site_changes.waiting(connection, name)
    return [(page.topic_key, page.change, page.reason) for page in found]


def by_kind(ledger: Ledger, name: str) -> dict[SiteChange, int]:
    with ledger.begin() as connection:
        return site_changes.waiting_by_kind(connection, name)


def log(ledger: Ledger, page_id: str) -> list[tuple[SiteEventKind, str, str]]:
    with ledger.begin() as connection:
        return [(kind, what, by) for _, kind, what, by in site_changes.history(connection, page_id)]


def test_a_change_waits_with_its_reason_until_it_is_gone(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    assert waiting(ledger, site_name) == []
    assert record(ledger, page_id, page_of(site_name, edits=1))
    assert waiting(ledger, site_name) == [("t0", SiteChange.EDITED, "edited")]
    with ledger.begin() as connection:
        assert site_changes.clear(connection, page_id, by="w", why="as before")
        assert not site_changes.clear(connection, page_id, by="w", why="as before")
    assert waiting(ledger, site_name) == []
    assert log(ledger, page_id) == [
        (K.CHANGE_FOUND, "edited", "w"),
        (K.CHANGE_GONE, "as before", "w"),
    ]


def test_the_very_same_change_is_recorded_once_and_a_further_one_anew(
    ledger: Ledger, site_name: str
) -> None:
    (page_id,) = published(ledger, site_name)
    assert record(ledger, page_id, page_of(site_name, edits=1))
    assert not record(ledger, page_id, page_of(site_name, edits=1))
    assert record(ledger, page_id, page_of(site_name, edits=2), "edited again")
    assert record(ledger, page_id, None, "gone")
    assert not record(ledger, page_id, None, "gone")
    assert [what for _, what, _ in log(ledger, page_id)] == ["edited", "edited again", "gone"]
    assert waiting(ledger, site_name) == [("t0", SiteChange.MISSING, "gone")]


def test_what_is_kept_waits_for_nobody(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    page = page_of(site_name, edits=1)
    record(ledger, page_id, page)
    with ledger.begin() as connection:
        site_changes.keep_theirs(connection, page_id, page=page, by="anna", why="it is better")
        known = site_changes.known_by_page_id(connection, site_name, page_id)
    assert waiting(ledger, site_name) == []
    assert known is not None
    assert (known.kept_standing, known.settled_version) == (page.standing, page.version)
    assert log(ledger, page_id)[-1] == (K.THEIRS_KEPT, "it is better", "anna")


def test_ours_may_be_written_over_exactly_what_was_seen(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    page = page_of(site_name, edits=1)
    record(ledger, page_id, page)
    with ledger.begin() as connection:
        site_changes.allow_ours(connection, page_id, page=page, by="anna", why="it is wrong")
    (row,) = rows_where(ledger, pages, page_id=page_id)
    assert (row["may_overwrite"], row["kept_standing"]) == (page.standing, None)
    assert waiting(ledger, site_name), "it waits until ours is proved"
    assert log(ledger, page_id)[-1] == (K.OURS_WANTED, "it is wrong", "anna")


def test_a_page_that_is_being_put_back_waits_for_nobody(ledger: Ledger, site_name: str) -> None:
    first, second = published(ledger, site_name, 2)
    record(ledger, first, None, "gone")
    record(ledger, second, page_of(site_name, 1, edits=1))
    assert by_kind(ledger, site_name) == {SiteChange.EDITED: 1, SiteChange.MISSING: 1}
    with ledger.begin() as connection:
        known = site_changes.known_by_page_id(connection, site_name, first)
        assert known is not None
        assert known.page_job_id is not None
        assert resting.want_back(connection, known.page_job_id, worker="w", cause="missing")
    assert by_kind(ledger, site_name) == {SiteChange.EDITED: 1}
    assert [topic for topic, _, _ in waiting(ledger, site_name)] == ["t1"]


def test_a_page_is_known_by_the_cmss_id_and_by_ours(ledger: Ledger, site_name: str) -> None:
    first, second = published(ledger, site_name, 2)
    remote_ids = [page_of(site_name, number).remote_id for number in range(2)]
    with ledger.begin() as connection:
        found = site_changes.known_by_remote_id(connection, site_name, [*remote_ids, "other"])
        assert {known.page_id for known in found.values()} == {first, second}
        assert set(found) == set(remote_ids)
        assert site_changes.known_by_page_id(connection, site_name, first) == found[remote_ids[0]]
        assert site_changes.known_by_page_id(connection, "elsewhere", first) is None


def test_a_page_whose_job_is_on_its_way_is_known_without_one(
    ledger: Ledger, site_name: str
) -> None:
    (page_id,) = published(ledger, site_name)
    with ledger.begin() as connection:
        known = site_changes.known_by_page_id(connection, site_name, page_id)
    assert known is not None
    assert known.page_job_id is not None
    with ledger.begin() as connection:
        assert resting.want_back(connection, known.page_job_id, worker="w", cause="c")
        known = site_changes.known_by_page_id(connection, site_name, page_id)
    assert known is not None
    assert known.page_job_id is None


def test_a_page_that_was_never_published_is_not_known(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(1))
    (row,) = rows_where(ledger, pages, site=site_name)
    with ledger.begin() as connection:
        assert site_changes.known_by_page_id(connection, site_name, row["page_id"]) is None


def not_listed(ledger: Ledger, name: str, most: int = 9) -> list[str]:
    """The pages that the CMS has not listed since the last of them was proved."""
    with ledger.begin() as connection:
        since = connection.execute(
            text(
                "SELECT max(verified_at) + interval '1 microsecond' FROM content_pipeline.pages "
                "WHERE site = :site"
            ),
            {"site": name},
        ).scalar_one()
        found = site_changes.not_listed_since(connection, name, since, most=most)
    return [page.topic_key for page in found]


def test_what_the_cms_does_not_list_is_asked_about(ledger: Ledger, site_name: str) -> None:
    first, *_ = published(ledger, site_name, 3)
    assert not_listed(ledger, site_name) == ["t0", "t1", "t2"]
    assert not_listed(ledger, site_name, most=2) == ["t0", "t1"]
    with ledger.begin() as connection:
        site_changes.mark_listed(connection, site_name, [page_of(site_name, 1).remote_id])
    assert not_listed(ledger, site_name) == ["t0", "t2"]
    record(ledger, first, None, "gone")
    assert not_listed(ledger, site_name) == ["t2"], "what is known to be missing is not asked again"


def test_a_kept_hole_is_not_asked_about_again(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    with ledger.begin() as connection:
        site_changes.keep_theirs(connection, page_id, page=None, by="anna", why="it may be gone")
    assert not_listed(ledger, site_name) == []


def test_a_version_is_noted_without_a_change(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    page = replace(page_of(site_name), version="saved again")
    with ledger.begin() as connection:
        site_changes.note_version(connection, page_id, page.version)
        known = site_changes.known_by_page_id(connection, site_name, page_id)
    assert known is not None
    assert known.settled_version == "saved again"
    assert log(ledger, page_id) == []


@pytest.mark.parametrize("statement", ["UPDATE {0} SET detail = ''", "DELETE FROM {0}"])
def test_the_log_cannot_be_changed(statement: str, ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    record(ledger, page_id, None, "gone")
    with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as connection:
        connection.execute(text(statement.format("content_pipeline.site_events")))
    assert [what for _, what, _ in log(ledger, page_id)] == ["gone"]


def test_a_withdrawal_ends_what_was_on_record(ledger: Ledger, site_name: str) -> None:
    (page_id,) = published(ledger, site_name)
    record(ledger, page_id, page_of(site_name, edits=1))
    with ledger.begin() as connection:
        publications.record_withdrawn(connection, page_id)
    assert waiting(ledger, site_name) == []
    (row,) = rows_where(ledger, pages, page_id=page_id)
    assert row["withdrawn_at"] is not None
    with ledger.begin() as connection:
        assert site_changes.known_by_page_id(connection, site_name, page_id) is None
