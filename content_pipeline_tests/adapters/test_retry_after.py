from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.retry_after import MAX_RETRY_AFTER_S, announced_wait_s

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "unit_s", "wait_s"),
    [
        ("7", 1.0, 7.0),
        ("2.5", 1.0, 2.5),
        ("1500", 0.001, 1.5),
        ("Mon, 30 Nov 2026 12:01:00 GMT", 1.0, 60.0),
        (str(10**30), 1.0, MAX_RETRY_AFTER_S),
        ("0", 1.0, None),
        ("-3", 1.0, None),
        ("inf", 1.0, None),
        ("nan", 1.0, None),
        ("Mon, 30 Nov 2026 11:59:00 GMT", 1.0, None),
        ("Mon, 30 Nov 2026 12:01:00", 1.0, None),
        ("soon", 1.0, None),
        ("", 1.0, None),
        (None, 1.0, None),
    ],
)
def test_a_wait_is_read_in_both_forms(
    value: str | None, unit_s: float, wait_s: float | None
) -> None:
    assert announced_wait_s(value, NOW, unit_s=unit_s) == wait_s
