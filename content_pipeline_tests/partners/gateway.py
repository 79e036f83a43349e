"""mitmproxy as the gateway between a client and a provider that really answers.

What belongs here: its command line, and the two files that connect a test with the faults of
``mitmproxy_addon``. It listens twice: as the gateway of one provider, and as a forward proxy.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.partners.presence import HERE, Partner, program_of
from content_pipeline_tests.partners.processes import HOST, running

ADDON = HERE / "mitmproxy_addon.py"


@dataclass(frozen=True, slots=True)
class Gateway:
    """mitmproxy, faithful until it is told otherwise."""

    port: int
    forward_port: int
    folder: Path

    @property
    def base_url(self) -> str:
        """The provider's address as the gateway shows it."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def proxy_url(self) -> str:
        """The forward proxy."""
        return f"http://{HOST}:{self.forward_port}"

    @property
    def faults(self) -> Path:
        return self.folder / "faults.json"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def strike(self, fault: str | None, *, first_of_page_job: bool = False) -> None:
        """Do this to every paid call, or only to the first one of each page job."""
        self.faults.write_text(json.dumps({"fault": fault, "first": first_of_page_job}))

    def posts(self) -> list[dict[str, Any]]:
        """Every paid call that reached it, oldest first, with what was done to it."""
        seen = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [request for request in seen if request["method"] == "POST"]

    def reset(self) -> None:
        """Be faithful, and forget what was seen."""
        self.strike(None)
        self.journal.write_text("")

    def knock(self) -> None:
        """Raises OSError as long as it does not listen."""
        for port in (self.port, self.forward_port):
            socket.create_connection((HOST, port)).close()


@contextmanager
def serving(folder: Path, *, provider_port: int) -> Iterator[Gateway]:
    """A running gateway of the provider on ``provider_port`` for a ``with`` block."""
    gateway = Gateway(free_port(), free_port(), folder)
    gateway.reset()
    command = [
        *(program_of(Partner.MITMPROXY), "--quiet", "--scripts", ADDON),
        *("--mode", f"reverse:http://{HOST}:{provider_port}@{HOST}:{gateway.port}"),
        *("--mode", f"regular@{HOST}:{gateway.forward_port}"),
        # A connection to the provider is made for a request, never for a mere knock.
        *("--set", "connection_strategy=lazy"),
        *("--set", f"confdir={folder / 'certificates'}"),
        *("--set", f"faults={gateway.faults}"),
        *("--set", f"journal={gateway.journal}"),
    ]
    with running(command, folder=folder, answers=gateway.knock):
        yield gateway
