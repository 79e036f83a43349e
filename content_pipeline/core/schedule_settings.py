"""The section of a site file about its schedule: when it runs, how much of it, how fast.

What belongs here: the settings model. How many new pages may go out when is ``publish_rate``'s, and
which pages are due is ``planning``'s.
"""

import re
from typing import Annotated

from pydantic import Field, field_validator

from content_pipeline.core.publish_rate import PublishRate
from content_pipeline.core.settings import Settings

_FIELD = re.compile(r"[0-9A-Za-z*,/?#L-]+")
"""Dagster knows exactly what a field may hold; here only what cannot be one is refused."""

CRON_FIELDS = 5


class ScheduleSettings(Settings):
    """What the site's schedule does once it is switched on, and how fast new pages go out."""

    cron: Annotated[str, Field(description="when the schedule runs, UTC: five cron fields")] = (
        "0 2 * * *"
    )
    pages_per_run: Annotated[
        int, Field(ge=50, le=200, description="pages of one Dagster run of the schedule")
    ] = 100
    new_pages_per_day: Annotated[
        int | None,
        Field(ge=1, description="never-published pages that become public per UTC day; else all"),
    ] = None
    paced: Annotated[
        bool, Field(description="spread them over the hours of the day: n/24 an hour, rounded up")
    ] = False
    drafts_ahead_days: Annotated[
        int,
        Field(
            ge=0,
            le=365,
            description="for so many days after today drafts of new pages are paid for already",
        ),
    ] = 0
    stale_after_days: Annotated[
        float | None,
        Field(gt=0, le=3650, description="a draft older than this is made anew, and paid again"),
    ] = None

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, value: str) -> str:
        fields = value.split()
        if len(fields) != CRON_FIELDS or not all(map(_FIELD.fullmatch, fields)):
            raise ValueError(
                "`cron` must have five fields (minute hour day month weekday), e.g. '0 2 * * *'"
            )
        return value

    @property
    def rate(self) -> PublishRate | None:
        """How fast never-published pages may go out; None: as fast as they come."""
        if self.new_pages_per_day is None:
            return None
        return PublishRate(
            per_day=self.new_pages_per_day,
            paced=self.paced,
            drafts_ahead_days=self.drafts_ahead_days,
        )
