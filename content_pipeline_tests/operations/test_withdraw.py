"""A page of a retired topic is taken off the site, and only then counts as withdrawn."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pytest

from content_pipeline.core.cms import CMSCapabilities, PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import site_changes
from content_pipeline.ledger.schema import SiteEventKind, pages
from content_pipeline.operations.conflicts import keep_theirs, publish_ours
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    PLAIN,
    ScriptedCMS,
    failed,
    look_raises,
    loses_the_answer,
    remote_page,
)
from content_pipeline_tests.operations.small_site import page_text, rows_of, sitemap_paths

S = PageJobState
PATH = "/aarau-0/"


class WithdrawingCMS(ScriptedCMS):
    """A CMS whose next withdrawals go as scripted."""

    def __init__(self, capabilities: CMSCapabilities = PLAIN) -> None:
        super().__init__(capabilities=capabilities)
        self.on_withdraw: deque[Callable[[], None]] = deque()
        self.asked = 0

    def withdraw(self, page: RemotePage) -> None:
        self.asked += 1
        if self.on_withdraw:
            self.on_withdraw.popleft()()
        super().withdraw(page)

    def hides_and_loses_the_answer(self) -> None:
        super().withdraw(self.pages[PATH])
        raise failed(FailureClass.UNCERTAIN, "the connection broke")


def refuses(error: CallFailed) -> Callable[[], None]:
    def script() -> None:
        raise error

    return script


def retired(
    make_bench: MakeBench, cms: ScriptedCMS | None = None, **changes: object
) -> tuple[Bench, WithdrawingCMS]:
    """A site of two pages, one of whose topics has just left the table."""
    cms = cms or WithdrawingCMS()
    topics = {"when_gone": "unpublish", "most_gone_share": 1}
    bench = make_bench(2, cms=cms, topics=topics, **changes)
    bench.submit_and_run()
    bench.announce()
    del bench.rows[0]
    assert bench.submit().retired == ("t0",)
    assert isinstance(cms, WithdrawingCMS)
    return bench, cms


def events(bench: Bench) -> list[tuple[SiteEventKind, str]]:
    page_id = bench.report().page_id
    assert page_id is not None
    with bench.ledger.begin() as connection:
        return [(kind, what) for _, kind, what, _ in site_changes.history(connection, page_id)]


def withdrawals(bench: Bench) -> list[tuple[str, str | None]]:
    return [(state, why) for kind, state, why in bench.attempts() if kind == "withdraw"]


def visible(cms: ScriptedCMS) -> bool:
    return PATH in cms.pages and cms.pages[PATH].status is RemoteStatus.PUBLISHED


def test_the_page_is_hidden_proved_gone_and_leaves_the_sitemap(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    assert bench.report().state is S.WITHDRAWING
    bench.run()
    assert not visible(cms)
    assert bench.states() == {"t0": "withdrawn", "t1": "published"}
    assert withdrawals(bench) == [("succeeded", None)]
    assert [kind for kind, _ in events(bench)] == [SiteEventKind.WITHDRAWN]
    bench.announce()
    assert sitemap_paths(bench.folder) == ["/baden-1/"]
    (page,) = rows_where(bench.ledger, pages, site=bench.name, path=PATH)
    assert page["withdrawn_at"] is not None
    assert (page["published_revision"], page["remote_fingerprint"]) == (None, None)


def test_a_file_of_a_real_folder_is_removed_and_comes_back_unpaid(make_bench: MakeBench) -> None:
    bench = make_bench(2, topics={"when_gone": "unpublish"})
    bench.submit_and_run()
    row, billed = bench.rows.pop(0), bench.billed()
    bench.submit_and_run()
    assert page_text(bench.folder, row) is None
    bench.rows.insert(0, row)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published", "t1": "published"}
    assert page_text(bench.folder, row) is not None
    assert bench.billed() == billed


def test_a_hidden_page_is_made_public_again_and_not_a_second_one(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    bench.run()
    bench.rows = rows_of(2)
    bench.submit()
    bench.run()
    assert visible(cms)
    assert [path for path in cms.pages if "aarau" in path] == [PATH]


def test_a_page_that_is_gone_already_is_not_touched(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    del cms.pages[PATH]
    bench.run()
    assert (bench.report().state, cms.asked) == (S.WITHDRAWN, 0)


def test_a_strangers_page_in_its_place_stays(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    cms.pages[PATH] = remote_page(PATH, None)
    bench.run()
    assert (bench.report().state, cms.asked) == (S.WITHDRAWN, 0)
    assert visible(cms)


def test_a_lost_answer_is_settled_by_looking(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    cms.on_withdraw.append(cms.hides_and_loses_the_answer)
    bench.run()
    assert (bench.report().state, cms.asked) == (S.WITHDRAWN, 1)


def test_a_request_that_got_lost_is_made_again(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    cms.on_withdraw.append(refuses(failed(FailureClass.UNCERTAIN, "the connection broke")))
    assert bench.step().state is S.WITHDRAWING
    assert not bench.is_due()
    assert bench.step().state is S.WITHDRAWN
    assert withdrawals(bench) == [("failed", "transient"), ("succeeded", None)]


def test_a_cms_that_cannot_say_what_it_shows_is_asked_again(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    cms.on_look.append(look_raises(failed(FailureClass.TRANSIENT, "502")))
    assert bench.step().state is S.WITHDRAWING
    assert (cms.asked, bench.is_due()) == (0, False)
    assert bench.step().state is S.WITHDRAWN


def test_a_page_that_refuses_to_go_is_left_to_a_person_in_the_end(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench, retries={"transient": {"attempts": 3}})
    cms.on_withdraw = deque([refuses(failed(FailureClass.TRANSIENT, "503"))] * 3)
    assert [bench.step().state for _ in range(3)] == [S.WITHDRAWING, S.WITHDRAWING, S.DEAD_LETTERED]
    assert visible(cms)


def test_a_repair_goes_on_taking_it_off(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    cms.on_withdraw.append(refuses(failed(FailureClass.REQUEST, "403 for this page")))
    assert bench.step().state is S.FAILED_TERMINAL
    told = retry(bench.ledger, bench.name, "t0", cause="rights were given")
    assert told == "t0 is withdrawing again; the next run goes on with it"
    bench.run()
    assert bench.report().state is S.WITHDRAWN
    assert bench.billed() == 2


def test_a_page_that_changes_under_our_hands_is_looked_at_a_few_times(
    make_bench: MakeBench,
) -> None:
    bench, cms = retired(make_bench)
    cms.on_withdraw = deque([refuses(failed(FailureClass.CONFLICT, "it changed"))] * 9)
    assert [bench.step().state for _ in range(3)] == [
        S.WITHDRAWING,
        S.WITHDRAWING,
        S.FAILED_TERMINAL,
    ]
    assert bench.report().failure_class is FailureClass.CONFLICT
    assert cms.asked == 3


def edited(cms: ScriptedCMS) -> None:
    cms.pages[PATH] = remote_page(PATH, cms.pages[PATH].marker, edits=1)


def test_a_page_that_a_person_edited_is_not_taken_off_unasked(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    edited(cms)
    bench.run()
    report = bench.report()
    assert (report.state, report.failure_class) == (S.FAILED_TERMINAL, FailureClass.CONFLICT)
    assert "its topic is retired" in (report.failure_message or "")
    assert (visible(cms), cms.asked) == (True, 0)
    with bench.ledger.begin() as connection:
        (waiting,) = site_changes.waiting(connection, bench.name)
    assert (waiting.path, waiting.change) == (PATH, SiteChange.EDITED)


def test_a_person_may_say_that_it_goes_all_the_same(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    edited(cms)
    bench.run()
    told = publish_ours(bench.worker(), "t0", cause="the topic is over", by="anna")
    assert "takes the page off the site as it is now" in told
    bench.run()
    assert bench.report().state is S.WITHDRAWN
    assert not visible(cms)


def test_a_person_may_keep_it(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    edited(cms)
    bench.run()
    keep_theirs(bench.worker(), "t0", cause="it is ours now", by="anna")
    bench.run()
    assert bench.report().state is S.SUPERSEDED
    assert visible(cms)


def test_the_policy_may_leave_an_edited_page(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench, site_changes={"edited": "leave"})
    edited(cms)
    bench.run()
    assert bench.report().state is S.WITHDRAWN
    assert visible(cms)
    assert events(bench)[-1] == (
        SiteEventKind.WITHDRAWN,
        "its topic is retired: by the site's policy theirs stays: the page was edited on the site "
        "since we published revision 1",
    )


def test_a_topic_that_comes_back_in_time_keeps_its_page(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    bench.rows = rows_of(2)
    bench.submit_and_run()
    assert bench.report().state is S.PUBLISHED
    assert (visible(cms), cms.asked, bench.billed()) == (True, 0, 2)


def test_a_topic_that_comes_back_after_a_lost_answer_is_published_again(
    make_bench: MakeBench,
) -> None:
    """We hid the page ourselves: nobody is asked whether a person did."""
    bench, cms = retired(make_bench)
    cms.on_withdraw.append(cms.hides_and_loses_the_answer)
    cms.on_look.extend(
        [
            lambda at: PageLookUp(verdict=Verdict.PRESENT, page=at.pages[PATH]),
            look_raises(failed(FailureClass.TRANSIENT)),
        ]
    )
    assert bench.step().state is S.WITHDRAWING
    assert not visible(cms)
    bench.rows = rows_of(2)
    bench.submit()
    bench.make_due()
    bench.run()
    assert bench.report().state is S.PUBLISHED
    assert (visible(cms), bench.billed()) == (True, 2)


def test_an_attempt_that_a_dead_worker_left_is_closed_by_the_next(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)

    def die(checkpoint: str) -> None:
        if checkpoint == "page_withdrawn":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.step(on_checkpoint=die)
    bench.step()
    assert bench.report().state is S.WITHDRAWN
    assert withdrawals(bench) == [("failed", "uncertain"), ("succeeded", None)]
    assert cms.asked == 1


def test_a_page_being_published_when_its_topic_goes_is_taken_off_once_proved(
    make_bench: MakeBench,
) -> None:
    cms = WithdrawingCMS()
    bench = make_bench(2, cms=cms, topics={"when_gone": "unpublish", "most_gone_share": 1})
    bench.submit()
    cms.on_write.append(loses_the_answer)
    assert bench.step().state is S.PUBLISH_UNCERTAIN
    del bench.rows[0]
    bench.submit()
    assert bench.report().state is S.PUBLISH_UNCERTAIN, "what may be on the site is asked about"
    assert bench.step().state is S.WITHDRAWN
    assert not visible(cms)
    assert bench.history()[-3:] == ["published", "withdrawing", "withdrawn"]


def test_a_page_that_is_kept_by_policy_stays_when_it_is_proved_late(make_bench: MakeBench) -> None:
    cms = WithdrawingCMS()
    bench = make_bench(2, cms=cms)
    bench.submit()
    cms.on_write.append(loses_the_answer)
    bench.step()
    del bench.rows[0]
    bench.submit()
    assert bench.step().state is S.PUBLISHED
    assert visible(cms)


def test_a_twin_goes_with_its_page(make_bench: MakeBench) -> None:
    bench, cms = retired(make_bench)
    page = cms.pages[PATH]
    twin = replace(page, remote_id="late", path="/aarau-0-2/")
    cms.pages[twin.path] = twin
    look = cms.look_up("", PATH, None)
    cms.on_look.append(lambda _cms: replace(look, twins=(twin,)))
    bench.run()
    assert bench.report().state is S.WITHDRAWN
    assert cms.removed == ["late"]
