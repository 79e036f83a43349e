"""Many pages read as one partition, in memory that does not grow with them."""

from decimal import Decimal

import pytest

from content_pipeline.components.bucket_stock import (
    SEVERAL,
    SHOWN,
    BucketStock,
    StageStock,
    add_page,
)
from content_pipeline.components.made import Made
from content_pipeline.components.standing import Standing
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.reports import PageReport
from content_pipeline_tests.components.page_reports import attempt, failed, page

S = PageJobState

DONE = page(S.PUBLISHED, revision=1)
EDITED = page(S.PUBLISHED, revision=1, site_change=SiteChange.EDITED)
WAITS = page(S.FAILED_RETRYABLE)
STOPPED = page(S.CANCELLED)
BAD = failed(FailureClass.INVALID_PAGE)


def stock_of(*pages: PageReport, made: bool = False) -> StageStock:
    found = StageStock()
    for each in pages:
        found.add(each, Stage.ARTIFACT, made=made)
    return found


@pytest.mark.parametrize(
    ("pages", "is_done", "is_green", "not_green"),
    [
        ((), True, True, 0),
        ((DONE, DONE), True, True, 0),
        ((DONE, EDITED), True, False, 1),
        ((DONE, WAITS), False, False, 1),
        ((DONE, STOPPED), False, False, 1),
        ((BAD, WAITS, EDITED), False, False, 3),
    ],
)
def test_a_bucket_is_done_when_all_its_pages_are_and_green_when_the_site_shows_them(
    pages: tuple[PageReport, ...], is_done: bool, is_green: bool, not_green: int
) -> None:
    found = stock_of(*pages)
    assert (found.is_done, found.is_green, found.not_green) == (is_done, is_green, not_green)
    assert found.pages == len(pages)
    assert len(found.shown) == not_green


def test_pages_for_a_person_are_shown_first_and_no_more_than_anybody_reads() -> None:
    found = stock_of(*[WAITS] * (3 * SHOWN), BAD, EDITED)
    assert len(found.shown) == SHOWN
    assert list(found.shown[:2]) == [BAD, EDITED]
    assert found.not_green == 3 * SHOWN + 2
    assert found.counts[Standing.WAITING] == 3 * SHOWN


def test_what_is_kept_of_a_bucket_does_not_grow_with_it() -> None:
    found = stock_of(*[BAD] * 5_000, *[WAITS] * 5_000, *[DONE] * 5_000)
    assert found.pages == 15_000
    assert sum(map(len, (found._for_a_person, found._others))) == 2 * SHOWN


def test_only_done_pages_count_as_made() -> None:
    assert stock_of(DONE, WAITS, BAD, made=True).made == 1
    assert stock_of(DONE).made == 0


def test_a_bucket_adds_up_its_dollars_and_tells_those_of_the_run() -> None:
    stock = BucketStock(name="b0-of-1", stages={stage: StageStock() for stage in Stage})
    ours = attempt(usd=Decimal("0.01"))
    theirs = attempt(usd=Decimal("0.02"), worker="another run", is_certain=False)
    one = page(S.PUBLISHED, revision=1, attempts=(ours, theirs))
    two = page(S.GENERATED, topic_key="t02", revision=1, attempts=(ours,))
    made = Made(worker="this run")
    made.topics[Stage.DRAFT].add("t02")
    for each in (one, two):
        add_page(stock, each, made)
    assert (stock.usd, stock.uncertain_usd, stock.run_usd) == (
        Decimal("0.04"),
        Decimal("0.02"),
        Decimal("0.02"),
    )
    assert stock.stages[Stage.DRAFT].is_done
    assert stock.stages[Stage.DRAFT].made == 1
    assert stock.stages[Stage.ARTIFACT].made == 0
    assert not stock.stages[Stage.PAGE].is_done


@pytest.mark.parametrize(
    ("versions", "told"), [(["v1", "v1"], "v1"), (["v1", "v2"], SEVERAL), ([], SEVERAL)]
)
def test_the_way_of_making_is_told_when_there_is_one(versions: list[str], told: str) -> None:
    stock = BucketStock(name="b0-of-1", stages={Stage.DRAFT: StageStock()})
    for version in versions:
        add_page(stock, page(S.QUEUED, generation_version=version), None)
    assert stock.generation_version == told
