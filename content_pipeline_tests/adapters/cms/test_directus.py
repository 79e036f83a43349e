"""The adapter against what a real Directus answered: ``answers/directus.json``."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from content_pipeline.adapters.cms.directus import DirectusCMS
from content_pipeline.adapters.cms.directus_api import DirectusAPI
from content_pipeline.adapters.cms.directus_items import ItemForm, item_id_of
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import guarantee
from content_pipeline.core.service_settings import DirectusCMSSettings
from content_pipeline_tests.adapters.cms.directus_scenarios import BASE_URL, SCENARIOS
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.recorded import load, replaying
from content_pipeline_tests.adapters.llm.loopback import (
    Received,
    Wire,
    answer,
    serving,
)
from content_pipeline_tests.operations.small_site import clock
from content_pipeline_tests.real_cms.directus_server import connect

TOKEN = "a-secret-token"
FORBIDDEN = {"errors": [{"extensions": {"code": "FORBIDDEN"}}]}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_adapter_says_and_reads_what_a_real_directus_did(
    scenario: Callable[[DirectusCMS], None],
) -> None:
    with (
        replaying(load("directus", scenario.__name__)) as url,
        closing(connect(url, base_url=BASE_URL)) as cms,
    ):
        scenario(cms)


UNKNOWN: list[tuple[int, Any, FailureClass]] = [
    (401, {"errors": [{"extensions": {"code": "INVALID_CREDENTIALS"}}]}, FailureClass.AUTH),
    (403, FORBIDDEN, FailureClass.AUTH),
    (404, b"<html></html>", FailureClass.REQUEST),
    (200, b"<html>Please log in</html>", FailureClass.TRANSIENT),
    (200, {"data": None}, FailureClass.TRANSIENT),
    (200, {"data": [{"path": "/austria/"}]}, FailureClass.TRANSIENT),
    (204, b"", FailureClass.TRANSIENT),
    (502, b"", FailureClass.TRANSIENT),
]


@pytest.mark.parametrize(("status", "body", "meant"), UNKNOWN)
def test_no_answer_but_a_listing_reads_as_absent(
    status: int, body: Any, meant: FailureClass
) -> None:
    with (
        serving(answer(status, body)) as server,
        closing(connect(f"http://127.0.0.1:{server.port}", token=TOKEN)) as cms,
    ):
        found = cms.look_up("a" * 32, "/austria/", None)
        problems = cms.check().problems
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is meant
    assert len(problems) == 1
    assert TOKEN not in f"{found.failure} {problems}"


def directus(item: dict[str, Any] | None, write: Callable[[Wire, Received], None]) -> Any:
    """A Directus that holds ``item`` and answers writes so."""

    def behaviour(wire: Wire, request: Received) -> None:
        if request.method == "GET":
            answer(200, {"data": [] if item is None else [item]})(wire, request)
        else:
            write(wire, request)

    return behaviour


def item() -> dict[str, Any]:
    form = ItemForm.of(DirectusCMSSettings(kind="directus"), base_url=BASE_URL)
    page = make_document(base_url=BASE_URL)
    key = item_id_of(page.marker.page_id)
    return {"id": key, **form.written(page, status="published")}


def seen_by(cms: DirectusCMS) -> Any:
    page = make_document(base_url=BASE_URL)
    found = cms.look_up(page.marker.page_id, page.path, None).page
    assert found is not None
    return found


@pytest.mark.parametrize(
    "write", [answer(204, b""), answer(403, FORBIDDEN)], ids=["204", "403 to others"]
)
@pytest.mark.parametrize("doing", ["publish", "withdraw", "remove"])
def test_a_write_that_changed_nothing_while_the_item_is_there_is_a_missing_right(
    write: Any, doing: str
) -> None:
    if doing == "remove":
        write = answer(403, FORBIDDEN)
    with (
        serving(directus(item(), write)) as server,
        closing(
            connect(
                f"http://127.0.0.1:{server.port}",
                base_url=BASE_URL,
                archived=None if doing == "remove" else "archived",
            )
        ) as cms,
    ):
        seen = seen_by(cms)
        with pytest.raises(CallFailed) as refused:
            if doing == "publish":
                newer = make_document(base_url=BASE_URL, revision=2)
                cms.publish(newer, replacing=seen)
            else:
                getattr(cms, doing)(seen)
    assert refused.value.failure.failure_class is FailureClass.AUTH


def test_a_lost_answer_to_a_write_is_uncertain() -> None:
    with (
        serving(directus(item(), answer(200, b"<html>"))) as server,
        closing(connect(f"http://127.0.0.1:{server.port}", base_url=BASE_URL)) as cms,
    ):
        newer = make_document(base_url=BASE_URL, revision=2)
        with pytest.raises(CallFailed) as lost:
            cms.publish(newer, replacing=seen_by(cms))
    assert lost.value.failure.failure_class is FailureClass.UNCERTAIN


@pytest.mark.parametrize(
    ("rights", "word"),
    [
        ({}, "create, read, update, delete"),
        ({"read": {"access": "partial"}}, "read"),
        ({"delete": {"access": "none"}}, "delete"),
    ],
)
def test_the_check_names_rights_that_are_missing(rights: dict[str, Any], word: str) -> None:
    whole = {verb: {"access": "full"} for verb in ("create", "read", "update", "delete")}
    held = {"pages": whole | rights} if rights else {}

    def behaviour(wire: Wire, request: Received) -> None:
        path = request.target.partition("?")[0]
        found: Any = {"/users/me": {"id": "1"}, "/permissions/me": held}.get(path, [])
        if path == "/fields/pages":
            answer(403, FORBIDDEN)(wire, request)
            return
        answer(200, {"data": found})(wire, request)

    with (
        serving(behaviour) as server,
        closing(connect(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        check = cms.check()
    (problem,) = check.problems
    assert f"may not {word} every item" in problem
    assert "must be unique" in check.notes[0]


@pytest.mark.parametrize("token", ["", "two words", "ümlaut", "line\nbreak"])
def test_what_is_no_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigurationError, match="copy it again") as refused:
        DirectusAPI(
            "https://cms.example",
            token=token,
            collection="pages",
            fields=["id"],
            deadline_s=1,
            clock=clock,
        )
    assert not token or token not in str(refused.value)


def test_without_a_status_there_are_no_drafts() -> None:
    with closing(connect("http://127.0.0.1:9", fields={"status": None})) as cms:
        with pytest.raises(CallFailed) as refused:
            cms.create_draft(make_document())
        assert refused.value.failure.failure_class is FailureClass.REQUEST
        assert not cms.capabilities.trash


def test_what_directus_guarantees_is_said() -> None:
    with closing(connect("http://127.0.0.1:9")) as cms:
        twice, edits = guarantee(cms.capabilities)
    assert "never two pages" in twice
    assert "no compare-and-swap" in edits
