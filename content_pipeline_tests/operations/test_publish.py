"""Publishing: look first, write at most once, prove by reading back; never over somebody else's."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.page_marker import format_marker
from content_pipeline.core.cms import Document, Marker, RemotePage
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.identity import page_id
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.schema import effects, pages
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    PLAIN,
    STRICT,
    ScriptedCMS,
    ScriptedModel,
    failed,
    look_raises,
    puts_it_elsewhere,
    raises,
    remote_page,
    says_absent,
    says_unknown,
)
from content_pipeline_tests.operations.small_site import page_text, path_of

S = PageJobState
NO_WAIT = {"attempts": 3, "first_wait_s": 0, "max_wait_s": 0}


def ready(make_bench: MakeBench, **more: object) -> Bench:
    """A bench whose one page is written and fit, and not published yet."""
    bench = make_bench(**{"model": ScriptedModel(), **more})
    bench.submit()
    bench.run(Stage.DRAFT, Stage.PAGE)
    assert bench.states() == {"t0": "ready_to_publish"}
    return bench


def file_of(bench: Bench) -> Path:
    return bench.folder / path_of(bench.rows[0]).strip("/") / "index.html"


def effect_of(bench: Bench) -> tuple[str, str | None]:
    """State and outcome of the page's newest publish."""
    rows = rows_where(bench.ledger, effects, page_id=bench.report().page_id)
    newest = max(rows, key=lambda row: row["revision"])
    return newest["state"], newest["outcome"]


def ours(bench: Bench, revision: int, content_hash: str = "other") -> Marker:
    page = page_id(bench.name, path_of(bench.rows[0]))
    return Marker(page_id=page, revision=revision, content_hash=content_hash)


def test_a_published_page_is_proved_by_what_the_cms_shows(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    bench.run()
    assert effect_of(bench) == ("done", "created")
    text = page_text(bench.folder, bench.rows[0])
    assert text is not None
    assert "10,000" in text
    report = bench.report()
    assert (report.published_revision, report.remote_url) == (
        1,
        "https://towns.example/aarau-0/",
    )
    (page,) = rows_where(bench.ledger, pages, site=bench.name)
    assert page["remote_fingerprint"]
    assert page["published_title"] == report.published_title == "A town"


def test_a_changed_row_replaces_the_page(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    bench.run()
    bench.rows[0]["river"] = "Rhine"
    bench.submit_and_run()
    assert bench.writes() == [("/aarau-0/", 1), ("/aarau-0/", 2)]
    assert effect_of(bench) == ("done", "replaced")
    assert "Rhine" in (page_text(bench.folder, bench.rows[0]) or "")


def test_input_that_returns_is_published_again_from_its_draft(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    bench.run()
    river = bench.rows[0]["river"]
    for value in ("Rhine", river):
        bench.rows[0]["river"] = value
        bench.submit_and_run()
    assert bench.writes() == [("/aarau-0/", 1), ("/aarau-0/", 2), ("/aarau-0/", 3)]
    text = page_text(bench.folder, bench.rows[0]) or ""
    assert "Rhine" not in text
    assert river in text
    model = bench.model
    assert isinstance(model, ScriptedModel)
    assert len(model.sent) == 2
    assert bench.states() == {"t0": "published"}


# --- what is not ours ---------------------------------------------------------------------------


def test_a_file_of_somebody_else_is_left_alone(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    file_of(bench).parent.mkdir(parents=True)
    file_of(bench).write_text("<html>The town's own page</html>")
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.CONFLICT)
    assert file_of(bench).read_text() == "<html>The town's own page</html>"
    assert (bench.writes(), effect_of(bench)) == ([], ("failed", None))


def test_a_persons_edit_is_never_overwritten(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    bench.run()
    edited = file_of(bench).read_text().replace("</body>", "<p>By hand</p></body>")
    file_of(bench).write_text(edited)
    bench.rows[0]["river"] = "Rhine"
    bench.submit_and_run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.CONFLICT)
    assert "edited on the site" in (report.failure_message or "")
    assert file_of(bench).read_text() == edited
    assert bench.writes() == [("/aarau-0/", 1)]


def test_an_edit_between_the_look_and_the_write_is_found_by_the_swap(
    make_bench: MakeBench,
) -> None:
    cms = ScriptedCMS(capabilities=STRICT)
    bench = ready(make_bench, cms=cms)
    path = path_of(bench.rows[0])

    def edited_meanwhile(cms: ScriptedCMS, *_: object) -> object:
        cms.pages[path] = remote_page(path, None)
        raise failed(FailureClass.CONFLICT, "it changed meanwhile")

    cms.on_write.append(edited_meanwhile)  # type: ignore[arg-type]
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.CONFLICT)
    assert (cms.writes, cms.looks) == ([], 2)


def test_a_page_that_is_already_there_is_confirmed_without_a_write(
    make_bench: MakeBench,
) -> None:
    cms = ScriptedCMS(capabilities=STRICT)
    bench = ready(make_bench, cms=cms)
    document = bench.document()
    cms.pages[document.path] = remote_page(document.path, document.marker)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert effect_of(bench) == ("done", "confirmed_existing")
    assert cms.writes == []


def test_a_newer_revision_on_the_cms_stands(make_bench: MakeBench) -> None:
    bench = ready(make_bench)
    file_of(bench).parent.mkdir(parents=True)
    newer = format_marker(ours(bench, revision=7))
    text = f'<html><head><meta name="content-pipeline" content="{newer}"></head></html>'
    file_of(bench).write_text(text)
    bench.run()
    assert bench.states() == {"t0": "superseded"}
    assert file_of(bench).read_text() == text
    assert bench.writes() == []


# --- trouble before the write -------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_makes_the_page_wait(make_bench: MakeBench) -> None:
    bench = ready(make_bench, retries={"storage": {"attempts": 5, "first_wait_s": 60}})
    bench.folder.mkdir(exist_ok=True)
    in_the_way = bench.folder / "aarau-0"
    in_the_way.write_text("a file where a folder must be")
    assert bench.step(random=lambda: 0.5).state is S.FAILED_RETRYABLE
    assert (bench.writes(), bench.report().failure_class) == ([], FailureClass.STORAGE)
    in_the_way.unlink()
    assert bench.step().state is S.PUBLISHED
    assert bench.writes() == [("/aarau-0/", 1)]


def test_after_a_full_disk_the_page_goes_on_from_its_draft(make_bench: MakeBench) -> None:
    bench = ready(make_bench, retries={"storage": {"attempts": 5, "first_wait_s": 60}})
    cms = ScriptedCMS(on_write=deque([raises(failed(FailureClass.STORAGE, "the disk is full"))]))
    bench.cms = cms
    assert bench.step(random=lambda: 0.5).state is S.FAILED_RETRYABLE
    assert effect_of(bench) == ("pending", None)
    assert bench.report().failure_class is FailureClass.STORAGE
    assert bench.step().state is S.PUBLISHED
    assert bench.attempts()[1:] == [
        ("publish", "failed", "storage"),
        ("publish", "succeeded", None),
    ]
    assert cms.writes == [("/aarau-0/", 1)]
    model = bench.model
    assert isinstance(model, ScriptedModel)
    assert len(model.sent) == 1


@pytest.mark.parametrize(
    ("failure_class", "state"),
    [
        (FailureClass.AUTH, S.FAILED_RETRYABLE),
        (FailureClass.NOT_SENT, S.FAILED_RETRYABLE),
        (FailureClass.THROTTLED, S.FAILED_RETRYABLE),
        (FailureClass.TRANSIENT, S.FAILED_RETRYABLE),
        (FailureClass.REQUEST, S.FAILED_TERMINAL),
        (FailureClass.INVALID_INPUT, S.FAILED_TERMINAL),
    ],
)
def test_a_refused_write_leads_where_its_class_leads(
    failure_class: FailureClass, state: PageJobState, make_bench: MakeBench
) -> None:
    cms = ScriptedCMS(on_write=deque([raises(failed(failure_class))]))
    bench = ready(
        make_bench,
        cms=cms,
        retries={failure_class: {"attempts": 5, "first_wait_s": 60}}
        if state is S.FAILED_RETRYABLE
        else {},
    )
    assert bench.step(random=lambda: 0.5).state is state
    assert bench.report().failure_class is failure_class
    assert bench.attempts()[-1] == ("publish", "failed", failure_class)
    assert cms.writes == []


@pytest.mark.parametrize("look", [says_unknown, look_raises(failed(FailureClass.TRANSIENT))])
def test_nothing_is_written_on_a_look_that_says_nothing(
    look: object, make_bench: MakeBench
) -> None:
    cms = ScriptedCMS(on_look=deque([look]))  # type: ignore[list-item]
    bench = ready(make_bench, cms=cms)
    assert bench.step(random=lambda: 0.5).state is S.FAILED_RETRYABLE
    assert (cms.writes, bench.report().failure_class) == ([], FailureClass.TRANSIENT)
    assert bench.step().state is S.PUBLISHED


# --- what the CMS says afterwards ---------------------------------------------------------------


def test_a_page_that_the_cms_puts_elsewhere_is_not_taken_for_published(
    make_bench: MakeBench,
) -> None:
    cms = ScriptedCMS(on_write=deque([puts_it_elsewhere]))
    bench = ready(make_bench, cms=cms)
    assert bench.step().state is S.FAILED_TERMINAL
    assert bench.attempts()[-1] == ("publish", "failed", "conflict")
    assert "is taken: the CMS gave our page" in (bench.report().failure_message or "")
    assert bench.report().published_revision is None


@pytest.mark.parametrize(("accepted", "state"), [(False, S.FAILED_TERMINAL), (True, S.PUBLISHED)])
def test_a_text_that_the_cms_altered_is_published_only_where_the_site_accepts_it(
    accepted: bool, state: PageJobState, make_bench: MakeBench
) -> None:
    def alters(cms: ScriptedCMS, document: Document) -> RemotePage:
        altered = replace(cms.write(document), intact=False)
        cms.pages[document.path] = altered
        return altered

    cms = ScriptedCMS(on_write=deque([alters]))
    bench = ready(make_bench, cms=cms, site_changes={"accept_altered_text": accepted})
    assert bench.step().state is state
    told = bench.report().failure_message or ""
    assert ("altered what it was sent" in told) is not accepted


def test_a_read_back_that_fails_leaves_the_publish_uncertain(make_bench: MakeBench) -> None:
    cms = ScriptedCMS()
    bench = ready(make_bench, cms=cms)
    cms.on_look = deque([says_absent, says_unknown])
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    assert cms.writes == [("/aarau-0/", 1)]
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


def test_where_the_cms_has_drafts_the_page_is_invisible_first(make_bench: MakeBench) -> None:
    seen: list[str] = []
    cms = ScriptedCMS(capabilities=replace(PLAIN, drafts=True))
    bench = ready(make_bench, cms=cms)

    def look(checkpoint: str) -> None:
        if checkpoint == "draft_created":
            seen.extend(page.status for page in cms.pages.values())

    bench.on_checkpoint = look
    assert bench.step().state is S.PUBLISHED
    assert seen == ["hidden"]
    assert cms.writes == [("/aarau-0/", 1)]
