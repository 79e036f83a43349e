"""Lost writes: the CMS is asked, and nothing is written before it has said what it holds."""

from collections import deque
from dataclasses import replace

import pytest

from content_pipeline.core.cms import CMSCapabilities, Document, RemotePage, RemoteStatus
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.identity import publish_key
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import effects as effect_ledger
from content_pipeline.ledger import jobs
from content_pipeline.ledger.schema import effects
from content_pipeline.operations.reconcile import ABSENT_LOOKS, UNKNOWN_LOOKS
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    PLAIN,
    STRICT,
    Script,
    ScriptedCMS,
    ScriptedModel,
    accepts_and_hides,
    failed,
    look_raises,
    loses_the_answer,
    loses_the_request,
    remote_page,
    says_unknown,
    takes_effect_later,
)

S = PageJobState


def uncertain(
    make_bench: MakeBench, script: Script, capabilities: CMSCapabilities = PLAIN
) -> tuple[Bench, ScriptedCMS]:
    """A bench whose page was written with a lost outcome."""
    cms = ScriptedCMS(capabilities=capabilities, on_write=deque([script]))
    bench = make_bench(model=ScriptedModel(), cms=cms)
    bench.submit()
    assert bench.step(until=S.PUBLISH_UNCERTAIN).state is S.PUBLISH_UNCERTAIN
    return bench, cms


def looks(bench: Bench) -> effect_ledger.Looks:
    report = bench.report()
    assert report.page_id is not None
    assert report.revision is not None
    with bench.ledger.begin() as connection:
        return effect_ledger.looks(connection, publish_key(report.page_id, report.revision))


@pytest.mark.parametrize("capabilities", [PLAIN, STRICT])
def test_a_write_whose_answer_was_lost_is_confirmed_without_another(
    capabilities: CMSCapabilities, make_bench: MakeBench
) -> None:
    bench, cms = uncertain(make_bench, loses_the_answer, capabilities)
    assert bench.attempts()[-1] == ("publish", "uncertain", "uncertain")
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]
    assert bench.attempts()[-1] == ("publish", "succeeded", None)
    assert bench.report().attempts[-1].recovered
    (row,) = rows_where(bench.ledger, effects, page_id=bench.report().page_id)
    assert (row["state"], row["outcome"]) == ("done", "confirmed_existing")


def test_absent_is_believed_at_once_of_a_cms_that_refuses_late_writes(
    make_bench: MakeBench,
) -> None:
    bench, cms = uncertain(make_bench, loses_the_request, STRICT)
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]
    assert [state for _, state, _ in bench.attempts()] == ["succeeded", "failed", "succeeded"]


def test_absent_must_be_seen_twice_of_a_cms_without_guarantees(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_request)
    for seen in range(1, ABSENT_LOOKS):
        assert bench.step().state is S.PUBLISH_UNCERTAIN
        assert (looks(bench).absent, cms.writes) == (seen, [])
        assert not bench.is_due()
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_write_that_takes_effect_between_two_looks_is_found(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, takes_effect_later)
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    cms.late.pop()()
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


@pytest.mark.parametrize(("capabilities", "at_once"), [(PLAIN, False), (STRICT, True)])
def test_the_first_look_waits_until_no_request_can_be_under_way(
    capabilities: CMSCapabilities, at_once: bool, make_bench: MakeBench
) -> None:
    bench, _ = uncertain(make_bench, loses_the_request, capabilities)
    assert bench.is_due() is at_once


def test_an_accepted_write_that_does_not_show_is_not_published(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, accepts_and_hides)
    assert cms.writes == []
    for _ in range(ABSENT_LOOKS):
        bench.step()
    assert bench.states() == {"t0": "published"}
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_write_that_is_lost_again_and_again_ends_with_a_person(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_request, STRICT)
    cms.on_write.extend([loses_the_request] * 3)
    for _ in range(5):
        if bench.report().state is S.FAILED_TERMINAL:
            break
        bench.step()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.UNCERTAIN)
    assert cms.writes == []


@pytest.mark.parametrize("raises_it", [True, False])
def test_useless_answers_are_asked_for_again_and_end_with_a_person(
    raises_it: bool, make_bench: MakeBench
) -> None:
    bench, cms = uncertain(make_bench, loses_the_answer)
    look = look_raises(failed(FailureClass.TRANSIENT)) if raises_it else says_unknown
    cms.on_look.extend([look] * UNKNOWN_LOOKS)
    for asked in range(1, UNKNOWN_LOOKS):
        assert bench.step().state is S.PUBLISH_UNCERTAIN
        assert looks(bench).unknown == asked
        assert not bench.is_due()
    assert bench.step().state is S.FAILED_TERMINAL
    assert cms.writes == [("/aarau-0/", 1)]
    (row,) = rows_where(bench.ledger, effects, page_id=bench.report().page_id)
    assert row["state"] == "failed"


def test_one_useful_answer_among_useless_ones_settles_it(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_answer)
    cms.on_look.extend([says_unknown] * 2)
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_foreign_page_found_afterwards_is_left_alone(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_request)
    cms.pages["/aarau-0/"] = remote_page("/aarau-0/", None)
    assert bench.step().state is S.FAILED_TERMINAL
    assert bench.report().failure_class is FailureClass.CONFLICT
    assert cms.writes == []


def test_a_newer_revision_found_afterwards_stands(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_request)
    marker = replace(bench.document().marker, revision=9)
    cms.pages["/aarau-0/"] = remote_page("/aarau-0/", marker)
    assert bench.step().state is S.SUPERSEDED
    assert cms.writes == []


# --- a worker that is gone ----------------------------------------------------------------------


def left_publishing(bench: Bench) -> None:
    """A page in ``publishing`` whose worker stopped before it did anything."""

    class Stopped(BaseException):
        pass

    def stop(checkpoint: str) -> None:
        if checkpoint == "publish_intended":
            raise Stopped

    bench.on_checkpoint = stop
    with pytest.raises(Stopped):
        bench.step()
    bench.on_checkpoint = None
    assert bench.report().state is S.PUBLISHING


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("capabilities", [PLAIN, STRICT])
def test_a_publish_of_a_worker_that_is_gone_is_looked_at_before_any_write(
    happened: bool, capabilities: CMSCapabilities, make_bench: MakeBench
) -> None:
    cms = ScriptedCMS(capabilities=capabilities)
    bench = make_bench(model=ScriptedModel(), cms=cms)
    bench.submit()
    bench.run(Stage.DRAFT, Stage.PAGE)
    left_publishing(bench)
    if happened:
        cms.write(bench.document())
    for _ in range(4):
        bench.step()
        if bench.states() == {"t0": "published"}:
            break
    assert bench.states() == {"t0": "published"}
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_repaired_page_looks_before_it_writes(make_bench: MakeBench) -> None:
    bench, cms = uncertain(make_bench, loses_the_answer)
    cms.on_look.extend([says_unknown] * UNKNOWN_LOOKS)
    for _ in range(UNKNOWN_LOOKS):
        bench.step()
    assert bench.report().state is S.FAILED_TERMINAL
    retry(bench.ledger, bench.name, "t0", cause="the CMS is back")
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]
    with bench.ledger.begin() as connection:
        assert jobs.load(connection, bench.report().page_job_id).epoch == 2


def test_a_revision_that_waits_for_its_deployment_is_waited_for_a_day(
    make_bench: MakeBench,
) -> None:
    def accepts(cms: ScriptedCMS, document: Document) -> RemotePage:
        accepted = replace(cms.write(document), status=RemoteStatus.ACCEPTED)
        cms.pages[document.path] = accepted
        return accepted

    cms = ScriptedCMS(on_write=deque([accepts]))
    bench = make_bench(model=ScriptedModel(), cms=cms)
    bench.submit()
    for _ in range(UNKNOWN_LOOKS + 2):
        assert bench.step().state is S.PUBLISH_UNCERTAIN
    path = bench.report().path
    assert path is not None
    cms.pages[path] = replace(cms.pages[path], status=RemoteStatus.PUBLISHED)
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]
