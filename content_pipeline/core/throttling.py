"""How many calls a service takes at once, learned from what it rejects: decisions as values.

What belongs here: additive increase, multiplicative decrease. The limit falls fast when calls are
rejected and climbs back, fast at first and slowly near the point where it was last cut, so that a
hidden limit is used almost fully and touched seldom.
"""

from dataclasses import dataclass

CUT = 0.8
"""Kept of the limit after a rejection: deep enough to end a burst in two or three cuts."""

NEAR = 0.9
"""From this share of the last cut on, the limit climbs slowly."""

FAST_CALLS = 1.0
"""Successes per unit of the limit that raise it by one, far from the last cut."""

SLOW_CALLS = 8.0
"""The same near it: at a hidden limit of 20 about one call in 400 is rejected."""

LEAST = 1.0
"""A limit below one call would never learn that the service is well again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """What is known of a service's capacity."""

    limit: float
    """Calls allowed at once; its whole part counts."""
    most: float
    """Never more than this, however well it goes."""
    cut_from: float | None = None
    """The limit at which calls were last rejected."""

    def after_success(self) -> "CallLimit":
        """A call went through."""
        near = self.cut_from is not None and self.limit >= NEAR * self.cut_from
        step = 1 / ((SLOW_CALLS if near else FAST_CALLS) * self.limit)
        return CallLimit(
            limit=min(self.most, self.limit + step), most=self.most, cut_from=self.cut_from
        )

    def after_rejection(self, in_flight: int) -> "CallLimit":
        """A call was rejected while ``in_flight`` were out: no more than those were allowed."""
        reached = max(LEAST, min(self.limit, float(in_flight)))
        return CallLimit(limit=max(LEAST, CUT * reached), most=self.most, cut_from=reached)
