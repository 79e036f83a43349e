"""Lengths of time in words: short, never a unit too many, never nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.durations import in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (0.04, "0.04 s"),
        (0.25, "0.2 s"),
        (1, "1 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3601, "1 h"),
        (5400, "1 h 30 min"),
        (10_800, "3 h"),
        (86_399, "1 d"),
        (86_400 + 59, "1 d 1 min"),
        (14 * 86_400, "14 d"),
        (14 * 86_400 + 7 * 3600 + 120, "14 d 7 h"),
    ],
)
def test_the_two_largest_units_are_named(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


@given(st.floats(-1e9, 1e12))
def test_any_length_has_words(seconds: float) -> None:
    words = in_words(seconds).split()
    assert len(words) in (2, 4)
    assert float(words[0]) >= 0
