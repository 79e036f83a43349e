"""Verdicts on a site's numbers: at a limit all is well, beyond it somebody is told what to do."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from content_pipeline.core.health import (
    DAYS_BEFORE,
    FEWEST_PAGES,
    HealthCheck,
    HealthSettings,
    Outlay,
    Plan,
    judge_cost,
    judge_failures,
    judge_queue,
    judge_uncertain,
)

USUAL = HealthSettings()


@pytest.mark.parametrize(
    ("age_s", "passed"), [(0, True), (3_600, True), (3_600.5, False), (90_000, False)]
)
def test_a_queue_may_be_as_old_as_the_limit_and_no_older(age_s: float, passed: bool) -> None:
    verdict = judge_queue(age_s, USUAL)
    assert (verdict.check, verdict.passed) == (HealthCheck.QUEUE_AGE, passed)
    assert "1 h" in verdict.sentence
    assert ("health.queue_age_s" in verdict.sentence) is not passed


@pytest.mark.parametrize(("age_s", "passed"), [(0, True), (60, True), (61, False)])
def test_so_may_an_uncertain_call(age_s: float, passed: bool) -> None:
    verdict = judge_uncertain(age_s, HealthSettings(uncertain_age_s=60))
    assert (verdict.check, verdict.passed) == (HealthCheck.UNCERTAIN_AGE, passed)
    assert ("1 min 1 s, more than 1 min" in verdict.sentence) is not passed


@pytest.mark.parametrize(
    ("newest", "before", "passed"),
    [
        (0, [0] * DAYS_BEFORE, True),
        (4, [0] * DAYS_BEFORE, True),  # fewer than failed_at_least
        (5, [0] * DAYS_BEFORE, False),
        (10, [5] * DAYS_BEFORE, True),  # exactly twice the mean
        (11, [5] * DAYS_BEFORE, False),
        (11, [0] * 6 + [38], False),  # one bad day a week ago: the mean is 5.4
        (10, [0] * 6 + [38], True),
        (3, [50] * DAYS_BEFORE, True),  # falling
    ],
)
def test_failures_rise_when_a_day_passes_twice_the_mean_of_the_week_before(
    newest: int, before: list[int], passed: bool
) -> None:
    verdict = judge_failures([newest, *before], USUAL)
    assert (verdict.check, verdict.passed) == (HealthCheck.FAILURES, passed)
    assert ("repair list" in verdict.sentence) is not passed


def test_a_sentence_on_failures_can_be_read() -> None:
    assert judge_failures([1, 7, 0, 0, 0, 0, 0, 0], USUAL).sentence == (
        "1 page stopped for a person in the last 24 hours, 1.0 a day in the 7 days before."
    )
    assert judge_failures([1_200] + [7] * 7, USUAL).sentence == (
        "1,200 pages stopped for a person in the last 24 hours, more than 2 times the 7.0 a day "
        "in the 7 days before (health.failed_rise): see `content-pipeline repair list`"
    )


def outlay(today: str = "1", recent: str = "1", pages: int = 100) -> Outlay:
    return Outlay(today_usd=Decimal(today), recent_usd=Decimal(recent), recent_pages=pages)


def plan(page: str | None = None) -> Plan:
    return Plan(day_usd=Decimal(5), page_usd=None if page is None else Decimal(page))


@pytest.mark.parametrize(
    ("spent", "planned", "complaints"),
    [
        (outlay(today="4"), plan(), []),  # 80 %, exactly
        (outlay(today="4.00000001"), plan(), ["80% of the day's cap of $5.00"]),
        (outlay(recent="1.25"), plan("0.01"), []),  # 25 % above, exactly
        (outlay(recent="1.26"), plan("0.01"), ["$0.0126 in the last 7 days", "$0.0100"]),
        (outlay(recent="9"), plan(), []),  # nobody said what a page should cost
        (outlay(recent="9", pages=FEWEST_PAGES - 1), plan("0.01"), []),
        (outlay(recent="9", pages=FEWEST_PAGES), plan("0.01"), ["health.expected_page_usd"]),
        (outlay(recent="9", pages=0), plan("0.01"), []),
        (outlay(today="5", recent="9"), plan("0.01"), ["100% of the day's cap", "$0.0900"]),
    ],
)
def test_cost_is_held_against_the_days_cap_and_the_expected_cost_of_a_page(
    spent: Outlay, planned: Plan, complaints: list[str]
) -> None:
    verdict = judge_cost(spent, planned, USUAL)
    assert (verdict.check, verdict.passed) == (HealthCheck.COST, not complaints)
    for complaint in complaints:
        assert complaint in verdict.sentence


def test_a_good_verdict_on_cost_tells_the_cost() -> None:
    assert judge_cost(outlay(), plan(), USUAL).sentence == (
        "Today's $1.00 of $5.00 are within plan; a published page costs $0.0100."
    )
    assert judge_cost(outlay(pages=0), plan(), USUAL).sentence == (
        "Today's $1.00 of $5.00 are within plan."
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue_age_s": 0},
        {"uncertain_age_s": -1},
        {"day_budget_share": 0},
        {"day_budget_share": 1.1},
        {"expected_page_usd": 0},
        {"above_expected": -0.1},
        {"failed_rise": 0.9},
        {"failed_at_least": 0},
        {"history_days": DAYS_BEFORE - 1},
        {"history_days": 400},
        {"refresh": "weekly"},
        {"queue_age": 3_600},
    ],
)
def test_a_setting_without_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        HealthSettings.model_validate(wrong)
