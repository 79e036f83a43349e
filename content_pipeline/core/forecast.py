"""Forecasts: what a paid call will probably come to, from what such calls came to before.

What belongs here: pure arithmetic on the means of earlier calls, and the assumptions that stand in
for them before the first one. The most that a call can cost is not a forecast: that is reserved.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from content_pipeline.core.chain import Step, StepRole
from content_pipeline.core.money import MESSAGE_OVERHEAD_TOKENS, Usage

ASSUMED_BYTES_PER_TOKEN = 4
"""English text and JSON; other languages have fewer, which the first calls show."""

ASSUMED_OUTPUT_SHARE = 0.5
"""Of max_output_tokens: people set it to about twice what a page takes, for it cuts pages off."""

ASSUMED_LATENCY_S = 20.0
"""Of a call that writes a page of 1,000 tokens at some 50 tokens a second."""


class Basis(StrEnum):
    """What a forecast rests on, the surest first."""

    HISTORY = "history"
    """Calls of the same step and model on this site."""
    OTHER_MODEL = "other model"
    """Calls of the same step on this site by another model."""
    ASSUMPTION = "assumption"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHistory:
    """The last paid calls of one step by one model; means per call."""

    step: str
    model: str
    calls: int
    page_jobs: int
    """That these calls were made for: fewer, where some were asked twice."""
    input_tokens: float
    cached_tokens: float
    output_tokens: float
    prompt_bytes: float | None
    """None: of before it was written down."""
    latency_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """What one step of one page will probably take."""

    usage: Usage
    """Of one call."""
    calls: float
    """How often it is made for a page, on average."""
    latency_s: float
    basis: Basis


def expected_call(
    step: Step, prompt_bytes: int | None, history: Iterable[StepHistory]
) -> ExpectedCall:
    """The forecast for ``step``. ``prompt_bytes``: None where the prompt depends on a step before.

    Output tokens are the mean of earlier calls; input tokens are counted from the prompt's bytes,
    by as many bytes per token as earlier prompts had.
    """
    past, basis = _closest(step, history)
    if past is None:
        return _assumed(step, prompt_bytes)
    sent = past.input_tokens
    if prompt_bytes is not None and past.prompt_bytes:
        sent *= prompt_bytes / past.prompt_bytes
    elif prompt_bytes is not None:
        sent = _tokens_in(prompt_bytes)
    cached_share = past.cached_tokens / past.input_tokens if past.input_tokens else 0
    usage = Usage(
        input_tokens=round(sent),
        cached_tokens=round(sent * cached_share),
        output_tokens=round(past.output_tokens),
    )
    return ExpectedCall(
        usage=usage,
        calls=past.calls / past.page_jobs,
        latency_s=ASSUMED_LATENCY_S if past.latency_s is None else past.latency_s,
        basis=basis,
    )


def _closest(step: Step, history: Iterable[StepHistory]) -> tuple[StepHistory | None, Basis]:
    of_step = [past for past in history if past.step == step.name and past.calls]
    same = [past for past in of_step if past.model == step.model]
    if same:
        return same[0], Basis.HISTORY
    most = max(of_step, key=lambda past: past.calls, default=None)
    return most, Basis.OTHER_MODEL


def _assumed(step: Step, prompt_bytes: int | None) -> ExpectedCall:
    writes = step.role is not StepRole.EMBEDDING
    return ExpectedCall(
        usage=Usage(
            input_tokens=_tokens_in(prompt_bytes or 0),
            output_tokens=round(step.max_output_tokens * ASSUMED_OUTPUT_SHARE) if writes else 0,
        ),
        calls=1,
        latency_s=ASSUMED_LATENCY_S,
        basis=Basis.ASSUMPTION,
    )


def _tokens_in(prompt_bytes: int) -> int:
    return round(prompt_bytes / ASSUMED_BYTES_PER_TOKEN) + MESSAGE_OVERHEAD_TOKENS
