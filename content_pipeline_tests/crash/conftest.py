"""Workers that die, and what the other side holds afterwards."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.crash.worker import Order, fork_server, started

LONGEST_S = 60
"""No worker of these tests takes longer, however busy the machine."""

Start = Callable[..., ForkServerProcess]


@pytest.fixture
def order(ledger_url: str, sandbox: SandboxClient, site_name: str, tmp_path: Path) -> Order:
    """The order that every worker of a test gets."""
    return Order(
        site=site_name,
        towns=3,
        ledger_url=ledger_url,
        provider_url=sandbox.base_url,
        folder=tmp_path / "public",
    )


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts workers; whatever a test leaves running is ended."""
    context = fork_server()
    made: list[ForkServerProcess] = []

    def begin(order: Order, **changes: Any) -> ForkServerProcess:
        process = started(context, replace(order, **changes))
        made.append(process)
        return process

    yield begin
    for process in made:
        process.kill()
        process.join(LONGEST_S)
        process.close()
