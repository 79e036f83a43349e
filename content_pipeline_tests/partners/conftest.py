"""The partners, each started once; and the project's provider as a process of its own.

Nothing of them is shared between tests but the process: every test begins with empty journals.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.adapters.llm.samples import chat
from content_pipeline_tests.partners import aimock as aimock_server
from content_pipeline_tests.partners import gateway as gateway_server
from content_pipeline_tests.partners import llmock as llmock_server
from content_pipeline_tests.partners.aimock import Aimock
from content_pipeline_tests.partners.gateway import Gateway
from content_pipeline_tests.partners.llmock import Llmock

MakeModel = Callable[..., OpenAIModel]

CONTEXT_TOKENS = 100_000
"""What llmock's model can hold."""


@pytest.fixture(scope="session")
def running_llmock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llmock]:
    folder = tmp_path_factory.mktemp("llmock")
    with llmock_server.serving(folder, "--context-window", CONTEXT_TOKENS) as server:
        yield server


@pytest.fixture
def llmock(running_llmock: Llmock) -> Llmock:
    running_llmock.reset()
    return running_llmock


@pytest.fixture(scope="session")
def running_aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    with aimock_server.serving(tmp_path_factory.mktemp("aimock")) as server:
        yield server


@pytest.fixture
def aimock(running_aimock: Aimock) -> Aimock:
    running_aimock.reset()
    return running_aimock


@pytest.fixture(scope="session")
def running_provider() -> Iterator[SandboxClient]:
    """The sandbox provider in a process of its own, answering at once."""
    command = [sys.executable, "-m", "content_pipeline.sandbox", "--latency-median-s", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        try:
            yield SandboxClient(int(base_url.removesuffix("/v1").rpartition(":")[2]))
        finally:
            process.kill()


@pytest.fixture
def provider(running_provider: SandboxClient) -> SandboxClient:
    running_provider.reset()
    return running_provider


@pytest.fixture(scope="session")
def running_gateway(
    running_provider: SandboxClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    with gateway_server.serving(folder, provider_port=running_provider.port) as gateway:
        yield gateway


@pytest.fixture
def gateway(running_gateway: Gateway, provider: SandboxClient) -> Gateway:
    """The faithful gateway of ``provider``."""
    running_gateway.reset()
    return running_gateway


@pytest.fixture
def make_model() -> Iterator[MakeModel]:
    """Real clients, closed after the test."""
    made: list[OpenAIModel] = []

    def make(base_url: str, **changes: Any) -> OpenAIModel:
        model = chat(base_url, **changes)
        made.append(model)
        return model

    yield make
    for model in made:
        model.close()
