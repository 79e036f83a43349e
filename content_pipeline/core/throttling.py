"""How many calls a service takes at once, learned from what it rejects: decisions as values.

What belongs here: telling a service that is given too much, which fewer calls would help, from one
that rejects now and then for reasons of its own. The rule is this:

- Of each call it is known how many were out when it began, and whether it was rejected. Where a
  *step* (hardly rejected up to so many, often with more) explains this clearly better than one
  share for all, the limit is the foot of the step; elsewhere each success allows one call more.
- What was seen is forgotten by and by, what lies above a step the sooner the clearer it was: so a
  limit that was met is tried again after about a thousand calls, which costs a few rejections.
- Where many are rejected and few calls began with fewer out, fewer are made until it can be told
  whether that helps. Rejections that come at random stay, and so does the limit.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

START = 8
"""Calls at once on an account that nobody has called: what one process makes by default. From here
the limit doubles in the time that a call takes."""

MEMORY_CALLS = 1000
"""After so many calls, what was seen counts 1/e."""

MEMORY_S = 1800.0
"""And after so many seconds: a service that makes a call in 30 s is tried again today as well."""

STEP_WIDTH = 1.06
"""Numbers are told apart one by one up to 17, then in steps of 6 %: so much may stay unused."""

MOST_KNOWN = 10_000
"""No limit is learned above this: more than twice what a site may allow."""

CLEAR = 5.0
"""Logarithm of how much better a step must explain what was seen: with one call more, two are
rejected in a row after twenty successes, or one after a hundred. Chance brings that about now and
then; what is seen below the step then refutes it."""

CERTAIN = 12.0
"""No step is believed more than this, however many were rejected: after an outage the calls above
it would not be tried again for hours."""

SUPPOSED_CALLS = 10.0
SUPPOSED_REJECTIONS = 0.2
"""Taken as seen with nothing else out: a service that is not known and rejects most of its calls is
given too much. It must be little, or a step of a few per cent is never clear."""

DOUBTFUL_REJECTIONS = 3.0
DOUBTFUL_SHARE = 0.03
"""So many, and of so many calls, may be chance, and are not worth making fewer calls for."""

IN_MEMORY = 0.5
"""What is left of a call at this number, for the number to count as one that was reached."""

COMPARED = 2.0
"""Fewer are made until they would bring so many times ``CLEAR`` rejections, if fewer did not help,
and again when a quarter of that is left in memory: at 10 % these are 100 calls of 1,400."""

RESTRAINT = 0.75
"""Of the most calls that were out: this is "fewer". At 0.8 some of it still lay above the limit of
a service that had come down by a tenth, and nothing was learned of it."""


def _numbers() -> tuple[int, ...]:
    numbers = [1]
    while numbers[-1] < MOST_KNOWN:
        numbers.append(max(numbers[-1] + 1, math.ceil(numbers[-1] * STEP_WIDTH)))
    return tuple(numbers)


NUMBERS = _numbers()
"""Where the numbers that are told apart begin: 1, 2, …, 16, 17, 19, 21, 23, 25, 27, …"""


def _place(out: int) -> int:
    return bisect_right(NUMBERS, out) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a call."""

    out: int
    """Calls that were out when it began, itself included; at least 1."""
    rejected: bool


class _Seen(NamedTuple):
    """Calls of some numbers, and how many of them were rejected."""

    calls: float
    rejected: float

    @property
    def share(self) -> float:
        return self.rejected / self.calls if self.calls else 0.0

    def without(self, part: "_Seen") -> "_Seen":
        calls = max(0.0, self.calls - part.calls)
        return _Seen(calls, min(calls, max(0.0, self.rejected - part.rejected)))

    @property
    def fit(self) -> float:
        """How well their own share explains them: the logarithm of its likelihood."""
        parts = (self.rejected, self.calls - self.rejected)
        return sum(part * math.log(part / self.calls) for part in parts if part > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """What is known of a service's capacity. How many calls a site allows is its own affair."""

    limit: int = START
    """Calls allowed at once."""
    calls: tuple[float, ...] = ()
    """Calls in memory, by the number that was out: see ``NUMBERS``."""
    rejections: tuple[float, ...] = ()
    """Those of them that were rejected."""

    @property
    def rejected_share(self) -> float:
        """Of all calls in memory."""
        return _Seen(sum(self.calls), sum(self.rejections)).share

    def after(self, outcomes: Sequence[Outcome], *, passed_s: float = 0.0) -> "CallLimit":
        """The limit once ``outcomes`` are known, ``passed_s`` seconds after the last ones."""
        if not outcomes:
            return self
        seen = self._with(outcomes, math.exp(-len(outcomes) / MEMORY_CALLS - passed_s / MEMORY_S))
        # A limit that is not used is not raised: nothing proves that there might be more.
        raised = sum(not each.rejected and 2 * each.out >= self.limit for each in outcomes)
        below = seen._below()
        gain, foot = _clearest_step(below)
        if gain >= CLEAR:
            seen = seen._believing_above(foot, min(1.0, CERTAIN / gain))
            return replace(seen, limit=min(self.limit + raised, NUMBERS[foot] - 1))
        return replace(seen, limit=min(self.limit + raised, seen._most_in_doubt(below)))

    def _with(self, outcomes: Sequence[Outcome], kept: float) -> "CallLimit":
        unseen = [0.0] * (1 + _place(max(each.out for each in outcomes)) - len(self.calls))
        calls = [kept * count for count in self.calls] + unseen
        rejections = [kept * count for count in self.rejections] + unseen
        for each in outcomes:
            calls[_place(each.out)] += 1
            rejections[_place(each.out)] += each.rejected
        return replace(self, calls=tuple(calls), rejections=tuple(rejections))

    def _below(self) -> list[_Seen]:
        """What was seen with fewer calls out than each of ``NUMBERS``; last, everything."""
        calls = accumulate(self.calls, initial=SUPPOSED_CALLS)
        rejections = accumulate(self.rejections, initial=SUPPOSED_REJECTIONS)
        return [_Seen(*each) for each in zip(calls, rejections, strict=True)]

    def _believing_above(self, foot: int, share: float) -> "CallLimit":
        def believed(counts: tuple[float, ...]) -> tuple[float, ...]:
            return counts[:foot] + tuple(share * count for count in counts[foot:])

        return replace(self, calls=believed(self.calls), rejections=believed(self.rejections))

    def _most_in_doubt(self, below: Sequence[_Seen]) -> int:
        """How many calls may be out while nothing explains the rejections."""
        reach = max(place for place, count in enumerate(self.calls) if count >= IN_MEMORY)
        fewer = _place(max(1, math.floor(RESTRAINT * NUMBERS[reach])))
        above = below[-1].without(below[fewer + 1])
        if above.rejected < DOUBTFUL_REJECTIONS or above.share < DOUBTFUL_SHARE:
            return MOST_KNOWN
        needed = COMPARED * CLEAR / above.share
        if self.limit > NUMBERS[fewer]:
            needed /= 4
        compared = below[fewer + 1].calls - SUPPOSED_CALLS
        return NUMBERS[fewer] if compared < needed else MOST_KNOWN


def _clearest_step(below: Sequence[_Seen]) -> tuple[float, int]:
    """How much better a step explains everything than one share does, and the place of its foot."""
    everything = below[-1]
    gains = [(0.0, 0)]
    for foot in range(1, len(below) - 1):
        if below[foot + 1].rejected > below[foot].rejected:
            above = everything.without(below[foot])
            if above.share > below[foot].share:
                gains.append((below[foot].fit + above.fit - everything.fit, foot))
    return max(gains)
