"""The lane: many pages at once, none of which waits for another or stops another."""

import threading
import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from content_pipeline.core.cms import Document, RemotePage
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import GenerationRequest, RawResponse
from content_pipeline.core.states import FINAL, PageJobState
from content_pipeline.ledger import database, routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline.operations.lane import advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedModel,
    article_answer,
    call_raises,
    failed,
    look_raises,
    raises,
)
from content_pipeline_tests.operations.small_site import path_of, sitemap_paths

S = PageJobState


def scripted(
    make_bench: MakeBench, towns: int = 1, **more: object
) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model, cms = ScriptedModel(), ScriptedCMS()
    bench = make_bench(towns=towns, **{"model": model, "cms": cms, **more})
    bench.submit()
    return bench, model, cms


def lane_threads() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith(("page", "heartbeat"))
    ]


def test_every_page_comes_to_rest_and_no_thread_is_left(make_bench: MakeBench) -> None:
    bench = make_bench(towns=9)
    settled = bench.submit_and_run()
    assert sorted((item.topic_key, item.state) for item in settled) == [
        (f"t{number}", "published") for number in range(9)
    ]
    assert bench.billed() == 9
    assert sorted(bench.writes()) == sorted((path_of(row), 1) for row in bench.rows)
    assert lane_threads() == []
    assert bench.leases_held() == 0


def test_a_selection_leaves_the_other_pages_alone(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 4)
    list(advance(bench.worker(), Selection(site=bench.name, topics=("t1", "t3"))))
    assert bench.states() == {
        "t0": "queued",
        "t1": "published",
        "t2": "queued",
        "t3": "published",
    }
    assert len(model.sent) == 2


def test_the_slowest_call_keeps_nobody_waiting(make_bench: MakeBench) -> None:
    """One call does not return before all other pages are published."""
    bench, model, cms = scripted(make_bench, 8)
    others_done = threading.Event()

    def slow(request: GenerationRequest) -> RawResponse:
        assert others_done.wait(30)
        return article_answer(request)

    model.on_send.append(slow)
    published = 0
    for settled in advance(bench.worker(), Selection(site=bench.name)):
        assert settled.state is S.PUBLISHED
        published += 1
        if published == 7:
            others_done.set()
    assert published == 8
    assert len(cms.writes) == 8


def test_calls_in_flight_stay_within_the_sites_limit(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 12, generation={"in_flight": 3})
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(3)

    def counted(request: GenerationRequest) -> RawResponse:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(30)
        time.sleep(0.03)  # a fourth would come now
        with lock:
            now[0] -= 1
        return article_answer(request)

    model.on_send.extend([counted] * 12)
    bench.run()
    assert most == [3]
    assert set(bench.states().values()) == {"published"}


def test_as_many_pages_are_at_the_cms_as_it_is_sent_requests_at_once(make_bench: MakeBench) -> None:
    """And one more for each call in flight, so that the next request is there in time."""
    bench, _, cms = scripted(
        make_bench, 7, generation={"in_flight": 1}, lane={"cms_requests_at_once": 6}
    )
    bench.run_drafts()
    together = threading.Barrier(7)

    def waits_for_all(cms: ScriptedCMS, document: Document) -> RemotePage:
        together.wait(30)
        return cms.write(document)

    cms.on_write.extend([waits_for_all] * 7)
    bench.run()
    assert set(bench.states().values()) == {"published"}


def test_a_long_call_keeps_its_lease(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 1, lane={"lease_s": 1})

    def long(request: GenerationRequest) -> RawResponse:
        time.sleep(2.2)
        assert bench.claimable() == 0
        return article_answer(request)

    model.on_send.append(long)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 1


def test_a_heartbeat_survives_a_connection_that_is_cut(
    make_bench: MakeBench, ledger: Ledger
) -> None:
    bench, model, _ = scripted(make_bench, 1, lane={"lease_s": 1})

    def long(request: GenerationRequest) -> RawResponse:
        with ledger.begin() as connection:
            connection.execute(text("LOCK TABLE content_pipeline.leases IN SHARE MODE"))
            assert wait_until_cut(ledger)
        time.sleep(1.2)
        assert bench.claimable() == 0
        return article_answer(request)

    model.on_send.append(long)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 1


def wait_until_cut(ledger: Ledger) -> bool:
    """Wait for the heartbeat to be blocked by a lock on the leases, and end its connection."""
    for _ in range(200):
        with ledger.begin() as connection:
            cut = connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE%leases SET expires_at%'"
                )
            ).all()
        if cut:
            return True
        time.sleep(0.02)
    return False


# --- waiting ------------------------------------------------------------------------------------


def test_a_wait_shorter_than_the_patience_happens_inside(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2, lane={"patience_s": 10}, generation={"in_flight": 1})
    bench.strike("status", status=429, headers={"retry-after": "1"})
    states = [item.state for item in bench.submit_and_run()]
    # The other page is put back as it was, if a thread had taken it when the wait was announced.
    assert [state for state in states if state is not S.QUEUED] == [
        S.FAILED_RETRYABLE,
        S.PUBLISHED,
        S.PUBLISHED,
    ]


def test_a_wait_longer_than_the_patience_holds_no_lane(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2, lane={"patience_s": 5}, generation={"in_flight": 1})
    bench.strike("status", status=429, headers={"retry-after": "900"})
    bench.submit_and_run()
    assert sorted(bench.states().values()) == ["failed_retryable", "queued"]
    assert lane_threads() == []
    assert bench.leases_held() == 0


def test_a_page_that_is_only_looked_at_again_does_not_keep_a_lane_alive(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look postpones the page by less than the patience: for an hour, without this rule."""
    monkeypatch.setattr("content_pipeline.operations.recover.LOOK_EVERY_S", 0.3)
    model = ScriptedModel(
        look_up_by_attempt=True, on_send=deque([call_raises(failed(FailureClass.UNCERTAIN))])
    )
    bench = make_bench(model=model, lane={"patience_s": 1.2}, generation={"answer_slack_s": 300})
    bench.submit()
    bench.step()
    bench.make_due()
    bench.run()
    assert bench.states() == {"t0": "generation_uncertain"}
    assert 2 <= model.looks <= 12


def test_a_stopped_lane_finishes_what_is_at_work_and_begins_nothing(
    make_bench: MakeBench,
) -> None:
    bench, model, _ = scripted(make_bench, 12, generation={"in_flight": 1})
    stop = threading.Event()
    settled = []
    for item in advance(bench.worker(), Selection(site=bench.name), stop=stop):
        stop.set()
        settled.append(item)
    states = list(bench.states().values())
    assert states.count("published") == len(settled) == len(model.sent)
    assert states.count("queued") == 12 - len(settled) > 0
    assert bench.leases_held() == 0


def test_a_lane_that_is_stopped_before_it_begins_does_nothing(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 2)
    stop = threading.Event()
    stop.set()
    assert list(advance(bench.worker(), Selection(site=bench.name), stop=stop)) == []
    assert model.sent == []


def test_a_lane_that_nobody_listens_to_any_more_ends(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 12, generation={"in_flight": 1})
    lane = advance(bench.worker(), Selection(site=bench.name))
    assert isinstance(lane, Generator)
    next(lane)
    lane.close()
    assert lane_threads() == []
    assert len(model.sent) < 12
    bench.let_leases_run_out()
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert len(model.sent) == 12


# --- what ends a lane ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "failure_class"),
    [
        ({"status": 429, "code": "insufficient_quota"}, FailureClass.QUOTA),
        ({"status": 401, "code": "invalid_api_key"}, FailureClass.AUTH),
    ],
)
def test_a_dead_account_is_called_once_and_the_other_pages_stay(
    fault: dict[str, Any], failure_class: FailureClass, make_bench: MakeBench
) -> None:
    bench = make_bench(towns=9, generation={"in_flight": 1})
    bench.strike("status", times=None, **fault)
    stop = threading.Event()
    bench.submit()
    list(advance(bench.worker(), Selection(site=bench.name), stop=stop))
    assert (bench.calls(), bench.billed()) == (1, 0)
    states = list(bench.states().values())
    assert states.count("failed_retryable") == 1
    assert set(states) <= {"failed_retryable", "reserved", "queued"}
    (failed_topic,) = (t for t, state in bench.states().items() if state == "failed_retryable")
    assert bench.report(failed_topic).failure_class is failure_class
    assert not stop.is_set()  # it is the caller's, and nobody asked the lane to stop
    assert bench.leases_held() == 0
    # Whoever comes before the account is in order makes no call.
    bench.sandbox_plan()
    bench.make_due()
    bench.run()
    assert bench.calls() == 1
    # Topped up and resumed, the next lane goes on with all of them.
    with bench.ledger.begin() as connection:
        assert routes.close_circuit(connection, bench.worker().model_route)
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert bench.billed() == 9


def test_a_setting_that_makes_every_page_fail_ends_the_lane(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 6)

    class Unpriced:
        def cost(self, *_: object) -> object:
            raise ConfigurationError("no price is known")

    runtime = replace(bench.worker(), prices=Unpriced())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        list(advance(runtime, Selection(site=bench.name)))
    assert model.sent == []
    assert lane_threads() == []


def test_an_error_of_the_database_ends_the_lane_and_loses_nothing(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench, 3)

    def break_it(checkpoint: str) -> None:
        if checkpoint == "draft_stored":
            with bench.ledger.begin() as connection:
                connection.execute(text("SELECT no_such_column"))

    bench.on_checkpoint = break_it
    with pytest.raises(ProgrammingError):
        bench.run()
    bench.on_checkpoint = None
    bench.let_leases_run_out()
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert (len(model.sent), len(cms.writes)) == (3, 3)


# --- our own faults -----------------------------------------------------------------------------


def test_a_fault_of_ours_in_one_page_sets_it_aside_while_the_others_proceed(
    make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench, _, cms = scripted(make_bench, 5, generation={"in_flight": 1})
    cms.on_write.append(raises(RuntimeError("the text of a page")))
    bench.run()
    (aside,) = (topic for topic, state in bench.states().items() if state != "published")
    report = bench.report(aside)
    # What was written is not known: nothing is repeated before the CMS has been asked.
    assert (report.state, report.failure_class) == (S.PUBLISHING, FailureClass.INTERNAL)
    assert "RuntimeError at" in (report.failure_message or "")
    assert "fakes.py" in (report.failure_message or "")
    assert "the text of a page" not in (report.failure_message or "") + caplog.text
    assert len(cms.writes) == 4
    for _ in range(4):
        bench.make_due()
        bench.run()
    assert bench.states()[aside] == "published"
    assert len(cms.writes) == 5


def test_a_fault_of_ours_while_asking_the_cms_needs_a_person(make_bench: MakeBench) -> None:
    bench, _, cms = scripted(make_bench, 1)
    cms.on_look.extend([look_raises(RuntimeError()), look_raises(RuntimeError())])
    bench.run()
    bench.make_due()
    bench.run()
    bench.make_due()
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.INTERNAL)
    assert cms.writes == []


def test_a_fault_of_ours_while_a_call_is_out_never_pays_again(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 1)
    model.on_send.append(call_raises(RuntimeError("boom")))
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.GENERATING, FailureClass.INTERNAL)
    bench.make_due()
    bench.run()
    assert bench.states() == {"t0": "generation_uncertain"}
    assert len(model.sent) == 1


def test_a_fault_of_ours_while_asking_the_provider_leaves_the_call_to_be_asked_about(
    make_bench: MakeBench,
) -> None:
    class Faulty(ScriptedModel):
        def look_up(self, attempt_id: str) -> object:  # type: ignore[override]
            raise RuntimeError(attempt_id)

    model = Faulty(
        look_up_by_attempt=True, on_send=deque([call_raises(failed(FailureClass.UNCERTAIN))])
    )
    bench, _, _ = scripted(make_bench, 1, model=model)
    bench.step()
    bench.make_due()
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (
        S.GENERATION_UNCERTAIN,
        FailureClass.INTERNAL,
    )
    assert len(model.sent) == 1


def test_a_fault_of_ours_in_the_rules_keeps_the_paid_draft(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 2)
    bench.run_drafts()
    bench.damage_draft("t0")
    bench.run()
    assert bench.states() == {"t0": "failed_terminal", "t1": "published"}
    report = bench.report()
    assert report.failure_class is FailureClass.INTERNAL
    assert bench.history()[-2:] == ["validating", "failed_terminal"]
    assert len(model.sent) == 2


def test_a_fault_of_ours_on_a_page_that_was_lost_meanwhile_changes_nothing(
    make_bench: MakeBench,
) -> None:
    bench, model, _ = scripted(make_bench, 2)

    def lose_and_fail(_request: GenerationRequest) -> RawResponse:
        bench.let_leases_run_out()
        raise RuntimeError

    model.on_send.append(lose_and_fail)
    bench.run()
    assert "published" in bench.states().values()
    assert all(
        report is not FailureClass.INTERNAL
        for report in (bench.report(topic).failure_class for topic in ("t0", "t1"))
    )


# --- several lanes ------------------------------------------------------------------------------


def test_two_lanes_share_a_site_without_doing_anything_twice(make_bench: MakeBench) -> None:
    bench = make_bench(towns=24)
    bench.sandbox.set_settings(
        bench.sandbox_settings().model_copy(update={"latency_median_s": 0.02})
    )
    bench.submit()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: bench.run(), range(2))
    assert set(bench.states().values()) == {"published"}
    assert len(first) + len(second) == 24
    assert first
    assert second
    assert bench.billed() == bench.calls() == 24
    assert sorted(bench.writes()) == sorted((path_of(row), 1) for row in bench.rows)


def test_a_lane_takes_over_what_a_dead_worker_held(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 2, lane={"lease_s": 0.5})
    dead = bench.worker()
    bench.claim(dead, "t0", lease_s=0.5)
    bench.run()
    assert bench.states() == {"t0": "published", "t1": "published"}
    assert len(model.sent) == 2


def test_a_lane_waits_for_another_only_as_long_as_its_patience(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench, 2, lane={"patience_s": 0.5})
    other = bench.worker()
    bench.claim(other, "t0", lease_s=600)
    bench.run()
    assert bench.states() == {"t0": "queued", "t1": "published"}
    assert len(model.sent) == 1


def test_a_page_settles_again_each_time_it_comes_to_rest(make_bench: MakeBench) -> None:
    bench = make_bench(lane={"patience_s": 10})
    bench.strike("drop_after")
    settled = bench.submit_and_run()
    assert [item.state for item in settled] == ["generation_uncertain", "published"]
    assert settled[-1].state in FINAL


def test_a_lane_gets_along_with_one_connection(
    make_bench: MakeBench, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no thread waits for a connection while it has one: eight of those would wait for ever."""
    monkeypatch.setattr(database, "CONNECTIONS", 1)
    monkeypatch.setattr(database, "CONNECTION_WITHIN_S", 30.0)
    bench = make_bench(towns=12)
    bench.strike("drop_after")
    bench.ledger = Ledger(database.create_ledger_engine(ledger_url))
    try:
        bench.submit_and_run()
        assert set(bench.states().values()) == {"published"}
    finally:
        bench.ledger.dispose()


def test_a_lane_that_is_ended_holds_no_page(make_bench: MakeBench, ledger: Ledger) -> None:
    bench, _, _ = scripted(make_bench, 12)
    runtime = bench.worker()
    lane = advance(runtime, Selection(site=bench.name))
    assert isinstance(lane, Generator)
    next(lane)
    lane.close()
    assert rows_where(ledger, lease_rows, worker=runtime.worker) == []


def test_leases_of_a_page_are_gone_when_it_rests(make_bench: MakeBench, ledger: Ledger) -> None:
    bench, _, _ = scripted(make_bench, 3)
    for settled in advance(bench.worker(), Selection(site=bench.name)):
        page = bench.report(settled.topic_key).page_id
        assert rows_where(ledger, lease_rows, resource=f"page:{page}") == []


def test_after_a_lane_and_its_announcement_the_sitemap_lists_every_page(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(towns=5)
    bench.submit_and_run()
    bench.announce()
    assert sitemap_paths(bench.folder) == sorted(path_of(row) for row in bench.rows)
