"""How the sandbox provider behaves when nothing goes wrong: its settings and its latency.

What belongs here: plain values, and the one random draw whose result a bench must be able to
foresee. What goes wrong on purpose is a fault plan, in ``faults``.
"""

import math
import random
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

LATENCY_CAP_S = 600.0
"""No draw is longer: the openai SDK itself gives up reading after 600 s by default."""


class ProviderSettings(BaseModel):
    """What can be set at start and changed while running; all of it is visible in the health."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    latency_median_s: float = Field(
        default=0.05, ge=0, le=LATENCY_CAP_S, description="median seconds of one generation"
    )
    latency_sigma: float = Field(
        default=0.35, ge=0, le=3, description="spread: sigma of the lognormal latency"
    )
    seed: int = Field(default=0, description="seed of latency, phrasing and fault draws")
    models: tuple[str, ...] = Field(
        default=(), description="the only models that exist; none given: gpt-…, o… and sandbox…"
    )
    context_tokens: int = Field(
        default=128_000, ge=1, description="tokens of prompt and answer a model can hold"
    )
    listing_delay_s: float = Field(
        default=0.0, ge=0, description="seconds until a stored completion appears in the list"
    )
    most_at_once: int = Field(
        default=0, ge=0, description="calls generated at once, more are rejected; 0: any number"
    )
    idle_exit_s: float = Field(
        default=1800.0, ge=0, description="end after so many seconds without a request; 0: never"
    )


class Paced(Protocol):
    """Settings of a latency."""

    @property
    def latency_median_s(self) -> float:
        """Of one answer."""
        ...

    @property
    def latency_sigma(self) -> float:
        """Of the lognormal distribution."""
        ...

    @property
    def seed(self) -> int:
        """Of the draw."""
        ...


def latency_s(settings: Paced, key: str) -> float:
    """Seconds the answer named ``key`` takes: the same in every run and every process.

    Of a generation ``key`` is the attempt id in the request's metadata, or the digest of its body.
    """
    if settings.latency_median_s == 0:
        return 0.0
    draw = random.Random(f"latency {settings.seed} {key}")  # noqa: S311  # seeded on purpose
    seconds = draw.lognormvariate(math.log(settings.latency_median_s), settings.latency_sigma)
    return min(seconds, LATENCY_CAP_S)
