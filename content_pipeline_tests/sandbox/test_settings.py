import statistics

import pytest
from pydantic import ValidationError

from content_pipeline.core.generation_settings import SandboxSettings
from content_pipeline.sandbox.settings import LATENCY_CAP_S, ProviderSettings, latency_s

KEYS = [f"attempt-{number}" for number in range(2000)]


def test_the_same_attempt_takes_equally_long_in_every_run() -> None:
    settings = ProviderSettings(latency_median_s=0.4, latency_sigma=0.5, seed=7)
    again = ProviderSettings(latency_median_s=0.4, latency_sigma=0.5, seed=7)
    assert [latency_s(settings, key) for key in KEYS] == [latency_s(again, key) for key in KEYS]


def test_a_draw_is_the_same_on_every_machine() -> None:
    settings = ProviderSettings(latency_median_s=0.4, latency_sigma=0.5, seed=7)
    assert latency_s(settings, "attempt-1") == pytest.approx(0.267306, abs=1e-6)


def test_another_seed_gives_other_latencies() -> None:
    one, two = ProviderSettings(seed=1), ProviderSettings(seed=2)
    assert all(latency_s(one, key) != latency_s(two, key) for key in KEYS[:50])


def test_half_of_all_latencies_lie_below_the_median() -> None:
    settings = ProviderSettings(latency_median_s=0.2, latency_sigma=0.5)
    assert statistics.median(latency_s(settings, key) for key in KEYS) == pytest.approx(
        0.2, rel=0.1
    )


def test_without_spread_every_generation_takes_the_median() -> None:
    settings = ProviderSettings(latency_median_s=0.2, latency_sigma=0)
    assert {round(latency_s(settings, key), 9) for key in KEYS[:50]} == {0.2}


def test_a_median_of_zero_means_no_latency_at_all() -> None:
    assert latency_s(ProviderSettings(latency_median_s=0), "attempt") == 0


def test_no_draw_is_longer_than_a_client_waits() -> None:
    settings = ProviderSettings(latency_median_s=LATENCY_CAP_S, latency_sigma=3)
    assert max(latency_s(settings, key) for key in KEYS) == LATENCY_CAP_S


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency_median_s": -1},
        {"latency_median_s": float("nan")},
        {"latency_median_s": 1e9},
        {"latency_sigma": -0.1},
        {"context_tokens": 0},
        {"idle_exit_s": -1},
        {"listing_delay_s": -1},
        {"most_at_once": -1},
        {"latency": 1},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ProviderSettings.model_validate(wrong)


def test_a_sites_settings_of_the_sandbox_fit_as_they_are() -> None:
    site = SandboxSettings(latency_median_s=0.3, latency_sigma=0.1, most_at_once=7, seed=5)
    settings = ProviderSettings(**site.model_dump())
    assert (settings.latency_median_s, settings.latency_sigma, settings.seed) == (0.3, 0.1, 5)
    assert settings.most_at_once == 7
