"""The pieces of a report: amounts in words, and charts whose numbers can be read as a table."""

from datetime import date
from decimal import Decimal

import pytest

from content_pipeline.reporting.charts import MOST_SERIES, Chart, Series
from content_pipeline.reporting.content import (
    OTHERS,
    Section,
    chart_by_day,
    count,
    numbers_of,
    share,
    usd,
    when,
)
from content_pipeline_tests.reporting.samples import MARCH, NOW

DAYS = (MARCH[1], MARCH[2], MARCH[3])


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("0", "$0.0000"), ("0.00125", "$0.0012"), ("9.99994", "$9.9999"), ("1234.5", "$1,234.50")],
)
def test_dollars_have_as_many_decimals_as_are_of_use(amount: str, shown: str) -> None:
    assert usd(Decimal(amount)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1_200, "1,200"),
        (Decimal(100), "100"),
        (Decimal("2.50"), "2.5"),
        (Decimal("3.0"), "3"),
    ],
)
def test_counts_are_whole_where_they_are_whole(value: Decimal | int, shown: str) -> None:
    assert count(value) == shown


def test_a_share_of_nothing_is_nothing() -> None:
    assert share(1, 3) == "33 %"
    assert share(Decimal("0.05"), Decimal(5)) == "1 %"
    assert share(0, 0) == ""


def test_times_are_utc_to_the_minute() -> None:
    assert when(NOW) == "2026-03-10 14:05 UTC"


def test_the_largest_series_come_first_and_days_without_any_are_zero() -> None:
    amounts = {
        "small": {MARCH[1]: Decimal(1)},
        "large": {MARCH[1]: Decimal(2), MARCH[3]: Decimal(3)},
    }
    drawn = chart_by_day("t", DAYS, amounts, count)
    assert drawn.bars == ("2026-03-01", "2026-03-02", "2026-03-03")
    assert [(each.name, each.values) for each in drawn.series] == [
        ("large", (2, 0, 3)),
        ("small", (1, 0, 0)),
    ]
    assert drawn.label("2026-03-01") == "03-01"


@pytest.mark.parametrize("number", [MOST_SERIES, MOST_SERIES + 1, 40])
def test_of_too_many_series_the_smallest_stand_together_and_nothing_is_lost(number: int) -> None:
    amounts: dict[str, dict[date, Decimal]] = {
        f"s{size}": {MARCH[2]: Decimal(size)} for size in range(1, number + 1)
    }
    drawn = chart_by_day("t", DAYS, amounts, count)
    assert len(drawn.series) == MOST_SERIES
    assert (drawn.series[-1].name == OTHERS) is (number > MOST_SERIES)
    assert sum(each.values[1] for each in drawn.series) == number * (number + 1) // 2


def test_the_numbers_of_a_chart_are_its_bars_with_their_sums() -> None:
    drawn = Chart(
        title="t",
        bars=("mon", "tue", "wed"),
        series=(
            Series(name="ok", values=(Decimal(3), Decimal(0), Decimal(0))),
            Series(name="bad", values=(Decimal(1), Decimal(0), Decimal(2))),
        ),
        shown=count,
    )
    table = numbers_of(drawn)
    assert table.columns == ("", "ok", "bad", "all")
    assert table.rows == (("mon", "3", "1", "4"), ("wed", "", "2", "2"))


def test_one_series_needs_no_sum() -> None:
    drawn = Chart(
        title="t", bars=("1",), series=(Series(name="pages", values=(Decimal(3),)),), shown=count
    )
    assert numbers_of(drawn).columns == ("", "pages")


def test_a_chart_of_nothing_is_not_drawn() -> None:
    empty = chart_by_day("t", DAYS, {}, count)
    assert Section(title="t", note="n", chart=empty).drawn is None
    full = chart_by_day("t", DAYS, {"a": {MARCH[1]: Decimal(1)}}, count)
    assert Section(title="t", note="n", chart=full).drawn is full
