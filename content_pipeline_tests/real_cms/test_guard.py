"""The companion plugin: what it refuses, to whom it speaks, and what it leaves alone."""

import hashlib
import time

import pytest

from content_pipeline.core.cms import RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.real_cms.conftest import Connect, RealBench

LONGEST_S = 30.0


def published(bench: RealBench, path: str = "/austria/") -> RemotePage:
    page = make_document(path, base_url=bench.base_url)
    return bench.cms.publish(page, replacing=bench.cms.create_draft(page))


def refused(bench: RealBench, path: str = "/austria/") -> Failure:
    with pytest.raises(CallFailed) as caught:
        bench.cms.create_draft(make_document(path, base_url=bench.base_url))
    return caught.value.failure


def marked_pages(bench: RealBench) -> int:
    ((count,),) = bench.server.sql("SELECT COUNT(*) FROM wp_posts WHERE post_type = 'page'")
    return int(count)


def test_a_key_is_known_wherever_its_page_went(guarded_bench: RealBench) -> None:
    bench = guarded_bench
    published(bench)
    bench.rename("/austria/", "/renamed/")
    assert refused(bench).code == "content_pipeline_known_key"
    bench.hide("/renamed/")
    assert refused(bench).code == "content_pipeline_known_key"
    bench.trash("/renamed/")
    assert refused(bench).code == "content_pipeline_known_key"
    assert marked_pages(bench) == 1


def test_a_taken_address_is_refused_before_anything_is_written(guarded_bench: RealBench) -> None:
    guarded_bench.occupy("/austria/")
    failure = refused(guarded_bench)
    assert (failure.failure_class, failure.code) == (
        FailureClass.CONFLICT,
        "content_pipeline_taken",
    )
    assert marked_pages(guarded_bench) == 1


def test_the_same_slug_below_another_parent_is_free(guarded_bench: RealBench) -> None:
    guarded_bench.occupy("/austria/")
    guarded_bench.occupy("/vienna/")
    assert published(guarded_bench, "/austria/vienna/").path == "/austria/vienna/"


def test_without_rights_nobody_learns_which_keys_exist(
    guarded_bench: RealBench, connected: Connect
) -> None:
    published(guarded_bench)
    for path in ("/austria/", "/belgium/"):
        page = make_document(path, base_url=guarded_bench.base_url)
        with pytest.raises(CallFailed) as caught:
            connected(user="author").create_draft(page)
        assert caught.value.failure.code == "rest_cannot_create"


def test_a_busy_key_is_waited_for_and_nothing_is_written(guarded_bench: RealBench) -> None:
    page = make_document(base_url=guarded_bench.base_url)
    what = f"wordpresswp_key {page.marker.page_id}"
    name = "cp:" + hashlib.sha1(what.encode()).hexdigest()
    with guarded_bench.server.holding(f"DO GET_LOCK('{name}', 0)"):
        failure = refused(guarded_bench)
    assert failure.failure_class is FailureClass.THROTTLED
    assert failure.retry_after_s == 2
    assert marked_pages(guarded_bench) == 0


def test_a_create_that_takes_effect_late_leaves_one_page(
    guarded_bench: RealBench, connected: Connect
) -> None:
    page = make_document(base_url=guarded_bench.base_url)
    hasty = connected(deadline_s=1.0)
    with guarded_bench.server.locked():
        for _ in range(2):
            with pytest.raises(CallFailed) as caught:
                hasty.create_draft(page)
            assert caught.value.failure.failure_class is FailureClass.UNCERTAIN
    until = time.monotonic() + LONGEST_S
    while marked_pages(guarded_bench) == 0 and time.monotonic() < until:
        time.sleep(0.1)
    assert refused(guarded_bench).failure_class is FailureClass.CONFLICT
    assert marked_pages(guarded_bench) == 1


def test_a_replacement_that_takes_effect_late_overwrites_no_edit(
    guarded_bench: RealBench, connected: Connect
) -> None:
    seen = published(guarded_bench)
    newer = make_document(revision=2, base_url=guarded_bench.base_url)
    hasty = connected(deadline_s=1.0)
    with guarded_bench.server.locked(), pytest.raises(CallFailed):
        hasty.publish(newer, replacing=seen)
    guarded_bench.edit("/austria/")
    with pytest.raises(CallFailed) as caught:
        guarded_bench.cms.publish(newer, replacing=seen)
    assert caught.value.failure.failure_class is FailureClass.CONFLICT
    assert "A person was here." in (guarded_bench.visible("/austria/") or "")


def test_people_are_left_alone(guarded_bench: RealBench) -> None:
    """Two pages of one slug, and a write over whatever there is, as without the plugin."""
    guarded_bench.occupy("/austria/")
    guarded_bench.occupy("/austria/")
    assert guarded_bench.visible("/austria-2/") is not None
    guarded_bench.edit("/austria/")
    guarded_bench.edit("/austria/")
    assert (guarded_bench.visible("/austria/") or "").count("A person was here.") == 2
