"""Announcing: a site's hooks are told of every proved page, once for all of them."""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Announcement
from content_pipeline.ledger.schema import effects
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedHook,
    ScriptedModel,
    failed,
)
from content_pipeline_tests.operations.small_site import path_of, sitemap_paths

TOLD = {"sitemap": Announcement(location="sitemap.xml", changed=True)}
"""What comes of telling a scripted hook for the first time, or anew."""


def published(make_bench: MakeBench, towns: int = 2, **more: object) -> tuple[Bench, ScriptedHook]:
    """A bench whose pages are live and not announced yet."""
    hook = ScriptedHook()
    bench = make_bench(
        towns=towns, **{"model": ScriptedModel(), "cms": ScriptedCMS(), "hooks": (hook,), **more}
    )
    bench.submit_and_run()
    assert set(bench.states().values()) == {"published"}
    return bench, hook


def outcomes(bench: Bench) -> list[tuple[str, str | None]]:
    """State and outcome of the site's announcements, in the order they were asked for."""
    rows = rows_where(bench.ledger, effects, site=bench.name, page_id=None)
    return [
        (row["state"], row["outcome"]) for row in sorted(rows, key=lambda row: row["created_at"])
    ]


def fails(failure_class: FailureClass = FailureClass.STORAGE) -> "deque[object]":
    def script() -> None:
        raise failed(failure_class)

    return deque([script])


def test_all_pages_are_announced_at_once(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, 5)
    assert bench.announce() == TOLD
    assert list(hook.paths()) == sorted(path_of(row) for row in bench.rows)
    assert len(hook.told) == 1
    assert outcomes(bench) == [("done", "changed")]
    assert bench.announce() == {}
    assert len(hook.told) == 1


def test_the_real_hooks_write_the_real_files(make_bench: MakeBench) -> None:
    bench = make_bench(towns=3)
    bench.submit_and_run()
    told = bench.announce()
    assert sorted(told) == ["index_page", "sitemap"]
    assert sitemap_paths(bench.folder) == sorted(path_of(row) for row in bench.rows)
    index = (bench.folder / "index.html").read_text()
    assert all(path_of(row).strip("/") in index for row in bench.rows)


def test_an_unchanged_list_writes_nothing(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2)
    bench.submit_and_run()
    bench.announce()
    files = [bench.folder / name for name in ("sitemap.xml", "index.html")]
    before = [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files]
    bench.want_announcements("sitemap", "index_page")
    assert len(bench.announce()) == 2
    assert [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files] == before
    assert {outcome for _, outcome in outcomes(bench)} == {"changed", "unchanged"}


def test_a_page_published_again_unchanged_asks_for_nothing(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, 1)
    bench.announce()
    river = bench.rows[0]["river"]
    for value in ("Rhine", river):
        bench.rows[0]["river"] = value
        bench.submit_and_run()
        assert len(bench.announce()) == 1  # the content changed both times
    assert len(hook.told) == 3


def test_a_hook_that_fails_is_told_again_later(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, retries={"storage": {"attempts": 3, "first_wait_s": 60}})
    hook.on_announce = fails()  # type: ignore[assignment]
    ((kind, failure),) = bench.announce(random=lambda: 0.5).items()
    assert kind == "sitemap"
    assert isinstance(failure, Failure)
    assert outcomes(bench) == [("pending", None)]
    assert bench.announce() == {}
    bench.make_due()
    assert bench.announce() == TOLD
    assert outcomes(bench) == [("done", "changed")]


def test_a_hook_that_fails_once_and_then_not_is_reported_as_told(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench)
    hook.on_announce = fails()  # type: ignore[assignment]
    assert bench.announce() == TOLD
    assert len(hook.told) == 1


def test_a_hook_that_keeps_failing_is_given_up_and_told_of_the_next_page(
    make_bench: MakeBench,
) -> None:
    bench, hook = published(make_bench, 1, retries={"storage": {"attempts": 2, "first_wait_s": 0}})
    hook.on_announce = fails() + fails()  # type: ignore[assignment]
    (failure,) = bench.announce().values()
    assert isinstance(failure, Failure)
    assert outcomes(bench) == [("failed", None)]
    bench.rows[0]["river"] = "Rhine"
    bench.submit_and_run()
    assert bench.announce() == TOLD


def test_a_hook_that_was_given_up_is_tried_again_for_a_person(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, 1, retries={"storage": {"attempts": 1}})
    hook.on_announce = fails() + fails()  # type: ignore[assignment]
    assert isinstance(bench.announce()["sitemap"], Failure)
    assert bench.announce() == {}, "nobody asked"
    assert isinstance(bench.announce(even_given_up=True)["sitemap"], Failure)
    assert bench.announce(even_given_up=True) == TOLD
    assert outcomes(bench) == [("failed", None), ("failed", None), ("done", "changed")]
    assert bench.announce(even_given_up=True) == {}, "it is told by now"
    assert len(hook.told) == 1


def test_trying_again_hurries_nothing_that_waits(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, 1, retries={"storage": {"attempts": 3, "first_wait_s": 60}})
    hook.on_announce = fails()  # type: ignore[assignment]
    bench.announce(random=lambda: 0.5)
    assert bench.announce(even_given_up=True) == {}
    assert outcomes(bench) == [("pending", None)]


def test_one_failing_hook_does_not_keep_another_from_being_told(make_bench: MakeBench) -> None:
    good, bad = ScriptedHook(kind="index_page"), ScriptedHook(kind="sitemap")
    bench, _ = published(make_bench, 1, hooks=(good, bad))
    bad.on_announce = fails(FailureClass.CONFLICT)  # type: ignore[assignment]
    told = bench.announce()
    assert told["index_page"] == TOLD["sitemap"]
    assert isinstance(told["sitemap"], Failure)
    assert (len(good.told), len(bad.told)) == (1, 0)


def test_a_hook_the_site_no_longer_has_is_not_waited_for(make_bench: MakeBench) -> None:
    bench, _ = published(make_bench)
    bench.hooks = ()
    assert bench.announce() == {}
    assert outcomes(bench) == [("done", "not_wanted")]


def test_an_interrupted_announcement_is_taken_over_after_a_lease(make_bench: MakeBench) -> None:
    bench, hook = published(make_bench, 2, lane={"lease_s": 0.5})

    class Stopped(BaseException):
        pass

    def stop(checkpoint: str) -> None:
        if checkpoint == "announcement_taken":
            raise Stopped

    bench.on_checkpoint = stop
    with pytest.raises(Stopped):
        bench.announce()
    bench.on_checkpoint = None
    assert hook.told == []
    assert bench.announce() == TOLD
    assert len(list(hook.paths())) == 2
    assert outcomes(bench) == [("done", "changed")]


def test_a_page_published_while_a_hook_is_being_told_is_announced_too(
    make_bench: MakeBench,
) -> None:
    """The older list must not be the last one written, whoever of the two is faster."""
    bench, hook = published(make_bench, 2, lane={"lease_s": 20})
    bench.rows.append(bench.rows[0] | {"id": "t9", "name": "Zug 9"})
    at_it, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        at_it.set()
        assert go_on.wait(20)

    hook.on_announce.append(slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bench.announce)
        assert at_it.wait(20)
        bench.submit_and_run()
        second = pool.submit(bench.announce)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.5)
        go_on.set()
        first.result(timeout=20)
        second.result(timeout=20)
    assert [len(listing.pages) for listing in hook.told] == [2, 3]
    assert {state for state, _ in outcomes(bench)} == {"done"}


IN_BUCKETS = {"partition_by": "bucket", "buckets": 2}
SITEMAP_AFTER_A_SECOND = {"announce": [{"kind": "sitemap", "debounce_s": 1}]}


def test_the_long_lists_of_a_site_in_buckets_are_not_written_after_every_run(
    make_bench: MakeBench,
) -> None:
    bench, hook = published(make_bench, 2, **IN_BUCKETS)
    assert bench.announce(patience_s=1) == {}, "it gathers for some minutes"
    assert hook.told == []
    ((state, _),) = outcomes(bench)
    assert state == "pending"


@pytest.mark.parametrize("buckets", [{}, IN_BUCKETS])
def test_a_list_gathers_for_as_long_as_its_site_says(
    buckets: dict[str, object], make_bench: MakeBench
) -> None:
    bench, hook = published(make_bench, 2, **buckets, **SITEMAP_AFTER_A_SECOND)
    assert bench.announce(patience_s=30) == TOLD
    assert len(hook.told) == 1
