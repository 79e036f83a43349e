"""What a real WordPress does when it is not well, and what the adapter makes of it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from content_pipeline.core.cms import Document, PageLookUp, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.operations.small_site import clock
from content_pipeline_tests.real_cms.conftest import Connect, RealBench
from content_pipeline_tests.real_cms.wordpress_bench import WordPressBench
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer


def document(bench: RealBench, path: str = "/austria/", **changes: object) -> Document:
    return replace(make_document(path, base_url=bench.base_url), **changes)  # type: ignore[arg-type]


def look(bench: RealBench, page: Document, remote_id: str | None = None) -> PageLookUp:
    return bench.cms.look_up(page.marker.page_id, page.path, remote_id)


def refusal(call: object) -> Failure:
    with pytest.raises(CallFailed) as refused:
        call()  # type: ignore[operator]
    return refused.value.failure


def published(bench: RealBench, page: Document) -> str:
    return bench.cms.publish(page, replacing=bench.cms.create_draft(page)).remote_id


# --- who we are ----------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["pipeline", "nobody"])
def test_wrong_credentials_never_read_as_absent(
    user: str, bench: RealBench, connected: Connect
) -> None:
    page = document(bench)
    known = published(bench, page)
    stranger = connected(user=user, password="wrong wrong")
    for remote_id in (None, known, "999999"):
        found = stranger.look_up(page.marker.page_id, page.path, remote_id)
        assert found.verdict is Verdict.UNKNOWN
        assert found.failure is not None
        assert found.failure.failure_class is FailureClass.AUTH
        assert "wrong wrong" not in found.failure.message
    assert refusal(lambda: stranger.create_draft(page)).failure_class is FailureClass.AUTH
    assert refusal(lambda: stranger.inventory(None)).failure_class is FailureClass.AUTH
    assert refusal(lambda: stranger.recent_changes(None)).failure_class is FailureClass.AUTH
    (problem,) = stranger.check().problems
    assert "application password" in problem


def test_an_account_without_rights_is_told_so(bench: RealBench, connected: Connect) -> None:
    author = connected(user="author")
    page = document(bench)
    found = author.look_up(page.marker.page_id, page.path, None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.AUTH
    assert refusal(lambda: author.create_draft(page)).failure_class is FailureClass.AUTH
    check = author.check()
    assert "author (author)" in check.identity
    assert "lacks edit_pages" in check.problems[0]


# --- what was stored although the answer says nothing --------------------------------------------


@pytest.mark.parametrize("fault", ["fatal", "exit", "noise", "login"])
def test_a_write_whose_answer_is_unreadable_is_uncertain_and_found_afterwards(
    fault: str, bench: RealBench
) -> None:
    page = document(bench)
    bench.server.set_faults({"austria": fault})
    failure = refusal(lambda: bench.cms.create_draft(page))
    assert failure.failure_class is FailureClass.UNCERTAIN
    found = look(bench, page).page
    assert found is not None
    assert (found.status, found.marker) == (RemoteStatus.HIDDEN, page.marker)
    failure = refusal(lambda: bench.cms.publish(page, replacing=found))
    assert failure.failure_class is FailureClass.UNCERTAIN
    found = look(bench, page).page
    assert found is not None
    assert found.status is RemoteStatus.PUBLISHED


def test_a_write_that_takes_effect_after_its_deadline_is_uncertain(
    bench: RealBench, connected: Connect
) -> None:
    page, hasty = document(bench), connected(deadline_s=1.0)
    with bench.server.locked():
        failure = refusal(lambda: hasty.create_draft(page))
        assert failure.failure_class is FailureClass.UNCERTAIN
        assert "deadline" in failure.message
        assert look(bench, page).verdict is Verdict.ABSENT, "not yet"
    for _ in range(200):
        if look(bench, page).verdict is Verdict.PRESENT:
            break
    else:
        pytest.fail("the write never took effect")


# --- what was not stored -------------------------------------------------------------------------


def test_maintenance_is_waited_for_and_nothing_was_stored(bench: RealBench) -> None:
    page = document(bench)
    with bench.server.maintenance():
        failure = refusal(lambda: bench.cms.create_draft(page))
        assert failure.failure_class is FailureClass.THROTTLED
        assert failure.retry_after_s == 600
        assert look(bench, page).verdict is Verdict.UNKNOWN
    assert look(bench, page).verdict is Verdict.ABSENT


def test_without_a_database_nothing_can_be_said(bench: RealBench) -> None:
    page = document(bench)
    with bench.server.without_database():
        found = look(bench, page)
        assert found.verdict is Verdict.UNKNOWN
        assert found.failure is not None
        assert found.failure.failure_class is FailureClass.TRANSIENT
        failure = refusal(lambda: bench.cms.create_draft(page))
        assert failure.failure_class is FailureClass.UNCERTAIN
    assert look(bench, page).verdict is Verdict.ABSENT


def test_a_text_that_the_database_refuses_is_this_pages_own_fault(bench: RealBench) -> None:
    page = document(bench, title="x" * 70_000)
    failure = refusal(lambda: bench.cms.create_draft(page))
    assert (failure.failure_class, failure.code) == (FailureClass.TERMINAL, "db_insert_error")
    assert look(bench, page).verdict is Verdict.ABSENT


def test_a_page_beyond_all_limits_is_not_even_sent(bench: RealBench) -> None:
    page = document(bench, body_html=f"<p>{'x' * 5_000_000}</p>")
    before = len(bench.server.requests())
    failure = refusal(lambda: bench.cms.create_draft(page))
    assert failure.failure_class is FailureClass.REQUEST
    assert len(bench.server.requests()) == before


BEFORE_WORDPRESS = """<?php
if ( str_contains( $_SERVER['REQUEST_URI'], '/wp-json/' ) ) {
    %s
}
"""


@pytest.mark.parametrize(
    ("does", "reading", "writing"),
    [
        (
            "status_header(429); header('Retry-After: 7'); exit('slow down');",
            FailureClass.THROTTLED,
            FailureClass.THROTTLED,
        ),
        (
            "status_header(403); exit('<html>blocked</html>');",
            FailureClass.AUTH,
            FailureClass.AUTH,
        ),
        ("exit('<html>log in</html>');", FailureClass.TRANSIENT, FailureClass.UNCERTAIN),
        (
            "status_header(502); exit('<html>bad gateway</html>');",
            FailureClass.TRANSIENT,
            FailureClass.UNCERTAIN,
        ),
        (
            "header('Location: https://elsewhere.example/'); status_header(302); exit;",
            FailureClass.REQUEST,
            FailureClass.REQUEST,
        ),
        ("status_header(413); exit('too large');", FailureClass.REQUEST, FailureClass.REQUEST),
        ('echo "Notice: hello\\n";', FailureClass.TRANSIENT, FailureClass.UNCERTAIN),
    ],
)
def test_whatever_stands_before_wordpress_never_reads_as_absent(
    does: str, reading: FailureClass, writing: FailureClass, bench: RealBench
) -> None:
    page = document(bench)
    bench.server.install("world.php", BEFORE_WORDPRESS % does)
    found = look(bench, page)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is reading
    assert refusal(lambda: bench.cms.create_draft(page)).failure_class is writing
    assert bench.cms.check().problems


# --- what was stored otherwise than asked --------------------------------------------------------


def test_a_taken_address_shows_before_anything_is_public(bench: RealBench) -> None:
    page = document(bench)
    bench.occupy(page.path)
    draft = bench.cms.create_draft(page)
    assert draft.path == "/austria-2/"
    bench.cms.remove(draft)
    found = look(bench, page).page
    assert found is not None
    assert found.marker is None, "the unfit draft is gone for good, the stranger's page is not"


def test_an_address_taken_in_between_leaves_no_public_page_elsewhere(bench: RealBench) -> None:
    page = document(bench)
    draft = bench.cms.create_draft(page)
    # Another plugin than REST gave the stranger's page the same slug: WordPress allows it.
    bench.server.as_person("POST", "pages", {"status": "publish", "title": "x", "slug": "other"})
    bench.server.sql("UPDATE wp_posts SET post_name = 'austria' WHERE post_name = 'other'")
    failure = refusal(lambda: bench.cms.publish(page, replacing=draft))
    assert failure.failure_class is FailureClass.CONFLICT
    assert "/austria-2/" in failure.message
    assert bench.visible("/austria-2/") is None


def test_a_text_that_wordpress_altered_is_not_intact(
    wordpress: WordPressServer, connected: Connect
) -> None:
    author = WordPressBench(
        server=wordpress, cms=connected(user="author", content_type="posts"), kind="posts"
    )
    page = document(author, body_html='<p onclick="x()">Nine million.</p><form>a</form>')
    draft = author.cms.create_draft(page)
    assert draft.marker == page.marker
    assert not draft.intact


def test_a_page_that_a_person_scheduled_is_not_taken_for_published(bench: RealBench) -> None:
    page = document(bench)
    draft = bench.cms.create_draft(page)
    ahead = (clock() + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S")
    bench.server.as_person("POST", f"pages/{draft.remote_id}", {"date_gmt": ahead})
    failure = refusal(lambda: bench.cms.publish(page, replacing=draft))
    assert failure.failure_class is FailureClass.TERMINAL
    assert "scheduled" in failure.message
    ((status,),) = bench.server.sql(
        f"SELECT post_status FROM wp_posts WHERE ID = {draft.remote_id}"
    )
    assert status == "draft", "nothing goes public a month later by itself"


# --- what people should know ---------------------------------------------------------------------


def test_a_check_tells_account_version_and_what_is_not_there(bench: RealBench) -> None:
    check = bench.cms.check()
    assert check.identity == f"pipeline (editor) on WordPress {bench.server.version}"
    assert check.problems == ()
    assert any("companion plugin is not installed" in note for note in check.notes)


def test_a_check_finds_the_plugin(guarded_bench: RealBench) -> None:
    notes = guarded_bench.cms.check().notes
    assert any("companion plugin is installed" in note for note in notes)


@pytest.mark.parametrize(("minutes", "words"), [(7, "s behind"), (-7, "s ahead of")])
def test_a_check_notices_a_clock_that_is_off(
    minutes: int, words: str, bench: RealBench, connected: Connect
) -> None:
    def off() -> datetime:
        return clock() + timedelta(minutes=minutes)

    check = connected(clock=off).check()
    assert check.problems == ()
    assert any(words in note for note in check.notes)


def test_a_check_notices_another_address(bench: RealBench, connected: Connect) -> None:
    check = connected(base_url="https://www.example.com").check()
    assert any("https://www.example.com" in note for note in check.notes)


def test_plain_permalinks_are_a_problem(bench: RealBench) -> None:
    published(bench, document(bench))
    with bench.server.option("permalink_structure", ""):
        problems = bench.cms.check().problems
    assert any("ermalink" in problem for problem in problems)


def test_a_check_never_raises_where_nothing_answers(bench: RealBench, connected: Connect) -> None:
    check = connected(url="http://127.0.0.1:9").check()
    assert check.identity == ""
    (problem,) = check.problems
    assert "could not be reached" in problem


def test_json_ld_needs_the_right_to_unfiltered_html(bench: RealBench, connected: Connect) -> None:
    editor = connected(json_ld=True)
    page = document(bench)
    draft = editor.create_draft(page)
    assert draft.intact
    editor.publish(page, replacing=draft)
    assert "application/ld+json" in (bench.visible(page.path) or "")
    assert editor.check().problems == ()
    problems = connected(user="author", content_type="posts", json_ld=True).check().problems
    assert any("json_ld" in problem for problem in problems)
