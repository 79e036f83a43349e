"""A hidden limit is found and used; rejections that have nothing to do with it change nothing."""

from dataclasses import replace

import pytest

from content_pipeline.core.throttling import (
    CONVICTION,
    CUT,
    EXPECTED_REJECTIONS,
    FLOOR,
    HOLD_CALLS,
    MEMORY_CALLS,
    MOST_TOLERATED,
    RELIEF,
    SETTLING_ROUNDS,
    SUPPOSED_BACKGROUND,
    TRIAL_ROUNDS,
    CallLimit,
)
from content_pipeline_tests.core.simulated_service import Service, simulate

MOST = 64
SEEDS = (1, 2)

USED = 0.9
REJECTED = 0.02
"""The goals: more of a hidden limit is used than this, and fewer calls are rejected."""


def always(at_once: int) -> Service:
    return Service(at_once=lambda _: at_once)


# --- against a simulated service ---------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at_once", [1, 2, 5, 16, 40, 60])
def test_a_hidden_limit_is_used_and_hardly_ever_met(at_once: int, seed: int) -> None:
    seen = simulate(always(at_once), seed=seed)
    assert seen.used_share >= USED
    assert seen.rejected_share < REJECTED


@pytest.mark.parametrize("at_once", [1, 5, 16, 40])
def test_a_service_that_takes_much_less_is_found_within_seconds(at_once: int) -> None:
    seen = simulate(always(at_once), until_s=61)
    met = next(when for when, limit in seen.limits if limit <= at_once)
    assert met < 5


@pytest.mark.parametrize("most", [2, 4, 16, MOST])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.09, 0.15])
def test_random_rejections_leave_the_limit_where_it_is(share: float, most: int) -> None:
    seen = simulate(Service(random_share=share), most=most)
    assert seen.used_share >= 0.85  # all, but for a cut by chance that is soon taken back
    assert seen.rejected_share == pytest.approx(share, rel=0.35)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at_once", [5, 16, 40])
def test_a_hidden_limit_is_found_among_random_rejections(at_once: int, seed: int) -> None:
    seen = simulate(Service(at_once=lambda _: at_once, random_share=0.09), seed=seed)
    assert seen.used_share >= 0.85
    assert seen.rejected_share < 0.09 + 0.04


def test_a_service_that_takes_less_than_before_is_heeded() -> None:
    seen = simulate(Service(at_once=lambda t: 40 if t < 60 else 8), since_s=70)
    assert seen.used_share >= USED
    assert seen.rejected_share < REJECTED


def test_a_service_that_takes_more_than_before_is_used() -> None:
    seen = simulate(Service(at_once=lambda t: 8 if t < 60 else 40), since_s=180, until_s=300)
    assert seen.used_share >= USED
    assert seen.rejected_share < REJECTED


def test_a_service_that_begins_to_reject_at_random_keeps_most_of_its_calls() -> None:
    """The limit may be cut once: what is new may have any cause."""
    begins = Service(random_share=0.09, random_from_s=60)
    seen = simulate(begins, most=16, since_s=60, until_s=300)
    assert seen.used_share >= 0.85


@pytest.mark.parametrize("per_s", [1.0, 5.0, 20.0])
def test_a_limit_of_calls_per_second_is_waited_out(per_s: float) -> None:
    """The announced waits do the work, and whatever is granted is used."""
    seen = simulate(Service(per_s=per_s, bucket=int(10 * per_s)))
    accepted = seen.calls - seen.rejected
    assert accepted >= 0.95 * per_s * 120


# --- one decision at a time --------------------------------------------------------------------


def rejections(limit: CallLimit, count: int, in_flight: int) -> CallLimit:
    for _ in range(count):
        limit = limit.after_rejection(in_flight)
    return limit


def holding(limit: int, *, background: float = 0.0, calls_left: int = 500) -> CallLimit:
    return CallLimit(limit=limit, most=MOST, background=background, calls_left=calls_left)


def trying(limit: int, fallback: int, *, background: float = 0.0) -> CallLimit:
    held = holding(limit, background=background, calls_left=TRIAL_ROUNDS * limit)
    return replace(held, fallback=fallback)


def test_a_rejection_alone_changes_no_limit() -> None:
    limit = holding(16)
    assert rejections(limit, 1, 16).limit == 16
    assert rejections(limit, int(CONVICTION), 16).limit == 16


def test_rejections_in_a_row_cut_the_limit_below_what_was_out() -> None:
    assert rejections(holding(40), 6, 40).limit == int(CUT * 40)
    assert rejections(holding(40), 6, 10).limit == int(CUT * 10)


@pytest.mark.parametrize(("out", "calls_left"), [(2, SETTLING_ROUNDS), (40, MEMORY_CALLS)])
def test_after_a_cut_the_service_is_watched_before_more_is_tried(out: int, calls_left: int) -> None:
    cut = rejections(holding(40), 6, out)
    assert (cut.calls_left, cut.background) == (calls_left, SUPPOSED_BACKGROUND)


def test_the_last_call_is_never_cut() -> None:
    assert rejections(holding(1), 100, 1).limit == 1


def test_a_burst_of_rejections_leads_straight_to_what_was_accepted() -> None:
    """64 calls begin, 5 are accepted; each rejected one is out no more when it is heard of."""
    limit = CallLimit(limit=64, most=64).after_calls(64)
    for out in range(64, 5, -1):
        limit = limit.after_rejection(out)
    assert 4 <= limit.limit <= 16


def test_calls_in_between_take_the_suspicion_away() -> None:
    limit = holding(16)
    for _ in range(100):
        limit = limit.after_rejection(16).after_calls(60, unused=1)
    assert limit.limit == 16


def test_a_background_of_rejections_is_learned_and_tolerated() -> None:
    limit = holding(MOST)
    for call in range(2000):
        limit = limit.after_calls(1)
        if call % 20 == 0:
            limit = limit.after_rejection(MOST)
    assert limit.background == pytest.approx(0.05, abs=0.01)
    assert limit.tolerated == pytest.approx(FLOOR + 0.1, abs=0.02)


def test_no_background_makes_a_quarter_in_vain_tolerable() -> None:
    assert holding(16, background=0.5).tolerated == MOST_TOLERATED


@pytest.mark.parametrize(("held", "tried"), [(1, 2), (5, 6), (10, 11), (40, 42), (63, 64)])
def test_after_its_calls_a_slightly_higher_limit_is_tried(held: int, tried: int) -> None:
    limit = holding(held, calls_left=10).after_calls(9)
    assert (limit.limit, limit.fallback) == (held, None)
    limit = limit.after_calls(1)
    assert (limit.limit, limit.fallback, limit.calls_left) == (tried, held, TRIAL_ROUNDS * tried)


def test_a_trial_that_goes_well_is_followed_by_the_next() -> None:
    limit = trying(6, 5).after_calls(24)
    assert (limit.limit, limit.fallback) == (7, 6)


def test_a_trial_that_goes_badly_is_taken_back_for_long() -> None:
    limit = rejections(trying(6, 5), 4, 6)
    assert (limit.limit, limit.fallback, limit.calls_left) == (5, None, HOLD_CALLS)


def test_what_is_rejected_in_a_trial_is_no_background() -> None:
    assert trying(6, 5, background=0.01).after_rejection(6).background == 0.01


def test_before_more_calls_are_tried_a_background_is_doubted_and_fewer_are() -> None:
    doubted = holding(40, background=0.1, calls_left=1).after_calls(1)
    assert (doubted.limit, doubted.fallback) == (32, 40)
    assert doubted.calls_left == pytest.approx(EXPECTED_REJECTIONS / 0.1, abs=3)
    assert holding(40, background=0.03, calls_left=1).after_calls(1).limit == 42
    assert holding(1, background=0.1, calls_left=1).after_calls(1).limit == 2


def test_fewer_calls_are_kept_when_they_make_rejections_rare() -> None:
    doubted = trying(32, 40, background=0.1)
    kept = rejections(doubted, 2, 32).after_calls(doubted.calls_left)
    assert (kept.limit, kept.fallback) == (32, None)
    assert kept.background == pytest.approx(0.1 * RELIEF)


def test_fewer_calls_are_given_up_when_as_much_is_rejected_and_more_are_tried() -> None:
    tried = rejections(trying(32, 40, background=0.1), 5, 32)
    assert (tried.limit, tried.fallback) == (42, 40)
    at_most = rejections(trying(51, MOST, background=0.1), 5, 51)
    assert (at_most.limit, at_most.fallback, at_most.calls_left) == (MOST, None, HOLD_CALLS)


def test_a_limit_at_its_most_is_not_tried_any_higher() -> None:
    limit = replace(trying(MOST, 61), calls_left=1).after_calls(5000)
    assert (limit.limit, limit.fallback, limit.calls_left) == (MOST, None, HOLD_CALLS)


def test_calls_that_leave_room_prove_nothing_about_the_limit() -> None:
    limit = holding(16, calls_left=10)
    assert limit.after_calls(100, unused=1).limit == 16
    assert limit.after_calls(100, unused=0).limit == 17


@pytest.mark.parametrize(
    ("before", "most", "limit"),
    [
        (CallLimit(limit=8, most=8), 64, 64),
        (CallLimit(limit=8, most=8), 4, 4),
        (CallLimit(limit=5, most=8), 64, 5),
        (CallLimit(limit=5, most=8), 4, 4),
        (CallLimit(limit=6, most=8, fallback=5), 4, 4),
    ],
)
def test_another_most_is_taken_over(before: CallLimit, most: int, limit: int) -> None:
    after = before.up_to(most)
    assert (after.limit, after.most) == (limit, most)
    assert after.fallback is None or after.fallback <= most
