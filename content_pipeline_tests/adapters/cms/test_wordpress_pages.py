from typing import Any

import pytest

from content_pipeline.adapters.cms.wordpress_content import compose
from content_pipeline.adapters.cms.wordpress_pages import (
    PageForm,
    modified_at,
    was_never_edited,
)
from content_pipeline.core.cms import RemoteStatus
from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document

FORM = PageForm(base_url=BASE_URL, home_path="")
DOCUMENT = make_document()


def page(**changes: Any) -> dict[str, Any]:
    """A page as WordPress 6.1.9 answers it."""
    return {
        "id": 5,
        "slug": "austria",
        "status": "publish",
        "permalink_template": f"{BASE_URL}/%pagename%/",
        "modified_gmt": "2026-11-30T02:18:02",
        "title": {"raw": DOCUMENT.title},
        "excerpt": {"raw": DOCUMENT.meta_description},
        "content": {"raw": compose(DOCUMENT, json_ld=False)},
        "_links": {
            "version-history": [{"count": 1, "href": "x"}],
            "predecessor-version": [{"id": 6, "href": "x"}],
        },
        **changes,
    }


def test_a_page_is_read_with_our_mark() -> None:
    found = FORM.page(page())
    assert (found.remote_id, found.path, found.url) == ("5", "/austria/", f"{BASE_URL}/austria/")
    assert found.marker == DOCUMENT.marker
    assert found.intact
    assert found.status is RemoteStatus.PUBLISHED


@pytest.mark.parametrize(
    ("status", "means"),
    [
        ("publish", RemoteStatus.PUBLISHED),
        ("draft", RemoteStatus.HIDDEN),
        ("pending", RemoteStatus.HIDDEN),
        ("private", RemoteStatus.HIDDEN),
        ("future", RemoteStatus.HIDDEN),
        ("archived-by-a-plugin", RemoteStatus.HIDDEN),
        ("trash", RemoteStatus.TRASHED),
    ],
)
def test_only_a_published_page_is_public(status: str, means: RemoteStatus) -> None:
    assert FORM.page(page(status=status)).status is means


@pytest.mark.parametrize(
    ("home_path", "changes", "path"),
    [
        ("", {}, "/austria/"),
        ("", {"permalink_template": f"{BASE_URL}/europe/%pagename%/"}, "/europe/austria/"),
        ("/blog", {"permalink_template": f"{BASE_URL}/blog/%pagename%/"}, "/austria/"),
        ("", {"permalink_template": f"{BASE_URL}/2026/11/%postname%/"}, "/2026/11/austria/"),
        ("", {"slug": "austria__trashed", "status": "trash"}, "/austria/"),
        ("", {"slug": "austria__trashed"}, "/austria__trashed/"),
        ("", {"slug": "", "status": "draft"}, "/?page_id=5"),
        ("", {"permalink_template": f"{BASE_URL}/?page_id=5"}, "/?page_id=5"),
    ],
)
def test_a_page_has_a_path_whatever_its_status(
    home_path: str, changes: dict[str, Any], path: str
) -> None:
    assert PageForm(base_url=BASE_URL, home_path=home_path).page(page(**changes)).path == path


@pytest.mark.parametrize("field", ["title", "excerpt", "content"])
def test_every_edit_of_the_text_shows(field: str) -> None:
    before, after = FORM.page(page()), FORM.page(page(**{field: {"raw": "Edited"}}))
    assert after.fingerprint != before.fingerprint
    assert not after.intact


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "draft"},
        {"slug": "other"},
        {"modified_gmt": "2026-12-01T00:00:00"},
        {"_links": {}},
        {"author": 7},
    ],
)
def test_what_is_no_edit_of_the_text_does_not_show(changes: dict[str, Any]) -> None:
    after = FORM.page(page(**changes))
    assert after.fingerprint == FORM.page(page()).fingerprint
    assert after.intact


@pytest.mark.parametrize(
    "changes",
    [
        {"modified_gmt": "2026-11-30T02:18:03"},
        {"_links": {"predecessor-version": [{"id": 7}]}},
    ],
)
def test_a_later_write_is_another_version(changes: dict[str, Any]) -> None:
    assert FORM.page(page(**changes)).version != FORM.page(page()).version


def test_the_plugin_names_the_version() -> None:
    found = FORM.page(page(content_pipeline_version="0a1b"))
    assert found.version == "0a1b"
    assert FORM.glance(page(content_pipeline_version="0a1b")).version == "0a1b"


def test_a_glance_and_a_page_agree() -> None:
    glance, whole = FORM.glance(page()), FORM.page(page())
    assert (glance.remote_id, glance.path, glance.status, glance.version) == (
        whole.remote_id,
        whole.path,
        whole.status,
        whole.version,
    )


def test_a_description_in_a_registered_field_is_written_and_read_there() -> None:
    form = PageForm(base_url=BASE_URL, home_path="", description_in="_seo_description")
    written = form.written(DOCUMENT)
    assert "excerpt" not in written
    assert written["meta"] == {"_seo_description": DOCUMENT.meta_description}
    assert "meta._seo_description" in form.page_fields
    assert form.page(page(meta=written["meta"], excerpt={"raw": ""})).intact


@pytest.mark.parametrize("meta", [[], {}, {"_seo_description": None}])
def test_a_field_that_the_site_does_not_register_shows_as_altered(meta: object) -> None:
    form = PageForm(base_url=BASE_URL, home_path="", description_in="_seo_description")
    assert not form.page(page(meta=meta)).intact


def test_json_ld_of_ours_is_no_alteration() -> None:
    form = PageForm(base_url=BASE_URL, home_path="", json_ld=True)
    content = form.written(DOCUMENT)["content"]
    assert "application/ld+json" in content
    found = form.page(page(content={"raw": content}))
    assert found.intact
    assert form.content(page(content={"raw": content})).body_html == DOCUMENT.body_html


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "5"},
        {"id": True},
        {"slug": None},
        {"status": 1},
        {"permalink_template": None},
        {"modified_gmt": None},
        {"title": "Austria"},
        {"title": {"rendered": "Austria"}},
        {"content": {"raw": None}},
        {"content": []},
        {"excerpt": None},
    ],
)
def test_what_is_no_page_is_not_read_as_one(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the page has no"):
        FORM.page(page(**changes))


@pytest.mark.parametrize(
    ("links", "never"),
    [
        ({"version-history": [{"count": 0}]}, True),
        ({"version-history": [{"count": 1}]}, False),
        ({"version-history": []}, False),
        ({"version-history": "0"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_page_was_never_edited_only_when_wordpress_says_so(links: object, never: bool) -> None:
    assert was_never_edited(page(_links=links)) is never


def test_times_are_read_as_utc() -> None:
    assert modified_at(page()).isoformat() == "2026-11-30T02:18:02+00:00"
