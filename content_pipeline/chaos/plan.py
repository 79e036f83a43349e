"""What goes wrong in one chaos run: faults, poison pages and deaths, all drawn from one seed.

What belongs here: pure draws. The shares are of all attempts at the provider; together 29 %, which
is what the field was measured with. Each attempt's fault depends on the seed and its id alone.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan, Match, Rule

POISON_PAGES = 3
"""Pages that policy refuses however often it is asked."""

LATE_S = 1.0
"""How long after the client's deadline an answer is still made and billed, but heard by nobody."""

REFUSED_BY_POLICY = "content_policy_violation"

KILL_SHARES = (0.05, 0.8)
"""Earlier deaths would meet workers that still start, later ones no page left to do."""

_THROTTLED = {
    "status": 429,
    "type": "rate_limit_error",
    "code": "rate_limit_exceeded",
    "message": "Rate limit reached.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOf:
    """One fault and the share of all attempts that it befalls."""

    share: float
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosPlan:
    """All that is drawn for one run."""

    faults: FaultPlan
    poison: frozenset[str]
    """Names of the topics that the provider always refuses."""
    kill_shares: tuple[float, ...]
    """Shares of finished pages at which all workers are killed, ascending."""


def draw_plan(seed: int, names: Sequence[str], *, kills: int, deadline_s: float) -> ChaosPlan:
    """The plan of ``seed`` for topics of these ``names``; ``deadline_s`` is the client's."""
    draw = random.Random(f"chaos {seed}")  # noqa: S311  # seeded on purpose
    poison = draw.sample(sorted(names), min(POISON_PAGES, len(names) // 2))
    return ChaosPlan(
        faults=FaultPlan(
            seed=seed,
            rules=(*_poison_rules(poison), *rules_of(shares(deadline_s))),
        ),
        poison=frozenset(poison),
        kill_shares=draw_kills(seed, kills),
    )


def draw_kills(seed: int, kills: int) -> tuple[float, ...]:
    """When all workers die: ``kills`` shares of finished pages."""
    draw = random.Random(f"kills {seed}")  # noqa: S311  # seeded on purpose
    return tuple(sorted(draw.uniform(*KILL_SHARES) for _ in range(kills)))


def poison_in(plan: FaultPlan, names: Sequence[str]) -> frozenset[str]:
    """The topics among ``names`` that ``plan`` always has refused, for a plan somebody wrote."""
    refused = [
        rule.match.prompt_contains
        for rule in plan.rules
        if rule.match.prompt_contains and rule.match.probability is None and _refuses(rule.fault)
    ]
    return frozenset(name for name in names if any(text in name for text in refused))


def _refuses(fault: Fault) -> bool:
    by_model = fault.kind in (FaultKind.REFUSAL, FaultKind.CONTENT_FILTER)
    return by_model or (fault.kind is FaultKind.STATUS and fault.code == REFUSED_BY_POLICY)


def _poison_rules(names: Sequence[str]) -> Iterator[Rule]:
    faults = (
        Fault(kind=FaultKind.REFUSAL),
        Fault(kind=FaultKind.CONTENT_FILTER),
        Fault(
            kind=FaultKind.STATUS,
            status=400,
            type="invalid_request_error",
            code=REFUSED_BY_POLICY,
            message="The request was refused by policy.",
        ),
    )
    for name, fault in zip(names, faults, strict=False):
        yield Rule(fault=fault, match=Match(prompt_contains=name))


def rules_of(parts: Sequence[ShareOf]) -> Iterator[Rule]:
    """Rules that give each part its share, although a rule is asked only if none before it was."""
    probabilities = conditional([part.share for part in parts])
    for part, probability in zip(parts, probabilities, strict=True):
        yield Rule(fault=part.fault, match=Match(probability=probability))


def conditional(shares: Iterable[float]) -> Iterator[float]:
    """For each share of everything its share of what the ones before it have left."""
    left = 1.0
    for share in shares:
        yield share / left
        left -= share


def shares(deadline_s: float) -> tuple[ShareOf, ...]:
    """Every kind of fault with its share."""
    return (*_busy(), *_broken(), *_lost(deadline_s), *_useless())


def _busy() -> Iterator[ShareOf]:
    """429s: 8 %, in every style of Retry-After that a client may take for a wait or must not."""
    for wait_s, style in ((2, "seconds"), (2.5, "float"), (1.8, "ms"), (2, "http_date")):
        announced = {"retry_after_s": wait_s, "retry_after_style": style}
        yield _fault(0.01, FaultKind.STATUS, **_THROTTLED, **announced)
    yield _fault(0.005, FaultKind.STATUS, status=503, type="server_error", retry_after_s=2)
    yield _fault(0.005, FaultKind.STATUS, **_THROTTLED)
    for value in ("0", "-3", "nan", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"):
        yield _fault(0.006, FaultKind.STATUS, **_THROTTLED, headers={"retry-after": value})


def _broken() -> Iterator[ShareOf]:
    """5xx and connections closed before anything was made: 5 %."""
    yield _fault(0.03, FaultKind.STATUS, status=500)
    yield _fault(0.01, FaultKind.HTML, status=502)
    yield _fault(0.01, FaultKind.DROP_BEFORE)


def _lost(deadline_s: float) -> Iterator[ShareOf]:
    """Answers that were billed and are not, or not wholly, delivered: 13 %."""
    yield _fault(0.05, FaultKind.DROP_AFTER)
    yield _fault(0.03, FaultKind.CUT_BODY)
    yield _fault(0.01, FaultKind.EMPTY)
    yield _fault(0.01, FaultKind.NO_CHOICES)
    yield _fault(0.01, FaultKind.HTML, status=504, billed=True)
    yield _fault(0.01, FaultKind.HANG)
    yield _fault(0.01, FaultKind.SLOW, seconds=deadline_s + LATE_S)


def _useless() -> Iterator[ShareOf]:
    """Answers that the model itself spoilt: 3 %, and each forces one more."""
    yield _fault(0.01, FaultKind.LENGTH)
    yield _fault(0.01, FaultKind.BROKEN_JSON)
    yield _fault(0.01, FaultKind.EMPTY_CONTENT)


def _fault(share: float, kind: FaultKind, **particulars: object) -> ShareOf:
    return ShareOf(share=share, fault=Fault.model_validate({"kind": kind, **particulars}))
