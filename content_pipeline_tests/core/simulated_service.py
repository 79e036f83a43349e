"""A service with limits of its own and a crowd of workers before it, on a simulated clock.

What belongs here: events, not time: a minute of forty calls at once takes a fraction of a second.
Workers do what the lane does: take every call that is free, and let go of one a moment after its
answer. Each draw comes from the seed.
"""

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from content_pipeline.core.throttling import CallLimit

LATENCY_MEDIAN_S = 0.4
LATENCY_SIGMA = 0.5
TO_SEND_S = (0.005, 0.015)
"""From the claim of a page to its call: reserving money, writing the intent."""
TO_SAVE_S = (0.003, 0.01)
"""From an answer to the moment at which its page counts no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a provider allows."""

    at_once: Callable[[float], int] = lambda _: 1_000_000
    """Calls that may be under way, at a second of the run."""
    random_share: float = 0.0
    """Share of calls that is rejected whatever else is going on."""
    random_from_s: float = 0.0
    per_s: float | None = None
    """Calls a second, refilled into a bucket of ``bucket``; beyond it, a wait is announced."""
    bucket: int = 1


@dataclass(slots=True)
class Outcome:
    """What was seen from ``since_s`` on."""

    since_s: float
    calls: int = 0
    rejected: int = 0
    busy_s: float = 0.0
    """Seconds of calls under way, all added up."""
    allowed_s: float = 0.0
    """The same of all calls that were allowed."""
    limits: list[tuple[float, int]] = field(default_factory=list)
    """Every limit and since when, from the start."""

    @property
    def rejected_share(self) -> float:
        return self.rejected / self.calls

    @property
    def used_share(self) -> float:
        return self.busy_s / self.allowed_s


class _Event(Enum):
    WAKE = auto()
    ARRIVES = auto()
    ANSWERED = auto()
    SAVED = auto()
    REJECTED = auto()


class _Run:
    def __init__(self, service: Service, limit: CallLimit, outcome: Outcome, seed: int) -> None:
        self.service, self.limit, self.outcome = service, limit, outcome
        self.random = random.Random(seed)
        self.events: list[tuple[float, int, _Event]] = []
        self.drawn = self.in_flight = self.under_way = 0
        self.now = self.paused_until = self.refilled_at = 0.0
        self.tokens = float(service.bucket)
        self.at(0.0, _Event.WAKE)

    def at(self, when: float, event: _Event) -> None:
        self.drawn += 1
        heapq.heappush(self.events, (when, self.drawn, event))

    def until(self, end_s: float) -> None:
        while self.events and self.events[0][0] < end_s:
            when, _, event = heapq.heappop(self.events)
            self.pass_to(when)
            self.happens(event)
            if when >= self.paused_until:
                self.claim()

    def pass_to(self, when: float) -> None:
        seconds = when - max(self.now, self.outcome.since_s)
        if seconds > 0:
            self.outcome.busy_s += seconds * self.under_way
            self.outcome.allowed_s += seconds * min(self.service.at_once(self.now), self.limit.most)
        self.now = when

    def happens(self, event: _Event) -> None:
        match event:
            case _Event.ARRIVES:
                self.arrives()
            case _Event.ANSWERED:
                self.under_way -= 1
                self.at(self.now + self.random.uniform(*TO_SAVE_S), _Event.SAVED)
            case _Event.SAVED:
                self.in_flight -= 1
            case _Event.REJECTED:
                self.in_flight -= 1
                self.learn(self.limit.after_rejection(self.in_flight + 1))

    def arrives(self) -> None:
        rejected = self.is_rejected()
        if self.now >= self.outcome.since_s:
            self.outcome.calls += 1
            self.outcome.rejected += rejected
        if rejected:
            self.at(self.now + self.random.uniform(*TO_SAVE_S), _Event.REJECTED)
            return
        self.under_way += 1
        latency_s = self.random.lognormvariate(math.log(LATENCY_MEDIAN_S), LATENCY_SIGMA)
        self.at(self.now + latency_s, _Event.ANSWERED)

    def is_rejected(self) -> bool:
        unlucky = self.random.random() < self.service.random_share
        if unlucky and self.now >= self.service.random_from_s:
            return True
        if self.service.per_s is not None:
            refill = (self.now - self.refilled_at) * self.service.per_s
            self.tokens = min(self.service.bucket, self.tokens + refill)
            self.refilled_at = self.now
            if self.tokens < 1:
                self.paused_until = self.now + math.ceil((1 - self.tokens) / self.service.per_s)
                self.at(self.paused_until, _Event.WAKE)
                return True
            self.tokens -= 1
        return self.under_way >= self.service.at_once(self.now)

    def claim(self) -> None:
        free = self.limit.limit - self.in_flight
        if free <= 0:
            return
        self.in_flight += free
        self.learn(self.limit.after_calls(free))
        for _ in range(free):
            self.at(self.now + self.random.uniform(*TO_SEND_S), _Event.ARRIVES)

    def learn(self, limit: CallLimit) -> None:
        if limit.limit != self.limit.limit:
            self.outcome.limits.append((self.now, limit.limit))
        self.limit = limit


def simulate(
    service: Service, *, most: int = 64, since_s: float = 60, until_s: float = 180, seed: int = 1
) -> Outcome:
    """``until_s`` seconds of work without end; counted from ``since_s`` on."""
    outcome = Outcome(since_s=since_s)
    _Run(service, CallLimit(limit=most, most=most), outcome, seed).until(until_s)
    return outcome
