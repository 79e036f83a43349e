"""Charts: the bars are as high as their numbers, the drawing is sound and obeys nobody's text."""

import re
from decimal import Decimal
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.reporting import charts
from content_pipeline.reporting.charts import Chart, Series, data_uri, inline_svg
from content_pipeline.reporting.content import count, usd
from content_pipeline_tests.reporting.samples import HOSTILE


def chart(*values: tuple[float, ...], names: tuple[str, ...] = ("a", "b", "c")) -> Chart:
    """One series for each of ``values``."""
    return Chart(
        title="Pages per day",
        bars=tuple(f"bar {number}" for number in range(len(values[0]))),
        series=tuple(
            Series(name=name, values=tuple(Decimal(str(value)) for value in row))
            for name, row in zip(names, values, strict=False)
        ),
        shown=count,
    )


def bars_of(svg: str, series: int) -> list[tuple[float, float]]:
    """Upper and lower edge of each bar of a series, from the left; y points down."""
    (path,) = re.findall(rf'<path class="s{series}" d="([^"]*)"', svg)
    found = re.findall(r"M\S+ (\S+)h\S+V(\S+)h-", path)
    return [(float(top), float(bottom)) for bottom, top in found]


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return [node.text or "" for node in root.iter() if node.tag.endswith("text")]


def test_bars_are_as_high_as_their_numbers_and_stand_on_each_other() -> None:
    svg = inline_svg(chart((10, 20), (30, 0)))
    low, high = bars_of(svg, 0)
    (upper,) = bars_of(svg, 1)
    assert low[1] == high[1]  # on one line
    assert high[1] - high[0] == pytest.approx(2 * (low[1] - low[0]), abs=0.2)
    assert upper[1] == low[0]
    assert upper[1] - upper[0] == pytest.approx(3 * (low[1] - low[0]), abs=0.3)


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0.0, ["0", "1"]),
        (3.0, ["0", "1", "2", "3"]),
        (26.0, ["0", "10", "20", "30"]),
        (100.0, ["0", "50", "100"]),
        (0.0046, ["0", "0.002", "0.004", "0.006"]),
        (1_234_567.0, ["0", "500,000", "1,000,000", "1,500,000"]),
    ],
)
def test_the_axis_goes_in_round_steps_to_the_highest_bar(highest: float, ticks: list[str]) -> None:
    assert texts(inline_svg(chart((highest,), names=("",))))[1:-1] == ticks


@given(st.lists(st.just(0.0) | st.floats(1e-8, 1e9), min_size=1, max_size=400))
def test_no_bar_leaves_the_drawing(values: list[float]) -> None:
    drawn = chart(tuple(values))
    svg = inline_svg(drawn)
    ET.fromstring(svg)
    edges = bars_of(svg, 0) if not drawn.is_empty and 'class="s0" d=' in svg else []
    for top, bottom in edges:
        assert 0 <= top <= bottom <= charts.HEIGHT + 22


def test_labels_do_not_run_into_each_other() -> None:
    below = [text for text in texts(inline_svg(chart(tuple(range(366))))) if "bar" in text]
    assert 5 <= len(below) <= charts.MOST_LABELS
    assert below[0] == "bar 0"


def test_a_legend_of_many_names_goes_on_in_another_row_and_makes_room() -> None:
    few = chart((1,), (1,))
    many = chart(*[(1,)] * 8, names=tuple(f"a rather long name {number}" for number in range(8)))
    assert charts._height(many) > charts._height(few)
    rows = {
        node.get("y")
        for node in ET.fromstring(inline_svg(many)).iter()
        if node.tag == "text" and "long name" in (node.text or "")
    }
    assert len(rows) > 1
    assert not [text for text in texts(inline_svg(few)) if "long" in text]


def test_each_series_has_a_colour_of_its_own() -> None:
    many = chart(*[(1,)] * 8, names=tuple("abcdefgh"))
    used = set(re.findall(r'<path class="(s\d)"', inline_svg(many)))
    assert len(used) == charts.MOST_SERIES == len(set(charts.COLOURS))
    assert all(f".{name}{{fill:" in charts.STYLE for name in used)


def test_a_name_is_shown_and_never_obeyed() -> None:
    hostile = Chart(
        title=f'"{HOSTILE}',
        bars=(HOSTILE,),
        series=(Series(name=HOSTILE, values=(Decimal(1),)),),
        shown=usd,
    )
    svg = inline_svg(hostile)
    assert "<script" not in svg
    assert texts(svg).count(HOSTILE) == 2
    root = ET.fromstring(svg)
    assert root.get("aria-label") == f'"{HOSTILE}'
    assert root.get("role") == "img"


def test_an_image_of_its_own_is_an_svg_that_needs_nothing_else() -> None:
    uri = data_uri(chart((1, 2), (3, 4)))
    head, _, body = uri.partition(",")
    assert head == "data:image/svg+xml"
    root = ET.fromstring(unquote(body))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"url\(|@import|href", unquote(body))


def test_an_image_can_stand_in_markdown() -> None:
    named = chart((1,), names=("x) ![y](z) <b> \"'",))
    assert not re.search(r"[\s()<>\"\[\]]", data_uri(named))


def test_a_chart_of_nothing_but_zeros_is_empty() -> None:
    assert chart((0, 0), (0, 0)).is_empty
    assert chart(()).is_empty
    assert not chart((0, 0.0001)).is_empty
