"""llmock: a chaos server for clients of language models, with a journal and a verdict of its own.

What belongs here: its command line and its control endpoints. It breaks streams as well, which a
client that asks for whole answers never meets.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.partners.presence import Partner, program_of
from content_pipeline_tests.partners.processes import HOST, ask, running


@dataclass(frozen=True, slots=True)
class Llmock:
    """The server on one port."""

    port: int

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def script(self, *behaviours: Mapping[str, Any]) -> None:
        """What the next requests meet, each once unless it says ``times``."""
        ask(self.port, "POST", "/_llmock/scenario", {"behaviors": behaviours})

    def requests(self) -> list[dict[str, Any]]:
        """Every request it served, oldest first."""
        found: list[dict[str, Any]] = ask(self.port, "GET", "/_llmock/requests")["requests"]
        return found

    def verdict(self) -> dict[str, Any]:
        """How it judges the client: calls, attempts and findings."""
        found: dict[str, Any] = ask(self.port, "GET", "/_llmock/verdict")
        return found

    def findings(self) -> set[str]:
        """The codes of what it has against the client."""
        return {finding["code"] for finding in self.verdict()["findings"]}

    def reset(self) -> None:
        """Forget all requests and everything scripted."""
        ask(self.port, "POST", "/_llmock/reset")


@contextmanager
def serving(folder: Path, *options: object) -> Iterator[Llmock]:
    """A running server for a ``with`` block."""
    server = Llmock(free_port())
    command = [program_of(Partner.LLMOCK), "serve", "--host", HOST, "--port", server.port]
    with running([*command, *options], folder=folder, answers=server.requests):
        yield server
