"""The cost report: dollars per day, per published page and per try.

What belongs here: choosing rows, columns and words. The numbers are ``site_report``'s.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import date
from decimal import Decimal

from content_pipeline.ledger.cost_history import HISTORY
from content_pipeline.ledger.costs import Cost, Dimension
from content_pipeline.reporting.charts import Chart, Series
from content_pipeline.reporting.content import (
    Figure,
    Section,
    Table,
    chart_by_day,
    count,
    share,
    usd,
)
from content_pipeline.reporting.site_report import CostReport, SiteReport

MOST_CALLS = 10
"""Pages with more paid calls are counted together in the histogram."""

SHOWN_RETRIES = 12
"""Bars of the chart of retries; the table has them all."""


def cost_figures(report: SiteReport) -> list[Figure]:
    """What people look for first."""
    costs = report.costs
    expected = costs.plan.page_usd
    return [
        Figure(
            label="today",
            value=usd(costs.outlay.today_usd),
            note=f"{share(costs.outlay.today_usd, costs.plan.day_usd)} of the day's cap",
        ),
        Figure(label=f"{len(report.seen.days)} days", value=usd(costs.usd), note="all calls"),
        Figure(label="published", value=count(costs.pages), note="page jobs proved on the site"),
        Figure(
            label="a published page",
            value="none yet" if costs.page_usd is None else usd(costs.page_usd),
            note="" if expected is None else f"expected {usd(expected)}",
        ),
    ]


def cost_sections(report: SiteReport) -> list[Section]:
    """The subjects of the cost report."""
    days = report.seen.days
    return [
        _by_class(report.costs, days),
        _by_template(report.costs, days),
        _per_page(report.costs, days),
        _published(report.costs, days),
        _calls(report.costs),
        _retries(report.costs),
    ]


def _by_class(costs: CostReport, days: tuple[date, ...]) -> Section:
    return Section(
        title="Dollars per day by class",
        note=(
            "What calls came to: ok, or the class of their failure. Uncertain calls, and those "
            "that are out, count at their worst case. A day is UTC."
        ),
        chart=chart_by_day("Dollars per day by class", days, costs.by_day(Dimension.CLASS), usd),
        table=_summed(costs, ("class",), (Dimension.CLASS,)),
    )


def _by_template(costs: CostReport, days: tuple[date, ...]) -> Section:
    return Section(
        title="Dollars per day by template",
        note=(
            "A template is the prompt of one step of one generation version; a new version is "
            "what a changed prompt, model or parameter makes."
        ),
        chart=chart_by_day(
            "Dollars per day by template", days, costs.by_day(Dimension.TEMPLATE), usd
        ),
        table=_summed(costs, ("template", "model"), (Dimension.TEMPLATE, Dimension.MODEL)),
    )


def _summed(costs: CostReport, names: tuple[str, ...], dimensions: tuple[Dimension, ...]) -> Table:
    """The dollars and calls of each group, the dearest first."""
    groups: defaultdict[tuple[str, ...], list[Cost]] = defaultdict(list)
    for cost in costs.history:
        groups[tuple(cost.keys[HISTORY.index(dimension)] for dimension in dimensions)].append(cost)

    def sum_of(members: list[Cost], value: Callable[[Cost], Decimal]) -> Decimal:
        return sum((value(cost) for cost in members), Decimal(0))

    rows = []
    for keys, members in groups.items():
        dollars = sum_of(members, lambda cost: cost.usd)
        uncertain = sum_of(members, lambda cost: cost.uncertain_usd + cost.reserved_usd)
        calls = sum(cost.attempts for cost in members)
        failed = sum(cost.failed_attempts for cost in members)
        cells = (
            usd(dollars),
            share(dollars, costs.usd),
            usd(uncertain) if uncertain else "",
            count(calls),
            count(failed) if failed else "",
        )
        rows.append((dollars, (*keys, *cells)))
    rows.sort(key=lambda row: (-row[0], row[1]))
    return Table(
        columns=(*names, "dollars", "share", "not settled", "calls", "failed"),
        rows=tuple(cells for _, cells in rows),
        texts=len(names),
    )


def _per_page(costs: CostReport, days: tuple[date, ...]) -> Section:
    spent = costs.by_day().get("all", {})
    per_page = {
        day: spent.get(day, Decimal(0)) / pages for day, pages in costs.published.items() if pages
    }
    return Section(
        title="Cost per published page",
        note=(
            "All dollars of a day, failed calls too, over the pages that were published on it. A "
            "day on which nothing was published has no bar."
        ),
        chart=chart_by_day(
            "Cost per published page", days, {"dollars": per_page}, usd, has_legend=False
        ),
    )


def _published(costs: CostReport, days: tuple[date, ...]) -> Section:
    pages = {day: Decimal(number) for day, number in costs.published.items()}
    return Section(
        title="Pages published per day",
        note="Page jobs whose page was read back from the site and found to hold our revision.",
        chart=chart_by_day(
            "Pages published per day", days, {"pages": pages}, count, has_legend=False
        ),
    )


def _calls(costs: CostReport) -> Section:
    counted: defaultdict[int, int] = defaultdict(int)
    for calls, pages in costs.calls_per_page.items():
        counted[min(calls, MOST_CALLS)] += pages
    numbers = range(1, max(counted, default=0) + 1)
    chart = Chart(
        title="Paid calls per page",
        bars=tuple(
            f"{number} or more" if number == MOST_CALLS else f"{number}" for number in numbers
        ),
        series=(
            Series(name="pages", values=tuple(Decimal(counted[number]) for number in numbers)),
        ),
        shown=count,
        has_legend=False,
    )
    return Section(
        title="Paid calls per page",
        note=(
            "Page jobs that were paid for in these days, by the number of calls they took, failed "
            "ones too. A chain of three steps takes three when all goes well."
        ),
        chart=chart,
    )


def _retries(costs: CostReport) -> Section:
    rows = tuple(
        (
            item.kind.value,
            item.failure_class.value,
            f"{item.number}",
            count(item.tries),
            count(item.succeeded),
            share(item.succeeded, item.tries),
            usd(item.usd) if item.usd else "",
        )
        for item in costs.retries
    )
    most = sorted(costs.retries, key=lambda item: -item.tries)[:SHOWN_RETRIES]
    shown = [item for item in costs.retries if item in most]
    chart = Chart(
        title="Tries after a failure",
        bars=tuple(f"{item.failure_class} {item.number}" for item in shown),
        series=(
            Series(name="succeeded", values=tuple(Decimal(item.succeeded) for item in shown)),
            Series(
                name="failed again",
                values=tuple(Decimal(item.tries - item.succeeded) for item in shown),
            ),
        ),
        shown=count,
    )
    return Section(
        title="Retries that paid off",
        note=(
            "The try after a failure, by the class of that failure and the number of the try: 2 is "
            "the first retry. A class whose later tries hardly ever succeed needs fewer of them."
        ),
        chart=chart,
        table=Table(
            columns=("call", "after", "try", "tries", "succeeded", "share", "dollars"),
            rows=rows,
            texts=2,
        ),
    )
