"""The order of a site's time limits: each leaves room for the one below, or says why it must."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.time_limits import LEASES_PER_HOLD, why_out_of_order

GOOD: dict[str, float] = {
    "deadline_s": 120,
    "answer_slack_s": 60,
    "lease_s": 15,
    "patience_s": 60,
    "longest_hold_s": 600,
    "run_limit_s": 1800,
    "page_deadline_s": 14 * 86_400,
}


def why(**changes: float) -> str | None:
    return why_out_of_order(**(GOOD | changes))


def test_limits_in_order_are_taken() -> None:
    assert why() is None


ORDER: list[tuple[dict[str, float], list[str]]] = [
    ({"answer_slack_s": 0}, ["generation.answer_slack_s is 0 s", "deadline_s (120 s)", "be paid"]),
    (
        {"longest_hold_s": 180},
        [
            "generation.deadline_s (120 s)",
            "generation.answer_slack_s (60 s)",
            "lane.longest_hold_s (180 s) must be longer than 180 s",
            "a second worker takes the page over while the first still waits for its answer",
        ],
    ),
    (
        {"lease_s": 301},
        ["lane.longest_hold_s (600 s) must be at least 2 times lane.lease_s (301 s)", "renewals"],
    ),
    (
        {"run_limit_s": 600},
        ["lane.run_limit_s (600 s) must be longer than lane.longest_hold_s (600 s)", "held in it"],
    ),
    (
        {"patience_s": 1800},
        ["lane.run_limit_s (1800 s) must be longer than lane.patience_s (1800 s)", "waits"],
    ),
    (
        {"page_deadline_s": 1800},
        ["lane.page_deadline_s (1800 s) must be longer than lane.run_limit_s (1800 s)", "is over"],
    ),
]


@pytest.mark.parametrize(("changes", "told"), ORDER, ids=[str(changes) for changes, _ in ORDER])
def test_a_bad_order_is_refused_with_both_keys_both_values_and_the_reason(
    changes: dict[str, float], told: list[str]
) -> None:
    sentence = why(**changes)
    assert sentence is not None
    for part in told:
        assert part in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"answer_slack_s": 0.1},
        {"longest_hold_s": 180.1},
        {"lease_s": 300},
        {"run_limit_s": 600.1},
        {"patience_s": 1799},
        {"page_deadline_s": 1801},
    ],
    ids=str,
)
def test_the_least_room_is_enough(changes: dict[str, float]) -> None:
    assert why(**changes) is None


def test_of_several_faults_the_shortest_limit_is_told_first() -> None:
    sentence = why(answer_slack_s=0, longest_hold_s=1, run_limit_s=1)
    assert sentence is not None
    assert sentence.startswith("generation.answer_slack_s")


@given(st.fixed_dictionaries({name: st.floats(0.1, 1e6) for name in GOOD}))
def test_what_is_taken_is_in_order(limits: dict[str, Any]) -> None:
    if why_out_of_order(**limits) is not None:
        return
    call_s, attempt_s = limits["deadline_s"], limits["deadline_s"] + limits["answer_slack_s"]
    hold_s, run_s, page_s = (
        limits[name] for name in ("longest_hold_s", "run_limit_s", "page_deadline_s")
    )
    assert call_s < attempt_s < hold_s < run_s < page_s
    assert limits["lease_s"] * LEASES_PER_HOLD <= hold_s
    assert limits["patience_s"] < run_s
