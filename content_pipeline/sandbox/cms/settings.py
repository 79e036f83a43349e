"""How the sandbox CMS behaves when nothing goes wrong on purpose.

What belongs here: plain values. Faults of single requests are in ``faults``.
"""

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from content_pipeline.sandbox.settings import LATENCY_CAP_S

MARKER_PATTERN = (
    r"\b(?:key|page)=(?P<key>[A-Za-z0-9_.-]+)\s+rev=(?P<rev>\d+)\s+h(?:ash)?=(?P<hash>\w+)"
)
LONGEST_LAG_S = 60.0
"""For so long the CMS remembers what its listings showed before."""


class CMSSettings(BaseModel):
    """What can be set at start and changed while running; all of it is visible in the health."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    latency_median_s: float = Field(
        default=0.03, ge=0, le=LATENCY_CAP_S, description="median seconds of one request"
    )
    latency_sigma: float = Field(
        default=0.35, ge=0, le=3, description="spread: sigma of the lognormal latency"
    )
    seed: int = Field(default=0, description="seed of the latency")
    listing_lag_s: float = Field(
        default=0.0, ge=0, le=LONGEST_LAG_S, description="seconds by which lists and search lag"
    )
    cache_s: float = Field(
        default=0.0, ge=0, description="seconds a public page is cached unless purged"
    )
    clock_offset_s: float = Field(
        default=0.0, description="seconds by which the CMS's own clock is wrong"
    )
    companion: bool = Field(
        default=False, description="whether the plugin for keys and If-Match is installed"
    )
    unfiltered_html: bool = Field(
        default=True, description="whether editors' HTML is kept as it was sent"
    )
    racing_writes: bool = Field(
        default=False, description="decide on slugs before the latency, so that creates can race"
    )
    marker_pattern: str = Field(
        default=MARKER_PATTERN, description="regular expression with groups key, rev and hash"
    )
    indexnow_key: str = Field(default="", description="served at /KEY.txt; empty: none")
    zone_token: str = Field(default="", description="what a purge must bear; empty: anything")
    idle_exit_s: float = Field(
        default=1800.0, ge=0, description="end after so many seconds without a request; 0: never"
    )

    @field_validator("marker_pattern")
    @classmethod
    def _has_its_groups(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groupindex.keys()
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if not {"key", "rev", "hash"} <= groups:
            raise ValueError("it must have the groups key, rev and hash")
        return pattern
