"""Running a CMS in a thread of this process, for tests and benches.

What belongs here: a CMS with everything it needs. The process of its own is in ``__main__``.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.cms import CMS
from content_pipeline.sandbox.cms.controls import CMSControls
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.connections import in_thread, listen


@contextmanager
def serving_cms(
    settings: CMSSettings | None = None,
    *,
    folder: Path | None = None,
    faults: FaultPlan | None = None,
    port: int = 0,
) -> Iterator[CMSClient]:
    """A CMS in a thread of this process; without ``folder`` it remembers in memory only."""
    with closing(Store.in_folder(folder) if folder else Store.in_memory()) as store:
        cms = CMS(settings or CMSSettings(idle_exit_s=0), store, faults)
        listener = listen(port)
        client = CMSClient(listener.getsockname()[1])
        with in_thread(CMSControls(cms, secrets.token_hex(16)), listener, client.stop):
            yield client
