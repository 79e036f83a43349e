"""Repair: a person takes failed pages up again, with a stated cause.

What belongs here: waking page jobs that need a person, one or a whole group of one cause. What is
woken keeps its identity, history and draft and goes on at its last checkpoint, where results that
exist are looked for before anything is paid or written: a stored output, the answer of a lost call,
the page on the site.
"""

from collections.abc import Iterator, Sequence

from content_pipeline.core.causes import PREFIX
from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.states import NEEDS_PERSON, NEXT, PageJobState
from content_pipeline.ledger import failed_pages, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.failed_pages import FailedGroup, FailedPage
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.resting import move_resting

RETRYABLE_BY_PERSON = (*sorted(NEEDS_PERSON), PageJobState.CANCELLED)

WORKER = "repair"

WOKEN_AT_ONCE = 200
"""Pages of a group per transaction: a crash in between leaves whole pages, and asking again wakes
the rest."""


def retry(ledger: Ledger, site: str, page: str, *, cause: str) -> str:
    """Wake ``page``'s current page job, or all failed pages of a cause given by its fingerprint.

    What happens next is returned as a sentence. Raises UnknownPage.
    """
    if page.startswith(PREFIX):
        return _retry_group(ledger, group_of(ledger, site, page), cause)
    with ledger.begin() as connection:
        report = reports.page_of_site(connection, site, page)
        woken = move_resting(
            connection,
            report.page_job_id,
            sources=RETRYABLE_BY_PERSON,
            worker=WORKER,
            cause=f"repaired: {cause}",
            next_epoch=True,
        )
    return _told(report, woken)


def _told(page: PageReport, woken: PageJobState | None) -> str:
    name = page.topic_key
    if woken is PageJobState.GENERATION_UNCERTAIN:
        return f"{name} is {woken} again; the next run goes on with it: {NEXT[woken]} first"
    if woken is not None:
        return f"{name} is {woken} again; the next run goes on with it"
    if page.page_id is None:
        return f"{name} has no usable row: correct the table and run again"
    if page.state is PageJobState.PUBLISHED:
        return f"{name} is published: revision {page.revision} is live and proved, nothing is done"
    return f"{name} is {page.state}: there is nothing to repair"


def group_of(ledger: Ledger, site: str, fingerprint: str) -> FailedGroup:
    """The failed pages of one cause. Raises UnknownPage when there are none (any more)."""
    with ledger.begin() as connection:
        group = failed_pages.of_cause(connection, site, fingerprint)
    if group is None:
        raise UnknownPage(
            f"no failed page of site {site!r} has {fingerprint} (any more); see "
            "`content-pipeline repair list`"
        )
    return group


def _retry_group(ledger: Ledger, group: FailedGroup, cause: str) -> str:
    woken = 0
    for pages in _batches(group.pages):
        with ledger.begin() as connection:
            for page in pages:
                to = move_resting(
                    connection,
                    page.page_job_id,
                    sources=sorted(NEEDS_PERSON),
                    worker=WORKER,
                    cause=f"repaired: {cause}",
                    next_epoch=True,
                )
                woken += to is not None
    every = len(group.pages)
    told = f"{woken:,} of {every:,} pages of {group.cause.fingerprint} are taken up again"
    if woken == every:
        return f"{told}; the next run goes on with them"
    return f"{told}; the others have no usable row: correct the table and run again"


def _batches(pages: Sequence[FailedPage]) -> Iterator[Sequence[FailedPage]]:
    for start in range(0, len(pages), WOKEN_AT_ONCE):
        yield pages[start : start + WOKEN_AT_ONCE]
