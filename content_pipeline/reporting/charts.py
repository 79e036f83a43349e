"""Stacked bar charts as small SVG images that need nothing but themselves.

What belongs here: from numbers to a drawing. Inline SVG and no plotting library: the charts are
bars and labels, an image is 2 to 6 kB instead of 40 (an hourly report is kept in Dagster's database
each time), stays sharp on every screen, takes the colours of the page around it, and costs no
import of half a second and no package.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from urllib.parse import quote

WIDTH, HEIGHT = 720, 280
_LEFT, _RIGHT, _BOTTOM = 72, 12, 34
_LEGEND_ROW = 22
_CHARACTER = 7.2
"""Pixels of an average character at the legend's size: SVG cannot measure, so this is generous."""

MOST_LABELS = 10
"""Below the bars: more would run into each other."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#8a8f98")
"""Okabe and Ito's, told apart by all kinds of eyes; the last one is for the rest."""

MOST_SERIES = len(COLOURS)

STYLE = "".join(f".s{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS))
"""The colours of the series, on paper and on a screen of either kind."""

_ALONE = (
    "text{fill:#23262b;font:13px system-ui,sans-serif}.grid{stroke:#d9d9d9}.back{fill:#fff}" + STYLE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One colour of the bars."""

    name: str
    values: tuple[Decimal, ...]
    """One for each bar, not negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars, each a stack of the series."""

    title: str
    bars: tuple[str, ...]
    """What each bar is about."""
    series: tuple[Series, ...]
    """At most ``MOST_SERIES``."""
    shown: Callable[[Decimal], str]
    """A value as people read it."""
    label: Callable[[str], str] = str
    """What stands below a bar."""
    has_legend: bool = True
    """Off where the title says what the one series is."""

    @property
    def is_empty(self) -> bool:
        """There is nothing to draw."""
        return not any(value for series in self.series for value in series.values)


def inline_svg(chart: Chart) -> str:
    """The chart for a page that has ``STYLE`` and colours for ``text`` and ``.grid``."""
    title = escape(chart.title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {_height(chart)}" role="img" aria-label="{title}">'
        f"{_drawing(chart)}</svg>"
    )


def data_uri(chart: Chart) -> str:
    """The chart as an image of its own, on white, fit for Markdown.

    Percent-encoded and not base64: text stays text, which PostgreSQL then stores in a third.
    """
    height = _height(chart)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}"><style>{_ALONE}</style>'
        f'<rect class="back" width="{WIDTH}" height="{height}"/>{_drawing(chart)}</svg>'
    )
    return "data:image/svg+xml," + quote(svg, safe="/:;,=.-+'")


def _height(chart: Chart) -> int:
    return HEIGHT + _LEGEND_ROW * len(_legend_rows(chart))


def _drawing(chart: Chart) -> str:
    top = _LEGEND_ROW * len(_legend_rows(chart)) + 12
    bottom = _height(chart) - _BOTTOM
    ticks = _ticks(max(_totals(chart), default=0.0))
    scale = (bottom - top) / ticks[-1]
    return "".join(
        (*_legend(chart), *_axis(chart, ticks, bottom, scale), *_bars(chart, bottom, scale))
    )


def _totals(chart: Chart) -> list[float]:
    return [
        float(sum(series.values[bar] for series in chart.series)) for bar in range(len(chart.bars))
    ]


def _ticks(highest: float) -> list[float]:
    """0 and up to five steps of 1, 2 or 5 times a power of ten, the last not below ``highest``."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def _legend_rows(chart: Chart) -> list[list[tuple[int, float]]]:
    """Rows of (series, x)."""
    if not chart.has_legend:
        return []
    rows: list[list[tuple[int, float]]] = [[]]
    x = float(_LEFT)
    for number, series in enumerate(chart.series):
        width = 34 + _CHARACTER * len(series.name)
        if rows[-1] and x + width > WIDTH:
            rows.append([])
            x = float(_LEFT)
        rows[-1].append((number, x))
        x += width
    return rows


def _legend(chart: Chart) -> list[str]:
    found = []
    for row, entries in enumerate(_legend_rows(chart)):
        y = 6 + row * _LEGEND_ROW
        for number, x in entries:
            name = escape(chart.series[number].name)
            found.append(
                f'<rect class="s{number}" x="{x:g}" y="{y}" width="12" height="12"/>'
                f'<text x="{x + 17:g}" y="{y + 11}">{name}</text>'
            )
    return found


def _axis(chart: Chart, ticks: Sequence[float], bottom: float, scale: float) -> list[str]:
    found = []
    for tick in ticks:
        y = bottom - tick * scale
        found.append(
            f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(_shortened(chart.shown(Decimal(repr(round(tick, 9))))))}</text>"
        )
    step = math.ceil(len(chart.bars) / MOST_LABELS)
    width = _bar_width(chart)
    for bar in range(0, len(chart.bars), step):
        x = _LEFT + (bar + 0.5) * width
        found.append(
            f'<text x="{x:.1f}" y="{bottom + 20:g}" text-anchor="middle">'
            f"{escape(chart.label(chart.bars[bar]))}</text>"
        )
    return found


def _shortened(value: str) -> str:
    """Without the zeros at its end that tell nothing on an axis."""
    return value.rstrip("0").removesuffix(".") if "." in value else value


def _bar_width(chart: Chart) -> float:
    return (WIDTH - _LEFT - _RIGHT) / max(1, len(chart.bars))


def _bars(chart: Chart, bottom: float, scale: float) -> list[str]:
    """One path for each series, its bars standing on those of the series before."""
    width = _bar_width(chart)
    thick = min(width * 0.72, 60.0)
    heights = [0.0] * len(chart.bars)
    found = []
    for number, series in enumerate(chart.series):
        parts = []
        for bar, value in enumerate(series.values):
            if value <= 0:
                continue
            x = _LEFT + (bar + 0.5) * width - thick / 2
            y = bottom - heights[bar]
            heights[bar] += float(value) * scale
            parts.append(f"M{x:.1f} {y:.1f}h{thick:.1f}V{bottom - heights[bar]:.1f}h-{thick:.1f}z")
        if parts:
            found.append(f'<path class="s{number}" d="{"".join(parts)}"/>')
    return found
