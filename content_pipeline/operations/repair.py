"""Repair: a person takes a failed page up again, with a stated cause.

What belongs here: waking a page job that needs a person. Its identity, history and draft are kept,
and it goes on at its last checkpoint, so nothing that exists is paid or published again.
"""

from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import move_resting

RETRYABLE_BY_PERSON = (
    PageJobState.FAILED_TERMINAL,
    PageJobState.DEAD_LETTERED,
    PageJobState.CANCELLED,
)


def retry(ledger: Ledger, site: str, page: str, *, cause: str) -> str:
    """Wake ``page``'s current page job; what happens next, in a sentence. Raises UnknownPage."""
    with ledger.begin() as connection:
        found = reports.find_topic(connection, page, site)
        if found is None:
            raise UnknownPage(f"site {site!r} has no page {page!r}; give its topic id, path or URL")
        (report,) = reports.page_reports(connection, site, [found[1]])
        woken = move_resting(
            connection,
            report.page_job_id,
            sources=RETRYABLE_BY_PERSON,
            worker="repair",
            cause=f"repaired: {cause}",
            next_epoch=True,
        )
    if woken is None and report.page_id is None:
        return f"{found[1]} has no usable row: correct the table and run again"
    if woken is None:
        return f"{found[1]} is {report.state}: there is nothing to repair"
    return f"{found[1]} is {woken} again; the next run goes on with it"
