"""Twins: second pages with our mark, left on the site by writes that took effect late.

What belongs here: taking them away, never silently. Which of several pages is the page, the adapter
says: the one whose id is on record, else a public one, else the oldest.
"""

import logging

from content_pipeline.core.cms import PageLookUp
from content_pipeline.core.errors import CallFailed
from content_pipeline.ledger import site_changes
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import SiteEventKind
from content_pipeline.operations.runtime import SiteRuntime

log = logging.getLogger(__name__)


def remove_twins(runtime: SiteRuntime, job: PageJob, look: PageLookUp) -> int:
    """Take away the twins that ``look`` found; how many. One that stays is found again later."""
    removed = 0
    for twin in look.twins:
        try:
            runtime.cms.remove(twin)
        except CallFailed as failed:
            log.warning("page %s has a twin that stays for now: %s", job.path, failed.failure)
            continue
        removed += 1
        assert look.page is not None
        detail = (
            f"{twin.status} page {twin.remote_id} at {twin.path} carried the mark of page "
            f"{look.page.remote_id} and was taken away"
        )
        with runtime.ledger.begin() as connection:
            site_changes.log(
                connection,
                job.site,
                job.page_id,
                SiteEventKind.TWIN_REMOVED,
                detail,
                by=runtime.worker,
            )
    return removed
