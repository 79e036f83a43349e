"""What is done to an empty collection: once in a real Directus, then with its recorded answers."""

import dataclasses

import pytest

from content_pipeline.adapters.cms.directus import DirectusCMS
from content_pipeline.adapters.cms.directus_items import item_id_of
from content_pipeline.core.cms import Document, Marker, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import make_document

BASE_URL = "https://directus.example"


def a_new_page(cms: DirectusCMS) -> None:
    page = make_document(base_url=BASE_URL, title='A "title" & <more>', body="Größe, `<b>`.")
    key = page.marker.page_id
    assert cms.look_up(key, page.path, None).verdict is Verdict.ABSENT
    draft = cms.create_draft(page)
    assert (draft.status, draft.path, draft.marker) == (
        RemoteStatus.HIDDEN,
        page.path,
        page.marker,
    )
    assert draft.remote_id == item_id_of(key)
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


def a_second_item(cms: DirectusCMS) -> None:
    page = make_document(base_url=BASE_URL)
    cms.publish(page, replacing=None)
    assert _class_of(cms, page, None) is FailureClass.CONFLICT
    other = Marker(page_id="0" * 32, revision=1, content_hash=page.marker.content_hash)
    at_its_path = dataclasses.replace(page, marker=other)
    assert _class_of(cms, at_its_path, None) is FailureClass.CONFLICT
    assert len(cms.inventory(None).glances) == 1


def an_item_that_is_not_what_was_seen(cms: DirectusCMS) -> None:
    first = make_document(base_url=BASE_URL)
    seen = cms.publish(first, replacing=None)
    second = make_document(base_url=BASE_URL, revision=2)
    now = cms.publish(second, replacing=seen)
    third = make_document(base_url=BASE_URL, revision=3)
    assert _class_of(cms, third, seen) is FailureClass.CONFLICT
    with pytest.raises(CallFailed) as refused:
        cms.remove(seen)
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    cms.remove(now)
    cms.remove(now)
    found = cms.look_up(first.marker.page_id, first.path, None).page
    assert found is not None
    assert (found.status, found.marker) == (RemoteStatus.TRASHED, second.marker)
    again = cms.publish(third, replacing=found)
    assert (again.status, again.remote_id) == (RemoteStatus.PUBLISHED, seen.remote_id)


def a_draft_that_nobody_edited(cms: DirectusCMS) -> None:
    page = make_document(base_url=BASE_URL)
    draft = cms.create_draft(page)
    cms.remove(draft)
    cms.remove(draft)
    assert cms.look_up(page.marker.page_id, page.path, draft.remote_id).page is None
    assert _class_of(cms, page, draft) is FailureClass.CONFLICT


def what_a_survey_asks(cms: DirectusCMS) -> None:
    check = cms.check()
    assert check.problems == ()
    assert "Directus" in check.identity
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


SCENARIOS = (
    a_new_page,
    a_second_item,
    an_item_that_is_not_what_was_seen,
    a_draft_that_nobody_edited,
    what_a_survey_asks,
)


def _class_of(cms: DirectusCMS, page: Document, replacing: RemotePage | None) -> FailureClass:
    with pytest.raises(CallFailed) as refused:
        cms.publish(page, replacing=replacing)
    return refused.value.failure.failure_class
