"""What WordPress does, behaviour by behaviour: the sandbox must do the same as a real one.

Every expectation here was seen on WordPress 6.1.9. With the variable ``WORDPRESS_SITE`` the same
tests run against the WordPress described there.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from content_pipeline_tests.sandbox.cms.wordpress import EVERY_STATUS, PAGES, WordPress, marked

Fields = Mapping[str, Any]


def history(page: Fields) -> tuple[int, int | None]:
    """Number of kept versions, and the id of the last one."""
    links = page["_links"]
    newest = links.get("predecessor-version")
    return links["version-history"][0]["count"], newest[0]["id"] if newest else None


# --- creating ---------------------------------------------------------------------------------


def test_a_slug_that_is_taken_gets_a_suffix_and_never_an_error(
    wordpress: WordPress, name: str
) -> None:
    statuses = ["publish", "draft", "pending", "private", "publish"]
    made = [wordpress.created(title="T", slug=name, status=status) for status in statuses]
    assert [page["slug"] for page in made] == [name, *(f"{name}-{n}" for n in (2, 3, 4, 5))]
    assert [page["status"] for page in made] == statuses


def test_below_another_parent_the_slug_is_free(wordpress: WordPress, name: str) -> None:
    parent = wordpress.created(title="P", slug=name, status="publish")
    child = wordpress.created(title="C", slug=name, status="publish", parent=parent["id"])
    assert child["slug"] == name
    assert child["link"] == f"{wordpress.base_url}/{name}/{name}/"
    assert wordpress.visit(f"/{name}/{name}/").status == 200


def test_a_page_without_a_status_is_a_draft_and_may_be_empty(wordpress: WordPress) -> None:
    page = wordpress.created()
    assert (page["status"], page["slug"], page["title"]["raw"]) == ("draft", "", "")
    assert page["link"] == f"{wordpress.base_url}/?page_id={page['id']}"


def test_a_published_page_without_a_slug_gets_one_of_its_title(
    wordpress: WordPress, name: str
) -> None:
    draft = wordpress.created(title=f"{name} Größe & Co.")
    assert draft["slug"] == ""
    assert wordpress.updated(draft, status="publish")["slug"] == f"{name}-grose-co"


@pytest.mark.parametrize(
    ("wish", "slug"),
    [
        ("Äpfel & Birnen", "apfel-birnen"),
        ("a/b.c", "a-b-c"),
        ("-a--b-", "a-b"),
        ("A_b C", "a_b-c"),
        ("feed", "feed-2"),
        ("embed", "embed-2"),
        ("2024", "2024-2"),
        ("100%", "100-2"),
        ("page", "page"),
        ("日本", "%e6%97%a5%e6%9c%ac"),
        ("x" * 230, "x" * 200),
    ],
)
def test_a_slug_is_silently_made_fit(wordpress: WordPress, wish: str, slug: str) -> None:
    page = wordpress.created(title="T", slug=wish, status="publish")
    wordpress.deleted(page)
    assert page["slug"] == slug


@pytest.mark.parametrize("title", [{"x": 1}, {}])
def test_a_title_of_another_shape_is_an_empty_draft_and_no_error(
    wordpress: WordPress, title: object
) -> None:
    page = wordpress.created(title=title)
    assert (page["status"], page["title"]["raw"]) == ("draft", "")


def test_unknown_fields_are_ignored(wordpress: WordPress) -> None:
    assert wordpress.created(title="T", colour="red")["title"]["raw"] == "T"


def test_fields_of_plugins_that_are_not_there_are_dropped(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", meta={"_cp_key": name})
    assert page["meta"] == []
    everything = wordpress.found(status="any", per_page="1")
    assert wordpress.found(status="any", per_page="1", cp_key="nowhere") == everything


def test_a_position_is_kept_and_can_be_asked_for(wordpress: WordPress) -> None:
    position = time.time_ns() % 2**31
    page = wordpress.created(title="T", menu_order=position)
    found = wordpress.found(status="any", menu_order=str(position))
    assert [each["id"] for each in found] == [page["id"]]


TRUSTED = (
    '<p onclick=\'x()\'>A & B</p><script type="application/ld+json">{"a": 1}</script>'
    "<iframe src='https://example.test/'></iframe>\r\n<!-- cp:key=k rev=1 h=a --> \U0001f600"
)


@pytest.mark.parametrize("who", ["editor", "administrator"])
def test_html_of_who_is_trusted_is_kept_to_the_letter(wordpress: WordPress, who: str) -> None:
    answer = wordpress.ask("POST", PAGES, {"title": "A & B", "content": TRUSTED}, who=who)
    assert answer.status == 201
    assert answer.json["content"]["raw"] == TRUSTED
    assert answer.json["title"] == {"raw": "A & B", "rendered": "A &#038; B"}


# --- dates ------------------------------------------------------------------------------------


def gmt(ahead: timedelta) -> str:
    moment = datetime.fromtimestamp(time.time(), UTC) + ahead
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    ("asked", "ahead_s", "status"),
    [
        ("publish", 120, "future"),
        ("publish", 3, "publish"),
        ("future", 120, "future"),
        ("future", -3600, "publish"),
    ],
)
def test_a_date_ahead_decides_whether_a_page_is_planned(
    wordpress: WordPress, name: str, asked: str, ahead_s: int, status: str
) -> None:
    date = gmt(timedelta(seconds=ahead_s))
    page = wordpress.created(title="T", slug=name, status=asked, date_gmt=date)
    assert (page["status"], page["date_gmt"], page["modified_gmt"]) == (status, date, date)
    assert wordpress.visit(f"/{name}/").status == (200 if status == "publish" else 404)


def test_times_have_no_zone_and_whole_seconds(wordpress: WordPress) -> None:
    page = wordpress.created(title="T")
    for field in ("date_gmt", "modified_gmt"):
        assert datetime.fromisoformat(page[field]).tzinfo is None
        assert len(page[field]) == len("2026-11-30T02:01:58")


def test_an_update_of_nothing_moves_the_time_and_not_the_number_of_versions(
    wordpress: WordPress,
) -> None:
    page = wordpress.created(title="T", status="publish")
    touched = wordpress.updated(page)
    time.sleep(1.1)
    again = wordpress.updated(page)
    assert again["modified_gmt"] > touched["modified_gmt"]
    assert history(again) == history(touched)


# --- updating ---------------------------------------------------------------------------------


def test_versions_count_changes_of_the_text_alone(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", content="1", slug=name, status="publish")
    assert history(page) == (0, None)
    steps: list[tuple[dict[str, Any], int]] = [
        ({}, 1),  # the first update keeps one, whatever it changes
        ({}, 1),
        ({"title": "T2"}, 2),
        ({"title": "T2"}, 2),
        ({"content": "2"}, 3),
        ({"excerpt": "short"}, 4),
        ({"slug": f"{name}-other"}, 4),
        ({"status": "draft"}, 4),
        ({"menu_order": 3}, 4),
    ]
    for change, count in steps:
        page = wordpress.updated(page, **change)
        assert history(page)[0] == count, change


def test_the_same_update_twice_is_done_twice_and_leaves_one_page(
    wordpress: WordPress, name: str
) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    first = wordpress.updated(page, content=marked(name))
    second = wordpress.updated(page, content=marked(name))
    assert history(first) == history(second)
    assert len(wordpress.found(status="any", search=f"key={name}")) == 1


@pytest.mark.parametrize(
    "precondition",
    [
        {"if-match": '"nothing"'},
        {"if-unmodified-since": "Wed, 01 Jan 2020 00:00:00 GMT"},
    ],
)
def test_preconditions_are_ignored(wordpress: WordPress, precondition: Mapping[str, str]) -> None:
    page = wordpress.created(title="T", status="publish")
    place = f"{PAGES}/{page['id']}"
    answer = wordpress.ask("POST", place, {"title": "T2"}, headers=precondition)
    assert (answer.status, answer.json["title"]["raw"]) == (200, "T2")
    assert "etag" not in answer.headers


def test_an_update_may_come_by_any_changing_method(wordpress: WordPress) -> None:
    page = wordpress.created(title="T")
    for method in ("POST", "PUT", "PATCH"):
        answer = wordpress.ask(method, f"{PAGES}/{page['id']}", {"title": method})
        assert (answer.status, answer.json["title"]["raw"]) == (200, method)


def test_a_version_tells_who_wrote_what(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", content="1", slug=name)
    wordpress.updated(page, content="2")
    place = f"{PAGES}/{page['id']}"
    assert wordpress.ask("POST", place, {"content": "3"}, who="administrator").status == 200
    answer = wordpress.ask("GET", f"{place}/revisions?context=edit")
    kept = answer.json
    assert [each["content"]["raw"] for each in kept] == ["3", "2"]
    assert kept[0]["author"] != kept[1]["author"] == page["author"]
    assert {each["parent"] for each in kept} == {page["id"]}
    assert history(wordpress.read(page)) == (2, kept[0]["id"])
    assert answer.headers["x-wp-total"] == "2"
    one = wordpress.ask("GET", f"{place}/revisions/{kept[1]['id']}?context=edit").json
    assert one["content"]["raw"] == "2"


@pytest.mark.parametrize("parent", ["itself", "its child"])
def test_a_circle_of_parents_is_silently_not_made(
    wordpress: WordPress, name: str, parent: str
) -> None:
    page = wordpress.created(title="P", slug=name, status="publish")
    child = wordpress.created(title="C", slug=name, status="publish", parent=page["id"])
    asked = page["id"] if parent == "itself" else child["id"]
    assert wordpress.updated(page, parent=asked)["parent"] == 0


# --- the trash --------------------------------------------------------------------------------


def test_the_trash_gives_the_slug_free_and_a_restored_page_may_lose_it(
    wordpress: WordPress, name: str
) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    gone = wordpress.trashed(page)
    assert (gone["status"], gone["slug"]) == ("trash", f"{name}__trashed")
    assert wordpress.visit(f"/{name}/").status == 404
    assert wordpress.found(status="any", slug=f"{name},{name}__trashed") == []
    found = wordpress.found(status="trash", slug=f"{name}__trashed")
    assert [each["id"] for each in found] == [page["id"]]

    assert wordpress.created(title="New", slug=name, status="publish")["slug"] == name
    restored = wordpress.updated(page, status="publish")
    assert (restored["status"], restored["slug"]) == ("publish", f"{name}-2")


def test_a_restored_page_has_its_slug_back_when_it_is_free(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    wordpress.trashed(page)
    renamed = wordpress.updated(page, slug=f"{name}-elsewhere", title="T2")
    assert renamed["status"] == "trash"
    restored = wordpress.updated(page, status="draft")
    assert (restored["status"], restored["slug"]) == ("draft", name)
    assert restored["title"]["raw"] == "T2"


def test_trashing_twice_is_refused_and_deleting_is_for_good(wordpress: WordPress) -> None:
    page = wordpress.created(title="T", status="publish")
    place = f"{PAGES}/{page['id']}"
    wordpress.trashed(page)
    again = wordpress.ask("DELETE", place)
    assert (again.status, again.code) == (410, "rest_already_trashed")
    gone = wordpress.ask("DELETE", f"{place}?force=true").json
    assert gone["deleted"] is True
    assert gone["previous"]["id"] == page["id"]
    missing = wordpress.ask("GET", place)
    assert (missing.status, missing.code) == (404, "rest_post_invalid_id")


def test_a_child_of_a_trashed_page_moves_with_its_name(wordpress: WordPress, name: str) -> None:
    parent = wordpress.created(title="P", slug=name, status="publish")
    child = wordpress.created(title="C", slug="child", status="publish", parent=parent["id"])
    wordpress.trashed(parent)
    assert wordpress.read(child)["link"] == f"{wordpress.base_url}/{name}__trashed/child/"


# --- looking up -------------------------------------------------------------------------------


def test_a_slug_is_found_in_the_asked_statuses_only(wordpress: WordPress, name: str) -> None:
    ahead = gmt(timedelta(days=2))
    statuses = ("publish", "draft", "pending", "private", "future")
    slugs = {}
    for status in statuses:
        slug = f"{name}-{status}"
        date = {"date_gmt": ahead} if status == "future" else {}
        slugs[wordpress.created(title="T", slug=slug, status=status, **date)["id"]] = slug
    wanted = ",".join(slugs.values())
    assert [each["status"] for each in wordpress.found(slug=wanted)] == ["publish"]
    assert {each["id"] for each in wordpress.found(slug=wanted, status="any")} == set(slugs)
    drafts = wordpress.found(slug=wanted, status="draft,pending")
    assert {each["status"] for each in drafts} == {"draft", "pending"}


def test_a_mark_in_a_comment_is_found_in_every_status(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", slug=name, content=marked(name))
    for status in ("draft", "publish", "private", "pending", "trash"):
        if status == "trash":
            wordpress.trashed(page)
        else:
            wordpress.updated(page, status=status)
        found = wordpress.found(search=f"key={name}", status=EVERY_STATUS)
        assert [(each["id"], each["status"]) for each in found] == [(page["id"], status)]
    assert wordpress.found(search=f"key={name}", status="any") == []


@pytest.mark.parametrize(
    ("search", "is_found"),
    [
        ("{name}", True),
        ("{upper}", True),
        ("{part}", True),
        ("{name} words", True),
        ("{name} elsewhere", False),
        ('{name} "some words"', True),
        ('{name} "words some"', False),
        ("{name} -words", False),
        ("{name} -elsewhere", True),
    ],
)
def test_a_search_is_for_parts_of_words_that_must_all_occur(
    wordpress: WordPress, name: str, search: str, is_found: bool
) -> None:
    wordpress.created(title="T", content=f"some words {name} here", status="publish")
    asked = search.format(name=name, upper=name.upper(), part=name[3:])
    assert len(wordpress.found(search=asked)) == int(is_found)


def test_lists_come_in_pages_with_totals(wordpress: WordPress, name: str) -> None:
    made = [wordpress.created(title="T", content=name, status="publish")["id"] for _ in range(5)]
    place = f"{PAGES}?search={name}&per_page=2&orderby=id&order=asc"
    seen = []
    for page in (1, 2, 3):
        answer = wordpress.ask("GET", f"{place}&page={page}")
        assert (answer.headers["x-wp-total"], answer.headers["x-wp-totalpages"]) == ("5", "3")
        assert ('rel="next"' in answer.headers.get("link", "")) == (page < 3)
        assert ('rel="prev"' in answer.headers.get("link", "")) == (page > 1)
        seen += [each["id"] for each in answer.json]
    assert seen == made
    beyond = wordpress.ask("GET", f"{place}&page=4")
    assert (beyond.status, beyond.code) == (400, "rest_post_invalid_page_number")


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ({"orderby": "id", "order": "asc"}, [0, 1, 2]),
        ({"orderby": "id"}, [2, 1, 0]),
        ({"orderby": "title", "order": "asc"}, [1, 2, 0]),
        ({"orderby": "slug", "order": "asc"}, [2, 0, 1]),
        ({"orderby": "include"}, [2, 0, 1]),
        ({"orderby": "menu_order", "order": "asc"}, [1, 0, 2]),
        ({"offset": "1", "orderby": "id", "order": "asc"}, [1, 2]),
    ],
)
def test_a_list_has_the_asked_order(
    wordpress: WordPress, name: str, query: dict[str, str], order: list[int]
) -> None:
    fields = [("c", f"{name}-b", 5), ("a", f"{name}-c", 2), ("b", f"{name}-a", 8)]
    made = [
        wordpress.created(title=title, slug=slug, menu_order=position, status="publish")["id"]
        for title, slug, position in fields
    ]
    include = f"{made[2]},{made[0]},{made[1]}"
    found = wordpress.found(include=include, **query)
    assert [made.index(each["id"]) for each in found] == order


def test_pages_changed_since_a_moment_can_be_asked_for(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    before = datetime.fromisoformat(page["modified_gmt"]) - timedelta(seconds=1)
    for moment in (before.isoformat(), f"{before.isoformat()}Z"):
        assert len(wordpress.found(slug=name, modified_after=moment)) == 1
    assert wordpress.found(slug=name, modified_after=page["modified_gmt"]) == []
    assert len(wordpress.found(slug=name, modified_before=gmt(timedelta(days=1)))) == 1


def test_only_the_asked_fields_are_shown(wordpress: WordPress, name: str) -> None:
    wordpress.created(title="T", slug=name, status="publish")
    assert [set(each) for each in wordpress.found(slug=name, _fields="id,slug")] == [{"id", "slug"}]


# --- rights -----------------------------------------------------------------------------------


def test_a_wrong_password_lists_what_anybody_sees_and_no_error(
    wordpress: WordPress, name: str
) -> None:
    for status in ("publish", "draft"):
        wordpress.created(title="T", content=name, status=status)
    place = f"{PAGES}?search={name}"
    wrong = wordpress.ask("GET", place, password="wrong")
    anybody = wordpress.ask("GET", place, who=None)
    assert wrong.status == anybody.status == 200
    assert wrong.json == anybody.json
    assert [each["status"] for each in wrong.json] == ["publish"]
    assert "raw" not in wrong.json[0]["content"]


def test_raw_texts_are_shown_in_the_context_edit_alone(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="A & B", slug=name, content="<p>x</p>", status="publish")
    place = f"{PAGES}/{page['id']}"
    for answer in (wordpress.ask("GET", place), wordpress.ask("GET", place, who=None)):
        assert set(answer.json["title"]) == {"rendered"}
        assert "permalink_template" not in answer.json
    assert wordpress.read(page)["content"]["raw"] == "<p>x</p>"


def test_who_logged_in_is_told_with_rights(wordpress: WordPress) -> None:
    for who, may in (("administrator", True), ("editor", True), ("author", False)):
        me = wordpress.ask("GET", "/wp-json/wp/v2/users/me?context=edit", who=who).json
        assert me["username"] == wordpress.logins[who][0]
        assert me["roles"] == [who]
        assert me["capabilities"].get("publish_pages", False) is may
        assert me["capabilities"].get("edit_others_pages", False) is may


def test_spaces_in_an_application_password_do_not_matter(wordpress: WordPress) -> None:
    bare = wordpress.logins["editor"][1].replace(" ", "")
    spaced = " ".join(bare[start : start + 4] for start in range(0, len(bare), 4))
    for password in (bare, spaced):
        assert wordpress.ask("GET", "/wp-json/wp/v2/users/me", password=password).status == 200


ME = "/wp-json/wp/v2/users/me"
MISSING = f"{PAGES}/99999999"

REFUSED: list[tuple[str, str, object, str | None, int, str]] = [
    ("GET", ME, None, None, 401, "rest_not_logged_in"),
    ("GET", MISSING, None, "editor", 404, "rest_post_invalid_id"),
    ("POST", MISSING, {"title": "x"}, "editor", 404, "rest_post_invalid_id"),
    ("PUT", MISSING, {"title": "x"}, "editor", 404, "rest_post_invalid_id"),
    ("DELETE", MISSING, None, "editor", 404, "rest_post_invalid_id"),
    ("GET", f"{MISSING}/revisions", None, "editor", 404, "rest_post_invalid_parent"),
    ("GET", f"{PAGES}/abc", None, "editor", 404, "rest_no_route"),
    ("PUT", PAGES, {}, "editor", 404, "rest_no_route"),
    ("GET", "/wp-json/wp/v2/nope", None, "editor", 404, "rest_no_route"),
    ("POST", PAGES, {"title": "x"}, None, 401, "rest_cannot_create"),
    ("POST", PAGES, {"title": "x"}, "author", 403, "rest_cannot_create"),
    ("POST", PAGES, {"id": 1, "title": "x"}, "editor", 400, "rest_post_exists"),
    ("POST", PAGES, b'{"title":', "editor", 400, "rest_invalid_json"),
    ("POST", PAGES, {"status": "bogus"}, "editor", 400, "rest_invalid_param"),
    ("POST", PAGES, {"status": "trash"}, "editor", 400, "rest_invalid_param"),
    ("POST", PAGES, {"status": "bogus"}, None, 400, "rest_invalid_param"),
    ("POST", PAGES, {"menu_order": "abc"}, "editor", 400, "rest_invalid_param"),
    ("POST", PAGES, {"date_gmt": "nonsense"}, "editor", 400, "rest_invalid_param"),
    ("POST", PAGES, {"template": "nope.php"}, "editor", 400, "rest_invalid_param"),
    ("POST", PAGES, {"parent": 99999999}, "editor", 400, "rest_post_invalid_id"),
    ("POST", PAGES, {"title": "x" * 70_000}, "editor", 500, "db_insert_error"),
    ("GET", f"{PAGES}?context=edit", None, None, 401, "rest_forbidden_context"),
    ("GET", f"{PAGES}?context=edit", None, "author", 403, "rest_forbidden_context"),
    ("GET", f"{PAGES}?status=any", None, None, 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?status=any", None, "author", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?status=draft", None, None, 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?status=bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?status=draft,bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?per_page=101", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?per_page=0", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?page=0", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?orderby=bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?order=bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?context=bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?modified_after=bogus", None, "editor", 400, "rest_invalid_param"),
    ("GET", f"{PAGES}?page=9999", None, "editor", 400, "rest_post_invalid_page_number"),
]


@pytest.mark.parametrize(("method", "path", "body", "who", "status", "code"), REFUSED)
def test_a_refusal_has_its_status_its_code_and_no_effect(
    wordpress: WordPress,
    method: str,
    path: str,
    body: object,
    who: str | None,
    status: int,
    code: str,
) -> None:
    before = wordpress.found(status="any", orderby="id", per_page="1", _fields="id")
    answer = wordpress.ask(method, path, body, who=who)
    assert (answer.status, answer.code) == (status, code)
    assert answer.json["data"]["status"] == status
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert wordpress.found(status="any", orderby="id", per_page="1", _fields="id") == before


@pytest.mark.parametrize(("who", "status", "details"), [(None, 400, 401), ("author", 400, 403)])
def test_forbidden_statuses_are_a_parameter_error_with_the_reason_inside(
    wordpress: WordPress, who: str | None, status: int, details: int
) -> None:
    answer = wordpress.ask("GET", f"{PAGES}?status=any", who=who)
    assert answer.status == status
    inner = answer.json["data"]["details"]["status"]
    assert (inner["code"], inner["data"]["status"]) == ("rest_forbidden_status", details)


@pytest.mark.parametrize(
    ("method", "suffix", "who", "status", "code"),
    [
        ("GET", "", None, 401, "rest_forbidden"),
        ("GET", "", "author", 403, "rest_forbidden"),
        ("GET", "?context=edit", "author", 403, "rest_forbidden_context"),
        ("POST", "", None, 401, "rest_cannot_edit"),
        ("POST", "", "author", 403, "rest_cannot_edit"),
        ("DELETE", "", None, 401, "rest_cannot_delete"),
        ("DELETE", "", "author", 403, "rest_cannot_delete"),
        ("GET", "/revisions", None, 401, "rest_cannot_read"),
        ("GET", "/revisions", "author", 403, "rest_cannot_read"),
        ("GET", "/revisions/99999999", "editor", 404, "rest_post_invalid_id"),
    ],
)
def test_a_draft_is_not_for_everybody(
    wordpress: WordPress, method: str, suffix: str, who: str | None, status: int, code: str
) -> None:
    page = wordpress.created(title="T")
    body = {"title": "x"} if method == "POST" else None
    answer = wordpress.ask(method, f"{PAGES}/{page['id']}{suffix}", body, who=who)
    assert (answer.status, answer.code) == (status, code)
    assert wordpress.read(page)["title"]["raw"] == "T"


# --- the public side --------------------------------------------------------------------------


def test_visitors_see_published_pages_with_their_mark(wordpress: WordPress, name: str) -> None:
    page = wordpress.created(title="A & B", slug=name, content=marked(name))
    assert wordpress.visit(f"/{name}/").status == 404
    wordpress.updated(page, status="publish")
    seen = wordpress.visit(f"/{name}/")
    assert seen.status == 200
    assert f"cp:key={name} rev=1 h=abc123" in seen.text
    assert seen.headers["content-type"].startswith("text/html")
    for status in ("draft", "private", "pending"):
        wordpress.updated(page, status=status)
        assert wordpress.visit(f"/{name}/").status == 404


def test_an_address_without_its_slash_or_by_id_leads_to_the_page(
    wordpress: WordPress, name: str
) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    for path in (f"/{name}", f"/?page_id={page['id']}"):
        seen = wordpress.visit(path)
        assert (seen.status, seen.headers["location"]) == (301, page["link"])


def test_a_missing_address_leads_to_a_page_whose_slug_begins_like_it(
    wordpress: WordPress, name: str
) -> None:
    page = wordpress.created(title="T", slug=name, status="publish")
    other = wordpress.created(title="T", slug=name, status="publish")
    wordpress.trashed(page)
    seen = wordpress.visit(f"/{name}/")
    assert (seen.status, seen.headers["location"]) == (301, other["link"])


def test_a_page_in_another_script_is_found_by_its_encoded_address(wordpress: WordPress) -> None:
    page = wordpress.created(title="T", slug="日本", status="publish")
    seen = wordpress.visit(page["link"].removeprefix(wordpress.base_url))
    wordpress.deleted(page)
    assert seen.status == 200


def test_the_sitemap_lists_what_visitors_see(wordpress: WordPress, name: str) -> None:
    live = wordpress.created(title="T", slug=name, status="publish")
    wordpress.created(title="T", slug=f"{name}-draft")
    assert "wp-sitemap-posts-page-1.xml" in wordpress.visit("/wp-sitemap.xml").text
    listed = wordpress.visit("/wp-sitemap-posts-page-1.xml").text
    assert f"<loc>{live['link']}</loc>" in listed
    assert f"{name}-draft" not in listed
    assert "page_id" not in listed


def test_the_api_introduces_itself(wordpress: WordPress) -> None:
    root = wordpress.ask("GET", "/wp-json/", who=None).json
    assert "wp/v2" in root["namespaces"]
    assert root["url"] == wordpress.base_url
    assert "application-passwords" in root["authentication"]


def test_a_body_of_another_kind_is_read_as_a_form_or_not_at_all(wordpress: WordPress) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = wordpress.ask("POST", PAGES, b"title=From+a+form", headers=form)
    assert (answer.status, answer.json["title"]["raw"]) == (201, "From a form")
    answer = wordpress.ask("POST", PAGES, json.dumps([1, 2]).encode())
    assert (answer.status, answer.json["title"]["raw"]) == (201, "")
