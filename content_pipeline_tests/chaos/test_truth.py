"""Each promise can be seen to break: the verdict on records made by hand."""

from dataclasses import replace
from decimal import Decimal

import pytest

from content_pipeline.chaos.truth import (
    ON_THE_WAY_S,
    UNHEARD_S,
    Billed,
    Evidence,
    LivePage,
    Received,
    Write,
    bound_s,
    dollars_off,
    early_for_account,
    early_for_page,
    forced,
    judge,
)
from content_pipeline_tests.chaos.records import (
    PATHS,
    USD,
    at,
    billed,
    claimed,
    good,
    received,
    throttled,
)


def test_a_good_run_breaks_nothing() -> None:
    numbers = judge(good())
    assert numbers.broken_promises() == []
    assert (numbers.pages_live, numbers.billed, numbers.forced, numbers.attempts) == (3, 3, 3, 4)
    assert numbers.billed_per_live_page == 1
    assert numbers.dollars_off == 0


GOOD = good()
LIVE = list(GOOD.live)
BROKEN: list[tuple[Evidence, str]] = [
    (
        good(billed=[*GOOD.billed, billed(9, "b", 2)], claimed=claimed(4)),
        "paid more than the plan forces",
    ),
    (good(received=[*GOOD.received, received(9, "b")]), "an attempt was sent more than once"),
    (good(live=LIVE[1:], sitemap=PATHS[1:]), "a page is missing"),
    (
        good(
            live=[*LIVE, LivePage(path="/d/", page_id="page-d", revision=1)],
            sitemap=(*PATHS, "/d/"),
        ),
        "a page is live that nobody asked for, or twice",
    ),
    (
        good(live=[LIVE[0], replace(LIVE[1], page_id=LIVE[0].page_id), LIVE[2]]),
        "a page is live that nobody asked for, or twice",
    ),
    (
        good(writes=[*GOOD.writes, Write(path="/a/", revision=1)]),
        "a revision was written more than once",
    ),
    (
        good(writes=[Write(path="/a/", revision=2), *GOOD.writes]),
        "an older revision was written over a newer one",
    ),
    (good(sitemap=PATHS[1:]), "the sitemap does not list exactly the live pages"),
    (good(sitemap=(*PATHS, "/old/")), "the sitemap does not list exactly the live pages"),
    (good(sitemap=(*PATHS, "/a/")), "the sitemap does not list exactly the live pages"),
    (
        good(received=[*GOOD.received, throttled(10, "a", 0.4, 2), received(10.3, "a", 3)]),
        "a page was tried again before its announced wait was over",
    ),
    (
        good(received=[*GOOD.received, throttled(10, "a", 3, 2), received(12, "b", 2)]),
        "the account was called before its announced wait was over",
    ),
    (
        good(received=[*GOOD.received, received(9, "p", 2)]),
        "a page that policy refuses was asked again",
    ),
    (
        good(claimed=claimed(settled_usd=3 * USD + Decimal("0.01"))),
        "the ledger's dollars are not those that were billed",
    ),
]


@pytest.mark.parametrize(("evidence", "sentence"), BROKEN)
def test_each_broken_promise_is_told_and_no_other(evidence: Evidence, sentence: str) -> None:
    assert judge(evidence).broken_promises() == [sentence]


def test_every_promise_has_been_broken_here() -> None:
    everything_wrong = replace(
        judge(good()),
        billed=99,
        sent_twice=1,
        missing=1,
        unwanted=1,
        written_twice=1,
        stale_overwrites=1,
        sitemap_wrong=1,
        early_for_page=1,
        early_for_account=1,
        most_calls_per_poison_page=2,
        dollars_off=Decimal(1),
    )
    assert set(everything_wrong.broken_promises()) == {sentence for _, sentence in BROKEN}


def test_nothing_live_is_no_perfect_run() -> None:
    numbers = judge(good(live=[], sitemap=[]))
    assert numbers.missing == 3
    assert numbers.billed_per_live_page == 3


FORCED: list[tuple[str, list[Billed], int]] = [
    ("nothing", [], 0),
    ("one whole answer", [billed(0, "a")], 1),
    ("a lost answer is whole at the provider", [billed(0, "a", fault="drop_after")], 1),
    (
        "so another one was not forced",
        [billed(0, "a", fault="drop_after"), billed(1, "a", 2)],
        1,
    ),
    ("a useless answer forces another", [billed(0, "a", fault="length"), billed(1, "a", 2)], 2),
    (
        "but only until one can be used",
        [billed(0, "a", fault="broken_json"), billed(1, "a", 2), billed(2, "a", 3)],
        2,
    ),
    (
        "a useless answer after a good one was not forced",
        [billed(0, "a"), billed(1, "a", 2, fault="length")],
        1,
    ),
    (
        "the order is the provider's clock",
        [billed(5, "a", 2), billed(1, "a", fault="empty_content")],
        2,
    ),
    (
        "a refusal settles a page",
        [billed(0, "a", fault="refusal"), billed(1, "a", 2, fault="refusal")],
        1,
    ),
    ("useless to the end", [billed(0, "a", fault="length"), billed(1, "a", 2, fault="length")], 2),
    ("a second job of a page", [billed(0, "a"), billed(1, "b"), billed(2, "other job of b")], 2),
]


@pytest.mark.parametrize(("generations", "count"), [row[1:] for row in FORCED])
def test_what_the_plan_forces_a_client_to_pay(generations: list[Billed], count: int) -> None:
    assert forced(generations, jobs=2) == count


def test_one_percent_beyond_the_forced_is_tolerated() -> None:
    numbers = replace(judge(good()), forced=100, billed=101)
    assert numbers.broken_promises() == []
    assert replace(numbers, billed=102).broken_promises() == ["paid more than the plan forces"]


EARLY_FOR_PAGE: list[tuple[str, list[Received], int]] = [
    ("in time", [throttled(0, "a", 2), received(2, "a", 2)], 0),
    ("too early", [throttled(0, "a", 2), received(1.9, "a", 2)], 1),
    ("even at once", [throttled(0, "a", 2), received(0.001, "a", 2)], 1),
    ("each too early one", [throttled(0, "a", 2), received(1, "a", 2), received(1.5, "a", 3)], 2),
    (
        "a short wait does not end a long one",
        [throttled(0, "a", 9), throttled(1, "a", 1, 2), received(5, "a", 3)],
        2,
    ),
    ("another page's wait", [throttled(0, "a", 2), received(1, "b")], 0),
    ("no wait announced", [received(0, "a", fault="status"), received(0.1, "a", 2)], 0),
    ("whatever the order of the list", [received(1, "a", 2), throttled(0, "a", 2)], 1),
    (
        "a call of no page",
        [received(0, "a", page_job_id=None, wait_s=5), received(1, "b", page_job_id=None)],
        0,
    ),
]


@pytest.mark.parametrize(("requests", "count"), [row[1:] for row in EARLY_FOR_PAGE])
def test_calls_before_the_wait_of_their_page_is_over(requests: list[Received], count: int) -> None:
    assert early_for_page(requests) == count


SOON = ON_THE_WAY_S / 2
EARLY_FOR_ACCOUNT: list[tuple[str, list[Received], int]] = [
    ("was on its way", [throttled(0, "a", 2), received(SOON, "b")], 0),
    ("could have known", [throttled(0, "a", 2), received(1.5, "b")], 1),
    (
        "a question is a call as well",
        [throttled(0, "a", 2), received(1.5, "b", operation="list")],
        1,
    ),
    ("counted once", [throttled(0, "a", 2), throttled(0.1, "b", 2), received(1.5, "c")], 1),
    ("after the wait", [throttled(0, "a", 2), received(2, "b")], 0),
    ("a wait shorter than the way", [throttled(0, "a", SOON), received(SOON / 2, "b")], 0),
]


@pytest.mark.parametrize(("requests", "count"), [row[1:] for row in EARLY_FOR_ACCOUNT])
def test_calls_before_the_wait_of_the_account_is_over(requests: list[Received], count: int) -> None:
    assert early_for_account(requests, kills=[]) == count


@pytest.mark.parametrize(
    ("killed_s", "count"),
    [(UNHEARD_S / 2, 0), (UNHEARD_S * 2, 1), (-0.1, 1)],
    ids=["unheard", "heard", "killed before"],
)
def test_a_wait_announced_to_the_dying_binds_nobody_else(killed_s: float, count: int) -> None:
    requests = [throttled(0, "a", 4), received(3, "b")]
    assert early_for_account(requests, kills=[at(killed_s)]) == count


def test_dollars_of_certain_calls_must_be_settled_exactly() -> None:
    calls = [billed(0, "a"), billed(1, "b")]
    assert dollars_off(calls, claimed(2)) == 0
    assert dollars_off(calls, claimed(1)) == USD
    assert dollars_off(calls, claimed(3)) == USD
    assert dollars_off([], claimed(0)) == 0


def test_dollars_of_uncertain_calls_must_lie_within_what_is_kept_for_them() -> None:
    calls = [billed(0, "a"), billed(1, "b")]
    unknown = frozenset({"b-1"})
    enough = claimed(1, uncertain_attempts=unknown, uncertain_usd=10 * USD)
    assert dollars_off(calls, enough) == 0
    assert dollars_off(calls, replace(enough, uncertain_usd=USD / 2)) == USD / 2
    assert dollars_off(calls[:1], enough) == 0  # it was not billed after all


def test_money_still_reserved_when_all_is_over_is_off() -> None:
    assert dollars_off([], claimed(0, reserved_usd=USD)) == USD


def test_the_bound_is_latency_side_by_side_and_every_second_of_waiting_once() -> None:
    requests = [
        throttled(0, "a", 2),
        throttled(1, "b", 3),
        throttled(1.5, "c", 1),
        throttled(10, "d", 1),
        received(20, "e"),
    ]
    assert bound_s(requests, {"one": 6, "two": 2}, at_once=4) == pytest.approx(2 + 4 + 1)
    assert bound_s([], {}, at_once=4) == 0
