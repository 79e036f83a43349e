from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.retries import (
    CLOSES_CIRCUIT,
    DEFAULT_POLICIES,
    LONGEST_WAIT_S,
    GiveUp,
    RetryAfter,
    RetryDecision,
    RetryPolicy,
    decide,
    policy_for,
)

ALMOST_ONE = 1 - 2**-53

NO_POLICIES: Mapping[FailureClass, RetryPolicy] = {}

policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 50),
    first_wait_s=st.floats(0, LONGEST_WAIT_S),
    max_wait_s=st.floats(0, LONGEST_WAIT_S),
    then_dead_letter=st.booleans(),
)
jitters = st.floats(0, 1, exclude_max=True)


def after(
    failure_class: FailureClass,
    failed_attempts: int,
    *,
    jitter: float = 1.0,
    retry_after_s: float | None = None,
    own: Mapping[FailureClass, RetryPolicy] = NO_POLICIES,
) -> RetryDecision:
    failure = Failure(failure_class=failure_class, message="failed", retry_after_s=retry_after_s)
    return decide(failure, failed_attempts=failed_attempts, policies=own, jitter=jitter)


def waits(failure_class: FailureClass) -> list[float]:
    """The longest wait after each failed try, until the end."""
    found = []
    for failed in range(1, 51):
        decision = after(failure_class, failed)
        if isinstance(decision, GiveUp):
            break
        found.append(decision.wait_s)
    return found


def test_every_class_has_a_policy() -> None:
    assert DEFAULT_POLICIES.keys() == set(FailureClass)


@pytest.mark.parametrize(
    ("failure_class", "ceilings"),
    [
        (FailureClass.NOT_SENT, [1, 2, 4, 8, 16]),
        (FailureClass.TRANSIENT, [2, 4, 8]),
        (FailureClass.THROTTLED, [5, 10, 20, 40, 80, 160, 300]),
        (FailureClass.UNCERTAIN, [0]),
        (FailureClass.BAD_OUTPUT, [0]),
        (FailureClass.STORAGE, [2, 4, 8, 16]),
        (FailureClass.BUDGET, [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360]),
        (FailureClass.QUOTA, [1, 2, 4, 8, 16, 32, *[60] * 43]),
        (FailureClass.AUTH, [1, 2, 4, 8, 16, 32, *[60] * 43]),
        (FailureClass.REQUEST, []),
        (FailureClass.POLICY, []),
        (FailureClass.INVALID_INPUT, []),
        (FailureClass.INVALID_PAGE, []),
        (FailureClass.TERMINAL, []),
        (FailureClass.CONFLICT, []),
        (FailureClass.INTERNAL, []),
    ],
)
def test_waits_double_up_to_a_ceiling(failure_class: FailureClass, ceilings: list[float]) -> None:
    assert waits(failure_class) == ceilings


def test_what_asking_again_cannot_change_goes_to_a_person_at_once() -> None:
    final = {name for name in FailureClass if not waits(name)}
    assert final == {
        FailureClass.REQUEST,
        FailureClass.POLICY,
        FailureClass.INVALID_INPUT,
        FailureClass.INVALID_PAGE,
        FailureClass.TERMINAL,
        FailureClass.CONFLICT,
        FailureClass.INTERNAL,
    }
    assert all(after(name, 1) == GiveUp(dead_letter=False) for name in final)


def test_what_failed_too_often_is_dead_lettered_with_its_history() -> None:
    for name in FailureClass:
        if waits(name):
            assert after(name, 50) == GiveUp(dead_letter=True)


def test_an_answer_that_was_paid_for_is_asked_for_at_most_twice() -> None:
    for name in (FailureClass.UNCERTAIN, FailureClass.BAD_OUTPUT):
        assert DEFAULT_POLICIES[name].attempts == 2


def test_a_sites_own_policy_comes_first() -> None:
    own = {FailureClass.TRANSIENT: RetryPolicy(attempts=2, first_wait_s=9, then_dead_letter=False)}
    assert policy_for(FailureClass.TRANSIENT, own) is own[FailureClass.TRANSIENT]
    assert policy_for(FailureClass.STORAGE, own) is DEFAULT_POLICIES[FailureClass.STORAGE]
    assert after(FailureClass.TRANSIENT, 1, own=own) == RetryAfter(wait_s=9)
    assert after(FailureClass.TRANSIENT, 2, own=own) == GiveUp(dead_letter=False)


@given(policy=policies, failed=st.integers(1, 50), jitter=jitters)
def test_full_jitter_spreads_from_nothing_to_the_ceiling(
    policy: RetryPolicy, failed: int, jitter: float
) -> None:
    own = {FailureClass.TRANSIENT: policy}
    decision = after(FailureClass.TRANSIENT, failed, jitter=jitter, own=own)
    if failed >= policy.attempts:
        assert decision == GiveUp(dead_letter=policy.then_dead_letter)
        return
    ceiling = after(FailureClass.TRANSIENT, failed, jitter=1.0, own=own)
    assert isinstance(decision, RetryAfter)
    assert isinstance(ceiling, RetryAfter)
    assert 0 <= decision.wait_s <= ceiling.wait_s <= policy.max_wait_s
    assert decision.wait_s == pytest.approx(ceiling.wait_s * jitter)


@given(policy=policies, jitter=jitters)
def test_a_later_failure_never_has_a_lower_ceiling(policy: RetryPolicy, jitter: float) -> None:
    own = {FailureClass.TRANSIENT: policy.model_copy(update={"attempts": 50})}
    found = [
        after(FailureClass.TRANSIENT, failed, jitter=jitter, own=own) for failed in range(1, 50)
    ]
    seconds = [decision.wait_s for decision in found if isinstance(decision, RetryAfter)]
    assert seconds == sorted(seconds)
    assert len(seconds) == 49


def test_a_burst_of_failures_does_not_come_back_as_one() -> None:
    draws = {after(FailureClass.THROTTLED, 3, jitter=number / 1000) for number in range(1000)}
    assert len(draws) == 1000


@pytest.mark.parametrize(
    ("announced_s", "jitter", "wait_s"),
    [
        (30, 0.0, 30),
        (30, 0.5, 32.5),
        (30, ALMOST_ONE, 35),
        (0, 0.5, 2.5),
        (LONGEST_WAIT_S, 0.0, LONGEST_WAIT_S),
        (1e30, 0.0, LONGEST_WAIT_S),
    ],
)
def test_an_announced_wait_comes_on_top_and_is_never_cut_short(
    announced_s: float, jitter: float, wait_s: float
) -> None:
    decision = after(FailureClass.THROTTLED, 1, jitter=jitter, retry_after_s=announced_s)
    assert isinstance(decision, RetryAfter)
    assert decision.wait_s == pytest.approx(wait_s)


def test_an_announced_wait_gives_no_further_try() -> None:
    assert after(FailureClass.THROTTLED, 8, retry_after_s=1) == GiveUp(dead_letter=True)


def test_account_troubles_halt_a_site_and_nothing_else_does() -> None:
    assert {FailureClass.QUOTA, FailureClass.AUTH} == CLOSES_CIRCUIT


@pytest.mark.parametrize(
    "fields",
    [
        {"attempts": 0},
        {"attempts": 51},
        {"attempts": 2, "first_wait_s": -1},
        {"attempts": 2, "first_wait_s": float("inf")},
        {"attempts": 2, "first_wait_s": float("nan")},
        {"attempts": 2, "max_wait_s": LONGEST_WAIT_S + 1},
        {"attempts": 2, "max_wait": 3},
        {},
    ],
    ids=str,
)
def test_a_policy_that_could_not_be_kept_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        RetryPolicy.model_validate(fields)
