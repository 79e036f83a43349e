"""Publishing to a CMS whose lists are behind, which loses answers and asks for patience.

The CMS is the offline one over real HTTP, through the WordPress adapter; the judge is its truth.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.cms.wordpress_pages import PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import PageLookUp
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import routes
from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.people import Act
from content_pipeline_tests.conftest import INSTANT_CMS, MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel
from content_pipeline_tests.operations.small_site import BASE_URL, clock

S = PageJobState
BEHIND_S = 30.0
"""Longer than any of these tests."""
TOLD_TO_WAIT = Failure(
    failure_class=FailureClass.THROTTLED, message="the host asks for less", retry_after_s=60
)


@pytest.fixture
def wordpress(sandbox_cms: CMSClient) -> Iterator[WordPressCMS]:
    rest = WordPressREST(
        sandbox_cms.base_url,
        user=PIPELINE.login,
        password=PIPELINE.app_password,
        content_type="pages",
        deadline_s=10,
        clock=clock,
    )
    form = PageForm(base_url=BASE_URL, home_path="")
    cms = WordPressCMS(rest, form, content_type="pages", clock=clock)
    yield cms
    cms.close()


def asked_for(make_bench: MakeBench, cms: WordPressCMS | ScriptedCMS) -> Bench:
    bench = make_bench(model=ScriptedModel(), cms=cms)
    bench.submit()
    return bench


def fail(cms: CMSClient, operation: str, kind: str, **particulars: Any) -> None:
    """Let the next request of one operation go wrong."""
    rule = {"fault": {"kind": kind, **particulars}, "match": {"operation": operation}, "times": 1}
    cms.set_faults(FaultPlan.model_validate({"rules": [rule]}))


def pages_of_the_mark(cms: CMSClient) -> list[str]:
    """What became of every page that ever bore a mark."""
    (pages,) = cms.truth()["pages"].values()
    return [name for name in ("live", "drafts", "trashed", "deleted") for _ in pages[name]]


def tell_to_wait(bench: Bench) -> None:
    with bench.ledger.begin() as connection:
        routes.pause(connection, bench.worker().cms_route, TOLD_TO_WAIT)


def test_a_draft_that_no_list_shows_yet_is_published_and_not_made_again(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"listing_lag_s": BEHIND_S}))
    fail(sandbox_cms, "update", "status", status=429)
    bench = asked_for(make_bench, wordpress)
    assert bench.step(until=S.FAILED_RETRYABLE).state is S.FAILED_RETRYABLE
    assert bench.step().state is S.PUBLISHED
    assert pages_of_the_mark(sandbox_cms) == ["live"]
    assert sandbox_cms.truth()["requests_by_operation"]["create"] == 1


def test_a_draft_that_a_person_deleted_meanwhile_is_made_again(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    fail(sandbox_cms, "update", "status", status=429)
    bench = asked_for(make_bench, wordpress)
    bench.step(until=S.FAILED_RETRYABLE)
    (draft,) = {change["page_id"] for change in sandbox_cms.history()}
    sandbox_cms.by_hand(Act(act="delete", page_id=draft))
    assert bench.step().state is S.PUBLISHED
    assert pages_of_the_mark(sandbox_cms) == ["live", "deleted"]


@pytest.mark.parametrize("operation", ["create", "update"])
def test_what_a_lost_write_left_as_a_draft_is_published_after_one_look(
    operation: str, make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    fail(sandbox_cms, operation, "drop", committed=operation == "create")
    bench = asked_for(make_bench, wordpress)
    assert bench.step(until=S.PUBLISH_UNCERTAIN).state is S.PUBLISH_UNCERTAIN
    assert bench.step().state is S.PUBLISHED
    assert pages_of_the_mark(sandbox_cms) == ["live"]


def test_a_lost_create_that_left_nothing_is_looked_for_twice(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    fail(sandbox_cms, "create", "drop")
    bench = asked_for(make_bench, wordpress)
    bench.step(until=S.PUBLISH_UNCERTAIN)
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert bench.step().state is S.PUBLISHED
    assert pages_of_the_mark(sandbox_cms) == ["live"]


def test_a_page_whose_answer_comes_while_the_cms_is_to_be_left_alone_waits(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    bench = asked_for(make_bench, wordpress)
    tell_to_wait(bench)
    job = bench.step()
    assert job.state is S.READY_TO_PUBLISH
    assert not job.is_due
    assert sandbox_cms.requests() == []


def test_a_wait_that_is_announced_during_the_look_stops_the_write(make_bench: MakeBench) -> None:
    cms = ScriptedCMS()
    bench = asked_for(make_bench, cms)

    def looks_while_another_page_is_told(_cms: ScriptedCMS) -> PageLookUp:
        tell_to_wait(bench)
        return PageLookUp(verdict=Verdict.ABSENT)

    cms.on_look = deque([looks_while_another_page_is_told])
    assert bench.step().state is S.FAILED_RETRYABLE
    assert cms.writes == []
    assert bench.report().failure_class is FailureClass.THROTTLED
