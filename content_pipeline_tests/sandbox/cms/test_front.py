"""The public side where the sandbox goes beyond plain WordPress: its cache and its clock."""

import http.client
from typing import Any

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.asking import wait_until
from content_pipeline_tests.sandbox.cms.wordpress import WordPress, marked

PURGE = "/client/v4/zones/zone-1/purge_cache"


def cached(client: CMSClient, **more: Any) -> None:
    client.set_settings(INSTANT_CMS.model_copy(update={"cache_s": 600, **more}))


def purge(site: WordPress, **what: Any) -> int:
    headers = {"authorization": "Bearer token"}
    return site.ask("POST", PURGE, what, who=None, headers=headers).status


def test_a_cached_page_is_stale_until_it_is_purged(sandbox_cms: CMSClient, site: WordPress) -> None:
    cached(sandbox_cms)
    page = site.created(title="T", slug="a", content="old", status="publish")
    assert site.visit("/a/").headers["x-cache"] == "MISS"
    site.updated(page, content="new")
    stale = site.visit("/a/")
    assert (stale.headers["x-cache"], "old" in stale.text) == ("HIT", True)
    assert "new" in site.visit("/a/?fresh=1").text, "a query of its own is asked for anew"
    assert purge(site, files=[f"{site.base_url}/a/"]) == 200
    assert "new" in site.visit("/a/").text


@pytest.mark.parametrize(
    ("what", "fresh"),
    [
        ({"purge_everything": True}, {"/a/", "/b/", "/a/?x=1"}),
        ({"files": ["http://elsewhere.test/a/"]}, {"/a/", "/a/?x=1"}),
        ({"files": ["http://elsewhere.test/c/"]}, set()),
    ],
)
def test_a_purge_is_for_what_it_names(
    sandbox_cms: CMSClient, site: WordPress, what: dict[str, Any], fresh: set[str]
) -> None:
    cached(sandbox_cms)
    for slug in "ab":
        site.created(title="T", slug=slug, status="publish")
    places = ("/a/", "/b/", "/a/?x=1")
    for place in places:
        site.visit(place)
    assert purge(site, **what) == 200
    assert {p for p in places if site.visit(p).headers["x-cache"] == "MISS"} == fresh


def test_what_is_missing_is_cached_as_well(sandbox_cms: CMSClient, site: WordPress) -> None:
    cached(sandbox_cms)
    assert site.visit("/a/").status == 404
    site.created(title="T", slug="a", status="publish")
    assert site.visit("/a/").status == 404
    purge(site, purge_everything=True)
    assert site.visit("/a/").status == 200


def test_without_the_setting_nothing_is_cached(site: WordPress) -> None:
    page = site.created(title="T", slug="a", content="old", status="publish")
    assert "x-cache" not in site.visit("/a/").headers
    site.updated(page, content="new")
    assert "new" in site.visit("/a/").text


def test_a_title_is_escaped_and_a_content_is_not(site: WordPress) -> None:
    site.created(title="<b>A & B</b>", slug="a", content="<i>c</i>", status="publish")
    seen = site.visit("/a/").text
    assert "&lt;b&gt;A &amp; B&lt;/b&gt;" in seen
    assert "<i>c</i>" in seen


def test_the_front_page_links_what_is_public_by_title(site: WordPress) -> None:
    site.created(title="Zürich & <b>", slug="z", status="publish")
    site.created(title="Aarau", slug="a", status="publish")
    site.created(title="Draft", slug="d")
    seen = site.visit("/").text
    links = [f'<a href="{site.base_url}/{slug}/">' for slug in ("a", "z")]
    assert [seen.find(link) for link in links] == sorted(seen.find(link) for link in links)
    assert "Zürich &amp; &lt;b&gt;</a>" in seen
    assert "Draft" not in seen
    assert all(link in seen for link in links)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/a/", 200),
        ("HEAD", "/nowhere/", 404),
        ("GET", "/", 200),
        ("GET", "/?page_id=2", 404),
        ("GET", "/?page_id=x", 404),
        ("GET", "/?page_id=99", 404),
        ("GET", "/wp-sitemap-other.xml", 404),
        ("POST", "/a/", 405),
        ("DELETE", "/a/", 405),
    ],
)
def test_a_visitor_may_look_and_nothing_else(
    site: WordPress, method: str, path: str, status: int
) -> None:
    site.created(title="T", slug="a", status="publish")
    site.created(title="Draft", slug="b")
    answer = site.ask(method, path, who=None)
    assert answer.status == status
    if method == "HEAD":
        assert answer.body == b""


def test_of_two_pages_at_one_address_the_older_is_shown(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    first = site.created(title="First", slug="a", status="publish")
    rule = {"fault": {"kind": "late", "seconds": 1.0}, "times": 1}
    site.trashed(first)
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        site.created(title="Second", slug="a", status="publish")
    restored = site.updated(first, status="publish")
    assert restored["slug"] == "a"
    wait_until(lambda: len(site.found(slug="a")) == 2)
    assert "First" in site.visit("/a/").text
    assert site.visit("/wp-sitemap-posts-page-1.xml").text.count("/a/</loc>") == 2


def test_a_planned_page_goes_live_when_the_timer_runs_after_its_time(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    site.created(title="T", slug="a", status="publish", date_gmt="2035-01-01T00:00:00")
    assert sandbox_cms.run_timer() == 0
    years_s = 10 * 366 * 86_400
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"clock_offset_s": years_s}))
    assert site.visit("/a/").status == 404
    assert sandbox_cms.run_timer() == 1
    assert site.visit("/a/").status == 200
    assert sandbox_cms.run_timer() == 0


def test_a_clock_that_is_wrong_shows_in_times_and_headers_and_not_in_truth(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    right = site.created(title="T")
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"clock_offset_s": -86_400}))
    wrong = site.created(title="T", content=marked("k1"))
    assert wrong["modified_gmt"] < right["modified_gmt"]
    before, after = (change["at"] for change in sandbox_cms.history())
    assert before < after
    year = wrong["modified_gmt"][:4]
    assert year in site.visit("/").headers["date"]
