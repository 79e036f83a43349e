"""Which pages are due and why, which are not and why not, and what fits into a day."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.forecast import Basis
from content_pipeline.core.money import Usage
from content_pipeline.core.planning import (
    Due,
    Plan,
    PlannedCall,
    PlannedPage,
    Purse,
    Skipped,
    SkippedPage,
    Stand,
    Verdict,
    allot,
    counted,
    judge,
)
from content_pipeline.core.states import PageJobState

S = PageJobState
USD = Decimal

STAND = Stand(
    topic_key="t0",
    page_job_id="job",
    page_id="page",
    state=S.QUEUED,
    is_rejected=False,
    failure_class=None,
    is_due=True,
    was_released=False,
    was_public=True,
    waits_for_turn=False,
    has_draft=False,
    nonce="",
    input_hash="input",
    generation_version="v2",
    shown_input_hash="input",
    shown_version="v1",
    spent_usd=USD(0),
    is_asked_again=False,
    input_columns={},
)


@pytest.mark.parametrize(
    ("changes", "before", "verdict"),
    [
        # what an intake has just made wanted
        ({"was_public": False, "shown_input_hash": None}, None, Due.NEW),
        ({"shown_input_hash": "other"}, "old job", Due.CHANGED_INPUT),
        ({"shown_input_hash": "other", "shown_version": "v2"}, "old job", Due.CHANGED_INPUT),
        ({}, "old job", Due.CHANGED_WAY),
        ({"shown_version": "v2", "nonce": "regeneration 1"}, "old job", Due.STALE),
        ({"shown_version": "v2"}, "old job", Due.WANTED_AGAIN),
        ({"shown_input_hash": None}, None, Due.WANTED_AGAIN),
        # what was wanted before
        ({}, "job", Due.CHANGED_WAY),
        ({"shown_version": "v2", "nonce": "regeneration 1"}, "job", Due.MADE_ANEW),
        ({"was_released": True}, "job", Due.RELEASED),
        ({"state": S.GENERATED, "was_public": False}, "job", Due.NEW),
        ({"state": S.READY_TO_PUBLISH, "shown_version": "v2"}, "job", Due.WANTED_AGAIN),
        ({"state": S.WITHDRAWING}, "job", Due.TAKEN_OFF),
        ({"state": S.GENERATION_UNCERTAIN, "is_due": False}, "job", Due.UNCERTAIN),
        ({"state": S.PUBLISH_UNCERTAIN}, "job", Due.UNCERTAIN),
        ({"state": S.FAILED_RETRYABLE}, "job", Due.WAITED),
        (
            {"state": S.FAILED_RETRYABLE, "failure_class": FailureClass.BUDGET, "is_due": False},
            "job",
            Due.WAITED,
        ),
        (
            {"state": S.READY_TO_PUBLISH, "waits_for_turn": True, "has_draft": True},
            "job",
            Due.WAITED,
        ),
        ({"waits_for_turn": True, "is_due": False, "was_public": False}, "job", Due.NEW),
        # what is left alone
        (
            {"state": S.FAILED_RETRYABLE, "failure_class": FailureClass.TRANSIENT, "is_due": False},
            "job",
            Skipped.WAITS,
        ),
        ({"is_due": False}, "job", Skipped.WAITS),
        (
            {
                "state": S.READY_TO_PUBLISH,
                "waits_for_turn": True,
                "has_draft": True,
                "is_due": False,
            },
            "job",
            Skipped.PUBLISH_RATE,
        ),
        ({"state": S.PUBLISHED}, "job", Skipped.UNCHANGED),
        ({"state": S.PUBLISHED, "generation_version": "v1"}, "job", Skipped.ROLLED_BACK),
        ({"state": S.FAILED_TERMINAL}, "job", Skipped.NEEDS_PERSON),
        ({"state": S.DEAD_LETTERED}, "job", Skipped.NEEDS_PERSON),
        ({"state": S.FAILED_TERMINAL, "is_rejected": True}, "job", Skipped.REJECTED),
        ({"state": S.CANCELLED}, "job", Skipped.CANCELLED),
    ],
)
def test_the_reason_of_each_page(
    changes: dict[str, object], before: str | None, verdict: Due | Skipped
) -> None:
    assert judge(replace(STAND, **changes), before, "v2") is verdict  # type: ignore[arg-type]


@pytest.mark.parametrize("state", PageJobState)
def test_every_state_has_an_answer_and_only_those_without_a_draft_are_paid(
    state: PageJobState,
) -> None:
    stand = replace(STAND, state=state)
    assert judge(stand, "job", "v2") in {*Due, *Skipped}
    assert stand.is_paid_next == (
        state in {S.QUEUED, S.RESERVED, S.FAILED_RETRYABLE, S.GENERATION_UNCERTAIN}
    )
    assert not replace(stand, has_draft=True).is_paid_next


def call(expected: str, worst: str, **changes: object) -> PlannedCall:
    made = PlannedCall(
        step="article",
        model="small",
        usage=Usage(input_tokens=100, output_tokens=50),
        calls=1,
        expected_usd=USD(expected),
        worst_usd=USD(worst),
        latency_s=2,
        basis=Basis.HISTORY,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def page(key: str, *calls: PlannedCall, is_new: bool = False, spent: str = "0") -> PlannedPage:
    return PlannedPage(
        topic_key=key, reason=Due.NEW, is_new=is_new, spent_usd=USD(spent), calls=calls
    )


def purse(room: str, *, day: str = "9", of_page: str = "9") -> Purse:
    return Purse(page_usd=USD(of_page), day_usd=USD(day), room_usd=USD(room))


def names(pages: list[PlannedPage]) -> list[str]:
    return [each.topic_key for each in pages]


@pytest.mark.parametrize(
    ("room", "today"),
    [
        ("0", []),
        ("0.99", []),
        ("1", ["a"]),
        ("1.39", ["a"]),
        ("1.4", ["a", "b"]),
        ("9", ["a", "b", "c"]),
    ],
)
def test_a_page_fits_when_its_worst_case_does_beside_what_the_others_come_to(
    room: str, today: list[str]
) -> None:
    pages = [page(key, call("0.4", "1")) for key in "abc"]
    fitting, later = allot(pages, new_pages=None, purse=purse(room))
    assert names(fitting) == today
    assert {reason for _, reason in later} <= {Skipped.BUDGET}


def test_a_page_that_costs_nothing_fits_without_any_money() -> None:
    pages = [page("a", call("0.4", "1")), page("b")]
    fitting, _ = allot(pages, new_pages=None, purse=purse("0"))
    assert names(fitting) == ["b"]


@pytest.mark.parametrize(
    ("caps", "spent", "hopeless"),
    [
        (purse("9", day="0.99"), "0", True),
        (purse("9", of_page="0.99"), "0", True),
        (purse("9", of_page="1.5"), "0.6", True),
        (purse("9", of_page="1.6"), "0.6", False),
        (purse("0", day="1"), "0", False),
    ],
)
def test_what_no_budget_would_allow_is_told_from_what_waits_for_one(
    caps: Purse, spent: str, hopeless: bool
) -> None:
    _, later = allot([page("a", call("0.4", "1"), spent=spent)], new_pages=None, purse=caps)
    assert [reason is Skipped.HOPELESS for _, reason in later] == [hopeless] * len(later)
    assert bool(later) == (hopeless or not caps.room_usd)


def test_the_publish_rate_counts_new_pages_alone() -> None:
    pages = [page(key, is_new=key in "abc") for key in "abxcy"]
    fitting, later = allot(pages, new_pages=2, purse=purse("9"))
    assert names(fitting) == ["a", "b", "x", "y"]
    assert [(each.topic_key, reason) for each, reason in later] == [("c", Skipped.PUBLISH_RATE)]


@pytest.mark.parametrize(
    ("ahead", "today"), [(0, ["a", "b"]), (1, ["a", "b", "d"]), (9, ["a", "b", "d", "e"])]
)
def test_of_some_more_new_pages_the_drafts_are_paid_for(ahead: int, today: list[str]) -> None:
    drafted = [page(key, is_new=True) for key in "abc"]
    unpaid = [page(key, call("0.4", "1"), is_new=True) for key in "de"]
    fitting, _ = allot([*drafted, *unpaid], new_pages=2, drafts_ahead=ahead, purse=purse("9"))
    assert names(fitting) == today


def plan(*pages: PlannedPage, skipped: tuple[Skipped, ...] = (), at_once: int = 4) -> Plan:
    return Plan(
        site="towns",
        at=datetime(2026, 3, 1, tzinfo=UTC),
        today=pages,
        later=(),
        skipped=tuple(SkippedPage(topic_key="x", reason=reason) for reason in skipped),
        purse=purse("9"),
        calls_at_once=at_once,
    )


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (plan(), Verdict.FITS),
        (plan(page("a"), skipped=(Skipped.UNCHANGED, Skipped.PUBLISH_RATE)), Verdict.FITS),
        (plan(page("a"), skipped=(Skipped.BUDGET,)), Verdict.PARTLY),
        (plan(skipped=(Skipped.BUDGET,)), Verdict.PARTLY),
        (plan(page("a"), skipped=(Skipped.HOPELESS,)), Verdict.PARTLY),
        (plan(skipped=(Skipped.HOPELESS, Skipped.BUDGET)), Verdict.PARTLY),
        (plan(skipped=(Skipped.HOPELESS,)), Verdict.NEVER),
    ],
)
def test_the_verdict(made: Plan, verdict: Verdict) -> None:
    assert made.verdict is verdict


def test_the_sums_count_repeated_calls() -> None:
    made = plan(
        page("a", call("0.4", "1"), call("0.1", "2", calls=1.5)),
        page("b", call("0.2", "1")),
        page("c"),
    )
    assert (made.expected_usd, made.worst_usd) == (USD("0.7"), USD(4))
    assert (made.expected_input_tokens, made.expected_output_tokens) == (350, 175)
    assert made.today[0].dearest_usd == USD(2)


@pytest.mark.parametrize(
    ("pages", "at_once", "takes_s"), [(8, 4, 4), (8, 1, 16), (1, 4, 2), (0, 4, 0)]
)
def test_the_duration_is_calls_over_those_at_once_and_no_less_than_one_page(
    pages: int, at_once: int, takes_s: float
) -> None:
    made = plan(*(page(f"p{n}", call("0", "0")) for n in range(pages)), at_once=at_once)
    assert made.duration_s == takes_s


def test_one_assumption_makes_the_whole_forecast_one() -> None:
    sure, guess = call("0", "0"), call("0", "0", basis=Basis.ASSUMPTION)
    other = call("0", "0", basis=Basis.OTHER_MODEL)
    assert plan(page("a", sure), page("b", other)).basis is Basis.OTHER_MODEL
    assert plan(page("a", guess), page("b", other)).basis is Basis.ASSUMPTION
    assert plan(page("a", sure)).basis is Basis.HISTORY


def test_reasons_are_counted_in_a_fixed_order() -> None:
    assert counted([Due.WAITED, Due.NEW, Due.WAITED]) == {"new": 1, "waiting past due": 2}
