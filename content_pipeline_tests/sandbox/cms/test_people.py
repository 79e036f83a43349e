"""People who work on pages by hand, and how truth tells them from the pipeline."""

from typing import Any

import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.sandbox.cms.accounts import PERSON, PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.people import Act
from content_pipeline_tests.sandbox.cms.wordpress import PAGES, WordPress, marked


def act(client: CMSClient, what: str, **more: Any) -> dict[str, Any]:
    return client.by_hand(Act.model_validate({"act": what, **more}))


@pytest.fixture
def page(site: WordPress) -> dict[str, Any]:
    return site.created(title="T", slug="town", content=marked("k1"), status="publish")


def test_an_edit_keeps_the_mark_and_bears_another_name(
    sandbox_cms: CMSClient, site: WordPress, page: dict[str, Any]
) -> None:
    act(sandbox_cms, "edit", key="k1", title="Mine", appended="<p>By hand.</p>")
    held = site.read(page)
    assert held["content"]["raw"] == marked("k1") + "<p>By hand.</p>"
    assert (held["title"]["raw"], held["author"]) == ("Mine", PIPELINE.id)
    kept = site.ask("GET", f"{PAGES}/{page['id']}/revisions?context=edit").json
    assert [each["author"] for each in kept] == [PERSON.id]
    assert [(each["by"], each["cause"]) for each in sandbox_cms.history()] == [
        (PIPELINE.id, "create"),
        (PERSON.id, "person:edit"),
    ]


@pytest.mark.parametrize(
    ("what", "more", "status", "slug", "visible"),
    [
        ("rename", {"slug": "Große Stadt"}, "publish", "grose-stadt", "/grose-stadt/"),
        ("trash", {}, "trash", "town__trashed", None),
        ("unpublish", {}, "draft", "town", None),
        ("edit", {"content": "<p>Without a mark.</p>"}, "publish", "town", "/town/"),
    ],
)
def test_a_person_may_do_anything_to_a_page(
    sandbox_cms: CMSClient,
    site: WordPress,
    page: dict[str, Any],
    what: str,
    more: dict[str, Any],
    status: str,
    slug: str,
    visible: str | None,
) -> None:
    told = act(sandbox_cms, what, page_id=page["id"], **more)
    assert told == {"page_id": page["id"], "slug": slug, "status": status}
    held = site.read(page)
    assert (held["status"], held["slug"]) == (status, slug)
    seen = {path for path in ("/town/", "/grose-stadt/") if site.visit(path).status == 200}
    assert seen == ({visible} if visible else set())


def test_what_is_in_the_trash_comes_back(
    sandbox_cms: CMSClient, site: WordPress, page: dict[str, Any]
) -> None:
    act(sandbox_cms, "trash", key="k1")
    told = act(sandbox_cms, "restore", key="k1")
    assert (told["status"], told["slug"]) == ("publish", "town")
    assert site.visit("/town/").status == 200


def test_a_deleted_page_is_gone_and_remembered(
    sandbox_cms: CMSClient, site: WordPress, page: dict[str, Any]
) -> None:
    act(sandbox_cms, "delete", key="k1")
    assert site.ask("GET", f"{PAGES}/{page['id']}").status == 404
    assert sandbox_cms.truth()["pages"]["k1"]["deleted"] == [page["id"]]


def test_a_key_means_its_oldest_page(sandbox_cms: CMSClient, site: WordPress) -> None:
    first = site.created(title="1", content=marked("k1"))
    site.created(title="2", content=marked("k1"))
    assert act(sandbox_cms, "edit", key="k1", title="x")["page_id"] == first["id"]


def test_an_edit_that_is_written_over_is_told(
    sandbox_cms: CMSClient, site: WordPress, page: dict[str, Any]
) -> None:
    act(sandbox_cms, "edit", key="k1", appended="mine")
    assert sandbox_cms.truth()["edits_overwritten"] == []
    site.updated(page, status="publish")
    assert sandbox_cms.truth()["edits_overwritten"] == [], "the text is still theirs"
    site.updated(page, content=marked("k1", 2))
    (lost,) = sandbox_cms.truth()["edits_overwritten"]
    assert lost["edit"]["cause"] == "person:edit"
    assert (lost["by"]["cause"], lost["by"]["mark"]["revision"]) == ("update", 2)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"act": "edit"}, "either page_id or key"),
        ({"act": "edit", "page_id": 1, "key": "k"}, "either page_id or key"),
        ({"act": "rename", "page_id": 1}, "needs a slug"),
        ({"act": "burn", "page_id": 1}, "act"),
    ],
)
def test_an_act_that_says_too_little_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Act.model_validate(wrong)


@pytest.mark.parametrize("whom", [{"key": "nobody"}, {"page_id": 99}])
def test_a_page_that_is_not_there_is_told(sandbox_cms: CMSClient, whom: dict[str, Any]) -> None:
    with pytest.raises(CallFailed, match="Invalid post ID") as raised:
        act(sandbox_cms, "trash", **whom)
    assert raised.value.failure.http_status == 404


def test_trashing_twice_is_told(sandbox_cms: CMSClient, page: dict[str, Any]) -> None:
    act(sandbox_cms, "trash", key="k1")
    with pytest.raises(CallFailed, match="already been deleted"):
        act(sandbox_cms, "trash", key="k1")
