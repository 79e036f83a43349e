"""What goes wrong at the CMS in one chaos run: faults of its writes, all drawn from one seed.

What belongs here: pure draws. The shares are of all writes, together 19 %; reads are answered, for
a look that fails only makes a page wait.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from content_pipeline.chaos.plan import conditional
from content_pipeline.sandbox.cms.faults import Fault, FaultKind, FaultPlan, Match, Rule

LATE_S = 4.0
"""How long after its connection was cut a late write takes effect."""

LISTING_LAG_S = 2.0
"""By so much lists and search are behind in a run with late writes."""

WAIT_S = 2.0
"""What an overloaded host asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOfWrites:
    """One fault and the share of all writes that it befalls."""

    share: float
    fault: Fault


def draw_cms_plan(seed: int, *, late: bool) -> FaultPlan:
    """The plan of ``seed``; with ``late`` a lost write takes effect only after its connection."""
    parts = write_shares(late=late)
    probabilities = conditional([part.share for part in parts])
    return FaultPlan(
        seed=seed,
        rules=tuple(
            Rule(fault=part.fault, match=Match(operation="write", probability=probability))
            for part, probability in zip(parts, probabilities, strict=True)
        ),
    )


def write_shares(*, late: bool) -> tuple[ShareOfWrites, ...]:
    """Every kind of fault with its share."""
    return (*_lost(late=late), *_committed(), *_not_committed(), *_busy())


def _lost(*, late: bool) -> Iterator[ShareOfWrites]:
    """The connection is closed without an answer, and the write takes effect: 7 %."""
    if late:
        yield _fault(0.07, FaultKind.LATE, seconds=LATE_S)
    else:
        yield _fault(0.07, FaultKind.DROP, committed=True)


def _committed() -> Iterator[ShareOfWrites]:
    """The write took effect, and its answer says otherwise or cannot be read: 5 %."""
    yield _fault(0.01, FaultKind.HTML, status=502, committed=True)
    yield _fault(0.01, FaultKind.HTML, status=504, committed=True)
    yield _fault(0.01, FaultKind.STATUS, status=500, committed=True)
    yield _fault(0.01, FaultKind.CUT_BODY)
    yield _fault(0.01, FaultKind.GARBAGE)


def _not_committed() -> Iterator[ShareOfWrites]:
    """Nothing was written, which the answer does not say: 2 %."""
    yield _fault(0.01, FaultKind.DB_DOWN)
    yield _fault(0.01, FaultKind.DROP)


def _busy() -> Iterator[ShareOfWrites]:
    """Nothing was written, and it is asked for less: 5 %, with and without a wait."""
    told = {"code": "too_many_requests", "message": "Slow down."}
    yield _fault(0.01, FaultKind.STATUS, status=429, retry_after_s=WAIT_S, **told)
    yield _fault(0.01, FaultKind.HTML, status=429, retry_after_s=WAIT_S)
    yield _fault(0.01, FaultKind.MAINTENANCE, retry_after_s=WAIT_S)
    yield _fault(0.02, FaultKind.STATUS, status=429, **told)


def _fault(share: float, kind: FaultKind, **particulars: object) -> ShareOfWrites:
    return ShareOfWrites(share=share, fault=Fault.model_validate({"kind": kind, **particulars}))
