"""Drafts and the publish rate: none is paid for that cannot go out for days, and none is lost."""

import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import draft_line
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import page_jobs, pages
from content_pipeline.operations.lane import advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
DAY = timedelta(days=1)


def bench_of(make_bench: MakeBench, towns: int, **schedule: Any) -> tuple[Bench, ScriptedModel]:
    """A site that answers at once, with its publish rate."""
    model = ScriptedModel()
    bench = make_bench(towns=towns, model=model, cms=ScriptedCMS(), schedule=schedule)
    return bench, model


def counted(bench: Bench) -> Counter[str]:
    return Counter(bench.states().values())


def let_a_day_pass(bench: Bench) -> None:
    """What became public today was so yesterday, and turns are a day nearer."""
    one = func.make_interval(0, 0, 0, 1)
    with bench.ledger.begin() as connection:
        connection.execute(
            update(pages)
            .where(pages.c.site == bench.name)
            .values(first_public_at=pages.c.first_public_at - one)
        )
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == bench.name)
            .values(next_attempt_at=page_jobs.c.next_attempt_at - one)
        )


def turns(bench: Bench) -> list[datetime]:
    """When those that are not paid for are due, in the order of the line."""
    with bench.ledger.begin() as connection:
        found = connection.execute(
            select(page_jobs.c.next_attempt_at)
            .where(page_jobs.c.site == bench.name, page_jobs.c.state == S.QUEUED)
            .order_by(page_jobs.c.next_attempt_at)
        )
        return list(found.scalars())


def waiting(bench: Bench) -> int:
    with bench.ledger.begin() as connection:
        return draft_line.waiting(connection, bench.name)


def wake(bench: Bench, **more: Any) -> int:
    with bench.ledger.begin() as connection:
        rate = bench.site.settings.schedule.rate
        return draft_line.wake(connection, Selection(site=bench.name), rate, **more)


def test_as_many_drafts_are_paid_for_as_can_go_out_today(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 7, new_pages_per_day=2)
    bench.submit_and_run()
    assert counted(bench) == {"published": 2, "queued": 5}
    assert len(model.sent) == 2
    assert waiting(bench) == 5

    first, *others = turns(bench)
    assert [turn - first for turn in others] == [timedelta(0), DAY, DAY, 2 * DAY]
    assert (first.hour, first.minute) == (0, 0)
    (page, *_) = [bench.report(key) for key, state in bench.states().items() if state == "queued"]
    assert page.failure_class is None
    assert page.failure_message == (
        "waits for its turn: the site publishes at most 2 new pages a day, and no draft is paid "
        "for before the day on which it can go out"
    )
    assert page.deadline_at > page.next_attempt_at + 13 * DAY, "it then has all its time"

    bench.run()
    assert len(model.sent) == 2, "the same day takes no more"
    for out in (4, 6, 7):
        let_a_day_pass(bench)
        bench.run()
        assert (counted(bench)["published"], len(model.sent)) == (out, out)
    assert waiting(bench) == 0


def test_a_site_may_have_drafts_of_some_days_ahead(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 9, new_pages_per_day=2, drafts_ahead_days=2)
    bench.submit_and_run()
    assert counted(bench) == {"published": 2, "ready_to_publish": 4, "queued": 3}
    assert len(model.sent) == 6
    let_a_day_pass(bench)
    bench.run()
    assert counted(bench) == {"published": 4, "ready_to_publish": 4, "queued": 1}


def test_a_page_that_was_public_before_waits_for_nothing(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 3)
    bench.submit_and_run()
    bench.rows = [row | {"river": "Rhine"} for row in rows_of(3)] + rows_of(5)[3:]
    bench.change(schedule={"new_pages_per_day": 1})
    bench.submit_and_run()
    assert len(model.sent) == 3 + 3, "three were public today already, so no new one has a turn"
    assert counted(bench) == {"published": 3, "queued": 2}


def test_what_is_paid_for_goes_on_and_takes_a_place(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 3, new_pages_per_day=1)
    bench.submit()
    bench.step("t2", until=S.RESERVED)
    bench.run()
    assert bench.states() == {"t0": "queued", "t1": "queued", "t2": "published"}
    assert len(model.sent) == 1


def test_a_higher_rate_or_none_takes_them_up_at_once(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 6, new_pages_per_day=1)
    bench.submit_and_run()
    assert waiting(bench) == 5
    assert wake(bench) == 0, "no room: nothing moves"
    bench.change(schedule={"new_pages_per_day": 3})
    assert wake(bench, most=1) == 1
    bench.run()
    assert counted(bench) == {"published": 3, "queued": 3}
    bench.change(schedule={"new_pages_per_day": None})
    bench.run()
    assert counted(bench) == {"published": 6}
    assert len(model.sent) == 6


def test_a_draft_that_failed_leaves_its_place_to_the_next(make_bench: MakeBench) -> None:
    bench = make_bench(4, schedule={"new_pages_per_day": 1})
    bench.strike("refusal", times=2)
    bench.submit_and_run()
    bench.run()
    bench.run()
    assert counted(bench) == {"failed_terminal": 2, "published": 1, "queued": 1}


def test_several_workers_at_once_begin_no_more_than_one_would(make_bench: MakeBench) -> None:
    bench, model = bench_of(make_bench, 30, new_pages_per_day=5)
    bench.submit()
    lanes = [
        threading.Thread(target=lambda: list(advance(bench.worker(), Selection(site=bench.name))))
        for _ in range(3)
    ]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert (counted(bench)["published"], len(model.sent)) == (5, 5)
    assert waiting(bench) == 25
    last = turns(bench)[-1]
    assert last - turns(bench)[0] == 4 * DAY, "five a day, no day left out"


@pytest.mark.parametrize("schedule", [{}, {"new_pages_per_day": 100}])
def test_without_a_line_nothing_is_written_or_held(
    schedule: dict[str, int], make_bench: MakeBench
) -> None:
    bench, _ = bench_of(make_bench, 4, **schedule)
    bench.submit_and_run()
    assert counted(bench) == {"published": 4}
    assert waiting(bench) == 0
