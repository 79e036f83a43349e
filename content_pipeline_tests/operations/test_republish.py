"""Published again without being generated again."""

from collections import deque

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.operations.republish import republish
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, failed, loses_the_answer

S = PageJobState


def live(make_bench: MakeBench, towns: int = 3) -> tuple[Bench, ScriptedCMS]:
    cms = ScriptedCMS()
    bench = make_bench(towns, cms=cms)
    bench.submit_and_run()
    cms.writes.clear()
    return bench, cms


def again(bench: Bench, *topics: str) -> tuple[str, ...]:
    return republish(bench.worker(), topics or None, cause="a new theme", by="anna")


def test_a_page_in_place_is_confirmed_without_a_write_or_a_cent(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    billed = bench.billed()
    assert again(bench) == ("t0", "t1", "t2")
    assert set(bench.states().values()) == {"ready_to_publish"}
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert (cms.writes, bench.billed()) == ([], billed)
    assert bench.reasons()[-3] == "published again: a new theme"


def test_only_the_topics_that_are_named_are_taken_up(make_bench: MakeBench) -> None:
    bench, _ = live(make_bench)
    assert again(bench, "t1", "unknown") == ("t1",)
    assert bench.states() == {"t0": "published", "t1": "ready_to_publish", "t2": "published"}


def test_a_page_lost_by_the_site_is_put_back_from_the_stored_draft(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    billed = bench.billed()
    cms.pages.clear()
    again(bench)
    bench.run()
    assert sorted(cms.writes) == [("/aarau-0/", 1), ("/baden-1/", 1), ("/chur-2/", 1)]
    assert bench.billed() == billed


def test_asking_twice_is_one_wish(make_bench: MakeBench) -> None:
    bench, _ = live(make_bench)
    assert len(again(bench)) == 3
    assert again(bench) == ()


def test_a_page_that_is_being_made_anew_is_left_to_that(make_bench: MakeBench) -> None:
    bench, _ = live(make_bench, 1)
    bench.rows[0]["population"] = "99,999"
    bench.submit()
    assert again(bench) == ()
    bench.run()
    assert bench.report().revision == 2


def test_a_lost_answer_is_settled_like_any_other(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 1)
    cms.pages.clear()
    cms.on_write = deque([loses_the_answer])
    again(bench)
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_republish_that_fails_has_all_its_tries(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 1)
    cms.pages.clear()

    def refuses(*_: object) -> None:
        raise failed(FailureClass.TERMINAL, "the CMS refuses for good")

    cms.on_write = deque([refuses])  # type: ignore[list-item]
    again(bench)
    bench.run()
    assert bench.report().state is S.FAILED_TERMINAL
    assert "refuses for good" in (bench.report().failure_message or "")
