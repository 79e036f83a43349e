"""``python -m content_pipeline.sandbox.cms``: the CMS as a process of its own.

What belongs here: what makes a CMS out of settings, a folder and a plan.
"""

import contextlib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.cms import CMS
from content_pipeline.sandbox.cms.controls import CMSControls
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.connections import Program
from content_pipeline.sandbox.process import Kind, run


def _opened(
    settings: CMSSettings,
    folder: Path | None,
    plan: FaultPlan | None,
    stack: contextlib.ExitStack,
) -> Program:
    store = Store.in_folder(folder) if folder else Store.in_memory()
    stack.callback(store.close)
    return CMSControls(CMS(settings, store, plan), secrets.token_hex(16))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the CMS until it is stopped or idle; the exit code."""
    kind = Kind(
        what="CMS",
        module="content_pipeline.sandbox.cms",
        description="A WordPress-like CMS on loopback, with the services told about its pages.",
        settings=CMSSettings,
        plan=FaultPlan,
        base_url=lambda port: CMSClient(port).base_url,
        opened=_opened,
    )
    return run(kind, argv)


if __name__ == "__main__":
    sys.exit(main())
