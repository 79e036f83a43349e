"""The last look at what is wanted, in the transaction that puts the intent to publish on record.

Each test has a page that a worker holds and has read as ready, and changes its mind in the last
moment: the publish must stop although the worker knows nothing of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import jobs
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import effects
from content_pipeline.operations.publish import publish
from content_pipeline.operations.rollback import roll_back
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.steps import walk
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    STRICT,
    ScriptedCMS,
    loses_the_answer,
    loses_the_request,
    takes_effect_later,
)

S = PageJobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A page that is ready, in the hands of a worker."""

    bench: Bench
    cms: ScriptedCMS
    runtime: SiteRuntime
    job: PageJob
    lease: Lease


def held(make_bench: MakeBench) -> Held:
    cms = ScriptedCMS()
    bench = make_bench(2, cms=cms)
    bench.submit()
    bench.step(until=S.READY_TO_PUBLISH)
    runtime = bench.worker()
    claim = bench.claim(runtime)
    with bench.ledger.begin() as connection:
        job = jobs.load(connection, claim.page_job_id)
    assert job.state is S.READY_TO_PUBLISH
    return Held(bench=bench, cms=cms, runtime=runtime, job=job, lease=claim.lease)


def cancelled(bench: Bench) -> None:
    bench.cancel()


def newer_input(bench: Bench) -> None:
    bench.rows[0]["river"] = "Rhine"
    bench.submit()


def topic_gone(bench: Bench) -> None:
    del bench.rows[0]
    bench.submit()


def row_refused(bench: Bench) -> None:
    bench.rows[0]["population"] = ""
    bench.submit()


def rolled_back(bench: Bench) -> None:
    version = bench.site.generation_version
    roll_back(bench.worker(), version, cause="it boasts", by="anna")


Change = Callable[[Bench], None]

CHANGES: list[tuple[Change, PageJobState]] = [
    (cancelled, S.CANCELLED),
    (newer_input, S.SUPERSEDED),
    (topic_gone, S.SUPERSEDED),
    (row_refused, S.SUPERSEDED),
    (rolled_back, S.SUPERSEDED),
]


@pytest.mark.parametrize(("change", "_end"), CHANGES)
def test_a_publish_that_was_ready_does_not_begin(
    change: Change, _end: PageJobState, make_bench: MakeBench
) -> None:
    at = held(make_bench)
    change(at.bench)
    with pytest.raises(LeaseLost):
        publish(at.runtime, at.job, at.lease)
    assert (at.cms.looks, at.cms.writes) == (0, [])
    assert at.bench.state_of(at.job.page_job_id) == "ready_to_publish"
    made = rows_where(at.bench.ledger, effects, page_id=at.job.page_id)
    assert made == [], "the intent went with the check"


@pytest.mark.parametrize(("change", "end"), CHANGES)
def test_the_worker_then_ends_the_page_as_it_is_wanted(
    change: Change, end: PageJobState, make_bench: MakeBench
) -> None:
    at = held(make_bench)
    change(at.bench)
    job = walk(at.runtime, at.job, at.lease)
    assert (job.state, at.cms.writes) == (end, [])


def test_without_a_change_it_begins(make_bench: MakeBench) -> None:
    at = held(make_bench)
    assert publish(at.runtime, at.job, at.lease).state is S.PUBLISHED
    assert at.cms.writes == [("/aarau-0/", 1)]


# --- an older write that may still arrive --------------------------------------------------------


def older_lost(make_bench: MakeBench, cms: ScriptedCMS) -> Bench:
    """A page whose first publish may yet take effect, and of which newer input is wanted."""
    bench = make_bench(1, cms=cms, lane={"publish_quiet_s": 30})
    bench.submit()
    bench.step()
    assert bench.report().state is S.PUBLISH_UNCERTAIN
    bench.rows[0]["river"] = "Rhine"
    bench.submit()
    return bench


def test_a_newer_draft_waits_until_an_older_write_is_settled(make_bench: MakeBench) -> None:
    cms = ScriptedCMS()
    cms.on_write.append(takes_effect_later)
    bench = older_lost(make_bench, cms)
    bench.run()
    assert bench.report().state is S.READY_TO_PUBLISH
    assert not bench.is_due()
    assert cms.writes == []
    cms.late.pop()()
    bench.make_due()
    bench.run()
    bench.make_due()
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1), ("/aarau-0/", 2)]
    assert "Rhine" in cms.texts["/aarau-0/"].body_html


@pytest.mark.parametrize("lost", [loses_the_answer, loses_the_request])
def test_a_cms_that_refuses_late_writes_keeps_nobody_waiting(
    lost: Callable[..., object], make_bench: MakeBench
) -> None:
    cms = ScriptedCMS(capabilities=STRICT)
    cms.on_write.append(lost)  # type: ignore[arg-type]
    bench = older_lost(make_bench, cms)
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert bench.report().revision == 2
    assert cms.writes[-1] == ("/aarau-0/", 2)
