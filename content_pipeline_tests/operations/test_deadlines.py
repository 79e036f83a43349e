"""Deadlines at work: nothing is tried again after them, and nothing that is out is dropped."""

from collections import deque
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import func, update

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationLookUp, RawResponse, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import routes
from content_pipeline.ledger.schema import attempts, page_jobs, seconds_from_now
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedModel,
    article_answer,
    call_raises,
    failed,
    loses_the_answer,
    loses_the_request,
    raises,
)

S = PageJobState
HOUR_S = 3600.0


def scripted(make_bench: MakeBench, **more: Any) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model = more.pop("model", None) or ScriptedModel()
    cms = ScriptedCMS()
    bench = make_bench(model=model, cms=cms, **more)
    bench.submit()
    return bench, model, cms


def asks_to_wait(
    seconds: float, failure_class: FailureClass = FailureClass.THROTTLED
) -> CallFailed:
    return CallFailed(
        Failure(failure_class=failure_class, message="HTTP 429", retry_after_s=seconds)
    )


def leave(bench: Bench, seconds: float) -> None:
    """Leave the site's pages only so much of their time."""
    with bench.ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == bench.name)
            .values(deadline_at=seconds_from_now(seconds))
        )


def left_of_pause_s(bench: Bench) -> float:
    runtime = bench.worker()
    with bench.ledger.begin() as connection:
        return max(
            routes.wait_s(connection, runtime.model_route),
            routes.wait_s(connection, runtime.cms_route),
        )


def waits_s(bench: Bench) -> float:
    """How long the page has still to wait."""
    with bench.ledger.begin() as connection:
        now: datetime = connection.execute(func.clock_timestamp().select()).scalar_one()
    return (bench.report().next_attempt_at - now).total_seconds()


# --- an announced wait --------------------------------------------------------------------------


def test_a_wait_that_passes_the_deadline_stops_the_page_and_pauses_the_others(
    make_bench: MakeBench,
) -> None:
    bench, model, _ = scripted(make_bench)
    leave(bench, HOUR_S)
    model.on_send.append(call_raises(asks_to_wait(3 * HOUR_S)))
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, FailureClass.THROTTLED)
    assert (report.failure_message or "").startswith(
        "HTTP 429; the service asked to wait 3 h, the page's deadline is in "
    )
    assert left_of_pause_s(bench) > 2 * HOUR_S
    assert len(model.sent) == 1


def test_a_wait_within_the_deadline_is_kept_whole(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    ten_days_s = 10 * 24 * HOUR_S
    model.on_send.append(call_raises(asks_to_wait(ten_days_s)))
    bench.step()
    assert bench.states() == {"t0": "failed_retryable"}
    assert ten_days_s - 60 < waits_s(bench) <= ten_days_s


@pytest.mark.parametrize("heeds", [True, False])
def test_a_site_may_ignore_announced_waits_for_page_and_route(
    heeds: bool, make_bench: MakeBench
) -> None:
    policy = {"attempts": 3, "first_wait_s": 0, "max_wait_s": 0, "heed_retry_after": heeds}
    bench, model, _ = scripted(make_bench, retries={"throttled": policy})
    model.on_send.append(call_raises(asks_to_wait(HOUR_S)))
    bench.run()
    assert bench.states() == {"t0": "failed_retryable" if heeds else "published"}
    assert (left_of_pause_s(bench) > 0) is heeds
    assert len(model.sent) == (1 if heeds else 2)


@pytest.mark.parametrize("heeds", [True, False])
def test_the_same_holds_for_the_cms(heeds: bool, make_bench: MakeBench) -> None:
    policy = {"attempts": 3, "first_wait_s": 0, "max_wait_s": 0, "heed_retry_after": heeds}
    bench, _, cms = scripted(make_bench, retries={"transient": policy})
    cms.on_write.append(raises(asks_to_wait(HOUR_S, FailureClass.TRANSIENT)))
    bench.run()
    assert bench.states() == {"t0": "failed_retryable" if heeds else "published"}
    assert (left_of_pause_s(bench) > 0) is heeds


# --- deadlines of a class -----------------------------------------------------------------------


def test_the_tries_of_a_class_end_with_its_own_deadline(make_bench: MakeBench) -> None:
    policy = {"attempts": 50, "first_wait_s": 0, "max_wait_s": 0, "deadline_s": 600}
    bench, model, _ = scripted(make_bench, retries={"transient": policy})
    model.on_send.extend([call_raises(failed(FailureClass.TRANSIENT))] * 3)
    bench.step()
    bench.step()
    assert bench.states() == {"t0": "failed_retryable"}
    first = bench.rows_in(attempts)[0]
    with bench.ledger.begin() as connection:
        connection.execute(
            update(attempts)
            .where(attempts.c.attempt_id == first.attempt_id)
            .values(finished_at=seconds_from_now(-700))
        )
    bench.step()
    report = bench.report()
    assert report.state is S.DEAD_LETTERED
    assert "tries must end 10 min after the first failure" in (report.failure_message or "")
    # A person's retry starts the clock of the class anew.
    model.on_send.append(call_raises(failed(FailureClass.TRANSIENT)))
    retry(bench.ledger, bench.name, "t0", cause="the provider is well again")
    bench.step()
    assert bench.states() == {"t0": "failed_retryable"}


# --- deadlines of a page ------------------------------------------------------------------------


def test_after_the_deadline_a_failed_call_is_not_tried_again(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    leave(bench, -1)
    model.on_send.append(call_raises(failed(FailureClass.TRANSIENT)))
    bench.step()
    assert bench.states() == {"t0": "dead_lettered"}
    assert "the page's deadline has passed" in (bench.report().failure_message or "")


def test_a_page_that_nobody_came_to_in_time_still_gets_its_try(make_bench: MakeBench) -> None:
    bench, model, cms = scripted(make_bench)
    leave(bench, -1)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), len(cms.writes)) == (1, 1)


def test_a_repaired_page_has_its_time_again(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    leave(bench, -1)
    model.on_send.extend([call_raises(failed(FailureClass.TRANSIENT))] * 2)
    bench.step()
    retry(bench.ledger, bench.name, "t0", cause="the provider is well again")
    bench.step()
    assert bench.states() == {"t0": "failed_retryable"}
    bench.step()
    assert bench.states() == {"t0": "published"}


def test_a_lost_call_is_settled_after_the_deadline_and_its_answer_used(
    make_bench: MakeBench,
) -> None:
    model = ScriptedModel(look_up_by_attempt=True)
    model.on_send.append(call_raises(failed(FailureClass.UNCERTAIN)))
    bench, _, cms = scripted(make_bench, model=model, generation={"answer_slack_s": 60})
    bench.step()
    leave(bench, -1)
    answer = article_answer(model.sent[0])
    model.on_look.extend(
        [
            GenerationLookUp(verdict=Verdict.ABSENT),
            GenerationLookUp(verdict=Verdict.PRESENT, raw=answer),
        ]
    )
    bench.step()
    assert bench.states() == {"t0": "generation_uncertain"}, "it may still be answered"
    bench.step()
    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), len(cms.writes)) == (1, 1)


def test_a_lost_call_that_never_happened_is_not_made_again_after_the_deadline(
    make_bench: MakeBench,
) -> None:
    model = ScriptedModel(look_up_by_attempt=True)
    model.on_send.append(call_raises(failed(FailureClass.UNCERTAIN)))
    bench, _, _ = scripted(
        make_bench, model=model, generation={"deadline_s": 0.1, "answer_slack_s": 0.01}
    )
    bench.step()
    leave(bench, -1)
    bench.make_wait(0.2)
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.DEAD_LETTERED, FailureClass.UNCERTAIN)
    assert "the page's deadline has passed" in (report.failure_message or "")
    assert (len(model.sent), bench.spend()) == (1, ["released"])


def test_a_lost_publish_is_settled_after_the_deadline(make_bench: MakeBench) -> None:
    bench, _, cms = scripted(make_bench)
    cms.on_write.append(loses_the_answer)
    bench.step()
    leave(bench, -1)
    assert bench.states() == {"t0": "publish_uncertain"}
    bench.step()
    assert bench.states() == {"t0": "published"}
    assert len(cms.writes) == 1


def test_a_lost_publish_that_never_happened_is_not_written_again_after_the_deadline(
    make_bench: MakeBench,
) -> None:
    bench, _, cms = scripted(make_bench)
    cms.on_write.append(loses_the_request)
    bench.step()
    leave(bench, -1)
    for _ in range(3):
        bench.step()
        if bench.report().state is not S.PUBLISH_UNCERTAIN:
            break
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.UNCERTAIN)
    assert "the page's deadline has passed" in (report.failure_message or "")
    assert (cms.writes, cms.looks) == ([], 3)


def test_a_cancelled_page_ends_cancelled_whatever_its_deadline(make_bench: MakeBench) -> None:
    bench, model, _ = scripted(make_bench)
    leave(bench, -1)

    def cancelled_meanwhile(_request: object) -> RawResponse:
        bench.cancel()
        raise failed(FailureClass.TRANSIENT)

    model.on_send = deque([cancelled_meanwhile])
    bench.step()
    assert bench.states() == {"t0": "cancelled"}
