"""A service with limits of its own and workers before it, on a simulated clock.

What belongs here: events, not time: a minute of forty calls at once takes a fraction of a second.
Workers do what the lane does: a moment after a call of theirs has ended, and every quarter of a
second, they hand over what became of their calls and take every call that is free. They know only
what was counted at their own last claim. Each draw comes from the seed.
"""

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from content_pipeline.core.throttling import CallLimit, Outcome

LATENCY_SIGMA = 0.5
TO_CLAIM_S = (0.002, 0.006)
"""From a call's end to the claim that follows it."""
POLL_S = 0.25

Range = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a provider allows, and how long it takes."""

    at_once: Callable[[float], int] = lambda _: 1_000_000
    """Calls that may be under way, at a second of the run."""
    random_share: Callable[[float], float] = lambda _: 0.0
    """Share of calls that is rejected whatever else is going on."""
    per_s: float | None = None
    """Calls a second, refilled into a bucket of ``bucket``; beyond it, a wait is announced."""
    bucket: int = 1
    latency_median_s: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """The workers, and how long their pages count before and after the call itself."""

    workers: int = 1
    most: int = 64
    """Calls at once that the site allows."""
    to_send_s: Range = (0.005, 0.015)
    """From the claim of a page to its call: reserving money, writing the intent."""
    to_save_s: Range = (0.003, 0.01)
    """From an answer to the moment at which its page counts no more."""
    learns: bool = True
    """False: always as many calls as the site allows."""


BUSY = Crowd(workers=2, to_send_s=(0.02, 0.06), to_save_s=(0.01, 0.04))
"""Two processes on a machine with other things to do."""


@dataclass(slots=True)
class Seen:
    """What was seen from ``since_s`` on."""

    since_s: float
    calls: int = 0
    rejected: int = 0
    busy_s: float = 0.0
    """Seconds of calls under way, all added up."""
    allowed_s: float = 0.0
    """The same if there had always been as many as were allowed."""
    limits: list[tuple[float, int]] = field(default_factory=list)
    """Every limit and since when, from the start."""

    @property
    def rejected_share(self) -> float:
        return self.rejected / self.calls

    @property
    def used_share(self) -> float:
        return self.busy_s / self.allowed_s


@dataclass(slots=True)
class _Worker:
    most: int
    out: int = 0
    counted: int = 0
    """Calls that were out on the account at its last claim."""
    outcomes: list[Outcome] = field(default_factory=list)
    will_claim: bool = False


class _Run:
    def __init__(self, service: Service, crowd: Crowd, seen: Seen, seed: int) -> None:
        self.service, self.crowd, self.seen = service, crowd, seen
        self.random = random.Random(seed)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.drawn = self.out = self.under_way = 0
        self.now = self.paused_until = self.refilled_at = 0.0
        self.tokens = float(service.bucket)
        self.limit = CallLimit() if crowd.learns else CallLimit(limit=crowd.most)
        for _ in range(crowd.workers):
            self.poll(_Worker(most=math.ceil(crowd.most / crowd.workers)))

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        self.drawn += 1
        heapq.heappush(self.events, (self.now + seconds, self.drawn, event))

    def until(self, end_s: float) -> None:
        while self.events[0][0] < end_s:
            when, _, happens = heapq.heappop(self.events)
            seconds = when - max(self.now, self.seen.since_s)
            if seconds > 0:
                allowed = min(self.service.at_once(self.now), self.crowd.most)
                self.seen.busy_s += seconds * self.under_way
                self.seen.allowed_s += seconds * allowed
            self.now = when
            happens()

    # --- the workers ---

    def poll(self, worker: _Worker) -> None:
        self.soon(worker)
        self.after(POLL_S, lambda: self.poll(worker))

    def soon(self, worker: _Worker) -> None:
        if not worker.will_claim:
            worker.will_claim = True
            self.after(self.random.uniform(*TO_CLAIM_S), lambda: self.claim(worker))

    def claim(self, worker: _Worker) -> None:
        worker.will_claim = False
        if self.now < self.paused_until:
            return
        if self.crowd.learns:
            self.learn(self.limit.after(worker.outcomes))
            worker.outcomes = []
        free = min(self.limit.limit, self.crowd.most) - self.out
        claimed = max(0, min(free, worker.most - worker.out))
        self.out += claimed
        worker.out += claimed
        worker.counted = self.out
        for _ in range(claimed):
            self.after(self.random.uniform(*self.crowd.to_send_s), lambda: self.call(worker))

    def learn(self, limit: CallLimit) -> None:
        if limit.limit != self.limit.limit:
            self.seen.limits.append((self.now, limit.limit))
        self.limit = limit

    def ended(self, worker: _Worker, outcome: Outcome) -> None:
        self.out -= 1
        worker.out -= 1
        worker.outcomes.append(outcome)
        self.soon(worker)

    # --- the service ---

    def call(self, worker: _Worker) -> None:
        outcome = Outcome(out=worker.counted, rejected=self.is_rejected())
        to_save_s = self.random.uniform(*self.crowd.to_save_s)
        if self.now >= self.seen.since_s:
            self.seen.calls += 1
            self.seen.rejected += outcome.rejected
        if outcome.rejected:
            self.after(to_save_s, lambda: self.ended(worker, outcome))
            return
        self.under_way += 1

        def answer() -> None:
            self.under_way -= 1
            self.after(to_save_s, lambda: self.ended(worker, outcome))

        median_s = self.service.latency_median_s
        self.after(self.random.lognormvariate(math.log(median_s), LATENCY_SIGMA), answer)

    def is_rejected(self) -> bool:
        if self.random.random() < self.service.random_share(self.now):
            return True
        if self.service.per_s is not None:
            refill = (self.now - self.refilled_at) * self.service.per_s
            self.tokens = min(self.service.bucket, self.tokens + refill)
            self.refilled_at = self.now
            if self.tokens < 1:
                self.paused_until = self.now + math.ceil((1 - self.tokens) / self.service.per_s)
                return True
            self.tokens -= 1
        return self.under_way >= self.service.at_once(self.now)


def simulate(
    service: Service,
    crowd: Crowd = Crowd(),
    *,
    since_s: float = 60,
    until_s: float = 180,
    seed: int = 1,
) -> Seen:
    """``until_s`` seconds of work without end; counted from ``since_s`` on."""
    seen = Seen(since_s=since_s)
    _Run(service, crowd, seen, seed).until(until_s)
    return seen
