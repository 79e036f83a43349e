import json
from typing import Any

import pytest

from content_pipeline.adapters.cms.ghost_pages import GhostForm, was_never_touched, written_at
from content_pipeline.adapters.cms.json_service import Json
from content_pipeline.core.cms import RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline_tests.adapters.cms.documents import make_document

BASE_URL = "https://ghost.example"
FORM = GhostForm(base_url=BASE_URL, home_path="")
DOCUMENT = make_document(base_url=BASE_URL)


def held(form: GhostForm = FORM, **changes: Any) -> dict[str, Any]:
    """What Ghost holds after it was sent DOCUMENT."""
    return {
        "id": "6b0ce62ae450a571f93f4264",
        "status": "published",
        "url": f"{BASE_URL}/austria/",
        "created_at": "2026-11-30T02:57:46.000Z",
        "updated_at": "2026-11-30T02:57:46.000Z",
        "published_at": "2026-11-30T02:57:46.000Z",
        **form.written(DOCUMENT),
        **changes,
    }


def test_a_page_that_was_sent_is_read_back_whole() -> None:
    page = FORM.page(held())
    assert (page.path, page.url, page.status) == (
        DOCUMENT.path,
        DOCUMENT.url,
        RemoteStatus.PUBLISHED,
    )
    assert page.marker == DOCUMENT.marker
    assert page.intact
    assert page.version == "2026-11-30T02:57:46.000Z"
    assert FORM.content(held()).body_html == DOCUMENT.body_html


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Another"},
        {"meta_description": None},
        {"lexical": held()["lexical"].replace("Revision", "Edition")},
        {"lexical": None},
        {"lexical": "{"},
        {"lexical": json.dumps({"root": {"children": []}})},
        {"codeinjection_head": None},
    ],
)
def test_every_edit_shows_in_the_fingerprint_and_is_not_intact(changes: dict[str, Any]) -> None:
    edited = FORM.page(held(**changes))
    assert edited.fingerprint != FORM.page(held()).fingerprint
    assert not edited.intact


def test_a_person_may_put_more_into_the_head_and_our_mark_stays() -> None:
    head = held()["codeinjection_head"]
    page = FORM.page(held(codeinjection_head=f"<style></style>{head}"))
    assert page.marker == DOCUMENT.marker
    assert page.fingerprint != FORM.page(held()).fingerprint


def test_what_the_editor_adds_to_the_card_when_it_is_opened_is_no_edit() -> None:
    document = json.loads(held()["lexical"])
    document["root"]["children"][0]["visibility"] = {"web": {"nonMember": True}}
    opened = FORM.page(held(lexical=json.dumps(document)))
    assert opened.fingerprint == FORM.page(held()).fingerprint


def test_a_text_of_several_blocks_is_told_as_its_html() -> None:
    document = json.loads(held()["lexical"])
    document["root"]["children"].append({"type": "paragraph", "children": []})
    found = held(lexical=json.dumps(document), html="<p>Both.</p>")
    assert FORM.content(found).body_html == "<p>Both.</p>"


@pytest.mark.parametrize("status", ["draft", "scheduled", "sent"])
def test_what_no_visitor_sees_is_hidden_and_stands_at_its_slug(status: str) -> None:
    page = FORM.page(held(status=status, url=f"{BASE_URL}/p/24d9c6f2/"))
    assert (page.status, page.path) == (RemoteStatus.HIDDEN, "/austria/")


def test_a_published_page_stands_where_ghost_says() -> None:
    below = GhostForm(base_url=f"{BASE_URL}/blog", home_path="/blog", below="/land/")
    assert below.path(held(url=f"{BASE_URL}/blog/land/austria/")) == "/land/austria/"
    assert below.slug_of("/land/austria/") == "austria"
    assert below.path(held(status="draft")) == "/land/austria/"


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/a/b/", "/Austria/", "/größe/", "/a b/", "/-a/", "/a--b/", "/a'/", "a", "/a"],
)
def test_a_path_that_ghost_would_rewrite_is_refused(path: str) -> None:
    with pytest.raises(CallFailed) as refused:
        FORM.slug_of(path)
    assert refused.value.failure.failure_class is FailureClass.INVALID_INPUT


def test_a_slug_that_ghost_would_cut_is_refused() -> None:
    with pytest.raises(CallFailed):
        FORM.slug_of(f"/{'x' * 186}/")


@pytest.mark.parametrize("slug", ["austria", "a_b", "a-1", "x" * 185])
def test_a_slug_that_ghost_keeps_is_taken(slug: str) -> None:
    assert FORM.slug_of(f"/{slug}/") == slug


@pytest.mark.parametrize("name", ["id", "status", "updated_at", "title", "url"])
@pytest.mark.parametrize("value", [None, 3, {}])
def test_an_answer_without_a_field_is_no_answer(name: str, value: object) -> None:
    with pytest.raises(ValueError):
        FORM.page(held() | {name: value})


def test_a_time_that_is_none_is_no_answer() -> None:
    with pytest.raises(ValueError):
        written_at({"updated_at": "yesterday"})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (held(published_at=None), True),
        (held(), False),
        (held(published_at=None, updated_at="2026-11-30T02:57:47.000Z"), False),
    ],
)
def test_only_what_was_neither_public_nor_written_again_was_never_touched(
    found: Json, expected: bool
) -> None:
    assert was_never_touched(found) is expected


def test_json_ld_cannot_leave_its_element() -> None:
    form = GhostForm(base_url=BASE_URL, home_path="", json_ld=True)
    page = make_document(base_url=BASE_URL, title="</script><b>")
    head = form.written(page)["codeinjection_head"]
    assert head.count("</script>") == 1
    assert form.page(held(form=form)).marker == DOCUMENT.marker
