"""How many calls a service takes at once, learned from what it rejects: decisions as values.

What belongs here: telling a service that is given too much from one that rejects now and then for
reasons of its own. Only the first is helped by fewer calls: on 9 % of random rejections, a rule
that cut its limit at each of them came to rest at 2 of 16 calls. So a rejection alone means nothing
here; what counts is whether the share of rejections grows with the number of calls.

- While the limit **holds**, the share that is rejected all the same is the *background*.
- Every so often a limit 5 % higher is **tried** for a few rounds, and kept unless clearly more than
  the background is rejected. So a hidden limit is met in about one call of 250.
- A background of more than 4 % is doubted first: a limit 20 % lower is tried, and kept if that
  makes rejections rare. Those that come at random stay, and so does the limit.
- *Suspicion* (a cumulative sum, CUSUM) says what is clear: a rejection adds one, a call takes away
  what would be tolerated. It ends a trial, or cuts a limit that held until the service changed.
"""

import math
from dataclasses import dataclass, replace

TRIAL_STEP = 0.05
"""A trial goes up by this share, and at least by one call: so much of a hidden limit stays unused
at worst, and from 8 up to 40, after a service has grown, it takes about a hundred rounds."""

TRIAL_ROUNDS = 4
"""Calls of a trial for each call at once: enough to see one call too many among forty."""

HOLD_CALLS = 1000
"""Calls between a failed trial and the next; a trial that fails costs about five rejections."""

SETTLING_ROUNDS = 40
"""Calls after a cut for each call at once, at most ``MEMORY_CALLS``, before a trial: by then the
background is known, and a limit that was cut to one call by chance is not kept there for long."""

CUT = 0.8
"""Kept of a limit at which too much is rejected: from 64 down to 5 it takes 11 cuts, which a single
burst brings about, as each rejected call of the burst is one that is not out any more."""

CONVICTION = 3.0
"""Rejections beyond the tolerated ones that are no coincidence any more."""

FLOOR = 0.02
"""Share of rejections that is always tolerated."""

MOST_TOLERATED = 0.25
"""Share of rejections that is never tolerated: a quarter in vain is worth less than fewer calls."""

DOUBTFUL = 0.04
"""A background above this may in truth be calls that are too many: fewer are tried."""

RELIEF = 1 / 3
"""What may be left of the background in a trial with fewer calls. At 0.5 a limit of 4 stayed at 3
for a minute by chance."""

EXPECTED_REJECTIONS = 20
"""What the background would bring in a trial with fewer calls: enough to see that it does not."""

FEWEST_IN_DOUBT = 4
"""A trial never goes down below this: of few calls one is much, and one too many shows clearly."""

MEMORY_CALLS = 200
"""The background is an average over about so many calls."""

SUPPOSED_BACKGROUND = 0.1
"""Of a service, or a limit, that is not known yet: higher than most, so that nobody is suspected
before being watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """What is known of a service's capacity."""

    limit: int
    """Calls allowed at once."""
    most: int
    """Never more than this, however well it goes."""
    fallback: int | None = None
    """While ``limit`` is tried: the limit to go back to."""
    calls_left: int = HOLD_CALLS
    """Calls until the next trial begins, or until this one has succeeded."""
    background: float = SUPPOSED_BACKGROUND
    """Share of calls that is rejected at a limit that holds."""
    suspicion: float = 0.0
    """Rejections that nothing but the number of calls explains."""

    @property
    def tolerated(self) -> float:
        """Share of rejections that says nothing against the limit."""
        if self.fallback is not None and self.limit < self.fallback:
            return self.background * RELIEF
        return min(MOST_TOLERATED, FLOOR + 2 * self.background)

    def up_to(self, most: int) -> "CallLimit":
        """The same service when somebody allows ``most`` calls."""
        if self.limit == self.most:
            return replace(self, limit=most, most=most, fallback=None)
        fallback = None if self.fallback is None else min(self.fallback, most)
        return replace(self, limit=min(self.limit, most), most=most, fallback=fallback)

    def after_calls(self, count: int, *, unused: int = 0) -> "CallLimit":
        """``count`` calls begin, and the limit would have admitted ``unused`` more."""
        seen = replace(self, suspicion=max(0.0, self.suspicion - count * self.tolerated))
        if self.fallback is None:
            forgotten = (1 - 1 / MEMORY_CALLS) ** count
            seen = replace(seen, background=self.background * forgotten)
        if unused:
            return seen  # a limit that is not reached is not tried out
        if seen.calls_left > count:
            return replace(seen, calls_left=seen.calls_left - count)
        if seen.fallback is None:
            return seen._try_fewer() if seen.background > DOUBTFUL else seen._try_more()
        if seen.limit < seen.fallback:
            return seen._hold(seen.limit, background=RELIEF * seen.background)
        return seen._try_more()

    def after_rejection(self, in_flight: int) -> "CallLimit":
        """A call was rejected while ``in_flight`` were out, itself included."""
        seen = replace(self, suspicion=self.suspicion + 1)
        if self.fallback is None:
            seen = replace(seen, background=self.background + 1 / MEMORY_CALLS)
        # Of calls that began together the rejected ones are heard of first: what is tolerated of a
        # full round is no ground for suspicion yet.
        if seen.suspicion < CONVICTION + self.tolerated * self.limit:
            return seen
        if seen.fallback is None:
            return seen._hold(max(1, math.floor(CUT * min(seen.limit, in_flight))))
        if seen.limit < seen.fallback:
            return replace(seen, limit=seen.fallback)._try_more()
        return replace(
            seen, limit=seen.fallback, fallback=None, calls_left=HOLD_CALLS, suspicion=0.0
        )

    def _hold(self, limit: int, background: float = SUPPOSED_BACKGROUND) -> "CallLimit":
        """Settle at a lower limit, and soon look whether it is too low."""
        calls = min(MEMORY_CALLS, SETTLING_ROUNDS * limit)
        return CallLimit(limit=limit, most=self.most, calls_left=calls, background=background)

    def _try_more(self) -> "CallLimit":
        tried = min(self.most, self.limit + max(1, round(TRIAL_STEP * self.limit)))
        if tried == self.limit:
            return replace(self, fallback=None, calls_left=HOLD_CALLS)
        return self._try(tried, TRIAL_ROUNDS * tried)

    def _try_fewer(self) -> "CallLimit":
        tried = math.floor(CUT * self.limit)
        if tried < FEWEST_IN_DOUBT:
            return self._try_more()
        return self._try(tried, round(EXPECTED_REJECTIONS / self.background))

    def _try(self, limit: int, calls: int) -> "CallLimit":
        return replace(self, limit=limit, fallback=self.limit, calls_left=calls, suspicion=0.0)
