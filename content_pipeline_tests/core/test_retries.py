import math
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
    announced_wait_s,
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
    failing_for_s: float = 0,
    page_left_s: float = math.inf,
) -> RetryDecision:
    failure = Failure(failure_class=failure_class, message="failed", retry_after_s=retry_after_s)
    return decide(
        failure,
        failed_attempts=failed_attempts,
        policies=own,
        jitter=jitter,
        failing_for_s=failing_for_s,
        page_left_s=page_left_s,
    )


def waits(failure_class: FailureClass) -> list[float]:
    """The longest wait after each failed try, until the end; no time limits it."""
    found = []
    for failed in range(1, 51):
        decision = after(failure_class, failed)
        if isinstance(decision, GiveUp):
            break
        found.append(decision.wait_s)
    return found


def test_every_class_has_a_policy_but_the_one_that_nothing_was_tried_for() -> None:
    assert set(FailureClass) - DEFAULT_POLICIES.keys() == {FailureClass.BUDGET}
    assert all(policy.heed_retry_after for policy in DEFAULT_POLICIES.values())


@pytest.mark.parametrize(
    ("failure_class", "ceilings"),
    [
        (FailureClass.NOT_SENT, [1, 2, 4, 8, 16]),
        (FailureClass.TRANSIENT, [2, 4, 8]),
        (FailureClass.THROTTLED, [5, 10, 20, 40, 80, 160, 300]),
        (FailureClass.UNCERTAIN, [0]),
        (FailureClass.BAD_OUTPUT, [0]),
        (FailureClass.STORAGE, [2, 4, 8, 16]),
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
    final = {name for name in DEFAULT_POLICIES if not waits(name)}
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
    for name in DEFAULT_POLICIES:
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
        (4 * LONGEST_WAIT_S, 0.0, 4 * LONGEST_WAIT_S),
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


# --- deadlines ----------------------------------------------------------------------------------

HOUR_S = 3600.0
STUBBORN = {
    FailureClass.THROTTLED: RetryPolicy(
        attempts=9, first_wait_s=10, max_wait_s=600, heed_retry_after=False
    )
}
IMPATIENT = {
    FailureClass.THROTTLED: RetryPolicy(
        attempts=9, first_wait_s=60, max_wait_s=60, deadline_s=HOUR_S, then_dead_letter=False
    )
}


def test_an_announced_wait_that_passes_the_pages_deadline_ends_the_tries() -> None:
    decision = after(FailureClass.THROTTLED, 1, retry_after_s=3 * HOUR_S, page_left_s=HOUR_S)
    assert decision == GiveUp(
        dead_letter=True,
        reason="the service asked to wait 3 h, the page's deadline is in 1 h",
    )


@given(
    announced_s=st.floats(0, 1e9),
    page_left_s=st.floats(-1e6, 1e9),
    jitter=jitters,
    failed=st.integers(1, 7),
    failing_for_s=st.floats(0, 1e6),
    deadline_s=st.none() | st.floats(1, 1e9),
)
def test_a_page_waits_as_long_as_it_was_told_or_not_at_all(
    announced_s: float,
    page_left_s: float,
    jitter: float,
    failed: int,
    failing_for_s: float,
    deadline_s: float | None,
) -> None:
    policy = RetryPolicy(attempts=8, first_wait_s=5, max_wait_s=300, deadline_s=deadline_s)
    decision = after(
        FailureClass.THROTTLED,
        failed,
        jitter=jitter,
        retry_after_s=announced_s,
        own={FailureClass.THROTTLED: policy},
        failing_for_s=failing_for_s,
        page_left_s=page_left_s,
    )
    if isinstance(decision, RetryAfter):
        assert announced_s <= decision.wait_s <= page_left_s
        assert deadline_s is None or failing_for_s + decision.wait_s <= deadline_s
    else:
        assert decision.reason
        longest_s = announced_s + 300
        too_late = longest_s > page_left_s
        assert too_late or (deadline_s is not None and failing_for_s + longest_s > deadline_s)


@pytest.mark.parametrize(
    ("page_left_s", "reason"),
    [
        (1, "the next try would be in 2 s, the page's deadline is in 1 s"),
        (0, "the next try would be in 2 s, the page's deadline has passed"),
        (-5, "the next try would be in 2 s, the page's deadline has passed"),
    ],
)
def test_a_wait_of_our_own_that_passes_the_pages_deadline_ends_the_tries(
    page_left_s: float, reason: str
) -> None:
    decision = after(FailureClass.TRANSIENT, 1, page_left_s=page_left_s)
    assert decision == GiveUp(dead_letter=True, reason=reason)
    assert after(FailureClass.TRANSIENT, 1, page_left_s=2) == RetryAfter(wait_s=2)


def test_even_a_try_at_once_comes_too_late_after_the_deadline() -> None:
    assert after(FailureClass.UNCERTAIN, 1, page_left_s=0.1) == RetryAfter(wait_s=0)
    assert isinstance(after(FailureClass.UNCERTAIN, 1, page_left_s=-0.1), GiveUp)


@pytest.mark.parametrize(
    ("failing_for_s", "announced_s", "decision"),
    [
        (0, None, RetryAfter(wait_s=60)),
        (HOUR_S - 60, None, RetryAfter(wait_s=60)),
        (
            HOUR_S - 59,
            None,
            GiveUp(
                dead_letter=False,
                reason="it has failed so for 59 min 1 s, its tries must end 1 h after the first "
                "failure",
            ),
        ),
        (
            0,
            2 * HOUR_S,
            GiveUp(
                dead_letter=False,
                reason="the service asked to wait 2 h, its tries must end 1 h after the first "
                "failure",
            ),
        ),
    ],
)
def test_a_class_with_a_deadline_of_its_own_ends_with_it(
    failing_for_s: float, announced_s: float | None, decision: RetryDecision
) -> None:
    found = after(
        FailureClass.THROTTLED,
        1,
        retry_after_s=announced_s,
        own=IMPATIENT,
        failing_for_s=failing_for_s,
    )
    assert found == decision


def test_the_last_try_is_the_last_whatever_time_is_left() -> None:
    assert after(FailureClass.TRANSIENT, 4, page_left_s=-1) == GiveUp(dead_letter=True)


def test_a_policy_may_ignore_what_the_service_announces() -> None:
    decision = after(FailureClass.THROTTLED, 1, retry_after_s=HOUR_S, own=STUBBORN)
    assert decision == RetryAfter(wait_s=10)
    in_time = after(
        FailureClass.THROTTLED, 1, retry_after_s=HOUR_S, own=STUBBORN, page_left_s=HOUR_S / 2
    )
    assert in_time == RetryAfter(wait_s=10)


@pytest.mark.parametrize(
    ("failure_class", "announced_s", "heeded_s"),
    [
        (FailureClass.THROTTLED, 30.0, None),
        (FailureClass.TRANSIENT, 30.0, 30.0),
        (FailureClass.TRANSIENT, None, None),
    ],
)
def test_what_is_heeded_is_decided_class_by_class(
    failure_class: FailureClass, announced_s: float | None, heeded_s: float | None
) -> None:
    failure = Failure(failure_class=failure_class, message="m", retry_after_s=announced_s)
    assert announced_wait_s(failure, STUBBORN) == heeded_s


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
        {"attempts": 2, "deadline_s": 0},
        {"attempts": 2, "deadline_s": float("inf")},
        {"attempts": 2, "heed_retry_after": "perhaps"},
        {},
    ],
    ids=str,
)
def test_a_policy_that_could_not_be_kept_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RetryPolicy.model_validate(fields)
