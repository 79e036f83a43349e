"""Where the site asks for it, a page counts as published only when a visitor gets it."""

from collections import deque
from dataclasses import dataclass, field

from content_pipeline.core.cms import Document
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.operations.reconcile import UNKNOWN_LOOKS
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel, loses_the_answer

S = PageJobState

STALE = Failure(failure_class=FailureClass.UNCERTAIN, message="its public URL shows another page")


@dataclass(slots=True)
class Visitor:
    """Sees what the test says, then what is there."""

    seen: deque[Failure | None] = field(default_factory=deque)
    visits: int = 0

    def why_not_shown(self, document: Document) -> Failure | None:
        self.visits += 1
        return self.seen.popleft() if self.seen else None


def test_a_page_that_visitors_get_is_published(make_bench: MakeBench) -> None:
    visitor = Visitor()
    bench = make_bench(model=ScriptedModel(), cms=ScriptedCMS(), public=visitor)
    bench.submit_and_run()
    assert bench.report().state is S.PUBLISHED
    assert visitor.visits == 1


def test_a_page_that_visitors_do_not_get_yet_is_looked_at_again_and_not_written_again(
    make_bench: MakeBench,
) -> None:
    cms, visitor = ScriptedCMS(), Visitor(seen=deque([STALE, STALE]))
    bench = make_bench(model=ScriptedModel(), cms=cms, public=visitor)
    bench.submit()
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert "public URL" in (bench.report().failure_message or "")
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert bench.step().state is S.PUBLISHED
    assert (visitor.visits, len(cms.writes)) == (3, 1)


def test_nothing_is_announced_before_visitors_get_it(make_bench: MakeBench) -> None:
    visitor = Visitor(seen=deque([STALE]))
    bench = make_bench(model=ScriptedModel(), public=visitor)
    bench.submit()
    bench.step()
    assert bench.announce() == {}
    bench.step()
    assert set(bench.announce()) == {"sitemap", "index_page"}


def test_a_lost_write_is_confirmed_by_a_visitor_too(make_bench: MakeBench) -> None:
    cms, visitor = ScriptedCMS(on_write=deque([loses_the_answer])), Visitor()
    bench = make_bench(model=ScriptedModel(), cms=cms, public=visitor)
    bench.submit()
    bench.step(until=S.PUBLISH_UNCERTAIN)
    assert visitor.visits == 0
    assert bench.step().state is S.PUBLISHED
    assert (visitor.visits, len(cms.writes)) == (1, 1)


def test_a_page_that_visitors_never_get_goes_to_a_person(make_bench: MakeBench) -> None:
    visitor = Visitor(seen=deque([STALE] * 100))
    bench = make_bench(model=ScriptedModel(), cms=ScriptedCMS(), public=visitor)
    bench.submit()
    while bench.step().state is S.PUBLISH_UNCERTAIN:
        assert visitor.visits <= UNKNOWN_LOOKS + 1
    assert bench.report().state is S.FAILED_TERMINAL
    assert "public URL" in (bench.report().failure_message or "")
