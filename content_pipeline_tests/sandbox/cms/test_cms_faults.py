"""Every kind of fault as a client sees it, and what is stored after it."""

import http.client
import json
from typing import Any

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import Fault, FaultKind, FaultPlan
from content_pipeline_tests.sandbox.asking import wait_until
from content_pipeline_tests.sandbox.cms.wordpress import (
    EVERY_STATUS,
    PAGES,
    Answer,
    WordPress,
    marked,
)

CUT = (http.client.RemoteDisconnected, ConnectionResetError)
"""What a client sees of a connection that is closed without an answer."""


def strike(client: CMSClient, kind: str, *, match: Any = None, times: int = 1, **more: Any) -> None:
    """Set a plan of one rule."""
    rule = {"fault": {"kind": kind, **more}, "match": match or {}, "times": times}
    client.set_faults(FaultPlan.model_validate({"rules": [rule]}))


def create(site: WordPress, key: str = "k1") -> Answer:
    fields = {"title": "T", "slug": key, "content": marked(key), "status": "publish"}
    return site.ask("POST", PAGES, fields)


def stored(site: WordPress, key: str = "k1") -> int:
    return len(site.found(search=f"key={key}", status=EVERY_STATUS))


ANSWERED: list[tuple[str, dict[str, Any], int, str | None, int]] = [
    ("status", {"status": 500}, 500, "internal_server_error", 0),
    ("status", {"status": 500, "committed": True}, 500, "internal_server_error", 1),
    ("status", {"status": 502, "committed": True}, 502, "internal_server_error", 1),
    ("status", {"status": 401, "code": "rest_cannot_create"}, 401, "rest_cannot_create", 0),
    ("status", {"status": 403, "code": "rest_forbidden"}, 403, "rest_forbidden", 0),
    ("status", {"status": 404, "code": "rest_no_route"}, 404, "rest_no_route", 0),
    ("status", {"status": 409, "code": "cp_exists"}, 409, "cp_exists", 0),
    ("status", {"status": 413, "code": "too_large"}, 413, "too_large", 0),
    ("status", {"status": 429, "code": "too_many"}, 429, "too_many", 0),
    ("db_down", {}, 500, "wp_die", 0),
    ("db_down", {"committed": True}, 500, "wp_die", 0),
    ("maintenance", {}, 503, "wp_die", 0),
    ("html", {"status": 200}, 200, None, 0),
    ("html", {"status": 200, "committed": True}, 200, None, 1),
    ("html", {"status": 502}, 502, None, 0),
    ("html", {"status": 504, "committed": True}, 504, None, 1),
    ("garbage", {}, 201, None, 1),
    ("noise", {}, 201, None, 1),
    ("slow", {"seconds": 0.05}, 201, None, 1),
    ("filtered", {}, 201, None, 1),
    ("anonymous", {}, 401, "rest_cannot_create", 0),
]

BROKEN: list[tuple[str, dict[str, Any], tuple[type[Exception], ...], int]] = [
    ("drop", {}, CUT, 0),
    ("drop", {"committed": True}, CUT, 1),
    ("hang", {"seconds": 0.05}, CUT, 0),
    ("hang", {"seconds": 0.05, "committed": True}, CUT, 1),
    ("cut_body", {}, (http.client.IncompleteRead,), 1),
    ("late", {"seconds": 0}, CUT, 1),
]


@pytest.mark.parametrize(("kind", "fault", "status", "code", "pages"), ANSWERED)
def test_a_fault_answers_so_and_stores_what_it_says(
    sandbox_cms: CMSClient,
    site: WordPress,
    kind: str,
    fault: dict[str, Any],
    status: int,
    code: str | None,
    pages: int,
) -> None:
    strike(sandbox_cms, kind, **fault)
    answer = create(site)
    assert answer.status == status
    if code is not None:
        assert (answer.code, answer.json["data"]["status"]) == (code, status)
    assert stored(site) == pages
    assert sandbox_cms.truth()["faults"] == {kind: 1}
    assert create(site).status == 201, "the rule was for one request only"
    assert stored(site) == pages + 1


@pytest.mark.parametrize(("kind", "fault", "errors", "pages"), BROKEN)
def test_a_fault_breaks_the_connection_and_stores_what_it_says(
    sandbox_cms: CMSClient,
    site: WordPress,
    kind: str,
    fault: dict[str, Any],
    errors: tuple[type[Exception], ...],
    pages: int,
) -> None:
    strike(sandbox_cms, kind, **fault)
    with pytest.raises(errors):
        create(site)
    wait_until(lambda: stored(site) == pages)
    assert sandbox_cms.truth()["faults"] == {kind: 1}
    assert create(site).status == 201


def test_every_kind_of_fault_is_tried_here() -> None:
    assert {kind for kind, *_ in [*ANSWERED, *BROKEN]} == set(FaultKind)


def test_every_kind_of_fault_can_befall_a_read(sandbox_cms: CMSClient, site: WordPress) -> None:
    page = site.created(title="T", status="publish")
    for kind in FaultKind:
        strike(sandbox_cms, kind, match={"operation": "read"}, seconds=0.01)
        try:
            answer = site.ask("GET", f"{PAGES}/{page['id']}")
        except (*CUT, http.client.IncompleteRead):
            answer = None
        assert sandbox_cms.truth()["faults"][kind] == 1
        if kind in {FaultKind.FILTERED, FaultKind.SLOW, FaultKind.ANONYMOUS}:
            assert answer is not None
            assert answer.json["id"] == page["id"]


def test_a_read_is_answered_although_another_write_is_late(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    strike(sandbox_cms, "late", seconds=1.0)
    with pytest.raises(CUT):
        create(site)
    assert stored(site) == 0, "reads go on, and see nothing yet"
    again = create(site)
    assert again.json["slug"] == "k1"
    wait_until(lambda: stored(site) == 2)
    slugs = [page["slug"] for page in site.found(search="key=k1")]
    assert slugs == ["k1", "k1"], "the late one did not look again"
    assert sandbox_cms.truth()["public_doubles"] == ["k1"]


def test_a_late_update_writes_the_whole_row_as_it_was_when_it_was_asked_for(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    page = site.created(title="T", content="old", status="publish")
    strike(sandbox_cms, "late", seconds=0.3)
    with pytest.raises(CUT):
        site.ask("POST", f"{PAGES}/{page['id']}", {"title": "late"})
    site.updated(page, content="new")
    wait_until(lambda: site.read(page)["title"]["raw"] == "late")
    assert site.read(page)["content"]["raw"] == "old"


def test_a_late_write_of_a_page_that_is_gone_changes_nothing(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    page = site.created(title="T", status="publish")
    strike(sandbox_cms, "late", seconds=0.1)
    with pytest.raises(CUT):
        site.ask("POST", f"{PAGES}/{page['id']}", {"title": "late"})
    site.deleted(page)
    other = site.created(title="Other")
    strike(sandbox_cms, "slow", seconds=0.3)
    site.updated(other, title="Later")
    assert site.ask("GET", f"{PAGES}/{page['id']}").status == 404


def test_a_reset_takes_back_what_is_late(sandbox_cms: CMSClient, site: WordPress) -> None:
    strike(sandbox_cms, "late", seconds=0.1)
    with pytest.raises(CUT):
        create(site)
    sandbox_cms.reset()
    strike(sandbox_cms, "slow", seconds=0.4)
    create(site, "k2")
    assert stored(site) == 0


def test_a_client_that_holds_on_to_a_late_write_gives_up_by_its_own_clock(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    strike(sandbox_cms, "late", seconds=0.1, hold_s=30)
    impatient = WordPress(base_url=site.base_url, logins=site.logins, timeout_s=0.3)
    with pytest.raises(TimeoutError):
        create(impatient)
    wait_until(lambda: stored(site) == 1)


@pytest.mark.parametrize(
    ("kind", "fault", "header", "announced"),
    [
        ("status", {"status": 429, "retry_after_s": 7}, "7", 7),
        ("status", {"status": 429, "retry_after_s": 1.2}, "2", 1.2),
        ("status", {"status": 429}, None, None),
        ("html", {"status": 503, "retry_after_s": 3}, "3", 3),
        ("maintenance", {}, "600", 600),
        ("maintenance", {"retry_after_s": 5}, "5", 5),
        ("status", {"status": 429, "headers": {"retry-after": "soon"}}, "soon", None),
    ],
)
def test_a_wait_is_announced_and_remembered(
    sandbox_cms: CMSClient,
    site: WordPress,
    kind: str,
    fault: dict[str, Any],
    header: str | None,
    announced: float | None,
) -> None:
    strike(sandbox_cms, kind, **fault)
    assert create(site).headers.get("retry-after") == header
    assert sandbox_cms.requests()[-1]["wait_s"] == announced


@pytest.mark.parametrize("kind", ["db_down", "maintenance"])
def test_a_browser_gets_a_page_where_a_client_gets_json(
    sandbox_cms: CMSClient, site: WordPress, kind: str
) -> None:
    strike(sandbox_cms, kind, match={"operation": "any"})
    seen = site.visit("/")
    assert seen.headers["content-type"].startswith("text/html")
    assert seen.status in (500, 503)


def test_garbage_and_noise_cannot_be_read_as_json(sandbox_cms: CMSClient, site: WordPress) -> None:
    for kind in ("garbage", "noise"):
        strike(sandbox_cms, kind)
        answer = create(site)
        assert answer.headers["content-type"].startswith("application/json")
        with pytest.raises(ValueError):
            json.loads(answer.body)
    assert b'"slug":"k1-2"' in answer.body, "behind the noise stands the whole answer"


def test_filtered_html_keeps_the_mark_and_shows_the_data_as_text(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    strike(sandbox_cms, "filtered")
    content = (
        f'{marked("k1")}<script type="application/ld+json">{{"a":1}}</script>'
        '<iframe src="https://example.test/"></iframe><form><input></form><style>p{}</style>'
        '<a href="javascript:x()" onclick="y()">link</a><svg><path d="M0"/></svg>'
    )
    page = site.created(title="A & B", content=content)
    raw = page["content"]["raw"]
    assert "<!-- cp:key=k1 rev=1 h=abc123 -->" in raw
    assert '{"a":1}' in raw
    for gone in ("<script", "<iframe", "<form", "<style", "<svg", "onclick", "javascript:"):
        assert gone not in raw
    assert page["title"]["raw"] == "A &amp; B"


def test_lost_credentials_make_a_list_anybodys(sandbox_cms: CMSClient, site: WordPress) -> None:
    site.created(title="T", slug="draft-1")
    strike(sandbox_cms, "anonymous", match={"operation": "list"}, times=2)
    assert site.ask("GET", f"{PAGES}?slug=draft-1").json == []
    refused = site.ask("GET", f"{PAGES}?slug=draft-1&context=edit")
    assert (refused.status, refused.code) == (401, "rest_forbidden_context")


# --- which requests a rule is for -------------------------------------------------------------


def test_a_rule_without_conditions_is_for_writes(sandbox_cms: CMSClient, site: WordPress) -> None:
    page = site.created(title="T", status="publish")
    place = f"{PAGES}/{page['id']}"
    strike(sandbox_cms, "status", times=4)
    assert site.ask("GET", place).status == 200
    assert site.visit(f"/{page['slug']}/").status == 200
    assert site.ask("GET", PAGES).status == 200
    refused = [
        site.ask("POST", PAGES, {}),
        site.ask("POST", place, {}),
        site.ask("DELETE", place),
        site.ask("DELETE", f"{place}?force=true"),
    ]
    assert [answer.status for answer in refused] == [500] * 4


@pytest.mark.parametrize(
    ("match", "struck"),
    [
        ({"operation": "create"}, [True, True, False, False]),
        ({"operation": "update"}, [False, False, True, True]),
        ({"operation": "any", "nth": 2}, [False, True, False, True]),
        ({"operation": "create", "every": 2}, [False, True, False, False]),
        ({"key": "b"}, [False, True, False, True]),
        ({"status": "publish"}, [False, True, False, True]),
        ({"status": "draft"}, [True, False, False, False]),
        ({"path_contains": "pages/"}, [False, False, True, True]),
        ({"probability": 0}, [False] * 4),
        ({"probability": 1}, [True] * 4),
    ],
)
def test_a_rule_is_for_the_requests_it_names(
    sandbox_cms: CMSClient, site: WordPress, match: dict[str, Any], struck: list[bool]
) -> None:
    strike(sandbox_cms, "status", match=match, times=9, status=418, committed=True)
    answers = [
        site.ask("POST", PAGES, {"content": marked("a"), "status": "draft"}),
        site.ask("POST", PAGES, {"content": marked("b"), "status": "publish"}),
        site.ask("POST", f"{PAGES}/1", {"title": "T"}),
        site.ask("POST", f"{PAGES}/2", {"status": "publish"}),
    ]
    assert [answer.status == 418 for answer in answers] == struck


def test_draws_depend_on_the_key_and_its_attempt_and_not_on_the_order(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    keys = [f"key-{number}" for number in range(12)]
    rule = {"fault": {"kind": "status"}, "match": {"probability": 0.5}}
    plan = FaultPlan.model_validate({"seed": 3, "rules": [rule]})

    def outcomes(order: list[str]) -> dict[str, tuple[int, int]]:
        sandbox_cms.set_faults(plan)
        first = {key: create(site, key).status for key in order}
        second = {key: create(site, key).status for key in reversed(order)}
        return {key: (first[key], second[key]) for key in keys}

    forwards = outcomes(keys)
    assert outcomes(keys[::-1]) == forwards
    assert len(set(forwards.values())) > 2, "an attempt is a draw of its own"


def test_the_first_rule_that_matches_is_the_one_that_happens(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    rules = [
        {"fault": {"kind": "status", "status": 500}, "match": {"key": "a"}, "times": 1},
        {"fault": {"kind": "status", "status": 502}},
    ]
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": rules}))
    assert [create(site, key).status for key in ("b", "a", "a")] == [502, 500, 502]


@pytest.mark.parametrize(
    ("kind", "committed", "is_done"),
    [
        ("status", False, False),
        ("status", True, True),
        ("drop", True, True),
        ("db_down", True, False),
        ("maintenance", True, False),
        ("late", False, True),
        ("garbage", False, True),
    ],
)
def test_a_fault_says_whether_the_request_is_done(
    kind: str, committed: bool, is_done: bool
) -> None:
    assert Fault.model_validate({"kind": kind, "committed": committed}).is_done is is_done
