"""What is done to an empty Ghost: once with a real one, then with its recorded answers."""

import dataclasses

import pytest

from content_pipeline.adapters.cms.ghost import GhostCMS
from content_pipeline.core.cms import Marker, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import make_document

BASE_URL = "https://ghost.example"


def a_new_page(cms: GhostCMS) -> None:
    page = make_document(base_url=BASE_URL, title='A "title" & <more>', body="Größe, `<b>`.")
    key = page.marker.page_id
    assert cms.look_up(key, page.path, None).verdict is Verdict.ABSENT
    draft = cms.create_draft(page)
    assert (draft.status, draft.path, draft.marker) == (
        RemoteStatus.HIDDEN,
        page.path,
        page.marker,
    )
    assert draft.intact
    published = cms.publish(page, replacing=draft)
    assert (published.remote_id, published.status) == (draft.remote_id, RemoteStatus.PUBLISHED)
    assert (published.path, published.url) == (page.path, page.url)
    for known in (published.remote_id, None, "1234"):
        assert cms.look_up(key, page.path, known).page == published
    assert cms.publish(page, replacing=published) == published
    content = cms.content_of(published)
    assert (content.title, content.meta_description, content.body_html) == (
        page.title,
        page.meta_description,
        page.body_html,
    )


def a_page_that_is_not_what_was_seen(cms: GhostCMS) -> None:
    first = make_document(base_url=BASE_URL)
    seen = cms.publish(first, replacing=None)
    second = make_document(base_url=BASE_URL, revision=2)
    cms.publish(second, replacing=seen)
    third = make_document(base_url=BASE_URL, revision=3)
    assert _class_of(cms, third, seen) is FailureClass.CONFLICT
    with pytest.raises(CallFailed) as refused:
        cms.remove(seen)
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    found = cms.look_up(first.marker.page_id, first.path, seen.remote_id).page
    assert found is not None
    assert found.marker == second.marker
    cms.remove(found)
    cms.remove(found)
    assert _class_of(cms, third, found) is FailureClass.CONFLICT
    assert cms.look_up(first.marker.page_id, first.path, seen.remote_id).page is None


def a_slug_that_is_taken(cms: GhostCMS) -> None:
    theirs = make_document(base_url=BASE_URL)
    cms.publish(theirs, replacing=None)
    key = Marker(page_id="0" * 32, revision=1, content_hash=theirs.marker.content_hash)
    ours = dataclasses.replace(theirs, marker=key)
    found = cms.look_up(key.page_id, ours.path, None)
    assert found.page is not None
    assert found.page.marker == theirs.marker
    assert _class_of(cms, ours, None) is FailureClass.CONFLICT
    assert len(cms.inventory(None).glances) == 1


def twins(cms: GhostCMS) -> None:
    page = make_document(base_url=BASE_URL)
    published = cms.publish(page, replacing=None)
    second = cms.create_draft(page)
    found = cms.look_up(page.marker.page_id, page.path, None)
    assert (found.page, found.twins) == (published, (second,))


def what_a_survey_asks(cms: GhostCMS) -> None:
    check = cms.check()
    assert check.problems == ()
    assert check.identity.startswith("an integration of Ghost 6.")
    assert "base_url" in check.notes[0]
    before = cms.recent_changes(None)
    assert before.pages == ()
    page = make_document(base_url=BASE_URL)
    published = cms.publish(page, replacing=None)
    assert cms.recent_changes(before.point).pages == (published,)
    (glance,) = cms.inventory(None).glances
    assert (glance.remote_id, glance.path, glance.version) == (
        published.remote_id,
        published.path,
        published.version,
    )
    cms.withdraw(published)
    cms.withdraw(published)
    (glance,) = cms.inventory(None).glances
    assert (glance.status, glance.path) == (RemoteStatus.HIDDEN, published.path)


def a_title_that_is_too_long(cms: GhostCMS) -> None:
    page = make_document(base_url=BASE_URL, title="x" * 300)
    assert _class_of(cms, page, None) is FailureClass.REQUEST
    assert cms.inventory(None).glances == ()


SCENARIOS = (
    a_new_page,
    a_page_that_is_not_what_was_seen,
    a_slug_that_is_taken,
    twins,
    what_a_survey_asks,
    a_title_that_is_too_long,
)


def _class_of(cms: GhostCMS, page: object, replacing: object) -> FailureClass:
    with pytest.raises(CallFailed) as refused:
        cms.publish(page, replacing=replacing)  # type: ignore[arg-type]
    return refused.value.failure.failure_class
