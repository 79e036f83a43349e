"""The companion plugin: keys that exist once, and updates with a precondition."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from content_pipeline.sandbox.cms import cms
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.asking import wait_until
from content_pipeline_tests.sandbox.cms.wordpress import PAGES, Answer, WordPress


@pytest.fixture(autouse=True)
def companion(sandbox_cms: CMSClient) -> None:
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"companion": True}))


def create(site: WordPress, key: str = "k1", **more: Any) -> Answer:
    meta = {"_cp_key": key, "_cp_rev": "3", "_cp_hash": "ff"}
    return site.ask("POST", PAGES, {"title": "T", "meta": meta, **more})


def test_a_key_is_kept_found_in_every_status_and_counted_by(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    page = create(site).json
    assert page["meta"] == {"_cp_key": "k1", "_cp_rev": "3", "_cp_hash": "ff"}
    for _ in range(2):
        found = site.found(cp_key="k1")
        assert [each["id"] for each in found] == [page["id"]]
        site.ask("DELETE", f"{PAGES}/{page['id']}")
    assert site.found(cp_key="k") == []
    assert sandbox_cms.truth()["pages"]["k1"]["trashed"] == [page["id"]]


@pytest.mark.parametrize("name", ["_cp_key", "_cp_rev", "_cp_hash"])
def test_a_field_that_is_no_text_is_refused(site: WordPress, name: str) -> None:
    answer = site.ask("POST", PAGES, {"title": "T", "meta": {name: 3}})
    assert (answer.status, answer.code) == (400, "rest_invalid_type")
    assert answer.json["additional_data"] == [{"param": f"meta.{name}"}]
    assert site.found(status="any") == []


def test_without_the_plugin_its_fields_are_not_even_stored(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    sandbox_cms.set_settings(INSTANT_CMS)
    assert [create(site).status for _ in range(2)] == [201, 201]
    assert create(site, _cp_rev=3).json["meta"] == []
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"companion": True}))
    assert site.found(cp_key="k1") == []
    assert sandbox_cms.truth()["pages"] == {}


def test_nobody_finds_what_is_not_public(site: WordPress) -> None:
    page = create(site).json
    place = f"{PAGES}?cp_key=k1"
    hidden = site.ask("GET", place, who=None)
    assert (hidden.json, hidden.headers["x-wp-total"]) == ([], "1"), "the total gives it away"
    site.updated(page, status="publish")
    assert len(site.ask("GET", place, who=None).json) == 1


def test_a_second_create_is_a_conflict_that_names_the_first(site: WordPress) -> None:
    page = create(site).json
    again = create(site)
    assert (again.status, again.code) == (409, "cp_exists")
    assert again.json["data"] == {"status": 409, "existing_id": page["id"]}
    site.trashed(page)
    assert create(site).status == 409, "the trash counts, too"
    site.deleted(page)
    assert create(site).status == 201


def test_of_many_creates_at_once_one_is_made(sandbox_cms: CMSClient, site: WordPress) -> None:
    slow = {"companion": True, "racing_writes": True, "latency_median_s": 0.05}
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update=slow))
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(answer.status for answer in pool.map(lambda _: create(site), range(8)))
    assert statuses == [201, *[409] * 7]
    assert len(site.found(cp_key="k1")) == 1


def test_a_key_whose_create_is_late_is_busy_until_then(
    sandbox_cms: CMSClient, site: WordPress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cms, "LOCK_WAIT_S", 0.05)
    rule = {"fault": {"kind": "late", "seconds": 0.4}, "times": 1}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        create(site)
    busy = create(site)
    assert (busy.status, busy.code) == (503, "cp_busy")
    wait_until(lambda: create(site).status == 409)
    assert len(site.found(cp_key="k1")) == 1


def test_an_update_names_what_it_replaces(site: WordPress) -> None:
    page = create(site, status="publish")
    place = f"{PAGES}/{page.json['id']}"
    seen = page.headers["etag"]
    assert site.ask("GET", place).headers["etag"] == seen
    first = site.ask("POST", place, {"title": "2"}, headers={"if-match": seen})
    assert first.status == 200
    assert first.headers["etag"] != seen
    stale = site.ask("POST", place, {"title": "3"}, headers={"if-match": seen})
    assert (stale.status, stale.code) == (412, "cp_changed")
    assert stale.json["data"]["etag"] == first.headers["etag"]
    assert site.read(page.json)["title"]["raw"] == "2"
    assert site.ask("POST", place, {"title": "4"}).status == 200, "without one all is as ever"


@pytest.mark.parametrize(
    "change", [{"slug": "x"}, {"status": "draft"}, {"content": "x"}, {"excerpt": "x"}]
)
def test_the_tag_changes_with_everything_a_person_may_change(
    site: WordPress, change: dict[str, Any]
) -> None:
    page = create(site, status="publish")
    place = f"{PAGES}/{page.json['id']}"
    site.updated(page.json)
    assert site.ask("GET", place).headers["etag"] == page.headers["etag"], "a touch is no change"
    site.updated(page.json, **change)
    assert site.ask("GET", place).headers["etag"] != page.headers["etag"]
