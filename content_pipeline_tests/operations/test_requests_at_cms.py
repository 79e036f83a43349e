"""How often a CMS is asked: counted by the CMS, page by page of what publishing and surveys do."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.core.cms import CMS, Document, PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import reports, resting, site_changes
from content_pipeline.operations.survey import SurveyReport, survey
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.people import Act
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline_tests.conftest import INSTANT_CMS, MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import PLAIN, ScriptedCMS, ScriptedModel, remote_page
from content_pipeline_tests.operations.published_site import (
    held_by_cms,
    prove_all,
    put_into_cms,
    sandbox_rest,
    sandbox_wordpress,
    want,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
TOWNS = 6
SLICES = 3
MANY = 100 * SLICES
HOUR_S = 3600.0


@pytest.fixture
def wordpress(sandbox_cms: CMSClient) -> Iterator[WordPressCMS]:
    with closing(sandbox_wordpress(sandbox_cms.base_url)) as cms:
        yield cms


def drafted(make_bench: MakeBench, cms: CMS, towns: int = 1) -> Bench:
    """A bench whose pages are written and fit, and not published yet."""
    bench = make_bench(towns, cms=cms, model=ScriptedModel(), hooks=())
    bench.submit()
    bench.run(Stage.DRAFT, Stage.PAGE)
    assert set(bench.states().values()) == {"ready_to_publish"}
    return bench


def asked(client: CMSClient) -> dict[str, int]:
    """Requests so far, by operation."""
    by_operation: dict[str, int] = client.truth()["requests_by_operation"]
    return by_operation


def want_back(bench: Bench) -> None:
    with bench.ledger.begin() as connection:
        for page in reports.page_reports(connection, bench.name):
            assert resting.want_back(connection, page.page_job_id, worker="w", cause="looked at")


def change_in(bench: Bench) -> SiteChange | None:
    with bench.ledger.begin() as connection:
        return next((page.change for page in site_changes.waiting(connection, bench.name)), None)


# --- publishing -----------------------------------------------------------------------------------


def test_a_first_publish_takes_four_requests_and_a_page_in_place_one(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    bench = drafted(make_bench, wordpress, TOWNS)
    bench.run()
    assert set(bench.states().values()) == {"published"}
    first = {"list": TOWNS, "create": TOWNS, "update": TOWNS, "read": TOWNS}
    assert asked(sandbox_cms) == first
    want_back(bench)
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert asked(sandbox_cms) == {**first, "read": 2 * TOWNS}


def test_a_new_revision_takes_three_requests(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    bench = drafted(make_bench, wordpress)
    bench.run()
    before = asked(sandbox_cms)
    bench.rows[0]["population"] = "99,999"
    bench.submit_and_run()
    assert bench.report().published_revision == 2
    after = asked(sandbox_cms)
    more = {name: after[name] - before.get(name, 0) for name in after}
    assert more == {"list": 0, "create": 0, "update": 1, "read": 2}


def test_a_strangers_page_at_the_address_is_a_conflict_and_leaves_no_draft_of_ours(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    """The first look does not ask who stands there: the draft that is created tells."""
    bench = drafted(make_bench, wordpress)
    theirs = bench.document()
    stranger = replace(theirs, marker=replace(theirs.marker, page_id="somebody-else"))
    there = wordpress.publish(stranger, replacing=wordpress.create_draft(stranger))
    assert bench.step().state is S.FAILED_TERMINAL
    assert bench.report().failure_class is FailureClass.CONFLICT
    assert change_in(bench) is SiteChange.FOREIGN
    (live,) = sandbox_cms.live()
    assert (live["path"], live["mark"]["key"]) == (there.path, "somebody-else")
    pages = sandbox_cms.truth()["pages"]
    assert pages[theirs.marker.page_id]["drafts"] == []
    assert pages[theirs.marker.page_id]["most_live_at_once"] == 0


@dataclass(slots=True)
class Elsewhere(ScriptedCMS):
    """A CMS that gives every draft another address than was asked for, and shows nobody there."""

    brief_looks: int = 0

    def find_ours(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        assert (bool(page_id), bool(path), remote_id) == (True, True, None)
        self.brief_looks += 1
        return PageLookUp(verdict=Verdict.ABSENT)

    def create_draft(self, document: Document) -> RemotePage:
        page = remote_page(f"{document.path}2/", document.marker, status=RemoteStatus.HIDDEN)
        self.pages[page.path] = page
        return page


def test_an_address_that_is_taken_by_nobody_to_be_seen_is_tried_twice_and_told(
    make_bench: MakeBench,
) -> None:
    cms = Elsewhere(capabilities=replace(PLAIN, drafts=True))
    bench = drafted(make_bench, cms)
    assert bench.step().state is S.FAILED_TERMINAL
    assert bench.report().failure_class is FailureClass.CONFLICT
    assert "is taken on the site" in (bench.report().failure_message or "")
    assert (cms.brief_looks, cms.looks) == (1, 1)
    assert (cms.pages, cms.writes) == ({}, [])
    assert [kind for kind, *_ in bench.attempts()].count("publish") == 1


def test_a_page_that_was_proved_once_is_looked_for_wholly(make_bench: MakeBench) -> None:
    """It may be gone, and then it counts who stands at its address."""
    cms = Elsewhere(capabilities=replace(PLAIN, drafts=False))
    bench = drafted(make_bench, cms)
    bench.run()
    assert (cms.brief_looks, cms.looks) == (1, 1)
    want_back(bench)
    bench.run()
    assert (cms.brief_looks, cms.looks) == (1, 2)


# --- surveys --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """A published site of some slices, and its CMS."""

    bench: Bench
    client: CMSClient
    page_ids: Sequence[str]

    def let_hours_pass(self, hours: int) -> None:
        """On the CMS's clock: what was written before is no recent change any more."""
        offset_s = hours * HOUR_S
        self.client.set_settings(INSTANT_CMS.model_copy(update={"clock_offset_s": offset_s}))

    def by_hand(self, number: int, **act: str) -> None:
        self.client.by_hand(Act.model_validate({**act, "key": self.page_ids[number]}))

    def look(self, slices: int = SLICES) -> tuple[SurveyReport, int]:
        """A survey, and how many requests it took."""
        before = self.client.health()["requests"]
        report = survey(self.bench.worker(), slices=slices)
        assert report.failure is None
        return report, self.client.health()["requests"] - before


@pytest.fixture
def site(make_bench: MakeBench, tmp_path: Path) -> Iterator[Surveyed]:
    bench = make_bench(1, model=ScriptedModel(), hooks=(), site_changes={"missing": "ask"})
    documents = want(bench.worker(), rows_of(MANY))
    folder = tmp_path / "cms"
    folder.mkdir()
    put_into_cms(folder, documents)
    with serving_cms(INSTANT_CMS, folder=folder) as client:
        with closing(sandbox_rest(client.base_url)) as rest:
            prove_all(bench.worker(), documents, held_by_cms(rest))
        with closing(sandbox_wordpress(client.base_url)) as bench.cms:
            page_ids = [document.marker.page_id for document in documents]
            yield Surveyed(bench=bench, client=client, page_ids=page_ids)


def test_a_sweep_takes_a_request_for_each_slice_and_few_for_what_people_changed(
    site: Surveyed,
) -> None:
    report, requests = site.look()
    assert (report.listed, report.found, report.is_complete) == (MANY, {}, True)
    assert requests == 1 + SLICES
    site.let_hours_pass(1)
    site.by_hand(5, act="edit", appended="<p>A person was here.</p>")
    site.by_hand(150, act="rename", slug="renamed-by-hand")
    site.by_hand(290, act="delete")
    report, requests = site.look()
    changes = (SiteChange.EDITED, SiteChange.RENAMED, SiteChange.MISSING)
    assert report.found == dict.fromkeys(changes, 1)
    assert requests == 2 + SLICES + 3, "recent changes; the slices; the page that is gone"
    report, requests = site.look()
    assert (report.found, report.is_complete) == ({}, True)
    assert requests == 1 + SLICES


def test_changes_that_no_listing_of_recent_ones_shows_are_found_by_the_sweep(
    site: Surveyed,
) -> None:
    """As after a restored backup: old times, and other pages than we left."""
    site.look()
    site.let_hours_pass(-2)
    site.by_hand(7, act="unpublish")
    site.by_hand(8, act="trash")
    report, requests = site.look()
    assert report.found == {SiteChange.UNPUBLISHED: 1, SiteChange.TRASHED: 1}
    assert (report.looked_at, requests) == (2, 2 + SLICES + 4), "by id, and by mark for twins"


def test_recent_changes_are_two_requests_and_one_when_there_are_none(site: Surveyed) -> None:
    site.look(slices=0)
    site.let_hours_pass(1)
    site.by_hand(5, act="edit", appended="<p>A person was here.</p>")
    report, requests = site.look(slices=0)
    assert (report.found, requests) == ({SiteChange.EDITED: 1}, 2)
    for _ in range(2):
        report, requests = site.look(slices=0)
        assert (report.found, requests) == ({}, 1)


def test_pages_published_together_are_read_once_and_not_at_every_look(
    make_bench: MakeBench, wordpress: WordPressCMS, sandbox_cms: CMSClient
) -> None:
    bench = drafted(make_bench, wordpress, TOWNS)
    survey(bench.worker(), slices=0)
    bench.run()
    looks = []
    for _ in range(3):
        before = asked(sandbox_cms)["list"]
        assert survey(bench.worker(), slices=0).found == {}
        looks.append(asked(sandbox_cms)["list"] - before)
    assert looks == [2, 1, 1]
