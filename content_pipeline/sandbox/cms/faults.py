"""What goes wrong on purpose at the CMS: a plan of rules, each with a condition and one fault.

What belongs here: the plan as a document, and which rule a request meets. How a fault looks on the
wire is in ``deliveries``. Draws depend on the plan's seed and on the request's key alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from content_pipeline.sandbox.draws import Draws


class FaultKind(StrEnum):
    """The closed set; ``committed`` says whether the write happened all the same."""

    STATUS = "status"
    """An error of the REST API with ``status``, ``code`` and ``message``."""
    HTML = "html"
    """A page as a proxy in between would write it, with ``status``: 200, 403, 502, …"""
    DB_DOWN = "db_down"
    """500 "Error establishing a database connection"; never committed."""
    MAINTENANCE = "maintenance"
    """503 with ``Retry-After``, 600 s unless set; never committed."""
    DROP = "drop"
    """The connection is closed without an answer."""
    LATE = "late"
    """Silence, and the connection closed after ``hold_s``; the write takes effect ``seconds``
    after it was asked for, and reads go on meanwhile."""
    HANG = "hang"
    """Silence for ``seconds``, then the connection is closed without an answer."""
    SLOW = "slow"
    """``seconds`` more of latency, then the whole answer."""
    CUT_BODY = "cut_body"
    """The answer's head promises the whole body, half of it arrives."""
    GARBAGE = "garbage"
    """The right status with a body that cannot be read."""
    NOISE = "noise"
    """The right status; a plugin's output stands before the JSON."""
    FILTERED = "filtered"
    """The HTML is filtered as if the role could not write just anything."""
    ANONYMOUS = "anonymous"
    """A proxy drops the credentials: the request is served as anybody's."""


NEVER_COMMITTED = frozenset({FaultKind.DB_DOWN, FaultKind.MAINTENANCE})
ALWAYS_COMMITTED = frozenset(
    {
        FaultKind.LATE,
        FaultKind.SLOW,
        FaultKind.CUT_BODY,
        FaultKind.GARBAGE,
        FaultKind.NOISE,
        FaultKind.FILTERED,
        FaultKind.ANONYMOUS,
    }
)
"""Faults after which the request is done as asked, or at least as it came through."""
MAINTENANCE_S = 600.0
"""What WordPress announces."""


class Fault(BaseModel):
    """One fault with its particulars; fields that a kind does not name are ignored by it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    committed: bool = False
    """Of status, html, drop and hang: whether the request is done before it goes wrong."""
    status: int = Field(default=500, ge=200, le=599)
    code: str = "internal_server_error"
    message: str = "There has been a critical error on this website."
    headers: dict[str, str] = {}
    seconds: float = Field(default=3600.0, ge=0)
    hold_s: float = Field(default=0.0, ge=0)
    retry_after_s: float | None = Field(default=None, gt=0, le=3600)
    """A wait that is announced in whole seconds, rounded up."""

    @property
    def is_done(self) -> bool:
        """Whether what was asked for happens although this does."""
        return self.kind in ALWAYS_COMMITTED or (self.committed and self.may_be_done)

    @property
    def may_be_done(self) -> bool:
        """Whether ``committed`` means anything for the kind."""
        return self.kind not in NEVER_COMMITTED

    @property
    def announced_s(self) -> float | None:
        """The least wait that the answer announces."""
        if self.kind is FaultKind.MAINTENANCE:
            return self.retry_after_s or MAINTENANCE_S
        return self.retry_after_s if self.kind in {FaultKind.STATUS, FaultKind.HTML} else None


Operation = Literal[
    "any", "write", "create", "update", "trash", "delete", "list", "read", "revisions", "me",
    "root", "front", "sitemap", "indexnow", "deploy", "purge", "receive",
]  # fmt: skip
WRITES = frozenset({"create", "update", "trash", "delete"})


class Match(BaseModel):
    """Which requests a rule is for: all given conditions must hold; none given means writes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: Operation = "write"
    nth: int | None = Field(default=None, ge=1, description="the n-th request of its operation")
    every: int | None = Field(default=None, ge=1, description="each request divisible by this")
    probability: float | None = Field(default=None, ge=0, le=1)
    key: str | None = Field(default=None, description="of the mark on the page")
    status: str | None = Field(default=None, description="that a write asks for")
    path_contains: str | None = None


class Rule(BaseModel):
    """A fault and when it happens, at most ``times`` times."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: Fault
    match: Match = Match()
    times: int | None = Field(default=None, ge=1)


class FaultPlan(BaseModel):
    """Rules in order of precedence: the first that matches is the one that happens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What of a request decides about its fault."""

    operation: str
    key: str
    path: str
    fields: Mapping[str, object]


class RunningPlan:
    """A plan with its counters. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self._draws = Draws(plan.seed)

    def fault_for(self, request: Incoming) -> Fault | None:
        """Count ``request`` and return what happens to it."""
        number = self._draws.counted(request.operation, request.key)
        for index, rule in enumerate(self.plan.rules):
            match = rule.match
            if (
                _is_meant(match, request)
                and match.nth in (None, number)
                and (match.every is None or number % match.every == 0)
                and self._draws.strikes(index, rule.times, match.probability, request.key)
            ):
                return rule.fault
        return None


def _is_meant(match: Match, request: Incoming) -> bool:
    return (
        match.operation in ("any", request.operation)
        or (match.operation == "write" and request.operation in WRITES)
    ) and (
        match.key in (None, request.key)
        and match.status in (None, request.fields.get("status"))
        and (match.path_contains is None or match.path_contains in request.path)
    )
