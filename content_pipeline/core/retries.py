"""Whether, when and how often a failed attempt is tried again: one decision, as a value.

What belongs here: the policy per failure class and the pure decision. Nobody else retries: the
SDK makes one request per attempt, and Dagster never re-runs a page because of its failure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from content_pipeline.core.durations import in_words
from content_pipeline.core.failures import Failure, FailureClass

LONGEST_WAIT_S = 7 * 24 * 3600.0
"""A longer wait of a site file is a mistake and refused; a service may announce any."""


class RetryPolicy(BaseModel):
    """How one class of failure is retried. ``attempts`` counts the first try too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: Annotated[int, Field(ge=1, le=50)]
    first_wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 2.0
    max_wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 300.0
    then_dead_letter: bool = True
    """After the last try: dead-lettered with its history, or failed_terminal."""
    heed_retry_after: bool = True
    """Whether a wait that the service announces comes on top; else it is as if none were."""
    deadline_s: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None
    """All tries of the class begin within so many seconds of its first failure; None: no limit but
    the page's own deadline."""


DEFAULT_POLICIES: dict[FailureClass, RetryPolicy] = {
    FailureClass.NOT_SENT: RetryPolicy(attempts=6, first_wait_s=1, max_wait_s=60),
    FailureClass.TRANSIENT: RetryPolicy(attempts=4, first_wait_s=2, max_wait_s=120),
    FailureClass.THROTTLED: RetryPolicy(attempts=8, first_wait_s=5, max_wait_s=300),
    # one more paid try once the provider proved or time made certain that no answer will come
    FailureClass.UNCERTAIN: RetryPolicy(attempts=2, first_wait_s=0, max_wait_s=60),
    # the same request may well give a usable answer the second time; a third is wishful
    FailureClass.BAD_OUTPUT: RetryPolicy(attempts=2, first_wait_s=0, max_wait_s=10),
    FailureClass.STORAGE: RetryPolicy(attempts=5, first_wait_s=2, max_wait_s=60),
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
"""Used where a site file says nothing. ``budget`` has none: nothing was tried, and the page waits
for a new day or a higher cap, until its deadline."""

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
    reason: str | None = None
    """Why, for people, when it is not that the tries are used up."""


RetryDecision = RetryAfter | GiveUp


def policy_for(
    failure_class: FailureClass, policies: Mapping[FailureClass, RetryPolicy]
) -> RetryPolicy:
    """The site's policy for the class, or the default. There is none for ``budget``."""
    return policies.get(failure_class) or DEFAULT_POLICIES[failure_class]


def announced_wait_s(
    failure: Failure, policies: Mapping[FailureClass, RetryPolicy]
) -> float | None:
    """The wait that the service announced, in seconds, if the class's policy heeds it."""
    heeds = policy_for(failure.failure_class, policies).heed_retry_after
    return failure.retry_after_s if heeds else None


def decide(
    failure: Failure,
    *,
    failed_attempts: int,
    policies: Mapping[FailureClass, RetryPolicy],
    jitter: float,
    failing_for_s: float,
    page_left_s: float,
) -> RetryDecision:
    """What follows ``failure``.

    ``failed_attempts``: failed tries of this class so far, this one included.
    ``jitter``: uniform in [0, 1); full jitter, so a burst of failures does not return as one.
    ``failing_for_s``: seconds since the first of these tries failed.
    ``page_left_s``: seconds until the page's deadline, negative once it has passed.

    A wait that would end after a deadline is not ordered at all: never is a shorter one, which a
    service that asked for the longer one would be right to refuse.
    """
    policy = policy_for(failure.failure_class, policies)
    if failed_attempts >= policy.attempts:
        return GiveUp(dead_letter=policy.then_dead_letter)
    ceiling_s = min(policy.max_wait_s, policy.first_wait_s * 2.0 ** min(failed_attempts - 1, 30))
    announced_s = announced_wait_s(failure, policies)
    wait_s = ceiling_s * jitter + (announced_s or 0.0)
    late = _why_too_late(wait_s, announced_s, policy, failing_for_s, page_left_s)
    if late is not None:
        return GiveUp(dead_letter=policy.then_dead_letter, reason=late)
    return RetryAfter(wait_s=wait_s)


def _why_too_late(
    wait_s: float,
    announced_s: float | None,
    policy: RetryPolicy,
    failing_for_s: float,
    page_left_s: float,
) -> str | None:
    """Which deadline a wait would pass, for people; None when it passes none."""
    asked = f"the service asked to wait {in_words(announced_s)}" if announced_s else None
    if wait_s > page_left_s:
        wanted = asked or f"the next try would be in {in_words(wait_s)}"
        return f"{wanted}, {page_deadline_told(page_left_s)}"
    if policy.deadline_s is None or failing_for_s + wait_s <= policy.deadline_s:
        return None
    wanted = asked or f"it has failed so for {in_words(failing_for_s)}"
    return f"{wanted}, its tries must end {in_words(policy.deadline_s)} after the first failure"


def page_deadline_told(page_left_s: float) -> str:
    """Where the page's deadline lies, for people, as the end of a sentence."""
    if page_left_s <= 0:
        return "the page's deadline has passed"
    return f"the page's deadline is in {in_words(page_left_s)}"
