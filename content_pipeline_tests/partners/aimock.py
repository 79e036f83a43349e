"""aimock: a mock provider that repeats error envelopes to the letter and journals every header.

What belongs here: its command line and its control endpoints.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.partners.presence import Partner, program_of
from content_pipeline_tests.partners.processes import HOST, ask, running


@dataclass(frozen=True, slots=True)
class Aimock:
    """The server on one port."""

    port: int

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def answer_with(self, response: Mapping[str, Any], **fixture: Any) -> None:
        """Answer every chat completion so; ``fixture`` adds chaos or a condition."""
        fixture = {"match": {}, "response": response, **fixture}
        ask(self.port, "POST", "/__aimock/fixtures", {"fixtures": [fixture]})

    def journal(self) -> list[dict[str, Any]]:
        """Every request it answered, with its headers, oldest first."""
        found: list[dict[str, Any]] = ask(self.port, "GET", "/__aimock/journal")
        return found

    def reset(self) -> None:
        """Forget all requests and all answers."""
        ask(self.port, "POST", "/__aimock/reset")


@contextmanager
def serving(folder: Path) -> Iterator[Aimock]:
    """A running server for a ``with`` block, without an answer to anything."""
    server = Aimock(free_port())
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": []}))
    options = ["--host", HOST, "--port", server.port, "--fixtures", fixtures]
    command = [program_of(Partner.AIMOCK), *options, "--log-level", "warn"]
    with running(command, folder=folder, answers=server.journal):
        yield server
