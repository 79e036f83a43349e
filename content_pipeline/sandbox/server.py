"""Running a provider in a thread of this process, for tests and benches.

What belongs here: a provider with everything it needs. Connections are in ``connections``; the
background process and its files are in ``__main__`` and ``supervisor``.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.connections import in_thread, listen
from content_pipeline.sandbox.controls import Controls
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.journal import Journal
from content_pipeline.sandbox.provider import Provider
from content_pipeline.sandbox.settings import ProviderSettings


@contextmanager
def serving(
    settings: ProviderSettings | None = None,
    *,
    folder: Path | None = None,
    faults: FaultPlan | None = None,
    port: int = 0,
) -> Iterator[SandboxClient]:
    """A provider in a thread of this process; without ``folder`` it remembers in memory only."""
    with closing(Journal.in_folder(folder) if folder else Journal.in_memory()) as journal:
        provider = Provider(settings or ProviderSettings(idle_exit_s=0), journal, faults)
        listener = listen(port)
        client = SandboxClient(listener.getsockname()[1])
        with in_thread(Controls(provider, secrets.token_hex(16)), listener, client.stop):
            yield client
