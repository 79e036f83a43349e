"""The webhook: the laws on the receiver that the documents give as an example, and its contract."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from content_pipeline.adapters.cms.webhook import NOTHING_KNOWN
from content_pipeline.core.cms import CMSCapabilities, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import guarantee
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.webhook_site import (
    EVERYTHING,
    EXAMPLE,
    KEY,
    ROOT,
    THE_LEAST,
    WebhookBench,
    connect,
    receiving,
)
from content_pipeline_tests.adapters.llm.loopback import (
    Behaviour,
    answer,
    close_at_once,
    free_port,
    serving,
)
from content_pipeline_tests.operations.small_site import clock

SCHEMA = json.loads((ROOT / "docs" / "webhook-contract.schema.json").read_text())


@pytest.fixture(params=[EVERYTHING, THE_LEAST], ids=["everything", "the least"])
def bench(request: pytest.FixtureRequest) -> Iterator[WebhookBench]:
    with receiving(request.param) as site, closing(connect(site.url)) as cms:
        yield WebhookBench(site=site, cms=cms)
        for target, sent, told in site.said:
            assert_keeps_the_contract(target, sent, told)


@pytest.fixture
def whole() -> Iterator[WebhookBench]:
    with receiving(EVERYTHING) as site, closing(connect(site.url)) as cms:
        yield WebhookBench(site=site, cms=cms)


def assert_keeps_the_contract(target: str, sent: Any, told: Any) -> None:
    """What was sent and answered, by the schema that the documents give to receivers."""
    path = target.partition("?")[0]
    if path.startswith("pages/"):
        valid("write", sent)
        valid("written", told)
        return
    assert sent is None
    names = {"": "description", "pages": "found", "inventory": "inventory", "changes": "changes"}
    valid(names[path], told)


def valid(name: str, value: Any) -> None:
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    problems = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
    assert not problems, (name, problems)


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_the_webhook_keeps_the_law(law: Law, bench: WebhookBench) -> None:
    law(bench)


# --- what it can ---------------------------------------------------------------------------------


def test_a_receiver_is_believed_what_it_declares() -> None:
    with receiving(EVERYTHING) as site, closing(connect(site.url)) as cms:
        assert cms.capabilities == CMSCapabilities(**EVERYTHING)
        assert cms.capabilities == CMSCapabilities(**EVERYTHING)
        assert [target for target, _, _ in site.said] == [""]
        assert "the CMS itself refuses" in guarantee(cms.capabilities)[0]


def test_what_the_sites_file_declares_is_not_asked_for() -> None:
    with (
        receiving(EVERYTHING) as site,
        closing(connect(site.url, declared=CMSCapabilities(**THE_LEAST))) as cms,
    ):
        assert cms.capabilities == CMSCapabilities(**THE_LEAST)
        assert site.said == []


def test_a_receiver_that_does_not_answer_is_taken_for_the_weakest() -> None:
    with closing(connect(f"http://127.0.0.1:{free_port()}")) as cms:
        assert cms.capabilities == NOTHING_KNOWN


def test_what_a_receiver_does_not_mention_it_cannot_do() -> None:
    with (
        serving(answer(200, {"contract": 1, "capabilities": {"drafts": 1}})) as server,
        closing(connect(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        assert cms.capabilities == NOTHING_KNOWN


# --- what its answers mean -----------------------------------------------------------------------

UNKNOWN: list[tuple[str, Behaviour, FailureClass]] = [
    ("wrong signature", answer(401, {"error": {"code": "signature"}}), FailureClass.AUTH),
    ("another endpoint's JSON", answer(200, {"pages": []}), FailureClass.TRANSIENT),
    ("another contract", answer(200, {"contract": 2, "pages": []}), FailureClass.TRANSIENT),
    ("no list", answer(200, {"contract": 1, "pages": None}), FailureClass.TRANSIENT),
    ("no page", answer(200, {"contract": 1, "pages": [{"path": "/"}]}), FailureClass.TRANSIENT),
    ("login page", answer(200, b"<html></html>"), FailureClass.TRANSIENT),
    ("404", answer(404, b"<html></html>"), FailureClass.REQUEST),
    ("500", answer(500, b""), FailureClass.TRANSIENT),
    ("closed", close_at_once, FailureClass.TRANSIENT),
]


@pytest.mark.parametrize(
    ("_name", "behaviour", "meant"), UNKNOWN, ids=[name for name, _, _ in UNKNOWN]
)
def test_nothing_but_an_answer_by_the_contract_says_absent(
    _name: str, behaviour: Behaviour, meant: FailureClass
) -> None:
    page = make_document()
    with (
        serving(behaviour) as server,
        closing(connect(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        found = cms.look_up(page.marker.page_id, page.path, "1")
        assert len(cms.check().problems) == 1
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is meant


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "live"},
        {"remote_id": 5},
        {"version": None},
        {"revision": "1"},
        {"revision": True},
        {"revision": 0},
        {"content_hash": None},
        {"body_html": None},
    ],
)
def test_a_page_that_breaks_the_contract_is_no_answer(
    whole: WebhookBench, changes: dict[str, Any]
) -> None:
    page = make_document(base_url=whole.base_url)
    whole.cms.publish(page, replacing=None)
    told = whole.site.said[-1][2]["page"] | changes
    with pytest.raises(AssertionError):
        valid("page", told)
    with (
        serving(answer(200, {"contract": 1, "pages": [told], "page": told})) as server,
        closing(connect(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        found = cms.look_up(page.marker.page_id, page.path, None)
        with pytest.raises(CallFailed) as lost:
            cms.publish(page, replacing=None)
    assert found.verdict is Verdict.UNKNOWN
    assert lost.value.failure.failure_class is FailureClass.UNCERTAIN


def test_a_receiver_that_gives_another_address_loses_the_page_again(whole: WebhookBench) -> None:
    page = make_document(base_url=whole.base_url)
    original = whole.site.pages.create

    def suffixed(path: str, status: str, document: Any, page_id: str | None) -> Any:
        return original(f"{path[:-1]}-2/", status, document, page_id)

    whole.site.pages.create = suffixed
    with pytest.raises(CallFailed) as refused:
        whole.cms.publish(page, replacing=None)
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    assert whole.visible("/austria-2/") is None


def test_of_two_pages_of_ours_the_one_nobody_sees_is_a_twin(whole: WebhookBench) -> None:
    page = make_document(base_url=whole.base_url)
    published = whole.cms.publish(page, replacing=None)
    held = whole.site.pages.at(page.path)
    twin = EXAMPLE.Page(**{**vars(held), "remote_id": "77", "path": "/x/", "status": "hidden"})
    whole.site.pages._pages["77"] = twin
    found = whole.cms.look_up(page.marker.page_id, page.path, None)
    assert found.page == published
    assert [(each.remote_id, each.status) for each in found.twins] == [("77", RemoteStatus.HIDDEN)]


# --- the signature -------------------------------------------------------------------------------


def test_wrong_keys_never_read_as_absent(whole: WebhookBench) -> None:
    page = make_document(base_url=whole.base_url)
    whole.cms.publish(page, replacing=None)
    other = KEY[::-1].replace("=", "A")
    with closing(connect(whole.site.url, key=other + "=" * (-len(other) % 4))) as stranger:
        found = stranger.look_up(page.marker.page_id, page.path, None)
        (problem,) = stranger.check().problems
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.AUTH
    assert "signing key" in problem
    assert other not in problem


@pytest.mark.parametrize("off", [timedelta(minutes=-10), timedelta(minutes=10)])
def test_a_clock_that_is_off_is_told_from_an_absent_page(
    off: timedelta, whole: WebhookBench
) -> None:
    with closing(connect(whole.site.url, at=clock() + off)) as late:
        found = late.look_up("a" * 32, "/austria/", None)
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.AUTH
    assert "NTP" in found.failure.message


def test_a_signed_request_cannot_be_sent_again_to_another_address(whole: WebhookBench) -> None:
    with (
        serving(answer(200, {"contract": 1, "pages": []})) as spy,
        closing(connect(f"http://127.0.0.1:{spy.port}")) as cms,
    ):
        cms.look_up("a" * 32, "/austria/", None)
        (seen,) = spy.received
    target = seen.target.removeprefix("/cms/")
    EXAMPLE.verify(
        EXAMPLE.base64.b64decode(KEY), "GET", target, seen.headers, b"", clock().timestamp()
    )
    for method, other in (("PUT", target), ("GET", target.replace("austria", "belgium"))):
        with pytest.raises(EXAMPLE.Refused):
            EXAMPLE.verify(
                EXAMPLE.base64.b64decode(KEY), method, other, seen.headers, b"", clock().timestamp()
            )


def test_equal_requests_have_equal_ids_and_others_another() -> None:
    page, newer = make_document(), make_document(revision=2)
    with (
        serving(close_at_once) as spy,
        closing(
            connect(f"http://127.0.0.1:{spy.port}", declared=CMSCapabilities(**EVERYTHING))
        ) as cms,
    ):
        for document in (page, page, newer):
            with pytest.raises(CallFailed) as lost:
                cms.publish(document, replacing=None)
            assert lost.value.failure.failure_class is FailureClass.UNCERTAIN
        first, second, third = (request.headers["webhook-id"] for request in spy.received)
    assert first == second != third


# --- the preflight -------------------------------------------------------------------------------


def test_the_check_says_who_it_is_and_what_it_can(whole: WebhookBench) -> None:
    check = whole.cms.check()
    assert check.identity == "the example receiver"
    assert "compare_and_swap" in check.notes[0]
    assert check.problems == ()


def test_every_answer_of_the_table_of_refusals_is_in_the_schema() -> None:
    for code in (
        "signature",
        "changed",
        "exists",
        "taken",
        "refused",
        "unsupported",
        "not_written",
    ):
        valid("refusal", {"error": {"code": code}})
    with pytest.raises(AssertionError):
        valid("refusal", {"error": {"code": "other"}})
