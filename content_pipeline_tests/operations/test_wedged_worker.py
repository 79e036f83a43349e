"""A worker that hangs: its heartbeat lives, its walk does not, and its page passes to another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from content_pipeline.core.cms import Document, RemotePage
from content_pipeline.core.ports import GenerationRequest, RawResponse
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import attempt_responses, attempts
from content_pipeline.operations.lane import Settled, advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel, article_answer

S = PageJobState

DEADLINE_S, SLACK_S, HOLD_S = 0.4, 0.4, 1.2
LIMITS = {
    "generation": {"deadline_s": DEADLINE_S, "answer_slack_s": SLACK_S, "in_flight": 1},
    "lane": {
        "lease_s": 0.5,
        "patience_s": 8,
        "longest_hold_s": HOLD_S,
        "run_limit_s": 60,
        "publish_quiet_s": 0.1,
    },
}


class Wedge:
    """Something outside that answers no earlier than the test lets it, whatever its deadline."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.over = threading.Event()

    def hang(self) -> None:
        self.reached.set()
        assert self.over.wait(60)


@contextmanager
def wedged_lane(bench: Bench, wedge: Wedge) -> Iterator[list[Settled]]:
    """A lane whose page hangs; it is let go and waited for at the end."""
    settled: list[Settled] = []
    stop = threading.Event()

    def work() -> None:
        settled.extend(advance(bench.worker(), Selection(site=bench.name), stop=stop))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert wedge.reached.wait(30)
        stop.set()  # or its other threads would be as quick to take the page over
        yield settled
    finally:
        wedge.over.set()
        thread.join(60)
    assert not thread.is_alive()


def test_a_page_whose_call_hangs_is_taken_over_and_paid_for_again_only_when_it_is_safe(
    make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    model, cms, wedge = ScriptedModel(), ScriptedCMS(), Wedge()
    bench = make_bench(model=model, cms=cms, **LIMITS)
    bench.submit()

    def hangs(request: GenerationRequest) -> RawResponse:
        wedge.hang()
        return article_answer(request)

    model.on_send.append(hangs)
    with wedged_lane(bench, wedge) as settled:
        bench.run()
        assert bench.states() == {"t0": "published"}
        first, second, _ = bench.rows_in(attempts)
        assert second.started_at > first.answer_by, "the first could not be answered any more"
        assert (second.started_at - first.started_at).total_seconds() > HOLD_S
        assert first.worker != second.worker
        before = (bench.history(), bench.attempts(), bench.spend())
    assert settled == [], "the worker that hung reports nothing of a page that is another's"
    # What it was given in the end is kept as evidence; nothing else of the page has changed.
    assert (bench.history(), bench.attempts(), bench.spend()) == before
    assert rows_where(bench.ledger, attempt_responses, attempt_id=first.attempt_id)
    assert (len(model.sent), len(cms.writes)) == (2, 1)
    assert "its walk hangs" in caplog.text


def test_the_provider_is_asked_about_the_call_of_a_worker_that_hangs(
    make_bench: MakeBench,
) -> None:
    """With a provider that keeps answers, the page costs one call although its worker hangs."""
    wedge = Wedge()
    bench = make_bench(cms=ScriptedCMS(), **LIMITS)

    def hang(checkpoint: str) -> None:
        if checkpoint == "call_answered":
            bench.on_checkpoint = None
            wedge.hang()

    bench.on_checkpoint = hang
    bench.submit()
    with wedged_lane(bench, wedge) as settled:
        bench.run()
        assert bench.states() == {"t0": "published"}
    assert settled == []
    assert (bench.billed(), bench.calls()) == (1, 1)
    assert "generation_uncertain" in bench.history()


def test_a_page_whose_publish_hangs_is_taken_over_and_written_once(make_bench: MakeBench) -> None:
    model, cms, wedge = ScriptedModel(), ScriptedCMS(), Wedge()
    bench = make_bench(model=model, cms=cms, **LIMITS)
    bench.submit()

    def hangs(remote: ScriptedCMS, document: Document) -> RemotePage:
        page = remote.write(document)
        wedge.hang()
        return page

    cms.on_write.append(hangs)
    with wedged_lane(bench, wedge) as settled:
        bench.run()
        assert bench.states() == {"t0": "published"}
    assert settled == []
    assert bench.history()[-3:] == ["publishing", "publish_uncertain", "published"]
    assert (len(model.sent), len(cms.writes)) == (1, 1)


def test_a_page_that_keeps_moving_is_held_longer_than_any_single_move(
    make_bench: MakeBench,
) -> None:
    """A call and a write, which together take longer than a page may go without a move."""
    model, cms = ScriptedModel(), ScriptedCMS()
    bench = make_bench(model=model, cms=cms, **LIMITS)
    bench.submit()
    pause = threading.Event()

    def slow(request: GenerationRequest) -> RawResponse:
        pause.wait(0.8)
        assert bench.claimable() == 0
        return article_answer(request)

    def slow_write(remote: ScriptedCMS, document: Document) -> RemotePage:
        pause.wait(0.8)
        assert bench.claimable() == 0
        return remote.write(document)

    model.on_send.append(slow)
    cms.on_write.append(slow_write)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), len(cms.writes)) == (1, 1)
    assert len({row.worker for row in bench.rows_in(attempts)}) == 1
