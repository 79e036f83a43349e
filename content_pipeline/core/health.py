"""When a site's numbers should make somebody look: the settings, and the verdict on each number.

What belongs here: pure comparisons and their sentences. Reading the numbers is the ledger's,
showing them ``reporting``'s. A verdict warns and stops nothing: only a cap stops spending.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from content_pipeline.core.durations import in_words
from content_pipeline.core.settings import Settings

DAYS_BEFORE = 7
"""Whose mean the newest 24 hours are compared with: a week holds one of each weekday."""

FEWEST_PAGES = 10
"""Fewer published pages say nothing about the cost of one."""


class Refresh(StrEnum):
    """How often a site's reports are made anew by themselves."""

    HOURLY = "hourly"
    DAILY = "daily"


class HealthSettings(Settings):
    """When the checks of a site's reports warn."""

    refresh: Annotated[
        Refresh, Field(description="how often the reports are made by themselves")
    ] = Refresh.HOURLY
    history_days: Annotated[
        int, Field(ge=DAYS_BEFORE, le=366, description="how many days the reports look back")
    ] = 30
    queue_age_s: Annotated[
        float, Field(gt=0, description="warn when a due page has waited longer for a worker")
    ] = 3600
    uncertain_age_s: Annotated[
        float, Field(gt=0, description="warn when a call has been uncertain for longer")
    ] = 3600
    day_budget_share: Annotated[
        float, Field(gt=0, le=1, description="warn above this share of budgets.site_day_usd")
    ] = 0.8
    expected_page_usd: Annotated[
        Decimal | None, Field(gt=0, description="what a published page should cost, retries too")
    ] = None
    above_expected: Annotated[
        float, Field(ge=0, description="warn when a page costs more than so much above that")
    ] = 0.25
    failed_rise: Annotated[
        float,
        Field(
            ge=1, description="warn when a day's failed pages pass so many times the week's mean"
        ),
    ] = 2
    failed_at_least: Annotated[int, Field(ge=1, description="and are at least so many")] = 5


class HealthCheck(StrEnum):
    """What is judged; also the name of the check in Dagster."""

    QUEUE_AGE = "queue_age"
    UNCERTAIN_AGE = "uncertain_age"
    FAILURES = "failures_not_rising"
    COST = "cost_within_plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be thought of one number."""

    check: HealthCheck
    passed: bool
    sentence: str
    """The number, its limit and the setting that moves it, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a site was meant to cost."""

    day_usd: Decimal
    """The day's cap."""
    page_usd: Decimal | None
    """A published page with all tries it takes; None when nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlay:
    """What a site did cost."""

    today_usd: Decimal
    """At its worst: uncertain calls, and those that are out, too."""
    recent_usd: Decimal
    """Of the last days, uncertain calls at their worst, calls that are out left out."""
    recent_pages: int
    """Published in the same days."""

    @property
    def page_usd(self) -> Decimal | None:
        """Dollars per published page; None without any."""
        return self.recent_usd / self.recent_pages if self.recent_pages else None


def judge_queue(age_s: float, settings: HealthSettings) -> Verdict:
    """``age_s``: how long the oldest due page has waited for a worker; 0 without any."""
    limit = in_words(settings.queue_age_s)
    passed = age_s <= settings.queue_age_s
    if passed:
        sentence = f"No due page has waited longer than {limit} for a worker."
    else:
        sentence = (
            f"The oldest due page has waited {in_words(age_s)} for a worker, more than {limit} "
            "(health.queue_age_s): is a run, or the sensor of the due work, on?"
        )
    return Verdict(check=HealthCheck.QUEUE_AGE, passed=passed, sentence=sentence)


def judge_uncertain(age_s: float, settings: HealthSettings) -> Verdict:
    """``age_s``: since the oldest call or write began whose outcome is being asked for."""
    limit = in_words(settings.uncertain_age_s)
    passed = age_s <= settings.uncertain_age_s
    if passed:
        sentence = f"No page has been uncertain for longer than {limit}."
    else:
        sentence = (
            f"A page has been uncertain for {in_words(age_s)}, more than {limit} "
            "(health.uncertain_age_s): does the provider, or the site, answer when it is asked?"
        )
    return Verdict(check=HealthCheck.UNCERTAIN_AGE, passed=passed, sentence=sentence)


def judge_failures(lately: Sequence[int], settings: HealthSettings) -> Verdict:
    """``lately``: pages that stopped for a person, per 24 hours, the newest first."""
    newest, before = lately[0], lately[1 : DAYS_BEFORE + 1]
    mean = sum(before) / DAYS_BEFORE
    is_rising = newest >= settings.failed_at_least and newest > mean * settings.failed_rise
    counted = f"{_pages(newest)} stopped for a person in the last 24 hours, "
    usual = f"{mean:.1f} a day in the {DAYS_BEFORE} days before"
    if not is_rising:
        return Verdict(check=HealthCheck.FAILURES, passed=True, sentence=f"{counted}{usual}.")
    return Verdict(
        check=HealthCheck.FAILURES,
        passed=False,
        sentence=(
            f"{counted}more than {settings.failed_rise:g} times the {usual} "
            "(health.failed_rise): see `content-pipeline repair list`"
        ),
    )


def judge_cost(outlay: Outlay, plan: Plan, settings: HealthSettings) -> Verdict:
    """Today against the day's cap, and a published page against what it should cost."""
    complaints = [*_of_the_day(outlay, plan, settings), *_of_a_page(outlay, plan, settings)]
    if complaints:
        sentence = "; and ".join(complaints)
        sentence = f"{sentence[0].upper()}{sentence[1:]}."
    else:
        sentence = f"Today's {_usd(outlay.today_usd)} of {_usd(plan.day_usd)} are within plan"
        if outlay.page_usd is not None:
            sentence += f"; a published page costs {_usd(outlay.page_usd)}"
        sentence += "."
    return Verdict(check=HealthCheck.COST, passed=not complaints, sentence=sentence)


def _of_the_day(outlay: Outlay, plan: Plan, settings: HealthSettings) -> list[str]:
    share = outlay.today_usd / plan.day_usd
    if share <= Decimal(str(settings.day_budget_share)):
        return []
    return [
        f"today's {_usd(outlay.today_usd)} are {share:.0%} of the day's cap of "
        f"{_usd(plan.day_usd)}, more than {settings.day_budget_share:.0%} "
        "(health.day_budget_share)"
    ]


def _of_a_page(outlay: Outlay, plan: Plan, settings: HealthSettings) -> list[str]:
    if plan.page_usd is None or outlay.page_usd is None or outlay.recent_pages < FEWEST_PAGES:
        return []
    most = plan.page_usd * (1 + Decimal(str(settings.above_expected)))
    if outlay.page_usd <= most:
        return []
    return [
        f"a published page has cost {_usd(outlay.page_usd)} in the last {DAYS_BEFORE} days, more "
        f"than {settings.above_expected:.0%} above the {_usd(plan.page_usd)} that was expected "
        "(health.expected_page_usd, health.above_expected)"
    ]


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count:,} pages"


def _usd(amount: Decimal) -> str:
    return f"${amount:,.4f}" if amount < 1 else f"${amount:,.2f}"
