"""The adapter against what a real Ghost answered: ``answers/ghost.json``."""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from email.utils import parsedate_to_datetime

import pytest

from content_pipeline.adapters.cms.ghost import GhostCMS
from content_pipeline.adapters.cms.ghost_api import GhostAPI
from content_pipeline.adapters.cms.ghost_pages import GhostForm
from content_pipeline.adapters.cms.ghost_token import AdminKey
from content_pipeline.core.cms import CMSCapabilities
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import guarantee
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.ghost_scenarios import BASE_URL, SCENARIOS
from content_pipeline_tests.adapters.cms.recorded import load, replaying
from content_pipeline_tests.adapters.llm.loopback import answer, serving
from content_pipeline_tests.operations.small_site import clock

KEY = f"{'a' * 24}:{'b' * 64}"


def connected(url: str, clock: Callable[[], datetime] = clock) -> GhostCMS:
    api = GhostAPI(
        url,
        key=AdminKey.parse(KEY),
        content_type="pages",
        deadline_s=10,
        clock=clock,
        pause=lambda _: None,
    )
    return GhostCMS(api, GhostForm(base_url=BASE_URL, home_path=""), clock=clock)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_adapter_says_and_reads_what_a_real_ghost_did(
    scenario: Callable[[GhostCMS], None],
) -> None:
    exchanges = load("ghost", scenario.__name__)
    then = parsedate_to_datetime(exchanges[0].date)
    with replaying(exchanges) as url, closing(connected(url, lambda: then)) as cms:
        scenario(cms)


UNKNOWN = [
    (401, b'{"errors": [{"type": "UnauthorizedError"}]}', FailureClass.AUTH),
    (404, b"<html>no such host here</html>", FailureClass.REQUEST),
    (200, b"<html>Please log in</html>", FailureClass.TRANSIENT),
    (200, b'{"pages": {}}', FailureClass.TRANSIENT),
    (200, b'{"pages": [{"id": "1"}]}', FailureClass.TRANSIENT),
    (502, b"", FailureClass.TRANSIENT),
]


@pytest.mark.parametrize(("status", "body", "meant"), UNKNOWN)
@pytest.mark.parametrize("known", [None, "f" * 24])
def test_no_answer_but_a_listing_reads_as_absent(
    status: int, body: bytes, meant: FailureClass, known: str | None
) -> None:
    with (
        serving(answer(status, body)) as server,
        closing(connected(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        found = cms.look_up("a" * 32, "/austria/", known)
        (problem,) = cms.check().problems
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is meant
    assert "b" * 64 not in f"{found.failure} {problem}"


def test_each_request_has_a_token_of_its_own_and_no_secret() -> None:
    with (
        serving(answer(200, b'{"pages": []}')) as server,
        closing(connected(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        cms.look_up("a" * 32, "/austria/", "f" * 24)
        sent = [request.headers["authorization"] for request in server.received]
    assert all(each.startswith("Ghost ey") for each in sent)
    assert "bbbb" not in "".join(sent)


def test_a_path_that_ghost_would_rewrite_is_never_asked_for() -> None:
    with (
        serving(answer(200, b'{"pages": []}')) as server,
        closing(connected(f"http://127.0.0.1:{server.port}")) as cms,
    ):
        found = cms.look_up("a" * 32, "/a/b/", None)
        assert server.received == []
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.INVALID_INPUT


def test_what_ghost_guarantees_is_said() -> None:
    offers = GhostCMS.capabilities
    assert offers == CMSCapabilities(
        client_id=False, compare_and_swap=True, drafts=True, marker_look_up=True, trash=False
    )
    twice, edits = guarantee(offers)
    assert "never two public pages" in twice
    assert "refuses a write" in edits
    assert make_document().marker.page_id
