"""A second page with our mark is taken away whenever our page is looked at, and that is logged."""

from dataclasses import replace

import pytest

from content_pipeline.core.cms import PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import site_changes
from content_pipeline.ledger.schema import SiteEventKind
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    LookScript,
    ScriptedCMS,
    failed,
    loses_the_answer,
)

S = PageJobState
PATH = "/aarau-0/"


class TwinnedCMS(ScriptedCMS):
    """A CMS in which writes that took effect late have left further pages of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses_to_remove = False

    def twin(self, number: int, status: RemoteStatus = RemoteStatus.HIDDEN) -> RemotePage:
        path = f"{PATH[:-1]}-{number}/"
        page = replace(self.pages[PATH], remote_id=f"late {number}", path=path, status=status)
        self.pages[path] = page
        return page

    def remove(self, page: RemotePage) -> None:
        if self.refuses_to_remove:
            raise failed(FailureClass.TRANSIENT, "503")
        super().remove(page)


def shows(*twins: RemotePage) -> LookScript:
    def look(cms: ScriptedCMS) -> PageLookUp:
        return PageLookUp(verdict=Verdict.PRESENT, page=cms.pages[PATH], twins=twins)

    return look


def events(bench: Bench) -> list[tuple[SiteEventKind, str]]:
    page_id = bench.report().page_id
    assert page_id is not None
    with bench.ledger.begin() as connection:
        return [(kind, what) for _, kind, what, _ in site_changes.history(connection, page_id)]


def changed(make_bench: MakeBench) -> tuple[Bench, TwinnedCMS]:
    """A published page of which a new revision is wanted."""
    cms = TwinnedCMS()
    bench = make_bench(1, cms=cms)
    bench.submit_and_run()
    bench.rows[0]["population"] = "99,999"
    bench.submit()
    return bench, cms


@pytest.mark.parametrize("status", [RemoteStatus.HIDDEN, RemoteStatus.PUBLISHED])
def test_the_look_before_a_publish_takes_twins_away(
    status: RemoteStatus, make_bench: MakeBench
) -> None:
    bench, cms = changed(make_bench)
    cms.on_look.append(shows(cms.twin(2, status), cms.twin(3)))
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert cms.removed == ["late 2", "late 3"]
    assert list(cms.pages) == [PATH]
    first, _ = events(bench)
    assert first == (
        SiteEventKind.TWIN_REMOVED,
        f"{status} page late 2 at /aarau-0-2/ carried the mark of page remote:{PATH} and was taken "
        "away",
    )


def test_the_look_after_a_lost_answer_takes_twins_away(make_bench: MakeBench) -> None:
    bench, cms = changed(make_bench)
    cms.on_write.append(loses_the_answer)
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    cms.on_look.append(shows(cms.twin(2)))
    assert bench.step().state is S.PUBLISHED
    assert cms.removed == ["late 2"]
    assert [kind for kind, _ in events(bench)] == [SiteEventKind.TWIN_REMOVED]


def test_a_twin_that_cannot_be_removed_does_not_stop_the_page(
    make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench, cms = changed(make_bench)
    cms.refuses_to_remove = True
    cms.on_look.append(shows(cms.twin(2)))
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert events(bench) == []
    assert "has a twin that stays for now" in caplog.text
    cms.refuses_to_remove = False
    bench.rows[0]["population"] = "88,888"
    bench.submit()
    cms.on_look.append(shows(cms.pages["/aarau-0-2/"]))
    bench.run()
    assert cms.removed == ["late 2"]


def test_a_page_without_twins_is_not_touched(make_bench: MakeBench) -> None:
    bench, cms = changed(make_bench)
    bench.run()
    assert (cms.removed, events(bench)) == ([], [])
