"""The schedule of a site file: its defaults, and what is refused with the reason."""

import pytest
from pydantic import ValidationError

from content_pipeline.core.publish_rate import PublishRate
from content_pipeline.core.schedule_settings import ScheduleSettings


def test_a_site_that_says_nothing_runs_nightly_without_a_publish_rate() -> None:
    settings = ScheduleSettings()
    assert settings.cron == "0 2 * * *"
    assert settings.pages_per_run == 100
    assert settings.rate is None
    assert settings.stale_after_days is None


def test_the_publish_rate() -> None:
    settings = ScheduleSettings(new_pages_per_day=50, paced=True)
    assert settings.rate == PublishRate(per_day=50, paced=True, drafts_ahead_days=0)
    ahead = ScheduleSettings(new_pages_per_day=50, drafts_ahead_days=3)
    assert ahead.rate == PublishRate(per_day=50, paced=False, drafts_ahead_days=3)


@pytest.mark.parametrize("cron", ["0 2 * * *", "*/15 0-6 1,15 * MON-FRI", "0 0 L * ?"])
def test_cron_expressions_that_are_taken(cron: str) -> None:
    assert ScheduleSettings(cron=cron).cron == cron


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cron": "nightly"}, "five fields"),
        ({"cron": "0 2 * *"}, "five fields"),
        ({"cron": "0 2 * * ; rm"}, "five fields"),
        ({"new_pages_per_day": 0}, "greater than or equal to 1"),
        ({"drafts_ahead_days": -1}, "greater than or equal to 0"),
        ({"pages_per_run": 49}, "greater than or equal to 50"),
        ({"pages_per_run": 201}, "less than or equal to 200"),
        ({"stale_after_days": 0}, "greater than 0"),
        ({"new_pages": 5}, "Extra inputs"),
    ],
)
def test_what_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ScheduleSettings.model_validate(changes)
