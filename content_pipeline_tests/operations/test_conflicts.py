"""A person's edit is shown beside our text, and the person decides which of them stands."""

from pathlib import Path

import pytest

from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import site_changes
from content_pipeline.ledger.schema import SiteEventKind
from content_pipeline.operations.conflicts import difference, keep_theirs, publish_ours
from content_pipeline.operations.survey import survey
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import page_text

S = PageJobState


def file_of(bench: Bench) -> Path:
    return bench.folder / "aarau-0" / "index.html"


def edit(bench: Bench, word: str = "Lovely") -> None:
    file = file_of(bench)
    file.write_text(file.read_text().replace("<h1>", f"<h1>{word} "))


def live(make_bench: MakeBench) -> Bench:
    bench = make_bench(1)
    bench.submit_and_run()
    assert bench.report().state is S.PUBLISHED
    return bench


def in_conflict(make_bench: MakeBench) -> Bench:
    """A person edited the page, and a newer revision of ours met that edit."""
    bench = live(make_bench)
    edit(bench)
    bench.rows[0]["population"] = "99,999"
    bench.submit_and_run()
    assert bench.report().state is S.FAILED_TERMINAL
    return bench


def waiting(bench: Bench) -> dict[str, SiteChange]:
    with bench.ledger.begin() as connection:
        return {page.path: page.change for page in site_changes.waiting(connection, bench.name)}


def text(bench: Bench) -> str:
    return page_text(bench.folder, bench.rows[0]) or ""


def test_a_conflict_met_while_publishing_waits_for_a_person(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    assert waiting(bench) == {"/aarau-0/": SiteChange.EDITED}
    assert "Lovely" in text(bench)


def test_the_difference_shows_both_texts_line_by_line(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    shown = difference(bench.worker(), "t0")
    assert (shown.path, shown.change) == ("/aarau-0/", SiteChange.EDITED)
    assert "edited on the site" in shown.reason
    assert any(line.startswith("+title: Lovely") for line in shown.lines)
    assert any(line.startswith("-title: ") for line in shown.lines)
    assert any("99,999" in line and line.startswith("-") for line in shown.lines)


def test_an_untouched_page_shows_no_difference(make_bench: MakeBench) -> None:
    shown = difference(live(make_bench).worker(), "t0")
    assert (shown.change, shown.reason, shown.lines) == (None, "", ())


def test_a_page_that_is_gone_shows_all_of_ours(make_bench: MakeBench) -> None:
    bench = live(make_bench)
    file_of(bench).unlink()
    shown = difference(bench.worker(), "t0")
    assert shown.change is SiteChange.MISSING
    assert all(line.startswith("-") for line in shown.lines[3:])


def test_theirs_is_kept_and_ours_set_down(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    told = keep_theirs(bench.worker(), "t0", cause="the editor knows better", by="anna")
    assert "stays as it is" in told
    assert bench.report().state is S.SUPERSEDED
    assert waiting(bench) == {}
    bench.run()
    survey(bench.worker())
    assert waiting(bench) == {}
    assert "Lovely" in text(bench)


def test_what_was_kept_is_asked_about_again_once_it_changes(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    bench.rows[0]["population"] = "88,888"
    keep_theirs(bench.worker(), "t0", cause="fine", by="anna")
    edit(bench, "Lovelier")
    bench.submit_and_run()
    assert bench.report().state is S.FAILED_TERMINAL
    assert waiting(bench) == {"/aarau-0/": SiteChange.EDITED}


def test_ours_is_published_over_what_the_person_saw(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    told = publish_ours(bench.worker(), "t0", cause="the edit was wrong", by="anna")
    assert "the next run publishes ours" in told
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert "Lovely" not in text(bench)
    assert "99,999" in text(bench)
    assert waiting(bench) == {}


def test_an_edit_after_the_decision_is_safe(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    publish_ours(bench.worker(), "t0", cause="the edit was wrong", by="anna")
    edit(bench, "Once more")
    bench.run()
    assert bench.report().state is S.FAILED_TERMINAL
    assert "Once more" in text(bench)


def test_a_found_change_is_decided_without_a_newer_revision_too(make_bench: MakeBench) -> None:
    bench = live(make_bench)
    edit(bench)
    survey(bench.worker())
    assert waiting(bench) == {"/aarau-0/": SiteChange.EDITED}
    publish_ours(bench.worker(), "t0", cause="the edit was wrong", by="anna")
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert "Lovely" not in text(bench)


def test_a_strangers_page_gives_way_only_on_a_persons_word(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    file_of(bench).parent.mkdir(parents=True)
    file_of(bench).write_text("<!doctype html><p>Mine.")
    bench.submit_and_run()
    assert bench.report().state is S.FAILED_TERMINAL
    assert waiting(bench) == {"/aarau-0/": SiteChange.FOREIGN}
    publish_ours(bench.worker(), "t0", cause="that was a leftover", by="anna")
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert "Mine." not in text(bench)


def test_decisions_are_logged_with_who_and_why(make_bench: MakeBench) -> None:
    bench = in_conflict(make_bench)
    publish_ours(bench.worker(), "t0", cause="the edit was wrong", by="anna")
    page_id = bench.report().page_id
    assert page_id is not None
    with bench.ledger.begin() as connection:
        last = site_changes.history(connection, page_id)[-1]
    assert last[1:] == (SiteEventKind.OURS_WANTED, "the edit was wrong", "anna")


@pytest.mark.parametrize("decide", [keep_theirs, publish_ours])
def test_an_unknown_page_is_said_so(decide: object, make_bench: MakeBench) -> None:
    bench = live(make_bench)
    with pytest.raises(UnknownPage):
        decide(bench.worker(), "nowhere", cause="x", by="anna")  # type: ignore[operator]
