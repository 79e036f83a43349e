"""The CMS's endpoints about itself: truth, faults, settings, reset and stop."""

import time
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.connections import listen
from content_pipeline.sandbox.control_calls import control_call
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.cms.wordpress import PAGES, WordPress, marked


def test_health_tells_who_it_is_and_what_it_holds(sandbox_cms: CMSClient, site: WordPress) -> None:
    site.created(title="T", status="publish")
    site.created(title="T")
    health = sandbox_cms.health()
    assert (health["status"], health["live"], health["requests"]) == ("ok", 1, 2)
    assert health["in_flight"] == 0
    assert CMSSettings.model_validate(health["settings"]) == INSTANT_CMS


def test_truth_of_nothing_is_empty(sandbox_cms: CMSClient) -> None:
    assert sandbox_cms.truth() == {
        "requests": 0,
        "requests_by_operation": {},
        "requests_by_key": {},
        "faults": {},
        "pages": {},
        "live": 0,
        "public_doubles": [],
        "stale_overwrites": [],
        "edits_overwritten": [],
        "early_for_page": 0,
        "early_for_site": 0,
        "deliveries": [],
    }


def test_truth_tells_what_became_of_the_pages_of_a_key(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    first = site.created(title="T", slug="a", content=marked("k1", 2), status="publish")
    second = site.created(title="T", slug="a", content=marked("k1", 2), status="publish")
    site.trashed(second)
    site.updated(first, content=marked("k1", 1))
    truth = sandbox_cms.truth()
    assert truth["pages"]["k1"] == {
        "live": [first["id"]],
        "drafts": [],
        "trashed": [second["id"]],
        "deleted": [],
        "most_live_at_once": 2,
        "revision": 1,
    }
    assert truth["public_doubles"] == ["k1"]
    (stale,) = truth["stale_overwrites"]
    assert (stale["path"], stale["mark"]["revision"]) == ("/a/", 1)


def test_what_was_live_can_be_asked_for_any_instant(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    before = datetime.fromtimestamp(time.time(), UTC)
    page = site.created(title="T", slug="a", content=marked("k1"), status="publish")
    between = datetime.fromtimestamp(time.time(), UTC)
    site.trashed(page)
    assert sandbox_cms.live(before) == sandbox_cms.live() == []
    (live,) = sandbox_cms.live(between)
    assert (live["path"], live["mark"]["key"], live["page_id"]) == ("/a/", "k1", page["id"])


def test_the_history_of_an_address_is_complete(sandbox_cms: CMSClient, site: WordPress) -> None:
    page = site.created(title="T", slug="a", content=marked("k1"))
    site.updated(page, status="publish")
    site.updated(page, content=marked("k1", 2))
    site.updated(page, slug="b")
    told = [
        (each["path"], each["status"], each["mark"]["revision"]) for each in sandbox_cms.history()
    ]
    assert told == [
        ("/a/", "draft", 1),
        ("/a/", "publish", 1),
        ("/a/", "publish", 2),
        ("/b/", "publish", 2),
    ]
    moments = [each["at"] for each in sandbox_cms.history()]
    assert moments == sorted(moments)


def test_early_requests_are_counted(sandbox_cms: CMSClient, site: WordPress) -> None:
    fault = {"kind": "status", "status": 429, "retry_after_s": 60}
    rule = {"fault": fault, "times": 1}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    fields = {"title": "T", "content": marked("k1")}
    assert [site.ask("POST", PAGES, fields).status for _ in range(2)] == [429, 201]
    assert sandbox_cms.truth()["early_for_page"] == 1
    assert sandbox_cms.truth()["early_for_site"] == 0, "it may have been under way already"


def test_the_marks_of_another_kind_are_read_when_told_how(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    pattern = r"\[\[(?P<key>\w+)/(?P<rev>\d+)/(?P<hash>\w+)\]\]"
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"marker_pattern": pattern}))
    site.created(title="T", content="[[town/4/ff]]", status="publish")
    assert sandbox_cms.truth()["pages"]["town"]["revision"] == 4


def test_a_reset_forgets_everything(sandbox_cms: CMSClient, site: WordPress) -> None:
    rule = {"fault": {"kind": "status"}}
    site.created(title="T", slug="a")
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    sandbox_cms.reset()
    assert sandbox_cms.history() == []
    assert site.created(title="T", slug="a")["id"] == 1


@pytest.mark.parametrize(
    ("method", "name", "body", "status", "told"),
    [
        ("GET", "nothing", None, 404, "Invalid URL"),
        ("POST", "nothing", {}, 404, "Invalid URL"),
        ("GET", "live?at=yesterday", None, 400, "ISO 8601"),
        ("POST", "faults", {"rules": [{"fault": {"kind": "fire"}}]}, 400, "rules.0.fault.kind"),
        ("POST", "settings", {"latency_median_s": -1}, 400, "latency_median_s"),
        ("POST", "settings", {"marker_pattern": "("}, 400, "regular expression"),
        ("POST", "person", {"act": "edit"}, 400, "page_id"),
        ("POST", "stop", {"token": "wrong"}, 409, "Another instance"),
    ],
)
def test_a_wrong_order_is_told_and_changes_nothing(
    sandbox_cms: CMSClient, method: str, name: str, body: object, status: int, told: str
) -> None:
    with pytest.raises(CallFailed, match=told) as raised:
        control_call("CMS", sandbox_cms.port, method, name, body)  # type: ignore[arg-type]
    assert raised.value.failure.http_status == status
    assert sandbox_cms.health()["settings"] == INSTANT_CMS.model_dump(mode="json")


def test_nobody_at_the_port_is_told() -> None:
    with listen() as socket:
        port = socket.getsockname()[1]
    with pytest.raises(CallFailed, match="nothing listens there") as raised:
        CMSClient(port).truth()
    assert raised.value.failure.failure_class is FailureClass.NOT_SENT


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency_median_s": -1},
        {"listing_lag_s": 61},
        {"marker_pattern": "no groups"},
        {"marker_pattern": "(?P<key>a)"},
        {"colour": "red"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CMSSettings.model_validate(wrong)


def test_two_cms_at_once_know_nothing_of_each_other(sandbox_cms: CMSClient) -> None:
    with serving_cms(INSTANT_CMS) as other:
        assert other.port != sandbox_cms.port
        control_call("CMS", other.port, "POST", "reset", {})
        assert other.health()["token"] != sandbox_cms.health()["token"]
