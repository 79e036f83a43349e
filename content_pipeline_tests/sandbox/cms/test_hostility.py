"""Whether the sandbox is hostile enough: careless clients must fail here as they do out there.

The numbers are those of a real WordPress: three tries at an uncertain create left three pages in
each of these faults, a look-up before every try left one.
"""

import http.client
import json
from typing import Any

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.people import Act
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.asking import wait_until
from content_pipeline_tests.sandbox.cms.wordpress import EVERY_STATUS, PAGES, WordPress, marked

AFTER_COMMIT: list[dict[str, Any]] = [
    {"kind": "status", "status": 500, "committed": True},
    {"kind": "html", "status": 502, "committed": True},
    {"kind": "html", "status": 200, "committed": True},
    {"kind": "noise"},
    {"kind": "garbage"},
    {"kind": "drop", "committed": True},
    {"kind": "cut_body"},
]
TRIES = 3


def succeeds(site: WordPress, method: str, path: str, fields: dict[str, Any]) -> bool:
    """Whether the answer says that it worked, beyond doubt."""
    try:
        answer = site.ask(method, path, fields)
        return answer.status in (200, 201) and "id" in answer.json
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return False


def careless(site: WordPress, key: str) -> None:
    """Create, and create again until it is seen to work."""
    fields = {"title": "T", "slug": key, "content": marked(key), "status": "publish"}
    for _ in range(TRIES):
        if succeeds(site, "POST", PAGES, fields):
            return


def careful(site: WordPress, key: str) -> None:
    """Look up, create as a draft, publish by id."""
    for _ in range(TRIES):
        found = site.found(search=f"key={key}", status=EVERY_STATUS)
        if not found:
            fields = {"title": "T", "slug": key, "content": marked(key)}
            succeeds(site, "POST", PAGES, fields)
        elif found[0]["status"] != "publish":
            succeeds(site, "POST", f"{PAGES}/{found[0]['id']}", {"status": "publish"})


@pytest.fixture(params=AFTER_COMMIT, ids=lambda fault: f"{fault['kind']}-{fault.get('status')}")
def fault(request: pytest.FixtureRequest, sandbox_cms: CMSClient) -> dict[str, Any]:
    """Every write is done and goes wrong afterwards."""
    rules = [{"fault": request.param}]
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": rules}))
    chosen: dict[str, Any] = request.param
    return chosen


def test_a_careless_client_makes_a_page_with_every_try(
    sandbox_cms: CMSClient, site: WordPress, fault: dict[str, Any]
) -> None:
    careless(site, "k1")
    pages = sandbox_cms.truth()["pages"]["k1"]
    assert len(pages["live"]) == pages["most_live_at_once"] == TRIES
    assert sandbox_cms.truth()["public_doubles"] == ["k1"]
    assert {each["path"] for each in sandbox_cms.live()} == {"/k1/", "/k1-2/", "/k1-3/"}


def test_a_careful_client_makes_one_page_and_in_a_second_run_none(
    sandbox_cms: CMSClient, site: WordPress, fault: dict[str, Any]
) -> None:
    for _ in range(2):
        careful(site, "k1")
        pages = sandbox_cms.truth()["pages"]["k1"]
        assert (len(pages["live"]), pages["drafts"], pages["trashed"]) == (1, [], [])
    assert sandbox_cms.truth()["public_doubles"] == []


def test_a_late_create_doubles_even_the_careful_but_only_as_a_draft(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    rule = {"fault": {"kind": "late", "seconds": 1.0}, "match": {"operation": "create"}, "times": 1}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    careful(site, "k1")
    wait_until(lambda: len(site.found(search="key=k1", status=EVERY_STATUS)) == 2)
    pages = sandbox_cms.truth()["pages"]["k1"]
    assert (len(pages["live"]), len(pages["drafts"]), pages["most_live_at_once"]) == (1, 1, 1)


def test_who_takes_an_anonymous_list_for_the_truth_doubles(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    site.created(title="T", slug="k1", content=marked("k1"))
    seen = site.ask("GET", f"{PAGES}?search=key%3Dk1", password="wrong")
    assert (seen.status, seen.json) == (200, []), "and yet there is a draft"


def test_who_takes_a_lagging_list_for_the_truth_doubles(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"listing_lag_s": 30}))
    careless(site, "k1")
    careful(site, "k1")
    assert len(sandbox_cms.truth()["pages"]["k1"]["live"]) == 1
    assert len(sandbox_cms.truth()["pages"]["k1"]["drafts"]) == TRIES


def test_who_writes_without_looking_overwrites_a_person_and_is_found_out(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    page = site.created(title="T", slug="k1", content=marked("k1"), status="publish")
    sandbox_cms.by_hand(Act(act="edit", key="k1", appended="By hand."))
    stale = {"if-unmodified-since": page["modified_gmt"], "if-match": '"x"'}
    answer = site.ask("POST", f"{PAGES}/{page['id']}", {"content": marked("k1", 2)}, headers=stale)
    assert answer.status == 200
    assert len(sandbox_cms.truth()["edits_overwritten"]) == 1


def test_who_publishes_an_older_revision_last_is_found_out(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    page = site.created(title="T", slug="k1", content=marked("k1", 1), status="publish")
    site.updated(page, content=marked("k1", 3))
    site.updated(page, content=marked("k1", 2))
    (stale,) = sandbox_cms.truth()["stale_overwrites"]
    assert (stale["mark"]["key"], stale["mark"]["revision"]) == ("k1", 2)
