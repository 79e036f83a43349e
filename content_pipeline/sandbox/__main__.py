"""``python -m content_pipeline.sandbox``: the provider as a process of its own.

What belongs here: what makes a provider out of settings, a folder and a plan.
"""

import contextlib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.connections import Program
from content_pipeline.sandbox.controls import Controls
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.journal import Journal
from content_pipeline.sandbox.process import Kind, run
from content_pipeline.sandbox.provider import Provider
from content_pipeline.sandbox.settings import ProviderSettings


def _opened(
    settings: ProviderSettings,
    folder: Path | None,
    plan: FaultPlan | None,
    stack: contextlib.ExitStack,
) -> Program:
    journal = Journal.in_folder(folder) if folder else Journal.in_memory()
    stack.callback(journal.close)
    return Controls(Provider(settings, journal, plan), secrets.token_hex(16))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the provider until it is stopped or idle; the exit code."""
    kind = Kind(
        what="provider",
        module="content_pipeline.sandbox",
        description="An OpenAI-compatible provider on loopback that writes articles from facts.",
        settings=ProviderSettings,
        plan=FaultPlan,
        base_url=lambda port: SandboxClient(port).base_url,
        opened=_opened,
    )
    return run(kind, argv)


if __name__ == "__main__":
    sys.exit(main())
