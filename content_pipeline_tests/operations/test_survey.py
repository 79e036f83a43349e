"""Changes on the site are found, told apart, and handled as the site's policy says."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from content_pipeline.core.cms import PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import Reaction, SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import overview, site_changes
from content_pipeline.ledger.schema import SiteEventKind, pages
from content_pipeline.operations.survey import SurveyReport, survey
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, failed, look_raises, remote_page
from content_pipeline_tests.operations.small_site import page_text, sitemap_paths

S = PageJobState
ENOUGH = 10
"""Slices that go through every small site."""


def live(make_bench: MakeBench, towns: int = 1, **changes: object) -> tuple[Bench, ScriptedCMS]:
    """A site whose pages are all published, in a CMS that a person can work on."""
    cms = ScriptedCMS()
    bench = make_bench(towns, cms=cms, **changes)
    bench.submit_and_run()
    assert set(bench.states().values()) == {"published"}
    cms.writes.clear()
    return bench, cms


def look(bench: Bench, slices: int = ENOUGH) -> SurveyReport:
    return survey(bench.worker(), slices=slices)


def waiting(bench: Bench) -> dict[str, SiteChange]:
    with bench.ledger.begin() as connection:
        return {page.path: page.change for page in site_changes.waiting(connection, bench.name)}


def events(bench: Bench) -> list[SiteEventKind]:
    page_id = bench.report().page_id
    assert page_id is not None
    with bench.ledger.begin() as connection:
        return [kind for _, kind, _, _ in site_changes.history(connection, page_id)]


PATH = "/aarau-0/"


def edited(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = remote_page(PATH, cms.pages[PATH].marker, edits=1)


def trashed(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = _as(cms, status=RemoteStatus.TRASHED)


def hidden(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = _as(cms, status=RemoteStatus.HIDDEN)


def renamed(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = _as(cms, path="/aarau/")


def moved(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = _as(cms, path="/towns/aarau-0/")


def deleted(cms: ScriptedCMS) -> None:
    del cms.pages[PATH]


def stripped(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = _as(cms, marker=None)


def _as(cms: ScriptedCMS, **changes: object) -> RemotePage:
    page = cms.pages[PATH]
    return replace(page, version=f"{page.version}, touched", **changes)  # type: ignore[arg-type]


Touch = Callable[[ScriptedCMS], None]

TOUCHES = [
    (edited, SiteChange.EDITED),
    (trashed, SiteChange.TRASHED),
    (hidden, SiteChange.UNPUBLISHED),
    (renamed, SiteChange.RENAMED),
    (moved, SiteChange.MOVED),
    (deleted, SiteChange.MISSING),
    (stripped, SiteChange.FOREIGN),
]


def test_an_untouched_site_is_listed_and_nothing_is_looked_at(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 5)
    looks = cms.looks
    report = look(bench)
    assert (report.listed, report.looked_at, report.found) == (5, 0, {})
    assert report.is_complete
    assert cms.looks == looks
    assert (waiting(bench), cms.writes, events(bench)) == ({}, [], [])


@pytest.mark.parametrize(("touch", "change"), TOUCHES)
def test_every_kind_of_change_is_found_and_told_apart(
    touch: Touch, change: SiteChange, make_bench: MakeBench
) -> None:
    bench, cms = live(make_bench, site_changes={"missing": "ask"})
    touch(cms)
    assert look(bench).found == {change: 1}
    assert waiting(bench) == {PATH: change}
    assert events(bench) == [SiteEventKind.CHANGE_FOUND]
    assert bench.report().state is S.PUBLISHED
    assert cms.writes == []


@pytest.mark.parametrize(("touch", "change"), TOUCHES[:-1])
def test_what_the_policy_wants_restored_is_put_back_by_the_lane(
    touch: Touch, change: SiteChange, make_bench: MakeBench
) -> None:
    bench, cms = live(make_bench, site_changes={change.value: "restore"})
    touch(cms)
    report = look(bench)
    assert (report.restored, bench.report().state) == (1, S.READY_TO_PUBLISH)
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert cms.writes == [(PATH, 1)]
    assert waiting(bench) == {}
    assert [kind for kind, *_ in bench.attempts()].count("generate") == 1
    assert look(bench).found == {}


@pytest.mark.parametrize(("touch", "change"), TOUCHES[:-1])
def test_what_the_policy_leaves_is_noted_once_and_nobody_is_asked(
    touch: Touch, change: SiteChange, make_bench: MakeBench
) -> None:
    bench, cms = live(make_bench, site_changes={change.value: Reaction.LEAVE})
    touch(cms)
    for _ in range(2):
        look(bench)
    assert waiting(bench) == {}
    assert events(bench) == [SiteEventKind.THEIRS_KEPT]
    assert cms.writes == []
    assert bench.report().state is S.PUBLISHED


@pytest.mark.parametrize(("touch", "change"), TOUCHES)
def test_a_known_change_is_not_reported_again(
    touch: Touch, change: SiteChange, make_bench: MakeBench
) -> None:
    bench, cms = live(make_bench, site_changes={"missing": "ask"})
    touch(cms)
    look(bench)
    looks = cms.looks
    assert look(bench).found == {}
    assert waiting(bench) == {PATH: change}
    assert events(bench) == [SiteEventKind.CHANGE_FOUND]
    assert cms.looks == looks, "a change that is on record costs no further look"


def test_a_change_that_is_taken_back_is_forgotten(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    before = cms.pages[PATH]
    trashed(cms)
    look(bench)
    cms.pages[PATH] = before
    look(bench)
    assert waiting(bench) == {}
    assert events(bench) == [SiteEventKind.CHANGE_FOUND, SiteEventKind.CHANGE_GONE]


def test_a_second_change_replaces_the_first_on_record(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    edited(cms)
    look(bench)
    trashed(cms)
    assert look(bench).found == {SiteChange.TRASHED: 1}
    assert waiting(bench) == {PATH: SiteChange.TRASHED}


def test_a_new_version_of_an_unchanged_page_is_looked_at_once(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    cms.pages[PATH] = replace(cms.pages[PATH], version="saved again without a change")
    assert look(bench).looked_at == 1
    assert look(bench).looked_at == 0
    assert (waiting(bench), events(bench)) == ({}, [])


@pytest.mark.parametrize(("touch", "change"), [TOUCHES[1], TOUCHES[2], TOUCHES[5]])
def test_a_page_that_is_off_the_site_leaves_the_sitemap(
    touch: Touch, change: SiteChange, make_bench: MakeBench
) -> None:
    bench, cms = live(make_bench, 2, site_changes={"missing": "ask"})
    bench.announce()
    assert sitemap_paths(bench.folder) == [PATH, "/baden-1/"]
    touch(cms)
    assert look(bench).found == {change: 1}
    bench.announce()
    assert sitemap_paths(bench.folder) == ["/baden-1/"]
    with bench.ledger.begin() as connection:
        assert overview.site_status(connection, bench.name).live_pages == 1


def test_a_restored_page_is_announced_again(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, site_changes={"trashed": "restore"})
    bench.announce()
    trashed(cms)
    look(bench)
    bench.run()
    bench.announce()
    assert sitemap_paths(bench.folder) == [PATH]


def test_recent_changes_are_seen_without_a_sweep(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 3)
    look(bench, slices=0)
    edited(cms)
    cms.changed.append(cms.pages[PATH])
    report = look(bench, slices=0)
    assert (report.listed, report.found) == (0, {SiteChange.EDITED: 1})
    assert not report.is_complete


def test_a_strangers_changed_page_is_none_of_our_business(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    look(bench, slices=0)
    stranger = replace(remote_page("/imprint/", None), remote_id="77")
    cms.pages["/imprint/"] = stranger
    cms.changed.append(stranger)
    report = look(bench)
    assert (report.found, report.looked_at) == ({}, 0)
    assert waiting(bench) == {}


def test_a_sweep_goes_on_where_the_last_survey_stopped(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 5)
    cms.pages["/elgg-4/"] = replace(cms.pages["/elgg-4/"], fingerprint="edited", version="new")
    listed: list[int] = []
    for _ in range(3):
        report = look(bench, slices=1)
        listed.append(report.listed)
    assert listed == [2, 2, 1]
    assert report.is_complete
    assert waiting(bench) == {"/elgg-4/": SiteChange.EDITED}


def test_a_page_is_missing_only_when_a_whole_sweep_did_not_list_it(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 5, site_changes={"missing": "ask"})
    deleted(cms)
    assert look(bench, slices=1).found == {}
    assert look(bench, slices=1).found == {SiteChange.MISSING: 1}


def test_a_page_published_while_a_sweep_is_under_way_is_not_missing(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 3)
    look(bench, slices=1)
    bench.rows[0]["population"] = "99,999"  # published anew behind the sweep's back
    bench.submit_and_run()
    looks = cms.looks
    report = look(bench)
    assert (report.found, report.is_complete) == ({}, True)
    assert cms.looks == looks


def test_a_failing_cms_ends_the_survey_and_the_next_goes_on(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, 3)
    edited(cms)
    cms.on_look.append(look_raises(failed(FailureClass.TRANSIENT, "502 from the CMS")))
    report = look(bench)
    assert report.failure is not None
    assert report.failure.failure_class is FailureClass.TRANSIENT
    assert (report.found, report.is_complete) == ({}, False)
    assert look(bench).found == {SiteChange.EDITED: 1}


def test_a_survey_that_is_stopped_keeps_what_it_saw_and_the_next_does_the_rest(
    make_bench: MakeBench,
) -> None:
    bench, cms = live(make_bench, 2)
    stop = threading.Event()
    for path, page in list(cms.pages.items()):
        cms.pages[path] = replace(page, fingerprint="edited", version="new")

    def last_look(at: ScriptedCMS) -> PageLookUp:
        stop.set()
        return PageLookUp(verdict=Verdict.PRESENT, page=at.pages[PATH])

    cms.on_look.append(last_look)
    report = survey(bench.worker(), slices=None, stop=stop)
    assert (report.is_stopped, report.is_complete) == (True, False)
    assert report.found == {SiteChange.EDITED: 1}
    report = survey(bench.worker(), slices=None)
    assert (report.is_stopped, report.is_complete) == (False, True)
    assert report.found == {SiteChange.EDITED: 1}
    assert set(waiting(bench)) == {PATH, "/baden-1/"}


def test_a_stopped_survey_asks_the_cms_nothing(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    stop = threading.Event()
    stop.set()
    looks = cms.looks
    report = survey(bench.worker(), stop=stop)
    assert (report.is_stopped, report.listed, cms.looks) == (True, 0, looks)


def test_a_look_that_says_nothing_changes_nothing(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, site_changes={"missing": "restore"})
    deleted(cms)
    cms.on_look.append(lambda _cms: PageLookUp(verdict=Verdict.UNKNOWN))
    assert look(bench).found == {}
    assert bench.report().state is S.PUBLISHED


def test_a_cms_that_refuses_our_credentials_is_left_alone(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    edited(cms)
    cms.on_look.append(look_raises(failed(FailureClass.AUTH, "401 from the CMS")))
    look(bench)
    looks = cms.looks
    report = look(bench)
    assert report.failure is not None
    assert report.failure.failure_class is FailureClass.AUTH
    assert cms.looks == looks


def test_a_page_whose_job_is_on_its_way_is_left_to_it(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench, site_changes={"edited": "restore"})
    edited(cms)
    look(bench)
    assert bench.report().state is S.READY_TO_PUBLISH
    cms.pages[PATH] = remote_page(PATH, cms.pages[PATH].marker, edits=2)
    assert look(bench).found == {}


def test_a_twin_that_a_late_write_left_is_taken_away_and_logged(make_bench: MakeBench) -> None:
    bench, cms = live(make_bench)
    look(bench, slices=0)
    page = cms.pages[PATH]
    twin = replace(page, remote_id="late", path=f"{PATH[:-1]}-2/", status=RemoteStatus.HIDDEN)
    cms.pages[twin.path] = twin
    cms.changed.append(twin)
    cms.on_look.append(lambda _cms: PageLookUp(verdict=Verdict.PRESENT, page=page, twins=(twin,)))
    report = look(bench, slices=0)
    assert (report.twins_removed, cms.removed) == (1, ["late"])
    assert events(bench) == [SiteEventKind.TWIN_REMOVED]
    assert cms.pages[PATH] == page


def test_a_file_that_a_person_edited_is_found_in_a_real_folder(make_bench: MakeBench) -> None:
    bench = make_bench(3)
    bench.submit_and_run()
    assert look(bench).found == {}
    file = bench.folder / "aarau-0" / "index.html"
    file.write_text(file.read_text().replace("<h1>", "<h1>Lovely "))
    (bench.folder / "baden-1" / "index.html").unlink()
    assert look(bench).found == {SiteChange.EDITED: 1, SiteChange.MISSING: 1}
    bench.run()
    assert waiting(bench) == {PATH: SiteChange.EDITED}
    assert "Lovely" in (page_text(bench.folder, bench.rows[0]) or "")
    assert page_text(bench.folder, bench.rows[1]) is not None
    (row,) = rows_where(bench.ledger, pages, site=bench.name, path="/baden-1/")
    assert row["site_change"] is None


def test_a_cms_that_lists_nothing_is_asked_for_every_page_in_turn(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("content_pipeline.operations.survey.MISSING_AT_ONCE", 2)
    bench, cms = live(make_bench, towns=5)
    cms.lists = False
    last = max(cms.pages)
    cms.pages[last] = remote_page(last, cms.pages[last].marker, edits=1)
    reports = [look(bench) for _ in range(3)]
    assert [report.looked_at for report in reports] == [2, 2, 2]
    assert waiting(bench) == {last: SiteChange.EDITED}
