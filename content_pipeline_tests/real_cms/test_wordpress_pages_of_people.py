"""Requests counted, pages below others, posts, and the copies that people make."""

import pytest

from content_pipeline.core.cms import RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms import conformance
from content_pipeline_tests.adapters.cms.conformance import Law, law_name
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.real_cms.conftest import Connect, RealBench
from content_pipeline_tests.real_cms.wordpress_bench import WordPressBench
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer

FOR_POSTS: tuple[Law, ...] = (
    conformance.a_published_page_is_present_with_our_marker,
    conformance.publishing_returns_what_a_look_up_finds,
    conformance.publishing_the_same_again_leaves_one_equal_page,
    conformance.a_draft_is_not_visible_until_published,
    conformance.a_strangers_page_carries_no_marker,
    conformance.a_trashed_page_comes_back_by_replacing_it,
    conformance.a_renamed_page_is_found_where_it_is_now,
    conformance.the_text_of_a_page_can_be_read_back,
    conformance.changes_are_told_from_a_point_on,
    conformance.a_working_cms_passes_its_check_and_the_check_changes_nothing,
)


@pytest.mark.parametrize("law", FOR_POSTS, ids=law_name)
def test_posts_keep_the_law_as_well(
    law: Law, wordpress: WordPressServer, connected: Connect
) -> None:
    law(WordPressBench(server=wordpress, cms=connected(content_type="posts"), kind="posts"))


def publish_as_the_lane_does(bench: RealBench) -> str:
    """Look, create, publish, read back."""
    page = make_document(base_url=bench.base_url)
    assert bench.cms.look_up(page.marker.page_id, page.path, None).verdict is Verdict.ABSENT
    written = bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    found = bench.cms.look_up(page.marker.page_id, page.path, written.remote_id)
    assert found.page == written
    return written.remote_id


def test_a_first_publish_is_five_requests_and_a_second_look_one(bench: RealBench) -> None:
    remote_id = publish_as_the_lane_does(bench)
    pages = "/wp-json/wp/v2/pages"
    assert bench.server.requests() == [
        f"GET {pages}",  # by mark
        f"GET {pages}",  # by slug
        f"POST {pages}",
        f"POST {pages}/{remote_id}",
        f"GET {pages}/{remote_id}",
    ]
    page = make_document(base_url=bench.base_url)
    bench.cms.look_up(page.marker.page_id, page.path, remote_id)
    assert len(bench.server.requests()) == 6


def test_with_our_plugin_a_first_publish_is_four_requests(guarded_bench: RealBench) -> None:
    publish_as_the_lane_does(guarded_bench)
    assert len(guarded_bench.server.requests()) == 4


def test_the_plugin_is_noticed_when_it_comes_and_when_it_goes(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    for wanted in (False, True, False):
        bench.server.install_guard(wanted=wanted)
        bench.cms.look_up(page.marker.page_id, page.path, None)
        assert bench.cms.capabilities.client_id is wanted


def test_a_page_stands_below_its_parent(bench: RealBench) -> None:
    bench.occupy("/austria/")
    page = make_document("/austria/vienna/", base_url=bench.base_url)
    draft = bench.cms.create_draft(page)
    assert draft.path == page.path
    assert bench.cms.publish(page, replacing=draft).path == page.path
    assert bench.visible(page.path) is not None


def test_a_page_without_its_parent_is_refused_before_it_is_created(bench: RealBench) -> None:
    page = make_document("/austria/vienna/", base_url=bench.base_url)
    with pytest.raises(CallFailed) as refused:
        bench.cms.create_draft(page)
    assert refused.value.failure.failure_class is FailureClass.REQUEST
    assert "/austria/: the site has no such page" in refused.value.failure.message
    assert bench.server.sql("SELECT ID FROM wp_posts") == []
    bench.occupy("/austria/")
    assert bench.cms.create_draft(page).path == page.path


def test_a_parent_that_was_made_anew_is_found_again(bench: RealBench) -> None:
    bench.occupy("/austria/")
    bench.cms.create_draft(make_document("/austria/vienna/", base_url=bench.base_url))
    bench.delete("/austria/")
    bench.occupy("/austria/")
    graz = make_document("/austria/graz/", base_url=bench.base_url)
    with pytest.raises(CallFailed) as refused:
        bench.cms.create_draft(graz)
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    assert bench.cms.create_draft(graz).path == graz.path


@pytest.mark.parametrize(
    "path",
    [
        "/Austria/",
        "/österreich/",
        "/a~b/",
        "/2024/",
        "/feed/",
        "/a--b/",
        "/a.b/",
        "/a//b/",
        "/",
        "/a",
    ],
)
def test_a_path_that_wordpress_would_change_is_refused_unsent(path: str, bench: RealBench) -> None:
    page = make_document(path, base_url=bench.base_url)
    with pytest.raises(CallFailed) as refused:
        bench.cms.create_draft(page)
    assert refused.value.failure.failure_class is FailureClass.INVALID_INPUT
    found = bench.cms.look_up(page.marker.page_id, path, None)
    assert found.verdict is Verdict.UNKNOWN
    assert bench.server.requests() == []


def test_a_copy_that_a_person_made_is_no_twin(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    ours = bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    content = bench.text_of(int(ours.remote_id))
    copy = {"status": "draft", "title": "A copy", "slug": "copy", "content": content}
    bench.server.as_person("POST", "pages", copy)
    found = bench.cms.look_up(page.marker.page_id, page.path, None)
    assert found.page == ours
    assert found.twins == ()


def test_a_draft_that_a_person_edited_goes_into_the_trash_and_not_for_good(
    bench: RealBench,
) -> None:
    page = make_document(base_url=bench.base_url)
    bench.cms.create_draft(page)
    bench.edit(page.path)
    edited = bench.cms.look_up(page.marker.page_id, page.path, None).page
    assert edited is not None
    bench.cms.remove(edited)
    found = bench.cms.look_up(page.marker.page_id, page.path, None).page
    assert found is not None
    assert found.status is RemoteStatus.TRASHED


def test_a_page_that_was_edited_since_it_was_seen_is_not_taken_away(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    seen = bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    bench.edit(page.path)
    for take_away in (bench.cms.withdraw, bench.cms.remove):
        with pytest.raises(CallFailed) as refused:
            take_away(seen)
        assert refused.value.failure.failure_class is FailureClass.CONFLICT
    assert bench.visible(page.path) is not None


def test_a_page_that_lost_its_mark_is_not_taken_for_missing(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    ours = bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    changes = {"content": "<p>Converted by an editor.</p>", "slug": "moved"}
    bench.server.as_person("POST", f"pages/{ours.remote_id}", changes)
    found = bench.cms.look_up(page.marker.page_id, page.path, ours.remote_id)
    assert found.page is not None
    assert (found.page.remote_id, found.page.marker) == (ours.remote_id, None)


def test_a_page_restored_under_another_id_is_found_by_its_mark(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    ours = bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    bench.server.sql(f"UPDATE wp_posts SET ID = ID + 500 WHERE ID = {ours.remote_id}")
    found = bench.cms.look_up(page.marker.page_id, page.path, ours.remote_id).page
    assert found is not None
    assert found.remote_id == str(int(ours.remote_id) + 500)


def test_a_page_dated_ahead_is_no_point_to_go_on_from(bench: RealBench) -> None:
    page = make_document(base_url=bench.base_url)
    bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    bench.occupy("/imported/")
    bench.server.sql(
        "UPDATE wp_posts SET post_modified_gmt = '2099-01-01', post_modified = '2099-01-01' "
        "WHERE post_name = 'imported'"
    )
    nothing = bench.cms.recent_changes(None)
    assert nothing.point < "2099"
    bench.edit(page.path)
    told = bench.cms.recent_changes(nothing.point)
    assert page.path in {changed.path for changed in told.pages}
    assert told.point < "2099"


def test_an_inventory_of_more_than_a_slice_lists_every_page_once(bench: RealBench) -> None:
    values = ", ".join(
        f"('publish', 'page', 'p{number}', 'x', 'x', '', '', '', '', '2026-01-01', '2026-01-01', "
        "'2026-01-01', '2026-01-01')"
        for number in range(230)
    )
    bench.server.sql(
        "INSERT INTO wp_posts (post_status, post_type, post_name, post_title, post_content, "
        "post_excerpt, to_ping, pinged, post_content_filtered, post_date, post_date_gmt, "
        f"post_modified, post_modified_gmt) VALUES {values}"
    )
    paths: list[str] = []
    slices, at = 0, None
    while slices == 0 or at is not None:
        part = bench.cms.inventory(at)
        paths += [glance.path for glance in part.glances]
        slices, at = slices + 1, part.next_slice
    assert slices == 3
    assert sorted(paths) == sorted(f"/p{number}/" for number in range(230))
