"""Vectors are kept as float32, checked before they are kept, and compared exactly."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.vectors import (
    KNOWN_LENGTHS,
    MOST_NUMBERS,
    NotAVector,
    check,
    description,
    length_of,
    nearest,
    packed,
    unpacked,
)

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=40)


@given(NUMBERS)
def test_what_is_packed_comes_back(values: list[float]) -> None:
    vector = packed(values)
    assert list(unpacked(vector)) == values
    assert length_of(vector) == len(values)
    assert len(vector) == 4 * len(values)


def test_the_form_is_that_of_providers() -> None:
    assert packed([1.0, -2.5]) == struct.pack("<f", 1.0) + struct.pack("<f", -2.5)


@pytest.mark.parametrize("value", [1e39, -1e300, 10**400, "1", None, [1.0]])
def test_a_number_that_cannot_be_kept_is_refused(value: object) -> None:
    with pytest.raises(NotAVector, match="no number"):
        packed([1.0, value])  # type: ignore[list-item]


UNUSABLE = [
    (b"", None, "0 numbers"),
    (b"\0" * 5, None, "no whole numbers"),
    (packed([0.0, 0.0]), None, "points nowhere"),
    (packed([1.0, math.nan]), None, "none at all"),
    (packed([1.0, math.inf]), None, "infinite"),
    (packed([1.0, -math.inf]), 2, "infinite"),
    (packed([1.0] * 3), 2, "3 numbers where 2 were expected"),
    (packed([1.0] * (MOST_NUMBERS + 1)), None, f"{MOST_NUMBERS + 1} numbers"),
]


@pytest.mark.parametrize(("vector", "dimensions", "words"), UNUSABLE)
def test_a_vector_that_cannot_be_compared_is_refused(
    vector: bytes, dimensions: int | None, words: str
) -> None:
    with pytest.raises(NotAVector, match=words):
        check(vector, model="somebody's model", dimensions=dimensions)


def test_a_known_model_has_a_known_length_unless_another_is_asked_for() -> None:
    model, length = "text-embedding-3-small", KNOWN_LENGTHS["text-embedding-3-small"]
    check(packed([1.0] * length), model=model, dimensions=None)
    check(packed([1.0] * 8), model=model, dimensions=8)
    with pytest.raises(NotAVector, match="8 numbers where 1536 were expected"):
        check(packed([1.0] * 8), model=model, dimensions=None)
    with pytest.raises(NotAVector, match="1536 numbers where 8 were expected"):
        check(packed([1.0] * length), model=model, dimensions=8)


def test_any_length_of_an_unknown_model_is_taken() -> None:
    check(packed([0.1]), model="somebody's model", dimensions=None)
    check(packed([0.1] * MOST_NUMBERS), model="somebody's model", dimensions=None)


def test_a_description_tells_vectors_and_models_apart() -> None:
    told = description(packed([1.0, 2.0]), "sandbox/m")
    assert (told["model"], told["dimensions"]) == ("sandbox/m", 2)
    assert told == description(packed([1.0, 2.0]), "sandbox/m")
    assert told["digest"] != description(packed([1.0, 2.1]), "sandbox/m")["digest"]


def test_nothing_is_near_when_there_is_nothing() -> None:
    assert nearest(packed([1.0]), []) is None


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([[1.0, 0.0]], (0, 1.0)),
        ([[-1.0, 0.0]], (0, -1.0)),
        ([[0.0, 1.0]], (0, 0.0)),
        ([[0.0, 1.0], [3.0, 0.0], [1.0, 1.0]], (1, 1.0)),
        ([[0.0, 7.0], [5.0, 5.0]], (1, math.sqrt(0.5))),
    ],
)
def test_the_nearest_is_that_of_the_smallest_angle_however_long_the_vectors(
    others: list[list[float]], expected: tuple[int, float]
) -> None:
    for size in (0.001, 1.0, 1000.0):
        found = nearest(packed([size, 0.0]), [packed(other) for other in others])
        assert found is not None
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1], abs=1e-6)


@given(st.lists(st.floats(0.125, 1, width=32), min_size=5, max_size=5), st.integers(0, 2))
def test_a_vector_is_nearest_to_itself(values: list[float], place: int) -> None:
    itself = packed(values)
    others = [packed([-value for value in values])] * 2
    others.insert(place, itself)
    found = nearest(itself, others)
    assert found is not None
    assert found[0] == place
    assert found[1] == pytest.approx(1.0, abs=1e-6)
    assert found[1] <= 1
