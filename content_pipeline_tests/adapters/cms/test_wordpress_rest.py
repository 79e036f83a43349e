"""What is sent to WordPress, and answers that are JSON and still not what was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.cms.wordpress_pages import PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document
from content_pipeline_tests.adapters.cms.test_wordpress_pages import page
from content_pipeline_tests.adapters.llm.loopback import (
    Received,
    Server,
    Wire,
    answer,
    free_port,
    serving,
)
from content_pipeline_tests.operations.small_site import clock

PASSWORD = "abcd efgh ijkl mnop"
DOCUMENT = make_document()
GUARD = {"X-Content-Pipeline-Guard": "1"}


def connect(url: str) -> WordPressCMS:
    rest = WordPressREST(
        url,
        user="pipeline",
        password=PASSWORD,
        content_type="pages",
        deadline_s=5,
        clock=clock,
    )
    form = PageForm(base_url=BASE_URL, home_path="")
    return WordPressCMS(rest, form, content_type="pages", clock=clock)


@contextmanager
def answering(*bodies: Any, **headers: str) -> Iterator[tuple[WordPressCMS, Server]]:
    """A server that answers with ``bodies`` in turn, the last one for ever."""
    left = list(bodies)
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def behaviour(wire: Wire, request: Received) -> None:
        body = left.pop(0) if len(left) > 1 else left[0]
        answer(200, body, named)(wire, request)

    with serving(behaviour) as server:
        cms = connect(f"http://127.0.0.1:{server.port}")
        try:
            yield cms, server
        finally:
            cms.close()


def seen() -> RemotePage:
    form = PageForm(base_url=BASE_URL, home_path="")
    return form.page(page(status="draft"))


def test_every_question_names_context_and_statuses() -> None:
    """Without them WordPress answers a wrong password with what visitors see."""
    with answering([]) as (cms, server):
        cms.look_up(DOCUMENT.marker.page_id, DOCUMENT.path, None)
        cms.inventory(None)
        cms.recent_changes(None)
    assert len(server.received) == 4
    for request in server.received:
        assert "context=edit" in request.target
        assert "status=publish%2Cfuture%2Cdraft%2Cpending%2Cprivate%2Ctrash" in request.target


def test_a_create_names_its_page_to_the_plugin() -> None:
    with answering(page(status="draft")) as (cms, server):
        cms.create_draft(DOCUMENT)
    (request,) = server.received
    assert request.headers["x-content-pipeline-key"] == DOCUMENT.marker.page_id
    assert request.json()["status"] == "draft"
    assert request.json()["slug"] == "austria"


@pytest.mark.parametrize(("headers", "sent"), [({}, None), (GUARD, '"2026-11-30T02:18:02/6"')])
def test_only_the_plugin_is_told_which_version_is_replaced(
    headers: dict[str, str], sent: str | None
) -> None:
    with answering({"name": "x"}, page(), **headers) as (cms, server):
        assert cms.capabilities.compare_and_swap is (sent is not None)
        cms.publish(DOCUMENT, replacing=seen())
    assert server.received[-1].headers.get("if-match") == sent


def test_a_site_that_does_not_answer_is_asked_once_for_the_plugin() -> None:
    cms = connect(f"http://127.0.0.1:{free_port()}")
    assert not cms.capabilities.client_id
    with serving(answer(200, {"name": "x"}, GUARD)) as server:
        silent = connect(f"http://127.0.0.1:{server.port}")
        assert silent.capabilities.client_id
        assert silent.capabilities.client_id
        silent.close()
        assert len(server.received) == 1
    assert not cms.capabilities.client_id
    cms.close()


@pytest.mark.parametrize(
    "found",
    [
        {"id": 5},
        [{"id": 5}],
        [5],
        ["page"],
        [page(content={"rendered": "<p>no raw text: not for editing</p>"})],
        {"success": True},
        None,
        "text",
        7,
    ],
)
def test_what_is_no_list_of_pages_never_reads_as_absent(found: object) -> None:
    with answering(found) as (cms, _):
        look = cms.look_up(DOCUMENT.marker.page_id, DOCUMENT.path, None)
    assert look.verdict is Verdict.UNKNOWN
    assert look.failure is not None
    assert look.failure.failure_class is FailureClass.TRANSIENT


@pytest.mark.parametrize(
    "written",
    [page(id=6), {"id": 5}, {}, [], None, page(title={"rendered": "x"}), {"code": "ok"}],
)
def test_what_is_not_the_page_that_was_written_leaves_the_write_uncertain(written: object) -> None:
    with answering(written) as (cms, _), pytest.raises(CallFailed) as failed:
        cms.publish(DOCUMENT, replacing=seen())
    assert failed.value.failure.failure_class is FailureClass.UNCERTAIN
    assert PASSWORD not in str(failed.value)


def test_pages_of_others_that_only_hold_our_token_are_not_ours() -> None:
    quoted = page(content={"raw": f"<p>cp:key={DOCUMENT.marker.page_id} is a mark</p>"}, slug="doc")
    longer = page(
        content={"raw": f"<p><!-- cp:key={DOCUMENT.marker.page_id}0 rev=1 h=ab --></p>"}, slug="no"
    )
    with answering([quoted, longer], []) as (cms, server):
        look = cms.look_up(DOCUMENT.marker.page_id, DOCUMENT.path, None)
    assert look.verdict is Verdict.ABSENT
    assert len(server.received) == 2, "the search finds parts of words, so the path is asked for"


def test_a_known_page_is_one_request() -> None:
    with answering(page()) as (cms, server):
        look = cms.look_up(DOCUMENT.marker.page_id, DOCUMENT.path, "5")
    assert look.page is not None
    assert look.page.marker == DOCUMENT.marker
    assert len(server.received) == 1
