"""The broker as the environment states it."""

import pytest

from content_pipeline.config import BROKER_VARIABLE, broker_url


@pytest.mark.parametrize(
    "url", ["redis://:secret@broker:6379/0", "rediss://broker/1", "sentinel://a:1;sentinel://b:2"]
)
def test_every_way_to_name_a_redis_is_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BROKER_VARIABLE, f" {url} ")
    assert broker_url() == url
