"""A report with something in every section, made of plain values."""

from datetime import UTC, date, datetime
from decimal import Decimal

from content_pipeline.core.causes import cause_of
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.health import HealthCheck, Outlay, Plan, Verdict
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.cost_history import Window
from content_pipeline.ledger.costs import Cost
from content_pipeline.ledger.failure_history import FailedPages, Retries
from content_pipeline.ledger.health import (
    Conflicts,
    DuePage,
    FailedNow,
    PossibleDoubleSpend,
    Queue,
    UncertainPages,
)
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.ledger.write_offs import WrittenOff
from content_pipeline.reporting.site_report import CostReport, HealthReport, SiteReport

USD = Decimal
NOW = datetime(2026, 3, 10, 14, 5, tzinfo=UTC)
WINDOW = Window(first_day=date(2026, 3, 1), now=NOW)
MARCH = {number: date(2026, 3, number) for number in range(1, 11)}

HOSTILE = "<script>alert(1)</script>|*x*"
"""What a topic id, a model or a message may hold, and no report may obey."""


def cost(day: int, name: str, usd: str, **more: object) -> Cost:
    """Dollars of one day by class; the rest of the keys and measures are the usual ones."""
    values: dict[str, object] = {
        "keys": (MARCH[day].isoformat(), name, "6d9acd92:article", "gpt-5-mini"),
        "settled_usd": USD(usd),
        "uncertain_usd": USD(0),
        "reserved_usd": USD(0),
        "attempts": 1,
        "failed_attempts": 0 if name == "ok" else 1,
        "failed_usd": USD(0),
        "input_tokens": 0,
        "cached_tokens": 0,
        "output_tokens": 0,
        "reasoning_tokens": 0,
    }
    return Cost(**(values | more))  # type: ignore[arg-type]


COSTS = CostReport(
    history=(
        cost(8, "ok", "0.20", attempts=20),
        cost(9, "ok", "0.30", attempts=30),
        cost(9, "bad_output", "0.10"),
        cost(10, "uncertain", "0", uncertain_usd=USD("0.05")),
    ),
    published={MARCH[8]: 20, MARCH[9]: 10},
    calls_per_page={1: 28, 2: 2, 14: 1},
    retries=(
        Retries(
            kind=AttemptKind.GENERATE,
            failure_class=FailureClass.TRANSIENT,
            number=2,
            tries=8,
            succeeded=6,
            usd=USD("0.04"),
        ),
    ),
    outlay=Outlay(today_usd=USD("0.05"), recent_usd=USD("0.65"), recent_pages=30),
    plan=Plan(day_usd=USD(5), page_usd=USD("0.02")),
)

HEALTH = HealthReport(
    queue=Queue(
        due=3,
        oldest=(
            DuePage(
                topic_key=HOSTILE, state=PageJobState.FAILED_RETRYABLE, due_since=NOW, waits_s=7_300
            ),
        ),
    ),
    uncertain=(
        UncertainPages(
            state=PageJobState.GENERATION_UNCERTAIN,
            pages=2,
            oldest_topic="bern",
            oldest_s=95,
            usd=USD("0.02"),
        ),
    ),
    double_spend=PossibleDoubleSpend(calls=4, usd=USD("0.06"), oldest_at=NOW),
    in_line=0,
    written_off=WrittenOff(calls=3, usd=USD("0.05")),
    failed_by_day=(
        FailedPages(day=MARCH[9], state=PageJobState.DEAD_LETTERED, reason="transient", pages=3),
    ),
    failed_lately=(1, 2, 0, 0, 0, 0, 0, 0),
    failed_now=(FailedNow(cause=cause_of(FailureClass.POLICY, HOSTILE), pages=2, newest_at=NOW),),
    conflicts=(Conflicts(change=SiteChange.EDITED, pages=1, oldest_at=NOW),),
)

REPORT = SiteReport(
    site="towns",
    title=f"Towns {HOSTILE}",
    seen=WINDOW,
    costs=COSTS,
    health=HEALTH,
    verdicts={
        HealthCheck.QUEUE_AGE: Verdict(
            check=HealthCheck.QUEUE_AGE, passed=False, sentence="The oldest due page has waited."
        ),
        HealthCheck.UNCERTAIN_AGE: Verdict(
            check=HealthCheck.UNCERTAIN_AGE, passed=True, sentence="Nothing is uncertain."
        ),
        HealthCheck.FAILURES: Verdict(
            check=HealthCheck.FAILURES, passed=True, sentence="No failures."
        ),
        HealthCheck.COST: Verdict(check=HealthCheck.COST, passed=True, sentence="All within plan."),
    },
)

EMPTY = SiteReport(
    site="towns",
    title="Towns",
    seen=WINDOW,
    costs=CostReport(
        history=(),
        published={},
        calls_per_page={},
        retries=(),
        outlay=Outlay(today_usd=USD(0), recent_usd=USD(0), recent_pages=0),
        plan=Plan(day_usd=USD(5), page_usd=None),
    ),
    health=HealthReport(
        queue=Queue(due=0, oldest=()),
        uncertain=(),
        double_spend=PossibleDoubleSpend(calls=0, usd=USD(0), oldest_at=None),
        in_line=0,
        written_off=WrittenOff(calls=0, usd=USD(0)),
        failed_by_day=(),
        failed_lately=(0,) * 8,
        failed_now=(),
        conflicts=(),
    ),
    verdicts={},
)
"""A site of which nothing is known yet."""
