"""Whether, when and how often a failed attempt is tried again: one decision, as a value.

What belongs here: the policy per failure class and the pure decision. Nobody else retries: the
SDK makes one request per attempt, and Dagster never re-runs a page because of its failure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from content_pipeline.core.failures import Failure, FailureClass

LONGEST_WAIT_S = 7 * 24 * 3600.0
"""A longer wait is a mistake: a site file's is refused, an announced one is cut to a week."""


class RetryPolicy(BaseModel):
    """How one class of failure is retried. ``attempts`` counts the first try too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: Annotated[int, Field(ge=1, le=50)]
    first_wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 2.0
    max_wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 300.0
    then_dead_letter: bool = True
    """After the last try: dead-lettered with its history, or failed_terminal."""


DEFAULT_POLICIES: dict[FailureClass, RetryPolicy] = {
    FailureClass.NOT_SENT: RetryPolicy(attempts=6, first_wait_s=1, max_wait_s=60),
    FailureClass.TRANSIENT: RetryPolicy(attempts=4, first_wait_s=2, max_wait_s=120),
    FailureClass.THROTTLED: RetryPolicy(attempts=8, first_wait_s=5, max_wait_s=300),
    # one more paid try once the provider proved or time made certain that no answer will come
    FailureClass.UNCERTAIN: RetryPolicy(attempts=2, first_wait_s=0, max_wait_s=60),
    # the same request may well give a usable answer the second time; a third is wishful
    FailureClass.BAD_OUTPUT: RetryPolicy(attempts=2, first_wait_s=0, max_wait_s=10),
    FailureClass.STORAGE: RetryPolicy(attempts=5, first_wait_s=2, max_wait_s=60),
    # 10 waits of up to a day: a page may sit out a spent day budget for over a week
    FailureClass.BUDGET: RetryPolicy(attempts=10, first_wait_s=60, max_wait_s=86_400),
    FailureClass.QUOTA: RetryPolicy(attempts=50, first_wait_s=1, max_wait_s=60),
    FailureClass.AUTH: RetryPolicy(attempts=50, first_wait_s=1, max_wait_s=60),
    FailureClass.REQUEST: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.POLICY: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.INVALID_INPUT: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.INVALID_PAGE: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.TERMINAL: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.CONFLICT: RetryPolicy(attempts=1, then_dead_letter=False),
    FailureClass.INTERNAL: RetryPolicy(attempts=1, then_dead_letter=False),
}
"""Used where a site file says nothing."""

CLOSES_CIRCUIT = frozenset({FailureClass.QUOTA, FailureClass.AUTH})
"""Every further call on the account would fail alike: none is made until a person acts."""


TRIED_ONCE = frozenset(
    {
        FailureClass.POLICY,
        FailureClass.INVALID_INPUT,
        FailureClass.INVALID_PAGE,
        FailureClass.TERMINAL,
        FailureClass.CONFLICT,
    }
)
"""The same try would end the same: a site may not ask for more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAfter:
    """Try again, not before ``wait_s`` seconds have passed on the database's clock."""

    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Do not try again by itself."""

    dead_letter: bool


RetryDecision = RetryAfter | GiveUp


def policy_for(
    failure_class: FailureClass, policies: Mapping[FailureClass, RetryPolicy]
) -> RetryPolicy:
    """The site's policy for the class, or the default."""
    return policies.get(failure_class) or DEFAULT_POLICIES[failure_class]


def decide(
    failure: Failure,
    *,
    failed_attempts: int,
    policies: Mapping[FailureClass, RetryPolicy],
    jitter: float,
) -> RetryDecision:
    """What follows ``failure``.

    ``failed_attempts``: failed tries of this class so far, this one included.
    ``jitter``: uniform in [0, 1); full jitter, so a burst of failures does not return as one.
    """
    policy = policy_for(failure.failure_class, policies)
    if failed_attempts >= policy.attempts:
        return GiveUp(dead_letter=policy.then_dead_letter)
    ceiling_s = min(policy.max_wait_s, policy.first_wait_s * 2.0 ** min(failed_attempts - 1, 30))
    wait_s = ceiling_s * jitter
    if failure.retry_after_s is not None:
        wait_s += min(failure.retry_after_s, LONGEST_WAIT_S)
    return RetryAfter(wait_s=wait_s)
