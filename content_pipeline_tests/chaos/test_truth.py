"""Each promise can be seen to break: the verdict on records made by hand."""

from dataclasses import replace
from decimal import Decimal

import pytest

from content_pipeline.chaos.truth import (
    Billed,
    Evidence,
    dollars_off,
    forced,
    judge,
)
from content_pipeline_tests.chaos.records import (
    PATHS,
    USD,
    WANTED,
    billed,
    claimed,
    cms,
    folder,
    good,
    live,
    received,
    throttled,
)


def test_a_good_run_breaks_nothing() -> None:
    numbers = judge(good())
    assert numbers.broken_promises() == []
    assert (numbers.site.pages_live, numbers.billed, numbers.forced, numbers.attempts) == (
        3,
        3,
        3,
        4,
    )
    assert numbers.billed_per_live_page == 1
    assert numbers.dollars_off == 0


GOOD = good()
BROKEN: list[tuple[Evidence, str]] = [
    (
        good(billed=[*GOOD.billed, billed(9, "b", 2)], claimed=claimed(4)),
        "paid more than the plan forces",
    ),
    (good(received=[*GOOD.received, received(9, "b")]), "an attempt was sent more than once"),
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
    (good(site=folder(live=live(1, *PATHS[1:]), sitemap=PATHS[1:])), "a page is missing"),
    (good(site=cms(public_doubles=1)), "visitors saw one page twice at one instant"),
]


@pytest.mark.parametrize(("evidence", "sentence"), BROKEN)
def test_each_broken_promise_is_told_and_no_other(evidence: Evidence, sentence: str) -> None:
    assert judge(evidence).broken_promises() == [sentence]


def test_every_promise_about_calls_and_money_has_been_broken_here() -> None:
    everything_wrong = replace(
        judge(good()),
        billed=99,
        sent_twice=1,
        early_for_page=1,
        early_for_account=1,
        most_calls_per_poison_page=2,
        dollars_off=Decimal(1),
    )
    assert set(everything_wrong.broken_promises()) < {sentence for _, sentence in BROKEN}
    assert len(everything_wrong.broken_promises()) == 6


def test_nothing_live_is_no_perfect_run() -> None:
    numbers = judge(good(site=folder(live=[], sitemap=[])))
    assert numbers.site.missing == 3
    assert numbers.billed_per_live_page == 3


def test_a_page_whose_input_was_changed_may_be_paid_for_once_more() -> None:
    wanted = replace(WANTED, changed=frozenset({"/a/"}), edited=frozenset({"/a/"}))
    again = good(wanted=wanted, billed=[*GOOD.billed, billed(9, "a2")], claimed=claimed(4))
    assert judge(again).broken_promises() == []
    assert judge(replace(again, wanted=WANTED, poison_jobs=frozenset())).forced == 3


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
