"""The budget of all sites together as the environment states it: an amount, or a clear refusal."""

from decimal import Decimal

import pytest

from content_pipeline.config import DAY_BUDGET_VARIABLE, day_budget_usd
from content_pipeline.core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("25", "25"),
        (" 0.10 ", "0.1"),
        ("0", "0"),
        ("1e3", "1000"),
        ("0.123456789", "0.12345678"),
        ("1000000000", "1000000000"),
    ],
)
def test_an_amount_is_taken_and_never_rounded_up(
    text: str, amount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DAY_BUDGET_VARIABLE, text)
    assert day_budget_usd() == Decimal(amount)


def test_without_the_variable_there_is_no_such_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DAY_BUDGET_VARIABLE, raising=False)
    assert day_budget_usd() is None


@pytest.mark.parametrize(
    "text", ["", "  ", "$5", "5 USD", "25,00", "-1", "nan", "inf", "1e10", "none"]
)
def test_what_is_no_amount_is_refused_with_the_way_out(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DAY_BUDGET_VARIABLE, text)
    with pytest.raises(ConfigurationError, match=rf"{DAY_BUDGET_VARIABLE} is .* or unset it"):
        day_budget_usd()
