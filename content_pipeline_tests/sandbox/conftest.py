"""A provider in this process, and the real openai client for it."""

from collections.abc import Callable, Iterator

import openai
import pytest

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.server import serving
from content_pipeline.sandbox.settings import ProviderSettings

MakeSdk = Callable[..., openai.OpenAI]

INSTANT = ProviderSettings(latency_median_s=0, idle_exit_s=0)


@pytest.fixture(scope="module")
def running() -> Iterator[SandboxClient]:
    """One provider for a module: starting one per test would cost more than the tests."""
    with serving(INSTANT) as client:
        yield client


@pytest.fixture
def box(running: SandboxClient) -> SandboxClient:
    """A provider that answers at once and remembers nothing of earlier tests."""
    running.reset()
    running.set_settings(INSTANT)
    return running


@pytest.fixture(scope="module")
def make_sdk() -> Iterator[MakeSdk]:
    """Clients that make one request per call; building one takes 20 ms, so they are shared."""
    made: list[openai.OpenAI] = []

    def make(base_url: str, *, api_key: str = "key", timeout_s: float = 20) -> openai.OpenAI:
        sdk = openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=timeout_s)
        made.append(sdk)
        return sdk

    yield make
    for sdk in made:
        sdk.close()


@pytest.fixture(scope="module")
def running_sdk(running: SandboxClient, make_sdk: MakeSdk) -> openai.OpenAI:
    return make_sdk(running.base_url)


@pytest.fixture
def sdk(box: SandboxClient, running_sdk: openai.OpenAI) -> openai.OpenAI:
    """The real client of ``box``."""
    return running_sdk
