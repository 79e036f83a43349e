"""A set of due pages cut into runs: ranges where people see a backfill, lists where it is cheap."""

import random

import pytest

from content_pipeline.core.batches import Batch, batches

KEYS = [f"p{number:03}" for number in range(600)]


def shapes(found: list[Batch]) -> list[tuple[str, int]]:
    return [("range" if batch.is_range else "list", len(batch.partitions)) for batch in found]


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        ([], []),
        (KEYS, [("range", 100)] * 6),
        (KEYS[:250], [("range", 83), ("range", 83), ("range", 84)]),
        (KEYS[:50], [("range", 50)]),
        (KEYS[:49], [("list", 49)]),
        (KEYS[100:260] + KEYS[300:310], [("range", 80), ("range", 80), ("list", 10)]),
        (KEYS[::2], [("list", 100)] * 3),
        (
            KEYS[::2] + KEYS[1:201:2],
            [("range", 67), ("range", 67), ("range", 67), ("list", 99), ("list", 100)],
        ),
    ],
)
def test_the_shape_of_the_runs(due: list[str], expected: list[tuple[str, int]]) -> None:
    assert shapes(batches(KEYS, due, 100)) == expected


def test_every_due_page_is_in_one_run_and_no_other_page_is() -> None:
    draw = random.Random(4)
    for _ in range(200):
        due = draw.sample(KEYS, draw.randint(0, 600))
        most = draw.randint(1, 200)
        found = batches(KEYS, due, most)
        assert sorted(key for batch in found for key in batch.partitions) == sorted(due)
        assert all(0 < len(batch.partitions) <= most for batch in found)
        for batch in found:
            at = [KEYS.index(key) for key in batch.partitions]
            if batch.is_range:
                assert at == list(range(at[0], at[-1] + 1))


def test_three_hundred_scattered_pages_of_six_hundred_are_few_runs() -> None:
    due = random.Random(1).sample(KEYS, 300)
    assert len(batches(KEYS, due, 100)) <= 2 * 3 + 1


def test_what_is_no_partition_is_left_out() -> None:
    assert batches(KEYS[:2], ["p000", "gone"], 100) == [Batch(partitions=("p000",), is_range=False)]
