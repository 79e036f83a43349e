"""The services told about published pages: what they check, answer and remember."""

import json
from typing import Any

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.cms.wordpress import Answer, WordPress

KEY = "0123456789abcdef"
HOST = "example.test"
TOLD = {"host": HOST, "key": KEY, "urlList": [f"https://{HOST}/a/", f"https://{HOST}/b/"]}
PURGE = "/client/v4/zones/zone-1/purge_cache"
BEARER = {"authorization": "Bearer secret"}


@pytest.fixture(autouse=True)
def keys(sandbox_cms: CMSClient) -> None:
    known = {"indexnow_key": KEY, "zone_token": "secret"}
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update=known))


def post(site: WordPress, path: str, body: object = None, **headers: str) -> Answer:
    return site.ask("POST", path, body, who=None, headers=headers)


def counted(client: CMSClient) -> dict[tuple[str, str, int], int]:
    told = client.truth()["deliveries"]
    return {(each["kind"], each["name"], each["status"]): each["times"] for each in told}


def test_the_key_of_indexnow_stands_at_its_place(site: WordPress) -> None:
    assert site.visit(f"/{KEY}.txt").text == KEY
    assert site.visit("/other.txt").status == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"keyLocation": f"https://{HOST}/{KEY}.txt"}, 200),
        ({"urlList": [f"https://{HOST}/{n}/" for n in range(10_000)]}, 200),
        ({"urlList": [f"https://{HOST}/{n}/" for n in range(10_001)]}, 422),
        ({"urlList": [f"https://{HOST}/a/", "https://other.test/b/"]}, 422),
        ({"host": "other.test"}, 422),
        ({"key": "other"}, 403),
        ({"keyLocation": f"https://{HOST}/elsewhere.txt"}, 403),
        ({"urlList": []}, 400),
        ({"urlList": "https://example.test/a/"}, 400),
        ({"host": None}, 400),
        ({"key": 5}, 400),
    ],
)
def test_indexnow_checks_what_it_is_told(
    sandbox_cms: CMSClient, site: WordPress, change: dict[str, Any], status: int
) -> None:
    assert post(site, "/indexnow", {**TOLD, **change}).status == status
    assert counted(sandbox_cms) == {("indexnow", "", status): 1}


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]"])
def test_a_body_that_cannot_be_read_is_refused(site: WordPress, body: bytes) -> None:
    assert post(site, "/indexnow", body).status == 400
    assert site.ask("POST", PURGE, body, who=None, headers=BEARER).status == 400


def test_every_call_of_a_deploy_hook_is_a_build(sandbox_cms: CMSClient, site: WordPress) -> None:
    answers = [post(site, "/hooks/deploy/site-1", {"trigger": n}) for n in range(3)]
    answers.append(post(site, "/hooks/deploy/site-2"))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["job"]["id"] for answer in answers}) == 4
    assert counted(sandbox_cms) == {("deploy", "site-1", 201): 3, ("deploy", "site-2", 201): 1}


def test_a_webhook_keeps_headers_and_body_to_the_letter(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    body = json.dumps({"event": "published", "path": "/größe/"}, ensure_ascii=False).encode()
    answer = post(site, "/hooks/receive/partner", body, **{"X-Signature": "sha256=abc"})
    assert answer.json == {"received": True}
    (kept,) = sandbox_cms.deliveries()
    assert (kept["kind"], kept["name"], kept["method"]) == ("receive", "partner", "POST")
    assert kept["headers"]["x-signature"] == "sha256=abc"
    assert kept["body"].encode() == body


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        ({"files": ["https://example.test/a/"]}, BEARER, 200, None),
        ({"purge_everything": True}, BEARER, 200, None),
        ({"files": ["x"] * 101}, BEARER, 400, 1012),
        ({"files": []}, BEARER, 400, 1012),
        ({"purge_everything": False}, BEARER, 400, 1012),
        ({}, BEARER, 400, 1012),
        ({"purge_everything": True}, {}, 403, 10000),
        ({"purge_everything": True}, {"authorization": "Bearer wrong"}, 403, 10000),
    ],
)
def test_a_purge_is_answered_as_cloudflare_does(
    sandbox_cms: CMSClient,
    site: WordPress,
    body: dict[str, Any],
    headers: dict[str, str],
    status: int,
    code: int | None,
) -> None:
    answer = site.ask("POST", PURGE, body, who=None, headers=headers)
    assert answer.status == status
    assert answer.json["success"] is (code is None)
    assert [error["code"] for error in answer.json["errors"]] == ([code] if code else [])
    if code is None:
        assert answer.json["result"] == {"id": "zone-1"}
    assert counted(sandbox_cms) == {("purge", "zone-1", status): 1}


@pytest.mark.parametrize("operation", ["indexnow", "deploy", "purge", "receive"])
@pytest.mark.parametrize(("committed", "times"), [(False, 0), (True, 1)])
def test_a_service_can_fail_before_and_after_it_heard(
    sandbox_cms: CMSClient, site: WordPress, operation: str, committed: bool, times: int
) -> None:
    fault = {"kind": "status", "status": 429, "retry_after_s": 2, "committed": committed}
    rule = {"fault": fault, "match": {"operation": operation}, "times": 1}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    place, body = {
        "indexnow": ("/indexnow", TOLD),
        "deploy": ("/hooks/deploy/x", {}),
        "purge": (PURGE, {"purge_everything": True}),
        "receive": ("/hooks/receive/x", {}),
    }[operation]
    answer = site.ask("POST", place, body, who=None, headers=BEARER)
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    assert sum(counted(sandbox_cms).values()) == times
    assert sandbox_cms.truth()["requests_by_operation"][operation] == 1
