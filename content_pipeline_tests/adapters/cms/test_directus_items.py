import uuid
from typing import Any

import pytest

from content_pipeline.adapters.cms.directus_items import ItemForm, is_item_id, item_id_of
from content_pipeline.core.cms import RemoteStatus
from content_pipeline.core.service_settings import DirectusCMSSettings
from content_pipeline_tests.adapters.cms.documents import make_document

BASE_URL = "https://directus.example"
DOCUMENT = make_document("/austria/vienna/", base_url=BASE_URL)
ITEM_ID = item_id_of(DOCUMENT.marker.page_id)


def form(**settings: Any) -> ItemForm:
    return ItemForm.of(DirectusCMSSettings(kind="directus", **settings), base_url=BASE_URL)


FORM = form()


def held(made: ItemForm = FORM, **changes: Any) -> dict[str, Any]:
    """The item after DOCUMENT was published."""
    return {made.names.id: ITEM_ID, **made.written(DOCUMENT, status="published"), **changes}


def test_an_item_that_was_sent_is_read_back_whole() -> None:
    page = FORM.page(held())
    assert (page.remote_id, page.path, page.url) == (ITEM_ID, DOCUMENT.path, DOCUMENT.url)
    assert page.status is RemoteStatus.PUBLISHED
    assert page.marker == DOCUMENT.marker
    assert page.intact
    assert FORM.content(held()).body_html == DOCUMENT.body_html


def test_everything_that_is_read_is_asked_for() -> None:
    assert set(held()) == set(FORM.asked)


def test_fields_may_have_other_names_and_some_may_be_missing() -> None:
    names = {"path": "slug", "body": "content", "status": None, "json_ld": "schema_org"}
    other = form(fields=names, slashes=False)
    item = held(other)
    assert item["slug"] == "austria/vienna"
    assert item["content"] == DOCUMENT.body_html
    assert item["schema_org"] == DOCUMENT.json_ld
    assert "status" not in item
    page = other.page(item)
    assert (page.path, page.status) == (DOCUMENT.path, RemoteStatus.PUBLISHED)
    assert page.intact
    assert other.archived is None


@pytest.mark.parametrize("changes", [{"title": "x"}, {"meta_description": None}, {"body": "x"}])
def test_every_edit_of_the_text_shows(changes: dict[str, Any]) -> None:
    edited, before = FORM.page(held(**changes)), FORM.page(held())
    assert edited.fingerprint != before.fingerprint
    assert edited.version != before.version
    assert edited.marker == before.marker
    assert not edited.intact


@pytest.mark.parametrize("changes", [{"path": "/x/"}, {"status": "draft"}, {"cp_rev": 9}])
def test_every_other_change_shows_in_the_version_alone(changes: dict[str, Any]) -> None:
    changed, before = FORM.page(held(**changes)), FORM.page(held())
    assert changed.version != before.version
    assert changed.fingerprint == before.fingerprint


def test_a_listing_tells_the_same_version() -> None:
    assert FORM.glance(held()).version == FORM.page(held()).version


@pytest.mark.parametrize(
    ("status", "meant"),
    [
        ("published", RemoteStatus.PUBLISHED),
        ("draft", RemoteStatus.HIDDEN),
        ("in_review", RemoteStatus.HIDDEN),
        ("archived", RemoteStatus.TRASHED),
        (None, RemoteStatus.HIDDEN),
    ],
)
def test_only_the_status_of_public_items_is_public(status: str | None, meant: RemoteStatus) -> None:
    assert FORM.page(held(status=status)).status is meant


@pytest.mark.parametrize("name", ["cp_key", "cp_rev", "cp_hash"])
@pytest.mark.parametrize("value", [None, True, {}])
def test_half_a_mark_is_none(name: str, value: object) -> None:
    assert FORM.page(held() | {name: value}).marker is None


@pytest.mark.parametrize("changes", [{"id": None}, {"title": 3}, {"body": {}}, {"path": []}])
def test_an_answer_with_another_type_is_no_answer(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        FORM.page(held(**changes))


def test_an_id_is_made_from_the_page_alone_and_never_changes() -> None:
    assert item_id_of("a" * 32) == "89ba1195-579c-58e6-b29d-2eb26a8b118c"
    assert uuid.UUID(ITEM_ID).version == 5
    assert item_id_of("b" * 32) != item_id_of("a" * 32)


@pytest.mark.parametrize("text", [None, "", "1234", ITEM_ID.upper(), ITEM_ID.replace("-", "")])
def test_an_id_of_another_cms_is_not_asked_for(text: str | None) -> None:
    assert is_item_id(ITEM_ID)
    assert not is_item_id(text)
