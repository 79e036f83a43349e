"""What a request is understood as, and which page it is about."""

import re
from typing import Any

import pytest

from content_pipeline.sandbox.cms.accounts import ACCOUNTS, ADMIN, asker
from content_pipeline.sandbox.cms.keys import key_of
from content_pipeline.sandbox.cms.pages import Page, Status
from content_pipeline.sandbox.cms.queries import parameters
from content_pipeline.sandbox.cms.refusals import RestError
from content_pipeline.sandbox.cms.routes import asked, body_fields
from content_pipeline.sandbox.cms.settings import MARKER_PATTERN
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.wire import Request
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.cms.wordpress import marked

PAGES = "/wp-json/wp/v2/pages"


def request(method: str, path: str, body: bytes = b"", **headers: str) -> Request:
    path, _, query = path.partition("?")
    split = [each.partition("=") for each in query.split("&") if each]
    pairs = tuple((name, value) for name, _, value in split)
    return Request(method=method, path=path, query=pairs, headers=headers, body=body)


@pytest.mark.parametrize(
    ("method", "path", "operation", "page_id"),
    [
        ("GET", "/wp-json", "root", None),
        ("GET", "/wp-json/", "root", None),
        ("GET", "/wp-json/wp/v2", "root", None),
        ("GET", "/wp-json/wp/v2/users/me", "me", None),
        ("POST", "/wp-json/wp/v2/users/me", "unknown", None),
        ("GET", PAGES, "list", None),
        ("GET", f"{PAGES}/", "list", None),
        ("POST", PAGES, "create", None),
        ("DELETE", PAGES, "unknown", None),
        ("GET", f"{PAGES}/7", "read", 7),
        ("POST", f"{PAGES}/7", "update", 7),
        ("PUT", f"{PAGES}/7", "update", 7),
        ("PATCH", f"{PAGES}/7", "update", 7),
        ("DELETE", f"{PAGES}/7", "trash", 7),
        ("DELETE", f"{PAGES}/7?force=false", "trash", 7),
        ("DELETE", f"{PAGES}/7?force=true", "delete", 7),
        ("OPTIONS", f"{PAGES}/7", "unknown", 7),
        ("GET", f"{PAGES}/7/revisions", "revisions", 7),
        ("GET", f"{PAGES}/7/revisions/9", "revisions", 7),
        ("DELETE", f"{PAGES}/7/revisions/9", "unknown", 7),
        ("GET", f"{PAGES}/x", "unknown", None),
        ("GET", "/wp-jsonx/", "front", None),
        ("GET", "/", "front", None),
        ("GET", "/town/", "front", None),
        ("GET", "/wp-sitemap.xml", "sitemap", None),
        ("POST", "/indexnow", "indexnow", None),
        ("POST", "/hooks/deploy/site", "deploy", None),
        ("POST", "/hooks/receive/partner", "receive", None),
        ("POST", "/client/v4/zones/z/purge_cache", "purge", None),
        ("POST", "/hooks/deploy/", "front", None),
    ],
)
def test_method_and_address_make_an_operation(
    method: str, path: str, operation: str, page_id: int | None
) -> None:
    ask = asked(request(method, path))
    assert (ask.operation, ask.page_id) == (operation, page_id)


def test_parameters_may_come_as_lists() -> None:
    query = [("status[]", "draft"), ("status[]", "publish"), ("slug[0]", "a"), ("page", "1")]
    assert parameters([*query, ("page", "2")]) == {
        "status": ("draft", "publish"),
        "slug": ("a",),
        "page": ("2",),
    }


@pytest.mark.parametrize(
    ("body", "kind", "fields"),
    [
        (b"", "application/json", {}),
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "application/json; charset=utf-8", {"a": 1}),
        (b"[1]", "application/json", {}),
        (b"a=1&b=%C3%BC&c=", "application/x-www-form-urlencoded", {"a": "1", "b": "ü", "c": ""}),
    ],
)
def test_a_body_is_read_by_its_kind(body: bytes, kind: str, fields: dict[str, Any]) -> None:
    assert body_fields(request("POST", PAGES, body, **{"content-type": kind})) == fields


@pytest.mark.parametrize("body", [b"{", b"nonsense", b"\xff\xfe{"])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(RestError, match="Invalid JSON"):
        body_fields(request("POST", PAGES, body, **{"content-type": "application/json"}))


@pytest.mark.parametrize(
    "authorization",
    ["", "Basic", "Basic !!!", "Basic YQ==", "Bearer abc", "Basic //79", "Basic YWRtaW46d3Jvbmc="],
)
def test_credentials_that_are_none_are_nobodys(authorization: str) -> None:
    assert asker(request("GET", PAGES, authorization=authorization)) is None


def test_every_account_has_a_name_and_a_password_of_its_own() -> None:
    assert len({account.login for account in ACCOUNTS}) == len(ACCOUNTS)
    assert len({account.app_password for account in ACCOUNTS}) == len(ACCOUNTS)
    for account in ACCOUNTS:
        assert re.fullmatch(r"(\w{4} ){5}\w{4}", account.app_password)
        assert account.app_password not in repr(account)


@pytest.fixture
def site() -> Site:
    """One public page of the key k1 at /a/, one draft of k2 with the id 2, one without a mark."""
    made = Site(INSTANT_CMS, Store.in_memory())
    rows = [
        Page(id=0, slug="a", content=marked("k1"), status=Status.PUBLISH),
        Page(id=0, slug="b", content=marked("k2")),
        Page(id=0, slug="c"),
    ]
    for row in rows:
        made.stored(row, by=ADMIN.id, cause="create")
    return made


@pytest.mark.parametrize(
    ("method", "path", "fields", "key"),
    [
        ("GET", f"{PAGES}/2", {}, "k2"),
        ("POST", f"{PAGES}/2", {"content": marked("other")}, "k2"),
        ("POST", f"{PAGES}/3", {"content": marked("k3")}, "k3"),
        ("GET", f"{PAGES}/3", {}, "id:3"),
        ("GET", f"{PAGES}/99", {}, "id:99"),
        ("POST", PAGES, {"content": marked("k4")}, "k4"),
        ("POST", PAGES, {"content": {"raw": marked("k4")}}, "k4"),
        ("POST", PAGES, {"meta": {"_cp_key": "k5"}}, "k5"),
        ("POST", PAGES, {"meta": {"_cp_key": 5}, "slug": "town"}, "slug:town"),
        ("POST", PAGES, {"content": 5, "meta": []}, "slug:"),
        ("GET", f"{PAGES}?search=key=k2", {}, "k2"),
        ("GET", f"{PAGES}?search=k2", {}, "k2"),
        ("GET", f"{PAGES}?search=key=k9", {}, "search:key=k9"),
        ("GET", f"{PAGES}?slug=a,a-2", {}, "k1"),
        ("GET", f"{PAGES}?slug=nowhere", {}, "slug:nowhere"),
        ("GET", f"{PAGES}?cp_key=k7", {}, "k7"),
        ("GET", "/a/", {}, "k1"),
        ("GET", "/b/", {}, "/b/"),
        ("GET", "/wp-json/", {}, "/wp-json/"),
        ("POST", "/hooks/deploy/site", {}, "deploy:site"),
    ],
)
def test_a_request_is_about_the_page_that_it_names(
    site: Site, method: str, path: str, fields: dict[str, Any], key: str
) -> None:
    assert key_of(site, asked(request(method, path)), fields) == key


def test_the_default_pattern_has_its_groups() -> None:
    assert re.compile(MARKER_PATTERN).groupindex.keys() == {"key", "rev", "hash"}
