"""Everything that the reports of one site show, read in one transaction.

What belongs here: asking the ledger and the verdicts. How it is shown is the sections'.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from sqlalchemy import Connection

from content_pipeline.core.health import (
    DAYS_BEFORE,
    HealthCheck,
    Outlay,
    Plan,
    Verdict,
    judge_cost,
    judge_failures,
    judge_queue,
    judge_uncertain,
)
from content_pipeline.core.site import SiteSettings
from content_pipeline.ledger import (
    cost_history,
    draft_line,
    failure_history,
    health,
    publish_rate,
    write_offs,
)
from content_pipeline.ledger.cost_history import HISTORY, Window
from content_pipeline.ledger.costs import Cost, Dimension
from content_pipeline.ledger.failure_history import FailedPages, Retries
from content_pipeline.ledger.health import (
    Conflicts,
    FailedNow,
    PossibleDoubleSpend,
    Queue,
    UncertainPages,
)
from content_pipeline.ledger.write_offs import WrittenOff
from content_pipeline.reporting.plan import planned


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """What the window cost, and what came of it."""

    history: tuple[Cost, ...]
    """Keys as in ``ledger.cost_history.HISTORY``."""
    published: Mapping[date, int]
    calls_per_page: Mapping[int, int]
    retries: tuple[Retries, ...]
    outlay: Outlay
    plan: Plan

    @property
    def usd(self) -> Decimal:
        """All dollars of the window, at their worst."""
        return sum((cost.usd for cost in self.history), Decimal(0))

    @property
    def pages(self) -> int:
        """Published in the window."""
        return sum(self.published.values())

    @property
    def page_usd(self) -> Decimal | None:
        """Dollars per published page of the window; None without any."""
        return self.usd / self.pages if self.pages else None

    def by_day(self, dimension: Dimension | None = None) -> dict[str, dict[date, Decimal]]:
        """Key of ``dimension`` → day → dollars; without one, all under the key ``all``."""
        found: defaultdict[str, defaultdict[date, Decimal]] = defaultdict(
            lambda: defaultdict(Decimal)
        )
        for cost in self.history:
            day = date.fromisoformat(cost.keys[HISTORY.index(Dimension.DAY)])
            key = "all" if dimension is None else cost.keys[HISTORY.index(dimension)]
            if cost.usd:
                found[key][day] += cost.usd
        return {key: dict(days) for key, days in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """What waits, is uncertain, failed or was changed."""

    queue: Queue
    in_line: int
    """New pages, drafted or not, that wait for their turn."""
    uncertain: tuple[UncertainPages, ...]
    double_spend: PossibleDoubleSpend
    written_off: WrittenOff
    failed_by_day: tuple[FailedPages, ...]
    failed_lately: tuple[int, ...]
    """Per 24 hours, the newest first."""
    failed_now: tuple[FailedNow, ...]
    conflicts: tuple[Conflicts, ...]

    @property
    def uncertain_age_s(self) -> float:
        """Since the oldest call or write began that is being asked about; 0 without any."""
        return max((pages.oldest_s for pages in self.uncertain), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReport:
    """One site, as it stood at one instant."""

    site: str
    title: str
    seen: Window
    costs: CostReport
    health: HealthReport
    verdicts: Mapping[HealthCheck, Verdict]


def gather(connection: Connection, site: SiteSettings) -> SiteReport:
    """The reports of ``site`` now."""
    seen = cost_history.window(connection, site.health.history_days)
    costs = _costs(connection, site, seen)
    found = _health(connection, site.site, seen)
    verdicts = (
        judge_queue(found.queue.age_s, site.health),
        judge_uncertain(found.uncertain_age_s, site.health),
        judge_failures(found.failed_lately, site.health),
        judge_cost(costs.outlay, costs.plan, site.health),
    )
    return SiteReport(
        site=site.site,
        title=site.title,
        seen=seen,
        costs=costs,
        health=found,
        verdicts={verdict.check: verdict for verdict in verdicts},
    )


def _costs(connection: Connection, site: SiteSettings, seen: Window) -> CostReport:
    history = cost_history.cost_history(connection, site.site, seen)
    published = cost_history.published_by_day(connection, site.site, seen)
    return CostReport(
        history=tuple(history),
        published=published,
        calls_per_page=cost_history.calls_per_page(connection, site.site, seen),
        retries=tuple(failure_history.retries(connection, site.site, seen)),
        outlay=_outlay(history, published, seen.today),
        plan=planned(site),
    )


def _outlay(history: list[Cost], published: Mapping[date, int], today: date) -> Outlay:
    first = today - timedelta(days=DAYS_BEFORE - 1)
    dated = [(date.fromisoformat(cost.keys[0]), cost) for cost in history]
    recent = (cost.settled_usd + cost.uncertain_usd for day, cost in dated if day >= first)
    return Outlay(
        today_usd=sum((cost.usd for day, cost in dated if day == today), Decimal(0)),
        recent_usd=sum(recent, Decimal(0)),
        recent_pages=sum(pages for day, pages in published.items() if day >= first),
    )


def _health(connection: Connection, site: str, seen: Window) -> HealthReport:
    return HealthReport(
        queue=health.queue(connection, site),
        in_line=publish_rate.outgoing(connection, site).waiting
        + draft_line.waiting(connection, site),
        uncertain=tuple(health.uncertain_pages(connection, site)),
        double_spend=health.possible_double_spend(connection, site),
        written_off=write_offs.of_site(connection, site),
        failed_by_day=tuple(failure_history.failed_by_day(connection, site, seen)),
        failed_lately=failure_history.failed_lately(connection, site, DAYS_BEFORE + 1),
        failed_now=tuple(health.failed_now(connection, site)),
        conflicts=tuple(health.conflicts(connection, site)),
    )
