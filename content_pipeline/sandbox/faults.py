"""What goes wrong on purpose: a plan of rules, each with a condition and one fault.

What belongs here: the plan as a document, and which rule a request meets. How a fault looks on
the wire is in ``provider`` and ``wire``. Draws depend on the plan's seed and on the request alone,
never on the order in which concurrent requests arrive (``nth`` and ``every`` do, by their nature).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from content_pipeline.sandbox.draws import Draws


class FaultKind(StrEnum):
    """The closed set; every comment says what is billed and what a later look-up finds."""

    # Nothing is generated or billed.
    STATUS = "status"
    """An error in the provider's envelope: ``status``, ``type``, ``code``, ``message``."""
    DROP_BEFORE = "drop_before"
    """The connection is closed before anything is generated."""
    FAILED = "failed"
    """A background response is accepted and ends as failed, with ``code`` and ``message``;
    everything else is answered as by ``status``."""

    # Generated and billed; the stored completion is whole, its delivery is not.
    DROP_AFTER = "drop_after"
    """The connection is closed without an answer."""
    HANG = "hang"
    """Silence for ``seconds``, then the connection is closed without an answer."""
    CUT_BODY = "cut_body"
    """The answer's head promises the whole body, half of it arrives."""
    DRIP = "drip"
    """The whole answer, spread over ``seconds``: no single read takes long."""
    SLOW = "slow"
    """``seconds`` more of latency, then the whole answer."""
    EMPTY = "empty"
    """Status 200 without a body."""
    NO_CHOICES = "no_choices"
    """The answer's list of choices, or of output, is empty."""
    NULL_USAGE = "null_usage"
    """The answer does not tell its usage."""

    # Not billed unless ``billed`` is set.
    HTML = "html"
    """A page as a proxy in between would write it, with ``status``."""

    # Generated and billed; the model itself answered so, and so it is stored.
    REFUSAL = "refusal"
    """The model declines in the field made for it."""
    CONTENT_FILTER = "content_filter"
    """The answer is cut by the provider's filter."""
    LENGTH = "length"
    """The answer is cut as if the token limit had been reached."""
    BROKEN_JSON = "broken_json"
    """A finished answer that is not JSON."""
    EMPTY_CONTENT = "empty_content"
    """A finished answer of no text."""
    # Of an embedding: half a vector (LENGTH), one that holds a number that is none (BROKEN_JSON),
    # one of no numbers (EMPTY_CONTENT). It refuses and filters nothing; NO_CHOICES: no vector.


ANSWERED_WITH_HEADERS = frozenset({FaultKind.STATUS, FaultKind.HTML})
"""Faults whose answer carries the headers of the rule."""

PAID = frozenset({"create", "embed"})
"""Operations that generate something and bill it."""

OF_TEXT_ALONE = frozenset({FaultKind.REFUSAL, FaultKind.CONTENT_FILTER})

BEFORE_GENERATING = frozenset(
    {FaultKind.STATUS, FaultKind.DROP_BEFORE, FaultKind.FAILED, FaultKind.HTML}
)
"""Faults that also make sense for requests that generate nothing, such as a look-up."""


class Fault(BaseModel):
    """One fault with its particulars; fields that a kind does not name are ignored by it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    status: int = Field(default=503, ge=200, le=599)
    code: str | None = None
    type: str | None = "server_error"
    message: str = "The server had an error while processing your request."
    headers: dict[str, str] = {}
    seconds: float = Field(default=3600.0, ge=0)
    billed: bool = False
    retry_after_s: float | None = Field(default=None, gt=0, le=3600)
    """A wait that is announced; anything unusable can be put into ``headers``."""
    retry_after_style: Literal["seconds", "float", "ms", "http_date"] = "seconds"

    @property
    def announced_s(self) -> float | None:
        """The least wait that the answer announces; whole seconds and dates round it up."""
        return self.retry_after_s if self.kind in ANSWERED_WITH_HEADERS else None

    @property
    def bills(self) -> bool:
        """Whether a generation is made and paid for although this happens."""
        return self.billed if self.kind in BEFORE_GENERATING else True


class Match(BaseModel):
    """Which requests a rule is for: all given conditions must hold; none given means every one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: Literal["create", "embed", "list", "retrieve", "cancel"] = "create"
    nth: int | None = Field(default=None, ge=1, description="the n-th request of the operation")
    every: int | None = Field(default=None, ge=1, description="each request divisible by this")
    probability: float | None = Field(default=None, ge=0, le=1)
    metadata: dict[str, str] = {}
    prompt_contains: str | None = None


class Rule(BaseModel):
    """A fault and when it happens, at most ``times`` times."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: Fault
    match: Match = Match()
    times: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _only_generations_are_billed(self) -> "Rule":
        if self.match.operation not in PAID and self.fault.bills:
            raise ValueError(
                f"{self.fault.kind} bills, but {self.match.operation} generates nothing"
            )
        if self.match.operation == "embed" and self.fault.kind in OF_TEXT_ALONE:
            raise ValueError(f"{self.fault.kind} is a failing of text, and embed writes none")
        return self


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
    """The attempt id, or the digest of a body without one."""
    metadata: Mapping[str, str]
    prompt: str = ""


class RunningPlan:
    """A plan with its counters. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self._draws = Draws(plan.seed)

    def fault_for(self, request: Incoming) -> Fault | None:
        """Count ``request`` and return what happens to it."""
        number = self._draws.counted(request.operation, request.key)
        for index, rule in enumerate(self.plan.rules):
            if _is_meant(rule.match, request, number) and self._draws.strikes(
                index, rule.times, rule.match.probability, request.key
            ):
                return rule.fault
        return None


def _is_meant(match: Match, request: Incoming, number: int) -> bool:
    return (
        match.operation == request.operation
        and match.nth in (None, number)
        and (match.every is None or number % match.every == 0)
        and match.metadata.items() <= request.metadata.items()
        and (match.prompt_contains is None or match.prompt_contains in request.prompt)
    )
