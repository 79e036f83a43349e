"""What a report is made of: sections with a sentence, a chart and tables, whatever shows them.

What belongs here: the pieces, and how amounts, shares and times are written in all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from content_pipeline.core.durations import in_words
from content_pipeline.reporting.charts import MOST_SERIES, Chart, Series

OTHERS = "others"
"""The smallest of too many series, together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text; the first column says what a row is about."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    """So many columns from the left hold words, the rest numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One subject of a report."""

    title: str
    note: str
    """What is shown, in a sentence or two."""
    table: Table | None = None
    chart: Chart | None = None

    @property
    def drawn(self) -> Chart | None:
        """The chart, when there is something to draw."""
        return None if self.chart is None or self.chart.is_empty else self.chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number at the head of a report."""

    label: str
    value: str
    note: str = ""


def numbers_of(chart: Chart) -> Table:
    """The very numbers of ``chart``; bars without any are left out."""
    several = len(chart.series) > 1
    rows = []
    for bar, name in enumerate(chart.bars):
        values = [series.values[bar] for series in chart.series]
        if any(values):
            total = [sum(values, Decimal(0))] if several else []
            rows.append((name, *(chart.shown(value) if value else "" for value in values + total)))
    names = tuple(series.name for series in chart.series)
    return Table(columns=("", *names, *(["all"] if several else [])), rows=tuple(rows))


def chart_by_day(
    title: str,
    days: Sequence[date],
    amounts: Mapping[str, Mapping[date, Decimal]],
    shown: Callable[[Decimal], str],
    *,
    has_legend: bool = True,
) -> Chart:
    """A bar for each day; ``amounts``: series → day → value. The largest series come first."""
    ranked = sorted(amounts, key=lambda name: (-sum(amounts[name].values()), name))
    kept, rest = ranked, list[str]()
    if len(ranked) > MOST_SERIES:
        kept, rest = ranked[: MOST_SERIES - 1], ranked[MOST_SERIES - 1 :]
    series = [
        Series(name=name, values=tuple(amounts[name].get(day, Decimal(0)) for day in days))
        for name in kept
    ]
    if rest:
        sums = [
            sum((amounts[name].get(day, Decimal(0)) for name in rest), Decimal(0)) for day in days
        ]
        series.append(Series(name=OTHERS, values=tuple(sums)))
    return Chart(
        title=title,
        bars=tuple(day.isoformat() for day in days),
        series=tuple(series),
        shown=shown,
        label=lambda day: day[5:],
        has_legend=has_legend,
    )


def usd(amount: Decimal) -> str:
    """Dollars to a hundredth of a cent below 10, to the cent above."""
    return f"${amount:,.4f}" if amount < 10 else f"${amount:,.2f}"


def count(value: Decimal | int) -> str:
    """A number of things, as short as it goes: an axis has halves."""
    text = f"{value:,}"
    return text.rstrip("0").removesuffix(".") if "." in text else text


def share(part: Decimal | int, whole: Decimal | int) -> str:
    """A part in percent; nothing of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else ""


def when(time: datetime) -> str:
    """A time to the minute, UTC."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def long_ago(seconds: float) -> str:
    """How long something lasts already."""
    return in_words(seconds)
