"""Who called before an announced wait was over, and how long everybody had to wait."""

import pytest

from content_pipeline.chaos.waits import (
    ON_THE_WAY_S,
    UNHEARD_S,
    Received,
    bound_s,
    early_for_account,
    early_for_page,
    paused_s,
    settling_s,
)
from content_pipeline_tests.chaos.records import at, received, throttled

EARLY_FOR_PAGE: list[tuple[str, list[Received], int]] = [
    ("in time", [throttled(0, "a", 2), received(2, "a", 2)], 0),
    ("too early", [throttled(0, "a", 2), received(1.9, "a", 2)], 1),
    ("even at once", [throttled(0, "a", 2), received(0.001, "a", 2)], 1),
    ("each too early one", [throttled(0, "a", 2), received(1, "a", 2), received(1.5, "a", 3)], 2),
    (
        "a short wait does not end a long one",
        [throttled(0, "a", 9), throttled(1, "a", 1, 2), received(5, "a", 3)],
        2,
    ),
    ("another page's wait", [throttled(0, "a", 2), received(1, "b")], 0),
    ("no wait announced", [received(0, "a", fault="status"), received(0.1, "a", 2)], 0),
    ("whatever the order of the list", [received(1, "a", 2), throttled(0, "a", 2)], 1),
    (
        "a call of no page",
        [received(0, "a", page=None, wait_s=5), received(1, "b", page=None)],
        0,
    ),
]


@pytest.mark.parametrize(("requests", "count"), [row[1:] for row in EARLY_FOR_PAGE])
def test_calls_before_the_wait_of_their_page_is_over(requests: list[Received], count: int) -> None:
    assert early_for_page(requests) == count


SOON = ON_THE_WAY_S / 2
EARLY_FOR_ACCOUNT: list[tuple[str, list[Received], int]] = [
    ("was on its way", [throttled(0, "a", 2), received(SOON, "b")], 0),
    ("could have known", [throttled(0, "a", 2), received(1.5, "b")], 1),
    (
        "a question is a call as well",
        [throttled(0, "a", 2), received(1.5, "b", operation="list")],
        1,
    ),
    ("counted once", [throttled(0, "a", 2), throttled(0.1, "b", 2), received(1.5, "c")], 1),
    ("after the wait", [throttled(0, "a", 2), received(2, "b")], 0),
    ("a wait shorter than the way", [throttled(0, "a", SOON), received(SOON / 2, "b")], 0),
]


@pytest.mark.parametrize(("requests", "count"), [row[1:] for row in EARLY_FOR_ACCOUNT])
def test_calls_before_the_wait_of_the_account_is_over(requests: list[Received], count: int) -> None:
    assert early_for_account(requests, kills=[]) == count


@pytest.mark.parametrize(
    ("killed_s", "count"),
    [(UNHEARD_S / 2, 0), (UNHEARD_S * 2, 1), (-0.1, 1)],
    ids=["unheard", "heard", "killed before"],
)
def test_a_wait_announced_to_the_dying_binds_nobody_else(killed_s: float, count: int) -> None:
    requests = [throttled(0, "a", 4), received(3, "b")]
    assert early_for_account(requests, kills=[at(killed_s)]) == count


def test_the_bound_is_latency_side_by_side_and_every_second_of_waiting_once() -> None:
    requests = [
        throttled(0, "a", 2),
        throttled(1, "b", 3),
        throttled(1.5, "c", 1),
        throttled(10, "d", 1),
        received(20, "e"),
    ]
    assert bound_s(requests, {"one": 6, "two": 2}, at_once=4) == pytest.approx(2 + 4 + 1)
    assert bound_s([], {}, at_once=4) == 0


def test_waits_that_overlap_pause_once() -> None:
    assert paused_s([throttled(0, "a", 2), throttled(1, "b", 2), throttled(9, "c", 1)]) == 4
    assert paused_s([received(0, "a")]) == 0


def test_late_writes_of_one_page_come_one_after_the_other() -> None:
    def late(seconds: float, page: str) -> Received:
        return received(seconds, page, operation="update", fault="late")

    assert settling_s([late(0, "a"), late(5, "a"), late(1, "b")], late_s=4) == 8
    assert settling_s([received(0, "a", fault="drop")], late_s=4) == 0
